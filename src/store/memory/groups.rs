//! Groups in memory.

use super::{MemoryFeed, MemoryState};
use crate::{
    feed::{
        group::{GroupPost, GroupRecord, Holder, ListedPlace},
        item::{Item, ItemId, KeyHash},
        part::{self, PartRecord, WantedPart},
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    store::{
        GroupStep, StoreError, WantedGroup,
        group_plan::{self, GroupHeld, HeldGroup, MemberCommit, PlannedGroup, PlannedRows},
    },
};
use std::{collections::BTreeMap, ops::Bound, sync::Arc};

/// A group, and the rows beside its items.
#[derive(Default)]
pub(super) struct MemoryGroup {
    pub(super) members: GroupRecord,
    pub(super) posts: BTreeMap<ItemId, GroupPost>,
    holdings: BTreeMap<Holder, ItemId>,
}

/// The rows of a group as a plan reads them.
struct MemoryGroupRows<'a> {
    state: &'a MemoryState,
    no: FeedNo,
    group: &'a MemoryGroup,
}

impl MemoryState {
    /// Plans the changes of the groups of a member that follow from its commit.
    pub(super) fn followers(
        &self,
        member: MemberCommit<'_>,
        now: Stamp,
    ) -> Result<Vec<PlannedRows>, StoreError> {
        let feed = member.planned.receipt.feed.no;
        let groups = self
            .groups
            .iter()
            .filter(|(_, group)| group.members.member(feed).is_some());
        groups
            .map(|(no, _)| {
                let held = MemoryGroupRows::of(self, *no)?;
                let planned = group_plan::follow(&held, member, now)?;
                self.rows(*no, planned, now)
            })
            .collect()
    }

    /// Works out the commit of a plan.
    fn rows(
        &self,
        group: FeedNo,
        planned: PlannedGroup,
        now: Stamp,
    ) -> Result<PlannedRows, StoreError> {
        let feed = self.feed(group)?;
        PlannedRows::of(feed.record.clone(), planned, now, feed)
    }

    /// Writes what was planned for a group. `None` when nothing of it is shown.
    pub(super) fn write_group(
        &mut self,
        rows: PlannedRows,
    ) -> Result<Option<FeedRecord>, StoreError> {
        let PlannedRows {
            group: no,
            mut planned,
            commit,
        } = rows;
        // It has made the gap of the record, and is one of the feed.
        planned.commit.observed = None;
        let group = self.groups.entry(no).or_default();
        group.members = planned.members;
        edit(&mut group.posts, planned.posts);
        edit(&mut group.holdings, planned.holdings);
        let feed = self.feed_mut(no)?;
        for (key, id) in planned.keys {
            match id {
                Some(id) => drop(feed.held.keys.insert(key, id)),
                None => drop(feed.held.keys.remove(&key)),
            }
        }
        let Some(commit) = commit else {
            return Ok(None);
        };
        feed.apply(commit, planned.commit)
            .map(|receipt| Some(receipt.feed))
    }

    /// Forgets who holds posts that the operator had removed from a group.
    pub(super) fn forget_posts(&mut self, group: FeedNo, removed: &[ItemId]) {
        let Some(group_rows) = self.groups.get_mut(&group) else {
            return;
        };
        for id in removed {
            let key = group_rows.posts.remove(id).and_then(|post| post.key);
            if let (Some(key), Some(feed)) = (key, self.feeds.get_mut(&group)) {
                feed.held.keys.remove(&key);
            }
        }
    }

    pub(super) fn set_group(
        &mut self,
        group: FeedNo,
        wanted: &WantedGroup,
        now: Stamp,
    ) -> Result<GroupStep, StoreError> {
        self.feed(group)?;
        self.guard.check(now)?;
        self.groups.entry(group).or_default();
        let planned = group_plan::set(&MemoryGroupRows::of(self, group)?, wanted)?;
        self.step(group, planned, now)
    }

    pub(super) fn set_parts(
        &mut self,
        feed: FeedNo,
        wanted: &[WantedPart],
        now: Stamp,
    ) -> Result<Vec<FeedRecord>, StoreError> {
        let of = self.feed(feed)?.record.clone();
        let groups = self.groups.iter().map(|(no, group)| (no, &group.members));
        let held: Vec<(FeedNo, PartRecord)> = groups
            .filter(|(_, group)| group.member(feed).is_some())
            .filter_map(|(no, group)| Some((*no, group.part.clone()?)))
            .collect();
        let choices = part::choose(&held, wanted);
        for no in part::unused(&held, &choices) {
            self.forget(no, now)?;
        }
        let mut parts = Vec::new();
        for (choice, wanted) in choices.into_iter().zip(wanted) {
            let (no, before) = match choice.number() {
                Some(no) => (no, Some(MemoryGroupRows::of(self, no)?.group()?)),
                None => (self.next_number(), None),
            };
            let HeldGroup { record, group } =
                group_plan::part::set(&of, choice, wanted, before, no);
            let held = self.feeds.entry(no);
            held.or_insert_with(|| MemoryFeed::new(record.clone()))
                .record = record.clone();
            self.groups.entry(no).or_default().members = group;
            parts.push(record);
        }
        Ok(parts)
    }

    pub(super) fn advance_group(
        &mut self,
        group: FeedNo,
        items_max: usize,
        now: Stamp,
    ) -> Result<GroupStep, StoreError> {
        let feed = self.feed(group)?.record.clone();
        self.guard.check(now)?;
        if !self.groups.contains_key(&group) {
            return Ok(GroupStep {
                feed,
                is_settled: true,
            });
        }
        let held = MemoryGroupRows::of(self, group)?;
        let planned = group_plan::advance(&held, items_max, now)?;
        self.step(group, planned, now)
    }

    fn step(
        &mut self,
        group: FeedNo,
        planned: PlannedGroup,
        now: Stamp,
    ) -> Result<GroupStep, StoreError> {
        let is_settled = planned.members.is_settled();
        if planned.changes(&self.feed(group)?.record) {
            let rows = self.rows(group, planned, now)?;
            self.write_group(rows)?;
            self.guard.record(now);
        }
        Ok(GroupStep {
            feed: self.feed(group)?.record.clone(),
            is_settled,
        })
    }

    /// Takes everything of a feed out of the groups, before it is removed.
    pub(super) fn leave_all(&mut self, feed: FeedNo, now: Stamp) -> Result<(), StoreError> {
        self.groups.remove(&feed);
        let groups: Vec<FeedNo> = self.groups.keys().copied().collect();
        for no in groups {
            let held = MemoryGroupRows::of(self, no)?;
            if held.group.members.member(feed).is_none() {
                continue;
            }
            if held.group.members.part.is_some() {
                self.forget(no, now)?;
                continue;
            }
            let planned = group_plan::without(&held, feed, now)?;
            let rows = self.rows(no, planned, now)?;
            self.write_group(rows)?;
        }
        Ok(())
    }
}

fn edit<K: Ord, V>(rows: &mut BTreeMap<K, V>, changes: BTreeMap<K, Option<V>>) {
    for (key, value) in changes {
        match value {
            Some(value) => drop(rows.insert(key, value)),
            None => drop(rows.remove(&key)),
        }
    }
}

impl<'a> MemoryGroupRows<'a> {
    fn of(state: &'a MemoryState, no: FeedNo) -> Result<Self, StoreError> {
        let group = state.groups.get(&no).ok_or(StoreError::UnknownFeed(no))?;
        Ok(Self { state, no, group })
    }

    fn feed(&self, no: FeedNo) -> Option<&MemoryFeed> {
        self.state.feeds.get(&no)
    }
}

impl GroupHeld for MemoryGroupRows<'_> {
    fn group(&self) -> Result<HeldGroup, StoreError> {
        Ok(HeldGroup {
            record: self.state.feed(self.no)?.record.clone(),
            group: self.group.members.clone(),
        })
    }

    fn holding(&self, holder: Holder) -> Result<Option<ItemId>, StoreError> {
        Ok(self.group.holdings.get(&holder).copied())
    }

    fn post(&self, id: ItemId) -> Result<Option<GroupPost>, StoreError> {
        Ok(self.group.posts.get(&id).cloned())
    }

    fn post_at(&self, key: KeyHash) -> Result<Option<ItemId>, StoreError> {
        Ok(self
            .feed(self.no)
            .and_then(|feed| feed.held.keys.get(&key).copied()))
    }

    fn shown(&self, id: ItemId) -> Result<Option<Arc<Item>>, StoreError> {
        Ok(self.feed(self.no).and_then(|feed| feed.item(id)))
    }

    fn item(&self, holder: Holder) -> Result<Option<Arc<Item>>, StoreError> {
        Ok(self
            .feed(holder.feed)
            .and_then(|feed| feed.item(holder.item)))
    }

    fn member(&self, feed: FeedNo) -> Result<Option<FeedRecord>, StoreError> {
        Ok(self.feed(feed).map(|feed| feed.record.clone()))
    }

    fn listed(
        &self,
        feed: FeedNo,
        after: Option<ListedPlace>,
        max: usize,
    ) -> Result<Vec<(ListedPlace, Stamp)>, StoreError> {
        let Some(feed) = self.feed(feed) else {
            return Ok(Vec::new());
        };
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = feed
            .held
            .published
            .range((after, Bound::Unbounded))
            .take(max);
        Ok(rows.map(|(place, t)| (*place, *t)).collect())
    }

    fn item_at(&self, feed: FeedNo, t: Stamp) -> Result<Option<(Arc<Item>, u64)>, StoreError> {
        let kept = self.feed(feed).and_then(|feed| feed.held.items.get(&t));
        Ok(kept.map(|kept| (Arc::clone(&kept.item), kept.stored_bytes)))
    }

    fn holdings(&self, feed: FeedNo, max: usize) -> Result<Vec<Holder>, StoreError> {
        let first = Holder {
            feed,
            item: ItemId([0; 10]),
        };
        let last = Holder {
            feed,
            item: ItemId([u8::MAX; 10]),
        };
        Ok(self
            .group
            .holdings
            .range(first..=last)
            .take(max)
            .map(|(holder, _)| *holder)
            .collect())
    }
}
