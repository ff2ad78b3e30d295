//! Threads that each serve some of the connections by themselves: what is done for a connection is
//! done on one thread, so nobody is woken across threads and nothing is passed between cores. Not
//! what is served.

use std::{
    cell::Cell,
    io,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Serving threads at most. More would not make an old blog faster, and each has connections of its
/// own to the origin.
const THREADS_MAX: usize = 8;

/// Time for which a thread for blocking work waits for more. Such threads take turns: with the 10 s
/// of the library, some requests a second keep the hundreds that a crowd has called for ever.
/// Another thread costs less than a tenth of a millisecond.
const IDLE_TIME: Duration = Duration::from_millis(200);

thread_local! {
    /// Number of this thread among the serving threads, from 1 on; 0 for all others.
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// Builds a runtime whose threads for blocking work go when they are not needed. Their number has
/// the bound of the library, 512: a lookup of a name that no server answers blocks for many
/// seconds, and must not keep reads of the store waiting.
///
/// # Errors
/// The error of the system, which gives no more threads or no more file descriptors.
pub fn build(mut builder: Builder) -> io::Result<Runtime> {
    builder.enable_all().thread_keep_alive(IDLE_TIME).build()
}

/// Threads with a runtime each, which end when this is dropped.
#[derive(Debug, Default)]
pub struct ServingThreads {
    runtimes: Vec<Handle>,
    turn: AtomicUsize,
    _end: Option<DropGuard>,
}

impl ServingThreads {
    /// Starts one thread for each core, eight at most. Under a runtime of a single thread, none:
    /// that is the runtime of a test, and all that it tests must have its clock.
    ///
    /// # Errors
    /// The error of the system, which gives no more threads or no more file descriptors.
    pub fn start() -> io::Result<Self> {
        if Handle::current().runtime_flavor() != RuntimeFlavor::MultiThread {
            return Ok(Self::default());
        }
        let count = thread::available_parallelism()
            .map_or(1, usize::from)
            .min(THREADS_MAX);
        let end = CancellationToken::new();
        let runtimes = (1..=count)
            .map(|number| start_one(number, end.clone()))
            .collect::<io::Result<_>>()?;
        Ok(Self {
            runtimes,
            turn: AtomicUsize::new(0),
            _end: Some(end.drop_guard()),
        })
    }

    /// The thread for the next connection, in turn; the runtime of whoever asks where there are
    /// none.
    pub fn next(&self) -> Handle {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        match self.runtimes.len() {
            0 => Handle::current(),
            count => self.runtimes[turn % count].clone(),
        }
    }
}

fn start_one(number: usize, end: CancellationToken) -> io::Result<Handle> {
    let runtime = build(Builder::new_current_thread())?;
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name(format!("serving-{number}"))
        .spawn(move || {
            NUMBER.set(number);
            runtime.block_on(end.cancelled());
            // What still runs on threads of its own is not waited for.
            runtime.shutdown_background();
        })?;
    Ok(handle)
}

/// A value for each serving thread, and one for all other threads.
#[derive(Debug)]
pub struct PerThread<T>(Box<[T]>);

impl<T> PerThread<T> {
    /// Values that are made alike.
    pub fn new(make: impl FnMut() -> T) -> Self {
        Self(std::iter::repeat_with(make).take(THREADS_MAX + 1).collect())
    }

    /// That of the present thread.
    pub fn here(&self) -> &T {
        &self.0[NUMBER.get()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[tokio::test(flavor = "multi_thread")]
    async fn connections_take_turns_and_each_thread_has_its_own_value() {
        let threads = ServingThreads::start().unwrap();
        let mut made = 0;
        let values = std::sync::Arc::new(PerThread::new(|| {
            made += 1;
            made
        }));
        assert_eq!(*values.here(), 1);
        let mut met = BTreeSet::new();
        for _ in 0..2 * threads.runtimes.len() {
            let values = values.clone();
            met.insert(
                threads
                    .next()
                    .spawn(async move { *values.here() })
                    .await
                    .unwrap(),
            );
        }
        assert_eq!(met, (2..=1 + threads.runtimes.len()).collect());
        let left = threads.next();
        drop(threads);
        let ended = left.spawn(std::future::pending::<()>()).await.unwrap_err();
        assert!(ended.is_cancelled());
    }

    /// Threads of this process with a name.
    fn threads(name: &str) -> usize {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        names.filter(|found| found.trim() == name).count()
    }

    #[test]
    fn threads_for_blocking_work_go_although_there_is_some() {
        const CROWD: usize = 100;
        let mut builder = Builder::new_current_thread();
        builder.thread_name("of-a-crowd");
        let runtime = build(builder).unwrap();
        runtime.block_on(async {
            let all = std::sync::Arc::new(std::sync::Barrier::new(CROWD));
            let crowd = (0..CROWD).map(|_| {
                let all = all.clone();
                tokio::task::spawn_blocking(move || {
                    let counted = all.wait().is_leader().then(|| threads("of-a-crowd"));
                    all.wait();
                    counted
                })
            });
            let counted = futures_util::future::try_join_all(crowd.collect::<Vec<_>>())
                .await
                .unwrap();
            assert_eq!(counted.into_iter().flatten().collect::<Vec<_>>(), [CROWD]);
            // 50 pieces of work a second: each thread has its turn within 10 s. A slow machine has
            // more time, and as many turns.
            let mut turns = tokio::time::interval(Duration::from_millis(20));
            for _ in 0..1000 {
                turns.tick().await;
                tokio::task::spawn_blocking(|| ()).await.unwrap();
                if threads("of-a-crowd") <= CROWD / 4 {
                    return;
                }
            }
            panic!("{} threads stay", threads("of-a-crowd"));
        });
    }

    #[tokio::test(start_paused = true)]
    async fn a_runtime_of_a_single_thread_serves_by_itself() {
        let threads = ServingThreads::start().unwrap();
        let before = tokio::time::Instant::now();
        let slept = async { tokio::time::sleep(std::time::Duration::from_secs(1000)).await };
        threads.next().spawn(slept).await.unwrap();
        assert_eq!(before.elapsed().as_secs(), 1000);
    }
}
