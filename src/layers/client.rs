//! The two client stacks: towards publishers, and towards the callbacks of subscribers. Composition
//! only; what each line does is in the file of its layer.

use std::collections::HashSet;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::dns::Resolve;
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceBuilder, ServiceExt};

use super::address_guard::{AddressGuard, AddressReach};
use super::body_cap::BodyCap;
use super::collect::Collect;
use super::conditional::Conditional;
use super::connect_retry::ConnectOnce;
use super::deadline::Deadline;
use super::inflate_cap::InflateCap;
use super::per_host::{Governor, PerHost};
use super::public_address::SystemResolver;
use super::redirect::Redirect;
use super::signing::{Signer, Signing};
use super::trace::Trace;
use super::wire::{BareWire, BuildError, Wire, WireConfig};
use super::{Exchange, FetchError, Request};

/// The media types that an upstream is asked for. Feeds first, each by its own name; at last
/// anything, because old servers send feeds as what they please and answer 406 to whoever is
/// particular.
pub const ACCEPT_FEEDS: HeaderValue = HeaderValue::from_static(
    "application/atom+xml, application/rss+xml;q=0.9, application/rdf+xml;q=0.8, application/feed+json;q=0.8, \
     application/xml;q=0.7, text/xml;q=0.7, application/json;q=0.5, */*;q=0.1",
);

/// The media types that others are asked for.
const ACCEPT_ANYTHING: HeaderValue = HeaderValue::from_static("*/*");

/// The limits of a client stack. [`ClientConfig::default`] suits upstreams,
/// [`ClientConfig::for_callbacks`] callbacks.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// Seconds for one call: waits, redirects, retries and body together. 30, callbacks 10.
    pub total_secs: u64,
    /// Seconds for name resolution, TCP and TLS of one attempt. 10, callbacks 5.
    pub connect_secs: u64,
    /// Seconds until the head of one attempt's answer. 20, callbacks 10.
    pub head_secs: u64,
    /// Seconds that a call waits at most for its turn at a busy host; it is refused beyond. 10.
    pub host_wait_secs: u64,
    /// Bytes of one body as sent. 10 MiB; of a callback's answer 64 KiB are read and the rest is
    /// dropped.
    pub wire_bytes_max: u64,
    /// Bytes of one body once inflated. 32 MiB.
    pub body_bytes_max: u64,
    /// Bytes of larger bodies (256 KiB and more) that are read, or made more of, at once. 64 MiB.
    pub documents_bytes_max: usize,
    /// Idle connections kept for each host. 2; they are kept for two seconds.
    pub idle_per_host: usize,
    /// Redirects of one call. 5; callbacks follow none.
    pub redirects_max: usize,
    /// Registered domains that are asked ten times as often as others. None.
    pub large_domains: Arc<HashSet<String>>,
    /// `User-Agent` of requests that bring none, for publishers to know whom to talk to.
    pub user_agent: HeaderValue,
    /// The identity that signs each request to a publisher; `None`: they are not signed.
    pub signer: Option<Signer>,
    /// Callbacks only: whether they may be at private addresses and on any port. False.
    pub private_ok: bool,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            total_secs: 30,
            connect_secs: 10,
            head_secs: 20,
            host_wait_secs: 10,
            wire_bytes_max: 10 << 20,
            body_bytes_max: 32 << 20,
            documents_bytes_max: 64 << 20,
            idle_per_host: 2,
            redirects_max: 5,
            large_domains: Arc::default(),
            user_agent: HeaderValue::from_static(concat!("everfeed/", env!("CARGO_PKG_VERSION"))),
            signer: None,
            private_ok: false,
        }
    }
}

impl ClientConfig {
    /// The defaults for callbacks (PUSH.md D-P4, D-P6).
    pub fn for_callbacks() -> Self {
        Self {
            total_secs: 10,
            connect_secs: 5,
            head_secs: 10,
            wire_bytes_max: 64 << 10,
            ..Self::default()
        }
    }

    fn connections(&self, accept: HeaderValue) -> WireConfig {
        let headers = [(USER_AGENT, self.user_agent.clone()), (ACCEPT, accept)];
        WireConfig {
            connect: Duration::from_secs(self.connect_secs),
            headers: HeaderMap::from_iter(headers),
            idle_per_host: self.idle_per_host,
            roots: Vec::new(),
        }
    }
}

/// A client stack: cheap to clone, whole answers, every limit applied.
#[derive(Debug, Clone)]
pub struct Client(BoxCloneSyncService<Request, http::Response<Bytes>, FetchError>);

impl Client {
    /// Sends one request and waits for the whole answer, of whatever status.
    pub async fn send(&self, request: Request) -> Result<http::Response<Bytes>, FetchError> {
        self.0.clone().oneshot(request).await
    }
}

impl Service<Request> for Client {
    type Response = http::Response<Bytes>;
    type Error = FetchError;
    type Future = BoxFuture<'static, Result<Self::Response, FetchError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FetchError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        self.0.call(request)
    }
}

/// The stack towards publishers.
///
/// A request may carry [`Trusted`](super::Trusted), the origin that the operator configured, and
/// [`Validators`](super::Validators). The answer carries [`Landing`](super::Landing),
/// [`Asked`](super::Asked), [`Validators`](super::Validators) and [`WireBytes`](super::WireBytes).
pub fn upstream(config: &ClientConfig, governor: Governor) -> Result<Client, BuildError> {
    upstream_via(config, governor, Arc::new(SystemResolver))
}

/// [`upstream`] with names looked up by `resolver`.
pub fn upstream_via(
    config: &ClientConfig,
    governor: Governor,
    resolver: Arc<dyn Resolve>,
) -> Result<Client, BuildError> {
    let wire = Wire::new(&config.connections(ACCEPT_FEEDS), resolver)?;
    Ok(upstream_over(config, governor, wire))
}

/// [`upstream`] over any service in place of the network.
pub fn upstream_over<S>(config: &ClientConfig, governor: Governor, wire: S) -> Client
where
    S: Exchange + Sync,
{
    let head = Duration::from_secs(config.head_secs);
    // The half that repeats: once per redirect, and the part below Retry once per attempt.
    let hop = ServiceBuilder::new()
        .layer(Conditional::layer()) // Inside Redirect: validators go only to the URL that they came from.
        .retry(ConnectOnce::default()) // Statuses are the poller's business.
        .layer(PerHost::layer(
            governor.with_large_domains(Arc::clone(&config.large_domains)),
            Duration::from_secs(config.host_wait_secs),
        )) // Every request on the wire is counted.
        .layer(AddressGuard::layer(AddressReach::TrustedOrPublic)) // Sees the host of this very hop.
        .layer(Signing::layer(config.signer.clone())) // Below all waits: a signature is good for a minute.
        .map_err(FetchError::from_boxed(head))
        .timeout(head) // One attempt, up to its head.
        .layer(InflateCap::layer(config.body_bytes_max)) // Caps what comes out, not what goes in.
        .layer(BodyCap::layer(config.wire_bytes_max))
        .service(wire);
    let whole = ServiceBuilder::new()
        .layer(Trace::layer("upstream")) // Outermost: its span covers waits and retries.
        .layer(Deadline::layer(Duration::from_secs(config.total_secs))) // The whole call, body included.
        .layer(Collect::layer(
            config.documents_bytes_max,
            config.body_bytes_max,
        )) // Bodies arrive below, and are whole above.
        .layer(Redirect::layer(config.redirects_max)) // Each hop passes everything below again.
        .service(BoxCloneSyncService::new(hop));
    Client(BoxCloneSyncService::new(whole))
}

/// The stack towards the callbacks of subscribers: verification and delivery. No redirects, as what
/// was verified is one URL; no governor, as the hub paces deliveries per subscription; of the
/// answer only its first `wire_bytes_max` bytes, as a subscriber that received a push has received
/// it, however long its page.
pub fn callback(config: &ClientConfig) -> Result<Client, BuildError> {
    callback_via(config, Arc::new(SystemResolver))
}

/// [`callback`] with names looked up by `resolver`.
pub fn callback_via(
    config: &ClientConfig,
    resolver: Arc<dyn Resolve>,
) -> Result<Client, BuildError> {
    let wire = BareWire::new(&config.connections(ACCEPT_ANYTHING), resolver);
    Ok(callback_over(config, wire))
}

/// [`callback`] over any service in place of the network.
pub fn callback_over<S>(config: &ClientConfig, wire: S) -> Client
where
    S: Exchange + Sync,
{
    let head = Duration::from_secs(config.head_secs);
    let reach = if config.private_ok {
        AddressReach::Anywhere
    } else {
        AddressReach::TrustedOrPublic
    };
    let hop = ServiceBuilder::new()
        .retry(ConnectOnce::default()) // Nothing was sent, so nothing is delivered twice.
        .layer(AddressGuard::layer(reach))
        .map_err(FetchError::from_boxed(head))
        .timeout(head)
        .layer(BodyCap::first(config.wire_bytes_max))
        .service(wire);
    let whole = ServiceBuilder::new()
        .layer(Trace::layer("callback"))
        .layer(Deadline::layer(Duration::from_secs(config.total_secs)))
        .layer(Collect::heads_of_posts(config.wire_bytes_max)) // Who answered a push has taken it or not, whatever becomes of the rest.
        .service(BoxCloneSyncService::new(hop));
    Client(BoxCloneSyncService::new(whole))
}

/// The stack towards a certificate authority, which the operator names: at any address, without
/// redirects, and its answers are short.
pub fn authority(roots: Vec<u8>) -> Result<Client, BuildError> {
    let config = ClientConfig {
        wire_bytes_max: 1 << 20,
        body_bytes_max: 1 << 20,
        ..ClientConfig::default()
    };
    let wire = WireConfig {
        roots,
        ..config.connections(ACCEPT_ANYTHING)
    };
    let wire = Wire::new(&wire, Arc::new(SystemResolver))?;
    let head = Duration::from_secs(config.head_secs);
    let hop = ServiceBuilder::new()
        .retry(ConnectOnce::default()) // Nothing was sent.
        .layer(AddressGuard::layer(AddressReach::Anywhere))
        .map_err(FetchError::from_boxed(head))
        .timeout(head)
        .layer(BodyCap::layer(config.wire_bytes_max))
        .service(wire);
    let whole = ServiceBuilder::new()
        .layer(Trace::layer("authority"))
        .layer(Deadline::layer(Duration::from_secs(config.total_secs)))
        .layer(Collect::layer(
            config.documents_bytes_max,
            config.body_bytes_max,
        ))
        .service(BoxCloneSyncService::new(hop));
    Ok(Client(BoxCloneSyncService::new(whole)))
}

#[cfg(test)]
mod tests;
