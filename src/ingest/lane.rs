//! One kind of job: its queue, its limit, its jobs in flight, and what a panic in one comes to; not
//! what a job does. Another kind of job needs a type that is a [`LaneJob`], and nothing else.

use super::{compute::stoppable, due_queue::DueQueue, host_pauses::HostPauses};
use crate::feed::{record::FeedNo, stamp::Stamp};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    future::Future,
    time::Duration,
};
use tokio::{
    task::{Id, JoinError, JoinSet},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error, info_span};

#[cfg(test)]
mod tests;

/// A job for one feed.
pub(super) trait LaneJob: Send + 'static {
    /// The kind of job, in logs.
    const KIND: &'static str;
    /// Jobs of this kind in flight at most, unless the lane has another limit.
    const IN_FLIGHT_MAX: usize;
    /// Result of a job.
    type Result: Send + 'static;

    /// Name of its feed, for the log.
    fn feed_name(&self) -> &str;

    /// Does the job. `None` when `stop` came before there was anything to keep.
    fn run(self, stop: CancellationToken) -> impl Future<Output = Option<Self::Result>> + Send;
}

/// Time in flight after which a job counts as slow, and its hosts with it.
const SLOW: Duration = Duration::from_secs(5);

/// The jobs of one kind: at most one a feed is in flight.
///
/// Slow hosts have half of the places at most: hosts that hang do not keep the others waiting.
pub(super) struct Lane<J: LaneJob> {
    in_flight_max: usize,
    /// Hosts whose last job was slow.
    slow_hosts: HashSet<String>,
    /// Feeds that are due while the places of slow hosts are taken, and since when.
    waiting_slow: BTreeSet<(Stamp, FeedNo)>,
    queue: DueQueue,
    tasks: JoinSet<Option<J::Result>>,
    in_flight: HashMap<Id, InFlight>,
    /// Feeds that are due while a host of theirs has no place free, and since when, by that place.
    waiting: HashMap<String, BTreeSet<(Stamp, FeedNo)>>,
    /// Feeds that are due while a job of theirs is in flight, and since when.
    waiting_for_itself: HashMap<FeedNo, Stamp>,
}

/// A job in flight.
struct InFlight {
    feed: FeedNo,
    hosts: Vec<String>,
    places: Vec<String>,
    started: Instant,
    /// True for a job at a host that was slow before.
    is_expected_slow: bool,
}

impl InFlight {
    fn is_slow(&self) -> bool {
        self.is_expected_slow || self.started.elapsed() >= SLOW
    }
}

/// A feed that is due.
pub(super) struct Due {
    /// The feed.
    pub(super) feed: FeedNo,
    since: Stamp,
    now: Stamp,
}

/// A job that may start.
pub(super) struct Ready<J> {
    /// The job.
    pub(super) job: J,
    /// Hosts that it sends requests to.
    pub(super) hosts: Vec<String>,
    /// Time before which it must not start, besides the pauses of its hosts.
    pub(super) not_before: Stamp,
}

impl<J> Ready<J> {
    /// A job that sends requests to these hosts, and may start now.
    pub(super) fn at_hosts(hosts: Vec<String>, job: J) -> Self {
        Self {
            job,
            hosts,
            not_before: Stamp::ZERO,
        }
    }
}

/// A task that has ended, not looked at yet.
pub(super) type Joined<R> = Result<(Id, Option<R>), JoinError>;

/// End of a job.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended<R> {
    /// It came to its end.
    Finished(R),
    /// It was stopped.
    Stopped,
    /// It panicked. That is one failed job: no other one is touched.
    Panicked,
}

impl<J: LaneJob> Default for Lane<J> {
    fn default() -> Self {
        Self {
            in_flight_max: J::IN_FLIGHT_MAX,
            slow_hosts: HashSet::new(),
            waiting_slow: BTreeSet::new(),
            queue: DueQueue::default(),
            tasks: JoinSet::new(),
            in_flight: HashMap::new(),
            waiting: HashMap::new(),
            waiting_for_itself: HashMap::new(),
        }
    }
}

impl<J: LaneJob> Lane<J> {
    /// A lane with so many jobs in flight at most.
    pub(super) fn with_limit(in_flight_max: usize) -> Self {
        Self {
            in_flight_max: in_flight_max.max(1),
            ..Self::default()
        }
    }

    /// Sets the time at which a feed is due.
    pub(super) fn put(&mut self, feed: FeedNo, at: Stamp) {
        self.queue.put(feed, at);
    }

    /// Sets the time at which a feed is due, unless it is due earlier already.
    pub(super) fn put_sooner(&mut self, feed: FeedNo, at: Stamp) {
        self.queue.put_sooner(feed, at);
    }

    /// Makes all feeds due so many microseconds earlier.
    pub(super) fn bring_forward(&mut self, us: u64) {
        self.queue.bring_forward(us);
    }

    /// Takes a feed out of the queue. Its job in flight, if any, goes on.
    pub(super) fn remove(&mut self, feed: FeedNo) {
        self.queue.remove(feed);
        self.waiting_for_itself.remove(&feed);
        self.waiting_slow.retain(|(_, of)| *of != feed);
        for waiting in self.waiting.values_mut() {
            waiting.retain(|(_, of)| *of != feed);
        }
    }

    /// True while a job of the feed is in flight.
    pub(super) fn is_busy_with(&self, feed: FeedNo) -> bool {
        self.in_flight.values().any(|job| job.feed == feed)
    }

    /// Time at which the next feed is due; [`Stamp::MAX`] while as many jobs are in flight as may
    /// be.
    pub(super) fn next_at(&self) -> Stamp {
        self.queue
            .next_at()
            .filter(|_| self.has_room())
            .unwrap_or(Stamp::MAX)
    }

    /// Takes the feed that has been due for longest out of the queue, if there is room for its job.
    pub(super) fn next_due(&mut self, now: Stamp) -> Option<Due> {
        let (feed, since) = if self.has_room() {
            self.queue.pop_due(now)?
        } else {
            return None;
        };
        Some(Due { feed, since, now })
    }

    /// Starts a job, or puts its feed back until its hosts may be asked; then the job is handed
    /// back.
    pub(super) fn start(
        &mut self,
        due: &Due,
        ready: Ready<J>,
        pauses: &mut HostPauses,
        stop: &CancellationToken,
    ) -> Option<J> {
        let Ready {
            job,
            hosts,
            not_before,
        } = ready;
        let not_before = pauses.until(&hosts).max(not_before);
        let places = pauses.places(&hosts);
        if not_before > due.now {
            self.queue.put(due.feed, not_before);
            places.iter().for_each(|place| self.call_up(place));
            return Some(job);
        }
        if self.is_busy_with(due.feed) {
            self.waiting_for_itself.insert(due.feed, due.since);
            return Some(job);
        }
        let is_expected_slow = hosts.iter().any(|host| self.slow_hosts.contains(host));
        if is_expected_slow && !self.has_slow_room() {
            places.iter().for_each(|place| self.call_up(place));
            self.waiting_slow.insert((due.since, due.feed));
            return Some(job);
        }
        if let Err(full) = pauses.enter(&places) {
            // It was called up for another place, perhaps, which it leaves to the next.
            places
                .iter()
                .filter(|place| **place != full)
                .for_each(|place| self.call_up(place));
            if is_expected_slow {
                self.call_up_slow();
            }
            self.waiting
                .entry(full)
                .or_default()
                .insert((due.since, due.feed));
            return Some(job);
        }
        let span = info_span!("job", job.kind = %J::KIND, feed.name = %job.feed_name());
        let stop = stop.clone();
        let running = async move { stoppable(&stop, job.run(stop.clone())).await };
        let task = self.tasks.spawn(running.instrument(span)).id();
        self.in_flight.insert(
            task,
            InFlight {
                feed: due.feed,
                hosts,
                places,
                started: Instant::now(),
                is_expected_slow,
            },
        );
        None
    }

    /// Waits for the next task that ends; for ever while none is in flight. Safe to drop while it
    /// waits.
    pub(super) async fn next(&mut self) -> Joined<J::Result> {
        match self.tasks.join_next_with_id().await {
            Some(joined) => joined,
            None => std::future::pending().await,
        }
    }

    /// Takes in a task that has ended, and gives its places back. They are told, for those who wait
    /// for them in any lane.
    pub(super) fn end(
        &mut self,
        joined: Joined<J::Result>,
        pauses: &mut HostPauses,
    ) -> Option<(FeedNo, Ended<J::Result>, Vec<String>)> {
        let task = joined
            .as_ref()
            .map_or_else(JoinError::id, |(task, _)| *task);
        let InFlight {
            feed,
            hosts,
            places,
            started,
            ..
        } = self.in_flight.remove(&task)?;
        pauses.leave(&places);
        for host in &hosts {
            if started.elapsed() >= SLOW {
                self.slow_hosts.insert(host.clone());
            } else {
                self.slow_hosts.remove(host);
            }
        }
        self.call_up_slow();
        if let Some(since) = self.waiting_for_itself.remove(&feed) {
            self.queue.put_sooner(feed, since);
        }
        let ended = match joined {
            Ok((_, Some(result))) => Ended::Finished(result),
            Ok((_, None)) => Ended::Stopped,
            Err(error) if error.is_cancelled() => Ended::Stopped,
            Err(error) => {
                error!(job.kind = J::KIND, feed.no = %feed, "A {} broke off; this is a bug in everfeed: {error}", J::KIND);
                Ended::Panicked
            }
        };
        Some((feed, ended, places))
    }

    /// Puts the feed that has waited longest for this place into the queue again, since when it was
    /// due.
    pub(super) fn call_up(&mut self, place: &str) {
        let Some(waiting) = self.waiting.get_mut(place) else {
            return;
        };
        if let Some((since, feed)) = waiting.pop_first() {
            self.queue.put_sooner(feed, since);
        }
        if waiting.is_empty() {
            self.waiting.remove(place);
        }
    }

    /// Puts the feed at a slow host that has waited longest into the queue again, if there is a
    /// place for it.
    fn call_up_slow(&mut self) {
        if !self.waiting_slow.is_empty()
            && self.has_slow_room()
            && let Some((since, feed)) = self.waiting_slow.pop_first()
        {
            self.queue.put_sooner(feed, since);
        }
    }

    /// Calls up a feed for each place that is free: the one that was called up before may
    /// have been removed since.
    pub(super) fn call_up_for_free(&mut self, pauses: &HostPauses) {
        let free: Vec<String> = self
            .waiting
            .keys()
            .filter(|place| pauses.has_room(place))
            .cloned()
            .collect();
        free.iter().for_each(|place| self.call_up(place));
        self.call_up_slow();
    }

    /// True while no job is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Ends every job in flight at once.
    pub(super) async fn shutdown(&mut self) {
        self.tasks.shutdown().await;
    }

    fn has_room(&self) -> bool {
        self.tasks.len() < self.in_flight_max
    }

    /// True while slow jobs have less than half of the places.
    fn has_slow_room(&self) -> bool {
        let slow = self.in_flight.values().filter(|job| job.is_slow()).count();
        slow < (self.in_flight_max / 2).max(1)
    }
}
