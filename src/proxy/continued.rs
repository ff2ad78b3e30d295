//! `Expect: 100-continue` on its way through us, and the interim answers of an origin: a body waits
//! until the origin asks for it, and interim answers have an end (RFC 9110 section 10.1.1).

use crate::locks::lock;
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header::EXPECT};
use http_body::{Body, Frame, SizeHint};
use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};
use thiserror::Error;
use tokio::time::{Timeout, timeout};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::BoxError;

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

    /// The body of the request, which waits for the origin if its client waits for us; and the same
    /// as long as nobody has asked for it.
    pub(super) fn body<B>(
        &self,
        headers: &HeaderMap,
        inner: B,
    ) -> (ContinuedBody<B>, UnaskedBody<B>) {
        let expects = headers
            .get(EXPECT)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        if !expects {
            return (
                ContinuedBody {
                    wait: None,
                    inner: Some(inner),
                },
                UnaskedBody(None),
            );
        }
        let unasked = Arc::new(Mutex::new(Some(inner)));
        let wait = BodyWait {
            wanted: Box::pin(timeout(
                CONTINUE_WAIT,
                self.wanted.clone().cancelled_owned(),
            )),
            body: unasked.clone(),
        };
        (
            ContinuedBody {
                wait: Some(wait),
                inner: None,
            },
            UnaskedBody(Some(unasked)),
        )
    }
}

/// A body that nobody has asked for yet.
pub(super) struct UnaskedBody<B>(Option<Arc<Mutex<Option<B>>>>);

impl<B> UnaskedBody<B> {
    /// The body, for another request; `None` where it was asked for, or never waited.
    pub(super) fn take_back(&self) -> Option<B> {
        take(self.0.as_ref()?)
    }
}

/// A body that is not read before the origin asks for it: reading it is what makes our server ask
/// its client.
pub(super) struct ContinuedBody<B> {
    wait: Option<BodyWait<B>>,
    /// `None` while it waits, and when it was taken back.
    inner: Option<B>,
}

struct BodyWait<B> {
    wanted: Pin<Box<Timeout<WaitForCancellationFutureOwned>>>,
    body: Arc<Mutex<Option<B>>>,
}

/// The request goes by another connection.
#[derive(Debug, Error)]
#[error("the body was taken back before it was sent")]
struct TakenBack;

fn take<B>(body: &Mutex<Option<B>>) -> Option<B> {
    lock(body).take()
}

impl<B: Body> ContinuedBody<B> {
    /// A fact that the body tells of itself; the other one when it was taken back.
    fn told<T>(&self, tell: impl Fn(&B) -> T, otherwise: T) -> T {
        match (&self.inner, &self.wait) {
            (Some(inner), _) => tell(inner),
            (None, Some(BodyWait { body, .. })) => lock(body).as_ref().map_or(otherwise, tell),
            (None, None) => otherwise,
        }
    }
}

impl<B: Body<Data = Bytes, Error = BoxError> + Unpin> Body for ContinuedBody<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(BodyWait { wanted, body }) = &mut self.wait {
            // Asked for or not: both end the wait.
            let _ = ready!(wanted.as_mut().poll(cx));
            let body = take(body);
            (self.inner, self.wait) = (body, None);
        }
        match &mut self.inner {
            Some(inner) => Pin::new(inner).poll_frame(cx),
            None => Poll::Ready(Some(Err(TakenBack.into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.told(B::is_end_stream, false)
    }

    fn size_hint(&self) -> SizeHint {
        self.told(B::size_hint, SizeHint::default())
    }
}
