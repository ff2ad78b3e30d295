//! A subscriber that takes pushes, sometimes after saying that it does not, and checks their chain.

use super::consumer::Mirror;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use testkit::publisher::{Answer, Asked, Publisher, ok, with_headers};

/// The pushes that one subscription has received.
#[derive(Clone, Default)]
pub(crate) struct Chain {
    pub(crate) mirror: Mirror,
    pub(crate) cursors: BTreeSet<String>,
    pub(crate) pushes: usize,
    pub(crate) repeated: usize,
    /// Times of pushes that had come before and had been taken.
    pub(crate) strays: Vec<Instant>,
    /// Those of them that tell less than is known already. They are confirmed, and do nothing.
    pub(crate) outdated: usize,
    /// True from a confirmed subscription to its confirmed end.
    pub(crate) is_subscribed: bool,
    /// True when it is to end: a request to subscribe that comes late is not confirmed.
    is_leaving: bool,
    /// Pushes after the end.
    pub(crate) unasked: usize,
    /// Confirmed subscriptions. Each may begin at the beginning once.
    confirmed: usize,
    begun: usize,
    last: Option<(String, String)>,
    /// Cursors before and behind each push.
    received: Vec<(String, String)>,
    was_denied: bool,
    pub(crate) faults: Vec<String>,
}

pub(crate) struct Subscriber {
    callbacks: Publisher,
    chains: Arc<Mutex<BTreeMap<String, Chain>>>,
}

/// Every so many pushes, one is received and then denied, so that it has to be sent again.
const DENY_EVERY: usize = 7;

impl Subscriber {
    pub(crate) async fn start() -> Self {
        let chains: Arc<Mutex<BTreeMap<String, Chain>>> = Arc::default();
        let kept = chains.clone();
        let callbacks = Publisher::of(move |asked| answer(asked, &mut kept.lock().unwrap())).await;
        Self { callbacks, chains }
    }

    pub(crate) fn callback(&self, name: &str) -> String {
        self.callbacks.url(&format!("/{name}"))
    }

    /// The chain of a callback as it is now.
    pub(crate) fn chain(&self, name: &str) -> Chain {
        let chains = self.chains.lock().unwrap();
        chains.get(name).cloned().unwrap_or_default()
    }

    /// Confirms no subscription of this callback from now on, as one asked for before may come late.
    pub(crate) fn leaves(&self, name: &str) {
        let mut chains = self.chains.lock().unwrap();
        chains.entry(name.to_owned()).or_default().is_leaving = true;
    }

    /// The chain of a feed, once its mirror equals the store or no more time is left.
    pub(crate) async fn settled(&self, name: &str, store: &Mirror, patience: Duration) -> Chain {
        let begun = Instant::now();
        while self.chain(name).mirror.contents() != store.contents() && begun.elapsed() < patience {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let chain = self.chain(name);
        assert!(chain.faults.is_empty(), "{name}: {:#?}", chain.faults);
        chain
    }
}

fn answer(asked: &Asked, chains: &mut BTreeMap<String, Chain>) -> Answer {
    let (path, query) = asked.path().split_once('?').unwrap_or((asked.path(), ""));
    let name = path.trim_start_matches('/').to_owned();
    let chain = chains.entry(name).or_default();
    if !asked.is_post() {
        let fields: BTreeMap<_, _> = url::form_urlencoded::parse(query.as_bytes()).collect();
        let field = |name: &str| fields.get(name).map(|value| value.to_string());
        let is_wanted = field("hub.mode").is_some_and(|mode| mode == "subscribe");
        if is_wanted && chain.is_leaving {
            return with_headers(404, &[], "");
        }
        chain.is_subscribed = is_wanted;
        chain.confirmed += usize::from(chain.is_subscribed);
        return ok("text/plain", field("hub.challenge").unwrap_or_default());
    }
    let denied = chain.take(&asked.body, asked.header("x-hub-signature"));
    with_headers(if denied { 503 } else { 204 }, &[], "")
}

/// The signature of a push, by the secret of all subscriptions.
pub(crate) fn signature(body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(b"s3cret").expect("any key will do");
    mac.update(body);
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}

impl Chain {
    /// Takes a push; whether it is denied afterwards.
    pub(crate) fn take(&mut self, body: &[u8], signed: &str) -> bool {
        if signed != signature(body) {
            self.faults.push(format!("a push signed {signed:?}"));
        }
        let page: Value = serde_json::from_slice(body).expect("a push is JSON");
        let cursor = |name: &str| {
            page[name]
                .as_str()
                .expect("every push has both cursors")
                .to_owned()
        };
        let (prev, last) = (cursor("prev_cursor"), cursor("last_cursor"));
        self.pushes += 1;
        self.unasked += usize::from(!self.is_subscribed);
        self.cursors.extend([prev.clone(), last.clone()]);
        let is_known = self.received.iter().any(|(known, _)| *known == prev);
        self.received.push((prev.clone(), last.clone()));
        match &self.last {
            Some((_, known)) if prev == *known => {}
            Some((known, _)) if prev == *known => {
                self.repeated += 1;
                if !self.was_denied {
                    self.strays.push(Instant::now());
                }
            }
            _ if prev.is_empty() && self.begun < self.confirmed => self.begun += 1,
            None => {}
            Some(_) if is_known => {
                self.strays.push(Instant::now());
                self.outdated += 1;
                return false;
            }
            Some(_) => {
                let before = self.received.iter().rev().take(6).rev();
                self.faults.push(format!("a push is missing in {before:?}"));
            }
        }
        self.mirror.apply(&page);
        self.last = Some((prev, last));
        self.was_denied = self.pushes.is_multiple_of(DENY_EVERY);
        self.was_denied
    }
}
