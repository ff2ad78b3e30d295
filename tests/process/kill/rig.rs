//! The process that is killed, with a reader of it: its commands, which are killed, too.

use super::{blogs::Blogs, reader::Reader};
use crate::EVERFEED;
use std::{process::Command, time::Duration};
use testkit::{
    client::get,
    place::{Place, run},
    process::Process,
};
use tokio::time::sleep;

pub(crate) struct Rig {
    pub(crate) process: Process,
    pub(crate) reader: Reader,
}

impl Rig {
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
            process: Process::new(EVERFEED, place, "warn"),
            reader,
        }
    }

    /// Starts it and waits until it is ready.
    pub(crate) async fn start(&mut self) {
        self.process.start();
        self.process.ready().await;
    }

    /// Runs a command that is killed after a time, if it takes so long, and once more to its end.
    async fn killed_and_done(&self, arguments: &[&str], after: Duration) {
        let command = || {
            let mut command = Command::new(EVERFEED);
            command
                .args(arguments)
                .current_dir(self.process.place.folder());
            command
        };
        let mut running = self.process.place.start_logging("commands", &mut command());
        sleep(after).await;
        running.kill();
        let told = run(&mut command(), b"");
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
                let _ = std::fs::remove_file(self.process.place.path(&format!("{from}{suffix}")));
            }
        }
    }

    /// Copies a store that nobody serves.
    pub(crate) fn copy_store(&self, from: &str, to: &str) {
        let mut command = Command::new(EVERFEED);
        command.args(["store", "copy", from, to]);
        let told = run(command.current_dir(self.process.place.folder()), b"");
        assert_eq!(told.code, 0, "{from} to {to}: {}", told.all());
    }

    /// Removes a file beside the store, if it is there.
    pub(crate) fn remove_file(&self, name: &str) {
        let _ = std::fs::remove_file(self.process.place.path(name));
    }

    /// Copies the store of the running process.
    pub(crate) fn back_up(&self, file: &str) {
        let file = self.process.place.path(file).display().to_string();
        let told = self.process.place.run(EVERFEED, &["backup", &file]);
        assert_eq!(told.code, 0, "{}", told.all());
    }

    /// Restores a backup in the place of the store of a process that was killed.
    pub(crate) async fn restore(&self, file: &str, after: Duration) {
        let config = self.process.place.file().display().to_string();
        self.killed_and_done(&["restore", "--config", &config, file], after)
            .await;
    }

    /// Ends it in order, and starts it again for a moment.
    pub(crate) async fn restart(&mut self) {
        self.process.end().await;
        self.start().await;
        sleep(Duration::from_millis(1500)).await;
    }

    /// Its status and its log, for whoever looks for the cause of a fault.
    pub(crate) async fn state(&self) -> String {
        let status = get(self.process.place.operator, "/status").await;
        format!("{}\n{}", status.text(), self.process.place.read("log"))
    }
}
