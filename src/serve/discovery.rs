//! The list of feeds and the description of each, for programs and for people.

use super::{
    accept,
    admission::Caller,
    body::{self, Response},
    context::ServeContext,
    feed_range::FeedRange,
    long_poll, pull,
    refusal::Refusal,
};
use crate::{
    catalog::{RegisteredFeed, is_open_to},
    feed::record::FeedRecord,
    render::{
        self,
        about::{About, Caps, Origin},
        list::List,
    },
};
use http::{
    HeaderValue, StatusCode,
    header::{ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY},
    request::Parts,
};
use std::sync::Arc;

/// Feeds that are looked at for one list, whose titles are in the store; the next list goes on behind them.
const FEEDS_LOOKED_AT_MAX: usize = 10_000;

/// The list of feeds: JSON, or a page when a browser asks.
pub(super) async fn list(
    context: &ServeContext,
    request: &Parts,
    caller: &Caller,
) -> Result<Response, Refusal> {
    let range = FeedRange::parse(request.uri.query().unwrap_or_default()).map_err(Refusal::bad)?;
    let catalog = context.gate.catalog.snapshot();
    let is_open = |feed: &&Arc<RegisteredFeed>| is_open_to(feed, caller.principal.as_ref());
    // Feeds that are no longer configured keep their memory, but are not served.
    let served = catalog.feeds_after(range.after.as_deref()).filter(is_open);
    let mut feeds: Vec<FeedRecord> = Vec::new();
    let (mut last, mut next) = (None, None);
    for (looked_at, feed) in served.enumerate() {
        if feeds.len() == range.max || looked_at == FEEDS_LOOKED_AT_MAX {
            next = last.map(|last: &str| range.next(last));
            break;
        }
        last = Some(&feed.settings.name);
        let record = context.store.feed(feed.no).await?;
        let title = record.metadata.title.as_ref().map(render::words).unwrap_or_default();
        if range.shows(&record.name, &title) {
            feeds.push(record);
        }
    }
    let total =
        if catalog.has_private() { catalog.feeds().filter(is_open).count() } else { catalog.feeds().len() };
    let site = caller.site(context);
    let next = next.map(|query| format!("{}?{query}", site.list()));
    let list = List { site, feeds: &feeds, total, words: &range.words, next: next.as_deref() };
    let response = respond(request, || render::html::list(&list), || render::list::json(&list));
    Ok(validated(request, response))
}

/// The description of a feed (SF-132..SF-134): JSON, or a page when a browser asks.
pub(super) async fn about(
    context: &ServeContext,
    request: &Parts,
    caller: &Caller,
    name: &str,
) -> Result<Response, Refusal> {
    let no = context.feed(name)?;
    let feed = context.store.feed(no).await?;
    let upstream = context.gate.catalog.snapshot().feed_no(no).map(|feed| feed.shown_url());
    let polled = context.store.poll(no).await?.unwrap_or_default();
    let (max_cap, timeout_cap_secs) =
        (context.readers.config().page_items_max, context.waiters.timeout_max_secs());
    let about = About {
        feed: &feed,
        site: caller.site(context),
        upstream: upstream.as_deref(),
        origin: Origin {
            reached_at: polled.health.good_at,
            fails_since: polled.health.fault.as_ref().map(|fault| fault.since),
        },
        caps: Caps {
            max_default: pull::ITEMS_DEFAULT.min(max_cap),
            max_cap,
            timeout_default_secs: long_poll::TIMEOUT_SECS.min(timeout_cap_secs),
            timeout_cap_secs,
        },
    };
    let response = respond(request, || render::html::about(&about), || render::about::json(&about));
    Ok(validated(request, response))
}

/// The description of our HTTP side for programs.
pub(super) fn openapi(context: &ServeContext, request: &Parts, caller: &Caller) -> Response {
    let mut response = Response::default();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(render::openapi::CONTENT_TYPE));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    validated(request, (response, render::openapi::document(caller.site(context))))
}

/// The answer with a validator made of its bytes; 304 when the consumer has them.
fn validated(request: &Parts, (mut response, body): (Response, Vec<u8>)) -> Response {
    let etag = format!("\"{:08x}.{:x}\"", crc32fast::hash(&body), body.len());
    let known = accept::joined(&request.headers, &IF_NONE_MATCH);
    let is_known = |tag: &str| tag.trim() == "*" || tag.trim().trim_start_matches("W/") == etag;
    if known.is_some_and(|known| known.split(',').any(is_known)) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.headers_mut().remove(CONTENT_TYPE);
    } else {
        *response.body_mut() = body::whole(body);
    }
    if let Ok(etag) = HeaderValue::try_from(etag) {
        response.headers_mut().insert(ETAG, etag);
    }
    response
}

/// The head of an answer, and its body.
fn respond(
    request: &Parts,
    page: impl FnOnce() -> Vec<u8>,
    json: impl FnOnce() -> Vec<u8>,
) -> (Response, Vec<u8>) {
    let accept = accept::joined(&request.headers, &ACCEPT);
    let for_people = accept::wants_html(accept.as_deref());
    let body = if for_people { page() } else { json() };
    let mut response = Response::default();
    let headers = response.headers_mut();
    let media = if for_people { render::html::CONTENT_TYPE } else { "application/json; charset=utf-8" };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(VARY, HeaderValue::from_static("accept"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if for_people {
        let policy = HeaderValue::from_static(render::html::CONTENT_SECURITY_POLICY);
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    (response, body)
}
