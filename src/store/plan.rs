//! Plan of a commit: the rows to write, worked out before the first is written. Pure; writing is
//! the store's business.

use super::{
    Commit, Receipt, StoreError,
    feeds::WITNESSED_MAX,
    stored::{
        damaged,
        item::{encode_item, plain_bytes},
    },
};
use crate::feed::{
    item::{Content, Item, ItemDigests, ItemId, KeyHash, PublisherId, Reason, Witnesses, uuid_iri},
    item_cap::shortened,
    keep_limits::KeepLimits,
    moment::Moment,
    part_caps::differing,
    reconcile::{Change, Delete, Evidence, Put, PutKind, WindowState},
    record::{FeedRecord, GAPS_MAX, Gap, WindowFigures},
    stamp::Stamp,
};
use crate::secret::logged_url;
use everfeed_adapters::{Metadata, Rhythm};
use std::{collections::BTreeMap, sync::Arc};

/// The part of a feed that a plan reads.
pub(super) trait Held {
    /// The item as it is held.
    fn item(&self, id: ItemId) -> Result<Option<Arc<Item>>, StoreError>;
    /// The id of the item that holds this T.
    fn id_at(&self, t: Stamp) -> Result<Option<ItemId>, StoreError>;
    /// Bytes of the item that holds this T, as it is stored.
    fn bytes_at(&self, t: Stamp) -> Result<u64, StoreError>;
    /// Bytes of all items, as they are stored.
    fn bytes(&self) -> Result<u64, StoreError>;
}

/// The changes of one commit, before they are applied.
pub(super) struct PlannedCommit {
    /// The answer, with the feed as it will be.
    pub(super) receipt: Receipt,
    /// The items as they will be, and the T whose place each leaves.
    pub(super) items: BTreeMap<ItemId, Moved>,
    /// Evidence of the deletions.
    pub(super) evidence: Vec<(ItemId, Stamp, Evidence)>,
    /// Items whose evidence is removed.
    pub(super) forgotten: Vec<ItemId>,
    /// The last T of the feed before the commit.
    pub(super) last_t_before: Stamp,
}

impl PlannedCommit {
    /// True when what is kept of the feed besides its items may show what was forgotten: an alias may
    /// be the name under which a document shows it.
    pub(super) fn may_show_forgotten(&self, commit: &Commit) -> bool {
        let has_forgotten = self.receipt.feed.completeness.has_forgotten;
        !self.forgotten.is_empty() || (has_forgotten && !commit.aliases.is_empty())
    }
}

/// An item that takes a new place.
pub(super) struct Moved {
    /// Its place before; `None` if it is new.
    pub(super) from: Option<FormerStamps>,
    /// As it will be.
    pub(super) item: Arc<Item>,
    /// The same as it is stored.
    pub(super) encoded: Vec<u8>,
}

/// The stamps under which an item stood.
#[derive(Clone, Copy)]
pub(super) struct FormerStamps {
    /// Its T.
    pub(super) t: Stamp,
    /// Its date in the order of publication.
    pub(super) listed: Moment,
}

impl FormerStamps {
    fn of(item: &Item) -> Self {
        Self {
            t: item.modified,
            listed: item.listed(),
        }
    }
}

// Decides: Which T does a change get?
/// Works a commit out, unless a later writer came before it or it was decided on another state.
/// T = max(now, last T of the feed or of a store before it + 1 us), change by change.
pub(super) fn plan(
    record: FeedRecord,
    commit: &Commit,
    now: Stamp,
    held: &impl Held,
) -> Result<PlannedCommit, StoreError> {
    if record.rev != commit.basis.rev {
        return Err(StoreError::Conflict { found: record.rev });
    }
    let before = record.last_t;
    let stamped = Vec::with_capacity(commit.changes.len());
    let receipt = Receipt {
        feed: record,
        stamped,
        groups: Vec::new(),
    };
    let mut plan = PlannedCommit {
        receipt,
        items: BTreeMap::new(),
        evidence: Vec::new(),
        forgotten: Vec::new(),
        last_t_before: before,
    };
    for change in &commit.changes {
        let t = plan.receipt.feed.next_t(now);
        plan.plan_change(change, t, &commit.basis.limits, held)?;
        plan.receipt.feed.last_t = t;
    }
    for item in &commit.copies {
        let t = plan.receipt.feed.next_t(now);
        plan.copy_item(item, t, held)?;
        plan.receipt.feed.last_t = t;
    }
    plan.close_record(commit, now, held)?;
    plan.mark_gap(commit, before, held)?;
    plan.weigh_items(&commit.basis.limits, held)?;
    Ok(plan)
}

impl PlannedCommit {
    fn plan_change(
        &mut self,
        change: &Change,
        t: Stamp,
        limits: &KeepLimits,
        held: &impl Held,
    ) -> Result<(), StoreError> {
        let id = change.id();
        // An item may change twice in one commit: only its last version is written.
        let (from, before) = match self.items.remove(&id) {
            Some(moved) => (moved.from, Some(moved.item)),
            None => {
                let item = held.item(id)?;
                (item.as_deref().map(FormerStamps::of), item)
            }
        };
        let item = match change {
            Change::Put(put) => self.put_item(put, before, t, limits.item_bytes_max)?,
            Change::Delete(delete) => self.delete_item(delete, before, t)?,
        };
        self.place_item(from, item);
        Ok(())
    }

    /// Gives an item its place, and its T to the receipt.
    fn place_item(&mut self, from: Option<FormerStamps>, item: Item) {
        self.receipt.stamped.push((item.id, item.modified));
        let moved = Moved {
            from,
            encoded: Vec::new(),
            item: Arc::new(item),
        };
        self.items.insert(moved.item.id, moved);
    }

    /// Takes over an item as another feed has it, with our times.
    fn copy_item(&mut self, copied: &Item, t: Stamp, held: &impl Held) -> Result<(), StoreError> {
        let before = held.item(copied.id)?;
        let known = before.as_deref();
        let was_live = known.is_some_and(|item| !item.is_gone());
        let feed = &mut self.receipt.feed;
        feed.items.total += u64::from(known.is_none());
        feed.items.live = feed.items.live.saturating_sub(u64::from(was_live));
        feed.items.live += u64::from(!copied.is_gone());
        if copied.content.is_forgotten() {
            self.forgotten.push(copied.id);
            feed.completeness.has_forgotten = true;
        }
        let is_revived = !copied.is_gone() && known.is_some_and(Item::is_gone);
        let tombstones = known.map_or(0, |before| before.tombstone_count);
        let item = Item {
            modified: t,
            created: known.map_or(t, |before| before.created),
            revived: if is_revived {
                Some(t)
            } else {
                known.and_then(|before| before.revived)
            },
            tombstone_count: tombstones.saturating_add(u8::from(copied.is_gone())),
            ..copied.clone()
        };
        self.place_item(known.map(FormerStamps::of), item);
        Ok(())
    }

    fn put_item(
        &mut self,
        put: &Put,
        before: Option<Arc<Item>>,
        t: Stamp,
        bytes_max: usize,
    ) -> Result<Item, StoreError> {
        let fits = match put.kind {
            PutKind::Added => before.is_none(),
            PutKind::Edited => before.as_ref().is_some_and(|item| !item.is_gone()),
            PutKind::Revived => before.as_ref().is_some_and(|item| item.is_gone()),
        };
        if !fits {
            return Err(damaged(format!(
                "item {} cannot be {:?} as it is",
                put.id, put.kind
            )));
        }
        let feed = &mut self.receipt.feed;
        feed.items.total += u64::from(put.kind == PutKind::Added);
        feed.items.live += u64::from(put.kind != PutKind::Edited);
        let short = shortened(&put.entry, bytes_max);
        feed.items.shortened += u64::from(short.is_some());
        if let Some(entry) = &short {
            tracing::warn!(
                feed.name = %feed.name, item.id = %put.id, item.iri = logged_url(&put.iri),
                "An item of `{}` is kept without all of its {}: parts that are too long are cut or left out, and what exceeds {bytes_max} bytes in all (keep.item_bytes_max)",
                feed.name,
                differing(&put.entry, entry).join(", ")
            );
            debug_assert!(
                shortened(entry, bytes_max).is_none(),
                "what is short enough stays as it is"
            );
        }
        let before = before.as_deref();
        let revived = match put.kind {
            PutKind::Revived => Some(t),
            _ => before.and_then(|before| before.revived),
        };
        let publisher_id = match before {
            Some(before) => PublisherId::with_source(before.publisher_id.as_ref(), None),
            None => PublisherId::of(&put.entry, &put.iri, &feed.ids.namespace),
        };
        Ok(Item {
            id: put.id,
            iri: before.map_or(&put.iri, |before| &before.iri).clone(),
            publisher_id,
            modified: t,
            created: before.map_or(t, |before| before.created),
            revived,
            published_us: put
                .published_us
                .or(before.and_then(|before| before.published_us)),
            tombstone_count: before.map_or(0, |before| before.tombstone_count),
            content: Content::Live(short.unwrap_or_else(|| put.entry.clone())),
            digests: put.digests,
        })
    }

    fn delete_item(
        &mut self,
        delete: &Delete,
        before: Option<Arc<Item>>,
        t: Stamp,
    ) -> Result<Item, StoreError> {
        let cannot = || {
            damaged(format!(
                "item {} cannot be deleted: it is not live",
                delete.id
            ))
        };
        let before = before.ok_or_else(cannot)?;
        if before.is_gone() && !matches!(delete.reason, Reason::Forgotten | Reason::LeftView) {
            return Err(cannot());
        }
        // Damage that was not noticed before must not become a panic here.
        let live = u64::from(!before.is_gone());
        self.receipt.feed.items.live = self.receipt.feed.items.live.saturating_sub(live);
        // What was held is stripped, and what the next poll is compared with stays.
        let item = Item {
            content: Content::Gone {
                reason: delete.reason,
                first_missing: delete.first_missing,
                last_seen: delete.last_seen,
            },
            modified: t,
            iri: before.iri.clone(),
            publisher_id: None,
            tombstone_count: before.tombstone_count.saturating_add(1),
            ..*before
        };
        match delete.reason {
            Reason::Forgotten => {
                self.forgotten.push(delete.id);
                self.receipt.feed.completeness.has_forgotten = true;
                // Digests of what was removed stay, by which it is recognised.
                Ok(Item {
                    publisher_id: PublisherId::of_forgotten(Witnesses::of_item(&before)),
                    ..without_words(item)
                })
            }
            Reason::LeftView => Ok(Item {
                published_us: None,
                ..without_words(item)
            }),
            _ => {
                self.evidence.push((delete.id, t, delete.evidence.clone()));
                let source = before.remaining_source();
                Ok(Item {
                    publisher_id: PublisherId::of_gone(&before, source),
                    ..item
                })
            }
        }
    }

    /// Counts the bytes of the feed, and refuses what its quota refuses. A commit that forgets an
    /// item, or that takes away and adds nothing, is always made.
    fn weigh_items(&mut self, limits: &KeepLimits, held: &impl Held) -> Result<(), StoreError> {
        let feed = &mut self.receipt.feed;
        let before = match feed.items.bytes {
            Some(bytes) => bytes,
            None => held.bytes()?,
        };
        let (mut added, mut removed) = (0_u64, 0_u64);
        for moved in self.items.values_mut() {
            moved.encoded = encode_item(&moved.item)?;
            added += plain_bytes(&moved.encoded);
            if let Some(from) = moved.from {
                removed += held.bytes_at(from.t)?;
            }
        }
        let bytes = before.saturating_add(added).saturating_sub(removed);
        let adds = self.items.values().any(|moved| !moved.item.is_gone());
        if adds
            && self.forgotten.is_empty()
            && let Some(quota_bytes) = limits.quota_against(added, removed, bytes)
        {
            return Err(StoreError::Quota {
                feed: feed.name.clone(),
                bytes,
                quota_bytes,
            });
        }
        feed.items.bytes = Some(bytes);
        Ok(())
    }

    /// Notes that items may be missing before those of this commit, when its document began the
    /// window anew.
    fn mark_gap(
        &mut self,
        commit: &Commit,
        before: Stamp,
        held: &impl Held,
    ) -> Result<(), StoreError> {
        let Some(observed) = &commit.observed else {
            return Ok(());
        };
        let mut events = observed.events.iter().copied();
        let Some(event) = events.find(|event| event.leaves_a_gap()) else {
            return Ok(());
        };
        let newest = held.id_at(before)?;
        let cursor = |t: Stamp, id: ItemId| self.receipt.feed.cursor(t, id).unwrap_or_default();
        let before = newest.map_or_else(String::new, |id| cursor(before, id));
        // Of an item that changed twice in one commit only the later T stands for something.
        let stands = |(id, t): &&(ItemId, Stamp)| {
            self.items
                .get(id)
                .is_some_and(|kept| kept.item.modified == *t)
        };
        let first = self.receipt.stamped.iter().find(stands);
        let after = first.map_or_else(|| before.clone(), |(id, t)| cursor(*t, *id));
        let gaps = &mut self.receipt.feed.completeness.gaps;
        gaps.push(Gap {
            at: observed.at,
            event,
            before,
            after,
        });
        gaps.drain(..gaps.len().saturating_sub(GAPS_MAX));
        Ok(())
    }

    /// Changes the record of the feed itself.
    fn close_record(
        &mut self,
        commit: &Commit,
        now: Stamp,
        held: &impl Held,
    ) -> Result<(), StoreError> {
        let feed = &mut self.receipt.feed;
        feed.rev += 1;
        feed.ids.rule = commit.id_rule;
        if let Some(last) = &commit.last {
            feed.window = figures(last);
        }
        if let Some(archives) = &commit.archives {
            feed.completeness.history.clone_from(&archives.history);
            if archives.walked.is_some() {
                feed.completeness.last_walk.clone_from(&archives.walked);
            }
        }
        if let Some(metadata) = &commit.metadata {
            if renders_otherwise(&feed.metadata, metadata) {
                feed.metadata_t = feed.metadata_t.next().max(now);
            }
            feed.metadata = Arc::clone(metadata);
        }
        if commit.ready && feed.completeness.first_cursor.is_none() {
            let newest = match self.receipt.stamped.last() {
                Some((id, _)) => Some(*id),
                None => held.id_at(feed.last_t)?,
            };
            let cursor = newest.and_then(|id| feed.cursor(feed.last_t, id));
            feed.completeness.first_cursor = Some(cursor.unwrap_or_default());
        }
        Ok(())
    }
}

/// An item of which nothing is told any more: it was removed for good, or a reader may not see it.
/// An id of the publisher may be a permalink, or words of the title.
fn without_words(item: Item) -> Item {
    let iri = if item.iri.starts_with("urn:uuid:") {
        item.iri
    } else {
        uuid_iri("", &item.id.to_string())
    };
    Item {
        iri,
        digests: ItemDigests::default(),
        ..item
    }
}

/// Figures of a window, told without reading it.
fn figures(window: &WindowState) -> WindowFigures {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    WindowFigures {
        quarantined_since: window.absence.quarantined_since,
        suspects: count(window.absence.suspects().count()),
        deferred: count(window.deferred.len()),
        reformatted_at: window.reformatted_at,
        next_check_at: window.next_check_at(),
    }
}

/// The keys that a commit binds to items, the first one first: a key that is bound stays bound.
pub(super) fn bindings(commit: &Commit) -> impl Iterator<Item = (KeyHash, ItemId)> {
    puts(commit)
        .flat_map(|put| put.keys.iter().map(|key| (*key, put.id)))
        .chain(commit.aliases.iter().copied())
}

/// The witnesses of the items of a commit, in the order of their changes.
pub(super) fn witnesses(commit: &Commit) -> impl Iterator<Item = (KeyHash, ItemId)> {
    puts(commit).flat_map(|put| put.witnesses.iter().map(|witness| (*witness, put.id)))
}

fn puts(commit: &Commit) -> impl Iterator<Item = &Put> {
    commit.changes.iter().filter_map(|change| match change {
        Change::Put(put) => Some(put),
        Change::Delete(_) => None,
    })
}

/// Adds an item to those of a witness, newest last; `None` when it is among them already.
pub(super) fn witnessed(held: &[ItemId], id: ItemId) -> Option<Vec<ItemId>> {
    if held.contains(&id) {
        return None;
    }
    let kept = &held[held.len().saturating_sub(WITNESSED_MAX - 1)..];
    Some(kept.iter().copied().chain([id]).collect())
}

/// True when anything rendered of a head differs. Its dates churn with every poll, so they are
/// never shown (a document carries T instead), and its rhythm, its place in a longer list and its
/// cloud speak to pollers only: none of them may change what consumers have cached.
fn renders_otherwise(old: &Metadata, new: &Metadata) -> bool {
    let as_if_rendered_alike = Metadata {
        updated: old.updated.clone(),
        published: old.published.clone(),
        rhythm: Rhythm {
            skip_hours: new.rhythm.skip_hours.clone(),
            skip_days: new.rhythm.skip_days.clone(),
            ..old.rhythm.clone()
        },
        paging: old.paging.clone(),
        cloud: old.cloud.clone(),
        ..new.clone()
    };
    as_if_rendered_alike != *old
}
