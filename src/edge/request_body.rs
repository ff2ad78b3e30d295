//! The body of a request, and what is left of it when nobody reads it to its end: a connection goes
//! on behind the whole of it alone. Not what is in it.

use crate::locks::lock;
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Request, Version};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

/// Looks at a body that nobody read: between two of them the connection hands on what is there.
const LOOKS_MAX: usize = 16;
/// Bytes of such a body that are read.
const LEFT_BYTES_MAX: usize = 64 << 10;

/// A body that is given back when it is dropped before its end.
#[derive(Debug)]
pub struct RequestBody {
    /// The body until its end was read.
    inner: Option<Incoming>,
    left: LeftBody,
}

impl RequestBody {
    /// Has what is left of the body of a request given back; HTTP/2 goes on without it.
    pub(super) fn watch(request: Request<Incoming>) -> (Request<Self>, LeftBody) {
        let is_watched = request.version() < Version::HTTP_2 && !request.body().is_end_stream();
        let left = LeftBody(is_watched.then(Arc::default));
        (
            request.map(|body| Self {
                inner: Some(body),
                left: left.clone(),
            }),
            left,
        )
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(inner) = &mut self.inner else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(inner).poll_frame(cx);
        if matches!(polled, Poll::Ready(None)) {
            self.inner = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner
            .as_ref()
            .map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let Some(left) = &self.left.0
            && let Some(inner) = self.inner.take().filter(|inner| !inner.is_end_stream())
        {
            *lock(left) = Some(inner);
        }
    }
}

/// The place for a body that nobody read to its end; `None` where there is no body.
#[derive(Clone, Debug)]
pub(super) struct LeftBody(Option<Arc<Mutex<Option<Incoming>>>>);

impl LeftBody {
    // Decides: When does a connection end behind an answer?
    /// True when nothing is left: all was read, or it is still being read, or what is left is short
    /// and there already. Nothing is waited for, and a client that waits to be asked for its body
    /// (`expects`) is not asked.
    pub(super) async fn is_done(&self, expects: bool) -> bool {
        let left = self.0.as_ref().and_then(|left| lock(left).take());
        let Some(mut body) = left else { return true };
        let mut bytes = 0;
        for _ in 0..LOOKS_MAX {
            if expects || bytes > LEFT_BYTES_MAX {
                return false;
            }
            match body.frame().now_or_never() {
                Some(None) => return true,
                Some(Some(Err(_))) => return false,
                Some(Some(Ok(frame))) => bytes += frame.data_ref().map_or(0, Bytes::len),
                None => tokio::task::yield_now().await,
            }
            if body.is_end_stream() {
                return true;
            }
        }
        false
    }
}
