//! The parts that every job of ingest uses; no client, because not every job sends a request.

use super::{
    FeedSpec,
    compute::{Computing, compute},
    config::Config,
    platform,
};
use crate::{
    clock::Clock,
    events::Happenings,
    feed::{
        schedule::{Failure, FaultKind, PollState, host_pause_until},
        stamp::Stamp,
    },
    layers::KnownNets,
    notify::Notify,
    store::{Commit, Receipt, Store, StoreError, listing},
    telemetry::Metrics,
};
use everfeed_adapters::platforms::{Platforms, Profile};
use futures_util::TryStreamExt as _;
use std::{sync::Arc, time::Instant};
use tracing::info;

/// The parts that every job uses. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    /// Store of the items.
    pub store: Arc<dyn Store>,
    /// Wake-ups after commits.
    pub notify: Arc<Notify>,
    /// Source of the time.
    pub clock: Arc<dyn Clock>,
    /// A random number of 0..1, so that polls fall out of step.
    pub jitter: fn() -> f64,
    /// The place where documents are parsed and compared.
    pub computing: Computing,
    /// Counters of polls, changes and permalink checks.
    pub metrics: Metrics,
    /// Profiles of blog software.
    pub platforms: Arc<Platforms>,
    /// `[upstream]`.
    pub config: Arc<Config>,
    /// The networks of hosts, as far as they were looked up.
    pub nets: KnownNets,
    /// What happens to windows, for the operator.
    pub happenings: Happenings,
}

impl Context {
    /// The usual parts: random jitter, the embedded profiles, metrics of its own.
    pub fn new(store: Arc<dyn Store>, notify: Arc<Notify>, clock: Arc<dyn Clock>) -> Self {
        let (metrics, platforms) = (Metrics::default(), platform::embedded());
        Self {
            store,
            notify,
            clock,
            jitter: rand::random::<f64>,
            computing: Computing::default(),
            metrics,
            platforms,
            config: Arc::default(),
            nets: KnownNets::default(),
            happenings: Happenings::default(),
        }
    }

    // Decides: Who is told of a commit whose outcome is not known?
    /// Commits. Where the outcome is not known, the next job announces what it finds.
    pub(super) async fn commit(&self, commit: Commit) -> Result<Receipt, StoreError> {
        let committed = self.store.commit(commit).await;
        if let Err(StoreError::OutcomeUnknown(_)) = committed {
            self.notify.doubt();
        }
        committed
    }

    /// Announces the heads of all feeds as they are stored, if a commit may have moved one without a
    /// word. Its groups moved with it, so all are read; that is rare.
    pub(super) async fn settle_doubts(&self) -> Result<(), StoreError> {
        let Some(doubts) = self.notify.doubts() else {
            return Ok(());
        };
        let mut feeds = listing::feeds(&*self.store);
        while let Some(record) = feeds.try_next().await? {
            self.notify.seen(record.no, record.head());
        }
        self.notify.settled(doubts);
        Ok(())
    }

    /// The time now.
    pub(super) fn now(&self) -> Stamp {
        Stamp::from_micros(self.clock.now_us())
    }

    /// Runs `work` apart from what waits. A panic in it is one failed job and our fault.
    pub(super) async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        compute(self.computing, work).await
    }

    /// Number of active subscribers of a feed. An unreadable count is reported as zero.
    pub(super) async fn subscribers(&self, feed: &FeedSpec) -> usize {
        self.store
            .count_active(feed.no, self.now())
            .await
            .unwrap_or_default()
    }

    /// True for a feed that was forgotten while a job of it was under way.
    pub(super) fn is_forgotten(&self, feed: &FeedSpec) -> bool {
        self.notify.is_forgotten(feed.no)
    }

    /// The platform profile that holds for a feed.
    pub(super) fn profile(&self, state: &PollState) -> Option<Arc<Profile>> {
        platform::profile(&self.platforms, state.document.platform.as_ref())
    }

    /// End of the pause of a host that failed a request for this feed: the rule of
    /// `feed::schedule::retry_after`.
    pub(super) fn host_pause(
        &self,
        feed: &FeedSpec,
        state: &PollState,
        failure: &Failure,
    ) -> Option<Stamp> {
        // A wall may stand before one path alone. It is named by the fault, and asked less often.
        if matches!(failure.kind, FaultKind::BotWall { .. }) && failure.retry_after_secs.is_none() {
            return None;
        }
        host_pause_until(
            state,
            &feed.policy(),
            failure.status(),
            failure.retry_after_secs,
            self.now(),
        )
    }

    /// Wakes the waiters of a feed and of its groups, after the commit is durable.
    pub(super) fn announce(&self, feed: &FeedSpec, receipt: &Receipt, started: Instant) {
        self.notify.committed(&receipt.feed, &receipt.groups);
        let (name, items) = (&feed.name, receipt.stamped.len());
        if items > 0 {
            self.metrics.items_changed.inc_by(items as u64);
            let duration_ms = started.elapsed().as_millis();
            info!(feed.name = %name, items, duration_ms, "`{name}` has changed; items: {items}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::System, store::memory::Memory};

    #[test]
    fn polls_fall_out_of_step_by_chance() {
        let clock: Arc<dyn Clock> = Arc::new(System);
        let store = Arc::new(Memory::new(clock.clone()));
        let context = Context::new(store, Arc::default(), clock);
        let chances: Vec<f64> = (0..200).map(|_| (context.jitter)()).collect();
        assert!(chances.iter().all(|chance| (0.0..1.0).contains(chance)));
        assert!(chances.iter().any(|chance| *chance < 0.2));
        assert!(chances.iter().any(|chance| *chance > 0.8));
    }
}
