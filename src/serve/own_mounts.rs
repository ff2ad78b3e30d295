//! Our own mounts: the hub, and the feeds with their list and descriptions; which path leads where,
//! not the answers.

use super::{
    answers::{accept, refusal::Refusal},
    feeds::{admission::AdmittedRequest, context::ServeContext, discovery, event_stream, pull},
    hub_forms::{HubForms, HubService},
    push_inlet::{NoInlet, PushCallbacks, PushInlet},
    routing::mount::{Handler, Mount},
    sites::{
        index_key::{IndexKey, could_be_key},
        legacy,
        pings::{Pings, could_be_ping},
        poll_for_reader::PollForReader,
        readers_page::{self, PushCounts},
        site_pages::site_pages,
        sitemap::{OriginSitemaps, Sitemaps, could_be_sitemap},
    },
};
use crate::{
    edge::{
        body::{MountService, Response, ServeBody, plain},
        fields::{set, text},
    },
    render::{self, Endpoint, urls::refresh_secs},
};
use http::{
    HeaderValue, Method, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, HOST, LOCATION, REFRESH},
    request::Parts,
};
use std::sync::Arc;
use url::Url;

/// The way to the origins of the sites before which we stand.
pub struct WayToOrigins {
    /// The origins.
    pub origin: MountService,
    /// Looks at their old feeds.
    pub looks: Arc<dyn PollForReader>,
    /// The answers of the origins about their sitemaps.
    pub sitemaps: OriginSitemaps,
    /// Push subscriptions of their feeds.
    pub subscribers: PushCounts,
}

/// The callbacks at which hubs of others tell of feeds.
pub struct PushInletParts {
    /// Whoever answers there.
    pub inlet: Arc<dyn PushInlet>,
    /// The longest push that is read, bytes.
    pub body_bytes_max: usize,
}

impl PushInletParts {
    /// No callbacks.
    pub fn none() -> Self {
        Self {
            inlet: Arc::new(NoInlet),
            body_bytes_max: 0,
        }
    }
}

/// The mounts of our own paths, and of the sites before which we stand: theirs are all paths at
/// which we have nothing, and `origins` leads to them. The last takes what is left, and knows what
/// is not there.
pub fn own_mounts(
    context: Arc<ServeContext>,
    hub: HubService,
    pushes: PushInletParts,
    origins: Option<WayToOrigins>,
) -> Vec<Mount> {
    let ours = {
        let context = context.clone();
        move |request: &Parts| context.readers.site().endpoint(request.uri.path())
    };
    let is_hub = {
        let (ours, context) = (ours.clone(), context.clone());
        move |request: &Parts| ours(request).is_some_and(|endpoint| is_of_hub(&context, &endpoint))
    };
    let forms = HubForms {
        hub: hub.clone(),
        context: context.clone(),
    };
    let is_callback = {
        let ours = ours.clone();
        move |request: &Parts| matches!(ours(request), Some(Endpoint::Callback(_)))
    };
    let callbacks = PushCallbacks::new(context.clone(), pushes.inlet, pushes.body_bytes_max);
    // Of the whole server, not of a site: its layers answer, with all the methods that we take (RFC
    // 9110 section 9.3.7).
    let is_whole = |request: &Parts| request.method == Method::OPTIONS && request.uri.path() == "*";
    let is_own_call = {
        let context = context.clone();
        move |request: &Parts| {
            context.own_calls.is_on_delivery(&request.headers) && answers_itself(&context, request)
        }
    };
    let is_moved = {
        let context = context.clone();
        move |request: &Parts| moved(&context, request).is_some()
    };
    let mut mounts = vec![
        Mount::own(is_own_call, OwnCalls),
        Mount::own(is_moved, Moved(context.clone())),
        Mount::own(is_whole, forms.clone()),
        Mount::own(is_hub, forms),
        Mount::own(is_callback, callbacks),
    ];
    let is_ping = {
        let context = context.clone();
        move |request: &Parts| could_be_ping(&context, request)
    };
    let pings = |origin| Pings {
        context: context.clone(),
        hub,
        origin,
    };
    if let Some(WayToOrigins {
        origin,
        looks,
        sitemaps,
        subscribers,
    }) = origins
    {
        mounts.push(readers_page::mount(&context, subscribers));
        let origin = site_pages(context.clone(), origin);
        mounts.push(Mount::bare(is_ping, pings(Some(origin.clone()))));
        let has_no_sites = {
            let context = context.clone();
            move |_: &Parts| context.catalog().sites().is_empty()
        };
        mounts.push(Mount::own(has_no_sites, FeedPages(context.clone())));
        let is_there = {
            let context = context.clone();
            move |request: &Parts| {
                ours(request).is_some_and(|endpoint| is_there(&context, &endpoint, request))
            }
        };
        mounts.push(Mount::own(is_there, FeedPages(context.clone())));
        mounts.extend(legacy::mounts(&context, &origin, &looks));
        let is_key = {
            let context = context.clone();
            move |request: &Parts| could_be_key(&context, request)
        };
        let key = IndexKey {
            context: context.clone(),
            origin: origin.clone(),
        };
        mounts.push(Mount::bare(is_key, key));
        let is_sitemap = {
            let context = context.clone();
            move |request: &Parts| could_be_sitemap(&context, request)
        };
        let sitemaps = Sitemaps::new(context.clone(), origin.clone(), sitemaps);
        mounts.push(Mount::bare(is_sitemap, sitemaps));
        let names_nothing = {
            let context = context.clone();
            move |request: &Parts| is_own_in_site(&context, request)
        };
        mounts.push(Mount::own(names_nothing, FeedPages(context.clone())));
        let is_of_site = {
            let context = context.clone();
            move |request: &Parts| context.catalog().site_of(request).is_some()
        };
        mounts.push(Mount::new(is_of_site, origin));
    } else {
        mounts.push(Mount::own(is_ping, pings(None)));
    }
    mounts.push(Mount::own(|_| true, FeedPages(context)));
    mounts
}

/// True for a request that is answered here, and not by the origin of a site.
pub fn answers_itself(context: &ServeContext, request: &Parts) -> bool {
    if context.catalog().site_of(request).is_none() || could_be_ping(context, request) {
        return true;
    }
    let is_ours = match context.readers.site().endpoint(request.uri.path()) {
        Some(endpoint) => is_of_hub(context, &endpoint) || is_there(context, &endpoint, request),
        None => false,
    };
    is_ours || is_own_in_site(context, request) || legacy::is_at_feed(context, request)
}

/// True for a place of the hub; for that of its cloud where there is one.
fn is_of_hub(context: &ServeContext, endpoint: &Endpoint) -> bool {
    match endpoint {
        Endpoint::Hub | Endpoint::HubOf(_) => true,
        Endpoint::Cloud => context.takes_cloud,
        _ => false,
    }
}

/// Requests of our own hub that came back to us: a callback of somebody who wants us to ask
/// ourselves.
#[derive(Clone)]
struct OwnCalls;

impl Handler for OwnCalls {
    async fn handle(&self, _: &Parts, _: ServeBody) -> Result<Response, Refusal> {
        Err(Refusal::own_call())
    }
}

/// The present URL of what a request reads below a former root (W-17).
fn moved(context: &ServeContext, request: &Parts) -> Option<String> {
    let site = context.readers.site();
    let is_led = match request.method {
        Method::GET | Method::HEAD => true,
        // Few subscribers follow: what is posted where we have something now is taken there.
        Method::POST => site.endpoint(request.uri.path()).is_none(),
        _ => false,
    };
    if !is_led {
        return None;
    }
    let host = match request.uri.authority() {
        Some(authority) => authority.as_str(),
        None => text(&request.headers, &HOST)?,
    };
    let target = request.uri.path_and_query().map_or("/", |it| it.as_str());
    // Which scheme a front proxy speaks does not matter.
    let url = Url::parse(&format!("http://{host}{target}")).ok()?;
    site.moved(&url)
}

/// Leads requests below a former root on.
#[derive(Clone)]
struct Moved(Arc<ServeContext>);

impl Handler for Moved {
    const METHODS: &'static str = "GET, HEAD, POST, OPTIONS";

    async fn handle(&self, request: &Parts, _: ServeBody) -> Result<Response, Refusal> {
        let url = moved(&self.0, request).ok_or_else(|| self.0.unknown("there is nothing here"))?;
        let mut response = plain(
            StatusCode::PERMANENT_REDIRECT,
            format!("this is at {url} now\n"),
        );
        let headers = response.headers_mut();
        set(headers, LOCATION, url);
        // A mistake in the configuration is not kept for ever.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=3600"));
        Ok(response)
    }
}

/// True for a path among ours that names nothing of ours, and no feed of the site: a listed feed of
/// the site may have its address there, and all methods at it go where those of other feeds go.
fn is_own_in_site(context: &ServeContext, request: &Parts) -> bool {
    let path = request.uri.path();
    if !context.readers.site().is_own(path) {
        return false;
    }
    let target = request.uri.path_and_query().map_or(path, |it| it.as_str());
    let catalog = context.catalog();
    let site = catalog.site_of(request);
    let is_feed = |target| site.is_some_and(|site| catalog.at_place(site.no, target).is_some());
    !is_feed(target)
}

// Decides: Is a path ours or the site's?
/// True for an endpoint at which we have something: a site may have a feed of its own at
/// `/feeds/...`, and has its front page.
fn is_there(context: &ServeContext, endpoint: &Endpoint, request: &Parts) -> bool {
    let Some(name) = endpoint.name() else {
        let is_of_site = matches!(request.uri.path(), "" | "/" | "/openapi.json");
        return *endpoint == Endpoint::Hub || !(is_of_site || *endpoint == Endpoint::Cloud);
    };
    let catalog = context.gate.catalog.snapshot();
    // Below a secret nothing is for others. And while there is a private feed, the answer must not
    // tell which names there are.
    let is_hiding =
        catalog.has_private() || context.readers.site().secret(request.uri.path()).is_some();
    let is_known = catalog.feed(name).is_some() || catalog.withdrawn(name).is_some();
    is_hiding || is_known || catalog.beside_worker().has(name)
}

/// The feeds, their list and their descriptions. Nothing of a request's body is read.
#[derive(Clone)]
struct FeedPages(Arc<ServeContext>);

impl Handler for FeedPages {
    async fn handle(&self, request: &Parts, _: ServeBody) -> Result<Response, Refusal> {
        let context = &self.0;
        let site = context.readers.site();
        let Some(endpoint) = site.endpoint(request.uri.path()) else {
            let is_below_feeds = site.is_below_feeds(request.uri.path());
            return Err(context.unknown(if is_below_feeds {
                "there is no such feed"
            } else {
                "there is nothing here"
            }));
        };
        if !matches!(request.method, Method::GET | Method::HEAD) {
            return Err(Refusal::method(Self::METHODS));
        }
        let asked = &context.admit(request, &endpoint).await?;
        let answer = page_at(asked, endpoint).await;
        if let Err(refusal) = &answer {
            asked.note(refusal.status());
        }
        answer
    }
}

/// The answer at an endpoint of a feed, of the list or of a description.
async fn page_at(asked: &AdmittedRequest<'_>, endpoint: Endpoint) -> Result<Response, Refusal> {
    let context = asked.context;
    let refresh_secs = match endpoint {
        Endpoint::List | Endpoint::Negotiated(_) => refresh_secs(asked.query())?,
        _ => None,
    };
    let response = match endpoint {
        Endpoint::List => discovery::list(asked).await,
        Endpoint::Outline => discovery::outline(asked).await,
        Endpoint::OutlineOf(name) => discovery::outline_of(asked, &name).await,
        Endpoint::OpenApi => Ok(discovery::openapi(asked).await),
        Endpoint::About(name) => discovery::about(asked, &name).await,
        Endpoint::Events(name) => event_stream::open(asked, &name, false).await,
        Endpoint::Negotiated(name) if accept::wants_events(asked.request) => {
            event_stream::open(asked, &name, true).await
        }
        Endpoint::Negotiated(name) => pull::smart(asked, &name, None).await,
        Endpoint::Page(name, form) if form.is_classic() => pull::classic(asked, &name, form).await,
        Endpoint::Archive(name, form, place) => pull::archive(asked, &name, form, place).await,
        Endpoint::Page(name, form) => pull::smart(asked, &name, Some(form)).await,
        Endpoint::Hub | Endpoint::HubOf(_) | Endpoint::Cloud => {
            Err(context.unknown("there is no hub here"))
        }
        Endpoint::Callback(_) => Err(context.unknown("there is nothing here")),
    };
    let mut response = response?;
    if let Some(secs) = refresh_secs.filter(|_| is_page(&response)) {
        response.headers_mut().insert(REFRESH, secs.into());
    }
    asked.finish(response)
}

/// True for a page for people. A copy that is still good keeps the headers that it came with.
fn is_page(response: &Response) -> bool {
    text(response.headers(), &CONTENT_TYPE) == Some(render::html::CONTENT_TYPE)
}
