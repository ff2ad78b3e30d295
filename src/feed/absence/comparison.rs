//! A document laid beside the remembered window: what survived, what kept its order, what is missed
//! and where.

use super::{
    ANCHORS_MIN, AbsenceState, Coverage, ProofPolicy, SURVIVORS_MIN, ShownItem, WindowItem,
};
use crate::{item::ItemId, longest_rise::longest_rise, stamp::Stamp};
use std::collections::{HashMap, HashSet};

/// Share of the entries that stay, as a divisor: if more of them have another date at once, the
/// dates of the document say nothing about single entries.
const REWRITTEN_SHARE: usize = 2;

/// By which rule something missing is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AbsenceRule {
    /// Two anchors behind it.
    Bracket,
    /// Two anchors on either side, since nobody knows which end is the newest; and nothing came when
    /// it was first missed, so that nothing rolled off. What comes later must enter at an end, and
    /// behind no pinned post.
    BothSides { enters_at_end: bool },
    /// Nothing does, as in a planet.
    Nothing,
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
    /// True when it did not simply roll off, so that its page is worth a request: two posts that
    /// stood behind it are there, or all that moved up behind the last are older, or nothing came.
    pub(super) is_doubtful: bool,
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
    /// True for a fault of the document: it is empty, cut, or mostly of another feed.
    pub(super) is_fault: bool,
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
        let in_order = ordered.iter().map(|number| survivors[*number]);
        let is_redated = |(at, place): &(usize, &ShownItem)| memory.items[*at].dated != place.dated;
        let redated = in_order.clone().filter(is_redated).count();
        // A site that was built again may date all posts to now. They are neighbours all the same.
        let are_dates_rewritten = redated * REWRITTEN_SHARE > ordered.len();
        let anchors = in_order
            .filter(|survivor| are_dates_rewritten || !is_redated(survivor))
            .map(|(at, _)| at)
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

    /// True when the document begins with new entries and ends with the head of the remembered
    /// window: everything else of the window has rolled off, however few entries are left of it.
    pub(super) fn continues(&self, memory: &AbsenceState, seen: &[ShownItem]) -> bool {
        let (new, rest) = seen.split_at(seen.len() - self.survivors);
        let is_new = |place: &ShownItem| !place.is_known;
        self.survivors > 0
            && !new.is_empty()
            && new.iter().all(is_new)
            && rest
                .iter()
                .zip(&memory.items)
                .all(|(place, row)| place.id == row.id)
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
        // A missed post that is shown again counts as one that came.
        let was_there = |place: &ShownItem| {
            let at = self.position.get(&place.id);
            at.is_some_and(|at| memory.items[*at].suspect.is_none())
        };
        let nothing_came = seen.iter().all(was_there);
        let mut missed = Vec::new();
        for (at, row) in memory.items.iter().enumerate() {
            if self.shown.contains(&row.id) {
                continue;
            }
            let behind = self.anchors.len() - self.anchors.partition_point(|&anchor| anchor <= at);
            // What moved up behind it is an anchor from the next document on, and goes on meaning
            // the same.
            let was_backfilled = row.suspect.is_some_and(|missing| missing.backfilled);
            let are_older = || back.iter().all(|place| is_older(place, row));
            let backfilled = (was_backfilled && behind > 0) || (returns && are_older());
            let is_bracketed = backfilled || behind >= ANCHORS_MIN;
            let is_followed = !back.is_empty() && are_older();
            let is_proof = match rule {
                AbsenceRule::Complete => true,
                AbsenceRule::Bracket => is_bracketed,
                AbsenceRule::BothSides { enters_at_end } => {
                    let before = self.anchors.partition_point(|&anchor| anchor < at);
                    let was_missed = enters_at_end && row.suspect.is_some();
                    before.min(behind) >= ANCHORS_MIN && (nothing_came || was_missed)
                }
                AbsenceRule::Nothing => false,
            };
            missed.push(LackingItem {
                at,
                behind,
                backfilled,
                is_interior: is_proof && !row.is_weak,
                is_doubtful: is_bracketed || is_followed || nothing_came,
            });
        }
        missed
    }
}

/// True when an entry is older than a remembered row. Without dates, or of one date, what was known
/// before and had left is older than what had not.
fn is_older(place: &ShownItem, row: &WindowItem) -> bool {
    match (place.dated, row.dated) {
        (Some(place), Some(row)) if place != row => place < row,
        (Some(_), Some(_)) | (None, None) => place.is_known,
        _ => false,
    }
}
