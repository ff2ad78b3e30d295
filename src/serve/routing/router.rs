//! The router: from a request to the mount that takes it, before any of its body is read; while the
//! start is under way there are no mounts: requests wait for them a little, and then it says so.

use super::{mount::Mount, own_layers};
use crate::{
    catalog::RegistrationProgress,
    edge::body::{MountService, Response, ServeBody, Streamed},
    layers::OwnMark,
    serve::{
        answers::{
            accept,
            refusal::{ListUrl, Refusal},
        },
        feeds::event_stream,
    },
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, request::Parts};
use http_body_util::BodyExt as _;
use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{sync::SetOnce, time::timeout};
use tower::{Service, ServiceExt as _};

/// Methods that a path may take of which nothing is known: browsers remember for a day what they
/// are told while the start is under way.
const UNKNOWN_METHODS: &str = "GET, HEAD, POST, OPTIONS";

/// Time for which a request waits for the end of the start. The start of a few feeds takes less, so
/// that a reader of a site notices no restart, and socket activation refuses nobody.
const START_WAIT: Duration = Duration::from_secs(1);

/// The service at the inside of the stack: hands each request to the first mount that takes it.
#[derive(Clone, Debug)]
pub struct Router {
    mounts: Arc<SetOnce<Vec<Mount>>>,
    start: Arc<RegistrationProgress>,
    /// The mark of our own polls, which are refused here.
    mark: OwnMark,
    /// The list of feeds, to which pages of errors lead; `None` where there is none.
    list: Option<ListUrl>,
}

impl Router {
    /// A router over mounts, of which earlier ones go first.
    pub fn new(mounts: Vec<Mount>) -> Self {
        let router = Self::starting(Arc::default());
        router.open(mounts);
        router
    }

    /// A router that answers that the start is under way, until it is opened.
    pub fn starting(start: Arc<RegistrationProgress>) -> Self {
        Self {
            mounts: Arc::default(),
            start,
            mark: OwnMark::random(),
            list: None,
        }
    }

    /// The same, which knows our own polls by this mark.
    #[must_use]
    pub fn knowing(self, mark: OwnMark) -> Self {
        Self { mark, ..self }
    }

    /// The same, whose pages of errors lead to this list of feeds.
    #[must_use]
    pub fn listing(self, list: &str) -> Self {
        let list = Some(ListUrl(list.into()));
        Self { list, ..self }
    }

    /// Hands requests to these mounts from now on; done once.
    pub fn open(&self, mounts: Vec<Mount>) {
        // A second call would be a mistake of the caller, and changes nothing.
        let _ = self.mounts.set(mounts);
    }

    fn service_for(&self, request: &Parts) -> MountService {
        let mounts = self.mounts.get().map_or(&[][..], Vec::as_slice);
        mounts
            .iter()
            .find_map(|mount| mount.service_for(request))
            .unwrap_or_else(|| self.refusing())
    }

    /// The service for a request that no mount takes. Pages of other origins may read why, too.
    fn refusing(&self) -> MountService {
        let router = self.clone();
        let service = tower::service_fn(move |request: Request<ServeBody>| {
            std::future::ready(Ok::<_, Infallible>(router.refuse(&request.into_parts().0)))
        });
        own_layers::own(service, UNKNOWN_METHODS)
    }

    fn refuse(&self, request: &Parts) -> Response {
        match self.mounts.get() {
            Some(_) => Refusal::unknown("there is nothing here").respond(request),
            None if accept::wants_events(request) => event_stream::come_again(),
            None => Refusal::starting(&self.start).respond(request),
        }
    }
}

impl<B> Service<Request<B>> for Router
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<tower::BoxError>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (mut parts, body) = request.into_parts();
        if let Some(list) = &self.list {
            parts.extensions.insert(list.clone());
        }
        if self.mark.is_on(&parts.headers) {
            let mut answer = Refusal::leads_back().respond(&parts);
            self.mark.put_on(answer.headers_mut());
            return Box::pin(std::future::ready(Ok(answer)));
        }
        let body: ServeBody = body.map_err(Into::into).boxed_unsync();
        if self.mounts.get().is_some() {
            let is_delivery = self.mark.is_on_delivery(&parts.headers);
            let service = self.service_for(&parts);
            let answer: Self::Future = Box::pin(service.oneshot(Request::from_parts(parts, body)));
            if !is_delivery {
                return answer;
            }
            let mark = self.mark.clone();
            return Box::pin(async move {
                let mut answer = answer.await?;
                // What the old server answers is its own.
                if answer.extensions().get::<Streamed>().is_none() {
                    mark.put_on(answer.headers_mut());
                }
                Ok(answer)
            });
        }
        let router = self.clone();
        Box::pin(async move {
            let _ = timeout(START_WAIT, router.mounts.wait()).await;
            let service = router.service_for(&parts);
            let answer: Self::Future = Box::pin(service.oneshot(Request::from_parts(parts, body)));
            answer.await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;
    use http_body_util::Empty;

    #[tokio::test]
    async fn our_own_polls_are_refused_and_our_own_deliveries_are_told_who_answers() {
        let mark = OwnMark::random();
        let router = Router::new(Vec::new()).knowing(mark.clone());
        let own = |end: &str| {
            let mut headers = http::HeaderMap::new();
            mark.put_on(&mut headers);
            let (name, value) = headers.into_iter().next().unwrap();
            (name.unwrap(), format!("{}{end}", value.to_str().unwrap()))
        };
        let ask = async |header: Option<(http::HeaderName, String)>| {
            let mut request = Request::builder().uri("/");
            if let Some((name, value)) = header {
                request = request.header(name, value);
            }
            let request = request.body(Empty::<Bytes>::new()).unwrap();
            let answer = router.clone().oneshot(request).await.unwrap();
            (answer.status().as_u16(), mark.is_on(answer.headers()))
        };
        assert_eq!(ask(None).await, (404, false));
        assert_eq!(ask(Some(own(""))).await, (508, true));
        assert_eq!(ask(Some(own("; delivery"))).await, (404, true));
        assert_eq!(ask(Some(own("0"))).await, (404, false), "another mark");
    }

    #[tokio::test(start_paused = true)]
    async fn requests_wait_for_the_end_of_the_start_and_are_then_told_of_it() {
        let ask = |router: &Router| {
            let request = Request::builder()
                .uri("/")
                .body(Empty::<Bytes>::new())
                .unwrap();
            router.clone().oneshot(request)
        };
        let router = Router::starting(Arc::default());
        let (answer, ()) = tokio::join!(ask(&router), async {
            tokio::time::sleep(START_WAIT / 2).await;
            router.open(Vec::new());
        });
        assert_eq!(
            answer.unwrap().status(),
            StatusCode::NOT_FOUND,
            "it is handed on"
        );
        let answer = ask(&Router::starting(Arc::default())).await.unwrap();
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
