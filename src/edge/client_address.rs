//! The address of the client behind a request: its peer, or whom a trusted proxy names. Not
//! what a client may do.

use super::fields::list_value;
use crate::client_net::is_local;
use http::{Extensions, HeaderMap, HeaderName};
use ipnet::IpNet;
use std::net::IpAddr;

/// Request extension: the other end of its connection, or whom a trusted proxy names before HTTP
/// (PROXY protocol).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress(pub IpAddr);

/// Request extension: its connection is one of TLS, which ends here or at a trusted proxy that says
/// so before HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverTls;

/// True for the address of a proxy that is trusted.
pub fn is_trusted(address: IpAddr, trusted: &[IpNet]) -> bool {
    let address = address.to_canonical();
    trusted.iter().any(|net| net.contains(&address))
}

// Decides: Which address is the client, behind proxies?
/// The address of the client. Of `X-Forwarded-For` the last address counts that is no trusted
/// proxy: what stands before it, the client may have made up. `None` where the connection is not
/// known.
pub fn client_address(
    extensions: &Extensions,
    headers: &HeaderMap,
    trusted: &[IpNet],
) -> Option<IpAddr> {
    let PeerAddress(peer) = extensions.get()?;
    let mut client = peer.to_canonical();
    let forwarded =
        list_value(headers, &HeaderName::from_static("x-forwarded-for")).unwrap_or_default();
    let mut named = forwarded
        .rsplit(',')
        .map(|part| part.trim().parse::<IpAddr>());
    while is_trusted(client, trusted)
        && let Some(Ok(before)) = named.next()
    {
        client = before.to_canonical();
    }
    Some(client)
}

// Decides: Which address may stand for many clients?
/// True when the address of a client may stand for many: a local or private peer that is no trusted
/// proxy may be a proxy that nobody named, and a trusted one may name nobody.
pub fn may_be_many(peer: IpAddr, client: IpAddr, trusted: &[IpNet]) -> bool {
    let is_named = is_trusted(peer, trusted);
    is_trusted(client, trusted) || (!is_named && (is_local(client) || is_shared(client)))
}

/// True for 100.64.0.0/10, which providers and overlay networks give out (RFC 6598).
fn is_shared(address: IpAddr) -> bool {
    matches!(address.to_canonical(), IpAddr::V4(v4) if matches!(v4.octets(), [100, 64..=127, ..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_peer_that_nobody_named_may_be_many_and_so_may_a_proxy_that_names_nobody() {
        let trusted = ["127.0.0.1/32", "10.0.0.0/8"].map(|net| net.parse().unwrap());
        for (peer, client, expect) in [
            ("198.51.100.1", "198.51.100.1", false),
            ("2001:db8::1", "2001:db8::1", false),
            ("127.0.0.2", "127.0.0.2", true),
            ("::1", "::1", true),
            ("::ffff:192.168.1.1", "192.168.1.1", true),
            ("172.16.0.1", "172.16.0.1", true),
            ("fd00::1", "fd00::1", true),
            ("fe80::1", "fe80::1", true),
            ("100.64.0.1", "100.64.0.1", true),
            ("100.128.0.1", "100.128.0.1", false),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "198.51.100.1", false),
            ("127.0.0.1", "192.168.1.1", false),
        ] {
            let [peer, client] = [peer, client].map(|address| address.parse().unwrap());
            assert_eq!(
                may_be_many(peer, client, &trusted),
                expect,
                "{peer} {client}"
            );
        }
    }

    #[test]
    fn only_a_trusted_proxy_is_believed_and_only_as_far_as_it_can_know() {
        let check = |peer: &str, forwarded: &[&str], expect: &str| {
            let mut extensions = Extensions::new();
            extensions.insert(PeerAddress(peer.parse().unwrap()));
            let mut headers = HeaderMap::new();
            for line in forwarded {
                headers.append("x-forwarded-for", line.parse().unwrap());
            }
            let trusted = ["127.0.0.1/32", "10.0.0.0/8"].map(|net| net.parse().unwrap());
            let client = client_address(&extensions, &headers, &trusted).unwrap();
            assert_eq!(client.to_string(), expect, "{peer} {forwarded:?}");
        };
        check("198.51.100.1", &[], "198.51.100.1");
        check("198.51.100.1", &["192.0.2.1"], "198.51.100.1");
        check("127.0.0.1", &[], "127.0.0.1");
        check("127.0.0.1", &["192.0.2.1"], "192.0.2.1");
        check("::ffff:127.0.0.1", &["192.0.2.1"], "192.0.2.1");
        check(
            "127.0.0.1",
            &["192.0.2.9, 192.0.2.1, 10.1.2.3"],
            "192.0.2.1",
        );
        check("127.0.0.1", &["192.0.2.9", "192.0.2.1"], "192.0.2.1");
        check("127.0.0.1", &["192.0.2.1, unknown"], "127.0.0.1");
        check("127.0.0.1", &["2001:db8::1"], "2001:db8::1");
        assert_eq!(
            client_address(&Extensions::new(), &HeaderMap::new(), &[]),
            None
        );
    }
}
