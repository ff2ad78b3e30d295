//! Databases of one server of PostgreSQL that all tests of a process share. No tests.

use crate::{
    clock::Clock,
    store::{
        StoreError, WakeMode,
        database_url::DatabaseUrl,
        postgres::{DatabaseTime, Postgres, execute_in},
    },
};
use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};
use testkit::postgres::PostgresServer;

static SERVER: LazyLock<PostgresServer> = LazyLock::new(PostgresServer::start);

/// The number of the last schema.
static SCHEMAS: AtomicU32 = AtomicU32::new(0);

/// A database that nobody else uses, in which statements are prepared. Those of the tests with
/// processes and poolers are not.
pub(crate) fn fresh_database() -> DatabaseUrl {
    let url = fresh_schema();
    DatabaseUrl::new(format!("{}&statement_cache_size=200", url.reveal()))
}

/// A schema of its own.
pub(crate) fn fresh_schema() -> DatabaseUrl {
    let no = SCHEMAS.fetch_add(1, Ordering::Relaxed);
    let url = DatabaseUrl::new(SERVER.url());
    let schema = format!("test_{no}");
    execute(&url, &format!("CREATE SCHEMA {schema}"));
    url.in_schema(&schema)
}

/// Does this in a database, as somebody else.
pub(crate) fn execute(url: &DatabaseUrl, sql: &str) {
    on_a_thread(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(execute_in(url, sql)).unwrap();
    });
}

/// Opens the store in a database.
pub(crate) fn open(url: &DatabaseUrl, clock: Arc<dyn Clock>) -> Result<Postgres, StoreError> {
    on_a_thread(|| Postgres::open(url, clock, DatabaseTime::OfProcess))
}

/// Opens it for one of several processes.
pub(crate) fn open_node(url: &DatabaseUrl, clock: Arc<dyn Clock>, wake: WakeMode) -> Postgres {
    on_a_thread(|| Postgres::open_node(url, clock, DatabaseTime::OfProcess, wake)).unwrap()
}

/// Does this on a thread that may wait, which the thread of a test may not.
pub(crate) fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join().unwrap())
}
