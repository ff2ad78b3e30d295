//! Groups: their rows as a plan reads them, and how a plan is written; not what it
//! comes to.

use super::{
    Writing, counted,
    open_table::{TableEdit as _, TableSource as _},
    planned::write_planned,
    reads,
    tables::{
        FEEDS, GROUP_POSTS, GROUPS, HOLDINGS, IDS, ITEMS, KEYS, MEMBERSHIPS, PUBLISHED, SEGMENTS,
        feed_key, feed_of, hash_key, holding_key, id_key, item_id_of, listed_of, membership_key,
        published_key, stamp_key, stamp_of,
    },
};
use crate::{
    feed::{
        group::{GroupPost, GroupRecord, Holder, PublicationPosition},
        item::{Item, ItemId, KeyHash},
        part::PartRecord,
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    store::{
        GroupStep, StoreError, WantedGroup,
        engine::{EngineTable, NamedRows, RowLock, RowPart, RowReader, RowWriter},
        group_plan::{self, GroupHeld, HeldGroup, MemberCommit, PlannedGroup, PlannedRows},
        plan::Moved,
        stored::item::{decode_item, plain_bytes},
    },
};
use std::{collections::BTreeSet, sync::Arc};

/// The members of a group; `None` for a feed that is none.
pub(in crate::store) fn group(
    source: &dyn RowReader,
    group: FeedNo,
) -> Result<Option<GroupRecord>, StoreError> {
    source.table(GROUPS)?.read(&feed_key(group), "a group")
}

/// The holders of a post.
pub(in crate::store) fn holders(
    source: &dyn RowReader,
    group: FeedNo,
    post: ItemId,
) -> Result<Vec<Holder>, StoreError> {
    Ok(self::post(source, group, post)?
        .map(|post| post.holders)
        .unwrap_or_default())
}

fn post(
    source: &dyn RowReader,
    group: FeedNo,
    id: ItemId,
) -> Result<Option<GroupPost>, StoreError> {
    source
        .table(GROUP_POSTS)?
        .read(&id_key(group, id), "a post of a group")
}

/// Plans the changes of the groups of a member that follow from its commit.
pub(in crate::store) fn followers(
    writing: &Writing<'_>,
    member: MemberCommit<'_>,
) -> Result<Vec<PlannedRows>, StoreError> {
    let (tx, feed) = (writing.look(), member.planned.receipt.feed.no);
    let groups = groups_of(tx, feed)?;
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    name_holdings(tx, &groups, member)?;
    let groups = groups.into_iter();
    groups
        .map(|no| {
            let held = StoredGroupRows { tx, no };
            let planned = group_plan::follow(&held, member, writing.now()?)?;
            held.rows(planned, writing.now()?)
        })
        .collect()
}

/// Names the rows of groups that a commit of a member leads to.
fn name_holdings(
    tx: &dyn RowWriter,
    groups: &[FeedNo],
    member: MemberCommit<'_>,
) -> Result<(), StoreError> {
    if !tx.fetches_named() {
        return Ok(());
    }
    let mut named = Vec::new();
    for group in groups {
        let namespace = reads::record(tx, *group)?.ids.namespace;
        named.extend(named_holdings(*group, &namespace, member));
    }
    tx.prefetch(&named)
}

fn named_holdings(group: FeedNo, namespace: &str, member: MemberCommit<'_>) -> Vec<NamedRows> {
    let (feed, items) = (
        member.planned.receipt.feed.no,
        member.planned.items.values(),
    );
    let (mut holders, mut ids, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for Moved { item, .. } in items {
        let holder = Holder {
            feed,
            item: item.id,
        };
        holders.push(holding_key(group, holder));
        // A part has the items of its feed.
        ids.push(id_key(group, item.id));
        let looked_for = group_plan::looked_for(namespace, item).into_iter();
        keys.extend(looked_for.map(|key| hash_key(group, key)));
    }
    let key = feed_key(group);
    let of_group = |named: NamedRows, table: EngineTable| named.via(table, &key, RowPart::Value);
    let posts = |named: NamedRows| of_group(named, GROUP_POSTS.of_engine());
    let shown = |named: NamedRows| of_group(of_group(named, IDS.of_engine()), ITEMS.of_engine());
    let mut named = vec![
        posts(HOLDINGS.named_all(&holders)),
        shown(HOLDINGS.named_all(&holders)),
        posts(KEYS.named_all(&keys)),
        shown(KEYS.named_all(&keys)),
        of_group(IDS.named_all(&ids), ITEMS.of_engine()),
        GROUP_POSTS.named_all(&ids),
        ITEMS.named_last(&key, 1),
        SEGMENTS.named_last(&key, 1),
    ];
    named.extend(counted::named_tails(group));
    named
}

/// Locks a feed and the groups that it is a member of.
pub(in crate::store) fn locked_with_groups(feed: FeedNo) -> Vec<NamedRows> {
    let groups = MEMBERSHIPS.named_first(&feed_key(feed), MEMBERSHIPS_MAX);
    let groups = groups.via(FEEDS.of_engine(), &[], RowPart::KeyFrom(4));
    vec![
        FEEDS.named(&feed_key(feed)).locked(RowLock::Change),
        groups.locked(RowLock::Change),
    ]
}

/// Names what is stored of the groups of a feed.
pub(in crate::store) fn named_of(feed: FeedNo) -> NamedRows {
    let groups = MEMBERSHIPS.named_first(&feed_key(feed), MEMBERSHIPS_MAX);
    groups.via(GROUPS.of_engine(), &[], RowPart::KeyFrom(4))
}

/// Names the records of the groups of a feed.
pub(in crate::store) fn named_records(feed: FeedNo) -> NamedRows {
    let groups = MEMBERSHIPS.named_first(&feed_key(feed), MEMBERSHIPS_MAX);
    groups.via(FEEDS.of_engine(), &[], RowPart::KeyFrom(4))
}

/// Groups of a feed that are named.
const MEMBERSHIPS_MAX: usize = 10_000;

/// The groups that a feed is a member of.
fn groups_of(tx: &dyn RowWriter, member: FeedNo) -> Result<Vec<FeedNo>, StoreError> {
    let memberships = tx.table(MEMBERSHIPS)?;
    let rows = memberships.rows(&feed_key(member));
    rows.map(|row| Ok(feed_of(&row?.0.value()[4..]))).collect()
}

/// The parts of a feed.
pub(in crate::store) fn parts_of(
    tx: &dyn RowWriter,
    feed: FeedNo,
) -> Result<Vec<(FeedNo, PartRecord)>, StoreError> {
    let mut parts = Vec::new();
    for no in groups_of(tx, feed)? {
        let part = group(tx, no)?.and_then(|group| group.part);
        parts.extend(part.map(|part| (no, part)));
    }
    Ok(parts)
}

/// A part as it is stored.
pub(in crate::store) fn part_rows(tx: &dyn RowWriter, no: FeedNo) -> Result<HeldGroup, StoreError> {
    StoredGroupRows { tx, no }.group()
}

/// Writes what was planned for a group. `None` when nothing of it is shown.
pub(in crate::store) fn write(
    tx: &dyn RowWriter,
    rows: PlannedRows,
) -> Result<Option<FeedRecord>, StoreError> {
    let PlannedRows {
        group,
        planned,
        commit,
    } = rows;
    write_members(tx, group, &planned.members_before, &planned.members)?;
    let mut posts = tx.edit(GROUP_POSTS)?;
    for (id, post) in &planned.posts {
        let key = id_key(group, *id);
        match post {
            Some(post) => posts.write(&key, post)?,
            None => posts.remove(&key)?,
        }
    }
    drop(posts);
    let mut holdings = tx.edit(HOLDINGS)?;
    for (holder, id) in &planned.holdings {
        let key = holding_key(group, *holder);
        match id {
            Some(id) => holdings.insert(&key, &id.0)?,
            None => holdings.remove(&key)?,
        }
    }
    drop(holdings);
    let mut keys = tx.edit(KEYS)?;
    for (key, id) in &planned.keys {
        let key = hash_key(group, *key);
        match id {
            Some(id) => keys.insert(&key, &id.0)?,
            None => keys.remove(&key)?,
        }
    }
    drop(keys);
    let Some(commit) = commit else {
        return Ok(None);
    };
    write_planned(tx, &planned.commit, &commit)?;
    Ok(Some(commit.receipt.feed))
}

/// Writes who is a member of a group.
pub(in crate::store) fn write_members(
    tx: &dyn RowWriter,
    group: FeedNo,
    before: &GroupRecord,
    now: &GroupRecord,
) -> Result<(), StoreError> {
    if before == now {
        return Ok(());
    }
    tx.edit(GROUPS)?.write(&feed_key(group), now)?;
    let mut memberships = tx.edit(MEMBERSHIPS)?;
    for left in before.members_not_in(now) {
        memberships.remove(&membership_key(left, group))?;
    }
    for come in now.members_not_in(before) {
        memberships.insert(&membership_key(come, group), &[])?;
    }
    Ok(())
}

/// Forgets who holds posts that the operator had removed from a group.
pub(in crate::store) fn forget_posts(
    tx: &dyn RowWriter,
    group: FeedNo,
    removed: &[ItemId],
) -> Result<(), StoreError> {
    for id in removed {
        let Some(post) = post(tx, group, *id)? else {
            continue;
        };
        tx.edit(GROUP_POSTS)?.remove(&id_key(group, *id))?;
        if let Some(key) = post.key {
            tx.edit(KEYS)?.remove(&hash_key(group, key))?;
        }
    }
    Ok(())
}

/// Makes a feed a group, or gives a group other members.
pub(in crate::store) fn set(
    writing: &mut Writing<'_>,
    group: FeedNo,
    wanted: &WantedGroup,
) -> Result<GroupStep, StoreError> {
    // A commit of a member that does not know the group yet is over before the member joins.
    writing.look().name(|| {
        let members = wanted.members.iter().map(|(member, _)| *member);
        let feeds: BTreeSet<_> = members.chain([group]).map(feed_key).collect();
        vec![
            FEEDS.named_all(&feeds).locked(RowLock::Change),
            FEEDS.named_all(&feeds),
            GROUPS.named(&feed_key(group)),
        ]
    })?;
    writing.check_clock()?;
    writing.moves_catalog = true;
    let held = StoredGroupRows {
        tx: writing.look(),
        no: group,
    };
    let is_new = self::group(held.tx, group)?.is_none();
    let planned = group_plan::set(&held, wanted)?;
    if is_new {
        // A group without members is one, too.
        let mut groups = writing.change().edit(GROUPS)?;
        groups.write(&feed_key(group), &GroupRecord::default())?;
    }
    step(writing, group, planned)
}

/// Takes items into a group, or out of it.
pub(in crate::store) fn advance(
    writing: &mut Writing<'_>,
    group: FeedNo,
    items_max: usize,
) -> Result<GroupStep, StoreError> {
    let key = feed_key(group);
    writing.look().name(|| {
        let mut named = vec![
            FEEDS.named(&key).locked(RowLock::Change),
            FEEDS.named(&key),
            GROUPS.named(&key),
            ITEMS.named_last(&key, 1),
            SEGMENTS.named_last(&key, 1),
        ];
        named.extend(counted::named_tails(group));
        named
    })?;
    writing.check_clock()?;
    let held = StoredGroupRows {
        tx: writing.look(),
        no: group,
    };
    if self::group(held.tx, group)?.is_none() {
        return Ok(GroupStep {
            feed: reads::record(held.tx, group)?,
            is_settled: true,
        });
    }
    let planned = group_plan::advance(&held, items_max, writing.now()?)?;
    step(writing, group, planned)
}

fn step(
    writing: &mut Writing<'_>,
    group: FeedNo,
    planned: PlannedGroup,
) -> Result<GroupStep, StoreError> {
    let is_settled = planned.members.is_settled();
    let held = StoredGroupRows {
        tx: writing.look(),
        no: group,
    };
    let record = reads::record(held.tx, group)?;
    if !planned.changes(&record) {
        return Ok(GroupStep {
            feed: record,
            is_settled,
        });
    }
    let planned = held.rows(planned, writing.now()?)?;
    let changed = write(writing.change(), planned)?;
    if let Some(changed) = &changed {
        writing.record_content(changed.last_t);
    }
    writing.record_clock()?;
    Ok(GroupStep {
        feed: changed.unwrap_or(record),
        is_settled,
    })
}

/// Takes everything of a feed without parts out of its groups, and a group out of its members' rows, before it is
/// removed.
pub(in crate::store) fn leave_all(
    writing: &mut Writing<'_>,
    feed: FeedNo,
) -> Result<(), StoreError> {
    let tx = writing.look();
    let members = group(tx, feed)?.unwrap_or_default().members;
    let mut left = Vec::new();
    for no in groups_of(tx, feed)? {
        let held = StoredGroupRows { tx, no };
        let planned = group_plan::without(&held, feed, writing.now()?)?;
        left.push(held.rows(planned, writing.now()?)?);
    }
    let tx = writing.change();
    for rows in left {
        write(tx, rows)?;
    }
    let mut memberships = tx.edit(MEMBERSHIPS)?;
    for member in members {
        memberships.remove(&membership_key(member.feed, feed))?;
    }
    Ok(())
}

/// The rows of a group as a plan reads them. Each table is opened for one look: none can be open
/// twice.
struct StoredGroupRows<'t> {
    tx: &'t dyn RowWriter,
    no: FeedNo,
}

impl StoredGroupRows<'_> {
    /// Works out the commit of a plan.
    fn rows(&self, planned: PlannedGroup, now: Stamp) -> Result<PlannedRows, StoreError> {
        let record = reads::record(self.tx, self.no)?;
        PlannedRows::of(record, planned, now, &reads::Items::of(self.tx, self.no)?)
    }
}

impl GroupHeld for StoredGroupRows<'_> {
    fn group(&self) -> Result<HeldGroup, StoreError> {
        Ok(HeldGroup {
            record: reads::record(self.tx, self.no)?,
            group: group(self.tx, self.no)?.unwrap_or_default(),
        })
    }

    fn holding(&self, holder: Holder) -> Result<Option<ItemId>, StoreError> {
        let holdings = self.tx.table(HOLDINGS)?;
        holdings
            .get(&holding_key(self.no, holder))?
            .map(|id| item_id_of(id.value()))
            .transpose()
    }

    fn post(&self, id: ItemId) -> Result<Option<GroupPost>, StoreError> {
        post(self.tx, self.no, id)
    }

    fn post_at(&self, key: KeyHash) -> Result<Option<ItemId>, StoreError> {
        let keys = self.tx.table(KEYS)?;
        keys.get(&hash_key(self.no, key))?
            .map(|id| item_id_of(id.value()))
            .transpose()
    }

    fn shown(&self, id: ItemId) -> Result<Option<Arc<Item>>, StoreError> {
        reads::Items::of(self.tx, self.no)?.item(id)
    }

    fn item(&self, holder: Holder) -> Result<Option<Arc<Item>>, StoreError> {
        reads::Items::of(self.tx, holder.feed)?.item(holder.item)
    }

    fn member(&self, feed: FeedNo) -> Result<Option<FeedRecord>, StoreError> {
        match reads::record(self.tx, feed) {
            Ok(record) => Ok(Some(record)),
            Err(StoreError::UnknownFeed(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn listed(
        &self,
        feed: FeedNo,
        after: Option<PublicationPosition>,
        max: usize,
    ) -> Result<Vec<(PublicationPosition, Stamp)>, StoreError> {
        let after = after.map(|(listed, created)| published_key(feed, listed, created));
        let published = self.tx.table(PUBLISHED)?;
        let rows = published.rows_after(&feed_key(feed), after).take(max);
        rows.map(|row| row.map(|(key, t)| (listed_of(key.value()), stamp_of(t.value()))))
            .collect()
    }

    fn item_at(&self, feed: FeedNo, t: Stamp) -> Result<Option<(Arc<Item>, u64)>, StoreError> {
        let items = self.tx.table(ITEMS)?;
        let Some(stored) = items.get(&stamp_key(feed, t))? else {
            return Ok(None);
        };
        let item = decode_item(t, stored.value())?;
        Ok(Some((Arc::new(item), plain_bytes(stored.value()))))
    }

    fn holdings(&self, feed: FeedNo, max: usize) -> Result<Vec<Holder>, StoreError> {
        let holdings = self.tx.table(HOLDINGS)?;
        let rows = holdings.rows(&membership_key(self.no, feed)).take(max);
        rows.map(|row| {
            let item = item_id_of(&row?.0.value()[8..])?;
            Ok(Holder { feed, item })
        })
        .collect()
    }
}
