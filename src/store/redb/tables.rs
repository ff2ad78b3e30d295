//! The tables of schema 1, their keys, and what a key says; not what their values hold.
//!
//! Numbers in keys are big-endian, so that the order of the bytes is the order of the things. Rows
//! that only point (names, ids, keys, ...) have values of a fixed width; everything else is written
//! by [`stored`](crate::store::stored). A checksum ends every value (see
//! [`sealed`](super::sealed)).

use super::sealed::{Coded, Sealed, SealedTable};
use crate::{
    auth::{TokenNo, UserNo},
    feed::{
        filter::index_terms::IndexTerm,
        group::Holder,
        item::{ItemId, KeyHash},
        moment::Moment,
        record::FeedNo,
        stamp::Stamp,
    },
    store::{StoreError, SubscriptionNo, stored::damaged},
};
use redb::{
    Key, ReadOnlyTable, ReadTransaction, ReadableTable, Table, TableDefinition, WriteTransaction,
};
use sha2::{Digest as _, Sha256};

/// The schema of which this file speaks. Others are refused in [`file`](super::file).
pub(super) const SCHEMA: u32 = 1;

pub(super) type FeedKey = [u8; 4];
/// Feed, stamp.
pub(super) type StampKey = [u8; 12];
/// A stamp, as the value of a row that points.
pub(super) type StampValue = [u8; 8];
/// Feed, id.
pub(super) type IdKey = [u8; 14];
/// Feed, hash of a key.
pub(super) type HashKey = [u8; 20];
/// Feed, id, T.
pub(super) type EvidenceKey = [u8; 22];
/// Feed, date of publication, first T.
pub(super) type PublishedKey = [u8; 20];
/// Feed, axis, first stamp.
pub(super) type CountedKey = [u8; 13];
/// Feed, number of a page.
pub(super) type PageKey = [u8; 8];
/// Feed, number of a segment of its word index.
pub(super) type SegmentKey = [u8; 8];
/// Feed, segment, first term of the chunk.
pub(super) type TermKey = [u8; 12];
/// Feed, number of an observation.
pub(super) type SeqKey = [u8; 12];
/// Group, member, id of its item.
pub(super) type HoldingKey = [u8; 18];
/// Member, group.
pub(super) type MembershipKey = [u8; 8];
pub(super) type SubscriptionKey = [u8; 8];
/// A user, or a token.
pub(super) type AccountKey = [u8; 8];
/// Feed, subscription.
pub(super) type FeedSubscriptionKey = [u8; 12];

/// `schema`, `clock`, `last_feed`, `last_sub`, `last_user` and `last_token`.
pub(super) const META: SealedTable<&'static str> = SealedTable::new("meta");
/// The same table as redb knows it: the schema in it is a number that every everfeed can read.
pub(super) const BARE_META: TableDefinition<'_, &str, Coded> = META.definition();
/// Name to feed.
pub(super) const FEED_NAMES: SealedTable<&'static str> = SealedTable::new("feed_names");
/// `FeedRecord`.
pub(super) const FEEDS: SealedTable<&'static FeedKey> = SealedTable::new("feeds");
/// (feed, T) to the item: clustered, so that a page is one range.
pub(super) const ITEMS: SealedTable<&'static StampKey> = SealedTable::new("items");
/// (feed, id) to T.
pub(super) const IDS: SealedTable<&'static IdKey> = SealedTable::new("ids");
/// (feed, first T) to T.
pub(super) const CREATED: SealedTable<&'static StampKey> = SealedTable::new("created");
/// (feed, axis, first stamp) to counts of the rows from there on: a chunk of stretches.
pub(super) const COUNTED: SealedTable<&'static CountedKey> = SealedTable::new("counted");
/// (feed, date of publication, first T) to T: the items by the publisher's dates, of which several
/// may share one.
pub(super) const PUBLISHED: SealedTable<&'static PublishedKey> = SealedTable::new("listed");
/// (feed, number) to a segment of the index of a long feed; the last one is open.
pub(super) const SEGMENTS: SealedTable<&'static SegmentKey> = SealedTable::new("segments");
/// (feed, segment, term) to the lists of that term and those behind it (see
/// [`postings`](super::word_index::postings)).
pub(super) const TERMS: SealedTable<&'static TermKey> = SealedTable::new("terms");
/// (feed, hash of any key ever seen) to the item's id.
pub(super) const KEYS: SealedTable<&'static HashKey> = SealedTable::new("keys");
/// (feed, hash of a witness) to the ids of the items that have it, the newest last.
pub(super) const WITNESSES: SealedTable<&'static HashKey> = SealedTable::new("witnesses");
/// `Vec<WindowEntry>`.
pub(super) const WINDOWS: SealedTable<&'static FeedKey> = SealedTable::new("windows");
/// `PollState`.
pub(super) const POLLS: SealedTable<&'static FeedKey> = SealedTable::new("polls");
/// `Evidence` of a tombstone.
pub(super) const EVIDENCE: SealedTable<&'static EvidenceKey> = SealedTable::new("evidence");
/// `ArchiveWalk`, without what it has seen.
pub(super) const WALKS: SealedTable<&'static FeedKey> = SealedTable::new("walks");
/// `StagedPage`.
pub(super) const STAGING: SealedTable<&'static PageKey> = SealedTable::new("staging");
/// (feed, number) to `ObservationRecord`; the last ones only.
pub(super) const OBSERVATIONS: SealedTable<&'static SeqKey> = SealedTable::new("observations");
/// `Subscription`: view, lease and target.
pub(super) const SUBSCRIPTIONS: SealedTable<&'static SubscriptionKey> = SealedTable::new("subs");
/// `Progress`: the position of a subscription, beside the rest.
pub(super) const POSITIONS: SealedTable<&'static SubscriptionKey> = SealedTable::new("positions");
/// SHA-256 of `topic LF address` to the subscription.
pub(super) const SUBSCRIPTION_KEYS: SealedTable<&'static [u8; 32]> = SealedTable::new("sub_keys");
/// The subscriptions of a feed.
pub(super) const FEED_SUBSCRIPTIONS: SealedTable<&'static FeedSubscriptionKey> =
    SealedTable::new("feed_subs");
/// `User`.
pub(super) const USERS: SealedTable<&'static AccountKey> = SealedTable::new("users");
/// `AccessToken`.
pub(super) const TOKENS: SealedTable<&'static AccountKey> = SealedTable::new("tokens");
/// `LegacyDocument`: the last good document of a feed that is served at its own address.
pub(super) const DOCUMENTS: SealedTable<&'static FeedKey> = SealedTable::new("documents");
/// `FoundFeeds`, by the address of the front page of their site.
pub(super) const FOUND_FEEDS: SealedTable<&'static str> = SealedTable::new("found_feeds");
/// `GroupRecord`: the members of a group.
pub(super) const GROUPS: SealedTable<&'static FeedKey> = SealedTable::new("groups");
/// (group, id) to `GroupPost`: the members' items that a post stands for.
pub(super) const GROUP_POSTS: SealedTable<&'static IdKey> = SealedTable::new("group_posts");
/// (group, member, id of its item) to the id of the post.
pub(super) const HOLDINGS: SealedTable<&'static HoldingKey> = SealedTable::new("holdings");
/// (member, group): the groups of a feed.
pub(super) const MEMBERSHIPS: SealedTable<&'static MembershipKey> = SealedTable::new("memberships");
/// Authority to its pause (see [`pause`](crate::store::stored::pause)).
pub(super) const HOSTS: SealedTable<&'static str> = SealedTable::new("hosts");
/// `RegistryText`, by the name of its feed.
pub(super) const REGISTRY: SealedTable<&'static str> = SealedTable::new("registry");

/// Something that is done with every table.
pub(super) trait TableVisitor {
    fn visit<K: Key + 'static>(&mut self, table: SealedTable<K>) -> Result<(), StoreError>;
}

/// Goes through all tables.
pub(super) fn visit_all(visitor: &mut impl TableVisitor) -> Result<(), StoreError> {
    visitor.visit(META)?;
    visitor.visit(FEED_NAMES)?;
    visitor.visit(FEEDS)?;
    visitor.visit(ITEMS)?;
    visitor.visit(IDS)?;
    visitor.visit(CREATED)?;
    visitor.visit(PUBLISHED)?;
    visitor.visit(COUNTED)?;
    visitor.visit(SEGMENTS)?;
    visitor.visit(TERMS)?;
    visitor.visit(KEYS)?;
    visitor.visit(WITNESSES)?;
    visitor.visit(WINDOWS)?;
    visitor.visit(POLLS)?;
    visitor.visit(EVIDENCE)?;
    visitor.visit(WALKS)?;
    visitor.visit(STAGING)?;
    visitor.visit(OBSERVATIONS)?;
    visitor.visit(SUBSCRIPTIONS)?;
    visitor.visit(SUBSCRIPTION_KEYS)?;
    visitor.visit(FEED_SUBSCRIPTIONS)?;
    visitor.visit(POSITIONS)?;
    visitor.visit(HOSTS)?;
    visitor.visit(USERS)?;
    visitor.visit(TOKENS)?;
    visitor.visit(DOCUMENTS)?;
    visitor.visit(FOUND_FEEDS)?;
    visitor.visit(GROUPS)?;
    visitor.visit(GROUP_POSTS)?;
    visitor.visit(HOLDINGS)?;
    visitor.visit(MEMBERSHIPS)?;
    visitor.visit(REGISTRY)
}

/// The names of all tables.
pub(super) fn table_names() -> Vec<&'static str> {
    struct Names(Vec<&'static str>);

    impl TableVisitor for Names {
        fn visit<K: Key + 'static>(&mut self, table: SealedTable<K>) -> Result<(), StoreError> {
            self.0.push(table.name());
            Ok(())
        }
    }

    let mut names = Names(Vec::new());
    visit_all(&mut names).expect("names are only collected");
    names.0
}

/// Makes tables.
struct Maker<'t>(&'t WriteTransaction);

impl TableVisitor for Maker<'_> {
    fn visit<K: Key + 'static>(&mut self, table: SealedTable<K>) -> Result<(), StoreError> {
        self.0.edit(table).map(drop)
    }
}

/// Makes every table, so that no reader meets a missing one.
pub(super) fn make_all(tx: &WriteTransaction) -> Result<(), StoreError> {
    visit_all(&mut Maker(tx))
}

/// Source of tables: a snapshot, or a write transaction that sees what it has written.
pub(super) trait TableSource {
    /// Opens a table for reading.
    fn table<K: Key + 'static>(
        &self,
        table: SealedTable<K>,
    ) -> Result<Sealed<K, impl ReadableTable<K, Coded>>, StoreError>;
}

impl TableSource for ReadTransaction {
    fn table<K: Key + 'static>(
        &self,
        table: SealedTable<K>,
    ) -> Result<Sealed<K, impl ReadableTable<K, Coded>>, StoreError> {
        snapshot_table(self, table)
    }
}

impl TableSource for WriteTransaction {
    fn table<K: Key + 'static>(
        &self,
        table: SealedTable<K>,
    ) -> Result<Sealed<K, impl ReadableTable<K, Coded>>, StoreError> {
        self.edit(table)
    }
}

/// A table of a snapshot.
pub(super) type SnapshotRows<K> = Sealed<K, ReadOnlyTable<K, Coded>>;

/// Opens a table of a snapshot, whose rows may outlive it.
pub(super) fn snapshot_table<K: Key + 'static>(
    snapshot: &ReadTransaction,
    table: SealedTable<K>,
) -> Result<SnapshotRows<K>, StoreError> {
    Ok(Sealed::new(table, snapshot.open_table(table.definition())?))
}

/// A transaction in which tables are changed.
pub(super) trait TableEdit {
    /// Opens a table for writing.
    fn edit<K: Key + 'static>(
        &self,
        table: SealedTable<K>,
    ) -> Result<Sealed<K, Table<'_, K, Coded>>, StoreError>;
}

impl TableEdit for WriteTransaction {
    fn edit<K: Key + 'static>(
        &self,
        table: SealedTable<K>,
    ) -> Result<Sealed<K, Table<'_, K, Coded>>, StoreError> {
        Ok(Sealed::new(table, self.open_table(table.definition())?))
    }
}

pub(super) fn feed_key(feed: FeedNo) -> FeedKey {
    feed.0.to_be_bytes()
}

/// The feed at the beginning of a key, or in a value.
pub(super) fn feed_of(bytes: &[u8]) -> FeedNo {
    FeedNo(
        bytes
            .first_chunk()
            .map_or(0, |head| u32::from_be_bytes(*head)),
    )
}

/// The id in a value.
pub(super) fn item_id_of(bytes: &[u8]) -> Result<ItemId, StoreError> {
    bytes
        .try_into()
        .map(ItemId)
        .map_err(|_| damaged("an id has another length than ids have"))
}

pub(super) fn stamp_key(feed: FeedNo, stamp: Stamp) -> StampKey {
    join(&feed_key(feed), &stamp_value(stamp))
}

/// The stamp at the end of a key.
pub(super) fn stamp_of(key: &[u8]) -> Stamp {
    Stamp::from_micros(key.last_chunk().map_or(0, |tail| u64::from_be_bytes(*tail)))
}

pub(super) fn stamp_value(stamp: Stamp) -> StampValue {
    stamp.micros().to_be_bytes()
}

pub(super) fn published_key(feed: FeedNo, listed: Moment, created: Stamp) -> PublishedKey {
    let listed: StampKey = join(&feed_key(feed), &moment_value(listed));
    join(&listed, &stamp_value(created))
}

/// In the order of the moments, although bytes have no sign.
fn moment_value(moment: Moment) -> [u8; 8] {
    (moment.micros().cast_unsigned() ^ SIGN).to_be_bytes()
}

/// The bit of the sign.
const SIGN: u64 = 1 << 63;

/// Date of publication and first T in a key.
pub(super) fn listed_of(key: &PublishedKey) -> (Moment, Stamp) {
    let listed = stamp_of(&key[..12]).micros() ^ SIGN;
    (Moment::from_micros(listed.cast_signed()), stamp_of(key))
}

pub(super) fn counted_key(feed: FeedNo, axis: u8, first: Stamp) -> CountedKey {
    let along: [u8; 5] = join(&feed_key(feed), &[axis]);
    join(&along, &stamp_value(first))
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

pub(super) fn segment_key(feed: FeedNo, no: u32) -> SegmentKey {
    join(&feed_key(feed), &no.to_be_bytes())
}

/// The number of a segment at the end of a key.
pub(super) fn segment_of(key: &SegmentKey) -> u32 {
    key.last_chunk().map_or(0, |tail| u32::from_be_bytes(*tail))
}

pub(super) fn term_key(feed: FeedNo, segment: u32, IndexTerm(term): IndexTerm) -> TermKey {
    join(&segment_key(feed, segment), &term.to_be_bytes())
}

/// The term at the end of a key.
pub(super) fn term_of(key: &TermKey) -> IndexTerm {
    IndexTerm(key.last_chunk().map_or(0, |tail| u32::from_be_bytes(*tail)))
}

pub(super) fn seq_key(feed: FeedNo, seq: u64) -> SeqKey {
    join(&feed_key(feed), &seq.to_be_bytes())
}

/// The number at the end of a key.
pub(super) fn seq_of(key: &[u8]) -> u64 {
    key.last_chunk().map_or(0, |tail| u64::from_be_bytes(*tail))
}

pub(super) fn holding_key(group: FeedNo, holder: Holder) -> HoldingKey {
    join(&membership_key(group, holder.feed), &holder.item.0)
}

pub(super) fn membership_key(one: FeedNo, other: FeedNo) -> MembershipKey {
    join(&feed_key(one), &feed_key(other))
}

pub(super) fn subscription_key(sub: SubscriptionNo) -> SubscriptionKey {
    sub.0.to_be_bytes()
}

pub(super) fn user_key(user: UserNo) -> AccountKey {
    user.0.to_be_bytes()
}

pub(super) fn token_key(token: TokenNo) -> AccountKey {
    token.0.to_be_bytes()
}

pub(super) fn feed_subscription_key(feed: FeedNo, sub: SubscriptionNo) -> FeedSubscriptionKey {
    join(&feed_key(feed), &subscription_key(sub))
}

/// The subscription at the end of a key.
pub(super) fn subscription_of(key: &[u8]) -> SubscriptionNo {
    SubscriptionNo(key.last_chunk().map_or(0, |tail| u64::from_be_bytes(*tail)))
}

pub(super) fn topic_key(topic: &str, address: &str) -> [u8; 32] {
    Sha256::new()
        .chain_update(topic)
        .chain_update(b"\n")
        .chain_update(address)
        .finalize()
        .into()
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
        redb::Error::TableTypeMismatch { table, .. }
        | redb::Error::TableIsMultimap(table)
        | redb::Error::TableIsNotMultimap(table) => StoreError::Damaged(format!(
            "the kind of the table `{table}` is not the one that it was made with"
        )),
        redb::Error::TableDoesNotExist(table) => {
            StoreError::Damaged(format!("the table `{table}` is missing"))
        }
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
