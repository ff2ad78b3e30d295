//! XML fragments that are kept as strings, read again and written anew, so that one bad entry
//! cannot break a whole document; not a sanitiser.

use super::harmless;
use everfeed_adapters::{
    Attribute, Element, Node,
    text::{
        entities::{self, Resolved},
        markup::{DEPTH_MAX, XHTML, can_be_written, write_element, write_nodes},
    },
};
use quick_xml::{
    NsReader, XmlVersion,
    escape::resolve_predefined_entity,
    events::{BytesRef, BytesStart, Event, attributes::Attribute as Read},
    name::{Namespace, NamespaceResolver, ResolveResult},
};

/// The fragment is not well-formed, or holds something that could only be written with a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IllFormed;

/// Writes a `div` around what is the inside of one.
pub(super) fn write_div(
    out: &mut String,
    inside: &str,
    declared: &[(&str, &str)],
) -> Result<(), IllFormed> {
    let nodes = harmless::nodes(parse(inside, XHTML)?);
    let declared: Vec<_> = declared.iter().copied().chain([("", XHTML)]).collect();
    out.push_str("<div xmlns=\"");
    out.push_str(XHTML);
    out.push_str("\">");
    write_nodes(out, &nodes, &declared);
    out.push_str("</div>");
    Ok(())
}

/// Writes the one element that the content of an XML media type is.
pub(super) fn write_root(
    out: &mut String,
    xml: &str,
    declared: &[(&str, &str)],
) -> Result<(), IllFormed> {
    let nodes = harmless::nodes(parse(xml, "")?);
    let is_space = |node: &Node| matches!(node, Node::Text(text) if text.trim().is_empty());
    let mut solid = nodes.iter().filter(|node| !is_space(node));
    let (Some(Node::Element(root)), None) = (solid.next(), solid.next()) else {
        return Err(IllFormed);
    };
    write_element(out, root, declared);
    Ok(())
}

/// Reads a fragment in which names without a prefix belong to `default_ns`.
fn parse(fragment: &str, default_ns: &str) -> Result<Vec<Node>, IllFormed> {
    let mut reader = NsReader::from_str(fragment);
    let mut tree = Tree::default();
    loop {
        match reader.read_event().map_err(|_| IllFormed)? {
            Event::Start(start) => tree.open(element(&start, reader.resolver(), default_ns)?)?,
            Event::Empty(start) => {
                tree.open(element(&start, reader.resolver(), default_ns)?)?;
                tree.close()?;
            }
            Event::End(_) => tree.close()?,
            Event::Text(text) => tree.text(&text.xml10_content()),
            Event::CData(text) => tree.text(&text.xml10_content()),
            Event::GeneralRef(reference) => tree.text(&resolve(&reference)?),
            Event::Comment(_) | Event::Decl(_) => {}
            Event::PI(_) | Event::DocType(_) => return Err(IllFormed),
            Event::Eof => return tree.finish(),
        }
    }
}

fn resolve(reference: &BytesRef<'_>) -> Result<String, IllFormed> {
    match entities::resolve(reference) {
        Some(Resolved::Character(c)) => Ok(c.into()),
        Some(Resolved::Characters(characters)) => Ok(characters.to_owned()),
        Some(Resolved::Nothing) => Ok(String::new()),
        None => Err(IllFormed),
    }
}

fn element(
    start: &BytesStart<'_>,
    scope: &NamespaceResolver,
    default_ns: &str,
) -> Result<Element, IllFormed> {
    let (ns, local) = scope.resolve_element(start.name());
    let mut element = Element {
        ns: namespace(ns, default_ns)?,
        prefix: start
            .name()
            .prefix()
            .map(|prefix| prefix.into_inner().to_owned())
            .unwrap_or_default(),
        name: local.into_inner().to_owned(),
        ..Element::default()
    };
    for read in start.attributes() {
        let read = read.map_err(|_| IllFormed)?;
        if read.key.as_namespace_binding().is_none() {
            element.attributes.push(attribute(&read, scope)?);
        }
    }
    can_be_written(&element).then_some(element).ok_or(IllFormed)
}

fn attribute(read: &Read<'_>, scope: &NamespaceResolver) -> Result<Attribute, IllFormed> {
    let (ns, local) = scope.resolve_attribute(read.key);
    let value = read
        .normalized_value_with(XmlVersion::Explicit1_0, 1, resolve_predefined_entity)
        .map_err(|_| IllFormed)?;
    Ok(Attribute {
        ns: namespace(ns, "")?,
        prefix: read
            .key
            .prefix()
            .map(|prefix| prefix.into_inner().to_owned())
            .unwrap_or_default(),
        name: local.into_inner().to_owned(),
        value: value.into_owned(),
    })
}

fn namespace(found: ResolveResult<'_>, default_ns: &str) -> Result<String, IllFormed> {
    match found {
        ResolveResult::Bound(Namespace(ns)) => Ok(ns.to_owned()),
        ResolveResult::Unbound => Ok(default_ns.to_owned()),
        ResolveResult::Unknown(_) => Err(IllFormed),
    }
}

/// The nodes read so far, and the elements that are still open.
#[derive(Default)]
struct Tree {
    done: Vec<Node>,
    open: Vec<Element>,
}

impl Tree {
    fn siblings(&mut self) -> &mut Vec<Node> {
        self.open
            .last_mut()
            .map_or(&mut self.done, |parent| &mut parent.children)
    }

    fn open(&mut self, element: Element) -> Result<(), IllFormed> {
        self.open.push(element);
        (self.open.len() < DEPTH_MAX).then_some(()).ok_or(IllFormed)
    }

    fn close(&mut self) -> Result<(), IllFormed> {
        let element = self.open.pop().ok_or(IllFormed)?;
        self.siblings().push(Node::Element(element));
        Ok(())
    }

    fn text(&mut self, text: &str) {
        match self.siblings().last_mut() {
            Some(Node::Text(before)) => before.push_str(text),
            _ => self.siblings().push(Node::Text(text.to_owned())),
        }
    }

    fn finish(self) -> Result<Vec<Node>, IllFormed> {
        self.open.is_empty().then_some(self.done).ok_or(IllFormed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn div(inside: &str) -> Result<String, IllFormed> {
        let mut out = String::new();
        write_div(&mut out, inside, &[("", "urn:atom"), ("fo", "urn:fo")]).map(|()| out)
    }

    #[test]
    fn a_sound_fragment_survives() {
        let check = |inside: &str, expect: &str| {
            assert_eq!(
                div(inside),
                Ok(format!("<div xmlns=\"{XHTML}\">{expect}</div>"))
            );
        };
        check(
            "a &lt; b<br/><p class='x'>c</p>",
            "a &lt; b<br/><p class=\"x\">c</p>",
        );
        check("<![CDATA[<]]>&nbsp;&#8212;<!-- gone -->", "&lt;\u{a0}—");
        check(
            "<svg xmlns='urn:svg'><g/></svg>",
            "<svg xmlns=\"urn:svg\"><g/></svg>",
        );
        check(
            "<x:a xmlns:x='urn:x' x:b='c'/>",
            "<x:a xmlns:x=\"urn:x\" x:b=\"c\"/>",
        );
        check("", "");
        check("<p onclick='a()'>b<script>c()</script></p>", "<p>b</p>");
    }

    #[test]
    fn anything_else_is_refused_whole() {
        let deep = "<b>".repeat(DEPTH_MAX) + &"</b>".repeat(DEPTH_MAX);
        for bad in [
            "<p>",
            "</p>",
            "</div><div>",
            "<p></q>",
            "<1a/>",
            "<a b='1' b='2'/>",
            "<a b=c/>",
            "&unknown;",
            "&",
            "<",
            "<x:a/>",
            "<a x:b='c'/>",
            "<?php ?>",
            "<!DOCTYPE a>",
            &deep,
        ] {
            assert_eq!(div(bad), Err(IllFormed), "{bad}");
        }
    }

    #[test]
    fn the_content_of_an_xml_type_has_one_root() {
        let root = |xml: &str| {
            let mut out = String::new();
            write_root(&mut out, xml, &[("", "urn:atom")]).map(|()| out)
        };
        assert_eq!(
            root(" <?xml version='1.0'?><a>b</a> "),
            Ok("<a xmlns=\"\">b</a>".into())
        );
        assert_eq!(root("<a/><b/>"), Err(IllFormed));
        assert_eq!(root("text"), Err(IllFormed));
    }
}
