//! Inquiries, each driven against a feed that is a map.

use super::*;
use crate::{
    absence::{Coverage, ProofPolicy},
    item::{Content, ItemDigests, ItemId},
    reconcile::{Change, Decisions, ObservedEntry, ParsedEntry, reconcile},
    record::FeedNo,
    stamp::Stamp,
};
use everfeed_adapters::{Date, Deletion, Digest, Entry, Key, Link, Text};
use proptest::prelude::*;
use std::collections::HashMap;

const NOW: Stamp = Stamp::from_secs(1_700_000_000);

/// A feed in its simplest form.
struct HeldFeed {
    basis: DecisionBasis,
    keys: HashMap<KeyHash, Arc<Item>>,
    witnesses: HashMap<KeyHash, Vec<Arc<Item>>>,
}

/// Answer of a driver to one question: how many at once, and from which end.
#[derive(Clone, Copy, Debug)]
struct Driving {
    at_once: usize,
    backwards: bool,
}

const ALL_AT_ONCE: Driving = Driving {
    at_once: usize::MAX,
    backwards: false,
};

impl HeldFeed {
    fn new() -> Self {
        let record = FeedRecord::new(FeedNo(1), "blog", "example.org/feed");
        let known = Known {
            rev: record.rev,
            ..Known::default()
        };
        Self {
            basis: DecisionBasis { record, known },
            keys: HashMap::new(),
            witnesses: HashMap::new(),
        }
    }

    /// The same after a first document of these entries.
    fn with(entries: &[ParsedEntry]) -> Self {
        let mut held = Self::new();
        let decisions = held.decide(&document(entries), &[], ALL_AT_ONCE).0;
        for change in decisions.changes {
            let Change::Put(put) = change else { continue };
            let item = Arc::new(Item {
                id: put.id,
                iri: put.iri,
                modified: NOW,
                created: NOW,
                revived: None,
                published_us: put.published_us,
                content: Content::Live(put.entry),
                tombstone_count: 0,
                publisher_id: None,
                digests: put.digests,
            });
            for key in put.keys {
                held.keys.insert(key, Arc::clone(&item));
            }
            for witness in put.witnesses {
                let sharing = held.witnesses.entry(witness).or_default();
                sharing.push(Arc::clone(&item));
            }
            held.basis.record.items.total += 1;
        }
        held.basis.known.window = decisions.window;
        held.basis.known.id_rule = decisions.id_rule;
        held
    }

    /// Drives an inquiry to its end; tells what was asked, one letter a question.
    fn answer(&self, mut inquiry: Inquiry, driving: Driving) -> (Facts, String) {
        let mut asked = String::new();
        let chosen = |mut keys: Vec<KeyHash>| {
            if driving.backwards {
                keys.reverse();
            }
            keys.truncate(driving.at_once);
            keys
        };
        loop {
            inquiry = match inquiry.next() {
                Needs::Keys(asking, keys) => {
                    asked.push('k');
                    let keys = chosen(keys);
                    let found = |key: &KeyHash| Some((*key, Arc::clone(self.keys.get(key)?)));
                    let found = Known {
                        rev: self.basis.record.rev,
                        items: keys.iter().filter_map(found).collect(),
                        ..Known::default()
                    };
                    asking.with_items(&keys, found)
                }
                Needs::Witnesses(asking, witnesses) => {
                    asked.push('w');
                    let witnesses = chosen(witnesses);
                    let found = witnesses.iter().filter_map(|key| self.witnesses.get(key));
                    let found = found.flatten().cloned().collect();
                    asking.with_lookalikes(&witnesses, self.basis.record.rev, found)
                }
                Needs::NewBasis => panic!("every answer is of the revision asked"),
                Needs::Decision(facts) => return (facts, asked),
            }
        }
    }

    /// Decisions on a document and on what pages hold besides, and what was asked for them.
    fn decide(
        &self,
        live: &Observation,
        pages: &[ArchivedPage],
        driving: Driving,
    ) -> (Decisions, Decisions, String) {
        let inquiry = Inquiry::new(self.basis.clone(), live.clone(), pages);
        let (Facts { basis, live, older }, asked) = self.answer(inquiry, driving);
        let (namespace, policy) = (&basis.record.ids.namespace, ProofPolicy::default());
        let of_live = reconcile(namespace, &basis.known, &live, &policy, NOW);
        let of_older = older.decide(&basis, None, &policy, NOW);
        (of_live, of_older, asked)
    }
}

fn document(entries: &[ParsedEntry]) -> Observation {
    let read = |entry: &ParsedEntry| ObservedEntry::Read(Box::new(entry.clone()));
    Observation {
        entries: entries.iter().map(read).collect(),
        coverage: Coverage::Unconditional,
        ..Observation::default()
    }
}

fn page(entries: Vec<ParsedEntry>, deleted: Option<u8>) -> ArchivedPage {
    let deletion = |id: u8| Deletion {
        reference: format!("id-{id}"),
        ..Deletion::default()
    };
    ArchivedPage {
        read_at: NOW,
        readings: entries,
        deletions: deleted.map(deletion).into_iter().collect(),
    }
}

/// An entry: id, link, title, day of its publication (0: undated).
fn entry(id: u8, link: u8, title: u8, day: u8) -> ParsedEntry {
    let id = format!("id-{id}");
    let date = |day: u8| Date {
        raw: format!("day {day}"),
        at_us: Some(1_600_000_000_000_000 + i64::from(day) * 86_400_000_000),
    };
    let entry = Entry {
        id: Some(id.clone()),
        links: vec![Link {
            href: format!("http://example.org/{link}"),
            rel: "alternate".into(),
            ..Link::default()
        }],
        title: Some(Text::plain(format!("The post of the number {title}"))),
        published: (day > 0).then(|| date(day)),
        ..Entry::default()
    };
    let raw = Digest::of(format!("{entry:?}").as_bytes());
    ParsedEntry {
        key: Key::Id(id),
        name: None,
        entry: Arc::new(entry),
        digests: ItemDigests {
            raw,
            content: raw,
            version: 1,
        },
    }
}

fn ids(decisions: &Decisions) -> Vec<ItemId> {
    decisions.changes.iter().map(Change::id).collect()
}

#[test]
fn a_feed_that_holds_nothing_is_asked_for_keys_only() {
    let (decisions, _, asked) =
        HeldFeed::new().decide(&document(&[entry(1, 1, 1, 1)]), &[], ALL_AT_ONCE);
    assert_eq!((ids(&decisions).len(), asked.as_str()), (1, "k"));
}

#[test]
fn a_document_of_known_entries_needs_no_witness() {
    let held = HeldFeed::with(&[entry(1, 1, 1, 1)]);
    let (decisions, _, asked) = held.decide(&document(&[entry(1, 1, 1, 1)]), &[], ALL_AT_ONCE);
    assert_eq!((ids(&decisions).len(), asked.as_str()), (0, "k"));
}

#[test]
fn a_document_that_shows_nothing_anew_needs_nothing() {
    let held = HeldFeed::with(&[entry(1, 1, 1, 1)]);
    let rows = held.basis.known.window.entries.iter();
    let same = Observation {
        entries: rows.map(|row| ObservedEntry::Same(*row)).collect(),
        ..document(&[])
    };
    assert_eq!(held.decide(&same, &[], ALL_AT_ONCE).2, "");
}

#[test]
fn a_post_under_another_id_is_found_by_its_witnesses() {
    let held = HeldFeed::with(&[entry(1, 1, 1, 1), entry(2, 2, 2, 2)]);
    let new = document(&[entry(2, 2, 2, 2), entry(7, 1, 1, 1)]);
    let (decisions, _, asked) = held.decide(&new, &[], ALL_AT_ONCE);
    assert_eq!((decisions.renamed, asked.as_str()), (1, "kw"));
    let in_archives = [page(vec![entry(7, 1, 1, 1)], None)];
    let (_, older, asked) = held.decide(&Observation::default(), &in_archives, ALL_AT_ONCE);
    assert_eq!((older.renamed, asked.as_str()), (1, "kw"));
}

#[test]
fn an_answer_of_another_revision_asks_for_a_new_basis() {
    let held = HeldFeed::with(&[entry(1, 1, 1, 1)]);
    let begin = || Inquiry::new(held.basis.clone(), document(&[entry(7, 1, 1, 1)]), &[]);
    let Needs::Keys(asking, keys) = begin().next() else {
        panic!("keys come first")
    };
    let moved = Known {
        rev: 9,
        ..Known::default()
    };
    assert!(matches!(
        asking.clone().with_items(&keys, moved).next(),
        Needs::NewBasis
    ));
    let Needs::Witnesses(asking, witnesses) = asking.with_items(&keys, Known::default()).next()
    else {
        panic!("the key is unknown")
    };
    let moved = asking.with_lookalikes(&witnesses, 9, Vec::new());
    assert!(matches!(moved.next(), Needs::NewBasis));
}

fn some_entries() -> impl Strategy<Value = Vec<ParsedEntry>> {
    let one = (0..6_u8, 0..6_u8, 0..6_u8, 0..4_u8);
    let one = one.prop_map(|(id, link, title, day)| entry(id, link, title, day));
    proptest::collection::vec(one, 0..8)
}

proptest! {
    #[test]
    fn the_decision_is_the_same_in_whatever_order_and_parts_the_answers_come(
        before in some_entries(),
        shown in some_entries(),
        archived in proptest::collection::vec((some_entries(), proptest::option::of(0..6_u8)), 0..3),
        at_once in 1..5_usize,
        backwards in any::<bool>(),
    ) {
        let held = HeldFeed::with(&before);
        let (live, pages) = (document(&shown), archived.into_iter());
        let pages: Vec<_> = pages.map(|(entries, gone)| page(entries, gone)).collect();
        let (of_live, of_older, _) = held.decide(&live, &pages, ALL_AT_ONCE);
        let driving = Driving { at_once, backwards };
        let (again, older_again, _) = held.decide(&live, &pages, driving);
        prop_assert_eq!(format!("{of_live:?}"), format!("{again:?}"));
        prop_assert_eq!(format!("{of_older:?}"), format!("{older_again:?}"));
    }
}
