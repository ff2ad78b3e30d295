//! Users and tokens of the real program, from the command line to the wire: every scheme, at once
//! when it is made and no more once it is taken away, for pulls and pushes; and no credential in
//! the log.
//!
//! Rows: SF-130, SF-131; LEGACY U-1, U-2, U-4, U-5, U-8, U-9.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chrono::{SecondsFormat, Utc};
use http::Method;
use serde_json::Value;
use sha1::{Digest as _, Sha1};
use std::{
    fs::File,
    io::Write as _,
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::{Duration, Instant},
};
use tempfile::TempDir;
use testkit::{
    client::{self, ask},
    publisher::{Answer, Publisher, ok},
};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at something that is about to happen.
const GLANCE: Duration = Duration::from_millis(20);
/// The login password.
const PASSWORD: &str = "öpen sesame";

fn rss(posts: u16) -> Answer {
    let post = |n: u16| format!("<item><guid>{n}</guid><title>Post {n}</title></item>");
    let posts: String = (1..=posts).rev().map(post).collect();
    let text = format!("<rss version=\"2.0\"><channel><title>blog</title>{posts}</channel></rss>");
    ok("application/rss+xml", text.as_bytes())
}

/// A process that serves `open` and the private feed `closed`; it is ended when it is dropped.
struct Running {
    folder: TempDir,
    child: Child,
    address: SocketAddr,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    async fn start(publisher: &Publisher) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let free = || {
            std::net::TcpListener::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap()
        };
        let (address, admin) = (free(), free());
        let text = format!(
            "[server]\nlisten = \"{address}\"\nadmin_listen = \"{admin}\"\npublic_url = \"http://{address}/\"\n\
             [hub]\ncallbacks_private = true\n\
             [[feed]]\nname = \"open\"\nurl = \"{}\"\nimport = {{ pages_max = 0 }}\n\
             [[feed]]\nname = \"closed\"\nurl = \"{}\"\naccess = \"private\"\nimport = {{ pages_max = 0 }}\n",
            publisher.url("/open"),
            publisher.url("/closed")
        );
        std::fs::write(folder.path().join("everfeed.toml"), text).unwrap();
        let child = Self::serve(&folder);
        let running = Self {
            folder,
            child,
            address,
        };
        running.is_up().await;
        running
    }

    fn serve(folder: &TempDir) -> Child {
        let log = File::options()
            .create(true)
            .append(true)
            .open(folder.path().join("log"))
            .unwrap();
        let mut serve = Command::new(env!("CARGO_BIN_EXE_everfeed"));
        serve
            .arg("serve")
            .arg("--config")
            .arg(folder.path().join("everfeed.toml"));
        serve
            .env("RUST_LOG", "trace")
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    async fn is_up(&self) {
        self.until(async || {
            let answer = ask(self.address, Method::GET, "/feeds/open", &[], "").await;
            answer.is_some_and(|answer| answer.status == 200)
        })
        .await;
    }

    async fn until(&self, is_so: impl AsyncFn() -> bool) {
        let started = Instant::now();
        while !is_so().await {
            assert!(started.elapsed() < PATIENCE, "{}", self.log());
            tokio::time::sleep(GLANCE).await;
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("everfeed.toml")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Runs a command: its exit code, and all that it printed.
    fn everfeed(&self, arguments: &[&str]) -> (i32, String) {
        self.everfeed_told(arguments, "")
    }

    fn everfeed_told(&self, arguments: &[&str], input: &str) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_everfeed"));
        command.args(arguments).arg("--config").arg(self.file());
        let piped = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8([output.stdout, output.stderr].concat()).unwrap(),
        )
    }

    /// Runs a command that succeeds, and takes what it prints behind a word.
    fn made(&self, arguments: &[&str], input: &str, word: &str) -> String {
        let (code, told) = self.everfeed_told(arguments, input);
        assert_eq!(code, 0, "{told}");
        let line = told.lines().find_map(|line| line.strip_prefix(word));
        line.unwrap_or_else(|| panic!("{told}")).trim().to_owned()
    }

    async fn get(&self, target: &str, headers: &[(&str, &str)]) -> client::Answer {
        ask(self.address, Method::GET, target, headers, "")
            .await
            .unwrap()
    }

    async fn status(&self, target: &str, headers: &[(&str, &str)]) -> u16 {
        self.get(target, headers).await.status
    }
}

fn basic(user: &str, password: &str) -> String {
    format!(
        "Basic {}",
        BASE64_STANDARD.encode(format!("{user}:{password}"))
    )
}

/// `X-WSSE` over a nonce, as an old client makes it.
fn wsse(nonce: &str, password: &str) -> String {
    let created = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
    let digest = BASE64_STANDARD.encode(Sha1::digest(format!("{nonce}{created}{password}")));
    format!(
        "UsernameToken Username=\"alice\", PasswordDigest=\"{digest}\", Nonce=\"{nonce}\", Created=\"{created}\""
    )
}

fn text(answer: &client::Answer) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_known_by_every_scheme_from_its_making_to_its_removal() {
    let posts = Arc::new(AtomicU16::new(3));
    let publisher = {
        let posts = posts.clone();
        Publisher::of(move |_| rss(posts.load(Ordering::Relaxed))).await
    };
    let running = Running::start(&publisher).await;
    for name in ["closed", "absent"] {
        let answer = running.get(&format!("/feeds/{name}"), &[]).await;
        assert_eq!(answer.status, 401, "{name}");
        assert_eq!(answer.headers.get_all("www-authenticate").iter().count(), 3);
    }
    let feed_password = running.made(
        &["user", "add", "alice", "--password-stdin"],
        &format!("{PASSWORD}\n"),
        "feed password",
    );
    let bearer = running.made(&["token", "new", "alice"], "", "token  ");
    let bearer = bearer.split_whitespace().last().unwrap().to_owned();
    let (_, told) = running.everfeed(&["token", "list"]);
    assert!(
        told.contains("alice") && told.contains("bearer") && !told.contains(&bearer),
        "{told}"
    );
    let url = running.made(&["token", "new", "alice", "--url"], "", "secret URL");
    let secret = url
        .strip_prefix(&format!("http://{}", running.address))
        .unwrap()
        .to_owned();

    // Each scheme, at once.
    let with_basic = basic("alice", PASSWORD);
    let with_bearer = format!("Bearer {bearer}");
    let profile = ("authorization", "WSSE profile=\"cal\"");
    let closed = "/feeds/closed.json";
    running
        .until(async || {
            running
                .status(closed, &[("authorization", &with_bearer)])
                .await
                == 200
        })
        .await;
    assert_eq!(
        running
            .status(closed, &[("authorization", &with_basic)])
            .await,
        200
    );
    // A digest of the second of the start could have been seen before it. Nothing is tried until
    // that is over: attempts that fail are counted, and slowed.
    let second = Utc::now().timestamp();
    running
        .until(async || Utc::now().timestamp() > second)
        .await;
    let signed = wsse("d36e316282959a9ed4c89851497a717f", &feed_password);
    assert_eq!(
        running
            .status(closed, &[profile, ("x-wsse", &signed)])
            .await,
        200
    );
    assert_eq!(
        running
            .status(closed, &[profile, ("x-wsse", &signed)])
            .await,
        401,
        "U-8"
    );
    assert_eq!(
        running
            .status(
                closed,
                &[("authorization", &basic("alice", &feed_password))]
            )
            .await,
        401,
        "U-9"
    );
    let page = running.get(&format!("{}/closed.json", secret), &[]).await;
    assert_eq!(page.status, 200);
    assert!(text(&page).contains(&secret) && page.header("cache-control").starts_with("private"));

    // Lists and validators.
    let listed = async |headers: &[(&str, &str)]| {
        let list: Value =
            serde_json::from_slice(&running.get("/feeds", headers).await.body).unwrap();
        list["feeds"].as_array().unwrap().len()
    };
    assert_eq!(
        (
            listed(&[]).await,
            listed(&[("authorization", &with_basic)]).await
        ),
        (1, 2)
    );
    let etag = running
        .get(closed, &[("authorization", &with_basic)])
        .await
        .header("etag")
        .to_owned();
    for (credentials, expect) in [(with_basic.as_str(), 304), ("Bearer wrong", 401)] {
        let headers = [("authorization", credentials), ("if-none-match", &etag)];
        assert_eq!(running.status(closed, &headers).await, expect);
    }

    // A subscription, and its end.
    let reader = Publisher::of(|asked| {
        let url = url::Url::parse(&format!("http://x{}", asked.path())).unwrap();
        let challenge = url.query_pairs().find(|(name, _)| name == "hub.challenge");
        ok(
            "text/plain",
            challenge
                .map(|(_, challenge)| challenge.into_owned())
                .unwrap_or_default(),
        )
    })
    .await;
    let form = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("hub.mode", "subscribe")
        .append_pair(
            "hub.topic",
            &format!(
                "http://{}/feeds/closed.atom?order=modified",
                running.address
            ),
        )
        .append_pair("hub.callback", &reader.url("/cb"))
        .finish();
    let subscribe = async |authorization: &str| {
        let headers = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("authorization", authorization),
        ];
        ask(running.address, Method::POST, "/hub", &headers, &form)
            .await
            .unwrap()
    };
    assert_eq!(subscribe("Bearer wrong").await.status, 401);
    let accepted = subscribe(&with_basic).await;
    assert_eq!(accepted.status, 202, "{}", text(&accepted));
    let seen = |part: &'static str| reader.requests().iter().any(|head| head.contains(part));
    running.until(async || seen("hub.challenge")).await;
    running
        .until(async || running.everfeed(&["status"]).1.contains("closed"))
        .await;
    posts.store(4, Ordering::Relaxed);
    let (code, told) = running.everfeed(&["poll", "closed", "--now"]);
    assert_eq!(code, 0, "{told}");
    running.until(async || seen("POST /cb")).await;

    // Rotated, revoked, removed: each at once.
    let rotated = running.made(&["token", "rotate", "2"], "", "secret URL");
    let rotated = rotated
        .strip_prefix(&format!("http://{}", running.address))
        .unwrap()
        .to_owned();
    assert_eq!(
        running.status(&format!("{secret}/closed.json"), &[]).await,
        404
    );
    assert_eq!(
        running.status(&format!("{rotated}/closed.json"), &[]).await,
        200
    );
    assert_eq!(running.everfeed(&["token", "revoke", "1"]).0, 0);
    assert_eq!(running.everfeed(&["token", "revoke", "1"]).0, 1);
    assert_eq!(
        running
            .status(closed, &[("authorization", &with_bearer)])
            .await,
        401
    );
    assert_eq!(
        running
            .status(closed, &[("authorization", &with_basic)])
            .await,
        200
    );
    let (code, told) = running.everfeed(&["user", "remove", "alice"]);
    assert_eq!(code, 0, "{told}");
    assert_eq!(
        running
            .status(closed, &[("authorization", &with_basic)])
            .await,
        401
    );
    assert_eq!(
        running.status(&format!("{rotated}/closed.json"), &[]).await,
        404
    );
    running.until(async || seen("hub.mode=denied")).await;
    let pushes = || {
        reader
            .requests()
            .iter()
            .filter(|head| head.starts_with("POST"))
            .count()
    };
    let before = pushes();
    posts.store(5, Ordering::Relaxed);
    assert_eq!(running.everfeed(&["poll", "closed", "--now"]).0, 0);
    assert_eq!(pushes(), before);

    let log = running.log();
    assert!(log.contains("Made the user `alice`"), "the log is there");
    for hidden in [
        PASSWORD,
        &feed_password,
        &bearer,
        &with_basic[6..],
        secret.split('/').nth(2).unwrap(),
    ] {
        assert!(!log.contains(hidden), "`{hidden}` is in the log");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_outlive_the_process_and_are_made_without_one_too() {
    let publisher = Publisher::of(|_| rss(1)).await;
    let mut running = Running::start(&publisher).await;
    let mut password = running.made(&["user", "add", "alice"], "", "password ");
    assert_eq!(
        running.everfeed(&["user", "add", "alice"]).0,
        1,
        "there is one"
    );
    // A new password counts at once, and the former one no more.
    let known = async |password: &str| {
        running
            .status(
                "/feeds/closed",
                &[("authorization", &basic("alice", password))],
            )
            .await
    };
    assert_eq!(known(&password).await, 200);
    let former = std::mem::replace(
        &mut password,
        running.made(&["user", "password", "alice"], "", "password "),
    );
    assert_eq!((known(&former).await, known(&password).await), (401, 200));
    let (code, told) = running.everfeed_told(
        &[
            "user",
            "password",
            "alice",
            "--password-stdin",
            "--feed-password",
        ],
        "another password\n",
    );
    assert!(code == 0 && told.contains("feed password  "), "{told}");
    assert_eq!(
        (known(&password).await, known("another password").await),
        (401, 200)
    );
    assert_eq!(
        running.everfeed(&["user", "password", "bob"]).0,
        1,
        "there is none"
    );
    password = running.made(&["user", "password", "alice"], "", "password ");
    for bad in [
        &["user", "add", "a:b"][..],
        &["user", "remove", "bob"],
        &["token", "new", "bob"],
    ] {
        assert_eq!(running.everfeed(bad).0, 1, "{bad:?}");
    }
    let (code, told) =
        running.everfeed_told(&["user", "add", "bob", "--password-stdin"], "short\n");
    assert!(code == 1 && told.contains("8 characters"), "{told}");
    running.stop();
    let (code, told) = running.everfeed_told(
        &["user", "add", "bob", "--password-stdin"],
        "correct horse\n",
    );
    assert_eq!(code, 0, "{told}");
    let (code, told) = running.everfeed(&["user", "list"]);
    assert!(
        code == 0 && told.contains("alice") && told.contains("bob"),
        "{told}"
    );
    running.child = Running::serve(&running.folder);
    running.is_up().await;
    for (user, password, expect) in [
        ("alice", password.as_str(), 200),
        ("bob", "correct horse", 200),
        ("bob", "x", 401),
    ] {
        let credentials = basic(user, password);
        assert_eq!(
            running
                .status("/feeds/closed", &[("authorization", &credentials)])
                .await,
            expect,
            "{user}"
        );
    }
    // Readers change with a reload.
    let file = std::fs::read_to_string(running.file()).unwrap();
    std::fs::write(
        running.file(),
        file.replace("access = \"private\"", "access = [\"bob\"]"),
    )
    .unwrap();
    let (code, told) = running.everfeed(&["reload"]);
    assert!(code == 0 && told.contains("feed.closed.access"), "{told}");
    for (user, password, expect) in [
        ("alice", password.as_str(), 404),
        ("bob", "correct horse", 200),
    ] {
        let credentials = basic(user, password);
        assert_eq!(
            running
                .status("/feeds/closed", &[("authorization", &credentials)])
                .await,
            expect,
            "{user}"
        );
    }
}
