//! The poller: the feeds that are polled, what is remembered of each, and changes of both while it
//! runs; not the jobs.

use super::{
    Context, FeedSpec, Upstream,
    host_pauses::{PauseEnds, hosts_of},
};
use crate::{
    clock::JumpWatch,
    feed::{
        record::FeedNo,
        schedule::{PollState, Whose},
        stamp::Stamp,
    },
    locks::{read, write},
    store::{StoreError, listing, packed::PackedPollState},
};
use delays::Delays;
use futures_util::TryStreamExt as _;
use imbl::OrdMap;
use inbox::Inbox;
use jobs::JobParts;
use reader_polls::ReaderPolls;
use requests::{PollRequest, REQUESTS_MAX};
use std::{
    collections::HashMap,
    sync::{Arc, RwLock, RwLockReadGuard},
    time::Duration,
};
use tokio::{sync::watch, time::sleep};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use worker::Worker;

mod delays;

mod jobs;

mod lanes;

mod reader_polls;

mod inbox;

mod requests;

mod saving;

mod troubles;

mod waits;

mod worker;

#[cfg(test)]
mod tests;

pub use reader_polls::LONE_WAIT;
pub use requests::{PollAnswer, Urgency};
pub use troubles::Troubles;
pub use waits::{PollWait, WaitCause};

/// Time until a store is read again that could not be read when polling began.
const LOAD_AGAIN: Duration = Duration::from_secs(1);

/// The feeds that are polled, by number.
type WantedFeeds = OrdMap<FeedNo, Arc<FeedSpec>>;

/// Polls feeds when they are due or hinted at. Cheap to clone; one of the clones runs.
#[derive(Clone)]
pub struct Poller {
    parts: JobParts,
    /// The feeds as they are to be polled; a worker takes over what has changed.
    wanted: Arc<watch::Sender<WantedFeeds>>,
    states: Arc<RwLock<HashMap<FeedNo, KeptState>>>,
    troubles: Troubles,
    pauses: PauseEnds,
    requests: Arc<Inbox<PollRequest>>,
    looks: Arc<ReaderPolls>,
    /// The clock since the states were taken up. It may be set right before the worker begins.
    clock: JumpWatch,
}

/// A poll state as it is kept while nothing is done with it.
struct KeptState {
    state: PackedPollState,
    polled_at: Option<Stamp>,
    good_at: Option<Stamp>,
}

/// Times of the last good answers of all feeds.
pub struct GoodTimes<'a>(RwLockReadGuard<'a, HashMap<FeedNo, KeptState>>);

impl GoodTimes<'_> {
    /// That of a feed; `None` where there was none.
    pub fn of(&self, feed: FeedNo) -> Option<Stamp> {
        self.0.get(&feed)?.good_at
    }
}

impl KeptState {
    fn of(state: &PollState) -> Self {
        Self {
            state: PackedPollState::of(state),
            polled_at: state.timetable.polled_at,
            good_at: state.health.good_at,
        }
    }
}

/// A change of the feeds that are polled.
#[derive(Clone, Debug)]
pub enum FeedChange {
    /// This feed is polled from now on. What the store remembers of it counts.
    Added(FeedSpec),
    /// This feed is polled by other settings from now on. Jobs in flight end by the old ones.
    Changed(FeedSpec),
    /// This feed is not polled any more. Jobs in flight end, and their commits stand.
    Removed(FeedNo),
}

impl Poller {
    /// Takes up what was remembered of these feeds: what is not due is not polled because we were
    /// away (FRB 015, 037).
    pub async fn load(
        context: Context,
        upstream: Upstream,
        feeds: Vec<FeedSpec>,
    ) -> Result<Self, StoreError> {
        let now = context.now();
        let clock = JumpWatch::new(now.micros());
        let feeds: WantedFeeds = feeds
            .into_iter()
            .map(|feed| (feed.no, Arc::new(feed)))
            .collect();
        let unpolled = |feed: &FeedSpec| PollState::unpolled(feed.bare_url().as_str());
        let mut states: HashMap<FeedNo, KeptState> = feeds
            .values()
            .map(|feed| (feed.no, KeptState::of(&unpolled(feed))))
            .collect();
        let troubles = Troubles::default();
        let mut saved = listing::polls(&*context.store);
        while let Some((no, state)) = saved.try_next().await? {
            if let Some(feed) = feeds.get(&no) {
                let is_new_url = state.url != feed.bare_url().as_str();
                let state = state.resumed(feed.bare_url().as_str(), &feed.policy(), now);
                if is_new_url && state.url_change.is_some() {
                    let name = &feed.name;
                    info!(feed.name = %name, "The url of feed `{name}` has changed. Its items keep their ids");
                }
                troubles.note(no, Some(feed), &state);
                states.insert(no, KeptState::of(&state));
            }
        }
        drop(saved);
        let mut records = listing::feeds(&*context.store);
        while let Some(record) = records.try_next().await? {
            context.notify.moved(record.no, record.head());
        }
        drop(records);
        let wanted = Arc::new(watch::Sender::new(feeds));
        let (parts, states) = (
            JobParts {
                context,
                look_upstream: upstream.clone(),
                upstream,
            },
            Arc::new(RwLock::new(states)),
        );
        let pauses = PauseEnds::default();
        let delays = Delays {
            wanted: wanted.clone(),
            states: states.clone(),
            pauses: pauses.clone(),
        };
        parts.context.notify.delay_hints(Arc::new(delays));
        Ok(Self {
            parts,
            wanted,
            states,
            troubles,
            pauses,
            requests: Arc::new(Inbox::new(REQUESTS_MAX)),
            looks: Arc::default(),
            clock,
        })
    }

    /// Has looks for readers of old addresses ask by this client, whose pace is their own.
    pub fn looking_by(mut self, upstream: Upstream) -> Self {
        self.parts.look_upstream = upstream;
        self
    }

    /// Changes the feeds that are polled, before it runs or while it does.
    pub fn apply(&self, change: FeedChange) {
        self.apply_all([change]);
    }

    /// The same with many changes, which are taken over at once.
    pub fn apply_all(&self, changes: impl IntoIterator<Item = FeedChange>) {
        self.wanted.send_modify(|feeds| {
            for change in changes {
                match change {
                    FeedChange::Added(feed) | FeedChange::Changed(feed) => {
                        feeds.insert(feed.no, Arc::new(feed));
                    }
                    FeedChange::Removed(feed) => {
                        feeds.remove(&feed);
                    }
                }
            }
        });
    }

    /// The poll state of a feed right now.
    pub fn status(&self, feed: FeedNo) -> Option<PollState> {
        let states = read(&self.states);
        states.get(&feed).map(|kept| kept.state.unpacked())
    }

    /// End of the pause of the hosts of a feed, which puts its next poll off.
    pub fn paused_until(&self, feed: FeedNo) -> Stamp {
        self.state_and_hosts(feed, self.parts.context.now())
            .map_or(Stamp::ZERO, |(_, hosts)| self.pauses.until(&hosts))
    }

    /// The poll state of a feed, and the hosts that its next request meets.
    fn state_and_hosts(&self, feed: FeedNo, now: Stamp) -> Option<(PollState, Vec<String>)> {
        let spec = self.wanted.borrow().get(&feed).cloned()?;
        let state = self.status(feed)?;
        let hosts = hosts_of(&state, spec.deletions.audit_secs, now);
        Some((state, hosts))
    }

    /// Times of the last good answers of all feeds, as they are while this is held. Polls wait for
    /// its end.
    pub fn good_times(&self) -> GoodTimes<'_> {
        GoodTimes(read(&self.states))
    }

    /// Number of feeds that fail, by whose fault that is.
    pub fn failing(&self) -> HashMap<Whose, usize> {
        self.troubles.failing()
    }

    /// Number of the feeds that are polled.
    pub fn polled(&self) -> usize {
        self.wanted.borrow().len()
    }

    /// The feeds that fail or have moved.
    pub fn troubles(&self) -> Troubles {
        self.troubles.clone()
    }

    /// Polls until `stop`, then finishes what is being committed, saves what is to be remembered
    /// and returns. A store that cannot be read at the beginning is tried again.
    pub async fn run(&self, stop: CancellationToken) -> Result<(), StoreError> {
        let mut worker = loop {
            match Worker::load(self, stop.clone()).await {
                Ok(worker) => break worker,
                Err(error) => {
                    let secs = LOAD_AGAIN.as_secs();
                    warn!(
                        "Polling could not begin, because the store could not be read, will try again in {secs} s: {error}"
                    );
                }
            }
            tokio::select! {
                () = sleep(LOAD_AGAIN) => {}
                () = stop.cancelled() => return Ok(()),
            }
        };
        while !stop.is_cancelled() {
            worker.start_jobs();
            worker.next_event().await;
        }
        worker.drain().await
    }

    fn remember(&self, feed: FeedNo, state: &PollState) {
        let spec = self.wanted.borrow().get(&feed).cloned();
        self.troubles.note(feed, spec.as_deref(), state);
        let kept = KeptState::of(state);
        write(&self.states).insert(feed, kept);
    }

    fn forget(&self, feed: FeedNo) {
        self.looks.forget(feed);
        self.troubles.forget(feed);
        write(&self.states).remove(&feed);
    }
}
