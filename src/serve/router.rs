//! From a path to what answers it; not the answers.

use super::{
    accept::Smart,
    discovery,
    long_poll::Waiters,
    pull,
    rescue::{Refusal, Response},
};
use crate::{
    clock::Clock,
    feed::{record::FeedNo, view::Format},
    readers::Readers,
    store::Store,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, Request, request::Parts};
use http_body::Body;
use http_body_util::{BodyExt as _, Full, Limited};
use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};
use tokio_util::sync::CancellationToken;
use tower::{Service, ServiceExt as _, util::BoxCloneSyncService};

/// What answers a request to the hub, its body read.
pub type HubService = BoxCloneSyncService<Request<Bytes>, http::Response<Bytes>, Infallible>;

/// The largest request body, bytes: hub requests are small forms.
const REQUEST_BYTES_MAX: usize = 64 << 10;

/// Everything that answers.
pub struct Routes {
    /// Pages.
    pub readers: Arc<Readers>,
    /// The store, for lists.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The feeds on offer, by name.
    pub feeds: BTreeMap<String, Offered>,
    /// The hub.
    pub hub: HubService,
    /// Room for held requests.
    pub waiters: Waiters,
    /// Path below which our own paths live, without a slash at the end.
    pub prefix: String,
    /// Ends held requests.
    pub stop: CancellationToken,
}

/// A feed on offer.
#[derive(Clone, Debug)]
pub struct Offered {
    /// Its number.
    pub no: FeedNo,
    /// The upstream's URL, without credentials.
    pub origin: String,
}

impl Routes {
    /// The number of a feed on offer.
    pub(super) fn feed(&self, name: &str) -> Result<FeedNo, Refusal> {
        let offered = self.feeds.get(name).map(|offered| offered.no);
        offered.ok_or_else(|| Refusal::unknown("there is no such feed; /feeds lists those there are"))
    }

    async fn answer(&self, request: &Parts, body: Option<Bytes>) -> Result<Response, Refusal> {
        let path = request.uri.path().strip_prefix(self.prefix.as_str());
        let steps: Vec<&str> = match path {
            Some(path) if path.is_empty() || path.starts_with('/') => path.split('/').skip(1).collect(),
            _ => return Err(nothing_here()),
        };
        match steps[..] {
            ["hub"] | ["hub", ""] | ["feeds", _, "hub"] | ["feeds", _, "hub", ""] => {
                return Ok(self.ask_hub(request, body.unwrap_or_default()).await);
            }
            _ if !matches!(request.method, Method::GET | Method::HEAD) => {
                return Err(Refusal::method("GET, HEAD, OPTIONS"));
            }
            _ => {}
        }
        match steps[..] {
            [] | [""] | ["feeds"] | ["feeds", ""] => discovery::list(self, request).await,
            ["feeds", file] => match file.rsplit_once('.') {
                None => pull::smart(self, request, file, None).await,
                Some((name, "atom")) => pull::smart(self, request, name, Some(Smart::Atom)).await,
                Some((name, "json")) => pull::smart(self, request, name, Some(Smart::Json)).await,
                Some(_) => Err(nothing_here()),
            },
            ["feeds", name, "about"] => discovery::about(self, request, name).await,
            ["feeds", name, "classic.atom"] => pull::classic(self, request, name, Format::ClassicAtom).await,
            ["feeds", name, "classic.rss"] => pull::classic(self, request, name, Format::ClassicRss).await,
            _ => Err(nothing_here()),
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

fn nothing_here() -> Refusal {
    Refusal::unknown("there is nothing here; /feeds lists the feeds there are")
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
            let answer = match read_body(&parts, body).await {
                Ok(body) => routes.answer(&parts, body).await,
                Err(refusal) => Err(refusal),
            };
            Ok(answer.unwrap_or_else(|refusal| refusal.respond(&parts.headers)))
        })
    }
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
    match Limited::new(body, REQUEST_BYTES_MAX).collect().await {
        Ok(whole) => Ok(Some(whole.to_bytes())),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(Refusal::too_large(REQUEST_BYTES_MAX))
        }
        Err(_) => Err(Refusal::bad("the request body broke off")),
    }
}
