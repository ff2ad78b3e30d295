//! The counts between two points: instructions by Valgrind, allocations by the allocator.

use crate::{ALLOCATOR, cases::Case};
use anyhow::{Context as _, Result};
use stats_alloc::Stats;
use std::hint::black_box;

/// Names of the functions before which Valgrind forgets what it counted, and writes it down.
pub(crate) const BEGIN: &str = "ruler_counts_from_here";
pub(crate) const END: &str = "ruler_counts_to_here";

/// Calls to the allocator, and bytes that were not given back, between two points.
pub(crate) struct Measured {
    pub(crate) case: Case,
    pub(crate) allocations: u64,
    pub(crate) bytes: i64,
}

/// The time between two points.
pub(crate) struct Measuring(Stats);

/// Begins.
pub(crate) fn begin() -> Measuring {
    let stats = ALLOCATOR.stats();
    ruler_counts_from_here();
    Measuring(stats)
}

impl Measuring {
    /// Ends.
    pub(crate) fn end(self, case: Case) -> Measured {
        ruler_counts_to_here();
        let change = ALLOCATOR.stats() - self.0;
        Measured {
            case,
            allocations: (change.allocations + change.reallocations) as u64,
            bytes: change.bytes_allocated as i64 - change.bytes_deallocated as i64,
        }
    }
}

#[inline(never)]
fn ruler_counts_from_here() {
    black_box(BEGIN);
}

#[inline(never)]
fn ruler_counts_to_here() {
    black_box(END);
}

/// Lines that [`read`] reads.
pub(crate) fn written(measured: &[Measured]) -> String {
    let line = |one: &Measured| {
        let (case, allocations, bytes) = (one.case.name(), one.allocations, one.bytes);
        format!("{case}\t{allocations}\t{bytes}\n")
    };
    measured.iter().map(line).collect()
}

/// A line of [`written`].
pub(crate) fn read(line: &str) -> Result<Measured> {
    let mut fields = line.split('\t');
    let mut next = || fields.next().context("a field");
    Ok(Measured {
        case: Case::named(next()?).context("a case")?,
        allocations: next()?.parse()?,
        bytes: next()?.parse()?,
    })
}

/// Instructions in a dump of Callgrind.
pub(crate) fn instructions(dump: &str) -> Result<u64> {
    let mut lines = dump.lines().rev();
    let total = lines.find_map(|line| line.strip_prefix("totals: "));
    Ok(total.context("a line `totals`")?.trim().parse()?)
}
