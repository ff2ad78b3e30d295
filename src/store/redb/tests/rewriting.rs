//! Writing the file anew, so that nothing of what was forgotten stays in it: a kill or a fault at
//! any step loses nothing, and the next start ends what was begun.

use super::*;
use crate::feed::{
    legacy_document::{LegacyDocument, LegacySyntax},
    observation_record::ObservationRecord,
    reconcile::PutKind,
    schedule::PollState,
};
use crate::store::redb::{file::RewriteStep, open_file::NotRewritten, verify::verify};
use crate::store::{Commit, SiteStore as _, conformance::rig::put};
use everfeed_adapters::Digest;

/// Words of what is forgotten.
const WORDS: &str = "words-to-forget";

const STEPS: [RewriteStep; 3] = [
    RewriteStep::Copied,
    RewriteStep::Placed,
    RewriteStep::Opened,
];

/// Items beside the one that is forgotten.
const OTHERS: std::ops::Range<u32> = 100..400;

fn forget(n: u32) -> Change {
    let Change::Delete(delete) = delete(n) else {
        unreachable!("a deletion")
    };
    Change::Delete(Delete {
        reason: Reason::Forgotten,
        ..delete
    })
}

/// A store whose first item is forgotten, over this file.
async fn with_a_forgotten_item(store: &Redb) -> FeedNo {
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    // So many pages of old items that some of them are free and not written over.
    let first = OTHERS
        .map(|n| put(PutKind::Added, n, WORDS))
        .chain([add(1)]);
    let then = OTHERS
        .map(|n| edit(n, "other words"))
        .chain([edit(1, WORDS)]);
    for changes in [first.collect(), then.collect(), vec![forget(1)]] {
        let feed = store.feed(feed.no).await.unwrap();
        store.commit(commit(&feed, changes)).await.unwrap();
    }
    feed.no
}

fn over(opener: Box<dyn FileOpener>, database: OpenDatabase) -> Redb {
    Redb::over(OpenFile::new(opener, database, clock()), clock()).unwrap()
}

/// Names of the files in a folder that hold the words.
fn holding_words(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let holds = |path: &PathBuf| {
        memchr::memmem::find(&std::fs::read(path).unwrap(), WORDS.as_bytes()).is_some()
    };
    files.filter(holds).collect()
}

/// Checks that a start in this folder finds everything but the forgotten item, of which no file
/// holds anything any more.
async fn check_start(folder: &Path, when: &str) {
    let path = folder.join("store.redb");
    let store = reopen(&path).unwrap();
    assert_eq!(store.keeps_forgotten(), None, "{when}");
    let feed = store.feed_named("blog").await.unwrap().unwrap();
    let page = store.page(all(feed.no, Order::MODIFIED)).await.unwrap();
    let (gone, live): (Vec<_>, Vec<_>) = page.items.iter().partition(|item| item.is_gone());
    assert!(gone.len() == 1 && gone[0].content.is_forgotten(), "{when}");
    for n in OTHERS {
        assert!(live.iter().any(|item| item.id == id(n)), "{when}: {n}");
    }
    store.commit(commit(&feed, vec![add(99)])).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    assert_eq!(holding_words(folder), Vec::<PathBuf>::new(), "{when}");
    let report = verify(&path).unwrap();
    assert!(report.is_sound(), "{when}: {report}");
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    // It names no words.
    names.retain(|name| name != "store.redb.removed");
    names.sort();
    assert_eq!(
        names,
        ["store.redb", "store.redb.made", "store.redb.mark"],
        "{when}"
    );
}

/// The files of a folder as a kill leaves them now.
fn image(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    copy
}

/// A folder with a store in which an item is forgotten, and that is not written anew yet.
async fn unwritten() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut file = StoreFile::new(&folder.path().join("store.redb"), 0);
    file.rewrite_at_once_bytes_max = 0;
    let database = file.open_or_make(START).unwrap();
    let store = over(Box::new(file), database);
    with_a_forgotten_item(&store).await;
    let why = store.keeps_forgotten().expect("it is put off");
    assert!(why.contains("longer than 0 bytes"), "{why}");
    assert!(why.contains("free pages") && why.contains("at every start"));
    // As a kill leaves it: closing may write over free pages.
    let left = image(folder.path());
    assert_eq!(holding_words(left.path()).len(), 1);
    left
}

#[tokio::test]
async fn a_kill_at_any_step_leaves_one_whole_store_and_the_next_start_ends_what_was_begun() {
    let folder = unwritten().await;
    check_start(image(folder.path()).path(), "killed before it began").await;
    let file = StoreFile::new(&folder.path().join("store.redb"), 0);
    let open = file.open_at_path().unwrap();
    let mut images = Vec::new();
    let written = file.rewritten(&open, |step| {
        images.push((step, image(folder.path())));
        Ok(())
    });
    drop((written.unwrap(), open));
    assert!(images.iter().map(|(step, _)| *step).eq(STEPS));
    // While it is copied, the copy is as long as it has come.
    for part in [0, 1, 2] {
        let killed = image(images[0].1.path());
        let copy = killed.path().join("store.redb.anew");
        let bytes = copy.metadata().unwrap().len();
        let copy = std::fs::OpenOptions::new().write(true).open(copy).unwrap();
        copy.set_len(bytes * part / 3).unwrap();
        check_start(killed.path(), &format!("killed at {part}/3 of the copy")).await;
    }
    for (step, killed) in images {
        check_start(killed.path(), &format!("killed after {step:?}")).await;
    }
    check_start(folder.path(), "after its end").await;
}

#[tokio::test]
async fn a_copy_that_a_kill_has_left_goes_with_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let store = reopen(&path).unwrap();
    with_a_forgotten_item(&store).await;
    store.close().await.unwrap();
    drop(store);
    std::fs::write(folder.path().join("store.redb.anew"), WORDS).unwrap();
    check_start(folder.path(), "a copy of before").await;
}

/// A store whose file cannot be written anew to the end.
struct Interrupted {
    file: StoreFile,
    at: RewriteStep,
    panics: bool,
}

impl FileOpener for Interrupted {
    fn open(&self) -> Result<OpenDatabase, StoreError> {
        self.file.open()
    }

    fn astray(&self) -> Option<Astray> {
        self.file.astray()
    }

    fn rewrite(&self, open: &OpenDatabase) -> Result<OpenDatabase, NotRewritten> {
        self.file.rewritten(open, |step| {
            assert!(step != self.at || !self.panics, "a panic on purpose");
            if step == self.at {
                return Err(io::Error::from_raw_os_error(5));
            }
            Ok(())
        })
    }

    fn keeps_forgotten(&self) -> Option<String> {
        self.file.keeps_forgotten()
    }
}

#[tokio::test]
async fn a_fault_at_any_step_loses_nothing_that_is_stored_after_it() {
    for (at, panics) in STEPS.into_iter().flat_map(|at| [(at, false), (at, true)]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.redb");
        let file = StoreFile::new(&path, 0);
        let database = file.open_or_make(START).unwrap();
        let store = over(Box::new(Interrupted { file, at, panics }), database);
        let feed = with_a_forgotten_item(&store).await;
        let when = format!("{at:?}, {panics}");
        let kept = store.keeps_forgotten();
        assert!(kept.is_some(), "{when}");
        for n in 40..43 {
            let record = store.feed(feed).await.unwrap();
            store.commit(commit(&record, vec![add(n)])).await.unwrap();
        }
        assert_eq!(store.condition(), StoreCondition::Sound, "{when}");
        store.close().await.unwrap();
        drop(store);
        let store = reopen(&path).unwrap();
        for n in 40..43 {
            assert!(store.item(feed, id(n)).await.unwrap().is_some(), "{when}");
        }
        drop(store);
        check_start(folder.path(), &when).await;
    }
}

#[tokio::test]
async fn a_start_that_cannot_write_it_anew_serves_and_says_so() {
    let folder = unwritten().await;
    let path = folder.path().join("store.redb");
    // Nothing can be made at the place of the copy.
    let place = folder.path().join("store.redb.anew");
    std::fs::create_dir(&place).unwrap();
    let store = reopen(&path).unwrap();
    let why = store.keeps_forgotten().expect("it could not be");
    assert!(why.contains("store.redb.anew"), "{why}");
    let feed = store.feed_named("blog").await.unwrap().unwrap();
    store.commit(commit(&feed, vec![add(50)])).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    std::fs::remove_dir(&place).unwrap();
    check_start(folder.path(), "once it can").await;
}

#[tokio::test]
async fn the_file_holds_nothing_of_a_feed_that_was_forgotten_and_serves_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let store = reopen(&path).unwrap();
    let other = store.register("other", "example.org/other").await.unwrap();
    store.commit(commit(&other, vec![add(1)])).await.unwrap();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    let url = format!("http://{WORDS}.example/feed");
    let changed = Commit {
        observed: Some(ObservationRecord {
            remark: Some(WORDS.into()),
            ..ObservationRecord::default()
        }),
        poll: Some(PollState::unpolled(&url)),
        ..commit(&feed, vec![add(1), add(2)])
    };
    let feed = store.commit(changed).await.unwrap().feed;
    let feed = store.commit(commit(&feed, vec![edit(1, WORDS)])).await;
    let feed = feed.unwrap().feed.no;
    let document = LegacyDocument {
        body: WORDS.into(),
        digest: Digest::of(b""),
        content_type: None,
        last_modified: None,
        syntax: LegacySyntax::Rss,
        fetched_at: START,
        etag: None,
    };
    store.keep_document(feed, document.into()).await.unwrap();
    assert_eq!(holding_words(folder.path()).len(), 1);
    assert!(store.forget(feed).await.unwrap());
    assert_eq!(store.keeps_forgotten(), None);
    assert_eq!(holding_words(folder.path()), Vec::<PathBuf>::new());
    let other = store.feed(other.no).await.unwrap();
    store.commit(commit(&other, vec![add(2)])).await.unwrap();
    assert_eq!(store.condition(), StoreCondition::Sound);
}
