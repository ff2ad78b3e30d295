//! Feeds whose URL is changed while the poller runs: what ends with the old one, and what the
//! operator's word begins.

use super::*;
use crate::{
    feed::{archive::History, schedule::FaultKind},
    ingest::{
        FeedSpec, ImportSettings,
        poller::PollAnswer,
        polls::{ChangeCounts, PollEnd},
        testing::Scripted,
    },
};

const NEW_URL: &str = "http://new.example/rss";
/// A document that leads to archives that go on and on.
const LIVE: &str = "<rss version=\"2.0\" xmlns:fh=\"http://purl.org/syndication/history/1.0\"><channel><title>t</title>\
    <fh:prev>/a9</fh:prev><item><guid>3</guid><title>three</title></item></channel></rss>";
const OLDER: &str = "<rss version=\"2.0\" xmlns:fh=\"http://purl.org/syndication/history/1.0\"><channel><title>t</title>\
    <fh:prev>/a8</fh:prev><item><guid>2</guid><title>two</title></item></channel></rss>";
const OTHER: &str =
    "<rss version=\"2.0\"><channel><title>other</title><item><guid>x</guid></item></channel></rss>";

fn house(new: &'static str) -> PollerRig {
    PollerRig::new(move |_, request| {
        let answer: Scripted = match (request.uri().host(), request.uri().path()) {
            (Some("blog.example"), "/rss") => ok(LIVE),
            (Some("blog.example"), _) => ok(OLDER),
            _ => ok(new),
        };
        ready(answer)
    })
}

fn moved(feed: &FeedSpec) -> FeedSpec {
    feed.clone()
        .with(|feed| feed.url = NEW_URL.parse().unwrap())
}

fn hosts(house: &PollerRig) -> Vec<String> {
    let host = |url: &str| url.split('/').nth(2).unwrap_or_default().to_owned();
    house
        .seen
        .lock()
        .unwrap()
        .iter()
        .map(|seen| host(&seen.url))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_walk_through_the_old_archives_ends_and_one_through_the_new_ones_begins() {
    let house = house(LIVE);
    let import = ImportSettings {
        page_gap_secs: 7,
        serve_after_secs: 0,
        ..ImportSettings::default()
    };
    let mut feed = house.feed("blog", URL, HOUR, DAY).await;
    feed.import = import;
    let running = house.start([&feed]).await;
    pass(3).await;
    assert!(
        house
            .store
            .walk(feed.no)
            .await
            .unwrap()
            .unwrap()
            .is_of(&URL.parse().unwrap())
    );
    running.poller.apply(FeedChange::Changed(moved(&feed)));
    let before = house.seen.lock().unwrap().len();
    pass(DAY).await;
    let asked = hosts(&house);
    assert!(
        asked[before..].iter().all(|host| host == "new.example") && asked.len() > before,
        "{asked:?}"
    );
    let walk = house.store.walk(feed.no).await.unwrap().unwrap();
    assert!(walk.is_of(&NEW_URL.parse().unwrap()), "{walk:?}");
    assert_ne!(
        house
            .store
            .feed(feed.no)
            .await
            .unwrap()
            .completeness
            .history,
        History::Running
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_question_outlives_a_restart_and_one_word_of_the_operator_answers_it() {
    let house = house(OTHER);
    let import = ImportSettings {
        page_gap_secs: 7,
        serve_after_secs: 0,
        ..ImportSettings::default()
    };
    let mut feed = house.feed("blog", URL, HOUR, DAY).await;
    feed.import = import;
    let running = house.start([&feed]).await;
    pass(3).await;
    let feed = moved(&feed);
    running.poller.apply(FeedChange::Changed(feed.clone()));
    pass(2 * HOUR).await;
    let asks = |poller: &Poller| {
        let fault = poller.status(feed.no).unwrap().health.fault;
        fault.is_some_and(|fault| matches!(fault.kind, FaultKind::Unrecognised { .. }))
    };
    let held = house.store.feed(feed.no).await.unwrap();
    assert!(asks(&running.poller));
    running.stop().await;
    let running = house.start([&feed]).await;
    pass(2 * DAY).await;
    assert!(asks(&running.poller));
    let record = house.store.feed(feed.no).await.unwrap();
    assert_eq!(
        (record.items, &record.metadata),
        (held.items, &held.metadata),
        "nothing of it is stored"
    );
    assert!(
        house.store.walk(feed.no).await.unwrap().is_none(),
        "and its archives are not read"
    );
    let accepted = running.poller.accept_url(feed.no).await;
    let counts = ChangeCounts {
        new: 1,
        ..ChangeCounts::default()
    };
    assert!(
        matches!(accepted, PollAnswer::Ended { end: PollEnd::Document(c), .. } if c == counts),
        "{accepted:?}"
    );
    assert_eq!(running.poller.status(feed.no).unwrap().url_change, None);
    assert_eq!(house.total(feed.no).await, held.items.total + 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_word_given_while_the_feed_is_polled_counts_for_the_next_poll() {
    let house = PollerRig::new(|_, request| {
        let is_old = request.uri().host() == Some("blog.example");
        async move {
            pass(10).await;
            ok(if is_old { ONE } else { OTHER })
        }
    });
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(20).await;
    running.poller.apply(FeedChange::Changed(moved(&feed)));
    let asks = || {
        running
            .poller
            .status(feed.no)
            .is_some_and(|state| state.health.fault.is_some())
    };
    while !asks() {
        pass(60).await;
    }
    // A poll is under way when the operator's word comes.
    house.hint(feed.no);
    pass(5).await;
    running.poller.accept_url(feed.no).await;
    pass(60).await;
    assert_eq!((house.total(feed.no).await, asks()), (2, false));
    running.stop().await;
}
