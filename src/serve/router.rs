//! The router: from a request to the mount that takes it, before any of its body is read.

use super::{
    body::Response,
    mount::{Mount, MountService},
    rescue::Refusal,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::Request;
use http_body_util::BodyExt as _;
use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};
use tower::{Service, ServiceExt as _};

/// The service at the inside of the stack: hands each request to the first mount that takes it.
#[derive(Clone, Debug)]
pub struct Router(Arc<[Mount]>);

impl Router {
    /// A router over mounts, of which earlier ones go first.
    pub fn new(mounts: Vec<Mount>) -> Self {
        Self(mounts.into())
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
        let service: Option<MountService> = self.0.iter().find_map(|mount| mount.service_for(&parts));
        match service {
            Some(service) => {
                let body = body.map_err(Into::into).boxed_unsync();
                Box::pin(service.oneshot(Request::from_parts(parts, body)))
            }
            None => Box::pin(async move { Ok(Refusal::unknown("there is nothing here").respond(&parts)) }),
        }
    }
}
