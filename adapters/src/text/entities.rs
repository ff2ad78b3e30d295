//! Character references: what `&name;` and `&#n;` stand for; what a document type declares is
//! `doctype`'s.

use std::borrow::Cow;

use htmlize::{ENTITIES, ENTITY_MAX_LENGTH};

use super::is_legal;

/// The character that a reference stands for, given the text between `&` and `;`. Names are those
/// of HTML 5, XML's among them; numbers 128 to 159 are windows-1252, which is what their writers
/// meant. `None`: unknown, it stays text.
pub fn resolve(reference: &str) -> Option<Resolved> {
    if let Some(number) = reference.strip_prefix('#') {
        return numeric(number);
    }
    let character = match reference {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        // The two that HTML 5 gave other characters, long after these feeds were written.
        "lang" => '\u{2329}',
        "rang" => '\u{232A}',
        _ => return named(reference),
    };
    Some(Resolved::Character(character))
}

fn named(name: &str) -> Option<Resolved> {
    // The table's keys are whole references.
    let mut key = [0; ENTITY_MAX_LENGTH];
    let length = name.len() + 2;
    let whole = key.get_mut(..length)?;
    whole[0] = b'&';
    whole[1..length - 1].copy_from_slice(name.as_bytes());
    whole[length - 1] = b';';
    let text = std::str::from_utf8(ENTITIES.get(&*whole)?).ok()?;
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) => Some(Resolved::Character(character)),
        _ => Some(Resolved::Characters(text)),
    }
}

/// Replacement of a known reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// This character.
    Character(char),
    /// These two, as a few names of mathematics do.
    Characters(&'static str),
    /// Nothing: XML cannot hold the character (LEGACY A-15).
    Nothing,
}

fn numeric(number: &str) -> Option<Resolved> {
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) if hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
            u32::from_str_radix(hex, 16).ok()?
        }
        None if number.bytes().all(|b| b.is_ascii_digit()) => number.parse().ok()?,
        _ => return None,
    };
    let character = match code {
        128..=159 => WINDOWS_1252[code as usize - 128],
        code => char::from_u32(code).unwrap_or('\0'),
    };
    Some(if is_legal(character) {
        Resolved::Character(character)
    } else {
        Resolved::Nothing
    })
}

/// Windows-1252, 128 to 159; the five unassigned stay the controls that they are (WHATWG).
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8D}', 'Ž',
    '\u{8F}', //
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9D}', 'ž', 'Ÿ',
];

/// The longest reference that is looked at, in bytes between `&` and `;`: the longest name has 31,
/// and `&#x10FFFF;` may have some zeros.
const REFERENCE_BYTES_MAX: usize = 32;

/// The text with its references replaced; what is no reference stays as it is.
pub fn unescape(text: &str) -> Cow<'_, str> {
    if memchr::memchr(b'&', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    unescape_into(&mut out, text);
    Cow::Owned(out)
}

/// Writes the text with its references replaced.
pub(crate) fn unescape_into(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = ampersand(rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        match found(after) {
            Some((resolved, length)) => {
                match resolved {
                    Resolved::Character(c) => out.push(c),
                    Resolved::Characters(text) => out.push_str(text),
                    Resolved::Nothing => {}
                }
                rest = &after[length..];
            }
            None => {
                out.push('&');
                rest = after;
            }
        }
    }
    out.push_str(rest);
}

/// Position of the next ampersand. In escaped HTML it is so near that a search is not worth its
/// preparation.
fn ampersand(bytes: &[u8]) -> Option<usize> {
    const NEAR_BYTES: usize = 16;
    let near = &bytes[..bytes.len().min(NEAR_BYTES)];
    let found = near.iter().position(|b| *b == b'&');
    found.or_else(|| memchr::memchr(b'&', &bytes[near.len()..]).map(|at| near.len() + at))
}

/// The reference at the start of the text that follows an ampersand, and its length with the
/// semicolon.
fn found(after: &str) -> Option<(Resolved, usize)> {
    // These are nearly all that there is in escaped HTML.
    let usual = match after.as_bytes() {
        [b'l', b't', b';', ..] => Some(('<', 3)),
        [b'g', b't', b';', ..] => Some(('>', 3)),
        [b'a', b'm', b'p', b';', ..] => Some(('&', 4)),
        [b'q', b'u', b'o', b't', b';', ..] => Some(('"', 5)),
        _ => None,
    };
    if let Some((character, length)) = usual {
        return Some((Resolved::Character(character), length));
    }
    let near = &after.as_bytes()[..after.len().min(REFERENCE_BYTES_MAX + 1)];
    let end = memchr::memchr(b';', near)?;
    resolve(after.get(..end)?).map(|resolved| (resolved, end + 1))
}

/// True when the text holds at least one reference that means something.
pub fn holds_reference(text: &str) -> bool {
    memchr::memchr_iter(b'&', text.as_bytes()).any(|at| found(&text[at + 1..]).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        assert_eq!(unescape(text), expect);
    }

    #[test]
    fn every_name_of_html_is_known() {
        let names = ENTITIES.keys().map(|key| std::str::from_utf8(key).unwrap());
        let names: Vec<_> = names.filter(|name| name.ends_with(';')).collect();
        assert_eq!(names.len(), 2125);
        assert!(
            names
                .iter()
                .all(|name| unescape(name) != *name || *name == "&")
        );
        check(
            "&nbsp;&alpha;&Alpha;&thetasym;&euro;&apos;&quot;&hellip;",
            "\u{A0}αΑϑ€'\"…",
        );
        check("&lang;&rang;&langle;", "\u{2329}\u{232A}\u{27E8}");
        check(
            "&CounterClockwiseContourIntegral;&NotEqualTilde;&fjlig;",
            "∳≂̸fj",
        );
    }

    #[test]
    fn numbers_from_128_to_159_are_windows_1252() {
        check("&#146;&#x92;&#8217;&#X2019;", "’’’’");
        check("&#128;&#159;&#129;", "€Ÿ\u{81}");
    }

    #[test]
    fn unknown_references_stay_text() {
        check(
            "AT&T; &bogus; & &; &#; &#x; &#12z; &#-1; &ampx;",
            "AT&T; &bogus; & &; &#; &#x; &#12z; &#-1; &ampx;",
        );
        check("&amp;amp;", "&amp;");
    }

    #[test]
    fn references_to_illegal_characters_vanish() {
        check("a&#8;b&#0;c&#xFFFF;d&#xD800;e&#1114112;f", "abcdef");
    }

    #[test]
    fn a_flood_of_ampersands_is_linear_and_kept() {
        let flood = "&".repeat(100_000);
        check(&flood, &flood);
    }
}
