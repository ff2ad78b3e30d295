//! The commands of the book, as they are printed, at free ports: each block that says `run: …`.
//!
//! `run: demo` stands for a running demo, `run: operator` for a running everfeed with
//! `everfeed.toml` in the folder, `run: stopped` for that file alone, and `run: root` for the top of
//! the repository. `; exit N` behind it is the exit code of the last command, else 0.

use crate::EVERFEED;
use std::{
    fs,
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Output},
    thread::sleep,
    time::Instant,
};
use testkit::{
    place::{Place, Running, free_address},
    wait::{GLANCE, PATIENCE},
};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The addresses of a demo, or of an everfeed beside it.
#[derive(Clone, Copy)]
struct Addresses {
    consumers: SocketAddr,
    operator: SocketAddr,
    blog: SocketAddr,
}

impl Addresses {
    fn free() -> Self {
        Self::of(&Place::free(), free_address())
    }

    fn of(place: &Place, blog: SocketAddr) -> Self {
        Self {
            consumers: place.consumers,
            operator: place.operator,
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

/// Starts the program in the folder of a place.
fn start(place: &Place, arguments: &[&str]) -> Running {
    let mut command = Command::new(EVERFEED);
    place.start(command.args(arguments).current_dir(place.folder()))
}

/// A demo whose feed is served.
fn demo(place: &Place) -> (Running, Addresses) {
    let at = Addresses::of(place, free_address());
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
    let running = start(place, &arguments);
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
        sleep(GLANCE);
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

/// A place with `everfeed.toml` for the feed of a blog.
fn configured(blog: SocketAddr) -> Place {
    let place = Place::free();
    let server = format!("public_url = \"http://{}\"", place.consumers);
    let feed = format!("[[feed]]\nname = \"blog\"\nurl = \"http://{blog}/rss.xml\"\n");
    place.configure(&server, &feed);
    place
}

#[test]
fn what_the_book_asks_of_a_demo_is_answered() {
    let place = Place::free();
    let folder = place.folder();
    let (_running, at) = demo(&place);
    for block in blocks("demo") {
        let output = block.run(folder, at);
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
    let output = block.run(folder, at);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("last_cursor") && said.contains("<rss"),
        "{said}"
    );
}

#[test]
fn what_the_book_tells_an_operator_works() {
    let of_demo = Place::free();
    let (_demo, beside) = demo(&of_demo);
    let place = configured(beside.blog);
    let (folder, at) = (place.folder(), Addresses::of(&place, beside.blog));
    let running = start(&place, &["serve"]);
    until_served(at);
    for block in blocks("operator") {
        block.run(folder, at);
    }
    drop(running);
    let began = Instant::now();
    while TcpStream::connect(at.operator).is_ok() {
        assert!(began.elapsed() < PATIENCE);
        sleep(GLANCE);
    }
    for block in blocks("stopped") {
        block.run(folder, at);
    }
}

#[test]
fn what_the_book_runs_in_the_repository_works() {
    for block in blocks("root") {
        block.run(Path::new(ROOT), Addresses::free());
    }
}
