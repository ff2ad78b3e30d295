//! From settings to a snapshot: gives each feed its number in the store.

use super::{CatalogSnapshot, FeedSettings, RegisteredFeed};
use crate::{
    feed::record::FeedRecord,
    store::{Store, StoreError},
};
use std::collections::HashMap;

/// Registers feeds, and makes a snapshot of them. Nothing is registered when one of them has another namespace than the
/// store remembers.
pub async fn register(store: &dyn Store, settings: Vec<FeedSettings>) -> Result<CatalogSnapshot, StoreError> {
    let stored = by_name(store.feeds().await?);
    for feed in &settings {
        if let Some(record) = stored.get(&feed.name).filter(|record| record.namespace != feed.namespace()) {
            let (feed, given) = (feed.name.clone(), feed.namespace());
            return Err(StoreError::Namespace { feed, stored: record.namespace.clone(), given });
        }
    }
    let mut feeds = Vec::with_capacity(settings.len());
    for settings in settings {
        let no = match stored.get(&settings.name) {
            Some(record) => record.no,
            None => store.register(&settings.name, &settings.namespace()).await?.no,
        };
        feeds.push(RegisteredFeed { no, settings });
    }
    Ok(CatalogSnapshot::new(feeds, stored.into_values().map(|record| (record.name, record.no))))
}

/// A snapshot of those feeds that the store knows already; writes nothing.
pub async fn observe(store: &dyn Store, settings: Vec<FeedSettings>) -> Result<CatalogSnapshot, StoreError> {
    let stored = by_name(store.feeds().await?);
    let known = |settings: FeedSettings| {
        let no = stored.get(&settings.name)?.no;
        Some(RegisteredFeed { no, settings })
    };
    let feeds: Vec<_> = settings.into_iter().filter_map(known).collect();
    Ok(CatalogSnapshot::new(feeds, stored.into_values().map(|record| (record.name, record.no))))
}

fn by_name(records: Vec<FeedRecord>) -> HashMap<String, FeedRecord> {
    records.into_iter().map(|record| (record.name.clone(), record)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::Manual, store::memory::Memory};
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
        assert_eq!(store.feeds().await.unwrap().len(), 3, "observing writes nothing");
    }

    #[tokio::test]
    async fn nothing_is_registered_when_one_namespace_differs() {
        let store = store();
        register(&store, vec![feed("b", "http://x/b")]).await.unwrap();
        let refused = register(&store, vec![feed("a", "http://x/a"), feed("b", "http://x/moved")]).await;
        assert!(matches!(refused, Err(StoreError::Namespace { feed, .. }) if feed == "b"));
        assert_eq!(store.feeds().await.unwrap().len(), 1);
    }
}
