//! What a process that shares its store compares with the others: the feeds that the process that works
//! does not serve, and the digest of its file. Not what is told of it.

use crate::{
    catalog::{BesideWorker, CatalogSnapshot, FeedSettings},
    config::Config,
    store::{Store, StoreError},
};

/// The differences of the feeds that this process follows from those of the process that works.
pub(super) async fn of_feeds(
    store: &dyn Store,
    snapshot: &CatalogSnapshot,
    unknown: &[FeedSettings],
) -> Result<BesideWorker, StoreError> {
    let Some(nodes) = store.nodes() else {
        return Ok(BesideWorker::default());
    };
    let withdrawn = nodes.withdrawn().await?;
    let awaited = unknown.iter().map(|feed| feed.name.as_str());
    Ok(snapshot.compared(awaited, withdrawn.as_deref()))
}

/// Digest of what all nodes have to agree on; empty for a store that one process has alone.
pub(super) fn digest(config: &Config) -> String {
    match config.store.url {
        Some(_) => config.shared_digest(),
        None => String::new(),
    }
}
