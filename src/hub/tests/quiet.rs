//! Pushes without items: news of the channel alone (P03-10), heartbeats, and the warning before a
//! lease ends (HUBS 5.1).

use super::rig::{CALLBACK, Call, Reply, Rig, TOPIC};
use crate::hub::WebhookSettings;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

const BASE: &str = "http://feeds.example:8080/feeds/blog";

async fn subscribe(rig: &Rig, topic: &str, more: &[(&str, &str)]) {
    let mut form = vec![
        ("hub.mode", "subscribe"),
        ("hub.topic", topic),
        ("hub.callback", CALLBACK),
    ];
    form.extend(more);
    let (status, said) = rig.ask(&form).await;
    assert_eq!(status, 202, "{said}");
    rig.wait(1).await;
    rig.net.taken();
}

fn one(pushes: Vec<Call>) -> Call {
    let count = pushes.len();
    let [push] = <[Call; 1]>::try_from(pushes).unwrap_or_else(|_| panic!("{count} pushes"));
    push
}

fn text(push: &Call) -> String {
    String::from_utf8(push.body.to_vec()).unwrap()
}

/// The push stands still in its chain, in headers and in the body.
fn check_still(push: &Call, at: &str) {
    assert_eq!((push.prev(), push.last()), (at, at));
    if push.header("content-type").starts_with("application/json") {
        let body: Value = serde_json::from_slice(&push.body).unwrap();
        assert_eq!(body["prev_cursor"], at);
        assert_eq!(body["last_cursor"], at);
        assert_eq!(body["items"], Value::Array(vec![]));
    }
}

// P03-10 with SF-75: on every kind of topic, and the chain goes on from where it was.
#[tokio::test(start_paused = true)]
async fn a_change_of_the_channel_alone_is_pushed_and_breaks_no_chain() {
    for (topic, hidden) in [
        (".atom?order=modified", false),
        (".json?order=modified", false),
        (".json?order=created", false),
        (".json?order=modified&q=even", true),
        ("/classic.rss", false),
        ("/classic.jsonfeed", false),
        (".rdf?order=modified", false),
        (".as2?order=modified", false),
    ] {
        let rig = Rig::new().await;
        subscribe(&rig, &format!("{BASE}{topic}"), &[]).await;
        rig.commit(vec![crate::readers::testing::add_titled(1, "even")])
            .await;
        let held = one(rig.net.pushes()).last().to_owned();
        if hidden {
            // The position scanned moves on, and what was pushed last stays what it was.
            rig.commit(vec![crate::readers::testing::add_titled(2, "odd")])
                .await;
            rig.wait(1).await;
            assert_eq!(rig.net.pushes().len(), 0);
        }
        rig.entitle("Another <title>").await;
        let push = one(rig.net.pushes());
        check_still(&push, &held);
        assert!(text(&push).contains("Another "), "{topic}: {}", text(&push));
        rig.wait(600).await;
        assert_eq!(rig.net.pushes().len(), 0, "{topic}: once");
        rig.commit(vec![crate::readers::testing::add_titled(3, "even")])
            .await;
        assert_eq!(one(rig.net.pushes()).prev(), held, "{topic}");
        // What came with items is known.
        rig.wait(600).await;
        assert_eq!(rig.net.pushes().len(), 0, "{topic}");
    }
}

#[tokio::test(start_paused = true)]
async fn forms_that_do_not_show_the_channel_and_resources_are_not_pushed_it() {
    for topic in [".csv?order=modified", ".tsv?order=modified"] {
        let rig = Rig::new().await;
        subscribe(&rig, &format!("{BASE}{topic}"), &[]).await;
        rig.entitle("Another").await;
        rig.wait(600).await;
        assert_eq!(rig.net.pushes().len(), 0, "{topic}");
    }
    let rig = Rig::new().await;
    rig.resource().await;
    subscribe(&rig, "http://old.example/rss.xml", &[]).await;
    rig.entitle("Another").await;
    rig.wait(600).await;
    assert_eq!(rig.net.pushes().len(), 0);
}

// Whatever happens in between, the news arrives; and each of many is not told.
#[tokio::test(start_paused = true)]
async fn news_of_the_channel_outlives_a_kill_and_is_no_flood() {
    let mut rig = Rig::new().await;
    subscribe(&rig, TOPIC, &[]).await;
    rig.add(1).await;
    rig.net.taken();
    rig.net.on_push(|_| Reply::down());
    rig.entitle("Another").await;
    rig = rig.killed().await;
    rig.net.willing();
    rig.net.taken();
    rig.wait(3600).await;
    let push = one(rig.net.pushes());
    assert!(text(&push).contains("Another"));
    for n in 0..60 {
        rig.entitle(&format!("Title {n}")).await;
        rig.wait(60).await;
    }
    rig.wait(600).await;
    let pushes = rig.net.pushes();
    assert!(
        (5..=12).contains(&pushes.len()),
        "{} in an hour",
        pushes.len()
    );
    assert!(text(pushes.last().unwrap()).contains("Title 59"));
    // Items wait for none of this, and bring the newest title.
    rig.entitle("With items").await;
    rig.add(2).await;
    assert!(
        rig.net
            .pushes()
            .iter()
            .any(|push| text(push).contains("With items"))
    );
}

// C-4, and webhooks: one word for it, each in its own way.
#[tokio::test(start_paused = true)]
async fn listeners_and_webhooks_hear_of_the_channel() {
    let mut rig = Rig::new().await;
    rig.add(1).await;
    let secret = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let webhook: WebhookSettings = toml::from_str(&format!(
        "url = \"http://hook.example/x\"\nfeed = \"blog\"\nsecret = \"{secret}\"\n"
    ))
    .unwrap();
    rig.webhooks = vec![webhook];
    rig = rig.killed().await;
    let listener = [
        ("notifyProcedure", ""),
        ("domain", "reader.example"),
        ("port", "5337"),
        ("path", "/told"),
        ("protocol", "http-post"),
        ("url1", &format!("{BASE}/classic.rss")),
    ];
    rig.net.on(|call| {
        call.param("challenge")
            .map_or(Reply::status(204), Reply::body)
    });
    assert_eq!(rig.ask_at("/pleaseNotify", &listener).await.status(), 200);
    rig.net.taken();
    rig.entitle("Another").await;
    let told: BTreeMap<String, Call> = rig
        .net
        .pushes()
        .into_iter()
        .map(|push| (push.url.clone(), push))
        .collect();
    assert_eq!(told.len(), 2, "{:?}", told.keys());
    assert!(text(&told["http://reader.example:5337/told"]).starts_with("url="));
    let hook = &told["http://hook.example/x"];
    let message: Value = serde_json::from_slice(&hook.body).unwrap();
    assert_eq!(message["type"], "feed.updated");
    assert_eq!(
        message["data"]["cursor"],
        message["data"]["previous_cursor"]
    );
    assert!(hook.header("webhook-id").starts_with("feed_"));
}

// HUBS 5.1: quiet is told from dead, where it was asked for, and the chain stays whole.
#[tokio::test(start_paused = true)]
async fn a_heartbeat_comes_after_silence_and_leads_nowhere() {
    let rig = Rig::new().await;
    rig.subscribed(&[("hub.heartbeat_seconds", "600")]).await;
    rig.add(1).await;
    let first = one(rig.net.pushes());
    let held = first.last().to_owned();
    rig.wait(590).await;
    assert_eq!(rig.net.pushes().len(), 0);
    rig.wait(20).await;
    check_still(&one(rig.net.pushes()), &held);
    // A push of items is as good.
    rig.wait(300).await;
    rig.add(2).await;
    let second = one(rig.net.pushes());
    assert_eq!(second.prev(), held);
    rig.wait(400).await;
    assert_eq!(rig.net.pushes().len(), 0);
    rig.wait(210).await;
    check_still(&one(rig.net.pushes()), second.last());
    let rev = rig.sub().await.unwrap().rev;
    rig.wait(6000).await;
    assert_eq!(rig.net.pushes().len(), 10);
    assert_eq!(rig.sub().await.unwrap().rev, rev);
    // One that is not taken is tried again as any push.
    rig.net.on_push(|_| Reply::status(503));
    rig.wait(700).await;
    assert!(rig.net.pushes().len() > 1);
    rig.net.willing();
    rig.wait(3600).await;
    let after = rig.net.pushes();
    assert!(after.iter().all(|push| push.prev() == push.last()));
    assert_eq!(rig.progress().await.attempts.failed, 0);
}

#[tokio::test(start_paused = true)]
async fn nobody_gets_a_heartbeat_or_a_warning_without_asking() {
    let rig = Rig::new().await;
    rig.subscribed(&[("hub.lease_seconds", "86400")]).await;
    rig.wait(90_000).await;
    assert_eq!(rig.net.taken().len(), 0);
    for (name, bad) in [
        ("hub.heartbeat_seconds", "59"),
        ("hub.heartbeat_seconds", "+600"),
        ("hub.heartbeat_seconds", "6e2"),
        ("hub.heartbeat_seconds", "99999999999999999999"),
        ("hub.warning_seconds", "0"),
        ("hub.warning_seconds", "soon"),
    ] {
        let (status, said) = rig.ask_to("subscribe", &[(name, bad)]).await;
        assert_eq!((status, said.contains(name)), (400, true), "{said}");
    }
}

// Heartbeats and chains: whatever is filtered out in between, what is previous is what was pushed.
#[tokio::test(start_paused = true)]
async fn heartbeats_of_a_filtered_topic_stay_at_what_was_pushed_last() {
    let mut rig = Rig::new().await;
    let topic = format!("{BASE}.json?order=modified&q=even");
    subscribe(&rig, &topic, &[("hub.heartbeat_seconds", "60")]).await;
    let chain: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let log = chain.clone();
    rig.net.on_push(move |push| {
        let link = (push.prev().to_owned(), push.last().to_owned());
        log.lock().unwrap().push(link);
        Reply::status(204)
    });
    for n in 1..40 {
        let title = if n % 5 == 0 { "even" } else { "odd" };
        rig.commit(vec![crate::readers::testing::add_titled(n, title)])
            .await;
        rig.wait(45).await;
        if n % 11 == 0 {
            rig = rig.killed().await;
        }
    }
    rig.wait(120).await;
    let chain = chain.lock().unwrap();
    assert!(chain.iter().filter(|(prev, last)| prev == last).count() > 10);
    assert_eq!(chain.iter().filter(|(prev, last)| prev != last).count(), 7);
    for pair in chain.windows(2) {
        assert_eq!(pair[1].0, pair[0].1);
    }
}

// A resource has no empty page: its heartbeat is what it is now, once more.
#[tokio::test(start_paused = true)]
async fn a_heartbeat_of_a_resource_is_its_bytes_again() {
    let rig = Rig::new().await;
    rig.resource().await;
    rig.add(1).await;
    rig.keep(
        "v0",
        crate::feed::legacy_document::LegacySyntax::Other,
        None,
    )
    .await;
    let wishes = [("hub.heartbeat_seconds", "60"), ("hub.methods", "override")];
    rig.net
        .on_verify(|call| Reply::willing(call).with("x-hub-methods", "PUT"));
    subscribe(&rig, "http://old.example/rss.xml", &wishes).await;
    let held = rig.head().await;
    rig.wait(61).await;
    let push = one(rig.net.pushes());
    assert_eq!(
        (&push.body[..], push.header("x-http-method-override")),
        (&b"v0"[..], "PUT")
    );
    check_still(&push, &held);
}

// HUBS 5.1, w3c/websub#16: a warning, once it is heard, and a word at the end.
#[tokio::test(start_paused = true)]
async fn who_asks_for_it_is_warned_before_the_lease_ends_and_told_at_its_end() {
    let rig = Rig::new().await;
    let lease = ("hub.lease_seconds", "86400");
    rig.subscribed(&[lease, ("hub.warning_seconds", "3600")])
        .await;
    rig.wait(86_400 - 3_610).await;
    assert_eq!(rig.net.taken().len(), 0);
    rig.net.on(|_| Reply::status(500));
    rig.wait(20).await;
    let calls = rig.net.taken();
    let [warning] = &calls[..] else {
        panic!("{} calls", calls.len())
    };
    for (name, value) in [
        ("k", "KEY"),
        ("hub.mode", "expiring"),
        ("hub.topic", TOPIC),
        ("hub.lease_seconds", "3600"),
        ("hub.resubscribe", "true"),
    ] {
        assert_eq!(warning.param(name).as_deref(), Some(value), "{name}");
    }
    // It was not heard: again in half of what is left.
    rig.net.willing();
    rig.wait(1_770).await;
    assert_eq!(rig.net.taken().len(), 0);
    rig.wait(40).await;
    assert_eq!(rig.net.taken().len(), 1);
    rig.wait(1_700).await;
    assert_eq!(rig.net.taken().len(), 0, "it was heard");
    // A renewal in time begins anew.
    rig.subscribed(&[lease, ("hub.warning_seconds", "3600")])
        .await;
    rig.wait(86_400 + 700).await;
    let modes: Vec<_> = rig
        .net
        .taken()
        .iter()
        .map(|call| (call.param("hub.mode"), call.param("hub.reason")))
        .collect();
    let told = |text: &str| Some(text.to_owned());
    assert_eq!(
        modes,
        [
            (told("expiring"), None),
            (told("denied"), told("the lease is over"))
        ]
    );
    assert!(rig.sub().await.is_none());
}

// A wish for a warning that is longer than the lease comes in its middle.
#[tokio::test(start_paused = true)]
async fn a_warning_never_comes_in_the_first_half_of_a_lease() {
    let rig = Rig::new().await;
    let wishes = [
        ("hub.lease_seconds", "1000"),
        ("hub.warning_seconds", "2592000"),
    ];
    rig.subscribed(&wishes).await;
    rig.wait(490).await;
    assert_eq!(rig.net.taken().len(), 0);
    rig.wait(20).await;
    assert_eq!(rig.net.taken().len(), 1);
}

// HUBS 5.1, w3c/websub#174: whoever is asked knows whether it renews.
#[tokio::test(start_paused = true)]
async fn the_question_says_whether_it_is_a_renewal() {
    let rig = Rig::new().await;
    let asked = async |mode: &str| {
        assert_eq!(rig.ask_to(mode, &[]).await.0, 202);
        rig.wait(1).await;
        let call = rig.net.taken().remove(0);
        call.param("hub.resubscribe")
    };
    assert_eq!(asked("subscribe").await.as_deref(), Some("false"));
    assert_eq!(asked("subscribe").await.as_deref(), Some("true"));
    assert_eq!(asked("unsubscribe").await, None);
    assert_eq!(asked("subscribe").await.as_deref(), Some("false"));
}

// W-17: what was subscribed under a former root stays one subscription, under old and new spellings.
#[tokio::test(start_paused = true)]
async fn a_subscription_outlives_a_change_of_our_urls() {
    let old = "https://was.example/smart/feeds/blog.atom?order=modified";
    let mut rig = Rig::new().await;
    rig.subscribed(&[("hub.secret", "hush")]).await;
    rig.add(1).await;
    rig.net.taken();
    let (sub, progress) = rig.subs().await.remove(0);
    // As a process stored it whose URLs began so.
    rig.store.end_subscription(sub.no).await.unwrap();
    let pending = crate::store::subscriptions::Pending {
        intent: crate::store::subscriptions::Intent::Subscribe {
            target: sub.target.clone(),
            lease: sub.lease.unwrap().terms,
        },
        attempts: 0,
        next_try: crate::feed::stamp::Stamp::ZERO,
        give_up_at: crate::feed::stamp::Stamp::MAX,
        start: crate::store::subscriptions::Start::Head(None),
        principal: None,
        scanned: None,
    };
    let stored = crate::store::subscriptions::NewSubscription {
        view: sub.view.clone(),
        representation: sub.representation.clone(),
        topic: old.to_owned(),
        target: sub.target.clone(),
        pending,
    };
    let made = rig.store.subscribe(stored).await.unwrap();
    let kept = crate::store::Subscription {
        lease: sub.lease,
        pending: None,
        ..made
    };
    rig.store
        .change_subscription(kept, Some(progress.clone()))
        .await
        .unwrap();
    rig = rig.killed().await;
    rig.add(2).await;
    let push = one(rig.net.pushes());
    assert_eq!(
        Some(push.prev()),
        progress.acked.as_deref(),
        "nothing is lost"
    );
    assert!(
        push.header("link").contains(TOPIC),
        "{}",
        push.header("link")
    );
    for topic in [old, TOPIC] {
        subscribe(&rig, topic, &[("hub.secret", "hush")]).await;
        assert_eq!(rig.subs().await.len(), 1, "{topic}");
        let form = [
            ("hub.mode", "status"),
            ("hub.topic", topic),
            ("hub.callback", CALLBACK),
            ("hub.secret", "hush"),
        ];
        let (status, said) = rig.ask(&form).await;
        assert_eq!((status, said.contains("subscribed")), (200, true), "{said}");
    }
    let form = [
        ("hub.mode", "unsubscribe"),
        ("hub.topic", TOPIC),
        ("hub.callback", CALLBACK),
    ];
    assert_eq!(rig.ask(&form).await.0, 202);
    rig.wait(1).await;
    assert!(rig.subs().await.is_empty());
}
