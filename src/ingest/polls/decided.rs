//! The commit that a document, or the lack of one, comes to; pure, and not the reading of it.

use super::poll_end::ChangeCounts;
use crate::{
    feed::{
        absence::{Coverage, ProofPolicy, WindowEvent},
        archive::chronological,
        different_feed::{DifferentFeed, different_feed, is_planet},
        head_caps::NOTE_BYTES_MAX,
        inquiry::DecisionBasis,
        observation_record::ObservationRecord,
        part_caps::cut_to,
        reconcile::{
            Change, Decisions, Observation, PutKind, WindowState, join, reconcile, reconcile_again,
            release, unshown_dates,
        },
        record::FeedRecord,
        schedule::{PollState, Repeat},
        stamp::Stamp,
    },
    ingest::{DeletionSettings, documents::Sliced},
    store::{Archives, Commit},
};
use everfeed_adapters::{Metadata, Note, platforms::Profile};
use std::{collections::HashSet, sync::Arc};

/// Decisions on a document, ready to be committed.
pub(super) struct Decided {
    record: FeedRecord,
    decisions: Decisions,
    /// True when the window stays as it was.
    keeps_last: bool,
    metadata: Option<Arc<Metadata>>,
    makes_ready: bool,
    /// True when the next poll of the same document would decide the same again.
    is_repeatable: bool,
    /// True when validators hide deletions, so that unconditional requests are worth more here than
    /// elsewhere.
    hides_deletions: bool,
    /// True when documents can prove anything by what they lack.
    can_prove: bool,
    /// Change of the feed's archives.
    archives: Option<Archives>,
    /// Record of it for the operator; `None` when there was no document.
    observed: Option<ObservationRecord>,
    /// The other feed that the document belongs to, if it does.
    pub(super) different_feed: Option<DifferentFeed>,
}

impl Decided {
    pub(super) fn new(
        basis: DecisionBasis,
        seen: &Observation,
        sliced: &Sliced,
        deletions: &DeletionSettings,
        now: Stamp,
    ) -> Self {
        let DecisionBasis { record, known } = basis;
        let metadata = &sliced.window.metadata;
        let is_delta = sliced.coverage == Coverage::Delta;
        let policy = deletions.policy_for(metadata.is_complete(), sliced.profile.as_deref());
        let policy = ProofPolicy {
            ordered: !is_planet(&sliced.window),
            ..policy
        };
        let mut decisions = reconcile(&record.ids.namespace, &known, seen, &policy, now);
        let (mut notes, mut partial) = (seen.notes.clone(), sliced.partial);
        if !policy.ordered {
            partial = partial.or(Some(
                "a planet of several sites: a post that one of them removes is missing from the middle",
            ));
        }
        if seen.coverage == Coverage::Conditional && known.window.absence.has_caught_conditional() {
            partial = Some("answers to conditional requests have proven to be parts");
        }
        if !seen.coverage.is_partial()
            && decisions.misses_something()
            && let Some(more) = sliced.overlooked()
        {
            let seen = Observation {
                coverage: Coverage::Partial,
                ..seen.clone()
            };
            decisions = reconcile(&record.ids.namespace, &known, &seen, &policy, now);
            notes.push(Note::Other(format!(
                "another reader finds {more} more entries in the document"
            )));
            partial = Some("another reader finds more entries in it");
        }
        if is_delta {
            decisions.window.entries.clone_from(&known.window.entries);
        }
        notes.extend(unshown_dates(seen, now));
        let remark = remark(sliced.window.notes.iter().chain(&notes));
        let observed = ObservationRecord {
            partial: partial.map(str::to_owned),
            remark,
            ..ObservationRecord::of(&decisions, seen.entries.len(), now)
        };
        let overlaps = !decisions.events.contains(&WindowEvent::Gap);
        let different_feed = if overlaps {
            None
        } else {
            different_feed(&record.metadata, metadata)
        };
        let archives = capped_history(&record, &decisions.window);
        let speaks_anew =
            !is_delta && is_said_otherwise(&record.metadata, metadata, sliced.profile.as_deref());
        Self {
            keeps_last: decisions.window == known.window,
            // A hub says once that an item is deleted.
            is_repeatable: seen.deletion_hints.is_empty()
                && is_repeatable(&known.window, &decisions.window),
            metadata: speaks_anew.then(|| Arc::new(metadata.clone())),
            hides_deletions: sliced.hides_deletions(),
            can_prove: decisions
                .window
                .absence
                .can_prove(&decisions.window.absence.believed(&policy, now)),
            different_feed,
            makes_ready: !is_delta && !record.is_ready(),
            archives,
            observed: Some(observed),
            record,
            decisions,
        }
    }

    /// A document without any entry after one with some proves nothing, so it changes nothing.
    pub(super) fn emptied(
        basis: DecisionBasis,
        sliced: &Sliced,
        deletions: &DeletionSettings,
        now: Stamp,
    ) -> Self {
        let DecisionBasis { record, known } = &basis;
        let held = known.window.entries.len();
        let remark = format!("the document holds no entries; the one before held {held}");
        let nothing = Observation {
            coverage: sliced.coverage,
            ..Observation::default()
        };
        let policy = deletions.policy(record.metadata.is_complete());
        let mut decisions = reconcile(&record.ids.namespace, known, &nothing, &policy, now);
        decisions.window.entries.clone_from(&known.window.entries);
        let hides_deletions = sliced.hides_deletions();
        let observed = ObservationRecord {
            remark: Some(remark),
            ..ObservationRecord::of(&decisions, 0, now)
        };
        let of_document = Self::unheaded(basis, decisions, Some(observed));
        Self {
            hides_deletions,
            ..of_document
        }
    }

    /// The last document once more, as the answer to an unconditional request.
    pub(super) fn again(basis: DecisionBasis, deletions: &DeletionSettings, now: Stamp) -> Self {
        let policy = deletions.policy(basis.record.metadata.is_complete());
        let decisions = reconcile_again(&basis.known, &policy, now);
        let entries = basis.known.window.entries.len();
        let observed = ObservationRecord {
            again: true,
            ..ObservationRecord::of(&decisions, entries, now)
        };
        Self::unheaded(basis, decisions, Some(observed))
    }

    /// Commit of deferred edits, without a document.
    pub(super) fn released(basis: DecisionBasis, poll: Repeat, now: Stamp) -> Self {
        let decisions = release(&basis.known, poll, now);
        Self::unheaded(basis, decisions, None)
    }

    /// Decisions of a document that says nothing of the feed.
    fn unheaded(
        basis: DecisionBasis,
        decisions: Decisions,
        observed: Option<ObservationRecord>,
    ) -> Self {
        let DecisionBasis { record, known } = basis;
        Self {
            keeps_last: decisions.window == known.window,
            is_repeatable: is_repeatable(&known.window, &decisions.window),
            decisions,
            metadata: None,
            hides_deletions: false,
            can_prove: true,
            makes_ready: false,
            archives: None,
            different_feed: None,
            observed,
            record,
        }
    }

    /// The same, with what older documents change, before and between what this one does.
    pub(super) fn with_older(mut self, mut older: Decisions) -> Self {
        join(&mut older, &self.decisions);
        if !older.changes.is_empty() {
            let newer = std::mem::take(&mut self.decisions.changes);
            self.decisions.changes = chronological(older.changes, newer);
        }
        self.decisions.aliases.extend(older.aliases);
        self.decisions.id_rule = self.decisions.id_rule.max(older.id_rule);
        self
    }

    /// The same, with a word on the feed's archives, if it is a new one.
    pub(super) fn saying(mut self, archives: Option<Archives>) -> Self {
        let says_more = |said: &Archives| {
            said.unstage.is_some()
                || said.walked.is_some()
                || said.history != self.record.completeness.history
        };
        self.archives = archives.filter(says_more).or(self.archives);
        self
    }

    /// True when a walk through the archives comes to its end with it.
    pub(super) fn ends_walk(&self) -> bool {
        self.archives
            .as_ref()
            .is_some_and(|said| said.walked.is_some())
    }

    /// True when the document may show what was forgotten under a name that only the commit tells:
    /// before that it cannot be cut.
    pub(super) fn may_rename_forgotten(&self) -> bool {
        self.record.completeness.has_forgotten && !self.decisions.aliases.is_empty()
    }

    /// True when an unconditional request would prove or clear up something.
    pub(super) fn wants_audit(&self) -> bool {
        self.can_prove && (self.hides_deletions || self.decisions.window.absence.wants_audit())
    }

    /// True where no item changes, and nothing is held back that was not before.
    pub(super) fn changes_nothing(&self) -> bool {
        self.decisions.changes.is_empty() && self.decisions.aliases.is_empty() && self.keeps_last
    }

    /// True while items are missing that are not decided on.
    pub(super) fn has_suspects(&self) -> bool {
        self.decisions.window.absence.suspects().next().is_some()
    }

    /// Time from which on an unconditional answer decides on deleted items that were shown again.
    pub(super) fn agrees_at(&self, now: Stamp) -> Option<Stamp> {
        self.decisions.window.absence.revivals_agree_at(now)
    }

    /// Until when something is held back, if anything is: the first of several moments.
    pub(super) fn deferred_until(&self) -> Option<Stamp> {
        self.decisions
            .window
            .deferred
            .iter()
            .map(|held| held.until)
            .min()
    }

    /// Oddities of the document.
    pub(super) fn remark(&self) -> Option<&str> {
        self.observed.as_ref()?.remark.as_deref()
    }

    pub(super) fn events(&self) -> &[WindowEvent] {
        &self.decisions.events
    }

    pub(super) fn arrived(&self) -> bool {
        let is_added =
            |change: &Change| matches!(change, Change::Put(put) if put.kind == PutKind::Added);
        self.decisions.changes.iter().any(is_added)
    }

    /// Items that it changes, by kind.
    pub(super) fn counts(&self) -> ChangeCounts {
        ChangeCounts::of(&self.decisions.changes)
    }

    pub(super) fn commit(self, poll: &PollState) -> Commit {
        Commit {
            changes: self.decisions.changes,
            aliases: self.decisions.aliases,
            last: (!self.keeps_last).then_some(self.decisions.window),
            metadata: self.metadata,
            id_rule: self.decisions.id_rule,
            ready: self.makes_ready || self.record.is_ready(),
            poll: Some(poll.clone()),
            archives: self.archives,
            is_late: self.is_repeatable,
            observed: self.observed,
            ..Commit::nothing(&self.record)
        }
    }
}

/// The history of a feed that has no more to go by than the word of its documents, if it changes.
fn capped_history(record: &FeedRecord, window: &WindowState) -> Option<Archives> {
    let completeness = &record.completeness;
    let is_by_word = completeness.last_walk.is_none();
    let history = completeness.history.under_cap(window.absence.cap());
    history.filter(|_| is_by_word).map(|history| Archives {
        history,
        ..Archives::default()
    })
}

// Decides: What of a window may be lost with the process?
/// True when nothing is new in a window that later documents do not show again: an edit that waits
/// may be gone from the next one. Digests and confirmations come again.
fn is_repeatable(old: &WindowState, new: &WindowState) -> bool {
    old.deferred == new.deferred
        && old.tombstones == new.tombstones
        && old.corrections == new.corrections
        && old.archive_suspects == new.archive_suspects
}

/// True when a head says anything but other dates and counts: those churn, and what they and the
/// rhythm mean is in the poll state. So does the id with software that writes today's date into it.
fn is_said_otherwise(old: &Metadata, new: &Metadata, profile: Option<&Profile>) -> bool {
    let id_churns = profile.is_some_and(|profile| profile.dates.feed_id_churns);
    let lasting = |metadata: &Metadata| {
        let (updated, published, rhythm, paging) = Default::default();
        let id = metadata.id.clone().filter(|_| !id_churns);
        Metadata {
            id,
            updated,
            published,
            rhythm,
            paging,
            ..metadata.clone()
        }
    };
    lasting(old) != lasting(new)
}

/// Notes told to the operator at most.
const NOTES_MAX: usize = 3;

/// Oddities of a document, in a line.
fn remark<'a>(notes: impl Iterator<Item = &'a Note>) -> Option<String> {
    let mut told: Vec<String> = Vec::new();
    let mut met = HashSet::new();
    for note in notes {
        let mut text = note.to_string();
        cut_to(&mut text, NOTE_BYTES_MAX);
        if met.insert(text.clone()) {
            told.push(text);
        }
    }
    let rest = told.len().saturating_sub(NOTES_MAX);
    told.truncate(NOTES_MAX);
    if rest > 0 {
        told.push(format!("and {rest} more"));
    }
    (!told.is_empty()).then(|| told.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use everfeed_adapters::platforms::Platforms;

    #[test]
    fn a_date_in_the_id_of_the_feed_says_nothing_with_software_that_writes_one() {
        let metadata = |id: &str| Metadata {
            id: Some(id.into()),
            ..Metadata::default()
        };
        let (old, new) = (
            metadata("tag:x,2010-05-07:atom/1"),
            metadata("tag:x,2010-05-08:atom/1"),
        );
        let of = |name: &str| {
            is_said_otherwise(
                &old,
                &new,
                Platforms::embedded().get(name).map(|profile| &**profile),
            )
        };
        assert!(of("no such profile") && of("wordpress"));
        assert!(!of("habari"));
    }

    #[test]
    fn remarks_are_few_and_said_once() {
        let notes = [
            Note::Truncated,
            Note::Truncated,
            Note::Mismatched,
            Note::TooManyEntries,
            Note::Other("x".into()),
        ];
        let told = remark(notes.iter()).unwrap();
        assert_eq!(
            told,
            "the document ends early; its last entry was dropped; it is not well-formed and was mended; \
             there are more entries than are read; and 1 more"
        );
        assert_eq!(remark([].iter()), None);
    }
}
