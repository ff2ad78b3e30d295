//! The feeds of a process that follows beside those of the process that works: of two files one may
//! have feeds that the other lacks. Not how the other one tells them.

use super::CatalogSnapshot;
use crate::feed::record::FeedNo;
use std::collections::{BTreeSet, HashSet};

/// The differences of a snapshot from that of the process that works. One that works differs in
/// nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BesideWorker {
    /// Feeds that the process that works serves, or may serve, and this one does not.
    lacking: BTreeSet<String>,
    /// Feeds of this process that the one that works does not serve.
    only_here: BTreeSet<String>,
    /// Those of them that the store does not know yet.
    awaited: BTreeSet<String>,
    /// True where the process that works told which feeds of the store it does not serve.
    is_known: bool,
}

impl BesideWorker {
    /// Compares a snapshot with what the process that works told: the feeds of the store that it does
    /// not serve. `awaited` are feeds of this process that the store does not know.
    pub fn of<'a>(
        snapshot: &CatalogSnapshot,
        awaited: impl IntoIterator<Item = &'a str>,
        withdrawn: Option<&[FeedNo]>,
    ) -> Self {
        let awaited: BTreeSet<String> = awaited.into_iter().map(str::to_owned).collect();
        let there: HashSet<FeedNo> = withdrawn.unwrap_or_default().iter().copied().collect();
        let registry = snapshot.registry();
        let lacking = snapshot
            .all_withdrawn()
            .filter(|(name, no)| !there.contains(no) && !registry.contains(name))
            .map(|(name, _)| name.to_owned());
        let only_here = snapshot.feeds().filter(|feed| there.contains(&feed.no));
        let only_here = only_here.map(|feed| feed.settings.name.clone());
        Self {
            lacking: lacking.collect(),
            only_here: only_here.chain(awaited.iter().cloned()).collect(),
            awaited,
            is_known: withdrawn.is_some(),
        }
    }

    // Decides: Is a feed that this node does not serve gone?
    /// True for the name of a feed that is not served here and not gone: the process that works has
    /// it, or this one will have it once that one does.
    pub fn has(&self, name: &str) -> bool {
        self.lacking.contains(name) || self.awaited.contains(name)
    }

    /// The feeds that the process that works serves and this one does not, by name.
    pub fn lacking(&self) -> impl Iterator<Item = &str> {
        let told = self.lacking.iter().filter(|_| self.is_known);
        told.map(String::as_str)
    }

    /// The feeds of this process that the one that works does not serve, by name.
    pub fn only_here(&self) -> impl Iterator<Item = &str> {
        self.only_here.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{FeedSettings, RegisteredFeed};
    use url::Url;

    fn snapshot(served: &[(&str, u32)], remembered: &[(&str, u32)]) -> CatalogSnapshot {
        let feed = |(name, no): &(&str, u32)| {
            let url = Url::parse(&format!("http://x/{name}")).unwrap();
            RegisteredFeed::new(FeedNo(*no), FeedSettings::new(*name, url))
        };
        let remembered = remembered
            .iter()
            .map(|(name, no)| ((*name).into(), FeedNo(*no)));
        CatalogSnapshot::new(served.iter().map(feed), remembered)
    }

    #[test]
    fn a_feed_is_gone_only_where_the_process_that_works_lacks_it_too() {
        let here = snapshot(&[("blog", 1), ("old", 2)], &[("new", 3), ("gone", 4)]);
        let beside = BesideWorker::of(&here, ["coming"], Some(&[FeedNo(2), FeedNo(4)]));
        let has = ["blog", "new", "gone", "coming", "never"].map(|name| beside.has(name));
        assert_eq!(has, [false, true, false, true, false]);
        assert_eq!(beside.lacking().collect::<Vec<_>>(), ["new"]);
        assert_eq!(beside.only_here().collect::<Vec<_>>(), ["coming", "old"]);
    }

    #[test]
    fn nothing_is_gone_while_the_process_that_works_has_told_nothing() {
        let here = snapshot(&[("blog", 1)], &[("gone", 4)]);
        let beside = BesideWorker::of(&here, [], None);
        assert!(beside.has("gone"));
        assert_eq!(beside.lacking().count(), 0, "nobody is blamed for it");
        assert!(!BesideWorker::default().has("gone"), "one that works knows");
    }
}
