//! `IndexNow` as a store keeps it: a row for each site that uses it, with its key and its cursors; not
//! what is sent.

use super::StoreFuture;
use crate::feed::index_now::IndexNow;

/// `IndexNow` of the sites before which we stand.
pub trait IndexNowStore: Send + Sync {
    /// Keeps the row of a site, known by the address of its front page, in the place of the one
    /// before; `None` removes it.
    fn keep_index_now<'a>(&'a self, site: &'a str, row: Option<IndexNow>) -> StoreFuture<'a, ()>;

    /// The row of a site; `None` where none is kept. A damaged one is as if there were none, and is
    /// logged: the site gets another key.
    fn index_now<'a>(&'a self, site: &'a str) -> StoreFuture<'a, Option<IndexNow>>;
}
