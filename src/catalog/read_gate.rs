//! The gate before every read: what is registered, held against who is known. Not how anybody
//! became known.

use super::{Catalog, snapshot::is_open_to};
use crate::{
    auth::{Accounts, Authenticator, Principal, PrincipalId},
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
        Self {
            catalog,
            auth: Arc::new(Authenticator::new(
                Accounts::default(),
                clock,
                Metrics::default(),
            )),
        }
    }

    /// The feed that a principal that was remembered reads under the name of a feed; `None` for
    /// nothing. It has no rights any more, not even those of nobody, once its user or its token is
    /// gone.
    pub fn still_reads(&self, principal: Option<PrincipalId>, feed: FeedNo) -> Option<FeedNo> {
        let known = self.still_known(principal)?;
        let catalog = self.catalog.snapshot();
        catalog.read_by(catalog.feed_no(feed)?, known.as_ref())
    }

    /// The feed that the sender of a request under way reads under the name of a feed, `None` for
    /// nobody known. Whoever was known by a password has no rights any more once that is another
    /// one.
    pub fn read_by_sender(&self, principal: Option<&Principal>, feed: FeedNo) -> Option<FeedNo> {
        let is_known = |principal| !self.auth.is_unheard() && self.auth.still_knows(principal);
        if !principal.is_none_or(is_known) {
            return None;
        }
        let catalog = self.catalog.snapshot();
        catalog.read_by(catalog.feed_no(feed)?, principal)
    }

    /// True while a principal, `None` for nobody known, may read a feed. One that is not registered
    /// nobody may.
    pub fn admits(&self, principal: Option<&Principal>, feed: FeedNo) -> bool {
        self.catalog
            .snapshot()
            .feed_no(feed)
            .is_some_and(|feed| is_open_to(feed, principal))
    }

    // Decides: Does a request under way keep its right to read?
    /// The same for a principal that was remembered.
    pub fn still_admits(&self, principal: Option<PrincipalId>, feed: FeedNo) -> bool {
        self.still_known(principal)
            .is_some_and(|known| self.admits(known.as_ref(), feed))
    }

    /// The principal with this id, if there is one; `None` when it is known no more.
    fn still_known(&self, principal: Option<PrincipalId>) -> Option<Option<Principal>> {
        match principal {
            Some(id) => Some(Some(self.auth.principal(id)?)),
            None => Some(None),
        }
    }
}
