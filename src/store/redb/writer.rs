//! The one thread that writes: it drains a bounded queue into transactions, each one made durable
//! before anybody is answered (group commit); not what is written.

use super::{
    guarded::{guarded, sheltered},
    open_file::{OpenDatabase, OpenFile},
};
use crate::{
    clock::Clock,
    feed::stamp::Stamp,
    locks::lock,
    store::{
        POLLS_LATE_SECS, StoreError,
        clock_guard::ClockGuard,
        content_mark::ContentMark,
        rows::{
            Writing,
            open_table::{TableEdit as _, TableSource as _},
            tables::META,
        },
    },
};
use redb::{Database, Durability, ReadableDatabase};
use std::{
    mem,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use tokio::{sync::oneshot, task::spawn_blocking};

/// Jobs that may wait; one more is answered with `Away`.
pub(super) const QUEUE_JOBS_MAX: usize = 1024;

/// Jobs in one transaction: many enough to share the price of a sync, few enough to answer soon.
const GROUP_JOBS_MAX: usize = 128;

/// Key in META of the last time recorded.
pub(super) const CLOCK_KEY: &str = "clock";

/// Key in META of the mark of the content.
pub(super) const CONTENT_KEY: &str = "content";

/// Key in META of a value that is written to see whether there is room again, and taken out at
/// once.
const ROOM_KEY: &str = "room";

/// Bytes of that value: as many as an ordinary group of changes, so that an outage does not end
/// only to begin again.
const ROOM_BYTES: usize = 1 << 20;

/// Time after which the file is looked after though nothing is to be written.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Seconds after an unclean end in which nothing is on disk later than it is answered: a process that
/// dies again and again must not forget each time that it has asked a publisher.
const WARY_SECS: u64 = 60;

/// The near end of the queue.
pub(super) struct Writer {
    queue: Mutex<Option<SyncSender<Box<dyn Job>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(file: Arc<OpenFile>, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let open = file.readable()?;
        let guard = stored_guard(&open)?;
        let content = content_mark(&open)?.unwrap_or_default();
        drop(open);
        if let Some(by) = guard.is_ahead_by(Stamp::from_micros(clock.now_us())) {
            tracing::warn!(
                "The store was last written {} s after the present time: the clock ran ahead then, or was set back since. Changes are stored after the last T",
                by.as_secs()
            );
        }
        let (queue, jobs) = sync_channel(QUEUE_JOBS_MAX);
        let wary_secs = if file.ended_uncleanly() { WARY_SECS } else { 0 };
        let late_from = Instant::now() + Duration::from_secs(wary_secs);
        let far = Far {
            file,
            clock,
            guard,
            content,
            wants_rewrite: false,
            unsynced_since: None,
            late_from,
        };
        let thread = thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || far.drain(&jobs));
        let thread =
            thread.map_err(|error| StoreError::Failed(format!("no writer thread: {error}")))?;
        Ok(Self {
            queue: Mutex::new(Some(queue)),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Does this in a transaction and answers when it is durable. It may be done again in another
    /// transaction when something else in the first one failed, so it must depend on nothing but
    /// what it reads there.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Writing<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.enqueue(Box::new(Task {
            work,
            outcome: None,
            reply,
        }))?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    fn enqueue(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        let queue = lock(&self.queue);
        queue
            .as_ref()
            .ok_or(StoreError::Closed)?
            .try_send(job)
            .map_err(|error| match error {
                TrySendError::Full(_) => {
                    StoreError::Away(format!("{QUEUE_JOBS_MAX} changes wait to be written"))
                }
                TrySendError::Disconnected(_) => StoreError::Failed(ENDED.into()),
            })
    }

    /// Takes no more jobs, and waits until those in the queue are done.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        let thread = self.hang_up().ok_or(StoreError::Closed)?;
        match spawn_blocking(move || thread.join()).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(ended()),
        }
    }

    /// Ends the queue. The thread then ends by itself; `None` when that was done before.
    fn hang_up(&self) -> Option<JoinHandle<()>> {
        lock(&self.queue).take();
        lock(&self.thread).take()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Waiting here lets whoever opens the file next find it closed. It is short: the queue is
        // bounded.
        if let Some(thread) = self.hang_up() {
            let _ = thread.join();
        }
    }
}

const ENDED: &str = "the writer thread has ended";

/// The answer to a job that the thread took and did not answer.
fn ended() -> StoreError {
    StoreError::OutcomeUnknown(ENDED.into())
}

/// The mark of the content of a store.
pub(super) fn content_mark(database: &Database) -> Result<Option<ContentMark>, StoreError> {
    let snapshot = database.begin_read()?;
    let meta = snapshot.table(META)?;
    meta.read(CONTENT_KEY, "the mark of the content")
}

pub(super) fn stored_guard(database: &Database) -> Result<ClockGuard, StoreError> {
    let snapshot = database.begin_read()?;
    let meta = snapshot.table(META)?;
    let guard = meta.read(CLOCK_KEY, "the last time recorded")?;
    Ok(guard.unwrap_or_default())
}

/// Something to do in a transaction.
trait Job: Send {
    /// Does it, or does it again. Whether it succeeded.
    fn run(&mut self, writing: &mut Writing<'_>) -> bool;
    /// Answers: as it ended, or that the transaction failed.
    fn answer(self: Box<Self>, failure: Option<StoreError>);
}

struct Task<T, F> {
    work: F,
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for Task<T, F>
where
    T: Send,
    F: FnMut(&mut Writing<'_>) -> Result<T, StoreError> + Send,
{
    fn run(&mut self, writing: &mut Writing<'_>) -> bool {
        self.outcome.insert((self.work)(writing)).is_ok()
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) {
        let outcome = failure
            .map(Err)
            .or(self.outcome)
            .unwrap_or_else(|| Err(ended()));
        // Whoever asked may have gone; what was written stays written.
        let _ = self.reply.send(outcome);
    }
}

/// The far end of the queue.
struct Far {
    file: Arc<OpenFile>,
    clock: Arc<dyn Clock>,
    guard: ClockGuard,
    content: ContentMark,
    /// True once something was committed that must not stay in free pages of the file.
    wants_rewrite: bool,
    /// Time of the first commit that is not on disk yet; `None` when all are.
    unsynced_since: Option<Instant>,
    /// Time from which on a commit may be on disk later.
    late_from: Instant,
}

/// Reason for which a transaction was given up.
enum GivenUp {
    /// One job failed when it had begun to write.
    Job(usize),
    /// One job met damage that redb did not expect; the others are done again on a file that was
    /// opened anew.
    Panic(usize, String),
    /// The transaction failed before it was to be made durable: nothing of it is there.
    All(StoreError),
    /// Making it durable failed: it is there as a whole or not at all.
    Unseen(String),
}

impl From<StoreError> for GivenUp {
    fn from(error: StoreError) -> Self {
        Self::All(error)
    }
}

fn answer_all(group: Vec<Box<dyn Job>>, why: impl Fn() -> StoreError) {
    group.into_iter().for_each(|job| job.answer(Some(why())));
}

impl Far {
    fn drain(mut self, jobs: &Receiver<Box<dyn Job>>) {
        loop {
            match jobs.recv_timeout(self.wait()) {
                Ok(first) => {
                    let mut group = vec![first];
                    group.extend(jobs.try_iter().take(GROUP_JOBS_MAX - 1));
                    self.look_after();
                    self.settle(group);
                }
                Err(RecvTimeoutError::Timeout) => self.look_after(),
                Err(RecvTimeoutError::Disconnected) => {
                    if self.unsynced_since.is_some() {
                        self.sync_late();
                    }
                    return;
                }
            }
            if self.sync_in().is_some_and(|left| left.is_zero()) {
                self.sync_late();
            }
        }
    }

    /// Time for which the queue is waited for.
    fn wait(&self) -> Duration {
        self.sync_in()
            .map_or(LOOK_AFTER, |left| left.min(LOOK_AFTER))
    }

    /// Time until what is not on disk yet is to be; `None` when everything is.
    fn sync_in(&self) -> Option<Duration> {
        let since = self.unsynced_since?;
        Some(Duration::from_secs(POLLS_LATE_SECS).saturating_sub(since.elapsed()))
    }

    /// Has everything on disk that was committed. What fails has been read, and is lost: polls that
    /// changed nothing.
    fn sync_late(&mut self) {
        self.unsynced_since = None;
        let Ok(open) = self.file.writable() else {
            return;
        };
        let synced = sheltered(|| {
            let mut tx = open.begin_write()?;
            tx.set_quick_repair(true);
            tx.edit(META)?.write(CLOCK_KEY, &self.guard)?;
            Ok(tx.commit()?)
        });
        let (generation, fault) = (open.generation(), open.fault().map(str::to_owned));
        drop(open);
        if let Err(error) = synced {
            let cause = fault.unwrap_or_else(|| error.to_string());
            self.renew(generation, &cause);
        }
    }

    /// Looks whether the file is still at its place, and tries to end an outage when that is due.
    fn look_after(&mut self) {
        self.file.look();
        self.file.removed(self.content.store, &[]);
        if !self.file.is_attempt_due() || !self.file.is_in_place() {
            return;
        }
        // An opening that fails has been noted.
        let Ok(open) = self.file.readable() else {
            return;
        };
        let proven = sheltered(|| prove_room(&open));
        let (generation, fault) = (open.generation(), open.fault().map(str::to_owned));
        drop(open);
        match proven {
            Ok(guard) => {
                self.guard = guard;
                self.file.proven();
            }
            Err(error) => {
                let cause = fault.unwrap_or_else(|| error.to_string());
                self.file.write_failed(generation, &cause);
            }
        }
    }

    /// Brings a group to an end. A job that fails halfway is thrown out, and the others are done
    /// again without it.
    fn settle(&mut self, mut group: Vec<Box<dyn Job>>) {
        while !group.is_empty() {
            let open = match self.file.writable() {
                Ok(open) => open,
                Err(error) => {
                    let text = error.to_string();
                    return answer_all(group, || match &error {
                        StoreError::Away(cause) => StoreError::Away(cause.clone()),
                        StoreError::Closed => StoreError::Closed,
                        _ => StoreError::Failed(text.clone()),
                    });
                }
            };
            let attempted = guarded(|| self.attempt(&open, &mut group));
            // Outside of a job, a panic comes from making the transaction durable or from letting
            // it go.
            let attempted = attempted.unwrap_or_else(|panic| Err(GivenUp::Unseen(panic)));
            let (generation, fault) = (open.generation(), open.fault().map(str::to_owned));
            drop(open);
            match attempted {
                Ok(()) => {
                    self.file.committed();
                    if mem::take(&mut self.wants_rewrite) {
                        self.file.rewrite();
                    }
                    return group.into_iter().for_each(|job| job.answer(None));
                }
                Err(GivenUp::Job(at)) => group.remove(at).answer(None),
                Err(GivenUp::Panic(at, panic)) => {
                    group
                        .remove(at)
                        .answer(Some(StoreError::Damaged(panic.clone())));
                    self.renew(generation, &panic);
                }
                Err(GivenUp::All(error)) => {
                    let cause = fault.unwrap_or_else(|| error.to_string());
                    self.renew(generation, &cause);
                    return answer_all(group, || StoreError::Away(cause.clone()));
                }
                Err(GivenUp::Unseen(error)) => {
                    let cause = fault.unwrap_or(error);
                    self.renew(generation, &cause);
                    return answer_all(group, || StoreError::OutcomeUnknown(cause.clone()));
                }
            }
        }
    }

    /// Opens the file anew after a fault.
    fn renew(&mut self, generation: u64, cause: &str) {
        self.unsynced_since = None;
        self.file.write_failed(generation, cause);
        self.file.attempt_now();
        self.look_after();
    }

    /// One transaction for all.
    fn attempt(&mut self, open: &OpenDatabase, group: &mut [Box<dyn Job>]) -> Result<(), GivenUp> {
        let mut tx = open.begin_write().map_err(StoreError::from)?;
        // Opening after a kill then takes no walk over the whole file, which one damaged page would
        // end: redb then opens nothing of it. Only the state that the last commit saved counts, so
        // every commit saves it. It is 6 of the 53 pages that a new item takes in a feed of
        // 100,000, and 3 of 39 in a store of 35 MB.
        tx.set_quick_repair(true);
        let mut touched = false;
        let mut writing = Writing::over(&tx, Stamp::ZERO, self.guard, self.content);
        for (at, job) in group.iter_mut().enumerate() {
            writing.begin_job(Stamp::from_micros(self.clock.now_us()));
            let done =
                guarded(|| job.run(&mut writing)).map_err(|panic| GivenUp::Panic(at, panic))?;
            if let Some(cause) = open.fault() {
                return Err(GivenUp::All(StoreError::Away(cause.to_owned())));
            }
            let wrote = mem::take(&mut writing.touched);
            if wrote && !done {
                return Err(GivenUp::Job(at));
            }
            touched |= wrote;
        }
        let (guard, wants_rewrite) = (writing.guard(), writing.wants_rewrite);
        let is_late = !writing.wants_sync && Instant::now() >= self.late_from;
        let removed = mem::take(&mut writing.removed);
        let content = writing.last_t.map(|_| writing.content());
        if touched || guard != self.guard {
            if is_late {
                tx.set_quick_repair(false);
                tx.set_durability(Durability::None)
                    .map_err(|error| StoreError::Failed(error.to_string()))?;
            }
            tx.edit(META)?.write(CLOCK_KEY, &guard)?;
            if let Some(content) = &content {
                tx.edit(META)?.write(CONTENT_KEY, content)?;
            }
            tx.commit()
                .map_err(|error| GivenUp::Unseen(error.to_string()))?;
            self.unsynced_since = is_late.then(|| self.unsynced_since.unwrap_or_else(Instant::now));
            self.guard = guard;
            if let Some(content) = content {
                self.content = content;
                self.file.mark(&content);
            }
            if !removed.is_empty() {
                self.file.removed(self.content.store, &removed);
            }
            self.wants_rewrite |= wants_rewrite;
        }
        Ok(())
    }
}

/// Commits something of the size of an ordinary group and takes it out again. Tells the last time
/// recorded.
fn prove_room(database: &Database) -> Result<ClockGuard, StoreError> {
    let mut tx = database.begin_write()?;
    tx.set_quick_repair(true);
    tx.edit(META)?.insert(ROOM_KEY, &vec![0; ROOM_BYTES])?;
    tx.commit()?;
    let mut tx = database.begin_write()?;
    tx.set_quick_repair(true);
    tx.edit(META)?.remove(ROOM_KEY)?;
    tx.commit()?;
    stored_guard(database)
}
