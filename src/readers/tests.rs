//! Promises of readers to whoever waits: nothing slept through, one read and one rendering for all, nobody stranded by
//! another's leaving. Not the protocols; those are in `serve/tests`.
//!
//! Rows: SF-3, SF-42, SF-91; D-11; DESIGN section 2, invariants 1 and 3.

use super::{
    ReadError, ReadRequest, Rendered,
    testing::{House, add, delete, edit, revive},
};
use crate::{
    feed::{order::Order, record::FeedNo, view::View},
    render::Representation,
};
use std::{sync::Arc, time::Duration};
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

/// As long as a request that does not say.
const TIMEOUT: Duration = Duration::from_secs(55);

/// A reader that waits, as a task of its own.
fn wait(house: &House, reading: ReadRequest) -> JoinHandle<Result<Arc<Rendered>, ReadError>> {
    let readers = house.readers.clone();
    tokio::spawn(async move {
        readers.read_held(&reading, Instant::now() + TIMEOUT, &CancellationToken::new()).await
    })
}

/// Lets everybody do what can be done now: under a paused clock, time passes only when nobody has anything to do.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

async fn head(house: &House, order: Order) -> String {
    format!("cursor:{}", house.all(order).await.last_cursor)
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_waiters_share_one_read_and_one_rendering() {
    const WAITERS: usize = 10_000;
    let house = House::of(1..=3).await;
    let since = head(&house, Order::MODIFIED).await;
    let reading = house.reading(Order::MODIFIED, &since, "");
    let waiters: Vec<_> = (0..WAITERS).map(|_| wait(&house, reading.clone())).collect();
    settle().await;
    assert_eq!(house.notify.watchers(house.feed), WAITERS);
    assert_eq!(house.store.pages(), 1, "all of them share the first look");
    let changed = Instant::now();
    house.change(vec![add(4)]).await;
    let mut bodies = Vec::new();
    for waiter in waiters {
        bodies.push(waiter.await.unwrap().unwrap());
    }
    assert_eq!(Instant::now(), changed, "a wake-up waits for nothing");
    assert_eq!((bodies[0].count, house.store.pages()), (1, 2));
    assert!(bodies.iter().all(|body| Arc::ptr_eq(body, &bodies[0])), "one rendering for all");
    assert_eq!(house.notify.watchers(house.feed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_change_between_the_first_look_and_the_wait_is_not_slept_through() {
    let house = House::of(1..=3).await;
    let since = head(&house, Order::MODIFIED).await;
    house.store.hold_back();
    let waiter = wait(&house, house.reading(Order::MODIFIED, &since, ""));
    settle().await;
    assert_eq!(house.store.pages(), 1, "it has looked, and found nothing");
    house.change(vec![add(4)]).await;
    let changed = Instant::now();
    house.store.let_go();
    let body = waiter.await.unwrap().unwrap();
    assert_eq!((body.count, Instant::now()), (1, changed));
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_announced_late_is_served_and_not_lost() {
    // Between the commit and its wake-up a reader may already see more than it was told of.
    let house = House::of(1..=3).await;
    let since = head(&house, Order::MODIFIED).await;
    let reading = house.reading(Order::MODIFIED, &since, "");
    assert_eq!(house.readers.read(&reading).await.unwrap().count, 0);
    let waiter = wait(&house, reading.clone());
    settle().await;
    let head = house.commit(vec![add(4)]).await;
    settle().await;
    assert!(!waiter.is_finished(), "what is cached for a state is served until it is announced to be over");
    house.notify.moved(house.feed, head);
    assert_eq!(waiter.await.unwrap().unwrap().count, 1);
    let early = house.commit(vec![add(5)]).await;
    let fresh = house.readers.read(&house.reading(Order::MODIFIED, &since, "time:2100-01-01")).await.unwrap();
    assert_eq!((fresh.count, fresh.head), (2, early), "a body says which state it shows");
}

#[tokio::test(start_paused = true)]
async fn a_first_reader_that_leaves_strands_nobody() {
    let house = House::of(1..=3).await;
    let reading = house.reading(Order::MODIFIED, "", "");
    house.store.hold_back();
    let first = wait(&house, reading.clone());
    settle().await;
    let others: Vec<_> = (0..100).map(|_| wait(&house, reading.clone())).collect();
    settle().await;
    assert_eq!(house.store.pages(), 1, "the others wait for the first");
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    settle().await;
    assert_eq!(house.store.pages(), 2, "one of them took its place");
    let started = Instant::now();
    house.store.let_go();
    for other in others {
        assert_eq!(other.await.unwrap().unwrap().count, 3);
    }
    assert_eq!((house.store.pages(), Instant::now()), (2, started));
}

#[tokio::test(start_paused = true)]
async fn identical_reads_are_made_once_and_again_only_after_a_change() {
    let house = House::of(1..=3).await;
    let reading = house.reading(Order::MODIFIED, "", "");
    let first = house.readers.read(&reading).await.unwrap();
    assert!(Arc::ptr_eq(&first, &house.readers.read(&reading).await.unwrap()));
    let other = house.reading(Order::CREATED, "", "");
    house.readers.read(&other).await.unwrap();
    assert_eq!(house.store.pages(), 2);
    house.change(vec![edit(2, "again")]).await;
    assert!(!Arc::ptr_eq(&first, &house.readers.read(&reading).await.unwrap()));
    house.entitle("Another title").await;
    let body = house.readers.read(&reading).await.unwrap();
    assert_eq!((body.head.metadata_rev, house.store.pages()), (1, 4));
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_and_not_kept() {
    let house = House::of(1..=3).await;
    let reading = house.reading(Order::MODIFIED, "", "");
    house.store.break_down(true);
    assert!(matches!(house.readers.read(&reading).await, Err(ReadError::Store(_))));
    let waiting = wait(&house, reading.clone()).await.unwrap();
    assert!(matches!(waiting, Err(ReadError::Store(_))));
    house.store.break_down(false);
    assert_eq!(house.readers.read(&reading).await.unwrap().count, 3);
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_is_not_read_yet_and_one_that_is_not_there_are_told_apart() {
    let house = House::unread().await;
    let reading = house.reading(Order::MODIFIED, "cursor:", "");
    assert!(matches!(house.readers.read(&reading).await, Err(ReadError::NotReady)));
    assert!(matches!(wait(&house, reading).await.unwrap(), Err(ReadError::NotReady)));
    let view = View::all(FeedNo(9), Order::MODIFIED);
    let reading = ReadRequest::page(view, Representation::JSON, ("", ""), 1).unwrap();
    assert!(matches!(house.readers.read(&reading).await, Err(ReadError::UnknownFeed)));
    assert_eq!(house.store.pages(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_push_goes_on_from_the_acknowledged_cursor_and_repeats_it_unread() {
    // DESIGN section 2: the stored string, never recomputed.
    let house = House::of(1..=3).await;
    let view = View::all(house.feed, Order::MODIFIED);
    let odd = "01780272000_0_1";
    let body = house.readers.read(&ReadRequest::push(view, Representation::ATOM, odd, 2)).await.unwrap();
    let text = String::from_utf8(body.body.to_vec()).unwrap();
    assert!(text.contains(&format!("<fo:prev_cursor>{odd}</fo:prev_cursor>")), "{text}");
    assert!(!text.contains("rel=\"next\"") && body.more, "SF-84");
    house.change(vec![delete(1), delete(2), delete(3), revive(1)]).await;
    let since = head(&house, Order::MODIFIED).await;
    house.change(vec![delete(1)]).await;
    let acked = since.strip_prefix("cursor:").unwrap();
    let body =
        house.readers.read(&ReadRequest::push(view, Representation::CLASSIC_RSS, acked, 2)).await.unwrap();
    assert_eq!((body.count, body.last_cursor == acked), (0, false), "the cursor moves past what is left out");
}
