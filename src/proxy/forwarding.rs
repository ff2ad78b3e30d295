//! One request through the proxy: to the origin of its site, and its answer back.

use super::{
    fault::ProxyFault,
    headers::{self, ProxyPeer},
    idle_body::{BodyProgress, IdleBody},
    origin::{OriginAnswer, innermost},
    permit_body::PermitBody,
    site_origins::SiteOrigins,
    tunnel,
    watched::BusyConnection,
};
use crate::{
    catalog::{ProxiedSite, SiteOfRequest},
    edge::body::{ServeBody, whole},
    telemetry::Metrics,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{
    HeaderValue, Method, Request, Response, StatusCode, Uri, Version, header::CONNECTION,
    uri::PathAndQuery,
};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use std::{
    convert::Infallible,
    io,
    sync::Arc,
    task::{Context, Poll},
};
use tokio_util::sync::CancellationToken;
use tower::Service;

/// The reverse proxy, as a service. A request carries [`SiteOfRequest`] and may carry [`ProxyPeer`]; without a
/// site it is not sent on.
#[derive(Clone)]
pub struct Proxy(Arc<ProxyParts>);

struct ProxyParts {
    origins: SiteOrigins,
    stop: CancellationToken,
}

impl Proxy {
    /// A proxy before whatever sites its requests are for. `stop` ends what was upgraded.
    pub fn new(metrics: &Metrics, stop: CancellationToken) -> io::Result<Self> {
        let origins = SiteOrigins::new(metrics)?;
        Ok(Self(Arc::new(ProxyParts { origins, stop })))
    }

    async fn forward(
        &self,
        mut request: Request<ServeBody>,
    ) -> Result<Response<ServeBody>, ProxyFault> {
        let asks_upgrade = headers::upgrade(request.headers(), request.version()).is_some();
        let reader_side = asks_upgrade.then(|| hyper::upgrade::on(&mut request));
        let (mut parts, body) = request.into_parts();
        let site = parts.extensions.remove::<SiteOfRequest>();
        let site = site.and_then(|asked| {
            let origin = self.0.origins.of(&asked)?;
            Some((asked.site()?.clone(), origin))
        });
        let Some((site, origin)) = site else {
            return Err(ProxyFault::NotPassedOn(
                "there is no site of this host here",
            ));
        };
        if parts.method == Method::CONNECT {
            return Err(ProxyFault::NotPassedOn(
                "this is a proxy before one site; it makes no tunnels",
            ));
        }
        if headers::goes_round(&parts.headers) {
            return Err(ProxyFault::Loop);
        }
        headers::take_a_step(&mut parts)?;
        let peer = parts
            .extensions
            .get::<ProxyPeer>()
            .copied()
            .unwrap_or_default();
        let place = origin.place(peer)?;
        headers::towards_origin(&mut parts, peer);
        parts.uri = target(&site, &parts.uri);
        let has_own_stream = parts.version == Version::HTTP_2;
        parts.version = Version::HTTP_11;
        let OriginAnswer {
            response: mut answer,
            is_early,
        } = origin.ask(Request::from_parts(parts, body), &place).await?;
        place.progress().answered();
        let upgrades = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
        if upgrades {
            let Some(reader_side) =
                reader_side.filter(|_| headers::is_web_socket(answer.headers()))
            else {
                return Err(ProxyFault::Upgrade);
            };
            let origin_side = hyper::upgrade::on(&mut answer);
            let (idle_max, stop) = (origin.idle_max, self.0.stop.clone());
            tokio::spawn(async move {
                let progress = place.progress();
                tokio::select! {
                    () = tunnel::carry(reader_side, origin_side, idle_max, &progress, stop) => {}
                    () = place.taken_away() => tracing::debug!("An upgraded connection made room for others"),
                }
            });
            let (mut parts, _) = answer.into_parts();
            headers::towards_reader(&mut parts.headers, parts.version, parts.status);
            return Ok(Response::from_parts(parts, whole(Bytes::new())));
        }
        let (mut parts, body) = answer.into_parts();
        // An answer without a body may say how long it would be.
        if !body.is_end_stream()
            && let Some(fault) = headers::framing_fault(&parts.headers)
        {
            return Err(ProxyFault::Framing(fault));
        }
        headers::towards_reader(&mut parts.headers, parts.version, parts.status);
        if is_early && !has_own_stream {
            // What is left of the request's body stands before the next request (RFC 9112 section
            // 9.3).
            parts
                .headers
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        parts.version = Version::HTTP_11;
        let connection = BusyConnection::of(&mut parts.extensions);
        let progress = BodyProgress::of(&body);
        let mut body = IdleBody::new(body, origin.idle_max, progress);
        // A body that breaks off at once would take its head with it, and the reader would not hear
        // of anything.
        if let Err(fault) = body.begin().await {
            return Err(ProxyFault::Broken(innermost(&*fault).to_string()));
        }
        if place.is_taken_away() {
            return Err(place.loss());
        }
        // The body holds the place and the connection until it ends.
        Ok(Response::from_parts(
            parts,
            PermitBody::new(body, connection, place).boxed_unsync(),
        ))
    }
}

impl Service<Request<ServeBody>> for Proxy {
    type Response = Response<ServeBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<ServeBody>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ServeBody>) -> Self::Future {
        let proxy = self.clone();
        Box::pin(async move {
            Ok(proxy.forward(request).await.unwrap_or_else(|fault| {
                tracing::debug!("A request was not passed on: {fault}");
                fault.answer()
            }))
        })
    }
}

/// The address of a request at the origin: path and query stay byte for byte.
fn target(site: &ProxiedSite, asked: &Uri) -> Uri {
    let origin = &site.settings.origin;
    let authority = &origin[url::Position::BeforeHost..url::Position::AfterPort];
    let path = asked
        .path_and_query()
        .cloned()
        .unwrap_or(PathAndQuery::from_static("/"));
    let uri = Uri::builder()
        .scheme(origin.scheme())
        .authority(authority)
        .path_and_query(path);
    uri.build()
        .expect("the parts of a URL and of a request make a URL")
}
