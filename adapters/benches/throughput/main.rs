//! Throughput of reading, beside the bare tokens of the same bytes and beside feed-rs: one thread,
//! all sides in turn in one process. No test: the machine is what it is, so figures are printed and
//! only counts are asserted.
//!
//! `cargo bench -p everfeed-adapters` measures every set,
//! `cargo bench -p everfeed-adapters -- recorded` some of them.

#![expect(
    clippy::disallowed_methods,
    reason = "a bench reads files and the clock; the adapters do neither"
)]

use std::env;

mod documents;
mod made;
mod report;
mod rounds;
mod sides;

fn main() {
    // Cargo adds flags of its own.
    let wanted: Vec<String> = env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let is_wanted = |name: &str| {
        wanted.is_empty() || wanted.iter().any(|wanted| name.contains(wanted.as_str()))
    };
    report::begin();
    for set in documents::sets()
        .into_iter()
        .filter(|set| is_wanted(&set.name))
    {
        let cost = rounds::measure(&set);
        report::set(&set, &cost);
    }
}
