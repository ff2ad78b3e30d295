//! Opens the store that a configuration names, whichever it is; the stores themselves are beside.

use super::{
    DatabaseSurroundings, Store, StoreError,
    database_url::DatabaseUrl,
    redb::{Redb, missing_store},
    settings::{Config, WakeMode},
};
use crate::clock::Clock;
#[cfg(not(feature = "postgres"))]
use std::path::Path;
use std::sync::Arc;

/// Opens the store of a configuration, and makes it where there is none. Blocks, and is not called
/// by a task.
pub fn open(config: &Config, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, StoreError> {
    match &config.url {
        Some(url) => open_database(url, clock),
        None => Ok(Arc::new(Redb::open(&config.path, config, clock)?)),
    }
}

/// Opens it for a process that serves it beside others, where its engine allows for others.
/// Blocks, and is not called by a task.
pub fn open_node(config: &Config, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, StoreError> {
    match &config.url {
        Some(url) => open_database_node(url, config.wake, clock),
        None => open(config, clock),
    }
}

/// Opens it to look at it, without making or changing anything; `None` where there is none. Blocks.
pub fn look(config: &Config, clock: Arc<dyn Clock>) -> Result<Option<Arc<dyn Store>>, StoreError> {
    if let Some(url) = &config.url {
        return look_at_database(url, clock);
    }
    if let Some(missing) = missing_store(&config.path) {
        return Err(missing);
    }
    if !config.path.exists() {
        return Ok(None);
    }
    Ok(Some(Arc::new(Redb::look(&config.path, config, clock)?)))
}

/// Looks at what the database of a configuration is beside its tables; `None` where the store is a
/// file. Blocks.
#[cfg(feature = "postgres")]
pub fn surroundings(
    config: &Config,
    clock: Arc<dyn Clock>,
) -> Result<Option<DatabaseSurroundings>, StoreError> {
    let found = config.url.as_ref();
    let found = found.map(|url| super::postgres::Postgres::surroundings(url, clock));
    found.transpose()
}

/// The same of an everfeed whose store is a file.
#[cfg(not(feature = "postgres"))]
pub fn surroundings(
    config: &Config,
    _: Arc<dyn Clock>,
) -> Result<Option<DatabaseSurroundings>, StoreError> {
    match &config.url {
        Some(_) => Err(StoreError::Schema(WITHOUT.into())),
        None => Ok(None),
    }
}

/// The problem with the URL of a database; `None` for one that can be connected to.
#[cfg(feature = "postgres")]
pub fn url_problem(url: &DatabaseUrl) -> Option<String> {
    super::postgres::url_problem(url)
}

/// The problem with the URL of a database.
#[cfg(not(feature = "postgres"))]
pub fn url_problem(_: &DatabaseUrl) -> Option<String> {
    Some(WITHOUT.into())
}

/// Has all feeds of a database begin new generations where it is: it was put back to an earlier
/// time. Nobody serves it meanwhile. Blocks.
#[cfg(feature = "postgres")]
pub fn begin_generations(url: &DatabaseUrl, clock: Arc<dyn Clock>) -> Result<(), StoreError> {
    super::postgres::Postgres::begin_generations(url, clock)
}

/// Refuses to begin generations in a database.
#[cfg(not(feature = "postgres"))]
pub fn begin_generations(_: &DatabaseUrl, _: Arc<dyn Clock>) -> Result<(), StoreError> {
    Err(StoreError::Schema(WITHOUT.into()))
}

#[cfg(feature = "postgres")]
fn open_database(url: &DatabaseUrl, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, StoreError> {
    use super::postgres::{DatabaseTime, Postgres};
    Ok(Arc::new(Postgres::open(
        url,
        clock,
        DatabaseTime::OfDatabase,
    )?))
}

#[cfg(feature = "postgres")]
fn open_database_node(
    url: &DatabaseUrl,
    wake: WakeMode,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Store>, StoreError> {
    use super::postgres::{DatabaseTime, Postgres};
    let time = DatabaseTime::OfDatabase;
    Ok(Arc::new(Postgres::open_node(url, clock, time, wake)?))
}

#[cfg(feature = "postgres")]
fn look_at_database(
    url: &DatabaseUrl,
    clock: Arc<dyn Clock>,
) -> Result<Option<Arc<dyn Store>>, StoreError> {
    let seen = super::postgres::Postgres::look(url, clock)?;
    Ok(seen.map(|seen| Arc::new(seen) as Arc<dyn Store>))
}

#[cfg(not(feature = "postgres"))]
const WITHOUT: &str = "this everfeed was built without PostgreSQL (cargo feature `postgres`)";

/// Refuses a copy to a database.
#[cfg(not(feature = "postgres"))]
pub fn copy_to_database(
    _: &Path,
    _: &DatabaseUrl,
    _: bool,
    _: Arc<dyn Clock>,
) -> Result<u64, StoreError> {
    Err(StoreError::Schema(WITHOUT.into()))
}

/// Refuses a copy of a database.
#[cfg(not(feature = "postgres"))]
pub fn copy_from_database(
    _: &DatabaseUrl,
    _: &Path,
    _: bool,
    _: Arc<dyn Clock>,
) -> Result<u64, StoreError> {
    Err(StoreError::Schema(WITHOUT.into()))
}

#[cfg(not(feature = "postgres"))]
fn open_database(_: &DatabaseUrl, _: Arc<dyn Clock>) -> Result<Arc<dyn Store>, StoreError> {
    Err(StoreError::Schema(WITHOUT.into()))
}

#[cfg(not(feature = "postgres"))]
fn open_database_node(
    _: &DatabaseUrl,
    _: WakeMode,
    _: Arc<dyn Clock>,
) -> Result<Arc<dyn Store>, StoreError> {
    Err(StoreError::Schema(WITHOUT.into()))
}

#[cfg(not(feature = "postgres"))]
fn look_at_database(
    _: &DatabaseUrl,
    _: Arc<dyn Clock>,
) -> Result<Option<Arc<dyn Store>>, StoreError> {
    Err(StoreError::Schema(WITHOUT.into()))
}
