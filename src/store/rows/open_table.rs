//! Tables with the types of their keys, over those of an engine; not what the rows mean.

use crate::store::{
    StoreError,
    engine::{
        EngineRow, EngineTable, KeyRange, KeyWidth, NamedRows, ReadTable, RowLock, RowReader,
        RowWriter, WhichRows, WriteTable,
    },
    stored::{StoredKind, damaged, decode, encode},
};
use std::{
    borrow::Borrow,
    collections::VecDeque,
    iter::Map,
    marker::PhantomData,
    ops::{Bound, RangeBounds},
};

/// Rows of the first batch of a range; each of the next ones has twice as many.
const FIRST_BATCH_ROWS: usize = 8;
/// Rows of a batch at most.
const BATCH_ROWS_MAX: usize = 256;

/// A key of a table: an array of bytes, or a text.
pub(in crate::store) trait KeyKind {
    /// Its form.
    const WIDTH: KeyWidth;
    /// A key that was read.
    type Owned: Borrow<Self>;

    /// Its bytes.
    fn bytes(&self) -> &[u8];

    /// Reads a key; `None` for bytes that are none.
    fn of_bytes(bytes: Vec<u8>) -> Option<Self::Owned>;
}

impl<const N: usize> KeyKind for [u8; N] {
    const WIDTH: KeyWidth = KeyWidth::Bytes(N);
    type Owned = Self;

    fn bytes(&self) -> &[u8] {
        self
    }

    fn of_bytes(bytes: Vec<u8>) -> Option<Self> {
        bytes.try_into().ok()
    }
}

impl KeyKind for str {
    const WIDTH: KeyWidth = KeyWidth::Text;
    type Owned = String;

    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    fn of_bytes(bytes: Vec<u8>) -> Option<String> {
        String::from_utf8(bytes).ok()
    }
}

/// A table with keys of a kind.
pub(in crate::store) struct Table<K: ?Sized> {
    name: &'static str,
    is_announced: bool,
    key: PhantomData<fn(&K)>,
}

impl<K: ?Sized> Clone for Table<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: ?Sized> Copy for Table<K> {}

impl<K: KeyKind + ?Sized> Table<K> {
    pub(super) const fn new(name: &'static str) -> Self {
        Self {
            name,
            is_announced: false,
            key: PhantomData,
        }
    }

    /// The same of which other processes are told.
    pub(super) const fn announced(self) -> Self {
        Self {
            is_announced: true,
            ..self
        }
    }

    /// Its name in the store.
    pub(in crate::store) const fn name(self) -> &'static str {
        self.name
    }

    /// The same without the type of its keys.
    pub(in crate::store) const fn of_engine(self) -> EngineTable {
        EngineTable {
            name: self.name,
            key: K::WIDTH,
            is_announced: self.is_announced,
        }
    }

    /// Names a row that is about to be read or locked.
    pub(in crate::store) fn named(self, key: &K) -> NamedRows {
        self.named_all([key])
    }

    /// Names rows that are about to be read or locked.
    pub(in crate::store) fn named_all<'k>(self, keys: impl IntoIterator<Item = &'k K>) -> NamedRows
    where
        K: 'k,
    {
        let keys = keys.into_iter().map(|key| key.bytes().to_vec());
        NamedRows {
            table: self.of_engine(),
            which: WhichRows::Keys(keys.collect()),
            via: Vec::new(),
            lock: RowLock::None,
        }
    }
}

impl<const N: usize> Table<[u8; N]> {
    /// Names the first rows whose keys begin with these bytes.
    pub(in crate::store) fn named_first(self, prefix: &[u8], rows_max: usize) -> NamedRows {
        let (first, last) = ends::<N>(prefix);
        self.named_range(&first, &last, false, rows_max)
    }

    /// Names the last rows whose keys begin with these bytes.
    pub(in crate::store) fn named_last(self, prefix: &[u8], rows_max: usize) -> NamedRows {
        let (first, last) = ends::<N>(prefix);
        self.named_range(&first, &last, true, rows_max)
    }

    /// Names the first or the last rows from one key to another, both included.
    pub(in crate::store) fn named_range(
        self,
        first: &[u8; N],
        last: &[u8; N],
        is_reverse: bool,
        rows_max: usize,
    ) -> NamedRows {
        NamedRows {
            table: self.of_engine(),
            which: WhichRows::Range {
                first: first.to_vec(),
                last: last.to_vec(),
                is_reverse,
                rows_max,
            },
            via: Vec::new(),
            lock: RowLock::None,
        }
    }
}

/// Opens tables for reading.
pub(in crate::store) trait TableSource: RowReader {
    /// A table.
    fn table<K: KeyKind + ?Sized>(&self, table: Table<K>) -> Result<Rows<'_, K>, StoreError> {
        Ok(OpenTable::new(self.open(table.of_engine())?))
    }

    /// Names rows that are about to be read or locked, where that pays.
    fn name(&self, named: impl FnOnce() -> Vec<NamedRows>) -> Result<(), StoreError> {
        if self.fetches_named() {
            self.prefetch(&named())?;
        }
        Ok(())
    }
}

impl<R: RowReader + ?Sized> TableSource for R {}

/// Opens tables for writing.
pub(in crate::store) trait TableEdit: RowWriter {
    /// A table, which is not open otherwise.
    fn edit<K: KeyKind + ?Sized>(&self, table: Table<K>) -> Result<RowsMut<'_, K>, StoreError> {
        Ok(OpenTable::new(self.open_to_write(table.of_engine())?))
    }
}

impl<W: RowWriter + ?Sized> TableEdit for W {}

/// A table that is open.
pub(in crate::store) struct OpenTable<K: ?Sized, T: ?Sized> {
    key: PhantomData<fn(&K)>,
    table: Box<T>,
}

/// A table that is open for reading.
pub(in crate::store) type Rows<'s, K> = OpenTable<K, dyn ReadTable + 's>;

/// A table that is open for writing.
pub(in crate::store) type RowsMut<'s, K> = OpenTable<K, dyn WriteTable + 's>;

/// A key that was read.
pub(in crate::store) struct RowKey<K: KeyKind + ?Sized>(K::Owned);

impl<K: KeyKind + ?Sized> RowKey<K> {
    /// The key.
    pub(in crate::store) fn value(&self) -> &K {
        self.0.borrow()
    }
}

/// A value that was read.
pub(in crate::store) struct RowValue(Vec<u8>);

impl RowValue {
    /// The value.
    pub(in crate::store) fn value(&self) -> &[u8] {
        &self.0
    }
}

/// A row of a range.
pub(in crate::store) type Row<K> = (RowKey<K>, RowValue);

/// A row of a range with its key, whose value may be damaged.
pub(in crate::store) type UncheckedRow<K> = (RowKey<K>, Result<RowValue, StoreError>);

impl<K: KeyKind + ?Sized, T: ?Sized> OpenTable<K, T> {
    fn new(table: Box<T>) -> Self {
        Self {
            key: PhantomData,
            table,
        }
    }
}

impl<K: KeyKind + ?Sized, T: ReadTable + ?Sized> OpenTable<K, T> {
    /// The value of a key.
    pub(in crate::store) fn get(&self, key: &K) -> Result<Option<RowValue>, StoreError> {
        Ok(self.table.get(key.bytes())?.map(RowValue))
    }

    /// The value of a key, or what is left of it where it is damaged.
    pub(in crate::store) fn get_unchecked(&self, key: &K) -> Result<Option<Vec<u8>>, StoreError> {
        self.table.get_unchecked(key.bytes())
    }

    /// The value of a key, decoded. `what` names it in errors.
    pub(in crate::store) fn read<V: StoredKind>(
        &self,
        key: &K,
        what: &str,
    ) -> Result<Option<V>, StoreError> {
        let stored = self.table.get(key.bytes())?;
        stored.map(|stored| decode(what, &stored)).transpose()
    }

    /// The number of rows.
    pub(in crate::store) fn count(&self) -> Result<u64, StoreError> {
        self.table.count()
    }

    /// The first row of a range of keys; an iterator reads a batch of them.
    pub(in crate::store) fn first_in(
        &self,
        range: impl RangeBounds<K>,
    ) -> Result<Option<Row<K>>, StoreError> {
        self.row_at_end(range, false)
    }

    /// The last row of a range of keys; an iterator reads a batch of them.
    pub(in crate::store) fn last_in(
        &self,
        range: impl RangeBounds<K>,
    ) -> Result<Option<Row<K>>, StoreError> {
        self.row_at_end(range, true)
    }

    fn row_at_end(
        &self,
        range: impl RangeBounds<K>,
        is_reverse: bool,
    ) -> Result<Option<Row<K>>, StoreError> {
        let batch = self.table.range(KeyRange {
            low: range.start_bound().map(K::bytes),
            high: range.end_bound().map(K::bytes),
            is_reverse,
            rows_max: 1,
        })?;
        let row = batch.rows.into_iter().next();
        row.map(|row| checked(typed(row))).transpose()
    }

    /// The rows of a range of keys.
    pub(in crate::store) fn range(&self, range: impl RangeBounds<K>) -> CheckedIter<'_, K, T> {
        self.range_unchecked(range).map(checked as Checking<K>)
    }

    /// The same; a row that is damaged is an error beside its key, and the others come after it.
    pub(in crate::store) fn range_unchecked(
        &self,
        range: impl RangeBounds<K>,
    ) -> RowIter<'_, K, T> {
        let bytes = |bound: Bound<&K>| bound.map(|key| key.bytes().to_vec());
        RowIter {
            rows: EngineRows::of(
                &self.table,
                bytes(range.start_bound()),
                bytes(range.end_bound()),
            ),
            key: PhantomData,
        }
    }
}

impl<const N: usize, T: ReadTable + ?Sized> OpenTable<[u8; N], T> {
    /// The first row whose key begins with these bytes.
    pub(in crate::store) fn first_row(
        &self,
        prefix: &[u8],
    ) -> Result<Option<Row<[u8; N]>>, StoreError> {
        let (first, last) = ends(prefix);
        self.first_in(&first..=&last)
    }

    /// The last row whose key begins with these bytes.
    pub(in crate::store) fn last_row(
        &self,
        prefix: &[u8],
    ) -> Result<Option<Row<[u8; N]>>, StoreError> {
        let (first, last) = ends(prefix);
        self.last_in(&first..=&last)
    }

    /// The rows whose keys begin with these bytes.
    pub(in crate::store) fn rows(&self, prefix: &[u8]) -> CheckedIter<'_, [u8; N], T> {
        self.rows_after(prefix, None)
    }

    /// The rows whose keys begin with these bytes and come after a key, if one is given.
    pub(in crate::store) fn rows_after(
        &self,
        prefix: &[u8],
        after: Option<[u8; N]>,
    ) -> CheckedIter<'_, [u8; N], T> {
        self.unchecked_after(prefix, after)
            .map(checked as Checking<[u8; N]>)
    }

    /// The same; a row that is damaged is an error beside its key, and the others come after it.
    pub(in crate::store) fn unchecked_after(
        &self,
        prefix: &[u8],
        after: Option<[u8; N]>,
    ) -> RowIter<'_, [u8; N], T> {
        let (first, last) = ends(prefix);
        let low = match &after {
            Some(after) => Bound::Excluded(after),
            None => Bound::Included(&first),
        };
        self.range_unchecked((low, Bound::Included(&last)))
    }
}

impl<K: KeyKind + ?Sized> RowsMut<'_, K> {
    /// Puts a value at a key.
    pub(in crate::store) fn insert(&mut self, key: &K, value: &[u8]) -> Result<(), StoreError> {
        self.table.put(key.bytes(), value)
    }

    /// Puts a value at a key that has none; false when it has one.
    pub(in crate::store) fn insert_new(
        &mut self,
        key: &K,
        value: &[u8],
    ) -> Result<bool, StoreError> {
        self.table.insert(key.bytes(), value)
    }

    /// Puts a value of a kind at a key.
    pub(in crate::store) fn write<V: StoredKind>(
        &mut self,
        key: &K,
        value: &V,
    ) -> Result<(), StoreError> {
        self.insert(key, &encode(value)?)
    }

    /// Takes out a row.
    pub(in crate::store) fn remove(&mut self, key: &K) -> Result<(), StoreError> {
        self.table.remove(key.bytes())
    }

    /// Keeps the rows whose value is to be kept; that of a damaged one is `None`.
    pub(in crate::store) fn retain(
        &mut self,
        mut keep: impl FnMut(Option<&[u8]>) -> bool,
    ) -> Result<(), StoreError> {
        let mut going = Vec::new();
        let all: (Bound<&K>, Bound<&K>) = (Bound::Unbounded, Bound::Unbounded);
        for row in self.range_unchecked(all) {
            let (key, value) = row?;
            if !keep(value.as_ref().ok().map(RowValue::value)) {
                going.push(key);
            }
        }
        for key in going {
            self.remove(key.value())?;
        }
        Ok(())
    }
}

impl<const N: usize> RowsMut<'_, [u8; N]> {
    /// Takes out the rows whose keys begin with these bytes, damaged ones included.
    pub(in crate::store) fn clear(&mut self, prefix: &[u8]) -> Result<(), StoreError> {
        let (first, last) = ends::<N>(prefix);
        self.table.remove_range(&first, &last)
    }
}

/// The first and the last key that begin with these bytes.
fn ends<const N: usize>(prefix: &[u8]) -> ([u8; N], [u8; N]) {
    let (mut first, mut last) = ([0; N], [u8::MAX; N]);
    first[..prefix.len()].copy_from_slice(prefix);
    last[..prefix.len()].copy_from_slice(prefix);
    (first, last)
}

fn checked<K: KeyKind + ?Sized>(
    row: Result<UncheckedRow<K>, StoreError>,
) -> Result<Row<K>, StoreError> {
    let (key, value) = row?;
    Ok((key, value?))
}

type Checking<K> = fn(Result<UncheckedRow<K>, StoreError>) -> Result<Row<K>, StoreError>;

/// The rows of a range, in which a damaged one is an error.
pub(in crate::store) type CheckedIter<'t, K, T> = Map<RowIter<'t, K, T>, Checking<K>>;

/// The rows of a range from both ends, with keys of a kind.
pub(in crate::store) struct RowIter<'t, K: ?Sized, T: ?Sized> {
    rows: EngineRows<'t, T>,
    key: PhantomData<fn(&K)>,
}

fn typed<K: KeyKind + ?Sized>(row: EngineRow) -> Result<UncheckedRow<K>, StoreError> {
    let key = K::of_bytes(row.key).ok_or_else(|| damaged("a key has another length"))?;
    Ok((RowKey(key), row.value.map(RowValue)))
}

impl<K: KeyKind + ?Sized, T: ReadTable + ?Sized> Iterator for RowIter<'_, K, T> {
    type Item = Result<UncheckedRow<K>, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.rows.next().map(|row| typed(row?))
    }
}

impl<K: KeyKind + ?Sized, T: ReadTable + ?Sized> DoubleEndedIterator for RowIter<'_, K, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.rows.next_back().map(|row| typed(row?))
    }
}

/// The rows of a range from both ends, read in batches.
pub(in crate::store) struct EngineRows<'t, T: ?Sized> {
    table: &'t T,
    /// The range that was not read yet.
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    batch_rows: usize,
    has_more: bool,
    /// Rows that were read from its begin, the next one first.
    front: VecDeque<EngineRow>,
    /// Rows that were read from its end, the next one first.
    back: VecDeque<EngineRow>,
}

impl<'t, T: ReadTable + ?Sized> EngineRows<'t, T> {
    /// All rows of a table.
    pub(in crate::store) fn all(table: &'t T) -> Self {
        Self::of(table, Bound::Unbounded, Bound::Unbounded)
    }

    fn of(table: &'t T, low: Bound<Vec<u8>>, high: Bound<Vec<u8>>) -> Self {
        Self {
            table,
            low,
            high,
            batch_rows: FIRST_BATCH_ROWS,
            has_more: true,
            front: VecDeque::new(),
            back: VecDeque::new(),
        }
    }

    fn take(&mut self, is_reverse: bool) -> Result<Option<EngineRow>, StoreError> {
        let is_empty = if is_reverse {
            self.back.is_empty()
        } else {
            self.front.is_empty()
        };
        if is_empty && self.has_more {
            self.read(is_reverse)?;
        }
        // Behind the last one that was read here stand those that were read from the other end.
        Ok(if is_reverse {
            let other = &mut self.front;
            self.back.pop_front().or_else(|| other.pop_back())
        } else {
            let other = &mut self.back;
            self.front.pop_front().or_else(|| other.pop_back())
        })
    }

    fn read(&mut self, is_reverse: bool) -> Result<(), StoreError> {
        // After an error nothing more is read.
        self.has_more = false;
        let batch = self.table.range(KeyRange {
            low: self.low.as_ref().map(Vec::as_slice),
            high: self.high.as_ref().map(Vec::as_slice),
            is_reverse,
            rows_max: self.batch_rows,
        })?;
        self.has_more = batch.has_more && !batch.rows.is_empty();
        self.batch_rows = (self.batch_rows * 2).min(BATCH_ROWS_MAX);
        if let Some(last) = batch.rows.last().filter(|_| self.has_more) {
            let end = Bound::Excluded(last.key.clone());
            if is_reverse {
                self.high = end;
            } else {
                self.low = end;
            }
        }
        if is_reverse {
            self.back.extend(batch.rows);
        } else {
            self.front.extend(batch.rows);
        }
        Ok(())
    }
}

impl<T: ReadTable + ?Sized> Iterator for EngineRows<'_, T> {
    type Item = Result<EngineRow, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.take(false).transpose()
    }
}

impl<T: ReadTable + ?Sized> DoubleEndedIterator for EngineRows<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.take(true).transpose()
    }
}
