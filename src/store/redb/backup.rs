//! A copy of a whole store, made from one snapshot while the store goes on; not when one is made.

use super::{
    checksummed::{ChecksummedTable, Coded, unseal},
    generation::COPY_KEY,
    tables::{TableVisitor, visit_all},
};
use crate::{
    feed::stamp::Stamp,
    store::{
        StoreError,
        condition::BackupReport,
        rows::{open_table::TableEdit as _, tables::META},
    },
};
use redb::{Builder, Database, Key, ReadTransaction, WriteTransaction};
use std::{
    fs::File,
    io::{ErrorKind, Read as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

/// Bytes of rows that are copied in one transaction, and so are in memory at once.
const CHUNK_BYTES: usize = 4 << 20;

/// Memory for pages of the copy, in bytes.
const CACHE_BYTES: usize = 8 << 20;

/// The first bytes of a redb file.
const MAGIC: &[u8; 4] = b"redb";

/// Copies a snapshot to a file, which appears whole or not at all. Only another copy is written
/// over. It says of itself that it was copied at `now`, so that whoever serves it begins new
/// generations. Blocks; `stop` ends it early.
pub(super) fn back_up(
    snapshot: &ReadTransaction,
    path: &Path,
    now: Stamp,
    stop: &AtomicBool,
) -> Result<BackupReport, StoreError> {
    let failed = |error: std::io::Error| StoreError::Failed(format!("{}: {error}", path.display()));
    refuse_other_files(path)?;
    let folder = folder_of(path);
    // Only its owner may read it, as the store itself.
    let place = tempfile::Builder::new()
        .prefix(".everfeed-")
        .suffix(".backup")
        .tempfile_in(&folder);
    let place = place.map_err(failed)?.into_temp_path();
    let mut report = copy(snapshot, &place, path, &[], stop, |tx| {
        mark_as_backup(tx, now)
    })?;
    report.values += 1;
    place.persist(path).map_err(|error| failed(error.error))?;
    sync_folder(&folder).map_err(failed)?;
    Ok(report)
}

/// The folder of a file.
pub(super) fn folder_of(path: &Path) -> PathBuf {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Makes the names of its files durable.
pub(super) fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Has a copy say of itself that it was made then, so that whoever serves it begins new generations.
pub(super) fn mark_as_backup(tx: &WriteTransaction, now: Stamp) -> Result<(), StoreError> {
    tx.edit(META)?.write(COPY_KEY, &now)
}

/// Copies a snapshot to an empty file, durably; `path` is the one that it is for. Some tables may be
/// left empty, and `last` changes the rest once it is there.
pub(super) fn copy(
    snapshot: &ReadTransaction,
    place: &Path,
    path: &Path,
    without: &[&str],
    stop: &AtomicBool,
    last: impl FnOnce(&WriteTransaction) -> Result<(), StoreError>,
) -> Result<BackupReport, StoreError> {
    let failed = |error: std::io::Error| StoreError::Failed(format!("{}: {error}", path.display()));
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    let target = builder.create(place).map_err(of_target(path))?;
    let mut copy = Copying {
        snapshot,
        target,
        without,
        stop,
        path,
        report: BackupReport::default(),
    };
    visit_all(&mut copy)?;
    let Copying {
        target, mut report, ..
    } = copy;
    let tx = target.begin_write().map_err(of_target(path))?;
    last(&tx)?;
    tx.commit().map_err(of_target(path))?;
    drop(target);
    let file = File::open(place).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    report.bytes = file.metadata().map_err(failed)?.len();
    Ok(report)
}

/// A fault of the copy, which is none of the store.
fn of_target<E: Into<redb::Error>>(path: &Path) -> impl Fn(E) -> StoreError {
    move |error| StoreError::Failed(format!("cannot write {}: {}", path.display(), error.into()))
}

fn refuse_other_files(path: &Path) -> Result<(), StoreError> {
    let mut start = [0; MAGIC.len()];
    match File::open(path).and_then(|mut file| file.read_exact(&mut start)) {
        Ok(()) if start == *MAGIC => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        _ => Err(StoreError::Failed(format!(
            "{} is there already and is no backup; give the path of a new file",
            path.display()
        ))),
    }
}

/// A copy on its way.
struct Copying<'a> {
    snapshot: &'a ReadTransaction,
    target: Database,
    /// Names of tables that are left empty.
    without: &'a [&'a str],
    stop: &'a AtomicBool,
    path: &'a Path,
    report: BackupReport,
}

impl TableVisitor for Copying<'_> {
    fn visit<K: Key + 'static>(&mut self, table: ChecksummedTable<K>) -> Result<(), StoreError> {
        let source = self.snapshot.open_table(table.definition())?;
        let rows = source.range::<K::SelfType<'_>>(..)?;
        let rows_max = if self.without.contains(&table.name()) {
            0
        } else {
            usize::MAX
        };
        let mut rows = rows.take(rows_max).peekable();
        // A table without rows is made, too.
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(StoreError::Closed);
            }
            let tx = self.target.begin_write().map_err(of_target(self.path))?;
            let mut bytes = 0;
            {
                let mut copied = tx
                    .open_table(table.definition())
                    .map_err(of_target(self.path))?;
                while bytes < CHUNK_BYTES
                    && let Some(row) = rows.next()
                {
                    let (key, stored): (_, redb::AccessGuard<'_, Coded>) = row?;
                    let key_value = key.value();
                    let key_bytes = K::as_bytes(&key_value);
                    // The schema in META has no checksum.
                    if table.name() != META.name()
                        && unseal(table.name(), key_bytes.as_ref(), stored.value()).is_err()
                    {
                        self.report.damaged += 1;
                    }
                    bytes += key_bytes.as_ref().len() + stored.value().len();
                    copied
                        .insert(&key_value, stored.value())
                        .map_err(of_target(self.path))?;
                    self.report.values += 1;
                }
            }
            tx.commit().map_err(of_target(self.path))?;
            if rows.peek().is_none() {
                return Ok(());
            }
        }
    }
}
