//! The destination of a request to a callback: the host and the port that its URL leads to, in one
//! spelling; not the rest of the URL.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
};
use url::{Host, Url};

/// A host and a port in one spelling. Case, a dot at the end, a default port, and the many
/// spellings of an IP address and of this machine do not matter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Destination {
    pub(crate) host: Box<str>,
    pub(crate) port: u16,
}

impl Destination {
    /// The destination of a callback; an empty one for what is no URL.
    pub(crate) fn of(callback: &str) -> Self {
        match Url::parse(callback) {
            Ok(url) => Self::of_url(&url),
            Err(_) => Self {
                host: "".into(),
                port: 0,
            },
        }
    }

    fn of_url(url: &Url) -> Self {
        let address = match url.host() {
            Some(Host::Ipv4(v4)) => Ok(IpAddr::V4(v4)),
            Some(Host::Ipv6(v6)) => Ok(IpAddr::V6(v6).to_canonical()),
            Some(Host::Domain(name)) => Err(name.trim_end_matches('.').to_ascii_lowercase()),
            None => Err(String::new()),
        };
        let host = match address {
            // The unspecified address leads to this machine, too.
            Ok(ip) if ip == Ipv6Addr::LOCALHOST || ip.is_unspecified() => LOOPBACK.to_owned(),
            Ok(ip) => ip.to_string(),
            Err(name) if name == "localhost" || name.ends_with(".localhost") => LOOPBACK.to_owned(),
            Err(name) => name,
        };
        Self {
            host: host.into(),
            port: url.port_or_known_default().unwrap_or_default(),
        }
    }

    /// The server to which a URL leads: all addresses of this machine are one, and so are the usual
    /// ports of http and https.
    pub(crate) fn server(url: &Url) -> Self {
        let Self { host, port } = Self::of_url(url);
        let is_loopback = host
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback());
        Self {
            host: if is_loopback { LOOPBACK.into() } else { host },
            port: if port == 443 { 80 } else { port },
        }
    }

    /// True for this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        *self.host == *LOOPBACK
    }
}

/// The one spelling of this machine.
const LOOPBACK: &str = "127.0.0.1";

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
            "http://LOCALHOST.:9000/",
            "http://a.localhost:9000/",
            "http://[::1]:9000/",
            "http://0.0.0.0:9000/",
            "http://[::]:9000/",
        ];
        check(&local, "127.0.0.1:9000");
        check(
            &["http://[2001:db8::1]/", "http://[2001:db8:0:0::1]:80/"],
            "[2001:db8::1]:80",
        );
        check(&["no url"], ":0");
    }
}
