//! Plain questions of a consumer to an everfeed at an address: pages, walks, cursors and the hub.

use super::consumer::{Mirror, client};
use serde_json::Value;
use std::net::SocketAddr;

/// A consumer of an everfeed.
#[derive(Clone)]
pub(crate) struct Reader {
    /// The address that is asked, as a URL.
    pub(crate) base: String,
    /// The URL that everfeed knows itself by.
    public_url: String,
    pub(crate) client: reqwest::Client,
}

impl Reader {
    pub(crate) fn new(at: SocketAddr, public_url: &str) -> Self {
        Self {
            base: format!("http://{at}"),
            public_url: public_url.to_owned(),
            client: client(),
        }
    }

    /// Subscribes to a feed; it has to be accepted.
    pub(crate) async fn subscribe(&self, name: &str, callback: &str) {
        let status = self.ask_hub("subscribe", name, callback).await;
        assert_eq!(status, Some(202), "{name}");
    }

    /// Subscribes to a feed, or ends that; `None` where nobody answers.
    pub(crate) async fn ask_hub(&self, mode: &str, name: &str, callback: &str) -> Option<u16> {
        let topic = format!("{}/feeds/{name}.json?order=modified", self.public_url);
        let form = [
            ("hub.mode", mode),
            ("hub.topic", &topic),
            ("hub.callback", callback),
            ("hub.secret", "s3cret"),
            // From the beginning, so that the mirror by push can be held against everything.
            ("hub.since", "cursor:"),
        ];
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let request = self.client.post(format!("{}/hub", self.base));
        let request = request
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body);
        let answer = request.send().await.ok()?;
        Some(answer.status().as_u16())
    }

    /// An answer that no cache holds.
    pub(crate) async fn fresh_answer(&self, name: &str, since_secs: u64) -> reqwest::Response {
        let url = format!(
            "{}/feeds/{name}.json?order=created&since=time:{since_secs}&timeout=0",
            self.base
        );
        self.client.get(&url).send().await.expect("it answers")
    }

    /// Everything from `since` on, page by page; the header of the first page beside it.
    async fn pages(&self, name: &str, since: &str) -> (Mirror, Option<String>) {
        let mut mirror = Mirror::default();
        let mut next = format!(
            "{}/feeds/{name}.json?order=modified&since=cursor%3A{since}&timeout=0&max=100",
            self.base
        );
        let mut degraded = None;
        loop {
            let answer = self.client.get(&next).send().await.expect("it answers");
            assert_eq!(answer.status(), 200, "{next}");
            if let Some(value) = answer.headers().get("smart-feed-cursor") {
                degraded.get_or_insert_with(|| value.to_str().unwrap().to_owned());
            }
            let page: Value =
                serde_json::from_slice(&answer.bytes().await.expect("a whole body")).expect("JSON");
            mirror.apply(&page);
            match page["next"].as_str() {
                Some(url) => next = self.here(url) + "&timeout=0",
                None => return (mirror, degraded),
            }
        }
    }

    /// The store as a walk from the start shows it.
    pub(crate) async fn walk(&self, name: &str) -> Mirror {
        self.pages(name, "").await.0
    }

    /// A cursor is valid when what follows it is exactly what has changed since: nothing missing.
    /// After an edit of its own item it may degrade to its time, never to the start.
    pub(crate) async fn check_cursor(&self, name: &str, cursor: &str, store: &Mirror) {
        let (after, degraded) = self.pages(name, cursor).await;
        if !cursor.is_empty() {
            assert_ne!(
                degraded.as_deref(),
                Some("reset"),
                "{name}: {cursor} is not known any more"
            );
        }
        let t = |cursor: &str| {
            cursor
                .split('_')
                .next()
                .unwrap_or_default()
                .parse::<f64>()
                .unwrap_or(0.0)
        };
        let newer = store.later_than(t(cursor));
        for id in &newer {
            assert!(
                after.held(id).is_some(),
                "{name}: {id} is not behind {cursor}"
            );
        }
    }

    /// A URL that everfeed printed, at the address that is asked.
    fn here(&self, url: &str) -> String {
        let path = url.strip_prefix(&self.public_url);
        self.base.clone() + path.expect("it is under the public URL")
    }
}
