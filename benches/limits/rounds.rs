//! Rounds in which both sides work in turn, so that what else the machine does meets both alike;
//! not what they do.

use anyhow::Result;

/// Least, median and greatest of some figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) greatest: f64,
}

impl Spread {
    /// Of at least one figure.
    pub(crate) fn of(mut figures: Vec<f64>) -> Self {
        figures.sort_by(f64::total_cmp);
        let at = |index: usize| figures[index];
        Self {
            least: at(0),
            median: at(figures.len() / 2),
            greatest: at(figures.len() - 1),
        }
    }
}

/// Lets both sides work in each round and compares what they cost: the ratio is the limit's cost by
/// ours. Each side is given the number of the round. The first round warms up and does not count;
/// whoever began in one is second in the next.
pub(crate) async fn compare(
    rounds: usize,
    mut ours: impl AsyncFnMut(usize) -> Result<f64>,
    mut limit: impl AsyncFnMut(usize) -> Result<f64>,
) -> Result<Spread> {
    let mut ratios = Vec::with_capacity(rounds);
    for round in 0..=rounds {
        let (ours, limit) = if round.is_multiple_of(2) {
            let ours = ours(round).await?;
            (ours, limit(round).await?)
        } else {
            let limit = limit(round).await?;
            (ours(round).await?, limit)
        };
        if round > 0 {
            ratios.push(limit / ours);
        }
    }
    Ok(Spread::of(ratios))
}
