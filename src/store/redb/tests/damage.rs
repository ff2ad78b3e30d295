//! Rows that contradict each other or cannot be read: each is told, and harms no other.

use super::*;

/// A store of one feed with two items and a subscription, and how it answers after it was tampered
/// with.
async fn damage(change: impl FnOnce(&redb::WriteTransaction)) -> Redb {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let store = reopen(&path).unwrap();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    store
        .commit(commit(&feed, vec![add(1), add(2)]))
        .await
        .unwrap();
    store.subscribe(new(feed.no, "http://a/")).await.unwrap();
    store.close().await.unwrap();
    tamper(&path, change);
    reopen(&path).unwrap()
}

const FEED: FeedNo = FeedNo(1);

fn is_damaged<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    let is_damage = |error: &StoreError| {
        matches!(
            error,
            StoreError::Damaged(_)
                | StoreError::DamagedItem { .. }
                | StoreError::DamagedFeed { .. }
        )
    };
    assert!(answer.as_ref().is_err_and(is_damage), "{answer:?}");
}

#[tokio::test]
async fn an_item_under_another_t_is_damage() {
    let store = damage(|tx| {
        let mut items = tx.edit(ITEMS).unwrap();
        let item = items
            .get(&stamp_key(FEED, START))
            .unwrap()
            .unwrap()
            .value()
            .to_vec();
        items.remove(&stamp_key(FEED, START)).unwrap();
        items
            .insert(&stamp_key(FEED, START.plus_secs(1)), &item)
            .unwrap();
    })
    .await;
    is_damaged(store.page(all(FEED, Order::MODIFIED)).await);
    is_damaged(store.page(all(FEED, Order::CREATED)).await);
    is_damaged(store.item(FEED, id(1)).await);
    is_damaged(
        store
            .page(PageQuery {
                since: Some(Position::Id(guid(1))),
                ..all(FEED, Order::CREATED)
            })
            .await,
    );
    let feed = store.feed(FEED).await.unwrap();
    is_damaged(store.commit(commit(&feed, vec![edit(1, "x")])).await);
    assert!(
        store.item(FEED, id(2)).await.unwrap().is_some(),
        "the rest is still there"
    );
    store
        .commit(commit(&feed, vec![edit(2, "x")]))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_feed_whose_record_is_damaged_takes_no_other_with_it_and_begins_anew_once_forgotten() {
    let store = damage(|tx| {
        tx.edit(FEEDS)
            .unwrap()
            .insert(&feed_key(FEED), b"no record")
            .unwrap();
        tx.edit(POLLS)
            .unwrap()
            .insert(&feed_key(FEED), b"no poll state")
            .unwrap();
        tx.edit(SUBSCRIPTIONS)
            .unwrap()
            .insert(&subscription_key(SubscriptionNo(1)), b"none")
            .unwrap();
    })
    .await;
    let other = store.register("other", NAMESPACE).await.unwrap();
    let refused = store.feed(FEED).await.unwrap_err();
    assert!(
        matches!(&refused, StoreError::DamagedFeed { feed, .. } if feed == "blog"),
        "{refused}"
    );
    assert!(
        refused.to_string().contains("everfeed forget blog"),
        "{refused}"
    );
    assert!(
        store.register("blog", NAMESPACE).await.is_err(),
        "what it held is not given up in silence"
    );
    let listed: Vec<FeedNo> = store
        .feeds(None, 1)
        .await
        .unwrap()
        .iter()
        .map(|feed| feed.no)
        .collect();
    assert_eq!(
        (listed, store.polls(None, 9).await.unwrap().len()),
        (vec![other.no], 0)
    );
    let second = store.subscribe(new(other.no, "http://b/")).await.unwrap();
    let subscribed: Vec<_> = store.subscriptions(None, None, 1).await.unwrap();
    assert_eq!(
        subscribed
            .iter()
            .map(|(found, _)| found.no)
            .collect::<Vec<_>>(),
        [second.no]
    );
    assert!(store.forget(FEED).await.unwrap());
    let anew = store.register("blog", NAMESPACE).await.unwrap();
    assert!(anew.no > other.no);
    store.subscribe(new(anew.no, "http://a/")).await.unwrap();
}

#[tokio::test]
async fn rows_that_contradict_each_other_are_damage() {
    let store = damage(|tx| {
        let mut created = tx.edit(CREATED).unwrap();
        created
            .insert(&stamp_key(FEED, START), &stamp_value(START.next()))
            .unwrap();
        let mut ids = tx.edit(IDS).unwrap();
        ids.insert(&id_key(FEED, id(2)), &stamp_value(START))
            .unwrap();
        let mut keys = tx.edit(SUBSCRIPTION_KEYS).unwrap();
        keys.insert(
            &topic_key("http://t/", "http://a/"),
            &subscription_key(SubscriptionNo(1)),
        )
        .unwrap();
    })
    .await;
    is_damaged(store.page(all(FEED, Order::CREATED)).await);
    is_damaged(store.item(FEED, id(2)).await);
    is_damaged(store.find_subscription("http://t/", "http://a/").await);
    assert_eq!(
        store
            .page(all(FEED, Order::MODIFIED))
            .await
            .unwrap()
            .items
            .len(),
        2
    );
}

#[tokio::test]
async fn an_item_where_the_next_t_would_go_is_damage_and_is_not_written_over() {
    let store = damage(|tx| {
        let mut items = tx.edit(ITEMS).unwrap();
        let item = items
            .get(&stamp_key(FEED, START))
            .unwrap()
            .unwrap()
            .value()
            .to_vec();
        items
            .insert(
                &stamp_key(FEED, Stamp::from_micros(START.micros() + 2)),
                &item,
            )
            .unwrap();
    })
    .await;
    let feed = store.feed(FEED).await.unwrap();
    is_damaged(store.commit(commit(&feed, vec![add(3)])).await);
    assert_eq!(store.feed(FEED).await.unwrap(), feed);
}

#[tokio::test]
async fn values_that_cannot_be_read_are_damage() {
    let store = damage(|tx| {
        tx.edit(FEEDS)
            .unwrap()
            .insert(&feed_key(FEED), &[1, 9, 9])
            .unwrap();
        tx.edit(SUBSCRIPTIONS)
            .unwrap()
            .insert(&subscription_key(SubscriptionNo(1)), &[2])
            .unwrap();
    })
    .await;
    is_damaged(store.feed(FEED).await);
    is_damaged(store.register("blog", NAMESPACE).await);
    assert!(
        store.feeds(None, 9).await.unwrap().is_empty(),
        "a list leaves it out"
    );
    assert!(
        store
            .subscriptions(Some(FEED), None, 9)
            .await
            .unwrap()
            .is_empty()
    );
    is_damaged(store.end_subscription(SubscriptionNo(1)).await);
}

#[tokio::test]
async fn the_bytes_of_a_feed_that_an_older_everfeed_stored_are_counted_once() {
    let store = damage(|tx| {
        let mut feeds = tx.edit(FEEDS).unwrap();
        let key = feed_key(FEED);
        let stored = feeds.get(&key).unwrap().unwrap().value().to_vec();
        let record: FeedRecord = decode("a feed", &stored).unwrap();
        let record = FeedRecord {
            items: ItemCounts {
                bytes: None,
                ..record.items
            },
            ..record
        };
        feeds.insert(&key, &encode(&record).unwrap()).unwrap();
    })
    .await;
    let before = store.feed(FEED).await.unwrap();
    assert_eq!(before.items.bytes, None);
    store.commit(commit(&before, vec![])).await.unwrap();
    let counted = damage(|_| {}).await.feed(FEED).await.unwrap().items.bytes;
    assert!(counted > Some(0));
    assert_eq!(store.feed(FEED).await.unwrap().items.bytes, counted);
}

/// Removes an item as an operator does.
async fn remove(store: &Redb, n: u32) -> Result<Receipt, StoreError> {
    let Change::Delete(delete) = delete(n) else {
        panic!("it is a deletion")
    };
    let delete = Delete {
        reason: Reason::Forgotten,
        ..delete
    };
    let feed = store.feed(FEED).await.unwrap();
    store
        .commit(commit(&feed, vec![Change::Delete(delete)]))
        .await
}

#[tokio::test]
async fn an_item_that_is_damaged_is_named_with_the_command_that_removes_it_and_is_removed() {
    for keeps_its_name in [true, false] {
        let store = damage(|tx| {
            let mut items = tx.open_table(ITEMS.definition()).unwrap();
            let mut stored = items
                .get(&stamp_key(FEED, START))
                .unwrap()
                .unwrap()
                .value()
                .to_vec();
            if keeps_its_name {
                *stored.last_mut().unwrap() ^= 1;
            } else {
                stored.truncate(9);
            }
            items
                .insert(&stamp_key(FEED, START), stored.as_slice())
                .unwrap();
        })
        .await;
        for order in [Order::MODIFIED, Order::CREATED] {
            let told = store.page(all(FEED, order)).await.unwrap_err().to_string();
            let command = format!("`everfeed forget blog {}`", id(1));
            assert!(told.contains(&command), "{told}");
        }
        assert!(
            store.item(FEED, id(2)).await.unwrap().is_some(),
            "the other one is read"
        );
        remove(&store, 1).await.unwrap();
        for order in [Order::MODIFIED, Order::CREATED] {
            let page = store.page(all(FEED, order)).await.unwrap();
            assert_eq!((page.items.len(), page.record.items.live), (2, 1));
            let stub = page.items.iter().find(|item| item.id == id(1)).unwrap();
            assert!(stub.content.is_forgotten() && stub.created == START);
            assert!(stub.iri.starts_with("urn:uuid:"), "{}", stub.iri);
        }
    }
}
