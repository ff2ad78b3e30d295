//! Items. A header before the value, at fixed places, is read without it: a cursor is checked, a
//! tombstone passed over and an item placed without its content. Version 2 is the value of version 1
//! packed by zstd; what does not get shorter is written in version 1.

use super::{
    StoredKind, append, damaged, packing, read,
    table::{stored_enums, stored_newtypes, stored_structs},
};
use crate::{
    feed::{
        item::{Content, Item, ItemDigests, ItemId, KeyHash, PublisherId, Reason, Witnesses},
        item_cap::escaped_bytes,
        stamp::Stamp,
    },
    store::StoreError,
};
use std::borrow::Cow;

impl StoredKind for Item {
    const NAME: &'static str = "item";
}

stored_newtypes! { ItemId KeyHash }

stored_structs! {
    Item { id, iri, modified, created, revived, published_us, content, tombstone_count, digests, publisher_id }
    PublisherId { text, is_permalink, source, witnesses, link }
    Witnesses { own_id, addresses, title, published, updated, texts, short_text }
    ItemDigests { raw, content, version }
}

stored_enums! {
    Content { 0 Live(entry), 1 Gone { reason, first_missing, last_seen } }
    Reason { 0 Explicit, 1 LeftCompleteFeed, 2 AbsentBracketed, 3 Gone, 4 AbsentArchive, 5 Forgotten, 6 LeftView, 7 LeftGroup }
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

/// The version of a packed value.
const PACKED: u8 = 2;

/// Bytes before a packed value: its weight, as version 1 would have it, the highest first.
const WEIGHT_BYTES: usize = 4;

/// Writes an item.
pub(in crate::store) fn encode_item(item: &Item) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::with_capacity(1024);
    bytes.push(Item::VERSION);
    bytes.extend_from_slice(&item.id.0);
    bytes.extend_from_slice(&item.created.micros().to_be_bytes());
    bytes.push(u8::from(item.is_gone()));
    let mut plain = append(bytes, item)?;
    let Some(packed) = packing::packed(&plain[HEADER_BYTES..]) else {
        // All items of an import are held at once.
        plain.shrink_to_fit();
        return Ok(plain);
    };
    let weight = u32::try_from(escaped_bytes(&plain)).unwrap_or(u32::MAX);
    plain[0] = PACKED;
    let header = &plain[..HEADER_BYTES];
    Ok([header, &weight.to_be_bytes(), &packed].concat())
}

/// The weight and the packed value of an item; `None` for one that is not packed.
fn packed_parts(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let stored = bytes.get(HEADER_BYTES..).filter(|_| bytes[0] == PACKED)?;
    let (weight, packed) = stored.split_first_chunk::<WEIGHT_BYTES>()?;
    Some((u32::from_be_bytes(*weight), packed))
}

/// Bytes of an item as it is stored, but unpacked: quotas do not depend on how well it is packed.
pub(in crate::store) fn plain_bytes(bytes: &[u8]) -> u64 {
    let length = packed_parts(bytes).and_then(|(_, packed)| packing::unpacked_bytes(packed));
    length.map_or(bytes.len(), |length| HEADER_BYTES + length) as u64
}

/// Bytes of an item once it is escaped and unpacked: its weight against the budget of a page.
pub(in crate::store) fn weight_bytes(bytes: &[u8]) -> usize {
    packed_parts(bytes).map_or_else(|| escaped_bytes(bytes), |(weight, _)| weight as usize)
}

/// The value behind the header, unpacked.
fn value(bytes: &[u8]) -> Result<Cow<'_, [u8]>, StoreError> {
    match packed_parts(bytes) {
        Some((_, packed)) => packing::unpacked(packed).map(Cow::Owned),
        None => Ok(Cow::Borrowed(&bytes[HEADER_BYTES..])),
    }
}

/// Reads the header of an item.
pub(in crate::store) fn item_header(bytes: &[u8]) -> Result<ItemHeader, StoreError> {
    let header: &[u8; HEADER_BYTES] = bytes
        .first_chunk()
        .ok_or_else(|| damaged("an item is cut short"))?;
    let (mut id, mut created) = ([0; 10], [0; 8]);
    id.copy_from_slice(&header[1..11]);
    created.copy_from_slice(&header[11..19]);
    let created = Stamp::from_micros(u64::from_be_bytes(created));
    Ok(ItemHeader {
        id: ItemId(id),
        created,
        gone: header[19] != 0,
    })
}

/// Reads an item back and holds it against its header and the T under which it stands.
pub(in crate::store) fn decode_item(t: Stamp, bytes: &[u8]) -> Result<Item, StoreError> {
    let header = item_header(bytes)?;
    let version = if bytes[0] == PACKED {
        Item::VERSION
    } else {
        bytes[0]
    };
    let item: Item = read("an item", version, &value(bytes)?)?;
    let said = ItemHeader {
        id: item.id,
        created: item.created,
        gone: item.is_gone(),
    };
    if said != header || item.modified != t || item.created > t {
        let id = header.id;
        return Err(damaged(format!("item {id} is not what stands at {t}")));
    }
    Ok(item)
}
