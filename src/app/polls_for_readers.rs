//! PollsForReaders at the origins of old feeds for their readers: made by the poller of this process while it
//! works, asked of the one that works else; not when one is due there.

use super::{current_work::CurrentWork, relay::Relay};
use crate::{
    feed::record::FeedNo, ingest::LONE_WAIT, locks::lock, notify::Notify,
    serve::sites::poll_for_reader::PollForReader,
};
use futures_util::future::BoxFuture;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// The way to looks.
pub(super) struct PollsForReaders {
    pub(super) workplace: CurrentWork,
    pub(super) relay: Relay,
    pub(super) notify: Arc<Notify>,
    /// Time at which the process that works was last asked for a look at each feed. Feeds of sites
    /// are few.
    pub(super) asked: Mutex<HashMap<FeedNo, Instant>>,
}

impl PollsForReaders {
    /// True when the last question for a look is so old that the copy may be too old, too.
    fn is_due(&self, feed: FeedNo, fresh_secs: u64) -> bool {
        let asked = lock(&self.asked).get(&feed).copied();
        let is_old = |asked: Instant| asked.elapsed() >= Duration::from_secs(fresh_secs);
        fresh_secs > 0 && asked.is_none_or(is_old)
    }
}

impl PollForReader for PollsForReaders {
    fn is_wanted(&self, feed: FeedNo, fresh_secs: u64) -> bool {
        match self.workplace.work() {
            Some(work) => work.poller.wants_look(feed, fresh_secs),
            None => self.is_due(feed, fresh_secs),
        }
    }

    fn look(&self, feed: FeedNo, fresh_secs: u64) -> Option<BoxFuture<'static, ()>> {
        if let Some(work) = self.workplace.work() {
            return work.poller.look(feed, fresh_secs);
        }
        if !self.is_due(feed, fresh_secs) {
            return None;
        }
        lock(&self.asked).insert(feed, Instant::now());
        let (relay, notify) = (self.relay.clone(), self.notify.clone());
        // It goes on when the reader has gone.
        let looking = tokio::spawn(async move {
            relay.look(feed, fresh_secs).await;
            notify.documents_may_differ();
        });
        Some(Box::pin(
            async move { drop(timeout(LONE_WAIT, looking).await) },
        ))
    }
}
