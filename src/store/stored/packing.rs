//! Packing of values by zstd, where it makes them shorter; not which values are packed.
//!
//! A packed value is its length unpacked, in four bytes, the highest first; and a frame of zstd
//! (RFC 8878).

use super::damaged;
use crate::store::StoreError;
use std::{cell::RefCell, io};
use zstd::bulk::{Compressor, Decompressor};

/// Bytes below which nothing is packed: it would hardly get shorter.
const PACKED_BYTES_MIN: usize = 256;

/// Part of the bytes that packing has to save.
const SAVED_PART: usize = 16;

/// Level of zstd: the highest at which writing takes no longer than the indexes do.
const LEVEL: i32 = 3;

/// Bytes of an unpacked value at most, so that damage takes no memory for what cannot be.
const UNPACKED_BYTES_MAX: usize = 256 << 20;

/// Bytes of the length.
const LENGTH_BYTES: usize = 4;

thread_local! {
    // Making one takes longer than a value does.
    static PACKER: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static UNPACKER: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Packs a value; `None` when that would save nothing.
pub(super) fn packed(value: &[u8]) -> Option<Vec<u8>> {
    if value.len() < PACKED_BYTES_MIN || value.len() > UNPACKED_BYTES_MAX {
        return None;
    }
    let length = u32::try_from(value.len()).ok()?;
    let frame =
        PACKER.with_borrow_mut(|packer| made(packer, || Compressor::new(LEVEL))?.compress(value));
    let frame = frame.ok()?;
    let bytes = LENGTH_BYTES + frame.len();
    if bytes > value.len() - value.len() / SAVED_PART {
        return None;
    }
    Some([&length.to_be_bytes()[..], &frame].concat())
}

/// Bytes that a packed value has when it is unpacked; `None` for one that is cut short.
pub(super) fn unpacked_bytes(stored: &[u8]) -> Option<usize> {
    let length = stored.first_chunk::<LENGTH_BYTES>()?;
    Some(u32::from_be_bytes(*length) as usize)
}

/// Unpacks a value, whole.
pub(super) fn unpacked(stored: &[u8]) -> Result<Vec<u8>, StoreError> {
    let broken = |why: String| damaged(format!("a packed value cannot be unpacked: {why}"));
    let (length, frame) = stored
        .split_first_chunk()
        .ok_or_else(|| broken("it is cut short".into()))?;
    let length = u32::from_be_bytes(*length) as usize;
    if length > UNPACKED_BYTES_MAX {
        return Err(broken(format!("it says that it has {length} bytes")));
    }
    let value = UNPACKER
        .with_borrow_mut(|unpacker| made(unpacker, Decompressor::new)?.decompress(frame, length));
    let value = value.map_err(|error| broken(error.to_string()))?;
    if value.len() != length {
        return Err(broken(format!(
            "it has {} bytes, not {length}",
            value.len()
        )));
    }
    Ok(value)
}

/// The value that is there, or is made now.
fn made<T>(place: &mut Option<T>, make: impl FnOnce() -> io::Result<T>) -> io::Result<&mut T> {
    Ok(match place {
        Some(made) => made,
        none => none.insert(make()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gets_shorter_is_packed_and_comes_back() {
        let prose = "the old house by the river was quiet that morning, and we walked. ".repeat(20);
        let packed = packed(prose.as_bytes()).expect("prose gets shorter");
        assert!(packed.len() < prose.len() / 2);
        assert_eq!(unpacked(&packed).unwrap(), prose.as_bytes());
        assert_eq!(super::packed(&prose.as_bytes()[..200]), None, "too short");
        let noise: Vec<u8> = (0..2000_u32)
            .flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes())
            .collect();
        let kept = super::packed(&noise);
        assert!(kept.is_none_or(|packed| unpacked(&packed).unwrap() == noise));
    }

    #[test]
    fn damage_is_an_error_and_takes_no_memory() {
        let packed = packed(&[7; 4000]).unwrap();
        for bytes in [&[][..], &packed[..3], &packed[..packed.len() - 1]] {
            assert!(matches!(unpacked(bytes), Err(StoreError::Damaged(_))));
        }
        for length in [0_u32, 3999, 4001, u32::MAX] {
            let mut other = packed.clone();
            other[..LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
            assert!(unpacked(&other).is_err(), "{length}");
        }
    }
}
