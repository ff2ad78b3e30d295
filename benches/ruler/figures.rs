//! The file of figures, and the rise that is too much.

use crate::{
    cases::{Case, Unit},
    measure::Measured,
};
use anyhow::{Context as _, Result};
use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path, process::Command};

/// Thousandths by which instructions may rise.
const INSTRUCTIONS_RISE_MAX: f64 = 30.0;
/// The same of allocations and of bytes in memory, which also depend on how many connections are opened
/// again and which table grows.
const ALLOCATED_RISE_MAX: f64 = 120.0;

const HEADING: &str = "# What each path takes, by `benches/ruler`: instructions and allocations, or bytes that stay in memory.\n\
     # A commit in which a figure rises by more than 3 % (allocations and bytes: 12 %) changes this file and gives the reason in its message.\n";

/// The begin of the line that says with what the figures of a build were counted.
const COUNTED_WITH: &str = "# Counted with";

/// The compiler, Valgrind and processor, which all change how many instructions a path takes.
fn surroundings() -> Result<String> {
    let version = |program: &str| -> Result<String> {
        let told = Command::new(program).arg("--version").output();
        let told = told.with_context(|| format!("{program}: is it installed?"))?;
        Ok(String::from_utf8_lossy(&told.stdout).trim().to_owned())
    };
    // Code for these is chosen while the program runs.
    #[cfg(target_arch = "x86_64")]
    let features = [
        (is_x86_feature_detected!("avx2"), "avx2"),
        (is_x86_feature_detected!("pclmulqdq"), "pclmulqdq"),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let features: [(bool, &str); 0] = [];
    let features = features.into_iter().filter(|(is_there, _)| *is_there);
    let features: String = features.map(|(_, name)| format!(" {name}")).collect();
    let (rustc, valgrind) = (version("rustc")?, version("valgrind")?);
    Ok(format!(
        "{rustc}, {valgrind}, {}{features}",
        std::env::consts::ARCH
    ))
}

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
    /// The least of both.
    pub(crate) fn least(self, other: Self) -> Self {
        Self {
            instructions: self.instructions.min(other.instructions),
            allocations: self.allocations.min(other.allocations),
            bytes: self.bytes.min(other.bytes),
        }
    }

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

/// The figure of a case that was done in several rounds. Timers and other threads only add to the work of a round; but to the
/// memory of one they may also add what an earlier one gives back.
pub(crate) fn of_rounds(rounds: &[Figure]) -> Figure {
    let mut bytes: Vec<u64> = rounds.iter().map(|figure| figure.bytes).collect();
    bytes.sort_unstable();
    let least = rounds.iter().copied().reduce(Figure::least);
    Figure {
        bytes: bytes.get(bytes.len() / 2).copied().unwrap_or_default(),
        ..least.unwrap_or_default()
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
    match case.unit() {
        Unit::Memory => vec![("bytes", figure.bytes)],
        Unit::Work => vec![
            ("instructions", figure.instructions),
            ("allocations", figure.allocations),
        ],
    }
}

/// Prints the figures beside those of the file, and writes them there if that is wanted. True if
/// none has risen by too much, or they were counted with something else.
///
/// # Errors
/// The file cannot be read or written, or holds what is no figure.
pub(crate) fn judge(build: Build, counted: &BTreeMap<Case, Figure>, writes: bool) -> Result<bool> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/ruler/figures.tsv");
    let text = fs::read_to_string(&path).unwrap_or_default();
    let counted_with = format!("{COUNTED_WITH} {}: {}\n", build.name(), surroundings()?);
    let is_comparable = text.contains(&counted_with);
    let (mut is_well, mut mine) = (true, counted_with);
    println!(
        "{:<28}{:>14}{:>14}{:>9}  {} build",
        "",
        "now",
        "kept",
        "",
        build.name()
    );
    for (&case, &figure) in counted {
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
            let rise_max = match unit {
                "instructions" => INSTRUCTIONS_RISE_MAX,
                _ => ALLOCATED_RISE_MAX,
            };
            let is_risen = permille > rise_max;
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
        let of_this = |line: &str| {
            let named = line.strip_prefix(COUNTED_WITH).unwrap_or(line);
            named.trim_start().starts_with(build.name())
        };
        let is_other = |line: &&str| {
            !of_this(line) && (!line.starts_with('#') || line.starts_with(COUNTED_WITH))
        };
        let others = text.lines().filter(is_other);
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
            "A figure has risen by too much, or is new. Find out why. If it has to be so, write the file with `-- --write`\n\
             and give the reason in the message of the commit."
        );
    }
    if !is_comparable {
        println!(
            "The figures of the file were counted with another compiler, Valgrind or processor: a rise says nothing."
        );
    }
    Ok(is_well || !is_comparable)
}
