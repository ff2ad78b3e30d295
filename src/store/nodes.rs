//! Several processes on one store: one of them works, all of them serve. What they tell each other,
//! and the duty of this one; not how an engine carries it.

use super::{SealKey, StoreError};
use crate::{
    feed::record::{FeedNo, Head},
    locks::lock,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Mutex, time::Duration};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

/// Moves, questions and requests that wait at most; who has more waits.
const WAITING_MAX: usize = 64;

/// The duty of a process among those that share a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// It polls, pushes and changes what is stored, and no other one does.
    Working,
    /// It serves what is stored. Its changes are refused.
    Following,
}

/// Changes that another process made. What is told twice, or late, does no harm: the last word on
/// a feed is what the store holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Feeds, parts and groups that moved, with their heads.
    pub feeds: Vec<(FeedNo, Head)>,
    /// True when feeds, parts, groups or entries of the registry were added, changed or removed.
    pub catalog: bool,
    /// True when users or tokens were added or removed.
    pub accounts: bool,
    /// True when sealed rows were written or removed.
    pub sealed: bool,
}

/// A question of a process that follows, to the one that works.
#[derive(Debug)]
pub struct Question {
    /// The words of it, which the store does not understand.
    pub words: Bytes,
    /// The way back. Dropped without an answer it tells that none comes.
    pub answer: oneshot::Sender<Bytes>,
}

/// A process on the store, as the others know it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// Its name, for people.
    pub name: String,
    /// Its version of everfeed.
    pub version: String,
    /// True for the one that works.
    pub works: bool,
    /// True for this process.
    pub is_this: bool,
    /// Seconds since it was last heard of, by the clock of the store.
    pub silent_secs: u64,
    /// Its configuration beside that of the process that works; `None` where it told none.
    pub differences: Option<NodeDifferences>,
}

/// The configuration of a process beside that of the process that works.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeDifferences {
    /// Digest of everything in its file that all processes have to agree on.
    pub file: String,
    /// Feeds of its file that the process that works lacks: nobody polls them.
    pub only_here: ReportedFeeds,
    /// Feeds that the process that works has, and its file lacks: it answers 503.
    pub lacking: ReportedFeeds,
}

/// Feeds, the first of them by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedFeeds {
    /// Number of them.
    pub total: usize,
    /// Names of the first.
    pub names: Vec<String>,
}

impl ReportedFeeds {
    /// Names that are told at most; the others are counted.
    const NAMES_MAX: usize = 10;

    /// The number of them, with its noun.
    fn counted(&self) -> String {
        match self.total {
            1 => "1 feed".to_owned(),
            total => format!("{total} feeds"),
        }
    }

    /// Those of these names.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut told = Self::default();
        for name in names {
            if told.total < Self::NAMES_MAX {
                told.names.push(name.to_owned());
            }
            told.total += 1;
        }
        told
    }
}

impl fmt::Display for ReportedFeeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names.join(", "))?;
        match self.total.saturating_sub(self.names.len()) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// All processes on a store. What another version does not tell of them is as if it were empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodesStatus {
    /// Number of the time in which the present worker works; it grows with each change of duty.
    pub epoch: u64,
    /// The processes that were heard of in the last minute.
    pub nodes: Vec<NodeStatus>,
    /// Milliseconds from the last commit of the worker that was heard of here to its arrival;
    /// `None` where nothing came yet, or where this process works.
    pub wake_lag_ms: Option<u64>,
    /// Connections to the store in use here.
    pub connections: usize,
    /// Connections to the store at most.
    pub connections_max: usize,
}

impl NodesStatus {
    /// Seconds after which a process is taken for one that has ended.
    pub const SILENT_SECS: u64 = 10;

    /// The feeds that the process that works has and another one lacks, or the other way round, in a
    /// sentence each.
    pub fn missing_feeds(&self) -> Vec<String> {
        let Some((worker, _)) = self.worker() else {
            return Vec::new();
        };
        let mut told = Vec::new();
        for (
            node,
            NodeDifferences {
                only_here, lacking, ..
            },
        ) in self.living()
        {
            let (name, works) = (&node.name, &worker.name);
            if only_here.total > 0 {
                told.push(format!(
                    "nodes: {works} polls and pushes, and its file lacks {} that {name} has: {only_here}. They are not polled. \
                     {SAME_FILE}",
                    only_here.counted()
                ));
            }
            if lacking.total > 0 {
                told.push(format!(
                    "nodes: the file of {name} lacks {} that {works} polls: {lacking}. {name} answers 503 for them. \
                     {SAME_FILE}",
                    lacking.counted()
                ));
            }
        }
        told
    }

    /// The processes whose files differ from that of the one that works, in a sentence.
    pub fn differing_files(&self) -> Option<String> {
        let (worker, of_worker) = self.worker()?;
        // Another version may write the same settings in another way.
        let is_comparable = |node: &NodeStatus| node.version == worker.version;
        let is_other = |file: &str| !file.is_empty() && file != of_worker.file;
        let others = self
            .living()
            .filter(|(node, differences)| is_comparable(node) && is_other(&differences.file));
        let others: Vec<&str> = others.map(|(node, _)| node.name.as_str()).collect();
        if others.is_empty() || of_worker.file.is_empty() {
            return None;
        }
        Some(format!(
            "nodes: the configuration file of {} differs from the file of {}, which polls and pushes. {SAME_FILE}",
            others.join(", "),
            worker.name
        ))
    }

    fn living(&self) -> impl Iterator<Item = (&NodeStatus, &NodeDifferences)> {
        let living = self.nodes.iter();
        let living = living.filter(|node| node.silent_secs < Self::SILENT_SECS);
        living.filter_map(|node| Some((node, node.differences.as_ref()?)))
    }

    fn worker(&self) -> Option<(&NodeStatus, &NodeDifferences)> {
        self.living().find(|(node, _)| node.works)
    }
}

/// The remedy for nodes that differ.
const SAME_FILE: &str = "Give all nodes the same file, and reload each";

/// The things that all processes on a store have to agree on, and the name of this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFace {
    /// Its name, for people.
    pub name: String,
    /// The URL that consumers see.
    pub public_url: String,
    /// The path prefix that consumers see.
    pub prefix: String,
    /// The roots of the URLs that consumers saw before: each a public URL with its prefix.
    pub former: Vec<String>,
}

impl NodeFace {
    /// The root of the URLs that consumers see.
    pub fn root(&self) -> String {
        root_of(&self.public_url, &self.prefix)
    }

    /// Refuses a database whose consumers see the URLs of this root, if it is neither ours nor a former
    /// one of ours.
    pub fn check_root(&self, held: &str) -> Result<(), StoreError> {
        let root = self.root();
        if held == root || self.was_at(held) {
            return Ok(());
        }
        Err(StoreError::Schema(format!(
            "the database holds the feeds of {held} (public_url and prefix), and this everfeed is at {root}. \
             Give this everfeed a database of its own; or, if the address has changed, give all nodes \
             server.former_public_urls = [\"{held}\"]"
        )))
    }

    /// True where consumers saw this root before.
    pub fn was_at(&self, root: &str) -> bool {
        self.former.iter().any(|former| root_of(former, "") == root)
    }
}

/// What a database is beside its tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseSurroundings {
    /// Its name.
    pub name: String,
    /// True where every role of its server may connect to it.
    pub admits_everybody: bool,
    /// Roles that may connect to it by name, other than its owner and the one that we are.
    pub admits: Vec<String>,
    /// The root of the URLs that its consumers see; `None` before the first node was there.
    pub root: Option<String>,
}

impl DatabaseSurroundings {
    /// The roles that can do harm, and the remedy, in a sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let name = self.name.replace('"', "\"\"");
        let can = "can hold the locks by which nodes agree on the one that works, and so keep all of them from working";
        let mut told = Vec::new();
        if self.admits_everybody {
            told.push(format!(
                "every role of the PostgreSQL server may connect to the database, and {can}: \
                 REVOKE CONNECT ON DATABASE \"{name}\" FROM PUBLIC"
            ));
        }
        for role in &self.admits {
            let quoted = role.replace('"', "\"\"");
            told.push(format!(
                "role `{role}` may connect to the database, and {can}: \
                 REVOKE CONNECT ON DATABASE \"{name}\" FROM \"{quoted}\", unless it is yours"
            ));
        }
        told
    }
}

/// The root of a public URL with a prefix, in one spelling.
pub fn root_of(public_url: &str, prefix: &str) -> String {
    let (url, prefix) = (public_url.trim_end_matches('/'), prefix.trim_matches('/'));
    if prefix.is_empty() {
        url.to_owned()
    } else {
        format!("{url}/{prefix}")
    }
}

/// A request of this process to its engine.
#[derive(Debug)]
pub enum NodeRequest {
    /// Tells the others who this one is. `Schema` where a living one disagrees with it, or the
    /// database is that of others.
    Introduce(NodeFace, oneshot::Sender<Result<(), StoreError>>),
    /// Asks the process that works (see [`Nodes::ask`]).
    Ask(Bytes, Duration, oneshot::Sender<Result<Bytes, StoreError>>),
    /// Tells of all processes.
    Status(oneshot::Sender<Result<NodesStatus, StoreError>>),
    /// Tells the others how the configuration of this one differs.
    Differ(NodeDifferences),
    /// Reads which feeds of the store the process that works does not serve; `None` where it told
    /// none.
    ReadWithdrawn(oneshot::Sender<Result<Option<Vec<FeedNo>>, StoreError>>),
    /// Tells them. `Away` in a process that follows.
    WriteWithdrawn(Vec<FeedNo>, oneshot::Sender<Result<(), StoreError>>),
    /// Reads the sealed row of a name; `None` where there is none.
    ReadSealed(String, oneshot::Sender<Result<Option<Vec<u8>>, StoreError>>),
    /// Writes the sealed row of a name, or removes it. `Away` in a process that follows.
    WriteSealed(
        String,
        Option<Vec<u8>>,
        oneshot::Sender<Result<(), StoreError>>,
    ),
}

/// The end of this process in the conversation.
#[derive(Debug)]
pub struct Nodes {
    duty: watch::Receiver<Duty>,
    heard: watch::Receiver<Option<Instant>>,
    moves: Mutex<Option<mpsc::Receiver<Moves>>>,
    questions: Mutex<Option<mpsc::Receiver<Question>>>,
    requests: mpsc::Sender<NodeRequest>,
}

/// Rows that all processes on a store share and nobody else can read. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SealedRows {
    key: SealKey,
    requests: mpsc::Sender<NodeRequest>,
}

/// The end of the engine in the conversation.
#[derive(Debug)]
pub struct NodesEngine {
    /// The duty of this process. The moves that were made before it are sent first.
    pub duty: watch::Sender<Duty>,
    /// Beginning of the last look at the store that told everything. What it found is sent before.
    /// `None` before the first.
    pub heard: watch::Sender<Option<Instant>>,
    /// Changes of other processes.
    pub moves: mpsc::Sender<Moves>,
    /// Questions to this process, while it works.
    pub questions: mpsc::Sender<Question>,
    /// Requests of this process.
    pub requests: mpsc::Receiver<NodeRequest>,
}

impl Nodes {
    /// Both ends of a conversation, for a process with this duty.
    pub fn pair(duty: Duty) -> (Self, NodesEngine) {
        let (duty_told, duty) = watch::channel(duty);
        let (heard_told, heard) = watch::channel(None);
        let (moves_told, moves) = mpsc::channel(WAITING_MAX);
        let (questions_told, questions) = mpsc::channel(WAITING_MAX);
        let (requests, requests_heard) = mpsc::channel(WAITING_MAX);
        let nodes = Self {
            duty,
            heard,
            moves: Mutex::new(Some(moves)),
            questions: Mutex::new(Some(questions)),
            requests,
        };
        let engine = NodesEngine {
            duty: duty_told,
            heard: heard_told,
            moves: moves_told,
            questions: questions_told,
            requests: requests_heard,
        };
        (nodes, engine)
    }

    /// The duty of this process, and each change of it.
    pub fn duty(&self) -> watch::Receiver<Duty> {
        self.duty.clone()
    }

    /// Beginning of the last look at the store after which all was told that it found, and each
    /// change of it.
    pub fn heard(&self) -> watch::Receiver<Option<Instant>> {
        self.heard.clone()
    }

    /// Changes of other processes; given out once.
    pub fn take_moves(&self) -> Option<mpsc::Receiver<Moves>> {
        lock(&self.moves).take()
    }

    /// The questions to this process while it works; given out once.
    pub fn take_questions(&self) -> Option<mpsc::Receiver<Question>> {
        lock(&self.questions).take()
    }

    /// Tells the others who this process is. `Schema` where a living one disagrees with it on what
    /// consumers see, or those that were there before did.
    pub async fn introduce(&self, face: NodeFace) -> Result<(), StoreError> {
        request(&self.requests, |answer| {
            NodeRequest::Introduce(face, answer)
        })
        .await
    }

    /// Asks the process that works. `Away` when no answer came within that time, and nothing was
    /// done; `OutcomeUnknown` when it may have been done.
    pub async fn ask(&self, words: Bytes, within: Duration) -> Result<Bytes, StoreError> {
        request(&self.requests, |answer| {
            NodeRequest::Ask(words, within, answer)
        })
        .await
    }

    /// Tells of all processes.
    pub async fn status(&self) -> Result<NodesStatus, StoreError> {
        request(&self.requests, NodeRequest::Status).await
    }

    /// Tells the others how the configuration of this process differs, with its next sign of life.
    pub async fn differ(&self, differences: NodeDifferences) -> Result<(), StoreError> {
        let sent = self.requests.send(NodeRequest::Differ(differences)).await;
        sent.map_err(|_| StoreError::Closed)
    }

    /// The feeds of the store that the process that works does not serve; `None` where it has not
    /// told them.
    pub async fn withdrawn(&self) -> Result<Option<Vec<FeedNo>>, StoreError> {
        request(&self.requests, NodeRequest::ReadWithdrawn).await
    }

    /// Tells the others which feeds of the store this process does not serve, as the one that works.
    /// `Away` in a process that follows.
    pub async fn tell_withdrawn(&self, withdrawn: Vec<FeedNo>) -> Result<(), StoreError> {
        let tell = |answer| NodeRequest::WriteWithdrawn(withdrawn, answer);
        request(&self.requests, tell).await
    }

    /// The rows that are sealed with this key.
    pub fn sealed_rows(&self, key: SealKey) -> SealedRows {
        SealedRows {
            key,
            requests: self.requests.clone(),
        }
    }
}

impl SealedRows {
    /// The value of a row. `Schema` where another key sealed it, `Damaged` where it was changed.
    pub async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let read = |answer| NodeRequest::ReadSealed(name.to_owned(), answer);
        let sealed = request(&self.requests, read).await?;
        sealed
            .map(|sealed| self.key.open(name, &sealed))
            .transpose()
    }

    /// Keeps a value in the place of the one before it. `Away` in a process that follows.
    pub async fn write(&self, name: &str, value: &[u8]) -> Result<(), StoreError> {
        self.put(name, Some(self.key.seal(name, value)?)).await
    }

    /// Removes a row, if it is there. `Away` in a process that follows.
    pub async fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.put(name, None).await
    }

    async fn put(&self, name: &str, sealed: Option<Vec<u8>>) -> Result<(), StoreError> {
        let put = |answer| NodeRequest::WriteSealed(name.to_owned(), sealed, answer);
        request(&self.requests, put).await
    }
}

async fn request<T>(
    requests: &mpsc::Sender<NodeRequest>,
    make: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> NodeRequest,
) -> Result<T, StoreError> {
    let (answer, answered) = oneshot::channel();
    let sent = requests.send(make(answer)).await;
    sent.map_err(|_| StoreError::Closed)?;
    answered.await.map_err(|_| StoreError::Closed)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_has_one_spelling_and_former_ones_are_known_in_each() {
        let face = |public_url: &str, prefix: &str, former: &[&str]| NodeFace {
            name: "one".into(),
            public_url: public_url.into(),
            prefix: prefix.into(),
            former: former.iter().map(|root| (*root).to_owned()).collect(),
        };
        for (public_url, prefix, root) in [
            ("https://a.example/", "", "https://a.example"),
            ("https://a.example", "/", "https://a.example"),
            ("https://a.example/", "/smart", "https://a.example/smart"),
            (
                "https://a.example/x/",
                "smart/",
                "https://a.example/x/smart",
            ),
        ] {
            assert_eq!(face(public_url, prefix, &[]).root(), root);
        }
        let moved = face("https://b.example/", "", &["https://a.example/smart/"]);
        assert!(moved.was_at("https://a.example/smart"));
        assert!(!moved.was_at("https://a.example") && !moved.was_at("https://b.example"));
    }

    #[test]
    fn nodes_that_have_different_feeds_or_files_are_told_beside_the_one_that_works() {
        let node = |name: &str, file: &str, only_here: &[&str], lacking: &[&str]| NodeStatus {
            name: name.into(),
            differences: Some(NodeDifferences {
                file: file.into(),
                only_here: ReportedFeeds::of(only_here.iter().copied()),
                lacking: ReportedFeeds::of(lacking.iter().copied()),
            }),
            ..NodeStatus::default()
        };
        let told = |nodes: Vec<NodeStatus>| {
            let status = NodesStatus {
                nodes,
                ..NodesStatus::default()
            };
            (status.missing_feeds(), status.differing_files())
        };
        let worker = NodeStatus {
            works: true,
            ..node("one", "a", &[], &[])
        };
        let same = node("two", "a", &[], &[]);
        assert_eq!(told(vec![worker.clone(), same.clone()]), (Vec::new(), None));
        let other = node("three", "b", &["old"], &["new", "newer"]);
        let (feeds, files) = told(vec![worker.clone(), same, other.clone()]);
        assert_eq!(feeds.len(), 2, "{feeds:?}");
        assert!(
            feeds[0]
                .contains("one polls and pushes, and its file lacks 1 feed that three has: old.")
        );
        assert!(feeds[1].contains("three lacks 2 feeds that one polls: new, newer."));
        assert!(
            files
                .unwrap()
                .contains("file of three differs from the file of one")
        );
        // Those that are gone, of another version, or silent about it are not compared.
        let gone = NodeStatus {
            silent_secs: 60,
            ..other
        };
        let older = NodeStatus {
            version: "0.0.1".into(),
            ..node("four", "c", &[], &[])
        };
        let silent = NodeStatus {
            name: "five".into(),
            ..NodeStatus::default()
        };
        assert_eq!(told(vec![worker, gone, older, silent]), (Vec::new(), None));
    }

    #[test]
    fn the_first_feeds_are_told_by_name_and_the_others_counted() {
        let names: Vec<String> = (10..25).map(|n| format!("f{n}")).collect();
        let told = ReportedFeeds::of(names.iter().map(String::as_str));
        assert!(told.to_string().ends_with("f18, f19 and 5 more"), "{told}");
        assert_eq!(ReportedFeeds::of(["a", "b"]).to_string(), "a, b");
    }
}
