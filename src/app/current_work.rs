//! The work of a process: polls, pushes, groups, sites, certificates, XMPP. A process that shares its store with
//! others has it now and then, any other one has it from its start to its end. Not how it begins.

use super::upstream_ways::UpstreamWays;
use crate::{
    feed::record::FeedNo,
    hub::Hub,
    ingest::Poller,
    locks::{read, write},
    subscriber::Subscriber,
    xmpp::Component,
};
use std::{
    collections::HashMap,
    sync::{Arc, RwLock},
    time::Duration,
};
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The work of this process, while it has it. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct CurrentWork(Arc<RwLock<Option<Arc<Work>>>>);

/// The parts that work, and their tasks.
pub(super) struct Work {
    pub(super) poller: Poller,
    /// The ways to publishers, which a reload changes.
    pub(super) upstream_ways: Arc<UpstreamWays>,
    pub(super) hub: Arc<Hub>,
    /// Whoever subscribes at hubs of others; `None` where nobody does.
    pub(super) subscriber: Option<Subscriber>,
    /// The component of a server of XMPP; `None` where there is none.
    pub(super) xmpp: Option<Arc<Component>>,
    pub(super) tasks: WorkTasks,
}

impl Work {
    /// Active push subscriptions of each feed that has any.
    pub(super) fn push_subscribers(&self) -> HashMap<FeedNo, usize> {
        active_subscribers(&self.hub, self.xmpp.as_ref())
    }
}

/// Active push subscriptions of each feed that has any, over HTTP and XMPP.
pub(super) fn active_subscribers(
    hub: &Hub,
    xmpp: Option<&Arc<Component>>,
) -> HashMap<FeedNo, usize> {
    let counts = hub.counts().into_iter();
    let mut active: HashMap<FeedNo, usize> =
        counts.map(|(feed, counts)| (feed, counts.active)).collect();
    for (feed, count) in xmpp.map(|xmpp| xmpp.counts()).unwrap_or_default() {
        *active.entry(feed).or_default() += count;
    }
    active
}

/// The tasks of work, which run until they are told to stop.
#[derive(Default)]
pub(super) struct WorkTasks {
    stop: CancellationToken,
    running: TaskTracker,
}

impl WorkTasks {
    /// Runs a task, which ends soon after the token is cancelled.
    pub(super) fn run<F>(&self, task: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.running.spawn(task(self.stop.clone()));
    }

    /// Stops all, and waits for them within that time.
    async fn stop(&self, within: Duration) {
        self.stop.cancel();
        self.running.close();
        if timeout(within, self.running.wait()).await.is_err() {
            tracing::warn!(
                "Some polls were cut off: they did not end within {} s",
                within.as_secs()
            );
        }
    }
}

impl CurrentWork {
    /// The work, while this process has it.
    pub(super) fn work(&self) -> Option<Arc<Work>> {
        read(&self.0).clone()
    }

    /// Puts work in place.
    pub(super) fn put(&self, work: Work) {
        *write(&self.0) = Some(Arc::new(work));
    }

    /// Ends the work, if there is any: pushes and polls under way come to their end within that
    /// time, or are cut off.
    pub(super) async fn end(&self, within: Duration) {
        let work = write(&self.0).take();
        if let Some(work) = work {
            tokio::join!(work.tasks.stop(within), work.hub.shutdown(within));
        }
    }
}
