//! Which version of an entry counts, and in which order all of them come.

use super::*;
use crate::{
    archive::merge,
    item::{Content, Item, ItemDigests, Reason},
    reconcile::{Put, PutKind},
};
use everfeed_adapters::{Date, Digest, Entry, Key, Link, Text};
use std::sync::Arc;

/// An entry: id, link, title, day of its last update (0: undated).
fn reading(id: &str, link: &str, title: &str, day: i64) -> ParsedEntry {
    let at_us = Some(1_600_000_000_000_000 + day * 86_400_000_000);
    let link = Link {
        href: link.into(),
        rel: "alternate".into(),
        ..Link::default()
    };
    let entry = Entry {
        title: Some(Text::plain(title)),
        links: vec![link],
        updated: (day > 0).then(|| Date {
            raw: format!("day {day}"),
            at_us,
        }),
        ..Entry::default()
    };
    let raw = Digest::of(format!("{entry:?}").as_bytes());
    ParsedEntry {
        key: Key::Id(id.into()),
        name: None,
        entry: Arc::new(entry),
        digests: ItemDigests {
            raw,
            content: raw,
            version: 1,
        },
    }
}

fn entry(id: &str, title: &str, day: i64) -> ParsedEntry {
    reading(id, &format!("http://x/{id}"), title, day)
}

fn page(readings: &[ParsedEntry]) -> ArchivedPage {
    ArchivedPage {
        read_at: Stamp::from_secs(50),
        readings: readings.to_vec(),
        deletions: Vec::new(),
    }
}

fn live(readings: &[ParsedEntry]) -> Observation {
    let entries = readings
        .iter()
        .map(|reading| ObservedEntry::Read(Box::new(reading.clone())))
        .collect();
    Observation {
        entries,
        ..Observation::default()
    }
}

fn title(reading: &ParsedEntry) -> String {
    reading.entry.title.as_ref().unwrap().value.clone()
}

/// The titles of what the live document shows, and of what only archives hold.
fn check(
    shown: &[ParsedEntry],
    pages: &[ArchivedPage],
    expect_live: &[&str],
    expect_older: &[&str],
) {
    let mut live = live(shown);
    let older = merge(&mut live, pages.to_vec());
    let of_live = live.entries.iter().map(|sighting| match sighting {
        ObservedEntry::Read(reading) => title(reading),
        ObservedEntry::Same(_) => panic!("all are read"),
    });
    assert_eq!(of_live.collect::<Vec<_>>(), expect_live);
    assert_eq!(
        older
            .iter()
            .map(|(_, reading)| title(reading))
            .collect::<Vec<_>>(),
        expect_older
    );
}

#[test]
fn of_an_entry_in_several_documents_the_latest_updated_counts_else_the_newest_document() {
    // H-25.
    let newer = page(&[
        entry("a", "a in the newer archive", 3),
        entry("b", "b, day 2", 2),
    ]);
    let older = page(&[
        entry("b", "b, day 4", 4),
        entry("c", "c", 1),
        entry("a", "a, equal", 3),
    ]);
    check(
        &[],
        &[newer.clone(), older.clone()],
        &[],
        &["a in the newer archive", "b, day 4", "c"],
    );
    check(
        &[entry("a", "a now", 3)],
        &[newer.clone(), older.clone()],
        &["a now"],
        &["b, day 4", "c"],
    );
    check(
        &[entry("a", "a undated", 0)],
        &[newer],
        &["a in the newer archive"],
        &["b, day 2"],
    );
    check(
        &[entry("c", "c now", 9)],
        &[older],
        &["c now"],
        &["b, day 4", "a, equal"],
    );
}

#[test]
fn a_version_from_an_archive_leaves_what_the_next_poll_is_compared_with() {
    let shown = entry("a", "a", 1);
    let mut live = live(std::slice::from_ref(&shown));
    merge(&mut live, vec![page(&[entry("a", "a!", 2)])]);
    let ObservedEntry::Read(held) = &live.entries[0] else {
        panic!("it was read")
    };
    assert_eq!(
        (title(held).as_str(), held.digests.raw),
        ("a!", shown.digests.raw)
    );
    assert_ne!(held.digests.content, shown.digests.content);
}

#[test]
fn an_id_that_moved_to_https_is_one_and_a_shared_one_is_told_apart_by_its_link() {
    check(
        &[entry("http://x/1", "one", 1)],
        &[page(&[entry("https://x/1", "one", 1)])],
        &["one"],
        &[],
    );
    let (one, two) = (
        reading("same", "http://x/1", "one", 1),
        reading("same", "http://x/2", "two", 2),
    );
    let three = reading("same", "http://x/3", "three", 3);
    check(
        &[three, two.clone()],
        &[page(&[two, one])],
        &["three", "two"],
        &["one"],
    );
}

/// Checks which version of day `day`, read at second 50, still counts beside the held one.
fn counts(content: Content, modified_secs: u64, day: i64) -> bool {
    let key = KeyHash::of("ns", "a");
    let item = Item {
        id: key.item_id(),
        iri: "a".into(),
        modified: Stamp::from_secs(modified_secs),
        created: Stamp::ZERO,
        revived: None,
        published_us: None,
        content,
        tombstone_count: 0,
        publisher_id: None,
        digests: entry("a", "a", 2).digests,
    };
    let known = Known {
        items: HashMap::from([(key, Arc::new(item))]),
        ..Known::default()
    };
    let read = entry("a", "from an archive", day);
    !settle_known("ns", &known, vec![(Stamp::from_secs(50), read)]).is_empty()
}

#[test]
fn a_page_that_was_read_a_while_ago_brings_nothing_back() {
    let held = || Content::Live(entry("a", "a", 2).entry);
    assert!(
        !counts(held(), 99, 1) && !counts(held(), 99, 2),
        "what is held is as new"
    );
    assert!(counts(held(), 99, 3), "a later version is an edit");
    let gone = |reason| Content::Gone {
        reason,
        first_missing: None,
        last_seen: None,
    };
    assert!(
        !counts(gone(Reason::AbsentBracketed), 51, 9),
        "it ended after the page was read"
    );
    assert!(
        counts(gone(Reason::AbsentBracketed), 49, 1),
        "it was still shown after its end"
    );
}

#[test]
fn what_its_publisher_deleted_lives_again_by_an_archive_only_when_it_was_updated_since() {
    let gone = || Content::Gone {
        reason: Reason::Explicit,
        first_missing: None,
        last_seen: None,
    };
    assert!(
        !counts(gone(), 49, -20_000),
        "an archive that was not written again"
    );
    assert!(counts(gone(), 49, 1), "published again");
}

#[test]
fn archives_and_the_live_document_come_in_one_order_oldest_first() {
    let put = |id: &str, day: i64| {
        let ParsedEntry {
            entry,
            digests: seen,
            ..
        } = entry(id, id, day);
        let id = KeyHash::of("ns", id).item_id();
        Change::Put(Put {
            kind: PutKind::Added,
            id,
            iri: String::new(),
            keys: vec![],
            entry,
            published_us: None,
            digests: seen,
            witnesses: vec![],
        })
    };
    let titles = |changes: Vec<Change>| -> Vec<String> {
        let title = |change| match change {
            Change::Put(Put { entry, .. }) => entry.title.as_ref().unwrap().value.clone(),
            Change::Delete(_) => "-".into(),
        };
        changes.into_iter().map(title).collect()
    };
    let all = chronological(
        vec![put("1", 1), put("4", 4)],
        vec![put("3", 3), put("5", 5)],
    );
    assert_eq!(titles(all), ["1", "3", "4", "5"]);
    let undated = chronological(vec![put("a", 0), put("b", 0)], vec![put("c", 0)]);
    assert_eq!(
        titles(undated),
        ["a", "b", "c"],
        "archives are older than the live document"
    );
    let twice = chronological(vec![put("1", 1)], vec![put("1", 1)]);
    assert_eq!(titles(twice), ["1"], "the live document has the last word");
}
