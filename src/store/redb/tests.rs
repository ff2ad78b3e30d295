//! Behaviour of the file alone: refusals on opening, group commit, a full queue, a failing disk, damage; the rest is conformance.

use super::{
    Config, Redb, file,
    open_file::{FileOpener, OpenDatabase, OpenFile},
    tables::{
        BARE_META, CREATED, FEEDS, ITEMS, META, POLLS, SUBSCRIPTION_KEYS, SUBSCRIPTIONS, TableEdit as _,
        feed_key, id_key, make_all, stamp_key, stamp_value, subscription_key, topic_key,
    },
    watched_backend::WatchedBackend,
    writer::QUEUE_JOBS_MAX,
};
use crate::{
    clock::Manual,
    feed::{
        item::Reason,
        order::Order,
        page::PageQuery,
        position::Position,
        reconcile::{Change, Delete},
        record::{FeedNo, FeedRecord, ItemCounts},
        stamp::Stamp,
    },
    store::{
        CatalogStore as _, Feeds as _, Polls as _, Receipt, Remedy, StoreCondition, StoreError,
        SubscriptionNo, Subscriptions as _, Upkeep as _, Watched as _,
        conformance::{
            rig::{NAMESPACE, Rig, START, add, all, commit, delete, edit, guid, id, open},
            subscriptions::new,
        },
        stored::{decode, encode},
    },
};
use futures_util::future::{join_all, poll_immediate};
use redb::{
    Builder, Database, ReadableTable as _, StorageBackend, TableDefinition, backends::InMemoryBackend,
};
use std::{
    collections::HashSet,
    io,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

fn clock() -> Arc<Manual> {
    Arc::new(Manual::at(START.micros()))
}

fn reopen(path: &Path) -> Result<Redb, StoreError> {
    open(path.to_owned(), clock())
}

/// Changes the file behind the store's back.
fn tamper(path: &Path, change: impl FnOnce(&redb::WriteTransaction)) {
    let database = Database::create(path).unwrap();
    let tx = database.begin_write().unwrap();
    change(&tx);
    tx.commit().unwrap();
}

#[test]
fn what_is_no_store_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let refused = |content: &[u8]| {
        std::fs::write(&path, content).unwrap();
        let error = reopen(&path).err().unwrap();
        assert!(matches!(error, StoreError::Schema(_)), "{error:?}");
        assert!(error.to_string().contains("store.redb is no everfeed store"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), content);
    };
    refused(b"hello");
    refused(&[b'x'; 100_000]);
    std::fs::remove_file(&path).unwrap();
    let missing = reopen(&folder.path().join("no/such/folder.redb")).err().unwrap();
    assert!(missing.to_string().contains("no/such/folder.redb"), "{missing}");
}

#[test]
fn a_redb_file_of_somebody_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.redb");
    let table: TableDefinition<'_, u8, u8> = TableDefinition::new("theirs");
    tamper(&path, |tx| drop(tx.open_table(table).unwrap()));
    assert!(matches!(reopen(&path), Err(StoreError::Schema(text)) if text.contains("no everfeed store")));
    let table: TableDefinition<'_, u8, u8> = TableDefinition::new("meta");
    tamper(&path, |tx| drop(tx.open_table(table).unwrap()));
    assert!(matches!(reopen(&path), Err(StoreError::Schema(text)) if text.contains("no everfeed store")));
}

#[test]
fn a_file_of_a_newer_everfeed_is_refused_with_both_versions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    drop(reopen(&path).unwrap());
    tamper(&path, |tx| {
        tx.open_table(BARE_META).unwrap().insert("schema", 2_u32.to_be_bytes().as_slice()).unwrap();
    });
    let error = reopen(&path).err().unwrap();
    assert!(matches!(error, StoreError::Schema(_)), "{error:?}");
    assert!(error.to_string().ends_with("its schema is 2, and this one reads up to 1"), "{error}");
}

#[test]
fn a_file_that_is_open_already_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let held = reopen(&path).unwrap();
    let error = reopen(&path).err().unwrap();
    assert!(error.to_string().contains("is open in another process"), "{error}");
    drop(held);
    reopen(&path).unwrap();
}

#[test]
fn an_empty_file_becomes_a_store_and_nothing_is_left_beside_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("touched.redb");
    std::fs::write(&path, b"").unwrap();
    drop(reopen(&path).unwrap());
    drop(reopen(&folder.path().join("new.redb")).unwrap());
    let mut names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["new.redb", "new.redb.made", "touched.redb", "touched.redb.made"]);
}

#[test]
fn a_store_that_was_made_is_not_replaced_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let anew = || {
        super::begin_anew(&path).unwrap();
        reopen(&path)
    };
    drop(reopen(&path).unwrap());
    drop(reopen(&path).unwrap());
    for spoil in [|path: &Path| std::fs::remove_file(path), |path: &Path| std::fs::write(path, b"")] {
        spoil(&path).unwrap();
        let refused = reopen(&path).err().unwrap();
        assert!(matches!(refused, StoreError::Missing(_)), "{refused:?}");
        assert!(refused.to_string().contains("--new-store"), "{refused}");
        drop(anew().unwrap());
        drop(reopen(&path).unwrap());
    }
    // A store from elsewhere comes without its marker, and gets one.
    std::fs::remove_file(folder.path().join("store.redb.made")).unwrap();
    drop(reopen(&path).unwrap());
    std::fs::remove_file(&path).unwrap();
    assert!(reopen(&path).is_err());
}

#[cfg(unix)]
#[test]
fn only_its_owner_may_read_a_new_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let rig = Rig::redb();
    let mode = rig.path().unwrap().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

/// Holds the writer thread in a job until the sender is dropped; the receiver tells when the thread has come to it.
fn hold(
    store: &Redb,
) -> (impl Future<Output = Result<(), StoreError>> + '_, mpsc::Sender<()>, mpsc::Receiver<()>) {
    let (release, gate) = mpsc::channel::<()>();
    let (arrive, arrived) = mpsc::channel();
    let held = store.writer.run(move |_| {
        let _ = arrive.send(());
        let _ = gate.recv();
        Ok(())
    });
    (held, release, arrived)
}

#[tokio::test]
async fn a_full_queue_is_busy_and_loses_nothing_that_it_took() {
    let rig = tempfile::tempdir().unwrap();
    let store = reopen(&rig.path().join("store.redb")).unwrap();
    let (held, release, arrived) = hold(&store);
    let mut held = Box::pin(held);
    assert!(poll_immediate(&mut held).await.is_none());
    arrived.recv().unwrap();
    let mut waiting = Vec::new();
    for n in 0..QUEUE_JOBS_MAX {
        let mut job = Box::pin(store.writer.run(move |_| Ok(n)));
        assert!(poll_immediate(&mut job).await.is_none());
        waiting.push(job);
    }
    assert!(matches!(store.accept_clock().await, Err(StoreError::Away(_))));
    drop(release);
    held.await.unwrap();
    for (n, answer) in join_all(waiting).await.into_iter().enumerate() {
        assert_eq!(answer.unwrap(), n);
    }
    store.accept_clock().await.unwrap();
}

#[tokio::test]
async fn a_job_that_fails_halfway_is_undone_and_the_others_of_its_group_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let store = reopen(&path).unwrap();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    let (held, release, arrived) = hold(&store);
    let mut held = Box::pin(held);
    assert!(poll_immediate(&mut held).await.is_none());
    arrived.recv().unwrap();
    // These wait together, and so become one group.
    let mut before = Box::pin(store.commit(commit(&feed, vec![add(1)])));
    let mut broken = Box::pin(store.writer.run(|writing| {
        writing.change().edit(META)?.insert("half", b"")?;
        Err::<(), _>(StoreError::Damaged("on purpose".into()))
    }));
    let mut after = Box::pin(store.register("other", NAMESPACE));
    assert!(poll_immediate(&mut before).await.is_none());
    assert!(poll_immediate(&mut broken).await.is_none());
    assert!(poll_immediate(&mut after).await.is_none());
    drop(release);
    held.await.unwrap();
    assert_eq!(before.await.unwrap().stamped, [(id(1), START)], "done again from the same state");
    assert!(matches!(broken.await, Err(StoreError::Damaged(text)) if text == "on purpose"));
    assert_eq!(after.await.unwrap().no, FeedNo(2));
    drop(store);
    let again = reopen(&path).unwrap();
    assert_eq!(again.feeds(None, 9).await.unwrap().len(), 2);
    drop(again);
    tamper(&path, |tx| assert!(tx.edit(META).unwrap().get("half").unwrap().is_none()));
}

#[tokio::test]
async fn whoever_stops_waiting_has_still_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = reopen(&folder.path().join("store.redb")).unwrap();
    let mut asked = Box::pin(store.register("blog", NAMESPACE));
    let _ = poll_immediate(&mut asked).await;
    drop(asked);
    store.accept_clock().await.unwrap();
    assert_eq!(store.feeds(None, 9).await.unwrap().len(), 1);
}

/// A disk that can be made to fail.
#[derive(Clone, Debug, Default)]
struct Flaky {
    disk: Arc<Disk>,
}

/// Its content and its faults.
#[derive(Debug)]
struct Disk {
    content: InMemoryBackend,
    /// True while only blocks that were written before can be written.
    is_full: AtomicBool,
    /// Blocks that were written.
    blocks: Mutex<HashSet<u64>>,
    /// True while nothing can be written.
    is_broken: AtomicBool,
    /// Reads that fail from now on.
    failing_reads: AtomicUsize,
    /// True while the file cannot be opened.
    is_lost: AtomicBool,
    syncs: AtomicUsize,
}

impl Default for Disk {
    fn default() -> Self {
        Self {
            content: InMemoryBackend::new(),
            is_full: AtomicBool::new(false),
            blocks: Mutex::default(),
            is_broken: AtomicBool::new(false),
            failing_reads: AtomicUsize::new(0),
            is_lost: AtomicBool::new(false),
            syncs: AtomicUsize::new(0),
        }
    }
}

impl FileOpener for Flaky {
    fn open(&self) -> Result<OpenDatabase, StoreError> {
        if self.disk.is_lost.load(Ordering::Relaxed) {
            return Err(StoreError::Failed("no such device".into()));
        }
        let (backend, fault) = WatchedBackend::new(self.clone());
        // A small cache, so that reads come to the disk.
        let mut builder = Builder::new();
        builder.set_cache_size(0);
        file::whole(Path::new("nowhere"), &fault, || builder.create_with_backend(backend))
    }
}

/// A store on such a disk.
fn flaky() -> (Redb, Arc<Disk>) {
    let flaky = Flaky::default();
    let disk = Arc::clone(&flaky.disk);
    let database = flaky.open().unwrap();
    let file = OpenFile::new(Box::new(flaky), database, clock());
    (Redb::over(file, clock()).unwrap(), disk)
}

impl Disk {
    fn check(&self) -> io::Result<()> {
        if self.is_broken.load(Ordering::Relaxed) {
            Err(io::ErrorKind::ReadOnlyFilesystem.into())
        } else {
            Ok(())
        }
    }

    fn check_room(&self, offset: u64, len: usize) -> io::Result<()> {
        const BLOCK_BYTES: u64 = 4096;
        let mut blocks = self.blocks.lock().unwrap();
        for block in offset / BLOCK_BYTES..(offset + len as u64).div_ceil(BLOCK_BYTES) {
            if self.is_full.load(Ordering::Relaxed) && !blocks.contains(&block) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            blocks.insert(block);
        }
        Ok(())
    }
}

impl StorageBackend for Flaky {
    fn len(&self) -> io::Result<u64> {
        self.disk.content.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let left = |reads: usize| reads.checked_sub(1);
        if self.disk.failing_reads.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok() {
            return Err(io::Error::other("a bad sector"));
        }
        self.disk.content.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.check()?;
        self.disk.content.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.check()?;
        self.disk.syncs.fetch_add(1, Ordering::Relaxed);
        self.disk.content.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.check()?;
        self.disk.check_room(offset, data.len())?;
        self.disk.content.write(offset, data)
    }
}

/// Waits until changes can be committed again. The thread of the writer knows no paused clock.
async fn until_sound(store: &Redb) {
    let sound = async {
        while store.condition() != StoreCondition::Sound {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), sound).await.expect("the store heals by itself");
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_the_store_goes_on_by_itself_when_there_is_room() {
    let (store, disk) = flaky();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    let feed = store.commit(commit(&feed, vec![add(1)])).await.unwrap().feed;
    disk.is_full.store(true, Ordering::Relaxed);
    let large = "x".repeat(3 << 20);
    for _ in 0..2 {
        let failed = store.commit(commit(&feed, vec![edit(1, &large), add(2)])).await;
        assert!(matches!(failed, Err(StoreError::Away(_) | StoreError::OutcomeUnknown(_))), "{failed:?}");
        let condition = store.condition();
        let outage = condition.outage().expect("nothing can be committed");
        assert!(outage.cause.contains("make room on its disk"), "{outage:?}");
        assert_eq!(outage.remedy, Remedy::TriesAgain);
        let why = store.check().await.unwrap_err();
        assert!(why.to_string().contains("make room"), "{why}");
        let page = store.page(all(feed.no, Order::MODIFIED)).await.unwrap();
        assert_eq!((page.items.len(), page.items[0].modified, page.record.head()), (1, START, feed.head()));
    }
    assert!(store.figures().faults > 0);
    disk.is_full.store(false, Ordering::Relaxed);
    until_sound(&store).await;
    store.check().await.unwrap();
    store.commit(commit(&feed, vec![edit(1, &large), add(2)])).await.unwrap();
    assert_eq!(store.page(all(feed.no, Order::MODIFIED)).await.unwrap().items.len(), 2);
}

#[tokio::test]
async fn a_disk_that_takes_no_write_is_told_and_the_store_goes_on_when_it_does() {
    let (store, disk) = flaky();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    disk.is_broken.store(true, Ordering::Relaxed);
    let failed = store.commit(commit(&feed, vec![add(1)])).await;
    assert!(matches!(failed, Err(StoreError::Away(_) | StoreError::OutcomeUnknown(_))), "{failed:?}");
    let condition = store.condition();
    let outage = condition.outage().expect("nothing can be committed");
    assert!(outage.cause.contains("mount its disk for writing"), "{outage:?}");
    disk.is_broken.store(false, Ordering::Relaxed);
    until_sound(&store).await;
    let feed = store.feed(feed.no).await.unwrap();
    if feed.items.total == 0 {
        store.commit(commit(&feed, vec![add(1)])).await.unwrap();
    }
    assert_eq!(store.page(all(feed.no, Order::MODIFIED)).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn a_read_that_fails_once_is_done_again_and_spoils_nothing() {
    let (store, disk) = flaky();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    let feed = store.commit(commit(&feed, vec![add(1)])).await.unwrap().feed;
    disk.failing_reads.store(1, Ordering::Relaxed);
    assert_eq!(store.page(all(feed.no, Order::MODIFIED)).await.unwrap().items.len(), 1);
    assert_eq!((disk.failing_reads.load(Ordering::Relaxed), store.figures().faults), (0, 1));
    store.commit(commit(&feed, vec![add(2)])).await.unwrap();
    // A disk that fails for longer is told as what it is, and blames no feed.
    disk.failing_reads.store(usize::MAX, Ordering::Relaxed);
    let away = store.page(all(feed.no, Order::MODIFIED)).await.unwrap_err();
    assert!(away.is_away() && away.to_string().contains("a bad sector"), "{away}");
    disk.failing_reads.store(0, Ordering::Relaxed);
    until_sound(&store).await;
    assert_eq!(store.page(all(feed.no, Order::MODIFIED)).await.unwrap().items.len(), 2);
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_again_is_told_and_tried_again() {
    let (store, disk) = flaky();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    disk.is_lost.store(true, Ordering::Relaxed);
    disk.is_broken.store(true, Ordering::Relaxed);
    let _ = store.commit(commit(&feed, vec![add(1)])).await.unwrap_err();
    let away = store.feed(feed.no).await.unwrap_err();
    assert!(away.is_away() && away.to_string().contains("no such device"), "{away}");
    assert_eq!(store.condition().outage().map(|outage| outage.remedy), Some(Remedy::OpensAgain));
    disk.is_lost.store(false, Ordering::Relaxed);
    disk.is_broken.store(false, Ordering::Relaxed);
    until_sound(&store).await;
    store.feed(feed.no).await.unwrap();
}

#[tokio::test]
async fn a_panic_in_a_write_is_damage_of_that_write_only() {
    let (store, _) = flaky();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    let (held, release, arrived) = hold(&store);
    let mut held = Box::pin(held);
    assert!(poll_immediate(&mut held).await.is_none());
    arrived.recv().unwrap();
    let mut broken = Box::pin(store.writer.run(|writing| {
        writing.change().edit(META)?.insert("half", b"")?;
        panic!("index out of bounds in a page");
        #[expect(unreachable_code, reason = "gives the job its type")]
        Ok(())
    }));
    let mut after = Box::pin(store.commit(commit(&feed, vec![add(1)])));
    assert!(poll_immediate(&mut broken).await.is_none());
    assert!(poll_immediate(&mut after).await.is_none());
    drop(release);
    held.await.unwrap();
    assert!(matches!(broken.await, Err(StoreError::Damaged(text)) if text.contains("out of bounds")));
    let _ = after.await;
    until_sound(&store).await;
    assert!(store.feed(feed.no).await.is_ok());
    let read = store.reader.run(|_| -> Result<(), StoreError> { panic!("bad page") }).await;
    assert!(matches!(read, Err(StoreError::Damaged(_))), "{read:?}");
}

#[tokio::test]
async fn a_file_that_is_moved_away_stops_changes_until_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let (path, aside) = (folder.path().join("store.redb"), folder.path().join("aside.redb"));
    let store = reopen(&path).unwrap();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    let told = async |words: &str| {
        for _ in 0..500 {
            if store.condition().outage().is_some_and(|outage| outage.cause.contains(words)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("nobody says {words}: {:?}", store.condition());
    };
    std::fs::rename(&path, &aside).unwrap();
    told("moved or deleted").await;
    assert!(store.commit(commit(&feed, vec![add(1)])).await.unwrap_err().is_away());
    std::fs::write(&path, b"another").unwrap();
    told("another file").await;
    assert_eq!(store.condition().outage().map(|outage| outage.remedy), Some(Remedy::Restart));
    std::fs::rename(&aside, &path).unwrap();
    until_sound(&store).await;
    store.commit(commit(&feed, vec![add(1)])).await.unwrap();
}

#[tokio::test]
async fn nothing_is_written_into_a_file_that_somebody_has_cut_or_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let (path, aside) = (folder.path().join("store.redb"), folder.path().join("aside.redb"));
    let alterations: [(&str, &dyn Fn()); 3] = [
        ("emptied", &|| drop(std::fs::File::create(&path).unwrap())),
        ("cut", &|| std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(5000).unwrap()),
        ("overwritten", &|| assert!(std::fs::copy(&aside, &path).unwrap() > 0)),
    ];
    for (name, alter) in alterations {
        // Whoever comes first finds it: the look at the file, or the next change.
        for changes in [false, true] {
            let store = reopen(&path).unwrap();
            let feed = store.register("blog", NAMESPACE).await.unwrap();
            store.back_up(&aside).await.unwrap();
            store.commit(commit(&feed, vec![add(1)])).await.unwrap();
            alter();
            let left = std::fs::read(&path).unwrap();
            let mut is_told = false;
            for _ in 0..500 {
                is_told = store.condition().outage().is_some_and(|outage| outage.remedy == Remedy::Restart);
                if is_told {
                    break;
                }
                if changes {
                    assert!(store.register("another", "another").await.is_err(), "{name}");
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert!(is_told, "{name} {changes}: {:?}", store.condition());
            let _ = store.close().await;
            drop(store);
            assert!(std::fs::read(&path).unwrap() == left, "{name} {changes}");
            if name == "emptied" {
                let refused = reopen(&path).err().unwrap();
                assert!(matches!(refused, StoreError::Missing(_)), "{refused:?}");
            }
            std::fs::copy(&aside, &path).unwrap();
        }
    }
}

#[tokio::test]
async fn those_who_wait_together_share_one_sync() {
    let (store, disk) = flaky();
    let syncs = &disk.syncs;
    store.accept_clock().await.unwrap();
    let alone = syncs.swap(0, Ordering::Relaxed);
    store.register("first", NAMESPACE).await.unwrap();
    let alone = alone.max(syncs.swap(0, Ordering::Relaxed));
    assert!(alone > 0, "nobody is answered before a sync");
    let (held, release, arrived) = hold(&store);
    let mut held = Box::pin(held);
    assert!(poll_immediate(&mut held).await.is_none());
    arrived.recv().unwrap();
    let names: Vec<_> = (0..50).map(|n| format!("feed{n}")).collect();
    let mut all = join_all(names.iter().map(|name| store.register(name, NAMESPACE)));
    assert!(poll_immediate(&mut all).await.is_none());
    drop(release);
    held.await.unwrap();
    assert!(all.await.iter().all(Result::is_ok));
    let together = syncs.swap(0, Ordering::Relaxed);
    assert!(together <= alone, "{together} syncs for 50, {alone} for one");
    // Nothing to write, nothing to sync.
    store.register("first", NAMESPACE).await.unwrap();
    store.end_subscription(SubscriptionNo(9)).await.unwrap();
    assert_eq!(syncs.load(Ordering::Relaxed), 0);
}

#[test]
fn the_configuration_has_defaults_and_refuses_what_it_does_not_know() {
    let config: Config = toml::from_str("path = \"/var/lib/everfeed.redb\"").unwrap();
    assert_eq!((config.path.to_str(), config.cache_bytes), (Some("/var/lib/everfeed.redb"), 128 << 20));
    assert!(toml::from_str::<Config>("cache_mib = 128").is_err());
}

/// A store of one feed with two items and a subscription, and how it answers after it was tampered with.
async fn damage(change: impl FnOnce(&redb::WriteTransaction)) -> Redb {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let store = reopen(&path).unwrap();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    store.commit(commit(&feed, vec![add(1), add(2)])).await.unwrap();
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
            StoreError::Damaged(_) | StoreError::DamagedItem { .. } | StoreError::DamagedFeed { .. }
        )
    };
    assert!(answer.as_ref().is_err_and(is_damage), "{answer:?}");
}

#[tokio::test]
async fn an_item_under_another_t_is_damage() {
    let store = damage(|tx| {
        let mut items = tx.edit(ITEMS).unwrap();
        let item = items.get(&stamp_key(FEED, START)).unwrap().unwrap().value().to_vec();
        items.remove(&stamp_key(FEED, START)).unwrap();
        items.insert(&stamp_key(FEED, START.plus_secs(1)), &item).unwrap();
    })
    .await;
    is_damaged(store.page(all(FEED, Order::MODIFIED)).await);
    is_damaged(store.page(all(FEED, Order::CREATED)).await);
    is_damaged(store.item(FEED, id(1)).await);
    is_damaged(
        store.page(PageQuery { since: Some(Position::Id(guid(1))), ..all(FEED, Order::CREATED) }).await,
    );
    let feed = store.feed(FEED).await.unwrap();
    is_damaged(store.commit(commit(&feed, vec![edit(1, "x")])).await);
    assert!(store.item(FEED, id(2)).await.unwrap().is_some(), "the rest is still there");
    store.commit(commit(&feed, vec![edit(2, "x")])).await.unwrap();
}

#[tokio::test]
async fn a_feed_whose_record_is_damaged_takes_no_other_with_it_and_begins_anew_once_forgotten() {
    let store = damage(|tx| {
        tx.edit(FEEDS).unwrap().insert(&feed_key(FEED), b"no record").unwrap();
        tx.edit(POLLS).unwrap().insert(&feed_key(FEED), b"no poll state").unwrap();
        tx.edit(SUBSCRIPTIONS).unwrap().insert(&subscription_key(SubscriptionNo(1)), b"none").unwrap();
    })
    .await;
    let other = store.register("other", NAMESPACE).await.unwrap();
    let refused = store.feed(FEED).await.unwrap_err();
    assert!(matches!(&refused, StoreError::DamagedFeed { feed, .. } if feed == "blog"), "{refused}");
    assert!(refused.to_string().contains("everfeed forget blog"), "{refused}");
    assert!(store.register("blog", NAMESPACE).await.is_err(), "what it held is not given up in silence");
    let listed: Vec<FeedNo> = store.feeds(None, 1).await.unwrap().iter().map(|feed| feed.no).collect();
    assert_eq!((listed, store.polls(None, 9).await.unwrap().len()), (vec![other.no], 0));
    let second = store.subscribe(new(other.no, "http://b/")).await.unwrap();
    let subscribed: Vec<_> = store.subscriptions(None, None, 1).await.unwrap();
    assert_eq!(subscribed.iter().map(|(found, _)| found.no).collect::<Vec<_>>(), [second.no]);
    assert!(store.forget(FEED).await.unwrap());
    let anew = store.register("blog", NAMESPACE).await.unwrap();
    assert!(anew.no > other.no);
    store.subscribe(new(anew.no, "http://a/")).await.unwrap();
}

#[tokio::test]
async fn rows_that_contradict_each_other_are_damage() {
    let store = damage(|tx| {
        let mut created = tx.edit(CREATED).unwrap();
        created.insert(&stamp_key(FEED, START), &stamp_value(START.next())).unwrap();
        let mut ids = tx.edit(super::tables::IDS).unwrap();
        ids.insert(&id_key(FEED, id(2)), &stamp_value(START)).unwrap();
        let mut keys = tx.edit(SUBSCRIPTION_KEYS).unwrap();
        keys.insert(&topic_key("http://t/", "http://a/"), &subscription_key(SubscriptionNo(1))).unwrap();
    })
    .await;
    is_damaged(store.page(all(FEED, Order::CREATED)).await);
    is_damaged(store.item(FEED, id(2)).await);
    is_damaged(store.find_subscription("http://t/", "http://a/").await);
    assert_eq!(store.page(all(FEED, Order::MODIFIED)).await.unwrap().items.len(), 2);
}

#[tokio::test]
async fn an_item_where_the_next_t_would_go_is_damage_and_is_not_written_over() {
    let store = damage(|tx| {
        let mut items = tx.edit(ITEMS).unwrap();
        let item = items.get(&stamp_key(FEED, START)).unwrap().unwrap().value().to_vec();
        items.insert(&stamp_key(FEED, Stamp::from_micros(START.micros() + 2)), &item).unwrap();
    })
    .await;
    let feed = store.feed(FEED).await.unwrap();
    is_damaged(store.commit(commit(&feed, vec![add(3)])).await);
    assert_eq!(store.feed(FEED).await.unwrap(), feed);
}

#[tokio::test]
async fn values_that_cannot_be_read_are_damage() {
    let store = damage(|tx| {
        tx.edit(FEEDS).unwrap().insert(&feed_key(FEED), &[1, 9, 9]).unwrap();
        tx.edit(SUBSCRIPTIONS).unwrap().insert(&subscription_key(SubscriptionNo(1)), &[2]).unwrap();
    })
    .await;
    is_damaged(store.feed(FEED).await);
    is_damaged(store.register("blog", NAMESPACE).await);
    assert!(store.feeds(None, 9).await.unwrap().is_empty(), "a list leaves it out");
    assert!(store.subscriptions(Some(FEED), None, 9).await.unwrap().is_empty());
    is_damaged(store.end_subscription(SubscriptionNo(1)).await);
}

#[tokio::test]
async fn the_bytes_of_a_feed_that_an_older_everfeed_stored_are_counted_once() {
    let store = damage(|tx| {
        let mut feeds = tx.edit(FEEDS).unwrap();
        let key = feed_key(FEED);
        let stored = feeds.get(&key).unwrap().unwrap().value().to_vec();
        let record: FeedRecord = decode("a feed", &stored).unwrap();
        let record = FeedRecord { items: ItemCounts { bytes: None, ..record.items }, ..record };
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
    let Change::Delete(delete) = delete(n) else { panic!("it is a deletion") };
    let delete = Delete { reason: Reason::Forgotten, ..delete };
    let feed = store.feed(FEED).await.unwrap();
    store.commit(commit(&feed, vec![Change::Delete(delete)])).await
}

#[tokio::test]
async fn an_item_that_is_damaged_is_named_with_the_command_that_removes_it_and_is_removed() {
    for keeps_its_name in [true, false] {
        let store = damage(|tx| {
            let mut items = tx.open_table(ITEMS.definition()).unwrap();
            let mut stored = items.get(&stamp_key(FEED, START)).unwrap().unwrap().value().to_vec();
            if keeps_its_name {
                *stored.last_mut().unwrap() ^= 1;
            } else {
                stored.truncate(9);
            }
            items.insert(&stamp_key(FEED, START), stored.as_slice()).unwrap();
        })
        .await;
        for order in [Order::MODIFIED, Order::CREATED] {
            let told = store.page(all(FEED, order)).await.unwrap_err().to_string();
            let command = format!("`everfeed forget blog {}`", id(1));
            assert!(told.contains(&command), "{told}");
        }
        assert!(store.item(FEED, id(2)).await.unwrap().is_some(), "the other one is read");
        remove(&store, 1).await.unwrap();
        for order in [Order::MODIFIED, Order::CREATED] {
            let page = store.page(all(FEED, order)).await.unwrap();
            assert_eq!((page.items.len(), page.record.items.live), (2, 1));
            let stub = page.items.iter().find(|item| item.id == id(1)).unwrap();
            assert!(stub.content.is_forgotten() && stub.created == START);
            assert_eq!(stub.iri == guid(1), keeps_its_name, "{}", stub.iri);
        }
    }
}

#[tokio::test]
async fn a_store_that_is_looked_at_is_neither_made_nor_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let look = || Redb::look(&path, &Config::default(), clock());
    assert!(look().is_err());
    assert!(!path.exists(), "nothing is made");
    let store = reopen(&path).unwrap();
    store.register("blog", NAMESPACE).await.unwrap();
    store.close().await.unwrap();
    let before = std::fs::read(&path).unwrap();
    let mut rights = std::fs::metadata(&path).unwrap().permissions();
    rights.set_readonly(true);
    std::fs::set_permissions(&path, rights).unwrap();
    let seen = look().unwrap();
    assert_eq!(seen.feeds(None, 9).await.unwrap().len(), 1);
    seen.close().await.unwrap();
    drop(seen);
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn every_table_is_made_at_once() {
    let database = Builder::new().create_with_backend(InMemoryBackend::new()).unwrap();
    let tx = database.begin_write().unwrap();
    make_all(&tx).unwrap();
    assert_eq!(tx.list_tables().unwrap().count(), 31, "one for each definition");
}
