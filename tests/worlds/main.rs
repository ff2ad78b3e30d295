//! Worlds: publishers, everfeed and consumers on one thread, from one seed, with every fault between
//! them. `docs/design/worlds.md` tells how to replay one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use plan::Plan;
use play::{Outcome, play};
use std::{
    env,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

mod chance;
mod plan;

mod publisher;
mod trace;
mod world;

mod network;

mod everfeed_life;

mod consumer;
mod mirror;
mod push;

mod play;
mod quiet;

mod shrink;

mod mistakes;

mod by_hand;

/// Worlds that are played unless `EVERFEED_WORLDS` says otherwise: as many as take a minute of one
/// processor in a debug build.
const WORLDS: u64 = 60;

/// Worlds that are played twice.
const TWICE: u64 = 8;

/// Worlds that found a fault of everfeed, in this order. A deletion was stored while the disk was in
/// trouble, the outcome of its commit was not known, and no stream was woken. A post that came back
/// edited stayed deleted. A clock that was a year ahead for a while: the page of a tombstone was not
/// asked for again (three worlds), and a post that came back was not taken up. A subscription
/// ended without notice, and the next one began at its subscriber's cursor although an item had left
/// the view since.
const FOUND: [u64; 7] = [128, 1855, 3371, 4041, 6849, 4405, 8481];

/// Failing worlds after which no more are played.
const FAILING_MAX: usize = 20;

#[test]
fn in_every_world_all_consumers_end_with_what_their_feeds_hold() {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    if let Some(seed) = number("EVERFEED_WORLD") {
        return replay(seed);
    }
    let count = number("EVERFEED_WORLDS").unwrap_or(WORLDS);
    let began = Instant::now();
    let played = play_all(count);
    let secs = began.elapsed().as_secs_f64();
    let days: f64 = played.iter().map(|(_, outcome)| days(outcome)).sum();
    let sum =
        |of: fn(&Outcome) -> usize| played.iter().map(|(_, outcome)| of(outcome)).sum::<usize>();
    println!(
        "{} worlds in {secs:.1} s: {:.0} a minute, {:.2} simulated days a second; {} lives of everfeed, {} pushes, {} pages, {} mirrors read anew",
        played.len(),
        played.len() as f64 * 60.0 / secs,
        days / secs,
        sum(|outcome| outcome.lives as usize),
        sum(|outcome| outcome.pushes),
        sum(|outcome| outcome.pages),
        sum(|outcome| outcome.anew),
    );
    let mut failing = played
        .into_iter()
        .filter(|(_, outcome)| outcome.fault.is_some());
    if let Some((seed, outcome)) = failing.next() {
        for (seed, outcome) in failing {
            println!("world {seed}, too: {}", outcome.fault.unwrap());
        }
        fail(seed, outcome);
    }
}

fn days(outcome: &Outcome) -> f64 {
    outcome.simulated.as_secs_f64() / 86_400.0
}

/// Plays the worlds of the first seeds, one on each processor at a time.
fn play_all(count: u64) -> Vec<(u64, Outcome)> {
    let (next, played) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let failing = AtomicU64::new(0);
    let play_some = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= count || failing.load(Ordering::Relaxed) >= FAILING_MAX as u64 {
                return;
            }
            let outcome = play(&Plan::of(seed));
            if outcome.fault.is_some() {
                failing.fetch_add(1, Ordering::Relaxed);
            }
            played.lock().unwrap().push((seed, outcome));
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(play_some);
        }
    });
    let mut played = played.into_inner().unwrap();
    played.sort_by_key(|(seed, _)| *seed);
    played
}

/// Plays one world, and shows it.
fn replay(seed: u64) {
    let plan = Plan::of(seed);
    let outcome = play(&plan);
    println!("{}\n{}", plan.told(), outcome.tail);
    println!(
        "digest {}, lines {}, lives {}, pushes {}, pages {}",
        outcome.digest, outcome.lines, outcome.lives, outcome.pushes, outcome.pages
    );
    if outcome.fault.is_some() {
        fail(seed, outcome);
    }
}

/// Fails with the smallest world like this one.
fn fail(seed: u64, outcome: Outcome) -> ! {
    let fault = outcome.fault.clone().unwrap_or_default();
    let (plan, smallest) = shrink::shrunk(Plan::of(seed), outcome);
    panic!(
        "world {seed}: {fault}\nthe smallest like it: {}\n{}\n{}\nreplay it: EVERFEED_WORLD={seed} cargo test --test worlds",
        smallest.fault.unwrap_or_default(),
        plan.told(),
        smallest.tail
    );
}

#[test]
fn worlds_that_found_a_fault_hold_now() {
    for seed in FOUND {
        let outcome = play(&Plan::of(seed));
        if outcome.fault.is_some() {
            fail(seed, outcome);
        }
    }
}

#[test]
fn a_world_that_is_played_again_has_the_same_trace() {
    for seed in 0..TWICE {
        let plan = Plan::of(seed);
        let (one, other) = (play(&plan), play(&plan));
        let mut lines = one.tail.lines().zip(other.tail.lines());
        let differing = lines.find(|(one, other)| one != other);
        let trace = |outcome: &Outcome| (outcome.lines, outcome.digest.clone());
        assert_eq!(trace(&one), trace(&other), "world {seed}: {differing:?}");
    }
}
