//! Explains a feed's archives: the reach of its memory, their reading, and the items that walks missed.

use super::MissedByWalks;
use crate::{
    catalog::settings::ImportSettings,
    feed::{
        archive::{self, ArchiveWalk, History, WALKS_MIN},
        record::FeedRecord,
    },
};

/// The reach of a feed's memory into the past.
pub(super) fn history(record: &FeedRecord, import: &ImportSettings) -> String {
    match &record.history {
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
) -> Vec<String> {
    let mut lines = Vec::new();
    let by =
        |walk: &ArchiveWalk| walk.strategy().map(|strategy| format!(" by {strategy}")).unwrap_or_default();
    let is_last =
        |walk: &&ArchiveWalk| record.last_walk.as_ref().is_some_and(|last| last.began_at == walk.started_at);
    if let Some(walked) = &record.last_walk {
        let by = walk.filter(is_last).map(by).unwrap_or_default();
        let ended = walked.ended_at.rfc3339();
        lines.push(format!("last read until {ended}{by}; pages: {}; {}", walked.pages, walked.found));
        lines.extend(walked.remark.clone());
    }
    match walk.filter(|walk| !is_last(walk)) {
        Some(walk) => {
            let (since, next) = (walk.started_at.rfc3339(), walk.next_at().rfc3339());
            let state = if walk.is_over() { walk.history().to_string() } else { "under way".into() };
            lines.push(format!(
                "being read since {since}{}; pages so far: {}; {state}",
                by(walk),
                walk.pages
            ));
            lines.extend((!walk.is_done()).then(|| format!("the next page at {next}")));
        }
        None => {
            let walked = record.last_walk.as_ref().filter(|_| import.pages_max > 0);
            let again = walked.and_then(|walked| walked.again_at(import.again_secs));
            lines.extend(again.map(|at| format!("read again from {} on", at.rfc3339())));
        }
    }
    lines
}

/// The walks that missed an item; `open` is how often it was deleted before, while nothing is decided on it.
pub(super) fn missed_by_walks(missed: &archive::ArchiveSuspect, open: Option<u8>) -> MissedByWalks {
    MissedByWalks {
        since: missed.since.rfc3339(),
        last_seen: missed.last_seen.rfc3339(),
        walks: (missed.walks, open.map_or(missed.walks, |_| WALKS_MIN.max(missed.walks))),
        not_before: open.map(|tombstone_count| missed.not_before(tombstone_count).rfc3339()),
    }
}
