//! The list of feeds as JSON; its HTML is in `html`, and what a feed is like in `about`.

use super::{
    about::{self, Access},
    identity,
    urls::Site,
};
use crate::feed::{record::FeedRecord, stamp::Stamp};
use serde::Serialize;

/// The feeds of a site.
#[derive(Clone, Copy, Debug)]
pub struct List<'a> {
    /// The root of their URLs.
    pub site: &'a Site,
    /// The feeds, in the order in which they are shown.
    pub feeds: &'a [FeedRecord],
    /// Feeds of the site, those that are not shown included.
    pub total: usize,
    /// Words that were looked for; empty for all feeds.
    pub words: &'a str,
    /// URL of the feeds after these, if there are more.
    pub next: Option<&'a str>,
}

/// The list as JSON.
pub fn json(list: &List<'_>) -> Vec<u8> {
    let feeds = list.feeds.iter().map(|feed| FeedLine::of(feed, list.site)).collect();
    let feeds = FeedList { url: list.site.list(), total: list.total, next: list.next, feeds };
    serde_json::to_vec_pretty(&feeds).expect("strings and numbers always serialize into memory")
}

#[derive(Serialize)]
struct FeedList<'a> {
    url: String,
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'a str>,
    feeds: Vec<FeedLine<'a>>,
}

#[derive(Serialize)]
struct FeedLine<'a> {
    name: &'a str,
    title: String,
    state: &'static str,
    items: u64,
    live: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated: Option<String>,
    access: Access<'a>,
}

impl<'a> FeedLine<'a> {
    fn of(feed: &'a FeedRecord, site: &'a Site) -> Self {
        Self {
            name: &feed.name,
            title: identity::name(feed).into_owned(),
            state: about::state(feed),
            items: feed.items.total,
            live: feed.items.live,
            updated: about::updated(feed).map(Stamp::rfc3339),
            access: Access { site, name: &feed.name },
        }
    }
}
