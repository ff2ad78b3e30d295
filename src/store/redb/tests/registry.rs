//! Entries of the registry in the file: damage of one is told and harms no other, copies have them,
//! and a file that was written before there were a registry and events gets both tables.

use super::*;
use crate::store::{
    EventStore as _, RegistryChange, RegistryEntry, RegistryStore as _,
    redb::{restore::restore, store_copy::move_store, verify::verify},
};

fn put(name: &str) -> RegistryChange {
    RegistryChange::Put {
        name: name.to_owned(),
        text: format!("the text of {name}"),
    }
}

fn entry(name: &str) -> RegistryEntry {
    RegistryEntry {
        name: name.to_owned(),
        text: Ok(format!("the text of {name}")),
    }
}

/// A folder with a store of three entries.
async fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let store = reopen(&path).unwrap();
    let all = vec![put("a"), put("b"), put("c")];
    store.change_registry(all).await.unwrap();
    store.close().await.unwrap();
    (folder, path)
}

#[tokio::test]
async fn a_damaged_entry_is_told_by_its_name_and_can_be_removed_or_replaced() {
    let (_folder, path) = folder().await;
    tamper(&path, |tx| {
        let mut entries = tx.edit(REGISTRY).unwrap();
        // Of a version that a newer everfeed would write.
        entries.insert("a", &[9, 1, 2]).unwrap();
        entries.insert("b", b"").unwrap();
    });
    assert_eq!(verify(&path).unwrap().faults_total, 2);
    let store = reopen(&path).unwrap();
    let held = store.registry(None, 9).await.unwrap();
    let names: Vec<&str> = held.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(held[0].text.is_err() && held[1].text.is_err(), "{held:?}");
    assert_eq!(held[2], entry("c"));
    let mended = vec![put("a"), RegistryChange::Remove("b".to_owned())];
    store.change_registry(mended).await.unwrap();
    let held = store.registry(None, 9).await.unwrap();
    assert_eq!(held, [entry("a"), entry("c")]);
}

#[tokio::test]
async fn a_backup_a_restored_store_and_a_copy_have_the_entries() {
    let (folder, path) = folder().await;
    let backup = folder.path().join("backup.redb");
    let store = reopen(&path).unwrap();
    store.back_up(&backup).await.unwrap();
    let later = vec![put("d"), RegistryChange::Remove("a".to_owned())];
    store.change_registry(later).await.unwrap();
    store.close().await.unwrap();
    drop(store);

    let new = folder.path().join("new.redb");
    move_store(&path, &new, START).unwrap();
    let copied = reopen(&new).unwrap();
    let held = copied.registry(None, 9).await.unwrap();
    assert_eq!(held, [entry("b"), entry("c"), entry("d")]);
    copied.close().await.unwrap();
    drop(copied);

    restore(&backup, &new, START).unwrap();
    let restored = reopen(&new).unwrap();
    let held = restored.registry(None, 9).await.unwrap();
    assert_eq!(held, [entry("a"), entry("b"), entry("c")]);
}

#[tokio::test]
async fn a_file_from_before_the_registry_and_the_events_gets_both() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let store = reopen(&path).unwrap();
    store.register("blog", NAMESPACE).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    tamper(&path, |tx| {
        assert!(tx.delete_table(REGISTRY.definition()).unwrap());
        assert!(tx.delete_table(EVENTS.definition()).unwrap());
    });
    assert!(verify(&path).unwrap().is_sound());
    let store = reopen(&path).unwrap();
    assert_eq!(store.registry(None, 9).await.unwrap(), []);
    store.change_registry(vec![put("a")]).await.unwrap();
    assert_eq!(store.registry(None, 9).await.unwrap(), [entry("a")]);
    assert_eq!(store.events(None, 9).await.unwrap(), []);
    assert_eq!(store.feeds(None, 9).await.unwrap().len(), 1);
}
