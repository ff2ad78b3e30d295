//! The router: from a request to the mount that takes it, before any of its body is read; while the start is under way there
//! are no mounts, and it says so.

use super::{
    accept,
    body::{MountService, Response, ServeBody},
    event_stream,
    mount::Mount,
    own_layers,
    refusal::Refusal,
};
use crate::catalog::RegistrationProgress;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, request::Parts};
use http_body_util::BodyExt as _;
use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};
use tower::{Service, ServiceExt as _};

/// Methods that a path may take of which nothing is known: browsers remember for a day what they are told while the start is under
/// way.
const UNKNOWN_METHODS: &str = "GET, HEAD, POST, OPTIONS";

/// The service at the inside of the stack: hands each request to the first mount that takes it.
#[derive(Clone, Debug)]
pub struct Router {
    mounts: Arc<OnceLock<Vec<Mount>>>,
    start: Arc<RegistrationProgress>,
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
        Self { mounts: Arc::default(), start }
    }

    /// Hands requests to these mounts from now on; done once.
    pub fn open(&self, mounts: Vec<Mount>) {
        // A second call would be a mistake of the caller, and changes nothing.
        let _ = self.mounts.set(mounts);
    }

    fn service_for(&self, request: &Parts) -> MountService {
        let mounts = self.mounts.get().map_or(&[][..], Vec::as_slice);
        mounts.iter().find_map(|mount| mount.service_for(request)).unwrap_or_else(|| self.refusing())
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
        let (parts, body) = request.into_parts();
        let service = self.service_for(&parts);
        let body = body.map_err(Into::into).boxed_unsync();
        Box::pin(service.oneshot(Request::from_parts(parts, body)))
    }
}
