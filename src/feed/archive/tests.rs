//! Every guard of a walk against publishers in a table.

use super::{completion::PAUSE_SECS, *};
use crate::feed::item::KeyHash;
use everfeed_adapters::{History as CheckResult, Link, Paging, platforms::Platforms};
use std::collections::BTreeMap;

const FEED: &str = "http://blog.example/rss";
const NOW: Stamp = Stamp::from_secs(1_000_000);

/// Answer of a publisher under one address.
#[derive(Clone, Default)]
struct Doc {
    ids: Vec<u32>,
    metadata: Metadata,
    status: u16,
    landed: Option<String>,
    body: Option<u32>,
    damaged: bool,
    mixed: bool,
}

fn doc(ids: impl IntoIterator<Item = u32>) -> Doc {
    Doc { ids: ids.into_iter().collect(), status: 200, ..Doc::default() }
}

fn linked(ids: impl IntoIterator<Item = u32>, rel: &str, href: &str) -> Doc {
    let mut doc = doc(ids);
    doc.metadata.links.push(Link { href: href.into(), rel: rel.into(), ..Link::default() });
    doc
}

fn status(status: u16) -> Doc {
    Doc { status, ..Doc::default() }
}

type Publisher = BTreeMap<String, Doc>;

fn publisher(docs: &[(&str, Doc)]) -> Publisher {
    let at = |path: &str| {
        if path.contains("://") { path.to_owned() } else { format!("http://blog.example{path}") }
    };
    docs.iter().map(|(path, doc)| (at(path), doc.clone())).collect()
}

fn rules() -> WalkRules {
    let aliases = vec![Url::parse("https://public.example/feed").unwrap()];
    WalkRules {
        reach: OwnOrigins::new(Url::parse(FEED).unwrap(), aliases),
        pages_max: 1000,
        page_gap_secs: 2,
    }
}

fn keys(ids: &[u32]) -> Vec<KeyHash> {
    ids.iter().map(|id| KeyHash::of("ns", &id.to_string())).collect()
}

fn body(url: &str, doc: &Doc) -> Digest {
    Digest::of(doc.body.map_or_else(|| format!("{url}{:?}", doc.ids), |body| body.to_string()).as_bytes())
}

fn begin(publisher: &Publisher, profile: &str, rules: &WalkRules) -> Result<ArchiveWalk, History> {
    let live = &publisher[FEED];
    let seen = WalkedDocument {
        landed: FEED,
        body: body(FEED, live),
        bytes: 1000,
        keys: &keys(&live.ids),
        metadata: &live.metadata,
        damaged: live.damaged,
        mixed: live.mixed,
    };
    let profile = Platforms::embedded().get(profile).map(|profile| &**profile);
    ArchiveWalk::begin(&Url::parse(FEED).unwrap(), &seen, profile, rules, NOW)
}

/// One step; the address asked, and what became of it.
fn step(
    walk: &mut ArchiveWalk,
    publisher: &Publisher,
    rules: &WalkRules,
    now: &mut Stamp,
) -> Option<(String, PageUse)> {
    let url = match walk.next(*now) {
        WalkStep::Done => return None,
        WalkStep::Wait(until) => {
            assert!(until > *now);
            *now = until;
            return step(walk, publisher, rules, now);
        }
        WalkStep::Fetch(url) => url,
    };
    let missing = status(404);
    let doc = publisher.get(&url).unwrap_or(&missing);
    let (keys, landed) = (keys(&doc.ids), doc.landed.clone().unwrap_or_else(|| url.clone()));
    let reply = match doc.status {
        200 => WalkReply::Page(WalkedDocument {
            landed: &landed,
            body: body(&url, doc),
            bytes: 1000,
            keys: &keys,
            metadata: &doc.metadata,
            damaged: doc.damaged,
            mixed: doc.mixed,
        }),
        status @ (403 | 404 | 410) => WalkReply::Missing { status },
        299 => WalkReply::NoFeed,
        _ => WalkReply::Failed { why: "the publisher answered 500", retry_after_secs: None },
    };
    let verdict = walk.answer(reply, rules, *now);
    Some((url, verdict))
}

/// Walks to the first rest: the paths kept, and what is known of the history.
fn walk_with(publisher: &Publisher, profile: &str, rules: &WalkRules) -> (Vec<String>, History) {
    let mut walk = match begin(publisher, profile, rules) {
        Ok(walk) => walk,
        Err(history) => return (Vec::new(), history),
    };
    let (mut kept, mut now) = (Vec::new(), NOW);
    for _ in 0..5000 {
        if walk.is_over() {
            return (kept, walk.history());
        }
        assert_eq!(walk.history(), History::Running);
        let Some((url, verdict)) = step(&mut walk, publisher, rules, &mut now) else { break };
        if verdict == PageUse::Keep {
            kept.push(url.trim_start_matches("http://blog.example").to_owned());
        }
    }
    (kept, walk.history())
}

#[track_caller]
fn check(docs: &[(&str, Doc)], profile: &str, kept: &[&str], history: &str) {
    let (found, end) = walk_with(&publisher(docs), profile, &rules());
    assert_eq!(
        (found, end.to_string()),
        (kept.iter().map(|s| (*s).to_owned()).collect(), history.to_owned())
    );
}

#[test]
fn archives_are_followed_to_the_one_without_a_predecessor() {
    // H-6, H-8: the last page has no link and is the oldest; it is taken in before its link is looked for.
    let docs = [
        ("/rss", linked([5, 4], "prev-archive", "http://blog.example/a2")),
        ("/a2", linked([3, 2], "prev-archive", "http://blog.example/a1")),
        ("/a1", doc([1])),
    ];
    check(&docs, "none", &["/a2", "/a1"], "complete");
    let mut draft = doc([5]);
    draft.metadata.history =
        CheckResult { prev: Some("http://blog.example/a1".into()), ..CheckResult::default() };
    check(&[("/rss", draft), ("/a1", doc([1]))], "none", &["/a1"], "complete");
}

#[test]
fn a_document_that_is_the_whole_feed_needs_no_walk() {
    // H-2, H-5, H-20.
    let mut whole = linked([2, 1], "prev-archive", "http://blog.example/a1");
    whole.metadata.history.stateful = Some(false);
    check(&[("/rss", whole)], "none", &[], "complete");
    let mut counted = doc([2, 1]);
    counted.metadata.paging = Paging { total_items: Some(2), ..Paging::default() };
    check(&[("/rss", counted)], "none", &[], "complete");
    check(&[("/rss", doc([2, 1]))], "none", &[], "unknown");
}

#[test]
fn pages_are_followed_by_next_or_previous() {
    // H-22.
    for rel in ["next", "previous"] {
        let docs = [
            ("/rss", linked([5, 4], rel, "http://blog.example/rss?p=2")),
            ("/rss?p=2", linked([3, 2], rel, "http://blog.example/rss?p=3")),
            ("/rss?p=3", doc([1])),
        ];
        check(&docs, "none", &["/rss?p=2", "/rss?p=3"], "complete");
    }
}

#[test]
fn loops_end_the_walk_and_are_told() {
    // H-13: a self-loop leads nowhere, A <-> B in a circle.
    check(&[("/rss", linked([1], "next", FEED))], "none", &[], "unknown");
    let docs = [
        ("/rss", linked([5], "prev-archive", "http://blog.example/a")),
        ("/a", linked([4], "prev-archive", "http://blog.example/b")),
        ("/b", linked([3], "prev-archive", "http://blog.example/a#x")),
    ];
    check(&docs, "none", &["/a", "/b"], "partial (its archives lead in a circle)");
    let mut twin = linked([4], "prev-archive", "http://blog.example/c");
    twin.body = Some(7);
    let docs = [
        ("/rss", linked([5], "prev-archive", "http://blog.example/a")),
        (
            "/a",
            Doc { metadata: linked([], "prev-archive", "http://blog.example/b").metadata, ..twin.clone() },
        ),
        ("/b", twin),
    ];
    check(&docs, "none", &["/a"], "partial (its archives lead in a circle)");
}

#[test]
fn two_pages_without_anything_new_and_endless_chains_end_the_walk() {
    let next = |n: u32| format!("http://blog.example/a{n}");
    let barren: Vec<(String, Doc)> =
        (1..50).map(|n| (format!("/a{n}"), linked([5], "prev-archive", &next(n + 1)))).collect();
    let mut docs = vec![("/rss".to_owned(), linked([5], "prev-archive", &next(1)))];
    docs.extend(barren);
    let (kept, history) = walk_with(
        &docs.iter().map(|(path, doc)| (format!("http://blog.example{path}"), doc.clone())).collect(),
        "none",
        &rules(),
    );
    assert!(kept.is_empty());
    assert_eq!(history.to_string(), "partial (two pages of its archives in a row hold nothing new)");
    let endless: Publisher = std::iter::once((FEED.to_owned(), linked([0], "next", &next(1))))
        .chain((1..2000).map(|n| (next(n), linked([n], "next", &next(n + 1)))))
        .collect();
    let (kept, history) = walk_with(&endless, "none", &rules());
    assert_eq!((kept.len(), history.to_string()), (1000, "partial (it has more than 1000 pages)".into()));
}

#[test]
fn archives_on_other_hosts_are_not_followed_and_those_of_an_alias_are_ours() {
    let docs = [("/rss", linked([2], "prev-archive", "http://evil.example/a"))];
    check(&docs, "none", &[], "partial (its archives lead to another host)");
    let docs = [
        ("/rss", linked([3], "prev-archive", "https://public.example/a")),
        ("/a", linked([2], "prev-archive", "http://169.254.169.254/b")),
    ];
    check(&docs, "none", &["/a"], "partial (its archives lead to another host)");
    let away = Doc { landed: Some("http://evil.example/a".into()), ..doc([1]) };
    let docs = [("/rss", linked([2], "next", "http://blog.example/a")), ("/a", away)];
    check(&docs, "none", &[], "partial (a page of the archives leads to another host)");
}

#[test]
fn an_alias_keeps_the_path_and_takes_the_configured_host_and_port() {
    let aliases = vec![Url::parse("https://public.example/feed").unwrap()];
    let reach = OwnOrigins::new(Url::parse("http://127.0.0.1:8081/rss").unwrap(), aliases);
    let to = |url: &str| reach.mapped(url);
    assert_eq!(to("https://public.example/a?b=1#c").as_deref(), Some("http://127.0.0.1:8081/a?b=1"));
    assert_eq!(to("http://public.example/a").as_deref(), Some("http://127.0.0.1:8081/a"));
    assert_eq!(to("http://127.0.0.1:8081/a").as_deref(), Some("http://127.0.0.1:8081/a"));
    for other in
        ["http://127.0.0.1:8079/a", "http://127.0.0.1/a", "https://public.example:99/a", "ftp://x/", "a"]
    {
        assert_eq!(to(other), None, "{other}");
    }
}

#[test]
fn a_missing_archive_is_asked_for_again_and_then_told() {
    // H-11, H-12.
    let docs = [
        ("/rss", linked([5], "prev-archive", "http://blog.example/a2")),
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
            walk.history().reason().unwrap().to_string().contains(&code.to_string()),
            "{}",
            walk.history()
        );
        assert_eq!(walk.next(now), WalkStep::Wait(now.plus_secs(PAUSE_SECS)));
        publisher.insert("http://blog.example/a1".into(), doc([1]));
        let (url, verdict) = step(&mut walk, &publisher, &rules(), &mut now).unwrap();
        assert_eq!((url.as_str(), verdict), ("http://blog.example/a1", PageUse::Keep));
        assert_eq!(walk.history(), History::Complete);
    }
    let mut docs = docs;
    docs[2].1 = status(410);
    check(&docs, "none", &["/a2"], "partial (a page of the archives is missing (410))");
    docs[2].1 = status(299);
    check(&docs, "none", &["/a2"], "partial (a page of the archives is no feed)");
}

#[test]
fn a_gap_is_final_after_a_week() {
    let publisher =
        publisher(&[("/rss", linked([5], "prev-archive", "http://blog.example/a1")), ("/a1", status(500))]);
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
fn wordpress_pages_are_counted_until_404() {
    let docs = [("/rss", doc([6, 5])), ("/rss?paged=2", doc([4, 3])), ("/rss?paged=3", doc([2, 1]))];
    check(&docs, "wordpress", &["/rss?paged=2", "/rss?paged=3"], "complete");
    // In the order of edits the pages begin with the first.
    let page = |n: u32| format!("/rss?paged={n}&orderby=modified&order=ASC");
    let (one, two, three) = (page(1), page(2), page(3));
    let docs = [
        ("/rss", doc([6, 5])),
        (one.as_str(), doc([1, 2])),
        (two.as_str(), doc([3, 4])),
        (three.as_str(), doc([5, 6])),
    ];
    check(&docs, "wordpress", &[&one, &two], "complete");
}

#[test]
fn a_server_that_ignores_the_parameter_shows_nothing_of_its_history() {
    let live = Doc { body: Some(1), ..doc([2, 1]) };
    let docs = [
        ("/rss", live.clone()),
        ("/rss?paged=2", live.clone()),
        ("/rss?paged=1&orderby=modified&order=ASC", Doc { body: Some(2), ..live }),
    ];
    check(&docs, "wordpress", &[], "unknown");
}

#[test]
fn the_boundary_is_read_again_when_the_live_document_moved_meanwhile() {
    let mut publisher =
        publisher(&[("/rss", doc([6, 5])), ("/rss?paged=2", doc([4, 3])), ("/rss?paged=3", doc([1]))]);
    let (mut walk, mut now) = (begin(&publisher, "wordpress", &rules()).unwrap(), NOW);
    let mut asked = Vec::new();
    while let Some((url, verdict)) = step(&mut walk, &publisher, &rules(), &mut now) {
        asked.push((url.trim_start_matches("http://blog.example").to_owned(), verdict));
        if url.ends_with("paged=2") && asked.len() == 2 {
            // 5 is taken out, everything moves up by one, and 2 would be overlooked.
            publisher.insert(FEED.into(), doc([6, 4]));
            publisher.insert("http://blog.example/rss?paged=2".into(), doc([3, 2]));
        }
    }
    let told: Vec<_> = asked.iter().map(|(url, verdict)| (url.as_str(), *verdict)).collect();
    assert_eq!(
        told[1..],
        [
            ("/rss?paged=2", PageUse::Keep),
            ("/rss?paged=3", PageUse::Keep),
            ("/rss?paged=4", PageUse::Drop),
            ("/rss", PageUse::Drop),
            ("/rss?paged=2", PageUse::Keep),
        ]
    );
    assert_eq!(walk.history(), History::Complete);
}

#[test]
fn entries_are_counted_with_an_overlap_until_the_total() {
    let counted = |ids: &[u32], first: u64| {
        let mut doc = doc(ids.iter().copied());
        doc.metadata.paging = Paging { total_items: Some(5), first_index: Some(first), page_items: Some(2) };
        doc
    };
    // Blogger without its links.
    let (two, three) = ("/rss?start-index=2&max-results=100", "/rss?start-index=4&max-results=100");
    let docs = [("/rss", counted(&[5, 4], 1)), (two, counted(&[4, 3, 2], 2)), (three, counted(&[2, 1], 4))];
    check(&docs, "blogger", &[two, three], "complete");
    // OpenSearch alone.
    let (two, four) = ("/rss?startIndex=2", "/rss?startIndex=4");
    let docs = [("/rss", counted(&[5, 4], 1)), (two, counted(&[4, 3, 2], 2)), (four, counted(&[2, 1], 4))];
    check(&docs, "none", &[two, four], "complete");
}

#[test]
fn one_parameter_lifts_the_limit() {
    check(&[("/rss", doc([3])), ("/rss?all=1", doc([1, 2, 3]))], "serendipity", &["/rss?all=1"], "complete");
    let many = |n: u32| doc(1..=n);
    check(
        &[("/rss", doc([3])), ("/rss?limit=100", many(99))],
        "textpattern",
        &["/rss?limit=100"],
        "complete",
    );
    check(
        &[("/rss", doc([3])), ("/rss?limit=100", many(100))],
        "textpattern",
        &["/rss?limit=100"],
        "partial (its server gives no more than 100 entries)",
    );
}

#[test]
fn the_publishers_own_word_comes_first_and_the_next_rung_when_it_fails() {
    let docs = [
        ("/rss", linked([6, 5], "prev-archive", "http://blog.example/gone")),
        ("/gone", status(410)),
        ("/rss?paged=2", doc([4])),
    ];
    check(&docs, "wordpress", &["/rss?paged=2"], "complete");
    check(&docs[..2], "none", &[], "partial (a page of the archives is missing (410))");
}

#[test]
fn a_page_that_leads_back_by_a_redirect_is_the_end() {
    // Ghost: what is beyond the last page leads to the last.
    let back = Doc { landed: Some("http://blog.example/rss/2/".into()), body: Some(9), ..doc([2, 1]) };
    let docs = [("/rss", doc([4, 3])), ("/rss/2/", doc([2, 1])), ("/rss/3/", back)];
    check(&docs, "ghost", &["/rss/2/"], "complete");
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
    let asked = WalkReply::Failed { why: "429", retry_after_secs: Some(900) };
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
        landed: "http://blog.example/a",
        body: Digest::of(b"a"),
        bytes: BYTES_MAX,
        keys: &keys(&page.ids),
        metadata: &page.metadata,
        damaged: false,
        mixed: false,
    };
    assert_eq!(walk.answer(WalkReply::Page(seen), &rules(), NOW), PageUse::Keep);
    assert_eq!(walk.history().to_string(), "partial (its archives hold more than 128 MiB)");
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
            landed: url.clone(),
            base_url: url.clone(),
            url,
            content_type: None,
            content_language: None,
            read_at: NOW,
            body,
            strong: u32::try_from(keys.len()).unwrap(),
            keys,
            deflated: Vec::new(),
        }
    };
    let pages = vec![page(0, FEED), page(1, "http://blog.example/a")];
    let staged = StagedWalk { walk: Some(again), pages };
    again = staged.recalled().unwrap();
    assert_eq!(again, walk);
    step(&mut again, &publisher, &rules(), &mut now);
    assert_eq!(again.history().to_string(), "partial (its archives lead in a circle)");
}

/// One more walk after `before`, to its end.
fn again(docs: &[(&str, Doc)], profile: &str, before: &PreviousWalk) -> ArchiveWalk {
    let publisher = publisher(docs);
    let walk = begin(&publisher, profile, &rules()).unwrap();
    let (mut walk, mut now) = (walk.after(before.clone(), 7), NOW);
    while step(&mut walk, &publisher, &rules(), &mut now).is_some() {}
    walk
}

#[test]
fn only_a_whole_walk_on_the_way_of_the_one_before_proves_anything_by_its_silence() {
    let docs = [
        ("/rss", linked([5, 4], "prev-archive", "http://blog.example/a2")),
        ("/a2", linked([3, 2], "prev-archive", "http://blog.example/a1")),
        ("/a1", doc([1])),
    ];
    let way = &PreviousWalk::By(Strategy::Archives);
    let walk = again(&docs, "none", way);
    assert!(walk.proves());
    assert_eq!((walk.base, walk.kept, walk.entries()), (7, 9, 5));
    assert!(!walk.doubted(true).proves(), "of a planet");
    let other = PreviousWalk::By(Strategy::Pages { rel: "next".into() });
    assert!(!again(&docs, "none", &other).proves(), "another strategy shows other things");
    assert!(!again(&docs, "none", &PreviousWalk::WithoutStrategy).proves(), "nothing was read before");
    let mut first = begin(&publisher(&docs), "none", &rules()).unwrap();
    let mut now = NOW;
    while step(&mut first, &publisher(&docs), &rules(), &mut now).is_some() {}
    assert!(first.is_done() && !first.proves(), "a first walk is laid beside nothing");
    for at in 0..3 {
        let mut damaged = docs.clone();
        damaged[at].1.damaged = true;
        let walk = again(&damaged, "none", way);
        assert!(walk.is_done() && !walk.proves(), "document {at}");
        // Of a planet, which is whole all the same.
        let mut mixed = docs.clone();
        mixed[at].1.mixed = true;
        let walk = again(&mixed, "none", way);
        assert!(walk.history() == History::Complete && !walk.proves(), "document {at}");
    }
    let mut gap = docs.clone();
    gap[2].1 = status(410);
    assert!(!again(&gap, "none", way).proves());
    let few = WalkRules { pages_max: 1, ..rules() };
    let publisher = publisher(&docs);
    let mut walk = begin(&publisher, "none", &few).unwrap().after(way.clone(), 7);
    while step(&mut walk, &publisher, &few, &mut now).is_some() {}
    assert!(walk.is_done() && !walk.proves(), "it ended at a limit");
}

#[test]
fn counted_pages_prove_something_when_they_end_and_nothing_when_they_only_stop_being_new() {
    let docs = [("/rss", doc([6, 5])), ("/rss?paged=2", doc([4, 3])), ("/rss?paged=3", doc([2, 1]))];
    let first = again(&docs, "wordpress", &PreviousWalk::None);
    assert!(!first.proves() && !first.is_repeated());
    assert_eq!(first.strategy().unwrap().to_string(), "pages counted by `paged`");
    let way = &first.as_previous();
    assert!(again(&docs, "wordpress", way).proves());
    let mut more = docs.to_vec();
    let stale = |body| Doc { body: Some(body), ..doc([2, 1]) };
    more.extend([("/rss?paged=4", stale(4)), ("/rss?paged=5", stale(5)), ("/rss?paged=6", stale(6))]);
    let walk = again(&more, "wordpress", way);
    assert_eq!(walk.history(), History::Complete);
    assert!(!walk.proves());
}

#[test]
fn one_more_walk_takes_nothing_back_and_mends_what_it_can() {
    let (complete, unknown) = (History::Complete, History::Unknown);
    let a_gap = History::Partial(PartialReason::NoFeed);
    let another = History::Partial(PartialReason::Circle);
    let check = |before: &History, found: &History, after: &History| {
        assert_eq!(before.after(found.clone()), *after, "{before} and {found}");
    };
    check(&complete, &a_gap, &complete);
    check(&complete, &unknown, &complete);
    check(&a_gap, &complete, &complete);
    check(&a_gap, &another, &another);
    check(&a_gap, &unknown, &a_gap);
    check(&History::Running, &a_gap, &a_gap);
    check(&History::Running, &unknown, &unknown);
}

#[test]
fn the_next_walk_is_due_in_its_time_and_a_day_after_one_that_missed_something() {
    let walked = LastWalk::at_once(History::Complete, NOW);
    assert_eq!(walked.again_at(1_000_000), Some(NOW.plus_secs(1_000_000)));
    assert_eq!(walked.again_at(0), None);
    let missed = LastWalk { missed: 1, ..walked };
    assert_eq!(missed.again_at(1_000_000), Some(NOW.plus_secs(86_400)));
    assert_eq!(missed.again_at(600), Some(NOW.plus_secs(600)));
    assert_eq!(missed.again_at(0), None);
    assert_eq!(LastWalk::at_once(History::Unknown, NOW).again_at(600), None, "there are no archives");
}

/// A live document of so many entries of this generator.
fn made_with(generator: &str, entries: u32) -> Doc {
    let mut doc = doc(1..=entries);
    let name = Some(generator.to_owned());
    doc.metadata.generator = Some(everfeed_adapters::Generator { name, version: None, uri: None });
    doc
}

#[test]
fn a_blog_without_a_second_page_is_whole_when_its_software_names_itself_and_the_document_is_not_full() {
    let wordpress = "https://wordpress.org/?v=6.0";
    let check = |live: Doc, end: u16, expect: &str| {
        // The order by edits is not known to old versions, which show the live document.
        let (first, same) =
            ("/rss?paged=1&orderby=modified&order=ASC", Doc { body: Some(2), ..live.clone() });
        let docs = [("/rss", live), (first, same), ("/rss?paged=2", status(end))];
        super::tests::check(&docs, "wordpress", &[], expect);
    };
    check(made_with(wordpress, 3), 404, "complete");
    check(made_with(wordpress, 10), 404, "complete");
    check(made_with(wordpress, 11), 404, "unknown");
    check(doc(1..=3), 404, "unknown");
    check(made_with("Another 1.0", 3), 404, "unknown");
    check(Doc { damaged: true, ..made_with(wordpress, 3) }, 404, "unknown");
    // Only 404 says that there is no page.
    check(made_with(wordpress, 3), 410, "unknown");
    check(made_with(wordpress, 3), 299, "partial (a page of the archives is no feed)");
    check(made_with(wordpress, 3), 403, "partial (a page of the archives is missing (403))");
    // That the first page is not there either says that no pages are counted here.
    let docs = [("/rss", made_with(wordpress, 3)), ("/rss?paged=2", doc(1..=3))];
    super::tests::check(&docs, "wordpress", &[], "unknown");
    // What its publisher names and does not have remains a gap.
    let mut named = made_with(wordpress, 3);
    named.metadata.links = linked([], "next", "http://blog.example/gone").metadata.links;
    let docs = [("/rss", named), ("/gone", status(410)), ("/rss?paged=2", status(404))];
    super::tests::check(&docs, "wordpress", &[], "partial (a page of the archives is missing (410))");
}

const DAMAGED: &str = "partial (a page of its archives is damaged)";

#[test]
fn a_damaged_page_is_asked_for_once_more_and_what_it_may_lack_is_told() {
    let docs = [
        ("/rss", linked([5], "prev-archive", "http://blog.example/a2")),
        ("/a2", linked([4, 3], "prev-archive", "http://blog.example/a1")),
        ("/a1", doc([2, 1])),
    ];
    // One that was cut leads nowhere any more; one that was only mended does, and its link is followed.
    let cut = Doc { damaged: true, ..doc([4]) };
    let mended = Doc { damaged: true, ..docs[1].1.clone() };
    for (page, kept) in [(cut.clone(), &["/a2"][..]), (mended, &["/a2", "/a1"])] {
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
        assert_eq!((asked, walk.is_done()), (kept.len() + 1, true));
    }
    let mut publisher = publisher(&docs);
    publisher.insert("http://blog.example/a2".into(), cut);
    let (mut walk, mut now) = (begin(&publisher, "none", &rules()).unwrap(), NOW);
    let (url, verdict) = step(&mut walk, &publisher, &rules(), &mut now).unwrap();
    assert_eq!((url.as_str(), verdict), ("http://blog.example/a2", PageUse::Drop));
    assert_eq!(walk.next(now), WalkStep::Wait(now.plus_secs(60)));
    publisher.insert("http://blog.example/a2".into(), docs[1].1.clone());
    while step(&mut walk, &publisher, &rules(), &mut now).is_some() {}
    assert_eq!((walk.history(), walk.entries()), (History::Complete, 5));
}

#[test]
fn counted_pages_and_whole_documents_that_are_damaged_are_told_too() {
    let damaged = |ids: &[u32]| Doc { damaged: true, ..doc(ids.iter().copied()) };
    let (two, three) = ("/rss?paged=2", "/rss?paged=3");
    let docs = [("/rss", doc([6, 5])), (two, damaged(&[4])), (three, doc([2, 1]))];
    check(&docs, "wordpress", &[two, three], DAMAGED);
    check(&[("/rss", doc([3])), ("/rss?all=1", damaged(&[2]))], "serendipity", &["/rss?all=1"], DAMAGED);
    // One that was cut before its first entry is not what follows the last page.
    let docs = [("/rss", doc([6, 5])), (two, doc([4, 3])), (three, damaged(&[]))];
    check(&docs, "wordpress", &[two], DAMAGED);
    // The boundary, read again because the live document has moved.
    let mut publisher = publisher(&[("/rss", doc([6, 5])), (two, doc([4, 3])), (three, doc([2, 1]))]);
    let (mut walk, mut now) = (begin(&publisher, "wordpress", &rules()).unwrap(), NOW);
    while let Some((url, _)) = step(&mut walk, &publisher, &rules(), &mut now) {
        if url.ends_with("paged=3") {
            publisher.insert(FEED.into(), doc([7, 6]));
            publisher.insert(format!("http://blog.example{two}"), damaged(&[5]));
        }
    }
    assert_eq!((walk.history().to_string(), walk.entries()), (DAMAGED.to_owned(), 6));
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
        let docs = [("/rss", linked([5], rel, "http://blog.example/a2")), ("/a2", doc([]))];
        check(&docs, "none", &[], why);
        // A month without posts stands between two others.
        let docs = [
            ("/rss", linked([5], rel, "http://blog.example/a2")),
            ("/a2", linked([], rel, "http://blog.example/a1")),
            ("/a1", doc([4])),
        ];
        check(&docs, "none", &["/a1"], "complete");
        // The next rung has what the link has not.
        let docs = [
            ("/rss", linked([5], rel, "http://blog.example/a2")),
            ("/a2", doc([])),
            ("/rss?paged=2", doc([4])),
        ];
        check(&docs, "wordpress", &["/rss?paged=2"], "complete");
    }
    let docs = [("/rss", doc([4, 3])), ("/rss?paged=2", doc([2, 1])), ("/rss?paged=3", doc([]))];
    check(&docs, "wordpress", &["/rss?paged=2"], "complete");
}

/// The same as a page of a feed of this id, title and site.
fn of_feed(mut doc: Doc, id: &str, title: &str, site: &str) -> Doc {
    let (href, rel) = (site.to_owned(), "alternate".to_owned());
    doc.metadata.id = (!id.is_empty()).then(|| id.to_owned());
    doc.metadata.title = Some(everfeed_adapters::Text { value: title.to_owned(), ..Default::default() });
    doc.metadata.links.push(Link { href, rel, ..Link::default() });
    doc
}

#[test]
fn a_page_of_another_feed_is_not_taken_in() {
    let why = "partial (a page of its archives is of another feed)";
    let ours = |doc| of_feed(doc, "", "Blog", "http://blog.example/");
    let theirs = |doc| of_feed(doc, "", "Other", "http://other.example/");
    let live = ours(linked([5], "prev-archive", "http://blog.example/a2"));
    let second = ours(linked([4], "prev-archive", "http://blog.example/a1"));
    check(&[("/rss", live.clone()), ("/a2", second), ("/a1", theirs(doc([90])))], "none", &["/a2"], why);
    check(&[("/rss", live.clone()), ("/a2", theirs(doc([90])))], "none", &[], why);
    let docs = [("/rss", live), ("/a2", theirs(doc([90]))), ("/rss?paged=2", ours(doc([4])))];
    check(&docs, "wordpress", &["/rss?paged=2"], "complete");
    // Counted pages.
    let (two, three) = ("/rss?paged=2", "/rss?paged=3");
    let docs = [("/rss", ours(doc([5]))), (two, theirs(doc([90])))];
    check(&docs, "wordpress", &[], why);
    let docs = [("/rss", ours(doc([5]))), (two, ours(doc([4]))), (three, theirs(doc([90])))];
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
        ("/rss", page(linked([5], "next", "http://blog.example/a2"), 1, "http://blog.example/")),
        ("/a2", page(linked([4], "next", "http://blog.example/a1"), 2, "https://blog.example/2")),
        ("/a1", doc([3])),
    ];
    check(&docs, "none", &["/a2", "/a1"], "complete");
    // It moved, and kept its title.
    let moved = |doc, site| of_feed(doc, "", "Blog", site);
    let docs = [
        ("/rss", moved(linked([5], "next", "http://blog.example/a2"), "http://blog.example/")),
        ("/a2", moved(doc([4]), "http://old.example/")),
    ];
    check(&docs, "none", &["/a2"], "complete");
}
