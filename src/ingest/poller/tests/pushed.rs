//! Feeds whose news are pushed: what of a pushed document is taken in, how often they are polled,
//! and what is told of polls.

use super::*;
use crate::{
    feed::pushed_feed::NamedPush,
    notify::{PushedDocument, UpstreamPush},
};
use bytes::Bytes;
use std::sync::Mutex;

/// Somebody to whom documents are pushed.
#[derive(Debug, Default)]
struct Pushed {
    works: bool,
    documents: Mutex<Vec<&'static str>>,
    named: Mutex<Vec<NamedPush>>,
    /// News that polls found, and the time of the poll before each, seconds.
    found: Mutex<Vec<Option<u64>>>,
}

impl UpstreamPush for Pushed {
    fn works(&self, _: FeedNo, _: Stamp) -> bool {
        self.works
    }

    fn document_taken(&self, _: FeedNo, named: NamedPush) {
        self.named.lock().unwrap().push(named);
    }

    fn found_by_poll(&self, _: FeedNo, before: Option<Stamp>, _: Stamp) {
        let before = before.map(|at| at.secs() - START_SECS);
        self.found.lock().unwrap().push(before);
    }

    fn take_documents(&self, _: FeedNo) -> Vec<PushedDocument> {
        let taken = std::mem::take(&mut *self.documents.lock().unwrap());
        let document = |body: &'static str| PushedDocument {
            body: Bytes::from_static(body.as_bytes()),
            content_type: Some("application/rss+xml".to_owned()),
        };
        taken.into_iter().map(document).collect()
    }
}

/// A second post, without the first one, and with the word that that is deleted.
const PUSHED: &str = "<rss version=\"2.0\" xmlns:at=\"http://purl.org/atompub/tombstones/1.0\"><channel><title>t</title>\
    <at:deleted-entry ref=\"1\" when=\"2026-01-01T00:00:00Z\"/>\
    <item><guid>2</guid><title>two</title></item></channel></rss>";

/// Items that are kept, and those alive.
async fn items(house: &PollerRig, feed: FeedNo) -> (u64, u64) {
    let items = house.store.feed(feed).await.unwrap().items;
    (items.total, items.live)
}

#[tokio::test(start_paused = true)]
async fn a_pushed_document_adds_what_it_shows_and_ends_nothing_u_8_u_9() {
    // The publisher cannot be asked when the push comes, and shows both posts later.
    let house = PollerRig::new(|n, _| {
        ready(match n {
            0 => ok(ONE),
            1 => status(503, &[]),
            _ => ok(TWO),
        })
    });
    let pushed = Arc::new(Pushed::default());
    house.notify.be_pushed(pushed.clone());
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(100).await;
    pushed.documents.lock().unwrap().extend([PUSHED, PUSHED]);
    house.hint(feed.no);
    pass(100).await;
    assert_eq!(house.requests_at().len(), 2, "it is a hint, too");
    assert_eq!(items(&house, feed.no).await, (2, 2));
    assert_eq!(running.poller.status(feed.no).unwrap().health.failures, 1);
    let rev = house.store.feed(feed.no).await.unwrap().last_t;
    pass(DAY).await;
    assert_eq!(items(&house, feed.no).await, (2, 2));
    let after = house.store.feed(feed.no).await.unwrap().last_t;
    assert_eq!(after, rev, "what the poll shows is known already");
    running.stop().await;
}

/// Three posts with pages.
const PAGES: &str = "<rss version=\"2.0\"><channel><title>t</title>\
    <item><guid>c</guid><title>The post called c</title><link>http://blog.example/c</link></item>\
    <item><guid>b</guid><title>The post called b</title><link>http://blog.example/b</link></item>\
    <item><guid>a</guid><title>The post called a</title><link>http://blog.example/a</link></item></channel></rss>";

/// The word that one of them is deleted, and no entry, as YouTube sends it.
const DELETED: &str = "<feed xmlns=\"http://www.w3.org/2005/Atom\" xmlns:at=\"http://purl.org/atompub/tombstones/1.0\"><title>t</title>\
    <at:deleted-entry ref=\"b\" when=\"2026-02-02T02:00:00Z\"><link href=\"http://blog.example/b\"/></at:deleted-entry></feed>";

#[tokio::test(start_paused = true)]
async fn a_deletion_in_a_push_starts_a_check_of_the_page_and_proves_nothing_itself_u_9() {
    // Status of the page of the post, whether pages may be asked for; whether that one is asked for,
    // and the posts that live half a day later.
    for (page, asks, is_asked, live) in [
        (410, true, true, 2),
        (404, true, true, 2),
        (200, true, true, 3),
        (503, true, true, 3),
        (410, false, false, 3),
    ] {
        let house = PollerRig::new(move |_, request| {
            let is_conditional = request.headers().contains_key("if-none-match");
            ready(match request.uri().path() {
                "/rss" if is_conditional => status(304, &[]),
                "/rss" => ok_with(PAGES, &[("etag", "\"1\"")]),
                "/b" if page != 200 => status(page, &[]),
                "/b" => ok("<title>The post called b</title>"),
                "/a" => ok("<title>The post called a</title>"),
                _ => ok("<title>The post called c</title>"),
            })
        });
        let pushed = Arc::new(Pushed::default());
        house.notify.be_pushed(pushed.clone());
        let mut feed = house.feed("blog", URL, HOUR, DAY).await;
        feed.deletions.permalink_checks = asks;
        let running = house.start([&feed]).await;
        pass(100).await;
        pushed.documents.lock().unwrap().push(DELETED);
        house.hint(feed.no);
        pass(1).await;
        assert_eq!(items(&house, feed.no).await, (3, 3), "{page}: no proof");
        pass(HOUR).await;
        let seen = house.seen.lock().unwrap().clone();
        let is_page = |seen: &&crate::ingest::testing::Seen| seen.url.ends_with("/b");
        assert_eq!(seen.iter().any(|seen| is_page(&seen)), is_asked, "{page}");
        pass(DAY / 2).await;
        assert_eq!(items(&house, feed.no).await, (3, live), "{page}");
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_post_that_a_push_calls_deleted_and_documents_show_stays() {
    let house = PollerRig::new(|_, request| {
        ready(match request.uri().path() {
            "/rss" => ok(PAGES),
            _ => status(404, &[]),
        })
    });
    let pushed = Arc::new(Pushed::default());
    house.notify.be_pushed(pushed.clone());
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(100).await;
    pushed.documents.lock().unwrap().push(DELETED);
    house.hint(feed.no);
    // Every page of the site is not found: that tells nothing.
    pass(3 * DAY).await;
    assert_eq!(items(&house, feed.no).await, (3, 3));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_pushed_before_the_first_document_or_is_no_feed_is_a_hint_alone() {
    for (first, then) in [(PUSHED, "<html>"), ("garbage", "{}")] {
        let house = PollerRig::new(|_, _| ready(ok(ONE)));
        let pushed = Arc::new(Pushed::default());
        house.notify.be_pushed(pushed.clone());
        pushed.documents.lock().unwrap().push(first);
        let feed = house.feed("blog", URL, HOUR, DAY).await;
        let running = house.start([&feed]).await;
        pass(100).await;
        pushed.documents.lock().unwrap().push(then);
        house.hint(feed.no);
        pass(100).await;
        assert_eq!(items(&house, feed.no).await, (1, 1), "{first} {then}");
        assert_eq!(house.requests_at().len(), 2);
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_feed_whose_push_works_is_polled_after_six_hours_u_12() {
    for (works, gap) in [(true, 6 * HOUR), (false, HOUR)] {
        let house = PollerRig::new(|_, _| ready(ok(ONE)));
        let pushed = Pushed {
            works,
            ..Pushed::default()
        };
        house.notify.be_pushed(Arc::new(pushed));
        let feed = house.feed("blog", URL, HOUR, DAY).await;
        let running = house.start([&feed]).await;
        pass(gap + 1).await;
        assert_eq!(house.requests_at(), [0, gap]);
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_poll_tells_which_services_a_feed_names_and_which_news_it_found_u_1() {
    let house = PollerRig::new(|n, _| {
        let hub = [("link", "<https://hub.example/>; rel=hub")];
        ready(ok_with(if n < 2 { ONE } else { TWO }, &hub))
    });
    let pushed = Arc::new(Pushed::default());
    house.notify.be_pushed(pushed.clone());
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(2 * HOUR + 1).await;
    running.stop().await;
    let named = pushed.named.lock().unwrap().clone();
    assert_eq!(named.len(), 2, "once for each document that is read");
    assert_eq!(named[0].hubs, ["https://hub.example/"]);
    assert_eq!(named[0].topics, [URL]);
    assert_eq!(*pushed.found.lock().unwrap(), [None, Some(HOUR)]);
}
