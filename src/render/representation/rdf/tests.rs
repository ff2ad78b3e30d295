//! RSS 1.0 documents line by line.

use crate::render::{
    document::Audience,
    representation::Representation,
    samples::{bare, gone, live, part, rendered, rendered_with, rich},
};
use everfeed_adapters::{
    Body, Category, Element, Enclosure, Entry, Image, Link, Metadata, Node, Person, Source, Text,
};
use std::sync::Arc;

fn representation(audience: Audience) -> Representation {
    Representation::with_suffix(audience, "rdf").unwrap()
}

#[test]
fn the_channel_lists_its_items_and_has_what_rdf_demands() {
    // D-1, D-3, D-5, D-6.
    let document = rendered_with(
        representation(Audience::Full),
        vec![bare(), gone(3)],
        |around| {
            around.ttl_mins = Some(60);
            around.prev_cursor = Some("1_0_2".into());
            around.feed.metadata = Arc::new(Metadata {
                language: Some("en-GB".into()),
                image: Some(Image {
                    url: "http://example.org/i.png".into(),
                    ..Image::default()
                }),
                ..(*around.feed.metadata).clone()
            });
        },
    );
    assert!(
        document.contains("<rdf:RDF xml:lang=\"en-GB\" xmlns:rdf="),
        "{document}"
    );
    assert_eq!(
        part(&document, "<channel", "</channel>"),
        [
            r#"<channel rdf:about="http://127.0.0.1/feeds/x.rdf?order=modified">"#,
            "<title>Old &amp; good</title>",
            "<link>http://example.org/</link>",
            "<description>A blog</description>",
            r#"<image rdf:resource="http://example.org/i.png"/>"#,
            "<dc:language>en-GB</dc:language>",
            "<dc:date>2014-01-06T10:18:47Z</dc:date>",
            "<sy:updatePeriod>hourly</sy:updatePeriod>",
            "<sy:updateFrequency>1</sy:updateFrequency>",
            "<fo:total>3</fo:total>",
            "<fo:prev_cursor>1_0_2</fo:prev_cursor>",
            "<fo:last_cursor>1389003999_0_2040335985</fo:last_cursor>",
            "<items>",
            "<rdf:Seq>",
            r#"<rdf:li rdf:resource="tag:example.org,2005:2"/>"#,
            "</rdf:Seq>",
            "</items>",
            "</channel>",
        ]
    );
    assert_eq!(
        part(&document, "<image rdf:about", "</image>"),
        [
            r#"<image rdf:about="http://example.org/i.png">"#,
            "<title>Old &amp; good</title>",
            "<url>http://example.org/i.png</url>",
            "<link>http://example.org/</link>",
            "</image>",
        ]
    );
    assert_eq!(
        part(&document, "<at:", "</at:"),
        [
            r#"<at:deleted-entry rdf:about="tag:example.org,2005:3">"#,
            "<at:comment>explicit</at:comment>",
            "<fo:id>03030303030303030303</fo:id>",
            "<fo:edited>2014-01-06T10:18:50Z</fo:edited>",
            "</at:deleted-entry>",
        ]
    );
}

#[test]
fn a_post_keeps_what_rdf_can_say() {
    let document = rendered(representation(Audience::Classic), vec![rich()]);
    assert_eq!(
        part(&document, "<item ", "</item>"),
        [
            r#"<item rdf:about="tag:example.org,2005:1" xml:lang="en">"#,
            "<title>Fish &amp; chips</title>",
            "<link>http://example.org/1?a=b&amp;c=d</link>",
            "<description>1 &amp;lt; 2</description>",
            "<content:encoded>&lt;p&gt;hi &amp;amp; bye&lt;/p&gt;</content:encoded>",
            "<dc:creator>Ann</dc:creator>",
            "<dc:contributor>Cal</dc:contributor>",
            "<dc:subject>fish</dc:subject>",
            "<dc:date>2005-11-15T03:22:41Z</dc:date>",
            "<dcterms:issued>2005-11-15T03:22:41Z</dcterms:issued>",
            "<dcterms:modified>2014-01-06T10:18:47Z</dcterms:modified>",
            "<dc:rights>© Ann</dc:rights>",
            "<dc:source>http://example.com/feed</dc:source>",
            r#"<annotate:reference rdf:resource="http://example.org/1#comments"/>"#,
            r#"<enc:enclosure rdf:resource="http://example.org/a.mp3" enc:type="audio/mpeg" enc:length="1234"/>"#,
            r#"<enc:enclosure rdf:resource="http://example.org/b.mp3" enc:type="audio/mpeg" enc:length="1234"/>"#,
            "</item>",
        ]
    );
}

#[test]
fn title_and_link_are_always_there_and_nothing_is_repeated() {
    // D-1, D-3.
    let document = rendered(representation(Audience::Classic), vec![bare(), gone(3)]);
    assert!(
        !document.contains("at:deleted-entry") && !document.contains("fo:"),
        "{document}"
    );
    assert_eq!(
        part(&document, "<item ", "</item>")[1..3],
        [
            "<title>tag:example.org,2005:2</title>",
            "<link>http://example.org/</link>"
        ]
    );
    let link = |rel: &str, href: &str| Link {
        rel: rel.into(),
        href: href.into(),
        ..Link::default()
    };
    let source = Source {
        links: vec![link("alternate", "http://s.example/")],
        ..Source::default()
    };
    let mut post = Entry {
        content: Some(Body {
            text: Text::html("<p>First <b>words</b></p><p>next</p>"),
            ..Body::default()
        }),
        links: vec![
            link("alternate", "mailto:a@e.org"),
            link("alternate", "HTTP://e.org/1"),
        ],
        enclosures: vec![Enclosure {
            url: "ftp://e.org/1.mp3".into(),
            ..Enclosure::default()
        }],
        source: Some(Box::new(source)),
        ..Entry::default()
    };
    let texts = |post: &Entry| {
        let document = rendered(
            representation(Audience::Classic),
            vec![live(1, post.clone())],
        );
        part(&document, "<item ", "</item>")[1..3]
            .iter()
            .map(|line| (*line).to_owned())
            .collect::<Vec<_>>()
    };
    // D-4.
    assert_eq!(
        texts(&post),
        [
            "<title>First words next</title>",
            "<link>HTTP://e.org/1</link>"
        ]
    );
    post.links.clear();
    assert_eq!(texts(&post)[1], "<link>ftp://e.org/1.mp3</link>");
    (post.enclosures, post.content) = (vec![], None);
    assert_eq!(
        texts(&post),
        [
            "<title>http://s.example/</title>",
            "<link>http://s.example/</link>"
        ]
    );
    let person = |name: &str| Person {
        name: Some(name.into()),
        ..Person::default()
    };
    let category = |term: &str| Category {
        term: term.into(),
        ..Category::default()
    };
    let entry = Entry {
        title: Some(Text::plain("t")),
        authors: vec![person("Ann"), person("Bob")],
        categories: vec![category("a"), category(" "), category("b")],
        ..Entry::default()
    };
    let document = rendered(representation(Audience::Classic), vec![live(1, entry)]);
    assert!(
        document.contains("<dc:creator>Ann; Bob</dc:creator>"),
        "{document}"
    );
    assert!(
        document.contains("<dc:subject>a; b</dc:subject>"),
        "{document}"
    );
}

#[test]
fn markup_that_rdf_would_read_otherwise_is_left_out() {
    let element = |ns: &str, prefix: &str, name: &str| Element {
        ns: ns.into(),
        prefix: prefix.into(),
        name: name.into(),
        children: vec![Node::Text("x".into())],
        ..Element::default()
    };
    let mut nested = element("urn:a", "a", "nested");
    nested.children = vec![Node::Element(element("urn:a", "a", "inner"))];
    let rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
    let foreign = vec![
        element("urn:a", "a", "words"),
        nested,
        element("", "", "bare"),
        element(rdf, "rdf", "Description"),
    ];
    let document = rendered(
        representation(Audience::Classic),
        vec![live(
            1,
            Entry {
                foreign,
                ..Entry::default()
            },
        )],
    );
    let lines = part(&document, "<item ", "</item>");
    assert_eq!(
        lines[5..],
        [r#"<a:words xmlns:a="urn:a">x</a:words>"#, "</item>"],
        "{document}"
    );
}

#[test]
fn a_picture_keeps_its_title_and_a_search_box_comes_out() {
    let document = rendered_with(representation(Audience::Classic), vec![bare()], |around| {
        let source = b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>\
            <channel rdf:about='http://e.org/'><title>t</title><link>http://e.org/</link>\
            <image rdf:resource='http://e.org/i.png'/><textinput rdf:resource='http://e.org/s'/></channel>\
            <image rdf:about='http://e.org/i.png'><title>A kettle</title><url>http://e.org/i.png</url>\
            <link>http://e.org/kettle</link></image>\
            <textinput rdf:about='http://e.org/s'><title>Go</title><description>Search the blog</description>\
            <name>q</name><link>http://e.org/s</link></textinput></rdf:RDF>";
        let read = everfeed_adapters::parse(source, &everfeed_adapters::Hints::default()).unwrap();
        around.feed.metadata = Arc::new(read.metadata);
    });
    let picture = [
        "<title>A kettle</title>",
        "<url>http://e.org/i.png</url>",
        "<link>http://e.org/kettle</link>",
    ];
    assert_eq!(
        part(&document, "<image rdf:about", "</image>")[1..4],
        picture
    );
    assert!(
        document.contains("<textinput rdf:resource=\"http://e.org/s\"/>"),
        "{document}"
    );
    let search = [
        "<textinput rdf:about=\"http://e.org/s\">",
        "<title>Go</title>",
        "<description>Search the blog</description>",
        "<name>q</name>",
        "<link>http://e.org/s</link>",
        "</textinput>",
    ];
    assert_eq!(
        part(&document, "<textinput rdf:about", "</textinput>"),
        search
    );
}
