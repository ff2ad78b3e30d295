//! Archives that are walked again: when, how fast, what that brings, and what their silence is
//! taken for.

use super::*;
use crate::{
    feed::{
        archive::History,
        item::{Content, Item, Reason},
        order::Order,
        page::PageQuery,
    },
    ingest::{FeedSpec, ImportSettings, testing::Scripted},
};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

const MONTH: u64 = 30 * DAY;

/// In most of these tests, so that less time goes by.
const AGAIN: u64 = 4 * DAY;

/// Requests for the archives of the blog below.
const READ: usize = 5;

/// Requests that prove them to be all: one further, the oldest again, and one before the newest.
const PROOF: usize = 3;

/// A blog of posts of one a day: the live document shows 12 and 11, an archive two each, down to 1.
#[derive(Clone)]
struct Blog {
    posts: Arc<Mutex<BTreeSet<u32>>>,
    /// The answer of a path instead.
    instead: Arc<Mutex<HashMap<String, Scripted>>>,
    /// Posts without a guid.
    nameless: Arc<Mutex<BTreeSet<u32>>>,
    /// Blogs from which the posts come.
    blogs: u32,
}

impl Blog {
    fn new() -> Self {
        let posts = Arc::new(Mutex::new((1..=12).collect()));
        Self {
            posts,
            instead: Arc::default(),
            nameless: Arc::default(),
            blogs: 1,
        }
    }

    fn delete(&self, posts: impl IntoIterator<Item = u32>) {
        let mut shown = self.posts.lock().unwrap();
        posts
            .into_iter()
            .for_each(|post| assert!(shown.remove(&post)));
    }

    fn says(&self, path: &str, answer: Scripted) {
        self.instead.lock().unwrap().insert(path.into(), answer);
    }

    fn recovers(&self) {
        self.instead.lock().unwrap().clear();
    }

    fn answer(&self, path: &str) -> Scripted {
        if let Some(answer) = self.instead.lock().unwrap().get(path) {
            let headers: Vec<_> = answer.headers().iter().collect();
            assert!(headers.is_empty());
            return status(answer.status().as_u16(), &[]).map(|_| *answer.body());
        }
        let page = path
            .strip_prefix("/a")
            .map_or(6, |number| number.parse::<u32>().unwrap());
        if page == 0 {
            return status(404, &[]);
        }
        ok(String::leak(self.document(&[2 * page, 2 * page - 1], page)))
    }

    fn document(&self, posts: &[u32], page: u32) -> String {
        let (shown, nameless) = (self.posts.lock().unwrap(), self.nameless.lock().unwrap());
        let item = |post: &u32| {
            let guid = match nameless.contains(post) {
                true => String::new(),
                false => format!(
                    "<guid>http://blog-{}.example/{post}</guid>",
                    post % self.blogs
                ),
            };
            format!(
                "<item>{guid}<title>p{post}</title><pubDate>Sat, {post:02} Jan 2005 10:00:00 GMT</pubDate></item>"
            )
        };
        let items: String = posts
            .iter()
            .filter(|post| shown.contains(post))
            .map(item)
            .collect();
        let prev = if page > 1 {
            format!("<fh:prev>/a{}</fh:prev>", page - 1)
        } else {
            String::new()
        };
        format!(
            "<rss version=\"2.0\" xmlns:fh=\"http://purl.org/syndication/history/1.0\"><channel><title>t</title><link>http://blog.example/</link>{prev}{items}</channel></rss>"
        )
    }

    /// Its house, and the feed, polled once a day.
    async fn house(&self) -> (PollerRig, FeedSpec) {
        self.house_in(&Arc::default()).await
    }

    /// The same with a store that gets into trouble.
    async fn house_in(&self, trouble: &Arc<Trouble>) -> (PollerRig, FeedSpec) {
        let blog = self.clone();
        let house = PollerRig::in_trouble(
            move |_, request| ready(blog.answer(request.uri().path())),
            trouble,
        );
        let mut feed = house.feed("blog", URL, DAY, DAY).await;
        feed.import = ImportSettings {
            again_secs: AGAIN,
            ..ImportSettings::default()
        };
        (house, feed)
    }
}

async fn items(house: &PollerRig, feed: &FeedSpec) -> Vec<Arc<Item>> {
    let query = PageQuery::all(feed.no, Order::MODIFIED);
    house.store.page(query).await.unwrap().items
}

/// The posts alive, in the order of T.
async fn alive(house: &PollerRig, feed: &FeedSpec) -> Vec<String> {
    let title = |item: &Arc<Item>| Some(item.entry()?.title.as_ref()?.value.clone());
    items(house, feed).await.iter().filter_map(title).collect()
}

async fn gone(house: &PollerRig, feed: &FeedSpec) -> Vec<Reason> {
    let reason = |item: &Arc<Item>| match item.content {
        Content::Gone { reason, .. } => Some(reason),
        Content::Live(_) => None,
    };
    items(house, feed).await.iter().filter_map(reason).collect()
}

async fn missed(house: &PollerRig, feed: &FeedSpec) -> usize {
    house
        .store
        .known(feed.no, Vec::new())
        .await
        .unwrap()
        .window
        .archive_suspects
        .len()
}

/// The seconds at which archives were asked for, since the second given.
fn archives_asked(house: &PollerRig, since: u64) -> Vec<(u64, String)> {
    let seen = house.seen.lock().unwrap();
    let path = |url: &str| url.trim_start_matches("http://blog.example").to_owned();
    let of_archives = seen.iter().map(|seen| (seen.at_secs, path(&seen.url)));
    of_archives
        .filter(|(at, path)| *at >= since && path.starts_with("/a"))
        .collect()
}

async fn history(house: &PollerRig, feed: &FeedSpec) -> String {
    house
        .store
        .feed(feed.no)
        .await
        .unwrap()
        .completeness
        .history
        .to_string()
}

#[tokio::test(start_paused = true)]
async fn archives_are_walked_again_after_a_month_a_page_a_minute_and_over_restarts() {
    let blog = Blog::new();
    let (house, feed) = blog.house().await;
    let feed = feed.with(|feed| feed.import = ImportSettings::default());
    let running = house.start([&feed]).await;
    pass(60).await;
    assert_eq!(
        (house.total(feed.no).await, history(&house, &feed).await),
        (12, "complete".into())
    );
    let first = archives_asked(&house, 0);
    assert_eq!(first.len(), READ + PROOF);
    let ended = first.last().unwrap().0;
    pass(DAY).await;
    running.stop().await;
    let running = house.start([&feed]).await;
    pass(MONTH - DAY - 60).await;
    assert!(
        archives_asked(&house, 60).is_empty(),
        "not before a month is over"
    );
    pass(60 + 150).await;
    // In the middle of it.
    running.stop().await;
    let running = house.start([&feed]).await;
    pass(HOUR).await;
    let again = archives_asked(&house, 60);
    let paths: Vec<&str> = again.iter().map(|(_, path)| path.as_str()).collect();
    assert_eq!(
        paths,
        ["/a5", "/a4", "/a3", "/a2", "/a1", "/a0", "/a1", "/a6"]
    );
    assert!(again[0].0 >= ended + MONTH + 60, "{again:?}");
    assert!(
        again.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 60),
        "{again:?}"
    );
    assert_eq!(house.total(feed.no).await, 12);
    let record = house.store.feed(feed.no).await.unwrap();
    assert_eq!(
        (record.last_t, record.completeness.history),
        (items(&house, &feed).await[11].modified, History::Complete)
    );
    let staged = house.store.staged(feed.no).await.unwrap();
    assert!(
        !staged.waits(),
        "a page that brings nothing keeps its traces only"
    );
    // And again.
    pass(MONTH + HOUR).await;
    assert_eq!(archives_asked(&house, 60).len(), 2 * (READ + PROOF));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nobody_walks_again_who_is_told_not_to() {
    let blog = Blog::new();
    let (house, feed) = blog.house().await;
    let feed = feed.with(|feed| feed.import.again_secs = 0);
    let running = house.start([&feed]).await;
    pass(4 * AGAIN).await;
    assert_eq!(archives_asked(&house, 0).len(), READ + PROOF);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_two_walks_a_day_apart_lack_is_gone_and_lives_again_when_it_is_back() {
    // POLLING 2.3, `absent-archive`.
    let blog = Blog::new();
    let (house, feed) = blog.house().await;
    let running = house.start([&feed]).await;
    pass(DAY).await;
    blog.delete([6]);
    pass(AGAIN).await;
    assert_eq!(
        (missed(&house, &feed).await, gone(&house, &feed).await),
        (1, vec![]),
        "once is not enough"
    );
    // What is missed is remembered.
    running.stop().await;
    let running = house.start([&feed]).await;
    pass(DAY).await;
    assert_eq!(
        (missed(&house, &feed).await, gone(&house, &feed).await),
        (0, vec![Reason::AbsentArchive])
    );
    let tombstone = items(&house, &feed)
        .await
        .into_iter()
        .find(|item| item.is_gone())
        .unwrap();
    let evidence = house
        .store
        .evidence(feed.no, tombstone.id)
        .await
        .unwrap()
        .remove(0)
        .1;
    let proof = evidence.archive_suspect.unwrap();
    assert_eq!((evidence.reason, proof.walks), (Reason::AbsentArchive, 2));
    assert!(proof.last_seen < proof.since && evidence.observed_at.secs_since(proof.since) >= DAY);
    let observed = house
        .store
        .observations(feed.no)
        .await
        .unwrap()
        .pop()
        .unwrap()
        .1;
    assert_eq!(
        (observed.counts.gone, observed.counts.entries),
        (1, 11),
        "{observed:?}"
    );
    assert_eq!(
        observed.partial.as_deref(),
        Some("archives, complete; pages read: 5")
    );
    // Nothing is missed any more, so the next walk comes in its time.
    let walks = archives_asked(&house, 0).len();
    pass(AGAIN - DAY).await;
    let asked = 3 * (READ + PROOF);
    assert_eq!((walks, archives_asked(&house, 0).len()), (asked, asked));
    blog.posts.lock().unwrap().insert(6);
    pass(DAY).await;
    assert_eq!(gone(&house, &feed).await, []);
    assert_eq!(alive(&house, &feed).await.last().unwrap(), "p6");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_any_document_shows_between_two_walks_is_not_missed_any_more() {
    let blog = Blog::new();
    let (house, feed) = blog.house().await;
    let running = house.start([&feed]).await;
    pass(DAY).await;
    blog.delete([6]);
    pass(AGAIN).await;
    assert_eq!(missed(&house, &feed).await, 1);
    blog.posts.lock().unwrap().insert(6);
    blog.says("/rss", ok(String::leak(blog.document(&[12, 11, 6], 6))));
    house.hint(feed.no);
    pass(60).await;
    assert_eq!(missed(&house, &feed).await, 0);
    blog.delete([6]);
    blog.recovers();
    pass(2 * DAY).await;
    assert_eq!(
        gone(&house, &feed).await,
        [],
        "one walk after the other begins to count anew"
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_walk_that_fails_midway_or_meets_damage_proves_nothing_and_takes_nothing_back() {
    let cut: &'static str = String::leak({
        let blog = Blog::new();
        blog.document(&[2, 1], 1)
            .replace("</channel></rss>", "<item><guid>x</guid>")
    });
    let not_there = || status(410, &[]);
    let empty = "<rss version=\"2.0\"><channel><title>t</title></channel></rss>";
    // A page that is damaged or empty is asked for once more at once.
    let answers = [
        (not_there(), "missing (410)", READ),
        (ok("nonsense"), "no feed", READ),
        (ok(cut), "damaged", READ + 1 + PROOF),
        (ok(empty), "no entries", READ + 1),
        (ok(different_feed()), "of another feed", READ),
    ];
    for (answer, why, requests) in answers {
        let blog = Blog::new();
        let (house, feed) = blog.house().await;
        let running = house.start([&feed]).await;
        pass(DAY).await;
        blog.delete([6]);
        blog.says("/a1", answer);
        pass(AGAIN).await;
        assert_eq!(
            (missed(&house, &feed).await, gone(&house, &feed).await),
            (0, vec![]),
            "{why}"
        );
        let record = house.store.feed(feed.no).await.unwrap();
        assert_eq!(
            record.completeness.history,
            History::Complete,
            "what was complete stays so"
        );
        let walked = record.completeness.last_walk.unwrap();
        assert!(walked.found.to_string().contains(why), "{walked:?}");
        assert_eq!(archives_asked(&house, DAY).len(), requests, "{why}");
        assert_eq!(house.total(feed.no).await, 12, "{why}");
        // The archives held it once, which is not forgotten.
        blog.recovers();
        pass(AGAIN).await;
        assert_eq!(
            (missed(&house, &feed).await, gone(&house, &feed).await),
            (1, vec![]),
            "{why}"
        );
        pass(DAY + HOUR).await;
        assert_eq!(gone(&house, &feed).await, [Reason::AbsentArchive], "{why}");
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn too_much_missing_at_once_is_told_and_not_believed() {
    let blog = Blog::new();
    let (house, feed) = blog.house().await;
    let running = house.start([&feed]).await;
    pass(DAY).await;
    blog.delete([3, 6, 8]);
    pass(AGAIN).await;
    assert_eq!(
        (missed(&house, &feed).await, gone(&house, &feed).await),
        (0, vec![])
    );
    let record = house.store.feed(feed.no).await.unwrap();
    let remark = record.completeness.last_walk.unwrap().remark.unwrap();
    assert!(remark.contains("lack 3 of 10"), "{remark}");
    let observed = house
        .store
        .observations(feed.no)
        .await
        .unwrap()
        .pop()
        .unwrap()
        .1;
    assert_eq!(observed.remark, Some(remark));
    pass(AGAIN - DAY).await;
    assert_eq!(
        archives_asked(&house, DAY).len(),
        READ + PROOF,
        "nor is anybody asked earlier for that"
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_has_only_a_weak_key_is_never_missed_in_archives() {
    let blog = Blog::new();
    blog.nameless.lock().unwrap().insert(6);
    let (house, feed) = blog.house().await;
    let running = house.start([&feed]).await;
    pass(DAY).await;
    blog.delete([6, 3]);
    pass(AGAIN + 2 * DAY).await;
    assert_eq!(
        (alive(&house, &feed).await.len(), gone(&house, &feed).await),
        (11, vec![Reason::AbsentArchive])
    );
    assert!(
        alive(&house, &feed).await.contains(&"p6".to_owned()),
        "the neighbour of 4 and 8 is kept"
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_history_with_a_gap_is_mended_by_the_next_walk_and_what_it_finds_comes_after() {
    // H-12.
    let blog = Blog::new();
    blog.says("/a2", status(410, &[]));
    let (house, feed) = blog.house().await;
    let running = house.start([&feed]).await;
    pass(DAY).await;
    assert_eq!(
        history(&house, &feed).await,
        "partial (a page of the archives is missing (410))"
    );
    assert_eq!(house.total(feed.no).await, 8);
    blog.recovers();
    pass(AGAIN).await;
    assert_eq!(history(&house, &feed).await, "complete");
    let titles = alive(&house, &feed).await;
    assert_eq!(
        titles[8..],
        ["p1", "p2", "p3", "p4"],
        "the next T, oldest first"
    );
    let observed = house
        .store
        .observations(feed.no)
        .await
        .unwrap()
        .pop()
        .unwrap()
        .1;
    assert_eq!(
        (observed.counts.new, observed.counts.missing),
        (4, 0),
        "{observed:?}"
    );
    running.stop().await;
}

/// A page of another blog.
fn different_feed() -> &'static str {
    let blog = Blog::new();
    let page = blog
        .document(&[2, 1], 1)
        .replace("<title>t</title>", "<title>Other</title>");
    String::leak(
        page.replace("blog.example", "other.example")
            .replace("blog-0", "other"),
    )
}

#[tokio::test(start_paused = true)]
async fn a_first_walk_that_meets_damage_nothing_or_another_blog_is_not_complete_until_the_next_one_is()
 {
    let page = Blog::new().document(&[6, 5], 3);
    let cut: &'static str = String::leak(page[..page.find("<title>p5").unwrap()].to_owned());
    let empty = "<rss version=\"2.0\"><channel><title>t</title></channel></rss>";
    let answers = [
        (cut, "partial (a page of its archives is damaged)", 11),
        (
            empty,
            "partial (a page of its archives holds no entries)",
            6,
        ),
        (
            different_feed(),
            "partial (a page of its archives is of another feed)",
            6,
        ),
    ];
    for (answer, expect, held) in answers {
        let blog = Blog::new();
        blog.says("/a3", ok(answer));
        let (house, feed) = blog.house().await;
        let running = house.start([&feed]).await;
        pass(DAY).await;
        assert_eq!(history(&house, &feed).await, expect);
        let titles = alive(&house, &feed).await;
        assert_eq!(titles.len(), held, "{titles:?}");
        blog.instead.lock().unwrap().remove("/a3");
        pass(AGAIN).await;
        assert_eq!(history(&house, &feed).await, "complete", "after {expect}");
        assert_eq!(
            (alive(&house, &feed).await.len(), gone(&house, &feed).await),
            (12, vec![])
        );
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_comes_whole_the_second_time_costs_a_minute() {
    let (blog, page) = (Blog::new(), Blog::new().document(&[6, 5], 3));
    // Between two posts, so that each of those shown is whole.
    blog.says(
        "/a3",
        ok(String::leak(
            page[..page.rfind("<item>").unwrap()].to_owned(),
        )),
    );
    let (house, feed) = blog.house().await;
    let running = house.start([&feed]).await;
    pass(30).await;
    blog.recovers();
    pass(90).await;
    assert_eq!(
        (house.total(feed.no).await, history(&house, &feed).await),
        (12, "complete".into())
    );
    assert_eq!(archives_asked(&house, 0).len(), READ + 1 + PROOF);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_publisher_in_trouble_is_asked_for_its_feed_only() {
    let blog = Blog::new();
    let (house, feed) = blog.house().await;
    let running = house.start([&feed]).await;
    pass(DAY).await;
    blog.says("/rss", status(500, &[]));
    pass(AGAIN + 3 * DAY).await;
    assert!(archives_asked(&house, DAY).is_empty());
    blog.recovers();
    pass(3 * DAY).await;
    assert_eq!(archives_asked(&house, DAY).len(), READ + PROOF);
    assert_eq!(house.total(feed.no).await, 12);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_documents_miss_and_archives_show_after_that_is_not_suspected_any_more() {
    // POLLING 2.3, step 8.
    let blog = Blog::new();
    blog.says(
        "/rss",
        ok(String::leak(blog.document(&[12, 11, 10, 9, 8, 7], 6))),
    );
    let (house, feed) = blog.house().await;
    let running = house.start([&feed]).await;
    pass(AGAIN - HOUR).await;
    blog.says(
        "/rss",
        ok(String::leak(blog.document(&[12, 11, 10, 8, 7, 6], 6))),
    );
    let suspects = async || {
        let known = house.store.known(feed.no, Vec::new()).await.unwrap();
        known.window.absence.suspects().count()
    };
    pass(HOUR + 30).await;
    assert_eq!(suspects().await, 1);
    pass(HOUR).await;
    assert_eq!(
        (archives_asked(&house, DAY).len(), suspects().await),
        (READ + PROOF, 0)
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_archives_say_is_deleted_ends_once_and_is_not_brought_back_by_older_ones() {
    let gone = "<at:deleted-entry xmlns:at='http://purl.org/atompub/tombstones/1.0' ref='http://blog-0.example/6' when='2005-02-01T00:00:00Z'/>";
    for is_shown in [false, true] {
        let blog = Blog::new();
        let (house, feed) = blog.house().await;
        let running = house.start([&feed]).await;
        pass(AGAIN + HOUR).await;
        if !is_shown {
            blog.delete([6]);
            pass(AGAIN).await;
            assert_eq!(missed(&house, &feed).await, 1);
        }
        let said = blog
            .document(&[10, 9], 5)
            .replace("</channel>", &format!("{gone}</channel>"));
        blog.says("/a5", ok(String::leak(said)));
        for _ in 0..2 {
            pass(AGAIN).await;
            assert_eq!(
                self::gone(&house, &feed).await,
                [Reason::Explicit],
                "shown: {is_shown}"
            );
            assert_eq!(missed(&house, &feed).await, 0);
        }
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_planet_drops_is_not_gone() {
    let blog = Blog {
        blogs: 4,
        ..Blog::new()
    };
    blog.says(
        "/rss",
        ok(String::leak(blog.document(&[12, 11, 10, 9, 8], 6))),
    );
    let (house, feed) = blog.house().await;
    let running = house.start([&feed]).await;
    pass(DAY).await;
    blog.delete([4]);
    pass(AGAIN + 2 * DAY).await;
    assert_eq!(
        (missed(&house, &feed).await, gone(&house, &feed).await),
        (0, vec![])
    );
    assert_eq!(archives_asked(&house, DAY).len(), READ + PROOF);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_walk_proved_is_not_lost_when_its_commit_fails_or_conflicts_or_comes_after_a_restart()
 {
    let blog = Blog::new();
    let trouble = Arc::new(Trouble::default());
    let (house, feed) = blog.house_in(&trouble).await;
    let running = house.start([&feed]).await;
    pass(DAY).await;
    blog.delete([6]);
    trouble.conflicts.store(1, Ordering::Relaxed);
    pass(AGAIN).await;
    assert_eq!(
        (
            missed(&house, &feed).await,
            trouble.conflicts.load(Ordering::Relaxed)
        ),
        (1, 0)
    );
    // The last page is read in time, and cannot be committed until the process is another one.
    trouble.failing_commits.store(usize::MAX, Ordering::Relaxed);
    pass(DAY - HOUR).await;
    let tries = usize::MAX - trouble.failing_commits.load(Ordering::Relaxed);
    assert!(
        (2..=24 * 12 + 10).contains(&tries),
        "a store that fails is tried each five minutes at last: {tries} times"
    );
    assert_eq!(archives_asked(&house, DAY).len(), 2 * (READ + PROOF));
    assert_eq!(
        (missed(&house, &feed).await, gone(&house, &feed).await),
        (1, vec![])
    );
    running.stop().await;
    trouble.failing_commits.store(0, Ordering::Relaxed);
    let running = house.start([&feed]).await;
    pass(60).await;
    assert_eq!(
        (missed(&house, &feed).await, gone(&house, &feed).await),
        (0, vec![Reason::AbsentArchive])
    );
    assert_eq!(
        archives_asked(&house, DAY).len(),
        2 * (READ + PROOF),
        "nothing of it is asked for again"
    );
    running.stop().await;
}
