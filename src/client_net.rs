//! The address by which a client is counted wherever clients are limited, the network around it, and
//! which addresses are local; not what is counted.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub mod tally;

/// Bits of an address of version 6 that tell the network of a client, who has all addresses in it.
const CLIENT_BITS: u32 = 64;
/// Bits of an address of version 6 that tell the site of its owner, who has all networks in it: a
/// registry gives out no longer prefixes.
const SITE_BITS: u8 = 48;
/// Bits of an address of version 4 that tell its neighbours: no longer prefix is routed.
const NEIGHBOUR_BITS: u8 = 24;
/// The network of NAT64 (RFC 6052 section 2.1).
const NAT64: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);
/// The network of 6to4 (RFC 3056 section 2).
const SIX_TO_FOUR: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16);
/// The network of Teredo (RFC 4380 section 2.6).
const TEREDO: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32);

// Decides: Which addresses are one client?
/// The address by which a client is counted: its own, or that of its network in version 6. One that
/// holds an address of version 4 is that.
pub fn client_net(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => match within(v6) {
            Some(v4) => IpAddr::V4(v4),
            None => {
                let left = u128::BITS - CLIENT_BITS;
                IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> left << left))
            }
        },
        address => address,
    }
}

// Decides: Which clients are counted together, too?
/// The network around a client, which may be one owner's whole: a /48 in version 6, and a /24 in
/// version 4.
pub fn surrounding_net(address: IpAddr) -> IpNet {
    match client_net(address) {
        IpAddr::V4(v4) => Ipv4Net::new_assert(v4, NEIGHBOUR_BITS).trunc().into(),
        IpAddr::V6(v6) => Ipv6Net::new_assert(v6, SITE_BITS).trunc().into(),
    }
}

/// The public address of version 4 that an address of version 6 holds, by which its packets come.
fn within(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = address.to_bits();
    // The lowest 32 bits of what is left.
    let low = |bits: u128| u32::try_from(bits & u128::from(u32::MAX)).unwrap_or_default();
    let v4 = if NAT64.contains(&address) {
        low(bits)
    } else if SIX_TO_FOUR.contains(&address) {
        low(bits >> 80)
    } else if TEREDO.contains(&address) {
        !low(bits)
    } else {
        return None;
    };
    let v4 = Ipv4Addr::from_bits(v4);
    (!is_local(v4.into()) && !v4.is_unspecified()).then_some(v4)
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
    fn a_client_and_the_network_around_it_are_found_in_every_form_of_an_address() {
        for (address, client, net) in [
            ("198.51.100.7", "198.51.100.7", "198.51.100.0/24"),
            ("::ffff:198.51.100.7", "198.51.100.7", "198.51.100.0/24"),
            ("2001:db8:1:2::3", "2001:db8:1:2::", "2001:db8:1::/48"),
            (
                "2001:db8:1:ffff:9::3",
                "2001:db8:1:ffff::",
                "2001:db8:1::/48",
            ),
            // NAT64, 6to4 and Teredo.
            ("64:ff9b::c633:6407", "198.51.100.7", "198.51.100.0/24"),
            ("2002:c633:6407:1::9", "198.51.100.7", "198.51.100.0/24"),
            (
                "2001:0:cb00:7101:0:ffff:39cc:9bf8",
                "198.51.100.7",
                "198.51.100.0/24",
            ),
            // Nobody is this machine by an address that holds its own.
            ("64:ff9b::7f00:1", "64:ff9b::", "64:ff9b::/48"),
            ("2002:7f00:1::1", "2002:7f00:1::", "2002:7f00:1::/48"),
            ("2002:0a00:1::1", "2002:a00:1::", "2002:a00:1::/48"),
            ("::1", "::1", "::/48"),
            ("127.0.0.1", "127.0.0.1", "127.0.0.0/24"),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(client_net(address).to_string(), client, "{address}");
            assert_eq!(surrounding_net(address).to_string(), net, "{address}");
        }
    }
}
