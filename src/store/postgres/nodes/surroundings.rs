//! The surroundings of the tables of a database: the roles that may connect to it, and the public URL of the
//! nodes that it belongs to. For `everfeed check`; nothing is changed.

use crate::store::postgres::{
    rows::schema,
    wire::{
        session::DatabaseSession,
        statement::{SqlStatement, column},
    },
};
use crate::store::{DatabaseSurroundings, StoreError};

/// The number of the schema from which on the public URL is held.
const ROOT_SINCE: i64 = 4;

/// Looks at the database of a session.
pub(in crate::store::postgres) fn look(
    session: &DatabaseSession,
) -> Result<DatabaseSurroundings, StoreError> {
    // Advisory locks are of a database: a role that may connect can hold those by which nodes agree on
    // the one that works. It needs no right on any table.
    let asked = include_str!("surroundings/connect.sql");
    let mut found = DatabaseSurroundings::default();
    for row in session.rows(SqlStatement::new(asked))? {
        if column(&row, 0)? {
            found.admits_everybody = true;
        } else {
            found.admits.push(column(&row, 1)?);
        }
    }
    found.admits.dedup();
    let name = session.row(SqlStatement::new("SELECT current_database()::text"))?;
    found.name = name.map_or_else(|| Ok(String::new()), |row| column(&row, 0))?;
    if schema::held(session)? >= ROOT_SINCE {
        let held = "SELECT convert_from(value, 'UTF8') FROM meta \
                    WHERE name = 'root' AND value IS NOT NULL";
        let row = session.row(SqlStatement::new(held))?;
        found.root = row.map(|row| column(&row, 0)).transpose()?;
    }
    Ok(found)
}
