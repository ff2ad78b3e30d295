//! Judgement of a full document by what it lacks (POLLING 2.3, steps 3 to 7): quarantined, begun anew, or decided on.

use super::{
    ANCHORS_MIN, AbsenceFindings, AbsenceState, Coverage, DocumentStanding, ProofPolicy, ShownItem, Suspect,
    WindowEvent, WindowItem,
    comparison::{AbsenceRule, Comparison, LackingItem},
    proof::DocumentContext,
};
use crate::feed::{item::ItemId, stamp::Stamp};
use std::collections::{HashMap, HashSet};

/// Rows that are remembered; what stands behind them is not missed when it goes.
const ROWS_MAX: usize = 1000;

/// Full documents in a row whose order cannot be followed before the window begins anew.
const UNSTABLE_MAX: u8 = 6;

/// Longest quarantine, in seconds; then the window begins anew.
const HOLD_SECS: u64 = 7 * 86_400;

impl AbsenceState {
    /// Judges a full document; `seen` is newest first.
    pub(super) fn judge(
        &self,
        seen: &[ShownItem],
        class: Coverage,
        policy: &ProofPolicy,
        now: Stamp,
    ) -> AbsenceFindings {
        let mut memory = self.learned(seen, class);
        memory.documents.standing = DocumentStanding::Judged;
        if self.items.is_empty() {
            memory.items = rows(seen);
            memory.documents.note_length(seen);
            return AbsenceFindings { state: memory, ..AbsenceFindings::default() };
        }
        let view = Comparison::new(self, seen);
        // An empty or very short document proves nothing by itself, not even that the feed was replaced.
        if seen.is_empty() || self.documents.is_short(seen) {
            return memory.hold(self, &view, seen, class, now);
        }
        if view.survivors == 0 && !policy.complete {
            return memory.begin_anew(self, &view, seen, WindowEvent::Gap);
        }
        let rule = if policy.complete {
            AbsenceRule::Complete
        } else if !view.is_stable() {
            memory.documents.unstable += 1;
            if memory.documents.unstable < UNSTABLE_MAX {
                memory.items = prepended(self, seen, &view);
                memory.documents.standing = DocumentStanding::SetAside;
                return AbsenceFindings { state: memory, ..AbsenceFindings::default() };
            }
            return memory.begin_anew(self, &view, seen, WindowEvent::Rebaselined);
        } else {
            AbsenceRule::Bracket { decides: policy.ordered && memory.documents.direction.is_known() }
        };
        memory.documents.unstable = 0;
        let missed = view.missed(self, seen, rule);
        let fresh = missed.iter().filter(|m| m.is_interior && self.items[m.at].suspect.is_none()).count();
        // A list of the ten best may change by half from one day to the next.
        let is_mass = !policy.complete && fresh > (self.items.len() / 5).max(2);
        if is_mass {
            return memory.hold(self, &view, seen, class, now);
        }
        memory.quarantined_since = None;
        let (came, inside, end) = self.moved(seen, &view, &missed);
        memory.pinned = self.pinned.after(came, inside, end);
        let as_if_rolled = came > 0 && came == inside && end == 0;
        let policy = &memory.believed(policy, now);
        let counts = class == Coverage::Unconditional || self.conditional.is_proof();
        let strong = self.is_conserved(seen, &view);
        memory.documents.note_length(seen);
        let becomes_sticky = memory.pinned.is_on() && !self.pinned.is_on();
        let last_seen = self.documents.seen_at;
        let sight = DocumentContext { coverage: class, counts, strong, as_if_rolled, last_seen, now, policy };
        let mut outcome = memory.decide(self, seen, &missed, &sight);
        outcome.events.extend(becomes_sticky.then_some(WindowEvent::Pinned));
        outcome
    }

    /// Number of new posts at the head, if none was known before and none came elsewhere; numbers of those missed anew from
    /// inside, and how many from the end.
    fn moved(&self, seen: &[ShownItem], view: &Comparison, missed: &[LackingItem]) -> (usize, usize, usize) {
        let is_new = |place: &&ShownItem| !view.position.contains_key(&place.id);
        let head = seen.iter().take_while(is_new).filter(|place| !place.is_known).count();
        let new = if seen.iter().filter(is_new).count() == head { head } else { 0 };
        let fresh = || missed.iter().filter(|missed| self.items[missed.at].suspect.is_none());
        let inside = fresh().filter(|missed| missed.behind >= ANCHORS_MIN).count();
        (new, inside, fresh().count() - inside)
    }

    /// True when as many came as went, so that nothing was cut or filtered. That the document be as long as usual, too, cost
    /// a sixth of the deletions in the simulation where lengths change, and spared no mistake.
    fn is_conserved(&self, seen: &[ShownItem], view: &Comparison) -> bool {
        let came = seen.iter().filter(|place| !view.position.contains_key(&place.id)).count();
        let fresh = self.items.iter().filter(|row| row.suspect.is_none() && !view.shown.contains(&row.id));
        came == fresh.count()
    }

    /// Nothing is concluded from a document that lacks too much; what is new in it is remembered.
    fn hold(
        mut self,
        before: &Self,
        view: &Comparison,
        seen: &[ShownItem],
        class: Coverage,
        now: Stamp,
    ) -> AbsenceFindings {
        let since = before.quarantined_since.unwrap_or(now);
        // Only the answer to an unconditional request says what the feed is from now on.
        if class == Coverage::Unconditional && now.secs_since(since) > HOLD_SECS {
            return self.begin_anew(before, view, seen, WindowEvent::QuarantineEnded);
        }
        self.quarantined_since = Some(since);
        self.items = prepended(before, seen, view);
        self.documents.standing =
            if seen.is_empty() { DocumentStanding::Empty } else { DocumentStanding::Doubted };
        let events =
            before.quarantined_since.is_none().then_some(WindowEvent::Quarantined).into_iter().collect();
        AbsenceFindings { state: self, events, ..AbsenceFindings::default() }
    }

    /// The window is this document from now on; what is not in it has rolled off.
    fn begin_anew(
        mut self,
        before: &Self,
        view: &Comparison,
        seen: &[ShownItem],
        event: WindowEvent,
    ) -> AbsenceFindings {
        let left = before.items.iter().filter(|row| !view.shown.contains(&row.id));
        let rolled_off: Vec<ItemId> = left.map(|row| row.id).collect();
        // A feed of two entries has no order that could be followed; as long as it shows them all, nothing is lost.
        let events = if rolled_off.is_empty() { Vec::new() } else { vec![event] };
        self.items = rows(seen);
        self.quarantined_since = None;
        self.documents.unstable = 0;
        self.documents.lengths.clear();
        self.documents.note_length(seen);
        AbsenceFindings { state: self, rolled_off, events, ..AbsenceFindings::default() }
    }

    /// The last step: what is proven, what is suspected, what rolled off; and the window with the suspects at their places.
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
                outcome.rolled_off.push(row.id);
                continue;
            }
            let missing = Suspect::again(row.suspect, missed, sight);
            let proof = missing.proves(row.tombstone_count, sight.policy, sight.now);
            if let Some(proof) = proof
                && (sight.policy.complete || self.may_end(&mut outcome.events, sight.now))
            {
                outcome.gone.push((row.id, proof));
            } else if missing.is_moot(self.pinned.is_on(), sight.policy) {
                outcome.rolled_off.push(row.id);
            } else {
                undecided.entry(predecessor).or_default().push(WindowItem { suspect: Some(missing), ..*row });
            }
        }
        let mut window = undecided.remove(&None).unwrap_or_default();
        for row in rows(seen) {
            window.push(row);
            window.extend(undecided.remove(&Some(row.id)).unwrap_or_default());
        }
        self.items = window;
        outcome.state = self;
        outcome
    }
}

fn rows(seen: &[ShownItem]) -> Vec<WindowItem> {
    let row = |place: &ShownItem| {
        let ShownItem { id, dated, tombstone_count, is_weak, .. } = *place;
        WindowItem { id, dated, tombstone_count, is_weak, suspect: None }
    };
    seen.iter().take(ROWS_MAX).map(row).collect()
}

/// The remembered window with the new items before it that stand at the head of the document; what it shows again is
/// not missed any more.
fn prepended(before: &AbsenceState, seen: &[ShownItem], view: &Comparison) -> Vec<WindowItem> {
    let new = seen.iter().take_while(|place| !view.position.contains_key(&place.id));
    let mut window = rows(&new.copied().collect::<Vec<_>>());
    window.extend(before.items.iter().map(|row| {
        let missing = row.suspect.filter(|_| !view.shown.contains(&row.id));
        WindowItem { suspect: missing, ..*row }
    }));
    window.truncate(ROWS_MAX);
    window
}
