//! A writer of XML that cannot be ill-formed as far as text goes; names are ours, so it checks none
//! of them.

pub(super) use everfeed_adapters::text::markup::{push_attribute, push_text};
use std::borrow::Cow;

/// A document that is being written, one element a line, indented: people read feeds with curl.
pub(super) struct Xml {
    out: String,
    depth: usize,
    /// The depth of the outermost elements.
    top: usize,
    /// Prefixes and namespaces that the outermost elements declare, beside their attributes.
    declared: &'static [Declared],
}

/// A prefix, which may be empty, and its namespace.
pub(super) type Declared = (&'static str, &'static str);

/// An attribute of ours. `None` is left out.
pub(super) type Attribute<'a> = (&'static str, Option<&'a str>);

impl Xml {
    /// A document with its declaration.
    pub(super) fn document(capacity_bytes: usize) -> Self {
        let mut xml = Self::fragment(0, &[]);
        xml.out.reserve(capacity_bytes);
        xml.out
            .push_str(r#"<?xml version="1.0" encoding="UTF-8"?>"#);
        xml
    }

    /// Likewise, whose root declares these namespaces.
    pub(super) fn document_declaring(capacity_bytes: usize, declared: &'static [Declared]) -> Self {
        Self {
            declared,
            ..Self::document(capacity_bytes)
        }
    }

    /// Elements as they stand so deep in a document, without what stands around them. Each of the
    /// outermost declares these namespaces.
    pub(super) fn fragment(depth: usize, declared: &'static [Declared]) -> Self {
        Self {
            out: String::new(),
            depth,
            top: depth,
            declared,
        }
    }

    /// A page of HTML, written so that it would pass as XML.
    pub(super) fn html() -> Self {
        let mut page = Self::fragment(0, &[]);
        page.out.push_str("<!DOCTYPE html>");
        page
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

    /// An element that holds text, or none where there is no text.
    pub(super) fn leaf_some(&mut self, name: &str, text: Option<impl AsRef<str>>) {
        if let Some(text) = text {
            self.leaf(name, &[], text.as_ref());
        }
    }

    /// An element that holds elements of one name, each with a text; nothing where there is none.
    pub(super) fn leaves(
        &mut self,
        name: &str,
        inner: &str,
        texts: impl Iterator<Item = impl AsRef<str>>,
    ) {
        let mut texts = texts.peekable();
        if texts.peek().is_some() {
            self.open(name, &[]);
            texts.for_each(|text| self.leaf(inner, &[], text.as_ref()));
            self.close(name);
        }
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

    /// The bytes of a fragment, from its first tag to its last.
    pub(super) fn finish_fragment(self) -> Vec<u8> {
        self.out.trim_start().as_bytes().to_vec()
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
        if self.depth == self.top {
            for (prefix, namespace) in self.declared {
                let colon = if prefix.is_empty() { "" } else { ":" };
                push_attribute(&mut self.out, &format!("xmlns{colon}{prefix}"), namespace);
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
        self.out
            .push_str(&INDENT[..(1 + 2 * self.depth).min(INDENT.len())]);
    }
}

/// An IRI as it may stand in a document: trimmed, white space inside escaped, no illegal characters
/// (A-8). `None` when nothing is left.
pub(super) fn iri(text: &str) -> Option<Cow<'_, str>> {
    let text = text.trim();
    if !is_visible(text) {
        return None;
    }
    if !text.contains(|c: char| c.is_whitespace() || is_barred(c)) {
        return Some(Cow::Borrowed(text));
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_whitespace() {
            escaped.push_str("%20");
        } else if !is_barred(c) {
            escaped.push(c);
        }
    }
    Some(Cow::Owned(escaped))
}

/// True for a trimmed text of which something is left without illegal characters.
pub(super) fn is_visible(text: &str) -> bool {
    text.chars().any(|c| c.is_whitespace() || !is_barred(c))
}

fn is_barred(c: char) -> bool {
    c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iri_holds_no_white_space() {
        assert_eq!(
            iri(" http://x/a b\nc\u{1}").as_deref(),
            Some("http://x/a%20b%20c")
        );
        assert_eq!(iri("http://x/").as_deref(), Some("http://x/"));
        assert_eq!(iri(" \n"), None);
        assert_eq!(iri("\u{FFFF}"), None);
    }
}
