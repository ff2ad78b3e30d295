//! From a sliced document to an observation: which entries are what they were, and which must be
//! parsed; not what the parsed ones change.

use super::{Observation, ObservedEntry, ParsedEntry, WindowEntry, WindowState};
use crate::{
    absence::Coverage,
    item::{ItemDigests, ItemId},
};
use everfeed_adapters::{
    Digest, Key, Note, RawEntry, SlicedDocument,
    platforms::{Profile, content_digest, digest_version},
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// Compares a document with what is remembered of the last one and parses what is new. An entry of
/// the same bytes is not parsed again unless a deletion names it, whose date must be compared with
/// the entry's, or its key occurs twice in the document, where the latest must win every time, or a
/// form of it is held back, beside which it must be laid. What `profile` scrubs is in no content
/// digest.
pub fn observe(
    last: &WindowState,
    document: &SlicedDocument,
    profile: Option<Arc<Profile>>,
    class: Coverage,
) -> Observation {
    let held: HashSet<ItemId> = last.deferred.iter().map(|held| held.id).collect();
    let settled = last.entries.iter().filter(|row| !held.contains(&row.id));
    let known: HashMap<Digest, &WindowEntry> = settled.map(|row| (row.raw, row)).collect();
    let deleted: HashSet<String> = document
        .deletions
        .iter()
        .map(|deletion| Key::Id(deletion.reference.clone()).stripped())
        .collect();
    let mut times: HashMap<&Key, usize> = HashMap::new();
    document
        .entries
        .iter()
        .for_each(|entry| *times.entry(&entry.key).or_default() += 1);
    let is_plain =
        |entry: &RawEntry| times[&entry.key] == 1 && !deleted.contains(&entry.key.stripped());

    let mut notes = Vec::new();
    let entries = document
        .entries
        .iter()
        .map(|entry| match known.get(&entry.raw) {
            Some(row) if is_plain(entry) => ObservedEntry::Same(**row),
            _ => ObservedEntry::Read(Box::new(read(entry, profile.as_deref(), &mut notes))),
        });
    let entries = entries.collect();
    let deletions = document.deletions.clone();
    Observation {
        entries,
        deletions,
        coverage: class,
        profile,
        notes,
        ..Observation::default()
    }
}

fn read(raw: &RawEntry, profile: Option<&Profile>, notes: &mut Vec<Note>) -> ParsedEntry {
    let (entry, of_entry) = raw.parse();
    notes.extend(of_entry);
    let content = content_digest(&entry, profile);
    let seen = ItemDigests {
        raw: raw.raw,
        content,
        version: digest_version(profile),
    };
    ParsedEntry {
        key: raw.key.clone(),
        name: raw.address().map(str::to_owned),
        entry: Arc::new(entry),
        digests: seen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{item::KeyHash, reconcile::DeferredEdit, stamp::Stamp};
    use everfeed_adapters::{Hints, slice};

    /// An RSS document of these items: guid and title.
    fn document(items: &[(&str, &str)], rest: &str) -> SlicedDocument {
        let item = |(guid, title): &(&str, &str)| {
            format!("<item><guid>{guid}</guid><title>{title}</title></item>")
        };
        let items: String = items.iter().map(item).collect();
        let ns = "xmlns:at=\"http://purl.org/atompub/tombstones/1.0\"";
        let text = format!(
            "<rss version=\"2.0\" {ns}><channel><title>t</title>{items}{rest}</channel></rss>"
        );
        slice(text.as_bytes(), &Hints::default()).unwrap()
    }

    fn window(document: &SlicedDocument) -> Vec<WindowEntry> {
        let row = |(at, entry): (u8, &RawEntry)| WindowEntry {
            key: KeyHash([at; 16]),
            id: ItemId([at; 10]),
            raw: entry.raw,
            dated: None,
            tombstone_count: 0,
            is_weak: false,
            changed_polls: 0,
            changing_since: None,
        };
        (0..).zip(&document.entries).map(row).collect()
    }

    /// Checks each entry: `=` and its window entry, or its title as parsed.
    fn check(window: &[WindowEntry], document: &SlicedDocument, expect: &[&str]) {
        let last = WindowState {
            entries: window.to_vec(),
            ..WindowState::default()
        };
        let seen = observe(&last, document, None, Coverage::Unconditional);
        let told: Vec<String> = seen
            .entries
            .iter()
            .map(|sighting| match sighting {
                ObservedEntry::Same(row) => format!("={}", row.id.0[0]),
                ObservedEntry::Read(reading) => {
                    assert_eq!(reading.digests.content, reading.entry.digest());
                    reading.entry.title.as_ref().unwrap().value.clone()
                }
            })
            .collect();
        assert_eq!(told, expect);
    }

    #[test]
    fn only_new_and_changed_entries_are_parsed() {
        let old = window(&document(&[("b", "B"), ("a", "A")], ""));
        check(
            &old,
            &document(&[("c", "C"), ("b", "B!"), ("a", "A")], ""),
            &["C", "B!", "=1"],
        );
        check(&[], &document(&[("b", "B"), ("a", "A")], ""), &["B", "A"]);
        check(
            &old,
            &document(&[("a", "A"), ("b", "B")], ""),
            &["=1", "=0"],
        );
    }

    #[test]
    fn an_entry_that_a_deletion_names_is_parsed_although_it_is_the_same() {
        let old = window(&document(&[("http://x/b", "B"), ("a", "A")], ""));
        let gone = "<at:deleted-entry ref=\"https://x/b\" when=\"2020-01-01T00:00:00Z\"/>";
        let new = document(&[("http://x/b", "B"), ("a", "A")], gone);
        assert_eq!(new.deletions.len(), 1);
        check(&old, &new, &["B", "=1"]);
    }

    #[test]
    fn an_entry_of_which_a_form_is_held_back_is_parsed_although_it_is_the_same() {
        let document = document(&[("b", "B"), ("a", "A")], "");
        let mut last = WindowState {
            entries: window(&document),
            ..WindowState::default()
        };
        let told = |last: &WindowState| {
            let seen = observe(last, &document, None, Coverage::Unconditional);
            seen.entries
                .iter()
                .map(|sighting| matches!(sighting, ObservedEntry::Same(_)))
                .collect::<Vec<_>>()
        };
        assert_eq!(told(&last), [true, true]);
        let WindowEntry { key, id, .. } = last.entries[1];
        let (until, entry, seen) = (Stamp::MAX, Arc::default(), ItemDigests::default());
        last.deferred.push(DeferredEdit {
            id,
            key,
            until,
            entry,
            published_us: None,
            digests: seen,
            stretches: Vec::new(),
            shown_since: None,
            shown_polls: 0,
        });
        assert_eq!(told(&last), [true, false]);
    }

    #[test]
    fn of_a_key_that_occurs_twice_every_entry_is_parsed() {
        let old = window(&document(&[("a", "A1"), ("a", "A2"), ("b", "B")], ""));
        check(
            &old,
            &document(&[("a", "A1"), ("a", "A2"), ("b", "B")], ""),
            &["A1", "A2", "=2"],
        );
    }
}
