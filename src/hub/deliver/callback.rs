//! Deliveries to a callback of WebSub or one of its ancestors: a POST of the page, signed; not which page.

use super::{Deliver, Delivered, Delivery};
use crate::{
    clock::Clock,
    hub::{client::CallbackClient, destination::Destination, places::Place, signature},
    layers::{FetchError, Request, parse_retry_after},
    store::subscriptions::CallbackTarget,
};
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use http::{
    Response, StatusCode,
    header::{CONTENT_TYPE, LINK, RETRY_AFTER, USER_AGENT},
};
use std::{sync::Arc, time::SystemTime};

/// The way to a callback.
pub(super) struct CallbackWay {
    pub(super) client: CallbackClient,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) target: CallbackTarget,
}

impl Deliver for CallbackWay {
    fn destination(&self) -> Destination {
        Destination::of(&self.target.url)
    }

    fn deliver<'a>(&'a self, delivery: Delivery, place: &'a mut Place) -> BoxFuture<'a, Delivered> {
        async move {
            let Some(request) = self.request(&delivery) else { return Delivered::Unsendable };
            judge(&self.client.send(request, place).await, self.clock.now())
        }
        .boxed()
    }
}

impl CallbackWay {
    /// The request. Its headers are these and no others; nothing of upstream's is passed on. The body goes uncompressed,
    /// since the signature is over the bytes sent (W-18).
    fn request(&self, delivery: &Delivery) -> Option<Request> {
        let Delivery { representation, link, prev, page } = delivery;
        let mut request = http::Request::post(self.target.url.as_str())
            .header(CONTENT_TYPE, representation.content_type())
            .header(LINK, link)
            .header(USER_AGENT, &self.client.user_agent)
            .header("smart-feed-prev", prev)
            .header("smart-feed-last", page.last_cursor.as_str());
        if let Some(secret) = &self.target.secret {
            let signature = signature::signature(self.target.algo, secret.reveal().as_bytes(), &page.body);
            request = request.header("x-hub-signature", signature);
        }
        request.body(page.body.clone()).ok()
    }
}

/// The most readers that one subscriber is believed to serve: no feed reader has more.
const ON_BEHALF_OF_MAX: u32 = 10_000_000;

/// Readers whom a subscriber serves, as its answer says (0.3 section 7.3, W-19). What is no number is not looked at.
fn on_behalf_of(answer: &Response<Bytes>) -> Option<u32> {
    let text = answer.headers().get("x-hub-on-behalf-of")?.to_str().ok()?.trim();
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // Digits that do not fit are more than the most.
    is_number.then(|| text.parse().unwrap_or(u32::MAX).min(ON_BEHALF_OF_MAX))
}

/// The meaning of an answer: any 2xx is a yes and its body is not looked at, 410 is the end, and all else, redirects
/// included, is a failure (HUB-20, P-53).
fn judge(answer: &Result<Response<Bytes>, FetchError>, now: SystemTime) -> Delivered {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            let (why, retry_after) = (error.to_string(), error.wait());
            return Delivered::Failed { why, retry_after, too_large: false };
        }
    };
    match answer.status() {
        status if status.is_success() => Delivered::Taken { on_behalf_of: on_behalf_of(answer) },
        StatusCode::GONE => Delivered::Gone,
        status => Delivered::Failed {
            why: format!("it answered with status {}", status.as_u16()),
            retry_after: answer.headers().get(RETRY_AFTER).and_then(|at| parse_retry_after(at, now)),
            too_large: status == StatusCode::PAYLOAD_TOO_LARGE,
        },
    }
}
