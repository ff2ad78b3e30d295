//! Parts that the JSON syntaxes share: how a document becomes bytes, and how a date is spelt; not
//! what they hold.

use crate::{
    feed::{moment::Moment, stamp::Stamp},
    render::document::Document,
};
use serde::{Serialize, Serializer};

/// The bytes of a document.
pub(super) fn bytes(document: &Document<'_>, value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::with_capacity(document.capacity_bytes());
    serde_json::to_writer(&mut out, value)
        .expect("strings and numbers always serialize into memory");
    out
}

/// The bytes of one item.
pub(super) fn item_bytes(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("strings and numbers always serialize into memory")
}

/// RFC 3339.
#[derive(Clone, Copy)]
pub(super) struct Date<T = Stamp>(pub(super) T);

impl<T: Copy + Into<Moment>> Serialize for Date<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.into().rfc3339())
    }
}
