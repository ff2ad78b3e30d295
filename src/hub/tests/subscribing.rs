//! Requests, their answers and their verification.

use super::rig::{CALLBACK, DAY_SECS, Reply, Rig, TOPIC};
use crate::{
    feed::record::FeedNo,
    hub::Config,
    layers::{FetchError, error::Refused},
    store::subscriptions::{Algo, Dialect},
    telemetry::testing::Logged,
};
use bytes::Bytes;
use http::Method;
use std::{collections::HashSet, time::Duration};

const TOKEN: (&str, &str) = ("hub.verify_token", "to ken&");

// HUB-1, HUB-3, HUB-12, HUB-13, W-1, W-7.
#[tokio::test(start_paused = true)]
async fn a_request_is_answered_202_and_verified_after_that() {
    let rig = Rig::new().await;
    let (status, text) = rig
        .ask_to("subscribe", &[("hub.lease_seconds", "3600")])
        .await;
    assert_eq!(status, 202);
    assert!(text.contains("3600 seconds"), "{text}");
    assert!(
        rig.net.taken().is_empty(),
        "nothing is asked before the answer is out"
    );
    assert_eq!(rig.counts().pending, 1);
    rig.wait(1).await;
    let [question] = &rig.net.taken()[..] else {
        panic!("one question")
    };
    assert_eq!(question.method, Method::GET);
    assert!(
        question
            .url
            .starts_with("http://reader.example/cb?k=KEY&hub.mode=subscribe&"),
        "{}",
        question.url
    );
    assert_eq!(question.param("hub.topic").as_deref(), Some(TOPIC));
    assert_eq!(question.param("hub.lease_seconds").as_deref(), Some("3600"));
    assert_eq!(
        question.param("hub.verify_token"),
        None,
        "P03-4: echoed if and only if sent"
    );
    assert_eq!(
        question.param("hub.cursor").as_deref(),
        Some(""),
        "the feed is empty"
    );
    assert!(
        question.param("hub.challenge").unwrap().len() >= 32,
        "128 bits at least"
    );
    assert_eq!((rig.counts().active, rig.counts().pending), (1, 0));
}

// HUB-14.
#[tokio::test(start_paused = true)]
async fn no_challenge_is_used_twice() {
    let rig = Rig::new().await;
    for _ in 0..10 {
        rig.subscribed(&[]).await;
        rig.ask_to("subscribe", &[]).await;
        rig.wait(1).await;
    }
    rig.net.on_verify(|_| Reply::down());
    rig.ask_to("subscribe", &[]).await;
    rig.wait(600).await;
    let asked: Vec<_> = rig
        .net
        .taken()
        .iter()
        .filter_map(|call| call.param("hub.challenge"))
        .collect();
    assert!(asked.len() > 3);
    assert_eq!(asked.iter().collect::<HashSet<_>>().len(), asked.len());
}

// HUB-3, W-9: the answer does not depend on what the verification comes to, and a refusal is the
// end of it.
#[tokio::test(start_paused = true)]
async fn a_callback_that_says_no_is_asked_once_and_forgotten() {
    for reply in [
        || Reply::status(404),
        || Reply::status(302),
        || Reply::body("no"),
        || Reply::status(410),
    ] {
        let rig = Rig::new().await;
        rig.net.on_verify(move |_| reply());
        assert_eq!(rig.ask_to("subscribe", &[]).await.0, 202);
        rig.wait(DAY_SECS).await;
        assert_eq!(
            rig.net.taken().len(),
            1,
            "asked once, and not told that it was denied"
        );
        assert!(rig.sub().await.is_none());
        assert!(rig.hub.counts().is_empty());
    }
}

// HUB-10, HUBS 5.2.
#[tokio::test(start_paused = true)]
async fn a_callback_that_is_down_is_asked_again_for_six_hours() {
    let rig = Rig::new().await;
    rig.net.on_verify(|_| Reply::status(503));
    assert_eq!(rig.ask_to("subscribe", &[]).await.0, 202);
    rig.wait(DAY_SECS).await;
    let at: Vec<u64> = rig.net.taken().iter().map(|call| call.at_secs).collect();
    let waits: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (wait, least) in waits.iter().zip([30, 60, 120, 240, 480]) {
        assert!((least..=least + least / 2 + 1).contains(wait), "{waits:?}");
    }
    assert!(at.last().unwrap() <= &(6 * 3600), "{at:?}");
    assert!(rig.sub().await.is_none(), "given up");
    // One that comes back in time is subscribed after all.
    assert_eq!(rig.ask_to("subscribe", &[]).await.0, 202);
    rig.wait(100).await;
    rig.net.willing();
    rig.wait(400).await;
    assert_eq!(rig.counts().active, 1);
}

// PUSH D-P6.
#[tokio::test(start_paused = true)]
async fn a_callback_at_a_private_address_is_refused_and_told_why() {
    let rig = Rig::new().await;
    let ask = async |callback, verify| {
        let topic = ("hub.topic", TOPIC);
        rig.ask(&[
            ("hub.mode", "subscribe"),
            topic,
            ("hub.callback", callback),
            ("hub.verify", verify),
        ])
        .await
    };
    let (status, text) = ask("http://2130706433:9000/cb", "async").await;
    assert_eq!(status, 400);
    assert!(
        text.contains("hub.callback") && text.contains("not on the public internet"),
        "{text}"
    );
    // A name is looked up only when we connect; whether it leads inside is nobody's business.
    rig.net
        .on_verify(|_| Reply::fail(FetchError::Refused(Refused::Address)));
    let (status, text) = ask("http://intranet.example/cb", "sync").await;
    assert_eq!(status, 409);
    assert!(
        text.contains("callback") && text.contains("no address on the public internet"),
        "{text}"
    );
    assert_eq!(ask("http://intranet.example/cb", "async").await.0, 202);
    rig.wait(DAY_SECS).await;
    assert!(rig.sub().await.is_none());

    let rig = Rig::with(Config {
        callbacks_private: true,
        ..Config::default()
    })
    .await;
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", TOPIC),
        ("hub.callback", "http://127.0.0.1:9000/cb"),
    ];
    assert_eq!(rig.ask(&form).await.0, 202);
}

// PUSH section 3: the two dialects on one endpoint.
#[tokio::test(start_paused = true)]
async fn the_synchronous_dialect_is_answered_after_the_verification() {
    let rig = Rig::new().await;
    let sync = [("hub.verify", "sync"), TOKEN];
    assert_eq!(rig.ask_to("subscribe", &sync).await, (204, String::new()));
    let [question] = &rig.net.taken()[..] else {
        panic!("asked before the answer")
    };
    assert_eq!(
        question.param("hub.verify_token").as_deref(),
        Some("to ken&"),
        "P03-4"
    );
    let callback = rig.callback().await;
    assert_eq!(
        (callback.dialect, callback.algo),
        (Dialect::Legacy, Algo::Sha1)
    );
    assert_eq!(rig.ask_to("unsubscribe", &sync).await.0, 204);
    assert!(rig.sub().await.is_none());
    rig.net.taken();

    // P03-2: one try, and 409 that names the callback.
    for reply in [
        || Reply::status(404),
        || Reply::body("wrong"),
        || Reply::down(),
        || Reply::status(500),
    ] {
        rig.net.on_verify(move |_| reply());
        let (status, text) = rig.ask_to("subscribe", &sync).await;
        assert_eq!(status, 409);
        assert!(text.contains("hub.callback"), "{text}");
        rig.wait(DAY_SECS).await;
        assert_eq!(rig.net.taken().len(), 1);
        assert!(rig.sub().await.is_none());
    }
    // Asynchronous was fine too: what failed goes on in the background, what was refused does not.
    let either = [("hub.verify", "sync"), ("hub.verify", "async")];
    rig.net.on_verify(|_| Reply::status(404));
    assert_eq!(rig.ask_to("subscribe", &either).await.0, 409);
    rig.net.on_verify(|_| Reply::down());
    assert_eq!(rig.ask_to("subscribe", &either).await.0, 202);
    rig.net.willing();
    rig.wait(60).await;
    assert_eq!(rig.counts().active, 1);
}

// PUSH section 3: 503 when there is no room to ask.
#[tokio::test(start_paused = true)]
async fn who_wants_an_answer_now_is_told_when_there_is_no_room_to_ask() {
    let config = Config {
        in_flight_per_host_max: 1,
        ..Config::default()
    };
    let rig = Rig::with(config).await;
    rig.net.on_verify(|call| Reply::willing(call).after(9));
    let other = "http://reader.example/other";
    rig.ask(&[
        ("hub.mode", "subscribe"),
        ("hub.topic", TOPIC),
        ("hub.callback", other),
    ])
    .await;
    rig.wait(1).await;
    assert_eq!(
        rig.ask_to("subscribe", &[("hub.verify", "sync")]).await.0,
        503
    );
    assert_eq!(
        rig.ask_to("subscribe", &[("hub.verify", "sync,async")])
            .await
            .0,
        204,
        "by then there is room"
    );
}

// P03-3: in the old dialect a wrong answer may still turn into a yes.
#[tokio::test(start_paused = true)]
async fn in_the_old_asynchronous_dialect_only_404_is_final() {
    let rig = Rig::new().await;
    rig.net.on_verify(|_| Reply::body("wrong"));
    assert_eq!(
        rig.ask_to("subscribe", &[("hub.verify", "async"), TOKEN])
            .await
            .0,
        202
    );
    rig.wait(10).await;
    rig.net.willing();
    rig.wait(60).await;
    assert_eq!(rig.counts().active, 1);
    assert!(
        rig.net
            .taken()
            .iter()
            .all(|call| call.param("hub.verify_token").is_some())
    );
}

// The seed's request, verbatim in kind (SF-80), and P-19: a token is echoed in every dialect.
#[tokio::test(start_paused = true)]
async fn a_token_is_echoed_to_whoever_sends_one() {
    let rig = Rig::new().await;
    rig.ask_to("subscribe", &[TOKEN]).await;
    rig.wait(1).await;
    assert_eq!(
        rig.net.taken()[0].param("hub.verify_token").as_deref(),
        Some("to ken&")
    );
}

// HUB-7, W-5.
#[tokio::test(start_paused = true)]
async fn unsubscribing_is_verified_too() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    rig.net.on_verify(|_| Reply::status(404));
    assert_eq!(rig.ask_to("unsubscribe", &[]).await.0, 202);
    rig.wait(60).await;
    assert_eq!(
        rig.counts().active,
        1,
        "somebody else may have asked for it"
    );
    rig.net.taken();
    rig.net.willing();
    assert_eq!(
        rig.ask_to("unsubscribe", &[("hub.lease_seconds", "60")])
            .await
            .0,
        202
    );
    rig.wait(1).await;
    let [question] = &rig.net.taken()[..] else {
        panic!("one question")
    };
    assert_eq!(question.param("hub.mode").as_deref(), Some("unsubscribe"));
    assert_eq!(question.param("hub.lease_seconds"), None);
    assert!(rig.sub().await.is_none());
    rig.add(1).await;
    rig.wait(60).await;
    assert!(rig.net.pushes().is_empty());
}

// PUSH section 3.
#[tokio::test(start_paused = true)]
async fn unsubscribing_what_was_never_subscribed_is_verified_or_done_already() {
    let rig = Rig::new().await;
    assert_eq!(
        rig.ask_to("unsubscribe", &[("hub.verify", "async")])
            .await
            .0,
        204
    );
    assert_eq!(
        rig.ask_to("unsubscribe", &[("hub.verify", "sync")]).await.0,
        204
    );
    rig.wait(60).await;
    assert!(rig.net.taken().is_empty());
    assert_eq!(rig.ask_to("unsubscribe", &[]).await.0, 202);
    rig.wait(60).await;
    assert_eq!(rig.net.taken().len(), 1);
    assert!(rig.sub().await.is_none());
}

// SF-79, HUBS 5.3: spellings of a topic; what is no topic of ours is 404.
#[tokio::test(start_paused = true)]
async fn a_topic_is_known_by_every_spelling_and_echoed_as_it_was_sent() {
    let rig = Rig::new().await;
    let ask = async |topic: &str| {
        rig.ask(&[
            ("hub.mode", "subscribe"),
            ("hub.topic", topic),
            ("hub.callback", CALLBACK),
        ])
        .await
    };
    for spelling in [
        "http://feeds.example:8080/feeds/blog.atom",
        "https://FEEDS.example:8080/feeds/%62log.atom/?order=modified",
        "http://feeds.example:8080/feeds/blog",
    ] {
        assert_eq!(ask(spelling).await.0, 202, "{spelling}");
        rig.wait(1).await;
        assert_eq!(
            rig.net.taken()[0].param("hub.topic").as_deref(),
            Some(spelling),
            "W-7"
        );
        assert_eq!(rig.subs().await.len(), 1, "all of them are one topic");
    }
    rig.add(1).await;
    let [push] = &rig.net.pushes()[..] else {
        panic!("one push")
    };
    assert!(
        push.header("link")
            .starts_with(&format!("<{TOPIC}>; rel=\"self\"")),
        "self is the canonical one"
    );
    for foreign in [
        "http://feeds.example:8080/feeds/nothing.atom",
        "http://feeds.example:8080/feeds/blog.atom?since=cursor:",
        "http://feeds.example:8080/feeds/blog.atom?order=-modified",
        "http://feeds.example:8080/feeds/blog.atom?order=best",
        "http://old.example/rss.xml",
        "http://feeds.example:8080/",
    ] {
        let (status, text) = ask(foreign).await;
        assert_eq!(status, 404, "{foreign}");
        assert!(text.contains("hub.topic"), "{text}");
    }
}

// SF-78.
#[tokio::test(start_paused = true)]
async fn the_hub_of_a_feed_knows_the_topics_of_that_feed() {
    let rig = Rig::new().await;
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", TOPIC),
        ("hub.callback", CALLBACK),
    ];
    assert_eq!(rig.ask_at("/feeds/blog/hub", &form).await.status(), 202);
    assert_eq!(rig.ask_at("/feeds/blog/hub/", &form).await.status(), 202);
    assert_eq!(rig.ask_at("/hub/", &form).await.status(), 202);
    assert_eq!(rig.ask_at("/feeds/other/hub", &form).await.status(), 404);
}

// P-5, D-P10: the key is the topic and the exact callback.
#[tokio::test(start_paused = true)]
async fn another_callback_or_another_topic_is_another_subscription() {
    let rig = Rig::new().await;
    let json = "http://feeds.example:8080/feeds/blog.json?order=modified";
    for (topic, callback) in [
        (TOPIC, CALLBACK),
        (TOPIC, "http://reader.example/cb?k=key"),
        (json, CALLBACK),
    ] {
        for _ in 0..2 {
            rig.ask(&[
                ("hub.mode", "subscribe"),
                ("hub.topic", topic),
                ("hub.callback", callback),
            ])
            .await;
        }
    }
    rig.wait(1).await;
    assert_eq!(rig.counts().active, 3);
    rig.add(1).await;
    let mut pushed: Vec<(String, String)> = rig
        .net
        .pushes()
        .iter()
        .map(|push| (push.url.clone(), push.header("content-type").to_owned()))
        .collect();
    pushed.sort();
    let (atom, json) = (
        "application/atom+xml; charset=utf-8",
        "application/json; charset=utf-8",
    );
    let expect = [
        (CALLBACK, atom),
        (CALLBACK, json),
        ("http://reader.example/cb?k=key", atom),
    ];
    assert_eq!(
        pushed,
        expect.map(|(url, media)| (url.to_owned(), media.to_owned()))
    );
}

// P-17: all or nothing.
#[tokio::test(start_paused = true)]
async fn several_topics_of_the_old_dialect_are_all_taken_or_none() {
    let rig = Rig::new().await;
    let form = |second| {
        let mode = [
            ("hub.mode", "subscribe"),
            ("hub.callback", CALLBACK),
            ("hub.verify", "sync"),
        ];
        [
            mode[0],
            mode[1],
            mode[2],
            ("hub.topic", TOPIC),
            ("hub.topic", second),
        ]
    };
    assert_eq!(
        rig.ask(&form("http://feeds.example:8080/feeds/nothing"))
            .await
            .0,
        404
    );
    assert!(rig.sub().await.is_none());
    assert_eq!(
        rig.ask(&form("http://feeds.example:8080/feeds/other.json"))
            .await
            .0,
        204
    );
    assert_eq!(rig.subs().await.len(), 2);
}

// PUSH section 3, HUBS 5.3.
#[tokio::test(start_paused = true)]
async fn other_methods_get_a_page_or_a_hint() {
    let rig = Rig::new().await;
    let ask = async |method: Method, uri: &str| {
        let request = http::Request::builder()
            .method(method)
            .uri(uri)
            .body(Bytes::new())
            .unwrap();
        rig.hub.handle(request, None).await
    };
    let page = ask(Method::GET, "/hub").await;
    assert_eq!(page.status(), 200);
    assert!(String::from_utf8_lossy(page.body()).contains("http://feeds.example:8080/hub"));
    let lost = ask(Method::GET, "/hub?hub.mode=subscribe&hub.topic=x").await;
    assert_eq!(lost.status(), 400);
    assert!(String::from_utf8_lossy(lost.body()).contains("hub.mode"));
    let put = ask(Method::PUT, "/hub").await;
    assert_eq!(
        (
            put.status().as_u16(),
            put.headers()["allow"].to_str().unwrap()
        ),
        (405, "GET, HEAD, POST, OPTIONS")
    );
    assert_eq!(ask(Method::POST, "/hub").await.status(), 415);
    let (status, text) = rig
        .ask(&[("hub.mode", "subscribe"), ("hub.topic", TOPIC)])
        .await;
    assert_eq!((status, text.contains("hub.callback")), (400, true));
}

// HUB-16, DESIGN section 9: a clamp or a bad lease is a word, not a refusal.
#[tokio::test(start_paused = true)]
async fn an_odd_lease_is_a_word_in_the_answer() {
    let rig = Rig::new().await;
    for (asked, granted) in [
        ("1", "300"),
        ("999999999", "2592000"),
        ("for ever", "864000"),
    ] {
        let (status, text) = rig
            .ask_to("subscribe", &[("hub.lease_seconds", asked)])
            .await;
        assert_eq!(status, 202);
        assert!(
            text.contains("note: hub.lease_seconds") && text.contains(granted),
            "{text}"
        );
        rig.wait(1).await;
        assert_eq!(
            rig.net.taken()[0].param("hub.lease_seconds").as_deref(),
            Some(granted)
        );
    }
}

// P-40, P-41, P03-7, SF-86.
#[tokio::test(start_paused = true)]
async fn a_publisher_may_say_that_a_feed_has_changed_and_no_more() {
    let rig = Rig::new().await;
    let publish = async |urls: &[(&str, &str)]| {
        let mut form = vec![("hub.mode", "publish")];
        form.extend(urls);
        rig.ask(&form).await.0
    };
    let hinted = async || {
        let hints = tokio::time::timeout(Duration::from_secs(1), rig.notify.hints()).await;
        let hints = hints.unwrap_or_default();
        hints.iter().for_each(|feed| rig.notify.hint_heard(*feed));
        hints.into_iter().collect::<Vec<FeedNo>>()
    };
    assert_eq!(
        publish(&[("hub.url", "http://OLD.example:80/rss.xml")]).await,
        204
    );
    assert_eq!(hinted().await, [FeedNo(1)]);
    assert_eq!(
        publish(&[("hub.topic", TOPIC), ("hub.url", "http://nowhere.example/")]).await,
        204
    );
    assert_eq!(hinted().await, [FeedNo(1)]);
    // A comma may part two URLs, or be part of one.
    assert_eq!(
        publish(&[("hub.url", "http://other.example/a,b.xml")]).await,
        204
    );
    assert_eq!(hinted().await, [FeedNo(2)]);
    assert_eq!(
        publish(&[(
            "hub.url[]",
            "http://nowhere.example/,http://old.example/rss.xml"
        )])
        .await,
        204
    );
    assert_eq!(hinted().await, [FeedNo(1)]);
    assert_eq!(
        publish(&[("hub.url", "http://nowhere.example/")]).await,
        404
    );
    assert!(hinted().await.is_empty());
    assert!(rig.net.taken().is_empty(), "nothing is fetched from here");
}

// P-42, HUBS 5.2: both kinds of request have a rate.
#[tokio::test(start_paused = true)]
async fn too_many_requests_are_told_when_to_come_again() {
    let rig = Rig::new().await;
    let publish = [("hub.mode", "publish"), ("hub.url", TOPIC)];
    for _ in 0..100 {
        assert_eq!(rig.ask(&publish).await.0, 204);
    }
    let response = rig.ask_at("/hub", &publish).await;
    assert_eq!(
        (
            response.status().as_u16(),
            &response.headers()["retry-after"]
        ),
        (429, &"1".parse().unwrap())
    );
    rig.wait(1).await;
    assert_eq!(rig.ask(&publish).await.0, 204);

    for _ in 0..100 {
        assert_eq!(rig.ask_to("subscribe", &[]).await.0, 202);
    }
    assert_eq!(rig.ask_to("subscribe", &[]).await.0, 429);
    assert_eq!(
        rig.ask_from([192, 0, 2, 99], CALLBACK).await,
        202,
        "another client has its own room"
    );
    rig.wait(1).await;
    assert_eq!(rig.counts().active, 1);
    for _ in 0..10 {
        rig.ask(&[
            ("hub.mode", "subscribe"),
            ("hub.topic", TOPIC),
            ("hub.callback", "http://else.example/"),
        ])
        .await;
    }
    assert_eq!(
        rig.ask_to("subscribe", &[]).await.0,
        202,
        "what is subscribed is renewed all the same"
    );
}

#[tokio::test(start_paused = true)]
async fn there_is_room_for_so_many_subscriptions_and_no_more() {
    let rig = Rig::with(Config {
        subscriptions_max: 3,
        unverified_max: 1,
        ..Config::default()
    })
    .await;
    let ask = async |host: &str| {
        let callback = format!("http://{host}.example/");
        rig.ask(&[
            ("hub.mode", "subscribe"),
            ("hub.topic", TOPIC),
            ("hub.callback", &callback),
        ])
        .await
        .0
    };
    assert_eq!(
        (ask("a").await, ask("b").await),
        (202, 503),
        "one may wait for its verification"
    );
    rig.wait(1).await;
    assert_eq!(ask("b").await, 202);
    rig.wait(1).await;
    assert_eq!(ask("c").await, 202);
    rig.wait(1).await;
    assert_eq!(
        (ask("d").await, ask("a").await),
        (503, 202),
        "a renewal needs no room"
    );
}

// Two requests at once start one task, and the newest counts.
#[tokio::test(start_paused = true)]
async fn requests_at_the_same_time_are_one_subscription() {
    let rig = Rig::new().await;
    let ask = async |lease: &str| {
        rig.ask_to("subscribe", &[("hub.lease_seconds", lease)])
            .await
            .0
    };
    let leases = tokio::join!(ask("400"), ask("500"), ask("600"));
    assert_eq!(leases, (202, 202, 202));
    rig.wait(1).await;
    assert_eq!(rig.subs().await.len(), 1);
    assert_eq!(
        rig.net.taken().len(),
        1,
        "one verification, of the newest request"
    );
    assert_eq!(rig.sub().await.unwrap().lease.unwrap().terms.secs, 600);
}

// The hub logs topics at each step of a subscription; one may have a token.
#[tokio::test(start_paused = true)]
async fn no_topic_leaves_what_its_query_holds_in_the_log() {
    let logged = Logged::begin();
    let rig = Rig::new().await;
    let topic = format!("{TOPIC}&q=T0KEN");
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", topic.as_str()),
        ("hub.callback", CALLBACK),
    ];
    assert_eq!(rig.ask(&form).await.0, 202);
    rig.wait(1).await;
    rig.net.on_push(|_| Reply::status(500));
    rig.add(1).await;
    rig.wait(DAY_SECS).await;
    let text = logged.text();
    assert!(text.contains("?order=***&q=***"), "{text}");
    assert!(!text.contains("T0KEN"), "{text}");
}
