//! A plan for a group that is being made: items of members are held by posts and let go of, and
//! posts are shown and end.

use super::{GroupHeld, HeldGroup, PlannedGroup, bare_delete};
use crate::{
    feed::{
        group::{
            GroupMember, GroupPost, GroupRecord, Holder, MemberSource, MemberStage,
            PublicationPosition, post_key, shows_otherwise,
        },
        item::{Content, Item, ItemId, KeyHash, Reason, uuid_iri},
        reconcile::{Change, Delete, Evidence, Put, PutKind},
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    mistakes::{Mistake, is_made},
    store::{StoreError, groups::GROUP_BATCH_BYTES},
};
use everfeed_adapters::{Entry, Key};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// A post as the plan so far leaves it.
#[derive(Clone)]
enum PostState {
    /// There never was one of this id.
    Missing,
    /// It is shown with this content and this date of publication.
    Live(Arc<Entry>, Option<i64>),
    /// It is a tombstone.
    Gone {
        /// True when its operator here had it removed from the group: it never comes back.
        is_forgotten: bool,
    },
}

/// A plan that is being made.
pub(super) struct GroupPlanner<'a, H> {
    held: &'a H,
    record: FeedRecord,
    now: Stamp,
    /// The members by number, as sources; filled as they are met.
    sources: HashMap<FeedNo, Option<Arc<MemberSource>>>,
    /// Items as the commit leaves them that is planned beside.
    pub(super) fresh: HashMap<Holder, Arc<Item>>,
    states: BTreeMap<ItemId, PostState>,
    /// The posts that this plan begins, by IRI.
    iris: HashMap<String, ItemId>,
    pub(super) planned: PlannedGroup,
}

impl<'a, H: GroupHeld> GroupPlanner<'a, H> {
    /// A plan for the group as it is.
    pub(super) fn new(held: &'a H, before: HeldGroup, now: Stamp) -> Self {
        Self {
            held,
            planned: PlannedGroup::nothing(&before.record, before.group),
            record: before.record,
            now,
            sources: HashMap::new(),
            fresh: HashMap::new(),
            states: BTreeMap::new(),
            iris: HashMap::new(),
        }
    }

    /// The members as they are.
    pub(super) fn members_before(&self) -> &GroupRecord {
        &self.planned.members_before
    }

    /// Knows a member by the record that it is about to have.
    pub(super) fn know_member(&mut self, feed: &FeedRecord) {
        let url = self
            .members_before()
            .member(feed.no)
            .map(|member| member.url.as_str());
        let source = url.map(|url| Arc::new(MemberSource::of(feed, url)));
        self.sources.insert(feed.no, source);
    }

    fn source(&mut self, feed: FeedNo) -> Result<Option<Arc<MemberSource>>, StoreError> {
        if !self.sources.contains_key(&feed) {
            match self.held.member(feed)? {
                Some(record) => self.know_member(&record),
                None => drop(self.sources.insert(feed, None)),
            }
        }
        Ok(self.sources.get(&feed).cloned().flatten())
    }

    fn holding(&self, holder: Holder) -> Result<Option<ItemId>, StoreError> {
        match self.planned.holdings.get(&holder) {
            Some(planned) => Ok(*planned),
            None => self.held.holding(holder),
        }
    }

    fn post(&self, id: ItemId) -> Result<Option<GroupPost>, StoreError> {
        match self.planned.posts.get(&id) {
            Some(planned) => Ok(planned.clone()),
            None => self.held.post(id),
        }
    }

    fn post_at(&self, key: KeyHash) -> Result<Option<ItemId>, StoreError> {
        match self.planned.keys.get(&key) {
            Some(planned) => Ok(*planned),
            None => self.held.post_at(key),
        }
    }

    /// The post with this name. One that ended keeps its name until it comes back under another, or
    /// is forgotten.
    fn named(&mut self, key: KeyHash) -> Result<Option<ItemId>, StoreError> {
        let Some(id) = self.post_at(key)? else {
            return Ok(None);
        };
        let is_its_name = match self.post(id)? {
            Some(post) => post.key == Some(key),
            None => !matches!(self.state(id)?, PostState::Gone { is_forgotten: true }),
        };
        if !is_its_name {
            return Ok(None);
        }
        Ok(Some(id))
    }

    fn state(&mut self, id: ItemId) -> Result<PostState, StoreError> {
        if let Some(state) = self.states.get(&id) {
            return Ok(state.clone());
        }
        let state = match self.held.shown(id)? {
            None => PostState::Missing,
            Some(item) => match &item.content {
                Content::Live(entry) => PostState::Live(Arc::clone(entry), item.published_us),
                Content::Gone { .. } => PostState::Gone {
                    is_forgotten: item.content.is_forgotten(),
                },
            },
        };
        self.states.insert(id, state.clone());
        Ok(state)
    }

    /// Holds a living item of a member: it becomes a post, or is one with another.
    pub(super) fn hold_item(&mut self, holder: Holder, item: &Arc<Item>) -> Result<(), StoreError> {
        let known = self.holding(holder)?;
        if let Some(id) = known
            && matches!(self.state(id)?, PostState::Gone { is_forgotten: true })
        {
            return Ok(());
        }
        let held = match known {
            Some(id) => self
                .post(id)?
                .filter(|post| post.holders.contains(&holder))
                .map(|post| (id, post)),
            None => None,
        };
        let key = post_key(item);
        let named = match key {
            Some(key) => self.named(key)?,
            None => None,
        };
        let id = match (named, &held) {
            (Some(id), _) => id,
            (None, Some((id, post))) if post.holders.len() == 1 => *id,
            (None, _) => self.free_post_id(holder, known)?,
        };
        if let Some((before, _)) = held
            && before != id
        {
            self.release_holder(holder, &self.left_group(before))?;
        }
        let mut post = self.post(id)?.unwrap_or_default();
        let was_shown = post.holders.first().copied();
        post.admit(holder);
        if post.key != key {
            self.rename_post(id, &mut post, key);
        }
        if known != Some(id) {
            self.planned.holdings.insert(holder, Some(id));
        }
        let shown = post.holders.first().copied();
        if self.held.post(id)?.as_ref() == Some(&post) {
            self.planned.posts.remove(&id);
        } else {
            self.planned.posts.insert(id, Some(post));
        }
        let is_of_another = was_shown.is_some() && was_shown != shown;
        if shown == Some(holder) {
            self.show_post(id, holder, item, is_of_another)?;
        }
        Ok(())
    }

    /// The item of a holder as the plan leaves it, unless it is a tombstone.
    fn living(&self, holder: Holder) -> Result<Option<Arc<Item>>, StoreError> {
        let item = match self.fresh.get(&holder) {
            Some(item) => Some(Arc::clone(item)),
            None => self.held.item(holder)?,
        };
        Ok(item.filter(|item| !item.is_gone()))
    }

    /// Gives a post another name.
    fn rename_post(&mut self, id: ItemId, post: &mut GroupPost, key: Option<KeyHash>) {
        if let Some(old) = post.key {
            self.planned.keys.insert(old, None);
        }
        if let Some(new) = key {
            self.planned.keys.insert(new, Some(id));
        }
        post.key = key;
    }

    /// An id for a post of its own: that which the item had last in the group, its own, or one made
    /// of it when others go by these.
    fn free_post_id(&mut self, holder: Holder, last: Option<ItemId>) -> Result<ItemId, StoreError> {
        let namespace = self.record.ids.namespace.clone();
        let made = (0..self.members_before().members.len() + 2).map(|n| {
            let Holder { feed, item } = holder;
            KeyHash::of(&namespace, &format!("{feed}\n{item}\n{n}")).item_id()
        });
        for id in last.into_iter().chain([holder.item]).chain(made) {
            let is_free = match self.state(id)? {
                PostState::Missing => true,
                PostState::Gone { is_forgotten } => !is_forgotten,
                PostState::Live(..) => false,
            };
            if is_free && self.post(id)?.is_none() {
                return Ok(id);
            }
        }
        // Each of these is held by another member, and there are more of them than members.
        Err(StoreError::Damaged(format!(
            "item {} finds no place in group `{}`",
            holder.item, self.record.name
        )))
    }

    /// Lets go of an item that is a tombstone in its feed.
    pub(super) fn release_item(
        &mut self,
        holder: Holder,
        item: &Item,
        evidence: Option<&Evidence>,
    ) -> Result<(), StoreError> {
        let Content::Gone {
            reason,
            first_missing,
            last_seen,
        } = item.content
        else {
            return Ok(());
        };
        let Some(id) = self.holding(holder)? else {
            return Ok(());
        };
        let mut loss = bare_delete(id, reason, self.now);
        loss.first_missing = first_missing;
        loss.last_seen = last_seen;
        if let Some(evidence) = evidence {
            loss.evidence = evidence.clone();
        }
        let post = self.post(id)?;
        if post
            .as_ref()
            .is_some_and(|post| post.holders.contains(&holder))
        {
            return self.release_holder(holder, &loss);
        }
        // It was a tombstone already, and now everything of it goes.
        let is_held = post.is_some();
        if reason == Reason::Forgotten
            && !is_held
            && let PostState::Gone { is_forgotten } = self.state(id)?
            && !is_forgotten
        {
            self.end_post(&loss);
        }
        Ok(())
    }

    /// Takes a holder from a post, which ends with the last by this loss.
    fn release_holder(&mut self, holder: Holder, loss: &Delete) -> Result<(), StoreError> {
        let id = loss.id;
        let Some(mut post) = self.post(id)? else {
            return Ok(());
        };
        let was_shown = post.holders.first() == Some(&holder);
        post.holders.retain(|held| *held != holder);
        if is_made(Mistake::HolderForgotten) {
            post.holders.clear();
        }
        while let Some(next) = post.holders.first().copied() {
            if let Some(item) = self.living(next)? {
                self.planned.posts.insert(id, Some(post));
                return if was_shown {
                    self.show_post(id, next, &item, true)
                } else {
                    Ok(())
                };
            }
            // Its own turn to be released comes.
            post.holders.remove(0);
        }
        // It keeps its name: whoever has the post next brings the same one back.
        self.planned.posts.insert(id, None);
        if matches!(self.state(id)?, PostState::Live(..)) {
            self.end_post(loss);
        }
        Ok(())
    }

    /// Makes a post a tombstone.
    fn end_post(&mut self, loss: &Delete) {
        let is_forgotten = loss.reason == Reason::Forgotten;
        let changes = &mut self.planned.commit.changes;
        changes.push(Change::Delete(loss.clone()));
        self.states
            .insert(loss.id, PostState::Gone { is_forgotten });
    }

    /// The loss of a post whose item is no item of the group any more, and lives on in its feed.
    fn left_group(&self, id: ItemId) -> Delete {
        bare_delete(id, Reason::LeftGroup, self.now)
    }

    /// The IRI of a post: that of the item, unless another post goes by it. Two posts under one id
    /// and different links, as two members may have them, would be one for whoever tells posts by
    /// their ids, and the tombstone of one would name the other.
    fn iri(&mut self, id: ItemId, item: &Item) -> Result<String, StoreError> {
        if let Some(before) = self.held.shown(id)? {
            return Ok(before.iri.clone());
        }
        let other = match self.iris.get(&item.iri) {
            Some(planned) => Some(*planned),
            None => match self.post_at(self.name(&item.iri))? {
                Some(other) => self
                    .held
                    .shown(other)?
                    .filter(|post| post.iri == item.iri)
                    .map(|_| other),
                None => None,
            },
        };
        if other.is_some_and(|other| other != id) {
            return Ok(uuid_iri(&self.record.ids.namespace, &format!("post\n{id}")));
        }
        self.iris.insert(item.iri.clone(), id);
        Ok(item.iri.clone())
    }

    /// The key under which a post is found by an id.
    fn name(&self, id: &str) -> KeyHash {
        KeyHash::of(
            &self.record.ids.namespace,
            &Key::Id(id.to_owned()).stripped(),
        )
    }

    /// Shows an item as a post, if that changes anything: its source counts when it is another one
    /// than before.
    fn show_post(
        &mut self,
        id: ItemId,
        holder: Holder,
        item: &Arc<Item>,
        is_of_another: bool,
    ) -> Result<(), StoreError> {
        let Some(source) = self.source(holder.feed)? else {
            return Ok(());
        };
        let Some(entry) = source.entry(item) else {
            return Ok(());
        };
        let kind = match self.state(id)? {
            PostState::Missing => PutKind::Added,
            PostState::Gone { .. } => PutKind::Revived,
            PostState::Live(shown, published_us) => {
                let is_same = published_us == item.published_us || item.published_us.is_none();
                let is_other = if is_of_another {
                    *shown != *entry
                } else {
                    shows_otherwise(&shown, &entry)
                };
                if is_same && !is_other {
                    return Ok(());
                }
                PutKind::Edited
            }
        };
        let iri = self.iri(id, item)?;
        let name = if iri == item.iri {
            item.given_id()
        } else {
            &iri
        };
        let keys = vec![self.name(name)];
        self.states
            .insert(id, PostState::Live(Arc::clone(&entry), item.published_us));
        self.planned.commit.changes.push(Change::Put(Put {
            kind,
            id,
            iri,
            keys,
            entry,
            published_us: item.published_us,
            digests: item.digests,
            witnesses: Vec::new(),
        }));
        Ok(())
    }

    /// Takes items of a member out. True when there are no more.
    pub(super) fn take_items_out(
        &mut self,
        feed: FeedNo,
        items_max: usize,
    ) -> Result<bool, StoreError> {
        let holders = self.held.holdings(feed, items_max)?;
        for holder in &holders {
            if let Some(id) = self.holding(*holder)? {
                self.release_holder(*holder, &self.left_group(id))?;
            }
            self.planned.holdings.insert(*holder, None);
        }
        Ok(holders.len() < items_max)
    }

    /// Takes items of the members that join in, the oldest of all of them first.
    pub(super) fn take_items_in(
        &mut self,
        members: &mut [GroupMember],
        items_max: usize,
    ) -> Result<(), StoreError> {
        let mut waiting: Vec<(PublicationPosition, FeedNo, Stamp)> = Vec::new();
        // The last places of those of whom all that is left is waiting.
        let mut ends: HashMap<FeedNo, Option<PublicationPosition>> = HashMap::new();
        for member in members.iter() {
            let MemberStage::Joining { after } = member.stage else {
                continue;
            };
            let listed = self.held.listed(member.feed, after, items_max)?;
            if listed.len() < items_max {
                ends.insert(member.feed, listed.last().map(|(place, _)| *place));
            }
            waiting.extend(listed.into_iter().map(|(place, t)| (place, member.feed, t)));
        }
        waiting.sort_unstable();
        let mut taken: HashMap<FeedNo, PublicationPosition> = HashMap::new();
        let mut bytes = 0;
        for (place, feed, t) in waiting.into_iter().take(items_max) {
            if bytes >= GROUP_BATCH_BYTES {
                break;
            }
            if let Some((item, weight)) = self.held.item_at(feed, t)?
                && !item.is_gone()
            {
                bytes += weight;
                let item_id = item.id;
                self.hold_item(
                    Holder {
                        feed,
                        item: item_id,
                    },
                    &item,
                )?;
            }
            taken.insert(feed, place);
        }
        for member in members {
            let MemberStage::Joining { after } = member.stage else {
                continue;
            };
            let last_taken = taken.get(&member.feed).copied();
            let after = last_taken.or(after);
            let end = ends.get(&member.feed);
            let is_whole = end.is_some_and(|last| *last == last_taken);
            member.stage = if is_whole {
                MemberStage::Joined
            } else {
                MemberStage::Joining { after }
            };
        }
        Ok(())
    }
}
