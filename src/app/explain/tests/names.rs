//! The names by which an item is asked for; and what is told of it while it changes.

use crate::app::explain::*;
use crate::{
    clock::Manual,
    feed::{
        item::{ItemDigests, Reason, uuid_iri},
        reconcile::{Change, Delete, Put, PutKind},
    },
    store::{
        Commit, StoreFuture,
        memory::Memory,
        wrapped::{Tap, Wrapped},
    },
};
use everfeed_adapters::{Entry, Link};
use std::sync::Mutex;

pub(in crate::app) const START: Stamp = Stamp::from_secs(1_780_272_000);
const CONFIG: &str = "[server]\npublic_url = \"http://feeds.example\"\n[[feed]]\nname = \"blog\"\nurl = \"http://blog.example/rss\"\n";

/// Stores a feed with one post: its record, and the id and the IRI of the post.
pub(in crate::app) async fn with_post(store: &dyn Store) -> (FeedRecord, ItemId, String) {
    let record = store.register("blog", "blog").await.unwrap();
    let link = Link {
        href: "http://blog.example/1".into(),
        rel: "alternate".into(),
        ..Link::default()
    };
    let entry = Entry {
        id: Some("Post 1".into()),
        links: vec![link],
        ..Entry::default()
    };
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
        witnesses: address_witness("http://blog.example/1")
            .into_iter()
            .collect(),
    };
    let commit = Commit {
        changes: vec![Change::Put(put)],
        ready: true,
        ..Commit::nothing(&record)
    };
    (store.commit(commit).await.unwrap().feed, id, iri)
}

/// The deletion of an item.
fn deletion(record: &FeedRecord, id: ItemId) -> Commit {
    let reason = Reason::AbsentBracketed;
    let evidence = Evidence {
        reason,
        observed_at: START,
        when: None,
        comment: None,
        suspect: None,
        archive_suspect: None,
    };
    let gone = Delete {
        id,
        reason,
        first_missing: None,
        last_seen: None,
        evidence,
    };
    Commit {
        changes: vec![Change::Delete(gone)],
        ready: true,
        ..Commit::nothing(record)
    }
}

async fn explainer(store: &Arc<dyn Store>) -> Explainer {
    explainer_of(store, "").await
}

/// One of a feed with these settings, too.
pub(in crate::app) async fn explainer_of(store: &Arc<dyn Store>, settings: &str) -> Explainer {
    let config = format!("{CONFIG}{settings}");
    let feeds = Config::parse("test", &config).unwrap().feed;
    let catalog = Catalog::new(crate::catalog::observe(&**store, feeds).await.unwrap());
    let platforms = Arc::new(Platforms::embedded().clone());
    Explainer {
        store: Arc::clone(store),
        catalog,
        platforms,
    }
}

/// Of an item whose key is not the hash of its id alone, as after a feed was caught giving one id
/// to two posts.
#[tokio::test]
async fn an_item_is_found_by_its_publishers_id_as_written_alive_and_deleted() {
    let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::new(Manual::at(START.micros()))));
    let (record, id, iri) = with_post(&*store).await;
    let explainer = explainer(&store).await;
    let ours = id.to_string();
    for name in ["Post 1", &iri, "http://blog.example/1", &ours] {
        let told = explainer
            .explain("blog", Some(name), |_| None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            told.item.map(|item| item.state),
            Some(ItemState::RolledOff),
            "{name}"
        );
    }
    let unknown = explainer
        .explain("blog", Some("Post 2"), |_| None)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(unknown.item, None);

    store.commit(deletion(&record, id)).await.unwrap();
    for name in ["Post 1", &iri, &ours, "http://blog.example/1"] {
        let told = explainer
            .explain("blog", Some(name), |_| None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            told.item.map(|item| item.state),
            Some(ItemState::Deleted),
            "{name}"
        );
    }
}

/// Commits once, just before evidence is read.
struct CommitsBetween(Mutex<Option<Commit>>);

impl Tap for CommitsBetween {
    fn evidence<'a>(
        &'a self,
        inner: &'a dyn Store,
        feed: FeedNo,
        id: ItemId,
    ) -> StoreFuture<'a, Vec<(Stamp, Evidence)>> {
        let commit = self.0.lock().unwrap().take();
        Box::pin(async move {
            if let Some(commit) = commit {
                inner.commit(commit).await?;
            }
            inner.evidence(feed, id).await
        })
    }
}

#[tokio::test]
async fn a_commit_between_two_reads_shows_in_all_of_an_explanation_or_in_nothing() {
    let inner = Box::new(Memory::new(Arc::new(Manual::at(START.micros()))));
    let (record, id, iri) = with_post(&*inner).await;
    let tap = CommitsBetween(Mutex::new(Some(deletion(&record, id))));
    let store: Arc<dyn Store> = Arc::new(Wrapped { inner, tap });
    let told = explainer(&store)
        .await
        .explain("blog", Some(&iri), |_| None)
        .await
        .unwrap()
        .unwrap();
    let item = told.item.unwrap();
    assert_eq!((item.state, item.evidence.len()), (ItemState::Deleted, 1));
}
