//! The end of the documents that is the newest (POLLING 2.3, step 1).

use super::{ShownItem, WindowItem};
use crate::feed::item::ItemId;
use std::{cmp::Ordering, collections::HashSet};

/// Direction of documents, learnt from the end at which new items come in, where dates do not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Direction {
    /// Insertions in a row at the head, or as a negative number at the end.
    pub(crate) inserts: i8,
    /// Direction of the last document.
    pub(crate) known: Option<NewestEnd>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewestEnd {
    First,
    Last,
}

/// Insertions in a row at one end that tell where the newest stand.
const INSERTS_MIN: i8 = 2;

impl Direction {
    /// Direction after a document, and true when the document must be turned round to be newest
    /// first.
    pub(super) fn follow(self, seen: &[ShownItem], rows: &[WindowItem]) -> (Self, bool) {
        let inserts = self.inserted(seen, rows);
        let known = match (by_dates(seen), inserts) {
            (Some(known), _) => Some(known),
            (None, inserts) if inserts >= INSERTS_MIN => Some(NewestEnd::First),
            (None, inserts) if inserts <= -INSERTS_MIN => Some(NewestEnd::Last),
            _ => None,
        };
        // A document that says nothing is read as the one before was.
        let ascends = known.or(self.known) == Some(NewestEnd::Last);
        (Self { inserts, known }, ascends)
    }

    pub(super) fn is_known(self) -> bool {
        self.known.is_some()
    }

    /// Count of insertions after a document; the remembered items are newest first.
    fn inserted(self, seen: &[ShownItem], rows: &[WindowItem]) -> i8 {
        let held: HashSet<ItemId> = rows.iter().map(|row| row.id).collect();
        let is_new = |place: &ShownItem| !held.contains(&place.id) && !place.is_known;
        let (head, end) = (
            seen.first().is_some_and(is_new),
            seen.last().is_some_and(is_new),
        );
        match (head, end) {
            _ if rows.is_empty() => self.inserts,
            (true, false) => self.inserts.max(0).saturating_add(1),
            (false, true) => self.inserts.min(0).saturating_sub(1),
            (true, true) => 0,
            (false, false) => self.inserts,
        }
    }
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
