//! Items that are damaged: which one of a feed it is, and what is left of it when it is to be
//! removed; not how damage is noticed.

use super::{
    Writing, counted,
    open_table::{TableEdit as _, TableSource as _},
    reads::{self, Items},
    tables::{
        CREATED, IDS, ITEMS, PUBLISHED, PublishedKey, feed_key, id_key, item_id_of, published_key,
        stamp_key, stamp_of, stamp_value,
    },
};
use crate::{
    feed::{
        item::{Content, Item, ItemDigests, ItemId, Reason, uuid_iri},
        reconcile::Change,
        record::FeedNo,
        stamp::Stamp,
    },
    store::{
        Commit, StoreError,
        engine::RowReader,
        stored::item::{decode_item, encode_item},
    },
};
use everfeed_adapters::Entry;
use std::sync::Arc;

/// Items of a feed that are looked through for the one that is damaged.
// Limit: damage of an item behind them is told without its name.
const SEARCHED_ITEMS_MAX: usize = 200_000;

/// The answer of a read; damage of an item is told with the item, and what removes it.
pub(in crate::store) fn named<T>(
    source: &dyn RowReader,
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
    source: &dyn RowReader,
    feed: FeedNo,
) -> Result<Option<(String, ItemId)>, StoreError> {
    let name = reads::record(source, feed)?.name;
    let held = Items::of(source, feed)?;
    let ids = source.table(IDS)?;
    for row in ids.rows(&feed_key(feed)).take(SEARCHED_ITEMS_MAX) {
        let id = item_id_of(&row?.0.value()[4..])?;
        if !matches!(held.item(id), Ok(Some(_))) {
            return Ok(Some((name, id)));
        }
    }
    Ok(None)
}

/// Puts what is left of damaged items in their places, when a commit removes them for good: it
/// needs no more of them than their names.
pub(in crate::store) fn mend_removed(
    writing: &mut Writing<'_>,
    commit: &Commit,
) -> Result<(), StoreError> {
    for change in &commit.changes {
        if let Change::Delete(delete) = change
            && delete.reason == Reason::Forgotten
        {
            mend(writing, commit.basis.feed, delete.id)?;
        }
    }
    Ok(())
}

fn mend(writing: &mut Writing<'_>, feed: FeedNo, id: ItemId) -> Result<(), StoreError> {
    let source = writing.look();
    if !matches!(
        Items::of(source, feed)?.item(id),
        Err(StoreError::Damaged(_))
    ) {
        return Ok(());
    }
    let t = match source.table(IDS)?.get(&id_key(feed, id))? {
        Some(t) => stamp_of(t.value()),
        None => return Ok(()),
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
    counted::forget(tx, feed)?;
    let mut published = tx.edit(PUBLISHED)?;
    for key in listed {
        published.remove(&key)?;
    }
    let value = stamp_value(t);
    published.insert(&published_key(feed, item.listed(), item.created), &value)?;
    let mut items = tx.edit(ITEMS)?;
    items.insert(&stamp_key(feed, t), &encode_item(&item)?)?;
    let mut created = tx.edit(CREATED)?;
    created.insert(&stamp_key(feed, item.created), &value)?;
    Ok(())
}

/// The first T of the item that stands at a T now.
fn created_at(source: &dyn RowReader, feed: FeedNo, t: Stamp) -> Result<Option<Stamp>, StoreError> {
    for row in source.table(CREATED)?.rows(&feed_key(feed)) {
        let Ok((key, held)) = row else { continue };
        if stamp_of(held.value()) == t {
            return Ok(Some(stamp_of(key.value())));
        }
    }
    Ok(None)
}

/// The rows by date of publication of the item that stands at a T now.
fn listed_at(
    source: &dyn RowReader,
    feed: FeedNo,
    t: Stamp,
) -> Result<Vec<PublishedKey>, StoreError> {
    let mut found = Vec::new();
    for row in source.table(PUBLISHED)?.rows(&feed_key(feed)) {
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
