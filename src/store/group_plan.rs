//! Plan of what a change of a member, or of the members, does to a group: changes of its posts,
//! which are committed as those of any feed, and the rows that say who holds them. Pure; writing is
//! the store's business.

use super::{
    Commit, CommitBasis, StoreError, WantedGroup,
    plan::{self, Held, PlannedCommit},
};
use crate::feed::{
    group::{GroupPost, GroupRecord, Holder, ListedPlace, MemberStage},
    item::{Item, ItemId, KeyHash},
    keep_limits::KeepLimits,
    record::{FeedNo, FeedRecord},
    stamp::Stamp,
};
use planner::GroupPlanner;
use std::{collections::BTreeMap, sync::Arc};

mod planner;

pub(super) mod part;

/// The part of a store that a plan for a group reads.
pub(super) trait GroupHeld {
    /// The group and its members, as they are.
    fn group(&self) -> Result<(FeedRecord, GroupRecord), StoreError>;
    /// The post that an item of a member is, or was last.
    fn holding(&self, holder: Holder) -> Result<Option<ItemId>, StoreError>;
    /// The holders of a post; `None` for one that nobody holds.
    fn post(&self, id: ItemId) -> Result<Option<GroupPost>, StoreError>;
    /// The post with this name.
    fn post_at(&self, key: KeyHash) -> Result<Option<ItemId>, StoreError>;
    /// A post as it is shown.
    fn shown(&self, id: ItemId) -> Result<Option<Arc<Item>>, StoreError>;
    /// An item of a member.
    fn item(&self, holder: Holder) -> Result<Option<Arc<Item>>, StoreError>;
    /// The record of a member.
    fn member(&self, feed: FeedNo) -> Result<Option<FeedRecord>, StoreError>;
    /// The items of a member behind a place in the order of publication, with their T; at most so
    /// many.
    fn listed(
        &self,
        feed: FeedNo,
        after: Option<ListedPlace>,
        max: usize,
    ) -> Result<Vec<(ListedPlace, Stamp)>, StoreError>;
    /// The item of a member at a T, and its bytes as it is stored.
    fn item_at(&self, feed: FeedNo, t: Stamp) -> Result<Option<(Arc<Item>, u64)>, StoreError>;
    /// Items of a member that are, or were last, posts of the group, at most so many.
    fn holdings(&self, feed: FeedNo, max: usize) -> Result<Vec<Holder>, StoreError>;
}

/// The rows of a group that change, and the commit for its posts.
#[derive(Debug)]
pub(super) struct PlannedGroup {
    /// The changes of its posts; decided on the revision that is there.
    pub(super) commit: Commit,
    /// The holders of posts from now on; `None`: nobody.
    pub(super) posts: BTreeMap<ItemId, Option<GroupPost>>,
    /// The posts that members' items are; `None`: none any more, and never were.
    pub(super) holdings: BTreeMap<Holder, Option<ItemId>>,
    /// The posts by name.
    pub(super) keys: BTreeMap<KeyHash, Option<ItemId>>,
    /// The members before.
    pub(super) members_before: GroupRecord,
    /// The members from now on.
    pub(super) members: GroupRecord,
}

impl PlannedGroup {
    /// A plan that changes nothing yet of a group with this record. What is kept of a post is kept
    /// of its member, whose limits hold.
    fn nothing(record: &FeedRecord, members: GroupRecord) -> Self {
        let commit = Commit::nothing(record);
        let basis = CommitBasis {
            limits: KeepLimits {
                item_bytes_max: usize::MAX,
                quota_bytes: None,
            },
            ..commit.basis
        };
        Self {
            commit: Commit { basis, ..commit },
            posts: BTreeMap::new(),
            holdings: BTreeMap::new(),
            keys: BTreeMap::new(),
            members_before: members.clone(),
            members,
        }
    }

    /// True when the commit has something to do.
    pub(super) fn has_commit(&self, record: &FeedRecord) -> bool {
        let Commit {
            changes,
            copies,
            ready,
            metadata,
            archives,
            observed,
            ..
        } = &self.commit;
        !(changes.is_empty() && copies.is_empty())
            || *ready != record.is_ready()
            || metadata.is_some()
            || archives.is_some()
            || observed.is_some()
    }

    /// True when any row changes.
    pub(super) fn changes(&self, record: &FeedRecord) -> bool {
        self.has_commit(record)
            || !(self.posts.is_empty() && self.holdings.is_empty() && self.keys.is_empty())
            || self.members_before != self.members
    }
}

/// A plan for a group, and what its commit comes to.
pub(super) struct PlannedRows {
    /// The group.
    pub(super) group: FeedNo,
    /// Its rows beside its posts.
    pub(super) planned: PlannedGroup,
    /// Its posts; `None` when nothing that is shown changes.
    pub(super) commit: Option<PlannedCommit>,
}

impl PlannedRows {
    /// Works out the commit of a plan for a group that has this record.
    pub(super) fn of(
        record: FeedRecord,
        planned: PlannedGroup,
        now: Stamp,
        held: &impl Held,
    ) -> Result<Self, StoreError> {
        let (group, has_commit) = (record.no, planned.has_commit(&record));
        let commit = has_commit
            .then(|| plan::plan(record, &planned.commit, now, held))
            .transpose()?;
        Ok(Self {
            group,
            planned,
            commit,
        })
    }
}

/// Plans the changes of a group, or of a part, that follow from a commit of a member.
pub(super) fn follow(
    held: &impl GroupHeld,
    (member, commit): (&PlannedCommit, &Commit),
    now: Stamp,
) -> Result<PlannedGroup, StoreError> {
    let (record, group) = held.group()?;
    if let Some(part) = group.part.clone() {
        return part::follow(held, (record, group), &part, (member, commit), now);
    }
    let feed = &member.receipt.feed;
    let mut planner = GroupPlanner::of(held, record, group, now);
    let Some(stage) = planner
        .members_before()
        .member(feed.no)
        .map(|member| member.stage)
    else {
        return Ok(planner.planned());
    };
    planner.know_member(feed);
    let mut items: Vec<Arc<Item>> = member
        .items
        .values()
        .map(|moved| Arc::clone(&moved.item))
        .collect();
    items.sort_unstable_by_key(|item| item.modified);
    for item in &items {
        planner.fresh.insert(
            Holder {
                feed: feed.no,
                item: item.id,
            },
            Arc::clone(item),
        );
    }
    for item in &items {
        let holder = Holder {
            feed: feed.no,
            item: item.id,
        };
        if !item.is_gone() {
            if stage != MemberStage::Leaving {
                planner.hold_item(holder, item)?;
            }
            continue;
        }
        let evidence = member.evidence.iter().find(|(id, ..)| *id == item.id);
        planner.release_item(holder, item, evidence.map(|(.., evidence)| evidence))?;
    }
    Ok(planner.planned())
}

/// Gives a group the members that are wanted, without taking any item in or out.
pub(super) fn set(
    held: &impl GroupHeld,
    wanted: &WantedGroup,
    now: Stamp,
) -> Result<PlannedGroup, StoreError> {
    let planner = GroupPlanner::new(held, now)?;
    let says_otherwise = planner.record().metadata != wanted.metadata;
    let mut planned = planner.planned();
    if says_otherwise {
        planned.commit.metadata = Some(Arc::clone(&wanted.metadata));
    }
    planned.members = planned.members_before.with_members(&wanted.members);
    Ok(planned)
}

/// Takes up to so many items into a group, or out of it.
pub(super) fn advance(
    held: &impl GroupHeld,
    items_max: usize,
    now: Stamp,
) -> Result<PlannedGroup, StoreError> {
    let (record, group) = held.group()?;
    if let Some(part) = group.part.clone() {
        return part::advance(held, (record, group), &part, items_max, now);
    }
    let mut planner = GroupPlanner::of(held, record, group, now);
    let mut after = planner.members_before().clone();
    let joins = after
        .members
        .iter()
        .any(|member| matches!(member.stage, MemberStage::Joining { .. }));
    let leaving = after
        .members
        .iter()
        .find(|member| member.stage == MemberStage::Leaving);
    match leaving.map(|member| member.feed) {
        // Those who come go first: a post that both hold is never gone, nor is the group empty in
        // between.
        Some(feed) if !joins => {
            if planner.take_items_out(feed, items_max)? {
                after.members.retain(|member| member.feed != feed);
            }
        }
        _ => planner.take_items_in(&mut after.members, items_max)?,
    }
    let mut planned = planner.planned();
    planned.commit.ready |= after.is_settled();
    planned.members = after;
    Ok(planned)
}

/// Takes everything of a feed that is removed from the store out of a group at once.
pub(super) fn without(
    held: &impl GroupHeld,
    feed: FeedNo,
    now: Stamp,
) -> Result<PlannedGroup, StoreError> {
    let mut planner = GroupPlanner::new(held, now)?;
    planner.take_items_out(feed, usize::MAX)?;
    let mut planned = planner.planned();
    planned.members.members.retain(|member| member.feed != feed);
    Ok(planned)
}
