//! The feeds that still hold a post after it was removed from one, and the groups that show it; not
//! its removal.

use super::explain::Explainer;
use crate::{
    catalog::CatalogSnapshot,
    feed::{
        item::{Item, ItemId, KeyHash},
        reconcile::address_witness,
        record::FeedRecord,
    },
    store::StoreError,
};
use everfeed_adapters::Key;
use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

/// Feeds that are looked at for a post, at most; whoever is told of the others is told so.
pub(super) const FEEDS_MAX: usize = 10_000;

/// The names of a post by which other feeds may hold it: ids such as `1` are given by many.
pub(super) struct PostNames(Vec<String>);

/// A post in another feed, or under another id in the same one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StillHeld {
    /// The feed.
    pub(super) feed: String,
    /// True for a feed that is not configured: it is kept and not served.
    pub(super) is_withdrawn: bool,
    /// The items of it.
    pub(super) items: Vec<ItemId>,
    /// The groups that show it with the feed.
    pub(super) groups: Vec<String>,
}

impl PostNames {
    /// Those of an item, and the one by which it was asked for: it may be gone already.
    pub(super) fn of(item: Option<&Item>, asked: &str) -> Self {
        let mut names = vec![asked.to_owned()];
        if let Some(item) = item.filter(|item| !item.is_gone()) {
            names.push(item.given_id().to_owned());
            let entry = item.entry();
            names.extend(entry.and_then(|entry| entry.permalink()).map(str::to_owned));
        }
        names.retain(|name| name.contains(':'));
        names.sort_unstable();
        names.dedup();
        Self(names)
    }

    /// True for an item that lives and has one of the names.
    fn are_of(&self, item: &Item) -> bool {
        let Some(entry) = item.entry() else {
            return false;
        };
        let stripped = |name: &str| Key::Id(name.to_owned()).stripped();
        let wanted: HashSet<String> = self.0.iter().map(|name| stripped(name)).collect();
        [Some(item.given_id()), entry.permalink()]
            .into_iter()
            .flatten()
            .any(|name| wanted.contains(&stripped(name)))
    }

    /// The items of a feed that have one of the names and live.
    async fn held_in(
        &self,
        explainer: &Explainer,
        record: &FeedRecord,
    ) -> Result<Vec<ItemId>, StoreError> {
        let key =
            |name: &String| KeyHash::of(&record.ids.namespace, &Key::Id(name.clone()).stripped());
        let (store, keys) = (&explainer.store, self.0.iter().map(key).collect());
        let witnesses: Vec<KeyHash> = self
            .0
            .iter()
            .filter_map(|name| address_witness(name))
            .collect();
        let by_key = store.snapshot(record.no, keys).await?.items;
        let by_witness = store.witnessed(record.no, witnesses).await?.items;
        let found: Vec<Arc<Item>> = by_key.into_values().chain(by_witness).collect();
        let mut ids: Vec<ItemId> = found
            .iter()
            .filter(|item| self.are_of(item))
            .map(|item| item.id)
            .collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// True while a group shows the post: it is found by its keys only where it still has them.
    async fn are_shown_in(&self, explainer: &Explainer, group: &str) -> Result<bool, StoreError> {
        let Some(record) = explainer.store.feed_named(group).await? else {
            return Ok(false);
        };
        for name in &self.0 {
            let found = explainer.find(&record, name).await?;
            if found.is_some_and(|item| self.are_of(&item)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    // Decides: What still shows a post that was removed of one feed?
    /// The feeds that hold the post, by name, and of each the groups that show it.
    pub(super) async fn still_held(
        &self,
        explainer: &Explainer,
    ) -> Result<Vec<StillHeld>, StoreError> {
        let catalog = explainer.catalog.snapshot();
        let mut held = Vec::new();
        if self.0.is_empty() {
            return Ok(held);
        }
        let configured = catalog.upstreams().map(|feed| feed.settings.name.as_str());
        let withdrawn = catalog.all_withdrawn().map(|(name, _)| name);
        let mut shown: BTreeMap<String, bool> = BTreeMap::new();
        for name in configured.chain(withdrawn).take(FEEDS_MAX) {
            let Some(record) = explainer.store.feed_named(name).await? else {
                continue;
            };
            if record.ids.namespace.starts_with("group:") {
                continue;
            }
            let items = self.held_in(explainer, &record).await?;
            if items.is_empty() {
                continue;
            }
            let mut groups = groups_of(&catalog, name);
            for group in &groups {
                if !shown.contains_key(group) {
                    let is_shown = self.are_shown_in(explainer, group).await?;
                    shown.insert(group.clone(), is_shown);
                }
            }
            groups.retain(|group| shown[group]);
            held.push(StillHeld {
                feed: name.to_owned(),
                is_withdrawn: catalog.feed(name).is_none(),
                items,
                groups,
            });
        }
        Ok(held)
    }
}

/// The configured groups that a feed is a member of, by name.
pub(super) fn groups_of(catalog: &CatalogSnapshot, feed: &str) -> Vec<String> {
    catalog
        .feeds()
        .filter(|group| {
            let members = catalog.member_names(group.no);
            members.is_some_and(|members| members.contains(&feed))
        })
        .map(|group| group.settings.name.clone())
        .collect()
}
