//! Transactions in the database: each tried again where that helps, and read back where its end was
//! not seen. Not what is done in them.

use super::{
    node_lease::{KnownHead, MovedInCommit, NodeLease, WakeUp},
    wire::{
        connections::{CONNECTIONS_MAX, Connections, TakenConnection},
        fault::{DatabaseFault, fault_of, is_full_disk, statement_error, words},
        kept_connection::{LOOK_MAX, transact},
        session::DatabaseSession,
        statement::{SqlStatement, column, stamp_at},
    },
};
use crate::{
    clock::Clock,
    feed::{record::FeedNo, stamp::Stamp},
    locks::lock,
    store::{
        Duty, Outage, Remedy, StoreCondition, StoreError,
        clock_guard::ClockGuard,
        content_mark::ContentMark,
        rows::writing::Opening,
        stored::{decode, encode},
    },
};
use std::{
    cell::{Cell, RefCell},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::timeout,
};
use tokio_postgres::{Client, Row, types::Type};

/// Begins a transaction that reads: all of it at one revision.
const READING: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Begins a transaction that changes. Each statement sees what was committed before it, whatever the
/// server is set to. A lock that does not come, and a process that does not go on, hold up nobody
/// for long.
const WRITING: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
     SET LOCAL lock_timeout = '5s'; \
     SET LOCAL idle_in_transaction_session_timeout = '60s'";

/// The server as it began last, as an expression. After a crash of one of its processes it begins
/// anew under the same number and time of its own, and counts from then on.
pub(super) const SERVER: &str = "concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), \
     extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()))";

/// Begins a transaction in which it is tried whether a change can be committed.
pub(super) const TRYING: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
     SET LOCAL lock_timeout = '5s'";

/// The statements of it. They take as much room as an ordinary change, so that an outage does not end
/// only to begin again, and leave nothing.
const TRIED: [&str; 3] = [
    "UPDATE meta SET number = number WHERE name = 'running'",
    "INSERT INTO rows_staging (key, value) SELECT decode('ffffffff', 'hex') || int4send(n), \
     convert_to(repeat('.', 1900), 'UTF8') FROM generate_series(1, 64) n",
    "DELETE FROM rows_staging WHERE key > decode('ffffffff', 'hex')",
];

/// Times that a transaction is done, when it meets others or its connection breaks.
const TRIES_MAX: u32 = 6;

/// Pause before the second of them; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// Time in which the end of a transaction is looked for, when its connection broke in COMMIT.
const OUTCOME_TIME_MAX: Duration = Duration::from_secs(10);

/// Time that a call waits for one of [`CONNECTIONS_MAX`] connections.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// Seconds after which the last time recorded is written again.
const CLOCK_EVERY_SECS: u64 = 60;

/// Seconds for which it is told that the database lost commits.
const RESTORED_TOLD_SECS: u64 = 7 * 86_400;

/// The epoch of a process that works in none.
const NO_EPOCH: i64 = -1;

/// Source of T.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseTime {
    /// The clock of the database, which all of its users share.
    OfDatabase,
    /// The clock of this process.
    OfProcess,
}

/// The database, and what this process knows of it.
pub(super) struct Database {
    pub(super) runtime: Handle,
    pub(super) connections: Arc<Connections>,
    clock: Arc<dyn Clock>,
    time: DatabaseTime,
    /// As many permits as there may be connections in use.
    places: Arc<Semaphore>,
    guard: Mutex<KeptGuard>,
    outage: Mutex<Option<Outage>>,
    /// The epoch in which this process changes the store; [`NO_EPOCH`] while it follows.
    epoch: AtomicI64,
    /// The last transaction that was committed here; 0 where none counts.
    last_committed: AtomicU64,
    /// True when the process that worked last did not end in order.
    pub(super) ended_uncleanly: AtomicBool,
    is_closed: AtomicBool,
    /// The seat among others; `None` for a process that serves the database alone.
    pub(super) seat: Option<Arc<NodeLease>>,
    /// Round trips of transactions.
    #[cfg(test)]
    pub(super) round_trips: std::sync::atomic::AtomicU64,
}

/// The guard of the clock, and the time recorded that is in the database.
#[derive(Default)]
struct KeptGuard {
    guard: ClockGuard,
    saved: Option<Stamp>,
}

/// A connection, and the room for it.
pub(super) struct Connected {
    _place: OwnedSemaphorePermit,
    connection: TakenConnection,
}

impl Connected {
    /// One transaction in one round trip. `OutcomeUnknown` where the connection was lost meanwhile.
    pub(super) async fn transact(
        self,
        opening: &str,
        statements: Vec<SqlStatement>,
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        let client = &self.connection.client;
        let asked = timeout(LOOK_MAX, transact(client, opening, &statements)).await;
        let silent = || StoreError::OutcomeUnknown("the database does not answer".into());
        let answers = asked.map_err(|_| silent())?.map_err(|error| {
            if fault_of(&error) == DatabaseFault::Lost {
                return StoreError::OutcomeUnknown(words(&error));
            }
            statement_error(&error)
        })?;
        self.connection.give_back();
        Ok(answers)
    }
}

/// Outcome of one try to change.
enum WriteTry<T> {
    Done(T),
    Failed(Option<DatabaseFault>, StoreError),
    Unknown,
}

/// End of a transaction, read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was committed.
    Committed,
    /// It was not, and never will be.
    Aborted,
    /// Nothing tells.
    Unknown,
}

impl Database {
    pub(super) fn new(
        runtime: Handle,
        connections: Arc<Connections>,
        clock: Arc<dyn Clock>,
        time: DatabaseTime,
        seat: Option<Arc<NodeLease>>,
    ) -> Self {
        Self {
            runtime,
            connections,
            clock,
            time,
            places: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            guard: Mutex::default(),
            outage: Mutex::default(),
            epoch: AtomicI64::new(NO_EPOCH),
            last_committed: AtomicU64::new(0),
            ended_uncleanly: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            seat,
            #[cfg(test)]
            round_trips: std::sync::atomic::AtomicU64::new(0),
        }
    }

    /// Does this on a thread that may wait, when there is room for it.
    pub(super) async fn run<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(StoreError::Closed);
        }
        // The timers and sockets are those of the store's own runtime, whatever the caller has.
        let runtime = self.runtime.clone();
        let task = runtime.spawn(async move {
            let place = self.place().await?;
            let worked = spawn_blocking(move || {
                let answer = work(&self);
                drop(place);
                answer
            });
            worked.await.unwrap_or_else(|error| {
                Err(StoreError::Failed(format!(
                    "a call of the store ended early: {error}"
                )))
            })
        });
        task.await.unwrap_or(Err(StoreError::Closed))
    }

    /// One transaction in one round trip, on a connection that is taken for it. It is not tried again.
    pub(super) async fn transact(
        &self,
        opening: &str,
        statements: Vec<SqlStatement>,
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        let asked = self.connected().await?.transact(opening, statements);
        match asked.await {
            Err(StoreError::OutcomeUnknown(why)) => Err(StoreError::Away(why)),
            answers => answers,
        }
    }

    /// A connection for one transaction.
    pub(super) async fn connected(&self) -> Result<Connected, StoreError> {
        Ok(Connected {
            _place: self.place().await?,
            connection: self.connections.take().await?,
        })
    }

    async fn place(&self) -> Result<OwnedSemaphorePermit, StoreError> {
        match timeout(WAIT_MAX, Arc::clone(&self.places).acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) => Err(StoreError::Closed),
            Err(_) => Err(StoreError::Away(format!(
                "all {CONNECTIONS_MAX} connections to the database are in use"
            ))),
        }
    }

    /// A transaction that begins with this text. Blocks.
    pub(super) fn session(
        &self,
        opening: &'static str,
        heading: Option<SqlStatement>,
    ) -> Result<DatabaseSession, StoreError> {
        let taken = self.runtime.block_on(self.connections.take())?;
        Ok(DatabaseSession::new(
            self.runtime.clone(),
            taken,
            opening,
            heading,
        ))
    }

    /// Refuses what cannot be done while the database is away. One with a full disk is read.
    fn refuse_while_away(&self, only_reads: bool) -> Result<(), StoreError> {
        match &*lock(&self.outage) {
            Some(Outage { cause, .. }) if !only_reads || !is_full_disk(cause) => {
                Err(StoreError::Away(cause.clone()))
            }
            _ => Ok(()),
        }
    }

    /// The same. One that cannot be begun says that the database is away.
    fn begin(
        &self,
        opening: &'static str,
        heading: Option<SqlStatement>,
    ) -> Result<DatabaseSession, StoreError> {
        self.session(opening, heading)
            .inspect_err(|error| self.note_outage(error))
    }

    /// Reads at one revision. Blocks.
    pub(super) fn read<T>(
        &self,
        work: impl Fn(&DatabaseSession) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut tries = 0;
        loop {
            tries += 1;
            self.refuse_while_away(true)?;
            let session = self.begin(READING, None)?;
            let answer = work(&session);
            let fault = session.fault();
            #[cfg(test)]
            self.round_trips
                .fetch_add(session.round_trips(), Ordering::SeqCst);
            session.end(false);
            match answer {
                Err(error) => self.pause_before_next(fault, tries, error)?,
                answer => return answer,
            }
        }
    }

    /// Changes in one transaction, which is whole or not at all. Blocks.
    pub(super) fn write<T>(
        &self,
        mut work: impl FnMut(&DatabaseWriting<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let epoch = self.epoch();
        if epoch == NO_EPOCH && self.seat.is_some() {
            return Err(follows());
        }
        let mut tries = 0;
        loop {
            tries += 1;
            match self.try_write(&mut work, epoch)? {
                WriteTry::Done(answer) => return Ok(answer),
                WriteTry::Failed(fault, error) => self.pause_before_next(fault, tries, error)?,
                WriteTry::Unknown => return Err(self.unknown_outcome()),
            }
        }
    }

    /// One try to change. Errors that no further try would mend end all tries.
    fn try_write<T>(
        &self,
        work: &mut impl FnMut(&DatabaseWriting<'_>) -> Result<T, StoreError>,
        epoch: i64,
    ) -> Result<WriteTry<T>, StoreError> {
        let last_committed = self.last_committed.load(Ordering::SeqCst);
        self.refuse_while_away(false)?;
        let session = self.begin(WRITING, Some(heading()))?;
        let writing = DatabaseWriting {
            session: &session,
            database: self,
            epoch,
            last_committed,
            records_clock: Cell::new(false),
            moved_feeds: RefCell::default(),
            moves_catalog: Cell::new(false),
            moves_accounts: Cell::new(false),
            moves_sealed: Cell::new(false),
        };
        let mut worked = work(&writing);
        if self.seat.is_some() {
            // In another epoch neither an answer nor an error means anything.
            worked = writing.check_epoch().and(worked);
        }
        let answer = match worked.and_then(|answer| writing.prepare_commit().map(|()| answer)) {
            Ok(answer) => answer,
            Err(error) => {
                let fault = session.fault();
                session.end(false);
                return Ok(WriteTry::Failed(fault, error));
            }
        };
        if !session.has_changed() {
            session.end(false);
            return Ok(WriteTry::Done(answer));
        }
        let (now, transaction, server) =
            (writing.now()?, writing.transaction()?, writing.server()?);
        let records_clock = writing.records_clock.get();
        let moved = writing.moved()?;
        let committed = session.commit();
        let fault = session.fault();
        #[cfg(test)]
        self.round_trips
            .fetch_add(session.round_trips(), Ordering::SeqCst);
        session.end(committed.is_ok());
        let outcome = match committed {
            Ok(()) => Outcome::Committed,
            Err(_) if fault == Some(DatabaseFault::Lost) => {
                self.outcome(&transaction, &server, &moved.feeds)
            }
            Err(error) => return Ok(WriteTry::Failed(fault, error)),
        };
        match outcome {
            Outcome::Committed => {
                if records_clock {
                    lock(&self.guard).guard.record(now);
                }
                if let Some(seat) = &self.seat {
                    let number = transaction.parse().unwrap_or_default();
                    self.last_committed.fetch_max(number, Ordering::SeqCst);
                    seat.note(moved);
                }
                Ok(WriteTry::Done(answer))
            }
            Outcome::Aborted => Ok(WriteTry::Failed(fault, connection_broke())),
            Outcome::Unknown => Ok(WriteTry::Unknown),
        }
    }

    /// Tells that nobody knows if a change is stored.
    fn unknown_outcome(&self) -> StoreError {
        if let Some(seat) = &self.seat {
            seat.tell(&WakeUp::Sweep);
        }
        self.note_outage(&connection_broke());
        StoreError::OutcomeUnknown(
            "the connection to the database broke while a change was committed".into(),
        )
    }

    // Decides: Which transaction is done again?
    /// Waits before the next try, or gives up with the error.
    fn pause_before_next(
        &self,
        fault: Option<DatabaseFault>,
        tries: u32,
        error: StoreError,
    ) -> Result<(), StoreError> {
        match fault {
            Some(DatabaseFault::Crossed | DatabaseFault::Lost) if tries < TRIES_MAX => {
                thread::sleep(FIRST_PAUSE * (1 << (tries - 1)));
                Ok(())
            }
            Some(DatabaseFault::Lost | DatabaseFault::NoRoom | DatabaseFault::Changed) => {
                self.note_outage(&error);
                Err(error)
            }
            _ => Err(error),
        }
    }

    // Decides: What became of a transaction that was cut off in COMMIT?
    /// Reads back the end of a transaction. A server that began anew since, or another one, may have
    /// given its number again: a crash takes numbers that are not on disk. Then the feeds that it
    /// moved tell, and without any nothing does.
    pub(super) fn outcome(
        &self,
        transaction: &str,
        server: &str,
        moved: &[(FeedNo, KnownHead)],
    ) -> Outcome {
        let until = Instant::now() + OUTCOME_TIME_MAX;
        loop {
            match self.runtime.block_on(self.status(transaction, server)) {
                Ok((Some(status), is_same)) if status == "committed" => {
                    if is_same {
                        return Outcome::Committed;
                    }
                    if moved.is_empty() {
                        return Outcome::Unknown;
                    }
                    match self.runtime.block_on(self.have_moved(moved)) {
                        Ok(true) => return Outcome::Committed,
                        Ok(false) => return Outcome::Aborted,
                        Err(_) if Instant::now() < until => thread::sleep(FIRST_PAUSE * 10),
                        Err(_) => return Outcome::Unknown,
                    }
                }
                Ok((Some(status), _)) if status == "aborted" => return Outcome::Aborted,
                Ok((None, _)) => return Outcome::Unknown,
                Ok(_) | Err(_) if Instant::now() < until => {
                    thread::sleep(FIRST_PAUSE * 10);
                }
                Ok(_) | Err(_) => return Outcome::Unknown,
            }
        }
    }

    /// The end of the transaction of a number, and true where the server is the same since.
    async fn status(
        &self,
        transaction: &str,
        server: &str,
    ) -> Result<(Option<String>, bool), StoreError> {
        let connection = self.connections.take_new().await?;
        let row = connection
            .client
            .query_typed_one(
                &format!("SELECT pg_xact_status($1::text::xid8), {SERVER}"),
                &[(&transaction, Type::TEXT)],
            )
            .await
            .map_err(|error| statement_error(&error))?;
        let found: String = column(&row, 1)?;
        let status = (column(&row, 0)?, found == server);
        connection.give_back();
        Ok(status)
    }

    /// True when each of these feeds has come so far.
    async fn have_moved(&self, moved: &[(FeedNo, KnownHead)]) -> Result<bool, StoreError> {
        let connection = self.connections.take_new().await?;
        let mut have_moved = true;
        for (feed, known) in moved {
            let key = feed.0.to_be_bytes().to_vec();
            let asked = "SELECT value FROM rows_feeds WHERE key = $1";
            let rows = connection
                .client
                .query_typed(asked, &[(&key, Type::BYTEA)])
                .await
                .map_err(|error| statement_error(&error))?;
            let found = rows.first().map(|row| KnownHead::of_row(column(row, 0)?));
            have_moved &= found
                .transpose()?
                .is_some_and(|(_, found)| found.rev >= known.rev);
        }
        connection.give_back();
        Ok(have_moved)
    }

    /// The condition of the store.
    pub(super) fn condition(&self) -> StoreCondition {
        match &*lock(&self.outage) {
            Some(outage) => StoreCondition::Away(outage.clone()),
            None => StoreCondition::Sound,
        }
    }

    /// Notes that nothing can be committed, until the keeper of the lock finds otherwise.
    pub(super) fn note_outage(&self, error: &StoreError) {
        let StoreError::Away(cause) = error else {
            return;
        };
        self.set_outage(cause, Remedy::ComesBack);
    }

    pub(super) fn set_outage(&self, cause: &str, remedy: Remedy) {
        let mut held = lock(&self.outage);
        match &mut *held {
            Some(outage) => {
                outage.remedy = remedy;
                cause.clone_into(&mut outage.cause);
            }
            none => {
                let what = if is_full_disk(cause) {
                    "Nothing can be stored in the database"
                } else {
                    "The database is away, and nothing is read or stored"
                };
                tracing::error!("{what}: {cause}");
                *none = Some(Outage {
                    cause: cause.to_owned(),
                    since: Stamp::from_micros(self.clock.now_us()),
                    remedy,
                });
            }
        }
    }

    /// Notes that changes can be committed again.
    pub(super) fn end_outage(&self) {
        if let Some(outage) = lock(&self.outage).take() {
            let now = Stamp::from_micros(self.clock.now_us());
            tracing::info!(
                "The database takes changes again, after {} s",
                now.secs_since(outage.since)
            );
        }
    }

    /// True while the database is known to be away.
    pub(super) fn is_away(&self) -> bool {
        lock(&self.outage).is_some()
    }

    /// True while its disk is known to be full.
    pub(super) fn is_full(&self) -> bool {
        let outage = lock(&self.outage);
        outage
            .as_ref()
            .is_some_and(|outage| is_full_disk(&outage.cause))
    }

    /// Takes over what the database holds of the clock.
    pub(super) fn take_guard(&self, guard: ClockGuard) {
        *lock(&self.guard) = KeptGuard {
            guard,
            saved: guard.recorded,
        };
    }

    /// The time, where that of the database is known.
    pub(super) fn settled_time(&self, of_database: Stamp) -> Stamp {
        match self.time {
            DatabaseTime::OfDatabase => of_database,
            DatabaseTime::OfProcess => Stamp::from_micros(self.clock.now_us()),
        }
    }

    pub(super) fn guard(&self) -> ClockGuard {
        lock(&self.guard).guard
    }

    pub(super) fn epoch(&self) -> i64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Lets transactions of another server have any number: what it lacks is known.
    pub(super) fn forget_committed(&self) {
        self.last_committed.store(0, Ordering::SeqCst);
    }

    pub(super) fn set_epoch(&self, epoch: i64) {
        self.epoch.store(epoch, Ordering::SeqCst);
    }

    /// The error of a change in an epoch that is over: who works beside others follows from now on;
    /// who serves alone ends.
    pub(super) fn fence(&self, epoch: i64) -> StoreError {
        let Some(seat) = &self.seat else {
            let cause = "another everfeed has taken over the database; two hubs would push";
            self.set_outage(cause, Remedy::Restart);
            return StoreError::Away(cause.into());
        };
        let fell = self
            .epoch
            .compare_exchange(epoch, NO_EPOCH, Ordering::SeqCst, Ordering::SeqCst);
        if fell.is_ok() {
            seat.set_duty(Duty::Following);
            seat.looking.notify_one();
            tracing::warn!("Another node works by now, and this one follows");
        }
        follows()
    }

    /// The words for a database that lost commits in the last days.
    pub(super) fn restored(&self) -> Option<String> {
        let restored_us = self.seat.as_ref()?.restored_us.load(Ordering::Relaxed);
        let (now, at) = (self.clock.now_us(), Stamp::from_micros(restored_us));
        let is_told =
            restored_us > 0 && Stamp::from_micros(now).secs_since(at) < RESTORED_TOLD_SECS;
        is_told.then(|| {
            format!(
                "the database lacked commits at {}: each feed began a new generation then, and mirrors read it anew",
                at.rfc3339()
            )
        })
    }

    /// Connections in use, and the most there may be.
    pub(super) fn connections_used(&self) -> (usize, usize) {
        let free = self.places.available_permits();
        (CONNECTIONS_MAX.saturating_sub(free), CONNECTIONS_MAX)
    }

    /// Refuses calls from now on, and waits for those under way.
    pub(super) async fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        let all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
        let last = self.places.acquire_many(all).await;
        self.places.close();
        drop(last);
    }
}

/// The first statement of a transaction that changes: its number, by which its end is read back; the
/// time; the epoch in force. What is answered is on disk, or further where the operator wants that.
fn heading() -> SqlStatement {
    SqlStatement::new(format!(
        "SELECT pg_current_xact_id()::text, \
         (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, \
         (SELECT number FROM meta WHERE name = 'epoch' FOR SHARE), \
         set_config('synchronous_commit', CASE current_setting('synchronous_commit') \
         WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true), {SERVER}, \
         (SELECT value FROM meta WHERE name = 'content')"
    ))
}

/// The statements behind [`TRYING`].
pub(super) fn tried() -> Vec<SqlStatement> {
    TRIED.map(SqlStatement::new).into()
}

/// Succeeds when a change can be committed on a connection.
pub(super) async fn try_change(client: &Client) -> Result<(), tokio_postgres::Error> {
    transact(client, TRYING, &tried()).await.map(drop)
}

fn connection_broke() -> StoreError {
    StoreError::Away("the connection to the database broke".into())
}

/// The error of a change in a process that follows.
fn follows() -> StoreError {
    StoreError::Away("another node works".into())
}

/// A transaction that changes something.
pub(super) struct DatabaseWriting<'s> {
    pub(super) session: &'s DatabaseSession,
    database: &'s Database,
    /// The epoch in which it was asked for.
    epoch: i64,
    /// A transaction that was committed before it began.
    last_committed: u64,
    records_clock: Cell<bool>,
    moved_feeds: RefCell<Vec<(FeedNo, KnownHead)>>,
    moves_catalog: Cell<bool>,
    moves_accounts: Cell<bool>,
    moves_sealed: Cell<bool>,
}

impl DatabaseWriting<'_> {
    /// The time at which it began.
    pub(super) fn now(&self) -> Result<Stamp, StoreError> {
        let of_database = stamp_at(self.session.head()?, 1)?;
        Ok(self.database.settled_time(of_database))
    }

    /// The state of the store in which it began.
    pub(super) fn opening(&self) -> Result<Opening, StoreError> {
        let content: Option<&[u8]> = column(self.session.head()?, 5)?;
        let content = content.map(|content| decode("the mark of the content", content));
        Ok(Opening {
            now: self.now()?,
            guard: self.database.guard(),
            content: content.transpose()?.unwrap_or_default(),
        })
    }

    /// Has feeds that are made from now on begin this generation.
    pub(super) fn write_content(&self, content: ContentMark) -> Result<(), StoreError> {
        let written = SqlStatement::new("UPDATE meta SET value = $1 WHERE name = 'content'");
        self.session.change(written.with(encode(&content)?));
        Ok(())
    }

    /// Refuses a clock that cannot be right.
    pub(super) fn check_clock(&self) -> Result<(), StoreError> {
        self.database.guard().check(self.now()?)
    }

    /// Remembers that something was written now.
    pub(super) fn record_clock(&self) {
        self.records_clock.set(true);
    }

    /// Notes that it writes a feed.
    pub(super) fn note_feed(&self, feed: FeedNo, head: KnownHead) {
        self.moved_feeds.borrow_mut().push((feed, head));
    }

    /// Remembers that feeds, parts, groups or entries of the registry were added, changed or removed.
    pub(super) fn move_catalog(&self) {
        self.moves_catalog.set(true);
    }

    /// Remembers that users or tokens were added or removed.
    pub(super) fn move_accounts(&self) {
        self.moves_accounts.set(true);
    }

    /// Remembers that sealed rows were written or removed.
    pub(super) fn move_sealed(&self) {
        self.moves_sealed.set(true);
    }

    /// The feeds and lists that it moves.
    fn moved(&self) -> Result<MovedInCommit, StoreError> {
        Ok(MovedInCommit {
            feeds: self.moved_feeds.take(),
            is_wide: self.moves_catalog.get()
                || self.moves_accounts.get()
                || self.moves_sealed.get(),
            began: stamp_at(self.session.head()?, 1)?,
        })
    }

    /// Takes the clock for right.
    pub(super) fn accept_clock(&self) -> Result<(), StoreError> {
        let mut kept = lock(&self.database.guard);
        kept.guard.accept(self.now()?);
        self.write_guard(&kept.guard)
    }

    fn write_guard(&self, guard: &ClockGuard) -> Result<(), StoreError> {
        let written = SqlStatement::new("UPDATE meta SET value = $1 WHERE name = 'clock'");
        self.session.change(written.with(encode(guard)?));
        Ok(())
    }

    fn transaction(&self) -> Result<String, StoreError> {
        column(self.session.head()?, 0)
    }

    /// The time at which the server began, by which it is known.
    fn server(&self) -> Result<String, StoreError> {
        column(self.session.head()?, 4)
    }

    /// Refuses whatever was done in another epoch, as far as that can be seen yet.
    fn check_epoch(&self) -> Result<(), StoreError> {
        let Some(head) = self.session.head_seen() else {
            return Ok(());
        };
        let found: Option<i64> = column(head, 2)?;
        if found == Some(self.epoch) && self.database.epoch() == self.epoch {
            return self.check_order();
        }
        Err(self.database.fence(self.epoch))
    }

    /// Refuses a number of a transaction that was given out before: the database lost commits.
    fn check_order(&self) -> Result<(), StoreError> {
        let Some(seat) = &self.database.seat else {
            return Ok(());
        };
        let number: u64 = self.transaction()?.parse().unwrap_or(u64::MAX);
        if number > self.last_committed {
            return Ok(());
        }
        seat.has_suspicion.store(true, Ordering::SeqCst);
        seat.looking.notify_one();
        let error = StoreError::Away("the database may have lost commits".into());
        self.database.note_outage(&error);
        Err(error)
    }

    /// Refuses to commit in another epoch, and writes the time recorded now and then.
    fn prepare_commit(&self) -> Result<(), StoreError> {
        if !self.session.has_changed() {
            return Ok(());
        }
        self.session.head()?;
        self.check_epoch()?;
        // These rows come last: whoever waits for them waits for nothing behind them.
        for (moves, name) in [
            (&self.moves_catalog, "catalog"),
            (&self.moves_accounts, "accounts"),
            (&self.moves_sealed, "sealed"),
        ] {
            if moves.get() {
                let sql = "UPDATE meta SET number = number + 1 WHERE name = $1";
                self.session.change(SqlStatement::new(sql).with(name));
            }
        }
        if self.records_clock.get() {
            let now = self.now()?;
            let mut kept = lock(&self.database.guard);
            let is_due = kept
                .saved
                .is_none_or(|saved| now.secs_since(saved) >= CLOCK_EVERY_SECS);
            if is_due {
                let mut guard = kept.guard;
                guard.record(now);
                self.write_guard(&guard)?;
                kept.saved = guard.recorded;
            }
        }
        Ok(())
    }
}
