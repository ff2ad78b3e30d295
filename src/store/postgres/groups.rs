//! Groups in the database: their rows as a plan reads them, and how a plan is written; not what it
//! comes to.

use super::{
    database::DatabaseWriting,
    feed_locks::{locked, locked_groups, locked_with_groups},
    items::FeedItems,
    planned::{witnesses_asked, write_planned, write_value},
    rows::{self, bound},
    session::DatabaseSession,
    statement::{SqlStatement, column, feed_at, item_id_at, moment_at, stamp_at},
};
use crate::{
    feed::{
        group::{GroupPost, GroupRecord, Holder, ListedPlace},
        item::{Item, ItemId, KeyHash},
        moment::Moment,
        part::PartRecord,
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    store::{
        GroupStep, StoreError, WantedGroup,
        group_plan::{self, GroupHeld, HeldGroup, MemberCommit, PlannedGroup, PlannedRows},
        plan::Held as _,
        stored::{
            decode, encode,
            item::{decode_item, plain_bytes},
        },
    },
};
use std::sync::Arc;

/// The members of a group; `None` for a feed that is none.
pub(super) fn group(
    session: &DatabaseSession,
    group: FeedNo,
) -> Result<Option<GroupRecord>, StoreError> {
    let sql = "SELECT value FROM feed_groups WHERE feed = $1";
    rows::value(session, sql, group, "a group")
}

/// The holders of a post.
pub(super) fn holders(
    session: &DatabaseSession,
    group: FeedNo,
    post: ItemId,
) -> Result<Vec<Holder>, StoreError> {
    let post = self::post(session, group, post)?;
    Ok(post.map(|post| post.holders).unwrap_or_default())
}

fn post(
    session: &DatabaseSession,
    group: FeedNo,
    id: ItemId,
) -> Result<Option<GroupPost>, StoreError> {
    let asked = SqlStatement::new("SELECT value FROM group_posts WHERE feed = $1 AND item = $2");
    let row = session.row(asked.with(group).with(id))?;
    row.map(|row| decode("a post of a group", column(&row, 0)?))
        .transpose()
}

/// Plans the changes of the groups of a member that follow from its commit.
pub(super) fn followers(
    writing: &DatabaseWriting<'_>,
    groups: Vec<FeedNo>,
    member: MemberCommit<'_>,
) -> Result<Vec<PlannedRows>, StoreError> {
    let mut followers = Vec::new();
    for no in groups {
        let held = GroupRows::of(writing.session, no);
        let planned = group_plan::follow(&held, member, writing.now()?)?;
        followers.push(held.rows(planned, writing.now()?)?);
    }
    Ok(followers)
}

/// Asks for the groups that a feed is a member of.
pub(super) fn groups_asked(member: FeedNo) -> SqlStatement {
    SqlStatement::new("SELECT feed FROM memberships WHERE member = $1 ORDER BY feed").with(member)
}

/// Locks a feed with the groups that it is a member of, and lists those.
pub(super) fn lock_groups(
    session: &DatabaseSession,
    member: FeedNo,
) -> Result<Vec<FeedNo>, StoreError> {
    let answers = session.ask(vec![locked_with_groups(member), groups_asked(member)])?;
    locked_groups(session, &answers[0], &answers[1])
}

/// The parts among the groups of a feed.
pub(super) fn parts_among(
    session: &DatabaseSession,
    groups: &[FeedNo],
) -> Result<Vec<(FeedNo, PartRecord)>, StoreError> {
    let sql = "SELECT feed, value FROM feed_groups WHERE feed = ANY($1) ORDER BY feed";
    let mut parts = Vec::new();
    for row in session.rows(SqlStatement::new(sql).with(groups.to_vec()))? {
        let group: GroupRecord = decode("a group", column(&row, 1)?)?;
        if let Some(part) = group.part {
            parts.push((feed_at(&row, 0)?, part));
        }
    }
    Ok(parts)
}

/// A part as it is stored.
pub(super) fn part_rows(session: &DatabaseSession, no: FeedNo) -> Result<HeldGroup, StoreError> {
    GroupRows::of(session, no).group()
}

/// Writes what was planned for a group. `None` when nothing of it is shown.
pub(super) fn write(
    session: &DatabaseSession,
    rows: PlannedRows,
) -> Result<Option<FeedRecord>, StoreError> {
    let PlannedRows {
        group,
        planned,
        commit,
    } = rows;
    write_members(session, group, &planned.members_before, &planned.members)?;
    write_posts(session, group, &planned)?;
    write_holdings(session, group, &planned);
    write_keys(session, group, &planned);
    let Some(commit) = commit else {
        return Ok(None);
    };
    let mut answers = session.ask(vec![
        witnesses_asked(&planned.commit),
        rows::record_asked(group),
    ])?;
    let before = rows::record_in(group, &answers.pop().unwrap_or_default())?;
    let witnessed = answers.pop().unwrap_or_default();
    let total_before = before.items.total;
    write_planned(session, &planned.commit, &commit, &witnessed, total_before)?;
    Ok(Some(commit.receipt.feed))
}

fn write_posts(
    session: &DatabaseSession,
    group: FeedNo,
    planned: &PlannedGroup,
) -> Result<(), StoreError> {
    let (mut gone, mut ids, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (id, post) in &planned.posts {
        match post {
            Some(post) => {
                ids.push(*id);
                values.push(encode(post)?);
            }
            None => gone.push(*id),
        }
    }
    if !gone.is_empty() {
        let sql = "DELETE FROM group_posts WHERE feed = $1 AND item = ANY($2)";
        session.change(SqlStatement::new(sql).with(group).with(gone));
    }
    if !ids.is_empty() {
        let sql = "INSERT INTO group_posts (feed, item, value) \
                   SELECT $1, item, value FROM unnest($2::bytea[], $3::bytea[]) AS post (item, value) \
                   ON CONFLICT (feed, item) DO UPDATE SET value = excluded.value";
        session.change(SqlStatement::new(sql).with(group).with(ids).with(values));
    }
    Ok(())
}

fn write_holdings(session: &DatabaseSession, group: FeedNo, planned: &PlannedGroup) {
    let gone = planned.holdings.iter().filter(|(_, post)| post.is_none());
    let (members, items): (Vec<FeedNo>, Vec<ItemId>) =
        gone.map(|(holder, _)| (holder.feed, holder.item)).unzip();
    if !members.is_empty() {
        let sql = "DELETE FROM holdings USING unnest($2::integer[], $3::bytea[]) AS gone (member, item) \
                   WHERE holdings.feed = $1 AND holdings.member = gone.member \
                   AND holdings.item = gone.item";
        session.change(SqlStatement::new(sql).with(group).with(members).with(items));
    }
    let (mut members, mut items, mut posts) = (Vec::new(), Vec::new(), Vec::new());
    for (holder, post) in &planned.holdings {
        if let Some(post) = post {
            members.push(holder.feed);
            items.push(holder.item);
            posts.push(*post);
        }
    }
    if !members.is_empty() {
        let sql = "INSERT INTO holdings (feed, member, item, post) SELECT $1, member, item, post \
                   FROM unnest($2::integer[], $3::bytea[], $4::bytea[]) AS held (member, item, post) \
                   ON CONFLICT (feed, member, item) DO UPDATE SET post = excluded.post";
        let written = SqlStatement::new(sql).with(group).with(members);
        session.change(written.with(items).with(posts));
    }
}

fn write_keys(session: &DatabaseSession, group: FeedNo, planned: &PlannedGroup) {
    let gone = planned.keys.iter().filter(|(_, id)| id.is_none());
    let gone: Vec<KeyHash> = gone.map(|(key, _)| *key).collect();
    if !gone.is_empty() {
        unbind(session, group, gone);
    }
    let (mut keys, mut ids) = (Vec::new(), Vec::new());
    for (key, id) in &planned.keys {
        if let Some(id) = id {
            keys.push(*key);
            ids.push(*id);
        }
    }
    if !keys.is_empty() {
        let sql = "INSERT INTO keys (feed, key, item) \
                   SELECT $1, key, item FROM unnest($2::bytea[], $3::bytea[]) AS bound (key, item) \
                   ON CONFLICT (feed, key) DO UPDATE SET item = excluded.item";
        session.change(SqlStatement::new(sql).with(group).with(keys).with(ids));
    }
}

fn unbind(session: &DatabaseSession, group: FeedNo, keys: Vec<KeyHash>) {
    let sql = "DELETE FROM keys WHERE feed = $1 AND key = ANY($2)";
    session.change(SqlStatement::new(sql).with(group).with(keys));
}

/// Writes who is a member of a group.
pub(super) fn write_members(
    session: &DatabaseSession,
    group: FeedNo,
    before: &GroupRecord,
    now: &GroupRecord,
) -> Result<(), StoreError> {
    if before == now {
        return Ok(());
    }
    write_group(session, group, now)?;
    let left: Vec<FeedNo> = before.members_not_in(now).collect();
    if !left.is_empty() {
        leave(session, group, left);
    }
    let come: Vec<FeedNo> = now.members_not_in(before).collect();
    if !come.is_empty() {
        let sql = "INSERT INTO memberships (member, feed) SELECT unnest($2::integer[]), $1 \
                   ON CONFLICT DO NOTHING";
        session.change(SqlStatement::new(sql).with(group).with(come));
    }
    Ok(())
}

fn write_group(
    session: &DatabaseSession,
    group: FeedNo,
    now: &GroupRecord,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO feed_groups (feed, value) VALUES ($1, $2) \
               ON CONFLICT (feed) DO UPDATE SET value = excluded.value";
    write_value(session, sql, group, now)
}

fn leave(session: &DatabaseSession, group: FeedNo, members: Vec<FeedNo>) {
    let sql = "DELETE FROM memberships WHERE feed = $1 AND member = ANY($2)";
    session.change(SqlStatement::new(sql).with(group).with(members));
}

/// Forgets who holds posts that the operator had removed from a group.
pub(super) fn forget_posts(
    session: &DatabaseSession,
    group: FeedNo,
    removed: &[ItemId],
) -> Result<(), StoreError> {
    for id in removed {
        let Some(post) = post(session, group, *id)? else {
            continue;
        };
        let sql = "DELETE FROM group_posts WHERE feed = $1 AND item = $2";
        session.change(SqlStatement::new(sql).with(group).with(*id));
        if let Some(key) = post.key {
            unbind(session, group, vec![key]);
        }
    }
    Ok(())
}

/// Makes a feed a group, or gives a group other members. Its members are locked with it: a commit
/// that does not know it yet is over before they join.
pub(super) fn set(
    writing: &DatabaseWriting<'_>,
    group: FeedNo,
    wanted: &WantedGroup,
) -> Result<GroupStep, StoreError> {
    let session = writing.session;
    let members = wanted.members.iter().map(|(member, _)| *member);
    let answers = session.ask(vec![
        locked(members.chain([group]).collect()),
        rows::record_asked(group),
    ])?;
    rows::record_in(group, &answers[1])?;
    writing.check_clock()?;
    let held = GroupRows::of(session, group);
    let is_new = self::group(session, group)?.is_none();
    let planned = group_plan::set(&held, wanted)?;
    writing.move_catalog();
    if is_new {
        // A group without members is one, too.
        write_group(session, group, &GroupRecord::default())?;
    }
    step(writing, group, planned)
}

/// Takes items into a group, or out of it. Whoever changes an item of a member waits for the lock of
/// the group.
pub(super) fn advance(
    writing: &DatabaseWriting<'_>,
    group: FeedNo,
    items_max: usize,
) -> Result<GroupStep, StoreError> {
    let session = writing.session;
    let answers = session.ask(vec![locked(vec![group]), rows::record_asked(group)])?;
    let record = rows::record_in(group, &answers[1])?;
    writing.check_clock()?;
    if self::group(session, group)?.is_none() {
        return Ok(GroupStep {
            feed: record,
            is_settled: true,
        });
    }
    let held = GroupRows::of(session, group);
    let planned = group_plan::advance(&held, items_max, writing.now()?)?;
    step(writing, group, planned)
}

fn step(
    writing: &DatabaseWriting<'_>,
    group: FeedNo,
    planned: PlannedGroup,
) -> Result<GroupStep, StoreError> {
    let session = writing.session;
    let is_settled = planned.members.is_settled();
    let record = rows::record(session, group)?;
    if !planned.changes(&record) {
        return Ok(GroupStep {
            feed: record,
            is_settled,
        });
    }
    let planned = GroupRows::of(session, group).rows(planned, writing.now()?)?;
    let changed = write(session, planned)?;
    writing.record_clock();
    Ok(GroupStep {
        feed: changed.unwrap_or(record),
        is_settled,
    })
}

/// Takes everything of a feed without parts out of these groups, and a group out of its members'
/// rows, before it is removed.
pub(super) fn leave_all(
    writing: &DatabaseWriting<'_>,
    feed: FeedNo,
    groups: &[FeedNo],
) -> Result<(), StoreError> {
    let session = writing.session;
    let members = group(session, feed)?.unwrap_or_default().members;
    let mut left = Vec::new();
    for no in groups {
        let held = GroupRows::of(session, *no);
        let planned = group_plan::without(&held, feed, writing.now()?)?;
        left.push(held.rows(planned, writing.now()?)?);
    }
    for rows in left {
        write(session, rows)?;
    }
    let members: Vec<FeedNo> = members.iter().map(|member| member.feed).collect();
    if !members.is_empty() {
        leave(session, feed, members);
    }
    Ok(())
}

/// The rows of a group as a plan reads them.
// Limit: each is a round trip of its own; a commit of a feed in many groups takes as many.
struct GroupRows<'s> {
    session: &'s DatabaseSession,
    no: FeedNo,
    posts: FeedItems<'s>,
}

impl<'s> GroupRows<'s> {
    fn of(session: &'s DatabaseSession, no: FeedNo) -> Self {
        Self {
            session,
            no,
            posts: FeedItems::of(session, no),
        }
    }

    /// Works out the commit of a plan.
    fn rows(&self, planned: PlannedGroup, now: Stamp) -> Result<PlannedRows, StoreError> {
        let record = rows::record(self.session, self.no)?;
        PlannedRows::of(record, planned, now, &self.posts)
    }
}

impl GroupHeld for GroupRows<'_> {
    fn group(&self) -> Result<HeldGroup, StoreError> {
        Ok(HeldGroup {
            record: rows::record(self.session, self.no)?,
            group: group(self.session, self.no)?.unwrap_or_default(),
        })
    }

    fn holding(&self, holder: Holder) -> Result<Option<ItemId>, StoreError> {
        let sql = "SELECT post FROM holdings WHERE feed = $1 AND member = $2 AND item = $3";
        let asked = SqlStatement::new(sql).with(self.no).with(holder.feed);
        let row = self.session.row(asked.with(holder.item))?;
        row.map(|row| item_id_at(&row, 0)).transpose()
    }

    fn post(&self, id: ItemId) -> Result<Option<GroupPost>, StoreError> {
        post(self.session, self.no, id)
    }

    fn post_at(&self, key: KeyHash) -> Result<Option<ItemId>, StoreError> {
        bound(self.session, self.no, key)
    }

    fn shown(&self, id: ItemId) -> Result<Option<Arc<Item>>, StoreError> {
        self.posts.item(id)
    }

    fn item(&self, holder: Holder) -> Result<Option<Arc<Item>>, StoreError> {
        FeedItems::of(self.session, holder.feed).item(holder.item)
    }

    fn member(&self, feed: FeedNo) -> Result<Option<FeedRecord>, StoreError> {
        match rows::record(self.session, feed) {
            Ok(record) => Ok(Some(record)),
            Err(StoreError::UnknownFeed(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn listed(
        &self,
        feed: FeedNo,
        after: Option<ListedPlace>,
        max: usize,
    ) -> Result<Vec<(ListedPlace, Stamp)>, StoreError> {
        let sql = "SELECT listed, created, t FROM items WHERE feed = $1 \
                   AND (listed, created) >= ($2, $3) ORDER BY listed, created LIMIT $4";
        let (listed, created) = match after {
            Some((listed, created)) => (listed, created.next()),
            None => (Moment::MIN, Stamp::ZERO),
        };
        let asked = SqlStatement::new(sql)
            .with(feed)
            .with(listed.micros())
            .with(created);
        let rows = self.session.rows(asked.with(rows::limit(max)))?;
        let place = |row| Ok(((moment_at(row, 0)?, stamp_at(row, 1)?), stamp_at(row, 2)?));
        rows.iter().map(place).collect()
    }

    fn item_at(&self, feed: FeedNo, t: Stamp) -> Result<Option<(Arc<Item>, u64)>, StoreError> {
        let asked = SqlStatement::new("SELECT value FROM items WHERE feed = $1 AND t = $2");
        let Some(row) = self.session.row(asked.with(feed).with(t))? else {
            return Ok(None);
        };
        let value: &[u8] = column(&row, 0)?;
        Ok(Some((Arc::new(decode_item(t, value)?), plain_bytes(value))))
    }

    fn holdings(&self, feed: FeedNo, max: usize) -> Result<Vec<Holder>, StoreError> {
        let sql =
            "SELECT item FROM holdings WHERE feed = $1 AND member = $2 ORDER BY item LIMIT $3";
        let asked = SqlStatement::new(sql).with(self.no).with(feed);
        let rows = self.session.rows(asked.with(rows::limit(max)))?;
        let holder = |row| {
            let item = item_id_at(row, 0)?;
            Ok(Holder { feed, item })
        };
        rows.iter().map(holder).collect()
    }
}
