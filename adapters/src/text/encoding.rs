//! Which characters the bytes stand for: byte order mark, HTTP charset, declaration, and what the
//! bytes themselves prove. Not which format they are.

mod mojibake;

use std::borrow::Cow;
use std::cell::LazyCell;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

use super::is_legal;
use crate::Note;

/// A document as text: characters legal in XML, lines ended by line feeds (XML 1.0 sections 2.2 and
/// 2.11).
#[derive(Debug)]
pub struct Decoded<'a> {
    /// The whole document, byte order mark gone; the XML declaration is still there and means
    /// nothing any more.
    pub text: Cow<'a, str>,
    /// The name of the encoding that was used: WHATWG's, or `UTF-32LE` or `UTF-32BE`.
    pub encoding: &'static str,
    /// Set when the label was wrong and something else was used.
    pub note: Option<Note>,
}

/// Length of the part of a document that is searched for an XML declaration, bytes. The standard
/// says 0; blogs print blank lines.
const DECLARATION_BYTES_MAX: usize = 2048;

/// From this many multi-byte sequences on, valid UTF-8 is no accident, whatever the label says.
const SEQUENCES_CERTAIN: usize = 8;

/// Decodes a document, and never fails: byte order mark, then the HTTP charset, then the
/// declaration, each only if the bytes agree, then UTF-8, and for single bytes that are no UTF-8,
/// windows-1252 (PARSING section 4).
///
/// A document that calls itself UTF-8, or says nothing, and holds a few other bytes is mended byte
/// by byte, so that one pasted quotation mark does not turn every accented letter of the feed into
/// an edit. Where such bytes outweigh what is UTF-8 in the whole document, all of it is
/// windows-1252. Controls of C1 are what windows-1252 has in their place, and a text that was
/// certainly encoded twice is decoded twice.
pub fn decode<'a>(bytes: &'a [u8], content_type: Option<&str>) -> Decoded<'a> {
    let Decoded {
        text,
        encoding,
        note,
    } = characters(bytes, content_type);
    let survey = Survey::of(text.as_bytes());
    if encoding == UTF_8.name()
        && let Some(from) = survey.ascii_until
        && let Some(repaired) = mojibake::repair(&text, from)
    {
        let note = Some(Note::Other(
            "its characters were encoded twice; that was undone".to_owned(),
        ));
        let survey = Survey::of(repaired.as_bytes());
        return Decoded {
            text: normalise(repaired.into(), survey),
            encoding,
            note,
        };
    }
    Decoded {
        text: normalise(text, survey),
        encoding,
        note,
    }
}

fn characters<'a>(bytes: &'a [u8], content_type: Option<&str>) -> Decoded<'a> {
    if let Some((wide, rest)) = wide(bytes) {
        return Decoded {
            text: wide.decode(rest),
            encoding: wide.name(),
            note: None,
        };
    }
    let (bytes, labels) = match bytes.strip_prefix(b"\xEF\xBB\xBF") {
        Some(bytes) => (bytes, [None, None]),
        None => (bytes, [content_type.and_then(charset), declared(bytes)]),
    };
    let labels = labels.into_iter().flatten();
    // The same as `str::from_utf8`, and faster.
    let utf8 = UTF_8.decode_without_bom_handling_and_without_replacement(bytes);
    let sequences = || {
        if utf8.is_some() {
            bytes.iter().filter(|&&b| b >= 0xC0).count()
        } else {
            0
        }
    };
    // Looked at only where the document is no UTF-8.
    let weight = LazyCell::new(|| ByteWeight::of(bytes));
    let mut wrong: Option<&'static Encoding> = None;
    for label in labels.filter(|label| *label != UTF_16LE && *label != UTF_16BE) {
        if label == UTF_8 {
            match utf8 {
                Some(text) => return decoded(text, wrong, UTF_8),
                None => wrong = wrong.or(Some(UTF_8)),
            }
            continue;
        }
        let certain = if label.is_single_byte() {
            1
        } else {
            SEQUENCES_CERTAIN
        };
        let is_damaged = || utf8.is_none() && label.is_single_byte() && weight.is_damaged_utf8();
        if sequences() >= certain || is_damaged() {
            wrong = wrong.or(Some(label));
            continue;
        }
        let (text, bad) = label.decode_without_bom_handling(bytes);
        if !bad {
            return decoded(text, wrong, label);
        }
        wrong = wrong.or(Some(label));
    }
    match (utf8, wrong) {
        (Some(text), _) => decoded(text, wrong, UTF_8),
        // A multi-byte label with a few bad bytes is still the best reading there is.
        (None, Some(label)) if label != UTF_8 && !label.is_single_byte() => decoded(
            label.decode_without_bom_handling(bytes).0,
            Some(UTF_8),
            label,
        ),
        (None, _) if weight.is_single_bytes() => decoded(
            WINDOWS_1252.decode_without_bom_handling(bytes).0,
            Some(UTF_8),
            WINDOWS_1252,
        ),
        (None, _) => mend(bytes),
    }
}

/// The bytes of a document that are no ASCII: those that stand alone, as in windows-1252, against
/// those that form UTF-8.
#[derive(Clone, Copy, Debug, Default)]
struct ByteWeight {
    /// Bytes that are part of no sequence.
    lone: usize,
    /// Sequences, each counted as often as it has bytes behind its first: the longer it is, the
    /// less it is chance.
    sequences: usize,
}

impl ByteWeight {
    fn of(bytes: &[u8]) -> Self {
        let mut weight = Self::default();
        for chunk in bytes.utf8_chunks() {
            weight.lone += chunk.invalid().len();
            weight.sequences += chunk
                .valid()
                .bytes()
                .filter(|byte| (0x80..0xC0).contains(byte))
                .count();
        }
        weight
    }

    /// True when the sequences are chance: an "Ã©" among many accented letters is what it looks
    /// like.
    fn is_single_bytes(self) -> bool {
        self.lone > self.sequences
    }

    /// True when the lone bytes are damage in a text that is UTF-8 whatever its label says.
    fn is_damaged_utf8(self) -> bool {
        self.sequences >= SEQUENCES_CERTAIN && self.sequences > 4 * self.lone
    }
}

fn decoded<'a>(
    text: Cow<'a, str>,
    wrong: Option<&'static Encoding>,
    used: &'static Encoding,
) -> Decoded<'a> {
    // ASCII and Latin-1 are read as windows-1252 by everybody; a pure ASCII document is not worth a
    // word.
    let note = wrong
        .filter(|wrong| *wrong != used)
        .map(|_| Note::Encoding(used.name().to_owned()));
    Decoded {
        text,
        encoding: used.name(),
        note,
    }
}

/// UTF-8 where the bytes are UTF-8, windows-1252 where they are not.
fn mend(bytes: &[u8]) -> Decoded<'_> {
    // What is no ASCII may grow to three bytes; to make room at once is cheaper than to make it
    // again and again.
    let others = bytes.iter().filter(|byte| !byte.is_ascii()).count();
    let mut text = String::with_capacity(bytes.len() + 2 * others);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.push_str(&WINDOWS_1252.decode_without_bom_handling(chunk.invalid()).0);
    }
    decoded(Cow::Owned(text), Some(UTF_8), WINDOWS_1252)
}

/// UTF-16 and UTF-32, which a mark or the zero bytes of the first four give away.
#[derive(Clone, Copy)]
enum Wide {
    Utf16(&'static Encoding),
    Utf32 { big: bool },
}

impl Wide {
    fn name(self) -> &'static str {
        match self {
            Self::Utf16(encoding) => encoding.name(),
            Self::Utf32 { big: true } => "UTF-32BE",
            Self::Utf32 { big: false } => "UTF-32LE",
        }
    }

    fn decode(self, bytes: &[u8]) -> Cow<'_, str> {
        match self {
            Self::Utf16(encoding) => encoding.decode_without_bom_handling(bytes).0,
            Self::Utf32 { big } => {
                Cow::Owned(bytes.chunks_exact(4).map(|four| utf32(four, big)).collect())
            }
        }
    }
}

fn utf32(four: &[u8], big: bool) -> char {
    let four = [four[0], four[1], four[2], four[3]];
    let code = if big {
        u32::from_be_bytes(four)
    } else {
        u32::from_le_bytes(four)
    };
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn wide(bytes: &[u8]) -> Option<(Wide, &[u8])> {
    // The marks of UTF-32 begin with those of UTF-16, so they come first.
    let marks: [(&[u8], Wide); 4] = [
        (b"\x00\x00\xFE\xFF", Wide::Utf32 { big: true }),
        (b"\xFF\xFE\x00\x00", Wide::Utf32 { big: false }),
        (b"\xFE\xFF", Wide::Utf16(UTF_16BE)),
        (b"\xFF\xFE", Wide::Utf16(UTF_16LE)),
    ];
    if let Some((mark, wide)) = marks.iter().find(|(mark, _)| bytes.starts_with(mark)) {
        return Some((*wide, &bytes[mark.len()..]));
    }
    let wide = match bytes {
        [0, 0, 0, x, ..] if *x != 0 => Wide::Utf32 { big: true },
        [x, 0, 0, 0, ..] if *x != 0 => Wide::Utf32 { big: false },
        [0, x, 0, y, ..] if *x != 0 && *y != 0 => Wide::Utf16(UTF_16BE),
        [x, 0, y, 0, ..] if *x != 0 && *y != 0 => Wide::Utf16(UTF_16LE),
        _ => return None,
    };
    Some((wide, bytes))
}

/// True for a `Content-Type` that names an encoding.
pub(crate) fn names_encoding(content_type: &str) -> bool {
    charset(content_type).is_some()
}

/// The encoding that a `Content-Type` names.
fn charset(content_type: &str) -> Option<&'static Encoding> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let named = name.trim().eq_ignore_ascii_case("charset");
        named
            .then(|| labelled(value.trim().trim_matches(['"', '\'']).as_bytes()))
            .flatten()
    })
}

/// The encoding that the XML declaration names, wherever near the start it stands.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = &bytes[..bytes.len().min(DECLARATION_BYTES_MAX)];
    let start = memchr::memmem::find(head, b"<?xml")?;
    let end = start + memchr::memchr(b'>', &head[start..])?;
    let declaration = &head[start..end];
    let after = &declaration[memchr::memmem::find(declaration, b"encoding")? + b"encoding".len()..];
    let value = after
        .trim_ascii_start()
        .strip_prefix(b"=")?
        .trim_ascii_start();
    let quote = *value
        .first()
        .filter(|quote| matches!(quote, b'"' | b'\''))?;
    let length = memchr::memchr(quote, &value[1..])?;
    labelled(&value[1..=length])
}

/// The encoding of a label. A few labels stand for no encoding at all but for a warning or for raw
/// bytes (WHATWG Encoding, sections 14.1 and 14.5); a feed under one of these is as good as not
/// labelled.
fn labelled(label: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_label_no_replacement(label).filter(|encoding| *encoding != X_USER_DEFINED)
}

/// One look at all bytes of a text, which decides for nearly every document that no character has
/// to be looked at.
#[derive(Clone, Copy, Debug)]
struct Survey {
    /// True when a control stands in it that is neither a line feed nor a tab.
    holds_controls: bool,
    /// Number of bytes, in whole blocks, before the first block with a byte that is no ASCII;
    /// `None` when there is none.
    ascii_until: Option<usize>,
}

impl Survey {
    fn of(bytes: &[u8]) -> Self {
        let mut survey = Self {
            holds_controls: false,
            ascii_until: None,
        };
        // Whole blocks are looked at without a way out in the middle, so that the processor can
        // look at many bytes at once.
        for (number, block) in bytes.chunks(BLOCK_BYTES).enumerate() {
            let (odd, high) = block.iter().fold((false, 0), |(odd, high), &b| {
                (odd | is_control(b), high | b)
            });
            survey.holds_controls |= odd;
            if high >= 0x80 && survey.ascii_until.is_none() {
                survey.ascii_until = Some(number * BLOCK_BYTES);
            }
        }
        survey
    }
}

/// True for a control below the space that is neither a line feed nor a tab.
fn is_control(b: u8) -> bool {
    b < 0x20 && b != b'\n' && b != b'\t'
}

/// Legal characters and line feeds only.
fn normalise(text: Cow<'_, str>, survey: Survey) -> Cow<'_, str> {
    // U+FFFE and U+FFFF begin with EF BF, controls of C1 with C2.
    let high = survey
        .ascii_until
        .map_or(&[][..], |from| &text.as_bytes()[from..]);
    let is_c1 = |at: usize| high.get(at + 1).is_some_and(|next| *next < 0xA0);
    if !survey.holds_controls
        && memchr::memmem::find(high, b"\xEF\xBF").is_none()
        && !memchr::memchr_iter(0xC2, high).any(is_c1)
    {
        return text;
    }
    let mut normal = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest
        .bytes()
        .position(|b| is_control(b) || b == 0xEF || b == 0xC2)
    {
        normal.push_str(&rest[..at]);
        let before = &text[..text.len() - rest.len() + at];
        let mut characters = rest[at..].chars();
        let first = characters.next();
        rest = characters.as_str();
        match first {
            Some('\r') => {
                rest = rest.strip_prefix('\n').unwrap_or(rest);
                normal.push('\n');
            }
            Some(c @ '\u{80}'..='\u{9F}') => normal.push(of_windows_1252(c)),
            Some(c) if is_legal(c) => normal.push(c),
            Some(c) => {
                // A whole run at once: each of it stands between the same two characters, however
                // long it is.
                let run = rest.find(is_legal).unwrap_or(rest.len());
                let holds_control = c.is_control() || rest[..run].chars().any(char::is_control);
                rest = &rest[run..];
                if holds_control && !normal.ends_with(' ') && parts_words(before, rest) {
                    normal.push(' ');
                }
            }
            None => {}
        }
    }
    normal.push_str(rest);
    Cow::Owned(normal)
}

/// The character that windows-1252 has at the place of a control of C1, which no text means. Five
/// places are empty there.
fn of_windows_1252(control: char) -> char {
    let byte = [u8::try_from(u32::from(control)).unwrap_or(b' ')];
    WINDOWS_1252
        .decode_without_bom_handling(&byte)
        .0
        .chars()
        .next()
        .unwrap_or(control)
}

/// True where forbidden controls stand between two words: some writers meant a space or a line by
/// them. A single letter is no word: a text in which every second character is a control was cut
/// out of something else.
fn parts_words(before: &str, behind: &str) -> bool {
    let is_of_word =
        |c: &char| !c.is_whitespace() && is_legal(*c) && !c.is_control() && !matches!(c, '<' | '>');
    before.chars().rev().take(2).filter(is_of_word).count() == 2
        && behind.chars().take(2).filter(is_of_word).count() == 2
}

/// Length of the part of a document that is looked at at once.
const BLOCK_BYTES: usize = 1024;

#[cfg(test)]
mod tests;
