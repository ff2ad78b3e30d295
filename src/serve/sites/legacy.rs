//! The address of an old feed, before which we stand: plain readers get the publisher's last good
//! document, whoever speaks of cursors or prefers JSON gets the Smart Feed; not the rest of the
//! site.

use super::{
    poll_for_reader::{PollForReader, fresh_secs},
    trackers::without_trackers,
};
use crate::{
    catalog::{CatalogSnapshot, RegisteredFeed, ServePlain},
    edge::{
        body::{self, MountService, Response, ServeBody},
        fields::{list_value, set, text},
    },
    readers::{Coding, PlainDocument},
    render::{Endpoint, LegacyLinks, Query, Representation, link_header},
    serve::{
        answers::{accept, refusal::Refusal},
        feeds::{context::ServeContext, event_stream, pull},
        routing::{
            mount::{Handler, Mount, answer_of},
            own_layers::{CONTENT_SECURITY_POLICY, guarded},
        },
    },
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, StatusCode, Uri,
    header::{
        self, ACCEPT, ACCEPT_RANGES, ACCESS_CONTROL_REQUEST_METHOD, CACHE_CONTROL,
        CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
        LINK, VARY, X_CONTENT_TYPE_OPTIONS,
    },
    request::Parts,
    uri::PathAndQuery,
};
use std::sync::Arc;

/// A request to the address of an old feed.
struct LegacyRequest {
    feed: Arc<RegisteredFeed>,
    asks: LegacyAsk,
}

/// The thing that is asked for at the address of an old feed.
enum LegacyAsk {
    /// The old document.
    Plain,
    /// The Smart Feed, by the query of ours that stands behind the feed's own.
    Smart(String),
    /// Something else, by a method or an address that a server could take for that of a private
    /// feed.
    Other,
}

impl LegacyRequest {
    // Decides: Does an old address mean the old document or the Smart Feed?
    /// Reads what a request to a site asks of one of its feeds; `None` for everything else. Nothing
    /// that could be meant for a private feed is something else, however its address is spelt.
    fn of(context: &ServeContext, request: &Parts) -> Option<Self> {
        let catalog = context.catalog();
        let site = catalog.site_of(request)?.no;
        let asked = request.uri.path_and_query()?;
        let is_read = matches!(request.method, Method::GET | Method::HEAD);
        if (is_read || is_preflight(request))
            && let Some(reading) = Self::reading(&catalog, site, asked, request)
        {
            return Some(reading);
        }
        let (feed, is_itself) = catalog.guarded_place(site, asked.path())?;
        let asks = if is_itself && is_read {
            LegacyAsk::Plain
        } else {
            LegacyAsk::Other
        };
        Some(Self::new(feed, asks))
    }

    /// A request that reads a feed: at its own address, at that with what trackers add, or with
    /// parameters of a Smart Feed behind it.
    fn reading(
        catalog: &CatalogSnapshot,
        site: usize,
        asked: &PathAndQuery,
        request: &Parts,
    ) -> Option<Self> {
        // The publisher's own parameters may have the names of ours, and those of trackers.
        if let Some(feed) = catalog.at_place(site, asked.as_str()) {
            return Some(Self::whole(feed, request));
        }
        // Most requests are for pages, and end here.
        asked.query()?;
        let untracked = without_trackers(asked.as_str());
        if let Some(feed) = catalog.at_place(site, &untracked) {
            return Some(Self::whole(feed, request));
        }
        let (own, ours) = Query::split_address(&untracked, false);
        let is_ours = Query::is_smart(&ours) || (!ours.is_empty() && prefers_smart(request));
        if is_ours && let Some(feed) = catalog.at_place(site, &own) {
            return Some(Self::new(feed, LegacyAsk::Smart(ours)));
        }
        // `q`, `author` or `category` alone choose another document of the old site; beside a
        // parameter that only a Smart Feed has they are a filter.
        let (own, ours) = Query::split_address(&untracked, true);
        if !Query::is_smart(&ours) {
            return None;
        }
        let feed = catalog.at_place(site, &own)?;
        Some(Self::new(feed, LegacyAsk::Smart(ours)))
    }

    /// The feed without any parameter of ours.
    fn whole(feed: &Arc<RegisteredFeed>, request: &Parts) -> Self {
        let asks = if prefers_smart(request) {
            LegacyAsk::Smart(String::new())
        } else {
            LegacyAsk::Plain
        };
        Self::new(feed, asks)
    }

    fn new(feed: &Arc<RegisteredFeed>, asks: LegacyAsk) -> Self {
        Self {
            feed: feed.clone(),
            asks,
        }
    }
}

fn is_preflight(request: &Parts) -> bool {
    request.method == Method::OPTIONS && request.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// True for a request that takes JSON or events rather than the old document. What a page of another
/// origin will accept is not in its preflight.
fn prefers_smart(request: &Parts) -> bool {
    is_preflight(request)
        || accept::prefers_json(list_value(&request.headers, &ACCEPT).as_deref())
        || accept::wants_events(request)
}

/// True for a request at the address of an old feed, or at what could be that of a private one.
pub(crate) fn is_at_feed(context: &ServeContext, request: &Parts) -> bool {
    LegacyRequest::of(context, request).is_some()
}

/// The mounts of the addresses of old feeds, before the rest of their sites, to which `origin`
/// leads.
pub(crate) fn mounts(
    context: &Arc<ServeContext>,
    origin: &MountService,
    looks: &Arc<dyn PollForReader>,
) -> Vec<Mount> {
    let takes = |is_smart: bool| {
        let context = context.clone();
        move |request: &Parts| {
            LegacyRequest::of(&context, request)
                .is_some_and(|asked| matches!(asked.asks, LegacyAsk::Smart(_)) == is_smart)
        }
    };
    let smart = SmartLegacy(context.clone());
    let plain = PlainLegacy {
        context: context.clone(),
        origin: origin.clone(),
        looks: looks.clone(),
    };
    vec![
        Mount::own(takes(true), smart),
        Mount::bare(takes(false), plain),
    ]
}

/// The Smart Feed at the address of the old one.
#[derive(Clone)]
struct SmartLegacy(Arc<ServeContext>);

impl Handler for SmartLegacy {
    async fn handle(&self, request: &Parts, _: ServeBody) -> Result<Response, Refusal> {
        let context = &self.0;
        let Some(LegacyRequest {
            feed,
            asks: LegacyAsk::Smart(ours),
        }) = LegacyRequest::of(context, request)
        else {
            // The feed has left the catalog since it was found.
            return Err(Refusal::gone());
        };
        let mut request = request.clone();
        request.uri = Uri::builder()
            .path_and_query(format!("/?{ours}"))
            .build()
            .unwrap_or_default();
        let name = &feed.settings.name;
        let endpoint = Endpoint::Negotiated(name.clone());
        let asked = &context.admit(&request, &endpoint).await?;
        let response = if accept::wants_events(&request) {
            event_stream::open(asked, name, true).await
        } else {
            pull::smart(asked, name, None).await
        };
        let response = response.inspect_err(|refusal| asked.note(refusal.status()))?;
        asked.finish(response)
    }
}

/// The old feed at its own address, for plain readers.
#[derive(Clone)]
struct PlainLegacy {
    context: Arc<ServeContext>,
    origin: MountService,
    looks: Arc<dyn PollForReader>,
}

impl Handler for PlainLegacy {
    async fn handle(&self, request: &Parts, body: ServeBody) -> Result<Response, Refusal> {
        let context = &self.context;
        let Some(LegacyRequest { feed, asks }) = LegacyRequest::of(context, request) else {
            return Ok(self.of_origin(request, body).await);
        };
        let Some(place) = &feed.settings.legacy else {
            return Err(Refusal::gone());
        };
        let name = &feed.settings.name;
        let endpoint = Endpoint::Negotiated(name.clone());
        let asked = &context.admit(request, &endpoint).await?;
        if matches!(asks, LegacyAsk::Other) {
            return Err(match request.method {
                Method::GET | Method::HEAD => context.unknown("there is nothing here"),
                _ => Refusal::method("GET, HEAD"),
            });
        }
        // What a private feed is comes from here alone: the origin would give it to everybody, and
        // its caches, too.
        let is_private = feed.settings.is_private();
        let fresh_secs = match place.plain {
            ServePlain::Origin => 0,
            _ => fresh_secs(&feed.settings),
        };
        if let Some(look) = self.looks.look(feed.no, fresh_secs) {
            look.await;
        }
        let site = context.readers.site();
        let links = LegacyLinks {
            own: place.url.to_string(),
            hub: site.hub(),
            // Listeners know no credentials.
            cloud: site.cloud().filter(|_| context.takes_cloud && !is_private),
        };
        let link = link_header(&links.own, &links.hub);
        let links = Some(links).filter(|_| place.plain == ServePlain::Rewritten);
        let key = context.readers.document_key(feed.no, links);
        let mut kept = context.readers.document(&key).await?;
        let pushed = kept.as_ref().and_then(|document| document.pushed);
        let is_resource = feed.settings.is_resource();
        let is_topic = pushed.is_some() || is_resource;
        let head = context.readers.head(feed.no).ok();
        if is_resource
            && context
                .readers
                .deleted_at(asked.feed(name)?.read)
                .await?
                .is_some()
        {
            if is_private && context.readers.announces(feed.no) {
                asked.note(StatusCode::GONE);
                return Err(Refusal::deleted());
            }
            if is_private {
                return Err(context.unknown("there is nothing here"));
            }
            // Its origin says so, or has it again.
            kept = None;
        }
        let finish = |mut response: Response| {
            if is_topic {
                set(response.headers_mut(), LINK, &link);
            }
            asked.finish(response)
        };
        if asked.caller.reads_part() {
            // The publisher's document holds the rest, too.
            let form = pushed.unwrap_or(Representation::CLASSIC_ATOM);
            let part = pull::at_old_address(asked, name, form, place.url.as_str()).await?;
            return finish(guarded(part));
        }
        let is_given = is_private || place.plain != ServePlain::Origin;
        let Some(document) = kept.filter(|_| is_given) else {
            if is_private {
                context.check_ready(asked.feed(name)?).await?;
                return Err(Refusal::not_ready(0, false));
            }
            // Nothing good has come yet, or it is to be asked: the origin says what there is, and
            // who prefers JSON gets something else here (T-3).
            let mut response = self.of_origin(request, body).await;
            asked.note(response.status());
            let headers = response.headers_mut();
            headers.append(VARY, HeaderValue::from_static("accept"));
            if is_topic {
                headers.extend(HeaderValue::try_from(link).ok().map(|link| (LINK, link)));
            }
            return Ok(response);
        };
        let (mut response, coding) = plain(request, &document, is_resource).await;
        let (readers, had) = (context.readers.clone(), Arc::downgrade(&document));
        let (looks, no) = (self.looks.clone(), feed.no);
        let is_fresh = response.status() == StatusCode::NOT_MODIFIED;
        asked.mark_repeatable(&mut response, move || {
            // A resource may be gone since, and its document is kept all the same.
            let is_same = head.is_some_and(|head| readers.is_at(no, head));
            let may_be_gone = is_resource && !is_same;
            // An old copy is not given again before its origin was asked.
            if may_be_gone || looks.is_wanted(no, fresh_secs) {
                return None;
            }
            let document = readers.same_document(&key, &had)?;
            if is_fresh {
                return Some(Bytes::new());
            }
            document.coded_before(coding)
        });
        finish(response)
    }
}

impl PlainLegacy {
    async fn of_origin(&self, request: &Parts, body: ServeBody) -> Response {
        answer_of(&self.origin, Request::from_parts(request.clone(), body)).await
    }
}

/// The publisher's document, with validators, and the coding in which the reader takes it; 304 when
/// the reader has it (T-1, T-2).
async fn plain(request: &Parts, document: &PlainDocument, is_resource: bool) -> (Response, Coding) {
    let mut response = Response::default();
    let coding = accept::coding_for(request);
    let etag = format!("W/\"{}{}\"", document.tag, accept::coding_tag(coding));
    if is_fresh(&request.headers, document, &etag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        *response.body_mut() = body::whole(document.coded(coding).await);
        let headers = response.headers_mut();
        let usual = if is_resource {
            "application/octet-stream"
        } else {
            "application/xml"
        };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(usual));
        if let Some(content_type) = &document.content_type {
            set(headers, CONTENT_TYPE, content_type);
        }
        if let Some(token) = coding.token() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(token));
        }
    }
    let headers = response.headers_mut();
    set(headers, ETAG, etag);
    if let Some(date) = &document.last_modified {
        set(headers, LAST_MODIFIED, date);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Limit: a `Range` is answered by the whole, which the next poll may change.
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("none"));
    headers.insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if !document.may_have_style_sheet {
        headers.insert(header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY);
    }
    (response, coding)
}

/// True while the reader's copy is the one that we would send. `If-None-Match` goes before
/// `If-Modified-Since`, which means a copy only by the publisher's own date.
fn is_fresh(headers: &HeaderMap, document: &PlainDocument, etag: &str) -> bool {
    if let Some(known) = list_value(headers, &IF_NONE_MATCH) {
        return accept::names_tag(&known, etag);
    }
    let since = text(headers, &IF_MODIFIED_SINCE);
    since.is_some() && since == document.last_modified.as_deref()
}
