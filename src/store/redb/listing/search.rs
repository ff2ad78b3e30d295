//! The rows of a range that may meet a filter, found by the word index, along each axis; whether
//! they do is decided by who asked.

use super::{ByPublication, ByStamp, FileListing, FoundPublication, directed};
use crate::{
    feed::{
        filter::index_terms::IndexClause,
        moment::Moment,
        page::{ListingPlace, ListingRows, Range},
        stamp::Stamp,
    },
    store::{
        StoreError, paging,
        redb::{
            tables::{stamp_key, stamp_of},
            word_index::WordIndex,
        },
    },
};
use std::{
    cmp::Reverse,
    collections::BTreeSet,
    iter,
    ops::{Bound, RangeBounds as _},
    rc::Rc,
};

/// Items at most that are read to sort them by date of publication. When more may meet a filter,
/// one is met soon enough by walking along the dates.
const SORTED_MAX: usize = if cfg!(test) { 2 } else { 1_000 };
/// Part of all items above which so many may meet a filter that walking along the dates alone meets
/// them soon.
const DENSE_PART: u64 = if cfg!(test) { 1 } else { 16 };
/// Every so many rows along the dates one is taken for likely, so that the limit of a page's scan
/// limits the walk as well.
const WALK_STRIDE: usize = 256;

/// A search in a feed.
pub(super) struct Search<'a> {
    pub(super) listing: &'a FileListing<'a>,
    pub(super) index: WordIndex,
    pub(super) clauses: Vec<IndexClause>,
    pub(super) range: Range,
    pub(super) reverse: bool,
}

impl<'a> Search<'a> {
    /// By T: segment by segment, and then every row behind them.
    pub(super) fn by_modified(
        self,
        with_changed: bool,
    ) -> Result<ListingRows<'a, FileListing<'a>>, StoreError> {
        let Self {
            listing,
            index,
            clauses,
            range,
            reverse,
        } = self;
        let end = ListingPlace {
            t: index.end().into(),
            o: 0,
        };
        let tail = match range.1 {
            Bound::Included(high) | Bound::Excluded(high) if high.t <= end.t => None,
            _ => Some((behind(range.0, end), range.1)),
        };
        let tail = match tail {
            Some(range) => listing.by_t(range, reverse)?,
            None => Box::new(iter::empty()),
        };
        let (first, last) = paging::whole_moments(range);
        let meets = |after: Stamp, through: Stamp| {
            let (after, through) = (Moment::from(after), Moment::from(through));
            let begins = match first {
                Bound::Included(first) | Bound::Excluded(first) => first <= through,
                Bound::Unbounded => true,
            };
            let ends = match last {
                Bound::Included(last) | Bound::Excluded(last) => after < last,
                Bound::Unbounded => true,
            };
            begins && ends
        };
        let segments = index.segments().iter().copied();
        let segments: Vec<_> = segments
            .filter(|(_, segment)| meets(segment.after(), segment.through()))
            .collect();
        let found = directed(segments.into_iter(), reverse).flat_map(move |(no, segment)| {
            let (stamps, fault) = match index.stamps_in(no, segment, &clauses, with_changed) {
                Ok(stamps) => (stamps, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            let rows = directed(stamps.into_iter(), reverse).filter_map(move |t| {
                let place = ListingPlace { t: t.into(), o: 0 };
                let row = range.contains(&place).then(|| listing.at(t))?;
                row.map(|row| row.map(|row| (place, row))).transpose()
            });
            fault.into_iter().chain(rows)
        });
        Ok(if reverse {
            Box::new(tail.chain(found))
        } else {
            Box::new(found.chain(tail))
        })
    }

    /// By first T: the segments are read as the walk comes to the first of their items.
    pub(super) fn by_created(self, created: &'a ByStamp) -> ListingRows<'a, FileListing<'a>> {
        let Self {
            listing,
            index,
            clauses,
            range,
            reverse,
        } = self;
        let mut segments = index.segments().to_vec();
        // The next one stands at the end.
        if reverse {
            segments.sort_unstable_by_key(|(_, segment)| segment.created().1);
        } else {
            segments.sort_unstable_by_key(|(_, segment)| Reverse(segment.created().0));
        }
        let mut waiting: Option<BTreeSet<Stamp>> = None;
        let stamps = iter::from_fn(move || {
            let waiting = match &mut waiting {
                Some(waiting) => waiting,
                none => match behind_index(listing, &index) {
                    Ok(tail) => none.insert(tail),
                    Err(error) => return Some(Err(error)),
                },
            };
            loop {
                let next = if reverse {
                    waiting.last()
                } else {
                    waiting.first()
                }
                .copied();
                let is_due = |created: (Stamp, Stamp)| match next {
                    Some(next) if reverse => next <= created.1,
                    Some(next) => created.0 <= next,
                    None => true,
                };
                let Some((no, _)) = segments.pop_if(|(_, segment)| is_due(segment.created()))
                else {
                    let next = next?;
                    waiting.remove(&next);
                    if range.contains(&ListingPlace {
                        t: next.into(),
                        o: 0,
                    }) {
                        return Some(Ok(next));
                    }
                    continue;
                };
                match index.created_in(no, &clauses) {
                    Ok(stamps) => waiting.extend(stamps),
                    Err(error) => return Some(Err(error)),
                }
            }
        });
        Box::new(stamps.filter_map(move |stamp| {
            let row = stamp.and_then(|c| {
                let Some(t) = created.get(&stamp_key(listing.feed(), c))? else {
                    return Ok(None);
                };
                let row = listing.created_at(c, stamp_of(t.value()))?;
                Ok(Some((ListingPlace { t: c.into(), o: 0 }, row)))
            });
            row.transpose()
        }))
    }

    /// By date of publication, which no segment knows; `None` where the index is no help.
    pub(super) fn by_published(
        self,
        published: &'a ByPublication,
    ) -> Result<Option<ListingRows<'a, FileListing<'a>>>, StoreError> {
        let Self {
            listing,
            index,
            clauses,
            range,
            reverse,
        } = self;
        let mut likely = behind_index(listing, &index)?;
        for (no, _) in index.segments() {
            likely.extend(index.created_in(*no, &clauses)?);
            let is_dense = likely.len() as u64 > listing.record.items.total / DENSE_PART;
            if is_dense && likely.len() > SORTED_MAX {
                return Ok(None);
            }
        }
        let row = move |found: Result<(ListingPlace, (Stamp, Stamp)), StoreError>| {
            let (place, (created, t)) = found?;
            Ok((place, listing.created_at(created, t)?))
        };
        let (low, high) = paging::whole_moments(range);
        if likely.len() > SORTED_MAX {
            let rows = directed(listing.published(published, (low, high))?, reverse);
            let mut walked = 0;
            let rows = paging::placed(rows, range, reverse).filter(move |row| {
                walked += 1;
                let is_likely = |created| likely.contains(created) || walked % WALK_STRIDE == 0;
                row.as_ref()
                    .map_or(true, |(_, (created, _))| is_likely(created))
            });
            return Ok(Some(Box::new(rows.map(row))));
        }
        let mut dates = BTreeSet::new();
        for created in &likely {
            let Some(t) = index.t_of(*created)? else {
                continue;
            };
            let item = paging::ListedRow::item(&listing.created_at(*created, t)?)?;
            dates.insert(item.listed());
        }
        dates.retain(|listed| (low, high).contains(listed));
        let likely = Rc::new(likely);
        let rows = directed(dates.into_iter(), reverse).flat_map(move |listed| {
            let only = (Bound::Included(listed), Bound::Included(listed));
            let (rows, fault): (Box<dyn Iterator<Item = FoundPublication>>, _) =
                match listing.published(published, only) {
                    Ok(rows) => (directed(rows, reverse), None),
                    Err(error) => (Box::new(iter::empty()), Some(Err(error))),
                };
            let likely = Rc::clone(&likely);
            let rows = paging::placed(rows, range, reverse).filter(move |row| {
                row.as_ref()
                    .map_or(true, |(_, (created, _))| likely.contains(created))
            });
            fault.into_iter().chain(rows)
        });
        Ok(Some(Box::new(rows.map(row))))
    }
}

/// The later of two beginnings: that of a range, or right behind a place.
fn behind(low: Bound<ListingPlace>, place: ListingPlace) -> Bound<ListingPlace> {
    match low {
        Bound::Included(first) | Bound::Excluded(first) if first > place => low,
        _ => Bound::Excluded(place),
    }
}

/// The first T of the items behind the index.
fn behind_index(
    listing: &FileListing<'_>,
    index: &WordIndex,
) -> Result<BTreeSet<Stamp>, StoreError> {
    let behind = (
        Bound::Excluded(ListingPlace {
            t: index.end().into(),
            o: 0,
        }),
        Bound::Unbounded,
    );
    listing
        .by_t(behind, false)?
        .map(|row| row.map(|(_, row)| row.header.created))
        .collect()
}
