//! The catalog: everything that is registered (feeds, groups of them, and the sites that they are
//! of), as one immutable snapshot behind a `watch`, and the difference between two of them. It is
//! the only copy: servers, hub and poller look feeds up here and take changes from here while they
//! run. It knows no driver; how a feed is polled or served is derived from it by those who do so.

use std::{
    ptr,
    sync::{Arc, Weak},
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub mod settings;

mod snapshot;

mod changes;

mod beside_worker;

mod namespaces;

mod register;

mod read_gate;

mod sites;

mod registry_names;

mod spelling;

#[cfg(test)]
pub(crate) mod testing;

mod destination;

pub use beside_worker::BesideWorker;
pub use changes::{CatalogChanges, ChangedFeed, diff};
pub(crate) use destination::Destination;
pub use namespaces::namespaces;
pub use read_gate::ReadGate;
pub use register::{BATCH_FEEDS_MAX, RegistrationProgress, follow, observe, register};
pub use registry_names::RegistryNames;
pub use settings::{
    FeedNamer, FeedSettings, FormerAddress, GroupSettings, LISTS_MAX, LegacyAddress, ListedPath,
    NamedFeeds, OpmlPlace, OpmlSettings, PrivateAddresses, ServePlain, ShowRule, SiteFeeds,
    SiteSettings, topic_at,
};
pub use sites::{ProxiedSite, SiteOfRequest, Sites, join_found};
pub use snapshot::{CatalogSnapshot, RegisteredFeed, is_open_to};
pub(crate) use spelling::{PathSpelling, parameters};

/// The catalog in force. Cheap to clone; all clones are one catalog.
#[derive(Clone, Debug)]
pub struct Catalog(Arc<watch::Sender<Arc<CatalogSnapshot>>>);

impl Catalog {
    /// A catalog that begins with this snapshot.
    pub fn new(snapshot: CatalogSnapshot) -> Self {
        Self(Arc::new(watch::Sender::new(Arc::new(snapshot))))
    }

    /// The snapshot in force.
    pub fn snapshot(&self) -> Arc<CatalogSnapshot> {
        self.0.borrow().clone()
    }

    /// True while a snapshot is the one in force.
    pub fn is_in_force(&self, snapshot: &Weak<CatalogSnapshot>) -> bool {
        ptr::eq(Arc::as_ptr(&self.0.borrow()), snapshot.as_ptr())
    }

    /// Receiver that wakes whenever another snapshot is in force.
    pub fn watch(&self) -> watch::Receiver<Arc<CatalogSnapshot>> {
        self.0.subscribe()
    }

    /// Runs work for the sites in force until `stop`. When others are in force, ends it by its own token, waits for its end,
    /// and runs it for those.
    pub async fn run_for_sites<F: Future<Output = ()>>(
        &self,
        stop: CancellationToken,
        work: impl Fn(Arc<Sites>, CancellationToken) -> F,
    ) {
        let mut changes = self.watch();
        while !stop.is_cancelled() {
            let sites = changes.borrow_and_update().sites().clone();
            let ends = stop.child_token();
            let others = async {
                let is_other = |now: &Arc<CatalogSnapshot>| !Arc::ptr_eq(now.sites(), &sites);
                tokio::select! {
                    _ = changes.wait_for(is_other) => {}
                    () = stop.cancelled() => {}
                }
                ends.cancel();
            };
            tokio::join!(work(sites.clone(), ends.clone()), others);
        }
    }

    /// Puts a snapshot in force and wakes the watchers.
    pub fn publish(&self, snapshot: CatalogSnapshot) {
        self.0.send_replace(Arc::new(snapshot));
    }
}
