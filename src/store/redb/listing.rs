//! A feed of the file along one axis, for [`page::select`](crate::feed::page::select); which rows
//! make a page is decided there.

use super::{
    rows,
    sealed::{Coded, Row, Sealed, Unsealed},
    tables::{
        CREATED, IDS, ITEMS, KEYS, PUBLISHED, PublishedKey, StampKey, hash_key, id_key, item_id_of,
        listed_of, published_key, snapshot_table, stamp_key, stamp_of,
    },
    word_index::WordIndex,
};
use crate::{
    feed::{
        filter::index_terms::IndexClause,
        item::{Item, ItemId, KeyHash},
        item_cap::escaped_bytes,
        moment::Moment,
        order::Axis,
        page::{Listing, ListingPlace, ListingRow, ListingRows, Page, PageQuery, Range},
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    store::{
        StoreError, paging,
        stored::{
            damaged,
            item::{ItemHeader, decode_item, item_header},
        },
    },
};
use everfeed_adapters::Key;
use redb::{ReadOnlyTable, ReadTransaction};
use search::Search;
use std::{ops::Bound, sync::Arc};

mod search;

/// A page of a snapshot.
pub(super) fn page(snapshot: &ReadTransaction, query: &PageQuery) -> Result<Page, StoreError> {
    let record = rows::record(snapshot, query.feed)?;
    let along = FileListing {
        snapshot,
        record: &record,
        items: snapshot_table(snapshot, ITEMS)?,
        along: match query.order.axis {
            Axis::Modified => Along::Modified,
            Axis::Created => Along::Created(snapshot_table(snapshot, CREATED)?),
            Axis::Published => Along::Published(snapshot_table(snapshot, PUBLISHED)?),
        },
    };
    paging::page(along, query, &record)
}

type ByStamp = Sealed<&'static StampKey, ReadOnlyTable<&'static StampKey, Coded>>;

type ByPublication = Sealed<&'static PublishedKey, ReadOnlyTable<&'static PublishedKey, Coded>>;

/// A row by date of publication: the date, and first T and T of the item.
type FoundPublication = Result<(Moment, (Stamp, Stamp)), StoreError>;

/// A feed along an axis.
struct FileListing<'a> {
    snapshot: &'a ReadTransaction,
    record: &'a FeedRecord,
    items: ByStamp,
    along: Along,
}

/// The table of an axis; that of T is the items themselves.
enum Along {
    Modified,
    Created(ByStamp),
    Published(ByPublication),
}

impl FileListing<'_> {
    fn feed(&self) -> FeedNo {
        self.record.no
    }

    /// The row at T.
    fn at(&self, t: Stamp) -> Result<Option<Raw>, StoreError> {
        let value = self.items.get_kept(&stamp_key(self.feed(), t))?;
        value.map(|value| Raw::new(t, value)).transpose()
    }

    /// The rows of a range by T, whatever the axis.
    fn by_t(&self, range: Range, reverse: bool) -> Result<ListingRows<'static, Self>, StoreError> {
        let (low, high) = keys(self.feed(), range);
        let rows = self
            .items
            .range_kept::<&StampKey>((low.as_ref(), high.as_ref()))?;
        Ok(directed(rows.map(modified_row), reverse))
    }

    /// The row at T, which was created at `c`: a row of `created` never points into the void.
    fn created_at(&self, c: Stamp, t: Stamp) -> Result<Raw, StoreError> {
        let found = self.at(t)?.filter(|row| row.header.created == c);
        found.ok_or_else(|| {
            damaged(
                &format!("the item created at {c}"),
                &format!("is not at {t}"),
            )
        })
    }

    fn created_row(&self, found: Found) -> Result<(ListingPlace, Raw), StoreError> {
        let (key, t) = found?;
        let c = stamp_of(key.value());
        Ok((
            ListingPlace { t: c.into(), o: 0 },
            self.created_at(c, stamp_of(t.value()))?,
        ))
    }

    /// The rows by date of publication in a range of dates.
    fn published(
        &self,
        table: &ByPublication,
        (low, high): (Bound<Moment>, Bound<Moment>),
    ) -> Result<impl DoubleEndedIterator<Item = FoundPublication>, StoreError> {
        let end = |bound, open, created| match bound {
            Bound::Included(listed) | Bound::Excluded(listed) => {
                published_key(self.feed(), listed, created)
            }
            Bound::Unbounded => published_key(self.feed(), open, created),
        };
        let (first, last) = (
            end(low, Moment::MIN, Stamp::ZERO),
            end(high, Moment::MAX, Stamp::MAX),
        );
        let rows = table.range_kept::<&PublishedKey>(&first..=&last)?;
        Ok(rows.map(|row| {
            let (key, t) = row?;
            let (listed, created) = listed_of(key.value());
            Ok((listed, (created, stamp_of(t.value()))))
        }))
    }

    /// The item with our id.
    fn by_id(&self, id: ItemId) -> Result<Option<Raw>, StoreError> {
        let Some(t) = snapshot_table(self.snapshot, IDS)?.get_kept(&id_key(self.feed(), id))?
        else {
            return Ok(None);
        };
        let t = stamp_of(t.value());
        let found = self.at(t)?.filter(|row| row.header.id == id);
        found
            .ok_or_else(|| damaged(&format!("item {id}"), &format!("is not at {t}")))
            .map(Some)
    }

    /// The item with the upstream's id.
    fn by_upstream_id(&self, id: &str) -> Result<Option<Raw>, StoreError> {
        let key = KeyHash::of(
            &self.record.ids.namespace,
            &Key::Id(id.to_owned()).stripped(),
        );
        let bound = snapshot_table(self.snapshot, KEYS)?.get_kept(&hash_key(self.feed(), key))?;
        bound.map_or(Ok(None), |id| self.by_id(item_id_of(id.value())?))
    }
}

impl paging::IndexedListing for FileListing<'_> {
    fn likely<'a>(
        &'a self,
        clauses: &[IndexClause],
        (range, reverse): (Range, bool),
        with_changed: bool,
    ) -> Result<Option<ListingRows<'a, Self>>, StoreError> {
        let Some(index) = WordIndex::of(self.snapshot, self.feed())? else {
            return Ok(None);
        };
        let search = Search {
            listing: self,
            index,
            clauses: clauses.to_vec(),
            range,
            reverse,
        };
        Ok(match &self.along {
            Along::Modified => Some(search.by_modified(with_changed)?),
            Along::Created(created) => Some(search.by_created(created)),
            Along::Published(published) => search.by_published(published)?,
        })
    }
}

impl Listing for FileListing<'_> {
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
                let rows = self.published(published, only)?;
                let id = |row: FoundPublication| {
                    let (_, (created, t)) = row?;
                    Ok(self.created_at(created, t)?.id())
                };
                return rows.map(id).collect();
            }
        };
        Ok(row.iter().map(ListingRow::id).collect())
    }

    fn first_seen(&self) -> Result<Option<Moment>, StoreError> {
        let (low, high) = keys(self.feed(), (Bound::Unbounded, Bound::Unbounded));
        let created = snapshot_table(self.snapshot, CREATED)?;
        let first = created
            .range_kept::<&StampKey>((low.as_ref(), high.as_ref()))?
            .next()
            .transpose()?;
        Ok(first.map(|(created, _)| stamp_of(created.value()).into()))
    }

    fn place_of(&self, id: &str) -> Result<Option<ListingPlace>, StoreError> {
        let ours = id.parse().map_or(Ok(None), |id| self.by_id(id))?;
        let row = ours.map_or_else(|| self.by_upstream_id(id), |row| Ok(Some(row)))?;
        Ok(row.map(|row| ListingPlace {
            // In the other orders an id is no position (SF-27).
            t: if matches!(self.along, Along::Created(_)) {
                row.header.created
            } else {
                row.t
            }
            .into(),
            o: 0,
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
                let row = |found| self.created_row(found);
                let (low, high) = keys(self.feed(), range);
                directed(
                    created
                        .range_kept::<&StampKey>((low.as_ref(), high.as_ref()))?
                        .map(row),
                    reverse,
                )
            }
            Along::Published(published) => {
                let rows = directed(
                    self.published(published, paging::whole_moments(range))?,
                    reverse,
                );
                let row = |row: Result<(ListingPlace, (Stamp, Stamp)), StoreError>| {
                    let (place, (created, t)) = row?;
                    Ok((place, self.created_at(created, t)?))
                };
                Box::new(paging::placed(rows, range, reverse).map(row))
            }
        })
    }
}

/// A row of a range of a table.
type Found = Result<Row<'static, &'static StampKey>, StoreError>;

fn modified_row(found: Found) -> Result<(ListingPlace, Raw), StoreError> {
    let (key, value) = found?;
    let t = stamp_of(key.value());
    Ok((ListingPlace { t: t.into(), o: 0 }, Raw::new(t, value)?))
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

/// An item as it lies in the file: read only when it is on the page.
struct Raw {
    t: Stamp,
    header: ItemHeader,
    value: Unsealed<'static>,
}

impl Raw {
    fn new(t: Stamp, value: Unsealed<'static>) -> Result<Self, StoreError> {
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
        escaped_bytes(self.value.value())
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
