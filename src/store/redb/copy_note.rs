//! Notes in the two files of a copied store, by which only one of them is served; not the copying.

use super::open_file::OpenDatabase;
use crate::store::{
    StoreError,
    rows::{
        open_table::{TableEdit as _, TableSource as _},
        tables::META,
    },
};
use redb::{ReadableDatabase as _, WriteTransaction};
use std::path::Path;

/// Key in META of a store that went on in another file.
pub(super) const LEFT_KEY: &str = "copied_to";

/// Key in META of a copy that is not finished: its source may still be served.
pub(super) const UNFINISHED_KEY: &str = "copied_from";

/// The other file of a copy, and a random number that both have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyNote {
    pub(super) token: [u8; 8],
    pub(super) path: String,
}

impl CopyNote {
    pub(super) fn new(token: [u8; 8], path: &Path) -> Self {
        let path = path.to_string_lossy().into_owned();
        Self { token, path }
    }

    /// The row of it.
    pub(super) fn row(&self) -> Vec<u8> {
        [&self.token[..], self.path.as_bytes()].concat()
    }

    pub(super) fn write(&self, tx: &WriteTransaction, key: &'static str) -> Result<(), StoreError> {
        tx.edit(META)?.insert(key, &self.row()).map(drop)
    }

    pub(super) fn read(open: &OpenDatabase, key: &'static str) -> Result<Option<Self>, StoreError> {
        let row = open.begin_read()?.table(META)?.get(key)?;
        Ok(row.and_then(|row| {
            let (token, path) = row.value().split_first_chunk()?;
            let path = String::from_utf8_lossy(path).into_owned();
            Some(Self {
                token: *token,
                path,
            })
        }))
    }
}

// Decides: Which of two files of a copied store is served?
/// Refuses a store that went on in another file, and a copy that is not finished.
pub(super) fn refuse_copied(open: &OpenDatabase, path: &Path) -> Result<(), StoreError> {
    let path = path.display();
    if let Some(CopyNote { path: to, .. }) = CopyNote::read(open, LEFT_KEY)? {
        return Err(StoreError::Schema(format!(
            "{path} went on in {to}, and is not served any more: two hubs would push. Serve that file, or make a store of its own of this one: `everfeed store copy --keep {path} NEW`"
        )));
    }
    if let Some(CopyNote { path: from, .. }) = CopyNote::read(open, UNFINISHED_KEY)? {
        return Err(StoreError::Schema(format!(
            "{path} is a copy that was not finished. Finish it: `everfeed store copy {from} {path}`"
        )));
    }
    Ok(())
}

/// Takes the notes of a former copy out of a copy.
pub(super) fn forget_notes(tx: &WriteTransaction) -> Result<(), StoreError> {
    let mut meta = tx.edit(META)?;
    meta.remove(LEFT_KEY)?;
    meta.remove(UNFINISHED_KEY)
}
