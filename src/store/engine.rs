//! The contract of an engine: tables of ordered rows, read in one snapshot and written in
//! transactions that are whole or not at all. An engine knows keys and values, and nothing of what
//! they mean: that is written once for all engines, in [`rows`](super::rows).
//!
//! A new engine implements the four traits of this file, and [`Engine`](super::rows::Engine), which
//! runs work in them.

use super::StoreError;
use std::ops::Bound;

/// Bytes of values after which a batch of rows ends, even if more rows were asked for.
pub(in crate::store) const BATCH_BYTES_MAX: usize = 1 << 20;

/// A table, as an engine knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct EngineTable {
    /// Its name in the store.
    pub(in crate::store) name: &'static str,
    /// The form of its keys.
    pub(in crate::store) key: KeyWidth,
}

/// The form of the keys of a table. All are ordered by their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum KeyWidth {
    /// So many bytes.
    Bytes(usize),
    /// A text in UTF-8.
    Text,
}

/// A range of keys, and the part of it that is wanted.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct KeyRange<'k> {
    pub(in crate::store) low: Bound<&'k [u8]>,
    pub(in crate::store) high: Bound<&'k [u8]>,
    /// True to begin with the last row.
    pub(in crate::store) is_reverse: bool,
    /// Rows at most; at least one.
    pub(in crate::store) rows_max: usize,
}

/// A row of a range.
#[derive(Debug)]
pub(in crate::store) struct EngineRow {
    pub(in crate::store) key: Vec<u8>,
    /// The value; or its damage, behind which the other rows come all the same.
    pub(in crate::store) value: Result<Vec<u8>, StoreError>,
}

/// The first rows of a range.
#[derive(Debug, Default)]
pub(in crate::store) struct RowBatch {
    pub(in crate::store) rows: Vec<EngineRow>,
    /// True when there may be more.
    pub(in crate::store) has_more: bool,
}

/// A table that is read.
pub(in crate::store) trait ReadTable {
    /// The value of a key.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// The value of a key, or what is left of it where it is damaged.
    fn get_unchecked(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.get(key)
    }

    /// The first rows of a range: as many as are wanted, or fewer, but at least one, when their
    /// values reach [`BATCH_BYTES_MAX`]. A range that ends before it begins is empty.
    fn range(&self, range: KeyRange<'_>) -> Result<RowBatch, StoreError>;

    /// The number of rows.
    fn count(&self) -> Result<u64, StoreError>;
}

/// A table that is written.
pub(in crate::store) trait WriteTable: ReadTable {
    /// Puts a value at a key. True when one was there.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool, StoreError>;

    /// Takes out the row of a key, if there is one.
    fn remove(&mut self, key: &[u8]) -> Result<(), StoreError>;

    /// Takes out the rows from one key to another that is not before it, both included, damaged ones
    /// too.
    fn remove_range(&mut self, first: &[u8], last: &[u8]) -> Result<(), StoreError>;
}

/// One state of all tables: a snapshot, or a transaction that sees what it has written.
pub(in crate::store) trait RowReader {
    /// Opens a table for reading.
    fn open(&self, table: EngineTable) -> Result<Box<dyn ReadTable + '_>, StoreError>;
}

/// A transaction.
pub(in crate::store) trait RowWriter: RowReader {
    /// Opens a table for writing. While it is open, it may not be opened again.
    fn open_to_write(&self, table: EngineTable) -> Result<Box<dyn WriteTable + '_>, StoreError>;
}
