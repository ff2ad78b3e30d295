//! Elements out of tokens: namespaces resolved, nesting mended, size bounded; no meaning attached.

use std::borrow::Cow;

use crate::text::entities;
use crate::text::markup::tokens::{Token, Tokens, attributes};
use crate::text::markup::{ATTRIBUTES_MAX, DEPTH_MAX, XHTML, XML, is_name, split};
use crate::text::present;
use crate::vocabulary::conventional;
use crate::{Attribute, Element, Node, Note};

/// Limit of the elements of one tree; as with depth, the text of the rest stays.
pub(crate) const ELEMENTS_MAX: usize = 32_768;

/// The note on an element that is too deep or too large.
pub(crate) fn limit_note() -> Note {
    Note::Other(format!(
        "more than {ELEMENTS_MAX} elements in one, or more than {DEPTH_MAX} levels of them; the tags of the rest are dropped"
    ))
}

/// Limit of the namespace declarations in force at once; the rest are dropped.
const BINDINGS_MAX: usize = 256;

/// Limit of a namespace or a prefix, bytes; longer ones are as good as not declared. Every element
/// of the namespace holds it, so without this limit a short document could take any amount of
/// memory.
const NAMESPACE_BYTES_MAX: usize = 256;

/// The namespace given to a prefix that nobody declared and nobody knows, so that it can be written
/// anew.
const UNDECLARED: &str = "urn:undeclared:";

/// Namespace declarations in force, innermost last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bindings(Vec<(String, String)>);

impl Bindings {
    /// Adds the declarations among some attributes.
    pub(crate) fn declare<'a>(
        &mut self,
        attributes: impl Iterator<Item = (&'a str, impl AsRef<str>)>,
    ) {
        for (prefix, namespace) in
            attributes.filter_map(|(name, value)| declaration(name, value.as_ref()))
        {
            if self.0.len() < BINDINGS_MAX {
                self.0.push((prefix.to_owned(), namespace));
            }
        }
    }

    /// Every namespace in force.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, namespace)| namespace.as_str())
    }

    /// The namespace of the prefix of a start tag, whose own declarations come first. Nothing is
    /// copied: a document may declare much in its root, and something in each tag.
    pub(crate) fn namespace_of_tag(&self, prefix: &str, raw: &str) -> Cow<'_, str> {
        let room = BINDINGS_MAX.saturating_sub(self.0.len());
        let own = raw.contains("xmlns").then(|| {
            attributes(raw)
                .filter_map(|(name, value)| declaration(name, &value))
                .take(room)
        });
        match own
            .into_iter()
            .flatten()
            .filter(|(bound, _)| is_same(bound, prefix))
            .last()
        {
            Some((_, namespace)) => Cow::Owned(namespace),
            None => self.namespace(prefix),
        }
    }

    /// The namespace of an element's prefix.
    pub(crate) fn namespace(&self, prefix: &str) -> Cow<'_, str> {
        if let Some((_, namespace)) = self
            .0
            .iter()
            .rev()
            .find(|(bound, _)| is_same(bound, prefix))
        {
            return Cow::Borrowed(namespace);
        }
        match prefix {
            "" => Cow::Borrowed(""),
            "xml" => Cow::Borrowed(XML),
            _ => conventional(prefix).map_or_else(
                || Cow::Owned(format!("{UNDECLARED}{prefix}")),
                Cow::Borrowed,
            ),
        }
    }
}

/// True for equal prefixes. They are too short for the comparison that is made for long texts.
fn is_same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().eq(b.bytes())
}

/// Prefix and namespace, if the attribute declares one.
fn declaration<'a>(name: &'a str, value: &str) -> Option<(&'a str, String)> {
    let rest = name.strip_prefix("xmlns")?;
    let prefix = if rest.is_empty() {
        rest
    } else {
        rest.strip_prefix(':')?
    };
    let namespace = value.trim();
    (prefix.len().max(namespace.len()) <= NAMESPACE_BYTES_MAX)
        .then(|| (prefix, namespace.to_owned()))
}

/// A grown element.
#[derive(Debug)]
pub(crate) struct Grown {
    pub(crate) element: Element,
    /// Tags did not match, or something was no name.
    pub(crate) mended: bool,
    /// Something was too deep, or there was too much of it; its tags were dropped.
    pub(crate) limited: bool,
}

/// The first element of some markup, given the declarations that it stands in.
pub(crate) fn grow(markup: &str, outside: &Bindings) -> Option<Grown> {
    grown(Grower::new(outside), markup)
}

/// The same, of an element that has nothing but elements to say, as an entry: the texts between
/// those, which are the white space that its writer laid it out with, are left out.
pub(crate) fn grow_record(markup: &str, outside: &Bindings) -> Option<Grown> {
    let mut grower = Grower::new(outside);
    grower.is_record = true;
    grower
        .nodes
        .reserve((markup.len() / NODE_BYTES_USUAL).min(NODES_RESERVED_MAX));
    grown(grower, markup)
}

/// Bytes of markup to a node, by which room for nodes is made before they are known.
const NODE_BYTES_USUAL: usize = 64;

/// For how many nodes room is made then.
const NODES_RESERVED_MAX: usize = 32;

fn grown<'t>(mut grower: Grower<'t, '_>, markup: &'t str) -> Option<Grown> {
    let mut tokens = Tokens::new(markup);
    while let Some((token, _)) = tokens.next() {
        grower.take(token);
        if grower.root.is_some() {
            break;
        }
    }
    grower.mended |= tokens.is_mended() || !grower.open.is_empty();
    grower.close_to(0);
    Some(Grown {
        element: grower.root?,
        mended: grower.mended,
        limited: grower.limited,
    })
}

struct Grower<'t, 'b> {
    outside: &'b Bindings,
    /// Declarations of the elements that are open, innermost last.
    inside: Vec<(&'t str, String)>,
    open: Vec<Open<'t>>,
    /// The children so far of all elements that are open, in document order: each element gets a
    /// vector of just the size when it is closed.
    nodes: Vec<Node>,
    root: Option<Element>,
    /// The texts that stand directly in the root are left out.
    is_record: bool,
    elements: usize,
    /// The names in start tags that were dropped beyond a limit and whose end tags are still to
    /// come.
    dropped: Vec<&'t str>,
    mended: bool,
    limited: bool,
}

struct Open<'t> {
    name: &'t str,
    element: Element,
    /// Number of declarations before its own.
    declared: usize,
    /// Index of its first child among the nodes.
    first: usize,
}

impl<'t, 'b> Grower<'t, 'b> {
    fn new(outside: &'b Bindings) -> Self {
        Self {
            outside,
            inside: Vec::new(),
            open: Vec::new(),
            nodes: Vec::new(),
            root: None,
            is_record: false,
            elements: 0,
            dropped: Vec::new(),
            mended: false,
            limited: false,
        }
    }

    fn take(&mut self, token: Token<'t>) {
        match token {
            Token::Start {
                name,
                attributes,
                empty,
            } => self.start(name, attributes, empty),
            Token::End { name } if self.dropped.last().is_some_and(|dropped| *dropped == name) => {
                self.dropped.pop();
            }
            Token::End { name } => match self.open.iter().rposition(|open| open.name == name) {
                Some(place) => {
                    self.mended |= place + 1 != self.open.len();
                    self.dropped.clear();
                    self.close_to(place);
                }
                // `</br>` after `<br>` is what the element was closed for already.
                None => self.mended |= !is_void(name, XHTML),
            },
            Token::Text(text) => self.text(text, entities::unescape_into),
            Token::Literal(text) => self.text(text, String::push_str),
        }
    }

    fn start(&mut self, name: &'t str, raw: &'t str, empty: bool) {
        let (prefix, local) = split(name);
        if self.open.len() >= DEPTH_MAX || self.elements >= ELEMENTS_MAX {
            self.limited = true;
            if !empty && self.dropped.len() < ELEMENTS_MAX {
                self.dropped.push(name);
            }
            return;
        }
        if !is_name(local) || !(prefix.is_empty() || is_name(prefix)) {
            self.mended = true;
            return;
        }
        let declared = self.inside.len();
        if raw.contains("xmlns") {
            self.declare(raw);
        }
        let element = Element {
            ns: self.namespace(prefix),
            prefix: prefix.to_owned(),
            name: local.to_owned(),
            attributes: self.attributes(raw),
            children: Vec::new(),
        };
        self.elements += 1;
        let closed = empty || (prefix.is_empty() && is_void(local, &element.ns));
        self.open.push(Open {
            name,
            element,
            declared,
            first: self.nodes.len(),
        });
        if closed {
            self.close_to(self.open.len() - 1);
        }
    }

    fn declare(&mut self, raw: &'t str) {
        let room = BINDINGS_MAX.saturating_sub(self.outside.0.len() + self.inside.len());
        self.inside.extend(
            attributes(raw)
                .take(ATTRIBUTES_MAX)
                .filter_map(|(name, value)| declaration(name, &value))
                .take(room),
        );
    }

    fn namespace(&self, prefix: &str) -> String {
        match self
            .inside
            .iter()
            .rev()
            .find(|(bound, _)| is_same(bound, prefix))
        {
            Some((_, namespace)) => namespace.clone(),
            None => self.outside.namespace(prefix).into_owned(),
        }
    }

    fn attributes(&self, raw: &str) -> Vec<Attribute> {
        let mut kept: Vec<Attribute> = Vec::new();
        if raw.is_empty() {
            return kept;
        }
        for (name, value) in attributes(raw).take(ATTRIBUTES_MAX) {
            let (prefix, local) = split(name);
            if name == "xmlns"
                || prefix == "xmlns"
                || !is_name(local)
                || !(prefix.is_empty() || is_name(prefix))
            {
                continue;
            }
            let ns = if prefix.is_empty() {
                String::new()
            } else {
                self.namespace(prefix)
            };
            if !kept
                .iter()
                .any(|other| other.name == local && other.ns == ns)
            {
                // Most elements that have any have one.
                if kept.is_empty() {
                    kept.reserve_exact(1);
                }
                kept.push(Attribute {
                    ns,
                    prefix: prefix.to_owned(),
                    name: local.to_owned(),
                    value: value.into_owned(),
                });
            }
        }
        kept
    }

    /// Adds characters to the innermost element, written by `write`.
    fn text(&mut self, text: &str, write: impl Fn(&mut String, &str)) {
        let Some(open) = self.open.last() else { return };
        if self.is_record && self.open.len() == 1 {
            return;
        }
        if let Some(Node::Text(before)) = self.nodes[open.first..].last_mut() {
            write(before, text);
            return;
        }
        let mut characters = String::with_capacity(text.len());
        write(&mut characters, text);
        // A reference may stand for nothing.
        if !characters.is_empty() {
            self.nodes.push(Node::Text(characters));
        }
    }

    /// Closes elements until only so many are open.
    fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth {
            let Some(Open {
                mut element,
                declared,
                first,
                ..
            }) = self.open.pop()
            else {
                return;
            };
            self.inside.truncate(declared);
            element.children = self.nodes.drain(first..).collect();
            if self.open.is_empty() {
                self.root = Some(element);
            } else {
                self.nodes.push(Node::Element(element));
            }
        }
    }
}

/// HTML elements without an end tag. Some of their names mean something else outside XHTML.
pub(crate) fn is_void(name: &str, namespace: &str) -> bool {
    matches!(name, "area" | "br" | "col" | "hr" | "img" | "input" | "wbr")
        || (namespace == XHTML
            && matches!(
                name,
                "base" | "embed" | "link" | "meta" | "param" | "source" | "track"
            ))
}

impl Element {
    /// The value of an attribute without namespace, whatever the case of its name.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let found = self
            .attributes
            .iter()
            .find(|a| a.ns.is_empty() && a.name.eq_ignore_ascii_case(name));
        found.map(|attribute| attribute.value.as_str())
    }

    /// The same, trimmed; `None` where it is blank.
    pub(crate) fn filled(&self, name: &str) -> Option<String> {
        self.attribute(name).and_then(present)
    }

    /// The value of an attribute of a namespace.
    pub fn attribute_ns(&self, ns: &str, name: &str) -> Option<&str> {
        let found = self
            .attributes
            .iter()
            .find(|attribute| attribute.ns == ns && attribute.name == name);
        found.map(|attribute| attribute.value.as_str())
    }

    /// The child elements.
    pub fn elements(&self) -> impl Iterator<Item = &Self> {
        self.children.iter().filter_map(|node| match node {
            Node::Element(element) => Some(element),
            Node::Text(_) => None,
        })
    }

    /// The child elements, owned.
    pub(crate) fn into_elements(self) -> impl Iterator<Item = Self> {
        self.children.into_iter().filter_map(|node| match node {
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

    /// The same, trimmed; `None` where it is blank.
    pub(crate) fn words(&self) -> Option<String> {
        present(&self.characters())
    }

    /// The words of the first child of this name, in whatever case.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let mut children = self.elements();
        children
            .find(|child| child.name.eq_ignore_ascii_case(name))?
            .words()
    }

    /// All character data below, without a copy when it stands in one piece.
    pub(crate) fn characters(&self) -> Cow<'_, str> {
        match &self.children[..] {
            [] => Cow::Borrowed(""),
            [Node::Text(text)] => Cow::Borrowed(text),
            _ => Cow::Owned(self.text()),
        }
    }

    /// The same, of an element that is not needed any more.
    pub(crate) fn into_characters(mut self) -> String {
        match self.children.as_mut_slice() {
            [Node::Text(text)] => std::mem::take(text),
            _ => self.text(),
        }
    }

    fn gather(&self, text: &mut String) {
        for node in &self.children {
            match node {
                Node::Text(characters) => text.push_str(characters),
                Node::Element(element) => element.gather(text),
            }
        }
    }

    /// Number of elements of the tree, this one included.
    pub(crate) fn size(&self) -> usize {
        1 + self.elements().map(Self::size).sum::<usize>()
    }
}
