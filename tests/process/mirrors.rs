//! The mirrors of `examples/mirror/`: each ends with exactly what the feed holds, also when it was
//! killed and goes on, and so does the handler of pushes.

use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::sleep,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use testkit::publisher::{Publisher, ok};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

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

/// A process that is ended when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(quiet.spawn().unwrap())
    }
}

/// An everfeed that serves, and its feed.
struct House {
    folder: TempDir,
    feed: String,
    state: Arc<AtomicUsize>,
    serving: Option<Running>,
    _publisher: Publisher,
}

fn everfeed(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_everfeed"));
    command
        .args(arguments)
        .current_dir(folder)
        .env_remove("RUST_LOG");
    command
}

impl House {
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
        let free = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (consumers, operator) = {
            let listeners = [free(), free()];
            let [a, b] = listeners.map(|at| at.local_addr().unwrap());
            (a, b)
        };
        let folder = TempDir::new().unwrap();
        let text = format!(
            "[server]\nlisten = \"{consumers}\"\npublic_url = \"http://{consumers}\"\nadmin_listen = \"{operator}\"\n\
             [store]\npath = \"everfeed.redb\"\n[hub]\ncallbacks_private = true\n[[feed]]\nname = \"blog\"\nurl = \"{}\"\n",
            publisher.url("/rss.xml")
        );
        fs::write(folder.path().join("everfeed.toml"), text).unwrap();
        let serving = Running::start(&mut everfeed(folder.path(), &["serve"]));
        let house = Self {
            folder,
            serving: Some(serving),
            feed: format!("http://{consumers}/feeds/blog.json"),
            state,
            _publisher: publisher,
        };
        house.until_served();
        house
    }

    fn until_served(&self) {
        let began = Instant::now();
        while self.items().is_empty() {
            assert!(began.elapsed() < PATIENCE);
            sleep(Duration::from_millis(50));
        }
    }

    /// Kills everfeed, runs its commands, and starts it again.
    fn restarted_after(&mut self, commands: &[&[&str]], flags: &[&str]) {
        self.serving = None;
        for arguments in commands {
            self.command(arguments);
        }
        let arguments = [&["serve"], flags].concat();
        self.serving = Some(Running::start(&mut everfeed(
            self.folder.path(),
            &arguments,
        )));
        self.until_served();
    }

    /// Runs a command of everfeed to its good end.
    fn command(&self, arguments: &[&str]) {
        let output = everfeed(self.folder.path(), arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    /// The publisher's feed takes its next state, and everfeed reads it.
    fn publishes(&self) {
        self.state.fetch_add(1, Ordering::Relaxed);
        let polled = everfeed(self.folder.path(), &["poll", "--now", "blog"]).output();
        assert!(polled.unwrap().status.success());
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
        self.folder.path().join(name)
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
    let built = Path::new(env!("CARGO_BIN_EXE_everfeed")).with_file_name("examples");
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
    let house = House::start().await;
    for round in 0..3 {
        if round > 0 {
            house.publishes();
        }
        let held = house.items();
        assert_eq!(held.len(), 40 + round, "{held:?}");
        for (name, command) in mirrors() {
            let output = Command::new(&command[0])
                .args(&command[1..])
                .arg(&house.feed)
                .arg(house.file(name))
                .arg("--once")
                .output()
                .unwrap();
            assert!(output.status.success(), "{name}: {output:?}");
            assert_eq!(house.mirrored(name), held, "{name} in round {round}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_mirror_that_was_killed_goes_on_and_follows_at_once() {
    let house = House::start().await;
    for (name, command) in mirrors() {
        let begin = || {
            let mut started = Command::new(&command[0]);
            started.args(&command[1..]).arg(&house.feed);
            Running::start(started.arg(house.file(name)))
        };
        let until = |what: &str| {
            let (held, began) = (house.items(), Instant::now());
            while house.mirrored(name) != held {
                assert!(began.elapsed() < PATIENCE, "{name} {what}");
                sleep(Duration::from_millis(50));
            }
        };
        let first = begin();
        until("reads the feed");
        drop(first);
        house.publishes();
        let _second = begin();
        until("goes on");
        house.publishes();
        until("follows");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_of_a_restored_feed_drops_what_the_feed_does_not_know() {
    let mut house = House::start().await;
    let mirrors = mirrors();
    let run = |house: &House, name: &str, flags: &[&str]| {
        let (_, command) = mirrors.iter().find(|(known, _)| *known == name).unwrap();
        let mut command_line = Command::new(&command[0]);
        command_line.args(&command[1..]).arg(&house.feed);
        let command_line = command_line.arg(house.file(name)).arg("--once").args(flags);
        command_line.output().unwrap()
    };
    house.command(&["backup", "backup.redb"]);
    house.publishes();
    for (name, _) in &mirrors {
        assert!(run(&house, name, &[]).status.success());
        assert_eq!(house.mirrored(name).len(), 41);
    }
    // The post that the backup does not hold is withdrawn while everfeed is down.
    house.state.store(0, Ordering::Relaxed);
    house.restarted_after(&[&["restore", "backup.redb"]], &[]);
    let held = house.items();
    assert_eq!(held.len(), 40);
    for (name, _) in &mirrors {
        let output = run(&house, name, &[]);
        assert!(output.status.success(), "{name}: {output:?}");
        assert_eq!(house.mirrored(name), held, "{name}");
    }
    // A store that is begun anew with three posts does not erase forty in silence.
    house.state.store(FEW, Ordering::Relaxed);
    fs::remove_file(house.file("everfeed.redb")).unwrap();
    house.restarted_after(&[], &["--new-store"]);
    for (name, _) in &mirrors {
        let output = run(&house, name, &[]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && told.contains("--sweep"),
            "{name}: {told}"
        );
        assert_eq!(house.mirrored(name).len(), 40, "{name}");
        let output = run(&house, name, &["--sweep"]);
        assert!(output.status.success(), "{name}: {output:?}");
        assert_eq!(house.mirrored(name), house.items(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_handler_of_pushes_ends_with_what_the_feed_holds() {
    let mut house = House::start().await;
    let callback = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/callback", listener.local_addr().unwrap())
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/mirror/push.py");
    let hub = house.feed.replace("/feeds/blog.json", "/hub");
    let mut handler = Command::new("python3");
    handler.arg(path).args([&house.feed, &hub, &callback]);
    let _handler = Running::start(handler.arg(house.file("push")).arg("s3cret"));
    let until_equal = |house: &House, when: &str| {
        let (held, began) = (house.items(), Instant::now());
        while house.mirrored("push") != held {
            assert!(began.elapsed() < PATIENCE, "{when}");
            sleep(Duration::from_millis(50));
        }
    };
    until_equal(&house, "at first");
    house.publishes();
    until_equal(&house, "pushed");
    house.command(&["backup", "backup.redb"]);
    house.publishes();
    until_equal(&house, "pushed again");
    // A post that the backup does not hold was pushed, and is withdrawn: a push tells of the restore.
    house.state.store(1, Ordering::Relaxed);
    house.restarted_after(&[&["restore", "backup.redb"]], &[]);
    assert_eq!(house.items().len(), 41);
    until_equal(&house, "restored");
}
