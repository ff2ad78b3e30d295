//! Statements that one connection has prepared, so that the server plans each of them once. Not
//! behind a pooler, which gives each transaction another connection: there is room for none then.

use super::statement::SqlStatement;
use std::collections::HashMap;
use tokio_postgres::{Client, Statement, types::Type};

/// The prepared statements of a connection, by their text.
pub(in crate::store::postgres) struct PreparedStatements {
    /// Statements at most. What has no room is sent with its text.
    room: usize,
    by_text: HashMap<String, Option<Statement>>,
    /// Statements that were sent with their text, for the next time.
    wanted: Vec<SqlText>,
}

/// A statement without values.
struct SqlText {
    text: String,
    kinds: Vec<Type>,
}

impl PreparedStatements {
    /// None yet.
    pub(in crate::store::postgres) fn new(room: usize) -> Self {
        Self {
            room,
            by_text: HashMap::new(),
            wanted: Vec::new(),
        }
    }

    /// Prepares what was sent with its text. No transaction may be open: a statement may name a
    /// table that is gone, and its failure would end the transaction.
    pub(in crate::store::postgres) async fn prepare_wanted(&mut self, client: &Client) {
        for SqlText { text, kinds } in self.wanted.drain(..) {
            let prepared = client.prepare_typed(&text, &kinds).await.ok();
            self.by_text.insert(text, prepared);
        }
    }

    /// Notes those of the statements that are not prepared and have room.
    pub(in crate::store::postgres) fn note(&mut self, statements: &[&SqlStatement]) {
        for statement in statements {
            if self.by_text.len() + self.wanted.len() >= self.room {
                return;
            }
            let text = &*statement.sql;
            let is_wanted = self.wanted.iter().any(|wanted| wanted.text == text);
            if !is_wanted && !self.by_text.contains_key(text) {
                let kinds = statement.params.iter().map(|param| param.kind.clone());
                self.wanted.push(SqlText {
                    text: text.to_owned(),
                    kinds: kinds.collect(),
                });
            }
        }
    }

    /// The prepared form of a statement, if there is one.
    pub(in crate::store::postgres) fn of(&self, statement: &SqlStatement) -> Option<&Statement> {
        let prepared = self.by_text.get(&*statement.sql)?.as_ref()?;
        let kinds = statement.params.iter().map(|param| &param.kind);
        // The same text may be asked with parameters of other types.
        prepared.params().iter().eq(kinds).then_some(prepared)
    }
}
