//! Making and opening the file, and whether it is one of ours; nothing of what it holds.

use super::tables::{META, SCHEMA, WITNESSES, make_all};
use crate::store::StoreError;
use redb::{
    Builder, Database, DatabaseError, ReadTransaction, ReadableDatabase, StorageError, TableError,
    TableHandle,
};
use std::{
    fs::File,
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// Key in META of the schema: four bytes, big-endian, in every schema to come.
const SCHEMA_KEY: &str = "schema";

/// Opens the store at `path`, or makes it.
pub(super) fn open(path: &Path, cache_bytes: usize) -> Result<Database, StoreError> {
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes);
    let failed = |error: std::io::Error| StoreError::Failed(format!("{}: {error}", path.display()));
    if !path.try_exists().map_err(failed)? {
        make(path, &builder)?;
    }
    let empty = path.metadata().map_err(failed)?.len() == 0;
    let opened = if empty { builder.create(path) } else { builder.open(path) };
    let database = opened.map_err(|error| refusal(path, error))?;
    check_schema(path, &database)?;
    Ok(database)
}

/// Makes a store beside its place and moves it there whole: redb does not take up a file that a kill left half made.
/// Only its owner may read it, because it holds the secrets of subscribers.
fn make(path: &Path, builder: &Builder) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| {
        StoreError::Failed(format!("cannot make the store {}: {error}", path.display()))
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    let place = tempfile::Builder::new().prefix(".everfeed-").suffix(".new").tempfile_in(&folder);
    let place = place.map_err(failed)?.into_temp_path();
    let database = builder.create(&place).map_err(|error| refusal(path, error))?;
    check_schema(path, &database)?;
    drop(database);
    match place.persist_noclobber(path) {
        Ok(()) => File::open(&folder).and_then(|folder| folder.sync_all()).map_err(failed),
        // Another process was faster; whoever opens it first has it.
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed(error.error)),
    }
}

/// Checks that the file is of a schema that we read. A file without any table becomes ours.
pub(super) fn check_schema(path: &Path, database: &Database) -> Result<(), StoreError> {
    let snapshot = database.begin_read()?;
    if snapshot.list_tables()?.next().is_none() {
        return write_schema(database);
    }
    let foreign = || StoreError::Schema(format!("{} is a redb file, but no everfeed store", path.display()));
    if !snapshot.list_tables()?.any(|table| table.name() == "meta") {
        return Err(foreign());
    }
    let meta = match snapshot.open_table(META) {
        Ok(meta) => meta,
        Err(TableError::Storage(error)) => return Err(error.into()),
        Err(_) => return Err(foreign()),
    };
    let stored = meta.get(SCHEMA_KEY)?.ok_or_else(foreign)?;
    match stored.value().first_chunk().copied().map(u32::from_be_bytes) {
        Some(SCHEMA) => add_tables(database, &snapshot),
        Some(newer) if newer > SCHEMA => Err(StoreError::Schema(format!(
            "{} was written by a newer everfeed: its schema is {newer}, and this one reads up to {SCHEMA}",
            path.display()
        ))),
        _ => Err(foreign()),
    }
}

/// Adds a table that an everfeed before this one did not know. What it held is recognised by witnesses once it is shown again.
fn add_tables(database: &Database, snapshot: &ReadTransaction) -> Result<(), StoreError> {
    if snapshot.list_tables()?.any(|table| table.name() == WITNESSES.name()) {
        return Ok(());
    }
    let mut tx = database.begin_write()?;
    tx.set_quick_repair(true);
    make_all(&tx)?;
    Ok(tx.commit()?)
}

fn write_schema(database: &Database) -> Result<(), StoreError> {
    let mut tx = database.begin_write()?;
    tx.set_quick_repair(true);
    make_all(&tx)?;
    tx.open_table(META)?.insert(SCHEMA_KEY, SCHEMA.to_be_bytes().as_slice())?;
    Ok(tx.commit()?)
}

/// Message for the operator when redb does not open a file.
fn refusal(path: &Path, error: DatabaseError) -> StoreError {
    let path = path.display();
    match error {
        DatabaseError::DatabaseAlreadyOpen => {
            StoreError::Failed(format!("{path} is open in another process; is everfeed already running?"))
        }
        DatabaseError::UpgradeRequired(version) => StoreError::Schema(format!(
            "{path} is a redb file of format {version}, which this everfeed does not read"
        )),
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() == ErrorKind::InvalidData => {
            StoreError::Schema(format!("{path} is no everfeed store: {error}"))
        }
        DatabaseError::Storage(StorageError::Corrupted(what)) => {
            StoreError::Damaged(format!("{path}: {what}"))
        }
        other => StoreError::Failed(format!("cannot open {path}: {other}")),
    }
}
