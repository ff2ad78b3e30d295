//! Reads an arriving body to its end, so that the outer half of a stack deals in whole bodies. Not a cap: the
//! body it reads has its caps already.

use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use tower::{Layer, Service};

use super::{Exchange, FetchError, Request};

/// Answers only when the last byte is there. Stands inside the deadline, which so covers the body too.
#[derive(Debug, Clone)]
pub struct Collect<S> {
    inner: S,
}

/// Makes [`Collect`].
#[derive(Debug, Clone, Copy)]
pub struct CollectLayer;

impl Collect<()> {
    /// Reads every body whole.
    pub fn layer() -> CollectLayer {
        CollectLayer
    }
}

impl<S> Layer<S> for CollectLayer {
    type Service = Collect<S>;

    fn layer(&self, inner: S) -> Collect<S> {
        Collect { inner }
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
        let answer = self.inner.call(request);
        Box::pin(async move {
            let (parts, body) = answer.await?.into_parts();
            let whole = body.collect().await?.to_bytes();
            Ok(http::Response::from_parts(parts, whole))
        })
    }
}
