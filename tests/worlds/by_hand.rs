//! Worlds made by hand: the meetings that chance seldom makes.

use super::{
    plan::{
        Category, ConsumerPlan, Deed, FeedPlan, HOUR, MINUTE, Plan, SECOND, Shown, Source, Way,
        What,
    },
    play::play,
};

/// Seeds with which each of them is played, and their troubles.
const ROUNDS: [(u64, u64); 3] = [(1, 0), (2, 60), (3, 120)];

fn feed(no: usize) -> FeedPlan {
    FeedPlan {
        no,
        is_atom: no % 2 == 1,
        window: 8,
        posts: 6,
        has_archives: false,
        has_pages: true,
        copies: None,
        shown: Shown::All,
    }
}

const PUSHED: Way = Way::Push { lease_secs: 86_400 };
const WAITING: Way = Way::LongPoll {
    max: 2,
    timeout_secs: 60,
};
const PULLING: Way = Way::Pull {
    max: 1,
    every_secs: 300,
};

/// A consumer in each of these ways, of the first feed.
fn consumers(ways: &[Way], filter: Option<Category>) -> Vec<ConsumerPlan> {
    let consumer = |(no, way): (usize, &Way)| ConsumerPlan {
        no,
        way: *way,
        source: Source::Feed(0),
        filter,
    };
    ways.iter().enumerate().map(consumer).collect()
}

/// Plays a world in which this happens, in each of its rounds.
fn check(feeds: &[FeedPlan], consumers: &[ConsumerPlan], deeds: &[(u64, What)]) {
    for (seed, trouble) in ROUNDS {
        let deed = |(at_ms, what): &(u64, What)| Deed {
            at_ms: *at_ms,
            what: what.clone(),
        };
        let plan = Plan {
            seed,
            feeds: feeds.to_vec(),
            has_group: feeds.len() > 1,
            consumers: consumers.to_vec(),
            deeds: deeds.iter().map(deed).collect(),
            busy_ms: 3 * HOUR,
            trouble,
        };
        let outcome = play(&plan);
        let told = plan.told();
        assert_eq!(outcome.fault, None, "{told}\n{}", outcome.tail);
        assert!(outcome.pages + outcome.pushes > 0, "somebody reads");
    }
}

#[test]
fn a_copy_is_put_back_in_the_middle_of_a_fan_out() {
    let adds = What::Add { feed: 0, posts: 6 };
    check(
        &[feed(0)],
        &consumers(&[PUSHED, PUSHED, PUSHED, WAITING, Way::Stream], None),
        &[
            (5 * MINUTE, adds.clone()),
            (20 * MINUTE, What::BackUp),
            (21 * MINUTE, adds),
            // The first push of a crowd, or so.
            (
                40 * MINUTE,
                What::Crash {
                    point: 30,
                    down_secs: 1,
                },
            ),
            (41 * MINUTE, What::Edit { feed: 0 }),
            (58 * MINUTE, What::Restore { down_secs: 1 }),
        ],
    );
}

#[test]
fn a_part_becomes_empty_while_its_reader_is_away() {
    let shown = |shown| What::Show { feed: 0, shown };
    let empty = What::Empty {
        feed: 0,
        category: Category::News,
    };
    let mut deeds = vec![(5 * MINUTE, shown(Shown::Only(Category::News)))];
    for consumer in 0..4 {
        let secs = 3000;
        deeds.push((10 * MINUTE, What::Away { consumer, secs }));
    }
    deeds.push((20 * MINUTE, empty));
    deeds.push((40 * MINUTE, shown(Shown::Only(Category::Notes))));
    deeds.push((90 * MINUTE, shown(Shown::Only(Category::News))));
    let ways = [PUSHED, WAITING, PULLING, Way::Stream];
    check(&[feed(0)], &consumers(&ways, None), &deeds);
    check(&[feed(0)], &consumers(&ways, Some(Category::Notes)), &deeds);
}

#[test]
fn a_feed_that_is_removed_comes_back_under_the_same_name() {
    check(
        &[feed(0), feed(1)],
        &consumers(&[PUSHED, WAITING, PULLING, Way::Stream], None),
        &[
            (5 * MINUTE, What::Add { feed: 0, posts: 2 }),
            (
                20 * MINUTE,
                What::Remove {
                    feed: 0,
                    secs: 1200,
                },
            ),
            (25 * MINUTE, What::Edit { feed: 0 }),
            (
                26 * MINUTE,
                What::Crash {
                    point: 1,
                    down_secs: 20,
                },
            ),
            (60 * MINUTE, What::Remove { feed: 0, secs: 5 }),
        ],
    );
}

#[test]
fn the_clock_is_a_year_ahead_for_20_seconds() {
    let clock = What::Clock {
        ahead_secs: 31_536_000,
        for_secs: 20,
    };
    let mut deeds = vec![];
    for minute in [10, 30, 50] {
        deeds.push((minute * MINUTE, What::Add { feed: 0, posts: 3 }));
        deeds.push(((minute + 2) * MINUTE, clock.clone()));
        deeds.push(((minute + 3) * MINUTE, What::Delete { feed: 0 }));
    }
    check(
        &[feed(0)],
        &consumers(&[PUSHED, WAITING, Way::Push { lease_secs: 300 }], None),
        &deeds,
    );
}

#[test]
fn a_publisher_renumbers_while_its_archives_are_being_read() {
    let archived = FeedPlan {
        has_archives: true,
        window: 4,
        posts: 30,
        ..feed(0)
    };
    for at_ms in [SECOND, 3 * SECOND, 10 * SECOND, 40 * SECOND] {
        check(
            std::slice::from_ref(&archived),
            &consumers(&[PUSHED, PULLING], None),
            &[
                (at_ms, What::Renumber { feed: 0 }),
                (10 * MINUTE, What::Add { feed: 0, posts: 1 }),
            ],
        );
    }
}

#[test]
fn the_last_item_of_a_filter_is_deleted() {
    let empty = |category| What::Empty { feed: 0, category };
    check(
        &[feed(0)],
        &consumers(
            &[PUSHED, WAITING, PULLING, Way::Stream],
            Some(Category::News),
        ),
        &[
            (10 * MINUTE, empty(Category::News)),
            (
                60 * MINUTE,
                What::Crash {
                    point: 3,
                    down_secs: 60,
                },
            ),
            (100 * MINUTE, What::Add { feed: 0, posts: 4 }),
            (150 * MINUTE, empty(Category::News)),
        ],
    );
}

#[test]
fn the_disk_is_full_while_pushes_are_taken() {
    check(
        &[feed(0)],
        &consumers(&[PUSHED, PUSHED, WAITING], None),
        &[
            (10 * MINUTE, What::Add { feed: 0, posts: 4 }),
            (11 * MINUTE, What::DiskTrouble { secs: 1800 }),
            (30 * MINUTE, What::Edit { feed: 0 }),
            (45 * MINUTE, What::DiskFull { secs: 900 }),
            (50 * MINUTE, What::Add { feed: 0, posts: 4 }),
            (
                55 * MINUTE,
                What::Crash {
                    point: 2,
                    down_secs: 3,
                },
            ),
        ],
    );
}

#[test]
fn a_feed_is_closed_to_its_readers_and_opened_again() {
    let shown = |shown| What::Show { feed: 0, shown };
    check(
        &[feed(0), feed(1)],
        &consumers(&[PUSHED, WAITING, PULLING, Way::Stream], None),
        &[
            (10 * MINUTE, shown(Shown::Nothing)),
            (12 * MINUTE, What::Add { feed: 0, posts: 3 }),
            (13 * MINUTE, What::Delete { feed: 0 }),
            (
                14 * MINUTE,
                What::Crash {
                    point: 2,
                    down_secs: 5,
                },
            ),
            (60 * MINUTE, shown(Shown::All)),
            (80 * MINUTE, shown(Shown::Nothing)),
            (81 * MINUTE, shown(Shown::Only(Category::Notes))),
        ],
    );
}
