//! The address by which a client is counted wherever clients are limited, and which addresses are
//! local; not what is counted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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

/// Bits of an address that tell the site to which a client belongs: providers give a customer up to
/// so many networks of version 6 (RFC 6177), and who has one address of version 4 often has its
/// neighbours.
const SITE_BITS_V6: u32 = 48;
const SITE_BITS_V4: u32 = 24;

// Decides: Which clients may be one party?
/// The address by which the clients of one site are counted together: its /48 in version 6, its /24
/// in version 4.
pub fn client_site(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let rest = u128::BITS - SITE_BITS_V6;
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> rest << rest))
        }
        IpAddr::V4(v4) if !v4.is_loopback() => {
            let rest = u32::BITS - SITE_BITS_V4;
            IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() >> rest << rest))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_its_address_or_its_64_and_a_site_its_24_or_its_48() {
        let check = |address: &str, net: &str, site: &str| {
            let [address, net, site] = [address, net, site].map(|text| text.parse().unwrap());
            assert_eq!((client_net(address), client_site(address)), (net, site));
        };
        check("2001:db8:1:2:3::4", "2001:db8:1:2::", "2001:db8:1::");
        check("198.51.100.7", "198.51.100.7", "198.51.100.0");
        check("::ffff:198.51.100.7", "198.51.100.7", "198.51.100.0");
        check("::1", "::1", "::1");
        check("127.0.0.1", "127.0.0.1", "127.0.0.1");
    }
}
