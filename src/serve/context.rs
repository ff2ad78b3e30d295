//! The things that answers to pulls are made from.

use super::{
    admission::{AdmittedFeed, Caller},
    first_seen::FirstSeen,
    long_poll::Waiters,
    refusal::Refusal,
};
use crate::{
    catalog::{ReadGate, Sites},
    clock::Clock,
    edge::client_address::WayTrust,
    feed::stamp::Stamp,
    readers::Readers,
    store::Store,
};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Everything that an answer to a pull is made from.
pub struct ServeContext {
    /// Pages.
    pub readers: Arc<Readers>,
    /// The store, for lists.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The feeds that are served, and who may read them.
    pub gate: ReadGate,
    /// Trust in the ways by which requests come.
    pub trust: WayTrust,
    /// The sites before which we stand.
    pub sites: Arc<Sites>,
    /// Dates of lists and descriptions.
    pub first_seen: FirstSeen,
    /// True where listeners of rssCloud may register.
    pub takes_cloud: bool,
    /// Room for held requests.
    pub waiters: Waiters,
    /// Ends held requests.
    pub stop: CancellationToken,
}

impl ServeContext {
    /// The feed that a caller was admitted to by its name; 410 for one that was served.
    pub(super) fn feed(&self, caller: &Caller, name: &str) -> Result<AdmittedFeed, Refusal> {
        match caller.feed {
            Some(feed) => Ok(feed),
            None if self.gate.catalog.snapshot().withdrawn(name).is_some() => Err(Refusal::gone()),
            None => Err(self.unknown("there is no such feed")),
        }
    }

    /// Refuses a feed whose first document is not in, with the time at which it is asked for.
    pub(super) async fn check_ready(&self, feed: AdmittedFeed) -> Result<(), Refusal> {
        if self.readers.head(feed.read).is_ok_and(|head| head.ready) {
            return Ok(());
        }
        if self.readers.head(feed.named)?.ready {
            return Err(Refusal::changing());
        }
        let polled = self.store.poll(feed.named).await?.unwrap_or_default();
        let now = Stamp::from_micros(self.clock.now_us());
        let fails = polled.health.fault.is_some();
        let secs = if fails {
            polled.timetable.next_at.secs_since(now)
        } else {
            0
        };
        Err(Refusal::not_ready(secs, fails))
    }

    /// 404, with the way to what there is.
    pub(super) fn unknown(&self, text: &str) -> Refusal {
        let list = self.readers.site().list();
        Refusal::unknown(format!("{text}; {list} lists the feeds there are"))
    }
}
