//! A connection that is kept for one purpose beside those of transactions: made when it is needed,
//! thrown away when it broke. Not what is asked on it.

use super::{
    connections::Connections,
    fault::statement_error,
    session::{asked, begun},
    statement::SqlStatement,
};
use crate::store::StoreError;
use futures_util::future::join_all;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use tokio_postgres::{Client, Error, Row};

/// Time for a transaction on it. A database that takes longer does not answer any more.
pub(in crate::store::postgres) const LOOK_MAX: Duration = Duration::from_secs(5);

/// Begins a transaction that reads, all of it at one revision.
pub(in crate::store::postgres) const LOOKING: &str =
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Begins a transaction that changes what nobody misses after a crash of the database.
pub(in crate::store::postgres) const NOTING: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
     SET LOCAL lock_timeout = '3s'; SET LOCAL synchronous_commit = off";

/// A connection for one purpose.
pub(in crate::store::postgres) struct KeptConnection {
    connections: Arc<Connections>,
    client: Option<Client>,
    is_new: bool,
}

impl KeptConnection {
    /// None yet.
    pub(in crate::store::postgres) fn new(connections: Arc<Connections>) -> Self {
        Self {
            connections,
            client: None,
            is_new: false,
        }
    }

    /// One transaction in one round trip: its opening, its statements, and COMMIT. `Away` when the
    /// database cannot be reached or does not answer within [`LOOK_MAX`].
    pub(in crate::store::postgres) async fn transact(
        &mut self,
        opening: &str,
        statements: Vec<SqlStatement>,
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        let kept = self.client.take().filter(|client| !client.is_closed());
        let client = match kept {
            Some(client) => client,
            None => {
                self.is_new = true;
                self.connections.connect().await?
            }
        };
        let asked = timeout(LOOK_MAX, transact(&client, opening, &statements)).await;
        let asked = asked.map_err(|_| StoreError::Away("the database does not answer".into()))?;
        let answers = asked.map_err(|error| statement_error(&error))?;
        self.client = Some(client);
        Ok(answers)
    }

    /// True when it was made since the last time that this was asked: it may lead to another server.
    pub(in crate::store::postgres) fn take_is_new(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }
}

/// One transaction in one round trip.
pub(in crate::store::postgres) async fn transact(
    client: &Client,
    opening: &str,
    statements: &[SqlStatement],
) -> Result<Vec<Vec<Row>>, Error> {
    let answering = join_all(statements.iter().map(|statement| asked(client, statement)));
    // They are sent in this order, and what fails fails all behind it.
    let (begun, answers, ended) = futures_util::join!(
        begun(client, Some(opening)),
        answering,
        client.batch_execute("COMMIT")
    );
    begun?;
    let answers = answers.into_iter().collect::<Result<_, _>>()?;
    ended?;
    Ok(answers)
}
