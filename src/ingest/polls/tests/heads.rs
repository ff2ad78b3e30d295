//! Documents that say too much of their feed: what is kept has its limits, however often they come.

use super::*;
use crate::feed::head_caps::{LIST_BYTES_MAX, NOTE_BYTES_MAX};

/// A document whose every part is long, and another one each time.
fn long_document(n: usize) -> &'static str {
    let long = |part: &str| format!("{part}{n}-").repeat(10_000);
    let mut head = format!(
        "<title>{}</title><description>{}</description><link>http://blog.example/{}</link><language>{}</language>",
        long("t"),
        long("d"),
        long("l"),
        long("x")
    );
    for tag in 0..1000 {
        head += &format!("<category>tag {tag} of {n}</category>");
    }
    let item = format!(
        "<item><guid>{}</guid><title>{}</title><pubDate>{}</pubDate></item>",
        long("g"),
        long("i"),
        long("p")
    );
    let deleted = format!(
        "<at:deleted-entry xmlns:at=\"http://purl.org/atompub/tombstones/1.0\" ref=\"{}\"><at:comment>{}</at:comment></at:deleted-entry>",
        long("r"),
        long("c")
    );
    let document = format!("<rss version=\"2.0\"><channel>{head}{item}{deleted}</channel></rss>");
    Box::leak(document.into_boxed_str())
}

#[tokio::test(start_paused = true)]
async fn a_document_that_says_too_much_of_its_feed_is_kept_within_limits_each_time() {
    let house = PollerRig::new(|n, _| ready(ok(long_document(n))));
    let feed = house.feed("blog", URL, 1, 5).await;
    let states = polls(&house, &feed, 17).await;
    let record = house.store.feed(feed.no).await.unwrap();
    let head = format!("{:?}", record.metadata).len();
    assert!(head < LIST_BYTES_MAX, "{head}");
    let observed = house.store.observations(feed.no).await.unwrap();
    assert_eq!(observed.len(), 17);
    for (_, observed) in &observed {
        let remark = observed.remark.as_deref().unwrap();
        assert!(remark.len() < 4 * NOTE_BYTES_MAX, "{}", remark.len());
        assert!(
            remark.contains("title, description, links, tags, language"),
            "{remark}"
        );
    }
    for state in &states {
        assert!(format!("{state:?}").len() < 8 * NOTE_BYTES_MAX);
        assert_eq!(state.health.fault, None);
    }
    let known = house.store.known(feed.no, Vec::new()).await.unwrap();
    assert!(format!("{:?}", known.window).len() < LIST_BYTES_MAX);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_feed_is_quoted_within_limits() {
    let house = PollerRig::new(|n, _| {
        let long = "x".repeat(30_000);
        let document = match n {
            0 => format!("<{long}/>"),
            1 => format!("<!DOCTYPE html><title>{long}</title>"),
            _ => format!(
                "<rss version=\"2.0\"><channel><title>t</title><itunes:new-feed-url>http://e.org/{long}</itunes:new-feed-url></channel></rss>"
            ),
        };
        ready(ok(Box::leak(document.into_boxed_str())))
    });
    let feed = house.feed("blog", URL, 1, 5).await;
    for state in polls(&house, &feed, 3).await {
        assert!(format!("{state:?}").len() < 8 * NOTE_BYTES_MAX, "{state:?}");
    }
}
