//! The store in a database of PostgreSQL, served by one process alone or by several: transactions are
//! in [`database`], tables in [`schema`], not here.

use super::{
    BackupReport, DatabaseSurroundings, POLLS_LATE_SECS, StoreError, StoreFuture, Upkeep, Watched,
    condition::StoreCondition,
    database_url::DatabaseUrl,
    engine::RowReader,
    nodes::{Duty, Nodes},
    rows::{Engine, Writing},
    settings::WakeMode,
};
use crate::{clock::Clock, locks::lock};
pub use database::DatabaseTime;
use database::{Database, DatabaseWriting};
use node_lease::{KnownHead, NodeLease};
use nodes::{
    keeper::NodeKeeper,
    serving_epoch,
    serving_lock::{self, ServingLockKind},
    surroundings, wake_ups,
};
pub(super) use rows::moves::DatabaseEnd;
use rows::{generations, moves, schema, tables::RowTables};
use std::{
    path::Path,
    sync::{Arc, Mutex, atomic::Ordering, mpsc::sync_channel},
    time::Duration,
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};
use wire::{
    address,
    connections::{CONNECTIONS_MAX, Connections},
    fault::DatabaseFault,
    session::DatabaseSession,
    statement::SqlStatement,
};

mod wire;

mod node_lease;

mod database;

mod rows;

mod nodes;

#[cfg(test)]
mod tests;

/// The problem with a URL; `None` for one that can be connected to.
pub(super) fn url_problem(url: &DatabaseUrl) -> Option<String> {
    address::address(url).err()
}

/// Time for which poll states gather: each save of them is a transaction that is durable at once.
const POLLS_GATHER: Duration = Duration::from_secs(2);
const _: () = assert!(POLLS_GATHER.as_secs() < POLLS_LATE_SECS);

/// Time for saying that a store is closed that was dropped.
const END_MAX: Duration = Duration::from_secs(2);

/// A store in a database. Dropping it ends it in order, too, but blocks meanwhile;
/// [`Upkeep::close`] does not. What was answered with `Ok` is committed there.
pub struct Postgres {
    database: Arc<Database>,
    /// Holds the locks, and watches over them.
    watch: Mutex<Option<JoinHandle<()>>>,
    /// The conversation with other processes, and the way to leave it.
    nodes: Option<Nodes>,
    leaving: Mutex<Option<oneshot::Sender<oneshot::Sender<()>>>>,
    /// Its sockets and timers are apart from everybody else's, and threads of it wait for the
    /// database.
    runtime: Option<Runtime>,
}

impl Postgres {
    /// Connects to the database, makes its tables or brings them up to date, and takes the lock by
    /// which one process alone serves it. Blocks, and is not called by a task.
    ///
    /// `Away` when the database cannot be reached or refuses us; `Schema` for a URL that cannot be
    /// read, and for tables that are a newer everfeed's or nobody's; `Failed` when another process
    /// serves it, or rights are missing.
    pub fn open(
        url: &DatabaseUrl,
        clock: Arc<dyn Clock>,
        time: DatabaseTime,
    ) -> Result<Self, StoreError> {
        Self::open_where(url, clock, time, moves::refuse_copied)
    }

    /// The same of a database that may have gone on elsewhere.
    fn open_unchecked(
        url: &DatabaseUrl,
        clock: Arc<dyn Clock>,
        time: DatabaseTime,
    ) -> Result<Self, StoreError> {
        Self::open_where(url, clock, time, |_| Ok(()))
    }

    fn open_where(
        url: &DatabaseUrl,
        clock: Arc<dyn Clock>,
        time: DatabaseTime,
        check: impl Fn(&DatabaseSession) -> Result<(), StoreError>,
    ) -> Result<Self, StoreError> {
        let (runtime, database) = connected(url, clock, time, None)?;
        migrate(&database)?;
        let held = serving_lock::take(&database, ServingLockKind::Alone);
        let held = runtime.block_on(held)?;
        database.read(check)?;
        if let Some(begun) = serving_epoch::begin(&database, None, None, |_| ())? {
            begun.take_up(&database);
        }
        let watch = runtime.spawn(serving_lock::watch(Arc::downgrade(&database), held));
        Ok(Self {
            database,
            watch: Mutex::new(Some(watch)),
            nodes: None,
            leaving: Mutex::default(),
            runtime: Some(runtime),
        })
    }

    /// Connects to the database likewise, and serves it beside others: one of them works (see
    /// [`Duty`]). Blocks, and is not called by a task.
    ///
    /// Errors as those of [`Postgres::open`]; `Failed` when a process serves it alone.
    pub fn open_node(
        url: &DatabaseUrl,
        clock: Arc<dyn Clock>,
        time: DatabaseTime,
        wake: WakeMode,
    ) -> Result<Self, StoreError> {
        let (nodes, engine) = Nodes::pair(Duty::Following);
        let is_woken = wake == WakeMode::Notify;
        let seat = NodeLease::new(rand::random(), is_woken, engine.duty.clone());
        let seat = Arc::new(seat);
        let (runtime, database) = connected(url, clock, time, Some(Arc::clone(&seat)))?;
        migrate(&database)?;
        database.read(moves::refuse_copied)?;
        let keeper = NodeKeeper::begin(Arc::clone(&database), Arc::clone(&seat), engine);
        let keeper = runtime.block_on(keeper)?;
        runtime.spawn(wake_ups::tell(Arc::clone(&database), seat));
        let (leave, leaving) = oneshot::channel();
        let watch = runtime.spawn(keeper.keep(leaving));
        Ok(Self {
            database,
            watch: Mutex::new(Some(watch)),
            nodes: Some(nodes),
            leaving: Mutex::new(Some(leave)),
            runtime: Some(runtime),
        })
    }

    /// Has all feeds of a database begin new generations, while nobody serves it. Blocks.
    ///
    /// Errors as those of [`Postgres::open`].
    pub fn begin_generations(url: &DatabaseUrl, clock: Arc<dyn Clock>) -> Result<(), StoreError> {
        let held = Self::open(url, clock, DatabaseTime::OfDatabase)?;
        held.database
            .write(|writing| generations::begin_here(writing.session, writing.now()?))?;
        let runtime = held.database.runtime.clone();
        runtime.block_on(held.close())
    }

    /// Looks at what a database is beside its tables. Nothing is made or locked. Blocks.
    pub fn surroundings(
        url: &DatabaseUrl,
        clock: Arc<dyn Clock>,
    ) -> Result<DatabaseSurroundings, StoreError> {
        let (runtime, database) = connected(url, clock, DatabaseTime::OfDatabase, None)?;
        let looking = database.session("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY", None)?;
        let found = surroundings::look(&looking);
        looking.end(false);
        drop(database);
        runtime.shutdown_background();
        found
    }

    /// Connects to the database to look at it: nothing is made or locked. `None` for one without
    /// tables. Blocks.
    pub fn look(url: &DatabaseUrl, clock: Arc<dyn Clock>) -> Result<Option<Self>, StoreError> {
        let (runtime, database) = connected(url, clock, DatabaseTime::OfDatabase, None)?;
        let looking = database.session("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY", None)?;
        let held = schema::held(&looking);
        looking.end(false);
        if held? == 0 {
            runtime.shutdown_background();
            return Ok(None);
        }
        Ok(Some(Self {
            database,
            watch: Mutex::default(),
            nodes: None,
            leaving: Mutex::default(),
            runtime: Some(runtime),
        }))
    }

    /// Reads at one revision.
    fn look_at<T: Send + 'static>(
        &self,
        work: impl Fn(&DatabaseSession) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let database = Arc::clone(&self.database);
        Box::pin(database.run(move |database| database.read(work)))
    }

    /// True while this process changes what is stored.
    fn works(&self) -> bool {
        let is_watched = lock(&self.watch).is_some();
        is_watched && self.database.seat.as_ref().is_none_or(|seat| seat.works())
    }

    /// Says in the database that it is closed in order, if this process changed it.
    fn end(&self) -> StoreFuture<'_, ()> {
        if !self.works() {
            let database = Arc::clone(&self.database);
            return Box::pin(database.run(|_| Ok(())));
        }
        let guard = self.database.guard();
        self.change(move |writing| serving_epoch::end(writing, &guard))
    }

    /// Lets go of the locks.
    async fn leave(&self) {
        let leave = lock(&self.leaving).take();
        if let Some(leave) = leave {
            let (left, has_left) = oneshot::channel();
            // One that has ended has left.
            let _ = leave.send(left);
            let _ = timeout(END_MAX, has_left).await;
        }
        if let Some(watch) = lock(&self.watch).take() {
            watch.abort();
        }
    }

    /// Ends in order where nobody has closed it. Blocks meanwhile, but not for long.
    fn end_in_order(&self) {
        let Some(runtime) = &self.runtime else { return };
        if !self.works() || self.database.is_away() {
            return;
        }
        let guard = self.database.guard();
        let database = Arc::clone(&self.database);
        let (ended, answer) = sync_channel(1);
        runtime.spawn(async move {
            let ending = database
                .run(move |database| database.write(|writing| serving_epoch::end(writing, &guard)));
            // Nobody may wait for it any more.
            let _ = ended.send(ending.await);
        });
        // What is not said now costs the next start some caution.
        let _ = answer.recv_timeout(END_MAX);
    }

    /// Changes in one transaction.
    fn change<T: Send + 'static>(
        &self,
        work: impl FnMut(&DatabaseWriting<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let database = Arc::clone(&self.database);
        Box::pin(database.run(move |database| database.write(work)))
    }
}

/// Does this in a database, as somebody else.
#[cfg(test)]
pub(super) async fn execute_in(url: &DatabaseUrl, sql: &str) -> Result<(), StoreError> {
    let address = address::address(url).map_err(StoreError::Schema)?;
    let done = Connections::new(address)
        .connect()
        .await?
        .batch_execute(sql)
        .await;
    done.map_err(|error| wire::fault::statement_error(&error))
}

/// A runtime with a database that nothing was asked of yet.
fn connected(
    url: &DatabaseUrl,
    clock: Arc<dyn Clock>,
    time: DatabaseTime,
    seat: Option<Arc<NodeLease>>,
) -> Result<(Runtime, Arc<Database>), StoreError> {
    let address = address::address(url);
    let address = address.map_err(|why| StoreError::Schema(format!("store.url, {url}: {why}")))?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        // One for each connection, and some that end just now.
        .max_blocking_threads(CONNECTIONS_MAX * 2)
        .thread_name("store-postgres")
        .enable_all()
        .build()
        .map_err(|error| StoreError::Failed(format!("no thread for the database: {error}")))?;
    let connections = Arc::new(Connections::new(address));
    let database = Database::new(runtime.handle().clone(), connections, clock, time, seat);
    let database = Arc::new(database);
    Ok((runtime, database))
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.end_in_order();
        // The lock is let go of at once, and not when the threads have ended.
        if let Some(watch) = lock(&self.watch).take() {
            watch.abort();
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Times that a migration is begun at most.
const MIGRATIONS_MAX: u32 = 6;

/// Makes the tables, or brings them up to date. Where another everfeed changes the store meanwhile,
/// each of the two may hold what the other one waits for. Then one of them begins again.
fn migrate(database: &Database) -> Result<(), StoreError> {
    let mut tries = 0;
    loop {
        tries += 1;
        let migrating = database.session("BEGIN ISOLATION LEVEL READ COMMITTED", None)?;
        let migrated = schema::migrate(&migrating);
        let has_crossed = migrating.fault() == Some(DatabaseFault::Crossed);
        migrating.end(migrated.is_ok());
        if migrated.is_ok() || !has_crossed || tries == MIGRATIONS_MAX {
            return migrated;
        }
    }
}

impl Watched for Postgres {
    fn keeps_forgotten(&self) -> Option<String> {
        Some(
            "the database may hold it in its pages until they are vacuumed, and in its dumps"
                .to_owned(),
        )
    }

    fn condition(&self) -> StoreCondition {
        self.database.condition()
    }

    fn ended_uncleanly(&self) -> bool {
        self.database.ended_uncleanly.load(Ordering::SeqCst)
    }

    fn polls_gather(&self) -> Duration {
        POLLS_GATHER
    }

    fn restored(&self) -> Option<String> {
        self.database.restored()
    }

    fn nodes(&self) -> Option<&Nodes> {
        self.nodes.as_ref()
    }
}

impl Upkeep for Postgres {
    fn check(&self) -> StoreFuture<'_, ()> {
        if self.nodes.is_some() && !self.works() {
            // Whoever follows changes nothing, and lives as long as it can read.
            return self.look_at(|session| session.rows(SqlStatement::new("SELECT 1")).map(drop));
        }
        // A transaction for changes is begun, which a server that takes none refuses.
        self.change(|writing| writing.check_clock())
    }

    fn accept_clock(&self) -> StoreFuture<'_, ()> {
        self.change(|writing| writing.accept_clock())
    }

    fn back_up<'a>(&'a self, _: &'a Path) -> StoreFuture<'a, BackupReport> {
        Box::pin(async {
            Err(StoreError::Failed(
                "the store is a database; back it up with pg_dump, or copy it to a file: `everfeed store copy --keep URL FILE`".into(),
            ))
        })
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async {
            let ended = self.end().await;
            self.database.close().await;
            self.leave().await;
            self.database.connections.close_free();
            ended
        })
    }
}

impl Engine for Postgres {
    fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&dyn RowReader) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        self.look_at(move |session| work(&RowTables::of(session)))
    }

    fn write<T: Send + 'static>(
        &self,
        mut work: impl FnMut(&mut Writing<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        self.change(move |database| {
            let tables = RowTables::of(database.session);
            let opening = || database.opening();
            let mut writing = Writing::opened_by(&tables, &opening);
            let answer = work(&mut writing)?;
            if writing.records_clock {
                database.record_clock();
            }
            if writing.moves_catalog {
                database.move_catalog();
            }
            if writing.moves_accounts {
                database.move_accounts();
            }
            if let Some(content) = writing.renewed_content() {
                database.write_content(content)?;
            }
            tables.flush();
            for (_, feed) in tables.take_announced() {
                // A record that is damaged is told by whoever serves the feed.
                if let Ok((feed, head)) = KnownHead::of_row(&feed) {
                    database.note_feed(feed, head);
                }
            }
            Ok(answer)
        })
    }
}
