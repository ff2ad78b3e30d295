//! The tables in the database, and the migrations that make them; not what is in their values.

use super::tables::RowTables;
use crate::store::postgres::wire::{
    session::DatabaseSession,
    statement::{SqlStatement, column, number_at},
};
use crate::store::{
    StoreError,
    rows::{
        accounts::{LAST_TOKEN_KEY, LAST_USER_KEY},
        counted,
        open_table::TableEdit as _,
        reads::{self, LAST_FEED_KEY},
        subscriptions::LAST_SUBSCRIPTION_KEY,
        tables::META,
        word_index,
    },
};

/// The migrations, the first one first. One that was released is never changed. One that does more
/// than add raises `oldest_schema` to its own number, so that no older everfeed runs beside.
pub(in crate::store::postgres) const MIGRATIONS: [&str; 8] = [
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
    include_str!("schema/6.sql"),
    include_str!("schema/7.sql"),
    include_str!("schema/8.sql"),
];

/// The number of the schema that this everfeed reads and writes.
pub(in crate::store::postgres) const SCHEMA: i64 = MIGRATIONS.len() as i64;

/// First half of the keys of our advisory locks; the second is the schema of the tables.
const MIGRATION_LOCK: i32 = 0x6566_0001;

/// The same for the processes that serve the store: one alone, or several together.
pub(in crate::store::postgres) const SERVING_LOCK: i32 = 0x6566_0002;

/// Tables by which a database of ours is told from one of somebody else: with columns of their own up
/// to schema 4, with rows since.
const TABLES: [[&str; 4]; 2] = [
    ["feeds", "items", "keys", "subscriptions"],
    ["rows_feeds", "rows_items", "rows_keys", "rows_subs"],
];

/// The first schema whose tables have rows.
const ROWS_SINCE: i64 = 5;

/// The last numbers given, as `meta` had them up to schema 4, and their keys since.
const LAST_NUMBERS: [(&str, &str); 4] = [
    ("last_feed", LAST_FEED_KEY),
    ("last_subscription", LAST_SUBSCRIPTION_KEY),
    ("last_user", LAST_USER_KEY),
    ("last_token", LAST_TOKEN_KEY),
];

// Decides: Which database is a store of this everfeed?
/// Makes the tables, or brings those of an older everfeed up to date, in one transaction. Of several
/// processes one does it. Refuses tables of a newer everfeed, and of anybody else.
pub(in crate::store::postgres) fn migrate(session: &DatabaseSession) -> Result<(), StoreError> {
    let locked =
        SqlStatement::new("SELECT pg_advisory_xact_lock($1, hashtext(current_schema()::text))");
    session.expect_long();
    // In a statement of its own: those behind it see what was made while we waited for the lock.
    session.rows(locked.with(MIGRATION_LOCK))?;
    let held = held(session)?;
    if (1..SCHEMA).contains(&held) {
        // Each change reads this row first, so none is made while tables are changed.
        session.change(SqlStatement::new(
            "UPDATE meta SET number = number WHERE name = 'epoch'",
        ));
    }
    for (no, text) in (1..).zip(MIGRATIONS) {
        if no <= held {
            continue;
        }
        let is_rewritten = no == ROWS_SINCE && held > 0;
        if is_rewritten {
            tell_rewrite(session)?;
        }
        for part in text.split_inclusive(";\n") {
            if !part.trim().is_empty() {
                session.change(SqlStatement::new(
                    part.trim().trim_end_matches(';').to_owned(),
                ));
                if is_rewritten {
                    // Each has the time of a round trip for itself.
                    session.ask(Vec::new())?;
                }
            }
        }
        if no == ROWS_SINCE {
            move_numbers(session)?;
            count_feeds(session)?;
        }
        let noted = SqlStatement::new(
            "INSERT INTO meta (name, number) VALUES ('schema', $1) \
             ON CONFLICT (name) DO UPDATE SET number = excluded.number",
        );
        session.change(noted.with(no));
    }
    if (1..SCHEMA).contains(&held) {
        // An everfeed of before that cannot run beside this one works no more.
        let raised = SqlStatement::new(
            "UPDATE meta SET number = number + 1 WHERE name = 'epoch' \
             AND (SELECT number FROM meta WHERE name = 'oldest_schema') > $1",
        );
        session.change(raised.with(held));
    }
    session.commit()
}

/// Tells that the tables are written again, and how large they are.
fn tell_rewrite(session: &DatabaseSession) -> Result<(), StoreError> {
    let size = SqlStatement::new(
        "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint, \
         coalesce(sum(reltuples) FILTER (WHERE relname = 'items'), 0)::bigint \
         FROM pg_class WHERE relkind = 'r' AND relnamespace = to_regnamespace(current_schema()::text)",
    );
    if let Some(row) = session.row(size)? {
        let (bytes, items) = (number_at(&row, 0)?, column::<i64>(&row, 1)?.max(0));
        tracing::info!(
            "The tables of the database get another form: {} MiB with about {items} items are written again, and need as much room until that is done. Where it fails, nothing has changed",
            bytes >> 20
        );
    }
    Ok(())
}

/// Puts the last numbers given where the rows are.
fn move_numbers(session: &DatabaseSession) -> Result<(), StoreError> {
    let tables = RowTables::of(session);
    for (name, key) in LAST_NUMBERS {
        let asked = SqlStatement::new("DELETE FROM meta WHERE name = $1 RETURNING number");
        let row = session.row(asked.with(name))?;
        let number = row.map_or(Ok(0), |row| number_at(&row, 0))?;
        let mut meta = tables.edit(META)?;
        match u32::try_from(number) {
            Ok(number) if key == LAST_FEED_KEY => meta.write(key, &number)?,
            _ => meta.write(key, &number)?,
        }
    }
    tables.flush();
    Ok(())
}

/// Feeds that are read at once.
const FEEDS_AT_ONCE: usize = 200;

/// Counts the rows of long feeds, and indexes their words.
pub(in crate::store::postgres) fn count_feeds(session: &DatabaseSession) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let tables = RowTables::of(session);
        let feeds = reads::records(&tables, after, FEEDS_AT_ONCE)?;
        for feed in &feeds {
            counted::count_moved(&tables, feed)?;
            word_index::index_moved(&tables, feed)?;
        }
        tables.flush();
        match feeds.last() {
            Some(last) => after = Some(last.no),
            None => return Ok(()),
        }
    }
}

/// The number of the schema of the tables that are there; 0 where there are none. Refuses tables of
/// a newer everfeed, and of anybody else.
pub(in crate::store::postgres) fn held(session: &DatabaseSession) -> Result<i64, StoreError> {
    let found = SqlStatement::new(
        "SELECT current_schema()::text, count(*) FILTER (WHERE relname = 'meta'), \
         count(*) FILTER (WHERE relname = ANY($1)), count(*) FILTER (WHERE relname = ANY($2)) \
         FROM pg_class WHERE relkind = 'r' AND relnamespace = to_regnamespace(current_schema()::text)",
    );
    let [before, since] = TABLES.map(|tables| tables.map(str::to_owned).to_vec());
    let row = session.row(found.with(before).with(since))?;
    let row = row.ok_or_else(|| StoreError::Failed("PostgreSQL did not list its tables".into()))?;
    let schema: Option<&str> = column(&row, 0)?;
    let Some(schema) = schema.map(str::to_owned) else {
        return Err(StoreError::Schema(
            "the user of store.url has no schema to make tables in; make it the owner of the database"
                .into(),
        ));
    };
    let (has_meta, before, since) = (
        number_at(&row, 1)? > 0,
        number_at(&row, 2)?,
        number_at(&row, 3)?,
    );
    let held = match (has_meta, before, since) {
        (false, 0, 0) => 0,
        (true, 4, 0) | (true, 0, 4) => held_schema(session, &schema)?,
        _ => return Err(foreign(&schema)),
    };
    if held > SCHEMA && oldest(session)? > SCHEMA {
        return Err(StoreError::Schema(format!(
            "the tables in schema `{schema}` of the database are of a newer everfeed (number {held}; this one knows {SCHEMA}). Run that everfeed, or restore a dump of this one's"
        )));
    }
    Ok(held)
}

/// Refuses to go on with tables that a newer everfeed has changed since the start, where it is not
/// one beside which this one may run.
pub(in crate::store::postgres) fn check_oldest(oldest: i64) -> Result<(), StoreError> {
    if oldest <= SCHEMA {
        return Ok(());
    }
    Err(StoreError::Schema(format!(
        "a newer everfeed has changed the tables of the database, and this one cannot use them any more (they need number {oldest}; this one knows {SCHEMA}). Run that everfeed"
    )))
}

/// The number of the oldest schema that an everfeed may know that uses these tables: each migration
/// since has only added to it.
fn oldest(session: &DatabaseSession) -> Result<i64, StoreError> {
    let row = session.row(oldest_asked())?;
    row.map_or(Ok(i64::MAX), |row| column(&row, 0))
}

/// Asks for that number.
pub(in crate::store::postgres) fn oldest_asked() -> SqlStatement {
    SqlStatement::new("SELECT number FROM meta WHERE name = 'oldest_schema'")
}

fn held_schema(session: &DatabaseSession, schema: &str) -> Result<i64, StoreError> {
    let columns = SqlStatement::new(
        "SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass('meta') \
         AND attname IN ('name', 'number', 'value') AND NOT attisdropped",
    );
    let columns = session.row(columns)?;
    let count = columns.map(|row| number_at(&row, 0)).transpose()?;
    if count != Some(3) {
        return Err(foreign(schema));
    }
    let number = session.row(SqlStatement::new(
        "SELECT number FROM meta WHERE name = 'schema'",
    ))?;
    let number = number.ok_or_else(|| foreign(schema))?;
    column(&number, 0)
}

fn foreign(schema: &str) -> StoreError {
    StoreError::Schema(format!(
        "schema `{schema}` of the database has tables that are not everfeed's. Give everfeed a database of its own"
    ))
}
