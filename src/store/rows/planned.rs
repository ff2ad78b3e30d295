//! Writing what a commit comes to: items with their indexes, keys, witnesses and evidence, and the
//! record of the feed; not what is saved beside them.

use super::{
    counted,
    open_table::{Table, TableEdit as _},
    tables::{
        CREATED, EVIDENCE, FEEDS, IDS, ITEMS, KEYS, PUBLISHED, WITNESSES, evidence_key, feed_key,
        hash_key, id_key, published_key, stamp_key, stamp_value, witnessed_ids,
    },
    word_index,
};
use crate::{
    feed::{
        item::ItemId,
        record::{FeedNo, FeedRecord},
    },
    store::{
        Commit, StoreError,
        engine::RowWriter,
        plan::{self, Moved, PlannedCommit},
        stored::damaged,
    },
};

/// Writes the items of a commit, what leads to them, and the record of the feed.
pub(in crate::store) fn write_planned(
    tx: &dyn RowWriter,
    commit: &Commit,
    plan: &PlannedCommit,
) -> Result<(), StoreError> {
    let feed = commit.basis.feed;
    write_items(tx, feed, plan)?;
    counted::take_in(tx, plan)?;
    word_index::take_in(tx, plan)?;
    bind_keys(tx, commit)?;
    bind_witnesses(tx, commit)?;
    write_evidence(tx, feed, plan)?;
    write_record(tx, &plan.receipt.feed)
}

pub(in crate::store) fn write_record(
    tx: &dyn RowWriter,
    record: &FeedRecord,
) -> Result<(), StoreError> {
    tx.edit(FEEDS)?.write(&feed_key(record.no), record)
}

fn write_items(tx: &dyn RowWriter, feed: FeedNo, plan: &PlannedCommit) -> Result<(), StoreError> {
    let mut items = tx.edit(ITEMS)?;
    let mut published = tx.edit(PUBLISHED)?;
    for moved in plan.items.values() {
        if let Some(from) = moved.from {
            items.remove(&stamp_key(feed, from.t))?;
            published.remove(&published_key(feed, from.listed, moved.item.created))?;
        }
    }
    let mut by_t: Vec<&Moved> = plan.items.values().collect();
    by_t.sort_unstable_by_key(|moved| moved.item.modified);
    for moved in &by_t {
        let t = moved.item.modified;
        if !items.insert_new(&stamp_key(feed, t), &moved.encoded)? {
            return Err(damaged(format!(
                "feed {feed} held an item at {t}, after its last T"
            )));
        }
    }
    drop(items);
    let stamp = |moved: &Moved| stamp_value(moved.item.modified);
    let created = |moved: &Moved| (stamp_key(feed, moved.item.created), stamp(moved));
    write_pointers(tx, CREATED, by_t.iter().map(|moved| created(moved)))?;
    drop(published);
    let listed = |moved: &Moved| {
        let item = &moved.item;
        let key = published_key(feed, item.listed(), item.created);
        (key, stamp(moved))
    };
    write_pointers(tx, PUBLISHED, by_t.iter().map(|moved| listed(moved)))?;
    let by_id = plan.items.iter();
    write_pointers(
        tx,
        IDS,
        by_id.map(|(id, moved)| (id_key(feed, *id), stamp(moved))),
    )
}

/// Writes rows that lead to a T, in the order of their keys: rows that come in order fill their pages,
/// and the pages of many others need not be held.
fn write_pointers<const N: usize>(
    tx: &dyn RowWriter,
    table: Table<[u8; N]>,
    rows: impl Iterator<Item = ([u8; N], [u8; 8])>,
) -> Result<(), StoreError> {
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable();
    let mut table = tx.edit(table)?;
    for (key, t) in &rows {
        table.insert(key, t)?;
    }
    Ok(())
}

/// Only unknown keys are bound: two known items are never merged.
fn bind_keys(tx: &dyn RowWriter, commit: &Commit) -> Result<(), StoreError> {
    let mut keys = tx.edit(KEYS)?;
    let feed = commit.basis.feed;
    let bindings = plan::bindings(commit).map(|(key, id)| (hash_key(feed, key), id));
    let mut bindings: Vec<_> = bindings.collect();
    // The first one of a key stays the first.
    bindings.sort_by_key(|(key, _)| *key);
    for (key, ItemId(id)) in bindings {
        if keys.get(&key)?.is_none() {
            keys.insert(&key, &id)?;
        }
    }
    Ok(())
}

fn bind_witnesses(tx: &dyn RowWriter, commit: &Commit) -> Result<(), StoreError> {
    let mut table = tx.edit(WITNESSES)?;
    let feed = commit.basis.feed;
    let witnesses = plan::witnesses(commit).map(|(witness, id)| (hash_key(feed, witness), id));
    let mut witnesses: Vec<_> = witnesses.collect();
    // The items of one stay in their order.
    witnesses.sort_by_key(|(key, _)| *key);
    for (key, id) in witnesses {
        let held = match table.get(&key)? {
            Some(ids) => witnessed_ids(ids.value()),
            None => Vec::new(),
        };
        if let Some(more) = plan::witnessed(&held, id) {
            let bytes: Vec<u8> = more.iter().flat_map(|id| id.0).collect();
            table.insert(&key, &bytes)?;
        }
    }
    Ok(())
}

fn write_evidence(
    tx: &dyn RowWriter,
    feed: FeedNo,
    plan: &PlannedCommit,
) -> Result<(), StoreError> {
    let mut table = tx.edit(EVIDENCE)?;
    for id in &plan.forgotten {
        table.clear(&id_key(feed, *id))?;
    }
    for (id, t, evidence) in &plan.evidence {
        table.write(&evidence_key(feed, *id, *t), evidence)?;
    }
    Ok(())
}
