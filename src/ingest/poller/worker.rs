//! The worker that runs the lanes: polls, steps of archive walks, permalink checks and look-ups of
//! feeds that were added; not what one job does.

use super::{
    Poller, WantedFeeds,
    jobs::{CheckJob, LookJob, PollJob, RecallJob, Recalled, WalkJob, goes_on_at},
    lanes::{Event, Lanes},
    looks::WantedLook,
    requests::{AwaitedPolls, PollAnswer, PollRequest},
    saving::Saving,
};
use crate::{
    clock::{Jump, JumpWatch},
    feed::{
        archive::ArchiveWalk,
        record::{FeedNo, FeedRecord, Head},
        schedule::{PollState, RETRY_AFTER_SECS_MAX},
        stamp::{SECOND_US, Stamp},
    },
    ingest::{
        FeedSpec,
        checks::Checked,
        host_pauses::{HostPauses, hosts_of},
        lane::{Due, Ended, Ready},
        polls::{Poll, PollEnd, PollSaving, Polled},
        walks::Stepped,
    },
    layers::is_near,
    store::{POLLS_LATE_SECS, StoreCondition, StoreError, listing},
};
use futures_util::TryStreamExt as _;
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

/// Seconds after which the queues are looked at again at least, in case the clock was set.
const LOOK_SECS: u64 = 60;

/// Seconds between two looks at a store that cannot commit.
const STORE_LOOK_SECS: u64 = 1;

/// Seconds between two polls without validators that repeat polls on hints, at an origin on this
/// machine or its network.
const REPEAT_SECS: u64 = 60;

/// Seconds before a fault of the store in which polls may have been noted that it has lost.
const DOUBTED_SECS: u64 = 2 * POLLS_LATE_SECS;

/// Seconds for which jobs in flight may finish when we stop. What they fetched is lost, what they
/// commit is not.
const DRAIN_SECS: u64 = 10;

/// Seconds after a step of a walk, or a permalink check, that broke off.
const BROKEN_SECS: u64 = 3600;

/// Seconds to the next permalink check at most: a page that is still there is asked for again after
/// a month.
const CHECK_SECS_MAX: u64 = 30 * 86_400;

/// Seconds after a look-up in the store that failed.
const RECALL_AGAIN_SECS: u64 = 5;

/// Time for which nobody is asked after a start. What was noted late before an unclean end is lost,
/// and a process that dies again and again must not ask a publisher each time.
fn quiet_time(ended_uncleanly: bool) -> Duration {
    Duration::from_secs(if ended_uncleanly { POLLS_LATE_SECS } else { 0 })
}

/// A poller at work.
pub(super) struct Worker<'a> {
    poller: &'a Poller,
    stop: CancellationToken,
    wanted: watch::Receiver<Arc<WantedFeeds>>,
    feeds: Arc<WantedFeeds>,
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

/// The ways by which others ask for polls.
struct AskedPolls {
    /// Operators.
    requests: mpsc::Receiver<PollRequest>,
    /// Readers of old addresses.
    looks: mpsc::Receiver<WantedLook>,
}

impl AskedPolls {
    /// Requests that nobody makes.
    fn of_nobody() -> Self {
        Self {
            requests: mpsc::channel(1).1,
            looks: mpsc::channel(1).1,
        }
    }
}

/// Facts of feeds besides their poll states.
#[derive(Default)]
struct Agenda {
    /// Archive walks. Of one that is being stepped only the token is here.
    walks: HashMap<FeedNo, ArchiveWalk>,
    hints: HashMap<FeedNo, Hint>,
    /// Times before which no page of a host is asked for, because one was.
    checked: HashMap<String, Stamp>,
    /// Polls that an operator waits for.
    awaited: AwaitedPolls,
    /// Looks that readers wait for. One whose feed is polled anyway ends with that poll.
    looks: HashMap<FeedNo, WantedLook>,
    /// Time of the last look for free places.
    looked_at: Stamp,
}

/// Hints of a feed.
#[derive(Clone, Copy, Debug, Default)]
struct Hint {
    /// Time from which on the one that waits may be polled for; `None` while none waits.
    waits_until: Option<Stamp>,
    /// Time of the last poll on a hint.
    polled_at: Option<Stamp>,
    /// The head of the feed when the poll on a hint began that is under way.
    head: Option<Head>,
    /// Time of a poll without validators, which repeats one on a hint that was answered by 304.
    repeat_at: Option<Stamp>,
    /// Time of the last one.
    repeated_at: Option<Stamp>,
    /// True while one is under way.
    is_repeating: bool,
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
            ),
            lanes: Lanes::default(),
            agenda: Agenda::default(),
            saving: Saving::new(store.clone()),
            asked: AskedPolls::of_nobody(),
            clock: JumpWatch::new(poller.parts.context.now().micros()),
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
            // Its document may be missing.
            if spec.legacy_url().is_some() {
                worker.lanes.recalls.put(record.no, Stamp::ZERO);
            }
            worker.take_up(spec, &record, walks.remove(&record.no));
        }
        // Last: what was taken by one that could not be loaded would be lost for the next.
        worker.asked = AskedPolls {
            requests: poller.requests.take(),
            looks: poller.looks.take(),
        };
        Ok(worker)
    }

    /// Queues the archive walk and the permalink checks of a feed.
    fn take_up(&mut self, spec: &FeedSpec, record: &FeedRecord, walk: Option<ArchiveWalk>) {
        let feed = record.no;
        // A later time was stored while the clock ran ahead.
        let latest = |secs: u64| self.now().plus_secs(secs);
        let (walked_by, checked_by) = (latest(RETRY_AFTER_SECS_MAX), latest(CHECK_SECS_MAX));
        if spec.reads_archives() && !self.lanes.walks.is_busy_with(feed) {
            // One of another URL is given up by its next step.
            let going = walk.and_then(|walk| {
                let is_stale = !walk.is_of(&spec.bare_url());
                let at = if is_stale {
                    Stamp::ZERO
                } else {
                    goes_on_at(&walk, record)?
                };
                Some((at, walk))
            });
            let again = record
                .completeness
                .last_walk
                .as_ref()
                .and_then(|walked| spec.walks_again_at(walked));
            if let Some((at, walk)) = going {
                self.lanes.walks.put(feed, at.min(walked_by));
                self.agenda.walks.insert(feed, walk);
            } else if let Some(at) = again {
                self.lanes.walks.put(feed, at);
            }
        }
        if let Some(at) = record.window.next_check_at {
            self.lanes.checks.put_sooner(feed, at.min(checked_by));
        }
    }

    /// Starts every job that is due, as long as there is room, and a save.
    pub(super) fn start_jobs(&mut self) {
        // A feed that was removed is not polled on a hint of the same moment.
        if self.wanted.has_changed().unwrap_or(false) {
            self.change_feeds();
        }
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
            let Some(spec) = self.feeds.get(&due.feed).cloned() else {
                continue;
            };
            let job = RecallJob {
                parts: self.poller.parts.clone(),
                spec,
            };
            let ready = Ready::at_hosts(Vec::new(), job);
            self.lanes
                .recalls
                .start(&due, ready, &mut self.pauses, &self.stop);
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

    // Decides: What is read again after a fault of the store?
    /// After a fault of the store, has the last documents read again: it may have lost what it noted
    /// of them, and a publisher who answers 304 would never show it again.
    fn doubt_noted(&mut self) {
        let faults = self.poller.parts.context.store.figures().faults;
        if std::mem::replace(&mut self.store_faults, faults) == faults {
            return;
        }
        let now = self.now();
        for feed in self.feeds.keys() {
            let Some(state) = self.poller.status(*feed) else {
                continue;
            };
            let polled_at = state.timetable.polled_at.unwrap_or_default();
            if polled_at.plus_secs(DOUBTED_SECS) >= now {
                self.poller.remember(*feed, &state.without_document());
            }
        }
    }

    /// Starts a look, unless its feed is being polled or its hosts want to be left alone.
    fn start_look(&mut self, due: &Due, now: Stamp) {
        if self.lanes.polls.is_busy_with(due.feed) {
            return;
        }
        if !self.agenda.looks.contains_key(&due.feed) {
            return;
        }
        let Some((spec, state, hosts)) = self.subject(due.feed, now) else {
            return;
        };
        if self.pauses.until(&hosts) > now {
            self.agenda.looks.remove(&due.feed);
            return;
        }
        let parts = self.poller.parts.clone();
        let job = LookJob(PollJob {
            parts,
            spec,
            state,
            is_unconditional: false,
        });
        // The places at its hosts are for those who do not wait.
        let ready = Ready::at_hosts(Vec::new(), job);
        self.lanes
            .looks
            .start(due, ready, &mut self.pauses, &self.stop);
    }

    fn start_poll(&mut self, due: &Due, now: Stamp) {
        // The end of the look queues the poll again.
        if self.lanes.looks.is_busy_with(due.feed) {
            return;
        }
        let Some((spec, state, mut hosts)) = self.subject(due.feed, now) else {
            return;
        };
        let is_urgent = self.agenda.awaited.is_urgent(due.feed);
        if is_urgent {
            // The operator means it: no pause of a host counts, and its places are for others.
            hosts.clear();
        }
        let hint = self
            .agenda
            .hints
            .get(&due.feed)
            .copied()
            .unwrap_or_default();
        let is_repeat = hint.repeat_at.is_some_and(|at| at <= now);
        let is_unconditional = is_urgent || is_repeat;
        let job = PollJob {
            parts: self.poller.parts.clone(),
            spec,
            state,
            is_unconditional,
        };
        let ready = Ready::at_hosts(hosts, job);
        if self
            .lanes
            .polls
            .start(due, ready, &mut self.pauses, &self.stop)
            .is_some()
        {
            return;
        }
        self.agenda.awaited.begin(due.feed);
        let Some(hint) = self.agenda.hints.get_mut(&due.feed) else {
            return;
        };
        if is_unconditional {
            hint.repeat_at = None;
        }
        if is_repeat {
            (hint.repeated_at, hint.is_repeating) = (Some(now), true);
        }
        if hint.waits_until.is_some() {
            let notify = &self.poller.parts.context.notify;
            notify.hint_heard(due.feed);
            *hint = Hint {
                waits_until: None,
                polled_at: Some(now),
                head: notify.head(due.feed),
                ..*hint
            };
        }
    }

    fn start_step(&mut self, due: &Due, now: Stamp) {
        let Some((spec, state, hosts)) = self.subject(due.feed, now) else {
            return;
        };
        if !spec.reads_archives() {
            return;
        }
        // A feed that stands in the queue without a walk is to be walked again.
        let walk = self.agenda.walks.remove(&due.feed);
        // Nothing but the end of the old walk comes before the first document of a changed URL;
        // that calls the feed up again.
        if state.url_change.is_some()
            && walk
                .as_ref()
                .is_none_or(|walk| walk.is_of(&spec.bare_url()))
        {
            return;
        }
        let token = walk.as_ref().map(ArchiveWalk::token);
        let job = WalkJob {
            parts: self.poller.parts.clone(),
            spec,
            state,
            walk,
        };
        let ready = Ready::at_hosts(hosts, job);
        let kept = match self
            .lanes
            .walks
            .start(due, ready, &mut self.pauses, &self.stop)
        {
            Some(job) => job.walk,
            None => token,
        };
        self.agenda.walks.extend(kept.map(|walk| (due.feed, walk)));
    }

    fn start_check(&mut self, due: &Due, now: Stamp) {
        let Some((spec, state, hosts)) = self.subject(due.feed, now) else {
            return;
        };
        // Before the first document of a changed URL its pages say nothing of the items that are
        // held.
        if !spec.deletions.permalink_checks
            || state.health.gone_at.is_some()
            || state.url_change.is_some()
        {
            return;
        }
        let gap_secs = self.poller.parts.context.config.permalink_check_gap_secs;
        let host = spec.url.host_str().unwrap_or_default().to_owned();
        let checked = self.agenda.checked.get(&host).copied().unwrap_or_default();
        // Of a publisher who does not even answer for the feed no page is asked for before the next
        // poll has ended.
        let down = if state.health.failures > 0 {
            state.timetable.next_at.plus_secs(gap_secs)
        } else {
            Stamp::ZERO
        };
        let job = CheckJob {
            parts: self.poller.parts.clone(),
            spec,
            state,
        };
        let ready = Ready {
            not_before: checked.max(down),
            ..Ready::at_hosts(hosts, job)
        };
        if self
            .lanes
            .checks
            .start(due, ready, &mut self.pauses, &self.stop)
            .is_none()
        {
            self.agenda.checked.insert(host, now.plus_secs(gap_secs));
        }
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
        tokio::select! {
            () = self.stop.cancelled() => {}
            event = self.lanes.next() => self.take_in(event),
            Some(saved) = self.saving.next() => self.saving.end(saved, &mut self.pauses),
            hinted = poller.parts.context.notify.hints() => self.hinted(hinted),
            Ok(()) = self.wanted.changed() => self.change_feeds(),
            Some(request) = self.asked.requests.recv() => self.requested(request),
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

    fn take_in(&mut self, event: Event) {
        match event {
            Event::Polled(joined) => {
                if let Some((feed, ended, hosts)) = self.lanes.polls.end(joined, &mut self.pauses) {
                    self.lanes.call_up(&hosts);
                    self.polled(feed, ended);
                }
            }
            Event::Looked(joined) => {
                if let Some((feed, ended, _)) = self.lanes.looks.end(joined, &mut self.pauses) {
                    self.polled(feed, ended);
                }
            }
            Event::Stepped(joined) => {
                if let Some((feed, ended, hosts)) = self.lanes.walks.end(joined, &mut self.pauses) {
                    self.lanes.call_up(&hosts);
                    self.stepped(feed, ended);
                }
            }
            Event::Checked(joined) => {
                if let Some((feed, ended, hosts)) = self.lanes.checks.end(joined, &mut self.pauses)
                {
                    self.lanes.call_up(&hosts);
                    self.checked(feed, ended);
                }
            }
            Event::Recalled(joined) => {
                if let Some((feed, ended, _)) = self.lanes.recalls.end(joined, &mut self.pauses) {
                    self.recalled(feed, ended);
                }
            }
        }
    }

    /// Takes in the end of a poll, or of a look.
    fn polled(&mut self, feed: FeedNo, ended: Ended<(Arc<FeedSpec>, Polled)>) {
        // Whoever waits for a look is told when everything is taken in.
        let look = self.agenda.looks.remove(&feed);
        self.repeat_hinted(feed, &ended);
        let notify = &self.poller.parts.context.notify;
        let repeats_now = |hint: &Hint| {
            hint.repeat_at
                .is_some_and(|at| at <= self.poller.parts.context.now())
        };
        let hint = self
            .agenda
            .hints
            .get_mut(&feed)
            .filter(|hint| !repeats_now(hint));
        if let Some(before) = hint.and_then(|hint| hint.head.take()) {
            // A hint is right when its poll brought something that consumers see.
            notify.hint_ended(feed, notify.head(feed) != Some(before));
        }
        let current = self.feeds.get(&feed).cloned();
        let (spec, polled) = match ended {
            Ended::Finished(result) => result,
            Ended::Stopped => return,
            Ended::Panicked => {
                let Some((spec, state)) = current.clone().zip(self.poller.status(feed)) else {
                    return;
                };
                let polled = Poll::new(&self.poller.parts.context, &spec, &state).broken();
                (spec, polled)
            }
        };
        let now = self.now();
        if let Some((host, until)) = polled.host_pause {
            self.pauses.pause(host, until, now);
        } else if self.agenda.awaited.is_urgent(feed) && polled.end.is_good() {
            let hosts = hosts_of(&polled.state, spec.deletions.audit_secs, now);
            self.pauses.end_now(&hosts, now);
        }
        self.saving.note(feed, &polled.state, polled.saving);
        let Some(current) = current else { return };
        let next_at = polled.state.timetable.next_at;
        let end = polled.end;
        if !self.agenda.awaited.awaits_urgent(feed) {
            self.agenda.awaited.tell(
                feed,
                &PollAnswer::Ended {
                    end: end.clone(),
                    next_at,
                },
            );
        }
        if let Some(walk) = polled.walk {
            self.lanes.walks.put(feed, walk.next_at());
            self.agenda.walks.insert(feed, walk);
        } else if let Some(at) = polled.again_at
            && !self.agenda.walks.contains_key(&feed)
        {
            self.lanes.walks.put(feed, at);
        }
        if let Some(at) = polled.check_at {
            self.lanes.checks.put_sooner(feed, at);
        }
        let mut state = if Arc::ptr_eq(&spec, &current) {
            polled.state
        } else {
            polled
                .state
                .under(current.bare_url().as_str(), &current.policy(), now)
        };
        let before = self.poller.status(feed);
        let accepted = before.as_ref().filter(|before| before.has_consent());
        if accepted.is_some_and(|before| before.asked_about() == state.asked_about()) {
            // The operator has accepted the URL while it was polled.
            if let Some(accepted) = state.clone().consented() {
                state = accepted;
                state.timetable.next_at = now;
                self.saving.note(feed, &state, PollSaving::AtOnce);
            }
        }
        let is_new_of_site = spec.legacy_url() != current.legacy_url();
        let is_accepted =
            before.is_some_and(|before| before.url_change.is_some()) && state.url_change.is_none();
        if is_accepted || is_new_of_site {
            // What waited for this document goes on: walks and permalink checks. Of a feed that its
            // site has taken in meanwhile it was not kept.
            self.lanes.recalls.put(feed, now);
        }
        self.poller.remember(feed, &state);
        self.enqueue(feed, now);
        if let Some(look) = look {
            self.poller.looks.ended(&look, &end);
        }
    }

    fn stepped(&mut self, feed: FeedNo, ended: Ended<Stepped>) {
        let now = self.now();
        let stepped = match ended {
            Ended::Finished(stepped) => stepped,
            Ended::Stopped => return,
            Ended::Panicked => return self.lanes.walks.put(feed, now.plus_secs(BROKEN_SECS)),
        };
        if let Some((host, until)) = stepped.host_pause {
            self.pauses.pause(host, until, now);
        }
        self.agenda.walks.remove(&feed);
        if self
            .feeds
            .get(&feed)
            .is_none_or(|spec| !spec.reads_archives())
        {
            return;
        }
        if stepped.wants_poll {
            self.poll_soon(feed, Stamp::ZERO);
        }
        self.agenda
            .walks
            .extend(stepped.walk.map(|walk| (feed, walk)));
        if let Some(next_at) = stepped.next_at {
            self.lanes.walks.put(feed, next_at);
        }
    }

    fn checked(&mut self, feed: FeedNo, ended: Ended<Checked>) {
        let now = self.now();
        let checked = match ended {
            Ended::Finished(checked) => checked,
            Ended::Stopped => return,
            Ended::Panicked => {
                return self
                    .lanes
                    .checks
                    .put_sooner(feed, now.plus_secs(BROKEN_SECS));
            }
        };
        if !checked.asked
            && let Some(host) = self.feeds.get(&feed).and_then(|spec| spec.url.host_str())
        {
            self.agenda.checked.remove(host);
        }
        if let Some((host, until)) = checked.host_pause {
            self.pauses.pause(host, until, now);
        }
        if let Some(at) = checked.next_at {
            self.lanes.checks.put_sooner(feed, at);
        }
    }

    /// Takes up a feed that was added or changed, with what the store knows of it.
    fn recalled(&mut self, feed: FeedNo, ended: Ended<Result<Recalled, StoreError>>) {
        let now = self.now();
        let Some(spec) = self.feeds.get(&feed).cloned() else {
            return;
        };
        let Recalled {
            record,
            state,
            walk,
            lacks_document,
        } = match ended {
            Ended::Finished(Ok(recalled)) => recalled,
            Ended::Finished(Err(error)) => {
                let name = &spec.name;
                warn!(feed.name = %name, "The record of `{name}` could not be read, will try again: {error}");
                return self
                    .lanes
                    .recalls
                    .put(feed, now.plus_secs(RECALL_AGAIN_SECS));
            }
            Ended::Stopped => return,
            Ended::Panicked => return self.lanes.recalls.put(feed, now.plus_secs(BROKEN_SECS)),
        };
        self.poller.parts.context.notify.moved(feed, record.head());
        self.take_up(&spec, &record, walk);
        // What is remembered here is newer than what is stored.
        if self.poller.status(feed).is_none() {
            let url = spec.bare_url();
            let resumed = state.map(|state| state.resumed(url.as_str(), &spec.policy(), now));
            self.poller.remember(
                feed,
                &resumed.unwrap_or_else(|| PollState::unpolled(url.as_str())),
            );
        }
        if lacks_document {
            // It was polled before its site had it: until the next poll its readers would get nothing.
            return self.poll_soon(feed, Stamp::ZERO);
        }
        if !self.lanes.are_polling(feed) {
            self.enqueue(feed, now);
        }
    }

    /// Takes over the feeds that are wanted: those that were added or changed are looked up, those
    /// that were removed are not polled any more.
    fn change_feeds(&mut self) {
        let now = self.now();
        let wanted = self.wanted.borrow_and_update().clone();
        let before = std::mem::replace(&mut self.feeds, wanted.clone());
        for feed in before.keys().filter(|feed| !wanted.contains_key(feed)) {
            self.lanes.remove(*feed);
            self.agenda.walks.remove(feed);
            self.agenda.hints.remove(feed);
            self.agenda.looks.remove(feed);
            self.agenda.awaited.tell(*feed, &PollAnswer::Unknown);
            self.poller.forget(*feed);
        }
        for (feed, spec) in wanted.iter() {
            if before
                .get(feed)
                .is_some_and(|known| Arc::ptr_eq(known, spec))
            {
                continue;
            }
            let is_of_old_url = |walk: &ArchiveWalk| !walk.is_of(&spec.bare_url());
            if !spec.reads_archives() || self.agenda.walks.get(feed).is_some_and(is_of_old_url) {
                self.lanes.walks.remove(*feed);
                self.agenda.walks.remove(feed);
            }
            if let Some(state) = self.poller.status(*feed) {
                let state = state.under(spec.bare_url().as_str(), &spec.policy(), now);
                self.saving.note(*feed, &state, PollSaving::Late);
                self.poller.remember(*feed, &state);
            }
            self.lanes.recalls.put(*feed, now);
        }
    }

    /// Takes in hints of others.
    fn hinted(&mut self, feeds: BTreeSet<FeedNo>) {
        for feed in feeds {
            let notify = &self.poller.parts.context.notify;
            if !self.feeds.contains_key(&feed) {
                notify.hint_heard(feed);
            } else if let Some(hint) = notify.hinted(feed) {
                self.poll_soon(feed, hint.not_before);
            }
        }
    }

    /// Has a feed polled for a hint, not before that time. One for a feed that is being polled
    /// counts after that: it may tell of something newer.
    fn poll_soon(&mut self, feed: FeedNo, not_before: Stamp) {
        let hint = self.agenda.hints.entry(feed).or_default();
        hint.waits_until = Some(hint.waits_until.map_or(not_before, |at| at.min(not_before)));
        if !self.lanes.are_polling(feed) {
            self.enqueue(feed, self.now());
        }
    }

    /// Takes in a request for a poll. One for a feed that is being polled is answered by that poll.
    fn requested(&mut self, request: PollRequest) {
        let (feed, now) = (request.feed, self.now());
        if request.accepts_url
            && let Some(state) = self.poller.status(feed).and_then(PollState::consented)
        {
            self.saving.note(feed, &state, PollSaving::AtOnce);
            self.poller.remember(feed, &state);
        }
        let polled = self
            .subject(feed, now)
            .map(|(_, state, hosts)| (state, self.pauses.until(&hosts)));
        if self.agenda.awaited.take_in(request, polled, now) && !self.lanes.are_polling(feed) {
            self.lanes.polls.put(feed, now);
        }
    }

    /// Takes in a look. One at a feed that is being polled ends with that poll.
    fn look_wanted(&mut self, look: WantedLook) {
        let feed = look.feed;
        if self.feeds.contains_key(&feed) {
            self.agenda.looks.insert(feed, look);
            self.lanes.looks.put(feed, self.now());
        }
    }

    /// Answers every request for a poll whose poll is not under way.
    fn turn_away(&mut self, answer: &PollAnswer) {
        for feed in self.agenda.awaited.feeds() {
            if !self.lanes.are_polling(feed) {
                self.agenda.awaited.tell(feed, answer);
            }
        }
    }

    // Decides: When is a poll on a ping repeated without validators?
    /// After a poll on a hint that was answered by 304, has the feed polled without validators:
    /// some publishers say 304 although a post was withdrawn. As often as once a minute at an
    /// origin on this machine or its network; elsewhere, since strangers can ping, once in
    /// `audit_secs`, other polls without validators included. One that was not sent, or whose
    /// document was not kept, is due again.
    fn repeat_hinted(&mut self, feed: FeedNo, ended: &Ended<(Arc<FeedSpec>, Polled)>) {
        let Ended::Finished((spec, polled)) = ended else {
            return;
        };
        let (timetable, now) = (&polled.state.timetable, self.poller.parts.context.now());
        let is_conditional = timetable.unconditional_at != timetable.polled_at;
        let Some(hint) = self.agenda.hints.get_mut(&feed) else {
            return;
        };
        let has_repeated = std::mem::take(&mut hint.is_repeating);
        match polled.end {
            PollEnd::Postponed { wait_secs } | PollEnd::NotKept { wait_secs, .. }
                if has_repeated =>
            {
                hint.repeat_at = Some(now.plus_secs(wait_secs));
            }
            PollEnd::Unchanged if is_conditional && hint.head.is_some() => {
                let (gap_secs, last) = if is_near(&spec.url) {
                    (REPEAT_SECS, hint.repeated_at)
                } else {
                    (
                        spec.deletions.audit_secs,
                        hint.repeated_at.max(timetable.unconditional_at),
                    )
                };
                // A moment that is still to come is of a clock that went back since.
                let last = last.filter(|at| *at <= now);
                hint.repeat_at = Some(last.map_or(Stamp::ZERO, |at| at.plus_secs(gap_secs)));
            }
            _ => {}
        }
    }

    /// Queues the next poll of a feed: at its own time, or earlier if a hint waits or is repeated,
    /// or an operator waits.
    fn enqueue(&mut self, feed: FeedNo, now: Stamp) {
        let Some((_, state, hosts)) = self.subject(feed, now) else {
            return;
        };
        if self.agenda.awaited.awaits_urgent(feed) {
            return self.lanes.polls.put(feed, now);
        }
        let hint = self.agenda.hints.get(&feed).copied().unwrap_or_default();
        let pause = self.pauses.until(&hosts);
        let mut at = state.timetable.next_at;
        if let Some(waits_until) = hint.waits_until {
            at = at.min(state.hinted_at(hint.polled_at, pause, now).max(waits_until));
            let why = if pause > now {
                Some("its host asked to be left alone")
            } else if waits_until > now {
                Some("the pings before it brought nothing new")
            } else {
                None
            };
            if let Some(why) = why
                && at < state.timetable.next_at
            {
                self.keep_hint(feed, state.clone(), at, why);
            }
        }
        if let Some(repeat_at) = hint.repeat_at {
            at = at.min(state.hinted_at(None, pause, now).max(repeat_at));
        }
        self.lanes.polls.put(feed, at);
    }

    /// Has a feed polled at the end of the time for which its hint waits, also if everfeed is
    /// started again meanwhile.
    fn keep_hint(&mut self, feed: FeedNo, mut state: PollState, at: Stamp, why: &str) {
        if let Some(spec) = self.feeds.get(&feed) {
            let (name, until) = (&spec.name, at.rfc3339());
            info!(feed.name = %name, until, "A ping or publish hint for `{name}` waits until {until}: {why}");
        }
        state.timetable.next_at = at;
        self.saving.note(feed, &state, PollSaving::AtOnce);
        self.poller.remember(feed, &state);
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

    // Decides: What happens to polls when the clock jumps?
    /// Says that the clock jumped. When it went back, what is due is brought forward: it would wait
    /// until the clock is where it was before.
    fn watch_clock(&mut self) {
        let now = self.now();
        match self.clock.look(now.micros()) {
            None => {}
            Some(Jump::Ahead(by)) => warn!(
                "The clock went ahead by {} s more than has passed: it was set, or the machine slept. Feeds that are due by it are polled now",
                by.as_secs()
            ),
            Some(Jump::Back(by)) => {
                warn!(
                    "The clock was set back by {} s. Times of polls are brought forward, and changes are stored after the last T",
                    by.as_secs()
                );
                self.bring_forward(by, now);
            }
        }
    }

    fn bring_forward(&mut self, by: Duration, now: Stamp) {
        let us = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        self.lanes.walks.bring_forward(us);
        self.lanes.checks.bring_forward(us);
        self.lanes.recalls.bring_forward(us);
        self.pauses.bring_forward(us);
        for until in self.agenda.checked.values_mut() {
            *until = Stamp::from_micros(until.micros().saturating_sub(us));
        }
        let feeds = self.feeds.clone();
        for (feed, spec) in feeds.iter() {
            let Some(state) = self.poller.status(*feed) else {
                continue;
            };
            let state = state.resumed(spec.bare_url().as_str(), &spec.policy(), now);
            self.saving.note(*feed, &state, PollSaving::Late);
            self.poller.remember(*feed, &state);
            if !self.lanes.are_polling(*feed) {
                self.enqueue(*feed, now);
            }
        }
    }

    fn is_store_away(&self) -> bool {
        self.poller
            .parts
            .context
            .store
            .condition()
            .outage()
            .is_some()
    }

    fn now(&self) -> Stamp {
        self.poller.parts.context.now()
    }
}
