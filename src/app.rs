//! The running application: builds the components, wires them and shuts them down in order. It
//! decides nothing else.

use crate::{
    acme::keeper::KeeperParts,
    auth::commands::{AccountAnswer, AccountCommand},
    catalog::{self, BesideWorker, FeedSettings, RegistrationProgress, RegistryNames},
    clock::{self, Clock},
    config::{Config, ConfigSource, Registered},
    edge::listen,
    feed::{record::FeedNo, stamp::Stamp},
    readers::Readers,
    render::Site,
    serve::{
        self,
        admin::{Admin, AdminGuard},
        routing::router::Router,
    },
    store::{self, Duty, Remedy, Store, StoreError},
};
use accounts::AccountCommands;
use anyhow::Context as _;
use current_work::CurrentWork;
use descriptors::Descriptors;
use nodes::Shifts;
use open_listeners::{Listening, OpenListeners};
use registry::{RegistryAnswer, RegistryCommand};
use registry_service::{ChangeScope, RegistryService};
use reload::{ReloadParts, Reloader};
use site_addresses::configured_at_sites;
use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};
use tasks::Tasks;
use tokio::time::Instant;
use wiring::Wiring;
use work_context::WorkContext;

mod wiring;

mod tasks;

mod descriptors;

mod open_listeners;

mod insight;

pub mod moments;

pub mod status;

pub mod told;

mod upstream_ways;

pub mod overview;

mod gauges;

mod feed_sort;

mod live_settings;

mod reload;

pub mod groups;

mod requested_poll;

mod accepted_url;

pub mod address_spelling;

pub mod outline_address;

pub mod folder_categories;

pub mod feed_name;

mod opml_lists;

mod beside_store;

mod beside_worker;

mod event_log;

mod watch;

mod removed;

mod move_questions;

pub mod registry;

mod registry_service;

mod plain_change;

mod site_feeds;

pub mod source_list;

pub mod subscribers;

pub mod reader_list;

mod supervisor;

mod forget_item;

mod still_held;

mod current_work;

mod work_context;

mod relay;

mod push_inlet;

mod polls_for_readers;

mod nodes;

mod accounts;

pub mod explain;

pub mod backup;

pub mod ping;

pub mod probe;

pub mod replay;

pub mod site_addresses;

pub use accepted_url::accept_url;
pub use beside_store::{BesideStore, ConfigBesideStore, moved_line};
pub use move_questions::{LeftAddress, MoveQuestion, NewFeed};
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
    bench: Arc<WorkContext>,
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
        let digest = beside_worker::digest(&config);
        let file = source.as_ref().map(|source| &*source.file);
        if config.lacks_feeds() && config.store.is_missing_file() {
            // No registry can have them.
            let file = file.unwrap_or(Path::new("the configuration"));
            config = config.with_registered(&Registered::default(), file)?;
        }
        let store = open_to_serve(&config, clock.clone()).await?;
        let names;
        (config, names) = registry::joined(&*store, config, file).await?;
        tell_warnings(&config.warnings());
        registry::tell_unread(&names);
        registry::tell_shadowed(&names);
        let descriptors = Descriptors::raised();
        // They are many: the catalog holds them from here on, and nothing else.
        let feeds = config.registered();
        config.feed = Vec::new();
        config.upstream.polls_in_flight_max = descriptors.polls_in_flight_max(&config);
        let idle_per_host = descriptors.idle_per_host();
        let wiring = Wiring::new(config, store.clone(), clock, idle_per_host).await?;
        let server = &wiring.config.server;
        let certificate = wiring.own_certificate().await?;
        let held = certificate.as_ref().map(|parts| parts.held.clone());
        let doors = OpenListeners::open(server, held.clone()).await?;
        let listening = doors.listening()?;
        let (address, admin_address) = (listening.address(), listening.operator);

        // Both listeners answer while the feeds are registered.
        let progress = Arc::new(RegistrationProgress::of(feeds.len()));
        let (readers, tasks) = (wiring.readers(), Tasks::new(server.shutdown_secs)?);
        let budget = readers.budget().clone();
        let connections_max = descriptors.connections_max(&wiring.config);
        let limits = listen::ListenerLimits {
            keeps_header_case: wiring.keeps_header_case(),
            ..listen::ListenerLimits::new(connections_max, server.readers.answers_bytes_max, budget)
        };
        let router = Router::starting(progress.clone()).knowing(wiring.mark.clone());
        let router = router.listing(&readers.site().list());
        tasks.serve(
            doors.consumers,
            router.clone(),
            wiring.metrics.clone(),
            limits,
        );
        tasks.follow_certificate(doors.certificate, wiring.clock.clone());
        if let Some(listener) = doors.redirect {
            tasks.redirect(listener, held, &server.public_url, address.port());
        }
        let admin = Admin::starting(progress.clone(), wiring.metrics.clone());
        let guard = AdminGuard::new(
            admin.clone(),
            server.admin_listen.ip(),
            server.admin_token.clone(),
        );
        let guard = guard.knowing(wiring.mark.clone());
        tasks.serve_operator(doors.operator, guard);

        let in_force = wiring.server_in_force(connections_max);
        let starting = Starting {
            wiring,
            names,
            source,
            digest,
            readers,
            router,
            admin,
            certificate,
            in_force,
            listening,
        };
        match starting.go_on(feeds, &progress, &tasks).await {
            Ok(bench) => Ok(Self {
                address,
                admin_address,
                store,
                bench,
                tasks,
            }),
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
        self.bench.reloader.reload().await
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
        let work = self.bench.workplace.end(self.tasks.within());
        tokio::join!(self.tasks.stop(), work);
        // Work that was taken up meanwhile.
        self.bench.workplace.end(Duration::ZERO).await;
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
    /// The feeds of the registry.
    names: RegistryNames,
    source: Option<ConfigSource>,
    /// Digest of what all nodes have to agree on.
    digest: String,
    readers: Arc<Readers>,
    router: Router,
    admin: Admin,
    /// The certificate that everfeed gets itself.
    certificate: Option<KeeperParts>,
    /// `[server]`, with the numbers in force.
    in_force: serve::Config,
    listening: Listening,
}

impl Starting {
    /// Registers the feeds, takes up what is kept of them, opens both listeners, and begins to work;
    /// or follows the process that works.
    async fn go_on(
        self,
        mut feeds: Vec<FeedSettings>,
        progress: &RegistrationProgress,
        tasks: &Tasks,
    ) -> anyhow::Result<Arc<WorkContext>> {
        let wiring = self.wiring;
        let (store, catalog) = (wiring.store.clone(), wiring.gate.catalog.clone());
        let Config { site, server, .. } = &wiring.config;
        if let Some(nodes) = store.nodes() {
            // One that is refused changes nothing of the feeds.
            let face = nodes::face(server, &self.listening);
            nodes.introduce(face).await?;
        }
        let duty = nodes::first_duty(store.nodes());
        catalog::join_found(&*store, site, &server.public_url, &mut feeds).await?;
        let asked = move_questions::move_questions(&*store, &wiring.config, &feeds, &self.names);
        move_questions::tell(&asked.await?);
        let (registered, unknown) = match duty {
            Duty::Working => {
                let registered = catalog::register(&*store, feeds, progress).await?;
                (registered, Vec::new())
            }
            Duty::Following => nodes::registered_elsewhere(&*store, feeds).await?,
        };
        let sites = catalog.snapshot().sites().clone();
        let registered = registered.with_registry(self.names).with_sites(sites);
        let beside = match duty {
            Duty::Working => BesideWorker::default(),
            Duty::Following => beside_worker::of_feeds(&*store, &registered, &unknown).await?,
        };
        let mut removed = removed::removed_feeds(&*store, &registered).await?;
        removed.retain(|feed| !beside.has(&feed.name));
        removed::tell(&removed);
        catalog.publish(registered.with_beside_worker(beside));
        accounts::tell_unknown_readers(&wiring.gate);
        let stop = tasks.serving_ends();
        let (readership, clock) = (wiring.readership.clone(), wiring.clock.clone());
        let ends = stop.clone();
        let now = move || Stamp::from_micros(clock.now_us());
        tasks.follow(async move { readership.run(now, ends).await });
        let context = wiring.serve_context(self.readers.clone(), self.in_force, stop.clone());
        let (address, operator) = (self.listening.address(), self.listening.operator);
        let workplace = CurrentWork::default();
        let reloader = Reloader::new(ReloadParts {
            source: self.source,
            started_with: wiring.config.clone().listening_at(self.listening.bound()),
            gate: wiring.gate.clone(),
            store: store.clone(),
            notify: wiring.notify.clone(),
            workplace: workplace.clone(),
            live: wiring.live.clone(),
        });
        let bench = Arc::new(WorkContext {
            readers: self.readers,
            context: context.clone(),
            listening: self.listening,
            reloader: Arc::new(reloader.of_file(self.digest, unknown)),
            workplace,
            certificate: self.certificate,
            started_at: status::now(),
            wiring,
        });
        let mut shifts = match store.nodes() {
            Some(nodes) => Shifts::of(bench.clone(), self.admin.clone(), nodes),
            None => None,
        };
        match (duty, &mut shifts) {
            (Duty::Following, Some(shifts)) => {
                shifts.know_all().await;
                shifts.open_following();
            }
            _ => self.admin.open(Arc::new(bench.begin().await?)),
        }
        let mounts = bench
            .wiring
            .mounts(context, &bench.workplace, stop.clone())?;
        self.router.open(mounts);
        if let Some(shifts) = shifts {
            tasks.follow(shifts.run(stop));
        }
        let count = catalog.snapshot().feeds().len();
        let public_url = &bench.wiring.config.server.public_url;
        let words = match duty {
            Duty::Working => format!("Serving at {public_url}; feeds: {count}"),
            Duty::Following => format!(
                "Serving at {public_url}; feeds: {count}; another everfeed polls and pushes"
            ),
        };
        tracing::info!(server.address = %address, admin.address = %operator, "{words}");
        supervisor::ready(&words);
        Ok(bench)
    }
}

/// Warnings that are told one by one in the log; the others are counted.
const WARNINGS_TOLD_MAX: usize = 50;

/// Tells the log of warnings about the configuration.
fn tell_warnings(warnings: &[String]) {
    for warning in warnings.iter().take(WARNINGS_TOLD_MAX) {
        tracing::warn!("{warning}");
    }
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
    let (feeds, names) = all_feeds(store, config).await?;
    let observed = catalog::observe(store, feeds).await?;
    Ok(observed.with_registry(names))
}

/// The feeds of a configuration, those of the registry, and those that were found on its sites. A
/// feed of the file goes before one of the registry: whether they can be meant is told elsewhere.
async fn all_feeds(
    store: &dyn Store,
    config: &Config,
) -> Result<(Vec<FeedSettings>, RegistryNames), StoreError> {
    let mut registered = registry::registered(store, &registry::reader(config, None)).await?;
    config.shadow(&mut registered);
    let mut feeds = config.registered();
    feeds.extend(registered.feeds.into_values());
    catalog::join_found(store, &config.site, &config.server.public_url, &mut feeds).await?;
    Ok((feeds, registered.names))
}

/// The same for a configuration that has the feeds of the registry among its own.
async fn all_feeds_joined(
    store: &dyn Store,
    config: &Config,
) -> Result<Vec<FeedSettings>, StoreError> {
    let mut feeds = config.registered();
    catalog::join_found(store, &config.site, &config.server.public_url, &mut feeds).await?;
    Ok(feeds)
}

/// Opens the store of a configuration, which must be there.
async fn open_existing(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    anyhow::ensure!(
        !config.store.is_missing_file(),
        "there is no store at {}",
        config.store
    );
    open(config, Arc::new(clock::System)).await
}

/// Forgets a feed that is not configured any more, on a store that nobody serves; the words for the
/// operator.
pub async fn forget(config: &Config, name: &str) -> anyhow::Result<String> {
    let store = open_existing(config).await?;
    let catalog = observed(&*store, config).await?;
    let forgotten = reload::forget(&*store, &catalog, name).await;
    let remembered = forget_item::remembered(&*store, String::new());
    let kept = close_without_traces(store, config).await?;
    forgotten?;
    Ok(remembered? + &forget_item::forgotten(name, kept.as_deref()))
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

/// A configuration in a file beside its store, which nobody serves. There need not be a store yet.
pub async fn beside_store(config: &Config, file: &Path) -> anyhow::Result<ConfigBesideStore> {
    let settings = config.store.clone();
    let seen = tokio::task::spawn_blocking(move || store::look(&settings, Arc::new(clock::System)));
    let seen = seen
        .await?
        .with_context(|| format!("the store {}", config.store))?;
    let Some(store) = seen else {
        let config = config.clone();
        let config = config.with_registered(&Registered::default(), file)?;
        return Ok(ConfigBesideStore {
            feeds: configured_at_sites(&config),
            ..ConfigBesideStore::default()
        });
    };
    let looked = async {
        let (config, names) = registry::joined(&*store, config.clone(), Some(file)).await?;
        Ok::<_, anyhow::Error>(ConfigBesideStore::of(&*store, &config, names).await?)
    };
    let looked = looked.await;
    store.close().await?;
    looked
}

/// The feeds of the registry beside a configuration, in a store that nobody serves. Without a store
/// there are none. Those that are shadowed are left out.
pub async fn registered_feeds(config: &Config, file: &Path) -> anyhow::Result<Vec<FeedSettings>> {
    let settings = config.store.clone();
    let seen = tokio::task::spawn_blocking(move || store::look(&settings, Arc::new(clock::System)));
    let seen = seen
        .await?
        .with_context(|| format!("the store {}", config.store))?;
    let Some(store) = seen else {
        return Ok(Vec::new());
    };
    let registered = registry::registered(&*store, &registry::reader(config, Some(file))).await;
    store.close().await?;
    let mut registered = registered?;
    config.shadow(&mut registered);
    Ok(registered.feeds.into_values().collect())
}

/// The database of a configuration beside its tables: what the operator should know of it. The error is
/// the one by which a start would be refused.
pub async fn database_warnings(config: &Config) -> anyhow::Result<Vec<String>> {
    let settings = config.store.clone();
    let clock = Arc::new(clock::System);
    let found = tokio::task::spawn_blocking(move || store::surroundings(&settings, clock));
    let Some(found) = found
        .await?
        .with_context(|| format!("the store {}", config.store))?
    else {
        return Ok(Vec::new());
    };
    if let Some(held) = &found.root {
        let face = nodes::face_of(&config.server, String::new());
        face.check_root(held)?;
    }
    Ok(found.warnings())
}

/// Removes one item of a feed, on a store that nobody serves; the words for the operator.
pub async fn forget_item(config: &Config, feed: &str, item: &str) -> anyhow::Result<String> {
    let explainer = explain::Explainer::of(open_existing(config).await?, config).await?;
    let forgotten = forget_item::forget_item(&explainer, feed, item).await;
    let remembered = forget_item::remembered(&*explainer.store, String::new());
    let kept = close_without_traces(explainer.store, config).await?;
    let told = forgotten?.told(kept.as_deref());
    Ok(remembered? + &told)
}

/// Carries out a command on the registry of feeds, on a store that nobody serves.
pub async fn change_registry(
    config: &Config,
    file: &Path,
    command: RegistryCommand,
) -> anyhow::Result<RegistryAnswer> {
    let store = open(config, Arc::new(clock::System)).await?;
    let (feeds, names) = all_feeds(&*store, config).await?;
    // Their numbers in the store are not asked for here.
    let feeds = (0..u32::MAX).zip(feeds);
    let feeds = feeds.map(|(no, feed)| catalog::RegisteredFeed::new(FeedNo(no), feed));
    let desk = RegistryService {
        store: store.clone(),
        catalog: Arc::new(catalog::CatalogSnapshot::new(feeds, []).with_registry(names)),
        reader: registry::reader(config, Some(file)),
        place: ChangeScope::Alone(Box::new(config.clone())),
    };
    let answer = desk.run(command).await;
    store.close().await?;
    Ok(answer)
}

/// Carries out a command on users and tokens, on a store that nobody serves.
pub async fn change_accounts(
    config: &Config,
    command: AccountCommand,
) -> anyhow::Result<AccountAnswer> {
    let clock: Arc<dyn Clock> = Arc::new(clock::System);
    let store = open(config, clock.clone()).await?;
    let site = Site::new(&config.server.public_url, &config.server.prefix);
    let desk = AccountCommands {
        store: store.clone(),
        auth: None,
        site,
        clock,
        turn: tokio::sync::Mutex::default(),
    };
    let answer = desk.run(command).await;
    store.close().await?;
    Ok(answer)
}

/// Opens the store for a process that serves it, beside others where its engine allows for them.
async fn open_to_serve(config: &Config, clock: Arc<dyn Clock>) -> anyhow::Result<Arc<dyn Store>> {
    let settings = config.store.clone();
    let opening = move || store::open_node(&settings, clock);
    let opened = tokio::task::spawn_blocking(opening).await?;
    opened.with_context(|| format!("the store {}", config.store))
}

async fn open(config: &Config, clock: Arc<dyn Clock>) -> anyhow::Result<Arc<dyn Store>> {
    let settings = config.store.clone();
    let opening = move || store::open(&settings, clock);
    let opened = tokio::task::spawn_blocking(opening).await?;
    opened.with_context(|| format!("the store {}", config.store))
}
