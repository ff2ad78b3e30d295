//! A configuration beside a store: what `serve` and `reload` would refuse of it, which feeds keep
//! ids that their URLs would not give them, and whose URL has changed; nothing is written.

use super::{
    RemovedFeed,
    address_spelling::digest,
    all_feeds_joined,
    move_questions::{LeftAddress, MoveQuestion, move_questions},
    registry::{self, ShadowedEntry, UnreadEntry},
    removed::removed_feeds,
    site_addresses::SiteFeed,
};
use crate::{
    catalog::{self, FeedSettings, RegistryNames},
    config::Config,
    feed::record::FeedNo,
    ingest::without_credentials,
    store::{Store, StoreError, listing},
};
use futures_util::TryStreamExt as _;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use url::Url;

/// Findings about a configuration that the store admits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BesideStore {
    /// Namespaces of the ids of feeds whose settings would give another, by the names of the feeds.
    pub namespaces: BTreeMap<String, String>,
    /// Feeds with items whose URL is another than the one that was polled last.
    pub moved: Vec<String>,
    /// Addresses that feeds of sites leave.
    #[serde(default)]
    pub left: Vec<LeftAddress>,
    /// Feeds of sites that may have moved.
    #[serde(default)]
    pub questions: Vec<MoveQuestion>,
    /// The names of the feeds of the registry.
    #[serde(default)]
    pub registered: BTreeSet<String>,
    /// Entries of the registry that cannot be read.
    #[serde(default)]
    pub unread: Vec<UnreadEntry>,
    /// Entries of the registry that are shadowed by the file.
    #[serde(default)]
    pub shadowed: Vec<ShadowedEntry>,
    /// The names of the feeds of the registry, by the digests of their addresses: addresses may hold
    /// secrets.
    #[serde(default)]
    pub addresses: BTreeMap<String, String>,
    /// What a reload of the running process would do, in lines; empty where none runs.
    #[serde(default)]
    pub reload: Vec<String>,
}

impl BesideStore {
    /// The names of all entries of the registry.
    pub fn registry_names(&self) -> impl Iterator<Item = &str> {
        let unread = self.unread.iter().map(|entry| entry.name.as_str());
        let shadowed = self.shadowed.iter().map(|entry| entry.name.as_str());
        let sound = self.registered.iter().map(String::as_str);
        sound.chain(unread).chain(shadowed)
    }

    /// Holds a configuration, which has the feeds of the registry, against a store. The error is the one by which it would be refused.
    pub(super) async fn of(
        store: &dyn Store,
        config: &Config,
        names: &RegistryNames,
    ) -> Result<Self, StoreError> {
        let feeds = all_feeds_joined(store, config).await?;
        let namespaces = catalog::namespaces(store, &feeds).await?;
        let mut found = Self {
            registered: names.sound.iter().cloned().collect(),
            unread: registry::unread(names),
            shadowed: registry::shadowed(names),
            addresses: addresses(&feeds, names),
            questions: move_questions(store, config, &feeds, names).await?,
            ..Self::default()
        };
        let mut urls: HashMap<&str, (&FeedSettings, Url)> = HashMap::new();
        for (feed, namespace) in feeds.iter().zip(namespaces) {
            if feed.group.is_some() {
                continue;
            }
            urls.insert(&feed.name, (feed, without_credentials(&feed.url)));
            if namespace != feed.namespace() {
                found.namespaces.insert(feed.name.clone(), namespace);
            }
        }
        let mut with_items: HashMap<FeedNo, String> = HashMap::new();
        let mut records = listing::feeds(store);
        while let Some(record) = records.try_next().await? {
            let is_configured = urls.contains_key(record.name.as_str());
            if record.items.total > 0 && record.part_of.is_none() && is_configured {
                with_items.insert(record.no, record.name);
            }
        }
        drop(records);
        let mut polls = listing::polls(store);
        while let Some((no, poll)) = polls.try_next().await? {
            let Some(name) = with_items.remove(&no) else {
                continue;
            };
            let (feed, url) = &urls[name.as_str()];
            if url.as_str() != poll.url {
                found.left.extend(LeftAddress::of(feed, &poll.url));
                found.moved.push(name);
            }
        }
        drop(polls);
        Ok(found)
    }
}

/// The names of feeds of the registry, by the digests of the addresses at which they are known.
fn addresses(feeds: &[FeedSettings], names: &RegistryNames) -> BTreeMap<String, String> {
    let mut addresses = BTreeMap::new();
    let registered = feeds.iter().filter(|feed| names.sound.contains(&feed.name));
    for feed in registered {
        for url in feed.addresses() {
            addresses
                .entry(digest(url))
                .or_insert_with(|| feed.name.clone());
        }
    }
    addresses
}

/// A configuration beside what is stored.
#[derive(Debug, Default)]
pub struct ConfigBesideStore {
    /// Findings about the configuration.
    pub beside: BesideStore,
    /// The feeds that are kept and not configured any more.
    pub kept: Vec<RemovedFeed>,
    /// The feeds at addresses of sites: of the configuration, and those that were found.
    pub feeds: Vec<SiteFeed>,
}

impl ConfigBesideStore {
    /// Looks at a store that nobody serves.
    pub(super) async fn of(
        store: &dyn Store,
        config: &Config,
        names: RegistryNames,
    ) -> Result<Self, StoreError> {
        let beside = BesideStore::of(store, config, &names).await?;
        let feeds = all_feeds_joined(store, config).await?;
        let catalog = catalog::observe(store, feeds).await?.with_registry(names);
        let feeds = catalog.feeds();
        Ok(Self {
            beside,
            kept: removed_feeds(store, &catalog).await?,
            feeds: feeds
                .filter_map(|feed| SiteFeed::of(&feed.settings))
                .collect(),
        })
    }
}

/// Tells that the URL of a feed has changed, and that nothing is to be done about it.
pub fn moved_line(feed: &str) -> String {
    format!("The url of feed `{feed}` has changed. Its items keep their ids. Nothing to do.")
}
