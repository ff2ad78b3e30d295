//! Elements written anew: always well-formed, namespaces declared where they are needed, nothing
//! spliced. Whatever the names and namespaces are, every parser takes what is written here.

use std::borrow::Cow;

use super::tree::is_void;
use super::{ATTRIBUTES_MAX, DEPTH_MAX, XHTML, XML, push_attribute, push_text};
use crate::{Attribute, Element, Node};

/// Limit of the namespace declarations of ours in force at once. An attribute that needs one more
/// is left out, an element loses its tags: every look-up goes through all of them.
const DECLARATIONS_MAX: usize = 256;

/// The namespace of namespace declarations, which nobody may declare.
const XMLNS: &str = "http://www.w3.org/2000/xmlns/";

/// Writes an element and all that is below it. `declared` holds the (prefix, namespace) pairs that
/// are in force where the element will stand, outermost first; everything else that it needs it
/// declares itself.
///
/// An element that some parser would refuse (see [`can_be_written`]) loses its tags, and what is
/// inside stays.
///
/// ```
/// use everfeed_adapters::{Element, Node, text::markup::write_element};
///
/// let element = Element {
///     ns: "http://example.org/".into(),
///     prefix: "x".into(),
///     name: "mood".into(),
///     children: vec![Node::Text("<calm>".into())],
///     ..Element::default()
/// };
/// let mut out = String::new();
/// write_element(&mut out, &element, &[("", "http://www.w3.org/2005/Atom")]);
/// assert_eq!(out, r#"<x:mood xmlns:x="http://example.org/">&lt;calm&gt;</x:mood>"#);
/// ```
pub fn write_element(out: &mut String, element: &Element, declared: &[(&str, &str)]) {
    Writer::new(out, declared).element(element, 0);
}

/// Writes what stands inside an element: the same as [`write_element`] for each node.
pub fn write_nodes(out: &mut String, nodes: &[Node], declared: &[(&str, &str)]) {
    Writer::new(out, declared).nodes(nodes, 0);
}

/// True when an element's own tags can be written so that every parser takes them: a name in ASCII,
/// and a namespace that is an URI reference and may be bound to a prefix.
pub fn can_be_written(element: &Element) -> bool {
    is_name(&element.name) && is_namespace(&element.ns) && element.ns != XML
}

struct Writer<'w> {
    out: &'w mut String,
    /// The (prefix, namespace) pairs in force, innermost last. The empty prefix is the default
    /// namespace.
    scope: Vec<(Cow<'w, str>, Cow<'w, str>)>,
    /// Number of those that are the caller's.
    outside: usize,
    /// The number of the next prefix that is made up. It never goes back, so that looking for a
    /// free one is cheap whatever prefixes a document has taken.
    spare: usize,
}

impl<'w> Writer<'w> {
    fn new(out: &'w mut String, declared: &[(&'w str, &'w str)]) -> Self {
        let scope: Vec<_> = declared
            .iter()
            .map(|(prefix, ns)| ((*prefix).into(), (*ns).into()))
            .collect();
        Self {
            out,
            outside: scope.len(),
            scope,
            spare: 1,
        }
    }

    fn nodes(&mut self, nodes: &'w [Node], depth: usize) {
        for node in nodes {
            match node {
                Node::Text(text) => push_text(self.out, text),
                Node::Element(element) => self.element(element, depth),
            }
        }
    }

    /// Nothing that was read here is deeper than the limit, which keeps the stack from ending.
    fn element(&mut self, element: &'w Element, depth: usize) {
        if depth >= DEPTH_MAX {
            return;
        }
        let outside = self.scope.len();
        let prefix = Some(element)
            .filter(|element| can_be_written(element))
            .and_then(|e| self.prefix_of(e));
        let Some(prefix) = prefix else {
            return self.nodes(&element.children, depth + 1);
        };
        let attributes = self.attributes(&element.attributes);
        let name = qualified(&prefix, &element.name);
        self.out.push('<');
        self.out.push_str(&name);
        for (prefix, ns) in &self.scope[outside..] {
            let name = if prefix.is_empty() {
                "xmlns".into()
            } else {
                format!("xmlns:{prefix}")
            };
            push_attribute(self.out, &name, ns);
        }
        for (name, value) in attributes {
            push_attribute(self.out, &name, value);
        }
        // HTML takes `<p/>` for a start tag, and XHTML is shown as HTML by most that show it.
        let needs_end = element.ns == XHTML && !is_void(&element.name, XHTML);
        if element.children.is_empty() && !needs_end {
            self.out.push_str("/>");
        } else {
            self.out.push('>');
            self.nodes(&element.children, depth + 1);
            self.out.push_str("</");
            self.out.push_str(&name);
            self.out.push('>');
        }
        self.scope.truncate(outside);
    }

    /// The prefix of an element; declares its namespace when nobody has.
    fn prefix_of(&mut self, element: &'w Element) -> Option<Cow<'w, str>> {
        if element.ns.is_empty() {
            let is_default = self.namespace("").is_none_or(str::is_empty);
            return if is_default {
                Some("".into())
            } else {
                self.declare("".into(), "")
            };
        }
        // The source's own prefix first, so that a default namespace stays one.
        if self.namespace(&element.prefix) == Some(&element.ns) {
            return Some(element.prefix.as_str().into());
        }
        if let Some(prefix) = self.bound(&element.ns, true) {
            return Some(prefix);
        }
        // Only the default namespace may be declared a second time: hiding a prefix that is in use
        // would be legal, but not every reader of feeds knows that.
        if element.prefix.is_empty() {
            return self.declare("".into(), &element.ns);
        }
        self.declare_as(&element.prefix, &element.ns)
    }

    /// The attributes that can be written, each name once: XML forbids a second.
    fn attributes(&mut self, attributes: &'w [Attribute]) -> Vec<(Cow<'w, str>, &'w str)> {
        let attributes = &attributes[..attributes.len().min(ATTRIBUTES_MAX)];
        let same = |a: &Attribute, b: &Attribute| a.name == b.name && a.ns == b.ns;
        let mut written = Vec::with_capacity(attributes.len());
        for (at, attribute) in attributes.iter().enumerate() {
            let is_second = attributes[..at]
                .iter()
                .any(|earlier| same(earlier, attribute));
            if is_second || !is_attribute(attribute) {
                continue;
            }
            let prefix = match attribute.ns.as_str() {
                "" => Some("".into()),
                XML => Some("xml".into()),
                // The default namespace is none of attributes.
                ns => self
                    .bound(ns, false)
                    .or_else(|| self.declare_as(&attribute.prefix, ns)),
            };
            if let Some(prefix) = prefix {
                written.push((
                    qualified(&prefix, &attribute.name),
                    attribute.value.as_str(),
                ));
            }
        }
        written
    }

    /// The namespace of a prefix here.
    fn namespace(&self, prefix: &str) -> Option<&str> {
        self.scope
            .iter()
            .rev()
            .find(|(bound, _)| bound == prefix)
            .map(|(_, ns)| ns.as_ref())
    }

    /// A prefix that means the namespace here and is not hidden by an inner declaration.
    fn bound(&self, ns: &str, default_too: bool) -> Option<Cow<'w, str>> {
        let fits = |prefix: &str| {
            (default_too || !prefix.is_empty()) && self.namespace(prefix) == Some(ns)
        };
        let found = self
            .scope
            .iter()
            .rev()
            .find(|(prefix, bound)| bound == ns && fits(prefix));
        found.map(|(prefix, _)| prefix.clone())
    }

    /// A prefix that means nothing yet: the source's own if it will do, else a numbered one.
    fn free(&mut self, hint: &'w str) -> Cow<'w, str> {
        let is_xml = hint
            .get(..3)
            .is_some_and(|start| start.eq_ignore_ascii_case("xml"));
        if is_name(hint) && !is_xml && self.namespace(hint).is_none() {
            return hint.into();
        }
        loop {
            let prefix = format!("ns{}", self.spare);
            if self.namespace(&prefix).is_none() {
                return prefix.into();
            }
            self.spare += 1;
        }
    }

    fn is_full(&self) -> bool {
        self.scope.len() - self.outside >= DECLARATIONS_MAX
    }

    fn declare_as(&mut self, hint: &'w str, ns: &'w str) -> Option<Cow<'w, str>> {
        if self.is_full() {
            return None;
        }
        let prefix = self.free(hint);
        self.declare(prefix, ns)
    }

    fn declare(&mut self, prefix: Cow<'w, str>, ns: &'w str) -> Option<Cow<'w, str>> {
        if self.is_full() {
            return None;
        }
        self.scope.push((prefix.clone(), ns.into()));
        Some(prefix)
    }
}

fn qualified<'n>(prefix: &str, name: &'n str) -> Cow<'n, str> {
    if prefix.is_empty() {
        name.into()
    } else {
        format!("{prefix}:{name}").into()
    }
}

fn is_attribute(attribute: &Attribute) -> bool {
    let barred = match attribute.ns.as_str() {
        "" => attribute.name == "xmlns",
        // Unique in a document, and elements of many documents come to stand in one.
        XML => attribute.name == "id",
        _ => false,
    };
    !barred && is_name(&attribute.name) && is_namespace(&attribute.ns)
}

/// A name that every XML parser takes. The editions of XML 1.0 disagree about letters outside
/// ASCII, and no feed vocabulary uses any.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
}

/// No namespace, or one that parsers take: libxml2 refuses a document with a namespace that is no
/// URI reference, and nobody may bind a prefix to that of `xmlns`.
fn is_namespace(ns: &str) -> bool {
    let in_uri = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?#%".contains(&b);
    let escaped =
        |tail: &str| tail.len() >= 2 && tail.bytes().take(2).all(|b| b.is_ascii_hexdigit());
    let before_path = ns.split(['/', '?', '#']).next().unwrap_or_default();
    let (scheme, rest) = match before_path.split_once(':') {
        Some((scheme, _)) => (Some(scheme), &ns[scheme.len() + 1..]),
        None => (None, ns),
    };
    ns != XMLNS
        && ns.bytes().all(in_uri)
        && ns.split('%').skip(1).all(escaped)
        && ns.matches('#').count() < 2
        && scheme.is_none_or(is_scheme)
        && rest.strip_prefix("//").is_none_or(is_authority)
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

/// A host and perhaps a port, before whatever follows.
fn is_authority(text: &str) -> bool {
    let authority = text.split(['/', '?', '#']).next().unwrap_or_default();
    let (host, port) = authority.split_once(':').unwrap_or((authority, "80"));
    !host.contains('@') && (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests;
