//! Events and alerts of the whole program: a feed breaks, and the operator reads whose fault it is,
//! since when and what to do, in the feed of events, at a webhook and by a command.

use crate::EVERFEED;
use http::Method;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::{
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use testkit::{
    client,
    place::{self, Place},
    publisher::{Publisher, rss, with_headers},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Feeds at one host: requests to it keep their distance.
const FEEDS: u32 = 6;
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A publisher whose paths that end in `broken` fail while it is set.
async fn publisher(is_broken: &Arc<AtomicBool>) -> Publisher {
    let is_broken = is_broken.clone();
    Publisher::of(move |asked| {
        if asked.path().ends_with("broken") && is_broken.load(Ordering::Relaxed) {
            return with_headers(500, &[], "<b>\u{202e}broken</b>");
        }
        rss(3)
    })
    .await
}

/// The answer to the operator.
async fn operator(place: &Place, method: Method, target: &str) -> client::Answer {
    let answer = client::ask(place.operator, method, target, &[], "").await;
    answer.expect("the process answers")
}

/// The events, newest first.
async fn events(place: &Place) -> Vec<Value> {
    let answer = operator(place, Method::GET, "/events.json?max=1000").await;
    let feed: Value = serde_json::from_slice(&answer.body).unwrap();
    feed["items"].as_array().unwrap().clone()
}

/// Waits until there are so many events.
async fn until_events(place: &Place, count: usize) -> Vec<Value> {
    place
        .until("the events are there", async || {
            events(place).await.len() >= count
        })
        .await;
    events(place).await
}

/// The messages about feeds that the command got.
fn told_of_feeds(place: &Place) -> Vec<Value> {
    let told = place.read("told.json");
    let whole = told
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    let read = whole.map(|line| serde_json::from_str::<Value>(line).unwrap());
    read.filter(|message| message["type"] == "feeds.began" || message["type"] == "feeds.ended")
        .collect()
}

/// Has a reload refused and then accepted, and waits for both events: what was found before them is
/// reported by then.
async fn mark(place: &Place, text: &str) {
    let count = events(place).await.len();
    let mut wrong = place.text("", text);
    let _ = writeln!(wrong, "[hub]\ncolour = \"<script>\"");
    place.write("everfeed.toml", &wrong);
    assert_eq!(operator(place, Method::POST, "/reload").await.status, 422);
    let all = until_events(place, count + 1).await;
    assert_eq!(all[0]["_everfeed"]["topic"], "reload");
    assert_eq!(all[0]["_everfeed"]["whose"], "configuration");
    place.configure("", text);
    assert_eq!(operator(place, Method::POST, "/reload").await.status, 200);
    let all = until_events(place, count + 2).await;
    assert_eq!(all[0]["_everfeed"]["kind"], "ended");
    assert_eq!(all.len(), count + 2, "{all:?}");
}

/// The answer to a request that names another host.
async fn asked_as(place: &Place, path: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(place.operator).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn poll(place: &Place, feed: &str) {
    operator(place, Method::POST, &format!("/poll/{feed}?now")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_breaks_is_an_event_and_an_alert_and_so_is_its_end() {
    let is_broken = Arc::new(AtomicBool::new(false));
    let publisher = publisher(&is_broken).await;
    let hooked = Arc::new(AtomicUsize::new(0));
    let count = hooked.clone();
    let hook = Publisher::of(move |_| {
        // The first try fails.
        let status = if count.fetch_add(1, Ordering::Relaxed) == 0 {
            500
        } else {
            204
        };
        with_headers(status, &[], "")
    })
    .await;
    let place = Place::free();
    let mut feeds = String::new();
    for name in ["well", "fine", "broken"] {
        feeds += &place::feed(name, &publisher.url(&format!("/{name}")), "");
    }
    let told = place.path("told.json").display().to_string();
    let alerts = format!(
        "[[alert]]\nurl = \"{}\"\nsecret = \"{SECRET}\"\n[[alert]]\ncommand = [\"/usr/bin/tee\", \"-a\", {told:?}]\n",
        hook.url("/alerts")
    );
    let text = format!("{feeds}{alerts}");
    place.configure("", &text);
    let mut running = place.start(&mut place.command(EVERFEED, &["serve"]));
    place.answers("/feeds/broken.json", 200).await;
    assert_eq!(events(&place).await, Vec::<Value>::new());

    is_broken.store(true, Ordering::Relaxed);
    poll(&place, "broken").await;
    // One poll says nothing.
    mark(&place, &text).await;
    poll(&place, "broken").await;
    let lasting = Instant::now();
    place
        .until("the command is told", async || {
            told_of_feeds(&place).len() == 1
        })
        .await;
    assert!(
        lasting.elapsed() < Duration::from_secs(5),
        "{:?}",
        lasting.elapsed()
    );
    let event = told_of_feeds(&place).remove(0);
    assert_eq!(event["type"], "feeds.began");
    let data = &event["data"];
    assert_eq!(data["whose"], "upstream");
    assert_eq!(data["feeds"], serde_json::json!(["broken"]));
    assert!(
        data["text"]
            .as_str()
            .unwrap()
            .contains("500 Internal Server Error")
    );
    assert!(data["since"].as_str().unwrap().starts_with("20"));
    assert!(
        data["remedy"]
            .as_str()
            .unwrap()
            .contains("tell the publisher")
    );
    place
        .until(
            "the webhook is told, the first time at the second try",
            async || hooked.load(Ordering::Relaxed) == 3,
        )
        .await;
    let atom = operator(&place, Method::GET, "/events.atom").await;
    let atom = String::from_utf8(atom.body.to_vec()).unwrap();
    for words in [
        "`broken` at 127.0.0.1",
        "the fault is the publisher's",
        "What to do",
    ] {
        assert!(atom.contains(words), "{words} is not in {atom}");
    }

    // A restart reports nothing again. What was told a moment before a kill may not be stored yet.
    running.signal(Signal::SIGTERM);
    assert!(running.wait().success());
    let _running = place.start(&mut place.command(EVERFEED, &["serve"]));
    place.answers("/feeds/broken.json", 200).await;
    mark(&place, &text).await;
    assert_eq!(events(&place).await.len(), 5);
    is_broken.store(false, Ordering::Relaxed);
    poll(&place, "broken").await;
    let all = until_events(&place, 6).await;
    assert_eq!(all[0]["_everfeed"]["kind"], "ended");
    assert!(
        all[0]["title"]
            .as_str()
            .unwrap()
            .starts_with("Ended: `broken`")
    );
    assert_eq!(told_of_feeds(&place).len(), 1, "one message a cause");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_feeds_of_a_host_are_one_event_and_a_refused_reload_is_another() {
    let is_broken = Arc::new(AtomicBool::new(false));
    let publisher = publisher(&is_broken).await;
    let place = Place::free();
    let mut feeds = String::new();
    for no in 0..FEEDS {
        feeds += &place::feed(
            &format!("f{no}"),
            &publisher.url(&format!("/{no}/broken")),
            "",
        );
    }
    feeds += &place::feed("well", &publisher.url("/well"), "");
    place.configure("", &feeds);
    let _running = place.start(&mut place.command(EVERFEED, &["serve"]));
    for no in [0, FEEDS - 1] {
        place.answers(&format!("/feeds/f{no}.json"), 200).await;
    }
    is_broken.store(true, Ordering::Relaxed);
    for _ in 0..2 {
        for no in 0..FEEDS {
            poll(&place, &format!("f{no}")).await;
        }
    }
    let all = until_events(&place, 1).await;
    assert!(all.len() == 1, "{all:?}");
    place
        .until("all feeds have joined the event", async || {
            events(&place).await[0]["_everfeed"]["feeds_total"] == FEEDS
        })
        .await;
    mark(&place, &feeds).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_refused_to_web_pages_and_an_alert_that_fails_is_an_event() {
    let is_broken = Arc::new(AtomicBool::new(true));
    let publisher = publisher(&is_broken).await;
    let place = Place::free();
    let feeds = place::feed("broken", &publisher.url("/broken"), "");
    let alert = "[[alert]]\ncommand = [\"/bin/false\"]\n";
    place.configure("", &format!("{feeds}{alert}"));
    let _running = place.start(&mut place.command(EVERFEED, &["serve"]));
    place
        .until("it is ready", async || place.is_ready().await)
        .await;
    let of_page = [("origin", "http://evil.example")];
    for path in ["/events.atom", "/events.json"] {
        let answer = client::ask(place.operator, Method::GET, path, &of_page, "").await;
        assert_eq!(answer.unwrap().status, 403, "{path}");
        let answer = asked_as(&place, path, "evil.example").await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
    for _ in 0..2 {
        poll(&place, "broken").await;
    }
    let all = until_events(&place, 2).await;
    let of_alert = &all[0]["_everfeed"];
    assert_eq!(of_alert["topic"], "alert");
    assert_eq!(of_alert["whose"], "receiver");
    assert!(
        of_alert["text"]
            .as_str()
            .unwrap()
            .contains("exit status: 1"),
        "{of_alert}"
    );
}
