//! Stored forms: how the values of each kind are written to a disk and read back, one module a
//! kind; not where they are kept.
//!
//! A value is a version byte and CBOR (RFC 8949). What is stored is no domain type: a table names
//! the fields of each in the order of their numbers, and a struct is an array in that order. The
//! tables take a value apart field by field, so a field that is added to a domain type fails to
//! compile here, and only here, until it is put at the end of its table. Then older values read as
//! if the field had its default, newer ones are written without it while it has, and neither the
//! version byte nor a golden file changes. Anything else (a field that goes or means something
//! else, a variant that is renumbered) needs the next version of its kind and a reader for the one
//! before.
//!
//! Measured on 50 items of 150 bytes to 12 kB, reading took about as long (0 to 6 % more) as
//! versioned structs in postcard that are moved into domain types, and 6 to 20 % longer than
//! postcard straight into them; but postcard knows no fields, so that each new one would be a new
//! version and a copy of its struct. Structs derived for minicbor or prost and moved took another
//! 10 to 15 %.

use super::StoreError;
use crate::feed::{moment::Moment, stamp::Stamp};
use minicbor::{
    Decoder, Encoder, data::Type, decode::Error as ReadError, encode::Error as WriteError,
};
use std::{collections::VecDeque, convert::Infallible, sync::Arc};

mod table;

mod packing;

mod entry;

mod metadata;

pub(super) mod item;

mod feed_record;

mod window;

mod absence;

mod evidence;

mod observation;

mod poll_state;

pub(super) mod pause;

mod walk;

mod subscription;

mod account;

mod site;

mod registry;

mod event;

mod pushed_feed;

mod index_now;

mod opml_list;

mod group;

mod clock;

mod content_mark;

#[cfg(test)]
mod tests;

#[cfg(test)]
mod golden;

pub(super) use registry::RegistryText;

/// A kind of value, with its own version.
pub(super) trait StoredKind: Stored {
    /// Its name, in errors and golden files.
    const NAME: &'static str;
    /// The version that is written, and the only one that is read.
    const VERSION: u8 = 1;
}

/// A value as a part of stored ones.
pub(super) trait Stored: Sized {
    /// Writes it.
    fn put(&self, out: &mut Out) -> Written;

    /// Reads it.
    fn take(input: &mut Decoder<'_>) -> Result<Self, ReadError>;

    /// The value of a field that was not there yet when it was written; `None` for a field that
    /// always was.
    fn missing() -> Option<Self> {
        None
    }

    /// True for a value that needs not be written at the end of a struct, because
    /// [`missing`](Self::missing) gives it.
    fn is_missing(&self) -> bool {
        false
    }

    /// Writes several; bytes have a form of their own.
    fn put_all(values: &[Self], out: &mut Out) -> Written {
        out.array(values.len() as u64)?;
        values.iter().try_for_each(|value| value.put(out))
    }

    /// Reads several.
    fn take_all(input: &mut Decoder<'_>) -> Result<Vec<Self>, ReadError> {
        let count = length(input)?;
        // A count that is damaged must not take memory for what cannot follow.
        let left = input.input().len().saturating_sub(input.position());
        let mut values = Vec::with_capacity(count.min(left));
        for _ in 0..count {
            values.push(Self::take(input)?);
        }
        Ok(values)
    }
}

pub(super) type Out = Encoder<Vec<u8>>;

pub(super) type Written = Result<(), WriteError<Infallible>>;

/// Writes a value of a kind.
pub(super) fn encode<T: StoredKind>(value: &T) -> Result<Vec<u8>, StoreError> {
    append(vec![T::VERSION], value)
}

/// Reads a value back, whole. `what` names it in the error.
pub(super) fn decode<T: StoredKind>(what: &str, bytes: &[u8]) -> Result<T, StoreError> {
    let (version, rest) = bytes
        .split_first()
        .ok_or_else(|| damaged(format!("{what} is empty")))?;
    read(what, *version, rest)
}

/// An error that says what is wrong with what.
pub(super) fn damaged(what: impl Into<String>) -> StoreError {
    StoreError::Damaged(what.into())
}

fn append<T: StoredKind>(bytes: Vec<u8>, value: &T) -> Result<Vec<u8>, StoreError> {
    let mut out = Encoder::new(bytes);
    match value.put(&mut out) {
        Ok(()) => Ok(out.into_writer()),
        Err(error) => Err(StoreError::Failed(format!(
            "cannot write {}: {error}",
            T::NAME
        ))),
    }
}

fn read<T: StoredKind>(what: &str, version: u8, bytes: &[u8]) -> Result<T, StoreError> {
    if version != T::VERSION {
        let how = format!("it has the unknown version {version}");
        return Err(damaged(format!("{what} cannot be read: {how}")));
    }
    let mut input = Decoder::new(bytes);
    let value =
        T::take(&mut input).map_err(|error| damaged(format!("{what} cannot be read: {error}")))?;
    match bytes.len() - input.position() {
        0 => Ok(value),
        left => Err(damaged(format!(
            "{what} is followed by {left} bytes too many"
        ))),
    }
}

fn length(input: &mut Decoder<'_>) -> Result<usize, ReadError> {
    let count = input
        .array()?
        .ok_or_else(|| ReadError::message("it is a list without a length"))?;
    usize::try_from(count).map_err(ReadError::message)
}

/// Numbers, whose default is 0.
macro_rules! stored_numbers {
    ($($kind:ident)*) => {
        $(impl Stored for $kind {
            fn put(&self, out: &mut Out) -> Written {
                out.$kind(*self).map(drop)
            }

            fn take(input: &mut Decoder<'_>) -> Result<Self, ReadError> {
                input.$kind()
            }

            fn missing() -> Option<Self> {
                Some(0)
            }

            fn is_missing(&self) -> bool {
                *self == 0
            }
        })*
    };
}

stored_numbers! { u16 u32 u64 i8 i64 }

impl Stored for u8 {
    fn put(&self, out: &mut Out) -> Written {
        out.u8(*self).map(drop)
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, ReadError> {
        input.u8()
    }

    fn missing() -> Option<Self> {
        Some(0)
    }

    fn is_missing(&self) -> bool {
        *self == 0
    }

    fn put_all(values: &[Self], out: &mut Out) -> Written {
        out.bytes(values).map(drop)
    }

    fn take_all(input: &mut Decoder<'_>) -> Result<Vec<Self>, ReadError> {
        input.bytes().map(<[u8]>::to_vec)
    }
}

impl Stored for bool {
    fn put(&self, out: &mut Out) -> Written {
        out.bool(*self).map(drop)
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, ReadError> {
        input.bool()
    }

    fn missing() -> Option<Self> {
        Some(false)
    }

    fn is_missing(&self) -> bool {
        !*self
    }
}

impl Stored for String {
    fn put(&self, out: &mut Out) -> Written {
        out.str(self).map(drop)
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, ReadError> {
        input.str().map(str::to_owned)
    }
}

impl<const N: usize> Stored for [u8; N] {
    fn put(&self, out: &mut Out) -> Written {
        out.bytes(self).map(drop)
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, ReadError> {
        let bytes = input.bytes()?;
        bytes
            .try_into()
            .map_err(|_| ReadError::message(format!("{} bytes stand where {N} do", bytes.len())))
    }
}

impl Stored for Stamp {
    fn put(&self, out: &mut Out) -> Written {
        out.u64(self.micros()).map(drop)
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, ReadError> {
        input.u64().map(Self::from_micros)
    }

    fn missing() -> Option<Self> {
        Some(Self::ZERO)
    }

    fn is_missing(&self) -> bool {
        *self == Self::ZERO
    }
}

impl<T: Stored> Stored for Option<T> {
    fn put(&self, out: &mut Out) -> Written {
        match self {
            Some(value) => value.put(out),
            None => out.null().map(drop),
        }
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, ReadError> {
        if input.datatype()? == Type::Null {
            input.null()?;
            return Ok(None);
        }
        T::take(input).map(Some)
    }

    fn missing() -> Option<Self> {
        Some(None)
    }

    fn is_missing(&self) -> bool {
        self.is_none()
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn put(&self, out: &mut Out) -> Written {
        T::put_all(self, out)
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, ReadError> {
        T::take_all(input)
    }

    fn missing() -> Option<Self> {
        Some(Self::new())
    }

    fn is_missing(&self) -> bool {
        self.is_empty()
    }
}

impl<T: Stored> Stored for VecDeque<T> {
    fn put(&self, out: &mut Out) -> Written {
        out.array(self.len() as u64)?;
        self.iter().try_for_each(|value| value.put(out))
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, ReadError> {
        let count = length(input)?;
        (0..count).map(|_| T::take(input)).collect()
    }

    fn missing() -> Option<Self> {
        Some(Self::new())
    }

    fn is_missing(&self) -> bool {
        self.is_empty()
    }
}

impl Stored for Moment {
    fn put(&self, out: &mut Out) -> Written {
        out.i64(self.micros()).map(drop)
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, ReadError> {
        input.i64().map(Self::from_micros)
    }
}

impl<T: Stored> Stored for Arc<T> {
    fn put(&self, out: &mut Out) -> Written {
        T::put(self, out)
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, ReadError> {
        T::take(input).map(Self::new)
    }
}

impl<T: Stored> Stored for Box<T> {
    fn put(&self, out: &mut Out) -> Written {
        T::put(self, out)
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, ReadError> {
        T::take(input).map(Self::new)
    }
}

impl<A: Stored, B: Stored> Stored for (A, B) {
    fn put(&self, out: &mut Out) -> Written {
        out.array(2)?;
        self.0.put(out)?;
        self.1.put(out)
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, ReadError> {
        match length(input)? {
            2 => Ok((A::take(input)?, B::take(input)?)),
            other => Err(ReadError::message(format!(
                "{other} values stand where 2 do"
            ))),
        }
    }
}
