//! The commands of the book, as they are printed, at free ports: each block that says `run: …`.
//!
//! `run: demo` stands for a running demo, `run: operator` for a running everfeed with
//! `everfeed.toml` in the folder, `run: stopped` for that file alone, and `run: root` for the top of
//! the repository. `; exit N` behind it is the exit code of the last command, else 0.

use std::{
    fs,
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};
use tempfile::TempDir;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const EVERFEED: &str = env!("CARGO_BIN_EXE_everfeed");
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The addresses of a demo, or of an everfeed beside it.
#[derive(Clone, Copy)]
struct Addresses {
    consumers: SocketAddr,
    operator: SocketAddr,
    blog: SocketAddr,
}

impl Addresses {
    fn free() -> Self {
        let free = || TcpListener::bind("127.0.0.1:0").unwrap();
        let listeners = [free(), free(), free()];
        let [consumers, operator, blog] = listeners.map(|at| at.local_addr().unwrap());
        Self {
            consumers,
            operator,
            blog,
        }
    }

    /// A text with these addresses in place of the usual ones.
    fn put_into(self, text: &str) -> String {
        text.replace("127.0.0.1:8080", &self.consumers.to_string())
            .replace("127.0.0.1:8079", &self.operator.to_string())
            .replace("127.0.0.1:8081", &self.blog.to_string())
    }
}

/// A process that is ended when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(folder: &Path, arguments: &[&str]) -> Running {
    let log = fs::File::create(folder.join("log")).unwrap();
    let child = Command::new(EVERFEED)
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn();
    Running(child.unwrap())
}

/// A demo whose feed is served.
fn demo(folder: &Path) -> (Running, Addresses) {
    let at = Addresses::free();
    let [consumers, operator, blog] = [at.consumers, at.operator, at.blog].map(|at| at.to_string());
    let arguments = [
        "demo",
        "--every",
        "1",
        "--listen",
        &consumers,
        "--admin-listen",
        &operator,
        "--blog-listen",
        &blog,
    ];
    let running = start(folder, &arguments);
    until_served(at);
    (running, at)
}

fn until_served(at: Addresses) {
    let began = Instant::now();
    let url = format!("http://{}/feeds/blog.json?max=1", at.consumers);
    loop {
        let answer = Command::new("curl").args(["-s", &url]).output().unwrap();
        if String::from_utf8_lossy(&answer.stdout).contains("\"count\":1") {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{answer:?}");
        sleep(Duration::from_millis(50));
    }
}

/// A block of the book that is run.
#[derive(Debug)]
struct Block {
    page: PathBuf,
    place: String,
    exit: i32,
    commands: String,
}

/// The blocks of one place, of all pages.
fn blocks(place: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open = vec![Path::new(ROOT).join("docs")];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(
                fs::read_dir(path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        for part in text.split("```sh\n").skip(1) {
            let (commands, behind) = part.split_once("\n```").expect("the end of a block");
            let Some(mark) = behind.trim_start().strip_prefix("<!-- run: ") else {
                continue;
            };
            let mark = mark.split(" -->").next().unwrap_or_default();
            let (at, exit) = mark.split_once("; exit ").unwrap_or((mark, "0"));
            found.push(Block {
                page: path.clone(),
                place: at.to_owned(),
                exit: exit.parse().unwrap(),
                commands: commands.to_owned(),
            });
        }
    }
    found.retain(|block| block.place == place);
    found.sort_by(|a, b| a.page.cmp(&b.page));
    assert!(!found.is_empty(), "no block says `run: {place}`");
    found
}

impl Block {
    /// Runs the commands in a folder, and checks the exit code and that something came out.
    fn run(&self, folder: &Path, at: Addresses) -> Output {
        let path = Path::new(EVERFEED).parent().unwrap().display().to_string();
        let usual = std::env::var("PATH").unwrap();
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &at.put_into(&self.commands)])
            .current_dir(folder)
            .env("PATH", format!("{path}:{usual}"))
            .env_remove("RUST_LOG")
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(self.exit),
            "{self:?}: {output:?}"
        );
        assert!(
            !output.stdout.is_empty() || !output.stderr.is_empty(),
            "{self:?} says nothing"
        );
        output
    }
}

/// A folder with `everfeed.toml` for the feed of a blog.
fn configured(at: Addresses) -> TempDir {
    let folder = TempDir::new().unwrap();
    let Addresses {
        consumers,
        operator,
        blog,
    } = at;
    let text = format!(
        "[server]\nlisten = \"{consumers}\"\npublic_url = \"http://{consumers}\"\nadmin_listen = \"{operator}\"\n\
         [store]\npath = \"everfeed.redb\"\n[[feed]]\nname = \"blog\"\nurl = \"http://{blog}/rss.xml\"\n"
    );
    fs::write(folder.path().join("everfeed.toml"), text).unwrap();
    folder
}

#[test]
fn what_the_book_asks_of_a_demo_is_answered() {
    let folder = TempDir::new().unwrap();
    let (_running, at) = demo(folder.path());
    for block in blocks("demo") {
        let output = block.run(folder.path(), at);
        let said = String::from_utf8_lossy(&output.stdout);
        let is_refused = said.contains("\"status\":4") && !block.commands.contains("yesterday");
        assert!(!is_refused, "{block:?}: {said}");
    }
    // README has one block for the same demo.
    let readme = fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let block = readme
        .split("```sh\n")
        .find(|block| block.starts_with("curl "))
        .and_then(|block| block.split_once("\n```"))
        .expect("a block of README that begins with curl");
    let block = Block {
        page: "README.md".into(),
        place: "demo".to_owned(),
        exit: 0,
        commands: block.0.to_owned(),
    };
    let output = block.run(folder.path(), at);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("last_cursor") && said.contains("<rss"),
        "{said}"
    );
}

#[test]
fn what_the_book_tells_an_operator_works() {
    let folder = TempDir::new().unwrap();
    let (_demo, beside) = demo(folder.path());
    let at = Addresses {
        blog: beside.blog,
        ..Addresses::free()
    };
    let folder = configured(at);
    let running = start(folder.path(), &["serve"]);
    until_served(at);
    for block in blocks("operator") {
        block.run(folder.path(), at);
    }
    drop(running);
    let began = Instant::now();
    while TcpStream::connect(at.operator).is_ok() {
        assert!(began.elapsed() < PATIENCE);
        sleep(Duration::from_millis(20));
    }
    for block in blocks("stopped") {
        block.run(folder.path(), at);
    }
}

#[test]
fn what_the_book_runs_in_the_repository_works() {
    for block in blocks("root") {
        block.run(Path::new(ROOT), Addresses::free());
    }
}
