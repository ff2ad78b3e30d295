//! One transaction of PostgreSQL for code that does not wait: statements that do not need each
//! other's answers go out together, in one round trip. Not how often a transaction is tried.

use super::{
    connections::{PooledConnection, TakenConnection},
    fault::{DatabaseFault, fault_of, statement_error},
    statement::SqlStatement,
};
use crate::store::StoreError;
use futures_util::future::{join, join_all};
use std::{
    cell::{Cell, OnceCell, RefCell},
    time::Duration,
};
use tokio::{runtime::Handle, time::timeout};
use tokio_postgres::{
    Client, Error, Row,
    types::{ToSql, Type},
};

/// Time for one round trip. A server that takes longer does not answer any more.
const ROUND_TRIP_MAX: Duration = Duration::from_secs(30);

/// The same for what goes through all rows of a feed.
const LONG_ROUND_TRIP_MAX: Duration = Duration::from_secs(600);

/// Statements in one round trip. The connection sends more of them in order, too; but a server whose
/// answers nobody reads stops reading.
const PIPELINED_MAX: usize = 24;

/// A transaction.
pub(in crate::store::postgres) struct DatabaseSession {
    runtime: Handle,
    connection: RefCell<TakenConnection>,
    /// The text that begins it, until it was sent.
    opening: RefCell<Option<&'static str>>,
    /// A statement that goes out with the first round trip.
    heading: RefCell<Option<SqlStatement>>,
    /// The row that answered it.
    head: OnceCell<Row>,
    /// Changes that go out with the next round trip.
    queued: RefCell<Vec<SqlStatement>>,
    has_begun: Cell<bool>,
    has_changed: Cell<bool>,
    is_long: Cell<bool>,
    fault: Cell<Option<DatabaseFault>>,
    #[cfg(test)]
    round_trips: Cell<u64>,
}

impl DatabaseSession {
    /// A transaction that begins with this text, and with a statement that has one row. Nothing is
    /// sent yet.
    pub(in crate::store::postgres) fn new(
        runtime: Handle,
        connection: TakenConnection,
        opening: &'static str,
        heading: Option<SqlStatement>,
    ) -> Self {
        Self {
            runtime,
            connection: RefCell::new(connection),
            opening: RefCell::new(Some(opening)),
            heading: RefCell::new(heading),
            head: OnceCell::new(),
            queued: RefCell::default(),
            has_begun: Cell::new(false),
            has_changed: Cell::new(false),
            is_long: Cell::new(false),
            fault: Cell::new(None),
            #[cfg(test)]
            round_trips: Cell::new(0),
        }
    }

    /// The rows of a statement, which sees every change so far.
    pub(in crate::store::postgres) fn rows(
        &self,
        statement: SqlStatement,
    ) -> Result<Vec<Row>, StoreError> {
        let mut answers = self.ask(vec![statement])?;
        Ok(answers.pop().unwrap_or_default())
    }

    /// The first row of a statement, if it has any.
    pub(in crate::store::postgres) fn row(
        &self,
        statement: SqlStatement,
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(statement)?.into_iter().next())
    }

    /// The rows of several statements, in one round trip.
    pub(in crate::store::postgres) fn ask(
        &self,
        statements: Vec<SqlStatement>,
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        let asked = statements.len();
        let mut all = self.queued.take();
        all.extend(statements);
        let mut answers = self.exchange(all)?;
        Ok(answers.split_off(answers.len() - asked))
    }

    /// A change that is sent with the next round trip.
    pub(in crate::store::postgres) fn change(&self, statement: SqlStatement) {
        self.note_change();
        self.queued.borrow_mut().push(statement);
    }

    /// Notes that a statement whose rows are asked for changes something.
    pub(in crate::store::postgres) fn note_change(&self) {
        self.has_changed.set(true);
    }

    /// The row that answered the heading, if it has come.
    pub(in crate::store::postgres) fn head_seen(&self) -> Option<&Row> {
        self.head.get()
    }

    /// The row that answered the heading.
    pub(in crate::store::postgres) fn head(&self) -> Result<&Row, StoreError> {
        if self.head.get().is_none() {
            self.ask(Vec::new())?;
        }
        self.head
            .get()
            .ok_or_else(|| StoreError::Failed("a transaction began without its head".into()))
    }

    /// Lets round trips take long: all rows of a feed are gone through.
    pub(in crate::store::postgres) fn expect_long(&self) {
        self.is_long.set(true);
    }

    /// True when something was to be changed.
    pub(in crate::store::postgres) fn has_changed(&self) -> bool {
        self.has_changed.get()
    }

    /// The first failure of the database in it.
    pub(in crate::store::postgres) fn fault(&self) -> Option<DatabaseFault> {
        self.fault.get()
    }

    /// Notes that it met another transaction, and must be done again.
    pub(in crate::store::postgres) fn crossed(&self, why: &str) -> StoreError {
        self.fault.set(Some(DatabaseFault::Crossed));
        StoreError::Away(why.to_owned())
    }

    /// Round trips so far.
    #[cfg(test)]
    pub(in crate::store::postgres) fn round_trips(&self) -> u64 {
        self.round_trips.get()
    }

    /// Sends what is queued and commits, in one round trip, and gives the connection back.
    pub(in crate::store::postgres) fn commit(&self) -> Result<(), StoreError> {
        let mut all = self.queued.take();
        all.push(SqlStatement::new("COMMIT"));
        self.exchange(all).map(drop)
    }

    /// Ends it. The connection is kept when it is whole; `is_over` says that the transaction was
    /// ended already.
    pub(in crate::store::postgres) fn end(self, is_over: bool) {
        if self.fault.get() == Some(DatabaseFault::Lost) {
            return;
        }
        let Self {
            runtime,
            connection,
            has_begun,
            ..
        } = self;
        let connection = connection.into_inner();
        if is_over || !has_begun.get() {
            connection.give_back();
            return;
        }
        // Nobody waits for that.
        runtime.spawn(async move {
            let ended = timeout(ROUND_TRIP_MAX, connection.client.batch_execute("ROLLBACK")).await;
            if matches!(ended, Ok(Ok(()))) {
                connection.give_back();
            }
        });
    }

    fn exchange(&self, statements: Vec<SqlStatement>) -> Result<Vec<Vec<Row>>, StoreError> {
        let mut answers = Vec::with_capacity(statements.len());
        let mut rest = statements;
        loop {
            let later = rest.split_off(rest.len().min(PIPELINED_MAX));
            answers.extend(self.round_trip(&rest)?);
            if later.is_empty() {
                return Ok(answers);
            }
            rest = later;
        }
    }

    fn round_trip(&self, statements: &[SqlStatement]) -> Result<Vec<Vec<Row>>, StoreError> {
        let (opening, heading) = (self.opening.take(), self.heading.take());
        let all: Vec<&SqlStatement> = heading.iter().chain(statements).collect();
        if opening.is_none() && all.is_empty() {
            return Ok(Vec::new());
        }
        self.has_begun.set(true);
        #[cfg(test)]
        self.round_trips.set(self.round_trips.get() + 1);
        let time = if self.is_long.get() {
            LONG_ROUND_TRIP_MAX
        } else {
            ROUND_TRIP_MAX
        };
        let mut connection = self.connection.borrow_mut();
        let PooledConnection { client, prepared } = &mut **connection;
        let sent = async {
            if opening.is_some() {
                prepared.prepare_wanted(client).await;
            }
            prepared.note(&all);
            let asked = all.iter().map(|statement| async {
                match prepared.of(statement) {
                    Some(prepared) => client.query(prepared, &statement.values()).await,
                    None => asked(client, statement).await,
                }
            });
            // They are sent in this order.
            let (begun, answers) = join(begun(client, opening), join_all(asked)).await;
            begun.map(|()| answers)
        };
        let Ok(sent) = self.runtime.block_on(async { timeout(time, sent).await }) else {
            self.fault.set(Some(DatabaseFault::Lost));
            return Err(StoreError::Away(format!(
                "the database did not answer within {} s",
                time.as_secs()
            )));
        };
        let mut answers = sent.map_err(|error| self.failed(&error))?;
        // The first failure is the cause of those behind it.
        if let Some(at) = answers.iter().position(Result::is_err)
            && let Err(error) = answers.swap_remove(at)
        {
            return Err(self.failed(&error));
        }
        let mut rows: Vec<Vec<Row>> = answers.into_iter().flatten().collect();
        if heading.is_some()
            && let Some(head) = rows.remove(0).pop()
        {
            let _ = self.head.set(head);
        }
        Ok(rows)
    }

    fn failed(&self, error: &Error) -> StoreError {
        if self.fault.get().is_none() {
            self.fault.set(Some(fault_of(error)));
        }
        statement_error(error)
    }
}

/// Sends the text that begins a transaction.
pub(in crate::store::postgres) async fn begun(
    client: &Client,
    opening: Option<&str>,
) -> Result<(), Error> {
    match opening {
        Some(text) => client.batch_execute(text).await,
        None => Ok(()),
    }
}

/// The rows of a statement. It has no name on the server, so that no pooler has to know it.
pub(in crate::store::postgres) async fn asked(
    client: &Client,
    statement: &SqlStatement,
) -> Result<Vec<Row>, Error> {
    let params: Vec<(&(dyn ToSql + Sync), Type)> = statement
        .params
        .iter()
        .map(|param| (&*param.value as &(dyn ToSql + Sync), param.kind.clone()))
        .collect();
    client.query_typed(&statement.sql, &params).await
}
