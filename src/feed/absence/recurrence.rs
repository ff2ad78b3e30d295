//! Recurrence: missing items keep coming back (POLLING 2.4, the last row). A feed that is made for
//! whoever asks, or by several machines that do not agree, shows now one set of items and now
//! another. Then absence counts for less, and if that is not enough, for nothing. Not what is
//! missing, nor what proves it.

use super::WindowItem;
use crate::{item::ItemId, stamp::Stamp};
use std::collections::{HashSet, VecDeque};

/// Trust in absence: the degree to which a missing item counts as gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AbsenceTrust {
    /// As far as the policy says.
    #[default]
    Usual,
    /// Missing items keep coming back: an item must be missed for seven days.
    Doubted,
    /// Not at all: what was taken for deleted in spite of the doubt came back, too.
    Off,
}

/// Reason for doubting absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DoubtReason {
    /// Missing items came back too often.
    Returned,
    /// Several items came back at once that were taken for deleted.
    Revived,
}

/// Record of the missing items that came back lately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recurrence {
    /// The last documents that showed again what was missing, newest last, at most
    /// [`RETURNS_MANY`].
    pub seen: VecDeque<Stamp>,
    /// Items that were taken for deleted because they are missing and have not come back, newest
    /// last, at most [`ENDED_MAX`]; and whether that was doubted by then.
    pub ended: VecDeque<(ItemId, bool)>,
    /// Since when absence is doubted, and why; the last time that there was a reason to.
    pub doubted: Option<(Stamp, DoubtReason)>,
    /// Since when it proves nothing; likewise.
    pub off: Option<Stamp>,
}

/// Documents that show again what was missing, within [`RETURNS_SECS`], that make absence doubtful.
/// Documents, not items: a machine that fails and comes back is one accident, however much it held.
const RETURNS_MANY: usize = 3;

/// In how many seconds: seven days.
const RETURNS_SECS: u64 = 7 * 86_400;

/// Least time for which an item must be missed while absence is doubted, in seconds (POLLING 2.4).
pub(super) const DOUBTED_SECS: u64 = 7 * 86_400;

/// Tombstones that come to life in one document make absence doubtful when they are at least so
/// many: one alone may have been published again by its author, who takes a post down and puts it
/// up again for reasons of his own.
const TOGETHER_MIN: usize = 2;

/// For how long absence stays doubtful after the last reason to doubt it, and for how long it
/// proves nothing after an item came back that was taken for deleted even so: thirty days, in
/// seconds. Sets may alternate by the day or by the week.
const LASTS_SECS: u64 = 30 * 86_400;

/// Items taken for deleted that are watched for their return: those of one day at most.
const ENDED_MAX: usize = super::daily_count::DAILY_MAX as usize;

impl Recurrence {
    // Decides: Is absence doubtful, because missing items come back?
    /// Trust in absence now.
    pub fn belief(&self, now: Stamp) -> AbsenceTrust {
        if self.off_until(now).is_some() {
            AbsenceTrust::Off
        } else if self.doubted_until(now).is_some() {
            AbsenceTrust::Doubted
        } else {
            AbsenceTrust::Usual
        }
    }

    /// Until when absence is doubted, if it is, and why.
    pub fn doubted_until(&self, now: Stamp) -> Option<(Stamp, DoubtReason)> {
        let until = self
            .doubted
            .map(|(since, cause)| (since.plus_secs(LASTS_SECS), cause));
        until.filter(|(until, _)| now < *until)
    }

    /// Until when absence proves nothing, if it is so.
    pub fn off_until(&self, now: Stamp) -> Option<Stamp> {
        self.off
            .map(|since| since.plus_secs(LASTS_SECS))
            .filter(|until| now < *until)
    }

    /// True when a missing item has come back lately.
    pub fn has_returned(&self, now: Stamp) -> bool {
        self.seen
            .back()
            .is_some_and(|last| now.secs_since(*last) < LASTS_SECS)
    }

    /// After a document that shows these items, beside the rows that were remembered before it.
    pub(super) fn after(&self, shown: &HashSet<ItemId>, rows: &[WindowItem], now: Stamp) -> Self {
        let mut next = self.clone();
        // What a document with a fault lacked has not come back.
        let was_missing =
            |row: &&WindowItem| row.suspect.is_some_and(|missing| !missing.is_of_fault());
        if rows
            .iter()
            .filter(was_missing)
            .any(|row| shown.contains(&row.id))
        {
            next.seen.push_back(now);
            next.seen
                .drain(..next.seen.len().saturating_sub(RETURNS_MANY));
            let is_recent = |first: &Stamp| now.secs_since(*first) < RETURNS_SECS;
            if next.seen.len() == RETURNS_MANY && next.seen.front().is_some_and(is_recent) {
                next.doubted = Some((now, DoubtReason::Returned));
            }
        }
        next.ended.retain(|(id, _)| !shown.contains(id));
        if self.ended.len() - next.ended.len() >= TOGETHER_MIN {
            next.doubted = Some((now, DoubtReason::Revived));
        }
        if self
            .ended
            .iter()
            .any(|(id, doubted)| *doubted && shown.contains(id))
        {
            next.off = Some(now);
        }
        next
    }

    /// An item has come back without a document: it is not watched any more.
    pub fn revive(&mut self, id: ItemId) {
        self.ended.retain(|(ended, _)| *ended != id);
    }

    /// An item is taken for deleted because it is missing.
    pub(super) fn end(&mut self, id: ItemId, belief: AbsenceTrust) {
        self.ended.push_back((id, belief > AbsenceTrust::Usual));
        self.ended
            .drain(..self.ended.len().saturating_sub(ENDED_MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Suspect, *};
    use AbsenceTrust::{Doubted, Off, Usual};

    const START: Stamp = Stamp::from_secs(1_700_000_000);
    const HOUR: u64 = 3600;
    const DAY: u64 = 86_400;

    fn id(n: u8) -> ItemId {
        ItemId([n; 10])
    }

    fn at(secs: u64) -> Stamp {
        START.plus_secs(secs)
    }

    /// After documents at these seconds, each of which shows again what was missing.
    fn returning(secs: impl IntoIterator<Item = u64>) -> Recurrence {
        let missing = Suspect {
            since: START,
            last_seen: START,
            counted_at: START,
            count: 1,
            audited: false,
            strong: true,
            behind: 2,
            backfilled: false,
            permalink_check: super::super::PermalinkCheck::default(),
            basis: super::super::SuspectBasis::Documents,
        };
        let row = WindowItem {
            id: id(1),
            dated: None,
            tombstone_count: 0,
            is_weak: false,
            suspect: Some(missing),
        };
        secs.into_iter()
            .fold(Recurrence::default(), |returns, secs| {
                returns.after(&HashSet::from([id(1)]), &[row], at(secs))
            })
    }

    /// After a document at this second that shows these items, which were ended before.
    fn revived(items: &[u8], belief: AbsenceTrust, secs: u64) -> Recurrence {
        let mut returns = Recurrence::default();
        (0..8).for_each(|n| returns.end(id(n), belief));
        returns.after(&items.iter().map(|n| id(*n)).collect(), &[], at(secs))
    }

    #[test]
    fn three_documents_within_a_week_that_show_again_what_was_missing_make_absence_doubtful_for_a_month()
     {
        assert_eq!(returning([0, HOUR]).belief(at(HOUR)), Usual);
        let thrice = returning([0, HOUR, 6 * DAY]);
        assert_eq!(
            thrice.doubted_until(at(7 * DAY)),
            Some((at(36 * DAY), DoubtReason::Returned))
        );
        assert_eq!(
            (thrice.belief(at(36 * DAY - 1)), thrice.belief(at(36 * DAY))),
            (Doubted, Usual)
        );
        assert_eq!(
            returning([0, HOUR, 7 * DAY]).belief(at(7 * DAY)),
            Usual,
            "the first of them is too old"
        );
        let again = returning([0, HOUR, 6 * DAY, 6 * DAY + HOUR]);
        assert_eq!(
            again.belief(at(36 * DAY)),
            Doubted,
            "it lasts as long as there are reasons"
        );
    }

    #[test]
    fn several_that_are_revived_at_once_were_never_deleted_but_one_alone_was_published_again() {
        assert_eq!(revived(&[0], Usual, 0).belief(START), Usual);
        let both = revived(&[0, 1], Usual, 0);
        assert_eq!(
            both.doubted_until(START),
            Some((at(30 * DAY), DoubtReason::Revived))
        );
        assert_eq!(
            (both.belief(at(30 * DAY - 1)), both.belief(at(30 * DAY))),
            (Doubted, Usual)
        );
    }

    #[test]
    fn one_that_was_ended_in_spite_of_the_doubt_and_comes_back_turns_absence_off_for_a_month() {
        let mistaken = revived(&[7], Doubted, 0);
        assert_eq!(mistaken.off_until(START), Some(at(30 * DAY)));
        assert_eq!(
            (
                mistaken.belief(at(30 * DAY - 1)),
                mistaken.belief(at(30 * DAY))
            ),
            (Off, Usual)
        );
        assert_eq!(
            mistaken.after(&HashSet::from([id(7)]), &[], at(DAY)),
            mistaken,
            "it is counted once"
        );
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut returns = returning((0..100).map(|hour| hour * HOUR));
        (0..=255)
            .cycle()
            .take(1000)
            .for_each(|n| returns.end(id(n), Doubted));
        assert_eq!(
            (returns.seen.len(), returns.ended.len()),
            (RETURNS_MANY, ENDED_MAX)
        );
    }
}
