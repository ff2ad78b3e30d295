//! Reads that are the same in a snapshot and in a write transaction; not pages, and nothing is
//! written.

use super::{
    open_table::{Rows, TableSource as _},
    tables::{
        EVIDENCE, FEED_NAMES, FEEDS, FeedKey, IDS, ITEMS, IdKey, KEYS, META, OBSERVATIONS, POLLS,
        PageKey, STAGING, StampKey, WINDOWS, WITNESSES, feed_key, feed_of, hash_key, id_key,
        item_id_of, seq_of, stamp_key, stamp_of, witnessed_ids,
    },
};
use crate::{
    feed::{
        item::{Item, ItemId, KeyHash},
        observation_record::ObservationRecord,
        reconcile::Evidence,
        record::{FeedNo, FeedRecord},
        schedule::PollState,
        stamp::Stamp,
    },
    store::{
        Snapshot, StoreError, Witnessed,
        engine::{RowPart, RowReader},
        plan::Held,
        stored::{
            damaged, decode,
            item::{decode_item, item_header, plain_bytes},
        },
    },
};
use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
};

/// Key in META of the last number given to a feed, so that none is given twice.
pub(in crate::store) const LAST_FEED_KEY: &str = "last_feed";

/// The last number given to a feed.
pub(in crate::store) fn last_feed_number(source: &dyn RowReader) -> Result<u32, StoreError> {
    let last = source
        .table(META)?
        .read(LAST_FEED_KEY, "the last feed's number")?;
    Ok(last.unwrap_or_default())
}

/// One feed.
pub(in crate::store) fn record(
    source: &dyn RowReader,
    feed: FeedNo,
) -> Result<FeedRecord, StoreError> {
    let read = || {
        let feeds = source.table(FEEDS)?;
        let stored = feeds
            .get(&feed_key(feed))?
            .ok_or(StoreError::UnknownFeed(feed))?;
        read_record(feed, stored.value())
    };
    match read() {
        Err(StoreError::Damaged(what)) => Err(match name_of(source, feed) {
            Ok(Some(name)) => StoreError::DamagedFeed { feed: name, what },
            _ => StoreError::Damaged(what),
        }),
        read => read,
    }
}

/// The name under which a feed is registered, whatever its record holds.
pub(in crate::store) fn name_of(
    source: &dyn RowReader,
    feed: FeedNo,
) -> Result<Option<String>, StoreError> {
    let key = feed_key(feed);
    for row in source.table(FEED_NAMES)?.range(..) {
        let (name, no) = row?;
        if no.value() == key.as_slice() {
            return Ok(Some(name.value().to_owned()));
        }
    }
    Ok(None)
}

/// Refuses a feed that is not there, without reading it.
pub(in crate::store) fn known_feed(source: &dyn RowReader, feed: FeedNo) -> Result<(), StoreError> {
    match source.table(FEEDS)?.get(&feed_key(feed))? {
        Some(_) => Ok(()),
        None => Err(StoreError::UnknownFeed(feed)),
    }
}

/// The feeds after a number. One that is damaged is left out, and told with its name: it must not
/// take all others with it.
pub(in crate::store) fn records(
    source: &dyn RowReader,
    after: Option<FeedNo>,
    max: usize,
) -> Result<Vec<FeedRecord>, StoreError> {
    let (records, damaged) = by_feed(&source.table(FEEDS)?, after, max, read_record)?;
    for no in damaged {
        if let Err(error) = record(source, no) {
            tracing::error!(feed.no = %no, "A feed is left out: {error}");
        }
    }
    Ok(records)
}

fn read_record(feed: FeedNo, bytes: &[u8]) -> Result<FeedRecord, StoreError> {
    let record: FeedRecord = decode(&format!("feed {feed}"), bytes)?;
    if record.no != feed || record.items.live > record.items.total {
        return Err(damaged(format!("feed {feed} does not agree with itself")));
    }
    Ok(record)
}

/// The poll state of a feed.
pub(in crate::store) fn poll(
    source: &dyn RowReader,
    feed: FeedNo,
) -> Result<Option<PollState>, StoreError> {
    source.table(POLLS)?.read(&feed_key(feed), "a poll state")
}

/// The keys of the staged pages of a feed.
pub(in crate::store) fn staged_keys(
    source: &dyn RowReader,
    feed: FeedNo,
) -> Result<Vec<PageKey>, StoreError> {
    let staging = source.table(STAGING)?;
    let rows = staging.rows(&feed_key(feed));
    rows.map(|row| Ok(*row?.0.value())).collect()
}

/// The rows after a feed of a table with a row a feed; and the feeds between whose rows are
/// damaged.
pub(super) fn by_feed<T>(
    table: &Rows<'_, FeedKey>,
    after: Option<FeedNo>,
    max: usize,
    read: impl Fn(FeedNo, &[u8]) -> Result<T, StoreError>,
) -> Result<(Vec<T>, Vec<FeedNo>), StoreError> {
    let (mut sound, mut damaged) = (Vec::new(), Vec::new());
    for row in table.unchecked_after(&[], after.map(feed_key)) {
        let (key, value) = row?;
        let feed = feed_of(key.value());
        match value.and_then(|value| read(feed, value.value())) {
            Ok(row) => sound.push(row),
            Err(StoreError::Damaged(_)) => damaged.push(feed),
            Err(error) => return Err(error),
        }
        if sound.len() == max {
            break;
        }
    }
    Ok((sound, damaged))
}

/// The ids of the items behind keys.
pub(in crate::store) fn ids(
    source: &dyn RowReader,
    feed: FeedNo,
    keys: &[KeyHash],
) -> Result<Vec<(KeyHash, ItemId)>, StoreError> {
    source.name(|| {
        let keys: Vec<_> = keys.iter().map(|key| hash_key(feed, *key)).collect();
        vec![FEEDS.named(&feed_key(feed)), KEYS.named_all(&keys)]
    })?;
    record(source, feed)?;
    let bound = source.table(KEYS)?;
    let mut ids = Vec::new();
    for key in keys {
        if let Some(id) = bound.get(&hash_key(feed, *key))? {
            ids.push((*key, item_id_of(id.value())?));
        }
    }
    Ok(ids)
}

/// The tombstones' evidence of one item.
pub(in crate::store) fn evidence(
    source: &dyn RowReader,
    feed: FeedNo,
    id: ItemId,
) -> Result<Vec<(Stamp, Evidence)>, StoreError> {
    let evidence = source.table(EVIDENCE)?;
    let rows = evidence.rows(&id_key(feed, id)).map(|row| {
        let (key, value) = row?;
        let evidence = decode("the evidence of a tombstone", value.value())?;
        Ok((stamp_of(key.value()), evidence))
    });
    rows.collect()
}

/// The last observations of a feed, oldest first.
pub(in crate::store) fn observations(
    source: &dyn RowReader,
    feed: FeedNo,
) -> Result<Vec<(u64, ObservationRecord)>, StoreError> {
    let observations = source.table(OBSERVATIONS)?;
    let rows = observations.rows(&feed_key(feed)).map(|row| {
        let (key, value) = row?;
        Ok((
            seq_of(key.value()),
            decode("an observation", value.value())?,
        ))
    });
    rows.collect()
}

/// A feed, its window and the items behind keys, all of one revision.
pub(in crate::store) fn snapshot(
    source: &dyn RowReader,
    feed: FeedNo,
    keys: &[KeyHash],
) -> Result<Snapshot, StoreError> {
    source.name(|| {
        let key = feed_key(feed);
        let keys: Vec<_> = keys.iter().map(|key| hash_key(feed, *key)).collect();
        let ids = KEYS
            .named_all(&keys)
            .via(IDS.of_engine(), &key, RowPart::Value);
        vec![
            FEEDS.named(&key),
            WINDOWS.named(&key),
            ids.via(ITEMS.of_engine(), &key, RowPart::Value),
        ]
    })?;
    let record = record(source, feed)?;
    let window = source.table(WINDOWS)?.read(&feed_key(feed), "a window")?;
    let bound = source.table(KEYS)?;
    let held = Items::of(source, feed)?;
    let mut items = HashMap::new();
    let mut read = HashMap::new();
    for key in keys {
        let Some(id) = bound.get(&hash_key(feed, *key))? else {
            continue;
        };
        let id = item_id_of(id.value())?;
        // Several keys of one entry lead to one item, which is read once.
        let item = match read.entry(id) {
            Entry::Occupied(item) => Arc::clone(item.get()),
            Entry::Vacant(place) => {
                let item = held
                    .item(id)?
                    .ok_or_else(|| damaged(format!("item {id} has only a key")))?;
                Arc::clone(place.insert(item))
            }
        };
        items.insert(*key, item);
    }
    Ok(Snapshot {
        record,
        window: window.unwrap_or_default(),
        items,
    })
}

/// The items that have one of these witnesses, each once.
pub(in crate::store) fn witnessed(
    source: &dyn RowReader,
    feed: FeedNo,
    witnesses: &[KeyHash],
) -> Result<Witnessed, StoreError> {
    let key = feed_key(feed);
    source.name(|| {
        let keys: Vec<_> = witnesses.iter().map(|key| hash_key(feed, *key)).collect();
        vec![FEEDS.named(&key), WITNESSES.named_all(&keys)]
    })?;
    let rev = record(source, feed)?.rev;
    let table = source.table(WITNESSES)?;
    let held = Items::of(source, feed)?;
    let (mut met, mut found, mut items) = (HashSet::new(), Vec::new(), Vec::new());
    for witness in witnesses {
        if let Some(ids) = table.get(&hash_key(feed, *witness))? {
            let ids = witnessed_ids(ids.value()).into_iter();
            found.extend(ids.filter(|id| met.insert(*id)));
        }
    }
    source.name(|| {
        let ids: Vec<_> = found.iter().map(|id| id_key(feed, *id)).collect();
        let ids = IDS.named_all(&ids);
        vec![ids.via(ITEMS.of_engine(), &key, RowPart::Value)]
    })?;
    for id in found {
        items.extend(held.item(id)?);
    }
    Ok(Witnessed { rev, items })
}

/// The items of one feed, by their ids.
pub(in crate::store) struct Items<'s> {
    feed: FeedNo,
    ids: Rows<'s, IdKey>,
    items: Rows<'s, StampKey>,
}

impl<'s> Items<'s> {
    /// Those of this feed.
    pub(in crate::store) fn of(
        source: &'s dyn RowReader,
        feed: FeedNo,
    ) -> Result<Self, StoreError> {
        Ok(Items {
            feed,
            ids: source.table(IDS)?,
            items: source.table(ITEMS)?,
        })
    }

    /// One of them.
    pub(in crate::store) fn item(&self, id: ItemId) -> Result<Option<Arc<Item>>, StoreError> {
        let Some(t) = self.ids.get(&id_key(self.feed, id))? else {
            return Ok(None);
        };
        let t = stamp_of(t.value());
        if let Some(stored) = self.items.get(&stamp_key(self.feed, t))? {
            let item = decode_item(t, stored.value())?;
            if item.id == id {
                return Ok(Some(Arc::new(item)));
            }
        }
        Err(damaged(format!("item {id} is not at {t}")))
    }
}

impl Held for Items<'_> {
    fn item(&self, id: ItemId) -> Result<Option<Arc<Item>>, StoreError> {
        self.item(id)
    }

    fn id_at(&self, t: Stamp) -> Result<Option<ItemId>, StoreError> {
        let stored = self.items.get(&stamp_key(self.feed, t))?;
        stored
            .map(|stored| Ok(item_header(stored.value())?.id))
            .transpose()
    }

    fn bytes_at(&self, t: Stamp) -> Result<u64, StoreError> {
        let stored = self.items.get(&stamp_key(self.feed, t))?;
        Ok(stored.map_or(0, |stored| plain_bytes(stored.value())))
    }

    fn bytes(&self) -> Result<u64, StoreError> {
        let rows = self.items.rows(&feed_key(self.feed));
        rows.map(|row| Ok(plain_bytes(row?.1.value()))).sum()
    }
}
