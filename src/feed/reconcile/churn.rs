//! Churn that is learned of a feed (POLLING 1.3): which parts of its entries move without an edit,
//! and how a change in such a part is told from an edit: an edit lasts. Not what becomes of an edit.

use super::{
    WindowState,
    difference::{EntryPart, PartDifference, Stretch, StretchKind, difference},
    figures::NumberMove,
};
use crate::{
    item::{ItemDigests, ItemId},
    stamp::Stamp,
};
use everfeed_adapters::{Digest, Entry, platforms::Profile};
use std::collections::{BTreeMap, HashSet};

/// Part of the entries of a feed that moves in one after the other, as advertisements, counters and
/// sessions do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestlessPart {
    /// The part.
    pub part: EntryPart,
    /// True when all of it changes and comes back, as where one of two servers sends summaries.
    pub by_turns: bool,
    /// Since when it is known to move.
    pub since: Stamp,
    /// Time at which it last moved in as many entries as show it.
    pub moved_at: Stamp,
    /// True where nothing but numbers moves, that count what readers do: words there are told.
    pub is_count: bool,
}

/// Changes of one entry within the last two days.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovingEntry {
    /// Its item.
    pub id: ItemId,
    /// Time of its last change.
    pub moved_at: Stamp,
    /// Content digests of its last forms, the latest last.
    pub forms: Vec<Digest>,
    /// The parts that moved as churn does.
    pub parts: Vec<PartMoves>,
}

/// Moves of one part of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartMoves {
    /// The part.
    pub part: EntryPart,
    /// How often it moved.
    pub count: u8,
    /// True when all of it changed and came back.
    pub by_turns: bool,
    /// True of moves of numbers that count, which are counted apart from those of words.
    pub is_count: bool,
    /// True when such a number fell: it is a price, most likely, or a score.
    pub has_fallen: bool,
}

/// A move of a part of an entry, as a document brought it.
struct PartMove {
    id: ItemId,
    part: EntryPart,
    by_turns: bool,
    by: ChurnMove,
    /// True when the entry had rested for a while before.
    has_rested: bool,
}

/// Stretch of a part that differs from what is held, and has not lasted yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedStretch {
    /// The part.
    pub part: EntryPart,
    /// First token in the held form, and the first behind it.
    pub start: u32,
    /// See `start`.
    pub end: u32,
    /// Digest of what stands there now.
    pub given: Digest,
    /// Since when that stands there.
    pub since: Stamp,
    /// Documents that show it, since then.
    pub sightings: u8,
    /// How often something else has come there since what is held went: what moves on is churn.
    pub moves: u8,
    /// True for all of a part that changes by turns. `sightings` are 0 while it is only the other
    /// form, and count documents of a form that neither server had before.
    pub is_whole: bool,
}

/// An entry as it was shown once.
#[derive(Clone, Copy)]
pub(super) struct EntryForm<'a> {
    pub(super) entry: &'a Entry,
    pub(super) digests: &'a ItemDigests,
}

impl<'a> EntryForm<'a> {
    pub(super) fn new(entry: &'a Entry, digests: &'a ItemDigests) -> Self {
        Self { entry, digests }
    }
}

/// A form of an entry that differs from what is held in restless parts alone.
pub(super) struct MovedForm {
    /// Its stretches that differ, and those that are remembered of the forms before it.
    pub(super) stretches: Vec<MovedStretch>,
    /// True when a part of it is all another: it is of the other of two servers.
    pub(super) is_turn: bool,
}

/// Entries in which a part must move again within two days to be churn of their feed, and the share of
/// the window that they must be, as a divisor. Of less it is edits: three matches of an evening,
/// two posts that are written as things happen.
const MOVING_ENTRIES_MIN: usize = 3;
const MOVING_SHARE: usize = 4;

/// Entries that are enough in a window of any length.
const MOVING_ENTRIES_ENOUGH: usize = 50;

/// Moves within that time by which a part moves again where as many entries move in one document,
/// or it is known to be restless. Nobody edits a quarter of a window between two polls twice.
const MOVES_AT_ONCE_MIN: u8 = 2;

/// The same where one entry moves after the other, as counters do by polls a minute apart: a story
/// is edited several times in a day, too.
const MOVES_APART_MIN: u8 = 6;

/// Rest after which words that move in one entry alone begin to be counted anew, in seconds: what
/// stood for so long was edited. Advertisements move with every poll or nearly.
const REST_SECS: u64 = 3 * 3600;

/// Share of the numbers of a part that may fall, as a divisor, while they count what readers do. Of
/// prices a half falls.
const FALLEN_SHARE: usize = 3;

/// Time without a change after which an entry does not move any more, in seconds: a feed may be
/// polled once a day.
const MOVING_SECS: u64 = 2 * 86_400;

/// Time after which a part that has not moved in so many entries is forgotten, in seconds. Blogs
/// rest on weekends.
const RESTLESS_SECS: u64 = 2 * 86_400;

/// Time for which a change in a restless part must last to be an edit, in seconds: it is told within
/// a day, and hardly any advertisement stays as long. A stretch that has moved more than once must
/// rest until its part would be forgotten.
const LASTING_SECS: u64 = 12 * 3600;

/// Moves of a stretch from which on it is churn: a correction may be corrected once.
const CHURN_MOVES_MIN: u8 = 2;

/// Documents that must show a change for it to outlive its entry, which the feed shows no
/// more.
const LASTING_SIGHTINGS: u8 = 2;

/// Entries whose moves are remembered at most: those of a large window and a day's arrivals.
const MOVING_ENTRIES_MAX: usize = 200;

/// Forms of an entry that are remembered at most: two servers, two schemes, before and after an edit.
const FORMS_MAX: usize = 6;

/// Stretches of an entry that are followed at most; more are followed as one from first to last.
const STRETCHES_MAX: usize = 64;

/// The learner at its work on one document.
pub(super) struct ChurnLearner<'a> {
    profile: Option<&'a Profile>,
    now: Stamp,
    /// Entries that must move to show that a part is restless.
    moving_min: usize,
    restless: Vec<RestlessPart>,
    moving: BTreeMap<ItemId, MovingEntry>,
    /// Entries that came back to a form of before with this document.
    returned: HashSet<ItemId>,
    /// Moves as churn makes them in this document.
    moved: Vec<PartMove>,
}

impl<'a> ChurnLearner<'a> {
    /// What is remembered, without what rests.
    pub(super) fn new(last: &WindowState, profile: Option<&'a Profile>, now: Stamp) -> Self {
        let is_restless = |row: &&RestlessPart| now.secs_since(row.moved_at) < RESTLESS_SECS;
        let moves = |row: &&MovingEntry| now.secs_since(row.moved_at) < MOVING_SECS;
        let moving = last.moving.iter().filter(moves);
        Self {
            profile,
            now,
            moving_min: (last.entries.len().div_ceil(MOVING_SHARE))
                .clamp(MOVING_ENTRIES_MIN, MOVING_ENTRIES_ENOUGH),
            restless: last.restless.iter().filter(is_restless).copied().collect(),
            moving: moving.map(|row| (row.id, row.clone())).collect(),
            returned: HashSet::new(),
            moved: Vec::new(),
        }
    }

    /// Takes note of a change of an entry, from the form that was seen last. True when nothing of it
    /// but restless parts moved, or nothing but figures, or it only grew: no number of such changes
    /// makes them churn.
    pub(super) fn note(&mut self, id: ItemId, seen: EntryForm<'_>, given: EntryForm<'_>) -> bool {
        let content = given.digests.content;
        let row = self.moving.entry(id).or_insert_with(|| MovingEntry {
            id,
            moved_at: self.now,
            forms: vec![seen.digests.content],
            parts: Vec::new(),
        });
        let has_rested = self.now.secs_since(row.moved_at) >= REST_SECS;
        row.moved_at = self.now;
        let is_return = row.forms.contains(&content);
        row.forms.retain(|form| *form != content);
        row.forms.push(content);
        let surplus = row.forms.len().saturating_sub(FORMS_MAX);
        row.forms.drain(..surplus);
        if is_return {
            self.returned.insert(id);
        }
        let Some(parts) = difference(seen.entry, given.entry, self.profile) else {
            return false;
        };
        for found in &parts {
            let by_turns = is_return && !found.is_stretch();
            let by = match found.churn(is_return) {
                Some(by) => by,
                None if by_turns => ChurnMove::Words,
                None => continue,
            };
            self.moved.push(PartMove {
                id,
                part: found.part,
                by_turns,
                by,
                has_rested,
            });
        }
        let is_news =
            |found: &PartDifference| found.is_figures() || (!is_return && found.is_growth());
        parts.iter().all(|found| self.is_restless(found)) || parts.iter().all(is_news)
    }

    // Decides: What churns in the entries of this feed?
    /// Draws the conclusion from all entries of a document: parts that move in enough of them are
    /// restless from now on.
    pub(super) fn learn(&mut self) {
        let moved = std::mem::take(&mut self.moved);
        let mut entries: BTreeMap<(EntryPart, bool), usize> = BTreeMap::new();
        for row in &moved {
            *entries.entry((row.part, row.by.is_count())).or_default() += 1;
        }
        for row in &moved {
            let is_count = row.by.is_count();
            let is_alone = entries[&(row.part, is_count)] < self.moving_min
                && self.restless_row(row.part, is_count).is_none();
            let moving = self.moving.get_mut(&row.id);
            moving.expect("noted with its moves").count(row, is_alone);
        }
        for ((part, is_count), entries) in entries {
            self.conclude(part, is_count, entries);
        }
    }

    // Limit: scores without a joint ("Lions 2, Tigers 1") that rise in a quarter of the entries are taken
    // for counts.
    /// Takes a part for restless or not, after so many entries moved in it with one document.
    fn conclude(&mut self, part: EntryPart, is_count: bool, entries: usize) {
        let is_known = self.restless_row(part, is_count).is_some();
        let moves_min = if is_known || entries >= self.moving_min {
            MOVES_AT_ONCE_MIN
        } else {
            MOVES_APART_MIN
        };
        let rows = self.moving.values().flat_map(|entry| &entry.parts);
        let of_part = rows.filter(|row| (row.part, row.is_count) == (part, is_count));
        let (mut moving, mut turning, mut fallen) = (0, 0, 0);
        for row in of_part {
            let moves = row.count >= moves_min;
            moving += usize::from(moves && !row.has_fallen);
            turning += usize::from(moves && row.by_turns);
            fallen += usize::from(row.has_fallen);
        }
        if fallen * FALLEN_SHARE > moving {
            let is_other = |row: &RestlessPart| (row.part, row.is_count) != (part, is_count);
            self.restless.retain(is_other);
            return;
        }
        if moving < self.moving_min {
            return;
        }
        let by_turns = turning >= self.moving_min;
        let mut known = self.restless.iter_mut();
        match known.find(|row| (row.part, row.is_count) == (part, is_count)) {
            Some(row) => (row.moved_at, row.by_turns) = (self.now, row.by_turns || by_turns),
            None => self.restless.push(RestlessPart {
                part,
                by_turns,
                since: self.now,
                moved_at: self.now,
                is_count,
            }),
        }
    }

    /// The stretches in which an entry differs from what is held, when all of them are in restless
    /// parts; `None` when something else moved, which is an edit. `before` are those of the form that
    /// waits.
    pub(super) fn stretches(
        &self,
        id: ItemId,
        held: &Entry,
        given: EntryForm<'_>,
        before: &[MovedStretch],
    ) -> Option<MovedForm> {
        if self.restless.is_empty() {
            return None;
        }
        let parts = difference(held, given.entry, self.profile)?;
        if !parts.iter().all(|found| self.is_restless(found)) {
            return None;
        }
        let mut stretches = Vec::new();
        for found in &parts {
            let of_part = before.iter().filter(|row| row.part == found.part);
            let (whole, known): (Vec<_>, Vec<_>) = of_part.copied().partition(|row| row.is_whole);
            if !found.is_stretch() {
                // The other of two servers: what differs in the form of the first waits on.
                stretches.push(self.turn(id, found.part, given.digests.content, whole.first()));
                stretches.extend(known);
                continue;
            }
            // The form of the first server is shown again, so that the other one does not last.
            for stretch in found.followed() {
                let moved = self.follow(id, found.part, &stretch, &known);
                // A price is told wherever it stands, unless it is a part of what moves anyway.
                if stretch.is_told() && !moved.is_churn() {
                    return None;
                }
                stretches.push(moved);
            }
        }
        let is_turn = parts.iter().any(|found| !found.is_stretch());
        Some(MovedForm { stretches, is_turn })
    }

    /// All of a part in the form of the other server. A form that comes after one that is known, and
    /// was never seen before, is an edit there.
    fn turn(
        &self,
        id: ItemId,
        part: EntryPart,
        given: Digest,
        before: Option<&MovedStretch>,
    ) -> MovedStretch {
        let Some(row) = before.copied() else {
            return MovedStretch {
                part,
                start: 0,
                end: 0,
                given,
                since: self.now,
                sightings: 0,
                moves: 0,
                is_whole: true,
            };
        };
        let is_known = row.given == given || self.returned.contains(&id);
        let seen_again = u8::from(row.sightings > 0);
        if is_known {
            MovedStretch {
                given,
                sightings: row.sightings.saturating_add(seen_again),
                ..row
            }
        } else {
            MovedStretch {
                given,
                since: self.now,
                sightings: 1,
                moves: row.moves.saturating_add(seen_again),
                ..row
            }
        }
    }

    /// Stretches that stay of a form that waits, when its entry is shown as it is held; `None` where no
    /// part of it changes by turns.
    pub(super) fn between_turns(&self, before: &[MovedStretch]) -> Option<Vec<MovedStretch>> {
        let turns = |row: &MovedStretch| {
            let is_restless = |known: &RestlessPart| known.part == row.part && known.by_turns;
            row.is_whole && self.restless.iter().any(is_restless)
        };
        let kept: Vec<_> = before.iter().copied().filter(turns).collect();
        let anew = |row: MovedStretch| MovedStretch {
            // What is only the other form lasts from when it is shown alone.
            since: if row.sightings == 0 {
                self.now
            } else {
                row.since
            },
            ..row
        };
        (!kept.is_empty()).then(|| kept.into_iter().map(anew).collect())
    }

    /// A stretch as it is remembered from now on.
    fn follow(
        &self,
        id: ItemId,
        part: EntryPart,
        stretch: &Stretch,
        known: &[MovedStretch],
    ) -> MovedStretch {
        let (start, end, given) = (stretch.held.start, stretch.held.end, stretch.given);
        let touches = |row: &&MovedStretch| row.start <= end && start <= row.end;
        let before = known.iter().find(touches);
        if let Some(row) = before
            && (row.start, row.end, row.given) == (start, end, given)
        {
            return MovedStretch {
                sightings: row.sightings.saturating_add(1),
                ..*row
            };
        }
        if let Some(row) = before
            && start == end
            && (row.start, row.end) == (start, end)
        {
            // What is only added to, as a report is, lasts in its newest form.
            return MovedStretch {
                given,
                sightings: row.sightings.saturating_add(1),
                ..*row
            };
        }
        let moves = match before {
            Some(row) => row.moves.saturating_add(1),
            // A form that was seen before comes and goes.
            None if self.returned.contains(&id) => CHURN_MOVES_MIN,
            None => 0,
        };
        MovedStretch {
            part,
            start,
            end,
            given,
            since: self.now,
            sightings: 1,
            moves,
            is_whole: false,
        }
    }

    /// True when a change of a part is of what moves in the whole feed. Where numbers alone move, a
    /// word is none of it, and neither is a number that falls.
    fn is_restless(&self, found: &PartDifference) -> bool {
        let words = self.restless_row(found.part, false);
        if !found.is_stretch() {
            return words.is_some_and(|row| row.by_turns);
        }
        words.is_some() || (self.restless_row(found.part, true).is_some() && found.only_counts())
    }

    fn restless_row(&self, part: EntryPart, is_count: bool) -> Option<&RestlessPart> {
        let is_it = |row: &&RestlessPart| (row.part, row.is_count) == (part, is_count);
        self.restless.iter().find(is_it)
    }

    /// True when an entry came back with this document to a form of before.
    pub(super) fn has_returned(&self, id: ItemId) -> bool {
        self.returned.contains(&id)
    }

    /// Leaves what is remembered from now on.
    pub(super) fn close(self, last: &mut WindowState) {
        last.restless = self.restless;
        let mut moving: Vec<MovingEntry> = self.moving.into_values().collect();
        if moving.len() > MOVING_ENTRIES_MAX {
            moving.sort_by_key(|row| std::cmp::Reverse(row.moved_at));
            moving.truncate(MOVING_ENTRIES_MAX);
            moving.sort_by_key(|row| row.id);
        }
        last.moving = moving;
    }
}

impl MovedForm {
    /// Time at which it is an edit, unless something else comes before: what is remembered of another
    /// form does not count.
    pub(super) fn lasts_at(&self) -> Option<Stamp> {
        let of_it = self.stretches.iter().copied();
        MovedStretch::first_lasts_at(of_it.filter(|row| row.is_whole == self.is_turn))
    }

    /// True when it tells nothing yet, and what waits of the form before it may be an edit.
    pub(super) fn leaves_edit(&self) -> bool {
        self.is_turn && self.stretches.iter().any(|row| !row.is_whole)
    }
}

impl MovedStretch {
    // Decides: How long must an edit last in a part that churns?
    /// Time at which the first of several has lasted for long enough to be an edit; `None` of none.
    pub(super) fn first_lasts_at(stretches: impl Iterator<Item = Self>) -> Option<Stamp> {
        let lasts_at = |row: &Self| {
            let secs = if row.is_churn() || row.is_other_form() {
                RESTLESS_SECS
            } else {
                LASTING_SECS
            };
            row.since.plus_secs(secs)
        };
        stretches.map(|row| lasts_at(&row)).min()
    }

    /// True when several documents showed it and nothing took its place: an edit, most likely,
    /// although its entry is shown no more.
    pub(super) fn outlives_its_entry(&self) -> bool {
        !self.is_churn() && self.sightings >= LASTING_SIGHTINGS
    }

    /// True of the form of the other of two servers, which nobody edited.
    fn is_other_form(&self) -> bool {
        self.is_whole && self.sightings == 0
    }

    /// True when it has moved on too often to be an edit.
    fn is_churn(&self) -> bool {
        self.moves >= CHURN_MOVES_MIN
    }
}

impl MovingEntry {
    /// How often the part moved that moved most.
    pub(super) fn times_moved(&self) -> u16 {
        let counts = self.parts.iter().map(|row| u16::from(row.count));
        counts.max().unwrap_or(0)
    }

    /// Counts a move. `is_alone` of one that no other entries share.
    fn count(&mut self, moved: &PartMove, is_alone: bool) {
        let is_count = moved.by.is_count();
        let is_it = |row: &PartMoves| (row.part, row.is_count) == (moved.part, is_count);
        let at = self.parts.iter().position(is_it).unwrap_or_else(|| {
            self.parts.push(PartMoves {
                part: moved.part,
                count: 0,
                by_turns: false,
                is_count,
                has_fallen: false,
            });
            self.parts.len() - 1
        });
        let row = &mut self.parts[at];
        if is_alone && moved.has_rested && !is_count {
            row.count = 0;
        }
        row.count = row.count.saturating_add(1);
        row.by_turns |= moved.by_turns;
        row.has_fallen |= moved.by == ChurnMove::Fall;
    }
}

/// A move in a part as churn makes it: of words, or of all of it by turns, or of numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChurnMove {
    Words,
    Rise,
    Fall,
}

impl ChurnMove {
    /// True of numbers that count, which are counted apart from words.
    fn is_count(self) -> bool {
        self != Self::Words
    }
}

impl Stretch {
    fn is_figure(&self) -> bool {
        self.kind == StretchKind::Number(NumberMove::Figure)
    }

    /// True of a number that is news beside anything that churns.
    fn is_told(&self) -> bool {
        self.is_figure() || self.kind == StretchKind::Number(NumberMove::Name)
    }
}

impl PartDifference {
    /// A stretch moved as churn does: more stays than moves, and something went for what came, or a
    /// former form came back. What only grows is a report that is continued, and a figure is news.
    fn churn(&self, is_return: bool) -> Option<ChurnMove> {
        if !self.is_stretch() || (!is_return && self.is_growth()) {
            return None;
        }
        let has = |kind| self.stretches.iter().any(|stretch| stretch.kind == kind);
        let has_number = || {
            let numbers = [NumberMove::Rise, NumberMove::Fall];
            numbers.into_iter().any(|by| has(StretchKind::Number(by)))
        };
        // What a number was before comes by turns, and has not fallen.
        let comes_back = is_return && (has(StretchKind::OneSided) || has_number());
        if has(StretchKind::Replaced) || comes_back {
            Some(ChurnMove::Words)
        } else if has(StretchKind::Number(NumberMove::Fall)) {
            Some(ChurnMove::Fall)
        } else if has(StretchKind::Number(NumberMove::Rise)) {
            Some(ChurnMove::Rise)
        } else {
            None
        }
    }

    /// True when numbers moved alone, and each of them rose.
    fn only_counts(&self) -> bool {
        let is_count = |row: &Stretch| row.kind == StretchKind::Number(NumberMove::Rise);
        self.stretches.iter().all(is_count)
    }

    /// True when nothing but figures moved, and times beside them.
    fn is_figures(&self) -> bool {
        let is_moment = |row: &Stretch| row.kind == StretchKind::Number(NumberMove::Moment);
        self.stretches.iter().any(Stretch::is_figure)
            && self
                .stretches
                .iter()
                .all(|row| row.is_figure() || is_moment(row))
    }

    /// The stretches as they are followed.
    fn followed(&self) -> Vec<Stretch> {
        if self.stretches.len() <= STRETCHES_MAX {
            return self.stretches.clone();
        }
        let start = self.stretches.first().map_or(0, |first| first.held.start);
        let end = self.stretches.last().map_or(0, |last| last.held.end);
        let mut given = Vec::new();
        for stretch in &self.stretches {
            given.extend(stretch.given.0);
        }
        vec![Stretch {
            held: start..end,
            given: Digest::of(&given),
            kind: StretchKind::Replaced,
        }]
    }
}
