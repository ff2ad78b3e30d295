//! Bodies of requests and answers: one type for each way, so that every mount may take and send bytes at once or a stream.

use super::rescue::Refusal;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, request::Parts};
use http_body_util::{BodyExt as _, Collected, Full, LengthLimitError, Limited, combinators::UnsyncBoxBody};
use std::time::Duration;
use tower::BoxError;

/// Body of a request or an answer.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// An answer of any mount.
pub type Response = http::Response<Body>;

/// A body that is there already; the bytes are shared, not copied.
pub fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// The largest form, bytes: hub requests are small.
const FORM_BYTES_MAX: usize = 64 << 10;
/// Seconds in which it must be here.
const FORM_SECS: u64 = 30;

/// Reads the form of a POST whole; the body of other methods is not looked at.
pub(super) async fn read_form(request: &Parts, body: Body) -> Result<Bytes, Refusal> {
    if request.method != Method::POST {
        return Ok(Bytes::new());
    }
    let whole: BoxFuture<'static, Result<Collected<Bytes>, BoxError>> =
        Box::pin(Limited::new(body, FORM_BYTES_MAX).collect());
    let in_time = tokio::time::timeout(Duration::from_secs(FORM_SECS), whole).await;
    match in_time.map_err(|_| Refusal::slow(FORM_SECS))? {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Refusal::too_large(FORM_BYTES_MAX)),
        Err(_) => Err(Refusal::bad("the request body broke off")),
    }
}
