//! The store in one redb file: one thread writes, a bounded pool reads; the tables are in
//! [`tables`], not here.

pub use super::settings::Config;
use super::{
    BackupReport, StoreError, StoreFuture, Upkeep, Watched,
    condition::{FileFigures, RemovalFaults, StoreCondition},
    engine::RowReader,
    rows::{
        Engine, Writing,
        tables::{ITEMS, stamp_of},
    },
    stored::item::decode_item,
};
use crate::{
    clock::Clock,
    feed::{item::Item, stamp::Stamp},
};
pub use compact::{CompactReport, compact};
use file::{SeenFile, StoreFile};
pub use file::{begin_anew, missing_store};
use guarded::sheltered;
use open_file::{FileOpener as _, OpenFile};
use reader::Reader;
pub use report::{StoreReport, TableReport, report};
pub use restore::{RestoreReport, restore};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
pub use store_copy::{CopyReport, copy_store, move_store};
pub use verify::{DamageEffect, VerifiedKind, VerifyReport, verify};
use writer::Writer;

mod tables;

mod checksummed;

mod guarded;

mod overlay;

mod backup;

mod restore;

mod copy_note;

mod leaving;

mod store_copy;

#[cfg(feature = "postgres")]
pub(super) mod row_moves;

mod compact;

mod report;

mod generation;

mod mark_file;

mod removed_log;

mod removed_again;

mod verify;

mod watched_backend;

mod open_file;

mod commit_order;

mod file;

mod reader;

mod writer;

#[cfg(test)]
mod tests;

/// A store in a file. What was answered with `Ok` is on the disk. Dropping it finishes what was
/// queued, too, but blocks meanwhile; [`Upkeep::close`] does not.
pub struct Redb {
    // Above the reader, and so dropped first: it ends with a commit, for which the file must still
    // be open.
    writer: Writer,
    reader: Reader,
    file: Arc<OpenFile>,
    clock: Arc<dyn Clock>,
    /// True once it is to be closed: a copy under way is given up.
    is_closing: Arc<AtomicBool>,
}

impl Redb {
    /// Opens the file at `path`, which is `config.path` as the caller resolved it, or makes it.
    /// Blocks; after a kill for less than a second (quick repair).
    ///
    /// `Schema` when the file is none of ours or a newer everfeed's, `Failed` when another process
    /// has it open.
    pub fn open(path: &Path, config: &Config, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let file = StoreFile::new(path, config.cache_bytes);
        let now = Stamp::from_micros(clock.now_us());
        let database = sheltered(|| file.open_or_make(now))?;
        Self::over(
            OpenFile::new(Box::new(file), database, clock.clone()),
            clock,
        )
    }

    /// Opens the file at a path to look at it: nothing is written to it and nothing is made, and
    /// what redb mends in it stays in memory. Blocks.
    pub fn look(path: &Path, config: &Config, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let file = SeenFile::new(path, config.cache_bytes);
        let database = sheltered(|| file.open())?;
        Self::over(
            OpenFile::new(Box::new(file), database, clock.clone()),
            clock,
        )
    }

    fn over(file: OpenFile, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let file = Arc::new(file);
        let writer = sheltered(|| Writer::start(Arc::clone(&file), clock.clone()))?;
        Ok(Self {
            writer,
            reader: Reader::new(Arc::clone(&file)),
            file,
            clock,
            is_closing: Arc::default(),
        })
    }
}

impl Engine for Redb {
    fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&dyn RowReader) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(self.reader.run(move |snapshot| work(snapshot)))
    }

    fn read_in_place<T: Send + 'static>(
        &self,
        work: impl Fn(&dyn RowReader) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(self.reader.run_in_place(move |snapshot| work(snapshot)))
    }

    fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Writing<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(self.writer.run(work))
    }
}

impl Watched for Redb {
    fn condition(&self) -> StoreCondition {
        self.file.condition()
    }

    fn figures(&self) -> FileFigures {
        self.file.figures()
    }

    fn keeps_forgotten(&self) -> Option<String> {
        self.file.keeps_forgotten()
    }

    fn ended_uncleanly(&self) -> bool {
        self.file.ended_uncleanly()
    }

    fn restored(&self) -> Option<String> {
        self.file.restored()
    }

    fn removal_faults(&self) -> RemovalFaults {
        self.file.removal_faults()
    }
}

/// Reads an item from the bytes that a file keeps of it under a key that ends with T, for tools
/// that look into a file.
pub fn stored_item(key: &[u8], bytes: &[u8]) -> Result<Item, StoreError> {
    let bytes = checksummed::unseal(ITEMS.name(), key, bytes)?;
    decode_item(stamp_of(key), bytes)
}

impl Upkeep for Redb {
    fn check(&self) -> StoreFuture<'_, ()> {
        self.write(|writing| writing.check_clock())
    }

    fn accept_clock(&self) -> StoreFuture<'_, ()> {
        self.write(|writing| writing.accept_clock())
    }

    fn back_up<'a>(&'a self, file: &'a Path) -> StoreFuture<'a, BackupReport> {
        let (file, stop) = (file.to_owned(), Arc::clone(&self.is_closing));
        let open = Arc::clone(&self.file);
        let now = Stamp::from_micros(self.clock.now_us());
        Box::pin(self.reader.run(move |snapshot| {
            if open.is_at(&file) {
                return Err(StoreError::Failed(format!(
                    "{} is the store itself",
                    file.display()
                )));
            }
            backup::back_up(snapshot, &file, now, &stop)
        }))
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.is_closing.store(true, Ordering::Relaxed);
        Box::pin(async {
            self.writer.close().await?;
            self.reader.close().await;
            Ok(())
        })
    }
}
