//! A place for one everfeed: a folder with its configuration, its store and its log, two addresses,
//! and the processes that run there. A server in the test's own process takes the text alone.

use crate::{
    client,
    wait::{PATIENCE, comes},
};
use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use std::{
    fs::{self, File},
    io::Write as _,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    ops::Range,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};
use tempfile::TempDir;

/// A folder and two addresses.
pub struct Place {
    folder: TempDir,
    /// The address for consumers.
    pub consumers: SocketAddr,
    /// The address for the operator.
    pub operator: SocketAddr,
}

/// An address of the loopback that is free now.
pub fn free_address() -> SocketAddr {
    free_address_of(Ipv4Addr::LOCALHOST)
}

/// Ports below those that connections get when they go out: none of them takes one of these while the
/// process of a test is dead.
const PORTS: Range<u32> = 12_000..32_000;

/// An address of this host of the loopback that is free now.
fn free_address_of(host: Ipv4Addr) -> SocketAddr {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let ports = PORTS.end - PORTS.start;
    // Test binaries that run side by side begin far from each other.
    let begin = std::process::id().wrapping_mul(977);
    for _ in 0..ports {
        let no = begin.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(PORTS.start + no % ports).unwrap();
        if let Ok(listener) = TcpListener::bind((host, port)) {
            return listener.local_addr().unwrap();
        }
    }
    panic!("no port of {PORTS:?} is free");
}

/// A feed of the configuration, with further lines.
pub fn feed(name: &str, url: &str, lines: &str) -> String {
    format!("[[feed]]\nname = \"{name}\"\nurl = \"{url}\"\nimport = {{ pages_max = 0 }}\n{lines}\n")
}

impl Place {
    /// A place for a process, at addresses that are free now.
    pub fn free() -> Self {
        Self::at(free_address(), free_address())
    }

    /// Likewise on another host of the loopback. No connection goes out from there, which would take
    /// an address while its process is dead.
    pub fn free_of(host: Ipv4Addr) -> Self {
        Self::at(free_address_of(host), free_address_of(host))
    }

    /// A place for a server in the test's process, which says itself where it listens.
    pub fn unbound() -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::at(any, any)
    }

    fn at(consumers: SocketAddr, operator: SocketAddr) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            consumers,
            operator,
        }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file or folder in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// The configuration.
    pub fn file(&self) -> PathBuf {
        self.path("everfeed.toml")
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// The text of a file; empty where there is none.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The text of a configuration: further lines of `[server]`, and what stands behind the path in
    /// `[store]`.
    pub fn text(&self, server: &str, rest: &str) -> String {
        format!(
            "[server]\nlisten = \"{}\"\nadmin_listen = \"{}\"\n{server}\n[store]\npath = {:?}\n{rest}",
            self.consumers,
            self.operator,
            self.path("everfeed.redb").display().to_string()
        )
    }

    /// Likewise, with the store in the database of a URL.
    pub fn database_text(&self, url: &str, server: &str, rest: &str) -> String {
        format!(
            "[server]\nlisten = \"{}\"\nadmin_listen = \"{}\"\n{server}\n[store]\nurl = \"{url}\"\n{rest}",
            self.consumers, self.operator
        )
    }

    /// Writes this configuration.
    pub fn configure(&self, server: &str, rest: &str) {
        self.write("everfeed.toml", &self.text(server, rest));
    }

    /// A command of the program, with the configuration of this place.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).arg("--config").arg(self.file());
        command
    }

    /// Starts a process, the log of which stands in the file `log` of this place.
    pub fn start(&self, command: &mut Command) -> Running {
        self.start_logging("log", command)
    }

    /// Likewise, with a log of another name.
    pub fn start_logging(&self, log: &str, command: &mut Command) -> Running {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.path(log));
        let log = log.unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        Running {
            child: command.spawn().unwrap(),
            is_group: false,
        }
    }

    /// Likewise, in a group of its own, which ends as a whole: with the processes that it started.
    pub fn start_group(&self, log: &str, command: &mut Command) -> Running {
        let mut running = self.start_logging(log, command.process_group(0).stdin(Stdio::null()));
        running.is_group = true;
        running
    }

    /// Runs a command to its end.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Told {
        run(&mut self.command(program, arguments), b"")
    }

    /// The answer to consumers for a path; `None` when nobody is there.
    pub async fn ask(&self, target: &str) -> Option<client::Answer> {
        client::ask(self.consumers, http::Method::GET, target, &[], "").await
    }

    /// True when the process says that it is ready.
    pub async fn is_ready(&self) -> bool {
        let answer = client::ask(self.operator, http::Method::GET, "/ready", &[], "").await;
        answer.is_some_and(|answer| answer.status == 200)
    }

    /// Waits until a path is answered with this status.
    pub async fn answers(&self, target: &str, status: u16) {
        let what = format!("{target} is answered {status}");
        self.until(&what, async || {
            let answer = self.ask(target).await;
            answer.is_some_and(|answer| answer.status == status)
        })
        .await;
    }

    /// Waits until something is so; what fails tells the log.
    pub async fn until(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        let is_so = comes(is_so).await;
        assert!(
            is_so,
            "not within {PATIENCE:?}: {what}\n{}",
            self.read("log")
        );
    }
}

/// A process; it is ended when it is dropped.
pub struct Running {
    child: Child,
    is_group: bool,
}

impl Running {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Its exit status; `None` while it runs.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// SIGKILL, at once.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.wait();
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.id()).unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_group {
            let _ = killpg(self.pid(), Signal::SIGKILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Output and exit code of a command.
#[derive(Debug)]
pub struct Told {
    pub out: String,
    pub err: String,
    pub code: i32,
}

impl Told {
    /// Everything that it printed.
    pub fn all(&self) -> String {
        self.out.clone() + &self.err
    }
}

/// Runs a command to its end, with this as its input.
pub fn run(command: &mut Command, input: &[u8]) -> Told {
    let piped = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    // It may end before it has read all.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).expect("the program speaks UTF-8");
    Told {
        out: text(output.stdout),
        err: text(output.stderr),
        code: output.status.code().unwrap(),
    }
}
