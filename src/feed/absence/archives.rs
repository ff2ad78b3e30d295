//! Absence of an item from a whole walk (POLLING 2.3, `absent-archive`): deleted by the publisher,
//! or nothing. Pure. Presence is `archive::merge`'s business.
//!
//! An item can be missed only where an earlier walk saw it, under a strong key, and while the items
//! next to it by date, one older and one newer, are still shown: a page that is lost takes
//! neighbours with it.
// Limit: of two posts side by side that are deleted between two walks nothing is concluded.

use crate::{
    item::{ItemId, flapping_secs},
    last_walk::APART_SECS,
    stamp::Stamp,
};
use std::collections::HashMap;

#[cfg(test)]
mod tests;

/// One live item, as far as its place and its sight matter.
#[derive(Clone, Copy, Debug)]
pub struct LiveItem {
    /// The item.
    pub id: ItemId,
    /// The date by which the publisher sorts it, microseconds since 1970.
    pub dated: Option<i64>,
    /// Number of its earlier deletions.
    pub tombstone_count: u8,
    /// Time at which the walk before saw it in the archives, under a strong key; `None`: it did
    /// not.
    pub before: Option<Stamp>,
    /// Its visibility now.
    pub sight: Visibility,
}

/// Visibility of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// By the archives, or by the live document.
    Shown,
    /// The last live documents lack it, and decide on it.
    Suspected,
    /// Nowhere.
    Absent,
}

/// An item that was missed by walks and not decided on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveSuspect {
    /// The item.
    pub id: ItemId,
    /// The end of the walk that missed it first.
    pub since: Stamp,
    /// Time at which the archives last showed it.
    pub last_seen: Stamp,
    /// Walks that missed it.
    pub walks: u8,
}

/// Conclusions from the items that a walk does not show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveFindings {
    /// Items that are gone, and how they were missed; oldest first.
    pub gone: Vec<ArchiveSuspect>,
    /// Items that are missed, and not decided on.
    pub missed: Vec<ArchiveSuspect>,
    /// Set when too much is missing at once to believe any of it: how many, of how many.
    pub too_much: Option<(usize, usize)>,
}

/// Walks that must miss an item (POLLING 2.3).
pub const WALKS_MIN: u8 = 2;

/// Items that may be missed at once, whatever the share: what is remembered of them is read with
/// every poll.
const MISSED_MAX: usize = 1000;

/// Items that may be missed at once, however few the archives hold.
const MASS_MIN: usize = 2;

/// Of how many one may be missed at once: 20 % (POLLING 2.3, step 5).
const MASS_SHARE: usize = 5;

/// Judges a whole walk. `held` are the live items, `missed` those that walks have missed before.
pub fn judge_archives(
    held: Vec<LiveItem>,
    missed: &[ArchiveSuspect],
    now: Stamp,
) -> ArchiveFindings {
    let missed: HashMap<ItemId, &ArchiveSuspect> =
        missed.iter().map(|missed| (missed.id, missed)).collect();
    let is_expected = |item: &LiveItem| item.before.is_some() || missed.contains_key(&item.id);
    let expected = held.iter().filter(|item| is_expected(item)).count();
    let absent = |item: &&LiveItem| item.sight == Visibility::Absent && is_expected(item);
    let lacking = held.iter().filter(absent).count();
    if lacking > (expected / MASS_SHARE).clamp(MASS_MIN, MISSED_MAX) {
        let kept = held
            .iter()
            .filter(absent)
            .filter_map(|item| missed.get(&item.id).map(|missed| **missed));
        return ArchiveFindings {
            missed: kept.collect(),
            too_much: Some((lacking, expected)),
            ..ArchiveFindings::default()
        };
    }
    // What was never in the archives and is not shown has no place among what is.
    let mut dated: Vec<(i64, &LiveItem)> = held
        .iter()
        .filter(|item| is_expected(item) || item.sight == Visibility::Shown)
        .filter_map(|item| Some((item.dated?, item)))
        .collect();
    dated.sort_by_key(|(date, item)| (*date, item.id));
    // Items of one date stand beside one another in no order that is known.
    let groups: Vec<&[(i64, &LiveItem)]> = dated.chunk_by(|a, b| a.0 == b.0).collect();
    let mut found = ArchiveFindings::default();
    for three in groups.windows(3) {
        let [older, own, newer] = three else { continue };
        let lacks = |group: &[(i64, &LiveItem)]| {
            group
                .iter()
                .filter(|(_, item)| item.sight != Visibility::Shown)
                .map(|(_, item)| **item)
                .collect::<Vec<_>>()
        };
        let [alone] = lacks(own)[..] else { continue };
        if alone.sight != Visibility::Absent || !lacks(older).is_empty() || !lacks(newer).is_empty()
        {
            continue;
        }
        let Some(counted) = count(&alone, missed.get(&alone.id).copied(), now) else {
            continue;
        };
        if counted.proves(alone.tombstone_count, now) {
            found.gone.push(counted)
        } else {
            found.missed.push(counted)
        }
    }
    found
}

/// The suspect, counted once more.
fn count(item: &LiveItem, before: Option<&ArchiveSuspect>, now: Stamp) -> Option<ArchiveSuspect> {
    match before {
        Some(before) => Some(ArchiveSuspect {
            walks: before.walks.saturating_add(1),
            ..*before
        }),
        None => Some(ArchiveSuspect {
            id: item.id,
            since: now,
            last_seen: item.before?,
            walks: 1,
        }),
    }
}

impl ArchiveSuspect {
    /// No tombstone before that.
    pub fn not_before(&self, tombstone_count: u8) -> Stamp {
        self.since
            .plus_secs(flapping_secs(tombstone_count).max(APART_SECS))
    }

    fn proves(&self, tombstone_count: u8, now: Stamp) -> bool {
        self.walks >= WALKS_MIN && now >= self.not_before(tombstone_count)
    }
}
