//! The operator lists, tries, ends and forgets subscriptions.

use super::rig::{CALLBACK, Reply, Rig};
use crate::hub::{Config, Subscriber, WantedSubscribers};

async fn listed(rig: &Rig) -> Vec<Subscriber> {
    let wanted = WantedSubscribers::default();
    rig.hub.subscribers(&wanted).await.unwrap().subscribers
}

#[tokio::test(start_paused = true)]
async fn a_subscription_is_listed_with_its_lag_its_last_answer_and_its_next_try() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    let [idle] = &listed(&rig).await[..] else {
        panic!("there is one")
    };
    let told = (&*idle.host, &*idle.dialect, &*idle.state, idle.lag_secs);
    assert_eq!(told, ("reader.example", "WebSub", "active", Some(0)));
    assert_eq!(idle.feed.as_deref(), Some("blog"));
    assert!(idle.last_answer.is_none() && idle.lease_until.is_some());
    rig.add(1).await;
    rig.wait(1).await;
    assert_eq!(listed(&rig).await[0].last_answer.as_deref(), Some("taken"));
    rig.net.on_push(|_| Reply::status(500));
    rig.wait(90).await;
    rig.add(2).await;
    rig.wait(1).await;
    let failing = listed(&rig).await.remove(0);
    assert_eq!(failing.state, "failing");
    assert!(failing.lag_secs.unwrap() >= 90, "{failing:?}");
    assert!(failing.last_answer.unwrap().contains("500"));
    assert!(failing.next_try_at.is_some());
    let shown = serde_json::to_string(&listed(&rig).await).unwrap();
    assert!(!shown.contains("KEY"), "the callback is a secret: {shown}");
}

#[tokio::test(start_paused = true)]
async fn a_list_shows_those_of_a_host_and_goes_on_after_a_number() {
    let rig = Rig::new().await;
    for host in ["a", "b", "b"] {
        let callback = format!("http://{host}.example/{}", rig.subs().await.len());
        assert_eq!(rig.ask_from([192, 0, 2, 9], &callback).await, 202);
        rig.wait(1).await;
    }
    let wanted = WantedSubscribers {
        host: Some("b.example".to_owned()),
        ..WantedSubscribers::default()
    };
    let of_b = rig.hub.subscribers(&wanted).await.unwrap().subscribers;
    assert_eq!(of_b.len(), 2);
    let wanted = WantedSubscribers {
        after: Some(of_b[0].number),
        ..wanted
    };
    let rest = rig.hub.subscribers(&wanted).await.unwrap().subscribers;
    assert_eq!(rest, of_b[1..]);
}

#[tokio::test(start_paused = true)]
async fn the_operator_has_a_failed_push_tried_at_once_also_at_a_host_that_is_left_alone() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    rig.net.on_push(|_| Reply::down());
    rig.add(1).await;
    // Long enough for its host to be closed.
    rig.wait(3600).await;
    rig.net.taken();
    rig.net.willing();
    let number = listed(&rig).await[0].number;
    assert!(rig.hub.retry_subscription(number).await.unwrap());
    rig.wait(1).await;
    assert_eq!(rig.net.pushes().len(), 1);
    assert_eq!(listed(&rig).await[0].state, "active");
    assert!(!rig.hub.retry_subscription(number + 1).await.unwrap());
}

// W-10.
#[tokio::test(start_paused = true)]
async fn an_end_by_the_operator_is_told_and_a_subscriber_that_is_forgotten_is_told_nothing() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    let number = listed(&rig).await[0].number;
    assert_eq!(rig.hub.end_subscription(number).await.unwrap(), Some(true));
    rig.wait(1).await;
    let calls = rig.net.taken();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].param("hub.mode").as_deref(), Some("denied"));
    assert_eq!(calls[0].param("hub.resubscribe").as_deref(), Some("true"));
    assert!(listed(&rig).await.is_empty());
    assert_eq!(rig.hub.end_subscription(number).await.unwrap(), None);

    rig.subscribed(&[]).await;
    assert_eq!(rig.hub.forget_subscriber("other.example").await.unwrap(), 0);
    assert_eq!(
        rig.hub.forget_subscriber("reader.example").await.unwrap(),
        1
    );
    rig.add(1).await;
    rig.wait(1).await;
    assert!(rig.net.taken().is_empty());
    assert!(rig.subs().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_callback_host_and_one_client_have_so_many_subscriptions_and_are_told_of_the_key() {
    let rig = Rig::with(Config {
        subscriptions_per_host_max: 2,
        subscriptions_per_client_max: 3,
        ..Config::default()
    })
    .await;
    let ask = async |client: u8, callback: &str| rig.ask_from([192, 0, 2, client], callback).await;
    assert_eq!(ask(1, "http://a.example/1").await, 202);
    assert_eq!(ask(2, "http://a.example/2").await, 202);
    assert_eq!(ask(3, "http://a.example/3").await, 503);
    assert_eq!(ask(1, "http://b.example/1").await, 202);
    assert_eq!(ask(1, "http://c.example/1").await, 202);
    assert_eq!(ask(1, "http://d.example/1").await, 503);
    assert_eq!(ask(1, "http://a.example/1").await, 202, "a renewal is none");
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", super::rig::TOPIC),
        ("hub.callback", CALLBACK),
    ];
    let (status, text) = rig.ask(&form).await;
    assert_eq!(status, 503);
    assert!(text.contains("subscriptions_per_client_max"), "{text}");
}
