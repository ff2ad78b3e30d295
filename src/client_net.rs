//! The address by which a client is counted wherever clients are limited; not what is counted.

use std::net::{IpAddr, Ipv6Addr};

/// Bits of an address of version 6 that tell the network of a client, who has all addresses in it.
const NET_BITS: u32 = 64;

/// The address by which a client is counted: its own, or that of its network in version 6.
pub fn client_net(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> NET_BITS << NET_BITS))
        }
        address => address,
    }
}
