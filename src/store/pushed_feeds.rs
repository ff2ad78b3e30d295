//! Push from upstream as a store keeps it: a row for each feed that names a service of push; not what
//! is asked there.

use super::StoreFuture;
use crate::feed::{pushed_feed::PushedFeed, record::FeedNo};

/// Push from upstream.
pub trait PushedFeeds: Send + Sync {
    /// Keeps the row of a feed, in the place of the one before; `None` removes it. A row may come
    /// after its feed was forgotten: it is passed over.
    fn keep_pushed_feed(&self, feed: FeedNo, row: Option<PushedFeed>) -> StoreFuture<'_, ()>;

    /// The rows of the feeds after this number, by number, at most so many. One that is damaged is
    /// left out, and told.
    fn pushed_feeds(
        &self,
        after: Option<FeedNo>,
        max: usize,
    ) -> StoreFuture<'_, Vec<(FeedNo, PushedFeed)>>;
}
