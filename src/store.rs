//! The store contract: small traits over feeds, groups, polls, walks, subscriptions, users and the
//! catalog, and their sum [`Store`]; no store in particular.
//!
//! Every call is atomic, and what was answered with `Ok` survives the end of the process; after a
//! kill, polls that changed nothing are excepted ([`Polls::note_polls`], [`Commit::is_late`]). No call
//! returns everything of a kind that grows: those that list take the last key seen and a limit, and
//! [`listing`] makes streams of them.

use futures_util::future::BoxFuture;
use std::path::Path;

pub mod feeds;

pub mod catalog;

pub mod polls;

pub mod subscriptions;

pub mod accounts;

pub mod groups;

mod sites;

mod registry;

mod events;

mod pushed_feeds;

mod index_now;

mod opml_lists;

mod subscription_no;

mod sealing;

pub mod error;

pub mod condition;

pub mod listing;

pub mod nodes;

pub mod database_url;

mod settings;

mod engine;

mod rows;

pub mod memory;

pub mod redb;

#[cfg(feature = "postgres")]
pub mod postgres;

mod opening;

#[cfg(feature = "postgres")]
mod moved_rows;

#[cfg(feature = "postgres")]
mod database_copy;

mod plan;

mod group_plan;

pub mod packed;

mod paging;

mod clock_guard;

mod content_mark;

mod new_generation;

mod stored;

#[cfg(test)]
mod conformance;

#[cfg(test)]
pub(crate) mod wrapped;

pub use accounts::AccountStore;
pub use catalog::{CatalogStore, StoreCounts, check_namespace};
pub use condition::{BackupReport, Outage, Remedy, RemovalFaults, StoreCondition, Watched};
#[cfg(feature = "postgres")]
pub use database_copy::{copy_from_database, copy_to_database};
pub use error::StoreError;
pub use events::EventStore;
pub use feeds::{Archives, Commit, CommitBasis, Feeds, Receipt, Snapshot, Witnessed};
pub use groups::{GROUP_BATCH_ITEMS, GroupStep, Groups, WantedGroup};
pub use index_now::IndexNowStore;
pub use nodes::{
    DatabaseSurroundings, Duty, Moves, NodeDifferences, NodeFace, NodeStatus, Nodes, NodesEngine,
    NodesStatus, Question, ReportedFeeds, SealedRows,
};
pub use opening::{begin_generations, look, open, open_node, surroundings, url_problem};
#[cfg(not(feature = "postgres"))]
pub use opening::{copy_from_database, copy_to_database};
pub use opml_lists::OpmlStore;
pub use paging::COUNT_ROWS_MAX;
pub use polls::{HostPause, POLLS_LATE_SECS, Polls, Walks};
pub use pushed_feeds::PushedFeeds;
pub use redb::stored_item;
pub use registry::{RegistryChange, RegistryEntry, RegistryStore};
pub use sealing::{BadKeyFile, SealKey};
pub use settings::{Config, WakeMode};
pub use sites::{FoundFeeds, SiteStore};
pub use subscription_no::SubscriptionNo;
pub use subscriptions::{Subscription, Subscriptions};

/// The traits of a store, for callers of a store of a known type.
pub mod traits {
    pub use super::{
        AccountStore, CatalogStore, EventStore, Feeds, Groups, IndexNowStore, OpmlStore, Polls,
        PushedFeeds, RegistryStore, SiteStore, Store, Subscriptions, Upkeep, Walks, Watched,
    };
}

/// The answer of a store, later.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// A whole store.
pub trait Store:
    CatalogStore
    + Feeds
    + Groups
    + SiteStore
    + RegistryStore
    + EventStore
    + PushedFeeds
    + IndexNowStore
    + OpmlStore
    + Polls
    + Walks
    + Subscriptions
    + AccountStore
    + Upkeep
    + Watched
    + 'static
{
}

impl Store for memory::Memory {}
impl Store for redb::Redb {}
#[cfg(feature = "postgres")]
impl Store for postgres::Postgres {}
#[cfg(test)]
impl<T: wrapped::Tap> Store for wrapped::Wrapped<T> {}

/// The state of the store itself.
pub trait Upkeep: Send + Sync {
    /// Succeeds when changes could be committed now: the writer answers and believes its clock.
    fn check(&self) -> StoreFuture<'_, ()>;

    /// Takes the clock for right although it jumped (see [`StoreError::Clock`]).
    fn accept_clock(&self) -> StoreFuture<'_, ()>;

    /// Copies what is stored now into a file, while everything goes on. The file appears whole or
    /// not at all.
    fn back_up<'a>(&'a self, file: &'a Path) -> StoreFuture<'a, BackupReport>;

    /// Finishes what was queued and lets go of the file. Later calls fail with `Closed`.
    fn close(&self) -> StoreFuture<'_, ()>;
}
