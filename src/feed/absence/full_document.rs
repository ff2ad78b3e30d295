//! Judgement of a full document by what it lacks (POLLING 2.3, steps 3 to 7): quarantined, begun
//! anew, or decided on.

use super::{
    ANCHORS_MIN, AbsenceFindings, AbsenceState, Coverage, DocumentStanding, ProofPolicy,
    QUARANTINE_SECS, ShownItem, Suspect, WindowEvent, WindowItem,
    comparison::{AbsenceRule, Comparison, DoubtedDocument, LackingItem},
    proof::{DocumentContext, SuspectBasis},
};
use crate::{item::ItemId, stamp::Stamp};
use std::collections::{HashMap, HashSet};

/// Rows that are remembered.
// Limit: what stands behind them is not missed when it goes.
const ROWS_MAX: usize = 1000;

/// Items that are missing at once are many where they are more than one in so many of the window,
/// and more than a few.
const MANY_SHARE: usize = 5;
const FEW: usize = 2;

/// Full documents in a row whose order cannot be followed before the window begins anew.
const UNSTABLE_MAX: u8 = 6;

/// Seconds for which a document that says to be the whole feed is not believed when it lacks much
/// at once.
const WHOLE_QUARANTINE_SECS: u64 = 86_400;

/// Seconds for which a suspect is remembered when the order of documents cannot be followed.
const KEPT_SECS: u64 = 7 * 86_400;

impl AbsenceState {
    // Decides: What does a full document prove by what it lacks?
    // Limit: a post dated back behind the end counts as deleted, since both make the same document.
    /// Judges a full document; `seen` is newest first.
    pub(super) fn judge(
        &self,
        seen: &[ShownItem],
        class: Coverage,
        policy: &ProofPolicy,
        now: Stamp,
    ) -> AbsenceFindings {
        if let Some(outcome) = self.judge_by_last_believed(seen, class, policy, now) {
            return outcome;
        }
        let mut memory = self.learned(seen, class);
        memory.documents.standing = DocumentStanding::Judged;
        if self.items.is_empty() {
            memory.items = rows(seen);
            memory.documents.note_length(seen);
            return AbsenceFindings::quiet(memory);
        }
        let view = Comparison::new(self, seen);
        let view = &view;
        let doubted = DoubtedDocument {
            view,
            seen,
            coverage: class,
            is_fault: self.documents.is_short(seen) || view.survivors * 2 <= seen.len(),
            policy,
            now,
        };
        // An empty or very short document proves nothing by itself, not even that the feed was
        // replaced.
        if seen.is_empty() || self.documents.is_short(seen) {
            let lacking = self.lacking(view);
            return memory.quarantine(self, &lacking, &doubted);
        }
        // Documents in no order may have nothing in common and yet be of one feed.
        let is_shuffled = self.departures.is_unordered && view.is_joined(seen);
        if view.survivors == 0 && !policy.complete && !is_shuffled {
            // Where known items take the place of all others, those may have been deleted.
            if policy.checks_permalinks && view.is_joined(seen) {
                let lacking = self.lacking(view);
                return memory.quarantine(self, &lacking, &doubted);
            }
            return memory.begin_anew(self, view, seen, WindowEvent::Gap);
        }
        let rule = if policy.complete {
            AbsenceRule::Complete
        } else if !view.is_stable() && !view.continues(self, seen) {
            memory.documents.unstable += 1;
            memory.departures.shown_in_disorder(&view.shown, now);
            if memory.documents.unstable < UNSTABLE_MAX {
                memory.keep_last_believed(self);
                memory.items = prepended(self, seen, view);
                memory.documents.standing = DocumentStanding::SetAside;
                return AbsenceFindings::quiet(memory);
            }
            memory.departures.is_unordered = true;
            let lacking = self
                .items
                .iter()
                .filter(|row| !view.shown.contains(&row.id));
            let last_seen = self.documents.seen_at;
            memory.departures.note(lacking, last_seen, policy, now);
            return memory.begin_anew(self, view, seen, WindowEvent::Rebaselined);
        } else {
            let direction = memory.documents.direction;
            if policy.ordered && direction.is_known() {
                AbsenceRule::Bracket
            } else if policy.ordered && !self.departures.is_unordered {
                let enters_at_end = direction.inserts != 0 && direction.pins == 0;
                AbsenceRule::BothSides { enters_at_end }
            } else {
                AbsenceRule::Nothing
            }
        };
        memory.documents.unstable = 0;
        memory.departures.settle(&view.shown);
        memory.departures.is_unordered &= !memory.documents.direction.is_known();
        let decides = matches!(rule, AbsenceRule::Bracket | AbsenceRule::Complete);
        let is_blind = !decides && memory.documents.direction.is_lost(seen);
        let missed = view.missed(self, seen, rule);
        let fresh: Vec<usize> = missed
            .iter()
            .filter(|missed| missed.is_interior && self.items[missed.at].suspect.is_none())
            .map(|missed| missed.at)
            .collect();
        let is_held = |missed: &&LackingItem| {
            let row = &self.items[missed.at];
            Self::is_of_many(row) && (missed.is_interior || Self::is_told_by_page(row))
        };
        let many = missed.iter().filter(is_held).count();
        let is_mass = fresh.len() + many > (self.items.len() / MANY_SHARE).max(FEW);
        // A list that says to be whole is believed after a day, and one in order after a week: then
        // each of the missing items needs its own proof.
        let quarantine_secs = if policy.complete {
            WHOLE_QUARANTINE_SECS
        } else {
            QUARANTINE_SECS
        };
        let is_believed = (policy.complete || !doubted.is_fault)
            && self
                .quarantined_since
                .is_some_and(|since| now.secs_since(since) >= quarantine_secs);
        if is_mass && !is_believed {
            return memory.quarantine(self, &fresh, &doubted);
        }
        memory.quarantined_since = None;
        let (came, inside, end) = self.moved(seen, view, &missed);
        // A fault that lasts shows the same document, without anything new.
        let is_shown = |row: &&WindowItem| view.shown.contains(&row.id);
        let shown = self.last_believed.iter().filter(is_shown).count();
        if came > 0 || shown * 2 > self.last_believed.len() {
            memory.last_believed = Vec::new();
        }
        memory.pinned = self.pinned.after(came, inside, end);
        let rolls_off_at_end = self.documents.rolls_off_at_end && !memory.pinned.is_on();
        memory.documents.rolls_off_at_end = rolls_off_at_end || (came > 0 && end > 0);
        let as_if_rolled = came > 0 && came == inside && end == 0 && !rolls_off_at_end;
        let policy = &memory.believed(policy, now);
        let counts = class == Coverage::Unconditional || self.conditional.is_proof();
        let strong = self.is_conserved(seen, view);
        memory.documents.note_length(seen);
        let becomes_sticky = memory.pinned.is_on() && !self.pinned.is_on();
        let last_seen = self.documents.seen_at;
        let sight = DocumentContext {
            coverage: class,
            counts,
            strong,
            as_if_rolled,
            is_blind,
            is_sequence: memory.documents.direction.is_known(),
            last_seen,
            now,
            policy,
        };
        let mut outcome = memory.decide(self, seen, &missed, &sight);
        if becomes_sticky {
            outcome.events.push(WindowEvent::Pinned);
        }
        outcome
    }

    // Decides: Does a document end the doubt about those before it?
    /// Judges a document by the last one that was believed, if it goes on where that one stood.
    /// `None` if it does not, or no document is doubted. Entries that only doubted documents showed
    /// and that it lacks are left to their pages.
    fn judge_by_last_believed(
        &self,
        seen: &[ShownItem],
        class: Coverage,
        policy: &ProofPolicy,
        now: Stamp,
    ) -> Option<AbsenceFindings> {
        if self.last_believed.is_empty() {
            return None;
        }
        let mut believed = self.clone();
        believed.items = std::mem::take(&mut believed.last_believed);
        believed.quarantined_since = None;
        believed.documents.unstable = 0;
        let known: HashSet<ItemId> = believed.items.iter().map(|row| row.id).collect();
        let mut outcome = believed.judge(seen, class, policy, now);
        if !outcome.state.last_believed.is_empty() {
            return None;
        }
        // Of many that are missing, some roll off in the end, and the rest is no less in doubt.
        let missing = outcome.state.suspects().count() + outcome.gone.len();
        if missing > self.last_believed_suspects() + FEW {
            return None;
        }
        let shown: HashSet<ItemId> = seen.iter().map(|place| place.id).collect();
        let is_of_doubted =
            |row: &&WindowItem| !known.contains(&row.id) && !shown.contains(&row.id);
        let doubted: Vec<&WindowItem> = self.items.iter().filter(is_of_doubted).collect();
        let last_seen = self.documents.seen_at;
        let departures = &mut outcome.state.departures;
        departures.note(doubted.iter().copied(), last_seen, policy, now);
        let is_over = |row: &&&WindowItem| departures.of(row.id).is_none();
        let over = doubted.iter().filter(is_over).map(|row| row.id);
        outcome.rolled_off.extend(over);
        Some(outcome)
    }

    fn last_believed_suspects(&self) -> usize {
        let rows = self.last_believed.iter();
        rows.filter(|row| row.suspect.is_some()).count()
    }

    /// Keeps the window of the last document that was believed while later ones are doubted.
    pub(super) fn keep_last_believed(&mut self, before: &Self) {
        if self.last_believed.is_empty() {
            self.last_believed.clone_from(&before.items);
        }
    }

    /// Places of the rows that a document lacks and that have an id of their own.
    fn lacking(&self, view: &Comparison) -> Vec<usize> {
        let is_lacking = |row: &WindowItem| !row.is_weak && !view.shown.contains(&row.id);
        self.items
            .iter()
            .enumerate()
            .filter(|(_, row)| is_lacking(row))
            .map(|(at, _)| at)
            .collect()
    }

    /// Number of new posts at the head, if none was known before and none came elsewhere; numbers
    /// of those missed anew from inside, and how many from the end.
    fn moved(
        &self,
        seen: &[ShownItem],
        view: &Comparison,
        missed: &[LackingItem],
    ) -> (usize, usize, usize) {
        let is_new = |place: &&ShownItem| !view.position.contains_key(&place.id);
        let head = seen
            .iter()
            .take_while(is_new)
            .filter(|place| !place.is_known)
            .count();
        let new = if seen.iter().filter(is_new).count() == head {
            head
        } else {
            0
        };
        let fresh = || {
            missed
                .iter()
                .filter(|missed| self.items[missed.at].suspect.is_none())
        };
        let inside = fresh()
            .filter(|missed| missed.behind >= ANCHORS_MIN)
            .count();
        (new, inside, fresh().count() - inside)
    }

    /// True when as many came as went, so that nothing was cut or filtered. That the document be as
    /// long as usual, too, cost a sixth of the deletions in the simulation where lengths change,
    /// and spared no mistake.
    fn is_conserved(&self, seen: &[ShownItem], view: &Comparison) -> bool {
        let came = seen
            .iter()
            .filter(|place| !view.position.contains_key(&place.id))
            .count();
        let fresh = self
            .items
            .iter()
            .filter(|row| row.suspect.is_none() && !view.shown.contains(&row.id));
        came == fresh.count()
    }

    /// The window is this document from now on; what is not in it has rolled off. Suspects stay
    /// when merely the order was lost: their pages, or later documents, decide on them.
    pub(super) fn begin_anew(
        mut self,
        before: &Self,
        view: &Comparison,
        seen: &[ShownItem],
        event: WindowEvent,
    ) -> AbsenceFindings {
        let now = self.documents.seen_at;
        let is_kept = |missing: Suspect| {
            event == WindowEvent::Rebaselined
                && missing.basis != SuspectBasis::PageOfMany
                && !missing.permalink_check.is_hidden()
                && now.secs_since(missing.since) < KEPT_SECS
        };
        let mut kept: HashMap<Option<ItemId>, Vec<WindowItem>> = HashMap::new();
        let (mut rolled_off, mut predecessor) = (Vec::new(), None);
        for row in &before.items {
            if view.shown.contains(&row.id) {
                predecessor = Some(row.id);
            } else if row.suspect.is_some_and(is_kept) {
                kept.entry(predecessor).or_default().push(*row);
            } else {
                rolled_off.push(row.id);
            }
        }
        let mut events = Vec::new();
        // A feed of two entries has no order that could be followed; as long as it shows them all,
        // nothing is lost.
        if event != WindowEvent::Gap && !rolled_off.is_empty() {
            events.push(event);
        }
        if event != WindowEvent::Rebaselined && !view.is_joined(seen) {
            events.push(WindowEvent::Gap);
        }
        self.items = spliced(seen, kept);
        self.quarantined_since = None;
        self.last_believed = Vec::new();
        if event == WindowEvent::Gap {
            // The document may be of another feed. The next one tells.
            self.keep_last_believed(before);
        }
        self.documents.unstable = 0;
        self.documents.lengths.clear();
        self.documents.note_length(seen);
        AbsenceFindings {
            state: self,
            rolled_off,
            events,
            ..AbsenceFindings::default()
        }
    }

    /// The last step: what is proven, what is suspected, what rolled off; and the window with the
    /// suspects at their places.
    fn decide(
        mut self,
        before: &Self,
        seen: &[ShownItem],
        missed: &[LackingItem],
        sight: &DocumentContext<'_>,
    ) -> AbsenceFindings {
        let mut outcome = AbsenceFindings::default();
        let mut undecided: HashMap<Option<ItemId>, Vec<WindowItem>> = HashMap::new();
        // Where a suspect goes back in: behind the nearest row before it that stays.
        let shown: HashSet<ItemId> = seen.iter().map(|place| place.id).collect();
        let mut predecessor = None;
        let mut next = missed.iter().peekable();
        for (at, row) in before.items.iter().enumerate() {
            let Some(missed) = next.next_if(|missed| missed.at == at) else {
                if shown.contains(&row.id) {
                    predecessor = Some(row.id);
                }
                continue;
            };
            if !missed.is_interior {
                if sight.is_blind || missed.is_doubtful {
                    let last_seen = sight.last_seen;
                    self.departures
                        .note([row], last_seen, sight.policy, sight.now);
                } else if let Some(missing) = row.suspect {
                    let departures = &mut self.departures;
                    departures.note_suspect(row, &missing, sight.policy, sight.now);
                }
                outcome.rolled_off.push(row.id);
                continue;
            }
            let missing = Suspect::again(row.suspect, missed, sight);
            let proof = missing.proves(row.tombstone_count, sight.policy, sight.now);
            if let Some(proof) = proof
                && self.admits(&proof, sight.policy, &mut outcome.events, sight.now)
            {
                outcome.gone.push((row.id, proof));
            } else if missing.is_moot(self.pinned.is_on(), sight.policy) {
                outcome.rolled_off.push(row.id);
            } else {
                undecided.entry(predecessor).or_default().push(WindowItem {
                    suspect: Some(missing),
                    ..*row
                });
            }
        }
        self.items = spliced(seen, undecided);
        outcome.state = self;
        outcome
    }
}

fn rows(seen: &[ShownItem]) -> Vec<WindowItem> {
    let row = |place: &ShownItem| {
        let ShownItem {
            id,
            dated,
            tombstone_count,
            is_weak,
            ..
        } = *place;
        WindowItem {
            id,
            dated,
            tombstone_count,
            is_weak,
            suspect: None,
        }
    };
    seen.iter().take(ROWS_MAX).map(row).collect()
}

/// The window of a document, with what it lacks at its old places: behind the nearest row before it
/// that stays.
fn spliced(
    seen: &[ShownItem],
    mut lacking: HashMap<Option<ItemId>, Vec<WindowItem>>,
) -> Vec<WindowItem> {
    let mut window = lacking.remove(&None).unwrap_or_default();
    for row in rows(seen) {
        window.push(row);
        window.extend(lacking.remove(&Some(row.id)).unwrap_or_default());
    }
    window
}

/// The remembered window with the new items before it that stand at the head of the document; what
/// it shows again is not missed any more.
pub(super) fn prepended(
    before: &AbsenceState,
    seen: &[ShownItem],
    view: &Comparison,
) -> Vec<WindowItem> {
    let new = seen
        .iter()
        .take_while(|place| !view.position.contains_key(&place.id));
    let mut window = rows(&new.copied().collect::<Vec<_>>());
    window.extend(before.items.iter().map(|row| {
        let missing = row.suspect.filter(|_| !view.shown.contains(&row.id));
        WindowItem {
            suspect: missing,
            ..*row
        }
    }));
    window.truncate(ROWS_MAX);
    window
}
