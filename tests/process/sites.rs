//! Sites that a reload brings, changes and takes away while requests and long polls go on.

use crate::EVERFEED;
use http::Method;
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};
use testkit::{
    client::{self, Answer},
    place::{Place, feed},
    process::Process,
    publisher::{Publisher, ok, rss},
};

/// An old server that says which one it is, with a feed.
async fn server(name: &'static str) -> Publisher {
    Publisher::of(move |asked| match asked.path() {
        "/feed.xml" => rss(3),
        "/slow" => {
            std::thread::sleep(std::time::Duration::from_secs(1));
            ok("text/html", name)
        }
        _ => ok("text/html", name),
    })
    .await
}

fn site(host: &str, server: &Publisher, lines: &str) -> String {
    let origin = server.url("");
    let origin = origin.trim_end_matches('/');
    format!("[[site]]\nhost = \"{host}\"\norigin = \"{origin}\"\nfeeds = [\"/feed.xml\"]\n{lines}")
}

/// The answer for a host.
async fn at(process: &Process, host: &str, path: &str) -> Answer {
    of_host(process.place.consumers, host, path).await
}

async fn of_host(consumers: SocketAddr, host: &str, path: &str) -> Answer {
    let headers = [("host", host)];
    let answer = client::ask(consumers, Method::GET, path, &headers, "").await;
    answer.unwrap()
}

/// The words of a text, with one space between two.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn reloads(process: &Process, text: &str) -> String {
    process.place.configure("", text);
    let (code, told) = process.everfeed(&["reload"]);
    assert_eq!(code, 0, "{told}");
    words(&told)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_brings_changes_and_takes_away_sites() {
    let (own, one, two) = (
        server("own").await,
        server("one").await,
        server("two").await,
    );
    let plain = feed("plain", &own.url("/feed.xml"), "");
    let place = Place::free();
    place.configure("", &plain);
    let mut process = Process::new(EVERFEED, place, "warn");
    process.start();
    process.place.answers("/feeds/plain.json", 200).await;
    assert_eq!(at(&process, "one.example", "/page").await.status, 404);

    let with_one = format!("{plain}{}", site("one.example", &one, ""));
    process.place.configure("", &with_one);
    let (code, told) = process.everfeed(&["check", "--diff"]);
    assert!(code == 0 && words(&told).contains("changed site"), "{told}");
    assert_eq!(at(&process, "one.example", "/page").await.status, 404);
    let told = reloads(&process, &with_one);
    assert!(
        told.contains("added feed.one-feed-xml") && told.contains("changed site"),
        "{told}"
    );
    assert!(!told.contains("restart"), "{told}");
    let page = at(&process, "one.example", "/page").await;
    assert_eq!((page.status, &*page.text()), (200, "one"));
    process.place.answers("/feeds/one-feed-xml.json", 200).await;
    let old = at(&process, "one.example", "/feed.xml").await;
    assert!(
        old.status == 200 && old.text().contains("rel=\"hub\""),
        "{old:?}"
    );

    // Its server moves while a request is there, and another site comes before it.
    let consumers = process.place.consumers;
    let slow = tokio::spawn(async move { of_host(consumers, "one.example", "/slow").await });
    let page = |cursor: &str| format!("/feeds/one-feed-xml.json?since={cursor}&timeout=5");
    let known = process.place.ask("/feeds/one-feed-xml.json").await;
    let cursor = known.unwrap().header("smart-feed-cursor").to_owned();
    let held = tokio::spawn(async move { client::get(consumers, &page(&cursor)).await });
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let both = format!(
        "{}{}",
        site(
            "two.example",
            &two,
            "readers_secret = \"b6f1c1a9d2e04c7f8a35\"\n"
        ),
        site("one.example", &two, "pings = false\n")
    );
    let told = reloads(&process, &format!("{plain}{both}"));
    assert!(told.contains("added feed.two-feed-xml"), "{told}");
    let slow = slow.await.unwrap();
    assert_eq!((slow.status, &*slow.text()), (200, "one"));
    assert!(matches!(held.await.unwrap().status, 200 | 204));
    assert_eq!(at(&process, "one.example", "/page").await.text(), "two");
    assert_eq!(at(&process, "two.example", "/page").await.text(), "two");
    let secret = "/readers/b6f1c1a9d2e04c7f8a35";
    assert_eq!(at(&process, "two.example", secret).await.status, 200);
    assert_eq!(at(&process, "one.example", secret).await.text(), "two");

    // One that is everfeed itself is refused, and nothing changes.
    let origin = format!("http://{}", process.place.consumers);
    let itself = format!("[[site]]\nhost = \"three.example\"\norigin = \"{origin}\"\nfeeds = []\n");
    process
        .place
        .configure("", &format!("{plain}{both}{itself}"));
    let (code, told) = process.everfeed(&["reload"]);
    assert!(code == 64 && told.contains("everfeed itself"), "{told}");
    assert_eq!(at(&process, "two.example", "/page").await.text(), "two");

    let told = reloads(&process, &plain);
    assert!(told.contains("removed feed.one-feed-xml"), "{told}");
    assert_eq!(at(&process, "one.example", "/page").await.status, 404);
    assert_eq!(at(&process, "one.example", secret).await.status, 404);
    process.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reloads_that_bring_and_take_away_a_site_fail_no_request_of_another() {
    let (one, two) = (server("one").await, server("two").await);
    let alone = site("one.example", &one, "");
    let both = format!("{}{alone}", site("two.example", &two, ""));
    let place = Place::free();
    place.configure("", &alone);
    let mut process = Process::new(EVERFEED, place, "warn");
    process.start();
    process.place.answers("/feeds/one-feed-xml.json", 200).await;
    let (goes_on, answered) = (
        Arc::new(AtomicBool::new(true)),
        Arc::new(AtomicUsize::new(0)),
    );
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let (goes_on, answered) = (goes_on.clone(), answered.clone());
            let consumers = process.place.consumers;
            tokio::spawn(async move {
                while goes_on.load(Ordering::Relaxed) {
                    let page = of_host(consumers, "one.example", "/page").await;
                    assert_eq!(page.text(), "one");
                    let old = of_host(consumers, "one.example", "/feed.xml").await;
                    assert_eq!(old.status, 200);
                    answered.fetch_add(2, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for _ in 0..10 {
        reloads(&process, &both);
        assert_eq!(at(&process, "two.example", "/page").await.text(), "two");
        reloads(&process, &alone);
    }
    goes_on.store(false, Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
    assert!(answered.load(Ordering::Relaxed) > 20);
    process.end().await;
}
