//! The work of a process: polls, pushes, groups, sites, XMPP. A process that shares its store with
//! others has it now and then, any other one has it from its start to its end; not who has it.

use super::{
    doors::Listening, insight::Overview, reload::Reloader, tasks::WorkTasks, wiring::Wiring,
};
use crate::{
    acme::CertificateWatch,
    feed::record::FeedNo,
    hub::Hub,
    ingest::Poller,
    locks::{read, write},
    readers::Readers,
    serve::{context::ServeContext, fresh_looks::FreshLooks},
};
use anyhow::Context as _;
use futures_util::future::BoxFuture;
use std::{
    sync::{Arc, RwLock},
    time::Duration,
};

/// The work of this process, while it has it. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Workplace(Arc<RwLock<Option<Arc<Work>>>>);

/// The parts that work, and their tasks.
pub(super) struct Work {
    pub(super) poller: Poller,
    pub(super) hub: Arc<Hub>,
    tasks: WorkTasks,
}

/// The things that stay while work comes and goes, and by which it is begun.
pub(super) struct Bench {
    pub(super) wiring: Wiring,
    pub(super) readers: Arc<Readers>,
    pub(super) context: Arc<ServeContext>,
    pub(super) listening: Listening,
    pub(super) reloader: Arc<Reloader>,
    pub(super) workplace: Workplace,
    /// The certificate that everfeed gets itself.
    pub(super) certificate: Option<CertificateWatch>,
    pub(super) started_at: String,
}

impl Workplace {
    /// The work, while this process has it.
    pub(super) fn work(&self) -> Option<Arc<Work>> {
        read(&self.0).clone()
    }

    fn put(&self, work: Option<Arc<Work>>) -> Option<Arc<Work>> {
        std::mem::replace(&mut write(&self.0), work)
    }

    /// Ends the work, if there is any: pushes and polls under way come to their end within that
    /// time, or are cut off.
    pub(super) async fn end(&self, within: Duration) {
        if let Some(work) = self.put(None) {
            tokio::join!(work.tasks.stop(within), work.hub.shutdown(within));
        }
    }
}

impl Bench {
    /// Begins to work with the feeds of the catalog, which are registered. An error leaves nothing
    /// running.
    pub(super) async fn begin(&self) -> anyhow::Result<Overview> {
        let wiring = &self.wiring;
        let upstream = wiring.upstream()?;
        let poller = wiring.poller(upstream.clone()).await?;
        let groups = wiring.groups().await?;
        let own = wiring.own_places(&self.context, &self.listening);
        let hub = wiring.hub(&self.readers, own)?;
        let started = hub.start(&wiring.config.webhook).await;
        started.context("the stored subscriptions")?;
        let xmpp = wiring.xmpp(&self.readers)?;
        let overview = Overview {
            explainer: wiring.explainer(),
            notify: wiring.notify.clone(),
            poller: poller.clone(),
            hub: hub.clone(),
            xmpp: xmpp.clone(),
            waiters: self.context.waiters.clone(),
            reloader: self.reloader.clone(),
            accounts: wiring.account_desk(),
            certificate: self.certificate.clone(),
            site_faults: wiring.site_faults.clone(),
            started_at: self.started_at.clone(),
        };
        let tasks = WorkTasks::default();
        for watch in wiring.site_watches(&upstream, &self.reloader) {
            tasks.watch_site(watch);
        }
        tasks.keep_groups(groups);
        tasks.serve_xmpp(xmpp);
        tasks.poll(poller.clone());
        self.workplace
            .put(Some(Arc::new(Work { poller, hub, tasks })));
        Ok(overview)
    }
}

// Limit: a process that follows asks no origin for a reader of an old feed. It gives the copy that
// the one that works keeps by its polls.
impl FreshLooks for Workplace {
    fn is_wanted(&self, feed: FeedNo, fresh_secs: u64) -> bool {
        self.work()
            .is_some_and(|work| work.poller.wants_look(feed, fresh_secs))
    }

    fn look(&self, feed: FeedNo, fresh_secs: u64) -> Option<BoxFuture<'static, ()>> {
        self.work()?.poller.look(feed, fresh_secs)
    }
}
