//! Tests of the bounds of entries and of their keys; fixtures show the rest.

use crate::{Format, Hints, Key, NotAFeed, Note, SlicedDocument, Text, TextKind, slice};

fn sliced(document: &str) -> SlicedDocument {
    slice(document.as_bytes(), &Hints::default())
        .unwrap_or_else(|error| panic!("{error}: {document}"))
}

fn ids(sliced: &SlicedDocument) -> Vec<String> {
    sliced
        .entries
        .iter()
        .map(|raw| raw.key.stripped())
        .collect()
}

fn rss(inside: &str) -> SlicedDocument {
    sliced(&format!(
        "<rss version='2.0'><channel><title>t</title>{inside}</channel></rss>"
    ))
}

#[test]
fn an_entry_that_did_not_change_has_the_same_raw_digest_wherever_it_stands() {
    let one = rss("<item><guid>1</guid></item>");
    let two = rss("<item><guid>0</guid></item>\n<item><guid>1</guid></item>");
    assert_eq!(one.entries[0].raw, two.entries[1].raw);
    assert_ne!(two.entries[0].raw, two.entries[1].raw);
    assert_eq!(two.entries[1].markup(), "<item><guid>1</guid></item>");
}

#[test]
fn an_entry_outlives_its_document_with_all_that_it_inherited() {
    let document = "<feed xmlns='http://www.w3.org/2005/Atom' xmlns:x='urn:x' xml:base='http://e.org/a/'>\
        <entry><id>1</id><link href='b'/><x:y/></entry></feed>";
    let raw = sliced(document).entries.remove(0);
    let (entry, notes) = raw.parse();
    assert_eq!(entry.permalink(), Some("http://e.org/a/b"));
    assert_eq!(entry.foreign[0].ns, "urn:x");
    assert_eq!(notes, []);
}

#[test]
fn markup_inside_an_entry_is_not_taken_for_structure() {
    let found = rss(
        "<item><guid>1</guid><description><div><item><guid>no</guid></item></channel></div></description>\
        <title>x</title></item><item><guid>2</guid></item>",
    );
    // The stray `</channel>` closes what is open; the entry after it is found all the same.
    assert_eq!(ids(&found), ["1", "2"]);
    assert_eq!(found.notes, [Note::Mismatched]);
    let atom = sliced(
        "<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>1</id><source><id>no</id></source>\
        <content type='application/xml'><entry><id>no</id></entry></content></entry></feed>",
    );
    assert_eq!(ids(&atom), ["1"]);
}

#[test]
fn one_bad_entry_harms_no_other() {
    let found = rss(
        "<item><guid>1</guid></item><item><guid>2</guid><title><b></i></title>\
        <description><![CDATA[ ]] > <item> ]]></description></item><item><guid>3</guid></item>",
    );
    assert_eq!(ids(&found), ["1", "2", "3"]);
    assert_eq!(found.entries[0].parse().1, []);
    assert_eq!(found.entries[1].parse().1, [Note::Mismatched]);
    assert_eq!(found.entries[2].parse().1, []);
}

// DESIGN section 3, LEGACY I-2.
#[test]
fn the_digest_names_what_nothing_else_names_and_survives_a_second_reading() {
    let document = "<rss><channel><item><description>a</description></item><item><description>b</description></item></channel></rss>";
    let (first, second) = (sliced(document), sliced(document));
    assert!(
        first
            .entries
            .iter()
            .all(|raw| matches!(raw.key, Key::Digest(_)) && raw.key.is_weak())
    );
    assert_eq!(ids(&first), ids(&second));
    assert_ne!(first.entries[0].key, first.entries[1].key);
}

#[test]
fn ids_are_kept_byte_for_byte() {
    let found = rss(
        "<item><guid>\n HTTP://E.org:80/%7Ea?b#c \t</guid></item><item><guid><![CDATA[a&amp;b]]></guid></item>\
        <item><guid>a&amp;b</guid></item><item><guid>é&#160;</guid></item>",
    );
    assert_eq!(
        ids(&found),
        ["HTTP://E.org:80/%7Ea?b#c", "a&amp;b", "a&b", "é\u{A0}"]
    );
}

#[test]
fn the_alternate_link_names_an_atom_entry_without_id() {
    let found = sliced(
        "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='http://e.org/'>\
        <entry><link rel='self' href='no'/><link rel='alternate' href='a'/><title>x</title></entry>\
        <entry><title>y</title></entry></feed>",
    );
    assert_eq!(
        found.entries[0].key,
        Key::Link("a".into()),
        "unresolved, as written"
    );
    assert_eq!(found.entries[1].key, Key::Title("y".into()));
}

#[test]
fn elements_after_the_channel_or_the_root_are_still_found() {
    let found = sliced(
        "<rss><channel><title>t</title></channel><item><guid>1</guid></item></rss><item><guid>2</guid></item>",
    );
    assert_eq!(ids(&found), ["1", "2"]);
}

#[test]
fn the_charset_of_the_response_counts() {
    let hints = Hints {
        content_type: Some("text/xml; charset=iso-8859-7"),
        ..Hints::default()
    };
    let found = slice(
        b"<rss><channel><item><guid>\xE1</guid></item></channel></rss>",
        &hints,
    )
    .unwrap();
    assert_eq!(found.entries[0].key, Key::Id("α".into()));
    assert_eq!(found.notes, []);
}

fn json_feed(items: &str) -> SlicedDocument {
    sliced(&format!(
        "{{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"t\",\"items\":[{items}]}}"
    ))
}

#[test]
fn an_item_of_a_json_feed_has_the_digest_of_its_own_text() {
    let one = json_feed("{\"id\":\"1\", \"title\":\"x\"}");
    let two = json_feed("{\"id\":\"0\"},\n\t{\"id\":\"1\", \"title\":\"x\"} ");
    assert_eq!(one.entries[0].raw, two.entries[1].raw);
    assert_eq!(two.entries[1].markup(), "{\"id\":\"1\", \"title\":\"x\"}");
    let (entry, other) = (
        one.entries[0].parse().0,
        json_feed("{ \"title\":\"x\",\"id\":\"1\"}"),
    );
    assert_ne!(one.entries[0].raw, other.entries[0].raw);
    assert_eq!(
        entry.digest(),
        other.entries[0].parse().0.digest(),
        "layout and order are no edit"
    );
}

#[test]
fn links_and_titles_that_items_share_name_none_of_them() {
    let found = json_feed(
        "{\"url\":\"http://e.org/\",\"title\":\"a\"},{\"url\":\"http://e.org/\",\"title\":\"b\"},\
         {\"title\":\"c\",\"content_text\":\"1\"},{\"title\":\"c\",\"content_text\":\"2\"}",
    );
    assert_eq!(ids(&found)[..2], ["title\na", "title\nb"]);
    assert!(
        found.entries[2..]
            .iter()
            .all(|raw| matches!(raw.key, Key::Digest(_)))
    );
    assert_ne!(found.entries[2].key, found.entries[3].key);
}

/// LEGACY J-10, and DESIGN section 4: whole items before the cut count, the cut one is dropped.
#[test]
fn a_json_feed_cut_anywhere_has_the_whole_items_before_the_cut() {
    let items: Vec<_> = (0..4)
        .map(|n| format!("{{\"id\": \"{n}\", \"content_html\": \"<p>\\\"{{[{n}\\u00e9\"}}"))
        .collect();
    let document = format!(
        "{{\"version\": \"https://jsonfeed.org/version/1\", \"title\": \"t\", \"items\": [{}], \"_x\": 1}}",
        items.join(",\n")
    );
    let ends: Vec<_> = items
        .iter()
        .map(|item| document.find(item.as_str()).unwrap() + item.len())
        .collect();
    for length in 0..document.len() {
        let whole = ends.iter().filter(|end| **end <= length).count();
        match slice(&document.as_bytes()[..length], &Hints::default()) {
            Ok(sliced) => {
                let expect: Vec<_> = (0..whole).map(|n| n.to_string()).collect();
                assert_eq!(ids(&sliced), expect, "at {length}");
                assert!(sliced.is_truncated(), "at {length}");
            }
            Err(_) => assert_eq!(whole, 0, "at {length}"),
        }
    }
    assert_eq!(sliced(&document).notes, []);
}

#[test]
fn a_resource_leads_to_its_public_address_and_keeps_the_key_of_its_url() {
    let url = "http://127.0.0.1:8081/photo.png";
    let read = |address: Option<&str>, read_at_us: Option<i64>| {
        let hints = Hints {
            resource: Some(url),
            address,
            read_at_us,
            ..Hints::default()
        };
        let sliced = slice(b"\0", &hints).unwrap();
        let (entry, _) = sliced.entries[0].parse();
        (sliced, entry)
    };
    let address = "https://blog.example/photo.png";
    let (sliced, entry) = read(Some(address), Some(1_780_272_000_000_000));
    assert_eq!(sliced.entries[0].key, Key::Id(url.into()));
    assert_eq!(sliced.entries[0].address(), Some(address));
    assert_eq!(
        entry.updated.clone().unwrap().raw,
        "2026-06-01T00:00:00.000000Z"
    );
    let told = format!("{entry:?} {:?}", sliced.metadata);
    assert_eq!(told.matches(address).count(), 4, "{told}");
    assert!(!told.contains("127.0.0.1"), "{told}");
    // Without another address nothing is another resource than before.
    let (bare, _) = read(None, None);
    let (same, entry) = read(Some(url), Some(1));
    assert_eq!(bare.entries[0].raw, same.entries[0].raw);
    assert!(bare.entries[0].raw != sliced.entries[0].raw);
    assert_eq!(entry.permalink(), Some(url));
}

#[test]
fn a_resource_is_one_item_whatever_it_is() {
    let read = |content_type: Option<&str>, bytes: &[u8]| {
        let hints = Hints {
            content_type,
            base_url: Some("http://cdn.example/v7/photo.bin"),
            resource: Some("http://e.org/a/My%20photo.png?x=1"),
            ..Hints::default()
        };
        let sliced = slice(bytes, &hints).unwrap();
        assert_eq!((sliced.format, sliced.entries.len()), (Format::Resource, 1));
        let raw = &sliced.entries[0];
        assert_eq!(
            raw.key,
            Key::Id("http://e.org/a/My%20photo.png?x=1".into()),
            "named as it was asked for"
        );
        let (entry, notes) = raw.parse();
        assert_eq!(notes, []);
        assert_eq!(entry.title.clone().unwrap(), Text::plain("My photo.png"));
        assert_eq!(entry.permalink(), Some("http://e.org/a/My%20photo.png?x=1"));
        (entry.content.unwrap(), entry.enclosures, raw.raw)
    };
    let check = |content_type: Option<&str>,
                 bytes: &[u8],
                 kind: TextKind,
                 value: &str,
                 media_type: Option<&str>| {
        let (body, enclosures, _) = read(content_type, bytes);
        assert_eq!(
            body.text,
            Text {
                kind,
                value: value.into(),
                ..Text::default()
            },
            "{content_type:?}"
        );
        assert_eq!(body.media_type.as_deref(), media_type);
        assert_eq!(enclosures.len(), usize::from(kind == TextKind::Base64));
    };
    check(
        Some("image/PNG"),
        b"\x89PNG\r\n",
        TextKind::Base64,
        "iVBORw0K",
        Some("image/png"),
    );
    check(
        Some("text/plain; charset=iso-8859-1"),
        b"caf\xE9",
        TextKind::Plain,
        "café",
        None,
    );
    check(None, b"just words", TextKind::Plain, "just words", None);
    check(
        None,
        b"\xFF\0",
        TextKind::Base64,
        "/wA=",
        Some("application/octet-stream"),
    );
    check(
        Some("text/plain"),
        b"a\0b\xFF",
        TextKind::Base64,
        "YQBi/w==",
        Some("application/octet-stream"),
    );
    check(Some("nonsense"), b"", TextKind::Plain, "", None);
    let json = "application/ld+json; charset=utf-8; profile=x";
    check(
        Some(json),
        b"{\"a\":1}",
        TextKind::Plain,
        "{\"a\":1}",
        Some("application/ld+json; profile=x"),
    );
    check(
        Some("application/atom+xml"),
        b"<feed/>",
        TextKind::Plain,
        "<feed/>",
        Some("application/atom+xml"),
    );
    let html = "<a href=\"http://cdn.example/v7/x\">x</a>";
    check(
        Some("text/html"),
        b"<a href=x>x</a>",
        TextKind::Html,
        html,
        None,
    );

    let digests = [
        ("image/png", b"a".as_slice()),
        ("image/png", b"b"),
        ("image/gif", b"a"),
        ("image/png", b"a"),
    ]
    .map(|(media_type, bytes)| read(Some(media_type), bytes).2);
    assert!(digests[0] != digests[1] && digests[0] != digests[2] && digests[0] == digests[3]);
}

/// The rest of an entry that lost the end of an element and its own, and the whole ones behind it.
#[test]
fn an_entry_that_lost_its_end_swallows_none_of_those_behind_it() {
    let whole = |n: u32| {
        format!("<item><guid>{n}</guid><title>T{n}</title><description>D{n}</description></item>")
    };
    for (cut, kept) in [
        ("<guid>3</guid><description>foo", true),
        ("<guid>3</guid><description><![CDATA[foo]]>", true),
        ("<guid>3</guid><description>a <b>c</b> d", true),
        ("<guid>3</guid><title>foo", true),
        ("<guid>3</guid><desc", true),
        ("<guid>3</guid><description>foo</descripton></itm>", true),
        ("<guid>3</guid><content:encoded>foo", true),
        ("<guid>3</guid><dc:creator>foo", true),
        ("<guid>3</guid><source url='x'>foo", true),
        ("<guid>3", false),
        ("<title>T<guid>3", false),
        (
            "<title>T</title><link>http://e.org/3</link><description>x",
            false,
        ),
    ] {
        let found = rss(&format!(
            "{}<item>{cut}{}{}{}",
            whole(1),
            whole(4),
            whole(5),
            whole(6)
        ));
        let expect: &[&str] = if kept {
            &["1", "3", "4", "5", "6"]
        } else {
            &["1", "4", "5", "6"]
        };
        assert_eq!(ids(&found), expect, "{cut}");
        assert_eq!(found.notes[0], Note::Mismatched, "{cut}");
        let is_lost = |note: &Note| matches!(note, Note::EntryLost(_));
        assert_eq!(found.notes.iter().any(is_lost), !kept, "{cut}");
        let (entry, notes) = found.entries.last().unwrap().parse();
        assert_eq!(
            (entry.title.unwrap().value.as_str(), notes),
            ("T6", Vec::new()),
            "{cut}"
        );
    }
    let atom = |cut: &str| {
        let whole = |n: u32| format!("<entry><id>{n}</id><title>T</title></entry>");
        ids(&sliced(&format!(
            "<feed xmlns='http://www.w3.org/2005/Atom'>{}<entry><id>3</id>{cut}{}{}</feed>",
            whole(1),
            whole(4),
            whole(5)
        )))
    };
    for cut in [
        "<content>foo",
        "<content type='html'>foo",
        "<summary>foo",
        "<author><name>foo",
        "<updated>2003",
        "<source><id>no</id><title>foo",
        "<source><author><name>foo",
        "<content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'><p>foo",
    ] {
        assert_eq!(atom(cut), ["1", "3", "4", "5"], "{cut}");
    }
    let cdf = "<CHANNEL HREF='http://e/'><ITEM HREF='3'><ABSTRACT>foo<ITEM HREF='4'><TITLE>T</TITLE></ITEM>\
        <ITEM HREF='5'><TITLE>T</TITLE></ITEM></CHANNEL>";
    assert_eq!(ids(&sliced(cdf)), ["3", "4", "5"]);
    let rdf = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>\
        <channel/><item rdf:about='3'><description>foo<item rdf:about='4'><title>T</title></item>\
        <item rdf:about='5'/></rdf:RDF>";
    assert_eq!(ids(&sliced(rdf)), ["3", "4", "5"]);
    // Where nothing has a better name, a title is as good as any.
    assert_eq!(
        ids(&rss(
            "<item><title>a</title><link>x<item><title>b</title></item>"
        )),
        ["title\na", "title\nb"]
    );
}

#[test]
fn an_entry_is_not_named_by_what_an_element_swallowed() {
    assert_eq!(
        ids(&rss("<item><guid>1</item><item><guid>2</guid></item>")),
        ["1", "2"]
    );
    let found = rss("<item><guid>1<title>x</title></item>");
    assert!(
        matches!(found.entries[0].key, Key::Digest(_)),
        "{:?}",
        found.entries[0].key
    );
}

#[test]
fn entries_that_somebody_embedded_stay_where_they_are() {
    let sync = "<item><guid>1</guid><sx:sync xmlns:sx='http://feedsync.org/2007/feedsync'><sx:conflicts>\
        <item><guid>no</guid></item></sx:conflicts></sx:sync></item><item><guid>2</guid></item>";
    assert_eq!(ids(&rss(sync)), ["1", "2"]);
    assert_eq!(rss(sync).notes, []);
    assert_eq!(
        ids(&rss(
            "<item><guid>1</guid><list><item>a</item><item>b</item></list></item>"
        )),
        ["1"]
    );
    let mention = "<item><guid>1</guid><description>the <item> element</description></item><item><guid>2</guid></item>";
    assert_eq!(ids(&rss(mention)), ["1", "2"]);
    for kind in ["application/xml", "application/atom+xml", "Text/XML"] {
        let document = format!(
            "<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>1</id><content type='{kind}'><entry><id>no</id>\
            </entry></content></entry><entry><id>2</id></entry></feed>"
        );
        assert_eq!(ids(&sliced(&document)), ["1", "2"]);
        assert_eq!(sliced(&document).notes, []);
    }
}

#[test]
fn a_document_of_which_no_entry_can_be_cut_is_not_an_empty_feed() {
    let read = |inside: &str| {
        slice(
            format!("<rss><channel><title>t</title>{inside}</channel></rss>").as_bytes(),
            &Hints::default(),
        )
    };
    for broken in [
        "<guid>1</guid></item>",
        "<itm><guid>1</guid></item>",
        "<x a='b' <![CDATA[c='d'/><item><guid>1</guid><description><![CDATA[x]]></description></item>",
        "<copyright>c<![CDATA[</copyright><item><description><![CDATA[x]]></description></item>",
    ] {
        assert!(
            matches!(read(broken), Err(NotAFeed::NoWholeEntry { .. })),
            "{broken}: {:?}",
            read(broken)
        );
    }
    for empty in [
        "",
        "<items/>",
        "<!-- <item><guid>1</guid></item> -->",
        "<description><![CDATA[no <item> yet]]></description>",
    ] {
        assert_eq!(read(empty).unwrap().entries.len(), 0, "{empty}");
    }
    let text =
        "<rss version=\"2.0\"><channel><title>t</title><item><guid>1</guid></item></channel></rss>";
    let utf_16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let utf_32: Vec<u8> = text
        .chars()
        .flat_map(|c| u32::from(c).to_be_bytes())
        .collect();
    for (mut bytes, width) in [(utf_16, 2), (utf_32, 4)] {
        bytes.insert(text.find("</title>").unwrap() * width + 1, b'e');
        assert!(
            slice(&bytes, &Hints::default()).is_err(),
            "UTF of {width} bytes"
        );
    }
}

#[test]
fn what_nobody_ended_swallows_no_tag_of_an_entry() {
    let items = "<item><guid>1</guid></item><item><guid>2</guid></item>";
    for unended in [
        "<?php echo 1; ",
        "<?x>",
        "<!DOCTYPE a [",
        "<!x ",
        "<!DOCTYPE a [<!ENTITY b 'c'>",
    ] {
        assert_eq!(
            ids(&rss(&format!("{unended}{items}"))),
            ["1", "2"],
            "{unended}"
        );
        let between = items.replacen("</item>", &format!("</item>{unended}"), 1);
        assert_eq!(ids(&rss(&between)), ["1", "2"], "{unended}");
        assert_eq!(
            ids(&rss(&format!("{between}<?y?> ]>"))),
            ["1", "2"],
            "{unended}"
        );
    }
}

// XML section 2.12.
#[test]
fn an_empty_language_is_none_and_not_that_of_the_feed() {
    let found = sliced(
        "<feed xmlns='http://www.w3.org/2005/Atom' xml:lang='de'>\
        <entry xml:lang=''><id>1</id><title>x</title></entry>\
        <entry><id>2</id><title xml:lang=' '>x</title></entry>\
        <entry><id>3</id><title>x</title></entry>\
        <entry><id>4</id><content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml' xml:lang=''>x</div></content></entry>\
        </feed>",
    );
    assert_eq!(found.metadata.language.as_deref(), Some("de"));
    let entries: Vec<_> = found.entries.iter().map(|raw| raw.parse().0).collect();
    let titles: Vec<_> = entries[..3]
        .iter()
        .map(|entry| entry.title.as_ref().unwrap().language.as_deref())
        .collect();
    let own: Vec<_> = entries
        .iter()
        .map(|entry| entry.language.as_deref())
        .collect();
    assert_eq!(
        (own, titles),
        (
            vec![Some(""), None, None, None],
            vec![Some(""), Some(""), Some("de")]
        )
    );
    assert_eq!(
        entries[3]
            .content
            .as_ref()
            .unwrap()
            .text
            .language
            .as_deref(),
        Some("")
    );
    let rss = sliced("<rss xml:lang=''><channel><item><guid>1</guid></item></channel></rss>");
    assert_eq!(rss.metadata.language, None);
}
