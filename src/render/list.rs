//! The list of feeds as JSON and as OPML; its HTML is in `html`, and what a feed is like in
//! `about`.

use super::{
    about::{self, Access, Origin},
    channel::ShownChannel,
    namespaces as ns,
    representation::Representation,
    text::ShownText,
    urls::Site,
    xml::Xml,
};
use crate::feed::{
    order::Order,
    record::{FeedNo, FeedRecord},
    stamp::Stamp,
};
use serde::Serialize;
use serde_with::skip_serializing_none;
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};
use url::form_urlencoded;

/// The feeds of a site.
#[derive(Clone, Debug)]
pub struct List<'a> {
    /// The root of their URLs.
    pub site: &'a Site,
    /// The feeds, in the order in which they are shown.
    pub feeds: Vec<FeedRecord>,
    /// Feeds of which the caller sees a part: how many items they hold is not told.
    pub parts: HashSet<FeedNo>,
    /// State of the publishers' own feeds behind those that are no groups; for people alone.
    pub origins: HashMap<FeedNo, Origin>,
    /// Feeds of the site, those that are not shown included.
    pub total: usize,
    /// Words that were looked for; empty for all feeds.
    pub words: String,
    /// Feeds that hold the words, those that are not shown included; `None` where there are too
    /// many to look at them all.
    pub found: Option<usize>,
    /// Title of the list as OPML.
    pub title: &'a str,
    /// URL of the feeds after these, if there are more.
    pub next: Option<String>,
}

impl List<'_> {
    /// Those feeds that are shown, and whose origins do not answer well.
    pub(super) fn failing(&self) -> Vec<&FeedRecord> {
        let feeds = self.feeds.iter();
        feeds.filter(|feed| self.fails(feed)).collect()
    }

    /// True for a feed that is shown, and whose origin does not answer well.
    pub(super) fn fails(&self, feed: &FeedRecord) -> bool {
        let origin = self.origins.get(&feed.no);
        origin.is_some_and(|origin| origin.fails_since.is_some())
    }
}

/// The list as JSON.
pub fn json(list: &List<'_>) -> Vec<u8> {
    let feeds = list
        .feeds
        .iter()
        .map(|feed| FeedLine::of(feed, list))
        .collect();
    let total = if list.words.is_empty() {
        Some(list.total)
    } else {
        list.found
    };
    let words = form_urlencoded::Serializer::for_suffix("?".to_owned(), 1)
        .append_pair("q", &list.words)
        .finish();
    let url = list.site.list() + if list.words.is_empty() { "" } else { &words };
    let feeds = FeedList {
        url,
        total,
        next: list.next.as_deref(),
        feeds,
    };
    serde_json::to_vec_pretty(&feeds).expect("strings and numbers always serialize into memory")
}

/// Title of the list of all feeds as OPML.
pub const ALL_FEEDS: &str = "Feeds";

/// The media type of OPML (O-3).
pub const OPML_TYPE: &str = "text/x-opml; charset=utf-8";

/// The list as OPML 2.0 (O-1), for the import of feed readers: of each feed the newest posts, and
/// the Smart Feed in attributes of its vocabulary (SF-132). Feeds that follow are included by their
/// URL.
pub fn opml(list: &List<'_>) -> Vec<u8> {
    let mut xml = Xml::document(1024 + 512 * list.feeds.len());
    xml.open(
        "opml",
        &[("version", Some("2.0")), ("xmlns:fo", Some(ns::SMART_FEED))],
    );
    xml.open("head", &[]);
    xml.leaf("title", &[], list.title);
    if let Some(newest) = list.feeds.iter().filter_map(about::updated).max() {
        xml.leaf("dateModified", &[], &newest.rfc822());
    }
    xml.close("head");
    xml.open("body", &[]);
    list.feeds
        .iter()
        .for_each(|feed| outline(&mut xml, feed, list.site));
    if let Some(next) = &list.next {
        let attributes = [
            ("type", Some("include")),
            ("text", Some("More feeds")),
            ("url", Some(next)),
        ];
        xml.empty("outline", &attributes);
    }
    if list.feeds.is_empty() {
        // The body needs one.
        let words = if list.words.is_empty() {
            "No feed is configured yet."
        } else {
            "No feed is called so."
        };
        xml.empty(
            "outline",
            &[("text", Some(words)), ("isComment", Some("true"))],
        );
    }
    xml.close("body");
    xml.close("opml");
    xml.finish()
}

fn outline(xml: &mut Xml, feed: &FeedRecord, site: &Site) {
    let channel = ShownChannel::of(feed);
    let title = channel.name();
    let description = channel.description().map(ShownText::words);
    let page = channel.site();
    let url = |representation| site.base(&feed.name, representation, Order::MODIFIED);
    xml.empty(
        "outline",
        &[
            ("type", Some("rss")),
            ("text", Some(&title)),
            ("title", Some(&title)),
            ("xmlUrl", Some(&url(Representation::CLASSIC_RSS))),
            (
                "htmlUrl",
                Some(page.as_deref().unwrap_or(&site.about(&feed.name))),
            ),
            ("description", description.as_deref()),
            ("language", channel.language()),
            ("fo:atom", Some(&url(Representation::ATOM))),
            ("fo:json", Some(&url(Representation::JSON))),
        ],
    );
}

#[skip_serializing_none]
#[derive(Serialize)]
struct FeedList<'a> {
    url: String,
    total: Option<usize>,
    next: Option<&'a str>,
    feeds: Vec<FeedLine<'a>>,
}

#[skip_serializing_none]
#[derive(Serialize)]
struct FeedLine<'a> {
    name: &'a str,
    title: Cow<'a, str>,
    state: &'static str,
    items: Option<u64>,
    live: Option<u64>,
    updated: Option<String>,
    access: Access<'a>,
}

impl<'a> FeedLine<'a> {
    fn of(feed: &'a FeedRecord, list: &'a List<'_>) -> Self {
        let site = list.site;
        let counts = Some(feed.items).filter(|_| !list.parts.contains(&feed.no));
        Self {
            name: &feed.name,
            title: ShownChannel::of(feed).name(),
            state: about::state(feed),
            items: counts.map(|items| items.total),
            live: counts.map(|items| items.live),
            updated: about::updated(feed).map(Stamp::rfc3339),
            access: Access {
                site,
                name: &feed.name,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples::{feed, metadata, part, site};
    use everfeed_adapters::{Metadata, Text};
    use std::sync::Arc;

    fn opml_of(feeds: &[FeedRecord], next: Option<&str>) -> String {
        let list = List {
            site: &site(),
            feeds: feeds.to_vec(),
            parts: HashSet::new(),
            origins: HashMap::new(),
            total: feeds.len(),
            words: String::new(),
            found: None,
            title: ALL_FEEDS,
            next: next.map(str::to_owned),
        };
        String::from_utf8(opml(&list)).unwrap()
    }

    #[test]
    fn every_feed_is_an_outline_that_readers_import() {
        // O-1, SF-132.
        let known = feed(Metadata {
            language: Some("en".into()),
            ..metadata()
        });
        let mut unknown = FeedRecord {
            metadata: Arc::default(),
            ..feed(metadata())
        };
        unknown.name = "y".into();
        let document = opml_of(
            &[known, unknown],
            Some("http://127.0.0.1/feeds.opml?after=y&max=2"),
        );
        assert_eq!(
            part(&document, "<opml", "</opml>"),
            [
                r#"<opml version="2.0" xmlns:fo="http://fanout.org/protocol/atom">"#,
                "<head>",
                "<title>Feeds</title>",
                "<dateModified>Mon, 06 Jan 2014 10:18:47 GMT</dateModified>",
                "</head>",
                "<body>",
                concat!(
                    r#"<outline type="rss" text="Old &amp; good" title="Old &amp; good" "#,
                    r#"xmlUrl="http://127.0.0.1/feeds/x/classic.rss" htmlUrl="http://example.org/" "#,
                    r#"description="A blog" language="en" "#,
                    r#"fo:atom="http://127.0.0.1/feeds/x.atom?order=modified" "#,
                    r#"fo:json="http://127.0.0.1/feeds/x.json?order=modified"/>"#
                ),
                concat!(
                    r#"<outline type="rss" text="example.org" title="example.org" "#,
                    r#"xmlUrl="http://127.0.0.1/feeds/y/classic.rss" "#,
                    r#"htmlUrl="http://127.0.0.1/feeds/y/about" "#,
                    r#"fo:atom="http://127.0.0.1/feeds/y.atom?order=modified" "#,
                    r#"fo:json="http://127.0.0.1/feeds/y.json?order=modified"/>"#
                ),
                r#"<outline type="include" text="More feeds" url="http://127.0.0.1/feeds.opml?after=y&amp;max=2"/>"#,
                "</body>",
                "</opml>",
            ]
        );
    }

    #[test]
    fn a_list_without_feeds_has_an_outline_all_the_same() {
        let document = opml_of(&[], None);
        assert!(
            document.contains("isComment=\"true\"") && !document.contains("dateModified"),
            "{document}"
        );
    }

    #[test]
    fn nothing_from_upstream_breaks_out_of_an_attribute() {
        let hostile = Metadata {
            title: Some(Text::plain("\"/><script>\u{1}")),
            links: vec![crate::render::samples::link(
                "alternate",
                "javascript:alert(1)",
            )],
            ..Metadata::default()
        };
        let document = opml_of(&[feed(hostile)], None);
        assert!(
            !document.contains("<script") && !document.contains("javascript"),
            "{document}"
        );
        assert!(!document.contains('\u{1}'), "{document}");
    }
}
