//! A feed whose URL was changed: which documents are taken, and what is asked before.

use super::*;
use crate::{
    feed::schedule::{UrlChange, UrlConsent},
    ingest::testing::Seen,
    layers::{CDN_LOOP, OwnMark},
};

const NEW_URL: &str = "http://new.example/feed";
const THIRD_URL: &str = "http://third.example/feed";

/// A document with one entry of these parts.
fn rss(title: &str, entry: &str) -> &'static str {
    format!("<rss version=\"2.0\"><channel><title>{title}</title><link>http://{title}.example/</link><item>{entry}</item></channel></rss>").leak()
}

fn old() -> &'static str {
    rss(
        "old",
        "<guid isPermaLink=\"false\">a-1</guid><link>http://old.example/2006/one</link><title>One day</title>\
         <pubDate>Mon, 02 Jan 2006 15:04:05 GMT</pubDate><description>It rained in the morning.</description>",
    )
}

fn foreign() -> &'static str {
    rss(
        "other",
        "<guid isPermaLink=\"false\">z-9</guid><link>http://other.example/2006/one</link><title>Buy now</title>\
         <pubDate>Tue, 03 Jan 2006 15:04:05 GMT</pubDate>",
    )
}

/// A house whose publishers answer with one document at the old URL and with another at all others.
fn house_of(new: &'static str) -> PollerRig {
    PollerRig::new(move |_, request| {
        let text = if request.uri().host() == Some("blog.example") {
            old()
        } else {
            new
        };
        ready(ok_with(text, &[("etag", "\"x\"")]))
    })
}

/// The feed at another URL, as a reload makes it, and its poll state.
fn moved(feed: &FeedSpec, state: &PollState, url: &str) -> (FeedSpec, PollState) {
    let feed = feed
        .clone()
        .with(|feed| feed.url = Url::parse(url).unwrap());
    let state = state
        .clone()
        .under(url, &feed.policy(), Stamp::from_secs(START_SECS));
    (feed, state)
}

fn fault(polled: &Polled) -> String {
    polled
        .state
        .health
        .fault
        .as_ref()
        .map(|fault| fault.kind.to_string())
        .unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_document_that_shares_nothing_is_not_stored_until_the_operator_accepts() {
    let house = house_of(foreign());
    let feed = house.feed("blog", URL, 1, 5).await;
    let first = house.poll(&feed, &PollState::unpolled(URL)).await;
    let held = house.store.feed(feed.no).await.unwrap();
    let (feed, state) = moved(&feed, &first.state, NEW_URL);
    assert_eq!(
        (&state.validators, state.document.body),
        (&None, None),
        "what the old URL said is not told"
    );
    let mut polled = house.poll(&feed, &state).await;
    for _ in 0..2 {
        assert_eq!(
            house.store.feed(feed.no).await.unwrap(),
            held,
            "nothing of it is stored"
        );
        let told = fault(&polled);
        for part in [
            "another feed?",
            URL,
            NEW_URL,
            "\"other\"",
            "everfeed accept blog",
        ] {
            assert!(told.contains(part), "{part} is not in {told}");
        }
        assert_eq!(
            polled.state.health.fault.as_ref().unwrap().kind.whose(),
            Whose::Configuration
        );
        // Also after a restart, a week later and in spite of what another feed would be believed by
        // then.
        polled.state.health.fault.as_mut().unwrap().since = Stamp::from_secs(1);
        let resumed = polled
            .state
            .clone()
            .resumed(NEW_URL, &feed.policy(), house.context.now());
        polled = house.poll(&feed, &resumed).await;
    }
    let accepted = polled.state.clone().consented().unwrap();
    let last = house.poll(&feed, &accepted).await;
    assert_eq!(
        (
            fault(&last),
            &last.state.url_change,
            house.total(feed.no).await
        ),
        (String::new(), &None, 2)
    );
    let seen: Vec<Seen> = house.seen.lock().unwrap().clone();
    assert!(
        seen.iter()
            .all(|seen| !seen.headers.contains_key("if-none-match")),
        "{seen:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_document_with_one_thing_in_common_is_taken_at_once_and_its_item_keeps_its_id() {
    let date = "<pubDate>Mon, 02 Jan 2006 15:04:05 GMT</pubDate>";
    let text = "<description>It rained in the morning.</description>";
    for (what, entry) in [
        (
            "key",
            "<guid isPermaLink=\"false\">a-1</guid><link>http://new.example/x</link>".to_owned(),
        ),
        (
            "link",
            format!(
                "<guid isPermaLink=\"false\">b-1</guid><link>https://old.example/2006/one/</link>{date}"
            ),
        ),
        (
            "title and date",
            format!(
                "<guid isPermaLink=\"false\">b-1</guid><link>http://new.example/x</link><title>One day</title>{date}{text}"
            ),
        ),
    ] {
        // Another title and another site do not make it another feed.
        let house = house_of(rss("new", &entry));
        let feed = house.feed("blog", URL, 1, 5).await;
        let first = house.poll(&feed, &PollState::unpolled(URL)).await;
        let (feed, state) = moved(&feed, &first.state, NEW_URL);
        let polled = house.poll(&feed, &state).await;
        assert_eq!(
            (fault(&polled), &polled.state.url_change),
            (String::new(), &None),
            "{what}"
        );
        assert_eq!(house.total(feed.no).await, 1, "{what}: it is the same item");
        let title = house
            .store
            .feed(feed.no)
            .await
            .unwrap()
            .metadata
            .title
            .clone()
            .unwrap();
        assert_eq!(title.value, "new", "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_of_title_and_date_or_a_path_at_another_host_is_nothing_in_common() {
    for entry in [
        "<guid isPermaLink=\"false\">b</guid><title>One day</title><pubDate>Tue, 03 Jan 2006 15:04:05 GMT</pubDate>",
        "<guid isPermaLink=\"false\">b</guid><title>Two days</title><pubDate>Mon, 02 Jan 2006 15:04:05 GMT</pubDate>",
        "<guid isPermaLink=\"false\">b</guid><link>http://other.example/2006/one</link>",
        "<guid isPermaLink=\"false\">b</guid><link>http://old.example/</link>",
    ] {
        let house = house_of(rss("old", entry));
        let feed = house.feed("blog", URL, 1, 5).await;
        let first = house.poll(&feed, &PollState::unpolled(URL)).await;
        let (feed, state) = moved(&feed, &first.state, NEW_URL);
        let polled = house.poll(&feed, &state).await;
        assert!(fault(&polled).contains("another feed?"), "{entry}");
    }
    // Nor is a document without entries.
    let house = house_of(EMPTY);
    let feed = house.feed("blog", URL, 1, 5).await;
    let first = house.poll(&feed, &PollState::unpolled(URL)).await;
    let (feed, state) = moved(&feed, &first.state, NEW_URL);
    assert!(fault(&house.poll(&feed, &state).await).contains("another feed?"));
    assert_eq!(
        house
            .store
            .feed(feed.no)
            .await
            .unwrap()
            .metadata
            .title
            .as_ref()
            .unwrap()
            .value,
        "old"
    );
}

#[tokio::test(start_paused = true)]
async fn a_url_may_change_again_and_back_and_consent_is_for_one_url() {
    let house = house_of(foreign());
    let feed = house.feed("blog", URL, 1, 5).await;
    let first = house.poll(&feed, &PollState::unpolled(URL)).await;
    let (feed, state) = moved(&feed, &first.state, NEW_URL);
    let polled = house.poll(&feed, &state).await;
    let accepted = polled.state.consented().unwrap();
    let (feed, state) = moved(&feed, &accepted, THIRD_URL);
    let change = UrlChange {
        from: URL.into(),
        consent: UrlConsent::NotGiven,
    };
    assert_eq!(state.url_change.as_ref(), Some(&change));
    assert!(fault(&house.poll(&feed, &state).await).contains(THIRD_URL));
    let (feed, state) = moved(&feed, &state, URL);
    assert_eq!(
        (&state.url_change, state.clone().consented()),
        (&None, None)
    );
    let polled = house.poll(&feed, &state).await;
    assert_eq!(
        (fault(&polled), house.total(feed.no).await),
        (String::new(), 1)
    );
}

#[tokio::test(start_paused = true)]
async fn consent_is_for_the_document_that_was_asked_about() {
    let house = PollerRig::new(move |n, _| {
        ready(match n {
            0 => ok(old()),
            1 | 4 => status(404, &[]),
            2 => ok(foreign()),
            _ => ok(rss("third", "<guid>t</guid><title>Third</title>")),
        })
    });
    let feed = house.feed("blog", URL, 1, 5).await;
    let first = house.poll(&feed, &PollState::unpolled(URL)).await;
    let (feed, state) = moved(&feed, &first.state, NEW_URL);
    let down = house.poll(&feed, &state).await.state;
    assert_eq!(down.clone().consented(), None, "nothing was asked yet");
    let asked = house.poll(&feed, &down).await.state;
    assert_eq!(asked.asked_about(), Some("other"));
    // Another document comes in its place.
    let accepted = asked.consented().unwrap();
    let other = house.poll(&feed, &accepted).await.state;
    assert!(!other.has_consent() && other.asked_about() == Some("third"));
    // None comes, and then another.
    let accepted = other.consented().unwrap();
    let down = house.poll(&feed, &accepted).await.state;
    assert!(!down.has_consent() && down.asked_about().is_none());
    let third = house.poll(&feed, &down).await.state;
    assert_eq!(third.asked_about(), Some("third"));
    assert_eq!(house.total(feed.no).await, 1, "nothing was stored unasked");
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_held_any_document_of_a_corrected_address_is_taken() {
    let house = PollerRig::new(|n, _| ready(if n == 0 { ok(EMPTY) } else { ok(foreign()) }));
    let feed = house.feed("blog", URL, 1, 5).await;
    let first = house.poll(&feed, &PollState::unpolled(URL)).await;
    let (feed, state) = moved(&feed, &first.state, NEW_URL);
    let polled = house.poll(&feed, &state).await;
    assert_eq!(
        (fault(&polled), house.total(feed.no).await),
        (String::new(), 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_page_in_the_place_of_a_feed_is_for_the_operator_to_mend_who_is_told_its_feeds() {
    const PAGE: &str = "<!DOCTYPE html><html><head><title>My blog</title>\
        <link rel=\"alternate\" type=\"application/rss+xml\" title=\"Posts\" href=\"/feed/\">\
        <link rel=\"alternate\" type=\"application/atom+xml\" href=\"/?feed=atom&amp;token=s3cr3t\"></head><body>x</body></html>";
    let house = in_turn(&[
        || ok(PAGE),
        // None of the feeds that it names is there.
        || status(404, &[]),
        || status(404, &[]),
        || ok("<!DOCTYPE html><title>x</title>"),
        || ok(ONE),
        || ok(PAGE),
    ]);
    let feed = house.feed("blog", URL, 1, 5).await;
    let states = polls(&house, &feed, 4).await;
    let told = |n: usize| {
        let kind = &states[n].health.fault.as_ref().unwrap().kind;
        (kind.whose(), kind.to_string())
    };
    let (whose, text) = told(0);
    assert_eq!(whose, Whose::Configuration);
    assert!(
        text.contains("http://blog.example/feed/ (Posts)") && text.contains("give the url"),
        "{text}"
    );
    assert!(
        text.contains("token=***") && !text.contains("s3cr3t"),
        "{text}"
    );
    let (whose, text) = told(1);
    assert!(
        whose == Whose::Configuration && text.contains("it names no feeds"),
        "{text}"
    );
    let (whose, text) = told(3);
    assert!(
        whose == Whose::Upstream && text.contains("http://blog.example/feed/"),
        "it was a feed: {text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_comes_back_to_this_everfeed_is_for_the_operator_to_mend() {
    let mark = OwnMark::random();
    let other = OwnMark::random();
    let (own, foreign) = (mark.clone(), other.clone());
    let house = PollerRig::new(move |n, request| {
        let mut answer = status(508, &[]);
        let mark = if n == 0 { &own } else { &foreign };
        assert!(own.is_on(request.headers()) && request.headers().contains_key(CDN_LOOP));
        mark.put_on(answer.headers_mut());
        ready(answer)
    });
    let house = PollerRig {
        upstream: house.upstream.clone().marked(mark),
        ..house
    };
    let feed = house.feed("blog", URL, 1, 5).await;
    let states = polls(&house, &feed, 2).await;
    let kind = |n: usize| states[n].health.fault.as_ref().unwrap().kind.clone();
    assert_eq!(
        (kind(0), kind(0).whose()),
        (FaultKind::LeadsBack, Whose::Configuration)
    );
    assert!(kind(0).to_string().contains("`origin` of the [[site]]"));
    assert_eq!(
        kind(1).whose(),
        Whose::Upstream,
        "another everfeed behind it has a loop of its own"
    );
}
