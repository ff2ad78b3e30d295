//! New generations of all feeds of a database that lacks what another one gave out: it lost commits,
//! or is a copy. Not how that is noticed.

use super::tables::RowTables;
use crate::store::postgres::wire::{
    session::DatabaseSession,
    statement::{SqlStatement, column, number_column},
};
use crate::{
    feed::{record::FeedRecord, stamp::Stamp},
    store::{
        StoreError,
        content_mark::ContentMark,
        rows::{planned::write_record, reads::records},
        stored::{decode, encode},
    },
};

/// Feeds that are read at once.
const FEEDS_AT_ONCE: usize = 200;

/// Gives each feed a generation that begins at this time, or after the last T that is stored. The
/// answer is its beginning.
pub(in crate::store::postgres) fn begin_all(
    session: &DatabaseSession,
    at: Stamp,
) -> Result<Stamp, StoreError> {
    session.expect_long();
    let tables = RowTables::of(session);
    let mut begins = at;
    // A clock that ran ahead has given out later times.
    for_each_feed(&tables, |feed| {
        begins = begins.max(feed.last_t);
        Ok(())
    })?;
    for_each_feed(&tables, |feed| {
        write_record(&tables, &feed.restored(begins))
    })?;
    tables.flush();
    Ok(begins)
}

fn for_each_feed(
    tables: &RowTables<'_>,
    mut work: impl FnMut(FeedRecord) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let feeds = records(tables, after, FEEDS_AT_ONCE)?;
        let Some(last) = feeds.last() else {
            return Ok(());
        };
        after = Some(last.no);
        feeds.into_iter().try_for_each(&mut work)?;
    }
}

/// The same of a store that goes on where it is. That is noted, for people and for other processes:
/// what they know of the feeds counts no more.
pub(in crate::store::postgres) fn begin_here(
    session: &DatabaseSession,
    at: Stamp,
) -> Result<(), StoreError> {
    let begins = begin_all(session, at)?;
    let held = content_mark(session)?.restored(None, begins);
    let sql = "UPDATE meta SET value = $1 WHERE name = 'content'";
    session.change(SqlStatement::new(sql).with(encode(&held)?));
    let sql = "UPDATE meta SET number = greatest(number + 1, $1) WHERE name = 'restored'";
    session.change(SqlStatement::new(sql).with(number_column(begins.micros())));
    Ok(())
}

/// The mark of the content. It tells the generation of feeds that are made now.
pub(in crate::store::postgres) fn content_mark(
    session: &DatabaseSession,
) -> Result<ContentMark, StoreError> {
    let asked = "SELECT value FROM meta WHERE name = 'content' AND value IS NOT NULL";
    let row = session.row(SqlStatement::new(asked))?;
    let mark: Option<ContentMark> = row
        .map(|row| decode("the mark of the content", column(&row, 0)?))
        .transpose()?;
    Ok(mark.unwrap_or_default())
}
