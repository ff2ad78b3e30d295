//! One page over any store's rows, tombstones shown or left out; how the rows are kept is the store's business.

use super::StoreError;
use crate::feed::{
    cursor::Toc,
    item::Item,
    page::{self, Listing, ListingPlace, ListingRow, ListingRows, Page, PageQuery, Range},
    record::FeedRecord,
    stamp::Stamp,
};
use std::{cell::RefCell, ops::Bound, sync::Arc};

/// Rows that a page without tombstones looks at; then it ends, with the cursor of the last one examined.
pub(super) const SCAN_ROWS_MAX: usize = 10_000;

/// A row of a store.
pub(super) trait ListedRow: ListingRow {
    /// True for a tombstone.
    fn is_gone(&self) -> bool;
    /// The item itself, read only now.
    fn into_item(self) -> Result<Arc<Item>, StoreError>;
}

/// Answers a query over a feed's rows.
pub(super) fn page<L>(rows: L, query: &PageQuery, record: &FeedRecord) -> Result<Page, StoreError>
where
    L: Listing<Error = StoreError>,
    L::ListingRow: ListedRow,
{
    let shown = Shown { rows, live_only: query.live_only, cut: RefCell::new(None) };
    let selected = page::select(&shown, &query.ask())?;
    let cut = shown.cut.take();
    Ok(Page {
        items: selected.rows.into_iter().map(ListedRow::into_item).collect::<Result<_, _>>()?,
        more: selected.more || cut.is_some(),
        last_cursor: cut.unwrap_or(selected.last_cursor),
        record: Arc::new(record.clone()),
        degraded: selected.since_degraded.or(selected.until_degraded),
    })
}

/// The bounds of a range as stamps. Stamps are unique in a store, so nothing stands at an offset other than 0.
pub(super) fn stamps((low, high): Range) -> (Bound<Stamp>, Bound<Stamp>) {
    let low = match low {
        Bound::Included(ListingPlace { t, o: 0 }) => Bound::Included(t),
        Bound::Included(ListingPlace { t, .. }) | Bound::Excluded(ListingPlace { t, .. }) => {
            Bound::Excluded(t)
        }
        Bound::Unbounded => Bound::Unbounded,
    };
    let high = match high {
        Bound::Excluded(ListingPlace { t, o: 0 }) => Bound::Excluded(t),
        Bound::Included(ListingPlace { t, .. }) | Bound::Excluded(ListingPlace { t, .. }) => {
            Bound::Included(t)
        }
        Bound::Unbounded => Bound::Unbounded,
    };
    (low, high)
}

/// A listing that may leave tombstones out of its pages.
struct Shown<L> {
    rows: L,
    live_only: bool,
    /// The cursor of the last row examined, when the scan was cut.
    cut: RefCell<Option<String>>,
}

impl<L> Listing for Shown<L>
where
    L: Listing,
    L::ListingRow: ListedRow,
{
    type ListingRow = L::ListingRow;
    type Error = L::Error;

    fn ids_at(&self, t: Stamp) -> Result<Vec<String>, L::Error> {
        self.rows.ids_at(t)
    }

    fn place_of(&self, id: &str) -> Result<Option<ListingPlace>, L::Error> {
        self.rows.place_of(id)
    }

    fn rows<'a>(&'a self, range: Range, reverse: bool) -> Result<ListingRows<'a, Self>, L::Error> {
        self.rows.rows(range, reverse)
    }

    fn shown<'a>(&'a self, range: Range, reverse: bool) -> Result<ListingRows<'a, Self>, L::Error> {
        let mut rows = self.rows.rows(range, reverse)?;
        if !self.live_only {
            return Ok(rows);
        }
        let mut examined = 0;
        let mut last = None;
        Ok(Box::new(std::iter::from_fn(move || {
            loop {
                let row = rows.next()?;
                if examined == SCAN_ROWS_MAX {
                    *self.cut.borrow_mut() = last.take();
                    return None;
                }
                examined += 1;
                if let Ok((place, row)) = &row
                    && examined == SCAN_ROWS_MAX
                {
                    last = Toc::of(place.t, [row.id()]).map(|toc| toc.to_string());
                }
                if !row.as_ref().is_ok_and(|(_, row)| row.is_gone()) {
                    return Some(row);
                }
            }
        })))
    }
}
