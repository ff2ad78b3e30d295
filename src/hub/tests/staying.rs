//! Subscriptions over time: renewals, leases, restarts.

use super::rig::{CALLBACK, DAY_SECS, Reply, Rig, TOPIC};
use crate::{
    clock::{Clock, Paused},
    hub::Config,
    readers::testing::START,
    secret::Secret,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

// HUB-6, W-4: nothing changes before the callback has confirmed it.
#[tokio::test(start_paused = true)]
async fn a_renewal_changes_terms_once_it_is_verified_and_never_the_position() {
    let rig = Rig::new().await;
    let old = [("hub.secret", "old"), ("hub.lease_seconds", "86400")];
    rig.subscribed(&old).await;
    rig.net.on_push(|_| Reply::down());
    rig.add(1).await;
    let (before, acked) = (rig.sub().await.unwrap(), rig.progress().await.acked);

    let new = [
        ("hub.secret", "new"),
        ("hub.lease_seconds", "1000"),
        ("hub.verify_token", "x"),
    ];
    rig.net.on(|call| {
        if call.is_push() {
            Reply::down()
        } else {
            Reply::status(404)
        }
    });
    assert_eq!(rig.ask_to("subscribe", &new).await.0, 202);
    rig.wait(4).await;
    let refused = rig.sub().await.unwrap();
    assert_eq!(
        (&refused.target, refused.lease),
        (&before.target, before.lease)
    );
    assert_eq!((refused.pending, rig.progress().await.acked), (None, acked));

    rig.net.on(|call| {
        if call.is_push() {
            Reply::down()
        } else {
            Reply::down().after(9)
        }
    });
    rig.net.taken();
    assert_eq!(rig.ask_to("subscribe", &new).await.0, 202);
    rig.wait(8).await;
    let waiting = rig.sub().await.unwrap();
    assert_eq!(rig.callback().await.secret, Some(Secret::new("old")));
    assert!(waiting.pending.is_some());

    rig.net.willing();
    rig.wait(60).await;
    let renewed = rig.sub().await.unwrap();
    assert_eq!(rig.callback().await.secret, Some(Secret::new("new")));
    assert!(renewed.lease.unwrap().until < before.lease.unwrap().until);
    let pushes = rig.net.pushes();
    assert!(
        pushes.iter().all(|push| push.prev().is_empty()),
        "the position is the one before"
    );
    assert_eq!(rig.acked().await, rig.head().await);
}

// A renewal shows that somebody is there: the backlog comes at once.
#[tokio::test(start_paused = true)]
async fn a_renewal_ends_a_back_off() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    rig.net.on_push(|_| Reply::down());
    rig.add(1).await;
    rig.wait(DAY_SECS).await;
    rig.net.willing();
    rig.net.taken();
    assert_eq!(rig.ask_to("subscribe", &[]).await.0, 202);
    rig.wait(1).await;
    assert_eq!((rig.net.pushes().len(), rig.counts().failing), (1, 0));
}

// HUB-16, W-11.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_over_is_over() {
    let rig = Rig::new().await;
    rig.subscribed(&[("hub.lease_seconds", "1000")]).await;
    rig.wait(990).await;
    rig.add(1).await;
    assert_eq!(rig.net.pushes().len(), 1);
    rig.wait(20).await;
    assert!(rig.sub().await.is_some(), "the clock may be wrong");
    rig.wait(700).await;
    assert!(rig.sub().await.is_none());
    rig.add(2).await;
    rig.wait(DAY_SECS).await;
    assert!(rig.net.taken().is_empty());
}

// HUB-22: the backlog of a dead subscriber is one row until its lease ends.
#[tokio::test(start_paused = true)]
async fn a_dead_subscriber_is_tried_until_its_lease_ends() {
    let rig = Rig::new().await;
    rig.subscribed(&[("hub.lease_seconds", "86400")]).await;
    rig.net.on_push(|_| Reply::down());
    rig.add(1).await;
    rig.wait(2 * DAY_SECS).await;
    let pushes = rig.net.pushes();
    let last = pushes.last().unwrap().at_secs;
    assert!((DAY_SECS - 5400..=DAY_SECS + 700).contains(&last), "{last}");
    assert!(rig.sub().await.is_none());
}

// P03-6, D-P5: asked for without an end, in the old dialect.
#[tokio::test(start_paused = true)]
async fn the_old_dialect_is_asked_whether_to_go_on_before_the_lease_ends() {
    let rig = Rig::new().await;
    rig.subscribed(&[("hub.verify", "async"), ("hub.verify_token", "t")])
        .await;
    rig.wait(8 * DAY_SECS - 10).await;
    assert!(rig.net.taken().is_empty());
    rig.wait(20).await;
    let [question] = &rig.net.taken()[..] else {
        panic!("one question")
    };
    assert_eq!(question.param("hub.mode").as_deref(), Some("subscribe"));
    assert_eq!(question.param("hub.verify_token").as_deref(), Some("t"));
    assert_eq!(question.param("hub.topic").as_deref(), Some(TOPIC));
    rig.wait(100 * DAY_SECS).await;
    assert_eq!(rig.counts().active, 1, "and so on");
    let asked = rig.net.taken().len();
    assert!((12..=13).contains(&asked), "every eight days: {asked}");
    // Down: asked again and again until the lease ends. Then it is over.
    rig.net.on(|_| Reply::down());
    rig.wait(11 * DAY_SECS).await;
    assert!(rig.net.taken().len() > 10);
    assert!(rig.sub().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_old_subscriber_that_does_not_want_to_go_on_is_let_go() {
    let rig = Rig::new().await;
    rig.subscribed(&[("hub.verify", "async")]).await;
    rig.net.on_verify(|_| Reply::status(404));
    rig.wait(9 * DAY_SECS).await;
    assert!(rig.sub().await.is_none());
    assert_eq!(rig.net.taken().len(), 1);
}

// HUB-16: everybody else renews, or not.
#[tokio::test(start_paused = true)]
async fn nobody_else_is_asked() {
    for more in [
        &[][..],
        &[("hub.verify", "async"), ("hub.lease_seconds", "864000")][..],
    ] {
        let rig = Rig::new().await;
        rig.subscribed(more).await;
        rig.wait(11 * DAY_SECS).await;
        assert!(rig.net.taken().is_empty());
        assert!(rig.sub().await.is_none());
    }
}

// Slice 4: survives restarts.
#[tokio::test(start_paused = true)]
async fn a_restart_forgets_nothing() {
    let rig = Rig::new().await;
    rig.subscribed(&[("hub.secret", "s")]).await;
    let waiting = "http://late.example/cb";
    rig.net.on_verify(|_| Reply::down());
    rig.ask(&[
        ("hub.mode", "subscribe"),
        ("hub.topic", TOPIC),
        ("hub.callback", waiting),
    ])
    .await;
    rig.wait(1).await;
    rig.net.on_push(|_| Reply::down());
    rig.add(1).await;
    let before = rig.subs().await;

    let rig = rig.killed().await;
    assert_eq!(rig.subs().await, before);
    rig.net.taken();
    rig.net.willing();
    rig.wait(60).await;
    let calls = rig.net.taken();
    assert!(
        calls.iter().any(|call| call.url.starts_with(waiting)),
        "the verification goes on"
    );
    let push = calls
        .iter()
        .find(|call| call.is_push() && call.url == CALLBACK)
        .unwrap();
    assert_eq!((push.prev(), push.last()), ("", rig.head().await.as_str()));
    assert!(push.header("x-hub-signature").starts_with("sha256="));
    assert_eq!(rig.counts().active, 2);
}

#[tokio::test(start_paused = true)]
async fn a_restart_keeps_since_when_pushes_fail() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    rig.net.on_push(|_| Reply::status(503));
    rig.add(1).await;
    let failing = |rig: &Rig| rig.hub.failing(10).remove(&rig.feed).unwrap().remove(0);
    rig.wait(600).await;
    let before = failing(&rig);
    let rig = rig.killed().await;
    rig.wait(3600).await;
    let after = failing(&rig);
    assert_eq!(after.since, before.since);
    assert!(after.failures > before.failures, "{after:?}");
}

/// A clock that goes with the timers, and can be set wrong.
struct WrongClock {
    paused: Paused,
    ahead_secs: AtomicI64,
}

impl WrongClock {
    fn right() -> Self {
        Self {
            paused: Paused::from(START.plus_secs(1000 * DAY_SECS).micros()),
            ahead_secs: AtomicI64::new(0),
        }
    }
}

impl Clock for WrongClock {
    fn now_us(&self) -> u64 {
        let ahead_us = self.ahead_secs.load(Ordering::Relaxed) * 1_000_000;
        self.paused.now_us().saturating_add_signed(ahead_us)
    }
}

#[tokio::test(start_paused = true)]
async fn retries_and_leases_end_in_time_although_the_clock_is_set_back() {
    for restarts in [false, true] {
        let clock = Arc::new(WrongClock::right());
        let rig = Rig::by(Config::default(), clock.clone()).await;
        rig.commit(vec![]).await;
        rig.subscribed(&[("hub.lease_seconds", "86400")]).await;
        rig.net.on_push(|_| Reply::down());
        rig.add(1).await;
        rig.wait(600).await;
        clock
            .ahead_secs
            .store(-30 * DAY_SECS as i64, Ordering::Relaxed);
        let rig = if restarts { rig.killed().await } else { rig };
        rig.net.taken();
        rig.wait(DAY_SECS / 2).await;
        assert!(rig.net.pushes().len() > 5, "they go on");
        rig.wait(DAY_SECS / 2 + 3600).await;
        assert!(rig.sub().await.is_none(), "the lease is as long as it was");
    }
}

// Killed while a push is under way: it may have been taken, so it is sent once more, with the same
// prev.
#[tokio::test(start_paused = true)]
async fn a_push_that_was_cut_off_is_sent_again_after_the_restart() {
    let mut rig = Rig::new().await;
    rig.subscribed(&[]).await;
    let mut before = (String::new(), String::new());
    for n in 0..20 {
        rig.net.on_push(|_| Reply::status(200).after(5));
        rig.add(n).await;
        // At every point of the push, and after it.
        rig.wait(u64::from(n) % 7).await;
        rig = rig.killed().await;
        rig.wait(8).await;
        for push in rig.net.pushes() {
            assert!(
                push.prev() == before.1 || push.prev() == before.0,
                "{} on {before:?}",
                push.prev()
            );
            before = (push.prev().to_owned(), push.last().to_owned());
        }
    }
    assert_eq!(
        (rig.acked().await, before.1),
        (rig.head().await, rig.head().await)
    );
}

// DESIGN section 8: stopped in order, what is under way is finished and noted, and nothing is sent
// twice.
#[tokio::test(start_paused = true)]
async fn a_hub_that_stops_finishes_the_push_under_way() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    rig.net.on_push(|_| Reply::status(200).after(5));
    rig.add(1).await;
    rig.hub.shutdown(Duration::from_secs(10)).await;
    assert_eq!(rig.acked().await, rig.head().await);
    rig.add(2).await;
    rig.wait(60).await;
    assert_eq!(rig.net.pushes().len(), 1, "and begins no other");
    assert_eq!(rig.ask_to("subscribe", &[]).await.0, 503);
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_stops_does_not_wait_for_ever() {
    let rig = Rig::with(Config {
        deliver_secs: 600,
        ..Config::default()
    })
    .await;
    rig.subscribed(&[]).await;
    rig.net.on_push(|_| Reply::status(200).after(500));
    rig.add(1).await;
    let began = tokio::time::Instant::now();
    rig.hub.shutdown(Duration::from_secs(10)).await;
    assert_eq!(began.elapsed().as_secs(), 10);
    assert_eq!(rig.acked().await, "");
}

// Down for longer than the lease: the clock is believed after ten minutes, and nothing is pushed from
// then on.
#[tokio::test(start_paused = true)]
async fn a_lease_ends_while_nobody_is_there_to_see_it() {
    let rig = Rig::new().await;
    rig.subscribed(&[("hub.lease_seconds", "300")]).await;
    rig.hub.shutdown(Duration::from_secs(1)).await;
    rig.wait(DAY_SECS).await;
    let rig = rig.killed().await;
    rig.wait(590).await;
    assert!(rig.sub().await.is_some());
    rig.wait(100).await;
    assert!(rig.sub().await.is_none());
    rig.add(1).await;
    rig.wait(DAY_SECS).await;
    assert!(rig.net.taken().is_empty());
}

// The attack, or the fault: a clock that is set wrong for a while, in a process that runs, over a
// restart, and from a start on. Every subscriber stays, and is pushed to as before.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_wrong_for_a_while_ends_no_lease() {
    let ahead = 365 * DAY_SECS as i64;
    for (by_secs, wrong_secs, restarts) in [
        (ahead, 20, [false, false]),
        (ahead, 540, [false, false]),
        (ahead, 540, [true, false]),
        (ahead, 540, [true, true]),
        (ahead, 20, [false, true]),
        (-ahead, 20, [false, false]),
        (-ahead, 540, [true, true]),
        (-ahead, 7200, [false, false]),
    ] {
        let case = format!("{by_secs} s for {wrong_secs} s, {restarts:?}");
        let clock = Arc::new(WrongClock::right());
        let rig = Rig::by(Config::default(), clock.clone()).await;
        rig.commit(vec![]).await;
        rig.subscribed(&[
            ("hub.lease_seconds", "864000"),
            ("hub.warning_seconds", "86400"),
        ])
        .await;
        rig.wait(3600).await;
        let until = rig.sub().await.unwrap().lease.unwrap().until;
        rig.net.taken();
        clock.ahead_secs.store(by_secs, Ordering::Relaxed);
        let rig = if restarts[0] { rig.killed().await } else { rig };
        rig.wait(wrong_secs).await;
        rig.add(1).await;
        let calls = rig.net.taken();
        assert!(
            calls.len() == 1 && calls[0].is_push(),
            "{case}: pushes go on"
        );
        clock.ahead_secs.store(0, Ordering::Relaxed);
        let rig = if restarts[1] { rig.killed().await } else { rig };
        rig.wait(1200).await;
        rig.add(2).await;
        let calls = rig.net.taken();
        assert!(
            calls.len() == 1 && calls[0].is_push(),
            "{case}: nobody is warned"
        );
        assert_eq!(
            rig.sub().await.unwrap().lease.unwrap().until,
            until,
            "{case}"
        );
        // It ends in its time, and its subscriber is warned in time.
        rig.wait(8 * DAY_SECS + DAY_SECS / 2).await;
        assert_eq!(rig.net.taken().len(), 0, "{case}");
        rig.wait(DAY_SECS).await;
        assert_eq!(rig.net.taken().len(), 1, "{case}: the warning");
        rig.wait(DAY_SECS / 2).await;
        assert!(rig.sub().await.is_none(), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_stays_ahead_ends_a_lease_after_ten_minutes() {
    let clock = Arc::new(WrongClock::right());
    let rig = Rig::by(Config::default(), clock.clone()).await;
    rig.commit(vec![]).await;
    rig.subscribed(&[("hub.lease_seconds", "864000")]).await;
    rig.wait(3600).await;
    clock
        .ahead_secs
        .store(365 * DAY_SECS as i64, Ordering::Relaxed);
    rig.add(1).await;
    rig.wait(590).await;
    assert!(rig.sub().await.is_some());
    rig.wait(200).await;
    assert!(rig.sub().await.is_none());
}

// A callback that was asked once and did not answer: the request is not lost to a jump.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_ahead_for_a_while_gives_up_no_request() {
    let clock = Arc::new(WrongClock::right());
    let rig = Rig::by(Config::default(), clock.clone()).await;
    rig.commit(vec![]).await;
    rig.net.on_verify(|_| Reply::down());
    assert_eq!(rig.ask_to("subscribe", &[]).await.0, 202);
    rig.wait(10).await;
    clock
        .ahead_secs
        .store(365 * DAY_SECS as i64, Ordering::Relaxed);
    rig.wait(500).await;
    clock.ahead_secs.store(0, Ordering::Relaxed);
    rig.net.willing();
    rig.wait(3600).await;
    assert!(rig.sub().await.unwrap().lease.is_some());
}

// An operator may remove a row; the task notices when it next writes.
#[tokio::test(start_paused = true)]
async fn a_row_that_was_removed_does_not_come_back() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    let no = rig.sub().await.unwrap().no;
    rig.store.end_subscription(no).await.unwrap();
    rig.add(1).await;
    rig.wait(60).await;
    assert!(rig.sub().await.is_none());
    assert!(rig.hub.counts().is_empty());
}

#[test]
fn a_configuration_that_cannot_be_meant_names_its_key() {
    let check = |config: Config, key| match config.check() {
        Ok(()) => assert_eq!(key, ""),
        Err(bad) => {
            assert_eq!(bad.key, key);
            assert!(bad.to_string().contains(&bad.found.to_string()), "{bad}");
        }
    };
    let base = Config::default;
    check(base(), "");
    check(
        Config {
            push_items_max: 0,
            ..base()
        },
        "push_items_max",
    );
    check(
        Config {
            lease_min_secs: 900_000,
            ..base()
        },
        "lease_default_secs",
    );
    check(
        Config {
            lease_min_secs: 9_000_000,
            ..base()
        },
        "lease_max_secs",
    );
    check(
        Config {
            lease_max_secs: u64::MAX,
            ..base()
        },
        "lease_max_secs",
    );
    assert_eq!(toml::from_str::<Config>("").unwrap(), base());
    assert!(toml::from_str::<Config>("lease_secs = 1").is_err());
}
