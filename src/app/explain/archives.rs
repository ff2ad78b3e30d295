//! Explains a feed's archives: the reach of its memory, their reading, and the items that walks
//! missed.

use super::MissedByWalks;
use crate::{
    catalog::settings::ImportSettings,
    feed::{
        archive::{self, ArchiveWalk, History, WALKS_MIN, WalkDelay},
        record::FeedRecord,
        stamp::Stamp,
    },
};

/// The reach of a feed's memory into the past.
pub(super) fn history(record: &FeedRecord, import: &ImportSettings) -> String {
    match &record.completeness.history {
        History::Unknown if import.pages_max == 0 => {
            "unknown: archives are not read (`import.pages_max` is 0), so it begins with the first document".into()
        }
        History::Unknown => {
            "unknown: its documents name no way to older ones that works, so it begins with the first document".into()
        }
        History::Running => "running: its archives are being read for the first time".into(),
        known => known.to_string(),
    }
}

/// The reading of a feed's archives, in lines.
pub(super) fn archives(
    record: &FeedRecord,
    walk: Option<&ArchiveWalk>,
    import: &ImportSettings,
    now: Stamp,
) -> Vec<String> {
    let mut lines = Vec::new();
    let by = |walk: &ArchiveWalk| {
        walk.strategy()
            .map(|strategy| format!(" by {strategy}"))
            .unwrap_or_default()
    };
    let is_last = |walk: &&ArchiveWalk| is_last(walk, record);
    if let Some(walked) = &record.completeness.last_walk {
        let by = walk.filter(is_last).map(by).unwrap_or_default();
        let proof = walked
            .proof
            .as_ref()
            .map(|proof| format!(": {proof}"))
            .unwrap_or_default();
        let ended = when(walked.ended_at, now);
        lines.push(format!(
            "last read until {ended}{by}; pages: {}; {}{proof}",
            walked.pages, walked.found
        ));
        lines.extend(walked.remark.clone());
    }
    match walk.filter(|walk| !is_last(walk)) {
        Some(walk) => {
            let state = if walk.is_over() {
                walk.history().to_string()
            } else {
                "under way".into()
            };
            lines.push(format!(
                "being read since {}{}; pages so far: {}; {state}",
                when(walk.started_at, now),
                by(walk),
                walk.pages()
            ));
            lines.extend(waiting(walk, now));
        }
        None => {
            let walked = record
                .completeness
                .last_walk
                .as_ref()
                .filter(|_| import.pages_max > 0);
            let again = walked.and_then(|walked| walked.again_at(import.again_secs));
            lines.extend(again.map(|at| format!("read again from {} on", when(at, now))));
        }
    }
    lines
}

/// Reason why a walk that goes on waits, and until when; `None` for one that is committed.
pub(crate) fn under_way(record: &FeedRecord, walk: &ArchiveWalk, now: Stamp) -> Option<String> {
    if is_last(walk, record) {
        None
    } else {
        waiting(walk, now)
    }
}

fn is_last(walk: &ArchiveWalk, record: &FeedRecord) -> bool {
    record
        .completeness
        .last_walk
        .as_ref()
        .is_some_and(|last| last.began_at == walk.started_at)
}

fn waiting(walk: &ArchiveWalk, now: Stamp) -> Option<String> {
    if walk.is_done() {
        return None;
    }
    let next = when(walk.next_at(), now);
    Some(match walk.delay() {
        WalkDelay::Pace => format!("the next page at {next}"),
        WalkDelay::Retry(reason) => format!("{reason}; it is asked for again at {next}"),
        WalkDelay::ConfirmsEnd => {
            format!(
                "the last page seems to be reached; whether it is the last is asked again at {next}"
            )
        }
        WalkDelay::ReadsAgain => {
            format!(
                "all pages are read a second time, to see whether entries moved meanwhile; the next at {next}"
            )
        }
    })
}

/// A time, and how far away it is.
fn when(at: Stamp, now: Stamp) -> String {
    let span = |secs: u64| match secs {
        0..120 => format!("{secs} seconds"),
        120..7200 => format!("{} minutes", secs / 60),
        7200..172_800 => format!("{} hours", secs / 3600),
        _ => format!("{} days", secs / 86_400),
    };
    let distance = if at > now {
        format!("in {}", span(at.secs_since(now)))
    } else {
        format!("{} ago", span(now.secs_since(at)))
    };
    format!("{} ({distance})", at.rfc3339())
}

/// The walks that missed an item; `open` is how often it was deleted before, while nothing is
/// decided on it.
pub(super) fn missed_by_walks(missed: &archive::ArchiveSuspect, open: Option<u8>) -> MissedByWalks {
    MissedByWalks {
        since: missed.since.rfc3339(),
        last_seen: missed.last_seen.rfc3339(),
        walks: (
            missed.walks,
            open.map_or(missed.walks, |_| WALKS_MIN.max(missed.walks)),
        ),
        not_before: open.map(|tombstone_count| missed.not_before(tombstone_count).rfc3339()),
    }
}
