//! The process that is killed: its configuration, its life and death, and plain questions to it.

use super::{
    blogs::Blogs,
    consumer::{Mirror, client},
};
use crate::EVERFEED;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::time::Duration;
use testkit::{
    place::{Place, Running},
    wait::PATIENCE,
};
use tokio::time::timeout;

pub(crate) struct Process {
    place: Place,
    running: Option<Running>,
    pub(crate) base: String,
    client: reqwest::Client,
}

impl Process {
    pub(crate) fn new(blogs: &Blogs) -> Self {
        Self::with_store(blogs, None)
    }

    /// With its store in this database, or in a file.
    pub(crate) fn with_store(blogs: &Blogs, database: Option<&str>) -> Self {
        let place = Place::free();
        let base = format!("http://{}", place.consumers);
        let mut rest = "[hub]\ncallbacks_private = true\n".to_owned();
        for (name, url) in blogs.feeds() {
            rest += &format!(
                "[[feed]]\nname = \"{name}\"\nurl = \"{url}\"\npoll = {{ min_secs = 1, max_secs = 1 }}\n"
            );
        }
        let mut text = place.text(&format!("public_url = \"{base}\""), &rest);
        if let Some(url) = database {
            let path = format!(
                "path = {:?}",
                place.path("everfeed.redb").display().to_string()
            );
            text = text.replace(&path, &format!("url = \"{url}\""));
        }
        place.write("everfeed.toml", &text);
        Self {
            place,
            running: None,
            base,
            client: client(),
        }
    }

    /// Starts it and waits until it is ready.
    pub(crate) async fn start(&mut self) {
        let mut serve = self.place.command(EVERFEED, &["serve"]);
        self.running = Some(self.place.start(serve.env("RUST_LOG", "warn")));
        let ready = format!("http://{}/ready", self.place.operator);
        self.place
            .until("it is ready", async || {
                let answer = self.client.get(&ready).send().await;
                answer.is_ok_and(|answer| answer.status().is_success())
            })
            .await;
    }

    /// SIGKILL, at once.
    pub(crate) fn kill(&mut self) {
        self.running.take().expect("it runs").kill();
    }

    /// Runs a command that is killed after a time, if it takes so long, and once more to its end.
    async fn killed_and_done(&self, arguments: &[&str], after: Duration) {
        let command = || {
            let mut command = std::process::Command::new(EVERFEED);
            command.args(arguments).current_dir(self.place.folder());
            command
        };
        let mut running = self.place.start_logging("commands", &mut command());
        tokio::time::sleep(after).await;
        running.kill();
        let told = testkit::place::run(&mut command(), b"");
        // It may have been done before the kill.
        let is_done = told.code == 0 || told.err.contains("went on in");
        assert!(is_done, "{arguments:?}: {}", told.all());
    }

    /// Compacts the store of a process that was killed.
    pub(crate) async fn compact(&self, after: Duration) {
        let arguments = ["store", "compact", "--file", "everfeed.redb"];
        self.killed_and_done(&arguments, after).await;
    }

    /// Copies the store of a process that was killed to another file, and from there to its place.
    pub(crate) async fn copy_away_and_back(&self, after: Duration) {
        for [from, to] in [["everfeed", "other"], ["other", "everfeed"]] {
            let (from, to) = (format!("{from}.redb"), format!("{to}.redb"));
            self.killed_and_done(&["store", "copy", &from, &to], after)
                .await;
            for suffix in ["", ".made", ".mark", ".removed"] {
                let _ = std::fs::remove_file(self.place.path(&format!("{from}{suffix}")));
            }
        }
    }

    /// Copies a store that nobody serves.
    pub(crate) fn copy_store(&self, from: &str, to: &str) {
        let mut command = std::process::Command::new(EVERFEED);
        command.args(["store", "copy", from, to]);
        let told = testkit::place::run(command.current_dir(self.place.folder()), b"");
        assert_eq!(told.code, 0, "{from} to {to}: {}", told.all());
    }

    /// Removes a file beside the store, if it is there.
    pub(crate) fn remove_file(&self, name: &str) {
        let _ = std::fs::remove_file(self.place.path(name));
    }

    /// Copies the store of the running process.
    pub(crate) fn back_up(&self, file: &str) {
        let file = self.place.path(file).display().to_string();
        let told = self.place.run(EVERFEED, &["backup", &file]);
        assert_eq!(told.code, 0, "{}", told.all());
    }

    /// Restores a backup in the place of the store of a process that was killed.
    pub(crate) async fn restore(&self, file: &str, after: Duration) {
        let config = self.place.file().display().to_string();
        self.killed_and_done(&["restore", "--config", &config, file], after)
            .await;
    }

    /// Ends it in order, and starts it again for a moment.
    pub(crate) async fn restart(&mut self) {
        self.end().await;
        self.start().await;
        tokio::time::sleep(Duration::from_millis(1500)).await;
    }

    pub(crate) async fn stop(mut self) {
        self.end().await;
    }

    /// SIGTERM; it has to end by itself, in order, with exit code 0.
    pub(crate) async fn end(&mut self) {
        let mut running = self.running.take().expect("it runs");
        running.signal(Signal::SIGTERM);
        let status = tokio::task::spawn_blocking(move || running.wait());
        let status = timeout(PATIENCE, status).await.expect("it stops").unwrap();
        assert!(status.success(), "it ended with {status}");
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

    /// An answer that no cache holds.
    pub(crate) async fn fresh_answer(&self, name: &str, since_secs: u64) -> reqwest::Response {
        let url = format!(
            "{}/feeds/{name}.json?order=created&since=time:{since_secs}&timeout=0",
            self.base
        );
        self.client.get(&url).send().await.expect("it answers")
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
