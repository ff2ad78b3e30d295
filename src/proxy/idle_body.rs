//! Bodies on their way through us, in either direction: one that stops in the middle is given up,
//! and its progress is seen from outside.

use super::{permit_progress_times::LEAST_BYTES, site_permits::PermitProgress};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use thiserror::Error;
use tokio::time::{Instant, Sleep};
use tower::BoxError;

/// A body of which nothing came for too long.
#[derive(Clone, Copy, Debug, Error)]
#[error("nothing was sent for {} seconds in the middle of a body, or next to nothing", .0.as_secs())]
pub(super) struct Idle(pub(super) Duration);

/// The progress of a body.
#[derive(Debug)]
pub(super) struct BodyProgress {
    began: Instant,
    /// Milliseconds from `began` to the last piece.
    last_ms: AtomicU64,
    /// True while the next piece has been asked for and has not come.
    waits: AtomicBool,
    /// True once it was given up, or broke off.
    failed: AtomicBool,
    idle: AtomicBool,
    /// True once nothing more of it will come.
    ended: AtomicBool,
}

impl BodyProgress {
    /// The progress of a body of which nothing was taken yet.
    pub(super) fn of(body: &impl Body) -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            last_ms: AtomicU64::new(0),
            waits: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            idle: AtomicBool::new(false),
            ended: AtomicBool::new(body.is_end_stream()),
        })
    }

    /// The moment of the last piece.
    pub(super) fn last(&self) -> Instant {
        self.began + Duration::from_millis(self.last_ms.load(Ordering::Relaxed))
    }

    /// True while whoever sends it is to go on.
    pub(super) fn waits(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }

    /// True once whoever sends it stopped for too long.
    pub(super) fn is_idle(&self) -> bool {
        self.idle.load(Ordering::Relaxed)
    }

    /// True once it ended with a fault of whoever sends it.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// True once the whole of it was taken.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    fn piece(&self) {
        let ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(ms, Ordering::Relaxed);
        self.waits.store(false, Ordering::Relaxed);
    }
}

/// A body that is given up when nothing of it comes for some time.
pub(super) struct IdleBody<B> {
    inner: B,
    idle_max: Duration,
    /// Made when a piece is first waited for.
    sleep: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
    /// A piece that was there when it was looked for.
    first: Option<Frame<Bytes>>,
    progress: Arc<BodyProgress>,
    pace: Option<Pace>,
}

/// The least pace of a body. Only time for which its sender is waited for counts.
struct Pace {
    place: PermitProgress,
    /// Bytes since it last got on, too few yet, and the time for which they were waited for.
    bytes: u64,
    waited: Duration,
    waits_since: Instant,
}

impl Pace {
    fn piece(&mut self, bytes: usize, has_waited: bool) {
        self.place.moved(bytes);
        self.bytes = self
            .bytes
            .saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if self.bytes >= LEAST_BYTES || self.place.is_answered() {
            (self.bytes, self.waited) = (0, Duration::ZERO);
        } else if has_waited {
            self.waited += self.waits_since.elapsed();
        }
    }
}

impl<B> IdleBody<B> {
    pub(super) fn new(inner: B, idle_max: Duration, progress: Arc<BodyProgress>) -> Self {
        Self {
            inner,
            idle_max,
            sleep: None,
            is_waiting: false,
            first: None,
            progress,
            pace: None,
        }
    }

    /// The same, given up too when it trickles: fewer than [`LEAST_BYTES`] in all the time for
    /// which nothing may come. Once its answer has begun it is a stream, and any byte will do. Its
    /// bytes are progress of a place.
    pub(super) fn with_least_pace(self, place: PermitProgress) -> Self {
        if self.progress.has_ended() {
            place.sent();
        }
        let pace = Pace {
            place,
            bytes: 0,
            waited: Duration::ZERO,
            waits_since: Instant::now(),
        };
        Self {
            pace: Some(pace),
            ..self
        }
    }
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin> IdleBody<B> {
    /// Looks whether its first piece is there, without waiting for it; the fault of a body that has
    /// none, because it broke off.
    pub(super) async fn begin(&mut self) -> Result<(), BoxError> {
        match poll_fn(|cx| Poll::Ready(Pin::new(&mut *self).poll_frame(cx))).await {
            Poll::Ready(Some(frame)) => self.first = Some(frame?),
            Poll::Ready(None) | Poll::Pending => {}
        }
        Ok(())
    }
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin> Body for IdleBody<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let body = &mut *self;
        if let Some(first) = body.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        if let Poll::Ready(frame) = Pin::new(&mut body.inner).poll_frame(cx) {
            if let (Some(pace), Some(Ok(piece))) = (&mut body.pace, &frame) {
                pace.piece(piece.data_ref().map_or(0, Bytes::len), body.is_waiting);
            }
            body.is_waiting = false;
            body.progress.piece();
            if frame.is_none() || body.inner.is_end_stream() {
                body.progress.ended.store(true, Ordering::Relaxed);
                if let Some(pace) = &body.pace {
                    pace.place.sent();
                }
            }
            return Poll::Ready(frame.map(|frame| {
                frame.map_err(|error| {
                    body.progress.failed.store(true, Ordering::Relaxed);
                    error.into()
                })
            }));
        }
        let idle_max = body.idle_max;
        let sleep = body
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(idle_max)));
        if !body.is_waiting {
            body.is_waiting = true;
            body.progress.waits.store(true, Ordering::Relaxed);
            let mut left = idle_max;
            if let Some(pace) = &mut body.pace {
                pace.waits_since = Instant::now();
                left = idle_max.saturating_sub(pace.waited);
            }
            sleep.as_mut().reset(Instant::now() + left);
        }
        if let Some(pace) = body
            .pace
            .as_mut()
            .filter(|pace| pace.place.is_answered() && !pace.waited.is_zero())
        {
            // It was to end earlier while it had no answer.
            pace.waited = Duration::ZERO;
            sleep.as_mut().reset(pace.waits_since + idle_max);
        }
        if sleep.as_mut().poll(cx).is_ready() {
            body.progress.failed.store(true, Ordering::Relaxed);
            body.progress.idle.store(true, Ordering::Relaxed);
            return Poll::Ready(Some(Err(Idle(idle_max).into())));
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.inner.size_hint();
        if let Some(first) = self.first.as_ref().and_then(Frame::data_ref) {
            let bytes = u64::try_from(first.len()).unwrap_or(u64::MAX);
            // The greatest first: the least may not be above it.
            if let Some(upper) = hint.upper() {
                hint.set_upper(upper.saturating_add(bytes));
            }
            hint.set_lower(hint.lower().saturating_add(bytes));
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        proxy::{headers::ProxyPeer, site_permits::SitePermits},
        telemetry::Metrics,
    };
    use http_body_util::{BodyExt as _, StreamBody};
    use tokio::sync::mpsc;

    /// The seconds after which a body of request ends of which `bytes` come every `gap_secs`, so
    /// many times, and which is asked for its next piece `pause_secs` after the last one. Its
    /// answer begins behind its `answered`th piece.
    async fn ends_after(
        bytes: usize,
        gap_secs: u64,
        times: usize,
        pause_secs: u64,
        answered: usize,
    ) -> (u64, bool) {
        let places = SitePermits::new("x".into(), 1, Metrics::default().of_site("x".into()));
        let place = places.enter(ProxyPeer::default()).unwrap();
        let (send, mut receive) = mpsc::unbounded_channel();
        let pieces = futures_util::stream::poll_fn(move |cx| {
            receive
                .poll_recv(cx)
                .map(|piece| piece.map(|piece: Bytes| Ok::<_, BoxError>(Frame::data(piece))))
        });
        let pieces = StreamBody::new(pieces);
        let progress = BodyProgress::of(&pieces);
        let body = IdleBody::new(pieces, Duration::from_secs(100), progress.clone());
        let mut body = body.with_least_pace(place.progress());
        let began = Instant::now();
        let sending = async move {
            for _ in 0..times {
                tokio::time::sleep(Duration::from_secs(gap_secs)).await;
                if send.send(Bytes::from(vec![b'x'; bytes])).is_err() {
                    break;
                }
            }
        };
        let reading = async {
            let mut pieces = 0;
            while let Some(Ok(_)) = body.frame().await {
                pieces += 1;
                if pieces == answered {
                    place.progress().answered();
                }
                tokio::time::sleep(Duration::from_secs(pause_secs)).await;
            }
            began.elapsed().as_secs()
        };
        let ((), secs) = tokio::join!(sending, reading);
        (secs, progress.is_idle())
    }

    #[tokio::test(start_paused = true)]
    async fn the_body_of_a_request_that_trickles_is_given_up_and_one_that_gets_on_is_not() {
        assert_eq!(
            ends_after(3, 30, 100, 0, 0).await.0,
            100,
            "three bytes each half minute"
        );
        assert_eq!(
            ends_after(500, 45, 20, 0, 0).await,
            (900, false),
            "slow, and fast enough"
        );
        assert_eq!(
            ends_after(10, 1, 20, 60, 0).await,
            (1201, false),
            "an origin that takes little at a time"
        );
        assert_eq!(
            ends_after(3, 30, 10, 0, 3).await,
            (300, false),
            "a stream that has its answer"
        );
    }
}
