//! Connections to an origin that know whether a request is under way on them, and whether it has
//! had any answer; not what it was.
//!
//! An origin with few workers serves as many connections at a time, and a connection without a
//! request keeps a worker from the others. So a request that waits long for its answer has idle
//! connections closed, one at a time: a page that is only slow costs the others a connection now
//! and then.

use crate::locks::lock;
use futures_util::{future::BoxFuture, task::AtomicWaker};
use http::{Extensions, Uri};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::legacy::{
        Error,
        connect::{Connected, Connection, HttpConnector},
    },
    rt::TokioIo,
};
use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::Instant,
};
use tower::{BoxError, Service};

/// Time for which a request waits for the head of its answer until an idle connection is closed for
/// it, and then another one; and for which a new connection may wait for its first request.
pub(super) const LATE_AFTER: Duration = Duration::from_millis(250);
/// A request that has waited for some time waits for at least an eighth of that time until the next
/// connection is closed for it.
const PAUSES: u32 = 8;

/// The open connections to one origin, and the requests that wait long for their answers.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenConnections(Arc<OpenParts>);

#[derive(Debug, Default)]
struct OpenParts {
    /// Number of requests that wait long.
    late: AtomicUsize,
    /// Number of connections that are to be closed for them as soon as they are idle; never more
    /// than there are such requests.
    wanted: AtomicUsize,
    connections: Mutex<Vec<Weak<ConnectionParts>>>,
}

/// A request that waits long, as long as this lives.
#[derive(Debug)]
pub(super) struct LateRequest(Arc<OpenParts>);

/// The state of a connection, shared with its requests: an extension of their answers and errors.
#[derive(Clone, Debug)]
pub(super) struct WatchedConnection(Arc<ConnectionParts>);

#[derive(Debug)]
struct ConnectionParts {
    opened: Instant,
    /// Requests that were written, and answers that were read to their ends. More may be counted as
    /// written than there were (parts of a body behind an interim answer); then the connection
    /// never counts as idle.
    begun: AtomicUsize,
    ended: AtomicUsize,
    /// True once something was read since the last request began.
    is_answered: AtomicBool,
    /// True once it is closed; the pool may still know it.
    is_closed: AtomicBool,
    /// Whoever waits for bytes on it.
    reader: AtomicWaker,
    open: Arc<OpenParts>,
}

/// A request on a connection, which has had the head of its answer. The connection is idle when
/// this is dropped.
#[derive(Debug)]
pub(super) struct BusyConnection(Option<WatchedConnection>);

impl OpenConnections {
    /// A request that waits long: while `LateRequest::wait` is polled, connections are closed for
    /// it.
    pub(super) fn late_request(&self) -> LateRequest {
        self.0.late.fetch_add(1, Ordering::SeqCst);
        LateRequest(self.0.clone())
    }

    fn opened(&self) -> WatchedConnection {
        let parts = Arc::new(ConnectionParts {
            opened: Instant::now(),
            begun: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            // So that the first bytes that are written begin a request.
            is_answered: AtomicBool::new(true),
            is_closed: AtomicBool::new(false),
            reader: AtomicWaker::new(),
            open: self.0.clone(),
        });
        let mut connections = lock(&self.0.connections);
        if connections.len() == connections.capacity() {
            connections.retain(|connection| connection.strong_count() > 0);
        }
        connections.push(Arc::downgrade(&parts));
        WatchedConnection(parts)
    }
}

impl LateRequest {
    /// Closes an idle connection, or the next one that becomes idle; and those that have waited
    /// long for a first request.
    fn make_way(&self) {
        let late = self.0.late.load(Ordering::SeqCst);
        let more = |wanted: usize| (wanted < late).then_some(wanted + 1);
        // The sequentially consistent order is that of `BusyConnection::drop`: one of the two sees
        // the other. An error means that as many are wanted already as there are requests.
        let _ = self
            .0
            .wanted
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        let connections = lock(&self.0.connections);
        let mut has_found = false;
        for connection in connections.iter().filter_map(Weak::upgrade) {
            if connection.is_unused() || (!has_found && connection.is_idle()) {
                has_found |= !connection.is_unused();
                connection.reader.wake();
            }
        }
    }

    /// Makes way again and again, ever more seldom: the connection that was closed need not be what
    /// the request waits for.
    pub(super) async fn wait(&self) {
        let began = Instant::now();
        loop {
            self.make_way();
            tokio::time::sleep(LATE_AFTER.max(began.elapsed() / PAUSES)).await;
        }
    }
}

impl Drop for LateRequest {
    fn drop(&mut self) {
        let late = self.0.late.fetch_sub(1, Ordering::SeqCst) - 1;
        let fewer = |wanted: usize| (wanted > late).then_some(late);
        // An error means that no more are wanted than there are requests.
        let _ = self
            .0
            .wanted
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer);
    }
}

impl BusyConnection {
    /// The connection by which an answer came.
    pub(super) fn of(answer: &mut Extensions) -> Self {
        Self(answer.remove())
    }
}

impl Drop for BusyConnection {
    fn drop(&mut self) {
        if let Some(WatchedConnection(connection)) = &self.0 {
            connection.ended.fetch_add(1, Ordering::SeqCst);
            if connection.open.wanted.load(Ordering::SeqCst) > 0 {
                connection.reader.wake();
            }
        }
    }
}

impl ConnectionParts {
    fn wrote(&self) {
        if self.is_answered.swap(false, Ordering::Relaxed) {
            self.begun.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn read(&self) {
        self.is_answered.store(true, Ordering::Relaxed);
    }

    /// True when it has answered what it was asked.
    fn is_idle(&self) -> bool {
        let (ended, begun) = (
            self.ended.load(Ordering::SeqCst),
            self.begun.load(Ordering::SeqCst),
        );
        begun == ended && begun > 0 && !self.is_closed.load(Ordering::SeqCst)
    }

    /// True when it has waited long for its first request, which went by another connection.
    fn is_unused(&self) -> bool {
        let is_young = || self.opened.elapsed() < LATE_AFTER;
        self.begun.load(Ordering::SeqCst) == 0
            && !self.is_closed.load(Ordering::SeqCst)
            && !is_young()
    }

    /// True when it is to be closed for a request that waits long. One that was used is one fewer
    /// that is wanted.
    fn gives_way(&self) -> bool {
        if self.is_unused() {
            return self.open.late.load(Ordering::SeqCst) > 0;
        }
        let fewer = |wanted: usize| wanted.checked_sub(1);
        self.is_idle()
            && self
                .open
                .wanted
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer)
                .is_ok()
    }
}

/// True for the error of a request that met a connection while it was being closed: it had served
/// another request before, and nothing of an answer came. Servers close idle connections at any
/// moment (RFC 9112 section 9.3.1).
pub(super) fn met_a_closing_connection(error: &Error) -> bool {
    let mut extras = Extensions::new();
    if let Some(connection) = error.connect_info() {
        connection.get_extras(&mut extras);
    }
    extras.get().is_some_and(|WatchedConnection(connection)| {
        connection.begun.load(Ordering::SeqCst) > 1
            && !connection.is_answered.load(Ordering::Relaxed)
    })
}

/// A connector whose connections are watched, above TLS: below it, the bytes of a handshake would
/// count as requests and answers.
#[derive(Clone, Debug)]
pub(super) struct WatchedConnector {
    pub(super) inner: HttpsConnector<HttpConnector>,
    pub(super) open: OpenConnections,
}

/// A connection below HTTP.
type OriginStream = TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>;

impl Service<Uri> for WatchedConnector {
    type Response = TokioIo<WatchedStream>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (connecting, open) = (self.inner.call(to), self.open.clone());
        Box::pin(async move {
            let stream = connecting.await?;
            Ok(TokioIo::new(WatchedStream {
                inner: TokioIo::new(stream),
                connection: open.opened(),
            }))
        })
    }
}

/// A connection that is watched.
#[derive(Debug)]
pub(super) struct WatchedStream {
    inner: OriginStream,
    connection: WatchedConnection,
}

impl Drop for WatchedStream {
    fn drop(&mut self) {
        self.connection.0.is_closed.store(true, Ordering::SeqCst);
    }
}

impl Connection for WatchedStream {
    fn connected(&self) -> Connected {
        self.inner
            .inner()
            .connected()
            .extra(self.connection.clone())
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        let WatchedConnection(connection) = &self.connection;
        if buffer.filled().len() > before {
            connection.read();
        } else if read.is_pending() {
            connection.reader.register(cx.waker());
            if connection.gives_way() {
                // The end of the connection, as if the origin had closed it: a request that was
                // just given to it is taken back.
                return Poll::Ready(Ok(()));
            }
        }
        read
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.connection.0.wrote();
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.connection.0.wrote();
        Pin::new(&mut self.inner).poll_write_vectored(cx, pieces)
    }
}
