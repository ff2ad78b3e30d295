//! Streams over what a store lists by pages, so that a caller never holds all of it; not the pages
//! of a feed.

use super::{HostPause, RegistryEntry, Store, StoreError, Subscription, subscriptions::Progress};
use crate::{
    auth::{AccessToken, User},
    feed::{
        archive::ArchiveWalk,
        pushed_feed::PushedFeed,
        record::{FeedNo, FeedRecord},
        schedule::PollState,
    },
};
use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};

/// Rows read at once.
const ROWS_MAX: usize = 256;

/// The rows of a kind, as they are read.
pub type Rows<'a, T> = BoxStream<'a, Result<T, StoreError>>;

/// Every feed, by number.
pub fn feeds(store: &dyn Store) -> Rows<'_, FeedRecord> {
    paged(|after| store.feeds(after, ROWS_MAX), |record| record.no)
}

/// Every name with its number, by name.
pub fn feed_names(store: &dyn Store) -> Rows<'_, (String, FeedNo)> {
    paged(
        |after| store.feed_names(after, ROWS_MAX),
        |(name, _)| name.clone(),
    )
}

/// Every poll state, by feed.
pub fn polls(store: &dyn Store) -> Rows<'_, (FeedNo, PollState)> {
    paged(|after| store.polls(after, ROWS_MAX), |(feed, _)| *feed)
}

/// Every walk, by feed, without what it has seen.
pub fn walks(store: &dyn Store) -> Rows<'_, (FeedNo, ArchiveWalk)> {
    paged(|after| store.walks(after, ROWS_MAX), |(feed, _)| *feed)
}

/// Every host pause, by host.
pub fn host_pauses(store: &dyn Store) -> Rows<'_, HostPause> {
    paged(
        |after| store.host_pauses(after, ROWS_MAX),
        |(host, _)| host.clone(),
    )
}

/// Every subscription, or those to one feed, by number.
pub fn subscriptions(
    store: &dyn Store,
    feed: Option<FeedNo>,
) -> Rows<'_, (Subscription, Progress)> {
    paged(
        move |after| store.subscriptions(feed, after, ROWS_MAX),
        |(subscription, _)| subscription.no,
    )
}

/// Every user, by number.
pub fn users(store: &dyn Store) -> Rows<'_, User> {
    paged(|after| store.users(after, ROWS_MAX), |user| user.no)
}

/// Every token, by number.
pub fn tokens(store: &dyn Store) -> Rows<'_, AccessToken> {
    paged(|after| store.tokens(after, ROWS_MAX), |token| token.no)
}

/// Every entry of the registry, by name.
pub fn registry(store: &dyn Store) -> Rows<'_, RegistryEntry> {
    paged(
        |after| store.registry(after, ROWS_MAX),
        |entry| entry.name.clone(),
    )
}

/// Push from upstream for every feed that has it, by feed.
pub fn pushed_feeds(store: &dyn Store) -> Rows<'_, (FeedNo, PushedFeed)> {
    paged(
        |after| store.pushed_feeds(after, ROWS_MAX),
        |(feed, _)| *feed,
    )
}

/// The rows of pages that are read one after another, each after the last key of the one before.
fn paged<'a, T, K, F>(
    read: impl Fn(Option<K>) -> F + Send + 'a,
    key: impl Fn(&T) -> K + Send + 'a,
) -> Rows<'a, T>
where
    T: Send + 'a,
    K: Send + 'a,
    F: Future<Output = Result<Vec<T>, StoreError>> + Send + 'a,
{
    let pages = stream::try_unfold((Some(None), read, key), |(next, read, key)| async move {
        let Some(after) = next else {
            return Ok::<_, StoreError>(None);
        };
        let rows = read(after).await?;
        let next = (rows.len() >= ROWS_MAX).then(|| rows.last().map(&key));
        Ok(Some((
            stream::iter(rows.into_iter().map(Ok)),
            (next, read, key),
        )))
    });
    pages.try_flatten().boxed()
}
