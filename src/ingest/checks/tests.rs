//! Permalink checks over HTTP: what is asked, of whom, and what each answer comes to.

use super::*;
use crate::{
    feed::{
        absence::{AbsenceState, CheckResult, ControlFinding},
        item::{Content, KeyHash, Reason},
        order::Order,
        page::PageQuery,
    },
    ingest::testing::{PollerRig, Scripted, ok, status},
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

/// A blog from which `w` vanishes, and whose page of it answers like this. Documents confirm
/// nothing before the audit a day later.
fn blog(
    base: &'static str,
    page: impl Fn() -> Scripted + Clone + Send + Sync + 'static,
) -> PollerRig {
    PollerRig::new(move |n, request| {
        match request.uri().path() {
            "/rss" => {}
            "/w" => return ready(page()),
            other => return ready(ok(String::leak(format!("The post called {}", &other[1..])))),
        }
        let letters = if n == 0 { "zyxwvut" } else { "zyxvuts" };
        let same = request
            .headers()
            .get("if-none-match")
            .is_some_and(|sent| *sent == *letters);
        let answer = Response::builder()
            .status(if same { 304 } else { 200 })
            .header("etag", letters);
        ready(
            answer
                .body(String::leak(posts(base, letters)) as &str)
                .unwrap(),
        )
    })
}

/// Polls hourly for so long, and asks for whatever page is due in between. Tells the reason of each
/// tombstone.
async fn watch(house: &PollerRig, feed: &FeedSpec, hours: u32) -> Vec<Reason> {
    let mut state = PollState::unpolled(URL);
    for _ in 0..hours {
        state = house.poll(feed, &state).await.state;
        ask(house, feed, &state).await;
        tokio::time::advance(Duration::from_secs(3600)).await;
    }
    let query = PageQuery::all(feed.no, Order::MODIFIED);
    let items = house.store.page(query).await.unwrap().items;
    let reason = |content: &Content| match content {
        Content::Gone { reason, .. } => Some(*reason),
        Content::Live(_) => None,
    };
    items
        .iter()
        .filter_map(|item| reason(&item.content))
        .collect()
}

/// Asks for every page that is due.
async fn ask(house: &PollerRig, feed: &FeedSpec, state: &PollState) {
    while house
        .check(feed, state)
        .await
        .next_at
        .is_some_and(|at| at <= house.context.now())
    {}
}

/// The requests for the page of `w`: the hour, and the URL. Other pages are controls.
fn asked(house: &PollerRig) -> Vec<(u64, String)> {
    let seen = house.seen.lock().unwrap();
    let pages = seen.iter().filter(|seen| seen.url.ends_with("/w"));
    pages
        .map(|seen| (seen.at_secs / 3600, seen.url.clone()))
        .collect()
}

async fn memory(house: &PollerRig, feed: &FeedSpec) -> AbsenceState {
    house
        .store
        .known(feed.no, Vec::new())
        .await
        .unwrap()
        .window
        .absence
}

const BLOG: &str = "http://blog.example";
const PAGE: &str = "http://blog.example/w";

/// The fate of `w` in so many hours when its page answers like this, and the times at which its
/// page was asked for.
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
    assert_eq!(
        asked.iter().map(|(hour, _)| *hour).collect::<Vec<_>>(),
        asked_at
    );
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
async fn a_page_of_another_post_proves_no_presence_though_it_holds_the_title() {
    // Software that guesses which post was meant leads to `v`, whose title begins with that of `w`.
    let page = || ok("<link rel='canonical' href='/v'><h1>The post called w, continued</h1>");
    check(page, 26, &[Reason::AbsentBracketed], &[1]).await;
    // An address of no other post: it was mended.
    let page = || ok("<link rel='canonical' href='/w-mended'><h1>The post called w</h1>");
    check(page, 26, &[], &[1, 2, 6, 22]).await;
}

#[test]
fn a_page_of_many_entries_shows_one_by_its_words_or_its_anchor() {
    let entry = |link: &str, text: &str| Entry {
        title: Some(everfeed_adapters::Text::plain("By: Anna")),
        links: vec![everfeed_adapters::Link {
            href: link.into(),
            rel: "alternate".into(),
            ..everfeed_adapters::Link::default()
        }],
        summary: Some(everfeed_adapters::Text::plain(text)),
        ..Entry::default()
    };
    let check = |link: &str, text: &str, page: &'static str, expect: CheckResult| {
        let answer = PageAnswer {
            status: StatusCode::OK,
            content_type: Some("text/html".into()),
            body: page.into(),
            is_cut: false,
            host: None,
            landing: None,
            retry_after_secs: None,
        };
        let (found, _) = said(&answer, &entry(link, text), "http://blog.example/post");
        assert_eq!(found, expect, "{link} {text} {page}");
    };
    const COMMENT: &str = "http://blog.example/post#comment-7";
    const LONG: &str = "One two three four five six seven eight nine";
    check(
        COMMENT,
        "Yes!",
        "<li id=comment-8>By: Anna",
        CheckResult::Another,
    );
    check(
        COMMENT,
        "Yes!",
        "<li id=comment-7>By: Anna",
        CheckResult::Shown,
    );
    check(COMMENT, LONG, "<li>By: Anna: Hello", CheckResult::Another);
    check(
        COMMENT,
        LONG,
        "<li>one two three four five six seven eight",
        CheckResult::Shown,
    );
    check(
        "http://blog.example/#/post",
        "Yes!",
        "<h1>By: Anna",
        CheckResult::Shown,
    );
    check(
        "http://blog.example/post",
        LONG,
        "<h1>By: Anna</h1>",
        CheckResult::Shown,
    );
}

#[tokio::test(start_paused = true)]
async fn a_page_of_something_else_proves_nothing() {
    check(
        || ok("<title>Nothing here</title>"),
        26,
        &[Reason::AbsentBracketed],
        &[1],
    )
    .await;
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
    check(
        || status(500, &[]),
        27,
        &[Reason::AbsentBracketed],
        &[1, 2, 26],
    )
    .await;
    check(
        || status(403, &[]),
        27,
        &[Reason::AbsentBracketed],
        &[1, 2, 26],
    )
    .await;
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
    let feed = feed.with(|feed| feed.aliases = vec![public]);
    assert_eq!(watch(&house, &feed, 2).await, [Reason::Gone]);
    assert_eq!(asked(&house), [(1, PAGE.to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn one_switch_turns_them_off() {
    let house = blog(BLOG, || status(410, &[]));
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let feed = feed.with(|feed| feed.deletions.permalink_checks = false);
    assert_eq!(watch(&house, &feed, 26).await, [Reason::AbsentBracketed]);
    assert_eq!(memory(&house, &feed).await.next_check_at(), None);
}

#[tokio::test(start_paused = true)]
async fn pages_of_a_private_blog_are_asked_for_with_its_credentials_if_that_is_allowed() {
    let house = blog(BLOG, || status(404, &[]));
    let mut feed = house
        .feed("blog", "http://me:secret@blog.example/rss", 3600, 3600)
        .await;
    feed.deletions.page_credentials = true;
    let state = house.poll(&feed, &PollState::unpolled(URL)).await;
    tokio::time::advance(Duration::from_secs(3600)).await;
    house.poll(&feed, &state.state).await;
    house.check(&feed, &state.state).await;
    let seen = house.seen.lock().unwrap().last().unwrap().clone();
    assert!(
        seen.headers
            .get("authorization")
            .is_some_and(|sent| sent.as_bytes().starts_with(b"Basic "))
    );
}

#[tokio::test(start_paused = true)]
async fn a_probe_says_who_asks_and_why_and_carries_no_validators() {
    let house = blog(BLOG, || status(429, &[("retry-after", "600")]));
    let feed = house
        .feed("blog", "http://me:secret@blog.example/rss", 3600, 3600)
        .await;
    let state = house.poll(&feed, &PollState::unpolled(URL)).await;
    tokio::time::advance(Duration::from_secs(3600)).await;
    house.poll(&feed, &state.state).await;
    let control = house.check(&feed, &state.state).await;
    assert_eq!(
        (control.asked, control.next_at),
        (false, Some(house.context.now())),
        "a control goes before it"
    );
    let probed = house.check(&feed, &state.state).await;
    let until = house.context.now().plus_secs(600);
    assert_eq!(
        (probed.asked, probed.host_pause),
        (true, Some(("blog.example".into(), until)))
    );
    let seen = house.seen.lock().unwrap().last().unwrap().clone();
    assert_eq!(seen.url, PAGE);
    let header = |name: &str| {
        seen.headers
            .get(name)
            .map(|value| value.to_str().unwrap().to_owned())
    };
    let agent = header("user-agent").unwrap();
    assert!(
        agent.starts_with("everfeed/") && agent.contains("+https://me.example/"),
        "{agent}"
    );
    assert!(
        agent.contains("whether a post that left its feed is still there"),
        "{agent}"
    );
    assert_eq!(
        header("authorization"),
        None,
        "an entry named the address, and learns no password"
    );
    let none = [
        "if-none-match",
        "if-modified-since",
        "cookie",
        "referer",
        "x-hub-subscribers",
    ];
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
    assert_eq!(
        missing.permalink_check.last.map(|(_, said)| said),
        Some(CheckResult::NotFound)
    );
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
    let said = memory
        .suspects()
        .next()
        .and_then(|row| row.suspect?.permalink_check.last);
    assert_eq!(said.map(|(_, said)| said), Some(CheckResult::Nothing));
}

/// A blog all of whose pages answer like this, by the name of the post.
fn blog_of_pages(page: impl Fn(&str) -> Scripted + Clone + Send + Sync + 'static) -> PollerRig {
    PollerRig::new(move |n, request| {
        let path = request.uri().path();
        if path != "/rss" {
            return ready(page(&path[1..]));
        }
        let letters = if n == 0 { "zyxwvut" } else { "zyxvuts" };
        let same = request
            .headers()
            .get("if-none-match")
            .is_some_and(|sent| *sent == *letters);
        let answer = Response::builder()
            .status(if same { 304 } else { 200 })
            .header("etag", letters);
        ready(
            answer
                .body(String::leak(posts(BLOG, letters)) as &str)
                .unwrap(),
        )
    })
}

/// The last result for `w`, and the requests for pages in so many hours, when every page answers
/// like this. Nothing may become of it but what documents prove.
async fn uninformative(
    hours: u32,
    page: impl Fn(&str) -> Scripted + Clone + Send + Sync + 'static,
) -> (Option<CheckResult>, usize) {
    let house = blog_of_pages(page);
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let reasons = watch(&house, &feed, hours).await;
    assert!(
        reasons
            .iter()
            .all(|reason| *reason == Reason::AbsentBracketed),
        "{reasons:?}"
    );
    let absence = memory(&house, &feed).await;
    let said = absence
        .suspects()
        .next()
        .and_then(|row| row.suspect?.permalink_check.last);
    let pages = house
        .seen
        .lock()
        .unwrap()
        .iter()
        .filter(|seen| !seen.url.ends_with("/rss"))
        .count();
    (said.map(|(_, said)| said), pages)
}

#[tokio::test(start_paused = true)]
async fn a_page_says_nothing_where_every_page_answers_alike() {
    use ControlFinding::{Gone, NotFound, Refused, Silent};
    let says = |finding| Some(CheckResult::Uninformative(finding));
    for (status_code, finding) in [(404, NotFound), (410, Gone), (403, Refused), (500, Refused)] {
        let (said, asked) = uninformative(2, move |_| status(status_code, &[])).await;
        assert_eq!(said, says(finding), "{status_code}");
        assert!(
            asked <= 2,
            "one control, or another where a post may be at fault: {status_code} {asked}"
        );
    }
    assert_eq!(
        uninformative(2, |_| ok("<div id=app></div>")).await.0,
        says(Silent),
        "a shell for scripts"
    );
    let front = |post: &str| match post {
        "" => ok("The post called z The post called y"),
        _ => status(302, &[("location", "/")]),
    };
    assert_eq!(
        uninformative(2, front).await.0,
        says(Silent),
        "the front page for all"
    );
    // Words that stand on every page are no sign of a post.
    let listing = |_: &str| {
        ok("<h1>No such post</h1> The post called w, The post called v, The post called y")
    };
    assert_eq!(
        uninformative(2, listing).await.0,
        says(Silent),
        "a list of all posts for all"
    );
}

#[tokio::test(start_paused = true)]
async fn where_pages_say_nothing_documents_decide_and_a_control_is_asked_for_once_in_a_while() {
    let (said, asked) = uninformative(100, |_| status(404, &[])).await;
    assert_eq!(said, None, "it is decided on");
    assert!(asked <= 8, "{asked}");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_redirects_to_another_page_of_its_blog_is_not_its_own() {
    // The front page names the newest posts, and not this one.
    let page = |post: &str| match post {
        "w" => status(302, &[("location", "/")]),
        "" => ok("The post called z The post called y"),
        other => ok(String::leak(format!("The post called {other}"))),
    };
    assert_eq!(uninformative(2, page).await.0, Some(CheckResult::Another));
}

#[tokio::test(start_paused = true)]
async fn a_permalink_with_www_is_of_the_same_host() {
    let house = blog("http://www.blog.example", || status(410, &[]));
    let feed = house.feed("blog", URL, 3600, 3600).await;
    assert_eq!(watch(&house, &feed, 2).await, [Reason::Gone]);
    assert_eq!(asked(&house), [(1, "http://www.blog.example/w".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn what_is_back_lives_again_without_a_document_that_shows_it() {
    let house = {
        let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        blog(BLOG, move || {
            match asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
                0..2 => status(410, &[]),
                _ => ok("The post called w"),
            }
        })
    };
    let feed = house.feed("blog", URL, 3600, 3600).await;
    assert_eq!(watch(&house, &feed, 2).await, [Reason::Gone]);
    let state = PollState::unpolled(URL);
    let mut revived_at = None;
    for hour in 2..24 * 12 {
        ask(&house, &feed, &state).await;
        let live = house.store.feed(feed.no).await.unwrap().items.live;
        revived_at = revived_at.or((live == 8).then_some(hour));
        tokio::time::advance(Duration::from_secs(3600)).await;
    }
    let asked: Vec<u64> = asked(&house).into_iter().map(|(hour, _)| hour).collect();
    assert_eq!(
        asked,
        [1, 25, 73, 73],
        "after one day, and after three, and again beside a control"
    );
    assert_eq!(revived_at, Some(73));
    let window = house.store.known(feed.no, Vec::new()).await.unwrap().window;
    assert_eq!((window.tombstones.len(), window.next_check_at()), (0, None));
}

#[tokio::test(start_paused = true)]
async fn a_tombstone_whose_page_stays_gone_is_asked_about_four_times() {
    let house = blog(BLOG, || status(410, &[]));
    let feed = house.feed("blog", URL, 3600, 3600).await;
    assert_eq!(watch(&house, &feed, 2).await, [Reason::Gone]);
    for _ in 2..24 * 40 {
        ask(&house, &feed, &PollState::unpolled(URL)).await;
        tokio::time::advance(Duration::from_secs(3600)).await;
    }
    let asked: Vec<u64> = asked(&house)
        .into_iter()
        .map(|(hour, _)| (hour - 1) / 24)
        .collect();
    assert_eq!(asked, [0, 1, 3, 10, 30]);
}

/// Fifteen posts, four of which go at once; pages answer like this. The tombstones after so
/// many hours.
async fn four_of_fifteen(
    hours: u32,
    page: impl Fn(&str) -> Scripted + Clone + Send + Sync + 'static,
) -> (Vec<Reason>, AbsenceState) {
    let house = PollerRig::new(move |n, request| {
        let path = request.uri().path();
        ready(match (path, n) {
            ("/rss", 0) => ok(String::leak(posts(BLOG, "zyxwvutsrqponml"))),
            ("/rss", _) => ok(String::leak(posts(BLOG, "zxwutrqonmlkjih"))),
            (page_of, _) => page(&page_of[1..]),
        })
    });
    let feed = house.feed("blog", URL, 3600, 3600).await;
    let reasons = watch(&house, &feed, hours).await;
    (reasons, memory(&house, &feed).await)
}

#[tokio::test(start_paused = true)]
async fn many_that_are_missing_at_once_are_decided_on_by_their_pages_within_a_day() {
    let is_deleted = |post: &str| matches!(post, "y" | "v" | "s" | "p");
    let shown = |post: &str| ok(String::leak(format!("The post called {post}")));
    let answered = async |hours, answer: fn() -> Scripted| {
        let page = move |post: &str| {
            if is_deleted(post) {
                answer()
            } else {
                shown(post)
            }
        };
        let (reasons, state) = four_of_fifteen(hours, page).await;
        (reasons, state.quarantined_since.is_some())
    };
    let not_found = || status(404, &[]);
    assert_eq!(answered(3, not_found).await, (vec![], true));
    let all = (vec![Reason::Gone; 4], false);
    assert_eq!(answered(4, not_found).await, all, "not found twice");
    let soft = || ok("<title>Nothing here</title>");
    assert_eq!(
        answered(12, soft).await,
        (vec![], true),
        "a server in trouble may lose rows and pages for hours"
    );
    assert_eq!(answered(20, soft).await, all);
    let (reasons, state) = four_of_fifteen(4, shown).await;
    assert_eq!(
        (reasons.len(), state.quarantined_since),
        (0, None),
        "their pages are there: nothing to wait for"
    );
    let (reasons, state) = four_of_fifteen(100, |_| status(404, &[])).await;
    assert_eq!(reasons, [], "pages say nothing");
    assert!(
        state.quarantined_since.is_some(),
        "it is held as without pages"
    );
}
