//! Worlds: publishers, everfeed and consumers on one thread, from one seed, with every fault between
//! them. `docs/design/worlds.md` tells how to replay one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use plan::Plan;
use play::play;
use std::{env, time::Instant};

mod chance;
mod plan;

mod publisher;
mod trace;
mod world;

mod network;

mod everfeed_life;

mod consumer;
mod mirror;
mod mistakes;
mod push;

mod play;
mod quiet;

/// Worlds that are played unless `EVERFEED_WORLDS` says otherwise.
const WORLDS: u64 = 40;

#[test]
fn in_every_world_all_consumers_end_with_what_their_feeds_hold() {
    let one = env::var("EVERFEED_WORLD")
        .ok()
        .map(|seed| seed.parse::<u64>().unwrap());
    let count = env::var("EVERFEED_WORLDS")
        .ok()
        .map(|count| count.parse::<u64>().unwrap());
    let seeds = match one {
        Some(seed) => seed..seed + 1,
        None => 0..count.unwrap_or(WORLDS),
    };
    let began = Instant::now();
    let (mut simulated, mut failed) = (0, None);
    for seed in seeds.clone() {
        let plan = Plan::of(seed);
        let outcome = play(&plan);
        simulated += outcome.simulated.as_secs();
        if one.is_some() {
            println!("{plan:#?}\n{}", outcome.tail);
            println!(
                "pushes {} pages {} anew {} lives {} lines {} digest {}",
                outcome.pushes,
                outcome.pages,
                outcome.anew,
                outcome.lives,
                outcome.lines,
                outcome.digest
            );
        }
        if let Some(fault) = outcome.fault {
            println!("world {seed}: {fault}");
            failed.get_or_insert((seed, outcome.tail));
        }
    }
    let secs = began.elapsed().as_secs_f64();
    println!(
        "{} worlds in {secs:.1} s; {:.2} simulated days a second",
        seeds.end - seeds.start,
        simulated as f64 / 86_400.0 / secs
    );
    if let Some((seed, tail)) = failed {
        panic!(
            "world {seed} fails:\n{tail}\nreplay it: EVERFEED_WORLD={seed} cargo test --test worlds"
        );
    }
}

/// Worlds that are played twice.
const TWICE: u64 = 6;

#[test]
fn a_world_that_is_played_again_has_the_same_trace() {
    for seed in 0..TWICE {
        let plan = Plan::of(seed);
        let (one, other) = (play(&plan), play(&plan));
        assert_eq!(
            (one.lines, one.digest),
            (other.lines, other.digest),
            "world {seed}"
        );
    }
}
