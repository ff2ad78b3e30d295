//! The memory of sites in the file.

use super::{
    forgotten::cut_document,
    rows,
    tables::{DOCUMENTS, FOUND_FEEDS, TableEdit as _, TableSource, feed_key},
    writer::Writing,
};
use crate::{
    feed::{legacy_document::LegacyDocument, record::FeedNo},
    store::{
        FoundFeeds, StoreError,
        stored::{decode, encode},
    },
};

/// Puts a document in the place of the one before.
pub(super) fn keep_document(
    writing: &mut Writing<'_>,
    feed: FeedNo,
    document: &LegacyDocument,
) -> Result<(), StoreError> {
    let record = rows::record(writing.look(), feed)?;
    let Some(document) = cut_document(writing.look(), &record, document.clone())? else {
        return Ok(());
    };
    writing
        .change()
        .edit(DOCUMENTS)?
        .insert(&feed_key(feed), &encode(&document)?)?;
    Ok(())
}

/// The document of a feed.
pub(super) fn document(
    source: &impl TableSource,
    feed: FeedNo,
) -> Result<Option<LegacyDocument>, StoreError> {
    let stored = source.table(DOCUMENTS)?;
    let stored = stored.get(&feed_key(feed))?;
    stored
        .map(|stored| decode("a document", stored.value()))
        .transpose()
}

/// Puts the feeds that were found on a site in the place of those before.
pub(super) fn keep_found_feeds(
    writing: &mut Writing<'_>,
    site: &str,
    found: &FoundFeeds,
) -> Result<(), StoreError> {
    writing
        .change()
        .edit(FOUND_FEEDS)?
        .insert(site, &encode(found)?)?;
    Ok(())
}

/// The feeds that were found on a site.
pub(super) fn found_feeds(source: &impl TableSource, site: &str) -> Result<FoundFeeds, StoreError> {
    let stored = source.table(FOUND_FEEDS)?;
    let stored = stored.get(site)?;
    let found = stored
        .map(|stored| decode("the feeds of a site", stored.value()))
        .transpose()?;
    Ok(found.unwrap_or_default())
}
