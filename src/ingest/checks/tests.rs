//! Permalink checks over HTTP: what is asked, of whom, and what each answer comes to.

use super::*;
use crate::{
    feed::{
        absence::{AbsenceState, CheckResult},
        item::{Content, KeyHash, Reason},
        order::Order,
        page::PageQuery,
    },
    ingest::{
        DeletionSettings,
        testing::{House, Scripted, ok, status},
    },
};
use everfeed_adapters::Key;
use http::Response;
use std::{future::ready, time::Duration};
use url::Url;

const URL: &str = "http://blog.example/rss";

/// A document of these posts, newest first, each with a page of its own below this address.
fn posts(base: &str, letters: &str) -> String {
    let item = |letter: char| {
        let minute = u32::from(letter) - u32::from('a');
        let date = format!("Mon, 02 Feb 2026 01:{minute:02}:00 GMT");
        format!(
            "<item><title>The post called {letter}</title><link>{base}/{letter}</link><pubDate>{date}</pubDate></item>"
        )
    };
    let items: String = letters.chars().map(item).collect();
    format!("<rss version=\"2.0\"><channel><title>t</title>{items}</channel></rss>")
}

/// A blog from which `w` vanishes, and whose page of it answers like this. Documents confirm nothing before the audit a
/// day later.
fn blog(base: &'static str, page: impl Fn() -> Scripted + Clone + Send + Sync + 'static) -> House {
    House::new(move |n, request| {
        if request.uri().path() != "/rss" {
            return ready(page());
        }
        let letters = if n == 0 { "zyxwvut" } else { "zyxvuts" };
        let same = request.headers().get("if-none-match").is_some_and(|sent| *sent == *letters);
        let answer = Response::builder().status(if same { 304 } else { 200 }).header("etag", letters);
        ready(answer.body(String::leak(posts(base, letters)) as &str).unwrap())
    })
}

/// Polls hourly for so long, and asks for whatever page is due in between. Tells the reason of each tombstone.
async fn watch(house: &House, feed: &FeedSpec, hours: u32) -> Vec<Reason> {
    let mut state = PollState::unpolled(URL);
    for _ in 0..hours {
        state = house.poll(feed, &state).await.state;
        house.check(feed, &state).await;
        tokio::time::advance(Duration::from_secs(3600)).await;
    }
    let query = PageQuery {
        feed: feed.no,
        order: Order::MODIFIED,
        since: None,
        until: None,
        max: 1000,
        bytes_max: usize::MAX,
        live_only: false,
    };
    let items = house.store.page(query).await.unwrap().items;
    let reason = |content: &Content| match content {
        Content::Gone { reason, .. } => Some(*reason),
        Content::Live(_) => None,
    };
    items.iter().filter_map(|item| reason(&item.content)).collect()
}

/// The requests for pages: the hour, and the URL.
fn asked(house: &House) -> Vec<(u64, String)> {
    let seen = house.seen.lock().unwrap();
    let pages = seen.iter().filter(|seen| !seen.url.ends_with("/rss"));
    pages.map(|seen| (seen.at_secs / 3600, seen.url.clone())).collect()
}

async fn memory(house: &House, feed: &FeedSpec) -> AbsenceState {
    house.store.known(feed.no, Vec::new()).await.unwrap().window.absence
}

const BLOG: &str = "http://blog.example";
const PAGE: &str = "http://blog.example/w";

/// The fate of `w` in so many hours when its page answers like this, and the times at which its page was asked for.
async fn check(
    page: impl Fn() -> Scripted + Clone + Send + Sync + 'static,
    hours: u32,
    expect: &[Reason],
    asked_at: &[u64],
) {
    let house = blog(BLOG, page);
    let feed = house.feed("blog", URL, 3600, 3600).await;
    assert_eq!(watch(&house, &feed, hours).await, expect);
    let asked = asked(&house);
    assert!(asked.iter().all(|(_, url)| url == PAGE), "{asked:?}");
    assert_eq!(asked.iter().map(|(hour, _)| *hour).collect::<Vec<_>>(), asked_at);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_gone_makes_a_tombstone_at_once() {
    check(|| status(410, &[]), 2, &[Reason::Gone], &[1]).await;
    check(|| status(404, &[]), 2, &[], &[1]).await;
    check(|| status(404, &[]), 3, &[Reason::Gone], &[1, 2]).await;
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_still_there_keeps_its_post() {
    // Asked for an hour later, then after four, sixteen and sixty-four.
    let page = || ok("<title>The post called w</title>");
    check(page, 100, &[], &[1, 2, 6, 22, 86]).await;
}

#[tokio::test(start_paused = true)]
async fn a_page_of_something_else_proves_nothing() {
    check(|| ok("<title>Nothing here</title>"), 26, &[Reason::AbsentBracketed], &[1]).await;
    let away = || status(301, &[("location", "http://elsewhere.example/w")]);
    check(away, 26, &[Reason::AbsentBracketed], &[1]).await;
    let home = || status(302, &[("location", "/rss")]);
    let house = blog(BLOG, home);
    let feed = house.feed("blog", URL, 3600, 3600).await;
    assert_eq!(
        watch(&house, &feed, 26).await,
        [Reason::AbsentBracketed],
        "the document itself does not show it"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_is_asked_three_times_while_documents_wait() {
    check(|| status(500, &[]), 26, &[], &[1, 2]).await;
    check(|| status(500, &[]), 27, &[Reason::AbsentBracketed], &[1, 2, 26]).await;
    check(|| status(403, &[]), 27, &[Reason::AbsentBracketed], &[1, 2, 26]).await;
}

#[tokio::test(start_paused = true)]
async fn a_blog_that_links_elsewhere_is_not_asked_there() {
    let house = blog("http://news.example", || status(410, &[]));
    let feed = house.feed("blog", URL, 3600, 3600).await;
    assert_eq!(watch(&house, &feed, 26).await, [Reason::AbsentBracketed]);
    assert_eq!(asked(&house), []);
}

#[tokio::test(start_paused = true)]
async fn behind_a_sidecar_the_public_permalink_means_the_configured_origin() {
    let house = blog("https://blog.public", || status(410, &[]));
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let public = Url::parse("https://blog.public/rss").unwrap();
    let feed = FeedSpec { aliases: vec![public], ..feed };
    assert_eq!(watch(&house, &feed, 2).await, [Reason::Gone]);
    assert_eq!(asked(&house), [(1, PAGE.to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn one_switch_turns_them_off() {
    let house = blog(BLOG, || status(410, &[]));
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let feed = FeedSpec { deletions: DeletionSettings { permalink_checks: false, ..feed.deletions }, ..feed };
    assert_eq!(watch(&house, &feed, 26).await, [Reason::AbsentBracketed]);
    assert_eq!(memory(&house, &feed).await.next_check_at(), None);
}

#[tokio::test(start_paused = true)]
async fn a_probe_says_who_asks_and_why_and_carries_no_validators() {
    let house = blog(BLOG, || status(429, &[("retry-after", "600")]));
    let feed = house.feed("blog", "http://me:secret@blog.example/rss", 3600, 3600).await;
    let state = house.poll(&feed, &PollState::unpolled(URL)).await;
    tokio::time::advance(Duration::from_secs(3600)).await;
    house.poll(&feed, &state.state).await;
    let probed = house.check(&feed, &state.state).await;
    let until = house.context.now().plus_secs(600);
    assert_eq!((probed.asked, probed.host_pause), (true, Some(("blog.example".into(), until))));
    let seen = house.seen.lock().unwrap().last().unwrap().clone();
    assert_eq!(seen.url, PAGE);
    let header = |name: &str| seen.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let agent = header("user-agent").unwrap();
    assert!(agent.starts_with("everfeed/") && agent.contains("+https://me.example/"), "{agent}");
    assert!(agent.contains("whether a post that left its feed is still there"), "{agent}");
    assert!(header("authorization").is_some_and(|sent| sent.starts_with("Basic ")), "a private blog's page");
    let none = ["if-none-match", "if-modified-since", "cookie", "referer", "x-hub-subscribers"];
    assert!(none.iter().all(|name| header(name).is_none()));
}

#[tokio::test(start_paused = true)]
async fn the_evidence_tells_what_the_page_said() {
    let house = blog(BLOG, || status(404, &[]));
    let feed = house.feed("blog", URL, 3600, 3600).await;
    watch(&house, &feed, 3).await;
    let gone = Key::Link("http://blog.example/w".into());
    let key = KeyHash::of("blog", &gone.stripped());
    let evidence = house.store.evidence(feed.no, key.item_id()).await.unwrap();
    let missing = evidence[0].1.suspect.unwrap();
    assert_eq!(evidence[0].1.reason, Reason::Gone);
    assert_eq!((missing.count, missing.permalink_check.asked), (1, 2));
    assert_eq!(missing.permalink_check.last.map(|(_, said)| said), Some(CheckResult::NotFound));
}

#[tokio::test(start_paused = true)]
async fn what_was_not_read_of_a_long_page_may_show_the_post() {
    let page = |filler: usize| ok(String::leak("<br>".repeat(filler) + "The post called w"));
    check(move || page(1 << 17), 3, &[], &[1, 2]).await;
    // Longer than what is read: it says neither.
    let house = blog(BLOG, move || page(1 << 18));
    let feed = house.feed("blog", URL, 3600, 3600).await;
    watch(&house, &feed, 2).await;
    let memory = memory(&house, &feed).await;
    let said = memory.suspects().next().and_then(|row| row.suspect?.permalink_check.last);
    assert_eq!(said.map(|(_, said)| said), Some(CheckResult::Nothing));
}
