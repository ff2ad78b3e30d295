//! The explanation of archives, from what a store remembers of them.

use crate::app::explain::*;
use crate::{
    clock::Manual,
    feed::{
        archive::{ArchiveSuspect as ByWalks, History, LastWalk, PartialReason},
        item::{ItemDigests as Digests, Reason},
        reconcile::{Change, Put, PutKind, ended_in_archives},
    },
    store::{Archives, Commit, memory::Memory, traits::*},
};
use everfeed_adapters::{Entry, Text};

const START: Stamp = Stamp::from_secs(1_780_272_000);

fn add(key: KeyHash) -> Change {
    let entry = Entry { title: Some(Text::plain("a post")), ..Entry::default() };
    let (id, iri) = (key.item_id(), "tag:x,2005:1".to_owned());
    let (kind, seen) = (PutKind::Added, Digests::default());
    Change::Put(Put {
        kind,
        id,
        iri,
        keys: vec![key],
        entry: Arc::new(entry),
        published_us: None,
        digests: seen,
        witnesses: Vec::new(),
    })
}

fn commit(record: &FeedRecord, changes: Vec<Change>, missed: Vec<ByWalks>, walked: LastWalk) -> Commit {
    Commit {
        changes,
        last: Some(WindowState { archive_suspects: missed, ..WindowState::default() }),
        ready: true,
        archives: Some(Archives { history: History::Complete, unstage: None, walked: Some(walked) }),
        ..Commit::nothing(record)
    }
}

#[tokio::test]
async fn an_item_that_walks_miss_is_told_with_what_is_still_needed_and_then_with_the_proof() {
    let store = Arc::new(Memory::new(Arc::new(Manual::at(START.micros()))));
    let text = "[server]\npublic_url = \"http://feeds.example\"\n[[feed]]\nname = \"blog\"\nurl = \"http://blog.example/\"\n";
    let feeds = Config::parse("test", text).unwrap().feed;
    let record = store.register("blog", "blog").await.unwrap();
    let catalog = Catalog::new(catalog::observe(&*store, feeds).await.unwrap());
    let explainer =
        Explainer { store: store.clone(), catalog, platforms: Arc::new(Platforms::embedded().clone()) };
    let key = KeyHash::of("blog", "x");
    let seen =
        ByWalks { id: key.item_id(), since: START, last_seen: Stamp::from_secs(START.secs() - 9), walks: 1 };
    let walked = LastWalk {
        missed: 1,
        pages: 7,
        remark: Some("odd".into()),
        ..LastWalk::at_once(History::Partial(PartialReason::Circle), START)
    };
    let record = store.commit(commit(&record, vec![add(key)], vec![seen], walked)).await.unwrap().feed;
    let id = key.item_id().to_string();
    let told = explainer.explain("blog", Some(&id), |_| None).await.unwrap().unwrap();
    let (day, next) = (START.rfc3339(), START.plus_secs(86_400).rfc3339());
    assert_eq!(told.history, "complete");
    let again = format!("read again from {next} on");
    assert_eq!(
        told.archives,
        [
            format!("last read until {day}; pages: 7; partial (its archives lead in a circle)"),
            "odd".into(),
            again
        ]
    );
    let item = told.item.unwrap();
    assert_eq!(item.state, ItemState::Missed);
    let missed = item.missed.unwrap();
    assert_eq!((missed.since, missed.walks, missed.not_before), (day.clone(), (1, 2), Some(next)));

    let gone = Change::Delete(ended_in_archives(ByWalks { walks: 2, ..seen }, START));
    let walked = LastWalk::at_once(History::Complete, START);
    store.commit(commit(&record, vec![gone], Vec::new(), walked)).await.unwrap();
    let told = explainer.explain("blog", Some(&id), |_| None).await.unwrap().unwrap();
    let item = told.item.unwrap();
    assert_eq!((item.state, item.missed), (ItemState::Deleted, None));
    let proof = &item.evidence[0];
    assert_eq!(proof.reason, Reason::AbsentArchive.code());
    let missed = proof.missed.clone().unwrap();
    assert_eq!((missed.since, missed.walks, missed.not_before), (day, (2, 2), None));
}
