//! The tower layers around the router and around our own mounts, outermost first.

use super::{
    body::{self, Body, Response},
    mount::MountService,
    router::Router,
};
use crate::{
    render::{Representation, html, jsonp},
    telemetry::Metrics,
};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use std::{any::Any, convert::Infallible};
use tower::{BoxError, Service, ServiceBuilder, util::BoxCloneSyncService};
use tower_http::{
    catch_panic::CatchPanicLayer,
    classify::{ServerErrorsAsFailures, SharedClassifier},
    cors::{Any as AnyOrigin, CorsLayer},
    trace::{DefaultMakeSpan, DefaultOnResponse, TraceLayer},
};
use tracing::Level;

/// The whole consumer side of the server, for any kind of request body.
pub fn stack<B>(
    router: Router,
    metrics: Metrics,
) -> impl Service<
    Request<B>,
    Response = http::Response<impl http_body::Body<Data = Bytes, Error = BoxError> + Send>,
    Error = Infallible,
    Future: Send,
> + Clone
+ Send
+ 'static
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    ServiceBuilder::new()
        .layer(trace()) // Outermost: its span covers everything below.
        .map_response(move |response| counted(response, &metrics)) // Sees every answer, preflights and apologies too.
        .service(router)
}

/// A mount of our own paths in its layers.
pub(super) fn own<S>(service: S) -> MountService
where
    S: Service<Request<Body>, Response = Response, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    let layers = ServiceBuilder::new()
        .layer(cors()) // Answers preflights itself, and marks refusals too.
        .map_response(|response: http::Response<_>| response.map(BodyExt::boxed_unsync))
        .layer(CatchPanicLayer::custom(apologise)); // One broken request is one 500.
    BoxCloneSyncService::new(layers.service(service))
}

/// Counts an answer by its content type and its status.
fn counted<B>(response: http::Response<B>, metrics: &Metrics) -> http::Response<B> {
    let media = response
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    metrics.request(label(media), response.status().as_u16());
    response
}

/// The label under which answers of a content type are counted.
fn label(content_type: &str) -> &'static str {
    match content_type {
        jsonp::CONTENT_TYPE => "jsonp",
        html::CONTENT_TYPE => "html",
        other => Representation::label_of(other).unwrap_or("other"),
    }
}

/// A span and a line at debug for every request. Refusals are logged where they are decided, so a 503 is no error here.
fn trace()
-> TraceLayer<SharedClassifier<ServerErrorsAsFailures>, DefaultMakeSpan, (), DefaultOnResponse, (), (), ()> {
    TraceLayer::new_for_http()
        .make_span_with(DefaultMakeSpan::new().level(Level::DEBUG))
        .on_request(())
        .on_response(DefaultOnResponse::new().level(Level::DEBUG))
        .on_body_chunk(())
        .on_eos(())
        .on_failure(())
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
