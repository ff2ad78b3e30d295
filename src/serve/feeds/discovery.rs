//! The list of feeds and the description of each, for programs, scripts and people.

use super::{
    admission::{AdmittedFeed, AdmittedRequest},
    list_range::{FEEDS_DEFAULT, FeedRange},
    long_poll, pull,
};
use crate::{
    auth::Principal,
    catalog::{CatalogSnapshot, RegisteredFeed, is_open_to},
    edge::{
        body::{self, Response},
        fields::{list_value, text},
    },
    feed::{
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    readers::coding::coded,
    render::{
        self,
        about::{About, Caps, Origin},
        list::List,
    },
    serve::answers::{
        accept,
        refusal::{PAGE_POLICY, Refusal},
        validators::{AnswerValidators, tag_of},
    },
};
use http::{
    HeaderValue, StatusCode,
    header::{
        ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY,
    },
};
use std::collections::{HashMap, HashSet};

/// Feeds in a list for people: a page that a phone shows at once.
const FEEDS_ON_PAGE_DEFAULT: usize = 100;
/// Feeds that are looked at for one list, whose titles are in the store; the next list goes on
/// behind them.
const FEEDS_LOOKED_AT_MAX: usize = 10_000;

/// The list of feeds: JSON, or a page when a browser asks.
pub(crate) async fn list(asked: &AdmittedRequest<'_>) -> Result<Response, Refusal> {
    let form = AnswerForm::of(asked)?;
    let site = asked.site();
    let feeds_default = match form {
        AnswerForm::Page => FEEDS_ON_PAGE_DEFAULT,
        AnswerForm::Json | AnswerForm::Script(_) => FEEDS_DEFAULT,
    };
    let mut list = listed(asked, &site.list(), feeds_default).await?;
    let body = match form {
        AnswerForm::Page => {
            list.origins = origins(asked, &list.feeds).await?;
            render::html::list(&list)
        }
        AnswerForm::Json | AnswerForm::Script(_) => render::list::json(&list),
    };
    Ok(form.answer(asked, body).await)
}

/// The list of feeds as OPML.
pub(crate) async fn outline(asked: &AdmittedRequest<'_>) -> Result<Response, Refusal> {
    let site = asked.site();
    let list = listed(asked, &site.outline(), FEEDS_DEFAULT).await?;
    Ok(outlined(asked, &list).await)
}

/// The members of a group as OPML; of a feed that is none, itself.
pub(crate) async fn outline_of(
    asked: &AdmittedRequest<'_>,
    name: &str,
) -> Result<Response, Refusal> {
    let context = asked.context;
    let AdmittedFeed { named, read } = asked.feed(name)?;
    let catalog = context.gate.catalog.snapshot();
    let record = context.store.feed(read).await?;
    let mut feeds = Vec::new();
    for member in catalog.members(named).unwrap_or(&[read]) {
        feeds.push(context.store.feed(*member).await?);
    }
    let title = record.metadata.title.as_ref().map(render::words);
    let mut parts = HashSet::new();
    if asked.caller.reads_part() {
        parts.insert(read);
    }
    let list = List {
        site: asked.site(),
        total: feeds.len(),
        feeds,
        parts,
        origins: HashMap::new(),
        words: String::new(),
        found: None,
        title: title.as_deref().unwrap_or(name),
        next: None,
    };
    Ok(outlined(asked, &list).await)
}

/// A list as OPML.
async fn outlined(asked: &AdmittedRequest<'_>, list: &List<'_>) -> Response {
    let response = empty_of(render::list::OPML_TYPE, "accept-encoding");
    validated(asked, response, render::list::opml(list)).await
}

/// The part of the feeds that a request asks for and that its caller may read, without their
/// origins. `url` is that of the list, below which the next part is; it has `feeds_default` feeds
/// when nobody says how many.
async fn listed<'a>(
    asked: &'a AdmittedRequest<'_>,
    url: &str,
    feeds_default: usize,
) -> Result<List<'a>, Refusal> {
    let context = asked.context;
    let principal = asked.caller.principal.as_ref();
    let range = FeedRange::parse(asked.query()).map_err(Refusal::bad)?;
    let feeds_max = range.max.unwrap_or(feeds_default);
    let catalog = context.gate.catalog.snapshot();
    let total = if catalog.has_private() {
        let open = catalog.feeds().filter(|feed| is_open_to(feed, principal));
        open.count()
    } else {
        catalog.feeds().len()
    };
    // All that hold the words are counted, where all can be looked at; a part of all feeds needs no
    // look at the others.
    let is_counted = !range.words.is_empty() && total <= FEEDS_LOOKED_AT_MAX;
    let page = if is_counted {
        counted_page(asked, &catalog, &range, feeds_max).await?
    } else {
        next_page(asked, &catalog, &range, feeds_max).await?
    };
    let next = page.goes_on_after.map(|last| range.next(&last));
    Ok(List {
        site: asked.site(),
        feeds: page.feeds,
        parts: page.parts,
        origins: HashMap::new(),
        total,
        words: range.words,
        found: page.found,
        title: render::list::ALL_FEEDS,
        next: next.map(|query| format!("{url}?{query}")),
    })
}

/// Feeds of one page of a list.
#[derive(Default)]
struct FeedPage {
    feeds: Vec<FeedRecord>,
    parts: HashSet<FeedNo>,
    /// Name of the feed behind which the next page begins; `None` on the last one.
    goes_on_after: Option<String>,
    /// Feeds of all pages that hold the words, where they were counted.
    found: Option<usize>,
}

impl FeedPage {
    /// Adds the record of a feed as it is told.
    fn push(&mut self, asked: &AdmittedRequest<'_>, feed: &RegisteredFeed, record: FeedRecord) {
        if record.no != feed.no {
            self.parts.insert(record.no);
        }
        self.feeds.push(told(asked, record));
    }
}

/// The page of a list whose feeds are not counted. Nothing behind it is looked at.
async fn next_page(
    asked: &AdmittedRequest<'_>,
    catalog: &CatalogSnapshot,
    range: &FeedRange,
    feeds_max: usize,
) -> Result<FeedPage, Refusal> {
    let principal = asked.caller.principal.as_ref();
    let mut page = FeedPage::default();
    let mut last: Option<&str> = None;
    let behind = catalog.feeds_after(range.after.as_deref());
    let open = behind.filter(|feed| is_open_to(feed, principal));
    for (looked_at, feed) in open.enumerate() {
        if page.feeds.len() == feeds_max || looked_at == FEEDS_LOOKED_AT_MAX {
            page.goes_on_after = last.map(str::to_owned);
            break;
        }
        let Some(read) = catalog.read_by(feed, principal) else {
            continue;
        };
        let record = record_of(asked, feed, read).await?;
        if shows(range, &record) {
            page.push(asked, feed, record);
        }
        last = Some(&feed.settings.name);
    }
    Ok(page)
}

/// The page of a list for which all feeds are looked at, to count those that hold the words.
async fn counted_page(
    asked: &AdmittedRequest<'_>,
    catalog: &CatalogSnapshot,
    range: &FeedRange,
    feeds_max: usize,
) -> Result<FeedPage, Refusal> {
    let principal = asked.caller.principal.as_ref();
    let mut page = FeedPage::default();
    let mut last: Option<&str> = None;
    let mut found = 0;
    for feed in catalog.feeds().filter(|feed| is_open_to(feed, principal)) {
        let Some(read) = catalog.read_by(feed, principal) else {
            continue;
        };
        let record = record_of(asked, feed, read).await?;
        if !shows(range, &record) {
            continue;
        }
        found += 1;
        let name = feed.settings.name.as_str();
        if range.after.as_deref().is_some_and(|after| name <= after) {
            continue;
        }
        if page.feeds.len() == feeds_max {
            page.goes_on_after = last.map(str::to_owned);
            continue;
        }
        page.push(asked, feed, record);
        last = Some(name);
    }
    page.found = Some(found);
    Ok(page)
}

/// The record of what is read of a feed. One that cannot be read is listed as a feed that holds
/// nothing, so that no list of feeds loses it.
async fn record_of(
    asked: &AdmittedRequest<'_>,
    feed: &RegisteredFeed,
    read: FeedNo,
) -> Result<FeedRecord, Refusal> {
    let settings = &feed.settings;
    match asked.context.store.feed(read).await {
        Err(error) if error.is_of_one_feed() => {
            Ok(FeedRecord::new(read, &settings.name, &settings.namespace()))
        }
        record => Ok(record?),
    }
}

/// True for a feed that holds the words of a range in its name or title.
fn shows(range: &FeedRange, record: &FeedRecord) -> bool {
    let title = record.metadata.title.as_ref().map(render::words);
    range.shows(&record.name, &title.unwrap_or_default())
}

/// States of the publishers' own feeds behind these.
async fn origins(
    asked: &AdmittedRequest<'_>,
    feeds: &[FeedRecord],
) -> Result<HashMap<FeedNo, Origin>, Refusal> {
    let catalog = asked.context.gate.catalog.snapshot();
    let mut origins = HashMap::new();
    for record in feeds {
        // The feed of the name: what is read may be a part of it.
        let Some(feed) = catalog.feed(&record.name).filter(|feed| !feed.is_group()) else {
            continue;
        };
        origins.insert(record.no, origin(asked, feed.no).await?);
    }
    Ok(origins)
}

/// The record of a feed as it is told: where nobody is told what is gone, nobody is told how much
/// is.
fn told(asked: &AdmittedRequest<'_>, mut record: FeedRecord) -> FeedRecord {
    if !asked.context.readers.announces(record.no) {
        record.items.total = record.items.live;
    }
    record
}

/// State of the publisher's own feed.
async fn origin(asked: &AdmittedRequest<'_>, feed: FeedNo) -> Result<Origin, Refusal> {
    let health = match asked.context.store.poll(feed).await {
        Err(error) if error.is_of_one_feed() => return Ok(Origin::default()),
        polled => polled?.unwrap_or_default().health,
    };
    Ok(Origin {
        reached_at: health.good_at,
        fails_since: health.fault.as_ref().map(|fault| fault.since),
        fault: health.fault.as_ref().map(|fault| fault.kind.public()),
    })
}

/// The description of a feed (SF-132..SF-134): JSON, or a page when a browser asks.
pub(crate) async fn about(asked: &AdmittedRequest<'_>, name: &str) -> Result<Response, Refusal> {
    let context = asked.context;
    let form = AnswerForm::of(asked)?;
    let AdmittedFeed { named, read } = asked.feed(name)?;
    let feed = context.store.feed(read).await?;
    let catalog = context.gate.catalog.snapshot();
    let members = catalog.member_names(named);
    let upstream = catalog
        .feed_no(named)
        .filter(|feed| !feed.is_group())
        .map(|feed| feed.known_url());
    let max_cap = context.readers.config().page_items_max;
    let timeout_cap_secs = context.waiters.timeout_max_secs();
    let feed = told(asked, feed);
    let is_resource = catalog
        .feed_no(named)
        .is_some_and(|feed| feed.settings.is_resource());
    let mut deleted = None;
    if is_resource && context.readers.announces(read) {
        deleted = context.readers.deleted_at(read).await?;
    }
    let about = About {
        deleted,
        feed: &feed,
        is_part: asked.caller.reads_part(),
        site: asked.site(),
        upstream: upstream.as_deref(),
        members: members.as_deref(),
        origin: origin(asked, named).await?,
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
pub(crate) async fn openapi(asked: &AdmittedRequest<'_>) -> Response {
    let response = empty_of(render::openapi::CONTENT_TYPE, "accept-encoding");
    validated(asked, response, render::openapi::document(asked.site())).await
}

/// An answer without its body yet.
fn empty_of(media_type: &'static str, vary: &'static str) -> Response {
    let mut response = Response::default();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(VARY, HeaderValue::from_static(vary));
    response
}

/// The answer in the coding that the consumer prefers, with validators made of its bytes and of the
/// time since which it has them; 304 when the consumer has it.
async fn validated(asked: &AdmittedRequest<'_>, mut response: Response, body: Vec<u8>) -> Response {
    let now = Stamp::from_micros(asked.context.clock.now_us());
    let form = text(response.headers(), &CONTENT_TYPE).unwrap_or_default();
    let principal = asked.caller.principal.as_ref().and_then(Principal::name);
    let name = format!(
        "{}\n{form}\n{}\n{}",
        principal.unwrap_or_default(),
        asked.site().root(),
        asked.request.uri
    );
    let since = asked.context.first_seen.of(&name, &body, now).await;
    let coding = asked.coding();
    let validators = AnswerValidators {
        etag: tag_of(&body, &accept::coding_tag(coding)),
        modified: (since.secs() < now.secs()).then(|| since.secs()),
    };
    if validators.are_fresh(&asked.request.headers) {
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
    fn of(asked: &AdmittedRequest<'_>) -> Result<Self, Refusal> {
        if let Some(name) = render::urls::callback(asked.query())? {
            asked.check_script(Some(&name))?;
            return Ok(Self::Script(name));
        }
        let accept = list_value(&asked.request.headers, &ACCEPT);
        if accept::wants_html(accept.as_deref()) {
            Ok(Self::Page)
        } else {
            Ok(Self::Json)
        }
    }

    /// The answer with this body.
    async fn answer(&self, asked: &AdmittedRequest<'_>, body: Vec<u8>) -> Response {
        let (media_type, body) = match self {
            Self::Page => (render::html::CONTENT_TYPE, body),
            Self::Json => (JSON, body),
            Self::Script(name) => (
                render::jsonp::CONTENT_TYPE,
                render::jsonp::wrap(name, JSON, &body),
            ),
        };
        let mut response = empty_of(media_type, "accept, accept-encoding");
        if let Self::Page = self {
            response
                .headers_mut()
                .insert(CONTENT_SECURITY_POLICY, PAGE_POLICY);
        }
        validated(asked, response, body).await
    }
}

const JSON: &str = "application/json; charset=utf-8";
