//! Publishers with every fault that is known of real ones, polled for months through the pipeline that polls in earnest:
//! what is taken for deleted, and whether it was. Run as `cargo test --test publisher -- NAME` it plays the scenarios with
//! that in their names.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use scenario::{Pages, Scenario};
use score::Score;
use std::process::ExitCode;

mod document;
mod publisher;
mod scenario;
mod score;
mod watcher;

/// Rounds of each scenario unless `EVERFEED_SEEDS` says otherwise, so that all take a minute in a debug build.
const SEEDS_KNOWN: u64 = 2;
const SEEDS_OTHERS: u64 = 1;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let seeds: Option<u64> = std::env::var("EVERFEED_SEEDS").ok().map(|n| n.parse().unwrap());
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    let groups = [
        ("The faults of POLLING 2.5", scenario::known(), SEEDS_KNOWN),
        ("Other faults that make mistakes", scenario::besides(), SEEDS_OTHERS),
        ("Other faults that make none", scenario::harmless(), SEEDS_OTHERS),
        ("Pages that say little", scenario::silent_pages(), SEEDS_OTHERS),
        ("Deletions in bulk, and documents that lack much", scenario::bulk(), SEEDS_OTHERS),
    ];
    let mut failed = false;
    println!("{}", Score::heading());
    for (title, mut scenarios, usual) in groups {
        scenarios.retain(|scenario| scenario.name.contains(&wanted));
        let seeds = seeds.unwrap_or(usual);
        println!("{title}, {seeds} times 90 days:");
        for scenario in scenarios {
            failed |= !play(&scenario, seeds).await;
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Plays a scenario and prints its line. Whether it went well enough.
async fn play(scenario: &Scenario, seeds: u64) -> bool {
    let mut score = Score::default();
    for seed in 0..seeds {
        score.add(&watcher::watch(scenario, seed).await);
    }
    println!("  {:<28}{score}", scenario.name);
    let (found_min, false_max) = (scenario.found_min, scenario.false_max * seeds as f64);
    let by_absence = score.found_share() >= found_min && score.by_absence.false_ones as f64 <= false_max;
    if !by_absence {
        println!("    not enough: {found_min:.2} must be found, and {false_max:.0} may be false");
    }
    // Pages may cost nothing but requests: where they tell the truth no post that lives is taken for deleted, where they
    // say little it is no worse than without them, and nowhere is less found.
    let pages = &score.with_pages;
    let false_max = if scenario.pages == Pages::Truthful { 0 } else { score.by_absence.false_ones };
    let with_pages = pages.false_ones <= false_max
        // But for one that may have rolled off before pinned posts, which is left to its page, and has none.
        && pages.found + 1 >= score.by_absence.found
        && score.found_with_pages() >= scenario.found_with_pages_min;
    if !with_pages {
        println!("    with pages asked {false_max} may be false, and as much must be found as without");
    }
    let is_joined = score.by_absence.false_gaps == 0 && pages.false_gaps == 0;
    if !is_joined {
        println!("    no gap marker may stand between documents that have something in common");
    }
    by_absence && with_pages && is_joined
}
