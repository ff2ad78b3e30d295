//! A backup put in the place of a store that nobody serves; not what a restored store tells its
//! readers.

use super::{
    backup::{copy, folder_of, mark_as_backup, sync_folder},
    copy_note::forget_notes,
    file::{COPY_SUFFIX, SeenFile, StoreFile, copy_place, identity, refusal},
    generation::copied_at,
    guarded::sheltered,
    mark_file::beside,
    open_file::FileOpener as _,
    verify::verify,
    writer::content_mark,
};
use crate::{feed::stamp::Stamp, store::StoreError};
use redb::{
    BackendError, DatabaseError, ReadableDatabase as _, StorageBackend as _, backends::FileBackend,
};
use std::{
    fs::{self, OpenOptions},
    io::{self, ErrorKind},
    ops::Bound,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

/// A store that was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    /// Values in it.
    pub values: u64,
    /// Length of its file, in bytes.
    pub bytes: u64,
    /// The file of the store that was there before; `None` where none was.
    pub kept: Option<PathBuf>,
}

/// A step of a restore that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RestoreStep {
    /// The copy is beside the place, whole and durable.
    Copied,
    /// The store that was there has a second name.
    Kept,
    /// The copy is in the place of the store.
    Placed,
}

/// Puts a copy of a backup in the place of a store, whole or not at all, and begins new
/// generations. The store that was there is kept under another name. Blocks.
///
/// `Failed` when somebody has either file open, `Schema` or `Damaged` when the backup is none that
/// can be served; the store is as it was then.
pub fn restore(from: &Path, to: &Path, now: Stamp) -> Result<RestoreReport, StoreError> {
    restored(from, to, now, |_| Ok(()))
}

/// The same. Each step is told when it is done, and may be made the last.
pub(super) fn restored(
    from: &Path,
    to: &Path,
    now: Stamp,
    mut done: impl FnMut(RestoreStep) -> io::Result<()>,
) -> Result<RestoreReport, StoreError> {
    let of_place = |error: io::Error| StoreError::Failed(format!("{}: {error}", to.display()));
    check_source(from, to)?;
    // A link stays one.
    let path = match to.canonicalize() {
        Err(error) if error.kind() == ErrorKind::NotFound => to.to_owned(),
        path => path.map_err(of_place)?,
    };
    let held = lock_store(&path)?;
    match fs::remove_file(beside(&path, COPY_SUFFIX)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(of_place(error)),
        _ => {}
    }
    let place = copy_place(&path).map_err(of_place)?;
    let backup = sheltered(|| SeenFile::new(from, 0).open())?;
    let report = sheltered(|| {
        // A plain copy of a store does not say of which time it is.
        let last_t = content_mark(&backup)?.map_or(now, |content| content.last_t);
        let made_at = copied_at(&backup)?.unwrap_or(last_t);
        let snapshot = backup.begin_read()?;
        let never = AtomicBool::new(false);
        copy(&snapshot, &place, &path, &[], &never, |tx| {
            forget_notes(tx)?;
            mark_as_backup(tx, made_at)
        })
    })?;
    drop(backup);
    done(RestoreStep::Copied).map_err(of_place)?;
    let kept = match &held {
        Some(_) => Some(keep(&path, now).map_err(of_place)?),
        None => None,
    };
    done(RestoreStep::Kept).map_err(of_place)?;
    place
        .persist(&path)
        .map_err(|error| of_place(error.error))?;
    sync_folder(&folder_of(&path)).map_err(of_place)?;
    done(RestoreStep::Placed).map_err(of_place)?;
    if let Some(held) = held {
        held.close().map_err(of_place)?;
    }
    // New generations begin with the first opening: this one.
    drop(sheltered(|| StoreFile::new(&path, 0).open_or_make(now))?);
    Ok(RestoreReport {
        values: report.values,
        bytes: report.bytes,
        kept,
    })
}

/// Refuses what is no file to serve from.
pub(super) fn check_source(from: &Path, to: &Path) -> Result<(), StoreError> {
    let found = fs::metadata(from)
        .map_err(|error| StoreError::Failed(format!("{}: {error}", from.display())))?;
    if !found.is_file() {
        return Err(StoreError::Failed(format!("{} is no file", from.display())));
    }
    if fs::metadata(to).is_ok_and(|place| identity(&place) == identity(&found)) {
        return Err(StoreError::Failed(format!(
            "{} is the store itself",
            from.display()
        )));
    }
    let report = verify(from)?;
    if report.is_sound() {
        return Ok(());
    }
    let first = report.faults.first().map_or("", String::as_str);
    let by_hand = match report.refused_start {
        None => "; everfeed starts with the file as it is, and serves what is not damaged",
        Some(_) => "",
    };
    Err(StoreError::Damaged(format!(
        "{} has {} faults and is not taken{by_hand}; the first: {first}",
        from.display(),
        report.faults_total
    )))
}

/// Locks the store at a path, so that nobody begins to serve it; `None` where there is none.
fn lock_store(path: &Path) -> Result<Option<FileBackend>, StoreError> {
    let failed = |error: io::Error| StoreError::Failed(format!("{}: {error}", path.display()));
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => {
            let locked = FileBackend::new(file).map_err(|error| refusal(path, error))?;
            // All of it: whoever has a store open holds a lock on some of it.
            match locked.try_lock_range(Bound::Unbounded, Bound::Unbounded) {
                Ok(false) => Err(refusal(path, DatabaseError::DatabaseAlreadyOpen)),
                Ok(true) | Err(BackendError::Unsupported) => Ok(Some(locked)),
                Err(error) => Err(StoreError::Failed(format!(
                    "{} cannot be locked: {error}",
                    path.display()
                ))),
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// Gives the store at a path a second name, under which it stays.
fn keep(path: &Path, now: Stamp) -> io::Result<PathBuf> {
    let time = now.rfc3339().replace([':', '-'], "");
    let time = time.split('.').next().unwrap_or_default();
    let time = time.trim_end_matches('Z');
    for again in 0..100 {
        let suffix = match again {
            0 => format!(".before-{time}"),
            again => format!(".before-{time}-{again}"),
        };
        let kept = beside(path, &suffix);
        match fs::hard_link(path, &kept) {
            Ok(()) => return Ok(kept),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            // A file system without links. The marker beside the store keeps a start from making a
            // new one meanwhile.
            Err(_) => return fs::rename(path, &kept).map(|()| kept),
        }
    }
    Err(io::Error::from(ErrorKind::AlreadyExists))
}
