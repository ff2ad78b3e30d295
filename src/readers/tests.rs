//! Promises of readers to whoever waits: nothing slept through, one read and one rendering for all,
//! nobody stranded by another's leaving. Not the protocols; those are in `serve/tests`.
//!
//! Rows: SF-3, SF-42, SF-91; D-11; DESIGN section 2, invariants 1 and 3.

use super::{
    Config, PushMax, ReadError, ReadRequest, Readers, Rendered,
    testing::{ReaderRig, add, delete, edit, revive},
};
use crate::{
    feed::{
        filter::Filter,
        legacy_document::{LegacyDocument, LegacySyntax},
        order::Order,
        record::FeedNo,
        stamp::Stamp,
        view::View,
    },
    render::{Representation, Site},
    store::SiteStore as _,
};
use everfeed_adapters::Digest;
use futures_util::StreamExt as _;
use std::{sync::Arc, time::Duration};
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;
use url::Url;

mod filtered;

/// As long as a request that does not say.
const TIMEOUT: Duration = Duration::from_secs(55);

/// A reader that waits, as a task of its own.
fn wait(rig: &ReaderRig, reading: ReadRequest) -> JoinHandle<Result<Arc<Rendered>, ReadError>> {
    let readers = rig.readers.clone();
    tokio::spawn(async move {
        readers
            .read_held(
                &reading,
                Instant::now() + TIMEOUT,
                &CancellationToken::new(),
            )
            .await
    })
}

/// Lets everybody do what can be done now: under a paused clock, time passes only when nobody has
/// anything to do.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

async fn head(rig: &ReaderRig, order: Order) -> String {
    format!("cursor:{}", rig.all(order).await.last_cursor)
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_waiters_share_one_read_and_one_rendering() {
    const WAITERS: usize = 10_000;
    let rig = ReaderRig::of(1..=3).await;
    let since = head(&rig, Order::MODIFIED).await;
    let reading = rig.reading(Order::MODIFIED, &since, "");
    let waiters: Vec<_> = (0..WAITERS).map(|_| wait(&rig, reading.clone())).collect();
    settle().await;
    assert_eq!(rig.notify.watchers(rig.feed), WAITERS);
    assert_eq!(rig.store.pages(), 1, "all of them share the first look");
    let changed = Instant::now();
    rig.change(vec![add(4)]).await;
    let mut bodies = Vec::new();
    for waiter in waiters {
        bodies.push(waiter.await.unwrap().unwrap());
    }
    assert_eq!(Instant::now(), changed, "a wake-up waits for nothing");
    assert_eq!((bodies[0].count, rig.store.pages()), (1, 2));
    assert!(
        bodies.iter().all(|body| Arc::ptr_eq(body, &bodies[0])),
        "one rendering for all"
    );
    assert_eq!(rig.notify.watchers(rig.feed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_change_between_the_first_look_and_the_wait_is_not_slept_through() {
    let rig = ReaderRig::of(1..=3).await;
    let since = head(&rig, Order::MODIFIED).await;
    rig.store.hold_back();
    let waiter = wait(&rig, rig.reading(Order::MODIFIED, &since, ""));
    settle().await;
    assert_eq!(rig.store.pages(), 1, "it has looked, and found nothing");
    rig.change(vec![add(4)]).await;
    let changed = Instant::now();
    rig.store.let_go();
    let body = waiter.await.unwrap().unwrap();
    assert_eq!((body.count, Instant::now()), (1, changed));
}

#[tokio::test(start_paused = true)]
async fn a_filtered_page_tells_its_total_when_the_feed_has_moved_since_it_was_counted() {
    // SF-83. The totals that are remembered are those of the state that was announced last.
    let rig = ReaderRig::of(1..=3).await;
    let filter = Filter::of(&[("q", "post")]).unwrap();
    let filtered = |since: &str| {
        rig.reading(Order::MODIFIED, since, "")
            .filtered(filter.clone())
    };
    let since = head(&rig, Order::MODIFIED).await;
    let total = async |since: &str| {
        let body = rig
            .readers
            .read(&filtered(since))
            .await
            .unwrap()
            .body
            .clone();
        serde_json::from_slice::<serde_json::Value>(&body).unwrap()["totalItems"].clone()
    };
    assert_eq!(total("").await, 3);
    rig.commit(vec![add(4)]).await;
    assert_eq!(total(&since).await, 4);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_announced_late_is_served_and_not_lost() {
    // Between the commit and its wake-up a reader may already see more than it was told of.
    let rig = ReaderRig::of(1..=3).await;
    let since = head(&rig, Order::MODIFIED).await;
    let reading = rig.reading(Order::MODIFIED, &since, "");
    assert_eq!(rig.readers.read(&reading).await.unwrap().count, 0);
    let waiter = wait(&rig, reading.clone());
    settle().await;
    let head = rig.commit(vec![add(4)]).await;
    settle().await;
    assert!(
        !waiter.is_finished(),
        "what is cached for a state is served until it is announced to be over"
    );
    rig.notify.moved(rig.feed, head);
    assert_eq!(waiter.await.unwrap().unwrap().count, 1);
    let early = rig.commit(vec![add(5)]).await;
    let fresh = rig
        .readers
        .read(&rig.reading(Order::MODIFIED, &since, "time:2100-01-01"))
        .await
        .unwrap();
    assert_eq!(
        (fresh.count, fresh.head),
        (2, early),
        "a body says which state it shows"
    );
}

#[tokio::test(start_paused = true)]
async fn a_first_reader_that_leaves_strands_nobody() {
    let rig = ReaderRig::of(1..=3).await;
    let reading = rig.reading(Order::MODIFIED, "", "");
    rig.store.hold_back();
    let first = wait(&rig, reading.clone());
    settle().await;
    let others: Vec<_> = (0..100).map(|_| wait(&rig, reading.clone())).collect();
    settle().await;
    assert_eq!(rig.store.pages(), 1, "the others wait for the first");
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    settle().await;
    assert_eq!(rig.store.pages(), 2, "one of them took its place");
    let started = Instant::now();
    rig.store.let_go();
    for other in others {
        assert_eq!(other.await.unwrap().unwrap().count, 3);
    }
    assert_eq!((rig.store.pages(), Instant::now()), (2, started));
}

#[tokio::test(start_paused = true)]
async fn identical_reads_are_made_once_and_again_only_after_a_change() {
    let rig = ReaderRig::of(1..=3).await;
    let reading = rig.reading(Order::MODIFIED, "", "");
    let first = rig.readers.read(&reading).await.unwrap();
    assert!(Arc::ptr_eq(
        &first,
        &rig.readers.read(&reading).await.unwrap()
    ));
    let other = rig.reading(Order::CREATED, "", "");
    rig.readers.read(&other).await.unwrap();
    assert_eq!(rig.store.pages(), 2);
    rig.change(vec![edit(2, "again")]).await;
    assert!(!Arc::ptr_eq(
        &first,
        &rig.readers.read(&reading).await.unwrap()
    ));
    rig.entitle("Another title").await;
    let body = rig.readers.read(&reading).await.unwrap();
    assert_eq!(
        (body.head.metadata_t, rig.store.pages()),
        (rig.all(Order::MODIFIED).await.record.metadata_t, 4)
    );
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_and_not_kept() {
    let rig = ReaderRig::of(1..=3).await;
    let reading = rig.reading(Order::MODIFIED, "", "");
    rig.store.break_down(true);
    assert!(matches!(
        rig.readers.read(&reading).await,
        Err(ReadError::Store(_))
    ));
    let waiting = wait(&rig, reading.clone()).await.unwrap();
    assert!(matches!(waiting, Err(ReadError::Store(_))));
    rig.store.break_down(false);
    assert_eq!(rig.readers.read(&reading).await.unwrap().count, 3);
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_is_not_read_yet_and_one_that_is_not_there_are_told_apart() {
    let rig = ReaderRig::unread().await;
    let reading = rig.reading(Order::MODIFIED, "cursor:", "");
    assert!(matches!(
        rig.readers.read(&reading).await,
        Err(ReadError::NotReady)
    ));
    assert!(matches!(
        wait(&rig, reading).await.unwrap(),
        Err(ReadError::NotReady)
    ));
    let view = View::all(FeedNo(9), Order::MODIFIED);
    let reading = ReadRequest::page(view, Representation::JSON, "", "", 1).unwrap();
    assert!(matches!(
        rig.readers.read(&reading).await,
        Err(ReadError::UnknownFeed)
    ));
    assert_eq!(rig.store.pages(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_push_goes_on_from_the_acknowledged_cursor_and_repeats_it_unread() {
    // DESIGN section 2: the stored string, never recomputed.
    let rig = ReaderRig::of(1..=3).await;
    let view = View::all(rig.feed, Order::MODIFIED);
    let odd = "01780272000_0_1";
    let body = rig
        .readers
        .read(&ReadRequest::push(
            view.clone(),
            Representation::ATOM,
            odd,
            of(2),
            None,
        ))
        .await
        .unwrap();
    let text = String::from_utf8(body.body.to_vec()).unwrap();
    assert!(
        text.contains(&format!("<fo:prev_cursor>{odd}</fo:prev_cursor>")),
        "{text}"
    );
    assert!(!text.contains("rel=\"next\"") && body.more, "SF-84");
    rig.change(vec![delete(1), delete(2), delete(3), revive(1)])
        .await;
    let since = head(&rig, Order::MODIFIED).await;
    rig.change(vec![delete(1)]).await;
    let acked = since.strip_prefix("cursor:").unwrap();
    let body = rig
        .readers
        .read(&ReadRequest::push(
            view,
            Representation::CLASSIC_RSS,
            acked,
            of(2),
            None,
        ))
        .await
        .unwrap();
    assert_eq!(
        (
            body.count,
            body.last_cursor == acked,
            body.goes_on_at() == acked
        ),
        (0, true, false),
        "the position moves past what is left out, and the chain does not"
    );
}

/// A push of so many items at most.
fn of(items: usize) -> PushMax {
    PushMax {
        items,
        ..PushMax::default()
    }
}

/// A page of two in JSON, from a position on.
fn two(rig: &ReaderRig, since: &str) -> ReadRequest {
    let view = View::all(rig.feed, Order::MODIFIED);
    ReadRequest::page(view, Representation::JSON, since, "", 2).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_follower_catches_up_page_by_page_and_then_gets_every_change_once() {
    let rig = ReaderRig::of(1..=5).await;
    let stop = CancellationToken::new();
    let mut pages = rig
        .readers
        .follow(two(&rig, "cursor:"), stop.clone().cancelled_owned())
        .unwrap();
    let mut seen = Vec::new();
    for count in [2, 2, 1] {
        let page = pages.next().await.unwrap().unwrap();
        assert_eq!(page.count, count);
        seen.push(page.last_cursor.clone());
    }
    assert_eq!(
        seen.last(),
        Some(&rig.all(Order::MODIFIED).await.last_cursor)
    );
    let waiting = tokio::spawn(async move { (pages.next().await, pages) });
    settle().await;
    assert!(!waiting.is_finished(), "nothing more stands there");
    rig.entitle("Another title").await;
    settle().await;
    assert!(
        !waiting.is_finished(),
        "a change of the feed's own data is no item"
    );
    rig.change(vec![add(6)]).await;
    rig.change(vec![delete(1)]).await;
    let (page, mut pages) = waiting.await.unwrap();
    let after = format!("cursor:{}", seen[2]);
    let page = page.unwrap().unwrap();
    assert_eq!(
        page.body,
        rig.readers.read(&two(&rig, &after)).await.unwrap().body
    );
    assert_eq!(
        (page.count, &page.last_cursor),
        (2, &rig.all(Order::MODIFIED).await.last_cursor)
    );
    stop.cancel();
    assert!(pages.next().await.unwrap().is_none(), "stopped");
    drop(pages);
    assert_eq!(
        rig.notify.watchers(rig.feed),
        0,
        "what has ended watches nothing"
    );
}

// P03-10: a long poll is answered when the channel alone changes, with a page without items.
#[tokio::test(start_paused = true)]
async fn a_long_poll_wakes_when_the_title_changes() {
    let rig = ReaderRig::of(1..=3).await;
    let since = head(&rig, Order::MODIFIED).await;
    let even = Filter::of(&[("q", "nothing")]).unwrap();
    for (reading, wakes) in [
        (rig.reading(Order::MODIFIED, &since, ""), true),
        (rig.reading(Order::CREATED, &since, ""), true),
        (
            rig.reading(Order::MODIFIED, &since, "").filtered(even),
            true,
        ),
        // A table does not show the title.
        (
            ReadRequest::page(
                View::all(rig.feed, Order::MODIFIED),
                Representation::named("csv").unwrap(),
                &since,
                "",
                50,
            )
            .unwrap(),
            false,
        ),
    ] {
        let started = Instant::now();
        let waiting = wait(&rig, reading);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(!waiting.is_finished());
        rig.entitle(&format!("Title at {started:?}")).await;
        let page = waiting.await.unwrap().unwrap();
        assert_eq!(
            (page.count, format!("cursor:{}", page.last_cursor)),
            (0, since.clone())
        );
        let text = String::from_utf8(page.body.to_vec()).unwrap();
        assert_eq!(text.contains("Title at "), wakes);
        assert_eq!(started.elapsed() < TIMEOUT, wakes);
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_between_a_followers_look_and_its_wait_is_not_slept_through() {
    let rig = ReaderRig::of(1..=3).await;
    let since = head(&rig, Order::MODIFIED).await;
    rig.store.hold_back();
    let mut pages = rig
        .readers
        .follow(two(&rig, &since), std::future::pending())
        .unwrap();
    let waiting = tokio::spawn(async move { pages.next().await });
    settle().await;
    assert_eq!(rig.store.pages(), 1, "it has looked, and found nothing");
    rig.change(vec![add(4)]).await;
    let changed = Instant::now();
    rig.store.let_go();
    assert_eq!(waiting.await.unwrap().unwrap().unwrap().count, 1);
    assert_eq!(Instant::now(), changed);
}

#[tokio::test(start_paused = true)]
async fn a_follower_ends_with_its_range_and_its_stop_and_tells_an_error() {
    let rig = ReaderRig::of(1..=3).await;
    let reading = |since: &str, until: &str| rig.reading(Order::MODIFIED, since, until);
    let never = std::future::pending::<()>;
    let mut closed = rig
        .readers
        .follow(reading("", "time:2000-01-01T00:00:00Z"), never())
        .unwrap();
    assert!(closed.next().await.unwrap().is_none(), "that range is over");
    let since = head(&rig, Order::MODIFIED).await;
    let started = Instant::now();
    let end = tokio::time::sleep(TIMEOUT);
    let mut stopped = rig.readers.follow(reading(&since, ""), end).unwrap();
    assert!(stopped.next().await.unwrap().is_none());
    assert_eq!(started.elapsed().as_secs(), TIMEOUT.as_secs());
    let over = std::future::ready(());
    let mut first = rig.readers.follow(reading("", ""), over).unwrap();
    assert_eq!(
        first.next().await.unwrap().unwrap().count,
        3,
        "the first look is always made"
    );
    assert!(first.next().await.unwrap().is_none());
    rig.store.break_down(true);
    let mut broken = rig
        .readers
        .follow(reading(&since, "time:2100-01-01"), never())
        .unwrap();
    assert!(matches!(broken.next().await, Err(ReadError::Store(_))));
    let view = View::all(FeedNo(9), Order::MODIFIED);
    let unknown = ReadRequest::page(view, Representation::JSON, "", "", 1).unwrap();
    assert!(matches!(
        rig.readers.follow(unknown, never()),
        Err(ReadError::UnknownFeed)
    ));
}

#[tokio::test(start_paused = true)]
async fn a_held_answer_with_nothing_in_it_stands_behind_all_that_was_looked_at() {
    // SF-53, D-11: a page looks at 10,000 items, and whoever waits has waited for all of them.
    let rig = ReaderRig::of(1..=25_000).await;
    let all = head(&rig, Order::MODIFIED).await;
    let nobody = Filter::of(&[("author", "nobody")]).unwrap();
    let reading = rig.reading(Order::MODIFIED, "cursor:", "").filtered(nobody);
    let first = rig.readers.read(&reading).await.unwrap();
    assert_eq!((first.count, first.more), (0, true));
    assert!(
        first.next.as_ref().unwrap().ends_with("&timeout=0"),
        "who walks on is not held: {first:?}"
    );
    let short = rig.reading(Order::MODIFIED, "cursor:", "");
    assert!(
        !rig.readers
            .read(&short)
            .await
            .unwrap()
            .next
            .as_ref()
            .unwrap()
            .contains("timeout")
    );
    let started = Instant::now();
    let held = wait(&rig, reading).await.unwrap().unwrap();
    assert_eq!(started.elapsed(), TIMEOUT);
    assert_eq!(
        (
            held.count,
            held.more,
            format!("cursor:{}", held.last_cursor)
        ),
        (0, false, all)
    );
}

#[tokio::test(start_paused = true)]
async fn a_follower_in_a_form_without_tombstones_passes_them_by() {
    let rig = ReaderRig::of(1..=3).await;
    rig.change(vec![delete(1), delete(2), delete(3), revive(1)])
        .await;
    let view = View::all(rig.feed, Order::MODIFIED);
    let reading = ReadRequest::push(view.clone(), Representation::CLASSIC_RSS, "", of(1), None);
    let mut pages = rig.readers.follow(reading, std::future::pending()).unwrap();
    let page = pages.next().await.unwrap().unwrap();
    assert_eq!((page.count, page.more), (1, false));
    // A reader whose position is kept moves with each of them.
    let reading = ReadRequest::push(view, Representation::CLASSIC_RSS, "", of(1), None);
    let mut pages = rig
        .readers
        .follow_position(reading, std::future::pending())
        .unwrap();
    let mut counts = Vec::new();
    for _ in 0..3 {
        counts.push(pages.next().await.unwrap().unwrap().count);
    }
    assert_eq!(counts, [0, 0, 1]);
}

// LEGACY R-11.
#[tokio::test(start_paused = true)]
async fn classic_rss_says_how_long_a_copy_stays_fresh() {
    let rig = ReaderRig::of(1..=1).await;
    let site = Arc::new(Site::new(
        &Url::parse("https://feeds.example/").unwrap(),
        "",
    ));
    let readers = Readers::new(
        rig.store.clone(),
        rig.notify.clone(),
        rig.clock.clone(),
        site,
        Config::default(),
    );
    let feed = rig.feed;
    let readers = readers.with_ttl_mins(move |asked| (asked == feed).then_some(90));
    let body = async |representation| {
        let read = readers
            .read(&ReadRequest::newest(
                feed,
                Filter::All,
                representation,
                15,
                None,
            ))
            .await
            .unwrap();
        String::from_utf8(read.body.to_vec()).unwrap()
    };
    assert!(
        body(Representation::CLASSIC_RSS)
            .await
            .contains("<ttl>90</ttl>")
    );
    assert!(
        !body(Representation::CLASSIC_ATOM).await.contains("ttl"),
        "Atom has no word for it"
    );
}

#[tokio::test(start_paused = true)]
async fn ordinary_pages_do_not_wait_for_large_ones() {
    let rig = ReaderRig::of(1..=3).await;
    let page = |max: usize, since: &str| {
        let view = View::all(rig.feed, Order::MODIFIED);
        let representation = rig.reading(Order::MODIFIED, "", "").representation();
        ReadRequest::page(view, representation, since, "", max).unwrap()
    };
    let large = rig.readers.room.large_places.acquire_many(2).await.unwrap();
    let asked = Instant::now();
    assert_eq!(
        rig.readers.read(&page(50, "time:1")).await.unwrap().count,
        3
    );
    assert_eq!(asked.elapsed(), Duration::ZERO);
    assert!(matches!(
        rig.readers.read(&page(1000, "time:2")).await,
        Err(ReadError::Busy)
    ));
    assert_eq!(asked.elapsed(), Duration::from_secs(10));
    drop(large);
    assert!(rig.readers.read(&page(1000, "time:2")).await.is_ok());

    let all = rig
        .readers
        .room
        .ordinary
        .lease(usize::MAX, Duration::ZERO)
        .await;
    assert!(all.is_none(), "what is kept holds a part");
    let kept = rig.readers.read(&page(50, "time:1")).await.unwrap();
    assert_eq!(kept.count, 3, "it is there already");
}

#[tokio::test(start_paused = true)]
async fn a_body_takes_no_more_room_than_it_has_bytes() {
    let render = || {
        let mut body = Vec::with_capacity(1 << 20);
        body.extend_from_slice(b"few");
        body
    };
    for items in [1, 1000] {
        let body = super::body::written(items, render).await;
        assert_eq!(&*body, b"few");
        assert_eq!(
            body.try_into_mut().unwrap().capacity(),
            3,
            "{items}: guesses of the writer are not kept for long"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn classic_rss_names_the_cloud_where_there_is_one() {
    // LEGACY C-4; an archive gains nothing.
    let rig = ReaderRig::of(1..=3).await;
    let newest = |form| ReadRequest::newest(rig.feed, Filter::All, form, 15, None);
    let cloud = "<cloud domain=\"feeds.example\" port=\"443\" path=\"/pleaseNotify\" registerProcedure=\"\" protocol=\"http-post\"/>";
    let text = |body: &Rendered| String::from_utf8(body.body.to_vec()).unwrap();
    let without = rig.readers.read(&newest(Representation::CLASSIC_RSS)).await;
    assert!(!text(&without.unwrap()).contains("<cloud"));
    let site = Arc::new(rig.readers.site().clone());
    let readers = Readers::new(
        rig.store.clone(),
        rig.notify.clone(),
        rig.clock.clone(),
        site,
        Config::default(),
    )
    .with_cloud(|_| true);
    let with = readers
        .read(&newest(Representation::CLASSIC_RSS))
        .await
        .unwrap();
    assert!(text(&with).contains(cloud), "{}", text(&with));
    let atom = readers
        .read(&newest(Representation::CLASSIC_ATOM))
        .await
        .unwrap();
    assert!(!text(&atom).contains("<cloud"));
}

// nobody is told what is gone, by no page, no filter and no count.
#[tokio::test(start_paused = true)]
async fn a_feed_that_announces_no_deletion_shows_none_anywhere() {
    let rig = ReaderRig::of(1..=3).await;
    let since = head(&rig, Order::MODIFIED).await;
    rig.change(vec![delete(2)]).await;
    let site = Arc::new(rig.readers.site().clone());
    let (store, notify, clock) = (rig.store.clone(), rig.notify.clone(), rig.clock.clone());
    let readers = Arc::new(
        Readers::new(store, notify, clock, site, Config::default()).with_announced(|_| false),
    );
    let count = async |reading: ReadRequest| {
        let page = readers.read(&reading).await.unwrap();
        let text = String::from_utf8(page.body.to_vec()).unwrap();
        assert!(
            !text.contains("\"delete\"") && !text.contains("LeftView"),
            "{text}"
        );
        (page.count, page.total)
    };
    let only = Filter::of(&[("deleted", "only")]).unwrap();
    let all = rig.reading(Order::MODIFIED, "", "");
    assert_eq!(count(all.clone()).await, (2, Some(2)));
    assert_eq!(count(all.clone().filtered(only)).await, (0, Some(0)));
    assert_eq!(
        count(rig.reading(Order::CREATED, "", "")).await,
        (2, Some(2))
    );
    assert_eq!(count(rig.reading(Order::MODIFIED, &since, "")).await.0, 0);
    // Nor as having left what a filter shows.
    let with_files = Filter::of(&[("has", "enclosure")]).unwrap();
    let changed = rig.reading(Order::MODIFIED, &since, "");
    assert_eq!(count(changed.filtered(with_files)).await.0, 0);
    let pushed = ReadRequest::push(
        View::all(rig.feed, Order::MODIFIED),
        Representation::JSON,
        since.strip_prefix("cursor:").unwrap(),
        of(9),
        None,
    );
    assert_eq!(count(pushed).await.0, 0);
    let events = ReadRequest::events(View::all(rig.feed, Order::MODIFIED), &since, 9).unwrap();
    assert_eq!(count(events).await.0, 0);
    assert_eq!(
        readers.items(&all, usize::MAX).await.unwrap().items.len(),
        2
    );
    let head = rig.notify.head(rig.feed).unwrap();
    assert_ne!(
        readers.etag(&all, head, ""),
        rig.readers.etag(&all, head, "")
    );
    // With others it is told.
    assert_eq!(rig.readers.read(&all).await.unwrap().count, 3);
}

#[tokio::test]
async fn a_document_that_another_process_kept_is_read_when_it_may_be_there() {
    let rig = ReaderRig::of(1..=1).await;
    let keep = async |text: &str| {
        let document = LegacyDocument {
            body: text.as_bytes().to_vec(),
            digest: Digest::of(text.as_bytes()),
            content_type: None,
            last_modified: None,
            syntax: LegacySyntax::Other,
            fetched_at: Stamp::ZERO,
            etag: None,
        };
        let kept = rig.store.keep_document(rig.feed, Arc::new(document));
        kept.await.unwrap();
    };
    let read = async || {
        let key = rig.readers.document_key(rig.feed, None);
        let document = rig.readers.document(&key).await.unwrap();
        document.map(|document| document.body.clone())
    };
    keep("one").await;
    assert_eq!(read().await.as_deref(), Some(&b"one"[..]));
    keep("two").await;
    assert_eq!(read().await.as_deref(), Some(&b"one"[..]), "nobody said so");
    rig.notify.documents_may_differ();
    assert_eq!(read().await.as_deref(), Some(&b"two"[..]));
}
