//! Archives behind the newest posts (RFC 5005 section 4): together they are the whole feed, and
//! what is at an address stays.
//!
//! Rows: H-21, H-23, H-24, H-27.

use super::rig::{Answer, ROOT, Site};
use crate::readers::testing::{add, delete, edit, guid};
use std::collections::BTreeSet;

/// The `href` of the first link with this relation, without our root.
fn linked(document: &str, relation: &str) -> Option<String> {
    let line = document
        .lines()
        .find(|line| line.contains(&format!("rel=\"{relation}\"")))?;
    let (_, rest) = line.split_once("href=\"")?;
    let href = rest.split('"').next()?.replace("&amp;", "&");
    Some(
        href.strip_prefix(ROOT)
            .expect("our links lead to us")
            .to_owned(),
    )
}

/// The numbers of the posts of a document, which has none twice.
fn numbers(document: &str) -> BTreeSet<u32> {
    let ids: Vec<u32> = (1..=400)
        .filter(|n| document.contains(&format!(">{}<", guid(*n).replace('&', "&amp;"))))
        .collect();
    let entries = document.matches("<entry").count() + document.matches("<item>").count();
    assert_eq!(ids.len(), entries, "{document}");
    ids.into_iter().collect()
}

/// A document by the address at which it stands: archives lead to each other by names from which
/// one is sent on.
async fn landed(site: &Site, url: String) -> (String, Answer) {
    let answer = site.get(&url).await;
    if answer.status != 307 {
        assert_eq!(answer.status, 200, "{url}: {}", answer.text());
        return (url, answer);
    }
    assert_eq!(answer.header("cache-control"), "no-cache");
    let present = answer
        .header("location")
        .strip_prefix(ROOT)
        .expect("our links lead to us")
        .to_owned();
    let answer = site.get(&present).await;
    assert_eq!(answer.status, 200, "{present}: {}", answer.text());
    (present, answer)
}

/// The newest document and the archives behind it.
async fn walk(site: &Site, newest: &str) -> Vec<(String, Answer)> {
    let mut found = vec![(newest.to_owned(), site.get(newest).await)];
    while let Some(older) = linked(found.last().unwrap().1.text(), "prev-archive") {
        found.push(landed(site, older).await);
    }
    found
}

#[tokio::test(start_paused = true)]
async fn copies_that_are_kept_for_ever_lead_to_what_is_there_now() {
    let site = Site::of(1..=250).await;
    let before = walk(&site, "/feeds/blog/classic.atom").await;
    site.rig.change(vec![edit(50, "Edited"), delete(60)]).await;
    site.rig.change((251..=274).map(add).collect()).await;
    // A copy of the archive that leads to the changed one, as a cache has it.
    let copy = before[2].1.text();
    let again = site.get(&before[2].0).await;
    assert_eq!(
        again.body, before[2].1.body,
        "what has a name stays as it is"
    );
    let (url, oldest) = landed(&site, linked(copy, "prev-archive").unwrap()).await;
    assert_ne!(url, before[3].0);
    assert!(
        oldest.text().contains("Edited") && !numbers(oldest.text()).contains(&60),
        "{}",
        oldest.text()
    );
    assert_eq!(
        oldest.header("cache-control"),
        "max-age=31536000, immutable"
    );
    let (url, newer) = landed(&site, linked(oldest.text(), "next-archive").unwrap()).await;
    assert_eq!((url, newer.body), (before[2].0.clone(), again.body));
    // New posts do not hide that one was edited.
    let newest = site.get("/feeds/blog/classic.atom").await;
    assert!(newest.text().contains("Edited"), "{}", newest.text());
}

#[tokio::test(start_paused = true)]
async fn the_newest_posts_and_the_archives_are_the_whole_feed() {
    let site = Site::of(1..=250).await;
    for suffix in ["atom", "rss"] {
        let newest = format!("/feeds/blog/classic.{suffix}");
        let documents = walk(&site, &newest).await;
        let held: Vec<_> = documents
            .iter()
            .map(|(_, answer)| numbers(answer.text()))
            .collect();
        // 240 is the last multiple of 15, and archives part the posts by hundreds.
        assert_eq!(
            held,
            [236..=250, 201..=240, 101..=200, 1..=100]
                .map(|range| range.collect::<BTreeSet<u32>>())
        );
        assert!(!documents[0].1.text().contains("fh:archive"));
        for (url, archive) in &documents[1..] {
            let text = archive.text();
            assert!(
                text.contains("<fh:archive xmlns:fh=\"http://purl.org/syndication/history/1.0\"/>"),
                "{text}"
            );
            assert_eq!(linked(text, "self").as_ref(), Some(url));
            assert_eq!(linked(text, "current").as_ref(), Some(&newest));
            assert_eq!(linked(text, "hub"), None, "nothing comes to an archive");
            assert_eq!(
                archive.header("link"),
                format!("<{ROOT}{url}>; rel=\"self\"")
            );
        }
        // Never to one that is not full (H-24).
        let next: Vec<_> = documents
            .iter()
            .map(|(_, answer)| linked(answer.text(), "next-archive"))
            .collect();
        assert_eq!(next[..3], [None, None, None]);
        let (url, _) = landed(&site, next[3].clone().unwrap()).await;
        assert_eq!(url, documents[2].0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_archive_may_be_kept_for_ever_and_stays_while_posts_come() {
    let site = Site::of(1..=250).await;
    let before = walk(&site, "/feeds/blog/classic.atom").await;
    site.rig.change((251..=290).map(add).collect()).await;
    let after = walk(&site, "/feeds/blog/classic.atom").await;
    assert_eq!(numbers(after[1].1.text()), (201..=285).collect());
    // The newest full one still gets its next.
    assert_eq!(before[2].1.header("cache-control"), "no-cache");
    for (old, new) in before[2..].iter().zip(&after[2..]) {
        assert_eq!((&old.0, &old.1.body), (&new.0, &new.1.body));
        let is_lasting = linked(old.1.text(), "next-archive").is_some();
        assert_eq!(
            old.1.header("cache-control").contains("immutable"),
            is_lasting,
            "{}",
            old.0
        );
        let known = site
            .get_with(&old.0, &[("if-none-match", old.1.header("etag"))])
            .await;
        assert_eq!(
            (known.status, known.body.len(), known.header("etag")),
            (304, 0, old.1.header("etag"))
        );
    }
    // The newest archive of before is still what it was.
    let unfinished = site.get(&before[1].0).await;
    assert_eq!(unfinished.body, before[1].1.body);
}

#[tokio::test(start_paused = true)]
async fn an_edited_post_is_among_the_newest_and_its_archive_has_another_address() {
    // RFC 5005 section 4.1.
    let site = Site::of(1..=250).await;
    let before = walk(&site, "/feeds/blog/classic.atom").await;
    site.rig.change(vec![edit(50, "Edited"), delete(60)]).await;
    let after = walk(&site, "/feeds/blog/classic.atom").await;
    let newest = numbers(after[0].1.text());
    assert_eq!(newest, (236..=250).chain([50]).collect());
    assert!(after[0].1.text().contains("Edited"));
    assert_eq!(
        (&after[1].0, &after[2].0),
        (&before[1].0, &before[2].0),
        "the others are what they were"
    );
    assert_ne!(after[3].0, before[3].0);
    let mut left: BTreeSet<u32> = (1..=100).collect();
    left.remove(&60);
    assert_eq!(numbers(after[3].1.text()), left);
    // A former address leads to the present posts, and is not kept.
    let former = site.get(&before[3].0).await;
    assert_eq!(
        (former.status, former.header("cache-control")),
        (200, "no-cache")
    );
    assert_eq!(linked(former.text(), "self"), Some(after[3].0.clone()));
    assert_eq!(former.body, after[3].1.body);
}

#[tokio::test(start_paused = true)]
async fn a_short_feed_has_no_archive_and_no_name_but_ours_leads_to_one() {
    let site = Site::of(1..=14).await;
    assert_eq!(walk(&site, "/feeds/blog/classic.atom").await.len(), 1);
    let site = Site::of(1..=130).await;
    let archive = walk(&site, "/feeds/blog/classic.atom").await[1].0.clone();
    let name = archive
        .strip_prefix("/feeds/blog/archive/")
        .unwrap()
        .strip_suffix(".atom")
        .unwrap();
    let (last, rest) = name.split_once('-').unwrap();
    assert_eq!(last, "120");
    for bad in [
        format!("/feeds/blog/archive/{name}.json"),
        format!("/feeds/blog/archive/{name}"),
        format!("/feeds/other/archive/{name}.atom"),
        format!("/feeds/blog/archive/0{name}.atom"),
        format!("/feeds/blog/archive/20-{rest}.atom"),
        format!("/feeds/blog/archive/420-{rest}.atom"),
        format!("/feeds/blog/archive/{last}-1-2.atom"),
        format!("/feeds/blog/archive/{last}-18446744073709551615-2.atom"),
        format!("/feeds/blog/archive/18446744073709551615-{rest}.atom"),
        "/feeds/blog/archive/1.atom".to_owned(),
        "/feeds/blog/archive/".to_owned(),
    ] {
        let answer = site.get(&bad).await;
        assert_eq!(answer.status, 404, "{bad}: {}", answer.text());
    }
}

#[tokio::test(start_paused = true)]
async fn every_classic_form_leads_to_its_archives() {
    let site = Site::of(1..=130).await;
    let mut url = "/feeds/blog/classic.jsonfeed".to_owned();
    let mut found = 0;
    loop {
        let (at, page) = landed(&site, url).await;
        let page = page.json();
        found += page["items"].as_array().unwrap().len();
        assert_eq!(page["feed_url"], format!("{ROOT}{at}"));
        assert_eq!(page.get("hubs").is_some(), at.contains("classic"));
        let Some(next) = page["next_url"].as_str() else {
            break;
        };
        url = next.strip_prefix(ROOT).unwrap().to_owned();
    }
    // Five posts stand among the newest and in the newest archive.
    assert_eq!(found, 135);
    let rdf = site.get("/feeds/blog/classic.rdf").await;
    let archive = rdf
        .text()
        .split_once("<iana:prev-archive rdf:resource=\"")
        .unwrap()
        .1;
    let archive = archive
        .split('"')
        .next()
        .unwrap()
        .strip_prefix(ROOT)
        .unwrap();
    let archive = site.get(archive).await;
    assert!(
        archive.text().contains("<fh:archive xmlns:fh=")
            && archive.text().contains("<iana:current ")
    );
    let page = site.get("/feeds/blog/classic.html").await;
    let older = page
        .text()
        .split_once("<a rel=\"next\" href=\"")
        .unwrap()
        .1
        .split('"')
        .next()
        .unwrap()
        .to_owned();
    let older = site.get(older.strip_prefix(ROOT).unwrap()).await;
    assert_eq!(older.header("content-type"), "text/html; charset=utf-8");
    assert!(
        older.text().contains("Older posts") && older.text().matches("</article>").count() == 20
    );
}
