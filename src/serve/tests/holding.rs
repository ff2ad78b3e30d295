//! Long poll on the wire, under a clock that stands still while anybody has work: which requests
//! are held, what ends that, and what comes then.
//!
//! Rows: SF-3, SF-40, SF-42, SF-90, SF-91; D-10, D-11, D-20.

use super::rig::{Answer, Site, ids};
use crate::{
    readers::testing::{add, delete, edit, id},
    serve::Config,
};
use http::Method;
use std::time::Duration;
use tokio::{task::JoinHandle, time::Instant};

/// A request that may be held.
pub(super) struct Held {
    answer: JoinHandle<(Answer, Instant)>,
    since: Instant,
}

impl Held {
    /// Asks, and lets it come to rest.
    pub(super) async fn ask(site: &Site, query: &str) -> Self {
        let since = Instant::now();
        let asked = site.ask(Method::GET, &format!("/feeds/blog.json?{query}"), &[]);
        let answer = tokio::spawn(async move { (asked.await, Instant::now()) });
        tokio::task::yield_now().await;
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        Self { answer, since }
    }

    pub(super) fn is_held(&self) -> bool {
        !self.answer.is_finished()
    }

    /// The answer, and after how long it came.
    async fn ended(self) -> (Answer, Duration) {
        let (answer, at) = self.answer.await.unwrap();
        (answer, at - self.since)
    }

    pub(super) async fn ended_after_secs(self) -> (Vec<String>, f64) {
        let (answer, took) = self.ended().await;
        (ids(&answer.json()), took.as_secs_f64())
    }
}

#[tokio::test(start_paused = true)]
async fn a_position_that_begins_anew_is_told_at_once_of_an_empty_feed_too() {
    let site = Site::unread().await;
    site.rig.change(Vec::new()).await;
    for since in ["cursor:1990272000_0_1", "cursor:junk"] {
        let held = Held::ask(&site, &format!("since={since}&timeout=20")).await;
        let (items, secs) = held.ended_after_secs().await;
        assert_eq!((items.len(), secs), (0, 0.0), "{since}");
    }
    let held = Held::ask(&site, "since=cursor:&timeout=20").await;
    assert!(held.is_held());
}

async fn head(site: &Site) -> String {
    site.page("order=-modified&max=1").await["last_cursor"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test(start_paused = true)]
async fn what_is_held_and_for_how_long() {
    // D-11; SF-42; point 5 of the minimal list. Nothing changes meanwhile.
    let site = Site::of(1..=3).await;
    let head = head(&site).await;
    let first = site.page("max=1").await["last_cursor"]
        .as_str()
        .unwrap()
        .to_owned();
    // 2026-06-01T00:00:00Z is where the clock stands.
    for (query, secs) in [
        (format!("since=cursor:{head}"), 55.0),
        (format!("since=cursor:{head}&timeout="), 55.0),
        (format!("since=cursor:{head}&timeout=7"), 7.0),
        (format!("since=cursor:{head}&timeout=300"), 300.0),
        (format!("since=cursor:{head}&timeout=301"), 300.0),
        (
            format!("since=cursor:{head}&timeout=99999999999999999999"),
            300.0,
        ),
        (format!("since=cursor:{head}&timeout=0"), 0.0),
        (format!("since=cursor:{head}&order=created&timeout=9"), 9.0),
        ("since=time:2027-01-01&timeout=9".to_owned(), 9.0),
        // Something is there already.
        (String::new(), 0.0),
        ("timeout=9".to_owned(), 0.0),
        ("since=cursor:1990272000_0_1&timeout=9".to_owned(), 0.0),
        ("since=cursor:".to_owned(), 0.0),
        (format!("since=cursor:{first}&timeout=9"), 0.0),
        // The end of the range exists or is past.
        (format!("since=cursor:{head}&until=cursor:{head}"), 0.0),
        (format!("since=cursor:{head}&until=cursor:{first}"), 0.0),
        ("until=time:2026-05-31&timeout=9".to_owned(), 0.0),
        (
            format!("since=cursor:{head}&order=created&until=id:{}", id(2)),
            0.0,
        ),
        // Descending lists grow at their other end.
        (format!("order=-modified&since=cursor:{first}"), 0.0),
        (
            format!("order=-created&since=cursor:{first}&timeout=9"),
            0.0,
        ),
        // A bound that cannot be read is none.
        (
            format!("since=cursor:{head}&until=cursor:junk&timeout=9"),
            9.0,
        ),
        (format!("since=cursor:{head}&until=cursor:&timeout=9"), 9.0),
    ] {
        let (answer, took) = Held::ask(&site, &query).await.ended().await;
        assert!(
            (took.as_secs_f64() - secs).abs() < 0.01,
            "{query}: {took:?}"
        );
        let page = answer.json();
        assert_eq!(
            answer.header("cache-control"),
            if query.is_empty() {
                "no-cache"
            } else {
                "no-store"
            }
        );
        if secs > 0.0 {
            assert_eq!(
                (page["count"].as_u64(), &page["last_cursor"]),
                (Some(0), &head.as_str().into()),
                "{query}"
            );
            assert_eq!(page["next"], serde_json::Value::Null);
        }
    }
    assert_eq!(site.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_end_in_the_future_is_waited_for_and_no_longer() {
    // D-11. The clock reads 2026-06-01T00:00:00Z.
    for (until, timeout, secs) in [
        ("time:2026-06-01T00:00:20Z", 55, 21.0), // Inclusive over the second written.
        ("time:2026-06-01T00:01", 300, 120.0),
        ("time:2026-06-01T00:00:20Z", 10, 10.0),
        ("cursor:1780272020_0_1", 55, 21.0),
        ("time:2026-06-02", 300, 300.0),
    ] {
        let site = Site::of(1..=3).await;
        let since = head(&site).await;
        let held = Held::ask(
            &site,
            &format!("since=cursor:{since}&until={until}&timeout={timeout}"),
        )
        .await;
        assert!(held.is_held());
        let (found, took) = held.ended_after_secs().await;
        assert!(
            found.is_empty() && (took - secs).abs() < 0.01,
            "{until}: {took}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_held_request_is_answered_in_the_instant_of_the_change() {
    // SF-3, SF-91.
    let site = Site::of(1..=3).await;
    let since = head(&site).await;
    let held = [
        Held::ask(&site, &format!("since=cursor:{since}&timeout=5")).await,
        Held::ask(&site, &format!("since=cursor:{since}")).await,
        Held::ask(&site, &format!("order=created&since=cursor:{since}")).await,
        Held::ask(
            &site,
            &format!("since=cursor:{since}&until=time:2026-06-02"),
        )
        .await,
        Held::ask(&site, "since=time:2026-06-01T00:00:01Z").await,
    ];
    assert_eq!(site.held(), held.len());
    tokio::time::advance(Duration::from_secs(2)).await;
    site.rig.change(vec![add(4), add(5)]).await;
    for held in held {
        assert_eq!(held.ended_after_secs().await, (vec![id(4), id(5)], 2.0));
    }
    assert_eq!(site.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_in_created_order_is_not_answered_for_an_edit() {
    // D-11, D-20: what is not in the range ends no wait.
    let site = Site::of(1..=3).await;
    let since = head(&site).await;
    let held = Held::ask(
        &site,
        &format!("order=created&since=cursor:{since}&timeout=50"),
    )
    .await;
    for secs in 1..=9 {
        tokio::time::advance(Duration::from_secs(1)).await;
        let change = if secs == 5 {
            delete(2)
        } else {
            edit(1, &format!("{secs}"))
        };
        site.rig.change(vec![change]).await;
        assert!(held.is_held());
    }
    tokio::time::advance(Duration::from_secs(1)).await;
    site.rig.change(vec![add(4)]).await;
    assert_eq!(held.ended_after_secs().await, (vec![id(4)], 10.0));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_is_an_empty_page_from_which_the_next_goes_on() {
    // D-10, D-11; SF-90: 200, never 204 nor 304.
    let site = Site::of(1..=3).await;
    let mut last = head(&site).await;
    for n in 4..=8 {
        let (empty, took) = Held::ask(&site, &format!("since=cursor:{last}"))
            .await
            .ended()
            .await;
        assert_eq!((empty.status, took.as_secs()), (200, 55));
        assert_eq!(empty.json()["totalItems"], n - 1);
        last = empty.json()["last_cursor"].as_str().unwrap().to_owned();
        let held = Held::ask(&site, &format!("since=cursor:{last}")).await;
        site.rig.change(vec![add(n)]).await;
        let (page, _) = held.ended().await;
        assert_eq!(ids(&page.json()), [id(n)]);
        last = page.json()["last_cursor"].as_str().unwrap().to_owned();
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_feed_is_waited_on_when_asked_for_and_only_then() {
    // D-11: a plain reader of an empty feed does not hang.
    let site = Site::unread().await;
    site.rig.change(Vec::new()).await;
    let (_, took) = Held::ask(&site, "").await.ended_after_secs().await;
    assert!(took < 0.01);
    let held = [
        Held::ask(&site, "timeout=20").await,
        Held::ask(&site, "since=cursor:").await,
        Held::ask(&site, "order=-modified&timeout=20").await,
    ];
    tokio::time::advance(Duration::from_secs(3)).await;
    site.rig.change(vec![add(1)]).await;
    for held in held {
        assert_eq!(held.ended_after_secs().await, (vec![id(1)], 3.0));
    }
}

#[tokio::test(start_paused = true)]
async fn head_is_never_held_and_a_shutdown_answers_at_once() {
    // SF-40; DESIGN section 8.
    let site = Site::of(1..=3).await;
    let since = head(&site).await;
    let started = Instant::now();
    let answer = site
        .ask(
            Method::HEAD,
            &format!("/feeds/blog.json?since=cursor:{since}"),
            &[],
        )
        .await;
    assert_eq!((answer.status, Instant::now()), (200, started));
    let held = Held::ask(&site, &format!("since=cursor:{since}")).await;
    tokio::time::advance(Duration::from_secs(4)).await;
    assert!(held.is_held());
    site.stop();
    let (answer, took) = held.ended().await;
    assert_eq!((answer.status, took.as_secs()), (200, 4));
    assert_eq!(
        (&answer.json()["count"], &answer.json()["last_cursor"]),
        (&0.into(), &since.as_str().into())
    );
    let (_, took) = Held::ask(&site, &format!("since=cursor:{since}"))
        .await
        .ended_after_secs()
        .await;
    assert!(took < 0.01, "nobody is held any more");
}

#[tokio::test(start_paused = true)]
async fn one_waiter_too_many_is_sent_away_and_a_reader_that_need_not_wait_is_not() {
    let site = Site::set(Config {
        waiters_max: 2,
        ..Config::default()
    })
    .await;
    site.rig.change((1..=3).map(add).collect()).await;
    let since = head(&site).await;
    let waiting = format!("since=cursor:{since}");
    let held = [
        Held::ask(&site, &waiting).await,
        Held::ask(&site, &waiting).await,
    ];
    let (refused, took) = Held::ask(&site, &waiting).await.ended().await;
    assert_eq!(
        (
            refused.status,
            refused.header("retry-after"),
            took.as_secs()
        ),
        (503, "5", 0)
    );
    assert_eq!(refused.header("cache-control"), "no-store");
    for plain in [
        "",
        "since=cursor:",
        "timeout=9",
        "since=time:2027-01-01&timeout=0",
        "since=time:2027-01-01&until=time:2026-01-01",
    ] {
        assert_eq!(
            site.get(&format!("/feeds/blog.json?{plain}")).await.status,
            200,
            "{plain}"
        );
    }
    let [gone, stays] = held;
    gone.answer.abort();
    assert!(gone.answer.await.is_err());
    assert_eq!(site.held(), 1, "whoever disconnects gives its place back");
    let third = Held::ask(&site, &waiting).await;
    assert!(third.is_held() && stays.is_held());
}

#[tokio::test(start_paused = true)]
async fn what_is_held_is_not_answered_from_a_copy() {
    // D-11: If-None-Match on a held request is ignored.
    let site = Site::of(1..=3).await;
    let since = head(&site).await;
    let target = format!("/feeds/blog.json?since=cursor:{since}&timeout=3");
    let started = Instant::now();
    let answer = site.get_with(&target, &[("if-none-match", "*")]).await;
    assert_eq!((answer.status, started.elapsed().as_secs()), (200, 3));
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_is_served_no_longer_answers_410_and_holds_nobody() {
    let site = Site::of(1..=3).await;
    let page = site.page("").await;
    let since = format!("since=cursor:{}", page["last_cursor"].as_str().unwrap());
    let held = Held::ask(&site, &since).await;
    assert!(held.is_held());
    site.withdraw();
    let (answer, after) = held.ended().await;
    assert_eq!((answer.status, after), (200, Duration::ZERO));
    assert_eq!((answer.json()["count"].as_u64(), site.held()), (Some(0), 0));
    for target in [
        "/feeds/blog",
        "/feeds/blog.json",
        "/feeds/blog.atom?since=cursor:",
        "/feeds/blog/about",
        "/feeds/blog/classic.rss",
    ] {
        let answer = site.get(target).await;
        let is_told = answer.text().contains("this feed is gone");
        assert_eq!(
            (answer.status, is_told),
            (410, true),
            "{target}: {}",
            answer.text()
        );
    }
    assert_eq!(
        site.get("/feeds").await.json()["feeds"],
        serde_json::json!([])
    );
    assert_eq!(
        site.get("/feeds/other").await.status,
        404,
        "what never was is unknown"
    );
}
