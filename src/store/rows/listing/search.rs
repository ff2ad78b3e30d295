//! The rows of a range that may meet a filter, found by the word index, along each axis; whether
//! they do is decided by who asked.

use super::{ByPublication, ByStamp, RowListing, directed};
use crate::{
    feed::{
        moment::Moment,
        page::{ListingPosition, ListingRows},
        stamp::Stamp,
    },
    store::{
        StoreError,
        paging::{self, IndexQuery},
        rows::{
            tables::{stamp_key, stamp_of},
            word_index::{Segment, WordIndex},
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
/// Rows along the dates that are walked at most for each item that would be read to sort it.
const WALKED_PER_READ: u64 = if cfg!(test) { 1 } else { 32 };
/// Every so many rows along the dates one is taken for likely, so that the limit of a page's scan
/// limits the walk as well.
const WALK_STRIDE: usize = 256;

/// Items that may meet a filter and are named at once.
const NAMED_AT_ONCE: usize = 64;

/// A search in a feed.
pub(super) struct Search<'a> {
    pub(super) listing: &'a RowListing<'a>,
    pub(super) index: WordIndex<'a>,
    pub(super) query: IndexQuery,
}

impl<'a> Search<'a> {
    /// By T: segment by segment, and then every row behind them.
    pub(super) fn by_modified(self) -> Result<ListingRows<'a, RowListing<'a>>, StoreError> {
        let Self {
            listing,
            index,
            query,
        } = self;
        let IndexQuery { range, reverse, .. } = query;
        let end = ListingPosition::at(index.end());
        let tail = match range.1 {
            Bound::Included(high) | Bound::Excluded(high) if high.t <= end.t => {
                Box::new(iter::empty())
            }
            _ => listing.by_t((behind(range.0, end), range.1), reverse)?,
        };
        index.name(&query.clauses, reverse)?;
        let (first, last) = paging::whole_moments(range);
        let segments = index.segments().iter().copied();
        let segments: Vec<_> = segments
            .filter(|(_, segment)| meets(segment, first, last))
            .collect();
        let found = directed(segments.into_iter(), reverse).flat_map(move |(no, segment)| {
            match index.stamps_in(no, segment, &query.clauses, query.with_changed) {
                Ok(stamps) => rows_at(listing, stamps, range, reverse),
                Err(error) => Box::new(iter::once(Err(error))),
            }
        });
        Ok(if reverse {
            Box::new(tail.chain(found))
        } else {
            Box::new(found.chain(tail))
        })
    }

    /// By first T: the segments are read as the walk comes to the first of their items.
    pub(super) fn by_created(self, created: &'a ByStamp<'a>) -> ListingRows<'a, RowListing<'a>> {
        let Self {
            listing,
            index,
            query,
        } = self;
        let IndexQuery { range, reverse, .. } = query;
        let mut segments = index.segments().to_vec();
        // The next one stands at the end.
        if reverse {
            segments.sort_unstable_by_key(|(_, segment)| segment.last_created);
        } else {
            segments.sort_unstable_by_key(|(_, segment)| Reverse(segment.first_created));
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
                let is_due = |(_, segment): &mut (u32, Segment)| match next {
                    Some(next) if reverse => next <= segment.last_created,
                    Some(next) => segment.first_created <= next,
                    None => true,
                };
                let Some((no, _)) = segments.pop_if(is_due) else {
                    let next = next?;
                    waiting.remove(&next);
                    if range.contains(&ListingPosition::at(next)) {
                        return Some(Ok(next));
                    }
                    continue;
                };
                match index.created_in(no, &query.clauses) {
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
                Ok(Some((ListingPosition::at(c), row)))
            });
            row.transpose()
        }))
    }

    /// By date of publication, which no segment knows; `None` where the index is no help.
    pub(super) fn by_published(
        self,
        published: &'a ByPublication<'a>,
    ) -> Result<Option<ListingRows<'a, RowListing<'a>>>, StoreError> {
        let Self {
            listing,
            index,
            query,
        } = self;
        let IndexQuery { range, reverse, .. } = query;
        index.name(&query.clauses, reverse)?;
        let mut likely = behind_index(listing, &index)?;
        for (no, _) in index.segments() {
            likely.extend(index.created_in(*no, &query.clauses)?);
            let is_dense = likely.len() as u64 > listing.record.items.total / DENSE_PART;
            if is_dense && likely.len() > SORTED_MAX {
                return Ok(None);
            }
        }
        let whole = paging::whole_moments(range);
        // The walk is short even over the whole feed, and most pages end long before.
        let is_walk_short = likely.len() as u64 * WALKED_PER_READ >= listing.record.items.total;
        if likely.len() > SORTED_MAX || is_walk_short {
            let rows = directed(listing.published(published, whole)?, reverse);
            let mut walked = 0;
            let rows = paging::placed(rows, range, reverse).filter(move |row| {
                walked += 1;
                match row {
                    Ok((_, found)) => likely.contains(&found.created) || walked % WALK_STRIDE == 0,
                    Err(_) => true,
                }
            });
            return Ok(Some(Box::new(rows.map(|row| listing.published_row(row)))));
        }
        let mut dates = BTreeSet::new();
        listing.name_created(likely.iter().copied())?;
        for created in &likely {
            let Some(t) = index.t_of(*created)? else {
                continue;
            };
            let item = paging::ListedRow::item(&listing.created_at(*created, t)?)?;
            dates.insert(item.listed());
        }
        dates.retain(|listed| whole.contains(listed));
        let likely = Rc::new(likely);
        let rows = directed(dates.into_iter(), reverse).flat_map(move |listed| {
            let only = (Bound::Included(listed), Bound::Included(listed));
            let (rows, fault) = match listing.published(published, only) {
                Ok(rows) => (directed(rows, reverse), None),
                Err(error) => (directed(iter::empty(), reverse), Some(Err(error))),
            };
            let likely = Rc::clone(&likely);
            let rows = paging::placed(rows, range, reverse).filter(move |row| match row {
                Ok((_, found)) => likely.contains(&found.created),
                Err(_) => true,
            });
            fault.into_iter().chain(rows)
        });
        Ok(Some(Box::new(rows.map(|row| listing.published_row(row)))))
    }
}

/// True for a segment that may have rows of a range.
fn meets(segment: &Segment, first: Bound<Moment>, last: Bound<Moment>) -> bool {
    if let Bound::Included(first) | Bound::Excluded(first) = first
        && Moment::from(segment.through) < first
    {
        return false;
    }
    if let Bound::Included(last) | Bound::Excluded(last) = last
        && Moment::from(segment.after) >= last
    {
        return false;
    }
    true
}

/// The rows at these T that lie in a range.
fn rows_at<'a>(
    listing: &'a RowListing<'a>,
    stamps: Vec<Stamp>,
    range: (Bound<ListingPosition>, Bound<ListingPosition>),
    reverse: bool,
) -> ListingRows<'a, RowListing<'a>> {
    let stamps = stamps.into_iter();
    let stamps = stamps.filter(|t| range.contains(&ListingPosition::at(*t)));
    let mut stamps: Vec<Stamp> = stamps.collect();
    // The next ones stand at the end.
    if !reverse {
        stamps.reverse();
    }
    let mut named = 0;
    Box::new(iter::from_fn(move || {
        loop {
            if named == 0 {
                let next = stamps.iter().rev().take(NAMED_AT_ONCE);
                named = next.len();
                if let Err(error) = listing.name_items(next.copied()) {
                    return Some(Err(error));
                }
            }
            let t = stamps.pop()?;
            named -= 1;
            if let Some(row) = listing.at(t).transpose() {
                return Some(row.map(|row| (ListingPosition::at(t), row)));
            }
        }
    }))
}

/// The later of two beginnings: that of a range, or right behind a place.
fn behind(low: Bound<ListingPosition>, place: ListingPosition) -> Bound<ListingPosition> {
    match low {
        Bound::Included(first) | Bound::Excluded(first) if first > place => low,
        _ => Bound::Excluded(place),
    }
}

/// The first T of the items behind the index.
fn behind_index(
    listing: &RowListing<'_>,
    index: &WordIndex<'_>,
) -> Result<BTreeSet<Stamp>, StoreError> {
    let end = ListingPosition::at(index.end());
    listing
        .by_t((Bound::Excluded(end), Bound::Unbounded), false)?
        .map(|row| row.map(|(_, row)| row.header.created))
        .collect()
}
