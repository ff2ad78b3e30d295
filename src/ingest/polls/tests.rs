//! Single polls against a publisher in a script: what reaches the store and what is remembered.

use super::*;
use crate::{
    feed::{order::Order, view::View},
    ingest::{
        testing::{ONE, PollerRig, START_SECS, Scripted, TWO, Trouble, ok, ok_with, status},
        transact::TRIES_MAX,
    },
    store::{
        Store, Subscription,
        subscriptions::{
            Algo, CallbackTarget, Dialect, Intent, Lease, LeaseTerms, NewSubscription, Pending,
            PushWishes, Start, Target,
        },
    },
};
use std::{
    future::ready,
    sync::{Arc, atomic::Ordering},
};
use url::Url;

mod absence;

mod announced;

mod changed_url;

mod guard;

mod heads;

mod page_feed;

const URL: &str = "http://blog.example/rss";
const EMPTY: &str = "<rss version=\"2.0\"><channel><title>t</title></channel></rss>";

/// Polls once per answer and returns what was remembered each time.
async fn polls(house: &PollerRig, feed: &FeedSpec, times: usize) -> Vec<PollState> {
    let mut state = PollState::unpolled(URL);
    let mut states = Vec::new();
    for _ in 0..times {
        state = house.poll(feed, &state).await.state;
        states.push(state.clone());
    }
    states
}

/// A publisher that gives these answers in turn.
fn in_turn(answers: &'static [fn() -> Scripted]) -> PollerRig {
    PollerRig::new(|n, _| ready(answers[n]()))
}

#[tokio::test(start_paused = true)]
async fn a_failure_changes_nothing_but_the_poll_state_and_the_next_good_document_goes_on() {
    let house = in_turn(&[
        || ok(ONE),
        || ok("<!DOCTYPE html><title>Login</title>"),
        || ok(""),
        || status(500, &[]),
        || status(404, &[]),
        || ok(TWO),
    ]);
    let feed = house.feed("blog", URL, 1, 5).await;
    let states = polls(&house, &feed, 5).await;
    let record = house.store.feed(feed.no).await.unwrap();
    assert_eq!((record.rev, record.items.total), (1, 1));
    for (n, expect) in ["HTML", "empty", "500", "404"].iter().enumerate() {
        let fault = states[n + 1].health.fault.clone().unwrap();
        assert!(
            fault.kind.to_string().contains(expect),
            "{}",
            fault.kind.to_string()
        );
        assert_eq!(fault.kind.whose(), Whose::Upstream);
        assert_eq!(states[n + 1].document.body, states[0].document.body);
        assert_eq!(states[n + 1].health.failures, u32::try_from(n + 1).unwrap());
    }
    let next = house.poll(&feed, &states[4]).await;
    assert_eq!(
        (next.state.health.failures, next.saving),
        (0, PollSaving::Committed)
    );
    assert_eq!(house.total(feed.no).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_document_that_lost_all_entries_proves_nothing_and_is_remarked_on() {
    let house = in_turn(&[|| ok(ONE), || ok(EMPTY), || ok(TWO)]);
    let feed = house.feed("blog", URL, 1, 5).await;
    let states = polls(&house, &feed, 3).await;
    assert_eq!(states[1].health.fault, None);
    assert_eq!(
        states[1].document.remark.as_deref(),
        Some("the document holds no entries; the one before held 1")
    );
    assert_eq!(
        (
            states[2].document.remark.as_deref(),
            house.total(feed.no).await
        ),
        (None, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn a_first_document_without_entries_makes_the_feed_ready() {
    let house = in_turn(&[|| ok(EMPTY), || ok(EMPTY)]);
    let feed = house.feed("blog", URL, 1, 5).await;
    let states = polls(&house, &feed, 2).await;
    let record = house.store.feed(feed.no).await.unwrap();
    assert!(record.is_ready() && record.rev == 1);
    assert_eq!(record.metadata.title.as_ref().unwrap().value, "t");
    assert_eq!(states[1].document.remark, None);
}

#[tokio::test(start_paused = true)]
async fn a_part_of_a_document_adds_but_does_not_replace_the_window() {
    // POLLING 2.2: 226 is PARTIAL.
    let house = in_turn(&[
        || ok(ONE),
        || status(226, &[("im", "feed"), ("etag", "\"part\"")]).map(|_| TWO),
    ]);
    let feed = house.feed("blog", URL, 1, 5).await;
    let states = polls(&house, &feed, 2).await;
    assert_eq!(house.total(feed.no).await, 2);
    assert_eq!(
        house
            .store
            .known(feed.no, Vec::new())
            .await
            .unwrap()
            .window
            .entries
            .len(),
        1
    );
    assert_eq!(
        (
            states[1]
                .validators
                .as_ref()
                .and_then(|pair| pair.etag.as_deref()),
            states[1].document.body
        ),
        (None, states[0].document.body)
    );
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_moved_on_meanwhile_is_decided_on_again() {
    for (conflicts, expect) in [(2, 1), (TRIES_MAX, 0)] {
        let trouble = Arc::new(Trouble::default());
        let house = PollerRig::in_trouble(|_, _| ready(ok(ONE)), &trouble);
        trouble.conflicts.store(conflicts, Ordering::Relaxed);
        let feed = house.feed("blog", URL, 1, 5).await;
        let states = polls(&house, &feed, 1).await;
        assert_eq!(house.total(feed.no).await, expect);
        let whose = states[0]
            .health
            .fault
            .as_ref()
            .map(|fault| fault.kind.whose());
        assert_eq!(whose, (expect == 0).then_some(Whose::Ours));
        assert_eq!(
            states[0].document.body.is_some(),
            expect == 1,
            "what was not stored is not taken for known"
        );
    }
}

/// Makes a subscription of this callback until then.
async fn subscribe(store: &dyn Store, feed: &FeedSpec, callback: &str, lease_until: Stamp) {
    let topic = "http://me.example/feeds/blog.atom";
    let target = Target::Callback(CallbackTarget {
        url: callback.into(),
        topic_as_sent: topic.into(),
        dialect: Dialect::WebSub,
        secret: None,
        algo: Algo::Sha256,
        verify_token: None,
        wishes: PushWishes::default(),
    });
    let terms = LeaseTerms {
        secs: 60,
        auto_refresh: false,
    };
    let pending = Pending {
        intent: Intent::Subscribe {
            target: target.clone(),
            lease: terms,
        },
        attempts: 0,
        next_try: Stamp::ZERO,
        give_up_at: Stamp::MAX,
        start: Start::Head(None),
        principal: None,
        scanned: None,
    };
    let view = View::all(feed.no, Order::MODIFIED);
    let new = NewSubscription {
        view,
        representation: "atom".into(),
        topic: topic.into(),
        target,
        pending,
    };
    let made = store.subscribe(new).await.unwrap();
    let lease = Some(Lease {
        until: lease_until,
        terms,
    });
    let active = Subscription {
        lease,
        pending: None,
        ..made
    };
    store.change_subscription(active, None).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_publisher_learns_how_many_stand_behind_us() {
    let house = in_turn(&[|| ok(ONE)]);
    let feed = house.feed("blog", URL, 1, 5).await;
    let start = Stamp::from_secs(START_SECS);
    for (callback, lease_until) in [
        ("http://a/", Stamp::MAX),
        ("http://b/", Stamp::MAX),
        ("http://late/", start),
    ] {
        subscribe(&*house.store, &feed, callback, lease_until).await;
    }
    polls(&house, &feed, 1).await;
    let headers = house.seen.lock().unwrap()[0].headers.clone();
    assert_eq!(headers["x-hub-subscribers"], "2");
    assert!(
        headers["user-agent"]
            .to_str()
            .unwrap()
            .ends_with("; 2 subscribers)")
    );
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_one_item_that_is_edited_and_never_replaced() {
    let house = in_turn(&[
        || {
            ok_with(
                "{\"temperature\": 1}",
                &[("content-type", "application/json")],
            )
        },
        || {
            ok_with(
                "{\"temperature\": 1}",
                &[("content-type", "application/json")],
            )
        },
        || {
            ok_with(
                "{\"temperature\": 2}",
                &[("content-type", "application/json")],
            )
        },
        || ok_with("{\"temperature\": 2}", &[("content-type", "text/plain")]),
        || {
            ok_with(
                "<rss><channel><item><guid>1</guid></item></channel></rss>",
                &[("content-type", "text/xml")],
            )
        },
    ]);
    let spec = house
        .feed("weather", "http://me:secret@blog.example/now.json", 1, 5)
        .await;
    let feed = spec.with(|feed| feed.format = crate::ingest::DocumentFormat::Resource);
    let mut state = PollState::unpolled(URL);
    let mut revisions = Vec::new();
    for _ in 0..5 {
        state = house.poll(&feed, &state).await.state;
        assert_eq!(state.health.failures, 0, "{:?}", state.health.fault);
        let record = house.store.feed(feed.no).await.unwrap();
        revisions.push((record.items.total, record.rev));
    }
    assert_eq!(revisions, [(1, 1), (1, 1), (1, 2), (1, 3), (1, 4)]);
    let seen = house.seen.lock().unwrap();
    assert!(seen.iter().all(|seen| seen.headers["accept"] == "*/*"));
}

#[tokio::test(start_paused = true)]
async fn relative_links_lead_from_the_public_url_of_a_feed() {
    const DOCUMENT: fn() -> Scripted =
        || ok("<rss><channel><link>/home</link><item><guid>1</guid></item></channel></rss>");
    let house = in_turn(&[DOCUMENT, DOCUMENT]);
    let as_polled = house.feed("blog", URL, 1, 5).await;
    let spec = house.feed("aside", URL, 1, 5).await;
    let aliases = vec![Url::parse("https://public.example/rss.xml").unwrap()];
    let as_known = spec.with(|feed| feed.aliases = aliases);
    for (feed, expect) in [
        (as_polled, "http://blog.example/home"),
        (as_known, "https://public.example/home"),
    ] {
        polls(&house, &feed, 1).await;
        let record = house.store.feed(feed.no).await.unwrap();
        assert_eq!(record.metadata.link("alternate"), Some(expect));
    }
}

#[tokio::test(start_paused = true)]
async fn a_json_feed_is_read_and_other_json_is_refused_by_its_name() {
    let house = in_turn(&[
        || {
            ok(
                "{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"t\",\"items\":[{\"id\":1},{\"id\":\"2\"}]}",
            )
        },
        || ok("{\"error\":\"no such feed\"}"),
    ]);
    let feed = house.feed("blog", URL, 1, 5).await;
    let states = polls(&house, &feed, 2).await;
    assert_eq!(house.total(feed.no).await, 2);
    let fault = states[1].health.fault.clone().unwrap();
    assert!(
        fault.kind.to_string().contains("JSON, but no JSON Feed"),
        "{}",
        fault.kind.to_string()
    );
    let seen = house.seen.lock().unwrap();
    assert!(
        seen[0].headers["accept"]
            .to_str()
            .unwrap()
            .contains("application/feed+json")
    );
}

/// A journal whose software counts the comments of an entry in it; `says` is its generator.
fn journal(says: bool, comments: u32, text: &str) -> &'static str {
    let generator = if says {
        "<generator>LiveJournal / LiveJournal.com</generator>"
    } else {
        ""
    };
    let image =
        format!("&lt;img src=\"http://www.livejournal.com/tools/commentcount?n={comments}\"&gt;");
    let document = format!(
        "<rss version=\"2.0\"><channel><title>t</title>{generator}<item><guid>1</guid>\
         <title>one</title><description>{text}{image}</description></item></channel></rss>"
    );
    document.leak()
}

/// The number of changes of the only item when these documents come one after the other.
async fn changes(
    platform: &str,
    documents: &'static [(bool, u32, &'static str)],
) -> (u64, Vec<PollState>) {
    let house = PollerRig::new(|n, _| {
        let (says, comments, text) = documents[n];
        ready(ok(journal(says, comments, text)))
    });
    let mut feed = house.feed("blog", URL, 1, 5).await;
    feed.platform = platform.to_owned().into();
    let (mut state, mut states, mut times, mut last) =
        (PollState::unpolled(URL), Vec::new(), 0, None);
    for _ in documents {
        state = house.poll(&feed, &state).await.state;
        let t = house.store.feed(feed.no).await.unwrap().last_t;
        times += u64::from(last.replace(t) != Some(t));
        states.push(state.clone());
    }
    (times, states)
}

#[tokio::test(start_paused = true)]
async fn what_a_platform_counts_in_its_entries_is_no_edit() {
    const COUNTS: &[(bool, u32, &str)] =
        &[(true, 1, "Rain."), (true, 2, "Rain."), (true, 3, "Snow.")];
    let (times, states) = changes("auto", COUNTS).await;
    assert_eq!(times, 2, "once added, once edited");
    let found = states[0].document.platform.as_ref().unwrap();
    assert_eq!(found.platform, "livejournal");
    assert!(
        found.why.contains("the generator is LiveJournal"),
        "{}",
        found.why
    );
    assert_eq!(changes("none", COUNTS).await.0, 3, "nothing is scrubbed");
    assert_eq!(changes("livejournal", COUNTS).await.0, 2);
}

#[tokio::test(start_paused = true)]
async fn a_document_that_no_longer_names_its_software_is_scrubbed_as_before() {
    const SILENT: &[(bool, u32, &str)] =
        &[(true, 1, "Rain."), (false, 2, "Rain."), (true, 3, "Rain.")];
    let (times, states) = changes("auto", SILENT).await;
    assert_eq!(times, 1);
    assert!(
        states
            .iter()
            .all(|state| state.document.platform == states[0].document.platform)
    );
    // It is recognised late: what is held gets a digest of the new scrubbers.
    const LATE: &[(bool, u32, &str)] =
        &[(false, 1, "Rain."), (true, 2, "Rain."), (true, 2, "Snow.")];
    let (times, states) = changes("auto", LATE).await;
    assert_eq!(times, 2);
    assert_eq!(
        states[0].document.platform.as_ref().unwrap().platform,
        "generic"
    );
    assert_eq!(
        states[1].document.platform.as_ref().unwrap().platform,
        "livejournal"
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_is_no_failed_poll() {
    let trouble = Arc::new(Trouble::default());
    let house = PollerRig::in_trouble(|_, _| ready(ok(ONE)), &trouble);
    trouble.away_commits.store(1, Ordering::Relaxed);
    let feed = house.feed("blog", URL, 3600, 86_400).await;
    let states = polls(&house, &feed, 2).await;
    assert_eq!(
        (states[0].health.failures, &states[0].health.fault),
        (0, &None)
    );
    assert_eq!(
        states[0].timetable.next_at,
        Stamp::from_secs(START_SECS + STORE_AGAIN_SECS)
    );
    assert_eq!(
        states[0].document.body, None,
        "what was not stored is not taken for known"
    );
    assert_eq!(
        (
            house.total(feed.no).await,
            states[1].document.body.is_some()
        ),
        (1, true)
    );
}

// drastic, and so on purpose.
#[tokio::test(start_paused = true)]
async fn a_resource_is_deleted_by_two_answers_410_apart_and_comes_back_by_200() {
    let house = in_turn(&[
        || ok_with("v1", &[("etag", "\"1\"")]),
        // Conditional, and so asked once more without validators.
        || status(410, &[]),
        || status(410, &[]),
        // Too soon.
        || status(410, &[]),
        // A missing one is no deleted one.
        || status(404, &[]),
        || status(410, &[]),
        || status(410, &[]),
        || ok_with("v1", &[]),
        || ok_with("v2", &[]),
    ]);
    let spec = house
        .feed("note", "http://blog.example/note.txt", 1, 5)
        .await;
    let mut feed = spec.with(|feed| feed.format = crate::ingest::DocumentFormat::Resource);
    feed.deletions.apart_secs = 3600;
    let live = async || {
        let record = house.store.feed(feed.no).await.unwrap();
        (record.items.total, record.items.live)
    };
    let mut state = house.poll(&feed, &PollState::unpolled(URL)).await.state;
    let first_at = house.context.clock.now_us();
    state = house.poll(&feed, &state).await.state;
    assert_eq!(house.seen.lock().unwrap().len(), 3);
    let wait = state.timetable.next_at.secs_since(house.context.now());
    assert!(
        (3_500..=3_600).contains(&wait),
        "the second is asked for in time: {wait}"
    );
    state = house.poll(&feed, &state).await.state;
    assert_eq!(live().await, (1, 1), "the first, and one too soon");
    tokio::time::sleep(std::time::Duration::from_secs(4000)).await;
    state = house.poll(&feed, &state).await.state;
    assert_eq!(live().await, (1, 1), "404 never deletes");
    state = house.poll(&feed, &state).await.state;
    assert_eq!(live().await, (1, 0));
    let page = house
        .store
        .page(crate::feed::page::PageQuery::all(feed.no, Order::MODIFIED));
    let item = page.await.unwrap().items[0].clone();
    let crate::feed::item::Content::Gone { first_missing, .. } = &item.content else {
        panic!("a tombstone")
    };
    assert_eq!(
        first_missing.map(Stamp::micros),
        Some(first_at),
        "dated by the first"
    );
    let rev = house.store.feed(feed.no).await.unwrap().rev;
    // Looks go on, and say nothing new.
    tokio::time::sleep(std::time::Duration::from_secs(30 * 86_400)).await;
    state = house.poll(&feed, &state).await.state;
    assert_eq!(house.store.feed(feed.no).await.unwrap().rev, rev);
    let wait = state.timetable.next_at.secs_since(house.context.now());
    assert!(wait <= 86_400, "{wait}");
    state = house.poll(&feed, &state).await.state;
    assert_eq!((live().await, state.health.gone_at), ((1, 1), None));
    house.poll(&feed, &state).await;
    assert_eq!(live().await, (1, 1));
    let seen = house.seen.lock().unwrap();
    let conditional: Vec<bool> = seen
        .iter()
        .map(|seen| seen.headers.contains_key("if-none-match"))
        .collect();
    assert_eq!(
        conditional[1..8],
        [true, false, false, false, false, false, false]
    );
}

#[tokio::test(start_paused = true)]
async fn a_feed_of_entries_is_not_deleted_by_410() {
    let house = in_turn(&[|| ok(ONE), || status(410, &[]), || status(410, &[])]);
    let feed = house.feed("blog", URL, 1, 5).await;
    let mut state = PollState::unpolled(URL);
    for _ in 0..3 {
        state = house.poll(&feed, &state).await.state;
        tokio::time::sleep(std::time::Duration::from_secs(9 * 86_400)).await;
    }
    let record = house.store.feed(feed.no).await.unwrap();
    assert_eq!((record.items.total, record.items.live), (1, 1));
}
