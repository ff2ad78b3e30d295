//! The innermost service: one request, one answer, over reqwest with everything switched off that
//! the layers do. Here reqwest's errors become ours, and here alone its types are named.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use http_body_util::BodyExt;
use reqwest::dns::Resolve;
use tower::Service;
use tracing::warn;

use super::address_guard::AddressClass;
use super::error::{BoxError, ConnectFault, CutFault, NameFault, ProtocolFault, Refused, TlsFault};
use super::public_address::{PublicResolver, SteadyResolver};
use super::{FetchError, Reply, Request};
use crate::tls_client;
use bare::NameError;

mod bare;

pub use bare::BareWire;

/// Sends requests. Two connection pools, because the class of an address decides who may resolve
/// it: a request without [`AddressClass::Configured`] cannot get at a connection that was not
/// checked.
#[derive(Debug, Clone)]
pub struct Wire {
    open: reqwest::Client,
    public: reqwest::Client,
}

/// Versions of HTTP that are offered in TLS (RFC 7301).
const APPLICATION_PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The common settings of the connections of a [`Wire`].
#[derive(Debug, Clone)]
pub struct WireConfig {
    /// Limit on name resolution, TCP and TLS together.
    pub connect: Duration,
    /// Headers for every request that does not bring its own.
    pub headers: HeaderMap,
    /// Idle connections kept for each host.
    pub idle_per_host: usize,
    /// Root certificates (PEM) that are trusted beside those of the machine.
    pub roots: Vec<u8>,
}

/// The HTTP client could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client cannot be set up")]
pub struct BuildError(#[source] reqwest::Error);

impl Wire {
    /// Names are looked up with `resolver`.
    pub fn new(config: &WireConfig, resolver: Arc<dyn Resolve>) -> Result<Self, BuildError> {
        // An error means that a provider is there already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let public = Arc::new(PublicResolver(resolver.clone()));
        let open = Arc::new(SteadyResolver::over(resolver.clone()));
        Ok(Self {
            open: connections(config, open)?,
            public: connections(config, public)?,
        })
    }
}

fn connections(
    config: &WireConfig,
    resolver: Arc<dyn Resolve>,
) -> Result<reqwest::Client, BuildError> {
    let roots = reqwest::Certificate::from_pem_bundle(&config.roots).map_err(BuildError)?;
    let builder = || {
        reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .default_headers(config.headers.clone())
            .connect_timeout(config.connect)
            // A host is polled once an hour: connections are kept for the redirects and archive
            // pages of one visit, a second apart, and not for the next.
            .pool_idle_timeout(Duration::from_secs(2))
            .pool_max_idle_per_host(config.idle_per_host)
            .dns_resolver(resolver.clone())
    };
    if !roots.is_empty() {
        let merged = builder().tls_certs_merge(roots.clone()).build();
        return merged.or_else(|error| {
            tell_without_authorities(&error);
            builder().tls_certs_only(roots).build().map_err(BuildError)
        });
    }
    let built = match tls_client::of_system() {
        Ok(mut tls) => {
            tls.alpn_protocols = APPLICATION_PROTOCOLS.map(Vec::from).to_vec();
            builder().tls_backend_preconfigured(tls).build()
        }
        Err(error) => {
            tell_without_authorities(&error);
            builder().tls_certs_only([]).build()
        }
    };
    built.map_err(BuildError)
}

/// A slim container has no certificate store. A sidecar beside a plain http blog needs none.
fn tell_without_authorities(error: &dyn Error) {
    warn!(source = ?error, "No certificate authorities on this machine: https upstreams and callbacks will fail");
}

impl Service<Request> for Wire {
    type Response = Reply;
    type Error = FetchError;
    type Future = BoxFuture<'static, Result<Reply, FetchError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), FetchError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let client = match request.extensions().get() {
            Some(AddressClass::Configured) => self.open.clone(),
            Some(AddressClass::Derived) | None => self.public.clone(),
        };
        Box::pin(async move {
            let bodiless = request.body().is_empty();
            let mut request =
                reqwest::Request::try_from(request).map_err(|_| FetchError::BadUrl)?;
            match *request.method() {
                http::Method::GET | http::Method::HEAD if bodiless => *request.body_mut() = None,
                // Servers read so many bytes as it says, and some refuse a request that does not say
                // (RFC 9110 section 8.6).
                http::Method::POST | http::Method::PUT | http::Method::PATCH if bodiless => {
                    let headers = request.headers_mut();
                    headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
                }
                _ => {}
            }
            let reply = client
                .execute(request)
                .await
                .map_err(|error| explain(error, Phase::Head))?;
            let reply: http::Response<reqwest::Body> = reply.into();
            Ok(reply.map(|body| {
                body.map_err(|error| explain(error, Phase::Body))
                    .boxed_unsync()
            }))
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Head,
    Body,
}

/// Translates a failure of reqwest into our terms. The URL stays out of it.
fn explain(error: reqwest::Error, phase: Phase) -> FetchError {
    let failure = Failure {
        is_plain: error.url().is_some_and(|url| url.scheme() == "http"),
        is_connect: error.is_connect(),
        is_builder: error.is_builder(),
        is_name: error.is_dns(),
        is_timeout: error.is_timeout(),
    };
    failure.explain(error.without_url().into(), phase)
}

/// A failure, as the HTTP client itself names it.
#[derive(Clone, Copy)]
struct Failure {
    /// True for a URL without TLS.
    is_plain: bool,
    is_connect: bool,
    /// True for a URL that cannot be requested.
    is_builder: bool,
    /// True where a name was not found.
    is_name: bool,
    is_timeout: bool,
}

impl Failure {
    /// The failure in our terms, by its causes.
    fn explain(self, error: BoxError, phase: Phase) -> FetchError {
        let clues = Clues::gather(&*error, self.is_timeout);
        if let Some(refused) = clues.refused {
            return refused.into();
        }
        match (self.is_connect, phase) {
            _ if self.is_builder => FetchError::BadUrl,
            _ if clues.ours => FetchError::Local(error),
            _ if self.is_name || clues.is_name => FetchError::Resolve(clues.name, error),
            _ if clues.tls.is_some() => {
                FetchError::Tls(clues.tls.unwrap_or(TlsFault::Other), error)
            }
            (true, _) => FetchError::Connect(clues.connect.unwrap_or(ConnectFault::Other), error),
            (_, Phase::Head) if clues.cut && self.is_plain => {
                FetchError::Cut(CutFault::UnansweredInPlain, error)
            }
            (_, Phase::Head) if clues.cut => FetchError::Cut(CutFault::Unanswered, error),
            (_, Phase::Body) if clues.cut || !clues.malformed => {
                FetchError::Cut(CutFault::Body, error)
            }
            _ if clues.is_large => FetchError::Protocol(ProtocolFault::LargeHead, error),
            _ => FetchError::Protocol(ProtocolFault::Malformed, error),
        }
    }
}

/// The kind of an error by its causes, at any depth.
struct Clues {
    refused: Option<Refused>,
    name: NameFault,
    tls: Option<TlsFault>,
    connect: Option<ConnectFault>,
    cut: bool,
    malformed: bool,
    /// The head is beyond the limits of the HTTP library.
    is_large: bool,
    ours: bool,
    is_name: bool,
}

impl Clues {
    fn gather(error: &(dyn Error + 'static), is_timeout: bool) -> Self {
        let timed_out = is_timeout.then_some(ConnectFault::TimedOut);
        let mut clues = Self {
            refused: None,
            name: NameFault::Unknown,
            tls: None,
            connect: timed_out,
            cut: false,
            malformed: false,
            is_large: false,
            ours: false,
            is_name: false,
        };
        let mut next: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(error) = next {
            clues.note(error);
            next = match error
                .downcast_ref::<io::Error>()
                .and_then(io::Error::get_ref)
            {
                // `source` of such an error skips the error inside it, which is the telling one.
                Some(inner) => Some(inner),
                None => error.source(),
            };
        }
        clues
    }

    fn note(&mut self, error: &(dyn Error + 'static)) {
        if let Some(refused) = error.downcast_ref::<Refused>() {
            self.refused = Some(*refused);
        }
        self.is_name |= error.is::<NameError>();
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            self.tls = Some(tls_fault(tls));
        }
        // The system tells a name that does not exist from servers that do not answer by these
        // words alone.
        if ["Temporary failure", "Try again"]
            .iter()
            .any(|words| error.to_string().contains(words))
        {
            self.name = NameFault::Unanswered;
        }
        if let Some(hyper) = error.downcast_ref::<hyper::Error>() {
            self.cut |= hyper.is_incomplete_message() || hyper.is_closed() || hyper.is_canceled();
            self.malformed |= hyper.is_parse();
            self.is_large |= hyper.is_parse_too_large();
        }
        if let Some(io) = error.downcast_ref::<io::Error>() {
            use io::ErrorKind::*;
            self.cut |= matches!(
                io.kind(),
                UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe
            );
            self.malformed |= matches!(io.kind(), InvalidInput | InvalidData);
            self.connect = self.connect.or(match io.kind() {
                ConnectionRefused => Some(ConnectFault::Refused),
                NetworkUnreachable | HostUnreachable => Some(ConnectFault::Unreachable),
                TimedOut => Some(ConnectFault::TimedOut),
                UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe => {
                    Some(ConnectFault::Closed)
                }
                _ => None,
            });
            // Not "network unreachable": a machine without IPv6 says so of every host that has it,
            // also when the reason is that nobody listens at the host's IPv4 address.
            self.ours |=
                io.kind() == NetworkDown || matches!(io.raw_os_error(), Some(EMFILE | ENFILE));
        }
    }
}

/// The fault of TLS within an error of a connection, if it is one.
pub fn tls_fault_of(error: &io::Error) -> Option<TlsFault> {
    let inner = error.get_ref()?;
    inner.downcast_ref::<rustls::Error>().map(tls_fault)
}

/// Reason of a handshake that failed.
fn tls_fault(error: &rustls::Error) -> TlsFault {
    use rustls::CertificateError as Certificate;
    match error {
        rustls::Error::InvalidCertificate(certificate) => match certificate {
            Certificate::Expired | Certificate::ExpiredContext { .. } => TlsFault::Expired,
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => {
                TlsFault::NotYetValid
            }
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                TlsFault::WrongName
            }
            Certificate::UnknownIssuer => TlsFault::UnknownIssuer,
            Certificate::Revoked => TlsFault::Revoked,
            Certificate::InvalidPurpose | Certificate::InvalidPurposeContext { .. } => {
                TlsFault::NotForServers
            }
            // The libraries under rustls have these reasons in words alone.
            Certificate::Other(other) if other.to_string().contains("invalid extensions") => {
                TlsFault::NotForServers
            }
            Certificate::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
                TlsFault::OfIssuer
            }
            _ => TlsFault::BadCertificate,
        },
        rustls::Error::InvalidMessage(_) => TlsFault::NotTls,
        _ => TlsFault::Other,
    }
}

/// Too many open files, in the process and in the system: the same numbers on every unix.
const EMFILE: i32 = 24;
const ENFILE: i32 = 23;

#[cfg(test)]
mod tests;
