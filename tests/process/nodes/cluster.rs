//! Three everfeeds on one database, each behind a proxy of its own.

use super::proxy::DatabaseProxy;
use crate::{EVERFEED, kill::reader::Reader};
use std::{
    net::Ipv4Addr,
    ops::{Deref, DerefMut},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU8, Ordering},
    },
};
use testkit::{place::Place, postgres::PostgresServer, process::Process, wait::until};
use tokio::task::spawn_blocking;

/// Times that tables are tried to be changed.
const MIGRATIONS_MAX: usize = 6;

/// Processes on the database.
pub(crate) const NODES: usize = 3;

/// The URL that consumers see, which is one of a proxy before them.
const PUBLIC_URL: &str = "http://feeds.example";

/// Three nodes and their database.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Node>,
    server: Arc<Mutex<PostgresServer>>,
}

/// One of them.
pub(crate) struct Node {
    process: Process,
    pub(crate) proxy: DatabaseProxy,
    pub(crate) reader: Reader,
}

impl Cluster {
    /// Starts all of them with further lines of `[store]` and what stands behind it, and waits until
    /// they are ready.
    pub(crate) async fn start(lines: &str) -> Self {
        Self::on(PostgresServer::start, lines).await
    }

    /// The same on this database.
    pub(crate) async fn on(server: fn() -> PostgresServer, lines: &str) -> Self {
        let server = spawn_blocking(server).await.unwrap();
        let mut nodes = Vec::new();
        for no in 0..NODES {
            let proxy = DatabaseProxy::start(server.folder()).await;
            let mut node = Node::new(no, proxy, lines);
            node.start();
            nodes.push(node);
        }
        let cluster = Self {
            nodes,
            server: Arc::new(Mutex::new(server)),
        };
        cluster.ready().await;
        cluster
    }

    /// Waits until all are ready.
    pub(crate) async fn ready(&self) {
        for node in &self.nodes {
            node.ready().await;
        }
    }

    /// Ends the database at once, as a crash would.
    pub(crate) async fn end_database(&self) {
        self.to_database(PostgresServer::end).await;
    }

    /// Serves the database again.
    pub(crate) async fn serve_database(&self) {
        self.to_database(PostgresServer::start_again).await;
    }

    /// The answer of the database to a statement.
    pub(crate) fn ask(&self, sql: &str) -> String {
        self.server.lock().unwrap().ask(sql)
    }

    /// Changes the tables as a newer everfeed does: where nodes hold what it waits for, it begins again.
    pub(crate) fn migrate(&self, sql: &str) {
        let server = self.server.lock().unwrap();
        let is_done = (0..MIGRATIONS_MAX).any(|_| server.try_ask(sql).is_some());
        assert!(is_done, "{sql}");
    }

    /// Does this to the database.
    pub(crate) async fn to_database(
        &self,
        work: impl FnOnce(&mut PostgresServer) + Send + 'static,
    ) {
        let server = self.server.clone();
        spawn_blocking(move || work(&mut server.lock().unwrap()))
            .await
            .unwrap();
    }

    /// Ends all in order, one after the other.
    pub(crate) async fn stop(mut self) {
        for node in &mut self.nodes {
            node.end().await;
        }
    }

    /// The logs of all nodes, without warnings of the configuration.
    pub(crate) fn logs(&self) -> String {
        let mut logs = String::new();
        for (no, node) in self.nodes.iter().enumerate() {
            logs += &format!("node {no}\n");
            let log = node.place.read("log");
            let told = log.lines().filter(|line| !line.contains(" WARN feed."));
            told.for_each(|line| logs += &format!("{line}\n"));
        }
        logs
    }
}

impl Node {
    fn new(no: usize, proxy: DatabaseProxy, lines: &str) -> Self {
        let place = Place::free_of(host_of_its_own());
        let server = format!("public_url = \"{PUBLIC_URL}\"");
        // Publishers see by it which node it is.
        let rest = format!("{lines}\n[upstream]\ncontact_url = \"http://node-{no}.example/\"\n");
        let text = place.database_text(&proxy.url(), &server, &rest);
        place.write("everfeed.toml", &text);
        let level = std::env::var("EVERFEED_NODE_LOG").unwrap_or_else(|_| "warn".into());
        Self {
            reader: Reader::new(place.consumers, PUBLIC_URL),
            process: Process::new(EVERFEED, place, &level),
            proxy,
        }
    }
}

impl Deref for Node {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Node {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// A host of the loopback that no other node of this process has, nor most likely of another one.
fn host_of_its_own() -> Ipv4Addr {
    static HOSTS: AtomicU8 = AtomicU8::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let host = HOSTS.fetch_add(1, Ordering::Relaxed);
    Ipv4Addr::new(127, 1 + high % 250, low, host)
}

/// The node that calls itself so to publishers.
pub(crate) fn node_of(client: &str) -> usize {
    let number = client.split_once("node-").map(|(_, rest)| &rest[..1]);
    let number = number.and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("no node is called {client:?}"))
}

/// Waits until something is so on each node.
pub(crate) async fn on_all(nodes: &[Node], what: &str, is_so: impl AsyncFn(&Node) -> bool) {
    for node in nodes {
        until(what, async || is_so(node).await).await;
    }
}
