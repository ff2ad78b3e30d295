//! A configuration beside a store: what `serve` and `reload` would refuse of it, which feeds keep
//! ids that their URLs would not give them, and whose URL has changed; nothing is written.

use crate::{
    catalog,
    config::Config,
    feed::record::{FeedNo, FeedRecord},
    ingest::without_credentials,
    store::{Store, StoreError, listing},
};
use futures_util::TryStreamExt as _;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use url::Url;

/// Findings about a configuration that the store admits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BesideStore {
    /// Namespaces of the ids of feeds whose settings would give another, by the names of the feeds.
    pub namespaces: BTreeMap<String, String>,
    /// Feeds with items whose URL is another than the one that was polled last.
    pub moved: Vec<String>,
}

impl BesideStore {
    /// Holds a configuration against a store. The error is the one by which it would be refused.
    pub(super) async fn of(store: &dyn Store, config: &Config) -> Result<Self, StoreError> {
        let mut feeds = config.registered();
        catalog::join_found(store, &config.site, &config.server.public_url, &mut feeds).await?;
        let namespaces = catalog::namespaces(store, &feeds).await?;
        let mut found = Self::default();
        let mut urls: HashMap<&str, Url> = HashMap::new();
        for (feed, namespace) in feeds
            .iter()
            .zip(namespaces)
            .filter(|(feed, _)| feed.group.is_none())
        {
            urls.insert(&feed.name, without_credentials(&feed.url));
            if namespace != feed.namespace() {
                found.namespaces.insert(feed.name.clone(), namespace);
            }
        }
        let mut with_items: HashMap<FeedNo, String> = HashMap::new();
        let mut records = listing::feeds(store);
        while let Some(FeedRecord {
            name,
            no,
            items,
            part_of,
            ..
        }) = records.try_next().await?
        {
            if items.total > 0 && part_of.is_none() && urls.contains_key(name.as_str()) {
                with_items.insert(no, name);
            }
        }
        drop(records);
        let mut polls = listing::polls(store);
        while let Some((no, poll)) = polls.try_next().await? {
            if let Some(name) = with_items.remove(&no)
                && urls
                    .get(name.as_str())
                    .is_some_and(|url| url.as_str() != poll.url)
            {
                found.moved.push(name);
            }
        }
        drop(polls);
        Ok(found)
    }
}

/// Tells that the URL of a feed has changed, and that nothing is to be done about it.
pub fn moved_line(feed: &str) -> String {
    format!("The url of feed `{feed}` has changed. Its items keep their ids. Nothing to do.")
}
