//! Random damage for a bounded time: nothing may panic or hang, and what holds of every document
//! must hold of these.
//!
//! `EVERFEED_FUZZ_SECS` says for how long (60), `EVERFEED_FUZZ_SEED` where chance begins (1, so
//! that a change is not turned down for what another did; `any` for somewhere new), and
//! `EVERFEED_FUZZ_CASE` that only one case is run, whose number a failure prints with the seed.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests read files and the clock, and fail by panicking"
)]

mod chance;
mod checks;
mod damage;
mod seeds;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use chance::Chance;
use checks::Sound;

/// A document of at most 300 kB that takes longer than this has hung, even in a debug build on a
/// busy machine.
const CASE_SECS_MAX: u64 = 10;

/// Number of panics, those that a guard caught included.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// The case that runs, and the second of the run in which it began.
static CASE: AtomicU64 = AtomicU64::new(0);
static BEGAN: AtomicU64 = AtomicU64::new(0);

#[test]
fn no_damage_makes_anything_panic_hang_or_contradict_itself() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().unwrap())
    };
    let secs = number("EVERFEED_FUZZ_SECS").unwrap_or(60);
    let seed = match std::env::var("EVERFEED_FUZZ_SEED").as_deref() {
        Ok("any") => {
            SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap()
                .as_secs()
                % 1_000_000
        }
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => 1,
    };
    eprintln!("EVERFEED_FUZZ_SEED={seed}");
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        eprintln!(
            "EVERFEED_FUZZ_SEED={seed} EVERFEED_FUZZ_CASE={}",
            CASE.load(Ordering::Relaxed)
        );
        usual(panic);
    }));

    let documents = seeds::documents();
    let sound: Vec<_> = documents
        .iter()
        .filter_map(|document| Sound::of(document))
        .collect();
    let mut run = Run {
        documents,
        sound,
        seed,
        entries: 0,
    };

    let begin = Instant::now();
    std::thread::spawn(move || watch(begin, seed));
    if let Some(case) = number("EVERFEED_FUZZ_CASE") {
        CASE.store(case, Ordering::Relaxed);
        return run.case(case);
    }
    let mut cases = 0;
    while begin.elapsed() < Duration::from_secs(secs) {
        BEGAN.store(begin.elapsed().as_secs(), Ordering::Relaxed);
        CASE.store(cases, Ordering::Relaxed);
        run.case(cases);
        cases += 1;
    }
    eprintln!(
        "{cases} damaged documents out of {} ({} of them sound), {} entries, {} s",
        run.documents.len(),
        run.sound.len(),
        run.entries,
        begin.elapsed().as_secs(),
    );
    assert!(
        run.entries > cases / 4,
        "the damage leaves something to read"
    );
}

struct Run {
    documents: Vec<Vec<u8>>,
    sound: Vec<Sound>,
    seed: u64,
    entries: u64,
}

impl Run {
    fn case(&mut self, case: u64) {
        let mut chance = Chance::of(self.seed, case);
        match chance.below(10) {
            0 | 1 => chance.one_of(&self.sound).cut(&mut chance),
            2 | 3 => chance.one_of(&self.sound).hurt(&mut chance),
            5 => chance.one_of(&self.sound).lose_ends(&mut chance),
            4 if chance.below(4) == 0 => {
                let length = chance.below(400);
                let bytes: Vec<u8> = (0..length).map(|_| chance.byte()).collect();
                let before = *chance.one_of::<&[u8]>(&[
                    b"",
                    b"<rss><channel><item>",
                    b"{\"version\":\"https://jsonfeed.org/version/1\",\"items\":[",
                ]);
                checks::any(&[before, &bytes].concat(), None);
            }
            _ => {
                let document = chance.one_of(&self.documents);
                let bytes = damage::damaged(document, &self.documents, &mut chance);
                let labels = [
                    None,
                    None,
                    None,
                    Some("text/xml; charset=iso-8859-1"),
                    Some("application/feed+json"),
                    Some("application/xml; charset=\"utf-16\""),
                    Some("text/html; charset=shift_jis"),
                    Some("; charset=;;="),
                ];
                let label = *chance.one_of(&labels);
                self.entries += checks::any(&bytes, label) as u64;
                if chance.below(10) == 0 {
                    checks::resource(&bytes, label);
                }
            }
        }
        // feed-rs stands behind a guard, and a hook is called all the same: nothing that we hand it
        // may make it panic.
        assert_eq!(PANICS.load(Ordering::Relaxed), 0, "somebody caught a panic");
    }
}

/// Ends the process when one case does not.
fn watch(begin: Instant, seed: u64) {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let taken = begin
            .elapsed()
            .as_secs()
            .saturating_sub(BEGAN.load(Ordering::Relaxed));
        if taken > CASE_SECS_MAX {
            let case = CASE.load(Ordering::Relaxed);
            eprintln!("hangs since {taken} s: EVERFEED_FUZZ_SEED={seed} EVERFEED_FUZZ_CASE={case}");
            std::process::abort();
        }
    }
}
