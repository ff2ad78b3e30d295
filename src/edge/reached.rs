//! The addresses by which a listener of this process is reached, in whatever spelling and without a
//! look-up; not what is answered there.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use url::{Host, Url};

/// Names that every system has for itself, beside those below `localhost` (RFC 6761 section 6.3).
const OWN_NAMES: [&str; 8] = [
    "localhost",
    "localhost.localdomain",
    "localhost4",
    "localhost4.localdomain4",
    "localhost6",
    "localhost6.localdomain6",
    "ip6-localhost",
    "ip6-loopback",
];

/// The address that a URL names; a name of this machine is a loopback address.
pub fn named_address(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(ip) => Some(ip.into()),
        Host::Ipv6(ip) => Some(IpAddr::V6(ip).to_canonical()),
        Host::Domain(name) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            let is_local = OWN_NAMES.contains(&&*name) || name.ends_with(".localhost");
            is_local.then_some(Ipv4Addr::LOCALHOST.into())
        }
    }
}

/// True for an address by which a listener is reached from this machine.
pub fn reaches(address: IpAddr, listener: IpAddr) -> bool {
    let (address, listener) = (address.to_canonical(), listener.to_canonical());
    // The unspecified address leads to loopback.
    let is_loopback = address.is_loopback() || address.is_unspecified();
    if listener.is_unspecified() {
        // An address of this machine can be bound to, no other can.
        return is_loopback || UdpSocket::bind((address, 0)).is_ok();
    }
    address == listener || (is_loopback && listener.is_loopback())
}

/// True for a URL that names an address and the port of a listener.
pub fn is_at(url: &Url, listener: SocketAddr) -> bool {
    // Port 0 is any free one, which is known once it is bound.
    url.port_or_known_default() == Some(listener.port())
        && listener.port() != 0
        && named_address(url).is_some_and(|address| reaches(address, listener.ip()))
}

/// True for a host that is called by a name; neither case nor a dot at the end matters.
pub fn is_called(url: &Url, name: &str) -> bool {
    let bare = |host: &str| host.trim_end_matches('.').to_ascii_lowercase();
    url.host_str().is_some_and(|host| bare(host) == bare(name))
}
