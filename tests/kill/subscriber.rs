//! A subscriber that takes pushes, sometimes after saying that it does not, and checks their chain.

use crate::consumer::Mirror;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use sha2::Sha256;
use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::net::TcpListener;

/// What one subscription has received.
#[derive(Clone, Default)]
pub(crate) struct Chain {
    pub(crate) mirror: Mirror,
    pub(crate) cursors: BTreeSet<String>,
    pub(crate) pushes: usize,
    pub(crate) repeated: usize,
    last: Option<(String, String)>,
    faults: Vec<String>,
}

pub(crate) struct Subscriber {
    address: SocketAddr,
    chains: Arc<Mutex<BTreeMap<String, Chain>>>,
}

/// Every so many pushes, one is received and then denied, so that it has to be sent again.
const DENY_EVERY: usize = 7;

impl Subscriber {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback address");
        let address = listener.local_addr().unwrap();
        let chains: Arc<Mutex<BTreeMap<String, Chain>>> = Arc::default();
        let kept = chains.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let chains = kept.clone();
                tokio::spawn(async move {
                    let answer = service_fn(|request: Request<Incoming>| answer(request, chains.clone()));
                    let http = hyper::server::conn::http1::Builder::new();
                    let _ = http.serve_connection(TokioIo::new(stream), answer).await;
                });
            }
        });
        Self { address, chains }
    }

    pub(crate) fn callback(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    /// The chain of a feed, once its mirror equals the store or no more time is left.
    pub(crate) async fn settled(&self, name: &str, store: &Mirror, patience: Duration) -> Chain {
        let begun = Instant::now();
        let chain = || self.chains.lock().unwrap().get(name).cloned().unwrap_or_default();
        while chain().mirror.contents() != store.contents() && begun.elapsed() < patience {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let chain = chain();
        assert!(chain.faults.is_empty(), "{name}: {:#?}", chain.faults);
        chain
    }
}

async fn answer(
    request: Request<Incoming>,
    chains: Arc<Mutex<BTreeMap<String, Chain>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await.map(http_body_util::Collected::to_bytes) else {
        return Ok(status(StatusCode::BAD_REQUEST));
    };
    if head.method == Method::GET {
        let query = head.uri.query().unwrap_or_default();
        let challenge = url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "hub.challenge");
        let challenge = challenge.map(|(_, value)| value.into_owned()).unwrap_or_default();
        return Ok(Response::new(Full::from(challenge)));
    }
    let name = head.uri.path().trim_start_matches('/').to_owned();
    let signature =
        head.headers.get("x-hub-signature").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut chains = chains.lock().unwrap();
    let denied = chains.entry(name).or_default().take(&body, signature);
    Ok(status(if denied { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::NO_CONTENT }))
}

fn status(code: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::default();
    *response.status_mut() = code;
    response
}

impl Chain {
    /// Takes a push; whether it is denied afterwards.
    fn take(&mut self, body: &[u8], signature: &str) -> bool {
        let mut mac = Hmac::<Sha256>::new_from_slice(b"s3cret").expect("any key will do");
        mac.update(body);
        if signature != format!("sha256={}", hex::encode(mac.finalize().into_bytes())) {
            self.faults.push(format!("a push signed {signature:?}"));
        }
        let page: Value = serde_json::from_slice(body).expect("a push is JSON");
        let cursor = |name: &str| page[name].as_str().expect("every push has both cursors").to_owned();
        let (prev, last) = (cursor("prev_cursor"), cursor("last_cursor"));
        match &self.last {
            Some((_, known)) if prev == *known => {}
            Some((known, _)) if prev == *known => self.repeated += 1,
            None => {}
            Some(known) => self.faults.push(format!("prev {prev} follows {known:?}")),
        }
        self.mirror.apply(&page);
        self.cursors.extend([prev.clone(), last.clone()]);
        self.last = Some((prev, last));
        self.pushes += 1;
        self.pushes.is_multiple_of(DENY_EVERY)
    }
}
