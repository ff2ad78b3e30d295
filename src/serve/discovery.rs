//! The list of feeds and the description of each, for programs and for people.

use super::{
    accept,
    body::{self, Response},
    context::ServeContext,
    long_poll, pull,
    rescue::Refusal,
};
use crate::{
    feed::record::FeedRecord,
    render::{
        self,
        about::{About, Caps},
        list::List,
    },
    store::listing,
};
use futures_util::{TryStreamExt as _, future};
use http::{
    HeaderValue,
    header::{ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY},
    request::Parts,
};

/// The list of feeds: JSON, or a page when a browser asks.
pub(super) async fn list(context: &ServeContext, request: &Parts) -> Result<Response, Refusal> {
    let catalog = context.catalog.snapshot();
    // Feeds that are no longer configured keep their memory, but are not served.
    let is_served = |feed: &FeedRecord| future::ready(catalog.feed_no(feed.no).is_some());
    let feeds: Vec<FeedRecord> = listing::feeds(&*context.store).try_filter(is_served).try_collect().await?;
    let list = List { site: context.readers.site(), feeds: &feeds };
    Ok(respond(request, || render::html::list(&list), || render::list::json(&list)))
}

/// The description of a feed (SF-132..SF-134): JSON, or a page when a browser asks.
pub(super) async fn about(context: &ServeContext, request: &Parts, name: &str) -> Result<Response, Refusal> {
    let no = context.feed(name)?;
    let feed = context.store.feed(no).await?;
    let upstream = context.catalog.snapshot().feed_no(no).map(|feed| feed.shown_url());
    let (max_cap, timeout_cap_secs) =
        (context.readers.config().page_items_max, context.waiters.timeout_max_secs());
    let about = About {
        feed: &feed,
        site: context.readers.site(),
        upstream: upstream.as_deref(),
        caps: Caps {
            max_default: pull::ITEMS_DEFAULT.min(max_cap),
            max_cap,
            timeout_default_secs: long_poll::TIMEOUT_SECS.min(timeout_cap_secs),
            timeout_cap_secs,
        },
    };
    Ok(respond(request, || render::html::about(&about), || render::about::json(&about)))
}

fn respond(request: &Parts, page: impl FnOnce() -> Vec<u8>, json: impl FnOnce() -> Vec<u8>) -> Response {
    let accept = accept::joined(&request.headers, &ACCEPT);
    let for_people = accept::wants_html(accept.as_deref());
    let body = if for_people { page() } else { json() };
    let mut response = Response::new(body::whole(body));
    let headers = response.headers_mut();
    let media = if for_people { render::html::CONTENT_TYPE } else { "application/json; charset=utf-8" };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(VARY, HeaderValue::from_static("accept"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if for_people {
        let policy = HeaderValue::from_static(render::html::CONTENT_SECURITY_POLICY);
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}
