//! Ends by a clock that may be wrong for a while: what ends by it for good ends ten minutes late, and
//! not while the clock is wrong. The one place for leases of the hub and of XMPP.

use super::{Clock, micros};
use crate::locks::lock;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

/// Time for which the clock must have been past an end, by timers that do not jump.
const SETTLED_AFTER: Duration = Duration::from_secs(600);

/// Longest time between two looks of one that waits for an end which the clock is past.
pub const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Looks within this time count as one, with the earliest time that any of them saw.
const ONE_LOOK: Duration = Duration::from_secs(10);

/// A clock whose looks are remembered for ten minutes. What was not seen since the start does not
/// count.
pub struct SettledClock {
    clock: Arc<dyn Clock>,
    looks: Mutex<ClockReadings>,
}

/// A look at the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// The time that it shows, in microseconds since 1970.
    pub now_us: u64,
    /// The time that it has been past at each look of the last ten minutes. 0 in the first ten
    /// minutes.
    pub settled_us: u64,
}

impl SettledClock {
    /// A clock that nobody has looked at.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            looks: Mutex::default(),
        }
    }

    // Decides: What has ended, if the clock may be wrong for a while?
    /// Looks at the clock. What ends for good has ended once its end is at or before the settled
    /// time.
    pub fn look(&self) -> ClockReading {
        let now_us = self.clock.now_us();
        let settled_us = lock(&self.looks).take(now_us, Instant::now());
        ClockReading { now_us, settled_us }
    }
}

/// Looks at a clock, the first one first. The first is at least ten minutes old, where one is.
#[derive(Debug, Default)]
struct ClockReadings(VecDeque<(Instant, u64)>);

impl ClockReadings {
    /// Takes in a look; the settled time.
    fn take(&mut self, now_us: u64, at: Instant) -> u64 {
        match self.0.back_mut() {
            Some((began, earliest_us)) if at.duration_since(*began) < ONE_LOOK => {
                *earliest_us = now_us.min(*earliest_us);
            }
            _ => self.0.push_back((at, now_us)),
        }
        let is_old = |look: Option<&(Instant, u64)>| {
            look.is_some_and(|(began, _)| at.duration_since(*began) >= SETTLED_AFTER)
        };
        // The one before the last ten minutes tells where they began: nobody may have looked since.
        while is_old(self.0.get(1)) {
            self.0.pop_front();
        }
        if !is_old(self.0.front()) {
            return 0;
        }
        let earliest = self.0.iter().map(|(_, now_us)| *now_us).min();
        earliest.unwrap_or_default()
    }
}

/// The end of one lease. A lease with more left than it was granted for was granted while the clock
/// ran ahead, or the clock is behind now. It is as long as it was granted from here on, by timers that
/// do not jump, and its stored end counts again if the clock comes back to it.
// Limit: those timers begin with the process, so a lease that was granted while the clock ran ahead is
// longer by the starts in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseWatch {
    too_long_since: Option<Instant>,
}

impl LeaseWatch {
    /// The end of a lease that was granted for so many seconds, as the clock shows time now. Times
    /// are in microseconds since 1970.
    pub fn end_us(&mut self, until_us: u64, term_secs: u64, now_us: u64) -> u64 {
        let term = Duration::from_secs(term_secs);
        if until_us <= now_us.saturating_add(micros(term)) {
            self.too_long_since = None;
            return until_us;
        }
        let since = *self.too_long_since.get_or_insert_with(Instant::now);
        let end_us = now_us.saturating_add(micros(term));
        until_us.min(end_us.saturating_sub(micros(since.elapsed())))
    }

    /// Begins to count the time of a lease that is too long from the start.
    pub fn restart(&mut self) {
        self.too_long_since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Manual;

    const DAY_SECS: u64 = 86_400;
    const YEAR: Duration = Duration::from_secs(365 * DAY_SECS);
    const START_US: u64 = 1_780_272_000_000_000;

    /// A clock that somebody looks at each minute.
    struct Rig {
        manual: Arc<Manual>,
        settled: SettledClock,
    }

    impl Rig {
        fn new() -> Self {
            let manual = Arc::new(Manual::at(START_US));
            let settled = SettledClock::new(manual.clone());
            Self { manual, settled }
        }

        /// Time passes, and is looked at each minute; the last look.
        async fn pass(&self, by: Duration) -> ClockReading {
            let mut left = by;
            let mut look = self.settled.look();
            while !left.is_zero() {
                let step = left.min(LOOK_AGAIN);
                left -= step;
                tokio::time::advance(step).await;
                self.manual.advance(step);
                look = self.settled.look();
            }
            look
        }
    }

    fn mins(mins: u64) -> Duration {
        Duration::from_secs(60 * mins)
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_is_settled_once_the_clock_was_past_it_for_ten_minutes_and_not_before() {
        let rig = Rig::new();
        assert_eq!(rig.pass(mins(9)).await.settled_us, 0, "so it is at a start");
        assert_eq!(rig.pass(mins(1)).await.settled_us, START_US);
        let look = rig.pass(mins(60)).await;
        assert_eq!(look.settled_us, look.now_us - micros(mins(10)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_a_year_ahead_for_a_while_settles_nothing() {
        for ahead in [Duration::from_secs(20), mins(9)] {
            let rig = Rig::new();
            let before = rig.pass(mins(30)).await;
            rig.manual.advance(YEAR);
            let during = rig.pass(ahead).await;
            assert!(during.settled_us <= before.now_us, "{ahead:?}");
            rig.manual.set(during.now_us - micros(YEAR));
            let after = rig.pass(mins(30)).await;
            assert_eq!(after.settled_us, after.now_us - micros(mins(10)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_stays_a_year_ahead_is_settled_after_ten_minutes() {
        let rig = Rig::new();
        rig.pass(mins(30)).await;
        rig.manual.advance(YEAR);
        let jumped = rig.settled.look().now_us;
        assert!(rig.pass(mins(9)).await.settled_us < jumped);
        assert!(rig.pass(mins(2)).await.settled_us >= jumped);
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_looked_at_is_not_settled_by_two_looks_in_two_jumps() {
        let rig = Rig::new();
        let before = rig.pass(mins(30)).await;
        // Nobody looks while the clock is right again.
        for _ in 0..2 {
            tokio::time::advance(mins(20)).await;
            rig.manual.set(before.now_us + micros(YEAR));
            assert!(rig.settled.look().settled_us <= before.now_us + micros(mins(20)));
            rig.manual.set(before.now_us + micros(mins(20)));
            rig.settled.look();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_slept_has_ten_minutes_before_anything_ends() {
        let rig = Rig::new();
        let before = rig.pass(mins(30)).await;
        // Timers stand still in that time.
        rig.manual.advance(Duration::from_secs(3 * DAY_SECS));
        assert!(rig.pass(mins(9)).await.settled_us <= before.now_us);
        assert!(rig.pass(mins(2)).await.settled_us > before.now_us + micros(mins(60)));
    }

    #[tokio::test(start_paused = true)]
    async fn looks_take_no_room_however_many_there_are() {
        let rig = Rig::new();
        for _ in 0..10_000 {
            rig.settled.look();
            tokio::time::advance(Duration::from_millis(500)).await;
        }
        assert!(lock(&rig.settled.looks).0.len() <= 62);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_is_too_long_lasts_as_long_as_it_was_granted_while_the_process_runs() {
        let day_us = micros(Duration::from_secs(DAY_SECS));
        let until_us = START_US + micros(YEAR) + day_us;
        let mut watch = LeaseWatch::default();
        let mut now_us = START_US;
        assert_eq!(watch.end_us(until_us, DAY_SECS, now_us), now_us + day_us);
        tokio::time::advance(mins(60)).await;
        now_us += micros(mins(60));
        assert_eq!(watch.end_us(until_us, DAY_SECS, now_us), START_US + day_us);
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_behind_for_a_while_makes_no_lease_shorter() {
        let day_us = micros(Duration::from_secs(DAY_SECS));
        let until_us = START_US + day_us;
        let mut watch = LeaseWatch::default();
        watch.end_us(until_us, DAY_SECS, START_US - micros(YEAR));
        tokio::time::advance(mins(60)).await;
        let now_us = START_US + micros(mins(60));
        assert_eq!(watch.end_us(until_us, DAY_SECS, now_us), until_us);
    }
}
