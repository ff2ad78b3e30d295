//! So many calls to one host in so much time. Holds a call back or refuses it; never reorders for
//! fairness and never remembers a `Retry-After`, which outlives the process and so belongs to the
//! store.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use thiserror::Error;
use tokio::time::Instant;
use tower::{Layer, Service, layer::layer_fn};

use super::deadline::Expiry;
use super::public_address::is_loopback;
use super::{Exchange, FetchError, Reply, Request, take_ready};
use crate::registrable_domain::registrable_domain;

/// Lets a call pass when its host has room for it, waits for room as long as that makes sense, and
/// refuses when it does not.
#[derive(Debug, Clone)]
pub struct PerHost<S> {
    inner: S,
    governor: Governor,
    wait_max: Duration,
}

/// The count of calls per host. Clones count together, so one governor serves every stack that
/// should share.
#[derive(Debug, Clone)]
pub struct Governor {
    counts: Arc<Counts>,
    large_domains: Arc<HashSet<String>>,
}

#[derive(Debug)]
struct Counts {
    limiter: Limiter,
    /// The count of [`Governor::with_large_domains`], at [`LARGE_TIMES`] the pace.
    large: Limiter,
    admitted: AtomicUsize,
}

/// Times that a large domain is asked as often as another.
const LARGE_TIMES: NonZeroU32 = NonZeroU32::new(10).expect("10 is not 0");

type Limiter =
    RateLimiter<Box<str>, DashMapStateStore<Box<str>>, TokioClock, NoOpMiddleware<Duration>>;

/// Mark of a request by somebody who keeps a pace of his own: at this machine no other one holds.
#[derive(Debug, Clone, Copy)]
pub struct OwnPace;

/// There was no room for the call in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("held back: this host was asked often enough")]
pub struct Throttled {
    /// Time until there may be room.
    pub wait: Duration,
}

impl From<Throttled> for FetchError {
    fn from(Throttled { wait }: Throttled) -> Self {
        Self::Throttled { wait }
    }
}

impl<S> PerHost<S> {
    /// Calls to one host share its room in `governor`; each waits for `wait_max` in all, or less
    /// when it expires earlier (see [`Expiry`]).
    pub fn layer(governor: Governor, wait_max: Duration) -> impl Layer<S, Service = Self> {
        layer_fn(move |inner| Self {
            inner,
            governor: governor.clone(),
            wait_max,
        })
    }
}

impl<S: Exchange> Service<Request> for PerHost<S> {
    type Response = Reply;
    type Error = FetchError;
    type Future = BoxFuture<'static, Result<Reply, FetchError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FetchError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let governor = self.governor.clone();
        let mut until = Instant::now() + self.wait_max;
        if let Some(Expiry(expiry)) = request.extensions().get() {
            until = until.min(*expiry);
        }
        let mut inner = take_ready(&mut self.inner);
        Box::pin(async move {
            let host = request.uri().host().unwrap_or_default();
            // A redirect may have led elsewhere.
            let is_paced = request.extensions().get::<OwnPace>().is_none() || !is_loopback(host);
            if is_paced {
                governor.admit(&registrable_domain(host), until).await?;
            }
            inner.call(request).await
        })
    }
}

impl Governor {
    /// `burst` calls at once, then `per_sec` a second.
    pub fn new(burst: NonZeroU32, per_sec: NonZeroU32) -> Self {
        let clock = TokioClock {
            start: Instant::now(),
        };
        let limiter = |times: NonZeroU32| {
            let (per_sec, burst) = (per_sec.saturating_mul(times), burst.saturating_mul(times));
            let quota = Quota::per_second(per_sec).allow_burst(burst);
            RateLimiter::dashmap_with_clock(quota, clock)
        };
        Self {
            counts: Arc::new(Counts {
                limiter: limiter(NonZeroU32::MIN),
                large: limiter(LARGE_TIMES),
                admitted: AtomicUsize::new(0),
            }),
            large_domains: Arc::default(),
        }
    }

    /// The same, at which these registered domains have ten times the room.
    #[must_use]
    pub fn with_large_domains(self, large_domains: Arc<HashSet<String>>) -> Self {
        Self {
            large_domains,
            ..self
        }
    }

    /// Waits for room at a registered domain, at most `until` then. All hosts of one owner share it,
    /// and ports do not count, as it is the machine that is spared.
    pub async fn admit(&self, domain: &str, until: Instant) -> Result<(), Throttled> {
        let key: Box<str> = domain.into();
        let limiter = if self.large_domains.contains(domain) {
            &self.counts.large
        } else {
            &self.counts.limiter
        };
        self.sweep();
        loop {
            let Err(not_until) = limiter.check_key(&key) else {
                return Ok(());
            };
            let wait = not_until.wait_time_from(limiter.clock().now());
            if Instant::now() + wait >= until {
                return Err(Throttled { wait });
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Lets so many calls of one key pass together, or none of them. Never waits.
    pub fn admit_now(&self, key: &str, calls: NonZeroU32) -> Result<(), Throttled> {
        let limiter = &self.counts.limiter;
        self.sweep();
        match limiter.check_key_n(&key.into(), calls) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(not_until)) => Err(Throttled {
                wait: not_until.wait_time_from(limiter.clock().now()),
            }),
            // More at once than ever pass.
            Err(_) => Err(Throttled { wait: NEVER }),
        }
    }

    /// Forgets now and then the hosts whose room is full again: they are as good as new.
    fn sweep(&self) {
        let admitted = self.counts.admitted.fetch_add(1, Ordering::Relaxed);
        if admitted % SWEEP_CALLS == SWEEP_CALLS - 1 {
            self.counts.limiter.retain_recent();
            self.counts.large.retain_recent();
        }
    }
}

impl Default for Governor {
    /// Burst 10, then one a second: our promise to every publisher.
    fn default() -> Self {
        Self::new(NonZeroU32::new(10).expect("10 is not 0"), NonZeroU32::MIN)
    }
}

/// The wait of those who ask for more at once than there ever is.
const NEVER: Duration = Duration::from_secs(3600);
/// Calls between two sweeps, and so about how many hosts at rest are remembered at most.
const SWEEP_CALLS: usize = 1024;

/// tokio's clock, so that the count and the waits agree, paused or not.
#[derive(Debug, Clone, Copy)]
struct TokioClock {
    start: Instant,
}

impl Clock for TokioClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.start.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::super::deadline::Deadline;
    use super::super::testing::{answering, body_of, get};
    use super::*;
    use futures_util::future::join_all;
    use std::sync::Mutex;
    use tower::{ServiceBuilder, ServiceExt};

    /// Sends one request to each URL at once; the seconds at which they passed, and how many were
    /// refused.
    async fn passed_at(urls: &[&str], wait_max_secs: u64, deadline_secs: u64) -> (Vec<u64>, usize) {
        let start = Instant::now();
        let passed = Arc::new(Mutex::new(Vec::new()));
        let log = passed.clone();
        let stack = ServiceBuilder::new()
            .layer(Deadline::layer(Duration::from_secs(deadline_secs)))
            .layer(PerHost::layer(
                Governor::default(),
                Duration::from_secs(wait_max_secs),
            ))
            .service(answering(move |_| {
                log.lock()
                    .unwrap()
                    .push(start.elapsed().as_secs_f64().round() as u64);
                Ok(http::Response::new(body_of(&[])))
            }));
        let answers = join_all(urls.iter().map(|url| stack.clone().oneshot(get(url)))).await;
        let refused = answers
            .iter()
            .filter(|a| matches!(a, Err(FetchError::Throttled { .. })))
            .count();
        assert_eq!(
            refused,
            answers.iter().filter(|a| a.is_err()).count(),
            "only throttled calls fail"
        );
        let passed = passed.lock().unwrap().clone();
        (passed, refused)
    }

    #[tokio::test(start_paused = true)]
    async fn ten_calls_pass_at_once_and_then_one_a_second() {
        let (passed, refused) = passed_at(&["http://a.example/"; 14], 60, 60).await;
        assert_eq!(passed, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
        assert_eq!(refused, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_domain_has_ten_times_the_room() {
        let large = Arc::new(HashSet::from(["large.example".to_owned()]));
        let governor = Governor::default().with_large_domains(large);
        for (domain, expect) in [("large.example", 100), ("other.example", 10)] {
            let mut passed = 0;
            while governor.admit(domain, Instant::now()).await.is_ok() {
                passed += 1;
            }
            assert_eq!(passed, expect, "{domain}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_hosts_of_one_owner_are_counted_together_and_others_apart() {
        let blogs: Vec<String> = (0..12).map(|n| format!("http://b{n}.owner.com/")).collect();
        let blogs: Vec<&str> = blogs.iter().map(String::as_str).collect();
        assert_eq!(passed_at(&blogs, 60, 60).await.0.last(), Some(&2));
        let pages: Vec<String> = (0..12).map(|n| format!("http://p{n}.github.io/")).collect();
        let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
        assert_eq!(passed_at(&pages, 60, 60).await.0, [0; 12]);
    }

    #[tokio::test(start_paused = true)]
    async fn hosts_are_counted_apart_whatever_their_spelling_and_port() {
        let mut urls = vec!["http://a.example/"; 4];
        urls.extend(["http://A.Example:8080/x"; 4]);
        urls.extend(["https://a.example./y"; 3]);
        urls.extend(["http://b.example/"; 10]);
        let (passed, _) = passed_at(&urls, 60, 60).await;
        assert_eq!(passed.iter().filter(|secs| **secs == 0).count(), 20);
        assert_eq!(passed.last(), Some(&1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_would_wait_too_long_is_refused_and_not_queued() {
        assert_eq!(passed_at(&["http://a.example/"; 20], 3, 60).await.1, 8); // 10 at once, then 2 before 3 s.
    }

    #[tokio::test(start_paused = true)]
    async fn hosts_at_rest_are_forgotten() {
        let governor = Governor::default();
        for n in 0..10 * SWEEP_CALLS {
            governor
                .admit(&format!("{n}.example"), Instant::now())
                .await
                .unwrap();
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        let remembered = governor.counts.limiter.len();
        assert!(remembered <= 2 * SWEEP_CALLS, "{remembered}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_never_reaches_the_deadline() {
        assert_eq!(passed_at(&["http://a.example/"; 20], 60, 5).await.1, 6); // 10 at once, then 4 before 5 s.
    }

    #[tokio::test(start_paused = true)]
    async fn who_keeps_a_pace_of_his_own_is_not_held_back_at_this_machine() {
        let check = async |url: &str, expect: usize| {
            let mut stack = ServiceBuilder::new()
                .layer(PerHost::layer(Governor::default(), Duration::ZERO))
                .service(answering(|_| Ok(http::Response::new(body_of(&[])))));
            let mut passed = 0;
            for _ in 0..30 {
                let mut request = get(url);
                request.extensions_mut().insert(OwnPace);
                let ready = stack.ready().await.unwrap();
                passed += usize::from(ready.call(request).await.is_ok());
            }
            assert_eq!(passed, expect, "{url}");
        };
        check("http://127.0.0.1:8080/feed", 30).await;
        check("http://[::1]/feed", 30).await;
        check("http://localhost/feed", 30).await;
        // The publisher's protection, wherever a redirect led.
        check("http://192.168.0.9/feed", 10).await;
        check("http://localhost.example/feed", 10).await;
    }
}
