//! The wait of a feed that is not polled yet: until when, since when and why; for the operator.

use super::Poller;
use crate::feed::{record::FeedNo, stamp::Stamp};

/// The wait of a feed whose next poll is put off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollWait {
    /// Time of the next poll; `None` when only a ping or an operator has it polled again.
    pub until: Option<Stamp>,
    /// Beginning of the wait; `None` of a first poll.
    pub since: Option<Stamp>,
    /// Reason of it.
    pub cause: WaitCause,
    /// Since when a ping of the feed waits for that, if one does.
    pub pinged_at: Option<Stamp>,
}

/// Reason for which a feed is not polled yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitCause {
    /// This authority asked to be left alone (`Retry-After`, or 429).
    Pause(String),
    /// The publisher says that the feed is gone for good (410).
    Gone,
    /// The feed is at its quota.
    Quota,
    /// The last polls failed.
    BackOff,
    /// The feed was never polled: its turn comes.
    FirstPoll,
    /// A ping waits, since the pings before it brought nothing new.
    PingBudget,
}

impl Poller {
    // Decides: What is the operator told of a feed that is not polled yet?
    /// The wait of a feed; `None` for one that is polled at its usual times.
    pub fn wait(&self, feed: FeedNo) -> Option<PollWait> {
        let now = self.parts.context.now();
        let (state, hosts) = self.state_and_hosts(feed, now)?;
        let hint = self.parts.context.notify.hinted(feed);
        let next_at = state.timetable.next_at.max(now);
        let failing_since = state.health.fault.as_ref().map(|fault| fault.since);
        let pause = self
            .pauses
            .longest(&hosts)
            .filter(|(_, pause)| pause.until > now);
        let (until, since, cause) = if let Some((authority, pause)) = pause {
            (
                pause.until.max(next_at),
                Some(pause.since),
                WaitCause::Pause(authority.to_owned()),
            )
        } else if state.health.gone_at.is_some() {
            (next_at, state.health.gone_at, WaitCause::Gone)
        } else if state.is_at_quota() {
            (next_at, failing_since, WaitCause::Quota)
        } else if state.health.failures > 0 {
            (next_at, failing_since, WaitCause::BackOff)
        } else if state.timetable.polled_at.is_none() {
            (next_at, None, WaitCause::FirstPoll)
        } else if let Some(hint) = hint.filter(|hint| hint.not_before > now) {
            (next_at, Some(hint.since), WaitCause::PingBudget)
        } else {
            return None;
        };
        let until = (until != Stamp::MAX).then_some(until);
        let pinged_at = hint.map(|hint| hint.since);
        Some(PollWait {
            until,
            since,
            cause,
            pinged_at,
        })
    }
}
