//! The worker that runs the lanes: polls, steps of archive walks, permalink checks and look-ups of
//! feeds that were added; not what one job does.

use super::{
    Poller, WantedFeeds,
    lanes::{LaneEvent, Lanes},
    reader_polls::WantedPoll,
    requests::{AwaitedPolls, PollAnswer},
    saving::Saving,
};
use crate::{
    clock::JumpWatch,
    feed::{
        archive::ArchiveWalk,
        record::FeedNo,
        schedule::PollState,
        stamp::{SECOND_US, Stamp},
    },
    ingest::{
        FeedSpec,
        host_pauses::{HostPauses, hosts_of},
    },
    store::{POLLS_LATE_SECS, StoreCondition, StoreError, listing},
};
use asked_polls::AskedPolls;
use futures_util::TryStreamExt as _;
use hinted_polls::Hint;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

mod job_starts;

mod job_ends;

mod next_poll;

mod hinted_polls;

mod asked_polls;

mod feed_changes;

mod clock_jumps;

mod store_faults;

/// Seconds after which the queues are looked at again at least, in case the clock was set.
const LOOK_SECS: u64 = 60;

/// Seconds between two looks at a store that cannot commit.
const STORE_LOOK_SECS: u64 = 1;

/// Seconds for which jobs in flight may finish when we stop. What they fetched is lost, what they
/// commit is not.
const DRAIN_SECS: u64 = 10;

/// Time for which nobody is asked after a start. What was noted late before an unclean end is lost,
/// and a process that dies again and again must not ask a publisher each time.
fn quiet_time(ended_uncleanly: bool) -> Duration {
    Duration::from_secs(if ended_uncleanly { POLLS_LATE_SECS } else { 0 })
}

/// A poller at work.
pub(super) struct Worker<'a> {
    poller: &'a Poller,
    stop: CancellationToken,
    wanted: watch::Receiver<WantedFeeds>,
    feeds: WantedFeeds,
    pauses: HostPauses,
    lanes: Lanes,
    /// Archive walks and hints, by feed.
    agenda: Agenda,
    saving: Saving,
    asked: AskedPolls,
    clock: JumpWatch,
    /// Time before which nobody is asked.
    asks_from: Instant,
    /// Faults of the store so far.
    store_faults: u64,
}

/// Facts of feeds besides their poll states.
#[derive(Default)]
struct Agenda {
    /// Archive walks. Of one that is being stepped only the token is here.
    walks: HashMap<FeedNo, ArchiveWalk>,
    /// Steps of walks that failed on our side in a row.
    failed_steps: HashMap<FeedNo, u32>,
    hints: HashMap<FeedNo, Hint>,
    /// Times before which no page of a host is asked for, because one was.
    checked: HashMap<String, Stamp>,
    /// Polls that an operator waits for.
    awaited: AwaitedPolls,
    /// Looks that readers wait for. One whose feed is polled anyway ends with that poll.
    looks: HashMap<FeedNo, WantedPoll>,
    /// Time of the last look for free places.
    looked_at: Stamp,
}

impl<'a> Worker<'a> {
    /// Takes up every feed: its poll, its archive walk and its permalink checks, each when it is
    /// due.
    pub(super) async fn load(
        poller: &'a Poller,
        stop: CancellationToken,
    ) -> Result<Self, StoreError> {
        let store = &poller.parts.context.store;
        let mut wanted = poller.wanted.subscribe();
        let feeds = wanted.borrow_and_update().clone();
        let mut worker = Self {
            poller,
            stop,
            wanted,
            feeds: feeds.clone(),
            pauses: HostPauses::new(
                poller.pauses.clone(),
                listing::host_pauses(&**store).try_collect().await?,
                poller.parts.context.now(),
            )
            .with_large_domains(&poller.parts.context.config.large_domains)
            .with_nets(poller.parts.context.nets.clone()),
            lanes: Lanes::with_polls(poller.parts.context.config.polls_in_flight_max),
            agenda: Agenda::default(),
            saving: Saving::new(store.clone()),
            asked: AskedPolls::of_nobody(),
            clock: poller.clock,
            asks_from: Instant::now() + quiet_time(store.ended_uncleanly()),
            store_faults: store.figures().faults,
        };
        let mut walks: HashMap<FeedNo, ArchiveWalk> =
            listing::walks(&**store).try_collect().await?;
        let mut records = listing::feeds(&**store);
        while let Some(record) = records.try_next().await? {
            let Some(spec) = feeds.get(&record.no) else {
                continue;
            };
            match poller.status(record.no) {
                Some(state) => worker.lanes.polls.put(record.no, state.timetable.next_at),
                // Added since the poller was loaded.
                None => worker.lanes.recalls.put(record.no, Stamp::ZERO),
            }
            // Its document may be missing, or its times be of a clock that ran ahead.
            let is_ahead = record.last_t > worker.now();
            if spec.legacy_url().is_some() || is_ahead {
                worker.lanes.recalls.put(record.no, Stamp::ZERO);
            }
            worker.take_up(spec, &record, walks.remove(&record.no));
        }
        // Last: what was taken by one that could not be loaded would be lost for the next.
        worker.asked = AskedPolls {
            requests: poller.requests.take(),
            looks: poller.looks.wanted.take(),
        };
        Ok(worker)
    }

    /// Starts every job that is due, as long as there is room, and a save.
    pub(super) fn start_jobs(&mut self) {
        // A feed that was removed is not polled on a hint of the same moment.
        self.take_over_changes();
        self.watch_clock();
        // Nobody is asked for what could not be kept, and no operator waits for the end of that.
        if let StoreCondition::Away(outage) = self.poller.parts.context.store.condition() {
            self.agenda.looks.clear();
            return self.turn_away(&PollAnswer::StoreAway {
                cause: outage.cause,
            });
        }
        self.doubt_noted();
        if Instant::now() < self.asks_from {
            self.agenda.looks.clear();
            return self.saving.start(&mut self.pauses);
        }
        let now = self.now();
        if now >= self.agenda.looked_at.plus_secs(LOOK_SECS) || now < self.agenda.looked_at {
            self.agenda.looked_at = now;
            self.lanes.call_up_for_free(&self.pauses);
        }
        while let Some(due) = self.lanes.recalls.next_due(now) {
            self.start_recall(&due);
        }
        while let Some(due) = self.lanes.looks.next_due(now) {
            self.start_look(&due, now);
        }
        while let Some(due) = self.lanes.polls.next_due(now) {
            self.start_poll(&due, now);
        }
        while let Some(due) = self.lanes.walks.next_due(now) {
            self.start_step(&due, now);
        }
        self.agenda.checked.retain(|_, until| *until > now);
        while let Some(due) = self.lanes.checks.next_due(now) {
            self.start_check(&due, now);
        }
        self.saving.start(&mut self.pauses);
    }

    /// A feed as a job needs it: its settings, its poll state and the hosts that its request meets.
    fn subject(&self, feed: FeedNo, now: Stamp) -> Option<(Arc<FeedSpec>, PollState, Vec<String>)> {
        let (spec, state) = (self.feeds.get(&feed)?, self.poller.status(feed)?);
        let hosts = hosts_of(&state, spec.deletions.audit_secs, now);
        Some((Arc::clone(spec), state, hosts))
    }

    /// Waits for whatever happens next and takes it in.
    pub(super) async fn next_event(&mut self) {
        let wake = self.wake_at();
        let poller = self.poller;
        // In this order, so that a run with the same chances ends the same. Others can cause hints
        // and looks as often as they like, so those come after everything of ours.
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {}
            Some(saved) = self.saving.next() => self.saving.end(saved, &mut self.pauses),
            Ok(()) = self.wanted.changed() => self.change_feeds(),
            event = self.lanes.next() => self.take_in(event),
            Some(request) = self.asked.requests.recv() => self.requested(request),
            hinted = poller.parts.context.notify.hints() => self.hinted(hinted),
            Some(look) = self.asked.looks.recv() => self.look_wanted(look),
            () = sleep_until(wake) => {}
        }
    }

    /// Time to look at the queues again though nothing happened.
    fn wake_at(&self) -> Instant {
        if self.is_store_away() {
            return Instant::now() + Duration::from_secs(STORE_LOOK_SECS);
        }
        let wait_us = self
            .lanes
            .next_at()
            .micros()
            .saturating_sub(self.now().micros());
        let due = Instant::now() + Duration::from_micros(wait_us.min(LOOK_SECS * SECOND_US));
        let due = due.max(self.asks_from);
        self.saving
            .due_at(&self.pauses)
            .map_or(due, |at| due.min(at))
    }

    fn take_in(&mut self, event: LaneEvent) {
        match event {
            LaneEvent::Polled(joined) => {
                if let Some((feed, ended, hosts)) = self.lanes.polls.end(joined, &mut self.pauses) {
                    self.lanes.call_up(&hosts);
                    self.polled(feed, ended);
                }
            }
            LaneEvent::Looked(joined) => {
                if let Some((feed, ended, _)) = self.lanes.looks.end(joined, &mut self.pauses) {
                    self.polled(feed, ended);
                }
            }
            LaneEvent::Stepped(joined) => {
                if let Some((feed, ended, hosts)) = self.lanes.walks.end(joined, &mut self.pauses) {
                    self.lanes.call_up(&hosts);
                    self.stepped(feed, ended);
                }
            }
            LaneEvent::Checked(joined) => {
                if let Some((feed, ended, hosts)) = self.lanes.checks.end(joined, &mut self.pauses)
                {
                    self.lanes.call_up(&hosts);
                    self.checked(feed, ended);
                }
            }
            LaneEvent::Recalled(joined) => {
                if let Some((feed, ended, _)) = self.lanes.recalls.end(joined, &mut self.pauses) {
                    self.recalled(feed, ended);
                }
            }
        }
    }

    /// Lets commits in flight finish, for a while, and saves the rest.
    pub(super) async fn drain(mut self) -> Result<(), StoreError> {
        let finish_all = async {
            while !self.lanes.are_idle() {
                let event = self.lanes.next().await;
                self.take_in(event);
            }
        };
        if timeout(Duration::from_secs(DRAIN_SECS), finish_all)
            .await
            .is_err()
        {
            warn!("Stopped without waiting for the last polls");
            self.lanes.shutdown().await;
        }
        self.saving.finish(&mut self.pauses).await?;
        debug!("The poller has stopped");
        Ok(())
    }

    fn now(&self) -> Stamp {
        self.poller.parts.context.now()
    }
}
