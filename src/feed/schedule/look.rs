//! Time of a look at the origin of an old feed, which a reader at its old address causes; not the
//! poll, nor who waits for it.

use super::PollState;
use crate::stamp::Stamp;

impl PollState {
    // Decides: When does a reader of an old address have its origin asked?
    /// Time from which on a reader may have the origin asked: when the copy is `fresh_secs` old,
    /// twice as long after each failure in a row, but not later than the next poll. What the
    /// publisher asked for, 410 and a quota put it off as they put off a hint.
    pub fn look_at(&self, fresh_secs: u64, host_not_before: Stamp, now: Stamp) -> Stamp {
        // A moment that is still to come is of a clock that went back since.
        let looked = self.timetable.polled_at.filter(|at| *at <= now);
        let failures = self.health.failures.saturating_sub(1);
        let wait_secs = fresh_secs.saturating_mul(1_u64.checked_shl(failures).unwrap_or(u64::MAX));
        let aged = looked.map_or(Stamp::ZERO, |at| at.plus_secs(wait_secs));
        let own = if self.health.failures > 0 {
            aged.min(self.timetable.next_at)
        } else {
            aged
        };
        own.max(self.hinted_at(None, host_not_before, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{FaultKind, FaultNote, Health, Timetable};

    const NOW: Stamp = Stamp::from_secs(1_000_000);

    /// A feed that was polled so many seconds ago, is due in an hour, and has failed so often
    /// since.
    fn polled(secs_ago: u64, failures: u32) -> PollState {
        let polled_at = Some(Stamp::from_secs(1_000_000 - secs_ago));
        PollState {
            timetable: Timetable {
                polled_at,
                next_at: NOW.plus_secs(3600),
                ..Timetable::default()
            },
            health: Health {
                failures,
                ..Health::default()
            },
            ..PollState::default()
        }
    }

    #[test]
    fn a_copy_is_looked_after_when_it_is_old_and_ever_more_seldom_while_that_fails() {
        let check = |secs_ago, failures, expect_secs: u64| {
            let at = polled(secs_ago, failures).look_at(60, Stamp::ZERO, NOW);
            assert_eq!(
                at,
                NOW.plus_secs(expect_secs),
                "{secs_ago} s ago, {failures} failures"
            );
        };
        check(0, 0, 60);
        check(59, 0, 1);
        check(60, 0, 0);
        check(86_400, 0, 0);
        check(60, 1, 0);
        check(60, 2, 60);
        check(60, 3, 180);
        check(60, 7, 3600);
        check(60, 200, 3600);
    }

    #[test]
    fn what_the_publisher_asked_for_counts_and_so_do_410_and_a_quota() {
        let pause = NOW.plus_secs(500);
        assert_eq!(polled(600, 0).look_at(60, pause, NOW), pause);
        let gone = PollState {
            health: Health {
                gone_at: Some(NOW),
                ..Health::default()
            },
            ..polled(60, 1)
        };
        assert_eq!(
            gone.look_at(60, Stamp::ZERO, NOW),
            Stamp::from_secs(1_000_000 - 60 + 86_400)
        );
        let kind = FaultKind::Quota {
            bytes: 1,
            quota_bytes: 1,
        };
        let fault = Some(FaultNote { kind, since: NOW });
        let full = PollState {
            health: Health {
                fault,
                failures: 1,
                ..Health::default()
            },
            ..polled(60, 1)
        };
        assert!(full.look_at(60, Stamp::ZERO, NOW) > NOW.plus_secs(3600));
        let ahead = PollState {
            timetable: Timetable {
                polled_at: Some(NOW.plus_secs(9)),
                ..Timetable::default()
            },
            ..polled(0, 0)
        };
        assert_eq!(
            ahead.look_at(60, Stamp::ZERO, NOW),
            NOW,
            "the clock went back"
        );
    }
}
