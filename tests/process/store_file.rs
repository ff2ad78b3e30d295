//! Commands on the file of a store where they cannot be done: on a full disk, and while everfeed
//! serves it. Each says why, and leaves everything as it was.

use crate::EVERFEED;
use std::{path::Path, process::Command};
use testkit::{
    place::{Place, Told, feed, run},
    postgres::PostgresServer,
    publisher::{Publisher, ok, with_headers},
};

/// A feed of so many posts.
fn rss(posts: usize) -> String {
    let item = |n| format!("<item><guid>tag:x,2005:{n}</guid><title>post {n}</title></item>");
    let items: String = (0..posts).map(item).collect();
    format!("<rss version=\"2.0\"><channel><title>blog</title>{items}</channel></rss>")
}

/// A place with a store and a backup of it, and the process that serves it.
async fn served() -> (Place, testkit::place::Running) {
    let publisher = Publisher::of(|_| ok("application/rss+xml", rss(30))).await;
    let place = Place::free();
    let server = format!("public_url = \"http://{}\"", place.consumers);
    place.configure(&server, &feed("blog", &publisher.url("/rss"), ""));
    let running = place.start(&mut place.command(EVERFEED, &["serve"]));
    place.answers("/feeds/blog.json", 200).await;
    let backup = place.path("backup.redb").display().to_string();
    let told = place.run(EVERFEED, &["backup", &backup]);
    assert_eq!(told.code, 0, "{}", told.all());
    (place, running)
}

/// Runs a command line in a place, after this.
fn shell(place: &Place, before: &str, line: &str) -> Told {
    let line = format!("{before} exec {EVERFEED} {line}");
    run(
        Command::new("sh")
            .args(["-c", &line])
            .current_dir(place.folder()),
        b"",
    )
}

const COMMANDS: [&str; 4] = [
    "restore --config everfeed.toml backup.redb",
    "store compact --file everfeed.redb",
    "store copy everfeed.redb new.redb",
    "store copy --keep everfeed.redb new.redb",
];

const COPY_OF_BACKUP: &str = "store copy backup.redb new.redb";

/// The files of a folder, with their bytes.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap());
    let mut files: Vec<_> = files
        .map(|file| {
            let name = file.file_name().into_string().unwrap();
            (name, std::fs::read(file.path()).unwrap_or_default())
        })
        .collect();
    files.sort();
    files
}

fn names(files: &[(String, Vec<u8>)]) -> Vec<&str> {
    files.iter().map(|(name, _)| &**name).collect()
}

#[tokio::test]
async fn a_full_disk_is_told_and_the_store_is_as_it_was() {
    let (place, mut running) = served().await;
    running.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(running.wait().success());
    for command in COMMANDS.into_iter().chain([COPY_OF_BACKUP]) {
        let before = files(place.folder());
        // A limit on the size of files is the nearest to a full disk that needs no disk.
        let told = shell(&place, "trap \'\' XFSZ; ulimit -f 40;", command);
        assert_eq!(told.code, 1, "{command}: {}", told.all());
        assert!(
            told.err.contains("File too large"),
            "{command}: {}",
            told.err
        );
        let after = files(place.folder());
        assert_eq!(names(&after), names(&before), "{command}");
        // Only compacting opens the store to write to it.
        assert!(after == before || command == COMMANDS[1], "{command}");
        let told = shell(&place, "", "store verify --file everfeed.redb");
        assert_eq!(told.code, 0, "{command}: {}", told.all());
    }
    // With room for it, each is done.
    for command in [COMMANDS[3], COMMANDS[1], COMMANDS[0]] {
        let told = shell(&place, "", command);
        assert_eq!(told.code, 0, "{command}: {}", told.all());
    }
}

#[tokio::test]
async fn a_store_that_is_served_is_left_alone() {
    let (place, _running) = served().await;
    let report = "store report --file everfeed.redb";
    for command in COMMANDS.into_iter().chain([report]) {
        let told = shell(&place, "", command);
        assert_eq!(told.code, 1, "{command}: {}", told.all());
        assert!(told.err.contains("open in another process"), "{}", told.err);
    }
    let second = place.run(EVERFEED, &["serve"]);
    assert_eq!(second.code, 1, "{}", second.all());
    assert!(
        second.all().contains("open in another process"),
        "{}",
        second.all()
    );
    assert!(!place.path("new.redb").exists());
    place.answers("/feeds/blog.json", 200).await;
    let told = shell(&place, "", "store report --file backup.redb");
    assert!(
        told.out.contains("items") && told.out.contains("on the disk"),
        "{}",
        told.out
    );
}

#[tokio::test]
async fn a_publisher_that_asked_to_be_left_alone_once_spoils_no_backup_and_no_copy() {
    let publisher = Publisher::of(|_| ok("application/rss+xml", rss(3))).await;
    let later = |status| move |_: &_| with_headers(status, &[("retry-after", "7200")], "");
    let (busy, many) = (
        Publisher::of(later(503)).await,
        Publisher::of(later(429)).await,
    );
    let place = Place::free();
    let server = format!("public_url = \"http://{}\"", place.consumers);
    let feeds = [("rss", &publisher), ("busy", &busy), ("many", &many)];
    let feeds = feeds.map(|(name, of)| feed(name, &of.url("/rss"), ""));
    place.configure(&server, &feeds.concat());
    let mut running = place.start(&mut place.command(EVERFEED, &["serve"]));
    place.answers("/feeds/rss.json", 200).await;
    let paused = async || {
        let told = place.run(EVERFEED, &["status"]).all();
        told.matches("left alone").count() >= 2
    };
    place.until("both are left alone", paused).await;
    let backup = place.path("backup.redb").display().to_string();
    let told = place.run(EVERFEED, &["backup", &backup]);
    assert_eq!(told.code, 0, "{}", told.all());
    running.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(running.wait().success());
    let pauses = |file: &str| {
        let told = shell(&place, "", &format!("store verify --file {file}"));
        assert_eq!(told.code, 0, "{file}: {}", told.all());
        let line = told
            .out
            .lines()
            .find(|line| line.contains("pauses of hosts"));
        let rows: Vec<&str> = line.expect("they are counted").split(' ').collect();
        let rows: Vec<&str> = rows.into_iter().filter(|word| !word.is_empty()).collect();
        assert_eq!(rows[..2], ["2", "0"], "{file}: {}", told.out);
    };
    pauses("everfeed.redb");
    pauses("backup.redb");
    let done = |line: &str| {
        let told = shell(&place, "", line);
        assert_eq!(told.code, 0, "{line}: {}", told.all());
    };
    done("restore --config everfeed.toml backup.redb");
    pauses("everfeed.redb");
    done("store copy --keep everfeed.redb beside.redb");
    pauses("beside.redb");
    let database = PostgresServer::start();
    done(&format!("store copy everfeed.redb '{}'", database.url()));
    done(&format!("store copy '{}' back.redb", database.url()));
    pauses("back.redb");
}
