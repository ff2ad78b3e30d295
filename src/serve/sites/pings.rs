//! Pings of blogs (`POST /RPC2`, weblogUpdates and rssCloud; `/pingSiteForm`): hints that feeds have
//! changed, given to the hub as such. On the host of a site they are of its blog, and every other
//! call there is the site's own; on our own host they are of any feed that is polled (UPSTREAM
//! U-24). Not what becomes of a hint (LEGACY C-3).

use super::look_ahead::{joined, look_ahead};
use crate::{
    catalog::{CatalogSnapshot, RegisteredFeed},
    edge::{
        body::{self, MountService, Response, ServeBody, plain},
        fields::text,
        xml_rpc::{BadXmlRpc, NO_METHOD, NOT_WELL_FORMED, XmlRpcCall, fault_answer, ping_answer},
    },
    serve::{
        answers::refusal::Refusal,
        feeds::context::ServeContext,
        hub_forms::{HubService, read_form},
        routing::mount::{Handler, answer_of},
    },
};
use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, StatusCode,
    header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, RETRY_AFTER, TRANSFER_ENCODING},
    request::Parts,
};
use std::sync::Arc;
use url::{Url, form_urlencoded};

/// The path of calls.
const PATH: &str = "/RPC2";
/// The methods that are pings.
const PING: &str = "weblogUpdates.ping";
const EXTENDED_PING: &str = "weblogUpdates.extendedPing";
/// The ping of rssCloud, which names a feed alone.
const CLOUD_PING: &str = "rssCloud.ping";
/// The path of pings by form.
const FORM_PATH: &str = "/pingSiteForm";
/// Parameters of a ping by form that are addresses.
const FORM_URLS: [&str; 2] = ["url", "changesURL"];
/// The longest parameter of a ping, bytes.
const PARAMETER_BYTES_MAX: usize = 1024;
/// Feeds of a site that one ping is for.
const FEEDS_MAX: usize = 50;

// Decides: Which calls at `/RPC2` are ours?
/// True for a request that could be a ping of a site's blog, or on our own host of any.
pub(crate) fn could_be_ping(context: &ServeContext, request: &Parts) -> bool {
    let path = request.uri.path();
    if !path.ends_with(PATH) && !path.ends_with(FORM_PATH) {
        return false;
    }
    match context.catalog().site_of(request) {
        Some(site) => request.method == Method::POST && path == PATH && site.settings.pings,
        None => {
            let prefix = context.config.prefix.trim_end_matches('/');
            let own = path.strip_prefix(prefix);
            own == Some(PATH) && request.method == Method::POST || own == Some(FORM_PATH)
        }
    }
}

/// Pings, and the way to the site for calls that are none.
#[derive(Clone)]
pub(crate) struct Pings {
    pub(crate) context: Arc<ServeContext>,
    pub(crate) hub: HubService,
    /// The way to sites; `None` where there are none.
    pub(crate) origin: Option<MountService>,
}

impl Handler for Pings {
    const METHODS: &'static str = "GET, POST, OPTIONS";

    async fn handle(&self, request: &Parts, body: ServeBody) -> Result<Response, Refusal> {
        if request.uri.path().ends_with(FORM_PATH) {
            return self.ping_by_form(request, body).await;
        }
        let (begin, rest) = look_ahead(body, |begin| method_of(begin).is_some()).await;
        let is_ping = method_of(&begin).is_some_and(|method| method.starts_with(b"weblogUpdates."));
        if let Some(origin) = self.of_site(request).filter(|_| !is_ping) {
            return Ok(passed_on(origin, request, joined(begin, rest)).await);
        }
        let whole = read_form(request, joined(begin, rest)).await?;
        let answer = match XmlRpcCall::read(&whole) {
            Ok(call) if matches!(call.method.as_str(), PING | EXTENDED_PING | CLOUD_PING) => {
                self.ping(request, &call).await
            }
            Ok(call) => Ok(fault_answer(
                NO_METHOD,
                &format!("there is no method {} here", call.method),
            )),
            Err(bad @ (BadXmlRpc::NoCall | BadXmlRpc::DocumentType | BadXmlRpc::TooLarge)) => {
                Ok(fault_answer(NOT_WELL_FORMED, &bad.to_string()))
            }
        };
        answer.map(response)
    }
}

impl Pings {
    /// Gives the hint that a ping is; the answer to it.
    async fn ping(&self, request: &Parts, call: &XmlRpcCall) -> Result<String, Refusal> {
        let is_too_long = |parameter: &String| parameter.len() > PARAMETER_BYTES_MAX;
        if call.parameters.iter().any(is_too_long) {
            let why = format!("a parameter holds {PARAMETER_BYTES_MAX} bytes at most");
            return Ok(ping_answer(true, &why));
        }
        // Name of the blog, its address, that of the page that changed, and in an extended one that
        // of its feed. That of rssCloud is the feed alone.
        let names = usize::from(call.method != CLOUD_PING);
        let urls = call.parameters.iter().skip(names).take(3);
        let urls: Vec<&str> = urls.map(String::as_str).collect();
        Ok(match self.pinged(request, &urls).await {
            Ok(thanks) => ping_answer(false, &thanks),
            Err(why) => ping_answer(true, &why),
        })
    }

    /// Gives the hint that a ping by form is; the answer to it in words.
    async fn ping_by_form(&self, request: &Parts, body: ServeBody) -> Result<Response, Refusal> {
        let of_body = read_form(request, body).await?;
        let query = request.uri.query().unwrap_or_default();
        let said = form_urlencoded::parse(query.as_bytes()).chain(form_urlencoded::parse(&of_body));
        let urls = said.filter(|(name, _)| FORM_URLS.contains(&&**name));
        let urls: Vec<String> = urls.map(|(_, url)| url.into_owned()).take(4).collect();
        if urls.iter().any(|url| url.len() > PARAMETER_BYTES_MAX) {
            return Err(Refusal::bad("a parameter of a ping is too long"));
        }
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        let (status, told) = match self.pinged(request, &urls).await {
            Ok(thanks) => (StatusCode::OK, thanks),
            Err(why) => (StatusCode::BAD_REQUEST, why),
        };
        Ok(plain(status, told + "\n"))
    }

    /// Gives the hint that a ping of these addresses is; thanks, or the reason why it is none.
    async fn pinged(&self, request: &Parts, urls: &[&str]) -> Result<String, String> {
        let urls: Vec<&str> = urls.iter().copied().filter(|url| is_web(url)).collect();
        if urls.is_empty() {
            return Err("a ping names a blog and its address".to_owned());
        }
        let feeds = self.feeds_of(request, &urls);
        if feeds.is_empty() {
            return Err("no blog at this address has feeds here".to_owned());
        }
        let answer = self.publish(request, form_of(&feeds)).await;
        let mut told = String::from_utf8_lossy(answer.body()).trim().to_owned();
        match answer.status() {
            StatusCode::NO_CONTENT => {
                return Ok("Thanks for the ping; the feed is looked at soon.".to_owned());
            }
            StatusCode::ACCEPTED => return Ok(format!("Thanks for the ping. {told}")),
            _ => {}
        }
        if let Some(secs) = text(answer.headers(), &RETRY_AFTER) {
            told += &format!("; try again in {secs} seconds");
        }
        Err(told)
    }

    // Decides: Which feeds is a ping for?
    /// The feeds of the site that a ping is for: the one that it names, else those below the
    /// address of the blog, else all.
    fn feeds_of(&self, request: &Parts, urls: &[&str]) -> Vec<Arc<RegisteredFeed>> {
        let catalog = self.context.gate.catalog.snapshot();
        let Some(site) = catalog.site_of(request) else {
            return feeds_anywhere(&catalog, urls);
        };
        let is_of_site = |feed: &Arc<RegisteredFeed>| {
            let place = feed.settings.legacy.as_ref();
            place.is_some_and(|place| place.site == site.no)
        };
        for url in urls.iter().rev() {
            let named = catalog.by_origin(url).and_then(|no| catalog.feed_no(no));
            if let Some(feed) = named.filter(|feed| is_of_site(feed)) {
                return vec![feed.clone()];
            }
        }
        let public = self.context.readers.site().public_url();
        let mut paths = urls
            .iter()
            .filter_map(|url| site.settings.path_of(&Url::parse(url).ok()?, public));
        let Some(blog) = paths.next() else {
            return Vec::new();
        };
        let is_below = |feed: &Arc<RegisteredFeed>| {
            let place = feed.settings.legacy.as_ref();
            place.is_some_and(|place| place.path.starts_with(&blog))
        };
        let of_site = catalog.feeds().filter(|feed| is_of_site(feed));
        let mut feeds: Vec<_> = of_site.cloned().collect();
        if feeds.iter().any(is_below) {
            feeds.retain(is_below);
        }
        feeds.truncate(FEEDS_MAX);
        feeds
    }

    /// Tells the hub that feeds have changed, as anybody may: its limits are those of every other
    /// hint.
    async fn publish(&self, request: &Parts, form: String) -> http::Response<Bytes> {
        let mut parts = request.clone();
        parts.headers.remove(CONTENT_LENGTH);
        parts.headers.remove(TRANSFER_ENCODING);
        let media = HeaderValue::from_static("application/x-www-form-urlencoded");
        parts.headers.insert(CONTENT_TYPE, media);
        let asked = Request::from_parts(parts, Bytes::from(form));
        answer_of(&self.hub, asked).await
    }

    /// The way to the site of a request.
    fn of_site(&self, request: &Parts) -> Option<&MountService> {
        self.context.catalog().site_of(request)?;
        self.origin.as_ref()
    }
}

/// A call that is no ping goes to the site, which was asked for nothing yet.
async fn passed_on(origin: &MountService, request: &Parts, body: ServeBody) -> Response {
    let mut parts = request.clone();
    // Its body is on the way already.
    parts.headers.remove(EXPECT);
    answer_of(origin, Request::from_parts(parts, body)).await
}

/// The feeds of any host that a ping is for: the one that it names, else those at and below the
/// address of the blog. Those that are not for everybody are not told of.
fn feeds_anywhere(catalog: &CatalogSnapshot, urls: &[&str]) -> Vec<Arc<RegisteredFeed>> {
    let is_told = |feed: &&Arc<RegisteredFeed>| {
        !feed.is_group() && !feed.settings.is_private() && feed.settings.legacy.is_none()
    };
    for url in urls.iter().rev() {
        let named = catalog.by_origin(url).and_then(|no| catalog.feed_no(no));
        if let Some(feed) = named.filter(is_told) {
            return vec![feed.clone()];
        }
    }
    let Some(blog) = urls.first().and_then(|url| Url::parse(url).ok()) else {
        return Vec::new();
    };
    let folder = blog.path().trim_end_matches('/');
    let is_below = |url: &Url| {
        let rest = url.path().strip_prefix(folder);
        let is_in = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        is_in && url.host() == blog.host() && url.port() == blog.port()
    };
    let is_of_blog = |feed: &&Arc<RegisteredFeed>| {
        let settings = &feed.settings;
        is_below(&settings.url) || settings.aliases.iter().any(is_below)
    };
    let of_blog = catalog.feeds().filter(is_told).filter(is_of_blog);
    of_blog.take(FEEDS_MAX).cloned().collect()
}

/// The form that says of feeds that they have changed.
fn form_of(feeds: &[Arc<RegisteredFeed>]) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("hub.mode", "publish");
    for feed in feeds {
        form.append_pair("hub.url", feed.settings.url.as_str());
    }
    form.finish()
}

/// The name of the method in the beginning of a call, as soon as it is whole.
fn method_of(begin: &[u8]) -> Option<&[u8]> {
    const OPEN: &[u8] = b"<methodName>";
    let start = memchr::memmem::find(begin, OPEN)? + OPEN.len();
    let end = start + memchr::memchr(b'<', &begin[start..])?;
    Some(begin[start..end].trim_ascii())
}

fn is_web(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

fn response(text: String) -> Response {
    let mut response = Response::new(body::whole(text));
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/xml; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
