//! Accepted and refused queries: positions, bounds, orders. Every vector as a status on the wire.
//!
//! Rows: SF-18..SF-21, SF-25, SF-27..SF-31, SF-42, SF-43, SF-53, SF-120, SF-128, SF-129; D-3, D-8,
//! D-9, D-25.

use super::rig::{ROOT, Site, ids};
use crate::readers::testing::{edit, guid, id};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::time::Duration;
use tokio::time::Instant;

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

#[tokio::test(start_paused = true)]
async fn every_query_of_the_vectors_is_answered_as_expected() {
    // SF-20, SF-42, SF-43.
    let site = Site::of(1..=60).await;
    for case in testkit::data::section("queries") {
        let raw = case["raw"].as_str().unwrap();
        let answer = site.get(&format!("/feeds/blog.json?{raw}")).await;
        let names_an_id = case["decoded"]["since"]
            .as_str()
            .is_some_and(|since| since.starts_with("id:"));
        // Items move in the default order, so an id position is refused there.
        let expect = case["expect_status"]
            .as_u64()
            .unwrap_or(if names_an_id { 400 } else { 200 });
        assert_eq!(
            u64::from(answer.status),
            expect,
            "{case}: {}",
            answer.text()
        );
        if answer.status == 200
            && case["decoded"]["callback"]
                .as_str()
                .unwrap_or_default()
                .is_empty()
        {
            let page = answer.json();
            let order = if raw.contains("order=created") {
                "created"
            } else {
                "modified"
            };
            assert_eq!(
                page["url"],
                format!("{ROOT}/feeds/blog.json?order={order}"),
                "{case}"
            );
        }
        if names_an_id {
            let created = site
                .get(&format!("/feeds/blog.json?order=created&{raw}"))
                .await;
            let known = if expect == 400 && case["expect_status"].is_u64() {
                400
            } else {
                404
            };
            assert_eq!(created.status, known, "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_position_of_the_vectors_is_taken_or_refused_as_since_and_as_until() {
    // SF-21, SF-25, SF-27, SF-29; D-8, D-9; point 3 of the minimal list.
    let site = Site::of(1..=3).await;
    for case in testkit::data::section("position_specs") {
        let (raw, kind) = (
            escaped(case["raw"].as_str().unwrap()),
            case["expect"]["kind"].as_str().unwrap(),
        );
        for bound in ["since", "until"] {
            let ask = async |order: &str| {
                site.get(&format!(
                    "/feeds/blog.json?timeout=0&order={order}&{bound}={raw}"
                ))
                .await
            };
            let (modified, created) = (ask("modified").await, ask("created").await);
            let expect = match kind {
                "error" => (400, 400),
                "id" => (400, 404),
                _ => (200, 200),
            };
            assert_eq!((modified.status, created.status), expect, "{bound}: {case}");
            if kind == "error" || kind == "id" {
                assert_eq!(modified.header("content-type"), "application/problem+json");
                continue;
            }
            let header = match (kind, case["expect"]["degraded"].as_bool()) {
                ("start", Some(true)) => "reset",
                // None of the vectors' cursors is one of ours.
                ("toc", _) | ("time", Some(true)) => "time",
                _ => "",
            };
            assert_eq!(
                modified.header("smart-feed-cursor"),
                header,
                "{bound}: {case}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_holds_fifty_items_or_as_many_as_asked_for_up_to_the_cap() {
    // SF-20, SF-53; point 2 of the minimal list.
    let site = Site::of(1..=1005).await;
    let check = async |query: &str, count: usize, next: Option<&str>| {
        let page = site.page(query).await;
        assert_eq!(
            (page["count"].as_u64(), ids(&page).len()),
            (Some(count as u64), count),
            "{query}"
        );
        assert_eq!(page["totalItems"], 1005, "{query}");
        let given = page["next"]
            .as_str()
            .map(|next| next.split("&max=").last().unwrap());
        assert_eq!(given, next, "{query}");
    };
    check("", 50, Some("50")).await;
    check("max=", 50, Some("50")).await;
    check("max=1", 1, Some("1")).await;
    check("max=1000", 1000, Some("1000")).await;
    check("max=1001", 1000, Some("1000")).await;
    check("max=99999999999999999999", 1000, Some("1000")).await;
    let last = site.page("order=-modified&max=6").await["last_cursor"]
        .as_str()
        .unwrap()
        .to_owned();
    check(&format!("max=5&since=cursor:{last}"), 5, None).await;
    check(&format!("max=4&since=cursor:{last}"), 4, Some("4")).await;
    for bad in [
        "max=0", "max=-1", "max=1.5", "max=%2B5", "max=5%20", "max=0x10",
    ] {
        assert_eq!(
            site.get(&format!("/feeds/blog.json?{bad}")).await.status,
            400,
            "{bad}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_position_works_where_items_stay_by_our_id_and_by_the_publishers() {
    // SF-27.
    let site = Site::of(1..=5).await;
    for name in [id(2), guid(2)] {
        let id_of = escaped(&format!("id:{name}"));
        let after = site.page(&format!("order=created&since={id_of}")).await;
        assert_eq!(ids(&after), [id(3), id(4), id(5)]);
        let before = site.page(&format!("order=created&until={id_of}")).await;
        assert_eq!(ids(&before), [id(1)]);
        let back = site.page(&format!("order=-created&since={id_of}")).await;
        assert_eq!(ids(&back), [id(1)]);
        for order in ["modified", "-modified"] {
            let refused = site
                .get(&format!("/feeds/blog.json?order={order}&since={id_of}"))
                .await;
            assert_eq!(refused.status, 400);
            assert!(
                refused.text().contains("created"),
                "it says what would do: {}",
                refused.text()
            );
        }
    }
    let unknown = site
        .get("/feeds/blog.json?order=created&since=id:nobody")
        .await;
    assert_eq!(
        (unknown.status, unknown.header("cache-control")),
        (404, "no-store")
    );
    assert_eq!(
        site.get("/feeds/blog.json?order=created&until=id:nobody")
            .await
            .status,
        404
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_wrongly_is_told_so_and_repeated_to_nobody() {
    // D-25; SF-43.
    let site = Site::of(1..=3).await;
    for raw in [
        "order=best",
        "order=Modified",
        "order=created&order=created",
        "max=1&max=1",
        "timeout=1&timeout=1",
        "until=cursor:&until=cursor:",
        "callback=a&callback=a",
        "%6frder=created&order=created",
        "since=evil-1&until=evil-2",
        "timeout=+1",
        "timeout=evil",
    ] {
        for path in ["/feeds/blog", "/feeds/blog.atom", "/feeds/blog.json"] {
            let answer = site.get(&format!("{path}?{raw}")).await;
            assert_eq!(answer.status, 400, "{raw}");
            assert!(!answer.text().contains("evil"), "{}", answer.text());
            let is_line = answer.text().ends_with('\n') && answer.text().lines().count() == 1;
            assert!(
                (is_line || path.ends_with("json")) && answer.text().len() > 10,
                "{}",
                answer.text()
            );
        }
    }
    let ignored = site
        .page("_=17&utm_source=evil&Since=evil&ORDER=evil&b")
        .await;
    assert_eq!(
        (ids(&ignored).len(), ignored.to_string().contains("evil")),
        (3, false)
    );
    assert_eq!(
        ids(&site
            .page("since=&until=&max=&order=&timeout=&callback=")
            .await)
        .len(),
        3
    );
}

#[tokio::test(start_paused = true)]
async fn a_range_that_ends_before_it_begins_is_empty_and_not_held() {
    // SF-31; D-3.
    let site = Site::of(1..=5).await;
    let cursors = async |max: u8| {
        site.page(&format!("max={max}")).await["last_cursor"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (second, fourth) = (cursors(2).await, cursors(4).await);
    let page = site
        .page(&format!("since=cursor:{second}&until=cursor:{fourth}"))
        .await;
    assert_eq!(ids(&page), [id(3)], "both ends are exclusive");
    tokio::time::advance(Duration::from_secs(1)).await;
    let started = Instant::now();
    for range in [
        format!("since=cursor:{fourth}&until=cursor:{second}"),
        format!("since=cursor:{fourth}&until=cursor:{fourth}"),
        format!("order=-modified&since=cursor:{second}&until=cursor:{fourth}"),
        "since=time:2030-01-02&until=time:2030-01-01".to_owned(),
        "since=time:2026-06-02&until=time:2026-05-01".to_owned(),
    ] {
        let page = site.page(&range).await;
        assert_eq!(
            (page["count"].as_u64(), &page["next"]),
            (Some(0), &serde_json::Value::Null),
            "{range}"
        );
        assert!(page["last_cursor"].is_string(), "{range}");
    }
    assert_eq!(Instant::now(), started, "nothing can come of waiting");
}

#[tokio::test(start_paused = true)]
async fn a_time_covers_the_unit_it_is_written_in() {
    // SF-28; D-9.
    let site = Site::of(1..=3).await;
    let all = |page: &serde_json::Value| page["count"].as_u64();
    for until in [
        "time:2026-06-01",
        "time:2026-06-01T00:00",
        "time:2026-06-01T00:00:00Z",
        "time:1780272000",
    ] {
        assert_eq!(
            all(&site.page(&format!("until={until}")).await),
            Some(3),
            "{until}"
        );
    }
    let t = site.page("").await["items"][1]["updated"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        ids(&site.page(&format!("until=time:{t}")).await),
        [id(1), id(2)]
    );
    assert_eq!(
        ids(&site.page(&format!("since=time:{t}")).await),
        [id(2), id(3)]
    );
    for order in ["-modified", "-created"] {
        // SF-29: `since` is where a list begins, whichever way it runs.
        assert_eq!(
            ids(&site.page(&format!("order={order}&since=time:{t}")).await),
            [id(2), id(1)]
        );
        assert_eq!(
            ids(&site.page(&format!("order={order}&until=time:{t}")).await),
            [id(3), id(2)]
        );
    }
    assert_eq!(
        ids(&site
            .page(&format!("order=created&since=time:{t}&until=time:{t}"))
            .await),
        [id(2)]
    );
    assert_eq!(
        ids(&site.page("since=time:2026-06-01T02:00:00+02:00").await).len(),
        3,
        "a bare + is a blank"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cursor_that_no_longer_holds_resends_and_says_so_once() {
    // SF-25, SF-120, SF-128, SF-129; D-8.
    let site = Site::of(1..=5).await;
    let wrong = site
        .get("/feeds/blog.json?since=cursor:1780272000_0_17")
        .await;
    assert_eq!(
        (wrong.header("smart-feed-cursor"), ids(&wrong.json()).len()),
        ("time", 5)
    );
    let reset = site.get("/feeds/blog.json?since=cursor:8f4a1546").await;
    assert_eq!(
        (reset.header("smart-feed-cursor"), ids(&reset.json()).len()),
        ("reset", 5)
    );
    let last = reset.json()["last_cursor"].as_str().unwrap().to_owned();
    let again = site
        .get(&format!("/feeds/blog.json?timeout=0&since=cursor:{last}"))
        .await;
    assert_eq!(
        (again.header("smart-feed-cursor"), ids(&again.json()).len()),
        ("", 0)
    );
    // The newest item itself is edited: its old cursor brings exactly that.
    site.rig.change(vec![edit(5, "anew")]).await;
    let edited = site
        .get(&format!("/feeds/blog.json?since=cursor:{last}"))
        .await;
    assert_eq!(
        (edited.header("smart-feed-cursor"), ids(&edited.json())),
        ("moved", vec![id(5)])
    );
}
