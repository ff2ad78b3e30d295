//! Mirrors that ask another node at each request, or when theirs fails, and what they see that no
//! consumer may ever see.

use super::cluster::{NODES, Node};
use crate::kill::{
    blogs::version,
    consumer::{Mirror, client, moment},
};
use reqwest::{RequestBuilder, Response, header::HeaderMap};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

/// Time after which an answer, or the next part of a stream, does not come any more.
const SILENCE_MAX: Duration = Duration::from_secs(6);

/// Seconds for which the long poll is held.
const HELD_SECS: u64 = 4;

/// A stream lasts no longer.
const STREAM_MAX: Duration = Duration::from_secs(3600);

/// Pause before the next node is asked.
const PAUSE: Duration = Duration::from_millis(20);

/// A way to follow a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Each request goes to another node than the one before.
    EachElsewhere,
    /// Long polls, at one node until it fails.
    LongPoll,
    /// A stream of events, at one node until it fails.
    Stream,
}

/// A mirror with its task.
pub(crate) struct RovingMirror {
    pub(crate) feed: String,
    pub(crate) way: Way,
    seen: Arc<Mutex<WatchedMirror>>,
    task: JoinHandle<()>,
}

/// A mirror, and the problems that it saw.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchedMirror {
    pub(crate) mirror: Mirror,
    pub(crate) problems: Vec<String>,
    /// Requests that were refused, reset or answered 503.
    pub(crate) unanswered: usize,
    last: String,
    generation: Option<String>,
}

impl RovingMirror {
    pub(crate) fn start(nodes: &[Node], feed: &str, way: Way) -> Self {
        let bases: Vec<_> = nodes.iter().map(|node| node.reader.base.clone()).collect();
        let seen: Arc<Mutex<WatchedMirror>> = Arc::default();
        let follower = Follower {
            bases,
            feed: feed.to_owned(),
            way,
            client: client(),
            seen: seen.clone(),
            begun: Instant::now(),
        };
        Self {
            feed: feed.to_owned(),
            way,
            seen,
            task: tokio::spawn(follower.run()),
        }
    }

    /// The mirror, once it holds what it should or no more time is left.
    pub(crate) async fn settled(
        self,
        truth: &BTreeMap<String, String>,
        patience: Duration,
    ) -> WatchedMirror {
        let begun = Instant::now();
        while self.seen.lock().unwrap().mirror.contents() != *truth && begun.elapsed() < patience {
            sleep(PAUSE).await;
        }
        self.task.abort();
        self.seen.lock().unwrap().clone()
    }
}

struct Follower {
    bases: Vec<String>,
    feed: String,
    way: Way,
    client: reqwest::Client,
    seen: Arc<Mutex<WatchedMirror>>,
    begun: Instant,
}

impl Follower {
    async fn run(self) {
        let mut node = 0;
        loop {
            let is_answered = match self.way {
                Way::Stream => self.stream(node).await,
                Way::EachElsewhere => self.page(node, 1).await,
                Way::LongPoll => self.page(node, HELD_SECS).await,
            };
            if is_answered.is_none() {
                self.seen.lock().unwrap().unanswered += 1;
                sleep(PAUSE).await;
            }
            if is_answered.is_none() || self.way == Way::EachElsewhere {
                node = (node + 1) % NODES;
            }
        }
    }

    /// The answer to a request, which is none for who has to ask elsewhere.
    async fn ask(&self, node: usize, request: RequestBuilder) -> Option<Response> {
        let answer = timeout(SILENCE_MAX, request.send()).await.ok()?.ok()?;
        let mut seen = self.seen.lock().unwrap();
        match answer.status().as_u16() {
            200 => {
                seen.check_headers(answer.headers(), node);
                Some(answer)
            }
            429 | 502 | 503 => None,
            status => {
                let at = self.begun.elapsed();
                seen.problems
                    .push(format!("{at:.1?}: node {node} answered {status}"));
                None
            }
        }
    }

    async fn page(&self, node: usize, held_secs: u64) -> Option<()> {
        let last = self.seen.lock().unwrap().last.clone();
        let url = format!(
            "{}/feeds/{}.json?order=modified&timeout={held_secs}&since=cursor%3A{last}",
            self.bases[node], self.feed
        );
        let answer = self.ask(node, self.client.get(url)).await?;
        let page = serde_json::from_slice(&answer.bytes().await.ok()?).ok()?;
        self.seen.lock().unwrap().take(&page, node);
        Some(())
    }

    async fn stream(&self, node: usize) -> Option<()> {
        let last = self.seen.lock().unwrap().last.clone();
        let url = format!(
            "{}/feeds/{}.events?since=cursor%3A",
            self.bases[node], self.feed
        );
        let mut request = self.client.get(url).timeout(STREAM_MAX);
        if !last.is_empty() {
            request = request.header("last-event-id", last);
        }
        let mut answer = self.ask(node, request).await?;
        let mut text = String::new();
        loop {
            let part = timeout(SILENCE_MAX, answer.chunk()).await.ok()?.ok()??;
            text.push_str(std::str::from_utf8(&part).ok()?);
            while let Some((event, rest)) = text.split_once("\n\n") {
                self.seen.lock().unwrap().take_event(event, node);
                text = rest.to_owned();
            }
        }
    }
}

impl WatchedMirror {
    /// No commit is ever lost here: each cursor is known, and no generation begins.
    fn check_headers(&mut self, headers: &HeaderMap, node: usize) {
        let header = |name: &str| Some(headers.get(name)?.to_str().unwrap().to_owned());
        let cursor = header("smart-feed-cursor");
        if let Some(cursor) = cursor.filter(|cursor| cursor != "moved") {
            let last = &self.last;
            self.problems
                .push(format!("node {node} answers {cursor} to {last:?}"));
        }
        let generation = header("smart-feed-generation");
        if self.generation.is_some() && self.generation != generation {
            self.problems
                .push(format!("node {node} tells generation {generation:?}"));
        }
        self.generation = generation;
    }

    /// Takes a page over, and checks that nothing in it is older than what is held.
    pub(crate) fn take(&mut self, page: &Value, node: usize) {
        for item in page["items"].as_array().expect("a list of items") {
            let id = item["id"].as_str().expect("every item has an id");
            if let Some(problem) = self.problem(id, item) {
                self.problems.push(format!("node {node}: {id} {problem}"));
            }
        }
        let last = page["last_cursor"].as_str().expect("a cursor");
        if time_of(last) < time_of(&self.last) {
            self.problems
                .push(format!("node {node}: {last} comes after {}", self.last));
        }
        self.last = last.to_owned();
        self.mirror.apply(page);
    }

    fn take_event(&mut self, event: &str, node: usize) {
        let field = |name: &str| {
            let mut values = event.lines().filter_map(|line| line.strip_prefix(name));
            values.next().map(str::trim)
        };
        if field("event:") == Some("reset") {
            self.problems.push(format!("node {node}: {event}"));
        }
        let Some(id) = field("id:") else {
            return;
        };
        let item: Option<Value> = field("data:").map(|data| serde_json::from_str(data).unwrap());
        let page = json!({ "items": Vec::from_iter(item), "last_cursor": id });
        self.take(&page, node);
    }

    /// The mistake in an item, by what is held of it.
    fn problem(&self, id: &str, item: &Value) -> Option<String> {
        if item["deleted"] == true {
            return Some("is deleted, and its post is there".into());
        }
        let (held_t, held) = self.mirror.held(id)?;
        let t = moment(item["updated"].as_str().expect("a T"));
        let title = |item: &Value| item["object"]["displayName"].as_str().unwrap().to_owned();
        let (is, was) = (title(item), title(held));
        if t < *held_t || version(&is) < version(&was) {
            return Some(format!(
                "goes back from {was:?} at {held_t} to {is:?} at {t}"
            ));
        }
        if t == *held_t && item != held {
            return Some(format!("is {was:?} and {is:?} at {t}"));
        }
        None
    }
}

/// T in a cursor, Unix seconds; 0 in the empty one.
fn time_of(cursor: &str) -> f64 {
    let t = cursor.split('_').next().unwrap_or_default();
    t.parse().unwrap_or(0.0)
}
