//! A database as the source or the target of a copy from or to a file: its rows in batches, and the
//! notes by which only one of both is served. Not the file.

use super::{generations, named::table_name, schema, tables::RowTables};
use crate::store::postgres::{
    Postgres,
    database::DatabaseTime,
    wire::{
        session::DatabaseSession,
        statement::{SqlStatement, column},
    },
};
use crate::{
    clock::Clock,
    feed::stamp::Stamp,
    store::{
        StoreError, Upkeep as _,
        content_mark::ContentMark,
        database_url::DatabaseUrl,
        moved_rows::{MoveNote, MovedRow, is_derived, read_rows, write_rows},
        rows::{
            accounts::{self, LAST_USER_KEY},
            reads,
            tables::{META, TABLES},
        },
        stored::encode,
    },
};
use std::sync::Arc;

/// The values in the table `meta` of the database that go along.
const VALUES: [&str; 2] = ["clock", "content"];

const LEFT: &str = "copied_to";
const UNFINISHED: &str = "copied_from";

/// Refuses a database that went on elsewhere, and a copy that is not finished.
pub(in crate::store::postgres) fn refuse_copied(
    session: &DatabaseSession,
) -> Result<(), StoreError> {
    if let Some(MoveNote { place, .. }) = note(session, LEFT)? {
        return Err(StoreError::Schema(format!(
            "the store in the database went on in {place}, and is not served any more: two hubs would push"
        )));
    }
    if let Some(MoveNote { place, .. }) = note(session, UNFINISHED)? {
        return Err(StoreError::Schema(format!(
            "the database holds a copy of {place} that was not finished. Run that `everfeed store copy` again"
        )));
    }
    Ok(())
}

fn note(session: &DatabaseSession, name: &'static str) -> Result<Option<MoveNote>, StoreError> {
    let asked = SqlStatement::new("SELECT value FROM meta WHERE name = $1 AND value IS NOT NULL");
    let Some(row) = session.row(asked.with(name))? else {
        return Ok(None);
    };
    Ok(MoveNote::of_row(column(&row, 0)?))
}

/// A database that is copied from or to. Nobody serves it meanwhile.
pub(in crate::store) struct DatabaseEnd {
    held: Postgres,
    url: DatabaseUrl,
}

impl DatabaseEnd {
    /// Connects to it, and makes its tables where there are none. Blocks.
    pub(in crate::store) fn open(
        url: &DatabaseUrl,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let held = Postgres::open_unchecked(url, clock, DatabaseTime::OfDatabase)?;
        Ok(Self {
            held,
            url: url.clone(),
        })
    }

    /// The place of it, in words.
    pub(in crate::store) fn place(&self) -> String {
        self.url.to_string()
    }

    /// The note of the store in which it goes on, if it does.
    pub(in crate::store) fn left(&self) -> Result<Option<MoveNote>, StoreError> {
        self.held.database.read(|session| note(session, LEFT))
    }

    /// The note of the store of which it is a copy that is not finished.
    pub(in crate::store) fn begun(&self) -> Result<Option<MoveNote>, StoreError> {
        self.held.database.read(|session| note(session, UNFINISHED))
    }

    /// The error of a database that is not served.
    pub(in crate::store) fn refuse(&self) -> Result<(), StoreError> {
        self.held.database.read(refuse_copied)
    }

    /// Notes that it goes on there; it is not served any more.
    pub(in crate::store) fn leave(&self, note: &MoveNote) -> Result<(), StoreError> {
        self.set_note(LEFT, Some(note))
    }

    /// Says that it is a copy that is not finished, or is one no more.
    pub(in crate::store) fn set_unfinished(
        &self,
        note: Option<&MoveNote>,
    ) -> Result<(), StoreError> {
        self.set_note(UNFINISHED, note)
    }

    fn set_note(&self, name: &'static str, note: Option<&MoveNote>) -> Result<(), StoreError> {
        let row = note.map(MoveNote::row);
        self.held.database.write(|writing| {
            let sql = match &row {
                Some(_) => "UPDATE meta SET value = $2 WHERE name = $1",
                None => "UPDATE meta SET value = NULL WHERE name = $1",
            };
            let mut written = SqlStatement::new(sql).with(name);
            if let Some(row) = &row {
                written = written.with(row.clone());
            }
            writing.session.change(written);
            Ok(())
        })
    }

    /// True for a database in which no feed was ever registered.
    pub(in crate::store) fn is_empty(&self) -> Result<bool, StoreError> {
        self.held.database.read(|session| {
            let tables = RowTables::of(session);
            let has_feed = reads::last_feed_number(&tables)? > 0;
            Ok(!has_feed && accounts::last_number(&tables, LAST_USER_KEY)? == 0)
        })
    }

    /// Takes out what a copy that was cut off has left.
    pub(in crate::store) fn clear(&self) -> Result<(), StoreError> {
        self.held.database.write(|writing| {
            writing.session.expect_long();
            let tables = TABLES.iter().filter(|table| table.name != META.name());
            let tables: Vec<String> = tables.map(|table| table_name(*table)).collect();
            let sql = format!("TRUNCATE {}", tables.join(", "));
            writing.session.change(SqlStatement::new(sql));
            Ok(())
        })
    }

    /// All of its rows but those of some tables, table by table in batches, of one revision.
    pub(in crate::store) fn rows(
        &self,
        without: &[&str],
        sink: &mut dyn FnMut(&'static str, Vec<MovedRow>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let opening = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let session = self.held.database.session(opening, None)?;
        session.expect_long();
        let read = read_all(&session, without, sink);
        session.end(false);
        read
    }

    /// Writes a batch of rows of a table, and what leads to them.
    pub(in crate::store) fn write(
        &mut self,
        table: &str,
        rows: &[MovedRow],
    ) -> Result<(), StoreError> {
        let known = TABLES.iter().find(|known| known.name == table);
        let known =
            known.ok_or_else(|| StoreError::Failed(format!("no table is for `{table}`")))?;
        self.held.database.write(|writing| {
            writing.session.expect_long();
            let tables = RowTables::of(writing.session);
            let is_row =
                |row: &&MovedRow| known.name != META.name() || !write_value(writing.session, row);
            write_rows(&tables, *known, rows.iter().filter(is_row))?;
            tables.flush();
            Ok(())
        })
    }

    /// Counts the rows of its long feeds, and indexes their words.
    pub(in crate::store) fn count_feeds(&self) -> Result<(), StoreError> {
        self.held.database.write(|writing| {
            writing.session.expect_long();
            schema::count_feeds(writing.session)
        })
    }

    /// Gives each feed a generation that begins now, in another store.
    pub(in crate::store) fn begin_generations(&self, now: Stamp) -> Result<(), StoreError> {
        self.held.database.write(|writing| {
            let session = writing.session;
            let begins = generations::begin_all(session, now)?;
            let mark = ContentMark {
                store: rand::random(),
                commits: 1,
                last_t: begins,
                generation: begins,
            };
            let sql = "UPDATE meta SET value = $1 WHERE name = 'content'";
            session.change(SqlStatement::new(sql).with(encode(&mark)?));
            Ok(())
        })
    }

    /// Lets go of it.
    pub(in crate::store) fn close(self) -> Result<(), StoreError> {
        let runtime = self.held.database.runtime.clone();
        runtime.block_on(self.held.close())
    }
}

fn read_all(
    session: &DatabaseSession,
    without: &[&str],
    sink: &mut dyn FnMut(&'static str, Vec<MovedRow>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let tables = RowTables::of(session);
    let mut values = Vec::new();
    for name in VALUES {
        let asked =
            SqlStatement::new("SELECT value FROM meta WHERE name = $1 AND value IS NOT NULL");
        if let Some(row) = session.row(asked.with(name))? {
            let (key, value) = (name.as_bytes().to_vec(), column(&row, 0)?);
            values.push(MovedRow { key, value });
        }
    }
    sink(META.name(), values)?;
    for table in TABLES {
        if !is_derived(table) && !without.contains(&table.name) {
            read_rows(&tables, table, &mut |rows| sink(table.name, rows))?;
        }
    }
    Ok(())
}

/// Writes a value that the database keeps in its table `meta`. False for one that is a row.
fn write_value(session: &DatabaseSession, row: &MovedRow) -> bool {
    let name = VALUES.iter().find(|name| name.as_bytes() == row.key);
    if let Some(name) = name {
        let sql = "UPDATE meta SET value = $2 WHERE name = $1";
        session.change(SqlStatement::new(sql).with(*name).with(row.value.clone()));
    }
    name.is_some()
}
