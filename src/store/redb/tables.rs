//! The tables of schema 1, their keys, and what a key says; not what their values hold.
//!
//! Numbers in keys are big-endian, so that the order of the bytes is the order of the things. Rows that only point
//! (names, ids, keys, ...) have values of a fixed width; everything else is written by [`stored`](crate::store::stored).

use crate::{
    feed::{
        item::{ItemId, KeyHash},
        record::FeedNo,
        stamp::Stamp,
    },
    store::{StoreError, SubscriptionNo},
};
use redb::{Key, ReadTransaction, ReadableTable, TableDefinition, Value, WriteTransaction};
use sha2::{Digest as _, Sha256};

/// The schema of which this file speaks. An older one is migrated in [`file`](super::file), a newer one refused.
pub(super) const SCHEMA: u32 = 1;

/// A value of [`stored`](crate::store::stored), or of WITNESSES: ids, one behind another.
pub(super) type Coded = &'static [u8];

pub(super) type FeedKey = [u8; 4];
/// Feed, stamp.
pub(super) type StampKey = [u8; 12];
/// Feed, id.
pub(super) type IdKey = [u8; 14];
/// Feed, hash of a key.
pub(super) type HashKey = [u8; 20];
/// Feed, id, T.
pub(super) type EvidenceKey = [u8; 22];
/// Feed, number of a page.
pub(super) type PageKey = [u8; 8];
/// Feed, number of an observation.
pub(super) type SeqKey = [u8; 12];
pub(super) type SubscriptionKey = [u8; 8];
/// Feed, subscription.
pub(super) type FeedSubscriptionKey = [u8; 12];

/// `schema`, `clock`, `last_feed` and `last_sub`.
pub(super) const META: TableDefinition<'_, &str, Coded> = TableDefinition::new("meta");
/// Name to feed.
pub(super) const FEED_NAMES: TableDefinition<'_, &str, &FeedKey> = TableDefinition::new("feed_names");
/// `FeedRecord`.
pub(super) const FEEDS: TableDefinition<'_, &FeedKey, Coded> = TableDefinition::new("feeds");
/// (feed, T) to the item: clustered, so that a page is one range.
pub(super) const ITEMS: TableDefinition<'_, &StampKey, Coded> = TableDefinition::new("items");
/// (feed, id) to T.
pub(super) const IDS: TableDefinition<'_, &IdKey, &[u8; 8]> = TableDefinition::new("ids");
/// (feed, first T) to T.
pub(super) const CREATED: TableDefinition<'_, &StampKey, &[u8; 8]> = TableDefinition::new("created");
/// (feed, hash of any key ever seen) to the item's id.
pub(super) const KEYS: TableDefinition<'_, &HashKey, &[u8; 10]> = TableDefinition::new("keys");
/// (feed, hash of a witness) to the ids of the items that have it, the newest last.
pub(super) const WITNESSES: TableDefinition<'_, &HashKey, Coded> = TableDefinition::new("witnesses");
/// `Vec<WindowEntry>`.
pub(super) const WINDOWS: TableDefinition<'_, &FeedKey, Coded> = TableDefinition::new("windows");
/// `PollState`.
pub(super) const POLLS: TableDefinition<'_, &FeedKey, Coded> = TableDefinition::new("polls");
/// `Evidence` of a tombstone.
pub(super) const EVIDENCE: TableDefinition<'_, &EvidenceKey, Coded> = TableDefinition::new("evidence");
/// `ArchiveWalk`, without what it has seen.
pub(super) const WALKS: TableDefinition<'_, &FeedKey, Coded> = TableDefinition::new("walks");
/// `StagedPage`.
pub(super) const STAGING: TableDefinition<'_, &PageKey, Coded> = TableDefinition::new("staging");
/// (feed, number) to `ObservationRecord`; the last ones only.
pub(super) const OBSERVATIONS: TableDefinition<'_, &SeqKey, Coded> = TableDefinition::new("observations");
/// `Subscription`: view, lease and target.
pub(super) const SUBSCRIPTIONS: TableDefinition<'_, &SubscriptionKey, Coded> = TableDefinition::new("subs");
/// `Progress`: the position of a subscription, beside the rest.
pub(super) const POSITIONS: TableDefinition<'_, &SubscriptionKey, Coded> = TableDefinition::new("positions");
/// SHA-256 of `topic LF address` to the subscription.
pub(super) const SUBSCRIPTION_KEYS: TableDefinition<'_, &[u8; 32], &SubscriptionKey> =
    TableDefinition::new("sub_keys");
/// The subscriptions of a feed.
pub(super) const FEED_SUBSCRIPTIONS: TableDefinition<'_, &FeedSubscriptionKey, ()> =
    TableDefinition::new("feed_subs");
/// `FeedLease`: who drives a feed.
pub(super) const LEASES: TableDefinition<'_, &FeedKey, Coded> = TableDefinition::new("leases");
/// Host to the end of its pause.
pub(super) const HOSTS: TableDefinition<'_, &str, &[u8; 8]> = TableDefinition::new("hosts");

/// Makes every table, so that no reader meets a missing one.
pub(super) fn make_all(tx: &WriteTransaction) -> Result<(), StoreError> {
    tx.open_table(META)?;
    tx.open_table(FEED_NAMES)?;
    tx.open_table(FEEDS)?;
    tx.open_table(ITEMS)?;
    tx.open_table(IDS)?;
    tx.open_table(CREATED)?;
    tx.open_table(KEYS)?;
    tx.open_table(WITNESSES)?;
    tx.open_table(WINDOWS)?;
    tx.open_table(POLLS)?;
    tx.open_table(EVIDENCE)?;
    tx.open_table(WALKS)?;
    tx.open_table(STAGING)?;
    tx.open_table(OBSERVATIONS)?;
    tx.open_table(SUBSCRIPTIONS)?;
    tx.open_table(SUBSCRIPTION_KEYS)?;
    tx.open_table(FEED_SUBSCRIPTIONS)?;
    tx.open_table(POSITIONS)?;
    tx.open_table(LEASES)?;
    tx.open_table(HOSTS)?;
    Ok(())
}

/// Source of tables: a snapshot, or a write transaction that sees what it has written.
pub(super) trait TableSource {
    /// Opens a table for reading.
    fn table<K: Key + 'static, V: Value + 'static>(
        &self,
        definition: TableDefinition<'_, K, V>,
    ) -> Result<impl ReadableTable<K, V>, StoreError>;
}

impl TableSource for ReadTransaction {
    fn table<K: Key + 'static, V: Value + 'static>(
        &self,
        definition: TableDefinition<'_, K, V>,
    ) -> Result<impl ReadableTable<K, V>, StoreError> {
        Ok(self.open_table(definition)?)
    }
}

impl TableSource for WriteTransaction {
    fn table<K: Key + 'static, V: Value + 'static>(
        &self,
        definition: TableDefinition<'_, K, V>,
    ) -> Result<impl ReadableTable<K, V>, StoreError> {
        Ok(self.open_table(definition)?)
    }
}

pub(super) fn feed_key(feed: FeedNo) -> FeedKey {
    feed.0.to_be_bytes()
}

pub(super) fn feed_of(key: FeedKey) -> FeedNo {
    FeedNo(u32::from_be_bytes(key))
}

pub(super) fn stamp_key(feed: FeedNo, stamp: Stamp) -> StampKey {
    join(&feed_key(feed), &stamp_value(stamp))
}

/// The stamp at the end of a key.
pub(super) fn stamp_of(key: &[u8]) -> Stamp {
    Stamp::from_micros(key.last_chunk().map_or(0, |tail| u64::from_be_bytes(*tail)))
}

pub(super) fn stamp_value(stamp: Stamp) -> [u8; 8] {
    stamp.micros().to_be_bytes()
}

pub(super) fn id_key(feed: FeedNo, id: ItemId) -> IdKey {
    join(&feed_key(feed), &id.0)
}

pub(super) fn hash_key(feed: FeedNo, key: KeyHash) -> HashKey {
    join(&feed_key(feed), &key.0)
}

/// The ids of a row of WITNESSES.
pub(super) fn witnessed_ids(bytes: &[u8]) -> Vec<ItemId> {
    bytes.as_chunks().0.iter().copied().map(ItemId).collect()
}

pub(super) fn evidence_key(feed: FeedNo, id: ItemId, t: Stamp) -> EvidenceKey {
    join(&id_key(feed, id), &stamp_value(t))
}

pub(super) fn page_key(feed: FeedNo, no: u32) -> PageKey {
    join(&feed_key(feed), &no.to_be_bytes())
}

pub(super) fn seq_key(feed: FeedNo, seq: u64) -> SeqKey {
    join(&feed_key(feed), &seq.to_be_bytes())
}

/// The number at the end of a key.
pub(super) fn seq_of(key: &[u8]) -> u64 {
    key.last_chunk().map_or(0, |tail| u64::from_be_bytes(*tail))
}

pub(super) fn subscription_key(sub: SubscriptionNo) -> SubscriptionKey {
    sub.0.to_be_bytes()
}

pub(super) fn feed_subscription_key(feed: FeedNo, sub: SubscriptionNo) -> FeedSubscriptionKey {
    join(&feed_key(feed), &subscription_key(sub))
}

/// The subscription at the end of a key.
pub(super) fn subscription_of(key: &[u8]) -> SubscriptionNo {
    SubscriptionNo(key.last_chunk().map_or(0, |tail| u64::from_be_bytes(*tail)))
}

pub(super) fn topic_key(topic: &str, address: &str) -> [u8; 32] {
    Sha256::new().chain_update(topic).chain_update(b"\n").chain_update(address).finalize().into()
}

/// Two parts of a key. Their lengths add up by the types of the functions above.
fn join<const N: usize>(metadata: &[u8], tail: &[u8]) -> [u8; N] {
    let mut key = [0; N];
    let (front, back) = key.split_at_mut(metadata.len());
    front.copy_from_slice(metadata);
    back.copy_from_slice(tail);
    key
}

/// Every way in which redb fails is the disk's or the file's fault, never the caller's.
fn fault(error: redb::Error) -> StoreError {
    match error {
        redb::Error::Corrupted(what) => StoreError::Damaged(what),
        other => StoreError::Failed(other.to_string()),
    }
}

impl From<redb::StorageError> for StoreError {
    fn from(error: redb::StorageError) -> Self {
        fault(error.into())
    }
}

impl From<redb::TableError> for StoreError {
    fn from(error: redb::TableError) -> Self {
        fault(error.into())
    }
}

impl From<redb::TransactionError> for StoreError {
    fn from(error: redb::TransactionError) -> Self {
        fault(error.into())
    }
}

impl From<redb::CommitError> for StoreError {
    fn from(error: redb::CommitError) -> Self {
        fault(error.into())
    }
}
