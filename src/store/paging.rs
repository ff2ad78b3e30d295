//! One page over any store's rows, those that its filter hides left out; how the rows are kept is
//! the store's business.

use super::StoreError;
use crate::feed::{
    cursor::{self, Toc},
    filter::{self, Filter, index_terms::IndexClause},
    item::Item,
    moment::Moment,
    order::{Axis, Order},
    page::{
        self, Listing, ListingPosition, ListingRow, ListingRows, Numbering, Page, PageQuery, Range,
    },
    position::Position,
    record::FeedRecord,
    stamp::Stamp,
};
use crate::mistakes::{Mistake, is_made};
use std::{
    cell::RefCell,
    ops::{Bound, RangeBounds as _},
    sync::Arc,
};

/// Rows that a page with a filter looks at; then it ends, with the cursor of the last one examined.
// Limit: where a filter hides more rows in a row, a page is empty, and a reader asks again.
pub(super) const SCAN_ROWS_MAX: usize = 10_000;
/// Bytes of the rows that a page with terms looks at; then it ends likewise.
const SCAN_BYTES_MAX: usize = 32 << 20;
/// Rows of a feed at most whose items are counted under terms.
// Limit: of a longer feed a page with a filter tells no total.
pub const COUNT_ROWS_MAX: u64 = 10_000;
/// Bytes that the stub of an item that is not in a view counts for in the budget of its page.
const STUB_BYTES: usize = 512;

/// A row of a store.
pub(super) trait ListedRow: ListingRow {
    /// True for a tombstone.
    fn is_gone(&self) -> bool;
    /// The item itself, read only now.
    fn item(&self) -> Result<Arc<Item>, StoreError>;
}

/// A listing whose store may know in which rows to look, and what their numbers are.
pub(super) trait IndexedListing: Listing<Error = StoreError> {
    /// The count of rows before a place, in ascending order; `None` where it is not known.
    fn rows_before(&self, place: ListingPosition) -> Result<Option<u64>, StoreError>;

    /// The place and the id of the row that so many stand before; `None` for one beyond the last.
    ///
    /// # Errors
    /// `Unnumbered` where rows are not counted.
    fn row_numbered(&self, number: u64) -> Result<Option<(ListingPosition, String)>, StoreError>;

    /// The rows that a question is for; `None` where no index tells.
    fn likely(&self, _query: IndexQuery) -> Result<Option<ListingRows<'_, Self>>, StoreError> {
        Ok(None)
    }
}

/// A question for the rows of a range that may meet the clauses of a filter.
pub(super) struct IndexQuery {
    pub(super) clauses: Vec<IndexClause>,
    pub(super) range: Range,
    /// True when the rows come from the end of the range.
    pub(super) reverse: bool,
    /// True when those that were changed are wanted, too.
    pub(super) with_changed: bool,
}

// Decides: How far does a page with a filter look?
/// Answers a query over a feed's rows.
pub(super) fn page<L>(rows: L, query: &PageQuery, record: &FeedRecord) -> Result<Page, StoreError>
where
    L: IndexedListing,
    L::ListingRow: ListedRow,
{
    let shown = Shown {
        rows,
        filter: &query.filter,
        record,
        order: query.view_order(),
        end: RefCell::default(),
    };
    let start = shown.numbered_start(query)?;
    let mut ask = query.ask();
    ask.since = start.as_ref().or(ask.since);
    let selected = page::select(&shown, &ask)?;
    let index = shown.number_of(selected.first, query.numbering)?;
    let ScanEnd { cut, scanned } = shown.end.take();
    let total = match &query.filter {
        Filter::All => Some(record.items.total),
        Filter::Live => Some(record.items.live),
        Filter::Terms(_) if query.with_total && record.items.total <= COUNT_ROWS_MAX => {
            shown.count()?
        }
        Filter::Terms(_) => None,
    };
    let is_further = |scanned: &String| cut.is_none() && *scanned != selected.last_cursor;
    Ok(Page {
        items: selected
            .rows
            .into_iter()
            .map(ShownRow::into_item)
            .collect::<Result<_, _>>()?,
        more: selected.more || cut.is_some(),
        total,
        index,
        scanned: scanned.filter(is_further),
        last_cursor: cut.unwrap_or(selected.last_cursor),
        record: Arc::new(record.clone()),
        degraded: selected.since_degraded.or(selected.until_degraded),
    })
}

/// The bounds of a range as stamps. Stamps are unique in a store, so nothing stands at an offset
/// other than 0; and nothing before 1970.
pub(super) fn stamps((low, high): Range) -> (Bound<Stamp>, Bound<Stamp>) {
    let first = Bound::Included(Stamp::ZERO);
    let low = match low {
        Bound::Included(ListingPosition { t, o: 0 }) => t.stamp().map_or(first, Bound::Included),
        Bound::Included(ListingPosition { t, .. }) | Bound::Excluded(ListingPosition { t, .. }) => {
            t.stamp().map_or(first, Bound::Excluded)
        }
        Bound::Unbounded => Bound::Unbounded,
    };
    let none = Bound::Excluded(Stamp::ZERO);
    let high = match high {
        Bound::Excluded(ListingPosition { t, o: 0 }) => t.stamp().map_or(none, Bound::Excluded),
        Bound::Included(ListingPosition { t, .. }) | Bound::Excluded(ListingPosition { t, .. }) => {
            t.stamp().map_or(none, Bound::Included)
        }
        Bound::Unbounded => Bound::Unbounded,
    };
    (low, high)
}

/// The bounds of a range whose places hold several items each: all items at a place that it cuts
/// are in it.
pub(super) fn whole_moments((low, high): Range) -> (Bound<Moment>, Bound<Moment>) {
    let whole = |bound: Bound<ListingPosition>| match bound {
        Bound::Included(place) | Bound::Excluded(place) => Bound::Included(place.t),
        Bound::Unbounded => Bound::Unbounded,
    };
    (whole(low), whole(high))
}

/// Rows with the places in which they stand, those in a range. They come in the direction of the
/// listing, with every row of each stamp (see [`whole_moments`]), because an offset is the number
/// of rows before.
pub(super) fn placed<'a, T: 'a>(
    rows: impl Iterator<Item = Result<(Moment, T), StoreError>> + 'a,
    range: Range,
    reverse: bool,
) -> impl Iterator<Item = Result<(ListingPosition, T), StoreError>> + 'a {
    let mut rows = rows.peekable();
    let mut group = Vec::new().into_iter();
    let of_one_stamp = std::iter::from_fn(move || {
        loop {
            if let Some(row) = group.next() {
                return Some(Ok(row));
            }
            let (t, first) = match rows.next()? {
                Ok(row) => row,
                Err(error) => return Some(Err(error)),
            };
            let mut shared = vec![first];
            while let Some(Ok((_, row))) =
                rows.next_if(|row| row.as_ref().is_ok_and(|(next, _)| *next == t))
            {
                shared.push(row);
            }
            let last = u32::try_from(shared.len() - 1).unwrap_or(u32::MAX);
            let offset = |at: u32| if reverse { last - at } else { at };
            let place = |(at, row)| (ListingPosition { t, o: offset(at) }, row);
            let places: Vec<_> = (0..=last).zip(shared).map(place).collect();
            group = places.into_iter();
        }
    });
    of_one_stamp.filter(move |row| {
        row.as_ref()
            .map_or(true, |(place, _)| range.contains(place))
    })
}

/// A listing whose pages show what a filter shows.
struct Shown<'a, L> {
    rows: L,
    filter: &'a Filter,
    record: &'a FeedRecord,
    /// The order of the view, which says what becomes of changed items that do not meet the terms.
    order: Order,
    end: RefCell<ScanEnd>,
}

/// End of a scan.
#[derive(Default)]
struct ScanEnd {
    /// The cursor of the last row examined, when the scan was cut.
    cut: Option<String>,
    /// The same when there was nothing more to examine.
    scanned: Option<String>,
}

/// The rows that a scan looks at.
struct Candidates<'a, L: Listing> {
    rows: ListingRows<'a, L>,
    /// True where an index told them, and they are not all of the range.
    is_likely: bool,
}

/// A row that is shown.
enum ShownRow<R> {
    /// As it is stored.
    Stored(R),
    /// Read already, because its content decided.
    Read(R, Arc<Item>),
    /// The item has left the view.
    Left(R, Box<Item>),
}

impl<R: ListedRow> ShownRow<R> {
    fn row(&self) -> &R {
        match self {
            Self::Stored(row) | Self::Read(row, _) | Self::Left(row, _) => row,
        }
    }

    fn into_item(self) -> Result<Arc<Item>, StoreError> {
        match self {
            Self::Stored(row) => row.item(),
            Self::Read(_, item) => Ok(item),
            Self::Left(_, stub) => Ok(Arc::new(*stub)),
        }
    }
}

impl<R: ListedRow> ListingRow for ShownRow<R> {
    fn id(&self) -> String {
        self.row().id()
    }

    fn weight_bytes(&self) -> usize {
        match self {
            Self::Stored(row) | Self::Read(row, _) => row.weight_bytes(),
            Self::Left(..) => STUB_BYTES,
        }
    }
}

impl<L> Shown<'_, L>
where
    L: IndexedListing,
    L::ListingRow: ListedRow,
{
    /// The row as it is shown; `None` when it is not.
    fn shown_row(&self, row: L::ListingRow) -> Result<Option<ShownRow<L::ListingRow>>, StoreError> {
        match self.filter {
            Filter::All => Ok(Some(ShownRow::Stored(row))),
            Filter::Live if row.is_gone() => Ok(None),
            Filter::Live => Ok(Some(ShownRow::Stored(row))),
            Filter::Terms(_) => {
                let item = row.item()?;
                if self.filter.shows(&item, self.record) {
                    return Ok(Some(ShownRow::Read(row, item)));
                }
                if is_made(Mistake::LeftViewUntold)
                    || self.filter.leaves_out(&item)
                    || !self.filter.shows_as_left(&item, self.order)
                {
                    return Ok(None);
                }
                let stub = Box::new(filter::left_view(&item));
                Ok(Some(ShownRow::Left(row, stub)))
            }
        }
    }

    /// The position before the item with whose number a page is to begin; `None` where it begins
    /// elsewhere.
    fn numbered_start(&self, query: &PageQuery) -> Result<Option<Position>, StoreError> {
        let Numbering::From(number) = query.numbering else {
            return Ok(None);
        };
        if *self.filter != Filter::All {
            return Err(StoreError::Unnumbered);
        }
        let total = self.record.items.total;
        // The one before it in list order; of a page beyond the end, the last.
        let Some(before) = number.min(total).checked_sub(1) else {
            // Tells by its error that there are no numbers.
            self.rows.row_numbered(0)?;
            return Ok(Some(Position::Start { degraded: false }));
        };
        let ascending = if self.order.reverse {
            total - 1 - before
        } else {
            before
        };
        let row = self.rows.row_numbered(ascending)?;
        let (place, id) = row.ok_or(StoreError::Unnumbered)?;
        let toc = Toc::of(place.t, [id]).ok_or(StoreError::Unnumbered)?;
        Ok(Some(Position::Cursor {
            toc: toc.marked(self.cursor_mark()),
            canonical: true,
        }))
    }

    /// The number of the item at a place, where it is to be told.
    fn number_of(
        &self,
        place: Option<ListingPosition>,
        numbering: Numbering,
    ) -> Result<Option<u64>, StoreError> {
        let (Some(place), Filter::All) = (place, self.filter) else {
            return Ok(None);
        };
        match numbering {
            Numbering::None => Ok(None),
            Numbering::From(number) => Ok(Some(number)),
            Numbering::Told => {
                let before = self.rows.rows_before(place)?;
                Ok(before.and_then(|before| match self.order.reverse {
                    true => self.record.items.total.checked_sub(before + 1),
                    false => Some(before),
                }))
            }
        }
    }

    /// Number of items that are shown, those that have left aside.
    fn count(&self) -> Result<Option<u64>, StoreError> {
        let mut count = 0;
        let mut bytes = 0_usize;
        let whole = (Bound::Unbounded, Bound::Unbounded);
        for row in self.candidates(whole, false, false)?.rows {
            let (_, row) = row?;
            bytes = bytes.saturating_add(row.weight_bytes());
            if bytes > SCAN_BYTES_MAX {
                return Ok(None);
            }
            count += u64::from(self.filter.shows(&*row.item()?, self.record));
        }
        Ok(Some(count))
    }

    /// The rows of a range that may meet the filter, in one direction, and those that were changed
    /// if they are wanted.
    fn candidates(
        &self,
        range: Range,
        reverse: bool,
        with_changed: bool,
    ) -> Result<Candidates<'_, L>, StoreError> {
        let clauses = self.filter.index_clauses();
        if !clauses.is_empty() {
            let query = IndexQuery {
                clauses,
                range,
                reverse,
                with_changed,
            };
            if let Some(rows) = self.rows.likely(query)? {
                let is_likely = true;
                return Ok(Candidates { rows, is_likely });
            }
        }
        Ok(Candidates {
            rows: self.rows.rows(range, reverse)?,
            is_likely: false,
        })
    }

    /// The last row of a range, for the cursor of what was passed over.
    fn last_of(
        &self,
        range: Range,
        reverse: bool,
    ) -> Result<Option<(ListingPosition, String)>, StoreError> {
        let last = self.rows.rows(range, !reverse)?.next().transpose()?;
        Ok(last.map(|(place, row)| (place, row.id())))
    }

    /// The cursor of the last row examined, if any was.
    fn cursor_of(
        &self,
        last: Option<(ListingPosition, String)>,
    ) -> Result<Option<String>, StoreError> {
        last.map(|(place, id)| page::cursor_at(self, place, id))
            .transpose()
    }

    /// The rows of a range that are shown, until too many were examined.
    fn scan<'a>(
        &'a self,
        range: Range,
        reverse: bool,
        candidates: Candidates<'a, L>,
    ) -> impl Iterator<Item = Result<(ListingPosition, ShownRow<L::ListingRow>), StoreError>> + 'a
    {
        let Candidates {
            mut rows,
            is_likely,
        } = candidates;
        let (mut examined, mut bytes) = (0, 0_usize);
        let mut last: Option<(ListingPosition, String)> = None;
        std::iter::from_fn(move || {
            loop {
                let Some(row) = rows.next() else {
                    let end = if is_likely {
                        self.last_of(range, reverse)
                    } else {
                        Ok(last.take())
                    };
                    return match end.and_then(|last| self.cursor_of(last)) {
                        Ok(cursor) => {
                            self.end.borrow_mut().scanned = cursor;
                            None
                        }
                        Err(error) => Some(Err(error)),
                    };
                };
                if examined >= SCAN_ROWS_MAX || bytes >= SCAN_BYTES_MAX {
                    return match self.cursor_of(last.take()) {
                        Ok(cursor) => {
                            self.end.borrow_mut().cut = cursor;
                            None
                        }
                        Err(error) => Some(Err(error)),
                    };
                }
                let (place, row) = match row {
                    Ok(row) => row,
                    Err(error) => return Some(Err(error)),
                };
                examined += 1;
                if self.filter.has_terms() {
                    bytes = bytes.saturating_add(row.weight_bytes());
                }
                last = Some((place, row.id()));
                match self.shown_row(row) {
                    Ok(None) => {}
                    Ok(Some(shown)) => return Some(Ok((place, shown))),
                    Err(error) => return Some(Err(error)),
                }
            }
        })
    }
}

impl<L> Listing for Shown<'_, L>
where
    L: IndexedListing,
    L::ListingRow: ListedRow,
{
    type ListingRow = ShownRow<L::ListingRow>;
    type Error = StoreError;

    fn ids_at(&self, t: Moment) -> Result<Vec<String>, StoreError> {
        self.rows.ids_at(t)
    }

    fn cursor_mark(&self) -> u32 {
        // By date of publication several items stand at one place, and O tells them apart.
        if self.order.axis == Axis::Published {
            0
        } else {
            self.record.cursor_mark()
        }
    }

    fn generation_mark(&self) -> u32 {
        if self.order.axis == Axis::Published {
            cursor::generation_mark(self.record.lineage.generation())
        } else {
            0
        }
    }

    fn is_ahead(&self, t: Moment, generation: u32) -> bool {
        // Dates of publication are the publisher's, and may be of any time.
        if self.order.axis == Axis::Published {
            generation != self.generation_mark()
        } else {
            self.record.is_ahead(t)
        }
    }

    fn first_seen(&self) -> Result<Option<Moment>, StoreError> {
        self.rows.first_seen()
    }

    fn place_of(&self, id: &str) -> Result<Option<ListingPosition>, StoreError> {
        self.rows.place_of(id)
    }

    fn rows<'a>(
        &'a self,
        range: Range,
        reverse: bool,
    ) -> Result<ListingRows<'a, Self>, StoreError> {
        let rows = self.rows.rows(range, reverse)?;
        Ok(Box::new(rows.map(|row| {
            row.map(|(place, row)| (place, ShownRow::Stored(row)))
        })))
    }

    fn shown<'a>(
        &'a self,
        range: Range,
        reverse: bool,
    ) -> Result<ListingRows<'a, Self>, StoreError> {
        match self.filter {
            Filter::All => self.rows(range, reverse),
            Filter::Live | Filter::Terms(_) => {
                let with_changed = self.order == Order::MODIFIED;
                let candidates = self.candidates(range, reverse, with_changed)?;
                Ok(Box::new(self.scan(range, reverse, candidates)))
            }
        }
    }
}
