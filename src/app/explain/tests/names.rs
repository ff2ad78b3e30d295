//! The names by which an item is asked for.

use crate::app::explain::*;
use crate::{
    clock::Manual,
    feed::{
        item::{ItemDigests, Reason, uuid_iri},
        reconcile::{Change, Delete, Put, PutKind},
    },
    store::{Commit, memory::Memory},
};
use everfeed_adapters::{Entry, Link};

const START: Stamp = Stamp::from_secs(1_780_272_000);
const CONFIG: &str = "[server]\npublic_url = \"http://feeds.example\"\n[[feed]]\nname = \"blog\"\nurl = \"http://blog.example/rss\"\n";

/// Of an item whose key is not the hash of its id alone, as after a feed was caught giving one id to two posts.
#[tokio::test]
async fn an_item_is_found_by_its_publishers_id_as_written_alive_and_deleted() {
    let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::new(Manual::at(START.micros()))));
    let record = store.register("blog", "blog").await.unwrap();
    let link = Link { href: "http://blog.example/1".into(), rel: "alternate".into(), ..Link::default() };
    let entry = Entry { id: Some("Post 1".into()), links: vec![link], ..Entry::default() };
    let key = KeyHash::of("blog", "id and link");
    let (id, iri) = (key.item_id(), uuid_iri("blog", "Post 1"));
    let put = Put {
        kind: PutKind::Added,
        id,
        iri: iri.clone(),
        keys: vec![key],
        entry: Arc::new(entry),
        published_us: None,
        digests: ItemDigests::default(),
        witnesses: address_witness("http://blog.example/1").into_iter().collect(),
    };
    let commit = Commit { changes: vec![Change::Put(put)], ready: true, ..Commit::nothing(&record) };
    let record = store.commit(commit).await.unwrap().feed;
    let feeds = Config::parse("test", CONFIG).unwrap().feed;
    let catalog = Catalog::new(catalog::observe(&*store, feeds).await.unwrap());
    let platforms = Arc::new(Platforms::embedded().clone());
    let explainer = Explainer { store: Arc::clone(&store), catalog, platforms };
    let ours = id.to_string();
    for name in ["Post 1", &iri, "http://blog.example/1", &ours] {
        let told = explainer.explain("blog", Some(name), |_| None).await.unwrap().unwrap();
        assert_eq!(told.item.map(|item| item.state), Some(ItemState::RolledOff), "{name}");
    }
    let unknown = explainer.explain("blog", Some("Post 2"), |_| None).await.unwrap().unwrap();
    assert_eq!(unknown.item, None);

    let reason = Reason::AbsentBracketed;
    let evidence = Evidence {
        reason,
        observed_at: START,
        when: None,
        comment: None,
        suspect: None,
        archive_suspect: None,
    };
    let gone = Delete { id, reason, first_missing: None, last_seen: None, evidence };
    let commit = Commit { changes: vec![Change::Delete(gone)], ready: true, ..Commit::nothing(&record) };
    store.commit(commit).await.unwrap();
    for name in ["Post 1", &iri, &ours, "http://blog.example/1"] {
        let told = explainer.explain("blog", Some(name), |_| None).await.unwrap().unwrap();
        assert_eq!(told.item.map(|item| item.state), Some(ItemState::Deleted), "{name}");
    }
}
