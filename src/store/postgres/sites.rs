//! The memory of sites in the database.

use super::{
    database::DatabaseWriting,
    feed_locks::locked,
    forgotten::{cut_document, write_document},
    rows,
    session::DatabaseSession,
    statement::{SqlStatement, column},
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
    writing: &DatabaseWriting<'_>,
    feed: FeedNo,
    document: &LegacyDocument,
) -> Result<(), StoreError> {
    let session = writing.session;
    let answers = session.ask(vec![locked(vec![feed]), rows::record_asked(feed)])?;
    let record = rows::record_in(feed, &answers[1])?;
    match cut_document(session, &record, document.clone())? {
        Some(document) => write_document(session, feed, &document),
        None => Ok(()),
    }
}

/// Puts the feeds that were found on a site in the place of those before.
pub(super) fn keep_found_feeds(
    writing: &DatabaseWriting<'_>,
    site: &str,
    found: &FoundFeeds,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO found_feeds (site, value) VALUES ($1, $2) \
               ON CONFLICT (site) DO UPDATE SET value = excluded.value";
    let written = SqlStatement::new(sql).with(site).with(encode(found)?);
    writing.move_catalog();
    writing.session.change(written);
    Ok(())
}

/// The feeds that were found on a site.
pub(super) fn found_feeds(session: &DatabaseSession, site: &str) -> Result<FoundFeeds, StoreError> {
    let asked = SqlStatement::new("SELECT value FROM found_feeds WHERE site = $1").with(site);
    match session.row(asked)? {
        Some(row) => decode("the feeds of a site", column(&row, 0)?),
        None => Ok(FoundFeeds::default()),
    }
}
