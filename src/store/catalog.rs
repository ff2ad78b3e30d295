//! Registered feeds, as a store keeps them: names, numbers and counts; not the configuration that
//! they come from.

use super::{StoreError, StoreFuture};
use crate::feed::record::{FeedNo, FeedRecord};

/// The registered feeds.
pub trait CatalogStore: Send + Sync {
    /// The feeds of these names, with their namespaces: those that are new are made, and those that
    /// hold no items take the namespace. Of the others it must be the one stored. All or none.
    fn register_all(&self, feeds: Vec<(String, String)>) -> StoreFuture<'_, Vec<FeedRecord>>;

    /// The same for one feed.
    fn register<'a>(&'a self, name: &'a str, namespace: &'a str) -> StoreFuture<'a, FeedRecord> {
        Box::pin(async move {
            let mut records = self
                .register_all(vec![(name.to_owned(), namespace.to_owned())])
                .await?;
            Ok(records.remove(0))
        })
    }

    /// The feed of this name; `None` if it was never registered, or was forgotten.
    fn feed_named<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<FeedRecord>>;

    /// The feeds after this number, by number, at most so many.
    fn feeds(&self, after: Option<FeedNo>, max: usize) -> StoreFuture<'_, Vec<FeedRecord>>;

    /// The names after this one with their numbers, by name, at most so many; nothing else is read
    /// of the feeds.
    fn feed_names(
        &self,
        after: Option<String>,
        max: usize,
    ) -> StoreFuture<'_, Vec<(String, FeedNo)>>;

    /// Removes a feed with everything that is kept of it, its subscriptions included. Its number is
    /// not given again. True when there was one.
    fn forget(&self, feed: FeedNo) -> StoreFuture<'_, bool>;

    /// The totals of the store, without reading what is counted.
    fn counts(&self) -> StoreFuture<'_, StoreCounts>;
}

/// Totals of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreCounts {
    /// Registered feeds.
    pub feeds: u64,
    /// Items of all feeds, tombstones included.
    pub items: u64,
    /// Subscriptions, verified or not.
    pub subscriptions: u64,
}

/// The namespace of a feed is fixed with its first item: with another one every id would change.
pub fn check_namespace(record: &FeedRecord, given: &str) -> Result<(), StoreError> {
    if record.ids.namespace == given || record.items.total == 0 {
        return Ok(());
    }
    Err(StoreError::Namespace {
        feed: record.name.clone(),
        stored: record.ids.namespace.clone(),
        given: given.to_owned(),
    })
}
