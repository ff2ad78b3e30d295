//! Walks through archives beside the polls: their pace, whom they spare, and when a feed is served
//! meanwhile.

use super::*;
use crate::{
    feed::{archive::History, order::Order, page::PageQuery, record::FeedNo, schedule::PollState},
    ingest::{
        FeedSpec, ImportSettings, polls::Polled, testing::Scripted, upstream::PageReply,
        walks::ArchiveReader,
    },
    store::Commit,
};

/// The live document, which leads to an archive.
const LIVE: &str = "<rss version=\"2.0\" xmlns:fh=\"http://purl.org/syndication/history/1.0\"><channel><title>t</title>\
    <fh:prev>/a2</fh:prev><item><guid>3</guid><title>three</title></item></channel></rss>";
const SECOND: &str = "<rss version=\"2.0\" xmlns:fh=\"http://purl.org/syndication/history/1.0\"><channel><title>t</title>\
    <fh:prev>/a1</fh:prev><item><guid>2</guid><title>two</title></item></channel></rss>";

/// A house whose archives answer like this: the path, and how often it was asked for before.
fn house(answer: impl Fn(&str, usize) -> Scripted + Clone + Send + Sync + 'static) -> PollerRig {
    let asked = std::sync::Arc::new(std::sync::Mutex::new(HashMap::<String, usize>::new()));
    PollerRig::new(move |_, request| {
        let path = request.uri().path().to_owned();
        let mut asked = asked.lock().unwrap();
        let times = asked.entry(path.clone()).or_default();
        *times += 1;
        ready(if path == "/rss" {
            ok(LIVE)
        } else {
            answer(&path, *times - 1)
        })
    })
}

async fn with_import(house: &PollerRig, import: ImportSettings) -> FeedSpec {
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    feed.with(|feed| feed.import = import)
}

async fn titles(house: &PollerRig, feed: FeedNo) -> Vec<String> {
    let query = PageQuery::all(feed, Order::MODIFIED);
    let page = house.store.page(query).await.unwrap();
    page.items
        .iter()
        .map(|item| item.entry().unwrap().title.as_ref().unwrap().value.clone())
        .collect()
}

/// The paths asked for, with the second of each.
fn asked(house: &PollerRig) -> Vec<(u64, String)> {
    let path = |url: &str| url.trim_start_matches("http://blog.example").to_owned();
    house
        .seen
        .lock()
        .unwrap()
        .iter()
        .map(|seen| (seen.at_secs, path(&seen.url)))
        .collect()
}

fn is(found: &[(u64, String)], expect: &[(u64, &str)]) {
    let found: Vec<(u64, &str)> = found
        .iter()
        .map(|(at, path)| (*at, path.as_str()))
        .collect();
    assert_eq!(found, expect);
}

#[tokio::test(start_paused = true)]
async fn a_page_is_a_gap_behind_the_one_before_and_the_live_document_is_read_last() {
    let house = house(|path, _| ok(if path == "/a2" { SECOND } else { ONE }));
    let feed = with_import(
        &house,
        ImportSettings {
            page_gap_secs: 7,
            ..ImportSettings::default()
        },
    )
    .await;
    let running = house.start([&feed]).await;
    pass(13).await;
    let record = house.store.feed(feed.no).await.unwrap();
    assert_eq!(
        (
            record.is_ready(),
            record.items.total,
            &record.completeness.history
        ),
        (false, 0, &History::Running)
    );
    // A ping in the middle reads the live document, and commits nothing.
    house.hint(feed.no);
    pass(50).await;
    // One further there is nothing new, so that all seems to be read.
    let read = [
        (0, "/rss"),
        (7, "/a2"),
        (13, "/rss"),
        (14, "/a1"),
        (21, "/a0"),
        (21, "/rss"),
    ];
    is(&asked(&house), &read);
    assert_eq!(titles(&house, feed.no).await, ["one", "two", "three"]);
    let record = house.store.feed(feed.no).await.unwrap();
    assert_eq!(
        record.completeness.history,
        History::Running,
        "the end is not proven yet"
    );
    pass(240).await;
    assert_eq!(asked(&house).last().unwrap(), &(238, "/a3".to_owned()));
    let record = house.store.feed(feed.no).await.unwrap();
    assert_eq!(record.completeness.history, History::Complete);
    assert!(
        house
            .seen
            .lock()
            .unwrap()
            .iter()
            .all(|seen| !seen.headers.contains_key("if-none-match"))
    );
    running.stop().await;
    // Nothing of it is done again.
    let running = house.start([&feed]).await;
    pass(60).await;
    assert_eq!(asked(&house).len(), 8);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_is_served_in_time_though_an_archive_fails_and_what_comes_late_comes_after() {
    let house = house(|path, times| match path {
        "/a2" => ok(SECOND),
        _ if times < 2 => status(500, &[]),
        _ => ok(ONE),
    });
    let feed = with_import(&house, ImportSettings::default()).await;
    let running = house.start([&feed]).await;
    pass(59).await;
    assert!(!house.store.feed(feed.no).await.unwrap().is_ready());
    pass(2).await;
    let record = house.store.feed(feed.no).await.unwrap();
    assert_eq!(
        (
            record.is_ready(),
            record.items.total,
            record.completeness.history
        ),
        (true, 2, History::Running)
    );
    assert_eq!(titles(&house, feed.no).await, ["two", "three"]);
    running.stop().await;
    let running = house.start([&feed]).await;
    pass(1000).await;
    is(
        &asked(&house),
        &[
            (0, "/rss"),
            (1, "/a2"),
            (2, "/a1"),
            (60, "/rss"),
            (62, "/a1"),
            (662, "/a1"),
            (663, "/a0"),
            (693, "/a1"),
            (694, "/a3"),
        ],
    );
    assert_eq!(titles(&house, feed.no).await, ["two", "three", "one"]);
    assert_eq!(
        house
            .store
            .feed(feed.no)
            .await
            .unwrap()
            .completeness
            .history,
        History::Complete
    );
    assert_eq!(
        house
            .store
            .known(feed.no, vec![])
            .await
            .unwrap()
            .window
            .entries
            .len(),
        1,
        "the window is the live one"
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_wants_to_be_left_alone_is_by_walks_and_polls() {
    let house = house(|path, times| match path {
        "/a2" if times == 0 => status(429, &[("retry-after", "900")]),
        "/a2" => ok(SECOND),
        _ => ok(ONE),
    });
    let feed = with_import(&house, ImportSettings::default()).await;
    let running = house.start([&feed]).await;
    pass(900).await;
    is(&asked(&house), &[(0, "/rss"), (1, "/a2")]);
    pass(60).await;
    assert_eq!(house.total(feed.no).await, 3);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_whose_operator_wants_no_archives_is_served_at_once() {
    let house = house(|_, _| ok(ONE));
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(30).await;
    is(&asked(&house), &[(0, "/rss")]);
    assert_eq!(
        (
            house.total(feed.no).await,
            house
                .store
                .feed(feed.no)
                .await
                .unwrap()
                .completeness
                .history
        ),
        (1, History::Unknown)
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_was_served_before_gets_its_past_with_its_next_document() {
    const NEXT: &str = "<rss version=\"2.0\" xmlns:fh=\"http://purl.org/syndication/history/1.0\"><channel><title>t</title>\
        <fh:prev>/a2</fh:prev><item><guid>4</guid><title>four</title></item>\
        <item><guid>3</guid><title>three</title></item></channel></rss>";
    let house = PollerRig::new(|n, request| {
        ready(ok(match (request.uri().path(), n) {
            ("/rss", 0) => LIVE,
            ("/rss", _) => NEXT,
            _ => ONE,
        }))
    });
    let feed = house.feed("blog", URL, HOUR, DAY).await;
    let running = house.start([&feed]).await;
    pass(30).await;
    running.stop().await;
    let feed = feed.with(|feed| feed.import = ImportSettings::default());
    let running = house.start([&feed]).await;
    pass(HOUR + 60).await;
    is(
        &asked(&house),
        &[
            (0, "/rss"),
            (HOUR, "/rss"),
            (HOUR + 1, "/a2"),
            (HOUR + 31, "/a2"),
        ],
    );
    assert_eq!(titles(&house, feed.no).await, ["three", "four", "one"]);
    assert_eq!(
        house
            .store
            .feed(feed.no)
            .await
            .unwrap()
            .completeness
            .history,
        History::Complete
    );
    running.stop().await;
}

/// Seconds for which the host is paused by this answer to a poll, to a request for a page of
/// archives and to one for the page of an item.
async fn pauses(answer: fn() -> Scripted) -> [Option<u64>; 3] {
    let house = PollerRig::new(move |n, _| ready(if n == 0 { ok(LIVE) } else { answer() }));
    let feed = with_import(
        &house,
        ImportSettings {
            serve_after_secs: 0,
            ..ImportSettings::default()
        },
    )
    .await;
    let Polled { state, walk, .. } = house.poll(&feed, &PollState::unpolled(URL)).await;
    pass(HOUR).await;
    let now = house.context.now();
    let polled = house.poll(&feed, &state).await.host_pause;
    let reader = ArchiveReader::new(&house.context, &house.upstream, &feed, &state);
    let stepped = reader
        .go_on(
            walk.expect("it leads to an archive"),
            &CancellationToken::new(),
        )
        .await;
    let stepped = stepped.expect("nobody stops it").host_pause;
    let page = house
        .upstream
        .page(&feed, "http://blog.example/a-post")
        .await;
    let PageReply::Answer(page) = page else {
        panic!("no answer: {page:?}")
    };
    let checked = crate::ingest::checks::pause(&page, &feed, &state, now);
    [polled, stepped, checked].map(|pause| {
        let (host, until) = pause?;
        assert_eq!(host, "blog.example");
        Some(until.secs_since(now))
    })
}

#[tokio::test(start_paused = true)]
async fn retry_after_pauses_the_host_alike_whatever_was_asked_for() {
    assert_eq!(
        pauses(|| status(503, &[("retry-after", "900")])).await,
        [Some(900); 3]
    );
    assert_eq!(
        pauses(|| status(429, &[("retry-after", "9999999")])).await,
        [Some(7 * DAY); 3]
    );
    assert_eq!(
        pauses(|| status(500, &[("retry-after", "900")])).await,
        [None; 3]
    );
    assert_eq!(pauses(|| status(503, &[])).await, [None; 3]);
    let [polled, stepped, checked] = pauses(|| status(429, &[])).await;
    assert!(
        polled.is_some() && stepped == checked && stepped.is_some(),
        "our own back-off"
    );
}

#[tokio::test(start_paused = true)]
async fn a_walk_that_ends_while_the_first_poll_commits_is_committed_behind_it() {
    let house = house(|path, _| match path {
        "/a2" => ok(SECOND),
        "/a1" => ok(ONE),
        _ => status(404, &[]),
    });
    let feed = with_import(&house, ImportSettings::default()).await;
    let Polled { state, walk, .. } = house.poll(&feed, &PollState::unpolled(URL)).await;
    let mut walk = walk.expect("it leads to an archive");
    let mut polls_wanted = Vec::new();
    let go_on = |walk| {
        let reader = ArchiveReader::new(&house.context, &house.upstream, &feed, &state);
        let stop = CancellationToken::new();
        async move { reader.go_on(walk, &stop).await.unwrap() }
    };
    while !walk.is_done() {
        pass(300).await;
        let stepped = go_on(walk).await;
        polls_wanted.push(stepped.wants_poll);
        assert!(stepped.next_at.is_some(), "its end is not committed");
        walk = stepped.walk.expect("its end is not committed");
    }
    assert_eq!(polls_wanted.last(), Some(&true));
    let requests = asked(&house).len();
    // It waits for the poll, which it asks for once.
    let stepped = go_on(walk).await;
    assert!(!stepped.wants_poll && stepped.next_at.is_some());
    // The poll that was under way had opened the pages before any was there.
    let record = house.store.feed(feed.no).await.unwrap();
    let commit = Commit {
        ready: true,
        ..Commit::nothing(&record)
    };
    house.store.commit(commit).await.unwrap();
    let stepped = go_on(stepped.walk.unwrap()).await;
    assert!(stepped.walk.is_none() && !stepped.wants_poll);
    assert_eq!(titles(&house, feed.no).await, ["one", "two", "three"]);
    let record = house.store.feed(feed.no).await.unwrap();
    assert_eq!(record.completeness.history, History::Complete);
    assert_eq!(asked(&house).len(), requests);
}

#[tokio::test(start_paused = true)]
async fn redirects_of_archives_count_and_the_walk_ends_at_its_limit() {
    // Each archive, also one that nobody named, is behind three redirects, or behind too many.
    let check = async |redirects_max: usize| {
        let hops = std::sync::atomic::AtomicUsize::new(0);
        let hops = std::sync::Arc::new(hops);
        let house = house(move |path, _| {
            let nth = hops.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            if !nth.is_multiple_of(redirects_max + 1) {
                let to = format!("http://blog.example/x{nth}{path}").leak();
                return status(302, &[("location", to)]);
            }
            ok(format!(
                "<rss version=\"2.0\" xmlns:fh=\"http://purl.org/syndication/history/1.0\"><channel>\
                <title>t</title><fh:prev>/made{nth}</fh:prev><item><guid>n{nth}</guid></item></channel></rss>"
            )
            .leak())
        });
        let import = ImportSettings {
            pages_max: 30,
            page_gap_secs: 2,
            ..ImportSettings::default()
        };
        let feed = with_import(&house, import).await;
        let running = house.start([&feed]).await;
        pass(10_000).await;
        let asked = asked(&house);
        let of_walk: Vec<_> = asked.iter().filter(|(_, path)| path != "/rss").collect();
        assert!(of_walk.len() <= 30, "{redirects_max}: {asked:?}");
        assert!(of_walk.len() > 20, "{redirects_max}: {asked:?}");
        let record = house.store.feed(feed.no).await.unwrap();
        running.stop().await;
        record.completeness.history.to_string()
    };
    assert_eq!(
        check(3).await,
        "partial (its archives take more than 30 requests)"
    );
    // A request that is redirected without end is sent again on another day.
    assert!(check(100).await.contains("more than 5 redirects"));
}
