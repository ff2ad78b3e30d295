//! The innermost service of callbacks: one request, one answer, over hyper alone. A push needs
//! neither redirects nor inflated bodies, and most go to a host of their own: its URL is read once,
//! and its connection made for it.

use super::{Failure, Phase, WireConfig, tell_without_authorities};
use crate::{
    layers::{
        FetchError, Reply, Request,
        address_guard::AddressClass,
        error::BoxError,
        public_address::{PublicResolver, SteadyResolver},
    },
    tls_client,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{
    HeaderMap, HeaderValue, Method, Uri,
    header::{AUTHORIZATION, CONTENT_LENGTH, Entry},
};
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{HttpConnector, dns},
    },
    rt::{TokioExecutor, TokioTimer},
};
use percent_encoding::percent_decode_str;
use reqwest::dns::{Addrs, Resolve};
use std::{
    error::Error,
    fmt, io,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::timeout;
use tower::Service;

/// Sends requests over HTTP/1.1. Two connection pools, because the class of an address decides who
/// may resolve it, as in [`Wire`](super::Wire).
#[derive(Debug, Clone)]
pub struct BareWire {
    open: Connections,
    public: Connections,
    headers: Arc<HeaderMap>,
}

type Connections = Client<Within<HttpsConnector<HttpConnector<Names>>>, Full<Bytes>>;

/// Time for which an idle connection is kept: that of the pushes of one change.
const IDLE: Duration = Duration::from_secs(2);

impl BareWire {
    /// Names are looked up with `resolver`.
    pub fn new(config: &WireConfig, resolver: Arc<dyn Resolve>) -> Self {
        let public = Arc::new(PublicResolver(resolver.clone()));
        let open = Arc::new(SteadyResolver::over(resolver));
        Self {
            open: connections(config, open),
            public: connections(config, public),
            headers: Arc::new(config.headers.clone()),
        }
    }
}

fn connections(config: &WireConfig, resolver: Arc<dyn Resolve>) -> Connections {
    let mut tcp = HttpConnector::new_with_resolver(Names(resolver));
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let tls = tls_client::of_system().unwrap_or_else(|error| {
        tell_without_authorities(&error);
        tls_client::of_nobody()
    });
    let inner = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .wrap_connector(tcp);
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(config.idle_per_host)
        .build(Within {
            inner,
            connect: config.connect,
        })
}

impl Service<Request> for BareWire {
    type Response = Reply;
    type Error = FetchError;
    type Future = BoxFuture<'static, Result<Reply, FetchError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), FetchError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let client = match request.extensions().get() {
            Some(AddressClass::Configured) => &self.open,
            Some(AddressClass::Derived) | None => &self.public,
        };
        let is_plain = request.uri().scheme_str() == Some("http");
        let (mut head, body) = request.into_parts();
        let needs_length = [Method::POST, Method::PUT, Method::PATCH].contains(&head.method);
        if body.is_empty() && needs_length {
            // Servers read so many bytes as it says, and some refuse a request that does not say
            // (RFC 9110 section 8.6).
            let none = HeaderValue::from_static("0");
            head.headers.insert(CONTENT_LENGTH, none);
        }
        for (name, value) in &*self.headers {
            if let Entry::Vacant(vacant) = head.headers.entry(name) {
                vacant.insert(value.clone());
            }
        }
        if let Some(credentials) = credentials(&head.uri)
            && let Entry::Vacant(vacant) = head.headers.entry(AUTHORIZATION)
        {
            vacant.insert(credentials);
        }
        let sent = client.request(http::Request::from_parts(head, Full::new(body)));
        let explain = move |error: BoxError, is_connect, phase| {
            let failure = Failure {
                is_plain,
                is_connect,
                is_builder: false,
                is_name: false,
                is_timeout: false,
            };
            failure.explain(error, phase)
        };
        Box::pin(async move {
            let reply = sent.await.map_err(|error| {
                let is_connect = error.is_connect();
                explain(error.into(), is_connect, Phase::Head)
            })?;
            Ok(reply.map(|body| {
                body.map_err(move |error| explain(error.into(), false, Phase::Body))
                    .boxed_unsync()
            }))
        })
    }
}

/// The credentials of a URL, as a header (RFC 7617).
fn credentials(uri: &Uri) -> Option<HeaderValue> {
    let (credentials, _) = uri.authority()?.as_str().rsplit_once('@')?;
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let mut pair: Vec<u8> = percent_decode_str(user).collect();
    pair.push(b':');
    pair.extend(percent_decode_str(password));
    let mut header = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair))).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// Looks names up.
#[derive(Clone)]
struct Names(Arc<dyn Resolve>);

/// A name was not found, or not at an address that may be used.
#[derive(Debug)]
pub(super) struct NameError(BoxError);

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name cannot be resolved")
    }
}

impl Error for NameError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

impl Service<dns::Name> for Names {
    type Response = Addrs;
    type Error = NameError;
    type Future = BoxFuture<'static, Result<Addrs, NameError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NameError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: dns::Name) -> Self::Future {
        let name = name.as_str().parse();
        let resolving = name.map(|name| self.0.resolve(name));
        Box::pin(async move {
            let resolving = resolving.map_err(|error| NameError(Box::new(error)))?;
            resolving.await.map_err(NameError)
        })
    }
}

/// Makes connections within a limit: name resolution, TCP and TLS together.
#[derive(Debug, Clone)]
struct Within<C> {
    inner: C,
    connect: Duration,
}

impl<C> Service<Uri> for Within<C>
where
    C: Service<Uri, Error = BoxError, Future: Send + 'static>,
{
    type Response = C::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<C::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = timeout(self.connect, self.inner.call(uri));
        Box::pin(async move {
            let late = |_| BoxError::from(io::Error::from(io::ErrorKind::TimedOut));
            connecting.await.map_err(late)?
        })
    }
}
