//! Steps of walks through archives among the polls: which walk goes on, and what came of a step; what one step does is the
//! pipeline's business.

use super::{HOST_BUSY_SECS, InFlight, Run, STEPS_MAX};
use crate::{
    feed::archive::ArchiveWalk,
    ingest::{
        host_pauses::hosts_of,
        walks::{ArchiveReader, Stepped},
    },
};
use std::{collections::BTreeSet, sync::Arc};
use tokio::task::{Id, JoinError};
use tracing::{Instrument, info_span};

/// After a step of a walk that broke off.
const BROKEN_SECS: u64 = 3600;

impl Run<'_> {
    /// Starts every step of a walk that is due, as long as there is room.
    pub(super) fn start_steps(&mut self) {
        let now = self.poller.now();
        while self.steps.len() < STEPS_MAX
            && let Some((feed, _)) = self.walk_queue.pop_due(now)
        {
            let (Some(spec), Some(state)) = (self.poller.feeds.get(&feed), self.poller.status(feed)) else {
                continue;
            };
            let hosts = hosts_of(&state, spec.deletions.audit_secs, now);
            let not_before = self.hosts.not_before(&hosts);
            if not_before > now {
                self.walk_queue.put(feed, not_before);
            } else if !self.hosts.enter(&hosts) {
                self.walk_queue.put(feed, now.plus_secs(HOST_BUSY_SECS));
            } else {
                let (poller, stop, spec) = (self.poller.clone(), self.stop.clone(), Arc::clone(spec));
                // A feed that stands in the queue without a walk is to be walked again.
                let walk = self.walks.remove(&feed);
                let token = walk.as_ref().map(ArchiveWalk::token);
                let span = info_span!("walk", feed.name = %spec.name);
                let step = async move {
                    let step = ArchiveReader::new(&poller.context, &poller.upstream, &spec, &state);
                    match walk {
                        Some(walk) => step.go_on(walk, &stop).await,
                        None => step.begin_again(&stop).await,
                    }
                };
                let task = self.steps.spawn(step.instrument(span)).id();
                self.step_tasks.insert(task, (InFlight { feed, hosts }, token));
            }
        }
    }

    /// Takes in what came of a step.
    pub(super) fn stepped(&mut self, ended: Result<(Id, Option<Stepped>), JoinError>) {
        let (task, stepped) = match ended {
            Ok((task, stepped)) => (task, Ok(stepped)),
            Err(error) => (error.id(), Err(error)),
        };
        let Some((InFlight { feed, hosts }, before)) = self.step_tasks.remove(&task) else { return };
        self.hosts.leave(&hosts);
        self.call_up(None);
        let stepped = match stepped {
            Ok(Some(stepped)) => stepped,
            Ok(None) => return,
            Err(error) => {
                tracing::error!("A walk through archives broke off; this is a bug in everfeed: {error}");
                self.walks.extend(before.map(|walk| (feed, walk)));
                self.walk_queue.put(feed, self.poller.now().plus_secs(BROKEN_SECS));
                return;
            }
        };
        let now = self.poller.now();
        if let Some((host, until)) = stepped.hold {
            self.hosts.hold(host, until, now);
        }
        if stepped.wants_poll {
            self.hinted(BTreeSet::from([feed]));
        }
        self.walks.extend(stepped.walk.map(|walk| (feed, walk)));
        if let Some(next_at) = stepped.next_at {
            self.walk_queue.put(feed, next_at);
        }
    }
}
