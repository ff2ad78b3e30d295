//! A web page that is configured in the place of a feed: the feed that it names is polled.

use super::*;
use crate::{
    feed::schedule::NamedFeed,
    ingest::{LegacyAddress, testing::Seen},
};

const PAGE_URL: &str = "http://blog.example/";

/// A page that names feeds of comments, of nothing, and of posts.
const PAGE: &str = "<!DOCTYPE html><title>Blog</title>\
    <link rel=alternate type=application/rss+xml title='Blog &raquo; Comments Feed' href=/comments/feed/>\
    <link rel=alternate type=application/rss+xml title=Old href=/gone>\
    <link rel=alternate type=application/rss+xml title='Blog &raquo; Feed' href=/feed/>";

/// The paths that were asked for.
fn paths(house: &PollerRig) -> Vec<String> {
    let seen: Vec<Seen> = house.seen.lock().unwrap().clone();
    let paths = seen.iter().map(|seen| Url::parse(&seen.url).unwrap());
    paths.map(|url| url.path().to_owned()).collect()
}

fn named(state: &PollState) -> Option<&str> {
    state.named_address().map(String::as_str)
}

#[tokio::test(start_paused = true)]
async fn the_feed_that_a_page_names_is_polled_without_asking_the_page_again() {
    let house = PollerRig::new(|n, request| {
        ready(match (request.uri().path(), n) {
            ("/", _) => ok(PAGE),
            ("/feed/", 0..4) => ok_with(ONE, &[("etag", "\"1\"")]),
            ("/feed/", _) => ok(TWO),
            _ => status(404, &[]),
        })
    });
    let feed = house
        .feed("blog", "http://me:secret@blog.example/", 1, 5)
        .await;
    let first = house.poll(&feed, &PollState::unpolled(PAGE_URL)).await;
    assert_eq!(first.state.health.fault, None);
    assert_eq!(paths(&house), ["/", "/gone", "/feed/"]);
    assert_eq!(named(&first.state), Some("http://blog.example/feed/"));
    assert_eq!(house.total(feed.no).await, 1);
    // After a restart, too.
    let now = house.context.now();
    let resumed = first.state.resumed(PAGE_URL, &feed.policy(), now);
    let mut state = resumed.clone();
    for _ in 0..2 {
        state = house.poll(&feed, &state).await.state;
    }
    assert_eq!(paths(&house)[3..], ["/feed/", "/feed/"]);
    assert_eq!(house.total(feed.no).await, 2);
    assert_eq!(state.named, resumed.named);
    let seen = house.seen.lock().unwrap();
    assert_eq!(seen[3].headers["if-none-match"], "\"1\"");
    assert!(
        seen.iter()
            .all(|seen| seen.headers.contains_key("authorization"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_named_feed_that_is_gone_is_looked_for_on_the_page_again() {
    let moved = "<!DOCTYPE html><link rel=alternate type=application/rss+xml href=/atom.xml>";
    let house = PollerRig::new(move |n, request| {
        ready(match (request.uri().path(), n) {
            ("/", 0) => ok("<!DOCTYPE html><link rel=feed href=/feed/>"),
            ("/feed/", 1) => ok(ONE),
            ("/feed/", 2) => status(503, &[]),
            ("/", _) => ok(moved),
            ("/atom.xml", _) => ok(TWO),
            _ => status(404, &[]),
        })
    });
    let feed = house.feed("blog", PAGE_URL, 1, 5).await;
    let mut state = PollState::unpolled(PAGE_URL);
    for _ in 0..3 {
        state = house.poll(&feed, &state).await.state;
    }
    assert_eq!(paths(&house), ["/", "/feed/", "/feed/", "/feed/"]);
    let lost = NamedFeed {
        is_lost: true,
        ..state.named.clone().unwrap()
    };
    assert_eq!(state.named, Some(lost), "a 503 does not count, a 404 does");
    state = house.poll(&feed, &state).await.state;
    assert_eq!(paths(&house)[4..], ["/", "/atom.xml"]);
    assert_eq!(named(&state), Some("http://blog.example/atom.xml"));
    assert_eq!(house.total(feed.no).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_page_without_a_feed_of_posts_is_an_error_that_names_what_it_has() {
    let many: String = (0..500)
        .map(|n| format!("<link rel=feed href=/none/{n}>"))
        .collect();
    let many: &str = format!("<!DOCTYPE html>{many}").leak();
    let comments = "<!DOCTYPE html><link rel=feed href=/comments/feed/>";
    let itself = "<!DOCTYPE html><link rel=feed href=/>";
    let inner = "<!DOCTYPE html><link rel=feed href='http://127.0.0.1:8079/metrics'>";
    for (page, requests, words) in [
        (many, 4, "/none/0"),
        (comments, 1, "/comments/feed/"),
        (itself, 1, "names no feeds"),
        (inner, 1, "127.0.0.1"),
    ] {
        let house = PollerRig::new(move |_, request| {
            ready(match request.uri().path() {
                "/" => ok(page),
                "/metrics" => ok(ONE),
                _ => status(404, &[]),
            })
        });
        let feed = house.feed("blog", PAGE_URL, 1, 5).await;
        let polled = house.poll(&feed, &PollState::unpolled(PAGE_URL)).await;
        let fault = polled.state.health.fault.unwrap().kind.to_string();
        assert!(fault.contains(words), "{fault}");
        assert_eq!(paths(&house).len(), requests, "{words}");
        assert_eq!(polled.state.named, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_at_the_address_of_a_feed_of_a_site_is_an_error() {
    let house = in_turn(&[|| ok(PAGE)]);
    let feed = house.feed("blog", URL, 1, 5).await;
    let place = LegacyAddress::at(Url::parse("http://public.example/rss").unwrap());
    let feed = feed.with(|feed| feed.legacy = Some(place.into()));
    let states = polls(&house, &feed, 1).await;
    assert!(states[0].health.fault.is_some());
    assert_eq!((paths(&house).len(), &states[0].named), (1, &None));
}

#[tokio::test(start_paused = true)]
async fn a_page_at_the_address_of_a_feed_is_no_reason_to_poll_another() {
    let house = in_turn(&[|| ok(ONE), || ok(PAGE)]);
    let feed = house.feed("blog", URL, 1, 5).await;
    let states = polls(&house, &feed, 2).await;
    let fault = states[1].health.fault.clone().unwrap().kind;
    assert_eq!(fault.whose(), Whose::Upstream);
    assert_eq!((paths(&house).len(), &states[1].named), (2, &None));
}
