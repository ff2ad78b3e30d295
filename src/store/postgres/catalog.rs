//! The registered feeds in the database: how they are made, and how one is forgotten; not what a
//! feed holds.

use super::{
    database::DatabaseWriting,
    feed_locks::locked_with_groups,
    generations::content_mark,
    groups,
    planned::write_record,
    rows,
    schema::OF_FEEDS,
    session::DatabaseSession,
    statement::{SqlStatement, stamp_at},
    subscriptions,
};
use crate::{
    feed::{
        part::{self, WantedPart},
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    store::{
        StoreError, check_namespace,
        content_mark::ContentMark,
        group_plan,
        stored::{damaged, encode},
    },
};
use std::collections::BTreeMap;

/// The feeds of these names, made where they are new.
pub(super) fn register_all(
    writing: &DatabaseWriting<'_>,
    feeds: &[(String, String)],
) -> Result<Vec<FeedRecord>, StoreError> {
    let session = writing.session;
    let names = feeds.iter().map(|(name, _)| name.clone()).collect();
    let mut held = rows::all_named(session, names)?;
    for (name, namespace) in feeds {
        let Some(record) = held.get(name) else {
            continue;
        };
        check_namespace(record, namespace)?;
        if record.ids.namespace != *namespace {
            let record = renamed(writing, record.no, namespace)?;
            held.insert(name.clone(), record);
        }
    }
    let new = feeds.iter().filter(|(name, _)| !held.contains_key(name));
    let new: BTreeMap<String, String> = new.cloned().collect();
    if !new.is_empty() {
        writing.move_catalog();
        let before = held.len();
        let generation = content_mark(session)?.generation;
        let last = rows::next_numbers(session, "last_feed", new.len() as u64)?;
        let first = last + 1 - new.len() as u64;
        // In the order in which they were given.
        for (name, namespace) in feeds {
            if held.contains_key(name) {
                continue;
            }
            let no = feed_no(first + (held.len() - before) as u64)?;
            let record = FeedRecord::new(no, name, namespace).of_generation(generation);
            write_record(session, &record)?;
            held.insert(name.clone(), record);
        }
    }
    let found = |(name, _): &(String, String)| held.get(name).cloned();
    Ok(feeds.iter().filter_map(found).collect())
}

/// Gives a feed another namespace, which no commit of it meets.
fn renamed(
    writing: &DatabaseWriting<'_>,
    feed: FeedNo,
    namespace: &str,
) -> Result<FeedRecord, StoreError> {
    writing.session.rows(locked_with_groups(feed))?;
    let record = rows::record(writing.session, feed)?;
    check_namespace(&record, namespace)?;
    take_namespace(writing, record, namespace)
}

fn feed_no(number: u64) -> Result<FeedNo, StoreError> {
    let number = u32::try_from(number).map_err(|_| damaged("no number is left for a feed"))?;
    Ok(FeedNo(number))
}

/// A number for a new feed.
fn next_feed(session: &DatabaseSession) -> Result<FeedNo, StoreError> {
    feed_no(rows::next_number(session, "last_feed")?)
}

/// Has feeds that are made from now on begin a generation after all that was given out: one of them
/// may have the name of a feed that goes.
fn renew_generation(session: &DatabaseSession, last: Stamp) -> Result<(), StoreError> {
    let held = content_mark(session)?;
    let mark = ContentMark {
        generation: last.max(held.generation.next()),
        ..held
    };
    let sql = "UPDATE meta SET value = $1 WHERE name = 'content'";
    session.change(SqlStatement::new(sql).with(encode(&mark)?));
    Ok(())
}

/// Gives a feed that holds no items another namespace, and its parts with it. What was read for the
/// one before goes.
fn take_namespace(
    writing: &DatabaseWriting<'_>,
    record: FeedRecord,
    namespace: &str,
) -> Result<FeedRecord, StoreError> {
    let (session, now) = (writing.session, writing.now()?);
    writing.move_catalog();
    let of = groups::lock_groups(session, record.no)?;
    for (part, _) in groups::parts_among(session, &of)? {
        let part = rows::record(session, part)?;
        write_record(session, &part.with_namespace(namespace, now))?;
    }
    let record = record.with_namespace(namespace, now);
    for table in ["windows", "walks", "keys", "witnesses", "staging"] {
        clear(session, table, "feed", record.no);
    }
    write_record(session, &record)?;
    Ok(record)
}

fn clear(session: &DatabaseSession, table: &str, column: &str, feed: FeedNo) {
    let sql = format!("DELETE FROM {table} WHERE {column} = $1");
    session.change(SqlStatement::new(sql).with(feed));
}

/// Gives a feed the parts that are wanted.
pub(super) fn set_parts(
    writing: &DatabaseWriting<'_>,
    feed: FeedNo,
    wanted: &[WantedPart],
) -> Result<Vec<FeedRecord>, StoreError> {
    let session = writing.session;
    let of_feed = groups::lock_groups(session, feed)?;
    let of = rows::record(session, feed)?;
    let held = groups::parts_among(session, &of_feed)?;
    let choices = part::choose(&held, wanted);
    for no in part::unused(&held, &choices) {
        writing.move_catalog();
        remove(writing, no)?;
    }
    let mut parts = Vec::new();
    for (choice, wanted) in choices.into_iter().zip(wanted) {
        let (no, before) = match choice.number() {
            Some(no) => (no, Some(groups::part_rows(session, no)?)),
            None => (next_feed(session)?, None),
        };
        let now = group_plan::part::set(&of, choice, wanted, before.clone(), no);
        if before.as_ref() != Some(&now) {
            let members = before.map(|held| held.group).unwrap_or_default();
            writing.move_catalog();
            write_record(session, &now.record)?;
            groups::write_members(session, no, &members, &now.group)?;
        }
        parts.push(now.record);
    }
    Ok(parts)
}

/// Removes a feed with everything that is kept of it, and its parts.
// Limit: what was removed is in older dumps of the database, and in its pages until they are
// vacuumed.
pub(super) fn forget(writing: &DatabaseWriting<'_>, feed: FeedNo) -> Result<bool, StoreError> {
    let session = writing.session;
    session.expect_long();
    let newest = SqlStatement::new("SELECT coalesce(max(last_t), 0) FROM feeds");
    let newest = session.row(newest)?;
    let newest = newest.map_or(Ok(Stamp::ZERO), |row| stamp_at(&row, 0))?;
    let was_there = remove(writing, feed)?;
    if was_there {
        writing.move_catalog();
        renew_generation(session, newest.max(writing.now()?))?;
    }
    Ok(was_there)
}

fn remove(writing: &DatabaseWriting<'_>, feed: FeedNo) -> Result<bool, StoreError> {
    let session = writing.session;
    let of_feed = groups::lock_groups(session, feed)?;
    let found = session.row(SqlStatement::new("SELECT 1 FROM feeds WHERE no = $1").with(feed))?;
    if found.is_none() {
        return Ok(false);
    }
    let parts = groups::parts_among(session, &of_feed)?;
    for (part, _) in &parts {
        remove(writing, *part)?;
    }
    let is_part = |no: &FeedNo| parts.iter().any(|(part, _)| part == no);
    let others: Vec<FeedNo> = of_feed.into_iter().filter(|no| !is_part(no)).collect();
    subscriptions::end_all(session, feed);
    groups::leave_all(writing, feed, &others)?;
    for (table, column) in OF_FEEDS {
        clear(session, table, column, feed);
    }
    Ok(true)
}
