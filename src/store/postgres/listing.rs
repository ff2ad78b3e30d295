//! A feed of the database along one axis, for [`page::select`](crate::feed::page::select); which
//! rows make a page is decided there. Rows come in batches, when they are asked for.

use super::{
    planned::{EVERY_SEARCH, INDEXED_ITEMS_MIN, term_column},
    rows::{self, bound},
    session::DatabaseSession,
    statement::{SqlStatement, column, moment_at, number_at, stamp_at, stamp_column},
};
use crate::{
    feed::{
        item::{Item, ItemId, KeyHash},
        moment::Moment,
        order::Axis,
        page::{Listing, ListingPlace, ListingRow, ListingRows, Numbering, Page, PageQuery, Range},
        position::Position,
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    store::{
        StoreError,
        paging::{self, IndexQuery},
        stored::{
            damaged,
            item::{ItemHeader, decode_item, item_header, weight_bytes},
        },
    },
};
use everfeed_adapters::Key;
use std::{
    cell::RefCell,
    ops::{Bound, RangeBounds as _},
    sync::Arc,
    vec,
};
use tokio_postgres::Row;

/// Rows in a batch. The first one has no more than the page.
const BATCH_ROWS: usize = 256;

/// Items of a feed up to which rows are counted: the index of a longer one is too long to be gone
/// through for a number.
// Limit: items of longer feeds in PostgreSQL have no numbers.
const NUMBERED_ITEMS_MAX: u64 = 100_000;

/// A page of a feed.
pub(super) fn page(session: &DatabaseSession, query: &PageQuery) -> Result<Page, StoreError> {
    let axis = query.order.axis;
    let first_rows = query.max.saturating_add(1).min(BATCH_ROWS);
    let wanted = wanted_rows(query, first_rows);
    let mut asked = vec![rows::record_asked(query.feed)];
    asked.extend(wanted.iter().map(|wanted| wanted.asked(query.feed, axis)));
    let mut answers = session.ask(asked)?.into_iter();
    let record = rows::record_in(query.feed, &answers.next().unwrap_or_default())?;
    let along = DatabaseListing {
        session,
        record: &record,
        axis,
        first_rows,
        fetched: RefCell::new(wanted.into_iter().zip(answers).collect()),
    };
    match paging::page(along, query, &record) {
        Err(StoreError::Damaged(what)) => Err(named(session, &record, what)),
        page => page,
    }
}

/// Damage that was met in a page, told with the item, if it is one.
fn named(session: &DatabaseSession, record: &FeedRecord, what: String) -> StoreError {
    match first_damaged(session, record.no) {
        Ok(Some(id)) => StoreError::DamagedItem {
            feed: record.name.clone(),
            id,
            what,
        },
        _ => StoreError::Damaged(what),
    }
}

/// The first item of a feed that cannot be read.
fn first_damaged(session: &DatabaseSession, feed: FeedNo) -> Result<Option<ItemId>, StoreError> {
    let sql = "SELECT t, value, id FROM items WHERE feed = $1 AND t > $2 ORDER BY t LIMIT $3";
    let mut after = Stamp::ZERO;
    loop {
        let asked = SqlStatement::new(sql).with(feed).with(after);
        let found = session.rows(asked.with(rows::limit(BATCH_ROWS)))?;
        let Some(last) = found.last() else {
            return Ok(None);
        };
        after = stamp_at(last, 0)?;
        for row in &found {
            if decode_item(stamp_at(row, 0)?, column(row, 1)?).is_err() {
                return super::statement::item_id_at(row, 2).map(Some);
            }
        }
    }
}

/// A feed along an axis.
struct DatabaseListing<'s> {
    session: &'s DatabaseSession,
    record: &'s FeedRecord,
    axis: Axis,
    first_rows: usize,
    /// Rows that were fetched with the record, until they are asked for.
    fetched: RefCell<Vec<(WantedRows, Vec<Row>)>>,
}

/// Rows between two ends, in one direction, at most so many.
#[derive(Clone, Copy, PartialEq, Eq)]
struct WantedRows {
    ends: Ends,
    reverse: bool,
    max: usize,
}

impl WantedRows {
    fn asked(&self, feed: FeedNo, axis: Axis) -> SqlStatement {
        let Self { ends, reverse, max } = *self;
        let direction = if reverse { " DESC" } else { "" };
        let asked = match axis {
            Axis::Modified | Axis::Created => {
                let by = if axis == Axis::Created {
                    "created"
                } else {
                    "t"
                };
                let sql = format!(
                    "{COLUMNS} AND {by} >= $2 AND {by} <= $3 ORDER BY {by}{direction} LIMIT $4"
                );
                SqlStatement::new(sql)
                    .with(feed)
                    .with(ends.low.0)
                    .with(ends.high.0)
            }
            Axis::Published => {
                let sql = format!(
                    "{COLUMNS} AND (listed, created) >= ($2, $3) AND (listed, created) <= ($4, $5) \
                     ORDER BY listed{direction}, created{direction} LIMIT $6"
                );
                let asked = SqlStatement::new(sql).with(feed);
                let asked = asked.with(ends.low.0).with(ends.low.1);
                asked.with(ends.high.0).with(ends.high.1)
            }
        };
        asked.with(rows::limit(max))
    }
}

/// The rows that a page will ask for, as far as they are known before the first answer: the item of
/// its cursor, those behind it, and the newest one, by which a page without items is told.
fn wanted_rows(query: &PageQuery, first_rows: usize) -> Vec<WantedRows> {
    let since = match &query.since {
        None | Some(Position::Start { .. }) => None,
        Some(Position::Cursor { toc, .. }) => Some(toc.t.micros()),
        Some(Position::Time { .. } | Position::Id(_)) => return Vec::new(),
    };
    let is_numbered = matches!(query.numbering, Numbering::From(_));
    if query.order.axis == Axis::Published || query.until.is_some() || is_numbered {
        return Vec::new();
    }
    let reverse = query.order.reverse;
    let all = Ends::between(i64::MIN, i64::MAX);
    let ends = match since {
        None => all,
        Some(at) if reverse => Ends::between(i64::MIN, at.saturating_sub(1)),
        Some(at) => Ends::between(at.saturating_add(1), i64::MAX),
    };
    let mut wanted = vec![WantedRows {
        ends,
        reverse,
        max: first_rows,
    }];
    if let Some(at) = since {
        wanted.push(WantedRows {
            ends: Ends::between(at, at),
            reverse: false,
            max: 1,
        });
        wanted.push(WantedRows {
            ends: all,
            reverse: true,
            max: 1,
        });
    }
    wanted
}

/// The columns of a row, as [`StoredRow::of`] reads them.
const COLUMNS: &str = "SELECT t, created, listed, value FROM items WHERE feed = $1";

/// An item as it is stored: read only when it is on the page.
struct StoredRow {
    t: Stamp,
    listed: Moment,
    header: ItemHeader,
    value: Vec<u8>,
}

impl StoredRow {
    fn of(row: &Row) -> Result<Self, StoreError> {
        let value: &[u8] = column(row, 3)?;
        let header = item_header(value)?;
        if header.created != stamp_at(row, 1)? {
            return Err(damaged(format!(
                "item {} says that it is of another time",
                header.id
            )));
        }
        Ok(Self {
            t: stamp_at(row, 0)?,
            listed: moment_at(row, 2)?,
            header,
            value: value.to_vec(),
        })
    }
}

/// Both ends of a range, each part of it: a value of the axis, and where several items share one the
/// first T.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ends {
    low: (i64, i64),
    high: (i64, i64),
}

impl Ends {
    fn between(low: i64, high: i64) -> Self {
        Self {
            low: (low, i64::MIN),
            high: (high, i64::MAX),
        }
    }

    /// Those of a range along an axis of stamps.
    fn of_stamps(range: Range) -> Self {
        let (low, high) = paging::stamps(range);
        let low = match low {
            Bound::Included(t) => stamp_column(t),
            Bound::Excluded(t) => stamp_column(t).saturating_add(1),
            Bound::Unbounded => i64::MIN,
        };
        let high = match high {
            Bound::Included(t) => stamp_column(t),
            Bound::Excluded(t) => stamp_column(t).saturating_sub(1),
            Bound::Unbounded => i64::MAX,
        };
        Self::between(low, high)
    }

    /// Those of a range of dates of publication, whole dates.
    fn of_dates(range: Range) -> Self {
        let end = |bound, open| match bound {
            Bound::Included(date) | Bound::Excluded(date) => Moment::micros(date),
            Bound::Unbounded => open,
        };
        let (low, high) = paging::whole_moments(range);
        Self::between(end(low, i64::MIN), end(high, i64::MAX))
    }

    /// The ends of the rest behind a row.
    fn behind(self, row: &StoredRow, axis: Axis, reverse: bool) -> Self {
        let created = stamp_column(row.header.created);
        let (at, first) = match axis {
            Axis::Modified => (stamp_column(row.t), None),
            Axis::Created => (created, None),
            Axis::Published => (row.listed.micros(), Some(created)),
        };
        match (first, reverse) {
            (Some(created), false) => Self {
                low: (at, created + 1),
                ..self
            },
            (Some(created), true) => Self {
                high: (at, created - 1),
                ..self
            },
            (None, false) => Self::between(at + 1, self.high.0),
            (None, true) => Self::between(self.low.0, at - 1),
        }
    }
}

impl DatabaseListing<'_> {
    fn feed(&self) -> FeedNo {
        self.record.no
    }

    /// Rows between two ends, no more than are wanted. True when there may be more.
    fn batch(&self, wanted: WantedRows) -> Result<(Vec<StoredRow>, bool), StoreError> {
        let mut fetched = self.fetched.borrow_mut();
        let is_same =
            |known: &WantedRows| known.ends == wanted.ends && known.reverse == wanted.reverse;
        let found = fetched.iter().position(|(known, _)| is_same(known));
        let (wanted, rows) = match found {
            Some(at) => fetched.swap_remove(at),
            None => {
                let asked = wanted.asked(self.feed(), self.axis);
                (wanted, self.session.rows(asked)?)
            }
        };
        let may_go_on = rows.len() == wanted.max;
        let rows = rows.iter().map(StoredRow::of).collect::<Result<_, _>>()?;
        Ok((rows, may_go_on))
    }

    /// All rows between two ends, in batches.
    fn between(&self, ends: Ends, reverse: bool) -> Batches<'_> {
        Batches {
            listing: self,
            reverse,
            rest: Some(ends),
            size: self.first_rows.max(1),
            batch: Vec::new().into_iter(),
        }
    }

    /// The row at a value of the axis.
    fn at(&self, stamp: Stamp) -> Result<Option<StoredRow>, StoreError> {
        let at = stamp_column(stamp);
        let (mut rows, _) = self.batch(WantedRows {
            ends: Ends::between(at, at),
            reverse: false,
            max: 1,
        })?;
        Ok(rows.pop())
    }

    /// The item with our id.
    fn by_id(&self, id: ItemId) -> Result<Option<StoredRow>, StoreError> {
        let asked = SqlStatement::new(format!("{COLUMNS} AND id = $2"));
        let row = self.session.row(asked.with(self.feed()).with(id))?;
        row.as_ref().map(StoredRow::of).transpose()
    }

    /// The item with the upstream's id.
    fn by_upstream_id(&self, id: &str) -> Result<Option<StoredRow>, StoreError> {
        let key = KeyHash::of(
            &self.record.ids.namespace,
            &Key::Id(id.to_owned()).stripped(),
        );
        match bound(self.session, self.feed(), key)? {
            Some(id) => self.by_id(id),
            None => Ok(None),
        }
    }

    /// The place of a row whose value of the axis no other row has.
    fn place(&self, row: &StoredRow) -> ListingPlace {
        match self.axis {
            Axis::Modified | Axis::Published => ListingPlace::at(row.t),
            Axis::Created => ListingPlace::at(row.header.created),
        }
    }

    /// The column of the axis, where its rows are counted.
    // Limit: dates of publication come in anywhere, and are not counted.
    fn counted_column(&self) -> Option<&'static str> {
        if self.record.items.total > NUMBERED_ITEMS_MAX {
            return None;
        }
        match self.axis {
            Axis::Modified => Some("t"),
            Axis::Created => Some("created"),
            Axis::Published => None,
        }
    }

    /// The T of the rows that the index names, in the order of the listing, no more than a scan looks
    /// at.
    fn likely_stamps(&self, query: &IndexQuery) -> Result<Vec<Stamp>, StoreError> {
        let ends = match self.axis {
            Axis::Modified | Axis::Created => Ends::of_stamps(query.range),
            Axis::Published => Ends::of_dates(query.range),
        };
        let by = match self.axis {
            Axis::Modified => "t",
            Axis::Created => "created",
            Axis::Published => "listed",
        };
        let mut sql =
            "WITH found AS MATERIALIZED (SELECT t, created, listed FROM items WHERE terms && $2"
                .to_owned();
        let every = vec![term_column(self.feed(), EVERY_SEARCH)];
        let mut asked = Vec::new();
        for (at, clause) in query.clauses.iter().enumerate() {
            sql += if at == 0 {
                " UNION SELECT t, created, listed FROM items WHERE "
            } else {
                " AND "
            };
            sql += &format!("terms && ${}", at + 6);
            let terms = clause.iter().map(|term| term_column(self.feed(), *term));
            asked.push(terms.collect::<Vec<i64>>());
        }
        if query.with_changed {
            sql += " UNION SELECT t, created, listed FROM items WHERE feed = $1 AND created < t";
        }
        let direction = if query.reverse { " DESC" } else { "" };
        sql += &format!(
            ") SELECT t FROM found WHERE {by} >= $3 AND {by} <= $4 \
             ORDER BY {by}{direction}, created{direction} LIMIT $5"
        );
        let mut statement = SqlStatement::new(sql).with(self.feed()).with(every);
        statement = statement.with(ends.low.0).with(ends.high.0);
        // One more than a scan looks at, which tells it that there are more.
        statement = statement.with(rows::limit(paging::SCAN_ROWS_MAX + 1));
        for terms in asked {
            statement = statement.with(terms);
        }
        let rows = self.session.rows(statement)?;
        rows.iter().map(|row| stamp_at(row, 0)).collect()
    }

    /// The rows at these T, in this order, each with the number of rows that share its place and
    /// stand before it.
    fn at_stamps(&self, stamps: &[Stamp]) -> Result<Vec<(u32, StoredRow)>, StoreError> {
        // Several items may be of one date.
        let offset = match self.axis {
            Axis::Modified | Axis::Created => "0::bigint",
            Axis::Published => {
                "(SELECT count(*) FROM items before WHERE before.feed = items.feed \
                 AND before.listed = items.listed AND before.created < items.created)"
            }
        };
        let sql = format!(
            "SELECT t, created, listed, value, {offset} FROM items JOIN unnest($2::bigint[]) \
             WITH ORDINALITY AS wanted (t, at) USING (t) WHERE feed = $1 ORDER BY at"
        );
        let asked = SqlStatement::new(sql).with(self.feed());
        let rows = self.session.rows(asked.with(stamps.to_vec()))?;
        let read = |row: &Row| {
            let offset = u32::try_from(number_at(row, 4)?).unwrap_or(u32::MAX);
            Ok((offset, StoredRow::of(row)?))
        };
        rows.iter().map(read).collect()
    }
}

/// Rows that are fetched when they are asked for.
struct Batches<'a> {
    listing: &'a DatabaseListing<'a>,
    reverse: bool,
    /// The rest that is not fetched yet.
    rest: Option<Ends>,
    size: usize,
    batch: vec::IntoIter<StoredRow>,
}

impl Iterator for Batches<'_> {
    type Item = Result<StoredRow, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(row) = self.batch.next() {
            return Some(Ok(row));
        }
        let ends = self.rest.take()?;
        let (reverse, max) = (self.reverse, self.size);
        let (rows, may_go_on) = match self.listing.batch(WantedRows { ends, reverse, max }) {
            Ok(batch) => batch,
            Err(error) => return Some(Err(error)),
        };
        if may_go_on {
            let behind = |last| ends.behind(last, self.listing.axis, self.reverse);
            self.rest = rows.last().map(behind);
        }
        self.size = BATCH_ROWS;
        self.batch = rows.into_iter();
        self.batch.next().map(Ok)
    }
}

/// Rows at known T, fetched when they are asked for.
struct LikelyRows<'a> {
    listing: &'a DatabaseListing<'a>,
    range: Range,
    stamps: vec::IntoIter<Stamp>,
    size: usize,
    batch: vec::IntoIter<(u32, StoredRow)>,
}

impl Iterator for LikelyRows<'_> {
    type Item = Result<(ListingPlace, StoredRow), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((offset, row)) = self.batch.next() {
                let place = match self.listing.axis {
                    Axis::Published => ListingPlace {
                        t: row.listed,
                        o: offset,
                    },
                    Axis::Modified | Axis::Created => self.listing.place(&row),
                };
                if self.range.contains(&place) {
                    return Some(Ok((place, row)));
                }
                continue;
            }
            let stamps: Vec<Stamp> = self.stamps.by_ref().take(self.size).collect();
            if stamps.is_empty() {
                return None;
            }
            self.size = BATCH_ROWS;
            match self.listing.at_stamps(&stamps) {
                Ok(rows) => self.batch = rows.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl paging::IndexedListing for DatabaseListing<'_> {
    fn rows_before(&self, place: ListingPlace) -> Result<Option<u64>, StoreError> {
        let (Some(by), Some(t)) = (self.counted_column(), place.t.stamp()) else {
            return Ok(None);
        };
        let sql = format!("SELECT count(*) FROM items WHERE feed = $1 AND {by} < $2");
        let row = self
            .session
            .row(SqlStatement::new(sql).with(self.feed()).with(t))?;
        row.map(|row| number_at(&row, 0)).transpose()
    }

    fn row_numbered(&self, number: u64) -> Result<Option<(ListingPlace, String)>, StoreError> {
        let by = self.counted_column().ok_or(StoreError::Unnumbered)?;
        let sql = format!("{COLUMNS} ORDER BY {by} OFFSET $2 LIMIT 1");
        let asked = SqlStatement::new(sql).with(self.feed());
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let row = self.session.row(asked.with(number))?;
        let row = row.as_ref().map(StoredRow::of).transpose()?;
        Ok(row.map(|row| (self.place(&row), row.id())))
    }

    fn likely(&self, query: IndexQuery) -> Result<Option<ListingRows<'_, Self>>, StoreError> {
        if self.record.items.total < INDEXED_ITEMS_MIN {
            return Ok(None);
        }
        Ok(Some(Box::new(LikelyRows {
            listing: self,
            range: query.range,
            stamps: self.likely_stamps(&query)?.into_iter(),
            size: self.first_rows.max(1),
            batch: Vec::new().into_iter(),
        })))
    }
}

impl Listing for DatabaseListing<'_> {
    type ListingRow = StoredRow;
    type Error = StoreError;

    fn ids_at(&self, place: Moment) -> Result<Vec<String>, StoreError> {
        if self.axis == Axis::Published {
            let only = Ends::between(place.micros(), place.micros());
            return self.between(only, false).map(|row| Ok(row?.id())).collect();
        }
        let Some(stamp) = place.stamp() else {
            return Ok(Vec::new());
        };
        Ok(self.at(stamp)?.iter().map(ListingRow::id).collect())
    }

    fn first_seen(&self) -> Result<Option<Moment>, StoreError> {
        let sql = "SELECT created FROM items WHERE feed = $1 ORDER BY created LIMIT 1";
        let row = self.session.row(SqlStatement::new(sql).with(self.feed()))?;
        row.map(|row| Ok(stamp_at(&row, 0)?.into())).transpose()
    }

    fn place_of(&self, id: &str) -> Result<Option<ListingPlace>, StoreError> {
        let ours = match id.parse() {
            Ok(id) => self.by_id(id)?,
            Err(_) => None,
        };
        let row = match ours {
            Some(row) => Some(row),
            None => self.by_upstream_id(id)?,
        };
        // In the order of publication an id is no position (SF-27).
        Ok(row.map(|row| self.place(&row)))
    }

    fn rows<'a>(
        &'a self,
        range: Range,
        reverse: bool,
    ) -> Result<ListingRows<'a, Self>, StoreError> {
        if self.axis == Axis::Published {
            let rows = self.between(Ends::of_dates(range), reverse);
            let dated = rows.map(|row| row.map(|row| (row.listed, row)));
            return Ok(Box::new(paging::placed(dated, range, reverse)));
        }
        let rows = self.between(Ends::of_stamps(range), reverse);
        Ok(Box::new(rows.map(|row| {
            let row = row?;
            Ok((self.place(&row), row))
        })))
    }
}

impl ListingRow for StoredRow {
    fn id(&self) -> String {
        self.header.id.to_string()
    }

    fn weight_bytes(&self) -> usize {
        weight_bytes(&self.value)
    }
}

impl paging::ListedRow for StoredRow {
    fn is_gone(&self) -> bool {
        self.header.gone
    }

    fn item(&self) -> Result<Arc<Item>, StoreError> {
        decode_item(self.t, &self.value).map(Arc::new)
    }
}
