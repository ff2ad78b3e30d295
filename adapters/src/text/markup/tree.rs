//! Elements out of tokens: namespaces resolved, nesting mended, size bounded; no meaning attached.

use crate::text::entities::{self, Resolved};
use crate::text::markup::tokens::{Token, Tokens, attributes};
use crate::text::markup::{ATTRIBUTES_MAX, DEPTH_MAX, XHTML, XML, is_name, split};
use crate::vocabulary::conventional;
use crate::{Attribute, Element, Node};

/// How many elements one tree may have; as with depth, the text of the rest stays.
pub(crate) const ELEMENTS_MAX: usize = 65_536;

/// How many namespace declarations may be in force at once; the rest are dropped.
const BINDINGS_MAX: usize = 256;

/// The namespace given to a prefix that nobody declared and nobody knows, so that it can be written anew.
const UNDECLARED: &str = "urn:undeclared:";

/// Namespace declarations in force, innermost last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bindings(Vec<(String, String)>);

impl Bindings {
    /// Adds the declarations among some attributes.
    pub(crate) fn declare<'a>(&mut self, attributes: impl Iterator<Item = (&'a str, &'a str)>) {
        for (name, value) in attributes {
            let prefix = match name.strip_prefix("xmlns") {
                Some("") => "",
                Some(rest) => match rest.strip_prefix(':') {
                    Some(prefix) => prefix,
                    None => continue,
                },
                None => continue,
            };
            if self.0.len() < BINDINGS_MAX {
                self.0.push((prefix.to_owned(), value.trim().to_owned()));
            }
        }
    }

    /// Every namespace in force.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, namespace)| namespace.as_str())
    }

    /// The namespace of an element's prefix.
    pub(crate) fn namespace(&self, prefix: &str) -> String {
        if let Some((_, namespace)) = self.0.iter().rev().find(|(bound, _)| bound == prefix) {
            return namespace.clone();
        }
        match prefix {
            "" => String::new(),
            "xml" => XML.to_owned(),
            _ => conventional(prefix).map_or_else(|| format!("{UNDECLARED}{prefix}"), str::to_owned),
        }
    }
}

/// A grown element.
#[derive(Debug)]
pub(crate) struct Grown {
    pub(crate) element: Element,
    /// Tags did not match, or something was too deep, too many or no name.
    pub(crate) mended: bool,
}

/// The first element of some markup, given the declarations that it stood in.
pub(crate) fn grow(markup: &str, bindings: &mut Bindings) -> Option<Grown> {
    let mut grower = Grower::new(bindings);
    let mut tokens = Tokens::new(markup);
    while let Some((token, _)) = tokens.next() {
        grower.take(token);
        if grower.root.is_some() {
            break;
        }
    }
    grower.mended |= tokens.is_mended() || !grower.open.is_empty();
    grower.close_to(0);
    Some(Grown { element: grower.root?, mended: grower.mended })
}

struct Grower<'t, 'b> {
    /// As they were handed in once every element is closed again.
    bindings: &'b mut Bindings,
    open: Vec<Open<'t>>,
    root: Option<Element>,
    elements: usize,
    mended: bool,
}

struct Open<'t> {
    name: &'t str,
    element: Element,
    /// How many bindings were in force outside.
    outside: usize,
}

impl<'t, 'b> Grower<'t, 'b> {
    fn new(bindings: &'b mut Bindings) -> Self {
        Self { bindings, open: Vec::new(), root: None, elements: 0, mended: false }
    }

    fn take(&mut self, token: Token<'t>) {
        match token {
            Token::Start { name, attributes, empty } => self.start(name, attributes, empty),
            Token::End { name } => match self.open.iter().rposition(|open| open.name == name) {
                Some(place) => {
                    self.mended |= place + 1 != self.open.len();
                    self.close_to(place);
                }
                // `</br>` after `<br>` is what the element was closed for already.
                None => self.mended |= !is_void(name, XHTML),
            },
            Token::Text(text) | Token::Literal(text) => self.text(text),
            Token::Reference(name) => match entities::resolve(name) {
                Some(Resolved::Character(c)) => self.text(c.encode_utf8(&mut [0; 4])),
                Some(Resolved::Nothing) => {}
                None => {
                    self.text("&");
                    self.text(name);
                    self.text(";");
                }
            },
        }
    }

    fn start(&mut self, name: &'t str, raw: &'t str, empty: bool) {
        let (prefix, local) = split(name);
        let full = self.open.len() >= DEPTH_MAX || self.elements >= ELEMENTS_MAX;
        if full || !is_name(local) || !(prefix.is_empty() || is_name(prefix)) {
            self.mended = true;
            return;
        }
        let outside = self.bindings.0.len();
        let found: Vec<_> = attributes(raw).take(ATTRIBUTES_MAX).collect();
        self.bindings.declare(found.iter().map(|(name, value)| (*name, value.as_str())));
        let element = Element {
            ns: self.bindings.namespace(prefix),
            prefix: prefix.to_owned(),
            name: local.to_owned(),
            attributes: self.attributes(found),
            children: Vec::new(),
        };
        self.elements += 1;
        let closed = empty || (prefix.is_empty() && is_void(local, &element.ns));
        self.open.push(Open { name, element, outside });
        if closed {
            self.close_to(self.open.len() - 1);
        }
    }

    fn attributes(&self, found: Vec<(&str, String)>) -> Vec<Attribute> {
        let mut kept: Vec<Attribute> = Vec::new();
        for (name, value) in found {
            let (prefix, local) = split(name);
            if name == "xmlns"
                || prefix == "xmlns"
                || !is_name(local)
                || !(prefix.is_empty() || is_name(prefix))
            {
                continue;
            }
            let ns = if prefix.is_empty() { String::new() } else { self.bindings.namespace(prefix) };
            if !kept.iter().any(|other| other.ns == ns && other.name == local) {
                kept.push(Attribute { ns, prefix: prefix.to_owned(), name: local.to_owned(), value });
            }
        }
        kept
    }

    fn text(&mut self, text: &str) {
        let Some(open) = self.open.last_mut() else { return };
        match open.element.children.last_mut() {
            Some(Node::Text(before)) => before.push_str(text),
            _ => open.element.children.push(Node::Text(text.to_owned())),
        }
    }

    /// Closes elements until only so many are open.
    fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth {
            let Some(Open { element, outside, .. }) = self.open.pop() else { return };
            self.bindings.0.truncate(outside);
            match self.open.last_mut() {
                Some(parent) => parent.element.children.push(Node::Element(element)),
                None => self.root = Some(element),
            }
        }
    }
}

/// HTML elements without an end tag. Some of their names mean something else outside XHTML.
pub(crate) fn is_void(name: &str, namespace: &str) -> bool {
    matches!(name, "area" | "br" | "col" | "hr" | "img" | "input" | "wbr")
        || (namespace == XHTML
            && matches!(name, "base" | "embed" | "link" | "meta" | "param" | "source" | "track"))
}

impl Element {
    /// The value of an attribute without namespace, whatever the case of its name.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|a| a.ns.is_empty() && a.name.eq_ignore_ascii_case(name));
        found.map(|attribute| attribute.value.as_str())
    }

    /// The value of an attribute of a namespace.
    pub fn attribute_ns(&self, ns: &str, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|attribute| attribute.ns == ns && attribute.name == name);
        found.map(|attribute| attribute.value.as_str())
    }

    /// The child elements.
    pub fn elements(&self) -> impl Iterator<Item = &Self> {
        self.children.iter().filter_map(|node| match node {
            Node::Element(element) => Some(element),
            Node::Text(_) => None,
        })
    }

    /// All character data below, tags left out.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.gather(&mut text);
        text
    }

    fn gather(&self, text: &mut String) {
        for node in &self.children {
            match node {
                Node::Text(characters) => text.push_str(characters),
                Node::Element(element) => element.gather(text),
            }
        }
    }

    /// How many elements the tree has, this one included.
    pub(crate) fn size(&self) -> usize {
        1 + self.elements().map(Self::size).sum::<usize>()
    }
}
