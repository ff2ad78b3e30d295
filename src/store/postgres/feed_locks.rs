//! The order in which transactions lock feeds; not what they change.

use super::{
    session::DatabaseSession,
    statement::{SqlStatement, feed_at},
};
use crate::{feed::record::FeedNo, store::StoreError};
use std::collections::BTreeSet;
use tokio_postgres::Row;

/// Locks feeds, lowest number first, so that no two transactions wait for each other. The answer
/// lists those that are there.
pub(super) fn locked(feeds: Vec<FeedNo>) -> SqlStatement {
    let sql = "SELECT no FROM feeds WHERE no = ANY($1) ORDER BY no FOR NO KEY UPDATE";
    SqlStatement::new(sql).with(feeds)
}

/// Locks a feed and the groups that it is a member of.
pub(super) fn locked_with_groups(feed: FeedNo) -> SqlStatement {
    // One list, which is looked up. With OR the server goes through the feeds of all others.
    let sql = "SELECT no FROM feeds WHERE no = ANY(ARRAY( \
               SELECT $1 UNION ALL SELECT feed FROM memberships WHERE member = $1)) \
               ORDER BY no FOR NO KEY UPDATE";
    SqlStatement::new(sql).with(feed)
}

/// The groups of a feed, all of which are locked; it became a member of another one otherwise, and
/// the transaction is done again.
pub(super) fn locked_groups(
    session: &DatabaseSession,
    locked: &[Row],
    groups: &[Row],
) -> Result<Vec<FeedNo>, StoreError> {
    let locked: BTreeSet<u32> = numbers(locked)?.into_iter().collect();
    let groups = numbers(groups)?;
    if !groups.iter().all(|no| locked.contains(no)) {
        return Err(session.crossed("the feed became a member of another group meanwhile"));
    }
    Ok(groups.into_iter().map(FeedNo).collect())
}

/// The numbers of feeds in rows.
pub(super) fn numbers(rows: &[Row]) -> Result<Vec<u32>, StoreError> {
    rows.iter().map(|row| Ok(feed_at(row, 0)?.0)).collect()
}
