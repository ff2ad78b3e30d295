//! Checks that the clock can be believed when a change is about to get its T; not the clock.

use super::StoreError;
use crate::feed::stamp::Stamp;
use std::time::Duration;

/// 2026-01-01, the year in which this was first built: no honest clock shows an earlier time. A
/// constant, so that two builds of one source are the same.
const BUILT_AT: Stamp = Stamp::from_secs(1_767_225_600);

/// 9999-12-31T23:59:59Z: RFC 3339 writes no later year, and a cursor no later T.
const LATEST: Stamp = Stamp::from_secs(253_402_300_799);

/// The most that the clock may run ahead of the last time recorded: a machine that slept for a year
/// is still believed.
const AHEAD_SECS_MAX: u64 = 400 * 24 * 60 * 60;

/// Microseconds by which a time that was recorded may lie after now before anybody is told.
const AHEAD_US_TOLD: u64 = 60 * 1_000_000;

/// The last time recorded. T never goes back, so a clock that jumps into the future would spoil it
/// for ever: changes stop until an operator takes the clock for right. Compared with the last write
/// and not with the last T, since old blogs are silent for years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClockGuard {
    /// The latest time at which something was written; `None` in a fresh store.
    pub(super) recorded: Option<Stamp>,
    /// The earliest time that was accepted although it lies before [`BUILT_AT`].
    pub(super) accepted: Option<Stamp>,
}

impl ClockGuard {
    // Decides: May the clock be right?
    /// Refuses a clock that jumped ahead, or stands before this program was built.
    pub(super) fn check(&self, now: Stamp) -> Result<(), StoreError> {
        let earliest = self
            .accepted
            .map_or(BUILT_AT, |accepted| accepted.min(BUILT_AT));
        let latest = self
            .recorded
            .map_or(LATEST, |recorded| recorded.plus_secs(AHEAD_SECS_MAX))
            .min(LATEST);
        if (earliest..=latest).contains(&now) {
            return Ok(());
        }
        let recorded = self.recorded.unwrap_or(BUILT_AT);
        Err(StoreError::Clock {
            now: now.rfc3339(),
            recorded: recorded.rfc3339(),
        })
    }

    /// Time by which the last time recorded lies after now, where that is more than clocks differ
    /// by.
    pub(super) fn is_ahead_by(&self, now: Stamp) -> Option<Duration> {
        let by = self.recorded?.micros().saturating_sub(now.micros());
        if by <= AHEAD_US_TOLD {
            return None;
        }
        Some(Duration::from_micros(by))
    }

    /// Remembers that something was written. A time that is not believed is not remembered, or it
    /// would vouch for itself; nor is one that lies behind, or mending a slow clock would look like
    /// a jump.
    pub(super) fn record(&mut self, now: Stamp) {
        if self.check(now).is_ok() {
            self.recorded = self.recorded.max(Some(now));
        }
    }

    /// Takes the clock for right, whatever it says.
    pub(super) fn accept(&mut self, now: Stamp) {
        self.recorded = Some(now);
        if now < BUILT_AT {
            self.accepted = self
                .accepted
                .map_or(Some(now), |accepted| Some(accepted.min(now)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_SECS: u64 = 24 * 60 * 60;

    #[test]
    fn a_clock_may_sleep_for_a_year_but_not_jump() {
        let start = BUILT_AT.plus_secs(DAY_SECS);
        let mut guard = ClockGuard::default();
        assert!(
            guard.check(start.plus_secs(5000 * DAY_SECS)).is_ok(),
            "a fresh store knows no time"
        );
        guard.record(start);
        assert!(guard.check(start.plus_secs(400 * DAY_SECS)).is_ok());
        let jumped = start.plus_secs(400 * DAY_SECS + 1);
        assert!(matches!(guard.check(jumped), Err(StoreError::Clock { .. })));
        guard.record(jumped);
        assert!(
            guard.check(jumped).is_err(),
            "writing at a wrong time does not make it right"
        );
        guard.accept(jumped);
        assert!(guard.check(jumped).is_ok());
    }

    #[test]
    fn going_back_a_little_is_no_jump_and_does_not_move_the_mark() {
        let start = BUILT_AT.plus_secs(500 * DAY_SECS);
        let mut guard = ClockGuard::default();
        guard.record(start);
        guard.record(BUILT_AT);
        assert!(guard.check(start).is_ok());
        assert_eq!(guard.recorded, Some(start));
        assert_eq!(guard.is_ahead_by(start), None);
        let behind = Stamp::from_secs(start.secs() - 3600);
        assert_eq!(guard.is_ahead_by(behind), Some(Duration::from_secs(3600)));
    }

    #[test]
    fn before_the_build_date_only_what_was_accepted_counts() {
        let mut guard = ClockGuard::default();
        let early = Stamp::from_secs(1_000_000_000);
        assert!(matches!(guard.check(early), Err(StoreError::Clock { .. })));
        guard.accept(early);
        assert!(guard.check(early.next()).is_ok());
        assert!(guard.check(Stamp::from_secs(999_999_999)).is_err());
    }

    #[test]
    fn no_time_that_a_cursor_cannot_write_is_ever_right() {
        let mut guard = ClockGuard::default();
        guard.accept(Stamp::MAX);
        assert!(guard.check(Stamp::MAX).is_err());
    }
}
