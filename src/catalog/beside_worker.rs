//! The feeds of a process that follows beside those of the process that works: of two files one may
//! have feeds that the other lacks. Not how the other one tells them.

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
    /// Compares the feeds that this process serves and those that the store remembers beside them with
    /// what the process that works told: the feeds of the store that it does not serve. `awaited` are
    /// feeds of this process that the store does not know.
    pub fn of<'a>(
        served: impl IntoIterator<Item = (&'a str, FeedNo)>,
        remembered: impl IntoIterator<Item = (&'a str, FeedNo)>,
        awaited: impl IntoIterator<Item = &'a str>,
        withdrawn: Option<&[FeedNo]>,
    ) -> Self {
        let awaited: BTreeSet<String> = awaited.into_iter().map(str::to_owned).collect();
        let there: HashSet<FeedNo> = withdrawn.unwrap_or_default().iter().copied().collect();
        let lacking = remembered.into_iter().filter(|(_, no)| !there.contains(no));
        let only_here = served.into_iter().filter(|(_, no)| there.contains(no));
        let only_here = only_here.map(|(name, _)| name.to_owned());
        Self {
            lacking: lacking.map(|(name, _)| name.to_owned()).collect(),
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

    const SERVED: [(&str, FeedNo); 2] = [("blog", FeedNo(1)), ("old", FeedNo(2))];
    const REMEMBERED: [(&str, FeedNo); 2] = [("new", FeedNo(3)), ("gone", FeedNo(4))];

    #[test]
    fn a_feed_is_gone_only_where_the_process_that_works_lacks_it_too() {
        let withdrawn = [FeedNo(2), FeedNo(4)];
        let beside = BesideWorker::of(SERVED, REMEMBERED, ["coming"], Some(&withdrawn));
        let has = ["blog", "new", "gone", "coming", "never"].map(|name| beside.has(name));
        assert_eq!(has, [false, true, false, true, false]);
        assert_eq!(beside.lacking().collect::<Vec<_>>(), ["new"]);
        assert_eq!(beside.only_here().collect::<Vec<_>>(), ["coming", "old"]);
    }

    #[test]
    fn nothing_is_gone_while_the_process_that_works_has_told_nothing() {
        let beside = BesideWorker::of(SERVED, REMEMBERED, [], None);
        assert!(beside.has("gone"));
        assert_eq!(beside.lacking().count(), 0, "nobody is blamed for it");
        assert!(!BesideWorker::default().has("gone"), "one that works knows");
    }
}
