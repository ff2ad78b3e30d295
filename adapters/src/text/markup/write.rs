//! Elements written anew: always well-formed, namespaces declared where they are needed, nothing spliced.

use std::borrow::Cow;

use super::{XML, is_name};
use crate::text::clean;
use crate::{Attribute, Element, Node};

/// Writes an element and all that is below it. `declared` holds the (prefix, namespace) pairs that are in force where the
/// element will stand, outermost first; everything else that it needs it declares itself.
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
    element_in(out, element, &mut declared.to_vec());
}

/// Writes only what is inside an element.
pub fn write_children(out: &mut String, element: &Element, declared: &[(&str, &str)]) {
    children_in(out, element, &mut declared.to_vec());
}

fn element_in<'e>(out: &mut String, element: &'e Element, scope: &mut Vec<(&'e str, &'e str)>) {
    if !is_name(&element.name) {
        // Nothing that was read here has such a name; its children can still be saved.
        children_in(out, element, scope);
        return;
    }
    let outside = scope.len();
    let prefix = element_prefix(element, scope);
    let mut attributes = String::new();
    for attribute in element.attributes.iter().filter(|attribute| is_name(&attribute.name)) {
        attribute_in(&mut attributes, attribute, scope);
    }
    out.push('<');
    name(out, prefix, &element.name);
    for (prefix, namespace) in &scope[outside..] {
        out.push_str(if prefix.is_empty() { " xmlns" } else { " xmlns:" });
        out.push_str(prefix);
        value(out, namespace);
    }
    out.push_str(&attributes);
    if element.children.is_empty() {
        out.push_str("/>");
    } else {
        out.push('>');
        children_in(out, element, scope);
        out.push_str("</");
        name(out, prefix, &element.name);
        out.push('>');
    }
    scope.truncate(outside);
}

fn children_in<'e>(out: &mut String, element: &'e Element, scope: &mut Vec<(&'e str, &'e str)>) {
    for node in &element.children {
        match node {
            Node::Text(text) => out.push_str(&escape_text(text)),
            Node::Element(child) => element_in(out, child, scope),
        }
    }
}

/// The prefix to write an element with; declares its namespace when nobody has.
fn element_prefix<'e>(element: &'e Element, scope: &mut Vec<(&'e str, &'e str)>) -> &'e str {
    if element.ns == XML {
        return "xml";
    }
    if element.ns.is_empty() {
        if bound(scope, "").is_some_and(|namespace| !namespace.is_empty()) {
            scope.push(("", ""));
        }
        return "";
    }
    // The source's own prefix first, so that a default namespace stays one.
    if bound(scope, &element.prefix) == Some(&element.ns) {
        return &element.prefix;
    }
    if let Some(prefix) = prefix_of(scope, &element.ns, true) {
        return prefix;
    }
    let prefix = if is_usable(&element.prefix) { element.prefix.as_str() } else { "" };
    scope.push((prefix, &element.ns));
    prefix
}

/// Prefixes for attributes whose own prefix means something else already.
const SPARE: [&str; 8] = ["ns1", "ns2", "ns3", "ns4", "ns5", "ns6", "ns7", "ns8"];

fn attribute_in<'e>(out: &mut String, attribute: &'e Attribute, scope: &mut Vec<(&'e str, &'e str)>) {
    let prefix = if attribute.ns.is_empty() {
        ""
    } else if attribute.ns == XML {
        "xml"
    } else if let Some(prefix) = prefix_of(scope, &attribute.ns, false) {
        prefix
    } else {
        // Only a prefix that means nothing yet: the element or an earlier attribute may be using any other.
        let own = Some(attribute.prefix.as_str()).filter(|prefix| !prefix.is_empty() && is_usable(prefix));
        let free = own.into_iter().chain(SPARE).find(|prefix| bound(scope, prefix).is_none());
        let Some(prefix) = free else { return };
        scope.push((prefix, &attribute.ns));
        prefix
    };
    out.push(' ');
    name(out, prefix, &attribute.name);
    value(out, &attribute.value);
}

fn name(out: &mut String, prefix: &str, local: &str) {
    if !prefix.is_empty() {
        out.push_str(prefix);
        out.push(':');
    }
    out.push_str(local);
}

fn value(out: &mut String, value: &str) {
    out.push_str("=\"");
    out.push_str(&escape_attribute(value));
    out.push('"');
}

/// What a prefix means in a scope.
fn bound<'e>(scope: &[(&'e str, &'e str)], prefix: &str) -> Option<&'e str> {
    scope.iter().rev().find(|(bound, _)| *bound == prefix).map(|(_, namespace)| *namespace)
}

/// A prefix that means the namespace in this scope and is not hidden by an inner declaration.
fn prefix_of<'e>(scope: &[(&'e str, &'e str)], ns: &str, default_too: bool) -> Option<&'e str> {
    let candidates = scope.iter().rev().filter(|(_, namespace)| *namespace == ns).map(|(prefix, _)| *prefix);
    let mut candidates = candidates.filter(|prefix| default_too || !prefix.is_empty());
    candidates.find(|prefix| bound(scope, prefix) == Some(ns))
}

fn is_usable(prefix: &str) -> bool {
    prefix.is_empty()
        || (is_name(prefix) && !prefix.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("xml")))
}

/// Character data: `&`, `<` and `>` escaped, characters illegal in XML left out.
pub fn escape_text(text: &str) -> Cow<'_, str> {
    escape(text, |c| match c {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        // A bare carriage return would be read back as a line feed (XML 1.0 section 2.11).
        '\r' => Some("&#13;"),
        _ => None,
    })
}

/// An attribute value, to stand between double quotes.
pub fn escape_attribute(text: &str) -> Cow<'_, str> {
    escape(text, |c| match c {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&quot;"),
        '\t' => Some("&#9;"),
        '\n' => Some("&#10;"),
        '\r' => Some("&#13;"),
        _ => None,
    })
}

fn escape(text: &str, replacement: impl Fn(char) -> Option<&'static str>) -> Cow<'_, str> {
    let text = clean(text);
    if !text.chars().any(|c| replacement(c).is_some()) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match replacement(c) {
            Some(replaced) => out.push_str(replaced),
            None => out.push(c),
        }
    }
    Cow::Owned(out)
}
