//! A backup of the store, of the running process or of a file that nobody serves, and what the
//! operator is told of it.

use crate::{
    config::Config,
    store::{Store, StoreError},
};
use std::path::Path;

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

/// Copies a store that nobody serves.
pub async fn from_file(config: &Config, file: &Path) -> anyhow::Result<String> {
    let store = super::open_existing(config).await?;
    let told = back_up(&*store, file).await;
    store.close().await?;
    Ok(told?)
}
