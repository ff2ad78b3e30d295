//! The beginning of a body on its way, looked at before the rest has come; not what is looked for.

use crate::edge::body::ServeBody;
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt as _, stream};
use http_body::Frame;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use std::time::Duration;
use tower::BoxError;

/// Bytes of a beginning.
pub(super) const LOOK_BYTES_MAX: usize = 16 << 10;

/// The beginning of a body, as far as it is needed and comes in time, and what follows it.
pub(super) async fn look_ahead(
    mut body: ServeBody,
    time: Duration,
    mut is_enough: impl FnMut(&[u8]) -> bool + Send,
) -> (Bytes, ServeBody) {
    let mut begin = BytesMut::new();
    let mut behind: Option<Result<Frame<Bytes>, BoxError>> = None;
    let until = tokio::time::Instant::now() + time;
    while begin.len() < LOOK_BYTES_MAX && !is_enough(&begin) {
        let Ok(Some(frame)) = tokio::time::timeout_at(until, body.frame()).await else {
            break;
        };
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) => begin.extend_from_slice(&data),
            Ok(Err(other)) => {
                behind = Some(Ok(other));
                break;
            }
            Err(error) => {
                behind = Some(Err(error));
                break;
            }
        }
    }
    let rest = stream::iter(behind).chain(BodyStream::new(body));
    (begin.freeze(), StreamBody::new(rest).boxed_unsync())
}

/// A body of a beginning that is there and of what follows it.
pub(super) fn joined(begin: Bytes, rest: ServeBody) -> ServeBody {
    let begin = (!begin.is_empty()).then(|| Ok(Frame::data(begin)));
    StreamBody::new(stream::iter(begin).chain(BodyStream::new(rest))).boxed_unsync()
}
