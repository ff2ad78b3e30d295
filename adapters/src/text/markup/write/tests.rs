//! Tests of markup that would make parsers fail, and of what is written in its place.

use super::*;

fn element(ns: &str, prefix: &str, name: &str) -> Element {
    Element {
        ns: ns.into(),
        prefix: prefix.into(),
        name: name.into(),
        ..Element::default()
    }
}

fn attribute(ns: &str, prefix: &str, name: &str) -> Attribute {
    Attribute {
        ns: ns.into(),
        prefix: prefix.into(),
        name: name.into(),
        value: "v".into(),
    }
}

fn check(element: &Element, expect: &str) {
    let mut out = String::new();
    write_element(&mut out, element, &[("", "urn:atom"), ("fo", "urn:fo")]);
    assert_eq!(out, expect);
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
fn a_declaration_ends_with_its_element() {
    let mut outer = element("urn:atom", "", "a");
    let inner = element("urn:m", "m", "b");
    outer.children = vec![Node::Element(inner.clone()), Node::Element(inner)];
    check(
        &outer,
        r#"<a><m:b xmlns:m="urn:m"/><m:b xmlns:m="urn:m"/></a>"#,
    );
}

#[test]
fn empty_elements_of_xhtml_read_the_same_as_html() {
    let nodes =
        ["p", "a", "script", "br", "source"].map(|name| Node::Element(element(XHTML, "h", name)));
    let mut out = String::new();
    write_nodes(&mut out, &nodes, &[("", XHTML)]);
    assert_eq!(out, "<p></p><a></a><script></script><br/><source/>");
}

#[test]
fn a_prefix_that_is_taken_or_no_name_is_replaced() {
    check(&element("urn:m", "", "a"), r#"<a xmlns="urn:m"/>"#);
    for prefix in ["fo", "xmlfoo", "1 x\"", "é"] {
        check(
            &element("urn:m", prefix, "a"),
            r#"<ns1:a xmlns:ns1="urn:m"/>"#,
        );
    }
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
    check(
        &inner,
        r#"<a xmlns:atom="urn:atom" atom:b="v" c="v" xml:lang="v"/>"#,
    );
}

#[test]
fn tags_that_a_parser_might_refuse_are_dropped_and_what_is_inside_stays() {
    let check_refused = |ns: &str, name: &str| {
        let mut refused = element(ns, "m", name);
        refused.children = vec![
            Node::Text("x".into()),
            Node::Element(element("urn:atom", "", "b")),
        ];
        assert!(!can_be_written(&refused), "{name:?} in {ns:?}");
        check(&refused, "x<b/>");
    };
    for name in ["", "a b", "1a", "a:b", "a>", "ä", "-a"] {
        check_refused("urn:m", name);
    }
    for ns in [
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
    ] {
        check_refused(ns, "a");
    }
    for ns in [
        "DAV:",
        "http://x:80/%41?a=b#c",
        "http://purl.org/dc/terms/",
        "tag:x,2005:y",
        "relative",
    ] {
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
    write_element(&mut out, &deep, &[]);
    assert_eq!(out.matches("<a").count(), DEPTH_MAX);
}

#[test]
fn hostile_prefixes_take_linear_time_and_declarations_have_an_end() {
    let crowded = |level: usize| {
        let attributes = (0..ATTRIBUTES_MAX)
            .map(|n| attribute(&format!("urn:{level}:{n}"), &format!("ns{n}"), "b"));
        Element {
            attributes: attributes.collect(),
            ..element("urn:m", "ns1", "a")
        }
    };
    let mut deep = crowded(0);
    deep.children = vec![Node::Element(crowded(1)); 200];
    for level in 2..100 {
        deep = Element {
            children: vec![Node::Element(deep)],
            ..crowded(level)
        };
    }
    let mut out = String::new();
    write_element(&mut out, &deep, &[]);
    assert_eq!(out.matches("xmlns:").count(), DECLARATIONS_MAX);
}
