//! A feed of many items in a redb store, and everfeed's readers and server over it, composed as the
//! application does.

use crate::content::{NAMESPACE, added};
use anyhow::Result;
use everfeed::edge::listen;
use everfeed::{
    catalog::{Catalog, CatalogSnapshot, FeedSettings, ReadGate, RegisteredFeed},
    clock::{Clock, System},
    feed::{
        item::ItemId,
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    layers::OwnMark,
    notify::Notify,
    readers::{self, Readers},
    render::Site,
    serve::{
        self,
        answers::first_seen::FirstSeen,
        feeds::{context::ServeContext, long_poll::Waiters},
        hub_forms::HubService,
        own_mounts::{PushInletParts, own_mounts},
        routing::{router::Router, stack},
    },
    store::{
        Commit, Receipt, Store,
        redb::{Config, Redb},
    },
    telemetry::Metrics,
    threads::ServingThreads,
};
use http::{Request, Response, StatusCode};
use std::{
    convert::Infallible,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::util::BoxCloneSyncService;
use url::Url;

/// The feed's name.
pub(crate) const NAME: &str = "blog";
/// Items in a commit: the store bounds none, this bounds our memory.
const COMMIT_ITEMS: usize = 10_000;
/// Held requests and connections at most.
const PLACES_MAX: usize = 10_000;
/// The longest hold.
const HOLD_MAX_SECS: u64 = 300;

/// A feed and its store.
pub(crate) struct PollerRig {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) notify: Arc<Notify>,
    pub(crate) record: FeedRecord,
    folder: TempDir,
}

/// The address of everfeed's server, which ends when this is dropped.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) waiters: Waiters,
    _stop: DropGuard,
}

impl PollerRig {
    /// A feed of so many items in a new store, with the place of each.
    pub(crate) async fn new(items: u32) -> Result<(Self, Vec<(ItemId, Stamp)>)> {
        let folder = tempfile::tempdir()?;
        let store: Arc<dyn Store> = Arc::new(open(&file(folder.path()))?);
        let record = store.register(NAME, NAMESPACE).await?;
        let mut house = Self {
            store,
            notify: Arc::default(),
            record,
            folder,
        };
        let mut places = Vec::with_capacity(items as usize);
        while places.len() < items as usize {
            let more = (items as usize - places.len()).min(COMMIT_ITEMS);
            places.extend(house.add(more).await?);
        }
        house.notify.moved(house.record.no, house.record.head());
        Ok((house, places))
    }

    /// Commits some more items, and wakes nobody.
    pub(crate) async fn add(&mut self, items: usize) -> Result<Vec<(ItemId, Stamp)>> {
        let first = u32::try_from(self.record.items.total)?;
        let changes = (first..).take(items).map(added).collect();
        let commit = Commit {
            changes,
            ready: true,
            ..Commit::nothing(&self.record)
        };
        let Receipt { feed, stamped, .. } = self.store.commit(commit).await?;
        self.record = feed;
        Ok(stamped)
    }

    /// The feed's number.
    pub(crate) fn feed(&self) -> FeedNo {
        self.record.no
    }

    /// Path of the store.
    pub(crate) fn file(&self) -> PathBuf {
        file(self.folder.path())
    }

    /// Closes the store, copies its file, and opens the store again. Where the copy is.
    pub(crate) async fn copied(&mut self) -> Result<PathBuf> {
        self.store.close().await?;
        let copy = self.folder.path().join("copy.redb");
        std::fs::copy(self.file(), &copy)?;
        self.store = Arc::new(open(&self.file())?);
        Ok(copy)
    }

    /// Readers that remember nothing yet.
    pub(crate) fn readers(&self) -> Result<Readers> {
        let site = Site::new(&Url::parse("http://127.0.0.1:8080/")?, "");
        let (store, notify) = (self.store.clone(), self.notify.clone());
        Ok(Readers::new(
            store,
            notify,
            Arc::new(System),
            Arc::new(site),
            readers::Config::default(),
        ))
    }

    /// Serves the feed on loopback: the whole consumer side, with a hub that refuses.
    pub(crate) async fn serve(&self) -> Result<Served> {
        let settings = FeedSettings::new(NAME, Url::parse("https://blog.example/feed")?);
        let feed = RegisteredFeed::new(self.feed(), settings);
        let config = serve::Config {
            waiters_max: PLACES_MAX,
            waiters_per_client_max: PLACES_MAX,
            timeout_max_secs: HOLD_MAX_SECS,
            ..serve::Config::default()
        };
        let waiters = Waiters::new(&config);
        let stop = CancellationToken::new();
        let clock: Arc<dyn Clock> = Arc::new(System);
        let readers = Arc::new(self.readers()?);
        let budget = readers.budget().clone();
        let limits =
            listen::ListenerLimits::new(PLACES_MAX, readers.config().answers_bytes_max, budget);
        let context = ServeContext {
            readers,
            store: self.store.clone(),
            gate: ReadGate::without_users(
                Catalog::new(CatalogSnapshot::new([feed], [])),
                clock.clone(),
            ),
            clock,
            config,
            own_calls: OwnMark::default(),
            first_seen: FirstSeen::default(),
            readership: Arc::default(),
            takes_cloud: false,
            waiters: waiters.clone(),
            stop: stop.clone(),
        };
        let service = stack::stack(
            Router::new(own_mounts(
                Arc::new(context),
                no_hub(),
                PushInletParts::none(),
                None,
            )),
            Metrics::default(),
        );
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let threads = Arc::new(ServingThreads::start()?);
        tokio::spawn(listen::serve(
            [listener.into()],
            service,
            limits,
            threads,
            stop.clone(),
        ));
        Ok(Served {
            address,
            waiters,
            _stop: stop.drop_guard(),
        })
    }
}

/// The store with its cache as it is by default.
fn open(path: &Path) -> Result<Redb> {
    Ok(Redb::open(path, &Config::default(), Arc::new(System))?)
}

fn file(folder: &Path) -> PathBuf {
    folder.join("store.redb")
}

fn no_hub() -> HubService {
    BoxCloneSyncService::new(tower::service_fn(async |_: Request<bytes::Bytes>| {
        let mut refusal = Response::default();
        *refusal.status_mut() = StatusCode::NOT_IMPLEMENTED;
        Ok::<_, Infallible>(refusal)
    }))
}
