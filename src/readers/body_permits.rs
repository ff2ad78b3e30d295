//! Room for bodies: the memory that they may fill until they are read, and the places at which they
//! are made; not what they say.

use super::ReadError;
use crate::byte_budget::{ByteBudget, ByteLease};
use bytes::Bytes;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

/// Room for ordinary bodies, and beside it for large ones, for which no ordinary one waits.
pub(super) struct BodyPermits {
    pub(super) ordinary: Arc<ByteBudget>,
    pub(super) large: ByteBudget,
    places: Semaphore,
    pub(super) large_places: Semaphore,
    scan_places: Semaphore,
}

impl BodyPermits {
    // Decides: Is there memory for an answer?
    /// Room for so many bytes of answers, beside those that are kept.
    pub(super) fn new(answers_bytes_max: usize, kept_bytes_max: u64) -> Self {
        let ordinary = answers_bytes_max / ORDINARY_SHARE;
        let kept = usize::try_from(kept_bytes_max).unwrap_or(usize::MAX);
        let budget = Arc::new(ByteBudget::new(ordinary.saturating_add(kept)));
        let large = budget.beside(answers_bytes_max - ordinary);
        Self {
            ordinary: budget,
            large,
            places: Semaphore::new(renders_max()),
            large_places: Semaphore::new(RENDERS_LARGE_MAX),
            scan_places: Semaphore::new(SCANS_MAX),
        }
    }

    /// One of the places.
    pub(super) async fn place(&self) -> Result<SemaphorePermit<'_>, ReadError> {
        self.places.acquire().await.map_err(|_| ReadError::Busy)
    }

    /// One of the places for pages with terms, if there is one in time. It is taken before one of
    /// the others, so that those who wait for it keep nobody waiting.
    pub(super) async fn scan_place(&self) -> Result<SemaphorePermit<'_>, ReadError> {
        in_time(&self.scan_places).await
    }

    /// One of the places for large pages, if there is one in time.
    pub(super) async fn large_place(&self) -> Result<SemaphorePermit<'_>, ReadError> {
        in_time(&self.large_places).await
    }
}

async fn in_time(places: &Semaphore) -> Result<SemaphorePermit<'_>, ReadError> {
    match timeout(BUSY_WAIT, places.acquire()).await {
        Ok(Ok(place)) => Ok(place),
        _ => Err(ReadError::Busy),
    }
}

/// Bytes of memory that a body is taken to need: as it is, and compressed.
pub(super) fn weight(bytes: usize) -> usize {
    bytes.saturating_mul(2)
}

/// Pages that are made at once at most: enough for every processor while some wait for the disk.
fn renders_max() -> usize {
    std::thread::available_parallelism().map_or(RENDERS_MIN, |cores| {
        (cores.get() * 2).clamp(RENDERS_MIN, RENDERS_MAX)
    })
}

const RENDERS_MIN: usize = 4;
const RENDERS_MAX: usize = 16;

/// Large pages that are made at once at most: fewer than all, so that they never take every place.
const RENDERS_LARGE_MAX: usize = 2;
/// Pages with terms that are made at once at most: each reads up to ten thousand items.
const SCANS_MAX: usize = 2;
/// Items from which on a page is taken for a large one before it is made.
pub(super) const LARGE_ITEMS: usize = 100;
/// Bytes from which on a body is a large one.
pub(super) const LARGE_BYTES: usize = 1 << 20;
/// Part of the memory for answers that large bodies leave to others.
const ORDINARY_SHARE: usize = 4;

/// Time for which a body waits at most for memory that other answers hold.
pub(super) const BUSY_WAIT: Duration = Duration::from_secs(10);
/// Pause between two tidyings of the cache while a body waits for memory.
pub(super) const TIDY_EVERY: Duration = Duration::from_millis(250);

/// Bytes that hold a part of the budget until nobody has them any more.
pub(super) fn held(bytes: Bytes, lease: Option<Arc<ByteLease>>) -> Bytes {
    Bytes::from_owner(HeldBody {
        bytes,
        _lease: lease,
    })
}

struct HeldBody {
    bytes: Bytes,
    _lease: Option<Arc<ByteLease>>,
}

impl AsRef<[u8]> for HeldBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
