//! Publishers with every fault that is known of real ones, polled for months through the pipeline that polls in earnest:
//! what is taken for deleted, and whether it was. Run as `cargo test --test publisher -- NAME` it plays the scenarios with
//! that in their names.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use scenario::Scenario;
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
    // Pages may cost nothing but requests: with them no post that lives is taken for deleted, and none is found less.
    let pages = &score.with_pages;
    let with_pages = pages.false_ones == 0 && pages.found >= score.by_absence.found;
    if !with_pages {
        println!("    with pages asked nothing may be false, and as much must be found");
    }
    by_absence && with_pages
}
