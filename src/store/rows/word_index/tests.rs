//! The index in the file: it grows with the commits, is left aside while it is behind, and what is
//! removed for good leaves no word.

use super::*;
use crate::{
    feed::{
        filter::Filter,
        item::Reason,
        order::Order,
        page::PageQuery,
        reconcile::{Change, Delete, PutKind},
    },
    store::{
        Feeds as _,
        conformance::rig::{Rig, add, all, delete, edit, id, ids, ids_of, open, put},
    },
};
use redb::{Database, ReadableDatabase as _};

fn remove(n: u32) -> Change {
    match delete(n) {
        Change::Delete(delete) => Change::Delete(Delete {
            reason: Reason::Forgotten,
            ..delete
        }),
        Change::Put(_) => unreachable!("a deletion"),
    }
}

/// The closed segments of a file, and the stamps in all lists of words.
fn indexed(rig: Rig) -> (Vec<Segment>, Vec<Stamp>) {
    let (store, _, folder) = rig.into_parts();
    drop(store);
    let database = Database::open(folder.unwrap().path().join("store.redb")).unwrap();
    let snapshot = database.begin_read().unwrap();
    let segments = snapshot.table(SEGMENTS).unwrap();
    let segments = segments.range(..);
    let segments = segments.map(|row| Segment::of_row(row.unwrap().1.value()).unwrap());
    let mut stamps = Vec::new();
    for row in snapshot.table(TERMS).unwrap().range(..) {
        let (key, chunk) = row.unwrap();
        let (base, lists) = postings::opened(chunk.value()).unwrap();
        for list in postings::lists(term_of(key.value()), lists) {
            let (term, list) = list.unwrap();
            if term != CHANGED {
                stamps.extend(postings::stamps(base, list).unwrap());
            }
        }
    }
    (
        segments.filter(|segment| !segment.is_open()).collect(),
        stamps,
    )
}

fn found(word: &str, order: Order) -> PageQuery {
    let filter = Filter::of(&[("q", word)]).unwrap();
    PageQuery {
        filter,
        ..all(FeedNo(1), order)
    }
}

#[tokio::test]
async fn segments_cover_what_stands_and_changes_count_until_they_are_full() {
    let rig = Rig::redb();
    let feed = rig.blog().await;
    let several = u32::try_from(SEGMENT_ITEMS).unwrap();
    rig.change(feed, (1..=2 * several + 1).map(add).collect())
        .await
        .unwrap();
    // One is edited again and again: it is one item of the third segment, however often.
    for _ in 0..2 * several {
        rig.change(feed, vec![edit(1, "again")]).await.unwrap();
    }
    for order in [Order::MODIFIED_REVERSE, Order::CREATED, Order::PUBLISHED] {
        assert_eq!(
            ids(&rig.page(found("again", order)).await.unwrap()),
            ids_of(&[1]),
            "{order}"
        );
    }
    let first = rig.page(found("first", Order::CREATED)).await.unwrap();
    assert_eq!(
        ids(&first),
        (2..=2 * several + 1).map(id).collect::<Vec<_>>()
    );
    let (segments, _) = indexed(rig);
    assert_eq!(segments.len(), 2);
    assert_eq!(segments[0].through, segments[1].after);
    assert!(
        segments
            .iter()
            .all(|segment| segment.items == SEGMENT_ITEMS)
    );
}

#[tokio::test]
async fn a_search_reads_no_item_that_lacks_the_word() {
    let rig = Rig::redb();
    let feed = rig.blog().await;
    let several = u32::try_from(SEGMENT_ITEMS).unwrap();
    rig.change(feed, vec![put(PutKind::Added, 1, "rare")])
        .await
        .unwrap();
    rig.change(feed, (2..=2 * several).map(add).collect())
        .await
        .unwrap();
    let t = rig
        .item(feed, id(several + 2))
        .await
        .unwrap()
        .unwrap()
        .modified;
    let (store, clock, folder) = rig.into_parts();
    drop(store);
    let folder = folder.unwrap();
    let path = folder.path().join("store.redb");
    let database = Database::open(&path).unwrap();
    let tx = database.begin_write().unwrap();
    // A page that looks at it fails.
    tx.edit(ITEMS)
        .unwrap()
        .insert(&stamp_key(feed, t), &[0; 30])
        .unwrap();
    tx.commit().unwrap();
    drop(database);
    let store = open(path, clock).unwrap();
    for order in Order::ALL {
        assert_eq!(
            ids(&store.page(found("rare", order)).await.unwrap()),
            ids_of(&[1]),
            "{order}"
        );
        assert!(store.page(found("first", order)).await.is_err(), "{order}");
    }
}

#[tokio::test]
async fn what_is_removed_for_good_is_in_no_list() {
    let rig = Rig::redb();
    let feed = rig.blog().await;
    let several = u32::try_from(SEGMENT_ITEMS).unwrap();
    rig.change(feed, (1..=2 * several).map(add).collect())
        .await
        .unwrap();
    let created = rig.item(feed, id(2)).await.unwrap().unwrap().created;
    rig.change(feed, vec![edit(2, "secret")]).await.unwrap();
    rig.change(
        feed,
        (1..=2 * several)
            .filter(|n| *n != 2)
            .map(|n| edit(n, "more"))
            .collect(),
    )
    .await
    .unwrap();
    let rig = rig.reopen();
    assert_eq!(
        ids(&rig.page(found("secret", Order::CREATED)).await.unwrap()),
        ids_of(&[2])
    );
    rig.change(feed, vec![remove(2)]).await.unwrap();
    assert_eq!(
        ids(&rig.page(found("secret", Order::CREATED)).await.unwrap()),
        []
    );
    let (segments, stamps) = indexed(rig);
    assert!(segments.len() >= 3 && !stamps.is_empty());
    assert!(!stamps.contains(&created), "its words tell what it held");
}
