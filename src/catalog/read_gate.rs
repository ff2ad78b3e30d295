//! The gate before every read: what is registered, held against who is known. Not how anybody
//! became known.

use super::{Catalog, RegisteredFeed, settings::shown_by};
use crate::{
    auth::{Accounts, Authenticator, Principal, PrincipalId, may_read},
    clock::Clock,
    feed::{filter::Filter, record::FeedNo},
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

    /// The part of a feed that a principal that was remembered may see; `None` for nothing. It has
    /// no rights any more, not even those of nobody, once its user or its token is gone.
    pub fn still_shows(&self, principal: Option<PrincipalId>, feed: FeedNo) -> Option<Filter> {
        let known = match principal {
            Some(id) => Some(self.auth.principal(id)?),
            None => None,
        };
        shown_to(self.catalog.snapshot().feed_no(feed)?, known.as_ref())
    }

    /// The part of a feed that the sender of a request under way may see, `None` for nobody known.
    /// Whoever was known by a password has no rights any more once that is another one.
    pub fn shows_to_sender(&self, principal: Option<&Principal>, feed: FeedNo) -> Option<Filter> {
        if !principal.is_none_or(|principal| self.auth.still_knows(principal)) {
            return None;
        }
        shown_to(self.catalog.snapshot().feed_no(feed)?, principal)
    }

    /// True while a principal, `None` for nobody known, may read a feed. One that is not registered
    /// nobody may.
    pub fn admits(&self, principal: Option<&Principal>, feed: FeedNo) -> bool {
        self.catalog
            .snapshot()
            .feed_no(feed)
            .is_some_and(|feed| is_open_to(feed, principal))
    }

    /// The same for a principal that was remembered.
    pub fn still_admits(&self, principal: Option<PrincipalId>, feed: FeedNo) -> bool {
        self.still_shows(principal, feed).is_some()
    }
}

/// The part of a feed that a principal may see; `None` for nothing of it.
pub fn shown_to(feed: &RegisteredFeed, principal: Option<&Principal>) -> Option<Filter> {
    let is_admitted = may_read(principal, &feed.settings.access);
    if is_admitted {
        shown_by(&feed.settings.show, principal)
    } else {
        None
    }
}

/// True when a principal may read a feed, or a part of it.
pub fn is_open_to(feed: &RegisteredFeed, principal: Option<&Principal>) -> bool {
    shown_to(feed, principal).is_some()
}
