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
/// Time for which a beginning is waited for: a page that comes in drops is passed on as it comes.
const LOOK_TIME: Duration = Duration::from_secs(2);

/// The beginning of a body, as far as it is needed and comes in time, and what follows it.
pub(super) async fn look_ahead(
    body: ServeBody,
    is_enough: impl FnMut(&[u8]) -> bool + Send,
) -> (Bytes, ServeBody) {
    look_ahead_within(body, LOOK_TIME, is_enough).await
}

/// The same within another time.
pub(super) async fn look_ahead_within(
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

/// A body of pieces that are there and of what follows them.
pub(super) fn joined(pieces: impl IntoIterator<Item = Bytes>, rest: ServeBody) -> ServeBody {
    let pieces: Vec<_> = pieces
        .into_iter()
        .filter(|piece| !piece.is_empty())
        .map(|piece| Ok(Frame::data(piece)))
        .collect();
    StreamBody::new(stream::iter(pieces).chain(BodyStream::new(rest))).boxed_unsync()
}
