//! A budget of bytes: memory that strangers can make us fill is leased before it is filled, and
//! given back when it is free again; not what the bytes are.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes that may be leased at once.
#[derive(Debug)]
pub struct ByteBudget {
    free: Arc<Semaphore>,
    units: u32,
    waiting: Arc<AtomicUsize>,
}

/// Some bytes of a budget; dropping it gives them back.
#[derive(Debug)]
pub struct ByteLease {
    _units: OwnedSemaphorePermit,
}

/// Bytes that are leased as one: a semaphore counts to 2^32 only.
const UNIT_BYTES: usize = 1024;

impl ByteBudget {
    /// A budget of so many bytes, none of them leased.
    pub fn new(bytes_max: usize) -> Self {
        let units = units(bytes_max).min(u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX));
        let free = Arc::new(Semaphore::new(
            usize::try_from(units).unwrap_or(Semaphore::MAX_PERMITS),
        ));
        Self {
            free,
            units,
            waiting: Arc::default(),
        }
    }

    /// Another budget, so that who needs little need not wait for who needs much; while either is
    /// short, both are.
    pub fn beside(&self, bytes_max: usize) -> Self {
        Self {
            waiting: Arc::clone(&self.waiting),
            ..Self::new(bytes_max)
        }
    }

    /// A lease of so many bytes as soon as they are free, first come, first served; `None` if they
    /// are not within that time. More than the whole budget is leased as the whole.
    pub async fn lease(&self, bytes: usize, within: Duration) -> Option<ByteLease> {
        if let Some(lease) = self.try_lease(bytes) {
            return Some(lease);
        }
        let _waiting = Waiting::new(&self.waiting);
        let leased = Arc::clone(&self.free).acquire_many_owned(self.units_of(bytes));
        let units = tokio::time::timeout(within, leased).await.ok()?.ok()?;
        Some(ByteLease { _units: units })
    }

    /// A lease of so many bytes if they are free now and nobody waits for them.
    pub fn try_lease(&self, bytes: usize) -> Option<ByteLease> {
        let units = Arc::clone(&self.free)
            .try_acquire_many_owned(self.units_of(bytes))
            .ok()?;
        Some(ByteLease { _units: units })
    }

    /// True while somebody waits for bytes that others hold, here or in a budget beside this.
    pub fn is_short(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    fn units_of(&self, bytes: usize) -> u32 {
        units(bytes).min(self.units)
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

/// Counts one who waits, also when it stops waiting early.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn bytes_are_leased_once_and_given_back_with_the_lease() {
        let budget = ByteBudget::new(10 * UNIT_BYTES);
        let most = budget.try_lease(9 * UNIT_BYTES).unwrap();
        assert!(budget.try_lease(2 * UNIT_BYTES).is_none() && !budget.is_short());
        let wait = Duration::from_secs(10);
        {
            let late = budget.lease(2 * UNIT_BYTES, wait);
            tokio::pin!(late);
            assert!(futures_util::poll!(&mut late).is_pending() && budget.is_short());
            drop(most);
            assert!(late.await.is_some());
        }
        assert!(!budget.is_short());
        let all = budget.lease(usize::MAX, wait).await;
        assert!(all.is_some() && budget.lease(1, wait).await.is_none() && !budget.is_short());
        let other = budget.beside(UNIT_BYTES);
        assert!(other.try_lease(1).is_some());
        let late = budget.lease(1, wait);
        tokio::pin!(late);
        assert!(futures_util::poll!(&mut late).is_pending() && other.is_short());
    }
}
