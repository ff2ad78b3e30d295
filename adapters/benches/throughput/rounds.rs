//! Rounds in which all sides work in turn, so that what else the machine does meets all alike; not
//! what they do.

use std::panic;
use std::time::Instant;

use crate::documents::Set;
use crate::sides::Side;

/// Rounds that count; one before them warms up.
const ROUNDS: usize = 9;

/// Every side reads at least so many bytes in a round, small sets several times over.
const BYTES_MIN: usize = 8_000_000;

/// Results of the sides on a set, in the order of [`Side::ALL`].
pub(crate) struct Cost {
    pub(crate) sides: Vec<SideCost>,
}

/// Result of one side.
pub(crate) struct SideCost {
    pub(crate) side: Side,
    /// Documents that it refused.
    pub(crate) refused: usize,
    /// Millions of bytes a second.
    pub(crate) speed: Spread,
    /// Its throughput as a part of that of the bare tokens of the same round.
    pub(crate) ratio: Spread,
}

/// Least, median and greatest of some figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) greatest: f64,
}

impl Spread {
    /// Of at least one figure.
    fn of(mut figures: Vec<f64>) -> Self {
        figures.sort_by(f64::total_cmp);
        let at = |index: usize| figures[index];
        Self {
            least: at(0),
            median: at(figures.len() / 2),
            greatest: at(figures.len() - 1),
        }
    }
}

/// Lets every side read the set in each round. Whoever was first in one round is last in the next.
pub(crate) fn measure(set: &Set) -> Cost {
    // feed-rs panics on some documents; that is counted and need not be told.
    let told = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let repeats = BYTES_MIN.div_ceil(set.bytes().max(1));
    let mut speeds = vec![Vec::new(); Side::ALL.len()];
    let mut refused = vec![0; Side::ALL.len()];
    for round in 0..=ROUNDS {
        for turn in 0..Side::ALL.len() {
            let place = (turn + round) % Side::ALL.len();
            let start = Instant::now();
            for _ in 0..repeats {
                refused[place] = set
                    .documents
                    .iter()
                    .filter(|document| !Side::ALL[place].read(document))
                    .count();
            }
            let seconds = start.elapsed().as_secs_f64();
            if round > 0 {
                speeds[place].push((set.bytes() * repeats) as f64 / seconds / 1e6);
            }
        }
    }
    panic::set_hook(told);
    let limit = speeds[0].clone();
    let sides = Side::ALL
        .into_iter()
        .zip(refused)
        .zip(speeds)
        .map(|((side, refused), speeds)| SideCost {
            side,
            refused,
            ratio: Spread::of(
                speeds
                    .iter()
                    .zip(&limit)
                    .map(|(ours, limit)| ours / limit)
                    .collect(),
            ),
            speed: Spread::of(speeds),
        });
    Cost {
        sides: sides.collect(),
    }
}
