//! Undoes Content-Encoding and caps what comes out, so that a small answer cannot become a large
//! one. Not the cap on what goes in.

mod inflater;

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, HeaderValue};
use http_body::Frame;
use http_body_util::BodyExt;
use tower::{Layer, Service, layer::layer_fn};

use self::inflater::{ContentCoding, Inflater};
use super::error::{BoxError, InflateFault};
use super::{Body, Exchange, FetchError, Reply, Request};

/// Asks for the codings it can undo, and undoes them while the body arrives.
#[derive(Debug, Clone)]
pub struct InflateCap<S> {
    inner: S,
    bytes_max: u64,
}

/// Request extension: of the body, only the first so many bytes matter, inflated. The rest is not
/// read, and the connection is let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstBytes(pub u64);

impl<S> InflateCap<S> {
    /// A body that inflates to more than `bytes_max` is an error, noticed with no more than that in
    /// memory. It holds for plain bodies too.
    pub fn layer(bytes_max: u64) -> impl Layer<S, Service = Self> {
        layer_fn(move |inner| Self { inner, bytes_max })
    }
}

impl<S: Exchange> Service<Request> for InflateCap<S> {
    type Response = Reply;
    type Error = FetchError;
    type Future = BoxFuture<'static, Result<Reply, FetchError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FetchError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        request
            .headers_mut()
            .entry(ACCEPT_ENCODING)
            .or_insert(HeaderValue::from_static("gzip, deflate, br, zstd"));
        let bytes_max = self.bytes_max;
        let wanted = request.extensions().get().map(|FirstBytes(first)| *first);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let (mut parts, body) = answer.await?.into_parts();
            let coding = coding_of(&parts.headers)?;
            if coding != ContentCoding::Identity {
                // Both speak of a body that nobody further out will see.
                parts.headers.remove(CONTENT_ENCODING);
                parts.headers.remove(CONTENT_LENGTH);
            }
            let inflater = Some(Inflater::new(coding, bytes_max));
            let inflated = Inflating {
                inner: body,
                inflater,
                wanted,
            };
            Ok(http::Response::from_parts(parts, inflated.boxed_unsync()))
        })
    }
}

/// The one coding of a body. Several on top of each other are legal, unheard of in feeds, and a
/// known way to build bombs.
fn coding_of(headers: &HeaderMap) -> Result<ContentCoding, FetchError> {
    let unknown = |error: BoxError| FetchError::Inflate(InflateFault::UnknownCoding, error);
    let mut coding = ContentCoding::Identity;
    for value in headers.get_all(CONTENT_ENCODING) {
        let value = value.to_str().map_err(|error| unknown(error.into()))?;
        for name in value.split(',').map(str::trim) {
            let next = match name.to_ascii_lowercase().as_str() {
                "" | "identity" => continue,
                "gzip" | "x-gzip" => ContentCoding::Gzip,
                "deflate" => ContentCoding::Deflate,
                "br" => ContentCoding::Brotli,
                "zstd" => ContentCoding::Zstd,
                _ => return Err(unknown("a coding that was not asked for".into())),
            };
            if coding != ContentCoding::Identity {
                return Err(unknown("more than one coding".into()));
            }
            coding = next;
        }
    }
    Ok(coding)
}

struct Inflating {
    inner: Body,
    /// Gone once the body has ended, well or badly.
    inflater: Option<Inflater>,
    /// Bytes that are still wanted, if not all are.
    wanted: Option<u64>,
}

impl Inflating {
    /// Takes what is wanted of these bytes. With the last of them the body ends.
    fn admit(&mut self, mut out: Bytes) -> Bytes {
        let Some(wanted) = &mut self.wanted else {
            return out;
        };
        out.truncate(usize::try_from(*wanted).unwrap_or(usize::MAX));
        *wanted -= out.len() as u64;
        if *wanted == 0 {
            self.inflater = None;
        }
        out
    }
}

impl http_body::Body for Inflating {
    type Data = Bytes;
    type Error = FetchError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, FetchError>>> {
        while let Some(mut inflater) = self.inflater.take() {
            let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) else {
                self.inflater = Some(inflater);
                return Poll::Pending;
            };
            let out = match frame.transpose()?.map(Frame::into_data) {
                Some(Ok(data)) => {
                    let out = inflater.push(data)?;
                    self.inflater = Some(inflater);
                    out
                }
                Some(Err(_trailers)) => {
                    self.inflater = Some(inflater);
                    continue;
                }
                None => inflater.finish()?,
            };
            let out = self.admit(out);
            if !out.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(out))));
            }
        }
        Poll::Ready(None)
    }
}

#[cfg(test)]
mod tests;
