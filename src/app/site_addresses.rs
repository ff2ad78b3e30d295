//! The addresses of sites at which there are feeds, with those who may read them, for the operator;
//! not what is answered there.

use crate::{
    auth::AccessSettings,
    catalog::{FeedSettings, PrivateAddresses, SiteFeeds, SiteSettings, Sites},
    config::Config,
    secret::public_url,
};
use url::Url;

/// A feed at an address of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteFeed {
    name: String,
    /// Its address, as readers know it.
    url: String,
    access: AccessSettings,
    /// True where readers see parts of it.
    is_in_parts: bool,
}

impl SiteFeed {
    pub(super) fn of(feed: &FeedSettings) -> Option<Self> {
        let url = public_url(&feed.legacy.as_ref()?.url);
        Some(Self::named(feed, url))
    }

    fn named(feed: &FeedSettings, url: String) -> Self {
        Self {
            name: feed.name.clone(),
            url,
            access: feed.access.clone(),
            is_in_parts: !feed.show.is_empty(),
        }
    }
}

/// The feeds at addresses of sites that the configuration names.
pub fn configured_at_sites(config: &Config) -> Vec<SiteFeed> {
    config.feed.iter().filter_map(SiteFeed::of).collect()
}

/// The same, and those that a running process has besides, by their names and their addresses at a
/// site: it has found them.
pub fn at_sites<'a>(
    config: &Config,
    running: impl Iterator<Item = (&'a str, &'a str)>,
) -> Vec<SiteFeed> {
    let mut feeds = configured_at_sites(config);
    for (name, old_url) in running {
        let Ok(url) = Url::parse(old_url) else {
            continue;
        };
        let mut sites = config.site.iter();
        let site = sites.find(|site| site.may_have(&url, &config.server.public_url));
        let Some(site) = site else { continue };
        if feeds.iter().any(|feed| feed.name == name) {
            continue;
        }
        feeds.push(match config.feed.iter().find(|feed| feed.name == name) {
            Some(feed) => SiteFeed::named(feed, old_url.to_owned()),
            None => SiteFeed {
                name: name.to_owned(),
                url: old_url.to_owned(),
                access: site.access.clone(),
                is_in_parts: false,
            },
        });
    }
    feeds
}

/// A line for each address of a site at which there is a feed: who may read it; and for each site
/// with a private one, what becomes of feeds at other addresses.
pub fn address_lines(config: &Config, feeds: &[SiteFeed]) -> Vec<String> {
    let mut lines = Vec::new();
    let public_url = &config.server.public_url;
    let private = PrivateAddresses::of(&config.feed);
    for proxied in Sites::new(&config.site).iter() {
        let site = &proxied.settings;
        let root = site.public_root(public_url);
        let mut here: Vec<&SiteFeed> = feeds.iter().collect();
        here.retain(|feed| feed.url.starts_with(root.as_str()));
        here.sort_by(|one, other| one.url.cmp(&other.url));
        lines.extend(here.into_iter().map(|feed| address_line(feed, site)));
        if proxied.leads_to_any_of(&private, public_url) {
            let named = match site.feeds {
                SiteFeeds::Found(_) => {
                    "the front page names, or that `feeds` lists in the place of \"auto\""
                }
                SiteFeeds::Listed(_) => "`feeds` lists",
            };
            lines.push(format!(
                "  held back   feeds at other addresses of {root} (403), because a private feed is behind it. Only those pass that {named}"
            ));
        }
    }
    lines
}

fn address_line(feed: &SiteFeed, site: &SiteSettings) -> String {
    let readers = match &feed.access {
        AccessSettings::Public => "everybody".to_owned(),
        AccessSettings::Users => "every user (private)".to_owned(),
        AccessSettings::Named(names) => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            format!("{} (private)", names.join(", "))
        }
    };
    let parts = if feed.is_in_parts {
        ", in parts (`show`)"
    } else {
        ""
    };
    let by = match site.feeds {
        SiteFeeds::Found(_) => "found",
        SiteFeeds::Listed(_) => "listed",
    };
    format!(
        "  address     {}: feed `{}`, {by}, for {readers}{parts}",
        feed.url, feed.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_of_a_site_at_which_there_are_feeds_are_told_with_their_readers() {
        let lines = |feeds: &str, access: &str| {
            let text = format!(
                "[server]\npublic_url = \"http://blog.example\"\n[[site]]\norigin = \"http://127.0.0.1:1\"\nfeeds = {feeds}\n\
                 [[feed]]\nname = \"a\"\nurl = \"http://127.0.0.1:1/closed.xml\"\naccess = {access}\n"
            );
            let config = Config::parse("x", &text).unwrap_or_else(|error| panic!("{error}"));
            let found = ("site-rss-xml", "http://blog.example/rss.xml");
            address_lines(&config, &at_sites(&config, std::iter::once(found)))
        };
        let told = lines("[\"/closed.xml\", \"/rss.xml\"]", "[\"alice\", \"bob\"]");
        assert_eq!(
            told[..2],
            [
                "  address     http://blog.example/closed.xml: feed `a`, listed, for alice, bob (private)",
                "  address     http://blog.example/rss.xml: feed `site-rss-xml`, listed, for everybody",
            ]
        );
        assert!(
            told[2].starts_with(
                "  held back   feeds at other addresses of http://blog.example/ (403)"
            ),
            "{told:?}"
        );
        let told = lines("\"auto\"", "\"private\"");
        assert_eq!(
            told[0],
            "  address     http://blog.example/rss.xml: feed `site-rss-xml`, found, for everybody"
        );
        assert!(
            told[1].contains("held back") && told.len() == 2,
            "its private feed is polled at the origin: {told:?}"
        );
        assert_eq!(lines("[\"/rss.xml\"]", "\"public\"").len(), 1);
    }
}
