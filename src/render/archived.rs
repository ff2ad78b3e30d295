//! Archive documents of a classic view (RFC 5005 section 4): which items stand in which, and how
//! each is named; not how it is written. They part the items in the order of first sight, which
//! never changes, by hundreds.
//!
//! The name of a document holds the newest T of its items. So what has a name is the same for ever,
//! and a copy may be kept as long; when an item is edited or deleted, its document gets another
//! name. Therefore archives lead to each other by names of no version, from which one is sent to
//! the present one: else a copy would lead to what is no more. Edited items stand in the newest
//! document, too, for those who stop at an archive that they know.

use crate::feed::{item::Item, stamp::Stamp};
use std::{fmt, sync::Arc};

/// Items of a full archive document.
pub const ARCHIVE_ITEMS: u64 = 100;

/// The place and the version of an archive document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArchiveAddress {
    /// Number of its last item in the order of first sight, from 1 on.
    pub last: u64,
    /// Time of the first sight of that item.
    pub created: Stamp,
    /// Newest T of its items.
    pub changed: Stamp,
}

impl ArchiveAddress {
    /// The place of these items, the last first; `None` for none.
    pub fn of(last: u64, items: &[Arc<Item>]) -> Option<Self> {
        let created = items.first()?.created;
        let changed = items.iter().map(|item| item.modified).max()?;
        Some(Self {
            last,
            created,
            changed,
        })
    }

    /// The same place, of no version.
    pub fn unversioned(self) -> Self {
        Self {
            changed: Stamp::ZERO,
            ..self
        }
    }

    /// True when it names a version.
    pub fn is_versioned(self) -> bool {
        self.changed != Stamp::ZERO
    }

    /// Number of its items: those behind the last full archive before it.
    pub fn items(self) -> usize {
        items_up_to(self.last)
    }

    /// True when no item can join it any more.
    pub fn is_full(self) -> bool {
        self.last.is_multiple_of(ARCHIVE_ITEMS)
    }

    /// Reads a name, spelt as it is printed.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('-').map(|number| number.parse::<u64>().ok());
        let mut next = || numbers.next().flatten();
        let last = next().filter(|last| *last > 0)?;
        let place = Self {
            last,
            created: Stamp::from_micros(next()?),
            changed: Stamp::from_micros(next()?),
        };
        (place.to_string() == text).then_some(place)
    }
}

impl fmt::Display for ArchiveAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}-{}-{}",
            self.last,
            self.created.micros(),
            self.changed.micros()
        )
    }
}

/// Number of items of the document that ends at the item of this number.
pub fn items_up_to(last: u64) -> usize {
    usize::try_from((last.max(1) - 1) % ARCHIVE_ITEMS + 1).unwrap_or(usize::MAX)
}

/// Number of the last item of the newest archive, of so many items, behind a window that shows at
/// least so many of the newest; 0 where there is none. It moves only when the window is full of
/// others.
pub fn newest_last(total: u64, window: usize) -> u64 {
    total - total % u64::try_from(window.max(1)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_is_read_back_and_no_other_spelling_is_one() {
        let place = ArchiveAddress {
            last: 300,
            created: Stamp::from_micros(7),
            changed: Stamp::from_micros(9),
        };
        assert_eq!(place.to_string(), "300-7-9");
        assert_eq!(ArchiveAddress::parse("300-7-9"), Some(place));
        for bad in [
            "",
            "300",
            "300-7",
            "300-7-9-1",
            "0-7-9",
            "+300-7-9",
            "0300-7-9",
            "300-7-",
            "a-b-c",
            "300--7-9",
        ] {
            assert_eq!(ArchiveAddress::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn window_and_archives_hold_every_item_and_no_archive_one_of_another(total in 0_u64..2000, window in 1_usize..120) {
            let mut last = newest_last(total, window);
            prop_assert!(total - last < window as u64, "the window shows what is behind no archive");
            let mut counted = total - last;
            while last > 0 {
                let items = items_up_to(last) as u64;
                prop_assert!((1..=ARCHIVE_ITEMS).contains(&items));
                counted += items;
                last -= items;
                prop_assert_eq!(last % ARCHIVE_ITEMS, 0);
            }
            prop_assert_eq!(counted, total);
        }
    }
}
