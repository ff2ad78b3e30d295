//! Revivals: a deleted post that a document shows again is back, or the document is an old copy, as
//! caches and replicas give it. An old copy proves nothing: what it shows again waits until the
//! answer to an unconditional request, an hour later, agrees. Not what is missing from it.

use super::{AbsenceTrust, Coverage, Recurrence};
use crate::{
    item::{Content, Item, ItemId, Reason},
    stamp::Stamp,
};
use std::collections::HashSet;

/// Dates of a document that its answer and its head tell, microseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DocumentDates {
    /// Time at which it was made: `Date`, less what `Age` says beyond that.
    pub made_us: Option<i64>,
    /// `Last-Modified`.
    pub modified_us: Option<i64>,
    /// The feed's own date of its last change.
    pub updated_us: Option<i64>,
}

/// Deleted posts that were shown again and wait, and what makes a document look old.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revivals {
    /// Posts that every full document has shown since then, at most [`WAITING_MAX`].
    pub waiting: Vec<(ItemId, Stamp)>,
    /// Number of times, lately, that a document lacked again what waited.
    pub refuted: u8,
    /// The last of those times.
    pub refuted_at: Stamp,
    /// The newest dates that any document had.
    pub newest: DocumentDates,
}

/// Seconds for which every document must show a post again that an old one showed first.
// Limit: where every second answer is old and no page tells, all of an hour may be, before a return
// has shown it.
const AGREE_SECS: u64 = 3600;

/// The same where missing items come back, as they do when an old copy is given by turns: an hour
/// of agreement may be chance there.
const AGREE_DOUBTED_SECS: u64 = 86_400;

/// By how much the wait grows each time that a document lacks again what waited.
const REFUTED_FACTOR: u64 = 4;

/// The longest wait: caches forget within a week.
const AGREE_SECS_MAX: u64 = 7 * 86_400;

/// Seconds after which a refuted revival is forgotten.
const REFUTED_LASTS_SECS: u64 = 30 * 86_400;

/// Posts that wait at most; they are written with every document.
// Limit: of more that an old copy shows at once, the rest waits for the next document.
const WAITING_MAX: usize = 100;

impl DocumentDates {
    /// True when any of the dates is earlier than the same one of a document before it.
    fn is_before(&self, newest: &Self) -> bool {
        let is_earlier = |own: Option<i64>, newest: Option<i64>| {
            own.zip(newest).is_some_and(|(own, newest)| own < newest)
        };
        is_earlier(self.made_us, newest.made_us)
            || is_earlier(self.modified_us, newest.modified_us)
            || is_earlier(self.updated_us, newest.updated_us)
    }

    /// The same without dates that are still to come: they would make every later document old.
    fn plausible(self, now: Stamp) -> Self {
        let now_us = i64::try_from(now.micros()).unwrap_or(i64::MAX);
        let past = |at: Option<i64>| at.filter(|at| *at <= now_us);
        Self {
            made_us: past(self.made_us),
            modified_us: past(self.modified_us),
            updated_us: past(self.updated_us),
        }
    }

    fn later(self, other: Self) -> Self {
        Self {
            made_us: self.made_us.max(other.made_us),
            modified_us: self.modified_us.max(other.modified_us),
            updated_us: self.updated_us.max(other.updated_us),
        }
    }
}

/// A document, as far as it tells that it is old, or that it is not.
#[derive(Clone, Copy, Debug, Default)]
pub struct DocumentSigns {
    /// Dates of its answer and of its head.
    pub dates: DocumentDates,
    /// The latest date of an entry that is not still to come.
    pub newest_entry_us: Option<i64>,
    /// First sight of the newest post that it lacks and the document before showed.
    pub lacks_of: Option<Stamp>,
    /// Coverage of the document.
    pub coverage: Coverage,
    /// True when the pages of missing posts are asked for, and tell.
    pub asks_pages: bool,
}

/// The decision on the deleted posts that one document shows.
pub struct RevivalCheck<'a> {
    before: &'a Revivals,
    signs: DocumentSigns,
    is_dated_before: bool,
    wait_secs: u64,
    now: Stamp,
    waiting: Vec<(ItemId, Stamp)>,
    to_ask: Vec<ItemId>,
}

impl Revivals {
    /// A check of the posts that a document shows again, in a feed with this record of missing
    /// items that came back.
    pub fn check(
        &self,
        recurrence: &Recurrence,
        signs: DocumentSigns,
        now: Stamp,
    ) -> RevivalCheck<'_> {
        let dates = signs.dates.plausible(now);
        RevivalCheck {
            before: self,
            is_dated_before: dates.is_before(&self.newest),
            signs: DocumentSigns { dates, ..signs },
            wait_secs: self.wait_secs(recurrence, now),
            now,
            waiting: Vec::new(),
            to_ask: Vec::new(),
        }
    }

    /// Time from which on the answer to an unconditional request decides on what waits.
    pub fn agrees_at(&self, recurrence: &Recurrence, now: Stamp) -> Option<Stamp> {
        let first = self.waiting.iter().map(|(_, since)| *since).min()?;
        Some(first.plus_secs(self.wait_secs(recurrence, now)))
    }

    /// Since when a deleted item has been shown again and waits, if it does.
    pub fn waits_since(&self, id: ItemId) -> Option<Stamp> {
        let is_it = |row: &&(ItemId, Stamp)| row.0 == id;
        self.waiting.iter().find(is_it).map(|(_, since)| *since)
    }

    /// Takes in that the page of a deleted item is not there while documents show it again: they are
    /// old.
    pub fn refute(&mut self, id: ItemId, now: Stamp) {
        if self.waits_since(id).is_some() {
            self.count_refuted(now);
        }
    }

    fn count_refuted(&mut self, now: Stamp) {
        let is_recent = now.secs_since(self.refuted_at) < REFUTED_LASTS_SECS;
        let before = if is_recent { self.refuted } else { 0 };
        (self.refuted, self.refuted_at) = (before.saturating_add(1), now);
    }

    fn wait_secs(&self, recurrence: &Recurrence, now: Stamp) -> u64 {
        let is_recent = now.secs_since(self.refuted_at) < REFUTED_LASTS_SECS;
        let times = if is_recent { self.refuted } else { 0 };
        let comes_back =
            recurrence.has_returned(now) || recurrence.belief(now) > AbsenceTrust::Usual;
        let least = if comes_back {
            AGREE_DOUBTED_SECS
        } else {
            AGREE_SECS
        };
        REFUTED_FACTOR
            .saturating_pow(u32::from(times))
            .saturating_mul(AGREE_SECS)
            .clamp(least, AGREE_SECS_MAX)
    }
}

impl RevivalCheck<'_> {
    // Decides: Is a deleted post that is shown again back, or is the document an old copy?
    /// True when a deleted item that the document shows waits. What a part of the feed shows is
    /// believed as ever: archives are old, and say so.
    pub fn waits(&mut self, item: &Item) -> bool {
        let Content::Gone { reason, .. } = &item.content else {
            return false;
        };
        if self.signs.coverage.is_partial() || self.is_believed(*reason, item.modified) {
            return false;
        }
        let since = self.before.waits_since(item.id);
        let is_agreed = self.signs.coverage == Coverage::Unconditional
            && since.is_some_and(|since| self.now >= since.plus_secs(self.wait_secs));
        if is_agreed {
            return false;
        }
        // While one document is as good as another, the next may be as old as this one.
        if since.is_none() && self.wait_secs == AGREE_SECS {
            self.to_ask.push(item.id);
        }
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push((item.id, since.unwrap_or(self.now)));
        }
        true
    }

    /// True when the document is no old copy. It is one when its dates or its set are those of one
    /// before the deletion. Where pages were asked, the page of the post was gone or not found:
    /// that outweighs a document that might be old, so one wants to see that it was made since.
    fn is_believed(&self, reason: Reason, ended_at: Stamp) -> bool {
        let is_old =
            self.is_dated_before || self.signs.lacks_of.is_some_and(|seen| seen > ended_at);
        let ended_us = i64::try_from(ended_at.micros()).unwrap_or(i64::MAX);
        let is_new = self.signs.newest_entry_us.is_some_and(|at| at > ended_us);
        let is_of_page = match reason {
            Reason::Gone => true,
            Reason::AbsentBracketed => self.signs.asks_pages,
            _ => false,
        };
        !is_old && (is_new || !is_of_page)
    }

    /// True when a date of the document is earlier than that of one before it: it is an old copy.
    pub fn is_dated_before(&self) -> bool {
        self.is_dated_before
    }

    /// The items that begin to wait, and whose pages tell sooner than documents if they are back.
    pub fn to_ask(&self) -> &[ItemId] {
        &self.to_ask
    }

    /// The state from now on; `shown` are all items of the document.
    pub fn after(self, shown: &HashSet<ItemId>) -> Revivals {
        let mut next = self.before.clone();
        if self.signs.coverage.is_partial() {
            return next;
        }
        let is_lacked = |row: &(ItemId, Stamp)| !shown.contains(&row.0);
        if self.before.waiting.iter().any(is_lacked) {
            next.count_refuted(self.now);
        }
        next.waiting = self.waiting;
        next.newest = next.newest.later(self.signs.dates);
        next
    }
}

#[cfg(test)]
mod tests;
