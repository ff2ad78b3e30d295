//! The budget of hints of a feed: what a hint costs, and when one has to wait; not the poll that
//! follows on it.

use crate::feed::{
    record::FeedNo,
    stamp::{SECOND_US, Stamp},
};
use std::fmt;

/// Points that a feed has for hints at most, and that it gets back in an hour.
const POINTS_MAX: u64 = 60;
/// Cost of a series of hints of which a poll brought something new.
const RIGHT_COST: u64 = 1;
/// Cost of a series whose polls brought nothing new; it doubles with each in a row, up to all
/// points.
const WRONG_COST: u64 = 5;
/// Seconds from the first hint of a series to its last: a deploy repeats its ping after 10 and 60 s.
const SERIES_SECS: u64 = 90;
/// Repetitions in a series, which cost nothing.
const REPETITIONS_MAX: u32 = 2;
/// Wrong series in a row after which repetitions cost as much as first hints: who floods a feed
/// gets no polls for nothing.
const WRONG_IN_STANDING_MAX: u32 = 2;
/// Seconds in which a feed gets one point back.
const POINT_SECS: u64 = 3600 / POINTS_MAX;

/// The fate of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintFate {
    /// The feed is polled soon.
    Taken,
    /// The feed is polled when that is over.
    Delayed(HintDelay),
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
    /// The hints before brought nothing new.
    Budget,
}

/// The delays of hints, which the poller knows.
pub trait HintDelays: fmt::Debug + Send + Sync {
    /// The delay of a hint that comes now, if there is one.
    fn delay(&self, feed: FeedNo, now: Stamp) -> Option<HintDelay>;
}

/// The budget of a feed. A series of hints is paid for in advance, as if it were wrong.
#[derive(Clone, Debug, Default)]
pub(super) struct HintBudget {
    /// Time at which all points are there.
    full_at: Stamp,
    /// Wrong series in a row.
    wrong: u32,
    /// The last series.
    series: Series,
}

/// Hints that tell of one change: the first, and its repetitions.
#[derive(Clone, Copy, Debug, Default)]
struct Series {
    /// Time of the first hint.
    since: Stamp,
    /// Repetitions that cost nothing.
    repetitions_left: u32,
    end: SeriesEnd,
}

/// The polls of a series, as far as they have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SeriesEnd {
    /// None has ended, and so many points are paid.
    Paid(u64),
    /// They brought nothing new, and so many points are paid.
    Wrong(u64),
    /// One brought something new.
    #[default]
    Right,
}

impl HintBudget {
    // Decides: When is a feed polled for a publish hint?
    /// Takes a hint and pays for it. The time from which on its poll may begin: now, or when the
    /// points for it are there.
    pub(super) fn take(&mut self, now: Stamp) -> Stamp {
        let is_of_series =
            self.series.since <= now && now <= self.series.since.plus_secs(SERIES_SECS);
        if is_of_series && self.series.repetitions_left > 0 {
            self.series.repetitions_left -= 1;
            return now;
        }
        // Each hour without hints makes one wrong series forgotten.
        let quiet_hours = now.secs_since(self.series.since) / 3600;
        let quiet_hours = u32::try_from(quiet_hours).unwrap_or(u32::MAX);
        self.wrong = self.wrong.saturating_sub(quiet_hours);
        let price = (WRONG_COST << self.wrong.min(8)).min(POINTS_MAX);
        // A moment further away than that is of a clock that went back since.
        let missing_secs = self.full_at.secs_since(now).min(POINTS_MAX * POINT_SECS);
        let room_secs = (POINTS_MAX - price) * POINT_SECS;
        let begin = now.plus_secs(missing_secs.saturating_sub(room_secs));
        self.full_at = now.plus_secs(missing_secs + price * POINT_SECS);
        let is_in_standing = self.wrong <= WRONG_IN_STANDING_MAX;
        self.series = Series {
            since: begin,
            repetitions_left: if is_in_standing { REPETITIONS_MAX } else { 0 },
            end: SeriesEnd::Paid(price),
        };
        begin
    }

    /// The poll after a hint has ended: a series that was right gets back what it paid too much.
    pub(super) fn ended(&mut self, is_right: bool) {
        let end = &mut self.series.end;
        match (*end, is_right) {
            (SeriesEnd::Paid(paid) | SeriesEnd::Wrong(paid), true) => {
                let back_us = paid.saturating_sub(RIGHT_COST) * POINT_SECS * SECOND_US;
                self.full_at = Stamp::from_micros(self.full_at.micros().saturating_sub(back_us));
                (*end, self.wrong) = (SeriesEnd::Right, 0);
            }
            (SeriesEnd::Paid(paid), false) => {
                *end = SeriesEnd::Wrong(paid);
                self.wrong = self.wrong.saturating_add(1);
            }
            (SeriesEnd::Wrong(_), false) | (SeriesEnd::Right, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_000_000;

    fn at(secs: u64) -> Stamp {
        Stamp::from_secs(START + secs)
    }

    /// Gives a hint every `every_secs` for so long, unless one waits for its poll. The seconds at
    /// which polls begin.
    fn polled(every_secs: usize, secs: u64, is_right: bool) -> Vec<u64> {
        let mut budget = HintBudget::default();
        let mut polled: Vec<u64> = Vec::new();
        for now in (0..secs).step_by(every_secs) {
            if polled.last().is_none_or(|last| *last <= now) {
                polled.push(budget.take(at(now)).secs_since(at(0)));
                budget.ended(is_right);
            }
        }
        polled
    }

    #[test]
    fn wrong_hints_without_end_come_to_one_poll_an_hour() {
        assert_eq!(polled(6, 50, false), [0, 6, 12, 18, 24, 30, 36, 42, 48]);
        let all = polled(6, 24 * 3600, false);
        let later = all.iter().filter(|at| **at >= 3600).count();
        assert!(
            all.len() - later <= 11 && (22..=25).contains(&later),
            "{all:?}"
        );
    }

    #[test]
    fn right_hints_are_taken_once_a_minute_for_ever() {
        let all = polled(60, 24 * 3600, true);
        assert_eq!(all.len(), 24 * 60);
        assert!(all.iter().all(|at| at % 60 == 0), "none waits");
    }

    /// Deploys, each with a ping at once and after 10 and 60 s: the seconds for which pings wait.
    fn waits(deploys: &[(u64, [bool; 3])]) -> Vec<u64> {
        let mut budget = HintBudget::default();
        let mut waits = Vec::new();
        for (begin, brings_news) in deploys {
            for (after, is_right) in [0, 10, 60].into_iter().zip(brings_news) {
                let now = at(begin + after);
                waits.push(budget.take(now).secs_since(now));
                budget.ended(*is_right);
            }
        }
        waits
    }

    #[test]
    fn pings_that_one_deploy_repeats_cost_one_point() {
        // A deploy takes effect at once, after 10 s, or after 60 s.
        for when in 0..3 {
            let brings_news = [0, 1, 2].map(|ping| ping == when);
            let deploys: Vec<_> = (0..40).map(|n| (n * 90, brings_news)).collect();
            assert_eq!(waits(&deploys), [0; 120], "forty deploys in an hour");
        }
    }

    #[test]
    fn deploys_that_change_nothing_wait_from_the_fourth_on() {
        let nothing = [false; 3];
        let deploys = [(0, nothing), (300, nothing), (600, nothing)];
        assert_eq!(waits(&deploys), [0; 9]);
        let mut budget = HintBudget::default();
        for begin in [0, 300, 600] {
            for after in [0, 10, 60] {
                budget.take(at(begin + after));
                budget.ended(false);
            }
        }
        // 5, 10 and 20 points are paid, 15 minutes gave 15 back, and the next costs 40.
        assert_eq!(budget.clone().take(at(900)), at(900));
        assert_eq!(budget.clone().take(at(700)), at(900));
        budget.take(at(700));
        // What it waited for was there: everything begins anew.
        budget.ended(true);
        assert_eq!(budget.take(at(2000)), at(2000));
    }

    #[test]
    fn a_clock_that_went_back_lets_no_hint_wait_longer_than_an_hour() {
        let mut budget = HintBudget::default();
        for n in 0..12 {
            budget.take(at(n));
            budget.ended(false);
        }
        let begin = budget.take(Stamp::from_secs(1000));
        assert!(
            begin <= Stamp::from_secs(1000 + 3600),
            "{}",
            begin.rfc3339()
        );
    }
}
