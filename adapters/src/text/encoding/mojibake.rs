//! Texts that were encoded twice: UTF-8 that somebody took for windows-1252 and made UTF-8 of.
//! Repaired only when certain.

use encoding_rs::{Encoding, WINDOWS_1252};

/// From this weight on, sequences that all look as if they were encoded twice are no accident; as
/// elsewhere, a sequence weighs as much as it has bytes behind its first.
const WEIGHT_CERTAIN: usize = 4;

/// The text as it was before it was encoded a second time. `None` unless every single character
/// that is no ASCII is part of such a sequence: where one is right as it stands, the others may be
/// meant as they are, too. The first `ascii` bytes are known to be ASCII.
pub(super) fn repair(text: &str, ascii: usize) -> Option<String> {
    let bytes = text.as_bytes();
    let first = ascii + Encoding::ascii_valid_up_to(&bytes[ascii..]);
    // Nearly every document is told by its first character.
    let mut characters = text[first..].chars();
    let lead = byte_of(characters.next()?)?;
    let next = byte_of(characters.next()?)?;
    if !(0xC2..0xF5).contains(&lead) || !(0x80..0xC0).contains(&next) {
        return None;
    }
    let mut once = Vec::with_capacity(bytes.len());
    once.extend_from_slice(&bytes[..first]);
    for c in text[first..].chars() {
        once.push(byte_of(c)?);
    }
    let weight = once
        .iter()
        .filter(|byte| (0x80..0xC0).contains(*byte))
        .count();
    (weight >= WEIGHT_CERTAIN)
        .then(|| String::from_utf8(once).ok())
        .flatten()
}

/// The byte that a character is in windows-1252, or in Latin-1 where that has none.
fn byte_of(c: char) -> Option<u8> {
    if let Ok(byte) = u8::try_from(u32::from(c)) {
        return Some(byte);
    }
    let mut buffer = [0; 4];
    let (encoded, _, unmappable) = WINDOWS_1252.encode(c.encode_utf8(&mut buffer));
    match &*encoded {
        [byte] if !unmappable => Some(*byte),
        _ => None,
    }
}
