//! Follows redirects, so that each hop passes every layer further in again. Does not remember them:
//! whether a feed has moved for good is decided over days by whoever keeps its URL.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, LOCATION};
use http::{HeaderName, Method, StatusCode};
use tower::{Layer, Service, ServiceExt, layer::layer_fn};
use url::Url;

use super::address_guard::url_of;
use super::error::BadRedirect;
use super::{Exchange, FetchError, Reply, Request, take_ready};

/// Follows 301, 302, 303, 307 and 308; from http to https but never back, and never to where it has
/// been.
#[derive(Debug, Clone)]
pub struct Redirect<S> {
    inner: S,
    redirects_max: usize,
}

/// Response extension: where the answer came from in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landing {
    /// The URL that answered.
    pub url: Url,
    /// The end of the leading run of 301 and 308, if the first redirect was one: the address that
    /// the server wants to be known by. A temporary redirect ends the run, whatever comes after.
    pub moved_to: Option<Url>,
    /// Number of redirects that were followed.
    pub redirects: usize,
}

/// Request extension: redirects are followed only within the host that was asked for, with or
/// without `www.`, by its usual ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HomeOnly;

/// Request extension: the credentials of this request are for its whole origin, and not for the
/// folder of its URL alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForOrigin;

/// Request extension: how many redirects a caller has left for this request, where that is less
/// than the layer follows. It tells the caller afterwards how many were followed, also if there was
/// no answer in the end.
#[derive(Debug, Clone)]
pub struct RedirectAllowance {
    left: Arc<AtomicU32>,
    granted: u32,
}

impl RedirectAllowance {
    /// So many redirects.
    pub fn of(redirects: u32) -> Self {
        Self {
            left: Arc::new(AtomicU32::new(redirects)),
            granted: redirects,
        }
    }

    /// Number of redirects that were followed.
    pub fn followed(&self) -> u32 {
        self.granted - self.left.load(Ordering::Relaxed)
    }

    /// Takes one, if any is left.
    fn take(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok()
    }
}

/// Request extension: the name by which readers know a site that is asked at its origin, since we
/// stand before it. A redirect to that name means the origin, too: followed by the name, it would
/// lead back to us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownAs {
    origin: Url,
    public: Url,
}

/// Headers by which the origin of a site is told under which name it is asked; for nobody else.
pub const NAME_HEADERS: [HeaderName; 3] = [
    HOST,
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
];

impl KnownAs {
    /// The site at the origin of one URL, which readers know by the host of the other.
    pub fn new(origin: &Url, public: &Url) -> Self {
        Self {
            origin: origin.clone(),
            public: public.clone(),
        }
    }

    /// The same resource at the origin, for a URL under the name that readers know, by http or
    /// https.
    fn at_origin(&self, url: Url) -> Url {
        if url.host() != self.public.host() || url.port() != self.public.port() {
            return url;
        }
        let mut there = self.origin.clone();
        // Both fail only for URLs without a host.
        let _ = there.set_username("");
        let _ = there.set_password(None);
        there.set_path(url.path());
        there.set_query(url.query());
        there
    }
}

impl Landing {
    /// True when there were redirects and each was permanent.
    pub fn is_permanent(&self) -> bool {
        self.moved_to.as_ref() == Some(&self.url)
    }
}

impl<S> Redirect<S> {
    /// Follows at most `redirects_max` redirects; one more is an error.
    pub fn layer(redirects_max: usize) -> impl Layer<S, Service = Self> {
        layer_fn(move |inner| Self {
            inner,
            redirects_max,
        })
    }
}

impl<S: Exchange> Service<Request> for Redirect<S> {
    type Response = Reply;
    type Error = FetchError;
    type Future = BoxFuture<'static, Result<Reply, FetchError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FetchError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let redirects_max = self.redirects_max;
        let mut inner = take_ready(&mut self.inner);
        Box::pin(async move {
            let mut trail = Trail::start(&request)?;
            let stays_home = request.extensions().get::<HomeOnly>().is_some();
            let allowance = request.extensions().get::<RedirectAllowance>().cloned();
            let mut next = request;
            loop {
                let sent = next.clone();
                let mut reply = inner.call(next).await?;
                if !is_redirect(reply.status()) {
                    reply.extensions_mut().insert(trail.landing());
                    return Ok(reply);
                }
                if trail.redirects() == redirects_max {
                    return Err(FetchError::TooManyRedirects { redirects_max });
                }
                trail.follow(&reply)?;
                if stays_home && !trail.is_home() {
                    return Err(BadRedirect::Elsewhere.into());
                }
                next = onward(sent, reply.status(), &trail)?;
                if allowance.as_ref().is_some_and(|allowed| !allowed.take()) {
                    let redirects_max = trail.redirects() - 1;
                    return Err(FetchError::TooManyRedirects { redirects_max });
                }
                // The body of a redirect is dropped unread: it may be of any size and says nothing.
                drop(reply);
                inner.ready().await?;
            }
        })
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn is_permanent(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 308)
}

/// The URLs of one call, in order; the last is where it stands. Holds at most `redirects_max` + 1
/// of them.
struct Trail {
    urls: Vec<Url>,
    /// Number of the leading redirects that were permanent.
    permanent: usize,
    known_as: Option<KnownAs>,
}

impl Trail {
    fn start(request: &Request) -> Result<Self, FetchError> {
        let known_as = request.extensions().get().cloned();
        Ok(Self {
            urls: vec![url_of(request.uri())?],
            permanent: 0,
            known_as,
        })
    }

    fn here(&self) -> &Url {
        self.urls
            .last()
            .expect("a trail starts with one URL and only grows")
    }

    fn redirects(&self) -> usize {
        self.urls.len() - 1
    }

    fn follow(&mut self, reply: &Reply) -> Result<(), BadRedirect> {
        let target = target(self.here(), reply, self.known_as.as_ref())?;
        if self.urls.contains(&target) {
            return Err(BadRedirect::Loop);
        }
        if is_permanent(reply.status()) && self.permanent == self.redirects() {
            self.permanent += 1;
        }
        self.urls.push(target);
        Ok(())
    }

    fn crossed_origins(&self) -> bool {
        matches!(&self.urls[..], [.., from, to] if from.origin() != to.origin())
    }

    /// True while it has not left the host where it began; a change of scheme, or of `www.`, is
    /// none.
    fn is_home(&self) -> bool {
        let (first, here) = (&self.urls[0], self.here());
        if first.origin() == here.origin() {
            return true;
        }
        let have_usual_ports = first.port().is_none() && here.port().is_none();
        let host = |url: &Url| {
            let host = url.host_str()?;
            Some(host.strip_prefix("www.").unwrap_or(host).to_owned())
        };
        have_usual_ports && host(first) == host(here)
    }

    fn landing(self) -> Landing {
        let moved_to = (self.permanent > 0).then(|| self.urls[self.permanent].clone());
        Landing {
            url: self.here().clone(),
            moved_to,
            redirects: self.redirects(),
        }
    }
}

fn target(from: &Url, reply: &Reply, known_as: Option<&KnownAs>) -> Result<Url, BadRedirect> {
    let location = reply
        .headers()
        .get(LOCATION)
        .ok_or(BadRedirect::NoLocation)?;
    // Raw UTF-8 in Location is common and meant as it looks.
    let location = std::str::from_utf8(location.as_bytes()).map_err(|_| BadRedirect::Unreadable)?;
    let mut target = from
        .join(location.trim())
        .map_err(|_| BadRedirect::Unreadable)?;
    target.set_fragment(None);
    if let Some(known_as) = known_as {
        target = known_as.at_origin(target);
    }
    match (from.scheme(), target.scheme()) {
        ("https", "http") => Err(BadRedirect::Downgrade),
        (_, "http" | "https") => Ok(target),
        _ => Err(BadRedirect::Unreadable),
    }
}

// Decides: Where are credentials sent?
/// True for a URL of the same origin in the folder of the first, or below it: the space that
/// credentials are for (RFC 7617 section 2.2).
pub fn is_below(first: &Url, url: &Url) -> bool {
    let folder = first
        .path()
        .rfind('/')
        .map_or("/", |end| &first.path()[..=end]);
    first.origin() == url.origin() && url.path().starts_with(folder)
}

// Decides: Is a redirect followed?
/// The request of the next hop (RFC 9110 section 15.4): what it carried, less what was meant for
/// one origin.
fn onward(mut request: Request, status: StatusCode, trail: &Trail) -> Result<Request, BadRedirect> {
    *request.uri_mut() = trail
        .here()
        .as_str()
        .parse()
        .map_err(|_| BadRedirect::Unreadable)?;
    let is_for_origin = request.extensions().get::<ForOrigin>().is_some();
    let is_within = is_for_origin || is_below(&trail.urls[0], trail.here());
    if trail.crossed_origins() || !is_within {
        let headers = request.headers_mut();
        headers.remove(AUTHORIZATION);
        headers.remove(COOKIE);
        let sensitive = headers.iter().filter(|(_, value)| value.is_sensitive());
        let sensitive: Vec<HeaderName> = sensitive.map(|(name, _)| name.clone()).collect();
        for name in sensitive {
            headers.remove(name);
        }
    }
    if trail.crossed_origins() {
        for name in NAME_HEADERS {
            request.headers_mut().remove(name);
        }
    }
    let becomes_get = match status.as_u16() {
        303 => *request.method() != Method::HEAD,
        301 | 302 => *request.method() == Method::POST,
        _ => false,
    };
    if becomes_get {
        *request.method_mut() = Method::GET;
        *request.body_mut() = bytes::Bytes::new();
        request.headers_mut().remove(CONTENT_TYPE);
        request.headers_mut().remove(CONTENT_LENGTH);
    }
    Ok(request)
}

#[cfg(test)]
mod tests;
