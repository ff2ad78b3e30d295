//! Staged pages of archives, each by its number; not what becomes of them.

use super::{
    session::DatabaseSession,
    statement::{SqlStatement, column},
};
use crate::{
    feed::{archive::StagedPage, record::FeedNo},
    store::{
        StoreError,
        stored::{decode, encode},
    },
};

/// The numbers of the staged pages of a feed.
pub(super) fn staged_numbers(
    session: &DatabaseSession,
    feed: FeedNo,
) -> Result<Vec<i64>, StoreError> {
    let asked = SqlStatement::new("SELECT no FROM staging WHERE feed = $1 ORDER BY no");
    let rows = session.rows(asked.with(feed))?;
    rows.iter().map(|row| column(row, 0)).collect()
}

/// A staged page.
pub(super) fn staged_page(
    session: &DatabaseSession,
    feed: FeedNo,
    no: i64,
) -> Result<Option<StagedPage>, StoreError> {
    let asked = SqlStatement::new("SELECT value FROM staging WHERE feed = $1 AND no = $2");
    let row = session.row(asked.with(feed).with(no))?;
    row.map(|row| decode("a staged page", column(&row, 0)?))
        .transpose()
}

/// Writes a staged page, in the place of one of its number.
pub(super) fn write_page(
    session: &DatabaseSession,
    feed: FeedNo,
    page: &StagedPage,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO staging (feed, no, value) VALUES ($1, $2, $3) \
               ON CONFLICT (feed, no) DO UPDATE SET value = excluded.value";
    let written = SqlStatement::new(sql).with(feed).with(i64::from(page.no));
    session.change(written.with(encode(page)?));
    Ok(())
}
