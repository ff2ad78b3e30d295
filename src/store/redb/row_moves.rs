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
    store_copy::{absolute, empty_place, exists, failed, refuse_place},
    writer::{CONTENT_KEY, content_mark},
};
use crate::{
    feed::{record::FeedRecord, stamp::Stamp},
    store::{
        StoreError,
        content_mark::ContentMark,
        engine::EngineTable,
        moved_rows::{MoveNote, MovedRow, is_derived, read_rows, write_rows},
        rows::{
            counted,
            open_table::{TableEdit as _, TableSource as _},
            reads,
            tables::{FEEDS, META, TABLES},
            word_index,
        },
        stored::decode,
    },
};
use redb::{Builder, Database, ReadableDatabase as _, TableHandle as _};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::TempPath;

/// Memory for pages of the file, in bytes.
const CACHE_BYTES: usize = 32 << 20;

/// Feeds that are counted in one transaction.
const FEEDS_AT_ONCE: usize = 256;

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
        // A file may be of a time before there was a table.
        let held = snapshot.list_tables()?;
        let held: Vec<String> = held.map(|table| table.name().to_owned()).collect();
        let is_wanted = |table: &&EngineTable| {
            let is_held = held.iter().any(|name| *name == table.name);
            is_held && !is_derived(**table) && !without.contains(&table.name)
        };
        sheltered(|| {
            for table in TABLES.iter().filter(is_wanted) {
                read_rows(&snapshot, *table, &mut |rows| sink(table.name, rows))?;
            }
            Ok(())
        })
    }
}

fn note(held: &OpenDatabase, key: &'static str) -> Result<Option<MoveNote>, StoreError> {
    let row = held.begin_read()?.table(META)?.get(key)?;
    Ok(row.and_then(|row| MoveNote::of_row(row.value())))
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
            write_rows(&tx, *known, rows.iter())?;
            if *known == FEEDS.of_engine() {
                for row in rows {
                    let record: FeedRecord = decode("a feed", &row.value)?;
                    self.last_t = self.last_t.max(record.last_t);
                }
            }
        }
        Ok(tx.commit()?)
    }

    /// Counts the rows of its long feeds, and indexes their words.
    fn count_feeds(&self) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let tx = self.file.begin_write()?;
            let records = reads::records(&tx, after, FEEDS_AT_ONCE)?;
            for record in &records {
                counted::count_moved(&tx, record)?;
                word_index::index_moved(&tx, record)?;
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
