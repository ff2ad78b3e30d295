//! `Expect: 100-continue` on its way through us, and the interim answers of an origin: a body waits until the origin asks for
//! it, and interim answers have an end (RFC 9110 section 10.1.1).

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header::EXPECT};
use http_body::{Body, Frame, SizeHint};
use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Timeout, timeout};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Time for which a body waits for the origin to ask for it; then it is sent all the same.
const CONTINUE_WAIT: Duration = Duration::from_secs(1);
/// Interim answers to one request.
pub(super) const INTERIM_MAX: usize = 16;

/// The interim answers to one request.
#[derive(Clone, Debug, Default)]
pub(super) struct Interim {
    /// The origin wants the body.
    wanted: CancellationToken,
    /// There were more interim answers than may be.
    flooded: CancellationToken,
}

impl Interim {
    /// Listens to the interim answers to a request.
    pub(super) fn of<B>(request: &mut Request<B>) -> Self {
        let interim = Self::default();
        let heard = interim.clone();
        let count = Arc::new(AtomicUsize::new(0));
        hyper::ext::on_informational(request, move |answer| {
            if answer.status() == StatusCode::CONTINUE {
                heard.wanted.cancel();
            }
            if count.fetch_add(1, Ordering::Relaxed) >= INTERIM_MAX {
                heard.flooded.cancel();
            }
        });
        interim
    }

    /// Completes when there were too many.
    pub(super) async fn flood(&self) {
        self.flooded.cancelled().await;
    }

    /// The body of the request, which waits for the origin if its client waits for us.
    pub(super) fn body<B>(&self, headers: &HeaderMap, inner: B) -> ContinuedBody<B> {
        let expects =
            headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        let wait = expects.then(|| Box::pin(timeout(CONTINUE_WAIT, self.wanted.clone().cancelled_owned())));
        ContinuedBody { wait, inner }
    }
}

/// A body that is not read before the origin asks for it: reading it is what makes our server ask its client.
pub(super) struct ContinuedBody<B> {
    wait: Option<Pin<Box<Timeout<WaitForCancellationFutureOwned>>>>,
    inner: B,
}

impl<B: Body<Data = Bytes> + Unpin> Body for ContinuedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if let Some(wait) = &mut self.wait {
            // Asked for or not: both end the wait.
            let _ = ready!(wait.as_mut().poll(cx));
            self.wait = None;
        }
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
