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
pub(super) const LOOK_MAX: Duration = Duration::from_secs(5);

/// Begins a transaction that reads, all of it at one revision.
pub(super) const LOOKING: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Begins a transaction that changes what nobody misses after a crash of the database.
pub(super) const NOTING: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
     SET LOCAL lock_timeout = '3s'; SET LOCAL synchronous_commit = off";

/// A connection for one purpose.
pub(super) struct KeptConnection {
    connections: Arc<Connections>,
    client: Option<Client>,
}

impl KeptConnection {
    /// None yet.
    pub(super) fn new(connections: Arc<Connections>) -> Self {
        Self {
            connections,
            client: None,
        }
    }

    /// One transaction in one round trip: its opening, its statements, and COMMIT. `Away` when the
    /// database cannot be reached or does not answer within [`LOOK_MAX`].
    pub(super) async fn transact(
        &mut self,
        opening: &str,
        statements: Vec<SqlStatement>,
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        let Ok(answered) = timeout(LOOK_MAX, self.exchange(opening, statements)).await else {
            self.client = None;
            return Err(StoreError::Away("the database does not answer".into()));
        };
        answered
    }

    async fn exchange(
        &mut self,
        opening: &str,
        statements: Vec<SqlStatement>,
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        let kept = self.client.take().filter(|client| !client.is_closed());
        let client = match kept {
            Some(client) => client,
            None => self.connections.connect().await?,
        };
        let answers = transact(&client, opening, &statements).await;
        let answers = answers.map_err(|error| statement_error(&error))?;
        self.client = Some(client);
        Ok(answers)
    }
}

/// One transaction in one round trip.
pub(super) async fn transact(
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
