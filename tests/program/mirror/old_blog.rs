//! A blog on loopback with an Atom feed of what changed last, which says in so many words what it
//! deleted; it knows what a perfect reader would know. Not an HTTP server.

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use testkit::publisher::{Publisher, with_headers};
use tokio::sync::watch;

/// Entries, live or deleted, that the feed shows: those changed last.
const WINDOW_ENTRIES: usize = 40;

/// A blog. It ends when it is dropped.
pub(crate) struct OldBlog {
    publisher: Publisher,
    shared: Arc<Shared>,
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
        let state = State {
            chance: StdRng::seed_from_u64(seed),
            posts: Truth::new(),
            recent: VecDeque::new(),
            version: 0,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            read: watch::Sender::new(0),
        });
        let serving = shared.clone();
        let publisher = Publisher::of(move |asked| {
            let state = serving.state();
            let etag = format!("\"{}\"", state.version);
            let version = state.version;
            serving
                .read
                .send_if_modified(|read| std::mem::replace(read, version.max(*read)) < version);
            if asked.header("if-none-match") == etag {
                return with_headers(304, &[("etag", &etag)], "");
            }
            with_headers(
                200,
                &[("etag", &etag), ("content-type", "application/atom+xml")],
                state.atom(),
            )
        });
        Self {
            publisher: publisher.await,
            shared,
        }
    }

    pub(crate) fn url(&self) -> String {
        self.publisher.url("/atom.xml")
    }

    /// Changes something, at random.
    pub(crate) fn change(&self) {
        self.shared.state().change();
    }

    /// The knowledge of a perfect reader.
    pub(crate) fn truth(&self) -> Truth {
        self.shared.state().posts.clone()
    }

    /// Waits until the feed as it is now has been read.
    pub(crate) async fn is_read(&self) {
        let version = self.shared.state().version;
        let mut read = self.shared.read.subscribe();
        read.wait_for(|read| *read >= version).await.unwrap();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn change(&mut self) {
        self.version += 1;
        // Every change is to be told with the next poll. A number in the middle of a title may be a
        // count of comments, and a change of it alone is held back for a day
        // (`counts_in_titles_are_no_edits` in `feed`). Behind the last word it names a post.
        let title = Some(format!("a post & its version {}", self.version));
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
        let found: Vec<_> = self
            .posts
            .iter()
            .filter(|(_, title)| wanted(title))
            .map(|(id, _)| id)
            .collect();
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
                None => writeln!(
                    out,
                    "<at:deleted-entry ref=\"{id}\" when=\"2003-01-02T00:00:00Z\"/>"
                ),
            };
        }
        out + "</feed>"
    }
}
