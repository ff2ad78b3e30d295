//! Several processes on one store: one of them works, all of them serve. What they tell each other,
//! and the duty of this one; not how an engine carries it.

use super::{SealKey, StoreError};
use crate::{
    feed::record::{FeedNo, Head},
    locks::lock,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::{sync::Mutex, time::Duration};
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

/// The things that all processes on a store have to agree on, and the name of this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFace {
    /// Its name, for people.
    pub name: String,
    /// The URL that consumers see.
    pub public_url: String,
    /// The path prefix that consumers see.
    pub prefix: String,
}

/// A request of this process to its engine.
#[derive(Debug)]
pub enum NodeRequest {
    /// Tells the others who this one is. `Schema` where a living one disagrees with it.
    Introduce(NodeFace, oneshot::Sender<Result<(), StoreError>>),
    /// Asks the process that works (see [`Nodes::ask`]).
    Ask(Bytes, Duration, oneshot::Sender<Result<Bytes, StoreError>>),
    /// Tells of all processes.
    Status(oneshot::Sender<Result<NodesStatus, StoreError>>),
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
    /// consumers see.
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
