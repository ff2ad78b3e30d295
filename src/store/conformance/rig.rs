//! A store under test with its clock and folder, and short words for what is put into it; no tests.

#[cfg(feature = "postgres")]
use super::postgres_server;
#[cfg(feature = "postgres")]
use crate::store::{copy_from_database, copy_to_database, database_url::DatabaseUrl};
use crate::{
    clock::{Clock, Manual},
    feed::{
        item::{Item, ItemDigests, ItemId, KeyHash, Reason},
        order::Order,
        page::{Numbering, Page, PageQuery},
        position::Position,
        reconcile::{Change, Delete, Evidence, Put, PutKind},
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    store::{Commit, Config, Receipt, Store, StoreError, memory::Memory, redb::Redb},
};
use everfeed_adapters::{Digest, Entry, Key, Text};
use std::{
    ops::Deref,
    path::{Path, PathBuf},
    sync::Arc,
};
use tempfile::TempDir;

/// 2026-06-01, when tests begin.
pub(crate) const START: Stamp = Stamp::from_secs(1_780_272_000);

/// The namespace of the feed that [`Rig::blog`] makes.
pub(crate) const NAMESPACE: &str = "example.org/feed";

/// A store, its clock, and its folder if it has one.
pub(crate) struct Rig {
    store: Box<dyn Store>,
    pub(crate) clock: Arc<Manual>,
    folder: Option<TempDir>,
    #[cfg(feature = "postgres")]
    database: Option<DatabaseUrl>,
}

impl Deref for Rig {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        self.store.as_ref()
    }
}

impl Rig {
    pub(crate) fn memory() -> Self {
        let clock = Arc::new(Manual::at(START.micros()));
        Self {
            store: Box::new(Memory::new(clock.clone())),
            clock,
            folder: None,
            #[cfg(feature = "postgres")]
            database: None,
        }
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn postgres() -> Self {
        let clock = Arc::new(Manual::at(START.micros()));
        let database = postgres_server::fresh_database();
        let store = Box::new(postgres_server::open(&database, clock.clone()).unwrap());
        Self {
            store,
            clock,
            folder: None,
            database: Some(database),
        }
    }

    pub(crate) fn redb() -> Self {
        let clock = Arc::new(Manual::at(START.micros()));
        let folder = tempfile::tempdir().unwrap();
        let store = Box::new(open(folder.path().join("store.redb"), clock.clone()).unwrap());
        Self {
            store,
            clock,
            folder: Some(folder),
            #[cfg(feature = "postgres")]
            database: None,
        }
    }

    /// The same store, copied from its file to a database, where it goes on.
    #[cfg(feature = "postgres")]
    pub(crate) fn copied_to_database(self) -> Self {
        let path = self.path().expect("it is in a file");
        drop(self.store);
        let database = postgres_server::fresh_database();
        let copy = || copy_to_database(&path, &database, false, self.clock.clone());
        assert!(postgres_server::on_a_thread(copy).unwrap() > 0);
        let left = open(path.clone(), self.clock.clone()).err();
        assert!(matches!(left, Some(StoreError::Schema(_))), "{left:?}");
        let again = postgres_server::on_a_thread(copy).err();
        assert!(matches!(again, Some(StoreError::Schema(_))), "{again:?}");
        let store = Box::new(postgres_server::open(&database, self.clock.clone()).unwrap());
        Self {
            store,
            clock: self.clock,
            folder: self.folder,
            database: Some(database),
        }
    }

    /// The same store, copied from its database to another file.
    #[cfg(feature = "postgres")]
    pub(crate) fn copied_to_file(self) -> Self {
        let database = self.database.expect("it is in a database");
        let folder = self.folder.expect("it has a folder");
        drop(self.store);
        let path = folder.path().join("back.redb");
        let copy = || copy_from_database(&database, &path, false, self.clock.clone());
        assert!(postgres_server::on_a_thread(copy).unwrap() > 0);
        let left = postgres_server::open(&database, self.clock.clone()).err();
        assert!(matches!(left, Some(StoreError::Schema(_))), "{left:?}");
        Self {
            store: Box::new(open(path, self.clock.clone()).unwrap()),
            clock: self.clock,
            folder: Some(folder),
            database: None,
        }
    }

    /// The store itself, its clock, and the folder that must outlive it.
    pub(crate) fn into_parts(self) -> (Box<dyn Store>, Arc<Manual>, Option<TempDir>) {
        (self.store, self.clock, self.folder)
    }

    /// The file, if the store has one.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.folder
            .as_ref()
            .map(|folder| folder.path().join("store.redb"))
    }

    /// Lets go of the file or the database and opens it again; a store without either goes on.
    pub(crate) fn reopen(self) -> Self {
        #[cfg(feature = "postgres")]
        if let Some(database) = self.database {
            drop(self.store);
            let store = Box::new(postgres_server::open(&database, self.clock.clone()).unwrap());
            return Self {
                store,
                clock: self.clock,
                folder: None,
                database: Some(database),
            };
        }
        self.changed_by(|_| ())
    }

    /// The same; meanwhile somebody else changes the file.
    pub(crate) fn changed_by(self, change: impl FnOnce(&Path)) -> Self {
        let Some(path) = self.path() else { return self };
        drop(self.store);
        change(&path);
        let store = Box::new(open(path, self.clock.clone()).unwrap());
        Self {
            store,
            clock: self.clock,
            folder: self.folder,
            #[cfg(feature = "postgres")]
            database: None,
        }
    }

    /// A feed of the name `blog`.
    pub(crate) async fn blog(&self) -> FeedNo {
        self.register("blog", NAMESPACE).await.unwrap().no
    }

    /// Commits changes on the revision that is there.
    pub(crate) async fn change(
        &self,
        feed: FeedNo,
        changes: Vec<Change>,
    ) -> Result<Receipt, StoreError> {
        let record = self.store.feed(feed).await?;
        self.store.commit(commit(&record, changes)).await
    }

    /// A page of the whole feed, or what stands after a cursor.
    pub(crate) async fn list(&self, feed: FeedNo, order: Order, since: Option<&str>) -> Page {
        self.page(PageQuery {
            since: since.map(Position::of_cursor),
            ..all(feed, order)
        })
        .await
        .unwrap()
    }
}

pub(crate) fn open(path: PathBuf, clock: Arc<dyn Clock>) -> Result<Redb, StoreError> {
    let config = Config {
        path,
        url: None,
        cache_bytes: 8 << 20,
        ..Config::default()
    };
    Redb::open(&config.path, &config, clock)
}

/// Everything of a feed in one page, with the number of its first item.
pub(crate) fn all(feed: FeedNo, order: Order) -> PageQuery {
    PageQuery {
        numbering: Numbering::Told,
        ..PageQuery::all(feed, order)
    }
}

/// A commit on top of this record that makes the feed ready.
pub(crate) fn commit(record: &FeedRecord, changes: Vec<Change>) -> Commit {
    Commit {
        changes,
        ready: true,
        ..Commit::nothing(record)
    }
}

/// The key of the n-th entry, as its publisher writes it.
pub(crate) fn guid(n: u32) -> String {
    format!("http://example.org/?p={n}")
}

pub(crate) fn key(n: u32) -> KeyHash {
    KeyHash::of(NAMESPACE, &Key::Id(guid(n)).stripped())
}

pub(crate) fn id(n: u32) -> ItemId {
    key(n).item_id()
}

pub(crate) fn add(n: u32) -> Change {
    put(PutKind::Added, n, "first")
}

pub(crate) fn edit(n: u32, title: &str) -> Change {
    put(PutKind::Edited, n, title)
}

pub(crate) fn revive(n: u32) -> Change {
    put(PutKind::Revived, n, "again")
}

pub(crate) fn put(kind: PutKind, n: u32, title: &str) -> Change {
    let digest = Digest::of(format!("{n} {title}").as_bytes());
    let entry = Entry {
        id: Some(guid(n)),
        title: Some(Text::plain(title)),
        ..Entry::default()
    };
    Change::Put(Put {
        kind,
        id: id(n),
        iri: guid(n),
        keys: vec![key(n)],
        entry: Arc::new(entry),
        published_us: Some(published(n)),
        digests: ItemDigests {
            raw: digest,
            content: digest,
            version: 1,
        },
        witnesses: Vec::new(),
    })
}

/// The date of publication of the n-th entry, microseconds; each three share one.
pub(crate) fn published(n: u32) -> i64 {
    1_000_000_000_000_000 + i64::from(n / 3)
}

pub(crate) fn delete(n: u32) -> Change {
    let reason = Reason::Explicit;
    let evidence = Evidence {
        reason,
        observed_at: START,
        when: Some("yesterday".into()),
        comment: None,
        suspect: None,
        archive_suspect: None,
    };
    Change::Delete(Delete {
        id: id(n),
        reason,
        first_missing: None,
        last_seen: Some(START),
        evidence,
    })
}

/// The ids of a page, in its order.
pub(crate) fn ids(page: &Page) -> Vec<ItemId> {
    page.items.iter().map(|item| item.id).collect()
}

/// The ids of these entries.
pub(crate) fn ids_of(numbers: &[u32]) -> Vec<ItemId> {
    numbers.iter().copied().map(id).collect()
}

pub(crate) fn title(item: &Item) -> Option<&str> {
    item.entry()?
        .title
        .as_ref()
        .map(|title| title.value.as_str())
}
