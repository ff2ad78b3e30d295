//! The gate that the bytes of a connection pass on their way to the HTTP library. In the place of a
//! head that does not pass the library reads a request of ours, so that the refusal goes out behind
//! the answers to the requests before it.

use super::{
    frames::{CheckedBytes, HTTP_2_PREFACE as PREFACE, RequestFrames, Then},
    limits::{HEAD_BYTES_MAX, HEAD_TIME},
    malformed::MalformedRequest,
};
use bytes::{Buf as _, BytesMut};
use futures_util::task::AtomicWaker;
use std::{
    future::poll_fn,
    io::{Error, ErrorKind, IoSlice, Result},
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Sleep,
};

/// Bytes that are read at once while something is held back.
const READ_BYTES: usize = 4 << 10;
/// Bytes that are read and thrown away behind a refusal: a sender that is cut off while it sends
/// does not read the answer.
const LINGER_BYTES: usize = 1 << 20;
/// Time for which they are waited for.
const LINGER_TIME: Duration = Duration::from_secs(2);
/// The request that is read in the place of one that is refused. Nobody else's passes the gate with
/// this target.
const IN_ITS_PLACE: &[u8] = b"GET * HTTP/1.1\r\nhost: refused.invalid\r\nconnection: close\r\n\r\n";

/// The side of a gate that the service of its connection sees: it counts the requests and says when
/// they are answered.
#[derive(Debug, Default)]
pub(in crate::edge) struct GateHandle {
    begun: AtomicU64,
    answered: AtomicU64,
    is_opaque: AtomicBool,
    refused: OnceLock<(u64, MalformedRequest)>,
    waiting: AtomicWaker,
}

impl GateHandle {
    /// Number of the request that the service has just received. The library hands them on in their
    /// order.
    pub(in crate::edge) fn begin(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The fault of a request, as far as its bytes have come.
    pub(in crate::edge) fn fault(&self, request: u64) -> Option<MalformedRequest> {
        self.refused
            .get()
            .filter(|(refused, _)| *refused == request)
            .map(|(_, fault)| *fault)
    }

    /// A request is answered; with 101 the bytes behind it are no HTTP any more.
    pub(in crate::edge) fn answered(&self, request: u64, is_opaque: bool) {
        self.is_opaque.fetch_or(is_opaque, Ordering::AcqRel);
        self.answered.fetch_max(request, Ordering::AcqRel);
        self.waiting.wake();
    }
}

/// A stream whose requests are checked while they are read.
pub(in crate::edge) struct RequestGate<I> {
    inner: Pin<Box<I>>,
    handle: Arc<GateHandle>,
    frames: RequestFrames,
    /// Bytes that were read and not handed on, of which the first `good` may be.
    held: BytesMut,
    good: usize,
    end: Option<End>,
    head_timer: Option<Pin<Box<Sleep>>>,
    discarded: usize,
    lingering: Option<Pin<Box<Sleep>>>,
    _kept: Box<dyn Send>,
}

/// The end of what passes.
#[derive(Clone, Copy, Debug)]
enum End {
    /// The head of the request with this number has a fault, and is answered behind those before
    /// it.
    Refused(u64),
    /// A request of ours stands in its place.
    Asked,
    /// A body has a fault.
    Broken(MalformedRequest),
}

impl<I: AsyncRead + AsyncWrite> RequestGate<I> {
    /// A gate before a stream. What is kept is dropped with it.
    pub(in crate::edge) fn new(inner: I, kept: Box<dyn Send>) -> Self {
        Self {
            inner: Box::pin(inner),
            handle: Arc::default(),
            frames: RequestFrames::default(),
            held: BytesMut::new(),
            good: 0,
            end: None,
            head_timer: None,
            discarded: 0,
            lingering: None,
            _kept: kept,
        }
    }

    /// The side that the service sees.
    pub(in crate::edge) fn handle(&self) -> Arc<GateHandle> {
        self.handle.clone()
    }

    /// True for a peer that begins as HTTP/2 does (RFC 9113 section 3.4). Reads as much as that
    /// takes, and hands on nothing yet.
    pub(in crate::edge) async fn begins_as_http2(&mut self) -> Result<bool> {
        poll_fn(|cx| {
            loop {
                let known = self.held.len().min(PREFACE.len());
                if self.held[..known] != PREFACE[..known] {
                    return Poll::Ready(Ok(false));
                }
                // What began and does not go on is refused like any other head.
                let timer = || Box::pin(tokio::time::sleep(HEAD_TIME));
                if known > 0
                    && self
                        .head_timer
                        .get_or_insert_with(timer)
                        .as_mut()
                        .poll(cx)
                        .is_ready()
                {
                    return Poll::Ready(Ok(false));
                }
                if known == PREFACE.len() || ready!(self.poll_more(cx))? == 0 {
                    return Poll::Ready(Ok(known == PREFACE.len()));
                }
            }
        })
        .await
    }

    /// Hands on what may be.
    fn hand_on(&mut self, buf: &mut ReadBuf<'_>) {
        let count = self.good.min(buf.remaining());
        buf.put_slice(&self.held[..count]);
        self.held.advance(count);
        self.good -= count;
        if self.held.is_empty() {
            self.held = BytesMut::new();
        }
    }

    /// Reads into the reader's memory, where nothing is held, and takes back what may not pass yet.
    /// `None` when nothing may.
    fn poll_through(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<Result<Option<()>>> {
        let before = buf.filled().len();
        ready!(self.inner.as_mut().poll_read(cx, buf))?;
        let fresh = &buf.filled()[before..];
        if fresh.is_empty() {
            return Poll::Ready(Ok(Some(())));
        }
        let CheckedBytes { passed, then } = self.frames.check(fresh);
        self.held.extend_from_slice(&fresh[passed..]);
        buf.set_filled(before + passed);
        self.follow(&then);
        Poll::Ready(Ok((passed > 0).then_some(())))
    }

    /// Checks what is held, and reads more if that is needed. `None` when there may be something to
    /// hand on.
    fn poll_held(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<()>>> {
        let CheckedBytes { passed, then } = self.frames.check(&self.held);
        self.good = passed;
        self.follow(&then);
        match then {
            Then::Refuse(_) | Then::Escape { .. } => Poll::Ready(Ok(None)),
            _ if passed > 0 => {
                self.head_timer = None;
                Poll::Ready(Ok(None))
            }
            Then::Answer => self.poll_answer(cx),
            Then::More => self.poll_rest_of_head(cx),
        }
    }

    /// Waits for the answer to a request that may end HTTP on this connection.
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<()>>> {
        self.handle.waiting.register(cx.waker());
        if self.handle.answered.load(Ordering::Acquire) >= self.frames.last_request() {
            self.frames
                .answered(self.handle.is_opaque.load(Ordering::Acquire));
            return Poll::Ready(Ok(None));
        }
        while self.held.len() < HEAD_BYTES_MAX {
            if ready!(self.poll_more(cx))? == 0 {
                return Poll::Ready(Ok(Some(())));
            }
        }
        Poll::Pending
    }

    /// Reads more of a head.
    fn poll_rest_of_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<()>>> {
        let timer = self
            .head_timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(HEAD_TIME)));
        let fault = if timer.as_mut().poll(cx).is_ready() {
            MalformedRequest::Slow
        } else if ready!(self.poll_more(cx))? == 0 {
            MalformedRequest::BrokeOff
        } else {
            return Poll::Ready(Ok(None));
        };
        self.follow(&Then::Refuse(self.frames.refuse_next(fault)));
        Poll::Ready(Ok(None))
    }

    /// Reads to what is held. 0 at the end of the stream.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize>> {
        let mut bytes = [0; READ_BYTES];
        let mut read = ReadBuf::new(&mut bytes);
        ready!(self.inner.as_mut().poll_read(cx, &mut read))?;
        self.held.extend_from_slice(read.filled());
        Poll::Ready(Ok(read.filled().len()))
    }

    /// Refuses what has a fault, behind what is good; and puts an escaped request line in the place
    /// of one that is not.
    fn follow(&mut self, then: &Then) {
        if let Then::Escape { line, as_one } = then {
            let rest = self.held.split_off(self.good + line);
            self.held.truncate(self.good);
            self.held.extend_from_slice(as_one);
            self.held.unsplit(rest);
        }
        let Then::Refuse(refused) = then else { return };
        let _ = self.handle.refused.set((refused.request, refused.fault));
        self.head_timer = None;
        self.held.truncate(self.good);
        self.end = Some(if refused.in_head {
            End::Refused(refused.request)
        } else {
            End::Broken(refused.fault)
        });
    }

    /// Reads nothing more that counts. `None` when there is something to hand on.
    fn poll_ended(&mut self, cx: &mut Context<'_>, end: End) -> Poll<Result<Option<()>>> {
        match end {
            End::Asked => Poll::Pending,
            End::Broken(fault) => Poll::Ready(Err(Error::new(ErrorKind::InvalidData, fault))),
            End::Refused(request) => {
                self.handle.waiting.register(cx.waker());
                if self.handle.answered.load(Ordering::Acquire) + 1 < request {
                    // Those before it are not answered, and nobody waits for them when the stream
                    // ends.
                    return self.poll_discard(cx).map(|()| Ok(Some(())));
                }
                self.held.extend_from_slice(IN_ITS_PLACE);
                self.good = self.held.len();
                self.end = Some(End::Asked);
                Poll::Ready(Ok(None))
            }
        }
    }

    /// Throws away what comes, up to the end of the stream; a stream that does not end, or that is
    /// long, is left.
    fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut bytes = [0; READ_BYTES];
        while self.discarded < LINGER_BYTES {
            let mut read = ReadBuf::new(&mut bytes);
            if ready!(self.inner.as_mut().poll_read(cx, &mut read)).is_err()
                || read.filled().is_empty()
            {
                return Poll::Ready(());
            }
            self.discarded += read.filled().len();
        }
        Poll::Pending
    }
}

impl<I: AsyncRead + AsyncWrite> AsyncRead for RequestGate<I> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let gate = self.get_mut();
        loop {
            if gate.good > 0 {
                gate.hand_on(buf);
                return Poll::Ready(Ok(()));
            }
            let is_through = if let Some(end) = gate.end {
                ready!(gate.poll_ended(cx, end))?
            } else if gate.held.is_empty() && !gate.frames.waits() {
                ready!(gate.poll_through(cx, buf))?
            } else {
                ready!(gate.poll_held(cx))?
            };
            if is_through.is_some() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<I: AsyncRead + AsyncWrite> AsyncWrite for RequestGate<I> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<Result<usize>> {
        self.get_mut().inner.as_mut().poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.get_mut().inner.as_mut().poll_flush(cx)
    }

    /// Ends our side, and reads on for a moment where more may be on its way: bytes that nobody
    /// reads would take the answer with them.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let gate = self.get_mut();
        ready!(gate.inner.as_mut().poll_shutdown(cx))?;
        if gate.end.is_none() && !gate.frames.is_in_body() {
            return Poll::Ready(Ok(()));
        }
        let lingering = gate
            .lingering
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER_TIME)));
        if lingering.as_mut().poll(cx).is_ready() || gate.discarded >= LINGER_BYTES {
            return Poll::Ready(Ok(()));
        }
        gate.poll_discard(cx).map(Ok)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        self.get_mut().inner.as_mut().poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}
