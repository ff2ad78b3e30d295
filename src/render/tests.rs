//! From the bytes of an upstream to the bytes of our documents: what its markup and its links come
//! to.

use super::{
    document::ItemContext,
    representation::Representation,
    samples::{bare, feed, gone, live, metadata, rendered, rich},
};
use crate::feed::item::{Item, PublisherId};
use everfeed_adapters::{Date, Entry, Hints, slice};
use quick_xml::{NsReader, events::Event, name::ResolveResult};

/// The only entry of a document, rendered in a representation.
fn through(document: &str, representation: Representation) -> String {
    let hints = Hints {
        base_url: Some("http://example.org/feed"),
        ..Hints::default()
    };
    let window = slice(document.as_bytes(), &hints).unwrap();
    let (entry, _) = window.entries[0].parse();
    rendered(representation, vec![live(1, entry)])
}

fn atom(inside: &str) -> String {
    format!(
        "<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>urn:x:1</id>{inside}</entry></feed>"
    )
}

#[track_caller]
fn check(inside: &str, representation: Representation, expect: &str) {
    let found = through(&atom(inside), representation);
    assert!(found.contains(expect), "no {expect} in\n{found}");
}

#[test]
fn a_value_of_xhtml_cannot_break_out_of_its_quotes() {
    // PARSING section 0.5.
    let content = r#"<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p title="x&quot; onmouseover=&quot;alert(1)">a</p></div></content>"#;
    let xhtml = r#"<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p title="x&quot; onmouseover=&quot;alert(1)">a</p></div></content>"#;
    check(content, Representation::ATOM, xhtml);
    check(content, Representation::CLASSIC_ATOM, xhtml);
    check(
        content,
        Representation::CLASSIC_RSS,
        r#"<description>&lt;p title="x&amp;quot; onmouseover=&amp;quot;alert(1)"&gt;a&lt;/p&gt;</description>"#,
    );
    check(
        content,
        Representation::JSON,
        r#""content":"<p title=\"x&quot; onmouseover=&quot;alert(1)\">a</p>""#,
    );
}

#[test]
fn xhtml_keeps_its_vocabularies_and_reads_the_same_as_html() {
    let content = "<content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'><a name='n'/><br/>\
         <math xmlns='http://www.w3.org/1998/Math/MathML'><mi>&nbsp;<![CDATA[<]]></mi></math></div></content>";
    let inside = "<a name=\"n\"></a><br/><math xmlns=\"http://www.w3.org/1998/Math/MathML\"><mi>\u{a0}&lt;</mi></math>";
    check(
        content,
        Representation::ATOM,
        &format!("<div xmlns=\"http://www.w3.org/1999/xhtml\">{inside}</div>"),
    );
    check(
        content,
        Representation::CLASSIC_RSS,
        &inside
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;"),
    );
}

#[test]
fn words_of_whatever_type_are_in_every_format() {
    for named in [
        "bogus",
        "xml",
        "escaped",
        "HTML5",
        "text-html",
        "x y",
        "/",
        "*/*",
        "text/",
        "text/html/x",
        "html/text",
        "text/xml",
        "image/svg+xml",
        "application/text",
        "application/json",
        "application/octet-stream",
        "text/css",
        "text/markdown; variant=GFM",
        "multipart/mixed",
        "atom_0.3.feed.entry[0]^type",
        " text ",
    ] {
        for content in [
            atom(&format!(
                "<title>t</title><content type='{named}'>some words.</content>"
            )),
            format!(
                "<feed version='0.3' xmlns='http://purl.org/atom/ns#'><entry><id>urn:x:1</id><title>t</title>\
                 <content type='{named}' mode='escaped'>some words.</content></entry></feed>"
            ),
        ] {
            for representation in Representation::all() {
                let found = through(&content, representation);
                let is_coded = found.contains(">c29tZSB3b3Jkcy4=</content>");
                assert!(
                    found.contains("some words.") || is_coded,
                    "{named} {representation:?}: {found}"
                );
                assert!(
                    !is_coded || named.starts_with("application/"),
                    "{named}: base64 is for what has such a type"
                );
            }
        }
    }
    // Markup of no type is a text, too.
    let marked = atom("<title>t</title><content type='bogus'><b>some words.</b></content>");
    for representation in Representation::all() {
        let found = through(&marked, representation);
        assert!(found.contains("some words."), "{representation:?}: {found}");
    }
}

#[test]
fn a_file_that_a_post_points_to_is_in_every_format_once() {
    let file = "http://example.org/talk.mp3";
    let pointed = atom(&format!(
        "<title>t</title><content type='audio/mpeg' src='{file}'/>"
    ));
    let named = atom(&format!(
        "<title>t</title><m:content xmlns:m='http://search.yahoo.com/mrss' url='{file}' type='audio/mpeg'/>\
         <link rel='enclosure' href='{file}'/><content type='audio/mpeg' src='{file}'/>"
    ));
    for representation in Representation::all() {
        let found = through(&pointed, representation);
        assert!(found.contains(file), "{representation:?}: {found}");
    }
    for representation in [Representation::JSON, Representation::CLASSIC_JSON_FEED] {
        let found = through(&named, representation);
        let attached = found.split("extensions").next().unwrap();
        assert_eq!(
            attached.matches(file).count(),
            1,
            "{representation:?}: {found}"
        );
    }
    let rss = through(&named, Representation::CLASSIC_RSS);
    assert!(
        rss.contains("length=\"0\" type=\"audio/mpeg\"/>")
            && rss.contains("<media:content ")
            && !rss.contains("/mrss\""),
        "{rss}"
    );
}

#[test]
fn the_source_of_a_post_is_told_with_its_site_beside_its_feed() {
    let source = |links: &str| {
        atom(&format!(
            "<title>t</title><source><id>urn:s</id>{links}</source>"
        ))
    };
    let both =
        source("<link rel='self' href='http://s.example/feed'/><link href='http://s.example/'/>");
    let site = source("<link href='http://s.example/'/>");
    for representation in [Representation::JSON, Representation::CLASSIC_JSON_FEED] {
        let told = |document| through(document, representation).replace([' ', '\n'], "");
        let found = told(&both);
        assert!(
            found.contains(r#""url":"http://s.example/feed","site":"http://s.example/""#),
            "{found}"
        );
        let found = told(&site);
        assert!(
            found.contains(r#""url":"http://s.example/""#) && !found.contains("\"site\""),
            "{found}"
        );
    }
}

#[test]
fn the_permalink_is_a_page_for_people_where_there_is_one() {
    let document = atom(
        "<title>t</title><link rel='alternate' type='application/activity+json' href='http://e.example/1.json'/>\
         <link rel='alternate' type='text/html' href='http://e.example/1'/>",
    );
    for (representation, expect) in [
        (Representation::JSON, r#""url":"http://e.example/1""#),
        (
            Representation::CLASSIC_RSS,
            "<link>http://e.example/1</link>",
        ),
        (
            Representation::CLASSIC_RDF,
            "<link>http://e.example/1</link>",
        ),
    ] {
        let found = through(&document, representation).replace("\": \"", "\":\"");
        assert!(found.contains(expect), "{expect}: {found}");
    }
}

#[test]
fn of_alternatives_the_fullest_is_read() {
    let alternatives = "<feed version='0.3' xmlns='http://purl.org/atom/ns#'><entry><id>urn:x:1</id><title>t</title>\
        <content type='multipart/alternative'><content type='text/plain'>plain</content>\
        <content type='text/html' mode='escaped'>&lt;b&gt;full&lt;/b&gt;</content></content></entry></feed>";
    let found = through(alternatives, Representation::ATOM);
    assert!(
        found.contains("<content type=\"html\">&lt;b&gt;full&lt;/b&gt;</content>"),
        "{found}"
    );
}

#[test]
fn links_that_run_something_do_not_leave_the_house() {
    let atom = atom(
        "<link href='javascript:alert(1)'/><link href=' java&#10;script:alert(2)' rel='related'/>\
         <link rel='enclosure' href='vbscript:alert(3)'/><link rel='replies' href='JAVASCRIPT:alert(4)'/>\
         <link href='http://example.org/good'/><content src='javascript:alert(5)'/>\
         <author><name>Jo</name><uri>javascript:alert(6)</uri></author>\
         <source><title>s</title><link href='javascript:alert(7)'/></source>\
         <m:content xmlns:m='http://search.yahoo.com/mrss/' url='javascript:alert(8)' medium='x'/>",
    );
    let rss = "<rss version='2.0'><channel><item><title>t</title><link>javascript:alert(1)</link>\
         <comments>javascript:alert(2)</comments><enclosure url='data:text/html,alert(3)' type='text/html'/>\
         <source url='javascript:alert(4)'>s</source><guid>x</guid></item></channel></rss>";
    for representation in Representation::all() {
        for document in [atom.as_str(), rss] {
            let found = through(document, representation);
            assert!(!found.contains("alert("), "{found}");
        }
        assert!(
            through(&atom, representation).contains("http://example.org/good"),
            "the others stay"
        );
    }
    let (entry, _) = slice(rss.as_bytes(), &Hints::default()).unwrap().entries[0].parse();
    assert_eq!(
        entry.permalink(),
        Some("javascript:alert(1)"),
        "the entry keeps what it had"
    );
}

#[test]
fn html_is_passed_on_as_it_was() {
    let html = "<content type='html'>&lt;script>a()&lt;/script>&lt;b onclick=\"b()\">c</content>";
    check(
        html,
        Representation::JSON,
        r#""content":"<script>a()</script><b onclick=\"b()\">c""#,
    );
}

#[test]
fn an_item_alone_has_the_bytes_that_it_has_in_a_page() {
    let feed = feed(metadata());
    let items = [rich(), bare(), gone(3)];
    for representation in Representation::all() {
        let page = rendered(representation, items.to_vec());
        let mut rest = page.as_str();
        for item in &items {
            let write = |place| {
                let bytes = representation.item(item, &feed, place)?;
                Some(String::from_utf8(bytes).unwrap())
            };
            let shown = !(item.is_gone() && representation.is_classic());
            let (within, alone) = (write(ItemContext::Page), write(ItemContext::Alone));
            assert_eq!(
                (within.is_some(), alone.is_some()),
                (shown, shown),
                "{representation:?}"
            );
            let (Some(within), Some(alone)) = (within, alone) else {
                continue;
            };
            // In the order of the page, and none twice.
            let at = rest
                .find(&within)
                .unwrap_or_else(|| panic!("no {within} in\n{page}"));
            rest = &rest[at + within.len()..];
            if !matches!(representation.suffix(), "atom" | "rss" | "rdf") {
                assert_eq!(within, alone);
                continue;
            }
            let declarations = &page[page.find(" xmlns").unwrap()..];
            let declarations = &declarations[..declarations.find('>').unwrap()];
            assert_eq!(alone.replace(declarations, ""), within);
            let tops = outermost(&alone);
            assert_eq!(
                alone.matches(declarations).count(),
                tops.len(),
                "each declares them once"
            );
            let tops = outermost(&alone);
            let expected: &[&str] = match (representation.suffix(), item.is_gone()) {
                ("rss" | "rdf", false) => &["item"],
                ("rss" | "rdf", true) => &["at:deleted-entry"],
                (_, false) => &["entry"],
                (_, true) => &["at:deleted-entry", "entry"],
            };
            assert_eq!(tops, expected, "{alone}");
        }
    }
}

/// The names of the outermost elements of a fragment whose prefixes are all declared in it.
fn outermost(fragment: &str) -> Vec<String> {
    let mut reader = NsReader::from_str(fragment);
    let (mut depth, mut found) = (0, Vec::new());
    loop {
        let event = reader.read_event().unwrap();
        let (start, opens) = match &event {
            Event::Start(start) => (start, true),
            Event::Empty(start) => (start, false),
            Event::End(_) => {
                depth -= 1;
                continue;
            }
            Event::Eof => return found,
            _ => continue,
        };
        let (namespace, _) = reader.resolver().resolve_element(start.name());
        assert!(
            !matches!(namespace, ResolveResult::Unknown(_)),
            "{fragment}"
        );
        if depth == 0 {
            found.push(start.name().into_inner().to_owned());
        }
        depth += i32::from(opens);
    }
}

#[test]
fn a_title_has_the_same_words_in_every_format() {
    let cases = [
        (
            "type='html'>&lt;b>Fish&lt;/b> &amp;amp;\n chips&lt;script>alert('x')&lt;/script>",
            "Fish & chips",
        ),
        (
            "type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'><i>a</i> &lt;b&gt;<script>c</script></div>",
            "a <b>",
        ),
        (">  1 &lt; 2 &amp;amp; 3\n", "1 < 2 &amp; 3"),
    ];
    for (title, words) in cases {
        let document = atom(&format!(
            "<title {title}</title><link href='http://e.org/1'/>"
        ));
        for representation in Representation::all() {
            let found = through(&document, representation);
            let json = serde_json::to_string(words).unwrap();
            let xml = words
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;");
            let expect = match representation.suffix() {
                // Atom keeps the markup, and its readers find the words.
                "atom" => continue,
                "json" | "jsonl" => format!("\"displayName\":{json}"),
                "jsonfeed" => format!("\"title\":{json}"),
                "as2" => format!("\"name\":{json}"),
                "csv" => format!(",{words},"),
                "tsv" => format!("\t{words}\t"),
                "html" => format!(">{xml}</a></h2>"),
                _ => format!("<title>{xml}</title>"),
            };
            assert!(
                found.contains(&expect),
                "{representation:?}: no {expect} in\n{found}"
            );
            assert!(!found.contains("alert"), "{found}");
        }
    }
}

#[test]
fn markup_of_other_vocabularies_survives_where_the_syntax_can_hold_it() {
    let inside = "<m:rating xmlns:m='http://search.yahoo.com/mrss/' scheme='urn:x'>adult</m:rating>\
         <g:point xmlns:g='http://www.georss.org/georss'>45.2 -71.9</g:point>";
    let document = atom(&format!("<title>t</title>{inside}"));
    for representation in Representation::all() {
        let found = through(&document, representation);
        let (rating, point) = (found.contains("adult"), found.contains("45.2 -71.9"));
        let expect = match representation.suffix() {
            "atom" | "rss" | "json" | "jsonl" | "jsonfeed" => (true, true),
            "rdf" => (false, true),
            _ => (false, false),
        };
        assert_eq!((rating, point), expect, "{found}");
    }
}

#[test]
fn a_letter_of_1955_has_its_date_in_every_format() {
    for representation in Representation::all() {
        let item = Item {
            published_us: Some(-464_702_400_000_000),
            ..live(1, Entry::default())
        };
        let found = rendered(representation, vec![item]);
        let is_dated = found.contains("1955-04-11T12:00:00Z")
            || found.contains("Mon, 11 Apr 1955 12:00:00 GMT");
        assert!(is_dated, "{representation:?} {found}");
    }
}

#[test]
fn an_entry_that_names_only_its_last_change_is_published_by_that_date_as_in_the_order_of_publication()
 {
    let updated = Some(Date {
        raw: String::new(),
        at_us: Some(1_262_304_000_000_000),
    });
    let item = live(
        1,
        Entry {
            updated,
            ..Entry::default()
        },
    );
    assert_eq!(item.listed().rfc3339(), "2010-01-01T00:00:00Z");
    let found = rendered(Representation::JSON, vec![item.clone()]);
    assert!(
        found.contains(r#""published":"2010-01-01T00:00:00Z""#),
        "{found}"
    );
    // A change to come is not before ours.
    let ahead = Some(Date {
        raw: String::new(),
        at_us: Some(4_000_000_000_000_000),
    });
    let ahead = live(
        1,
        Entry {
            updated: ahead,
            ..Entry::default()
        },
    );
    assert_eq!(ahead.listed(), ahead.modified.into());
}

#[test]
fn a_tombstone_names_the_source_of_what_it_was() {
    let source = rich().entry().unwrap().source.clone();
    let tombstone = || Item {
        publisher_id: Some(PublisherId {
            source: source.clone(),
            ..PublisherId::default()
        }),
        ..gone(3)
    };
    for (name, expect) in [
        (
            "atom",
            r#"<source> <id>tag:example.com,2005:feed</id> <title>Elsewhere</title>"#,
        ),
        (
            "rss",
            r#"<source url="http://example.com/feed">Elsewhere</source>"#,
        ),
        ("rdf", "<dc:source>http://example.com/feed</dc:source>"),
        (
            "json",
            r#""source": { "id": "tag:example.com,2005:feed", "displayName": "Elsewhere""#,
        ),
        (
            "jsonfeed",
            r#""source": { "id": "tag:example.com,2005:feed", "title": "Elsewhere""#,
        ),
    ] {
        let representation = Representation::named(name).unwrap();
        let plain = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let found = plain(rendered(representation, vec![tombstone()]));
        let spaced = found
            .replace("\":\"", "\": \"")
            .replace("\":{\"", "\": { \"")
            .replace("\",\"", "\", \"");
        assert!(
            found.contains(expect) || spaced.contains(expect),
            "{name}: {found}"
        );
    }
}
