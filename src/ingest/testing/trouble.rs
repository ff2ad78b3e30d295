//! A store in memory that gets into trouble when told to. Compiled for tests only.

use crate::{
    feed::{
        archive::{ArchiveWalk, Staged, StagedPage},
        item::{Item, ItemId, KeyHash},
        observed::Observed,
        page::{Page, PageQuery},
        reconcile::{Evidence, Known},
        record::{FeedNo, FeedRecord},
        schedule::PollState,
        stamp::Stamp,
    },
    store::{Answer, Commit, Receipt, Store, StoreError, Subscription, SubscriptionNo, memory::Memory},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// What is to go wrong, and how often yet.
#[derive(Debug, Default)]
pub(in crate::ingest) struct Trouble {
    /// Commits before which somebody else commits.
    pub(in crate::ingest) conflicts: AtomicUsize,
    /// Commits that fail.
    pub(in crate::ingest) failing_commits: AtomicUsize,
    /// Saves of poll states that fail.
    pub(in crate::ingest) failing_saves: AtomicUsize,
    /// Look-ups of subscriptions that panic.
    pub(in crate::ingest) panics: AtomicUsize,
    /// How long a save takes.
    pub(in crate::ingest) save_secs: AtomicU64,
    /// Saves so far.
    pub(in crate::ingest) saves: AtomicUsize,
}

/// The store.
pub(super) struct Troubled {
    pub(super) memory: Memory,
    pub(super) trouble: Arc<Trouble>,
}

/// Takes one from a count, if there is one.
fn take(count: &AtomicUsize) -> bool {
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

/// Passes methods on.
macro_rules! pass_on {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $out:ty;)*) => {
        $(fn $name(&self, $($arg: $kind),*) -> Answer<'_, $out> { self.memory.$name($($arg),*) })*
    };
}

impl Store for Troubled {
    fn commit(&self, commit: Commit) -> Answer<'_, Receipt> {
        Box::pin(async move {
            if take(&self.trouble.failing_commits) {
                return Err(StoreError::Failed("no space left on device".into()));
            }
            if take(&self.trouble.conflicts) {
                let record = self.memory.feed(commit.feed).await?;
                self.memory.commit(Commit::nothing(&record)).await?;
            }
            self.memory.commit(commit).await
        })
    }

    fn save_polls(&self, polls: Vec<(FeedNo, PollState)>, hosts: Vec<(String, Stamp)>) -> Answer<'_, ()> {
        self.trouble.saves.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            if take(&self.trouble.failing_saves) {
                return Err(StoreError::Busy);
            }
            let secs = self.trouble.save_secs.load(Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(secs)).await;
            self.memory.save_polls(polls, hosts).await
        })
    }

    fn subs_of(&self, feed: FeedNo) -> Answer<'_, Vec<Subscription>> {
        assert!(!take(&self.trouble.panics), "told to");
        self.memory.subs_of(feed)
    }

    fn register<'a>(&'a self, name: &'a str, namespace: &'a str) -> Answer<'a, FeedRecord> {
        self.memory.register(name, namespace)
    }

    fn find_sub<'a>(&'a self, topic: &'a str, callback: &'a str) -> Answer<'a, Option<Subscription>> {
        self.memory.find_sub(topic, callback)
    }

    pass_on! {
        feeds() -> Vec<FeedRecord>;
        feed(feed: FeedNo) -> FeedRecord;
        known(feed: FeedNo, keys: Vec<KeyHash>) -> Known;
        polls() -> Vec<(FeedNo, PollState)>;
        hosts() -> Vec<(String, Stamp)>;
        stage(feed: FeedNo, walk: ArchiveWalk, page: Option<StagedPage>) -> ();
        staged(feed: FeedNo) -> Staged;
        walks() -> Vec<(FeedNo, ArchiveWalk)>;
        page(query: PageQuery) -> Page;
        item(feed: FeedNo, id: ItemId) -> Option<Arc<Item>>;
        evidence(feed: FeedNo, id: ItemId) -> Vec<(Stamp, Evidence)>;
        observations(feed: FeedNo) -> Vec<(u64, Observed)>;
        put_sub(sub: Subscription) -> SubscriptionNo;
        sub(sub: SubscriptionNo) -> Option<Subscription>;
        subs() -> Vec<Subscription>;
        drop_sub(sub: SubscriptionNo) -> bool;
        advance(sub: SubscriptionNo, from: String, to: String) -> bool;
        check() -> ();
        accept_clock() -> ();
        close() -> ();
    }
}
