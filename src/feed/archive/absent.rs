//! What the absence of an item from a whole walk proves (POLLING 2.3, `absent-archive`): deleted by the publisher, or nothing.
//! Pure. Presence is `merge`'s business, absence from a live document `feed::absence`'s.
//!
//! An item can be missed only where an earlier walk saw it, under a strong key, and while the items next to it by date, one
//! older and one newer, are still shown: a page that is lost takes neighbours with it.

use super::walked::APART_SECS;
use crate::feed::{
    item::{ItemId, flapping_secs},
    stamp::Stamp,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

#[cfg(test)]
mod tests;

/// One live item, as far as its place and its sight matter.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// The item.
    pub id: ItemId,
    /// The date by which the publisher sorts it, microseconds since 1970.
    pub dated: Option<i64>,
    /// How often it was deleted before.
    pub tombstone_count: u8,
    /// When the walk before saw it in the archives, under a strong key; `None`: it did not.
    pub before: Option<Stamp>,
    /// Whether it is shown now.
    pub sight: Sight,
}

/// Whether an item is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// By the archives, or by the live document.
    Shown,
    /// The last live documents lack it, and decide on it.
    Suspected,
    /// Nowhere.
    Absent,
}

/// An item that was missed by walks and not decided on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// The item.
    pub id: ItemId,
    /// The end of the walk that missed it first.
    pub since: Stamp,
    /// When the archives last showed it.
    pub last_seen: Stamp,
    /// Walks that missed it.
    pub walks: u8,
}

/// What a walk proves by what it does not show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Items that are gone, and how they were missed; oldest first.
    pub gone: Vec<Missed>,
    /// Items that are missed, and not decided on.
    pub missed: Vec<Missed>,
    /// Set when too much is missing at once to believe any of it: how many, of how many.
    pub too_much: Option<(usize, usize)>,
}

/// Walks that must miss an item (POLLING 2.3).
pub const WALKS_MIN: u8 = 2;

/// Items that may be missed at once, whatever the share: what is remembered of them is read with every poll.
const MISSED_MAX: usize = 1000;

/// Items that may be missed at once, however few the archives hold.
const MASS_MIN: usize = 2;

/// Of how many one may be missed at once: 20 % (POLLING 2.3, step 5).
const MASS_SHARE: usize = 5;

/// What a whole walk proves. `held` are the live items, `missed` those that walks have missed before.
pub fn judge(held: Vec<Held>, missed: &[Missed], now: Stamp) -> Found {
    let missed: HashMap<ItemId, &Missed> = missed.iter().map(|missed| (missed.id, missed)).collect();
    let is_expected = |item: &Held| item.before.is_some() || missed.contains_key(&item.id);
    let expected = held.iter().filter(|item| is_expected(item)).count();
    let absent = |item: &&Held| item.sight == Sight::Absent && is_expected(item);
    let lacking = held.iter().filter(absent).count();
    if lacking > (expected / MASS_SHARE).clamp(MASS_MIN, MISSED_MAX) {
        let kept = held.iter().filter(absent).filter_map(|item| missed.get(&item.id).map(|missed| **missed));
        return Found { missed: kept.collect(), too_much: Some((lacking, expected)), ..Found::default() };
    }
    // What was never in the archives and is not shown has no place among what is.
    let mut dated: Vec<(i64, &Held)> = held
        .iter()
        .filter(|item| is_expected(item) || item.sight == Sight::Shown)
        .filter_map(|item| Some((item.dated?, item)))
        .collect();
    dated.sort_by_key(|(date, item)| (*date, item.id));
    // Items of one date stand beside one another in no order that is known.
    let groups: Vec<&[(i64, &Held)]> = dated.chunk_by(|a, b| a.0 == b.0).collect();
    let mut found = Found::default();
    for three in groups.windows(3) {
        let [older, own, newer] = three else { continue };
        let lacks = |group: &[(i64, &Held)]| {
            group
                .iter()
                .filter(|(_, item)| item.sight != Sight::Shown)
                .map(|(_, item)| **item)
                .collect::<Vec<_>>()
        };
        let [alone] = lacks(own)[..] else { continue };
        if alone.sight != Sight::Absent || !lacks(older).is_empty() || !lacks(newer).is_empty() {
            continue;
        }
        let Some(counted) = count(&alone, missed.get(&alone.id).copied(), now) else { continue };
        if counted.proves(alone.tombstone_count, now) {
            found.gone.push(counted)
        } else {
            found.missed.push(counted)
        }
    }
    found
}

/// Missed once more.
fn count(item: &Held, before: Option<&Missed>, now: Stamp) -> Option<Missed> {
    match before {
        Some(before) => Some(Missed { walks: before.walks.saturating_add(1), ..*before }),
        None => Some(Missed { id: item.id, since: now, last_seen: item.before?, walks: 1 }),
    }
}

impl Missed {
    /// No tombstone before that.
    pub fn not_before(&self, tombstone_count: u8) -> Stamp {
        self.since.plus_secs(flapping_secs(tombstone_count).max(APART_SECS))
    }

    fn proves(&self, tombstone_count: u8, now: Stamp) -> bool {
        self.walks >= WALKS_MIN && now >= self.not_before(tombstone_count)
    }
}
