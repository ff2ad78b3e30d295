//! A blog on loopback with an Atom feed of what changed last, which says in so many words what it deleted; it knows what
//! a perfect reader would know. Not an HTTP server.

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Write as _,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// Entries, live or deleted, that the feed shows: those changed last.
const WINDOW_ENTRIES: usize = 40;
/// Bytes of a request head at most.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// A blog. It ends when it is dropped.
pub(crate) struct OldBlog {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    state: Mutex<State>,
    /// The last version that anybody was sent, or told to have.
    read: watch::Sender<u64>,
}

/// Posts by id; the title of a live one, nothing of a deleted one.
pub(crate) type Truth = BTreeMap<String, Option<String>>;

struct State {
    chance: StdRng,
    posts: Truth,
    /// Ids by their last change, the latest first.
    recent: VecDeque<String>,
    version: u64,
}

impl OldBlog {
    pub(crate) async fn start(seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = State {
            chance: StdRng::seed_from_u64(seed),
            posts: Truth::new(),
            recent: VecDeque::new(),
            version: 0,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), read: watch::Sender::new(0) });
        let serving = shared.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                // A poll that is cut off by a restart is part of the test.
                tokio::spawn(async move { drop(serve(stream, &serving).await) });
            }
        });
        Self { address, shared, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/atom.xml", self.address)
    }

    /// Changes something, at random.
    pub(crate) fn change(&self) {
        self.state().change();
    }

    /// What a perfect reader would know.
    pub(crate) fn truth(&self) -> Truth {
        self.state().posts.clone()
    }

    /// Waits until the feed as it is now has been read.
    pub(crate) async fn is_read(&self) {
        let version = self.state().version;
        let mut read = self.shared.read.subscribe();
        read.wait_for(|read| *read >= version).await.unwrap();
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OldBlog {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl State {
    fn change(&mut self) {
        self.version += 1;
        let title = Some(format!("version {} of a post & its title", self.version));
        let live = self.some(|title| title.is_some());
        let gone = self.some(|title| title.is_none());
        match (self.chance.random_range(0..10), live, gone) {
            (0..3, Some(id), _) => self.write(id, title),
            (3..5, Some(id), _) => self.write(id, None),
            (5..6, _, Some(id)) => self.write(id, title),
            _ => self.write(format!("tag:old.example,2003:{}", self.posts.len()), title),
        }
    }

    /// A post that is as asked, rolled off or not.
    fn some(&mut self, wanted: impl Fn(&Option<String>) -> bool) -> Option<String> {
        let found: Vec<_> = self.posts.iter().filter(|(_, title)| wanted(title)).map(|(id, _)| id).collect();
        found.choose(&mut self.chance).map(|id| (*id).clone())
    }

    fn write(&mut self, id: String, title: Option<String>) {
        self.recent.retain(|other| *other != id);
        self.recent.push_front(id.clone());
        self.posts.insert(id, title);
    }

    fn atom(&self) -> String {
        let mut out = String::from(
            "<?xml version=\"1.0\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\" \
             xmlns:at=\"http://purl.org/atompub/tombstones/1.0\"><id>tag:old.example,2003:</id>\
             <title>Old</title><updated>2003-01-01T00:00:00Z</updated>",
        );
        for id in self.recent.iter().take(WINDOW_ENTRIES) {
            let _ = match &self.posts[id] {
                Some(title) => writeln!(
                    out,
                    "<entry><id>{id}</id><title>{}</title><updated>2003-01-01T00:00:00Z</updated></entry>",
                    title.replace('&', "&amp;")
                ),
                None => writeln!(out, "<at:deleted-entry ref=\"{id}\" when=\"2003-01-02T00:00:00Z\"/>"),
            };
        }
        out + "</feed>"
    }
}

async fn serve(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        head.push(stream.read_u8().await?);
    }
    let (version, text) = {
        let state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.version, state.atom())
    };
    let etag = format!("\"{version}\"");
    let known = String::from_utf8_lossy(&head).contains(&format!("if-none-match: {etag}\r\n"));
    let (status, body) = if known { ("304 Not Modified", "") } else { ("200 OK", text.as_str()) };
    let length = if known { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    let answer = format!(
        "HTTP/1.1 {status}\r\netag: {etag}\r\n{length}content-type: application/atom+xml\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    shared.read.send_if_modified(|read| std::mem::replace(read, version.max(*read)) < version);
    Ok(())
}
