//! A file as the source or the target of a copy from or to another kind of store: its rows in
//! batches, and the notes by which only one of both is served. Not the other store.

use super::{
    backup::{folder_of, sync_folder},
    copy_note::{LEFT_KEY, UNFINISHED_KEY, refuse_copied},
    file::{SeenFile, StoreFile, check_schema},
    generation::COPY_KEY,
    guarded::sheltered,
    leaving::Leaving,
    mark_file::MarkFile,
    open_file::{FileOpener as _, OpenDatabase},
    sealed::SealedTable,
    store_copy::{absolute, empty_place, exists, failed, refuse_place},
    tables::{TableVisitor, visit_all},
    writer::{CONTENT_KEY, content_mark},
};
use crate::{
    feed::{record::FeedRecord, stamp::Stamp},
    store::{
        StoreError,
        content_mark::ContentMark,
        engine::{EngineTable, RowWriter as _},
        moved_rows::{BATCH_BYTES, META_KEYS, MoveNote, MovedRow},
        rows::{
            counted,
            derived::{LEADING, leads_to},
            open_table::{TableEdit as _, TableSource as _},
            reads,
            tables::{COUNTED, FEEDS, META, SEGMENTS, TABLES, TERMS},
        },
        stored::decode,
    },
};
use redb::{Builder, Database, Key, ReadTransaction, ReadableDatabase as _};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::TempPath;

/// Memory for pages of the file, in bytes.
const CACHE_BYTES: usize = 32 << 20;

/// Feeds that are counted in one transaction.
const FEEDS_AT_ONCE: usize = 256;

/// Tables that a copy does not take over, besides those whose rows lead to others: a feed is counted
/// again, and its words catch up.
const CAUGHT_UP: [EngineTable; 3] = [COUNTED.of_engine(), SEGMENTS.of_engine(), TERMS.of_engine()];

fn is_derived(name: &str) -> bool {
    let mut derived = LEADING.iter().chain(&CAUGHT_UP);
    derived.any(|table| table.name == name)
}

/// Receiver of the rows of a table, a batch at a time.
pub(in crate::store) type Sink<'s> =
    dyn FnMut(&'static str, Vec<MovedRow>) -> Result<(), StoreError> + 's;

/// A file that is copied to another kind of store. Nobody serves it meanwhile, and it stays as it is
/// until it is left.
pub(in crate::store) struct FileSource {
    path: PathBuf,
    held: Held,
}

enum Held {
    ToLeave(Box<Leaving>),
    ToLookAt(OpenDatabase),
}

impl FileSource {
    /// The file at a path, which goes on elsewhere; one that is an older copy begins new generations
    /// first. Blocks.
    pub(in crate::store) fn to_leave(path: &Path, now: Stamp) -> Result<Self, StoreError> {
        let path = absolute(path)?;
        let leaving = Leaving::begin(&path)?;
        if note(&leaving.held, LEFT_KEY)?.is_none() {
            leaving.settle(now)?;
        }
        let held = Held::ToLeave(Box::new(leaving));
        Ok(Self { path, held })
    }

    /// The file at a path, to which nothing is written. Blocks.
    pub(in crate::store) fn to_look_at(path: &Path) -> Result<Self, StoreError> {
        let path = absolute(path)?;
        let held = sheltered(|| SeenFile::new(&path, CACHE_BYTES).open())?;
        let held = Held::ToLookAt(held);
        Ok(Self { path, held })
    }

    fn held(&self) -> &OpenDatabase {
        match &self.held {
            Held::ToLeave(leaving) => &leaving.held,
            Held::ToLookAt(held) => held,
        }
    }

    /// The place of it, in words.
    pub(in crate::store) fn place(&self) -> String {
        self.path.display().to_string()
    }

    /// The note of the store in which it goes on, if it does.
    pub(in crate::store) fn left(&self) -> Result<Option<MoveNote>, StoreError> {
        note(self.held(), LEFT_KEY)
    }

    /// The error of a store that went on elsewhere.
    pub(in crate::store) fn refuse(&self) -> Result<(), StoreError> {
        refuse_copied(self.held(), &self.path)
    }

    /// Notes that it goes on there; it is not served any more. One that is only looked at stays as it
    /// is.
    pub(in crate::store) fn leave(self, note: &MoveNote) -> Result<(), StoreError> {
        match self.held {
            Held::ToLeave(leaving) => leaving.leave(&note.row()),
            Held::ToLookAt(_) => Ok(()),
        }
    }

    /// All of its rows but those of some tables, table by table in batches.
    pub(in crate::store) fn rows(
        &self,
        without: &[&str],
        sink: &mut Sink<'_>,
    ) -> Result<(), StoreError> {
        let snapshot = self.held().begin_read()?;
        sheltered(|| {
            visit_all(&mut Reading {
                snapshot: &snapshot,
                without,
                sink,
            })
        })
    }
}

fn note(held: &OpenDatabase, key: &'static str) -> Result<Option<MoveNote>, StoreError> {
    let row = held.begin_read()?.table(META)?.get(key)?;
    Ok(row.and_then(|row| MoveNote::of_row(row.value())))
}

struct Reading<'a, 's> {
    snapshot: &'a ReadTransaction,
    without: &'a [&'a str],
    sink: &'a mut Sink<'s>,
}

impl TableVisitor for Reading<'_, '_> {
    fn visit<K: Key + 'static>(&mut self, table: SealedTable<K>) -> Result<(), StoreError> {
        let name = table.name();
        if is_derived(name) || self.without.contains(&name) {
            return Ok(());
        }
        let rows = match self.snapshot.open_table(table.definition()) {
            // A file that was written before there was one.
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(()),
            rows => rows?,
        };
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for row in rows.range::<K::SelfType<'_>>(..)? {
            let (key, stored) = row?;
            let key_value = key.value();
            let key = K::as_bytes(&key_value).as_ref().to_vec();
            let is_wanted = META_KEYS.iter().any(|wanted| wanted.as_bytes() == key);
            if name == META.name() && !is_wanted {
                continue;
            }
            let value = super::sealed::unseal(name, &key, stored.value())?.to_vec();
            bytes += key.len() + value.len();
            batch.push(MovedRow { key, value });
            if bytes >= BATCH_BYTES {
                bytes = 0;
                (self.sink)(name, std::mem::take(&mut batch))?;
            }
        }
        if batch.is_empty() {
            return Ok(());
        }
        (self.sink)(name, batch)
    }
}

/// A file that is made of the rows of another kind of store. It appears whole or not at all.
pub(in crate::store) struct FileTarget {
    path: PathBuf,
    place: TempPath,
    file: Database,
    last_t: Stamp,
}

impl FileTarget {
    /// The note of a copy at a path that was begun and not finished.
    pub(in crate::store) fn begun(path: &Path) -> Result<Option<MoveNote>, StoreError> {
        if !path.is_file() {
            return Ok(None);
        }
        let open = sheltered(|| SeenFile::new(path, 0).open()).map_err(|_| exists(path))?;
        note(&open, UNFINISHED_KEY)
    }

    /// Begins a copy beside the place where it will be, which is empty. Blocks.
    pub(in crate::store) fn begin(path: &Path) -> Result<Self, StoreError> {
        let path = absolute(path)?;
        refuse_place(&path)?;
        let place = empty_place(&path)?;
        let made = Builder::new().set_cache_size(CACHE_BYTES).create(&place);
        let file =
            made.map_err(|error| StoreError::Failed(format!("{}: {error}", path.display())))?;
        check_schema(&path, &file)?;
        Ok(Self {
            path,
            place,
            file,
            last_t: Stamp::ZERO,
        })
    }

    /// Writes a batch of rows of a table, and what leads to them.
    pub(in crate::store) fn write(
        &mut self,
        table: &str,
        rows: &[MovedRow],
    ) -> Result<(), StoreError> {
        let tx = self.file.begin_write()?;
        if let Some(known) = TABLES.iter().find(|known| known.name == table) {
            let mut filled = tx.open_to_write(*known)?;
            for row in rows {
                filled.put(&row.key, &row.value)?;
            }
            drop(filled);
            for row in rows {
                for lead in leads_to(*known, &row.key, &row.value)? {
                    let mut leading = tx.open_to_write(lead.table)?;
                    leading.put(&lead.key, &lead.value)?;
                }
                if *known == FEEDS.of_engine() {
                    let record: FeedRecord = decode("a feed", &row.value)?;
                    self.last_t = self.last_t.max(record.last_t);
                }
            }
        }
        Ok(tx.commit()?)
    }

    /// Counts the rows of its long feeds. Their words are indexed by the commits that come.
    fn count_feeds(&self) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let tx = self.file.begin_write()?;
            let records = reads::records(&tx, after, FEEDS_AT_ONCE)?;
            for record in &records {
                counted::count_moved(&tx, record)?;
            }
            tx.commit()?;
            match records.last() {
                Some(last) => after = Some(last.no),
                None => return Ok(()),
            }
        }
    }

    /// Puts the copy in its place, from where it is not served yet: `note` names its source.
    pub(in crate::store) fn put_in_place(self, note: &MoveNote) -> Result<(), StoreError> {
        self.count_feeds()?;
        let tx = self.file.begin_write()?;
        tx.edit(META)?.insert(UNFINISHED_KEY, &note.row())?;
        // Its commits are counted anew, in a store of its own number.
        let mut meta = tx.edit(META)?;
        let held: Option<ContentMark> = meta.read(CONTENT_KEY, "the mark of the content")?;
        let mark = ContentMark {
            store: rand::random(),
            commits: 1,
            last_t: self.last_t,
            generation: held.unwrap_or_default().generation,
        };
        meta.write(CONTENT_KEY, &mark)?;
        drop(meta);
        tx.commit()?;
        self.persist().map(drop)
    }

    /// Puts a copy in its place that begins new generations: it is another store.
    pub(in crate::store) fn put_beside(self, now: Stamp) -> Result<u64, StoreError> {
        self.count_feeds()?;
        let tx = self.file.begin_write()?;
        let mut meta = tx.edit(META)?;
        meta.remove(CONTENT_KEY)?;
        meta.write(COPY_KEY, &now)?;
        drop(meta);
        tx.commit()?;
        let path = self.persist()?;
        // New generations begin with the first opening: this one.
        drop(StoreFile::new(&path, CACHE_BYTES).open_or_make(now)?);
        Ok(length(&path))
    }

    fn persist(self) -> Result<PathBuf, StoreError> {
        let Self {
            path, place, file, ..
        } = self;
        drop(file);
        let told = |error: std::io::Error| failed(&path, &error);
        fs::File::open(&place)
            .and_then(|file| file.sync_all())
            .map_err(told)?;
        place
            .persist_noclobber(&path)
            .map_err(|error| failed(&path, &error.error))?;
        sync_folder(&folder_of(&path)).map_err(told)?;
        Ok(path)
    }

    /// Has a copy in its place served from now on. Its length, in bytes.
    pub(in crate::store) fn finish(path: &Path) -> Result<u64, StoreError> {
        let path = absolute(path)?;
        let open = StoreFile::new(&path, CACHE_BYTES).open_at_path()?;
        if let Some(content) = content_mark(&open)? {
            MarkFile::beside(&path).write_both(&content);
        }
        let mut tx = open.begin_write()?;
        tx.set_quick_repair(true);
        tx.edit(META)?.remove(UNFINISHED_KEY)?;
        tx.commit()?;
        drop(open);
        Ok(length(&path))
    }
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}
