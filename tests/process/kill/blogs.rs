//! Old blogs that never rest: each serves an RSS window over everything it ever published, and
//! changes all the time.

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use testkit::publisher::{Publisher, ok};

/// Posts in a document.
const WINDOW_POSTS: usize = 40;
/// New posts that no document has shown yet. Publishing waits there, so that no post rolls off
/// unseen however slow the machine is, and several documents in a row may be lost to kills.
const UNSHOWN_POSTS_MAX: usize = 5;
/// Publishing and editing goes no faster.
const POSTS_PER_SECOND_MAX: u64 = 8;

pub(crate) struct Blogs {
    blogs: Vec<Arc<Blog>>,
    /// Each on a loopback address of its own.
    publishers: Vec<Publisher>,
    resting: Arc<AtomicBool>,
}

pub(crate) struct Blog {
    pub(crate) name: String,
    posts: Mutex<Vec<(String, String)>>,
    /// Letters in the description of each post.
    letters: usize,
    /// Posts that there were when a document was last sent.
    shown: AtomicUsize,
    polls: Mutex<Vec<Polled>>,
}

/// A request for a document.
#[derive(Clone, Debug)]
pub(crate) struct Polled {
    pub(crate) at: Instant,
    /// The client, as it calls itself.
    pub(crate) by: String,
}

/// The version of a post that has this title: it grows with each edit.
pub(crate) fn version(title: &str) -> u64 {
    let edit = title.split_once(", edit ").map(|(_, number)| number);
    edit.map_or(0, |number| number.parse().expect("edits have numbers"))
}

impl Blogs {
    pub(crate) async fn start(feeds: usize, seed: u64) -> Self {
        Self::of_long_posts(feeds, seed, 0).await
    }

    /// The same, with so many letters of text in each post.
    pub(crate) async fn of_long_posts(feeds: usize, seed: u64, letters: usize) -> Self {
        let resting = Arc::new(AtomicBool::new(false));
        let (mut blogs, mut publishers) = (Vec::new(), Vec::new());
        for at in 0..feeds {
            let blog = Arc::new(Blog {
                name: format!("blog-{at}"),
                posts: Mutex::default(),
                letters,
                shown: AtomicUsize::new(0),
                polls: Mutex::default(),
            });
            let host = [127, 0, 0, 11 + u8::try_from(at).unwrap()].into();
            let shown = blog.clone();
            let publisher = Publisher::start_at(host, move |asked| {
                let (at, by) = (Instant::now(), asked.header("user-agent").to_owned());
                shown.polls.lock().unwrap().push(Polled { at, by });
                ok("application/rss+xml", shown.document())
            });
            publishers.push(publisher.await);
            tokio::spawn(live(blog.clone(), resting.clone(), seed + at as u64));
            blogs.push(blog);
        }
        Self {
            blogs,
            publishers,
            resting,
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.blogs.iter().map(|blog| blog.name.as_str())
    }

    /// The names and the URLs of all.
    pub(crate) fn feeds(&self) -> impl Iterator<Item = (&str, String)> {
        self.names().zip(
            self.publishers
                .iter()
                .map(|publisher| publisher.url("/rss.xml")),
        )
    }

    /// Lines of a configuration that polls them each second, and pushes to callbacks on loopback.
    pub(crate) fn settings(&self) -> String {
        let mut lines = "[hub]\ncallbacks_private = true\n".to_owned();
        for (name, url) in self.feeds() {
            let _ = write!(
                lines,
                "[[feed]]\nname = \"{name}\"\nurl = \"{url}\"\npoll = {{ min_secs = 1, max_secs = 1 }}\n"
            );
        }
        lines
    }

    /// The polls of a feed so far.
    pub(crate) fn polls(&self, name: &str) -> Vec<Polled> {
        self.blog(name).polls.lock().unwrap().clone()
    }

    /// No more changes.
    pub(crate) fn rest(&self) {
        self.resting.store(true, Ordering::SeqCst);
    }

    /// The contents of a feed that forgets nothing: the title of every post ever published, by its
    /// id.
    pub(crate) fn truth(&self, name: &str) -> BTreeMap<String, String> {
        self.blog(name)
            .posts
            .lock()
            .unwrap()
            .iter()
            .cloned()
            .collect()
    }

    fn blog(&self, name: &str) -> &Blog {
        self.blogs.iter().find(|blog| blog.name == name).unwrap()
    }
}

async fn live(blog: Arc<Blog>, resting: Arc<AtomicBool>, seed: u64) {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut edits = 0_u64;
    while !resting.load(Ordering::SeqCst) {
        {
            let mut posts = blog.posts.lock().unwrap();
            let number = posts.len();
            let may_publish = number - blog.shown.load(Ordering::SeqCst) < UNSHOWN_POSTS_MAX;
            if number == 0 || may_publish && chance.random_bool(0.5) {
                posts.push((
                    format!("tag:{},2005:{number}", blog.name),
                    format!("post {number}"),
                ));
            } else {
                edits += 1;
                // Only what the window shows can be edited visibly.
                let at = number - 1 - chance.random_range(0..number.min(WINDOW_POSTS / 2));
                posts[at].1 = format!("post {at}, edit {edits}");
            }
        }
        let pause = 1000 / POSTS_PER_SECOND_MAX;
        tokio::time::sleep(Duration::from_millis(
            chance.random_range(pause / 2..pause * 2),
        ))
        .await;
    }
}

impl Blog {
    fn document(&self) -> String {
        let posts = self.posts.lock().unwrap();
        self.shown.store(posts.len(), Ordering::SeqCst);
        let mut out = format!(
            "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>{}</title>",
            self.name
        );
        out.push_str("<link>http://127.0.0.1/</link><description>load</description>");
        for (id, title) in posts.iter().rev().take(WINDOW_POSTS) {
            let _ = write!(
                out,
                "<item><guid isPermaLink=\"false\">{id}</guid><title>{title}</title>{}</item>",
                self.description(id)
            );
        }
        out + "</channel></rss>"
    }

    /// A text that is always the same, and that nothing makes much shorter.
    fn description(&self, id: &str) -> String {
        if self.letters == 0 {
            return String::new();
        }
        let seed = id.bytes().fold(0_u64, |seed, byte| {
            seed.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        let mut chance = StdRng::seed_from_u64(seed);
        let letters = (0..self.letters).map(|_| char::from(chance.random_range(b'a'..=b'z')));
        format!("<description>{}</description>", letters.collect::<String>())
    }
}
