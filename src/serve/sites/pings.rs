//! Pings of a blog on the host of its site (`POST /RPC2`, weblogUpdates): hints that its feeds have
//! changed, given to the hub as such; every other call there is the site's own. Not what becomes of
//! a hint (LEGACY C-3).

use super::look_ahead::{joined, look_ahead};
use crate::{
    catalog::RegisteredFeed,
    edge::{
        body::{self, MountService, Response, ServeBody},
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
/// The longest parameter of a ping, bytes.
const PARAMETER_BYTES_MAX: usize = 1024;
/// Feeds of a site that one ping is for.
const FEEDS_MAX: usize = 50;

// Decides: Which calls at `/RPC2` are ours?
/// True for a request that could be a ping of a site's blog.
pub(crate) fn could_be_ping(context: &ServeContext, request: &Parts) -> bool {
    request.method == Method::POST
        && request.uri.path() == PATH
        && context
            .sites
            .of(request)
            .is_some_and(|site| site.settings.pings)
}

/// Pings, and the way to the site for calls that are none.
#[derive(Clone)]
pub(crate) struct Pings {
    pub(crate) context: Arc<ServeContext>,
    pub(crate) hub: HubService,
    pub(crate) origin: MountService,
}

impl Handler for Pings {
    async fn handle(&self, request: &Parts, body: ServeBody) -> Result<Response, Refusal> {
        let (begin, rest) = look_ahead(body, |begin| method_of(begin).is_some()).await;
        if !method_of(&begin).is_some_and(|method| method.starts_with(b"weblogUpdates.")) {
            return Ok(self.of_site(request, joined(begin, rest)).await);
        }
        let whole = read_form(request, joined(begin, rest)).await?;
        let answer = match XmlRpcCall::read(&whole) {
            Ok(call) if matches!(call.method.as_str(), PING | EXTENDED_PING) => {
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
        // of its feed.
        let urls = call.parameters.iter().skip(1).take(3).map(String::as_str);
        let urls: Vec<&str> = urls.filter(|url| is_web(url)).collect();
        if urls.is_empty() {
            return Ok(ping_answer(true, "a ping names a blog and its address"));
        }
        let feeds = self.feeds_of(request, &urls);
        if feeds.is_empty() {
            let why = "no blog at this address has feeds here";
            return Ok(ping_answer(true, why));
        }
        let answer = self.publish(request, form_of(&feeds)).await;
        let mut told = String::from_utf8_lossy(answer.body()).trim().to_owned();
        match answer.status() {
            StatusCode::NO_CONTENT => {
                let thanks = "Thanks for the ping; the feed is looked at soon.";
                return Ok(ping_answer(false, thanks));
            }
            StatusCode::ACCEPTED => {
                let thanks = format!("Thanks for the ping. {told}");
                return Ok(ping_answer(false, &thanks));
            }
            _ => {}
        }
        if let Some(secs) = text(answer.headers(), &RETRY_AFTER) {
            told += &format!("; try again in {secs} seconds");
        }
        Ok(ping_answer(true, &told))
    }

    /// The feeds of the site that a ping is for: the one that it names, else those below the
    /// address of the blog, else all.
    fn feeds_of(&self, request: &Parts, urls: &[&str]) -> Vec<Arc<RegisteredFeed>> {
        let catalog = self.context.gate.catalog.snapshot();
        let Some(site) = self.context.sites.of(request) else {
            return Vec::new();
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

    /// A call that is no ping goes to the site, which was asked for nothing yet.
    async fn of_site(&self, request: &Parts, body: ServeBody) -> Response {
        let mut parts = request.clone();
        // Its body is on the way already.
        parts.headers.remove(EXPECT);
        answer_of(&self.origin, Request::from_parts(parts, body)).await
    }
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
