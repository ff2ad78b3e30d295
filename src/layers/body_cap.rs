//! Caps what a body may weigh on the wire and notices when it ends too early. Not the cap on what
//! it inflates to.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_util::future::BoxFuture;
use http::header::CONTENT_LENGTH;
use http_body::Frame;
use http_body_util::BodyExt;
use tower::{Layer, Service, layer::layer_fn};

use super::error::{CutFault, Size};
use super::{Body, Exchange, FetchError, Reply, Request};

/// Counts a body as it arrives, and compares it with what was announced.
#[derive(Debug, Clone)]
pub struct BodyCap<S> {
    inner: S,
    bytes_max: u64,
    over: Over,
}

/// The treatment of a body that is over its cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Refuse,
    Drop,
}

/// Response extension: how many body bytes came over the wire so far, all of them once the body was
/// read.
#[derive(Debug, Clone, Default)]
pub struct WireBytes(Arc<AtomicU64>);

impl WireBytes {
    /// Bytes so far, as sent: before any Content-Encoding was undone.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl<S> BodyCap<S> {
    /// A body over `bytes_max` is an error, and one that announces so is not read at all.
    pub fn layer(bytes_max: u64) -> impl Layer<S, Service = Self> {
        Self::with(bytes_max, Over::Refuse)
    }

    /// A body over `bytes_max` ends there. For answers of which only the status and the first bytes
    /// matter.
    pub fn first(bytes_max: u64) -> impl Layer<S, Service = Self> {
        Self::with(bytes_max, Over::Drop)
    }

    fn with(bytes_max: u64, over: Over) -> impl Layer<S, Service = Self> {
        layer_fn(move |inner| Self {
            inner,
            bytes_max,
            over,
        })
    }
}

impl<S: Exchange> Service<Request> for BodyCap<S> {
    type Response = Reply;
    type Error = FetchError;
    type Future = BoxFuture<'static, Result<Reply, FetchError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FetchError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let (bytes_max, over) = (self.bytes_max, self.over);
        let head = request.method() == http::Method::HEAD;
        let answer = self.inner.call(request);
        Box::pin(async move {
            let mut reply = answer.await?;
            let announced = if head || is_bodiless(reply.status()) {
                None
            } else {
                announced(&reply)
            };
            if over == Over::Refuse && announced.is_some_and(|bytes| bytes > bytes_max) {
                return Err(FetchError::TooLarge {
                    bytes_max,
                    size: Size::Wire,
                });
            }
            let seen = WireBytes::default();
            reply.extensions_mut().insert(seen.clone());
            Ok(reply.map(|inner| {
                Capped {
                    inner,
                    seen,
                    bytes_max,
                    over,
                    announced,
                    ended: false,
                }
                .boxed_unsync()
            }))
        })
    }
}

/// These announce a length for a body that they do not have (RFC 9110 section 8.6).
fn is_bodiless(status: http::StatusCode) -> bool {
    status.is_informational()
        || matches!(
            status,
            http::StatusCode::NO_CONTENT | http::StatusCode::NOT_MODIFIED
        )
}

fn announced(reply: &Reply) -> Option<u64> {
    reply
        .headers()
        .get(CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()
}

struct Capped {
    inner: Body,
    seen: WireBytes,
    bytes_max: u64,
    over: Over,
    announced: Option<u64>,
    ended: bool,
}

impl http_body::Body for Capped {
    type Data = Bytes;
    type Error = FetchError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, FetchError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let frame = match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
            Some(Ok(frame)) => self.admit(frame),
            Some(Err(error)) => Some(Err(error)),
            None => self.end().map(Err),
        };
        // A body that failed or was cut off here is not read any further.
        self.ended |= !matches!(frame, Some(Ok(_)));
        Poll::Ready(frame)
    }
}

impl Capped {
    fn admit(&mut self, frame: Frame<Bytes>) -> Option<Result<Frame<Bytes>, FetchError>> {
        let Ok(mut data) = frame.into_data() else {
            return Some(Ok(Frame::data(Bytes::new()))); // Trailers: nothing here reads them.
        };
        let before = self
            .seen
            .0
            .fetch_add(data.remaining() as u64, Ordering::Relaxed);
        let room = self.bytes_max.saturating_sub(before);
        if data.remaining() as u64 <= room {
            return Some(Ok(Frame::data(data)));
        }
        match self.over {
            Over::Refuse => Some(Err(FetchError::TooLarge {
                bytes_max: self.bytes_max,
                size: Size::Wire,
            })),
            Over::Drop => {
                self.ended = true;
                data.truncate(usize::try_from(room).unwrap_or(usize::MAX));
                Some(Ok(Frame::data(data)))
            }
        }
    }

    /// The connection speaks HTTP and notices most early ends itself; this check makes the promise
    /// ours.
    fn end(&self) -> Option<FetchError> {
        let seen = self.seen.count();
        let announced = self.announced.filter(|announced| *announced != seen)?;
        Some(FetchError::Cut(
            CutFault::Body,
            format!("{seen} of {announced} bytes arrived").into(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{answering, body_of, get, untouchable_body};
    use super::*;
    use tower::ServiceExt;

    async fn read(
        over: Over,
        bytes_max: u64,
        reply: fn() -> Reply,
    ) -> Result<(Bytes, u64), FetchError> {
        let stack = BodyCap::with(bytes_max, over).layer(answering(move |_| Ok(reply())));
        let reply = stack.oneshot(get("http://a.example/")).await?;
        let seen = reply.extensions().get::<WireBytes>().unwrap().clone();
        Ok((reply.into_body().collect().await?.to_bytes(), seen.count()))
    }

    fn announcing(length: &str, body: Body) -> Reply {
        http::Response::builder()
            .header(CONTENT_LENGTH, length)
            .body(body)
            .unwrap()
    }

    #[tokio::test]
    async fn a_body_within_its_cap_passes_and_is_counted() {
        let (body, seen) = read(Over::Refuse, 8, || {
            http::Response::new(body_of(&["four", "more"]))
        })
        .await
        .unwrap();
        assert_eq!((&body[..], seen), (&b"fourmore"[..], 8));
    }

    #[tokio::test]
    async fn a_body_over_its_cap_is_an_error_and_not_a_shorter_body() {
        let error = read(Over::Refuse, 7, || {
            http::Response::new(body_of(&["four", "more"]))
        })
        .await
        .unwrap_err();
        assert!(
            matches!(
                error,
                FetchError::TooLarge {
                    bytes_max: 7,
                    size: Size::Wire
                }
            ),
            "{error:?}"
        );
    }

    #[tokio::test]
    async fn a_length_over_the_cap_is_refused_before_the_first_byte() {
        let error = read(Over::Refuse, 10, || announcing("11", untouchable_body()))
            .await
            .unwrap_err();
        assert!(
            matches!(
                error,
                FetchError::TooLarge {
                    bytes_max: 10,
                    size: Size::Wire
                }
            ),
            "{error:?}"
        );
    }

    #[tokio::test]
    async fn a_body_shorter_than_announced_is_cut() {
        let error = read(Over::Refuse, 10, || announcing("9", body_of(&["12345678"])))
            .await
            .unwrap_err();
        assert!(matches!(error, FetchError::Cut(..)), "{error:?}");
    }

    #[tokio::test]
    async fn a_304_may_announce_the_length_of_the_body_that_it_saves() {
        let (body, _) = read(Over::Refuse, 10, || {
            let mut reply = announcing("123456", body_of(&[]));
            *reply.status_mut() = http::StatusCode::NOT_MODIFIED;
            reply
        })
        .await
        .unwrap();
        assert!(body.is_empty());
    }

    #[tokio::test]
    async fn only_the_first_bytes_are_kept_where_the_rest_does_not_matter() {
        let (body, _) = read(Over::Drop, 5, || {
            announcing("8", body_of(&["four", "more"]))
        })
        .await
        .unwrap();
        assert_eq!(&body[..], b"fourm");
    }
}
