//! The locks by which processes serve a database, one alone or several together, and the watch of
//! one that serves it alone; not what is served.

use crate::store::postgres::{
    database::{Database, try_change},
    rows::schema::SERVING_LOCK,
    wire::{fault::statement_error, statement::column},
};
use crate::store::{Remedy, StoreError};
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::Client;

/// Time between two looks at the lock and the database.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Time for a look. A database that takes longer does not answer any more.
const LOOK_MAX: Duration = Duration::from_secs(5);

/// Time that a start waits for the process before it to let go of the lock.
const TAKE_MAX: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 5 });

/// Pause between two tries of a start.
const TAKE_EVERY: Duration = Duration::from_millis(5);

/// The connection on which a lock is held; without it the lock is free.
pub(in crate::store::postgres) struct ServingLock(Client);

impl ServingLock {
    /// True when the lock is lost.
    pub(in crate::store::postgres) fn is_lost(&self) -> bool {
        self.0.is_closed()
    }

    /// Lets go of it. The lock is free then, whatever the answer.
    pub(in crate::store::postgres) async fn free(self) {
        // Without its connection it is free as well.
        let _ = timeout(LOOK_MAX, self.0.batch_execute("ROLLBACK")).await;
    }
}

/// A lock on a database.
#[derive(Clone, Copy, Debug)]
pub(in crate::store::postgres) enum ServingLockKind {
    /// Of the process that serves it alone.
    Alone,
    /// Of each process that serves it beside others.
    Beside,
    /// Of the process that works in this epoch.
    Epoch(i64),
}

/// The key of the lock of an epoch, as an expression; the number of the epoch is in brackets before
/// and behind.
pub(in crate::store::postgres) const EPOCH_KEY: (&str, &str) = (
    "hashtextextended('everfeed works in ' || current_schema() || ' ' || (",
    "), 0)",
);

impl ServingLockKind {
    fn statement(self) -> String {
        let of_schema = format!("({SERVING_LOCK}, hashtext(current_schema()::text))");
        match self {
            Self::Alone => format!("SELECT pg_try_advisory_xact_lock{of_schema}"),
            Self::Beside => format!("SELECT pg_try_advisory_xact_lock_shared{of_schema}"),
            Self::Epoch(epoch) => format!(
                "SELECT pg_try_advisory_xact_lock({}{epoch}{})",
                EPOCH_KEY.0, EPOCH_KEY.1
            ),
        }
    }
}

// Decides: Which process serves a database?
/// Takes a lock on a connection of its own. It is held by a transaction, so that a pooler leaves
/// the connection to us; one that has read and written nothing holds up no vacuum.
pub(in crate::store::postgres) async fn try_take(
    database: &Database,
    kind: ServingLockKind,
) -> Result<Option<ServingLock>, StoreError> {
    let client = database.connections.connect().await?;
    let taken = timeout(LOOK_MAX, async {
        let failed = |error: tokio_postgres::Error| statement_error(&error);
        client
            .batch_execute(
                "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; \
                 SET LOCAL idle_in_transaction_session_timeout = 0",
            )
            .await
            .map_err(failed)?;
        let answer = client.query_typed_one(&kind.statement(), &[]).await;
        let is_ours: bool = column(&answer.map_err(failed)?, 0)?;
        Ok(is_ours.then_some(ServingLock(client)))
    });
    let away = || StoreError::Away("the database does not answer".into());
    taken.await.unwrap_or_else(|_| Err(away()))
}

/// Takes the lock for a process that starts.
pub(in crate::store::postgres) async fn take(
    database: &Database,
    kind: ServingLockKind,
) -> Result<ServingLock, StoreError> {
    let until = Instant::now() + TAKE_MAX;
    loop {
        if let Some(held) = try_take(database, kind).await? {
            return Ok(held);
        }
        if Instant::now() >= until {
            return Err(StoreError::Failed(
                "another everfeed serves the database; stop it first: two hubs would push".into(),
            ));
        }
        sleep(TAKE_EVERY).await;
    }
}

/// Watches the lock and the database until the store is gone. What is lost is taken again; what
/// another process has changed meanwhile only a new process takes up.
pub(in crate::store::postgres) async fn watch(database: Weak<Database>, held: ServingLock) {
    let mut held = Some(held);
    loop {
        sleep(LOOK_EVERY).await;
        let Some(database) = database.upgrade() else {
            return;
        };
        if let Some(ServingLock(client)) = &held
            && !answers(client).await
        {
            held = None;
            let cause = "the connection that holds our lock in the database broke";
            database.set_outage(cause, Remedy::ComesBack);
        }
        if database.is_away() {
            look_again(&database, &mut held).await;
        }
    }
}

async fn answers(client: &Client) -> bool {
    let asked = timeout(LOOK_MAX, client.simple_query("SELECT 1")).await;
    matches!(asked, Ok(Ok(_)))
}

/// Ends an outage when the lock is ours and a change can be committed.
async fn look_again(database: &Arc<Database>, held: &mut Option<ServingLock>) {
    let looked = async {
        if held.is_none() {
            *held = try_take(database, ServingLockKind::Alone).await?;
        }
        if held.is_none() {
            return Err(StoreError::Away(
                "another everfeed serves the database".into(),
            ));
        }
        let connection = database.connections.take_new().await?;
        let failed = |error: tokio_postgres::Error| statement_error(&error);
        let changed = timeout(LOOK_MAX, async {
            try_change(&connection.client).await.map_err(failed)?;
            let asked = connection
                .client
                .query_typed_one("SELECT number FROM meta WHERE name = 'epoch'", &[])
                .await;
            column(&asked.map_err(failed)?, 0)
        });
        let silent = || StoreError::Away("the database does not answer".into());
        let epoch: i64 = changed.await.unwrap_or_else(|_| Err(silent()))?;
        connection.give_back();
        Ok(epoch)
    };
    match looked.await {
        Ok(epoch) if epoch == database.epoch() => database.end_outage(),
        Ok(_) => database.set_outage(
            "another everfeed has served the database meanwhile",
            Remedy::Restart,
        ),
        Err(error) => database.note_outage(&error),
    }
}
