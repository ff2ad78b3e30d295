//! The real process, killed in the middle of an import again and again, beside one that nobody
//! disturbs.

use super::publisher::{Past, start};
use crate::EVERFEED;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::Value;
use std::{collections::BTreeSet, time::Duration};
use testkit::{place::Place, process::Process, publisher::Publisher, wait::until};
use tokio::time::sleep;

/// A process that reads the archives of this publisher.
fn importing(publisher: &Publisher) -> Process {
    let place = Place::free();
    let feed = format!(
        "[[feed]]\nname = \"blog\"\nid_namespace = \"blog\"\nurl = \"{}\"\n\
         import = {{ serve_after_secs = 3600, page_gap_secs = 0 }}\n",
        publisher.url("/feed")
    );
    let server = format!("public_url = \"http://{}\"", place.consumers);
    place.configure(&server, &feed);
    let mut process = Process::new(EVERFEED, place, "warn");
    process.start();
    process
}

/// Every item in the order of T, when the feed is served: id, title and content of each.
async fn items(place: &Place) -> Vec<[String; 3]> {
    let target = "/feeds/blog.json?order=modified&max=1000";
    place.answers(target, 200).await;
    let page = place.ask(target).await.unwrap().json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let item = |item: &Value| {
        let object = &item["object"];
        [
            text(&object["id"]),
            text(&object["displayName"]),
            text(&object["content"]),
        ]
    };
    page["items"].as_array().unwrap().iter().map(item).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_that_is_killed_again_and_again_ends_with_what_an_undisturbed_one_does() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = number("EVERFEED_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("EVERFEED_SEED={seed}");
    let mut chance = StdRng::seed_from_u64(seed);
    let past = Past {
        archives: 7,
        posts: 6,
        bytes: 400,
        pause: Duration::from_millis(400),
    };
    let (calm, rough) = (start(past).await, start(past).await);
    let (undisturbed, mut killed) = (importing(&calm), importing(&rough));
    let mut kills = 0;
    // Around every other document, the live one first, and around the commit of them all.
    for documents in [1, 2, 4, 5, 7, 8, 8] {
        until(&format!("document {documents} is asked for"), async || {
            rough.paths().into_iter().collect::<BTreeSet<_>>().len() >= documents
        })
        .await;
        // Every other time the publisher is still thinking.
        let most = if kills % 2 == 0 { 300 } else { 1200 };
        sleep(Duration::from_millis(chance.random_range(0..most))).await;
        killed.kill();
        killed.start();
        kills += 1;
    }
    let (expect, found) = (items(&undisturbed.place).await, items(&killed.place).await);
    assert_eq!(expect.len(), past.total());
    let titles: Vec<String> = expect.iter().map(|[_, title, _]| title.clone()).collect();
    let oldest_first: Vec<String> = (0..past.total())
        .map(|post| format!("post {post}"))
        .collect();
    assert_eq!(titles, oldest_first);
    assert!(
        expect
            .iter()
            .all(|[id, _, content]| !id.is_empty() && content.len() > 300)
    );
    assert_eq!(found, expect);
    let asked = rough.paths();
    println!(
        "{kills} kills, {} requests for {} documents",
        asked.len(),
        past.archives + 1
    );
    // What is staged is not asked for again: a kill cuts off one request, the live document is read
    // last once more, and the oldest archive is asked again whether it is the oldest, and one is
    // looked for before the newest.
    assert!(asked.len() <= past.archives + 4 + kills, "{asked:?}");
    let twice = |number: usize| {
        let path = format!("/archive/{number}");
        asked.iter().filter(|asked| **asked == path).count() > 1
    };
    let is_cut =
        (1..past.archives).any(twice) || asked.iter().filter(|path| *path == "/feed").count() > 2;
    assert!(is_cut, "none of the kills cut a request off: {asked:?}");
}
