//! `everfeed check`, beside the configuration itself: what is kept of feeds that it does not name, and who may read the feeds of its
//! sites, by the running process or by the store.

use super::{ask::ask, reload::other_file, status};
use crate::{
    app,
    app::RemovedFeed,
    auth::AccessSettings,
    catalog::{FeedSettings, SiteFeeds, SiteSettings},
    config::Config,
    secret::public_url,
};
use http::{Method, StatusCode};
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashSet},
    path::Path,
};
use url::Url;

/// Prints a line for each address of a site at which there is a feed, and for each feed that is kept although the configuration does
/// not name it.
pub(super) async fn print_seen(config: &Config, file: &Path) {
    match seen(config, file).await {
        Ok((kept, feeds)) => {
            address_lines(config, &feeds).iter().for_each(|line| println!("{line}"));
            kept.iter().for_each(|feed| println!("  kept        {feed}"));
        }
        // The configuration is good all the same.
        Err(error) => {
            let feeds: Vec<_> = config.feed.iter().filter_map(|feed| SiteFeed::of(feed)).collect();
            address_lines(config, &feeds).iter().for_each(|line| println!("{line}"));
            println!("  store       was not looked at: {error:#}");
        }
    }
}

async fn seen(config: &Config, file: &Path) -> anyhow::Result<(Vec<RemovedFeed>, Vec<SiteFeed>)> {
    let address = config.server.admin_listen.to_string();
    let token = config.server.admin_token.as_ref();
    let answered = ask(Method::GET, &format!("http://{address}/status?max=1"), token).await;
    if let Ok((StatusCode::OK, text)) = answered
        && other_file(&text, file).is_none()
    {
        let pages = status::pages(&address, token).await?;
        return Ok((unnamed(&pages, config), running_at_sites(&pages, config)));
    }
    let (kept, feeds) = app::stored_feeds(config).await?;
    Ok((kept, feeds.iter().filter_map(SiteFeed::of).collect()))
}

/// A feed at an address of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SiteFeed {
    name: String,
    /// Its address, as readers know it.
    url: String,
    access: AccessSettings,
    /// True where readers see parts of it.
    is_in_parts: bool,
}

impl SiteFeed {
    fn of(feed: &FeedSettings) -> Option<Self> {
        let url = public_url(&feed.legacy.as_ref()?.url);
        Some(Self::named(feed, url))
    }

    fn named(feed: &FeedSettings, url: String) -> Self {
        Self { name: feed.name.clone(), url, access: feed.access.clone(), is_in_parts: !feed.show.is_empty() }
    }
}

/// The feeds at addresses of sites that a running process has: those of the configuration, and those that it has found.
fn running_at_sites(pages: &[Value], config: &Config) -> Vec<SiteFeed> {
    let mut feeds: Vec<SiteFeed> = config.feed.iter().filter_map(SiteFeed::of).collect();
    for running in pages.iter().filter_map(|page| page["feeds"].as_array()).flatten() {
        let (Some(name), Some(old_url)) = (running["name"].as_str(), running["old_url"].as_str()) else {
            continue;
        };
        if feeds.iter().any(|feed| feed.name == name) {
            continue;
        }
        let url = Url::parse(old_url).ok();
        let site = url
            .and_then(|url| config.site.iter().find(|site| site.may_have(&url, &config.server.public_url)));
        let Some(site) = site else { continue };
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

/// A line for each address of a site at which there is a feed: who may read it; and for each site with a private one, what becomes of
/// feeds at other addresses.
fn address_lines(config: &Config, feeds: &[SiteFeed]) -> Vec<String> {
    let mut lines = Vec::new();
    let public_url = &config.server.public_url;
    for (no, site) in config.site.iter().enumerate() {
        let root = site.public_root(public_url);
        let mut here: Vec<&SiteFeed> =
            feeds.iter().filter(|feed| feed.url.starts_with(root.as_str())).collect();
        here.sort_by(|one, other| one.url.cmp(&other.url));
        lines.extend(here.into_iter().map(|feed| address_line(feed, site)));
        if site.has_private(no, &config.feed, public_url) {
            let named = match site.feeds {
                SiteFeeds::Found(_) => "the front page names, or that `feeds` lists in the place of \"auto\"",
                SiteFeeds::Listed(_) => "`feeds` lists",
            };
            lines.push(format!(
                "  held back   feeds at other addresses of {root} (403), as it has a private one: only those pass that {named}"
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
            format!("{} (private)", names.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
        }
    };
    let parts = if feed.is_in_parts { ", in parts (`show`)" } else { "" };
    let by = match site.feeds {
        SiteFeeds::Found(_) => "found",
        SiteFeeds::Listed(_) => "listed",
    };
    format!("  address     {}: feed `{}`, {by}, for {readers}{parts}", feed.url, feed.name)
}

/// The feeds of a running process that the configuration does not name.
fn unnamed(pages: &[Value], config: &Config) -> Vec<RemovedFeed> {
    let registered = config.registered();
    let names: HashSet<&str> = registered.iter().map(|feed| feed.name.as_str()).collect();
    // Those that were found at a site are named by it.
    let is_found = |feed: &Value| {
        let url = feed["old_url"].as_str().and_then(|url| Url::parse(url).ok());
        url.is_some_and(|url| config.site.iter().any(|site| site.may_have(&url, &config.server.public_url)))
    };
    // One server may have several sites: their feeds are told apart by their addresses there.
    let urls: BTreeMap<String, &str> =
        config.feed.iter().map(|feed| (public_url(feed.known_as()), feed.name.as_str())).collect();
    let mut kept = Vec::new();
    let running = pages.iter().filter_map(|page| page["feeds"].as_array()).flatten();
    for feed in running.filter(|feed| !is_found(feed)) {
        let url = feed["old_url"].as_str().or(feed["url"].as_str());
        let renamed_to = url.and_then(|url| urls.get(url)).map(|name| (*name).to_owned());
        let items = feed["items"].as_u64().unwrap_or_default();
        kept.extend(feed["name"].as_str().map(|name| RemovedFeed {
            name: name.to_owned(),
            items,
            renamed_to,
        }));
    }
    for feed in pages.first().and_then(|page| page["removed_feeds"].as_array()).into_iter().flatten() {
        let items = feed["items"].as_u64().unwrap_or_default();
        let renamed_to = feed["renamed_to"].as_str().map(str::to_owned);
        kept.extend(feed["name"].as_str().map(|name| RemovedFeed {
            name: name.to_owned(),
            items,
            renamed_to,
        }));
    }
    kept.retain(|feed| !names.contains(feed.name.as_str()));
    kept.sort_by(|one, other| one.name.cmp(&other.name));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn feeds_that_run_and_are_not_named_any_more_are_kept() {
        let text = "[[feed]]\nname = \"a\"\nurl = \"http://x/a\"\n[[feed]]\nname = \"new\"\nurl = \"http://u:p@x/b?t=1\"\n";
        let config = Config::parse("x", text).unwrap();
        let feed = |name: &str, url: &str| json!({ "name": name, "url": url, "items": 5 });
        let first = json!({ "feeds": [feed("a", "http://x/a"), feed("b", "http://x/b")], "removed_feeds": [{ "name": "old", "items": 2, "renamed_to": "a" }] });
        let kept = unnamed(&[first, json!({ "feeds": [feed("c", "http://x/c")] })], &config);
        let told: Vec<_> =
            kept.iter().map(|feed| (feed.name.as_str(), feed.items, feed.renamed_to.as_deref())).collect();
        assert_eq!(told, [("b", 5, Some("new")), ("c", 5, None), ("old", 2, Some("a"))]);
    }

    #[test]
    fn the_addresses_of_a_site_at_which_there_are_feeds_are_told_with_their_readers() {
        let lines = |feeds: &str, access: &str| {
            let text = format!(
                "[server]\npublic_url = \"http://blog.example\"\n[[site]]\norigin = \"http://127.0.0.1:1\"\nfeeds = {feeds}\n\
                 [[feed]]\nname = \"a\"\nurl = \"http://127.0.0.1:1/closed.xml\"\naccess = {access}\n"
            );
            let config = Config::parse("x", &text).unwrap_or_else(|error| panic!("{error}"));
            let found = json!({ "name": "site-rss-xml", "url": "http://127.0.0.1:1/rss.xml", "old_url": "http://blog.example/rss.xml" });
            address_lines(&config, &running_at_sites(&[json!({ "feeds": [found] })], &config))
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
            told[2].starts_with("  held back   feeds at other addresses of http://blog.example/ (403)"),
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

    #[test]
    fn groups_and_feeds_that_were_found_at_a_site_are_named() {
        let text = |feeds: &str, host: &str| {
            format!(
                "[server]\npublic_url = \"http://feeds.example\"\n[[site]]\nhost = \"{host}\"\norigin = \"http://127.0.0.1:1\"\nfeeds = {feeds}\n\
                 [[feed]]\nname = \"a\"\nurl = \"http://x/a\"\n[[group]]\nname = \"g\"\nmembers = [\"a\"]\n"
            )
        };
        let page = json!({ "feeds": [
            { "name": "a", "url": "http://x/a", "items": 1 },
            { "name": "g", "url": "group:g", "members": ["a"], "items": 1 },
            { "name": "blog-rss-xml", "url": "http://127.0.0.1:1/rss.xml", "old_url": "http://blog.example/rss.xml", "items": 1 },
        ] });
        let kept = |text: String| {
            let config = Config::parse("x", &text).unwrap();
            let kept = unnamed(std::slice::from_ref(&page), &config);
            kept.into_iter().map(|feed| feed.name).collect::<Vec<_>>()
        };
        assert!(kept(text("\"auto\"", "blog.example")).is_empty());
        assert!(kept(text("[\"/rss.xml\"]", "blog.example")).is_empty());
        assert_eq!(kept(text("[\"/other.xml\"]", "blog.example")), ["blog-rss-xml"]);
        assert_eq!(kept(text("\"auto\"", "elsewhere.example")), ["blog-rss-xml"]);
    }
}
