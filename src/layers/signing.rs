//! Signs each request as ours (RFC 9421), on each hop anew: the signature names the authority that is
//! asked. Not what is signed, which the identity knows.

use super::{Exchange, FetchError, Reply, Request, take_ready};
use crate::{
    clock::Clock,
    identity::{Identity, NONCE_BYTES},
};
use futures_util::future::BoxFuture;
use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};
use tower::{Layer, Service, layer::layer_fn};

/// An identity, and the clock by which it signs.
#[derive(Clone)]
pub struct Signer {
    /// The identity.
    pub identity: Arc<Identity>,
    /// The time of signatures.
    pub clock: Arc<dyn Clock>,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.identity.fmt(f)
    }
}

/// Adds the headers of a signature to each request, if there is a signer.
#[derive(Clone, Debug)]
pub struct Signing<S> {
    inner: S,
    signer: Option<Signer>,
}

impl<S> Signing<S> {
    /// Signs by this signer; without one, requests pass as they are.
    pub fn layer(signer: Option<Signer>) -> impl Layer<S, Service = Self> {
        layer_fn(move |inner| Self {
            inner,
            signer: signer.clone(),
        })
    }
}

impl<S: Exchange> Service<Request> for Signing<S> {
    type Response = Reply;
    type Error = FetchError;
    type Future = BoxFuture<'static, Result<Reply, FetchError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FetchError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        if let Some(signer) = &self.signer
            && let Some(authority) = authority_of(&request)
        {
            let now_secs = signer.clock.now_us() / 1_000_000;
            let nonce: [u8; NONCE_BYTES] = rand::random();
            let signature = signer.identity.sign_request(&authority, now_secs, &nonce);
            let headers = request.headers_mut();
            for (name, value) in signature {
                headers.insert(name, value);
            }
        }
        let mut inner = take_ready(&mut self.inner);
        Box::pin(async move { inner.call(request).await })
    }
}

/// The `@authority` of a request (RFC 9421 section 2.2.3): its `Host` if it has one, else the host of
/// its URL, with the port unless that is the usual one.
fn authority_of(request: &Request) -> Option<String> {
    if let Some(host) = request.headers().get(http::header::HOST) {
        return host.to_str().ok().map(str::to_owned);
    }
    let uri = request.uri();
    let host = uri.host()?;
    let usual = match uri.scheme_str() {
        Some("https") => 443,
        _ => 80,
    };
    Some(match uri.port_u16().filter(|port| *port != usual) {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{answering, body_of, get},
        *,
    };
    use crate::{
        clock::Manual,
        identity::{AgentForm, SigningKey},
    };
    use std::sync::Mutex;
    use tower::ServiceExt as _;
    use url::Url;

    #[tokio::test]
    async fn u_46_each_hop_is_signed_for_the_authority_that_it_asks() {
        let pem = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let key = SigningKey::from_pem(pem.serialize_pem().as_bytes()).unwrap();
        let url = Url::parse("https://feeds.example/").unwrap();
        let identity = Identity::new(vec![key], &url, AgentForm::String).unwrap();
        let signer = Signer {
            identity: Arc::new(identity),
            clock: Arc::new(Manual::at(1_000_000_000)),
        };
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        let wire = answering(move |request: Request| {
            log.lock().unwrap().push(request.headers().clone());
            Ok(http::Response::new(body_of(&[])))
        });
        let stack = Signing::layer(Some(signer)).layer(wire.clone());
        for url in ["http://a.example/x", "https://b.example:8443/"] {
            stack.clone().oneshot(get(url)).await.unwrap();
        }
        let plain = Signing::layer(None).layer(wire);
        plain.oneshot(get("http://a.example/x")).await.unwrap();
        let seen = seen.lock().unwrap();
        for headers in &seen[..2] {
            assert_eq!(headers["signature-agent"], "\"https://feeds.example\"");
            assert!(
                headers["signature-input"]
                    .to_str()
                    .unwrap()
                    .contains("created=1000;")
            );
        }
        assert_ne!(seen[0]["signature"], seen[1]["signature"]);
        assert!(!seen[2].contains_key("signature"));
    }

    #[test]
    fn the_authority_has_a_port_unless_it_is_the_usual_one() {
        let check = |url: &str, expect: &str| {
            assert_eq!(authority_of(&get(url)).as_deref(), Some(expect), "{url}");
        };
        check("http://a.example/", "a.example");
        check("http://a.example:80/", "a.example");
        check("https://a.example:443/", "a.example");
        check("https://a.example:80/", "a.example:80");
        check("http://127.0.0.1:8081/x", "127.0.0.1:8081");
        check("http://[::1]:8081/x", "[::1]:8081");
    }
}
