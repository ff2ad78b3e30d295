//! Reads that are the same in every transaction; not pages, and nothing is written.

use super::{
    items::FeedItems,
    session::DatabaseSession,
    statement::{
        SqlStatement, column, feed_at, item_id_at, key_at, number_at, number_column, stamp_at,
    },
};
use crate::{
    feed::{
        archive::{ArchiveWalk, StagedWalk},
        item::{Item, ItemId, KeyHash},
        observation_record::ObservationRecord,
        reconcile::Evidence,
        record::{FeedNo, FeedRecord},
        schedule::{Pause, PollState},
        stamp::Stamp,
    },
    store::{
        HostPause, Snapshot, StoreCounts, StoreError, Witnessed,
        plan::Held as _,
        stored::{StoredKind, damaged, decode},
    },
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};
use tokio_postgres::Row;

/// Rows at most of a list that a caller has.
pub(super) fn limit(max: usize) -> i64 {
    i64::try_from(max).unwrap_or(i64::MAX)
}

/// The feed before the first one, or this one.
pub(super) fn after_feed(after: Option<FeedNo>) -> i64 {
    after.map_or(-1, |feed| i64::from(feed.0))
}

/// Asks for a feed.
pub(super) fn record_asked(feed: FeedNo) -> SqlStatement {
    SqlStatement::new("SELECT no, name, value FROM feeds WHERE no = $1").with(feed)
}

/// The feed in the answer.
pub(super) fn record_in(feed: FeedNo, rows: &[Row]) -> Result<FeedRecord, StoreError> {
    let row = rows.first().ok_or(StoreError::UnknownFeed(feed))?;
    record_of(row)
}

/// The feed in a row.
pub(super) fn record_of(row: &Row) -> Result<FeedRecord, StoreError> {
    let feed = feed_at(row, 0)?;
    let read = decode(&format!("feed {feed}"), column(row, 2)?).and_then(|record: FeedRecord| {
        if record.no != feed || record.items.live > record.items.total {
            return Err(damaged(format!("feed {feed} does not agree with itself")));
        }
        Ok(record)
    });
    let name: Option<String> = column(row, 1)?;
    match (read, name) {
        (Err(StoreError::Damaged(what)), Some(feed)) => Err(StoreError::DamagedFeed { feed, what }),
        (read, _) => read,
    }
}

/// One feed.
pub(super) fn record(session: &DatabaseSession, feed: FeedNo) -> Result<FeedRecord, StoreError> {
    record_in(feed, &session.rows(record_asked(feed))?)
}

/// The feed of a name.
pub(super) fn named(
    session: &DatabaseSession,
    name: &str,
) -> Result<Option<FeedRecord>, StoreError> {
    let found = SqlStatement::new("SELECT no, name, value FROM feeds WHERE name = $1").with(name);
    session.row(found)?.as_ref().map(record_of).transpose()
}

/// The feeds of these names, by name.
pub(super) fn all_named(
    session: &DatabaseSession,
    names: Vec<String>,
) -> Result<HashMap<String, FeedRecord>, StoreError> {
    let sql = "SELECT no, name, value FROM feeds WHERE name = ANY($1)";
    let rows = session.rows(SqlStatement::new(sql).with(names))?;
    let named = |row: &Row| Ok((column(row, 1)?, record_of(row)?));
    rows.iter().map(named).collect()
}

/// The feeds after a number. One that is damaged is left out, and told with its name.
pub(super) fn records(
    session: &DatabaseSession,
    after: Option<FeedNo>,
    max: usize,
) -> Result<Vec<FeedRecord>, StoreError> {
    let sql = "SELECT no, name, value FROM feeds WHERE no > $1 ORDER BY no LIMIT $2";
    sound_rows(session, sql, after, max, record_of, "A feed is left out")
}

/// The rows after a feed of a table with a row a feed. One that is damaged is left out, and told: it
/// must not take all others with it.
fn sound_rows<T>(
    session: &DatabaseSession,
    sql: &'static str,
    after: Option<FeedNo>,
    max: usize,
    read: impl Fn(&Row) -> Result<T, StoreError>,
    told: &str,
) -> Result<Vec<T>, StoreError> {
    let mut sound = Vec::new();
    let mut after = after_feed(after);
    while sound.len() < max {
        let wanted = max - sound.len();
        let rows = session.rows(SqlStatement::new(sql).with(after).with(limit(wanted)))?;
        for row in &rows {
            let feed = feed_at(row, 0)?;
            after = after_feed(Some(feed));
            match read(row) {
                Ok(read) => sound.push(read),
                Err(error @ (StoreError::Damaged(_) | StoreError::DamagedFeed { .. })) => {
                    tracing::error!(feed.no = %feed, "{told}: {error}");
                }
                Err(error) => return Err(error),
            }
        }
        if rows.len() < wanted {
            break;
        }
    }
    Ok(sound)
}

/// The names after a name, with their numbers.
pub(super) fn names(
    session: &DatabaseSession,
    after: Option<&str>,
    max: usize,
) -> Result<Vec<(String, FeedNo)>, StoreError> {
    let sql = "SELECT name, no FROM feeds WHERE name IS NOT NULL AND ($1::text IS NULL OR name > $1) \
               ORDER BY name LIMIT $2";
    let asked = SqlStatement::new(sql)
        .with(after.map(str::to_owned))
        .with(limit(max));
    let rows = session.rows(asked)?;
    rows.iter()
        .map(|row| Ok((column(row, 0)?, feed_at(row, 1)?)))
        .collect()
}

/// The totals of the database.
pub(super) fn counts(session: &DatabaseSession) -> Result<StoreCounts, StoreError> {
    let sql = "SELECT count(name), coalesce(sum(total), 0)::bigint, \
               (SELECT count(*) FROM subscriptions) FROM feeds";
    let row = session.row(SqlStatement::new(sql))?;
    let row = row.ok_or_else(|| damaged("nothing was counted"))?;
    Ok(StoreCounts {
        feeds: number_at(&row, 0)?,
        items: number_at(&row, 1)?,
        subscriptions: number_at(&row, 2)?,
    })
}

/// The value of a feed in a table with a row a feed.
pub(super) fn value<T: StoredKind>(
    session: &DatabaseSession,
    sql: &'static str,
    feed: FeedNo,
    what: &str,
) -> Result<Option<T>, StoreError> {
    let row = session.row(SqlStatement::new(sql).with(feed))?;
    row.map(|row| decode(what, column(&row, 0)?)).transpose()
}

/// The poll states of the feeds after a number.
pub(super) fn polls(
    session: &DatabaseSession,
    after: Option<FeedNo>,
    max: usize,
) -> Result<Vec<(FeedNo, PollState)>, StoreError> {
    let sql = "SELECT feed, value FROM polls WHERE feed > $1 ORDER BY feed LIMIT $2";
    let read = |row: &Row| Ok((feed_at(row, 0)?, decode("a poll state", column(row, 1)?)?));
    let told = "The poll state of a feed is damaged; the feed is polled as if it were new";
    sound_rows(session, sql, after, max, read, told)
}

/// The poll state of a feed.
pub(super) fn poll(
    session: &DatabaseSession,
    feed: FeedNo,
) -> Result<Option<PollState>, StoreError> {
    let sql = "SELECT value FROM polls WHERE feed = $1";
    value(session, sql, feed, "a poll state")
}

/// The pauses of the authorities after a name.
pub(super) fn host_pauses(
    session: &DatabaseSession,
    after: Option<&str>,
    max: usize,
) -> Result<Vec<HostPause>, StoreError> {
    let sql = "SELECT host, paused_since, paused_until FROM pauses \
               WHERE $1::text IS NULL OR host > $1 ORDER BY host LIMIT $2";
    let asked = SqlStatement::new(sql)
        .with(after.map(str::to_owned))
        .with(limit(max));
    let pause = |row: &Row| {
        let pause = Pause {
            since: stamp_at(row, 1)?,
            until: stamp_at(row, 2)?,
        };
        Ok((column(row, 0)?, pause))
    };
    session.rows(asked)?.iter().map(pause).collect()
}

/// The walks of the feeds after a number.
pub(super) fn walks(
    session: &DatabaseSession,
    after: Option<FeedNo>,
    max: usize,
) -> Result<Vec<(FeedNo, ArchiveWalk)>, StoreError> {
    let sql = "SELECT feed, value FROM walks WHERE feed > $1 ORDER BY feed LIMIT $2";
    let read = |row: &Row| Ok((feed_at(row, 0)?, decode("a walk", column(row, 1)?)?));
    let told = "The archive walk of a feed is damaged; the walk does not go on";
    sound_rows(session, sql, after, max, read, told)
}

/// The walk of a feed.
pub(super) fn walk(
    session: &DatabaseSession,
    feed: FeedNo,
) -> Result<Option<ArchiveWalk>, StoreError> {
    let sql = "SELECT value FROM walks WHERE feed = $1";
    value(session, sql, feed, "a walk")
}

/// The staged pages of a feed, by number.
pub(super) fn staged(session: &DatabaseSession, feed: FeedNo) -> Result<StagedWalk, StoreError> {
    record(session, feed)?;
    let walk = walk(session, feed)?;
    let asked = SqlStatement::new("SELECT value FROM staging WHERE feed = $1 ORDER BY no");
    let rows = session.rows(asked.with(feed))?;
    let pages = rows
        .iter()
        .map(|row| decode("a staged page", column(row, 0)?));
    Ok(StagedWalk {
        walk,
        pages: pages.collect::<Result<_, _>>()?,
    })
}

/// The ids of the items behind keys.
pub(super) fn ids(
    session: &DatabaseSession,
    feed: FeedNo,
    keys: &[KeyHash],
) -> Result<Vec<(KeyHash, ItemId)>, StoreError> {
    let bound = SqlStatement::new("SELECT key, item FROM keys WHERE feed = $1 AND key = ANY($2)");
    let answers = session.ask(vec![
        record_asked(feed),
        bound.with(feed).with(keys.to_vec()),
    ])?;
    record_in(feed, &answers[0])?;
    let bound = bound_in(&answers[1])?;
    let behind = |key: &KeyHash| Some((*key, *bound.get(key)?));
    Ok(keys.iter().filter_map(behind).collect())
}

/// Items by key.
fn bound_in(rows: &[Row]) -> Result<HashMap<KeyHash, ItemId>, StoreError> {
    rows.iter()
        .map(|row| Ok((key_at(row, 0)?, item_id_at(row, 1)?)))
        .collect()
}

/// The tombstones' evidence of one item.
pub(super) fn evidence(
    session: &DatabaseSession,
    feed: FeedNo,
    id: ItemId,
) -> Result<Vec<(Stamp, Evidence)>, StoreError> {
    let sql = "SELECT t, value FROM evidence WHERE feed = $1 AND item = $2 ORDER BY t";
    let rows = session.rows(SqlStatement::new(sql).with(feed).with(id))?;
    let read = |row: &Row| {
        let evidence = decode("the evidence of a tombstone", column(row, 1)?)?;
        Ok((stamp_at(row, 0)?, evidence))
    };
    rows.iter().map(read).collect()
}

/// The last observations of a feed, oldest first.
pub(super) fn observations(
    session: &DatabaseSession,
    feed: FeedNo,
) -> Result<Vec<(u64, ObservationRecord)>, StoreError> {
    let sql = "SELECT no, value FROM observations WHERE feed = $1 ORDER BY no";
    let rows = session.rows(SqlStatement::new(sql).with(feed))?;
    let read = |row: &Row| {
        Ok((
            number_at(row, 0)?,
            decode("an observation", column(row, 1)?)?,
        ))
    };
    rows.iter().map(read).collect()
}

/// A feed, its window and the items behind keys, all of one revision.
pub(super) fn snapshot(
    session: &DatabaseSession,
    feed: FeedNo,
    keys: &[KeyHash],
) -> Result<Snapshot, StoreError> {
    let window = SqlStatement::new("SELECT value FROM windows WHERE feed = $1").with(feed);
    let sql = "SELECT k.key, k.item, i.t, i.value FROM keys k \
               LEFT JOIN items i ON i.feed = k.feed AND i.id = k.item \
               WHERE k.feed = $1 AND k.key = ANY($2)";
    let behind = SqlStatement::new(sql).with(feed).with(keys.to_vec());
    let answers = session.ask(vec![record_asked(feed), window, behind])?;
    let record = record_in(feed, &answers[0])?;
    let window = match answers[1].first() {
        Some(row) => decode("a window", column(row, 0)?)?,
        None => Default::default(),
    };
    let held = FeedItems::of(session, feed);
    let mut items = HashMap::new();
    for row in &answers[2] {
        let (key, id) = (key_at(row, 0)?, item_id_at(row, 1)?);
        let value: Option<&[u8]> = column(row, 3)?;
        let Some(value) = value else {
            return Err(damaged(format!("item {id} has only a key")));
        };
        items.insert(key, held.read(&record.name, id, stamp_at(row, 2)?, value)?);
    }
    Ok(Snapshot {
        record,
        window,
        items,
    })
}

/// The items that have one of these witnesses, each once.
pub(super) fn witnessed(
    session: &DatabaseSession,
    feed: FeedNo,
    witnesses: &[KeyHash],
) -> Result<Witnessed, StoreError> {
    let sql = "SELECT key, items FROM witnesses WHERE feed = $1 AND key = ANY($2)";
    let asked = SqlStatement::new(sql).with(feed).with(witnesses.to_vec());
    let answers = session.ask(vec![record_asked(feed), asked])?;
    let record = record_in(feed, &answers[0])?;
    let by_witness = witnesses_in(&answers[1])?;
    let mut met = HashSet::new();
    let ids = witnesses
        .iter()
        .filter_map(|witness| by_witness.get(witness))
        .flatten();
    let ids: Vec<ItemId> = ids.copied().filter(|id| met.insert(*id)).collect();
    let held = FeedItems::of(session, feed);
    held.fetch(ids.clone())?;
    let mut items = Vec::new();
    for id in ids {
        items.extend(held.item_of(&record.name, id)?);
    }
    Ok(Witnessed {
        rev: record.rev,
        items,
    })
}

/// Ids by witness.
pub(super) fn witnesses_in(rows: &[Row]) -> Result<HashMap<KeyHash, Vec<ItemId>>, StoreError> {
    let read = |row: &Row| {
        let ids: &[u8] = column(row, 1)?;
        let ids = ids.as_chunks().0.iter().copied().map(ItemId).collect();
        Ok((key_at(row, 0)?, ids))
    };
    rows.iter().map(read).collect()
}

/// Gives the next number of a kind, which is never given again.
pub(super) fn next_number(
    session: &DatabaseSession,
    kind: &'static str,
) -> Result<u64, StoreError> {
    next_numbers(session, kind, 1)
}

/// Gives so many numbers of a kind; the answer is the last of them.
pub(super) fn next_numbers(
    session: &DatabaseSession,
    kind: &'static str,
    count: u64,
) -> Result<u64, StoreError> {
    let sql = "UPDATE meta SET number = number + $2 WHERE name = $1 RETURNING number";
    session.note_change();
    let asked = SqlStatement::new(sql).with(kind).with(number_column(count));
    let row = session.row(asked)?;
    let row = row.ok_or_else(|| damaged(format!("the database has no {kind}")))?;
    number_at(&row, 0)
}

/// The item behind a key.
pub(super) fn bound(
    session: &DatabaseSession,
    feed: FeedNo,
    key: KeyHash,
) -> Result<Option<ItemId>, StoreError> {
    let asked = SqlStatement::new("SELECT item FROM keys WHERE feed = $1 AND key = $2");
    let row = session.row(asked.with(feed).with(key))?;
    row.map(|row| item_id_at(&row, 0)).transpose()
}

/// One item.
pub(super) fn item(
    session: &DatabaseSession,
    feed: FeedNo,
    id: ItemId,
) -> Result<Option<Arc<Item>>, StoreError> {
    match FeedItems::of(session, feed).item(id) {
        Err(StoreError::Damaged(what)) => Err(StoreError::DamagedItem {
            feed: record(session, feed)?.name,
            id,
            what,
        }),
        item => item,
    }
}
