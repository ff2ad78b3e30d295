//! The tables in the database, and the migrations that make them; not what is in their values.

use super::{
    session::DatabaseSession,
    statement::{SqlStatement, column, number_at},
};
use crate::store::StoreError;

/// The migrations, the first one first. One that was released is never changed. One that does more
/// than add raises `oldest_schema` to its own number, so that no older everfeed runs beside.
const MIGRATIONS: [&str; 4] = [
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
];

/// The number of the schema that this everfeed reads and writes.
pub(super) const SCHEMA: i64 = MIGRATIONS.len() as i64;

/// First half of the keys of our advisory locks; the second is the schema of the tables.
const MIGRATION_LOCK: i32 = 0x6566_0001;

/// The same for the processes that serve the store: one alone, or several together.
pub(super) const SERVING_LOCK: i32 = 0x6566_0002;

/// Tables by which a database of ours is told from one of somebody else.
const TABLES: [&str; 5] = ["meta", "feeds", "items", "keys", "subscriptions"];

/// Tables with rows of a feed, by the column that names it.
pub(super) const OF_FEEDS: [(&str, &str); 15] = [
    ("feeds", "no"),
    ("items", "feed"),
    ("keys", "feed"),
    ("witnesses", "feed"),
    ("windows", "feed"),
    ("polls", "feed"),
    ("evidence", "feed"),
    ("walks", "feed"),
    ("staging", "feed"),
    ("observations", "feed"),
    ("documents", "feed"),
    ("feed_groups", "feed"),
    ("group_posts", "feed"),
    ("holdings", "feed"),
    ("memberships", "member"),
];

// Decides: Which database is a store of this everfeed?
/// Makes the tables, or brings those of an older everfeed up to date, in one transaction. Of several
/// processes one does it. Refuses tables of a newer everfeed, and of anybody else.
pub(super) fn migrate(session: &DatabaseSession) -> Result<(), StoreError> {
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
        for part in text.split_inclusive(";\n") {
            if !part.trim().is_empty() {
                session.change(SqlStatement::new(
                    part.trim().trim_end_matches(';').to_owned(),
                ));
            }
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

/// The number of the schema of the tables that are there; 0 where there are none. Refuses tables of
/// a newer everfeed, and of anybody else.
pub(super) fn held(session: &DatabaseSession) -> Result<i64, StoreError> {
    let found = SqlStatement::new(
        "SELECT current_schema()::text, count(*) FILTER (WHERE relname = 'meta'), count(*) \
         FROM pg_class WHERE relkind = 'r' AND relnamespace = to_regnamespace(current_schema()::text) \
         AND relname = ANY($1)",
    );
    let row = session.row(found.with(TABLES.map(str::to_owned).to_vec()))?;
    let row = row.ok_or_else(|| StoreError::Failed("PostgreSQL did not list its tables".into()))?;
    let schema: Option<&str> = column(&row, 0)?;
    let Some(schema) = schema.map(str::to_owned) else {
        return Err(StoreError::Schema(
            "the user of store.url has no schema to make tables in; make it the owner of the database"
                .into(),
        ));
    };
    let (has_meta, tables) = (number_at(&row, 1)? > 0, number_at(&row, 2)?);
    let held = match (has_meta, tables) {
        (false, 0) => 0,
        (true, tables) if tables == TABLES.len() as u64 => held_schema(session, &schema)?,
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
pub(super) fn check_oldest(oldest: i64) -> Result<(), StoreError> {
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
pub(super) fn oldest_asked() -> SqlStatement {
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
