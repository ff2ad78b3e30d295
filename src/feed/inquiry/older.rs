//! Entries that stand in archives only, beside those of a live document; not the pages that they
//! come from.

use super::DecisionBasis;
use crate::{
    absence::{Coverage, ProofPolicy},
    archive::{ArchivedPage, merge, settle_known},
    item::KeyHash,
    reconcile::{Decisions, Observation, ObservedEntry, ParsedEntry, reconcile},
    schedule::Repeat,
    stamp::Stamp,
};
use everfeed_adapters::{Deletion, platforms::Profile};
use std::sync::Arc;

/// Entries older than a document, which stand in archives only.
#[derive(Clone, Debug)]
pub struct Older {
    readings: Vec<(Stamp, ParsedEntry)>,
    deletions: Vec<Deletion>,
}

impl Older {
    /// Entries of archives that a live document does not hold. Of those that it does hold it gets
    /// the later version.
    pub(super) fn beside(live: &mut Observation, pages: &[ArchivedPage]) -> Self {
        let deletions = pages
            .iter()
            .flat_map(|page| page.deletions.iter().cloned())
            .collect();
        Self {
            readings: merge(live, pages.to_vec()),
            deletions,
        }
    }

    /// Changes by these entries.
    pub fn decide(
        self,
        basis: &DecisionBasis,
        profile: Option<Arc<Profile>>,
        policy: &ProofPolicy,
        now: Stamp,
    ) -> Decisions {
        let DecisionBasis { record, known } = basis;
        let namespace = &record.ids.namespace;
        if self.readings.is_empty() && self.deletions.is_empty() {
            return Decisions::none(known);
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
    pub(super) fn observation(&self) -> Observation {
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
