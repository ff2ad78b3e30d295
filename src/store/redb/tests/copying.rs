//! Stores that are copied to another place or compacted: cursors stay valid, one of two files is
//! served, a kill at any step loses nothing, and what cannot be done leaves the store as it was.

use super::{
    restoring::{LATER, World, check_restored, list},
    *,
};
use crate::store::redb::{
    compact::{compact, compacted},
    file::RewriteStep,
    leaving::Leaving,
    report::report,
    store_copy::{CopyStep, copy_store, move_store, moved},
    verify::verify,
};
use std::fs;

fn later(path: &Path) -> Result<Redb, StoreError> {
    open(path.to_owned(), Arc::new(Manual::at(LATER.micros())))
}

fn new_file(world: &World) -> PathBuf {
    world.folder.path().join("new.redb")
}

/// Checks a store that went on in another file: nothing is lost, and nothing begins anew.
async fn check_moved(world: &World, path: &Path, when: &str) {
    let store = later(path).unwrap();
    assert_eq!(store.restored(), None, "{when}");
    let feed = store.feed_named("blog").await.unwrap().unwrap();
    assert_eq!(feed.lineage.generation(), Stamp::ZERO, "{when}");
    for (cursor, items) in [(&world.known, 2), (&world.lost, 0)] {
        let page = list(&store, cursor).await;
        assert_eq!((page.items.len(), page.degraded), (items, None), "{when}");
    }
    let found = store.find_subscription("http://x/", "http://callback/");
    assert!(found.await.unwrap().is_none());
    store.close().await.unwrap();
    assert!(verify(path).unwrap().is_sound(), "{when}");
}

fn killed_at(from: &Path, to: &Path, step: CopyStep) -> Result<(), StoreError> {
    let done = moved(from, to, LATER, |done| {
        if done == step {
            return Err(io::Error::other("killed"));
        }
        Ok(())
    });
    done.map(drop)
}

fn refusal_of(path: &Path) -> String {
    match later(path) {
        Err(StoreError::Schema(why)) => why,
        other => panic!("{:?}", other.map(drop)),
    }
}

#[tokio::test]
async fn a_store_that_was_copied_goes_on_in_its_new_file_alone() {
    let world = World::new().await;
    let to = new_file(&world);
    let done = move_store(&world.store(), &to, LATER).unwrap();
    assert_eq!(done.bytes, fs::metadata(&to).unwrap().len());
    check_moved(&world, &to, "copied").await;
    let why = refusal_of(&world.store());
    assert!(
        why.contains("went on in") && why.contains("new.redb"),
        "{why}"
    );
    // It is not copied to yet another place, nor over what went on.
    for (from, to) in [
        (world.store(), world.folder.path().join("third.redb")),
        (world.store(), to.clone()),
    ] {
        let error = move_store(&from, &to, LATER).unwrap_err();
        assert!(error.to_string().contains("went on in"), "{error}");
    }
    // Its mark went with it: an older copy is noticed.
    let older = fs::read(&to).unwrap();
    let store = later(&to).unwrap();
    let feed = store.feed_named("blog").await.unwrap().unwrap();
    store.commit(commit(&feed, vec![add(7)])).await.unwrap();
    drop(store);
    fs::write(&to, older).unwrap();
    assert!(later(&to).unwrap().restored().is_some());
}

#[tokio::test]
async fn a_kill_at_any_step_of_a_copy_leaves_one_store_to_serve_or_a_copy_to_finish() {
    for step in [CopyStep::Copied, CopyStep::Placed, CopyStep::Left] {
        let world = World::new().await;
        let to = new_file(&world);
        assert!(killed_at(&world.store(), &to, step).is_err());
        // What a kill leaves beside its place.
        fs::write(world.folder.path().join("new.redb.anew"), "half").unwrap();
        if step == CopyStep::Left {
            assert!(refusal_of(&world.store()).contains("went on in"));
        } else {
            // The store is served on, and what it learns goes into the copy.
            let store = later(&world.store()).unwrap();
            let feed = store.feed_named("blog").await.unwrap().unwrap();
            store.commit(commit(&feed, vec![add(8)])).await.unwrap();
            store.close().await.unwrap();
        }
        if step == CopyStep::Copied {
            assert!(!to.exists());
        } else {
            let why = refusal_of(&to);
            assert!(why.contains("everfeed store copy"), "{step:?}: {why}");
        }
        move_store(&world.store(), &to, LATER).unwrap();
        assert!(refusal_of(&world.store()).contains("went on in"));
        if step == CopyStep::Left {
            check_moved(&world, &to, "finished").await;
            continue;
        }
        let store = later(&to).unwrap();
        assert_eq!(list(&store, &world.lost).await.items.len(), 1, "{step:?}");
        assert_eq!(store.restored(), None);
    }
}

/// The files of a folder that are none of the copy, with their bytes.
fn all_but_the_copy(world: &World) -> Vec<(PathBuf, Vec<u8>)> {
    let found = fs::read_dir(world.folder.path()).unwrap();
    let paths = found.map(|found| found.unwrap().path());
    let is_of_copy = |path: &PathBuf| path.to_string_lossy().contains("/new.redb");
    let mut files: Vec<_> = paths
        .filter(|path| !is_of_copy(path))
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn a_copy_that_is_not_done_leaves_its_source_byte_for_byte() {
    let world = World::new().await;
    let to = new_file(&world);
    // A copy of the file as a kill leaves it, which is behind its mark, too.
    let older = world.folder.path().join("older.redb");
    let store = world.opened();
    fs::copy(world.store(), &older).unwrap();
    let feed = store.feed_named("blog").await.unwrap().unwrap();
    store.commit(commit(&feed, vec![add(5)])).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let mark = world.folder.path().join("store.redb.mark");
    fs::copy(mark, world.folder.path().join("older.redb.mark")).unwrap();
    for from in [world.store(), world.backup(), older] {
        let before = all_but_the_copy(&world);
        let unchanged = |when: &str| {
            let is_same = all_but_the_copy(&world) == before;
            assert!(is_same, "{}: {when}", from.display());
        };
        for step in [CopyStep::Copied, CopyStep::Placed] {
            assert!(killed_at(&from, &to, step).is_err());
            unchanged("killed");
        }
        // What is at the place of the copy is none of this one.
        let is_store = from == world.store();
        let other = if is_store {
            world.backup()
        } else {
            world.store()
        };
        assert!(move_store(&other, &to, LATER).is_err());
        unchanged("its place is taken");
        let no_folder = world.folder.path().join("absent/new.redb");
        assert!(move_store(&from, &no_folder, LATER).is_err());
        unchanged("no folder");
        // Done again, it goes on there, and an older copy in new generations.
        move_store(&from, &to, LATER).unwrap();
        assert!(refusal_of(&from).contains("went on in"));
        let copy = later(&to).unwrap();
        let feed = copy.feed_named("blog").await.unwrap().unwrap();
        assert_eq!(feed.lineage.generation() == Stamp::ZERO, is_store);
        assert_eq!(copy.restored().is_none(), is_store);
        if from == world.backup() {
            check_restored(&world, &copy, "copied").await;
        }
        copy.close().await.unwrap();
        drop(copy);
        assert!(verify(&to).unwrap().is_sound());
        for suffix in ["", ".made", ".mark", ".removed"] {
            let _ = fs::remove_file(world.folder.path().join(format!("new.redb{suffix}")));
        }
    }
}

#[tokio::test]
async fn a_store_that_was_served_meanwhile_is_not_left() {
    let world = World::new().await;
    let leaving = Leaving::begin(&world.store()).unwrap();
    let held = later(&world.store()).err().unwrap().to_string();
    assert!(held.contains("open in another process"), "{held}");
    drop(leaving);
    // Between the end of the copy and the note that it is left.
    let file = StoreFile::new(&world.store(), 0);
    let found = file.found().unwrap();
    let store = world.opened();
    let feed = store.feed_named("blog").await.unwrap().unwrap();
    store.commit(commit(&feed, vec![add(5)])).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let served = fs::read(world.store()).unwrap();
    let error = file.open_found(found).map(drop).unwrap_err().to_string();
    assert!(error.contains("somebody else has"), "{error}");
    assert!(fs::read(world.store()).unwrap() == served);
    assert_eq!(list(&world.opened(), &world.lost).await.items.len(), 1);
}

#[tokio::test]
async fn a_store_that_is_kept_and_its_copy_are_two_stores() {
    let world = World::new().await;
    let (from, to) = (world.store(), new_file(&world));
    let store = world.opened();
    let feed = store.feed_named("blog").await.unwrap().unwrap();
    store
        .subscribe(new(feed.no, "http://callback/"))
        .await
        .unwrap();
    store.close().await.unwrap();
    drop(store);
    let before = fs::read(&from).unwrap();
    copy_store(&from, &to, LATER).unwrap();
    assert_eq!(fs::read(&from).unwrap(), before, "it stays as it is");
    let copy = later(&to).unwrap();
    let copied = copy.feed_named("blog").await.unwrap().unwrap();
    assert!(copied.lineage.generation() > feed.lineage.generation());
    assert_eq!(list(&copy, &world.known).await.items.len(), 2);
    let left = copy.subscriptions(None, None, 9).await.unwrap();
    assert_eq!(left, [], "two hubs would push");
    let store = world.opened();
    let held = store.subscriptions(None, None, 9).await.unwrap();
    assert_eq!(held.len(), 1);
    copy.close().await.unwrap();
    store.close().await.unwrap();
    drop((copy, store));
    assert!(verify(&to).unwrap().is_sound());
    // So a store that went on elsewhere can be served again, as another one.
    let third = world.folder.path().join("third.redb");
    move_store(&from, &third, LATER).unwrap();
    let again = world.folder.path().join("again.redb");
    copy_store(&from, &again, LATER).unwrap();
    later(&again).unwrap();
}

#[tokio::test]
async fn what_cannot_be_copied_leaves_both_places_as_they_were() {
    let world = World::new().await;
    let (from, to) = (world.store(), new_file(&world));
    let whole = fs::read(&from).unwrap();
    // Every page of a backup is in use.
    let mut flipped = fs::read(world.backup()).unwrap();
    let middle = memchr::memmem::find(&flipped, b"example.org/feed").unwrap();
    flipped[middle] ^= 1;
    let newer = world.folder.path().join("newer");
    drop(open(newer.clone(), clock()).unwrap());
    tamper(&newer, |tx| {
        let mut meta = tx.open_table(BARE_META).unwrap();
        let schema = 2_u32.to_be_bytes();
        meta.insert("schema", schema.as_slice()).unwrap();
    });
    let bad = world.folder.path().join("bad");
    let copies: [fn(&Path, &Path, Stamp) -> _; 2] = [move_store, copy_store];
    for copied in copies {
        for (bytes, what) in [
            (b"a text".to_vec(), "foreign"),
            (Vec::new(), "empty"),
            (whole[..whole.len() / 2].to_vec(), "cut"),
            (flipped.clone(), "damaged"),
            (fs::read(&newer).unwrap(), "newer"),
        ] {
            fs::write(&bad, &bytes).unwrap();
            assert!(copied(&bad, &to, LATER).is_err(), "{what}");
            assert!(fs::read(&bad).unwrap() == bytes, "{what}");
            assert!(!to.exists(), "{what}");
        }
        assert!(copied(&world.folder.path().join("absent"), &to, LATER).is_err());
        // What is there already stays.
        for there in [world.backup(), bad.clone(), from.clone()] {
            let held = fs::read(&there).unwrap();
            assert!(copied(&from, &there, LATER).is_err());
            assert!(fs::read(&there).unwrap() == held);
        }
        // Somebody serves it.
        let store = world.opened();
        let error = copied(&from, &to, LATER).unwrap_err().to_string();
        assert!(error.contains("open in another process"), "{error}");
        store.close().await.unwrap();
    }
    assert!(later(&from).is_ok());
}

#[tokio::test]
async fn a_compacted_store_is_the_same_store_and_shorter() {
    let world = World::new().await;
    let path = world.store();
    let before = report(&path).unwrap();
    let done = compact(&path).unwrap();
    let after = report(&path).unwrap();
    assert_eq!((done.before, done.after), (before.bytes, after.bytes));
    assert!(after.bytes <= before.bytes);
    let rows = |report: &crate::store::redb::StoreReport| {
        let mut rows: Vec<_> = report.tables.iter().map(|t| (t.name, t.rows)).collect();
        rows.sort_unstable();
        rows
    };
    assert_eq!(rows(&before), rows(&after));
    assert_eq!(after.table_bytes() + after.free_bytes(), after.bytes);
    check_moved(&world, &path, "compacted").await;
}

#[tokio::test]
async fn a_kill_at_any_step_of_compacting_loses_nothing() {
    for step in [
        RewriteStep::Copied,
        RewriteStep::Placed,
        RewriteStep::Opened,
    ] {
        let world = World::new().await;
        let done = compacted(&world.store(), |done| {
            if done == step {
                return Err(io::Error::other("killed"));
            }
            Ok(())
        });
        assert!(done.is_err(), "{step:?}");
        fs::write(world.folder.path().join("store.redb.anew"), "half").unwrap();
        check_moved(&world, &world.store(), "killed").await;
        assert!(!world.folder.path().join("store.redb.anew").exists());
        compact(&world.store()).unwrap();
        check_moved(&world, &world.store(), "done again").await;
    }
}

#[tokio::test]
async fn nobody_compacts_or_opens_a_store_that_is_in_use() {
    let world = World::new().await;
    let store = world.opened();
    for error in [
        compact(&world.store()).unwrap_err(),
        report(&world.store()).unwrap_err(),
    ] {
        let error = error.to_string();
        assert!(error.contains("open in another process"), "{error}");
    }
    store.close().await.unwrap();
    drop(store);
    // Nobody opens it while it is compacted.
    let done = compacted(&world.store(), |done| {
        if done == RewriteStep::Copied {
            let error = later(&world.store()).err().unwrap().to_string();
            assert!(error.contains("open in another process"), "{error}");
            assert!(compact(&world.store()).is_err());
        }
        Ok(())
    });
    done.unwrap();
    check_moved(&world, &world.store(), "compacted").await;
    for path in [
        world.folder.path().join("absent"),
        world.folder.path().to_owned(),
    ] {
        assert!(compact(&path).is_err());
        assert!(report(&path).is_err());
        assert!(!path.is_file());
    }
}
