//! The composition root: makes the rooms, hands one to the other, and ends them in order. It decides nothing else.

use crate::{
    catalog::{self, Catalog},
    clock::{self, Clock},
    config::Config,
    hub::{self, Hub},
    ingest::{Context, FeedSpec, Poller, Upstream},
    layers::{self, ClientConfig, Governor},
    notify::Notify,
    readers::{self, Readers},
    render::Site,
    serve::{
        admin::Admin,
        context::ServeContext,
        listen,
        long_poll::Waiters,
        own_mounts::{HubService, own_mounts},
        router::Router,
        stack,
    },
    store::{Store, redb::Redb},
    telemetry::Metrics,
};
use anyhow::Context as _;
use explain::Explainer;
use http::HeaderValue;
use insight::House;
use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::util::BoxCloneSyncService;

mod insight;

pub mod explain;

pub mod probe;

pub mod replay;

/// A house that runs.
pub struct App {
    address: SocketAddr,
    admin_address: SocketAddr,
    store: Arc<dyn Store>,
    hub: Arc<Hub>,
    /// Ends what consumers see: listeners, held requests.
    front: CancellationToken,
    /// Ends polling.
    back: CancellationToken,
    servers: TaskTracker,
    polling: TaskTracker,
    shutdown: Duration,
}

impl App {
    /// Opens the store, binds the listeners and starts everything. What fails here has started nothing that lasts.
    pub async fn start(config: Config) -> anyhow::Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(clock::System);
        let store = open(&config, clock.clone()).await?;
        let catalog = Catalog::new(catalog::register(&*store, config.feed.clone()).await?);
        let listener = bind(config.server.listen, "consumers").await?;
        let admin_listener = bind(config.server.admin_listen, "the operator").await?;
        let ground =
            Ground { config, catalog, store, notify: Arc::default(), clock, metrics: Metrics::default() };
        let poller = ground.poller().await?;
        let readers = ground.readers();
        let hub = ground.hub(&readers)?;
        hub.start().await.context("the stored subscriptions")?;

        let Ground { config, catalog, store, notify, clock, metrics } = ground;
        let (front, back) = (CancellationToken::new(), CancellationToken::new());
        let (servers, polling) = (TaskTracker::new(), TaskTracker::new());
        let waiters =
            Waiters::new(config.server.waiters_max, Duration::from_secs(config.server.timeout_max_secs));
        let explainer = Explainer {
            store: store.clone(),
            catalog: catalog.clone(),
            platforms: config.platforms.profiles(),
        };
        let house = House::new(explainer, notify, poller.clone(), hub.clone(), waiters.clone());
        let context = ServeContext {
            readers,
            store: store.clone(),
            clock,
            catalog: catalog.clone(),
            waiters,
            stop: front.clone(),
        };
        let service = stack::stack(
            Router::new(own_mounts(Arc::new(context), hub_service(hub.clone()))),
            metrics.clone(),
        );
        let admin = Admin::new(Arc::new(house), metrics);
        let (address, admin_address) = (listener.local_addr()?, admin_listener.local_addr()?);
        let connections_max = config.server.connections_max;
        servers.spawn(listen::serve(listener, service, connections_max, front.clone()));
        servers.spawn(listen::serve(admin_listener, admin, ADMIN_CONNECTIONS_MAX, front.clone()));
        let until = back.clone();
        polling.spawn(async move {
            if let Err(error) = poller.run(until).await {
                tracing::error!(error = %error, "Polling ended: {error}");
            }
        });
        let count = catalog.snapshot().feeds().len();
        tracing::info!(
            server.address = %address, admin.address = %admin_address, feeds = count,
            "Serving at {}; feeds: {count}", config.server.public_url
        );
        let shutdown = Duration::from_secs(config.server.shutdown_secs);
        Ok(Self { address, admin_address, store, hub, front, back, servers, polling, shutdown })
    }

    /// Where consumers are served.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the operator is.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// Stops in order, within the configured time: no new requests and held ones answered, commits finished, pushes
    /// under way ended and their positions saved, the store closed.
    pub async fn stop(self) -> anyhow::Result<()> {
        tracing::info!("Stopping");
        self.front.cancel();
        self.servers.close();
        self.back.cancel();
        self.polling.close();
        let front = tokio::time::timeout(self.shutdown, self.servers.wait());
        let back = tokio::time::timeout(self.shutdown, self.polling.wait());
        let (front, back, ()) = tokio::join!(front, back, self.hub.shutdown(self.shutdown));
        if front.is_err() || back.is_err() {
            tracing::warn!(
                "Some connections or polls were cut off: they did not end within {:?}",
                self.shutdown
            );
        }
        self.store.close().await.context("the store could not be closed")?;
        tracing::info!("Stopped");
        Ok(())
    }
}

/// Takes the clock for right on a store that nobody serves.
pub async fn accept_clock(config: &Config) -> anyhow::Result<()> {
    let store = open(config, Arc::new(clock::System)).await?;
    store.accept_clock().await?;
    Ok(store.close().await?)
}

/// Operators are few.
const ADMIN_CONNECTIONS_MAX: usize = 64;

async fn open(config: &Config, clock: Arc<dyn Clock>) -> anyhow::Result<Arc<dyn Store>> {
    let config = config.store.clone();
    let path = config.path.clone();
    let opened = tokio::task::spawn_blocking(move || Redb::open(&config.path, &config, clock)).await?;
    Ok(Arc::new(opened.with_context(|| format!("the store {}", path.display()))?))
}

async fn bind(address: SocketAddr, whom: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address} for {whom}"))
}

/// What the drivers stand on.
struct Ground {
    config: Config,
    catalog: Catalog,
    store: Arc<dyn Store>,
    notify: Arc<Notify>,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
}

impl Ground {
    async fn poller(&self) -> anyhow::Result<Poller> {
        let client = layers::upstream(&self.config.upstream.client(), Governor::default())?;
        let own = &self.config.server.public_url;
        let contact = self.config.upstream.contact_url.clone().unwrap_or_else(|| own.clone());
        let context = Context {
            store: self.store.clone(),
            notify: self.notify.clone(),
            clock: self.clock.clone(),
            jitter: rand::random,
            metrics: self.metrics.clone(),
            platforms: self.config.platforms.profiles(),
            permalink_check_gap_secs: self.config.upstream.probe_gap_secs,
        };
        let feeds = self.catalog.snapshot().feeds().map(|feed| FeedSpec::from(&**feed)).collect();
        let upstream = Upstream::new(client, contact, self.clock.clone());
        Ok(Poller::load(context, upstream, feeds).await?)
    }

    fn readers(&self) -> Arc<Readers> {
        let (server, hub) = (&self.config.server, &self.config.hub);
        let config = readers::Config {
            page_items_max: server.page_items_max,
            page_bytes_max: server.page_bytes_max,
            render_cache_bytes: server.render_cache_bytes,
            classic_items: server.classic_items,
            push_items_max: hub.push_items_max,
            push_bytes_max: hub.push_bytes_max,
        };
        let site = Arc::new(Site::new(&server.public_url, &server.prefix));
        Arc::new(Readers::new(self.store.clone(), self.notify.clone(), self.clock.clone(), site, config))
    }

    fn hub(&self, readers: &Arc<Readers>) -> anyhow::Result<Arc<Hub>> {
        let config = &self.config.hub;
        let client = ClientConfig {
            total_secs: config.deliver_secs,
            private_ok: config.callbacks_private,
            ..ClientConfig::for_callbacks()
        };
        let user_agent =
            format!("everfeed/{} (+{})", env!("CARGO_PKG_VERSION"), self.config.server.public_url);
        Ok(Arc::new(Hub::new(hub::Parts {
            config: config.clone(),
            readers: readers.clone(),
            store: self.store.clone(),
            notify: self.notify.clone(),
            clock: self.clock.clone(),
            callbacks: BoxCloneSyncService::new(layers::callback(&client)?),
            user_agent: HeaderValue::try_from(user_agent)?,
            catalog: self.catalog.clone(),
            metrics: self.metrics.clone(),
        })))
    }
}

/// The hub as a service, so that the server need not know it.
fn hub_service(hub: Arc<Hub>) -> HubService {
    BoxCloneSyncService::new(tower::service_fn(move |request| {
        let hub = hub.clone();
        async move { Ok::<_, Infallible>(hub.handle(request).await) }
    }))
}
