//! A disk under a store in memory, for tests that end a whole everfeed and begin it again: it keeps
//! what was synced, and a crash may take back what was not. Not the rows.

use super::{Memory, MemoryState, Replaced, put_back};
use crate::{
    clock::Clock,
    feed::stamp::Stamp,
    locks::lock,
    store::{
        StoreCondition, StoreError, StoreFuture,
        clock_guard::ClockGuard,
        content_mark::ContentMark,
        new_generation::renew_feeds,
        rows::{Writing, subscriptions},
    },
};
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex};
use tokio::sync::{Mutex as Turn, oneshot};

/// The rows of a store, which outlive it.
#[derive(Clone, Default)]
pub struct Disk(Arc<Mutex<MemoryState>>);

/// A copy of all rows, as a backup is.
#[derive(Clone)]
pub struct DiskCopy(MemoryState);

/// The time that a disk takes for a transaction, and its faults.
pub trait DiskPace: Send + Sync + 'static {
    /// Ends when a transaction is made. With an error none is.
    fn begin(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Ends when a transaction that was made is answered. With an error nobody is told that it was.
    fn end(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Ends when something was read, or when what was read is told.
    fn read(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// The condition of the store on it.
    fn condition(&self) -> StoreCondition {
        StoreCondition::Sound
    }
}

/// A transaction, so that it can be taken back.
#[derive(Clone)]
pub(super) struct Unsynced {
    pub(super) replaced: Vec<Replaced>,
    /// The guard of the clock and the mark before it.
    pub(super) guard: ClockGuard,
    pub(super) content: ContentMark,
    /// True where the transaction was on the disk before it was answered.
    pub(super) is_synced: bool,
}

/// The one writer of a disk.
pub(super) struct Writer {
    pace: Arc<dyn DiskPace>,
    turn: Arc<Turn<()>>,
}

impl Memory {
    /// The store on a disk. Its writes go on to their end on the present runtime, whoever waits for
    /// them.
    pub fn on(disk: &Disk, clock: Arc<dyn Clock>, pace: Arc<dyn DiskPace>) -> Self {
        let turn = Arc::default();
        lock(&disk.0).is_closed = false;
        Self {
            clock,
            state: disk.0.clone(),
            pace: Some(Writer { pace, turn }),
        }
    }
}

impl Disk {
    /// Number of transactions that a crash may take back.
    pub fn unsynced(&self) -> usize {
        lock(&self.0).unsynced.len()
    }

    /// Ends the store on it as a crash does that takes back so many of the transactions that were
    /// not synced, the last ones.
    pub fn crash(&self, lost: usize) {
        let mut state = lock(&self.0);
        for _ in 0..lost {
            let Some(last) = state.unsynced.pop() else {
                break;
            };
            (state.guard, state.content) = (last.guard, last.content);
            put_back(&mut state.tables, last.replaced);
        }
        state.unsynced.clear();
        state.ended_uncleanly = true;
    }

    /// A copy of what is on it now.
    pub fn copy(&self) -> DiskCopy {
        DiskCopy(lock(&self.0).clone())
    }

    /// Puts a copy in the place of what is on it: each feed begins a new generation, as after
    /// `everfeed restore`.
    pub fn restore(&self, copy: &DiskCopy, now: Stamp) -> Result<(), StoreError> {
        let mut state = lock(&self.0);
        let left = state.content;
        *state = copy.0.clone();
        state.unsynced.clear();
        state.ended_uncleanly = true;
        let until = ContentMark::generation_after(Some(&left), now);
        let content = state.content.restored(Some(&left), until);
        state.write(now, &mut |writing: &mut Writing<'_>| {
            let tx = writing.change();
            renew_feeds(tx, content.last_t)?;
            subscriptions::set_back(tx)
        })?;
        state.content = content;
        Ok(())
    }
}

impl Writer {
    pub(super) fn condition(&self) -> StoreCondition {
        self.pace.condition()
    }

    /// A read in its time: the state that it reads may be old when it is told.
    pub(super) fn read<'a, T: Send + 'a>(&self, read: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        let pace = self.pace.clone();
        Box::pin(async move {
            pace.read().await;
            let answer = read.await;
            pace.read().await;
            answer
        })
    }

    /// Writes in the turn of the writer. The end of a write does not depend on who waits for it.
    pub(super) fn write<T: Send + 'static>(
        &self,
        clock: Arc<dyn Clock>,
        state: Arc<Mutex<MemoryState>>,
        mut work: impl FnMut(&mut Writing<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let (pace, turn) = (self.pace.clone(), self.turn.clone());
        Box::pin(async move {
            let (tell, told) = oneshot::channel();
            tokio::spawn(async move {
                let _turn = turn.lock().await;
                let written = async {
                    if lock(&state).is_closed {
                        return Err(StoreError::Closed);
                    }
                    pace.begin().await?;
                    let now = Stamp::from_micros(clock.now_us());
                    let done = lock(&state).write_late(now, &mut work)?;
                    pace.end().await?;
                    Ok(done)
                };
                // Nobody there to hear it: the write stands all the same.
                let _ = tell.send(written.await);
            });
            let cut_off = || StoreError::OutcomeUnknown("the store has ended".to_owned());
            told.await.unwrap_or_else(|_| Err(cut_off()))
        })
    }
}

impl MemoryState {
    /// Does work in a transaction, and keeps what a crash would take back.
    fn write_late<T>(
        &mut self,
        now: Stamp,
        work: &mut impl FnMut(&mut Writing<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (answer, made) = self.write(now, work)?;
        if made.is_synced {
            // With it everything before is on the disk.
            self.unsynced.clear();
        } else if !made.replaced.is_empty() {
            self.unsynced.push(made);
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::Manual,
        feed::schedule::PollState,
        store::traits::{CatalogStore as _, Feeds as _, Polls as _},
    };

    const NOW_US: u64 = 1_780_272_000_000_000;

    /// A disk that takes no time.
    struct Prompt;

    impl DiskPace for Prompt {
        fn begin(&self) -> BoxFuture<'_, Result<(), StoreError>> {
            Box::pin(async { Ok(()) })
        }

        fn end(&self) -> BoxFuture<'_, Result<(), StoreError>> {
            Box::pin(async { Ok(()) })
        }
    }

    fn store(disk: &Disk) -> Memory {
        Memory::on(disk, Arc::new(Manual::at(NOW_US)), Arc::new(Prompt))
    }

    #[tokio::test]
    async fn a_crash_takes_back_what_was_not_synced_and_nothing_else() {
        let disk = Disk::default();
        let blog = store(&disk).register("blog", "blog").await.unwrap();
        let state = PollState::unpolled("http://blog.example/feed");
        store(&disk)
            .note_polls(vec![(blog.no, state)])
            .await
            .unwrap();
        assert_eq!(disk.unsynced(), 1);
        disk.crash(1);
        assert_eq!(store(&disk).poll(blog.no).await.unwrap(), None);
        assert!(store(&disk).feed(blog.no).await.is_ok(), "it was synced");
    }

    #[tokio::test]
    async fn a_copy_that_is_put_back_begins_new_generations() {
        let disk = Disk::default();
        let blog = store(&disk).register("blog", "blog").await.unwrap();
        let copy = disk.copy();
        let other = store(&disk).register("other", "other").await.unwrap();
        disk.restore(&copy, Stamp::from_micros(NOW_US)).unwrap();
        let restored = store(&disk).feed(blog.no).await.unwrap();
        assert_ne!(restored.head().generation, blog.head().generation);
        assert!(store(&disk).feed(other.no).await.is_err());
    }
}
