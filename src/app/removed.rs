//! Feeds that are kept although they are not configured any more: how much is kept of each, and
//! whether it was renamed; not what consumers see of them.

use crate::{
    catalog::CatalogSnapshot,
    feed::record::FeedNo,
    store::{Store, StoreError},
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A feed that is kept although it is not configured any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedFeed {
    /// Its name.
    pub name: String,
    /// Items that are kept of it, tombstones included.
    pub items: u64,
    /// The configured feed that has its URL under another name.
    pub renamed_to: Option<String>,
}

impl fmt::Display for RemovedFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        let counted = match self.items {
            1 => "1 item is".to_owned(),
            items => format!("{items} items are"),
        };
        match &self.renamed_to {
            Some(new) => write!(
                f,
                "`{name}` is not configured any more, and `{new}` has its URL: {counted} kept under the old name, \
                 and the new one begins without them. Name it `{name}` again to keep them, or forget them with \
                 `everfeed forget {name}`"
            ),
            None => write!(
                f,
                "`{name}` is not configured: {counted} kept and not served (410). Configure it again to serve \
                 them, or forget them with `everfeed forget {name}`"
            ),
        }
    }
}

/// The feeds of a store that a catalog has no settings for, by name.
pub(super) async fn removed_feeds(
    store: &dyn Store,
    catalog: &CatalogSnapshot,
) -> Result<Vec<RemovedFeed>, StoreError> {
    let withdrawn = catalog.all_withdrawn().map(|(name, _)| name);
    removed_among(store, catalog, withdrawn).await
}

/// Those of them that have these names, by name.
pub(super) async fn removed_among(
    store: &dyn Store,
    catalog: &CatalogSnapshot,
    names: impl Iterator<Item = &str>,
) -> Result<Vec<RemovedFeed>, StoreError> {
    let names = names.filter(|name| !catalog.registry().contains(name));
    let withdrawn = names.filter_map(|name| Some((name.to_owned(), catalog.withdrawn(name)?)));
    let withdrawn: Vec<(String, FeedNo)> = withdrawn.collect();
    let mut removed = Vec::new();
    for (name, no) in withdrawn {
        let (items, renamed_to) = match store.feed(no).await {
            Ok(record) => (
                record.items.total,
                catalog.by_namespace(&record.ids.namespace),
            ),
            // Forgotten meanwhile.
            Err(StoreError::UnknownFeed(_)) => continue,
            Err(error) if error.is_of_one_feed() => (0, None),
            Err(error) => return Err(error),
        };
        removed.push(RemovedFeed {
            name,
            items,
            renamed_to: renamed_to.map(|feed| feed.settings.name.clone()),
        });
    }
    removed.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(removed)
}

/// Removed feeds that are told one by one in the log; the others are counted.
const TOLD_MAX: usize = 20;

/// Tells the log of them.
pub(super) fn tell(removed: &[RemovedFeed]) {
    for feed in removed.iter().take(TOLD_MAX) {
        tracing::warn!(feed.name = %feed.name, items = feed.items, "{feed}");
    }
    let more = removed.len().saturating_sub(TOLD_MAX);
    if more > 0 {
        tracing::warn!(
            feeds = more,
            "{more} more feeds are kept although they are not configured"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalog::{FeedSettings, RegistrationProgress, register},
        clock::Manual,
        store::memory::Memory,
    };
    use std::sync::Arc;
    use url::Url;

    #[tokio::test]
    async fn a_feed_that_left_is_told_of_and_one_with_a_new_name_is_recognised_by_its_url() {
        let store = Memory::new(Arc::new(Manual::at(1_780_272_000_000_000)));
        let feed = |name: &str, url: &str| FeedSettings::new(name, Url::parse(url).unwrap());
        let all = vec![
            feed("blog", "http://x/a"),
            feed("old", "http://x/b"),
            feed("gone", "http://x/c"),
        ];
        register(&store, all, &RegistrationProgress::default())
            .await
            .unwrap();
        let now = vec![feed("blog", "http://x/a"), feed("new", "https://x/b")];
        let catalog = register(&store, now, &RegistrationProgress::default())
            .await
            .unwrap();
        let removed = removed_feeds(&store, &catalog).await.unwrap();
        let told: Vec<_> = removed
            .iter()
            .map(|it| (it.name.as_str(), it.renamed_to.as_deref()))
            .collect();
        assert_eq!(told, [("gone", None), ("old", Some("new"))]);
        let words = removed[1].to_string();
        assert!(
            words.contains("0 items are kept") && words.contains("Name it `old` again"),
            "{words}"
        );
    }
}
