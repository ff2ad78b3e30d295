//! The process that is killed: its configuration, its life and death.

use super::{blogs::Blogs, reader::Reader};
use crate::EVERFEED;
use nix::sys::signal::Signal;
use std::time::Duration;
use testkit::{
    client::get,
    place::{Place, Running},
    wait::PATIENCE,
};
use tokio::time::timeout;

pub(crate) struct Process {
    place: Place,
    running: Option<Running>,
    pub(crate) reader: Reader,
}

impl Process {
    pub(crate) fn new(blogs: &Blogs) -> Self {
        Self::with_store(blogs, None)
    }

    /// With its store in this database, or in a file.
    pub(crate) fn with_store(blogs: &Blogs, database: Option<&str>) -> Self {
        let place = Place::free();
        let base = format!("http://{}", place.consumers);
        let (server, rest) = (format!("public_url = \"{base}\""), blogs.settings());
        let text = match database {
            Some(url) => place.database_text(url, &server, &rest),
            None => place.text(&server, &rest),
        };
        place.write("everfeed.toml", &text);
        let reader = Reader::new(place.consumers, &base);
        Self {
            place,
            running: None,
            reader,
        }
    }

    /// Starts it and waits until it is ready.
    pub(crate) async fn start(&mut self) {
        let mut serve = self.place.command(EVERFEED, &["serve"]);
        self.running = Some(self.place.start(serve.env("RUST_LOG", "warn")));
        self.place
            .until("it is ready", async || self.place.is_ready().await)
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

    /// Its status and its log, for whoever looks for the cause of a fault.
    pub(crate) async fn state(&self) -> String {
        let status = get(self.place.operator, "/status").await;
        format!("{}\n{}", status.text(), self.place.read("log"))
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
}
