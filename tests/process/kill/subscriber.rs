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
    last: Option<(String, String)>,
    faults: Vec<String>,
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

    /// The chain of a feed, once its mirror equals the store or no more time is left.
    pub(crate) async fn settled(&self, name: &str, store: &Mirror, patience: Duration) -> Chain {
        let begun = Instant::now();
        let chain = || {
            self.chains
                .lock()
                .unwrap()
                .get(name)
                .cloned()
                .unwrap_or_default()
        };
        while chain().mirror.contents() != store.contents() && begun.elapsed() < patience {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let chain = chain();
        assert!(chain.faults.is_empty(), "{name}: {:#?}", chain.faults);
        chain
    }
}

fn answer(asked: &Asked, chains: &mut BTreeMap<String, Chain>) -> Answer {
    if !asked.is_post() {
        let query = asked.path().split_once('?').map_or("", |(_, query)| query);
        let challenge =
            url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "hub.challenge");
        return ok(
            "text/plain",
            challenge
                .map(|(_, value)| value.into_owned())
                .unwrap_or_default(),
        );
    }
    let name = asked.path().trim_start_matches('/').to_owned();
    let denied = chains
        .entry(name)
        .or_default()
        .take(&asked.body, asked.header("x-hub-signature"));
    with_headers(if denied { 503 } else { 204 }, &[], "")
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
        let cursor = |name: &str| {
            page[name]
                .as_str()
                .expect("every push has both cursors")
                .to_owned()
        };
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
