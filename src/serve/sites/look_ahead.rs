//! The beginning of a body on its way, looked at before the rest has come; not what is looked for.

use crate::edge::body::ServeBody;
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt as _, stream};
use http_body::Frame;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tower::BoxError;

/// Bytes of a beginning.
const LOOK_BYTES_MAX: usize = 16 << 10;
/// Time for which a beginning is waited for: a page that comes in drops is passed on as it comes.
const LOOK_TIME: Duration = Duration::from_secs(2);

/// The beginning of a body, as far as it is needed and comes in time, and what follows it.
pub(super) async fn look_ahead(
    body: ServeBody,
    mut is_enough: impl FnMut(&[u8]) -> bool + Send,
) -> (Bytes, ServeBody) {
    let until = Instant::now() + LOOK_TIME;
    let wait = |begin: &[u8]| (begin.len() < LOOK_BYTES_MAX && !is_enough(begin)).then_some(until);
    let (begin, _, rest) = look_ahead_while(body, wait).await;
    (begin, rest)
}

/// The end of a look at the beginning of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PreviewEnd {
    /// No more is needed.
    Enough,
    /// The body has ended.
    Whole,
    /// No more came in time.
    Late,
}

/// The same as long as it is waited for more, until the moment that each beginning has.
pub(super) async fn look_ahead_while(
    mut body: ServeBody,
    mut wait: impl FnMut(&[u8]) -> Option<Instant> + Send,
) -> (Bytes, PreviewEnd, ServeBody) {
    let mut begin = BytesMut::new();
    let mut behind: Option<Result<Frame<Bytes>, BoxError>> = None;
    let mut end = PreviewEnd::Enough;
    while let Some(until) = wait(&begin) {
        end = match timeout_at(until, body.frame()).await {
            Err(_) => PreviewEnd::Late,
            Ok(None) => PreviewEnd::Whole,
            Ok(Some(frame)) => match frame.map(Frame::into_data) {
                Ok(Ok(data)) => {
                    begin.extend_from_slice(&data);
                    continue;
                }
                Ok(Err(other)) => {
                    behind = Some(Ok(other));
                    PreviewEnd::Whole
                }
                Err(error) => {
                    behind = Some(Err(error));
                    PreviewEnd::Whole
                }
            },
        };
        break;
    }
    let rest = stream::iter(behind).chain(BodyStream::new(body));
    (begin.freeze(), end, StreamBody::new(rest).boxed_unsync())
}

/// A body of a beginning that is there and of what follows it.
pub(super) fn joined(begin: Bytes, rest: ServeBody) -> ServeBody {
    let begin = (!begin.is_empty()).then(|| Ok(Frame::data(begin)));
    StreamBody::new(stream::iter(begin).chain(BodyStream::new(rest))).boxed_unsync()
}
