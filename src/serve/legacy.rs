//! The address of an old feed, before which we stand: plain readers get the publisher's last good document, whoever speaks of
//! cursors or prefers JSON gets the Smart Feed; not the rest of the site.

use super::{
    accept,
    body::{self, Response, ServeBody},
    context::ServeContext,
    mount::{Handler, Mount, MountService},
    pull,
    refusal::Refusal,
};
use crate::{
    catalog::{RegisteredFeed, ServePlain},
    readers::PlainDocument,
    render::{Endpoint, LegacyLinks, Query, link_header},
};
use futures_util::future::BoxFuture;
use http::{
    HeaderMap, HeaderValue, Method, Request, StatusCode, Uri,
    header::{
        ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_MODIFIED_SINCE,
        IF_NONE_MATCH, LAST_MODIFIED, LINK, VARY,
    },
    request::Parts,
};
use std::{convert::Infallible, sync::Arc};
use tower::ServiceExt as _;

/// A request to the address of an old feed.
struct LegacyRequest {
    feed: Arc<RegisteredFeed>,
    /// The query of ours that stands behind the feed's own; `None` for a plain reader.
    smart: Option<String>,
}

impl LegacyRequest {
    /// Reads what a request to a site asks of one of its feeds; `None` for everything else.
    fn of(context: &ServeContext, request: &Parts) -> Option<Self> {
        if !matches!(request.method, Method::GET | Method::HEAD) {
            return None;
        }
        let site = context.sites.of(request)?.no;
        let asked = request.uri.path_and_query()?;
        let catalog = context.gate.catalog.snapshot();
        // The publisher's own parameters may have the names of ours.
        if let Some(feed) = catalog.at_place(site, asked.as_str()) {
            let accept = accept::joined(&request.headers, &ACCEPT);
            let smart = accept::prefers_json(accept.as_deref()).then(String::new);
            return Some(Self { feed: feed.clone(), smart });
        }
        let (own, ours) = Query::split(asked.query()?);
        let place = if own.is_empty() { asked.path().to_owned() } else { format!("{}?{own}", asked.path()) };
        let feed = catalog.at_place(site, &place).filter(|_| Query::is_smart(&ours))?;
        Some(Self { feed: feed.clone(), smart: Some(ours) })
    }
}

/// The mounts of the addresses of old feeds, before the rest of their sites, to which `origin` leads.
pub(super) fn mounts(context: &Arc<ServeContext>, origin: &MountService) -> Vec<Mount> {
    let takes = |is_smart: bool| {
        let context = context.clone();
        move |request: &Parts| {
            LegacyRequest::of(&context, request).is_some_and(|asked| asked.smart.is_some() == is_smart)
        }
    };
    let smart = SmartLegacy(context.clone());
    let plain = PlainLegacy { context: context.clone(), origin: origin.clone() };
    vec![Mount::own(takes(true), smart), Mount::bare(takes(false), plain)]
}

/// The Smart Feed at the address of the old one.
#[derive(Clone)]
struct SmartLegacy(Arc<ServeContext>);

impl Handler for SmartLegacy {
    async fn handle(&self, request: &Parts, _: ServeBody) -> Result<Response, Refusal> {
        let context = &*self.0;
        let Some(LegacyRequest { feed, smart }) = LegacyRequest::of(context, request) else {
            // The feed has left the catalog since it was found.
            return Err(Refusal::gone());
        };
        let mut request = request.clone();
        let query = format!("/?{}", smart.unwrap_or_default());
        request.uri = Uri::builder().path_and_query(query).build().unwrap_or_default();
        let name = &feed.settings.name;
        let caller = &context.admit(&request, &Endpoint::Negotiated(name.clone())).await?;
        Ok(caller.mark(pull::smart(context, &request, caller, (name, None)).await?))
    }
}

/// The old feed at its own address, for plain readers.
#[derive(Clone)]
struct PlainLegacy {
    context: Arc<ServeContext>,
    origin: MountService,
}

impl Handler for PlainLegacy {
    async fn handle(&self, request: &Parts, body: ServeBody) -> Result<Response, Refusal> {
        let context = &*self.context;
        let asked = LegacyRequest::of(context, request);
        let Some((feed, place)) =
            asked.as_ref().and_then(|asked| Some((asked.feed.no, asked.feed.settings.legacy.as_ref()?)))
        else {
            return Ok(self.of_origin(request, body).await);
        };
        let name = asked.as_ref().map_or("", |asked| asked.feed.settings.name.as_str());
        let caller = context.admit(request, &Endpoint::Negotiated(name.to_owned())).await?;
        let links = LegacyLinks { own: place.url.to_string(), hub: context.readers.site().hub() };
        let link = link_header(&links.own, &links.hub);
        let links = Some(links).filter(|_| place.plain == ServePlain::Rewritten);
        let kept = context.readers.legacy(feed, links).await?;
        let is_pushed = kept.as_ref().is_some_and(|document| document.is_pushed);
        let mut response = match kept.filter(|_| place.plain != ServePlain::Origin) {
            Some(document) => plain(request, &document).await,
            // Nothing good has come yet, or it is to be asked: the origin says what there is.
            None => self.of_origin(request, body).await,
        };
        if is_pushed {
            response.headers_mut().extend(HeaderValue::try_from(link).ok().map(|link| (LINK, link)));
        }
        Ok(caller.mark(response))
    }
}

impl PlainLegacy {
    async fn of_origin(&self, request: &Parts, body: ServeBody) -> Response {
        let answer: BoxFuture<'static, Result<Response, Infallible>> =
            Box::pin(self.origin.clone().oneshot(Request::from_parts(request.clone(), body)));
        let Ok(response) = answer.await;
        response
    }
}

/// The publisher's document, with validators; 304 when the reader has it (T-1, T-2).
async fn plain(request: &Parts, document: &PlainDocument) -> Response {
    let mut response = Response::default();
    if is_fresh(&request.headers, document) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        let coding = accept::coding(accept::joined(&request.headers, &ACCEPT_ENCODING).as_deref());
        *response.body_mut() = body::whole(document.coded(coding).await);
        let content_type = document.content_type.as_deref().and_then(|it| HeaderValue::try_from(it).ok());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, content_type.unwrap_or(HeaderValue::from_static("application/xml")));
        headers.extend(coding.token().map(|token| (CONTENT_ENCODING, HeaderValue::from_static(token))));
    }
    let headers = response.headers_mut();
    headers.extend(HeaderValue::try_from(etag(document)).ok().map(|etag| (ETAG, etag)));
    let date = document.last_modified.as_deref().and_then(|date| HeaderValue::try_from(date).ok());
    headers.extend(date.map(|date| (LAST_MODIFIED, date)));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
    response
}

/// The validator of a document. Weak, since codings differ.
fn etag(document: &PlainDocument) -> String {
    format!("W/\"{}\"", document.tag)
}

/// True while the reader's copy is the one that we would send. `If-None-Match` goes before `If-Modified-Since`, which means a
/// copy only by the publisher's own date.
fn is_fresh(headers: &HeaderMap, document: &PlainDocument) -> bool {
    if let Some(known) = accept::joined(headers, &IF_NONE_MATCH) {
        return accept::names_tag(&known, &etag(document));
    }
    let since = headers.get(IF_MODIFIED_SINCE).and_then(|date| date.to_str().ok());
    since.is_some() && since == document.last_modified.as_deref()
}
