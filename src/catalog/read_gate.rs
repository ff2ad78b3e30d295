//! The gate before every read: what is registered, held against who is known. Not how anybody became known.

use super::{Catalog, RegisteredFeed};
use crate::{
    auth::{Accounts, Authenticator, Principal, PrincipalId, may_read},
    clock::Clock,
    feed::record::FeedNo,
    telemetry::Metrics,
};
use std::sync::Arc;

/// The catalog and the users, and by both who may read what. Cheap to clone.
#[derive(Clone)]
pub struct ReadGate {
    /// The feeds that are registered.
    pub catalog: Catalog,
    /// Those who can be known.
    pub auth: Arc<Authenticator>,
}

impl ReadGate {
    /// A gate before a catalog, while there are no users.
    pub fn without_users(catalog: Catalog, clock: Arc<dyn Clock>) -> Self {
        Self { catalog, auth: Arc::new(Authenticator::new(Accounts::default(), clock, Metrics::default())) }
    }

    /// True while a principal, `None` for nobody known, may read a feed. One that is not registered nobody may.
    pub fn admits(&self, principal: Option<&Principal>, feed: FeedNo) -> bool {
        self.catalog.snapshot().feed_no(feed).is_some_and(|feed| is_open_to(feed, principal))
    }

    /// The same for a principal that was remembered. It has no rights any more, not even those of nobody, once its user or its
    /// token is gone.
    pub fn still_admits(&self, principal: Option<PrincipalId>, feed: FeedNo) -> bool {
        match principal.map(|id| self.auth.principal(id)) {
            None => self.admits(None, feed),
            Some(None) => false,
            Some(known) => self.admits(known.as_ref(), feed),
        }
    }
}

/// True when a principal may read a feed.
pub fn is_open_to(feed: &RegisteredFeed, principal: Option<&Principal>) -> bool {
    may_read(principal, &feed.settings.access)
}
