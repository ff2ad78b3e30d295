//! The tables of schema 1 as redb knows them; not what their keys say.

use super::checksummed::{Checksummed, ChecksummedTable, Coded};
use crate::store::{
    StoreError,
    engine::{EngineTable, KeyWidth, ReadTable, RowReader, RowWriter, WriteTable},
    rows::{
        open_table::Table,
        tables::{META, TABLES},
    },
};
use redb::{Key, ReadTransaction, TableDefinition, WriteTransaction};

/// The schema of which this file speaks. Others are refused in [`file`](super::file).
pub(super) const SCHEMA: u32 = 1;

/// The same table as redb knows it: the schema in it is a number that every everfeed can read.
pub(super) const BARE_META: TableDefinition<'_, &str, Coded> = META.definition();

#[cfg(test)]
impl<const N: usize> Table<[u8; N]> {
    /// The table as redb knows it.
    pub(super) const fn definition(self) -> TableDefinition<'static, &'static [u8; N], Coded> {
        ChecksummedTable::new(self.name()).definition()
    }
}

impl Table<str> {
    /// The table as redb knows it.
    pub(super) const fn definition(self) -> TableDefinition<'static, &'static str, Coded> {
        ChecksummedTable::new(self.name()).definition()
    }
}

/// Does something with a table by the type that its keys have in redb.
macro_rules! with_key {
    ($table:expr, $sealed:ident => $work:expr) => {{
        let EngineTable { name, key, .. } = $table;
        with_key!(name, key, $sealed => $work, 4 8 12 13 14 18 20 22 32)
    }};
    ($name:ident, $key:ident, $sealed:ident => $work:expr, $($width:literal)*) => {
        match $key {
            KeyWidth::Text => {
                let $sealed = ChecksummedTable::<&'static str>::new($name);
                $work
            }
            $(KeyWidth::Bytes($width) => {
                let $sealed = ChecksummedTable::<&'static [u8; $width]>::new($name);
                $work
            })*
            KeyWidth::Bytes(other) => Err(StoreError::Failed(format!(
                "no table of the file has keys of {other} bytes"
            ))),
        }
    };
}

/// Something that is done with every table.
pub(super) trait TableVisitor {
    fn visit<K: Key + 'static>(&mut self, table: ChecksummedTable<K>) -> Result<(), StoreError>;
}

/// Goes through all tables.
pub(super) fn visit_all(visitor: &mut impl TableVisitor) -> Result<(), StoreError> {
    for table in TABLES {
        with_key!(table, sealed => visitor.visit(sealed))?;
    }
    Ok(())
}

/// The names of all tables.
pub(super) fn table_names() -> Vec<&'static str> {
    TABLES.iter().map(|table| table.name).collect()
}

/// Makes every table, so that no reader meets a missing one.
pub(super) fn make_all(tx: &WriteTransaction) -> Result<(), StoreError> {
    for table in TABLES {
        tx.open_to_write(table)?;
    }
    Ok(())
}

impl RowReader for ReadTransaction {
    fn open(&self, table: EngineTable) -> Result<Box<dyn ReadTable + '_>, StoreError> {
        with_key!(table, sealed => {
            let open = self.open_table(sealed.definition())?;
            Ok(Box::new(Checksummed::new(sealed, open)))
        })
    }
}

impl RowReader for WriteTransaction {
    fn open(&self, table: EngineTable) -> Result<Box<dyn ReadTable + '_>, StoreError> {
        with_key!(table, sealed => {
            let open = self.open_table(sealed.definition())?;
            Ok(Box::new(Checksummed::new(sealed, open)))
        })
    }
}

impl RowWriter for WriteTransaction {
    fn open_to_write(&self, table: EngineTable) -> Result<Box<dyn WriteTable + '_>, StoreError> {
        with_key!(table, sealed => {
            let open = self.open_table(sealed.definition())?;
            Ok(Box::new(Checksummed::new(sealed, open)))
        })
    }
}

/// Every way in which redb fails is the disk's or the file's fault, never the caller's.
fn fault(error: redb::Error) -> StoreError {
    match error {
        redb::Error::Corrupted(what) => StoreError::Damaged(what),
        redb::Error::TableTypeMismatch { table, .. }
        | redb::Error::TableIsMultimap(table)
        | redb::Error::TableIsNotMultimap(table) => StoreError::Damaged(format!(
            "the kind of the table `{table}` is not the one that it was made with"
        )),
        redb::Error::TableDoesNotExist(table) => {
            StoreError::Damaged(format!("the table `{table}` is missing"))
        }
        other => StoreError::Failed(other.to_string()),
    }
}

impl From<redb::StorageError> for StoreError {
    fn from(error: redb::StorageError) -> Self {
        fault(error.into())
    }
}

impl From<redb::TableError> for StoreError {
    fn from(error: redb::TableError) -> Self {
        fault(error.into())
    }
}

impl From<redb::TransactionError> for StoreError {
    fn from(error: redb::TransactionError) -> Self {
        fault(error.into())
    }
}

impl From<redb::CommitError> for StoreError {
    fn from(error: redb::CommitError) -> Self {
        fault(error.into())
    }
}
