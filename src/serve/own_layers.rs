//! The tower layers around each mount of our own paths, outermost first; not those around all mounts.

use super::body::{self, Response, ServeBody};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use std::{any::Any, convert::Infallible};
use tower::{Service, ServiceBuilder, util::BoxCloneSyncService};
use tower_http::{
    catch_panic::CatchPanicLayer,
    cors::{Any as AnyOrigin, CorsLayer},
};

/// A mount of our own paths in its layers.
pub(super) fn own<S>(service: S) -> BoxCloneSyncService<Request<ServeBody>, Response, Infallible>
where
    S: Service<Request<ServeBody>, Response = Response, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    let layers = ServiceBuilder::new()
        .layer(cors()) // Answers preflights itself, and marks refusals too.
        .map_response(|response: http::Response<_>| guarded(response.map(BodyExt::boxed_unsync)))
        .layer(CatchPanicLayer::custom(apologise)); // One broken request is one 500.
    BoxCloneSyncService::new(layers.service(service))
}

/// Public feeds are for every page of the web (D-26).
fn cors() -> CorsLayer {
    CorsLayer::new()
        .allow_origin(AnyOrigin)
        .allow_methods([Method::GET, Method::HEAD, Method::POST])
        .allow_headers(AnyOrigin)
        .expose_headers([
            header::ETAG,
            header::LAST_MODIFIED,
            header::LINK,
            header::RETRY_AFTER,
            HeaderName::from_static("smart-feed-cursor"),
        ])
}

/// Permissions of answers that hold what publishers wrote: a browser that is led to them shows them and runs nothing.
const CONTENT_SECURITY_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
);

/// An answer that a browser takes for what its media type says, and runs nothing of.
fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.entry(header::X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(CONTENT_SECURITY_POLICY);
    response
}

fn apologise(_: Box<dyn Any + Send + 'static>) -> Response {
    tracing::error!("A request handler panicked; this is a bug");
    let mut response =
        Response::new(body::whole("the server has a problem of its own; its operator can see it\n"));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
