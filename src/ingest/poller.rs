//! The poller: who is due, how many at a time, and what is remembered; not what one poll does.

use super::{
    Context, FeedSpec, Upstream,
    due_queue::Queue,
    host_pauses::{Hosts, hosts_of},
    polls::{Poll, Polled},
    walks::{Stepped, is_settled},
};
use crate::{
    feed::{
        archive::ArchiveWalk,
        record::FeedNo,
        schedule::PollState,
        stamp::{SECOND_US, Stamp},
    },
    store::{StoreError, listing},
};
use futures_util::{
    TryStreamExt as _,
    future::{BoxFuture, OptionFuture},
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};
use tokio::{
    task::{Id, JoinError, JoinSet},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, info_span, warn};

mod walk_lane;

mod check_lane;

use check_lane::Probes;

#[cfg(test)]
mod tests;

/// Polls feeds when they are due or hinted at. Cheap to clone; one of the clones runs.
#[derive(Clone)]
pub struct Poller {
    context: Context,
    upstream: Upstream,
    feeds: Arc<BTreeMap<FeedNo, Arc<FeedSpec>>>,
    states: Arc<RwLock<HashMap<FeedNo, PollState>>>,
}

/// Polls in flight at most.
const POLLS_MAX: usize = 64;

/// Steps of walks through archives in flight at most.
const STEPS_MAX: usize = 16;

/// A feed whose host has no place free is looked at again after this.
const HOST_BUSY_SECS: u64 = 1;

/// The due queue is looked at this often at least, in case the clock was set.
const LOOK_SECS: u64 = 60;

/// After a save that failed.
const SAVE_AGAIN_SECS: u64 = 5;

/// How long polls in flight may take to finish when we stop. What they fetched is lost, what they commit is not.
const DRAIN_SECS: u64 = 10;

impl Poller {
    /// Takes up what was remembered of these feeds: what is not due is not polled because we were away (FRB 015, 037).
    pub async fn load(
        context: Context,
        upstream: Upstream,
        feeds: Vec<FeedSpec>,
    ) -> Result<Self, StoreError> {
        let now = Stamp::from_micros(context.clock.now_us());
        let mut saved: HashMap<FeedNo, PollState> = listing::polls(&*context.store).try_collect().await?;
        let mut state_of = |feed: &FeedSpec| {
            let url = feed.bare_url();
            match saved.remove(&feed.no) {
                Some(state) => state.resumed(url.as_str(), &feed.policy, now),
                None => PollState::unpolled(url.as_str()),
            }
        };
        let states = feeds.iter().map(|feed| (feed.no, state_of(feed))).collect();
        let mut records = listing::feeds(&*context.store);
        while let Some(record) = records.try_next().await? {
            context.notify.moved(record.no, record.head());
        }
        drop(records);
        let feeds = feeds.into_iter().map(|feed| (feed.no, Arc::new(feed))).collect();
        Ok(Self { context, upstream, feeds: Arc::new(feeds), states: Arc::new(RwLock::new(states)) })
    }

    /// What is remembered of a feed's polls right now.
    pub fn status(&self, feed: FeedNo) -> Option<PollState> {
        self.states.read().unwrap_or_else(PoisonError::into_inner).get(&feed).cloned()
    }

    /// Polls until `stop`, then finishes what is being committed, saves what is to be remembered and returns.
    pub async fn run(&self, stop: CancellationToken) -> Result<(), StoreError> {
        let store = &*self.context.store;
        let hosts = Hosts::new(listing::host_pauses(store).try_collect().await?);
        let (walks, again) = self.walks().await?;
        let probes = Probes::new(listing::feeds(store).try_collect().await?);
        let mut run = Run::new(self, hosts, walks, again, probes, stop.clone());
        while !stop.is_cancelled() {
            run.start_due();
            run.start_steps();
            run.start_probes();
            run.start_save();
            run.next_event().await;
        }
        run.drain().await
    }

    /// The walks through archives that are not at their end, or whose end is not committed; and when those that are at
    /// their end begin again.
    async fn walks(&self) -> Result<(HashMap<FeedNo, ArchiveWalk>, Vec<(FeedNo, Stamp)>), StoreError> {
        let store = &*self.context.store;
        let mut walks: HashMap<FeedNo, ArchiveWalk> = listing::walks(store).try_collect().await?;
        let mut again = Vec::new();
        let mut records = listing::feeds(store);
        while let Some(record) = records.try_next().await? {
            let feed = self.feeds.get(&record.no).filter(|feed| feed.import.is_some());
            let is_over = |walk: &ArchiveWalk| is_settled(walk, &record);
            if feed.is_none() || walks.get(&record.no).is_some_and(is_over) {
                walks.remove(&record.no);
            }
            let due = feed.zip(record.walked.as_ref()).and_then(|(feed, walked)| feed.walks_again_at(walked));
            if !walks.contains_key(&record.no) {
                again.extend(due.map(|due| (record.no, due)));
            }
        }
        Ok((walks, again))
    }

    fn now(&self) -> Stamp {
        Stamp::from_micros(self.context.clock.now_us())
    }
}

/// A poller at work.
struct Run<'a> {
    poller: &'a Poller,
    stop: CancellationToken,
    queue: Queue,
    hosts: Hosts,
    /// Polls in flight.
    polls: JoinSet<Option<Polled>>,
    tasks: HashMap<Id, InFlight>,
    /// Walks through archives that are not being stepped right now, and when they go on.
    walks: HashMap<FeedNo, ArchiveWalk>,
    walk_queue: Queue,
    /// Steps of walks in flight.
    steps: JoinSet<Option<Stepped>>,
    step_tasks: HashMap<Id, (InFlight, Option<ArchiveWalk>)>,
    probes: Probes,
    /// Feeds that are due while their host has no place free, and since when.
    waiting: Vec<(FeedNo, Stamp)>,
    hints: HashMap<FeedNo, Hint>,
    /// States that no commit has saved yet. All that gather during one save go into the next.
    unsaved: BTreeMap<FeedNo, PollState>,
    saving: Option<Saving>,
    save_after: Instant,
}

/// A poll in flight.
struct InFlight {
    feed: FeedNo,
    hosts: Vec<String>,
}

/// What is known of a feed's hints.
#[derive(Clone, Copy, Debug, Default)]
struct Hint {
    /// Whether one waits for its poll.
    is_waiting: bool,
    /// When one last polled the feed.
    polled_at: Option<Stamp>,
}

/// A save in flight: what it saves if it fails, else nothing.
type Saving = BoxFuture<'static, Result<(), Unsaved>>;

/// What could not be saved, and why.
struct Unsaved {
    polls: BTreeMap<FeedNo, PollState>,
    hosts: BTreeMap<String, Stamp>,
    why: StoreError,
}

impl<'a> Run<'a> {
    fn new(
        poller: &'a Poller,
        hosts: Hosts,
        walks: HashMap<FeedNo, ArchiveWalk>,
        again: Vec<(FeedNo, Stamp)>,
        probes: Probes,
        stop: CancellationToken,
    ) -> Self {
        let mut walk_queue = Queue::default();
        for (feed, at) in again {
            walk_queue.put(feed, at);
        }
        for (feed, walk) in &walks {
            // Of one that is over, only the commit may be missing.
            walk_queue.put(*feed, if walk.is_over() { Stamp::ZERO } else { walk.next_at() });
        }
        let mut queue = Queue::default();
        for (feed, state) in poller.states.read().unwrap_or_else(PoisonError::into_inner).iter() {
            queue.put(*feed, state.next_at);
        }
        Self {
            poller,
            stop,
            queue,
            hosts,
            polls: JoinSet::new(),
            tasks: HashMap::new(),
            walks,
            walk_queue,
            steps: JoinSet::new(),
            step_tasks: HashMap::new(),
            probes,
            hints: HashMap::new(),
            waiting: Vec::new(),
            unsaved: BTreeMap::new(),
            saving: None,
            save_after: Instant::now(),
        }
    }

    /// Starts every poll that is due, as long as there is room.
    fn start_due(&mut self) {
        let now = self.poller.now();
        while self.polls.len() < POLLS_MAX
            && let Some((feed, due)) = self.queue.pop_due(now)
        {
            let (Some(spec), Some(state)) = (self.poller.feeds.get(&feed), self.poller.status(feed)) else {
                continue;
            };
            let hosts = hosts_of(&state, spec.deletions.audit_secs, now);
            let not_before = self.hosts.not_before(&hosts);
            if not_before > now {
                self.queue.put(feed, not_before);
            } else if self.hosts.enter(&hosts) {
                self.start(Arc::clone(spec), state, hosts, now);
            } else {
                self.waiting.push((feed, due));
            }
        }
    }

    fn start(&mut self, spec: Arc<FeedSpec>, state: PollState, hosts: Vec<String>, now: Stamp) {
        let feed = spec.no;
        if let Some(hint) = self.hints.get_mut(&feed).filter(|hint| hint.is_waiting) {
            *hint = Hint { is_waiting: false, polled_at: Some(now) };
        }
        let (context, upstream, stop) =
            (self.poller.context.clone(), self.poller.upstream.clone(), self.stop.clone());
        let span = info_span!("poll", feed.name = %spec.name);
        let poll =
            async move { Poll::new(&context, &spec, &state).run(&upstream, &stop).await }.instrument(span);
        let task = self.polls.spawn(poll).id();
        self.tasks.insert(task, InFlight { feed, hosts });
    }

    /// Waits for whatever happens next and takes it in.
    async fn next_event(&mut self) {
        let wake = self.wake_at();
        let poller = self.poller;
        tokio::select! {
            () = self.stop.cancelled() => {}
            Some(ended) = self.polls.join_next_with_id() => self.finish(ended),
            Some(ended) = self.steps.join_next_with_id() => self.stepped(ended),
            Some(ended) = self.probes.next() => self.probed(ended),
            Some(saved) = OptionFuture::from(self.saving.as_mut()) => self.saved(saved),
            hinted = poller.context.notify.hints() => self.hinted(hinted),
            () = sleep_until(wake) => {}
        }
    }

    /// When to look at the queue again though nothing happened.
    fn wake_at(&self) -> Instant {
        let now = self.poller.now();
        let due = self.queue.next_at().filter(|_| self.polls.len() < POLLS_MAX).unwrap_or(Stamp::MAX);
        let step = self.walk_queue.next_at().filter(|_| self.steps.len() < STEPS_MAX).unwrap_or(Stamp::MAX);
        let due = due.min(step).min(self.probes.next_at());
        let wait_us = due.micros().saturating_sub(now.micros()).min(LOOK_SECS * SECOND_US);
        let due = Instant::now() + Duration::from_micros(wait_us);
        if self.saving.is_none() && self.has_unsaved() { due.min(self.save_after) } else { due }
    }

    /// Takes in what came of a poll.
    fn finish(&mut self, ended: Result<(Id, Option<Polled>), JoinError>) {
        let (task, polled) = match ended {
            Ok((task, polled)) => (task, Ok(polled)),
            Err(error) => (error.id(), Err(error)),
        };
        let Some(InFlight { feed, hosts }) = self.tasks.remove(&task) else { return };
        self.hosts.leave(&hosts);
        self.call_up(Some(feed));
        let polled = match polled {
            Ok(Some(polled)) => polled,
            Ok(None) => return,
            Err(_) => {
                let (Some(spec), Some(state)) = (self.poller.feeds.get(&feed), self.poller.status(feed))
                else {
                    return;
                };
                Poll::new(&self.poller.context, spec, &state).broken()
            }
        };
        let now = self.poller.now();
        if let Some(walk) = polled.walk {
            self.walk_queue.put(feed, walk.next_at());
            self.walks.insert(feed, walk);
        } else if let Some(again_at) = polled.again_at.filter(|_| !self.walks.contains_key(&feed)) {
            self.walk_queue.put(feed, again_at);
        }
        if let Some(at) = polled.check_at {
            self.probes.put(feed, at);
        }
        if let Some((host, until)) = polled.hold {
            self.hosts.hold(host, until, now);
        }
        if polled.is_saved {
            self.unsaved.remove(&feed);
        } else {
            self.unsaved.insert(feed, polled.state.clone());
        }
        self.poller.states.write().unwrap_or_else(PoisonError::into_inner).insert(feed, polled.state);
        self.enqueue(feed, now);
    }

    /// A place has become free: whoever waits for one stands in the queue again since when it was due, so that the feed
    /// that has waited longest is next.
    fn call_up(&mut self, polled: Option<FeedNo>) {
        for (feed, due) in std::mem::take(&mut self.waiting) {
            if Some(feed) != polled && self.tasks.values().all(|in_flight| in_flight.feed != feed) {
                self.queue.put(feed, due);
            }
        }
    }

    /// Notes hints. One for a feed that is being polled counts after that: it may tell of something newer.
    fn hinted(&mut self, feeds: BTreeSet<FeedNo>) {
        let now = self.poller.now();
        for feed in feeds.into_iter().filter(|feed| self.poller.feeds.contains_key(feed)) {
            self.hints.entry(feed).or_default().is_waiting = true;
            if self.tasks.values().all(|in_flight| in_flight.feed != feed) {
                self.enqueue(feed, now);
            }
        }
    }

    /// Puts a feed where it belongs: at its own time, or earlier if a hint waits.
    fn enqueue(&mut self, feed: FeedNo, now: Stamp) {
        let (Some(spec), Some(state)) = (self.poller.feeds.get(&feed), self.poller.status(feed)) else {
            return;
        };
        let hint = self.hints.get(&feed).copied().unwrap_or_default();
        let not_before = self.hosts.not_before(&hosts_of(&state, spec.deletions.audit_secs, now));
        let at = if hint.is_waiting {
            state.next_at.min(state.hinted_at(hint.polled_at, not_before, now))
        } else {
            state.next_at
        };
        self.queue.put(feed, at);
    }

    fn has_unsaved(&self) -> bool {
        !self.unsaved.is_empty() || self.hosts.has_unsaved()
    }

    /// Saves what has gathered, unless a save is under way or has just failed.
    fn start_save(&mut self) {
        if self.saving.is_none() && self.has_unsaved() && Instant::now() >= self.save_after {
            self.saving = Some(self.save());
        }
    }

    fn save(&mut self) -> Saving {
        let (polls, hosts) = (std::mem::take(&mut self.unsaved), self.hosts.take_unsaved());
        let store = Arc::clone(&self.poller.context.store);
        Box::pin(async move {
            let rows = polls.clone().into_iter().collect();
            let saved = store.save_polls(rows, hosts.clone().into_iter().collect()).await;
            saved.map_err(|why| Unsaved { polls, hosts, why })
        })
    }

    fn saved(&mut self, saved: Result<(), Unsaved>) {
        self.saving = None;
        let Err(Unsaved { polls, hosts, why }) = saved else { return };
        warn!(feeds = polls.len(), "Poll states could not be saved, will try again: {why}");
        for (feed, state) in polls {
            // What was learned meanwhile is newer.
            self.unsaved.entry(feed).or_insert(state);
        }
        self.hosts.give_back(hosts);
        self.save_after = Instant::now() + Duration::from_secs(SAVE_AGAIN_SECS);
    }

    /// Lets commits in flight finish, for a while, and saves the rest.
    async fn drain(mut self) -> Result<(), StoreError> {
        let finish_all = async {
            while let Some(ended) = self.polls.join_next_with_id().await {
                self.finish(ended);
            }
            while let Some(ended) = self.steps.join_next_with_id().await {
                self.stepped(ended);
            }
            while let Some(ended) = self.probes.next().await {
                self.probed(ended);
            }
        };
        if timeout(Duration::from_secs(DRAIN_SECS), finish_all).await.is_err() {
            warn!(polls = self.polls.len(), "Stopped without waiting for the last polls");
            self.polls.shutdown().await;
            self.steps.shutdown().await;
            self.probes.shutdown().await;
        }
        if let Some(saving) = self.saving.take() {
            let saved = saving.await;
            self.saved(saved);
        }
        if self.has_unsaved() {
            self.save().await.map_err(|unsaved| unsaved.why)?;
        }
        debug!("The poller has stopped");
        Ok(())
    }
}
