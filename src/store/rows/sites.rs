//! The memory of sites.

use super::{
    Engine, Writing,
    forgotten::cut_document,
    open_table::{TableEdit as _, TableSource as _},
    reads,
    tables::{DOCUMENTS, FEEDS, FOUND_FEEDS, feed_key},
};
use crate::{
    feed::{legacy_document::LegacyDocument, record::FeedNo},
    store::{
        FoundFeeds, SiteStore, StoreError, StoreFuture,
        engine::{RowLock, RowReader},
    },
};
use std::sync::Arc;

impl<E: Engine> SiteStore for E {
    fn keep_document(&self, feed: FeedNo, document: Arc<LegacyDocument>) -> StoreFuture<'_, ()> {
        self.write(move |writing| keep_document(writing, feed, &document))
    }

    fn document(&self, feed: FeedNo) -> StoreFuture<'_, Option<LegacyDocument>> {
        self.read(move |snapshot| document(snapshot, feed))
    }

    fn keep_found_feeds<'a>(&'a self, site: &'a str, found: FoundFeeds) -> StoreFuture<'a, ()> {
        let site = site.to_owned();
        self.write(move |writing| keep_found_feeds(writing, &site, &found))
    }

    fn found_feeds<'a>(&'a self, site: &'a str) -> StoreFuture<'a, FoundFeeds> {
        let site = site.to_owned();
        self.read(move |snapshot| found_feeds(snapshot, &site))
    }
}

/// Puts a document in the place of the one before.
pub(in crate::store) fn keep_document(
    writing: &mut Writing<'_>,
    feed: FeedNo,
    document: &LegacyDocument,
) -> Result<(), StoreError> {
    let key = feed_key(feed);
    writing
        .look()
        .name(|| vec![FEEDS.named(&key).locked(RowLock::Change), FEEDS.named(&key)])?;
    let record = reads::record(writing.look(), feed)?;
    let Some(document) = cut_document(writing.look(), &record, document.clone())? else {
        return Ok(());
    };
    let mut documents = writing.change().edit(DOCUMENTS)?;
    documents.write(&key, &document)
}

/// The document of a feed.
pub(in crate::store) fn document(
    source: &dyn RowReader,
    feed: FeedNo,
) -> Result<Option<LegacyDocument>, StoreError> {
    source.table(DOCUMENTS)?.read(&feed_key(feed), "a document")
}

/// Puts the feeds that were found on a site in the place of those before.
pub(in crate::store) fn keep_found_feeds(
    writing: &mut Writing<'_>,
    site: &str,
    found: &FoundFeeds,
) -> Result<(), StoreError> {
    writing.change().edit(FOUND_FEEDS)?.write(site, found)
}

/// The feeds that were found on a site.
pub(in crate::store) fn found_feeds(
    source: &dyn RowReader,
    site: &str,
) -> Result<FoundFeeds, StoreError> {
    let found = source
        .table(FOUND_FEEDS)?
        .read(site, "the feeds of a site")?;
    Ok(found.unwrap_or_default())
}
