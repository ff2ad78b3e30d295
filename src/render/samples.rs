//! A small blog for the tests of every format: one feed, a post with everything, a bare post, a
//! tombstone.

use super::{
    document::{ChainPosition, Document, Links},
    representation::Representation,
    urls::Site,
};
use crate::feed::{
    filter::Filter,
    item::{Content, Item, ItemDigests, ItemId, Reason},
    order::Order,
    page::Page,
    record::{Completeness, FeedNo, FeedRecord, ItemCounts},
    stamp::Stamp,
    view::Deletions,
};
use everfeed_adapters::{
    Attribute, Body, Category, Date, Element, Enclosure, Entry, Link, Metadata, Node, Person,
    Source, Text, TextKind,
};
use std::sync::Arc;
use url::Url;

/// 2014-01-06T10:18:47Z.
pub(super) const T: Stamp = Stamp::from_secs(1_389_003_527);

pub(super) fn site() -> Site {
    Site::new(&Url::parse("http://127.0.0.1").unwrap(), "")
}

pub(super) fn metadata() -> Metadata {
    Metadata {
        title: Some(Text::html("Old &amp; good")),
        description: Some(Text::plain("A blog")),
        links: vec![link("alternate", "http://example.org/")],
        ..Metadata::default()
    }
}

pub(super) fn feed(metadata: Metadata) -> FeedRecord {
    FeedRecord {
        rev: 1,
        last_t: T,
        items: ItemCounts {
            total: 3,
            live: 2,
            shortened: 0,
            bytes: None,
        },
        metadata: Arc::new(metadata),
        metadata_t: T,
        completeness: Completeness {
            first_cursor: Some(String::new()),
            ..Completeness::default()
        },
        ..FeedRecord::new(FeedNo(1), "x", "example.org/index.rdf")
    }
}

pub(super) fn link(rel: &str, href: &str) -> Link {
    Link {
        rel: rel.into(),
        href: href.into(),
        ..Link::default()
    }
}

pub(super) fn date(at: Stamp) -> Option<Date> {
    Some(Date {
        raw: String::new(),
        at_us: i64::try_from(at.micros()).ok(),
    })
}

fn item(number: u8, content: Content) -> Item {
    Item {
        id: ItemId([number; 10]),
        iri: format!("tag:example.org,2005:{number}"),
        modified: T.plus_secs(u64::from(number)),
        created: T.plus_secs(u64::from(number)),
        revived: None,
        published_us: None,
        content,
        tombstone_count: 0,
        publisher_id: None,
        digests: ItemDigests::default(),
    }
}

pub(super) fn live(number: u8, entry: Entry) -> Item {
    item(number, Content::Live(Arc::new(entry)))
}

pub(super) fn gone(number: u8) -> Item {
    item(
        number,
        Content::Gone {
            reason: Reason::Explicit,
            first_missing: None,
            last_seen: None,
        },
    )
}

/// A post with everything that an entry can have.
pub(super) fn rich() -> Item {
    let credit = Element {
        ns: "http://search.yahoo.com/mrss/".into(),
        prefix: "media".into(),
        name: "credit".into(),
        attributes: vec![Attribute {
            name: "role".into(),
            value: "author".into(),
            ..Attribute::default()
        }],
        children: vec![Node::Text("Ann & Bob".into())],
    };
    let ours = Element {
        ns: "http://fanout.org/protocol/atom".into(),
        name: "id".into(),
        ..Element::default()
    };
    let person = |name: &str| Person {
        name: Some(name.into()),
        email: Some(format!("{}@example.org", name.to_lowercase())),
        uri: Some(format!("http://example.org/{name}")),
        byline: None,
    };
    let enclosure = |name: &str| Enclosure {
        url: format!("http://example.org/{name}.mp3"),
        media_type: Some("audio/mpeg".into()),
        length: Some("1234".into()),
        title: None,
        is_illustration: false,
    };
    let entry = Entry {
        id: Some("tag:example.org,2005:1".into()),
        is_permalink: None,
        title: Some(Text::html("Fish &amp; <b>chips</b>")),
        summary: Some(Text::plain("1 < 2")),
        content: Some(Body {
            text: Text {
                kind: TextKind::Xhtml,
                value: "<p>hi &amp; bye</p>".into(),
                ..Text::default()
            },
            ..Body::default()
        }),
        links: vec![
            link("alternate", "http://example.org/1?a=b&c=d"),
            link("alternate", "http://example.org/1/again"),
            link("related", "http://example.org/2"),
            link("self", "http://example.org/1.atom"),
        ],
        authors: vec![person("Ann")],
        contributors: vec![Person {
            name: Some("Cal".into()),
            ..Person::default()
        }],
        categories: vec![Category {
            term: "fish".into(),
            scheme: Some("http://example.org/tags".into()),
            label: Some("Fish".into()),
        }],
        enclosures: vec![enclosure("a"), enclosure("b")],
        published: date(T),
        updated: date(T),
        rights: Some(Text::plain("© Ann")),
        comments: Some("http://example.org/1#comments".into()),
        language: Some("en".into()),
        source: Some(Box::new(Source {
            id: Some("tag:example.com,2005:feed".into()),
            title: Some(Text::plain("Elsewhere")),
            links: vec![Link {
                href: "http://example.com/feed".into(),
                rel: "self".into(),
                ..Link::default()
            }],
            updated: date(T),
            ..Source::default()
        })),
        foreign: vec![credit, ours],
    };
    Item {
        published_us: Some(1_132_024_961_000_000),
        ..live(1, entry)
    }
}

/// A post with nothing but an id.
pub(super) fn bare() -> Item {
    live(2, Entry::default())
}

pub(super) fn page_of(items: Vec<Item>) -> Page {
    Page {
        items: items.into_iter().map(Arc::new).collect(),
        last_cursor: "1389003999_0_2040335985".into(),
        more: false,
        total: Some(3),
        index: None,
        scanned: None,
        record: Arc::new(feed(metadata())),
        degraded: None,
    }
}

fn links(representation: Representation) -> Links {
    site().links("x", representation, Order::MODIFIED, &Filter::All, None)
}

/// The document of some items in a representation, as text.
pub(super) fn rendered(representation: Representation, items: Vec<Item>) -> String {
    rendered_with(representation, items, |_| {})
}

/// Likewise, after some changes to what goes around the page.
pub(super) fn rendered_with(
    representation: Representation,
    items: Vec<Item>,
    change: impl FnOnce(&mut Around),
) -> String {
    let mut around = Around {
        feed: feed(metadata()),
        page: page_of(items),
        links: links(representation),
        prev_cursor: None,
        deletions: Deletions::Announce,
        dated_since: None,
        ttl_mins: None,
    };
    change(&mut around);
    around.page.record = Arc::new(around.feed.clone());
    let document = Document {
        page: &around.page,
        links: &around.links,
        push: around
            .prev_cursor
            .as_deref()
            .map(|prev_cursor| ChainPosition {
                prev_cursor,
                deletions: around.deletions,
                dated_since: around.dated_since,
            }),
        ttl_mins: around.ttl_mins,
    };
    String::from_utf8(representation.write(&document)).unwrap()
}

/// Parts of a document.
pub(super) struct Around {
    pub(super) feed: FeedRecord,
    pub(super) page: Page,
    pub(super) links: Links,
    pub(super) prev_cursor: Option<String>,
    pub(super) deletions: Deletions,
    pub(super) dated_since: Option<Stamp>,
    pub(super) ttl_mins: Option<u32>,
}

/// The lines between two lines that start so, both included, without indentation.
pub(super) fn part<'a>(document: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    let lines = document
        .lines()
        .map(str::trim)
        .skip_while(|line| !line.starts_with(from));
    let mut part: Vec<_> = lines.collect();
    let end = part
        .iter()
        .position(|line| line.starts_with(to))
        .map_or(part.len(), |at| at + 1);
    part.truncate(end);
    part
}
