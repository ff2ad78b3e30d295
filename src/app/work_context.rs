//! The things by which work is begun, and its beginning; not what it does.

use super::{
    current_work::{CurrentWork, Work, WorkTasks},
    feed_sort::ItemCounts,
    insight::Overview,
    open_listeners::Listening,
    reload::Reloader,
    watch::FaultWatch,
    wiring::Wiring,
};
use crate::{
    acme::{CertificateKeeper, keeper::KeeperParts},
    readers::Readers,
    serve::feeds::context::ServeContext,
};
use anyhow::Context as _;
use std::sync::Arc;

/// The things that stay while work comes and goes, and by which it is begun.
pub(super) struct WorkContext {
    pub(super) wiring: Wiring,
    pub(super) readers: Arc<Readers>,
    pub(super) context: Arc<ServeContext>,
    pub(super) listening: Listening,
    pub(super) reloader: Arc<Reloader>,
    pub(super) workplace: CurrentWork,
    /// The certificate that everfeed gets itself.
    pub(super) certificate: Option<KeeperParts>,
    pub(super) started_at: String,
}

impl WorkContext {
    /// Begins to work with the feeds of the catalog, which are registered. An error leaves nothing
    /// running.
    pub(super) async fn begin(&self) -> anyhow::Result<Overview> {
        let wiring = &self.wiring;
        let upstream_ways = wiring.upstream_ways()?;
        let upstream_before = wiring.live.upstream();
        let poller = wiring.poller(&upstream_ways).await?;
        let groups = wiring.groups().await?;
        let own = wiring.own_places(&self.context, &self.listening);
        let own_places = own.clone();
        let hub = wiring.hub(&self.readers, own)?;
        let webhooks = wiring.live.webhooks();
        let started = hub.start(&webhooks).await;
        started.context("the stored subscriptions")?;
        let xmpp = wiring.xmpp(&self.readers)?;
        let subscriber = wiring.subscriber(own_places).await;
        let subscriber = subscriber.context("the stored hubs of feeds")?;
        let search_engines = wiring.search_engines()?;
        let lists = wiring.opml_lists(&upstream_ways.polls.upstream, &self.reloader);
        let keeper = match &self.certificate {
            Some(parts) => Some(CertificateKeeper::open(parts.clone()).await),
            None => None,
        };
        let keeper = keeper.transpose().context("the certificate of acme")?;
        let events = wiring.event_log();
        let overview = Overview {
            explainer: wiring.explainer(),
            notify: wiring.notify.clone(),
            poller: poller.clone(),
            hub: hub.clone(),
            xmpp: xmpp.clone(),
            subscriber: subscriber.clone(),
            waiters: self.context.waiters.clone(),
            readership: wiring.readership.clone(),
            reloader: self.reloader.clone(),
            accounts: wiring.account_desk(),
            certificate: self.certificate.as_ref().map(|parts| parts.watch.clone()),
            site_faults: wiring.site_faults.clone(),
            search_engines: search_engines.clone(),
            lists: lists.clone(),
            events: events.clone(),
            item_counts: ItemCounts::default(),
            started_at: self.started_at.clone(),
        };
        let tls = &wiring.config.server.tls;
        let watch = FaultWatch {
            log: events,
            clock: wiring.clock.clone(),
            catalog: wiring.gate.catalog.clone(),
            poller: poller.clone(),
            happenings: wiring.happenings.clone(),
            hub: hub.clone(),
            xmpp: xmpp.clone(),
            reloader: self.reloader.clone(),
            site_faults: wiring.site_faults.clone(),
            search_engines: search_engines.clone(),
            lists: lists.clone(),
            origin_sitemaps: wiring.origin_sitemaps.clone(),
            public_url: wiring.config.server.public_url.clone(),
            certificate: self.certificate.as_ref().map(|parts| parts.watch.clone()),
            certificate_file: tls.files().map(|(certificate, _)| certificate.to_owned()),
            store_folder: wiring.config.store.folder(),
            alerts: wiring.live.alerts(),
            alert_parts: wiring.alert_parts()?,
        };
        let tasks = WorkTasks::default();
        tasks.run(|stop| watch.run(stop));
        let sites = wiring.site_watches(&upstream_ways.polls.upstream, &self.reloader);
        tasks.run(|stop| sites.run(stop));
        tasks.run(|stop| groups.run(stop));
        if let Some(keeper) = keeper {
            tasks.run(|stop| keeper.run(stop));
        }
        let pushing = xmpp.clone();
        if let Some(xmpp) = xmpp {
            tasks.run(|stop| xmpp.run(stop));
        }
        tasks.run(|stop| search_engines.run(stop));
        tasks.run(|stop| lists.run(stop));
        if let Some(subscriber) = subscriber.clone() {
            tasks.run(|stop| subscriber.run(stop));
        }
        let polling = poller.clone();
        tasks.run(|stop| async move {
            if let Err(error) = polling.run(stop).await {
                tracing::warn!(error = %error, "The states of the last polls could not be saved: {error}");
            }
        });
        let upstream_ways = Arc::new(upstream_ways);
        self.workplace.put(Work {
            poller,
            upstream_ways: upstream_ways.clone(),
            hub: hub.clone(),
            subscriber,
            xmpp: pushing,
            tasks,
        });
        // A reload since the hub was made found none here.
        hub.reload(&wiring.live.hub());
        let upstream = wiring.live.upstream();
        if upstream != upstream_before {
            let contact = upstream.contact_url_or(&wiring.config.server.public_url);
            upstream_ways.reload(&upstream, contact)?;
        }
        let now = wiring.live.webhooks();
        if now != webhooks {
            let reloaded = hub.reload_webhooks(&now).await;
            reloaded.context("the webhooks of a reload")?;
        }
        Ok(overview)
    }
}
