//! Lists of feeds.

use super::{
    Engine, Writing,
    open_table::{TableEdit as _, TableSource as _},
    tables::OPML_LISTS,
};
use crate::{
    feed::opml_list::OpmlList,
    store::{OpmlStore, StoreError, StoreFuture, engine::RowReader},
};

impl<E: Engine> OpmlStore for E {
    fn keep_opml_list<'a>(&'a self, name: &'a str, row: Option<OpmlList>) -> StoreFuture<'a, ()> {
        let name = name.to_owned();
        self.write(move |writing| keep(writing, &name, row.as_ref()))
    }

    fn opml_list<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<OpmlList>> {
        let name = name.to_owned();
        self.read(move |snapshot| row(snapshot, &name))
    }
}

/// Puts the row of a list in the place of the one before.
fn keep(writing: &mut Writing<'_>, name: &str, row: Option<&OpmlList>) -> Result<(), StoreError> {
    let mut table = writing.change().edit(OPML_LISTS)?;
    match row {
        Some(row) => table.write(name, row),
        None => table.remove(name),
    }
}

/// The row of a list.
fn row(source: &dyn RowReader, name: &str) -> Result<Option<OpmlList>, StoreError> {
    match source.table(OPML_LISTS)?.read(name, "the row of a list") {
        Err(StoreError::Damaged(why)) => {
            tracing::error!(
                "The row of the list `{name}` is damaged, and begins again. Feeds that the list has paused stay paused: {why}"
            );
            Ok(None)
        }
        row => row,
    }
}
