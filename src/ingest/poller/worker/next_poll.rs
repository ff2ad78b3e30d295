//! The time of the next poll of a feed: its own, or that of a hint or an operator; not the schedule
//! (`feed/schedule`).

use super::Worker;
use crate::{
    feed::{record::FeedNo, schedule::PollState, stamp::Stamp},
    ingest::polls::PollSaving,
};
use tracing::info;

impl Worker<'_> {
    /// Queues the next poll of a feed: at its own time, or earlier if a hint waits or is repeated,
    /// or an operator waits.
    pub(super) fn enqueue(&mut self, feed: FeedNo, now: Stamp) {
        let Some((_, state, hosts)) = self.subject(feed, now) else {
            return;
        };
        if self.agenda.awaited.awaits(feed) {
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
    pub(super) fn keep_hint(&mut self, feed: FeedNo, mut state: PollState, at: Stamp, why: &str) {
        if let Some(spec) = self.feeds.get(&feed) {
            let (name, until) = (&spec.name, at.rfc3339());
            info!(feed.name = %name, until, "A ping or publish hint for `{name}` waits until {until}: {why}");
        }
        state.timetable.next_at = at;
        self.saving.note(feed, &state, PollSaving::AtOnce);
        self.poller.remember(feed, &state);
    }
}
