//! Places at which this everfeed answers itself: no callback is there, whatever addresses are
//! allowed. What goes on to the origin of a site may be one, as the blog's own subscriber. Not
//! whether an address is public.

use crate::edge::reached::{is_called, named_address, reaches};
use http::{Method, header::HOST, request::Parts};
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};
use url::{Position, Url};

/// True for a request of which a listener of consumers answers everything itself.
pub type AnswersItself = Arc<dyn Fn(&Parts) -> bool + Send + Sync>;

/// The hosts of sites, without ports.
pub type HostsOfSites = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// The listeners of this process, the names by which they are known, and what is answered there.
#[derive(Clone)]
pub struct ProcessAddresses {
    /// Listeners at which there is no path for others: the operator's, and that which sends readers
    /// on to https.
    pub closed: Vec<SocketAddr>,
    /// Listeners of consumers.
    pub consumers: Vec<SocketAddr>,
    /// The URLs by which consumers reach us, the present one first; empty for nobody.
    pub roots: Vec<Url>,
    /// The hosts of the sites in force.
    pub site_hosts: HostsOfSites,
    /// Which requests of consumers are answered here.
    pub answers: AnswersItself,
}

impl Default for ProcessAddresses {
    /// No place.
    fn default() -> Self {
        Self {
            closed: Vec::new(),
            consumers: Vec::new(),
            roots: Vec::new(),
            site_hosts: Arc::new(Vec::new),
            answers: Arc::new(|_| false),
        }
    }
}

impl fmt::Debug for ProcessAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessAddresses").finish_non_exhaustive()
    }
}

impl ProcessAddresses {
    /// True for a callback that leads to a place at which we answer ourselves. `found` are the
    /// addresses behind its name, as far as they are known.
    pub fn holds(&self, callback: &str, found: &[IpAddr]) -> bool {
        let Ok(url) = Url::parse(callback) else {
            return false;
        };
        let Some(port) = url.port_or_known_default() else {
            return false;
        };
        let mut addresses: Vec<IpAddr> = named_address(&url).into_iter().collect();
        addresses.extend(found);
        let is_reached = |listener: &SocketAddr| {
            let is_here = |address: &IpAddr| reaches(*address, listener.ip());
            addresses.iter().any(is_here)
        };
        let is_by_name = self.is_own_name(&url);
        for closed in &self.closed {
            if closed.port() == port && (is_by_name || is_reached(closed)) {
                return true;
            }
        }
        let target = &url[Position::BeforePath..Position::AfterQuery];
        let mut is_consumers_port = false;
        for listener in &self.consumers {
            if listener.port() != port {
                continue;
            }
            if is_reached(listener) {
                return self.answers_all_of(&url, target);
            }
            is_consumers_port = true;
        }
        if !is_by_name {
            return false;
        }
        let mut ports = self.roots.iter().map(Url::port_or_known_default);
        let is_front = matches!(port, 80 | 443) || ports.any(|root| root == Some(port));
        if !is_front && !is_consumers_port {
            return false;
        }
        // The server in front takes the path of a root off. Sites have that of the present one.
        let is_of_host = |root: &&Url| root.host_str().is_some_and(|host| is_called(&url, host));
        let mut roots: Vec<&Url> = self.roots.iter().filter(is_of_host).collect();
        if roots.is_empty() {
            roots.extend(self.roots.first());
        }
        if roots.is_empty() {
            return self.answers_all_of(&url, target);
        }
        roots.into_iter().any(|root| {
            let Some(below) = target.strip_prefix(root.path().trim_end_matches('/')) else {
                return false;
            };
            if below.starts_with('/') {
                return self.answers_all_of(&url, below);
            }
            let is_root = below.is_empty() || below.starts_with('?');
            is_root && self.answers_all_of(&url, &format!("/{below}"))
        })
    }

    fn answers_all_of(&self, url: &Url, target: &str) -> bool {
        let host = &url[Position::BeforeHost..Position::AfterPort];
        // What asks, and what tells.
        [Method::GET, Method::POST].into_iter().any(|method| {
            let request = http::Request::builder()
                .method(method)
                .uri(target)
                .header(HOST, host)
                .body(());
            request.is_ok_and(|request| (self.answers)(&request.into_parts().0))
        })
    }

    fn is_own_name(&self, url: &Url) -> bool {
        let mut roots = self.roots.iter().filter_map(Url::host_str);
        roots.any(|name| is_called(url, name))
            || (self.site_hosts)().iter().any(|name| is_called(url, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(public_url: &str) -> ProcessAddresses {
        let at = |text: &str| text.parse().unwrap();
        ProcessAddresses {
            closed: vec![at("127.0.0.1:8079"), at("0.0.0.0:8078")],
            consumers: vec![at("127.0.0.1:8080"), at("[::]:8443")],
            roots: [public_url, "https://old.example/once/"]
                .map(|root| Url::parse(root).unwrap())
                .into(),
            site_hosts: Arc::new(|| vec!["blog.example".to_owned()]),
            answers: Arc::new(|request| {
                request.uri.path().starts_with("/feeds") || request.headers[HOST] == "nobody"
            }),
        }
    }

    #[test]
    fn the_operators_listener_is_no_callback_in_any_spelling() {
        let places = places("https://feeds.example/");
        for host in [
            "127.0.0.1",
            "localhost",
            "LOCALHOST.",
            "x.localhost",
            "[::1]",
            "0.0.0.0",
            "[::]",
            "[::ffff:127.0.0.1]",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "127.1",
            "feeds.example",
            "Feeds.Example.",
            "blog.example",
        ] {
            for port in [8078, 8079] {
                for scheme in ["http", "https"] {
                    let callback = format!("{scheme}://{host}:{port}/anything?x=1");
                    assert!(places.holds(&callback, &[]), "{callback}");
                }
            }
        }
        assert!(!places.holds("http://127.0.0.1:8077/", &[]));
        let named = "http://name.example:8079/";
        assert!(!places.holds(named, &["192.0.2.1".parse().unwrap()]));
        assert!(places.holds(
            named,
            &["192.0.2.1".parse().unwrap(), "127.0.0.1".parse().unwrap()]
        ));
        assert!(!places.holds("no url", &[]));
    }

    #[test]
    fn a_path_that_we_answer_is_no_callback_and_one_that_goes_to_the_origin_may_be() {
        let check = |places: &ProcessAddresses, callback: &str, found: &[&str], expect: bool| {
            let found: Vec<IpAddr> = found.iter().map(|text| text.parse().unwrap()).collect();
            assert_eq!(places.holds(callback, &found), expect, "{callback}");
        };
        let places = places("https://feeds.example/");
        for (place, is_own) in [
            ("http://127.0.0.1:8080", true),
            ("http://localhost:8443", true),
            ("https://[::1]:8443", true),
            ("http://127.0.0.1:9000", false),
            ("https://feeds.example", true),
            ("http://feeds.example", true),
            ("https://blog.example:8443", true),
            ("http://blog.example:9000", false),
            ("http://other.example", false),
            ("http://old.example/once", true),
            ("http://old.example", false),
        ] {
            check(&places, &format!("{place}/feeds/blog"), &[], is_own);
            check(&places, &format!("{place}/x/../feeds?x"), &[], is_own);
            check(&places, &format!("{place}/wp-json/websub"), &[], false);
        }
        check(
            &places,
            "http://other.example:8080/feeds",
            &["127.0.0.1"],
            true,
        );
        check(
            &places,
            "http://other.example:8080/page",
            &["127.0.0.1"],
            false,
        );
        // Below the path of the public URL.
        let places = self::places("https://feeds.example/below/");
        check(&places, "https://feeds.example/below/feeds", &[], true);
        check(&places, "https://feeds.example/feeds", &[], false);
        check(&places, "https://feeds.example/belowfeeds", &[], false);
        check(&places, "http://127.0.0.1:8080/feeds", &[], true);
        check(
            &ProcessAddresses::default(),
            "http://127.0.0.1:8080/feeds",
            &[],
            false,
        );
    }
}
