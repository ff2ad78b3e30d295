//! Removal of one item by its operator here: its content and its evidence go, and a stub stays, so
//! that consumers are told and the item does not come back.

use super::{explain::Explainer, reload::ForgetRefused};
use crate::{
    feed::{
        item::{ItemId, Reason},
        reconcile::{Change, Delete, Evidence},
        record::FeedNo,
    },
    store::{Commit, Receipt, Store, StoreError},
};

use std::io::ErrorKind;
use tokio::task::spawn_blocking;

/// Times that a removal is tried while the feed changes.
const TRIES_MAX: usize = 5;

/// Removes an item of a feed, found by any of its names.
pub(super) async fn forget_item(
    explainer: &Explainer,
    feed: &str,
    item: &str,
) -> Result<Receipt, ForgetRefused> {
    let unknown = || ForgetRefused::UnknownItem {
        feed: feed.to_owned(),
        item: item.to_owned(),
    };
    let record = explainer.store.feed_named(feed).await?;
    let record = record.ok_or_else(|| ForgetRefused::Unknown(feed.to_owned()))?;
    let id = match explainer.find(&record, item).await {
        Ok(found) => found.ok_or_else(unknown)?.id,
        // Its id is all that is known of an item that cannot be read.
        Err(StoreError::DamagedItem { id, .. })
            if item.parse().is_ok_and(|named: ItemId| named == id) =>
        {
            id
        }
        Err(error) => return Err(error.into()),
    };
    let receipt = remove(&*explainer.store, record.no, id).await?;
    remove_recordings(explainer, feed).await;
    tracing::info!(feed.name = %feed, item.id = %id, "Removed an item of `{feed}` for good; a tombstone without content stays");
    Ok(receipt)
}

/// Removes the documents and the answers of pages that were recorded of a feed: any of them may
/// show the item.
async fn remove_recordings(explainer: &Explainer, feed: &str) {
    let catalog = explainer.catalog.snapshot();
    let record = catalog
        .feed(feed)
        .and_then(|registered| registered.settings.record.as_ref());
    let Some(folder) = record.map(|record| record.folder.join(feed)) else {
        return;
    };
    let removed = spawn_blocking({
        let folder = folder.clone();
        move || std::fs::remove_dir_all(folder)
    });
    match removed.await {
        Ok(Ok(())) => tracing::info!(feed.name = %feed, "Removed the recordings of `{feed}`"),
        Ok(Err(error)) if error.kind() == ErrorKind::NotFound => {}
        Ok(Err(error)) => {
            tracing::error!(feed.name = %feed, "The recordings in {} could not be removed, and may show what was forgotten: {error}", folder.display())
        }
        Err(error) => {
            tracing::error!(feed.name = %feed, "The recordings in {} could not be removed: {error}", folder.display())
        }
    }
}

async fn remove(store: &dyn Store, feed: FeedNo, id: ItemId) -> Result<Receipt, StoreError> {
    let mut tries = 0;
    loop {
        let snapshot = store.snapshot(feed, Vec::new()).await?;
        let observed_at = snapshot.record.last_t;
        let evidence = Evidence {
            reason: Reason::Forgotten,
            observed_at,
            when: None,
            comment: None,
            suspect: None,
            archive_suspect: None,
        };
        let delete = Delete {
            id,
            reason: Reason::Forgotten,
            first_missing: None,
            last_seen: None,
            evidence,
        };
        let mut window = snapshot.window.without(id);
        // It may tell the address of the item's page.
        window.absence.control = None;
        let commit = Commit {
            changes: vec![Change::Delete(delete)],
            last: Some(window),
            ..Commit::nothing(&snapshot.record)
        };
        tries += 1;
        match store.commit(commit).await {
            Err(error) if error.wants_another_look() && tries < TRIES_MAX => {}
            committed => return committed,
        }
    }
}

/// Tells that a feed, or an item of it, is forgotten.
pub fn forgotten(feed: &str, item: Option<&str>) -> String {
    match item {
        None => format!("feed `{feed}` is forgotten\n"),
        Some(item) => format!(
            "item `{item}` of feed `{feed}` is removed from the store, its index, its groups, its staged pages, the recordings of the feed and the document at its old \
             address, and is cut out of every later one; a tombstone stays that names nothing of it. The file of the store was written anew \
             without it, or is at the next start where the log says so\n\
             not reached: backups, logs, recordings that are elsewhere or that are made while the publisher still shows it, copies that readers, subscribers and caches have, and the publisher's own \
             feed and pages\n"
        ),
    }
}
