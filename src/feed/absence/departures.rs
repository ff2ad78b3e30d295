//! Departures: posts that left documents which tell nothing by what they lack, because new posts
//! enter at no end that is known (a pinned first post without dates, lists by name or by score), or
//! because there is no order at all; and missing posts that rolled off before their page had the last
//! word. Such a post was deleted or has only moved out of sight, and its own page alone tells which.
//! Not the asking.

use super::{CheckResult, PermalinkCheck, Proof, ProofPolicy, Suspect, SuspectBasis, WindowItem};
use crate::{
    item::{ItemId, flapping_secs},
    stamp::Stamp,
};
use std::collections::HashSet;

/// Posts that left such documents, and the pages that were asked for because of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Departures {
    /// The posts, nearly in the order in which they left, at most [`DEPARTURES_MAX`].
    pub rows: Vec<Departure>,
    /// True while documents follow no order: then posts that left are shown again on their own.
    pub is_unordered: bool,
    /// Beginning of the day in which pages are counted.
    pub day: Stamp,
    /// Pages asked for in that day.
    pub asked: u16,
}

/// A post that left without a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The item.
    pub id: ItemId,
    /// Number of its earlier deletions.
    pub tombstone_count: u8,
    /// Time at which it was last seen.
    pub last_seen: Stamp,
    /// Time of the first document without it since.
    pub since: Stamp,
    /// Check of its own page.
    pub check: PermalinkCheck,
    /// True when documents had proven its end, and waited for its page alone.
    pub is_proven: bool,
}

/// End of a departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DepartureEnd {
    /// Its page is gone, or says nothing against what documents had proven.
    Gone(Proof),
    /// It lives, or no page will tell: it has rolled off.
    RolledOff,
}

/// Departures that are remembered, so that what is written with every document has an end.
// Limit: of more posts that leave at once than this, no page is asked for.
const DEPARTURES_MAX: usize = 300;

/// Pages of departures that are asked for in a day, at most: as many as a reader who comes every
/// two hours asks for. Posts that left for longest come first, since in a list that shows its posts
/// by turns those that live are shown again sooner.
const PAGES_DAILY_MAX: u16 = 12;

/// Seconds after which the page of a post is asked for that left a feed without any order. Most are
/// shown again before that, and cost no request.
const UNORDERED_SECS: u64 = 86_400;

const DAY_SECS: u64 = 86_400;

impl Departures {
    /// True when pages may tell of departures: a list that is complete needs none, and a planet's
    /// posts are other sites' business.
    pub(super) fn are_asked_about(policy: &ProofPolicy) -> bool {
        policy.checks_permalinks && policy.ordered && !policy.complete
    }

    /// Remembers rows that a document lacks.
    pub(super) fn note<'a>(
        &mut self,
        rows: impl IntoIterator<Item = &'a WindowItem>,
        last_seen: Stamp,
        policy: &ProofPolicy,
        now: Stamp,
    ) {
        if !Self::are_asked_about(policy) {
            return;
        }
        let wait_secs = self.wait_secs(policy.apart_secs);
        let held: HashSet<ItemId> = self.rows.iter().map(|row| row.id).collect();
        let room = DEPARTURES_MAX.saturating_sub(self.rows.len());
        let is_new = |row: &&WindowItem| {
            let is_there = row
                .suspect
                .is_some_and(|missing| missing.permalink_check.is_hidden());
            !row.is_weak && !is_there && !held.contains(&row.id)
        };
        let departed = |row: &WindowItem| Departure {
            id: row.id,
            tombstone_count: row.tombstone_count,
            last_seen,
            since: now,
            check: PermalinkCheck::due_at(now.plus_secs(wait_secs)),
            is_proven: false,
        };
        let new = rows.into_iter().filter(is_new).take(room).map(departed);
        self.rows.extend(new);
    }

    /// Remembers a suspect that rolled off before its page had the last word. What documents had
    /// proven by then holds if its page does not show it.
    pub(super) fn note_suspect(
        &mut self,
        row: &WindowItem,
        missing: &Suspect,
        policy: &ProofPolicy,
        now: Stamp,
    ) {
        let has_room = self.rows.len() < DEPARTURES_MAX && self.of(row.id).is_none();
        if Self::are_asked_about(policy) && has_room && missing.permalink_check.is_awaited() {
            self.rows.push(Departure {
                id: row.id,
                tombstone_count: row.tombstone_count,
                last_seen: missing.last_seen,
                since: missing.since,
                check: missing.permalink_check,
                is_proven: missing.is_proven_by_documents(row.tombstone_count, policy, now),
            });
        }
    }

    /// Remembers an item of which only a hint says that it is deleted (UPSTREAM U-9). Its page is
    /// asked for at once.
    pub(super) fn note_hinted(
        &mut self,
        id: ItemId,
        tombstone_count: u8,
        last_seen: Stamp,
        now: Stamp,
    ) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.id == id) {
            if row.check.asked == 0 {
                row.check = PermalinkCheck::due_at(now);
            }
            return;
        }
        if self.rows.len() < DEPARTURES_MAX {
            self.rows.push(Departure {
                id,
                tombstone_count,
                last_seen,
                since: now,
                check: PermalinkCheck::due_at(now),
                is_proven: false,
            });
        }
    }

    /// Takes note of a document whose order cannot be followed, and of which no window is kept:
    /// what it shows is there, and stays remembered for the day on which it is not.
    pub(super) fn shown_in_disorder(&mut self, shown: &HashSet<ItemId>, now: Stamp) {
        if !self.is_unordered {
            self.settle(shown);
        }
        for row in self.rows.iter_mut().filter(|row| shown.contains(&row.id)) {
            (row.last_seen, row.since) = (now, now);
            row.check = PermalinkCheck::due_at(now.plus_secs(UNORDERED_SECS));
        }
    }

    /// Forgets what a document shows again that is the window from now on.
    pub(super) fn settle(&mut self, shown: &HashSet<ItemId>) {
        self.rows.retain(|row| !shown.contains(&row.id));
    }

    /// Time of the next check.
    pub(super) fn next_at(&self) -> Option<Stamp> {
        let due = self.rows.iter().filter_map(|row| row.check.due()).min()?;
        Some(due.max(self.opens_at()))
    }

    // Decides: Whose page is asked for where new posts enter at no end?
    /// The post whose page is to be asked for now: one that was not found before, else the one that
    /// left first.
    pub(super) fn due(&self, now: Stamp) -> Option<ItemId> {
        if self.opens_at() > now {
            return None;
        }
        let is_due = |row: &&Departure| row.check.due().is_some_and(|due| due <= now);
        let due = self.rows.iter().filter(is_due);
        due.min_by_key(|row| (row.check.asked == 0, row.since, row.id))
            .map(|row| row.id)
    }

    /// The departure of an item.
    pub(super) fn of(&self, id: ItemId) -> Option<&Departure> {
        self.rows.iter().find(|row| row.id == id)
    }

    /// Takes in the result of a check; `None` while the post is waited for. `is_vain` when the
    /// pages of this site have told nothing for days.
    pub(super) fn told(
        &mut self,
        id: ItemId,
        said: CheckResult,
        apart_secs: u64,
        is_vain: bool,
        now: Stamp,
    ) -> Option<DepartureEnd> {
        let at = self.rows.iter().position(|row| row.id == id)?;
        if !matches!(said, CheckResult::NoPage | CheckResult::Uninformative(_)) {
            self.count(now);
        }
        let row = &mut self.rows[at];
        row.check = row.check.told(said, apart_secs, now);
        let rests_secs = flapping_secs(row.tombstone_count);
        let not_before = row.since.plus_secs(rests_secs);
        if row.check.is_gone() && rests_secs > 0 && now < not_before {
            row.check = PermalinkCheck::due_at(not_before);
        }
        let row = *row;
        if row.check.is_gone() {
            self.rows.remove(at);
            return Some(DepartureEnd::Gone(Proof::Gone(row.suspect())));
        }
        let is_over = is_vain || row.check.is_hidden() || row.check.due().is_none();
        if is_over {
            self.rows.remove(at);
            let is_gone = row.is_proven && !row.check.is_hidden();
            return Some(if is_gone {
                DepartureEnd::Gone(Proof::Bracketed(row.suspect()))
            } else {
                DepartureEnd::RolledOff
            });
        }
        None
    }

    /// Counts a page that was asked for.
    fn count(&mut self, now: Stamp) {
        if now.secs_since(self.day) >= DAY_SECS {
            (self.day, self.asked) = (now, 0);
        }
        self.asked = self.asked.saturating_add(1);
    }

    /// Time from which on a page may be asked for.
    fn opens_at(&self) -> Stamp {
        if self.asked < PAGES_DAILY_MAX {
            Stamp::ZERO
        } else {
            self.day.plus_secs(DAY_SECS)
        }
    }

    fn wait_secs(&self, apart_secs: u64) -> u64 {
        if self.is_unordered {
            UNORDERED_SECS
        } else {
            apart_secs
        }
    }
}

impl Departure {
    /// The same as a suspect on which its page alone decides.
    pub fn suspect(&self) -> Suspect {
        let basis = SuspectBasis::PageOfDeparted;
        Suspect::on_page(basis, self.since, self.last_seen, self.check)
    }
}
