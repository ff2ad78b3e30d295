//! RSS documents line by line.

use crate::{
    feed::item::PublisherId,
    render::document::Audience,
    render::representation::Representation,
    render::samples::{bare, gone, link, live, part, rendered, rendered_with, rich},
};
use everfeed_adapters::{
    Attribute, Body, Element, Enclosure, Entry, Image, IsPermaLink, Metadata, Node, Person, Rhythm,
    Text, TextKind,
};
use std::sync::Arc;

fn item(entry: Entry) -> Vec<String> {
    let document = rendered(Representation::CLASSIC_RSS, vec![live(1, entry)]);
    part(&document, "<item", "</item>")
        .into_iter()
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_channel_has_what_rss_demands() {
    // R-1, R-5, R-11, L-3.
    let document = rendered_with(Representation::CLASSIC_RSS, vec![], |around| {
        around.ttl_mins = Some(60);
        around.feed.metadata = Arc::new(Metadata {
            language: Some("en-GB".into()),
            rights: Some(Text::plain("© Ann")),
            image: Some(Image {
                url: "http://example.org/i.png".into(),
                ..Image::default()
            }),
            ..(*around.feed.metadata).clone()
        });
    });
    assert_eq!(
        part(&document, "<channel>", "</channel>"),
        [
            "<channel>",
            "<title>Old &amp; good</title>",
            "<link>http://example.org/</link>",
            "<description>A blog</description>",
            "<language>en-GB</language>",
            "<copyright>© Ann</copyright>",
            "<lastBuildDate>Mon, 06 Jan 2014 10:18:47 GMT</lastBuildDate>",
            concat!(
                "<generator>everfeed ",
                env!("CARGO_PKG_VERSION"),
                "</generator>"
            ),
            "<ttl>60</ttl>",
            "<sy:updatePeriod>hourly</sy:updatePeriod>",
            "<sy:updateFrequency>1</sy:updateFrequency>",
            "<image>",
            "<url>http://example.org/i.png</url>",
            "<title>Old &amp; good</title>",
            "<link>http://example.org/</link>",
            "</image>",
            r#"<atom:link rel="self" type="application/rss+xml" href="http://127.0.0.1/feeds/x/classic.rss"/>"#,
            r#"<atom:link rel="hub" href="http://127.0.0.1/hub"/>"#,
            "</channel>",
        ]
    );
}

#[test]
fn a_channel_without_a_site_leads_to_the_page_about_it() {
    let document = rendered_with(Representation::CLASSIC_RSS, vec![], |around| {
        around.feed.metadata = Arc::default()
    });
    assert_eq!(
        part(&document, "<title>", "<description>"),
        [
            "<title>example.org</title>",
            "<link>http://127.0.0.1/feeds/x/about</link>",
            "<description>example.org</description>",
        ]
    );
    assert!(!document.contains("<ttl>"));
}

#[test]
fn a_post_keeps_what_rss_can_say() {
    // R-2..R-9.
    let document = rendered(Representation::CLASSIC_RSS, vec![rich()]);
    assert_eq!(
        part(&document, "<item", "</item>"),
        [
            "<item>",
            "<title>Fish &amp; chips</title>",
            "<link>http://example.org/1?a=b&amp;c=d</link>",
            "<description>1 &amp;lt; 2</description>",
            "<content:encoded>&lt;p&gt;hi &amp;amp; bye&lt;/p&gt;</content:encoded>",
            "<author>ann@example.org (Ann)</author>",
            "<dc:contributor>Cal</dc:contributor>",
            r#"<category domain="http://example.org/tags">fish</category>"#,
            "<comments>http://example.org/1#comments</comments>",
            r#"<enclosure url="http://example.org/a.mp3" length="1234" type="audio/mpeg"/>"#,
            r#"<media:content url="http://example.org/b.mp3" fileSize="1234" type="audio/mpeg"/>"#,
            r#"<guid isPermaLink="false">tag:example.org,2005:1</guid>"#,
            "<pubDate>Tue, 15 Nov 2005 03:22:41 GMT</pubDate>",
            "<dc:rights>© Ann</dc:rights>",
            r#"<source url="http://example.com/feed">Elsewhere</source>"#,
            r#"<media:credit role="author">Ann &amp; Bob</media:credit>"#,
            "</item>",
        ]
    );
}

#[test]
fn deleted_posts_are_left_out() {
    // R-8.
    let document = rendered(Representation::CLASSIC_RSS, vec![gone(3), bare()]);
    assert!(
        !document.contains("tag:example.org,2005:3") && document.matches("<item>").count() == 1
    );
}

#[test]
fn the_smart_feed_says_where_it_stands_and_which_posts_are_gone() {
    // SF-56..SF-60, SF-83, SF-85, H-30; R-8: a tombstone is no item.
    let full = Representation::with_suffix(Audience::Full, "rss").unwrap();
    let document = rendered_with(full, vec![gone(3), bare()], |around| {
        around.prev_cursor = Some("1_0_2".into());
    });
    assert_eq!(
        part(&document, "<fo:total", "</at:"),
        [
            "<fo:total>3</fo:total>",
            "<fo:prev_cursor>1_0_2</fo:prev_cursor>",
            "<fo:last_cursor>1389003999_0_2040335985</fo:last_cursor>",
            r#"<at:deleted-entry ref="tag:example.org,2005:3" when="2014-01-06T10:18:50Z">"#,
            "<at:comment>explicit</at:comment>",
            "<fo:id>03030303030303030303</fo:id>",
            "</at:deleted-entry>",
        ]
    );
    assert_eq!(document.matches("<item>").count(), 1);
    let item = part(&document, "<item", "</item>");
    assert_eq!(
        item[item.len() - 3..],
        [
            "<fo:id>02020202020202020202</fo:id>",
            "<fo:edited>2014-01-06T10:18:49Z</fo:edited>",
            "</item>"
        ]
    );
    let document = rendered_with(full, vec![bare()], |around| {
        around.page.more = true;
        around.links.next = Some("http://127.0.0.1/next".into());
    });
    let next = r#"<atom:link rel="next" type="application/rss+xml" href="http://127.0.0.1/next"/>"#;
    assert!(document.contains(next), "{document}");
    let classic = rendered_with(
        Representation::CLASSIC_RSS,
        vec![gone(3), bare()],
        |around| {
            around.page.more = true;
            around.links.next = Some("http://127.0.0.1/next".into());
        },
    );
    assert!(
        !classic.contains("fo:")
            && !classic.contains("at:deleted")
            && !classic.contains("\"next\"")
    );
}

#[test]
fn an_item_has_a_title_or_a_description() {
    // R-2.
    assert!(item(Entry::default()).contains(&"<title>tag:example.org,2005:1</title>".into()));
    let linked = Entry {
        links: vec![link("alternate", "http://e/1")],
        ..Entry::default()
    };
    assert!(item(linked).contains(&"<title>http://e/1</title>".into()));
    let content = Some(Body {
        text: Text::plain("a < b"),
        ..Body::default()
    });
    let lines = item(Entry {
        content,
        ..Entry::default()
    });
    assert_eq!(lines[1], "<description>a &amp;lt; b</description>");
    assert!(!lines.iter().any(|line| line.starts_with("<title>")));
}

#[test]
fn only_the_permalink_is_a_permalink_guid() {
    // R-3.
    let guid = |iri: &str, permalink: &str| {
        let entry = Entry {
            links: vec![link("alternate", permalink)],
            ..Entry::default()
        };
        let mut item = live(1, entry);
        item.iri = iri.into();
        let document = rendered(Representation::CLASSIC_RSS, vec![item]);
        part(&document, "<guid", "<guid")[0].contains("\"true\"")
    };
    assert!(guid("http://e/1", "http://e/1"));
    assert!(!guid("http://e/?p=1", "http://e/1"));
    assert!(!guid("urn:uuid:1", "urn:uuid:1"));
}

#[test]
fn the_guid_of_rss_comes_out_as_it_came_in() {
    let guid = |text: &str, is_permalink| {
        let mut item = live(1, Entry::default());
        item.iri = "urn:uuid:1".into();
        item.publisher_id = Some(PublisherId {
            text: Some(text.into()),
            is_permalink,
            ..PublisherId::default()
        });
        let document = rendered(Representation::CLASSIC_RSS, vec![item]);
        part(&document, "<guid", "<guid")[0].to_owned()
    };
    let url = "https://e.org/?p=1";
    assert_eq!(
        guid(url, Some(IsPermaLink::Unstated)),
        format!("<guid>{url}</guid>")
    );
    assert_eq!(
        guid(url, Some(IsPermaLink::True)),
        format!(r#"<guid isPermaLink="true">{url}</guid>"#)
    );
    assert_eq!(
        guid(url, Some(IsPermaLink::False)),
        format!(r#"<guid isPermaLink="false">{url}</guid>"#)
    );
    // The id of a JSON Feed says nothing of links.
    assert_eq!(
        guid(url, None),
        format!(r#"<guid isPermaLink="false">{url}</guid>"#)
    );
    // R-3: what is no web address is no permalink, whatever its source said or left unsaid.
    for said in [
        Some(IsPermaLink::Unstated),
        Some(IsPermaLink::True),
        Some(IsPermaLink::False),
        None,
    ] {
        for text in ["Post #1", "1002", "tag:e.org,2005:1", "/2005/1"] {
            assert_eq!(
                guid(text, said),
                format!(r#"<guid isPermaLink="false">{text}</guid>"#)
            );
        }
    }
}

#[test]
fn authors_without_an_address_are_creators() {
    // R-7, L-11.
    let person = |name: &str, email: Option<&str>| Person {
        name: Some(name.into()),
        email: email.map(str::to_owned),
        ..Person::default()
    };
    let check = |authors: Vec<Person>, expect: &[&str]| {
        let lines = item(Entry {
            authors,
            ..Entry::default()
        });
        let found: Vec<_> = lines
            .iter()
            .filter(|line| line.contains("author>") || line.contains("creator>"))
            .collect();
        assert_eq!(found, expect);
    };
    check(vec![person("Ann", None)], &["<dc:creator>Ann</dc:creator>"]);
    check(
        vec![person("Ann", Some("not one"))],
        &["<dc:creator>Ann</dc:creator>"],
    );
    check(vec![person("a@b", Some("a@b"))], &["<author>a@b</author>"]);
    check(
        vec![person("Ann", Some("a@b")), person("Bob", None)],
        &[
            "<dc:creator>Ann</dc:creator>",
            "<dc:creator>Bob</dc:creator>",
        ],
    );
}

#[test]
fn one_enclosure_and_no_file_twice() {
    // R-6, L-9.
    let enclosure = |url: &str| Enclosure {
        url: url.into(),
        ..Enclosure::default()
    };
    let media = Element {
        ns: super::ns::MEDIA.into(),
        prefix: "m".into(),
        name: "content".into(),
        attributes: vec![Attribute {
            name: "url".into(),
            value: "http://e/b".into(),
            ..Attribute::default()
        }],
        ..Element::default()
    };
    let lines = item(Entry {
        enclosures: vec![
            enclosure("http://e/a"),
            enclosure("http://e/b"),
            enclosure("http://e/c"),
        ],
        foreign: vec![media],
        ..Entry::default()
    });
    let files: Vec<_> = lines
        .iter()
        .filter(|line| line.contains("http://e/"))
        .collect();
    assert_eq!(
        files,
        [
            "<title>http://e/a</title>",
            r#"<enclosure url="http://e/a" length="0" type="application/octet-stream"/>"#,
            r#"<media:content url="http://e/c"/>"#,
            r#"<media:content url="http://e/b"/>"#,
        ]
    );
}

#[test]
fn foreign_markup_does_not_repeat_our_own() {
    // R-7.
    let element = |ns: &str, name: &str| Element {
        ns: ns.into(),
        name: name.into(),
        ..Element::default()
    };
    let foreign = vec![
        element("", "guid"),
        element(super::ns::DUBLIN_CORE, "creator"),
        element(super::ns::DUBLIN_CORE, "publisher"),
        element(super::ns::CONTENT, "encoded"),
        element("http://fanout.org/protocol/atom", "id"),
        element("http://www.w3.org/2005/Atom", "link"),
        element("http://www.w3.org/2005/Atom", "updated"),
    ];
    let lines = item(Entry {
        foreign,
        ..Entry::default()
    });
    assert_eq!(
        lines[4..],
        ["<dc:publisher/>", "<atom:updated/>", "</item>"]
    );
}

#[test]
fn a_document_that_is_an_item_is_described_or_enclosed() {
    let of = |kind, media_type: &str, value: &str| {
        let text = Text {
            kind,
            value: value.into(),
            ..Text::default()
        };
        Entry {
            content: Some(Body {
                text,
                media_type: Some(media_type.into()),
                ..Body::default()
            }),
            title: Some(Text::plain("x")),
            ..Entry::default()
        }
    };
    let json = item(of(TextKind::Plain, "application/json", "{\"a\":\"<b>\"}")).concat();
    assert!(
        json.contains("<description>{\"a\":\"&amp;lt;b&amp;gt;\"}</description>"),
        "{json}"
    );
    let file = Enclosure {
        url: "http://e/x.png".into(),
        media_type: Some("image/png".into()),
        length: Some("6".into()),
        title: None,
        is_illustration: false,
    };
    let picture = Entry {
        enclosures: vec![file],
        ..of(TextKind::Base64, "image/png", "iVBORw0K")
    };
    let picture = item(picture).concat();
    assert!(
        picture.contains(r#"<enclosure url="http://e/x.png" length="6" type="image/png"/>"#),
        "{picture}"
    );
    assert!(!picture.contains("iVBORw0K"), "RSS has no place for bytes");
}

/// The feed's own elements, one of each kind.
fn own_elements() -> Vec<Element> {
    let element = |ns: &str, prefix: &str, name: &str, text: &str| Element {
        ns: ns.into(),
        prefix: prefix.into(),
        name: name.into(),
        children: vec![Node::Text(text.into())],
        ..Element::default()
    };
    const ITUNES: &str = "http://www.itunes.com/dtds/podcast-1.0.dtd";
    vec![
        element(ITUNES, "itunes", "explicit", "no"),
        element(ITUNES, "itunes", "new-feed-url", "http://example.org/new"),
        element("urn:mood", "", "mood", "<calm>"),
        element("", "", "webMaster", "jo@example.org"),
        element("", "", "cloud", "unreadable"),
        element("", "", "title", "Another"),
        element(
            "http://purl.org/syndication/history/1.0",
            "fh",
            "prev",
            "http://example.org/2",
        ),
        element(
            "http://fanout.org/protocol/atom",
            "fo",
            "last_cursor",
            "1_0_1",
        ),
        element(
            "http://a9.com/-/spec/opensearch/1.1/",
            "opensearch",
            "totalResults",
            "many",
        ),
    ]
}

#[test]
fn what_a_channel_says_of_itself_comes_out_again() {
    let metadata = Metadata {
        title: Some(Text::plain("T")),
        authors: vec![Person {
            name: Some("Ann".into()),
            email: Some("ann@example.org".into()),
            ..Person::default()
        }],
        contributors: vec![Person {
            name: Some("Cal".into()),
            ..Person::default()
        }],
        links: vec![
            link("alternate", "http://example.org/"),
            link("self", "http://example.org/feed"),
            link("hub", "http://example.org/hub"),
            link("next", "http://example.org/feed?p=2"),
            link("license", "http://example.org/cc"),
        ],
        image: Some(Image {
            url: "http://example.org/i.png".into(),
            title: Some("I".into()),
            link: Some("http://example.org/i".into()),
            width: Some("88".into()),
            height: Some("tall".into()),
            description: Some("D".into()),
        }),
        rhythm: Rhythm {
            skip_hours: vec![3],
            skip_days: vec![6],
            ..Rhythm::default()
        },
        foreign: own_elements(),
        ..Metadata::default()
    };
    let write = |representation| {
        rendered_with(representation, vec![], |around| {
            around.feed.metadata = Arc::new(metadata.clone())
        })
    };
    let document = write(Representation::CLASSIC_RSS);
    let lines = part(&document, "<channel>", "</channel>");
    let from = |start: &str| lines.iter().position(|line| line.contains(start)).unwrap();
    let foreign = [
        r#"<itunes:explicit xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd">no</itunes:explicit>"#,
        r#"<ns1:mood xmlns:ns1="urn:mood">&lt;calm&gt;</ns1:mood>"#,
    ];
    assert_eq!(lines[from("rel=\"license\"")..][1..3], foreign);
    assert!(!document.contains("example.org/new"), "{document}");
    assert_eq!(
        lines[from("rel=\"license\"")..][3..],
        ["<webMaster>jo@example.org</webMaster>", "</channel>"]
    );
    assert_eq!(
        lines[from("<skipHours>")..][..14],
        [
            "<skipHours>",
            "<hour>3</hour>",
            "</skipHours>",
            "<skipDays>",
            "<day>Sunday</day>",
            "</skipDays>",
            "<image>",
            "<url>http://example.org/i.png</url>",
            "<title>I</title>",
            "<link>http://example.org/i</link>",
            "<width>88</width>",
            "<description>D</description>",
            "</image>",
            r#"<atom:link rel="self" type="application/rss+xml" href="http://127.0.0.1/feeds/x/classic.rss"/>"#,
        ]
    );
    assert!(lines.contains(&"<managingEditor>ann@example.org (Ann)</managingEditor>"));
    assert!(lines.contains(&"<dc:contributor>Cal</dc:contributor>"));

    for representation in [Representation::ATOM, Representation::CLASSIC_ATOM] {
        let document = write(representation);
        let lines = part(&document, "<feed", "</feed>");
        let from = lines
            .iter()
            .position(|line| line.contains("itunes:explicit"))
            .unwrap();
        assert_eq!(lines[from..][..2], foreign);
        assert_eq!(
            lines[from + 2],
            r#"<webMaster xmlns="">jo@example.org</webMaster>"#
        );
        assert!(lines.contains(&r#"<link rel="license" href="http://example.org/cc"/>"#));
        for left_out in [
            "unreadable",
            "Another",
            "http://example.org/2",
            "1_0_1",
            "many",
            "example.org/hub",
            "?p=2",
        ] {
            assert!(!document.contains(left_out), "{left_out} in {document}");
        }
    }
}

#[test]
fn markup_of_a_channel_is_limited() {
    let big = Element {
        ns: "urn:x".into(),
        prefix: "x".into(),
        name: "big".into(),
        children: vec![Node::Text("x".repeat(40 * 1024))],
        ..Element::default()
    };
    let small = Element {
        name: "small".into(),
        children: vec![],
        ..big.clone()
    };
    let document = rendered_with(Representation::CLASSIC_RSS, vec![], |around| {
        around.feed.metadata = Arc::new(Metadata {
            foreign: vec![big.clone(), big, small],
            ..Metadata::default()
        });
    });
    assert_eq!(
        (
            document.matches("<x:big").count(),
            document.matches("<x:small").count()
        ),
        (1, 1)
    );
}

#[test]
fn a_picture_of_media_rss_is_no_enclosure_and_a_thumbnail_hides_none() {
    let enclosure = |url: &str, is_illustration| Enclosure {
        url: url.into(),
        is_illustration,
        ..Enclosure::default()
    };
    let thumbnail = Element {
        ns: super::ns::MEDIA.into(),
        prefix: "media".into(),
        name: "thumbnail".into(),
        attributes: vec![Attribute {
            name: "url".into(),
            value: "http://e/b".into(),
            ..Attribute::default()
        }],
        ..Element::default()
    };
    let files = |enclosures: Vec<Enclosure>| {
        let lines = item(Entry {
            enclosures,
            foreign: vec![thumbnail.clone()],
            ..Entry::default()
        });
        let is_file =
            |line: &&String| line.contains("<enclosure") || line.contains("<media:content");
        lines.iter().filter(is_file).count()
    };
    assert_eq!(files(vec![enclosure("http://e/a", true)]), 0);
    assert_eq!(
        files(vec![
            enclosure("http://e/a", false),
            enclosure("http://e/b", false)
        ]),
        2
    );
}

#[test]
fn the_search_box_of_any_rss_comes_out_in_the_words_of_rss_2() {
    let boxes = [
        "<rss version='2.0'><channel><title>t</title><textInput><title>Go</title><description>d</description>\
         <name>q</name><link>http://e.org/s</link></textInput></channel></rss>",
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>\
         <channel><title>t</title></channel><textinput rdf:about='http://e.org/s'><title>Go</title>\
         <description>d</description><name>q</name><link>http://e.org/s</link></textinput></rdf:RDF>",
    ];
    for source in boxes {
        let document = rendered_with(Representation::CLASSIC_RSS, vec![], |around| {
            let hints = everfeed_adapters::Hints::default();
            let read = everfeed_adapters::parse(source.as_bytes(), &hints).unwrap();
            around.feed.metadata = Arc::new(read.metadata);
        });
        let expect = "<textInput><title>Go</title><description>d</description><name>q</name><link>http://e.org/s</link></textInput>";
        assert!(document.contains(expect), "{document}");
    }
}

#[test]
fn the_enclosure_is_the_first_file_that_is_shown() {
    let file = |url: &str| Enclosure {
        url: url.into(),
        ..Enclosure::default()
    };
    let enclosures = vec![
        file("javascript:x"),
        file("http://e.org/a.mp3"),
        file("http://e.org/b.mp3"),
    ];
    let document = rendered(
        Representation::CLASSIC_RSS,
        vec![live(
            1,
            Entry {
                enclosures,
                ..Entry::default()
            },
        )],
    );
    let files: Vec<_> = document
        .lines()
        .map(str::trim)
        .filter(|line| line.contains("url=\"http"))
        .collect();
    assert!(
        files[0].starts_with("<enclosure url=\"http://e.org/a.mp3\""),
        "{document}"
    );
    assert!(
        files[1].starts_with("<media:content url=\"http://e.org/b.mp3\""),
        "{document}"
    );
}
