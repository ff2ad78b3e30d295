//! Pushes: what is in them, in which order they come, and what happens when they are not taken.

use super::rig::{CALLBACK, Call, DAY_SECS, Reply, Rig, TOPIC};
use crate::{
    feed::order::Order,
    hub::{Config, ProcessAddresses, signature},
    store::subscriptions::Algo,
};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// Every push follows on the one before: its prev is the predecessor's last, or the predecessor's
/// prev when that was sent again.
fn check_chain(pushes: &[Call], start: &str) {
    let mut before = (start, start);
    for push in pushes {
        assert!(
            push.prev() == before.1 || push.prev() == before.0,
            "{} follows on {before:?}",
            push.prev()
        );
        before = (push.prev(), push.last());
    }
}

// HUB-17, HUB-18, HUB-19, W-12, SF-84, SF-85.
#[tokio::test(start_paused = true)]
async fn a_push_says_what_it_is_and_what_it_follows_on() {
    let rig = Rig::new().await;
    rig.add(1).await;
    let head = rig.head().await;
    rig.subscribed(&[]).await;
    rig.add(2).await;
    let [push] = &rig.net.pushes()[..] else {
        panic!("one push, with what came after the request")
    };
    assert_eq!(push.url, CALLBACK, "byte for byte");
    assert_eq!(
        push.header("content-type"),
        "application/atom+xml; charset=utf-8"
    );
    let link = format!("<{TOPIC}>; rel=\"self\", <http://feeds.example:8080/hub>; rel=\"hub\"");
    assert_eq!(
        push.headers.get_all("link").iter().collect::<Vec<_>>(),
        [link.as_str()]
    );
    assert_eq!(
        push.header("user-agent"),
        "everfeed/test (+http://feeds.example/)"
    );
    assert_eq!(
        (push.prev(), push.last()),
        (head.as_str(), rig.head().await.as_str())
    );
    assert_eq!(
        push.header("x-hub-signature"),
        "",
        "none without a secret (HUB-23)"
    );
    let body = String::from_utf8(push.body.to_vec()).unwrap();
    assert!(
        body.contains(&head),
        "the body names the stored string too: {body}"
    );
    assert_eq!(rig.acked().await, rig.head().await);
}

// DESIGN section 3: a filter is a topic of its own.
#[tokio::test(start_paused = true)]
async fn a_filter_is_a_topic_and_pushes_what_it_shows() {
    let rig = Rig::new().await;
    let spelt = "http://feeds.example:8080/feeds/blog.atom?q=POST+5";
    let topic = "http://feeds.example:8080/feeds/blog.atom?order=modified&q=5%20post";
    rig.ask(&[
        ("hub.mode", "subscribe"),
        ("hub.topic", spelt),
        ("hub.callback", CALLBACK),
    ])
    .await;
    rig.wait(1).await;
    rig.net.taken();
    for n in 3..=6 {
        rig.add(n).await;
        rig.wait(1).await;
    }
    let first = rig.net.pushes();
    let [push] = &first[..] else {
        panic!("one push, for one of the posts")
    };
    let link = format!("<{topic}>; rel=\"self\", <http://feeds.example:8080/hub>; rel=\"hub\"");
    assert_eq!(
        push.headers.get_all("link").iter().collect::<Vec<_>>(),
        [link.as_str()]
    );
    let body = String::from_utf8(push.body.to_vec()).unwrap();
    assert_eq!(body.matches("<entry").count(), 1, "{body}");
    // Cursors are those of the whole feed.
    rig.edit(5, "post 5 again").await;
    rig.wait(1).await;
    let [second] = &rig.net.pushes()[..] else {
        panic!("one push, for its edit")
    };
    assert_eq!(second.prev(), push.last());
}

// HUB-23, P03-11, W-18.
#[tokio::test(start_paused = true)]
async fn a_push_is_signed_in_the_hash_of_its_subscription() {
    let secret = ("hub.secret", "geh\u{e9}im");
    let algo = ("hub.signature_algo", "sha512");
    let legacy = ("hub.verify", "async");
    let cases = [
        (vec![secret], Algo::Sha256),
        (vec![secret, legacy], Algo::Sha1),
        (vec![secret, algo], Algo::Sha512),
        (vec![secret, legacy, algo], Algo::Sha512),
    ];
    for (params, algo) in cases {
        let rig = Rig::new().await;
        rig.subscribed(&params).await;
        rig.add(1).await;
        let [push] = &rig.net.pushes()[..] else {
            panic!("one push")
        };
        let expect = signature::signature(algo, "geh\u{e9}im".as_bytes(), &push.body);
        assert_eq!(push.header("x-hub-signature"), expect);
    }
}

// SF-70: an edit and a deletion are pushed on the modified topic, and only news on the created one.
#[tokio::test(start_paused = true)]
async fn each_topic_pushes_what_it_lists() {
    let rig = Rig::new().await;
    rig.add_all(1..=2).await;
    let base = "http://feeds.example:8080/feeds/blog";
    let topics = [
        "atom?order=modified",
        "atom?order=created",
        "json?order=modified",
    ];
    let topics = topics
        .map(|topic| format!("{base}.{topic}"))
        .into_iter()
        .chain([format!("{base}/classic.rss")]);
    for topic in topics {
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", topic.as_str()),
            ("hub.callback", CALLBACK),
        ];
        assert_eq!(rig.ask(&form).await.0, 202);
    }
    rig.wait(1).await;
    rig.net.taken();
    let pushed = || {
        let of = |push: &Call| {
            push.header("link")
                .split('>')
                .next()
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap()
                .to_owned()
        };
        let mut topics: Vec<String> = rig.net.pushes().iter().map(of).collect();
        topics.sort();
        topics
    };
    let [modified, created, json, rss] = [
        "blog.atom?order=modified",
        "blog.atom?order=created",
        "blog.json?order=modified",
        "classic.rss",
    ];
    rig.add(3).await;
    assert_eq!(pushed(), [created, modified, json, rss]);
    rig.edit(1, "again").await;
    assert_eq!(pushed(), [modified, json, rss]);
    // A form without tombstones has nothing to show, and its chain stays where it is.
    let shown = rig.head().await;
    rig.delete(2).await;
    assert_eq!(pushed(), [modified, json]);
    let acked: Vec<String> = rig
        .subs()
        .await
        .into_iter()
        .filter_map(|(_, progress)| progress.acked)
        .collect();
    let (head, head_created) = (rig.head().await, rig.head_in(Order::CREATED_REVERSE).await);
    assert_eq!(acked, [head.clone(), head_created, head, shown]);
}

// SF-75, SF-85, X-1: whatever can be pulled can be pushed, deletions included.
#[tokio::test(start_paused = true)]
async fn feeds_of_every_kind_are_pushed() {
    let rig = Rig::new().await;
    rig.add_all(1..=2).await;
    let subscribe = async |suffix: &str| {
        let topic = format!("http://feeds.example:8080/feeds/blog{suffix}");
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", topic.as_str()),
            ("hub.callback", CALLBACK),
        ];
        rig.ask(&form).await.0
    };
    for suffix in [".events", ".opml", "/classic.csv", ".xml"] {
        assert_eq!(subscribe(suffix).await, 404, "{suffix}");
    }
    for (suffix, media_type, tombstone) in [
        (".rss", "application/rss+xml", "<at:deleted-entry ref="),
        (".jsonfeed", "application/feed+json", "\"deleted\":[{"),
    ] {
        assert_eq!(subscribe(suffix).await, 202, "{suffix}");
        rig.wait(1).await;
        rig.net.taken();
        rig.add(if suffix == ".rss" { 3 } else { 4 }).await;
        rig.delete(if suffix == ".rss" { 1 } else { 2 }).await;
        let pushes: Vec<Call> = rig.net.pushes();
        let pushes: Vec<_> = pushes
            .iter()
            .filter(|push| push.header("content-type").starts_with(media_type))
            .collect();
        let [added, deleted] = &pushes[..] else {
            panic!("{} pushes", pushes.len())
        };
        let text = |push: &Call| String::from_utf8(push.body.to_vec()).unwrap();
        assert!(
            text(added).contains(added.last()) && text(added).contains(added.prev()),
            "{}",
            text(added)
        );
        assert!(text(deleted).contains(tombstone), "{}", text(deleted));
        assert_eq!(deleted.prev(), added.last());
    }
}

// SF-71, P-62, D-P8.
#[tokio::test(start_paused = true)]
async fn a_slow_subscriber_has_one_push_at_a_time_and_in_order() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    rig.net.on_push(|_| Reply::status(200).after(8));
    for n in 0..40 {
        rig.add(n).await;
        rig.wait(3).await;
    }
    rig.wait(20).await;
    let pushes = rig.net.pushes();
    assert_eq!(rig.net.pushes_at_once(), 1);
    assert!(
        (10..40).contains(&pushes.len()),
        "what came meanwhile is sent together: {}",
        pushes.len()
    );
    check_chain(&pushes, "");
    assert!(
        pushes
            .windows(2)
            .all(|pair| pair[1].prev() == pair[0].last()),
        "nothing is sent twice"
    );
    assert_eq!(pushes.last().unwrap().last(), rig.head().await);
}

// D-P8, HUBS pain 10.
#[tokio::test(start_paused = true)]
async fn a_slow_subscriber_does_not_slow_the_others() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    let quick = "http://quick.example/cb";
    rig.ask(&[
        ("hub.mode", "subscribe"),
        ("hub.topic", TOPIC),
        ("hub.callback", quick),
    ])
    .await;
    rig.wait(1).await;
    rig.net.on_push(|call| {
        if call.url == CALLBACK {
            Reply::down().after(9)
        } else {
            Reply::status(200)
        }
    });
    for n in 0..5 {
        rig.add(n).await;
        assert!(
            rig.net.pushes().iter().any(|push| push.url == quick),
            "at once"
        );
    }
    assert_eq!(rig.counts().active, 2);
}

// HUB-20, HUB-22, HUBS 5.2, W-14.
#[tokio::test(start_paused = true)]
async fn a_failing_subscriber_is_tried_again_ever_more_rarely_and_kept() {
    for reply in [
        || Reply::status(500),
        || Reply::status(404),
        || Reply::status(302),
        || Reply::down(),
    ] {
        let rig = Rig::new().await;
        rig.subscribed(&[]).await;
        rig.net.on_push(move |_| reply());
        rig.add(1).await;
        rig.wait(8 * 3600).await;
        let pushes = rig.net.pushes();
        let at: Vec<u64> = pushes.iter().map(|push| push.at_secs).collect();
        let waits: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        for (wait, least) in waits.iter().zip([5, 15, 60, 300, 900, 3600, 3600, 3600]) {
            assert!((least..=least + least / 2 + 1).contains(wait), "{waits:?}");
        }
        assert!(
            pushes.iter().all(|push| push.prev().is_empty()),
            "the prev is the stored string each time"
        );
        assert_eq!(rig.counts().failing, 1);
        let attempts = rig.progress().await.attempts;
        assert!(
            attempts.failure.is_some() && attempts.failed as usize == pushes.len(),
            "{attempts:?}"
        );
        rig.net.willing();
        rig.wait(2 * 3600).await;
        assert_eq!(
            (rig.counts().failing, rig.acked().await),
            (0, rig.head().await)
        );
    }
}

// DESIGN section 2, SF-73: no queue; HUBS 5.1: coalesced.
#[tokio::test(start_paused = true)]
async fn a_subscriber_that_was_down_for_a_week_gets_each_item_once_in_its_newest_form() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    rig.net.on_push(|_| Reply::down());
    for day in 0..7 {
        rig.add_all(day * 10..day * 10 + 10).await;
        rig.edit(0, &format!("day {day}")).await;
        rig.wait(DAY_SECS).await;
    }
    rig.net.taken();
    rig.net.willing();
    rig.wait(2 * 3600).await;
    let [push] = &rig.net.pushes()[..] else {
        panic!("seventy items in one push")
    };
    assert_eq!((push.prev(), push.last()), ("", rig.head().await.as_str()));
}

// HUBS 5.2.
#[tokio::test(start_paused = true)]
async fn a_long_backlog_comes_in_pushes_of_a_named_size() {
    let config = Config {
        push_items_max: 20,
        ..Config::default()
    };
    let rig = Rig::with(config).await;
    rig.subscribed(&[]).await;
    rig.add_all(0..70).await;
    let pushes = rig.net.pushes();
    assert_eq!(pushes.len(), 4);
    check_chain(&pushes, "");
    assert_eq!(pushes[3].last(), rig.head().await);
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_finds_a_push_too_large_gets_smaller_ones() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    let refusals = Arc::new(AtomicU32::new(3));
    let left = refusals.clone();
    rig.net.on_push(move |_| {
        let more = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(1)
        });
        Reply::status(if more.is_ok() { 413 } else { 204 })
    });
    rig.add_all(0..100).await;
    rig.wait(3600).await;
    let pushes = rig.net.pushes();
    check_chain(&pushes, "");
    assert_ne!(
        pushes[3].last(),
        rig.head().await,
        "the first that is taken holds a part"
    );
    assert_eq!(pushes.last().unwrap().last(), rig.head().await);
    assert_eq!(refusals.load(Ordering::Relaxed), 0);
}

// Re-delivery: the answer was lost, so the push is sent again, with the same prev and what came
// meanwhile.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_a_push_sent_again() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    let mut count = 0;
    rig.net.on_push(move |_| {
        count += 1;
        if count % 2 == 1 {
            Reply::fail(crate::layers::FetchError::Cut(
                crate::layers::error::CutFault::Unanswered,
                "reset".into(),
            ))
        } else {
            Reply::status(200)
        }
    });
    for n in 0..10 {
        rig.add(n).await;
        rig.wait(6).await;
        rig.add(100 + n).await;
        rig.wait(60).await;
    }
    let pushes = rig.net.pushes();
    assert!(
        pushes
            .windows(2)
            .any(|pair| pair[0].prev() == pair[1].prev() && pair[0].last() != pair[1].last())
    );
    check_chain(&pushes, "");
    assert_eq!(rig.acked().await, rig.head().await);
}

// An outage of hours is no flood of pushes that were taken (HUB-22).
#[tokio::test(start_paused = true)]
async fn a_push_that_was_taken_is_not_sent_again_while_the_store_takes_nothing() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    rig.disk.set(true);
    rig.add(1).await;
    rig.wait(3600).await;
    let mut pushes = rig.net.pushes();
    assert_eq!((pushes.len(), &*rig.acked().await), (1, ""));
    rig.disk.set(false);
    rig.wait(6).await;
    assert_eq!(rig.acked().await, rig.head().await);
    rig.add(2).await;
    rig.wait(6).await;
    pushes.extend(rig.net.pushes());
    assert_eq!(pushes.len(), 2);
    check_chain(&pushes, "");
    assert_eq!(rig.acked().await, rig.head().await);
}

#[tokio::test(start_paused = true)]
async fn a_push_that_was_taken_is_sent_again_to_who_asks_for_it() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    rig.add(1).await;
    let before = rig.acked().await;
    assert_eq!(rig.head().await, before);
    rig.disk.set(true);
    rig.add(2).await;
    rig.wait(60).await;
    assert_eq!(rig.net.pushes().len(), 2);
    let since = format!("cursor:{before}");
    rig.net
        .on_verify(|call| Reply::willing(call).with("x-hub-confirms", "cursor"));
    let asked = rig.ask_to("subscribe", &[("hub.since", &since)]).await;
    assert_eq!(asked.0, 202);
    rig.wait(1).await;
    rig.disk.set(false);
    rig.add(3).await;
    rig.wait(60).await;
    let pushes = rig.net.pushes();
    let last = pushes.last().expect("it is sent what came since").last();
    assert_eq!(last, rig.head().await);
    assert!(pushes.iter().any(|push| push.prev() == before));
}

#[tokio::test(start_paused = true)]
async fn a_push_that_was_taken_is_kept_at_the_end_when_the_store_takes_it_by_then() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    rig.disk.set(true);
    rig.add(1).await;
    rig.wait(1).await;
    rig.disk.set(false);
    rig.hub.shutdown(std::time::Duration::from_secs(10)).await;
    assert_eq!(rig.acked().await, rig.head().await);
    assert_eq!(rig.net.pushes().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_never_answers_is_a_failure_after_ten_seconds() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    rig.net.on_push(|_| Reply::status(200).after(DAY_SECS));
    rig.add(1).await;
    rig.wait(11).await;
    assert!(
        rig.progress()
            .await
            .attempts
            .failure
            .unwrap()
            .contains("10 s")
    );
    rig.wait(10).await;
    assert_eq!(rig.net.pushes().len(), 2);
}

// HUBS 5.2.
#[tokio::test(start_paused = true)]
async fn a_subscriber_may_say_when_to_try_again() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    rig.net
        .on_push(|_| Reply::status(503).with("retry-after", "1000"));
    rig.add(1).await;
    rig.wait(999).await;
    assert_eq!(rig.net.pushes().len(), 1);
    rig.net.willing();
    rig.wait(2).await;
    assert_eq!(rig.net.pushes().len(), 1);
}

// HUB-21.
#[tokio::test(start_paused = true)]
async fn a_410_ends_the_subscription() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    rig.net.on_push(|_| Reply::status(410));
    rig.add(1).await;
    assert!(rig.sub().await.is_none());
    rig.net.willing();
    rig.add(2).await;
    rig.wait(DAY_SECS).await;
    assert_eq!(rig.net.pushes().len(), 1);
    rig.subscribed(&[]).await;
    assert_eq!(
        rig.acked().await,
        rig.head().await,
        "one that comes back starts anew"
    );
}

// HUBS 5.2.
#[tokio::test(start_paused = true)]
async fn one_host_has_so_many_pushes_at_once() {
    let rig = Rig::with(Config {
        in_flight_per_host_max: 2,
        ..Config::default()
    })
    .await;
    let callbacks: Vec<String> = (0..6)
        .map(|n| format!("http://reader.example/{n}"))
        .collect();
    for callback in &callbacks {
        rig.ask(&[
            ("hub.mode", "subscribe"),
            ("hub.topic", TOPIC),
            ("hub.callback", callback),
        ])
        .await;
    }
    rig.wait(1).await;
    rig.net.on_push(|_| Reply::status(200).after(5));
    rig.net.taken();
    rig.add(1).await;
    assert_eq!(rig.net.pushes().len(), 2);
    rig.wait(6).await;
    assert_eq!(rig.net.pushes().len(), 2);
    // Who still waits gets the newest state, not what was new when it began to wait.
    rig.add(2).await;
    rig.wait(60).await;
    let mut per_callback: Vec<usize> = vec![0; 6];
    for push in rig.net.pushes() {
        per_callback[push.url[push.url.len() - 1..].parse::<usize>().unwrap()] += 1;
    }
    assert!(
        per_callback.contains(&1),
        "some got both items in one push: {per_callback:?}"
    );
}

// DESIGN section 4: subscribed before the first document is in.
#[tokio::test(start_paused = true)]
async fn a_subscription_made_before_the_feed_is_served_starts_at_its_head_then() {
    let rig = Rig::unready(Config::default()).await;
    assert_eq!(rig.ask_to("subscribe", &[]).await.0, 202);
    rig.wait(1).await;
    assert_eq!(
        rig.net.taken()[0].param("hub.cursor"),
        None,
        "there is no cursor yet"
    );
    assert_eq!(rig.progress().await.acked, None);
    rig.add_all(0..10).await;
    let head = rig.head().await;
    rig.wait(60).await;
    assert!(
        rig.net.pushes().is_empty(),
        "what was there when serving began is for pulls"
    );
    assert_eq!(rig.acked().await, head);
    rig.add(10).await;
    let [push] = &rig.net.pushes()[..] else {
        panic!("one push")
    };
    assert_eq!(push.prev(), head);
}

// HUBS 5.1: a known base.
#[tokio::test(start_paused = true)]
async fn a_subscriber_may_say_from_where_on() {
    let rig = Rig::new().await;
    rig.add(1).await;
    let since = rig.head().await;
    rig.add_all(2..=3).await;
    assert_eq!(
        rig.ask_to("subscribe", &[("hub.since", &format!("cursor:{since}"))])
            .await
            .0,
        202
    );
    rig.wait(1).await;
    let calls = rig.net.taken();
    assert_eq!(
        calls[0].param("hub.cursor").as_deref(),
        Some(since.as_str())
    );
    assert_eq!(
        (calls[1].prev(), calls[1].last()),
        (since.as_str(), rig.head().await.as_str())
    );
    // Asked again, it comes again: the subscriber has lost what it had, and says so.
    rig.net
        .on_verify(|call| Reply::willing(call).with("x-hub-confirms", "cursor"));
    assert_eq!(
        rig.ask_to("subscribe", &[("hub.since", "cursor:")]).await.0,
        202
    );
    rig.wait(1).await;
    let pushes = rig.net.pushes();
    assert_eq!(
        (pushes[0].prev(), pushes[0].last()),
        ("", rig.head().await.as_str())
    );
    assert_eq!(
        rig.ask_to("subscribe", &[("hub.since", "cursor:what")])
            .await
            .0,
        400
    );
}

// The store was restored: one push says so, and brings nothing again.
#[tokio::test(start_paused = true)]
async fn a_subscriber_at_a_cursor_of_a_former_generation_is_told_once() {
    let rig = Rig::new().await;
    rig.add_all(1..=3).await;
    let lost = "1990272000_0_1";
    let since = format!("cursor:{lost}");
    let (status, _) = rig.ask_to("subscribe", &[("hub.since", &since)]).await;
    assert_eq!(status, 202);
    rig.wait(60).await;
    let pushes = rig.net.pushes();
    let [push] = &pushes[..] else {
        panic!("{} pushes", pushes.len())
    };
    assert_eq!(push.header("smart-feed-cursor"), "ahead");
    let head = rig.head().await;
    assert_eq!((push.prev(), push.last()), (lost, head.as_str()));
    let body = String::from_utf8_lossy(&push.body);
    assert!(!body.contains("<entry"), "{body}");
    assert_eq!(rig.acked().await, head);
    rig.add(4).await;
    let pushes = rig.net.pushes();
    let next = pushes.last().expect("a push");
    let told = (next.prev(), next.header("smart-feed-cursor"));
    assert_eq!(told, (head.as_str(), ""));
}

/// The hub counts the readers that callbacks at and below these URLs speak for.
fn on_behalf(urls: &[&str]) -> Config {
    Config {
        on_behalf: urls.iter().map(|url| url.parse().unwrap()).collect(),
        ..Config::default()
    }
}

// W-19, P-43: a subscriber that is named may say for how many it reads; the publisher is told the
// sum.
#[tokio::test(start_paused = true)]
async fn the_readers_behind_a_subscriber_that_is_named_are_counted_as_its_last_answer_says() {
    let rig = Rig::with(on_behalf(&["http://reader.example/cb"])).await;
    rig.subscribed(&[]).await;
    let answers: [(&str, usize); 7] = [
        ("40", 40),
        ("", 1),
        (" 7 ", 7),
        ("many", 1),
        ("-3", 1),
        ("99999999999999999999", 10_000_000),
        ("3", 3),
    ];
    let readers = async |rig: &Rig| {
        let now = crate::feed::stamp::Stamp::from_micros(rig.clock.now_us());
        rig.store.count_active(rig.feed, now).await.unwrap()
    };
    assert_eq!(readers(&rig).await, 1);
    for (n, (said, expect)) in (0..).zip(answers) {
        rig.net
            .on_push(move |_| Reply::status(200).with("x-hub-on-behalf-of", said));
        rig.add(n).await;
        assert_eq!(readers(&rig).await, expect, "{said}");
    }
    let rig = rig.killed().await;
    rig.net.on_push(|_| Reply::down());
    rig.add(100).await;
    assert_eq!(readers(&rig).await, 3, "a failure says nothing");
    // What is stored of one that is not named any more does not count from the start on.
    let rig = rig
        .beside(Config::default(), ProcessAddresses::default())
        .await;
    rig.wait(1).await;
    assert_eq!(readers(&rig).await, 1);
    rig.net
        .on_push(|_| Reply::status(200).with("x-hub-on-behalf-of", "10000000"));
    rig.add(101).await;
    assert_eq!(
        (readers(&rig).await, rig.progress().await.on_behalf_of),
        (1, None),
        "it is one, whatever it says"
    );
}

#[test]
fn a_callback_speaks_for_many_at_and_below_what_is_named() {
    let check = |named: &[&str], callback: &str, expect: bool| {
        assert_eq!(
            on_behalf(named).may_speak_for_many(callback),
            expect,
            "{named:?} {callback}"
        );
    };
    for callback in [
        "https://r.example/push",
        "https://R.example:443/push?k=1",
        "https://r.example/push/a?b",
    ] {
        check(&["https://r.example/push"], callback, true);
        check(&["https://r.example/"], callback, true);
        check(
            &["https://other.example/", "https://r.example"],
            callback,
            true,
        );
    }
    for callback in [
        "https://r.example/pushing",
        "https://r.example/",
        "http://r.example/push",
        "https://r.example:8443/push",
        "https://a.r.example/push",
        "https://r.example.evil/push",
        "https://r.example/push/../x",
        "https://r.example/push/..%2fevil",
        "https://r.example/push/a%5c..%5C..%5cevil",
        "https://r.example/push/%252e%252e%252fevil",
        "no url",
    ] {
        check(&["https://r.example/push"], callback, false);
    }
    check(
        &["https://r.example/push/"],
        "https://r.example/push",
        false,
    );
    check(&[], "https://r.example/push", false);
    for bad in ["ftp://x/", "http://x/?a", "http://u@x/", "http://x/#a"] {
        assert_eq!(
            on_behalf(&[bad]).check().unwrap_err().key,
            "on_behalf",
            "{bad}"
        );
    }
    assert!(on_behalf(&["http://x/a", "https://x"]).check().is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_operator_sees_who_does_not_take_pushes_until_they_are_taken() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    rig.net.on_push(|_| Reply::status(503));
    let failing = || rig.hub.failing(10).remove(&rig.feed).unwrap_or_default();
    rig.add(1).await;
    let first = failing().remove(0);
    assert_eq!((first.host.as_str(), first.failures), ("reader.example", 1));
    assert!(
        first.why.contains("503") && first.next_try > first.since,
        "{first:?}"
    );
    rig.wait(60).await;
    let later = failing().remove(0);
    assert!(
        later.failures > 1 && later.next_try > first.next_try,
        "{later:?}"
    );
    assert_eq!(later.since, first.since, "it began then");
    rig.net.willing();
    rig.wait(3600).await;
    assert!(failing().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nobody_who_asked_for_what_is_there_is_sent_a_post_for_what_is_gone() {
    let rig = Rig::new().await;
    rig.add(1).await;
    let topic = "http://feeds.example:8080/feeds/blog.atom?deleted=no";
    rig.ask(&[
        ("hub.mode", "subscribe"),
        ("hub.topic", topic),
        ("hub.callback", CALLBACK),
    ])
    .await;
    rig.wait(1).await;
    rig.net.taken();
    rig.delete(1).await;
    rig.wait(1).await;
    rig.add(2).await;
    rig.wait(1).await;
    let pushes = rig.net.pushes();
    let bodies: Vec<String> = pushes
        .iter()
        .map(|push| String::from_utf8(push.body.to_vec()).unwrap())
        .collect();
    assert_eq!(
        bodies.len(),
        2,
        "a mirror of the view is told that one has left it"
    );
    assert!(
        bodies[0].contains("<at:deleted-entry") && !bodies[0].contains("<entry>"),
        "{}",
        bodies[0]
    );
    assert!(
        bodies[1].contains("<entry>") && !bodies[1].contains("at:deleted-entry"),
        "{}",
        bodies[1]
    );
    assert!(bodies.iter().all(|body| !body.contains("(deleted)")));
}
