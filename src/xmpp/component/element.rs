//! Elements of XML as stanzas are made of: read from them, built, and written; not how a stream
//! cuts them out of its bytes.

use bytes::Bytes;
use everfeed_adapters::text::markup::{push_attribute, push_text};

/// An element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Element {
    namespace: String,
    name: String,
    attributes: Vec<(String, String)>,
    nodes: Vec<ElementNode>,
}

/// A part of what an element holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ElementNode {
    /// An element.
    Element(Element),
    /// Text, not escaped.
    Text(String),
    /// Elements that are written already, and declare every namespace that they need.
    Written(Bytes),
}

impl Element {
    /// An empty element.
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            attributes: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// The same with an attribute.
    #[must_use]
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.set(name, value);
        self
    }

    /// The same with an attribute, where there is a value for it.
    #[must_use]
    pub(super) fn with_some(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// The same with an element in it.
    #[must_use]
    pub(super) fn holding(mut self, child: Self) -> Self {
        self.push(ElementNode::Element(child));
        self
    }

    /// The same with elements in it.
    #[must_use]
    pub(super) fn holding_all(mut self, children: impl IntoIterator<Item = Self>) -> Self {
        self.nodes
            .extend(children.into_iter().map(ElementNode::Element));
        self
    }

    /// The same with text in it.
    #[must_use]
    pub(super) fn saying(mut self, text: &str) -> Self {
        self.push(ElementNode::Text(text.to_owned()));
        self
    }

    /// The same with what is written already in it.
    #[must_use]
    pub(super) fn holding_written(mut self, written: Bytes) -> Self {
        self.push(ElementNode::Written(written));
        self
    }

    /// Sets an attribute.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.attributes.push((name.to_owned(), value.to_owned()));
    }

    /// Adds a part.
    pub(super) fn push(&mut self, node: ElementNode) {
        self.nodes.push(node);
    }

    /// True for the element of this name and namespace.
    pub(super) fn is(&self, namespace: &str, name: &str) -> bool {
        self.name == name && self.namespace == namespace
    }

    /// The name, without its namespace.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The namespace.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The value of an attribute without a namespace.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let mut attributes = self.attributes.iter();
        Some(attributes.find(|(known, _)| known == name)?.1.as_str())
    }

    /// The elements in it.
    pub(super) fn elements(&self) -> impl Iterator<Item = &Self> {
        self.nodes.iter().filter_map(|node| match node {
            ElementNode::Element(element) => Some(element),
            ElementNode::Text(_) | ElementNode::Written(_) => None,
        })
    }

    /// The first element in it of this name and namespace.
    pub(super) fn child(&self, namespace: &str, name: &str) -> Option<&Self> {
        self.elements().find(|child| child.is(namespace, name))
    }

    /// The text in it, without that of the elements in it.
    pub(super) fn text(&self) -> String {
        let texts = self.nodes.iter().filter_map(|node| match node {
            ElementNode::Text(text) => Some(text.as_str()),
            ElementNode::Element(_) | ElementNode::Written(_) => None,
        });
        texts.collect()
    }

    /// Its bytes where elements without a prefix have this namespace.
    pub(super) fn written(&self, within: &str) -> Bytes {
        let mut out = String::new();
        self.write(&mut out, within);
        out.into()
    }

    /// Writes it. Only what we build is written, and that is a few levels deep.
    fn write(&self, out: &mut String, within: &str) {
        out.push('<');
        out.push_str(&self.name);
        if self.namespace != within {
            push_attribute(out, "xmlns", &self.namespace);
        }
        for (name, value) in &self.attributes {
            push_attribute(out, name, value);
        }
        if self.nodes.is_empty() {
            out.push_str("/>");
            return;
        }
        out.push('>');
        for node in &self.nodes {
            match node {
                ElementNode::Element(element) => element.write(out, &self.namespace),
                ElementNode::Text(text) => push_text(out, text),
                ElementNode::Written(written) => out.push_str(&String::from_utf8_lossy(written)),
            }
        }
        out.push_str("</");
        out.push_str(&self.name);
        out.push('>');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_written_with_the_namespaces_that_differ_and_nothing_ill_formed() {
        let inner = Element::new("b", "in")
            .with("at", "\"<&\u{1}")
            .saying("1 < 2 & \u{0}");
        let element = Element::new("a", "out")
            .with_some("none", None)
            .holding(inner)
            .holding_written(Bytes::from_static(b"<x xmlns=\"c\"/>"))
            .holding(Element::new("a", "same"));
        let written = element.written("a");
        let written = std::str::from_utf8(&written).unwrap();
        assert!(
            written.starts_with("<out><in xmlns=\"b\" at=\"&quot;&lt;&amp;"),
            "{written}"
        );
        assert!(
            written.ends_with("</in><x xmlns=\"c\"/><same/></out>"),
            "{written}"
        );
        assert!(!written.contains(['\u{0}', '\u{1}']), "{written}");
        assert_eq!(element.child("b", "in").unwrap().text(), "1 < 2 & \u{0}");
    }
}
