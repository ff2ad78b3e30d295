//! The file of a store that nobody serves written anew: every page full, and none free. Not what
//! the rows hold.

use super::{
    file::{RewriteStep, StoreFile, missing_store},
    guarded::sheltered,
    open_file::NotRewritten,
};
use crate::store::StoreError;
use std::{io, path::Path};

/// Memory for pages of the file while it is copied, in bytes.
const CACHE_BYTES: usize = 32 << 20;

/// A store that was written anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactReport {
    /// Length of its file before, in bytes.
    pub before: u64,
    /// Length of its file now, in bytes.
    pub after: u64,
}

/// Puts a copy without free pages in the place of a store, whole or not at all. It takes room for
/// both. Blocks.
///
/// `Failed` when another process has the store open or the disk is full; the store is as it was then.
pub fn compact(path: &Path) -> Result<CompactReport, StoreError> {
    compacted(path, |_| Ok(()))
}

/// The same. Each step is told when it is done, and may be made the last.
pub(super) fn compacted(
    path: &Path,
    done: impl FnMut(RewriteStep) -> io::Result<()>,
) -> Result<CompactReport, StoreError> {
    let length = || {
        std::fs::metadata(path)
            .map(|found| found.len())
            .map_err(|error| StoreError::Failed(format!("{}: {error}", path.display())))
    };
    if let Some(missing) = missing_store(path) {
        return Err(missing);
    }
    let before = length()?;
    if before == 0 {
        return Err(StoreError::Schema(format!("{} is empty", path.display())));
    }
    sheltered(|| {
        let file = StoreFile::new(path, CACHE_BYTES);
        let open = file.open_at_path()?;
        match file.rewritten(&open, done) {
            Ok(anew) => drop(anew),
            Err(NotRewritten::Kept(error) | NotRewritten::Replaced(error)) => return Err(error),
        }
        Ok(())
    })?;
    Ok(CompactReport {
        before,
        after: length()?,
    })
}
