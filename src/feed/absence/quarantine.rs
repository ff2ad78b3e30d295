//! Quarantine: more is missing at once than documents are believed. The pages of a sample are asked
//! for first, those of all others when the sample speaks for deletions and the documents have
//! lacked them for half a day. What pages say decides: they are gone, or they are there and the
//! quarantine ends; where pages say nothing, it ends after a week (POLLING 2.3, step 5).

use super::{
    AbsenceFindings, AbsenceState, Coverage, DocumentStanding, PermalinkCheck, Proof,
    QUARANTINE_SECS, Suspect, WindowEvent, WindowItem, comparison::DoubtedDocument,
    full_document::prepended, proof::SuspectBasis,
};
use crate::{item::ItemId, stamp::Stamp};
use std::collections::HashSet;

/// Seconds from the beginning of a quarantine after which pages are believed: a server in trouble
/// loses rows and their pages for hours.
const DECIDE_SECS: u64 = 12 * 3600;

/// Pages that are asked for first.
const SAMPLE: usize = 5;

impl AbsenceState {
    /// True while an item is one of many that are missing at once.
    pub(super) fn is_of_many(row: &WindowItem) -> bool {
        row.suspect
            .is_some_and(|missing| missing.basis == SuspectBasis::PageOfMany)
    }

    /// True while the page of a missing item may still tell what became of it.
    pub(super) fn is_told_by_page(row: &WindowItem) -> bool {
        row.suspect
            .is_some_and(|missing| missing.permalink_check.due().is_some())
    }

    /// Concludes nothing from a document that lacks too much; what is new in it is remembered.
    /// `lacking` are the places of the rows whose pages are asked for.
    pub(super) fn quarantine(
        mut self,
        before: &Self,
        lacking: &[usize],
        document: &DoubtedDocument<'_>,
    ) -> AbsenceFindings {
        let DoubtedDocument {
            view,
            seen,
            coverage,
            policy,
            now,
            ..
        } = *document;
        let since = before.quarantined_since.unwrap_or(now);
        // Only the answer to an unconditional request says what the feed is from now on.
        if coverage == Coverage::Unconditional && now.secs_since(since) > QUARANTINE_SECS {
            return self.begin_anew(before, view, seen, WindowEvent::QuarantineEnded);
        }
        self.quarantined_since = Some(since);
        self.keep_last_believed(before);
        self.items.clone_from(&before.items);
        if policy.checks_permalinks && !policy.complete {
            self.suspect_many(lacking, since, document);
        }
        self.items = prepended(&self, seen, view);
        let mut outcome = AbsenceFindings::default();
        if coverage == Coverage::Unconditional {
            for row in self.items.iter_mut().filter(|row| Self::is_of_many(row)) {
                if let Some(missing) = &mut row.suspect {
                    missing.audited = true;
                }
            }
            self.release_if_told(&mut outcome);
        }
        if self.quarantined_since.is_none() {
            outcome.state = self;
            return outcome;
        }
        self.documents.standing = if seen.is_empty() {
            DocumentStanding::Empty
        } else {
            DocumentStanding::Doubted
        };
        if before.quarantined_since.is_none() {
            outcome.events.push(WindowEvent::Quarantined);
        }
        outcome.state = self;
        outcome
    }

    /// Makes suspects of many rows; the pages of a few of them are asked for soon.
    fn suspect_many(&mut self, lacking: &[usize], since: Stamp, document: &DoubtedDocument<'_>) {
        let DoubtedDocument {
            policy,
            now,
            is_fault,
            ..
        } = *document;
        let decide_at = since.plus_secs(DECIDE_SECS);
        let last_seen = self.documents.seen_at;
        // What only a doubted document showed says nothing by its absence. Those before the first
        // of a quarantine were believed, also where they had nothing in common with the ones before.
        let is_first = since == now;
        let believed: HashSet<ItemId> = self.last_believed.iter().map(|row| row.id).collect();
        let is_fresh = |at: &usize| {
            let row = &self.items[*at];
            row.suspect.is_none() && (is_first || believed.contains(&row.id))
        };
        let fresh: Vec<usize> = lacking.iter().copied().filter(is_fresh).collect();
        let has_sample = self.items.iter().any(Self::is_of_many);
        let step = fresh.len().div_ceil(SAMPLE).max(1);
        for (number, at) in fresh.into_iter().enumerate() {
            let is_sample = !has_sample && number % step == step / 2;
            // A document that was merely cut is over with the next one: nobody needs to be asked
            // because of it.
            let asked_at = if is_sample {
                now.plus_secs(policy.apart_secs)
            } else {
                decide_at.max(now)
            };
            let (basis, check) = (SuspectBasis::PageOfMany, PermalinkCheck::due_at(asked_at));
            self.items[at].suspect = Some(Suspect {
                // What a whole document lacks and a later one shows has come back.
                strong: !is_fault,
                ..Suspect::on_page(basis, now, last_seen, check)
            });
        }
    }

    // Decides: What becomes of many items that are missing at once?
    /// Takes in the result of a check of one of many, and decides on all as soon as the pages asked
    /// so far allow it.
    pub(super) fn one_of_many_told(
        &mut self,
        at: usize,
        check: PermalinkCheck,
        now: Stamp,
        outcome: &mut AbsenceFindings,
    ) {
        self.note_check(at, check, outcome);
        let is_decision_time = now >= self.decides_at(now);
        if is_decision_time {
            self.release_if_told(outcome);
            return;
        }
        let asked: Vec<PermalinkCheck> = self.checks_of_many().filter(|it| it.asked > 0).collect();
        if asked.len() < SAMPLE.min(self.checks_of_many().count()) {
            return;
        }
        let is_open = asked.iter().any(|check| check.due().is_some());
        let is_doubted =
            self.checks_of_many().any(|check| check.is_doubted()) || !outcome.gone.is_empty();
        if !is_open && !is_doubted {
            // The many are there, or pages say nothing here: the others are not asked for.
            self.ask_no_more();
        }
        self.release_if_told(outcome);
    }

    /// The result of a check of one of many. A page that is gone ends its item.
    fn note_check(&mut self, at: usize, check: PermalinkCheck, outcome: &mut AbsenceFindings) {
        let row = &mut self.items[at];
        let Some(missing) = &mut row.suspect else {
            return;
        };
        missing.permalink_check = check;
        if check.is_gone() {
            outcome.gone.push((row.id, Proof::Gone(*missing)));
            self.items.remove(at);
        }
    }

    /// Those of many that are missing at once and have not ended.
    fn suspects_of_many(&self) -> impl Iterator<Item = Suspect> {
        self.items
            .iter()
            .filter(|row| Self::is_of_many(row))
            .filter_map(|row| row.suspect)
    }

    fn checks_of_many(&self) -> impl Iterator<Item = PermalinkCheck> {
        self.suspects_of_many()
            .map(|missing| missing.permalink_check)
    }

    fn ask_no_more(&mut self) {
        for row in self.items.iter_mut().filter(|row| Self::is_of_many(row)) {
            if let Some(missing) = &mut row.suspect {
                missing.permalink_check = missing.permalink_check.over();
            }
        }
    }

    /// Ends the quarantine as soon as pages have told what they can, and lets go of items that
    /// live. An answer to a conditional request may be a part of the feed, so that items which it
    /// lacks are let go of by an audit only.
    fn release_if_told(&mut self, outcome: &mut AbsenceFindings) {
        if self.suspects_of_many().next().is_none() {
            // The last of them is gone, or none ever was.
            if !outcome.gone.is_empty() {
                self.release(outcome, |_| true);
            }
            return;
        }
        if self.suspects_of_many().any(|missing| !missing.audited) {
            return;
        }
        let is_open = self.checks_of_many().any(|check| check.due().is_some());
        let is_there = self.checks_of_many().any(|check| check.is_hidden());
        if !is_open && (is_there || !outcome.gone.is_empty()) {
            self.release(outcome, |_| true);
        } else {
            self.release(outcome, PermalinkCheck::is_hidden);
        }
    }

    /// Lets go of those of many whose checks are so: they have left the window, and live. The
    /// quarantine ends with the last.
    fn release(
        &mut self,
        outcome: &mut AbsenceFindings,
        is_released: impl Fn(&PermalinkCheck) -> bool,
    ) {
        let leaves = |row: &WindowItem| {
            Self::is_of_many(row)
                && row
                    .suspect
                    .is_some_and(|missing| is_released(&missing.permalink_check))
        };
        outcome.rolled_off.extend(
            self.items
                .iter()
                .filter(|row| leaves(row))
                .map(|row| row.id),
        );
        let left: HashSet<ItemId> = outcome.rolled_off.iter().copied().collect();
        self.last_believed.retain(|row| !left.contains(&row.id));
        self.items.retain(|row| !leaves(row));
        if !self.items.iter().any(Self::is_of_many) {
            self.quarantined_since = None;
            self.last_believed = Vec::new();
            self.documents.lengths.clear();
            self.documents.standing = DocumentStanding::SetAside;
            outcome.events.push(WindowEvent::QuarantineDecided);
        }
    }

    /// Time after which the window begins anew if no page has decided.
    pub fn quarantine_ends_at(&self, now: Stamp) -> Stamp {
        self.quarantined_since
            .unwrap_or(now)
            .plus_secs(QUARANTINE_SECS)
    }

    /// Time from which on the page of one of many is believed.
    pub fn decides_at(&self, now: Stamp) -> Stamp {
        self.quarantined_since.unwrap_or(now).plus_secs(DECIDE_SECS)
    }
}
