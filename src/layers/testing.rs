//! Inner services and bodies for the tests of the layers. Compiled for tests only.

use std::future::{Ready, ready};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tower::Service;

use super::{Body, FetchError, Reply, Request};

pub(super) fn get(url: &str) -> Request {
    http::Request::get(url).body(Bytes::new()).unwrap()
}

/// A service that answers at once with what `answer` makes of the request.
pub(super) fn answering<F>(
    answer: F,
) -> impl Service<Request, Response = Reply, Error = FetchError, Future = Ready<Result<Reply, FetchError>>>
+ Clone
+ Send
+ 'static
where
    F: FnMut(Request) -> Result<Reply, FetchError> + Clone + Send + 'static,
{
    let mut answer = answer;
    tower::service_fn(move |request| ready(answer(request)))
}

pub(super) fn body_of(chunks: &[&'static str]) -> Body {
    bytes_body(chunks.iter().map(|chunk| Bytes::from_static(chunk.as_bytes())).collect())
}

pub(super) fn bytes_body(chunks: Vec<Bytes>) -> Body {
    StreamBody::new(stream::iter(chunks).map(|chunk| Ok(Frame::data(chunk)))).boxed_unsync()
}

/// A body that says `start` and then nothing for ever.
pub(super) fn stalling_body(start: &'static str) -> Body {
    let start = stream::iter([Ok(Frame::data(Bytes::from_static(start.as_bytes())))]);
    StreamBody::new(start.chain(stream::pending())).boxed_unsync()
}

/// A body that fails the test when it is read.
pub(super) fn untouchable_body() -> Body {
    let never = stream::poll_fn(|_| -> std::task::Poll<Option<Result<Frame<Bytes>, FetchError>>> {
        panic!("nobody was to read this body")
    });
    StreamBody::new(never).boxed_unsync()
}
