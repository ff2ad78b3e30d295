//! The list of feeds and the description of each, for programs, scripts and people.

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
        self, Site,
        about::{About, Caps, Origin},
        list::List,
    },
};
use http::{
    HeaderValue, StatusCode,
    header::{
        ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
        X_CONTENT_TYPE_OPTIONS,
    },
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
    let form = AnswerForm::of(request, caller)?;
    let site = caller.site(context);
    let found = FeedPart::read(context, request, caller, &site.list()).await?;
    let list = found.list(site);
    let body = match form {
        AnswerForm::Page => render::html::list(&list),
        AnswerForm::Json | AnswerForm::Script(_) => render::list::json(&list),
    };
    Ok(form.answer(request, body))
}

/// The list of feeds as OPML.
pub(super) async fn outline(
    context: &ServeContext,
    request: &Parts,
    caller: &Caller,
) -> Result<Response, Refusal> {
    let site = caller.site(context);
    let found = FeedPart::read(context, request, caller, &site.outline()).await?;
    let mut response = Response::default();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(render::list::OPML_TYPE));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(validated(request, response, render::list::opml(&found.list(site))))
}

/// The part of the feeds that a request asks for and that its caller may read.
struct FeedPart {
    feeds: Vec<FeedRecord>,
    total: usize,
    words: String,
    next: Option<String>,
}

impl FeedPart {
    /// `url` is that of the list, below which the next part is.
    async fn read(
        context: &ServeContext,
        request: &Parts,
        caller: &Caller,
        url: &str,
    ) -> Result<Self, Refusal> {
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
        let total = if catalog.has_private() {
            catalog.feeds().filter(is_open).count()
        } else {
            catalog.feeds().len()
        };
        Ok(Self { feeds, total, words: range.words, next: next.map(|query| format!("{url}?{query}")) })
    }

    fn list<'a>(&'a self, site: &'a Site) -> List<'a> {
        List { site, feeds: &self.feeds, total: self.total, words: &self.words, next: self.next.as_deref() }
    }
}

/// The description of a feed (SF-132..SF-134): JSON, or a page when a browser asks.
pub(super) async fn about(
    context: &ServeContext,
    request: &Parts,
    caller: &Caller,
    name: &str,
) -> Result<Response, Refusal> {
    let form = AnswerForm::of(request, caller)?;
    let no = context.feed(name)?;
    let feed = context.store.feed(no).await?;
    let upstream = context.gate.catalog.snapshot().feed_no(no).map(|feed| feed.known_url());
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
    let body = match form {
        AnswerForm::Page => render::html::about(&about),
        AnswerForm::Json | AnswerForm::Script(_) => render::about::json(&about),
    };
    Ok(form.answer(request, body))
}

/// The description of our HTTP side for programs.
pub(super) fn openapi(context: &ServeContext, request: &Parts, caller: &Caller) -> Response {
    let mut response = Response::default();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(render::openapi::CONTENT_TYPE));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    validated(request, response, render::openapi::document(caller.site(context)))
}

/// The answer with a validator made of its bytes; 304 when the consumer has them.
fn validated(request: &Parts, mut response: Response, body: Vec<u8>) -> Response {
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

/// The form of an answer about feeds.
enum AnswerForm {
    /// A page, for a browser.
    Page,
    /// JSON.
    Json,
    /// JSON, handed to this function.
    Script(String),
}

impl AnswerForm {
    /// The form that a request asks for. As of pages of feeds, scripts are for public answers only (D-12).
    fn of(request: &Parts, caller: &Caller) -> Result<Self, Refusal> {
        let query = request.uri.query().unwrap_or_default();
        if let Some(name) = render::urls::callback(query)? {
            if !render::jsonp::is_callback(&name) {
                return Err(Refusal::bad("`callback` must be the name of a function"));
            }
            return if caller.is_private { Err(Refusal::no_script()) } else { Ok(Self::Script(name)) };
        }
        let accept = accept::joined(&request.headers, &ACCEPT);
        Ok(if accept::wants_html(accept.as_deref()) { Self::Page } else { Self::Json })
    }

    /// The answer with this body.
    fn answer(&self, request: &Parts, body: Vec<u8>) -> Response {
        let (media_type, body) = match self {
            Self::Page => (render::html::CONTENT_TYPE, body),
            Self::Json => (JSON, body),
            Self::Script(name) => (render::jsonp::CONTENT_TYPE, render::jsonp::wrap(name, JSON, &body)),
        };
        let mut response = Response::default();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        headers.insert(VARY, HeaderValue::from_static("accept"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        match self {
            Self::Page => {
                let policy = HeaderValue::from_static(render::html::CONTENT_SECURITY_POLICY);
                headers.insert(CONTENT_SECURITY_POLICY, policy);
            }
            Self::Script(_) => {
                headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            }
            Self::Json => {}
        }
        validated(request, response, body)
    }
}

const JSON: &str = "application/json; charset=utf-8";
