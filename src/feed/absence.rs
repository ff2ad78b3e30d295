//! Absence of an item from a document: rolled off the end of the window, or deleted by the
//! publisher (POLLING 2.3, *bracketed absence*). Pure; presence is `reconcile`'s business.
//!
//! The one assumption: a full document is the first N items of some order in which items that
//! nobody touches keep their places. So an item that is missing although two that stood behind it
//! are still there did not roll off.

use super::{item::ItemId, stamp::Stamp};
use departures::{DepartureEnd, Departures};
use revival::Revivals;
use std::collections::HashSet;

mod window_event;

mod full_document;

pub mod archives;

mod comparison;

mod direction;

mod proof;

mod permalink_check;

mod document_trail;

mod conditional_trust;

mod daily_count;

mod quarantine;

mod control_finding;

mod page_control;

pub mod recent_tombstone;

pub mod departures;

pub mod revival;

mod recurrence;

mod pinned;

#[cfg(test)]
mod tests;

pub use control_finding::ControlFinding;
pub use page_control::{ALIKE_MAX, AnsweredPage, ControlNeed, PageControl};
pub use permalink_check::{CheckResult, NextCheck, PermalinkCheck};
pub use proof::{Proof, RequiredProof, Suspect, SuspectBasis};
pub use recurrence::{AbsenceTrust, DoubtReason, Recurrence};
pub use window_event::WindowEvent;

pub use conditional_trust::{ConditionalTrust, LackedItems};
pub use daily_count::DailyCount;
pub use direction::{Direction, NewestEnd};
pub use document_trail::{DocumentStanding, DocumentTrail};
pub use permalink_check::PageFinding;
pub use pinned::Pinned;

/// Part of the feed that a document shows (POLLING 2.2). An unreadable body is not an observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Coverage {
    /// The whole document, to a request without validators: FULL-U.
    Unconditional,
    /// The whole document, as far as one knows, to a request with validators: FULL-C.
    Conditional,
    /// A part of the feed, on purpose (an archive page, a push) or by an accident that shows (cut,
    /// mended). It shows presence only.
    #[default]
    Partial,
    /// The entries that the server takes for new (226, RFC 3229). Its order is no order of the
    /// feed, and its metadata need not be those of the feed, so it is no window either.
    Delta,
}

impl Coverage {
    /// Coverage of a whole document, which answers a request with validators or without.
    pub fn of_whole(conditional: bool) -> Self {
        if conditional {
            Self::Conditional
        } else {
            Self::Unconditional
        }
    }

    /// True when what it lacks says nothing.
    pub fn is_partial(self) -> bool {
        matches!(self, Self::Partial | Self::Delta)
    }
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
    /// True when nothing but its title or its content names it, so that an edit may look like an
    /// end and a beginning.
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
    /// Facts of the last full documents.
    pub documents: DocumentTrail,
    /// Since when too much is missing at once to believe it.
    pub quarantined_since: Option<Stamp>,
    /// The window of the last document that was believed, while later ones are doubted; empty
    /// when the last document was believed.
    pub last_believed: Vec<WindowItem>,
    /// Trust in answers to conditional requests.
    pub conditional: ConditionalTrust,
    /// Items taken for deleted because they are missing, as far as they are counted.
    pub ended: DailyCount,
    /// Record of missing items that came back.
    pub recurrence: Recurrence,
    /// True when what rolls off is missing from inside.
    pub pinned: Pinned,
    /// The last control of permalink checks.
    pub control: Option<PageControl>,
    /// Posts that left without a sign, on which their pages alone decide.
    pub departures: Departures,
    /// Deleted posts that were shown again and wait.
    pub revivals: Revivals,
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
    /// True when the document says that it is the whole feed (`fh:complete`, `fh:stateful` false;
    /// H-2, H-20).
    pub complete: bool,
    /// True when the one assumption holds: a planet shows the newest of several feeds, and when one
    /// of them drops its old entries, they vanish from the middle.
    pub ordered: bool,
    /// True when the own page of a missed item is asked for, so that its word is waited for.
    pub checks_permalinks: bool,
    /// True when the server says of this document that something was modified, and nothing that it
    /// shows was: what it lacks was modified, so it was dated back or filtered rather than deleted.
    pub modified_unseen: bool,
    /// True when its posts may have rolled off all the same, so that what left at its end waits for
    /// the next new post.
    pub perhaps_capped: bool,
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
            modified_unseen: false,
            perhaps_capped: false,
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

/// Fewer survivors than this are no order.
const SURVIVORS_MIN: usize = 3;

/// Anchors that must stand behind a missing item: two, so that one pinned at the end proves
/// nothing.
const ANCHORS_MIN: usize = 2;

/// Longest quarantine, in seconds. After it each item that is missing between others is decided on by
/// itself. If the document has a fault, the window begins again instead.
const QUARANTINE_SECS: u64 = 7 * 86_400;

impl AbsenceState {
    /// True when an unconditional request would tell more than waiting: something is missed, or
    /// conditional answers have proven to be parts.
    pub fn wants_audit(&self) -> bool {
        self.suspects().next().is_some()
            || self.quarantined_since.is_some()
            || self.conditional.is_caught()
    }

    /// True when documents could prove anything by what they lack: there is an order to follow and
    /// absence is believed, or the document is the whole feed. Where they cannot, an unconditional
    /// request is a discourtesy.
    pub fn can_prove(&self, policy: &ProofPolicy) -> bool {
        let is_believed = policy.belief < AbsenceTrust::Off;
        policy.complete || policy.ordered && is_believed && self.items.len() >= SURVIVORS_MIN
    }

    /// Without these items, which have ended by other proof.
    #[must_use]
    pub fn without(&self, ended: &HashSet<ItemId>) -> Self {
        let mut memory = self.clone();
        memory.items.retain(|row| !ended.contains(&row.id));
        memory.last_believed.retain(|row| !ended.contains(&row.id));
        memory.departures.settle(ended);
        memory
    }

    /// Number of remembered items that a document lacks.
    pub fn lacked_by(&self, seen: &[ShownItem]) -> usize {
        let shown: HashSet<ItemId> = seen.iter().map(|place| place.id).collect();
        self.items
            .iter()
            .filter(|row| !shown.contains(&row.id))
            .count()
    }

    /// Time of the last full document that was decided on; [`Stamp::ZERO`] before the first.
    pub fn decided_at(&self) -> Stamp {
        self.documents.seen_at
    }

    /// True when the last document held no entry, after one that did; the window is that of the one
    /// before.
    pub fn is_of_empty_document(&self) -> bool {
        self.documents.standing == DocumentStanding::Empty
    }

    /// True when answers to conditional requests have proven to be parts of the feed, so that they
    /// show presence only.
    pub fn has_caught_conditional(&self) -> bool {
        self.conditional.is_caught()
    }

    /// The items that are missed and not decided on; those whose page shows that they live are not
    /// among them.
    pub fn suspects(&self) -> impl Iterator<Item = &WindowItem> {
        self.items.iter().filter(|row| {
            row.suspect
                .is_some_and(|missing| !missing.permalink_check.is_hidden())
        })
    }

    /// Time of the next permalink check.
    pub fn next_check_at(&self) -> Option<Stamp> {
        let of_suspects = self
            .items
            .iter()
            .filter_map(|row| row.suspect?.permalink_check.due());
        of_suspects.chain(self.departures.next_at()).min()
    }

    /// The missed item whose page is to be asked for now: the suspect that has been due for longest,
    /// else a post that left without a sign.
    pub fn due_check(&self, now: Stamp) -> Option<ItemId> {
        let due = self
            .items
            .iter()
            .filter_map(|row| Some((row.suspect?.permalink_check.due()?, row.id)));
        due.filter(|(due, _)| *due <= now)
            .min()
            .map(|(_, id)| id)
            .or_else(|| self.departures.due(now))
    }

    /// The missing of an item, if it is a suspect or has left without a sign.
    pub fn missing(&self, id: ItemId) -> Option<Suspect> {
        let row = self.items.iter().find(|row| row.id == id);
        let suspect = row.and_then(|row| row.suspect);
        suspect.or_else(|| self.departures.of(id).map(|departed| departed.suspect()))
    }

    /// The items whose pages may be asked for: suspects, then those that left without a sign.
    pub fn asked_about(&self) -> impl Iterator<Item = ItemId> {
        let suspects = self.items.iter().filter(|row| row.suspect.is_some());
        let departed = self.departures.rows.iter().map(|row| row.id);
        suspects.map(|row| row.id).chain(departed)
    }

    /// Time from which on the answer to an unconditional request decides on deleted items that were
    /// shown again.
    pub fn revivals_agree_at(&self, now: Stamp) -> Option<Stamp> {
        self.revivals.agrees_at(&self.recurrence, now)
    }

    /// Has the page of an item asked for now, because of a sign of its deletion that proves nothing.
    /// Nothing changes where pages are not asked for, or where the item is missing already and its
    /// page is asked for because of that.
    pub fn ask_for_page(
        &mut self,
        id: ItemId,
        tombstone_count: u8,
        policy: &ProofPolicy,
        now: Stamp,
    ) {
        if policy.checks_permalinks && !self.is_suspect(id) {
            let last_seen = self.decided_at();
            self.departures
                .note_hinted(id, tombstone_count, last_seen, now);
        }
    }

    fn is_suspect(&self, id: ItemId) -> bool {
        let mut rows = self.items.iter().filter(|row| row.id == id);
        rows.any(|row| row.suspect.is_some())
    }

    /// Leaves the page of a suspect to the check of the suspect.
    fn forget_departed_suspects(&mut self) {
        if !self.departures.rows.is_empty() {
            let suspects = self.items.iter().filter(|row| row.suspect.is_some());
            let suspects = suspects.map(|row| row.id).collect();
            self.departures.settle(&suspects);
        }
    }

    /// True while the pages of this site have said nothing of any post for days.
    pub fn has_useless_pages(&self, now: Stamp) -> bool {
        self.control
            .as_ref()
            .is_some_and(|control| control.is_hopeless(now))
    }

    /// True when the pages of missing items are asked for, and can be told apart.
    pub fn pages_tell(&self, policy: &ProofPolicy) -> bool {
        let tells = self.control.as_ref().is_some_and(PageControl::tells);
        policy.checks_permalinks && tells
    }

    /// Need of a control before the page of this item is asked for. A tombstone has been missing
    /// for long.
    pub fn control_need(&self, id: ItemId, now: Stamp) -> ControlNeed {
        let since = self
            .missing(id)
            .map_or(Stamp::ZERO, |missing| missing.since);
        self.control.clone().unwrap_or_default().need(since, now)
    }

    /// The same state after a control.
    #[must_use]
    pub fn controlled(&self, control: PageControl) -> Self {
        let control = self.control.clone().unwrap_or_default().after(control);
        Self {
            control: Some(control),
            ..self.clone()
        }
    }

    /// The result that an answer about an item comes to beside the last control.
    pub fn weigh(&self, said: CheckResult, id: ItemId, page: &AnsweredPage) -> CheckResult {
        self.control
            .as_ref()
            .map_or(said, |control| control.weigh(said, id, page))
    }

    /// Takes in the result of a permalink check, together with what documents have shown so far. An
    /// item that is not missed any more is none of a page's business.
    pub fn told(
        &self,
        id: ItemId,
        said: CheckResult,
        policy: &ProofPolicy,
        now: Stamp,
    ) -> AbsenceFindings {
        let policy = &self.believed(policy, now);
        let is_vain = matches!(said, CheckResult::Uninformative(_)) && self.has_useless_pages(now);
        let mut memory = self.clone();
        let mut outcome = AbsenceFindings::default();
        let mut rows = self
            .items
            .iter()
            .enumerate()
            .filter(|(_, row)| row.id == id);
        let Some((at, mut missing)) = rows.find_map(|(at, row)| Some((at, row.suspect?))) else {
            let departures = &mut memory.departures;
            match departures.told(id, said, policy.apart_secs, is_vain, now) {
                Some(DepartureEnd::Gone(proof))
                    if memory.admits(&proof, policy, &mut outcome.events, now) =>
                {
                    // The last document may show it still.
                    memory.items.retain(|row| row.id != id);
                    outcome.gone.push((id, proof));
                }
                Some(_) => outcome.rolled_off.push(id),
                None => {}
            }
            outcome.state = memory;
            return outcome.watched(policy);
        };
        let is_of_many = missing.basis == SuspectBasis::PageOfMany;
        let mut check = missing.permalink_check;
        if is_of_many {
            check = check.told_as_one_of_many(said, self.decides_at(now), policy.apart_secs, now);
        } else {
            check = check.told(said, policy.apart_secs, now);
        }
        if is_vain {
            check = check.over();
        }
        if is_of_many {
            memory.one_of_many_told(at, check, now, &mut outcome);
            outcome.state = memory;
            return outcome.watched(policy);
        }
        missing.permalink_check = check;
        memory.items[at].suspect = Some(missing);
        if policy.complete && check.is_hidden() {
            // It lives, and has left a list that says to be whole: the list is capped.
            let shown = memory.items.iter().filter(|row| row.suspect.is_none());
            memory.documents.cap_at(shown.count());
        }
        let policy = &memory.believed(policy, now);
        let proof = missing.proves(memory.items[at].tombstone_count, policy, now);
        if let Some(proof) = proof
            && memory.admits(&proof, policy, &mut outcome.events, now)
        {
            memory.items.remove(at);
            outcome.gone.push((id, proof));
        } else if missing.is_moot(memory.pinned.is_on(), policy) {
            memory.items.remove(at);
            outcome.rolled_off.push(id);
        }
        outcome.state = memory;
        outcome.watched(policy)
    }

    /// A policy as far as this feed's absences are believed now.
    pub fn believed(&self, policy: &ProofPolicy, now: Stamp) -> ProofPolicy {
        let by_end = if self.pinned.is_on() {
            AbsenceTrust::Off
        } else {
            AbsenceTrust::Usual
        };
        // Where no page tells anything it is as if none was asked for.
        let checks_permalinks = policy.checks_permalinks && !self.has_useless_pages(now);
        let belief = policy.belief.max(self.recurrence.belief(now)).max(by_end);
        ProofPolicy {
            belief,
            checks_permalinks,
            complete: policy.complete && !self.documents.is_capped(),
            perhaps_capped: self.documents.perhaps_capped.is_some(),
            ..*policy
        }
    }

    /// True when what rolls off is missing from inside, so that documents prove nothing by what
    /// they lack.
    pub fn is_sticky(&self) -> bool {
        self.pinned.is_on()
    }

    /// True when its documents say that they are the whole feed, and have let posts roll off.
    pub fn is_capped(&self) -> bool {
        self.cap().is_some()
    }

    /// Entries of such documents at most.
    pub fn cap(&self) -> Option<u16> {
        self.documents.capped
    }

    /// True when an item may be taken for deleted by this proof. What documents prove that do not
    /// say to be the whole feed is counted, and enough of it is for a day.
    fn admits(
        &mut self,
        proof: &Proof,
        policy: &ProofPolicy,
        events: &mut Vec<WindowEvent>,
        now: Stamp,
    ) -> bool {
        if policy.complete || proof.is_of_page() || self.ended.admit(now) {
            return true;
        }
        if !events.contains(&WindowEvent::DailyLimit) {
            events.push(WindowEvent::DailyLimit);
        }
        false
    }

    /// The same document again, as the answer to an unconditional request: a full confirmation of
    /// what it lacks (DESIGN section 3), if it was believed the first time. `seen` is that
    /// document. An unchanged answer to a conditional request proves nothing new and never gets
    /// here.
    pub fn observe_again(
        &self,
        seen: &[ShownItem],
        policy: &ProofPolicy,
        now: Stamp,
    ) -> AbsenceFindings {
        match self.documents.standing {
            DocumentStanding::Judged => {}
            DocumentStanding::Doubted => {
                return self.observe(seen, Coverage::Unconditional, policy, now);
            }
            DocumentStanding::Empty => {
                return self.observe(&[], Coverage::Unconditional, policy, now);
            }
            DocumentStanding::SetAside => {
                return AbsenceFindings::quiet(self.clone());
            }
        }
        let present = self.items.iter().filter(|row| row.suspect.is_none());
        let place = |row: &WindowItem| {
            let WindowItem {
                id,
                dated,
                tombstone_count,
                is_weak,
                ..
            } = *row;
            ShownItem {
                id,
                dated,
                is_known: true,
                tombstone_count,
                is_weak,
            }
        };
        let seen: Vec<ShownItem> = present.map(place).collect();
        let policy = self.believed(policy, now);
        self.judge(&seen, Coverage::Unconditional, &policy, now)
            .watched(&policy)
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
        let mut memory = Self {
            recurrence: returns,
            ..self.clone()
        };
        if !class.is_partial() {
            memory.documents.note_growth(seen.len());
        }
        let policy = memory.believed(policy, now);
        let mut outcome = memory
            .observe_by(seen, class, &policy, now)
            .watched(&policy);
        outcome.state.forget_departed_suspects();
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
        if class.is_partial() || (class == Coverage::Conditional && self.conditional.is_caught()) {
            let mut memory = self.learned(seen, class).cleared(seen, now);
            memory.documents.standing = if class.is_partial() {
                DocumentStanding::SetAside
            } else {
                DocumentStanding::Doubted
            };
            return AbsenceFindings::quiet(memory);
        }
        let (orientation, ascends) = self.documents.direction.follow(seen, &self.items);
        let turned: Vec<ShownItem> = if ascends {
            seen.iter().rev().copied().collect()
        } else {
            seen.to_vec()
        };
        let mut turned_state = self.clone();
        turned_state.documents.direction = orientation;
        if direction::is_backwards(&turned, &self.items) {
            turned_state.items.reverse();
        }
        if policy.complete {
            turned_state
                .documents
                .note_cap(&turned_state.items, &turned);
        }
        let policy = &turned_state.believed(policy, now);
        let mut outcome = turned_state.judge(&turned, class, policy, now);
        outcome.state.documents.seen_at = now;
        outcome
    }

    /// The memory when something that was missed is shown after all.
    fn cleared(&self, seen: &[ShownItem], now: Stamp) -> Self {
        let shown: HashSet<ItemId> = seen.iter().map(|place| place.id).collect();
        let mut memory = self.clone();
        memory
            .items
            .iter_mut()
            .filter(|row| shown.contains(&row.id))
            .for_each(|row| row.suspect = None);
        memory.departures.shown_in_disorder(&shown, now);
        memory
    }

    /// The same, with what the document tells of answers to conditional requests.
    fn learned(&self, seen: &[ShownItem], class: Coverage) -> Self {
        let mut memory = self.clone();
        memory.conditional.learn(seen, &self.items, class);
        memory
    }
}

impl AbsenceFindings {
    /// Nothing but what is remembered.
    fn quiet(state: AbsenceState) -> Self {
        Self {
            state,
            ..Self::default()
        }
    }

    /// The same, with a note of what was taken for deleted because it is missing: it may come back.
    fn watched(mut self, policy: &ProofPolicy) -> Self {
        let gone: HashSet<ItemId> = self.gone.iter().map(|(id, _)| *id).collect();
        let last_believed = &mut self.state.last_believed;
        last_believed.retain(|row| !gone.contains(&row.id));
        for (id, proof) in &self.gone {
            if matches!(proof, Proof::Bracketed(_)) {
                self.state.recurrence.end(*id, policy.belief);
            }
        }
        self
    }
}
