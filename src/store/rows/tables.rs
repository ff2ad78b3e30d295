//! The tables, their keys, and what a key says; not what their values hold.
//!
//! Numbers in keys are big-endian, so that the order of the bytes is the order of the things. Rows
//! that only point (names, ids, keys, ...) have values of a fixed width; everything else is written
//! by [`stored`](crate::store::stored).

use super::open_table::Table;
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
    store::{StoreError, SubscriptionNo, engine::EngineTable, stored::damaged},
};
use sha2::{Digest as _, Sha256};

pub(in crate::store) type FeedKey = [u8; 4];
/// Feed, stamp.
pub(in crate::store) type StampKey = [u8; 12];
/// A stamp, as the value of a row that points.
pub(in crate::store) type StampValue = [u8; 8];
/// Feed, id.
pub(in crate::store) type IdKey = [u8; 14];
/// Feed, hash of a key.
pub(in crate::store) type HashKey = [u8; 20];
/// Feed, id, T.
pub(in crate::store) type EvidenceKey = [u8; 22];
/// Feed, date of publication, first T.
pub(in crate::store) type PublishedKey = [u8; 20];
/// Feed, axis, first stamp.
pub(in crate::store) type CountedKey = [u8; 13];
/// Feed, number of a page.
pub(in crate::store) type PageKey = [u8; 8];
/// Feed, number of a segment of its word index.
pub(in crate::store) type SegmentKey = [u8; 8];
/// Feed, segment, first term of the chunk.
pub(in crate::store) type TermKey = [u8; 12];
/// Feed, number of an observation.
pub(in crate::store) type SeqKey = [u8; 12];
/// Group, member, id of its item.
pub(in crate::store) type HoldingKey = [u8; 18];
/// Member, group.
pub(in crate::store) type MembershipKey = [u8; 8];
pub(in crate::store) type SubscriptionKey = [u8; 8];
/// A user, or a token.
pub(in crate::store) type AccountKey = [u8; 8];
/// Feed, subscription.
pub(in crate::store) type FeedSubscriptionKey = [u8; 12];

/// `schema`, `clock`, `last_feed`, `last_sub`, `last_user` and `last_token`.
pub(in crate::store) const META: Table<str> = Table::new("meta");
/// Name to feed.
pub(in crate::store) const FEED_NAMES: Table<str> = Table::new("feed_names");
/// `FeedRecord`.
pub(in crate::store) const FEEDS: Table<FeedKey> = Table::new("feeds").announced();
/// (feed, T) to the item: clustered, so that a page is one range.
pub(in crate::store) const ITEMS: Table<StampKey> = Table::new("items");
/// (feed, id) to T.
pub(in crate::store) const IDS: Table<IdKey> = Table::new("ids");
/// (feed, first T) to T.
pub(in crate::store) const CREATED: Table<StampKey> = Table::new("created");
/// (feed, axis, first stamp) to counts of the rows from there on: a chunk of stretches.
pub(in crate::store) const COUNTED: Table<CountedKey> = Table::new("counted");
/// (feed, date of publication, first T) to T: the items by the publisher's dates, of which several
/// may share one.
pub(in crate::store) const PUBLISHED: Table<PublishedKey> = Table::new("listed");
/// (feed, number) to a segment of the index of a long feed; the last one is open.
pub(in crate::store) const SEGMENTS: Table<SegmentKey> = Table::new("segments");
/// (feed, segment, term) to the lists of that term and those behind it (see
/// [`postings`](super::word_index::postings)).
pub(in crate::store) const TERMS: Table<TermKey> = Table::new("terms");
/// (feed, hash of any key ever seen) to the item's id.
pub(in crate::store) const KEYS: Table<HashKey> = Table::new("keys");
/// (feed, hash of a witness) to the ids of the items that have it, the newest last.
pub(in crate::store) const WITNESSES: Table<HashKey> = Table::new("witnesses");
/// `Vec<WindowEntry>`.
pub(in crate::store) const WINDOWS: Table<FeedKey> = Table::new("windows");
/// `PollState`.
pub(in crate::store) const POLLS: Table<FeedKey> = Table::new("polls");
/// `Evidence` of a tombstone.
pub(in crate::store) const EVIDENCE: Table<EvidenceKey> = Table::new("evidence");
/// `ArchiveWalk`, without what it has seen.
pub(in crate::store) const WALKS: Table<FeedKey> = Table::new("walks");
/// `StagedPage`.
pub(in crate::store) const STAGING: Table<PageKey> = Table::new("staging");
/// (feed, number) to `ObservationRecord`; the last ones only.
pub(in crate::store) const OBSERVATIONS: Table<SeqKey> = Table::new("observations");
/// `Subscription`: view, lease and target.
pub(in crate::store) const SUBSCRIPTIONS: Table<SubscriptionKey> = Table::new("subs");
/// `Progress`: the position of a subscription, beside the rest.
pub(in crate::store) const POSITIONS: Table<SubscriptionKey> = Table::new("positions");
/// SHA-256 of `topic LF address` to the subscription.
pub(in crate::store) const SUBSCRIPTION_KEYS: Table<[u8; 32]> = Table::new("sub_keys");
/// The subscriptions of a feed.
pub(in crate::store) const FEED_SUBSCRIPTIONS: Table<FeedSubscriptionKey> = Table::new("feed_subs");
/// `User`.
pub(in crate::store) const USERS: Table<AccountKey> = Table::new("users");
/// `AccessToken`.
pub(in crate::store) const TOKENS: Table<AccountKey> = Table::new("tokens");
/// `LegacyDocument`: the last good document of a feed that is served at its own address.
pub(in crate::store) const DOCUMENTS: Table<FeedKey> = Table::new("documents");
/// `FoundFeeds`, by the address of the front page of their site.
pub(in crate::store) const FOUND_FEEDS: Table<str> = Table::new("found_feeds");
/// `GroupRecord`: the members of a group.
pub(in crate::store) const GROUPS: Table<FeedKey> = Table::new("groups");
/// (group, id) to `GroupPost`: the members' items that a post stands for.
pub(in crate::store) const GROUP_POSTS: Table<IdKey> = Table::new("group_posts");
/// (group, member, id of its item) to the id of the post.
pub(in crate::store) const HOLDINGS: Table<HoldingKey> = Table::new("holdings");
/// (member, group): the groups of a feed.
pub(in crate::store) const MEMBERSHIPS: Table<MembershipKey> = Table::new("memberships");
/// Authority to its pause (see [`pause`](crate::store::stored::pause)).
pub(in crate::store) const HOSTS: Table<str> = Table::new("hosts");
/// `RegistryText`, by the name of its feed.
pub(in crate::store) const REGISTRY: Table<str> = Table::new("registry");
/// `PushedFeed`.
pub(in crate::store) const PUSHED: Table<FeedKey> = Table::new("pushed");

/// `IndexNow`, by the address of the front page of its site.
pub(in crate::store) const INDEX_NOW: Table<str> = Table::new("index_now");

/// `OpmlList`, by its name.
pub(in crate::store) const OPML_LISTS: Table<str> = Table::new("opml_lists");

/// `Event`, by its time.
pub(in crate::store) const EVENTS: Table<StampValue> = Table::new("events");

/// All tables.
pub(in crate::store) const TABLES: [EngineTable; 36] = [
    META.of_engine(),
    FEED_NAMES.of_engine(),
    FEEDS.of_engine(),
    ITEMS.of_engine(),
    IDS.of_engine(),
    CREATED.of_engine(),
    PUBLISHED.of_engine(),
    COUNTED.of_engine(),
    SEGMENTS.of_engine(),
    TERMS.of_engine(),
    KEYS.of_engine(),
    WITNESSES.of_engine(),
    WINDOWS.of_engine(),
    POLLS.of_engine(),
    EVIDENCE.of_engine(),
    WALKS.of_engine(),
    STAGING.of_engine(),
    OBSERVATIONS.of_engine(),
    SUBSCRIPTIONS.of_engine(),
    SUBSCRIPTION_KEYS.of_engine(),
    FEED_SUBSCRIPTIONS.of_engine(),
    POSITIONS.of_engine(),
    HOSTS.of_engine(),
    USERS.of_engine(),
    TOKENS.of_engine(),
    DOCUMENTS.of_engine(),
    FOUND_FEEDS.of_engine(),
    GROUPS.of_engine(),
    GROUP_POSTS.of_engine(),
    HOLDINGS.of_engine(),
    MEMBERSHIPS.of_engine(),
    REGISTRY.of_engine(),
    EVENTS.of_engine(),
    PUSHED.of_engine(),
    INDEX_NOW.of_engine(),
    OPML_LISTS.of_engine(),
];

pub(in crate::store) fn feed_key(feed: FeedNo) -> FeedKey {
    feed.0.to_be_bytes()
}

/// The feed at the beginning of a key, or in a value.
pub(in crate::store) fn feed_of(bytes: &[u8]) -> FeedNo {
    FeedNo(
        bytes
            .first_chunk()
            .map_or(0, |head| u32::from_be_bytes(*head)),
    )
}

/// The id in a value.
pub(in crate::store) fn item_id_of(bytes: &[u8]) -> Result<ItemId, StoreError> {
    bytes
        .try_into()
        .map(ItemId)
        .map_err(|_| damaged("an id has another length than ids have"))
}

pub(in crate::store) fn stamp_key(feed: FeedNo, stamp: Stamp) -> StampKey {
    join(&feed_key(feed), &stamp_value(stamp))
}

/// The stamp at the end of a key.
pub(in crate::store) fn stamp_of(key: &[u8]) -> Stamp {
    Stamp::from_micros(key.last_chunk().map_or(0, |tail| u64::from_be_bytes(*tail)))
}

pub(in crate::store) fn stamp_value(stamp: Stamp) -> StampValue {
    stamp.micros().to_be_bytes()
}

pub(in crate::store) fn published_key(
    feed: FeedNo,
    listed: Moment,
    created: Stamp,
) -> PublishedKey {
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
pub(in crate::store) fn listed_of(key: &PublishedKey) -> (Moment, Stamp) {
    let listed = stamp_of(&key[..12]).micros() ^ SIGN;
    (Moment::from_micros(listed.cast_signed()), stamp_of(key))
}

pub(in crate::store) fn counted_key(feed: FeedNo, axis: u8, first: Stamp) -> CountedKey {
    let along: [u8; 5] = join(&feed_key(feed), &[axis]);
    join(&along, &stamp_value(first))
}

pub(in crate::store) fn id_key(feed: FeedNo, id: ItemId) -> IdKey {
    join(&feed_key(feed), &id.0)
}

pub(in crate::store) fn hash_key(feed: FeedNo, key: KeyHash) -> HashKey {
    join(&feed_key(feed), &key.0)
}

/// The ids of a row of WITNESSES.
pub(in crate::store) fn witnessed_ids(bytes: &[u8]) -> Vec<ItemId> {
    bytes.as_chunks().0.iter().copied().map(ItemId).collect()
}

pub(in crate::store) fn evidence_key(feed: FeedNo, id: ItemId, t: Stamp) -> EvidenceKey {
    join(&id_key(feed, id), &stamp_value(t))
}

pub(in crate::store) fn page_key(feed: FeedNo, no: u32) -> PageKey {
    join(&feed_key(feed), &no.to_be_bytes())
}

pub(in crate::store) fn segment_key(feed: FeedNo, no: u32) -> SegmentKey {
    join(&feed_key(feed), &no.to_be_bytes())
}

/// The number of a segment at the end of a key.
pub(in crate::store) fn segment_of(key: &SegmentKey) -> u32 {
    key.last_chunk().map_or(0, |tail| u32::from_be_bytes(*tail))
}

pub(in crate::store) fn term_key(
    feed: FeedNo,
    segment: u32,
    IndexTerm(term): IndexTerm,
) -> TermKey {
    join(&segment_key(feed, segment), &term.to_be_bytes())
}

/// The term at the end of a key.
pub(in crate::store) fn term_of(key: &TermKey) -> IndexTerm {
    IndexTerm(key.last_chunk().map_or(0, |tail| u32::from_be_bytes(*tail)))
}

pub(in crate::store) fn seq_key(feed: FeedNo, seq: u64) -> SeqKey {
    join(&feed_key(feed), &seq.to_be_bytes())
}

/// The number at the end of a key.
pub(in crate::store) fn seq_of(key: &[u8]) -> u64 {
    key.last_chunk().map_or(0, |tail| u64::from_be_bytes(*tail))
}

pub(in crate::store) fn holding_key(group: FeedNo, holder: Holder) -> HoldingKey {
    join(&membership_key(group, holder.feed), &holder.item.0)
}

pub(in crate::store) fn membership_key(one: FeedNo, other: FeedNo) -> MembershipKey {
    join(&feed_key(one), &feed_key(other))
}

pub(in crate::store) fn subscription_key(sub: SubscriptionNo) -> SubscriptionKey {
    sub.0.to_be_bytes()
}

pub(in crate::store) fn user_key(user: UserNo) -> AccountKey {
    user.0.to_be_bytes()
}

pub(in crate::store) fn token_key(token: TokenNo) -> AccountKey {
    token.0.to_be_bytes()
}

pub(in crate::store) fn feed_subscription_key(
    feed: FeedNo,
    sub: SubscriptionNo,
) -> FeedSubscriptionKey {
    join(&feed_key(feed), &subscription_key(sub))
}

/// The subscription at the end of a key.
pub(in crate::store) fn subscription_of(key: &[u8]) -> SubscriptionNo {
    SubscriptionNo(key.last_chunk().map_or(0, |tail| u64::from_be_bytes(*tail)))
}

pub(in crate::store) fn topic_key(topic: &str, address: &str) -> [u8; 32] {
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
