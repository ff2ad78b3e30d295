//! The table: a heading for each question, a line for each figure, the aim beside it; not how
//! figures are made.

use crate::rounds::Spread;
use std::{fmt::Display, thread::available_parallelism};

/// Prints as figures come in.
pub(crate) struct Report(());

/// The limit that a figure is compared with.
#[derive(Clone, Copy)]
pub(crate) enum Aim {
    /// Our throughput, as a part of the limit's.
    AtLeast(f64),
    /// Milliseconds.
    UnderMs(f64),
    /// Nothing: the figure is for orientation.
    None,
}

impl Report {
    /// Says what the table says.
    pub(crate) fn begin() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        println!(
            "Ratios: throughput of everfeed / throughput of the limit, median (least .. greatest) over rounds in"
        );
        println!(
            "which both sides work in turn; {cores} cores, shared by servers and askers. 1 = as fast as the limit."
        );
        Self(())
    }

    /// A question and what is compared.
    pub(crate) fn question(&self, title: &str, compared: &str) {
        println!("\n{title}\n    {compared}");
    }

    /// A ratio.
    pub(crate) fn ratio(&self, what: impl Display, spread: Spread, aim: Aim) {
        let Spread {
            least,
            median,
            greatest,
        } = spread;
        let verdict = match aim {
            Aim::AtLeast(least) => format!("aim {least:.2}  {}", met(median >= least)),
            Aim::UnderMs(_) | Aim::None => String::new(),
        };
        line(
            what,
            format!("{median:.2} ({least:.2} .. {greatest:.2})"),
            verdict,
        );
    }

    /// Times, the last of which is the one that counts, in milliseconds.
    pub(crate) fn times(&self, what: impl Display, figures: impl Display, last_ms: f64, aim: Aim) {
        let verdict = match aim {
            Aim::UnderMs(most) => format!("aim < {most:.0} ms  {}", met(last_ms < most)),
            Aim::AtLeast(_) | Aim::None => String::new(),
        };
        line(what, figures, verdict);
    }

    /// A figure with what there is to say about it.
    pub(crate) fn figure(&self, what: impl Display, figure: impl Display, verdict: impl Display) {
        line(what, figure, verdict);
    }
}

fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}

fn line(what: impl Display, figure: impl Display, verdict: impl Display) {
    let text = format!(
        "    {:<58} {:<40} {verdict}",
        what.to_string(),
        figure.to_string()
    );
    println!("{}", text.trim_end());
}
