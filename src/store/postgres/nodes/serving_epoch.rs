//! The epoch in which one process changes what is stored: how it begins, which ends those before it,
//! and how it ends in order. Not who may begin one.

use crate::store::postgres::{
    database::{Database, DatabaseWriting},
    rows::generations,
    wire::{
        fault::statement_error,
        statement::{SqlStatement, column, number_at, stamp_at},
    },
};
use crate::{
    feed::stamp::Stamp,
    store::{
        StoreError,
        clock_guard::ClockGuard,
        stored::{decode, encode},
    },
};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{
    sync::oneshot,
    task::spawn_blocking,
    time::{sleep, timeout},
};

/// Time that transactions of the epoch before have to end, before their connections are ended: their
/// process may be stopped.
const PATIENCE: Duration = Duration::from_secs(1);

/// Pause between two looks at who holds up the epoch.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// Time in which an epoch begins or does not.
const BEGIN_MAX: Duration = Duration::from_secs(15);

/// The same where all feeds begin new generations.
const BEGIN_ALL_MAX: Duration = Duration::from_secs(600);

/// Begins a transaction that begins an epoch.
const BEGINNING: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
     SET LOCAL lock_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '20s'";

/// An epoch that began, with what the database holds of the clock.
pub(in crate::store::postgres) struct BegunEpoch {
    number: i64,
    was_running: bool,
    guard: ClockGuard,
}

impl BegunEpoch {
    /// Has this process work in it.
    pub(in crate::store::postgres) fn take_up(self, database: &Database) {
        database.take_guard(self.guard);
        let uncleanly = &database.ended_uncleanly;
        uncleanly.store(self.was_running, Ordering::SeqCst);
        database.set_epoch(self.number);
    }
}

/// Begins a new epoch, in which no process before us commits anything. `before` is the epoch behind
/// which it is to come; the answer is `None` where that is over already. Where commits up to
/// `lost_until` were lost, all feeds begin new generations behind that. `told` is given the number of
/// our server process. Blocks.
pub(in crate::store::postgres) fn begin(
    database: &Database,
    before: Option<i64>,
    lost_until: Option<Stamp>,
    told: impl FnOnce(i32),
) -> Result<Option<BegunEpoch>, StoreError> {
    let session = database.session(BEGINNING, None)?;
    let begun = || {
        session.note_change();
        let asked = SqlStatement::new("SELECT pg_backend_pid()");
        if let Some(row) = session.row(asked)? {
            told(column(&row, 0)?);
        }
        let raised = SqlStatement::new(
            "UPDATE meta SET number = number + 1 WHERE name = 'epoch' \
             AND number = coalesce($1, number) RETURNING number",
        );
        let Some(row) = session.row(raised.with(before))? else {
            return Ok(None);
        };
        let number = column(&row, 0)?;
        let answers = session.ask(vec![
            SqlStatement::new("SELECT number FROM meta WHERE name = 'running'"),
            SqlStatement::new("UPDATE meta SET number = 1 WHERE name = 'running'"),
            SqlStatement::new("SELECT value FROM meta WHERE name = 'clock' AND value IS NOT NULL"),
            SqlStatement::new("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"),
        ])?;
        let now = answers[3].first().map(|row| stamp_at(row, 0)).transpose()?;
        let now = database.settled_time(now.unwrap_or_default());
        if let Some(lost_until) = lost_until {
            generations::begin_here(&session, lost_until.max(now))?;
        }
        session.commit()?;
        let running = answers[0].first().map(|row| number_at(row, 0));
        let guard = answers[2]
            .first()
            .map(|row| decode::<ClockGuard>("the last time recorded", column(row, 0)?));
        let begun = BegunEpoch {
            number,
            was_running: running.transpose()? == Some(1),
            guard: guard.transpose()?.unwrap_or_default(),
        };
        Ok::<_, StoreError>(Some((begun, now)))
    };
    let answer = begun();
    session.end(matches!(answer, Ok(Some(_))));
    let Some((begun, now)) = answer? else {
        return Ok(None);
    };
    if let Some(by) = begun.guard.is_ahead_by(now) {
        tracing::warn!(
            "The database was last written {} s after the present time: its clock ran ahead then, or was set back since. Changes are stored after the last T",
            by.as_secs()
        );
    }
    Ok(Some(begun))
}

// Limit: a process that is cut off from us, but not from the database, has its transactions ended,
// too. It reads back what became of them.
/// The same beside other processes. Transactions that hold it up are ended: those of a process that
/// is stopped would never end.
pub(in crate::store::postgres) async fn begin_beside(
    database: &Arc<Database>,
    before: i64,
    lost_until: Option<Stamp>,
) -> Result<Option<BegunEpoch>, StoreError> {
    let (told, process) = oneshot::channel();
    let working = Arc::clone(database);
    let beginning = spawn_blocking(move || {
        begin(&working, Some(before), lost_until, |process| {
            // Nobody may ask for it any more.
            let _ = told.send(process);
        })
    });
    let ending = async {
        if let Ok(process) = process.await {
            end_blocking(database, process).await;
        }
        std::future::pending().await
    };
    let most = match lost_until {
        Some(_) => BEGIN_ALL_MAX,
        None => BEGIN_MAX,
    };
    let begun = timeout(most, async {
        tokio::select! {
            begun = beginning => begun,
            () = ending => unreachable!("it is pending for ever"),
        }
    });
    match begun.await {
        Ok(Ok(begun)) => begun,
        Ok(Err(_)) => Err(StoreError::Closed),
        Err(_) => Err(StoreError::Away(
            "transactions of another process hold up the database".into(),
        )),
    }
}

/// Ends the connections that this process of the server waits for, until nobody asks for that.
async fn end_blocking(database: &Database, process: i32) {
    sleep(PATIENCE).await;
    let text = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE pid = ANY(pg_blocking_pids({process})) AND usename = current_user"
    );
    loop {
        match end_once(database, &text).await {
            Ok(0) => {}
            Ok(ended) => tracing::warn!(
                "{ended} connections were ended that held up the change of the node that works"
            ),
            Err(error) => tracing::warn!("What holds up the change of nodes is not ended: {error}"),
        }
        sleep(LOOK_EVERY).await;
    }
}

async fn end_once(database: &Database, text: &str) -> Result<i64, StoreError> {
    let client = database.connections.connect().await?;
    let answer = client.query_typed_one(text, &[]).await;
    column(&answer.map_err(|error| statement_error(&error))?, 0)
}

/// Says that the store is closed, and writes the last time recorded.
pub(in crate::store::postgres) fn end(
    writing: &DatabaseWriting<'_>,
    guard: &ClockGuard,
) -> Result<(), StoreError> {
    let session = writing.session;
    session.change(SqlStatement::new(
        "UPDATE meta SET number = 0 WHERE name = 'running'",
    ));
    let written = SqlStatement::new("UPDATE meta SET value = $1 WHERE name = 'clock'");
    session.change(written.with(encode(guard)?));
    Ok(())
}
