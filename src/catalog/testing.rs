//! Parts of feeds as a start makes them, and a feed with an item. Compiled for tests only.

use super::{CatalogSnapshot, register::with_parts};
use crate::{
    feed::{
        item::{ItemDigests, KeyHash},
        reconcile::{Change, Put, PutKind},
        record::FeedRecord,
    },
    store::{Commit, Store},
};
use everfeed_adapters::{Entry, Key};
use futures_util::FutureExt as _;
use std::sync::Arc;

/// Registers a feed under a namespace, and gives it an item.
pub(crate) async fn keep_item(store: &dyn Store, name: &str, namespace: &str) {
    let names = vec![(name.to_owned(), namespace.to_owned())];
    let record = store.register_all(names).await.unwrap().remove(0);
    let hash = KeyHash::of(namespace, &Key::Id("1".to_owned()).stripped());
    let put = Put {
        kind: PutKind::Added,
        id: hash.item_id(),
        iri: "tag:example.org,2026:1".to_owned(),
        keys: vec![hash],
        entry: Arc::new(Entry::default()),
        published_us: None,
        digests: ItemDigests::default(),
        witnesses: Vec::new(),
    };
    let commit = Commit {
        changes: vec![Change::Put(put)],
        ready: true,
        ..Commit::nothing(&record)
    };
    store.commit(commit).await.unwrap();
}

/// The same snapshot with the parts of its feeds, and each with its items. The store is one in
/// memory, which answers at once.
pub(crate) fn parted(
    store: &dyn Store,
    catalog: CatalogSnapshot,
) -> (CatalogSnapshot, Vec<FeedRecord>) {
    let now = "a store in memory answers at once";
    let every_feed = catalog.feeds().map(|feed| feed.no).collect();
    let catalog = with_parts(store, catalog, &every_feed).now_or_never();
    let catalog = catalog.expect(now).unwrap();
    let mut filled = Vec::new();
    for part in catalog.parts() {
        loop {
            let step = store.advance_group(part, 2).now_or_never();
            let step = step.expect(now).unwrap();
            if step.is_settled {
                filled.push(step.feed);
                break;
            }
        }
    }
    (catalog, filled)
}
