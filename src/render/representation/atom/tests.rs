//! Atom documents line by line.

use crate::{
    feed::{item::Item, stamp::Stamp},
    render::representation::Representation,
    render::samples::{bare, gone, link, live, metadata, part, rendered, rendered_with, rich},
};
use everfeed_adapters::{
    Body, Category, Element, Entry, Image, Link, Metadata, Person, Source, Text, TextKind,
};
use std::sync::Arc;

/// The lines of the entry of a live post.
fn entry(entry: Entry) -> Vec<String> {
    let document = rendered(Representation::ATOM, vec![live(1, entry)]);
    part(&document, "<entry", "</entry>")
        .into_iter()
        .map(str::to_owned)
        .collect()
}

#[track_caller]
fn check(changed: Entry, holds: &[&str]) {
    let lines = entry(changed);
    for line in holds {
        assert!(
            lines.iter().any(|found| found == line),
            "no {line} in\n{}",
            lines.join("\n")
        );
    }
}

#[test]
fn a_page_says_where_it_stands_and_how_to_go_on() {
    // A-1..A-4, SF-56..SF-59, SF-62.
    let document = rendered_with(Representation::ATOM, vec![], |around| {
        around.page.more = true;
        around.links.next =
            Some("http://127.0.0.1/feeds/x.atom?order=modified&since=cursor%3A1_0_2&max=1".into());
    });
    assert_eq!(
        document,
        r#"<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fo="http://fanout.org/protocol/atom" xmlns:at="http://purl.org/atompub/tombstones/1.0" xmlns:app="http://www.w3.org/2007/app">
  <id>urn:uuid:ce131090-7622-5725-96e5-0ac6c19dd563</id>
  <title type="html">Old &amp;amp; good</title>
  <subtitle>A blog</subtitle>
  <updated>2014-01-06T10:18:47Z</updated>
  <author>
    <name>Old &amp; good</name>
  </author>
  <link rel="self" type="application/atom+xml" href="http://127.0.0.1/feeds/x.atom?order=modified"/>
  <link rel="hub" href="http://127.0.0.1/hub"/>
  <link rel="next" type="application/atom+xml" href="http://127.0.0.1/feeds/x.atom?order=modified&amp;since=cursor%3A1_0_2&amp;max=1"/>
  <link rel="alternate" type="text/html" href="http://example.org/"/>
  <link rel="alternate" type="application/json" title="Smart Feed (JSON)" href="http://127.0.0.1/feeds/x.json?order=modified"/>
  <link rel="alternate" type="application/atom+xml" title="Newest posts (Atom)" href="http://127.0.0.1/feeds/x/classic.atom"/>
  <link rel="alternate" type="application/rss+xml" title="Newest posts (RSS)" href="http://127.0.0.1/feeds/x/classic.rss"/>
  <link rel="alternate" type="application/feed+json" title="Newest posts (JSON Feed)" href="http://127.0.0.1/feeds/x/classic.jsonfeed"/>
  <link rel="describedby" type="text/html" title="About this feed" href="http://127.0.0.1/feeds/x/about"/>
  <link rel="alternate" href="http://example.org/"/>
  <generator version="VERSION">everfeed</generator>
  <fo:total>3</fo:total>
  <fo:last_cursor>1389003999_0_2040335985</fo:last_cursor>
</feed>
"#
        .replace("VERSION", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn a_push_names_the_cursor_before_it_and_no_next_page() {
    // SF-83..SF-85.
    let document = rendered_with(Representation::ATOM, vec![bare()], |around| {
        around.prev_cursor = Some("1389003527_0_3678689003".into());
        around.page.more = true;
        around.links.next = Some("http://127.0.0.1/next".into());
    });
    assert_eq!(
        part(&document, "<fo:total>", "<fo:last_cursor>"),
        [
            "<fo:total>3</fo:total>",
            "<fo:prev_cursor>1389003527_0_3678689003</fo:prev_cursor>",
            "<fo:last_cursor>1389003999_0_2040335985</fo:last_cursor>",
        ]
    );
    assert!(!document.contains("rel=\"next\""));
    let first = rendered_with(Representation::ATOM, vec![], |around| {
        around.prev_cursor = Some(String::new())
    });
    assert!(
        first.contains("<fo:prev_cursor></fo:prev_cursor>"),
        "the first push comes after nothing"
    );
}

#[test]
fn a_post_keeps_all_that_it_has() {
    // SF-60, A-4, A-5, A-10..A-12, SF-94, RFC 4685 section 4.
    let document = rendered(Representation::ATOM, vec![rich()]);
    assert_eq!(
        part(&document, "<entry", "</entry>"),
        [
            r#"<entry xml:lang="en">"#,
            "<id>tag:example.org,2005:1</id>",
            r#"<title type="html">Fish &amp;amp; &lt;b&gt;chips&lt;/b&gt;</title>"#,
            "<updated>2014-01-06T10:18:47Z</updated>",
            "<published>2005-11-15T03:22:41Z</published>",
            "<app:edited>2014-01-06T10:18:48Z</app:edited>",
            "<author>",
            "<name>Ann</name>",
            "<uri>http://example.org/Ann</uri>",
            "<email>ann@example.org</email>",
            "</author>",
            "<contributor>",
            "<name>Cal</name>",
            "</contributor>",
            r#"<link rel="alternate" href="http://example.org/1?a=b&amp;c=d"/>"#,
            r#"<link rel="related" href="http://example.org/2"/>"#,
            r#"<link rel="enclosure" type="audio/mpeg" href="http://example.org/a.mp3" length="1234"/>"#,
            r#"<link rel="enclosure" type="audio/mpeg" href="http://example.org/b.mp3" length="1234"/>"#,
            r#"<link rel="replies" type="text/html" href="http://example.org/1#comments"/>"#,
            r#"<category term="fish" scheme="http://example.org/tags" label="Fish"/>"#,
            "<rights>© Ann</rights>",
            "<summary>1 &lt; 2</summary>",
            r#"<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>hi &amp; bye</p></div></content>"#,
            "<source>",
            "<id>tag:example.com,2005:feed</id>",
            "<title>Elsewhere</title>",
            "<updated>2014-01-06T10:18:47Z</updated>",
            r#"<link rel="self" href="http://example.com/feed"/>"#,
            "</source>",
            r#"<media:credit xmlns:media="http://search.yahoo.com/mrss/" role="author">Ann &amp; Bob</media:credit>"#,
            "<fo:id>01010101010101010101</fo:id>",
            "</entry>",
        ]
    );
}

#[test]
fn a_tombstone_is_told_in_both_tongues() {
    // D-13, H-30..H-32, SF-60.
    let document = rendered(Representation::ATOM, vec![gone(3)]);
    assert_eq!(
        part(&document, "<at:deleted-entry", "</entry>"),
        [
            r#"<at:deleted-entry ref="tag:example.org,2005:3" when="2014-01-06T10:18:50Z">"#,
            "<at:comment>explicit</at:comment>",
            "<fo:id>03030303030303030303</fo:id>",
            "</at:deleted-entry>",
            "<entry>",
            "<id>tag:example.org,2005:3</id>",
            "<title>(deleted)</title>",
            "<updated>2014-01-06T10:18:50Z</updated>",
            "<app:edited>2014-01-06T10:18:50Z</app:edited>",
            "<content></content>",
            "<fo:id>03030303030303030303</fo:id>",
            "<fo:deleted>true</fo:deleted>",
            "</entry>",
        ]
    );
}

#[test]
fn the_classic_view_is_plain_atom() {
    let document = rendered_with(
        Representation::CLASSIC_ATOM,
        vec![bare(), gone(3), rich()],
        |around| {
            around.page.more = true;
            around.links.next = Some("http://127.0.0.1/next".into());
        },
    );
    for absent in [
        "fo:",
        "at:",
        "app:",
        "rel=\"next\"",
        "tag:example.org,2005:3",
        "cursor",
    ] {
        assert!(!document.contains(absent), "{absent}");
    }
    assert_eq!(document.matches("<entry").count(), 2);
    assert!(document.contains(r#"<link rel="hub" href="http://127.0.0.1/hub"/>"#));
}

#[test]
fn a_head_shows_its_pictures_and_who_helps() {
    let document = rendered_with(Representation::CLASSIC_ATOM, vec![], |around| {
        around.feed.metadata = Arc::new(Metadata {
            contributors: vec![Person {
                name: Some("Bo".into()),
                ..Person::default()
            }],
            image: Some(Image {
                url: "http://example.org/logo.png".into(),
                ..Image::default()
            }),
            icon: Some("http://example.org/icon.png".into()),
            ..Metadata::default()
        });
    });
    for line in [
        "<logo>http://example.org/logo.png</logo>",
        "<icon>http://example.org/icon.png</icon>",
        "<contributor>",
        "<name>Bo</name>",
    ] {
        assert!(
            document.lines().any(|found| found.trim() == line),
            "{line} in {document}"
        );
    }
}

#[test]
fn an_item_is_written_the_same_in_every_document() {
    for format in [
        Representation::ATOM,
        Representation::CLASSIC_ATOM,
        Representation::CLASSIC_RSS,
    ] {
        let (from, to) = if format == Representation::CLASSIC_RSS {
            ("<item", "</item>")
        } else {
            ("<entry", "</entry>")
        };
        let alone = rendered(format, vec![rich()]);
        let elsewhere = rendered_with(format, vec![rich(), bare()], |around| {
            around.feed.metadata = Arc::new(Metadata {
                authors: vec![Person {
                    name: Some("Other".into()),
                    ..Person::default()
                }],
                language: Some("de".into()),
                ..Metadata::default()
            });
            around.prev_cursor = Some("p".into());
        });
        assert_eq!(part(&alone, from, to), part(&elsewhere, from, to));
    }
}

/// The URLs of the first and of the last alternate.
fn ends(part: &str) -> (String, String) {
    let alternates = part.match_indices("rel=\"alternate\"").map(|(at, _)| {
        part[at..]
            .split("href=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .unwrap()
            .to_owned()
    });
    let alternates: Vec<_> = alternates.collect();
    (
        alternates.first().unwrap().clone(),
        alternates.last().unwrap().clone(),
    )
}

#[test]
fn readers_that_take_the_first_alternate_or_the_last_get_the_page() {
    // Most take the first `rel="alternate"` of a feed and of an entry, whatever its type; newsboat
    // takes the last.
    let typed = |media_type: &str, href: &str| Link {
        media_type: Some(media_type.into()),
        ..link("alternate", href)
    };
    let page = |href: &str| (href.to_owned(), href.to_owned());
    for representation in [Representation::ATOM, Representation::CLASSIC_ATOM] {
        let entry = Entry {
            links: vec![
                typed("application/pdf", "http://example.org/1.pdf"),
                typed("text/html", "http://example.org/1"),
                typed("text/html", "http://example.org/dropped"),
                link("related", "http://example.org/2"),
            ],
            ..Entry::default()
        };
        let document = |links: Vec<Link>| {
            rendered_with(representation, vec![live(1, entry.clone())], |around| {
                around.feed.metadata = Arc::new(Metadata {
                    links,
                    ..metadata()
                });
            })
        };
        let found = document(vec![
            typed("application/json", "http://example.org/j"),
            link("alternate", "http://example.org/"),
            typed("application/xhtml+xml", "http://example.org/x"),
        ]);
        let (head, entry) = found.split_once("<entry").unwrap();
        assert_eq!(ends(head), page("http://example.org/"), "{head}");
        assert_eq!(ends(entry), page("http://example.org/1"), "{entry}");
        assert!(
            !entry.contains("dropped") && entry.contains("1.pdf"),
            "{entry}"
        );
        // A site without a page for people has the one that we make.
        for links in [
            vec![],
            vec![typed("application/json", "http://example.org/j")],
        ] {
            let found = document(links);
            let (head, _) = found.split_once("<entry").unwrap();
            assert_eq!(
                ends(head),
                page("http://127.0.0.1/feeds/x/classic.html"),
                "{head}"
            );
        }
    }
}

#[test]
fn a_lone_alternate_is_written_once() {
    let page = Entry {
        links: vec![link("alternate", "http://example.org/1")],
        ..Entry::default()
    };
    assert_eq!(
        entry(page)
            .iter()
            .filter(|line| line.contains("alternate"))
            .count(),
        1
    );
}

#[test]
fn who_asks_for_nothing_that_is_gone_gets_no_entry_for_it() {
    let document = |is_live_view| {
        rendered_with(Representation::ATOM, vec![gone(3), bare()], |around| {
            around.links.is_live_view = is_live_view;
        })
    };
    assert!(document(false).contains("(deleted)"));
    let found = document(true);
    assert!(
        !found.contains("(deleted)") && !found.contains("fo:deleted"),
        "{found}"
    );
    assert_eq!(
        (
            found.matches("<entry>").count(),
            found.matches("<at:deleted-entry").count()
        ),
        (1, 1)
    );
}

#[test]
fn an_entry_without_content_has_an_alternate_or_is_empty() {
    // A-6, samples/a6.
    check(
        Entry::default(),
        &["<title></title>", "<content></content>"],
    );
    let linked = Entry {
        links: vec![link("alternate", "http://example.org/1")],
        ..Entry::default()
    };
    assert!(
        !entry(linked)
            .iter()
            .any(|line| line.starts_with("<content"))
    );
    let related = Entry {
        links: vec![link("related", "http://example.org/1")],
        ..Entry::default()
    };
    check(related, &["<content></content>"]);
}

#[test]
fn each_kind_of_content_is_written_as_atom_wants_it() {
    // RFC 4287 section 4.1.3.3, A-7, A-10.
    let of = |body| Entry {
        content: Some(body),
        ..Entry::default()
    };
    let body = |kind, value: &str| Body {
        text: Text {
            kind,
            value: value.into(),
            ..Text::default()
        },
        ..Body::default()
    };
    let typed = |media_type: &str, value: &str| Body {
        media_type: Some(media_type.into()),
        ..body(TextKind::Plain, value)
    };
    check(
        of(body(TextKind::Plain, "a<b")),
        &["<content>a&lt;b</content>"],
    );
    check(
        of(body(TextKind::Html, "<p>a")),
        &[r#"<content type="html">&lt;p&gt;a</content>"#],
    );
    check(
        of(body(TextKind::Xhtml, "<p>a")),
        &[r#"<content type="html">&lt;p&gt;a</content>"#],
    );
    check(
        of(typed("text/x-note; charset=x", "a<b")),
        &[r#"<content type="text/x-note">a&lt;b</content>"#],
    );
    check(
        of(Body {
            media_type: Some("image/png".into()),
            ..body(TextKind::Base64, "AAAA")
        }),
        &[
            "<summary></summary>",
            r#"<content type="image/png">AAAA</content>"#,
        ],
    );
    check(
        of(body(TextKind::Base64, "AAAA")),
        &[
            "<summary></summary>",
            r#"<content type="application/octet-stream">AAAA</content>"#,
        ],
    );
    check(
        of(typed("application/json", "{}")),
        &[
            "<summary></summary>",
            r#"<content type="application/json">e30=</content>"#,
        ],
    );
    check(
        of(typed("image/svg+xml", "<svg xmlns='urn:svg'/>")),
        &[r#"<content type="image/svg+xml"><svg xmlns="urn:svg"/></content>"#],
    );
    check(
        of(typed("image/svg+xml", "<svg>")),
        &["<content>&lt;svg&gt;</content>"],
    );
    let pointed = Body {
        src: Some("http://example.org/a b".into()),
        ..typed("audio/ogg", "")
    };
    check(
        of(pointed),
        &[
            "<summary></summary>",
            r#"<content type="audio/ogg" src="http://example.org/a%20b"/>"#,
        ],
    );
}

#[test]
fn people_always_have_a_name_and_only_whole_addresses() {
    let person = |name: &str, email: &str, uri: &str| Person {
        name: Some(name.into()),
        email: Some(email.into()),
        uri: Some(uri.into()),
        byline: None,
    };
    let authors = vec![
        person(" ", "ann@example.org", ""),
        person("Bob", "bob at example", "u"),
        Person::default(),
    ];
    let lines = entry(Entry {
        authors,
        ..Entry::default()
    });
    let start = lines.iter().position(|line| line == "<author>").unwrap();
    assert_eq!(
        lines[start..start + 8],
        [
            "<author>",
            "<name>ann@example.org</name>",
            "<email>ann@example.org</email>",
            "</author>",
            "<author>",
            "<name>Bob</name>",
            "<uri>u</uri>",
            "</author>",
        ]
    );
    assert_eq!(
        lines.iter().filter(|line| *line == "<author>").count(),
        2,
        "nobody is no author"
    );
}

#[test]
fn an_entry_carries_no_link_that_belongs_to_a_feed() {
    // H-27.
    let rels = [
        "self",
        "hub",
        "next",
        "prev-archive",
        "enclosure",
        "http://www.iana.org/assignments/relation/next",
    ];
    let links = rels
        .iter()
        .map(|rel| link(rel, "http://example.org/"))
        .chain([link("via", "http://e/")]);
    let lines = entry(Entry {
        links: links.collect(),
        ..Entry::default()
    });
    let links: Vec<_> = lines
        .iter()
        .filter(|line| line.starts_with("<link"))
        .collect();
    assert_eq!(links, [r#"<link rel="via" href="http://e/"/>"#]);
}

// RFC 4685 section 4.
#[test]
fn the_page_of_the_comments_is_linked_beside_their_feed() {
    let feed = Link {
        media_type: Some("application/rss+xml".into()),
        ..link("replies", "http://e/feed")
    };
    let comments = Some("http://e/page".to_owned());
    let lines = entry(Entry {
        links: vec![feed],
        comments,
        ..Entry::default()
    });
    let links: Vec<_> = lines
        .iter()
        .filter(|line| line.starts_with("<link"))
        .collect();
    let expect = [
        r#"<link rel="replies" type="application/rss+xml" href="http://e/feed"/>"#,
        r#"<link rel="replies" type="text/html" href="http://e/page"/>"#,
    ];
    assert_eq!(links, expect);
}

#[test]
fn a_source_says_what_is_known_of_it() {
    let links = vec![
        link("self", "http://s/"),
        link("alternate", "http://t/"),
        link("alternate", "javascript:x"),
    ];
    let source = Source {
        title: Some(Text::plain("S")),
        links,
        ..Source::default()
    };
    let check_source = |source: Source, expect: &[&str]| {
        check(
            Entry {
                source: Some(Box::new(source)),
                ..Entry::default()
            },
            expect,
        );
    };
    let links = [
        r#"<link rel="self" href="http://s/"/>"#,
        r#"<link rel="alternate" href="http://t/"/>"#,
    ];
    check_source(
        source.clone(),
        &[
            "<source>",
            "<title>S</title>",
            links[0],
            links[1],
            "</source>",
        ],
    );
    let id = Source {
        id: Some("urn:x:1".into()),
        ..Source::default()
    };
    check_source(id, &["<source>", "<id>urn:x:1</id>", "</source>"]);
    let nameless = Source {
        title: None,
        ..source
    };
    check_source(nameless, &[r#"<link rel="via" href="http://s/"/>"#]);
}

#[test]
fn an_upstream_that_is_a_smart_feed_does_not_speak_for_us() {
    let element = |ns: &str, name: &str| Element {
        ns: ns.into(),
        name: name.into(),
        ..Element::default()
    };
    let foreign = vec![
        element("http://fanout.org/protocol/atom", "id"),
        element("http://fanout.org/protocol/atom\u{1}", "id"),
        element("http://purl.org/atompub/tombstones/1.0", "comment"),
        element("http://purl.org/syndication/history/1.0", "prev"),
        element("http://www.w3.org/2005/Atom", "id"),
        element("http://www.w3.org/2007/app", "edited"),
        element("http://www.w3.org/2007/app", "control"),
    ];
    let lines = entry(Entry {
        foreign,
        ..Entry::default()
    });
    assert_eq!(
        lines[5..],
        [
            "<content></content>",
            "<app:control/>",
            "<fo:id>01010101010101010101</fo:id>",
            "</entry>"
        ]
    );
}

#[test]
fn a_feed_that_says_nothing_of_itself_still_has_what_atom_demands() {
    // A-1, A-2.
    let document = rendered_with(Representation::ATOM, vec![], |around| {
        around.feed.metadata = Arc::default();
        around.feed.last_t = Stamp::ZERO;
        around.page.last_cursor = String::new();
    });
    assert_eq!(
        part(&document, "<title", "</author>"),
        [
            "<title>example.org</title>",
            "<updated>2000-01-01T00:00:00Z</updated>",
            "<author>",
            "<name>example.org</name>",
            "</author>",
        ]
    );
    assert!(document.contains("<fo:last_cursor></fo:last_cursor>"));
}

#[test]
fn the_id_of_a_feed_outlives_its_name() {
    let id = |change: fn(&mut crate::render::samples::Around)| {
        let document = rendered_with(Representation::ATOM, vec![], change);
        part(&document, "<id>", "<id>")[0].to_owned()
    };
    let before = id(|_| {});
    assert_eq!(before, id(|around| around.feed.name = "renamed".into()));
    assert_eq!(
        before,
        id(|around| around.links.base = "http://elsewhere/".into())
    );
    assert_ne!(
        before,
        id(|around| around.feed.ids.namespace = "example.com/".into())
    );
}

#[test]
fn an_item_that_came_back_is_updated_then() {
    let revived = Item {
        revived: Some(Stamp::from_secs(1_389_003_528)),
        ..rich()
    };
    let document = rendered(Representation::ATOM, vec![revived]);
    assert!(
        part(&document, "<entry", "</entry>").contains(&"<updated>2014-01-06T10:18:48Z</updated>")
    );
}

#[test]
fn the_scheme_of_a_category_is_an_iri() {
    // RFC 4287 section 4.2.2.2; the `domain` of RSS may be any text.
    let category = |scheme: &str| {
        let category = Category {
            term: "fish".into(),
            scheme: Some(scheme.into()),
            ..Category::default()
        };
        let item = live(
            1,
            Entry {
                categories: vec![category],
                ..Entry::default()
            },
        );
        part(
            &rendered(Representation::ATOM, vec![item]),
            "<category",
            "<category",
        )[0]
        .to_owned()
    };
    assert_eq!(
        category("http://e.org/tags"),
        r#"<category term="fish" scheme="http://e.org/tags"/>"#
    );
    assert_eq!(
        category("tag:e.org,2005:tags"),
        r#"<category term="fish" scheme="tag:e.org,2005:tags"/>"#
    );
    for text in ["Syndic8", "my tags", "/tags", ""] {
        assert_eq!(category(text), r#"<category term="fish"/>"#, "{text}");
    }
}
