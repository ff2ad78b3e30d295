//! A publisher without a network for the tests of ingest: the real client stack over a script.
//! Compiled for tests only.

use super::{
    Context, FeedSpec, PollSettings, Poller, Upstream,
    checks::{Check, Checked},
    polls::{Poll, Polled},
};
use crate::{
    clock::{Clock, Paused},
    feed::{record::FeedNo, schedule::PollState},
    layers::{self, ClientConfig, FetchError, Governor, Reply, Request, client::upstream_over},
    notify::Notify,
    store::{Store, memory::Memory, wrapped::Wrapped},
    telemetry::Metrics,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Response};
use http_body_util::{BodyExt, Full};
use std::{
    num::NonZeroU32,
    sync::{Arc, Mutex},
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use url::Url;

mod trouble;

pub(super) use trouble::Trouble;

/// 2026-02-02T02:40:00Z, a Monday.
pub(super) const START_SECS: u64 = 1_770_000_000;

/// The answer of a script.
pub(super) type Scripted = Response<&'static str>;

/// A request as the publisher saw it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// Seconds since the start.
    pub(super) at_secs: u64,
    pub(super) url: String,
    pub(super) headers: HeaderMap,
}

/// A publisher, the store and everything in between.
pub(super) struct PollerRig {
    pub(super) store: Arc<dyn Store>,
    pub(super) notify: Arc<Notify>,
    pub(super) context: Context,
    pub(super) upstream: Upstream,
    pub(super) seen: Arc<Mutex<Vec<Seen>>>,
}

impl PollerRig {
    /// A house whose publisher answers by this script: the number of the request, counted from 0,
    /// and the request.
    pub(super) fn new<A>(
        answer: impl Fn(usize, &Request) -> A + Clone + Send + Sync + 'static,
    ) -> Self
    where
        A: Future<Output = Scripted> + Send + 'static,
    {
        let clock = Arc::new(Paused::from(START_SECS * 1_000_000));
        Self::with_store(answer, Arc::new(Memory::new(clock.clone())), clock)
    }

    /// The same with a store that gets into trouble.
    pub(super) fn in_trouble<A>(
        answer: impl Fn(usize, &Request) -> A + Clone + Send + Sync + 'static,
        trouble: &Arc<Trouble>,
    ) -> Self
    where
        A: Future<Output = Scripted> + Send + 'static,
    {
        let clock = Arc::new(Paused::from(START_SECS * 1_000_000));
        let memory = Memory::new(clock.clone());
        Self::with_store(
            answer,
            Arc::new(Wrapped {
                inner: Box::new(memory),
                tap: trouble.clone(),
            }),
            clock,
        )
    }

    /// The same with any store and clock.
    pub(super) fn with_store<A>(
        answer: impl Fn(usize, &Request) -> A + Clone + Send + Sync + 'static,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
    ) -> Self
    where
        A: Future<Output = Scripted> + Send + 'static,
    {
        let seen = Arc::new(Mutex::new(Vec::<Seen>::new()));
        let (log, wall) = (seen.clone(), clock.clone());
        let wire = tower::service_fn(move |request: Request| {
            let mut log = log.lock().unwrap();
            let answer = answer(log.len(), &request);
            let at_secs = wall.now_us() / 1_000_000 - START_SECS;
            log.push(Seen {
                at_secs,
                url: request.uri().to_string(),
                headers: request.headers().clone(),
            });
            let reply = async move { Ok(answer.await.map(whole)) };
            Box::pin(reply) as BoxFuture<'static, Result<Reply, FetchError>>
        });
        let many = NonZeroU32::new(1_000_000).unwrap();
        let client = upstream_over(&ClientConfig::default(), Governor::new(many, many), wire);
        let contact = Url::parse("https://me.example/").unwrap();
        let upstream = Upstream::new(client, contact, clock.clone());
        let notify = Arc::new(Notify::new());
        let context = Context {
            computing: super::Computing::default(),
            store: store.clone(),
            notify: notify.clone(),
            clock,
            jitter: || 0.0,
            metrics: Metrics::default(),
            platforms: super::platform::embedded(),
            config: Arc::default(),
            nets: Default::default(),
            happenings: Default::default(),
        };
        Self {
            store,
            notify,
            context,
            upstream,
            seen,
        }
    }

    /// Registers a feed.
    pub(super) async fn feed(
        &self,
        name: &str,
        url: &str,
        min_secs: u64,
        max_secs: u64,
    ) -> FeedSpec {
        let no = self.store.register(name, name).await.unwrap().no;
        let mut feed = FeedSpec::new(no, name, Url::parse(url).unwrap());
        feed.poll = PollSettings {
            min_secs: Some(min_secs),
            max_secs,
        };
        feed
    }

    /// Polls a feed once.
    pub(super) async fn poll(&self, feed: &FeedSpec, state: &PollState) -> Polled {
        let stop = CancellationToken::new();
        Poll::new(&self.context, feed, state)
            .run(&self.upstream, &stop)
            .await
            .expect("nobody stops it")
    }

    /// Makes one permalink check.
    pub(super) async fn check(&self, feed: &FeedSpec, state: &PollState) -> Checked {
        let stop = CancellationToken::new();
        Check::new(&self.context, feed, state)
            .run(&self.upstream, &stop)
            .await
            .expect("nobody stops it")
    }

    /// Starts a poller.
    pub(super) async fn start<'a>(&self, feeds: impl IntoIterator<Item = &'a FeedSpec>) -> Running {
        let feeds = feeds.into_iter().cloned().collect();
        let poller = Poller::load(self.context.clone(), self.upstream.clone(), feeds)
            .await
            .unwrap();
        let stop = CancellationToken::new();
        let (running, token) = (poller.clone(), stop.clone());
        let task = tokio::spawn(async move { running.run(token).await.unwrap() });
        Running { poller, stop, task }
    }

    /// Somebody says that a feed has changed.
    pub(super) fn hint(&self, feed: FeedNo) -> crate::notify::HintFate {
        self.notify.hint(feed, self.context.now())
    }

    /// The times of the requests so far, in seconds since the start.
    pub(super) fn requests_at(&self) -> Vec<u64> {
        self.seen
            .lock()
            .unwrap()
            .iter()
            .map(|seen| seen.at_secs)
            .collect()
    }

    pub(super) async fn total(&self, feed: FeedNo) -> u64 {
        self.store.feed(feed).await.unwrap().items.total
    }
}

/// A poller at work.
pub(super) struct Running {
    pub(super) poller: Poller,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    pub(super) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

fn whole(body: &'static str) -> layers::Body {
    Full::new(Bytes::from_static(body.as_bytes()))
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// An RSS document with one item.
pub(super) const ONE: &str = "<rss version=\"2.0\"><channel><title>t</title><item><guid>1</guid><title>one</title></item></channel></rss>";

/// The same with another item before it.
pub(super) const TWO: &str = "<rss version=\"2.0\"><channel><title>t</title><item><guid>2</guid><title>two</title></item><item><guid>1</guid><title>one</title></item></channel></rss>";

/// 200 with a body.
pub(super) fn ok(body: &'static str) -> Scripted {
    Response::new(body)
}

/// Another status, without a body.
pub(super) fn status(status: u16, headers: &[(&'static str, &'static str)]) -> Scripted {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body("").unwrap()
}

/// 200 with headers.
pub(super) fn ok_with(body: &'static str, headers: &[(&'static str, &'static str)]) -> Scripted {
    status(200, headers).map(|_| body)
}
