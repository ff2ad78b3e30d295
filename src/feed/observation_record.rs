//! Record of one document or one permalink check, kept for the operator; not what it changed.

use super::{
    absence::{CheckResult, Coverage, WindowEvent},
    item::ItemId,
    reconcile::{Change, Decisions, PutKind},
    stamp::Stamp,
};

/// Observations kept of a feed: with an hourly poll and a change in each, more than a week.
pub const OBSERVATIONS_MAX: u64 = 200;

/// One document that was read, or one page. A 304, and the last body again for an answer to
/// validators, prove nothing and leave none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservationRecord {
    /// Time at which it was read.
    pub at: Stamp,
    /// Coverage of the document.
    pub coverage: Coverage,
    /// Reason for partial coverage, for the operator.
    pub partial: Option<String>,
    /// True when it is the last document again, which confirms what that one lacks.
    pub again: bool,
    /// Figures of it.
    pub counts: ObservationCounts,
    /// Event of a window as a whole.
    pub events: Vec<WindowEvent>,
    /// Remark on its oddities.
    pub remark: Option<String>,
    /// Set for the page of a missed item: whose, and what it said.
    pub page: Option<(ItemId, CheckResult)>,
}

/// Figures of one document: its entries, and the items that it changed or lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObservationCounts {
    /// Entries in it.
    pub entries: u32,
    /// Items that are new.
    pub new: u32,
    /// Items whose content changed.
    pub edited: u32,
    /// Items that came back to life.
    pub revived: u32,
    /// Items of the remembered window that it lacks.
    pub missing: u32,
    /// Items that are missed, after it, and not decided on.
    pub suspects: u32,
    /// Items that left by the end of the window with it.
    pub rolled_off: u32,
    /// Items that became tombstones.
    pub gone: u32,
}

impl ObservationRecord {
    /// Record of a permalink check.
    pub fn of_page(decisions: &Decisions, id: ItemId, said: CheckResult, now: Stamp) -> Self {
        let page = Some((id, said));
        Self {
            coverage: Coverage::Partial,
            page,
            ..Self::of(decisions, 0, now)
        }
    }

    /// Record of a document of so many entries.
    pub fn of(decisions: &Decisions, entries: usize, now: Stamp) -> Self {
        let puts = |kind: PutKind| {
            let is_one = |change: &&Change| matches!(change, Change::Put(put) if put.kind == kind);
            few(decisions.changes.iter().filter(is_one).count())
        };
        let gone = decisions
            .changes
            .iter()
            .filter(|change| matches!(change, Change::Delete(_)));
        Self {
            at: now,
            coverage: decisions.coverage,
            counts: ObservationCounts {
                entries: few(entries),
                new: puts(PutKind::Added),
                edited: puts(PutKind::Edited),
                revived: puts(PutKind::Revived),
                missing: few(decisions.missing),
                suspects: few(decisions.window.absence.suspects().count()),
                rolled_off: few(decisions.rolled_off),
                gone: few(gone.count()),
            },
            events: decisions.events.clone(),
            ..Self::default()
        }
    }
}

fn few(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
