//! Items. What stands before the value, at fixed places, is read without it: a cursor is checked, a tombstone passed over
//! and an item placed without its content.

use super::{
    Kind, append, damaged, read,
    table::{stored_enums, stored_newtypes, stored_structs},
};
use crate::{
    feed::{
        item::{Content, Item, ItemDigests, ItemId, KeyHash, PublisherId, Reason},
        stamp::Stamp,
    },
    store::StoreError,
};

impl Kind for Item {
    const NAME: &'static str = "item";
}

stored_newtypes! { ItemId KeyHash }

stored_structs! {
    Item { id, iri, modified, created, revived, published_us, content, tombstone_count, digests, publisher_id }
    PublisherId { text, is_permalink }
    ItemDigests { raw, content, version }
}

stored_enums! {
    Content { 0 Live(entry), 1 Gone { reason, first_missing, last_seen } }
    Reason { 0 Explicit, 1 LeftCompleteFeed, 2 AbsentBracketed, 3 Gone, 4 AbsentArchive }
}

/// The header of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct ItemHeader {
    pub(in crate::store) id: ItemId,
    pub(in crate::store) created: Stamp,
    pub(in crate::store) gone: bool,
}

/// Version, id, created, true for a tombstone.
const HEADER_BYTES: usize = 1 + 10 + 8 + 1;

/// Writes an item.
pub(in crate::store) fn encode_item(item: &Item) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::with_capacity(1024);
    bytes.push(Item::VERSION);
    bytes.extend_from_slice(&item.id.0);
    bytes.extend_from_slice(&item.created.micros().to_be_bytes());
    bytes.push(u8::from(item.is_gone()));
    append(bytes, item)
}

/// Reads the header of an item.
pub(in crate::store) fn item_header(bytes: &[u8]) -> Result<ItemHeader, StoreError> {
    let header: &[u8; HEADER_BYTES] =
        bytes.first_chunk().ok_or_else(|| damaged("an item", "is cut short"))?;
    let (mut id, mut created) = ([0; 10], [0; 8]);
    id.copy_from_slice(&header[1..11]);
    created.copy_from_slice(&header[11..19]);
    let created = Stamp::from_micros(u64::from_be_bytes(created));
    Ok(ItemHeader { id: ItemId(id), created, gone: header[19] != 0 })
}

/// Reads an item back and holds it against its header and the T under which it stands.
pub(in crate::store) fn decode_item(t: Stamp, bytes: &[u8]) -> Result<Item, StoreError> {
    let header = item_header(bytes)?;
    let item: Item = read("an item", bytes[0], &bytes[HEADER_BYTES..])?;
    let said = ItemHeader { id: item.id, created: item.created, gone: item.is_gone() };
    if said != header || item.modified != t || item.created > t {
        return Err(damaged(&format!("item {}", header.id), &format!("is not what stands at {t}")));
    }
    Ok(item)
}
