//! Items of 2 KB as an old blog writes them, the same in every run; not where they are kept.

use everfeed::feed::{
    item::{ItemDigests, KeyHash},
    reconcile::{Change, Put, PutKind},
};
use everfeed_adapters::{Body, Category, Date, Digest, Entry, Key, Link, Person, Text, TextKind};
use std::sync::{Arc, LazyLock};

/// Namespace of the ids of the items.
pub(crate) const NAMESPACE: &str = "blog.example/feed";

/// Bytes of HTML in an item. With title, link, author, tags, dates and digests it comes to 2 KB.
const PROSE_BYTES: usize = 1_650;
/// Different texts; titles and ids differ anyway.
const TEXTS: usize = 64;

static PROSE: LazyLock<Vec<String>> = LazyLock::new(|| (0..TEXTS as u64).map(written).collect());

/// The body of the n-th item: HTML.
pub(crate) fn prose(n: u32) -> &'static str {
    &PROSE[n as usize % TEXTS]
}

/// The n-th item's id, as its publisher writes it.
pub(crate) fn guid(n: u32) -> String {
    format!("https://blog.example/?p={n}")
}

/// The n-th item appears.
pub(crate) fn added(n: u32) -> Change {
    let key = KeyHash::of(NAMESPACE, &Key::Id(guid(n)).stripped());
    let published_us = 1_200_000_000_000_000 + i64::from(n) * 60_000_000;
    let digest = Digest::of(&n.to_be_bytes());
    Change::Put(Put {
        kind: PutKind::Added,
        id: key.item_id(),
        iri: guid(n),
        keys: vec![key],
        entry: Arc::new(entry(n, published_us)),
        published_us: Some(published_us),
        digests: ItemDigests {
            raw: digest,
            content: digest,
            version: 1,
        },
        witnesses: Vec::new(),
    })
}

/// The n-th item appears, with nothing but a title: where a million of them must fit.
pub(crate) fn thin(n: u32) -> Change {
    appears(n, Entry::default())
}

/// The n-th item appears, with a text.
pub(crate) fn worded(n: u32, text: &str) -> Change {
    let content = Some(Body {
        text: Text::plain(text),
        ..Body::default()
    });
    appears(
        n,
        Entry {
            content,
            ..Entry::default()
        },
    )
}

fn appears(n: u32, entry: Entry) -> Change {
    let key = KeyHash::of(NAMESPACE, &Key::Id(guid(n)).stripped());
    let digest = Digest::of(&n.to_be_bytes());
    let entry = Entry {
        id: Some(guid(n)),
        title: Some(Text::plain(format!("Day {n}"))),
        ..entry
    };
    Change::Put(Put {
        kind: PutKind::Added,
        id: key.item_id(),
        iri: guid(n),
        keys: vec![key],
        entry: Arc::new(entry),
        published_us: None,
        digests: ItemDigests {
            raw: digest,
            content: digest,
            version: 1,
        },
        witnesses: Vec::new(),
    })
}

fn entry(n: u32, published_us: i64) -> Entry {
    let date = || Date {
        raw: "Wed, 02 Oct 2002 13:00:00 GMT".into(),
        at_us: Some(published_us),
    };
    let html = Text {
        kind: TextKind::Html,
        value: prose(n).into(),
        ..Text::default()
    };
    let tag = |term: &str| Category {
        term: term.into(),
        ..Category::default()
    };
    Entry {
        id: Some(guid(n)),
        title: Some(Text::plain(format!("What happened on day {n}, and why"))),
        content: Some(Body {
            text: html,
            ..Body::default()
        }),
        links: vec![Link {
            href: format!("https://blog.example/2014/01/what-happened-on-day-{n}"),
            rel: "alternate".into(),
            ..Link::default()
        }],
        authors: vec![Person {
            name: Some("Ada Writer".into()),
            ..Person::default()
        }],
        categories: vec![tag("diary"), tag("weather")],
        published: Some(date()),
        updated: Some(date()),
        ..Entry::default()
    }
}

/// A text of paragraphs with a link and an entity here and there.
fn written(seed: u64) -> String {
    let mut chance = Chance::new(seed);
    let mut text = String::with_capacity(PROSE_BYTES + 128);
    while text.len() < PROSE_BYTES {
        text.push_str("<p>");
        for at in 0..60 {
            let word = WORDS[chance.below(WORDS.len())];
            match chance.below(40) {
                0 => text.push_str(&format!(
                    "<a href=\"https://blog.example/tag/{word}\">{word}</a> "
                )),
                1 => text.push_str(&format!("<em>{word}</em> &amp; ")),
                _ => text.push_str(&format!("{word} ")),
            }
            if at % 12 == 11 {
                text.push_str("— ");
            }
        }
        text.push_str("</p>\n");
    }
    text
}

const WORDS: [&str; 32] = [
    "morning", "the", "a", "garden", "of", "letters", "and", "winter", "in", "house", "we",
    "walked", "under", "rain", "old", "it", "server", "was", "river", "to", "never", "light",
    "with", "bread", "said", "she", "quiet", "machine", "on", "their", "question", "again",
];

/// Numbers that look random and are the same in every run (xorshift64*).
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let drawn = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        drawn as usize % end
    }
}
