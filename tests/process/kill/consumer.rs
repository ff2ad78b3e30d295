//! A consumer that follows the protocol by long poll, whatever happens to the other side, and the
//! mirror it keeps.

use super::rig::Rig;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, Once},
    time::{Duration, Instant},
};

/// Items by id, as a consumer knows them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mirror {
    items: BTreeMap<String, (f64, Value)>,
    cursors: BTreeSet<String>,
    pub(crate) pages: usize,
    /// Times that it was read anew, because its cursor was `ahead`.
    pub(crate) anew: usize,
}

impl PartialEq for Mirror {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl Mirror {
    /// Whole objects replace what was there: that is all a consumer has to do.
    pub(crate) fn apply(&mut self, page: &Value) {
        for item in page["items"].as_array().expect("a list of items") {
            let id = item["id"]
                .as_str()
                .expect("every item has an id")
                .to_owned();
            let t = moment(item["updated"].as_str().expect("every item has a T"));
            self.items.insert(id, (t, item.clone()));
        }
        self.cursors.insert(
            page["last_cursor"]
                .as_str()
                .expect("every page has a cursor")
                .to_owned(),
        );
        self.pages += 1;
    }

    /// Upstream's id and title of every live item.
    pub(crate) fn contents(&self) -> BTreeMap<String, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let live = self
            .items
            .values()
            .filter(|(_, item)| item["deleted"] != Value::Bool(true));
        live.map(|(_, item)| {
            (
                text(&item["object"]["id"]),
                text(&item["object"]["displayName"]),
            )
        })
        .collect()
    }

    pub(crate) fn cursors(&self) -> &BTreeSet<String> {
        &self.cursors
    }

    /// T in Unix seconds, and the whole item.
    pub(crate) fn held(&self, id: &str) -> Option<&(f64, Value)> {
        self.items.get(id)
    }

    pub(crate) fn later_than(&self, t: f64) -> Vec<String> {
        self.items
            .iter()
            .filter(|(_, (at, _))| *at > t + 1e-6)
            .map(|(id, _)| id.clone())
            .collect()
    }
}

/// Unix seconds of an RFC 3339 moment.
pub(crate) fn moment(text: &str) -> f64 {
    let at = chrono::DateTime::parse_from_rfc3339(text).expect("RFC 3339");
    at.timestamp_micros() as f64 / 1e6
}

pub(crate) struct Consumer {
    mirror: Arc<Mutex<Mirror>>,
    task: tokio::task::JoinHandle<()>,
}

impl Consumer {
    pub(crate) fn start(rig: &Rig, name: &str) -> Self {
        let mirror = Arc::new(Mutex::new(Mirror::default()));
        let url = format!(
            "{}/feeds/{name}.json?order=modified&timeout=2&since=cursor%3A",
            rig.reader.base
        );
        let held = mirror.clone();
        let task = tokio::spawn(async move {
            let client = client();
            let mut last = String::new();
            loop {
                match page(&client, &format!("{url}{last}")).await {
                    // What it holds is of another generation: it reads the feed anew.
                    Some((_, true)) => {
                        let mut mirror = held.lock().unwrap();
                        let anew = mirror.anew + 1;
                        *mirror = Mirror {
                            anew,
                            ..Mirror::default()
                        };
                        last.clear();
                    }
                    Some((page, false)) => {
                        held.lock().unwrap().apply(&page);
                        last = page["last_cursor"].as_str().unwrap().to_owned();
                    }
                    None => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        });
        Self { mirror, task }
    }

    /// The mirror as it is now.
    pub(crate) fn now(&self) -> Mirror {
        self.mirror.lock().unwrap().clone()
    }

    /// The mirror, once it holds what it should or no more time is left.
    pub(crate) async fn settled(
        self,
        truth: &BTreeMap<String, String>,
        patience: Duration,
    ) -> Mirror {
        let begun = Instant::now();
        while self.mirror.lock().unwrap().contents() != *truth && begun.elapsed() < patience {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let mirror = self.now();
        self.end();
        mirror
    }

    /// Ends it.
    pub(crate) fn end(self) {
        self.task.abort();
    }
}

/// A page, unless the other side is dead or not ready; true when the cursor is `ahead`.
async fn page(client: &reqwest::Client, url: &str) -> Option<(Value, bool)> {
    let answer = client
        .get(url)
        .send()
        .await
        .ok()
        .filter(|answer| answer.status() == 200)?;
    let header = answer.headers().get("smart-feed-cursor");
    let is_ahead = header.is_some_and(|value| value == "ahead");
    let page = serde_json::from_slice(&answer.bytes().await.ok()?).ok()?;
    Some((page, is_ahead))
}

/// An HTTP client that speaks to loopback only, straight.
pub(crate) fn client() -> reqwest::Client {
    static CRYPTO: Once = Once::new();
    CRYPTO.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    reqwest::Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(10))
        .build()
        .expect("a client")
}
