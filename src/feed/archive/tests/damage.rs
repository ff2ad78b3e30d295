//! Pages that are damaged, empty or of another feed.

use super::*;
use everfeed_adapters::Date;

const DAMAGED: &str = "partial (a page of its archives is damaged)";

#[test]
fn a_damaged_page_is_asked_for_once_more_and_what_it_may_lack_is_told() {
    let docs = [
        (
            "/rss",
            linked([5], "prev-archive", "http://blog.example/a2"),
        ),
        (
            "/a2",
            linked([4, 3], "prev-archive", "http://blog.example/a1"),
        ),
        ("/a1", doc([2, 1])),
    ];
    // One that was cut leads nowhere any more; one that was only mended does, and its link is
    // followed.
    let cut = Doc {
        damaged: true,
        ..doc([4])
    };
    let mended = Doc {
        damaged: true,
        ..docs[1].1.clone()
    };
    // Besides each page and the first one's second request: what proves the end.
    for (page, kept, more) in [(cut.clone(), &["/a2"][..], 1), (mended, &["/a2", "/a1"], 3)] {
        let mut docs = docs.clone();
        docs[1].1 = page;
        check(&docs, "none", kept, DAMAGED);
        // All of them being so, the first one is asked for again, and no other.
        docs[2].1.damaged = true;
        check(&docs, "none", kept, DAMAGED);
        let (mut walk, mut now) = (begin(&publisher(&docs), "none", &rules()).unwrap(), NOW);
        let mut asked = 0;
        while step(&mut walk, &publisher(&docs), &rules(), &mut now).is_some() {
            asked += 1;
        }
        assert_eq!((asked, walk.is_done()), (kept.len() + 1 + more, true));
    }
    let mut publisher = publisher(&docs);
    publisher.insert("http://blog.example/a2".into(), cut);
    let (mut walk, mut now) = (begin(&publisher, "none", &rules()).unwrap(), NOW);
    let (url, verdict) = step(&mut walk, &publisher, &rules(), &mut now).unwrap();
    assert_eq!(
        (url.as_str(), verdict),
        ("http://blog.example/a2", PageUse::Drop)
    );
    assert_eq!(walk.next(now), WalkStep::Wait(now.plus_secs(60)));
    publisher.insert("http://blog.example/a2".into(), docs[1].1.clone());
    while step(&mut walk, &publisher, &rules(), &mut now).is_some() {}
    assert_eq!((walk.history(), walk.entries()), (History::Complete, 5));
}

#[test]
fn counted_pages_and_whole_documents_that_are_damaged_are_told_too() {
    let damaged = |ids: &[u32]| Doc {
        damaged: true,
        ..doc(ids.iter().copied())
    };
    let (two, three) = ("/rss?paged=2", "/rss?paged=3");
    let one = ("/rss?paged=1", doc([6, 5]));
    let docs = [
        ("/rss", doc([6, 5])),
        one.clone(),
        (two, damaged(&[4])),
        (three, doc([2, 1])),
    ];
    check(&docs, "wordpress", &[two, three], DAMAGED);
    check(
        &[("/rss", doc([3])), ("/rss?all=1", damaged(&[2]))],
        "serendipity",
        &["/rss?all=1"],
        DAMAGED,
    );
    // One that was cut before its first entry is not what follows the last page.
    let docs = [
        ("/rss", doc([6, 5])),
        one,
        (two, doc([4, 3])),
        (three, damaged(&[])),
    ];
    check(&docs, "wordpress", &[two], DAMAGED);
}

#[test]
fn a_linked_page_of_nothing_is_no_archive_and_a_counted_one_is_the_end() {
    let why = "partial (a page of its archives holds no entries)";
    for rel in ["prev-archive", "next"] {
        let docs = [
            ("/rss", linked([5], rel, "http://blog.example/a2")),
            ("/a2", linked([4], rel, "http://blog.example/a1")),
            ("/a1", doc([])),
        ];
        check(&docs, "none", &["/a2"], why);
        let docs = [
            ("/rss", linked([5], rel, "http://blog.example/a2")),
            ("/a2", doc([])),
        ];
        check(&docs, "none", &[], why);
        // A month without posts that stands between two others may have lost them: the rest is
        // read.
        let docs = [
            ("/rss", linked([5], rel, "http://blog.example/a2")),
            ("/a2", linked([], rel, "http://blog.example/a1")),
            ("/a1", doc([4])),
        ];
        check(&docs, "none", &["/a1"], why);
        // The next rung has what the link has not.
        let docs = [
            ("/rss", linked([6, 5], rel, "http://blog.example/a2")),
            ("/a2", doc([])),
            ("/rss?paged=2", doc([4])),
            ("/rss?paged=1", doc([6, 5])),
        ];
        check(&docs, "wordpress", &["/rss?paged=2"], "complete");
    }
    let docs = [
        ("/rss", doc([4, 3])),
        ("/rss?paged=1", doc([4, 3])),
        ("/rss?paged=2", doc([2])),
        ("/rss?paged=3", doc([])),
    ];
    check(&docs, "wordpress", &["/rss?paged=2"], "complete");
}

#[test]
fn a_page_of_another_feed_is_not_taken_in() {
    let why = "partial (a page of its archives is of another feed)";
    let ours = |doc| of_feed(doc, "", "Blog", "http://blog.example/");
    let theirs = |doc| of_feed(doc, "", "Other", "http://other.example/");
    let live = ours(linked([5], "prev-archive", "http://blog.example/a2"));
    let second = ours(linked([4], "prev-archive", "http://blog.example/a1"));
    check(
        &[
            ("/rss", live.clone()),
            ("/a2", second),
            ("/a1", theirs(doc([90]))),
        ],
        "none",
        &["/a2"],
        why,
    );
    check(
        &[("/rss", live.clone()), ("/a2", theirs(doc([90])))],
        "none",
        &[],
        why,
    );
    let docs = [
        ("/rss", live),
        ("/a2", theirs(doc([90]))),
        ("/rss?paged=2", ours(doc([4]))),
        ("/rss?paged=1", ours(doc([6, 5]))),
    ];
    check(
        &docs,
        "wordpress",
        &["/rss?paged=2", "/rss?paged=1"],
        "complete",
    );
    // Counted pages.
    let (two, three) = ("/rss?paged=2", "/rss?paged=3");
    let docs = [("/rss", ours(doc([5]))), (two, theirs(doc([90])))];
    check(&docs, "wordpress", &[], why);
    let docs = [
        ("/rss", ours(doc([5]))),
        (two, ours(doc([4]))),
        (three, theirs(doc([90]))),
    ];
    check(&docs, "wordpress", &[two], why);
    // The walk knows whose it is after a restart, and in one more walk.
    let before = again(&docs, "wordpress", &PreviousWalk::None).as_previous();
    assert!(!again(&docs, "wordpress", &before).has_shown(&keys(&[90])[0]));
}

#[test]
fn pages_of_one_feed_may_have_other_titles_addresses_and_ids() {
    let page = |doc, n: u32, site: &str| {
        let id = format!("http://blog.example/index.rdf?page={n}");
        of_feed(doc, &id, &format!("Blog - page {n}"), site)
    };
    let docs = [
        (
            "/rss",
            page(
                linked([5], "next", "http://blog.example/a2"),
                1,
                "http://blog.example/",
            ),
        ),
        (
            "/a2",
            page(
                linked([4], "next", "http://blog.example/a1"),
                2,
                "https://blog.example/2",
            ),
        ),
        ("/a1", doc([3])),
    ];
    check(&docs, "none", &["/a2", "/a1"], "complete");
    // It moved, and kept its title.
    let moved = |doc, site| of_feed(doc, "", "Blog", site);
    let docs = [
        (
            "/rss",
            moved(
                linked([5], "next", "http://blog.example/a2"),
                "http://blog.example/",
            ),
        ),
        ("/a2", moved(doc([4]), "http://old.example/")),
    ];
    check(&docs, "none", &["/a2"], "complete");
}

/// Pages of four by `next`, built at this time. The third is the copy of a cache from before the last
/// two posts until `fresh_at`.
fn cached_at(now: Stamp, fresh_at: Stamp) -> Publisher {
    let built = |mut doc: Doc, at: i64| {
        doc.metadata.updated = Some(Date {
            raw: at.to_string(),
            at_us: Some(at * 1_000_000),
        });
        doc
    };
    let next = |n: u32| format!("http://blog.example/rss?p={n}");
    let third = if now < fresh_at {
        built(doc([2, 1]), 400)
    } else {
        built(doc([4, 3, 2, 1]), 500)
    };
    publisher(&[
        (
            "/rss",
            built(linked([12, 11, 10, 9], "next", &next(2)), 500),
        ),
        (
            "/rss?p=2",
            built(linked([8, 7, 6, 5], "next", &next(3)), 500),
        ),
        ("/rss?p=3", third),
    ])
}

#[test]
fn a_page_from_a_cache_that_is_older_than_the_one_before_it_is_read_again_later() {
    const DAY: u64 = 86_400;
    let walked = |fresh_at: Stamp| {
        let mut now = NOW;
        let mut walk = begin(&cached_at(now, fresh_at), "none", &rules()).unwrap();
        let mut kept = Vec::new();
        while !walk.is_done() {
            if let WalkStep::Wait(until) = walk.next(now) {
                now = until;
            }
            let docs = cached_at(now, fresh_at);
            if let Some((url, PageUse::Keep)) = step(&mut walk, &docs, &rules(), &mut now) {
                kept.push(url.replace("http://blog.example/rss?", ""));
            }
        }
        (
            kept.join(" "),
            walk.history().to_string(),
            (now.secs() - NOW.secs()) / DAY,
        )
    };
    assert_eq!(
        walked(NOW.plus_secs(3 * 3600)),
        ("p=2 p=3 p=3".into(), "complete".into(), 1)
    );
    assert_eq!(walked(NOW), ("p=2 p=3".into(), "complete".into(), 0));
    let (kept, history, days) = walked(NOW.plus_secs(90 * DAY));
    assert_eq!((kept.as_str(), days), ("p=2 p=3", 7));
    assert_eq!(
        history,
        "partial (a page of its archives is an older copy than the page before it, as a cache keeps one)"
    );
}

/// Archives of four, each with a date of its own at which it was built. The one in the middle is the
/// copy of a cache from before the last two posts until `fresh_at`.
fn archives_cached_at(now: Stamp, fresh_at: Stamp, last: [i64; 2]) -> Publisher {
    let dated = |mut doc: Doc, at: i64| {
        doc.metadata.updated = Some(Date {
            raw: at.to_string(),
            at_us: Some(at),
        });
        doc
    };
    let built = |doc: Doc, at: i64| Doc {
        is_built: true,
        ..dated(doc, at)
    };
    let prev = |ids: &[u32], n: u32| {
        let url = format!("http://blog.example/a/{n}");
        linked(ids.iter().copied(), "prev-archive", &url)
    };
    let second = if now < fresh_at {
        dated(prev(&[6, 5], 1), 400)
    } else {
        built(prev(&[8, 7, 6, 5], 1), 700)
    };
    publisher(&[
        ("/rss", built(prev(&[14, 13, 12], 3), 1000)),
        ("/a/3", built(prev(&[11, 10, 9], 2), 800)),
        ("/a/2", second),
        ("/a/1", built(prev(&[4, 3], 0), last[0])),
        ("/a/0", built(doc([2, 1]), last[1])),
    ])
}

#[test]
fn an_archive_that_was_built_before_the_one_behind_it_is_read_again_for_three_days() {
    const DAY: u64 = 86_400;
    let walked = |fresh_at: Stamp, last: [i64; 2]| {
        let mut now = NOW;
        let mut walk = begin(&archives_cached_at(now, fresh_at, last), "none", &rules()).unwrap();
        let mut kept = Vec::new();
        while !walk.is_done() {
            if let WalkStep::Wait(until) = walk.next(now) {
                now = until;
            }
            let docs = archives_cached_at(now, fresh_at, last);
            if let Some((url, PageUse::Keep)) = step(&mut walk, &docs, &rules(), &mut now) {
                kept.push(url.replace("http://blog.example/a/", ""));
            }
        }
        let days = (now.secs() - NOW.secs()) / DAY;
        (kept.join(" "), walk.history().to_string(), days)
    };
    let complete = |kept: &str, days: u64| (kept.to_owned(), "complete".to_owned(), days);
    let (in_a_while, never) = (NOW.plus_secs(40 * 3600), NOW.plus_secs(90 * DAY));
    assert_eq!(walked(in_a_while, [600, 500]), complete("3 2 1 0 2", 2));
    assert_eq!(walked(NOW, [600, 500]), complete("3 2 1 0", 0));
    // Nothing tells what a second date of its own would not.
    assert_eq!(walked(never, [600, 500]), complete("3 2 1 0", 3));
    assert_eq!(
        walked(never, [300, 200]),
        complete("3 2 1 0", 0),
        "in order"
    );
    assert_eq!(
        walked(never, [600, 800]),
        complete("3 2 1 0", 0),
        "each page has the date of its last change"
    );
}
