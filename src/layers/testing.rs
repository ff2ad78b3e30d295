//! Inner services and bodies for the tests of the layers. Compiled for tests only.

use std::future::{Ready, ready};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tower::Service;

use super::{Body, FetchError, Reply, Request};

pub(super) fn get(url: &str) -> Request {
    http::Request::get(url).body(Bytes::new()).unwrap()
}

/// A service that answers at once with what `answer` makes of the request. It fails the test when
/// an instance is called that was not readied, so every test through it also checks the layers'
/// `poll_ready`.
pub(super) fn answering<F>(answer: F) -> Answering<F>
where
    F: FnMut(Request) -> Result<Reply, FetchError>,
{
    Answering {
        answer,
        ready: false,
    }
}

pub(super) struct Answering<F> {
    answer: F,
    ready: bool,
}

impl<F: Clone> Clone for Answering<F> {
    fn clone(&self) -> Self {
        Self {
            answer: self.answer.clone(),
            ready: false,
        }
    }
}

impl<F> Service<Request> for Answering<F>
where
    F: FnMut(Request) -> Result<Reply, FetchError>,
{
    type Response = Reply;
    type Error = FetchError;
    type Future = Ready<Result<Reply, FetchError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), FetchError>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        assert!(
            std::mem::take(&mut self.ready),
            "called a service that was not readied"
        );
        ready((self.answer)(request))
    }
}

pub(super) fn body_of(chunks: &[&'static str]) -> Body {
    bytes_body(
        chunks
            .iter()
            .map(|chunk| Bytes::from_static(chunk.as_bytes()))
            .collect(),
    )
}

pub(super) fn bytes_body(chunks: Vec<Bytes>) -> Body {
    StreamBody::new(stream::iter(chunks).map(|chunk| Ok(Frame::data(chunk)))).boxed_unsync()
}

/// A body that comes in chunks of so many bytes.
pub(super) fn chunked(bytes: Vec<u8>, chunk: usize) -> Body {
    bytes_body(bytes.chunks(chunk).map(Bytes::copy_from_slice).collect())
}

/// A body that says `start` and then nothing for ever.
pub(super) fn stalling_body(start: &'static str) -> Body {
    let start = stream::iter([Ok(Frame::data(Bytes::from_static(start.as_bytes())))]);
    StreamBody::new(start.chain(stream::pending())).boxed_unsync()
}

/// A body that fails the test when it is read.
pub(super) fn untouchable_body() -> Body {
    let never = stream::poll_fn(|_| -> Poll<Option<Result<Frame<Bytes>, FetchError>>> {
        panic!("nobody was to read this body")
    });
    StreamBody::new(never).boxed_unsync()
}
