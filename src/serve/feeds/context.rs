//! The things that answers to pulls are made from.

use super::long_poll::Waiters;
use crate::{
    catalog::{CatalogSnapshot, ReadGate},
    clock::Clock,
    layers::OwnMark,
    readers::Readers,
    readership::Readership,
    serve::{
        Config,
        answers::{first_seen::FirstSeen, refusal::Refusal},
    },
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
    /// `[server]`, with the numbers in force.
    pub config: Config,
    /// The mark of our own requests to callbacks, which are answered at no path of ours.
    pub own_calls: OwnMark,
    /// The readers of the feeds.
    pub readership: Arc<Readership>,
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
    /// The catalog in force.
    pub(crate) fn catalog(&self) -> Arc<CatalogSnapshot> {
        self.gate.catalog.snapshot()
    }

    /// 404, with the way to what there is.
    pub(crate) fn unknown(&self, text: &str) -> Refusal {
        let list = self.readers.site().list();
        Refusal::unknown(format!("{text}. {list} lists the feeds"))
    }
}
