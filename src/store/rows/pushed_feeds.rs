//! Push from upstream.

use super::{
    Engine, Writing,
    open_table::{TableEdit as _, TableSource as _},
    reads::{self, by_feed},
    tables::{FEEDS, META, PUSHED, feed_key},
};
use crate::{
    feed::{pushed_feed::PushedFeed, record::FeedNo},
    store::{
        PushedFeeds, StoreError, StoreFuture,
        engine::{RowLock, RowReader},
        stored::decode,
    },
};

impl<E: Engine> PushedFeeds for E {
    fn keep_pushed_feed(&self, feed: FeedNo, row: Option<PushedFeed>) -> StoreFuture<'_, ()> {
        self.write(move |writing| keep(writing, feed, row.as_ref()))
    }

    fn pushed_feeds(
        &self,
        after: Option<FeedNo>,
        max: usize,
    ) -> StoreFuture<'_, Vec<(FeedNo, PushedFeed)>> {
        self.read(move |snapshot| rows(snapshot, after, max))
    }
}

/// Puts the row of a feed in the place of the one before.
fn keep(
    writing: &mut Writing<'_>,
    feed: FeedNo,
    row: Option<&PushedFeed>,
) -> Result<(), StoreError> {
    let key = feed_key(feed);
    writing.look().name(|| {
        vec![
            META.named(reads::LAST_FEED_KEY),
            FEEDS.named(&key).locked(RowLock::Keep),
            FEEDS.named(&key),
        ]
    })?;
    match reads::known_feed(writing.look(), feed) {
        Ok(()) => {}
        // A number that was given once is that of a feed that was forgotten.
        Err(StoreError::UnknownFeed(_)) if feed.0 <= reads::last_feed_number(writing.look())? => {
            return Ok(());
        }
        Err(error) => return Err(error),
    }
    let mut table = writing.change().edit(PUSHED)?;
    match row {
        Some(row) => table.write(&key, row),
        None => table.remove(&key),
    }
}

/// The rows of the feeds after a number.
fn rows(
    source: &dyn RowReader,
    after: Option<FeedNo>,
    max: usize,
) -> Result<Vec<(FeedNo, PushedFeed)>, StoreError> {
    let read = |feed, bytes: &[u8]| Ok((feed, decode("the hubs of a feed", bytes)?));
    let (rows, damaged) = by_feed(&source.table(PUSHED)?, after, max, read)?;
    for feed in damaged {
        tracing::error!(feed.no = %feed, "The row of the hubs of a feed is damaged; its hubs are asked as if they were new");
    }
    Ok(rows)
}
