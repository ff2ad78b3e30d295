//! Where the time comes from: the system, or a test's hand; not what is done with it.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    /// Microseconds since 1970-01-01T00:00:00Z.
    fn now_us(&self) -> u64;
}

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl Clock for System {
    fn now_us(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }
}

/// A clock that stands still until it is set.
#[derive(Debug, Default)]
pub struct Manual(AtomicU64);

impl Manual {
    /// A clock that shows this moment, in microseconds since 1970.
    pub const fn at(us: u64) -> Self {
        Self(AtomicU64::new(us))
    }

    /// Sets it, backwards too.
    pub fn set(&self, us: u64) {
        self.0.store(us, Ordering::Relaxed);
    }

    /// Moves it on.
    pub fn advance(&self, us: u64) {
        self.0.fetch_add(us, Ordering::Relaxed);
    }
}

impl Clock for Manual {
    fn now_us(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A clock that moves exactly as tokio's timers do, so that dates and sleeps agree while tokio's time is paused.
#[derive(Clone, Copy, Debug)]
pub struct Paused {
    base_us: u64,
    since: tokio::time::Instant,
}

impl Paused {
    /// A clock that shows this moment now, in microseconds since 1970, and follows tokio's clock from here on.
    pub fn from(base_us: u64) -> Self {
        Self { base_us, since: tokio::time::Instant::now() }
    }
}

impl Clock for Paused {
    fn now_us(&self) -> u64 {
        let elapsed = u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.base_us.saturating_add(elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_paused_clock_follows_tokios_timers() {
        let clock = Paused::from(1_000_000);
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(clock.now_us(), 3_601_000_000);
    }
}
