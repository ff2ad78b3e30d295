//! A store in which every table has rows, written by the code that writes them in life: it verifies,
//! and so do its backup, what is restored from that, and its copies to another kind of store and
//! back.

use super::{
    accounts::{token, user},
    archives::{page, walk},
    rig::{NAMESPACE, Rig, START, add, all, commit, delete, edit},
    subscriptions::new,
};
use crate::{
    feed::{
        legacy_document::{LegacyDocument, LegacySyntax},
        observation_record::ObservationRecord,
        order::Order,
        part::WantedPart,
        reconcile::{Change, WindowState},
        record::FeedNo,
        schedule::{Pause, PollState},
    },
    store::{
        Commit, FoundFeeds, RegistryChange, Store, WantedGroup,
        redb::{Redb, restore, test_rows, verify},
        subscriptions::Progress,
    },
};
use everfeed_adapters::Digest;
use std::{path::Path, sync::Arc};

/// Puts rows into every table, each by the method of a store that is for it.
async fn fill(store: &dyn Store) -> FeedNo {
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    let with_witness = |change| match change {
        Change::Put(mut put) => {
            put.witnesses = put.keys.clone();
            Change::Put(put)
        }
        change => change,
    };
    let first = Commit {
        last: Some(WindowState::default()),
        poll: Some(PollState::unpolled("http://example.org/feed")),
        observed: Some(ObservationRecord::default()),
        ..commit(&feed, (1..40).map(add).map(with_witness).collect())
    };
    let mut feed = store.commit(first).await.unwrap().feed;
    // The words of a long feed are indexed with the commits that follow.
    for n in 40..60 {
        let changes = vec![add(n), edit(1, &format!("words {n}"))];
        feed = store.commit(commit(&feed, changes)).await.unwrap().feed;
    }
    store.commit(commit(&feed, vec![delete(2)])).await.unwrap();
    let feed = feed.no;
    store.stage(feed, walk(), Some(page(1))).await.unwrap();
    let held = store
        .subscribe(new(feed, "http://callback.example/"))
        .await
        .unwrap();
    let progress = Progress {
        acked: Some("1_0_1".into()),
        ..Progress::default()
    };
    store
        .change_subscription(held, Some(progress))
        .await
        .unwrap();
    let pause = Pause {
        since: START,
        until: START.plus_secs(86_400),
    };
    let pauses = vec![("http://example.org:80".to_owned(), pause)];
    store.save_polls(vec![], pauses).await.unwrap();
    let alice = store.add_user(user("alice")).await.unwrap().unwrap();
    store.add_token(token(alice.no, 1)).await.unwrap();
    let document = LegacyDocument {
        digest: Digest::of(b"x"),
        body: b"<rss/>".to_vec(),
        content_type: None,
        last_modified: None,
        syntax: LegacySyntax::Rss,
        fetched_at: START,
        etag: None,
    };
    store.keep_document(feed, Arc::new(document)).await.unwrap();
    let found = FoundFeeds {
        paths: vec!["/rss.xml".into()],
    };
    store
        .keep_found_feeds("http://site.example/", found)
        .await
        .unwrap();
    let text = RegistryChange::Put {
        name: "registered".into(),
        text: "{}".into(),
    };
    store.change_registry(vec![text]).await.unwrap();
    let group = store.register("planet", "group:planet").await.unwrap().no;
    let planet = WantedGroup {
        metadata: Arc::default(),
        members: vec![(feed, "http://feeds.example/feeds/blog.atom".to_owned())],
    };
    store.set_group(group, planet).await.unwrap();
    let part = WantedPart {
        filter: crate::feed::filter::Filter::of(&[("q", "words")]).unwrap(),
        audience: "bob".into(),
    };
    let part = store.set_parts(feed, vec![part]).await.unwrap()[0].no;
    for made in [group, part] {
        while !store.advance_group(made, 100).await.unwrap().is_settled {}
    }
    feed
}

/// Checks that a file is sound, and that no kind of row is missing from it.
fn check_full(path: &Path, when: &str) {
    let report = verify(path).unwrap();
    assert!(report.is_sound(), "{when}: {report}");
    let empty: Vec<&str> = report
        .kinds
        .iter()
        .filter(|kind| kind.values == 0)
        .map(|kind| kind.name)
        .collect();
    assert_eq!(empty, [""; 0], "{when}: nothing writes these");
    assert_eq!(report.kinds.len(), test_rows::tables(), "{when}");
}

/// Everything that consumers, the poller and the hub are answered by a store.
async fn answers(store: &dyn Store, feed: FeedNo) -> (String, Vec<Progress>) {
    let items = store.page(all(feed, Order::MODIFIED)).await.unwrap().items;
    let subscriptions = store.subscriptions(None, None, 9).await.unwrap();
    let (terms, positions): (Vec<_>, Vec<_>) = subscriptions.into_iter().unzip();
    let staged = store.staged(feed).await.unwrap();
    let pauses = store.host_pauses(None, 9).await.unwrap();
    let users = store.users(None, 9).await.unwrap();
    let registry = store.registry(None, 9).await.unwrap();
    let (poll, evidence) = (
        store.poll(feed).await.unwrap(),
        store.evidence(feed, super::rig::id(2)).await.unwrap(),
    );
    let found = store.found_feeds("http://site.example/").await.unwrap();
    let rest = format!(
        "{items:?} {terms:?} {staged:?} {pauses:?} {users:?} {registry:?} {poll:?} {evidence:?} {found:?}"
    );
    (rest, positions)
}

/// Puts a pause as stores of before wrote it, its end alone, beside the one of today.
async fn with_pauses_of_both_forms(rig: Rig) -> Rig {
    let rig = rig.changed_by(|path| {
        let until = START.plus_secs(7200).micros().to_be_bytes();
        test_rows::put_host(path, "older.example", &until);
    });
    let pauses = rig.host_pauses(None, 9).await.unwrap();
    assert_eq!(pauses.len(), 2);
    let older = pauses
        .iter()
        .find(|(host, _)| host == "older.example")
        .unwrap();
    assert_eq!(older.1.until, START.plus_secs(7200));
    rig
}

#[tokio::test]
async fn every_table_verifies_as_it_is_written_and_so_do_its_backup_and_what_is_restored() {
    let rig = Rig::redb();
    let feed = fill(&*rig).await;
    let rig = with_pauses_of_both_forms(rig).await;
    let before = answers(&*rig, feed).await;
    let path = rig.path().unwrap();
    let backup = path.with_file_name("backup.redb");
    rig.back_up(&backup).await.unwrap();
    rig.close().await.unwrap();
    let (_store, clock, _folder) = rig.into_parts();
    drop(_store);
    check_full(&path, "as it is written");
    check_full(&backup, "the backup");
    restore(&backup, &path, START.plus_secs(10)).unwrap();
    check_full(&path, "restored");
    let restored: Redb = super::rig::open(path.clone(), clock).unwrap();
    // A restored store has another generation, so its subscriptions start from another position.
    assert_eq!(answers(&restored, feed).await.0, before.0);
}

#[tokio::test]
async fn a_pause_of_any_other_length_is_damage_and_named() {
    let rig = Rig::redb();
    fill(&*rig).await;
    let rig = rig.changed_by(|path| test_rows::put_host(path, "odd.example", &[1; 12]));
    let path = rig.path().unwrap();
    rig.close().await.unwrap();
    let (store, _clock, _folder) = rig.into_parts();
    drop(store);
    let report = verify(&path).unwrap();
    assert_eq!(report.faults_total, 1, "{report}");
    assert!(report.faults[0].contains("pauses of hosts"), "{report}");
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn every_table_goes_to_a_database_and_back() {
    let rig = Rig::redb();
    let feed = fill(&*rig).await;
    let rig = with_pauses_of_both_forms(rig).await;
    let before = answers(&*rig, feed).await;
    let rig = rig.copied_to_database();
    assert_eq!(answers(&*rig, feed).await, before);
    let rig = rig.copied_to_file();
    assert_eq!(answers(&*rig, feed).await, before);
    let path = rig.path().unwrap().with_file_name("back.redb");
    rig.close().await.unwrap();
    let (store, _clock, _folder) = rig.into_parts();
    drop(store);
    let report = verify(&path).unwrap();
    assert!(report.is_sound(), "{report}");
}
