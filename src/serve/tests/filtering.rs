//! Filters on the wire: a view of its own with one spelling, its total, its validators and its
//! waits; refusals of what cannot be meant.
//!
//! Rows: SF-13, SF-14, SF-30, SF-50; D-17; DESIGN section 3 (filters).

use super::{
    holding::Held,
    rig::{ROOT, Site, atom_ids, ids, leaf},
};
use crate::readers::testing::{add, delete, edit, id, revive};

#[tokio::test(start_paused = true)]
async fn a_filter_shows_a_part_of_the_feed_in_its_order_with_its_total() {
    let site = Site::of(1..=5).await;
    site.rig
        .change(vec![edit(2, "Über Rust"), edit(4, "rust again")])
        .await;
    let page = site.page("q=RUST&order=created").await;
    assert_eq!(
        (ids(&page), page["totalItems"].as_u64()),
        (vec![id(2), id(4)], Some(2))
    );
    let atom = site.get("/feeds/blog.atom?q=uber&order=created").await;
    assert_eq!(
        (
            atom_ids(atom.text()),
            leaf(atom.text(), "fo:total").as_deref()
        ),
        (vec![id(2)], Some("1"))
    );
    let classic = site.get("/feeds/blog/classic.rss?q=again").await;
    assert!(
        classic.text().contains("rust again") && !classic.text().contains("Über"),
        "{}",
        classic.text()
    );
    // SF-14, D-17: an item has one cursor under every filter.
    let whole = site.page("order=created&max=2").await;
    let first = site.page("q=rust&order=created&max=1").await;
    assert_eq!(first["last_cursor"], whole["last_cursor"]);
    let next = site.get(first["next"].as_str().unwrap()).await.json();
    assert_eq!(ids(&next), [id(4)]);
}

#[tokio::test(start_paused = true)]
async fn every_spelling_of_a_filter_is_one_view() {
    let site = Site::of(1..=3).await;
    let canonical =
        format!("{ROOT}/feeds/blog.json?order=modified&q=%22new%20york%22%20rust&lang=de");
    for spelt in [
        "lang=DE&q=rust+%22New++York%22",
        "q=%22new%20york%22%20Rust%20rust&lang=de",
        "q=\"new york\" rust&lang=de",
    ] {
        let spelt = spelt.replace(' ', "%20").replace('"', "%22");
        assert_eq!(
            site.page(&spelt).await["url"],
            canonical.as_str(),
            "{spelt}"
        );
    }
    let before = site.rig.store.pages();
    site.page("lang=de&q=rust+%22New+York%22").await;
    assert_eq!(
        site.rig.store.pages(),
        before,
        "one view, one entry in the cache"
    );
    let tag = |query: &'static str| {
        let asked = site.get(query);
        async { asked.await.header("etag").to_owned() }
    };
    let tags = [
        tag("/feeds/blog.json").await,
        tag("/feeds/blog.json?q=a").await,
        tag("/feeds/blog.json?q=b").await,
    ];
    assert!(
        tags[0] != tags[1] && tags[1] != tags[2] && tags[0] != tags[2],
        "{tags:?}"
    );
    let again = site
        .get_with("/feeds/blog.json?q=A", &[("if-none-match", &tags[1])])
        .await;
    assert_eq!(again.status, 304);
}

#[tokio::test(start_paused = true)]
async fn what_leaves_a_view_is_a_deletion_there_with_its_reason() {
    let site = Site::of(1..=3).await;
    site.rig.change(vec![edit(1, "rust")]).await;
    let mirrored = site.page("q=rust").await;
    assert_eq!(ids(&mirrored), [id(1)]);
    let cursor = mirrored["last_cursor"].as_str().unwrap();
    site.rig
        .change(vec![edit(1, "something else"), delete(2)])
        .await;
    let news = site
        .page(&format!("q=rust&since=cursor:{cursor}&timeout=0"))
        .await;
    let told = |at: usize| {
        (
            news["items"][at]["deleted"].as_bool(),
            news["items"][at]["reason"].as_str(),
        )
    };
    assert_eq!(ids(&news), [id(1), id(2)]);
    assert_eq!(
        (told(0), told(1)),
        (
            (Some(true), Some("left-view")),
            (Some(true), Some("left-view"))
        )
    );
    assert!(
        news["items"][0]["object"]["displayName"].is_null(),
        "{news}"
    );
    assert_eq!(news["totalItems"], 0);
    // Nobody mirrors by the other orders, so they show what is there.
    for order in ["-modified", "created", "-published"] {
        let page = site.page(&format!("q=rust&order={order}")).await;
        assert_eq!(
            (ids(&page).len(), page["totalItems"].as_u64()),
            (0, Some(0)),
            "{order}"
        );
    }
    // Ordinary readers are told nothing of it.
    assert!(
        !site
            .get("/feeds/blog/classic.atom?q=rust")
            .await
            .text()
            .contains("<entry")
    );
}

#[tokio::test(start_paused = true)]
async fn deletions_alone_are_listed_without_edits_and_a_mirror_of_them_converges() {
    let site = Site::of(1..=6).await;
    let mut mirror = std::collections::BTreeSet::new();
    let mut cursor = String::new();
    let steps = [
        vec![edit(1, "edited"), delete(2), delete(3)],
        vec![edit(4, "edited"), revive(2)],
        // The edit moves the post on; a mirror that slept learns that it is back all the same.
        vec![edit(2, "edited"), edit(1, "again"), delete(4)],
        vec![edit(5, "edited"), edit(6, "edited")],
    ];
    let mut told = Vec::new();
    for (at, step) in steps.into_iter().enumerate() {
        site.rig.change(step).await;
        if at == 1 {
            continue;
        }
        let query = format!("deleted=only&since=cursor:{cursor}&timeout=0");
        let page = site.page(&query).await;
        for item in page["items"].as_array().unwrap() {
            let id = item["id"].as_str().unwrap().to_owned();
            told.push(id.clone());
            match item["reason"].as_str() {
                Some("left-view") => mirror.remove(&id),
                _ => mirror.insert(id),
            };
        }
        cursor = page["last_cursor"].as_str().unwrap().to_owned();
    }
    assert_eq!(told, [id(2), id(3), id(2), id(4)]);
    assert_eq!(mirror, [id(3), id(4)].into());
    let whole = site.page("deleted=only&order=created").await;
    assert_eq!(ids(&whole), [id(3), id(4)]);
    // Edits wake nobody who waits for deletions.
    let held = Held::ask(&site, &format!("deleted=only&since=cursor:{cursor}")).await;
    site.rig.change(vec![edit(6, "once more")]).await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert!(held.is_held(), "an edit is no deletion");
    site.rig.change(vec![delete(6)]).await;
    assert_eq!(held.ended_after_secs().await, (vec![id(6)], 5.0));
}

#[tokio::test(start_paused = true)]
async fn a_held_request_waits_for_what_its_filter_shows() {
    let site = Site::of(1..=3).await;
    let head = site.page("order=-modified&max=1").await["last_cursor"]
        .as_str()
        .unwrap()
        .to_owned();
    let held = Held::ask(&site, &format!("q=rust&since=cursor:{head}")).await;
    site.rig.change(vec![add(4)]).await;
    site.rig.change(vec![add(5)]).await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert!(held.is_held(), "nothing of it is in the view");
    site.rig.change(vec![edit(2, "rust")]).await;
    let (found, secs) = held.ended_after_secs().await;
    assert_eq!((found, secs), (vec![id(2)], 5.0));
}

#[tokio::test(start_paused = true)]
async fn a_value_that_cannot_be_meant_is_a_mistake_of_the_consumer() {
    let site = Site::of(1..=1).await;
    for query in [
        "q=!!!",
        "q=%22open",
        "q=a&q=b",
        "deleted=maybe",
        "has=cats",
        "lang=x_y",
        "author=%00",
        "category=%20",
        "lang=de&lang=de",
    ] {
        for path in [
            "/feeds/blog.json",
            "/feeds/blog.atom",
            "/feeds/blog",
            "/feeds/blog/classic.rss",
        ] {
            let answer = site.get(&format!("{path}?{query}")).await;
            assert_eq!(answer.status, 400, "{path}?{query}");
            assert_eq!(
                answer.text().trim_end().lines().count(),
                1,
                "{}",
                answer.text()
            );
        }
    }
    // Forms send empty fields.
    assert_eq!(
        site.get("/feeds/blog.json?q=&author=&deleted=&lang=")
            .await
            .status,
        200
    );
}
