//! From settings to a snapshot: gives each feed its number in the store.

use super::{CatalogSnapshot, FeedSettings, RegisteredFeed};
use crate::{
    feed::record::{FeedNo, FeedRecord},
    store::{Store, StoreError, listing},
};
use futures_util::TryStreamExt as _;
use std::collections::HashMap;

/// Registers feeds, and makes a snapshot of them. Nothing is registered when one of them has another namespace than the
/// store remembers.
pub async fn register(store: &dyn Store, settings: Vec<FeedSettings>) -> Result<CatalogSnapshot, StoreError> {
    let names = settings.iter().map(|feed| (feed.name.clone(), feed.namespace())).collect();
    let records = store.register_all(names).await?;
    let registered = |(settings, record): (_, FeedRecord)| RegisteredFeed { no: record.no, settings };
    let feeds: Vec<_> = settings.into_iter().zip(records).map(registered).collect();
    Ok(CatalogSnapshot::new(feeds, numbers(store).await?))
}

/// A snapshot of those feeds that the store knows already; writes nothing.
pub async fn observe(store: &dyn Store, settings: Vec<FeedSettings>) -> Result<CatalogSnapshot, StoreError> {
    let stored = numbers(store).await?;
    let known = |settings: FeedSettings| {
        let no = *stored.get(&settings.name)?;
        Some(RegisteredFeed { no, settings })
    };
    let feeds: Vec<_> = settings.into_iter().filter_map(known).collect();
    Ok(CatalogSnapshot::new(feeds, stored))
}

/// The number of each feed that the store knows, by name.
async fn numbers(store: &dyn Store) -> Result<HashMap<String, FeedNo>, StoreError> {
    listing::feed_names(store).try_collect().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::Manual,
        store::{memory::Memory, traits::*},
    };
    use std::sync::Arc;
    use url::Url;

    fn store() -> Memory {
        Memory::new(Arc::new(Manual::at(1_780_272_000_000_000)))
    }

    fn feed(name: &str, url: &str) -> FeedSettings {
        FeedSettings::new(name, Url::parse(url).unwrap())
    }

    #[tokio::test]
    async fn a_feed_keeps_its_number_and_one_that_left_is_withdrawn() {
        let store = store();
        let first = register(&store, vec![feed("a", "http://x/a"), feed("b", "http://x/b")]).await.unwrap();
        let second = register(&store, vec![feed("b", "https://x/b"), feed("c", "http://x/c")]).await.unwrap();
        let no = first.feed("b").unwrap().no;
        assert_eq!(second.feed("b").unwrap().no, no);
        assert_eq!(second.withdrawn("a"), Some(first.feed("a").unwrap().no));
        let observed =
            observe(&store, vec![feed("a", "http://x/a"), feed("new", "http://x/n")]).await.unwrap();
        assert_eq!(observed.feeds().len(), 1);
        assert_eq!(store.counts().await.unwrap().feeds, 3, "observing writes nothing");
    }

    #[tokio::test]
    async fn nothing_is_registered_when_one_namespace_differs() {
        let store = store();
        register(&store, vec![feed("b", "http://x/b")]).await.unwrap();
        let refused = register(&store, vec![feed("a", "http://x/a"), feed("b", "http://x/moved")]).await;
        assert!(matches!(refused, Err(StoreError::Namespace { feed, .. }) if feed == "b"));
        assert_eq!(store.counts().await.unwrap().feeds, 1);
    }
}
