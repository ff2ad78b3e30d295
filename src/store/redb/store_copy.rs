//! A store copied to another place. It goes on there with its cursors, and is not served here any
//! more: two hubs would push. Or both go on, and the copy begins new generations without
//! subscriptions. Not the copying of rows.

use super::{
    backup::{copy, folder_of, sync_folder},
    copy_note::{CopyNote, LEFT_KEY, UNFINISHED_KEY, forget_notes, refuse_copied},
    file::{COPY_SUFFIX, SeenFile, StoreFile, copy_place, missing_store},
    generation::COPY_KEY,
    guarded::sheltered,
    leaving::Leaving,
    mark_file::{MarkFile, beside},
    open_file::FileOpener as _,
    removed_log,
    restore::check_source,
    writer::{CONTENT_KEY, content_mark},
};
use crate::{
    feed::stamp::Stamp,
    store::{
        StoreError,
        rows::{
            open_table::TableEdit as _,
            tables::{FEED_SUBSCRIPTIONS, META, POSITIONS, SUBSCRIPTION_KEYS, SUBSCRIPTIONS},
            writing::REWRITE_KEY,
        },
    },
};
use redb::ReadableDatabase as _;
use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

/// Memory for pages of the file while it is copied, in bytes.
const CACHE_BYTES: usize = 32 << 20;

/// A copy of a whole store that is in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyReport {
    /// Values in it.
    pub values: u64,
    /// Length of its file, in bytes.
    pub bytes: u64,
}

/// A step of a copy that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyStep {
    /// The copy is beside its place, whole and durable.
    Copied,
    /// It is in its place, and is not served yet.
    Placed,
    /// The source is not served any more.
    Left,
}

/// Copies a store to a new file, which goes on where this one is; this one is refused from then on.
/// Done again, it finishes a copy that a kill has cut off. Blocks.
///
/// `Failed` when somebody has the store open, when the new file is there already or the disk is full;
/// `Schema` or `Damaged` when the store is none that can be served. Then the store is as it was, byte
/// for byte: it is written to only when the copy is in its place.
pub fn move_store(from: &Path, to: &Path, now: Stamp) -> Result<CopyReport, StoreError> {
    moved(from, to, now, |_| Ok(()))
}

/// The same. Each step is told when it is done, and may be made the last.
pub(super) fn moved(
    from: &Path,
    to: &Path,
    now: Stamp,
    mut done: impl FnMut(CopyStep) -> io::Result<()>,
) -> Result<CopyReport, StoreError> {
    let (from, to) = (absolute(from)?, absolute(to)?);
    check_source(&from, &to)?;
    let source = Leaving::begin(&from)?;
    let begun = begun_copy(&to)?;
    if let Some(left) = CopyNote::read(&source.held, LEFT_KEY)? {
        let is_same = begun
            .as_ref()
            .is_some_and(|begun| begun.token == left.token);
        if !is_same {
            return refuse_copied(&source.held, &from).and(Err(exists(&to)));
        }
        return sheltered(|| finished(&to, 0));
    }
    // It may be an older copy itself, which begins new generations first.
    source.settle(now)?;
    if begun.is_some_and(|begun| Path::new(&begun.path) == from) {
        // The store may have been served since.
        fs::remove_file(&to).map_err(|error| failed(&to, &error))?;
    }
    refuse_place(&to)?;
    sheltered(|| {
        let token = rand::random();
        let place = empty_place(&to)?;
        let (snapshot, never) = (source.held.begin_read()?, AtomicBool::new(false));
        let note = CopyNote::new(token, &from);
        let report = copy(&snapshot, &place, &to, &[], &never, |tx| {
            // A copy has no free pages.
            tx.edit(META)?.remove(REWRITE_KEY)?;
            note.write(tx, UNFINISHED_KEY)
        })?;
        drop(snapshot);
        let told = |error: io::Error| failed(&to, &error);
        done(CopyStep::Copied).map_err(told)?;
        removed_log::copy(&from, &to).map_err(told)?;
        place
            .persist_noclobber(&to)
            .map_err(|error| failed(&to, &error.error))?;
        sync_folder(&folder_of(&to)).map_err(told)?;
        done(CopyStep::Placed).map_err(told)?;
        source.leave(&CopyNote::new(token, &to).row())?;
        done(CopyStep::Left).map_err(told)?;
        finished(&to, report.values)
    })
}

/// Has the copy served from now on.
fn finished(to: &Path, values: u64) -> Result<CopyReport, StoreError> {
    let open = StoreFile::new(to, CACHE_BYTES).open_at_path()?;
    if let Some(content) = content_mark(&open)? {
        MarkFile::beside(to).write_both(&content);
    }
    let mut tx = open.begin_write()?;
    tx.set_quick_repair(true);
    tx.edit(META)?.remove(UNFINISHED_KEY)?;
    tx.commit()?;
    drop(open);
    let bytes = fs::metadata(to).map_or(0, |found| found.len());
    Ok(CopyReport { values, bytes })
}

/// Copies a store that nobody serves to a new file, which begins new generations and has no
/// subscriptions. The store stays as it is. Blocks.
///
/// Errors as those of [`move_store`].
// Limit: a cursor that the store gives out after the copy is not told from one of the copy.
pub fn copy_store(from: &Path, to: &Path, now: Stamp) -> Result<CopyReport, StoreError> {
    let (from, to) = (absolute(from)?, absolute(to)?);
    check_source(&from, &to)?;
    refuse_place(&to)?;
    sheltered(|| {
        let source = SeenFile::new(&from, CACHE_BYTES).open()?;
        let place = empty_place(&to)?;
        let (snapshot, never) = (source.begin_read()?, AtomicBool::new(false));
        let without = [
            SUBSCRIPTIONS.name(),
            POSITIONS.name(),
            SUBSCRIPTION_KEYS.name(),
            FEED_SUBSCRIPTIONS.name(),
        ];
        let report = copy(&snapshot, &place, &to, &without, &never, |tx| {
            forget_notes(tx)?;
            let mut meta = tx.edit(META)?;
            // It is another store from now on.
            meta.remove(CONTENT_KEY)?;
            meta.write(COPY_KEY, &now)
        })?;
        place
            .persist_noclobber(&to)
            .map_err(|error| failed(&to, &error.error))?;
        sync_folder(&folder_of(&to)).map_err(|error| failed(&to, &error))?;
        // New generations begin with the first opening: this one.
        drop(StoreFile::new(&to, CACHE_BYTES).open_or_make(now)?);
        Ok(CopyReport {
            values: report.values,
            bytes: fs::metadata(&to).map_or(0, |found| found.len()),
        })
    })
}

pub(super) fn failed(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Failed(format!("{}: {error}", path.display()))
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    std::path::absolute(path).map_err(|error| failed(path, &error))
}

pub(super) fn exists(to: &Path) -> StoreError {
    StoreError::Failed(format!(
        "{} is there already; give the path of a new file",
        to.display()
    ))
}

/// The note of an unfinished copy at a path, if that is one.
fn begun_copy(to: &Path) -> Result<Option<CopyNote>, StoreError> {
    if !to.is_file() {
        return Ok(None);
    }
    let note = sheltered(|| CopyNote::read(&SeenFile::new(to, 0).open()?, UNFINISHED_KEY));
    note.map_err(|_| exists(to))
}

/// Refuses a place where something is, or where a store was made before.
pub(super) fn refuse_place(to: &Path) -> Result<(), StoreError> {
    match fs::symlink_metadata(to) {
        Ok(_) => Err(exists(to)),
        Err(error) if error.kind() == ErrorKind::NotFound => missing_store(to).map_or(Ok(()), Err),
        Err(error) => Err(failed(to, &error)),
    }
}

/// The place of a copy beside its final one, without what a kill has left there.
pub(super) fn empty_place(to: &Path) -> Result<tempfile::TempPath, StoreError> {
    match fs::remove_file(beside(to, COPY_SUFFIX)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(to, &error)),
        _ => {}
    }
    copy_place(to).map_err(|error| failed(to, &error))
}
