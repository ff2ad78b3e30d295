//! The budget of hints of a feed: what a hint costs, and when one is ignored; not the poll that
//! follows on it.

use crate::feed::{
    record::FeedNo,
    stamp::{SECOND_US, Stamp},
};
use std::fmt;

/// Points that a feed has for hints at most, and that it gets back in an hour.
const POINTS_MAX: u64 = 60;
/// Cost of a hint whose poll brought something new.
const RIGHT_COST: u64 = 1;
/// Cost of a hint whose poll brought nothing new; it doubles with each in a row, up to all points.
const WRONG_COST: u64 = 5;
/// Seconds in which a feed gets one point back.
const POINT_SECS: u64 = 3600 / POINTS_MAX;

/// The fate of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintFate {
    /// The feed is polled soon.
    Taken,
    /// The feed is polled when that is over.
    Delayed(HintDelay),
    /// It is not polled because of it: the last hints brought nothing new. Hints count again after
    /// that time.
    Ignored {
        /// Seconds.
        wait_secs: u64,
    },
}

/// A time in which no hint of a feed leads to a poll, because the publisher or a limit wants it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintDelay {
    /// End of it.
    pub until: Stamp,
    /// Beginning of it; `None` where it is not known any more.
    pub since: Option<Stamp>,
    /// Reason of it.
    pub cause: DelayCause,
}

/// Reason of a delay of hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayCause {
    /// The host asked to be left alone (`Retry-After`, 429).
    HostPause,
    /// The publisher said that the feed is gone (410).
    Gone,
    /// The feed is at its quota, and nothing more of it can be stored.
    Quota,
}

/// The delays of hints, which the poller knows.
pub trait HintDelays: fmt::Debug + Send + Sync {
    /// The delay of a hint that comes now, if there is one.
    fn delay(&self, feed: FeedNo, now: Stamp) -> Option<HintDelay>;
}

/// The budget of a feed. A hint is paid for in advance, as if it were wrong.
#[derive(Clone, Debug, Default)]
pub(super) struct HintBudget {
    /// Time at which all points are there.
    full_at: Stamp,
    /// Wrong hints in a row.
    wrong: u32,
    /// Time of the last hint that was taken.
    taken_at: Stamp,
    /// Points paid for the hint that waits for the end of its poll.
    paid: u64,
}

impl HintBudget {
    // Decides: Is a publish hint heard?
    /// Takes a hint and pays for it, or ignores it.
    pub(super) fn take(&mut self, now: Stamp) -> HintFate {
        // Each hour without hints makes one wrong one forgotten.
        let quiet_hours = u32::try_from(now.secs_since(self.taken_at) / 3600).unwrap_or(u32::MAX);
        let wrong = self.wrong.saturating_sub(quiet_hours);
        let price = (WRONG_COST << wrong.min(8)).min(POINTS_MAX);
        // A moment further away than that is of a clock that went back since.
        let missing_secs = self.full_at.secs_since(now).min(POINTS_MAX * POINT_SECS);
        let room_secs = (POINTS_MAX - price) * POINT_SECS;
        if missing_secs > room_secs {
            return HintFate::Ignored {
                wait_secs: missing_secs - room_secs,
            };
        }
        self.full_at = now.plus_secs(missing_secs + price * POINT_SECS);
        (self.wrong, self.taken_at, self.paid) = (wrong, now, price);
        HintFate::Taken
    }

    /// The poll after a hint has ended: a hint that was right gets back what it paid too much.
    pub(super) fn ended(&mut self, is_right: bool) {
        let paid = std::mem::take(&mut self.paid);
        if is_right {
            let back_us = paid.saturating_sub(RIGHT_COST) * POINT_SECS * SECOND_US;
            self.full_at = Stamp::from_micros(self.full_at.micros().saturating_sub(back_us));
            self.wrong = 0;
        } else {
            self.wrong = self.wrong.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_000_000;

    /// Seconds at which hints are taken of which one comes every `every_secs` for so long.
    fn taken(every_secs: usize, secs: u64, is_right: bool) -> Vec<u64> {
        let mut budget = HintBudget::default();
        let mut taken = Vec::new();
        for at in (0..secs).step_by(every_secs) {
            if budget.take(Stamp::from_secs(START + at)) == HintFate::Taken {
                budget.ended(is_right);
                taken.push(at);
            }
        }
        taken
    }

    #[test]
    fn wrong_hints_without_end_come_to_one_poll_an_hour() {
        assert_eq!(taken(6, 30, false), [0, 6, 12]);
        let all = taken(6, 24 * 3600, false);
        let later = all.iter().filter(|at| **at >= 3600).count();
        assert!(
            all.len() - later <= 5 && (22..=24).contains(&later),
            "{all:?}"
        );
    }

    #[test]
    fn right_hints_are_taken_once_a_minute_for_ever() {
        assert_eq!(taken(60, 24 * 3600, true).len(), 24 * 60);
    }

    #[test]
    fn an_ignored_hint_says_from_when_on_one_is_taken() {
        let mut budget = HintBudget::default();
        let now = Stamp::from_secs(START);
        while budget.take(now) == HintFate::Taken {
            budget.ended(false);
        }
        let HintFate::Ignored { wait_secs } = budget.take(now) else {
            panic!("it is ignored")
        };
        assert!(matches!(
            budget.clone().take(now.plus_secs(wait_secs - 1)),
            HintFate::Ignored { wait_secs: 1 }
        ));
        assert_eq!(budget.take(now.plus_secs(wait_secs)), HintFate::Taken);
        // A clock that went back blocks nothing for longer than the budget does.
        let HintFate::Ignored { wait_secs } = budget.take(Stamp::from_secs(1000)) else {
            panic!("ignored")
        };
        assert!(wait_secs <= 3600);
    }
}
