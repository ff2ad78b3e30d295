//! Items that are damaged: which one of a feed it is, and what is left of it when it is to be
//! removed; not how damage is noticed.

use super::{
    rows::{self, Items},
    tables::{
        CREATED, IDS, ITEMS, IdKey, PUBLISHED, PublishedKey, StampKey, TableEdit as _, TableSource,
        id_key, item_id_of, published_key, stamp_key, stamp_of, stamp_value,
    },
    writer::Writing,
};
use crate::{
    feed::{
        item::{Content, Item, ItemDigests, ItemId, uuid_iri},
        moment::Moment,
        reconcile::Change,
        record::FeedNo,
        stamp::Stamp,
    },
    store::{
        Commit, StoreError,
        stored::item::{decode_item, encode_item},
    },
};
use everfeed_adapters::Entry;
use std::sync::Arc;

/// Items of a feed that are looked through for the one that is damaged.
const SEARCHED_ITEMS_MAX: usize = 200_000;

/// The answer of a read; damage of an item is told with the item, and what removes it.
pub(super) fn named<T>(
    source: &impl TableSource,
    feed: FeedNo,
    read: Result<T, StoreError>,
) -> Result<T, StoreError> {
    let Err(StoreError::Damaged(what)) = read else {
        return read;
    };
    // What else is damaged cannot be told by an item.
    match damaged_item(source, feed) {
        Ok(Some((feed, id))) => Err(StoreError::DamagedItem { feed, id, what }),
        _ => Err(StoreError::Damaged(what)),
    }
}

/// The name of a feed, and the first of its items that cannot be read.
fn damaged_item(
    source: &impl TableSource,
    feed: FeedNo,
) -> Result<Option<(String, ItemId)>, StoreError> {
    let name = rows::record(source, feed)?.name;
    let held = Items::of(source, feed)?;
    let (first, last) = (
        id_key(feed, ItemId([0; 10])),
        id_key(feed, ItemId([u8::MAX; 10])),
    );
    for row in source
        .table(IDS)?
        .range::<&IdKey>(&first..=&last)?
        .take(SEARCHED_ITEMS_MAX)
    {
        let id = item_id_of(&row?.0.value()[first.len() - 10..])?;
        if !matches!(held.item(id), Ok(Some(_))) {
            return Ok(Some((name, id)));
        }
    }
    Ok(None)
}

/// Puts what is left of damaged items in their places, when a commit removes them for good: it
/// needs no more of them than their names.
pub(super) fn mend_removed(writing: &mut Writing<'_>, commit: &Commit) -> Result<(), StoreError> {
    let removed = commit.changes.iter().filter_map(|change| match change {
        Change::Delete(delete) if delete.reason == crate::feed::item::Reason::Forgotten => {
            Some(delete.id)
        }
        _ => None,
    });
    removed
        .into_iter()
        .try_for_each(|id| mend(writing, commit.basis.feed, id))
}

fn mend(writing: &mut Writing<'_>, feed: FeedNo, id: ItemId) -> Result<(), StoreError> {
    let source = writing.look();
    if !matches!(
        Items::of(source, feed)?.item(id),
        Err(StoreError::Damaged(_))
    ) {
        return Ok(());
    }
    let Some(t) = source
        .table(IDS)?
        .get(&id_key(feed, id))?
        .map(|t| stamp_of(t.value()))
    else {
        return Ok(());
    };
    let found = source.table(ITEMS)?.get_unchecked(&stamp_key(feed, t))?;
    let found = found
        .and_then(|bytes| decode_item(t, &bytes).ok())
        .filter(|item| item.id == id);
    let created = created_at(source, feed, t)?;
    let item = Item {
        created: created.unwrap_or(t),
        ..found.unwrap_or_else(|| nameless(id, t))
    };
    let listed = listed_at(source, feed, t)?;
    let tx = writing.change();
    let mut published = tx.edit(PUBLISHED)?;
    for key in listed {
        published.remove(&key)?;
    }
    published.insert(
        &published_key(feed, item.listed(), item.created),
        &stamp_value(t),
    )?;
    tx.edit(ITEMS)?
        .insert(&stamp_key(feed, t), &encode_item(&item)?)?;
    tx.edit(CREATED)?
        .insert(&stamp_key(feed, item.created), &stamp_value(t))?;
    Ok(())
}

/// The first T of the item that stands at a T now.
fn created_at(
    source: &impl TableSource,
    feed: FeedNo,
    t: Stamp,
) -> Result<Option<Stamp>, StoreError> {
    let (first, last) = (stamp_key(feed, Stamp::ZERO), stamp_key(feed, Stamp::MAX));
    for row in source.table(CREATED)?.range::<&StampKey>(&first..=&last)? {
        let Ok((key, held)) = row else { continue };
        if stamp_of(held.value()) == t {
            return Ok(Some(stamp_of(key.value())));
        }
    }
    Ok(None)
}

/// The rows by date of publication of the item that stands at a T now.
fn listed_at(
    source: &impl TableSource,
    feed: FeedNo,
    t: Stamp,
) -> Result<Vec<PublishedKey>, StoreError> {
    let (first, last) = (
        published_key(feed, Moment::MIN, Stamp::ZERO),
        published_key(feed, Moment::MAX, Stamp::MAX),
    );
    let mut found = Vec::new();
    for row in source
        .table(PUBLISHED)?
        .range::<&PublishedKey>(&first..=&last)?
    {
        let Ok((key, held)) = row else { continue };
        if stamp_of(held.value()) == t {
            found.push(*key.value());
        }
    }
    Ok(found)
}

/// An item of which nothing but our id is left.
fn nameless(id: ItemId, t: Stamp) -> Item {
    Item {
        id,
        iri: uuid_iri("damaged", &id.to_string()),
        modified: t,
        created: t,
        revived: None,
        published_us: None,
        content: Content::Live(Arc::new(Entry::default())),
        tombstone_count: 0,
        digests: ItemDigests::default(),
        publisher_id: None,
    }
}
