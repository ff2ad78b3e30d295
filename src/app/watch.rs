//! The watch over faults while this process works: it looks every two seconds, hands what it finds to
//! the journal, and the events of that to the store and to the alerts. Which they are is decided in
//! `events`.

use super::{
    event_log::EventLog, live_settings::LiveAlerts, opml_lists::OpmlLists, reload::Reloader,
    site_feeds::SiteFaults,
};
use crate::{
    acme::CertificateWatch,
    alerts::{AlertParts, Alerts},
    catalog::Catalog,
    clock::Clock,
    events::{
        EVENTS_MAX, Event, EventTopic, Happenings, Journal, Observed, Reported, observed_feeds,
    },
    feed::stamp::Stamp,
    hub::Hub,
    ingest::Poller,
    search_engines::SearchEngines,
    serve::sites::sitemap::OriginSitemaps,
    xmpp::Component,
};
use futures_util::future::BoxFuture;
use sources::{Machine, MachineReadings};
use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep},
};
use tokio_util::sync::CancellationToken;
use url::Url;

mod sources;

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Time between two looks at the disk and at the files of a certificate, which take longer.
const MACHINE_EVERY: Duration = Duration::from_secs(30);
/// Time until the store is tried again that failed.
const STORE_AGAIN: Duration = Duration::from_secs(1);

/// The parts that are watched, and those that are told.
pub(super) struct FaultWatch {
    pub(super) log: EventLog,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) catalog: Catalog,
    pub(super) poller: Poller,
    pub(super) happenings: Happenings,
    pub(super) hub: Arc<Hub>,
    pub(super) xmpp: Option<Arc<Component>>,
    pub(super) reloader: Arc<Reloader>,
    pub(super) site_faults: SiteFaults,
    pub(super) search_engines: SearchEngines,
    pub(super) lists: OpmlLists,
    pub(super) origin_sitemaps: OriginSitemaps,
    /// `server.public_url`, below which sites without a host are.
    pub(super) public_url: Url,
    /// The certificate that everfeed gets itself.
    pub(super) certificate: Option<CertificateWatch>,
    /// The file of a certificate.
    pub(super) certificate_file: Option<PathBuf>,
    /// The folder of the store, where it is a file.
    pub(super) store_folder: Option<PathBuf>,
    pub(super) alerts: LiveAlerts,
    pub(super) alert_parts: AlertParts,
}

/// Time from a start until it is known if sites and the server of XMPP can be reached.
const UNKNOWN_AFTER_START: Duration = Duration::from_secs(90);

/// The memory of the watch.
struct Watching {
    started: Instant,
    journal: Journal,
    alerts: Alerts,
    /// Findings about feeds, and the number of changes of the feeds that they are from.
    of_feeds: (Observed, Option<(u64, usize)>),
    machine: MachineReadings,
    machine_looked: Option<Instant>,
    /// Keys of restores that were reported.
    restores: BTreeSet<String>,
}

impl FaultWatch {
    /// Watches until `stop`.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let Some(known) = self.known(&stop).await else {
            return;
        };
        let mut tasks = JoinSet::new();
        let journal = Journal::after(&known);
        let spawn = |task| {
            tasks.spawn(task);
        };
        let settings = self.alerts.now();
        let alerts = Alerts::start(&settings, &self.alert_parts, &known, spawn, &stop);
        let mut watching = Watching {
            started: Instant::now(),
            journal,
            alerts,
            of_feeds: Default::default(),
            machine: MachineReadings::default(),
            machine_looked: None,
            restores: sources::restores(&known),
        };
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut store_from = Instant::now();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = ticks.tick() => self.look(&mut watching).await,
            }
            if self.alerts.have_changed() {
                let spawn = |task| {
                    tasks.spawn(task);
                };
                self.change_alerts(&mut watching.alerts, spawn, &stop).await;
            }
            if !self.log.has_unstored() || Instant::now() < store_from {
                continue;
            }
            tokio::select! {
                () = stop.cancelled() => break,
                stored = self.log.store_all() => if let Err(error) = stored {
                    tracing::debug!("Events could not be stored: {error}");
                    store_from = Instant::now() + STORE_AGAIN;
                },
                // Alerts wait for no store.
                () = sleep(LOOK_EVERY) => {}
            }
        }
        if self.log.has_unstored()
            && let Err(error) = self.log.store_all().await
        {
            tracing::warn!("The last events could not be stored: {error}");
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Sends alerts as a reload has them from now on. A new receiver is told of no event that is
    /// stored. While those cannot be read, the alerts stay as they are.
    async fn change_alerts(
        &mut self,
        alerts: &mut Alerts,
        spawn: impl FnMut(BoxFuture<'static, ()>),
        stop: &CancellationToken,
    ) {
        let Ok(mut known) = self.log.store.events(None, 2 * EVENTS_MAX).await else {
            return;
        };
        known.reverse();
        let settings = self.alerts.now();
        if alerts.have(&settings) {
            return;
        }
        *alerts = alerts.changed(&settings, &self.alert_parts, &known, spawn, stop);
        tracing::info!(
            "Alerts are sent to {} receivers from now on",
            settings.len()
        );
    }

    /// The events that are stored, oldest first; `None` after `stop`.
    async fn known(&self, stop: &CancellationToken) -> Option<Vec<Event>> {
        loop {
            match self.log.store.events(None, 2 * EVENTS_MAX).await {
                Ok(mut known) => {
                    known.reverse();
                    return Some(known);
                }
                Err(error) => tracing::debug!("The events could not be read: {error}"),
            }
            tokio::select! {
                () = stop.cancelled() => return None,
                () = sleep(STORE_AGAIN) => {}
            }
        }
    }

    /// One look: what it finds becomes events.
    async fn look(&self, watching: &mut Watching) {
        let now = Stamp::from_micros(self.clock.now_us());
        if watching
            .machine_looked
            .is_none_or(|at| at.elapsed() >= MACHINE_EVERY)
        {
            watching.machine_looked = Some(Instant::now());
            let machine = Machine {
                store_folder: self.store_folder.clone(),
                certificate_file: self.certificate_file.clone(),
            };
            watching.machine = machine.look().await;
        }
        let mut events = Vec::new();
        for happening in self.happenings.take() {
            events.extend(watching.journal.happened(&happening, now));
        }
        if let Some(finding) = self.restore(now)
            && watching.restores.insert(finding.cause.key.clone())
        {
            events.push(watching.journal.report_once(&finding, now));
        }
        self.look_at_feeds(&watching.journal, &mut watching.of_feeds);
        let mut observed = watching.of_feeds.0.clone();
        observed.findings.extend(self.findings(watching, now));
        observed.absorbed.extend(watching.alerts.untried());
        observed.absorbed.extend(self.search_engines.untried());
        observed.absorbed.extend(self.lists.untried());
        observed.absorbed.extend(self.unasked_sitemaps());
        if watching.started.elapsed() < UNKNOWN_AFTER_START {
            let open = watching.journal.open().map(|event| &event.cause);
            let unknown =
                open.filter(|cause| matches!(cause.topic, EventTopic::Site | EventTopic::Xmpp));
            observed.absorbed.extend(unknown.cloned());
        }
        let Reported {
            events: new,
            revised,
        } = watching.journal.observe(&observed, now);
        events.extend(new);
        events.iter().for_each(tell);
        events.extend(revised);
        for event in &events {
            watching.alerts.tell(event);
        }
        if !events.is_empty() {
            self.log.add(events);
        }
    }

    /// Finds what is wrong with feeds, unless nothing has changed since.
    fn look_at_feeds(&self, journal: &Journal, held: &mut (Observed, Option<(u64, usize)>)) {
        let (troubles, polled) = (self.poller.troubles(), self.poller.polled());
        let seen = (troubles.changes(), polled);
        if held.1 == Some(seen) {
            return;
        }
        let troubles = troubles.all();
        let troubles = troubles.iter().map(|trouble| &**trouble);
        *held = (
            observed_feeds(troubles, polled, |cause| journal.is_open(cause)),
            Some(seen),
        );
    }
}

/// Logs an event.
fn tell(event: &Event) {
    let headline = event.headline();
    tracing::info!(
        event.kind = event.kind.name(),
        event.topic = event.cause.topic.name(),
        "Event: {headline}"
    );
}
