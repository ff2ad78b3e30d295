//! Reads an arriving body to its end, so that the outer half of a stack deals in whole bodies. Not
//! a cap: the body it reads has its caps already.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};
use tower::{Layer, Service, layer::layer_fn};

use super::deadline::Expiry;
use super::{Body, Exchange, FetchError, Request};
use crate::byte_budget::{ByteBudget, ByteLease};

/// Answers only when the last byte is there. Stands inside the deadline, which so covers the body
/// too.
#[derive(Debug, Clone)]
pub struct Collect<S> {
    inner: S,
    read: Reading,
    memory: BodyBudget,
}

/// Response extension: the memory that a large body was read into. Whoever makes more of the body,
/// as a parser does, keeps it until that is done.
#[derive(Debug, Clone)]
pub struct BodyMemory {
    _leases: Arc<Vec<ByteLease>>,
}

/// The memory for bodies.
#[derive(Debug, Clone)]
struct BodyBudget {
    /// Memory for bodies of middle size, and for the beginning of large ones.
    middle: Arc<ByteBudget>,
    /// Memory for large bodies. It is another one, or bodies that have begun would wait for each
    /// other.
    large: Arc<ByteBudget>,
    /// Bytes of a body beyond the middle size at most.
    large_bytes_max: usize,
}

/// Bytes of a body that need no lease: nearly all feeds are smaller.
const SMALL_BYTES: usize = 256 << 10;
/// Bytes of a body of middle size, leased at once.
const MIDDLE_BYTES: usize = 2 << 20;
/// Time for which a body waits at most for the memory that others hold.
const MEMORY_WAIT: Duration = Duration::from_secs(20);

/// The bodies that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Whole,
    WholeButOfPosts,
}

/// Time in which the body of an answer to a POST may come, so that its connection can be used
/// again.
const POST_BODY: Duration = Duration::from_millis(250);
/// Time before the expiry of a call at which its answer is given, so that it is not lost over its
/// body.
const BEFORE_EXPIRY: Duration = Duration::from_millis(20);

impl<S> Collect<S> {
    /// Reads every body whole. Of larger ones only so many are read at once that their bytes fit in
    /// `bytes_max`; one that waits for its place too long is given up, and the fault is ours.
    /// `body_bytes_max` is what one may have at most.
    pub fn layer(bytes_max: usize, body_bytes_max: u64) -> impl Layer<S, Service = Self> {
        Self::with(Reading::Whole, BodyBudget::new(bytes_max, body_bytes_max))
    }

    /// Reads every body whole but those of answers to POSTs: what these say is in their heads. Of
    /// their bodies comes what comes at once, and nothing that becomes of them is an error.
    pub fn heads_of_posts(body_bytes_max: u64) -> impl Layer<S, Service = Self> {
        Self::with(Reading::WholeButOfPosts, BodyBudget::new(0, body_bytes_max))
    }

    fn with(read: Reading, memory: BodyBudget) -> impl Layer<S, Service = Self> {
        layer_fn(move |inner| Self {
            inner,
            read,
            memory: memory.clone(),
        })
    }
}

impl BodyBudget {
    fn new(bytes_max: usize, body_bytes_max: u64) -> Self {
        let body_bytes_max = usize::try_from(body_bytes_max).unwrap_or(usize::MAX);
        let large_bytes_max = body_bytes_max.saturating_sub(MIDDLE_BYTES);
        let middle = ByteBudget::new(bytes_max.saturating_sub(large_bytes_max).max(MIDDLE_BYTES));
        let large = middle.beside(large_bytes_max);
        Self {
            middle: Arc::new(middle),
            large: Arc::new(large),
            large_bytes_max,
        }
    }

    /// Reads a body to its end, in one piece of memory however it was cut on its way.
    async fn read(&self, mut body: Body) -> Result<(Bytes, Option<BodyMemory>), FetchError> {
        let (mut whole, mut leases) = (BytesMut::new(), Vec::new());
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else {
                continue;
            };
            let bytes = whole.len() + data.len();
            if bytes > SMALL_BYTES && leases.is_empty() {
                leases.push(lease(&self.middle, MIDDLE_BYTES).await?);
            }
            if bytes > MIDDLE_BYTES && leases.len() == 1 {
                leases.push(lease(&self.large, self.large_bytes_max).await?);
            }
            whole.extend_from_slice(&data);
        }
        let memory = (!leases.is_empty()).then(|| BodyMemory {
            _leases: Arc::new(leases),
        });
        Ok((whole.freeze(), memory))
    }
}

async fn lease(budget: &ByteBudget, bytes: usize) -> Result<ByteLease, FetchError> {
    budget
        .lease(bytes, MEMORY_WAIT)
        .await
        .ok_or(FetchError::Crowded)
}

impl<S: Exchange> Service<Request> for Collect<S> {
    type Response = http::Response<Bytes>;
    type Error = FetchError;
    type Future = BoxFuture<'static, Result<Self::Response, FetchError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FetchError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let is_post = request.method() == http::Method::POST;
        let expiry = request
            .extensions()
            .get()
            .map(|Expiry(at)| *at - BEFORE_EXPIRY);
        let (read, memory) = (self.read, self.memory.clone());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let (mut parts, body) = answer.await?.into_parts();
            if is_post && read == Reading::WholeButOfPosts {
                let until = Instant::now() + POST_BODY;
                let until = expiry.map_or(until, |expiry| until.min(expiry));
                let whole = match timeout_at(until, body.collect()).await {
                    Ok(Ok(whole)) => whole.to_bytes(),
                    _ => Bytes::new(),
                };
                return Ok(http::Response::from_parts(parts, whole));
            }
            let (whole, memory) = memory.read(body).await?;
            if let Some(memory) = memory {
                parts.extensions.insert(memory);
            }
            Ok(http::Response::from_parts(parts, whole))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{answering, chunked, get};
    use super::*;
    use tower::{ServiceBuilder, ServiceExt};

    const LARGE_BYTES: usize = 3 << 20;

    #[tokio::test(start_paused = true)]
    async fn large_bodies_are_read_one_after_the_other() {
        let large = answering(|_| {
            Ok(http::Response::new(chunked(
                vec![b'x'; LARGE_BYTES],
                64 << 10,
            )))
        });
        let stack = ServiceBuilder::new()
            .layer(Collect::layer(LARGE_BYTES, LARGE_BYTES as u64))
            .service(large);
        let first = stack
            .clone()
            .oneshot(get("http://a.example/"))
            .await
            .unwrap();
        assert_eq!(first.body().len(), LARGE_BYTES);
        let crowded = stack
            .clone()
            .oneshot(get("http://a.example/"))
            .await
            .unwrap_err();
        assert!(matches!(crowded, FetchError::Crowded), "{crowded:?}");
        let (parts, body) = first.into_parts();
        drop(body);
        assert!(
            stack
                .clone()
                .oneshot(get("http://a.example/"))
                .await
                .is_err(),
            "it is still being parsed"
        );
        drop(parts);
        assert!(stack.oneshot(get("http://a.example/")).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn large_bodies_that_have_begun_do_not_wait_for_each_other() {
        let large = answering(|_| {
            Ok(http::Response::new(chunked(
                vec![b'x'; LARGE_BYTES],
                64 << 10,
            )))
        });
        let layer = Collect::layer(4 * MIDDLE_BYTES, LARGE_BYTES as u64);
        let stack = ServiceBuilder::new().layer(layer).service(large);
        let reads = (0..8).map(|_| {
            let read = stack.clone().oneshot(get("http://a.example/"));
            async { read.await.map(drop) }
        });
        assert!(
            futures_util::future::join_all(reads)
                .await
                .iter()
                .all(Result::is_ok)
        );
    }

    #[tokio::test]
    async fn a_body_is_one_piece_however_it_was_cut() {
        let small = answering(|_| Ok(http::Response::new(chunked(vec![b'x'; 1000], 1))));
        let stack = ServiceBuilder::new()
            .layer(Collect::layer(1, 1))
            .service(small);
        let reply = stack.oneshot(get("http://a.example/")).await.unwrap();
        assert!(reply.body().len() == 1000 && reply.extensions().get::<BodyMemory>().is_none());
    }
}
