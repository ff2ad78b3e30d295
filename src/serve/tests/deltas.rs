//! Deltas: whoever names the state that it holds and takes `feed` gets what has changed since, and
//! no more.
//!
//! Rows: T-1, T-3; RFC 3229.

use super::rig::{Answer, Site, ids};
use crate::{
    feed::record::FeedNo,
    readers::testing::{add, delete, edit, id, revive},
    store::traits::Feeds as _,
};
use std::collections::BTreeSet;

async fn ask(site: &Site, view: &str, im: &str, tags: &str) -> Answer {
    site.get_with(view, &[("a-im", im), ("if-none-match", tags)])
        .await
}

fn page(answer: &Answer) -> Vec<String> {
    ids(&serde_json::from_slice(&answer.body).unwrap())
}

#[tokio::test(start_paused = true)]
async fn only_items_that_changed_since_the_state_of_the_tag_are_sent() {
    let site = Site::of(1..=5).await;
    let views = [
        "/feeds/blog.json",
        "/feeds/blog.json?order=-modified",
        "/feeds/blog",
        "/feeds/blog/classic.rss",
    ];
    for (number, view) in (10..).zip(views) {
        let base = site.get(view).await;
        let tag = base.header("etag");
        let fresh = ask(&site, view, "feed", tag).await;
        assert_eq!((fresh.status, fresh.header("etag")), (304, tag), "{view}");
        site.rig
            .change(vec![edit(2, "edited"), add(number), delete(3)])
            .await;
        let delta = ask(&site, view, "feed", tag).await;
        assert_eq!((delta.status, delta.header("im")), (226, "feed"), "{view}");
        assert_eq!(delta.header("delta-base"), tag);
        assert_eq!(delta.header("cache-control"), "no-store, im");
        assert!(
            delta
                .header("vary")
                .ends_with("accept-encoding, a-im, if-none-match")
        );
        let plain = site.get(view).await;
        for name in ["etag", "link", "content-type"] {
            assert_eq!(delta.header(name), plain.header(name), "{view} {name}");
        }
        assert!(!plain.header("vary").contains("a-im"));
        let text = delta.text();
        if view.contains("json") {
            let changed: BTreeSet<_> = [2, number, 3].map(id).into();
            assert_eq!(page(&delta).into_iter().collect::<BTreeSet<_>>(), changed);
        } else {
            let new = format!("Post {number}");
            assert!(
                text.contains("edited") && text.contains(&new) && !text.contains("Post 4"),
                "{text}"
            );
        }
        assert_eq!(
            ask(&site, view, "feed", delta.header("etag")).await.status,
            304
        );
        let other_coding = format!("{}-gzip\"", tag.trim_end_matches('"'));
        assert_eq!(
            ask(&site, view, "feed", &other_coding).await.status,
            226,
            "a state is one in all codings"
        );
        site.rig
            .change(vec![revive(3), edit(2, "again"), delete(number)])
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn of_several_states_the_newest_is_the_base_and_others_say_nothing() {
    let site = Site::of(1..=3).await;
    let view = "/feeds/blog.json";
    let oldest = site.get(view).await.header("etag").to_owned();
    site.rig.change(vec![add(4)]).await;
    let newer = site.get(view).await.header("etag").to_owned();
    let foreign = site.get("/feeds/blog.atom").await.header("etag").to_owned();
    site.rig.change(vec![add(5)]).await;
    for (tags, expect) in [
        (format!("{oldest}, {newer}"), vec![5]),
        (format!("{newer}, \"other\", {oldest}"), vec![5]),
        (oldest.clone(), vec![4, 5]),
        (format!("\"other\",{oldest},{foreign}"), vec![4, 5]),
    ] {
        let delta = ask(&site, view, "vcdiff, feed;q=0.5", &tags).await;
        // RFC 3229 section 10.5.1.
        let base = if expect.len() == 1 { &newer } else { &oldest };
        assert_eq!(delta.header("delta-base"), base, "{tags}");
        assert_eq!(
            (delta.status, page(&delta)),
            (226, expect.into_iter().map(id).collect()),
            "{tags}"
        );
    }
    let later = newer.replacen("W/\"", "W/\"f", 1);
    for (im, tags) in [
        ("feed", foreign.as_str()),
        ("feed", &later),
        ("feed", "\"other\""),
        ("feed", ""),
        ("feed;q=0", &newer),
        ("vcdiff", &newer),
        ("", &newer),
    ] {
        let answer = ask(&site, view, im, tags).await;
        assert_eq!(
            (answer.status, page(&answer).len(), answer.header("im")),
            (200, 5, ""),
            "{im} {tags}"
        );
    }
    // Items do not move in this order, so it does not show what changed.
    let created = "/feeds/blog.json?order=created";
    let tag = site.get(created).await.header("etag").to_owned();
    site.rig.change(vec![edit(1, "edited")]).await;
    assert_eq!(ask(&site, created, "feed", &tag).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn changes_that_are_more_than_a_page_are_reached_state_by_state() {
    let site = Site::of(1..=3).await;
    let view = "/feeds/blog.json?max=2";
    let mut tag = site.get(view).await.header("etag").to_owned();
    site.rig.change((4..=8).map(add).collect()).await;
    let mut found = Vec::new();
    loop {
        let delta = ask(&site, view, "feed", &tag).await;
        if delta.status == 304 {
            break;
        }
        assert_eq!(delta.status, 226);
        found.extend(page(&delta));
        delta.header("etag").clone_into(&mut tag);
        assert!(found.len() <= 5);
    }
    assert_eq!(found, (4..=8).map(id).collect::<Vec<_>>());
    let reverse = "/feeds/blog.json?max=2&order=-modified";
    let tag = site.get(reverse).await.header("etag").to_owned();
    site.rig.change((9..=11).map(add).collect()).await;
    assert_eq!(
        ask(&site, reverse, "feed", &tag).await.status,
        200,
        "its end would never be reached"
    );
}

#[tokio::test(start_paused = true)]
async fn the_state_of_another_feed_is_no_base() {
    let mut site = Site::of(1..=5).await;
    site.join("other").await;
    let (first, second) = (site.rig.feed, FeedNo(site.rig.feed.0 + 1));
    assert_eq!(site.rig.store.feed(second).await.unwrap().name, "other");
    site.rig.feed = second;
    site.rig.change((1..=3).map(add).collect()).await;
    // Each is asked with the state of the other: one of them is the later one.
    for (view, of) in [("blog", "other"), ("other", "blog")] {
        let (view, of) = (format!("/feeds/{view}.json"), format!("/feeds/{of}.json"));
        let tag = site.get(&of).await.header("etag").to_owned();
        let answer = ask(&site, &view, "feed", &tag).await;
        assert_eq!(
            (answer.status, answer.header("im")),
            (200, ""),
            "{view} {tag}"
        );
    }
    site.rig.feed = first;
}
