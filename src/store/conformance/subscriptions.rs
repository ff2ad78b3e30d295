//! Subscriptions as a store keeps them; not the protocol that makes them.

use super::rig::{NAMESPACE, Rig, START};
use crate::{
    auth::{PrincipalId, TokenNo, UserNo},
    feed::{
        order::Order,
        record::FeedNo,
        schedule::{Pause, PollState},
        stamp::Stamp,
        view::View,
    },
    secret::Secret,
    store::{
        StoreError, Subscription, SubscriptionNo,
        subscriptions::{
            Acknowledged, Algo, Attempts, CallbackTarget, Dialect, Intent, Lease, LeaseTerms,
            NewSubscription, Pending, Progress, PushWishes, Start, Target,
        },
    },
};

on_every_store![
    a_subscription_is_found_by_number_by_topic_and_callback_and_by_feed,
    subscriptions_are_listed_by_pages,
    terms_change_only_from_the_revision_that_is_there,
    a_callback_subscribes_to_a_topic_once,
    an_ended_subscription_is_gone_and_its_number_never_comes_back,
    what_is_written_late_does_not_bring_an_ended_subscription_back,
    a_position_moves_only_from_where_it_is_believed_to_be,
    an_acknowledgement_and_a_renewal_do_not_conflict,
    acknowledgements_are_kept_in_batches,
    failed_attempts_are_kept_without_moving_the_position,
    only_verified_subscriptions_within_their_lease_are_counted,
    what_is_written_after_its_feed_was_forgotten_brings_nothing_back,
    a_subscription_to_no_feed_is_refused,
];

pub(crate) fn lease() -> Lease {
    Lease {
        until: START.plus_secs(864_000),
        terms: LeaseTerms {
            secs: 864_000,
            auto_refresh: true,
        },
    }
}

fn target(callback: &str) -> Target {
    Target::Callback(CallbackTarget {
        url: callback.into(),
        topic_as_sent: "https://feeds.example/feeds/blog.atom?".into(),
        dialect: Dialect::Legacy,
        secret: Some(Secret::new("hush")),
        algo: Algo::Sha1,
        verify_token: Some("token".into()),
        wishes: PushWishes::default(),
    })
}

/// A subscription that is to be made.
pub(crate) fn new(feed: FeedNo, callback: &str) -> NewSubscription {
    let pending = Pending {
        intent: Intent::Subscribe {
            target: target(callback),
            lease: lease().terms,
        },
        attempts: 1,
        next_try: START,
        give_up_at: Stamp::MAX,
        start: Start::Head(Some("1_0_1".into())),
        principal: Some(PrincipalId {
            user: UserNo(7),
            token: Some(TokenNo(8)),
        }),
        scanned: None,
    };
    NewSubscription {
        view: View::all(feed, Order::MODIFIED),
        representation: "atom".into(),
        topic: "https://feeds.example/feeds/blog.atom".into(),
        target: target(callback),
        pending,
    }
}

/// A position, and the state of its deliveries.
fn progress(acked: &str, failed: u32) -> Progress {
    let failure = (failed > 0).then(|| "connection refused".to_owned());
    let attempts = Attempts {
        failed,
        next_try: START,
        failure,
        since: Some(START),
    };
    Progress {
        acked: Some(acked.to_owned()),
        attempts,
        on_behalf_of: None,
        scanned: None,
        channel_t: Some(START),
    }
}

fn acknowledged(subscription: SubscriptionNo, from: &str, to: &str) -> Acknowledged {
    Acknowledged {
        subscription,
        from: from.into(),
        to: to.into(),
        on_behalf_of: None,
        scanned: None,
        channel_t: None,
    }
}

async fn a_subscription_is_found_by_number_by_topic_and_callback_and_by_feed(rig: Rig) {
    let feed = rig.blog().await;
    let other = rig.register("other", NAMESPACE).await.unwrap().no;
    let mut subs = Vec::new();
    for (feed, callback) in [
        (feed, "http://a/"),
        (other, "http://b/"),
        (feed, "http://c/"),
    ] {
        let new = new(feed, callback);
        let made = rig.subscribe(new.clone()).await.unwrap();
        let Subscription {
            view,
            topic,
            target,
            lease,
            pending,
            ..
        } = made.clone();
        assert_eq!(
            (view, topic, target, lease),
            (new.view, new.topic, new.target, None)
        );
        assert_eq!(pending, Some(new.pending));
        subs.push((made, Progress::default()));
    }
    let rig = rig.reopen();
    assert_eq!(rig.subscriptions(None, None, 9).await.unwrap(), subs);
    let (first, second, third) = (subs[0].clone(), subs[1].clone(), subs[2].clone());
    assert_eq!(
        rig.subscriptions(Some(feed), None, 9).await.unwrap(),
        [first.clone(), third.clone()]
    );
    assert_eq!(
        rig.subscriptions(Some(other), None, 9).await.unwrap(),
        std::slice::from_ref(&second)
    );
    assert_eq!(
        rig.subscriptions(Some(FeedNo(99)), None, 9).await.unwrap(),
        []
    );
    assert_eq!(rig.subscription(second.0.no).await.unwrap(), Some(second));
    assert_eq!(rig.subscription(SubscriptionNo(99)).await.unwrap(), None);
    assert_eq!(
        rig.find_subscription(&third.0.topic, "http://c/")
            .await
            .unwrap(),
        Some(third.clone())
    );
    let other = rig
        .find_subscription(&third.0.topic, "http://c")
        .await
        .unwrap();
    assert_eq!(other, None, "byte for byte (HUB-17)");
}

async fn subscriptions_are_listed_by_pages(rig: Rig) {
    let feed = rig.blog().await;
    let other = rig.register("other", NAMESPACE).await.unwrap().no;
    let mut numbers = Vec::new();
    for n in 0..5 {
        let feed = if n == 2 { other } else { feed };
        numbers.push(
            rig.subscribe(new(feed, &format!("http://{n}/")))
                .await
                .unwrap()
                .no,
        );
    }
    let listed = async |feed, after, max| -> Vec<SubscriptionNo> {
        let listed = rig.subscriptions(feed, after, max).await.unwrap();
        listed
            .into_iter()
            .map(|(subscription, _)| subscription.no)
            .collect()
    };
    assert_eq!(listed(None, None, 2).await, numbers[..2]);
    assert_eq!(listed(None, Some(numbers[1]), 2).await, numbers[2..4]);
    assert_eq!(listed(None, Some(numbers[4]), 2).await, []);
    assert_eq!(listed(Some(feed), Some(numbers[1]), 2).await, numbers[3..]);
    assert_eq!(listed(Some(feed), None, 0).await, []);
}

async fn terms_change_only_from_the_revision_that_is_there(rig: Rig) {
    let feed = rig.blog().await;
    let other = rig.register("other", NAMESPACE).await.unwrap().no;
    let made = rig.subscribe(new(feed, "http://a/")).await.unwrap();
    let renewed = Subscription {
        lease: Some(lease()),
        pending: None,
        ..made.clone()
    };
    let position = progress("1_0_1", 0);
    let rev = rig
        .change_subscription(renewed.clone(), Some(position.clone()))
        .await
        .unwrap();
    assert!(rev > made.rev);
    let late = rig.change_subscription(made.clone(), None).await;
    assert!(
        matches!(late, Err(StoreError::Conflict { found }) if found == rev),
        "{late:?}"
    );
    let renewed = Subscription { rev, ..renewed };
    let rig = rig.reopen();
    assert_eq!(
        rig.subscription(made.no).await.unwrap(),
        Some((renewed.clone(), position.clone()))
    );
    // A topic may come to mean another feed.
    let moved = Subscription {
        view: View {
            feed: other,
            ..renewed.view
        },
        ..renewed
    };
    let rev = rig.change_subscription(moved.clone(), None).await.unwrap();
    assert_eq!(rig.subscriptions(Some(feed), None, 9).await.unwrap(), []);
    assert_eq!(
        rig.subscriptions(Some(other), None, 9).await.unwrap(),
        [(Subscription { rev, ..moved }, position)]
    );
}

async fn a_callback_subscribes_to_a_topic_once(rig: Rig) {
    let feed = rig.blog().await;
    let no = rig.subscribe(new(feed, "http://a/")).await.unwrap().no;
    let again = rig.subscribe(new(feed, "http://a/")).await;
    assert!(
        matches!(again, Err(StoreError::Subscribed(there)) if there == no),
        "{again:?}"
    );
    assert_eq!(rig.subscriptions(None, None, 9).await.unwrap().len(), 1);
}

async fn an_ended_subscription_is_gone_and_its_number_never_comes_back(rig: Rig) {
    let feed = rig.blog().await;
    let first = rig.subscribe(new(feed, "http://a/")).await.unwrap();
    assert!(rig.end_subscription(first.no).await.unwrap());
    assert!(!rig.end_subscription(first.no).await.unwrap());
    assert_eq!(rig.subscription(first.no).await.unwrap(), None);
    assert_eq!(
        rig.find_subscription(&first.topic, "http://a/")
            .await
            .unwrap(),
        None
    );
    assert_eq!(rig.subscriptions(Some(feed), None, 9).await.unwrap(), []);
    let rig = rig.reopen();
    let second = rig.subscribe(new(feed, "http://a/")).await.unwrap();
    assert!(second.no > first.no);
    assert_eq!(
        rig.subscription(second.no).await.unwrap(),
        Some((second, Progress::default()))
    );
}

async fn what_is_written_late_does_not_bring_an_ended_subscription_back(rig: Rig) {
    // A delivery fails while its subscriber unsubscribes: what it then writes must not undo that
    // (HUB-6).
    let feed = rig.blog().await;
    let held = rig.subscribe(new(feed, "http://a/")).await.unwrap();
    rig.end_subscription(held.no).await.unwrap();
    let is_refused = async || {
        let late = rig
            .change_subscription(held.clone(), Some(progress("1_0_1", 0)))
            .await;
        assert!(
            matches!(late, Err(StoreError::UnknownSubscription(no)) if no == held.no),
            "{late:?}"
        );
        rig.save_attempts(vec![(held.no, progress("", 1).attempts)])
            .await
            .unwrap();
        assert_eq!(rig.subscription(held.no).await.unwrap(), None);
    };
    is_refused().await;
    let again = rig.subscribe(new(feed, "http://a/")).await.unwrap();
    is_refused().await;
    assert_eq!(
        rig.subscriptions(None, None, 9).await.unwrap(),
        [(again, Progress::default())]
    );
}

async fn a_position_moves_only_from_where_it_is_believed_to_be(rig: Rig) {
    let feed = rig.blog().await;
    let made = rig.subscribe(new(feed, "http://a/")).await.unwrap();
    let advance = async |subscription, from: &str, to: &str| {
        let moved = acknowledged(subscription, from, to);
        rig.acknowledge(vec![moved]).await.unwrap() == [true]
    };
    assert!(!advance(made.no, "", "1_0_1").await, "no position yet");
    rig.change_subscription(made.clone(), Some(progress("", 3)))
        .await
        .unwrap();
    assert!(advance(made.no, "", "1_0_1").await);
    assert!(
        !advance(made.no, "", "2_0_2").await,
        "somebody else was faster"
    );
    let (terms, moved) = rig.subscription(made.no).await.unwrap().unwrap();
    assert_eq!(
        moved,
        Progress {
            acked: Some("1_0_1".into()),
            ..Progress::default()
        }
    );
    assert_eq!(terms.pending, made.pending, "a delivery is no verification");
    assert!(!advance(SubscriptionNo(99), "1_0_1", "2_0_2").await);
    let rig = rig.reopen();
    assert_eq!(rig.subscription(made.no).await.unwrap().unwrap().1, moved);
}

async fn an_acknowledgement_and_a_renewal_do_not_conflict(rig: Rig) {
    let feed = rig.blog().await;
    let made = rig.subscribe(new(feed, "http://a/")).await.unwrap();
    let rev = rig
        .change_subscription(made.clone(), Some(progress("1_0_1", 0)))
        .await
        .unwrap();
    // A renewal is read, a delivery is acknowledged, and the renewal is written.
    let (read, _) = rig.subscription(made.no).await.unwrap().unwrap();
    let moved = acknowledged(made.no, "1_0_1", "2_0_2");
    assert_eq!(rig.acknowledge(vec![moved]).await.unwrap(), [true]);
    assert_eq!(rig.subscription(made.no).await.unwrap().unwrap().0.rev, rev);
    rig.change_subscription(
        Subscription {
            lease: Some(lease()),
            ..read
        },
        None,
    )
    .await
    .unwrap();
    let (renewed, position) = rig.subscription(made.no).await.unwrap().unwrap();
    assert_eq!(
        (renewed.lease, position.acked.as_deref()),
        (Some(lease()), Some("2_0_2"))
    );
}

async fn acknowledgements_are_kept_in_batches(rig: Rig) {
    let feed = rig.blog().await;
    let mut batch = Vec::new();
    for n in 0..3 {
        let made = rig
            .subscribe(new(feed, &format!("http://{n}/")))
            .await
            .unwrap();
        let no = made.no;
        rig.change_subscription(made, Some(progress("1_0_1", 2)))
            .await
            .unwrap();
        let from = if n == 1 { "0_0_0" } else { "1_0_1" };
        batch.push(acknowledged(no, from, "2_0_2"));
    }
    assert_eq!(rig.acknowledge(batch).await.unwrap(), [true, false, true]);
    let rig = rig.reopen();
    let kept = rig.subscriptions(None, None, 9).await.unwrap();
    let kept: Vec<_> = kept
        .iter()
        .map(|(_, kept)| (kept.acked.as_deref().unwrap(), kept.attempts.failed))
        .collect();
    assert_eq!(kept, [("2_0_2", 0), ("1_0_1", 2), ("2_0_2", 0)]);
}

async fn failed_attempts_are_kept_without_moving_the_position(rig: Rig) {
    let feed = rig.blog().await;
    let made = rig.subscribe(new(feed, "http://a/")).await.unwrap();
    let rev = rig
        .change_subscription(made.clone(), Some(progress("1_0_1", 0)))
        .await
        .unwrap();
    let failing = progress("1_0_1", 4);
    rig.save_attempts(vec![(made.no, failing.attempts.clone())])
        .await
        .unwrap();
    let rig = rig.reopen();
    let kept = rig.subscription(made.no).await.unwrap().unwrap();
    assert_eq!(kept, (Subscription { rev, ..made }, failing));
}

async fn only_verified_subscriptions_within_their_lease_are_counted(rig: Rig) {
    let feed = rig.blog().await;
    rig.subscribe(new(feed, "http://pending/")).await.unwrap();
    let made = rig.subscribe(new(feed, "http://active/")).await.unwrap();
    let short = Lease {
        until: START.plus_secs(60),
        ..lease()
    };
    let active = Subscription {
        lease: Some(short),
        ..made
    };
    let no = active.no;
    let rev = rig.change_subscription(active.clone(), None).await.unwrap();
    let changed = Subscription { rev, ..active };
    assert_eq!(rig.count_active(feed, START).await.unwrap(), 1);
    assert_eq!(
        rig.count_active(feed, START.plus_secs(60)).await.unwrap(),
        0
    );
    // One that reads for others counts for as many, as its newest answer says.
    rig.change_subscription(changed, Some(progress("", 0)))
        .await
        .unwrap();
    for (from, to, on_behalf_of, readers) in [
        ("", "1", Some(40), 40),
        ("1", "2", Some(0), 1),
        ("2", "3", Some(7), 7),
        ("3", "4", None, 1),
    ] {
        let moved = Acknowledged {
            on_behalf_of,
            ..acknowledged(no, from, to)
        };
        assert_eq!(rig.acknowledge(vec![moved]).await.unwrap(), [true]);
        assert_eq!(rig.count_active(feed, START).await.unwrap(), readers);
    }
    assert_eq!(rig.count_active(FeedNo(99), START).await.unwrap(), 0);
}

async fn what_is_written_after_its_feed_was_forgotten_brings_nothing_back(rig: Rig) {
    let feed = rig.blog().await;
    let held = rig.subscribe(new(feed, "http://a/")).await.unwrap();
    assert!(rig.forget(feed).await.unwrap());
    let late = rig
        .change_subscription(held.clone(), Some(progress("1_0_1", 0)))
        .await;
    assert!(
        matches!(late, Err(StoreError::UnknownSubscription(no)) if no == held.no),
        "{late:?}"
    );
    let moved = acknowledged(held.no, "", "1_0_1");
    assert_eq!(rig.acknowledge(vec![moved]).await.unwrap(), [false]);
    rig.save_attempts(vec![(held.no, progress("", 1).attempts)])
        .await
        .unwrap();
    let other = rig.register("other", NAMESPACE).await.unwrap().no;
    let late = [feed, other].map(|feed| (feed, PollState::default()));
    let pause = Pause {
        until: START.plus_secs(60),
        since: START,
    };
    let pause = ("example.org".to_owned(), pause);
    rig.save_polls(late.to_vec(), vec![pause.clone()])
        .await
        .unwrap();
    let rig = rig.reopen();
    assert_eq!(rig.subscriptions(None, None, 9).await.unwrap(), []);
    let polls = rig.polls(None, 9).await.unwrap();
    assert_eq!(
        polls.iter().map(|(feed, _)| *feed).collect::<Vec<_>>(),
        [other],
        "what is there is saved"
    );
    assert_eq!(rig.host_pauses(None, 9).await.unwrap(), [pause]);
    assert_eq!(rig.counts().await.unwrap().feeds, 1);
}

async fn a_subscription_to_no_feed_is_refused(rig: Rig) {
    let refused = rig.subscribe(new(FeedNo(1), "http://a/")).await;
    assert!(
        matches!(refused, Err(StoreError::UnknownFeed(FeedNo(1)))),
        "{refused:?}"
    );
}
