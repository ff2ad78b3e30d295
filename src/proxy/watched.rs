//! Connections to origins that know whether their last request has had any answer; not what it was.

use futures_util::{TryFutureExt as _, future::MapOk};
use http::{Extensions, Uri};
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
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tower::Service;

/// Progress of a connection, shared with the errors of requests on it.
#[derive(Clone, Debug, Default)]
struct ConnectionProgress(Arc<ProgressFlags>);

#[derive(Debug, Default)]
struct ProgressFlags {
    /// True once something was read since the last request began.
    is_answered: AtomicBool,
    /// True once an earlier request was answered.
    is_reused: AtomicBool,
}

impl ConnectionProgress {
    fn wrote(&self) {
        if self.0.is_answered.swap(false, Ordering::Relaxed) {
            self.0.is_reused.store(true, Ordering::Relaxed);
        }
    }

    fn read(&self) {
        self.0.is_answered.store(true, Ordering::Relaxed);
    }
}

/// True for the error of a request that met a connection while it was being closed: it had served another request before, and
/// nothing of an answer came. Servers close idle connections at any moment (RFC 9112 section 9.3.1).
pub(super) fn met_a_closing_connection(error: &Error) -> bool {
    let mut extras = Extensions::new();
    if let Some(connection) = error.connect_info() {
        connection.get_extras(&mut extras);
    }
    extras.get().is_some_and(|ConnectionProgress(flags)| {
        flags.is_reused.load(Ordering::Relaxed) && !flags.is_answered.load(Ordering::Relaxed)
    })
}

/// A connector whose connections are watched, below TLS: there a connection may count as answered when only keys were exchanged,
/// and a request on it is not sent again.
#[derive(Clone, Debug)]
pub(super) struct WatchedConnector(pub(super) HttpConnector);

impl Service<Uri> for WatchedConnector {
    type Response = TokioIo<WatchedStream>;
    type Error = <HttpConnector as Service<Uri>>::Error;
    type Future = MapOk<<HttpConnector as Service<Uri>>::Future, fn(TokioIo<TcpStream>) -> Self::Response>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        self.0.call(to).map_ok(|stream| {
            TokioIo::new(WatchedStream {
                inner: stream.into_inner(),
                progress: ConnectionProgress::default(),
            })
        })
    }
}

/// A connection that is watched.
#[derive(Debug)]
pub(super) struct WatchedStream {
    inner: TcpStream,
    progress: ConnectionProgress,
}

impl Connection for WatchedStream {
    fn connected(&self) -> Connected {
        self.inner.connected().extra(self.progress.clone())
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
        if buffer.filled().len() > before {
            self.progress.read();
        }
        read
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.progress.wrote();
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
        self.progress.wrote();
        Pin::new(&mut self.inner).poll_write_vectored(cx, pieces)
    }
}
