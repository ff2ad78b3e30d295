use super::*;
use crate::{
    clock::Manual,
    feed::{order::Order, page::PageQuery, record::FeedNo},
    store::{
        CatalogStore as _, Feeds as _, Polls as _, SubscriptionNo, Subscriptions as _, Upkeep as _,
        Walks as _,
        conformance::{
            rig::{NAMESPACE, START, add, all, commit, delete, edit, open},
            subscriptions::new,
        },
        engine::{KeyRange, KeyWidth, RowWriter as _},
        redb::Redb,
        rows::{derived::LEADING, open_table::TableEdit as _, tables::subscription_key},
    },
};
use std::{fs, sync::Arc};

/// A store with two feeds of some items, an edit, a tombstone and a subscription.
async fn filled(path: &Path) {
    let store = reopen(path).unwrap();
    for name in ["blog", "other"] {
        let mut feed = store
            .register(name, &format!("{NAMESPACE}/{name}"))
            .await
            .unwrap();
        for n in 1..30 {
            feed = store
                .commit(commit(&feed, vec![add(n)]))
                .await
                .unwrap()
                .feed;
        }
        store
            .commit(commit(&feed, vec![edit(1, &"x".repeat(9000)), delete(2)]))
            .await
            .unwrap();
        store
            .subscribe(new(feed.no, &format!("http://{name}/")))
            .await
            .unwrap();
    }
    store.close().await.unwrap();
    // Without it most of the file would be pages that were once in use.
    let mut database = redb::Database::open(path).unwrap();
    while database.compact().unwrap() {}
}

fn reopen(path: &Path) -> Result<Redb, StoreError> {
    open(path.to_owned(), Arc::new(Manual::at(START.micros())))
}

#[tokio::test]
async fn a_sound_file_is_counted_and_not_touched_and_an_open_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    filled(&path).await;
    let before = fs::read(&path).unwrap();
    let report = verify(&path).unwrap();
    assert!(report.is_sound(), "{report}");
    let items = report
        .kinds
        .iter()
        .find(|kind| kind.name == "items")
        .unwrap();
    assert_eq!((items.values, items.damaged), (58, 0));
    assert_eq!(fs::read(&path).unwrap(), before);
    let held = reopen(&path).unwrap();
    let refused = verify(&path).unwrap_err();
    assert!(
        refused.to_string().contains("is open in another process"),
        "{refused}"
    );
    drop(held);
}

#[tokio::test]
async fn a_backup_made_while_the_store_goes_on_holds_everything_and_replaces_only_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (
        folder.path().join("store.redb"),
        folder.path().join("copy.redb"),
    );
    filled(&path).await;
    let store = reopen(&path).unwrap();
    let report = store.back_up(&copy).await.unwrap();
    assert_eq!(
        (report.damaged, report.bytes),
        (0, fs::metadata(&copy).unwrap().len())
    );
    let feed = store.feed(FeedNo(1)).await.unwrap();
    store.commit(commit(&feed, vec![add(77)])).await.unwrap();
    let later = store.back_up(&copy).await.unwrap();
    assert!(later.values > report.values);
    let verified = verify(&copy).unwrap();
    assert!(verified.is_sound(), "{verified}");
    assert_eq!(
        verified.kinds.iter().map(|kind| kind.values).sum::<u64>(),
        later.values
    );
    store.close().await.unwrap();
    drop(store);
    // Whoever opens a backup begins new generations. A second copy does, too.
    let second = folder.path().join("second.redb");
    fs::copy(&copy, &second).unwrap();
    let ids = async |path: &Path| {
        let store = reopen(path).unwrap();
        let page = store.page(all(FeedNo(1), Order::MODIFIED)).await.unwrap();
        store.close().await.unwrap();
        page.items
    };
    assert_eq!(ids(&copy).await, ids(&path).await);
    assert_eq!(
        answers(&copy).await.unwrap(),
        answers(&second).await.unwrap()
    );
    let (other, store) = (folder.path().join("notes.txt"), reopen(&path).unwrap());
    fs::write(&other, b"keep me").unwrap();
    assert!(
        store
            .back_up(&other)
            .await
            .unwrap_err()
            .to_string()
            .contains("is no backup")
    );
    assert_eq!(fs::read(&other).unwrap(), b"keep me");
    let own = store.back_up(&path).await.unwrap_err();
    assert!(own.to_string().contains("the store itself"), "{own}");
    assert_eq!(
        fs::read_dir(folder.path())
            .unwrap()
            .filter(|file| file
                .as_ref()
                .unwrap()
                .file_name()
                .to_string_lossy()
                .ends_with(".backup"))
            .count(),
        0
    );
}

/// Everything that the store answers, as text; an error is an answer, too.
async fn answers(path: &Path) -> Result<String, String> {
    let store = reopen(path).map_err(|error| error.to_string())?;
    let mut told = String::new();
    let mut errors = String::new();
    let mut take = |answer: Result<String, StoreError>| match answer {
        Ok(text) => told += &text,
        Err(error) => errors += &error.to_string(),
    };
    take(store.feeds(None, 9).await.map(|feeds| format!("{feeds:?}")));
    take(
        store
            .feed_names(None, 9)
            .await
            .map(|names| format!("{names:?}")),
    );
    for feed in [FeedNo(1), FeedNo(2)] {
        for order in [Order::MODIFIED, Order::CREATED] {
            let query = PageQuery {
                max: 99,
                ..all(feed, order)
            };
            take(
                store
                    .page(query)
                    .await
                    .map(|page| format!("{:?}{:?}", page.record, page.items)),
            );
        }
        take(
            store
                .subscriptions(Some(feed), None, 9)
                .await
                .map(|all| format!("{all:?}")),
        );
        take(
            store
                .snapshot(feed, Vec::new())
                .await
                .map(|known| format!("{known:?}")),
        );
        take(store.poll(feed).await.map(|poll| format!("{poll:?}")));
        take(store.walk(feed).await.map(|walk| format!("{walk:?}")));
    }
    // A change goes through, or is refused; the process does not end.
    if let Ok(feed) = store.feed(FeedNo(1)).await {
        take(
            store
                .commit(commit(&feed, vec![add(99)]))
                .await
                .map(|receipt| format!("{:?}", receipt.stamped)),
        );
    }
    let _ = store.close().await;
    if errors.is_empty() {
        Ok(told)
    } else {
        Err(errors)
    }
}

/// Bits that are flipped, spread over the file; `EVERFEED_FLIPS` for more.
fn flips() -> usize {
    std::env::var("EVERFEED_FLIPS")
        .ok()
        .and_then(|flips| flips.parse().ok())
        .unwrap_or(60)
}

#[tokio::test]
async fn every_flipped_bit_is_noticed_or_changes_nothing_and_none_ends_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let (path, flipped) = (
        folder.path().join("store.redb"),
        folder.path().join("flipped.redb"),
    );
    filled(&path).await;
    let sound = fs::read(&path).unwrap();
    fs::write(&flipped, &sound).unwrap();
    let expected = answers(&flipped).await.unwrap();
    // Half of them where something stands: the rest of a file is free pages.
    let used: Vec<usize> = (0..sound.len()).filter(|at| sound[*at] != 0).collect();
    let (mut noticed, mut harmless, mut refused) = (0, 0, 0);
    for n in 0..flips() {
        // Places without a pattern that pages could share.
        let number = (n as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let at = if n % 2 == 0 {
            used[(number >> 20) as usize % used.len()]
        } else {
            (number >> 20) as usize % sound.len()
        };
        let bit = (number >> 8) % 8;
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << bit;
        fs::write(&flipped, &bytes).unwrap();
        // Each file is the first at its place.
        let _ = fs::remove_file(folder.path().join("flipped.redb.mark"));
        let is_noticed = verify(&flipped).map_or(true, |report| !report.is_sound());
        assert_eq!(fs::read(&flipped).unwrap(), bytes, "verify writes nothing");
        let answered = answers(&flipped).await;
        match &answered {
            _ if is_noticed => noticed += 1,
            Ok(told) if *told == expected => harmless += 1,
            Ok(_) => panic!("bit {bit} of byte {at} changes an answer and is not noticed"),
            Err(error) => panic!("bit {bit} of byte {at} is an error in serving only: {error}"),
        }
        refused += usize::from(answered.is_err());
    }
    println!(
        "{} bits: {noticed} noticed by verify, {harmless} without effect; serving met {refused}",
        flips()
    );
    assert!(
        noticed > 0 && harmless > 0,
        "{noticed} noticed, {harmless} harmless"
    );
}

/// The first bytes of a file, which every commit changes.
const HEAD_BYTES: usize = 320;
/// The flags among them.
const FLAGS_AT: usize = 9;
/// The flag that names the commit in force.
const FLAG_OF_COMMIT: u8 = 0;

/// Bits of the head that are flipped: of each byte one, of the flags and the geometry all; with
/// `EVERFEED_FLIPS` every one.
fn bits_of_head() -> impl Iterator<Item = (usize, u8)> {
    let all = flips() >= 1_000;
    (0..HEAD_BYTES).flat_map(move |at| {
        let whole = all || (FLAGS_AT..36).contains(&at);
        (0..8u8)
            .filter(move |bit| whole || usize::from(*bit) == at % 8)
            .map(move |bit| (at, bit))
    })
}

/// Flips the bits of a file's head one by one, and tells those that `verify` only doubts.
async fn doubted_bits(folder: &Path, sound: &[u8]) -> Vec<(usize, u8)> {
    let flipped = folder.join("flipped.redb");
    fs::write(&flipped, sound).unwrap();
    let report = verify(&flipped).unwrap();
    assert!(report.is_sound() && report.doubt.is_none(), "{report}");
    let expected = answers(&flipped).await.unwrap();
    let (mut noticed, mut harmless, mut doubted) = (0, 0, Vec::new());
    for (at, bit) in bits_of_head() {
        let mut bytes = sound.to_vec();
        bytes[at] ^= 1 << bit;
        fs::write(&flipped, &bytes).unwrap();
        // Each file is the first at its place, so that no mark tells of it.
        let _ = fs::remove_file(folder.join("flipped.redb.mark"));
        let report = verify(&flipped);
        assert_eq!(fs::read(&flipped).unwrap(), bytes, "verify writes nothing");
        let is_noticed = report.as_ref().map_or(true, |report| !report.is_sound());
        let is_doubted = report.is_ok_and(|report| report.doubt.is_some());
        match answers(&flipped).await {
            _ if is_noticed => noticed += 1,
            Ok(told) if told == expected => harmless += 1,
            _ if is_doubted => doubted.push((at, bit)),
            Ok(_) => panic!("bit {bit} of byte {at} changes an answer and is not noticed"),
            Err(error) => panic!("bit {bit} of byte {at} is an error in serving only: {error}"),
        }
    }
    println!("head: {noticed} noticed by verify, {harmless} without effect, doubted {doubted:?}");
    assert!(
        noticed > 0 && harmless > 0,
        "{noticed} noticed, {harmless} harmless"
    );
    doubted
}

#[tokio::test]
async fn a_flipped_bit_of_the_head_hides_no_commit_after_a_clean_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    filled(&path).await;
    let store = reopen(&path).unwrap();
    let feed = store.feed(FeedNo(1)).await.unwrap();
    store.commit(commit(&feed, vec![add(40)])).await.unwrap();
    store.close().await.unwrap();
    let doubted = doubted_bits(folder.path(), &fs::read(&path).unwrap()).await;
    assert_eq!(doubted, []);
}

#[tokio::test]
async fn a_flipped_bit_of_the_head_hides_no_commit_in_silence_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    filled(&path).await;
    let store = reopen(&path).unwrap();
    let feed = store.feed(FeedNo(1)).await.unwrap();
    store.commit(commit(&feed, vec![add(40)])).await.unwrap();
    // A process that is killed now leaves this.
    let killed = fs::read(&path).unwrap();
    store.close().await.unwrap();
    let doubted = doubted_bits(folder.path(), &killed).await;
    assert_eq!(doubted, [(FLAGS_AT, FLAG_OF_COMMIT)]);
}

/// Changes a file behind the store's back.
fn tamper(path: &Path, change: impl FnOnce(&redb::WriteTransaction)) {
    let database = redb::Database::create(path).unwrap();
    let tx = database.begin_write().unwrap();
    change(&tx);
    tx.commit().unwrap();
}

#[tokio::test]
async fn a_row_that_leads_to_another_is_told_where_it_is_missing_or_one_too_many() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (
        folder.path().join("store.redb"),
        folder.path().join("other.redb"),
    );
    filled(&path).await;
    for table in LEADING {
        for (is_missing, told) in [(true, "is not found by"), (false, "leads to nothing")] {
            fs::copy(&path, &other).unwrap();
            tamper(&other, |tx| {
                let mut rows = tx.open_to_write(table).unwrap();
                let first = KeyRange {
                    low: Bound::Unbounded,
                    high: Bound::Unbounded,
                    is_reverse: false,
                    rows_max: 1,
                };
                let first = rows.range(first).unwrap().rows.pop().unwrap();
                if is_missing {
                    rows.remove(&first.key).unwrap();
                } else {
                    let mut key = first.key;
                    // At the key of no other row.
                    let bit = if table.key == KeyWidth::Text { 1 } else { 0x80 };
                    *key.last_mut().unwrap() ^= bit;
                    rows.put(&key, &first.value.unwrap()).unwrap();
                }
            });
            let report = verify(&other).unwrap();
            let is_told = report.faults.iter().any(|fault| fault.contains(told));
            assert!(is_told, "{}, {told}: {report}", table.name);
        }
    }
}

#[tokio::test]
async fn a_store_of_another_schema_is_older_or_newer_and_not_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (
        folder.path().join("store.redb"),
        folder.path().join("other.redb"),
    );
    filled(&path).await;
    let schema = |no: u32| {
        move |tx: &redb::WriteTransaction| {
            let mut meta = tx.open_table(META.definition()).unwrap();
            meta.insert(BARE_SCHEMA_KEY, no.to_be_bytes().as_slice())
                .unwrap();
        }
    };
    // As it was before rows had checksums.
    let bare_rows = |tx: &redb::WriteTransaction| {
        assert!(tx.delete_table(IDS.definition()).unwrap());
        let bare = redb::TableDefinition::<&[u8; 14], &[u8; 8]>::new("ids");
        tx.open_table(bare)
            .unwrap()
            .insert(&[0; 14], &[0; 8])
            .unwrap();
    };
    let first_subscription = |tx: &redb::WriteTransaction| {
        let mut subscriptions = tx.edit(SUBSCRIPTIONS).unwrap();
        subscriptions
            .insert(&subscription_key(SubscriptionNo(9)), &[1, 0x80])
            .unwrap();
    };
    let first_walk = |tx: &redb::WriteTransaction| {
        let mut walks = tx.edit(WALKS).unwrap();
        walks.insert(&feed_key(FeedNo(1)), &[1, 0x80]).unwrap();
    };
    let end_of_pause = |tx: &redb::WriteTransaction| {
        let mut hosts = tx.edit(HOSTS).unwrap();
        hosts.insert("a.example", &[7; 8]).unwrap();
    };
    // As it was before feeds were listed by their publishers' dates.
    let unlisted = |tx: &redb::WriteTransaction| {
        assert!(tx.delete_table(PUBLISHED.definition()).unwrap());
    };
    type Change<'a> = &'a dyn Fn(&redb::WriteTransaction);
    let changes: [(Change<'_>, &str); 7] = [
        (&schema(0), "an older everfeed"),
        (&schema(2), "a newer everfeed"),
        (&schema(u32::MAX), "a newer everfeed"),
        (&bare_rows, "an older everfeed"),
        (&first_subscription, "its subscriptions are of version 1"),
        (&first_walk, "its archive walks are of version 1"),
        (&unlisted, "it has no table `listed`"),
    ];
    for (change, told) in changes {
        fs::copy(&path, &other).unwrap();
        tamper(&other, change);
        let served = reopen(&other).err().expect("it is not served").to_string();
        let verified = verify(&other).unwrap_err();
        assert!(matches!(verified, StoreError::Schema(_)), "{verified:?}");
        assert_eq!(verified.to_string(), served, "both say the same");
        assert!(
            served.contains(told) && !served.contains("damaged"),
            "{served}"
        );
    }
    // A pause of a whole host runs out unheard.
    fs::copy(&path, &other).unwrap();
    tamper(&other, end_of_pause);
    assert!(reopen(&other).is_ok());
    let verified = verify(&other).unwrap();
    assert!(verified.is_sound(), "{verified}");
}
