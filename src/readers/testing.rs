//! Readers over a store in memory that counts its pages and can keep one back. Compiled for tests
//! only.

use super::{Config, ReadRequest, Readers};
use crate::{
    clock::{Clock, Paused},
    feed::{
        filter::Filter,
        item::{ItemDigests, KeyHash, Reason},
        order::Order,
        page::{Page, PageQuery},
        reconcile::{Change, Delete, Evidence, Put, PutKind},
        record::{FeedNo, Head},
        stamp::Stamp,
        view::View,
    },
    notify::Notify,
    render::{Representation, Site},
    store::{
        CatalogStore as _, Commit, Feeds as _, Receipt, Store, StoreError, StoreFuture,
        memory::Memory,
        wrapped::{Tap, Wrapped},
    },
};
use everfeed_adapters::{Digest, Entry, Key, Metadata, Text};
use std::{
    ops::RangeInclusive,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};
use tokio::sync::watch;
use url::Url;

/// 2026-06-01, when tests begin. The clock follows tokio's, which tests pause.
pub(crate) const START: Stamp = Stamp::from_secs(1_780_272_000);

/// The feed that every rig has.
pub(crate) const NAME: &str = "blog";

/// Readers and what they stand on.
pub(crate) struct ReaderRig {
    pub(crate) store: Arc<Watched>,
    pub(crate) notify: Arc<Notify>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) readers: Arc<Readers>,
    pub(crate) feed: FeedNo,
}

impl ReaderRig {
    /// One feed, announced, whose first document is not in yet.
    pub(crate) async fn unread() -> Self {
        Self::built("", Config::default()).await
    }

    /// One feed with the posts of these numbers, added in one commit, the lowest first.
    pub(crate) async fn of(numbers: RangeInclusive<u32>) -> Self {
        let rig = Self::unread().await;
        rig.change(numbers.map(add).collect()).await;
        rig
    }

    /// The same as [`ReaderRig::unread`], its paths below a prefix and its bounds as given.
    pub(crate) async fn built(prefix: &str, config: Config) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(Paused::from(START.micros()));
        let store = Arc::new(Watched::new(clock.clone()));
        let notify = Arc::new(Notify::new());
        let site = Arc::new(Site::new(
            &Url::parse("https://feeds.example/").unwrap(),
            prefix,
        ));
        let readers = Readers::new(store.clone(), notify.clone(), clock.clone(), site, config);
        let record = store.register(NAME, "example.org/feed").await.unwrap();
        notify.moved(record.no, record.head());
        Self {
            store,
            notify,
            clock,
            readers: Arc::new(readers),
            feed: record.no,
        }
    }

    /// Commits changes and says so.
    pub(crate) async fn change(&self, changes: Vec<Change>) {
        let receipt = self.write(changes, None).await;
        self.notify.committed(&receipt.feed, &receipt.groups);
    }

    /// Commits changes and says nothing yet.
    pub(crate) async fn commit(&self, changes: Vec<Change>) -> Head {
        self.write(changes, None).await.feed.head()
    }

    /// Gives the feed another title.
    pub(crate) async fn entitle(&self, title: &str) {
        let metadata = Metadata {
            title: Some(Text::plain(title)),
            ..Metadata::default()
        };
        let receipt = self.write(Vec::new(), Some(Arc::new(metadata))).await;
        self.notify.committed(&receipt.feed, &receipt.groups);
    }

    async fn write(&self, changes: Vec<Change>, metadata: Option<Arc<Metadata>>) -> Receipt {
        let record = self.store.feed(self.feed).await.unwrap();
        let commit = Commit {
            changes,
            metadata,
            ready: true,
            ..Commit::nothing(&record)
        };
        self.store.commit(commit).await.unwrap()
    }

    /// Everything in the store, in an order.
    pub(crate) async fn all(&self, order: Order) -> Page {
        let query = PageQuery::all(self.feed, order);
        self.store.inner.page(query).await.unwrap()
    }

    /// A page of fifty in JSON.
    pub(crate) fn reading(&self, order: Order, since: &str, until: &str) -> ReadRequest {
        let view = View::all(self.feed, order);
        ReadRequest::page(view, Representation::JSON, since, until, 50).unwrap()
    }
}

impl ReadRequest {
    /// The same read of those items that a filter shows.
    pub(crate) fn filtered(self, filter: Filter) -> Self {
        Self {
            view: self.view.filtered(filter),
            ..self
        }
    }
}

/// The key of a post, as its publisher writes it.
pub(crate) fn guid(n: u32) -> String {
    format!("http://example.org/?p={n}&x=ü")
}

fn key(n: u32) -> KeyHash {
    KeyHash::of("example.org/feed", &Key::Id(guid(n)).stripped())
}

/// The id of a post.
pub(crate) fn id(n: u32) -> String {
    key(n).item_id().to_string()
}

pub(crate) fn add(n: u32) -> Change {
    put(
        PutKind::Added,
        n,
        &format!("Post {n} <b>&amp;</b> </script>"),
    )
}

pub(crate) fn add_titled(n: u32, title: &str) -> Change {
    put(PutKind::Added, n, title)
}

pub(crate) fn edit(n: u32, title: &str) -> Change {
    put(PutKind::Edited, n, title)
}

pub(crate) fn revive(n: u32) -> Change {
    put(PutKind::Revived, n, "back")
}

pub(crate) fn revive_titled(n: u32, title: &str) -> Change {
    put(PutKind::Revived, n, title)
}

fn put(kind: PutKind, n: u32, title: &str) -> Change {
    let digest = Digest::of(format!("{n} {title}").as_bytes());
    let entry = Entry {
        id: Some(guid(n)),
        title: Some(Text::plain(title)),
        ..Entry::default()
    };
    Change::Put(Put {
        kind,
        id: key(n).item_id(),
        iri: guid(n),
        keys: vec![key(n)],
        entry: Arc::new(entry),
        published_us: Some(1_000_000_000_000_000 + i64::from(n)),
        digests: ItemDigests {
            raw: digest,
            content: digest,
            version: 1,
        },
        witnesses: Vec::new(),
    })
}

pub(crate) fn delete(n: u32) -> Change {
    let reason = Reason::Explicit;
    let evidence = Evidence {
        reason,
        observed_at: START,
        when: None,
        comment: None,
        suspect: None,
        archive_suspect: None,
    };
    let (first_missing, last_seen) = (None, None);
    Change::Delete(Delete {
        id: key(n).item_id(),
        reason,
        first_missing,
        last_seen,
        evidence,
    })
}

/// A store that counts the pages it is asked for, and can keep them back once they are read.
pub(crate) type Watched = Wrapped<Watch>;

/// Counts pages, and holds them back or fails them when told to.
pub(crate) struct Watch {
    pages: AtomicUsize,
    totals: AtomicUsize,
    open: watch::Sender<bool>,
    broken: AtomicBool,
}

impl Watched {
    fn new(clock: Arc<dyn Clock>) -> Self {
        let open = watch::Sender::new(true);
        let (pages, totals) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let tap = Watch {
            pages,
            totals,
            open,
            broken: AtomicBool::new(false),
        };
        Self {
            inner: Box::new(Memory::new(clock)),
            tap,
        }
    }

    /// Pages asked for so far.
    pub(crate) fn pages(&self) -> usize {
        self.tap.pages.load(Ordering::SeqCst)
    }

    /// Pages whose total was to be counted so far.
    pub(crate) fn totals(&self) -> usize {
        self.tap.totals.load(Ordering::SeqCst)
    }

    /// Makes pages fail from now on, or no more.
    pub(crate) fn break_down(&self, broken: bool) {
        self.tap.broken.store(broken, Ordering::SeqCst);
    }

    /// From now on pages are read, but not handed out.
    pub(crate) fn hold_back(&self) {
        self.tap.open.send_replace(false);
    }

    /// Hands out what was kept back.
    pub(crate) fn let_go(&self) {
        self.tap.open.send_replace(true);
    }
}

impl Tap for Watch {
    fn page<'a>(&'a self, inner: &'a dyn Store, query: PageQuery) -> StoreFuture<'a, Page> {
        self.pages.fetch_add(1, Ordering::SeqCst);
        self.totals
            .fetch_add(usize::from(query.with_total), Ordering::SeqCst);
        Box::pin(async move {
            if self.broken.load(Ordering::SeqCst) {
                return Err(StoreError::Failed("the disk is on fire".into()));
            }
            let page = inner.page(query).await;
            let open = self.open.subscribe().wait_for(|open| *open).await.is_ok();
            assert!(open, "the store outlives its readers");
            page
        })
    }
}
