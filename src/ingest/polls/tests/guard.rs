//! Deferred edits of entries that change with every poll, from the request to the commit that it
//! waits for.

use super::*;
use crate::feed::{absence::WindowEvent, reconcile::WindowState};
use std::time::Duration;

/// Two entries; the first in this form.
fn document(form: usize) -> &'static str {
    let item = |n: u32, text: &str| format!("<item><guid>{n}</guid><title>{text}</title></item>");
    let items = item(1, &format!("v{form}")) + &item(2, "two");
    String::leak(format!(
        "<rss version=\"2.0\"><channel><title>t</title>{items}</channel></rss>"
    ))
}

/// Headers that keep the requests conditional.
const TAG: &[(&str, &str)] = &[("etag", "\"x\"")];

/// The poll after which the first of the two is held back: 24 polls after the first have changed
/// it.
const HELD: usize = 25;

/// A publisher whose first entry has another form with every poll up to this one, and then answers
/// so.
fn churning(until: usize, then: fn() -> Scripted) -> PollerRig {
    PollerRig::new(move |n, _| {
        ready(if n <= until {
            ok_with(document(n), TAG)
        } else {
            then()
        })
    })
}

/// Polls hourly from this state on, so often.
async fn hourly(
    house: &PollerRig,
    feed: &FeedSpec,
    mut state: PollState,
    times: usize,
) -> PollState {
    for _ in 0..times {
        tokio::time::advance(Duration::from_secs(3600)).await;
        state = house.poll(feed, &state).await.state;
    }
    state
}

/// The title of the first entry as consumers read it, and what is remembered.
async fn held(house: &PollerRig, feed: &FeedSpec) -> (String, WindowState) {
    let last = house.store.known(feed.no, Vec::new()).await.unwrap().window;
    let row = last
        .entries
        .iter()
        .find(|row| row.id == last.entries[0].id)
        .unwrap();
    let item = house.store.item(feed.no, row.id).await.unwrap().unwrap();
    (
        item.entry().unwrap().title.as_ref().unwrap().value.clone(),
        last,
    )
}

/// A house and a feed whose newest form is held back.
async fn holding(then: fn() -> Scripted) -> (PollerRig, FeedSpec, PollState) {
    let house = churning(HELD + 1, then);
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let state = hourly(&house, &feed, PollState::unpolled(URL), HELD + 2).await;
    let (title, last) = held(&house, &feed).await;
    assert_eq!((title.as_str(), last.deferred.len()), ("v24", 1));
    assert_eq!(state.document.deferred_until, Some(last.deferred[0].until));
    assert_eq!(
        state
            .document
            .deferred_until
            .unwrap()
            .secs_since(state.timetable.polled_at.unwrap()),
        22 * 3600
    );
    (house, feed, state)
}

#[tokio::test(start_paused = true)]
async fn what_was_held_back_is_committed_by_a_304_or_the_same_body_and_costs_no_other_request() {
    for then in [|| status(304, &[]), || ok_with(document(HELD + 1), TAG)] {
        let (house, feed, state) = holding(then).await;
        let head = house.store.feed(feed.no).await.unwrap().head();
        let state = hourly(&house, &feed, state, 1).await;
        assert_eq!(state.health.failures, 0, "{:?}", state.health.fault);
        let (title, last) = held(&house, &feed).await;
        assert_eq!(
            (
                title.as_str(),
                last.deferred.len(),
                state.document.deferred_until
            ),
            ("v26", 0, None)
        );
        let after = house.store.feed(feed.no).await.unwrap().head();
        assert_ne!(after, head);
        let polls = house.store.polls(None, 9).await.unwrap();
        assert_eq!(
            polls,
            [(feed.no, state.clone())],
            "in the commit that it is true of"
        );
        let state = hourly(&house, &feed, state, 48).await;
        assert_eq!(house.store.feed(feed.no).await.unwrap().head(), after);
        assert!(!state.timetable.wants_audit);
        let seen = house.seen.lock().unwrap();
        let plain = seen
            .iter()
            .filter(|seen| !seen.headers.contains_key("if-none-match"));
        assert_eq!(plain.count(), 1, "only the first");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_held_back_is_committed_when_its_day_is_over_although_nobody_answers() {
    let (house, feed, state) = holding(|| status(503, &[])).await;
    let state = hourly(&house, &feed, state, 21).await;
    assert_eq!(
        (held(&house, &feed).await.0.as_str(), state.health.failures),
        ("v24", 21)
    );
    let state = hourly(&house, &feed, state, 1).await;
    assert_eq!(
        (
            held(&house, &feed).await.0.as_str(),
            state.health.failures,
            state.document.deferred_until
        ),
        ("v26", 22, None)
    );
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_committed_now_is_committed_with_a_later_poll() {
    let trouble = Arc::new(Trouble::default());
    let house = PollerRig::in_trouble(
        |n, _| {
            ready(if n <= HELD {
                ok_with(document(n), TAG)
            } else {
                status(304, &[])
            })
        },
        &trouble,
    );
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let state = hourly(&house, &feed, PollState::unpolled(URL), HELD + 1).await;
    trouble.conflicts.store(TRIES_MAX, Ordering::Relaxed);
    let state = hourly(&house, &feed, state, 1).await;
    assert_eq!(held(&house, &feed).await.0, "v24");
    trouble.conflicts.store(TRIES_MAX - 1, Ordering::Relaxed);
    let state = hourly(&house, &feed, state, 1).await;
    assert_eq!(
        (
            held(&house, &feed).await.0.as_str(),
            state.document.deferred_until
        ),
        ("v25", None)
    );
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_never_rests_is_committed_once_a_day() {
    let house = churning(usize::MAX, || status(404, &[]));
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let mut state = PollState::unpolled(URL);
    let (mut days, mut before) = (Vec::new(), String::new());
    for n in 0..24 * 5 {
        state = hourly(&house, &feed, state, 1).await;
        let (title, _) = held(&house, &feed).await;
        if title != before && n >= HELD {
            days.push(title.clone());
        }
        before = title;
    }
    assert_eq!(days, ["v48", "v72", "v96"]);
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_there_to_change_with_every_poll() {
    let house = PollerRig::new(|n, _| ready(ok(String::leak(format!("{n} degrees")))));
    let spec = house.feed("weather", URL, 3600, 3600).await;
    let feed = spec.with(|feed| feed.format = crate::ingest::DocumentFormat::Resource);
    let state = hourly(&house, &feed, PollState::unpolled(URL), 60).await;
    assert_eq!(
        (
            house.store.feed(feed.no).await.unwrap().rev,
            state.document.deferred_until
        ),
        (60, None)
    );
}

// A pause, a line for the operator, and no flood; what it is in the end is taken.
#[tokio::test(start_paused = true)]
async fn a_resource_that_changes_with_every_request_is_taken_every_ten_minutes() {
    let house = PollerRig::new(|n, _| {
        let n = n.min(200);
        ready(ok(String::leak(format!("{n} degrees"))))
    });
    let spec = house.feed("weather", URL, 1, 3600).await;
    let feed = spec.with(|feed| feed.format = crate::ingest::DocumentFormat::Resource);
    let mut state = PollState::unpolled(URL);
    let rev = async || house.store.feed(feed.no).await.unwrap().rev;
    // Somebody makes us look every 10 seconds: half an hour.
    for n in 1..=180 {
        state = house.poll(&feed, &state).await.state;
        if n == 10 {
            assert_eq!((rev().await, state.document.remark.as_deref()), (10, None));
        }
        if n == 11 {
            assert_eq!(rev().await, 10);
            let wait = state.timetable.next_at.secs_since(house.context.now());
            assert!((500..=700).contains(&wait), "{wait}");
            assert!(
                state
                    .document
                    .remark
                    .as_deref()
                    .unwrap()
                    .contains("every request")
            );
        }
        tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    }
    assert!((12..=13).contains(&rev().await), "{}", rev().await);
    for _ in 0..200 {
        state = house.poll(&feed, &state).await.state;
        tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    }
    let item = house.store.page(crate::feed::page::PageQuery::all(
        feed.no,
        crate::feed::order::Order::MODIFIED,
    ));
    let crate::feed::item::Content::Live(entry) = &item.await.unwrap().items[0].content else {
        panic!("alive")
    };
    assert!(
        format!("{entry:?}").contains("200 degrees"),
        "the last form is not lost"
    );
    assert_eq!(
        state.document.changed_running, 0,
        "it rests, and is taken at once again"
    );
}

#[tokio::test(start_paused = true)]
async fn a_reformatted_feed_leaves_the_event_in_one_observation_and_no_gap() {
    let house = PollerRig::new(|n, _| {
        let item = |at: u32| {
            format!(
                "<item><guid>{at}</guid><title>{at}</title><description>{n}</description></item>"
            )
        };
        let items: String = (0..8).map(item).collect();
        ready(ok(String::leak(format!(
            "<rss version=\"2.0\"><channel><title>t</title>{items}</channel></rss>"
        ))))
    });
    let feed = house.feed("blog", URL, 3600, 3600).await;
    hourly(&house, &feed, PollState::unpolled(URL), 4).await;
    let kept = house.store.observations(feed.no).await.unwrap();
    let told: Vec<_> = kept
        .iter()
        .map(|(_, seen)| (seen.counts.edited, seen.events.as_slice()))
        .collect();
    let none: &[WindowEvent] = &[];
    assert_eq!(
        told,
        [
            (0, none),
            (8, &[WindowEvent::Reformatted]),
            (8, none),
            (8, none)
        ]
    );
    assert!(
        house
            .store
            .feed(feed.no)
            .await
            .unwrap()
            .completeness
            .gaps
            .is_empty()
    );
}
