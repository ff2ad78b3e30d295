//! The origin of a site: its connections, and one request with its limits; not what headers the
//! request has.

use super::{
    continued::{INTERIM_MAX, Interim},
    fault::ProxyFault,
    headers::ProxyPeer,
    idle_body::{BodyProgress, IdleBody},
    site_permits::{SitePermit, SitePermits},
    watched::{LATE_AFTER, OpenConnections, WatchedConnector, met_a_closing_connection},
};
use crate::{
    catalog::SiteSettings,
    edge::body::{self, ServeBody},
    telemetry::Metrics,
    threads::PerThread,
};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header::EXPECT};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::{
    client::legacy::{Client, Error, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::ClientConfig;
use std::{io, time::Duration};

/// Time for which a connection without a request is kept: shorter than most servers keep theirs, so
/// that a request seldom meets one that is being closed.
const POOL_IDLE: Duration = Duration::from_secs(4);
/// Time between two looks at a client that pauses in the body of its request.
const PAUSE_CHECK: Duration = Duration::from_secs(1);
/// Connections without a request, of each thread.
const POOL_MAX: usize = 64;
/// Requests at once for which all threads share the connections to the origin.
const FEW_REQUESTS: usize = 2;
/// Bytes of the head of an answer.
const HEAD_BYTES_MAX: usize = 128 << 10;
/// Headers of an answer.
const HEADERS_MAX: usize = 256;

type OriginClient = Client<WatchedConnector, ServeBody>;

/// An answer of an origin.
pub(super) struct OriginAnswer {
    /// Its head, and its body as it comes.
    pub(super) response: Response<Incoming>,
    /// True when it came before the whole body of the request was taken: the connection of the
    /// reader can have no other request.
    pub(super) is_early: bool,
}

/// The way to the origin of a site.
pub(super) struct SiteOrigin {
    /// With many requests at once, a connection is used by the thread that made it, so that no
    /// thread wakes another.
    clients: PerThread<OriginClient>,
    /// With few, all threads share theirs: an origin that serves one connection at a time would
    /// keep the others waiting.
    shared: OriginClient,
    /// Makes a connection for each request.
    fresh: OriginClient,
    open: OpenConnections,
    places: SitePermits,
    connect_max: Duration,
    head_max: Duration,
    pub(super) idle_max: Duration,
}

impl SiteOrigin {
    /// The way to the origin of a site, by the TLS settings of all of them.
    pub(super) fn new(site: &SiteSettings, tls: &ClientConfig, metrics: &Metrics) -> Self {
        let connect_max = Duration::from_secs(site.connect_secs);
        let name = site
            .host
            .clone()
            .unwrap_or_else(|| site.origin.origin().ascii_serialization());
        let places = SitePermits::new(name.clone(), site.requests_max, metrics.of_site(name));
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(connect_max));
        let inner = HttpsConnectorBuilder::new()
            .with_tls_config(tls.clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let open = OpenConnections::default();
        let connector = WatchedConnector {
            inner,
            open: open.clone(),
        };
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(POOL_MAX)
            .http1_max_buf_size(HEAD_BYTES_MAX)
            .http1_max_headers(HEADERS_MAX)
            .http1_preserve_header_case(true)
            // What a proxy mends (RFC 9112 sections 5.1 and 5.2): else the length of an answer, or
            // half of a header, would be lost.
            .http1_allow_spaces_after_header_name_in_responses(true)
            .http1_allow_obsolete_multiline_headers_in_responses(true)
            // Old servers send lines that are no headers; what they mean stands in the others.
            .http1_ignore_invalid_headers_in_responses(true);
        Self {
            clients: PerThread::new(|| builder.build(connector.clone())),
            shared: builder.build(connector.clone()),
            fresh: builder.pool_max_idle_per_host(0).build(connector),
            open,
            places,
            connect_max,
            head_max: Duration::from_secs(site.head_secs),
            idle_max: Duration::from_secs(site.idle_secs),
        }
    }

    /// A place for a request at the origin, held as long as it lasts.
    pub(super) fn place(&self, peer: ProxyPeer) -> Result<SitePermit, ProxyFault> {
        self.places.enter(peer)
    }

    /// The connections for a request that has its place.
    fn client(&self) -> &OriginClient {
        if self.places.taken() <= FEW_REQUESTS {
            &self.shared
        } else {
            self.clients.here()
        }
    }

    // Decides: Is a request sent to the origin once more?
    /// Sends a request and waits for the head of its answer. One without a body that may be
    /// repeated is sent once more when it met a connection that was being closed, by a new
    /// connection. It is given up when its place is taken away.
    pub(super) async fn ask(
        &self,
        request: Request<ServeBody>,
        place: &SitePermit,
    ) -> Result<OriginAnswer, ProxyFault> {
        tokio::select! {
            biased;
            () = place.taken_away() => Err(place.loss()),
            answer = self.ask_or_repeat(request, place) => answer,
        }
    }

    async fn ask_or_repeat(
        &self,
        request: Request<ServeBody>,
        place: &SitePermit,
    ) -> Result<OriginAnswer, ProxyFault> {
        let may_repeat = is_idempotent(request.method()) && request.body().is_end_stream();
        if !may_repeat {
            return self.ask_once(self.client(), request, place).await;
        }
        let (parts, _) = request.into_parts();
        let request = || Request::from_parts(parts.clone(), body::whole(Bytes::new()));
        match self.ask_once(self.client(), request(), place).await {
            Err(ProxyFault::Closed(_)) => self.ask_once(&self.fresh, request(), place).await,
            answer => answer,
        }
    }

    async fn ask_once(
        &self,
        client: &OriginClient,
        mut request: Request<ServeBody>,
        place: &SitePermit,
    ) -> Result<OriginAnswer, ProxyFault> {
        let interim = Interim::of(&mut request);
        let (parts, body) = request.into_parts();
        let progress = BodyProgress::of(&body);
        let body =
            IdleBody::new(body, self.idle_max, progress.clone()).with_least_pace(place.progress());
        let (body, unasked) = interim.body(&parts.headers, body);
        let again = parts.headers.contains_key(EXPECT).then(|| parts.clone());
        let answer = client.request(Request::from_parts(parts, body.boxed_unsync()));
        let late = async {
            late_time(&progress).await;
            let late = self.open.late_request();
            tokio::select! {
                () = late.wait() => {}
                () = head_time(self.head_max, &progress) => {}
            }
        };
        tokio::select! {
            answer = answer => match answer {
                Ok(response) => {
                    if response.status() == StatusCode::EXPECTATION_FAILED
                        && let (Some(mut parts), Some(body)) = (again, unasked.take_back())
                    {
                        // Its client would have to send it once more without the expectation (RFC
                        // 9110 section 10.1.1).
                        drop(response);
                        parts.headers.remove(EXPECT);
                        let request = Request::from_parts(parts, body.boxed_unsync());
                        return Box::pin(self.ask_once(client, request, place)).await;
                    }
                    Ok(OriginAnswer { response, is_early: !progress.has_ended() })
                }
                Err(error) => Err(self.fault(&error, &progress)),
            },
            () = interim.flood() => Err(ProxyFault::Interim(INTERIM_MAX)),
            () = late => Err(ProxyFault::HeadTimeout(self.head_max)),
        }
    }

    fn fault(&self, error: &Error, progress: &BodyProgress) -> ProxyFault {
        if progress.is_idle() {
            return ProxyFault::RequestBody(self.idle_max);
        }
        if progress.has_failed() {
            return ProxyFault::BrokenRequest;
        }
        let innermost = innermost(error);
        if error.is_connect() {
            let is_late = innermost
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::TimedOut);
            if is_late {
                return ProxyFault::ConnectTimeout(self.connect_max);
            }
            return ProxyFault::Unreachable(innermost.to_string());
        }
        let cause = innermost.to_string();
        if met_a_closing_connection(error) {
            ProxyFault::Closed(cause)
        } else {
            ProxyFault::Broken(cause)
        }
    }
}

/// Completes when the origin has had the request, or does not take more of it, for so long that
/// another connection may keep it from the request.
async fn late_time(progress: &BodyProgress) {
    tokio::time::sleep(LATE_AFTER).await;
    while progress.waits() {
        tokio::time::sleep(LATE_AFTER).await;
    }
}

/// Completes when the origin has had the request, or does not take more of it, for as long as it
/// may. A client that pauses in its body is watched by the body itself.
async fn head_time(head_max: Duration, progress: &BodyProgress) {
    loop {
        tokio::time::sleep_until(progress.last() + head_max).await;
        if progress.waits() {
            tokio::time::sleep(PAUSE_CHECK).await;
        } else if progress.last().elapsed() >= head_max {
            return;
        }
    }
}

/// The cause at the bottom of an error.
pub(super) fn innermost<'e>(
    error: &'e (dyn std::error::Error + 'static),
) -> &'e (dyn std::error::Error + 'static) {
    let mut cause = error;
    while let Some(below) = cause.source() {
        cause = below;
    }
    cause
}

/// True for methods that may be sent twice (RFC 9110 section 9.2.2).
fn is_idempotent(method: &Method) -> bool {
    matches!(
        *method,
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE | Method::PUT | Method::DELETE
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::StreamBody;
    use std::sync::Arc;
    use tokio::{sync::mpsc, time::Instant};
    use tower::BoxError;

    /// A body whose pieces come when they are sent.
    fn body(
        idle_secs: u64,
    ) -> (
        mpsc::UnboundedSender<Bytes>,
        IdleBody<impl http_body::Body<Data = Bytes, Error = BoxError> + Unpin>,
        Arc<BodyProgress>,
    ) {
        let (send, mut receive) = mpsc::unbounded_channel();
        let pieces = futures_util::stream::poll_fn(move |cx| {
            receive
                .poll_recv(cx)
                .map(|piece| piece.map(|piece| Ok(http_body::Frame::data(piece))))
        });
        let pieces = StreamBody::new(pieces);
        let progress = BodyProgress::of(&pieces);
        let body = IdleBody::new(pieces, Duration::from_secs(idle_secs), progress.clone());
        (send, body, progress)
    }

    #[tokio::test]
    async fn few_requests_share_connections_and_many_keep_to_their_threads() {
        let settings = SiteSettings::new(url::Url::parse("http://127.0.0.1:9/").unwrap());
        let tls = crate::tls_client::of_system().unwrap();
        let origin = SiteOrigin::new(&settings, &tls, &Metrics::default());
        let is_shared = || std::ptr::eq(origin.client(), &raw const origin.shared);
        let mut places: Vec<_> = (0..FEW_REQUESTS)
            .map(|_| origin.place(ProxyPeer::default()).unwrap())
            .collect();
        assert!(is_shared());
        places.push(origin.place(ProxyPeer::default()).unwrap());
        assert!(!is_shared() && std::ptr::eq(origin.client(), origin.clients.here()));
        drop(places);
        assert!(is_shared());
    }

    #[tokio::test(start_paused = true)]
    async fn the_origin_is_not_blamed_for_a_client_that_pauses() {
        let (send, mut body, progress) = body(100);
        let started = Instant::now();
        let sending = async {
            tokio::time::sleep(Duration::from_secs(70)).await;
            send.send(Bytes::from_static(b"rest")).unwrap();
            drop(send);
        };
        let reading = async { while body.frame().await.is_some() {} };
        tokio::join!(
            sending,
            reading,
            head_time(Duration::from_secs(10), &progress)
        );
        assert_eq!(
            started.elapsed().as_secs(),
            80,
            "ten seconds from when the origin has it all"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_is_given_up_after_its_last_piece() {
        let (send, mut body, progress) = body(30);
        let started = Instant::now();
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(20)).await;
            send.send(Bytes::from_static(b"piece")).unwrap();
            assert!(body.frame().await.unwrap().is_ok());
        }
        assert!(!progress.is_idle());
        assert!(
            body.frame().await.unwrap().is_err() && progress.is_idle() && progress.has_failed()
        );
        assert_eq!(started.elapsed().as_secs(), 90);
    }
}
