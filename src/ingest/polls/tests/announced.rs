//! A feed whose documents say that it has moved: when the new address is asked, and when not.

use super::*;
use crate::ingest::LegacyAddress;

const NEW_URL: &str = "http://new.example/feed";
const DAY: u64 = 86_400;

/// A document with one post and the word that the feed is elsewhere.
const LEAVING: &str = "<rss version=\"2.0\" xmlns:itunes=\"http://www.itunes.com/dtds/podcast-1.0.dtd\"><channel><title>t</title>\
    <itunes:new-feed-url>http://new.example/feed</itunes:new-feed-url>\
    <item><guid>1</guid><title>one</title></item></channel></rss>";

/// The `redirect` of RSS, in the place of the feed.
const REDIRECT: &str =
    "<?xml version='1.0'?><redirect><newLocation>http://new.example/feed</newLocation></redirect>";

const FOREIGN: &str = "<rss version=\"2.0\"><channel><title>shop</title><item><guid>z</guid><title>buy</title></item></channel></rss>";

/// A house where the old address answers so from the second request on, and the new one so.
fn house_of(old: &'static str, new: fn() -> Scripted) -> PollerRig {
    PollerRig::new(move |n, request| {
        ready(match request.uri().host() {
            Some("blog.example") if n > 0 => ok(old),
            Some("blog.example") => ok(ONE),
            _ => new(),
        })
    })
}

/// The hosts that were asked in these polls, a day apart, from the first one on that says so.
async fn hosts(house: &PollerRig, feed: &FeedSpec, days: u64) -> (Vec<String>, PollState) {
    let mut state = house
        .poll(feed, &PollState::unpolled(feed.url.as_str()))
        .await
        .state;
    let first = house.seen.lock().unwrap().len();
    for _ in 0..days {
        // As if a day had passed since the documents began to say so.
        if let Some(announced) = &mut state.health.announced {
            announced.since = Stamp::from_secs(announced.since.secs() - DAY);
        }
        state = house.poll(feed, &state).await.state;
    }
    let seen = house.seen.lock().unwrap();
    let hosts = seen[first..]
        .iter()
        .map(|seen| Url::parse(&seen.url).unwrap());
    let hosts = hosts.map(|url| url.host_str().unwrap_or_default().to_owned());
    (hosts.collect(), state)
}

#[tokio::test(start_paused = true)]
async fn a_feed_is_polled_at_the_address_that_its_documents_announce_after_days_of_agreement() {
    for old in [LEAVING, REDIRECT] {
        let house = house_of(old, || ok(TWO));
        let feed = house.feed("blog", URL, 1, 5).await;
        let (hosts, state) = hosts(&house, &feed, 11).await;
        assert!(
            hosts[..7].iter().all(|host| host == "blog.example"),
            "{hosts:?}"
        );
        assert!(
            hosts[7..].iter().all(|host| host == "new.example"),
            "{hosts:?}"
        );
        assert!(state.health.announced.unwrap().is_taken);
        assert_eq!((state.health.fault, house.total(feed.no).await), (None, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn an_announced_address_with_another_feed_or_with_none_is_left_at_once() {
    let others: [fn() -> Scripted; 3] = [|| ok(FOREIGN), || status(404, &[]), || ok("<html>")];
    for new in others {
        let house = house_of(LEAVING, new);
        let feed = house.feed("blog", URL, 1, 5).await;
        let (hosts, _) = hosts(&house, &feed, 12).await;
        let asked = hosts.iter().filter(|host| *host == "new.example").count();
        assert_eq!(asked, 1, "{hosts:?}");
        assert_eq!(hosts.last().unwrap(), "blog.example");
        assert_eq!(house.total(feed.no).await, 1, "nothing of it is stored");
    }
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_has_moved_stays_there_through_a_fault_and_returns_when_it_is_gone() {
    let house = PollerRig::new(|n, request| {
        ready(match (request.uri().host(), n) {
            (Some("blog.example"), 0) => ok(ONE),
            (Some("blog.example"), _) => ok(LEAVING),
            (_, 10) => status(500, &[]),
            (_, 12) => status(404, &[]),
            _ => ok(TWO),
        })
    });
    let feed = house.feed("blog", URL, 1, 5).await;
    let (hosts, _) = hosts(&house, &feed, 13).await;
    let new = |n: usize| hosts[n] == "new.example";
    assert!((7..12).all(new), "{hosts:?}");
    assert!(!new(12), "{hosts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_document_never_leads_a_feed_to_a_private_address() {
    let document: &str = LEAVING
        .replace(NEW_URL, "http://127.0.0.1:8079/metrics")
        .leak();
    let house = house_of(document, || ok(TWO));
    let feed = house.feed("blog", URL, 1, 5).await;
    let (hosts, state) = hosts(&house, &feed, 12).await;
    assert!(hosts.iter().all(|host| host == "blog.example"), "{hosts:?}");
    assert!(
        state
            .health
            .announced
            .is_none_or(|announced| !announced.is_taken)
    );
}

#[tokio::test(start_paused = true)]
async fn a_feed_of_a_site_or_one_that_announces_its_own_public_address_stays() {
    for (old, is_of_site) in [(LEAVING, true), (REDIRECT, true), (LEAVING, false)] {
        let house = house_of(old, || ok(TWO));
        let feed = house.feed("blog", URL, 1, 5).await;
        let public = Url::parse(NEW_URL).unwrap();
        let feed = feed.with(|feed| match is_of_site {
            true => feed.legacy = Some(LegacyAddress::at(public).into()),
            false => feed.aliases = vec![public],
        });
        let (hosts, state) = hosts(&house, &feed, 10).await;
        assert!(hosts.iter().all(|host| host == "blog.example"), "{hosts:?}");
        assert_eq!(state.health.announced, None);
    }
}

#[tokio::test(start_paused = true)]
async fn documents_that_announce_another_address_each_day_are_not_followed() {
    let house = PollerRig::new(|n, _| {
        let to = format!("http://new{n}.example/feed");
        ready(ok(LEAVING.replace(NEW_URL, &to).leak()))
    });
    let feed = house.feed("blog", URL, 1, 5).await;
    let (hosts, _) = hosts(&house, &feed, 20).await;
    assert!(hosts.iter().all(|host| host == "blog.example"), "{hosts:?}");
}
