//! Requests that are counted as reading a feed, and those that are not.

use super::rig::Site;
use http::{Method, Request};
use http_body_util::Full;

/// The software of the feed with its requests, its conditional ones and its clients.
fn counted(site: &Site) -> Vec<(String, u64, u64, u32)> {
    let figures = site.readers().unwrap_or_default();
    let row = |row: crate::readership::SoftwareFigures| {
        let clients = row.clients_about.unwrap();
        (row.software, row.day.requests, row.day.conditional, clients)
    };
    figures.software.into_iter().map(row).collect()
}

fn row(name: &str, requests: u64, conditional: u64) -> (String, u64, u64, u32) {
    (name.to_owned(), requests, conditional, 0)
}

#[tokio::test]
async fn each_request_for_a_feed_counts_once_also_if_its_answer_is_repeated() {
    let site = Site::of(1..=3).await;
    let agent = ("user-agent", "Feedly/1.0 (120 subscribers)");
    // The rig asks for each of these twice; answers to the second come from the memory.
    let page = site.get_with("/feeds/blog.json", &[agent]).await;
    let etag = page.header("etag").to_owned();
    let fresh = [agent, ("if-none-match", etag.as_str())];
    assert_eq!(site.get_with("/feeds/blog.json", &fresh).await.status, 304);
    site.get_with("/feeds/blog/classic.rss", &[agent]).await;
    assert_eq!(counted(&site), [row("Feedly", 6, 2)]);
    // Another reader gets the same repeated answer, and is counted as itself.
    site.get_with("/feeds/blog.json", &[("user-agent", "curl/8")])
        .await;
    site.get("/feeds/blog.json").await;
    let mut expect = [
        row("Feedly", 6, 2),
        row("(no User-Agent)", 2, 0),
        row("curl", 2, 0),
    ];
    expect.sort();
    let mut found = counted(&site);
    found.sort();
    assert_eq!(found, expect);
    assert_eq!(site.readers().unwrap().claimed, 120);
}

#[tokio::test]
async fn descriptions_lists_archives_and_errors_are_no_reading() {
    let site = Site::of(1..=3).await;
    for target in [
        "/feeds/blog/about",
        "/feeds",
        "/feeds.opml",
        "/feeds/none.json",
        "/feeds/blog.json?max=none",
        "/feeds/blog/archive/1-2.atom",
    ] {
        site.get(target).await;
    }
    assert_eq!(site.readers(), None);
}

#[tokio::test]
async fn a_position_is_a_condition_and_a_gone_feed_is_counted_as_such() {
    let site = Site::of(1..=3).await;
    let agent = ("user-agent", "Mirror/1");
    site.get_with("/feeds/blog.json?since=time:1&timeout=0", &[agent])
        .await;
    assert_eq!(counted(&site), [row("Mirror", 1, 1)]);
    site.withdraw();
    for _ in 0..10 {
        assert_eq!(
            site.get_with("/feeds/blog.json", &[agent]).await.status,
            410
        );
    }
    let figures = site.readers().unwrap();
    let told = figures.software[0].misbehaves.join("; ");
    assert!(told.contains("410 (gone): 10 times"), "{told}");
}

#[tokio::test]
async fn clients_are_those_that_a_trusted_proxy_names() {
    use crate::edge::client_address::PeerAddress;
    let site = Site::of(1..=3).await;
    for (peer, forwarded) in [
        ("10.1.1.1", "192.0.2.1"),
        ("10.1.1.1", "192.0.2.1"),
        ("10.1.1.1", "198.51.100.77"),
        ("203.0.113.9", "192.0.2.200"),
    ] {
        let mut request = Request::builder()
            .method(Method::GET)
            .uri("/feeds/blog.json")
            .header("x-forwarded-for", forwarded)
            .body(Full::default())
            .unwrap();
        let peer = PeerAddress(peer.parse().unwrap());
        request.extensions_mut().insert(peer);
        site.open_any(request).await;
    }
    let clients = site.readers().unwrap().software[0].clients_about.unwrap();
    // Two of three may share a bit.
    assert!((1..=3).contains(&clients) && site.readers().unwrap().day.requests == 4);
}
