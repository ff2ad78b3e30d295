//! The description document of a feed: how to reach it, which orders and positions it takes, what it knows of its past
//! (SF-132..SF-134); not its items.

use super::{identity, target, text::plain, urls::Site};
use crate::feed::{
    order::Order,
    record::{FeedRecord, Gap},
    stamp::Stamp,
    view::Format::{Atom, ClassicAtom, ClassicRss, Json},
};
use serde::Serialize;
use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

/// What there is to say of a feed beyond its record.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The feed.
    pub feed: &'a FeedRecord,
    /// Where it lives.
    pub site: &'a Site,
    /// The legacy feed's URL, already without secrets; `None` when it is not for the public.
    pub upstream: Option<&'a str>,
    /// Whether a hub takes subscriptions.
    pub hub: bool,
    /// What a request may ask for.
    pub caps: Caps,
}

/// Defaults and caps of request parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Items in a page when `max` is absent.
    pub max_default: usize,
    /// Items in a page at most.
    pub max_cap: usize,
    /// Seconds that a long poll is held when `timeout` is absent.
    pub timeout_default_secs: u64,
    /// Seconds that a long poll is held at most.
    pub timeout_cap_secs: u64,
}

/// The document as JSON.
pub fn json(about: &About<'_>) -> Vec<u8> {
    serde_json::to_vec_pretty(&Description::of(about))
        .expect("strings and numbers always serialize into memory")
}

#[derive(Serialize)]
struct Description<'a> {
    name: &'a str,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<&'a str>,
    state: &'static str,
    items: u64,
    live: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated: Option<String>,
    history: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    history_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<Missed<'a>>,
    access: Access,
    orders: Orders,
    default_order: &'static str,
    item_format: BTreeMap<&'static str, &'static str>,
    max: Limit<usize>,
    timeout: Limit<u64>,
}

/// Items may be missing between these two cursors.
#[derive(Serialize)]
struct Missed<'a> {
    before: &'a str,
    after: &'a str,
    found: String,
}

/// How to reach a feed.
#[derive(Serialize)]
pub(super) struct Access {
    http_json: String,
    http_atom: String,
    http: String,
    classic_atom: String,
    classic_rss: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hub: Option<String>,
    about: String,
}

impl Access {
    pub(super) fn of(site: &Site, name: &str, hub: bool) -> Self {
        let urls = site.feed(name);
        Self {
            http_json: urls.base(Json, Order::MODIFIED),
            http_atom: urls.base(Atom, Order::MODIFIED),
            http: urls.negotiated(),
            classic_atom: urls.base(ClassicAtom, Order::MODIFIED),
            classic_rss: urls.base(ClassicRss, Order::MODIFIED),
            hub: hub.then(|| site.hub()),
            about: urls.about(),
        }
    }
}

/// The orders in the order in which they are documented, with the positions of each (SF-133).
struct Orders;

#[derive(Serialize)]
struct Positions {
    positions: &'static [&'static str],
}

#[derive(Serialize)]
struct Limit<T> {
    default: T,
    cap: T,
}

/// The types of position that an order takes.
pub(super) const fn positions(order: Order) -> &'static [&'static str] {
    if order.takes_ids() { &["cursor", "id", "time"] } else { &["cursor", "time"] }
}

impl Serialize for Orders {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            Order::ALL.into_iter().map(|order| (order.name(), Positions { positions: positions(order) })),
        )
    }
}

/// Whether a feed answers yet.
pub(super) fn state(feed: &FeedRecord) -> &'static str {
    if feed.is_ready() { "ready" } else { "starting" }
}

/// When the newest change was stored.
pub(super) fn updated(feed: &FeedRecord) -> Option<Stamp> {
    (feed.last_t != Stamp::ZERO).then_some(feed.last_t)
}

impl<'a> Missed<'a> {
    fn of(gap: &'a Gap) -> Self {
        Self { before: &gap.before, after: &gap.after, found: gap.at.rfc3339() }
    }
}

impl<'a> Description<'a> {
    fn of(about: &About<'a>) -> Self {
        let About { feed, site, caps, .. } = *about;
        let description = feed.metadata.description.as_ref().map(|text| plain(text).into_owned());
        Self {
            name: &feed.name,
            title: identity::name(feed).into_owned(),
            description: description.filter(|text| !text.is_empty()),
            id: identity::iri(feed),
            site: feed.metadata.link("alternate").filter(|site| target::link(site).is_some()),
            upstream: about.upstream,
            state: state(feed),
            items: feed.total,
            live: feed.live,
            updated: updated(feed).map(Stamp::rfc3339),
            history: feed.history.name(),
            history_reason: feed.history.why(),
            gaps: feed.gaps.iter().map(Missed::of).collect(),
            access: Access::of(site, &feed.name, about.hub),
            orders: Orders,
            default_order: Order::default().name(),
            item_format: BTreeMap::from([
                ("atom", "Atom 1.0 (RFC 4287) + RFC 6721"),
                ("json", "ActivityStreams 1.0"),
            ]),
            max: Limit { default: caps.max_default, cap: caps.max_cap },
            timeout: Limit { default: caps.timeout_default_secs, cap: caps.timeout_cap_secs },
        }
    }
}
