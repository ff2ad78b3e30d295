//! The tower layers around the router, outermost first; the layers of our own paths are in
//! `own_layers`.

use super::router::Router;
use crate::{
    edge::fields::text,
    render::{Representation, event_stream, html, jsonp},
    secret::logged_url,
    serve::answers::answer_memory::AnswerMemory,
    telemetry::Metrics,
};
use bytes::Bytes;
use http::{Request, header};
use std::{convert::Infallible, sync::Arc};
use tower::{BoxError, Service, ServiceBuilder};
use tower_http::{
    classify::{ServerErrorsAsFailures, SharedClassifier},
    trace::{DefaultOnResponse, MakeSpan, TraceLayer},
};
use tracing::{Level, Span, debug_span};

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
    // Shared once: a service is cloned with every request.
    let metrics = Arc::new(metrics);
    ServiceBuilder::new()
        .layer(trace()) // Outermost: its span covers everything below.
        .map_response(move |response| counted(response, &metrics)) // Sees every answer, preflights and apologies too.
        .layer(AnswerMemory::default()) // Most requests are for what somebody has just asked for.
        .service(router)
}

/// Counts an answer by its content type and its status.
fn counted<B>(response: http::Response<B>, metrics: &Metrics) -> http::Response<B> {
    let media = text(response.headers(), &header::CONTENT_TYPE).unwrap_or_default();
    metrics.request(label(media), response.status().as_u16());
    response
}

/// The label under which answers of a content type are counted.
fn label(content_type: &str) -> &'static str {
    match content_type {
        jsonp::CONTENT_TYPE => "jsonp",
        html::CONTENT_TYPE => "html",
        event_stream::CONTENT_TYPE => "events",
        other => Representation::label_of(other).unwrap_or("other"),
    }
}

/// The span of a request, without tokens: neither that of a secret URL nor one in a query.
#[derive(Clone, Copy, Debug)]
struct RequestSpan;

impl<B> MakeSpan<B> for RequestSpan {
    fn make_span(&mut self, request: &Request<B>) -> Span {
        if !tracing::enabled!(Level::DEBUG) {
            return Span::none();
        }
        let uri = logged_url(&request.uri().to_string());
        debug_span!("request", method = %request.method(), uri = %uri, version = ?request.version())
    }
}

/// A span and a line at debug for every request. Refusals are logged where they are decided, so a
/// 503 is no error here.
fn trace() -> TraceLayer<
    SharedClassifier<ServerErrorsAsFailures>,
    RequestSpan,
    (),
    DefaultOnResponse,
    (),
    (),
    (),
> {
    TraceLayer::new_for_http()
        .make_span_with(RequestSpan)
        .on_request(())
        .on_response(DefaultOnResponse::new().level(Level::DEBUG))
        .on_body_chunk(())
        .on_eos(())
        .on_failure(())
}
