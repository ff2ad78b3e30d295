//! From a path to what answers it; not the answers.

use super::{
    discovery,
    long_poll::Waiters,
    pull,
    rescue::{Refusal, Response},
};
use crate::{
    catalog::Catalog, clock::Clock, feed::record::FeedNo, readers::Readers, render::Endpoint, store::Store,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, Request, request::Parts};
use http_body::Body;
use http_body_util::{BodyExt as _, Full, Limited};
use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio_util::sync::CancellationToken;
use tower::{Service, ServiceExt as _, util::BoxCloneSyncService};

/// What answers a request to the hub, its body read.
pub type HubService = BoxCloneSyncService<Request<Bytes>, http::Response<Bytes>, Infallible>;

/// The largest request body, bytes: hub requests are small forms.
const REQUEST_BYTES_MAX: usize = 64 << 10;
/// Seconds in which it must be here.
const REQUEST_SECS: u64 = 30;
/// The longest path with its query, bytes: room for a position by the longest id, and for a bound on what readers that
/// wait keep in memory.
const URI_BYTES_MAX: usize = 8 << 10;

/// Everything that answers.
pub struct Routes {
    /// Pages.
    pub readers: Arc<Readers>,
    /// The store, for lists.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The feeds that are served.
    pub catalog: Catalog,
    /// The hub.
    pub hub: HubService,
    /// Room for held requests.
    pub waiters: Waiters,
    /// Ends held requests.
    pub stop: CancellationToken,
}

impl Routes {
    /// The number of a feed that is served.
    pub(super) fn feed(&self, name: &str) -> Result<FeedNo, Refusal> {
        let catalog = self.catalog.snapshot();
        match catalog.feed(name) {
            Some(feed) => Ok(feed.no),
            None if catalog.withdrawn(name).is_some() => Err(Refusal::gone()),
            None => Err(self.unknown("there is no such feed")),
        }
    }

    /// 404, with the way to what there is.
    fn unknown(&self, what: &str) -> Refusal {
        let list = self.readers.site().list();
        Refusal::unknown(format!("{what}; {list} lists the feeds there are"))
    }

    async fn answer(&self, request: &Parts, body: Option<Bytes>) -> Result<Response, Refusal> {
        let Some(endpoint) = self.readers.site().endpoint(request.uri.path()) else {
            return Err(self.unknown("there is nothing here"));
        };
        if matches!(endpoint, Endpoint::Hub | Endpoint::HubOf(_)) {
            return Ok(self.ask_hub(request, body.unwrap_or_default()).await);
        }
        if !matches!(request.method, Method::GET | Method::HEAD) {
            return Err(Refusal::method("GET, HEAD, OPTIONS"));
        }
        match endpoint {
            Endpoint::Hub | Endpoint::HubOf(_) | Endpoint::List => discovery::list(self, request).await,
            Endpoint::About(name) => discovery::about(self, request, &name).await,
            Endpoint::Negotiated(name) => pull::smart(self, request, &name, None).await,
            Endpoint::Page(name, form) if form.is_classic() => {
                pull::classic(self, request, &name, form).await
            }
            Endpoint::Page(name, form) => pull::smart(self, request, &name, Some(form)).await,
        }
    }

    async fn ask_hub(&self, request: &Parts, body: Bytes) -> Response {
        let asked = Request::from_parts(request.clone(), body);
        match self.hub.clone().oneshot(asked).await {
            Ok(response) => response.map(Full::from),
            Err(never) => match never {},
        }
    }
}

/// The service at the inside of the stack.
#[derive(Clone)]
pub struct Router(Arc<Routes>);

impl Router {
    /// A router.
    pub fn new(routes: Arc<Routes>) -> Self {
        Self(routes)
    }
}

impl<B> Service<Request<B>> for Router
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let routes = self.0.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let answer = match check_length(&parts) {
                Ok(()) => match read_body(&parts, body).await {
                    Ok(body) => routes.answer(&parts, body).await,
                    Err(refusal) => Err(refusal),
                },
                Err(refusal) => Err(refusal),
            };
            Ok(answer.unwrap_or_else(|refusal| refusal.respond(&parts)))
        })
    }
}

fn check_length(request: &Parts) -> Result<(), Refusal> {
    let length = request.uri.path_and_query().map_or(0, |target| target.as_str().len());
    if length > URI_BYTES_MAX { Err(Refusal::long(URI_BYTES_MAX)) } else { Ok(()) }
}

/// The body of a POST; what comes with other methods is not looked at.
async fn read_body<B>(request: &Parts, body: B) -> Result<Option<Bytes>, Refusal>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if request.method != Method::POST {
        return Ok(None);
    }
    let whole = Limited::new(body, REQUEST_BYTES_MAX).collect();
    let in_time = tokio::time::timeout(Duration::from_secs(REQUEST_SECS), whole).await;
    match in_time.map_err(|_| Refusal::slow(REQUEST_SECS))? {
        Ok(whole) => Ok(Some(whole.to_bytes())),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(Refusal::too_large(REQUEST_BYTES_MAX))
        }
        Err(_) => Err(Refusal::bad("the request body broke off")),
    }
}
