//! Reload: takes the configuration file in anew while everything runs, all or nothing; and forgets
//! feeds that are not configured any more. Held requests, pushes and walks are not touched.

use super::{
    accounts::tell_unknown_readers,
    beside_store::{BesideStore, moved_line},
    beside_worker,
    current_work::CurrentWork,
    live_settings::LiveSettings,
    move_questions::{self, LeftAddress, MoveQuestion, move_questions},
    plain_change::{self, BesidePlain},
    registry::{self, NextFeeds, PlainFeeds, PlannedChange, RegistryAnswer, WantedChange},
    removed::{self, removed_among},
    status::{ConfigStatus, ReloadStatus, now},
};
use crate::{
    catalog::{
        self, CatalogChanges, CatalogSnapshot, FeedSettings, ReadGate, RegisteredFeed,
        RegistrationProgress, RegistryNames, Sites,
    },
    config::{Config, ConfigError, ConfigSource, EntryReader, waiting_for_restart},
    feed::record::FeedNo,
    ingest::{FeedChange, FeedSpec},
    locks::lock,
    notify::Notify,
    store::{Store, StoreError},
};
use http::StatusCode;
use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex},
};
use thiserror::Error;

/// Reloads the configuration of the running application.
pub(super) struct Reloader {
    parts: ReloadParts,
    /// The configuration in force outside `[[feed]]`, `[[group]]` and what is `live`: that of the start, with the sites of
    /// the last reload.
    in_force: Mutex<Arc<Config>>,
    /// Held by the reload under way: there is one at a time.
    turn: tokio::sync::Mutex<()>,
    status: Mutex<ConfigStatus>,
    /// Feeds of the file that the store does not know yet, where another process has to register
    /// them.
    unknown: Mutex<Vec<FeedSettings>>,
    /// Digest of what all nodes have to agree on, of the file in force.
    digest: Mutex<String>,
}

/// The turn to change what is in force.
pub(super) type Turn<'a> = tokio::sync::MutexGuard<'a, ()>;

/// The way in which feeds are put in force.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PuttingBy {
    /// The process that works makes those that the store does not know.
    Registering,
    /// Any other one takes those that the store knows.
    Following,
}

/// The parts that a reload reads and changes.
pub(super) struct ReloadParts {
    /// The file and the environment that this process was started with; `None` where it was started
    /// without a file.
    pub(super) source: Option<ConfigSource>,
    /// The configuration that this process was started with: its settings are in force but for feeds,
    /// groups and sites, and for those that are `live`.
    pub(super) started_with: Config,
    pub(super) gate: ReadGate,
    pub(super) store: Arc<dyn Store>,
    pub(super) notify: Arc<Notify>,
    pub(super) workplace: CurrentWork,
    pub(super) live: LiveSettings,
}

/// A catalog that is to be in force.
struct NextCatalog {
    snapshot: CatalogSnapshot,
    /// Feeds of the file that the store does not know yet.
    unknown: Vec<FeedSettings>,
    /// Feeds and parts whose readers are to be woken by their documents.
    woken: Vec<FeedNo>,
}

/// Problems of the registry that are told one by one.
const PROBLEMS_TOLD_MAX: usize = 20;

/// The result of a reload that was taken in.
#[derive(Clone, Debug, Default)]
pub struct ReloadReport {
    /// The feeds that changed.
    pub changes: CatalogChanges,
    /// Keys outside `[[feed]]` and `[[group]]` that changed and are in force.
    pub settings: Vec<String>,
    /// Keys that differ from those in force and wait for a restart.
    pub waiting: Vec<String>,
    /// Feeds with items whose URL has changed.
    pub moved: Vec<String>,
    /// Feeds of sites that may have moved.
    pub questions: Vec<MoveQuestion>,
    /// Addresses that feeds of sites leave.
    pub left: Vec<LeftAddress>,
}

/// A reload that was refused; the configuration before it is wholly in force.
#[derive(Debug, Error)]
pub enum ReloadRefused {
    /// The process was started without a file.
    #[error("this everfeed was started without a configuration file")]
    NoFile,
    /// The file cannot be meant.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// A feed cannot have the namespace that it is given.
    #[error("{0}")]
    Namespace(StoreError),
    /// A feed of a site may have moved, which the configuration does not say.
    #[error("{0}")]
    Unanswered(String),
    /// The store failed.
    #[error("the feeds could not be registered: {0}")]
    Store(StoreError),
}

impl ReloadRefused {
    fn of_store(error: StoreError) -> Self {
        if error.is_of_namespaces() {
            Self::Namespace(error)
        } else {
            Self::Store(error)
        }
    }
}

/// A feed that is not forgotten.
#[derive(Debug, Error)]
pub enum ForgetRefused {
    /// It is configured.
    #[error(
        "feed `{0}` is configured; take it out of the configuration and reload first, or out of the registry: `everfeed feeds remove {0}`"
    )]
    Configured(String),
    /// The store has none of that name.
    #[error("no feed `{0}` is remembered")]
    Unknown(String),
    /// The feed never held such an item.
    #[error("feed `{feed}` has never held an item `{item}`")]
    UnknownItem {
        /// The feed.
        feed: String,
        /// The item as it was named.
        item: String,
    },
    /// The store failed.
    #[error("nothing could be forgotten: {0}")]
    Store(#[from] StoreError),
    /// It is done, and an older copy of the store would undo it.
    #[error("{0}")]
    Unremembered(String),
}

/// The file of a configuration, in full: a reload is asked for from other folders, too.
fn shown_file(source: &ConfigSource) -> String {
    std::path::absolute(&source.file)
        .unwrap_or_else(|_| source.file.clone())
        .display()
        .to_string()
}

impl Reloader {
    pub(super) fn new(parts: ReloadParts) -> Self {
        let status = ConfigStatus {
            file: parts.source.as_ref().map(shown_file),
            loaded_at: now(),
            ..ConfigStatus::default()
        };
        Self {
            in_force: Mutex::new(Arc::new(parts.started_with.clone())),
            parts,
            turn: tokio::sync::Mutex::default(),
            status: Mutex::new(status),
            unknown: Mutex::default(),
            digest: Mutex::default(),
        }
    }

    /// The same, of a file with this digest and with feeds that the store does not know yet.
    pub(super) fn of_file(self, digest: String, unknown: Vec<FeedSettings>) -> Self {
        Self {
            unknown: Mutex::new(unknown),
            digest: Mutex::new(digest),
            ..self
        }
    }

    /// Digest of what all nodes have to agree on, of the file in force; empty where there is one
    /// node.
    pub(super) fn digest(&self) -> String {
        lock(&self.digest).clone()
    }

    /// State of the configuration, for the operator.
    pub(super) fn status(&self) -> ConfigStatus {
        lock(&self.status).clone()
    }

    /// Reads the file again and takes it in, or refuses it and changes nothing. Says in the log
    /// what came of it.
    pub(super) async fn reload(&self) -> Result<ReloadReport, ReloadRefused> {
        let _turn = self.turn.lock().await;
        let outcome = self.take_in().await;
        let mut status = lock(&self.status);
        let error = outcome.as_ref().err().map(ToString::to_string);
        status.reload = Some(ReloadStatus { at: now(), error });
        match &outcome {
            Ok(report) => {
                status.loaded_at = now();
                status.waiting_for_restart.clone_from(&report.waiting);
                tracing::info!(
                    added = report.changes.added.len(),
                    changed = report.changes.changed.len(),
                    removed = report.changes.removed.len(),
                    "Reloaded the configuration: {}",
                    report.to_string().trim_end().replace('\n', "; ")
                );
            }
            Err(refused) => {
                tracing::error!(
                    "The reload is refused, the configuration before it stays in force: {refused}"
                );
            }
        }
        outcome
    }

    async fn take_in(&self) -> Result<ReloadReport, ReloadRefused> {
        let parts = &self.parts;
        let (config, names, digest) = self.load().await?;
        self.refuse_beside_running(&config, &names)?;
        super::tell_warnings(&config.warnings());
        let mut waiting = self.waiting_for_restart(&config);
        let sites = self.sites_of(&config);
        let (questions, left) = self.asked_of_sites(&config, &names).await;
        if sites.settings() != self.in_force().site && !questions.is_empty() {
            let questions: Vec<String> = questions.iter().map(ToString::to_string).collect();
            return Err(ReloadRefused::Unanswered(questions.join("\n")));
        }
        let feeds = self.feeds_of(&config).await?;
        registry::tell_unread(&names);
        registry::tell_shadowed(&names);
        let putting = self.putting();
        let changes = self
            .put_in_force(feeds, names, sites.clone(), putting)
            .await?;
        *lock(&self.digest) = digest;
        // Behind everything that can be refused.
        let work = parts.workplace.work();
        let hub = work.as_ref().map(|work| &*work.hub);
        let before = self.in_force();
        let mut settings = parts.live.reload(&config, hub);
        let now = sites.settings();
        if before.site != now {
            settings.push("site".to_owned());
            *lock(&self.in_force) = Arc::new(before.with_sites(now));
        }
        let ways = work.as_ref().map(|work| &*work.upstream_ways);
        let public_url = &before.server.public_url;
        match parts.live.reload_upstream(&config, public_url, ways) {
            Ok(changed) => settings.extend(changed),
            Err(error) => {
                tracing::warn!(
                    "[upstream] could not be put in force, the next start does it: {error}"
                );
                waiting.push("upstream".to_owned());
            }
        }
        match parts.live.reload_webhooks(&config, hub).await {
            Ok(true) => settings.push("webhook".to_owned()),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(
                    "The webhooks could not be put in force, the next reload or start does it: {error}"
                );
                waiting.push("webhook".to_owned());
            }
        }
        let mut moved = Vec::new();
        for change in &changes.changed {
            if !change.keys.iter().any(|key| key == "url") {
                continue;
            }
            let record = parts.store.feed(change.feed.no).await;
            if record.is_ok_and(|record| record.items.total > 0) {
                moved.push(change.feed.settings.name.clone());
            }
        }
        Ok(ReloadReport {
            changes,
            settings,
            waiting,
            moved,
            questions,
            left,
        })
    }

    /// The configuration in force, without feeds and groups.
    fn in_force(&self) -> Arc<Config> {
        lock(&self.in_force).clone()
    }

    // Decides: Are the sites of a file put in force at a reload?
    /// The sites that are in force once a configuration is: its own, unless it has another `server.public_url`. The addresses
    /// of sites and their feeds are made from that, so they wait for a start together.
    fn sites_of(&self, config: &Config) -> Arc<Sites> {
        let in_force = self.in_force();
        if config.site == in_force.site || self.moves_public_url(config) {
            return self.parts.gate.catalog.snapshot().sites().clone();
        }
        Arc::new(Sites::new(&config.site))
    }

    fn moves_public_url(&self, config: &Config) -> bool {
        config.server.public_url != self.in_force().server.public_url
    }

    /// The keys of a configuration that take effect at the next start.
    fn waiting_for_restart(&self, config: &Config) -> Vec<String> {
        let in_force = self.in_force();
        let mut waiting = waiting_for_restart(&in_force, config);
        if config.site != in_force.site && self.moves_public_url(config) {
            waiting.push("site".to_owned());
        }
        waiting
    }

    /// Refuses a configuration that cannot be in force beside the settings of the start.
    fn refuse_beside_running(
        &self,
        config: &Config,
        names: &RegistryNames,
    ) -> Result<(), ReloadRefused> {
        let parts = &self.parts;
        let source = parts.source.as_ref().ok_or(ReloadRefused::NoFile)?;
        let sites = self.sites_of(config).settings();
        let in_force = self.in_force().with_sites(sites);
        // The profiles in force are those of the start.
        let profiles = in_force.platforms.profiles();
        // The sockets that are bound are known now.
        let mut problems = in_force.own_origins();
        for feed in &config.feed {
            let found = feed.platform_problem(&profiles);
            problems.extend(found.map(|problem| problem.within(&format!("feed.{}", feed.name))));
            // A feed that is registered already stays.
            if !names.contains(&feed.name) {
                problems.extend(in_force.own_urls_of(feed));
            }
        }
        if problems.is_empty() {
            return Ok(());
        }
        let file = source.file.clone();
        Err(ConfigError { file, problems }.into())
    }

    /// The feeds that are in force once a configuration is.
    async fn feeds_of(&self, config: &Config) -> Result<Vec<FeedSettings>, ReloadRefused> {
        let parts = &self.parts;
        let mut feeds = config.registered();
        if self.moves_public_url(config) {
            let running = parts.gate.catalog.snapshot();
            feeds =
                beside_running_sites(feeds, running.feeds().map(|feed| (*feed.settings).clone()));
        }
        self.join_found(&self.sites_of(config), &mut feeds).await?;
        Ok(feeds)
    }

    /// Questions about the feeds of sites. `check` reports a configuration that would not start.
    async fn asked_of_sites(
        &self,
        config: &Config,
        names: &RegistryNames,
    ) -> (Vec<MoveQuestion>, Vec<LeftAddress>) {
        let parts = &self.parts;
        if config.site.is_empty() || !config.store.is_same_store(&self.in_force().store) {
            return Default::default();
        }
        let Ok(beside) = BesideStore::of(&*parts.store, config, names).await else {
            return Default::default();
        };
        move_questions::tell(&beside.questions);
        (beside.questions, beside.left)
    }

    /// Reads the file again and holds it against the store, as the next start would; takes nothing
    /// in. `None` where that start would open another store.
    pub(super) async fn check(&self) -> Result<Option<BesideStore>, ReloadRefused> {
        let (config, names, _) = self.load().await?;
        if !config.store.is_same_store(&self.in_force().store) {
            return Ok(None);
        }
        self.refuse_beside_running(&config, &names)?;
        let beside = BesideStore::of(&*self.parts.store, &config, &names).await;
        let mut beside = beside.map_err(ReloadRefused::of_store)?;
        let mut settings = self.parts.live.changes(&config);
        if self.sites_of(&config).settings() != self.in_force().site {
            settings.push("site".to_owned());
        }
        let report = ReloadReport {
            changes: self.would_change(&config).await?,
            settings,
            waiting: self.waiting_for_restart(&config),
            ..ReloadReport::default()
        };
        beside.reload = report.to_string().lines().map(str::to_owned).collect();
        Ok(Some(beside))
    }

    /// The changes that a configuration would make to the feeds in force.
    async fn would_change(&self, config: &Config) -> Result<CatalogChanges, ReloadRefused> {
        let running = self.parts.gate.catalog.snapshot();
        let feeds = self.feeds_of(config).await?.into_iter();
        // Feeds that are not there yet have numbers that no feed has.
        let numbered = feeds.zip((0..u32::MAX).rev()).map(|(feed, none)| {
            let no = running
                .feed(&feed.name)
                .map_or(FeedNo(none), |feed| feed.no);
            RegisteredFeed::new(no, feed)
        });
        let new = CatalogSnapshot::new(numbered, []);
        Ok(catalog::diff(&running, &new))
    }

    /// Reads files: the configuration, and the folder of profiles. The feeds of the registry are
    /// among those of the configuration; their names are told, too, and the digest of the file.
    async fn load(&self) -> Result<(Config, RegistryNames, String), ReloadRefused> {
        let source = self.parts.source.clone().ok_or(ReloadRefused::NoFile)?;
        let file = source.file.clone();
        let config = match tokio::task::spawn_blocking(move || source.load()).await {
            Ok(loaded) => loaded?,
            Err(error) => return Err(ReloadRefused::Store(StoreError::Failed(error.to_string()))),
        };
        let registered = registry::registered(&*self.parts.store, &self.entry_reader()).await;
        let mut registered = registered.map_err(ReloadRefused::Store)?;
        config.shadow(&mut registered);
        let digest = beside_worker::digest(&config);
        let config = config.with_registered(&registered, &file)?;
        Ok((config, registered.names, digest))
    }

    /// The reader of entries of the registry.
    pub(super) fn entry_reader(&self) -> EntryReader {
        let file = self.parts.source.as_ref().map(|source| &*source.file);
        registry::reader(&self.in_force(), file)
    }

    /// The configuration in force, without the feeds of the registry.
    fn without_registry(&self) -> Config {
        let running = self.parts.gate.catalog.snapshot();
        let names = running.registry();
        let mut config = (*self.in_force()).clone();
        config.webhook = self.parts.live.webhooks();
        let of_file = running.upstreams();
        let of_file = of_file.filter(|feed| !names.sound.contains(&feed.settings.name));
        config.feed = of_file.map(|feed| (*feed.settings).clone()).collect();
        let groups = running.feeds();
        let groups = groups.filter_map(|feed| feed.settings.group.as_deref().cloned());
        config.group = groups.collect();
        for feed in lock(&self.unknown).iter() {
            match &feed.group {
                Some(group) => config.group.push((**group).clone()),
                None if names.sound.contains(&feed.name) => {}
                None => config.feed.push(feed.clone()),
            }
        }
        config
    }

    /// Waits for the turn to change what is in force.
    pub(super) async fn turn(&self) -> Turn<'_> {
        self.turn.lock().await
    }

    /// Takes in what the process that works has changed of the feeds; and keeps those that it does
    /// not have.
    pub(super) async fn follow(&self) -> Result<(), ReloadRefused> {
        let turn = self.turn().await;
        self.read_again(&turn, PuttingBy::Following).await
    }

    /// Registers the feeds in force, for a process that begins to work.
    pub(super) async fn register_again(&self, turn: &Turn<'_>) -> Result<(), ReloadRefused> {
        self.read_again(turn, PuttingBy::Registering).await
    }

    /// Reads the registry of feeds again, and those that were found on sites.
    async fn read_again(&self, _: &Turn<'_>, by: PuttingBy) -> Result<(), ReloadRefused> {
        let store = &*self.parts.store;
        let running = self.parts.gate.catalog.snapshot();
        let registered = registry::registered(store, &self.entry_reader()).await;
        let mut registered = registered.map_err(ReloadRefused::Store)?;
        let config = self.without_registry();
        config.shadow(&mut registered);
        let (joined, problems) = config.beside(&registered);
        for problem in problems.iter().take(PROBLEMS_TOLD_MAX) {
            tracing::warn!("A feed of the registry is not taken in here: {problem}");
        }
        let mut feeds = joined.registered();
        let sites = running.sites().clone();
        self.join_found(&sites, &mut feeds).await?;
        self.put_in_force(feeds, registered.names, sites, by)
            .await
            .map(drop)
    }

    /// Joins the feeds that were found on sites.
    async fn join_found(
        &self,
        sites: &Sites,
        feeds: &mut Vec<FeedSettings>,
    ) -> Result<(), ReloadRefused> {
        let public_url = &self.parts.started_with.server.public_url;
        let settings = sites.settings();
        let joined = catalog::join_found(&*self.parts.store, &settings, public_url, feeds);
        joined.await.map_err(ReloadRefused::Store)
    }

    /// The way in which this process puts feeds in force now. One that is alone always registers
    /// them.
    fn putting(&self) -> PuttingBy {
        let parts = &self.parts;
        if parts.workplace.work().is_some() || parts.store.nodes().is_none() {
            PuttingBy::Registering
        } else {
            PuttingBy::Following
        }
    }

    /// Makes a change of the registry and puts it in force, or refuses it and changes nothing.
    pub(super) async fn change_registry(
        &self,
        wanted: WantedChange,
    ) -> Result<PlannedChange, RegistryAnswer> {
        let _turn = self.turn.lock().await;
        let store = &*self.parts.store;
        let catalog = self.parts.gate.catalog.snapshot();
        if let WantedChange::Remove(name) = &wanted
            && store.nodes().is_none()
            && !catalog.registry().contains(name)
        {
            return Err(registry::not_there(name, catalog.feed(name).is_some()));
        }
        let in_force = self.in_force();
        let beside = BesidePlain {
            in_force: &in_force,
            webhooks: &self.parts.live.webhooks(),
        };
        let plain = plain_change::plan(store, beside, &catalog, &wanted).await;
        let mut planned = match plain {
            Some(planned) => planned,
            None => {
                let (config, reader) = (|| self.without_registry(), self.entry_reader());
                registry::plan(store, &config, &reader, wanted).await?
            }
        };
        registry::make(store, &mut planned).await?;
        let (feeds, names) = (planned.take_feeds(), planned.names.clone());
        let put = match feeds {
            NextFeeds::All(feeds) => {
                let sites = catalog.sites().clone();
                self.put_in_force(feeds, names, sites, self.putting()).await
            }
            NextFeeds::Plain(feeds) => self.put_plain_in_force(feeds, names).await,
        };
        put.map_err(|refused| {
            let why = format!(
                "the change is kept, and is in force from the next reload or start on: {refused}"
            );
            RegistryAnswer::refused(StatusCode::SERVICE_UNAVAILABLE, why)
        })?;
        Ok(planned)
    }

    /// Takes in the feeds that were found on sites since the start, beside those in force.
    pub(super) async fn take_in_found(&self) -> Result<(), ReloadRefused> {
        let _turn = self.turn.lock().await;
        let parts = &self.parts;
        let running = parts.gate.catalog.snapshot();
        let mut feeds = running
            .feeds()
            .map(|feed| (*feed.settings).clone())
            .collect();
        let sites = running.sites().clone();
        self.join_found(&sites, &mut feeds).await?;
        let names = (**running.registry()).clone();
        let asked = move_questions(&*parts.store, &self.in_force(), &feeds, &names).await;
        move_questions::tell(&asked.map_err(ReloadRefused::Store)?);
        self.put_in_force(feeds, names, sites, self.putting())
            .await
            .map(drop)
    }

    /// Puts feeds in force: they are those that are polled and served.
    async fn put_in_force(
        &self,
        feeds: Vec<FeedSettings>,
        names: RegistryNames,
        sites: Arc<Sites>,
        by: PuttingBy,
    ) -> Result<CatalogChanges, ReloadRefused> {
        let parts = &self.parts;
        let (snapshot, unknown) = match by {
            PuttingBy::Registering => {
                let progress = RegistrationProgress::of(feeds.len());
                let registered = catalog::register(&*parts.store, feeds, &progress).await;
                registered.map(|snapshot| (snapshot, Vec::new()))
            }
            PuttingBy::Following => catalog::follow(&*parts.store, feeds).await,
        }
        .map_err(ReloadRefused::of_store)?;
        let snapshot = snapshot.with_registry(names).with_sites(sites);
        let snapshot = match by {
            PuttingBy::Registering => snapshot,
            PuttingBy::Following => {
                let beside = beside_worker::of_feeds(&*parts.store, &snapshot, &unknown).await;
                snapshot.with_beside_worker(beside.map_err(ReloadRefused::Store)?)
            }
        };
        let changes = catalog::diff(&parts.gate.catalog.snapshot(), &snapshot);
        let added = changes.added.iter().map(|feed| feed.no);
        let woken = added.chain(snapshot.parts()).collect();
        let next = NextCatalog {
            snapshot,
            unknown,
            woken,
        };
        self.publish(next, &changes).await?;
        tell_unknown_readers(&parts.gate);
        Ok(changes)
    }

    /// Puts a change of plain feeds in force.
    async fn put_plain_in_force(
        &self,
        feeds: PlainFeeds,
        names: RegistryNames,
    ) -> Result<CatalogChanges, ReloadRefused> {
        let parts = &self.parts;
        let before = parts.gate.catalog.snapshot();
        let registered = plain_change::registered(&*parts.store, &before, feeds).await;
        let (snapshot, woken) = registered.map_err(ReloadRefused::of_store)?;
        let snapshot = snapshot.with_registry(names);
        let changes = catalog::diff(&before, &snapshot);
        let next = NextCatalog {
            snapshot,
            unknown: lock(&self.unknown).clone(),
            woken,
        };
        self.publish(next, &changes).await?;
        Ok(changes)
    }

    /// Puts a catalog in force, with the changes that lead to it.
    async fn publish(
        &self,
        next: NextCatalog,
        changes: &CatalogChanges,
    ) -> Result<(), ReloadRefused> {
        let parts = &self.parts;
        let NextCatalog {
            snapshot,
            unknown,
            woken,
        } = next;
        let gone = changes.removed.iter().map(|feed| &*feed.settings.name);
        let gone = gone.filter(|name| !snapshot.beside_worker().has(name));
        let removed = removed_among(&*parts.store, &snapshot, gone).await;
        removed::tell(&removed.map_err(ReloadRefused::Store)?);
        // Before anybody finds the new feeds: who asks for one must be woken by its first document.
        for no in woken {
            match parts.store.feed(no).await {
                // A part that goes on is announced by its commits.
                Ok(record) if record.is_ready() && parts.notify.head(no).is_some() => {}
                Ok(record) => parts.notify.moved(no, record.head()),
                // Whoever asks for it is told.
                Err(error) if error.is_of_one_feed() => {}
                Err(error) => return Err(ReloadRefused::Store(error)),
            }
        }
        let before = parts.gate.catalog.snapshot();
        let unused = before.parts().filter(|no| snapshot.feed_no(*no).is_none());
        let unused: Vec<FeedNo> = unused.collect();
        // Together: a failure before leaves both as they were, and no feed is lost between them.
        *lock(&self.unknown) = unknown;
        parts.gate.catalog.publish(snapshot);
        for part in unused {
            if let Err(StoreError::UnknownFeed(_)) = parts.store.feed(part).await {
                parts.notify.forget(part);
            }
        }
        if let Some(work) = parts.workplace.work() {
            work.poller.apply_all(poller_changes(changes));
        }
        Ok(())
    }

    /// Forgets a feed that is not configured any more, with everything that is kept of it.
    pub(super) async fn forget(&self, name: &str) -> Result<(), ForgetRefused> {
        let _turn = self.turn.lock().await;
        let catalog = self.parts.gate.catalog.snapshot();
        // Their subscribers are told, and their rows go with the feed.
        let mut _at_work = None;
        if let Some((work, feed)) = self.parts.workplace.work().zip(catalog.withdrawn(name))
            // While the store is away, its rows cannot be read, and the request fails at once.
            && self.parts.store.feed(feed).await.is_ok()
        {
            _at_work = Some(work.hub.before_forgetting(feed).await);
        }
        let feed = forget(&*self.parts.store, &catalog, name).await?;
        self.parts.gate.catalog.publish(catalog.without(feed));
        self.parts.notify.forget(feed);
        Ok(())
    }
}

/// The feeds of a configuration whose sites wait for the next start: the feeds at their addresses stay as they run until then.
fn beside_running_sites(
    new: Vec<FeedSettings>,
    running: impl Iterator<Item = FeedSettings>,
) -> Vec<FeedSettings> {
    let mut feeds: Vec<_> = running.filter(|feed| feed.legacy.is_some()).collect();
    let names: HashSet<String> = feeds.iter().map(|feed| feed.name.clone()).collect();
    feeds.extend(
        new.into_iter()
            .filter(|feed| feed.legacy.is_none() && !names.contains(&feed.name)),
    );
    feeds
}

/// Forgets a feed in a store, unless the catalog has it registered, and tells the number that it
/// had.
pub(super) async fn forget(
    store: &dyn Store,
    catalog: &CatalogSnapshot,
    name: &str,
) -> Result<FeedNo, ForgetRefused> {
    if catalog.feed(name).is_some() || catalog.registry().contains(name) {
        return Err(ForgetRefused::Configured(name.to_owned()));
    }
    let unknown = || ForgetRefused::Unknown(name.to_owned());
    let no = catalog.withdrawn(name).ok_or_else(unknown)?;
    if !store.forget(no).await? {
        return Err(unknown());
    }
    tracing::info!(feed.name = %name, "Forgot feed `{name}` and everything that was kept of it");
    Ok(no)
}

fn poller_changes(changes: &CatalogChanges) -> impl Iterator<Item = FeedChange> {
    // Groups are not polled.
    let has_upstream = |feed: &&Arc<RegisteredFeed>| !feed.is_group();
    let removed = changes.removed.iter().filter(has_upstream);
    let removed = removed.map(|feed| FeedChange::Removed(feed.no));
    let added = changes.added.iter().filter(|feed| feed.is_polled());
    let added = added.map(|feed| FeedChange::Added(FeedSpec::from(&**feed)));
    let changed = changes.changed.iter().map(|change| &change.feed);
    let changed = changed.filter(has_upstream);
    let changed = changed.map(|feed| match feed.is_polled() {
        true => FeedChange::Changed(FeedSpec::from(&**feed)),
        // It is paused.
        false => FeedChange::Removed(feed.no),
    });
    removed.chain(added).chain(changed)
}

/// The table of a feed in the file, by name.
fn named(feed: &RegisteredFeed) -> String {
    let list = if feed.is_group() { "group" } else { "feed" };
    format!("{list}.{}", feed.settings.name)
}

/// A line for every feed that was added or removed and for every key that changed; and for each
/// that waits.
impl fmt::Display for ReloadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CatalogChanges {
            added,
            changed,
            removed,
        } = &self.changes;
        for feed in added {
            writeln!(f, "added    {}", named(feed))?;
        }
        for change in changed {
            for key in &change.keys {
                writeln!(f, "changed  {}.{key}", named(&change.feed))?;
            }
        }
        for feed in removed {
            writeln!(f, "removed  {}", named(feed))?;
        }
        for key in &self.settings {
            writeln!(f, "changed  {key}")?;
        }
        for feed in &self.moved {
            writeln!(f, "{}", moved_line(feed))?;
        }
        for question in &self.questions {
            writeln!(f, "question {question}")?;
        }
        for left in &self.left {
            writeln!(f, "left     {left}")?;
        }
        if self.changes.is_empty() {
            writeln!(f, "no feed changed")?;
        }
        for key in &self.waiting {
            writeln!(f, "restart  {key} takes effect at the next start")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feeds_of_sites_stay_as_they_run_until_the_sites_change() {
        let config = |text: &str| {
            let server = "[server]\npublic_url = \"http://b.example\"\n[store]\npath = \"x\"\n";
            Config::parse("test", &format!("{server}{text}")).unwrap()
        };
        let site = |host: &str, origin: &str| {
            format!("[[site]]\nhost = \"{host}\"\norigin = \"{origin}\"\nfeeds = [\"/feed\"]\n")
        };
        let feed = |name: &str| {
            format!("[[feed]]\nname = \"{name}\"\nurl = \"http://other.example/{name}\"\n")
        };
        let running = config(&format!(
            "{}{}",
            feed("old"),
            site("b.example", "http://127.0.0.1:1")
        ));
        // Another site goes before it, and its old server has moved.
        let new = config(&format!(
            "{}{}{}",
            feed("new"),
            site("a.example", "http://127.0.0.1:2"),
            site("b.example", "http://127.0.0.1:3")
        ));
        let feeds = beside_running_sites(new.registered(), running.registered().into_iter());
        let of_site: Vec<_> = running
            .registered()
            .into_iter()
            .filter(|feed| feed.legacy.is_some())
            .collect();
        assert_eq!(of_site.len(), 1);
        assert_eq!(
            (feeds[0].url.port(), &feeds[0].legacy),
            (Some(1), &of_site[0].legacy)
        );
        assert_eq!(
            feeds[1..]
                .iter()
                .map(|feed| &*feed.name)
                .collect::<Vec<_>>(),
            ["new"]
        );
    }
}
