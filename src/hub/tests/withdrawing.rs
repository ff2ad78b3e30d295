//! Feeds that are taken out of the configuration, configured again, and forgotten.

use super::rig::{CALLBACK, DAY_SECS, Reply, Rig, TOPIC};
use crate::{feed::record::FeedNo, hub::Config};

const OTHER: &str = "http://feeds.example:8080/feeds/other.atom?order=modified";

#[tokio::test(start_paused = true)]
async fn a_withdrawn_feed_takes_no_subscriptions_and_says_why() {
    let rig = Rig::new().await;
    rig.withdraw();
    let (status, text) = rig.ask_to("subscribe", &[]).await;
    assert_eq!(status, 410);
    assert!(
        text.contains("hub.topic") && text.contains("is gone"),
        "{text}"
    );
    let other = [
        ("hub.mode", "subscribe"),
        ("hub.topic", OTHER),
        ("hub.callback", CALLBACK),
    ];
    assert_eq!(rig.ask(&other).await.0, 202, "another feed is not touched");
    rig.forget().await;
    assert_eq!(rig.ask_to("subscribe", &[]).await.0, 404);
    rig.wait(60).await;
    assert_eq!(rig.net.taken().len(), 1, "only the other topic is verified");
}

// HUB-7: a subscriber may go at any time.
#[tokio::test(start_paused = true)]
async fn a_withdrawn_feed_can_be_unsubscribed_from_in_every_dialect() {
    for more in [
        &[][..],
        &[("hub.verify", "async")],
        &[("hub.verify", "sync")],
    ] {
        for before in [true, false] {
            let rig = Rig::new().await;
            if before {
                rig.subscribed(&[]).await;
            }
            rig.withdraw();
            let (status, text) = rig.ask_to("unsubscribe", more).await;
            assert!(status == 202 || status == 204, "{status} {text}");
            rig.wait(60).await;
            assert!(rig.subs().await.is_empty(), "{more:?}");
            assert!(rig.hub.counts().is_empty());
            let asked = rig.net.taken();
            assert!(
                asked
                    .iter()
                    .all(|call| call.param("hub.mode").as_deref() == Some("unsubscribe"))
            );
            assert_eq!(asked.len(), usize::from(before || more.is_empty()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_unsubscription_that_is_refused_leaves_the_subscription_of_a_withdrawn_feed() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    rig.withdraw();
    rig.net.on_verify(|_| Reply::status(404));
    assert_eq!(rig.ask_to("unsubscribe", &[]).await.0, 202);
    rig.wait(60).await;
    assert_eq!(rig.counts().active, 1);
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_is_configured_again_goes_on_from_the_positions_of_its_subscribers() {
    for restarts in [false, true] {
        let mut rig = Rig::new().await;
        rig.subscribed(&[]).await;
        rig.add(1).await;
        let acked = rig.acked().await;
        rig.net.taken();
        rig.withdraw();
        // A poll that was under way still commits.
        rig.add(2).await;
        rig.wait(DAY_SECS).await;
        assert!(
            rig.net.taken().is_empty(),
            "nothing of a withdrawn feed is pushed"
        );
        assert_eq!((rig.acked().await, rig.counts().active), (acked.clone(), 1));
        if restarts {
            rig = rig.killed().await;
            rig.wait(60).await;
            assert!(rig.net.taken().is_empty());
        }
        rig.serve_again();
        rig.wait(1).await;
        let [push] = &rig.net.pushes()[..] else {
            panic!("one push, with what came meanwhile")
        };
        assert_eq!(
            (push.prev(), push.last()),
            (acked.as_str(), rig.head().await.as_str())
        );
        rig.add(3).await;
        assert_eq!(rig.net.pushes().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_push_under_way_comes_to_its_end_when_its_feed_is_withdrawn() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    rig.net.on_push(|_| Reply::status(200).after(5));
    rig.add(1).await;
    rig.withdraw();
    rig.wait(10).await;
    assert_eq!(
        (rig.acked().await, rig.net.pushes().len()),
        (rig.head().await, 1)
    );
    // One that fails is not tried again before the feed is served again.
    rig.serve_again();
    rig.net.on_push(|_| Reply::down().after(5));
    rig.add(2).await;
    rig.withdraw();
    rig.wait(DAY_SECS).await;
    assert_eq!(rig.net.pushes().len(), 1);
    rig.net.willing();
    rig.serve_again();
    rig.wait(3600).await;
    assert_eq!(rig.acked().await, rig.head().await);
}

#[tokio::test(start_paused = true)]
async fn a_pending_verification_of_a_withdrawn_feed_is_not_sent() {
    let rig = Rig::new().await;
    assert_eq!(rig.ask_to("subscribe", &[]).await.0, 202);
    rig.withdraw();
    rig.wait(3600).await;
    assert!(rig.net.taken().is_empty());
    assert_eq!(rig.counts().pending, 1);
    // Served again in time, it is sent after all.
    rig.serve_again();
    rig.wait(1).await;
    assert_eq!((rig.net.taken().len(), rig.counts().active), (1, 1));
    rig.ask_to("unsubscribe", &[]).await;
    rig.wait(1).await;
    // Else it is given up like one that was never answered.
    assert_eq!(rig.ask_to("subscribe", &[]).await.0, 202);
    rig.net.taken();
    rig.withdraw();
    rig.wait(7 * 3600).await;
    assert!(rig.net.taken().is_empty() && rig.subs().await.is_empty());
    assert!(rig.hub.counts().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_whether_or_not_its_feed_is_served() {
    for more in [
        &[("hub.lease_seconds", "1000")][..],
        &[("hub.verify", "async")],
    ] {
        let rig = Rig::new().await;
        rig.subscribed(more).await;
        rig.withdraw();
        rig.wait(11 * DAY_SECS).await;
        assert!(
            rig.net.taken().is_empty(),
            "nobody is asked whether to go on"
        );
        assert!(rig.subs().await.is_empty());
    }
}

// W-10: what is withdrawn by policy is told once.
#[tokio::test(start_paused = true)]
async fn the_tasks_of_a_forgotten_feed_end_and_bring_nothing_back() {
    let rig = Rig::with(Config {
        deliver_secs: 600,
        ..Config::default()
    })
    .await;
    rig.subscribed(&[]).await;
    let ask = async |topic: &str, callback: &str| {
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", topic),
            ("hub.callback", callback),
        ];
        assert_eq!(rig.ask(&form).await.0, 202);
    };
    ask(OTHER, CALLBACK).await;
    rig.wait(1).await;
    rig.net.on_verify(|_| Reply::down());
    ask(TOPIC, "http://waiting.example/").await;
    rig.wait(1).await;
    rig.net.on_push(|_| Reply::status(200).after(100));
    rig.add(1).await;
    rig.net.taken();
    rig.withdraw();
    rig.wait(1).await;
    assert!(rig.net.taken().is_empty(), "a feed may come back");
    rig.forget().await;
    rig.wait(200).await;
    let told = rig.net.taken();
    let mut told: Vec<_> = told
        .iter()
        .map(|call| (call.param("hub.mode").unwrap(), &*call.url))
        .collect();
    told.sort_by_key(|(_, url)| url.len());
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told.iter()
            .all(|(mode, url)| mode == "denied" && url.contains("hub.reason=")),
        "{told:?}"
    );
    assert!(told[0].1.starts_with("http://waiting.example/?") && told[1].1.starts_with(CALLBACK));
    assert_eq!(
        rig.counts().active + rig.counts().pending,
        0,
        "the push under way was let go"
    );
    let left = rig.subs().await;
    assert_eq!(
        left.iter().map(|(sub, _)| sub.feed()).collect::<Vec<_>>(),
        [FeedNo(2)]
    );
    assert_eq!(rig.hub.counts()[&FeedNo(2)].active, 1);
    assert!(
        rig.store.feed(rig.feed).await.is_err(),
        "the feed is not back"
    );
    assert!(rig.notify.head(rig.feed).is_none());
}

// A subscriber of the feed that is registered anew under the old name is another one.
#[tokio::test(start_paused = true)]
async fn a_forgotten_feed_that_is_registered_anew_begins_anew() {
    let mut rig = Rig::new().await;
    rig.subscribed(&[]).await;
    rig.add(1).await;
    rig.withdraw();
    rig.forget().await;
    rig.register_anew().await;
    rig.net.taken();
    rig.add(2).await;
    rig.wait(60).await;
    assert!(rig.net.taken().is_empty(), "nobody subscribed to this one");
    rig.subscribed(&[]).await;
    assert_eq!(
        (rig.subs().await.len(), rig.acked().await),
        (1, rig.head().await)
    );
    rig.add(3).await;
    assert_eq!(rig.net.pushes().len(), 1);
}
