//! The registry of feeds in the database.

use super::{
    Postgres,
    database::DatabaseWriting,
    rows,
    session::DatabaseSession,
    statement::{SqlStatement, column},
};
use crate::store::{
    RegistryChange, RegistryEntry, RegistryStore, StoreError, StoreFuture,
    stored::{RegistryText, decode, encode},
};
use tokio_postgres::Row;

impl RegistryStore for Postgres {
    fn change_registry(&self, changes: Vec<RegistryChange>) -> StoreFuture<'_, ()> {
        self.write(move |writing| change(writing, &changes))
    }

    fn registry(&self, after: Option<String>, max: usize) -> StoreFuture<'_, Vec<RegistryEntry>> {
        self.read(move |session| entries(session, after.as_deref(), max))
    }
}

fn change(writing: &DatabaseWriting<'_>, changes: &[RegistryChange]) -> Result<(), StoreError> {
    for change in changes {
        let name = change.name();
        let written = match change {
            RegistryChange::Put { text, .. } => {
                let sql = "INSERT INTO registry (name, value) VALUES ($1, $2) \
                           ON CONFLICT (name) DO UPDATE SET value = excluded.value";
                let text = RegistryText { text: text.clone() };
                SqlStatement::new(sql).with(name).with(encode(&text)?)
            }
            RegistryChange::Remove(_) => {
                SqlStatement::new("DELETE FROM registry WHERE name = $1").with(name)
            }
        };
        writing.move_catalog();
        writing.session.change(written);
    }
    Ok(())
}

fn entries(
    session: &DatabaseSession,
    after: Option<&str>,
    max: usize,
) -> Result<Vec<RegistryEntry>, StoreError> {
    let sql = "SELECT name, value FROM registry WHERE $1::text IS NULL OR name > $1 \
               ORDER BY name LIMIT $2";
    let asked = SqlStatement::new(sql).with(after.map(str::to_owned));
    let entry = |row: &Row| {
        let text = match decode::<RegistryText>("an entry", column(row, 1)?) {
            Ok(read) => Ok(read.text),
            Err(StoreError::Damaged(why)) => Err(why),
            Err(error) => return Err(error),
        };
        Ok(RegistryEntry {
            name: column(row, 0)?,
            text,
        })
    };
    let rows = session.rows(asked.with(rows::limit(max)))?;
    rows.iter().map(entry).collect()
}
