//! Deliveries to a listener of rssCloud: a POST of the feed's URL, and nothing of its items (LEGACY
//! C-4); not when.

use crate::{layers::Request, store::subscriptions::CloudTarget};
use bytes::Bytes;
use http::{
    HeaderValue,
    header::{CONTENT_TYPE, USER_AGENT},
};
use url::form_urlencoded;

/// The request that says that a feed has changed. One speaks of everything that has changed: the
/// listener reads the feed as it is now.
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
