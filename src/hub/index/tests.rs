//! The counts and limits of subscriptions.

use super::*;
use crate::{
    feed::record::Head,
    hub::{next_step::Offer, remembered::Remembered},
    store::SubscriptionNo,
};

const FEED: FeedNo = FeedNo(1);
const ROOM: SubscriptionLimits = SubscriptionLimits {
    subscriptions_max: 3,
    unverified_max: 2,
    host_max: 100,
    client_max: 100,
};

fn key(callback: &str) -> Key {
    Key::of("http://h/f", callback)
}

fn unverified(client: u8) -> Applicant {
    let client = ClientNet::of(Some([192, 0, 2, client].into()));
    Applicant {
        feed: FEED,
        standing: Standing::Unverified,
        client,
    }
}

#[test]
fn there_is_one_task_for_a_key_and_a_named_number_of_keys() {
    let index = Index::default();
    let way = |callback: &str, client| index.way(key(callback), unverified(client), callback, ROOM);
    let Way::New(first) = way("http://a/", 1) else {
        panic!("the first is new")
    };
    assert!(matches!(way("http://a/", 1), Way::Known(_)));
    assert!(matches!(way("http://b/", 2), Way::New(_)));
    assert!(
        matches!(way("http://c/", 3), Way::Full(IndexLimit::Hub)),
        "two wait for their verification already"
    );
    index.note(first.entry, Standing::Failing);
    assert!(matches!(way("http://c/", 3), Way::New(_)));
    assert!(matches!(way("http://d/", 4), Way::Full(_)));
    let counts = index.counts()[&FEED];
    assert_eq!(
        counts,
        SubscriptionCounts {
            active: 1,
            pending: 2,
            failing: 1
        }
    );
}

#[test]
fn a_task_that_ends_late_does_not_forget_its_successor() {
    let index = Index::default();
    let way = || index.way(key("http://a/"), unverified(1), "http://a/", ROOM);
    let Way::New(first) = way() else {
        panic!("new")
    };
    index.remove(first.entry);
    let Way::New(_) = way() else {
        panic!("new again")
    };
    index.remove(first.entry);
    assert!(index.knows(key("http://a/")));
}

#[test]
fn one_client_fills_the_room_of_nobody_and_the_hopeless_give_way() {
    let index = Index::default();
    let room = SubscriptionLimits {
        subscriptions_max: 1000,
        unverified_max: 64,
        ..ROOM
    };
    let way = |callback: &str, client| index.way(key(callback), unverified(client), callback, room);
    let mut news = Vec::new();
    for n in 0..4 {
        let callback = format!("http://flood/{n}");
        let Way::New(new) = way(&callback, 1) else {
            panic!("{n} has room")
        };
        news.push((callback, new));
    }
    assert!(
        matches!(way("http://flood/4", 1), Way::Full(_)),
        "a client has a sixteenth"
    );
    assert!(
        matches!(way("http://flood/5", 2), Way::New(_)),
        "and another one has its own"
    );
    for (_, new) in &news {
        index.note(new.entry, Standing::Unanswered);
        // It does not count as untried again.
        index.note(new.entry, Standing::Unverified);
    }
    assert!(matches!(way("http://flood/6", 1), Way::New(_)));
    let left: Vec<bool> = news
        .iter()
        .map(|(_, new)| new.leave.is_cancelled())
        .collect();
    assert_eq!(left, [true, false, false, false], "the oldest gives way");
}

#[test]
fn one_host_and_one_client_have_their_limits_and_give_them_back() {
    let index = Index::default();
    let room = SubscriptionLimits {
        subscriptions_max: 1000,
        unverified_max: 1000,
        host_max: 3,
        client_max: 2,
    };
    let way = |callback: &str, client| {
        let way = index.way(key(callback), unverified(client), callback, room);
        match way {
            Way::New(new) => Ok(new.entry),
            Way::Known(_) | Way::AtRest(..) => panic!("`{callback}` is new"),
            Way::Full(limit) => Err(limit),
        }
    };
    let first = way("http://a/1", 1).unwrap();
    way("http://b/1", 1).unwrap();
    assert_eq!(way("http://c/1", 1), Err(IndexLimit::Client));
    way("http://a/2", 2).unwrap();
    way("http://a/3", 3).unwrap();
    assert_eq!(way("http://a/4", 4), Err(IndexLimit::Host));
    index.remove(first);
    assert!(way("http://a/4", 1).is_ok());
}

const SUB: SubscriptionNo = SubscriptionNo(7);

fn head(t: u64) -> Head {
    Head {
        last_t: Stamp::from_secs(t),
        metadata_t: Stamp::ZERO,
        ready: true,
        generation: Stamp::ZERO,
    }
}

const OFFER: GroupOffer = GroupOffer {
    offer: Offer::Served,
    read: Some(FEED),
};

/// A rest of one that follows, and has seen the head of this time.
fn rest(seen: u64, call_at: u64) -> Rest {
    Rest {
        sub: SUB,
        group: GroupKey {
            feed: FEED,
            principal: None,
        },
        offer: OFFER,
        seen: Some(head(seen)),
        kind: RestKind::Following,
        call_at: Stamp::from_secs(call_at),
        remembered: Remembered::default(),
    }
}

fn new(index: &Index, callback: &str) -> NewTask {
    let room = SubscriptionLimits {
        unverified_max: 1000,
        subscriptions_max: 1000,
        ..ROOM
    };
    match index.way(key(callback), unverified(1), callback, room) {
        Way::New(new) => new,
        _ => panic!("`{callback}` is new"),
    }
}

/// Lets one rest while this is offered and the feed is at this head.
fn rested(index: &Index, new: NewTask, rest: Rest, at: u64) -> Result<(), NoRest> {
    drop(new.mailbox);
    index.rest(new.entry, &new.commands, rest, |_| (OFFER, Some(head(at))))
}

#[test]
fn what_moved_since_it_was_read_lets_nobody_rest() {
    let index = Index::default();
    let one = new(&index, "http://a/");
    assert_eq!(rested(&index, one, rest(1, 9), 2), Err(NoRest::Stale));
    let other = new(&index, "http://b/");
    assert_eq!(rested(&index, other, rest(2, 9), 2), Ok(()));
    assert_eq!(index.moved(FeedNo(2)).len(), 0);
    assert_eq!(index.moved(FEED).len(), 1);
    assert_eq!(index.moved(FEED).len(), 0, "it is at work");
}

#[test]
fn who_is_about_to_get_a_command_does_not_rest() {
    let index = Index::default();
    let one = new(&index, "http://a/");
    let Some(Way::Known(sender)) = index.known_way(key("http://a/")) else {
        panic!("at work")
    };
    let is_busy = |one: &NewTask| {
        index.rest(one.entry, &one.commands, rest(1, 9), |_| {
            (OFFER, Some(head(1)))
        })
    };
    assert_eq!(is_busy(&one), Err(NoRest::Busy));
    drop(sender);
    assert_eq!(is_busy(&one), Err(NoRest::Busy), "the maker has a way, too");
    assert_eq!(rested(&index, one, rest(1, 9), 1), Ok(()));
    let Some(Way::AtRest(called_up, _)) = index.known_way(key("http://a/")) else {
        panic!("called up for its command")
    };
    assert_eq!(called_up.sub, SUB);
    assert!(matches!(
        index.known_way(key("http://a/")),
        Some(Way::Known(_))
    ));
}

#[test]
fn a_state_counts_as_seen_if_all_who_are_called_up_have_seen_it() {
    let index = Index::default();
    let (one, other) = (new(&index, "http://a/"), new(&index, "http://b/"));
    rested(&index, one, rest(1, 9), 1).unwrap();
    rested(&index, other, rest(1, 9), 1).unwrap();
    let seen: Vec<_> = index.moved(FEED).iter().map(|it| it.rested.seen).collect();
    assert_eq!(seen, [Some(head(1)); 2]);
    let (third, last) = (new(&index, "http://c/"), new(&index, "http://d/"));
    rested(&index, third, rest(1, 9), 1).unwrap();
    rested(&index, last, rest(2, 9), 2).unwrap();
    let seen: Vec<_> = index.moved(FEED).iter().map(|it| it.rested.seen).collect();
    assert_eq!(seen, [None; 2], "the first has not seen the second state");
}

#[test]
fn the_earliest_are_called_up_first_and_those_of_another_offer_at_once() {
    let index = Index::default();
    for (callback, call_at) in [("http://a/", 30), ("http://b/", 10), ("http://c/", 20)] {
        let one = new(&index, callback);
        rested(&index, one, rest(1, call_at), 1).unwrap();
    }
    assert_eq!(index.next_time(), Some(Stamp::from_secs(10)));
    assert_eq!(index.due(Stamp::from_secs(9), 9).len(), 0);
    assert_eq!(index.due(Stamp::from_secs(20), 1).len(), 1);
    assert_eq!(index.next_time(), Some(Stamp::from_secs(20)));
    assert_eq!(index.offers_changed(|_| OFFER).len(), 0);
    let withdrawn = GroupOffer {
        offer: Offer::Withdrawn,
        read: None,
    };
    assert_eq!(index.offers_changed(|_| withdrawn).len(), 2);
    assert_eq!(index.next_time(), None);
}

#[test]
fn a_clock_that_is_set_back_calls_up_all_with_the_time() {
    let index = Index::default();
    let one = new(&index, "http://a/");
    rested(&index, one, rest(1, 30), 1).unwrap();
    let hour = std::time::Duration::from_secs(3600);
    let [called_up] = &index.set_back(hour)[..] else {
        panic!("one")
    };
    assert_eq!(called_up.rested.set_back, hour);
    let one = new(&index, "http://b/");
    rested(&index, one, rest(1, 30), 1).unwrap();
    assert!(index.moved(FEED)[0].rested.set_back.is_zero());
}

#[test]
fn the_hopeless_give_way_at_rest_too() {
    let index = Index::default();
    let one = new(&index, "http://a/");
    let entry = one.entry;
    index.note(entry, Standing::Unanswered);
    rested(&index, one, rest(1, 30), 1).unwrap();
    let room = SubscriptionLimits {
        unverified_max: 1,
        ..ROOM
    };
    let way = index.way(key("http://b/"), unverified(2), "http://b/", room);
    assert!(matches!(way, Way::New(_)));
    let [called_up] = &index.due(Stamp::from_secs(1), 9)[..] else {
        panic!("it is called up to leave")
    };
    assert!(called_up.entry == entry && called_up.leave.is_cancelled());
}
