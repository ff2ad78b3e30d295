//! Absence of an item from a document: rolled off the end of the window, or deleted by the publisher
//! (POLLING 2.3, *bracketed absence*). Pure; presence is `reconcile`'s business.
//!
//! The one assumption: a full document is the first N items of some order in which items that nobody touches keep their
//! places. So an item that is missing although two that stood behind it are still there did not roll off.

use super::{item::ItemId, stamp::Stamp};
use std::collections::{HashSet, VecDeque};

mod anchors;

mod window_event;

mod full_document;

pub mod archives;

mod comparison;

mod direction;

mod proof;

mod permalink_check;

mod recurrence;

mod pinned;

#[cfg(test)]
mod tests;

pub use permalink_check::{CheckResult, PermalinkCheck};
pub use proof::{Proof, RequiredProof, Suspect};
pub use recurrence::{AbsenceTrust, DoubtReason, Recurrence};
pub use window_event::WindowEvent;

pub(crate) use direction::{Direction, NewestEnd};
pub(crate) use permalink_check::PageFinding;
pub(crate) use pinned::Pinned;

/// Part of the feed that a document shows (POLLING 2.2). An unreadable body is not an observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Coverage {
    /// The whole document, to a request without validators: FULL-U.
    Unconditional,
    /// The whole document, as far as one knows, to a request with validators: FULL-C.
    Conditional,
    /// A part of the feed, on purpose (226, an archive page, a push) or by an accident that shows (cut, mended). It shows
    /// presence only.
    #[default]
    Partial,
}

/// One entry of a document, as far as its place and its item matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownItem {
    /// Its item.
    pub id: ItemId,
    /// The date by which the publisher sorts it, microseconds since 1970: published, else updated.
    pub dated: Option<i64>,
    /// True when the item was known, and alive, before this document.
    pub is_known: bool,
    /// Number of earlier deletions of the item: one that comes and goes needs more proof.
    pub tombstone_count: u8,
    /// True when nothing but its title or its content names it, so that an edit may look like an end and a beginning.
    pub is_weak: bool,
}

/// One item of the remembered window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowItem {
    /// The item.
    pub id: ItemId,
    /// Its date when it was last seen.
    pub dated: Option<i64>,
    /// Number of its earlier deletions.
    pub tombstone_count: u8,
    /// True when it has no id of its own: it is never missed (DESIGN section 3).
    pub is_weak: bool,
    /// Set while it is missed and not decided on.
    pub suspect: Option<Suspect>,
}

/// Facts of a feed's past documents by which the next one is judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AbsenceState {
    /// The last full document, newest first, with what is missed since at its old place.
    pub items: Vec<WindowItem>,
    /// Entries of the last full documents, newest last, at most [`LENGTHS_MAX`].
    pub(crate) lengths: VecDeque<u16>,
    pub(crate) direction: Direction,
    /// Standing of the last document.
    pub(crate) last_document: DocumentStanding,
    /// Full documents in a row whose order could not be followed.
    pub(crate) unstable: u8,
    /// Time of the last full document.
    pub(crate) seen_at: Stamp,
    /// Since when too much is missing at once to believe it.
    pub quarantined_since: Option<Stamp>,
    /// Rises with every audit that bears out the conditional answer before it, falls with every other:
    /// [`TRUSTED`] and more counts as proof, [`CAUGHT`] and less is taken for a part of the feed.
    pub(crate) trust: i8,
    /// Items that every conditional answer since the last audit lacked.
    pub(crate) lacked: Option<LackedItems>,
    /// Items taken for deleted because they are missing, and since when they are counted: at most [`DAILY_MAX`] a day.
    pub(crate) ended: (Stamp, u16),
    /// Record of missing items that came back.
    pub recurrence: Recurrence,
    /// True when what rolls off is missing from inside.
    pub(crate) pinned: Pinned,
}

/// Standing of a document, which decides what the same document proves when it comes again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DocumentStanding {
    /// For the feed as it is: the remembered rows, without those that are missed, are its own.
    #[default]
    Judged,
    /// It lacked too much to be believed, or might have been a part: the remembered rows are not its own.
    Doubted,
    /// Likewise, and it held nothing at all.
    Empty,
    /// A part, or one whose order could not be followed: again, it says as little.
    SetAside,
}

/// Items that conditional answers lacked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LackedItems {
    /// Number of answers.
    pub(crate) answers: u32,
    /// Items that each of them lacked.
    pub(crate) ids: Vec<ItemId>,
}

/// Proof that a tombstone needs (POLLING 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofPolicy {
    /// Full documents without the item when the window was conserved.
    pub confirmations: u8,
    /// Seconds from the first to the last of them at least.
    pub apart_secs: u64,
    /// The same when the window was not conserved.
    pub weak_confirmations: u8,
    /// Seconds from the first to the last of those at least.
    pub weak_secs: u64,
    /// True when the document says that it is the whole feed (`fh:complete`, `fh:stateful` false; H-2, H-20).
    pub complete: bool,
    /// True when the one assumption holds: a planet shows the newest of several feeds, and when one of them drops its old
    /// entries, they vanish from the middle.
    pub ordered: bool,
    /// True when the own page of a missed item is asked for, so that its word is waited for.
    pub checks_permalinks: bool,
    /// Trust in absence as such; the record of a feed lowers it.
    pub belief: AbsenceTrust,
}

impl Default for ProofPolicy {
    fn default() -> Self {
        // POLLING 2.3, "When a tombstone may be emitted".
        Self {
            confirmations: 2,
            apart_secs: 3600,
            weak_confirmations: 3,
            weak_secs: 86_400,
            complete: false,
            ordered: true,
            checks_permalinks: false,
            belief: AbsenceTrust::Usual,
        }
    }
}

/// Conclusions from the items that a document lacks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AbsenceFindings {
    /// State from now on.
    pub state: AbsenceState,
    /// Items that are gone, and the proof, in window order.
    pub gone: Vec<(ItemId, Proof)>,
    /// Items that left by the end of the window, which says nothing about them.
    pub rolled_off: Vec<ItemId>,
    /// Events for the operator.
    pub events: Vec<WindowEvent>,
}

/// Lengths of documents that are remembered.
const LENGTHS_MAX: usize = 20;

/// Fewer survivors than this are no order.
const SURVIVORS_MIN: usize = 3;

/// Anchors that must stand behind a missing item: two, so that one pinned at the end proves nothing.
const ANCHORS_MIN: usize = 2;

/// Items of a feed that are taken for deleted in a day, because they are missing, at most (POLLING 2.3, step 5): a mistake
/// of ours must not empty a feed before somebody notices.
const DAILY_MAX: u16 = 100;

const DAY_SECS: u64 = 86_400;

/// Trust from which conditional answers count as proof: the last two audits confirmed them.
const TRUSTED: i8 = 2;

/// Conditional answers of so little trust are parts of the feed: some servers send what changed since, and call it 200.
const CAUGHT: i8 = -2;

impl AbsenceState {
    /// True when an unconditional request would tell more than waiting: something is missed, or conditional answers have
    /// proven to be parts.
    pub fn wants_audit(&self) -> bool {
        self.suspects().next().is_some() || self.quarantined_since.is_some() || self.trust <= CAUGHT
    }

    /// True when documents could prove anything by what they lack: there is an order to follow and absence is believed, or the
    /// document is the whole feed. Where they cannot, an unconditional request is a discourtesy.
    pub fn can_prove(&self, policy: &ProofPolicy) -> bool {
        let is_believed = policy.belief < AbsenceTrust::Off;
        policy.complete || policy.ordered && is_believed && self.items.len() >= SURVIVORS_MIN
    }

    /// Without these items, which have ended by other proof.
    #[must_use]
    pub fn without(&self, ended: &HashSet<ItemId>) -> Self {
        let mut memory = self.clone();
        memory.items.retain(|row| !ended.contains(&row.id));
        memory
    }

    /// Number of remembered items that a document lacks.
    pub fn lacked_by(&self, seen: &[ShownItem]) -> usize {
        let shown: HashSet<ItemId> = seen.iter().map(|place| place.id).collect();
        self.items.iter().filter(|row| !shown.contains(&row.id)).count()
    }

    /// True when answers to conditional requests have proven to be parts of the feed, so that they show presence only.
    pub fn has_caught_conditional(&self) -> bool {
        self.trust <= CAUGHT
    }

    /// The items that are missed and not decided on; those whose page shows that they live are not among them.
    pub fn suspects(&self) -> impl Iterator<Item = &WindowItem> {
        self.items
            .iter()
            .filter(|row| row.suspect.is_some_and(|missing| !missing.permalink_check.is_hidden()))
    }

    /// Time of the next permalink check.
    pub fn next_check_at(&self) -> Option<Stamp> {
        self.items.iter().filter_map(|row| row.suspect?.permalink_check.due).min()
    }

    /// The missed item whose page is to be asked for now; the one that has been due for longest.
    pub fn due_check(&self, now: Stamp) -> Option<ItemId> {
        let due = self.items.iter().filter_map(|row| Some((row.suspect?.permalink_check.due?, row.id)));
        due.filter(|(due, _)| *due <= now).min().map(|(_, id)| id)
    }

    /// Takes in the result of a permalink check, together with what documents have shown so far. An item that is
    /// not missed any more is none of a page's business.
    pub fn told(&self, id: ItemId, said: CheckResult, policy: &ProofPolicy, now: Stamp) -> AbsenceFindings {
        let policy = &self.believed(policy, now);
        let mut memory = self.clone();
        let mut outcome = AbsenceFindings::default();
        let found = memory.items.iter().position(|row| row.id == id && row.suspect.is_some());
        if let Some(at) = found
            && let Some(missing) = &mut memory.items[at].suspect
        {
            missing.permalink_check = missing.permalink_check.told(said, policy.apart_secs, now);
            let (missing, tombstone_count) = (*missing, memory.items[at].tombstone_count);
            if let Some(proof) = missing.proves(tombstone_count, policy, now)
                && memory.may_end(&mut outcome.events, now)
            {
                memory.items.remove(at);
                outcome.gone.push((id, proof));
            } else if missing.is_moot(memory.pinned.is_on(), policy) {
                memory.items.remove(at);
                outcome.rolled_off.push(id);
            }
        }
        outcome.state = memory;
        outcome.watched(policy)
    }

    /// A policy as far as this feed's absences are believed now.
    pub fn believed(&self, policy: &ProofPolicy, now: Stamp) -> ProofPolicy {
        let by_end = if self.pinned.is_on() { AbsenceTrust::Off } else { AbsenceTrust::Usual };
        ProofPolicy { belief: policy.belief.max(self.recurrence.belief(now)).max(by_end), ..*policy }
    }

    /// True when what rolls off is missing from inside, so that documents prove nothing by what they lack.
    pub fn is_sticky(&self) -> bool {
        self.pinned.is_on()
    }

    /// Counts an item that is taken for deleted, unless enough are for a day.
    fn may_end(&mut self, events: &mut Vec<WindowEvent>, now: Stamp) -> bool {
        if now.secs_since(self.ended.0) >= DAY_SECS {
            self.ended = (now, 0);
        }
        let may = self.ended.1 < DAILY_MAX;
        if may {
            self.ended.1 += 1;
        } else if !events.contains(&WindowEvent::DailyLimit) {
            events.push(WindowEvent::DailyLimit);
        }
        may
    }

    /// The same document again, as the answer to an unconditional request: a full confirmation of what it lacks
    /// (DESIGN section 3), if it was believed the first time. `seen` is that document. An unchanged answer to a conditional
    /// request proves nothing new and never gets here.
    pub fn observe_again(&self, seen: &[ShownItem], policy: &ProofPolicy, now: Stamp) -> AbsenceFindings {
        match self.last_document {
            DocumentStanding::Judged => {}
            DocumentStanding::Doubted => return self.observe(seen, Coverage::Unconditional, policy, now),
            DocumentStanding::Empty => return self.observe(&[], Coverage::Unconditional, policy, now),
            DocumentStanding::SetAside => {
                return AbsenceFindings { state: self.clone(), ..AbsenceFindings::default() };
            }
        }
        let present = self.items.iter().filter(|row| row.suspect.is_none());
        let place = |row: &WindowItem| {
            let WindowItem { id, dated, tombstone_count, is_weak, .. } = *row;
            ShownItem { id, dated, is_known: true, tombstone_count, is_weak }
        };
        let seen: Vec<ShownItem> = present.map(place).collect();
        let policy = self.believed(policy, now);
        self.judge(&seen, Coverage::Unconditional, &policy, now).watched(&policy)
    }

    /// Judges a document. `seen` is in document order, each item once.
    pub fn observe(
        &self,
        seen: &[ShownItem],
        class: Coverage,
        policy: &ProofPolicy,
        now: Stamp,
    ) -> AbsenceFindings {
        let shown = seen.iter().map(|place| place.id).collect();
        let returns = self.recurrence.after(&shown, &self.items, now);
        let (before, belief) = (self.recurrence.belief(now), returns.belief(now));
        let memory = Self { recurrence: returns, ..self.clone() };
        let policy = memory.believed(policy, now);
        let mut outcome = memory.observe_by(seen, class, &policy, now).watched(&policy);
        if belief > before {
            outcome.events.push(if belief == AbsenceTrust::Off {
                WindowEvent::AbsenceOff
            } else {
                WindowEvent::Doubted
            });
        }
        outcome
    }

    fn observe_by(
        &self,
        seen: &[ShownItem],
        class: Coverage,
        policy: &ProofPolicy,
        now: Stamp,
    ) -> AbsenceFindings {
        if class == Coverage::Partial || (class == Coverage::Conditional && self.trust <= CAUGHT) {
            let mut memory = self.learned(seen, class).cleared(seen);
            memory.last_document = if class == Coverage::Partial {
                DocumentStanding::SetAside
            } else {
                DocumentStanding::Doubted
            };
            return AbsenceFindings { state: memory, ..AbsenceFindings::default() };
        }
        let (orientation, ascends) = self.direction.follow(seen, &self.items);
        let turned: Vec<ShownItem> =
            if ascends { seen.iter().rev().copied().collect() } else { seen.to_vec() };
        let mut outcome = Self { direction: orientation, ..self.clone() }.judge(&turned, class, policy, now);
        outcome.state.seen_at = now;
        outcome
    }

    /// The memory when something that was missed is shown after all.
    fn cleared(&self, seen: &[ShownItem]) -> Self {
        let shown: HashSet<ItemId> = seen.iter().map(|place| place.id).collect();
        let mut memory = self.clone();
        memory.items.iter_mut().filter(|row| shown.contains(&row.id)).for_each(|row| row.suspect = None);
        memory
    }

    /// Learns from an audit about the conditional answers before it: one that brings back what they all left out shows that
    /// they were parts. A single one may have been an accident.
    fn learned(&self, seen: &[ShownItem], class: Coverage) -> Self {
        let mut memory = self.clone();
        let shown: HashSet<ItemId> = seen.iter().map(|place| place.id).collect();
        match class {
            Coverage::Partial => {}
            Coverage::Conditional => {
                let lacks = |id: &ItemId| !shown.contains(id);
                let mut lacked = memory.lacked.take().unwrap_or_else(|| LackedItems {
                    answers: 0,
                    ids: self.items.iter().map(|row| row.id).collect(),
                });
                lacked.answers = lacked.answers.saturating_add(1);
                lacked.ids.retain(lacks);
                memory.lacked = Some(lacked);
            }
            Coverage::Unconditional => {
                let step = match memory.lacked.take() {
                    None => 0,
                    Some(lacked) if !lacked.ids.iter().any(|id| shown.contains(id)) => 1,
                    Some(lacked) => -i8::from(lacked.answers > 1),
                };
                memory.trust = (memory.trust + step).clamp(CAUGHT, TRUSTED);
            }
        }
        memory
    }
}

impl AbsenceFindings {
    /// The same, with a note of what was taken for deleted because it is missing: it may come back.
    fn watched(mut self, policy: &ProofPolicy) -> Self {
        for (id, proof) in &self.gone {
            if matches!(proof, Proof::Bracketed(_)) {
                self.state.recurrence.end(*id, policy.belief);
            }
        }
        self
    }
}
