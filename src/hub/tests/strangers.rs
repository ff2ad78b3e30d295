//! Requests in the name of somebody else, whose callback returns every challenge.

use super::rig::{CALLBACK, Call, DAY_SECS, Reply, Rig, TOPIC};
use crate::{
    feed::legacy_document::LegacySyntax,
    hub::signature,
    readers::testing,
    secret::Secret,
    store::subscriptions::{Algo, CallbackTarget, Directives},
};

const RESOURCE: &str = "http://old.example/rss.xml";

/// Every term that a stranger may send.
const EVERYTHING: [(&str, &str); 7] = [
    ("hub.verify", "async"),
    ("hub.signature_algo", "sha512"),
    ("hub.since", "cursor:"),
    ("hub.deletions", "omit"),
    ("hub.methods", "override"),
    ("hub.heartbeat_seconds", "60"),
    ("hub.warning_seconds", "100"),
];

/// A request of a stranger, which the callback is asked about.
async fn intrude(rig: &Rig, topic: &str, more: &[(&str, &str)]) -> Call {
    rig.net.taken();
    let mut form = vec![
        ("hub.mode", "subscribe"),
        ("hub.topic", topic),
        ("hub.callback", CALLBACK),
    ];
    form.extend(more);
    let (status, said) = rig.ask(&form).await;
    assert_eq!(status, 202, "{said}");
    rig.wait(1).await;
    let question = rig.net.taken().into_iter().find(|call| !call.is_push());
    question.expect("the callback is asked")
}

/// A resource that is gone is not told to a callback that named no method, neither by a method nor
/// by an override of one, whoever asks for that and however often.
#[tokio::test(start_paused = true)]
async fn no_request_brings_an_override_to_a_callback_that_named_no_method() {
    for methods in ["override", "explicit", "DELETE", "PUT,DELETE"] {
        for is_subscribed in [false, true] {
            let rig = Rig::new().await;
            rig.resource().await;
            rig.add(1).await;
            rig.keep("v0", LegacySyntax::Other, None).await;
            if is_subscribed {
                intrude(&rig, RESOURCE, &[]).await;
            }
            for _ in 0..2 {
                let question = intrude(&rig, RESOURCE, &[("hub.methods", methods)]).await;
                let named = question
                    .param("hub.methods")
                    .expect("the methods are named");
                assert!(named.contains("DELETE"), "{named}");
            }
            rig.keep("v1", LegacySyntax::Other, None).await;
            rig.edit(1, "v1").await;
            rig.delete(1).await;
            let pushes = rig.net.pushes();
            let [push] = &pushes[..] else {
                panic!("{methods}: {} pushes", pushes.len())
            };
            let told = (push.method.as_str(), push.header("x-http-method-override"));
            assert_eq!(told, ("POST", ""), "{methods}");
            assert_eq!(&push.body[..], b"v1", "pushes go on");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_strangers_renewal_changes_no_term_of_a_callback_that_returns_every_challenge() {
    for (own, strange) in [
        (&[][..], &EVERYTHING[..]),
        (
            &[
                ("hub.secret", "hush"),
                ("hub.verify_token", "token"),
                ("hub.signature_algo", "sha256"),
                ("hub.deletions", "announce"),
                ("hub.heartbeat_seconds", "3600"),
                ("hub.warning_seconds", "7200"),
            ][..],
            &EVERYTHING[..],
        ),
        (
            &[("hub.secret", "hush"), ("hub.methods", "PUT,DELETE")][..],
            &[][..],
        ),
        (
            &[("hub.verify", "async"), ("hub.secret", "hush")][..],
            &EVERYTHING[1..],
        ),
    ] {
        let rig = Rig::new().await;
        rig.net.on_verify(|call| Reply::naming(call, "PUT, DELETE"));
        rig.subscribed(own).await;
        rig.add_all(1..=3).await;
        let (before, acked) = (rig.callback().await, rig.acked().await);
        let lease = rig.sub().await.unwrap().lease.unwrap();
        // It echoes, and names methods only where it is asked about them.
        rig.net.willing();
        let has_methods = before.wishes.asked_methods().is_some();
        if has_methods {
            rig.net.on_verify(|call| Reply::naming(call, "PUT, DELETE"));
        }
        intrude(&rig, TOPIC, strange).await;
        let after = rig.callback().await;
        assert_eq!(after, before, "{own:?}");
        assert_eq!(rig.acked().await, acked, "{own:?}");
        let now = rig.sub().await.unwrap().lease.unwrap();
        assert!(now.until >= lease.until, "{own:?}");
        assert!(now.terms.auto_refresh || !lease.terms.auto_refresh);
        rig.net.taken();
        rig.wait(3000).await;
        assert_eq!(rig.net.pushes().len(), 0, "no heartbeat, and nothing again");
        // The honest subscriber is pushed what comes, signed as it knows.
        rig.add(4).await;
        let pushes = rig.net.pushes();
        let [push] = &pushes[..] else {
            panic!("{own:?}: {} pushes", pushes.len())
        };
        assert_eq!(push.prev(), acked);
        let signed = before.secret.map(|secret| {
            signature::signature(before.algo, secret.reveal().as_bytes(), &push.body)
        });
        assert_eq!(push.header("x-hub-signature"), signed.unwrap_or_default());
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_changes_the_terms_that_the_callback_names() {
    let rig = Rig::new().await;
    rig.subscribed(&[("hub.secret", "hush")]).await;
    rig.add_all(1..=3).await;
    rig.net.on_verify(|call| {
        for (name, value) in [
            ("hub.cursor", ""),
            ("hub.deletions", "omit"),
            ("hub.methods", "override,PUT,PATCH,DELETE"),
            ("hub.heartbeat_seconds", "60"),
            ("hub.warning_seconds", "100"),
            ("hub.signature_algo", "sha512"),
            ("hub.format", "atom"),
            ("hub.resubscribe", "true"),
        ] {
            assert_eq!(call.param(name).as_deref(), Some(value), "{name}");
        }
        Reply::naming(call, "PATCH").with(
            "x-hub-confirms",
            "cursor, signature_algo,hub.deletions, heartbeat_seconds,warning_seconds, other",
        )
    });
    let question = intrude(&rig, TOPIC, &EVERYTHING[1..]).await;
    let CallbackTarget {
        algo,
        wishes,
        secret,
        ..
    } = rig.callback().await;
    assert_eq!((algo, secret), (Algo::Sha512, Some(Secret::new("hush"))));
    assert_eq!(
        (
            wishes.heartbeat_secs,
            wishes.warning_secs,
            wishes.overrides_method
        ),
        (Some(60), Some(100), true)
    );
    // It holds the secret, and may check by it who asked.
    let challenge = question.param("hub.challenge").unwrap();
    let signed = signature::signature(Algo::Sha512, b"hush", challenge.as_bytes());
    assert_eq!(question.header("x-hub-signature"), signed);
    rig.wait(61).await;
    let pushes = rig.net.pushes();
    let overrides: Vec<_> = pushes
        .iter()
        .map(|push| push.header("x-http-method-override"))
        .collect();
    assert!(overrides.iter().all(|it| *it == "PATCH"), "{overrides:?}");
    assert!(!pushes.is_empty(), "a heartbeat");
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_checks_the_signature_of_the_challenge_lets_no_stranger_in() {
    let rig = Rig::new().await;
    rig.net.on_verify(|call| {
        let challenge = call.param("hub.challenge").unwrap_or_default();
        let signed = signature::signature(Algo::Sha256, b"hush", challenge.as_bytes());
        if call.header("x-hub-signature") == signed {
            Reply::willing(call)
        } else {
            Reply::status(404)
        }
    });
    rig.subscribed(&[("hub.secret", "hush")]).await;
    let before = rig.sub().await.unwrap();
    intrude(
        &rig,
        TOPIC,
        &[("hub.secret", "evil"), ("hub.lease_seconds", "300")],
    )
    .await;
    assert_eq!(rig.sub().await.unwrap().target, before.target);
    for secret in ["evil", "hush"] {
        let form = [
            ("hub.mode", "unsubscribe"),
            ("hub.topic", TOPIC),
            ("hub.callback", CALLBACK),
            ("hub.secret", secret),
        ];
        assert_eq!(rig.ask(&form).await.0, 202);
        rig.wait(1).await;
        assert_eq!(rig.sub().await.is_some(), secret == "evil", "{secret}");
    }
}

/// Subscriptions of before the answer had to name methods.
#[tokio::test(start_paused = true)]
async fn a_stored_subscription_sends_no_override_until_its_callback_names_the_methods() {
    let rig = Rig::new().await;
    rig.net.on_verify(|call| Reply::naming(call, "PATCH"));
    rig.subscribed(&[("hub.methods", "override"), ("hub.verify", "async")])
        .await;
    let (mut sub, _) = rig.subs().await.remove(0);
    let crate::store::subscriptions::Target::Callback(callback) = &mut sub.target else {
        panic!("a callback")
    };
    callback.wishes.named = Directives::default();
    rig.store.change_subscription(sub, None).await.unwrap();
    let rig = rig.killed().await;
    let told = async |n: u32| {
        rig.net.taken();
        rig.commit(vec![testing::add_titled(n, "a title")]).await;
        let pushes = rig.net.pushes();
        let [push] = &pushes[..] else {
            panic!("{} pushes", pushes.len())
        };
        assert_eq!(push.method, http::Method::POST);
        push.header("x-http-method-override").to_owned()
    };
    assert_eq!(told(1).await, "", "pushes go on, as plain POST");
    // We ask by ourselves before the lease ends.
    rig.wait(9 * DAY_SECS).await;
    assert_eq!(told(2).await, "PATCH");
}
