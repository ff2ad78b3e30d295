//! A writer of XML that cannot be ill-formed as far as text goes; names are ours, so it checks none of them.

use std::borrow::Cow;

/// A document that is being written, one element a line, indented: people read feeds with curl.
pub(super) struct Xml {
    out: String,
    depth: usize,
}

/// An attribute of ours. `None` is left out.
pub(super) type Attribute<'a> = (&'static str, Option<&'a str>);

impl Xml {
    /// A document with its declaration.
    pub(super) fn document(capacity_bytes: usize) -> Self {
        let mut out = String::with_capacity(capacity_bytes);
        out.push_str(r#"<?xml version="1.0" encoding="UTF-8"?>"#);
        Self { out, depth: 0 }
    }

    /// A page of HTML, written so that it would pass as XML.
    pub(super) fn html() -> Self {
        Self { out: "<!DOCTYPE html>".into(), depth: 0 }
    }

    /// Opens an element that holds elements.
    pub(super) fn open(&mut self, name: &str, attributes: &[Attribute<'_>]) {
        self.tag(name, attributes);
        self.out.push('>');
        self.depth += 1;
    }

    /// Closes what `open` opened.
    pub(super) fn close(&mut self, name: &str) {
        self.depth -= 1;
        self.line();
        self.end(name);
    }

    /// An element without content.
    pub(super) fn empty(&mut self, name: &str, attributes: &[Attribute<'_>]) {
        self.tag(name, attributes);
        self.out.push_str("/>");
    }

    /// An element that holds text.
    pub(super) fn leaf(&mut self, name: &str, attributes: &[Attribute<'_>], text: &str) {
        self.holding(name, attributes, |out| push_text(out, text));
    }

    /// An element whose inside is written by `inside`, which must leave it well-formed.
    pub(super) fn holding(
        &mut self,
        name: &str,
        attributes: &[Attribute<'_>],
        inside: impl FnOnce(&mut String),
    ) {
        self.tag(name, attributes);
        self.out.push('>');
        inside(&mut self.out);
        self.end(name);
    }

    /// Something on a line of its own that leaves the document well-formed, or nothing at all.
    pub(super) fn aside(&mut self, inside: impl FnOnce(&mut String)) {
        let before = self.out.len();
        self.line();
        let start = self.out.len();
        inside(&mut self.out);
        if self.out.len() == start {
            self.out.truncate(before);
        }
    }

    /// The bytes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.out.push('\n');
        self.out.into_bytes()
    }

    fn tag(&mut self, name: &str, attributes: &[Attribute<'_>]) {
        self.line();
        self.out.push('<');
        self.out.push_str(name);
        for (name, value) in attributes {
            if let Some(value) = value {
                push_attribute(&mut self.out, name, value);
            }
        }
    }

    fn end(&mut self, name: &str) {
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    fn line(&mut self) {
        const INDENT: &str = "\n                ";
        self.out.push_str(&INDENT[..(1 + 2 * self.depth).min(INDENT.len())]);
    }
}

/// ` name="value"`, escaped.
pub(super) fn push_attribute(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    push_escaped(out, value, true);
    out.push('"');
}

/// Character data, escaped, without what XML 1.0 cannot hold (A-15).
pub(super) fn push_text(out: &mut String, text: &str) {
    push_escaped(out, text, false);
}

/// The bytes that may have to be replaced. Most are none of them, and one look into a table passes over those four times
/// as fast as the comparisons that tell the others apart.
static SUSPECTS: [bool; 256] = {
    let mut suspects = [false; 256];
    let mut control = 0;
    while control < 0x20 {
        suspects[control] = true;
        control += 1;
    }
    suspects[b'&' as usize] = true;
    suspects[b'<' as usize] = true;
    suspects[b'>' as usize] = true;
    suspects[b'"' as usize] = true;
    suspects[0xEF] = true;
    suspects
};

/// White space that a parser would normalise away is written as a character reference, so that texts read back.
fn push_escaped(out: &mut String, text: &str, in_attribute: bool) {
    let bytes = text.as_bytes();
    let mut written = 0;
    for (at, byte) in bytes.iter().enumerate().filter(|(_, byte)| SUSPECTS[usize::from(**byte)]) {
        let (replacement, skipped) = match byte {
            b'&' => ("&amp;", 1),
            b'<' => ("&lt;", 1),
            b'>' => ("&gt;", 1),
            b'"' if in_attribute => ("&quot;", 1),
            b'\t' if in_attribute => ("&#9;", 1),
            b'\n' if in_attribute => ("&#10;", 1),
            b'\r' => ("&#13;", 1),
            b'\t' | b'\n' => continue,
            ..0x20 => ("", 1),
            0xEF if is_noncharacter(&bytes[at..]) => ("", 3),
            _ => continue,
        };
        out.push_str(&text[written..at]);
        out.push_str(replacement);
        written = at + skipped;
    }
    out.push_str(&text[written..]);
}

/// U+FFFE and U+FFFF: the only scalar values past U+001F that XML 1.0 cannot hold.
fn is_noncharacter(bytes: &[u8]) -> bool {
    matches!(bytes, [0xEF, 0xBF, 0xBE | 0xBF, ..])
}

/// An IRI as it may stand in a document: trimmed, white space inside escaped, no illegal characters (A-8).
/// `None` when nothing is left.
pub(super) fn iri(text: &str) -> Option<Cow<'_, str>> {
    let text = text.trim();
    let barred = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}');
    if text.is_empty() {
        return None;
    }
    if !text.contains(barred) {
        return Some(Cow::Borrowed(text));
    }
    let kept = text.chars().filter(|c| c.is_whitespace() || !barred(*c));
    let escaped: String =
        kept.map(|c| if c.is_whitespace() { "%20".into() } else { c.to_string() }).collect();
    (!escaped.is_empty()).then_some(Cow::Owned(escaped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_attributes_are_escaped_and_cleaned() {
        let check = |text, in_text: &str, in_attribute: &str| {
            let mut out = String::new();
            push_text(&mut out, text);
            assert_eq!(out, in_text);
            out.clear();
            push_attribute(&mut out, "a", text);
            assert_eq!(out, format!(" a=\"{in_attribute}\""));
        };
        check("a<b>&\"c'", "a&lt;b&gt;&amp;\"c'", "a&lt;b&gt;&amp;&quot;c'");
        check("a\tb\nc\rd", "a\tb\nc&#13;d", "a&#9;b&#10;c&#13;d");
        // A-15.
        check("\0a\u{1F}b\u{FFFE}c\u{FFFF}d\u{FFFD}", "abcd\u{FFFD}", "abcd\u{FFFD}");
        check("ï¿½ \u{FEFF}", "ï¿½ \u{FEFF}", "ï¿½ \u{FEFF}");
    }

    #[test]
    fn every_byte_that_is_ever_replaced_is_suspected() {
        for c in (0..=0xFFFF).filter_map(char::from_u32) {
            let mut out = String::new();
            push_attribute(&mut out, "a", &c.to_string());
            let is_kept = out == format!(" a=\"{c}\"");
            let is_legal = !matches!(c, '\0'..='\u{1F}' | '"' | '&' | '<' | '>' | '\u{FFFE}' | '\u{FFFF}');
            assert_eq!(is_kept, is_legal, "{c:?}");
        }
    }

    #[test]
    fn an_iri_holds_no_white_space() {
        assert_eq!(iri(" http://x/a b\nc\u{1}").as_deref(), Some("http://x/a%20b%20c"));
        assert_eq!(iri("http://x/").as_deref(), Some("http://x/"));
        assert_eq!(iri(" \n"), None);
        assert_eq!(iri("\u{FFFF}"), None);
    }
}
