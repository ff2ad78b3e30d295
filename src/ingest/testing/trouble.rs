//! A store in memory that gets into trouble when told to. Compiled for tests only.

use crate::{
    feed::{archive::ArchiveWalk, record::FeedNo, schedule::PollState, stamp::Stamp},
    store::{
        Commit, HostPause, Outage, Receipt, Remedy, Store, StoreCondition, StoreError, StoreFuture,
        condition::FileFigures, wrapped::Tap,
    },
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Failures to come, by kind and number.
#[derive(Debug, Default)]
pub(in crate::ingest) struct Trouble {
    /// Commits before which somebody else commits.
    pub(in crate::ingest) conflicts: AtomicUsize,
    /// Commits that fail.
    pub(in crate::ingest) failing_commits: AtomicUsize,
    /// Commits that do not reach the store.
    pub(in crate::ingest) away_commits: AtomicUsize,
    /// Commits that are made, and whose outcome is not known.
    pub(in crate::ingest) unknown_commits: AtomicUsize,
    /// Reads of archive walks that fail.
    pub(in crate::ingest) failing_walks: AtomicUsize,
    /// Saves of poll states that fail.
    pub(in crate::ingest) failing_saves: AtomicUsize,
    /// Look-ups of subscriptions that panic.
    pub(in crate::ingest) panics: AtomicUsize,
    /// Duration of a save.
    pub(in crate::ingest) save_secs: AtomicU64,
    /// Seconds for which states that may be noted late gather.
    pub(in crate::ingest) gather_secs: AtomicU64,
    /// Saves at once so far.
    pub(in crate::ingest) saves: AtomicUsize,
    /// Late ones so far.
    pub(in crate::ingest) notes: AtomicUsize,
    /// Faults of the file so far.
    pub(in crate::ingest) faults: AtomicU64,
    /// True when the process before did not close the store.
    pub(in crate::ingest) unclean: AtomicBool,
    /// True while nothing can be committed.
    pub(in crate::ingest) outage: AtomicBool,
}

/// Takes one from a count, if there is one.
fn take(count: &AtomicUsize) -> bool {
    count
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(1)
        })
        .is_ok()
}

impl Trouble {
    /// A save of poll states, or its failure.
    fn saved_by<'a>(&'a self, save: StoreFuture<'a, ()>) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            if take(&self.failing_saves) {
                return Err(StoreError::Away("the queue is full".into()));
            }
            let secs = self.save_secs.load(Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(secs)).await;
            save.await
        })
    }
}

impl Tap for Arc<Trouble> {
    fn commit<'a>(&'a self, inner: &'a dyn Store, commit: Commit) -> StoreFuture<'a, Receipt> {
        Box::pin(async move {
            if take(&self.failing_commits) {
                return Err(StoreError::Failed("no space left on device".into()));
            }
            if take(&self.away_commits) {
                return Err(StoreError::Away("the queue is full".into()));
            }
            if take(&self.conflicts) {
                let record = inner.feed(commit.basis.feed).await?;
                inner.commit(Commit::nothing(&record)).await?;
            }
            let receipt = inner.commit(commit).await?;
            if take(&self.unknown_commits) {
                return Err(StoreError::OutcomeUnknown("the answer was lost".into()));
            }
            Ok(receipt)
        })
    }

    fn save_polls<'a>(
        &'a self,
        inner: &'a dyn Store,
        polls: Vec<(FeedNo, PollState)>,
        pauses: Vec<HostPause>,
    ) -> StoreFuture<'a, ()> {
        self.saves.fetch_add(1, Ordering::Relaxed);
        self.saved_by(inner.save_polls(polls, pauses))
    }

    fn note_polls<'a>(
        &'a self,
        inner: &'a dyn Store,
        polls: Vec<(FeedNo, PollState)>,
    ) -> StoreFuture<'a, ()> {
        self.notes.fetch_add(1, Ordering::Relaxed);
        self.saved_by(inner.note_polls(polls))
    }

    fn walks<'a>(
        &'a self,
        inner: &'a dyn Store,
        after: Option<FeedNo>,
        max: usize,
    ) -> StoreFuture<'a, Vec<(FeedNo, ArchiveWalk)>> {
        if take(&self.failing_walks) {
            return Box::pin(async { Err(StoreError::Away("told to".into())) });
        }
        inner.walks(after, max)
    }

    fn condition(&self, inner: &dyn Store) -> StoreCondition {
        if !self.outage.load(Ordering::Relaxed) {
            return inner.condition();
        }
        StoreCondition::Away(Outage {
            cause: "told to".into(),
            since: Stamp::ZERO,
            remedy: Remedy::TriesAgain,
        })
    }

    fn figures(&self, inner: &dyn Store) -> FileFigures {
        FileFigures {
            faults: self.faults.load(Ordering::Relaxed),
            ..inner.figures()
        }
    }

    fn polls_gather(&self, _: &dyn Store) -> Duration {
        Duration::from_secs(self.gather_secs.load(Ordering::Relaxed))
    }

    fn ended_uncleanly(&self, inner: &dyn Store) -> bool {
        self.unclean.load(Ordering::Relaxed) || inner.ended_uncleanly()
    }

    fn count_active<'a>(
        &'a self,
        inner: &'a dyn Store,
        feed: FeedNo,
        now: Stamp,
    ) -> StoreFuture<'a, usize> {
        assert!(!take(&self.panics), "told to");
        inner.count_active(feed, now)
    }
}
