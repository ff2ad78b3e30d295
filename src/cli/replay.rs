//! `everfeed replay`: recorded documents through the same decisions, and what they come to as lines
//! and a table; what they come to is worked out elsewhere.

use super::{
    load_if_named,
    probe::sheet::{Column, Keep, table, tame, width},
};
use crate::{
    app::{
        explain::words,
        replay::{Changed, Kind, Step, feeds, play},
    },
    feed::{absence::WindowEvent, observation_record::ObservationRecord, reconcile::Evidence},
};
use clap::Args;
use std::{
    io::{self, Write},
    path::PathBuf,
};

/// The recordings to play, and how much of them to show.
#[derive(Debug, Args)]
pub struct ReplayOptions {
    /// A folder of recorded documents (`NNNN.xml` with `NNNN.json`), or of versions with a
    /// `manifest.json`. It may also hold such folders.
    #[arg(value_name = "FEED-DIR")]
    folder: PathBuf,
    /// Decide by the settings of the feed that has the folder's name in this configuration.
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Treat every document as the answer to a request without validators. Such answers prove most.
    #[arg(long)]
    unconditional: bool,
    /// Show every document and every change. The default is deletions, revivals, quarantines and
    /// gaps.
    #[arg(long)]
    all: bool,
}

/// Plays every feed of the folder.
pub(super) async fn run(options: &ReplayOptions) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    let config = load_if_named(options.config.as_deref())?;
    for folder in feeds(&options.folder)? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let mut configured = config.iter().flat_map(|config| &config.feed);
        let feed = configured.find(|feed| feed.name == name);
        let steps = play(&folder, feed, options.unconditional).await?;
        let name = tame(&name);
        let lines = steps.iter().flat_map(|step| lines(step, options.all));
        let mut out = io::stdout().lock();
        for (at, line) in lines.enumerate() {
            if at == 0 {
                writeln!(out, "{name}")?;
            }
            writeln!(out, "  {line}")?;
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
    Column::cut("sequence", Keep::Start, 1),
    Column::number("read"),
    Column::number("first"),
    Column::number("adds"),
    Column::number("edits"),
    Column::number("tombstones"),
    Column::number("resurrections"),
    Column::number("held"),
    Column::number("gaps"),
    Column::number("rolled"),
    Column::number("failed"),
];

/// The numbers of a feed. Items are counted by the changes that `--all` lists: an edit that waited
/// is committed by a later poll, of whose document it is no part.
fn row(name: String, steps: &[Step]) -> Vec<String> {
    let observed: Vec<&ObservationRecord> = steps.iter().flat_map(|step| &step.observed).collect();
    let count = |is: fn(&Step) -> bool| steps.iter().filter(|step| is(step)).count();
    let changes = |is: fn(&Kind) -> bool| {
        let all = steps.iter().flat_map(|step| &step.changes);
        all.filter(|change| is(&change.kind)).count()
    };
    let is_read = |seen: &&&ObservationRecord| !seen.again && seen.page.is_none();
    let is_held = |seen: &&&ObservationRecord| seen.events.contains(&WindowEvent::Quarantined);
    let first = steps.iter().find(|step| step.observed.is_some());
    let at_first = first.map_or(0, |step| {
        let is_new = |change: &&Changed| change.kind == Kind::New;
        step.changes.iter().filter(is_new).count()
    });
    let rolled_off: u64 = observed
        .iter()
        .map(|seen| u64::from(seen.counts.rolled_off))
        .sum();
    let numbers = [
        observed.iter().filter(is_read).count(),
        at_first,
        changes(|kind| *kind == Kind::New) - at_first,
        changes(|kind| *kind == Kind::Edited),
        changes(|kind| matches!(kind, Kind::Gone(..))),
        changes(|kind| *kind == Kind::Revived),
        observed.iter().filter(is_held).count(),
        count(|step| step.gap),
    ];
    let mut row = vec![name];
    row.extend(numbers.map(|number| number.to_string()));
    row.push(rolled_off.to_string());
    row.push(
        match count(|step| step.failure.is_some() || step.missed.is_some()) {
            0 => String::new(),
            failed => failed.to_string(),
        },
    );
    row
}

/// The line on a poll, if it is worth one.
fn lines(step: &Step, all: bool) -> Vec<String> {
    let head = format!("{} {}", step.at.rfc3339(), tame(&step.file));
    let mut told = Vec::new();
    if let Some(failure) = &step.failure {
        told.push(format!("{head} could not be read: {}", tame(failure)));
    }
    if let Some(why) = &step.missed {
        told.push(format!("{head}, the poll failed: {}", tame(why)));
    }
    if let Some(seen) = step.observed.as_ref() {
        if all {
            told.push(match seen.page {
                Some((_, said)) => format!("{head}: {}", words::page(said)),
                None => format!("{head}{}", counted(seen)),
            });
        }
        for event in &seen.events {
            told.push(format!("{head}: {}", words::event(*event)));
        }
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

/// The counts of a document.
fn counted(seen: &ObservationRecord) -> String {
    let again = if seen.again { " again" } else { "" };
    let counts = &seen.counts;
    format!(
        "{again}: {:?}, entries {}, new {}, edited {}, missing {}, suspects {}, rolled off {}, gone {}",
        seen.coverage,
        counts.entries,
        counts.new,
        counts.edited,
        counts.missing,
        counts.suspects,
        counts.rolled_off,
        counts.gone
    )
}

/// The proof of a deletion, in a line.
pub(super) fn proof(evidence: &Evidence) -> String {
    let code = evidence.reason.code();
    let Some(missing) = evidence.suspect else {
        let mut told = vec![code.to_owned()];
        for text in [&evidence.when, &evidence.comment].into_iter().flatten() {
            told.push(tame(text));
        }
        return told.join(", ");
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
    let page = match missing.permalink_check.last {
        Some((_, said)) => format!(", its page: {}", words::page(said)),
        None => String::new(),
    };
    format!(
        "{code}; last seen {}, missed since {} in {} documents, {} items still behind it{back}, {window}{page}",
        missing.last_seen.rfc3339(),
        missing.since.rfc3339(),
        missing.count,
        missing.behind
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::{item::ItemId, observation_record::ObservationCounts, stamp::Stamp};

    #[test]
    fn the_table_counts_the_changes_that_are_listed_whatever_poll_committed_them() {
        let step = |kinds: &[Kind], counts: Option<ObservationCounts>| Step {
            file: "0000.xml".to_owned(),
            at: Stamp::from_secs(1),
            observed: counts.map(|counts| ObservationRecord {
                counts,
                ..ObservationRecord::default()
            }),
            failure: None,
            missed: None,
            changes: (1..)
                .zip(kinds)
                .map(|(n, kind)| Changed {
                    id: ItemId([n; 10]),
                    name: format!("item-{n}"),
                    kind: kind.clone(),
                })
                .collect(),
            gap: false,
        };
        let counts = ObservationCounts {
            edited: 1,
            ..ObservationCounts::default()
        };
        let steps = [
            step(&[Kind::New, Kind::New], Some(ObservationCounts::default())),
            step(&[Kind::Edited], Some(counts)),
            // Edits that waited come with a poll that has no document.
            step(&[Kind::Edited, Kind::Edited, Kind::New], None),
            Step {
                missed: Some("500".to_owned()),
                ..step(&[], None)
            },
        ];
        let row = row("blog".to_owned(), &steps);
        assert_eq!(row[..5], ["blog", "2", "2", "1", "3"]);
        assert_eq!(row.last().map(String::as_str), Some("1"));
        let lines: Vec<String> = steps.iter().flat_map(|step| lines(step, true)).collect();
        let listed = |word: &str| lines.iter().filter(|line| line.contains(word)).count();
        assert_eq!((listed(" edited item"), listed(" new item")), (3, 3));
        assert_eq!(listed("the poll failed: 500"), 1, "{lines:?}");
    }
}
