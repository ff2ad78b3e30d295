//! Requests of subscribers and operators to nodes that may fail at any moment: each is made again,
//! at the next node, until it is done.

use super::cluster::{Cluster, NODES, Node};
use crate::{EVERFEED, kill::reader::Reader, kill::subscriber::Subscriber};
use http::Method;
use std::{
    path::PathBuf,
    process::Command,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use testkit::{
    client::ask,
    place::{Told, feed, run},
};
use tokio::{
    task::{JoinSet, spawn_blocking},
    time::sleep,
};

/// Seconds after which a command to a node that is stopped is given up.
const COMMAND_SECS: &str = "30";

/// Time in which each is done, also beside a build that has the machine.
const DEED_MAX: Duration = Duration::from_secs(300);

/// Time in which a callback is asked to confirm.
const CONFIRMED_MAX: Duration = Duration::from_secs(4);

/// The private feed of all nodes.
pub(crate) const PRIVATE: &str = "private";

/// Requests under way, and what came of them.
pub(crate) struct Deeds {
    begun: usize,
    tasks: JoinSet<()>,
    desk: Arc<Desk>,
}

/// The things that a request needs.
struct Desk {
    readers: Vec<Reader>,
    files: Vec<PathBuf>,
    folder: PathBuf,
    subscriber: Arc<Subscriber>,
    /// The URL of a document that does not change.
    quiet_url: String,
    done: Mutex<Done>,
}

/// The deeds that were done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    /// Feeds and callbacks of subscriptions that stay.
    pub(crate) subscribed: Vec<(String, String)>,
    /// Callbacks of subscriptions that ended.
    pub(crate) left: Vec<String>,
    pub(crate) feeds: Vec<String>,
    /// Users and their tokens.
    pub(crate) tokens: Vec<(String, String)>,
}

impl Deeds {
    pub(crate) fn new(cluster: &Cluster, subscriber: &Arc<Subscriber>, quiet_url: &str) -> Self {
        let nodes = &cluster.nodes;
        let desk = Desk {
            readers: nodes.iter().map(|node| node.reader.clone()).collect(),
            files: nodes.iter().map(|node| node.place.file()).collect(),
            folder: nodes[0].place.folder().to_owned(),
            subscriber: subscriber.clone(),
            quiet_url: quiet_url.to_owned(),
            done: Mutex::default(),
        };
        Self {
            begun: 0,
            tasks: JoinSet::new(),
            desk: Arc::new(desk),
        }
    }

    /// Begins one at a node; subscriptions are of this feed.
    pub(crate) fn begin(&mut self, node: usize, feed: &str) {
        let (no, desk, feed) = (self.begun, self.desk.clone(), feed.to_owned());
        self.begun += 1;
        self.tasks.spawn(async move {
            match no % 4 {
                0 => desk.subscribe(no, node, feed).await,
                1 => desk.apply(no, node).await,
                2 => desk.make_token(no, node).await,
                _ => desk.subscribe_for_a_while(no, node, feed).await,
            }
        });
    }

    /// All that was done, when it is done.
    pub(crate) async fn done(&mut self) -> Done {
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
        self.desk.done.lock().unwrap().clone()
    }

    /// Adds a feed at a node, and removes a user at another one: tells the times after which all
    /// nodes know it.
    pub(crate) async fn spread(
        &mut self,
        nodes: &[Node],
        user: &str,
        token: &str,
    ) -> [Duration; 2] {
        self.desk.apply(self.begun, 1).await;
        let (begun, path) = (Instant::now(), format!("/feeds/extra-{}/about", self.begun));
        for node in nodes {
            node.place.answers(&path, 200).await;
        }
        let applied = begun.elapsed();
        self.desk.command(2, &["user", "remove", user], "").await;
        let begun = Instant::now();
        for node in nodes {
            node.place
                .until("the token is refused", async || !opens(node, token).await)
                .await;
        }
        [applied, begun.elapsed()]
    }
}

/// True when a token opens the private feed at a node.
pub(crate) async fn opens(node: &Node, token: &str) -> bool {
    let bearer = format!("Bearer {token}");
    let path = format!("/feeds/{PRIVATE}.json");
    let headers = [("authorization", bearer.as_str())];
    let answer = ask(node.place.consumers, Method::GET, &path, &headers, "").await;
    answer.is_some_and(|answer| answer.status == 200)
}

impl Desk {
    async fn subscribe(&self, no: usize, node: usize, feed: String) {
        let name = format!("{feed}-{no}");
        self.ask_hub("subscribe", node, &feed, &name).await;
        self.done.lock().unwrap().subscribed.push((feed, name));
    }

    async fn subscribe_for_a_while(&self, no: usize, node: usize, feed: String) {
        let name = format!("{feed}-{no}");
        self.ask_hub("subscribe", node, &feed, &name).await;
        sleep(CONFIRMED_MAX / 2).await;
        self.subscriber.leaves(&name);
        self.ask_hub("unsubscribe", node + 1, &feed, &name).await;
        self.done.lock().unwrap().left.push(name);
    }

    /// Asks the hub until the callback has confirmed.
    async fn ask_hub(&self, mode: &str, node: usize, feed: &str, name: &str) {
        let (until, callback) = (Instant::now() + DEED_MAX, self.subscriber.callback(name));
        let is_done = || self.subscriber.chain(name).is_subscribed == (mode == "subscribe");
        let mut last = None;
        for node in node.. {
            assert!(Instant::now() < until, "{mode} {name}: {last:?}");
            last = self.readers[node % NODES]
                .ask_hub(mode, feed, &callback)
                .await;
            let asked = Instant::now();
            while last == Some(202) && asked.elapsed() < CONFIRMED_MAX && !is_done() {
                sleep(Duration::from_millis(20)).await;
            }
            if is_done() {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Adds a feed to the registry.
    async fn apply(&self, no: usize, node: usize) {
        let name = format!("extra-{no}");
        let file = self.folder.join(format!("{name}.toml"));
        let url = format!("{}?{name}", self.quiet_url);
        std::fs::write(&file, feed(&name, &url, "")).unwrap();
        let file = file.display().to_string();
        self.command(node, &["feeds", "apply", &file], "").await;
        self.done.lock().unwrap().feeds.push(name);
    }

    /// Makes a user with a token.
    async fn make_token(&self, no: usize, node: usize) {
        let user = format!("user-{no}");
        let add = ["user", "add", &user, "--password-stdin"];
        self.command(node, &add, "open sesame\n").await;
        let told = self.command(node + 1, &["token", "new", &user], "").await;
        let line = told.out.lines().find(|line| line.starts_with("token  "));
        let token = line.and_then(|line| line.split_whitespace().last());
        let token = token.unwrap_or_else(|| panic!("{told:?}")).to_owned();
        self.done.lock().unwrap().tokens.push((user, token));
    }

    /// Runs a command until it succeeds, or until it was done before.
    async fn command(&self, node: usize, arguments: &[&str], input: &str) -> Told {
        let until = Instant::now() + DEED_MAX;
        let mut last = None;
        for node in node.. {
            assert!(Instant::now() < until, "{arguments:?}: {last:?}");
            let mut command = Command::new("timeout");
            command.args([COMMAND_SECS, EVERFEED]).args(arguments);
            command.arg("--config").arg(&self.files[node % NODES]);
            let input = input.to_owned();
            let told = spawn_blocking(move || run(&mut command, input.as_bytes())).await;
            let told = told.unwrap();
            if told.code == 0 || told.err.contains("already") {
                return told;
            }
            last = Some(told);
            sleep(Duration::from_millis(100)).await;
        }
        unreachable!("there is always a next node")
    }
}
