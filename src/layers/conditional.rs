//! Conditional requests: sends the validators of the last answer back, word for word, and reads
//! those of this one. Keeps nothing itself; the pair lives with whoever keeps the body.
//!
//! It stands *inside* Redirect, so that it sees the URL of each hop: a validator belongs to the URL
//! that issued it and is sent to no other. Sent along to wherever a redirect leads today, an
//! If-Modified-Since would be answered with 304 by any older document, and that 304 would be
//! believed. Never sends `A-IM`: a delta hides deletions.

use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::header::{ETAG, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use http::{HeaderMap, Method, StatusCode};
use tower::{Layer, Service, layer::layer_fn};
use url::Url;

use super::address_guard::url_of;
use super::error::ProtocolFault;
use super::{Exchange, FetchError, Reply, Request};

/// Makes a request conditional if it carries [`Validators`] of its own URL.
#[derive(Debug, Clone)]
pub struct Conditional<S> {
    inner: S,
}

/// A server's marks of one version of one document, as sent. As request extension: what to ask
/// with. As response extension: what this answer carries, perhaps nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validators {
    /// `ETag`, with or without its quotes, each byte one character.
    pub etag: Option<String>,
    /// `Last-Modified`, in whatever form.
    pub last_modified: Option<String>,
    /// The URL that sent the two, in its normal form: the last one of the redirects.
    pub url: String,
}

/// Response extension: how the answer was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// True when validators were sent on the hop that gave the answer. A caller that hands in
    /// validators may still get a plain answer, when redirects now lead elsewhere.
    pub conditional: bool,
}

impl Validators {
    /// True when there is nothing to ask with.
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }

    fn read(headers: &HeaderMap, url: &Url) -> Self {
        let first = |name| {
            headers
                .get(name)
                .map(verbatim)
                .filter(|text| !text.is_empty())
        };
        Self {
            etag: first(ETAG),
            last_modified: first(LAST_MODIFIED),
            url: without_fragment(url),
        }
    }

    /// Both are sent when there are both, as the server that sent them may check either.
    fn write(&self, headers: &mut HeaderMap) -> bool {
        let mut any = false;
        for (name, text) in [
            (IF_NONE_MATCH, &self.etag),
            (IF_MODIFIED_SINCE, &self.last_modified),
        ] {
            if let Some(value) = text.as_deref().and_then(as_sent) {
                headers.insert(name, value);
                any = true;
            }
        }
        any
    }
}

impl<S> Conditional<S> {
    /// Asks conditionally where it can.
    pub fn layer() -> impl Layer<S, Service = Self> {
        layer_fn(|inner| Self { inner })
    }
}

impl<S: Exchange> Service<Request> for Conditional<S> {
    type Response = Reply;
    type Error = FetchError;
    type Future = BoxFuture<'static, Result<Reply, FetchError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FetchError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let url = match url_of(request.uri()) {
            Ok(url) => url,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let conditional = ask(&mut request, &url);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let mut reply = answer.await?;
            if reply.status() == StatusCode::NOT_MODIFIED && !conditional {
                return Err(FetchError::Protocol(
                    ProtocolFault::Malformed,
                    "304 to a request without validators".into(),
                ));
            }
            let validators = Validators::read(reply.headers(), &url);
            reply.extensions_mut().insert(validators);
            reply.extensions_mut().insert(Asked { conditional });
            Ok(reply)
        })
    }
}

/// Puts the validators on a request to the URL that they came from. True when any were.
fn ask(request: &mut Request, url: &Url) -> bool {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return false;
    }
    let Some(validators) = request.extensions().get::<Validators>().cloned() else {
        return false;
    };
    validators.url == without_fragment(url) && validators.write(request.headers_mut())
}

fn without_fragment(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.into()
}

/// A header value as text that keeps every byte: old servers send Latin-1 and worse.
fn verbatim(value: &HeaderValue) -> String {
    value.as_bytes().iter().copied().map(char::from).collect()
}

fn as_sent(text: &str) -> Option<HeaderValue> {
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c).ok()).collect();
    HeaderValue::from_bytes(&bytes?).ok()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{answering, body_of, get};
    use super::*;
    use tower::ServiceExt;

    const FEED: &str = "http://a.example/feed?x=1";

    /// Sends `request` to a server that answers with `status` and `headers`; the answer, and what
    /// it was asked.
    async fn exchange(
        request: Request,
        status: u16,
        headers: &'static [(&'static str, &'static [u8])],
    ) -> Result<(Reply, HeaderMap), FetchError> {
        let (tell, asked) = std::sync::mpsc::channel();
        let stack = Conditional::layer().layer(answering(move |request: Request| {
            tell.send(request.headers().clone()).unwrap();
            let mut reply = http::Response::builder().status(status);
            for (name, value) in headers {
                reply = reply.header(*name, *value);
            }
            Ok(reply.body(body_of(&[])).unwrap())
        }));
        let reply = stack.oneshot(request).await?;
        Ok((reply, asked.recv().unwrap()))
    }

    async fn check_round_trip(etag: &'static [u8], last_modified: &'static [u8]) {
        let headers: &'static [_] =
            Box::leak(Box::new([("etag", etag), ("last-modified", last_modified)]));
        let (reply, asked) = exchange(get(FEED), 200, headers).await.unwrap();
        assert!(asked.is_empty(), "nothing to ask with yet");
        assert_eq!(
            reply.extensions().get(),
            Some(&Asked { conditional: false })
        );
        let validators = reply.extensions().get::<Validators>().unwrap().clone();
        assert_eq!(validators.url, FEED);

        let mut again = get(FEED);
        again.extensions_mut().insert(validators);
        let (reply, asked) = exchange(again, 304, &[]).await.unwrap();
        assert_eq!(asked[IF_NONE_MATCH].as_bytes(), etag);
        assert_eq!(asked[IF_MODIFIED_SINCE].as_bytes(), last_modified);
        assert!(!asked.contains_key("a-im"));
        assert_eq!(reply.extensions().get(), Some(&Asked { conditional: true }));
        assert!(reply.extensions().get::<Validators>().unwrap().is_empty());
    }

    #[tokio::test]
    async fn both_validators_go_back_as_they_came() {
        check_round_trip(b"\"abc\"", b"Sun, 06 Nov 1994 08:49:37 GMT").await;
        check_round_trip(b"W/\"abc-gzip\"", b"Sun, 06 Nov 1994 08:49:37 +0000").await;
        check_round_trip(b"no-quotes-at-all", b"yesterday").await;
        check_round_trip(b"\"caf\xe9\"", b"0").await;
    }

    #[tokio::test]
    async fn validators_go_only_to_the_url_that_issued_them() {
        for other in [
            "http://a.example/feed",
            "http://b.example/feed?x=1",
            "https://a.example/feed?x=1",
        ] {
            let mut request = get(other);
            let pair = Validators {
                etag: Some("x".into()),
                last_modified: Some("y".into()),
                url: FEED.into(),
            };
            request.extensions_mut().insert(pair);
            let (reply, asked) = exchange(request, 200, &[]).await.unwrap();
            assert!(asked.is_empty(), "{other}");
            assert_eq!(
                reply.extensions().get(),
                Some(&Asked { conditional: false })
            );
        }
    }

    #[tokio::test]
    async fn a_304_that_was_not_asked_for_is_an_error() {
        let error = exchange(get(FEED), 304, &[]).await.unwrap_err();
        assert!(matches!(error, FetchError::Protocol(..)), "{error:?}");
    }

    #[tokio::test]
    async fn a_stored_validator_that_is_no_header_value_is_left_out() {
        let mut request = get(FEED);
        let pair = Validators {
            etag: Some("a\r\nb: c".into()),
            last_modified: None,
            url: FEED.into(),
        };
        request.extensions_mut().insert(pair);
        let (reply, asked) = exchange(request, 200, &[("etag", b"")]).await.unwrap();
        assert!(asked.is_empty());
        assert_eq!(reply.extensions().get::<Validators>().unwrap().etag, None);
    }
}
