//! The description document of a feed: how to reach it, which orders and positions it takes, what
//! it knows of its past (SF-132..SF-134); not its items.

use super::{
    channel::ShownChannel, document::Audience, representation::Representation, target,
    text::ShownText, urls::Site,
};
use crate::feed::{
    filter::Filter,
    order::Order,
    record::{FeedRecord, Gap},
    schedule::PublicFault,
    stamp::Stamp,
};
use serde::{Serialize, ser::SerializeMap as _};
use serde_json::Value;
use serde_with::skip_serializing_none;
use std::{borrow::Cow, collections::BTreeMap};

#[cfg(test)]
mod tests;

/// A feed and what there is to say of it beyond its record.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The feed.
    pub feed: &'a FeedRecord,
    /// True where the caller sees a part of it: how many items it holds is not told.
    pub is_part: bool,
    /// The root of its URLs.
    pub site: &'a Site,
    /// The legacy feed's URL, already without secrets; `None` when it is not for the public.
    pub upstream: Option<&'a str>,
    /// Names of its members, if it is a group.
    pub members: Option<&'a [&'a str]>,
    /// State of the legacy feed.
    pub origin: Origin,
    /// Defaults and caps of request parameters.
    pub caps: Caps,
    /// Time since which it is gone, if it is a resource that its publisher deleted.
    pub deleted: Option<Stamp>,
}

/// State of the legacy feed, as far as it is for the public.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Time of its last good answer.
    pub reached_at: Option<Stamp>,
    /// Time since which it does not answer well; `None` while it does.
    pub fails_since: Option<Stamp>,
    /// The reason for that.
    pub fault: Option<PublicFault>,
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

const ITEM_SCHEMA: &str = include_str!("about/item.schema.json");

#[skip_serializing_none]
#[derive(Serialize)]
struct Description<'a> {
    name: &'a str,
    title: Cow<'a, str>,
    description: Option<Cow<'a, str>>,
    id: String,
    site: Option<&'a str>,
    upstream: Option<&'a str>,
    /// The feeds of which it is a group, and where they stand as OPML.
    members: Option<Members<'a>>,
    state: &'static str,
    deleted: Option<String>,
    origin_reached: Option<String>,
    origin_fails_since: Option<String>,
    origin_fault: Option<String>,
    items: Option<u64>,
    live: Option<u64>,
    updated: Option<String>,
    history: &'static str,
    history_reason: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<Missed<'a>>,
    access: Access<'a>,
    orders: Orders,
    default_order: &'static str,
    /// The filters by parameter, with what each shows.
    filters: BTreeMap<&'static str, &'static str>,
    item_format: BTreeMap<&'static str, &'static str>,
    /// JSON Schema of an item in JSON.
    item_schema: Value,
    mirroring: Mirroring,
    max: Limit<usize>,
    timeout: Limit<u64>,
}

/// The feeds of a group.
#[derive(Serialize)]
struct Members<'a> {
    opml: String,
    feeds: Vec<Member<'a>>,
}

#[derive(Serialize)]
struct Member<'a> {
    name: &'a str,
    about: String,
}

impl<'a> Members<'a> {
    fn of(site: &Site, name: &str, members: &[&'a str]) -> Self {
        let member = |name: &&'a str| Member {
            name,
            about: site.about(name),
        };
        Self {
            opml: site.outline_of(name),
            feeds: members.iter().map(member).collect(),
        }
    }
}

/// The way to mirror the feed, spelt out.
#[derive(Serialize)]
struct Mirroring {
    /// The first request: nothing behind `cursor:` is the beginning.
    begin: String,
    /// Every further one, with the `last_cursor` of the answer before. An empty answer is held
    /// until there is news.
    go_on: String,
    note: &'static str,
}

impl Mirroring {
    fn of(site: &Site, name: &str) -> Self {
        let base = site.base(name, Representation::JSON, Order::MODIFIED);
        Self {
            begin: format!("{base}&since=cursor:"),
            go_on: format!("{base}&since=cursor:LAST_CURSOR"),
            note: "since=cursor: with nothing behind it is the beginning. Apply each item by its id, store last_cursor, \
                   and ask with since=cursor:LAST_CURSOR from then on.",
        }
    }
}

/// Items may be missing between these two cursors.
#[derive(Serialize)]
struct Missed<'a> {
    before: &'a str,
    after: &'a str,
    found: String,
}

/// The URLs of a feed.
pub(super) struct Access<'a> {
    pub(super) site: &'a Site,
    pub(super) name: &'a str,
}

impl Serialize for Access<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { site, name } = *self;
        let mut access = serializer.serialize_map(None)?;
        let mut urls = |audience, begins: &str| {
            Representation::of(audience).try_for_each(|representation| {
                let key = format!("{begins}_{}", representation.suffix());
                access.serialize_entry(&key, &site.base(name, representation, Order::MODIFIED))
            })
        };
        urls(Audience::Full, "http")?;
        urls(Audience::Classic, "classic")?;
        access.serialize_entry("http", &site.negotiated(name))?;
        access.serialize_entry("events", &site.events(name))?;
        access.serialize_entry("hub", &site.hub())?;
        access.serialize_entry("about", &site.about(name))?;
        if let Some(xmpp) = site.xmpp(name, Order::MODIFIED, &Filter::All) {
            access.serialize_entry("xmpp", &xmpp)?;
        }
        access.end()
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
    if order.takes_ids() {
        &["cursor", "id", "time"]
    } else {
        &["cursor", "time"]
    }
}

impl Serialize for Orders {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Order::ALL.into_iter().map(|order| {
            (
                order.name(),
                Positions {
                    positions: positions(order),
                },
            )
        }))
    }
}

/// The state of a feed in one word: does it answer yet?
pub(super) fn state(feed: &FeedRecord) -> &'static str {
    if feed.is_ready() { "ready" } else { "starting" }
}

/// Time of the newest change; `None` for a feed that never held anything.
pub(super) fn updated(feed: &FeedRecord) -> Option<Stamp> {
    (feed.last_t != Stamp::ZERO).then_some(feed.last_t)
}

impl<'a> Missed<'a> {
    fn of(gap: &'a Gap) -> Self {
        Self {
            before: &gap.before,
            after: &gap.after,
            found: gap.at.rfc3339(),
        }
    }
}

impl<'a> Description<'a> {
    fn of(about: &About<'a>) -> Self {
        let About {
            feed, site, caps, ..
        } = *about;
        let counts = Some(feed.items).filter(|_| !about.is_part);
        let channel = ShownChannel::of(feed);
        let description = channel.description().map(ShownText::words);
        Self {
            name: &feed.name,
            title: channel.name(),
            description: description.filter(|text| !text.is_empty()),
            id: feed.iri(),
            site: feed
                .metadata
                .link("alternate")
                .filter(|site| target::link(site).is_some()),
            upstream: about.upstream,
            members: about
                .members
                .map(|members| Members::of(site, &feed.name, members)),
            state: if about.deleted.is_some() {
                "deleted"
            } else {
                state(feed)
            },
            deleted: about.deleted.map(Stamp::rfc3339),
            origin_reached: about.origin.reached_at.map(Stamp::rfc3339),
            origin_fails_since: about.origin.fails_since.map(Stamp::rfc3339),
            origin_fault: about.origin.fault.map(|fault| fault.to_string()),
            items: counts.map(|items| items.total),
            live: counts.map(|items| items.live),
            updated: updated(feed).map(Stamp::rfc3339),
            history: feed.completeness.history.name(),
            history_reason: feed.completeness.history.reason().map(ToString::to_string),
            gaps: feed.completeness.gaps.iter().map(Missed::of).collect(),
            access: Access {
                site,
                name: &feed.name,
            },
            orders: Orders,
            default_order: Order::default().name(),
            filters: Filter::PARAMETERS.into_iter().collect(),
            item_format: Representation::of(Audience::Full)
                .map(|representation| (representation.suffix(), representation.standard()))
                .collect(),
            item_schema: serde_json::from_str(ITEM_SCHEMA)
                .expect("the schema is JSON, see the tests"),
            mirroring: Mirroring::of(site, &feed.name),
            max: Limit {
                default: caps.max_default,
                cap: caps.max_cap,
            },
            timeout: Limit {
                default: caps.timeout_default_secs,
                cap: caps.timeout_cap_secs,
            },
        }
    }
}
