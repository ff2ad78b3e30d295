//! Which IP addresses are public. A pure table, and the resolver that answers with nothing else;
//! the decision when to use it is the guard's.

use crate::{client_net::is_local, locks::lock};
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use url::{Host, Url};

use super::error::{BoxError, Refused};

/// True for an address on the public internet: globally reachable unicast by the IANA
/// special-purpose registries, and not a v6 address that carries a v4 one which is not.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

/// True for a URL that leads to this machine or its network, as far as it tells: a loopback,
/// private or link-local address, or a name that no public server has (RFC 6761, RFC 8375, ICANN's
/// `internal`, and names without a dot, as containers have them).
pub fn is_near(url: &Url) -> bool {
    let is_near_ip = |ip: IpAddr| is_local(ip) || ip.to_canonical().is_unspecified();
    match url.host() {
        Some(Host::Ipv4(ip)) => is_near_ip(ip.into()),
        Some(Host::Ipv6(ip)) => is_near_ip(ip.into()),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            let is_below = |zone: &&str| {
                name.strip_suffix(*zone)
                    .is_some_and(|rest| rest.ends_with('.'))
            };
            !name.contains('.') || NEAR_ZONES.iter().any(is_below)
        }
        None => false,
    }
}

/// True for a URL whose host is not on the public internet, as far as it tells: [`is_near`], or an
/// address that is not public. What a name leads to is not asked.
pub fn is_private_host(url: &Url) -> bool {
    let is_private = match url.host() {
        Some(Host::Ipv4(ip)) => !is_public(ip.into()),
        Some(Host::Ipv6(ip)) => !is_public(ip.into()),
        Some(Host::Domain(_)) => false,
        None => true,
    };
    is_private || is_near(url)
}

/// True for the host of a URL that leads to this machine and nowhere else.
pub fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(ip) => ip.to_canonical().is_loopback(),
        Err(_) => bare.trim_end_matches('.').eq_ignore_ascii_case("localhost"),
    }
}

/// Zones of names that lead to this machine or its network.
const NEAR_ZONES: [&str; 5] = ["localhost", "local", "internal", "lan", "home.arpa"];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !matches!(
        (a, b, c),
        (0, ..)                    // "This network"; 0.0.0.0 connects to loopback on Linux.
            | (10, ..)             // Private.
            | (100, 64..=127, _)   // Carrier-grade NAT.
            | (127, ..)            // Loopback.
            | (169, 254, _)        // Link-local, and the clouds' metadata services.
            | (172, 16..=31, _)    // Private.
            | (192, 0, 0)          // IETF protocol assignments.
            | (192, 0, 2)          // Documentation.
            | (192, 88, 99)        // 6to4 relays, withdrawn.
            | (192, 168, _)        // Private.
            | (198, 18 | 19, _)    // Benchmarking.
            | (198, 51, 100)       // Documentation.
            | (203, 0, 113)        // Documentation.
            | (224..=255, ..) // Multicast, reserved, broadcast.
    )
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let s = address.segments();
    match s {
        // Forms that carry a v4 address are as public as that one is.
        [0, 0, 0, 0, 0, 0xffff, high, low] => is_public_v4(embedded(high, low)), // v4-mapped.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(embedded(high, low)), // NAT64.
        [0x2002, high, low, ..] => is_public_v4(embedded(high, low)),            // 6to4.
        // Teredo: the server in clear, the client's address inverted.
        [0x2001, 0, server_high, server_low, _, _, high, low] => {
            is_public_v4(embedded(server_high, server_low)) && is_public_v4(embedded(!high, !low))
        }
        [0x2001, 2, 0, ..] => false,                // Benchmarking.
        [0x2001, 0x10..=0x2f, ..] => false,         // ORCHID, names and not places.
        [0x2001, 0xdb8, ..] => false,               // Documentation.
        [0x3fff, low, ..] if low < 0x1000 => false, // Documentation.
        // All that IANA has given out for unicast lies in 2000::/3. The rest is loopback,
        // v4-compatible, local NAT64 (64:ff9b:1::), discard, unique local, link-local, site-local,
        // multicast, or unassigned.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

fn embedded(high: u16, low: u16) -> Ipv4Addr {
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    Ipv4Addr::new(a, b, c, d)
}

/// Asks the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            // Port 0 stands for the one in the URL.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(Box::new(found.collect::<Vec<_>>().into_iter()) as Addrs)
        })
    }
}

/// Answers with any address of a name, unless the name led to public addresses before and leads to
/// others now: then somebody else may have taken the name over (DNS rebinding). Names are
/// remembered while the process runs.
#[derive(Clone)]
pub struct SteadyResolver {
    inner: Arc<dyn Resolve>,
    public: Arc<Mutex<HashSet<String>>>,
}

impl SteadyResolver {
    /// Watches what `inner` finds.
    pub fn over(inner: Arc<dyn Resolve>) -> Self {
        Self {
            inner,
            public: Arc::default(),
        }
    }
}

impl Resolve for SteadyResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (host, public) = (name.as_str().to_ascii_lowercase(), Arc::clone(&self.public));
        let resolving = self.inner.resolve(name);
        Box::pin(async move {
            let found: Vec<SocketAddr> = resolving.await?.collect();
            let is_all_public = found.iter().all(|address| is_public(address.ip()));
            let mut public = lock(&public);
            if is_all_public && !found.is_empty() {
                public.insert(host);
            } else if public.contains(&host) && !found.is_empty() {
                return Err(Box::new(Refused::Rebound) as BoxError);
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Answers with the public addresses of a name only. The connector dials exactly what it was
/// answered, so the address that was checked is the address that is used: a name cannot change its
/// mind in between.
#[derive(Clone)]
pub struct PublicResolver(pub Arc<dyn Resolve>);

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolving = self.0.resolve(name);
        Box::pin(async move {
            let mut found = resolving.await?.peekable();
            let any = found.peek().is_some();
            let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
            if any && public.is_empty() {
                return Err(Box::new(Refused::Address) as BoxError);
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_near_by_its_address_or_by_a_name_that_no_public_server_has() {
        let check = |url: &str, expect: bool| {
            assert_eq!(is_near(&Url::parse(url).unwrap()), expect, "{url}")
        };
        for near in [
            "http://127.0.0.1:8081/",
            "http://[::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://[fd00::1]/",
            "http://192.168.1.5/",
            "http://localhost/",
            "http://wordpress:80/",
            "http://Blog.LOCAL./",
            "http://nas.home.arpa/",
        ] {
            check(near, true);
        }
        for far in [
            "http://93.184.215.14/",
            "http://[2606:2800::1]/",
            "https://blog.example.org/",
            "http://a.locals/",
            "http://xlocal.org/",
        ] {
            check(far, false);
        }
    }

    /// Finds one address after the other.
    struct Changing(Mutex<Vec<&'static str>>);

    impl Resolve for Changing {
        fn resolve(&self, _: Name) -> Resolving {
            let address = self.0.lock().unwrap().pop().unwrap();
            let found = SocketAddr::new(address.parse().unwrap(), 0);
            Box::pin(async move { Ok(Box::new(std::iter::once(found)) as Addrs) })
        }
    }

    #[tokio::test]
    async fn a_public_name_does_not_become_private() {
        let found = ["127.0.0.1", "8.8.4.4", "10.0.0.1", "8.8.8.8", "127.0.0.1"];
        let resolver = SteadyResolver::over(Arc::new(Changing(Mutex::new(found.to_vec()))));
        let mut answers = Vec::new();
        for name in [
            "b.example",
            "a.example",
            "A.example",
            "a.example",
            "b.example",
        ] {
            answers.push(resolver.resolve(name.parse().unwrap()).await.is_ok());
        }
        assert_eq!(
            answers,
            [true, true, false, true, true],
            "a name that was always private stays usable"
        );
    }

    fn check(addresses: &[&str], public: bool) {
        for text in addresses {
            assert_eq!(is_public(text.parse().unwrap()), public, "{text}");
        }
    }

    #[test]
    fn ordinary_addresses_are_public() {
        check(
            &[
                "1.1.1.1",
                "8.8.8.8",
                "93.184.216.34",
                "100.63.255.255",
                "100.128.0.1",
                "172.15.0.1",
                "172.32.0.1",
            ],
            true,
        );
        check(
            &["192.0.1.1", "198.17.0.1", "198.20.0.1", "223.255.255.254"],
            true,
        );
        check(
            &[
                "2606:4700::1111",
                "2a00:1450:4001::1",
                "2001:4860:4860::8888",
                "2001:200::1",
            ],
            true,
        );
    }

    #[test]
    fn every_special_v4_block_is_not_public() {
        check(
            &[
                "0.0.0.0",
                "0.1.2.3",
                "10.0.0.1",
                "100.64.0.1",
                "100.127.255.254",
                "127.0.0.1",
                "127.9.9.9",
            ],
            false,
        );
        check(
            &[
                "169.254.169.254",
                "172.16.0.1",
                "172.31.255.254",
                "192.0.0.1",
                "192.0.2.1",
                "192.88.99.1",
            ],
            false,
        );
        check(
            &[
                "192.168.1.1",
                "198.18.0.1",
                "198.19.255.1",
                "198.51.100.7",
                "203.0.113.7",
            ],
            false,
        );
        check(
            &[
                "224.0.0.1",
                "239.255.255.250",
                "240.0.0.1",
                "255.255.255.255",
            ],
            false,
        );
    }

    #[test]
    fn every_special_v6_block_is_not_public() {
        check(
            &[
                "::",
                "::1",
                "100::1",
                "fc00::1",
                "fd12:3456::1",
                "fe80::1",
                "fec0::1",
                "ff02::1",
            ],
            false,
        );
        check(
            &[
                "2001:2::1",
                "2001:10::1",
                "2001:20::1",
                "2001:db8::1",
                "3fff::1",
                "5f00::1",
                "64:ff9b:1::1",
            ],
            false,
        );
    }

    #[test]
    fn a_v6_form_is_as_public_as_the_v4_address_inside() {
        check(
            &["::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1"],
            true,
        );
        check(
            &[
                "::ffff:127.0.0.1",
                "::ffff:10.0.0.1",
                "::127.0.0.1",
                "::10.1.2.3",
            ],
            false,
        );
        check(
            &[
                "64:ff9b::127.0.0.1",
                "64:ff9b::a9fe:a9fe",
                "2002:7f00:1::1",
                "2002:c0a8:101::1",
            ],
            false,
        );
        // Teredo, first a private client (192.168.0.1 inverted), then a private server.
        check(
            &["2001:0:808:808:0:0:3f57:fffe", "2001:0:a00:1:0:0:f7f7:f7f7"],
            false,
        );
        check(&["2001:0:808:808:0:0:f7f7:f7f7"], true);
    }
}
