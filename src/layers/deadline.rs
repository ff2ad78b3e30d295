//! A limit on the whole of a call, whatever the layers below do with the time. Not the limit of one
//! attempt: that is a plain timeout further in.

use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use thiserror::Error;
use tokio::time::Instant;
use tower::{Layer, Service};

/// Ends a call that has not answered in time, and tells the layers below by when it must have
/// (see [`Expiry`]), so that none of them starts to wait for something that would come too late.
#[derive(Debug, Clone)]
pub struct Deadline<S> {
    inner: S,
    total: Duration,
}

/// Makes [`Deadline`].
#[derive(Debug, Clone, Copy)]
pub struct DeadlineLayer {
    total: Duration,
}

/// Request extension: the instant after which nobody waits for the answer any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry(pub Instant);

/// The time is over.
#[derive(Debug, Clone, Copy, Error)]
#[error("no complete answer within {} s", .after.as_secs_f32())]
pub struct Elapsed {
    pub after: Duration,
}

impl Deadline<()> {
    /// Every call ends after `total` at the latest.
    pub fn layer(total: Duration) -> DeadlineLayer {
        DeadlineLayer { total }
    }
}

impl<S> Layer<S> for DeadlineLayer {
    type Service = Deadline<S>;

    fn layer(&self, inner: S) -> Deadline<S> {
        Deadline {
            inner,
            total: self.total,
        }
    }
}

impl<S, B> Service<http::Request<B>> for Deadline<S>
where
    S: Service<http::Request<B>, Future: Send> + 'static,
    S::Error: From<Elapsed>,
    B: 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<B>) -> Self::Future {
        let after = self.total;
        let expiry = Instant::now() + after;
        request.extensions_mut().insert(Expiry(expiry));
        let answer = self.inner.call(request);
        Box::pin(async move {
            match tokio::time::timeout_at(expiry, answer).await {
                Ok(answer) => answer,
                Err(_) => Err(Elapsed { after }.into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::FetchError;
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
