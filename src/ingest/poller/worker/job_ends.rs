//! The end of a job: what is kept of its result, and what is queued for it; not what a job does.

use super::Worker;
use crate::{
    feed::{
        record::FeedNo,
        schedule::{Failure, PollState},
        stamp::Stamp,
    },
    ingest::{
        FeedSpec,
        checks::Checked,
        host_pauses::hosts_of,
        lane::Ended,
        poller::{jobs::Recalled, requests::PollAnswer},
        polls::{Poll, PollSaving, Polled},
        walks::Stepped,
    },
};
use std::sync::Arc;
use tracing::warn;

/// Seconds after a step of a walk, or a permalink check, that broke off.
const BROKEN_SECS: u64 = 3600;

/// Seconds after the first of several steps of a walk that failed on our side; each further one
/// doubles them.
const FAILED_STEP_SECS: u64 = 5;

/// Seconds between two steps that failed on our side at most.
const FAILED_STEP_SECS_MAX: u64 = 300;

/// Seconds after a look-up in the store that failed.
const RECALL_AGAIN_SECS: u64 = 5;

/// Seconds of rest after this many steps of a walk failed in a row on our side. A page that cannot
/// be kept is asked for again by each step, so a store that fails for a day must not have the
/// publisher asked all day.
fn step_rest_secs(failures: u32) -> u64 {
    let doublings = failures.saturating_sub(1).min(u32::BITS);
    let secs = FAILED_STEP_SECS.saturating_mul(1 << doublings);
    if failures == 0 {
        0
    } else {
        secs.min(FAILED_STEP_SECS_MAX)
    }
}

impl Worker<'_> {
    /// Takes in the end of a poll, or of a look.
    pub(super) fn polled(&mut self, feed: FeedNo, ended: Ended<(Arc<FeedSpec>, Polled)>) {
        // Whoever waits for a look is told when everything is taken in.
        let look = self.agenda.looks.remove(&feed);
        self.repeat_hinted(feed, &ended);
        self.end_hint(feed);
        let current = self.feeds.get(&feed).cloned();
        let (spec, mut polled) = match ended {
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
        if let Some((host, until)) = polled.host_pause.take() {
            self.pauses.pause(host, until, now);
        } else if self.agenda.awaited.is_urgent(feed) && polled.end.is_good() {
            let hosts = hosts_of(&polled.state, spec.deletions.audit_secs, now);
            self.pauses.end_now(&hosts, now);
        }
        self.saving.note(feed, &polled.state, polled.saving);
        let Some(current) = current else { return };
        if !self.agenda.awaited.awaits_urgent(feed) {
            let answer = PollAnswer::Ended {
                end: polled.end.clone(),
                next_at: polled.state.timetable.next_at,
            };
            self.agenda.awaited.tell(feed, &answer);
        }
        self.queue_follow_ups(feed, &mut polled);
        let mut state = polled.state;
        if !Arc::ptr_eq(&spec, &current) {
            state = state.under(current.bare_url().as_str(), &current.policy(), now);
        }
        let before = self.poller.status(feed);
        if let Some(accepted) = accepted_meanwhile(before.as_ref(), &state, now) {
            state = accepted;
            self.saving.note(feed, &state, PollSaving::AtOnce);
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
            self.poller.looks.ended(&look, &polled.end);
        }
    }

    /// Ends the hint that led to a poll, unless it is repeated now. It was right when the poll
    /// brought something that consumers see.
    fn end_hint(&mut self, feed: FeedNo) {
        let context = &self.poller.parts.context;
        let Some(hint) = self.agenda.hints.get_mut(&feed) else {
            return;
        };
        if hint.repeat_at.is_some_and(|at| at <= context.now()) {
            return;
        }
        if let Some(before) = hint.head.take() {
            let is_right = context.notify.head(feed) != Some(before);
            context.notify.hint_ended(feed, is_right);
        }
    }

    /// Queues what a poll leads to: a walk through archives, and a permalink check.
    fn queue_follow_ups(&mut self, feed: FeedNo, polled: &mut Polled) {
        if let Some(walk) = polled.walk.take() {
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
    }

    pub(super) fn stepped(&mut self, feed: FeedNo, ended: Ended<Stepped>) {
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
        let failures = if stepped.failed {
            let count = self.agenda.failed_steps.entry(feed).or_default();
            *count = count.saturating_add(1);
            *count
        } else {
            self.agenda.failed_steps.remove(&feed);
            0
        };
        if let Some(next_at) = stepped.next_at {
            let rest = step_rest_secs(failures);
            self.lanes.walks.put(feed, next_at.max(now.plus_secs(rest)));
        }
    }

    pub(super) fn checked(&mut self, feed: FeedNo, ended: Ended<Checked>) {
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
    pub(super) fn recalled(&mut self, feed: FeedNo, ended: Ended<Result<Recalled, Failure>>) {
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
            self.poll_soon(feed, Stamp::ZERO);
        } else if !self.lanes.are_polling(feed) {
            self.enqueue(feed, now);
        }
        for request in self.agenda.awaited.take_deferred(feed) {
            self.requested(request);
        }
    }
}

/// The state of a feed after the operator accepted its URL while it was polled.
fn accepted_meanwhile(
    before: Option<&PollState>,
    state: &PollState,
    now: Stamp,
) -> Option<PollState> {
    let before = before.filter(|before| before.has_consent())?;
    if before.asked_about() != state.asked_about() {
        return None;
    }
    let mut accepted = state.clone().consented()?;
    accepted.timetable.next_at = now;
    Some(accepted)
}
