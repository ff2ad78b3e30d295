//! The address by which a client is counted wherever clients are limited, and which addresses are
//! local; not what is counted.

use std::net::{IpAddr, Ipv6Addr};

/// Bits of an address of version 6 that tell the network of a client, who has all addresses in it.
const NET_BITS: u32 = 64;

// Decides: Which addresses are one client?
/// The address by which a client is counted: its own, or that of its network in version 6.
pub fn client_net(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> NET_BITS << NET_BITS))
        }
        address => address,
    }
}

/// True for an address of this machine or of a network that is not public, as far as its owner
/// gives such addresses out himself.
pub fn is_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_private() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}
