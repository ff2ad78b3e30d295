//! The difference between two snapshots; not what anybody does about it.

use super::{CatalogSnapshot, RegisteredFeed};
use crate::setting::differing_keys;
use std::sync::Arc;

/// The feeds in which one snapshot differs from another, by name.
#[derive(Clone, Debug, Default)]
pub struct CatalogChanges {
    /// Feeds that only the new one has.
    pub added: Vec<Arc<RegisteredFeed>>,
    /// Feeds that both have, with other settings.
    pub changed: Vec<ChangedFeed>,
    /// Feeds that only the old one has.
    pub removed: Vec<Arc<RegisteredFeed>>,
}

/// A feed whose settings changed.
#[derive(Clone, Debug)]
pub struct ChangedFeed {
    /// The feed with its new settings.
    pub feed: Arc<RegisteredFeed>,
    /// The keys of its table whose values changed.
    pub keys: Vec<String>,
}

impl CatalogChanges {
    /// True when the snapshots hold the same.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }

    /// True for the name of a feed that only the old one has.
    pub fn has_removed(&self, name: &str) -> bool {
        self.removed.iter().any(|feed| feed.settings.name == name)
    }
}

/// The changes that lead from one snapshot to another.
///
/// A feed is known by its name. One that was forgotten and registered anew has another number, and
/// is both removed and added.
pub fn diff(old: &CatalogSnapshot, new: &CatalogSnapshot) -> CatalogChanges {
    let mut changes = CatalogChanges::default();
    for (before, now) in old.differing(new) {
        match (before, now) {
            (Some(before), Some(now)) if before.no == now.no => {
                let keys = match (&before.settings.group, &now.settings.group) {
                    (Some(before), Some(now)) => differing_keys(before, now),
                    _ => differing_keys(&before.settings, &now.settings),
                };
                let feed = now.clone();
                changes.changed.push(ChangedFeed { feed, keys });
            }
            (before, now) => {
                changes.added.extend(now.cloned());
                changes.removed.extend(before.cloned());
            }
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{catalog::FeedSettings, feed::record::FeedNo};

    fn snapshot(feeds: &[(u32, &str)]) -> CatalogSnapshot {
        let feed = |(no, table): &(u32, &str)| {
            let table = format!("url = \"http://x/\"\n{table}");
            let settings: FeedSettings = toml::from_str(&table).unwrap();
            RegisteredFeed::new(FeedNo(*no), settings)
        };
        CatalogSnapshot::new(feeds.iter().map(feed), [])
    }

    fn names(feeds: &[Arc<RegisteredFeed>]) -> Vec<&str> {
        feeds
            .iter()
            .map(|feed| feed.settings.name.as_str())
            .collect()
    }

    #[test]
    fn feeds_are_added_changed_and_removed_by_name() {
        let old = snapshot(&[(1, "name = 'a'"), (2, "name = 'b'"), (3, "name = 'c'")]);
        let new = snapshot(&[
            (1, "name = 'a'"),
            (
                2,
                "name = 'b'\naliases = ['http://y/']\npoll = { max_secs = 9 }\ndeletions = { unsafe = true }",
            ),
            (4, "name = 'd'"),
        ]);
        let changes = diff(&old, &new);
        assert_eq!(
            (names(&changes.added), names(&changes.removed)),
            (vec!["d"], vec!["c"])
        );
        assert_eq!(changes.changed.len(), 1);
        assert_eq!(changes.changed[0].feed.no, FeedNo(2));
        assert_eq!(
            changes.changed[0].keys,
            ["aliases", "deletions.unsafe", "poll.max_secs"]
        );
        assert!(diff(&new, &new).is_empty() && !changes.is_empty());
    }

    #[test]
    fn a_feed_that_was_forgotten_and_registered_anew_is_another_feed() {
        let changes = diff(
            &snapshot(&[(1, "name = 'a'")]),
            &snapshot(&[(2, "name = 'a'")]),
        );
        assert_eq!(
            (names(&changes.added), names(&changes.removed)),
            (vec!["a"], vec!["a"])
        );
    }
}
