//! The end of the documents that is the newest (POLLING 2.3, step 1).

use super::{SURVIVORS_MIN, ShownItem, WindowItem};
use crate::{item::ItemId, longest_rise::longest_rise};
use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
};

/// Direction of documents, learnt from the end at which new items come in, where dates do not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Direction {
    /// Insertions in a row at the head, or as a negative number at the end.
    pub inserts: i8,
    /// Direction of the last document.
    pub known: Option<NewestEnd>,
    /// Posts that are pinned to the head, before which nothing enters.
    pub pins: u8,
    /// Documents in a row of which nobody knows the direction.
    pub unknown: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewestEnd {
    First,
    Last,
}

/// Insertions in a row at one end that tell where the newest stand.
const INSERTS_MIN: i8 = 2;

/// Documents in a row with dates of which nobody knows the direction that say that there is none.
const LOST_MIN: u8 = 2;

/// Posts that a blog pins to the head of its feed, at most.
const PINS_MAX: usize = 3;

impl Direction {
    /// Direction after a document, and true when the document must be turned round to be newest
    /// first.
    pub(super) fn follow(self, seen: &[ShownItem], rows: &[WindowItem]) -> (Self, bool) {
        let dated = by_dates(seen);
        let (inserts, pins) = if dated.is_none() && places_change(seen, rows) {
            (0, 0)
        } else {
            self.inserted(seen, rows)
        };
        let known = if dated.is_some() {
            dated
        } else if inserts >= INSERTS_MIN {
            Some(NewestEnd::First)
        } else if inserts <= -INSERTS_MIN {
            Some(NewestEnd::Last)
        } else {
            None
        };
        // A document that says nothing is read as the one before was.
        let ascends = known.or(self.known) == Some(NewestEnd::Last);
        let next = Self {
            inserts,
            known,
            pins,
            unknown: if known.is_some() {
                0
            } else {
                self.unknown.saturating_add(1)
            },
        };
        (next, ascends)
    }

    /// True when no end is known to be the newest. With dates it may be an accident of one document;
    /// without them one that says so has a new entry between others.
    pub(super) fn is_lost(self, seen: &[ShownItem]) -> bool {
        let is_undated = seen.iter().all(|place| place.dated.is_none());
        self.unknown >= if is_undated { 1 } else { LOST_MIN }
    }

    pub(super) fn is_known(self) -> bool {
        self.known.is_some()
    }

    /// Count of insertions after a document, and the posts that are pinned before them; the
    /// remembered items are newest first. What enters between others says that no end is the newest.
    fn inserted(self, seen: &[ShownItem], rows: &[WindowItem]) -> (i8, u8) {
        if rows.is_empty() {
            return (self.inserts, self.pins);
        }
        let held: HashSet<ItemId> = rows.iter().map(|row| row.id).collect();
        let survivors = seen.iter().filter(|place| held.contains(&place.id)).count();
        let mut before = 0;
        let mut entered: Vec<usize> = Vec::new();
        for place in seen {
            if held.contains(&place.id) {
                before += 1;
            } else if !place.is_known {
                entered.push(before);
            }
        }
        let (Some(first), Some(last)) = (entered.first(), entered.last()) else {
            return (self.inserts, self.pins);
        };
        let pins = u8::try_from(*first).unwrap_or(u8::MAX);
        let is_at_head = first == last && *first <= PINS_MAX && survivors > 2 * first;
        let is_at_end = *first == survivors;
        if is_at_head == is_at_end {
            return (0, 0);
        }
        if is_at_end {
            return (self.inserts.min(0).saturating_sub(1), 0);
        }
        if pins != 0 && pins != self.pins {
            return (1, pins);
        }
        (self.inserts.max(0).saturating_add(1), pins)
    }
}

/// True when posts change places within a document, as in a list by score: not those that are
/// bumped to its newest end.
fn places_change(seen: &[ShownItem], rows: &[WindowItem]) -> bool {
    let places = common_places(seen, rows);
    let change = |places: &[usize]| {
        let rise = longest_rise(places);
        let bumped = rise.first().copied().unwrap_or_default();
        rise.len() + bumped < places.len()
    };
    let turned: Vec<usize> = places.iter().rev().copied().collect();
    change(&places) && change(&turned)
}

/// True when a document shows the remembered items the other way round: the window before it was read
/// when nobody knew its direction.
pub(super) fn is_backwards(seen: &[ShownItem], rows: &[WindowItem]) -> bool {
    let places = common_places(seen, rows);
    let turned: Vec<usize> = places.iter().rev().copied().collect();
    let (kept, turned) = (longest_rise(&places).len(), longest_rise(&turned).len());
    turned >= SURVIVORS_MIN && turned > kept && turned * 5 >= places.len() * 4
}

/// The places, among the remembered items, of those that a document shows.
fn common_places(seen: &[ShownItem], rows: &[WindowItem]) -> Vec<usize> {
    let position: HashMap<ItemId, usize> =
        rows.iter().zip(0..).map(|(row, at)| (row.id, at)).collect();
    seen.iter()
        .filter_map(|place| position.get(&place.id).copied())
        .collect()
}

/// End that is the newest, if at least four in five neighbours with different dates descend, or
/// ascend.
fn by_dates(seen: &[ShownItem]) -> Option<NewestEnd> {
    let dates: Vec<i64> = seen.iter().filter_map(|place| place.dated).collect();
    let count = |order| {
        dates
            .windows(2)
            .filter(|pair| pair[0].cmp(&pair[1]) == order)
            .count()
    };
    let (up, down) = (count(Ordering::Less), count(Ordering::Greater));
    let enough = |most: usize| most > 0 && most * 5 >= (up + down) * 4;
    if enough(down) {
        Some(NewestEnd::First)
    } else if enough(up) {
        Some(NewestEnd::Last)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::KeyHash;

    /// Checks insertions and pins after a document of these letters; capitals are new.
    fn check(before: (i8, u8), remembered: &str, shown: &str, expect: (i8, u8)) {
        let id = |name: char| KeyHash::of("", &name.to_string()).item_id();
        let row = |name: char| WindowItem {
            id: id(name),
            dated: None,
            tombstone_count: 0,
            is_weak: false,
            suspect: None,
        };
        let place = |name: char| ShownItem {
            id: id(name),
            dated: None,
            is_known: name.is_lowercase(),
            tombstone_count: 0,
            is_weak: false,
        };
        let direction = Direction {
            inserts: before.0,
            pins: before.1,
            ..Direction::default()
        };
        let rows: Vec<WindowItem> = remembered.chars().map(row).collect();
        let seen: Vec<ShownItem> = shown.chars().map(place).collect();
        let found = direction.inserted(&seen, &rows);
        assert_eq!(found, expect, "{remembered} {shown}");
    }

    #[test]
    fn what_enters_at_one_end_is_counted_and_what_enters_elsewhere_unmakes_it() {
        check((1, 0), "", "ABC", (1, 0));
        check((1, 0), "dcba", "dcba", (1, 0));
        check((1, 0), "dcba", "EFdcba", (2, 0));
        check((-3, 0), "dcba", "Edcba", (1, 0));
        check((1, 0), "dcba", "dcbaE", (-1, 0));
        check((-1, 0), "dcba", "dcbaE", (-2, 0));
        check((2, 0), "dcba", "dcEba", (0, 0));
        check((2, 0), "dcba", "EdcFba", (0, 0));
        check((2, 0), "dcba", "XY", (-1, 0));
        // A pinned post stays before what is new.
        check((2, 0), "dcba", "dEcba", (1, 1));
        check((2, 1), "dcba", "dEcba", (3, 1));
        check((2, 1), "dcba", "Edcba", (3, 0));
    }
}
