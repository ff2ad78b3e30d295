//! Entries that stand in archives only, beside those of a live document; not the pages that they
//! come from.

use crate::feed::{
    absence::{Coverage, ProofPolicy},
    archive::{ArchivedPage, merge, settle_known},
    item::KeyHash,
    reconcile::{
        Decisions, Known, Observation, ObservedEntry, ParsedEntry, WindowState, keys_needed,
        reconcile, witness_keys,
    },
    schedule::Repeat,
    stamp::Stamp,
};
use everfeed_adapters::{Deletion, platforms::Profile};
use std::sync::Arc;

/// Entries older than a document, which stand in archives only.
pub struct Older {
    readings: Vec<(Stamp, ParsedEntry)>,
    deletions: Vec<Deletion>,
}

impl Older {
    /// Changes by these entries.
    pub fn decide(
        self,
        namespace: &str,
        known: &Known,
        profile: Option<Arc<Profile>>,
        policy: &ProofPolicy,
        now: Stamp,
    ) -> Decisions {
        if self.readings.is_empty() && self.deletions.is_empty() {
            let (last, id_rule) = (known.window.clone(), known.id_rule);
            return Decisions {
                window: last,
                id_rule,
                ..Decisions::default()
            };
        }
        let held = |(_, reading): &(Stamp, ParsedEntry)| {
            known
                .items
                .get(&KeyHash::of(namespace, &reading.key.stripped()))
                .map(|item| item.id)
        };
        // Of the entries that change nothing the items are shown all the same.
        let elsewhere = self.readings.iter().filter_map(held).collect();
        let entries = settle_known(namespace, known, self.readings);
        // What an archive says is no change from one poll to the next.
        let previous = Repeat::Unchanged;
        let deletions = self.deletions;
        let coverage = Coverage::Partial;
        let seen = Observation {
            entries,
            deletions,
            coverage,
            profile,
            previous,
            elsewhere,
            ..Observation::default()
        };
        reconcile(namespace, known, &seen, policy, now)
    }

    /// As it would be observed.
    fn observation(&self) -> Observation {
        let read =
            |(_, reading): &(Stamp, ParsedEntry)| ObservedEntry::Read(Box::new(reading.clone()));
        let entries = self.readings.iter().map(read).collect();
        let deletions = self.deletions.clone();
        Observation {
            entries,
            deletions,
            coverage: Coverage::Partial,
            ..Observation::default()
        }
    }
}

/// Entries of archives that a live document does not hold.
pub fn older(live: &mut Observation, pages: &[ArchivedPage]) -> Older {
    let deletions = pages
        .iter()
        .flat_map(|page| page.deletions.iter().cloned())
        .collect();
    Older {
        readings: merge(live, pages.to_vec()),
        deletions,
    }
}

/// The keys that deciding on it needs.
pub fn keys(namespace: &str, last: &WindowState, older: &Older) -> Vec<KeyHash> {
    if older.readings.is_empty() && older.deletions.is_empty() {
        return Vec::new();
    }
    keys_needed(namespace, last, &older.observation())
}

/// The witnesses of those of its entries whose keys are unknown.
pub fn witnesses(namespace: &str, known: &Known, older: &Older) -> Vec<KeyHash> {
    if older.readings.is_empty() {
        return Vec::new();
    }
    witness_keys(namespace, known, &older.observation())
}
