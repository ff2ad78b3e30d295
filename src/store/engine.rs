//! The contract of an engine: tables of ordered rows, read in one snapshot and written in
//! transactions that are whole or not at all. An engine knows keys and values, and nothing of what
//! they mean: that is written once for all engines, in [`rows`](super::rows).
//!
//! Over a network a read is a round trip. So work names the rows that it is about to read and to lock
//! ([`NamedRows`]), and an engine may fetch all of them at once. Rows that were not named are read all
//! the same.
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
    /// True when other processes on the store are told which of its rows were written.
    pub(in crate::store) is_announced: bool,
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

/// Rows that are about to be read or locked, and the rows of other tables to which they lead.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "postgres"),
    allow(dead_code, reason = "a file does nothing with names")
)]
pub(in crate::store) struct NamedRows {
    pub(in crate::store) table: EngineTable,
    pub(in crate::store) which: WhichRows,
    /// The tables behind it, each reached from a row of the one before.
    pub(in crate::store) via: Vec<Via>,
    /// The lock of the last rows that are reached.
    pub(in crate::store) lock: RowLock,
}

/// The rows of a table that are named.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "postgres"),
    allow(dead_code, reason = "a file does nothing with names")
)]
pub(in crate::store) enum WhichRows {
    /// Those of these keys.
    Keys(Vec<Vec<u8>>),
    /// The first rows from one key to another, both included.
    Range {
        first: Vec<u8>,
        last: Vec<u8>,
        /// True to begin with the last row.
        is_reverse: bool,
        rows_max: usize,
    },
}

impl NamedRows {
    /// The same with the rows of a table that they lead to.
    #[must_use]
    pub(in crate::store) fn via(
        mut self,
        table: EngineTable,
        prefix: &[u8],
        part: RowPart,
    ) -> Self {
        self.via.push(Via {
            table,
            prefix: prefix.to_vec(),
            part,
        });
        self
    }

    /// The same with a lock of the last rows.
    #[must_use]
    pub(in crate::store) fn locked(mut self, lock: RowLock) -> Self {
        self.lock = lock;
        self
    }
}

/// A table that is reached from the rows of another one: its key is a prefix with a part of such a
/// row behind it.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "postgres"),
    allow(dead_code, reason = "a file does nothing with names")
)]
pub(in crate::store) struct Via {
    pub(in crate::store) table: EngineTable,
    pub(in crate::store) prefix: Vec<u8>,
    pub(in crate::store) part: RowPart,
}

/// A part of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum RowPart {
    /// The key from this byte on.
    KeyFrom(usize),
    /// The value.
    Value,
}

/// A lock of rows until the end of the transaction. Where transactions run one after another there
/// is nothing to lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::store) enum RowLock {
    /// None: the rows are read.
    None,
    /// No other transaction removes the row.
    Keep,
    /// No other transaction changes the row, or locks it to change it.
    Change,
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
    /// Puts a value at a key, in the place of the one that was there.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError>;

    /// Puts a value at a key that has none; false when it has one. An engine that learns that only
    /// when it commits begins the transaction again.
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<bool, StoreError> {
        if self.get(key)?.is_some() {
            return Ok(false);
        }
        self.put(key, value)?;
        Ok(true)
    }

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

    /// True where naming rows pays.
    fn fetches_named(&self) -> bool {
        false
    }

    /// Locks rows, and fetches those that are named. The locks are taken first; what was read before
    /// them is read again.
    fn prefetch(&self, _named: &[NamedRows]) -> Result<(), StoreError> {
        Ok(())
    }
}

/// A transaction.
pub(in crate::store) trait RowWriter: RowReader {
    /// Opens a table for writing. While it is open, it may not be opened again.
    fn open_to_write(&self, table: EngineTable) -> Result<Box<dyn WriteTable + '_>, StoreError>;
}
