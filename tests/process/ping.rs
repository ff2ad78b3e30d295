//! `everfeed ping` as a deploy calls it: the binary, a feed, and its hub.

use crate::EVERFEED;
use std::process::Command;
use testkit::{
    place::{Place, Told, feed, free_address, run},
    publisher::{Answer, Asked, Publisher, ok, rss, with_headers},
};

async fn ping(arguments: &[&str]) -> Told {
    let mut command = Command::new(EVERFEED);
    command
        .args(["ping", "--once"])
        .args(arguments)
        .env_remove("RUST_LOG");
    tokio::task::spawn_blocking(move || run(&mut command, b""))
        .await
        .unwrap()
}

/// A blog, the feed and the page of which name a hub that answers so.
async fn blog(
    document: &str,
    headers: &'static [(&'static str, &'static str)],
    hub: Answer,
) -> Publisher {
    let document = document.to_owned();
    Publisher::of(move |asked: &Asked| {
        if asked.is_post() {
            hub.clone()
        } else {
            with_headers(200, headers, document.as_bytes())
        }
    })
    .await
}

fn atom(links: &str) -> String {
    format!("<feed xmlns='http://www.w3.org/2005/Atom'><title>t</title>{links}</feed>")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_of_a_header_of_a_feed_and_of_a_page_is_told() {
    let link = "<link rel='hub' href='/hub'/>";
    let page = format!("<!DOCTYPE html><html><head>{link}</head><body>Posts</body></html>");
    let xml: &[(&str, &str)] = &[("content-type", "application/atom+xml")];
    let html: &[(&str, &str)] = &[("content-type", "text/html")];
    let header: &[(&str, &str)] = &[
        ("content-type", "application/atom+xml"),
        ("link", "</other>; rel=\"self\", </hub>; rel=\"hub\""),
    ];
    for (document, headers) in [(atom(link), xml), (page, html), (atom(""), header)] {
        let blog = blog(&document, headers, with_headers(204, &[], "")).await;
        let url = blog.url("/feed.xml");
        let told = ping(&[&url]).await;
        assert_eq!((told.code, told.err.as_str()), (0, ""), "{told:?}");
        assert!(told.out.contains(&blog.url("/hub")), "{told:?}");
        assert_eq!(blog.paths(), ["/feed.xml", "/hub"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_was_not_told_is_said_with_the_fault() {
    let xml: &[(&str, &str)] = &[("content-type", "application/atom+xml")];
    let named = atom("<link rel='hub' href='/hub'/>");
    let check = async |document: &str, answer: Answer, expect: &str| {
        let blog = blog(document, xml, answer).await;
        let told = ping(&[&blog.url("/feed.xml")]).await;
        assert!(
            told.code == 1 && told.err.contains(expect),
            "{expect}: {told:?}"
        );
    };
    check(&atom(""), ok("text/plain", ""), "names no hub").await;
    check(
        &named,
        with_headers(404, &[], "no such feed"),
        "no such feed",
    )
    .await;
    check(&named, with_headers(503, &[], ""), "The fault is the hub's").await;
    let ignored = with_headers(202, &[("retry-after", "60")], "too many");
    check(&named, ignored, "ignores this ping").await;
    let moved = with_headers(301, &[("location", "https://h.example/")], "");
    check(&named, moved, "has moved to https://h.example/").await;
    let away = free_address();
    let gone = atom(&format!("<link rel='hub' href='http://{away}/hub'/>"));
    check(&gone, ok("text/plain", ""), "did not answer").await;
    let told = ping(&[&format!("http://{away}/feed.xml")]).await;
    assert!(told.code == 1 && told.err.contains("fault"), "{told:?}");
    let told = ping(&["ftp://blog.example/"]).await;
    assert_eq!(told.code, 64, "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_everfeed_that_is_told_polls_the_feed() {
    let publisher = Publisher::of(|_: &Asked| rss(1)).await;
    let place = Place::free();
    let server = format!("public_url = \"http://{}\"", place.consumers);
    place.configure(
        &server,
        &feed(
            "blog",
            &publisher.url("/rss.xml"),
            "poll = { min_secs = 86400 }",
        ),
    );
    let _running = place.start(
        Command::new(EVERFEED)
            .arg("serve")
            .arg("--config")
            .arg(place.file()),
    );
    place.answers("/feeds/blog", 200).await;
    place
        .until("it was polled", async || publisher.requests().len() == 1)
        .await;
    let told = ping(&[&format!("http://{}/feeds/blog", place.consumers)]).await;
    assert_eq!(told.code, 0, "{told:?}\n{}", place.read("log"));
    place
        .until("it was polled again", async || {
            publisher.requests().len() == 2
        })
        .await;
}
