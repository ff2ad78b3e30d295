//! Markup of other vocabularies, written anew with its namespaces; never a slice of bytes, and never ill-formed,
//! whatever names it carries.

use super::xml::{push_attribute, push_text};
use everfeed_adapters::{Attribute, Element, Node};
use std::borrow::Cow;

/// Elements nested deeper than this are left out: no vocabulary needs them, and stacks end.
pub(super) const DEPTH_MAX: usize = 64;

const XML: &str = "http://www.w3.org/XML/1998/namespace";
const XMLNS: &str = "http://www.w3.org/2000/xmlns/";

/// The namespace declarations in force, innermost last. The empty prefix is the default namespace.
pub(super) struct Scope<'a> {
    bound: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Scope<'a> {
    /// What the elements around have declared.
    pub(super) fn new(declared: &[(&'a str, &'a str)]) -> Self {
        Self { bound: declared.iter().map(|(prefix, ns)| ((*prefix).into(), (*ns).into())).collect() }
    }

    /// Notes a declaration on an element around, written by the caller.
    pub(super) fn declare(&mut self, prefix: &'a str, ns: &'a str) {
        self.bound.push((prefix.into(), ns.into()));
    }

    /// The namespace that a prefix stands for here. The default one is "no namespace" until declared.
    fn namespace(&self, prefix: &str) -> Option<&str> {
        let found = self.bound.iter().rev().find(|(bound, _)| bound == prefix).map(|(_, ns)| ns.as_ref());
        found.or(prefix.is_empty().then_some(""))
    }

    /// A prefix that stands for this namespace here, not one that an inner declaration hides.
    fn prefix(&self, ns: &str, default_too: bool) -> Option<Cow<'a, str>> {
        let fits = |prefix: &str, bound: &str| {
            bound == ns && (default_too || !prefix.is_empty()) && self.namespace(prefix) == Some(ns)
        };
        self.bound.iter().rev().find(|(prefix, bound)| fits(prefix, bound)).map(|(prefix, _)| prefix.clone())
    }

    /// A prefix that is bound to nothing yet: the source's own if it will do, else a numbered one.
    fn fresh(&self, hint: &str) -> String {
        let free = |prefix: &str| self.bound.iter().all(|(bound, _)| bound != prefix);
        if is_name(hint) && !starts_with_xml(hint) && free(hint) {
            return hint.to_owned();
        }
        let mut number = self.bound.len();
        loop {
            let prefix = format!("ns{number}");
            if free(&prefix) {
                return prefix;
            }
            number += 1;
        }
    }
}

/// Writes an element. One whose name some parser would refuse is left out with all that is in it.
pub(super) fn write(out: &mut String, element: &Element, scope: &mut Scope<'_>) {
    write_at(out, element, scope, 0);
}

/// Writes mixed content.
pub(super) fn write_nodes(out: &mut String, nodes: &[Node], scope: &mut Scope<'_>) {
    write_children(out, nodes, scope, 0);
}

/// Whether `write` would write this element's own tag.
pub(super) fn can_be_written(element: &Element) -> bool {
    is_name(&element.name) && is_namespace(&element.ns) && element.ns != XML
}

fn write_at(out: &mut String, element: &Element, scope: &mut Scope<'_>, depth: usize) {
    if depth == DEPTH_MAX || !can_be_written(element) {
        return;
    }
    let outside = scope.bound.len();
    out.push('<');
    let name = push_start(out, element, scope);
    if element.children.is_empty() {
        out.push_str("/>");
    } else {
        out.push('>');
        write_children(out, &element.children, scope, depth + 1);
        out.push_str("</");
        out.push_str(&name);
        out.push('>');
    }
    scope.bound.truncate(outside);
}

fn write_children(out: &mut String, nodes: &[Node], scope: &mut Scope<'_>, depth: usize) {
    for node in nodes {
        match node {
            Node::Text(text) => push_text(out, text),
            Node::Element(element) => write_at(out, element, scope, depth),
        }
    }
}

/// Name, declarations and attributes; answers the name as it was written.
fn push_start(out: &mut String, element: &Element, scope: &mut Scope<'_>) -> String {
    let mut declared = Vec::new();
    let prefix = if element.ns.is_empty() {
        if scope.namespace("") != Some("") {
            declare(scope, &mut declared, String::new(), "");
        }
        Cow::Borrowed("")
    } else {
        prefix_for(&element.ns, &element.prefix, true, scope, &mut declared)
    };
    let name = qualified(&prefix, &element.name);
    let attributes = unlike(&element.attributes).map(|attribute| {
        let prefix = match attribute.ns.as_str() {
            "" => Cow::Borrowed(""),
            XML => Cow::Borrowed("xml"),
            ns => prefix_for(ns, &attribute.prefix, false, scope, &mut declared),
        };
        (qualified(&prefix, &attribute.name), &attribute.value)
    });
    let attributes: Vec<_> = attributes.collect();
    out.push_str(&name);
    for (prefix, ns) in &declared {
        let name = if prefix.is_empty() { "xmlns".into() } else { format!("xmlns:{prefix}") };
        push_attribute(out, &name, ns);
    }
    for (name, value) in attributes {
        push_attribute(out, &name, value);
    }
    name
}

/// The attributes that can be written, each name once: XML forbids a second.
fn unlike(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    let barred = |a: &Attribute| match a.ns.as_str() {
        "" => a.name == "xmlns",
        // Unique in a document, and we put entries of many documents into one.
        XML => a.name == "id",
        _ => false,
    };
    let writable = move |a: &Attribute| is_name(&a.name) && is_namespace(&a.ns) && !barred(a);
    let same = |a: &Attribute, b: &Attribute| a.name == b.name && a.ns == b.ns;
    attributes
        .iter()
        .enumerate()
        .filter(move |(at, a)| writable(a) && !attributes[..*at].iter().any(|earlier| same(earlier, a)))
        .map(|(_, a)| a)
}

fn prefix_for<'a>(
    ns: &str,
    hint: &str,
    default_too: bool,
    scope: &mut Scope<'a>,
    declared: &mut Vec<(String, String)>,
) -> Cow<'a, str> {
    if let Some(prefix) = scope.prefix(ns, default_too) {
        return prefix;
    }
    let prefix = scope.fresh(hint);
    declare(scope, declared, prefix.clone(), ns);
    prefix.into()
}

fn declare(scope: &mut Scope<'_>, declared: &mut Vec<(String, String)>, prefix: String, ns: &str) {
    scope.bound.push((prefix.clone().into(), ns.to_owned().into()));
    declared.push((prefix, ns.to_owned()));
}

fn qualified(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}:{name}") }
}

/// A name that every XML parser takes. The editions of XML 1.0 disagree about letters outside ASCII, and no feed
/// vocabulary uses any.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
}

/// No namespace, or one that parsers take: libxml2 refuses a document with a namespace that is no URI reference, and
/// nobody may bind a prefix to that of `xmlns`.
fn is_namespace(ns: &str) -> bool {
    let in_uri = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?#%".contains(&b);
    let escaped = |tail: &str| tail.len() >= 2 && tail.bytes().take(2).all(|b| b.is_ascii_hexdigit());
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
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

/// A host and perhaps a port, before whatever follows.
fn is_authority(text: &str) -> bool {
    let authority = text.split(['/', '?', '#']).next().unwrap_or_default();
    let (host, port) = authority.split_once(':').unwrap_or((authority, "80"));
    !host.contains('@') && (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit())
}

fn starts_with_xml(prefix: &str) -> bool {
    prefix.get(..3).is_some_and(|head| head.eq_ignore_ascii_case("xml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(ns: &str, prefix: &str, name: &str) -> Element {
        Element { ns: ns.into(), prefix: prefix.into(), name: name.into(), ..Element::default() }
    }

    fn attribute(ns: &str, prefix: &str, name: &str) -> Attribute {
        Attribute { ns: ns.into(), prefix: prefix.into(), name: name.into(), value: "v".into() }
    }

    fn check(element: &Element, expect: &str) {
        let mut out = String::new();
        let mut scope = Scope::new(&[("", "urn:atom"), ("fo", "urn:fo")]);
        write(&mut out, element, &mut scope);
        assert_eq!(out, expect);
        assert_eq!(scope.bound.len(), 2, "declarations end with their element");
    }

    #[test]
    fn a_namespace_is_declared_once_where_it_is_needed() {
        let mut outer = element("urn:m", "media", "group");
        outer.children = vec![
            Node::Text("a & b".into()),
            Node::Element(element("urn:m", "other", "credit")),
            Node::Element(element("urn:fo", "x", "known")),
            Node::Element(element("", "", "plain")),
        ];
        check(
            &outer,
            r#"<media:group xmlns:media="urn:m">a &amp; b<media:credit/><fo:known/><plain xmlns=""/></media:group>"#,
        );
    }

    #[test]
    fn a_prefix_that_is_taken_or_no_name_is_replaced() {
        check(&element("urn:m", "fo", "a"), r#"<ns2:a xmlns:ns2="urn:m"/>"#);
        check(&element("urn:m", "", "a"), r#"<ns2:a xmlns:ns2="urn:m"/>"#);
        check(&element("urn:m", "xmlfoo", "a"), r#"<ns2:a xmlns:ns2="urn:m"/>"#);
        check(&element("urn:m", "1 x\"", "a"), r#"<ns2:a xmlns:ns2="urn:m"/>"#);
    }

    #[test]
    fn attributes_are_written_once_and_never_in_the_default_namespace() {
        let mut inner = element("urn:atom", "", "a");
        inner.attributes = vec![
            attribute("urn:atom", "atom", "b"),
            attribute("", "", "c"),
            attribute("", "", "c"),
            attribute(XML, "xml", "lang"),
            attribute(XML, "xml", "id"),
            attribute("", "", "xmlns"),
            attribute(XMLNS, "xmlns", "x"),
            attribute("", "", "on load"),
        ];
        check(&inner, r#"<a xmlns:atom="urn:atom" atom:b="v" c="v" xml:lang="v"/>"#);
    }

    #[test]
    fn names_that_a_parser_might_refuse_are_left_out() {
        for name in ["", "a b", "1a", "a:b", "a>", "ä", "-a"] {
            check(&element("urn:m", "m", name), "");
        }
        let refused = [
            XML,
            XMLNS,
            "\u{1}",
            "[TBD]",
            "a b",
            "http://x:y/",
            "http://x:/",
            "://",
            "1x:y",
            "a%zz",
            "a#b#c",
            "http://x/é",
            "http://u@x/",
        ];
        for ns in refused {
            check(&element(ns, "m", "a"), "");
        }
        for ns in ["DAV:", "http://x:80/%41?a=b#c", "http://purl.org/dc/terms/", "tag:x,2005:y", "relative"] {
            check(&element(ns, "m", "a"), &format!("<m:a xmlns:m=\"{ns}\"/>"));
        }
    }

    #[test]
    fn depth_has_an_end() {
        let mut deep = element("", "", "a");
        for _ in 0..2 * DEPTH_MAX {
            let inner = deep;
            deep = element("", "", "a");
            deep.children.push(Node::Element(inner));
        }
        let mut out = String::new();
        write(&mut out, &deep, &mut Scope::new(&[]));
        assert_eq!(out.matches("<a").count(), DEPTH_MAX);
    }
}
