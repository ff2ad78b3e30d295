//! Writing what a commit comes to: items with their indexes, keys, witnesses and evidence, and the
//! record of the feed; not what is saved beside them.

use super::{
    counted,
    tables::{
        CREATED, EVIDENCE, FEEDS, IDS, ITEMS, KEYS, PUBLISHED, TableEdit as _, WITNESSES,
        evidence_key, feed_key, hash_key, id_key, published_key, stamp_key, stamp_value,
        witnessed_ids,
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
        plan::{self, PlannedCommit},
        stored::damaged,
    },
};
use redb::WriteTransaction;

/// Writes the items of a commit, what leads to them, and the record of the feed.
pub(super) fn write_planned(
    tx: &WriteTransaction,
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

pub(super) fn write_record(tx: &WriteTransaction, record: &FeedRecord) -> Result<(), StoreError> {
    tx.edit(FEEDS)?.write(&feed_key(record.no), record)
}

fn write_items(
    tx: &WriteTransaction,
    feed: FeedNo,
    plan: &PlannedCommit,
) -> Result<(), StoreError> {
    let mut items = tx.edit(ITEMS)?;
    let mut ids = tx.edit(IDS)?;
    let mut created = tx.edit(CREATED)?;
    let mut published = tx.edit(PUBLISHED)?;
    for (id, moved) in &plan.items {
        let item = &moved.item;
        if let Some(from) = moved.from {
            items.remove(&stamp_key(feed, from.t))?;
            published.remove(&published_key(feed, from.listed, item.created))?;
        }
        let t = item.modified;
        if items.insert(&stamp_key(feed, t), &moved.encoded)? {
            return Err(damaged(format!(
                "feed {feed} held an item at {t}, after its last T"
            )));
        }
        let value = stamp_value(t);
        ids.insert(&id_key(feed, *id), &value)?;
        created.insert(&stamp_key(feed, item.created), &value)?;
        published.insert(&published_key(feed, item.listed(), item.created), &value)?;
    }
    Ok(())
}

/// Only unknown keys are bound: two known items are never merged.
fn bind_keys(tx: &WriteTransaction, commit: &Commit) -> Result<(), StoreError> {
    let mut keys = tx.edit(KEYS)?;
    for (key, ItemId(id)) in plan::bindings(commit) {
        let key = hash_key(commit.basis.feed, key);
        if keys.get(&key)?.is_none() {
            keys.insert(&key, &id)?;
        }
    }
    Ok(())
}

fn bind_witnesses(tx: &WriteTransaction, commit: &Commit) -> Result<(), StoreError> {
    let mut table = tx.edit(WITNESSES)?;
    for (witness, id) in plan::witnesses(commit) {
        let key = hash_key(commit.basis.feed, witness);
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
    tx: &WriteTransaction,
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
