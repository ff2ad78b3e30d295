//! Decisions on small documents, each against a store that is a map.

use super::*;
use crate::{
    absence::ProofPolicy,
    item::{Content, PublisherId, Reason, Witnesses},
    schedule::Repeat,
};
use everfeed_adapters::{
    Body, Date, Link, Text,
    platforms::{Platforms, content_digest, digest_version},
};

mod at_rest;

mod churn;

mod corrections;

mod edited_often;

mod flood_limiter;

const NS: &str = "example.org/feed";
const NOW: Stamp = Stamp::from_secs(1_700_000_000);

/// A store in its simplest form, to feed decisions back.
#[derive(Default)]
struct Held {
    items: HashMap<ItemId, Arc<Item>>,
    keys: HashMap<KeyHash, ItemId>,
    witnesses: HashMap<KeyHash, Vec<ItemId>>,
    last: WindowState,
    id_rule: IdRule,
    clock: u64,
    /// Seconds since [`NOW`].
    secs: u64,
    /// Change, or none, that the last poll brought.
    poll: Repeat,
    events: Vec<WindowEvent>,
}

impl Held {
    /// Shows a document; returns what it did, in the order of T: `+title`, `~title`, `^title`,
    /// `-title`.
    fn show(&mut self, document: &[ParsedEntry], deletions: &[Deletion]) -> Vec<String> {
        self.observe(document, deletions, Coverage::Unconditional)
    }

    fn observe(
        &mut self,
        document: &[ParsedEntry],
        deletions: &[Deletion],
        class: Coverage,
    ) -> Vec<String> {
        let same = |reading: &ParsedEntry| {
            let named = deletions
                .iter()
                .any(|deletion| Key::Id(deletion.reference.clone()) == reading.key);
            let twice = document
                .iter()
                .filter(|other| other.key == reading.key)
                .count()
                > 1;
            self.last
                .entries
                .iter()
                .find(|row| row.raw == reading.digests.raw)
                .copied()
                .filter(|row| {
                    !named && !twice && self.last.deferred.iter().all(|held| held.id != row.id)
                })
        };
        let entries = document.iter().map(|reading| match same(reading) {
            Some(row) => ObservedEntry::Same(row),
            None => ObservedEntry::Read(Box::new(reading.clone())),
        });
        let seen = Observation {
            entries: entries.collect(),
            deletions: deletions.to_vec(),
            coverage: class,
            profile: None,
            previous: std::mem::take(&mut self.poll),
            ..Observation::default()
        };
        let found = |key: KeyHash| self.keys.get(&key).map(|id| (key, self.items[id].clone()));
        let items = keys_needed(NS, &self.last, &seen)
            .into_iter()
            .filter_map(found)
            .collect();
        let known = Known {
            id_rule: self.id_rule,
            window: self.last.clone(),
            items,
            ..Known::default()
        };
        let mut ids: Vec<ItemId> = Vec::new();
        for witness in witness_keys(NS, &known, &seen) {
            ids.extend(self.witnesses.get(&witness).into_iter().flatten());
        }
        let lookalikes = ids.iter().map(|id| self.items[id].clone()).collect();
        let known = Known {
            lookalikes,
            ..known
        };
        let decisions = reconcile(NS, &known, &seen, &ProofPolicy::default(), self.now());
        self.take(decisions)
    }

    /// Forgets an item with this title, as the store does.
    fn forget(&mut self, title: &str) {
        let is_it = |item: &&Arc<Item>| {
            let entry = item.entry().and_then(|entry| entry.title.as_ref());
            entry.is_some_and(|found| found.value == title)
        };
        let item = self.items.values().find(is_it).unwrap().clone();
        let content = Content::Gone {
            reason: Reason::Forgotten,
            first_missing: None,
            last_seen: None,
        };
        let forgotten = Item {
            content,
            publisher_id: PublisherId::of_forgotten(Witnesses::of_item(&item)),
            ..(*item).clone()
        };
        self.items.insert(item.id, Arc::new(forgotten));
        self.last = self.last.clone().without(item.id);
    }

    /// The publisher answers 304.
    fn rest(&mut self) -> Vec<String> {
        self.poll = Repeat::Unchanged;
        self.release()
    }

    /// A poll without a document.
    fn release(&mut self) -> Vec<String> {
        let found = |held: &DeferredEdit| {
            self.keys
                .get(&held.key)
                .map(|id| (held.key, self.items[id].clone()))
        };
        let items = self.last.deferred.iter().filter_map(found).collect();
        let known = Known {
            id_rule: self.id_rule,
            window: self.last.clone(),
            items,
            ..Known::default()
        };
        let decisions = release(&known, self.poll, self.now());
        self.take(decisions)
    }

    fn now(&self) -> Stamp {
        NOW.plus_secs(self.secs)
    }

    fn take(&mut self, decisions: Decisions) -> Vec<String> {
        self.last = decisions.window;
        self.events = decisions.events;
        self.id_rule = decisions.id_rule;
        self.keys.extend(decisions.aliases);
        decisions
            .changes
            .into_iter()
            .map(|change| self.apply(change))
            .collect()
    }

    fn apply(&mut self, change: Change) -> String {
        self.clock += 1;
        let t = Stamp::from_micros(self.now().micros() + self.clock);
        match change {
            Change::Put(put) => {
                for key in &put.keys {
                    assert!(
                        self.keys.insert(*key, put.id).is_none(),
                        "a key is bound once"
                    );
                }
                for witness in &put.witnesses {
                    self.witnesses.entry(*witness).or_default().push(put.id);
                }
                let old = self.items.get(&put.id);
                assert_eq!(old.is_none(), put.kind == PutKind::Added);
                assert_eq!(
                    old.is_some_and(|old| old.is_gone()),
                    put.kind == PutKind::Revived
                );
                let title = put.entry.title.as_ref().unwrap().value.clone();
                let head = match put.kind {
                    PutKind::Added => '+',
                    PutKind::Edited => '~',
                    PutKind::Revived => '^',
                };
                let item = Item {
                    id: put.id,
                    iri: put.iri,
                    modified: t,
                    created: old.map_or(t, |old| old.created),
                    revived: None,
                    published_us: put.published_us,
                    content: Content::Live(put.entry),
                    tombstone_count: old.map_or(0, |old| old.tombstone_count),
                    publisher_id: None,
                    digests: put.digests,
                };
                self.items.insert(put.id, Arc::new(item));
                format!("{head}{title}")
            }
            Change::Delete(delete) => {
                let old = self.items[&delete.id].clone();
                let title = old
                    .entry()
                    .expect("only live items are deleted")
                    .title
                    .as_ref()
                    .unwrap()
                    .value
                    .clone();
                let content = Content::Gone {
                    reason: delete.reason,
                    first_missing: delete.first_missing,
                    last_seen: None,
                };
                self.items.insert(
                    delete.id,
                    Arc::new(Item {
                        content,
                        modified: t,
                        ..(*old).clone()
                    }),
                );
                format!("-{title}")
            }
        }
    }

    fn iris(&self) -> Vec<&str> {
        let mut iris: Vec<_> = self.items.values().map(|item| item.iri.as_str()).collect();
        iris.sort_unstable();
        iris
    }
}

/// An entry: id, link, title, day of its publication.
fn entry(id: &str, link: &str, title: &str, day: u32) -> ParsedEntry {
    let link = Link {
        href: link.into(),
        rel: "alternate".into(),
        ..Link::default()
    };
    let entry = Entry {
        id: Some(id.into()),
        links: vec![link],
        title: Some(Text::plain(title)),
        published: (day > 0).then(|| date(day)),
        ..Entry::default()
    };
    digested(Key::Id(id.into()), entry)
}

fn digested(key: Key, entry: Entry) -> ParsedEntry {
    let raw = Digest::of(format!("{entry:?}").as_bytes());
    let churn_free = Entry {
        updated: None,
        ..entry.clone()
    };
    let content = Digest::of(format!("{churn_free:?}").as_bytes());
    ParsedEntry {
        key,
        name: None,
        entry: Arc::new(entry),
        digests: ItemDigests {
            raw,
            content,
            version: 1,
        },
    }
}

fn date(day: u32) -> Date {
    let at = 1_600_000_000_000_000 + i64::from(day) * 86_400_000_000;
    Date {
        raw: format!("day {day}"),
        at_us: Some(at),
    }
}

fn updated(reading: ParsedEntry, day: u32) -> ParsedEntry {
    digested(
        reading.key,
        Entry {
            updated: Some(date(day)),
            ..Entry::clone(&reading.entry)
        },
    )
}

fn deleted(id: &str, day: u32) -> Deletion {
    Deletion {
        reference: id.into(),
        when: Some(date(day)),
        comment: None,
    }
}

fn post(n: u32) -> ParsedEntry {
    entry(
        &format!("tag:x,2005:{n}"),
        &format!("http://x/{n}"),
        &format!("p{n}"),
        n,
    )
}

#[test]
fn a_first_document_is_committed_oldest_first() {
    let mut held = Held::default();
    assert_eq!(
        held.show(&[post(3), post(2), post(1)], &[]),
        ["+p1", "+p2", "+p3"]
    );
    assert_eq!(held.show(&[post(3), post(2), post(1)], &[]), [""; 0]);
    assert_eq!(
        held.show(&[post(4), post(3), post(2)], &[]),
        ["+p4"],
        "rolling off is no deletion (SF-11)"
    );
    assert_eq!(held.items.len(), 4);
}

#[test]
fn an_edit_is_a_change_and_a_churning_date_is_none() {
    // POLLING 1.3.
    let mut held = Held::default();
    held.show(&[post(2), post(1)], &[]);
    let edited = entry("tag:x,2005:1", "http://x/1", "p1 edited", 1);
    assert_eq!(held.show(&[post(2), edited.clone()], &[]), ["~p1 edited"]);
    assert_eq!(held.show(&[post(2), updated(edited, 9)], &[]), [""; 0]);
}

#[test]
fn an_old_entry_that_reappears_is_compared_with_the_memory() {
    let mut held = Held::default();
    held.show(&[post(1)], &[]);
    held.show(&[post(2)], &[]);
    assert_eq!(held.show(&[post(2), post(1)], &[]), [""; 0]);
    held.show(&[post(2)], &[]);
    let edited = entry("tag:x,2005:1", "http://x/1", "p1 edited", 1);
    assert_eq!(held.show(&[post(2), edited], &[]), ["~p1 edited"]);
}

#[test]
fn an_explicit_deletion_makes_one_tombstone_and_repeating_it_changes_nothing() {
    // H-33, D-13.
    let mut held = Held::default();
    held.show(&[post(2), post(1)], &[]);
    assert_eq!(
        held.show(&[post(2)], &[deleted("tag:x,2005:1", 5)]),
        ["-p1"]
    );
    assert_eq!(
        held.show(&[post(2)], &[deleted("tag:x,2005:1", 5)]),
        [""; 0]
    );
}

#[test]
fn a_deletion_of_an_id_never_seen_is_ignored() {
    // H-34.
    let mut held = Held::default();
    held.show(&[post(1)], &[]);
    assert_eq!(
        held.show(&[post(1)], &[deleted("tag:other,2005:1", 5)]),
        [""; 0]
    );
}

#[test]
fn an_entry_beside_its_deletion_lives_only_if_it_was_updated_later() {
    // H-33: when >= updated means deleted.
    let mut held = Held::default();
    held.show(&[post(1)], &[]);
    assert_eq!(
        held.show(&[post(1)], &[deleted("tag:x,2005:1", 5)]),
        ["-p1"]
    );
    assert_eq!(
        held.show(&[post(1)], &[deleted("tag:x,2005:1", 5)]),
        [""; 0]
    );
    assert_eq!(
        held.show(&[updated(post(1), 6)], &[deleted("tag:x,2005:1", 5)]),
        ["^p1"]
    );
    assert_eq!(
        held.show(&[updated(post(1), 6)], &[deleted("tag:x,2005:1", 5)]),
        [""; 0]
    );
    assert_eq!(
        held.show(&[], &[deleted("tag:x,2005:1", 5)]),
        [""; 0],
        "the item outlives an older deletion"
    );
    assert_eq!(held.show(&[], &[deleted("tag:x,2005:1", 7)]), ["-p1"]);
}

#[test]
fn an_entry_that_is_deleted_in_its_first_document_never_appears() {
    let mut held = Held::default();
    assert_eq!(
        held.show(&[post(2), post(1)], &[deleted("tag:x,2005:1", 5)]),
        ["+p2"]
    );
}

#[test]
fn a_tombstone_comes_back_to_life_under_the_same_id_when_the_entry_returns_unchanged() {
    let mut held = Held::default();
    held.show(&[post(2), post(1)], &[]);
    held.show(&[post(2), post(1)], &[deleted("tag:x,2005:1", 5)]);
    let ids: Vec<_> = held.items.keys().copied().collect();
    assert_eq!(held.show(&[post(2), post(1)], &[]), ["^p1"]);
    assert!(ids.iter().all(|id| held.items.contains_key(id)) && ids.len() == held.items.len());
}

#[test]
fn what_its_publisher_puts_back_lives_at_once_whatever_rolls_off_or_is_deleted_beside_it() {
    let mut held = Held::default();
    let gone = deleted("tag:x,2005:1", 10);
    held.show(&[post(4), post(3), post(2), post(1)], &[]);
    held.show(&[post(4), post(3), post(2)], std::slice::from_ref(&gone));
    held.show(&[post(6), post(5), post(4), post(3)], &[gone]);
    // Of what is lacked, one came after the deletion and is said to be deleted, and one rolls off.
    let back = updated(post(1), 12);
    assert_eq!(
        held.show(&[back, post(6), post(4)], &[deleted("tag:x,2005:5", 11)]),
        ["^p1", "-p5"]
    );
}

#[test]
fn an_item_that_was_forgotten_never_comes_back() {
    let mut held = Held::default();
    held.show(&[post(2), post(1)], &[]);
    held.forget("p1");
    for document in [
        vec![post(2), post(1)],
        vec![post(2)],
        vec![post(2), updated(post(1), 9)],
    ] {
        assert_eq!(held.show(&document, &[]), [""; 0]);
    }
    assert_eq!(
        held.show(&[post(3), post(2), post(1)], &[deleted("tag:x,2005:1", 12)]),
        ["+p3"]
    );
}

/// Forgets the item of `forgotten` and shows `document`; returns what that added.
fn added_after_forgetting(
    first: &[ParsedEntry],
    forgotten: &str,
    document: &[ParsedEntry],
) -> Vec<String> {
    let mut held = Held::default();
    held.show(first, &[]);
    held.forget(forgotten);
    let mut changes = held.show(document, &[]);
    assert_eq!(held.show(document, &[]), [""; 0], "again");
    changes.retain(|change| !change.starts_with('~'));
    changes
}

#[test]
fn what_was_forgotten_is_recognised_under_another_name() {
    const FIRST: [u32; 7] = [7, 6, 5, 4, 3, 2, 1];
    let posts = |host: &str, link: &str| -> Vec<ParsedEntry> {
        let post = |n: &u32| {
            let (id, link) = (format!("{host}{n}"), format!("{link}{n}"));
            entry(&id, &link, &format!("p{n}"), *n)
        };
        FIRST.iter().map(post).collect()
    };
    let first = posts("tag:x,2005:", "http://x.example/");
    let nothing = [""; 0];
    let check = |document: &[ParsedEntry], expect: &[&str]| {
        assert_eq!(added_after_forgetting(&first, "p3", document), expect);
    };
    check(&posts("tag:new:", "http://x.example/"), &nothing);
    check(&posts("http://y/?p=", "http://y.example/new/"), &nothing);
    let only = |reading: ParsedEntry| -> Vec<ParsedEntry> {
        let others = first.iter().enumerate().filter(|(at, _)| *at != 4);
        let mut document: Vec<_> = others.map(|(_, other)| other.clone()).collect();
        document.insert(0, reading);
        document
    };
    check(&only(entry("new", "http://x.example/q", "p3", 3)), &nothing);
    check(&only(entry("new", "http://x.example/3", "P", 3)), &nothing);
    // Only the title, the day, or the link is the same: another post.
    check(&only(entry("new", "http://x.example/q", "p3", 9)), &["+p3"]);
    check(&only(entry("new", "http://x.example/q", "q", 3)), &["+q"]);
    check(&only(entry("new", "http://x.example/3", "q", 9)), &["+q"]);
}

#[test]
fn of_two_forgotten_items_that_an_entry_could_be_neither_comes_back() {
    let twice = [
        entry("a", "http://x.example/a", "p", 3),
        entry("b", "http://x.example/b", "p", 3),
    ];
    let mut held = Held::default();
    held.show(&twice, &[]);
    held.forget("p");
    held.forget("p");
    let third = entry("c", "http://x.example/c", "p", 3);
    assert_eq!(held.show(&[third], &[]), [""; 0]);
}

#[test]
fn tombstones_come_after_what_appears() {
    let mut held = Held::default();
    held.show(&[post(1)], &[]);
    assert_eq!(
        held.show(&[post(3), post(2)], &[deleted("tag:x,2005:1", 5)]),
        ["+p2", "+p3", "-p1"]
    );
}

#[test]
fn a_key_twice_in_one_document_keeps_the_latest_updated() {
    // LEGACY I-3.
    let mut held = Held::default();
    let (old, new) = (
        updated(post(1), 2),
        updated(entry("tag:x,2005:1", "http://x/1", "newer", 1), 3),
    );
    assert_eq!(held.show(&[old.clone(), new.clone()], &[]), ["+newer"]);
    assert_eq!(held.show(&[old.clone(), new.clone()], &[]), [""; 0]);
    assert_eq!(held.show(&[new, old], &[]), [""; 0]);
}

#[test]
fn one_id_on_several_links_is_told_apart_for_good() {
    let mut held = Held::default();
    let one = |n: u32| entry("same", &format!("http://x/{n}"), &format!("p{n}"), n);
    assert_eq!(held.show(&[one(2), one(1)], &[]), ["+p1", "+p2"]);
    assert_eq!(held.id_rule, IdRule::IdAndLink);
    assert_eq!(held.show(&[one(2), one(1)], &[]), [""; 0]);
    assert_eq!(held.show(&[one(3), one(2), one(1)], &[]), ["+p3"]);
    assert_eq!(held.show(&[one(3)], &[]), [""; 0]);
    let edited = entry("same", "http://x/1", "p1 edited", 1);
    assert_eq!(held.show(&[one(3), edited], &[]), ["~p1 edited"]);
    assert_eq!(held.items.len(), 3);
    assert!(
        held.iris().iter().all(|iri| iri.starts_with("urn:uuid:")),
        "{:?}",
        held.iris()
    );
}

#[test]
fn a_known_id_is_a_new_item_only_when_link_title_and_date_all_differ() {
    // POLLING 2.4: the same guid reused for a new post.
    let mut held = Held::default();
    held.show(&[entry("tag:x,2005:9", "http://x/1", "one", 1)], &[]);
    assert_eq!(
        held.show(&[entry("tag:x,2005:9", "http://x/2", "two", 1)], &[]),
        ["~two"]
    );
    assert_eq!(
        held.show(&[entry("tag:x,2005:9", "http://x/3", "three", 3)], &[]),
        ["+three"]
    );
    assert_eq!(
        held.show(&[entry("tag:x,2005:9", "http://x/3", "three!", 3)], &[]),
        ["~three!"]
    );
    assert_eq!(held.items.len(), 2);
    assert_eq!(held.iris()[0], "tag:x,2005:9");
    assert!(held.iris()[1].starts_with("urn:uuid:"));
}

#[test]
fn a_date_in_the_far_future_is_not_believed() {
    // LEGACY section 4.
    let mut held = Held::default();
    held.show(
        &[
            entry("a", "http://x/a", "a", 4000),
            entry("b", "http://x/b", "b", 1),
        ],
        &[],
    );
    let of = |title: &str| {
        let titled =
            |item: &&Arc<Item>| item.entry().unwrap().title.as_ref().unwrap().value == title;
        held.items.values().find(titled).unwrap().published_us
    };
    assert_eq!(of("a"), None);
    assert!(of("b").is_some());
}

#[test]
fn unchanged_entries_need_no_look_up() {
    let seen = Observation {
        entries: vec![ObservedEntry::Same(WindowEntry {
            key: KeyHash([1; 16]),
            id: ItemId([1; 10]),
            raw: Digest::default(),
            dated: None,
            tombstone_count: 0,
            is_weak: false,
            changed_polls: 0,
            changing_since: None,
        })],
        deletions: Vec::new(),
        coverage: Coverage::Unconditional,
        ..Observation::default()
    };
    assert!(keys_needed(NS, &WindowState::default(), &seen).is_empty());
}

/// A document of entries whose ids stand on this host.
fn hosted(host: &str, numbers: &[u32]) -> Vec<ParsedEntry> {
    let of = |n: &u32| {
        let url = format!("{host}/?p={n}");
        entry(&url, &url, &format!("p{n}"), *n)
    };
    numbers.iter().map(of).collect()
}

#[test]
fn a_blog_that_moves_to_https_and_another_host_keeps_its_items() {
    // POLLING 2.4, "guid churn http -> https, host move".
    let mut held = Held::default();
    held.show(&hosted("http://old.example", &[3, 2, 1]), &[]);
    let moves = [
        "https://old.example",
        "https://www.old.example",
        "http://old.example:80",
        "https://new.example",
    ];
    for host in moves {
        let shown = held.show(&hosted(host, &[3, 2, 1]), &[]);
        assert!(
            shown.iter().all(|told| told.starts_with('~')),
            "{host}: {shown:?}"
        );
        assert_eq!(held.items.len(), 3, "{host}");
    }
    // Every name that an item ever had still leads to it.
    let hash = |host: &str| KeyHash::of(NS, &Key::Id(format!("{host}/?p=2")).stripped());
    let id = held.keys[&hash("http://old.example")];
    assert!(
        ["https://www.old.example", "https://new.example"]
            .iter()
            .all(|host| held.keys[&hash(host)] == id)
    );
}

#[test]
fn new_ids_for_the_same_words_at_the_same_time_are_the_same_items() {
    let mut held = Held::default();
    held.show(
        &[
            entry("a1", "http://x/1", "one", 1),
            entry("a2", "http://x/2", "two", 2),
        ],
        &[],
    );
    let shown = held.show(
        &[
            entry("b1", "http://y/1", "one", 1),
            entry("b2", "http://y/2", "two", 2),
        ],
        &[],
    );
    assert_eq!(shown, ["~one", "~two"], "their links changed");
    assert_eq!(held.items.len(), 2);
}

#[test]
fn a_repost_with_another_date_is_another_item() {
    // POLLING 2.6, "same-title repost".
    let mut held = Held::default();
    held.show(&[entry("a1", "http://x/1", "weekly", 1)], &[]);
    assert_eq!(
        held.show(&[entry("a2", "http://x/2", "weekly", 8)], &[]),
        ["+weekly"]
    );
    assert_eq!(held.items.len(), 2);
}

#[test]
fn archives_of_an_older_scheme_are_the_posts_of_the_live_document() {
    let decide = |scheme: &str, numbers: &[u32]| {
        let of = |n: &u32| {
            let url = format!("http://x/{scheme}{n}");
            ObservedEntry::Read(Box::new(entry(&url, &url, &format!("p{n}"), *n)))
        };
        let seen = Observation {
            entries: numbers.iter().map(of).collect(),
            ..Observation::default()
        };
        reconcile(NS, &Known::default(), &seen, &ProofPolicy::default(), NOW)
    };
    let live = decide("new/", &[9, 8, 7]);
    let mut older = decide("?p=", &[9, 8, 7, 6, 5]);
    join(&mut older, &live);
    assert_eq!(
        (older.changes.len(), older.aliases.len(), older.renamed),
        (2, 3, 3)
    );
    let ids: HashSet<ItemId> = live.changes.iter().map(Change::id).collect();
    assert!(older.aliases.iter().all(|(_, id)| ids.contains(id)));
    assert!(
        older
            .changes
            .iter()
            .all(|change| !ids.contains(&change.id()))
    );
    // Two may be two posts alike.
    let mut older = decide("?p=", &[9, 8, 6, 5, 4]);
    join(&mut older, &live);
    assert_eq!((older.changes.len(), older.renamed), (5, 0));
}

#[test]
fn a_post_that_an_import_gave_the_number_of_another_and_brings_back_stays_one() {
    let numbered = |number: u32, n: u32| {
        let (id, link) = (format!("http://x/?p={number}"), format!("http://x/{n}"));
        entry(&id, &link, &format!("p{n}"), n)
    };
    let shown = |posts: &[(u32, u32)]| -> Vec<ParsedEntry> {
        posts
            .iter()
            .map(|(number, n)| numbered(*number, *n))
            .collect()
    };
    let mut held = Held::default();
    held.show(&shown(&[(3, 3), (2, 2), (1, 1)]), &[]);
    held.show(&shown(&[(4, 4), (3, 3), (2, 2)]), &[]);
    // The fourth is left out of the import, so that the first is shown again, as number 3.
    let told = held.show(&shown(&[(5, 3), (4, 2), (3, 1)]), &[]);
    assert!(
        told.iter().all(|change| change.starts_with('~')),
        "{told:?}"
    );
    assert_eq!(held.items.len(), 4);
    // A post that is new under such a number is new.
    let told = held.show(&shown(&[(2, 9), (5, 3), (4, 2), (3, 1)]), &[]);
    assert_eq!(told, ["+p9"]);
}

#[test]
fn a_rename_that_two_items_could_claim_is_none() {
    let mut held = Held::default();
    held.show(
        &[
            entry("a1", "http://x/1", "same", 1),
            entry("a2", "http://x/2", "same", 1),
        ],
        &[],
    );
    let shown = held.show(&[entry("b1", "http://y/3", "same", 1)], &[]);
    assert_eq!(shown, ["+same"]);
}

#[test]
fn an_item_that_is_still_shown_is_not_renamed() {
    let mut held = Held::default();
    held.show(&[entry("a1", "http://x/1", "one", 1)], &[]);
    let shown = held.show(
        &[
            entry("b1", "http://x/1", "one", 1),
            entry("a1", "http://x/1", "one", 1),
        ],
        &[],
    );
    assert_eq!(shown, ["+one"], "two entries that point to one page");
}

/// Number of changes by a document that shows `content` to an item that holds `held` with a digest
/// of this version.
fn after_a_change_of_scrubbers(held: &str, version: u32, content: &str, profile: &str) -> usize {
    let profile = Platforms::embedded().get(profile).cloned();
    let read = |text: &str, by: Option<&Profile>| {
        let entry = Entry {
            content: Some(Body {
                text: Text::html(text),
                ..Body::default()
            }),
            title: Some(Text::plain("t")),
            ..Entry::default()
        };
        let (raw, content) = (Digest::of(text.as_bytes()), content_digest(&entry, by));
        ParsedEntry {
            key: Key::Id("a".into()),
            name: None,
            entry: Arc::new(entry),
            digests: ItemDigests {
                raw,
                content,
                version: digest_version(by),
            },
        }
    };
    let mut store = Held::default();
    let mut old = read(held, None);
    old.digests.version = version;
    store.show(&[old], &[]);
    let new = read(content, profile.as_deref());
    let seen = Observation {
        entries: vec![ObservedEntry::Read(Box::new(new))],
        profile,
        ..Observation::default()
    };
    let found = |key: KeyHash| {
        store
            .keys
            .get(&key)
            .map(|id| (key, store.items[id].clone()))
    };
    let items = keys_needed(NS, &store.last, &seen)
        .into_iter()
        .filter_map(found)
        .collect();
    let known = Known {
        window: store.last.clone(),
        items,
        ..Known::default()
    };
    reconcile(NS, &known, &seen, &ProofPolicy::default(), NOW)
        .changes
        .len()
}

#[test]
fn new_scrubbers_are_no_edit_and_hide_none() {
    // POLLING 1.3: a digest of other scrubbers, or of none, is not compared.
    let pixel = |n: u32| format!("Rain.<img src=\"http://feeds.feedburner.com/~r/b/~4/{n}\"/>");
    for version in [1, 7] {
        assert_eq!(
            after_a_change_of_scrubbers(&pixel(1), version, &pixel(2), "wordpress"),
            0
        );
        assert_eq!(
            after_a_change_of_scrubbers(&pixel(1), version, &pixel(2), "generic"),
            0
        );
        assert_eq!(
            after_a_change_of_scrubbers(&pixel(1), version, "Snow.", "wordpress"),
            1
        );
    }
    assert_eq!(
        after_a_change_of_scrubbers(&pixel(1), 1, &pixel(2), "no such profile"),
        1
    );
}
