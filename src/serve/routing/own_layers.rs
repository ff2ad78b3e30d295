//! The tower layers around each mount of our own paths, outermost first; not those around all
//! mounts.

use crate::{
    edge::body::{self, MountService, Response, ServeBody},
    feed::{lineage::GENERATION, page::DEGRADED},
};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use std::{any::Any, convert::Infallible, time::Duration};
use tower::{Service, ServiceBuilder, ServiceExt as _, util::BoxCloneSyncService};
use tower_http::{
    catch_panic::CatchPanicLayer,
    cors::{Any as AnyOrigin, CorsLayer},
};

/// A mount of our own paths in its layers. `methods` are those that it takes, as in `Allow`:
/// scripts of other pages learn the same.
pub(crate) fn own<S>(service: S, methods: &'static str) -> MountService
where
    S: Service<Request<ServeBody>, Response = Response, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    let layers = ServiceBuilder::new()
        .layer(cors(methods)) // Answers preflights itself, and marks refusals too.
        .map_response(|response: http::Response<_>| guarded(response.map(BodyExt::boxed_unsync)))
        .layer(CatchPanicLayer::custom(apologise)); // One broken request is one 500.
    BoxCloneSyncService::new(layers.service(service))
}

/// The same service for OPTIONS: its answers name the methods that it takes.
pub(super) fn with_methods(service: &MountService, methods: &'static str) -> MountService {
    let service = service.clone().map_response(move |mut answer: Response| {
        let methods = HeaderValue::from_static(methods);
        answer.headers_mut().insert(header::ALLOW, methods);
        answer
    });
    BoxCloneSyncService::new(service)
}

/// Seconds for which a browser need not ask again what it may ask. Browsers have limits of their
/// own.
const PREFLIGHT_SECS: u64 = 86_400;

/// Public feeds are for every page of the web (D-26). Credentials that a browser has of its own are
/// never sent: whoever reads a private feed from a page gives it a token, and its script says so.
fn cors(methods: &'static str) -> CorsLayer {
    let methods = methods
        .split(", ")
        .filter_map(|method| method.parse::<Method>().ok());
    CorsLayer::new()
        .allow_origin(AnyOrigin)
        .allow_methods(methods.collect::<Vec<_>>())
        // The star stands for every header but this one (Fetch, section 4.9).
        .allow_headers([HeaderName::from_static("*"), header::AUTHORIZATION])
        .max_age(Duration::from_secs(PREFLIGHT_SECS))
        .expose_headers([
            header::ETAG,
            header::LAST_MODIFIED,
            header::LINK,
            header::RETRY_AFTER,
            header::ALLOW,
            header::DATE,
            header::WWW_AUTHENTICATE,
            HeaderName::from_static("im"),
            HeaderName::from_static("delta-base"),
            HeaderName::from_static(DEGRADED),
            HeaderName::from_static(GENERATION),
            HeaderName::from_static("smart-feed-last-cursor"),
        ])
}

/// Permissions of answers that hold what publishers wrote: a browser that is led to them shows them
/// and runs nothing.
pub(crate) const CONTENT_SECURITY_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
);

// Decides: What may a browser run of an answer?
/// An answer that a browser takes for what its media type says, and runs nothing of. A copy that is
/// still good keeps the permissions that it came with: those of a 304 would take their place (RFC
/// 9111 section 3.2).
pub(crate) fn guarded(mut response: Response) -> Response {
    let is_of_copy = response.status() == StatusCode::NOT_MODIFIED;
    let headers = response.headers_mut();
    headers
        .entry(header::X_CONTENT_TYPE_OPTIONS)
        .or_insert(HeaderValue::from_static("nosniff"));
    if !is_of_copy {
        headers
            .entry(header::CONTENT_SECURITY_POLICY)
            .or_insert(CONTENT_SECURITY_POLICY);
    }
    response
}

fn apologise(_: Box<dyn Any + Send + 'static>) -> Response {
    tracing::error!("A request handler panicked; this is a bug");
    body::plain(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the server has a problem of its own; its operator can see it\n",
    )
}
