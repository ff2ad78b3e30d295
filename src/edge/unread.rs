//! The answers of one connection that its peer has not read yet: how many bytes they are, and since
//! when none was read; not what they say.

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;
use tower::BoxError;

/// Bytes of answers whose reading is the progress that keeps a connection; or all that is left of
/// them.
const PROGRESS_BYTES: usize = 64 << 10;

/// Bytes of the answers on one connection that its peer has not read.
#[derive(Debug)]
pub(super) struct Unread {
    opened: Instant,
    bytes: AtomicUsize,
    /// Milliseconds from `opened` to the last progress: bytes were read, the first were there to be
    /// read, or an answer began.
    progress_ms: AtomicU64,
    /// Bytes that were read since then.
    since_progress: AtomicUsize,
    less: Notify,
    /// Requests whose answers have not begun.
    asked: AtomicUsize,
    cut: CancellationToken,
}

impl Unread {
    /// Those of a connection that was opened now.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            opened: Instant::now(),
            bytes: AtomicUsize::new(0),
            progress_ms: AtomicU64::new(0),
            since_progress: AtomicUsize::new(0),
            less: Notify::new(),
            asked: AtomicUsize::new(0),
            cut: CancellationToken::new(),
        })
    }

    /// Time since which the peer has read nothing of what is there for it; `None` when it has read
    /// all.
    pub(super) fn stalled(&self) -> Option<Duration> {
        if self.bytes.load(Ordering::Relaxed) == 0 {
            return None;
        }
        Some(self.since_progress_at())
    }

    /// A request has come. Its answer is not there until what is returned is dropped.
    pub(super) fn asked(self: &Arc<Self>) -> Asks {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Asks(self.clone())
    }

    /// True when it was asked for nothing for this long, and its peer has read everything.
    pub(super) fn is_idle_for(&self, least: Duration) -> bool {
        let asks_nothing =
            self.asked.load(Ordering::Relaxed) == 0 && self.bytes.load(Ordering::Relaxed) == 0;
        asks_nothing && self.since_progress_at() >= least
    }

    fn since_progress_at(&self) -> Duration {
        let progress = Duration::from_millis(self.progress_ms.load(Ordering::Relaxed));
        self.opened.elapsed().saturating_sub(progress)
    }

    /// Ends the connection.
    pub(super) fn cut(&self) {
        self.cut.cancel();
    }

    /// Completes when the connection is to end.
    pub(super) async fn is_cut(&self) {
        self.cut.cancelled().await;
    }

    /// True once it is to end.
    #[cfg(test)]
    pub(super) fn was_cut(&self) -> bool {
        self.cut.is_cancelled()
    }

    /// Waits until so many more bytes fit on the connection; an answer that is larger than all that
    /// fits has it alone. False if that takes too long.
    pub(super) async fn has_room(&self, bytes: usize, bytes_max: usize, within: Duration) -> bool {
        let room = async {
            loop {
                let less = self.less.notified();
                let unread = self.bytes.load(Ordering::Relaxed);
                if unread == 0 || unread.saturating_add(bytes) <= bytes_max {
                    return;
                }
                less.await;
            }
        };
        tokio::time::timeout(within, room).await.is_ok()
    }

    fn add(&self, bytes: usize) {
        if bytes > 0 && self.bytes.fetch_add(bytes, Ordering::Relaxed) == 0 {
            self.progress();
        }
    }

    fn read(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let is_last = self.bytes.fetch_sub(bytes, Ordering::Relaxed) == bytes;
        let since_progress = self.since_progress.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if is_last || since_progress >= PROGRESS_BYTES {
            self.since_progress.store(0, Ordering::Relaxed);
            self.progress();
        }
        self.less.notify_waiters();
    }

    fn progress(&self) {
        let ms = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.progress_ms.store(ms, Ordering::Relaxed);
    }
}

/// A request whose answer is not there yet.
#[derive(Debug)]
pub(super) struct Asks(Arc<Unread>);

impl Drop for Asks {
    fn drop(&mut self) {
        self.0.progress();
        self.0.asked.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A body that counts as unread until the bytes of it have left for its peer.
#[derive(Debug)]
pub(super) struct CountedBody<B> {
    /// `None` of a body that is there already.
    inner: Option<B>,
    /// A body that is there already.
    whole: Bytes,
    /// Bytes of a known length that are still to come.
    ahead: usize,
    /// A fault that is told when it is asked for once more: the connection ends with it, and what
    /// was handed on before has to leave first.
    fault: Option<BoxError>,
    unread: Arc<Unread>,
}

impl<B: Body<Data = Bytes>> CountedBody<B> {
    /// Counts a body as unread from now on.
    pub(super) fn new(inner: B, unread: Arc<Unread>) -> Self {
        let ahead = length(&inner);
        Self::of(Some(inner), Bytes::new(), ahead, unread)
    }

    /// Counts a body that comes from elsewhere while it is sent: each piece from when it is there.
    pub(super) fn streamed(inner: B, unread: Arc<Unread>) -> Self {
        Self::of(Some(inner), Bytes::new(), 0, unread)
    }

    /// Counts a body that is there already.
    pub(super) fn whole(whole: Bytes, unread: Arc<Unread>) -> Self {
        let ahead = whole.len();
        Self::of(None, whole, ahead, unread)
    }

    fn of(inner: Option<B>, whole: Bytes, ahead: usize, unread: Arc<Unread>) -> Self {
        unread.add(ahead);
        Self {
            inner,
            whole,
            ahead,
            fault: None,
            unread,
        }
    }

    /// Hands on bytes that are there.
    fn hand_on(&mut self, bytes: Bytes) -> CountedBytes {
        let known = bytes.len().min(self.ahead);
        self.ahead -= known;
        self.unread.add(bytes.len() - known);
        CountedBytes {
            bytes,
            unread: Arc::clone(&self.unread),
        }
    }
}

/// Bytes that a body is known to have at least.
pub(super) fn length(body: &impl Body) -> usize {
    usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX)
}

impl<B: Body<Data = Bytes, Error = BoxError> + Unpin> Body for CountedBody<B> {
    type Data = CountedBytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<CountedBytes>, BoxError>>> {
        let body = &mut *self;
        let Some(inner) = &mut body.inner else {
            let whole = std::mem::take(&mut body.whole);
            return Poll::Ready((!whole.is_empty()).then(|| Ok(Frame::data(body.hand_on(whole)))));
        };
        if let Some(fault) = body.fault.take() {
            return Poll::Ready(Some(Err(fault)));
        }
        match std::task::ready!(Pin::new(inner).poll_frame(cx)) {
            Some(Ok(frame)) => Poll::Ready(Some(Ok(frame.map_data(|bytes| body.hand_on(bytes))))),
            Some(Err(fault)) => {
                body.fault = Some(fault);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner
            .as_ref()
            .map_or_else(|| self.whole.is_empty(), Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Some(inner) => inner.size_hint(),
            None => SizeHint::with_exact(u64::try_from(self.whole.len()).unwrap_or(u64::MAX)),
        }
    }
}

impl<B> Drop for CountedBody<B> {
    fn drop(&mut self) {
        self.unread.read(self.ahead);
    }
}

/// Bytes on their way, which stop counting as they leave. They are handed on whole, so that one
/// call of the system may take as many as it can, and share the memory of the answer.
#[derive(Debug)]
pub(super) struct CountedBytes {
    bytes: Bytes,
    unread: Arc<Unread>,
}

impl Buf for CountedBytes {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.unread.read(count);
    }
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        self.unread.read(self.bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::body::whole;
    use http_body_util::BodyExt as _;

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_unread_until_its_last_byte_has_left() {
        let unread = Unread::new();
        assert_eq!(unread.stalled(), None);
        let mut body = CountedBody::new(whole(vec![b'x'; 2 * PROGRESS_BYTES]), unread.clone());
        assert_eq!(body.size_hint().exact(), Some(2 * PROGRESS_BYTES as u64));
        tokio::time::advance(Duration::from_secs(7)).await;
        assert_eq!(unread.stalled(), Some(Duration::from_secs(7)));
        let mut bytes = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(bytes.remaining() == 2 * PROGRESS_BYTES && body.is_end_stream());
        drop(body);
        bytes.advance(PROGRESS_BYTES - 1);
        assert_eq!(
            unread.stalled(),
            Some(Duration::from_secs(7)),
            "few bytes are no progress"
        );
        bytes.advance(1);
        assert_eq!(unread.stalled(), Some(Duration::ZERO));
        tokio::time::advance(Duration::from_secs(3)).await;
        bytes.advance(PROGRESS_BYTES - 1);
        assert_eq!(unread.stalled(), Some(Duration::from_secs(3)));
        assert_eq!(unread.bytes.load(Ordering::Relaxed), 1);
        bytes.advance(1);
        assert_eq!(unread.stalled(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_connection_did_not_take_counts_no_more_when_it_ends() {
        let unread = Unread::new();
        let mut body =
            CountedBody::<crate::edge::body::ServeBody>::whole(Bytes::from("abc"), unread.clone());
        let bytes = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(body.frame().await.is_none());
        assert_eq!(unread.bytes.load(Ordering::Relaxed), 3);
        drop(bytes);
        assert!(unread.is_idle_for(Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_waits_for_room_unless_it_has_the_connection_alone() {
        let (unread, soon) = (Unread::new(), Duration::from_secs(1));
        assert!(unread.has_room(100, 50, soon).await);
        let body = CountedBody::new(whole(vec![b'x'; 40]), unread.clone());
        assert!(unread.has_room(10, 50, soon).await && !unread.has_room(11, 50, soon).await);
        drop(body);
        assert!(unread.has_room(11, 50, soon).await);
    }
}
