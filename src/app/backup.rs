//! A backup of the store, of the running process or of a file that nobody serves, and what the
//! operator is told of it.

use crate::{
    clock,
    config::Config,
    store::{BackupReport, Store, StoreError},
};
use std::{path::Path, sync::Arc};

/// Copies a store into a file and tells what is in the copy.
pub(super) async fn back_up(store: &dyn Store, file: &Path) -> Result<String, StoreError> {
    let BackupReport {
        values,
        damaged,
        bytes,
    } = store.back_up(file).await?;
    let of_damage = match damaged {
        0 => String::new(),
        damaged => format!(
            "; {damaged} of them are damaged in the store, too: `everfeed store verify --file {}` names them",
            file.display()
        ),
    };
    let told = format!(
        "{} holds {values} values in {bytes} bytes{of_damage}",
        file.display()
    );
    tracing::info!(backup.path = %file.display(), values, bytes, damaged, "Backed up the store: {told}");
    Ok(told)
}

/// Copies a store that nobody serves.
pub async fn from_file(config: &Config, file: &Path) -> anyhow::Result<String> {
    let path = &config.store.path;
    anyhow::ensure!(path.exists(), "there is no store at {}", path.display());
    let store = super::open(config, Arc::new(clock::System)).await?;
    let told = back_up(&*store, file).await;
    store.close().await?;
    Ok(told?)
}
