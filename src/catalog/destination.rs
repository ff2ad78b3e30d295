//! The destination of a request to a callback: the host and the port that its URL leads to, in one
//! spelling; not the rest of the URL.

use std::{fmt, net::Ipv6Addr};
use url::{Host, Url};

/// A host and a port in one spelling. Case, a dot at the end, a default port, and the many
/// spellings of an IP address do not matter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Destination {
    pub(crate) host: Box<str>,
    pub(crate) port: u16,
}

impl Destination {
    /// The destination of a callback; an empty one for what is no URL.
    pub(crate) fn of(callback: &str) -> Self {
        let url = Url::parse(callback).ok();
        let host = match url.as_ref().and_then(Url::host) {
            Some(Host::Domain(name)) => name.trim_end_matches('.').to_ascii_lowercase(),
            Some(Host::Ipv4(v4)) => v4.to_string(),
            Some(Host::Ipv6(v6)) => spelt(v6),
            None => String::new(),
        };
        let port = url
            .as_ref()
            .and_then(Url::port_or_known_default)
            .unwrap_or_default();
        Self {
            host: host.into(),
            port,
        }
    }
}

/// One spelling of an address of version 6, which may carry one of version 4.
fn spelt(v6: Ipv6Addr) -> String {
    v6.to_ipv4_mapped()
        .map_or_else(|| v6.to_string(), |v4| v4.to_string())
}

/// For the log: all of a callback that may be shown.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') {
            write!(f, "[{host}]:{port}")
        } else {
            write!(f, "{host}:{port}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_destination_is_one() {
        let check = |spellings: &[&str], expect: &str| {
            for spelling in spellings {
                assert_eq!(Destination::of(spelling).to_string(), expect, "{spelling}");
            }
        };
        check(
            &[
                "http://a.example/x",
                "http://A.Example:80/y?z",
                "http://a.example./",
                "HTTP://a.example",
            ],
            "a.example:80",
        );
        check(&["https://a.example/"], "a.example:443");
        let local = [
            "http://127.0.0.1:9000/cb",
            "http://127.1:9000/",
            "http://2130706433:9000/",
            "http://0x7f.0.0.1:9000/",
            "http://0177.0.0.1:9000/",
            "http://127.0.0.1.:9000/",
            "http://[::ffff:127.0.0.1]:9000/",
            "http://[::ffff:7f00:1]:9000/",
        ];
        check(&local, "127.0.0.1:9000");
        check(&["http://[::1]/", "http://[0:0::0:1]:80/"], "[::1]:80");
        check(&["no url"], ":0");
    }
}
