//! Behaviour of the file alone: refusals on opening, group commit, a full queue; a failing disk and
//! damage are in modules of their own, the rest is conformance.

use super::{
    Config, Redb,
    file::{self, StoreFile},
    open_file::{Astray, FileOpener, OpenDatabase, OpenFile},
    tables::{BARE_META, make_all},
    watched_backend::WatchedBackend,
    writer::QUEUE_JOBS_MAX,
};
use crate::{
    clock::Manual,
    feed::{
        item::Reason,
        order::Order,
        page::PageQuery,
        position::Position,
        reconcile::{Change, Delete},
        record::{FeedNo, FeedRecord, ItemCounts},
        stamp::Stamp,
    },
    store::{
        CatalogStore as _, Feeds as _, Polls as _, Receipt, Remedy, StoreCondition, StoreError,
        SubscriptionNo, Subscriptions as _, Upkeep as _, Watched as _,
        conformance::{
            rig::{NAMESPACE, Rig, START, add, all, commit, delete, edit, guid, id, open},
            subscriptions::new,
        },
        rows::{
            open_table::TableEdit as _,
            tables::{
                CREATED, EVENTS, FEEDS, IDS, ITEMS, META, POLLS, REGISTRY, SUBSCRIPTION_KEYS,
                SUBSCRIPTIONS, feed_key, id_key, stamp_key, stamp_value, subscription_key,
                topic_key,
            },
        },
        stored::{decode, encode},
    },
};
use futures_util::future::{join_all, poll_immediate};
use redb::{
    Builder, Database, ReadableTable as _, StorageBackend, TableDefinition,
    backends::{FileBackend, InMemoryBackend},
};
use std::{
    collections::HashSet,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

mod damage;
mod every_table;
mod faulty_disk;
mod rewriting;

mod restoring;

mod late;

mod copying;

mod registry;

fn clock() -> Arc<Manual> {
    Arc::new(Manual::at(START.micros()))
}

#[tokio::test]
async fn the_file_holds_nothing_of_an_item_that_was_forgotten_and_serves_on() {
    let rig = Rig::redb();
    let path = rig.path().unwrap();
    let feed = rig.blog().await;
    let words = "words-to-forget";
    rig.change(feed, vec![add(1), add(2)]).await.unwrap();
    rig.change(feed, vec![edit(1, words)]).await.unwrap();
    let holds = || memchr::memmem::find(&std::fs::read(&path).unwrap(), words.as_bytes()).is_some();
    assert!(holds());
    let Change::Delete(delete) = delete(1) else {
        unreachable!("a deletion")
    };
    rig.change(
        feed,
        vec![Change::Delete(Delete {
            reason: Reason::Forgotten,
            ..delete
        })],
    )
    .await
    .unwrap();
    assert!(!holds());
    rig.change(feed, vec![edit(2, "later")]).await.unwrap();
    assert_eq!(rig.condition(), StoreCondition::Sound);
    let again = rig.reopen();
    assert!(
        again
            .item(feed, id(1))
            .await
            .unwrap()
            .unwrap()
            .content
            .is_forgotten()
    );
    assert!(
        again
            .item(feed, id(2))
            .await
            .unwrap()
            .unwrap()
            .entry()
            .is_some()
    );
}

fn reopen(path: &Path) -> Result<Redb, StoreError> {
    open(path.to_owned(), clock())
}

/// Changes the file behind the store's back.
fn tamper(path: &Path, change: impl FnOnce(&redb::WriteTransaction)) {
    let database = Database::create(path).unwrap();
    let tx = database.begin_write().unwrap();
    change(&tx);
    tx.commit().unwrap();
}

#[test]
fn what_is_no_store_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let refused = |content: &[u8]| {
        std::fs::write(&path, content).unwrap();
        let error = reopen(&path).err().unwrap();
        assert!(matches!(error, StoreError::Schema(_)), "{error:?}");
        assert!(
            error
                .to_string()
                .contains("store.redb is no everfeed store"),
            "{error}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), content);
    };
    refused(b"hello");
    refused(&[b'x'; 100_000]);
    std::fs::remove_file(&path).unwrap();
    let missing = reopen(&folder.path().join("no/such/folder.redb"))
        .err()
        .unwrap();
    assert!(
        missing.to_string().contains("no/such/folder.redb"),
        "{missing}"
    );
}

#[test]
fn a_redb_file_of_somebody_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.redb");
    let table: TableDefinition<'_, u8, u8> = TableDefinition::new("theirs");
    tamper(&path, |tx| drop(tx.open_table(table).unwrap()));
    assert!(
        matches!(reopen(&path), Err(StoreError::Schema(text)) if text.contains("no everfeed store"))
    );
    let table: TableDefinition<'_, u8, u8> = TableDefinition::new("meta");
    tamper(&path, |tx| drop(tx.open_table(table).unwrap()));
    assert!(
        matches!(reopen(&path), Err(StoreError::Schema(text)) if text.contains("no everfeed store"))
    );
}

#[test]
fn a_file_of_a_newer_everfeed_is_refused_with_both_versions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    drop(reopen(&path).unwrap());
    tamper(&path, |tx| {
        tx.open_table(BARE_META)
            .unwrap()
            .insert("schema", 2_u32.to_be_bytes().as_slice())
            .unwrap();
    });
    let error = reopen(&path).err().unwrap();
    assert!(matches!(error, StoreError::Schema(_)), "{error:?}");
    assert!(
        error
            .to_string()
            .contains("its schema is 2, and this one reads up to 1"),
        "{error}"
    );
}

#[test]
fn a_file_that_is_open_already_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let held = reopen(&path).unwrap();
    let error = reopen(&path).err().unwrap();
    assert!(
        error.to_string().contains("is open in another process"),
        "{error}"
    );
    drop(held);
    reopen(&path).unwrap();
}

#[test]
fn an_empty_file_becomes_a_store_and_nothing_is_left_beside_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("touched.redb");
    std::fs::write(&path, b"").unwrap();
    drop(reopen(&path).unwrap());
    drop(reopen(&folder.path().join("new.redb")).unwrap());
    let mut names: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "new.redb",
            "new.redb.made",
            "new.redb.mark",
            "touched.redb",
            "touched.redb.made",
            "touched.redb.mark"
        ]
    );
}

#[test]
fn a_store_that_was_made_is_not_replaced_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let anew = || {
        super::begin_anew(&path).unwrap();
        reopen(&path)
    };
    drop(reopen(&path).unwrap());
    drop(reopen(&path).unwrap());
    for spoil in [
        |path: &Path| std::fs::remove_file(path),
        |path: &Path| std::fs::write(path, b""),
    ] {
        spoil(&path).unwrap();
        let refused = reopen(&path).err().unwrap();
        assert!(matches!(refused, StoreError::Missing(_)), "{refused:?}");
        assert!(refused.to_string().contains("--new-store"), "{refused}");
        drop(anew().unwrap());
        drop(reopen(&path).unwrap());
    }
    // A store from elsewhere comes without its marker, and gets one.
    std::fs::remove_file(folder.path().join("store.redb.made")).unwrap();
    drop(reopen(&path).unwrap());
    std::fs::remove_file(&path).unwrap();
    assert!(reopen(&path).is_err());
}

#[cfg(unix)]
#[test]
fn only_its_owner_may_read_a_new_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let rig = Rig::redb();
    let mode = rig.path().unwrap().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

/// Holds the writer thread in a job until the sender is dropped; the receiver tells when the thread
/// has come to it.
fn hold(
    store: &Redb,
) -> (
    impl Future<Output = Result<(), StoreError>> + '_,
    mpsc::Sender<()>,
    mpsc::Receiver<()>,
) {
    let (release, gate) = mpsc::channel::<()>();
    let (arrive, arrived) = mpsc::channel();
    let held = store.writer.run(move |_| {
        let _ = arrive.send(());
        let _ = gate.recv();
        Ok(())
    });
    (held, release, arrived)
}

#[tokio::test]
async fn a_full_queue_is_busy_and_loses_nothing_that_it_took() {
    let rig = tempfile::tempdir().unwrap();
    let store = reopen(&rig.path().join("store.redb")).unwrap();
    let (held, release, arrived) = hold(&store);
    let mut held = Box::pin(held);
    assert!(poll_immediate(&mut held).await.is_none());
    arrived.recv().unwrap();
    let mut waiting = Vec::new();
    for n in 0..QUEUE_JOBS_MAX {
        let mut job = Box::pin(store.writer.run(move |_| Ok(n)));
        assert!(poll_immediate(&mut job).await.is_none());
        waiting.push(job);
    }
    assert!(matches!(
        store.accept_clock().await,
        Err(StoreError::Away(_))
    ));
    drop(release);
    held.await.unwrap();
    for (n, answer) in join_all(waiting).await.into_iter().enumerate() {
        assert_eq!(answer.unwrap(), n);
    }
    store.accept_clock().await.unwrap();
}

#[tokio::test]
async fn a_job_that_fails_halfway_is_undone_and_the_others_of_its_group_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let store = reopen(&path).unwrap();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    let (held, release, arrived) = hold(&store);
    let mut held = Box::pin(held);
    assert!(poll_immediate(&mut held).await.is_none());
    arrived.recv().unwrap();
    // These wait together, and so become one group.
    let mut before = Box::pin(store.commit(commit(&feed, vec![add(1)])));
    let mut broken = Box::pin(store.writer.run(|writing| {
        writing.change().edit(META)?.insert("half", b"")?;
        Err::<(), _>(StoreError::Damaged("on purpose".into()))
    }));
    let mut after = Box::pin(store.register("other", NAMESPACE));
    assert!(poll_immediate(&mut before).await.is_none());
    assert!(poll_immediate(&mut broken).await.is_none());
    assert!(poll_immediate(&mut after).await.is_none());
    drop(release);
    held.await.unwrap();
    assert_eq!(
        before.await.unwrap().stamped,
        [(id(1), START)],
        "done again from the same state"
    );
    assert!(matches!(broken.await, Err(StoreError::Damaged(text)) if text == "on purpose"));
    assert_eq!(after.await.unwrap().no, FeedNo(2));
    drop(store);
    let again = reopen(&path).unwrap();
    assert_eq!(again.feeds(None, 9).await.unwrap().len(), 2);
    drop(again);
    tamper(&path, |tx| {
        assert!(tx.edit(META).unwrap().get("half").unwrap().is_none())
    });
}

#[tokio::test]
async fn whoever_stops_waiting_has_still_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = reopen(&folder.path().join("store.redb")).unwrap();
    let mut asked = Box::pin(store.register("blog", NAMESPACE));
    let _ = poll_immediate(&mut asked).await;
    drop(asked);
    store.accept_clock().await.unwrap();
    assert_eq!(store.feeds(None, 9).await.unwrap().len(), 1);
}

#[test]
fn the_configuration_has_defaults_and_refuses_what_it_does_not_know() {
    let config: Config = toml::from_str("path = \"/var/lib/everfeed.redb\"").unwrap();
    assert_eq!(
        (config.path.to_str(), config.cache_bytes),
        (Some("/var/lib/everfeed.redb"), 128 << 20)
    );
    assert!(toml::from_str::<Config>("cache_mib = 128").is_err());
}

#[tokio::test]
async fn a_store_that_is_looked_at_is_neither_made_nor_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let look = || Redb::look(&path, &Config::default(), clock());
    assert!(look().is_err());
    assert!(!path.exists(), "nothing is made");
    let store = reopen(&path).unwrap();
    store.register("blog", NAMESPACE).await.unwrap();
    store.close().await.unwrap();
    let before = std::fs::read(&path).unwrap();
    let mut rights = std::fs::metadata(&path).unwrap().permissions();
    rights.set_readonly(true);
    std::fs::set_permissions(&path, rights).unwrap();
    let seen = look().unwrap();
    assert_eq!(seen.feeds(None, 9).await.unwrap().len(), 1);
    seen.close().await.unwrap();
    drop(seen);
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn every_table_is_made_at_once() {
    let database = Builder::new()
        .create_with_backend(InMemoryBackend::new())
        .unwrap();
    let tx = database.begin_write().unwrap();
    make_all(&tx).unwrap();
    assert_eq!(
        tx.list_tables().unwrap().count(),
        36,
        "one for each definition"
    );
}
