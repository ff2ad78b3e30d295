//! Markup that is broken, hostile or merely odd, and that what is written can be read back.

use proptest::prelude::*;
use quick_xml::Reader;
use quick_xml::events::Event;

use super::tokens::{Token, Tokens, attributes};
use super::tree::{Bindings, ELEMENTS_MAX, grow, is_void};
use super::*;
use crate::text::entities::unescape;
use crate::{Attribute, Element, Node};

fn grown(markup: &str) -> Element {
    grow(markup, &Bindings::default()).unwrap().element
}

fn rewritten(markup: &str) -> String {
    let mut out = String::new();
    write_element(&mut out, &grown(markup), &[]);
    out
}

/// Some markup after it was read and written anew.
fn check(markup: &str, expect: &str) {
    assert_eq!(rewritten(markup), expect, "{markup}");
    assert_eq!(rewritten(expect), expect, "written anew once more");
}

#[test]
fn well_formed_markup_survives() {
    check(
        "<a b='1' c=\"2\">x<d/>&lt;<![CDATA[<&]]></a>",
        "<a b=\"1\" c=\"2\">x<d/>&lt;&lt;&amp;</a>",
    );
    check("<a><!-- no --><?pi no?>x</a>", "<a>x</a>");
    check(
        "<p:a xmlns:p='urn:p' p:b='1'><p:c/></p:a>",
        "<p:a xmlns:p=\"urn:p\" p:b=\"1\"><p:c/></p:a>",
    );
    check(
        "<a xmlns='urn:a'><b xmlns=''/><c/></a>",
        "<a xmlns=\"urn:a\"><b xmlns=\"\"/><c/></a>",
    );
    check(
        "<a xml:lang='en' xml:base='x'/>",
        "<a xml:lang=\"en\" xml:base=\"x\"/>",
    );
}

#[test]
fn broken_markup_is_mended() {
    check("<a><b>x</a>", "<a><b>x</b></a>");
    check("<a>x</b></a>", "<a>x</a>");
    check("<a><b><c>x</b>y</a>", "<a><b><c>x</c></b>y</a>");
    check("<a>x", "<a>x</a>");
    check(
        "<a>x & y &bogus; &nbsp;</a>",
        "<a>x &amp; y &amp;bogus; \u{A0}</a>",
    );
    check("<a>1 < 2 <3 <></a>", "<a>1 &lt; 2 &lt;3 &lt;&gt;</a>");
    check("<a><b <c>x</c></b></a>", "<a><b><c>x</c></b></a>");
    check(
        "<a b=c d e='1' e='2'>x</a>",
        "<a b=\"c\" d=\"\" e=\"1\">x</a>",
    );
    check(
        "<a><br>x<img src='y'>z</a>",
        "<a><br/>x<img src=\"y\"/>z</a>",
    );
    check(
        "<a>x<b title=\"never closed>y</b></a>",
        "<a>x<b title=\"never closed\">y</b></a>",
    );
    check("<a>x<!wrong>y</a>", "<a>xy</a>");
}

#[test]
fn undeclared_prefixes_are_given_a_namespace() {
    check(
        "<dc:date>x</dc:date>",
        "<dc:date xmlns:dc=\"http://purl.org/dc/elements/1.1/\">x</dc:date>",
    );
    check(
        "<odd:x odd:y='1'/>",
        "<odd:x xmlns:odd=\"urn:undeclared:odd\" odd:y=\"1\"/>",
    );
}

#[test]
fn names_that_xml_has_not_are_dropped_and_their_text_stays() {
    check("<a><b$c>x</b$c><1>y</1></a>", "<a>x&lt;1&gt;y</a>");
    check("<a 1='x' \u{D7}='y' b='z'/>", "<a b=\"z\"/>");
}

#[test]
fn values_cannot_break_out_of_their_quotes() {
    // PARSING section 0.5: feed-rs turns this into a real attribute.
    let markup = "<a title=\"x&quot; onmouseover=&quot;alert(1)\">&lt;b>&#13;</a>";
    check(
        markup,
        "<a title=\"x&quot; onmouseover=&quot;alert(1)\">&lt;b&gt;&#13;</a>",
    );
    check("<a b='1\n2\t3&#10;4'/>", "<a b=\"1 2 3&#10;4\"/>");
}

#[test]
fn a_writer_uses_what_is_declared_and_hides_nothing_that_is_in_use() {
    let element = grown("<p:a xmlns:p='urn:p' xmlns:q='urn:q' q:b='1'><p:c/><d/></p:a>");
    let write = |declared: &[(&str, &str)]| {
        let mut out = String::new();
        write_element(&mut out, &element, declared);
        out
    };
    assert_eq!(
        write(&[("x", "urn:p"), ("q", "urn:q")]),
        "<x:a q:b=\"1\"><x:c/><d/></x:a>"
    );
    assert_eq!(
        write(&[("", "urn:p")]),
        "<a xmlns:q=\"urn:q\" q:b=\"1\"><c/><d xmlns=\"\"/></a>"
    );
    // The prefix of the attribute already means something: another is taken.
    assert_eq!(
        write(&[("p", "urn:p"), ("q", "urn:other")]),
        "<p:a xmlns:ns1=\"urn:q\" ns1:b=\"1\"><p:c/><d/></p:a>"
    );
    // An outer declaration that an inner one hides is not used.
    assert_eq!(
        write(&[("p", "urn:p"), ("p", "urn:other"), ("q", "urn:q")]),
        "<ns1:a xmlns:ns1=\"urn:p\" q:b=\"1\"><ns1:c/><d/></ns1:a>"
    );
}

#[test]
fn only_what_is_inside_can_be_written() {
    let mut out = String::new();
    write_nodes(
        &mut out,
        &grown("<a xmlns='urn:a'>x<b/>&amp;</a>").children,
        &[("", "urn:a")],
    );
    assert_eq!(out, "x<b/>&amp;");
}

#[test]
fn trees_are_bounded_in_depth_and_number() {
    let deep = grown(&format!("{}x", "<a>".repeat(100_000)));
    let mut depth = 1;
    let mut element = &deep;
    while let Some(child) = element.elements().next() {
        depth += 1;
        element = child;
    }
    assert_eq!((depth, deep.text().as_str()), (DEPTH_MAX, "x"));
    let wide = grown(&format!("<a>{}</a>", "<b/>".repeat(100_000)));
    assert_eq!(wide.size(), ELEMENTS_MAX);
    let many = grown(&format!(
        "<a {}/>",
        (0..1000).map(|n| format!("a{n}='' ")).collect::<String>()
    ));
    assert_eq!(many.attributes.len(), 256);
}

#[test]
fn tokens_know_their_places() {
    let text = "a<b c='>'>&amp;x&<![CDATA[<]]></b>< ";
    let mut tokens = Tokens::new(text);
    let mut found = Vec::new();
    while let Some((token, place)) = tokens.next() {
        found.push((token, &text[place]));
    }
    let expect = [
        (Token::Text("a"), "a"),
        (
            Token::Start {
                name: "b",
                attributes: " c='>'",
                empty: false,
            },
            "<b c='>'>",
        ),
        (Token::Text("&amp;x&"), "&amp;x&"),
        (Token::Literal("<"), "<![CDATA[<]]>"),
        (Token::End { name: "b" }, "</b>"),
        (Token::Text("<"), "<"),
        (Token::Text(" "), " "),
    ];
    assert_eq!(found, expect);
    assert_eq!(tokens.cut_at(), None);
}

/// Tags and the characters between them, as this crate cuts them.
fn outline(text: &str) -> Vec<(String, String)> {
    let mut found = vec![("".to_owned(), String::new())];
    let mut tokens = Tokens::new(text);
    while let Some((token, place)) = tokens.next() {
        match token {
            Token::Start { .. } | Token::End { .. } => {
                found.push((text[place].to_owned(), String::new()))
            }
            Token::Text(text) => found.last_mut().unwrap().1.push_str(&unescape(text)),
            Token::Literal(text) => found.last_mut().unwrap().1.push_str(text),
        }
    }
    found
}

/// The same, as quick-xml's reader cuts them.
fn outline_by_reader(text: &str) -> Vec<(String, String)> {
    let mut found = vec![("".to_owned(), String::new())];
    let mut reader = Reader::from_str(text);
    loop {
        let start = usize::try_from(reader.buffer_position()).unwrap();
        let event = reader.read_event().unwrap();
        let end = usize::try_from(reader.buffer_position()).unwrap();
        match event {
            Event::Start(_) | Event::Empty(_) | Event::End(_) => {
                found.push((text[start..end].to_owned(), String::new()));
            }
            Event::Text(_) | Event::GeneralRef(_) => {
                found
                    .last_mut()
                    .unwrap()
                    .1
                    .push_str(&unescape(&text[start..end]));
            }
            Event::CData(section) => found.last_mut().unwrap().1.push_str(&section),
            Event::Eof => return found,
            _ => {}
        }
    }
}

#[test]
fn byte_order_marks_move_no_place() {
    for text in [
        "\u{FEFF}þ<a>é</a>",
        "\u{FEFF}\u{FEFF}<a>þ</a>",
        "< \u{FEFF}þ<a/>",
        "<a b='<c>\u{FEFF}þ<d>",
    ] {
        let mut tokens = Tokens::new(text);
        while let Some((token, place)) = tokens.next() {
            let found = &text[place];
            assert!(
                !matches!(token, Token::Start { .. }) || found.starts_with('<'),
                "{found} in {text}"
            );
        }
    }
}

#[test]
fn a_text_that_ends_inside_a_construct_is_cut() {
    for (text, at) in [
        ("<a>x<b", 4),
        ("<a>x<!-- <b>", 4),
        ("<a><![CDATA[ </a>", 3),
        ("x</a", 1),
        ("<a>", 3),
    ] {
        let mut tokens = Tokens::new(text);
        while tokens.next().is_some() {}
        assert_eq!(
            tokens.cut_at(),
            Some(at).filter(|at| *at < text.len()),
            "{text}"
        );
    }
}

#[test]
fn hostile_markup_takes_linear_time() {
    // Each of these takes minutes if any step looks at the rest of the text once per token.
    for piece in [
        "<",
        "&",
        "<!--",
        "<![CDATA[",
        "<a b=\"",
        "<a<",
        "<a '<",
        "</",
        "<!x",
        "<?",
        "</a>",
        "<a>",
        "&a",
        "<!DOCTYPE a [",
        "<a b='<'>",
    ] {
        let text = format!("<a>{}", piece.repeat(100_000));
        let mut tokens = Tokens::new(&text);
        while tokens.next().is_some() {}
        let _ = grow(&text, &Bindings::default());
    }
}

#[test]
fn attributes_are_read_however_they_are_quoted() {
    let read: Vec<_> = attributes(" a = '1' b=\"&lt;\" c=x/y d e='").collect();
    let expect = [("a", "1"), ("b", "<"), ("c", "x/y"), ("d", "")];
    assert_eq!(
        read.iter()
            .map(|(name, value)| (*name, &**value))
            .collect::<Vec<_>>()[..4],
        expect
    );
}

/// Names that are read as they are written. An element with the name of a void HTML element is read as void in every namespace,
/// so nothing is read back inside it (`void_elements_have_no_children_in_any_namespace`).
fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z_][a-z0-9._-]{0,5}".prop_filter("void in HTML", |name| !is_void(name, XHTML))
}

fn namespace() -> impl Strategy<Value = (String, String)> {
    prop_oneof![
        Just((String::new(), String::new())),
        Just(("p".to_owned(), "urn:p".to_owned())),
        Just(("q".to_owned(), "urn:q".to_owned())),
        Just(("p".to_owned(), "urn:other".to_owned())),
        Just((String::new(), "urn:default".to_owned())),
        Just(("xml".to_owned(), "urn:not-xml".to_owned())),
    ]
}

fn childless() -> impl Strategy<Value = Element> {
    let attribute =
        (namespace(), name(), any::<String>()).prop_map(|((prefix, ns), name, value)| Attribute {
            ns,
            prefix,
            name,
            value,
        });
    (namespace(), name(), prop::collection::vec(attribute, 0..4)).prop_map(
        |((prefix, ns), name, mut attributes)| {
            attributes.sort_by(|a, b| (&a.ns, &a.name).cmp(&(&b.ns, &b.name)));
            attributes.dedup_by(|a, b| a.ns == b.ns && a.name == b.name);
            Element {
                ns,
                prefix,
                name,
                attributes,
                children: Vec::new(),
            }
        },
    )
}

fn element() -> impl Strategy<Value = Element> {
    childless().prop_recursive(4, 24, 4, |inner| {
        let node = prop_oneof![
            any::<String>().prop_map(Node::Text),
            inner.prop_map(Node::Element)
        ];
        (childless(), prop::collection::vec(node, 0..4)).prop_map(|(element, children)| Element {
            children,
            ..element
        })
    })
}

/// Prefixes are only hints, and texts that touch are one.
fn essence(mut element: Element) -> Element {
    element.prefix.clear();
    for attribute in &mut element.attributes {
        attribute.prefix.clear();
        attribute.value = crate::text::clean(&attribute.value).into_owned();
    }
    let mut children: Vec<Node> = Vec::new();
    for node in element.children {
        match (node, children.last_mut()) {
            (Node::Element(child), _) => children.push(Node::Element(essence(child))),
            (Node::Text(text), before) => match (crate::text::clean(&text).into_owned(), before) {
                (text, _) if text.is_empty() => {}
                (text, Some(Node::Text(before))) => before.push_str(&text),
                (text, _) => children.push(Node::Text(text)),
            },
        }
    }
    Element {
        children,
        ..element
    }
}

#[test]
fn void_elements_have_no_children_in_any_namespace() {
    for namespace in ["urn:default", XHTML] {
        let text = format!("<p xmlns='{namespace}'>a<hr> b</hr> c</p>");
        let paragraph = grow(&text, &Bindings::default()).unwrap().element;
        let mut outside = String::new();
        for node in &paragraph.children {
            match node {
                Node::Element(hr) => assert!(hr.children.is_empty(), "{namespace}: {hr:?}"),
                Node::Text(text) => outside.push_str(text),
            }
        }
        assert_eq!(outside, "a b c", "{namespace}");
    }
}

fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "<a b='>' c=\"'\">x</a>",
        "<a><b/></a>",
        "<c\n d = '<' />",
        "<\u{E9}>\u{E9}</\u{E9} >",
        "<!-- - -> > <x> -->",
        "<!---->",
        "<![CDATA[ ]] ]> > <i> & ]]>",
        "<![CDATA[]]]>",
        "<?p ? > <x> ?>",
        "&lt;",
        "&#65;",
        "&nbsp;&unknown;",
        "a > b",
        "\u{FEFF}",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// Sound markup is cut as quick-xml's reader cuts it.
    #[test]
    fn sound_markup_has_the_tokens_of_the_reader(pieces in prop::collection::vec(piece(), 0..20)) {
        let text = format!("<!DOCTYPE r [<!ENTITY e \"]>\">]><r>{}</r>", pieces.concat());
        prop_assert_eq!(outline(&text), outline_by_reader(&text));
    }

    #[test]
    fn what_is_written_is_read_back(element in element(), declared in prop::collection::vec(namespace(), 0..3)) {
        let declared: Vec<_> = declared.iter().map(|(p, n)| (p.as_str(), n.as_str())).collect();
        let declared: Vec<_> = declared.into_iter().filter(|(p, n)| *p != "xml" && (p.is_empty() || !n.is_empty())).collect();
        let mut out = String::new();
        write_element(&mut out, &element, &declared);
        let mut bindings = Bindings::default();
        let names: Vec<_> = declared.iter().map(|(p, n)| {
            (if p.is_empty() { "xmlns".to_owned() } else { format!("xmlns:{p}") }, *n)
        }).collect();
        bindings.declare(names.iter().map(|(name, value)| (name.as_str(), *value)));
        let read = grow(&out, &bindings).unwrap();
        prop_assert!(!read.mended, "{}", out);
        prop_assert_eq!(essence(read.element), essence(element), "{}", out);
    }

    #[test]
    fn any_text_can_be_grown_and_what_comes_out_is_well_formed(text in "[<>&;'\"=/! a-c:\\[\\]-]{0,60}") {
        if let Some(read) = grow(&text, &Bindings::default()) {
            let mut out = String::new();
            write_element(&mut out, &read.element, &[]);
            let mut reader = quick_xml::Reader::from_str(&out);
            loop {
                match reader.read_event() {
                    Ok(quick_xml::events::Event::Eof) => break,
                    Ok(_) => {}
                    Err(error) => prop_assert!(false, "{} in {}", error, out),
                }
            }
        }
    }
}
