//! Deliveries to a callback of WebSub or one of its ancestors: a POST of the page, signed; not
//! which page.

use super::{Deliver, Delivered, Delivery, answer::judge};
use crate::{
    catalog::Destination,
    clock::Clock,
    hub::{client::CallbackClient, places::Place, signature},
    layers::Request,
    store::subscriptions::CallbackTarget,
};
use futures_util::future::{BoxFuture, FutureExt as _};
use http::header::{CONTENT_TYPE, LINK, USER_AGENT};
use std::sync::Arc;

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
            let Some(request) = self.request(&delivery) else {
                return Delivered::Unsendable;
            };
            judge(&self.client.send(request, place).await, self.clock.now())
        }
        .boxed()
    }
}

impl CallbackWay {
    /// The request. Its headers are these and no others; nothing of upstream's is passed on. The
    /// body goes uncompressed, since the signature is over the bytes sent (W-18).
    fn request(&self, delivery: &Delivery) -> Option<Request> {
        let Delivery {
            representation,
            link,
            prev,
            page,
        } = delivery;
        let mut request = http::Request::post(self.target.url.as_str())
            .header(CONTENT_TYPE, representation.content_type())
            .header(LINK, link)
            .header(USER_AGENT, &self.client.user_agent)
            .header("smart-feed-prev", prev)
            .header("smart-feed-last", page.last_cursor.as_str());
        if let Some(secret) = &self.target.secret {
            let signature =
                signature::signature(self.target.algo, secret.reveal().as_bytes(), &page.body);
            request = request.header("x-hub-signature", signature);
        }
        request.body(page.body.clone()).ok()
    }
}
