//! Deletions by absence, from the request to the tombstone: when the publisher is asked without
//! validators, and what that proves.

use super::*;
use crate::feed::{
    absence::{Coverage, WindowEvent},
    item::{Content, Item, Reason},
    observation_record::ObservationRecord,
    page::PageQuery,
};
use http::Response;
use std::time::Duration;

/// A document of these posts, newest first: the letter says how new.
fn posts(letters: &str) -> String {
    let item = |letter: char| {
        let minute = u32::from(letter) - u32::from('a');
        format!(
            "<item><guid>{letter}</guid><title>{letter}</title><pubDate>Mon, 02 Feb 2026 01:{minute:02}:00 GMT</pubDate></item>"
        )
    };
    let items: String = letters.chars().map(item).collect();
    format!("<rss version=\"2.0\"><channel><title>t</title>{items}</channel></rss>")
}

/// A publisher that shows these windows one after the other, the last for ever, each with an
/// `ETag`, and answers 304 to whoever has it.
fn publisher(windows: &'static [&'static str]) -> PollerRig {
    PollerRig::new(move |n, request| {
        let window = windows[n.min(windows.len() - 1)];
        let tag = format!("\"{window}\"");
        let same = request
            .headers()
            .get("if-none-match")
            .is_some_and(|sent| *sent == *tag.as_str());
        let answer = Response::builder()
            .status(if same { 304 } else { 200 })
            .header("etag", tag);
        ready(answer.body(String::leak(posts(window)) as &str).unwrap())
    })
}

/// Polls hourly for so long, and tells what became of the items: the letters alive, then those
/// gone.
async fn watch(house: &PollerRig, feed: &FeedSpec, hours: u32) -> (PollState, String) {
    let mut state = PollState::unpolled(URL);
    for _ in 0..hours {
        let polled = house.poll(feed, &state).await;
        state = polled.state;
        probe(house, feed, &state).await;
        tokio::time::advance(Duration::from_secs(3600)).await;
    }
    let told = told(house, feed).await;
    (state, told)
}

/// Asks for every page that is due, as the poller does.
async fn probe(house: &PollerRig, feed: &FeedSpec, state: &PollState) {
    while let Some(at) = house
        .store
        .feed(feed.no)
        .await
        .unwrap()
        .window
        .next_check_at
        && at <= house.context.now()
    {
        house.check(feed, state).await;
    }
}

async fn told(house: &PollerRig, feed: &FeedSpec) -> String {
    let items = house.store.page(all(feed)).await.unwrap().items;
    let mut alive: Vec<&str> = items
        .iter()
        .filter_map(|item| Some(item.entry()?.title.as_ref()?.value.as_str()))
        .collect();
    alive.sort_unstable();
    let gone = items.iter().filter(|item| item.is_gone()).count();
    format!("{} gone {gone}", alive.concat())
}

fn asked_unconditionally(house: &PollerRig) -> Vec<u64> {
    let seen = house.seen.lock().unwrap();
    let plain = seen
        .iter()
        .filter(|seen| !seen.headers.contains_key("if-none-match"));
    plain.map(|seen| seen.at_secs / 3600).collect()
}

#[tokio::test(start_paused = true)]
async fn a_post_deleted_from_the_middle_becomes_a_tombstone_with_its_evidence() {
    // POLLING 2.4, first row: the older post moves up. The document keeps its validators, so only
    // audits confirm.
    let house = publisher(&["zyxwvu", "zyxvut"]);
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let (state, told) = watch(&house, &feed, 26).await;
    assert_eq!(told, "tuvxyz gone 1");
    assert!(!state.timetable.wants_audit);
    assert_eq!(
        asked_unconditionally(&house),
        [0, 24],
        "the first poll, and one audit a day later"
    );
    let gone = house.store.page(all(&feed)).await.unwrap().items;
    let gone = gone.iter().find(|item| item.is_gone()).unwrap();
    let evidence = house.store.evidence(feed.no, gone.id).await.unwrap();
    assert_eq!(evidence[0].1.reason, Reason::AbsentBracketed);
    let missing = evidence[0].1.suspect.unwrap();
    assert_eq!(
        (
            missing.count,
            missing.audited,
            missing.strong,
            missing.behind
        ),
        (2, true, true, 3),
        "`t` stands behind it by then"
    );
}

#[tokio::test(start_paused = true)]
async fn posts_that_roll_off_stay_and_cost_no_audit() {
    let house = publisher(&["vutsr", "wvuts", "xwvut", "yxwvu", "zyxwv"]);
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let (_, told) = watch(&house, &feed, 60).await;
    assert_eq!(told, "rstuvwxyz gone 0");
    assert_eq!(asked_unconditionally(&house), [0]);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_a_304_hides_is_found_by_the_weekly_audit() {
    // WordPress: the validators are those of the newest post that is left.
    let house = PollerRig::new(move |n, request| {
        let window = if n == 0 { "zyxwvu" } else { "zyxvut" };
        let same = request.headers().contains_key("if-none-match");
        let answer = Response::builder()
            .status(if same { 304 } else { 200 })
            .header("etag", "\"newest\"");
        ready(answer.body(String::leak(posts(window)) as &str).unwrap())
    });
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let (_, told) = watch(&house, &feed, 7 * 24).await;
    assert_eq!(told, "uvwxyz gone 0");
    let (_, told) = watch(&house, &feed, 26).await;
    assert_eq!(told, "tuvxyz gone 1");
}

#[tokio::test(start_paused = true)]
async fn a_cut_document_proves_nothing_by_what_it_lacks() {
    let whole = posts("zyxwvutsrq");
    let house = PollerRig::new(move |n, _| {
        let cut = whole.find("<item><guid>w").unwrap() + 20;
        let body = if n == 0 {
            whole.clone()
        } else {
            whole[..cut].to_owned()
        };
        ready(Response::new(String::leak(body) as &str))
    });
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let (state, told) = watch(&house, &feed, 24 * 9).await;
    assert_eq!(told, "qrstuvwxyz gone 0");
    assert!(state.document.remark.unwrap().contains("ends early"));
}

#[tokio::test(start_paused = true)]
async fn a_short_document_that_is_audited_confirms_nothing() {
    // `s` is suspected when the feed breaks off; the same short document again is no second witness
    // against it.
    let house = publisher(&["zyxwvutsrq", "zyxwvutrqp", "zyxw"]);
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let feed = feed.with(|feed| feed.deletions.permalink_checks = false);
    let (_, told) = watch(&house, &feed, 60).await;
    assert_eq!(told, "pqrstuvwxyz gone 0");
    assert_eq!(
        asked_unconditionally(&house),
        [0, 24, 48],
        "it is still wanted"
    );
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_stays_empty_begins_anew_after_a_week() {
    let house = publisher(&["zyxwvu", ""]);
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let (_, told) = watch(&house, &feed, 9 * 24).await;
    assert_eq!(told, "uvwxyz gone 0");
    assert_eq!(
        house
            .store
            .feed(feed.no)
            .await
            .unwrap()
            .completeness
            .gaps
            .len(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn what_left_a_complete_feed_says_so() {
    let document = |letters: &str| {
        let complete = "<fh:complete xmlns:fh=\"http://purl.org/syndication/history/1.0\"/>";
        posts(letters).replace("<title>t</title>", &format!("<title>t</title>{complete}"))
    };
    let house = PollerRig::new(move |n, _| {
        ready(Response::new(
            String::leak(document(if n == 0 { "cba" } else { "cb" })) as &str,
        ))
    });
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let (_, told) = watch(&house, &feed, 3).await;
    assert_eq!(told, "bc gone 1");
    let items = house.store.page(all(&feed)).await.unwrap().items;
    let reason = |item: &Item| match item.content {
        Content::Gone { reason, .. } => Some(reason.code()),
        Content::Live(_) => None,
    };
    assert_eq!(
        items.iter().find_map(|item| reason(item)),
        Some("left-complete-feed")
    );
}

/// A feed that says to be whole and lets posts roll off has no complete history; a longer
/// document takes that back.
#[tokio::test(start_paused = true)]
async fn the_history_of_a_feed_that_says_to_be_whole_is_partial_while_it_is_capped() {
    let windows = ["edcb", "fedc", "gfed", "hgfed"];
    let house = PollerRig::new(move |n, _| {
        let complete = "<fh:complete xmlns:fh=\"http://purl.org/syndication/history/1.0\"/>";
        let window = posts(windows[n.min(windows.len() - 1)]);
        let window = window.replace("<title>t</title>", &format!("<title>t</title>{complete}"));
        ready(Response::new(String::leak(window) as &str))
    });
    let mut feed = house.feed("blog", URL, 3600, 3600).await;
    feed.import.pages_max = 100;
    let mut told = Vec::new();
    let mut state = PollState::unpolled(URL);
    for _ in windows {
        state = house.poll(&feed, &state).await.state;
        let record = house.store.feed(feed.no).await.unwrap();
        told.push(record.completeness.history.to_string());
        tokio::time::advance(Duration::from_secs(3600)).await;
    }
    let capped = "partial (its server gives no more than 4 entries)";
    assert_eq!(told, ["complete", "complete", capped, "complete"]);
}

#[tokio::test(start_paused = true)]
async fn a_post_that_comes_back_is_revived_under_its_id() {
    let house = publisher(&["zyxwvu", "zyxvut", "zyxvut"]);
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let (_, told) = watch(&house, &feed, 26).await;
    assert_eq!(told, "tuvxyz gone 1");
    let house2 = publisher(&["zyxwvu"]);
    let (stop, state) = (CancellationToken::new(), PollState::unpolled(URL));
    Poll::new(&house.context, &feed, &state)
        .run(&house2.upstream, &stop)
        .await
        .unwrap();
    assert_eq!(self::told(&house, &feed).await, "tuvwxyz gone 0");
}

fn all(feed: &FeedSpec) -> PageQuery {
    PageQuery::all(feed.no, Order::MODIFIED)
}

#[tokio::test(start_paused = true)]
async fn every_document_read_leaves_an_observation_and_a_304_leaves_none() {
    let house = publisher(&["zyxwvu", "zyxvut"]);
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let (state, _) = watch(&house, &feed, 26).await;
    let kept: Vec<_> = house
        .store
        .observations(feed.no)
        .await
        .unwrap()
        .into_iter()
        .map(|row| row.1)
        .collect();
    let told = |seen: &ObservationRecord| {
        (
            seen.coverage,
            seen.again,
            [
                seen.counts.entries,
                seen.counts.new,
                seen.counts.missing,
                seen.counts.suspects,
                seen.counts.gone,
            ],
        )
    };
    assert_eq!(
        kept.iter().map(told).collect::<Vec<_>>(),
        [
            (Coverage::Unconditional, false, [6, 6, 0, 0, 0]),
            (Coverage::Conditional, false, [6, 1, 1, 1, 0]),
            (Coverage::Unconditional, true, [6, 0, 1, 0, 1]),
        ],
        "26 polls, of which 23 were answered by 304"
    );
    assert!(
        kept[2].at < state.timetable.polled_at.unwrap(),
        "the poll state says when the last poll was"
    );
}

#[tokio::test(start_paused = true)]
async fn a_document_that_shares_nothing_with_the_last_leaves_a_gap_marker() {
    let house = publisher(&["ihgfedcba", "zyxwvutsr"]);
    let feed = house.feed("blog", URL, 3600, 3600).await;
    watch(&house, &feed, 3).await;
    let record = house.store.feed(feed.no).await.unwrap();
    assert_eq!(record.completeness.gaps.len(), 1);
    let since = |cursor: &str| PageQuery {
        since: Some(crate::feed::position::Position::of_cursor(cursor)),
        ..all(&feed)
    };
    assert_eq!(
        house
            .store
            .page(since(&record.completeness.gaps[0].before))
            .await
            .unwrap()
            .items
            .len(),
        9
    );
    assert_eq!(
        house
            .store
            .page(since(&record.completeness.gaps[0].after))
            .await
            .unwrap()
            .items
            .len(),
        8
    );
    let kept = house.store.observations(feed.no).await.unwrap();
    assert_eq!(
        (kept[1].1.events.as_slice(), kept[1].1.counts.rolled_off),
        ([WindowEvent::Gap].as_slice(), 9)
    );
}

/// A feed of this name at this site, whose posts are these.
fn of(title: &str, letters: &str) -> &'static str {
    let metadata = format!("<title>{title}</title><link>http://{title}.example/</link>");
    let ids = posts(letters).replace("<guid>", &format!("<guid>{title}-"));
    String::leak(ids.replace("<title>t</title>", &metadata))
}

#[tokio::test(start_paused = true)]
async fn another_feed_at_the_url_is_refused_until_it_stays_for_a_week() {
    // POLLING 2.2, INVALID: "title of another feed".
    let house = PollerRig::new(move |n, _| {
        ready(Response::new(if n == 1 || n > 2 {
            of("parked", "cba")
        } else {
            of("blog", "zyxw")
        }))
    });
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let mut state = PollState::unpolled(URL);
    let mut faults = Vec::new();
    for _ in 0..4 {
        state = house.poll(&feed, &state).await.state;
        faults.push(
            state
                .health
                .fault
                .clone()
                .map(|fault| fault.kind.to_string()),
        );
        tokio::time::advance(Duration::from_secs(3600)).await;
    }
    let parked = Some("the URL answers with another feed, \"parked\"".to_owned());
    assert_eq!(faults, [None, parked.clone(), None, parked]);
    assert_eq!(told(&house, &feed).await, "wxyz gone 0");
    // The first of these documents came an hour ago.
    tokio::time::advance(Duration::from_secs(7 * 86_400 - 3600 - 60)).await;
    state = house.poll(&feed, &state).await.state;
    let fault = state
        .health
        .fault
        .clone()
        .map(|fault| fault.kind.to_string());
    assert_eq!(
        fault,
        Some("the URL answers with another feed, \"parked\"".to_owned())
    );
    assert_eq!(told(&house, &feed).await, "wxyz gone 0");
    tokio::time::advance(Duration::from_secs(60)).await;
    state = house.poll(&feed, &state).await.state;
    assert_eq!(state.health.fault, None, "it must be meant");
    assert_eq!(told(&house, &feed).await, "abcwxyz gone 0");
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_renames_itself_is_no_other_feed() {
    let house = PollerRig::new(move |n, _| {
        let body = if n == 0 {
            of("blog", "zyxw")
        } else {
            of("blog", "cba")
        };
        ready(Response::new(if n == 0 {
            body
        } else {
            String::leak(body.replace("<title>blog</title>", "<title>Blog!</title>")) as &str
        }))
    });
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let (state, told) = watch(&house, &feed, 2).await;
    assert_eq!(
        (state.health.fault, told.as_str()),
        (None, "abcwxyz gone 0")
    );
}

#[tokio::test(start_paused = true)]
async fn a_feed_whose_documents_can_prove_nothing_is_not_asked_daily_for_its_platforms_sake() {
    let check = async |letters: &'static str, asked: &[u64]| {
        let wordpress = move || {
            posts(letters).replacen(
                "<title>t</title>",
                "<title>t</title><generator>https://wordpress.org/?v=5.0</generator>",
                1,
            )
        };
        let house = PollerRig::new(move |_, request| {
            let same = request.headers().contains_key("if-none-match");
            let answer = Response::builder()
                .status(if same { 304 } else { 200 })
                .header("etag", "\"one\"");
            ready(answer.body(String::leak(wordpress()) as &str).unwrap())
        });
        let feed = house.feed("blog", URL, 3600, 3600).await;
        watch(&house, &feed, 3 * 24).await;
        assert_eq!(asked_unconditionally(&house), asked, "{letters}");
    };
    check("zyx", &[0, 24, 48]).await;
    check("zy", &[0]).await;
}

/// The same posts, all of which but `c` have a guid; `c` has only its title for a name.
fn one_weak(letters: &str) -> String {
    posts(letters).replace("<guid>c</guid>", "")
}

#[tokio::test(start_paused = true)]
async fn what_has_only_its_title_for_a_name_is_never_gone_by_absence() {
    // DESIGN section 3: a title that was corrected is another name, and the old one proves nothing.
    for metadata in [
        "",
        "<x:complete xmlns:x='http://purl.org/syndication/history/1.0'/>",
    ] {
        let house = PollerRig::new(move |n, _| {
            let text = one_weak(if n == 0 { "gfedcba" } else { "gedba" });
            ready(ok(String::leak(
                text.replace("<channel>", &format!("<channel>{metadata}")),
            )))
        });
        let feed = house.feed("blog", URL, 3600, 3600).await;
        let (_, told) = watch(&house, &feed, 30).await;
        assert_eq!(told, "abcdeg gone 1", "f is gone, c is kept: {metadata}");
        let known = house.store.known(feed.no, Vec::new()).await.unwrap();
        assert_eq!(
            known.window.absence.suspects().count(),
            0,
            "nothing waits for proof that cannot come"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_is_always_cut_in_the_middle_of_a_post_tells_deletions_and_says_that_it_is_cut()
{
    let house = PollerRig::new(|n, _| {
        let whole = posts(if n < 3 { "zyxwvutsr" } else { "zyxwutsrq" });
        let cut = &whole[..whole.rfind("</title>").unwrap()];
        ready(ok(String::leak(cut.to_owned())))
    });
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let (_, told) = watch(&house, &feed, 30).await;
    assert_eq!(
        told, "rstuwxyz gone 1",
        "`v` is deleted, and of `q` nothing whole is shown"
    );
    let seen = house.store.observations(feed.no).await.unwrap();
    let reason = "every document ends early; its whole entries count as the feed";
    let says_so = |seen: &ObservationRecord| seen.partial.as_deref() == Some(reason);
    assert_eq!(seen.iter().filter(|(_, seen)| says_so(seen)).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_document_that_is_cut_now_and_then_deletes_nothing() {
    let house = PollerRig::new(|n, _| {
        let whole = posts("zyxwvutsr");
        let end = if n % 2 == 1 {
            whole.rfind("</title>").unwrap()
        } else {
            whole.len()
        };
        ready(ok(String::leak(whole[..end].to_owned())))
    });
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let (_, told) = watch(&house, &feed, 100).await;
    assert_eq!(told, "rstuvwxyz gone 0");
}
