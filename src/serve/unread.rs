//! The answers of one connection that its peer has not read yet: how many bytes they are, and since when none was read;
//! not what they say.

use bytes::Bytes;
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

/// Bytes of an answer that are handed on at once: reading them is the progress that keeps a connection.
const SLICE_BYTES: usize = 64 << 10;

/// Bytes of the answers on one connection that its peer has not read.
#[derive(Debug)]
pub(super) struct Unread {
    opened: Instant,
    bytes: AtomicUsize,
    /// Milliseconds from `opened` to the last progress: bytes were read, or the first were there to be read.
    progress_ms: AtomicU64,
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
            less: Notify::new(),
            asked: AtomicUsize::new(0),
            cut: CancellationToken::new(),
        })
    }

    /// Time since which the peer has read nothing of what is there for it; `None` when it has read all.
    pub(super) fn stalled(&self) -> Option<Duration> {
        if self.bytes.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let progress = Duration::from_millis(self.progress_ms.load(Ordering::Relaxed));
        Some(self.opened.elapsed().saturating_sub(progress))
    }

    /// A request has come. Its answer is not there until what is returned is dropped.
    pub(super) fn asked(self: &Arc<Self>) -> Asks {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Asks(self.clone())
    }

    /// True while it is asked for nothing, and its peer has read everything.
    pub(super) fn is_idle(&self) -> bool {
        self.asked.load(Ordering::Relaxed) == 0 && self.bytes.load(Ordering::Relaxed) == 0
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

    /// Waits until so many more bytes fit on the connection; an answer that is larger than all that fits has it alone.
    /// False if that takes too long.
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
        if bytes > 0 {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.progress();
            self.less.notify_waiters();
        }
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
        self.0.asked.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A body that counts as unread until the bytes of it have left for its peer. It is handed on in slices, which share the
/// memory of the whole.
#[derive(Debug)]
pub(super) struct CountedBody<B> {
    /// `None` of a body that is there already.
    inner: Option<B>,
    /// The rest of the last frame.
    rest: Bytes,
    /// Bytes of a known length that are still to come.
    ahead: usize,
    unread: Arc<Unread>,
}

impl<B: Body<Data = Bytes>> CountedBody<B> {
    /// Counts a body as unread from now on.
    pub(super) fn new(inner: B, unread: Arc<Unread>) -> Self {
        let ahead = length(&inner);
        unread.add(ahead);
        Self { inner: Some(inner), rest: Bytes::new(), ahead, unread }
    }

    /// Counts a body that comes from elsewhere while it is sent: each piece from when it is there.
    pub(super) fn streamed(inner: B, unread: Arc<Unread>) -> Self {
        Self { inner: Some(inner), rest: Bytes::new(), ahead: 0, unread }
    }

    /// Counts a body that is there already.
    pub(super) fn whole(rest: Bytes, unread: Arc<Unread>) -> Self {
        unread.add(rest.len());
        Self { inner: None, ahead: rest.len(), rest, unread }
    }

    /// Hands on the next slice of what is there.
    fn slice(&mut self) -> Bytes {
        let bytes = self.rest.split_to(self.rest.len().min(SLICE_BYTES));
        let known = bytes.len().min(self.ahead);
        self.ahead -= known;
        self.unread.add(bytes.len() - known);
        Bytes::from_owner(Slice { bytes, unread: Arc::clone(&self.unread) })
    }
}

/// Bytes that a body is known to have at least.
pub(super) fn length(body: &impl Body) -> usize {
    usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX)
}

impl<B: Body<Data = Bytes, Error = BoxError> + Unpin> Body for CountedBody<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let body = &mut *self;
        if body.rest.is_empty() {
            let Some(inner) = &mut body.inner else { return Poll::Ready(None) };
            match std::task::ready!(Pin::new(inner).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => body.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
        Poll::Ready(Some(Ok(Frame::data(body.slice()))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let rest = u64::try_from(self.rest.len()).unwrap_or(u64::MAX);
        let inner = self.inner.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(rest));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}

impl<B> Drop for CountedBody<B> {
    fn drop(&mut self) {
        self.unread.read(self.ahead);
    }
}

/// Bytes on their way; dropped when they have left.
struct Slice {
    bytes: Bytes,
    unread: Arc<Unread>,
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        self.unread.read(self.bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::body::whole;
    use http_body_util::BodyExt as _;

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_unread_until_its_last_slice_has_left() {
        let unread = Unread::new();
        assert_eq!(unread.stalled(), None);
        let mut body = CountedBody::new(whole(vec![b'x'; SLICE_BYTES + 5]), unread.clone());
        assert_eq!(body.size_hint().exact(), Some(SLICE_BYTES as u64 + 5));
        tokio::time::advance(Duration::from_secs(7)).await;
        assert_eq!(unread.stalled(), Some(Duration::from_secs(7)));
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!((first.len(), body.is_end_stream()), (SLICE_BYTES, false));
        assert_eq!(unread.stalled(), Some(Duration::from_secs(7)), "it has not left yet");
        drop(first);
        assert_eq!(unread.stalled(), Some(Duration::ZERO));
        let last = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(last.len() == 5 && body.is_end_stream());
        drop(body);
        assert_eq!(unread.bytes.load(Ordering::Relaxed), 5);
        drop(last);
        assert_eq!(unread.stalled(), None);
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
