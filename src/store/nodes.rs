//! Several processes on one store: one of them works, all of them serve. What they tell each other,
//! and the duty of this one; not how an engine carries it.

use super::StoreError;
use crate::{
    feed::record::{FeedNo, Head},
    locks::lock,
};
use bytes::Bytes;
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

/// All processes on a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodesStatus {
    /// Number of the time in which the present worker works; it grows with each change of duty.
    pub epoch: u64,
    /// The processes that were heard of in the last minute.
    pub nodes: Vec<NodeStatus>,
    /// Milliseconds from the last commit of the worker that was heard of here to its arrival;
    /// `None` where nothing came yet, or where this process works.
    pub wake_lag_ms: Option<u64>,
    /// Connections to the store in use, and the most there may be.
    pub connections: (usize, usize),
}

/// What all processes on a store have to agree on, and the name of this one.
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
    /// Asks the process that works. `Away` when no answer came within that time.
    Ask(Bytes, Duration, oneshot::Sender<Result<Bytes, StoreError>>),
    /// Tells of all processes.
    Status(oneshot::Sender<Result<NodesStatus, StoreError>>),
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

/// The end of the engine in the conversation.
#[derive(Debug)]
pub struct NodesEngine {
    /// The duty of this process. The moves that were made before it are sent first.
    pub duty: watch::Sender<Duty>,
    /// Beginning of the last look at the store that told everything. What it found is sent before.
    /// `None` before the first.
    pub heard: watch::Sender<Option<Instant>>,
    /// What other processes changed.
    pub moves: mpsc::Sender<Moves>,
    /// Questions to this process, while it works.
    pub questions: mpsc::Sender<Question>,
    /// What this process wants.
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

    /// What other processes change; given out once.
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
        self.request(|answer| NodeRequest::Introduce(face, answer))
            .await
    }

    /// Asks the process that works. `Away` when no answer came within that time.
    pub async fn ask(&self, words: Bytes, within: Duration) -> Result<Bytes, StoreError> {
        self.request(|answer| NodeRequest::Ask(words, within, answer))
            .await
    }

    /// Tells of all processes.
    pub async fn status(&self) -> Result<NodesStatus, StoreError> {
        self.request(NodeRequest::Status).await
    }

    async fn request<T>(
        &self,
        make: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> NodeRequest,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        self.requests
            .send(make(answer))
            .await
            .map_err(|_| StoreError::Closed)?;
        answered.await.map_err(|_| StoreError::Closed)?
    }
}
