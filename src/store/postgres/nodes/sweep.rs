//! Changes of other processes in the database, found without asking any clock: feeds by the
//! transaction that wrote them, the rest by numbers that are raised. Not when it is looked for.

use super::serving_lock::EPOCH_KEY;
use crate::store::postgres::{
    node_lease::{KnownHead, Learned, NodeLease},
    rows::schema,
    wire::{
        kept_connection::{KeptConnection, LOOKING},
        statement::{SqlStatement, column, stamp_at},
    },
};
use crate::{
    feed::{
        record::{FeedNo, Head},
        stamp::Stamp,
    },
    store::{Moves, StoreError, stored::decode},
};
use std::{collections::HashMap, mem::take, sync::atomic::Ordering};
use tokio_postgres::Row;

/// Feeds that are read at once.
const FEEDS_AT_ONCE: usize = if cfg!(test) { 3 } else { 1_000 };

/// Feeds that moved since the last look which are read at once; where there are more, all are read.
const MOVED_AT_ONCE: usize = if cfg!(test) { 3 } else { 20_000 };

/// The columns of a feed that tell how far it has come.
const COLUMNS: &str = "SELECT key, value FROM rows_feeds";

/// The database as one look found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store::postgres) struct NodeSweep {
    /// The epoch in force.
    pub(in crate::store::postgres) epoch: i64,
    /// Raised by the process that works, as long as it does.
    pub(in crate::store::postgres) beat: i64,
    /// True while nobody holds the lock of the epoch.
    pub(in crate::store::postgres) is_free: bool,
    /// True until the process that works has ended in order.
    pub(in crate::store::postgres) is_running: bool,
}

/// Changes that are to be told. It grows with the number of feeds alone.
#[derive(Debug, Default)]
pub(in crate::store::postgres) struct MovesToTell {
    feeds: HashMap<FeedNo, Head>,
    catalog: bool,
    accounts: bool,
    sealed: bool,
}

impl MovesToTell {
    /// True when there is nothing to tell.
    pub(in crate::store::postgres) fn is_empty(&self) -> bool {
        self.feeds.is_empty() && !self.catalog && !self.accounts && !self.sealed
    }

    /// All of it, at once.
    pub(in crate::store::postgres) fn take(&mut self) -> Moves {
        let Self {
            feeds,
            catalog,
            accounts,
            sealed,
        } = take(self);
        Moves {
            feeds: feeds.into_iter().collect(),
            catalog,
            accounts,
            sealed,
        }
    }
}

/// The place up to which changes were looked for.
#[derive(Debug, Default)]
pub(in crate::store::postgres) struct SweepPosition {
    /// Each transaction with a lower number was over then; `None` before the first look.
    since: Option<String>,
    /// True when all feeds are to be read: some may have gone back.
    is_all_due: bool,
    catalog: i64,
    accounts: i64,
    sealed: i64,
    restored: i64,
    /// Feeds that were found behind what is known of them.
    behind: Vec<FeedNo>,
    has_lost: bool,
}

impl SweepPosition {
    /// Has the next look read all feeds.
    pub(in crate::store::postgres) fn read_all_next(&mut self) {
        self.is_all_due = true;
    }

    /// True when the next look reads all feeds.
    pub(in crate::store::postgres) fn is_all_due(&self) -> bool {
        self.is_all_due
    }

    /// The last T that may have been given out by commits that were seen here and that the database
    /// lacks; `None` where it lacks none.
    pub(in crate::store::postgres) fn lost_until(&self, seat: &NodeLease) -> Option<Stamp> {
        let (_, last_t) = seat.newest();
        let restored = u64::try_from(self.restored).unwrap_or_default();
        let restored = Stamp::from_micros(restored);
        self.has_lost.then(|| last_t.max(restored).next())
    }

    // Limit: a transaction of anybody on the server that is open for long has each look read all
    // feeds that moved since it began.
    /// Looks at the database, and finds what moved since the last look.
    pub(in crate::store::postgres) async fn look(
        &mut self,
        connection: &mut KeptConnection,
        seat: &NodeLease,
        moves: &mut MovesToTell,
    ) -> Result<NodeSweep, StoreError> {
        let (newest, _) = seat.newest();
        let asked = vec![numbers_asked(), moved_asked(self.since.as_deref())];
        let answers = connection.transact(LOOKING, asked).await?;
        let row = answers[0].first();
        let row = row.ok_or_else(|| StoreError::Failed("the database told no numbers".into()))?;
        let numbers = SweepNumbers::of_row(row)?;
        schema::check_oldest(numbers.oldest_schema)?;
        let is_first = self.since.is_none();
        if numbers.restored > self.restored && !is_first {
            // All feeds began anew: what was known of them counts no more.
            seat.forget_heads();
            self.is_all_due = true;
        }
        let is_older = numbers.restored < self.restored;
        let lacks_feeds = numbers.restored == self.restored
            && newest.is_some_and(|newest| newest.0 > numbers.last_feed);
        let mut has_lost = is_older || lacks_feeds;
        self.take_feeds(&answers[1], seat, moves)?;
        if !is_first {
            moves.catalog |= self.catalog != numbers.catalog;
            moves.accounts |= self.accounts != numbers.accounts;
            moves.sealed |= self.sealed != numbers.sealed;
        }
        // The connection may lead to another server than before.
        let is_elsewhere = connection.take_is_new() || has_lost;
        let are_many = answers[1].len() >= MOVED_AT_ONCE;
        if self.is_all_due || is_elsewhere || are_many || !self.behind.is_empty() {
            // It is due until it has been done. What moves meanwhile is found by the next look.
            self.is_all_due = true;
            self.read_all(connection, seat, moves).await?;
            has_lost |= self.are_behind(connection, seat, moves).await?;
            self.is_all_due = has_lost;
        }
        self.has_lost = has_lost;
        if !has_lost {
            self.restored = numbers.restored;
            let at = u64::try_from(numbers.restored).unwrap_or_default();
            seat.restored_us.store(at, Ordering::Relaxed);
        }
        self.since = Some(numbers.since);
        self.catalog = numbers.catalog;
        self.accounts = numbers.accounts;
        self.sealed = numbers.sealed;
        Ok(numbers.look)
    }

    /// Reads all feeds in batches.
    async fn read_all(
        &mut self,
        connection: &mut KeptConnection,
        seat: &NodeLease,
        moves: &mut MovesToTell,
    ) -> Result<(), StoreError> {
        let mut after: Vec<u8> = Vec::new();
        loop {
            let sql = format!("{COLUMNS} WHERE key > $1 ORDER BY key LIMIT {FEEDS_AT_ONCE}");
            let asked = SqlStatement::new(sql).with(after);
            let answers = connection.transact(LOOKING, vec![asked]).await?;
            let Some(last) = answers[0].last() else {
                return Ok(());
            };
            after = column(last, 0)?;
            self.take_feeds(&answers[0], seat, moves)?;
        }
    }

    /// True when feeds are behind what was known of them before they are read now. A commit of this
    /// process may have come between the first reading and what is known.
    async fn are_behind(
        &mut self,
        connection: &mut KeptConnection,
        seat: &NodeLease,
        moves: &mut MovesToTell,
    ) -> Result<bool, StoreError> {
        let behind = take(&mut self.behind);
        if behind.is_empty() {
            return Ok(false);
        }
        self.read_moved(connection, seat, behind, moves).await?;
        Ok(!take(&mut self.behind).is_empty())
    }

    /// Reads feeds that are said to have moved. The answer is the time of the database.
    pub(in crate::store::postgres) async fn read_moved(
        &mut self,
        connection: &mut KeptConnection,
        seat: &NodeLease,
        feeds: Vec<FeedNo>,
        moves: &mut MovesToTell,
    ) -> Result<Stamp, StoreError> {
        let keys: Vec<Vec<u8>> = feeds
            .iter()
            .map(|feed| feed.0.to_be_bytes().to_vec())
            .collect();
        let asked = vec![
            SqlStatement::new(format!("{COLUMNS} WHERE key = ANY($1)")).with(keys),
            SqlStatement::new("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"),
        ];
        let answers = connection.transact(LOOKING, asked).await?;
        self.take_feeds(&answers[0], seat, moves)?;
        let now = answers[1].first().map(|row| stamp_at(row, 0));
        Ok(now.transpose()?.unwrap_or_default())
    }

    /// Takes in feeds as they are now.
    fn take_feeds(
        &mut self,
        rows: &[Row],
        seat: &NodeLease,
        moves: &mut MovesToTell,
    ) -> Result<(), StoreError> {
        for row in rows {
            // A record that is damaged is told by whoever serves the feed.
            let Ok((feed, known)) = KnownHead::of_row(column(row, 1)?) else {
                continue;
            };
            match seat.learn(feed, known) {
                Learned::News => {
                    moves.feeds.insert(feed, known.head);
                }
                Learned::Nothing => {}
                Learned::IsBehind => self.behind.push(feed),
            }
        }
        Ok(())
    }
}

/// The row of a look.
struct SweepNumbers {
    since: String,
    catalog: i64,
    accounts: i64,
    sealed: i64,
    last_feed: u32,
    restored: i64,
    oldest_schema: i64,
    look: NodeSweep,
}

impl SweepNumbers {
    fn of_row(row: &Row) -> Result<Self, StoreError> {
        let (running, last_feed): (i64, Option<&[u8]>) = (column(row, 3)?, column(row, 7)?);
        let last_feed = last_feed.map(|last| decode("the last feed's number", last));
        Ok(Self {
            since: column(row, 0)?,
            catalog: column(row, 4)?,
            accounts: column(row, 5)?,
            last_feed: last_feed.transpose()?.unwrap_or_default(),
            restored: column(row, 8)?,
            sealed: column(row, 9)?,
            oldest_schema: column(row, 10)?,
            look: NodeSweep {
                epoch: column(row, 1)?,
                beat: column(row, 2)?,
                is_running: running != 0,
                is_free: column(row, 6)?,
            },
        })
    }
}

fn numbers_asked() -> SqlStatement {
    let number = |name: &str| format!("(SELECT number FROM meta WHERE name = '{name}')");
    let (before, behind) = EPOCH_KEY;
    let epoch = number("epoch");
    // The lock is shared by all who look, and let go of with the transaction.
    SqlStatement::new(format!(
        "SELECT pg_snapshot_xmin(pg_current_snapshot())::text, {epoch}, {}, {}, {}, {}, \
         pg_try_advisory_xact_lock_shared({before}{epoch}{behind}), {}, {}, {}, {}",
        number("beat"),
        number("running"),
        number("catalog"),
        number("accounts"),
        "(SELECT value FROM rows_meta WHERE key = convert_to('last_feed', 'UTF8'))",
        number("restored"),
        number("sealed"),
        number("oldest_schema"),
    ))
}

/// Asks for the feeds that moved since a transaction; for none before the first look. Numbers of
/// another server, from which the database was restored, may lie ahead: they tell nothing.
fn moved_asked(since: Option<&str>) -> SqlStatement {
    let sql = format!(
        "{COLUMNS} WHERE moved_in >= $1::text::xid8 \
         AND moved_in < pg_snapshot_xmax(pg_current_snapshot()) LIMIT {MOVED_AT_ONCE}"
    );
    SqlStatement::new(sql).with(since.map(str::to_owned))
}
