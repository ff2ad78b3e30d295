//! Disks that are full, broken or gone: nothing that was answered is lost, and the store goes on by
//! itself.

use super::*;
use testkit::wait::until;

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
    /// True after somebody else has cut it or written into it.
    is_altered: AtomicBool,
    /// The store on it, for its condition while the file is closed.
    store: OnceLock<Weak<Redb>>,
    /// The condition of that store when the file was closed.
    closed_in: Mutex<Option<StoreCondition>>,
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
            is_altered: AtomicBool::new(false),
            store: OnceLock::new(),
            closed_in: Mutex::default(),
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
        file::whole(Path::new("nowhere"), &fault, || {
            builder.create_with_backend(backend)
        })
    }

    fn astray(&self) -> Option<Astray> {
        let is_altered = self.disk.is_altered.load(Ordering::Relaxed);
        is_altered.then_some(Astray::Altered)
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
        if self
            .disk
            .failing_reads
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left)
            .is_ok()
        {
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

    fn close(&self) -> io::Result<()> {
        let store = self.disk.store.get().and_then(Weak::upgrade);
        *self.disk.closed_in.lock().unwrap() = store.map(|store| store.condition());
        self.disk.content.close()
    }
}

/// Waits until changes can be committed again. The thread of the writer knows no paused clock.
async fn until_sound(store: &Redb) {
    let sound = async {
        while store.condition() != StoreCondition::Sound {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), sound)
        .await
        .expect("the store heals by itself");
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_the_store_goes_on_by_itself_when_there_is_room() {
    let (store, disk) = flaky();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    let feed = store
        .commit(commit(&feed, vec![add(1)]))
        .await
        .unwrap()
        .feed;
    disk.is_full.store(true, Ordering::Relaxed);
    let large = "x".repeat(3 << 20);
    for _ in 0..2 {
        let failed = store
            .commit(commit(&feed, vec![edit(1, &large), add(2)]))
            .await;
        assert!(
            matches!(
                failed,
                Err(StoreError::Away(_) | StoreError::OutcomeUnknown(_))
            ),
            "{failed:?}"
        );
        let condition = store.condition();
        let outage = condition.outage().expect("nothing can be committed");
        assert!(outage.cause.contains("make room on its disk"), "{outage:?}");
        assert_eq!(outage.remedy, Remedy::TriesAgain);
        let why = store.check().await.unwrap_err();
        assert!(why.to_string().contains("make room"), "{why}");
        let page = store.page(all(feed.no, Order::MODIFIED)).await.unwrap();
        assert_eq!(
            (page.items.len(), page.items[0].modified, page.record.head()),
            (1, START, feed.head())
        );
    }
    assert!(store.figures().faults > 0);
    disk.is_full.store(false, Ordering::Relaxed);
    until_sound(&store).await;
    store.check().await.unwrap();
    store
        .commit(commit(&feed, vec![edit(1, &large), add(2)]))
        .await
        .unwrap();
    assert_eq!(
        store
            .page(all(feed.no, Order::MODIFIED))
            .await
            .unwrap()
            .items
            .len(),
        2
    );
}

#[tokio::test]
async fn a_disk_that_takes_no_write_is_told_and_the_store_goes_on_when_it_does() {
    let (store, disk) = flaky();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    disk.is_broken.store(true, Ordering::Relaxed);
    let failed = store.commit(commit(&feed, vec![add(1)])).await;
    assert!(
        matches!(
            failed,
            Err(StoreError::Away(_) | StoreError::OutcomeUnknown(_))
        ),
        "{failed:?}"
    );
    let condition = store.condition();
    let outage = condition.outage().expect("nothing can be committed");
    assert!(
        outage.cause.contains("mount its disk for writing"),
        "{outage:?}"
    );
    disk.is_broken.store(false, Ordering::Relaxed);
    until_sound(&store).await;
    let feed = store.feed(feed.no).await.unwrap();
    if feed.items.total == 0 {
        store.commit(commit(&feed, vec![add(1)])).await.unwrap();
    }
    assert_eq!(
        store
            .page(all(feed.no, Order::MODIFIED))
            .await
            .unwrap()
            .items
            .len(),
        1
    );
}

#[tokio::test]
async fn a_read_that_fails_once_is_done_again_and_spoils_nothing() {
    let (store, disk) = flaky();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    let feed = store
        .commit(commit(&feed, vec![add(1)]))
        .await
        .unwrap()
        .feed;
    disk.failing_reads.store(1, Ordering::Relaxed);
    assert_eq!(
        store
            .page(all(feed.no, Order::MODIFIED))
            .await
            .unwrap()
            .items
            .len(),
        1
    );
    assert_eq!(
        (
            disk.failing_reads.load(Ordering::Relaxed),
            store.figures().faults
        ),
        (0, 1)
    );
    store.commit(commit(&feed, vec![add(2)])).await.unwrap();
    // A disk that fails for longer is told as what it is, and blames no feed.
    disk.failing_reads.store(usize::MAX, Ordering::Relaxed);
    let away = store.page(all(feed.no, Order::MODIFIED)).await.unwrap_err();
    assert!(
        away.is_away() && away.to_string().contains("a bad sector"),
        "{away}"
    );
    disk.failing_reads.store(0, Ordering::Relaxed);
    until_sound(&store).await;
    assert_eq!(
        store
            .page(all(feed.no, Order::MODIFIED))
            .await
            .unwrap()
            .items
            .len(),
        2
    );
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_again_is_told_and_tried_again() {
    let (store, disk) = flaky();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    disk.is_lost.store(true, Ordering::Relaxed);
    disk.is_broken.store(true, Ordering::Relaxed);
    let _ = store.commit(commit(&feed, vec![add(1)])).await.unwrap_err();
    let away = store.feed(feed.no).await.unwrap_err();
    assert!(
        away.is_away() && away.to_string().contains("no such device"),
        "{away}"
    );
    assert_eq!(
        store.condition().outage().map(|outage| outage.remedy),
        Some(Remedy::OpensAgain)
    );
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
    assert!(
        matches!(broken.await, Err(StoreError::Damaged(text)) if text.contains("out of bounds"))
    );
    let _ = after.await;
    until_sound(&store).await;
    assert!(store.feed(feed.no).await.is_ok());
    let read = store
        .reader
        .run(|_| -> Result<(), StoreError> { panic!("bad page") })
        .await;
    assert!(matches!(read, Err(StoreError::Damaged(_))), "{read:?}");
}

#[tokio::test]
async fn a_file_that_is_moved_away_stops_changes_until_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let (path, aside) = (
        folder.path().join("store.redb"),
        folder.path().join("aside.redb"),
    );
    let store = reopen(&path).unwrap();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    let told = async |words: &str| {
        for _ in 0..500 {
            if store
                .condition()
                .outage()
                .is_some_and(|outage| outage.cause.contains(words))
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("nobody says {words}: {:?}", store.condition());
    };
    std::fs::rename(&path, &aside).unwrap();
    told("moved or deleted").await;
    assert!(
        store
            .commit(commit(&feed, vec![add(1)]))
            .await
            .unwrap_err()
            .is_away()
    );
    std::fs::write(&path, b"another").unwrap();
    told("another file").await;
    assert_eq!(
        store.condition().outage().map(|outage| outage.remedy),
        Some(Remedy::Restart)
    );
    std::fs::rename(&aside, &path).unwrap();
    until_sound(&store).await;
    store.commit(commit(&feed, vec![add(1)])).await.unwrap();
}

#[tokio::test]
async fn nothing_is_written_into_a_file_that_somebody_has_cut_or_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let (path, aside) = (
        folder.path().join("store.redb"),
        folder.path().join("aside.redb"),
    );
    let alterations: [(&str, &dyn Fn()); 3] = [
        ("emptied", &|| drop(std::fs::File::create(&path).unwrap())),
        ("cut", &|| {
            std::fs::OpenOptions::new()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(5000)
                .unwrap()
        }),
        ("overwritten", &|| {
            assert!(std::fs::copy(&aside, &path).unwrap() > 0)
        }),
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
                is_told = store
                    .condition()
                    .outage()
                    .is_some_and(|outage| outage.remedy == Remedy::Restart);
                if is_told {
                    break;
                }
                if changes {
                    assert!(
                        store.register("another", "another").await.is_err(),
                        "{name}"
                    );
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
async fn the_fault_of_an_altered_file_is_told_before_it_is_closed() {
    let (store, disk) = flaky();
    let store = Arc::new(store);
    disk.store.set(Arc::downgrade(&store)).unwrap();
    disk.is_altered.store(true, Ordering::Relaxed);
    // The thread of the writer knows no paused clock.
    until("the file is looked at and closed", async || {
        disk.closed_in.lock().unwrap().is_some()
    })
    .await;
    let closed_in = disk.closed_in.lock().unwrap().take().unwrap();
    let outage = closed_in.outage().expect("the outage is known by then");
    assert_eq!(outage.remedy, Remedy::Restart, "{outage:?}");
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
    assert!(
        together <= alone,
        "{together} syncs for 50, {alone} for one"
    );
    // Nothing to write, nothing to sync.
    store.register("first", NAMESPACE).await.unwrap();
    store.end_subscription(SubscriptionNo(9)).await.unwrap();
    assert_eq!(syncs.load(Ordering::Relaxed), 0);
}

/// The file of a store whose syncs can be made to fail.
struct Unsynced {
    file: StoreFile,
    path: PathBuf,
    syncs: Arc<Syncs>,
}

/// Fate of the syncs of a file.
#[derive(Debug, Default)]
struct Syncs {
    fail: AtomicBool,
    failed: AtomicUsize,
    /// True for a system that forgets what it could not write.
    forgets: bool,
    /// The bytes of the file after the last good one.
    last: Mutex<Vec<u8>>,
}

/// An open file with such syncs.
#[derive(Debug)]
struct UnsyncedBackend {
    inner: FileBackend,
    path: PathBuf,
    syncs: Arc<Syncs>,
}

impl FileOpener for Unsynced {
    fn open(&self) -> Result<OpenDatabase, StoreError> {
        if let Some(astray) = self.file.astray() {
            return Err(StoreError::Failed(format!("{astray:?}")));
        }
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&self.path)
            .unwrap();
        let identity = file::identity(&file.metadata().unwrap());
        let inner = FileBackend::new(file).unwrap();
        let backend = UnsyncedBackend {
            inner,
            path: self.path.clone(),
            syncs: self.syncs.clone(),
        };
        let (backend, watch) = WatchedBackend::new(backend);
        self.file.open_over(backend, watch, identity)
    }

    fn astray(&self) -> Option<Astray> {
        self.file.astray()
    }
}

impl StorageBackend for UnsyncedBackend {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        if !self.syncs.fail.load(Ordering::Relaxed) {
            *self.syncs.last.lock().unwrap() = std::fs::read(&self.path)?;
            return Ok(());
        }
        if self.syncs.forgets {
            let last = self.syncs.last.lock().unwrap();
            self.inner.set_len(last.len() as u64)?;
            self.inner.write(0, &last)?;
        }
        self.syncs.failed.fetch_add(1, Ordering::Relaxed);
        // EIO.
        Err(io::Error::from_raw_os_error(5))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.inner.write(offset, data)
    }
}

#[tokio::test]
async fn a_sync_that_fails_is_a_fault_of_the_disk_and_ends_with_it() {
    for forgets in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.redb");
        let made = reopen(&path).unwrap();
        let feed = made.register("blog", NAMESPACE).await.unwrap();
        made.close().await.unwrap();
        let last = Mutex::new(std::fs::read(&path).unwrap());
        let syncs = Arc::new(Syncs {
            forgets,
            last,
            ..Syncs::default()
        });
        let file = StoreFile::new(&path, 0);
        let made = file.open_or_make(START).unwrap();
        drop(made);
        let opener = Unsynced {
            file,
            path: path.clone(),
            syncs: syncs.clone(),
        };
        let database = opener.open().unwrap();
        let store =
            Redb::over(OpenFile::new(Box::new(opener), database, clock()), clock()).unwrap();
        let feed = store
            .commit(commit(&feed, vec![add(1)]))
            .await
            .unwrap()
            .feed;
        syncs.fail.store(true, Ordering::Relaxed);
        let failed = store.commit(commit(&feed, vec![add(2)])).await;
        assert!(
            matches!(
                failed,
                Err(StoreError::Away(_) | StoreError::OutcomeUnknown(_))
            ),
            "{failed:?}"
        );
        // Several attempts at its end fail as well, and the file is looked at in between.
        let attempts = async {
            while syncs.failed.load(Ordering::Relaxed) < 4 {
                let condition = store.condition();
                let outage = condition.outage().expect("nothing can be committed");
                assert_ne!(outage.remedy, Remedy::Restart, "{outage:?}");
                assert!(
                    outage.cause.contains("(fsync) failed") && !outage.cause.contains("backup"),
                    "{outage:?}"
                );
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), attempts)
            .await
            .expect("it is tried again");
        let failing = store.feed(feed.no).await;
        assert!(
            failing.as_ref().map_or_else(StoreError::is_away, |_| true),
            "{failing:?}"
        );
        syncs.fail.store(false, Ordering::Relaxed);
        until_sound(&store).await;
        let held = store.feed(feed.no).await.unwrap();
        if held.items.total == 1 {
            store.commit(commit(&held, vec![add(2)])).await.unwrap();
        }
        assert_eq!(
            store
                .page(all(feed.no, Order::MODIFIED))
                .await
                .unwrap()
                .items
                .len(),
            2,
            "{forgets}"
        );
    }
}
