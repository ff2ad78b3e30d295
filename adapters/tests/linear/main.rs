//! Documents that are one thing over and over: every pass over a document is linear, so that
//! megabytes of anything are read in seconds. Nothing is timed: a pass whose work grows with the
//! square of a document would take hours with the long ones.

#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use everfeed_adapters::{
    Entry, Hints, PageText, Text, cross_check_count, named_feeds, neutral,
    platforms::{Platforms, Traces, content_digest},
    slice,
    text::{self, date, session, uri},
};

/// Things that a document may be made of.
const PIECES: &[&[u8]] = &[
    b"\0",
    b"\x01",
    b"\x1b",
    b"\r",
    b"\r\n",
    b"\n",
    b"\t",
    b" ",
    b"\x80",
    b"\xff",
    b"\xc2",
    b"\xc2\x80",
    b"\xef\xbf\xbe",
    b"\xef",
    b"\xed\xa0\x80",
    b"a\0",
    b"ab\0",
    b"ab\0\0",
    b" \0",
    b"\0\r",
    b"a\x01",
    "é\u{1}".as_bytes(),
    b"<",
    b"&",
    b"&amp;",
    b"&#0;",
    b"&lt;",
    b"]]>",
    b"]]",
    b"]",
    b"--",
    b"-",
    b"\"",
    b"'",
    b">",
    b"\"'",
    b"<a>",
    b"<a",
    b"</a>",
    b"</",
    b"<!--",
    b"<!-- -->",
    b"-->",
    b"<!--x",
    b"<![CDATA[",
    b"<![CDATA[]]>",
    b"<![CDATA[x]]",
    b"]]>]]>",
    b"<?",
    b"<?x",
    b"<?x?>",
    b"<!",
    b"<!x",
    b"<!x>",
    b"<!DOCTYPE x [",
    b"<!ENTITY a 'b'>",
    b"<!DOCTYPE x>",
    b"<!DOCTYPE x [<!ENTITY a 'b'>]>",
    b"<item>",
    b"<entry>",
    b"</item>",
    b"<item",
    b"<item><title>",
    b"<item><description>",
    b"<item><description><p>",
    b"<item/>",
    b"<item><guid>",
    b"</item",
    b"<description>",
    b"<p x='",
    b"<p x=\"",
    b"<a b=\"<c>",
    b"<a b='<c>\"",
    b"<div><p><div>",
    b"<a></b>",
    b"<a><b></a>",
    b"<b/>",
    b"<br>",
    b"</br>",
    b"<title>x</title>",
    b"<title>",
    b"<link>x</link>",
    b"<guid>x</guid>",
    b"<category>x</category>",
    b"<author>x</author>",
    b"<link href='x'/>",
    b"<enclosure url='x'/>",
    b"<source>",
    b"<media:group>",
    b"<media:content url='x'/>",
    b"<media:group><media:content url='x'/></media:group>",
    b"<itunes:owner>",
    b"<dc:creator>x</dc:creator>",
    b"<pubDate>x</pubDate>",
    b"<x:y xmlns:x='z'>",
    b"<x:y xmlns:x='z'/>",
    b"<channel>",
    b"<channel><item>",
    b"<image>",
    b"<feed>",
    b"<rss>",
    b"<author><name>x</name></author>",
    b"<contributor>",
    b"<content type='xhtml'>",
    b"{",
    b"[",
    b"{\"a\":",
    b"[{",
    b"{}",
    b"{},",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b",",
    b":",
    b"{\"items\":[",
    b"\"id\"",
    b"\"id\":",
    b"\"items\":[",
    b"\"items\":",
    b"jsonfeed.org/version/",
    b"{\"version\":\"https://jsonfeed.org/version/1\"",
    b"{\"id\":\"1\"},",
    b"{\"id\":\"1\"",
    b"\"a\":1,",
    b"\"a\\\"",
    b"}",
    b"]",
    b"}]",
    b"\"\",",
    b"0",
    b"1e",
    b"/*",
    b"//",
    b"/",
    b"../",
    b"./",
    b"%",
    b"%20",
    b".",
    b"a",
    "é".as_bytes(),
    "中".as_bytes(),
    b"http://",
    b"?",
    b"#",
    b"@",
    b"data:",
    b"x y ",
    b"a&b=c;",
    b"(S(",
    b"sid=",
    b";",
    b"<script>",
    b"<style>",
    b"<xmp>",
    b"<svg>",
    b"<math>",
    b"<table>",
    b"<a href=x>",
    b"<img srcset='a,b (",
    b"<img src='x'>",
    b"<meta>",
    b"<link rel=alternate type=application/rss+xml href=x>",
    b"<title></title>",
    b"<textarea>",
    b"</script>",
    b"xmlns:a='b' ",
    b"a='b' ",
    b"a=b ",
    b"a ",
    b"a:b:c ",
    b"= ",
    b"/ ",
    b"xmlns='x' ",
    b"xml:base='x/' ",
    b"a=\"b' ",
    b"1 ",
    b"12:",
    b"1 Jan ",
    b"+",
    b"T",
    b"2020-01-01",
    b"2020-",
    b"Mon, ",
    b"01/02/2006 ",
    "年".as_bytes(),
    b"1/",
    b"a, ",
    b"x@y.z (",
    b"(",
    b")",
    b"()",
    "\u{3C00}".as_bytes(),
    "\u{FFFD}".as_bytes(),
    b"<!-->",
    b"<!--->",
    b"<![",
    b"]]&gt;",
    b"&lt;b&gt;",
    b"&lt;a href=x&gt;",
    b"&lt;!--",
    b"&lt;script&gt;",
    b"<?xml version='1.0'?>",
    b"<!doctype html>",
    b"<html>",
    b"call(",
    b"&a;",
    b"&#",
    b"&#x",
    "Ã©".as_bytes(),
    "Ã".as_bytes(),
    "â€™".as_bytes(),
];

/// The same, each time with another number.
const NUMBERED: &[&str] = &[
    " a{n}='x'",
    " a{n}",
    "<a{n}>",
    "</a{n}>",
    "<item><guid>{n}</guid></item>",
    "<item><title>{n}</title>",
    "<item xmlns:a{n}='b'><guid>{n}</guid></item>",
    "<category>{n}</category>",
    "<link href='{n}'/>",
    "<x{n}:y xmlns:x{n}='urn:{n}'/>",
    "<x{n}:y xmlns:x{n}='urn:{n}'>",
    " xmlns:x{n}='u{n}'",
    "<!ENTITY e{n} 'b'>",
    "<!ENTITY e{n} '&e{n};&e0;'>",
    "&e{n};",
    "<media:content url='{n}'/>",
    "\"k{n}\":1,",
    "{\"id\":\"{n}\"},",
    "{\"x\":{n}},",
    "<author>p{n}@x.y</author>",
    "<dc:subject>s{n}</dc:subject>",
    "<enclosure url='{n}'/>",
    "k{n},",
    "<itunes:keywords>a{n},b{n}</itunes:keywords>",
    "<contributor><name>{n}</name></contributor>",
    "<p><b id='{n}'>",
    "<a href='{n}'>",
    "&lt;a href='{n}'>",
    "{n}/",
    "{n} ",
    "/x{n}",
    "<at:deleted-entry xmlns:at='http://purl.org/atompub/tombstones/1.0' ref='{n}'/>",
    "<rdf:li resource='{n}'/>",
    "<channel><item><guid>{n}</guid></item></channel>",
];

/// Texts that may stand before and behind a run of them.
const PLACES: &[(&str, &str)] = &[
    ("", ""),
    (
        "<?xml version=\"1.0\"?><!DOCTYPE rss [",
        "]><rss><channel><title>&a;</title><item><guid>a</guid></item></channel></rss>",
    ),
    (
        "<rss version=\"2.0\"><channel><title>t</title>",
        "<item><guid>a</guid></item></channel></rss>",
    ),
    (
        "<rss version=\"2.0\"><channel><title>t</title><item><guid>a</guid>",
        "</item><item><guid>b</guid></item></channel></rss>",
    ),
    (
        "<rss version=\"2.0\"><channel><title>t</title><item ",
        "><guid>a</guid><pubDate>01/02/2006</pubDate></item></channel></rss>",
    ),
    (
        "<rss version=\"2.0\"><channel><title>t</title><item><guid>a</guid><description>",
        "</description></item><item><guid>b</guid></item></channel></rss>",
    ),
    (
        "<feed xmlns=\"http://www.w3.org/2005/Atom\" xml:base=\"http://e.org/a/\"><title>t</title><entry><id>a</id><link href=\"",
        "\"/></entry></feed>",
    ),
    (
        "{\"version\":\"https://jsonfeed.org/version/1\",\"title\":\"t\",\"items\":[",
        "{\"id\":\"1\"}]}",
    ),
];

/// Bytes of a run in every place.
const SHORT_BYTES: usize = 16 << 10;

/// Bytes of the runs that once took their square.
const LONG_BYTES: usize = 4 << 20;

fn run(piece: &[u8], bytes: usize) -> Vec<u8> {
    let count = bytes / piece.len();
    match std::str::from_utf8(piece) {
        Ok(text) if text.contains("{n}") => (0..count)
            .map(|n| text.replace("{n}", &n.to_string()))
            .collect::<String>()
            .into_bytes(),
        _ => piece.repeat(count),
    }
}

fn hints() -> Hints<'static> {
    Hints {
        base_url: Some("http://e.org/b/"),
        ..Hints::default()
    }
}

/// Everything that is ever done with a document and with what comes out of it.
fn read(document: &[u8]) {
    let title = Entry {
        title: Some(Text::plain("a title")),
        ..Entry::default()
    };
    PageText::new(document, &hints()).count(&title);
    named_feeds(document, &hints());
    let whole = slice(
        document,
        &Hints {
            resource: Some("http://e.org/x"),
            ..hints()
        },
    )
    .unwrap();
    whole.entries[0].parse();
    let Ok(sliced) = slice(document, &hints()) else {
        return;
    };
    let platforms = Platforms::embedded();
    platforms.detect(&Traces::of(&sliced));
    neutral(&sliced);
    for raw in &sliced.entries {
        let (entry, _) = raw.parse();
        raw.named_by();
        content_digest(&entry, platforms.get("wordpress").map(|profile| &**profile));
    }
    if let Some(raw) = sliced.entries.first() {
        let (entry, _) = raw.parse();
        PageText::new(document, &hints()).count(&entry);
        entry
            .content
            .iter()
            .for_each(|content| drop(text::sanitise(&content.text.value)));
    }
}

#[test]
fn whatever_a_document_is_full_of_is_read() {
    let pieces = PIECES
        .iter()
        .copied()
        .chain(NUMBERED.iter().map(|piece| piece.as_bytes()));
    for piece in pieces {
        let run = run(piece, SHORT_BYTES);
        for (before, behind) in PLACES {
            read(&[before.as_bytes(), &run, behind.as_bytes()].concat());
            read(&[before.as_bytes(), &run].concat());
        }
        let text = String::from_utf8_lossy(&run);
        drop((
            date::parse(&text),
            session::without_session(&text),
            text::sanitise(&text),
        ));
        uri::resolve(url::Url::parse("http://e.org/").ok().as_ref(), &text);
    }
}

#[test]
fn long_runs_of_what_once_took_the_square_of_its_length_are_read() {
    let item = |inside: &[u8]| {
        let before =
            b"<rss version=\"2.0\"><channel><title>t</title><item><guid>a</guid><description>";
        [before, inside, b"</description></item></channel></rss>"].concat()
    };
    for piece in [
        &b"\0"[..],
        b"\x01",
        b"\x1b\0",
        b"\xef\xbf\xbe",
        b"\xef\xbf\xbf\0",
        b"ab\0",
        b"1/",
        b"01/02/",
    ] {
        read(&item(&run(piece, LONG_BYTES)));
        read(&run(piece, LONG_BYTES));
    }
    // Objects of a list that is broken, none of which begins as the first does.
    let list = [
        &b"{\"version\":\"https://jsonfeed.org/version/1\",\"items\":["[..],
        &b"{\"id\":\"1\",\"a\":[},".repeat(5),
        &run(b"{\"x\":{n}},", LONG_BYTES),
    ];
    read(&list.concat());
    // Entries in an entry that has much to say in its tag.
    let nested = [
        &b"<rss><channel><item"[..],
        &run(b" a{n}=''", LONG_BYTES / 2),
        b"><author><name>",
        &run(b"<item xmlns='x{n}'/>", LONG_BYTES / 2),
    ];
    read(&nested.concat());
    // Tags of entries that declare something, where the root has declared much.
    let declared = [
        &b"<rss"[..],
        &run(
            format!(" xmlns:x{{n}}='{}'", "u".repeat(200)).as_bytes(),
            50_000,
        ),
        b"><channel>",
        &run(b"<item xmlns:a='b'><guid>{n}</guid></item>", LONG_BYTES),
    ];
    read(&declared.concat());
}

#[test]
fn a_tag_of_very_many_attributes_is_shown_as_its_source() {
    let tag = [&b"<a"[..], &run(b" a{n}", LONG_BYTES), b">x</a>"].concat();
    let html = String::from_utf8(tag).unwrap();
    assert!(text::sanitise(&html).starts_with("&lt;a a0"));
    assert!(text::sanitise(&format!("<script><b x='</script>{html}'>")).starts_with("&lt;script"));
}

#[test]
fn a_second_parser_reads_it_too() {
    let rss = |inside: &[u8]| {
        [
            b"<rss version='2.0'><channel><title>t</title><item><description>",
            inside,
            b"</description></item></channel></rss>",
        ]
        .concat()
    };
    for piece in [
        &b"\0"[..],
        b"<a>",
        b"<a ",
        b"&",
        b"]]>",
        b"<![CDATA[",
        b"<!--",
        b"</a>",
        b" a{n}='x'",
        b"1/",
        b"\xff",
    ] {
        cross_check_count(&rss(&run(piece, 1 << 20)), &hints());
    }
}
