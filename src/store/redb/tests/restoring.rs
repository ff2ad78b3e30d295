//! Restored stores: what a copy does not know is `ahead`, whoever put the copy there; a kill at any
//! step of a restore leaves one whole store; what cannot be restored leaves the store as it was.

use super::*;
use crate::store::redb::{
    mark_file::{FoundMark, MarkFile},
    restore::{RestoreStep, restore, restored},
    verify::verify,
};
use crate::{
    auth::password::LoginHash,
    feed::page::{Degraded, Page},
    store::{
        AccountStore as _, Commit,
        conformance::accounts::{token, user},
        subscriptions::Progress,
    },
};
use std::fs;

pub(super) const LATER: Stamp = START.plus_secs(100_000);

/// A store with a backup of its first items, and what happened in it since.
pub(super) struct World {
    pub(super) folder: tempfile::TempDir,
    /// The cursor after the items of the backup.
    pub(super) known: String,
    /// The cursor after an edit that the backup does not hold.
    pub(super) lost: String,
}

impl World {
    pub(super) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = clock();
        let store = open(folder.path().join("store.redb"), clock.clone()).unwrap();
        let feed = store.register("blog", NAMESPACE).await.unwrap();
        let change = async |changes| {
            clock.advance(Duration::from_secs(10));
            let feed = store.feed(feed.no).await.unwrap();
            store.commit(commit(&feed, changes)).await.unwrap();
            let page = store.page(all(feed.no, Order::MODIFIED)).await.unwrap();
            page.last_cursor
        };
        let known = change(vec![add(1), add(2)]).await;
        let backup = folder.path().join("backup.redb");
        store.back_up(&backup).await.unwrap();
        let lost = change(vec![add(3), edit(1, "since the backup")]).await;
        store.close().await.unwrap();
        Self {
            folder,
            known,
            lost,
        }
    }

    pub(super) fn store(&self) -> PathBuf {
        self.folder.path().join("store.redb")
    }

    fn mark(&self) -> PathBuf {
        self.folder.path().join("store.redb.mark")
    }

    pub(super) fn backup(&self) -> PathBuf {
        self.folder.path().join("backup.redb")
    }

    /// The store as it opens at a later time.
    pub(super) fn opened(&self) -> Redb {
        open(self.store(), Arc::new(Manual::at(LATER.micros()))).unwrap()
    }
}

pub(super) async fn list(store: &Redb, since: &str) -> Page {
    let feed = store.feed_named("blog").await.unwrap().unwrap();
    store
        .page(PageQuery {
            since: Some(Position::of_cursor(since)),
            ..all(feed.no, Order::MODIFIED)
        })
        .await
        .unwrap()
}

/// Checks a store that holds the backup: its cursors are good, later ones are ahead, and stay it
/// when the feed goes on.
pub(super) async fn check_restored(world: &World, store: &Redb, when: &str) {
    let feed = store.feed_named("blog").await.unwrap().unwrap();
    assert!(feed.lineage.generation() > Stamp::ZERO, "{when}");
    let page = list(store, &world.known).await;
    assert_eq!((page.items.len(), page.degraded), (0, None), "{when}");
    // All of the feed follows, from its beginning.
    let ahead = list(store, &world.lost).await;
    let told = (ahead.items.len(), ahead.degraded);
    assert_eq!(told, (2, Some(Degraded::Ahead)), "{when}");
    let commit = commit(&feed, vec![add(4), edit(2, "after the restore")]);
    let receipt = store.commit(commit).await.unwrap();
    let first = receipt.stamped[0].1;
    assert!(first > feed.lineage.generation(), "{when}: {first}");
    // It lies before the head now, and is no `moved`.
    let ahead = list(store, &world.lost).await;
    let told = (ahead.items.len(), ahead.degraded);
    assert_eq!(told, (3, Some(Degraded::Ahead)), "{when}");
    assert_eq!(list(store, &world.known).await.items.len(), 2, "{when}");
}

#[tokio::test]
async fn a_restored_backup_knows_what_it_does_not_know() {
    let world = World::new().await;
    let done = restore(&world.backup(), &world.store(), LATER).unwrap();
    let kept = done.kept.expect("the former store");
    let store = world.opened();
    check_restored(&world, &store, "restored").await;
    store.close().await.unwrap();
    drop(store);
    assert!(verify(&kept).unwrap().is_sound());
    // Restored again, it is another generation, also at the same time.
    let generation = |store: Redb| async move {
        let feed = store.feed_named("blog").await.unwrap().unwrap();
        feed.lineage.generation()
    };
    let first = generation(world.opened()).await;
    restore(&world.backup(), &world.store(), LATER).unwrap();
    let second = generation(world.opened()).await;
    assert!(second > first, "{second} after {first}");
    // A start is none.
    assert_eq!(generation(world.opened()).await, second);
}

#[tokio::test]
async fn a_lost_cursor_by_date_of_publication_is_ahead_and_one_from_before_stays_good() {
    let world = World::new().await;
    let by_date = async |store: &Redb, since: &str, max| {
        let feed = store.feed_named("blog").await.unwrap().unwrap();
        let query = PageQuery {
            since: Some(Position::of_cursor(since)),
            max,
            ..all(feed.no, Order::PUBLISHED)
        };
        store.page(query).await.unwrap()
    };
    let store = world.opened();
    // Posts 1 and 2 share a date and are in the backup; post 3 follows and is not.
    let known = by_date(&store, "", 2).await.last_cursor;
    let lost = by_date(&store, "", 9).await.last_cursor;
    store.close().await.unwrap();
    drop(store);
    restore(&world.backup(), &world.store(), LATER).unwrap();
    let store = world.opened();
    let told = async |since: &str| {
        let page = by_date(&store, since, 9).await;
        (page.items.len(), page.degraded)
    };
    assert_eq!(told(&known).await, (0, None));
    assert_eq!(told(&lost).await, (2, Some(Degraded::Ahead)));
    // Another post of the same date does not hide that.
    let feed = store.feed_named("blog").await.unwrap().unwrap();
    store.commit(commit(&feed, vec![add(4)])).await.unwrap();
    assert_eq!(told(&known).await, (1, None));
    assert_eq!(told(&lost).await, (3, Some(Degraded::Ahead)));
    let anew = by_date(&store, "", 9).await.last_cursor;
    assert_eq!(told(&anew).await, (0, None));
    // That of another generation of the same item holds, too: it is there.
    store.close().await.unwrap();
    drop(store);
    fs::copy(world.store(), world.backup()).unwrap();
    restore(&world.backup(), &world.store(), LATER).unwrap();
    let page = by_date(&world.opened(), &anew, 9).await;
    assert_eq!((page.items.len(), page.degraded), (0, None));
}

#[tokio::test]
async fn a_backup_that_is_copied_back_by_hand_is_restored() {
    let world = World::new().await;
    fs::copy(world.backup(), world.store()).unwrap();
    let store = world.opened();
    let told = store.restored().expect("words for the operator");
    assert!(told.contains("backup of 2026-06-01"), "{told}");
    check_restored(&world, &store, "by hand").await;
    // Without its mark, too: a backup says what it is.
    drop(store);
    fs::copy(world.backup(), world.store()).unwrap();
    fs::remove_file(world.folder.path().join("store.redb.mark")).unwrap();
    check_restored(&world, &world.opened(), "without its mark").await;
}

#[tokio::test]
async fn an_older_file_of_the_store_is_noticed_by_its_mark() {
    let world = World::new().await;
    // A plain copy of the file, as any tool for backups takes it.
    let older = world.folder.path().join("older");
    restore(&world.backup(), &world.store(), START).unwrap();
    fs::copy(world.store(), &older).unwrap();
    let store = world.opened();
    let feed = store.feed_named("blog").await.unwrap().unwrap();
    store.commit(commit(&feed, vec![add(9)])).await.unwrap();
    let lost = list(&store, "").await.last_cursor;
    drop(store);
    fs::copy(&older, world.store()).unwrap();
    let store = world.opened();
    let told = store.restored().expect("words for the operator");
    assert!(told.contains("by 1 commits"), "{told}");
    assert_eq!(list(&store, &lost).await.degraded, Some(Degraded::Ahead));
}

#[tokio::test]
async fn what_was_removed_after_the_backup_stays_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, backup) = (
        folder.path().join("store.redb"),
        folder.path().join("backup.redb"),
    );
    let open_at = |at: Stamp| open(path.clone(), Arc::new(Manual::at(at.micros()))).unwrap();
    let store = open_at(START);
    let blog = store.register("blog", NAMESPACE).await.unwrap();
    let blog = store.commit(commit(&blog, vec![add(1), add(2)])).await;
    let blog = blog.unwrap().feed;
    let old = store.register("old", "old.example/").await.unwrap();
    store.commit(commit(&old, vec![add(1)])).await.unwrap();
    let kept = store.add_user(user("kept")).await.unwrap().unwrap();
    let gone = store.add_user(user("gone")).await.unwrap().unwrap();
    let revoked = store.add_token(token(kept.no, 1)).await.unwrap().unwrap();
    let stays = store.add_token(token(kept.no, 2)).await.unwrap().unwrap();
    store.back_up(&backup).await.unwrap();
    // After the backup.
    let snapshot = store.snapshot(blog.no, Vec::new()).await.unwrap();
    store
        .commit(Commit::forgetting(snapshot, id(1)))
        .await
        .unwrap();
    assert!(store.forget(old.no).await.unwrap());
    assert!(store.remove_user(gone.no).await.unwrap());
    assert!(store.remove_token(revoked.no).await.unwrap());
    let later = store.register("later", "later.example/").await.unwrap();
    assert!(store.forget(later.no).await.unwrap());
    store.close().await.unwrap();
    drop(store);

    for when in ["restored", "restored again"] {
        restore(&backup, &path, LATER).unwrap();
        let store = open_at(LATER);
        let page = store.page(all(blog.no, Order::MODIFIED)).await.unwrap();
        let forgotten = page.items.iter().find(|item| item.id == id(1)).unwrap();
        assert!(forgotten.content.is_forgotten(), "{when}");
        assert_eq!(page.record.items.live, 1, "{when}");
        assert_eq!(store.feed_named("old").await.unwrap(), None, "{when}");
        let users = store.users(None, 9).await.unwrap();
        assert_eq!(users, std::slice::from_ref(&kept), "{when}");
        let tokens = store.tokens(None, 9).await.unwrap();
        assert_eq!(tokens, std::slice::from_ref(&stays), "{when}");
        // The number of a feed that is gone is not that of a new one.
        let new = store.register("new", "new.example/").await.unwrap();
        assert!(new.no > later.no, "{when}: {} and {}", new.no, later.no);
        store.close().await.unwrap();
    }
    assert!(verify(&path).unwrap().is_sound());
}

#[tokio::test]
async fn what_is_removed_again_hides_no_lost_cursor_and_a_callback_is_told() {
    for is_restored in [true, false] {
        let world = World::new().await;
        let (backup, path) = (world.backup(), world.store());
        let store = open(
            path.clone(),
            Arc::new(Manual::at(START.plus_secs(50).micros())),
        )
        .unwrap();
        let feed = store.feed_named("blog").await.unwrap().unwrap();
        let sub = store
            .subscribe(new(feed.no, "http://callback/"))
            .await
            .unwrap();
        let progress = Progress {
            acked: Some(world.known.clone()),
            ..Progress::default()
        };
        store
            .change_subscription(sub.clone(), Some(progress))
            .await
            .unwrap();
        fs::remove_file(&backup).unwrap();
        store.back_up(&backup).await.unwrap();
        let feed = store.feed_named("blog").await.unwrap().unwrap();
        store.commit(commit(&feed, vec![add(5)])).await.unwrap();
        let lost = list(&store, "").await.last_cursor;
        let snapshot = store.snapshot(feed.no, Vec::new()).await.unwrap();
        let forgetting = Commit::forgetting(snapshot, id(1));
        store.commit(forgetting).await.unwrap();
        store.close().await.unwrap();
        drop(store);
        if is_restored {
            restore(&backup, &path, LATER).unwrap();
        } else {
            fs::copy(&backup, &path).unwrap();
        }
        let store = world.opened();
        let page = list(&store, &lost).await;
        assert_eq!(page.degraded, Some(Degraded::Ahead), "{is_restored}");
        let forgotten = page.items.iter().find(|item| item.id == id(1)).unwrap();
        assert!(forgotten.content.is_forgotten(), "{is_restored}");
        let (_, progress) = store.subscription(sub.no).await.unwrap().unwrap();
        let told = list(&store, &progress.acked.unwrap()).await.degraded;
        assert_eq!(told, Some(Degraded::Ahead), "{is_restored}");
    }
}

#[tokio::test]
async fn an_older_copy_brings_nothing_back_whatever_became_of_its_mark() {
    let keep: &dyn Fn(&World) = &|_| {};
    let missing: &dyn Fn(&World) = &|world| fs::remove_file(world.mark()).unwrap();
    let damaged: &dyn Fn(&World) = &|world| fs::write(world.mark(), "x").unwrap();
    let older: &dyn Fn(&World) = &|world| {
        fs::copy(world.folder.path().join("older.mark"), world.mark()).unwrap();
    };
    for (spoil, when) in [
        (keep, "whole"),
        (missing, "missing"),
        (damaged, "damaged"),
        (older, "older"),
    ] {
        let world = World::new().await;
        let copy = world.folder.path().join("older");
        let store = world.opened();
        let feed = store.feed_named("blog").await.unwrap().unwrap();
        let alice = store.add_user(user("alice")).await.unwrap().unwrap();
        let revoked = store.add_token(token(alice.no, 1)).await.unwrap().unwrap();
        store.close().await.unwrap();
        drop(store);
        fs::copy(world.store(), &copy).unwrap();
        fs::copy(world.mark(), world.folder.path().join("older.mark")).unwrap();
        let store = world.opened();
        assert!(store.remove_token(revoked.no).await.unwrap());
        let mut changed = alice.clone();
        changed.kept.login = LoginHash::stored("another".to_owned());
        assert!(store.change_user(changed).await.unwrap());
        let later = store.add_token(token(alice.no, 2)).await.unwrap().unwrap();
        assert!(store.remove_token(later.no).await.unwrap());
        let snapshot = store.snapshot(feed.no, Vec::new()).await.unwrap();
        let forgetting = Commit::forgetting(snapshot, id(2));
        store.commit(forgetting).await.unwrap();
        let lost = list(&store, "").await.last_cursor;
        store.close().await.unwrap();
        drop(store);
        fs::copy(&copy, world.store()).unwrap();
        spoil(&world);

        let store = world.opened();
        assert!(store.restored().is_some(), "{when}");
        assert_eq!(store.tokens(None, 9).await.unwrap(), [], "{when}");
        let held = store.users(None, 9).await.unwrap();
        assert_ne!(held[0].kept.login, alice.kept.login, "{when}");
        assert_eq!(
            held[0].kept.feed_password, alice.kept.feed_password,
            "{when}"
        );
        let page = list(&store, &lost).await;
        assert_eq!(page.degraded, Some(Degraded::Ahead), "{when}");
        let forgotten = page.items.iter().find(|item| item.id == id(2)).unwrap();
        assert!(forgotten.content.is_forgotten(), "{when}");
        let again = store.add_token(token(alice.no, 3)).await.unwrap().unwrap();
        assert!(again.no > later.no, "{when}: {} and {}", again.no, later.no);
        drop(store);
        // Done once: what is made later stays.
        let generation = feed_generation(&world).await;
        assert_eq!(feed_generation(&world).await, generation, "{when}");
        assert_eq!(
            world.opened().tokens(None, 9).await.unwrap(),
            [again],
            "{when}"
        );
    }
}

async fn feed_generation(world: &World) -> Stamp {
    let feed = world.opened().feed_named("blog").await.unwrap().unwrap();
    feed.lineage.generation()
}

#[tokio::test]
async fn removals_that_cannot_be_remembered_are_told() {
    let world = World::new().await;
    let log = world.folder.path().join("store.redb.removed");
    fs::create_dir(&log).unwrap();
    let store = world.opened();
    let told = store.removal_faults().unread.expect("it is no file");
    assert!(told.contains("cannot be read"), "{told}");
    let alice = store.add_user(user("alice")).await.unwrap().unwrap();
    assert!(store.remove_user(alice.no).await.unwrap());
    let told = store.removal_faults().unwritten.expect("it is no file");
    assert!(told.contains("brings back what was removed"), "{told}");
    fs::remove_dir(&log).unwrap();
    let bob = store.add_user(user("bob")).await.unwrap().unwrap();
    assert!(store.remove_user(bob.no).await.unwrap());
    assert_eq!(store.removal_faults().unwritten, None);
    let text = fs::read_to_string(&log).unwrap();
    let remembered = [alice.no, bob.no].map(|no| text.contains(&format!("user {} ", no.0)));
    assert_eq!(remembered, [true, true], "{text}");
    drop(store);
    fs::write(&log, "").unwrap();
    let told = world.opened().removal_faults().unread;
    assert!(told.unwrap().contains("is empty"));
}

#[tokio::test]
async fn a_restore_is_told_for_some_days_and_of_which_time_the_backup_is() {
    let world = World::new().await;
    restore(&world.backup(), &world.store(), LATER).unwrap();
    for days in [0, 6] {
        let clock = Manual::at(LATER.plus_secs(days * 86_400).micros());
        let store = open(world.store(), Arc::new(clock)).unwrap();
        let told = store.restored().expect("words for the operator");
        assert!(told.contains("backup of 2026-06-01"), "{told}");
    }
    let clock = Manual::at(LATER.plus_secs(8 * 86_400).micros());
    let store = open(world.store(), Arc::new(clock)).unwrap();
    assert_eq!(store.restored(), None);
}

#[tokio::test]
async fn verify_tells_a_store_behind_its_mark_and_no_damage() {
    let world = World::new().await;
    assert_eq!(verify(&world.store()).unwrap().behind, None);
    let mark = MarkFile::beside(&world.store());
    let FoundMark::Read(newest) = mark.read() else {
        panic!("{:?}", mark.read())
    };
    mark.write_both(&newest.after_commit(newest.last_t.next()));
    let report = verify(&world.store()).unwrap();
    let told = report.behind.clone().expect("the mark is later");
    assert!(report.is_sound() && told.contains("by 1 commits"), "{told}");
}

#[tokio::test]
async fn a_store_begun_anew_is_another_generation() {
    let world = World::new().await;
    fs::remove_file(world.store()).unwrap();
    file::begin_anew(&world.store()).unwrap();
    let store = world.opened();
    assert!(
        store
            .restored()
            .unwrap()
            .contains("not the store that was here")
    );
    // Nothing that was given out before is known, whenever a feed is made.
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    store.commit(commit(&feed, vec![add(1)])).await.unwrap();
    assert_eq!(
        list(&store, &world.lost).await.degraded,
        Some(Degraded::Ahead)
    );
}

#[tokio::test]
async fn a_mark_that_is_missing_damaged_or_behind_is_written_anew_and_restores_nothing() {
    let world = World::new().await;
    let mark = MarkFile::beside(&world.store());
    let FoundMark::Read(newest) = mark.read() else {
        panic!("{:?}", mark.read())
    };
    let behind = crate::store::content_mark::ContentMark {
        commits: newest.commits - 1,
        last_t: START,
        ..newest
    };
    let spoil: [&dyn Fn(); 4] = [
        &|| fs::remove_file(mark.path()).unwrap(),
        &|| fs::write(mark.path(), "somebody else's file").unwrap(),
        &|| fs::write(mark.path(), []).unwrap(),
        &|| mark.write_both(&behind),
    ];
    for spoil in spoil {
        spoil();
        let store = world.opened();
        assert_eq!(store.restored(), None);
        assert_eq!(list(&store, &world.lost).await.degraded, None);
        drop(store);
        assert_eq!(mark.read(), FoundMark::Read(newest));
    }
}

#[tokio::test]
async fn a_mark_that_cannot_be_written_is_no_reason_not_to_serve() {
    let world = World::new().await;
    let mark = world.folder.path().join("store.redb.mark");
    let read_only = || {
        let mut rights = fs::metadata(&mark).unwrap().permissions();
        rights.set_readonly(true);
        fs::set_permissions(&mark, rights).unwrap();
    };
    let folder = || {
        fs::remove_file(&mark).unwrap();
        fs::create_dir(&mark).unwrap();
    };
    let spoil: [&dyn Fn(); 2] = [&read_only, &folder];
    for (spoil, n) in spoil.into_iter().zip(4..) {
        spoil();
        let store = world.opened();
        assert_eq!(store.restored(), None);
        let feed = store.feed_named("blog").await.unwrap().unwrap();
        store.commit(commit(&feed, vec![add(n)])).await.unwrap();
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_mark_from_the_future_or_of_another_store_restores_and_takes_t_nowhere() {
    for is_foreign in [false, true] {
        let world = World::new().await;
        let mark = MarkFile::beside(&world.store());
        let FoundMark::Read(newest) = mark.read() else {
            panic!("{:?}", mark.read())
        };
        let ahead = crate::store::content_mark::ContentMark {
            store: newest.store + u64::from(is_foreign),
            commits: newest.commits + 5,
            last_t: LATER.plus_secs(1000 * 365 * 86_400),
            ..newest
        };
        mark.write_both(&ahead);
        let store = world.opened();
        let told = store.restored().expect("words for the operator");
        assert_eq!(told.contains("not the store"), is_foreign, "{told}");
        let feed = store.feed_named("blog").await.unwrap().unwrap();
        let done = store.commit(commit(&feed, vec![add(4)])).await.unwrap();
        let t = done.stamped[0].1;
        assert!(t < LATER.plus_secs(2 * 86_400), "{t}");
        assert!(feed.lineage.generation() > Stamp::ZERO);
        drop(store);
        // Done once: the mark is the store's again.
        let again = world.opened().feed_named("blog").await.unwrap().unwrap();
        assert_eq!(again.lineage, feed.lineage);
    }
}

#[tokio::test]
async fn a_kill_at_any_step_of_a_restore_leaves_one_whole_store() {
    for step in [RestoreStep::Copied, RestoreStep::Kept, RestoreStep::Placed] {
        let world = World::new().await;
        let killed = restored(&world.backup(), &world.store(), LATER, |done| {
            if done == step {
                return Err(io::Error::other("killed"));
            }
            Ok(())
        });
        assert!(killed.is_err(), "{step:?}");
        let store = world.opened();
        if step == RestoreStep::Placed {
            check_restored(&world, &store, "placed").await;
        } else {
            let page = list(&store, &world.lost).await;
            assert_eq!((page.items.len(), page.degraded), (0, None), "{step:?}");
        }
        store.close().await.unwrap();
        drop(store);
        assert!(verify(&world.store()).unwrap().is_sound(), "{step:?}");
        // And it can be restored now.
        restore(&world.backup(), &world.store(), LATER).unwrap();
        check_restored(&world, &world.opened(), "again").await;
    }
}

#[tokio::test]
async fn what_is_no_sound_backup_leaves_the_store_as_it_was() {
    let world = World::new().await;
    let before = fs::read(world.store()).unwrap();
    let whole = fs::read(world.backup()).unwrap();
    let other = world.folder.path().join("other");
    let mut flipped = whole.clone();
    let middle = memchr::memmem::find(&flipped, b"example.org/feed").unwrap();
    flipped[middle] ^= 1;
    let cut = whole[..whole.len() / 2].to_vec();
    for (bytes, what) in [
        (b"a text".to_vec(), "a text"),
        (Vec::new(), "an empty file"),
        (cut, "a cut file"),
        (flipped, "a flipped bit"),
    ] {
        fs::write(&other, bytes).unwrap();
        assert!(restore(&other, &world.store(), LATER).is_err(), "{what}");
        assert_eq!(fs::read(world.store()).unwrap(), before, "{what}");
    }
    for (from, why) in [
        (world.folder.path().join("absent"), "No such file"),
        (world.folder.path().to_owned(), "no file"),
        (world.store(), "the store itself"),
    ] {
        let error = restore(&from, &world.store(), LATER).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    assert_eq!(fs::read(world.store()).unwrap(), before);
    // A store that is served.
    let store = world.opened();
    let error = restore(&world.backup(), &world.store(), LATER).unwrap_err();
    assert!(
        error.to_string().contains("open in another process"),
        "{error}"
    );
    assert_eq!(list(&store, &world.lost).await.degraded, None);
}
