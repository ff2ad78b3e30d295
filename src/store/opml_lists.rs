//! Lists of feeds (OPML) that are read at intervals, as a store keeps them: a row for each; not how
//! one is read.

use super::StoreFuture;
use crate::feed::opml_list::OpmlList;

/// The lists of feeds that the configuration names.
pub trait OpmlStore: Send + Sync {
    /// Keeps the row of a list, known by its name, in the place of the one before; `None` removes it.
    fn keep_opml_list<'a>(&'a self, name: &'a str, row: Option<OpmlList>) -> StoreFuture<'a, ()>;

    /// The row of a list; `None` where none is kept. A damaged one is as if there were none, and is
    /// logged: the feeds that the list has paused stay paused.
    fn opml_list<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<OpmlList>>;
}
