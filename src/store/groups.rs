//! Groups as a store keeps them: members, and the posts that they share; not what a change of a
//! member does to a group (`group_plan`), and not who is to be a member.
//!
//! A group is a feed with a number, a T and rows of its own, so that everything that reads feeds
//! reads groups. Whatever a commit changes in a feed is changed in the same transaction in the
//! groups that it is a member of. A part of a feed is a group of those items of one member that a
//! filter shows, under the name and the ids of its feed. Members come and go in batches, each a transaction; between two
//! batches nothing is lost, whatever is committed and whenever the process ends.

use super::StoreFuture;
use crate::feed::{
    group::{GroupRecord, Holder},
    item::ItemId,
    part::WantedPart,
    record::{FeedNo, FeedRecord},
};
use everfeed_adapters::Metadata;
use std::sync::Arc;

/// Items that one batch takes into a group, or out of it.
pub const GROUP_BATCH_ITEMS: usize = 200;

/// Bytes of the items of a batch, as they are stored, after which it ends.
pub const GROUP_BATCH_BYTES: u64 = 8 << 20;

/// The groups among the feeds.
pub trait Groups: Send + Sync {
    /// Makes a registered feed a group, or gives a group other members. Members that are new join,
    /// those that are missing leave, and nothing else changes: their items come and go with
    /// [`advance_group`](Self::advance_group).
    fn set_group(&self, group: FeedNo, wanted: WantedGroup) -> StoreFuture<'_, GroupStep>;

    /// Takes up to so many items of members that join into a group, or of one that leaves out of
    /// it. A feed that is no group is settled.
    fn advance_group(&self, group: FeedNo, items_max: usize) -> StoreFuture<'_, GroupStep>;

    /// Gives a feed the parts that are wanted, and no others: those that are there are kept, those
    /// whose readers have another filter now are edited, and those that are used no more are
    /// forgotten. What is new or edited is not ready before its items are there, which
    /// [`advance_group`](Self::advance_group) brings. The parts in the order in which they are
    /// wanted.
    fn set_parts(&self, feed: FeedNo, wanted: Vec<WantedPart>) -> StoreFuture<'_, Vec<FeedRecord>>;

    /// The members of a group; `None` for a feed that is none.
    fn group(&self, group: FeedNo) -> StoreFuture<'_, Option<GroupRecord>>;

    /// The members' items that a post of a group stands for, the one that is shown first.
    fn holders(&self, group: FeedNo, post: ItemId) -> StoreFuture<'_, Vec<Holder>>;
}

/// A group as it is to be.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedGroup {
    /// Its metadata.
    pub metadata: Arc<Metadata>,
    /// Its members, each with its public URL.
    pub members: Vec<(FeedNo, String)>,
}

/// A group after one step.
#[derive(Clone, Debug)]
pub struct GroupStep {
    /// The group as it is now.
    pub feed: FeedRecord,
    /// True when no member comes or goes any more.
    pub is_settled: bool,
}
