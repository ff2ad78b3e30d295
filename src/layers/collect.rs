//! Reads an arriving body to its end, so that the outer half of a stack deals in whole bodies. Not a cap: the
//! body it reads has its caps already.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};
use tower::{Layer, Service};

use super::deadline::Expiry;
use super::{Exchange, FetchError, Request};

/// Answers only when the last byte is there. Stands inside the deadline, which so covers the body too.
#[derive(Debug, Clone)]
pub struct Collect<S> {
    inner: S,
    read: Reading,
}

/// Makes [`Collect`].
#[derive(Debug, Clone, Copy)]
pub struct CollectLayer {
    read: Reading,
}

/// The bodies that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Whole,
    WholeButOfPosts,
}

/// Time in which the body of an answer to a POST may come, so that its connection can be used again.
const POST_BODY: Duration = Duration::from_millis(250);
/// Time before the expiry of a call at which its answer is given, so that it is not lost over its body.
const BEFORE_EXPIRY: Duration = Duration::from_millis(20);

impl Collect<()> {
    /// Reads every body whole.
    pub fn layer() -> CollectLayer {
        CollectLayer { read: Reading::Whole }
    }

    /// Reads every body whole but those of answers to POSTs: what these say is in their heads. Of their bodies comes what
    /// comes at once, and nothing that becomes of them is an error.
    pub fn heads_of_posts() -> CollectLayer {
        CollectLayer { read: Reading::WholeButOfPosts }
    }
}

impl<S> Layer<S> for CollectLayer {
    type Service = Collect<S>;

    fn layer(&self, inner: S) -> Collect<S> {
        Collect { inner, read: self.read }
    }
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
        let expiry = request.extensions().get().map(|Expiry(at)| *at - BEFORE_EXPIRY);
        let read = self.read;
        let answer = self.inner.call(request);
        Box::pin(async move {
            let (parts, body) = answer.await?.into_parts();
            if is_post && read == Reading::WholeButOfPosts {
                let until = Instant::now() + POST_BODY;
                let until = expiry.map_or(until, |expiry| until.min(expiry));
                let whole = match timeout_at(until, body.collect()).await {
                    Ok(Ok(whole)) => whole.to_bytes(),
                    _ => Bytes::new(),
                };
                return Ok(http::Response::from_parts(parts, whole));
            }
            let whole = body.collect().await?.to_bytes();
            Ok(http::Response::from_parts(parts, whole))
        })
    }
}
