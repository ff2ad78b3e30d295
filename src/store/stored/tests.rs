//! Values as they are written and read back, and what is damage; values of every kind in golden
//! files.

use super::{item::*, *};
use crate::feed::item::{Content, Item, ItemDigests, ItemId, Reason};

fn tombstone() -> Item {
    Item {
        id: ItemId([7; 10]),
        iri: "tag:example.org,2005:1".into(),
        modified: Stamp::from_secs(9),
        created: Stamp::from_secs(5),
        revived: None,
        published_us: Some(-3),
        content: Content::Gone {
            reason: Reason::Explicit,
            first_missing: None,
            last_seen: None,
        },
        tombstone_count: 0,
        publisher_id: None,
        digests: ItemDigests::default(),
    }
}

#[test]
fn an_item_comes_back_and_its_header_needs_no_decoding() {
    let bytes = encode_item(&tombstone()).unwrap();
    assert_eq!(
        decode_item(Stamp::from_secs(9), &bytes).unwrap(),
        tombstone()
    );
    let header = item_header(&bytes[..20]).unwrap();
    assert_eq!(
        header,
        ItemHeader {
            id: ItemId([7; 10]),
            created: Stamp::from_secs(5),
            gone: true
        }
    );
}

#[test]
fn what_does_not_fit_its_place_is_damage_and_never_a_panic() {
    let good = encode_item(&tombstone()).unwrap();
    let is_damaged = |t, bytes: &[u8]| matches!(decode_item(t, bytes), Err(StoreError::Damaged(_)));
    assert!(is_damaged(Stamp::from_secs(8), &good), "another T");
    for len in 0..good.len() {
        assert!(
            is_damaged(Stamp::from_secs(9), &good[..len]),
            "cut to {len}"
        );
    }
    assert!(
        is_damaged(Stamp::from_secs(9), &[&good[..], b"x"].concat()),
        "too long"
    );
    for at in [0, 1, 18, 19] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(is_damaged(Stamp::from_secs(9), &bad), "byte {at} flipped");
    }
    assert!(matches!(
        decode::<u32>("a number", &[2, 0]),
        Err(StoreError::Damaged(_))
    ));
    assert!(matches!(
        decode::<u32>("a number", &[]),
        Err(StoreError::Damaged(_))
    ));
    // A list that says to be longer than memory.
    let endless = [1, 0x9b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    assert!(matches!(
        decode::<Keys>("keys", &endless),
        Err(StoreError::Damaged(_))
    ));
}

/// A kind of one field, and the same with another one that was added later.
#[derive(Debug, PartialEq)]
struct Keys {
    keys: Vec<u32>,
}

#[derive(Debug, PartialEq)]
struct DatedKeys {
    keys: Vec<u32>,
    at: Option<u64>,
}

table::stored_structs! {
    Keys { keys }
    DatedKeys { keys, at }
}

impl StoredKind for Keys {
    const NAME: &'static str = "keys";
}

impl StoredKind for DatedKeys {
    const NAME: &'static str = "keys";
}

#[test]
fn a_field_that_was_added_changes_no_byte_until_it_is_used() {
    let old = encode(&Keys { keys: vec![1, 2] }).unwrap();
    let read: DatedKeys = decode("keys", &old).unwrap();
    assert_eq!(
        read,
        DatedKeys {
            keys: vec![1, 2],
            at: None
        }
    );
    assert_eq!(encode(&read).unwrap(), old);
    let new = encode(&DatedKeys {
        keys: vec![],
        at: Some(3),
    })
    .unwrap();
    let refused = decode::<Keys>("keys", &new);
    assert!(
        matches!(&refused, Err(StoreError::Damaged(text)) if text.contains("newer")),
        "{refused:?}"
    );
}
