//! Who reads the feeds, as operators and owners see it: from requests to the figures.

use crate::EVERFEED;
use http::Method;
use serde_json::Value;
use testkit::{
    client::{Answer, ask, get},
    place::{Place, feed},
    process::Process,
    publisher::{Publisher, ok, rss},
    wait::until,
};

const FEEDLY: &str =
    "Feedly/1.0 (+http://www.feedly.com/fetcher.html; 120 subscribers; like FeedFetcher-Google)";
const SECRET: &str = "b6f1c1a9d2e04c7f8a35";

/// An old site with a feed, whose other pages say so.
async fn publisher() -> Publisher {
    Publisher::of(|asked| match asked.path() {
        "/feed.xml" | "/other.xml" => rss(3),
        _ => ok("text/html", "the old server"),
    })
    .await
}

fn configuration(publisher: &Publisher, other: &str) -> String {
    let origin = publisher.url("");
    format!(
        "[[site]]\norigin = \"{}\"\nfeeds = [\"/feed.xml\"]\nreaders_secret = \"{SECRET}\"\n{other}",
        origin.trim_end_matches('/')
    )
}

async fn start(publisher: &Publisher) -> Process {
    let place = Place::free();
    let other = feed("other", &publisher.url("/other.xml"), "");
    place.configure("", &configuration(publisher, &other));
    let mut process = Process::new(EVERFEED, place, "error");
    process.start();
    process
        .place
        .answers("/feeds/site-feed-xml.json", 200)
        .await;
    process.place.answers("/feeds/other.json", 200).await;
    process
}

/// Asks so many times.
async fn read(
    process: &Process,
    path: &str,
    agent: &str,
    more: &[(&str, &str)],
    times: usize,
) -> Answer {
    let mut headers = vec![("user-agent", agent)];
    headers.extend(more);
    let mut answer = None;
    for _ in 0..times {
        answer = ask(process.place.consumers, Method::GET, path, &headers, "").await;
    }
    answer.unwrap()
}

/// The rows of a feed, by the name of the software.
fn row<'a>(figures: &'a Value, feed: &str, software: &str) -> &'a Value {
    let named = |key: &'static str, name: &str| {
        let name = name.to_owned();
        move |it: &&Value| it[key] == name.as_str()
    };
    let feeds = figures["feeds"].as_array().unwrap();
    let of_feed = feeds
        .iter()
        .find(named("feed", feed))
        .expect("the feed is listed");
    let rows = of_feed["software"].as_array().unwrap();
    let row = rows.iter().find(named("software", software));
    row.unwrap_or_else(|| panic!("{software} is not in {of_feed}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_are_counted_wherever_they_ask_and_shown_to_operator_and_owner() {
    let publisher = publisher().await;
    let process = start(&publisher).await;
    // At the address of the old feed: the first answer has the validator of the others.
    let first = read(&process, "/feed.xml", FEEDLY, &[], 1).await;
    assert_eq!(first.status, 200);
    let etag = first.header("etag").to_owned();
    let again = read(
        &process,
        "/feed.xml",
        FEEDLY,
        &[("if-none-match", &etag)],
        8,
    )
    .await;
    assert_eq!(again.status, 304);
    // At its own address, and as a reader with a position.
    read(&process, "/feeds/site-feed-xml.atom", FEEDLY, &[], 1).await;
    let position = "/feeds/site-feed-xml.json?since=time:1&timeout=0";
    read(&process, position, "Mirror/3.1", &[], 2).await;
    read(
        &process,
        "/feeds/site-feed-xml.json",
        "PushyReader/1.0",
        &[],
        30,
    )
    .await;
    let million = "Bloglovin/1.0 (1000000000000 subscribers)";
    read(&process, "/feed.xml", million, &[], 1).await;
    read(&process, "/feed.xml", "<script>alert(1)</script>", &[], 1).await;
    read(
        &process,
        "/feeds/other.json",
        "OtherSite/1 (7 readers)",
        &[],
        1,
    )
    .await;
    // No reading: a description, and a page of the site.
    read(&process, "/feeds/site-feed-xml/about", "Curious/1", &[], 1).await;
    read(&process, "/page", "Curious/1", &[], 1).await;

    let figures = get(process.place.operator, "/readers").await.json();
    let feedly = row(&figures, "site-feed-xml", "Feedly");
    assert_eq!(
        (&feedly["claimed"], &feedly["kind"]),
        (&120.into(), &"service".into())
    );
    assert_eq!(
        feedly["day"],
        serde_json::json!({ "requests": 10, "conditional": 8 })
    );
    assert_eq!(feedly["clients_about"], 1);
    let mirror = row(&figures, "site-feed-xml", "Mirror");
    assert_eq!(mirror["day"]["conditional"], 2);
    let pushy = row(&figures, "site-feed-xml", "PushyReader");
    assert!(
        pushy["misbehaves"][0]
            .as_str()
            .unwrap()
            .contains("If-None-Match"),
        "{pushy}"
    );
    let forged = row(&figures, "site-feed-xml", "Bloglovin");
    assert!(
        forged["claimed"].is_null() && forged["misbehaves"][0].is_string(),
        "{forged}"
    );
    assert!(!figures.to_string().contains("Curious"), "{figures}");
    assert!(!figures.to_string().contains("127.0.0.1"), "{figures}");
    let one = get(process.place.operator, "/readers?name=other")
        .await
        .json();
    assert_eq!(one["feeds"].as_array().unwrap().len(), 1);

    let (code, told) = process.everfeed(&["readers"]);
    assert!(
        code == 0 && told.contains("site-feed-xml") && told.contains("misbehaving"),
        "{told}"
    );
    let (code, told) = process.everfeed(&["readers", "site-feed-xml"]);
    assert!(
        code == 0 && told.contains("claimed readers: 120; push subscribers: 0"),
        "{told}"
    );
    assert!(
        told.contains("Feedly") && !told.contains("OtherSite"),
        "{told}"
    );
    let (code, told) = process.everfeed(&["readers", "--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert!(code == 0 && row(&told, "other", "OtherSite")["claimed"] == 7);
    let (_, told) = process.everfeed(&["status"]);
    assert!(
        told.contains("readers claimed: 127; requests of the last day: "),
        "{told}"
    );

    let page = get(process.place.operator, "/overview/site-feed-xml")
        .await
        .text();
    assert!(
        page.contains("<h2>Readers</h2>") && page.contains("Feedly"),
        "{page}"
    );
    let page = get(process.place.consumers, &format!("/readers/{SECRET}")).await;
    assert_eq!(
        (page.status, page.header("cache-control")),
        (200, "private, no-store")
    );
    assert_eq!(page.header("x-robots-tag"), "noindex, nofollow");
    let page = page.text();
    assert!(
        page.contains("Feedly") && page.contains("PushyReader"),
        "{page}"
    );
    assert!(
        !page.contains("OtherSite") && !page.contains("<script"),
        "{page}"
    );
    let wrong = get(process.place.consumers, "/readers/b6f1c1a9d2e04c7f8a36").await;
    assert_eq!(wrong.text(), "the old server");
}

#[tokio::test(flavor = "multi_thread")]
async fn software_that_goes_on_asking_for_a_feed_that_is_gone_is_named() {
    let publisher = publisher().await;
    let process = start(&publisher).await;
    process.place.configure("", &configuration(&publisher, ""));
    let (code, told) = process.everfeed(&["reload"]);
    assert_eq!(code, 0, "{told}");
    let gone = read(&process, "/feeds/other.json", "Deaf/2.0", &[], 10).await;
    assert_eq!(gone.status, 410);
    until("the figures have it", async || {
        let figures = get(process.place.operator, "/readers?name=other")
            .await
            .json();
        let deaf = row(&figures, "other", "Deaf");
        let fault = deaf["misbehaves"][0]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        figures["feeds"][0]["is_gone"] == true && fault.contains("410 (gone): 10 times")
    })
    .await;
}

#[test]
fn a_secret_that_is_soon_guessed_is_refused_and_not_repeated() {
    let place = Place::free();
    let site = "[[site]]\norigin = \"http://127.0.0.1:9\"\nfeeds = [\"/a.xml\"]\nreaders_secret = \"guess-me\"\n";
    place.configure("", site);
    let told = place.run(EVERFEED, &["check"]).all();
    assert!(
        told.contains("readers_secret") && !told.contains("guess-me"),
        "{told}"
    );
}
