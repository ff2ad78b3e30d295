//! The mirrors of `examples/mirror/`: each ends with exactly what the feed holds, also when it was
//! killed and goes on, and so does the handler of pushes.

use crate::EVERFEED;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::sleep,
    time::Instant,
};
use testkit::{
    place::{Place, Running, free_address},
    process::Process,
    publisher::{Publisher, ok},
    wait::{GLANCE, PATIENCE},
};

/// The state in which the feed has three posts left.
const FEW: usize = 100;

/// The feed in its states: posts come, and one is edited.
fn document(state: usize) -> String {
    let post = |n: usize, text: &str| {
        format!(
            "<item><guid isPermaLink=\"false\">{n}</guid><title>Post {n}</title><description>{text}</description></item>"
        )
    };
    if state == FEW {
        let posts: String = (0..3).map(|n| post(n, "as it was")).collect();
        return format!("<rss version=\"2.0\"><channel><title>blog</title>{posts}</channel></rss>");
    }
    let mut posts: Vec<String> = (0..40 + state)
        .rev()
        .map(|n| post(n, "as it was"))
        .collect();
    if state > 0 {
        posts[5] = post(35, "edited");
    }
    format!(
        "<rss version=\"2.0\"><channel><title>blog</title>{}</channel></rss>",
        posts.concat()
    )
}

/// An everfeed that serves a feed, which its mirrors follow.
struct Followed {
    process: Process,
    feed: String,
    state: Arc<AtomicUsize>,
    _publisher: Publisher,
}

impl Followed {
    async fn start() -> Self {
        let state = Arc::new(AtomicUsize::new(0));
        let told = state.clone();
        let publisher = Publisher::of(move |_| {
            ok(
                "application/rss+xml",
                document(told.load(Ordering::Relaxed)),
            )
        })
        .await;
        let place = Place::free();
        let server = format!("public_url = \"http://{}\"", place.consumers);
        let rest = format!(
            "[hub]\ncallbacks_private = true\n[[feed]]\nname = \"blog\"\nurl = \"{}\"\n",
            publisher.url("/rss.xml")
        );
        place.configure(&server, &rest);
        let feed = format!("http://{}/feeds/blog.json", place.consumers);
        let mut process = Process::new(EVERFEED, place, "warn");
        process.start();
        let followed = Self {
            process,
            feed,
            state,
            _publisher: publisher,
        };
        followed.until_served();
        followed
    }

    fn until_served(&self) {
        let began = Instant::now();
        while self.items().is_empty() {
            assert!(began.elapsed() < PATIENCE);
            sleep(GLANCE);
        }
    }

    /// Starts a mirror or a handler, the output of which is kept apart.
    fn starts(&self, command: &mut Command) -> Running {
        self.process.place.start_logging("mirrors", command)
    }

    /// Kills everfeed, runs its commands, and starts it again.
    fn restarted_after(&mut self, commands: &[&[&str]], flags: &[&str]) {
        self.process.kill();
        for arguments in commands {
            self.command(arguments);
        }
        self.process.start_with(flags);
        self.until_served();
    }

    /// Runs a command of everfeed to its good end.
    fn command(&self, arguments: &[&str]) {
        let (code, told) = self.process.everfeed(arguments);
        assert_eq!(code, 0, "{arguments:?}: {told}");
    }

    /// The path of the backup.
    fn backup(&self) -> String {
        self.file("backup.redb").display().to_string()
    }

    /// The publisher's feed takes its next state, and everfeed reads it.
    fn publishes(&self) {
        self.state.fetch_add(1, Ordering::Relaxed);
        self.command(&["poll", "--now", "blog"]);
    }

    /// The items that the feed holds, tombstones apart, by id.
    fn items(&self) -> BTreeMap<String, Value> {
        let url = format!("{}?max=1000&deleted=no", self.feed);
        let answer = Command::new("curl").args(["-s", &url]).output().unwrap();
        let page: Value = serde_json::from_slice(&answer.stdout).unwrap_or_default();
        let items = page["items"].as_array().cloned().unwrap_or_default();
        let with_id = |item: Value| (item["id"].as_str().unwrap().to_owned(), item);
        items.into_iter().map(with_id).collect()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.process.place.path(name)
    }

    fn mirrored(&self, name: &str) -> BTreeMap<String, Value> {
        let text = fs::read(self.file(name)).unwrap_or_default();
        let state: Value = serde_json::from_slice(&text).unwrap_or_default();
        serde_json::from_value(state["items"].clone()).unwrap_or_default()
    }
}

/// The four mirrors, each as a command that wants the URL, the file and a flag.
fn mirrors() -> [(&'static str, Vec<String>); 4] {
    let example = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/mirror");
        path.join(name).display().to_string()
    };
    let built = Path::new(EVERFEED).with_file_name("examples");
    let rust = built.join("mirror");
    assert!(
        rust.exists(),
        "the example is not built: `cargo build --example mirror` first; `cargo test` without `--test` does"
    );
    [
        ("python", vec!["python3".to_owned(), example("mirror.py")]),
        ("javascript", vec!["node".to_owned(), example("mirror.mjs")]),
        ("rust", vec![rust.display().to_string()]),
        ("shell", vec!["bash".to_owned(), example("mirror.sh")]),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_mirror_ends_with_what_the_feed_holds() {
    let followed = Followed::start().await;
    for round in 0..3 {
        if round > 0 {
            followed.publishes();
        }
        let held = followed.items();
        assert_eq!(held.len(), 40 + round, "{held:?}");
        for (name, command) in mirrors() {
            let output = Command::new(&command[0])
                .args(&command[1..])
                .arg(&followed.feed)
                .arg(followed.file(name))
                .arg("--once")
                .output()
                .unwrap();
            assert!(output.status.success(), "{name}: {output:?}");
            assert_eq!(followed.mirrored(name), held, "{name} in round {round}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_mirror_that_was_killed_goes_on_and_follows_at_once() {
    let followed = Followed::start().await;
    for (name, command) in mirrors() {
        let begin = || {
            let mut started = Command::new(&command[0]);
            started.args(&command[1..]).arg(&followed.feed);
            followed.starts(started.arg(followed.file(name)))
        };
        let until = |what: &str| {
            let (held, began) = (followed.items(), Instant::now());
            while followed.mirrored(name) != held {
                assert!(began.elapsed() < PATIENCE, "{name} {what}");
                sleep(GLANCE);
            }
        };
        let first = begin();
        until("reads the feed");
        drop(first);
        followed.publishes();
        let _second = begin();
        until("goes on");
        followed.publishes();
        until("follows");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_of_a_restored_feed_drops_what_the_feed_does_not_know() {
    let mut followed = Followed::start().await;
    let mirrors = mirrors();
    let run = |followed: &Followed, name: &str, flags: &[&str]| {
        let (_, command) = mirrors.iter().find(|(known, _)| *known == name).unwrap();
        let mut command_line = Command::new(&command[0]);
        command_line.args(&command[1..]).arg(&followed.feed);
        let command_line = command_line
            .arg(followed.file(name))
            .arg("--once")
            .args(flags);
        command_line.output().unwrap()
    };
    followed.command(&["backup", &followed.backup()]);
    followed.publishes();
    for (name, _) in &mirrors {
        assert!(run(&followed, name, &[]).status.success());
        assert_eq!(followed.mirrored(name).len(), 41);
    }
    // The post that the backup does not hold is withdrawn while everfeed is down.
    followed.state.store(0, Ordering::Relaxed);
    followed.restarted_after(&[&["restore", &followed.backup()]], &[]);
    let held = followed.items();
    assert_eq!(held.len(), 40);
    for (name, _) in &mirrors {
        let output = run(&followed, name, &[]);
        assert!(output.status.success(), "{name}: {output:?}");
        assert_eq!(followed.mirrored(name), held, "{name}");
    }
    // A store that is begun anew with three posts does not erase forty in silence.
    followed.state.store(FEW, Ordering::Relaxed);
    fs::remove_file(followed.file("everfeed.redb")).unwrap();
    followed.restarted_after(&[], &["--new-store"]);
    for (name, _) in &mirrors {
        let output = run(&followed, name, &[]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && told.contains("--sweep"),
            "{name}: {told}"
        );
        assert_eq!(followed.mirrored(name).len(), 40, "{name}");
        let output = run(&followed, name, &["--sweep"]);
        assert!(output.status.success(), "{name}: {output:?}");
        assert_eq!(followed.mirrored(name), followed.items(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_handler_of_pushes_ends_with_what_the_feed_holds() {
    let mut followed = Followed::start().await;
    let callback = format!("http://{}/callback", free_address());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/mirror/push.py");
    let hub = followed.feed.replace("/feeds/blog.json", "/hub");
    let mut handler = Command::new("python3");
    handler.arg(path).args([&followed.feed, &hub, &callback]);
    let _handler = followed.starts(handler.arg(followed.file("push")).arg("s3cret"));
    let until_equal = |followed: &Followed, when: &str| {
        let (held, began) = (followed.items(), Instant::now());
        while followed.mirrored("push") != held {
            assert!(began.elapsed() < PATIENCE, "{when}");
            sleep(GLANCE);
        }
    };
    until_equal(&followed, "at first");
    followed.publishes();
    until_equal(&followed, "pushed");
    followed.command(&["backup", &followed.backup()]);
    followed.publishes();
    until_equal(&followed, "pushed again");
    // A post that the backup does not hold was pushed, and is withdrawn: a push tells of the restore.
    followed.state.store(1, Ordering::Relaxed);
    followed.restarted_after(&[&["restore", &followed.backup()]], &[]);
    assert_eq!(followed.items().len(), 41);
    until_equal(&followed, "restored");
}
