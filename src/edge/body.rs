//! Bodies of requests and answers: one type for each way, so that every mount may take and send
//! bytes at once or a stream.

use bytes::Bytes;
use http::{
    HeaderValue, Request, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use std::convert::Infallible;
use tower::{BoxError, util::BoxCloneSyncService};

/// Body of a request or an answer.
pub type ServeBody = UnsyncBoxBody<Bytes, BoxError>;

/// An answer of any mount.
pub type Response = http::Response<ServeBody>;

/// The service of a mount. It gets a request with its body unread, and reads of it what it needs.
pub type MountService = BoxCloneSyncService<Request<ServeBody>, Response, Infallible>;

/// Mark of an answer, as an extension, whose body comes from elsewhere while it is sent: of what
/// has not come yet, a reader cannot have read anything.
#[derive(Clone, Copy, Debug)]
pub struct Streamed;

/// A body that is there already; the bytes are shared, not copied.
pub fn whole(bytes: impl Into<Bytes>) -> ServeBody {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// The media type of answers in plain text.
pub const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// An answer of a few words, which nobody keeps and no browser takes for anything else.
pub fn short(status: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Response {
    short_of(status, media_type, whole(body))
}

/// The same with a body of another type.
pub fn short_of<B>(status: StatusCode, media_type: &'static str, body: B) -> http::Response<B> {
    let mut response = http::Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// A short answer in plain text.
pub fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response {
    short(status, PLAIN_TEXT, text)
}
