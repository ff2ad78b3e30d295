//! Sealed rows in the database; not their sealing.

use super::{
    database::DatabaseWriting,
    session::DatabaseSession,
    statement::{SqlStatement, column},
};
use crate::store::StoreError;

/// The value of a row.
pub(super) fn value(session: &DatabaseSession, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
    let asked = SqlStatement::new("SELECT value FROM sealed WHERE name = $1");
    let row = session.row(asked.with(name))?;
    row.map(|row| column(&row, 0)).transpose()
}

/// Writes a row, or removes it.
pub(super) fn put(writing: &DatabaseWriting<'_>, name: &str, value: Option<&[u8]>) {
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
