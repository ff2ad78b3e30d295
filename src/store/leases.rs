//! Leases: which process drives a feed, so that several may share one store; not how a process
//! chooses its feeds.

use super::{FeedLease, StoreError, StoreFuture};
use crate::feed::{record::FeedNo, stamp::Stamp};

/// Leases of feeds. At most one process drives a feed: it polls it, walks its archives and commits
/// to it.
///
/// A lease ends by itself, by the store's clock. Taking it raises its epoch, and a commit that
/// carries an older epoch is refused as [`StoreError::Fenced`], however late it arrives. A commit
/// without an epoch is never refused for it: a store of one process needs no leases.
pub trait Leases: Send + Sync {
    /// Takes the lease of a feed for so many seconds, in a new epoch. [`StoreError::Leased`] while
    /// another owner holds it; its own owner may take it again, which fences what it sent before.
    fn take_lease<'a>(
        &'a self,
        feed: FeedNo,
        owner: &'a str,
        secs: u64,
    ) -> StoreFuture<'a, FeedLease>;

    /// Prolongs a lease to so many seconds from now, in its epoch; [`StoreError::Fenced`] when a
    /// later epoch has begun.
    fn renew_lease(&self, feed: FeedNo, epoch: u64, secs: u64) -> StoreFuture<'_, FeedLease>;

    /// Ends a lease at once, so that others need not wait for its end; [`StoreError::Fenced`] when
    /// a later epoch has begun.
    fn release_lease(&self, feed: FeedNo, epoch: u64) -> StoreFuture<'_, ()>;

    /// The last lease of a feed, in force or over; `None` before the first.
    fn lease(&self, feed: FeedNo) -> StoreFuture<'_, Option<FeedLease>>;
}

impl FeedLease {
    /// The lease that an owner gets on top of the last one.
    pub(super) fn taken(
        last: Option<Self>,
        feed: FeedNo,
        owner: &str,
        until: Stamp,
        now: Stamp,
    ) -> Result<Self, StoreError> {
        let epoch = last.as_ref().map_or(1, |last| last.epoch.saturating_add(1));
        match last {
            Some(lease) if lease.until > now && lease.owner != owner => {
                Err(StoreError::Leased { feed, lease })
            }
            _ => Ok(Self {
                owner: owner.to_owned(),
                epoch,
                until,
            }),
        }
    }

    /// The same lease with another end. A lease that is over may be prolonged as long as nobody has
    /// taken it since.
    pub(super) fn ending(last: Option<Self>, epoch: u64, until: Stamp) -> Result<Self, StoreError> {
        check_epoch(last.as_ref(), Some(epoch))?;
        last.map(|lease| Self { until, ..lease })
            .ok_or(StoreError::Fenced { epoch: 0 })
    }
}

/// Refuses a writer whose epoch is over.
pub(super) fn check_epoch(last: Option<&FeedLease>, epoch: Option<u64>) -> Result<(), StoreError> {
    let in_force = last.map_or(0, |lease| lease.epoch);
    match epoch {
        Some(epoch) if epoch != in_force => Err(StoreError::Fenced { epoch: in_force }),
        _ => Ok(()),
    }
}
