//! A backup of the store, of the running process or of a file that nobody serves, and what the
//! operator is told of it.

use crate::{
    clock::{self, Clock as _},
    config::Config,
    feed::stamp::Stamp,
    store::{Store, StoreError, begin_generations, redb},
};
use std::{path::Path, sync::Arc};
use tokio::task::spawn_blocking;

/// Copies a store into a file and tells what is in the copy.
pub(super) async fn back_up(store: &dyn Store, file: &Path) -> Result<String, StoreError> {
    let report = store.back_up(file).await?;
    let (values, bytes, damaged) = (report.values, report.bytes, report.damaged);
    let file = file.display();
    let mut told = format!("{file} holds {values} values in {bytes} bytes");
    if damaged > 0 {
        told += &format!(
            "; {damaged} of them are damaged in the store, too: `everfeed store verify --file {file}` names them"
        );
    }
    tracing::info!(backup.path = %file, values, bytes, damaged, "Backed up the store: {told}");
    Ok(told)
}

/// Puts a backup in the place of the store, which nobody serves, and tells what was done.
pub async fn restore(config: &Config, file: &Path) -> anyhow::Result<String> {
    if config.store.url.is_some() {
        anyhow::bail!(
            "the store is a database; restore a dump of it with pg_restore and run `everfeed restore --here`, or copy {} into an empty database: `everfeed store copy {} URL`",
            file.display(),
            file.display()
        );
    }
    let (from, to) = (file.to_owned(), config.store.path.clone());
    let now = Stamp::from_micros(clock::System.now_us());
    let restored = spawn_blocking(move || redb::restore(&from, &to, now)).await??;
    let (values, bytes) = (restored.values, restored.bytes);
    let mut told = format!(
        "{} holds the backup now: {values} values in {bytes} bytes\neach feed begins a new generation; mirrors read it anew",
        config.store.path.display()
    );
    if let Some(kept) = restored.kept {
        told += &format!("\nthe former store is kept in {}", kept.display());
    }
    Ok(told)
}

/// Has all feeds of the database begin new generations, and tells so.
pub async fn restore_here(config: &Config) -> anyhow::Result<String> {
    let Some(url) = config.store.url.clone() else {
        anyhow::bail!("the store is a file; name the backup to restore: `everfeed restore FILE`");
    };
    let place = url.to_string();
    spawn_blocking(move || begin_generations(&url, Arc::new(clock::System))).await??;
    Ok(format!(
        "each feed in {place} begins a new generation; mirrors read it anew"
    ))
}

/// Copies a store that nobody serves.
pub async fn from_file(config: &Config, file: &Path) -> anyhow::Result<String> {
    let store = super::open_existing(config).await?;
    let told = back_up(&*store, file).await;
    store.close().await?;
    Ok(told?)
}
