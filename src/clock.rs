//! The time, as a value that can be replaced in tests. Not a timer: waiting is tokio's business.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

mod settled;

pub use settled::{ClockReading, LOOK_AGAIN, LeaseWatch, SettledClock};

/// A source of wall-clock time. It may step backwards or stand still; whoever needs strictly rising
/// values makes them from it.
pub trait Clock: Send + Sync + 'static {
    /// Microseconds since the Unix epoch, UTC.
    fn now_us(&self) -> u64;

    /// The same instant in the type that HTTP dates are compared with.
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_micros(self.now_us())
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now_us(&self) -> u64 {
        (**self).now_us()
    }
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Clock for System {
    fn now_us(&self) -> u64 {
        // A machine whose clock stands before 1970 reads as the epoch: the check against the last
        // recorded time then refuses to commit, which a panic here would only hide.
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, micros)
    }
}

/// Watches a clock for jumps, by timers that do not jump.
#[derive(Clone, Copy, Debug)]
pub struct JumpWatch {
    wall_us: u64,
    steady: tokio::time::Instant,
}

/// A clock that was set, or ran while the machine slept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jump {
    /// It shows so much more than has passed.
    Ahead(Duration),
    /// It shows so much less than has passed.
    Back(Duration),
}

impl JumpWatch {
    /// The smallest jump that counts: what is less does no harm, and happens when a clock is kept
    /// right.
    const JUMP_MIN: Duration = Duration::from_secs(60);

    /// Begins to watch a clock that shows this now.
    pub fn new(now_us: u64) -> Self {
        Self {
            wall_us: now_us,
            steady: tokio::time::Instant::now(),
        }
    }

    /// The jump since the last look, if there was one.
    pub fn look(&mut self, now_us: u64) -> Option<Jump> {
        let steady = tokio::time::Instant::now();
        let expected = self.wall_us.saturating_add(micros(steady - self.steady));
        (self.wall_us, self.steady) = (now_us, steady);
        let by = Duration::from_micros(now_us.abs_diff(expected));
        let jump = if now_us > expected {
            Jump::Ahead(by)
        } else {
            Jump::Back(by)
        };
        (by >= Self::JUMP_MIN).then_some(jump)
    }
}

/// A clock that stands still until it is told otherwise, backwards included.
#[derive(Debug, Default)]
pub struct Manual {
    us: AtomicU64,
}

impl Manual {
    /// A clock that reads `us` microseconds after the epoch.
    pub const fn at(us: u64) -> Self {
        Self {
            us: AtomicU64::new(us),
        }
    }

    /// From now on the clock reads `us`.
    pub fn set(&self, us: u64) {
        self.us.store(us, Ordering::SeqCst);
    }

    /// Moves the clock forward, saturating at the end of time.
    pub fn advance(&self, by: Duration) {
        let step = micros(by);
        // The closure always answers Some, so the update cannot fail.
        let _ = self
            .us
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |us| {
                Some(us.saturating_add(step))
            });
    }
}

impl Clock for Manual {
    fn now_us(&self) -> u64 {
        self.us.load(Ordering::SeqCst)
    }
}

/// A wall clock that moves exactly as tokio's timers do, so that under `tokio::time::pause` dates
/// and sleeps agree.
#[derive(Debug, Clone, Copy)]
pub struct Paused {
    base_us: u64,
    since: tokio::time::Instant,
}

impl Paused {
    /// A clock that reads `base_us` now, and from here on follows tokio's clock.
    pub fn from(base_us: u64) -> Self {
        Self {
            base_us,
            since: tokio::time::Instant::now(),
        }
    }
}

impl Clock for Paused {
    fn now_us(&self) -> u64 {
        self.base_us.saturating_add(micros(self.since.elapsed()))
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_reads_a_plausible_year() {
        const YEAR_2020_US: u64 = 1_577_836_800_000_000;
        assert!(System.now_us() > YEAR_2020_US);
    }

    #[test]
    fn a_manual_clock_moves_only_when_told_and_also_backwards() {
        let clock = Arc::new(Manual::at(5_000_000));
        assert_eq!(clock.now_us(), 5_000_000);
        clock.advance(Duration::from_millis(2));
        assert_eq!(clock.now_us(), 5_002_000);
        clock.set(1);
        assert_eq!(clock.now_us(), 1);
        assert_eq!(clock.now(), UNIX_EPOCH + Duration::from_micros(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_jump_in_either_direction_is_seen_once_and_the_course_of_time_is_none() {
        let clock = Manual::at(1_000_000_000_000);
        let mut watch = JumpWatch::new(clock.now_us());
        let hour = Duration::from_secs(3600);
        let pass = async |by: Duration| {
            tokio::time::advance(hour).await;
            clock.advance(by);
        };
        pass(hour + Duration::from_secs(59)).await;
        assert_eq!(watch.look(clock.now_us()), None);
        pass(3 * hour).await;
        assert_eq!(watch.look(clock.now_us()), Some(Jump::Ahead(2 * hour)));
        assert_eq!(watch.look(clock.now_us()), None);
        clock.set(clock.now_us() - 7_200_000_000);
        assert_eq!(watch.look(clock.now_us()), Some(Jump::Back(2 * hour)));
        assert_eq!(watch.look(clock.now_us()), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_paused_clock_follows_tokios_timers() {
        let clock = Paused::from(1_000_000);
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(clock.now_us(), 3_601_000_000);
    }
}
