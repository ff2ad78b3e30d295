//! A limit on the whole of a call, whatever the layers below do with the time. Not the limit of one
//! attempt: that is a plain timeout further in.

use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use tower::{Layer, Service, layer::layer_fn};

use super::{Awaited, FetchError, Request};

/// Ends a call that has not answered in time, and tells the layers below by when it must have
/// (see [`Expiry`]), so that none of them starts to wait for something that would come too late.
#[derive(Debug, Clone)]
pub struct Deadline<S> {
    inner: S,
    total: Duration,
}

/// Request extension: the instant after which nobody waits for the answer any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry(pub Instant);

impl<S> Deadline<S> {
    /// Every call ends after `total` at the latest.
    pub fn layer(total: Duration) -> impl Layer<S, Service = Self> {
        layer_fn(move |inner| Self { inner, total })
    }
}

impl<S> Service<Request> for Deadline<S>
where
    S: Service<Request, Error = FetchError, Future: Send> + 'static,
{
    type Response = S::Response;
    type Error = FetchError;
    type Future = BoxFuture<'static, Result<S::Response, FetchError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FetchError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let after = self.total;
        let expiry = Instant::now() + after;
        request.extensions_mut().insert(Expiry(expiry));
        let answer = self.inner.call(request);
        Box::pin(async move {
            let awaited = Awaited::Whole;
            match tokio::time::timeout_at(expiry, answer).await {
                Ok(answer) => answer,
                Err(_) => Err(FetchError::Timeout { after, awaited }),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::collect::Collect;
    use super::super::testing::{answering, get, stalling_body};
    use super::*;
    use tower::{ServiceBuilder, ServiceExt};

    #[tokio::test(start_paused = true)]
    async fn the_deadline_covers_a_body_that_never_ends() {
        let stack = ServiceBuilder::new()
            .layer(Deadline::layer(Duration::from_secs(30)))
            .layer(Collect::layer(1 << 20, 1 << 20))
            .service(answering(|_| {
                Ok(http::Response::new(stalling_body("<rss>")))
            }));
        let start = Instant::now();
        let error = stack.oneshot(get("http://a.example/")).await.unwrap_err();
        assert!(
            matches!(error, FetchError::Timeout { after, .. } if after == Duration::from_secs(30)),
            "{error:?}"
        );
        assert_eq!(start.elapsed(), Duration::from_secs(30));
    }

    #[tokio::test(start_paused = true)]
    async fn the_layers_below_know_when_the_time_ends() {
        let stack = ServiceBuilder::new()
            .layer(Deadline::layer(Duration::from_secs(7)))
            .service(answering(|request| {
                assert_eq!(
                    request.extensions().get::<Expiry>(),
                    Some(&Expiry(Instant::now() + Duration::from_secs(7)))
                );
                Ok(http::Response::new(stalling_body("")))
            }));
        stack.oneshot(get("http://a.example/")).await.unwrap();
    }
}
