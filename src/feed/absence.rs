//! What the absence of an item from a document proves: rolled off the end of the window, or deleted by the publisher
//! (POLLING 2.3, *bracketed absence*). Pure; presence is `reconcile`'s business.
//!
//! The one assumption: a full document is the first N items of some order in which items that nobody touches keep their
//! places. So an item that is missing although two that stood behind it are still there did not roll off.

use super::{item::ItemId, stamp::Stamp};
use std::collections::{HashSet, VecDeque};

mod anchors;

mod window_event;

mod full_document;

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

/// What kind of observation a document is (POLLING 2.2). What is no readable feed is none at all.
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
    /// Whether the item was known, and alive, before this document.
    pub known: bool,
    /// How often the item was deleted before: one that comes and goes needs more proof.
    pub tombstone_count: u8,
    /// Whether nothing but its title or its content names it, so that an edit may look like an end and a beginning.
    pub is_weak: bool,
}

/// One item of the remembered window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowItem {
    /// The item.
    pub id: ItemId,
    /// Its date when it was last seen.
    pub dated: Option<i64>,
    /// How often it was deleted before.
    pub tombstone_count: u8,
    /// Whether it has no id of its own: it is never missed (DESIGN section 3).
    pub is_weak: bool,
    /// Set while it is missed and not decided on.
    pub missing: Option<Suspect>,
}

/// What is remembered of a feed's documents for the sake of what is missing from the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AbsenceState {
    /// The last full document, newest first, with what is missed since at its old place.
    pub rows: Vec<WindowItem>,
    /// Entries of the last full documents, newest last, at most [`LENGTHS_MAX`].
    pub(crate) lengths: VecDeque<u16>,
    pub(crate) orientation: Direction,
    /// What the last document was taken for.
    pub(crate) taken: DocumentStanding,
    /// Full documents in a row whose order could not be followed.
    pub(crate) unstable: u8,
    /// When the last full document was read.
    pub(crate) seen_at: Stamp,
    /// Since when too much is missing at once to believe it.
    pub held_since: Option<Stamp>,
    /// Rises with every audit that bears out the conditional answer before it, falls with every other:
    /// [`TRUSTED`] and more counts as proof, [`CAUGHT`] and less is taken for a part of the feed.
    pub(crate) trust: i8,
    /// What every conditional answer since the last audit lacked.
    pub(crate) lacked: Option<LackedItems>,
    /// Items taken for deleted because they are missing, and since when they are counted: at most [`DAILY_MAX`] a day.
    pub(crate) ended: (Stamp, u16),
    /// What was missing and came back.
    pub returns: Recurrence,
    /// Whether what rolls off is missing from inside.
    pub(crate) sticky: Pinned,
}

/// What a document was taken for, and so what the same document says when it comes again.
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
    /// How many answers.
    pub(crate) answers: u32,
    /// What each of them lacked.
    pub(crate) ids: Vec<ItemId>,
}

/// What proof a tombstone needs (POLLING 2.3).
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
    /// Whether the document says that it is the whole feed (`fh:complete`, `fh:stateful` false; H-2, H-20).
    pub complete: bool,
    /// Whether the one assumption holds: a planet shows the newest of several feeds, and when one of them drops its old
    /// entries, they vanish from the middle.
    pub ordered: bool,
    /// Whether the own page of a missed item is asked for, so that its word is waited for.
    pub probes: bool,
    /// How far it is believed that what is missing is gone. What is remembered of a feed lowers it.
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
            probes: false,
            belief: AbsenceTrust::Usual,
        }
    }
}

/// What a document proves by what it does not hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AbsenceFindings {
    /// What is remembered from now on.
    pub memory: AbsenceState,
    /// Items that are gone, and the proof, in window order.
    pub gone: Vec<(ItemId, Proof)>,
    /// Items that left by the end of the window, which says nothing about them.
    pub rolled_off: Vec<ItemId>,
    /// What an operator should know.
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

/// How far conditional answers must be trusted to count as proof: the last two audits bore them out.
const TRUSTED: i8 = 2;

/// Conditional answers of so little trust are parts of the feed: some servers send what changed since, and call it 200.
const CAUGHT: i8 = -2;

impl AbsenceState {
    /// Whether an unconditional request would tell more than waiting: something is missed, or conditional answers have
    /// proven to be parts.
    pub fn wants_audit(&self) -> bool {
        self.suspects().next().is_some() || self.held_since.is_some() || self.trust <= CAUGHT
    }

    /// Whether documents could prove anything by what they lack: there is an order to follow and absence is believed, or the
    /// document is the whole feed. Where they cannot, an unconditional request is a discourtesy.
    pub fn can_prove(&self, policy: &ProofPolicy) -> bool {
        let is_believed = policy.belief < AbsenceTrust::Off;
        policy.complete || policy.ordered && is_believed && self.rows.len() >= SURVIVORS_MIN
    }

    /// Without these items, which have ended by other proof.
    #[must_use]
    pub fn without(&self, ended: &HashSet<ItemId>) -> Self {
        let mut memory = self.clone();
        memory.rows.retain(|row| !ended.contains(&row.id));
        memory
    }

    /// How many of the remembered items a document lacks.
    pub fn lacked_by(&self, seen: &[ShownItem]) -> usize {
        let shown: HashSet<ItemId> = seen.iter().map(|place| place.id).collect();
        self.rows.iter().filter(|row| !shown.contains(&row.id)).count()
    }

    /// Whether answers to conditional requests have proven to be parts of the feed, so that they show presence only.
    pub fn has_caught_conditional(&self) -> bool {
        self.trust <= CAUGHT
    }

    /// The items that are missed and not decided on; those whose page shows that they live are not among them.
    pub fn suspects(&self) -> impl Iterator<Item = &WindowItem> {
        self.rows.iter().filter(|row| row.missing.is_some_and(|missing| !missing.probe.is_hidden()))
    }

    /// When the page of a missed item is to be asked for next.
    pub fn probe_at(&self) -> Option<Stamp> {
        self.rows.iter().filter_map(|row| row.missing?.probe.due).min()
    }

    /// The missed item whose page is to be asked for now; the one that has been due for longest.
    pub fn probe_due(&self, now: Stamp) -> Option<ItemId> {
        let due = self.rows.iter().filter_map(|row| Some((row.missing?.probe.due?, row.id)));
        due.filter(|(due, _)| *due <= now).min().map(|(_, id)| id)
    }

    /// What the word of a missed item's own page proves, together with what documents have shown so far. An item that is
    /// not missed any more is none of a page's business.
    pub fn told(&self, id: ItemId, said: CheckResult, policy: &ProofPolicy, now: Stamp) -> AbsenceFindings {
        let policy = &self.believed(policy, now);
        let mut memory = self.clone();
        let mut outcome = AbsenceFindings::default();
        let found = memory.rows.iter().position(|row| row.id == id && row.missing.is_some());
        if let Some(at) = found
            && let Some(missing) = &mut memory.rows[at].missing
        {
            missing.probe = missing.probe.told(said, policy.apart_secs, now);
            let (missing, tombstone_count) = (*missing, memory.rows[at].tombstone_count);
            if let Some(proof) = missing.proves(tombstone_count, policy, now)
                && memory.may_end(&mut outcome.events, now)
            {
                memory.rows.remove(at);
                outcome.gone.push((id, proof));
            } else if missing.is_moot(memory.sticky.is_on(), policy) {
                memory.rows.remove(at);
                outcome.rolled_off.push(id);
            }
        }
        outcome.memory = memory;
        outcome.watched(policy)
    }

    /// A policy as far as this feed's absences are believed now.
    pub fn believed(&self, policy: &ProofPolicy, now: Stamp) -> ProofPolicy {
        let by_end = if self.sticky.is_on() { AbsenceTrust::Off } else { AbsenceTrust::Usual };
        ProofPolicy { belief: policy.belief.max(self.returns.belief(now)).max(by_end), ..*policy }
    }

    /// Whether what rolls off is missing from inside, so that documents prove nothing by what they lack.
    pub fn is_sticky(&self) -> bool {
        self.sticky.is_on()
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
        match self.taken {
            DocumentStanding::Judged => {}
            DocumentStanding::Doubted => return self.observe(seen, Coverage::Unconditional, policy, now),
            DocumentStanding::Empty => return self.observe(&[], Coverage::Unconditional, policy, now),
            DocumentStanding::SetAside => {
                return AbsenceFindings { memory: self.clone(), ..AbsenceFindings::default() };
            }
        }
        let present = self.rows.iter().filter(|row| row.missing.is_none());
        let place = |row: &WindowItem| {
            let WindowItem { id, dated, tombstone_count, is_weak, .. } = *row;
            ShownItem { id, dated, known: true, tombstone_count, is_weak }
        };
        let seen: Vec<ShownItem> = present.map(place).collect();
        let policy = self.believed(policy, now);
        self.judge(&seen, Coverage::Unconditional, &policy, now).watched(&policy)
    }

    /// What a document proves. `seen` is in document order, each item once.
    pub fn observe(
        &self,
        seen: &[ShownItem],
        class: Coverage,
        policy: &ProofPolicy,
        now: Stamp,
    ) -> AbsenceFindings {
        let shown = seen.iter().map(|place| place.id).collect();
        let returns = self.returns.after(&shown, &self.rows, now);
        let (before, belief) = (self.returns.belief(now), returns.belief(now));
        let memory = Self { returns, ..self.clone() };
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
            memory.taken = if class == Coverage::Partial {
                DocumentStanding::SetAside
            } else {
                DocumentStanding::Doubted
            };
            return AbsenceFindings { memory, ..AbsenceFindings::default() };
        }
        let (orientation, ascends) = self.orientation.follow(seen, &self.rows);
        let turned: Vec<ShownItem> =
            if ascends { seen.iter().rev().copied().collect() } else { seen.to_vec() };
        let mut outcome = Self { orientation, ..self.clone() }.judge(&turned, class, policy, now);
        outcome.memory.seen_at = now;
        outcome
    }

    /// The memory when something that was missed is shown after all.
    fn cleared(&self, seen: &[ShownItem]) -> Self {
        let shown: HashSet<ItemId> = seen.iter().map(|place| place.id).collect();
        let mut memory = self.clone();
        memory.rows.iter_mut().filter(|row| shown.contains(&row.id)).for_each(|row| row.missing = None);
        memory
    }

    /// What an audit says about the conditional answers before it: one that brings back what they all left out shows that
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
                    ids: self.rows.iter().map(|row| row.id).collect(),
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
                self.memory.returns.end(*id, policy.belief);
            }
        }
        self
    }
}
