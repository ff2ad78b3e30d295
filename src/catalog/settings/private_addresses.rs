//! The addresses of the feeds that not everybody may read: which sites lead to a server that has
//! one, and which other address is that of one. Not what is answered there.

use super::FeedSettings;
use crate::catalog::{
    Destination,
    spelling::{PathSpelling, parameters},
};
use std::collections::{HashMap, HashSet};
use url::{Host, Url};

/// The addresses of the feeds that not everybody may read.
#[derive(Clone, Debug, Default)]
pub struct PrivateAddresses {
    is_any: bool,
    hosts: HashSet<Box<str>>,
    by_server: HashMap<Destination, Vec<PrivateAddress>>,
}

/// An address of a private feed at its server.
#[derive(Clone, Debug)]
struct PrivateAddress {
    /// The name of the feed.
    feed: String,
    path: PathSpelling,
    /// Parameters of its query. Whatever has them all may be the same document.
    parameters: Vec<String>,
}

impl PrivateAddresses {
    /// The addresses of those among some feeds that not everybody may read: where they are polled,
    /// and by which URLs they are known.
    pub fn of<'a>(feeds: impl IntoIterator<Item = &'a FeedSettings>) -> Self {
        let mut places = Self::default();
        for feed in feeds.into_iter().filter(|feed| feed.is_private()) {
            places.is_any = true;
            for url in std::iter::once(&feed.url).chain(&feed.aliases) {
                if !url.has_host() {
                    continue;
                }
                let server = Destination::server(url);
                places.hosts.insert(server.host.clone());
                places
                    .by_server
                    .entry(server)
                    .or_default()
                    .push(PrivateAddress {
                        feed: feed.name.clone(),
                        path: PathSpelling::of(url.path()),
                        parameters: parameters(url),
                    });
            }
        }
        places
    }

    /// True while there is one.
    pub fn is_any(&self) -> bool {
        self.is_any
    }

    /// True where a server has one of them, or one is known by a host.
    pub(in crate::catalog) fn are_at(&self, server: &Destination, host: Option<&str>) -> bool {
        self.is_any
            && (self.by_server.contains_key(server)
                || host.is_some_and(|host| self.hosts.contains(host)))
    }

    /// The name of the private feed that has an address, in whatever spelling: the same server takes
    /// the one for the other.
    pub fn feed_at(&self, url: &Url) -> Option<&str> {
        let server = Destination::server(url);
        let is_name = matches!(url.host(), Some(Host::Domain(_)));
        // Sites are told apart by their names, and their ports lead to one everfeed.
        let same = self.by_server.iter().filter(|(other, _)| {
            **other == server || (is_name && !server.is_loopback() && other.host == server.host)
        });
        let (path, asked) = (PathSpelling::of(url.path()), parameters(url));
        let is_it = |known: &&PrivateAddress| {
            let has_all = known.parameters.iter().all(|one| asked.contains(one));
            has_all && path.relation_to(&known.path).is_some()
        };
        let found = same.flat_map(|(_, known)| known).find(is_it);
        found.map(|known| known.feed.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        auth::access::AccessSettings,
        catalog::{ProxiedSite, SiteSettings, Sites},
    };

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn private(url_text: &str, aliases: &[&str]) -> FeedSettings {
        FeedSettings {
            access: AccessSettings::Users,
            aliases: aliases.iter().map(|alias| url(alias)).collect(),
            ..FeedSettings::new("closed", url(url_text))
        }
    }

    #[test]
    fn every_site_that_leads_to_the_server_of_a_private_feed_is_one_of_its() {
        let check = |feeds: &[FeedSettings], origins: &[(&str, &str)], expect: &[bool]| {
            let sites: Vec<SiteSettings> = origins
                .iter()
                .map(|(host, origin)| SiteSettings {
                    host: Some((*host).to_owned()),
                    ..SiteSettings::new(url(origin))
                })
                .collect();
            let places = PrivateAddresses::of(feeds);
            let public = url("http://x.example/");
            let behind: Vec<bool> = Sites::new(&sites)
                .iter()
                .map(|site| site.leads_to_any_of(&places, &public))
                .collect();
            assert_eq!(behind, expect, "{feeds:?} {origins:?}");
        };
        let at = |address: &str| [private(&format!("http://{address}/closed.xml"), &[])];
        let two = [
            ("a.example", "http://127.0.0.1:81"),
            ("b.example", "http://127.0.0.1:81"),
            ("c.example", "http://127.0.0.1:82"),
        ];
        for same in [
            "127.0.0.1:81",
            "localhost:81",
            "LOCALHOST.:81",
            "a.localhost:81",
            "[::1]:81",
            "[::ffff:127.0.0.1]:81",
            "127.0.0.2:81",
            "127.1:81",
            "2130706433:81",
            "0.0.0.0:81",
            "user:pw@127.0.0.1:81",
        ] {
            check(&at(same), &two, &[true, true, false]);
        }
        check(&at("127.0.0.1:83"), &two, &[false; 3]);
        check(&at("b.example"), &two, &[false, true, false]);
        let mut of_site = private("http://127.0.0.1:82/closed.xml", &[]);
        of_site.aliases = vec![url("http://a.example/closed.xml")];
        check(&[of_site], &two, &[true, false, true]);
        check(
            &at("Old.example."),
            &[("a.example", "https://old.example")],
            &[true],
        );
        let open = FeedSettings::new("open", url("http://127.0.0.1:81/open.xml"));
        check(&[open], &two, &[false; 3]);
        // All feeds of a private site are, those that are not found yet, too.
        let mut sites = [
            SiteSettings::new(url("http://127.0.0.1:81")),
            SiteSettings {
                host: Some("b.example".to_owned()),
                ..SiteSettings::new(url("http://localhost:81"))
            },
        ];
        sites[0].access = AccessSettings::Users;
        let behind = |site: &ProxiedSite| {
            site.leads_to_any_of(&PrivateAddresses::default(), &url("http://x.example/"))
        };
        assert!(Sites::new(&sites).iter().all(|site| behind(site)));
    }

    #[test]
    fn an_address_of_a_private_feed_is_known_in_every_spelling() {
        let check = |feed: &FeedSettings, address: &str, expect: bool| {
            let found = PrivateAddresses::of([feed])
                .feed_at(&url(address))
                .is_some();
            assert_eq!(found, expect, "{address}");
        };
        let feed = private(
            "http://localhost:81/closed.xml",
            &["http://blog.example/old/closed.xml"],
        );
        for same in [
            "http://127.0.0.1:81/closed.xml",
            "http://[::1]:81//Closed.XML?x=1",
            "http://blog.example/old/%63losed.xml",
            "https://blog.example:8443/old/closed.xml/",
            "http://blog.example/x/../old/closed.xml",
            "http://blog.example./old/closed.xml/page/2",
        ] {
            check(&feed, same, true);
        }
        for other in [
            "http://127.0.0.1:82/closed.xml",
            "http://127.0.0.1:81/open.xml",
            "http://blog.example/closed.xml",
            "http://other.example/old/closed.xml",
        ] {
            check(&feed, other, false);
        }
        let feed = private("http://127.0.0.1:81/?feed=rss2", &[]);
        check(&feed, "http://127.0.0.1:81/?x=1&FEED=rss2", true);
        check(&feed, "http://127.0.0.1:81/?feed=atom", false);
        check(&feed, "http://127.0.0.1:81/feed/", false);
    }
}
