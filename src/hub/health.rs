//! The health of a destination, from the answers to requests alone: brisk, in trouble, or closed
//! for a while because nobody answers; not how many requests are under way.

use std::time::Duration;
use tokio::time::Instant;

/// A request without an answer after so long is slow, and so is its destination.
pub(super) const SLOW_AFTER: Duration = Duration::from_secs(2);
/// Brisk answers in a row after which a slow destination counts as brisk again.
const BRISK_AGAIN: u8 = 3;
/// Requests in a row without an answer after which a destination is closed.
const CLOSE_AFTER: u32 = 5;
/// Seconds for which it is closed first; they double up to [`CLOSED_MAX_SECS`].
const CLOSED_SECS: u64 = 30;
const CLOSED_MAX_SECS: u64 = 600;
/// Seconds after which others may try again where one request looks whether a closed destination
/// answers now.
const PROBED_SECS: u64 = 10;

/// The end of a request to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It answered, with whatever status.
    Answered,
    /// It answered, but slowly.
    AnsweredSlowly,
    /// It did not answer.
    Silent,
}

/// Health of a destination.
#[derive(Clone, Debug, Default)]
pub(super) struct DestinationHealth {
    /// Requests in a row without an answer.
    silent: u32,
    /// Brisk answers that are missing until it counts as brisk.
    slow: u8,
    closed: Option<Closed>,
}

/// A closed destination.
#[derive(Clone, Copy, Debug)]
struct Closed {
    /// Time from which on one request may look whether it answers.
    until: Instant,
    /// True once one does so.
    is_probed: bool,
}

impl DestinationHealth {
    /// True for a destination that is as good as an unknown one.
    pub(super) fn is_well(&self) -> bool {
        self.silent == 0 && self.slow == 0
    }

    /// Lets a request pass, or says how long the destination stays closed. The first one after that
    /// time is a probe.
    pub(super) fn pass(&mut self, now: Instant) -> Result<(), Duration> {
        match &mut self.closed {
            None => Ok(()),
            Some(closed) if closed.until > now => Err(closed.until - now),
            Some(closed) => {
                *closed = Closed {
                    until: now + Duration::from_secs(PROBED_SECS),
                    is_probed: true,
                };
                Ok(())
            }
        }
    }

    /// Lets the next request look now whether a closed destination answers.
    pub(super) fn let_pass(&mut self, now: Instant) {
        if let Some(closed) = &mut self.closed {
            closed.until = closed.until.min(now);
        }
    }

    /// True while nobody but a probe may pass.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// A request is slow, whatever will come of it.
    pub(super) fn slowed(&mut self) {
        self.slow = BRISK_AGAIN;
    }

    // Decides: When is a callback host slow, or left alone?
    /// Takes in the end of a request.
    pub(super) fn ended(&mut self, ending: Ending, now: Instant) {
        match ending {
            Ending::Answered => {
                *self = Self {
                    slow: self.slow.saturating_sub(1),
                    ..Self::default()
                }
            }
            Ending::AnsweredSlowly => {
                *self = Self {
                    slow: BRISK_AGAIN,
                    ..Self::default()
                }
            }
            Ending::Silent => {
                self.silent = self.silent.saturating_add(1);
                // Those that were under way when it was closed say nothing new.
                let says_more = self.closed.is_none_or(|closed| closed.is_probed);
                if let Some(doublings) = self.silent.checked_sub(CLOSE_AFTER).filter(|_| says_more)
                {
                    let secs = CLOSED_SECS
                        .saturating_mul(1 << doublings.min(16))
                        .min(CLOSED_MAX_SECS);
                    self.closed = Some(Closed {
                        until: now + Duration::from_secs(secs),
                        is_probed: false,
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_never_answers_is_closed_and_probed_ever_more_rarely() {
        let mut health = DestinationHealth::default();
        for _ in 0..CLOSE_AFTER {
            assert_eq!(health.pass(Instant::now()), Ok(()));
            health.ended(Ending::Silent, Instant::now());
        }
        for secs in [30, 60, 120, 240, 480, 600, 600] {
            assert_eq!(health.pass(Instant::now()), Err(Duration::from_secs(secs)));
            // One that was under way for longer ends, too, and says nothing new.
            let before = health.silent;
            health.ended(Ending::Silent, Instant::now());
            health.silent = before;
            tokio::time::advance(Duration::from_secs(secs)).await;
            assert_eq!(health.pass(Instant::now()), Ok(()), "a probe");
            assert_eq!(
                health.pass(Instant::now()),
                Err(Duration::from_secs(PROBED_SECS)),
                "one probe"
            );
            health.ended(Ending::Silent, Instant::now());
        }
        tokio::time::advance(Duration::from_secs(CLOSED_MAX_SECS)).await;
        assert_eq!(health.pass(Instant::now()), Ok(()));
        health.ended(Ending::Answered, Instant::now());
        assert!(health.is_well() && !health.is_closed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_answer_is_trouble_until_three_were_brisk_and_closes_nothing() {
        let mut health = DestinationHealth::default();
        for _ in 0..100 {
            health.ended(Ending::AnsweredSlowly, Instant::now());
            assert!(!health.is_well() && !health.is_closed());
        }
        for _ in 0..2 {
            health.ended(Ending::Answered, Instant::now());
            assert!(!health.is_well());
        }
        health.ended(Ending::Answered, Instant::now());
        assert!(health.is_well());
    }
}
