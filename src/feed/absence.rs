//! What the absence of an item from a document proves: rolled off the end of the window, or deleted by the publisher
//! (POLLING 2.3, *bracketed absence*). Pure; presence is `reconcile`'s business.
//!
//! The one assumption: a full document is the first N items of some order in which items that nobody touches keep their
//! places. So an item that is missing although two that stood behind it are still there did not roll off.

use super::{item::ItemId, stamp::Stamp};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet, VecDeque};

mod anchors;

mod orientation;

mod verdict;

mod probe;

mod sticky;

mod returns;

#[cfg(test)]
mod tests;

pub use probe::{Probe, Said};
pub use returns::{Belief, Cause, Returns};
pub use verdict::{Missing, Needs, Proof};

use orientation::Orientation;
use sticky::Sticky;

/// What kind of observation a document is (POLLING 2.2). What is no readable feed is none at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Class {
    /// The whole document, to a request without validators: FULL-U.
    Audit,
    /// The whole document, as far as one knows, to a request with validators: FULL-C.
    Conditional,
    /// A part of the feed, on purpose (226, an archive page, a push) or by an accident that shows (cut, mended). It shows
    /// presence only.
    #[default]
    Partial,
}

/// One entry of a document, as far as its place and its item matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its item.
    pub id: ItemId,
    /// The date by which the publisher sorts it, microseconds since 1970: published, else updated.
    pub dated: Option<i64>,
    /// Whether the item was known, and alive, before this document.
    pub known: bool,
    /// How often the item was deleted before: one that comes and goes needs more proof.
    pub deaths: u8,
    /// Whether nothing but its title or its content names it, so that an edit may look like an end and a beginning.
    pub is_weak: bool,
}

/// One item of the remembered window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The item.
    pub id: ItemId,
    /// Its date when it was last seen.
    pub dated: Option<i64>,
    /// How often it was deleted before.
    pub deaths: u8,
    /// Whether it has no id of its own: it is never missed (DESIGN section 3).
    pub is_weak: bool,
    /// Set while it is missed and not decided on.
    pub missing: Option<Missing>,
}

/// What is remembered of a feed's documents for the sake of what is missing from the next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The last full document, newest first, with what is missed since at its old place.
    pub rows: Vec<Row>,
    /// Entries of the last full documents, newest last, at most [`LENGTHS_MAX`].
    lengths: VecDeque<u16>,
    orientation: Orientation,
    /// What the last document was taken for.
    taken: Taken,
    /// Full documents in a row whose order could not be followed.
    unstable: u8,
    /// When the last full document was read.
    seen_at: Stamp,
    /// Since when too much is missing at once to believe it.
    pub held_since: Option<Stamp>,
    /// Rises with every audit that bears out the conditional answer before it, falls with every other:
    /// [`TRUSTED`] and more counts as proof, [`CAUGHT`] and less is taken for a part of the feed.
    trust: i8,
    /// What every conditional answer since the last audit lacked.
    lacked: Option<Lacked>,
    /// Items taken for deleted because they are missing, and since when they are counted: at most [`DAILY_MAX`] a day.
    ended: (Stamp, u16),
    /// What was missing and came back.
    pub returns: Returns,
    /// Whether what rolls off is missing from inside.
    sticky: Sticky,
}

/// What a document was taken for, and so what the same document says when it comes again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Taken {
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Lacked {
    /// How many answers.
    answers: u32,
    /// What each of them lacked.
    ids: Vec<ItemId>,
}

/// What proof a tombstone needs (POLLING 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
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
    pub belief: Belief,
}

impl Default for Policy {
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
            belief: Belief::Usual,
        }
    }
}

/// What a document proves by what it does not hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// What is remembered from now on.
    pub memory: Memory,
    /// Items that are gone, and the proof, in window order.
    pub gone: Vec<(ItemId, Proof)>,
    /// Items that left by the end of the window, which says nothing about them.
    pub rolled_off: Vec<ItemId>,
    /// What an operator should know.
    pub events: Vec<Event>,
}

/// What happened to the window as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Event {
    /// Nothing of the last window is in this one: items may be missing between the two.
    Gap,
    /// The order of the documents could not be followed any more; the window begins anew.
    Rebaselined,
    /// Too much is missing at once; nothing is concluded for now.
    Held,
    /// Too much stayed missing for [`HOLD_SECS`]; the window begins anew and nothing is deleted.
    HoldEnded,
    /// More is proven to be gone than is believed in a day; the rest waits.
    Capped,
    /// More than half of the window was edited at once, and its publisher says of no such entry that it was updated.
    Reformatted,
    /// What was missing came back too often, so that a deletion takes longer to prove.
    Doubted,
    /// What was taken for deleted in spite of that came back, so that absence proves nothing for a while.
    Disbelieved,
    /// What rolls off is missing from inside, so that documents prove nothing by what they lack.
    Sticky,
}

impl Event {
    /// Whether the window began anew, so that items may be missing between what was held and what came with it.
    pub fn leaves_a_gap(self) -> bool {
        matches!(self, Self::Gap | Self::Rebaselined | Self::HoldEnded)
    }

    /// The same in the operator's words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Gap => "nothing of the last document was in the next one",
            Self::Rebaselined => "the order of the documents could not be followed, so the window began anew",
            Self::Held => "too much was missing at once, so nothing was concluded",
            Self::HoldEnded => "too much stayed missing for a week, so the window began anew",
            Self::Capped => "more items seem to be gone than is believed in one day, so the rest waits",
            Self::Reformatted => {
                "most of the window was edited at once without a word on it: the feed was reformatted"
            }
            Self::Doubted => {
                "what was missing came back, so for a month a deletion takes seven days of absence"
            }
            Self::Disbelieved => {
                "what had been missing for seven days came back, so for a month absence proves nothing"
            }
            Self::Sticky => {
                "what rolls off is missing from before an end that stays, so documents prove no deletion"
            }
        }
    }
}

/// Rows that are remembered; what stands behind them is not missed when it goes.
const ROWS_MAX: usize = 1000;

/// Lengths of documents that are remembered.
const LENGTHS_MAX: usize = 20;

/// Full documents in a row whose order cannot be followed before the window begins anew.
const UNSTABLE_MAX: u8 = 6;

/// Fewer survivors than this are no order.
const SURVIVORS_MIN: usize = 3;

/// Anchors that must stand behind a missing item: two, so that one pinned at the end proves nothing.
const ANCHORS_MIN: usize = 2;

/// How long too much may be missing at once before the window begins anew, in seconds.
const HOLD_SECS: u64 = 7 * 86_400;

/// Items of a feed that are taken for deleted in a day, because they are missing, at most (POLLING 2.3, step 5): a mistake
/// of ours must not empty a feed before somebody notices.
const DAILY_MAX: u16 = 100;

const DAY_SECS: u64 = 86_400;

/// How far conditional answers must be trusted to count as proof: the last two audits bore them out.
const TRUSTED: i8 = 2;

/// Conditional answers of so little trust are parts of the feed: some servers send what changed since, and call it 200.
const CAUGHT: i8 = -2;

impl Memory {
    /// Whether an unconditional request would tell more than waiting: something is missed, or conditional answers have
    /// proven to be parts.
    pub fn wants_audit(&self) -> bool {
        self.suspects().next().is_some() || self.held_since.is_some() || self.trust <= CAUGHT
    }

    /// Whether documents could prove anything by what they lack: there is an order to follow and absence is believed, or the
    /// document is the whole feed. Where they cannot, an unconditional request is a discourtesy.
    pub fn can_prove(&self, policy: &Policy) -> bool {
        let is_believed = policy.belief < Belief::Off;
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
    pub fn lacked_by(&self, seen: &[Place]) -> usize {
        let shown: HashSet<ItemId> = seen.iter().map(|place| place.id).collect();
        self.rows.iter().filter(|row| !shown.contains(&row.id)).count()
    }

    /// Whether answers to conditional requests have proven to be parts of the feed, so that they show presence only.
    pub fn has_caught_conditional(&self) -> bool {
        self.trust <= CAUGHT
    }

    /// The items that are missed and not decided on; those whose page shows that they live are not among them.
    pub fn suspects(&self) -> impl Iterator<Item = &Row> {
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
    pub fn told(&self, id: ItemId, said: Said, policy: &Policy, now: Stamp) -> Outcome {
        let policy = &self.believed(policy, now);
        let mut memory = self.clone();
        let mut outcome = Outcome::default();
        let found = memory.rows.iter().position(|row| row.id == id && row.missing.is_some());
        if let Some(at) = found
            && let Some(missing) = &mut memory.rows[at].missing
        {
            missing.probe = missing.probe.told(said, policy.apart_secs, now);
            let (missing, deaths) = (*missing, memory.rows[at].deaths);
            if let Some(proof) = missing.proves(deaths, policy, now)
                && memory.may_end(&mut outcome.events, now)
            {
                memory.rows.remove(at);
                outcome.gone.push((id, proof));
            } else if memory.sticky.is_on() && missing.is_moot(policy) {
                memory.rows.remove(at);
                outcome.rolled_off.push(id);
            }
        }
        outcome.memory = memory;
        outcome.watched(policy)
    }

    /// A policy as far as this feed's absences are believed now.
    pub fn believed(&self, policy: &Policy, now: Stamp) -> Policy {
        let by_end = if self.sticky.is_on() { Belief::Off } else { Belief::Usual };
        Policy { belief: policy.belief.max(self.returns.belief(now)).max(by_end), ..*policy }
    }

    /// Whether what rolls off is missing from inside, so that documents prove nothing by what they lack.
    pub fn is_sticky(&self) -> bool {
        self.sticky.is_on()
    }

    /// Counts an item that is taken for deleted, unless enough are for a day.
    fn may_end(&mut self, events: &mut Vec<Event>, now: Stamp) -> bool {
        if now.secs_since(self.ended.0) >= DAY_SECS {
            self.ended = (now, 0);
        }
        let may = self.ended.1 < DAILY_MAX;
        if may {
            self.ended.1 += 1;
        } else if !events.contains(&Event::Capped) {
            events.push(Event::Capped);
        }
        may
    }

    /// The same document again, as the answer to an unconditional request: a full confirmation of what it lacks
    /// (DESIGN section 3), if it was believed the first time. `seen` is that document. An unchanged answer to a conditional
    /// request proves nothing new and never gets here.
    pub fn observe_again(&self, seen: &[Place], policy: &Policy, now: Stamp) -> Outcome {
        match self.taken {
            Taken::Judged => {}
            Taken::Doubted => return self.observe(seen, Class::Audit, policy, now),
            Taken::Empty => return self.observe(&[], Class::Audit, policy, now),
            Taken::SetAside => return Outcome { memory: self.clone(), ..Outcome::default() },
        }
        let present = self.rows.iter().filter(|row| row.missing.is_none());
        let place = |row: &Row| {
            let Row { id, dated, deaths, is_weak, .. } = *row;
            Place { id, dated, known: true, deaths, is_weak }
        };
        let seen: Vec<Place> = present.map(place).collect();
        let policy = self.believed(policy, now);
        self.judge(&seen, Class::Audit, &policy, now).watched(&policy)
    }

    /// What a document proves. `seen` is in document order, each item once.
    pub fn observe(&self, seen: &[Place], class: Class, policy: &Policy, now: Stamp) -> Outcome {
        let shown = seen.iter().map(|place| place.id).collect();
        let returns = self.returns.after(&shown, &self.rows, now);
        let (before, belief) = (self.returns.belief(now), returns.belief(now));
        let memory = Self { returns, ..self.clone() };
        let policy = memory.believed(policy, now);
        let mut outcome = memory.observe_by(seen, class, &policy, now).watched(&policy);
        if belief > before {
            outcome.events.push(if belief == Belief::Off { Event::Disbelieved } else { Event::Doubted });
        }
        outcome
    }

    fn observe_by(&self, seen: &[Place], class: Class, policy: &Policy, now: Stamp) -> Outcome {
        if class == Class::Partial || (class == Class::Conditional && self.trust <= CAUGHT) {
            let mut memory = self.learned(seen, class).cleared(seen);
            memory.taken = if class == Class::Partial { Taken::SetAside } else { Taken::Doubted };
            return Outcome { memory, ..Outcome::default() };
        }
        let (orientation, ascends) = self.orientation.follow(seen, &self.rows);
        let turned: Vec<Place> = if ascends { seen.iter().rev().copied().collect() } else { seen.to_vec() };
        let mut outcome = Self { orientation, ..self.clone() }.judge(&turned, class, policy, now);
        outcome.memory.seen_at = now;
        outcome
    }

    /// The memory when something that was missed is shown after all.
    fn cleared(&self, seen: &[Place]) -> Self {
        let shown: HashSet<ItemId> = seen.iter().map(|place| place.id).collect();
        let mut memory = self.clone();
        memory.rows.iter_mut().filter(|row| shown.contains(&row.id)).for_each(|row| row.missing = None);
        memory
    }

    /// What a full document proves; `seen` is newest first.
    fn judge(&self, seen: &[Place], class: Class, policy: &Policy, now: Stamp) -> Outcome {
        let mut memory = Self { taken: Taken::Judged, ..self.learned(seen, class) };
        if self.rows.is_empty() {
            memory.rows = rows(seen);
            memory.note_length(seen);
            return Outcome { memory, ..Outcome::default() };
        }
        let view = View::new(self, seen);
        // An empty or very short document proves nothing by itself, not even that the feed was replaced.
        if seen.is_empty() || self.is_short(seen) {
            return memory.hold(self, &view, seen, class, now);
        }
        if view.survivors == 0 && !policy.complete {
            return memory.begin_anew(self, &view, seen, Event::Gap);
        }
        let rule = if policy.complete {
            Rule::Complete
        } else if !view.is_stable() {
            memory.unstable += 1;
            if memory.unstable < UNSTABLE_MAX {
                memory.rows = prepended(self, seen, &view);
                memory.taken = Taken::SetAside;
                return Outcome { memory, ..Outcome::default() };
            }
            return memory.begin_anew(self, &view, seen, Event::Rebaselined);
        } else {
            Rule::Bracket { decides: policy.ordered && memory.orientation.is_known() }
        };
        memory.unstable = 0;
        let missed = view.missed(self, seen, rule);
        let fresh = missed.iter().filter(|m| m.is_interior && self.rows[m.at].missing.is_none()).count();
        // A list of the ten best may change by half from one day to the next.
        let is_mass = !policy.complete && fresh > (self.rows.len() / 5).max(2);
        if is_mass {
            return memory.hold(self, &view, seen, class, now);
        }
        memory.held_since = None;
        memory.sticky = self.sticky_after(seen, &view, &missed);
        let policy = &memory.believed(policy, now);
        let counts = class == Class::Audit || self.trust >= TRUSTED;
        let strong = self.is_conserved(seen, &view);
        memory.note_length(seen);
        let becomes_sticky = memory.sticky.is_on() && !self.sticky.is_on();
        let sight = Sight { class, counts, strong, last_seen: self.seen_at, now, policy };
        let mut outcome = memory.decide(self, seen, &missed, &sight);
        outcome.events.extend(becomes_sticky.then_some(Event::Sticky));
        outcome
    }

    /// What a document says of the end of the window.
    fn sticky_after(&self, seen: &[Place], view: &View, missed: &[Missed]) -> Sticky {
        let came = || seen.iter().filter(|place| !view.position.contains_key(&place.id));
        if came().any(|place| place.known) {
            return self.sticky;
        }
        let fresh = || missed.iter().filter(|missed| self.rows[missed.at].missing.is_none());
        let inside = fresh().filter(|missed| missed.behind >= ANCHORS_MIN).count();
        self.sticky.after(came().count(), inside, fresh().count() - inside)
    }

    /// Whether the document is less than half as long as usual.
    fn is_short(&self, seen: &[Place]) -> bool {
        self.usual_length().is_some_and(|usual| seen.len() * 2 < usual)
    }

    /// The most frequent length of the last documents; the latest of equals.
    fn usual_length(&self) -> Option<usize> {
        let mut counts: HashMap<u16, usize> = HashMap::new();
        self.lengths.iter().for_each(|length| *counts.entry(*length).or_default() += 1);
        let best = self.lengths.iter().rev().max_by_key(|length| counts[length]);
        best.map(|length| usize::from(*length))
    }

    fn note_length(&mut self, seen: &[Place]) {
        if self.lengths.len() == LENGTHS_MAX {
            self.lengths.pop_front();
        }
        self.lengths.push_back(u16::try_from(seen.len()).unwrap_or(u16::MAX));
    }

    /// What an audit says about the conditional answers before it: one that brings back what they all left out shows that
    /// they were parts. A single one may have been an accident.
    fn learned(&self, seen: &[Place], class: Class) -> Self {
        let mut memory = self.clone();
        let shown: HashSet<ItemId> = seen.iter().map(|place| place.id).collect();
        match class {
            Class::Partial => {}
            Class::Conditional => {
                let lacks = |id: &ItemId| !shown.contains(id);
                let mut lacked = memory.lacked.take().unwrap_or_else(|| Lacked {
                    answers: 0,
                    ids: self.rows.iter().map(|row| row.id).collect(),
                });
                lacked.answers = lacked.answers.saturating_add(1);
                lacked.ids.retain(lacks);
                memory.lacked = Some(lacked);
            }
            Class::Audit => {
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

    /// Whether as many came as went, so that nothing was cut or filtered. That the document be as long as usual, too, cost
    /// a sixth of the deletions in the simulation where lengths change, and spared no mistake.
    fn is_conserved(&self, seen: &[Place], view: &View) -> bool {
        let came = seen.iter().filter(|place| !view.position.contains_key(&place.id)).count();
        let fresh = self.rows.iter().filter(|row| row.missing.is_none() && !view.shown.contains(&row.id));
        came == fresh.count()
    }

    /// Nothing is concluded from a document that lacks too much; what is new in it is remembered.
    fn hold(mut self, before: &Self, view: &View, seen: &[Place], class: Class, now: Stamp) -> Outcome {
        let since = before.held_since.unwrap_or(now);
        // Only the answer to an unconditional request says what the feed is from now on.
        if class == Class::Audit && now.secs_since(since) > HOLD_SECS {
            return self.begin_anew(before, view, seen, Event::HoldEnded);
        }
        self.held_since = Some(since);
        self.rows = prepended(before, seen, view);
        self.taken = if seen.is_empty() { Taken::Empty } else { Taken::Doubted };
        let events = before.held_since.is_none().then_some(Event::Held).into_iter().collect();
        Outcome { memory: self, events, ..Outcome::default() }
    }

    /// The window is this document from now on; what is not in it has rolled off.
    fn begin_anew(mut self, before: &Self, view: &View, seen: &[Place], event: Event) -> Outcome {
        let left = before.rows.iter().filter(|row| !view.shown.contains(&row.id));
        let rolled_off: Vec<ItemId> = left.map(|row| row.id).collect();
        // A feed of two entries has no order that could be followed; as long as it shows them all, nothing is lost.
        let events = if rolled_off.is_empty() { Vec::new() } else { vec![event] };
        self.rows = rows(seen);
        (self.unstable, self.held_since) = (0, None);
        self.lengths.clear();
        self.note_length(seen);
        Outcome { memory: self, rolled_off, events, ..Outcome::default() }
    }

    /// The last step: what is proven, what is suspected, what rolled off; and the window with the suspects at their places.
    fn decide(mut self, before: &Self, seen: &[Place], missed: &[Missed], sight: &Sight<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        let mut undecided: HashMap<Option<ItemId>, Vec<Row>> = HashMap::new();
        // Where a suspect goes back in: behind the nearest row before it that stays.
        let shown: HashSet<ItemId> = seen.iter().map(|place| place.id).collect();
        let mut predecessor = None;
        let mut next = missed.iter().peekable();
        for (at, row) in before.rows.iter().enumerate() {
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
            let missing = Missing::again(row.missing, missed, sight);
            let proof = missing.proves(row.deaths, sight.policy, sight.now);
            if let Some(proof) = proof
                && (sight.policy.complete || self.may_end(&mut outcome.events, sight.now))
            {
                outcome.gone.push((row.id, proof));
            } else if self.sticky.is_on() && missing.is_moot(sight.policy) {
                outcome.rolled_off.push(row.id);
            } else {
                undecided.entry(predecessor).or_default().push(Row { missing: Some(missing), ..*row });
            }
        }
        let mut window = undecided.remove(&None).unwrap_or_default();
        for row in rows(seen) {
            window.push(row);
            window.extend(undecided.remove(&Some(row.id)).unwrap_or_default());
        }
        self.rows = window;
        outcome.memory = self;
        outcome
    }
}

impl Outcome {
    /// The same, with a note of what was taken for deleted because it is missing: it may come back.
    fn watched(mut self, policy: &Policy) -> Self {
        for (id, proof) in &self.gone {
            if matches!(proof, Proof::Bracketed(_)) {
                self.memory.returns.end(*id, policy.belief);
            }
        }
        self
    }
}

/// By which rule something missing is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Two anchors behind it; decides nothing while nobody knows which end is the newest.
    Bracket { decides: bool },
    /// The document is the whole feed.
    Complete,
}

/// The circumstances of an observation.
struct Sight<'a> {
    class: Class,
    /// Whether it counts as a confirmation.
    counts: bool,
    strong: bool,
    /// When the last full document before this one was read.
    last_seen: Stamp,
    now: Stamp,
    policy: &'a Policy,
}

/// A row that the document lacks.
#[derive(Clone, Copy, Debug)]
struct Missed {
    /// Its place among the remembered rows.
    at: usize,
    /// Anchors behind it.
    behind: usize,
    /// Whether older items moved up into the window.
    backfilled: bool,
    is_interior: bool,
}

/// A document laid beside the remembered window.
struct View {
    /// The place of each remembered item.
    position: HashMap<ItemId, usize>,
    shown: HashSet<ItemId>,
    survivors: usize,
    /// The places, among the remembered rows, of the items that kept their order and date.
    anchors: Vec<usize>,
    /// Survivors in order, whether or not their date changed.
    in_order: usize,
}

impl View {
    fn new(memory: &Memory, seen: &[Place]) -> Self {
        let position: HashMap<ItemId, usize> =
            memory.rows.iter().enumerate().map(|(at, row)| (row.id, at)).collect();
        let survivors: Vec<(usize, &Place)> =
            seen.iter().filter_map(|place| Some((*position.get(&place.id)?, place))).collect();
        let places: Vec<usize> = survivors.iter().map(|(at, _)| *at).collect();
        let ordered = anchors::longest_rise(&places);
        let undated = |&&at: &&usize| memory.rows[survivors[at].0].dated == survivors[at].1.dated;
        let anchors = ordered.iter().filter(undated).map(|&at| survivors[at].0).collect();
        let shown = seen.iter().map(|place| place.id).collect();
        Self { shown, survivors: survivors.len(), anchors, in_order: ordered.len(), position }
    }

    /// Whether at least three survived and four in five kept their order.
    fn is_stable(&self) -> bool {
        self.survivors >= SURVIVORS_MIN && self.in_order * 5 >= self.survivors * 4
    }

    /// The remembered rows that the document lacks, in window order.
    fn missed(&self, memory: &Memory, seen: &[Place], rule: Rule) -> Vec<Missed> {
        let last_anchor = self.anchors.last().map(|&at| memory.rows[at].id);
        let back: Vec<&Place> = seen
            .iter()
            .rev()
            .take_while(|place| Some(place.id) != last_anchor)
            .filter(|place| !self.position.contains_key(&place.id))
            .collect();
        let returns = back.iter().any(|place| place.known);
        let absent = memory.rows.iter().enumerate().filter(|(_, row)| !self.shown.contains(&row.id));
        absent
            .map(|(at, row)| {
                let behind = self.anchors.len() - self.anchors.partition_point(|&anchor| anchor <= at);
                let older = |place: &&Place| matches!((place.dated, row.dated), (Some(a), Some(b)) if a < b);
                // What moved up behind it is an anchor from the next document on, and goes on meaning the same.
                let still = behind > 0 && row.missing.is_some_and(|missing| missing.backfilled);
                let backfilled = still || (returns && back.iter().all(older));
                let bracketed = behind + if backfilled { ANCHORS_MIN } else { 0 } >= ANCHORS_MIN;
                let is_proof = match rule {
                    Rule::Complete => true,
                    Rule::Bracket { decides } => decides && bracketed,
                };
                let is_interior = is_proof && !row.is_weak;
                Missed { at, behind, backfilled, is_interior }
            })
            .collect()
    }
}

fn rows(seen: &[Place]) -> Vec<Row> {
    let row = |place: &Place| {
        let Place { id, dated, deaths, is_weak, .. } = *place;
        Row { id, dated, deaths, is_weak, missing: None }
    };
    seen.iter().take(ROWS_MAX).map(row).collect()
}

/// The remembered window with the new items before it that stand at the head of the document; what it shows again is
/// not missed any more.
fn prepended(before: &Memory, seen: &[Place], view: &View) -> Vec<Row> {
    let new = seen.iter().take_while(|place| !view.position.contains_key(&place.id));
    let mut window = rows(&new.copied().collect::<Vec<_>>());
    window.extend(before.rows.iter().map(|row| {
        let missing = row.missing.filter(|_| !view.shown.contains(&row.id));
        Row { missing, ..*row }
    }));
    window.truncate(ROWS_MAX);
    window
}
