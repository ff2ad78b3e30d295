//! Feeds, their polls, the hosts and the end of a store; not what a commit does to items.

use super::rig::{NAMESPACE, Rig, START, add, all, commit, edit, published};
use crate::{
    feed::{
        order::Order,
        page::Degraded,
        reconcile::{Change, Put},
        record::FeedNo,
        schedule::{Pause, PollState, ValidatorPair},
        stamp::Stamp,
    },
    store::{Commit, HostPause, StoreError, traits::*},
};
use std::time::Duration;

on_every_store![
    a_feed_keeps_its_number_and_its_namespace,
    a_feed_without_items_takes_another_namespace,
    a_feed_that_was_forgotten_and_is_made_anew_begins_a_generation,
    a_feed_that_was_never_registered_is_refused,
    the_last_poll_state_of_each_feed_is_kept,
    poll_states_are_saved_all_or_none,
    a_noted_poll_state_is_read_back_at_once_and_kept_by_an_orderly_end,
    the_state_of_an_earlier_poll_never_takes_the_place_of_a_later_one,
    a_late_commit_is_read_back_at_once_and_kept_by_an_orderly_end,
    hosts_are_left_alone_until_their_time_is_over,
    a_closed_store_answers_nothing,
    what_was_asked_before_closing_is_done,
];

async fn a_feed_that_was_forgotten_and_is_made_anew_begins_a_generation(rig: Rig) {
    let feed = rig.blog().await;
    rig.change(feed, vec![add(1), add(2)]).await.unwrap();
    let mut held = Vec::new();
    for order in Order::ALL {
        held.push((order, rig.list(feed, order, None).await.last_cursor));
    }
    assert!(rig.forget(feed).await.unwrap());
    let rig = rig.reopen();
    let anew = rig.register("blog", NAMESPACE).await.unwrap();
    assert!(anew.lineage.generation() > Stamp::ZERO);
    rig.change(anew.no, vec![add(3)]).await.unwrap();
    for (order, held) in held {
        let page = rig.list(anew.no, order, Some(&held)).await;
        let told = (page.items.len(), page.degraded);
        assert_eq!(told, (1, Some(Degraded::Ahead)), "{order}");
    }
    // A cursor of its own by date is not, also when the post is dated anew.
    let own = rig.list(anew.no, Order::PUBLISHED, None).await.last_cursor;
    let since_own = async || rig.list(anew.no, Order::PUBLISHED, Some(&own)).await;
    let page = since_own().await;
    assert_eq!((page.items.len(), page.degraded), (0, None));
    assert_eq!(page.last_cursor, own);
    let Change::Put(put) = edit(3, "dated anew") else {
        panic!()
    };
    let put = Put {
        published_us: Some(published(9)),
        ..put
    };
    rig.change(anew.no, vec![Change::Put(put)]).await.unwrap();
    let page = since_own().await;
    let told = (page.items.len(), page.degraded);
    assert_eq!(told, (1, Some(Degraded::Time)));
}

async fn a_feed_keeps_its_number_and_its_namespace(rig: Rig) {
    let first = rig.register("blog", "a.example/feed").await.unwrap();
    let second = rig.register("other", "b.example/feed").await.unwrap();
    assert_ne!(first.no, second.no);
    assert_eq!(
        (first.rev, first.items.total, first.is_ready()),
        (0, 0, false)
    );
    let rig = rig.reopen();
    assert_eq!(rig.register("blog", "a.example/feed").await.unwrap(), first);
    assert_eq!(rig.feed(second.no).await.unwrap(), second);
    let names = [
        ("blog".to_owned(), first.no),
        ("other".to_owned(), second.no),
    ];
    assert_eq!(rig.feed_names(None, 9).await.unwrap(), names);
    assert_eq!(rig.feed_names(None, 1).await.unwrap(), names[..1]);
    assert_eq!(
        rig.feed_names(Some("blog".to_owned()), 9).await.unwrap(),
        names[1..]
    );
    assert_eq!(
        rig.feed_names(Some("c".to_owned()), 9).await.unwrap(),
        names[1..],
        "after a name that is not there"
    );
    assert_eq!(rig.feeds(None, 9).await.unwrap(), [first.clone(), second]);
    rig.commit(commit(&rig.feed(first.no).await.unwrap(), vec![add(1)]))
        .await
        .unwrap();
    match rig.register("blog", "c.example/feed").await {
        Err(StoreError::Namespace {
            feed,
            stored,
            given,
        }) => {
            assert_eq!(
                (&*feed, &*stored, &*given),
                ("blog", "a.example/feed", "c.example/feed")
            );
        }
        other => panic!("{other:?}"),
    }
}

async fn a_feed_without_items_takes_another_namespace(rig: Rig) {
    let first = rig.register("blog", "wrong.example/feed").await.unwrap();
    let empty = Commit {
        ready: true,
        ..commit(&first, vec![])
    };
    let before = rig.commit(empty).await.unwrap().feed;
    let taken = rig.register("blog", "right.example/feed").await.unwrap();
    assert_eq!(
        (taken.no, taken.ids.namespace.as_str()),
        (first.no, "right.example/feed")
    );
    assert!(taken.is_ready() && taken.rev > before.rev && taken.metadata_t > before.metadata_t);
    assert_ne!(taken.iri(), before.iri());
    // Whatever was decided before is decided again.
    let late = rig.commit(commit(&before, vec![add(1)])).await;
    assert!(matches!(late, Err(StoreError::Conflict { .. })));
    let rig = rig.reopen();
    assert_eq!(rig.feed(first.no).await.unwrap(), taken);
    assert_eq!(
        rig.register("blog", "right.example/feed").await.unwrap(),
        taken
    );
}

async fn a_feed_that_was_never_registered_is_refused(rig: Rig) {
    let mut record = rig.register("blog", NAMESPACE).await.unwrap();
    record.no = FeedNo(7);
    let unknown = |error| matches!(error, StoreError::UnknownFeed(FeedNo(7)));
    assert!(unknown(rig.feed(FeedNo(7)).await.unwrap_err()));
    assert!(unknown(rig.snapshot(FeedNo(7), vec![]).await.unwrap_err()));
    assert!(unknown(
        rig.commit(commit(&record, vec![add(1)])).await.unwrap_err()
    ));
    assert!(unknown(
        rig.page(all(FeedNo(7), Order::MODIFIED)).await.unwrap_err()
    ));
    let poll = (FeedNo(7), PollState::default());
    assert!(unknown(
        rig.save_polls(vec![poll], vec![]).await.unwrap_err()
    ));
}

async fn the_last_poll_state_of_each_feed_is_kept(rig: Rig) {
    let feed = rig.blog().await;
    let other = rig.register("other", "other").await.unwrap().no;
    assert_eq!(rig.polls(None, 9).await.unwrap(), []);
    let poll = |failures| {
        let mut state = PollState::default();
        state.health.failures = failures;
        state.validators = Some(ValidatorPair {
            etag: Some("\"x\"".into()),
            ..ValidatorPair::default()
        });
        state
    };
    rig.save_polls(vec![(feed, poll(1)), (other, poll(2))], vec![])
        .await
        .unwrap();
    rig.save_polls(vec![(feed, poll(3))], vec![]).await.unwrap();
    let record = rig.feed(other).await.unwrap();
    let mut with_poll = commit(&record, vec![]);
    with_poll.poll = Some(poll(4));
    rig.commit(with_poll).await.unwrap();
    let rig = rig.reopen();
    assert_eq!(
        rig.polls(None, 9).await.unwrap(),
        [(feed, poll(3)), (other, poll(4))]
    );
    assert_eq!(rig.feed(feed).await.unwrap().rev, 0, "a poll is no commit");
}

async fn poll_states_are_saved_all_or_none(rig: Rig) {
    let feed = rig.blog().await;
    let polls = vec![
        (feed, PollState::default()),
        (FeedNo(9), PollState::default()),
    ];
    assert!(
        rig.save_polls(polls, vec![host_pause("a.example", 0)])
            .await
            .is_err()
    );
    assert_eq!(rig.polls(None, 9).await.unwrap(), []);
    assert_eq!(rig.host_pauses(None, 9).await.unwrap(), []);
}

fn polled_at(secs: u64) -> PollState {
    let mut state = PollState::default();
    state.timetable.polled_at = Some(START.plus_secs(secs));
    state
}

async fn a_noted_poll_state_is_read_back_at_once_and_kept_by_an_orderly_end(rig: Rig) {
    let feed = rig.blog().await;
    let stranger = (FeedNo(9), polled_at(1));
    let refused = rig.note_polls(vec![(feed, polled_at(1)), stranger]).await;
    assert!(matches!(refused, Err(StoreError::UnknownFeed(FeedNo(9)))));
    assert_eq!(rig.poll(feed).await.unwrap(), None, "all or none");
    rig.note_polls(vec![(feed, polled_at(0))]).await.unwrap();
    assert_eq!(rig.poll(feed).await.unwrap(), Some(polled_at(0)));
    rig.clock.advance(Duration::from_secs(9));
    rig.note_polls(vec![(feed, polled_at(9))]).await.unwrap();
    let rig = rig.reopen();
    assert_eq!(rig.polls(None, 9).await.unwrap(), [(feed, polled_at(9))]);
    assert!(!rig.ended_uncleanly());
}

async fn the_state_of_an_earlier_poll_never_takes_the_place_of_a_later_one(rig: Rig) {
    let feed = rig.blog().await;
    rig.clock.advance(Duration::from_secs(100));
    let record = rig.feed(feed).await.unwrap();
    let mut later = commit(&record, vec![add(1)]);
    later.poll = Some(polled_at(50));
    rig.commit(later).await.unwrap();
    rig.note_polls(vec![(feed, polled_at(40))]).await.unwrap();
    assert_eq!(rig.poll(feed).await.unwrap(), Some(polled_at(50)));
    let pause = host_pause("a.example", 900);
    rig.save_polls(vec![(feed, polled_at(49))], vec![pause.clone()])
        .await
        .unwrap();
    assert_eq!(rig.poll(feed).await.unwrap(), Some(polled_at(50)));
    assert_eq!(rig.host_pauses(None, 9).await.unwrap(), [pause]);
    // The same poll may say more, and another url begins anew.
    let mut more = polled_at(50);
    more.health.failures = 3;
    for state in [more, PollState::default()] {
        rig.note_polls(vec![(feed, state.clone())]).await.unwrap();
        assert_eq!(rig.poll(feed).await.unwrap(), Some(state));
    }
    // A poll after now is of a clock that went back since.
    for secs in [200, 60] {
        rig.note_polls(vec![(feed, polled_at(secs))]).await.unwrap();
        assert_eq!(rig.poll(feed).await.unwrap(), Some(polled_at(secs)));
    }
}

async fn a_late_commit_is_read_back_at_once_and_kept_by_an_orderly_end(rig: Rig) {
    let feed = rig.blog().await;
    rig.change(feed, vec![add(1)]).await.unwrap();
    let mut late = commit(&rig.feed(feed).await.unwrap(), vec![]);
    (late.is_late, late.poll) = (true, Some(polled_at(1)));
    let receipt = rig.commit(late.clone()).await.unwrap();
    assert_eq!(receipt.feed.rev, 2);
    let refused = rig.commit(late).await;
    assert!(matches!(refused, Err(StoreError::Conflict { found: 2 })));
    let rig = rig.reopen();
    assert_eq!(rig.feed(feed).await.unwrap(), receipt.feed);
    assert_eq!(rig.poll(feed).await.unwrap(), Some(polled_at(1)));
}

fn host_pause(name: &str, secs: u64) -> HostPause {
    let pause = Pause {
        until: START.plus_secs(secs),
        since: START,
    };
    (name.to_owned(), pause)
}

async fn hosts_are_left_alone_until_their_time_is_over(rig: Rig) {
    let host = host_pause;
    rig.save_polls(vec![], vec![host("b.example", 60), host("a.example", 9)])
        .await
        .unwrap();
    let rig = rig.reopen();
    assert_eq!(
        rig.host_pauses(None, 9).await.unwrap(),
        [host("a.example", 9), host("b.example", 60)]
    );
    rig.clock.advance(Duration::from_secs(10));
    rig.save_polls(vec![], vec![]).await.unwrap();
    assert_eq!(
        rig.host_pauses(None, 9).await.unwrap().len(),
        2,
        "nothing new, nothing swept"
    );
    rig.save_polls(vec![], vec![host("c.example", 5), host("b.example", 70)])
        .await
        .unwrap();
    assert_eq!(
        rig.host_pauses(None, 9).await.unwrap(),
        [host("b.example", 70), host("c.example", 5)]
    );
}

async fn a_closed_store_answers_nothing(rig: Rig) {
    let feed = rig.blog().await;
    rig.close().await.unwrap();
    let closed = |error| matches!(error, StoreError::Closed);
    assert!(closed(rig.register("x", "x").await.unwrap_err()));
    assert!(closed(rig.feeds(None, 9).await.unwrap_err()));
    assert!(closed(
        rig.page(all(feed, Order::MODIFIED)).await.unwrap_err()
    ));
    assert!(closed(rig.save_polls(vec![], vec![]).await.unwrap_err()));
    assert!(closed(rig.close().await.unwrap_err()));
}

async fn what_was_asked_before_closing_is_done(rig: Rig) {
    let feed = rig.blog().await;
    let record = rig.feed(feed).await.unwrap();
    let (done, _, closed) = futures_util::join!(
        rig.commit(commit(&record, vec![add(1)])),
        rig.save_polls(
            vec![(feed, {
                let mut state = PollState::default();
                state.timetable.next_at = Stamp::MAX;
                state
            })],
            vec![]
        ),
        rig.close(),
    );
    assert_eq!(done.unwrap().feed.items.total, 1);
    closed.unwrap();
    if let Some(path) = rig.path() {
        // The file is free at once, and holds what was answered.
        let again = super::rig::open(path, rig.clock.clone()).unwrap();
        assert_eq!(again.feed(feed).await.unwrap().items.total, 1);
        assert_eq!(
            again.polls(None, 9).await.unwrap()[0].1.timetable.next_at,
            Stamp::MAX
        );
    }
}
