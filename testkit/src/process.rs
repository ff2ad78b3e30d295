//! A process of everfeed in its place: it is started, asked, measured, killed and started again.
//! The test says which program that is and what its configuration holds.

use crate::{
    place::{Place, Running, run},
    wait::{GLANCE, PATIENCE, comes},
};
use nix::sys::signal::Signal;
use std::{
    fs,
    process::{Command, ExitStatus},
};
use tokio::time::{sleep, timeout};

/// A mebibyte.
pub const MIB: u64 = 1 << 20;

/// A place and the process that serves there, while it runs.
pub struct Process {
    pub place: Place,
    program: &'static str,
    /// `RUST_LOG` of `serve`.
    log: String,
    running: Option<Running>,
}

impl Process {
    /// A process that is not started yet, in a place with a configuration.
    pub fn new(program: &'static str, place: Place, log: &str) -> Self {
        Self {
            place,
            program,
            log: log.to_owned(),
            running: None,
        }
    }

    /// Starts `serve`, and does not wait for it.
    pub fn start(&mut self) {
        self.start_with(&[]);
    }

    /// Starts `serve` with further arguments.
    pub fn start_with(&mut self, arguments: &[&str]) {
        let arguments = [&["serve"], arguments].concat();
        let mut serve = self.place.command(self.program, &arguments);
        self.start_as(&mut serve);
    }

    /// Starts a command that becomes the process in the end.
    pub fn start_as(&mut self, command: &mut Command) {
        let running = self.place.start(command.env("RUST_LOG", &self.log));
        self.running = Some(running);
    }

    /// Waits until it says that it is ready.
    pub async fn ready(&self) {
        let is_ready = async || self.place.is_ready().await;
        self.place.until("it is ready", is_ready).await;
    }

    /// SIGKILL, at once.
    pub fn kill(&mut self) {
        self.running.take().expect("it runs").kill();
    }

    pub fn signal(&self, signal: Signal) {
        self.running.as_ref().expect("it runs").signal(signal);
    }

    /// SIGTERM; it has to end by itself, in order, with exit code 0.
    pub async fn end(&mut self) {
        self.signal(Signal::SIGTERM);
        let status = self.until_ended().await;
        let log = self.place.read("log");
        assert!(status.success(), "it ended with {status}: {log}");
    }

    /// The end of the process, once it has ended by itself.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        let ended = self.running.as_mut()?.ended()?;
        self.running = None;
        Some(ended)
    }

    /// Waits until it has ended by itself.
    pub async fn until_ended(&mut self) -> ExitStatus {
        let ended = async {
            loop {
                if let Some(status) = self.ended() {
                    return status;
                }
                sleep(GLANCE).await;
            }
        };
        timeout(PATIENCE, ended).await.expect("it ends")
    }

    /// Runs a command beside it: its exit code, and all that it printed.
    pub fn everfeed(&self, arguments: &[&str]) -> (i32, String) {
        self.everfeed_told(arguments, "")
    }

    /// Runs a command with this as its input.
    pub fn everfeed_told(&self, arguments: &[&str], input: &str) -> (i32, String) {
        let mut command = self.place.command(self.program, arguments);
        let told = run(&mut command, input.as_bytes());
        (told.code, told.all())
    }

    /// Bytes of memory that the process had at most, since it started or since
    /// [`Process::forget_peak`].
    pub fn peak_bytes(&self) -> u64 {
        self.memory_bytes("VmHWM:")
    }

    /// Bytes of memory by a line of the system's.
    pub fn memory_bytes(&self, line: &str) -> u64 {
        let status = fs::read_to_string(self.of_system("status")).unwrap();
        let line = status.lines().find_map(|known| known.strip_prefix(line));
        let kib = line.unwrap().split_whitespace().next().unwrap();
        kib.parse::<u64>().unwrap() * 1024
    }

    /// Bytes of memory that the process has taken. Pages of its program, which the system keeps as
    /// it likes, are not among them.
    pub fn taken_bytes(&self) -> u64 {
        self.memory_bytes("RssAnon:")
    }

    /// Waits until the process has given memory back, down to so many bytes. The allocator keeps
    /// pages for some ten seconds.
    pub async fn until_below(&self, bytes: u64) {
        let is_so = comes(async || self.taken_bytes() <= bytes).await;
        let left = self.taken_bytes() / MIB;
        assert!(
            is_so,
            "{left} MiB are kept, and not {} at most",
            bytes / MIB
        );
    }

    /// Lets the peak of memory begin at what it has now.
    pub fn forget_peak(&self) {
        fs::write(self.of_system("clear_refs"), "5").unwrap();
    }

    fn of_system(&self, file: &str) -> String {
        let running = self.running.as_ref().expect("it runs");
        format!("/proc/{}/{file}", running.id())
    }
}
