//! The pace of what holds a place: how far it is behind, and from when on its place may be taken
//! away; not who takes it.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

/// Bytes of the body of a request that are no trickle, in the time for which nothing may come.
pub(super) const LEAST_BYTES: u64 = 1000;
/// Bytes a second of a client that keeps pace. One of half the pace is half a second further behind
/// after each second, so that no trickle stays among the fastest, whatever it sends.
const PACE_BYTES_PER_SEC: u64 = 8000;
/// Microseconds of the pace for each byte.
const BYTE_US: u64 = SEC_US / PACE_BYTES_PER_SEC;
/// Time that a client is behind at most once it moves on: a WebSocket that was silent for an hour
/// is not the slowest of all for the next one.
const BEHIND_MAX_US: u64 = 60 * SEC_US;
/// Time that a client may be behind before its place may be taken away.
const BEHIND_LEAST_US: u64 = 2 * SEC_US;
/// Time that the origin has for an answer before the place may be taken away: were it shorter, no
/// request would be answered by an origin that has more than it can do.
const ORIGIN_LEAST_US: u64 = 30 * SEC_US;
const SEC_US: u64 = 1_000_000;

/// The pace of what holds a place. Moments are microseconds since the site began.
#[derive(Debug)]
pub(super) struct PermitProgressTimes {
    /// The moment to which it would have come at full pace.
    paced_us: AtomicU64,
    /// True once the origin has the whole request.
    is_sent: AtomicBool,
    /// True once its answer has begun: what still comes of its request is a stream.
    is_answered: AtomicBool,
}

impl PermitProgressTimes {
    /// The pace of a request whose body is on its way.
    pub(super) fn new(now: Duration) -> Self {
        Self {
            paced_us: AtomicU64::new(micros(now)),
            is_sent: AtomicBool::new(false),
            is_answered: AtomicBool::new(false),
        }
    }

    /// Counts bytes that moved either way.
    pub(super) fn moved(&self, bytes: usize, now: Duration) {
        let now_us = micros(now);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let gained_us = bytes.saturating_mul(BYTE_US);
        let moved = |paced_us: u64| {
            let paced_us = paced_us.max(now_us.saturating_sub(BEHIND_MAX_US));
            Some(paced_us.saturating_add(gained_us).min(now_us))
        };
        // It never fails: there is always a new moment.
        let _ = self
            .paced_us
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, moved);
    }

    /// Notes that the origin has the whole request: what is waited for is the origin's.
    pub(super) fn sent(&self, now: Duration) {
        if !self.is_sent.swap(true, Ordering::Relaxed) {
            self.paced_us.store(micros(now), Ordering::Relaxed);
        }
    }

    /// Notes that its answer has begun.
    pub(super) fn answered(&self, now: Duration) {
        if !self.is_answered.swap(true, Ordering::Relaxed) {
            self.paced_us.store(micros(now), Ordering::Relaxed);
        }
    }

    /// True once its answer has begun.
    pub(super) fn is_answered(&self) -> bool {
        self.is_answered.load(Ordering::Relaxed)
    }

    // Decides: Which request at an origin is the slowest?
    /// The moment from which on its place may be taken away when none is free: the slowest one's
    /// comes first.
    pub(super) fn due_us(&self) -> u64 {
        let waits_for_origin = self.is_sent.load(Ordering::Relaxed) && !self.is_answered();
        let least_us = if waits_for_origin {
            ORIGIN_LEAST_US
        } else {
            BEHIND_LEAST_US
        };
        self.paced_us.load(Ordering::Relaxed) + least_us
    }
}

/// The least time after which a place that is not due, or not yet taken, can be due.
pub(super) const DUE_LEAST_US: u64 = BEHIND_LEAST_US;

/// A moment as it is counted.
pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    /// Seconds that a client of so many bytes a second is behind after a minute.
    fn behind(bytes_per_sec: usize) -> f64 {
        let moves = PermitProgressTimes::new(secs(0));
        moves.answered(secs(0));
        for second in 1..=60 {
            moves.moved(bytes_per_sec, secs(second));
        }
        let due_us = moves.due_us() - BEHIND_LEAST_US;
        (micros(secs(60)) - due_us) as f64 / 1e6
    }

    #[test]
    fn a_slower_client_is_further_behind_and_there_is_no_threshold() {
        let paces = [1, 34, 1000, 4000, 7000, 8000, 100_000].map(behind);
        assert!(paces.is_sorted_by(|one, next| one >= next), "{paces:?}");
        assert!(paces[1] > 59.0, "34 bytes a second: {paces:?}");
        assert_eq!((paces[3], paces[5], paces[6]), (30.0, 0.0, 0.0));
    }

    #[test]
    fn what_is_sent_ahead_is_no_credit_and_silence_is_forgiven_after_a_minute() {
        let moves = PermitProgressTimes::new(secs(0));
        moves.moved(1_000_000, secs(1));
        assert_eq!(moves.due_us(), micros(secs(3)));
        moves.moved(8, secs(4000));
        assert_eq!(moves.due_us(), micros(secs(3942)) + 1000);
        moves.moved(480_000, secs(4000));
        assert_eq!(moves.due_us(), micros(secs(4002)));
    }

    #[test]
    fn a_request_that_waits_for_its_origin_has_half_a_minute() {
        let moves = PermitProgressTimes::new(secs(0));
        moves.sent(secs(10));
        moves.sent(secs(20));
        assert_eq!(moves.due_us(), micros(secs(40)));
        moves.answered(secs(30));
        assert_eq!(moves.due_us(), micros(secs(32)));
    }
}
