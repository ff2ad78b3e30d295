//! Which namespace the ids of a configured feed are made with, beside those that the store holds;
//! not how ids are made.

use super::FeedSettings;
use crate::{
    feed::record::FeedNo,
    store::{Store, StoreError, listing},
};
use futures_util::TryStreamExt as _;
use std::collections::{HashMap, HashSet};

/// The ids of a feed that the store has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredIds {
    pub(super) namespace: String,
    pub(super) has_items: bool,
}

/// The ids of all feeds that the store has.
#[derive(Debug, Default)]
pub(super) struct AllStoredIds {
    /// By the names of the feeds.
    stored: HashMap<String, StoredIds>,
    /// The feeds of which it has parts, whose ids are those of their feeds.
    pub(super) parted: HashSet<FeedNo>,
}

impl AllStoredIds {
    /// Reads them. A feed whose record is damaged is left out: whoever asks for it is told so.
    pub(super) async fn read(store: &dyn Store) -> Result<Self, StoreError> {
        let mut stored = HashMap::new();
        let mut records = listing::feeds(store);
        let mut parted = HashSet::new();
        while let Some(record) = records.try_next().await? {
            if let Some(feed) = record.part_of {
                parted.insert(feed);
                continue;
            }
            let ids = StoredIds {
                namespace: record.ids.namespace,
                has_items: record.items.total > 0,
            };
            stored.insert(record.name, ids);
        }
        Ok(Self { stored, parted })
    }

    pub(super) fn of(&self, name: &str) -> Option<&StoredIds> {
        self.stored.get(name)
    }

    // Decides: With which namespace are the ids of a feed made?
    /// The namespaces of these feeds, in their order. A feed that holds items keeps the one that
    /// they were made with, whatever its URL is now; one without takes that of its settings, unless
    /// another feed holds it. A new feed at the address of one that was removed gets one of its
    /// own: what was removed may come back.
    pub(super) fn namespaces(&self, feeds: &[FeedSettings]) -> Result<Vec<String>, StoreError> {
        let mut kept = Vec::with_capacity(feeds.len());
        let mut owners: HashMap<&str, &str> = HashMap::new();
        for feed in feeds {
            let namespace = self.kept(feed)?;
            if let Some(namespace) = namespace {
                owners.entry(namespace).or_insert(&feed.name);
            }
            kept.push(namespace);
        }
        let withdrawn = self.withdrawn(feeds);
        let mut new: HashMap<String, &str> = HashMap::new();
        let mut found = Vec::with_capacity(feeds.len());
        for (feed, kept) in feeds.iter().zip(kept) {
            if let Some(namespace) = kept {
                found.push(namespace.to_owned());
                continue;
            }
            let wanted = feed.namespace();
            let is_known = self.of(&feed.name).is_some();
            let removed = withdrawn.get(wanted.as_str());
            // A feed under a new name is told of, and begins anew beside the old one.
            if removed.is_some() && !is_known && feed.id_namespace.is_none() {
                found.push(of_its_own(feed));
                continue;
            }
            let owner = owners.get(wanted.as_str());
            let holder = owner.or_else(|| new.get(&wanted)).or(removed);
            // Feeds of sites are not given by hand.
            let is_given = is_known || !feed.is_called_by_address();
            if is_given && let Some(holder) = holder {
                // A site has no key for it. One of its feeds moved, and another came in its place.
                if feed.is_given_by_site() {
                    found.push(of_its_own(feed));
                    continue;
                }
                return Err(StoreError::NamespaceHeld {
                    feed: feed.name.clone(),
                    namespace: wanted,
                    holder: (*holder).to_owned(),
                });
            }
            new.insert(wanted.clone(), &feed.name);
            found.push(wanted);
        }
        Ok(found)
    }

    /// The namespace that a feed keeps: the one of its settings, or with which its items were made.
    fn kept(&self, feed: &FeedSettings) -> Result<Option<&str>, StoreError> {
        let Some(stored) = self.of(&feed.name) else {
            return Ok(None);
        };
        let wanted = feed.namespace();
        if stored.namespace == wanted || stored.namespace == of_its_own(feed) {
            return Ok(Some(&stored.namespace));
        }
        if !may_differ(stored, feed, &wanted) {
            return Err(StoreError::Namespace {
                feed: feed.name.clone(),
                stored: stored.namespace.clone(),
                given: wanted,
            });
        }
        Ok(stored.has_items.then_some(stored.namespace.as_str()))
    }

    /// The namespaces of feeds that are not served any more, and their names. Where one has items,
    /// they were made with it.
    fn withdrawn(&self, feeds: &[FeedSettings]) -> HashMap<&str, &str> {
        let configured: HashSet<&str> = feeds.iter().map(|feed| feed.name.as_str()).collect();
        let mut withdrawn: HashMap<&str, &str> = HashMap::new();
        for (name, ids) in &self.stored {
            if ids.has_items && !configured.contains(name.as_str()) {
                withdrawn.insert(&ids.namespace, name);
            }
        }
        withdrawn
    }
}

/// The namespaces that these feeds would be registered with, in their order; the error is the one
/// by which they would be refused.
pub async fn namespaces(
    store: &dyn Store,
    feeds: &[FeedSettings],
) -> Result<Vec<String>, StoreError> {
    AllStoredIds::read(store).await?.namespaces(feeds)
}

/// The namespace of a feed whose URL gives that of a removed one.
fn of_its_own(feed: &FeedSettings) -> String {
    format!("{}#{}", feed.namespace(), feed.name)
}

/// True when the stored namespace may be another than that of the settings: it is kept, unless the
/// operator names another, or it is given up, where no id was made with it. A group and a feed
/// never become each other.
fn may_differ(stored: &StoredIds, feed: &FeedSettings, wanted: &str) -> bool {
    let is_group = |namespace: &str| namespace.starts_with("group:");
    if feed.group.is_some() || is_group(&stored.namespace) != is_group(wanted) {
        return false;
    }
    !stored.has_items || feed.id_namespace.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use url::Url;

    fn feed(name: &str, url: &str) -> FeedSettings {
        FeedSettings::new(name, Url::parse(url).unwrap())
    }

    fn named(name: &str, url: &str, namespace: &str) -> FeedSettings {
        FeedSettings {
            id_namespace: Some(namespace.to_owned()),
            ..feed(name, url)
        }
    }

    /// Feeds of the store, with their namespaces; those marked have items.
    fn check(stored: &[(&str, &str, bool)], feeds: &[FeedSettings], expect: Result<&[&str], &str>) {
        let ids = |(name, namespace, has_items): &(&str, &str, bool)| {
            (
                (*name).to_owned(),
                StoredIds {
                    namespace: (*namespace).to_owned(),
                    has_items: *has_items,
                },
            )
        };
        let all = AllStoredIds {
            stored: stored.iter().map(ids).collect(),
            ..AllStoredIds::default()
        };
        let found = all.namespaces(feeds);
        match (found, expect) {
            (Ok(found), Ok(expect)) => assert_eq!(found, expect),
            (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{error}"),
            (found, expect) => panic!("{found:?} is not {expect:?}"),
        }
    }

    #[test]
    fn a_changed_url_keeps_the_ids() {
        check(
            &[("a", "x/a", true)],
            &[feed("a", "http://y/b")],
            Ok(&["x/a"]),
        );
        check(
            &[("a", "given", true)],
            &[feed("a", "http://y/b")],
            Ok(&["given"]),
        );
        // Two feeds that have changed their URLs keep what is theirs.
        let swapped = [feed("a", "http://x/b"), feed("b", "http://x/a")];
        check(
            &[("a", "x/a", true), ("b", "x/b", true)],
            &swapped,
            Ok(&["x/a", "x/b"]),
        );
        check(
            &[("a", "x/a", true)],
            &[named("a", "http://y/b", "x/a")],
            Ok(&["x/a"]),
        );
        check(
            &[("a", "x/a", true)],
            &[named("a", "http://x/a", "other")],
            Err("leave id_namespace out"),
        );
    }

    #[test]
    fn a_feed_without_items_takes_the_new_namespace_unless_another_holds_it() {
        let corrected = [feed("a", "http://x/right")];
        check(&[("a", "x/wrong", false)], &corrected, Ok(&["x/right"]));
        check(
            &[("a", "x/wrong", false), ("old", "x/right", false)],
            &corrected,
            Ok(&["x/right"]),
        );
        check(
            &[("a", "x/wrong", false), ("old", "x/right", true)],
            &corrected,
            Err("`old`"),
        );
        let swapped = [feed("a", "http://x/b"), feed("b", "http://x/a")];
        check(
            &[("a", "x/a", false), ("b", "x/b", false)],
            &swapped,
            Ok(&["x/b", "x/a"]),
        );
        // `moved` holds the namespace of the URL that it has left.
        let stored = [("moved", "x/a", true), ("b", "x/wrong", false)];
        check(
            &stored,
            &[feed("moved", "http://y/"), feed("b", "http://x/a")],
            Err("`moved`"),
        );
        check(
            &stored[..1],
            &[feed("moved", "http://y/"), feed("new", "http://x/a")],
            Err("`moved`"),
        );
        let own = named("new", "http://x/a", "own");
        check(
            &stored[..1],
            &[feed("moved", "http://y/"), own],
            Ok(&["x/a", "own"]),
        );
    }

    #[test]
    fn a_new_name_begins_anew_and_a_group_is_no_feed() {
        let stored = [("old", "x/a", true), ("new", "x/a#new", false)];
        for stored in [&stored[..1], &stored] {
            check(stored, &[feed("new", "http://x/a")], Ok(&["x/a#new"]));
            // The old one comes back elsewhere.
            check(
                stored,
                &[feed("new", "http://y/"), feed("old", "http://x/b")],
                Ok(&["y/", "x/a"]),
            );
        }
        let kept = [("old", "x/a", true), ("new", "x/a#new", true)];
        check(
            &kept,
            &[feed("new", "http://x/a"), feed("old", "http://x/b")],
            Ok(&["x/a#new", "x/a"]),
        );
        check(
            &kept[..1],
            &[named("new", "http://y/", "x/a")],
            Err("`old`"),
        );
        check(
            &[("old", "x/a", false)],
            &[feed("new", "http://x/a")],
            Ok(&["x/a"]),
        );
        check(
            &[("a", "group:a", false)],
            &[feed("a", "http://x/a")],
            Err("`a`"),
        );
    }
}
