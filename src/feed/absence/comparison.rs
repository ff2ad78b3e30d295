//! A document laid beside the remembered window: what survived, what kept its order, what is missed
//! and where.

use super::{ANCHORS_MIN, AbsenceState, Coverage, ProofPolicy, SURVIVORS_MIN, ShownItem};
use crate::feed::{item::ItemId, longest_rise::longest_rise, stamp::Stamp};
use std::collections::{HashMap, HashSet};

/// By which rule something missing is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AbsenceRule {
    /// Two anchors behind it; decides nothing while nobody knows which end is the newest.
    Bracket { decides: bool },
    /// The document is the whole feed.
    Complete,
}

/// A row that the document lacks.
#[derive(Clone, Copy, Debug)]
pub(super) struct LackingItem {
    /// Its place among the remembered rows.
    pub(super) at: usize,
    /// Anchors behind it.
    pub(super) behind: usize,
    /// True when older items moved up into the window.
    pub(super) backfilled: bool,
    pub(super) is_interior: bool,
}

/// A document laid beside the remembered window.
pub(super) struct Comparison {
    /// The place of each remembered item.
    pub(super) position: HashMap<ItemId, usize>,
    pub(super) shown: HashSet<ItemId>,
    pub(super) survivors: usize,
    /// The places, among the remembered rows, of the items that kept their order and date.
    pub(super) anchors: Vec<usize>,
    /// Survivors in order, whether or not their date changed.
    pub(super) in_order: usize,
}

/// A full document that lacks too much to be believed at once.
pub(super) struct DoubtedDocument<'a> {
    pub(super) view: &'a Comparison,
    /// Its entries, newest first.
    pub(super) seen: &'a [ShownItem],
    pub(super) coverage: Coverage,
    pub(super) policy: &'a ProofPolicy,
    pub(super) now: Stamp,
}

impl Comparison {
    pub(super) fn new(memory: &AbsenceState, seen: &[ShownItem]) -> Self {
        let position: HashMap<ItemId, usize> = memory
            .items
            .iter()
            .enumerate()
            .map(|(at, row)| (row.id, at))
            .collect();
        let survivors: Vec<(usize, &ShownItem)> = seen
            .iter()
            .filter_map(|place| Some((*position.get(&place.id)?, place)))
            .collect();
        let places: Vec<usize> = survivors.iter().map(|(at, _)| *at).collect();
        let ordered = longest_rise(&places);
        let undated = |&&at: &&usize| memory.items[survivors[at].0].dated == survivors[at].1.dated;
        let anchors = ordered
            .iter()
            .filter(undated)
            .map(|&at| survivors[at].0)
            .collect();
        let shown = seen.iter().map(|place| place.id).collect();
        Self {
            shown,
            survivors: survivors.len(),
            anchors,
            in_order: ordered.len(),
            position,
        }
    }

    /// True when the document has something in common with what was known before it: nothing is
    /// missing between the two.
    pub(super) fn is_joined(&self, seen: &[ShownItem]) -> bool {
        self.survivors > 0 || seen.iter().any(|place| place.is_known)
    }

    /// True when at least three survived and four in five kept their order.
    pub(super) fn is_stable(&self) -> bool {
        self.survivors >= SURVIVORS_MIN && self.in_order * 5 >= self.survivors * 4
    }

    // Decides: Is an item missing, or has it rolled off the end?
    /// The remembered rows that the document lacks, in window order.
    pub(super) fn missed(
        &self,
        memory: &AbsenceState,
        seen: &[ShownItem],
        rule: AbsenceRule,
    ) -> Vec<LackingItem> {
        let last_anchor = self.anchors.last().map(|&at| memory.items[at].id);
        let back: Vec<&ShownItem> = seen
            .iter()
            .rev()
            .take_while(|place| Some(place.id) != last_anchor)
            .filter(|place| !self.position.contains_key(&place.id))
            .collect();
        let returns = back.iter().any(|place| place.is_known);
        let absent = memory
            .items
            .iter()
            .enumerate()
            .filter(|(_, row)| !self.shown.contains(&row.id));
        absent
            .map(|(at, row)| {
                let behind =
                    self.anchors.len() - self.anchors.partition_point(|&anchor| anchor <= at);
                // Without dates, what was known before and had left is older than what had not.
                let older = |place: &&ShownItem| match (place.dated, row.dated) {
                    (Some(place), Some(row)) => place < row,
                    (None, None) => place.is_known,
                    _ => false,
                };
                // What moved up behind it is an anchor from the next document on, and goes on
                // meaning the same.
                let still = behind > 0 && row.suspect.is_some_and(|missing| missing.backfilled);
                let backfilled = still || (returns && back.iter().all(older));
                let bracketed = behind + if backfilled { ANCHORS_MIN } else { 0 } >= ANCHORS_MIN;
                let is_proof = match rule {
                    AbsenceRule::Complete => true,
                    AbsenceRule::Bracket { decides } => decides && bracketed,
                };
                let is_interior = is_proof && !row.is_weak;
                LackingItem {
                    at,
                    behind,
                    backfilled,
                    is_interior,
                }
            })
            .collect()
    }
}
