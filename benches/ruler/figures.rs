//! The file of figures, and the rise that is too much.

use crate::{cases::Case, measure::Measured};
use anyhow::{Context as _, Result};
use std::{fmt::Write as _, fs, path::Path};

/// Thousandths by which a figure may rise.
const RISE_MAX: u64 = 30;

const HEADING: &str = "# What each path takes, by `benches/ruler`: instructions and allocations, or bytes that stay in memory.\n\
     # A commit in which a figure rises by more than 3 % changes this file and gives the reason in its message.\n";

/// The build that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    Debug,
    Release,
}

impl Build {
    pub(crate) const fn of_this() -> Self {
        if cfg!(debug_assertions) {
            Self::Debug
        } else {
            Self::Release
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Release => "release",
        }
    }
}

/// The cost of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figure {
    pub(crate) instructions: u64,
    pub(crate) allocations: u64,
    /// Bytes that stay in memory.
    pub(crate) bytes: u64,
}

impl Figure {
    /// For one of so many.
    pub(crate) fn over(self, times: usize) -> Self {
        let times = times as u64;
        Self {
            instructions: self.instructions / times,
            allocations: self.allocations / times,
            bytes: self.bytes / times,
        }
    }

    /// Without a part of it.
    pub(crate) fn without(self, part: Self) -> Self {
        Self {
            instructions: self.instructions.saturating_sub(part.instructions),
            allocations: self.allocations.saturating_sub(part.allocations),
            bytes: self.bytes.saturating_sub(part.bytes),
        }
    }
}

pub(crate) fn figure(measured: &Measured, instructions: u64) -> (Case, Figure) {
    let figure = Figure {
        instructions,
        allocations: measured.allocations,
        bytes: u64::try_from(measured.bytes).unwrap_or_default(),
    };
    (measured.case, figure)
}

/// The figures of a case that count, with their units.
fn told(case: Case, figure: Figure) -> Vec<(&'static str, u64)> {
    if case.is_memory() {
        vec![("bytes", figure.bytes)]
    } else {
        vec![
            ("instructions", figure.instructions),
            ("allocations", figure.allocations),
        ]
    }
}

/// Prints the figures beside those of the file, and writes them there if that is wanted. True if
/// none has risen by too much.
///
/// # Errors
/// The file cannot be read or written, or holds what is no figure.
pub(crate) fn judge(build: Build, counted: &[(Case, Figure)], writes: bool) -> Result<bool> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/ruler/figures.tsv");
    let text = fs::read_to_string(&path).unwrap_or_default();
    let (mut is_well, mut mine) = (true, String::new());
    println!(
        "{:<28}{:>14}{:>14}{:>9}  {} build",
        "",
        "now",
        "kept",
        "",
        build.name()
    );
    for &(case, figure) in counted {
        for (unit, now) in told(case, figure) {
            let start = format!("{}\t{}\t{unit}\t", build.name(), case.name());
            let _ = writeln!(mine, "{start}{now}");
            let kept = text.lines().find_map(|line| line.strip_prefix(&start));
            let Some(kept) = kept else {
                println!("{:<28}{now:>14}{:>14}           {unit}", case.name(), "-");
                is_well = false;
                continue;
            };
            let kept: u64 = kept.parse().context("a figure of the file")?;
            let permille = (now as f64 / kept.max(1) as f64 - 1.0) * 1000.0;
            let is_risen = permille > RISE_MAX as f64;
            println!(
                "{:<28}{now:>14}{kept:>14}{:>+8.1} %  {unit}{}",
                case.name(),
                permille / 10.0,
                if is_risen { ": RISEN" } else { "" }
            );
            is_well &= !is_risen;
        }
    }
    if writes {
        let of_this = format!("{}\t", build.name());
        let others = text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.starts_with(&of_this));
        let others: String = others.map(|line| format!("{line}\n")).collect();
        let (debug, release) = match build {
            Build::Debug => (mine, others),
            Build::Release => (others, mine),
        };
        fs::write(&path, format!("{HEADING}{debug}{release}"))?;
        return Ok(true);
    }
    if !is_well {
        println!(
            "A figure has risen by more than 3 %, or is new. Find out why. If it has to be so, write the file with `-- --write`\n\
             and give the reason in the message of the commit."
        );
    }
    Ok(is_well)
}
