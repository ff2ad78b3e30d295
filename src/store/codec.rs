//! How values are written: a version byte, then postcard; not where they are kept.

use super::StoreError;
use crate::feed::{
    item::{Item, ItemId},
    stamp::Stamp,
};
use serde::{Serialize, de::DeserializeOwned};

/// The version of every value of schema 1. A later form of one kind of value gets a later byte, and a reader for both.
const VERSION: u8 = 1;

/// Writes a value.
pub(super) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, StoreError> {
    append(vec![VERSION], value)
}

/// Reads a value back, whole. `what` names it in the error.
pub(super) fn decode<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, StoreError> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => read(what, rest),
        Some((version, _)) => Err(damaged(what, &format!("has the unknown version {version}"))),
        None => Err(damaged(what, "is empty")),
    }
}

/// What stands before the item itself, at fixed places: a cursor is checked, a tombstone passed over and an item placed
/// without reading its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ItemHeader {
    pub(super) id: ItemId,
    pub(super) created: Stamp,
    pub(super) gone: bool,
}

/// Version, id, created, whether it is gone.
const HEADER_BYTES: usize = 1 + 10 + 8 + 1;

/// Writes an item.
pub(super) fn encode_item(item: &Item) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::with_capacity(1024);
    bytes.push(VERSION);
    bytes.extend_from_slice(&item.id.0);
    bytes.extend_from_slice(&item.created.micros().to_be_bytes());
    bytes.push(u8::from(item.is_gone()));
    append(bytes, item)
}

/// Reads what stands before an item.
pub(super) fn item_header(bytes: &[u8]) -> Result<ItemHeader, StoreError> {
    let what = "an item";
    let header: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or_else(|| damaged(what, "is cut short"))?;
    if header[0] != VERSION {
        return Err(damaged(what, &format!("has the unknown version {}", header[0])));
    }
    let (mut id, mut created) = ([0; 10], [0; 8]);
    id.copy_from_slice(&header[1..11]);
    created.copy_from_slice(&header[11..19]);
    let created = Stamp::from_micros(u64::from_be_bytes(created));
    Ok(ItemHeader { id: ItemId(id), created, gone: header[19] != 0 })
}

/// Reads an item back and holds it against its header and the T under which it stands.
pub(super) fn decode_item(t: Stamp, bytes: &[u8]) -> Result<Item, StoreError> {
    let header = item_header(bytes)?;
    let item: Item = read("an item", &bytes[HEADER_BYTES..])?;
    let said = ItemHeader { id: item.id, created: item.created, gone: item.is_gone() };
    if said != header || item.modified != t || item.created > t {
        return Err(damaged(&format!("item {}", header.id), &format!("is not what stands at {t}")));
    }
    Ok(item)
}

/// An error that names what is wrong with what.
pub(super) fn damaged(what: &str, how: &str) -> StoreError {
    StoreError::Damaged(format!("{what} {how}"))
}

fn append<T: Serialize>(bytes: Vec<u8>, value: &T) -> Result<Vec<u8>, StoreError> {
    postcard::to_extend(value, bytes).map_err(|error| StoreError::Failed(format!("cannot encode: {error}")))
}

fn read<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, StoreError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(damaged(what, &format!("is followed by {} bytes too many", rest.len()))),
        Err(error) => Err(damaged(what, &format!("cannot be read: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::item::{Content, ItemDigests, Reason};

    fn item() -> Item {
        Item {
            id: ItemId([7; 10]),
            iri: "tag:example.org,2005:1".into(),
            modified: Stamp::from_secs(9),
            created: Stamp::from_secs(5),
            revived: None,
            published_us: Some(-3),
            content: Content::Gone { reason: Reason::Explicit, first_missing: None, last_seen: None },
            tombstone_count: 0,
            digests: ItemDigests::default(),
        }
    }

    #[test]
    fn an_item_comes_back_and_its_header_needs_no_decoding() {
        let bytes = encode_item(&item()).unwrap();
        assert_eq!(decode_item(Stamp::from_secs(9), &bytes).unwrap(), item());
        let header = item_header(&bytes[..HEADER_BYTES]).unwrap();
        assert_eq!(header, ItemHeader { id: ItemId([7; 10]), created: Stamp::from_secs(5), gone: true });
    }

    #[test]
    fn what_does_not_fit_its_place_is_damage_and_never_a_panic() {
        let good = encode_item(&item()).unwrap();
        let is_damaged = |t, bytes: &[u8]| matches!(decode_item(t, bytes), Err(StoreError::Damaged(_)));
        assert!(is_damaged(Stamp::from_secs(8), &good), "another T");
        for len in 0..good.len() {
            assert!(is_damaged(Stamp::from_secs(9), &good[..len]), "cut to {len}");
        }
        assert!(is_damaged(Stamp::from_secs(9), &[&good[..], b"x"].concat()), "too long");
        for at in [0, 1, 18, 19] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(is_damaged(Stamp::from_secs(9), &bad), "byte {at} flipped");
        }
        assert!(matches!(decode::<u32>("a number", &[2, 0]), Err(StoreError::Damaged(_))));
        assert!(matches!(decode::<u32>("a number", &[]), Err(StoreError::Damaged(_))));
    }
}
