//! Plan of what a change of a member, or of the members, does to a group: changes of its posts,
//! which are committed as those of any feed, and the rows that say who holds them. Pure; writing is
//! the store's business.

use super::{
    Commit, StoreError, WantedGroup,
    plan::{self, Held, PlannedCommit},
};
use crate::feed::{
    group::{GroupPost, GroupRecord, Holder, MemberStage, PublicationPosition, post_key},
    item::{Item, ItemId, KeyHash, Reason},
    keep_limits::KeepLimits,
    reconcile::{Delete, Evidence},
    record::{FeedNo, FeedRecord},
    stamp::Stamp,
};
use everfeed_adapters::Key;
use planner::GroupPlanner;
use std::{collections::BTreeMap, sync::Arc};

mod planner;

// Limit: a group and a part hold copies of their posts.
pub(super) mod part;

/// The part of a store that a plan for a group reads.
pub(super) trait GroupHeld {
    /// The group as it is.
    fn group(&self) -> Result<HeldGroup, StoreError>;
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
        after: Option<PublicationPosition>,
        max: usize,
    ) -> Result<Vec<(PublicationPosition, Stamp)>, StoreError>;
    /// The item of a member at a T, and its bytes as it is stored.
    fn item_at(&self, feed: FeedNo, t: Stamp) -> Result<Option<(Arc<Item>, u64)>, StoreError>;
    /// Items of a member that are, or were last, posts of the group, at most so many.
    fn holdings(&self, feed: FeedNo, max: usize) -> Result<Vec<Holder>, StoreError>;
}

/// A group as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HeldGroup {
    /// The record of the feed that it is.
    pub(super) record: FeedRecord,
    /// Its members.
    pub(super) group: GroupRecord,
}

/// A commit of a member, and what it comes to.
#[derive(Clone, Copy)]
pub(super) struct MemberCommit<'a> {
    pub(super) planned: &'a PlannedCommit,
    pub(super) commit: &'a Commit,
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
        let mut commit = Commit::nothing(record);
        commit.basis.limits = KeepLimits {
            item_bytes_max: usize::MAX,
            quota_bytes: None,
        };
        Self {
            commit,
            posts: BTreeMap::new(),
            holdings: BTreeMap::new(),
            keys: BTreeMap::new(),
            members_before: members.clone(),
            members,
        }
    }

    /// True when the commit has something to do.
    pub(super) fn has_commit(&self, record: &FeedRecord) -> bool {
        let commit = &self.commit;
        !(commit.changes.is_empty() && commit.copies.is_empty())
            || commit.ready != record.is_ready()
            || commit.metadata.is_some()
            || commit.archives.is_some()
            || commit.observed.is_some()
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
        let group = record.no;
        let commit = if planned.has_commit(&record) {
            Some(plan::plan(record, &planned.commit, now, held)?)
        } else {
            None
        };
        Ok(Self {
            group,
            planned,
            commit,
        })
    }
}

/// The keys by which posts are looked for where an item is to be shown, in a group or a part with this
/// namespace.
pub(super) fn looked_for(namespace: &str, item: &Item) -> Vec<KeyHash> {
    let names = [item.given_id(), &item.iri];
    let names = names.map(|name| Key::Id(name.to_owned()).stripped());
    let names = names.iter().map(|name| KeyHash::of(namespace, name));
    names.chain(post_key(item)).collect()
}

// Decides: What does a change of a member do to its groups?
/// Plans the changes of a group, or of a part, that follow from a commit of a member.
pub(super) fn follow(
    held: &impl GroupHeld,
    member: MemberCommit<'_>,
    now: Stamp,
) -> Result<PlannedGroup, StoreError> {
    let before = held.group()?;
    if let Some(part) = before.group.part.clone() {
        return part::follow(held, before, &part, member, now);
    }
    let MemberCommit { planned, .. } = member;
    let feed = &planned.receipt.feed;
    let mut planner = GroupPlanner::new(held, before, now);
    let Some(stage) = planner
        .members_before()
        .member(feed.no)
        .map(|member| member.stage)
    else {
        return Ok(planner.planned);
    };
    planner.know_member(feed);
    let holder = |item: &Item| Holder {
        feed: feed.no,
        item: item.id,
    };
    let mut items: Vec<&Arc<Item>> = planned.items.values().map(|moved| &moved.item).collect();
    items.sort_unstable_by_key(|item| item.modified);
    planner.fresh = items
        .iter()
        .map(|item| (holder(item), Arc::clone(item)))
        .collect();
    for item in items {
        if item.is_gone() {
            let evidence = planned.evidence.iter().find(|(id, ..)| *id == item.id);
            planner.release_item(holder(item), item, evidence.map(|(.., evidence)| evidence))?;
        } else if stage != MemberStage::Leaving {
            planner.hold_item(holder(item), item)?;
        }
    }
    Ok(planner.planned)
}

/// A deletion without any evidence but that it was decided here.
fn bare_delete(id: ItemId, reason: Reason, now: Stamp) -> Delete {
    Delete {
        id,
        reason,
        first_missing: None,
        last_seen: None,
        evidence: Evidence {
            reason,
            observed_at: now,
            when: None,
            comment: None,
            suspect: None,
            archive_suspect: None,
        },
    }
}

/// Gives a group the members that are wanted, without taking any item in or out.
pub(super) fn set(held: &impl GroupHeld, wanted: &WantedGroup) -> Result<PlannedGroup, StoreError> {
    let HeldGroup { record, group } = held.group()?;
    let mut planned = PlannedGroup::nothing(&record, group);
    if record.metadata != wanted.metadata {
        planned.commit.metadata = Some(Arc::clone(&wanted.metadata));
    }
    planned.members = planned.members_before.with_members(&wanted.members);
    Ok(planned)
}

// Decides: How do members join and leave?
/// Takes up to so many items into a group, or out of it.
pub(super) fn advance(
    held: &impl GroupHeld,
    items_max: usize,
    now: Stamp,
) -> Result<PlannedGroup, StoreError> {
    let before = held.group()?;
    if let Some(part) = before.group.part.clone() {
        return part::advance(held, before, &part, items_max, now);
    }
    let mut after = before.group.clone();
    let mut planner = GroupPlanner::new(held, before, now);
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
    let mut planned = planner.planned;
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
    let mut planner = GroupPlanner::new(held, held.group()?, now);
    planner.take_items_out(feed, usize::MAX)?;
    let mut planned = planner.planned;
    planned.members.members.retain(|member| member.feed != feed);
    Ok(planned)
}
