//! Probes among the polls: whose missed item is due to have its page asked for, and how often one host may be; what one
//! probe does is the pipeline's business.

use super::{InFlight, Run};
use crate::{
    feed::{
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    ingest::{
        checks::{Check, Checked},
        due_queue::Queue,
        host_pauses::hosts_of,
    },
};
use std::{collections::HashMap, sync::Arc};
use tokio::task::{Id, JoinError, JoinSet};
use tracing::{Instrument, info_span};

/// Probes in flight at most.
const PROBES_MAX: usize = 16;

/// After a probe that broke off, in seconds.
const BROKEN_SECS: u64 = 3600;

/// Which feeds have probes due, and which are in flight.
pub(super) struct Probes {
    queue: Queue,
    tasks: JoinSet<Option<Checked>>,
    in_flight: HashMap<Id, InFlight>,
    /// Until when hosts are left alone because one of their pages was asked for.
    rests: HashMap<String, Stamp>,
}

type Ended = Result<(Id, Option<Checked>), JoinError>;

impl Probes {
    /// Those that were due when the process ended.
    pub(super) fn new(records: Vec<FeedRecord>) -> Self {
        let mut queue = Queue::default();
        for record in records {
            if let Some(at) = record.next_check_at {
                queue.put(record.no, at);
            }
        }
        Self { queue, tasks: JoinSet::new(), in_flight: HashMap::new(), rests: HashMap::new() }
    }

    pub(super) fn put(&mut self, feed: FeedNo, at: Stamp) {
        self.queue.put_sooner(feed, at);
    }

    /// When to look at the queue again.
    pub(super) fn next_at(&self) -> Stamp {
        self.queue.next_at().filter(|_| self.tasks.len() < PROBES_MAX).unwrap_or(Stamp::MAX)
    }

    /// The next one that ends; `None` when none is in flight.
    pub(super) async fn next(&mut self) -> Option<Ended> {
        self.tasks.join_next_with_id().await
    }

    pub(super) async fn shutdown(&mut self) {
        self.tasks.shutdown().await;
    }
}

impl Run<'_> {
    /// Starts every probe that is due, as long as there is room.
    pub(super) fn start_probes(&mut self) {
        let now = self.poller.now();
        self.probes.rests.retain(|_, until| *until > now);
        while self.probes.tasks.len() < PROBES_MAX
            && let Some((feed, _)) = self.probes.queue.pop_due(now)
        {
            let (Some(spec), Some(state)) = (self.poller.feeds.get(&feed), self.poller.status(feed)) else {
                continue;
            };
            if !spec.deletions.probe || state.gone_at.is_some() {
                continue;
            }
            let hosts = hosts_of(&state, spec.deletions.audit_secs, now);
            let host = spec.url.host_str().unwrap_or_default().to_owned();
            let rests = self.probes.rests.get(&host).copied().unwrap_or_default();
            let gap_secs = self.poller.context.permalink_check_gap_secs;
            // Of a publisher who does not even answer for the feed no page is asked for before the next poll has ended.
            let down = if state.failures > 0 { state.next_at.plus_secs(gap_secs) } else { Stamp::ZERO };
            let not_before = self.hosts.not_before(&hosts).max(rests).max(down);
            if not_before > now {
                self.probes.queue.put(feed, not_before);
            } else if !self.hosts.enter(&hosts) {
                self.probes.queue.put(feed, now.plus_secs(super::HOST_BUSY_SECS));
            } else {
                self.probes.rests.insert(host, now.plus_secs(gap_secs));
                let (poller, stop, spec) = (self.poller.clone(), self.stop.clone(), Arc::clone(spec));
                let span = info_span!("probe", feed.name = %spec.name);
                let probe = async move {
                    Check::new(&poller.context, &spec, &state).run(&poller.upstream, &stop).await
                }
                .instrument(span);
                let task = self.probes.tasks.spawn(probe).id();
                self.probes.in_flight.insert(task, InFlight { feed, hosts });
            }
        }
    }

    /// Takes in what came of a probe.
    pub(super) fn probed(&mut self, ended: Ended) {
        let (task, probed) = match ended {
            Ok((task, probed)) => (task, Ok(probed)),
            Err(error) => (error.id(), Err(error)),
        };
        let Some(InFlight { feed, hosts }) = self.probes.in_flight.remove(&task) else { return };
        self.hosts.leave(&hosts);
        self.call_up(None);
        let now = self.poller.now();
        let probed = match probed {
            Ok(Some(probed)) => probed,
            Ok(None) => return,
            Err(error) => {
                tracing::error!("A probe broke off; this is a bug in everfeed: {error}");
                self.probes.put(feed, now.plus_secs(BROKEN_SECS));
                return;
            }
        };
        if !probed.asked
            && let Some(host) = self.poller.feeds.get(&feed).and_then(|spec| spec.url.host_str())
        {
            self.probes.rests.remove(host);
        }
        if let Some((host, until)) = probed.hold {
            self.hosts.hold(host, until, now);
        }
        if let Some(at) = probed.next_at {
            self.probes.put(feed, at);
        }
    }
}
