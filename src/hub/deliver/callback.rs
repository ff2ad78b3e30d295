//! Deliveries to a callback of WebSub or one of its ancestors: a POST of the page, signed; not
//! which page.

use super::Delivery;
use crate::{hub::signature, layers::Request, store::subscriptions::CallbackTarget};
use http::{
    HeaderValue,
    header::{CONTENT_TYPE, LINK, USER_AGENT},
};

/// The request. Its headers are these and no others; nothing of upstream's is passed on. The body
/// goes uncompressed, since the signature is over the bytes sent (W-18).
pub(super) fn request(
    target: &CallbackTarget,
    delivery: &Delivery,
    user_agent: &HeaderValue,
) -> Option<Request> {
    let page = &delivery.page;
    let mut request = http::Request::post(target.url.as_str())
        .header(CONTENT_TYPE, delivery.representation.content_type())
        .header(LINK, &delivery.link)
        .header(USER_AGENT, user_agent)
        .header("smart-feed-prev", &delivery.prev)
        .header("smart-feed-last", page.last_cursor.as_str());
    if let Some(secret) = &target.secret {
        let signature = signature::signature(target.algo, secret.reveal().as_bytes(), &page.body);
        request = request.header("x-hub-signature", signature);
    }
    request.body(page.body.clone()).ok()
}
