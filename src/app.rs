//! The running application: builds the components, wires them and shuts them down in order. It
//! decides nothing else.

use crate::{
    acme::{CertificateKeeper, CertificateWatch},
    auth::commands::{AccountAnswer, AccountCommand},
    catalog::{self, FeedSettings, RegistrationProgress},
    clock::{self, Clock},
    config::{Config, ConfigSource},
    edge::listen,
    hub::Hub,
    ingest::Poller,
    readers::Readers,
    render::Site,
    serve::{
        admin::{Admin, AdminGuard},
        long_poll::Waiters,
        router::Router,
    },
    store::{
        Remedy, Store, StoreError,
        redb::{Redb, missing_store},
        traits::Upkeep as _,
    },
};
use accounts::AccountDesk;
use anyhow::Context as _;
use descriptors::Descriptors;
use doors::{Doors, Listening};
use groups::GroupKeeper;
use insight::Overview;
use reload::{ReloadParts, Reloader};
use site_addresses::{SiteFeed, configured_at_sites};
use site_feeds::SiteWatch;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tasks::Tasks;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wiring::Wiring;

mod wiring;

mod tasks;

mod descriptors;

mod doors;

mod insight;

pub mod status;

mod gauges;

mod reload;

mod groups;

mod requested_poll;

mod accepted_url;

mod beside_store;

mod removed;

mod site_feeds;

mod supervisor;

mod forget_item;

mod still_held;

mod fresh_looks;

mod accounts;

pub mod explain;

pub mod backup;

pub mod probe;

pub mod replay;

pub mod site_addresses;

pub use accepted_url::accept_url;
pub use beside_store::{BesideStore, moved_line};
pub use reload::{ForgetRefused, ReloadRefused, ReloadReport};
pub use removed::RemovedFeed;

/// Time between two looks at the condition of the store.
const LOOK_AT_STORE: Duration = Duration::from_secs(1);

/// Time after which the process ends because another file is in the place of its store: whoever put
/// it there may still be at work.
const REPLACED_MAX: Duration = Duration::from_secs(10);

/// The running application; [`App::stop`] ends it.
pub struct App {
    address: SocketAddr,
    admin_address: SocketAddr,
    store: Arc<dyn Store>,
    hub: Arc<Hub>,
    reloader: Arc<Reloader>,
    tasks: Tasks,
}

impl App {
    /// Starts with a configuration that stands in no file, and so cannot be reloaded.
    pub async fn start(config: Config) -> anyhow::Result<Self> {
        Self::start_with(config, None).await
    }

    /// Opens the store, binds the listeners and starts everything. A start that fails leaves
    /// nothing running. `source` is the file that the configuration was read from: a reload reads
    /// it again.
    pub async fn start_with(
        mut config: Config,
        source: Option<ConfigSource>,
    ) -> anyhow::Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(clock::System);
        tell_warnings(&config.warnings());
        let store = open(&config, clock.clone()).await?;
        let descriptors = Descriptors::raised();
        // They are many: the catalog holds them from here on, and nothing else.
        let feeds = config.registered();
        config.feed = Vec::new();
        let wiring = Wiring {
            idle_per_host: descriptors.idle_per_host(),
            ..Wiring::new(config, store, clock).await?
        };
        let server = &wiring.config.server;
        let keeper = wiring.certificate_keeper()?;
        let certificate = keeper.as_ref().map(CertificateKeeper::watch);
        let held = keeper.as_ref().map(CertificateKeeper::held);
        let doors = Doors::open(server, keeper).await?;
        let addresses = (doors.address(), doors.admin_address()?);
        let listening = doors.listening()?;

        // Both listeners answer while the feeds are registered.
        let progress = Arc::new(RegistrationProgress::of(feeds.len()));
        let (readers, tasks) = (wiring.readers(), Tasks::new(server.shutdown_secs)?);
        let budget = readers.budget().clone();
        let connections_max = descriptors.connections_max(&wiring.config);
        let limits = listen::ListenerLimits {
            keeps_header_case: !wiring.config.site.is_empty(),
            ..listen::ListenerLimits::new(connections_max, server.answers_bytes_max, budget)
        };
        let router = Router::starting(progress.clone()).knowing(wiring.mark.clone());
        tasks.serve(
            doors.consumers,
            router.clone(),
            wiring.metrics.clone(),
            limits,
        );
        tasks.follow_certificate(doors.certificate, wiring.clock.clone());
        tasks.keep_certificate(doors.keeper);
        tasks.redirect(
            (doors.redirect, held),
            &server.public_url,
            addresses.0.port(),
        );
        let admin = Admin::starting(progress.clone(), wiring.metrics.clone());
        let guard = AdminGuard::new(
            admin.clone(),
            server.admin_listen.ip(),
            server.admin_token.clone(),
        );
        let guard = guard.knowing(wiring.mark.clone());
        tasks.serve_operator(doors.operator, guard);

        let waiters = wiring.waiters(connections_max);
        let starting = Starting {
            wiring,
            source,
            readers,
            router,
            admin,
            certificate,
            waiters,
            listening,
        };
        match starting.go_on(feeds, &progress, tasks.serving_ends()).await {
            Ok(Started {
                store,
                hub,
                reloader,
                poller,
                groups,
                watches,
                words,
            }) => {
                watches
                    .into_iter()
                    .for_each(|watch| tasks.watch_site(watch));
                tasks.keep_groups(groups);
                tasks.poll(poller);
                let (address, admin_address) = addresses;
                tracing::info!(server.address = %address, admin.address = %admin_address, "{words}");
                supervisor::ready(&words);
                Ok(Self {
                    address,
                    admin_address,
                    store,
                    hub,
                    reloader,
                    tasks,
                })
            }
            Err(error) => {
                tasks.stop().await;
                Err(error)
            }
        }
    }

    /// Address at which consumers are served; without a port, where they are served at sockets in
    /// the file system only.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Address at which the operator is served.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// Reads the configuration file again and takes it in while everything runs, or refuses it and
    /// changes nothing. The log and `/status` say what came of it.
    pub async fn reload(&self) -> Result<ReloadReport, ReloadRefused> {
        self.reloader.reload().await
    }

    /// Waits until only another process can go on with the store, and tells the reason.
    pub async fn needs_restart(&self) -> String {
        let mut look = tokio::time::interval(LOOK_AT_STORE);
        let mut since = None;
        loop {
            look.tick().await;
            let condition = self.store.condition();
            // What the store tries again by itself another process would not do better.
            let Some(outage) = condition
                .outage()
                .filter(|outage| outage.remedy == Remedy::Restart)
            else {
                since = None;
                continue;
            };
            if since.get_or_insert_with(Instant::now).elapsed() >= REPLACED_MAX {
                return outage.cause.clone();
            }
        }
    }

    /// Tells the supervisor's watchdog that all is well, as long as it is; never returns.
    pub async fn feed_watchdog(&self) {
        supervisor::feed_watchdog(&*self.store).await;
    }

    /// Stops in order, within the configured time: no new requests and held ones answered, commits
    /// finished, pushes under way ended and their positions saved, the store closed.
    pub async fn stop(self) -> anyhow::Result<()> {
        tracing::info!("Stopping");
        supervisor::stopping();
        tokio::join!(self.tasks.stop(), self.hub.shutdown(self.tasks.within()));
        self.store
            .close()
            .await
            .context("the store could not be closed")?;
        tracing::info!("Stopped");
        Ok(())
    }
}

/// A start whose listeners answer already.
struct Starting {
    wiring: Wiring,
    source: Option<ConfigSource>,
    readers: Arc<Readers>,
    router: Router,
    admin: Admin,
    /// The certificate that everfeed gets itself.
    certificate: Option<CertificateWatch>,
    waiters: Waiters,
    listening: Listening,
}

/// The rest of what was started.
struct Started {
    store: Arc<dyn Store>,
    hub: Arc<Hub>,
    reloader: Arc<Reloader>,
    poller: Poller,
    groups: GroupKeeper,
    watches: Vec<SiteWatch>,
    /// Line for the log and for the supervisor.
    words: String,
}

impl Starting {
    /// Registers the feeds, takes up what is kept of them, and opens both listeners.
    async fn go_on(
        self,
        mut feeds: Vec<FeedSettings>,
        progress: &RegistrationProgress,
        serving_ends: CancellationToken,
    ) -> anyhow::Result<Started> {
        let Self {
            wiring,
            source,
            readers,
            router,
            admin,
            certificate,
            waiters,
            listening,
        } = self;
        let Config { site, server, .. } = &wiring.config;
        catalog::join_found(&*wiring.store, site, &server.public_url, &mut feeds).await?;
        wiring
            .gate
            .catalog
            .publish(catalog::register(&*wiring.store, feeds, progress).await?);
        let removed =
            removed::removed_feeds(&*wiring.store, &wiring.gate.catalog.snapshot()).await?;
        removed::tell(&removed);
        accounts::tell_unknown_readers(&wiring.gate);
        let upstream = wiring.upstream()?;
        let poller = wiring.poller(upstream.clone()).await?;
        let groups = wiring.groups().await?;
        let context = wiring.serve_context(readers.clone(), waiters.clone(), serving_ends.clone());
        let hub = wiring.hub(&readers, wiring.own_places(&context, listening))?;
        hub.start().await.context("the stored subscriptions")?;
        let reloader = Arc::new(Reloader::new(ReloadParts {
            source,
            started_with: wiring.config.clone(),
            gate: wiring.gate.clone(),
            store: wiring.store.clone(),
            notify: wiring.notify.clone(),
            poller: poller.clone(),
        }));
        let overview = Overview {
            explainer: wiring.explainer(),
            notify: wiring.notify.clone(),
            poller: poller.clone(),
            hub: hub.clone(),
            waiters: waiters.clone(),
            reloader: reloader.clone(),
            accounts: wiring.account_desk(),
            certificate,
            site_faults: wiring.site_faults.clone(),
            started_at: status::now(),
        };
        router.open(wiring.mounts(context, &hub, Arc::new(poller.clone()), serving_ends)?);
        admin.open(Arc::new(overview));
        let count = wiring.gate.catalog.snapshot().feeds().len();
        let words = format!(
            "Serving at {}; feeds: {count}",
            wiring.config.server.public_url
        );
        let watches = wiring.site_watches(&upstream, &reloader);
        Ok(Started {
            store: wiring.store,
            hub,
            reloader,
            poller,
            groups,
            watches,
            words,
        })
    }
}

/// Warnings that are told one by one in the log; the others are counted.
const WARNINGS_TOLD_MAX: usize = 50;

/// Tells the log of warnings about the configuration.
fn tell_warnings(warnings: &[String]) {
    warnings
        .iter()
        .take(WARNINGS_TOLD_MAX)
        .for_each(|warning| tracing::warn!("{warning}"));
    let more = warnings.len().saturating_sub(WARNINGS_TOLD_MAX);
    if more > 0 {
        tracing::warn!(
            warnings = more,
            "{more} more warnings about the configuration: `everfeed check` tells all"
        );
    }
}

/// Takes the clock for right on a store that nobody serves.
pub async fn accept_clock(config: &Config) -> anyhow::Result<()> {
    let store = open(config, Arc::new(clock::System)).await?;
    store.accept_clock().await?;
    Ok(store.close().await?)
}

/// The feeds of a store that nobody serves: those of the configuration, and those that were found
/// on its sites.
async fn observed(
    store: &dyn Store,
    config: &Config,
) -> Result<catalog::CatalogSnapshot, StoreError> {
    let mut feeds = config.registered();
    catalog::join_found(store, &config.site, &config.server.public_url, &mut feeds).await?;
    catalog::observe(store, feeds).await
}

/// Forgets a feed that is not configured any more, on a store that nobody serves; the words for the
/// operator.
pub async fn forget(config: &Config, name: &str) -> anyhow::Result<String> {
    let path = &config.store.path;
    anyhow::ensure!(path.exists(), "there is no store at {}", path.display());
    let store = open(config, Arc::new(clock::System)).await?;
    let catalog = observed(&*store, config).await?;
    let forgotten = reload::forget(&*store, &catalog, name).await;
    let kept = close_without_traces(store, config).await?;
    forgotten?;
    Ok(forget_item::forgotten(name, kept.as_deref()))
}

/// Closes a store in which something was forgotten. The reason for which its file still holds it.
async fn close_without_traces(
    store: Arc<dyn Store>,
    config: &Config,
) -> anyhow::Result<Option<String>> {
    let kept = store.keeps_forgotten();
    store.close().await?;
    drop(store);
    if kept.is_none() {
        return Ok(None);
    }
    // An opening writes a file of any length anew: nothing waits for it.
    let again = open(config, Arc::new(clock::System)).await?;
    let kept = again.keeps_forgotten();
    again.close().await?;
    Ok(kept)
}

/// A configuration held against its store, which nobody serves; the feeds that are kept there and
/// are not configured any more; and those at addresses of sites: of the configuration, and those
/// that the store has found. There need not be a store yet.
pub async fn beside_store(
    config: &Config,
) -> anyhow::Result<(BesideStore, Vec<RemovedFeed>, Vec<SiteFeed>)> {
    if let Some(missing) = missing_store(&config.store.path) {
        return Err(missing.into());
    }
    if !config.store.path.exists() {
        return Ok((
            BesideStore::default(),
            Vec::new(),
            configured_at_sites(config),
        ));
    }
    let settings = config.store.clone();
    let seen = tokio::task::spawn_blocking(move || {
        Redb::look(&settings.path, &settings, Arc::new(clock::System))
    });
    let store = seen
        .await?
        .with_context(|| format!("the store {}", config.store.path.display()))?;
    let looked = async {
        let beside = BesideStore::of(&store, config).await?;
        let catalog = observed(&store, config).await?;
        let feeds = catalog
            .feeds()
            .filter_map(|feed| SiteFeed::of(&feed.settings))
            .collect();
        Ok((
            beside,
            removed::removed_feeds(&store, &catalog).await?,
            feeds,
        ))
    };
    let looked: Result<_, StoreError> = looked.await;
    store.close().await?;
    Ok(looked?)
}

/// Removes one item of a feed, on a store that nobody serves; the words for the operator.
pub async fn forget_item(config: &Config, feed: &str, item: &str) -> anyhow::Result<String> {
    let path = &config.store.path;
    anyhow::ensure!(path.exists(), "there is no store at {}", path.display());
    let store = open(config, Arc::new(clock::System)).await?;
    let catalog = catalog::Catalog::new(observed(&*store, config).await?);
    let explainer = explain::Explainer {
        store,
        catalog,
        platforms: config.platforms.profiles(),
    };
    let forgotten = forget_item::forget_item(&explainer, feed, item).await;
    let kept = close_without_traces(explainer.store, config).await?;
    Ok(forgotten?.told(kept.as_deref()))
}

/// Carries out a command on users and tokens, on a store that nobody serves.
pub async fn change_accounts(
    config: &Config,
    command: AccountCommand,
) -> anyhow::Result<AccountAnswer> {
    let clock: Arc<dyn Clock> = Arc::new(clock::System);
    let store = open(config, clock.clone()).await?;
    let site = Site::new(&config.server.public_url, &config.server.prefix);
    let (auth, turn) = (None, tokio::sync::Mutex::default());
    let answer = AccountDesk {
        store: store.clone(),
        auth,
        site,
        clock,
        turn,
    }
    .run(command)
    .await;
    store.close().await?;
    Ok(answer)
}

async fn open(config: &Config, clock: Arc<dyn Clock>) -> anyhow::Result<Arc<dyn Store>> {
    let config = config.store.clone();
    let path = config.path.clone();
    let opened =
        tokio::task::spawn_blocking(move || Redb::open(&config.path, &config, clock)).await?;
    Ok(Arc::new(opened.with_context(|| {
        format!("the store {}", path.display())
    })?))
}
