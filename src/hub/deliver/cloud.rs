//! Deliveries to a listener of rssCloud: a POST of the feed's URL, and nothing of its items (LEGACY
//! C-4); not when.

use super::{Deliver, Delivered, Delivery, answer::judge};
use crate::{
    catalog::Destination,
    clock::Clock,
    hub::{client::CallbackClient, places::Place},
    layers::Request,
    store::subscriptions::CloudTarget,
};
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use http::{
    HeaderValue,
    header::{CONTENT_TYPE, USER_AGENT},
};
use std::sync::Arc;
use url::form_urlencoded;

/// The way to a listener.
pub(super) struct CloudWay {
    pub(super) client: CallbackClient,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) target: CloudTarget,
}

impl Deliver for CloudWay {
    fn destination(&self) -> Destination {
        Destination::of(self.target.url())
    }

    /// One notification speaks of everything that has changed: the listener reads the feed as it is
    /// now.
    fn carries_items(&self) -> bool {
        false
    }

    fn deliver<'a>(&'a self, _: Delivery, place: &'a mut Place) -> BoxFuture<'a, Delivered> {
        async move {
            let Some(request) = notification(&self.target, &self.client.user_agent) else {
                return Delivered::Unsendable;
            };
            judge(&self.client.send(request, place).await, self.clock.now())
        }
        .boxed()
    }
}

/// The request that says that a feed has changed.
pub(in crate::hub) fn notification(
    target: &CloudTarget,
    user_agent: &HeaderValue,
) -> Option<Request> {
    let body = form_urlencoded::Serializer::new(String::new())
        .append_pair("url", &target.feed_url)
        .finish();
    http::Request::post(target.url())
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(USER_AGENT, user_agent)
        .body(Bytes::from(body))
        .ok()
}
