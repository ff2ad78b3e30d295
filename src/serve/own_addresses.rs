//! The addresses at which this everfeed answers itself, as far as the configuration and the sockets
//! tell them: what is asked or told there comes back to us. Not what a request to a callback meets,
//! which the hub knows.

use super::Config;
use crate::{
    edge::reached::{is_at, is_called},
    render::Site,
};
use std::net::SocketAddr;
use url::Url;

/// Sockets with a port, once they are bound.
#[derive(Clone, Debug, Default)]
pub struct Listeners {
    /// Those of consumers.
    pub consumers: Vec<SocketAddr>,
    /// Those at which there is no path for others: the operator's, and that which sends readers on
    /// to https.
    pub closed: Vec<SocketAddr>,
}

/// The addresses at which this everfeed answers itself.
pub struct OwnAddresses {
    listeners: Listeners,
    /// The roots by which readers know us, present and former, and the paths that are ours below
    /// each.
    roots: Vec<(Url, Site)>,
    site_hosts: Vec<String>,
    /// True where whatever is asked of a listener of consumers is answered here: no site is behind.
    is_alone: bool,
}

impl OwnAddresses {
    /// The addresses of a configuration. `site_hosts` has the hosts of sites, where they have one.
    pub fn of(server: &Config, bound: &Listeners, site_hosts: &[Option<String>]) -> Self {
        let mut listeners = bound.clone();
        listeners.consumers.extend(server.listen.tcp());
        listeners.closed.push(server.admin_listen);
        listeners.closed.extend(server.tls.redirect_from);
        let former = server.former_public_urls.iter();
        let former = former.map(|root| (root.clone(), Site::new(root, "")));
        let present = Site::new(&server.public_url, &server.prefix);
        Self {
            listeners,
            roots: std::iter::once((server.public_url.clone(), present))
                .chain(former)
                .collect(),
            site_hosts: site_hosts.iter().flatten().cloned().collect(),
            is_alone: site_hosts.is_empty(),
        }
    }

    // Decides: Which URL cannot be polled, because it leads to us?
    /// True for a URL of which a poll would come back to us. The origin of a site is not behind any
    /// of them: our own polls are refused.
    pub fn answer_polls_of(&self, url: &Url) -> bool {
        self.are_closed_at(url) || self.is_of_consumers(url) || self.is_own_place(url)
    }

    /// True for an origin to which requests of consumers would be led in a circle.
    pub fn are_origin(&self, origin: &Url) -> bool {
        self.are_closed_at(origin) || self.is_of_consumers(origin)
    }

    // Decides: Which URL cannot be a webhook or an alias, because we answer there?
    /// True for a URL at which nobody but us can answer. What goes on to the origin of a site is
    /// none: the old server may take calls.
    pub fn are_all_at(&self, url: &Url) -> bool {
        let is_here =
            || self.is_alone || self.roots.iter().any(|(_, site)| is_ours(site, url.path()));
        self.are_closed_at(url)
            || (self.is_of_consumers(url) && is_here())
            || self.is_own_place(url)
    }

    fn are_closed_at(&self, url: &Url) -> bool {
        let port = url.port_or_known_default();
        let mut closed = self.listeners.closed.iter();
        closed.any(|closed| {
            let is_port = closed.port() != 0 && port == Some(closed.port());
            is_at(url, *closed) || (is_port && self.is_own_name(url))
        })
    }

    fn is_of_consumers(&self, url: &Url) -> bool {
        let mut consumers = self.listeners.consumers.iter();
        consumers.any(|listener| is_at(url, *listener))
    }

    fn is_own_name(&self, url: &Url) -> bool {
        let roots = self.roots.iter().filter_map(|(root, _)| root.host_str());
        let mut names = roots.chain(self.site_hosts.iter().map(String::as_str));
        names.any(|name| is_called(url, name))
    }

    /// True for a URL below one of our roots that is ours there, whatever stands beside us at the
    /// same host.
    fn is_own_place(&self, url: &Url) -> bool {
        self.roots.iter().any(|(root, site)| {
            let is_host = root.host_str().is_some_and(|host| is_called(url, host));
            if !is_host || !is_same_port(url, root) {
                return false;
            }
            let above = root.path().trim_end_matches('/');
            let Some(below) = url.path().strip_prefix(above) else {
                return false;
            };
            let is_root = below.is_empty() || below == "/";
            if is_root {
                // A front page may be that of a blog beside us, and its query a feed.
                return !above.is_empty() || (self.is_alone && url.query().is_none());
            }
            // Whatever is below a path of our own comes to us.
            below.starts_with('/') && (!above.is_empty() || is_ours(site, below))
        })
    }
}

/// True for a path at which we have something of our own; at the front page a site may have it.
fn is_ours(site: &Site, path: &str) -> bool {
    let mut path = path.to_owned();
    while path.contains("//") {
        path = path.replace("//", "/");
    }
    let is_of_site = matches!(&*path, "" | "/" | "/openapi.json");
    !is_of_site && (site.endpoint(&path).is_some() || site.is_below_secret(&path))
}

/// True for the ports of a URL and a root, whichever of the two schemes a server in front speaks.
fn is_same_port(url: &Url, root: &Url) -> bool {
    let is_usual = |url: &Url| matches!(url.port_or_known_default(), Some(80 | 443));
    url.port_or_known_default() == root.port_or_known_default() || (is_usual(url) && is_usual(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn own(public_url: &str, prefix: &str, sites: &[Option<String>]) -> OwnAddresses {
        let mut server = Config {
            public_url: url(public_url),
            former_public_urls: vec![url("https://old.example/under/")],
            prefix: prefix.to_owned(),
            admin_listen: "127.0.0.1:8079".parse().unwrap(),
            listen: toml::from_str::<Config>("listen = [\"127.0.0.1:8080\", \"[::]:8443\"]")
                .unwrap()
                .listen,
            ..Config::default()
        };
        server.tls.redirect_from = Some("0.0.0.0:8078".parse().unwrap());
        let bound = Listeners {
            consumers: vec!["127.0.0.1:40001".parse().unwrap()],
            closed: vec!["127.0.0.1:40002".parse().unwrap()],
        };
        OwnAddresses::of(&server, &bound, sites)
    }

    /// Every spelling of this machine.
    const HOSTS: [&str; 17] = [
        "127.0.0.1",
        "127.9.9.9",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "localhost",
        "LOCALHOST.",
        "a.b.localhost",
        "localhost.localdomain",
        "ip6-localhost",
        "[::1]",
        "[0:0::0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "0.0.0.0",
        "[::]",
    ];

    #[test]
    fn every_listener_is_known_in_every_spelling_and_a_neighbour_at_another_port_is_none() {
        let site = [Some("blog.example".to_owned())];
        let own = own("https://feeds.example/", "", &site);
        for host in HOSTS {
            for port in [8078, 8079, 8080, 8443, 40001, 40002] {
                let at = url(&format!("http://{host}:{port}/rss.xml?x#y"));
                assert!(own.answer_polls_of(&at) && own.are_origin(&at), "{at}");
            }
            for port in [8081, 9000, 80] {
                let at = url(&format!("http://{host}:{port}/feeds/blog.rss"));
                assert!(!own.answer_polls_of(&at) && !own.are_origin(&at), "{at}");
                assert!(!own.are_all_at(&at), "{at}");
            }
            // A page of the site may take calls; what is ours, and the operator's, never does.
            let at = |rest: &str| own.are_all_at(&url(&format!("http://{host}:{rest}")));
            assert!(!at("8080/wp-json/hook") && !at("8443/"));
            assert!(at("8080/feeds/blog.rss") && at("8080//hub") && at("8079/wp-json/hook"));
        }
        for closed in ["http://feeds.example:8079/", "http://BLOG.example.:8078/x"] {
            assert!(own.answer_polls_of(&url(closed)) && own.are_all_at(&url(closed)));
        }
    }

    #[test]
    fn what_is_ours_below_a_root_is_known_and_what_stands_beside_us_is_not() {
        let check = |own: &OwnAddresses, text: &str, expect: bool| {
            assert_eq!(own.answer_polls_of(&url(text)), expect, "{text}");
            assert_eq!(own.are_all_at(&url(text)), expect, "{text}");
        };
        let bare = own("https://feeds.example/", "", &[]);
        for ours in [
            "https://feeds.example/",
            "http://FEEDS.example./feeds",
            "https://feeds.example:443/feeds/blog.atom?order=modified",
            "https://feeds.example/x/../feeds/blog",
            "https://feeds.example//feeds/blog",
            "https://feeds.example/%66eeds/blog",
            "https://feeds.example/hub",
            "https://old.example/under/feeds/blog.rss",
            "https://old.example/under",
            "http://127.0.0.1:8080/anything",
        ] {
            check(&bare, ours, true);
        }
        for beside in [
            "https://feeds.example/rss.xml",
            "https://feeds.example/?feed=rss2",
            "https://feeds.example:8444/feeds/blog",
            "https://other.example/feeds/blog",
            "https://old.example/feeds.xml",
            "https://old.example/underfeeds",
        ] {
            check(&bare, beside, false);
        }
        let below = own("https://blog.example/smart/", "", &[]);
        check(&below, "https://blog.example/smart/anything", true);
        check(&below, "https://blog.example/feeds/", false);
        let prefixed = own("https://blog.example/", "smart", &[]);
        check(&prefixed, "https://blog.example/smart/feeds/blog", true);
        check(&prefixed, "https://blog.example/feeds/", false);
        let fronted = own("https://blog.example/", "", &[None]);
        check(&fronted, "https://blog.example/", false);
    }
}
