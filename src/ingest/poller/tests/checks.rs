//! Probes among the polls: one a minute and host, none of a host that is down, and none forgotten.

use super::*;
use crate::ingest::testing::Scripted;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// A document of the posts of this blog, newest first.
fn posts(blog: &str, letters: &str) -> String {
    let item = |letter: char| {
        let minute = u32::from(letter) - u32::from('a');
        format!(
            "<item><title>The post called {letter}</title><link>http://blog.example/{blog}/{letter}</link><pubDate>Mon, 02 Feb 2026 01:{minute:02}:00 GMT</pubDate></item>"
        )
    };
    let items: String = letters.chars().map(item).collect();
    format!("<rss version=\"2.0\"><channel><title>{blog}</title>{items}</channel></rss>")
}

/// Blogs of one host from each of which two posts vanish after the first poll; while `is_down`,
/// nothing is answered but
/// 500. The pages of those two are not found.
fn house(is_down: &Arc<AtomicBool>) -> PollerRig {
    let polled = Arc::new(std::sync::Mutex::new(std::collections::HashSet::new()));
    let is_down = Arc::clone(is_down);
    PollerRig::new(move |_, request| {
        let path = request.uri().path().to_owned();
        ready(if is_down.load(Ordering::Relaxed) {
            status(500, &[])
        } else if let Some(blog) = path.strip_suffix("/rss") {
            let letters = if polled.lock().unwrap().insert(path.clone()) {
                "zyxwvutsr"
            } else {
                "zyxvtsrqp"
            };
            Scripted::new(String::leak(posts(blog.trim_start_matches('/'), letters)) as &str)
        } else if path.ends_with(['w', 'u']) {
            status(404, &[])
        } else {
            Scripted::new("another post")
        })
    })
}

/// The pages asked for, with the second of each.
fn asked(house: &PollerRig) -> Vec<(u64, String)> {
    let seen = house.seen.lock().unwrap();
    let pages = seen.iter().filter(|seen| !seen.url.ends_with("/rss"));
    pages
        .map(|seen| {
            (
                seen.at_secs,
                seen.url
                    .trim_start_matches("http://blog.example")
                    .to_owned(),
            )
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_host_is_asked_for_one_page_a_minute_whatever_number_of_feeds_it_has() {
    let house = house(&Arc::default());
    let a = house
        .feed("a", "http://blog.example/a/rss", HOUR, HOUR)
        .await;
    let b = house
        .feed("b", "http://blog.example/b/rss", HOUR, HOUR)
        .await;
    let running = house.start([&a, &b]).await;
    pass(HOUR + 600).await;
    let asked = asked(&house);
    assert_eq!(asked.len(), 6, "a control and two posts of each: {asked:?}");
    assert!(
        asked[0].0 >= HOUR && asked[0].0 < HOUR + 10,
        "at once: {asked:?}"
    );
    let missing: Vec<u64> = asked
        .iter()
        .filter(|(_, url)| url.ends_with(['w', 'u']))
        .map(|(at, _)| *at)
        .collect();
    assert_eq!(missing.len(), 4, "{asked:?}");
    assert!(
        missing.windows(2).all(|pair| pair[1] - pair[0] >= 60),
        "{asked:?}"
    );
    assert!(missing[3] < HOUR + 250, "{asked:?}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_due_when_the_process_ended_is_asked_for_by_the_next() {
    let house = house(&Arc::default());
    let feed = house
        .feed("a", "http://blog.example/a/rss", HOUR, DAY)
        .await;
    let feed = feed.with(|feed| feed.poll.max_secs = HOUR);
    let running = house.start([&feed]).await;
    pass(HOUR + 10).await;
    assert_eq!(asked(&house).len(), 2, "a control and a post");
    running.stop().await;
    pass(120).await;
    let running = house.start([&feed]).await;
    pass(10).await;
    assert_eq!(asked(&house).len(), 3, "the other post");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn while_a_publisher_does_not_answer_no_page_is_asked_for() {
    let is_down = Arc::new(AtomicBool::new(false));
    let house = house(&is_down);
    let feed = house
        .feed("a", "http://blog.example/a/rss", HOUR, HOUR)
        .await;
    let running = house.start([&feed]).await;
    pass(HOUR + 10).await;
    assert_eq!(asked(&house).len(), 2, "a control and a post");
    is_down.store(true, Ordering::Relaxed);
    house.hint(feed.no);
    pass(HOUR / 12).await;
    let while_down = asked(&house).len();
    assert!(
        while_down <= 3,
        "at most the one that was due before anybody knew"
    );
    pass(4 * HOUR).await;
    assert_eq!(asked(&house).len(), while_down);
    is_down.store(false, Ordering::Relaxed);
    pass(4 * HOUR).await;
    assert!(asked(&house).len() > while_down);
    running.stop().await;
}
