//! Making and opening the file, and whether it is one of ours; nothing of what it holds.

use super::{
    backup::{copy, folder_of, sync_folder},
    checksummed::ChecksummedTable,
    commit_order::{CommitOrder, was_open},
    copy_note::refuse_copied,
    generation,
    mark_file::{MarkFile, beside},
    open_file::{ALTERED, Astray, FileOpener, NotRewritten, OpenDatabase},
    overlay::Overlay,
    removed_log::RemovedLog,
    tables::{BARE_META, SCHEMA, TableVisitor, make_all, table_names, visit_all},
    watched_backend::{StorageWatch, WatchedBackend},
};
use crate::{
    feed::stamp::Stamp,
    locks::lock,
    store::{
        StoreError,
        condition::RemovalFaults,
        content_mark::ContentMark,
        engine::{EngineTable, RowWriter as _},
        rows::{
            open_table::{KeyKind, Table, TableEdit as _, TableSource as _},
            removed::Removed,
            tables::{EVENTS, INDEX_NOW, META, OPML_LISTS, PUSHED, REGISTRY, SUBSCRIPTIONS, WALKS},
            writing::REWRITE_KEY,
        },
    },
};
use redb::{
    Builder, Database, DatabaseError, Key, ReadTransaction, ReadableDatabase, StorageBackend,
    StorageError, TableError, TableHandle, backends::FileBackend,
};
use std::{
    fs::{File, OpenOptions},
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, atomic::AtomicBool},
};
use tempfile::TempPath;

/// Key in META of the schema: four bytes, big-endian, in every schema to come.
pub(super) const BARE_SCHEMA_KEY: &str = "schema";

/// Length of a store, in bytes, up to which it is written anew while it serves: nothing else is
/// written meanwhile.
const REWRITE_AT_ONCE_BYTES_MAX: u64 = 1 << 30;

/// End of the name of the file beside a store that says that it was made.
const MARKER_SUFFIX: &str = ".made";

/// Content of that file, for people.
const MARKER: &str = "An everfeed store was made beside this file. As long as this file is here, a store that is missing or empty is\nnot replaced by a new one. `everfeed serve --new-store` begins anew.\n";

/// End of the name of the file beside a store that is to take its place.
pub(super) const COPY_SUFFIX: &str = ".anew";

/// The file beside a store that says that it was made.
fn marker(path: &Path) -> PathBuf {
    beside(path, MARKER_SUFFIX)
}

/// A step of writing a file anew that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RewriteStep {
    /// The copy is beside the file, whole and durable.
    Copied,
    /// The copy is in its place.
    Placed,
    /// That is durable, and the copy is open.
    Opened,
}

/// The error of a store that was made at a path and is not there any more, if so: a start would end
/// with it.
pub fn missing_store(path: &Path) -> Option<StoreError> {
    let bytes = std::fs::metadata(path).map_or(0, |found| found.len());
    if bytes > 0 || !marker(path).exists() {
        return None;
    }
    Some(missing(path, path.exists()))
}

fn missing(path: &Path, is_there: bool) -> StoreError {
    let state = if is_there { "is empty" } else { "is missing" };
    StoreError::Missing(format!(
        "{} {state}, although a store was there (says {}). Mount its disk, put the file back or restore a backup. `everfeed serve --new-store` begins a new, empty store",
        path.display(),
        marker(path).display()
    ))
}

/// Allows that a new store is made at this path, where one was before.
pub fn begin_anew(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(marker(path)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The file of a store, by its path.
pub(super) struct StoreFile {
    path: PathBuf,
    cache_bytes: usize,
    /// Length in bytes up to which it is written anew while it serves.
    pub(super) rewrite_at_once_bytes_max: u64,
    mark: MarkFile,
    removed: RemovedLog,
    known: Mutex<KnownFile>,
}

/// A file of a store that is not open yet, as it was found.
pub(super) struct FoundFile {
    storage: (WatchedBackend<FileBackend>, Arc<StorageWatch>),
    identity: (u64, u64),
    order: CommitOrder,
}

/// The file that is open, as far as it is known.
#[derive(Default)]
struct KnownFile {
    /// Device and number; those of the last one while none is open.
    identity: Option<(u64, u64)>,
    watch: Arc<StorageWatch>,
    /// True while its name may not be durable yet.
    is_unsynced: bool,
    /// The reason for which it was not written anew.
    keeps_forgotten: Option<String>,
    /// True when the process before this one has not closed it.
    was_open: bool,
    /// The words for a store that was restored not long ago.
    restored: Option<String>,
}

impl StoreFile {
    pub(super) fn new(path: &Path, cache_bytes: usize) -> Self {
        Self {
            path: path.to_owned(),
            cache_bytes,
            rewrite_at_once_bytes_max: REWRITE_AT_ONCE_BYTES_MAX,
            mark: MarkFile::beside(path),
            removed: RemovedLog::beside(path),
            known: Mutex::default(),
        }
    }

    fn builder(&self) -> Builder {
        let mut builder = Builder::new();
        builder.set_cache_size(self.cache_bytes);
        builder
    }

    fn failed(&self, error: &std::io::Error) -> StoreError {
        StoreError::Failed(format!("{}: {error}", self.path.display()))
    }

    // Decides: May a new store be made where none is?
    /// Opens the store, or makes it. A store that was made is not made again in silence: its file
    /// may be on a disk that is not there now. A store that was restored from a copy begins a new
    /// generation of each feed at `now`.
    pub(super) fn open_or_make(&self, now: Stamp) -> Result<OpenDatabase, StoreError> {
        let marker = marker(&self.path);
        let found = match std::fs::metadata(&self.path) {
            Ok(found) => Some(found.len()),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(self.failed(&error)),
        };
        let was_made = marker.try_exists().map_err(|error| self.failed(&error))?;
        let is_new = found.is_none_or(|bytes| bytes == 0);
        if is_new && was_made {
            return Err(missing(&self.path, found.is_some()));
        }
        if found.is_none() {
            make(&self.path, &self.builder())?;
        }
        let was_open = File::open(&self.path).and_then(|file| was_open(&file));
        self.known().was_open = was_open.map_err(|error| self.failed(&error))?;
        let open = self.open_at_path()?;
        refuse_copied(&open, &self.path)?;
        // Only who has the store open makes one: a kill has left it.
        if let Err(error) = self.remove_copy() {
            tracing::warn!(
                "A copy of the store cannot be removed, and may hold forgotten items: {error}"
            );
        }
        let open = self.without_forgotten(open)?;
        let restored = generation::settle(&open, &self.mark, &self.removed, now)?;
        if let Some(words) = &restored {
            tracing::warn!("{words}");
        }
        self.known().restored = restored;
        if is_new {
            tracing::info!(store.path = %self.path.display(), "Made a new store at {}", self.path.display());
        }
        // A folder that takes no other file is no reason not to serve.
        if !was_made && let Err(error) = std::fs::write(&marker, MARKER) {
            tracing::warn!(
                "Cannot write {}, which would say that a store is here: {error}",
                marker.display()
            );
        }
        Ok(open)
    }

    /// Does to a store that is only looked at what a start would do to this one: holds it against the
    /// mark and the removals beside the file. Its changes stay in memory.
    pub(super) fn settle_seen(&self, seen: &OpenDatabase, now: Stamp) -> Result<(), StoreError> {
        generation::settled(seen, &self.mark, &self.removed, now).map(drop)
    }

    /// The open store, written anew first if its free pages may still hold what was forgotten.
    pub(super) fn without_forgotten(&self, open: OpenDatabase) -> Result<OpenDatabase, StoreError> {
        if !is_rewrite_due(&open)? {
            return Ok(open);
        }
        self.rewritten(&open, |_| Ok(())).or_else(|failed| {
            let (NotRewritten::Kept(error) | NotRewritten::Replaced(error)) = failed;
            tracing::warn!(
                "The store could not be written anew, so free pages of its file still hold forgotten items. The next start tries again: {error}"
            );
            drop(open);
            self.open_at_path()
        })
    }

    pub(super) fn open_at_path(&self) -> Result<OpenDatabase, StoreError> {
        self.open_found(self.found()?)
    }

    /// The file at its path. It is neither locked nor written to before it is opened.
    pub(super) fn found(&self) -> Result<FoundFile, StoreError> {
        if self.known().is_unsynced {
            let path = self.path.canonicalize();
            path.and_then(|path| sync_folder(&folder_of(&path)))
                .map_err(|error| self.failed(&error))?;
            self.known().is_unsynced = false;
        }
        let failed = |error| self.failed(&error);
        let file = OpenOptions::new().read(true).write(true).open(&self.path);
        let file = file.map_err(failed)?;
        let identity = identity(&file.metadata().map_err(failed)?);
        let order = checked_order(&self.path, &file)?;
        let file = FileBackend::new(file).map_err(|error| refusal(&self.path, error))?;
        Ok(FoundFile {
            storage: WatchedBackend::new(file),
            identity,
            order,
        })
    }

    /// Opens a file as it was found; what somebody else has written into it since is a fault.
    pub(super) fn open_found(&self, found: FoundFile) -> Result<OpenDatabase, StoreError> {
        let (backend, watch) = found.storage;
        let open = self.open_over(backend, watch, found.identity)?;
        if found.order == CommitOrder::Unfinished {
            let path = self.path.display();
            tracing::warn!("{path}: {UNFINISHED}");
        }
        Ok(open)
    }

    /// Opens the store in a file of this identity.
    pub(super) fn open_over(
        &self,
        backend: WatchedBackend<impl StorageBackend>,
        watch: Arc<StorageWatch>,
        identity: (u64, u64),
    ) -> Result<OpenDatabase, StoreError> {
        // Known even if it does not open: an attempt that fails has written to it all the same.
        {
            let mut known = self.known();
            known.identity = Some(identity);
            known.watch = Arc::clone(&watch);
        }
        whole(&self.path, &watch, || {
            self.builder().create_with_backend(backend)
        })
    }

    // Decides: When is the store's file written anew?
    /// Puts a copy of the file, which has no free pages, in its place, whole or not at all, and
    /// opens it. Each step is told when it is done, and may be made the last.
    pub(super) fn rewritten(
        &self,
        open: &Database,
        done: impl FnMut(RewriteStep) -> std::io::Result<()>,
    ) -> Result<OpenDatabase, NotRewritten> {
        // A panic leaves this.
        self.known().keeps_forgotten = Some("it was not written anew to the end".to_owned());
        let written = self.written_anew(open, done);
        self.known().keeps_forgotten = match &written {
            Ok(_) => None,
            Err(NotRewritten::Kept(error) | NotRewritten::Replaced(error)) => {
                Some(error.to_string())
            }
        };
        written
    }

    fn written_anew(
        &self,
        open: &Database,
        mut done: impl FnMut(RewriteStep) -> std::io::Result<()>,
    ) -> Result<OpenDatabase, NotRewritten> {
        let failed = |error: std::io::Error| self.failed(&error);
        let (copied, path) = self.copied(open).map_err(NotRewritten::Kept)?;
        let found = std::fs::metadata(&copied)
            .and_then(|found| done(RewriteStep::Copied).map(|()| found))
            .map_err(|error| NotRewritten::Kept(failed(error)))?;
        copied
            .persist(&path)
            .map_err(|error| NotRewritten::Kept(self.not_placed(&error.error)))?;
        // From here on only the new file counts, also when it cannot be opened now.
        {
            let mut known = self.known();
            known.identity = Some(identity(&found));
            known.watch = Arc::default();
            known.is_unsynced = true;
        }
        done(RewriteStep::Placed).map_err(|error| NotRewritten::Replaced(failed(error)))?;
        let opened = self.open_at_path().and_then(|open| {
            done(RewriteStep::Opened).map_err(failed)?;
            let mut tx = open.begin_write()?;
            tx.set_quick_repair(true);
            tx.edit(META)?.remove(REWRITE_KEY)?;
            tx.commit()?;
            Ok(open)
        });
        let open = opened.map_err(NotRewritten::Replaced)?;
        tracing::info!("The store was written anew, without what was forgotten");
        Ok(open)
    }

    /// Copies the file beside its place, which is told, too.
    fn copied(&self, open: &Database) -> Result<(TempPath, PathBuf), StoreError> {
        let snapshot = open.begin_read()?;
        let ours = table_names();
        let mut tables = snapshot.list_tables()?;
        if let Some(other) = tables.find(|table| !ours.contains(&table.name())) {
            return Err(StoreError::Schema(format!(
                "the table `{}` is of a newer everfeed",
                other.name()
            )));
        }
        self.remove_copy()?;
        // A link stays one.
        let path = self.path.canonicalize();
        let path = path.map_err(|error| self.failed(&error))?;
        let place = copy_place(&path).map_err(|error| self.failed(&error))?;
        copy(
            &snapshot,
            &place,
            &path,
            &[],
            &AtomicBool::new(false),
            |_| Ok(()),
        )?;
        Ok((place, path))
    }

    /// Removes a copy that was to take the place of the file. It may hold what is forgotten by now.
    fn remove_copy(&self) -> Result<(), StoreError> {
        let place = self.path.canonicalize();
        let place = place.map(|path| beside(&path, COPY_SUFFIX));
        let place = place.map_err(|error| self.failed(&error))?;
        if place.symlink_metadata().is_err() {
            return Ok(());
        }
        std::fs::remove_file(&place)
            .map_err(|error| StoreError::Failed(format!("{}: {error}", place.display())))
    }

    fn not_placed(&self, error: &std::io::Error) -> StoreError {
        if error.kind() == ErrorKind::ResourceBusy {
            return StoreError::Failed(format!(
                "{} is mounted by itself, so that no other file can take its place; mount its folder instead",
                self.path.display()
            ));
        }
        self.failed(error)
    }

    fn known(&self) -> MutexGuard<'_, KnownFile> {
        lock(&self.known)
    }
}

/// The place of a copy that is to take the place of the store at a path. It goes with the value.
pub(super) fn copy_place(path: &Path) -> std::io::Result<TempPath> {
    let place = beside(path, COPY_SUFFIX);
    let mut name = tempfile::Builder::new();
    // One name, so that a start finds what a kill has left.
    name.prefix(place.file_name().unwrap_or_default())
        .rand_bytes(0);
    Ok(name.tempfile_in(folder_of(path))?.into_temp_path())
}

/// True when something was forgotten that may still stand in free pages of the file.
fn is_rewrite_due(database: &Database) -> Result<bool, StoreError> {
    Ok(database
        .begin_read()?
        .table(META)?
        .get(REWRITE_KEY)?
        .is_some())
}

/// Opens a database that is to be one of ours. A fault of its storage says more than the error that
/// redb makes of it.
pub(super) fn whole(
    path: &Path,
    watch: &Arc<StorageWatch>,
    open: impl FnOnce() -> Result<Database, DatabaseError>,
) -> Result<OpenDatabase, StoreError> {
    let opened = open()
        .map_err(|error| refusal(path, error))
        .and_then(|database| {
            check_schema(path, &database)?;
            Ok(OpenDatabase::new(database, Arc::clone(watch)))
        });
    opened.map_err(|error| match (error, watch.cause()) {
        (StoreError::Failed(_), Some(cause)) => {
            StoreError::Failed(format!("{}: {cause}", path.display()))
        }
        (error, _) => error,
    })
}

impl FileOpener for StoreFile {
    fn open(&self) -> Result<OpenDatabase, StoreError> {
        let path = self.path.display();
        let why = match self.astray() {
            Some(Astray::Missing) => format!("{path} is gone"),
            Some(Astray::Replaced) => format!("{path} is another file by now"),
            Some(Astray::Altered) => ALTERED.to_owned(),
            None => return self.open_at_path(),
        };
        Err(StoreError::Failed(why))
    }

    fn astray(&self) -> Option<Astray> {
        let (known, watch) = {
            let known = self.known();
            (known.identity, Arc::clone(&known.watch))
        };
        match std::fs::metadata(&self.path) {
            Ok(found) if known != Some(identity(&found)) => Some(Astray::Replaced),
            Ok(_) if watch.is_altered(&*self.path) => Some(Astray::Altered),
            Err(error) if error.kind() == ErrorKind::NotFound => Some(Astray::Missing),
            _ => None,
        }
    }

    fn is_at(&self, path: &Path) -> bool {
        let known = self.known().identity;
        std::fs::metadata(path).is_ok_and(|found| known == Some(identity(&found)))
    }

    fn rewrite(&self, open: &OpenDatabase) -> Result<OpenDatabase, NotRewritten> {
        let bytes_max = self.rewrite_at_once_bytes_max;
        if self.bytes() > bytes_max {
            let why = format!(
                "it is longer than {bytes_max} bytes, and nothing could be stored while it is written"
            );
            self.known().keeps_forgotten = Some(why.clone());
            return Err(NotRewritten::Kept(StoreError::Failed(why)));
        }
        self.rewritten(open, |_| Ok(()))
    }

    fn keeps_forgotten(&self) -> Option<String> {
        self.known().keeps_forgotten.clone()
    }

    fn mark(&self, mark: &ContentMark) {
        self.mark.write(mark);
    }

    fn removed(&self, store: u64, removed: &[Removed]) {
        self.removed.append(store, removed);
    }

    fn removal_faults(&self) -> RemovalFaults {
        self.removed.faults()
    }

    fn ended_uncleanly(&self) -> bool {
        self.known().was_open
    }

    fn restored(&self) -> Option<String> {
        self.known().restored.clone()
    }

    fn bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |found| found.len())
    }
}

/// The file of a store that is only looked at.
pub(super) struct SeenFile(StoreFile);

impl SeenFile {
    pub(super) fn new(path: &Path, cache_bytes: usize) -> Self {
        Self(StoreFile::new(path, cache_bytes))
    }
}

impl FileOpener for SeenFile {
    fn open(&self) -> Result<OpenDatabase, StoreError> {
        let StoreFile { path, .. } = &self.0;
        let file = File::open(path).map_err(|error| self.0.failed(&error))?;
        if file.metadata().is_ok_and(|found| found.len() == 0) {
            return Err(StoreError::Missing(format!("{} is empty", path.display())));
        }
        checked_order(path, &file)?;
        let file = FileBackend::new(file).map_err(|error| refusal(path, error))?;
        let overlay = Overlay::new(file).map_err(|error| self.0.failed(&error))?;
        let (backend, watch) = WatchedBackend::new(overlay);
        whole(path, &watch, || {
            self.0.builder().create_with_backend(backend)
        })
    }
}

#[cfg(unix)]
pub(super) fn identity(file: &std::fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (file.dev(), file.ino())
}

/// Elsewhere files have no numbers that the standard library tells: one file is taken for another
/// only when it is missing.
#[cfg(not(unix))]
pub(super) fn identity(_: &std::fs::Metadata) -> (u64, u64) {
    (0, 0)
}

/// Makes a store beside its place and moves it there whole: redb does not take up a file that a
/// kill left half made. Only its owner may read it, because it holds the secrets of subscribers.
fn make(path: &Path, builder: &Builder) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| {
        StoreError::Failed(format!("cannot make the store {}: {error}", path.display()))
    };
    let folder = folder_of(path);
    let place = tempfile::Builder::new()
        .prefix(".everfeed-")
        .suffix(".new")
        .tempfile_in(&folder);
    let place = place.map_err(failed)?.into_temp_path();
    let database = builder
        .create(&place)
        .map_err(|error| refusal(path, error))?;
    check_schema(path, &database)?;
    drop(database);
    match place.persist_noclobber(path) {
        Ok(()) => sync_folder(&folder).map_err(failed),
        // Another process was faster; whoever opens it first has it.
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed(error.error)),
    }
}

/// Checks that the file is of a schema that we read. A file without any table becomes ours.
pub(super) fn check_schema(path: &Path, database: &Database) -> Result<(), StoreError> {
    let snapshot = database.begin_read()?;
    if snapshot.list_tables()?.next().is_none() {
        return write_schema(database);
    }
    let foreign = || {
        StoreError::Schema(format!(
            "{} is a redb file, but no everfeed store",
            path.display()
        ))
    };
    if !snapshot.list_tables()?.any(|table| table.name() == "meta") {
        return Err(foreign());
    }
    let meta = match snapshot.open_table(BARE_META) {
        Ok(meta) => meta,
        Err(TableError::Storage(error)) => return Err(error.into()),
        Err(_) => return Err(foreign()),
    };
    let stored = meta.get(BARE_SCHEMA_KEY)?.ok_or_else(foreign)?;
    let schema = stored.value().first_chunk().copied();
    match schema.map(u32::from_be_bytes) {
        Some(SCHEMA) => {
            check_tables(path, &snapshot)?;
            make_later_tables(database, &snapshot)
        }
        Some(newer) if newer > SCHEMA => Err(StoreError::Schema(format!(
            "{} was written by a newer everfeed: its schema is {newer}, and this one reads up to {SCHEMA}; take the everfeed that wrote it",
            path.display()
        ))),
        Some(older) => Err(older_store(
            path,
            &format!("its schema is {older}, and this one reads from {SCHEMA} on"),
        )),
        None => Err(foreign()),
    }
}

/// The error of a store whose values this everfeed cannot read any more, sound as they are.
fn older_store(path: &Path, how: &str) -> StoreError {
    StoreError::Schema(format!(
        "{} was written by an older everfeed: {how}; take the everfeed that wrote it",
        path.display()
    ))
}

/// Refuses a file of this schema that has not all tables and values of today.
fn check_tables(path: &Path, snapshot: &ReadTransaction) -> Result<(), StoreError> {
    visit_all(&mut TodaysTables { path, snapshot })?;
    let is_first = |value: &[u8]| value.first() == Some(&1);
    let older = if has_older(snapshot, SUBSCRIPTIONS, is_first) {
        "its subscriptions are of version 1, and this one reads version 2"
    } else if has_older(snapshot, WALKS, is_first) {
        "its archive walks are of version 1, and this one reads version 2"
    } else {
        return Ok(());
    };
    Err(older_store(path, older))
}

/// Tables that the first files of this schema do not have.
const LATER_TABLES: [EngineTable; 5] = [
    REGISTRY.of_engine(),
    EVENTS.of_engine(),
    PUSHED.of_engine(),
    INDEX_NOW.of_engine(),
    OPML_LISTS.of_engine(),
];

/// Makes the tables that a file lacks because it was written before there were any.
fn make_later_tables(database: &Database, snapshot: &ReadTransaction) -> Result<(), StoreError> {
    let held: Vec<String> = snapshot
        .list_tables()?
        .map(|table| table.name().to_owned())
        .collect();
    let lacking = LATER_TABLES
        .into_iter()
        .filter(|table| !held.iter().any(|name| name == table.name));
    let lacking: Vec<EngineTable> = lacking.collect();
    if lacking.is_empty() {
        return Ok(());
    }
    let mut tx = database.begin_write()?;
    tx.set_quick_repair(true);
    for table in lacking {
        tx.open_to_write(table)?;
    }
    Ok(tx.commit()?)
}

/// Compares the tables of a file with those that we know by the same names.
struct TodaysTables<'a> {
    path: &'a Path,
    snapshot: &'a ReadTransaction,
}

impl TableVisitor for TodaysTables<'_> {
    fn visit<K: Key + 'static>(&mut self, table: ChecksummedTable<K>) -> Result<(), StoreError> {
        let name = table.name();
        let how = match self.snapshot.open_table(table.definition()) {
            // It is made.
            Err(TableError::TableDoesNotExist(_))
                if LATER_TABLES.iter().any(|table| table.name == name) =>
            {
                return Ok(());
            }
            Err(TableError::TableDoesNotExist(_)) => format!("it has no table `{name}`"),
            Err(
                TableError::TableTypeMismatch { .. } | TableError::TypeDefinitionChanged { .. },
            ) => format!("its table `{name}` holds other values than today's"),
            // Whatever else is wrong with it is met where it is read.
            _ => return Ok(()),
        };
        Err(older_store(self.path, &how))
    }
}

/// True for a table with a value of an older version. What is damaged is met where it is read.
fn has_older<K: KeyKind>(
    snapshot: &ReadTransaction,
    table: Table<K>,
    is_older: impl Fn(&[u8]) -> bool,
) -> bool {
    let Ok(table) = snapshot.table(table) else {
        return false;
    };
    let mut rows = table.range(..);
    rows.any(|row| row.is_ok_and(|(_, value)| is_older(value.value())))
}

fn write_schema(database: &Database) -> Result<(), StoreError> {
    let mut tx = database.begin_write()?;
    tx.set_quick_repair(true);
    make_all(&tx)?;
    tx.open_table(BARE_META)?
        .insert(BARE_SCHEMA_KEY, SCHEMA.to_be_bytes().as_slice())?;
    Ok(tx.commit()?)
}

/// The words on a file that was not closed and holds a newer commit than the one in force.
pub(super) const UNFINISHED: &str = "the file was not closed, and a commit that did not end stands in it. It was under way when the process died, or the first bytes of the file are damaged";

// Decides: Is an older state of the file taken for the newest?
/// The order of the commits in a file. One that was closed and names an older commit is refused:
/// redb would go on from there, and write over the newest one.
pub(super) fn checked_order(path: &Path, file: &File) -> Result<CommitOrder, StoreError> {
    let path = path.display();
    match CommitOrder::of(file) {
        Ok(CommitOrder::Older) => Err(StoreError::Damaged(format!(
            "{path}: its first bytes name an older commit than the newest one"
        ))),
        Ok(order) => Ok(order),
        Err(error) => Err(StoreError::Failed(format!("{path}: {error}"))),
    }
}

/// Message for the operator when redb does not open a file.
pub(super) fn refusal(path: &Path, error: DatabaseError) -> StoreError {
    let path = path.display();
    match error {
        DatabaseError::DatabaseAlreadyOpen => StoreError::Failed(format!(
            "{path} is open in another process; is everfeed already running?"
        )),
        DatabaseError::UpgradeRequired(version) => StoreError::Schema(format!(
            "{path} was written by an older everfeed (redb format {version}), and this one does not read it. Use the everfeed that wrote it"
        )),
        DatabaseError::Storage(StorageError::Io(error))
            if error.kind() == ErrorKind::InvalidData =>
        {
            StoreError::Schema(format!("{path} is no everfeed store: {error}"))
        }
        DatabaseError::Storage(StorageError::Corrupted(what)) => {
            StoreError::Damaged(format!("{path}: {what}"))
        }
        other => StoreError::Failed(format!("cannot open {path}: {other}")),
    }
}
