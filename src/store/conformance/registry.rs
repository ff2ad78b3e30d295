//! The registry of feeds.

use super::rig::Rig;
use crate::store::{RegistryChange, RegistryEntry};
use futures_util::future::join_all;

on_every_store![
    an_entry_is_kept_by_name_replaced_and_removed,
    entries_are_listed_by_pages,
    changes_at_once_lose_nothing,
    a_feed_that_is_forgotten_leaves_the_registry_alone,
];

fn put(name: &str, text: &str) -> RegistryChange {
    RegistryChange::Put {
        name: name.to_owned(),
        text: text.to_owned(),
    }
}

fn entry(name: &str, text: &str) -> RegistryEntry {
    RegistryEntry {
        name: name.to_owned(),
        text: Ok(text.to_owned()),
    }
}

async fn an_entry_is_kept_by_name_replaced_and_removed(rig: Rig) {
    assert_eq!(rig.registry(None, 9).await.unwrap(), []);
    let both = vec![put("b", "{\"url\":\"http://ö/\"}"), put("a", "one")];
    rig.change_registry(both).await.unwrap();
    let rig = rig.reopen();
    let held = [entry("a", "one"), entry("b", "{\"url\":\"http://ö/\"}")];
    assert_eq!(rig.registry(None, 9).await.unwrap(), held);
    let one = rig.registry_entry("b".into()).await.unwrap();
    assert_eq!(one.as_ref(), Some(&held[1]));
    assert_eq!(rig.registry_entry("ab".into()).await.unwrap(), None);
    let remove = |name: &str| RegistryChange::Remove(name.to_owned());
    // In their order: what is put and removed in one call is gone.
    let changes = vec![put("a", "two"), put("c", ""), remove("c"), remove("b")];
    rig.change_registry(changes).await.unwrap();
    rig.change_registry(vec![remove("never")]).await.unwrap();
    let rig = rig.reopen();
    assert_eq!(rig.registry(None, 9).await.unwrap(), [entry("a", "two")]);
}

async fn entries_are_listed_by_pages(rig: Rig) {
    let all = ["a", "a-b", "b", "c"].map(|name| put(name, name)).into();
    rig.change_registry(all).await.unwrap();
    let page = rig.registry(Some("a".into()), 2).await.unwrap();
    assert_eq!(page, [entry("a-b", "a-b"), entry("b", "b")]);
    assert_eq!(rig.registry(Some("c".into()), 2).await.unwrap(), []);
}

async fn changes_at_once_lose_nothing(rig: Rig) {
    let names: Vec<String> = (0..20).map(|no| format!("feed-{no:02}")).collect();
    let changes = names
        .iter()
        .map(|name| rig.change_registry(vec![put(name, name)]));
    for changed in join_all(changes).await {
        changed.unwrap();
    }
    let held = rig.reopen().registry(None, 99).await.unwrap();
    let held: Vec<String> = held.into_iter().map(|entry| entry.name).collect();
    assert_eq!(held, names);
}

async fn a_feed_that_is_forgotten_leaves_the_registry_alone(rig: Rig) {
    let blog = rig.blog().await;
    rig.change_registry(vec![put("blog", "x")]).await.unwrap();
    assert!(rig.forget(blog).await.unwrap());
    assert_eq!(
        rig.reopen().registry(None, 9).await.unwrap(),
        [entry("blog", "x")]
    );
}
