//! Walks by the links of a publisher: which are followed, and what a fault in them comes to.

use super::*;

#[test]
fn archives_are_followed_to_the_one_without_a_predecessor() {
    // H-6, H-8: the last page has no link and is the oldest; it is taken in before its link is
    // looked for.
    let docs = [
        (
            "/rss",
            linked([5, 4], "prev-archive", "http://blog.example/a2"),
        ),
        (
            "/a2",
            linked([3, 2], "prev-archive", "http://blog.example/a1"),
        ),
        ("/a1", doc([1])),
    ];
    check(&docs, "none", &["/a2", "/a1"], "complete");
    let mut draft = doc([5]);
    draft.metadata.history = CheckResult {
        prev: Some("http://blog.example/a1".into()),
        ..CheckResult::default()
    };
    check(
        &[("/rss", draft), ("/a1", doc([1]))],
        "none",
        &["/a1"],
        "complete",
    );
}

#[test]
fn a_document_that_is_the_whole_feed_needs_no_walk() {
    // H-2, H-5, H-20.
    let mut whole = linked([2, 1], "prev-archive", "http://blog.example/a1");
    whole.metadata.history.stateful = Some(false);
    check(&[("/rss", whole)], "none", &[], "complete");
    let mut counted = doc([2, 1]);
    counted.metadata.paging = Paging {
        total_items: Some(2),
        ..Paging::default()
    };
    check(&[("/rss", counted)], "none", &[], "complete");
    check(&[("/rss", doc([2, 1]))], "none", &[], "unknown");
}

#[test]
fn pages_are_followed_by_next_or_previous() {
    // H-22.
    for rel in ["next", "previous"] {
        let docs = [
            ("/rss", linked([5, 4], rel, "http://blog.example/rss?p=2")),
            (
                "/rss?p=2",
                linked([3, 2], rel, "http://blog.example/rss?p=3"),
            ),
            ("/rss?p=3", doc([1])),
        ];
        check(&docs, "none", &["/rss?p=2", "/rss?p=3"], "complete");
    }
}

#[test]
fn loops_end_the_walk_and_are_told() {
    // H-13: a self-loop leads nowhere, A <-> B in a circle.
    check(
        &[("/rss", linked([1], "next", FEED))],
        "none",
        &[],
        "unknown",
    );
    let docs = [
        ("/rss", linked([5], "prev-archive", "http://blog.example/a")),
        ("/a", linked([4], "prev-archive", "http://blog.example/b")),
        ("/b", linked([3], "prev-archive", "http://blog.example/a#x")),
    ];
    check(
        &docs,
        "none",
        &["/a", "/b"],
        "partial (its archives lead in a circle)",
    );
    let mut twin = linked([4], "prev-archive", "http://blog.example/c");
    twin.body = Some(7);
    let docs = [
        ("/rss", linked([5], "prev-archive", "http://blog.example/a")),
        (
            "/a",
            Doc {
                metadata: linked([], "prev-archive", "http://blog.example/b").metadata,
                ..twin.clone()
            },
        ),
        ("/b", twin),
    ];
    check(
        &docs,
        "none",
        &["/a"],
        "partial (its archives lead in a circle)",
    );
}

#[test]
fn two_pages_without_anything_new_and_endless_chains_end_the_walk() {
    let next = |n: u32| format!("http://blog.example/a{n}");
    let barren: Vec<(String, Doc)> = (1..50)
        .map(|n| (format!("/a{n}"), linked([5], "prev-archive", &next(n + 1))))
        .collect();
    let mut docs = vec![("/rss".to_owned(), linked([5], "prev-archive", &next(1)))];
    docs.extend(barren);
    let (kept, history) = walk_with(
        &docs
            .iter()
            .map(|(path, doc)| (format!("http://blog.example{path}"), doc.clone()))
            .collect(),
        "none",
        &rules(),
    );
    assert!(kept.is_empty());
    assert_eq!(
        history.to_string(),
        "partial (two pages of its archives in a row hold nothing new)"
    );
    let endless: Publisher = std::iter::once((FEED.to_owned(), linked([0], "next", &next(1))))
        .chain((1..2000).map(|n| (next(n), linked([n], "next", &next(n + 1)))))
        .collect();
    let (kept, history) = walk_with(&endless, "none", &rules());
    assert_eq!(
        (kept.len(), history.to_string()),
        (
            1000,
            "partial (its archives take more than 1000 requests)".into()
        )
    );
}

#[test]
fn archives_on_other_hosts_are_not_followed_and_those_of_an_alias_are_ours() {
    let docs = [("/rss", linked([2], "prev-archive", "http://evil.example/a"))];
    check(
        &docs,
        "none",
        &[],
        "partial (its archives lead to another host)",
    );
    let docs = [
        (
            "/rss",
            linked([3], "prev-archive", "https://public.example/a"),
        ),
        (
            "/a",
            linked([2], "prev-archive", "http://169.254.169.254/b"),
        ),
    ];
    check(
        &docs,
        "none",
        &["/a"],
        "partial (its archives lead to another host)",
    );
    let away = Doc {
        landed: Some("http://evil.example/a".into()),
        ..doc([1])
    };
    let docs = [
        ("/rss", linked([2], "next", "http://blog.example/a")),
        ("/a", away),
    ];
    check(
        &docs,
        "none",
        &[],
        "partial (a page of the archives leads to another host)",
    );
}

#[test]
fn an_alias_keeps_the_path_and_takes_the_configured_host_and_port() {
    let aliases = vec![Url::parse("https://public.example/feed").unwrap()];
    let reach = OwnOrigins::new(Url::parse("http://127.0.0.1:8081/rss").unwrap(), aliases);
    let to = |url: &str| reach.mapped(url);
    assert_eq!(
        to("https://public.example/a?b=1#c").as_deref(),
        Some("http://127.0.0.1:8081/a?b=1")
    );
    assert_eq!(
        to("http://public.example/a").as_deref(),
        Some("http://127.0.0.1:8081/a")
    );
    assert_eq!(
        to("http://127.0.0.1:8081/a").as_deref(),
        Some("http://127.0.0.1:8081/a")
    );
    for other in [
        "http://127.0.0.1:8079/a",
        "http://127.0.0.1/a",
        "https://public.example:99/a",
        "ftp://x/",
        "a",
    ] {
        assert_eq!(to(other), None, "{other}");
    }
}

#[test]
fn a_missing_archive_is_asked_for_again_and_then_told() {
    // H-11, H-12.
    let docs = [
        (
            "/rss",
            linked([5], "prev-archive", "http://blog.example/a2"),
        ),
        ("/a2", linked([4], "prev-archive", "http://blog.example/a1")),
        ("/a1", status(404)),
    ];
    for code in [404, 403, 500] {
        let mut docs = docs.clone();
        docs[2].1 = status(code);
        let mut publisher = publisher(&docs);
        let (mut walk, mut now) = (begin(&publisher, "none", &rules()).unwrap(), NOW);
        let mut asked = 0;
        while !walk.is_over() {
            step(&mut walk, &publisher, &rules(), &mut now).unwrap();
            asked += 1;
        }
        assert_eq!((asked, walk.is_done()), (5, false), "{code}");
        assert!(
            walk.history()
                .reason()
                .unwrap()
                .to_string()
                .contains(&code.to_string()),
            "{}",
            walk.history()
        );
        assert_eq!(walk.next(now), WalkStep::Wait(now.plus_secs(PAUSE_SECS)));
        publisher.insert("http://blog.example/a1".into(), doc([1]));
        let (url, verdict) = step(&mut walk, &publisher, &rules(), &mut now).unwrap();
        assert_eq!(
            (url.as_str(), verdict),
            ("http://blog.example/a1", PageUse::Keep)
        );
        assert_eq!(
            walk.history(),
            History::Running,
            "the end is not proven yet"
        );
        while step(&mut walk, &publisher, &rules(), &mut now).is_some() {}
        assert_eq!(walk.history(), History::Complete);
    }
    let mut docs = docs;
    docs[2].1 = status(410);
    check(
        &docs,
        "none",
        &["/a2"],
        "partial (a page of the archives is missing (410))",
    );
    docs[2].1 = status(299);
    check(
        &docs,
        "none",
        &["/a2"],
        "partial (a page of the archives is no feed)",
    );
}

#[test]
fn a_gap_is_final_after_a_week() {
    let publisher = publisher(&[
        (
            "/rss",
            linked([5], "prev-archive", "http://blog.example/a1"),
        ),
        ("/a1", status(500)),
    ]);
    let (mut walk, mut now) = (begin(&publisher, "none", &rules()).unwrap(), NOW);
    let mut asked = 0;
    while step(&mut walk, &publisher, &rules(), &mut now).is_some() {
        asked += 1;
        assert!(asked < 100);
    }
    assert!(walk.is_done() && matches!(walk.history(), History::Partial(_)));
    assert!(now >= NOW.plus_secs(7 * PAUSE_SECS));
}

#[test]
fn the_publishers_own_word_comes_first_and_the_next_rung_when_it_fails() {
    let docs = [
        (
            "/rss",
            linked([6, 5], "prev-archive", "http://blog.example/gone"),
        ),
        ("/gone", status(410)),
        ("/rss?paged=2", doc([4])),
        ("/rss?paged=1", doc([6, 5])),
    ];
    check(&docs, "wordpress", &["/rss?paged=2"], "complete");
    check(
        &docs[..2],
        "none",
        &[],
        "partial (a page of the archives is missing (410))",
    );
}

#[test]
fn pages_are_a_gap_apart_and_a_host_that_wants_rest_gets_it() {
    let publisher = publisher(&[
        ("/rss", linked([3], "next", "http://blog.example/a")),
        ("/a", linked([2], "next", "http://blog.example/b")),
    ]);
    let mut walk = begin(&publisher, "none", &rules()).unwrap();
    assert_eq!(walk.next(NOW), WalkStep::Wait(NOW.plus_secs(2)));
    let mut now = NOW;
    step(&mut walk, &publisher, &rules(), &mut now);
    assert_eq!(walk.next(now), WalkStep::Wait(now.plus_secs(2)));
    let asked = WalkReply::Failed {
        why: "429",
        retry_after_secs: Some(900),
    };
    walk.answer(asked, &rules(), now);
    assert_eq!(walk.next(now), WalkStep::Wait(now.plus_secs(900)));
    walk.answer(WalkReply::Deferred { wait_secs: 7 }, &rules(), now);
    assert_eq!(walk.next(now), WalkStep::Wait(now.plus_secs(7)));
}

#[test]
fn archives_that_are_too_large_are_told() {
    let publisher = publisher(&[("/rss", linked([3], "next", "http://blog.example/a"))]);
    let mut walk = begin(&publisher, "none", &rules()).unwrap();
    let page = linked([2], "next", "http://blog.example/b");
    let seen = WalkedDocument {
        asked: "http://blog.example/a",
        landed: "http://blog.example/a",
        body: Digest::of(b"a"),
        bytes: BYTES_MAX,
        keys: &keys(&page.ids),
        metadata: &page.metadata,
        is_built: false,
        damaged: false,
        mixed: false,
    };
    assert_eq!(
        walk.answer(WalkReply::Page(seen), &rules(), NOW),
        PageUse::Keep
    );
    assert_eq!(
        walk.history().to_string(),
        "partial (its archives hold more than 128 MiB)"
    );
}

#[test]
fn a_walk_that_is_told_what_it_saw_goes_on_where_it_was() {
    let publisher = publisher(&[
        ("/rss", linked([5], "prev-archive", "http://blog.example/a")),
        ("/a", linked([4], "prev-archive", "http://blog.example/b")),
        ("/b", linked([3], "prev-archive", "http://blog.example/a")),
    ]);
    let (mut walk, mut now) = (begin(&publisher, "none", &rules()).unwrap(), NOW);
    step(&mut walk, &publisher, &rules(), &mut now);
    let mut again = walk.token();
    assert!(!again.remembers());
    let page = |no: u32, url: &str| {
        let doc = &publisher[url];
        let (url, body, keys) = (url.to_owned(), body(url, doc), keys(&doc.ids));
        StagedPage {
            no,
            address: PageAddress {
                landed: url.clone(),
                base_url: url.clone(),
                url,
            },
            content_type: None,
            content_language: None,
            read_at: NOW,
            body,
            strong: u32::try_from(keys.len()).unwrap(),
            keys,
            content: StagedBody::Traces,
        }
    };
    let pages = vec![page(0, FEED), page(1, "http://blog.example/a")];
    let staged = StagedWalk {
        walk: Some(again),
        pages,
    };
    again = staged.recalled().unwrap();
    assert_eq!(again, walk);
    step(&mut again, &publisher, &rules(), &mut now);
    assert_eq!(
        again.history().to_string(),
        "partial (its archives lead in a circle)"
    );
}
