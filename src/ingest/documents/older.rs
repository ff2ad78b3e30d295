//! Entries that stand in archives only, beside those of a live document, and the staged pages that
//! they come from; not the walk that read them.

use super::pages::{inflate, window};
use crate::{
    feed::{
        absence::{Coverage, ProofPolicy},
        archive::{
            ArchiveWalk, ArchivedPage, History, LastWalk, StagedBody, StagedWalk, merge,
            settle_known,
        },
        item::KeyHash,
        reconcile::{
            Decisions, Known, Observation, ObservedEntry, ParsedEntry, WindowState, keys_needed,
            observe, reconcile, witness_keys,
        },
        record::FeedRecord,
        schedule::{Failure, Repeat},
        stamp::Stamp,
    },
    ingest::compute::compute,
    store::Archives,
};
use everfeed_adapters::{Deletion, platforms::Profile};
use std::sync::Arc;
use tracing::warn;

/// Archives that a commit takes in besides its document.
#[derive(Clone, Default)]
pub(in crate::ingest) struct Import {
    /// Staged pages, parsed, newest first.
    pub(in crate::ingest) pages: Arc<Vec<ArchivedPage>>,
    /// Their part of the commit.
    pub(in crate::ingest) said: Option<Archives>,
}

/// Entries older than a document, which stand in archives only.
pub(in crate::ingest) struct Older {
    readings: Vec<(Stamp, ParsedEntry)>,
    deletions: Vec<Deletion>,
}

impl Older {
    /// Changes by these entries.
    pub(in crate::ingest) fn decide(
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
pub(in crate::ingest) fn older(live: &mut Observation, pages: &[ArchivedPage]) -> Older {
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
pub(in crate::ingest) fn keys(namespace: &str, last: &WindowState, older: &Older) -> Vec<KeyHash> {
    if older.readings.is_empty() && older.deletions.is_empty() {
        return Vec::new();
    }
    keys_needed(namespace, last, &older.observation())
}

/// The witnesses of those of its entries whose keys are unknown.
pub(in crate::ingest) fn witnesses(namespace: &str, known: &Known, older: &Older) -> Vec<KeyHash> {
    if older.readings.is_empty() {
        return Vec::new();
    }
    witness_keys(namespace, known, &older.observation())
}

/// Staged pages, parsed, and what becomes of them.
pub(in crate::ingest) async fn opened(
    record: &FeedRecord,
    staged: StagedWalk,
    profile: Option<Arc<Profile>>,
    now: Stamp,
) -> Result<Import, Failure> {
    let (namespace, before) = (
        record.ids.namespace.clone(),
        record.completeness.history.clone(),
    );
    compute(move || {
        let history = before.after(staged.walk.as_ref().map_or(History::Unknown, ArchiveWalk::history));
        let walked = staged.walk.as_ref().filter(|walk| walk.is_done()).map(|walk| LastWalk::of(walk, now));
        let said = Some(Archives { history, walked, unstage: Some(staged.unstage()) });
        // Each is let go of as soon as it is parsed.
        let pages = staged.pages.into_iter().filter_map(|mut page| {
            let StagedBody::Waiting(deflated) = std::mem::take(&mut page.content) else { return None };
            let document = inflate(&deflated).and_then(|body| window(&page, &body));
            let Some(document) = document else {
                warn!(feed.namespace = %namespace, "A staged page of archives could not be read back");
                return Some(ArchivedPage::default());
            };
            let seen = observe(&WindowState::default(), &document, profile.clone(), Coverage::Partial);
            let read = |sighting| match sighting {
                ObservedEntry::Read(reading) => Some(*reading),
                ObservedEntry::Same(_) => None,
            };
            let readings = seen.entries.into_iter().filter_map(read).collect();
            Some(ArchivedPage { read_at: page.read_at, readings, deletions: seen.deletions })
        });
        Import { pages: Arc::new(pages.collect()), said }
    })
    .await
}
