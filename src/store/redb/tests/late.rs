//! Poll states and commits that are on disk later than they are answered: what a kill takes back,
//! and what it never takes. A copy of the file is what a kill leaves.

use super::*;
use crate::{
    feed::{
        archive::History,
        schedule::{Pause, PollState},
    },
    store::{Archives, POLLS_LATE_SECS},
};
use std::{thread, time::Instant};

struct World {
    rig: Rig,
    feed: FeedNo,
    copies: tempfile::TempDir,
}

fn failed(times: u32) -> PollState {
    let mut state = PollState::default();
    state.health.failures = times;
    state
}

impl World {
    async fn new() -> Self {
        let rig = Rig::redb();
        let feed = rig.blog().await;
        let mut first = commit(&rig.feed(feed).await.unwrap(), vec![add(1)]);
        first.poll = Some(failed(1));
        rig.commit(first).await.unwrap();
        let copies = tempfile::tempdir().unwrap();
        Self { rig, feed, copies }
    }

    /// The store as a kill leaves it now.
    fn killed(&self) -> Redb {
        let path = self.copies.path().join("store.redb");
        std::fs::copy(self.rig.path().unwrap(), &path).unwrap();
        let left = reopen(&path).unwrap();
        assert!(left.ended_uncleanly());
        left
    }

    /// Revision, items and failed polls that a kill leaves now.
    async fn left(&self) -> (u64, u64, u32) {
        let left = self.killed();
        let record = left.feed(self.feed).await.unwrap();
        let poll = left.poll(self.feed).await.unwrap();
        (
            record.rev,
            record.items.total,
            poll.map_or(0, |poll| poll.health.failures),
        )
    }

    /// Waits until a kill leaves this, at most as long as anything may be late.
    async fn leaves(&self, expect: (u64, u64, u32)) {
        let began = Instant::now();
        while self.left().await != expect {
            assert!(began.elapsed() < Duration::from_secs(POLLS_LATE_SECS + 2));
            thread::sleep(Duration::from_millis(50));
        }
    }

    async fn note(&self, times: u32) {
        let polls = vec![(self.feed, failed(times))];
        self.rig.note_polls(polls).await.unwrap();
        let held = self.rig.poll(self.feed).await.unwrap();
        assert_eq!(held, Some(failed(times)), "read back at once");
    }
}

#[tokio::test]
async fn what_was_noted_is_on_disk_in_time_or_with_the_next_change() {
    let world = World::new().await;
    world.note(2).await;
    assert_eq!(world.left().await, (1, 1, 1), "a kill takes it back");
    world.leaves((1, 1, 2)).await;
    world.note(3).await;
    world.rig.change(world.feed, vec![add(2)]).await.unwrap();
    assert_eq!(world.left().await, (2, 2, 3), "in the order of the calls");
}

#[tokio::test]
async fn pauses_and_what_is_saved_with_them_are_on_disk_at_once() {
    let world = World::new().await;
    let pause = Pause {
        until: START.plus_secs(900),
        since: START,
    };
    let pauses = vec![("a.example".to_owned(), pause)];
    let polls = vec![(world.feed, failed(2))];
    world.rig.save_polls(polls, pauses.clone()).await.unwrap();
    assert_eq!(world.killed().host_pauses(None, 9).await.unwrap(), pauses);
    assert_eq!(world.left().await, (1, 1, 2));
    let polls = vec![(world.feed, failed(3))];
    world.rig.save_polls(polls, Vec::new()).await.unwrap();
    assert_eq!(world.left().await, (1, 1, 3));
}

#[tokio::test]
async fn only_a_commit_that_nobody_sees_may_be_late() {
    let world = World::new().await;
    let (rig, feed) = (&world.rig, world.feed);
    let mut late = commit(&rig.feed(feed).await.unwrap(), vec![]);
    (late.is_late, late.poll) = (true, Some(failed(2)));
    rig.commit(late.clone()).await.unwrap();
    assert_eq!(world.left().await, (1, 1, 1), "whole or not at all");
    late.basis.rev = 2;
    late.changes = vec![add(2)];
    rig.commit(late.clone()).await.unwrap();
    assert_eq!(world.left().await, (3, 2, 2));
    late.basis.rev = 3;
    late.changes = vec![];
    late.archives = Some(Archives {
        history: History::Complete,
        ..Archives::default()
    });
    rig.commit(late).await.unwrap();
    assert_eq!(world.left().await, (4, 2, 2));
}

#[tokio::test]
async fn after_an_unclean_end_nothing_is_late() {
    let world = World::new().await;
    let left = world.killed();
    left.note_polls(vec![(world.feed, failed(7))])
        .await
        .unwrap();
    let again = world.copies.path().join("again.redb");
    std::fs::copy(world.copies.path().join("store.redb"), &again).unwrap();
    let again = reopen(&again).unwrap();
    assert_eq!(again.poll(world.feed).await.unwrap(), Some(failed(7)));
    again.close().await.unwrap();
    let closed = reopen(&world.copies.path().join("again.redb")).unwrap();
    assert!(!closed.ended_uncleanly());
}
