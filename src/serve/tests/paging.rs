//! The contents of pages: together the whole feed, in JSON as in Atom, and a way to go on from
//! every one.
//!
//! Rows: SF-4, SF-6..SF-10, SF-12, SF-19, SF-32, SF-49..SF-53, SF-56..SF-60, SF-62, SF-90, SF-92;
//! D-1..D-3, D-10, D-13, D-24.

use super::rig::{ROOT, Site, atom_ids, ids, leaf};
use crate::{
    feed::order::Order,
    readers::testing::{add, delete, edit, id, revive},
};
use serde_json::Value;

/// Posts that were edited, deleted and brought back.
async fn lively() -> Site {
    let site = Site::of(1..=40).await;
    site.rig
        .change((1..=9).map(|n| edit(n * 3, "edited")).collect())
        .await;
    site.rig
        .change(vec![delete(7), delete(8), delete(21), delete(40)])
        .await;
    site.rig
        .change(vec![revive(8), edit(1, "edited too"), add(41)])
        .await;
    site
}

async fn in_store(site: &Site, order: Order) -> Vec<String> {
    site.rig
        .all(order)
        .await
        .items
        .iter()
        .map(|item| item.id.to_string())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn following_next_walks_the_whole_feed_in_every_order_and_form() {
    // SF-6, SF-9, SF-10, SF-49..SF-53, SF-56..SF-60; points 1 and 6 of the minimal list.
    let site = lively().await;
    for order in Order::ALL {
        for max in [1, 7, 41, 50] {
            let base = |form: &str| format!("{ROOT}/feeds/blog.{form}?order={order}");
            let (mut json_next, mut atom_next) = (base("json"), base("atom"));
            json_next.push_str(&format!("&max={max}"));
            atom_next.push_str(&format!("&max={max}"));
            let mut walked = Vec::new();
            loop {
                let page = site.get(&json_next).await.json();
                let atom = site.get(&atom_next).await;
                let atom = atom.text();
                assert_eq!(ids(&page), atom_ids(atom));
                assert_eq!(
                    page["last_cursor"].as_str(),
                    leaf(atom, "fo:last_cursor").as_deref()
                );
                assert_eq!(
                    page["totalItems"].to_string(),
                    leaf(atom, "fo:total").unwrap()
                );
                assert_eq!(page["count"].as_u64().unwrap(), ids(&page).len() as u64);
                assert!(!atom.contains("count>"), "SF-62");
                assert_eq!(
                    page["url"],
                    base("json"),
                    "the same on every page, and no page of it"
                );
                assert_eq!(link(atom, "self").as_deref(), Some(base("atom").as_str()));
                walked.extend(ids(&page));
                let Some(next) = page["next"].as_str() else {
                    assert_eq!(link(atom, "next"), None);
                    break;
                };
                assert!(!next.contains("timeout") && !next.contains("callback"));
                json_next = next.to_owned();
                atom_next = link(atom, "next").expect("both forms go on");
                assert_eq!(atom_next, json_next.replacen(".json", ".atom", 1));
            }
            assert_eq!(walked, in_store(&site, order).await, "{order} by {max}");
        }
    }
}

/// The target of the first link of this relation in a document's head.
fn link(atom: &str, rel: &str) -> Option<String> {
    let head = atom.split("<entry").next().unwrap();
    let (_, rest) = head.split_once(&format!("<link rel=\"{rel}\""))?;
    let (_, href) = rest.split_once("href=\"")?;
    Some(href.split('"').next().unwrap().replace("&amp;", "&"))
}

#[tokio::test(start_paused = true)]
async fn a_bounded_walk_keeps_its_bound_and_drops_what_is_not_of_the_page() {
    // SF-19, SF-53; D-3.
    let site = Site::of(1..=10).await;
    let until = site.page("max=8").await["last_cursor"]
        .as_str()
        .unwrap()
        .to_owned();
    let first = site
        .page(&format!("until=cursor:{until}&max=5&timeout=9&_=1"))
        .await;
    let next = first["next"].as_str().unwrap();
    let last = first["last_cursor"].as_str().unwrap();
    let expect = format!(
        "{ROOT}/feeds/blog.json?order=modified&since=cursor%3A{last}&max=5&until=cursor%3A{until}"
    );
    assert_eq!(next, expect);
    let second = site.get(next).await.json();
    assert_eq!(ids(&second), [id(6), id(7)]);
    assert_eq!(second["next"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn every_answer_has_a_cursor_to_go_on_from() {
    // SF-32, SF-52, SF-57, SF-90, SF-92; D-2 and DESIGN section 3 in place of D-10.
    let site = Site::unread().await;
    site.rig.change(Vec::new()).await;
    let check = async |query: &str, cursor: &str| {
        let page = site.page(query).await;
        assert_eq!(
            (&page["last_cursor"], ids(&page).len()),
            (&Value::from(cursor), 0),
            "{query}"
        );
        let atom = site.get(&format!("/feeds/blog.atom?{query}")).await;
        assert_eq!(
            leaf(atom.text(), "fo:last_cursor").unwrap(),
            cursor,
            "{query}"
        );
    };
    check("", "").await;
    check("since=cursor:&timeout=0", "").await;
    check("since=cursor:1780272000_0_1&timeout=0", "").await;
    site.rig.change((1..=4).map(add).collect()).await;
    let head = site.page("order=-modified&max=1").await["last_cursor"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        site.page("").await["last_cursor"],
        head,
        "one item has one cursor in every order"
    );
    assert_eq!(
        site.page("order=created").await["last_cursor"],
        head,
        "nothing was edited yet"
    );
    check(&format!("since=cursor:{head}&timeout=0"), &head).await;
    check("since=time:9999-12-31&timeout=0", &head).await;
    check("until=time:2014-01-01", "").await;
    let first = site.page("max=1").await["last_cursor"]
        .as_str()
        .unwrap()
        .to_owned();
    check(&format!("order=-modified&since=cursor:{first}"), &first).await;
}

#[tokio::test(start_paused = true)]
async fn a_mirror_by_last_cursor_ends_with_what_the_feed_holds() {
    // SF-4, SF-7, SF-8, SF-12, SF-90; D-24; point 10 of the minimal list.
    let site = Site::of(1..=12).await;
    let mut mirror = std::collections::BTreeMap::new();
    let (mut last, mut transferred) = (String::new(), 0);
    for round in 0..40_u32 {
        let n = round % 12 + 1;
        let change = match round % 4 {
            0 => edit(n, &format!("edited in round {round}")),
            1 => add(100 + round),
            2 => delete(100 + round - 1),
            _ => revive(100 + round - 2),
        };
        site.rig.change(vec![change]).await;
        // A walk that is overtaken by changes sees an item twice at most, and never misses one.
        let page = site
            .page(&format!("max=2&timeout=0&since=cursor:{last}"))
            .await;
        last = page["last_cursor"].as_str().unwrap().to_owned();
        for item in page["items"].as_array().unwrap() {
            transferred += 1;
            mirror.insert(item["id"].to_string(), item.clone());
        }
    }
    loop {
        let page = site.page(&format!("timeout=0&since=cursor:{last}")).await;
        let items = page["items"].as_array().unwrap();
        transferred += items.len();
        items
            .iter()
            .for_each(|item| drop(mirror.insert(item["id"].to_string(), item.clone())));
        last = page["last_cursor"].as_str().unwrap().to_owned();
        if items.is_empty() {
            break;
        }
    }
    let whole = site.page("max=1000").await;
    let truth = whole["items"].as_array().unwrap();
    assert_eq!(truth.len(), mirror.len());
    assert!(
        truth
            .iter()
            .all(|item| mirror[&item["id"].to_string()] == *item)
    );
    assert!(
        transferred <= 12 + 40 + 1,
        "each change about once: {transferred}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_tombstone_keeps_its_id_loses_its_content_and_comes_back_to_life() {
    // SF-12, SF-50; D-13.
    let site = Site::of(1..=2).await;
    site.rig.change(vec![delete(1)]).await;
    let page = site.page("").await;
    assert_eq!(
        (ids(&page), &page["totalItems"]),
        (vec![id(2), id(1)], &Value::from(2))
    );
    let gone = &page["items"][1];
    assert_eq!(
        (&gone["verb"], &gone["deleted"], &gone["reason"]),
        (&"delete".into(), &true.into(), &"explicit".into())
    );
    assert_eq!(
        (&gone["title"], &gone["object"]["content"]),
        (&Value::Null, &Value::Null)
    );
    let atom = site.get("/feeds/blog.atom").await;
    assert!(atom.text().contains("<at:deleted-entry") && atom.text().contains("<fo:deleted>true"));
    assert_eq!(atom_ids(atom.text()), [id(2), id(1)]);
    site.rig.change(vec![revive(1)]).await;
    let page = site.page("").await;
    let back = &page["items"][1];
    assert_eq!(
        (&back["verb"], &back["deleted"]),
        (&"update".into(), &Value::Null)
    );
    assert_eq!(
        (&back["id"], &back["created"]),
        (&gone["id"], &gone["created"])
    );
}

#[tokio::test(start_paused = true)]
async fn ordinary_readers_get_the_newest_posts_first_and_no_tombstones() {
    // DESIGN section 5, classic views.
    let site = Site::of(1..=40).await;
    site.rig
        .change(vec![delete(40), delete(38), edit(2, "Post 2 edited")])
        .await;
    // With an old one that was edited, for readers that know its archive (H-23).
    let newest: Vec<u32> = (1..=39)
        .rev()
        .filter(|n| *n != 38)
        .take(15)
        .chain([2])
        .collect();
    let titles = |text: &str, tag: &str| -> Vec<u32> {
        let entries = text.split(tag).skip(1);
        entries
            .map(|entry| {
                entry
                    .split_once("Post ")
                    .unwrap()
                    .1
                    .split(' ')
                    .next()
                    .unwrap()
                    .parse()
                    .unwrap()
            })
            .collect()
    };
    let rss = site.get("/feeds/blog/classic.rss").await;
    assert_eq!(
        rss.header("content-type"),
        "application/rss+xml; charset=utf-8"
    );
    assert_eq!(titles(rss.text(), "<item>"), newest);
    let atom = site
        .get("/feeds/blog/classic.atom?max=50&utm_source=x")
        .await;
    assert_eq!(
        atom.header("content-type"),
        "application/atom+xml; charset=utf-8"
    );
    assert_eq!(
        titles(atom.text(), "<entry"),
        newest,
        "no more than the view shows"
    );
    for text in [rss.text(), atom.text()] {
        assert!(
            !text.contains("deleted") && !text.contains("fo:") && !text.contains("rel=\"next\""),
            "{text}"
        );
    }
    assert_eq!(
        link(atom.text(), "self").unwrap(),
        format!("{ROOT}/feeds/blog/classic.atom")
    );
    let few = site.get("/feeds/blog/classic.atom?max=2").await;
    assert_eq!(titles(few.text(), "<entry"), newest[..2]);
    // Whoever followed a link from here would miss what stands between.
    assert!(
        atom.text().contains("prev-archive") && !few.text().contains("prev-archive"),
        "{}",
        few.text()
    );
    for refused in [
        "since=cursor:",
        "until=time:2014-01-01",
        "order=created",
        "timeout=0",
        "deleted=only",
        "max=0",
        "max=1&max=1",
    ] {
        let answer = site
            .get(&format!("/feeds/blog/classic.atom?{refused}"))
            .await;
        assert_eq!(
            (answer.status, answer.text().lines().count()),
            (400, 1),
            "{refused}: {}",
            answer.text()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn scripts_take_classic_views_too() {
    let site = Site::of(1..=3).await;
    let plain = site.get("/feeds/blog/classic.jsonfeed").await.json();
    let script = site.get("/feeds/blog/classic.jsonfeed?callback=a.b").await;
    assert_eq!(
        (script.status, script.header("content-type")),
        (200, "application/javascript; charset=utf-8")
    );
    assert_eq!(
        (
            script.header("cache-control"),
            script.header("x-content-type-options")
        ),
        ("no-store", "nosniff")
    );
    let inside = script
        .text()
        .strip_prefix("/**/a.b(")
        .and_then(|rest| rest.strip_suffix(");"))
        .unwrap();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(inside).unwrap(),
        plain
    );
    let bad = site.get("/feeds/blog/classic.jsonfeed?callback=1").await;
    assert_eq!(
        (bad.status, bad.header("content-type")),
        (400, "text/plain; charset=utf-8"),
        "D-12"
    );
}
