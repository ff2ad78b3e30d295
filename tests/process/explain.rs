//! `everfeed explain` and `everfeed replay` as an operator runs them, beside a house that serves,
//! and after it.

use crate::EVERFEED;
use everfeed::{
    app::App,
    cli::demo::blog::{self, Blog, Deed},
    config::Config,
};
use std::{
    fmt::Write as _,
    process::Command,
    sync::Arc,
    time::{Duration, SystemTime},
};
use testkit::{
    place::{self, Place},
    publisher::{Answer, Publisher, ok},
    wait::PATIENCE,
};
use tokio::{
    net::TcpListener,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

/// A feed of these posts, the title of one of which would steer a terminal.
fn posts(letters: &str) -> Answer {
    let mut items = String::new();
    for letter in letters.chars() {
        let minute = u32::from(letter) - u32::from('a');
        write!(
            items,
            "<item><guid>http://blog.example/?p={letter}</guid><link>http://blog.example/{letter}.html</link>\
             <title>{letter} &#x202e;title&#x9b;2J</title><pubDate>Mon, 02 Feb 2026 01:{minute:02}:00 GMT</pubDate></item>"
        )
        .unwrap();
    }
    let text = format!("<rss version=\"2.0\"><channel><title>t</title>{items}</channel></rss>");
    ok("application/rss+xml", text.as_bytes())
}

/// Runs the program: its output, what it said of errors, and whether it succeeded.
async fn run(arguments: Vec<String>) -> (String, String, bool) {
    let run = move || {
        let mut command = Command::new(EVERFEED);
        let told = place::run(command.args(arguments).env_remove("RUST_LOG"), b"");
        (told.out, told.err, told.code == 0)
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

const SERVER: &str = "shutdown_secs = 5\npublic_url = \"http://feeds.example\"";

/// A feed with quick deletions that is recorded, and the same as usual.
fn feeds(place: &Place, publisher: &Publisher) -> String {
    let url = publisher.url("/rss.xml");
    format!(
        "[[feed]]\nname = \"quick\"\nurl = \"{url}\"\npoll = {{ min_secs = 1, max_secs = 1 }}\n\
         deletions = {{ apart_secs = 1, audit_secs = 1 }}\n[feed.record]\nfolder = {:?}\nbodies = 20\n\
         [[feed]]\nname = \"usual\"\nid_namespace = \"usual\"\nurl = \"{url}\"\npoll = {{ min_secs = 1, max_secs = 1 }}\n",
        place.path("recordings").display().to_string(),
    )
}

/// Serves in this process, beside which commands are run.
async fn serve(place: &Place, rest: &str) -> App {
    place.configure(SERVER, rest);
    let config = Config::parse("test", &place.text(SERVER, rest)).unwrap();
    App::start(config).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_is_explained_while_serving_and_after_and_its_documents_play_to_the_same_end() {
    let place = Place::free();
    let publisher = Publisher::start().await;
    publisher.says(posts("zyxwvut"));
    let app = serve(&place, &feeds(&place, &publisher)).await;
    let file = place.file().display().to_string();
    let explain = async |rest: &[&str]| {
        let rest = rest.iter().map(|word| (*word).to_owned());
        run(["explain".to_owned(), "--config".to_owned(), file.clone()]
            .into_iter()
            .chain(rest)
            .collect())
        .await
    };
    let until = async |rest: &[&str], expect: &str| {
        let started = Instant::now();
        loop {
            let (out, err, _) = explain(rest).await;
            if out.contains(expect) {
                assert!(!out.contains(['\u{9b}', '\u{202e}']), "{out}");
                return out;
            }
            assert!(started.elapsed() < PATIENCE, "no {expect:?} in {out}{err}");
            sleep(Duration::from_millis(100)).await;
        }
    };
    until(&["quick"], "7 items, 7 of them alive").await;
    until(&["usual"], "7 items, 7 of them alive").await;
    // One is taken out of the middle; an older one moves up.
    publisher.says(posts("zyxvuts"));
    let gone = until(&["quick", "http://blog.example/?p=w"], "deleted at").await;
    assert!(
        gone.contains("absent-bracketed") && gone.contains("2 documents without it"),
        "{gone}"
    );
    let open = until(&["usual", "http://blog.example/w.html"], "suspected").await;
    assert!(
        open.contains("for a deletion: 1 more document without it (1 of 2); not before 20"),
        "{open}"
    );
    let kept = until(
        &["usual", "http://blog.example/?p=v"],
        "it is in the last document",
    )
    .await;
    assert!(kept.contains("http://blog.example/?p=v"), "{kept}");
    let feed = until(&["usual"], "suspected       ").await;
    for line in [
        "next poll",
        "because         it answers well",
        "missing 1, suspected 1",
        "history         unknown: its documents name",
    ] {
        assert!(feed.contains(line), "{line}: {feed}");
    }
    let (_, err, good) = explain(&["usual", "http://blog.example/?p=never"]).await;
    assert!(!good && err.contains("has never held"), "{err}");
    let (_, err, good) = explain(&["other"]).await;
    assert!(!good && err.contains("no feed `other`"), "{err}");
    app.stop().await.unwrap();

    // Nobody serves it any more: the store itself is asked.
    let (out, err, _) = explain(&["quick", "http://blog.example/?p=w"]).await;
    assert_eq!(out, gone, "{err}");
    let recordings = place.path("recordings").display().to_string();
    let played = run(vec![
        "replay".into(),
        "--config".into(),
        file.clone(),
        recordings,
    ])
    .await;
    assert!(played.2, "{}", played.1);
    assert!(
        played
            .0
            .contains("deleted http://blog.example/?p=w: absent-bracketed"),
        "{}",
        played.0
    );
    let row = played
        .0
        .lines()
        .last()
        .unwrap()
        .split_whitespace()
        .skip(2)
        .take(4)
        .collect::<Vec<_>>();
    assert_eq!(
        row,
        ["7", "1", "0", "1"],
        "at first, adds, edits, tombstones: {}",
        played.0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_whose_page_is_gone_is_explained_by_its_page_and_plays_to_the_same_end() {
    let place = Place::free();
    let now = SystemTime::now();
    let made = |seed: u64, publisher: &str| Blog::new(publisher.to_owned(), seed, now);
    let deletes = |seed: &u64| matches!(made(*seed, "http://x").act(now), Deed::Deleted(_));
    let seed = (0..).find(deletes).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = blog::origin(listener.local_addr().unwrap());
    let (blog, stop) = (Arc::new(made(seed, &url)), CancellationToken::new());
    let serving = tokio::spawn(blog.clone().serve(listener, stop.clone()));
    let feed = format!(
        "[[feed]]\nname = \"blog\"\nurl = \"{url}/rss.xml\"\npoll = {{ min_secs = 1, max_secs = 1 }}\n\
         [feed.record]\nfolder = {:?}\n",
        place.path("recordings").display().to_string(),
    );
    let app = serve(&place, &feed).await;
    let file = place.file().display().to_string();
    let explain = async || {
        run(vec![
            "explain".into(),
            "--config".into(),
            file.clone(),
            "blog".into(),
        ])
        .await
        .0
    };
    let until = async |expect: &str| {
        let started = Instant::now();
        loop {
            let out = explain().await;
            if out.contains(expect) {
                return out;
            }
            assert!(started.elapsed() < PATIENCE, "no {expect:?} in {out}");
            sleep(Duration::from_millis(100)).await;
        }
    };
    until("10 items, 10 of them alive").await;
    assert!(matches!(blog.act(SystemTime::now()), Deed::Deleted(_)));
    // Usual times: no second document could have confirmed it within the hour.
    let out = until("deleted 1").await;
    assert!(
        out.contains("11 items, 10 of them alive") && out.contains(": it is gone (410), deleted 1"),
        "{out}"
    );
    app.stop().await.unwrap();
    stop.cancel();
    serving.await.unwrap();
    let recordings = place.path("recordings").display().to_string();
    let played = run(vec!["replay".into(), "--config".into(), file, recordings]).await;
    assert!(
        played.0.contains(": gone; last seen") && played.0.contains("its page: it is gone (410)"),
        "{}",
        played.0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_in_which_what_is_missing_keeps_coming_back_says_so() {
    // POLLING 2.4, the last row: one machine of the publisher's has `w`, another has not.
    let place = Place::free();
    let publisher = Publisher::start().await;
    publisher.says(posts("zyxwvut"));
    let app = serve(&place, &feeds(&place, &publisher)).await;
    let file = place.file();
    let explain = || {
        run(vec![
            "explain".into(),
            "--config".into(),
            file.display().to_string(),
            "usual".into(),
        ])
    };
    let started = Instant::now();
    while !explain().await.0.contains("7 items") {
        assert!(started.elapsed() < PATIENCE);
        sleep(Duration::from_millis(100)).await;
    }
    let told = loop {
        for (letters, missing) in [("zyxvuts", true), ("zyxwvut", false)] {
            publisher.says(posts(letters));
            loop {
                let (told, error, _) = explain().await;
                if told.contains("\n  suspected   ") == missing {
                    break;
                }
                assert!(started.elapsed() < PATIENCE, "{told}{error}");
                sleep(Duration::from_millis(100)).await;
            }
        }
        let (told, ..) = explain().await;
        if told.contains("doubted") {
            break told;
        }
    };
    assert!(
        told.contains("  doubted ") && told.contains(" until 20"),
        "{told}"
    );
    let why = "because missing posts came back three times in a week";
    assert!(told.contains(why), "{told}");
    assert!(
        told.contains("      missing posts came back, so a deletion takes seven days of absence"),
        "{told}"
    );
    app.stop().await.unwrap();
}
