//! A store that is left because it goes on elsewhere. Until then nothing is written to its file, nor
//! to what stands beside it, whatever becomes of the copy. Not the copying.

use super::{
    copy_note::{LEFT_KEY, refuse_copied},
    file::{FoundFile, SeenFile, StoreFile},
    guarded::sheltered,
    open_file::{FileOpener as _, OpenDatabase},
};
use crate::{
    feed::stamp::Stamp,
    store::{
        StoreError,
        rows::{open_table::TableEdit as _, tables::META},
    },
};
use std::path::{Path, PathBuf};

/// Memory for pages of the file, in bytes.
const CACHE_BYTES: usize = 32 << 20;

/// A store on its way to another place.
pub(super) struct Leaving {
    path: PathBuf,
    file: StoreFile,
    found: FoundFile,
    /// The store, held against others. Its changes stay in memory.
    pub(super) held: OpenDatabase,
}

impl Leaving {
    /// Holds the store at a path. `Failed` when somebody serves it, or it cannot be written to;
    /// `Schema` or `Damaged` when it is none that can be served. Blocks.
    pub(super) fn begin(path: &Path) -> Result<Self, StoreError> {
        let held = sheltered(|| SeenFile::new(path, CACHE_BYTES).open())?;
        let file = StoreFile::new(path, CACHE_BYTES);
        let found = file.found()?;
        Ok(Self {
            path: path.to_owned(),
            file,
            found,
            held,
        })
    }

    /// Makes of it, in memory, what a start would: an older copy begins new generations. Refuses
    /// what went on elsewhere already, or is an unfinished copy itself.
    pub(super) fn settle(&self, now: Stamp) -> Result<(), StoreError> {
        refuse_copied(&self.held, &self.path)?;
        sheltered(|| self.file.settle_seen(&self.held, now))
    }

    /// Writes the note of where it goes on; it is not served any more. `Failed` when somebody served
    /// it since it was let go of: then it stays as it is.
    pub(super) fn leave(self, note: &[u8]) -> Result<(), StoreError> {
        let Self {
            file, found, held, ..
        } = self;
        // Nobody can have written to it before, and whoever does now is noticed by the opening.
        drop(held);
        sheltered(|| {
            let open = file.open_found(found)?;
            let mut tx = open.begin_write()?;
            tx.set_quick_repair(true);
            tx.edit(META)?.insert(LEFT_KEY, note)?;
            tx.commit()?;
            file.without_forgotten(open).map(drop)
        })
    }
}
