//! Walks after another one: what their silence proves, and when they are due.

use super::*;

#[test]
fn only_a_whole_walk_on_the_way_of_the_one_before_proves_anything_by_its_silence() {
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
    let way = &PreviousWalk::By(Strategy::Archives);
    let walk = again(&docs, "none", way);
    assert!(walk.proves());
    assert_eq!((walk.base(), walk.kept(), walk.entries()), (7, 9, 5));
    assert!(!walk.doubted(true).proves(), "of a planet");
    let other = PreviousWalk::By(Strategy::Pages { rel: "next".into() });
    assert!(
        !again(&docs, "none", &other).proves(),
        "another strategy shows other things"
    );
    assert!(
        !again(&docs, "none", &PreviousWalk::WithoutStrategy).proves(),
        "nothing was read before"
    );
    let mut first = begin(&publisher(&docs), "none", &rules()).unwrap();
    let mut now = NOW;
    while step(&mut first, &publisher(&docs), &rules(), &mut now).is_some() {}
    assert!(
        first.is_done() && !first.proves(),
        "a first walk is laid beside nothing"
    );
    for at in 0..3 {
        let mut damaged = docs.clone();
        damaged[at].1.damaged = true;
        let walk = again(&damaged, "none", way);
        assert!(walk.is_done() && !walk.proves(), "document {at}");
        // Of a planet, which is whole all the same.
        let mut mixed = docs.clone();
        mixed[at].1.mixed = true;
        let walk = again(&mixed, "none", way);
        assert!(
            walk.history() == History::Complete && !walk.proves(),
            "document {at}"
        );
    }
    let mut gap = docs.clone();
    gap[2].1 = status(410);
    assert!(!again(&gap, "none", way).proves());
    let few = WalkRules {
        pages_max: 1,
        ..rules()
    };
    let publisher = publisher(&docs);
    let mut walk = begin(&publisher, "none", &few)
        .unwrap()
        .after(way.clone(), 7);
    while step(&mut walk, &publisher, &few, &mut now).is_some() {}
    assert!(walk.is_done() && !walk.proves(), "it ended at a limit");
}

#[test]
fn counted_pages_prove_something_when_they_end_and_nothing_when_they_only_stop_being_new() {
    let docs = [
        ("/rss", doc([6, 5])),
        ("/rss?paged=1", doc([6, 5])),
        ("/rss?paged=2", doc([4, 3])),
        ("/rss?paged=3", doc([2])),
    ];
    let first = again(&docs, "wordpress", &PreviousWalk::None);
    assert!(!first.proves() && !first.is_repeated());
    assert_eq!(
        first.strategy().unwrap().to_string(),
        "pages counted by `paged`"
    );
    let way = &first.as_previous();
    assert!(again(&docs, "wordpress", way).proves());
    let mut more = docs.to_vec();
    let stale = |body| Doc {
        body: Some(body),
        ..doc([2])
    };
    more.extend([
        ("/rss?paged=4", stale(4)),
        ("/rss?paged=5", stale(5)),
        ("/rss?paged=6", stale(6)),
    ]);
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
    let missed = LastWalk {
        missed: 1,
        ..walked
    };
    assert_eq!(missed.again_at(1_000_000), Some(NOW.plus_secs(86_400)));
    assert_eq!(missed.again_at(600), Some(NOW.plus_secs(600)));
    assert_eq!(missed.again_at(0), None);
    assert_eq!(
        LastWalk::at_once(History::Unknown, NOW).again_at(600),
        None,
        "there are no archives"
    );
    // A fault that may pass is looked at again in a week; a limit stays.
    let (week, month) = (7 * 86_400, 30 * 86_400);
    let partial = |reason| LastWalk::at_once(History::Partial(reason), NOW).again_at(month);
    assert_eq!(
        partial(PartialReason::LeadsToFeed),
        Some(NOW.plus_secs(week))
    );
    assert_eq!(
        partial(PartialReason::ServerLimit { entries_max: 9 }),
        Some(NOW.plus_secs(month))
    );
    let asked = LastWalk {
        began_at: Stamp::ZERO,
        ..LastWalk::at_once(History::Unknown, NOW)
    };
    assert_eq!(
        asked.again_at(month),
        Some(NOW.plus_secs(month)),
        "no way worked then"
    );
}
