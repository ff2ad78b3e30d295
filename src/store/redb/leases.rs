//! Leases of feeds in the file; which of them may be taken is decided in
//! [`leases`](crate::store::leases).

use super::{
    rows::known_feed,
    tables::{LEASES, TableEdit as _, TableSource, feed_key},
    writer::Writing,
};
use crate::{
    feed::record::FeedNo,
    store::{
        FeedLease, StoreError,
        stored::{decode, encode},
    },
};

/// The last lease of a feed.
pub(super) fn lease(
    source: &impl TableSource,
    feed: FeedNo,
) -> Result<Option<FeedLease>, StoreError> {
    known_feed(source, feed)?;
    let stored = source.table(LEASES)?;
    let stored = stored.get(&feed_key(feed))?;
    stored
        .map(|stored| decode("a lease", stored.value()))
        .transpose()
}

/// Takes the lease of a feed.
pub(super) fn take(
    writing: &mut Writing<'_>,
    feed: FeedNo,
    owner: &str,
    secs: u64,
) -> Result<FeedLease, StoreError> {
    let (last, now) = (lease(writing.look(), feed)?, writing.now);
    let lease = FeedLease::taken(last, feed, owner, now.plus_secs(secs), now)?;
    write(writing, feed, &lease)?;
    Ok(lease)
}

/// Gives the lease of a feed another end, so many seconds from now.
pub(super) fn prolong(
    writing: &mut Writing<'_>,
    feed: FeedNo,
    epoch: u64,
    secs: u64,
) -> Result<FeedLease, StoreError> {
    let until = writing.now.plus_secs(secs);
    let lease = FeedLease::ending(lease(writing.look(), feed)?, epoch, until)?;
    write(writing, feed, &lease)?;
    Ok(lease)
}

fn write(writing: &mut Writing<'_>, feed: FeedNo, lease: &FeedLease) -> Result<(), StoreError> {
    writing
        .change()
        .edit(LEASES)?
        .insert(&feed_key(feed), &encode(lease)?)?;
    Ok(())
}
