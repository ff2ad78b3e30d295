//! What is read the same way in a snapshot and in a write transaction; not pages, and nothing is written.

use super::tables::{
    self, Coded, EVIDENCE, FEEDS, FeedKey, HOSTS, IDS, ITEMS, IdKey, KEYS, OBSERVATIONS, POLLS, STAGING,
    SeqKey, Source, StampKey, WALKS, WINDOWS, evidence_key, feed_key, feed_of, hash_key, id_key, page_key,
    seq_key, seq_of, stamp_key, stamp_of,
};
use crate::{
    feed::{
        archive::{ArchiveWalk, StagedWalk},
        item::{Item, ItemId, KeyHash},
        observation_record::ObservationRecord,
        reconcile::{Evidence, Known, WindowState},
        record::{FeedNo, FeedRecord},
        schedule::PollState,
        stamp::Stamp,
    },
    store::{
        StoreError,
        codec::{damaged, decode, decode_item, item_header},
        plan::Held,
    },
};
use redb::ReadableTable;
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

/// One feed.
pub(super) fn record(source: &impl Source, feed: FeedNo) -> Result<FeedRecord, StoreError> {
    let feeds = source.table(FEEDS)?;
    let stored = feeds.get(&feed_key(feed))?.ok_or(StoreError::UnknownFeed(feed))?;
    read_record(feed, stored.value())
}

/// Every feed.
pub(super) fn records(source: &impl Source) -> Result<Vec<FeedRecord>, StoreError> {
    each_feed(&source.table(FEEDS)?, read_record)
}

fn read_record(feed: FeedNo, bytes: &[u8]) -> Result<FeedRecord, StoreError> {
    let record: FeedRecord = decode(&format!("feed {feed}"), bytes)?;
    if record.no != feed || record.live > record.total {
        return Err(damaged(&format!("feed {feed}"), "does not agree with itself"));
    }
    Ok(record)
}

/// Every poll state.
pub(super) fn polls(source: &impl Source) -> Result<Vec<(FeedNo, PollState)>, StoreError> {
    each_feed(&source.table(POLLS)?, |feed, bytes| Ok((feed, decode("a poll state", bytes)?)))
}

/// Every walk.
pub(super) fn walks(source: &impl Source) -> Result<Vec<(FeedNo, ArchiveWalk)>, StoreError> {
    each_feed(&source.table(WALKS)?, |feed, bytes| Ok((feed, decode("a walk", bytes)?)))
}

/// The staged pages of a feed, by number.
pub(super) fn staged(source: &impl Source, feed: FeedNo) -> Result<StagedWalk, StoreError> {
    record(source, feed)?;
    let walks = source.table(WALKS)?;
    let walk = walks.get(&feed_key(feed))?;
    let walk = walk.map(|walk| decode("a walk", walk.value())).transpose()?;
    let (first, last) = (page_key(feed, 0), page_key(feed, u32::MAX));
    let mut all = Vec::new();
    for row in source.table(STAGING)?.range::<&tables::PageKey>(&first..=&last)? {
        all.push(decode("a staged page", row?.1.value())?);
    }
    Ok(StagedWalk { walk, pages: all })
}

fn each_feed<T>(
    table: &impl ReadableTable<&'static FeedKey, Coded>,
    read: impl Fn(FeedNo, &[u8]) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let row = |row: Result<_, redb::StorageError>| {
        let (key, value): (redb::AccessGuard<'_, &FeedKey>, redb::AccessGuard<'_, Coded>) = row?;
        read(feed_of(*key.value()), value.value())
    };
    table.iter()?.map(row).collect()
}

/// Until when hosts want to be left alone.
pub(super) fn hosts(source: &impl Source) -> Result<Vec<(String, Stamp)>, StoreError> {
    let mut all = Vec::new();
    for row in source.table(HOSTS)?.iter()? {
        let (host, until) = row?;
        all.push((host.value().to_owned(), stamp_of(until.value())));
    }
    Ok(all)
}

/// The tombstones' evidence of one item.
pub(super) fn evidence(
    source: &impl Source,
    feed: FeedNo,
    id: ItemId,
) -> Result<Vec<(Stamp, Evidence)>, StoreError> {
    let (first, last) = (evidence_key(feed, id, Stamp::ZERO), evidence_key(feed, id, Stamp::MAX));
    let mut all = Vec::new();
    for row in source.table(EVIDENCE)?.range::<&tables::EvidenceKey>(&first..=&last)? {
        let (key, value) = row?;
        all.push((stamp_of(key.value()), decode("the evidence of a tombstone", value.value())?));
    }
    Ok(all)
}

/// What the last documents came to, oldest first.
pub(super) fn observations(
    source: &impl Source,
    feed: FeedNo,
) -> Result<Vec<(u64, ObservationRecord)>, StoreError> {
    let (first, last) = (seq_key(feed, 0), seq_key(feed, u64::MAX));
    let mut all = Vec::new();
    for row in source.table(OBSERVATIONS)?.range::<&SeqKey>(&first..=&last)? {
        let (key, value) = row?;
        all.push((seq_of(key.value()), decode("an observation", value.value())?));
    }
    Ok(all)
}

/// What a decision needs, all of one revision.
pub(super) fn known(source: &impl Source, feed: FeedNo, keys: &[KeyHash]) -> Result<Known, StoreError> {
    let record = record(source, feed)?;
    let windows = source.table(WINDOWS)?;
    let last = windows.get(&feed_key(feed))?;
    let mut known = Known {
        rev: record.rev,
        id_rule: record.id_rule,
        window: last.map_or(Ok(WindowState::default()), |last| decode("a window", last.value()))?,
        items: HashMap::new(),
    };
    let bound = source.table(KEYS)?;
    let items = Items::of(source, feed)?;
    let mut read = HashMap::new();
    for key in keys {
        let Some(id) = bound.get(&hash_key(feed, *key))? else { continue };
        let id = ItemId(*id.value());
        // Several keys of one entry lead to one item, which is read once.
        let item = match read.entry(id) {
            Entry::Occupied(item) => Arc::clone(item.get()),
            Entry::Vacant(place) => {
                let item = items.item(id)?.ok_or_else(|| damaged(&format!("item {id}"), "has only a key"))?;
                Arc::clone(place.insert(item))
            }
        };
        known.items.insert(*key, item);
    }
    Ok(known)
}

/// The items of one feed, by their ids.
pub(super) struct Items<I, T> {
    feed: FeedNo,
    ids: I,
    items: T,
}

impl Items<(), ()> {
    /// Those of this feed.
    pub(super) fn of<S: Source>(
        source: &S,
        feed: FeedNo,
    ) -> Result<
        Items<
            impl ReadableTable<&'static IdKey, &'static [u8; 8]>,
            impl ReadableTable<&'static StampKey, Coded>,
        >,
        StoreError,
    > {
        Ok(Items { feed, ids: source.table(IDS)?, items: source.table(ITEMS)? })
    }
}

impl<I, T> Items<I, T>
where
    I: ReadableTable<&'static IdKey, &'static [u8; 8]>,
    T: ReadableTable<&'static StampKey, Coded>,
{
    /// One of them.
    pub(super) fn item(&self, id: ItemId) -> Result<Option<Arc<Item>>, StoreError> {
        let Some(t) = self.ids.get(&id_key(self.feed, id))? else { return Ok(None) };
        let t = stamp_of(t.value());
        let missing = || damaged(&format!("item {id}"), &format!("is not at {t}"));
        let stored = self.items.get(&stamp_key(self.feed, t))?.ok_or_else(missing)?;
        let item = decode_item(t, stored.value())?;
        if item.id == id { Ok(Some(Arc::new(item))) } else { Err(missing()) }
    }
}

impl<I, T> Held for Items<I, T>
where
    I: ReadableTable<&'static IdKey, &'static [u8; 8]>,
    T: ReadableTable<&'static StampKey, Coded>,
{
    fn item(&self, id: ItemId) -> Result<Option<Arc<Item>>, StoreError> {
        self.item(id)
    }

    fn id_at(&self, t: Stamp) -> Result<Option<ItemId>, StoreError> {
        let stored = self.items.get(&stamp_key(self.feed, t))?;
        stored.map(|stored| Ok(item_header(stored.value())?.id)).transpose()
    }
}
