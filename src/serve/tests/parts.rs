//! Readers who see a part of a feed (SF-131): nothing else of it comes to them, by any way, and
//! each part has its own totals, validators and bodies.

use super::rig::{Answer, Site, ids};
use crate::{
    auth::testing::{ALICE, ALICE_URL, BOB},
    readers::testing::{add, delete, edit, guid, id},
};
use http::Method;
use std::time::Duration;

/// Stands in everything that bob must not see; `p=2` and `p=3` in the ids of their publisher.
const SECRET: &str = "zzsecret";

/// Alice sees everything, bob what holds the word `open`.
const RULES: [(&str, &str); 2] = [("['alice']", ""), ("['bob']", "q=open")];

/// Every way to items, each in several ranges.
const WAYS: [&str; 31] = [
    "/feeds/blog",
    "/feeds/blog?max=1",
    "/feeds/blog.atom",
    "/feeds/blog.atom?since=cursor:",
    "/feeds/blog.json",
    "/feeds/blog.json?since=cursor:",
    "/feeds/blog.json?since=time:1970-01-01&max=2",
    "/feeds/blog.json?until=time:2100-01-01",
    "/feeds/blog.json?order=created",
    "/feeds/blog.json?order=-created",
    "/feeds/blog.json?order=-modified",
    "/feeds/blog.json?order=published",
    "/feeds/blog.json?order=-published",
    "/feeds/blog.json?q=zzsecret",
    "/feeds/blog.json?deleted=no",
    "/feeds/blog.json?deleted=only",
    "/feeds/blog.rss",
    "/feeds/blog.jsonfeed",
    "/feeds/blog.rdf",
    "/feeds/blog.as2",
    "/feeds/blog.jsonl",
    "/feeds/blog.csv",
    "/feeds/blog.tsv",
    "/feeds/blog.html",
    "/feeds/blog/classic.atom",
    "/feeds/blog/classic.rss",
    "/feeds/blog/classic.jsonfeed",
    "/feeds/blog/classic.rdf",
    "/feeds/blog/classic.html?q=zzsecret",
    "/feeds/blog/about",
    "/feeds",
];

/// A feed of an open post and two that are not.
async fn parted() -> Site {
    let site = Site::of(1..=3).await;
    let (hidden, edited) = (format!("{SECRET} one"), format!("{SECRET} two"));
    site.rig
        .change(vec![
            edit(1, "An open post"),
            edit(2, &hidden),
            edit(3, &edited),
        ])
        .await;
    site.show(&RULES);
    site
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

async fn get_as(site: &Site, target: &str, token: &str) -> Answer {
    site.get_with(target, &[("authorization", &bearer(token))])
        .await
}

/// The path of the newest archive that the newest posts name.
async fn archive(site: &Site, token: &str) -> String {
    let newest = get_as(site, "/feeds/blog/classic.atom", token).await;
    let named = newest
        .text()
        .split("rel=\"prev-archive\"")
        .nth(1)
        .and_then(|rest| rest.split("href=\"").nth(1));
    let archive = named
        .and_then(|rest| rest.split('"').next())
        .expect("there is one");
    archive[archive.find("/feeds/").unwrap()..].to_owned()
}

fn assert_hidden(text: &str, way: &str) {
    let asked = text.replace("q=zzsecret", "").replace("q%3Dzzsecret", "");
    for word in [SECRET, "p=2", "p=3", "p%3D2"] {
        assert!(!asked.contains(word), "{way}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_outside_of_a_part_is_in_any_answer_whoever_asked_before() {
    let site = parted().await;
    for way in WAYS {
        let before = get_as(&site, way, ALICE).await;
        let part = get_as(&site, way, BOB).await;
        let after = get_as(&site, way, ALICE).await;
        assert_eq!(
            (before.status, part.status, after.status),
            (200, 200, 200),
            "{way}"
        );
        assert_hidden(part.text(), way);
        assert_eq!(before.text(), after.text(), "{way}");
        assert!(part.header("cache-control").starts_with("private"), "{way}");
        let tag = before.header("etag");
        if !tag.is_empty() && !way.ends_with("/feeds") {
            let headers = [
                ("authorization", &*bearer(BOB)),
                ("if-none-match", tag),
                ("a-im", "feed"),
            ];
            let again = site.get_with(way, &headers).await;
            assert_eq!(again.status, 200, "{way}: the copy of another is no copy");
            assert_hidden(again.text(), way);
            let own = [
                ("authorization", &*bearer(BOB)),
                ("if-none-match", part.header("etag")),
            ];
            assert_eq!(site.get_with(way, &own).await.status, 304, "{way}");
        }
    }
    let all = get_as(&site, "/feeds/blog.json", ALICE).await;
    assert!(all.text().contains(SECRET) && all.json()["totalItems"] == 3);
    let part = get_as(&site, "/feeds/blog.json?order=created", BOB)
        .await
        .json();
    assert_eq!(
        (ids(&part), part["totalItems"].as_u64()),
        (vec![id(1)], Some(1))
    );
    assert!(
        get_as(&site, "/feeds/blog/classic.rss", BOB)
            .await
            .text()
            .contains("An open post")
    );
    for way in [
        "/feeds/blog.json?callback=f",
        "/feeds/blog/about?callback=f",
    ] {
        assert_eq!(get_as(&site, way, BOB).await.status, 403, "{way}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_outside_of_a_part_is_as_unknown_as_one_that_never_was() {
    let site = parted().await;
    for position in ["since", "until"] {
        for order in ["created", "-created"] {
            for suffix in ["json", "atom", "csv"] {
                let target = |id: &str| {
                    let id =
                        url::form_urlencoded::byte_serialize(id.as_bytes()).collect::<String>();
                    format!("/feeds/blog.{suffix}?order={order}&{position}=id:{id}&max=1")
                };
                let never = get_as(&site, &target(&guid(77)), BOB).await;
                assert_eq!(never.status, 404, "{suffix}");
                for n in 1..=3 {
                    for known_as in [id(n), guid(n)] {
                        let target = target(&known_as);
                        let answer = get_as(&site, &target, BOB).await;
                        let same = (answer.status, answer.text()) == (never.status, never.text());
                        assert_eq!(same, n != 1, "{target}: {}", answer.status);
                        assert_ne!(get_as(&site, &target, ALICE).await.status, 404, "{target}");
                    }
                }
            }
        }
    }
    for (n, status) in [(1, 200), (2, 404), (3, 404), (77, 404)] {
        let target = format!("/feeds/blog.events?order=created&since=id:{}", id(n));
        let headers = [("authorization", &*bearer(BOB))];
        assert_eq!(
            site.ask(Method::HEAD, &target, &headers).await.status,
            status,
            "{target}"
        );
    }
    let own_terms = format!(
        "/feeds/blog.json?order=created&q=nothing&since=id:{}",
        id(1)
    );
    assert_eq!(
        get_as(&site, &own_terms, BOB).await.status,
        200,
        "terms of one's own hide no place"
    );
}

#[tokio::test(start_paused = true)]
async fn no_answer_changes_with_what_is_not_shown() {
    let site = parted().await;
    let ends = [
        "/feeds/blog.json?since=time:2100-01-01&timeout=0",
        "/feeds/blog.csv?since=time:2100-01-01&timeout=0",
        "/feeds/blog.json?since=time:2100-01-01&timeout=0&order=published",
        "/feeds/blog.json?since=time:2100-01-01&timeout=0&order=created",
        "/feeds/blog.json?since=cursor:4000000000.000001_0_1&timeout=0",
        "/feeds/blog.atom?since=cursor:4000000000_0_1&timeout=0&order=created",
        "/feeds/blog.json?until=time:2001-01-01",
        "/feeds.opml",
        "/feeds/blog.opml",
    ];
    let answers = async || {
        let mut answers = Vec::new();
        for way in WAYS.into_iter().chain(ends) {
            let answer = get_as(&site, way, BOB).await;
            assert_eq!(answer.status, 200, "{way}");
            let told = [
                "etag",
                "last-modified",
                "smart-feed-cursor",
                "smart-feed-last-cursor",
                "link",
            ];
            answers.push((
                way,
                told.map(|name| answer.header(name).to_owned()),
                answer.text().to_owned(),
            ));
        }
        answers
    };
    let before = answers().await;
    site.rig.change((10..20).map(add).collect()).await;
    for (before, after) in before.into_iter().zip(answers().await) {
        assert_eq!(before, after);
    }
    // Alice's cursor of a hidden post is none for bob, as one that never was.
    let all = get_as(&site, "/feeds/blog.json?order=-modified&max=1", ALICE)
        .await
        .json();
    let hidden = all["last_cursor"].as_str().unwrap();
    let never = format!("{}_0_1", hidden.split('_').next().unwrap());
    let told = async |cursor: &str| {
        let answer = get_as(
            &site,
            &format!("/feeds/blog.json?timeout=0&since=cursor:{cursor}"),
            BOB,
        )
        .await;
        (
            answer.header("smart-feed-cursor").to_owned(),
            answer.text().to_owned(),
        )
    };
    assert_eq!(told(hidden).await, told(&never).await);
}

#[tokio::test(start_paused = true)]
async fn numbers_of_items_are_told_to_whom_sees_all_of_them() {
    let site = parted().await;
    for way in ["/feeds", "/feeds/blog/about"] {
        let counts = async |token| {
            let told = get_as(&site, way, token).await.json();
            let feed = if way == "/feeds" {
                &told["feeds"][0]
            } else {
                &told
            };
            (feed["items"].as_u64(), feed["live"].as_u64())
        };
        assert_eq!(counts(ALICE).await, (Some(3), Some(3)), "{way}");
        assert_eq!(counts(BOB).await, (None, None), "{way}");
        let headers = [("authorization", &*bearer(BOB)), ("accept", "text/html")];
        let page = site.get_with(way, &headers).await;
        assert!(
            page.text().contains("posts that are for you") && !page.text().contains("3 posts"),
            "{way}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_leaves_a_part_is_a_deletion_there_and_says_nothing_of_itself() {
    let site = parted().await;
    let first = get_as(&site, "/feeds/blog.json?since=cursor:", BOB)
        .await
        .json();
    let cursor = first["last_cursor"].as_str().unwrap().to_owned();
    site.rig
        .change(vec![edit(1, SECRET), add(4), edit(2, "open now")])
        .await;
    let target = format!("/feeds/blog.json?since=cursor:{cursor}");
    let news = get_as(&site, &target, BOB).await;
    assert_hidden(
        &news.text().replace("open now", "").replace("p=2", ""),
        &target,
    );
    assert!(!news.text().contains("p=1&"), "{}", news.text());
    let news = news.json();
    let items = news["items"].as_array().unwrap();
    let told: Vec<(&str, Option<&str>)> = items
        .iter()
        .map(|item| (item["id"].as_str().unwrap(), item["verb"].as_str()))
        .collect();
    let (left, came) = (id(1), id(2));
    assert!(told.contains(&(&left, Some("delete"))), "{news}");
    assert!(
        told.iter()
            .any(|(id, verb)| *id == came && *verb != Some("delete")),
        "{news}"
    );
    assert!(news.to_string().contains("left-view"));
    // A deletion of what was never shown is not told.
    site.rig.change(vec![delete(3)]).await;
    let atom = get_as(&site, "/feeds/blog.atom?since=cursor:", BOB).await;
    assert!(
        !atom.text().contains(&id(3)) && !atom.text().contains("p=3"),
        "{}",
        atom.text()
    );
}

#[tokio::test(start_paused = true)]
async fn held_requests_and_streams_show_the_part_alone_and_end_when_it_is_another() {
    let site = parted().await;
    let last = get_as(&site, "/feeds/blog.json?order=-modified&max=1", BOB)
        .await
        .json();
    let cursor = last["last_cursor"].as_str().unwrap().to_owned();
    let authorization = bearer(BOB);
    let headers = [("authorization", authorization.as_str())];
    let mut stream = site
        .open("/feeds/blog.events?since=cursor:", &headers)
        .await;
    let target = format!("/feeds/blog.json?since=cursor:{cursor}&timeout=60");
    let held = tokio::spawn(site.ask(Method::GET, &target, &headers));
    tokio::time::sleep(Duration::from_secs(1)).await;
    site.rig
        .change(vec![
            edit(3, "zzsecret still"),
            add(5),
            edit(1, "open again"),
        ])
        .await;
    let news = held.await.unwrap();
    assert_eq!(news.status, 200);
    assert_hidden(news.text(), "held");
    assert!(news.text().contains("open again"));
    let mut streamed = String::new();
    while let Ok(Some(bytes)) = tokio::time::timeout(Duration::from_secs(1), stream.frame()).await {
        streamed.push_str(std::str::from_utf8(&bytes).unwrap());
    }
    assert_hidden(&streamed, "stream");
    assert!(streamed.contains("open again"), "{streamed}");
    let last = get_as(&site, "/feeds/blog.json?order=-modified&max=1", BOB)
        .await
        .json();
    let target = format!(
        "/feeds/blog.json?since=cursor:{}&timeout=60",
        last["last_cursor"].as_str().unwrap()
    );
    let held = tokio::spawn(site.ask(Method::GET, &target, &headers));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(site.held(), 2);
    site.show(&[("['bob']", "q=again")]);
    assert_eq!(held.await.unwrap().status, 503, "it is asked for anew");
    let end = async { while stream.frame().await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(1), end)
        .await
        .expect("the browser comes again");
}

#[tokio::test(start_paused = true)]
async fn whom_no_rule_names_sees_nothing_and_one_for_all_shows_a_part_to_nobody_known() {
    let site = parted().await;
    assert_eq!(site.get("/feeds/blog").await.status, 401);
    site.show(&[("['alice']", "")]);
    assert_eq!(get_as(&site, "/feeds/blog", BOB).await.status, 404);
    assert_eq!(get_as(&site, "/feeds", BOB).await.json()["total"], 0);
    site.show(&[("['alice']", ""), ("'public'", "q=open")]);
    let all = get_as(&site, "/feeds/blog.json", ALICE).await;
    assert!(all.text().contains(SECRET));
    for way in WAYS {
        let part = site.get(way).await;
        assert_eq!(part.status, 200, "{way}");
        assert_hidden(part.text(), way);
    }
    assert!(
        site.get("/feeds/blog")
            .await
            .header("cache-control")
            .starts_with("private")
    );
    assert_eq!(get_as(&site, "/feeds/blog", "wrong").await.status, 401);
    let secret = site.get(&format!("/s/{ALICE_URL}/feeds/blog.json")).await;
    assert!(secret.text().contains(SECRET), "U-1");
}

#[tokio::test(start_paused = true)]
async fn the_archives_of_a_feed_are_none_of_its_parts() {
    let site = Site::of(1..=250).await;
    site.show(&RULES);
    let path = archive(&site, ALICE).await;
    assert_eq!(get_as(&site, &path, ALICE).await.status, 200);
    let part = get_as(&site, &path, BOB).await;
    assert_eq!(part.status, 404, "{}", part.text());
    assert!(
        !get_as(&site, "/feeds/blog/classic.atom", BOB)
            .await
            .text()
            .contains("archive")
    );
}

#[tokio::test(start_paused = true)]
async fn a_part_has_archives_of_what_it_holds() {
    let site = Site::of(1..=250).await;
    let open = (1..=240).map(|n| edit(n, "open")).collect();
    site.rig.change(open).await;
    site.show(&RULES);
    let path = archive(&site, BOB).await;
    let own = get_as(&site, &path, BOB).await;
    assert_eq!(own.status, 200, "{}", own.text());
    assert!(own.text().contains("open") && !own.text().contains("Post 2"));
}

#[tokio::test(start_paused = true)]
async fn a_cursor_begins_anew_with_every_other_part_and_goes_on_in_one_that_is_edited() {
    let site = parted().await;
    let ask = async |token: &str, since: &str| {
        let target = format!("/feeds/blog.json?timeout=0&since=cursor:{since}");
        let answer = get_as(&site, &target, token).await;
        let told = answer.header("smart-feed-cursor").to_owned();
        let json = answer.json();
        let cursor = json["last_cursor"].as_str().unwrap().to_owned();
        (told, ids(&json), cursor)
    };
    let (_, _, all) = ask(ALICE, "").await;
    let (_, _, own) = ask(BOB, "").await;
    assert_eq!(
        ask(BOB, &all).await,
        ("reset".into(), vec![id(1)], own.clone())
    );
    assert_eq!(ask(ALICE, &own).await.0, "reset");
    assert_eq!(
        ask(BOB, &own).await,
        (String::new(), Vec::new(), own.clone())
    );
    // The same readers, another filter: what they hold and may not see is deleted.
    site.show(&[RULES[0], ("['bob']", "q=one")]);
    let (told, changed, other) = ask(BOB, &own).await;
    assert!(told.is_empty() || told == "moved", "{told}");
    assert_eq!(changed.len(), 2, "{changed:?}");
    // Rights that grow, and shrink again.
    site.show(&[("['alice', 'bob']", "")]);
    let (told, ids, all) = ask(BOB, &other).await;
    assert_eq!((told.as_str(), ids.len()), ("reset", 3));
    site.show(&RULES);
    assert_eq!(ask(BOB, &all).await.0, "reset");
}

#[tokio::test(start_paused = true)]
async fn nobody_who_waits_is_woken_by_what_is_not_shown() {
    let site = parted().await;
    let last = get_as(&site, "/feeds/blog.json?order=-modified&max=1", BOB)
        .await
        .json();
    let cursor = last["last_cursor"].as_str().unwrap();
    let target = format!("/feeds/blog.json?since=cursor:{cursor}&timeout=60");
    let authorization = bearer(BOB);
    let headers = [("authorization", authorization.as_str())];
    let held = tokio::spawn(site.ask(Method::GET, &target, &headers));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let reads = site.rig.store.pages();
    site.rig
        .change(vec![add(7), edit(2, SECRET), delete(3)])
        .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!held.is_finished());
    assert_eq!(site.rig.store.pages(), reads, "nothing is read for it");
    site.rig.change(vec![edit(7, "open")]).await;
    assert_eq!(ids(&held.await.unwrap().json()), [id(7)]);
}
