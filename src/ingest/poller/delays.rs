//! The delays of hints: until when a hint of a feed leads to no poll, and why; not the polls.

use super::{KeptState, WantedFeeds};
use crate::{
    feed::{record::FeedNo, stamp::Stamp},
    ingest::host_pauses::{PauseEnds, hosts_of},
    locks::read,
    notify::{DelayCause, HintDelay, HintDelays},
};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, RwLock},
};
use tokio::sync::watch;

/// The facts that tell of delays, shared with the poller.
pub(super) struct Delays {
    pub(super) wanted: Arc<watch::Sender<WantedFeeds>>,
    pub(super) states: Arc<RwLock<HashMap<FeedNo, KeptState>>>,
    pub(super) pauses: PauseEnds,
}

impl fmt::Debug for Delays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delays")
            .field("pauses", &self.pauses)
            .finish_non_exhaustive()
    }
}

impl HintDelays for Delays {
    // Decides: What becomes of a ping during a pause?
    fn delay(&self, feed: FeedNo, now: Stamp) -> Option<HintDelay> {
        let spec = self.wanted.borrow().get(&feed).cloned()?;
        let state = read(&self.states).get(&feed)?.state.unpacked();
        let hosts = hosts_of(&state, spec.deletions.audit_secs, now);
        let pause = self.pauses.longest(&hosts).map(|(_, pause)| pause);
        let paused = pause.map_or(Stamp::ZERO, |pause| pause.until);
        // Its own time may come before that of the hint.
        let until = state
            .hinted_at(None, paused, now)
            .min(state.timetable.next_at.max(paused));
        let (cause, since) = match state.health.gone_at {
            _ if until <= paused => (DelayCause::HostPause, pause.map(|pause| pause.since)),
            Some(gone_at) => (DelayCause::Gone, Some(gone_at)),
            None => (
                DelayCause::Quota,
                state.health.fault.map(|fault| fault.since),
            ),
        };
        (until > now).then_some(HintDelay {
            until,
            since,
            cause,
        })
    }
}
