//! The next step of a subscription, decided from a row and the time.

use super::*;
use crate::{
    feed::{order::Order as FeedOrder, record::FeedNo, view::View},
    store::{
        SubscriptionNo,
        subscriptions::{Algo, Dialect, Terms},
    },
};

const NOW: Stamp = Stamp::from_secs(1_000_000);

fn terms(auto_refresh: bool) -> Terms {
    Terms {
        secret: None,
        lease_secs: 1000,
        dialect: Dialect::WebSub,
        verify_token: None,
        algo: Algo::Sha256,
        auto_refresh,
    }
}

fn pending(intent: Intent, attempts: u32, next_try: Stamp) -> Pending {
    let give_up_at = NOW.plus_secs(100);
    Pending { intent, topic_as_sent: "t".into(), attempts, next_try, give_up_at, start: Start::Head(None) }
}

/// Verified just now, for 1000 seconds.
fn sub() -> Subscription {
    Subscription {
        no: SubscriptionNo(1),
        rev: 1,
        view: View::all(FeedNo(1), FeedOrder::MODIFIED),
        representation: "atom".into(),
        topic: "t".into(),
        topic_as_sent: "t".into(),
        callback: "http://s/cb".into(),
        active: Some(terms(false)),
        lease_until: NOW.plus_secs(1000),
        pending: None,
    }
}

/// A position whose last deliveries failed so often.
fn failed(times: u32, next_try: Stamp) -> Progress {
    Progress { acked: Some(String::new()), attempts: Attempts { failed: times, next_try, failure: None } }
}

fn check(sub: &Subscription, under_way: UnderWay, after_secs: u64, expect: Step) {
    check_at(sub, &failed(0, Stamp::ZERO), under_way, after_secs, expect);
}

fn check_at(sub: &Subscription, progress: &Progress, under_way: UnderWay, after_secs: u64, expect: Step) {
    assert_eq!(next(sub, progress, under_way, None, NOW.plus_secs(after_secs)), expect);
}

const IDLE: UnderWay = UnderWay { asking: false, pushing: false, caught_up: true };
const BEHIND: UnderWay = UnderWay { asking: false, pushing: false, caught_up: false };
const PUSHING: UnderWay = UnderWay { asking: false, pushing: true, caught_up: false };

#[test]
fn a_subscription_that_is_behind_is_pushed_to_one_at_a_time_and_not_too_soon() {
    check(&sub(), BEHIND, 0, Step::Push);
    check(&sub(), PUSHING, 0, Step::Wait(NOW.plus_secs(1000)));
    check(&sub(), IDLE, 0, Step::Wait(NOW.plus_secs(1000)));
    let failed = failed(1, NOW.plus_secs(5));
    check_at(&sub(), &failed, BEHIND, 4, Step::Wait(NOW.plus_secs(5)));
    check_at(&sub(), &failed, BEHIND, 5, Step::Push);
}

// HUB-16, W-11.
#[test]
fn a_lease_ends_when_it_ends_whatever_is_under_way() {
    check(&sub(), PUSHING, 999, Step::Wait(NOW.plus_secs(1000)));
    check(&sub(), PUSHING, 1000, Step::Expire);
    check_at(&sub(), &failed(9, NOW.plus_secs(5000)), BEHIND, 1000, Step::Expire);
}

// P03-6, D-P5.
#[test]
fn only_who_asked_for_no_end_is_asked_whether_to_go_on() {
    let endless = Subscription { active: Some(terms(true)), ..sub() };
    check(&endless, IDLE, 799, Step::Wait(NOW.plus_secs(800)));
    check(&endless, IDLE, 800, Step::Refresh);
    check(&sub(), IDLE, 800, Step::Wait(NOW.plus_secs(1000)));
    let asking = Subscription { pending: Some(pending(Intent::Refresh, 3, NOW.plus_secs(900))), ..endless };
    check(&asking, IDLE, 850, Step::Wait(NOW.plus_secs(900)));
    check(&asking, IDLE, 900, Step::Ask);
}

#[test]
fn a_request_is_asked_about_until_it_is_given_up() {
    let asked = |attempts, next| Subscription {
        active: None,
        pending: Some(pending(Intent::Subscribe(terms(false)), attempts, next)),
        ..sub()
    };
    check(&asked(0, NOW), BEHIND, 0, Step::Ask);
    check(&asked(0, NOW), UnderWay { asking: true, ..BEHIND }, 0, Step::Wait(Stamp::MAX));
    check(&asked(1, NOW.plus_secs(30)), BEHIND, 29, Step::Wait(NOW.plus_secs(30)));
    check(&asked(1, NOW.plus_secs(30)), BEHIND, 100, Step::GiveUp);
    // Accepted, and never asked about because we were down: it is asked once all the same.
    check(&asked(0, NOW), BEHIND, 100, Step::Ask);
    check(&Subscription { active: None, ..sub() }, IDLE, 0, Step::End);
}

#[test]
fn what_could_not_be_saved_is_saved_again() {
    assert_eq!(next(&sub(), &Progress::default(), IDLE, Some(NOW), NOW), Step::Save);
    assert_eq!(
        next(&sub(), &Progress::default(), IDLE, Some(NOW.plus_secs(5)), NOW),
        Step::Wait(NOW.plus_secs(5))
    );
}

#[test]
fn a_renewal_keeps_the_position_unless_it_names_one() {
    let check = |acked: Option<&str>, from: Start, expect: Option<&str>| {
        let progress = Progress { acked: acked.map(str::to_owned), ..Progress::default() };
        assert_eq!(start(&progress, &from).as_deref(), expect);
    };
    check(None, Start::Head(None), None);
    check(None, Start::Head(Some("2".into())), Some("2"));
    check(Some("1"), Start::Head(Some("2".into())), Some("1"));
    check(Some("1"), Start::Given("0".into()), Some("0"));
}
