//! The memory of sites before which we stand, as a store keeps it: the last good documents of their
//! feeds, and the feeds that were found; not when anything of it is kept.

use super::StoreFuture;
use crate::feed::{legacy_document::LegacyDocument, record::FeedNo};
use std::sync::Arc;

/// The memory of sites before which we stand.
pub trait SiteStore: Send + Sync {
    /// Keeps the document of a feed in the place of the one before.
    fn keep_document(&self, feed: FeedNo, document: Arc<LegacyDocument>) -> StoreFuture<'_, ()>;

    /// The document that was kept last; `None` where none was.
    fn document(&self, feed: FeedNo) -> StoreFuture<'_, Option<LegacyDocument>>;

    /// Keeps the feeds that were found on a site, known by the address of its front page, in the
    /// place of those before.
    fn keep_found_feeds<'a>(&'a self, site: &'a str, found: FoundFeeds) -> StoreFuture<'a, ()>;

    /// The feeds that were found on a site; none where nothing was kept.
    fn found_feeds<'a>(&'a self, site: &'a str) -> StoreFuture<'a, FoundFeeds>;
}

/// The feeds that were found on a site, in the order in which they were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundFeeds {
    /// Their paths, with their queries.
    pub paths: Vec<String>,
}
