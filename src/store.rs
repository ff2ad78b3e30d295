//! Where feeds are kept: the trait that every store fulfils, and what goes in and out; no store in particular.

use crate::feed::{
    archive::{ArchiveWalk, History, LastWalk, StagedPage, StagedWalk, StagingChange},
    item::{Item, ItemId, KeyHash},
    observation_record::ObservationRecord,
    page::{Page, PageQuery, Unanswerable},
    reconcile::{Change, Evidence, Known, WindowState},
    record::{FeedNo, FeedRecord, IdRule},
    schedule::PollState,
    stamp::Stamp,
};
use everfeed_adapters::Metadata;
use futures_util::future::BoxFuture;
use std::{convert::Infallible, sync::Arc};
use thiserror::Error;

pub mod memory;

pub mod redb;

pub mod sub;

mod plan;

mod paging;

mod guard;

mod codec;

#[cfg(test)]
mod conformance;

pub use sub::{Subscription, SubscriptionNo};

/// What a store answers, later.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// A store of feeds. Every method is atomic; what was answered with `Ok` survives the end of the process.
pub trait Store: Send + Sync + 'static {
    /// The feed of this name, made if it is new. Its namespace must be the one stored, if any.
    fn register<'a>(&'a self, name: &'a str, namespace: &'a str) -> Answer<'a, FeedRecord>;
    /// Every feed, by number.
    fn feeds(&self) -> Answer<'_, Vec<FeedRecord>>;
    /// One feed.
    fn feed(&self, feed: FeedNo) -> Answer<'_, FeedRecord>;
    /// The window and the items behind these keys, read at one revision.
    fn known(&self, feed: FeedNo, keys: Vec<KeyHash>) -> Answer<'_, Known>;
    /// Applies changes, giving each the next T; `Conflict` when the feed has moved on since they were decided.
    fn commit(&self, commit: Commit) -> Answer<'_, Receipt>;
    /// The poll state of every feed that has one.
    fn polls(&self) -> Answer<'_, Vec<(FeedNo, PollState)>>;
    /// Saves poll states, and until when hosts want to be left alone; other hosts whose time is over are forgotten.
    fn save_polls(&self, polls: Vec<(FeedNo, PollState)>, hosts: Vec<(String, Stamp)>) -> Answer<'_, ()>;
    /// Until when hosts want to be left alone.
    fn hosts(&self) -> Answer<'_, Vec<(String, Stamp)>>;
    /// Keeps how far the walk through a feed's archives has come, and the page that it has just read, in one. A page of the
    /// same number is replaced.
    fn stage(&self, feed: FeedNo, walk: ArchiveWalk, page: Option<StagedPage>) -> Answer<'_, ()>;
    /// The walk through a feed's archives, the pages that wait to be committed, and the traces of those that are.
    fn staged(&self, feed: FeedNo) -> Answer<'_, StagedWalk>;
    /// Every walk, by feed, without what it has seen.
    fn walks(&self) -> Answer<'_, Vec<(FeedNo, ArchiveWalk)>>;
    /// A page, read in one snapshot.
    fn page(&self, query: PageQuery) -> Answer<'_, Page>;
    /// One item.
    fn item(&self, feed: FeedNo, id: ItemId) -> Answer<'_, Option<Arc<Item>>>;
    /// What proves that an item is gone: its tombstones, oldest first, with their T.
    fn evidence(&self, feed: FeedNo, id: ItemId) -> Answer<'_, Vec<(Stamp, Evidence)>>;
    /// What the last documents of a feed came to, oldest first, by number; at most
    /// [`OBSERVATIONS_MAX`](crate::feed::observation_record::OBSERVATIONS_MAX).
    fn observations(&self, feed: FeedNo) -> Answer<'_, Vec<(u64, ObservationRecord)>>;
    /// Makes or replaces a subscription, found by its topic and callback. A new one (number 0) gets a number; one that
    /// has a number is only written over itself, and is an `UnknownSub` when it has ended meanwhile.
    fn put_sub(&self, sub: Subscription) -> Answer<'_, SubscriptionNo>;
    /// One subscription.
    fn sub(&self, sub: SubscriptionNo) -> Answer<'_, Option<Subscription>>;
    /// The subscription of this callback to this canonical topic.
    fn find_sub<'a>(&'a self, topic: &'a str, callback: &'a str) -> Answer<'a, Option<Subscription>>;
    /// Every subscription, by number.
    fn subs(&self) -> Answer<'_, Vec<Subscription>>;
    /// The subscriptions to one feed.
    fn subs_of(&self, feed: FeedNo) -> Answer<'_, Vec<Subscription>>;
    /// Ends a subscription. Whether there was one.
    fn drop_sub(&self, sub: SubscriptionNo) -> Answer<'_, bool>;
    /// Moves an acknowledged position, if it still is `from`, and clears attempts, failure and `next_try`. Whether it was.
    fn advance(&self, sub: SubscriptionNo, from: String, to: String) -> Answer<'_, bool>;
    /// Whether changes could be committed now: the writer answers and believes its clock.
    fn check(&self) -> Answer<'_, ()>;
    /// Takes the clock for right although it jumped (see [`StoreError::Clock`]).
    fn accept_clock(&self) -> Answer<'_, ()>;
    /// Finishes what was queued and lets go of the file. Later calls fail with `Closed`.
    fn close(&self) -> Answer<'_, ()>;
}

/// What one poll writes.
#[derive(Clone, Debug)]
pub struct Commit {
    /// To which feed.
    pub feed: FeedNo,
    /// The revision on which it was decided.
    pub rev: u64,
    /// In the order in which they get their T.
    pub changes: Vec<Change>,
    /// Keys to bind to items that are held already.
    pub aliases: Vec<(KeyHash, ItemId)>,
    /// What is remembered of the documents; `None` leaves it.
    pub last: Option<WindowState>,
    /// What the document says of itself; `None` leaves it.
    pub metadata: Option<Arc<Metadata>>,
    /// How ids are told apart from now on.
    pub id_rule: IdRule,
    /// Whether the feed may be served from now on (stays so).
    pub ready: bool,
    /// The poll state, saved in the same transaction.
    pub poll: Option<PollState>,
    /// What it means for the feed's archives, if it concerns them.
    pub archives: Option<Archives>,
    /// What the document came to, kept as the next observation. If the window began anew, the feed gets a gap marker.
    pub observed: Option<ObservationRecord>,
}

impl Commit {
    /// One that changes nothing of a feed, decided on what is known of it here.
    pub fn nothing(record: &FeedRecord) -> Self {
        Self {
            feed: record.no,
            rev: record.rev,
            changes: Vec::new(),
            aliases: Vec::new(),
            last: None,
            metadata: None,
            id_rule: record.id_rule,
            ready: record.is_ready(),
            poll: None,
            archives: None,
            observed: None,
        }
    }
}

/// What a commit means for a feed's archives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archives {
    /// How far back the memory reaches from now on.
    pub history: History,
    /// What becomes of the staged pages; `None` leaves them.
    pub unstage: Option<StagingChange>,
    /// The walk that came to its end with this; `None`: none did.
    pub walked: Option<LastWalk>,
}

/// What came of a commit.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// The feed as it is now.
    pub feed: FeedRecord,
    /// The items changed, with the T of each, in order.
    pub stamped: Vec<(ItemId, Stamp)>,
}

/// Why a store did not do as asked.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The feed has moved on; decide again.
    #[error("the feed is at revision {found} by now")]
    Conflict {
        /// The revision found.
        found: u64,
    },
    /// The feed's ids were hashed with another namespace.
    #[error(
        "the ids of feed `{feed}` belong to namespace `{stored}`, not `{given}`; set id_namespace = \"{stored}\""
    )]
    Namespace {
        /// The feed.
        feed: String,
        /// What its ids were made with.
        stored: String,
        /// What was asked for.
        given: String,
    },
    /// No such feed.
    #[error("no feed has the number {0}")]
    UnknownFeed(FeedNo),
    /// A subscription that has ended meanwhile; what is known of it must not bring it back.
    #[error("subscription {0} has ended")]
    UnknownSub(SubscriptionNo),
    /// `id:` of an item that the feed never held.
    #[error("no item of this feed has that id")]
    UnknownId,
    /// `id:` in an order where items move.
    #[error("id positions need an order in which items do not move: created or -created")]
    MovingOrder,
    /// The clock is far ahead of the last time recorded, or before the build date. Commits stop until it is accepted.
    #[error(
        "the clock says {now}, the store was last written at {recorded}; if the clock is right, run `everfeed clock accept`"
    )]
    Clock {
        /// What the clock says, RFC 3339.
        now: String,
        /// The last time recorded, RFC 3339.
        recorded: String,
    },
    /// The file was written by a newer everfeed, or is no store.
    #[error("{0}")]
    Schema(String),
    /// A value could not be read back.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The disk or the database failed.
    #[error("the store failed: {0}")]
    Failed(String),
    /// More writes are waiting than the queue holds.
    #[error("the store is too busy")]
    Busy,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
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
