//! Feeds that are added, changed and removed while the poller runs.

use super::*;
use crate::{
    feed::schedule::Whose,
    ingest::{LegacyAddress, PollSettings},
};

/// Number of requests for this URL, and the time of the last one.
fn polls(house: &PollerRig, url: &str) -> (usize, Option<u64>) {
    let seen = house.seen.lock().unwrap();
    let of_it: Vec<u64> = seen
        .iter()
        .filter(|seen| seen.url == url)
        .map(|seen| seen.at_secs)
        .collect();
    (of_it.len(), of_it.last().copied())
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_is_added_is_polled_at_once_and_then_when_it_is_due() {
    let house = PollerRig::new(|_, _| ready(ok(ONE)));
    let running = house.start([]).await;
    pass(100).await;
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    running.poller.apply(FeedChange::Added(feed.clone()));
    pass(HOUR + 1).await;
    assert_eq!(house.requests_at(), [100, HOUR + 100]);
    assert_eq!(house.total(feed.no).await, 1);
    assert!(house.notify.watch(feed.no).is_some(), "it is announced");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_its_site_takes_in_after_its_first_poll_has_its_document_at_once() {
    for is_at_start in [false, true] {
        let house = PollerRig::new(|_, _| ready(ok(ONE)));
        let feed = house.feed("blog", URL, HOUR, DAY).await;
        let mut of_site = feed.clone();
        let known_as = Url::parse("http://me.example/rss").unwrap();
        of_site.legacy = Some(LegacyAddress::at(known_as).into());
        let is_kept = async || house.store.document(feed.no).await.unwrap().is_some();
        let running = house.start([&feed]).await;
        pass(600).await;
        assert!(!is_kept().await);
        let running = if is_at_start {
            running.stop().await;
            house.start([&of_site]).await
        } else {
            running.poller.apply(FeedChange::Changed(of_site));
            running
        };
        pass(600).await;
        assert!(is_kept().await, "at the start: {is_at_start}");
        assert_eq!(house.requests_at().len(), 2);
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_is_removed_is_not_polled_and_one_that_comes_back_waits_until_it_is_due() {
    let house = PollerRig::new(|_, _| ready(ok(ONE)));
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let other = house
        .feed("other", "http://other.example/", HOUR, DAY)
        .await;
    let running = house.start([&feed, &other]).await;
    pass(100).await;
    running.poller.apply(FeedChange::Removed(feed.no));
    house.hint(feed.no);
    pass(1000).await;
    assert_eq!(
        (polls(&house, URL), running.poller.status(feed.no)),
        ((1, Some(0)), None)
    );
    running.poller.apply(FeedChange::Added(feed));
    pass(1000).await;
    assert_eq!(polls(&house, URL).0, 1, "it is not due (FRB 015, 037)");
    pass(2 * HOUR).await;
    assert_eq!(polls(&house, URL), (3, Some(2 * HOUR)));
    assert_eq!(
        polls(&house, "http://other.example/"),
        (3, Some(2 * HOUR)),
        "the other one noticed nothing"
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_in_flight_ends_although_its_feed_is_removed() {
    let house = PollerRig::new(|_, _| async {
        pass(10).await;
        ok(ONE)
    });
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(5).await;
    running.poller.apply(FeedChange::Removed(feed.no));
    pass(2 * HOUR).await;
    assert_eq!(
        (house.requests_at(), house.total(feed.no).await),
        (vec![0], 1)
    );
    running.stop().await;
    let saved = house.store.polls(None, 9).await.unwrap();
    assert!(
        saved[0].1.document.body.is_some(),
        "what was learned is kept for when it comes back"
    );
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_is_forgotten_while_it_is_polled_stays_forgotten_and_keeps_nobody_from_saving()
{
    let house = PollerRig::new(|_, _| async {
        pass(10).await;
        ok(ONE)
    });
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let other = house
        .feed("other", "http://other.example/", HOUR, DAY)
        .await;
    let running = house.start([&feed, &other]).await;
    pass(5).await;
    running.poller.apply(FeedChange::Removed(feed.no));
    assert!(house.store.forget(feed.no).await.unwrap());
    house.notify.forget(feed.no);
    pass(2 * HOUR).await;
    assert!(
        house.notify.head(feed.no).is_none(),
        "nothing announces it again"
    );
    running.stop().await;
    assert!(house.store.feed(feed.no).await.is_err());
    let saved: Vec<_> = house
        .store
        .polls(None, 9)
        .await
        .unwrap()
        .into_iter()
        .map(|(no, _)| no)
        .collect();
    assert_eq!(saved, [other.no]);
    assert_eq!(house.total(other.no).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_changed_policy_and_a_changed_url_count_at_once() {
    let house = PollerRig::new(|_, _| ready(ok_with(ONE, &[("etag", "\"1\"")])));
    let feed = house.feed("blog", URL, DAY, DAY).await;
    let running = house.start([&feed]).await;
    pass(100).await;
    let hourly = PollSettings {
        min_secs: Some(HOUR),
        max_secs: HOUR,
    };
    let change = feed.clone().with(|feed| feed.poll = hourly);
    running.poller.apply(FeedChange::Changed(change));
    pass(HOUR).await;
    assert_eq!(house.requests_at(), [0, HOUR]);
    let rarely = PollSettings {
        min_secs: Some(3 * HOUR),
        max_secs: DAY,
    };
    let change = feed.clone().with(|feed| feed.poll = rarely);
    running.poller.apply(FeedChange::Changed(change));
    pass(2 * HOUR).await;
    assert_eq!(
        house.requests_at(),
        [0, HOUR],
        "no more often than it says now"
    );
    let url = Url::parse("http://blog.example/feed").unwrap();
    let change = feed.with(|feed| (feed.url, feed.poll) = (url, hourly));
    running.poller.apply(FeedChange::Changed(change));
    pass(1).await;
    assert_eq!(house.requests_at(), [0, HOUR, 3 * HOUR + 100]);
    assert!(
        !house.seen.lock().unwrap()[2]
            .headers
            .contains_key("if-none-match"),
        "polled afresh"
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_at_its_quota_keeps_what_it_has_asks_once_a_day_and_goes_on_when_the_quota_is_raised()
 {
    let house =
        PollerRig::new(|n, _| ready(ok_with(if n < 2 { ONE } else { TWO }, &[("etag", "\"1\"")])));
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let other = house
        .feed("other", "http://other.example/", HOUR, DAY)
        .await;
    let running = house.start([&feed, &other]).await;
    pass(100).await;
    let held = house.store.feed(feed.no).await.unwrap().items.bytes;
    let full = feed
        .clone()
        .with(|feed| feed.keep.quota_bytes = held.unwrap());
    running.poller.apply(FeedChange::Changed(full));
    pass(HOUR).await;
    let health = running.poller.status(feed.no).unwrap().health;
    let fault = health.fault.unwrap().kind;
    assert_eq!(fault.whose(), Whose::Configuration);
    assert!(fault.to_string().contains("`keep.quota_bytes`"), "{fault}");
    assert_eq!(running.poller.failing(), [(Whose::Configuration, 1)].into());
    house.hint(feed.no);
    pass(DAY).await;
    // The hint waits until the day is over; the feed is served as it was, and nothing is deleted.
    assert_eq!(polls(&house, URL), (3, Some(HOUR + DAY)));
    assert_eq!(
        (house.total(feed.no).await, house.total(other.no).await),
        (1, 2)
    );
    assert!(house.store.feed(feed.no).await.unwrap().is_ready());
    running.poller.apply(FeedChange::Changed(feed.clone()));
    pass(HOUR).await;
    assert_eq!(polls(&house, URL), (4, Some(2 * HOUR + DAY)));
    assert_eq!(house.total(feed.no).await, 2);
    assert_eq!(running.poller.status(feed.no).unwrap().health.fault, None);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_can_be_polled_as_soon_as_it_is_added_or_changed() {
    let house = PollerRig::new(|_, _| ready(ok(ONE)));
    let running = house.start([]).await;
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let ask = async |urgency| running.poller.poll(feed.no, urgency).await;
    for change in [
        FeedChange::Added(feed.clone()),
        FeedChange::Changed(feed.clone()),
        FeedChange::Removed(feed.no),
        FeedChange::Added(feed.clone()),
    ] {
        let is_removed = matches!(change, FeedChange::Removed(_));
        for urgency in [Urgency::Polite, Urgency::Now] {
            running.poller.apply(change.clone());
            let answer = ask(urgency).await;
            assert_eq!(answer == PollAnswer::Unknown, is_removed, "{change:?}");
        }
        pass(100).await;
    }
    assert_eq!(
        house.requests_at().last(),
        Some(&300),
        "no poll waited until it was due"
    );
    running.stop().await;
}
