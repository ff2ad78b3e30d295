//! A ruler that does not drift: the instructions and allocations that each path takes, and the bytes
//! of memory that whoever waits takes. The whole application runs on one thread, with an origin,
//! readers and subscribers beside it on the same thread; Valgrind counts all of them.
//!
//! `cargo test --workspace --bench ruler` counts the debug build, `cargo bench --bench ruler` the
//! release build. Both compare with `benches/ruler/figures.tsv` and fail where a figure has risen by
//! more than 3 % (allocations and bytes: 12 %). A commit that makes a path dearer changes the file, by `-- --write`, and gives the
//! reason in its message. What has timers and other threads in it is done in several rounds, of which
//! the least counts; of bytes in memory the middle one. Needs valgrind (Debian has it); `tests/run` counts the debug build.

use anyhow::{Context as _, Result, ensure};
use cases::{Case, Part};
use figures::{Build, Figure};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::{
    alloc::System,
    collections::BTreeMap,
    env, fs,
    path::Path,
    process::{Command, ExitCode, Stdio},
    thread,
};
use tokio::runtime::Builder;

mod cases;
mod client;
mod documents;
mod figures;
mod measure;
mod origin;

/// The allocator of the system, which counts.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Set for the process that Valgrind counts: the file to which it writes what it allocated.
const COUNTED: &str = "EVERFEED_RULER_COUNTED";
/// Set for the same process: the part that it plays.
const PART: &str = "EVERFEED_RULER_PART";

fn main() -> Result<ExitCode> {
    if let Some(file) = env::var_os(COUNTED) {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let part = env::var(PART).ok().and_then(|name| Part::named(&name));
        let measured = runtime.block_on(cases::play(part.context("no part is named")?))?;
        fs::write(file, measure::written(&measured))?;
        return Ok(ExitCode::SUCCESS);
    }
    let writes = env::args().any(|arg| arg == "--write");
    let build = Build::of_this();
    let mut counted = count().context("counting under valgrind")?;
    let mut is_well = figures::judge(build, &counted, writes)?;
    if !is_well {
        println!("Counted once more, since a busy machine adds to a path:");
        for (case, again) in count()? {
            counted
                .entry(case)
                .and_modify(|figure| *figure = figure.least(again));
        }
        is_well = figures::judge(build, &counted, writes)?;
    }
    Ok(if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Runs this program again under Valgrind, each part in a process of its own, and reads what was
/// counted.
fn count() -> Result<BTreeMap<Case, Figure>> {
    let parts = thread::scope(|scope| {
        let parts = Part::ALL.map(|part| scope.spawn(move || count_part(part)));
        parts.map(|part| part.join().expect("a part is counted"))
    });
    let mut figures = BTreeMap::new();
    for (part, counted) in Part::ALL.into_iter().zip(parts) {
        let mut counted = cases::by_unit(&counted?);
        if part == Part::Waiting {
            // Those of its small feed are only taken off the other figures.
            counted.remove(&Case::PollNew);
        }
        figures.extend(counted);
    }
    Ok(figures)
}

fn count_part(part: Part) -> Result<BTreeMap<Case, Figure>> {
    let kept = env::var_os("EVERFEED_RULER_FOLDER");
    let kept = kept.map(|folder| Path::new(&folder).join(part.name()));
    if let Some(kept) = &kept {
        fs::create_dir_all(kept)?;
    }
    let folder = tempfile::tempdir()?;
    let folder: &Path = kept.as_deref().unwrap_or(folder.path());
    let allocated = folder.join("allocated");
    let told = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        // A dump holds what was counted between the two, by all threads.
        .arg(format!("--zero-before=*{}*", measure::BEGIN))
        .arg(format!("--dump-before=*{}*", measure::END))
        .arg(format!("--callgrind-out-file={}/out", folder.display()))
        .arg(env::current_exe()?)
        .env(COUNTED, &allocated)
        .env(PART, part.name())
        .env_remove("RUST_LOG")
        .stdout(Stdio::null())
        .status()
        .context("valgrind: is it installed?")?;
    ensure!(told.success(), "the counted program failed: {told}");
    let allocated = fs::read_to_string(&allocated)?;
    let mut rounds: BTreeMap<Case, Vec<Figure>> = BTreeMap::new();
    for (at, line) in allocated.lines().enumerate() {
        let measured = measure::read(line)?;
        let dump = fs::read_to_string(folder.join(format!("out.{}", at + 1)))?;
        let (case, figure) = figures::figure(&measured, measure::instructions(&dump)?);
        rounds.entry(case).or_default().push(figure);
    }
    let of_rounds = rounds
        .into_iter()
        .map(|(case, rounds)| (case, figures::of_rounds(&rounds)));
    Ok(of_rounds.collect())
}
