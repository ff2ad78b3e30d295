//! Faults of the store: what is read again after one, since a poll that was noted may be lost.

use super::Worker;
use crate::store::POLLS_LATE_SECS;

/// Seconds before a fault of the store in which polls may have been noted that it has lost.
const DOUBTED_SECS: u64 = 2 * POLLS_LATE_SECS;

impl Worker<'_> {
    // Decides: What is read again after a fault of the store?
    /// After a fault of the store, has the last documents read again: it may have lost what it noted
    /// of them, and a publisher who answers 304 would never show it again.
    pub(super) fn doubt_noted(&mut self) {
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

    pub(super) fn is_store_away(&self) -> bool {
        self.poller
            .parts
            .context
            .store
            .condition()
            .outage()
            .is_some()
    }
}
