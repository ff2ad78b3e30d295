//! The registered feeds: names, numbers, counts, and how a feed is forgotten; not what
//! a feed holds.

use super::{
    Writing, counted, groups,
    open_table::{TableEdit as _, TableSource as _},
    planned::write_record,
    reads,
    removed::Removed,
    subscriptions,
    tables::{
        CREATED, DOCUMENTS, EVIDENCE, FEED_NAMES, FEEDS, GROUP_POSTS, GROUPS, HOLDINGS, IDS, ITEMS,
        KEYS, MEMBERSHIPS, META, OBSERVATIONS, POLLS, PUBLISHED, PUSHED, SEGMENTS, STAGING,
        SUBSCRIPTIONS, TERMS, WALKS, WINDOWS, WITNESSES, feed_key, feed_of, stamp_of,
    },
};
use crate::{
    feed::{
        part::{self, WantedPart},
        record::{FeedNo, FeedRecord},
    },
    store::{
        StoreCounts, StoreError, check_namespace,
        engine::{NamedRows, RowLock, RowPart, RowReader},
        group_plan,
    },
};
use std::ops::Bound;

/// The feeds of these names, made where they are new.
pub(in crate::store) fn register_all(
    writing: &mut Writing<'_>,
    feeds: &[(String, String)],
) -> Result<Vec<FeedRecord>, StoreError> {
    writing.look().name(|| {
        let names = FEED_NAMES.named_all(feeds.iter().map(|(name, _)| name.as_str()));
        vec![
            locked_number(),
            names.via(FEEDS.of_engine(), &[], RowPart::Value),
        ]
    })?;
    let feeds = feeds.iter();
    feeds
        .map(|(name, namespace)| register(writing, name, namespace))
        .collect()
}

/// The feed of this name, made if it is new.
fn register(
    writing: &mut Writing<'_>,
    name: &str,
    namespace: &str,
) -> Result<FeedRecord, StoreError> {
    if let Some(record) = named(writing.look(), name)? {
        check_namespace(&record, namespace)?;
        if record.ids.namespace == namespace {
            return Ok(record);
        }
        return take_namespace(writing, record, namespace);
    }
    let no = next_number(writing)?;
    let generation = writing.new_generation()?;
    let record = FeedRecord::new(no, name, namespace).of_generation(generation);
    writing.moves_catalog = true;
    let tx = writing.change();
    tx.edit(FEED_NAMES)?.insert(name, &feed_key(no))?;
    write_record(tx, &record)?;
    Ok(record)
}

/// Locks the last number given to a feed: numbers are given one after another, so that of two who
/// register one name the second finds the feed of the first.
fn locked_number() -> NamedRows {
    META.named(reads::LAST_FEED_KEY).locked(RowLock::Change)
}

/// A number for a new feed.
fn next_number(writing: &mut Writing<'_>) -> Result<FeedNo, StoreError> {
    writing.look().name(|| vec![locked_number()])?;
    let no = FeedNo(reads::last_feed_number(writing.look())? + 1);
    let mut meta = writing.change().edit(META)?;
    meta.write(reads::LAST_FEED_KEY, &no.0)?;
    Ok(no)
}

/// Locks a feed and its groups, and names what is read of them.
fn lock(writing: &Writing<'_>, feed: FeedNo) -> Result<(), StoreError> {
    writing.look().name(|| {
        let mut named = groups::locked_with_groups(feed);
        named.extend([FEEDS.named(&feed_key(feed)), groups::named_of(feed)]);
        named
    })
}

/// Gives a feed the parts that are wanted.
pub(in crate::store) fn set_parts(
    writing: &mut Writing<'_>,
    feed: FeedNo,
    wanted: &[WantedPart],
) -> Result<Vec<FeedRecord>, StoreError> {
    lock(writing, feed)?;
    let of = reads::record(writing.look(), feed)?;
    let held = groups::parts_of(writing.look(), feed)?;
    let choices = part::choose(&held, wanted);
    for no in part::unused(&held, &choices) {
        writing.moves_catalog = true;
        remove(writing, no)?;
    }
    let mut parts = Vec::new();
    for (choice, wanted) in choices.into_iter().zip(wanted) {
        let (no, before) = match choice.number() {
            Some(no) => (no, Some(groups::part_rows(writing.look(), no)?)),
            None => (next_number(writing)?, None),
        };
        let now = group_plan::part::set(&of, choice, wanted, before.clone(), no);
        if before.as_ref() != Some(&now) {
            writing.moves_catalog = true;
            let members = before.map(|held| held.group).unwrap_or_default();
            write_record(writing.change(), &now.record)?;
            groups::write_members(writing.change(), no, &members, &now.group)?;
        }
        parts.push(now.record);
    }
    Ok(parts)
}

/// Gives a feed that holds no items another namespace, and its parts with it. What was read for the
/// one before goes.
fn take_namespace(
    writing: &mut Writing<'_>,
    record: FeedRecord,
    namespace: &str,
) -> Result<FeedRecord, StoreError> {
    lock(writing, record.no)?;
    // A commit may have come before the lock.
    let record = reads::record(writing.look(), record.no)?;
    check_namespace(&record, namespace)?;
    writing.moves_catalog = true;
    for (part, _) in groups::parts_of(writing.look(), record.no)? {
        let part = reads::record(writing.look(), part)?;
        let part = part.with_namespace(namespace, writing.now()?);
        write_record(writing.change(), &part)?;
    }
    let record = record.with_namespace(namespace, writing.now()?);
    let (tx, key) = (writing.change(), feed_key(record.no));
    tx.edit(WINDOWS)?.remove(&key)?;
    tx.edit(WALKS)?.remove(&key)?;
    tx.edit(KEYS)?.clear(&key)?;
    tx.edit(WITNESSES)?.clear(&key)?;
    tx.edit(STAGING)?.clear(&key)?;
    write_record(tx, &record)?;
    Ok(record)
}

/// The feed of this name.
pub(in crate::store) fn named(
    source: &dyn RowReader,
    name: &str,
) -> Result<Option<FeedRecord>, StoreError> {
    let no = source
        .table(FEED_NAMES)?
        .get(name)?
        .map(|no| feed_of(no.value()));
    no.map(|no| reads::record(source, no)).transpose()
}

/// The names after a name, with their numbers.
pub(in crate::store) fn names(
    source: &dyn RowReader,
    after: Option<&str>,
    max: usize,
) -> Result<Vec<(String, FeedNo)>, StoreError> {
    let after = after.map_or(Bound::Unbounded, Bound::Excluded);
    let names = source.table(FEED_NAMES)?;
    let rows = names.range((after, Bound::Unbounded)).take(max);
    rows.map(|row| {
        let (name, no) = row?;
        Ok((name.value().to_owned(), feed_of(no.value())))
    })
    .collect()
}

/// The totals of the store.
pub(in crate::store) fn counts(snapshot: &dyn RowReader) -> Result<StoreCounts, StoreError> {
    Ok(StoreCounts {
        feeds: snapshot.table(FEED_NAMES)?.count()?,
        items: snapshot.table(ITEMS)?.count()?,
        subscriptions: snapshot.table(SUBSCRIPTIONS)?.count()?,
    })
}

/// Removes a feed with everything that is kept of it, and has the store written again without it.
pub(in crate::store) fn forget(
    writing: &mut Writing<'_>,
    feed: FeedNo,
) -> Result<bool, StoreError> {
    lock(writing, feed)?;
    let items = writing.look().table(ITEMS)?;
    let last = items.unchecked_after(&feed_key(feed), None).next_back();
    let last_t = last.transpose()?.map(|(key, _)| stamp_of(key.value()));
    drop(items);
    let was_there = remove(writing, feed)?;
    if was_there {
        writing.moves_catalog = true;
        writing.record_removed(Removed::Feed(feed));
        writing.renew_generation(last_t.unwrap_or_default())?;
        writing.request_rewrite()?;
    }
    Ok(was_there)
}

/// Removes the rows of a feed, and of its parts.
fn remove(writing: &mut Writing<'_>, feed: FeedNo) -> Result<bool, StoreError> {
    lock(writing, feed)?;
    // What it holds may be damaged, which is a reason to forget it.
    let name = match reads::record(writing.look(), feed) {
        Ok(record) => Some(record.name).filter(|_| record.part_of.is_none()),
        Err(StoreError::DamagedFeed { feed: name, .. }) => Some(name),
        Err(StoreError::UnknownFeed(_)) => return Ok(false),
        Err(error) => return Err(error),
    };
    for (part, _) in groups::parts_of(writing.look(), feed)? {
        remove(writing, part)?;
    }
    subscriptions::end_all(writing, feed)?;
    groups::leave_all(writing, feed)?;
    let tx = writing.change();
    if let Some(name) = name {
        tx.edit(FEED_NAMES)?.remove(name.as_str())?;
    }
    let key = feed_key(feed);
    tx.edit(FEEDS)?.remove(&key)?;
    tx.edit(WINDOWS)?.remove(&key)?;
    tx.edit(POLLS)?.remove(&key)?;
    tx.edit(WALKS)?.remove(&key)?;
    tx.edit(DOCUMENTS)?.remove(&key)?;
    tx.edit(GROUPS)?.remove(&key)?;
    tx.edit(PUSHED)?.remove(&key)?;
    tx.edit(ITEMS)?.clear(&key)?;
    tx.edit(IDS)?.clear(&key)?;
    tx.edit(CREATED)?.clear(&key)?;
    tx.edit(PUBLISHED)?.clear(&key)?;
    counted::forget(tx, feed)?;
    tx.edit(SEGMENTS)?.clear(&key)?;
    tx.edit(TERMS)?.clear(&key)?;
    tx.edit(KEYS)?.clear(&key)?;
    tx.edit(WITNESSES)?.clear(&key)?;
    tx.edit(EVIDENCE)?.clear(&key)?;
    tx.edit(STAGING)?.clear(&key)?;
    tx.edit(OBSERVATIONS)?.clear(&key)?;
    tx.edit(GROUP_POSTS)?.clear(&key)?;
    tx.edit(HOLDINGS)?.clear(&key)?;
    tx.edit(MEMBERSHIPS)?.clear(&key)?;
    Ok(true)
}
