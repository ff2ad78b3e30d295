//! The process that is killed: its configuration, its life and death, and plain questions to it.

use super::{
    blogs::Blogs,
    consumer::{Mirror, client},
};
use serde_json::Value;
use std::{
    fmt::Write as _,
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// The longest start.
const START: Duration = Duration::from_secs(20);

pub(crate) struct Process {
    folder: tempfile::TempDir,
    child: Option<Child>,
    pub(crate) base: String,
    admin: String,
    client: reqwest::Client,
}

impl Process {
    pub(crate) fn new(blogs: &Blogs) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (port, admin_port) = (free_port(), free_port());
        let base = format!("http://127.0.0.1:{port}");
        let admin = format!("http://127.0.0.1:{admin_port}");
        let store = folder.path().join("everfeed.redb");
        let mut config = format!(
            "[server]\nlisten = \"127.0.0.1:{port}\"\npublic_url = \"{base}\"\nadmin_listen = \"127.0.0.1:{admin_port}\"\n\
             [store]\npath = {:?}\n[hub]\ncallbacks_private = true\n",
            store.display().to_string()
        );
        for (name, url) in blogs.feeds() {
            let _ = write!(
                config,
                "[[feed]]\nname = \"{name}\"\nurl = \"{url}\"\npoll = {{ min_secs = 1, max_secs = 1 }}\n"
            );
        }
        std::fs::write(folder.path().join("everfeed.toml"), config).expect("a writable folder");
        Self {
            folder,
            child: None,
            base,
            admin,
            client: client(),
        }
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("everfeed.toml")
    }

    /// Starts it and waits until it is ready.
    pub(crate) async fn start(&mut self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_everfeed"));
        command.arg("serve").arg("--config").arg(self.config());
        command
            .env("RUST_LOG", "warn")
            .stdout(Stdio::null())
            .stderr(Stdio::inherit());
        self.child = Some(command.spawn().expect("the binary starts"));
        let begun = Instant::now();
        let ready = format!("{}/ready", self.admin);
        while !self
            .client
            .get(&ready)
            .send()
            .await
            .is_ok_and(|answer| answer.status().is_success())
        {
            assert!(begun.elapsed() < START, "it did not become ready");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// SIGKILL, at once.
    pub(crate) fn kill(&mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
    }

    /// SIGTERM; it has to end by itself, in order, with exit code 0.
    pub(crate) async fn stop(mut self) {
        let mut child = self.child.take().expect("it runs");
        let id = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
        nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM)
            .expect("it can be asked to stop");
        let begun = Instant::now();
        loop {
            if let Some(status) = child.try_wait().expect("it can be waited for") {
                assert!(status.success(), "it ended with {status}");
                return;
            }
            assert!(begun.elapsed() < START, "it did not stop");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn subscribe(&self, name: &str, callback: &str) {
        let topic = format!("{}/feeds/{name}.json?order=modified", self.base);
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", &topic),
            ("hub.callback", callback),
            ("hub.secret", "s3cret"),
            // From the beginning, so that the mirror by push can be held against everything.
            ("hub.since", "cursor:"),
        ];
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let request = self.client.post(format!("{}/hub", self.base));
        let request = request
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body);
        let answer = request.send().await.expect("the hub answers");
        assert_eq!(
            answer.status(),
            202,
            "{}",
            answer.text().await.unwrap_or_default()
        );
    }

    /// Everything from `since` on, page by page; the header of the first page beside it.
    async fn pages(&self, name: &str, since: &str) -> (Mirror, Option<String>) {
        let mut mirror = Mirror::default();
        let mut next = format!(
            "{}/feeds/{name}.json?order=modified&since=cursor%3A{since}&timeout=0&max=100",
            self.base
        );
        let mut degraded = None;
        loop {
            let answer = self.client.get(&next).send().await.expect("it answers");
            assert_eq!(answer.status(), 200, "{next}");
            if let Some(value) = answer.headers().get("smart-feed-cursor") {
                degraded.get_or_insert_with(|| value.to_str().unwrap().to_owned());
            }
            let page: Value =
                serde_json::from_slice(&answer.bytes().await.expect("a whole body")).expect("JSON");
            mirror.apply(&page);
            match page["next"].as_str() {
                Some(url) => next = url.to_owned() + "&timeout=0",
                None => return (mirror, degraded),
            }
        }
    }

    /// The store as a walk from the start shows it.
    pub(crate) async fn walk(&self, name: &str) -> Mirror {
        self.pages(name, "").await.0
    }

    /// A cursor is valid when what follows it is exactly what has changed since: nothing missing.
    /// After an edit of its own item it may degrade to its time, never to the start.
    pub(crate) async fn check_cursor(&self, name: &str, cursor: &str, store: &Mirror) {
        let (after, degraded) = self.pages(name, cursor).await;
        if !cursor.is_empty() {
            assert_ne!(
                degraded.as_deref(),
                Some("reset"),
                "{name}: {cursor} is not known any more"
            );
        }
        let t = |cursor: &str| {
            cursor
                .split('_')
                .next()
                .unwrap_or_default()
                .parse::<f64>()
                .unwrap_or(0.0)
        };
        let newer = store.later_than(t(cursor));
        for id in &newer {
            assert!(after.holds(id), "{name}: {id} is not behind {cursor}");
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .expect("a free port")
        .local_addr()
        .expect("its address")
        .port()
}
