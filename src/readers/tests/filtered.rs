//! Those who wait with a filter: a change that none of them is shown costs one read for all, and
//! none of them loses anything.
//!
//! Rows: DESIGN section 2, invariants 1 and 3; section 3, Filters.

use super::*;
use crate::{
    feed::filter::Filter,
    readers::{
        Pages,
        testing::{add_titled, revive_titled},
    },
};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

/// The filter by these words, and by a choice of tombstones.
fn filter(words: &str, deleted: &str) -> Filter {
    Filter::of(&[("q", words), ("deleted", deleted)]).unwrap()
}

/// Waiters at the head of a feed, each with words of its own.
async fn waiters_by_word(rig: &ReaderRig, order: Order, number: usize) -> Vec<Held> {
    let since = head(rig, order).await;
    let words = (0..number).map(|n| filter(&format!("word{n}"), ""));
    let waiters = words
        .map(|filter| wait(rig, rig.reading(order, &since, "").filtered(filter)))
        .collect();
    settle().await;
    waiters
}

type Held = JoinHandle<Result<Arc<Rendered>, ReadError>>;

#[tokio::test(start_paused = true)]
async fn a_change_that_two_thousand_filters_hide_costs_one_read_and_one_that_meets_one_of_them_two()
{
    const WAITERS: usize = 2_000;
    for order in [Order::MODIFIED, Order::CREATED] {
        let rig = ReaderRig::of(1..=3).await;
        let mut waiters = waiters_by_word(&rig, order, WAITERS).await;
        let first_looks = (rig.store.pages(), rig.store.totals());
        assert_eq!(first_looks, (WAITERS, 0));
        for n in 4..8 {
            rig.change(vec![add(n)]).await;
            settle().await;
        }
        let looks = (rig.store.pages() - WAITERS, rig.store.totals());
        assert_eq!(
            looks,
            (4, 0),
            "{order}: one read for each change, and nothing counted"
        );
        assert!(
            waiters.iter().all(|waiter| !waiter.is_finished()),
            "{order}"
        );
        rig.change(vec![add(8), add_titled(9, "about word7")]).await;
        let met = waiters.remove(7).await.unwrap().unwrap();
        settle().await;
        assert_eq!(
            (met.count, &met.last_cursor),
            (1, &rig.all(order).await.last_cursor),
            "{order}"
        );
        let looks = (rig.store.pages() - WAITERS, rig.store.totals());
        assert_eq!(
            looks,
            (7, 1),
            "{order}: one read for all, then a look and a page for one"
        );
        assert!(
            waiters.iter().all(|waiter| !waiter.is_finished()),
            "{order}"
        );
        rig.change(vec![edit(1, "again")]).await;
        settle().await;
        let are_told = order == Order::MODIFIED;
        assert!(
            waiters
                .iter()
                .all(|waiter| waiter.is_finished() == are_told),
            "{order}: what was changed may have left a view, and is told in the order of change alone"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_filter_is_held_against_a_change_once_however_many_wait() {
    let rig = ReaderRig::of(1..=3).await;
    let since = head(&rig, Order::MODIFIED).await;
    let reading = rig
        .reading(Order::MODIFIED, &since, "")
        .filtered(filter("nobody", ""));
    let before = rig.readers.head(rig.feed).unwrap();
    let waiters: Vec<_> = (0..10_000).map(|_| wait(&rig, reading.clone())).collect();
    settle().await;
    rig.change(vec![add(4)]).await;
    settle().await;
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    let now = rig.readers.head(rig.feed).unwrap();
    let changes = rig
        .readers
        .changes(rig.feed, before.last_t, now)
        .await
        .unwrap();
    assert_eq!((changes.held_against(), rig.store.pages()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn changes_that_are_more_than_one_read_are_held_against_filters_part_by_part() {
    let rig = ReaderRig::of(1..=3).await;
    let waiters = waiters_by_word(&rig, Order::MODIFIED, 20).await;
    rig.change((4..=353).map(add).collect()).await;
    settle().await;
    assert_eq!(rig.store.pages(), 20 + 4, "350 items in parts of 100");
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    rig.change(
        (354..=500)
            .map(add)
            .chain([add_titled(501, "word3"), add(502)])
            .collect(),
    )
    .await;
    for (n, waiter) in waiters.into_iter().enumerate() {
        if n == 3 {
            assert_eq!(waiter.await.unwrap().unwrap().count, 1);
        } else {
            assert!(!waiter.is_finished());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_total_of_a_view_is_not_counted_again_when_new_items_are_all_that_came() {
    // SF-83.
    let rig = ReaderRig::of(1..=3).await;
    let since = head(&rig, Order::MODIFIED).await;
    let waits = |words| {
        wait(
            &rig,
            rig.reading(Order::MODIFIED, &since, "")
                .filtered(filter(words, "")),
        )
    };
    let total = |body: &Rendered| {
        serde_json::from_slice::<Value>(&body.body).unwrap()["totalItems"].clone()
    };
    let (posts, others) = (waits("post"), waits("other"));
    settle().await;
    rig.change(vec![add_titled(4, "something else")]).await;
    settle().await;
    rig.change(vec![add(5), add(6)]).await;
    assert_eq!(total(&posts.await.unwrap().unwrap()), 5);
    let late = others.await.unwrap().unwrap();
    assert_eq!(
        (late.count, total(&late), rig.store.totals()),
        (0, 0.into(), 2),
        "once for each view"
    );
    // New items are counted as they come.
    let since = head(&rig, Order::MODIFIED).await;
    let waits = |words| {
        wait(
            &rig,
            rig.reading(Order::MODIFIED, &since, "")
                .filtered(filter(words, "")),
        )
    };
    let (posts, others) = (waits("post"), waits("other"));
    settle().await;
    rig.change(vec![add_titled(7, "something")]).await;
    settle().await;
    rig.change(vec![add(8)]).await;
    assert_eq!(total(&posts.await.unwrap().unwrap()), 6);
    assert_eq!(total(&others.await.unwrap().unwrap()), 0);
    assert_eq!(rig.store.totals(), 2);
    // What was edited may have been in the view, or not.
    let since = head(&rig, Order::MODIFIED).await;
    let posts = wait(
        &rig,
        rig.reading(Order::MODIFIED, &since, "")
            .filtered(filter("post", "")),
    );
    settle().await;
    rig.change(vec![edit(1, "nothing")]).await;
    assert_eq!(total(&posts.await.unwrap().unwrap()), 5);
}

#[tokio::test(start_paused = true)]
async fn a_filter_by_what_entries_inherit_is_read_again_when_the_feed_says_something_else() {
    let rig = ReaderRig::of(1..=3).await;
    let since = head(&rig, Order::MODIFIED).await;
    let by = Filter::of(&[("author", "nobody")]).unwrap();
    let waiter = wait(&rig, rig.reading(Order::MODIFIED, &since, "").filtered(by));
    settle().await;
    rig.entitle("Another title").await;
    // P03-10: whoever waits is told of the title, too.
    let page = waiter.await.unwrap().unwrap();
    assert_eq!(
        (page.count, format!("cursor:{}", page.last_cursor)),
        (0, since)
    );
    assert!(rig.store.pages() > 1, "the feed may name an author now");
}

#[tokio::test(start_paused = true)]
async fn a_position_in_the_future_is_not_taken_back_by_what_a_filter_hides() {
    let rig = ReaderRig::of(1..=3).await;
    let soon = crate::feed::stamp::Stamp::from_micros(rig.clock.now_us())
        .plus_secs(20)
        .rfc3339();
    let reading = rig
        .reading(Order::MODIFIED, &format!("time:{soon}"), "")
        .filtered(filter("post", ""));
    let waiter = wait(&rig, reading);
    settle().await;
    for change in [add_titled(4, "else"), add(5), add_titled(6, "else")] {
        rig.change(vec![change]).await;
        settle().await;
        assert!(!waiter.is_finished(), "it is before the range");
    }
    tokio::time::sleep(Duration::from_secs(30)).await;
    rig.change(vec![add(7)]).await;
    assert_eq!(waiter.await.unwrap().unwrap().count, 1);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_the_newest_of_a_view_without_items_is_held() {
    let rig = ReaderRig::of(1..=3).await;
    for order in [
        Order::MODIFIED_REVERSE,
        Order::CREATED_REVERSE,
        Order::PUBLISHED_REVERSE,
        Order::PUBLISHED,
    ] {
        let waiter = wait(
            &rig,
            rig.reading(order, "", "")
                .filtered(filter(order.name(), "")),
        );
        settle().await;
        rig.change(vec![edit(1, "else")]).await;
        settle().await;
        assert!(!waiter.is_finished(), "{order}");
        rig.change(vec![edit(2, order.name())]).await;
        assert_eq!(waiter.await.unwrap().unwrap().count, 1, "{order}");
        rig.change(vec![edit(2, "else")]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn streams_and_pushes_pass_what_their_filters_hide_by_the_same_read() {
    let rig = ReaderRig::of(1..=3).await;
    let mut streams = Vec::new();
    for order in [Order::MODIFIED, Order::CREATED] {
        let view = View::all(rig.feed, order).filtered(filter("nobody", ""));
        let since = head(&rig, order).await;
        let events = ReadRequest::events(view.clone(), &since, 100).unwrap();
        let mut pages = rig
            .readers
            .follow_position(events, std::future::pending())
            .unwrap();
        streams.push((order, tokio::spawn(async move { pages.next().await })));
        let acked = since.trim_start_matches("cursor:");
        let push = ReadRequest::push(view, Representation::ATOM, acked, PushMax::default(), None);
        let mut pages = rig
            .readers
            .follow_position(push, std::future::pending())
            .unwrap();
        streams.push((order, tokio::spawn(async move { pages.next().await })));
    }
    settle().await;
    let looked = rig.store.pages();
    rig.change(vec![add(4), add(5)]).await;
    settle().await;
    assert_eq!(rig.store.pages() - looked, 1);
    for (at, (order, stream)) in streams.into_iter().enumerate() {
        if at % 2 == 1 {
            assert!(!stream.is_finished(), "{order}: there is nothing to push");
            continue;
        }
        let page = stream.await.unwrap().unwrap().unwrap();
        assert!(page.body.is_empty());
        assert_eq!(
            page.scanned,
            Some(rig.all(order).await.last_cursor),
            "{order}"
        );
    }
}

/// Titles of a mirror by our ids.
type Titles = BTreeMap<String, Option<String>>;

/// Takes in items in JSON. `None` for the title of a tombstone.
fn take_in(mirror: &Mutex<Titles>, items: impl Iterator<Item = Value>) {
    let mut mirror = mirror.lock().unwrap_or_else(PoisonError::into_inner);
    for item in items {
        let id = item["id"].as_str().unwrap().to_owned();
        match item["reason"].as_str() {
            Some("left-view") => drop(mirror.remove(&id)),
            _ => drop(mirror.insert(
                id,
                item["object"]["displayName"].as_str().map(str::to_owned),
            )),
        }
    }
}

/// Pause of a consumer that was told to come again: pages that are not handed out take all places.
const COME_AGAIN: Duration = Duration::from_secs(5);

/// A consumer that polls, each time from the last cursor on.
async fn poll_on(rig: Arc<ReaderRig>, filter: Filter, max: usize, mirror: Arc<Mutex<Titles>>) {
    let mut last = String::new();
    loop {
        let view = View::all(rig.feed, Order::MODIFIED).filtered(filter.clone());
        let since = format!("cursor:{last}");
        let reading = ReadRequest::page(view, Representation::JSON, &since, "", max).unwrap();
        let deadline = Instant::now() + TIMEOUT;
        let held = rig
            .readers
            .read_held(&reading, deadline, &CancellationToken::new())
            .await;
        let Ok(page) = held else {
            tokio::time::sleep(COME_AGAIN).await;
            continue;
        };
        let mut body: Value = serde_json::from_slice(&page.body).unwrap();
        take_in(&mirror, body["items"].as_array_mut().unwrap().drain(..));
        last.clone_from(&page.last_cursor);
    }
}

/// A browser with a stream of events, which connects again now and then, by the last position that
/// it was told.
async fn listen_on(rig: Arc<ReaderRig>, filter: Filter, lasts: usize, mirror: Arc<Mutex<Titles>>) {
    let mut last = String::new();
    loop {
        let view = View::all(rig.feed, Order::MODIFIED).filtered(filter.clone());
        let reading = ReadRequest::events(view, &format!("cursor:{last}"), 2).unwrap();
        let mut pages: Pages = rig
            .readers
            .follow_position(reading, std::future::pending())
            .unwrap();
        for _ in 0..lasts {
            let Ok(page) = pages.next().await.unwrap() else {
                tokio::time::sleep(COME_AGAIN).await;
                break;
            };
            let text = String::from_utf8(page.body.to_vec()).unwrap();
            let items = text.lines().filter_map(|line| line.strip_prefix("data: "));
            take_in(
                &mirror,
                items.map(|item| serde_json::from_str(item).unwrap()),
            );
            last.clone_from(page.scanned.as_ref().unwrap_or(&page.last_cursor));
        }
    }
}

/// Something that happens to a feed.
#[derive(Clone, Debug)]
enum Act {
    /// Posts get titles; those that were not there are added, and what was deleted comes back.
    Title(Vec<(u32, &'static str)>),
    /// Posts are deleted.
    Delete(Vec<u32>),
    /// The wake-up of what follows comes later.
    Silence(bool),
    /// Pages are read, but not handed out.
    Hold(bool),
    Settle,
    /// So long that held polls end.
    Wait,
}

fn act() -> impl Strategy<Value = Act> {
    let titled = (
        0_u32..12,
        select(vec!["red", "blue", "red blue", "green", "again"]),
    );
    prop_oneof![
        5 => vec(titled, 1..4).prop_map(Act::Title),
        2 => vec(0_u32..12, 1..3).prop_map(Act::Delete),
        1 => any::<bool>().prop_map(Act::Silence),
        1 => any::<bool>().prop_map(Act::Hold),
        4 => Just(Act::Settle),
        1 => Just(Act::Wait),
    ]
}

/// Posts as they are: `None` for a deleted one.
#[derive(Default)]
struct Posts(BTreeMap<u32, Option<&'static str>>);

impl Posts {
    fn changes(&mut self, act: &Act) -> Vec<crate::feed::reconcile::Change> {
        let mut changes = BTreeMap::new();
        match act {
            Act::Title(titled) => {
                for &(n, title) in titled {
                    let change = match self.0.get(&n) {
                        _ if changes.contains_key(&n) => continue,
                        None => add_titled(n, title),
                        Some(None) => revive_titled(n, title),
                        Some(Some(known)) if *known == title => continue,
                        Some(Some(_)) => edit(n, title),
                    };
                    self.0.insert(n, Some(title));
                    changes.insert(n, change);
                }
            }
            Act::Delete(numbers) => {
                for &n in numbers {
                    if let Some(post @ Some(_)) = self.0.get_mut(&n) {
                        *post = None;
                        changes.insert(n, delete(n));
                    }
                }
            }
            _ => {}
        }
        changes.into_values().collect()
    }
}

/// Everybody mirrors a view of its own while all this happens, and holds in the end what the view
/// shows.
async fn everybody_converges(acts: Vec<Act>) {
    let rig = Arc::new(ReaderRig::of(100..=101).await);
    let mut mirrors = Vec::new();
    let filters = [
        filter("red", ""),
        filter("\"red blue\"", ""),
        filter("nobody", ""),
        filter("", "no"),
        filter("", "only"),
    ];
    for (n, filter) in filters.iter().enumerate() {
        let [polled, told] = [(); 2].map(|()| Arc::new(Mutex::new(Titles::new())));
        tokio::spawn(poll_on(
            rig.clone(),
            filter.clone(),
            n % 3 + 1,
            polled.clone(),
        ));
        tokio::spawn(listen_on(
            rig.clone(),
            filter.clone(),
            n % 4 + 1,
            told.clone(),
        ));
        mirrors.push((filter, "polls", polled));
        mirrors.push((filter, "events", told));
    }
    let mut posts = Posts::default();
    let (mut is_silent, mut head) = (false, rig.readers.head(rig.feed).unwrap());
    for act in acts {
        match act {
            Act::Settle => settle().await,
            Act::Wait => tokio::time::sleep(TIMEOUT + Duration::from_secs(1)).await,
            Act::Silence(silent) => is_silent = silent,
            Act::Hold(true) => rig.store.hold_back(),
            Act::Hold(false) => rig.store.let_go(),
            Act::Title(_) | Act::Delete(_) => {
                let changes = posts.changes(&act);
                if !changes.is_empty() {
                    head = rig.commit(changes).await;
                }
            }
        }
        if !is_silent {
            rig.notify.moved(rig.feed, head);
        }
    }
    rig.store.let_go();
    rig.notify.moved(rig.feed, head);
    tokio::time::sleep(COME_AGAIN * 6).await;
    let all = rig.all(Order::MODIFIED).await;
    for (filter, way, mirror) in mirrors {
        let shown = all
            .items
            .iter()
            .filter(|item| filter.shows(item, &all.record));
        let title =
            |item: &crate::feed::item::Item| Some(item.entry()?.title.as_ref()?.value.clone());
        let expect: Titles = shown
            .map(|item| (item.id.to_string(), title(item)))
            .collect();
        assert_eq!(*mirror.lock().unwrap(), expect, "{way} with {filter:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_filtered_mirror_converges_whatever_happens_while_it_waits(acts in vec(act(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.unwrap().block_on(everybody_converges(acts));
    }
}
