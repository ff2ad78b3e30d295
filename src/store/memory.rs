//! The store in memory: the rows of each table in a map. Nothing in it outlives the process, unless
//! it stands on a [`Disk`].

use super::{
    BackupReport, StoreCondition, StoreError, StoreFuture, Upkeep, Watched,
    clock_guard::ClockGuard,
    content_mark::ContentMark,
    engine::{
        BATCH_BYTES_MAX, EngineRow, EngineTable, KeyRange, ReadTable, RowBatch, RowReader,
        RowWriter, WriteTable,
    },
    rows::{Engine, Writing},
};
use crate::{clock::Clock, feed::stamp::Stamp, locks::lock};
use disk::Unsynced;
use std::{
    cell::RefCell,
    collections::BTreeMap,
    ops::Bound,
    path::Path,
    sync::{Arc, Mutex},
};

mod disk;

pub use disk::{Disk, DiskCopy, DiskPace};

/// A store in memory.
pub struct Memory {
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<MemoryState>>,
    /// The way of writes to a disk; `None` where nothing outlives the process.
    pace: Option<disk::Writer>,
}

#[derive(Clone, Default)]
struct MemoryState {
    is_closed: bool,
    guard: ClockGuard,
    content: ContentMark,
    tables: MemoryTables,
    /// Transactions that a crash may take back, oldest first. Empty without a disk.
    unsynced: Vec<Unsynced>,
    /// True on a disk whose last store was not closed.
    ended_uncleanly: bool,
}

/// The rows of each table, by its name.
type MemoryTables = BTreeMap<&'static str, MemoryTable>;

type MemoryTable = BTreeMap<Vec<u8>, Vec<u8>>;

impl Memory {
    /// An empty store that takes the time from this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            state: Arc::default(),
            pace: None,
        }
    }

    /// Answers when polled, as every store does; the lock is never held across an await.
    fn answer<'a, T: 'a>(
        &'a self,
        work: impl FnOnce(&mut MemoryState, Stamp) -> Result<T, StoreError> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let mut state = lock(&self.state);
            if state.is_closed {
                return Err(StoreError::Closed);
            }
            work(&mut state, Stamp::from_micros(self.clock.now_us()))
        })
    }
}

impl Engine for Memory {
    fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&dyn RowReader) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let read = self.answer(move |state, _| work(&state.tables));
        match &self.pace {
            None => read,
            Some(writer) => writer.read(read),
        }
    }

    fn write<T: Send + 'static>(
        &self,
        mut work: impl FnMut(&mut Writing<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        match &self.pace {
            None => self.answer(move |state, now| state.write(now, &mut work).map(|done| done.0)),
            Some(writer) => writer.write(self.clock.clone(), self.state.clone(), work),
        }
    }
}

impl MemoryState {
    /// Does work in a transaction. Answers with what a crash would take back, too.
    fn write<T>(
        &mut self,
        now: Stamp,
        work: &mut impl FnMut(&mut Writing<'_>) -> Result<T, StoreError>,
    ) -> Result<(T, Unsynced), StoreError> {
        let transaction = Transaction {
            tables: RefCell::new(&mut self.tables),
            replaced: RefCell::default(),
        };
        let mut writing = Writing::over(&transaction, now, self.guard, self.content);
        let done = work(&mut writing);
        let (guard, content) = (writing.guard(), writing.content());
        let is_synced = writing.wants_sync;
        match done {
            Ok(answer) => {
                let unsynced = Unsynced {
                    replaced: transaction.replaced.into_inner(),
                    guard: self.guard,
                    content: self.content,
                    is_synced,
                };
                (self.guard, self.content) = (guard, content);
                Ok((answer, unsynced))
            }
            Err(error) => {
                transaction.undo();
                Err(error)
            }
        }
    }
}

impl RowReader for MemoryTables {
    fn open(&self, table: EngineTable) -> Result<Box<dyn ReadTable + '_>, StoreError> {
        Ok(match self.get(table.name) {
            Some(rows) => Box::new(rows),
            None => Box::new(const { &MemoryTable::new() }),
        })
    }
}

impl ReadTable for &MemoryTable {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(MemoryTable::get(self, key).cloned())
    }

    fn range(&self, range: KeyRange<'_>) -> Result<RowBatch, StoreError> {
        Ok(batch(self, range))
    }

    fn count(&self) -> Result<u64, StoreError> {
        Ok(self.len() as u64)
    }
}

/// The first rows of a range.
fn batch(rows: &MemoryTable, range: KeyRange<'_>) -> RowBatch {
    let mut batch = RowBatch::default();
    if is_empty(range) {
        return batch;
    }
    let mut rows = rows.range::<[u8], _>((range.low, range.high));
    let mut bytes = 0;
    while let Some((key, value)) = if range.is_reverse {
        rows.next_back()
    } else {
        rows.next()
    } {
        bytes += value.len();
        batch.rows.push(EngineRow {
            key: key.clone(),
            value: Ok(value.clone()),
        });
        if batch.rows.len() == range.rows_max || bytes >= BATCH_BYTES_MAX {
            batch.has_more = true;
            break;
        }
    }
    batch
}

/// True for a range that ends before it begins, which a map does not take.
fn is_empty(range: KeyRange<'_>) -> bool {
    match (range.low, range.high) {
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (
            Bound::Included(low) | Bound::Excluded(low),
            Bound::Included(high) | Bound::Excluded(high),
        ) => low >= high,
        _ => false,
    }
}

/// Changes that are undone when the work fails.
struct Transaction<'s> {
    tables: RefCell<&'s mut MemoryTables>,
    /// The rows that were changed, in the order of the changes.
    replaced: RefCell<Vec<Replaced>>,
}

/// A row as it was before a change.
#[derive(Clone)]
struct Replaced {
    table: &'static str,
    key: Vec<u8>,
    value: Option<Vec<u8>>,
}

impl Transaction<'_> {
    fn undo(self) {
        put_back(self.tables.into_inner(), self.replaced.into_inner());
    }
}

/// Puts rows back as they were before changes in this order.
fn put_back(tables: &mut MemoryTables, replaced: Vec<Replaced>) {
    for Replaced { table, key, value } in replaced.into_iter().rev() {
        let table = tables.entry(table).or_default();
        match value {
            Some(value) => drop(table.insert(key, value)),
            None => drop(table.remove(&key)),
        }
    }
}

/// A table in a transaction.
struct TransactionTable<'t, 's> {
    transaction: &'t Transaction<'s>,
    name: &'static str,
}

impl RowReader for Transaction<'_> {
    fn open(&self, table: EngineTable) -> Result<Box<dyn ReadTable + '_>, StoreError> {
        Ok(Box::new(TransactionTable {
            transaction: self,
            name: table.name,
        }))
    }
}

impl RowWriter for Transaction<'_> {
    fn open_to_write(&self, table: EngineTable) -> Result<Box<dyn WriteTable + '_>, StoreError> {
        Ok(Box::new(TransactionTable {
            transaction: self,
            name: table.name,
        }))
    }
}

impl TransactionTable<'_, '_> {
    fn look<T>(&self, work: impl FnOnce(&MemoryTable) -> T) -> T {
        let tables = self.transaction.tables.borrow();
        work(tables.get(self.name).unwrap_or(&MemoryTable::new()))
    }

    /// Changes a row, and remembers the value that it had.
    fn change(&mut self, key: &[u8], value: Option<Vec<u8>>) {
        let mut tables = self.transaction.tables.borrow_mut();
        let table = tables.entry(self.name).or_default();
        let before = match value {
            Some(value) => table.insert(key.to_vec(), value),
            None => table.remove(key),
        };
        let mut replaced = self.transaction.replaced.borrow_mut();
        replaced.push(Replaced {
            table: self.name,
            key: key.to_vec(),
            value: before,
        });
    }
}

impl ReadTable for TransactionTable<'_, '_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.look(|rows| rows.get(key).cloned()))
    }

    fn range(&self, range: KeyRange<'_>) -> Result<RowBatch, StoreError> {
        Ok(self.look(|rows| batch(rows, range)))
    }

    fn count(&self) -> Result<u64, StoreError> {
        Ok(self.look(|rows| rows.len() as u64))
    }
}

impl WriteTable for TransactionTable<'_, '_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.change(key, Some(value.to_vec()));
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.change(key, None);
        Ok(())
    }

    fn remove_range(&mut self, first: &[u8], last: &[u8]) -> Result<(), StoreError> {
        let ends = (Bound::Included(first), Bound::Included(last));
        let going: Vec<Vec<u8>> = self.look(|rows| {
            rows.range::<[u8], _>(ends)
                .map(|(key, _)| key.clone())
                .collect()
        });
        for key in going {
            self.change(&key, None);
        }
        Ok(())
    }
}

impl Watched for Memory {
    fn condition(&self) -> StoreCondition {
        self.pace
            .as_ref()
            .map_or(StoreCondition::Sound, disk::Writer::condition)
    }

    fn ended_uncleanly(&self) -> bool {
        lock(&self.state).ended_uncleanly
    }
}

impl Upkeep for Memory {
    fn back_up<'a>(&'a self, _: &'a Path) -> StoreFuture<'a, BackupReport> {
        Box::pin(async {
            Err(StoreError::Failed(
                "a store in memory has no backups".into(),
            ))
        })
    }

    fn check(&self) -> StoreFuture<'_, ()> {
        self.answer(|state, now| state.guard.check(now))
    }

    fn accept_clock(&self) -> StoreFuture<'_, ()> {
        self.answer(|state, now| {
            state.guard.accept(now);
            Ok(())
        })
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.answer(|state, _| {
            state.is_closed = true;
            Ok(())
        })
    }
}
