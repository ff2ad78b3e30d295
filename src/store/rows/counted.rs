//! Counts of a long feed's rows by stretches of stamps: by them a page finds the row of a number, and
//! the number of a row, without reading those before it. Not which rows make a page.
//!
//! Along T and along the first T rows come at the end alone, and along T they leave from anywhere,
//! because an edit moves an item to the end. So a stretch is begun at the end and shrinks later;
//! neighbours that have become small are joined. So a million items have at most 520 rows of counts,
//! and a look-up reads those and 128 rows more.

use super::{
    open_table::{Row, RowsMut, TableEdit as _, TableSource as _},
    tables::{COUNTED, CREATED, CountedKey, counted_key, feed_key, stamp_of, stamp_value},
};
use crate::{
    feed::{record::FeedNo, record::FeedRecord, stamp::Stamp},
    store::{
        StoreError,
        engine::{NamedRows, RowReader, RowWriter},
        plan::PlannedCommit,
        stored::damaged,
    },
};
use std::ops::Bound;

#[cfg(test)]
mod tests;

/// Sizes of what is counted.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// Rows of a stretch at most.
    stretch_rows: u32,
    /// Stretches in a row of the table at most.
    chunk_stretches: usize,
}

/// Sizes in a store.
const SIZES: Sizes = Sizes {
    stretch_rows: 128,
    chunk_stretches: 64,
};
/// Sizes in use: small ones in tests, so that a few items fill them.
const SIZES_IN_USE: Sizes = if cfg!(test) {
    Sizes {
        stretch_rows: 3,
        chunk_stretches: 3,
    }
} else {
    SIZES
};
/// Items up to which a feed has no counts: its rows are counted one by one.
const UNCOUNTED_ITEMS_MAX: u64 = if cfg!(test) { 4 } else { 512 };
/// Chunks at the end of a feed that a commit names: most items that change are among the newest.
const TAIL_CHUNKS: usize = 2;
/// Bytes of a stretch in a row.
const STRETCH_BYTES: usize = 12;

/// The stamps along which rows are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum CountedAxis {
    /// T.
    Modified,
    /// The first T.
    Created,
}

impl CountedAxis {
    const fn byte(self) -> u8 {
        match self {
            Self::Modified => 0,
            Self::Created => 1,
        }
    }
}

/// The rows from a stamp on, up to the next stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    first: Stamp,
    rows: u32,
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct Chunk {
    /// The last T of the feed when it was written: a store that knows no counts leaves it behind.
    through: Stamp,
    stretches: Vec<Stretch>,
}

impl Chunk {
    /// Reads its row.
    pub(in crate::store) fn of_row(row: &[u8]) -> Result<Self, StoreError> {
        let bad = || damaged("a row of counts has another length");
        let (through, rest) = row.split_first_chunk::<8>().ok_or_else(bad)?;
        let (stretches, []) = rest.as_chunks::<STRETCH_BYTES>() else {
            return Err(bad());
        };
        let stretch = |bytes: &[u8; STRETCH_BYTES]| {
            let (first, rows) = bytes.split_at(8);
            Stretch {
                first: stamp_of(first),
                rows: rows
                    .first_chunk()
                    .map_or(0, |rows| u32::from_be_bytes(*rows)),
            }
        };
        Ok(Self {
            through: stamp_of(through),
            stretches: stretches.iter().map(stretch).collect(),
        })
    }

    fn row(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(8 + self.stretches.len() * STRETCH_BYTES);
        row.extend_from_slice(&stamp_value(self.through));
        for stretch in &self.stretches {
            row.extend_from_slice(&stamp_value(stretch.first));
            row.extend_from_slice(&stretch.rows.to_be_bytes());
        }
        row
    }

    /// Takes out one row. False when no stretch has it.
    fn take_out(&mut self, t: Stamp) -> bool {
        let behind = self.stretches.partition_point(|stretch| stretch.first <= t);
        let stretch = behind.checked_sub(1).map(|at| &mut self.stretches[at]);
        match stretch {
            Some(Stretch { rows, .. }) if *rows > 0 => {
                *rows -= 1;
                true
            }
            _ => false,
        }
    }

    /// Joins neighbours that fit into one. True when there are fewer stretches now.
    fn join_stretches(&mut self, stretch_rows: u32) -> bool {
        let before = self.stretches.len();
        let mut joined: Vec<Stretch> = Vec::with_capacity(before);
        for stretch in &self.stretches {
            match joined.last_mut() {
                Some(last) if last.rows + stretch.rows <= stretch_rows => last.rows += stretch.rows,
                _ => joined.push(*stretch),
            }
        }
        joined.retain(|stretch| stretch.rows > 0);
        self.stretches = joined;
        self.stretches.len() < before
    }
}

/// The counts of a feed along an axis, in a transaction that changes them.
struct Counts<'t> {
    table: RowsMut<'t, CountedKey>,
    prefix: [u8; 5],
    sizes: Sizes,
}

/// A chunk at its place.
type PlacedChunk = (CountedKey, Chunk);

impl<'t> Counts<'t> {
    fn of(
        tx: &'t dyn RowWriter,
        feed: FeedNo,
        axis: CountedAxis,
        sizes: Sizes,
    ) -> Result<Self, StoreError> {
        let key = counted_key(feed, axis.byte(), Stamp::ZERO);
        let prefix = *key.first_chunk().expect("a key is longer than its prefix");
        Ok(Self {
            table: tx.edit(COUNTED)?,
            prefix,
            sizes,
        })
    }

    fn key(&self, first: Stamp) -> CountedKey {
        let mut key = [0; 13];
        key[..5].copy_from_slice(&self.prefix);
        key[5..].copy_from_slice(&stamp_value(first));
        key
    }

    /// The last chunk that begins at a stamp or before it.
    fn chunk_at(&self, t: Stamp) -> Result<Option<PlacedChunk>, StoreError> {
        let (first, last) = (self.key(Stamp::ZERO), self.key(t));
        let last = self.table.last_in(&first..=&last)?;
        last.map(placed).transpose()
    }

    /// The chunk after a key.
    fn chunk_after(&self, key: CountedKey) -> Result<Option<PlacedChunk>, StoreError> {
        let last = self.key(Stamp::MAX);
        let next = self
            .table
            .first_in((Bound::Excluded(&key), Bound::Included(&last)))?;
        next.map(placed).transpose()
    }

    fn write(&mut self, key: &CountedKey, chunk: &Chunk) -> Result<(), StoreError> {
        if chunk.stretches.is_empty() {
            return self.table.remove(key);
        }
        self.table.insert(key, &chunk.row())
    }

    /// Takes out rows. False when one of them was not counted.
    fn take_out(&mut self, mut stamps: Vec<Stamp>) -> Result<bool, StoreError> {
        stamps.sort_unstable();
        while let Some(last) = stamps.last() {
            let Some((key, mut chunk)) = self.chunk_at(*last)? else {
                return Ok(false);
            };
            let begin = stamp_of(&key);
            while let Some(t) = stamps.pop_if(|t| *t >= begin) {
                if !chunk.take_out(t) {
                    return Ok(false);
                }
            }
            let is_shorter = chunk.join_stretches(self.sizes.stretch_rows);
            self.write(&key, &chunk)?;
            if is_shorter {
                self.join_chunks(key, chunk)?;
            }
        }
        Ok(true)
    }

    /// Joins a chunk that has become shorter with its neighbours, where they fit into one.
    fn join_chunks(&mut self, mut key: CountedKey, mut chunk: Chunk) -> Result<(), StoreError> {
        let before = Stamp::from_micros(stamp_of(&key).micros().saturating_sub(1));
        if let Some((left, mut joined)) = self.chunk_at(before)?
            && left < key
            && joined.stretches.len() + chunk.stretches.len() <= self.sizes.chunk_stretches
        {
            joined.stretches.append(&mut chunk.stretches);
            self.table.remove(&key)?;
            self.write(&left, &joined)?;
            (key, chunk) = (left, joined);
        }
        if let Some((right, mut joined)) = self.chunk_after(key)?
            && joined.stretches.len() + chunk.stretches.len() <= self.sizes.chunk_stretches
        {
            chunk.stretches.append(&mut joined.stretches);
            chunk.through = joined.through;
            self.table.remove(&right)?;
            self.write(&key, &chunk)?;
        }
        Ok(())
    }

    /// Adds rows at the end, in order.
    fn append(
        &mut self,
        stamps: impl IntoIterator<Item = Stamp>,
        through: Stamp,
    ) -> Result<(), StoreError> {
        let mut tail = self.chunk_at(Stamp::MAX)?;
        for t in stamps {
            match &mut tail {
                Some((_, chunk)) if chunk.holds_one_more(self.sizes) => chunk.push(t, self.sizes),
                _ => {
                    if let Some((key, full)) = &mut tail {
                        full.through = through;
                        self.write(key, full)?;
                    }
                    let mut chunk = Chunk {
                        through,
                        stretches: Vec::with_capacity(self.sizes.chunk_stretches),
                    };
                    chunk.push(t, self.sizes);
                    tail = Some((self.key(t), chunk));
                }
            }
        }
        match &mut tail {
            Some((key, chunk)) => {
                chunk.through = through;
                self.write(key, chunk)
            }
            None => Ok(()),
        }
    }
}

impl Chunk {
    fn holds_one_more(&self, sizes: Sizes) -> bool {
        self.stretches.len() < sizes.chunk_stretches
            || self
                .stretches
                .last()
                .is_some_and(|last| last.rows < sizes.stretch_rows)
    }

    fn push(&mut self, t: Stamp, sizes: Sizes) {
        match self.stretches.last_mut() {
            Some(last) if last.rows < sizes.stretch_rows => last.rows += 1,
            _ => self.stretches.push(Stretch { first: t, rows: 1 }),
        }
    }
}

fn placed((key, value): Row<CountedKey>) -> Result<PlacedChunk, StoreError> {
    Ok((*key.value(), Chunk::of_row(value.value())?))
}

/// Names the last chunks of a feed along both axes.
pub(in crate::store) fn named_tails(feed: FeedNo) -> [NamedRows; 2] {
    [CountedAxis::Modified, CountedAxis::Created].map(|axis| {
        let key = counted_key(feed, axis.byte(), Stamp::ZERO);
        COUNTED.named_last(&key[..5], TAIL_CHUNKS)
    })
}

/// Takes a commit into the counts of its feed, after its items are written.
pub(in crate::store) fn take_in(
    tx: &dyn RowWriter,
    plan: &PlannedCommit,
) -> Result<(), StoreError> {
    let feed = &plan.receipt.feed;
    if plan.items.is_empty() || feed.items.total <= UNCOUNTED_ITEMS_MAX {
        return Ok(());
    }
    let (no, through) = (feed.no, feed.last_t);
    let mut by_t = Counts::of(tx, no, CountedAxis::Modified, SIZES_IN_USE)?;
    let tail = by_t.chunk_at(Stamp::MAX)?;
    let is_current = tail.is_some_and(|(_, tail)| tail.through == plan.last_t_before);
    let left = plan.items.values().filter_map(|moved| Some(moved.from?.t));
    if !is_current || !by_t.take_out(left.collect())? {
        drop(by_t);
        return count_anew(tx, feed);
    }
    let mut stamps: Vec<Stamp> = plan
        .items
        .values()
        .map(|moved| moved.item.modified)
        .collect();
    stamps.sort_unstable();
    by_t.append(stamps, through)?;
    drop(by_t);
    let new = plan.items.values().filter(|moved| moved.from.is_none());
    let mut created: Vec<Stamp> = new.map(|moved| moved.item.created).collect();
    if created.is_empty() {
        return Ok(());
    }
    created.sort_unstable();
    Counts::of(tx, no, CountedAxis::Created, SIZES_IN_USE)?.append(created, through)
}

/// Counts a feed that was written by another kind of store, if it is long.
#[cfg(feature = "postgres")]
pub(in crate::store) fn count_moved(
    tx: &dyn RowWriter,
    feed: &FeedRecord,
) -> Result<(), StoreError> {
    if feed.items.total <= UNCOUNTED_ITEMS_MAX {
        return Ok(());
    }
    count_anew(tx, feed)
}

/// Counts a feed that was not counted before: one that has become long, or was written by a store
/// that knows no counts.
fn count_anew(tx: &dyn RowWriter, feed: &FeedRecord) -> Result<(), StoreError> {
    tx.edit(COUNTED)?.clear(&feed_key(feed.no))?;
    let (mut created, mut by_t) = (Vec::new(), Vec::new());
    for row in tx.edit(CREATED)?.rows(&feed_key(feed.no)) {
        let (key, t) = row?;
        created.push(stamp_of(key.value()));
        by_t.push(stamp_of(t.value()));
    }
    by_t.sort_unstable();
    for (axis, stamps) in [
        (CountedAxis::Modified, by_t),
        (CountedAxis::Created, created),
    ] {
        Counts::of(tx, feed.no, axis, SIZES_IN_USE)?.append(stamps, feed.last_t)?;
    }
    Ok(())
}

/// Forgets the counts of a feed; the next commit counts it anew.
pub(in crate::store) fn forget(tx: &dyn RowWriter, feed: FeedNo) -> Result<(), StoreError> {
    tx.edit(COUNTED)?.clear(&feed_key(feed))
}

/// The beginning of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct StretchStart {
    /// Rows of the feed before it.
    pub(in crate::store) before: u64,
    /// The stamp from which on its rows stand.
    pub(in crate::store) first: Stamp,
}

/// The last stretch of a feed that begins where this is true; `None` for a feed that is long and
/// not counted. Without counts a short feed is one stretch.
pub(in crate::store) fn last_stretch(
    snapshot: &dyn RowReader,
    feed: &FeedRecord,
    axis: CountedAxis,
    is_in_reach: impl Fn(StretchStart) -> bool,
) -> Result<Option<StretchStart>, StoreError> {
    let mut found = StretchStart {
        before: 0,
        first: Stamp::ZERO,
    };
    if feed.items.total <= UNCOUNTED_ITEMS_MAX {
        return Ok(Some(found));
    }
    let table = snapshot.table(COUNTED)?;
    let of = |axis: CountedAxis| counted_key(feed.no, axis.byte(), Stamp::ZERO);
    let by_t = of(CountedAxis::Modified);
    let tail = table.last_row(&by_t[..5])?.map(placed).transpose()?;
    if tail.is_none_or(|(_, tail)| tail.through != feed.last_t) {
        return Ok(None);
    }
    let mut before = 0;
    for row in table.rows(&of(axis)[..5]) {
        let (_, chunk) = placed(row?)?;
        for Stretch { first, rows } in chunk.stretches {
            let start = StretchStart { before, first };
            if !is_in_reach(start) {
                return Ok(Some(found));
            }
            found = start;
            before += u64::from(rows);
        }
    }
    Ok(Some(found))
}

/// The counts of a feed along an axis as they are stored, each with its first stamp; `None` where
/// it has none that are in force.
pub(in crate::store) fn stored_counts(
    snapshot: &dyn RowReader,
    feed: &FeedRecord,
    axis: CountedAxis,
) -> Result<Option<Vec<(Stamp, u32)>>, StoreError> {
    let table = snapshot.table(COUNTED)?;
    let key = counted_key(feed.no, axis.byte(), Stamp::ZERO);
    let mut counts = Vec::new();
    for row in table.rows(&key[..5]) {
        let (_, chunk) = placed(row?)?;
        counts.extend(chunk.stretches.iter().map(|it| (it.first, it.rows)));
    }
    let is_in_force = last_stretch(snapshot, feed, axis, |_| true)?.is_some();
    Ok(Some(counts).filter(|counts| is_in_force && !counts.is_empty()))
}
