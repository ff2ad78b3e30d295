//! The explanation of items that change with every poll.

use crate::app::explain::*;
use crate::feed::schedule::Repeat;
use crate::{
    clock::Manual,
    feed::{
        item::ItemDigests as Digests,
        reconcile::{Change, DeferredEdit, Put, PutKind, WindowEntry},
    },
    store::{Commit, memory::Memory},
};
use everfeed_adapters::{Date, Digest, Entry};

const AT: Stamp = Stamp::from_secs(1_780_272_000);
const IRI: &str = "tag:x,2005:1";
const CONFIG: &str = "[server]\npublic_url = \"http://feeds.example\"\n[store]\npath = \"x\"\n[[feed]]\nname = \"blog\"\n\
                      url = \"http://blog.example/rss\"\n";

/// The explanation of the only item of a feed, which changed in so many polls running and is held
/// back until then.
async fn told(changed_polls: u16, held_until: Option<Stamp>, at_rest: bool) -> Explanation {
    let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::new(Manual::at(AT.micros()))));
    let record = store.register("blog", "blog").await.unwrap();
    let key = KeyHash::of("blog", &Key::Id(IRI.into()).stripped());
    let (id, seen) = (key.item_id(), Digests::default());
    let dated = |secs: u64| {
        let at_us = i64::try_from(AT.plus_secs(secs).micros()).ok();
        Arc::new(Entry {
            updated: Some(Date {
                raw: String::new(),
                at_us,
            }),
            ..Entry::default()
        })
    };
    // What is held back while nothing churns is dated before what is shown.
    let (entry, older) = (dated(90), dated(if changed_polls == 0 { 30 } else { 150 }));
    let put = Put {
        kind: PutKind::Added,
        id,
        iri: IRI.into(),
        keys: vec![key],
        entry,
        published_us: None,
        digests: seen,
        witnesses: Vec::new(),
    };
    let held = DeferredEdit {
        id,
        key,
        until: held_until.unwrap_or(AT),
        entry: older,
        published_us: None,
        digests: seen,
        stretches: Vec::new(),
        shown_since: None,
        shown_polls: 0,
    };
    let row = WindowEntry {
        key,
        id,
        raw: Digest::default(),
        dated: None,
        tombstone_count: 0,
        is_weak: false,
        changed_polls,
        changing_since: None,
    };
    let last = WindowState {
        entries: vec![row],
        deferred: held_until.map(|_| held).into_iter().collect(),
        reformatted_at: Some(AT),
        ..WindowState::default()
    };
    let commit = Commit {
        changes: vec![Change::Put(put)],
        last: Some(last),
        ready: true,
        ..Commit::nothing(&record)
    };
    store.commit(commit).await.unwrap();
    let Config {
        feed: feeds,
        platforms,
        ..
    } = Config::parse("test", CONFIG).unwrap();
    let catalog = Catalog::new(crate::catalog::observe(&*store, feeds).await.unwrap());
    let explainer = Explainer {
        store,
        catalog,
        platforms: platforms.profiles(),
    };
    let poll = {
        let mut state = PollState::default();
        state.document.repeat = if at_rest {
            Repeat::Unchanged
        } else {
            Repeat::Changed
        };
        state
    };
    explainer
        .explain("blog", Some(IRI), |_| Some(poll.clone()))
        .await
        .unwrap()
        .unwrap()
}

#[tokio::test]
async fn an_item_that_changes_with_every_poll_says_so_and_until_when_its_newest_form_waits() {
    let until = AT.plus_secs(60);
    for (changed, held_until, at_rest, expect) in [
        (24, None, false, None),
        (25, None, false, Some((25, None))),
        (25, None, true, None),
        (31, Some(until), false, Some((31, Some(until.rfc3339())))),
        (0, Some(until), false, Some((0, Some(until.rfc3339())))),
    ] {
        let told = told(changed, held_until, at_rest).await;
        assert_eq!(told.deferred, usize::from(held_until.is_some()));
        assert_eq!(told.reformatted_at, Some(AT.rfc3339()));
        let churn = told.item.unwrap().churn;
        assert_eq!(
            churn.as_ref().is_some_and(|churn| churn.is_dated_before),
            changed == 0
        );
        assert_eq!(churn.map(|churn| (churn.polls, churn.held_until)), expect);
    }
}
