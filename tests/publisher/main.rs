//! A publisher with every fault that is known of real ones, polled for months: what is taken for deleted, and whether it was.

use std::process::ExitCode;

mod publisher;
mod scenario;
mod watcher;

fn main() -> ExitCode {
    let seeds: u64 = std::env::var("EVERFEED_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
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
        failed |= scenario.is_ordered && score.false_ones > 0;
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
