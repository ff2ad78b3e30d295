//! Archives of every kind, read from a publisher on loopback into a store on disk: all of it,
//! oldest first, whatever is killed in the middle, and with a consumer that mirrors meanwhile. Real
//! sockets, short configured times.
//!
//! Rows: H-6, H-7, H-8, H-14, H-15, H-22, H-25; POLLING 3.1; DESIGN section 4, "First import".

use crate::{
    pipeline::Mirror,
    polling::{Polling, in_folder},
};
use everfeed::{
    app::App,
    feed::{archive::History, order::Order, page::PageQuery},
    ingest::ImportSettings,
};
use http::Method;
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    ops::Deref,
    path::Path,
    sync::{Arc, Mutex},
};
use testkit::{
    client::ask,
    place::Place,
    publisher::{Answer, Publisher, with_headers},
    wait::{GLANCE, PATIENCE, until},
};
use tokio::time::{sleep, timeout};
use url::Url;

/// Documents by path and query; anything else is 404, and nothing at all 410. `{site}` in them is
/// the publisher's own address.
type Documents = BTreeMap<String, String>;

/// A publisher of documents. Who asks for the silent path gets no answer.
struct Archives {
    publisher: Publisher,
    silent: Arc<Mutex<Option<String>>>,
}

impl Archives {
    async fn start(documents: Documents) -> Self {
        let silent: Arc<Mutex<Option<String>>> = Arc::default();
        let hushed = silent.clone();
        let publisher = Publisher::of(move |asked| {
            assert!(
                asked.header("if-none-match").is_empty(),
                "an import asks unconditionally"
            );
            if hushed.lock().unwrap().as_deref() == Some(asked.path()) {
                return Answer::Silence;
            }
            let (status, body) = match documents.get(asked.path()).map(String::as_str) {
                None => (404, "nothing"),
                Some("") => (410, "nothing any more"),
                Some(body) => (200, body),
            };
            let etag = format!("\"{}\"", asked.path());
            let site = format!("http://{}", asked.header("host"));
            with_headers(status, &[("etag", &etag)], body.replace("{site}", &site))
        });
        Self {
            publisher: publisher.await,
            silent,
        }
    }

    fn silence(&self, path: Option<&str>) {
        *self.silent.lock().unwrap() = path.map(str::to_owned);
    }
}

impl Deref for Archives {
    type Target = Publisher;

    fn deref(&self) -> &Publisher {
        &self.publisher
    }
}

/// Starts to read the archives of a feed, in the store of a folder.
async fn start(folder: &Path, url: &str, import: ImportSettings) -> Polling {
    let mut pipeline = in_folder(folder, url).await;
    pipeline.feed.import = import;
    pipeline.feed.aliases = vec![Url::parse("https://public.example/rss").unwrap()];
    Polling::start(pipeline).await
}

/// Waits until the feed is served and its archives are read.
async fn read(polling: &Polling) -> History {
    let read = async {
        loop {
            let record = polling.store.feed(polling.feed).await.unwrap();
            if record.is_ready() && record.completeness.history != History::Running {
                return record.completeness.history;
            }
            sleep(GLANCE).await;
        }
    };
    timeout(PATIENCE, read)
        .await
        .expect("archives come to an end")
}

/// The titles in the order of T.
async fn titles(polling: &Polling) -> Vec<String> {
    let query = PageQuery::all(polling.feed, Order::MODIFIED);
    let page = polling.store.page(query).await.unwrap();
    page.items
        .iter()
        .map(|item| item.entry().unwrap().title.as_ref().unwrap().value.clone())
        .collect()
}

const AT_ONCE: ImportSettings = ImportSettings {
    serve_after_secs: 60,
    pages_max: 1000,
    page_gap_secs: 0,
    loopback_gap_secs: 0,
    again_secs: 2_592_000,
};

/// An RSS document of these posts; `head` goes into the channel.
fn rss(posts: &[u32], namespaces: &str, head: &str) -> String {
    let item = |n: &u32| {
        format!(
            "<item><guid isPermaLink=\"false\">post-{n}</guid><title>p{n}</title>\
             <pubDate>Sat, {n:02} Jan 2005 10:00:00 GMT</pubDate></item>"
        )
    };
    let items: String = posts.iter().map(item).collect();
    format!(
        "<rss version=\"2.0\" {namespaces}><channel><title>blog</title>{head}{items}</channel></rss>"
    )
}

/// An Atom document of these posts, in a namespace.
fn atom(posts: &[u32], ns: &str, namespaces: &str, head: &str) -> String {
    let (published, updated) = if ns.ends_with("ns#") {
        ("issued", "modified")
    } else {
        ("published", "updated")
    };
    let entry = |n: &u32| {
        let date = format!("2005-01-{n:02}T10:00:00Z");
        format!(
            "<entry><id>tag:x,2005:{n}</id><title>p{n}</title><{published}>{date}</{published}>\
             <{updated}>{date}</{updated}></entry>"
        )
    };
    let entries: String = posts.iter().map(entry).collect();
    format!(
        "<feed xmlns=\"{ns}\" {namespaces}><id>tag:x,2005:blog</id><title>blog</title>{head}{entries}</feed>"
    )
}

fn documents(rows: &[(&str, String)]) -> Documents {
    rows.iter()
        .map(|(path, text)| ((*path).to_owned(), text.clone()))
        .collect()
}

/// Reads all of it and holds it against the posts 1..=6, oldest first.
async fn check(what: &str, rows: &[(&str, String)], requests: &[&str]) {
    let publisher = Archives::start(documents(rows)).await;
    let folder = tempfile::tempdir().unwrap();
    let polling = start(folder.path(), &publisher.url("/feed"), AT_ONCE).await;
    assert_eq!(
        read(&polling).await,
        History::Complete,
        "{what}: {:?}",
        publisher.paths()
    );
    assert_eq!(
        titles(&polling).await,
        ["p1", "p2", "p3", "p4", "p5", "p6"],
        "{what}"
    );
    assert_eq!(publisher.paths(), requests, "{what}");
    assert_eq!(
        polling
            .store
            .known(polling.feed, vec![])
            .await
            .unwrap()
            .window
            .entries
            .len(),
        2,
        "{what}"
    );
    let staged = polling.store.staged(polling.feed).await.unwrap();
    assert!(
        !staged.waits() && staged.walk.unwrap().is_done(),
        "{what}: only traces are kept"
    );
    polling.stop().await;
}

#[tokio::test]
async fn feed_history_is_read_in_every_namespace_it_was_ever_written_in() {
    // H-7, H-14, H-15: prev as a reference, with white space around it, in RSS and three Atoms.
    for history in [
        "http://purl.org/syndication/history/1.0",
        "[TBD]",
        "[[TBD]]",
    ] {
        let namespaces = format!("xmlns:history=\"{history}\"");
        let prev = |path: &str| {
            format!(
                "<history:stateful>true</history:stateful><history:prev>\n {path} </history:prev>"
            )
        };
        // One further, the last one again later, and one before the first: that proves the end.
        let asked = ["/feed", "/a2", "/a1", "/a0", "/feed", "/a1", "/a3"];
        let rows = [
            ("/feed", rss(&[6, 5], &namespaces, &prev("/a2"))),
            ("/a2", rss(&[4, 3], &namespaces, &prev("a1"))),
            ("/a1", rss(&[2, 1], &namespaces, "")),
        ];
        check(&format!("RSS, {history}"), &rows, &asked).await;
        for ns in [
            "http://www.w3.org/2005/Atom",
            "http://purl.org/atom/ns#draft-ietf-atompub-format-09",
            "http://purl.org/atom/ns#",
        ] {
            let rows = [
                ("/feed", atom(&[6, 5], ns, &namespaces, &prev("{site}/a2"))),
                ("/a2", atom(&[4, 3], ns, &namespaces, &prev("/a1"))),
                ("/a1", atom(&[2, 1], ns, &namespaces, "")),
            ];
            check(&format!("{ns}, {history}"), &rows, &asked).await;
        }
    }
}

const ATOM: &str = "http://www.w3.org/2005/Atom";

fn link(rel: &str, href: &str) -> String {
    format!("<link rel=\"{rel}\" href=\"{href}\"/>")
}

#[tokio::test]
async fn archives_of_rfc_5005_are_read_even_where_they_name_the_public_address() {
    let rows = [
        (
            "/feed",
            atom(
                &[6, 5],
                ATOM,
                "",
                &link("prev-archive", "https://public.example/a2"),
            ),
        ),
        (
            "/a2",
            atom(
                &[4, 3],
                ATOM,
                "",
                &link("prev-archive", "https://public.example/a1"),
            ),
        ),
        // H-25: the version that was updated last counts, and 4 stands in two archives.
        ("/a1", atom(&[4, 2, 1], ATOM, "", "")),
    ];
    check(
        "RFC 5005",
        &rows,
        &["/feed", "/a2", "/a1", "/a0", "/feed", "/a1", "/a3"],
    )
    .await;
}

#[tokio::test]
async fn blogger_pages_are_read_by_links_or_by_counting() {
    let search = "xmlns:openSearch=\"http://a9.com/-/spec/opensearchrss/1.0/\"";
    let paging = |first: u32| {
        format!(
            "<openSearch:totalResults>6</openSearch:totalResults>\
             <openSearch:startIndex>{first}</openSearch:startIndex>\
             <openSearch:itemsPerPage>2</openSearch:itemsPerPage>"
        )
    };
    let head = |first: u32, next: &str| {
        let generator =
            "<generator version=\"7.00\" uri=\"http://www.blogger.com\">Blogger</generator>";
        format!("{generator}{}{next}", paging(first))
    };
    let next = |url: &str| link("next", url);
    let rows = [
        (
            "/feed",
            atom(
                &[6, 5],
                ATOM,
                search,
                &head(1, &next("{site}/feed?start-index=3")),
            ),
        ),
        (
            "/feed?start-index=3",
            atom(
                &[4, 3],
                ATOM,
                search,
                &head(3, &next("{site}/feed?start-index=5")),
            ),
        ),
        (
            "/feed?start-index=5",
            atom(&[2, 1], ATOM, search, &head(5, "")),
        ),
    ];
    check(
        "by links",
        &rows,
        &[
            "/feed",
            "/feed?start-index=3",
            "/feed?start-index=5",
            "/feed",
        ],
    )
    .await;
    let rows = [
        ("/feed", atom(&[6, 5], ATOM, search, &paging(1))),
        (
            "/feed?startIndex=2",
            atom(&[5, 4, 3], ATOM, search, &paging(2)),
        ),
        (
            "/feed?startIndex=4",
            atom(&[3, 2, 1], ATOM, search, &paging(4)),
        ),
    ];
    let asked = [
        "/feed",
        "/feed?startIndex=2",
        "/feed?startIndex=4",
        "/feed?startIndex=6",
        "/feed",
    ];
    check("by counting", &rows, &asked).await;
}

#[tokio::test]
async fn wordpress_is_paged_until_404_and_serendipity_gives_everything_at_once() {
    let wordpress = "<generator>https://wordpress.org/?v=6.0</generator>";
    let rows = [
        ("/feed", rss(&[6, 5], "", wordpress)),
        ("/feed?paged=1", rss(&[6, 5], "", wordpress)),
        ("/feed?paged=2", rss(&[4, 3, 2], "", wordpress)),
        ("/feed?paged=3", rss(&[1], "", wordpress)),
    ];
    let edited = "/feed?paged=1&orderby=modified&order=ASC";
    // The page behind the last is asked for twice, one further, and far behind; then each page once
    // more, down to the first.
    let asked = [
        "/feed",
        edited,
        "/feed?paged=2",
        "/feed?paged=3",
        "/feed?paged=4",
        "/feed?paged=5",
        "/feed?paged=8",
        "/feed",
        "/feed?paged=4",
        "/feed?paged=3",
        "/feed?paged=2",
        "/feed?paged=1",
    ];
    check("WordPress", &rows, &asked).await;
    let serendipity = "<generator>Serendipity 2.3 - http://www.s9y.org/</generator>";
    let rows = [
        ("/feed", rss(&[6, 5], "", serendipity)),
        ("/feed?all=1", rss(&[1, 2, 3, 4, 5, 6], "", serendipity)),
    ];
    check("Serendipity", &rows, &["/feed", "/feed?all=1", "/feed"]).await;
}

/// Six posts in four documents.
fn four() -> Vec<(&'static str, String)> {
    vec![
        (
            "/feed",
            atom(&[6, 5], ATOM, "", &link("prev-archive", "/a3")),
        ),
        ("/a3", atom(&[4], ATOM, "", &link("prev-archive", "/a2"))),
        ("/a2", atom(&[3, 2], ATOM, "", &link("prev-archive", "/a1"))),
        ("/a1", atom(&[1], ATOM, "", "")),
    ]
}

#[tokio::test]
async fn a_process_that_is_killed_in_the_middle_goes_on_where_it_was() {
    let publisher = Archives::start(documents(&four())).await;
    let folder = tempfile::tempdir().unwrap();
    publisher.silence(Some("/a2"));
    let polling = start(folder.path(), &publisher.url("/feed"), AT_ONCE).await;
    publisher.asked_for("/a2").await;
    let record = polling.store.feed(polling.feed).await.unwrap();
    assert_eq!(
        (
            record.is_ready(),
            record.items.total,
            record.completeness.history
        ),
        (false, 0, History::Running)
    );
    polling.kill().await;

    publisher.silence(None);
    let before = publisher.paths().len();
    let polling = start(folder.path(), &publisher.url("/feed"), AT_ONCE).await;
    assert_eq!(read(&polling).await, History::Complete);
    assert_eq!(titles(&polling).await, ["p1", "p2", "p3", "p4", "p5", "p6"]);
    let asked = publisher.paths().split_off(before);
    assert!(
        asked.iter().all(|path| path != "/a3"),
        "what was staged is not asked for again: {asked:?}"
    );
    assert_eq!(
        asked.iter().filter(|path| *path == "/a1").count(),
        2,
        "{asked:?}"
    );
    assert_eq!(
        asked.iter().filter(|path| *path == "/feed").count(),
        1,
        "{asked:?}"
    );
    polling.stop().await;
}

#[tokio::test]
async fn a_consumer_that_mirrors_during_the_import_ends_with_all_of_it() {
    let publisher = Archives::start(documents(&four())).await;
    let folder = tempfile::tempdir().unwrap();
    publisher.silence(Some("/a2"));
    let import = ImportSettings {
        serve_after_secs: 1,
        ..AT_ONCE
    };
    let polling = start(folder.path(), &publisher.url("/feed"), import).await;
    publisher.asked_for("/a2").await;
    let mut mirror = Mirror::default();
    until(
        "the feed is served although its archives are not read",
        async || polling.store.feed(polling.feed).await.unwrap().is_ready(),
    )
    .await;
    assert_eq!(
        polling
            .store
            .feed(polling.feed)
            .await
            .unwrap()
            .completeness
            .history,
        History::Running
    );
    mirror.pull(&*polling.store, polling.feed).await;
    assert_eq!(mirror.items.len(), 3, "what was read by then");

    // The publisher answers again after a restart.
    polling.kill().await;
    publisher.silence(None);
    let polling = start(folder.path(), &publisher.url("/feed"), import).await;
    assert_eq!(read(&polling).await, History::Complete);
    mirror.pull(&*polling.store, polling.feed).await;
    assert!(mirror.equals(&*polling.store, polling.feed).await);
    let late = ["p4", "p5", "p6", "p1", "p2", "p3"];
    assert_eq!(
        titles(&polling).await,
        late,
        "what is found late comes after, oldest first"
    );
    polling.stop().await;
}

/// A house of one feed, and what it answers with JSON.
async fn house(place: &Place, publisher: &Archives, import: &str) -> App {
    let feed = format!(
        "[[feed]]\nname = \"blog\"\nurl = \"{}\"\nimport = {{ page_gap_secs = 0, {import} }}\n",
        publisher.url("/feed")
    );
    crate::start(place, "public_url = \"http://feeds.example\"", &feed).await
}

async fn get(at: SocketAddr, target: &str) -> (u16, serde_json::Value) {
    let answer = ask(
        at,
        Method::GET,
        target,
        &[("accept", "application/json")],
        "",
    )
    .await
    .unwrap();
    (
        answer.status,
        serde_json::from_slice(&answer.body).unwrap_or_default(),
    )
}

async fn served(app: &App) {
    until("the feed is served", async || {
        get(app.address(), "/feeds/blog.json").await.0 == 200
    })
    .await;
}

#[tokio::test]
async fn the_operator_and_consumers_are_told_how_far_back_it_reaches_and_why() {
    // H-11.
    let mut rows = four();
    rows[3].1.clear();
    let publisher = Archives::start(documents(&rows)).await;
    let place = Place::unbound();
    let app = house(&place, &publisher, "again_secs = 864000").await;
    served(&app).await;
    let (_, page) = get(app.address(), "/feeds/blog.json").await;
    assert_eq!(page["totalItems"], 5, "what there is is kept (H-12)");
    let (_, about) = get(app.address(), "/feeds/blog/about").await;
    let why = "a page of the archives is missing (410)";
    assert_eq!(
        (about["history"].as_str(), about["history_reason"].as_str()),
        (Some("partial"), Some(why))
    );
    let (_, status) = get(app.admin_address(), "/status").await;
    assert_eq!(status["feeds"][0]["history"], format!("partial ({why})"));
    let (_, told) = get(app.admin_address(), "/explain/blog").await;
    assert_eq!(told["history"], format!("partial ({why})"));
    let line = |at: usize| told["archives"][at].as_str().unwrap_or_default().to_owned();
    let way = "by archives that name one another; pages: 2";
    assert!(
        line(0).contains(way) && line(0).ends_with(&format!("partial ({why})")),
        "{told}"
    );
    assert!(line(1).starts_with("read again from 20"), "{told}");
    timeout(PATIENCE, app.stop())
        .await
        .expect("a stop is bounded")
        .unwrap();
}

#[tokio::test]
async fn the_operator_is_told_how_far_a_walk_is_and_of_what_came_late() {
    let publisher = Archives::start(documents(&four())).await;
    let place = Place::unbound();
    publisher.silence(Some("/a2"));
    let app = house(&place, &publisher, "serve_after_secs = 1").await;
    served(&app).await;
    publisher.asked_for("/a2").await;
    let (_, told) = get(app.admin_address(), "/explain/blog").await;
    assert_eq!(
        told["history"],
        "running: its archives are being read for the first time"
    );
    let line = told["archives"][0].as_str().unwrap_or_default();
    assert!(
        line.ends_with("by archives that name one another; pages so far: 1; under way"),
        "{told}"
    );
    timeout(PATIENCE, app.stop())
        .await
        .expect("a stop is bounded")
        .unwrap();

    publisher.silence(None);
    let app = house(&place, &publisher, "serve_after_secs = 1").await;
    let told = async {
        loop {
            let (_, told) = get(app.admin_address(), "/explain/blog").await;
            if told["history"] == "complete" {
                return told;
            }
            sleep(GLANCE).await;
        }
    };
    let told = timeout(PATIENCE, told)
        .await
        .expect("the archives are read");
    let late = told["observations"].as_array().unwrap().last().unwrap();
    assert_eq!(late["partial"], "archives, complete; pages read: 3");
    assert_eq!(
        (late["counts"][0].as_u64(), late["counts"][1].as_u64()),
        (Some(6), Some(3)),
        "{late}"
    );
    timeout(PATIENCE, app.stop())
        .await
        .expect("a stop is bounded")
        .unwrap();
}
