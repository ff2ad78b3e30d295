//! The next step of a subscription, decided from a row and the time.

use super::*;
use crate::{
    feed::{order::Order as FeedOrder, record::FeedNo, view::View},
    store::{
        SubscriptionNo,
        subscriptions::{
            Algo, Attempts, CallbackTarget, Dialect, Lease, LeaseTerms, Pending, PushWishes, Start,
            Target,
        },
    },
};

const NOW: Stamp = Stamp::from_secs(1_000_000);

fn target() -> Target {
    Target::Callback(CallbackTarget {
        url: "http://s/cb".into(),
        topic_as_sent: "t".into(),
        dialect: Dialect::WebSub,
        secret: None,
        algo: Algo::Sha256,
        verify_token: None,
        wishes: PushWishes::default(),
    })
}

fn lease(auto_refresh: bool) -> Lease {
    Lease {
        until: NOW.plus_secs(1000),
        terms: LeaseTerms {
            secs: 1000,
            auto_refresh,
        },
    }
}

fn pending(intent: Intent, attempts: u32, next_try: Stamp) -> Pending {
    let give_up_at = NOW.plus_secs(100);
    Pending {
        intent,
        attempts,
        next_try,
        give_up_at,
        start: Start::Head(None),
        principal: None,
        scanned: None,
    }
}

/// Verified just now, for 1000 seconds.
fn sub() -> Subscription {
    Subscription {
        no: SubscriptionNo(1),
        rev: 1,
        view: View::all(FeedNo(1), FeedOrder::MODIFIED),
        representation: "atom".into(),
        topic: "t".into(),
        target: target(),
        lease: Some(lease(false)),
        pending: None,
        principal: None,
    }
}

/// Not verified yet.
fn asked(attempts: u32, next_try: Stamp) -> Subscription {
    let intent = Intent::Subscribe {
        target: target(),
        lease: lease(false).terms,
    };
    Subscription {
        lease: None,
        pending: Some(pending(intent, attempts, next_try)),
        ..sub()
    }
}

/// A position whose last deliveries failed so often.
fn failed(times: u32, next_try: Stamp) -> Progress {
    let attempts = Attempts {
        failed: times,
        next_try,
        failure: None,
        since: None,
    };
    Progress {
        acked: Some(String::new()),
        attempts,
        ..Progress::default()
    }
}

/// So many seconds later, by a clock that was right for ten minutes.
fn at(after_secs: u64) -> Times {
    let now = NOW.plus_secs(after_secs);
    Times {
        now,
        settled: Stamp::from_secs(now.secs() - 600),
    }
}

fn check(sub: &Subscription, under_way: UnderWay, after_secs: u64, expect: NextStep) {
    check_at(sub, &failed(0, Stamp::ZERO), under_way, after_secs, expect);
}

fn check_at(
    sub: &Subscription,
    progress: &Progress,
    under_way: UnderWay,
    after_secs: u64,
    expect: NextStep,
) {
    assert_eq!(
        next(sub, progress, Offer::Served, under_way, at(after_secs)),
        expect
    );
}

fn check_withdrawn(sub: &Subscription, after_secs: u64, expect: NextStep) {
    for pushing in [
        PushStage::Unknown,
        PushStage::Following,
        PushStage::Behind,
        PushStage::UnderWay,
    ] {
        let under_way = UnderWay { pushing, ..IDLE };
        let step = next(
            sub,
            &failed(0, Stamp::ZERO),
            Offer::Withdrawn,
            under_way,
            at(after_secs),
        );
        assert_eq!(step, expect, "{pushing:?}");
    }
}

const IDLE: UnderWay = UnderWay {
    is_asking: false,
    pushing: PushStage::Following,
    unsaved: None,
    warn_at: None,
    lease_end: None,
};
const BEHIND: UnderWay = UnderWay {
    pushing: PushStage::Behind,
    ..IDLE
};
const PUSHING: UnderWay = UnderWay {
    pushing: PushStage::UnderWay,
    ..IDLE
};

#[test]
fn whoever_may_not_read_the_feed_any_more_is_denied_before_all_else() {
    // SF-131.
    let denied = |sub: &Subscription| {
        let under_way = UnderWay {
            pushing: PushStage::Behind,
            ..UnderWay::default()
        };
        next(sub, &Progress::default(), Offer::Denied, under_way, at(0))
    };
    assert_eq!(denied(&sub()), NextStep::Deny);
    assert_eq!(
        denied(&Subscription {
            lease: None,
            ..sub()
        }),
        NextStep::End
    );
}

#[test]
fn a_subscription_that_is_behind_is_pushed_to_one_at_a_time_and_not_too_soon() {
    check(
        &sub(),
        UnderWay {
            pushing: PushStage::Unknown,
            ..IDLE
        },
        0,
        NextStep::Follow,
    );
    check(&sub(), BEHIND, 0, NextStep::Push);
    check(&sub(), PUSHING, 0, NextStep::Wait(NOW.plus_secs(1000)));
    check(&sub(), IDLE, 0, NextStep::Wait(NOW.plus_secs(1000)));
    let failed = failed(1, NOW.plus_secs(5));
    check_at(&sub(), &failed, BEHIND, 4, NextStep::Wait(NOW.plus_secs(5)));
    check_at(&sub(), &failed, BEHIND, 5, NextStep::Push);
}

// HUB-16, W-11.
#[test]
fn a_lease_ends_ten_minutes_after_its_end_whatever_is_under_way() {
    check(&sub(), PUSHING, 999, NextStep::Wait(NOW.plus_secs(1000)));
    check(&sub(), PUSHING, 1000, NextStep::Wait(NOW.plus_secs(1060)));
    check(&sub(), PUSHING, 1599, NextStep::Wait(NOW.plus_secs(1659)));
    check(&sub(), PUSHING, 1600, NextStep::Expire);
    check_at(
        &sub(),
        &failed(9, NOW.plus_secs(5000)),
        BEHIND,
        1600,
        NextStep::Expire,
    );
}

#[test]
fn a_clock_that_jumped_ahead_ends_no_lease_and_no_request_and_warns_nobody() {
    let jumped = Times {
        now: NOW.plus_secs(31_536_000),
        settled: NOW,
    };
    let again = NextStep::Wait(jumped.now.plus_secs(60));
    let warned = UnderWay {
        warn_at: Some(NOW.plus_secs(500)),
        ..IDLE
    };
    let all = Progress::default();
    assert_eq!(next(&sub(), &all, Offer::Served, warned, jumped), again);
    let asked = asked(3, NOW.plus_secs(30));
    assert_eq!(next(&asked, &all, Offer::Served, IDLE, jumped), again);
}

#[test]
fn the_end_in_force_of_a_lease_counts_in_the_place_of_one_that_is_too_far() {
    let end = NOW.plus_secs(300);
    let shorter = UnderWay {
        lease_end: Some(end),
        ..IDLE
    };
    check(&sub(), shorter, 0, NextStep::Wait(end));
    check(&sub(), shorter, 900, NextStep::Expire);
}

// P03-6, D-P5.
#[test]
fn only_who_asked_for_no_end_is_asked_whether_to_go_on() {
    let endless = Subscription {
        lease: Some(lease(true)),
        ..sub()
    };
    check(&endless, IDLE, 799, NextStep::Wait(NOW.plus_secs(800)));
    check(&endless, IDLE, 800, NextStep::Refresh);
    check(&sub(), IDLE, 800, NextStep::Wait(NOW.plus_secs(1000)));
    let asking = Subscription {
        pending: Some(pending(Intent::Refresh, 3, NOW.plus_secs(900))),
        ..endless
    };
    check(&asking, IDLE, 850, NextStep::Wait(NOW.plus_secs(900)));
    check(&asking, IDLE, 900, NextStep::Ask);
}

#[test]
fn a_request_is_asked_about_until_it_is_given_up() {
    check(&asked(0, NOW), BEHIND, 0, NextStep::Ask);
    check(
        &asked(0, NOW),
        UnderWay {
            is_asking: true,
            ..BEHIND
        },
        0,
        NextStep::Wait(Stamp::MAX),
    );
    check(
        &asked(1, NOW.plus_secs(30)),
        BEHIND,
        29,
        NextStep::Wait(NOW.plus_secs(30)),
    );
    check(
        &asked(1, NOW.plus_secs(30)),
        BEHIND,
        100,
        NextStep::Wait(NOW.plus_secs(160)),
    );
    check(&asked(1, NOW.plus_secs(30)), BEHIND, 700, NextStep::GiveUp);
    // Accepted while the clock ran ahead, so that its time does not come.
    check(&asked(20, NOW), BEHIND, 0, NextStep::GiveUp);
    // Accepted, and never asked about because we were down: it is asked once all the same.
    check(&asked(0, NOW), BEHIND, 100, NextStep::Ask);
    check(
        &Subscription {
            lease: None,
            ..sub()
        },
        IDLE,
        0,
        NextStep::End,
    );
}

#[test]
fn what_could_not_be_saved_is_saved_again() {
    check(
        &sub(),
        UnderWay {
            unsaved: Some(NOW),
            ..IDLE
        },
        0,
        NextStep::Save,
    );
    let later = NOW.plus_secs(5);
    check(
        &sub(),
        UnderWay {
            unsaved: Some(later),
            ..IDLE
        },
        0,
        NextStep::Wait(later),
    );
}

#[test]
fn of_a_withdrawn_feed_nothing_is_pushed_and_only_an_unsubscription_is_asked_about() {
    check_withdrawn(&sub(), 0, NextStep::Wait(NOW.plus_secs(1000)));
    check_withdrawn(&sub(), 1600, NextStep::Expire);
    let endless = Subscription {
        lease: Some(lease(true)),
        ..sub()
    };
    check_withdrawn(&endless, 900, NextStep::Wait(NOW.plus_secs(1000)));
    check_withdrawn(&asked(0, NOW), 0, NextStep::Wait(NOW.plus_secs(100)));
    check_withdrawn(&asked(0, NOW), 700, NextStep::GiveUp);
    let leaving = pending(Intent::Unsubscribe { target: target() }, 0, NOW);
    check_withdrawn(
        &Subscription {
            pending: Some(leaving),
            ..sub()
        },
        0,
        NextStep::Ask,
    );
}

#[test]
fn the_subscriptions_of_a_forgotten_feed_end() {
    let forgotten = |sub: &Subscription| {
        let under_way = UnderWay {
            unsaved: Some(NOW),
            ..PUSHING
        };
        next(
            sub,
            &failed(3, Stamp::MAX),
            Offer::Forgotten,
            under_way,
            at(0),
        )
    };
    assert_eq!(forgotten(&sub()), NextStep::Withdraw);
    assert_eq!(forgotten(&asked(0, NOW)), NextStep::Withdraw);
    assert_eq!(
        forgotten(&Subscription {
            lease: None,
            ..sub()
        }),
        NextStep::End
    );
}
