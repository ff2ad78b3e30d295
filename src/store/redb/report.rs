//! The bytes of a file by table: what stands in rows, what their pages take, and what is free. Not
//! what the rows hold.

use super::{
    checksummed::ChecksummedTable,
    file::SeenFile,
    guarded::sheltered,
    open_file::FileOpener as _,
    tables::{TableVisitor, visit_all},
};
use crate::store::StoreError;
use redb::{Key, ReadTransaction, ReadableDatabase as _, ReadableTableMetadata as _};
use std::{fs::Metadata, path::Path};

/// Memory for pages of the file while it is read, in bytes.
const CACHE_BYTES: usize = 32 << 20;

/// The bytes of a file by table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreReport {
    /// Length of the file.
    pub bytes: u64,
    /// Bytes of it that the disk holds; pages that were never written take none.
    pub disk_bytes: u64,
    /// The tables, the largest first.
    pub tables: Vec<TableReport>,
}

/// The bytes of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableReport {
    /// Its name.
    pub name: &'static str,
    /// Rows in it.
    pub rows: u64,
    /// Bytes of their keys and values, checksums included.
    pub row_bytes: u64,
    /// Bytes of the pages that hold them, and of those that lead there.
    pub page_bytes: u64,
}

impl StoreReport {
    /// Bytes of the pages of all tables.
    pub fn table_bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.page_bytes).sum()
    }

    /// Bytes that no table has: free pages, and what the file keeps of itself.
    pub fn free_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.table_bytes())
    }
}

/// Reads the bytes of the file at a path, which nobody writes meanwhile. Nothing is written. Blocks.
pub fn report(path: &Path) -> Result<StoreReport, StoreError> {
    let file = std::fs::metadata(path)
        .map_err(|error| StoreError::Failed(format!("{}: {error}", path.display())))?;
    let mut tables = sheltered(|| {
        let open = SeenFile::new(path, CACHE_BYTES).open()?;
        let snapshot = open.begin_read()?;
        let mut measured = Measured {
            snapshot: &snapshot,
            tables: Vec::new(),
        };
        visit_all(&mut measured)?;
        Ok(measured.tables)
    })?;
    tables.sort_by_key(|table| std::cmp::Reverse(table.page_bytes));
    Ok(StoreReport {
        bytes: file.len(),
        disk_bytes: disk_bytes(&file),
        tables,
    })
}

#[cfg(unix)]
fn disk_bytes(file: &Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    // Blocks of stat(2) have 512 bytes, whatever those of the disk have.
    file.blocks() * 512
}

/// Elsewhere files have no blocks that the standard library tells.
#[cfg(not(unix))]
fn disk_bytes(file: &Metadata) -> u64 {
    file.len()
}

struct Measured<'a> {
    snapshot: &'a ReadTransaction,
    tables: Vec<TableReport>,
}

impl TableVisitor for Measured<'_> {
    fn visit<K: Key + 'static>(&mut self, table: ChecksummedTable<K>) -> Result<(), StoreError> {
        let open = self.snapshot.open_table(table.definition())?;
        let stats = open.stats()?;
        let row_bytes = stats.stored_bytes();
        self.tables.push(TableReport {
            name: table.name(),
            rows: open.len()?,
            row_bytes,
            page_bytes: row_bytes + stats.metadata_bytes() + stats.fragmented_bytes(),
        });
        Ok(())
    }
}
