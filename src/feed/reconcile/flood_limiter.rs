//! The flood guard (DESIGN section 3, POLLING 1.3): which edits wait because their entry changes
//! with every poll, and when a whole feed was only written anew. It hides nothing: what waits is
//! kept, and is committed in its newest form.

use super::{
    Known, Observation, Put, PutKind, WindowEntry, WindowState,
    bind::BoundEntry,
    chronology,
    churn::{ChurnLearner, EntryForm, MovedForm, MovedStretch},
    edit::is_edit,
    witnesses,
};
use crate::{
    absence::AbsenceTrust,
    item::{Item, ItemDigests, ItemId, KeyHash, plausible},
    moment::Moment,
    part_caps::within_caps,
    schedule::Repeat,
    stamp::Stamp,
};
use everfeed_adapters::{
    Date, Entry,
    platforms::{Profile, content_digest},
};
use std::{collections::HashMap, sync::Arc};

/// A form of an item that is not committed yet. It is kept whole, so that it needs no other request
/// to be committed, and is not lost when its publisher shows it no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeferredEdit {
    /// The item.
    pub id: ItemId,
    /// A key that leads to it.
    pub key: KeyHash,
    /// The first poll from then on commits it: a day after the item's T, or when what moved in it has
    /// lasted.
    pub until: Stamp,
    /// The content.
    pub entry: Arc<Entry>,
    /// The publisher's date, microseconds since 1970, if it is plausible.
    pub published_us: Option<i64>,
    /// Digests that the next document is compared with.
    pub digests: ItemDigests,
    /// What moved in it, where nothing but parts did that move in the whole feed: it is an edit only
    /// if it lasts. Empty of what waits for another reason.
    pub stretches: Vec<MovedStretch>,
    /// Time since which the publisher has shown this content without interruption; `None` of a state
    /// that did not note it.
    pub shown_since: Option<Stamp>,
    /// Polls that have shown it since then, a 304 among them, up to [`REST_POLLS`].
    pub shown_polls: u16,
}

/// Polls running in which the content of an entry changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChangeRun {
    /// Their number.
    pub(super) polls: u16,
    /// Time of the first; `None` when there is none, or it was not noted.
    pub(super) since: Option<Stamp>,
}

/// Polls running in which an entry may change and still be committed at once, within a day.
const CHANGED_POLLS_MAX: u16 = 4;

/// Time for which it must have gone on besides, in seconds: polls are a minute apart where somebody
/// reads a feed beside its origin, and the report of an evening is no churn.
const CHANGED_SECS: u64 = 86_400;

/// Delay of the edits of an entry that changes in more polls than that, in seconds from the item's
/// last T.
const DEFERRED_SECS: u64 = 86_400;

/// Time for which an entry must stand as it is to be told, whatever held it back, in seconds.
const REST_SECS: u64 = 86_400;

/// Polls that must have shown it in that time.
const REST_POLLS: u16 = 2;

/// Items of a feed with a form held back at most. They are written with every document, so that
/// there must be an end; what is beyond it is committed at once, which costs consumers more and
/// loses nothing.
const HELD_ITEMS_MAX: usize = 100;

/// Entries that must be edited at once to call a feed reformatted. Of a window of four, three may
/// well be corrected by hand between two polls.
const REFORMATTED_ITEMS_MIN: usize = 5;

/// Difference of the dates that a site gives its posts when it is built again, in microseconds at
/// most: a minute.
const REBUILT_SPAN_US: i64 = 60_000_000;

/// Time without reformatting after which a reformatting is news again, in seconds.
const REFORMATTED_SECS: u64 = 86_400;

/// The guard at its work on one document.
pub(super) struct FloodLimiter<'a> {
    known: &'a Known,
    profile: Option<&'a Profile>,
    /// Change, or none, that the answer before it brought.
    previous: Repeat,
    /// True when the document shows the feed as it is now.
    is_current: bool,
    now: Stamp,
    /// The rows of the last document.
    rows: HashMap<ItemId, &'a WindowEntry>,
    /// The forms held back that the document has not shown yet.
    unmet: HashMap<ItemId, &'a DeferredEdit>,
    /// The forms held back from now on.
    kept: Vec<DeferredEdit>,
    /// Entries of the last document that were edited by their content alone.
    undated: usize,
    /// Entries of the document in which nothing but a later date of publication differs, and that
    /// date in microseconds.
    redated: HashMap<ItemId, i64>,
    churn: ChurnLearner<'a>,
}

impl<'a> FloodLimiter<'a> {
    pub(super) fn new(known: &'a Known, seen: &'a Observation, now: Stamp) -> Self {
        Self {
            known,
            profile: seen.profile.as_deref(),
            previous: seen.previous,
            is_current: !seen.coverage.is_partial(),
            now,
            rows: known
                .window
                .entries
                .iter()
                .map(|row| (row.id, row))
                .collect(),
            unmet: known
                .window
                .deferred
                .iter()
                .map(|held| (held.id, held))
                .collect(),
            kept: Vec::new(),
            undated: 0,
            redated: HashMap::new(),
            churn: ChurnLearner::new(&known.window, seen.profile.as_deref(), now),
        }
    }

    // Decides: Must an edit wait, because its entry changes with every poll?
    // Limit: an edit in a part that churns is told when it has lasted.
    /// Takes note of an entry, and tells in how many polls running its content has changed, this
    /// one included. What moves in the whole feed is no change.
    pub(super) fn meet(&mut self, bound: &BoundEntry<'_>) -> ChangeRun {
        let Some(item) = bound.target.item() else {
            return ChangeRun::default();
        };
        let Some(held) = item.entry() else {
            return ChangeRun::default();
        };
        if self.is_current
            && let Some(at) = new_date(held, &bound.reading.entry, self.profile)
        {
            self.redated.insert(item.id, at);
        }
        // What the publisher showed last, which need not be what is committed.
        let seen = match self.unmet.get(&item.id) {
            Some(waiting) => EntryForm::new(&waiting.entry, &waiting.digests),
            None => EntryForm::new(held, &item.digests),
        };
        let given = EntryForm::new(&bound.reading.entry, &bound.reading.digests);
        if !is_edit(seen.digests, Some(seen.entry), given.digests, self.profile) {
            return ChangeRun::default();
        }
        if !bound.is_renamed && is_stale(held, given.entry) {
            return ChangeRun::default();
        }
        if self.is_current && self.churn.note(item.id, seen, given) {
            return ChangeRun::default();
        }
        let first = ChangeRun {
            polls: 1,
            since: Some(self.now),
        };
        let Some(row) = self.rows.get(&item.id) else {
            return first;
        };
        if bound.is_renamed || !is_dated_anew(seen.entry, given.entry) {
            self.undated += 1;
        }
        if self.previous != Repeat::Changed {
            return first;
        }
        ChangeRun {
            polls: row.changed_polls.saturating_add(1),
            since: row.changing_since.or(Some(self.now)),
        }
    }

    /// Learns from all entries that were met which parts move in the whole feed.
    pub(super) fn learn(&mut self) {
        self.churn.learn();
    }

    /// Change of an item by an entry now; `None` when there is none or it is deferred. `row` is the
    /// place of the entry in the window from now on; `item` is the item as it was, if it was known;
    /// `is_renamed` when the entry goes by another id than before.
    pub(super) fn pass(
        &mut self,
        put: Option<Put>,
        row: &WindowEntry,
        item: Option<&Item>,
        is_renamed: bool,
    ) -> Option<Put> {
        let before = self.unmet.remove(&row.id);
        let Some(put) = put else {
            self.keep_between_turns(before);
            return None;
        };
        let Some(item) = item else { return Some(put) };
        if put.kind != PutKind::Edited {
            return Some(put);
        }
        // Under another scheme the dates may be others, too.
        let is_new_scheme = is_renamed && self.is_current;
        if !is_new_scheme && item.entry().is_some_and(|held| is_stale(held, &put.entry)) {
            return self.pass_stale(put, row.key, before);
        }
        if self.redated.contains_key(&put.id) && self.is_rebuilt() {
            return None;
        }
        if let Some(moved) = self.moved_form(&put, item, before) {
            return self.pass_moved(put, row.key, before, moved);
        }
        if self.comes_and_goes(&put, before) {
            return self.hold_until(put, row.key, Stamp::MAX, Vec::new());
        }
        if !row.changes_long(self.now) {
            return Some(put);
        }
        let until = self.day_is_over(item, before);
        self.hold_until(put, row.key, until, Vec::new())
    }

    // Decides: Is a form that comes back an edit?
    /// True of a form that was shown lately and comes back in a feed of which old copies are given by
    /// turns, as its missing posts show: it is one of them, and told once it has rested.
    fn comes_and_goes(&self, put: &Put, before: Option<&DeferredEdit>) -> bool {
        let recurrence = &self.known.window.absence.recurrence;
        let has_copies = recurrence.belief(self.now) > AbsenceTrust::Usual;
        let waits_on = |before: &DeferredEdit| {
            before.waits_for_rest() && before.digests.content == put.digests.content
        };
        let is_return = self.churn.has_returned(put.id);
        has_copies && (is_return || before.is_some_and(waits_on))
    }

    /// The form of an edit in which nothing but restless parts moved.
    fn moved_form(
        &self,
        put: &Put,
        item: &Item,
        before: Option<&DeferredEdit>,
    ) -> Option<MovedForm> {
        let given = EntryForm::new(&put.entry, &put.digests);
        let known = before.map_or(&[][..], |before| &before.stretches);
        let moved = self.churn.stretches(put.id, item.entry()?, given, known)?;
        (!moved.stretches.is_empty()).then_some(moved)
    }

    /// An edit in which nothing but restless parts moved: it waits until one of them has lasted.
    fn pass_moved(
        &mut self,
        put: Put,
        key: KeyHash,
        before: Option<&DeferredEdit>,
        moved: MovedForm,
    ) -> Option<Put> {
        // Without a stretch of its own it waits for the next document.
        let until = moved.lasts_at()?;
        // Behind the form of one server, an edit in that of the other may wait.
        let edit = before
            .filter(|before| moved.leaves_edit() && before.digests.content != put.digests.content);
        let put = self.hold_until(put, key, until, moved.stretches.clone());
        if put.is_none()
            && let Some(edit) = edit
        {
            self.kept.push(DeferredEdit {
                stretches: moved.stretches,
                ..edit.clone()
            });
        }
        put
    }

    /// The end of the day for which an entry waits that changes with every poll.
    fn day_is_over(&self, item: &Item, before: Option<&DeferredEdit>) -> Stamp {
        if let Some(before) = before
            && before.stretches.is_empty()
        {
            return before.until;
        }
        // A T that is still to come is of a clock that went back since.
        item.modified.min(self.now).plus_secs(DEFERRED_SECS)
    }

    // Decides: For how long may an edit be held back at most?
    /// Keeps an edit until then, or until it has stood unchanged for a day and two polls, which is
    /// the end of every delay. It is passed when that is over, or nothing more can be kept.
    fn hold_until(
        &mut self,
        put: Put,
        key: KeyHash,
        until: Stamp,
        stretches: Vec<MovedStretch>,
    ) -> Option<Put> {
        // The first form of an item is the one that was shown last.
        let mut deferred = self.known.window.deferred.iter();
        let shown = deferred.find(|held| held.id == put.id);
        let same = shown.filter(|before| {
            before.digests.content == put.digests.content && !before.is_between_turns()
        });
        let shown_since = same
            .and_then(|before| before.shown_since)
            .map_or(self.now, |since| since.min(self.now));
        let shown_polls = same.map_or(0, |before| before.shown_polls);
        let until = until.min(shown_since.plus_secs(REST_SECS));
        if self.now >= until || self.is_full() {
            return Some(put);
        }
        self.kept.push(DeferredEdit {
            id: put.id,
            key,
            until,
            entry: as_kept(put.entry),
            published_us: put.published_us,
            digests: put.digests,
            stretches,
            shown_since: Some(shown_since),
            shown_polls: REST_POLLS.min(shown_polls + 1),
        });
        None
    }

    // Decides: Was a site built again, with the time of that as the date of each post?
    /// True when more than half of the window got one later date at once, and nothing else. Dates
    /// that differ were given by hand.
    fn is_rebuilt(&self) -> bool {
        let earliest = self.redated.values().min();
        let latest = self.redated.values().max();
        let span = latest
            .zip(earliest)
            .map(|(latest, earliest)| latest - earliest);
        self.redated.len() >= REFORMATTED_ITEMS_MIN
            && self.redated.len() * 2 > self.known.window.entries.len()
            && span.is_some_and(|span| span <= REBUILT_SPAN_US)
    }

    /// True when no further form may be held back.
    fn is_full(&self) -> bool {
        self.kept.len() + self.unmet.len() >= HELD_ITEMS_MAX
    }

    /// Keeps the form of the other of two servers, while its entry is shown as it is held.
    fn keep_between_turns(&mut self, before: Option<&DeferredEdit>) {
        if self.is_full() {
            return;
        }
        if let Some(before) = before
            && let Some(stretches) = self.churn.between_turns(&before.stretches)
        {
            let since = before.shown_since.filter(|_| before.is_between_turns());
            self.kept.push(DeferredEdit {
                stretches,
                until: Stamp::MAX,
                shown_since: since.or(Some(self.now)),
                ..before.clone()
            });
        }
    }

    /// An edit whose `updated` is older than what is held. A cache or a replica that lags behind
    /// shows such a copy, and the newer one comes again; the publisher may also have gone back on
    /// purpose, which lasts. A part of the feed says neither.
    fn pass_stale(&mut self, put: Put, key: KeyHash, before: Option<&DeferredEdit>) -> Option<Put> {
        if !self.is_current {
            self.kept.extend(before.cloned());
            return None;
        }
        self.hold_until(put, key, Stamp::MAX, Vec::new())
    }

    /// Deferred edits that the document does not show: committed when their day is over, or at once
    /// after a poll that changed nothing.
    pub(super) fn release(&mut self, poll: Repeat) -> Vec<(Option<Moment>, Put)> {
        let mut puts = Vec::new();
        for held in &self.known.window.deferred {
            let Some(last) = self.unmet.get(&held.id).copied() else {
                continue;
            };
            // Of the forms of two servers, the one that was shown last goes on, or, if the entry has
            // left, the edit behind it.
            if self.is_current && !std::ptr::eq(last, held) {
                continue;
            }
            self.unmet.remove(&held.id);
            let item = self.known.items.get(&held.key);
            let Some(item) = item.filter(|item| item.id == held.id) else {
                // Nobody may have looked it up.
                self.kept.push(held.clone());
                continue;
            };
            if item.is_gone() || item.digests.content == held.digests.content {
                continue;
            }
            // Its entry is shown no more: what only churned is not told after it.
            if self.is_current && !held.outlives_its_entry() {
                continue;
            }
            let mut held = held.clone();
            if poll == Repeat::Unchanged {
                held.count_poll(self.now);
            }
            if held.is_between_turns() {
                if !self.is_current {
                    // The item is shown as it is held.
                    if !held.has_rested(self.now) {
                        self.kept.push(held);
                    }
                    continue;
                }
                // Its entry has left, and what the other server showed may be an edit.
                let stretches = held.stretches.iter().copied();
                held.until = MovedStretch::first_lasts_at(stretches).unwrap_or(self.now);
            }
            let waits = held.waits_for_rest();
            let ends_with_rest = poll == Repeat::Unchanged && held.stretches.is_empty() && !waits;
            // A copy that was shown once may be of a cache.
            let is_due = self.now >= held.until && (!waits || held.shown_polls >= REST_POLLS);
            if is_due || ends_with_rest {
                puts.push((chronology::date(&held.entry), held.put(item)));
            } else {
                self.kept.push(held);
            }
        }
        puts
    }

    /// True when this document is news of a feed that was reformatted: more than half of the last
    /// window was edited by its content alone. What goes on from document to document, or comes
    /// again within a day, is one reformatting; `last` gets what is held back and when the feed was
    /// last seen being reformatted.
    pub(super) fn close(self, last: &mut WindowState) -> bool {
        last.deferred = self.kept;
        self.churn.close(last);
        let before = self.known.window.reformatted_at;
        let is_recent = before.is_some_and(|at| self.now < at.plus_secs(REFORMATTED_SECS));
        let is_reformatted = self.undated >= REFORMATTED_ITEMS_MIN
            && self.undated * 2 > self.known.window.entries.len();
        last.reformatted_at = if is_reformatted {
            Some(self.now)
        } else if is_recent {
            before
        } else {
            None
        };
        is_reformatted && !is_recent && (before.is_none() || self.previous == Repeat::Unchanged)
    }
}

impl WindowEntry {
    /// True when the entry changes with every poll for so long that its edits wait.
    fn changes_long(&self, now: Stamp) -> bool {
        // A time that is still to come is of a clock that went back since.
        let is_long = |since: Stamp| since > now || now.secs_since(since) >= CHANGED_SECS;
        self.changed_polls > CHANGED_POLLS_MAX && self.changing_since.is_some_and(is_long)
    }
}

/// An entry without short parts that are too long, which are never kept.
fn as_kept(entry: Arc<Entry>) -> Arc<Entry> {
    within_caps(&entry).map_or(entry, Arc::new)
}

impl DeferredEdit {
    /// True when its publisher dates it before what is held, as a copy that lags behind is dated.
    pub fn is_stale(&self, item: &Item) -> bool {
        item.entry().is_some_and(|held| is_stale(held, &self.entry))
    }

    /// True unless nothing but churn is in it, which is not told after its entry is shown no more.
    fn outlives_its_entry(&self) -> bool {
        let mut stretches = self.stretches.iter();
        self.stretches.is_empty() || stretches.any(MovedStretch::outlives_its_entry)
    }

    /// True of the form of the other of two servers, while the item is shown as it is held: no edit
    /// waits.
    pub fn is_between_turns(&self) -> bool {
        self.until == Stamp::MAX
    }

    /// Counts a poll that changed nothing.
    fn count_poll(&mut self, now: Stamp) {
        let since = *self.shown_since.get_or_insert(now);
        self.shown_polls = REST_POLLS.min(self.shown_polls + 1);
        if !self.is_between_turns() {
            self.until = self.until.min(since.plus_secs(REST_SECS));
        }
    }

    /// True of a copy, or of a form that came back: nothing but its own rest makes it an edit.
    pub fn waits_for_rest(&self) -> bool {
        let rests_at = |since| Stamp::plus_secs(since, REST_SECS);
        !self.is_between_turns()
            && self
                .shown_since
                .is_some_and(|at| self.until >= rests_at(at))
    }

    /// True when what is shown has stood for a day and two polls.
    fn has_rested(&self, now: Stamp) -> bool {
        let has_lasted = |since| now >= Stamp::plus_secs(since, REST_SECS);
        self.shown_since.is_some_and(has_lasted) && self.shown_polls >= REST_POLLS
    }

    fn put(&self, item: &Item) -> Put {
        Put {
            kind: PutKind::Edited,
            id: self.id,
            iri: item.iri.clone(),
            keys: Vec::new(),
            entry: Arc::clone(&self.entry),
            published_us: self.published_us,
            digests: self.digests,
            witnesses: witnesses::keys(&self.entry),
        }
    }
}

// Decides: Is an entry an older copy of what is held?
/// True when an entry was changed before what is held was, by its publisher's own word. A copy that
/// lags behind was published at the same time; dates that are all others, or cut to the minute,
/// were changed on purpose.
fn is_stale(held: &Entry, given: &Entry) -> bool {
    let secs = |date: &Option<Date>| {
        date.as_ref()
            .and_then(|date| plausible(date.at_us))
            .map(|at| at.micros().div_euclid(1_000_000))
    };
    let (published, of_given) = (secs(&held.published), secs(&given.published));
    if matches!((published, of_given), (Some(held), Some(given)) if held != given) {
        return false;
    }
    let (Some(held), Some(given)) = (secs(&held.updated), secs(&given.updated)) else {
        return false;
    };
    let is_cut = given.rem_euclid(60) == 0 && held.div_euclid(60) == given.div_euclid(60);
    given < held && !is_cut
}

/// The date of publication of an entry, in microseconds, if nothing else differs from what is held
/// and it is later.
fn new_date(held: &Entry, given: &Entry, profile: Option<&Profile>) -> Option<i64> {
    let at = |entry: &Entry| entry.published.as_ref().and_then(|date| date.at_us);
    let new = at(given).filter(|new| at(held).is_some_and(|held| held < *new))?;
    let as_held = Entry {
        published: held.published.clone(),
        ..given.clone()
    };
    (content_digest(&as_held, profile) == content_digest(held, profile)).then_some(new)
}

/// True when the publisher says by `updated` that an entry was edited.
fn is_dated_anew(held: &Entry, given: &Entry) -> bool {
    let date = |entry: &Entry| {
        entry
            .updated
            .as_ref()
            .map(|date| (date.at_us, date.raw.clone()))
    };
    given.updated.is_some() && date(held) != date(given)
}
