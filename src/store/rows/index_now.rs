//! `IndexNow`.

use super::{
    Engine, Writing,
    open_table::{TableEdit as _, TableSource as _},
    tables::INDEX_NOW,
};
use crate::{
    feed::index_now::IndexNow,
    store::{IndexNowStore, StoreError, StoreFuture, engine::RowReader},
};

impl<E: Engine> IndexNowStore for E {
    fn keep_index_now<'a>(&'a self, site: &'a str, row: Option<IndexNow>) -> StoreFuture<'a, ()> {
        let site = site.to_owned();
        self.write(move |writing| keep(writing, &site, row.as_ref()))
    }

    fn index_now<'a>(&'a self, site: &'a str) -> StoreFuture<'a, Option<IndexNow>> {
        let site = site.to_owned();
        self.read(move |snapshot| row(snapshot, &site))
    }
}

/// Puts the row of a site in the place of the one before.
fn keep(writing: &mut Writing<'_>, site: &str, row: Option<&IndexNow>) -> Result<(), StoreError> {
    let mut table = writing.change().edit(INDEX_NOW)?;
    match row {
        Some(row) => table.write(site, row),
        None => table.remove(site),
    }
}

/// The row of a site.
fn row(source: &dyn RowReader, site: &str) -> Result<Option<IndexNow>, StoreError> {
    match source.table(INDEX_NOW)?.read(site, "the row of IndexNow") {
        Err(StoreError::Damaged(why)) => {
            tracing::error!("The row of IndexNow of {site} is damaged, and begins again: {why}");
            Ok(None)
        }
        row => row,
    }
}
