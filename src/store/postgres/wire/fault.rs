//! Failures of PostgreSQL: what a caller may do after each, and its words for the operator; not who
//! tries again.

use crate::store::StoreError;
use std::{error::Error as _, io};
use tokio_postgres::error::{DbError, Severity, SqlState};

/// The words for a database without room on its disk. It can still be read.
const DISK_FULL: &str = "the disk of the database is full; make room there";

/// The words for tables that are not those that this everfeed knows, as a newer one may leave them.
const CHANGED: &str = "the tables of the database were changed";

/// Consequence of a failure for what was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store::postgres) enum DatabaseFault {
    /// The connection is gone, or leads to a server that takes no changes.
    Lost,
    /// The transaction met another one; done again it may succeed.
    Crossed,
    /// The database has no room, or no connection to give.
    NoRoom,
    /// The tables are not those that this everfeed knows.
    Changed,
    /// It fails again however often it is done.
    Final,
}

// Decides: What follows from an error of the database?
/// The consequence of an error.
pub(in crate::store::postgres) fn fault_of(error: &tokio_postgres::Error) -> DatabaseFault {
    let Some(code) = error.code() else {
        let is_io = error
            .source()
            .is_some_and(|source| source.downcast_ref::<io::Error>().is_some());
        let is_lost = error.is_closed() || is_io;
        return if is_lost {
            DatabaseFault::Lost
        } else {
            DatabaseFault::Final
        };
    };
    let severity = error.as_db_error().and_then(DbError::parsed_severity);
    if matches!(severity, Some(Severity::Fatal | Severity::Panic)) {
        // The session ends with it. A server that could not write its log to the end may have the
        // commit in it.
        return DatabaseFault::Lost;
    }
    if [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
    ]
    .contains(code)
    {
        return DatabaseFault::Crossed;
    }
    let text = code.code();
    let ends_sessions = text.starts_with("57P") || text.starts_with("08");
    if ends_sessions
        || *code == SqlState::READ_ONLY_SQL_TRANSACTION
        || *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
    {
        return DatabaseFault::Lost;
    }
    if [SqlState::UNDEFINED_COLUMN, SqlState::UNDEFINED_TABLE].contains(code) {
        return DatabaseFault::Changed;
    }
    if text.starts_with("53") || text.starts_with("58") {
        return DatabaseFault::NoRoom;
    }
    DatabaseFault::Final
}

/// The words of an error: its own, and those of its causes. They name no data.
pub(in crate::store::postgres) fn words(error: &tokio_postgres::Error) -> String {
    if let Some(told) = error.as_db_error() {
        return format!("{} (SQLSTATE {})", told.message(), told.code().code());
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// The words for a connection that could not be made, with what to do.
pub(in crate::store::postgres) fn connection_words(error: &tokio_postgres::Error) -> String {
    let told = words(error);
    let remedy = match error.code() {
        Some(code) if *code == SqlState::INVALID_PASSWORD => {
            "PostgreSQL refuses the user or the password of store.url"
        }
        Some(code) if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            "PostgreSQL lets the user of store.url not in from here; see its pg_hba.conf"
        }
        Some(code) if *code == SqlState::INVALID_CATALOG_NAME => {
            "store.url names a database that is not there; make it with `createdb`"
        }
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            "the user of store.url may not use the database; make it the owner of the database"
        }
        Some(code) if *code == SqlState::TOO_MANY_CONNECTIONS => {
            "PostgreSQL has no free connection; raise its max_connections"
        }
        Some(code) if *code == SqlState::CANNOT_CONNECT_NOW => "PostgreSQL is starting or ending",
        Some(_) => "PostgreSQL refuses the connection",
        None if told.contains("certificate") => {
            "the certificate of PostgreSQL is not believed; name its authority with sslrootcert in store.url"
        }
        None if told.contains("does not support TLS") => {
            "PostgreSQL offers no TLS; turn it on there, or write sslmode=disable into store.url"
        }
        None => "PostgreSQL cannot be reached",
    };
    format!("{remedy}: {told}")
}

/// True for the cause of an outage in which the database can be read.
pub(in crate::store::postgres) fn is_full_disk(cause: &str) -> bool {
    cause.starts_with(DISK_FULL)
}

/// True for the error of a database without room on its disk.
pub(in crate::store::postgres) fn is_of_full_disk(error: &StoreError) -> bool {
    matches!(error, StoreError::Away(why) if is_full_disk(why))
}

/// True for the error of tables that this everfeed does not know.
pub(in crate::store::postgres) fn are_changed_tables(error: &StoreError) -> bool {
    matches!(error, StoreError::Away(why) if why.starts_with(CHANGED))
}

/// The error of a statement, for the caller of the store.
pub(in crate::store::postgres) fn statement_error(error: &tokio_postgres::Error) -> StoreError {
    let mut told = words(error);
    if error.code() == Some(&SqlState::DISK_FULL) {
        told = format!("{DISK_FULL}: {told}");
    }
    match fault_of(error) {
        DatabaseFault::Lost | DatabaseFault::Crossed | DatabaseFault::NoRoom => {
            StoreError::Away(told)
        }
        DatabaseFault::Changed => StoreError::Away(format!("{CHANGED}: {told}")),
        DatabaseFault::Final if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            StoreError::Failed(format!(
                "the user of store.url lacks rights; make it the owner of the database: {told}"
            ))
        }
        DatabaseFault::Final => StoreError::Failed(told),
    }
}
