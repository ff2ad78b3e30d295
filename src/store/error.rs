//! The ways in which a store fails, and what a caller may conclude from each; not how callers
//! answer their own clients.

use super::SubscriptionNo;
use crate::{
    feed::{item::ItemId, page::Unanswerable, record::FeedNo},
    secret::masked_with_query,
};
use std::convert::Infallible;
use thiserror::Error;

/// Failure of a call to a store.
///
/// Three of them decide how a caller goes on: after [`Conflict`](Self::Conflict) it reads again and
/// decides again, after [`OutcomeUnknown`](Self::OutcomeUnknown) it reads what is there before it repeats anything, and
/// after [`Away`](Self::Away) it repeats the call later as it was.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The feed or the subscription has moved on; nothing was written. Read and decide again.
    #[error("it is at revision {found} by now")]
    Conflict {
        /// The revision found.
        found: u64,
    },
    /// The write was begun and its end was not seen: it is there as a whole or not at all. Read
    /// before repeating it.
    #[error("it is not known whether the change was kept: {0}")]
    OutcomeUnknown(String),
    /// The store could not be reached, or had no room for the call; nothing was done. Repeat the
    /// call later.
    #[error("the store is away: {0}")]
    Away(String),
    /// The feed's ids were hashed with another namespace.
    #[error(
        "the ids of feed `{feed}` belong to namespace `{}`, not `{}`; {}",
        masked_with_query(stored),
        masked_with_query(given),
        namespace_remedy(stored, given)
    )]
    Namespace {
        /// The feed.
        feed: String,
        /// The namespace that its ids were made with.
        stored: String,
        /// The namespace that was asked for.
        given: String,
    },
    /// Another feed holds the namespace.
    #[error(
        "feed `{feed}` cannot make its ids with namespace `{}`. Feed `{holder}` holds it, also while it is \
         not configured. Give `{feed}` an id_namespace of its own, or forget `{holder}`",
        masked_with_query(namespace)
    )]
    NamespaceHeld {
        /// The feed that has no ids yet.
        feed: String,
        /// The namespace.
        namespace: String,
        /// The feed whose ids are made with it.
        holder: String,
    },
    /// No such feed.
    #[error("no feed has the number {0}")]
    UnknownFeed(FeedNo),
    /// A subscription that has ended meanwhile; what is known of it must not bring it back.
    #[error("subscription {0} has ended")]
    UnknownSubscription(SubscriptionNo),
    /// The target is subscribed to the topic already.
    #[error("the target is subscribed to the topic already, as subscription {0}")]
    Subscribed(SubscriptionNo),
    /// `id:` of an item that the feed never held.
    #[error("no item of this feed has that id")]
    UnknownId,
    /// `id:` in an order where items move.
    #[error("id positions need an order in which items do not move: created or -created")]
    MovingOrder,
    /// A number of an item in a view whose items have none, or are not counted yet.
    #[error("items of this view have no numbers")]
    Unnumbered,
    /// The commit would pass the quota of its feed; nothing was written.
    #[error("feed `{feed}` would keep {bytes} bytes, and its quota is {quota_bytes}")]
    Quota {
        /// The feed.
        feed: String,
        /// Bytes of its items with the commit.
        bytes: u64,
        /// Its quota.
        quota_bytes: u64,
    },
    /// The clock is far ahead of the last time recorded, or before the build date. Commits stop
    /// until it is accepted.
    #[error(
        "the clock says {now}, the store was last written at {recorded}; if the clock is right, run `everfeed clock accept`"
    )]
    Clock {
        /// The time of the clock, RFC 3339.
        now: String,
        /// The last time recorded, RFC 3339.
        recorded: String,
    },
    /// The file was written by a newer everfeed, is no store, or is not the one to be served.
    #[error("{0}")]
    Schema(String),
    /// The file is missing or empty where a store was made before.
    #[error("{0}")]
    Missing(String),
    /// A value could not be read back.
    #[error(
        "the store is damaged: {0}. `everfeed store verify` shows all damage, and a backup restores it"
    )]
    Damaged(String),
    /// An item could not be read back.
    #[error(
        "item {id} of feed `{feed}` is damaged: {what}. A backup restores it. `everfeed forget {feed} {id}` removes it for good, so that the others are read"
    )]
    DamagedItem {
        /// The name of the feed.
        feed: String,
        /// The item.
        id: ItemId,
        /// The damage.
        what: String,
    },
    /// The record of a feed, without which nothing of it can be told, could not be read back.
    #[error(
        "the record of feed `{feed}` is damaged: {what}. It is not served or polled; all other feeds are. A backup restores \
         it. Without a backup its items and cursors are lost: take it out of the configuration, run `everfeed forget {feed}`, \
         and put it back as a new feed"
    )]
    DamagedFeed {
        /// The name of the feed.
        feed: String,
        /// The damage.
        what: String,
    },
    /// The disk or the database failed; nothing was written.
    #[error("the store failed: {0}")]
    Failed(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

fn namespace_remedy(stored: &str, given: &str) -> &'static str {
    if [stored, given]
        .iter()
        .any(|namespace| namespace.starts_with("group:"))
    {
        "a group does not follow a feed of its name, nor a feed a group; give it another name"
    } else {
        "leave id_namespace out: its items keep their ids, whatever its url is"
    }
}

impl StoreError {
    /// True for a store that could not be reached: nothing was done, nobody is to blame, and the
    /// call is repeated later.
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Away(_))
    }

    /// True when the configuration gives a feed a namespace that it cannot have.
    pub fn is_of_namespaces(&self) -> bool {
        matches!(self, Self::Namespace { .. } | Self::NamespaceHeld { .. })
    }

    /// True when what could not be read back is all that is kept of one feed: what is kept of
    /// others is not touched by that.
    pub fn is_of_one_feed(&self) -> bool {
        matches!(self, Self::DamagedFeed { .. })
    }

    /// True when the caller is to read again and decide again: what it decided on is not, or may
    /// not be, what is there.
    pub fn wants_another_look(&self) -> bool {
        matches!(self, Self::Conflict { .. } | Self::OutcomeUnknown(_))
    }
}

impl From<Unanswerable<StoreError>> for StoreError {
    fn from(why: Unanswerable<StoreError>) -> Self {
        match why {
            Unanswerable::UnknownId => Self::UnknownId,
            Unanswerable::MovingOrder => Self::MovingOrder,
            Unanswerable::Listing(error) => error,
        }
    }
}

impl From<Infallible> for StoreError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
