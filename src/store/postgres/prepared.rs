//! Statements that one connection has prepared, so that the server plans each of them once. Not
//! behind a pooler, which gives each transaction another connection: there is room for none then.

use super::statement::SqlStatement;
use std::collections::HashMap;
use tokio_postgres::{Client, Error, Statement};

/// The prepared statements of a connection, by their text.
pub(super) struct PreparedStatements {
    /// Statements at most. What has no room is sent with its text.
    room: usize,
    by_text: HashMap<String, Statement>,
}

impl PreparedStatements {
    /// None yet.
    pub(super) fn new(room: usize) -> Self {
        Self {
            room,
            by_text: HashMap::new(),
        }
    }

    /// Prepares those of the statements that are new and have room, one after the other: a text is
    /// prepared once.
    ///
    /// Errors of the server as those of the statement itself.
    pub(super) async fn prepare(
        &mut self,
        client: &Client,
        statements: &[&SqlStatement],
    ) -> Result<(), Error> {
        for statement in statements {
            let text = &*statement.sql;
            if self.by_text.len() >= self.room {
                return Ok(());
            }
            if self.by_text.contains_key(text) {
                continue;
            }
            let types: Vec<_> = statement
                .params
                .iter()
                .map(|param| param.kind.clone())
                .collect();
            let prepared = client.prepare_typed(text, &types).await?;
            self.by_text.insert(text.to_owned(), prepared);
        }
        Ok(())
    }

    /// The prepared form of a statement, if there is one.
    pub(super) fn of(&self, statement: &SqlStatement) -> Option<&Statement> {
        let prepared = self.by_text.get(&*statement.sql)?;
        let kinds = statement.params.iter().map(|param| &param.kind);
        // The same text may be asked with parameters of other types.
        prepared.params().iter().eq(kinds).then_some(prepared)
    }
}
