//! A publisher with every fault that is known of real ones, polled for months: what is taken for deleted, and whether it was.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::ExitCode;

mod publisher;
mod scenario;
mod watcher;

fn main() -> ExitCode {
    let seeds: u64 = std::env::var("EVERFEED_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(6);
    let mut failed = false;
    println!("{:<26}{:>10}{:>8}{:>8}{:>10}", "scenario", "deletions", "found", "false", "hours");
    for scenario in scenario::all() {
        let mut score = watcher::Score::default();
        for seed in 0..seeds {
            score.add(&watcher::watch(&scenario, seed));
        }
        println!(
            "{:<26}{:>10}{:>8}{:>8}{:>10}",
            scenario.name,
            score.deletions,
            score.found,
            score.false_ones,
            score.median_hours()
        );
        let found = score.found as f64 / score.deletions.max(1) as f64;
        if found < scenario.found_min || score.false_ones as f64 > scenario.false_max * seeds as f64 {
            println!(
                "    which is not enough: {:.2} must be found, and {} may be false",
                scenario.found_min,
                scenario.false_max * seeds as f64
            );
            failed = true;
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
