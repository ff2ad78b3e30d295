//! XML as old software wrote it: cut into tokens, grown into elements, written anew well-formed;
//! nothing of feeds.

mod escape;
mod tag;
pub(crate) mod tokens;
pub(crate) mod tree;
mod unended;
mod write;

pub use escape::{push_attribute, push_text};
pub use write::{can_be_written, write_element, write_nodes};

/// Limit of the nesting of elements; the tags of deeper ones are dropped and their text stays.
/// libxml2 takes documents of 256 levels, of which a feed needs a few for itself.
pub const DEPTH_MAX: usize = 240;

/// Limit of the attributes of one element; the rest are dropped.
pub(crate) const ATTRIBUTES_MAX: usize = 256;

pub use crate::vocabulary::{XHTML, XML};

/// The namespace of links in SVG and MathML.
pub const XLINK: &str = "http://www.w3.org/1999/xlink";

/// Prefix and local name of a qualified name; the prefix is empty when there is none.
pub(crate) fn split(name: &str) -> (&str, &str) {
    // Names are too short for a search to be worth its preparation.
    match name.bytes().position(|b| b == b':') {
        Some(colon) if colon > 0 && colon + 1 < name.len() => (&name[..colon], &name[colon + 1..]),
        _ => ("", name),
    }
}

/// True for a text that may stand as a local name or a prefix (Namespaces in XML 1.0, `NCName`).
pub(crate) fn is_name(text: &str) -> bool {
    // Nearly every name; the rule below is the same and slower.
    let is_plain = |b: &u8| matches!(b, b'a'..=b'z' | b'A'..=b'Z' | b'_');
    if !text.is_empty() && text.as_bytes().iter().all(is_plain) {
        return true;
    }
    let mut characters = text.chars();
    characters.next().is_some_and(starts_name) && characters.all(continues_name)
}

fn starts_name(c: char) -> bool {
    matches!(c, 'A'..='Z' | 'a'..='z' | '_' | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
        | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}' | '\u{200D}' | '\u{2070}'..='\u{218F}'
        | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}'
        | '\u{10000}'..='\u{EFFFF}')
}

fn continues_name(c: char) -> bool {
    starts_name(c)
        || matches!(c, '0'..='9' | '-' | '.' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}' | '\u{2040}')
}

#[cfg(test)]
mod tests;
