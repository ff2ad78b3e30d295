//! Subscriptions as a store keeps them; not the protocol that makes them.

use super::rig::{NAMESPACE, Rig, START};
use crate::{
    feed::{order::Order, record::FeedNo, stamp::Stamp, view::View},
    secret::Secret,
    store::{
        StoreError, Subscription, SubscriptionNo,
        sub::{Algo, Dialect, Intent, Pending, Start, Terms},
    },
};

on_every_store![
    a_subscription_is_found_by_number_by_topic_and_callback_and_by_feed,
    a_renewal_keeps_its_number,
    an_ended_subscription_is_gone_and_its_number_never_comes_back,
    what_is_written_late_does_not_bring_an_ended_subscription_back,
    a_position_moves_only_from_where_it_is_believed_to_be,
    a_subscription_to_no_feed_is_refused,
];

pub(crate) fn sub(feed: FeedNo, callback: &str) -> Subscription {
    let terms = Terms {
        secret: Some(Secret::new("hush")),
        lease_secs: 864_000,
        dialect: Dialect::Legacy,
        algo: Algo::Sha1,
        auto_refresh: true,
        verify_token: Some("token".into()),
    };
    let intent = Intent::Subscribe(terms.clone());
    let start = Start::Head(Some("1_0_1".into()));
    let pending = Pending {
        intent,
        topic_as_sent: "https://feeds.example/feeds/blog.atom".into(),
        attempts: 1,
        next_try: START,
        give_up_at: Stamp::MAX,
        start,
    };
    Subscription {
        no: SubscriptionNo::default(),
        view: View::all(feed, Order::MODIFIED),
        representation: "atom".into(),
        topic: "https://feeds.example/feeds/blog.atom".into(),
        topic_as_sent: "https://feeds.example/feeds/blog.atom?".into(),
        callback: callback.into(),
        active: Some(terms),
        lease_until: START.plus_secs(864_000),
        pending: Some(pending),
        acked: None,
        attempts: 3,
        next_try: START,
        failure: Some("connection refused".into()),
    }
}

async fn a_subscription_is_found_by_number_by_topic_and_callback_and_by_feed(rig: Rig) {
    let feed = rig.blog().await;
    let other = rig.register("other", NAMESPACE).await.unwrap().no;
    let mut subs = vec![sub(feed, "http://a/"), sub(other, "http://b/"), sub(feed, "http://c/")];
    for sub in &mut subs {
        sub.no = rig.put_sub(sub.clone()).await.unwrap();
    }
    let rig = rig.reopen();
    assert_eq!(rig.subs().await.unwrap(), subs);
    assert_eq!(rig.subs_of(feed).await.unwrap(), [subs[0].clone(), subs[2].clone()]);
    assert_eq!(rig.subs_of(other).await.unwrap(), [subs[1].clone()]);
    assert_eq!(rig.subs_of(FeedNo(99)).await.unwrap(), []);
    assert_eq!(rig.sub(subs[1].no).await.unwrap().as_ref(), Some(&subs[1]));
    assert_eq!(rig.sub(SubscriptionNo(99)).await.unwrap(), None);
    let found = rig.find_sub(&subs[2].topic, "http://c/").await.unwrap();
    assert_eq!(found.as_ref(), Some(&subs[2]));
    assert_eq!(rig.find_sub(&subs[2].topic, "http://c").await.unwrap(), None, "byte for byte (HUB-17)");
}

async fn a_renewal_keeps_its_number(rig: Rig) {
    let feed = rig.blog().await;
    let other = rig.register("other", NAMESPACE).await.unwrap().no;
    let no = rig.put_sub(sub(feed, "http://a/")).await.unwrap();
    let mut renewed = Subscription { pending: None, acked: Some("1_0_1".into()), ..sub(feed, "http://a/") };
    assert_eq!(rig.put_sub(renewed.clone()).await.unwrap(), no);
    renewed.no = no;
    assert_eq!(rig.sub(no).await.unwrap().as_ref(), Some(&renewed));
    assert_eq!(rig.put_sub(renewed.clone()).await.unwrap(), no);
    // A topic may come to mean another feed.
    renewed.view.feed = other;
    assert_eq!(rig.put_sub(renewed.clone()).await.unwrap(), no);
    assert_eq!(rig.subs_of(feed).await.unwrap(), []);
    assert_eq!(rig.subs_of(other).await.unwrap(), [renewed]);
}

async fn an_ended_subscription_is_gone_and_its_number_never_comes_back(rig: Rig) {
    let feed = rig.blog().await;
    let first = rig.put_sub(sub(feed, "http://a/")).await.unwrap();
    assert!(rig.drop_sub(first).await.unwrap());
    assert!(!rig.drop_sub(first).await.unwrap());
    assert_eq!(rig.sub(first).await.unwrap(), None);
    assert_eq!(rig.find_sub(&sub(feed, "").topic, "http://a/").await.unwrap(), None);
    assert_eq!(rig.subs_of(feed).await.unwrap(), []);
    let rig = rig.reopen();
    let second = rig.put_sub(sub(feed, "http://a/")).await.unwrap();
    assert!(second > first);
}

async fn what_is_written_late_does_not_bring_an_ended_subscription_back(rig: Rig) {
    // A delivery fails while its subscriber unsubscribes: what it then writes must not undo that (HUB-6).
    let feed = rig.blog().await;
    let no = rig.put_sub(sub(feed, "http://a/")).await.unwrap();
    let held = rig.sub(no).await.unwrap().unwrap();
    rig.drop_sub(no).await.unwrap();
    let late = rig.put_sub(held.clone()).await;
    assert!(matches!(late, Err(StoreError::UnknownSub(ended)) if ended == no), "{late:?}");
    let again = rig.put_sub(sub(feed, "http://a/")).await.unwrap();
    assert!(matches!(rig.put_sub(held).await, Err(StoreError::UnknownSub(_))));
    assert_eq!(rig.sub(again).await.unwrap().unwrap().no, again);
}

async fn a_position_moves_only_from_where_it_is_believed_to_be(rig: Rig) {
    let feed = rig.blog().await;
    let no = rig.put_sub(sub(feed, "http://a/")).await.unwrap();
    let advance = async |from: &str, to: &str| rig.advance(no, from.into(), to.into()).await.unwrap();
    assert!(!advance("", "1_0_1").await, "no position yet");
    rig.put_sub(Subscription { acked: Some(String::new()), ..sub(feed, "http://a/") }).await.unwrap();
    assert!(advance("", "1_0_1").await);
    assert!(!advance("", "2_0_2").await, "somebody else was faster");
    let moved = rig.sub(no).await.unwrap().unwrap();
    assert_eq!((moved.acked.as_deref(), moved.attempts, moved.failure), (Some("1_0_1"), 0, None));
    assert_eq!(moved.next_try, Stamp::ZERO);
    assert_eq!(moved.pending, sub(feed, "").pending, "a delivery is no verification");
    assert!(!rig.advance(SubscriptionNo(99), "1_0_1".into(), "2_0_2".into()).await.unwrap());
    let rig = rig.reopen();
    assert_eq!(rig.sub(no).await.unwrap().unwrap().acked.as_deref(), Some("1_0_1"));
}

async fn a_subscription_to_no_feed_is_refused(rig: Rig) {
    let refused = rig.put_sub(sub(FeedNo(1), "http://a/")).await;
    assert!(matches!(refused, Err(StoreError::UnknownFeed(FeedNo(1)))), "{refused:?}");
}
