//! Publishers with every fault that is known of real ones, polled for months through the pipeline
//! that polls in earnest: what is taken for deleted, and whether it was. Run as
//! `cargo test --test publisher -- NAME` it plays the scenarios with that in their names.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use scenario::{Pages, Scenario};
use score::{Score, Told};
use std::{
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};
use tokio::runtime;

mod document;
mod publisher;
mod scenario;
mod score;
#[expect(dead_code, reason = "what records is for the test of `replay`")]
mod watcher;

/// Rounds of each scenario unless `EVERFEED_SEEDS` says otherwise, so that all take a few minutes
/// in a debug build.
const SEEDS_KNOWN: u64 = 2;
const SEEDS_OTHERS: u64 = 1;

/// Edits that are told for each true one at most.
const TOLD_SHARE_MAX: usize = 3;

fn main() -> ExitCode {
    let seeds: Option<u64> = std::env::var("EVERFEED_SEEDS")
        .ok()
        .map(|n| n.parse().unwrap());
    let wanted = std::env::args()
        .skip(1)
        .find(|arg| !arg.starts_with('-'))
        .unwrap_or_default();
    // Each takes as long as the others and differs in one answer: a third of them goes for all,
    // unless rounds are asked for.
    let step = if seeds.is_none() && wanted.is_empty() {
        3
    } else {
        1
    };
    let silent_pages = scenario::silent_pages().into_iter().step_by(step).collect();
    let groups = [
        ("The faults of POLLING 2.5", scenario::known(), SEEDS_KNOWN),
        (
            "Other faults that make mistakes",
            scenario::besides(),
            SEEDS_OTHERS,
        ),
        (
            "Other faults that make none",
            scenario::harmless(),
            SEEDS_OTHERS,
        ),
        ("Pages that say little", silent_pages, SEEDS_OTHERS),
        (
            "Feeds that are entered at no end, or in no order",
            scenario::disordered(),
            SEEDS_OTHERS,
        ),
        (
            "A busy feed, by how often it is read",
            scenario::busy(),
            SEEDS_OTHERS,
        ),
        (
            "Old copies, and what looks like them",
            scenario::old_copies(),
            SEEDS_OTHERS,
        ),
        (
            "Documents that say to be the whole feed",
            scenario::capped(),
            SEEDS_OTHERS,
        ),
        (
            "Deletions in bulk, and documents that lack much",
            scenario::bulk(),
            SEEDS_OTHERS,
        ),
        (
            "Parts that move without an edit",
            scenario::churning(),
            SEEDS_OTHERS,
        ),
        ("Comments", scenario::comments(), SEEDS_OTHERS),
    ];
    let mut failed = false;
    println!("{}", Score::heading());
    for (title, mut scenarios, usual) in groups {
        scenarios.retain(|scenario| scenario.name.contains(&wanted));
        let seeds = seeds.unwrap_or(usual);
        println!("{title}, {seeds} times 90 days:");
        failed |= !play_all(&scenarios, seeds);
    }
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Plays scenarios, one on each processor at a time, and prints their lines in order. True when all
/// went well enough.
fn play_all(scenarios: &[Scenario], seeds: u64) -> bool {
    let next = AtomicUsize::new(0);
    let scores = Mutex::new(vec![Score::default(); scenarios.len()]);
    let play = || {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(scenario) = scenarios.get(at) else {
                return;
            };
            let mut score = Score::default();
            for seed in 0..seeds {
                score.add(&runtime.block_on(watcher::watch(scenario, seed)));
            }
            scores.lock().unwrap()[at] = score;
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(play);
        }
    });
    let scores = scores.into_inner().unwrap();
    // All lines are printed, also those behind a failure.
    scenarios
        .iter()
        .zip(&scores)
        .fold(true, |well, (scenario, score)| {
            is_well(scenario, score, seeds) && well
        })
}

/// Prints the line of a scenario. True when it went well enough.
fn is_well(scenario: &Scenario, score: &Score, seeds: u64) -> bool {
    println!("  {:<28}{score}", scenario.name);
    let (found_min, false_max) = (scenario.found_min, scenario.false_max * seeds as f64);
    let by_absence =
        score.found_share() >= found_min && score.by_absence.false_ones as f64 <= false_max;
    if !by_absence {
        println!("    not enough: {found_min:.2} must be found, and {false_max:.0} may be false");
    }
    // Pages may cost nothing but requests: where they tell the truth no post that lives is taken
    // for deleted, where they say little it is no worse than without them, and nowhere is less
    // found.
    let pages = &score.with_pages;
    let false_max = if scenario.pages == Pages::Truthful {
        0
    } else {
        score.by_absence.false_ones
    };
    let lost_max = scenario.lost_with_pages_max * seeds as usize;
    let with_pages = pages.false_ones <= false_max
        && pages.found + lost_max >= score.by_absence.found
        && score.found_with_pages() >= scenario.found_with_pages_min;
    if !with_pages {
        println!(
            "    with pages asked {false_max} may be false, and as much must be found as without"
        );
    }
    let is_joined = score.by_absence.false_gaps == 0 && pages.false_gaps == 0;
    if !is_joined {
        println!("    no gap marker may stand between documents that have something in common");
    }
    // Without pages a copy that differs by nothing but a deleted post is what its return looks like.
    let revived_max = (scenario.revived_share_max * score.deletions as f64) as usize;
    let is_dead = pages.falsely_revived <= revived_max;
    if !is_dead {
        let revived = pages.falsely_revived;
        println!("    {revived} deleted posts live again, and {revived_max} may");
    }
    let keeps_invariants = keeps_invariants(scenario, score, seeds as usize);
    by_absence && with_pages && is_joined && is_dead && keeps_invariants
}

/// Prints which invariants of a world do not hold at its end. True when all do.
fn keeps_invariants(scenario: &Scenario, score: &Score, seeds: usize) -> bool {
    let ways = [&score.by_absence, &score.with_pages];
    let most = |of: fn(&Told) -> usize| ways.into_iter().map(of).max().unwrap_or(0);
    let told_max = TOLD_SHARE_MAX * score.edits + scenario.told_besides_max * seeds;
    let invariants = [
        (
            "posts are not served as they have stood for a day and two polls",
            most(|told| told.stale),
            0,
        ),
        ("edits were told", most(|told| told.edits), told_max),
        (
            "live items are a post that another one is",
            score.twice,
            scenario.twice_max * seeds,
        ),
        (
            "posts lack in a history that is said to be complete",
            most(|told| told.lost),
            0,
        ),
    ];
    let mut all_hold = true;
    for (what, number, max) in invariants {
        if number > max {
            println!("    {number} {what}, and {max} may");
            all_hold = false;
        }
    }
    all_hold
}
