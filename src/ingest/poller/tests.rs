//! The poller with a publisher in a script and a clock that moves with tokio's timers.

use super::{saving::SAVE_AGAIN_SECS, *};
use crate::{
    clock::{Clock, Manual, Paused},
    feed::{
        schedule::{Pause, Whose},
        stamp::Stamp,
    },
    ingest::{
        polls::{ChangeCounts, PollEnd},
        testing::{ONE, PollerRig, START_SECS, Scripted, TWO, Trouble, ok, ok_with, status},
    },
    notify::{DelayCause, HintFate},
    store::{POLLS_LATE_SECS, memory::Memory},
};
use std::{
    future::ready,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};
use tokio::time::{Instant, sleep};
use url::Url;

mod walks;

mod changes;

mod moved;

mod checks;

mod reader_polls;

mod pushed;
mod rewalks;

const HOUR: u64 = 3600;
const DAY: u64 = 86_400;
const URL: &str = "http://blog.example/rss";

async fn pass(secs: u64) {
    sleep(Duration::from_secs(secs)).await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_is_polled_when_it_is_due_and_no_earlier() {
    let house = PollerRig::new(|_, _| ready(ok(ONE)));
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(4 * HOUR - 1).await;
    assert_eq!(house.requests_at(), [0, HOUR, 2 * HOUR, 3 * HOUR]);
    assert_eq!(
        running
            .poller
            .status(feed.no)
            .unwrap()
            .timetable
            .next_at
            .secs()
            % HOUR,
        4 * HOUR % HOUR + 2400
    );
    running.stop().await;
    pass(DAY).await;
    assert_eq!(house.requests_at().len(), 4, "nothing polls after the stop");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_when_polling_begins_is_read_again() {
    let trouble = Arc::new(Trouble::default());
    let house = PollerRig::in_trouble(|_, _| ready(ok(ONE)), &trouble);
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    trouble.failing_walks.store(2, Ordering::Relaxed);
    let running = house.start([&feed]).await;
    pass(1).await;
    assert!(house.requests_at().is_empty());
    pass(2).await;
    assert_eq!(house.requests_at(), [2]);
    // Requests reach the one that could begin.
    let answer = running.poller.poll(feed.no, Urgency::Now).await;
    assert!(matches!(answer, PollAnswer::Ended { .. }), "{answer:?}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_does_not_poll_what_is_not_due() {
    // FRB 015, 037.
    let house = PollerRig::new(|_, _| ready(ok(ONE)));
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    for _ in 0..3 {
        let running = house.start([&feed]).await;
        pass(600).await;
        running.stop().await;
    }
    assert_eq!(house.requests_at(), [0]);
    let running = house.start([&feed]).await;
    pass(HOUR).await;
    assert_eq!(house.requests_at(), [0, HOUR]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_hint_polls_at_once_and_a_surplus_one_at_the_end_of_five_seconds() {
    let house = PollerRig::new(|_, _| ready(ok(ONE)));
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(100).await;
    house.hint(feed.no);
    pass(2).await;
    for _ in 0..10 {
        house.hint(feed.no);
    }
    house.hint(FeedNo(99));
    pass(20).await;
    assert_eq!(house.requests_at(), [0, 100, 105]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_is_asked_for_is_answered_with_what_came_of_it() {
    let house = PollerRig::new(|n, _| {
        ready(match n {
            0 => ok(ONE),
            1 => ok(TWO),
            2 => status(500, &[]),
            _ => ok(TWO),
        })
    });
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(100).await;
    let ended = |answer: PollAnswer| match answer {
        PollAnswer::Ended { end, .. } => end,
        other => panic!("{other:?}"),
    };
    let end = ended(running.poller.poll(feed.no, Urgency::Polite).await);
    assert_eq!(
        end,
        PollEnd::Document(ChangeCounts {
            new: 1,
            edited: 0,
            gone: 0
        })
    );
    let PollEnd::Failed(fault) = ended(running.poller.poll(feed.no, Urgency::Polite).await) else {
        panic!()
    };
    assert_eq!(
        (fault.whose(), fault.status()),
        (Whose::Upstream, Some(500))
    );
    assert_eq!(
        ended(running.poller.poll(feed.no, Urgency::Polite).await),
        PollEnd::Unchanged,
        "it ends a back-off"
    );
    assert_eq!(house.requests_at().len(), 4);
    assert_eq!(
        running.poller.poll(FeedNo(99), Urgency::Now).await,
        PollAnswer::Unknown
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn only_an_urgent_poll_overrides_what_the_publisher_asked_for() {
    for (refusal, gone) in [(503, false), (410, true)] {
        let house = PollerRig::new(move |n, _| {
            ready(match (n, refusal) {
                (0, 410) => status(410, &[]),
                (0, _) => status(503, &[("retry-after", "7200")]),
                _ => ok(ONE),
            })
        });
        let feed = house.feed("blog", URL, HOUR, DAY).await;
        let running = house.start([&feed]).await;
        pass(100).await;
        let PollAnswer::NotBefore { at, is_gone } =
            running.poller.poll(feed.no, Urgency::Polite).await
        else {
            panic!("it is refused")
        };
        assert_eq!(is_gone, gone);
        assert!(
            at >= Stamp::from_secs(START_SECS + 7200),
            "{}",
            at.rfc3339()
        );
        assert_eq!(house.requests_at().len(), 1, "nothing was asked");
        let cause = if gone {
            DelayCause::Gone
        } else {
            DelayCause::HostPause
        };
        let HintFate::Delayed(delay) = house.hint(feed.no) else {
            panic!("it is told when it is polled")
        };
        assert_eq!((delay.cause, delay.until), (cause, at));
        pass(1).await;
        let PollAnswer::Ended { end, .. } = running.poller.poll(feed.no, Urgency::Now).await else {
            panic!()
        };
        assert_eq!(
            end,
            PollEnd::Document(ChangeCounts {
                new: 1,
                edited: 0,
                gone: 0
            })
        );
        assert_eq!(running.poller.status(feed.no).unwrap().health.gone_at, None);
        assert_eq!(
            running.poller.paused_until(feed.no),
            Stamp::ZERO,
            "a good answer ends the pause"
        );
        assert_eq!(house.hint(feed.no), HintFate::Taken);
        pass(10).await;
        assert_eq!(house.requests_at().len(), 3);
        running.stop().await;
    }
}

/// Requests so far: when, and whether they carried a validator.
fn conditions(house: &PollerRig) -> Vec<(u64, bool)> {
    let seen = house.seen.lock().unwrap();
    seen.iter()
        .map(|seen| (seen.at_secs, seen.headers.contains_key("if-none-match")))
        .collect()
}

/// A publisher who answers 304 to every validator, as WordPress does after any but its last post
/// was withdrawn.
fn stubborn(
    n: usize,
    request: &crate::layers::Request,
) -> std::future::Ready<super::super::testing::Scripted> {
    let etag = [("etag", "\"1\"")];
    ready(match (n, request.headers().contains_key("if-none-match")) {
        (0, _) => ok_with(TWO, &etag),
        (_, true) => status(304, &etag),
        (_, false) => ok_with(ONE, &etag),
    })
}

#[tokio::test(start_paused = true)]
async fn a_ping_that_is_answered_by_304_is_followed_by_one_request_without_validators() {
    for (url, audit_secs, expect) in [
        (
            "http://127.0.0.1:8081/rss",
            7 * HOUR,
            vec![
                (0, false),
                (600, true),
                (600, false),
                (630, true),
                (660, false),
            ],
        ),
        (
            URL,
            7 * HOUR,
            vec![(0, false), (600, true), (630, true), (7 * HOUR, false)],
        ),
    ] {
        let house = PollerRig::new(stubborn);
        let mut feed = house.feed("blog", url, 9 * HOUR, DAY).await;
        feed.deletions.audit_secs = audit_secs;
        feed.deletions.permalink_checks = false;
        let running = house.start([&feed]).await;
        pass(600).await;
        house.hint(feed.no);
        pass(30).await;
        house.hint(feed.no);
        pass(8 * HOUR).await;
        assert_eq!(conditions(&house), expect, "{url}");
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_ping_after_a_poll_is_repeated_at_once_at_an_origin_beside_us_and_not_elsewhere()
{
    for (url, expect) in [
        (
            "http://[fd00::1]:8081/rss",
            vec![(0, false), (10, true), (10, false)],
        ),
        (URL, vec![(0, false), (10, true)]),
    ] {
        let house = PollerRig::new(stubborn);
        let mut feed = house.feed("blog", url, 9 * HOUR, DAY).await;
        feed.deletions.permalink_checks = false;
        let running = house.start([&feed]).await;
        pass(10).await;
        house.hint(feed.no);
        pass(HOUR).await;
        assert_eq!(conditions(&house), expect, "{url}");
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_fails_is_one_too_at_an_origin_elsewhere() {
    let house = PollerRig::new(|n, request| {
        let fails = n > 0 && !request.headers().contains_key("if-none-match");
        if fails {
            ready(status(500, &[]))
        } else {
            stubborn(n, request)
        }
    });
    let mut feed = house.feed("blog", URL, 9 * HOUR, DAY).await;
    (feed.deletions.permalink_checks, feed.deletions.audit_secs) = (false, HOUR);
    let running = house.start([&feed]).await;
    for _ in 0..2 {
        pass(HOUR + 600).await;
        house.hint(feed.no);
        pass(300).await;
        house.hint(feed.no);
    }
    pass(10).await;
    let failed = conditions(&house)
        .iter()
        .skip(1)
        .filter(|(_, is_conditional)| !is_conditional)
        .count();
    assert_eq!(failed, 2, "one in an hour: {:?}", conditions(&house));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_and_the_ping_that_waits_for_its_end_outlive_a_restart() {
    let house = PollerRig::new(|_, request| {
        ready(if request.uri().path() == "/busy" {
            status(429, &[("retry-after", "7200")])
        } else {
            ok(ONE)
        })
    });
    let busy = house
        .feed("busy", "http://127.0.0.1:8081/busy", HOUR, DAY)
        .await;
    let slow = house
        .feed("slow", "http://127.0.0.1:8081/slow", 9 * HOUR, DAY)
        .await;
    let running = house.start([&slow]).await;
    pass(10).await;
    running.poller.apply(FeedChange::Added(busy.clone()));
    pass(10).await;
    assert!(matches!(house.hint(slow.no), HintFate::Delayed(delay) if delay.since.is_some()));
    pass(10).await;
    running.stop().await;
    let running = house.start([&slow, &busy]).await;
    pass(10).await;
    let wait = running.poller.wait(slow.no).unwrap();
    assert_eq!(wait.cause, WaitCause::Pause("http://127.0.0.1:8081".into()));
    let secs = |at: Option<Stamp>| at.map(|at| at.secs() - START_SECS);
    assert_eq!((secs(wait.since), secs(wait.until)), (Some(10), Some(7210)));
    pass(7200).await;
    let polled = |path: &str| {
        let seen = house.seen.lock().unwrap();
        seen.iter()
            .filter(|seen| seen.url.ends_with(path))
            .map(|seen| seen.at_secs)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        polled("/slow"),
        [0, 7210],
        "at the end of the pause, and not after nine hours"
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_is_forced_sends_no_validators_also_behind_one_that_is_under_way() {
    let house = PollerRig::new(|n, request| {
        let answer = stubborn(n, request);
        async move {
            pass(if n == 2 { 5 } else { 0 }).await;
            answer.await
        }
    });
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(100).await;
    running.poller.poll(feed.no, Urgency::Polite).await;
    let polite = running.poller.poll(feed.no, Urgency::Polite);
    let forced = async {
        pass(1).await;
        running.poller.poll(feed.no, Urgency::Now).await
    };
    tokio::join!(polite, forced);
    assert_eq!(
        conditions(&house),
        [(0, false), (100, true), (100, true), (105, false)]
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_of_one_authority_and_is_told_with_its_beginning_and_the_ping_that_waits_for_it()
{
    let house = PollerRig::new(|_, request| {
        let is_paused = request.uri().port_u16() == Some(8081);
        ready(if is_paused {
            status(503, &[("retry-after", "7200")])
        } else {
            ok(ONE)
        })
    });
    let paused = house
        .feed("paused", "http://127.0.0.1:8081/rss", HOUR, DAY)
        .await;
    let other = house
        .feed("other", "http://127.0.0.1:8082/rss", HOUR, DAY)
        .await;
    let running = house.start([&paused, &other]).await;
    pass(HOUR + 60).await;
    let asked = |port: u16| {
        let seen = house.seen.lock().unwrap();
        seen.iter()
            .filter(|seen| seen.url.contains(&port.to_string()))
            .count()
    };
    assert_eq!(
        (asked(8081), asked(8082)),
        (1, 2),
        "another port of the host goes on"
    );
    // Never read, and only its neighbour was asked.
    let never = house
        .feed("never", "http://127.0.0.1:8081/atom", HOUR, DAY)
        .await;
    running.poller.apply(FeedChange::Added(never.clone()));
    pass(1).await;
    assert!(matches!(house.hint(never.no), HintFate::Delayed(_)));
    let wait = running.poller.wait(never.no).unwrap();
    assert_eq!(wait.cause, WaitCause::Pause("http://127.0.0.1:8081".into()));
    let secs = |at: Option<Stamp>| at.map(|at| at.secs() - START_SECS);
    assert_eq!(
        (secs(wait.since), secs(wait.pinged_at)),
        (Some(0), Some(HOUR + 61))
    );
    assert_eq!(wait.until, Some(Stamp::from_secs(START_SECS + 7200)));
    assert_eq!(running.poller.wait(other.no), None);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_hint_ends_a_back_off() {
    let house = PollerRig::new(|n, _| ready(if n < 3 { status(500, &[]) } else { ok(ONE) }));
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    let troubles = running.poller.troubles();
    assert_eq!((troubles.all().len(), troubles.changes()), (0, 0));
    pass(100).await;
    assert_eq!(running.poller.status(feed.no).unwrap().health.failures, 1);
    assert_eq!(troubles.all()[0].failures, 1);
    house.hint(feed.no);
    pass(1).await;
    assert_eq!(running.poller.status(feed.no).unwrap().health.failures, 2);
    assert_eq!(troubles.all()[0].failures, 2);
    pass(10).await;
    house.hint(feed.no);
    pass(10).await;
    house.hint(feed.no);
    pass(1).await;
    assert_eq!(running.poller.status(feed.no).unwrap().health.failures, 0);
    // Nobody looks at a feed that is well.
    assert_eq!((troubles.all().len(), troubles.changes()), (0, 3));
    assert_eq!(house.total(feed.no).await, 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_hint_for_a_feed_that_is_being_polled_polls_it_again_afterwards() {
    let house = PollerRig::new(|n, _| async move {
        pass(3).await;
        ok(if n == 0 { ONE } else { TWO })
    });
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(1).await;
    house.hint(feed.no);
    house.hint(feed.no);
    pass(1).await;
    assert_eq!(house.requests_at(), [0], "one poll of a feed at a time");
    pass(20).await;
    assert_eq!(house.requests_at(), [0, 3]);
    assert_eq!(house.total(feed.no).await, 2);
    running.stop().await;
}

// 60 anonymous hints in half a minute made 7 requests for an hourly feed, and so on without end.
#[tokio::test(start_paused = true)]
async fn hints_that_bring_nothing_new_come_to_an_end() {
    let house = PollerRig::new(|_, _| ready(ok(ONE)));
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(100).await;
    for _ in 0..60 {
        house.hint(feed.no);
        pass(1).await;
    }
    // Three series of three, of which the second and the third hint cost nothing.
    let soon: Vec<u64> = [0].into_iter().chain((100..=140).step_by(5)).collect();
    assert_eq!(house.requests_at(), soon);
    for _ in 0..5 * 3600 {
        house.hint(feed.no);
        pass(1).await;
    }
    let later = house.requests_at().len() - soon.len();
    assert!(
        later <= 12,
        "an hourly feed that is hinted at every second for five hours: {later} more requests"
    );
    running.stop().await;
}

// A fourth deploy in an hour was ignored, and its post came with the next poll of its own.
#[tokio::test(start_paused = true)]
async fn a_hint_beyond_the_budget_waits_also_during_a_restart() {
    let house = PollerRig::new(|n, _| ready(ok(if n <= 9 { ONE } else { TWO })));
    let feed = house.feed("blog", URL, 6 * HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(100).await;
    for _ in 0..9 {
        assert_eq!(house.hint(feed.no), HintFate::Taken);
        pass(10).await;
    }
    let HintFate::Delayed(delay) = house.hint(feed.no) else {
        panic!("it waits")
    };
    assert_eq!(delay.cause, DelayCause::Budget);
    let due = delay.until.secs() - START_SECS;
    assert!((600..HOUR).contains(&due), "{due}");
    // Others until then are the same.
    assert_eq!(house.hint(feed.no), HintFate::Delayed(delay));
    pass(1).await;
    let wait = running.poller.wait(feed.no).unwrap();
    assert_eq!(
        (wait.cause, wait.until),
        (WaitCause::PingBudget, Some(delay.until))
    );
    pass(60).await;
    running.stop().await;
    let running = house.start([&feed]).await;
    pass(due).await;
    let asked = house.requests_at();
    assert_eq!((asked.len(), asked[10]), (11, due), "{asked:?}");
    assert_eq!(house.total(feed.no).await, 2);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn hints_that_are_right_go_on() {
    let bodies: Vec<&'static str> = (0..50)
        .map(|n| {
            &*Box::leak(
                ONE.replace("<guid>1</guid>", &format!("<guid>{n}</guid>"))
                    .into_boxed_str(),
            )
        })
        .collect();
    let house = PollerRig::new(move |n, _| ready(ok(bodies[n])));
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    for _ in 0..20 {
        pass(120).await;
        house.hint(feed.no);
    }
    pass(10).await;
    assert_eq!(house.requests_at().len(), 21, "each brought something new");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_says_when_is_left_alone_with_all_its_feeds_even_after_a_restart() {
    // POLLING 0.6, FRB 020, 034.
    let house = PollerRig::new(|_, request| {
        let busy = request.uri().host() == Some("busy.example");
        ready(if busy {
            status(503, &[("retry-after", "7200")])
        } else {
            ok(ONE)
        })
    });
    let feeds = [
        house.feed("a", "http://busy.example/a", 1, 60).await,
        house.feed("b", "http://busy.example/b", 1, 60).await,
        house.feed("c", "http://idle.example/c", HOUR, DAY).await,
    ];
    let asked = |house: &PollerRig| {
        let seen = house.seen.lock().unwrap();
        seen.iter()
            .filter(|seen| seen.url.contains("busy"))
            .map(|seen| seen.at_secs)
            .collect::<Vec<_>>()
    };
    let running = house.start(&feeds[..1]).await;
    pass(10).await;
    running.stop().await;
    let running = house.start(&feeds).await;
    pass(1).await;
    for feed in &feeds[..2] {
        assert!(
            matches!(house.hint(feed.no), HintFate::Delayed(_)),
            "{}",
            feed.name
        );
        assert_eq!(
            running.poller.paused_until(feed.no),
            Stamp::from_secs(START_SECS + 7200)
        );
    }
    pass(HOUR).await;
    assert_eq!(asked(&house), [0]);
    assert_eq!(house.total(feeds[2].no).await, 1);
    pass(HOUR).await;
    assert_eq!(asked(&house), [0, 7200, 7200]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn validators_go_back_word_for_word_and_the_publisher_learns_who_asks() {
    // FRB 001-004, 012, 013, 080-083, PUSH P-43.
    let house = PollerRig::new(|n, _| {
        ready(if n == 0 {
            ok_with(ONE, &[("etag", "W/odd"), ("last-modified", "yesterday")])
        } else {
            status(304, &[])
        })
    });
    let feed = house
        .feed(
            "blog",
            "http://me:pass%20word@blog.example/rss#x",
            HOUR,
            DAY,
        )
        .await;
    let running = house.start([&feed]).await;
    pass(HOUR + 1).await;
    running.stop().await;
    let seen = house.seen.lock().unwrap().clone();
    let header = |n: usize, name: &str| {
        seen[n]
            .headers
            .get(name)
            .map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(
        (header(0, "if-none-match"), header(0, "if-modified-since")),
        (None, None)
    );
    assert_eq!(header(1, "if-none-match").as_deref(), Some("W/odd"));
    assert_eq!(header(1, "if-modified-since").as_deref(), Some("yesterday"));
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("everfeed/{version} (+https://me.example/; 0 subscribers)");
    assert_eq!(header(1, "user-agent"), Some(name));
    assert_eq!(header(1, "x-hub-subscribers").as_deref(), Some("0"));
    assert!(
        header(1, "accept")
            .unwrap()
            .starts_with("application/atom+xml")
    );
    assert_eq!(
        header(1, "authorization").as_deref(),
        Some("Basic bWU6cGFzcyB3b3Jk")
    );
    for name in ["cookie", "referer", "a-im"] {
        assert_eq!(header(1, name), None);
    }
    assert_eq!(seen[1].url, URL, "neither credentials nor a fragment");
    let saved = house.store.polls(None, 9).await.unwrap();
    assert_eq!(saved[0].1.url, URL, "no credentials in the store");
}

#[tokio::test(start_paused = true)]
async fn an_equal_body_brings_its_new_validators() {
    // FRB: w/2024/08/17/hash.
    let house = PollerRig::new(|n, _| {
        ready(ok_with(
            ONE,
            if n == 0 {
                &[("etag", "\"1\"")]
            } else {
                &[("etag", "\"2\"")]
            },
        ))
    });
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(HOUR + 1).await;
    let state = running.poller.status(feed.no).unwrap();
    assert_eq!(
        state
            .validators
            .as_ref()
            .and_then(|pair| pair.etag.as_deref()),
        Some("\"2\"")
    );
    assert_eq!(
        house.store.feed(feed.no).await.unwrap().rev,
        1,
        "and is not committed again"
    );
    running.stop().await;
    assert_eq!(house.store.polls(None, 9).await.unwrap()[0].1, state);
}

#[tokio::test(start_paused = true)]
async fn one_host_holds_up_no_other_and_gets_few_polls_at_a_time() {
    // FRB 034.
    let house = PollerRig::new(|_, request| {
        let slow = request.uri().host() == Some("slow.example");
        async move {
            pass(if slow { 10 } else { 0 }).await;
            ok(ONE)
        }
    });
    let mut feeds = Vec::new();
    for n in 0..6 {
        feeds.push(
            house
                .feed(
                    &format!("s{n}"),
                    &format!("http://slow.example/{n}"),
                    HOUR,
                    DAY,
                )
                .await,
        );
    }
    feeds.push(
        house
            .feed("quick", "http://quick.example/", HOUR, DAY)
            .await,
    );
    let running = house.start(&feeds).await;
    pass(5).await;
    let slow = |house: &PollerRig| {
        house
            .seen
            .lock()
            .unwrap()
            .iter()
            .filter(|seen| seen.url.contains("slow"))
            .count()
    };
    assert_eq!((slow(&house), house.requests_at().len()), (2, 3));
    pass(30).await;
    assert_eq!(slow(&house), 6);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_a_publisher() {
    let house = PollerRig::new(|_, _| async {
        pass(15).await;
        ok(ONE)
    });
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(1).await;
    let before = Instant::now();
    running.stop().await;
    assert!(before.elapsed() < Duration::from_secs(1));
    assert_eq!(house.total(feed.no).await, 0);
    let running = house.start([&feed]).await;
    pass(30).await;
    assert_eq!(
        house.total(feed.no).await,
        1,
        "what was broken off is polled again"
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_woken_when_something_has_changed() {
    let house = PollerRig::new(|n, _| ready(ok(if n == 0 { ONE } else { TWO })));
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    let mut waiter = house
        .notify
        .watch(feed.no)
        .expect("a poller announces its feeds");
    assert!(!waiter.borrow_and_update().ready);
    waiter.changed().await.unwrap();
    let first = *waiter.borrow_and_update();
    assert!(first.ready);
    waiter.changed().await.unwrap();
    assert!(waiter.borrow_and_update().last_t > first.last_t);
    assert_eq!(house.requests_at(), [0, HOUR]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn another_url_in_the_configuration_is_polled_afresh() {
    let house = PollerRig::new(|_, request| {
        let known = request.headers().contains_key("if-none-match");
        ready(if known {
            status(304, &[])
        } else {
            ok_with(ONE, &[("etag", "\"1\"")])
        })
    });
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(10).await;
    running.stop().await;
    let moved = feed.with(|feed| feed.url = Url::parse("http://blog.example/feed").unwrap());
    let running = house.start([&moved]).await;
    pass(10).await;
    running.stop().await;
    assert_eq!(house.requests_at(), [0, 10]);
    assert!(
        !house.seen.lock().unwrap()[1]
            .headers
            .contains_key("if-none-match")
    );
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_is_noticed_within_a_minute() {
    let clock = Arc::new(Manual::at(START_SECS * 1_000_000));
    let store = Arc::new(Memory::new(clock.clone()));
    let house = PollerRig::with_store(|_, _| ready(ok(ONE)), store, clock.clone());
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(2 * HOUR).await;
    assert_eq!(house.requests_at(), [0], "by this clock no time has passed");
    clock.advance(std::time::Duration::from_secs(HOUR));
    pass(60).await;
    assert_eq!(house.requests_at(), [0, HOUR]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn polls_in_flight_are_limited() {
    let house = PollerRig::new(|_, _| async {
        pass(10).await;
        ok(ONE)
    });
    let mut feeds = Vec::new();
    let in_flight_max = crate::ingest::Config::default().polls_in_flight_max;
    for n in 0..in_flight_max + 20 {
        feeds.push(
            house
                .feed(
                    &format!("f{n}"),
                    &format!("http://10.0.{}.{}/", n / 250, n % 250),
                    HOUR,
                    DAY,
                )
                .await,
        );
    }
    let running = house.start(&feeds).await;
    pass(9).await;
    assert_eq!(house.requests_at().len(), in_flight_max);
    pass(10).await;
    assert_eq!(house.requests_at().len(), in_flight_max + 20);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn poll_states_that_gather_during_a_save_are_saved_together() {
    let trouble = Arc::new(Trouble::default());
    let house = PollerRig::in_trouble(|_, _| ready(status(500, &[])), &trouble);
    trouble.save_secs.store(1, Ordering::Relaxed);
    let mut feeds = Vec::new();
    for n in 0..50 {
        feeds.push(
            house
                .feed(
                    &format!("f{n}"),
                    &format!("http://host{n}.example/"),
                    HOUR,
                    DAY,
                )
                .await,
        );
    }
    let running = house.start(&feeds).await;
    pass(10).await;
    assert!(trouble.notes.load(Ordering::Relaxed) <= 2);
    assert_eq!(trouble.saves.load(Ordering::Relaxed), 0);
    let saved = house.store.polls(None, 99).await.unwrap();
    assert_eq!(
        saved
            .iter()
            .filter(|(_, state)| state.health.failures == 1)
            .count(),
        50
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn words_of_a_publisher_to_be_left_alone_are_saved_at_once() {
    let check = async |answer: fn() -> Scripted, notes, saves| {
        let trouble = Arc::new(Trouble::default());
        let house = PollerRig::in_trouble(move |_, _| ready(answer()), &trouble);
        let feed = house.feed("blog", URL, HOUR, DAY).await;
        let running = house.start([&feed]).await;
        pass(1).await;
        let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        assert_eq!(
            (count(&trouble.notes), count(&trouble.saves)),
            (notes, saves)
        );
        running.stop().await;
    };
    check(|| status(500, &[]), 1, 0).await;
    check(|| status(410, &[]), 0, 1).await;
    check(|| status(503, &[("retry-after", "900")]), 0, 1).await;
    check(|| status(429, &[("retry-after", "900")]), 0, 1).await;
}

#[tokio::test(start_paused = true)]
async fn polls_that_may_be_noted_late_gather_for_as_long_as_the_store_wants() {
    let trouble = Arc::new(Trouble::default());
    trouble.gather_secs.store(2, Ordering::Relaxed);
    let house = PollerRig::in_trouble(|_, _| ready(status(500, &[])), &trouble);
    let first = house.feed("one", URL, HOUR, DAY).await;
    let other = house
        .feed("other", "http://other.example/", HOUR, DAY)
        .await;
    let running = house.start([&first]).await;
    let notes = || trouble.notes.load(Ordering::Relaxed);
    let is_noted = async |feed| house.store.poll(feed).await.unwrap().is_some();
    pass(1).await;
    running.poller.apply(FeedChange::Added(other.clone()));
    pass(2).await;
    assert_eq!(notes(), 1);
    assert!(is_noted(first.no).await && is_noted(other.no).await);
    // What gathers at the end is not lost.
    let faults = |poll: Option<PollState>| poll.unwrap().health.failures;
    let before = faults(house.store.poll(first.no).await.unwrap());
    running.poller.poll(first.no, Urgency::Now).await;
    running.stop().await;
    assert_eq!(
        faults(house.store.poll(first.no).await.unwrap()),
        before + 1
    );
    assert_eq!(notes(), 2);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_while_polls_before_an_unclean_end_may_be_unknown() {
    let trouble = Arc::new(Trouble::default());
    trouble.unclean.store(true, Ordering::Relaxed);
    let house = PollerRig::in_trouble(|_, _| ready(ok(ONE)), &trouble);
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    house.hint(feed.no);
    pass(POLLS_LATE_SECS - 1).await;
    assert_eq!(house.requests_at(), [0; 0]);
    pass(2).await;
    assert_eq!(house.requests_at(), [POLLS_LATE_SECS]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_fault_of_the_store_the_last_documents_are_read_again() {
    let trouble = Arc::new(Trouble::default());
    let house = PollerRig::in_trouble(|_, _| ready(ok_with(ONE, &[("etag", "\"1\"")])), &trouble);
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(1).await;
    let etag = || running.poller.status(feed.no).unwrap().validators;
    assert!(etag().is_some());
    trouble.faults.store(1, Ordering::Relaxed);
    pass(60).await;
    assert!(etag().is_some(), "it was on disk before the fault");
    house.hint(feed.no);
    pass(3).await;
    trouble.faults.store(2, Ordering::Relaxed);
    house.hint(feed.no);
    pass(1).await;
    assert_eq!(etag(), None);
    pass(10).await;
    assert!(etag().is_some());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_save_that_failed_is_tried_again() {
    let trouble = Arc::new(Trouble::default());
    let house = PollerRig::in_trouble(
        |_, _| ready(status(429, &[("retry-after", "900")])),
        &trouble,
    );
    trouble.failing_saves.store(2, Ordering::Relaxed);
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(SAVE_AGAIN_SECS - 1).await;
    assert_eq!(house.store.polls(None, 9).await.unwrap(), []);
    pass(2 * SAVE_AGAIN_SECS).await;
    assert_eq!(
        house.store.polls(None, 9).await.unwrap()[0]
            .1
            .health
            .failures,
        1
    );
    let until = Stamp::from_secs(START_SECS + 900);
    assert_eq!(
        house.store.host_pauses(None, 9).await.unwrap(),
        [(
            "blog.example".to_owned(),
            Pause {
                until,
                since: Stamp::from_secs(START_SECS)
            }
        )]
    );
    running.stop().await;
}

/// A clock that moves with tokio's timers and may be set.
struct Settable {
    clock: Paused,
    ahead_us: AtomicU64,
}

impl Clock for Settable {
    fn now_us(&self) -> u64 {
        self.clock.now_us() + self.ahead_us.load(Ordering::Relaxed)
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_after_it_ran_ahead_stops_no_polls() {
    let ahead_us = AtomicU64::new(30 * DAY * 1_000_000);
    let clock = Arc::new(Settable {
        clock: Paused::from(START_SECS * 1_000_000),
        ahead_us,
    });
    let store = Arc::new(Memory::new(clock.clone()));
    let house = PollerRig::with_store(
        |n, _| ready(if n < 2 { ok(ONE) } else { ok(TWO) }),
        store,
        clock.clone(),
    );
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(HOUR + 1).await;
    assert_eq!(house.requests_at().len(), 2);
    let ahead = house.store.feed(feed.no).await.unwrap().last_t;
    clock.ahead_us.store(0, Ordering::Relaxed);
    pass(HOUR + 60).await;
    assert_eq!(
        house.requests_at().len(),
        3,
        "an hour later, not in a month"
    );
    assert!(
        house.store.feed(feed.no).await.unwrap().last_t > ahead,
        "T does not go back"
    );
    running.stop().await;
    // The same across a restart.
    clock
        .ahead_us
        .store(60 * DAY * 1_000_000, Ordering::Relaxed);
    let running = house.start([&feed]).await;
    pass(1).await;
    running.stop().await;
    let before = house.requests_at().len();
    clock.ahead_us.store(0, Ordering::Relaxed);
    let running = house.start([&feed]).await;
    pass(HOUR + 60).await;
    assert!(house.requests_at().len() > before);
    running.stop().await;
    // World 33: it is set right between the look at what is stored and the first poll.
    clock
        .ahead_us
        .store(90 * DAY * 1_000_000, Ordering::Relaxed);
    let running = house.start([&feed]).await;
    pass(1).await;
    running.stop().await;
    let before = house.requests_at().len();
    let running = house.start([&feed]).await;
    clock.ahead_us.store(0, Ordering::Relaxed);
    pass(HOUR + 60).await;
    assert!(house.requests_at().len() > before);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_for_what_could_not_be_stored() {
    let trouble = Arc::new(Trouble::default());
    let house = PollerRig::in_trouble(|_, _| ready(ok(ONE)), &trouble);
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(1).await;
    trouble.outage.store(true, Ordering::Relaxed);
    let before = trouble.saves.load(Ordering::Relaxed);
    house.hint(feed.no);
    pass(5 * HOUR).await;
    assert_eq!(
        house.requests_at(),
        [0],
        "nothing is polled meanwhile, not even on a hint"
    );
    assert_eq!(
        trouble.saves.load(Ordering::Relaxed),
        before,
        "nor is anything saved in vain"
    );
    let asked = Instant::now();
    let answer = running.poller.poll(feed.no, Urgency::Now).await;
    assert_eq!(
        answer,
        PollAnswer::StoreAway {
            cause: "told to".into()
        }
    );
    assert!(
        asked.elapsed() <= Duration::from_secs(1),
        "the operator is told at once"
    );
    trouble.outage.store(false, Ordering::Relaxed);
    pass(2).await;
    assert_eq!(
        house.requests_at().len(),
        2,
        "what was due is polled at once"
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_full_is_our_fault_and_loses_nothing() {
    let trouble = Arc::new(Trouble::default());
    let house = PollerRig::in_trouble(|_, _| ready(ok_with(ONE, &[("etag", "\"1\"")])), &trouble);
    trouble.failing_commits.store(1, Ordering::Relaxed);
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(1).await;
    let state = running.poller.status(feed.no).unwrap();
    let fault = state.health.fault.unwrap();
    assert_eq!(
        (fault.kind.whose(), fault.kind.to_string().as_str()),
        (Whose::Ours, "the store failed: no space left on device")
    );
    assert_eq!(
        state.validators, None,
        "what was not stored must be sent again"
    );
    pass(2 * HOUR).await;
    assert_eq!(house.total(feed.no).await, 1);
    assert_eq!(running.poller.status(feed.no).unwrap().health.fault, None);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_breaks_off_is_our_fault_and_the_feed_is_polled_again() {
    let trouble = Arc::new(Trouble::default());
    let house = PollerRig::in_trouble(|_, _| ready(ok(ONE)), &trouble);
    trouble.panics.store(1, Ordering::Relaxed);
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(1).await;
    assert_eq!(
        running
            .poller
            .status(feed.no)
            .unwrap()
            .health
            .fault
            .unwrap()
            .kind
            .whose(),
        Whose::Ours
    );
    pass(2 * HOUR).await;
    assert_eq!(
        (house.total(feed.no).await, house.requests_at()),
        (1, vec![HOUR, 2 * HOUR])
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn of_many_feeds_of_one_host_none_starves() {
    // Each answer takes longer than the interval of every feed, so somebody waits for a place all
    // the time.
    let house = PollerRig::new(|_, _| async {
        tokio::time::sleep(Duration::from_millis(900)).await;
        ok(ONE)
    });
    let mut feeds = Vec::new();
    for n in 0..13 {
        feeds.push(
            house
                .feed(
                    &format!("feed-{n}"),
                    &format!("http://blog.example/{n}"),
                    1,
                    1,
                )
                .await,
        );
    }
    let running = house.start(&feeds).await;
    pass(240).await;
    running.stop().await;
    let seen = house.seen.lock().unwrap();
    let polls = |n: usize| {
        seen.iter()
            .filter(|seen| seen.url == format!("http://blog.example/{n}"))
            .count()
    };
    let polls: Vec<usize> = (0..13).map(polls).collect();
    let (least, most) = (polls.iter().min().unwrap(), polls.iter().max().unwrap());
    assert!(*least > 10 && most - least <= least / 4, "{polls:?}");
}
