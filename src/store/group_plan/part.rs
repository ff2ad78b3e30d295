//! Plan of what a change of a feed does to its parts: items are taken over as their feed has them,
//! and leave without a word of what they have become.

use super::{GroupHeld, HeldGroup, MemberCommit, PlannedGroup, bare_delete};
use crate::{
    feed::{
        filter::Filter,
        group::{GroupRecord, MemberStage, PublicationPosition},
        item::{Content, Item, ItemId, KeyHash, Reason},
        part::{PartChoice, PartRecord, WantedPart},
        reconcile::Change,
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    mistakes::{Mistake, is_made},
    store::{Archives, Commit, GROUP_BATCH_ITEMS, StoreError, groups::GROUP_BATCH_BYTES},
};
use everfeed_adapters::{Key, Metadata};
use std::{collections::HashSet, sync::Arc};

/// A wanted part as it is stored from now on. `held` is what is stored under its number, if it is
/// there; `no` is a number for one that is made.
pub(in crate::store) fn set(
    feed: &FeedRecord,
    choice: PartChoice,
    wanted: &WantedPart,
    held: Option<HeldGroup>,
    no: FeedNo,
) -> HeldGroup {
    let is_edited = matches!(choice, PartChoice::Edited(_));
    let mut part = PartRecord {
        filter: wanted.filter.clone(),
        audience: wanted.audience.clone(),
        is_edited,
    };
    match held {
        None => HeldGroup {
            record: feed.new_part(no),
            group: GroupRecord::of_part(feed.no, part),
        },
        Some(held) if is_edited => HeldGroup {
            record: held.record.withheld(),
            group: GroupRecord::of_part(feed.no, part),
        },
        Some(mut held) => {
            part.is_edited = held.group.part.is_some_and(|part| part.is_edited);
            held.group.part = Some(part);
            held
        }
    }
}

/// Plans the changes of a part that follow from a commit of its feed.
pub(super) fn follow(
    held: &impl GroupHeld,
    before: HeldGroup,
    part: &PartRecord,
    member: MemberCommit<'_>,
    now: Stamp,
) -> Result<PlannedGroup, StoreError> {
    let MemberCommit { planned, commit } = member;
    let feed = &planned.receipt.feed;
    let is_whole = before.group.is_settled();
    let has_other_heirs = part.filter.is_of_feed()
        && are_inherited_otherwise(&before.record.metadata, &feed.metadata);
    let mut planner = PartPlanner::new(held, before, feed.clone(), &part.filter, now);
    let mut items: Vec<&Arc<Item>> = planned.items.values().map(|moved| &moved.item).collect();
    items.sort_unstable_by_key(|item| item.modified);
    for item in items {
        planner.take(item)?;
    }
    if has_other_heirs {
        // Limit: every item of the feed is read in the transaction of the commit.
        let mut after = planner.take_listed(None, GROUP_BATCH_ITEMS)?;
        while after.is_some() {
            after = planner.take_listed(after, GROUP_BATCH_ITEMS)?;
        }
    }
    planner.take_over(commit, is_whole);
    Ok(planner.planned)
}

/// Looks at up to so many items of the feed of a part that is new, or has another filter.
pub(super) fn advance(
    held: &impl GroupHeld,
    before: HeldGroup,
    part: &PartRecord,
    items_max: usize,
    now: Stamp,
) -> Result<PlannedGroup, StoreError> {
    let mut after = before.group.clone();
    let feed = match after.members.first() {
        Some(member) => held.member(member.feed)?,
        None => None,
    };
    let feed = feed.ok_or(StoreError::UnknownFeed(before.record.no))?;
    let is_served = feed.is_ready();
    let mut planner = PartPlanner::new(held, before, feed, &part.filter, now);
    for member in &mut after.members {
        if let MemberStage::Joining { after } = member.stage {
            let reached = planner.take_listed(after, items_max)?;
            member.stage = match reached {
                Some(_) => MemberStage::Joining { after: reached },
                None => MemberStage::Joined,
            };
        }
    }
    let mut planned = planner.planned;
    planned.commit.ready |= is_served && after.is_settled();
    planned.members = after;
    Ok(planned)
}

/// A plan for a part that is being made.
struct PartPlanner<'a, H> {
    held: &'a H,
    /// The feed as it is about to be.
    feed: FeedRecord,
    filter: &'a Filter,
    /// The part as it is.
    record: FeedRecord,
    now: Stamp,
    /// The items that were looked at as they are about to be.
    taken: HashSet<ItemId>,
    planned: PlannedGroup,
}

impl<'a, H: GroupHeld> PartPlanner<'a, H> {
    fn new(
        held: &'a H,
        before: HeldGroup,
        feed: FeedRecord,
        filter: &'a Filter,
        now: Stamp,
    ) -> Self {
        Self {
            planned: PlannedGroup::nothing(&before.record, before.group),
            taken: HashSet::new(),
            held,
            feed,
            filter,
            record: before.record,
            now,
        }
    }

    /// Holds an item of the feed against the filter, and changes the part by it.
    fn take(&mut self, item: &Arc<Item>) -> Result<(), StoreError> {
        if !self.taken.insert(item.id) {
            return Ok(());
        }
        let is_in = self.filter.shows(item, &self.feed);
        let held = self.held.shown(item.id)?;
        let Some(held) = held else {
            if is_in {
                self.copy(item);
            }
            return Ok(());
        };
        if is_in {
            if shows_otherwise(&held, item) {
                self.copy(item);
            }
        } else if item.content.is_forgotten() {
            if !held.content.is_forgotten() {
                self.copy(item);
            }
        } else if !held.is_gone() && item.is_gone() {
            self.copy(item);
        } else if !held.is_gone() || self.filter.shows_gone_alone() {
            self.leave(&held);
        }
        Ok(())
    }

    fn copy(&mut self, item: &Arc<Item>) {
        let commit = &mut self.planned.commit;
        for name in [item.given_id(), &item.iri] {
            let key = Key::Id(name.to_owned()).stripped();
            let key = KeyHash::of(&self.record.ids.namespace, &key);
            commit.aliases.push((key, item.id));
        }
        commit.copies.push(Arc::clone(item));
    }

    /// Makes an item that lives on in its feed a tombstone, which says nothing of it.
    fn leave(&mut self, held: &Item) {
        let reason = Reason::LeftView;
        let is_told = matches!(held.content, Content::Gone { reason: told, .. } if told == reason);
        if is_told || is_made(Mistake::PartKeepsItems) {
            return;
        }
        let delete = bare_delete(held.id, reason, self.now);
        self.planned.commit.changes.push(Change::Delete(delete));
    }

    /// Looks at up to so many items after a place in the order of publication. The place reached;
    /// `None` when there are no more.
    fn take_listed(
        &mut self,
        after: Option<PublicationPosition>,
        items_max: usize,
    ) -> Result<Option<PublicationPosition>, StoreError> {
        let listed = self.held.listed(self.feed.no, after, items_max)?;
        let is_end = listed.len() < items_max;
        let (mut reached, mut bytes) = (after, 0);
        for (place, t) in listed {
            if bytes >= GROUP_BATCH_BYTES {
                return Ok(reached);
            }
            if let Some((item, weight)) = self.held.item_at(self.feed.no, t)? {
                bytes += weight;
                self.take(&item)?;
            }
            reached = Some(place);
        }
        Ok(reached.filter(|_| !is_end))
    }

    /// Takes over what a commit says of the feed beside its items.
    fn take_over(&mut self, commit: &Commit, is_whole: bool) {
        let (feed, part) = (&self.feed, &self.record);
        let own = &mut self.planned.commit;
        own.basis.limits.quota_bytes = commit.basis.limits.quota_bytes;
        own.id_rule = commit.id_rule;
        own.ready |= is_whole && feed.is_ready();
        if part.metadata != feed.metadata {
            own.metadata = Some(Arc::clone(&feed.metadata));
        }
        let (told, now) = (&part.completeness, &feed.completeness);
        if told.history != now.history || told.last_walk != now.last_walk {
            own.archives = Some(Archives {
                history: now.history.clone(),
                unstage: None,
                walked: now.last_walk.clone(),
            });
        }
        if let Some(observed) = &commit.observed
            && observed.events.iter().any(|event| event.leaves_a_gap())
        {
            own.observed = Some(observed.clone());
        }
    }
}

/// True when an item of a feed shows something else than its part does.
fn shows_otherwise(part: &Item, item: &Item) -> bool {
    part.content != item.content
        || part.published_us != item.published_us
        || part.iri != item.iri
        || part.publisher_id != item.publisher_id
}

/// True when entries have other authors or another language from their feed.
fn are_inherited_otherwise(before: &Metadata, now: &Metadata) -> bool {
    before.authors != now.authors || before.language != now.language
}
