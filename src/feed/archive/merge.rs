//! Archives and the live document as one: of an entry that stands in several of them one is taken
//! (H-25), and what they change is put into one chronological order (H-8). Presence only: archives
//! say nothing by what they lack.

use crate::{
    item::{Content, KeyHash, Reason},
    moment::Moment,
    reconcile::{Change, Known, Observation, ObservedEntry, ParsedEntry, chronology},
    stamp::Stamp,
};
use everfeed_adapters::Deletion;
use std::collections::{HashMap, HashSet};

#[cfg(test)]
mod tests;

/// A page of archives, parsed.
#[derive(Clone, Debug, Default)]
pub struct ArchivedPage {
    /// Time at which it was read.
    pub read_at: Stamp,
    /// Its entries in document order.
    pub readings: Vec<ParsedEntry>,
    /// Deletions that it names.
    pub deletions: Vec<Deletion>,
}

/// Place of the version of an entry that counts so far.
#[derive(Clone, Copy)]
struct VersionPosition {
    document: usize,
    at: usize,
}

/// The entries of archives that the live document does not hold, each once, newest page first: the
/// latest updated version, of equals the one of the newest document. One that archives hold in a
/// later version than the live document takes its place there, with the live one's bytes as what
/// the next poll is compared with.
pub fn merge(live: &mut Observation, pages: Vec<ArchivedPage>) -> Vec<(Stamp, ParsedEntry)> {
    let shared = shared(live, &pages);
    let name = |reading: &ParsedEntry| {
        let stripped = reading.key.stripped();
        let Some(link) = reading.entry.permalink() else {
            return stripped;
        };
        if !shared.contains(&stripped) {
            return stripped;
        }
        let published = reading.entry.published.as_ref();
        let published = published.map_or("", |date| date.raw.as_str());
        format!("{stripped}\n{link}\n{published}")
    };
    let mut slots: HashMap<String, VersionPosition> = HashMap::new();
    for (at, sighting) in live.entries.iter().enumerate() {
        if let ObservedEntry::Read(reading) = sighting {
            slots
                .entry(name(reading))
                .or_insert(VersionPosition { document: 0, at });
        }
    }
    let mut older: Vec<(Stamp, ParsedEntry)> = Vec::new();
    for (document, page) in (1..).zip(pages) {
        for reading in page.readings {
            let Some(slot) = slots.get(&name(&reading)).copied() else {
                slots.insert(
                    name(&reading),
                    VersionPosition {
                        document,
                        at: older.len(),
                    },
                );
                older.push((page.read_at, reading));
                continue;
            };
            if slot.document == document {
                // Twice in one document: which of them counts is decided where any document's
                // entries are bound.
                older.push((page.read_at, reading));
                continue;
            }
            let held = match (slot.document, live.entries.get_mut(slot.at)) {
                (0, Some(ObservedEntry::Read(held))) => held,
                (0, _) => continue,
                _ => &mut older[slot.at].1,
            };
            if chronology::touched(&reading.entry) > chronology::touched(&held.entry) {
                let raw = if slot.document == 0 {
                    held.digests.raw
                } else {
                    reading.digests.raw
                };
                held.digests = crate::item::ItemDigests {
                    raw,
                    ..reading.digests
                };
                held.entry = reading.entry;
            }
        }
    }
    older
}

/// Keys that several entries of one document have: those are told apart by their links.
fn shared(live: &Observation, pages: &[ArchivedPage]) -> HashSet<String> {
    let of_live = live.entries.iter().filter_map(ObservedEntry::parsed);
    let mut shared = repeated(of_live.map(|reading| reading.key.stripped()));
    for page in pages {
        shared.extend(repeated(
            page.readings.iter().map(|reading| reading.key.stripped()),
        ));
    }
    shared
}

fn repeated(keys: impl Iterator<Item = String>) -> HashSet<String> {
    let mut met = HashSet::new();
    keys.filter(|key| !met.insert(key.clone())).collect()
}

/// Of archives that were read a while ago, what still counts beside what is held by now: an item is
/// only changed by a version that was updated later (H-25), and only brought back by a page that
/// was read after its end, or, when its publisher said that it is deleted, by a version that was
/// updated after that.
pub fn settle_known(
    namespace: &str,
    known: &Known,
    older: Vec<(Stamp, ParsedEntry)>,
) -> Vec<ObservedEntry> {
    let counts = |(read_at, reading): &(Stamp, ParsedEntry)| {
        let Some(item) = known
            .items
            .get(&KeyHash::of(namespace, &reading.key.stripped()))
        else {
            return true;
        };
        let touched = chronology::touched(&reading.entry);
        match &item.content {
            content if content.is_forgotten() => false,
            Content::Live(held) => touched > chronology::touched(held),
            // Archives are not written again when their publisher says elsewhere that an entry is
            // deleted (RFC 6721).
            Content::Gone { reason, .. } => {
                *read_at > item.modified
                    && (*reason != Reason::Explicit || touched > Some(item.modified.into()))
            }
        }
    };
    older
        .into_iter()
        .filter(counts)
        .map(|(_, reading)| ObservedEntry::Read(Box::new(reading)))
        .collect()
}

/// Changes by archives and the live document, oldest first, tombstones last.
pub fn chronological(older: Vec<Change>, newer: Vec<Change>) -> Vec<Change> {
    let settled: HashSet<_> = newer.iter().map(Change::id).collect();
    let older = older
        .into_iter()
        .filter(|change| !settled.contains(&change.id()));
    let mut before = Moment::MIN;
    let mut dated: Vec<(Moment, Change)> = older
        .chain(newer)
        .map(|change| {
            match &change {
                Change::Put(put) => before = chronology::date(&put.entry).unwrap_or(before),
                Change::Delete(_) => return (Moment::MAX, change),
            }
            (before, change)
        })
        .collect();
    dated.sort_by_key(|(date, _)| *date);
    dated.into_iter().map(|(_, change)| change).collect()
}
