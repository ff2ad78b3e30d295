//! The start of a job that is due: may it begin, at which hosts, and with what; not which are due.

use super::{Worker, hinted_polls::Hint};
use crate::{
    feed::{archive::ArchiveWalk, stamp::Stamp},
    ingest::{
        lane::{Due, Ready},
        poller::jobs::{CheckJob, PollJob, ReaderPollJob, RecallJob, WalkJob},
    },
};

impl Worker<'_> {
    pub(super) fn start_recall(&mut self, due: &Due) {
        let Some(spec) = self.feeds.get(&due.feed).cloned() else {
            return;
        };
        let job = RecallJob {
            parts: self.poller.parts.clone(),
            spec,
        };
        let ready = Ready::at_hosts(Vec::new(), job);
        self.lanes
            .recalls
            .start(due, ready, &mut self.pauses, &self.stop);
    }

    /// Starts a look, unless its feed is being polled or its hosts want to be left alone.
    pub(super) fn start_look(&mut self, due: &Due, now: Stamp) {
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
        let job = ReaderPollJob(PollJob {
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

    pub(super) fn start_poll(&mut self, due: &Due, now: Stamp) {
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

    pub(super) fn start_step(&mut self, due: &Due, now: Stamp) {
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

    // Decides: How often are the pages of missing items asked for?
    /// Starts the check of a page that is due: one at a host in so many seconds.
    pub(super) fn start_check(&mut self, due: &Due, now: Stamp) {
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
}
