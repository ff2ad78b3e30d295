//! `everfeed replay`: recorded documents through the same decisions, and what they come to as lines
//! and a table; what they come to is worked out elsewhere.

use super::probe::sheet::{Column, Keep, table, tame, width};
use crate::{
    app::{
        explain::words,
        replay::{Kind, Step, feeds, play},
    },
    config::{self, Config},
    feed::{absence::WindowEvent, reconcile::Evidence},
};
use clap::Args;
use std::{
    io::{self, Write},
    path::PathBuf,
};

/// The recordings to play, and how much of them to show.
#[derive(Debug, Args)]
pub struct ReplayOptions {
    /// A folder of recorded documents (`NNNN.xml` and `NNNN.json`), of versions with a
    /// `manifest.json`, or of such folders.
    #[arg(value_name = "FEED-DIR")]
    folder: PathBuf,
    /// Decide as this configuration says of the feed that has the folder's name.
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Take every document for the answer to a request without validators, which proves most.
    #[arg(long)]
    unconditional: bool,
    /// Show every document and every change, not only what was deleted, came back, was held or left
    /// a gap.
    #[arg(long)]
    all: bool,
}

/// Plays every feed of the folder.
pub(super) async fn run(options: &ReplayOptions) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    let config = options
        .config
        .as_ref()
        .map(|file| Config::load(file, config::environment()))
        .transpose()?;
    for folder in feeds(&options.folder)? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let mut configured = config.iter().flat_map(|config| &config.feed);
        let feed = configured.find(|feed| feed.name == name);
        let steps = play(&folder, feed, options.unconditional).await?;
        let name = tame(&name);
        let lines: Vec<String> = steps
            .iter()
            .flat_map(|step| lines(step, options.all))
            .collect();
        let mut out = io::stdout().lock();
        if !lines.is_empty() {
            writeln!(out, "{name}")?;
            lines
                .iter()
                .try_for_each(|line| writeln!(out, "  {line}"))?;
        }
        rows.push(row(name, &steps));
    }
    let mut out = io::stdout().lock();
    for line in table(&COLUMNS, &rows, width()) {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

const COLUMNS: [Column; 11] = [
    Column {
        name: "sequence",
        right: false,
        keep: Some((Keep::Start, 1)),
    },
    number("read"),
    number("first"),
    number("adds"),
    number("edits"),
    number("tombstones"),
    number("resurrections"),
    number("held"),
    number("gaps"),
    number("rolled"),
    number("failed"),
];

const fn number(name: &'static str) -> Column {
    Column {
        name,
        right: true,
        keep: None,
    }
}

fn row(name: String, steps: &[Step]) -> Vec<String> {
    let observed = || steps.iter().filter_map(|step| step.observed.as_ref());
    let sum = |of: fn(&crate::feed::observation_record::ObservationCounts) -> u32| {
        observed()
            .map(|seen| of(&seen.counts))
            .map(u64::from)
            .sum::<u64>()
    };
    let held = observed()
        .filter(|seen| seen.events.contains(&WindowEvent::Quarantined))
        .count() as u64;
    let count = |is: fn(&Step) -> bool| steps.iter().filter(|step| is(step)).count() as u64;
    let at_first = observed()
        .next()
        .map_or(0, |seen| u64::from(seen.counts.new));
    let numbers = [
        observed()
            .filter(|seen| !seen.again && seen.page.is_none())
            .count() as u64,
        at_first,
        sum(|seen| seen.new) - at_first,
        sum(|seen| seen.edited),
        sum(|seen| seen.gone),
        sum(|seen| seen.revived),
        held,
        count(|step| step.gap),
        sum(|seen| seen.rolled_off),
    ];
    let failed = count(|step| step.failure.is_some());
    let failed = if failed == 0 {
        String::new()
    } else {
        failed.to_string()
    };
    let numbers = numbers.map(|number| number.to_string());
    std::iter::once(name)
        .chain(numbers)
        .chain(std::iter::once(failed))
        .collect()
}

/// The line on a poll, if it is worth one.
fn lines(step: &Step, all: bool) -> Vec<String> {
    let head = format!("{} {}", step.at.rfc3339(), tame(&step.file));
    let mut told = Vec::new();
    if let Some(failure) = &step.failure {
        told.push(format!("{head} could not be read: {}", tame(failure)));
    }
    if let Some(seen) = step.observed.as_ref() {
        if let Some((_, said)) = seen.page {
            told.extend(all.then(|| format!("{head}: {}", words::page(said))));
        } else if all {
            let again = if seen.again { " again" } else { "" };
            told.push(format!(
                "{head}{again}: {:?}, entries {}, new {}, edited {}, missing {}, suspects {}, rolled off {}, gone {}",
                seen.coverage, seen.counts.entries, seen.counts.new, seen.counts.edited, seen.counts.missing, seen.counts.suspects, seen.counts.rolled_off, seen.counts.gone
            ));
        }
        told.extend(
            seen.events
                .iter()
                .map(|event| format!("{head}: {}", words::event(*event))),
        );
    }
    for change in &step.changes {
        let name = tame(&change.name);
        match &change.kind {
            Kind::Gone(_, evidence) => {
                told.push(format!("{head} deleted {name}: {}", proof(evidence)))
            }
            Kind::Revived => told.push(format!("{head} came back {name}")),
            Kind::New if all => told.push(format!("{head} new {name}")),
            Kind::Edited if all => told.push(format!("{head} edited {name}")),
            Kind::New | Kind::Edited => {}
        }
    }
    told
}

/// The proof of a deletion, in a line.
pub(super) fn proof(evidence: &Evidence) -> String {
    let code = evidence.reason.code();
    let Some(missing) = evidence.suspect else {
        let said = [&evidence.when, &evidence.comment]
            .into_iter()
            .flatten()
            .map(|text| tame(text));
        return std::iter::once(code.to_owned())
            .chain(said)
            .collect::<Vec<_>>()
            .join(", ");
    };
    let window = if missing.strong {
        "as many came as went"
    } else {
        "not as many came as went"
    };
    let back = if missing.backfilled {
        ", older items moved up"
    } else {
        ""
    };
    let page = missing
        .permalink_check
        .last
        .map_or_else(String::new, |(_, said)| {
            format!(", its page: {}", words::page(said))
        });
    format!(
        "{code}; last seen {}, missed since {} in {} documents, {} items still behind it{back}, {window}{page}",
        missing.last_seen.rfc3339(),
        missing.since.rfc3339(),
        missing.count,
        missing.behind
    )
}
