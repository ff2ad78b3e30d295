//! The list of feeds and the description of each, for programs, scripts and people.

use super::{
    accept,
    admission::Caller,
    context::ServeContext,
    feed_range::{FEEDS_DEFAULT, FeedRange},
    long_poll, pull,
    refusal::Refusal,
    validators::{AnswerValidators, tag_of},
};
use crate::edge::fields::{list_value, text};
use crate::{
    auth::Principal,
    catalog::{RegisteredFeed, is_open_to, shown_to},
    edge::body::{self, Response},
    feed::{
        filter::Filter,
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    readers::coding::coded,
    render::{
        self, Site,
        about::{About, Caps, Origin},
        list::List,
    },
};
use http::{
    HeaderValue, StatusCode,
    header::{
        ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
        CONTENT_TYPE, VARY, X_CONTENT_TYPE_OPTIONS,
    },
    request::Parts,
};
use std::{collections::HashSet, sync::Arc};

/// Feeds in a list for people: a page that a phone shows at once.
const FEEDS_ON_PAGE_DEFAULT: usize = 100;
/// Feeds that are looked at for one list, whose titles are in the store; the next list goes on
/// behind them.
const FEEDS_LOOKED_AT_MAX: usize = 10_000;

/// A request that its caller may make, and what it is answered with.
#[derive(Clone, Copy)]
pub(super) struct AdmittedRequest<'a> {
    pub(super) context: &'a ServeContext,
    pub(super) request: &'a Parts,
    pub(super) caller: &'a Caller,
}

impl<'a> AdmittedRequest<'a> {
    /// Our URLs as the caller knows them.
    fn site(self) -> &'a Site {
        self.caller.site(self.context)
    }
}

/// The list of feeds: JSON, or a page when a browser asks.
pub(super) async fn list(asked: AdmittedRequest<'_>) -> Result<Response, Refusal> {
    let form = AnswerForm::of(asked)?;
    let site = asked.site();
    let feeds_default = match form {
        AnswerForm::Page => FEEDS_ON_PAGE_DEFAULT,
        AnswerForm::Json | AnswerForm::Script(_) => FEEDS_DEFAULT,
    };
    let found = FeedPart::read(asked, &site.list(), feeds_default).await?;
    let list = found.list(site);
    let body = match form {
        AnswerForm::Page => render::html::list(&list),
        AnswerForm::Json | AnswerForm::Script(_) => render::list::json(&list),
    };
    Ok(form.answer(asked, body).await)
}

/// The list of feeds as OPML.
pub(super) async fn outline(asked: AdmittedRequest<'_>) -> Result<Response, Refusal> {
    let site = asked.site();
    let found = FeedPart::read(asked, &site.outline(), FEEDS_DEFAULT).await?;
    Ok(outlined(asked, &found.list(site)).await)
}

/// The members of a group as OPML; of a feed that is none, itself.
pub(super) async fn outline_of(
    asked: AdmittedRequest<'_>,
    name: &str,
) -> Result<Response, Refusal> {
    let AdmittedRequest {
        context, caller, ..
    } = asked;
    let no = context.feed(name)?;
    let catalog = context.gate.catalog.snapshot();
    let record = context.store.feed(no).await?;
    let mut feeds = Vec::new();
    for member in catalog.members(no).map_or_else(|| vec![no], <[_]>::to_vec) {
        feeds.push(context.store.feed(member).await?);
    }
    let title = record
        .metadata
        .title
        .as_ref()
        .map(render::words)
        .unwrap_or_else(|| name.into());
    let (total, site) = (feeds.len(), asked.site());
    let parts = (caller.shows != Filter::All)
        .then_some(no)
        .into_iter()
        .collect();
    let list = List {
        site,
        feeds: &feeds,
        parts: &parts,
        total,
        words: "",
        found: None,
        title: &title,
        next: None,
    };
    Ok(outlined(asked, &list).await)
}

/// A list as OPML.
async fn outlined(asked: AdmittedRequest<'_>, list: &List<'_>) -> Response {
    let mut response = Response::default();
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static(render::list::OPML_TYPE),
    );
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    validated(asked, response, render::list::opml(list)).await
}

/// The part of the feeds that a request asks for and that its caller may read.
struct FeedPart {
    feeds: Vec<FeedRecord>,
    /// Those of which the caller sees a part.
    parts: HashSet<FeedNo>,
    total: usize,
    /// Feeds that hold the words, where all were looked at.
    found: Option<usize>,
    words: String,
    next: Option<String>,
}

impl FeedPart {
    /// `url` is that of the list, below which the next part is; it has `feeds_default` feeds when
    /// nobody says how many.
    async fn read(
        asked: AdmittedRequest<'_>,
        url: &str,
        feeds_default: usize,
    ) -> Result<Self, Refusal> {
        let AdmittedRequest {
            context,
            request,
            caller,
        } = asked;
        let range =
            FeedRange::parse(request.uri.query().unwrap_or_default()).map_err(Refusal::bad)?;
        let feeds_max = range.max.unwrap_or(feeds_default);
        let catalog = context.gate.catalog.snapshot();
        let is_open = |feed: &&Arc<RegisteredFeed>| is_open_to(feed, caller.principal.as_ref());
        let total = if catalog.has_private() {
            catalog.feeds().filter(is_open).count()
        } else {
            catalog.feeds().len()
        };
        // All that hold the words are counted, where all can be looked at; a part of all feeds
        // needs no look at the others.
        let counts = !range.words.is_empty() && total <= FEEDS_LOOKED_AT_MAX;
        let after = range.after.as_deref();
        // Feeds that are no longer configured keep their memory, but are not served.
        let served = catalog
            .feeds_after(after.filter(|_| !counts))
            .filter(is_open);
        let mut feeds: Vec<FeedRecord> = Vec::new();
        let mut parts = HashSet::new();
        let (mut last, mut next, mut found) = (None, None, 0);
        for (looked_at, feed) in served.enumerate() {
            let is_before = after.is_some_and(|after| feed.settings.name.as_str() <= after);
            let is_full = feeds.len() == feeds_max || looked_at == FEEDS_LOOKED_AT_MAX;
            if is_full && !counts {
                next = last.map(|last: &str| range.next(last));
                break;
            }
            let record = match context.store.feed(feed.no).await {
                // It is listed as one that holds nothing, so that no list of feeds loses it.
                Err(error) if error.is_of_one_feed() => {
                    FeedRecord::new(feed.no, &feed.settings.name, &feed.settings.namespace())
                }
                record => record?,
            };
            let title = record
                .metadata
                .title
                .as_ref()
                .map(render::words)
                .unwrap_or_default();
            let is_shown = range.shows(&record.name, &title);
            found += usize::from(is_shown);
            if is_before || is_full && !is_shown {
                continue;
            }
            if is_full {
                next = next.or_else(|| last.map(|last: &str| range.next(last)));
                continue;
            }
            last = Some(&feed.settings.name);
            if is_shown {
                if shown_to(feed, caller.principal.as_ref()) != Some(Filter::All) {
                    parts.insert(record.no);
                }
                feeds.push(record);
            }
        }
        let next = next.map(|query| format!("{url}?{query}"));
        Ok(Self {
            feeds,
            parts,
            total,
            found: counts.then_some(found),
            words: range.words,
            next,
        })
    }

    fn list<'a>(&'a self, site: &'a Site) -> List<'a> {
        let Self {
            feeds,
            parts,
            total,
            found,
            words,
            next,
        } = self;
        let (title, next) = (render::list::ALL_FEEDS, next.as_deref());
        List {
            site,
            feeds,
            parts,
            total: *total,
            words,
            found: *found,
            title,
            next,
        }
    }
}

/// The description of a feed (SF-132..SF-134): JSON, or a page when a browser asks.
pub(super) async fn about(asked: AdmittedRequest<'_>, name: &str) -> Result<Response, Refusal> {
    let AdmittedRequest {
        context, caller, ..
    } = asked;
    let form = AnswerForm::of(asked)?;
    let no = context.feed(name)?;
    let feed = context.store.feed(no).await?;
    let catalog = context.gate.catalog.snapshot();
    let members = catalog.member_names(no);
    let upstream = catalog
        .feed_no(no)
        .filter(|feed| !feed.is_group())
        .map(|feed| feed.known_url());
    let polled = context.store.poll(no).await?.unwrap_or_default();
    let (max_cap, timeout_cap_secs) = (
        context.readers.config().page_items_max,
        context.waiters.timeout_max_secs(),
    );
    let about = About {
        feed: &feed,
        is_part: caller.shows != Filter::All,
        site: asked.site(),
        upstream: upstream.as_deref(),
        members: members.as_deref(),
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
    Ok(form.answer(asked, body).await)
}

/// The description of our HTTP side for programs.
pub(super) async fn openapi(asked: AdmittedRequest<'_>) -> Response {
    let mut response = Response::default();
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static(render::openapi::CONTENT_TYPE),
    );
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    let body = render::openapi::document(asked.site());
    validated(asked, response, body).await
}

/// The answer in the coding that the consumer prefers, with validators made of its bytes and of the
/// time since which it has them; 304 when the consumer has it.
async fn validated(asked: AdmittedRequest<'_>, mut response: Response, body: Vec<u8>) -> Response {
    let AdmittedRequest {
        context,
        request,
        caller,
    } = asked;
    let now = Stamp::from_micros(context.clock.now_us());
    let form = text(response.headers(), &CONTENT_TYPE).unwrap_or_default();
    let principal = caller
        .principal
        .as_ref()
        .map(Principal::name)
        .unwrap_or_default();
    let name = format!(
        "{principal}\n{form}\n{}\n{}",
        asked.site().root(),
        request.uri
    );
    let since = context.first_seen.of(&name, &body, now).await;
    let coding = accept::coding(list_value(&request.headers, &ACCEPT_ENCODING).as_deref());
    let validators = AnswerValidators {
        etag: tag_of(&body, &accept::coding_tag(coding)),
        modified: (since.secs() < now.secs()).then(|| since.secs()),
    };
    if validators.are_fresh(&request.headers) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.headers_mut().remove(CONTENT_TYPE);
    } else {
        *response.body_mut() = body::whole(coded(coding, body.into()).await);
        if let Some(token) = coding.token() {
            response
                .headers_mut()
                .insert(CONTENT_ENCODING, HeaderValue::from_static(token));
        }
    }
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    validators.write(headers);
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
    /// The form that a request asks for. As of pages of feeds, scripts are for public answers only
    /// (D-12).
    fn of(asked: AdmittedRequest<'_>) -> Result<Self, Refusal> {
        let query = asked.request.uri.query().unwrap_or_default();
        if let Some(name) = render::urls::callback(query)? {
            if !render::jsonp::is_callback(&name) {
                return Err(Refusal::bad("`callback` must be the name of a function"));
            }
            return if asked.caller.is_private {
                Err(Refusal::no_script())
            } else {
                Ok(Self::Script(name))
            };
        }
        let accept = list_value(&asked.request.headers, &ACCEPT);
        Ok(if accept::wants_html(accept.as_deref()) {
            Self::Page
        } else {
            Self::Json
        })
    }

    /// The answer with this body.
    async fn answer(&self, asked: AdmittedRequest<'_>, body: Vec<u8>) -> Response {
        let (media_type, body) = match self {
            Self::Page => (render::html::CONTENT_TYPE, body),
            Self::Json => (JSON, body),
            Self::Script(name) => (
                render::jsonp::CONTENT_TYPE,
                render::jsonp::wrap(name, JSON, &body),
            ),
        };
        let mut response = Response::default();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        headers.insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
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
        validated(asked, response, body).await
    }
}

const JSON: &str = "application/json; charset=utf-8";
