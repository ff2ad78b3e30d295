//! The networks of hosts, as far as they were looked up: thousands of blogs may stand behind one. Not
//! what is limited by them.

use super::public_address::is_public;
use crate::locks::{read, write};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, RwLock},
};

/// Hosts that are remembered at most; with one more all are forgotten, and looked up as before.
const HOSTS_MAX: usize = 500_000;
/// Bits of a network of version 4.
const V4_BITS: u8 = 24;
/// The same of version 6.
const V6_BITS: u8 = 48;

/// The network of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostNet {
    /// The host was not looked up yet.
    Unknown,
    /// A network that is not public.
    Private,
    /// A public network.
    Public(IpNet),
}

/// The networks of hosts by their names. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct KnownNets(Arc<RwLock<HashMap<String, HostNet>>>);

impl KnownNets {
    /// The network of a host.
    pub fn of(&self, host: &str) -> HostNet {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(address) => net_of(address),
            Err(_) => read(&self.0).get(host).copied().unwrap_or(HostNet::Unknown),
        }
    }

    fn note(&self, host: &str, addresses: &[SocketAddr]) {
        let Some(first) = addresses.first() else {
            return;
        };
        let mut nets = write(&self.0);
        if nets.len() >= HOSTS_MAX {
            nets.clear();
        }
        nets.insert(host.to_owned(), net_of(first.ip()));
    }
}

/// The network of an address.
fn net_of(address: IpAddr) -> HostNet {
    let address = address.to_canonical();
    let net = match address {
        _ if !is_public(address) => None,
        IpAddr::V4(address) => Ipv4Net::new(address, V4_BITS)
            .map(|net| net.trunc().into())
            .ok(),
        IpAddr::V6(address) => Ipv6Net::new(address, V6_BITS)
            .map(|net| net.trunc().into())
            .ok(),
    };
    net.map_or(HostNet::Private, HostNet::Public)
}

/// A resolver that notes the networks of what it looks up.
#[derive(Clone)]
pub struct NotingResolver {
    /// The resolver that is asked.
    pub inner: Arc<dyn Resolve>,
    /// The networks so far.
    pub nets: KnownNets,
}

impl Resolve for NotingResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (host, nets) = (name.as_str().to_owned(), self.nets.clone());
        let found = self.inner.resolve(name);
        Box::pin(async move {
            let found: Vec<SocketAddr> = found.await?.collect();
            nets.note(&host, &found);
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_host_has_the_network_that_it_was_looked_up_in_and_a_private_one_has_none() {
        let nets = KnownNets::default();
        let at = |text: &str| vec![text.parse::<SocketAddr>().unwrap()];
        nets.note("a.example", &at("93.184.215.14:0"));
        nets.note("b.example", &at("[2606:2800:21f:cb07::1]:0"));
        nets.note("c.example", &at("127.0.0.1:0"));
        let check = |host: &str, net: &str| {
            assert_eq!(
                nets.of(host),
                HostNet::Public(net.parse().unwrap()),
                "{host}"
            );
        };
        check("a.example", "93.184.215.0/24");
        check("b.example", "2606:2800:21f::/48");
        check("93.184.215.99", "93.184.215.0/24");
        for private in ["c.example", "10.0.0.1", "[::1]", "127.0.0.1"] {
            assert_eq!(nets.of(private), HostNet::Private, "{private}");
        }
        assert_eq!(nets.of("d.example"), HostNet::Unknown);
        nets.note("a.example", &at("10.0.0.1:0"));
        assert_eq!(nets.of("a.example"), HostNet::Private, "it has moved");
    }
}
