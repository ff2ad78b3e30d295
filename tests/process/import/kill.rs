//! The real process, killed in the middle of an import again and again, beside one that nobody
//! disturbs.

use super::publisher::{Past, start};
use http::Method;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    net::{SocketAddr, TcpListener},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use testkit::{client::ask, publisher::Publisher};
use tokio::time::sleep;

/// Longer than anything here takes: pages are read a second apart.
const PATIENCE: Duration = Duration::from_secs(120);

/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// A process, which is killed when it is dropped.
struct Process {
    folder: tempfile::TempDir,
    address: SocketAddr,
    child: Child,
}

impl Process {
    fn start(publisher: &Publisher) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (port, admin_port) = (free_port(), free_port());
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let config = format!(
            "[server]\nlisten = \"127.0.0.1:{port}\"\npublic_url = \"http://{address}\"\nadmin_listen = \"127.0.0.1:{admin_port}\"\n\
             [store]\npath = {:?}\n[[feed]]\nname = \"blog\"\nid_namespace = \"blog\"\nurl = \"{}\"\n\
             import = {{ serve_after_secs = 3600, page_gap_secs = 0 }}\n",
            folder.path().join("everfeed.redb").display().to_string(),
            publisher.url("/feed")
        );
        std::fs::write(folder.path().join("everfeed.toml"), config).unwrap();
        let child = spawn(folder.path());
        Self {
            folder,
            address,
            child,
        }
    }

    /// SIGKILL, at once, and a new life.
    fn kill_and_start(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = spawn(self.folder.path());
    }

    /// Every item in the order of T, when the feed is served: id, title and content of each.
    async fn items(&self) -> Vec<[String; 3]> {
        let begun = Instant::now();
        loop {
            let target = "/feeds/blog.json?order=modified&max=1000";
            let answer = ask(self.address, Method::GET, target, &[], "").await;
            if let Some(answer) = answer.filter(|answer| answer.status == 200) {
                let page: Value = serde_json::from_slice(&answer.body).unwrap();
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let item = |item: &Value| {
                    let object = &item["object"];
                    [
                        text(&object["id"]),
                        text(&object["displayName"]),
                        text(&object["content"]),
                    ]
                };
                return page["items"].as_array().unwrap().iter().map(item).collect();
            }
            assert!(begun.elapsed() < PATIENCE, "the feed is served");
            sleep(LOOK).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn spawn(folder: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_everfeed"));
    command
        .arg("serve")
        .arg("--config")
        .arg(folder.join("everfeed.toml"));
    command
        .env("RUST_LOG", "warn")
        .stdout(Stdio::null())
        .stderr(Stdio::inherit());
    command.spawn().unwrap()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_that_is_killed_again_and_again_ends_with_what_an_undisturbed_one_does() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = number("EVERFEED_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("EVERFEED_SEED={seed}");
    let mut chance = StdRng::seed_from_u64(seed);
    let past = Past {
        archives: 7,
        posts: 6,
        bytes: 400,
        pause: Duration::from_millis(400),
    };
    let (calm, rough) = (start(past).await, start(past).await);
    let (undisturbed, mut killed) = (Process::start(&calm), Process::start(&rough));
    let mut kills = 0;
    // Around every other document, the live one first, and around the commit of them all.
    for documents in [1, 2, 4, 5, 7, 8, 8] {
        let begun = Instant::now();
        let asked = || rough.paths().into_iter().collect::<BTreeSet<_>>().len();
        while asked() < documents {
            assert!(
                begun.elapsed() < PATIENCE,
                "document {documents} is asked for"
            );
            sleep(LOOK).await;
        }
        // Every other time the publisher is still thinking.
        let most = if kills % 2 == 0 { 300 } else { 1200 };
        sleep(Duration::from_millis(chance.random_range(0..most))).await;
        killed.kill_and_start();
        kills += 1;
    }
    let (expect, found) = (undisturbed.items().await, killed.items().await);
    assert_eq!(expect.len(), past.total());
    let titles: Vec<String> = expect.iter().map(|[_, title, _]| title.clone()).collect();
    let oldest_first: Vec<String> = (0..past.total())
        .map(|post| format!("post {post}"))
        .collect();
    assert_eq!(titles, oldest_first);
    assert!(
        expect
            .iter()
            .all(|[id, _, content]| !id.is_empty() && content.len() > 300)
    );
    assert_eq!(found, expect);
    let asked = rough.paths();
    println!(
        "{kills} kills, {} requests for {} documents",
        asked.len(),
        past.archives + 1
    );
    // What is staged is not asked for again: a kill cuts off one request, the live document is read
    // last once more, and the oldest archive is asked again whether it is the oldest, and one is
    // looked for before the newest.
    assert!(asked.len() <= past.archives + 4 + kills, "{asked:?}");
    let twice = |number: usize| {
        let path = format!("/archive/{number}");
        asked.iter().filter(|asked| **asked == path).count() > 1
    };
    let is_cut =
        (1..past.archives).any(twice) || asked.iter().filter(|path| *path == "/feed").count() > 2;
    assert!(is_cut, "none of the kills cut a request off: {asked:?}");
}
