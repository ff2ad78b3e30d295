//! A feed along one axis, for [`page::select`](crate::feed::page::select); which rows
//! make a page is decided there.

use super::{
    counted::{self, CountedAxis},
    open_table::{Row, RowValue, Rows, TableSource as _},
    reads,
    tables::{
        COUNTED, CREATED, FEEDS, IDS, ITEMS, KEYS, PUBLISHED, PublishedKey, SEGMENTS, StampKey,
        feed_key, hash_key, id_key, item_id_of, listed_of, published_key, stamp_key, stamp_of,
    },
    word_index::WordIndex,
};
use crate::{
    feed::{
        filter::Filter,
        item::{Item, ItemId, KeyHash},
        moment::Moment,
        order::Axis,
        page::{
            Listing, ListingPosition, ListingRow, ListingRows, Numbering, Page, PageQuery, Range,
        },
        position::Position,
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    store::{
        StoreError,
        engine::{NamedRows, RowPart, RowReader},
        paging,
        stored::{
            damaged,
            item::{ItemHeader, decode_item, item_header, weight_bytes},
        },
    },
};
use everfeed_adapters::Key;
use search::Search;
use std::{ops::Bound, sync::Arc};

mod search;

/// A page of a snapshot.
pub(in crate::store) fn page(
    snapshot: &dyn RowReader,
    query: &PageQuery,
) -> Result<Page, StoreError> {
    snapshot.name(|| named(query))?;
    let record = reads::record(snapshot, query.feed)?;
    let along = RowListing {
        snapshot,
        record: &record,
        items: snapshot.table(ITEMS)?,
        along: match query.order.axis {
            Axis::Modified => Along::Modified,
            Axis::Created => Along::Created(snapshot.table(CREATED)?),
            Axis::Published => Along::Published(snapshot.table(PUBLISHED)?),
        },
    };
    paging::page(along, query, &record)
}

/// Rows that are named for a page at most.
const NAMED_ROWS_MAX: usize = 1_000;

/// The rows that a page reads, as far as its question tells them.
fn named(query: &PageQuery) -> Vec<NamedRows> {
    let feed = query.feed;
    let key = feed_key(feed);
    let mut named = vec![FEEDS.named(&key)];
    if matches!(query.filter, Filter::Terms(_)) {
        named.push(SEGMENTS.named_first(&key, NAMED_ROWS_MAX));
        return named;
    }
    if matches!(query.numbering, Numbering::From(_)) {
        return named;
    }
    let rows_max = query.max.saturating_add(2).min(NAMED_ROWS_MAX);
    let reverse = query.order.reverse;
    let (mut low, mut high) = (Moment::MIN, Moment::MAX);
    let begin = match &query.since {
        Some(Position::Cursor { toc, .. }) => Some((toc.t, toc.t)),
        Some(Position::Time { span, .. }) => Some((
            Moment::from_micros(span.low_us),
            Moment::from_micros(span.high_us),
        )),
        _ => None,
    };
    match begin {
        Some((_, last)) if reverse => high = last,
        Some((first, _)) => low = first,
        None => {}
    }
    let stamp = |moment: Moment, open| match moment {
        Moment::MIN | Moment::MAX => open,
        moment => moment.stamp().unwrap_or_default(),
    };
    let (first, last) = (stamp(low, Stamp::ZERO), stamp(high, Stamp::MAX));
    let (first, last) = (stamp_key(feed, first), stamp_key(feed, last));
    let items = |rows: NamedRows| rows.via(ITEMS.of_engine(), &key, RowPart::Value);
    if reverse && begin.is_some() {
        // Behind the last item of a list the cursor of the newest is asked for.
        named.push(match query.order.axis {
            Axis::Modified => ITEMS.named_last(&key, 1),
            Axis::Created => items(CREATED.named_last(&key, 1)),
            Axis::Published => items(PUBLISHED.named_last(&key, 1)),
        });
    }
    named.push(match query.order.axis {
        Axis::Modified => ITEMS.named_range(&first, &last, reverse, rows_max),
        Axis::Created => items(CREATED.named_range(&first, &last, reverse, rows_max)),
        Axis::Published => {
            let first = published_key(feed, low, Stamp::ZERO);
            let last = published_key(feed, high, Stamp::MAX);
            items(PUBLISHED.named_range(&first, &last, reverse, rows_max))
        }
    });
    if query.numbering == Numbering::Told {
        named.push(COUNTED.named_first(&key, NAMED_ROWS_MAX));
    }
    named
}

type ByStamp<'s> = Rows<'s, StampKey>;

type ByPublication<'s> = Rows<'s, PublishedKey>;

/// Bounds of dates of publication.
type Dates = (Bound<Moment>, Bound<Moment>);

/// Place of an item that was found by its date of publication.
struct Publication {
    /// Its first T.
    created: Stamp,
    /// Its T.
    t: Stamp,
}

/// A feed along an axis.
struct RowListing<'a> {
    snapshot: &'a dyn RowReader,
    record: &'a FeedRecord,
    items: ByStamp<'a>,
    along: Along<'a>,
}

/// The table of an axis; that of T is the items themselves.
enum Along<'a> {
    Modified,
    Created(ByStamp<'a>),
    Published(ByPublication<'a>),
}

impl RowListing<'_> {
    fn feed(&self) -> FeedNo {
        self.record.no
    }

    /// Names the items at these T.
    fn name_items(&self, stamps: impl Iterator<Item = Stamp>) -> Result<(), StoreError> {
        self.snapshot.name(|| {
            let keys: Vec<_> = stamps.map(|t| stamp_key(self.feed(), t)).collect();
            vec![ITEMS.named_all(&keys)]
        })
    }

    /// Names the items with these first T.
    fn name_created(&self, stamps: impl Iterator<Item = Stamp>) -> Result<(), StoreError> {
        self.snapshot.name(|| {
            let keys: Vec<_> = stamps.map(|t| stamp_key(self.feed(), t)).collect();
            let created = CREATED.named_all(&keys);
            let feed = feed_key(self.feed());
            vec![created.via(ITEMS.of_engine(), &feed, RowPart::Value)]
        })
    }

    /// The row at T.
    fn at(&self, t: Stamp) -> Result<Option<Raw>, StoreError> {
        let value = self.items.get(&stamp_key(self.feed(), t))?;
        value.map(|value| Raw::new(t, value)).transpose()
    }

    /// The rows of a range by T, whatever the axis.
    fn by_t(&self, range: Range, reverse: bool) -> Result<ListingRows<'_, Self>, StoreError> {
        let (low, high) = keys(self.feed(), range);
        let rows = self.items.range((low.as_ref(), high.as_ref()));
        Ok(directed(rows.map(modified_row), reverse))
    }

    /// The row at T, which was created at `c`: a row of `created` never points into the void.
    fn created_at(&self, c: Stamp, t: Stamp) -> Result<Raw, StoreError> {
        let found = self.at(t)?.filter(|row| row.header.created == c);
        found.ok_or_else(|| damaged(format!("the item created at {c} is not at {t}")))
    }

    fn created_row(&self, found: Found) -> Result<(ListingPosition, Raw), StoreError> {
        let (key, t) = found?;
        let c = stamp_of(key.value());
        let row = self.created_at(c, stamp_of(t.value()))?;
        Ok((ListingPosition::at(c), row))
    }

    fn published_row(
        &self,
        found: Result<(ListingPosition, Publication), StoreError>,
    ) -> Result<(ListingPosition, Raw), StoreError> {
        let (place, Publication { created, t }) = found?;
        Ok((place, self.created_at(created, t)?))
    }

    /// The rows by date of publication in a range of dates.
    fn published<'t>(
        &self,
        table: &'t ByPublication<'_>,
        dates: Dates,
    ) -> Result<
        impl DoubleEndedIterator<Item = Result<(Moment, Publication), StoreError>> + use<'t>,
        StoreError,
    > {
        let end = |bound, open, created| match bound {
            Bound::Included(listed) | Bound::Excluded(listed) => {
                published_key(self.feed(), listed, created)
            }
            Bound::Unbounded => published_key(self.feed(), open, created),
        };
        let first = end(dates.0, Moment::MIN, Stamp::ZERO);
        let last = end(dates.1, Moment::MAX, Stamp::MAX);
        let rows = table.range(&first..=&last);
        Ok(rows.map(|row| {
            let (key, t) = row?;
            let (listed, created) = listed_of(key.value());
            let t = stamp_of(t.value());
            Ok((listed, Publication { created, t }))
        }))
    }

    /// The item with our id.
    fn by_id(&self, id: ItemId) -> Result<Option<Raw>, StoreError> {
        let ids = self.snapshot.table(IDS)?;
        let t = match ids.get(&id_key(self.feed(), id))? {
            Some(t) => stamp_of(t.value()),
            None => return Ok(None),
        };
        match self.at(t)? {
            Some(row) if row.header.id == id => Ok(Some(row)),
            _ => Err(damaged(format!("item {id} is not at {t}"))),
        }
    }

    /// The item with the upstream's id.
    fn by_upstream_id(&self, id: &str) -> Result<Option<Raw>, StoreError> {
        let key = KeyHash::of(
            &self.record.ids.namespace,
            &Key::Id(id.to_owned()).stripped(),
        );
        let keys = self.snapshot.table(KEYS)?;
        match keys.get(&hash_key(self.feed(), key))? {
            Some(id) => self.by_id(item_id_of(id.value())?),
            None => Ok(None),
        }
    }
}

impl RowListing<'_> {
    /// The axis along which rows are counted.
    fn counted_axis(&self) -> Option<CountedAxis> {
        match self.along {
            Along::Modified => Some(CountedAxis::Modified),
            Along::Created(_) => Some(CountedAxis::Created),
            // Limit: dates of publication come in anywhere, and are not counted.
            Along::Published(_) => None,
        }
    }

    /// The rows of a range along the counted axis, as they are stored.
    fn stored_rows(&self, range: Range) -> impl DoubleEndedIterator<Item = Found> {
        let (low, high) = keys(self.feed(), range);
        let table = match &self.along {
            Along::Created(created) => created,
            Along::Modified | Along::Published(_) => &self.items,
        };
        table.range((low.as_ref(), high.as_ref()))
    }
}

impl paging::IndexedListing for RowListing<'_> {
    fn rows_before(&self, place: ListingPosition) -> Result<Option<u64>, StoreError> {
        let (Some(axis), Some(t)) = (self.counted_axis(), place.t.stamp()) else {
            return Ok(None);
        };
        let start = counted::last_stretch(self.snapshot, self.record, axis, |it| it.first <= t)?;
        let Some(start) = start else {
            return Ok(None);
        };
        let from = ListingPosition::at(start.first);
        let mut rows = start.before;
        for row in self.stored_rows((Bound::Included(from), Bound::Excluded(place))) {
            row?;
            rows += 1;
        }
        Ok(Some(rows))
    }

    fn row_numbered(&self, number: u64) -> Result<Option<(ListingPosition, String)>, StoreError> {
        let axis = self.counted_axis().ok_or(StoreError::Unnumbered)?;
        let start =
            counted::last_stretch(self.snapshot, self.record, axis, |it| it.before <= number)?;
        let start = start.ok_or(StoreError::Unnumbered)?;
        let from = ListingPosition::at(start.first);
        let skipped = usize::try_from(number - start.before).unwrap_or(usize::MAX);
        let mut rows = self.stored_rows((Bound::Included(from), Bound::Unbounded));
        let Some(found) = rows.nth(skipped) else {
            return Ok(None);
        };
        let (place, row) = match axis {
            CountedAxis::Modified => modified_row(found)?,
            CountedAxis::Created => self.created_row(found)?,
        };
        Ok(Some((place, row.id())))
    }

    fn likely(
        &self,
        query: paging::IndexQuery,
    ) -> Result<Option<ListingRows<'_, Self>>, StoreError> {
        let Some(index) = WordIndex::of(self.snapshot, self.feed())? else {
            return Ok(None);
        };
        let search = Search {
            listing: self,
            index,
            query,
        };
        Ok(match &self.along {
            Along::Modified => Some(search.by_modified()?),
            Along::Created(created) => Some(search.by_created(created)),
            Along::Published(published) => search.by_published(published)?,
        })
    }
}

impl Listing for RowListing<'_> {
    type ListingRow = Raw;
    type Error = StoreError;

    fn ids_at(&self, place: Moment) -> Result<Vec<String>, StoreError> {
        let row = match (&self.along, place.stamp()) {
            (Along::Modified, Some(stamp)) => self.at(stamp)?,
            (Along::Created(created), Some(stamp)) => {
                match created.get(&stamp_key(self.feed(), stamp))? {
                    Some(t) => Some(self.created_at(stamp, stamp_of(t.value()))?),
                    None => None,
                }
            }
            (Along::Modified | Along::Created(_), None) => None,
            (Along::Published(published), _) => {
                let only = (Bound::Included(place), Bound::Included(place));
                let mut ids = Vec::new();
                for row in self.published(published, only)? {
                    let (_, Publication { created, t }) = row?;
                    ids.push(self.created_at(created, t)?.id());
                }
                return Ok(ids);
            }
        };
        Ok(row.iter().map(ListingRow::id).collect())
    }

    fn first_seen(&self) -> Result<Option<Moment>, StoreError> {
        let created = self.snapshot.table(CREATED)?;
        let first = created.first_row(&feed_key(self.feed()))?;
        Ok(first.map(|(created, _)| stamp_of(created.value()).into()))
    }

    fn place_of(&self, id: &str) -> Result<Option<ListingPosition>, StoreError> {
        let ours = match id.parse() {
            Ok(id) => self.by_id(id)?,
            Err(_) => None,
        };
        let row = match ours {
            Some(row) => Some(row),
            None => self.by_upstream_id(id)?,
        };
        // In the order of publication an id is no position (SF-27).
        Ok(row.map(|row| match self.along {
            Along::Created(_) => ListingPosition::at(row.header.created),
            Along::Modified | Along::Published(_) => ListingPosition::at(row.t),
        }))
    }

    fn rows<'a>(
        &'a self,
        range: Range,
        reverse: bool,
    ) -> Result<ListingRows<'a, Self>, StoreError> {
        Ok(match &self.along {
            Along::Modified => self.by_t(range, reverse)?,
            Along::Created(created) => {
                let (low, high) = keys(self.feed(), range);
                let rows = created.range((low.as_ref(), high.as_ref()));
                directed(rows.map(|found| self.created_row(found)), reverse)
            }
            Along::Published(published) => {
                let rows = self.published(published, paging::whole_moments(range))?;
                let rows = paging::placed(directed(rows, reverse), range, reverse);
                Box::new(rows.map(|found| self.published_row(found)))
            }
        })
    }
}

/// A row of a range of a table.
type Found = Result<Row<StampKey>, StoreError>;

fn modified_row(found: Found) -> Result<(ListingPosition, Raw), StoreError> {
    let (key, value) = found?;
    let t = stamp_of(key.value());
    Ok((ListingPosition::at(t), Raw::new(t, value)?))
}

/// A range is read from either end.
fn directed<'a, T>(
    rows: impl DoubleEndedIterator<Item = T> + 'a,
    reverse: bool,
) -> Box<dyn Iterator<Item = T> + 'a> {
    if reverse {
        Box::new(rows.rev())
    } else {
        Box::new(rows)
    }
}

/// The keys of a range; one that is open ends with the feed.
fn keys(feed: FeedNo, range: Range) -> (Bound<StampKey>, Bound<StampKey>) {
    let (low, high) = paging::stamps(range);
    let end = |bound: Bound<Stamp>, open| match bound {
        Bound::Unbounded => Bound::Included(stamp_key(feed, open)),
        bound => bound.map(|stamp| stamp_key(feed, stamp)),
    };
    (end(low, Stamp::ZERO), end(high, Stamp::MAX))
}

/// An item as it is stored: read only when it is on the page.
struct Raw {
    t: Stamp,
    header: ItemHeader,
    value: RowValue,
}

impl Raw {
    fn new(t: Stamp, value: RowValue) -> Result<Self, StoreError> {
        Ok(Self {
            t,
            header: item_header(value.value())?,
            value,
        })
    }
}

impl ListingRow for Raw {
    fn id(&self) -> String {
        self.header.id.to_string()
    }

    fn weight_bytes(&self) -> usize {
        weight_bytes(self.value.value())
    }
}

impl paging::ListedRow for Raw {
    fn is_gone(&self) -> bool {
        self.header.gone
    }

    fn item(&self) -> Result<Arc<Item>, StoreError> {
        decode_item(self.t, self.value.value()).map(Arc::new)
    }
}
