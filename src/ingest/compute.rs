//! Computing away from the tasks that wait, and leaving it when everfeed stops.

use crate::feed::schedule::Failure;
use std::{future::Future, time::Duration};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Time for which a stop waits for what is computed: nearly all of it takes milliseconds, and a
/// document that was read is not asked for again.
const LEFT_AFTER: Duration = Duration::from_secs(2);

tokio::task_local! {
    /// The stop of the job that runs.
    static STOP: JobStop;
}

/// The stop of a job, and the job's word that it waits for a computation that is left.
#[derive(Clone)]
struct JobStop {
    stop: CancellationToken,
    left: CancellationToken,
}

/// The place where documents are parsed and compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Computing {
    /// The pool for blocking work: a large document takes as long as a page of thousands of
    /// requests.
    #[default]
    Pool,
    /// The task that asks. What happens then does not depend on which thread is faster.
    InPlace,
}

/// Runs `work` on the pool for blocking work, unless it is done in place. A panic in it is one failed job and our fault: what
/// it held is dropped, and what was stored stays. Within a job that is [`stoppable`], a computation
/// that goes on after the stop ends the job.
pub(super) async fn compute<T: Send + 'static>(
    place: Computing,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let broke_off = || Failure::ours("reading the document broke off; this is a bug in everfeed");
    if place == Computing::InPlace {
        let computed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        return computed.map_err(|_| broke_off());
    }
    let span = tracing::Span::current();
    let computed = tokio::task::spawn_blocking(move || span.in_scope(work));
    let stopped = async {
        let Ok(job) = STOP.try_with(JobStop::clone) else {
            return std::future::pending().await;
        };
        job.stop.cancelled().await;
        sleep(LEFT_AFTER).await;
        job.left.cancel();
        std::future::pending().await
    };
    tokio::select! {
        computed = computed => computed.map_err(|_| broke_off()),
        never = stopped => never,
    }
}

/// Runs a job that ends, with `None`, when it waits for a computation while `stop` came: nothing of
/// it is stored, as after a crash. The computation itself goes on, on a thread that nobody waits
/// for.
pub(super) async fn stoppable<T>(
    stop: &CancellationToken,
    job: impl Future<Output = Option<T>>,
) -> Option<T> {
    let left = CancellationToken::new();
    let scoped = STOP.scope(
        JobStop {
            stop: stop.clone(),
            left: left.clone(),
        },
        job,
    );
    tokio::select! {
        biased;
        result = scoped => result,
        () = left.cancelled() => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::schedule::Whose;
    use std::sync::mpsc;

    #[tokio::test]
    async fn a_panic_in_a_parser_is_our_fault_and_nothing_more() {
        for place in [Computing::Pool, Computing::InPlace] {
            let failure = compute(place, || -> () { panic!("as a parser might") })
                .await
                .unwrap_err();
            assert_eq!(failure.whose(), Whose::Ours);
            assert!(failure.to_string().contains("bug in everfeed"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_computation_that_goes_on_after_a_stop_is_left() {
        let (go_on, waits) = mpsc::channel::<()>();
        let stop = CancellationToken::new();
        let job = stoppable(&stop, async {
            let read = compute(Computing::Pool, move || waits.recv().is_err()).await;
            Some(read.is_ok())
        });
        stop.cancel();
        // By hand: while a thread computes, a paused clock stands.
        let (left, ()) = tokio::join!(job, tokio::time::advance(LEFT_AFTER));
        assert_eq!(left, None);
        drop(go_on);
        let quick = stoppable(&stop, async { compute(Computing::Pool, || 1).await.ok() });
        assert_eq!(quick.await, Some(1), "what ends soon is not left");
    }
}
