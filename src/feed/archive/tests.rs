//! Publishers in tables, and the walks through their archives; the files below hold the cases.

use super::{completion::PAUSE_SECS, *};
use crate::item::KeyHash;
use everfeed_adapters::{History as CheckResult, Link, Paging, platforms::Platforms};
use std::collections::BTreeMap;

mod links;

mod counted;

mod repeated;

mod damage;

mod endless;

mod worlds;

const FEED: &str = "http://blog.example/rss";

const NOW: Stamp = Stamp::from_secs(1_000_000);

/// Answer of a publisher under one address.
#[derive(Clone, Default)]
struct Doc {
    ids: Vec<u32>,
    metadata: Metadata,
    status: u16,
    landed: Option<String>,
    body: Option<u32>,
    is_built: bool,
    damaged: bool,
    mixed: bool,
}

fn doc(ids: impl IntoIterator<Item = u32>) -> Doc {
    Doc {
        ids: ids.into_iter().collect(),
        status: 200,
        ..Doc::default()
    }
}

fn linked(ids: impl IntoIterator<Item = u32>, rel: &str, href: &str) -> Doc {
    let mut doc = doc(ids);
    doc.metadata.links.push(Link {
        href: href.into(),
        rel: rel.into(),
        ..Link::default()
    });
    doc
}

fn status(status: u16) -> Doc {
    Doc {
        status,
        ..Doc::default()
    }
}

type Publisher = BTreeMap<String, Doc>;

fn publisher(docs: &[(&str, Doc)]) -> Publisher {
    let at = |path: &str| {
        if path.contains("://") {
            path.to_owned()
        } else {
            format!("http://blog.example{path}")
        }
    };
    docs.iter()
        .map(|(path, doc)| (at(path), doc.clone()))
        .collect()
}

fn rules() -> WalkRules {
    let aliases = vec![Url::parse("https://public.example/feed").unwrap()];
    WalkRules {
        reach: OwnOrigins::new(Url::parse(FEED).unwrap(), aliases),
        pages_max: 1000,
        bytes_max: super::BYTES_MAX,
        page_gap_secs: 2,
    }
}

fn keys(ids: &[u32]) -> Vec<KeyHash> {
    ids.iter()
        .map(|id| KeyHash::of("ns", &id.to_string()))
        .collect()
}

fn body(url: &str, doc: &Doc) -> Digest {
    Digest::of(
        doc.body
            .map_or_else(|| format!("{url}{:?}", doc.ids), |body| body.to_string())
            .as_bytes(),
    )
}

fn begin(publisher: &Publisher, profile: &str, rules: &WalkRules) -> Result<ArchiveWalk, History> {
    let live = &publisher[FEED];
    let seen = WalkedDocument {
        asked: FEED,
        landed: FEED,
        body: body(FEED, live),
        bytes: 1000,
        keys: &keys(&live.ids),
        metadata: &live.metadata,
        is_built: live.is_built,
        damaged: live.damaged,
        mixed: live.mixed,
    };
    let profile = Platforms::embedded().get(profile).map(|profile| &**profile);
    ArchiveWalk::begin(&Url::parse(FEED).unwrap(), &seen, profile, rules, NOW)
}

/// One step; the address asked, and what became of it.
fn step(
    walk: &mut ArchiveWalk,
    publisher: &Publisher,
    rules: &WalkRules,
    now: &mut Stamp,
) -> Option<(String, PageUse)> {
    let url = match walk.next(*now) {
        WalkStep::Done => return None,
        WalkStep::Wait(until) => {
            assert!(until > *now);
            *now = until;
            return step(walk, publisher, rules, now);
        }
        WalkStep::Fetch(url) => url,
    };
    let missing = status(404);
    let doc = publisher.get(&url).unwrap_or(&missing);
    let verdict = reply(walk, &url, doc, rules, *now);
    Some((url, verdict))
}

/// Tells a walk what an address answered.
fn reply(walk: &mut ArchiveWalk, url: &str, doc: &Doc, rules: &WalkRules, now: Stamp) -> PageUse {
    let (keys, landed) = (
        keys(&doc.ids),
        doc.landed.clone().unwrap_or_else(|| url.to_owned()),
    );
    let reply = match doc.status {
        200 => WalkReply::Page(WalkedDocument {
            asked: url,
            landed: &landed,
            body: body(url, doc),
            bytes: 1000,
            keys: &keys,
            metadata: &doc.metadata,
            is_built: doc.is_built,
            damaged: doc.damaged,
            mixed: doc.mixed,
        }),
        status @ (403 | 404 | 410) => WalkReply::Missing { status },
        299 => WalkReply::NoFeed,
        _ => WalkReply::Failed {
            why: "the publisher answered 500",
            retry_after_secs: None,
        },
    };
    walk.answer(reply, rules, now)
}

/// Walks to the first rest: the paths kept, and what is known of the history.
fn walk_with(publisher: &Publisher, profile: &str, rules: &WalkRules) -> (Vec<String>, History) {
    let mut walk = match begin(publisher, profile, rules) {
        Ok(walk) => walk,
        Err(history) => return (Vec::new(), history),
    };
    let (mut kept, mut now) = (Vec::new(), NOW);
    for _ in 0..5000 {
        if walk.is_over() {
            return (kept, walk.history());
        }
        assert_eq!(walk.history(), History::Running);
        let Some((url, verdict)) = step(&mut walk, publisher, rules, &mut now) else {
            break;
        };
        if verdict == PageUse::Keep {
            kept.push(url.trim_start_matches("http://blog.example").to_owned());
        }
    }
    (kept, walk.history())
}

#[track_caller]
fn check(docs: &[(&str, Doc)], profile: &str, kept: &[&str], history: &str) {
    let (found, end) = walk_with(&publisher(docs), profile, &rules());
    assert_eq!(
        (found, end.to_string()),
        (
            kept.iter().map(|s| (*s).to_owned()).collect(),
            history.to_owned()
        )
    );
}

/// One more walk after `before`, to its end.
fn again(docs: &[(&str, Doc)], profile: &str, before: &PreviousWalk) -> ArchiveWalk {
    let publisher = publisher(docs);
    let walk = begin(&publisher, profile, &rules()).unwrap();
    let (mut walk, mut now) = (walk.after(before.clone(), 7), NOW);
    while step(&mut walk, &publisher, &rules(), &mut now).is_some() {}
    walk
}

/// The same as a page of a feed of this id, title and site.
fn of_feed(mut doc: Doc, id: &str, title: &str, site: &str) -> Doc {
    let (href, rel) = (site.to_owned(), "alternate".to_owned());
    doc.metadata.id = (!id.is_empty()).then(|| id.to_owned());
    doc.metadata.title = Some(everfeed_adapters::Text {
        value: title.to_owned(),
        ..Default::default()
    });
    doc.metadata.links.push(Link {
        href,
        rel,
        ..Link::default()
    });
    doc
}
