//! Jumps of the clock: what becomes of the times that jobs wait for.

use super::Worker;
use crate::{
    clock::Jump,
    feed::{set_back::AHEAD_SECS_MIN, stamp::Stamp},
    ingest::polls::PollSaving,
};
use std::time::Duration;
use tracing::warn;

impl Worker<'_> {
    // Decides: What happens to polls when the clock jumps?
    /// Says that the clock jumped. When it went back, what is due is brought forward: it would wait
    /// until the clock is where it was before.
    pub(super) fn watch_clock(&mut self) {
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

    pub(super) fn bring_forward(&mut self, by: Duration, now: Stamp) {
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
            if by.as_secs() >= AHEAD_SECS_MIN {
                self.lanes.recalls.put(*feed, now);
            }
            if !self.lanes.are_polling(*feed) {
                self.enqueue(*feed, now);
            }
        }
    }
}
