//! The meaning of a target's answer to a delivery, in all protocols over HTTP; not what is sent.

use super::{Delivered, NotTaken};
use crate::{
    clock::Clock,
    hub::{callback_permits::CallbackPermit, client::CallbackClient},
    layers::{FetchError, Request, parse_retry_after},
};
use bytes::Bytes;
use http::{Response, StatusCode, header::RETRY_AFTER};
use std::time::{Duration, SystemTime};

/// The most readers that one subscriber is believed to serve: no feed reader has more.
const ON_BEHALF_OF_MAX: u32 = 10_000_000;

/// Readers whom a subscriber serves, as its answer says (0.3 section 7.3, W-19). What is no number
/// is not looked at.
fn on_behalf_of(answer: &Response<Bytes>) -> Option<u32> {
    let text = answer
        .headers()
        .get("x-hub-on-behalf-of")?
        .to_str()
        .ok()?
        .trim();
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // Digits that do not fit are more than the most.
    is_number.then(|| text.parse().unwrap_or(u32::MAX).min(ON_BEHALF_OF_MAX))
}

/// The meaning of the answer to a request, which is sent; `None` for one that cannot be made.
pub(super) async fn to(
    request: Option<Request>,
    client: &CallbackClient,
    place: &mut CallbackPermit,
    clock: &dyn Clock,
) -> Delivered {
    match request {
        Some(request) => judge(&client.send(request, place).await, clock.now()),
        None => Delivered::Unsendable,
    }
}

/// The wait that an answer asks for.
pub(super) fn retry_after(answer: &Response<Bytes>, now: SystemTime) -> Option<Duration> {
    let at = answer.headers().get(RETRY_AFTER)?;
    parse_retry_after(at, now)
}

/// The meaning of an answer: any 2xx is a yes and its body is not looked at, 410 is the end, and
/// all else, redirects included, is a failure (HUB-20, P-53).
pub(super) fn judge(answer: &Result<Response<Bytes>, FetchError>, now: SystemTime) -> Delivered {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            return Delivered::Failed(NotTaken {
                why: error.to_string(),
                retry_after: error.wait(),
                too_large: false,
            });
        }
    };
    match answer.status() {
        status if status.is_success() => Delivered::Taken {
            on_behalf_of: on_behalf_of(answer),
        },
        StatusCode::GONE => Delivered::Gone,
        status => Delivered::Failed(NotTaken {
            why: format!("it answered with status {}", status.as_u16()),
            retry_after: retry_after(answer, now),
            too_large: status == StatusCode::PAYLOAD_TOO_LARGE,
        }),
    }
}
