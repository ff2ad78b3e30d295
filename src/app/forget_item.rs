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

/// Tells that a feed, or an item of it, is forgotten, and for which reason the file of the store
/// still holds it, if it does.
pub fn forgotten(feed: &str, item: Option<&str>, kept: Option<&str>) -> String {
    let removed = match item {
        None => format!(
            "feed `{feed}` is forgotten: everything that was kept of it is removed from the store"
        ),
        Some(item) => format!(
            "item `{item}` of feed `{feed}` is removed from the store, its index, its groups, its staged pages, the recordings of the feed and the document at its old \
             address, and is cut out of every later one; a tombstone stays that names nothing of it"
        ),
    };
    let file = kept.map_or_else(
        || "the file of the store was written anew without it".to_owned(),
        |why| format!(
            "NOT YET GONE: free pages of the store's file still hold it, until the file is written anew, which is tried at every start of everfeed: {why}"
        ),
    );
    let beside = match item {
        None => "recordings of the feed, ids of its items in tombstones of groups, ",
        Some(_) => {
            "what other items say of it, recordings that are elsewhere or that are made while the publisher still shows it, "
        }
    };
    format!(
        "{removed}\n{file}\nnot reached: backups, logs, {beside}copies that readers, subscribers and caches have, and the publisher's own feed and pages\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        app::explain::tests::names::{START, explainer_of, with_post},
        clock::Manual,
        store::memory::Memory,
    };
    use std::sync::Arc;

    #[tokio::test]
    async fn the_recordings_of_a_feed_go_with_an_item_and_those_of_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::new(Manual::at(START.micros()))));
        let (_, id, _) = with_post(&*store).await;
        let settings = format!("record = {{ folder = {:?} }}\n", folder.path());
        let explainer = explainer_of(&store, &settings).await;
        for name in ["blog", "other"] {
            let bodies = folder.path().join(name).join("bodies");
            std::fs::create_dir_all(&bodies).unwrap();
            std::fs::write(bodies.join("1"), "Post 1").unwrap();
        }
        forget_item(&explainer, "blog", "Post 1").await.unwrap();
        assert!(!folder.path().join("blog").exists());
        assert!(folder.path().join("other/bodies/1").exists());
        let feed = store.feed_named("blog").await.unwrap().unwrap();
        let item = store.item(feed.no, id).await.unwrap().unwrap();
        assert!(item.content.is_forgotten());
        // Without any recordings it is no error.
        let again = forget_item(&explainer, "blog", &id.to_string()).await;
        assert!(again.is_ok(), "{again:?}");
    }

    #[test]
    fn the_command_says_what_is_not_reached_and_until_when() {
        for item in [None, Some("1")] {
            let gone = forgotten("blog", item, None);
            assert!(gone.contains("was written anew without it"), "{gone}");
            assert!(gone.contains("not reached: backups, logs, "), "{gone}");
            assert!(!gone.contains("NOT YET"), "{gone}");
            let kept = forgotten("blog", item, Some("its disk is full"));
            assert!(
                kept.contains("NOT YET GONE") && kept.contains("at every start"),
                "{kept}"
            );
            assert!(
                kept.contains("its disk is full") && !kept.contains("was written"),
                "{kept}"
            );
        }
    }
}
