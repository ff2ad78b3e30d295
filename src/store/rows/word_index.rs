//! Index of long feeds by the terms of their items: which rows may meet a filter. It is made of
//! segments, each of which covers the items of a stretch of T and is written once, in the
//! transaction of the commit that fills it, so that it never disagrees with the items. What an
//! item's terms are is decided in [`index_terms`](crate::feed::filter::index_terms).
//!
//! An item that is edited or deleted moves to a later T, and so into a later segment; what older
//! segments say of it is noticed when it is looked up. The items behind the last segment are looked
//! at one by one.

use super::{
    open_table::{Row, Rows, TableEdit as _, TableSource as _},
    tables::{
        CREATED, ITEMS, SEGMENTS, SegmentKey, StampKey, TERMS, TermKey, feed_key, segment_key,
        segment_of, stamp_key, stamp_of, stamp_value, term_key, term_of,
    },
};
#[cfg(feature = "postgres")]
use crate::feed::record::FeedRecord;
use crate::{
    feed::{
        filter::index_terms::{IndexClause, IndexTerm, index_terms},
        item::Item,
        record::FeedNo,
        stamp::Stamp,
    },
    store::{
        StoreError,
        engine::{RowReader, RowWriter},
        plan::PlannedCommit,
        stored::{
            damaged,
            item::{decode_item, plain_bytes},
        },
    },
};
use postings::{Posting, packed, stamps_of, without};
use std::{borrow::Cow, collections::HashMap, ops::Bound};

pub(in crate::store) mod postings;

#[cfg(test)]
mod tests;

/// Items of a segment; a feed with fewer has no index.
pub(in crate::store) const SEGMENT_ITEMS: u64 = if cfg!(test) { 3 } else { 2_000 };
/// Bytes of the items, as they are stored, after which a segment ends with fewer of them.
const SEGMENT_BYTES: u64 = 16 << 20;
/// Segments by which a commit may catch up with what the feed held before; others wait for the next
/// commit.
const SEGMENTS_BEHIND: u64 = 4;
/// Items behind the last segment up to which the index is used: more are only there while it is
/// caught up with.
const TAIL_ITEMS_MAX: u64 = 4 * SEGMENT_ITEMS;

/// Segments of which lists are named at once.
const NAMED_SEGMENTS: usize = 64;

/// List of the items that have too many terms, by their first T: every search looks at them.
const EVERY_SEARCH: IndexTerm = IndexTerm(0);
/// List of the T of the items that were changed since they were first seen: a view that they left
/// says so.
const CHANGED: IndexTerm = IndexTerm(1);

/// The items of a stretch of T; the last one of a feed is still open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct Segment {
    /// They stand after this T.
    pub(in crate::store) after: Stamp,
    /// And up to this one, at which an item stood; zero while the segment is open.
    pub(in crate::store) through: Stamp,
    /// The first of their first T.
    pub(in crate::store) first_created: Stamp,
    /// The last of their first T.
    pub(in crate::store) last_created: Stamp,
    /// Items; of an open segment, changes of items.
    items: u64,
    /// Bytes of them.
    bytes: u64,
}

impl Segment {
    const fn is_open(self) -> bool {
        self.through.micros() == 0
    }

    const fn is_full(self) -> bool {
        self.items >= SEGMENT_ITEMS || self.bytes >= SEGMENT_BYTES
    }

    fn row(self) -> Vec<u8> {
        let Self {
            after,
            through,
            first_created,
            last_created,
            items,
            bytes,
        } = self;
        let stamps = [after, through, first_created, last_created].map(stamp_value);
        [
            stamps.as_flattened(),
            &items.to_be_bytes(),
            &bytes.to_be_bytes(),
        ]
        .concat()
    }

    /// Reads its row.
    pub(in crate::store) fn of_row(row: &[u8]) -> Result<Self, StoreError> {
        let (numbers, rest) = row.as_chunks::<8>();
        let (&[after, through, first_created, last_created, items, bytes], []) = (numbers, rest)
        else {
            return Err(damaged("a segment of the word index has another length"));
        };
        Ok(Self {
            after: stamp_of(&after),
            through: stamp_of(&through),
            first_created: stamp_of(&first_created),
            last_created: stamp_of(&last_created),
            items: u64::from_be_bytes(items),
            bytes: u64::from_be_bytes(bytes),
        })
    }
}

/// The number of a segment, and the segment.
fn read_segment((key, value): Row<SegmentKey>) -> Result<(u32, Segment), StoreError> {
    Ok((segment_of(key.value()), Segment::of_row(value.value())?))
}

/// Takes a commit into the index, which it may fill a segment of.
pub(in crate::store) fn take_in(
    tx: &dyn RowWriter,
    plan: &PlannedCommit,
) -> Result<(), StoreError> {
    let feed = &plan.receipt.feed;
    if plan.items.is_empty() || feed.items.total < SEGMENT_ITEMS {
        return Ok(());
    }
    let no = feed.no;
    for id in &plan.forgotten {
        if let Some(moved) = plan.items.get(id) {
            leave_out(tx, no, moved.item.created)?;
        }
    }
    let bytes: u64 = plan
        .items
        .values()
        .map(|moved| plain_bytes(&moved.encoded))
        .sum();
    let items = plan.items.len() as u64;
    let segments_max = SEGMENTS_BEHIND + items / SEGMENT_ITEMS + bytes / SEGMENT_BYTES;
    let (mut at, mut open) = (0, Segment::default());
    if let Some(last) = last_segment(tx, no)? {
        (at, open) = last;
        open.items += items;
        open.bytes += bytes;
    } else {
        // Whatever the feed holds is to be taken in.
        open.items = feed.items.total;
        open.bytes = feed.items.bytes.unwrap_or_default();
    }
    let of_commit = || {
        let items = plan.items.values().map(|moved| &moved.item);
        items.map(|item| (item.modified, item.as_ref())).collect()
    };
    fill_all(tx, no, at, open, segments_max, of_commit)
}

/// Items that were written just now, by their T: they need not be read back.
type Written<'i> = HashMap<Stamp, &'i Item>;

/// Fills the open segment and those behind it, as long as there are items for them.
fn fill_all<'i>(
    tx: &dyn RowWriter,
    no: FeedNo,
    mut at: u32,
    mut open: Segment,
    segments_max: u64,
    written: impl FnOnce() -> Written<'i>,
) -> Result<(), StoreError> {
    if !open.is_full() {
        return write_segment(tx, no, at, open);
    }
    let written = written();
    for _ in 0..segments_max {
        if !open.is_full() {
            break;
        }
        let filled = match fill(tx, no, open, &written) {
            Ok(filled) => filled,
            // Searches meet the damage and tell it; the index goes on once it is removed.
            Err(StoreError::Damaged(_)) => break,
            Err(error) => return Err(error),
        };
        if !filled.segment.is_full() {
            // Items that changed more than once are only there once.
            open.items = filled.segment.items;
            open.bytes = filled.segment.bytes;
            break;
        }
        let mut terms = tx.edit(TERMS)?;
        for (first, chunk) in packed(&filled.postings) {
            terms.insert(&term_key(no, at, first), &chunk)?;
        }
        drop(terms);
        write_segment(tx, no, at, filled.segment)?;
        at += 1;
        open = Segment {
            after: filled.segment.through,
            items: open.items.saturating_sub(filled.segment.items),
            bytes: open.bytes.saturating_sub(filled.segment.bytes),
            ..Segment::default()
        };
    }
    write_segment(tx, no, at, open)
}

fn write_segment(
    tx: &dyn RowWriter,
    feed: FeedNo,
    no: u32,
    segment: Segment,
) -> Result<(), StoreError> {
    tx.edit(SEGMENTS)?
        .insert(&segment_key(feed, no), &segment.row())
}

/// Indexes a feed that was written by another kind of store, if it is long.
#[cfg(feature = "postgres")]
pub(in crate::store) fn index_moved(
    tx: &dyn RowWriter,
    feed: &FeedRecord,
) -> Result<(), StoreError> {
    if feed.items.total < SEGMENT_ITEMS {
        return Ok(());
    }
    let open = Segment {
        items: feed.items.total,
        bytes: feed.items.bytes.unwrap_or_default(),
        ..Segment::default()
    };
    fill_all(tx, feed.no, 0, open, u64::MAX, HashMap::new)
}

fn last_segment(tx: &dyn RowWriter, feed: FeedNo) -> Result<Option<(u32, Segment)>, StoreError> {
    let segments = tx.edit(SEGMENTS)?;
    let last = segments.last_row(&feed_key(feed))?;
    last.map(read_segment).transpose()
}

/// A segment with the terms of its items.
struct Filled {
    segment: Segment,
    /// In ascending order.
    postings: Vec<Posting>,
}

/// Reads the items behind the last segment until they fill the next one.
fn fill(
    tx: &dyn RowWriter,
    feed: FeedNo,
    open: Segment,
    written: &Written<'_>,
) -> Result<Filled, StoreError> {
    let items = tx.edit(ITEMS)?;
    let mut segment = Segment {
        after: open.after,
        first_created: Stamp::MAX,
        ..Segment::default()
    };
    let mut postings: Vec<Posting> = Vec::new();
    for row in items.rows_after(&feed_key(feed), Some(stamp_key(feed, open.after))) {
        let (key, value) = row?;
        let t = stamp_of(key.value());
        let item = match written.get(&t) {
            Some(item) => Cow::Borrowed(*item),
            None => Cow::Owned(decode_item(t, value.value())?),
        };
        let created = item.created;
        segment.through = t;
        segment.first_created = segment.first_created.min(created);
        segment.last_created = segment.last_created.max(created);
        segment.items += 1;
        segment.bytes += plain_bytes(value.value());
        if t > created {
            postings.push((CHANGED, t));
        }
        let terms = index_terms(&item).unwrap_or_else(|| vec![EVERY_SEARCH]);
        postings.extend(terms.into_iter().map(|term| (term, created)));
        if segment.is_full() {
            break;
        }
    }
    postings.sort_unstable();
    Ok(Filled { segment, postings })
}

/// Takes an item that is removed for good out of the lists of its words.
fn leave_out(tx: &dyn RowWriter, feed: FeedNo, created: Stamp) -> Result<(), StoreError> {
    let mut held = Vec::new();
    for row in tx.edit(SEGMENTS)?.rows(&feed_key(feed)) {
        let (no, segment) = read_segment(row?)?;
        if (segment.first_created..=segment.last_created).contains(&created) {
            held.push(no);
        }
    }
    let mut terms = tx.edit(TERMS)?;
    for no in held {
        let mut changed = Vec::new();
        for row in terms.rows(&segment_key(feed, no)) {
            let (key, value) = row?;
            if let Some(left) = without(created, term_of(key.value()), value.value())? {
                changed.push((*key.value(), left));
            }
        }
        for (key, left) in changed {
            terms.remove(&key)?;
            for (first, chunk) in left {
                terms.insert(&term_key(feed, no, first), &chunk)?;
            }
        }
    }
    Ok(())
}

/// The index of a feed in a snapshot.
pub(in crate::store) struct WordIndex<'s> {
    snapshot: &'s dyn RowReader,
    feed: FeedNo,
    segments: Vec<(u32, Segment)>,
    /// The T behind which no segment reaches.
    end: Stamp,
    terms: Rows<'s, TermKey>,
    created: Rows<'s, StampKey>,
    items: Rows<'s, StampKey>,
}

impl<'s> WordIndex<'s> {
    /// That of a feed; `None` when it has none, or one that is far behind.
    pub(in crate::store) fn of(
        snapshot: &'s dyn RowReader,
        feed: FeedNo,
    ) -> Result<Option<Self>, StoreError> {
        let table = snapshot.table(SEGMENTS)?;
        let rows = table.rows(&feed_key(feed));
        let segments: Result<Vec<_>, _> = rows.map(|row| read_segment(row?)).collect();
        let mut segments = segments?;
        let Some((_, open)) = segments.pop_if(|(_, segment)| segment.is_open()) else {
            return Ok(None);
        };
        if segments.is_empty() || open.items > TAIL_ITEMS_MAX {
            return Ok(None);
        }
        Ok(Some(Self {
            snapshot,
            feed,
            segments,
            end: open.after,
            terms: snapshot.table(TERMS)?,
            created: snapshot.table(CREATED)?,
            items: snapshot.table(ITEMS)?,
        }))
    }

    /// Names the lists of the terms of clauses in the first segments that are asked.
    pub(in crate::store) fn name(
        &self,
        clauses: &[IndexClause],
        reverse: bool,
    ) -> Result<(), StoreError> {
        self.snapshot.name(|| {
            let always = [EVERY_SEARCH, CHANGED];
            let terms = clauses.iter().flatten().chain(&always);
            let terms: Vec<_> = terms.copied().collect();
            let mut segments: Vec<u32> = self.segments.iter().map(|(no, _)| *no).collect();
            if reverse {
                segments.reverse();
            }
            let segments = segments.into_iter().take(NAMED_SEGMENTS);
            let lists = segments.flat_map(|no| {
                let lists = terms.iter().map(move |term| {
                    let first = term_key(self.feed, no, IndexTerm(0));
                    TERMS.named_range(&first, &term_key(self.feed, no, *term), true, 1)
                });
                lists.collect::<Vec<_>>()
            });
            lists.collect()
        })
    }

    /// The T behind which no segment reaches.
    pub(in crate::store) const fn end(&self) -> Stamp {
        self.end
    }

    /// The segments, in the order of T.
    pub(in crate::store) fn segments(&self) -> &[(u32, Segment)] {
        &self.segments
    }

    /// The T of the items of a segment that may meet the clauses, and of those that were changed if
    /// they are wanted; ascending.
    pub(in crate::store) fn stamps_in(
        &self,
        no: u32,
        segment: Segment,
        clauses: &[IndexClause],
        with_changed: bool,
    ) -> Result<Vec<Stamp>, StoreError> {
        let mut stamps = if with_changed {
            self.list(no, CHANGED)?
        } else {
            Vec::new()
        };
        let created = self.created_in(no, clauses)?;
        if created.is_empty() && stamps.is_empty() {
            return Ok(Vec::new());
        }
        let after = stamp_key(self.feed, segment.after);
        let through = stamp_key(self.feed, segment.through);
        let still = (Bound::Excluded(&after), Bound::Included(&through));
        if self.items.first_in(still)?.is_none() {
            return Ok(Vec::new());
        }
        self.snapshot.name(|| {
            let keys = created.iter().map(|created| stamp_key(self.feed, *created));
            vec![CREATED.named_all(&keys.collect::<Vec<_>>())]
        })?;
        for created in created {
            let t = self.t_of(created)?;
            stamps.extend(t.filter(|t| segment.after < *t && *t <= segment.through));
        }
        stamps.sort_unstable();
        stamps.dedup();
        Ok(stamps)
    }

    /// The first T of the items that may meet the clauses, by one segment; ascending. What was
    /// changed since may have left it.
    pub(in crate::store) fn created_in(
        &self,
        no: u32,
        clauses: &[IndexClause],
    ) -> Result<Vec<Stamp>, StoreError> {
        let mut met: Option<Vec<Stamp>> = None;
        for clause in clauses {
            let mut stamps = Vec::new();
            for term in clause {
                stamps.extend(self.list(no, *term)?);
            }
            if clause.len() > 1 {
                stamps.sort_unstable();
                stamps.dedup();
            }
            if let Some(before) = met {
                stamps.retain(|stamp| before.binary_search(stamp).is_ok());
            }
            let is_empty = stamps.is_empty();
            met = Some(stamps);
            if is_empty {
                break;
            }
        }
        let mut met = met.unwrap_or_default();
        let every = self.list(no, EVERY_SEARCH)?;
        if !every.is_empty() {
            met.extend(every);
            met.sort_unstable();
            met.dedup();
        }
        Ok(met)
    }

    /// The T of the item with this first T.
    pub(in crate::store) fn t_of(&self, created: Stamp) -> Result<Option<Stamp>, StoreError> {
        Ok(self
            .created
            .get(&stamp_key(self.feed, created))?
            .map(|t| stamp_of(t.value())))
    }

    fn list(&self, no: u32, term: IndexTerm) -> Result<Vec<Stamp>, StoreError> {
        let first = term_key(self.feed, no, IndexTerm(0));
        let last = term_key(self.feed, no, term);
        let Some((key, chunk)) = self.terms.last_in(&first..=&last)? else {
            return Ok(Vec::new());
        };
        stamps_of(term, term_of(key.value()), chunk.value())
    }
}
