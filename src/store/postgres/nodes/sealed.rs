//! Sealed rows in the database; not their sealing.

use crate::store::StoreError;
use crate::store::postgres::{
    database::DatabaseWriting,
    wire::{
        session::DatabaseSession,
        statement::{SqlStatement, column},
    },
};

/// The value of a row.
pub(in crate::store::postgres) fn value(
    session: &DatabaseSession,
    name: &str,
) -> Result<Option<Vec<u8>>, StoreError> {
    let asked = SqlStatement::new("SELECT value FROM sealed WHERE name = $1");
    let row = session.row(asked.with(name))?;
    row.map(|row| column(&row, 0)).transpose()
}

/// Writes a row, or removes it.
pub(in crate::store::postgres) fn put(
    writing: &DatabaseWriting<'_>,
    name: &str,
    value: Option<&[u8]>,
) {
    let change = match value {
        Some(value) => {
            let sql = "INSERT INTO sealed (name, value) VALUES ($1, $2) \
                       ON CONFLICT (name) DO UPDATE SET value = excluded.value";
            SqlStatement::new(sql).with(name).with(value.to_vec())
        }
        None => SqlStatement::new("DELETE FROM sealed WHERE name = $1").with(name),
    };
    writing.move_sealed();
    writing.session.change(change);
}
