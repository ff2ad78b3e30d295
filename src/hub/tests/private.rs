//! Subscriptions to private feeds: who may make one, and what ends it (SF-131).

use super::rig::{CALLBACK, Rig, TOPIC};
use crate::auth::{
    AccessSettings,
    testing::{ALICE, ALICE_URL, BOB, accounts},
};
use std::time::Duration;

const SECRET_TOPIC: &str =
    "http://feeds.example:8080/s/UUUUUUUUUUUUUUUUUUUUUU/feeds/blog.atom?order=modified";
const UNKNOWN: &str = "http://feeds.example:8080/feeds/unknown.atom?order=modified";

async fn private() -> Rig {
    let rig = Rig::new().await;
    rig.protect(AccessSettings::Named(["alice".to_owned()].into()));
    rig
}

async fn subscribe(rig: &Rig, token: Option<&str>, topic: &str) -> u16 {
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", topic),
        ("hub.callback", CALLBACK),
    ];
    rig.ask_as(token, &form).await
}

#[tokio::test(start_paused = true)]
async fn only_who_may_read_subscribes_and_nobody_else_learns_that_there_is_a_feed() {
    let rig = private().await;
    for (token, expect) in [(None, 401), (Some(BOB), 404)] {
        assert_eq!(subscribe(&rig, token, TOPIC).await, expect);
        assert_eq!(subscribe(&rig, token, UNKNOWN).await, expect);
        for mode in ["unsubscribe", "publish"] {
            let told = async |topic: &str| {
                let form = [
                    ("hub.mode", mode),
                    ("hub.topic", topic),
                    ("hub.url", topic),
                    ("hub.callback", CALLBACK),
                ];
                rig.ask_as(token, &form).await
            };
            assert_eq!(told(TOPIC).await, told(UNKNOWN).await, "{mode}");
        }
    }
    for wrong in ["http://feeds.example:8080/s/x/feeds/blog.atom", UNKNOWN] {
        assert!(
            matches!(subscribe(&rig, None, wrong).await, 401 | 404),
            "{wrong}"
        );
    }
    rig.wait(60).await;
    assert!(rig.net.taken().is_empty() && rig.subs().await.is_empty());
    assert_eq!(subscribe(&rig, Some(ALICE), TOPIC).await, 202);
    rig.wait(1).await;
    let sub = rig.sub().await.unwrap();
    assert_eq!(
        sub.principal
            .map(|id| (id.user.0, id.token.map(|token| token.0))),
        Some((1, Some(1)))
    );
    rig.net.taken();
    rig.add(1).await;
    assert_eq!(rig.net.pushes().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_publisher_of_a_private_feed_is_heard_and_told_nothing() {
    let rig = private().await;
    let ping = async |token| {
        let form = [
            ("hub.mode", "publish"),
            ("hub.url", "http://old.example/rss.xml"),
        ];
        rig.ask_as(token, &form).await
    };
    assert_eq!(ping(None).await, 404);
    let hints = tokio::time::timeout(Duration::from_secs(1), rig.notify.hints()).await;
    assert_eq!(
        hints.unwrap().into_iter().collect::<Vec<_>>(),
        [rig.feed],
        "it is polled all the same"
    );
    rig.notify.hint_heard(rig.feed);
    assert_ne!(ping(Some(ALICE)).await, 404);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_with_the_right_to_read_and_its_callback_is_told() {
    type Change = fn(&Rig);
    let changes: [(Change, bool); 5] = [
        (|rig| rig.know(accounts(&[1])), true),
        (|rig| rig.know(crate::auth::Accounts::default()), true),
        (
            |rig| rig.protect(AccessSettings::Named(["bob".to_owned()].into())),
            true,
        ),
        (|rig| rig.know(accounts(&[2, 3])), false),
        (|rig| rig.protect(AccessSettings::Public), false),
    ];
    for (at, (change, ends)) in changes.into_iter().enumerate() {
        let rig = private().await;
        assert_eq!(subscribe(&rig, Some(ALICE), TOPIC).await, 202);
        rig.wait(1).await;
        rig.net.taken();
        change(&rig);
        rig.add(1).await;
        rig.wait(1).await;
        let calls = rig.net.taken();
        let pushes = calls.iter().filter(|call| call.is_push()).count();
        assert_eq!(
            (pushes, rig.subs().await.len()),
            if ends { (0, 0) } else { (1, 1) },
            "{at}"
        );
        let denied = calls
            .iter()
            .find(|call| call.param("hub.mode").as_deref() == Some("denied"));
        assert_eq!(
            denied.map(|call| call.param("hub.topic").unwrap()),
            ends.then(|| TOPIC.to_owned()),
            "{at}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_right_that_went_while_the_hub_was_down_ends_the_subscription_at_the_start() {
    let rig = private().await;
    assert_eq!(subscribe(&rig, Some(ALICE), TOPIC).await, 202);
    rig.wait(1).await;
    rig.know(accounts(&[1]));
    let rig = rig.killed().await;
    rig.net.taken();
    rig.add(1).await;
    rig.wait(1).await;
    assert!(rig.net.pushes().is_empty() && rig.subs().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_public_feed_that_becomes_private_is_pushed_to_nobody_unknown() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    rig.protect(AccessSettings::Users);
    rig.add(1).await;
    rig.wait(1).await;
    let calls = rig.net.taken();
    assert!(
        calls
            .iter()
            .all(|call| call.param("hub.mode").as_deref() == Some("denied"))
            && calls.len() == 1
    );
    assert!(rig.subs().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_never_verified_ends_in_silence() {
    let rig = private().await;
    rig.net.on_verify(|_| super::rig::Reply::status(500));
    assert_eq!(subscribe(&rig, Some(ALICE), TOPIC).await, 202);
    rig.wait(1).await;
    rig.net.taken();
    rig.know(accounts(&[1]));
    rig.wait(3600).await;
    assert!(rig.net.taken().is_empty() && rig.subs().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_topic_below_a_secret_is_its_own_credential_and_its_pushes_lead_there() {
    // U-1.
    let rig = private().await;
    assert_eq!(subscribe(&rig, None, SECRET_TOPIC).await, 202);
    rig.wait(1).await;
    rig.net.taken();
    rig.add(1).await;
    let push = rig.net.pushes().remove(0);
    assert!(
        push.header("link")
            .contains(&format!("<{SECRET_TOPIC}>; rel=\"self\"")),
        "{}",
        push.header("link")
    );
    assert!(
        push.header("link")
            .contains(&format!("/s/{ALICE_URL}/hub>; rel=\"hub\""))
    );
    assert!(
        String::from_utf8_lossy(&push.body).contains(&format!("/s/{ALICE_URL}/feeds/blog.atom"))
    );
    rig.know(accounts(&[2]));
    rig.wait(1).await;
    assert!(rig.subs().await.is_empty());
    assert_eq!(subscribe(&rig, None, SECRET_TOPIC).await, 404);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_by_another_principal_takes_the_subscription_over() {
    let rig = Rig::new().await;
    rig.protect(AccessSettings::Users);
    assert_eq!(subscribe(&rig, Some(ALICE), TOPIC).await, 202);
    rig.wait(1).await;
    assert_eq!(subscribe(&rig, Some(BOB), TOPIC).await, 202);
    rig.wait(1).await;
    assert_eq!(rig.sub().await.unwrap().principal.unwrap().user.0, 2);
    rig.know(accounts(&[1, 2]));
    rig.net.taken();
    rig.add(1).await;
    assert_eq!(rig.net.pushes().len(), 1, "bob goes on");
}
