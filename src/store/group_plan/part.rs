//! Plan of what a change of a feed does to its parts: items are taken over as their feed has them,
//! and leave without a word of what they have become.

use super::{GroupHeld, PlannedGroup};
use crate::{
    feed::{
        filter::Filter,
        group::{GroupRecord, ListedPlace, MemberStage},
        item::{Content, Item, ItemId, KeyHash, Reason},
        part::{PartChoice, PartRecord, WantedPart},
        reconcile::{Change, Delete, Evidence},
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    store::{
        Archives, Commit, GROUP_BATCH_ITEMS, StoreError, groups::GROUP_BATCH_BYTES,
        plan::PlannedCommit,
    },
};
use everfeed_adapters::{Key, Metadata};
use std::{collections::HashSet, sync::Arc};

/// A part as it is stored: the record of the feed that it is, and of the group.
pub(in crate::store) type PartRows = (FeedRecord, GroupRecord);

/// A wanted part as it is stored from now on. `held` is what is stored under its number, if it is
/// there; `no` is a number for one that is made.
pub(in crate::store) fn set(
    feed: &FeedRecord,
    (choice, wanted): (PartChoice, &WantedPart),
    held: Option<PartRows>,
    no: FeedNo,
) -> PartRows {
    let is_edited = matches!(choice, PartChoice::Edited(_));
    let part = PartRecord {
        filter: wanted.filter.clone(),
        audience: wanted.audience.clone(),
        is_edited,
    };
    match held {
        None => (feed.new_part(no), GroupRecord::of_part(feed.no, part)),
        Some((record, _)) if is_edited => (record.withheld(), GroupRecord::of_part(feed.no, part)),
        Some((record, group)) => {
            let was_edited = group.part.as_ref().is_some_and(|part| part.is_edited);
            let part = Some(PartRecord {
                is_edited: was_edited,
                ..part
            });
            (record, GroupRecord { part, ..group })
        }
    }
}

/// Plans the changes of a part that follow from a commit of its feed.
pub(super) fn follow(
    held: &impl GroupHeld,
    (record, group): PartRows,
    part: &PartRecord,
    (member, commit): (&PlannedCommit, &Commit),
    now: Stamp,
) -> Result<PlannedGroup, StoreError> {
    let feed = &member.receipt.feed;
    let is_whole = group.is_settled();
    let has_other_heirs =
        part.filter.is_of_feed() && are_inherited_otherwise(&record.metadata, &feed.metadata);
    let mut planner = PartPlanner::new(held, (record, group), (feed.clone(), &part.filter), now);
    let mut items: Vec<&Arc<Item>> = member.items.values().map(|moved| &moved.item).collect();
    items.sort_unstable_by_key(|item| item.modified);
    for item in items {
        planner.take(item)?;
    }
    if has_other_heirs {
        // Limit: every item of the feed is read in the transaction of the commit.
        let mut after = None;
        loop {
            after = planner.take_listed(after, GROUP_BATCH_ITEMS)?;
            if after.is_none() {
                break;
            }
        }
    }
    planner.take_over(commit, is_whole);
    Ok(planner.planned)
}

/// Looks at up to so many items of the feed of a part that is new, or has another filter.
pub(super) fn advance(
    held: &impl GroupHeld,
    (record, group): PartRows,
    part: &PartRecord,
    items_max: usize,
    now: Stamp,
) -> Result<PlannedGroup, StoreError> {
    let mut after = group.clone();
    let of = after.members.first().map(|member| member.feed);
    let feed = of.map_or(Ok(None), |feed| held.member(feed))?;
    let Some(feed) = feed else {
        return Err(StoreError::UnknownFeed(record.no));
    };
    let is_served = feed.is_ready();
    let mut planner = PartPlanner::new(held, (record, group), (feed, &part.filter), now);
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
        (record, group): PartRows,
        (feed, filter): (FeedRecord, &'a Filter),
        now: Stamp,
    ) -> Self {
        Self {
            planned: PlannedGroup::nothing(&record, group),
            taken: HashSet::new(),
            held,
            feed,
            filter,
            record,
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
        if matches!(held.content, Content::Gone { reason: told, .. } if told == reason) {
            return;
        }
        let evidence = Evidence {
            reason,
            observed_at: self.now,
            when: None,
            comment: None,
            suspect: None,
            archive_suspect: None,
        };
        let delete = Delete {
            id: held.id,
            reason,
            first_missing: None,
            last_seen: None,
            evidence,
        };
        self.planned.commit.changes.push(Change::Delete(delete));
    }

    /// Looks at up to so many items after a place in the order of publication. The place reached;
    /// `None` when there are no more.
    fn take_listed(
        &mut self,
        after: Option<ListedPlace>,
        items_max: usize,
    ) -> Result<Option<ListedPlace>, StoreError> {
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
        let gap = commit.observed.as_ref();
        own.observed = gap
            .filter(|observed| observed.events.iter().any(|event| event.leaves_a_gap()))
            .cloned();
    }
}

/// True when an item of a feed shows something else than its part does.
fn shows_otherwise(part: &Item, item: &Item) -> bool {
    part.content != item.content
        || part.published_us != item.published_us
        || (&part.iri, &part.publisher_id) != (&item.iri, &item.publisher_id)
}

/// True when entries have other authors or another language from their feed.
fn are_inherited_otherwise(before: &Metadata, now: &Metadata) -> bool {
    (&before.authors, &before.language) != (&now.authors, &now.language)
}
