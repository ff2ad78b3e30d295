//! One span and one debug line per call. Not the log of failures: those are logged once, where they
//! are handled.

use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::time::Instant;
use tower::{Layer, Service, layer::layer_fn};
use tracing::{Instrument, debug, debug_span};

use super::{FetchError, Request, WireBytes};

/// Surrounds a call, waits and retries included. Names the host and nothing else of the URL: paths
/// and queries of callbacks and secret feeds are secrets.
#[derive(Debug, Clone)]
pub struct Trace<S> {
    inner: S,
    direction: &'static str,
}

impl<S> Trace<S> {
    /// `direction` is the word for the other side: `upstream`, `callback` or `authority`.
    pub fn layer(direction: &'static str) -> impl Layer<S, Service = Self> {
        layer_fn(move |inner| Self { inner, direction })
    }
}

impl<S> Service<Request> for Trace<S>
where
    S: Service<Request, Response = http::Response<Bytes>, Error = FetchError, Future: Send>
        + 'static,
{
    type Response = S::Response;
    type Error = FetchError;
    type Future = BoxFuture<'static, Result<S::Response, FetchError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FetchError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let host = request.uri().host().unwrap_or_default().to_owned();
        let span =
            debug_span!("call", direction = self.direction, method = %request.method(), host);
        let answer = span.in_scope(|| self.inner.call(request));
        let start = Instant::now();
        let traced = async move {
            let answer = answer.await;
            let duration_ms = start.elapsed().as_millis() as u64;
            match &answer {
                Ok(reply) => {
                    let status = reply.status().as_u16();
                    let wire_bytes = reply.extensions().get().map_or(0, WireBytes::count);
                    debug!(
                        status,
                        wire_bytes, duration_ms, "Got {status} from `{host}`"
                    );
                }
                Err(error) => {
                    let code = error.code();
                    debug!(
                        code,
                        source = error_chain(error),
                        duration_ms,
                        "Got nothing from `{host}`: {error}"
                    );
                }
            }
            answer
        };
        Box::pin(traced.instrument(span))
    }
}

/// The internal half of an error, outermost first.
fn error_chain(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(error.source(), |error| error.source());
    let words: Vec<String> = sources.map(ToString::to_string).collect();
    words.join(": ")
}
