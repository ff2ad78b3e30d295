//! Publishers that answer everything, so that no walk would ever end: each request counts, and
//! guesses are few.

use super::*;

/// An address, how often it was asked for before, and how many requests there were.
struct Ask<'a> {
    path: &'a str,
    times: usize,
    nth: u32,
}

/// Walks to the end, with these answers; the paths that were asked for, each with its time.
fn walk_all(
    live: &Doc,
    profile: &str,
    rules: &WalkRules,
    answer: impl Fn(&Ask<'_>) -> Doc,
) -> (Vec<(u64, String)>, ArchiveWalk) {
    let live = [("/rss", live.clone())];
    let mut walk = begin(&publisher(&live), profile, rules).unwrap();
    let (mut asked, mut now) = (Vec::<(u64, String)>::new(), NOW);
    loop {
        match walk.next(now) {
            WalkStep::Done => return (asked, walk),
            WalkStep::Wait(until) => now = until,
            WalkStep::Fetch(url) => {
                let path = url.trim_start_matches("http://blog.example").to_owned();
                let ask = Ask {
                    times: asked.iter().filter(|(_, known)| *known == path).count(),
                    nth: asked.len() as u32,
                    path: &path,
                };
                let doc = answer(&ask);
                asked.push((now.secs_since(NOW), path));
                reply(&mut walk, &url, &doc, rules, now);
                assert!(asked.len() <= 20_000, "it has no end");
            }
        }
    }
}

fn number(path: &str) -> u32 {
    let digits: String = path.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_default()
}

/// Archives 3 to 1, each of which names the one before.
fn chain(path: &str) -> Option<Doc> {
    let number = number(path);
    match number {
        3 | 2 => Some(linked(
            [number],
            "prev-archive",
            &format!("http://blog.example/a{}", number - 1),
        )),
        1 => Some(doc([1])),
        _ => None,
    }
}

fn live() -> Doc {
    linked([100], "prev-archive", "http://blog.example/a3")
}

/// Archives 103 to 101 in the same way, so that there are names to guess on both sides.
fn chain_in_the_middle(path: &str) -> Option<Doc> {
    match number(path) {
        at @ 102..=103 => Some(linked(
            [at],
            "prev-archive",
            &format!("http://blog.example/a{}", at - 1),
        )),
        101 => Some(doc([101])),
        _ => None,
    }
}

fn live_in_the_middle() -> Doc {
    linked([900], "prev-archive", "http://blog.example/a103")
}

#[test]
fn ten_guesses_are_enough_where_each_brings_something_new() {
    let made_up = |ask: &Ask<'_>| {
        chain_in_the_middle(ask.path).unwrap_or_else(|| doc([10_000 + number(ask.path)]))
    };
    let (asked, walk) = walk_all(&live_in_the_middle(), "none", &rules(), made_up);
    let mut guessed: Vec<_> = asked
        .iter()
        .map(|(_, path)| path)
        .filter(|path| chain_in_the_middle(path).is_none())
        .collect();
    guessed.dedup();
    assert_eq!(guessed.len(), usize::from(GUESSES_MAX), "{asked:?}");
    assert!(asked.len() < 20, "{asked:?}");
    assert_eq!(
        walk.history().to_string(),
        "partial (it has pages that no page links to, and more of them may follow)"
    );
    let gaps = asked.windows(2).map(|two| two[1].0 - two[0].0);
    assert!(gaps.min() >= Some(rules().page_gap_secs), "{asked:?}");
}

#[test]
fn guesses_end_at_the_first_that_brings_nothing_new() {
    let check = |name: &str, guessed: fn(&str) -> Doc| {
        let answer =
            |ask: &Ask<'_>| chain_in_the_middle(ask.path).unwrap_or_else(|| guessed(ask.path));
        let (asked, walk) = walk_all(&live_in_the_middle(), "none", &rules(), answer);
        let guesses: Vec<_> = asked
            .iter()
            .filter(|(_, path)| chain_in_the_middle(path).is_none())
            .collect();
        // One on each side of the chain.
        assert!(guesses.len() <= 2, "{name}: {asked:?}");
        assert_eq!(walk.history(), History::Complete, "{name}: {asked:?}");
    };
    check("none", |_| status(404));
    check("the live document", |_| doc([900]));
    check("the last archive", |_| doc([101]));
    check("one page for all", |_| Doc {
        body: Some(7),
        ..doc([102, 103])
    });
    check("nothing but a page of HTML", |_| status(299));
    check("a redirect to the feed", |_| Doc {
        landed: Some(FEED.to_owned()),
        ..doc([900])
    });
    check("a redirect to the last archive", |_| Doc {
        landed: Some("http://blog.example/a101".to_owned()),
        ..doc([101])
    });
    check("no entries", |_| doc([]));
}

#[test]
fn a_few_archives_that_nobody_links_to_are_found_all_the_same() {
    let answer = |ask: &Ask<'_>| match number(ask.path) {
        at @ 3..=9 => doc([at]),
        _ => status(404),
    };
    // Between the live document and the archive that it names stand others, and so do behind it.
    let first = |ask: &Ask<'_>| match number(ask.path) {
        7 => linked([7], "prev-archive", "http://blog.example/a6"),
        _ => answer(ask),
    };
    let live = linked([100], "prev-archive", "http://blog.example/a7");
    let (asked, walk) = walk_all(&live, "none", &rules(), first);
    assert_eq!(walk.entries(), 8, "{asked:?}");
}

#[test]
fn every_request_counts_on_every_way_and_whatever_it_brings() {
    let base = || doc([100, 99]);
    let counted = || {
        let mut doc = base();
        doc.metadata.paging.total_items = Some(1_000_000);
        doc
    };
    let next = |path: &str| format!("http://blog.example/p{}", number(path) + 1);
    let fresh = |ask: &Ask<'_>| doc([10_000 + ask.nth * 2, 10_001 + ask.nth * 2]);
    let ways: Vec<(&str, Doc, &str)> = vec![
        ("archives", live(), "none"),
        (
            "pages",
            linked([100], "next", "http://blog.example/p1"),
            "none",
        ),
        ("OpenSearch", counted(), "none"),
        ("WordPress", base(), "wordpress"),
        ("Ghost", base(), "ghost"),
        ("Blogger", counted(), "blogger"),
        ("Drupal", base(), "drupal"),
    ];
    type Trick<'a> = (&'a str, Box<dyn Fn(&Ask<'_>) -> Doc + 'a>);
    let tricks: Vec<Trick<'_>> = vec![
        (
            "a new page that links on",
            Box::new(|ask| linked([10_000 + ask.nth], "prev-archive", &next(ask.path))),
        ),
        (
            "a new page with a next one",
            Box::new(|ask| linked([10_000 + ask.nth], "next", &next(ask.path))),
        ),
        (
            "a new page that names a newer one",
            Box::new(|ask| linked([10_000 + ask.nth], "next-archive", &next(ask.path))),
        ),
        ("a new page", Box::new(fresh)),
        (
            "a new page behind a redirect",
            Box::new(|ask| Doc {
                landed: Some(format!("http://blog.example/r{}", ask.nth)),
                ..linked([10_000 + ask.nth], "prev-archive", &next(ask.path))
            }),
        ),
        (
            "a page that is always damaged",
            Box::new(|ask| Doc {
                damaged: true,
                ..linked([10_000 + ask.nth], "prev-archive", &next(ask.path))
            }),
        ),
        (
            "an error each second time",
            Box::new(|ask| {
                if ask.times.is_multiple_of(2) {
                    status(500)
                } else {
                    linked([10_000 + ask.nth], "prev-archive", &next(ask.path))
                }
            }),
        ),
        (
            "an empty page each second time",
            Box::new(|ask| {
                if ask.times.is_multiple_of(2) {
                    linked([], "prev-archive", &next(ask.path))
                } else {
                    linked([10_000 + ask.nth], "prev-archive", &next(ask.path))
                }
            }),
        ),
        (
            "the chain, and then something else on each second look",
            Box::new(|ask| match (ask.times, chain(ask.path)) {
                (0, Some(archive)) => archive,
                _ => fresh(ask),
            }),
        ),
        ("always an error", Box::new(|_| status(500))),
        ("always a refusal", Box::new(|_| status(403))),
    ];
    for pages_max in [1, 2, 9, 60] {
        let few = WalkRules {
            pages_max,
            ..rules()
        };
        for (way, live, profile) in &ways {
            for (trick, answer) in &tricks {
                let (asked, walk) = walk_all(live, profile, &few, answer);
                assert!(
                    asked.len() <= pages_max as usize,
                    "{way}, {trick}: {} of {pages_max}",
                    asked.len()
                );
                assert!(walk.is_done(), "{way}, {trick}");
                let gaps = asked.windows(2).map(|two| two[1].0 - two[0].0);
                assert!(
                    gaps.min().is_none_or(|gap| gap >= few.page_gap_secs),
                    "{way}, {trick}: {asked:?}"
                );
            }
        }
    }
}

#[test]
fn redirects_and_a_limit_that_was_lowered_count_as_well() {
    let rules = WalkRules {
        pages_max: 10,
        ..rules()
    };
    let publisher = publisher(&[("/rss", live())]);
    let mut walk = begin(&publisher, "none", &rules).unwrap();
    assert_eq!(walk.requests_left(&rules), 10);
    walk.count_requests(4);
    reply(
        &mut walk,
        "http://blog.example/a3",
        &chain("/a3").unwrap(),
        &rules,
        NOW,
    );
    assert_eq!(walk.requests_left(&rules), 5);
    assert!(!walk.end_at_limit(&rules));
    let fewer = WalkRules {
        pages_max: 5,
        ..rules
    };
    assert!(walk.end_at_limit(&fewer) && !walk.end_at_limit(&fewer));
    assert_eq!(
        walk.history().to_string(),
        "partial (its archives take more than 5 requests)"
    );
}
