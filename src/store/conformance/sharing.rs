//! Several callers of one store, and answers that do not come: two handles, readers during commits,
//! unknown outcomes, fencing, a store that is away; and a feed that is forgotten whole.

use super::{
    rig::{NAMESPACE, Rig, add, all, commit, delete, edit, id, ids_of, key},
    subscriptions::new,
};
use crate::{
    feed::{
        legacy_document::{LegacyDocument, LegacySyntax},
        order::Order,
        record::{FeedNo, FeedRecord},
        schedule::PollState,
        stamp::Stamp,
    },
    store::{
        Commit, FoundFeeds, Receipt, Store, StoreError, StoreFuture, listing,
        traits::*,
        wrapped::{Tap, Wrapped},
    },
};
use everfeed_adapters::Digest;
use futures_util::{TryStreamExt as _, join};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

on_every_store![
    of_two_handles_that_decide_on_one_revision_one_commits,
    a_reader_never_sees_half_a_commit,
    after_an_unknown_outcome_a_look_tells_what_is_there,
    a_store_that_is_away_has_done_nothing,
    a_forgotten_feed_leaves_nothing_and_its_number_never_comes_back,
    feeds_are_registered_all_or_none,
    the_feeds_of_a_site_are_those_kept_last,
    listings_go_on_where_they_stopped,
];

async fn of_two_handles_that_decide_on_one_revision_one_commits(rig: Rig) {
    let feed = rig.blog().await;
    let (one, other): (&dyn Store, &dyn Store) = (&*rig, &*rig);
    for n in 1..20 {
        let (seen, also_seen) = (
            one.feed(feed).await.unwrap(),
            other.feed(feed).await.unwrap(),
        );
        let (first, second) = join!(
            one.commit(commit(&seen, vec![add(n * 2)])),
            other.commit(commit(&also_seen, vec![add(n * 2 + 1)])),
        );
        assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
        let lost = first.err().or(second.err()).unwrap();
        assert!(
            matches!(lost, StoreError::Conflict { .. }) && lost.wants_another_look(),
            "{lost:?}"
        );
    }
    assert_eq!(rig.feed(feed).await.unwrap().items.total, 19);
}

async fn a_reader_never_sees_half_a_commit(rig: Rig) {
    let feed = rig.blog().await;
    let keys: Vec<_> = (0..10).map(key).collect();
    let write = async {
        for round in 0..20 {
            let changes = (0..10).map(|n| {
                if round == 0 {
                    add(n)
                } else {
                    edit(n, &round.to_string())
                }
            });
            rig.change(feed, changes.collect()).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let read = async {
        for _ in 0..60 {
            let snapshot = rig.snapshot(feed, keys.clone()).await.unwrap();
            let page = rig.page(all(feed, Order::MODIFIED)).await.unwrap();
            assert_eq!(
                snapshot.record.items.total as usize,
                snapshot.items.len(),
                "one revision"
            );
            let newest = snapshot
                .items
                .values()
                .map(|item| item.modified)
                .max()
                .unwrap_or_default();
            assert_eq!(newest, snapshot.record.last_t);
            assert!(
                page.items.len() == 10 || page.items.is_empty(),
                "all of a commit or nothing"
            );
            tokio::task::yield_now().await;
        }
    };
    join!(write, read);
}

/// Answers that the outcome is unknown: of the first commit after it was made, of the second
/// without making it.
#[derive(Default)]
struct Unknown {
    commits: AtomicUsize,
}

impl Tap for Unknown {
    fn commit<'a>(&'a self, inner: &'a dyn Store, commit: Commit) -> StoreFuture<'a, Receipt> {
        Box::pin(async move {
            let before = self.commits.fetch_add(1, Ordering::Relaxed);
            if before != 1 {
                let receipt = inner.commit(commit).await?;
                if before > 1 {
                    return Ok(receipt);
                }
            }
            Err(StoreError::OutcomeUnknown("the connection broke".into()))
        })
    }
}

/// Adds an entry as every writer does: look, decide, commit, and look again.
async fn add_once(store: &dyn Store, feed: FeedNo, n: u32) -> usize {
    for tries in 1.. {
        let snapshot = store.snapshot(feed, vec![key(n)]).await.unwrap();
        if !snapshot.items.is_empty() {
            return tries;
        }
        match store.commit(commit(&snapshot.record, vec![add(n)])).await {
            Ok(_) => return tries,
            Err(error) => assert!(error.wants_another_look() && !error.is_away(), "{error:?}"),
        }
    }
    unreachable!("it returns")
}

async fn after_an_unknown_outcome_a_look_tells_what_is_there(rig: Rig) {
    let feed = rig.blog().await;
    let (inner, _clock, _folder) = rig.into_parts();
    let store = Wrapped {
        inner,
        tap: Unknown::default(),
    };
    assert_eq!(
        add_once(&store, feed, 1).await,
        2,
        "it was kept: the second look finds it"
    );
    assert_eq!(
        add_once(&store, feed, 2).await,
        2,
        "it was not kept: it is made again"
    );
    let page = store.page(all(feed, Order::MODIFIED)).await.unwrap();
    assert_eq!(
        page.items.iter().map(|item| item.id).collect::<Vec<_>>(),
        ids_of(&[1, 2]),
        "each once"
    );
}

/// Cannot be reached.
struct Unreachable;

impl Tap for Unreachable {
    fn commit<'a>(&'a self, _: &'a dyn Store, _: Commit) -> StoreFuture<'a, Receipt> {
        Box::pin(async { Err(StoreError::Away("nobody answers".into())) })
    }
}

async fn a_store_that_is_away_has_done_nothing(rig: Rig) {
    let feed = rig.blog().await;
    let (inner, _clock, _folder) = rig.into_parts();
    let store = Wrapped {
        inner,
        tap: Unreachable,
    };
    let before = store.feed(feed).await.unwrap();
    let away = store
        .commit(commit(&before, vec![add(1)]))
        .await
        .unwrap_err();
    assert!(away.is_away() && !away.wants_another_look(), "{away:?}");
    assert_eq!(store.feed(feed).await.unwrap(), before);
    // The same call, repeated once somebody answers.
    store
        .inner
        .commit(commit(&before, vec![add(1)]))
        .await
        .unwrap();
}

async fn a_forgotten_feed_leaves_nothing_and_its_number_never_comes_back(rig: Rig) {
    let feed = rig.blog().await;
    let other = rig.register("other", NAMESPACE).await.unwrap().no;
    for feed in [feed, other] {
        rig.change(feed, vec![add(1), add(2)]).await.unwrap();
        rig.change(feed, vec![delete(2)]).await.unwrap();
        rig.save_polls(vec![(feed, PollState::default())], vec![])
            .await
            .unwrap();
        rig.keep_document(feed, Arc::new(document("old")))
            .await
            .unwrap();
        rig.keep_document(feed, Arc::new(document("new")))
            .await
            .unwrap();
        rig.subscribe(new(feed, &format!("http://{feed}/")))
            .await
            .unwrap();
    }
    assert!(rig.forget(feed).await.unwrap());
    assert!(!rig.forget(feed).await.unwrap());
    let rig = rig.reopen();
    assert_eq!(rig.feed_named("blog").await.unwrap(), None);
    assert!(matches!(
        rig.feed(feed).await,
        Err(StoreError::UnknownFeed(_))
    ));
    assert_eq!(rig.item(feed, id(1)).await.unwrap(), None);
    assert_eq!(rig.evidence(feed, id(2)).await.unwrap(), []);
    assert_eq!(rig.poll(feed).await.unwrap(), None);
    assert_eq!(rig.document(feed).await.unwrap(), None);
    assert_eq!(rig.document(other).await.unwrap(), Some(document("new")));
    let late = rig.keep_document(feed, Arc::new(document("late"))).await;
    assert!(matches!(late, Err(StoreError::UnknownFeed(_))), "{late:?}");
    assert_eq!(rig.subscriptions(Some(feed), None, 9).await.unwrap(), []);
    let counts = rig.counts().await.unwrap();
    assert_eq!(
        (counts.feeds, counts.items, counts.subscriptions),
        (1, 2, 1),
        "the other one is whole"
    );
    assert!(rig.item(other, id(1)).await.unwrap().is_some());
    let again = rig.register("blog", NAMESPACE).await.unwrap();
    assert!(again.no > other && again.items.total == 0, "{again:?}");
    rig.change(again.no, vec![add(1)]).await.unwrap();
}

async fn the_feeds_of_a_site_are_those_kept_last(rig: Rig) {
    let found = |paths: &[&str]| FoundFeeds {
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
    };
    assert_eq!(rig.found_feeds("http://a/").await.unwrap(), found(&[]));
    rig.keep_found_feeds("http://a/", found(&["/feed"]))
        .await
        .unwrap();
    rig.keep_found_feeds("http://b/", found(&["/atom.xml"]))
        .await
        .unwrap();
    rig.keep_found_feeds("http://a/", found(&["/feed", "/?feed=rss2"]))
        .await
        .unwrap();
    let rig = rig.reopen();
    assert_eq!(
        rig.found_feeds("http://a/").await.unwrap(),
        found(&["/feed", "/?feed=rss2"])
    );
    assert_eq!(
        rig.found_feeds("http://b/").await.unwrap(),
        found(&["/atom.xml"])
    );
}

fn document(body: &str) -> LegacyDocument {
    LegacyDocument {
        body: body.into(),
        digest: Digest::of(body.as_bytes()),
        content_type: None,
        last_modified: None,
        syntax: LegacySyntax::Other,
        fetched_at: Stamp::ZERO,
        etag: None,
    }
}

async fn feeds_are_registered_all_or_none(rig: Rig) {
    let feed = rig.blog().await;
    rig.commit(commit(&rig.feed(feed).await.unwrap(), vec![add(1)]))
        .await
        .unwrap();
    let named = |name: &str, namespace: &str| (name.to_owned(), namespace.to_owned());
    let refused = rig
        .register_all(vec![named("new", "n"), named("blog", "another.example")])
        .await;
    assert!(
        matches!(refused, Err(StoreError::Namespace { .. })),
        "{refused:?}"
    );
    assert_eq!(rig.feed_named("new").await.unwrap(), None);
    let made = rig
        .register_all(vec![named("blog", NAMESPACE), named("new", "n")])
        .await
        .unwrap();
    assert_eq!(
        made.iter().map(|record| &*record.name).collect::<Vec<_>>(),
        ["blog", "new"]
    );
}

async fn listings_go_on_where_they_stopped(rig: Rig) {
    let names = (0..600)
        .map(|n| (format!("feed{n}"), NAMESPACE.to_owned()))
        .collect();
    let made = rig.register_all(names).await.unwrap();
    let listed: Vec<FeedRecord> = listing::feeds(&*rig).try_collect().await.unwrap();
    assert_eq!(listed, made);
    let after = rig.feeds(Some(made[3].no), 2).await.unwrap();
    assert_eq!(after, made[4..6]);
    let feed = made[0].no;
    rig.change(feed, vec![add(1), add(2), add(3)])
        .await
        .unwrap();
    let found = rig.ids(feed, vec![key(2), key(9)]).await.unwrap();
    assert_eq!(found, [(key(2), id(2))]);
}
