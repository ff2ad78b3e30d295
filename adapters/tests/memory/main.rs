//! Memory that a document may cost, for the worst documents that we could think of: what `slice`
//! takes at its peak, what a window keeps, and what the parse of one entry takes. In a binary of
//! its own, because it counts what is allocated.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use everfeed_adapters::{Hints, neutral, slice};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The size of every document, in bytes. Larger ones show smaller multiples.
const DOCUMENT_BYTES: usize = 1 << 20;

/// Peak of slicing, in multiples of the document: a text of single bytes may be three times as long
/// in UTF-8, an entry owns its part of it, and the key is cut out of that by way of two more
/// copies.
const SLICE_TIMES: usize = 10;

/// Peak of parsing one entry, in multiples of the document, which is one entry here.
const PARSE_TIMES: usize = 10;

/// Memory besides, in bytes, whatever the size of the document: the most elements that one tree may
/// have.
const BESIDES_BYTES: usize = 16 << 20;

/// Bytes that some work takes at its peak, above what was there before.
fn peak<T>(work: impl FnOnce() -> T) -> (usize, T) {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let done = work();
    (MEMORY.peak_usage() - before, done)
}

/// A document with something many times over, between what stands before and behind it.
fn filled(before: &str, piece: &str, after: &str) -> Vec<u8> {
    let times = (DOCUMENT_BYTES - before.len() - after.len()) / piece.len();
    [before, &piece.repeat(times), after].concat().into_bytes()
}

fn numbered(before: &str, piece: impl Fn(usize) -> String, after: &str) -> Vec<u8> {
    let mut out = before.to_owned();
    for n in 0.. {
        if out.len() + after.len() >= DOCUMENT_BYTES {
            break;
        }
        out.push_str(&piece(n));
    }
    (out + after).into_bytes()
}

fn documents() -> Vec<(&'static str, Vec<u8>)> {
    const CHANNEL: &str = "<rss><channel><title>t</title>";
    const ITEM: &str = "<rss><channel><item><guid>1</guid>";
    const END: &str = "</item></channel></rss>";
    const ATOM: &str = "<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>1</id>";
    const MEDIA: &str =
        "<rss xmlns:media='http://search.yahoo.com/mrss/'><channel><item><guid>1</guid>";
    let long = "x".repeat(100_000);
    let wide = |document: Vec<u8>, big: bool| -> Vec<u8> {
        let text = String::from_utf8(document[..DOCUMENT_BYTES / 2].to_vec()).unwrap();
        text.encode_utf16()
            .flat_map(|unit| {
                if big {
                    unit.to_be_bytes()
                } else {
                    unit.to_le_bytes()
                }
            })
            .collect()
    };
    vec![
        (
            "empty items",
            filled(CHANNEL, "<item/>", "</channel></rss>"),
        ),
        (
            "items with a title",
            numbered(CHANNEL, |n| format!("<item><title>{n}</title></item>"), ""),
        ),
        ("elements of one entry", filled(ITEM, "<a/>", END)),
        (
            "pairs of elements of one entry",
            filled(ITEM, "<a><b/></a>", END),
        ),
        ("elements with an attribute", filled(ITEM, "<a b=''/>", END)),
        ("elements and texts", filled(ITEM, "x<a/>", END)),
        (
            "links of one entry",
            numbered(ITEM, |n| format!("<link>{n}</link>"), END),
        ),
        (
            "categories of one entry",
            numbered(ITEM, |n| format!("<category>{n}</category>"), END),
        ),
        ("undeclared prefixes", filled(ITEM, "<x:a/>", END)),
        (
            "xhtml in a description",
            filled(
                &format!("{ITEM}<description>"),
                "<b/>",
                &format!("</description>{END}"),
            ),
        ),
        (
            "xhtml in a content",
            filled(
                &format!("{ATOM}<content type='xhtml'><div>"),
                "<b/>",
                "</div></content></entry></feed>",
            ),
        ),
        (
            "prefixes in a content",
            filled(
                &format!("{ATOM}<content type='xhtml'><div>"),
                "<x:b/>",
                "</div></content></entry></feed>",
            ),
        ),
        (
            "markup in a content",
            filled(
                &format!("{ATOM}<content type='text/x'>"),
                "<x:b/>",
                "</content></entry></feed>",
            ),
        ),
        (
            "attributes",
            filled(&format!("{ITEM}<a "), "b ", &format!("/>{END}")),
        ),
        (
            "attributes with values",
            filled(&format!("{ITEM}<a "), "b='' ", &format!("/>{END}")),
        ),
        (
            "attributes of the entry",
            filled(
                "<rss><channel><item ",
                "b ",
                "><guid>1</guid></item></channel></rss>",
            ),
        ),
        (
            "attributes of the root",
            filled(
                "<rss ",
                "b ",
                "><channel><item><guid>1</guid></item></channel></rss>",
            ),
        ),
        (
            "attributes of an Atom root",
            filled(
                "<feed xmlns='http://www.w3.org/2005/Atom' ",
                "b ",
                "><entry><id>1</id></entry></feed>",
            ),
        ),
        (
            "attributes of the channel",
            filled(
                "<rss><channel xmlns='' ",
                "b ",
                "><item><guid>1</guid></item></channel></rss>",
            ),
        ),
        (
            "namespaces of the root",
            numbered(
                "<rss ",
                |n| format!("xmlns:n{n}='u' "),
                "><channel><item><guid>1</guid></item></channel></rss>",
            ),
        ),
        (
            "a long namespace",
            filled(
                &format!("<rss xmlns='{long}' xmlns:a='{long}'><channel>"),
                "<item><a/><a:b/><guid>1</guid></item>",
                "",
            ),
        ),
        (
            "a long namespace of one entry",
            filled(
                &format!("<rss xmlns:a='{long}'><channel><item>"),
                "<a:b/>",
                END,
            ),
        ),
        (
            "a long base",
            filled(
                &format!("<rss xml:base='http://e.org/{long}'><channel>"),
                "<item><link>a</link></item>",
                "",
            ),
        ),
        (
            "a long base of one entry",
            filled(
                &format!(
                    "<rss xml:base='http://e.org/{long}/'><channel><item><guid>1</guid><description>"
                ),
                "&lt;a href='x'>",
                &format!("</description>{END}"),
            ),
        ),
        (
            "a long base of one content",
            filled(
                &format!(
                    "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='http://e.org/{long}/'><entry><id>1</id><content type='xhtml'>"
                ),
                "<a href='x'/>",
                "</content></entry></feed>",
            ),
        ),
        (
            "a long base and many links",
            numbered(
                &format!(
                    "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='http://e.org/{long}/'><entry><id>1</id>"
                ),
                |n| format!("<link href='{n}'/>"),
                "</entry></feed>",
            ),
        ),
        (
            "bases in bases",
            filled(
                &format!("{ATOM}<content type='xhtml'><div>"),
                "<a xml:base='aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/' href='x'>",
                "",
            ),
        ),
        (
            "a long language",
            filled(
                &format!("<rss xml:lang='{long}'><channel>"),
                "<item><a/></item><b/>",
                "",
            ),
        ),
        (
            "channels with namespaces",
            numbered(
                "<rss>",
                |n| format!("<channel xmlns='u:{n}'><item/></channel>"),
                "</rss>",
            ),
        ),
        (
            "channels under long namespaces",
            filled(
                &format!(
                    "<rss {}>",
                    (0..200)
                        .map(|n| format!("xmlns:n{n}='{}' ", &long[..1000]))
                        .collect::<String>()
                ),
                "<channel><item/></channel>",
                "</rss>",
            ),
        ),
        ("deep elements", filled(ITEM, "<a>", "")),
        (
            "deep elements, closed",
            filled(ITEM, "<a>", &("</a>".repeat(100_000) + END)),
        ),
        (
            "deep elements with namespaces",
            filled(ITEM, "<a xmlns:b='u'>", ""),
        ),
        ("deep channels", filled("<rss>", "<channel>", "")),
        (
            "elements of the head",
            filled(
                CHANNEL,
                "<a/>",
                "<item><guid>1</guid></item></channel></rss>",
            ),
        ),
        (
            "one large element of the head",
            filled(
                "<rss><channel><a>",
                "<a/>",
                "</a><item><guid>1</guid></item></channel></rss>",
            ),
        ),
        (
            "texts of the head",
            filled(
                "<rss><channel><description>",
                "&amp;",
                "</description><item><guid>1</guid></item></channel></rss>",
            ),
        ),
        (
            "tombstones",
            numbered(
                "<feed xmlns='http://www.w3.org/2005/Atom' xmlns:at='http://purl.org/atompub/tombstones/1.0'>",
                |n| format!("<at:deleted-entry ref='{n}'/>"),
                "<entry><id>1</id></entry></feed>",
            ),
        ),
        (
            "references",
            filled(
                &format!("{ITEM}<description>"),
                "&amp;",
                &format!("</description>{END}"),
            ),
        ),
        (
            "texts and references",
            filled(
                &format!("{ITEM}<title>"),
                "x&lt;",
                &format!("</title>{END}"),
            ),
        ),
        (
            "references in an attribute",
            filled(
                &format!("{ITEM}<enclosure url='"),
                "&amp;",
                &format!("'/>{END}"),
            ),
        ),
        (
            "sections",
            filled(
                &format!("{ITEM}<description>"),
                "<![CDATA[x]]>",
                &format!("</description>{END}"),
            ),
        ),
        (
            "a long text",
            filled(
                &format!("{ITEM}<description>"),
                "x",
                &format!("</description>{END}"),
            ),
        ),
        (
            "a long id",
            filled(
                "<rss><channel><item><guid>",
                "x",
                "</guid></item></channel></rss>",
            ),
        ),
        (
            "long ids",
            filled(
                CHANNEL,
                &format!("<item><guid>{}</guid></item>", &long[..10_000]),
                "",
            ),
        ),
        (
            "long titles",
            filled(
                CHANNEL,
                &format!("<item><title>{}</title></item>", &long[..10_000]),
                "",
            ),
        ),
        (
            "a long date",
            filled(
                "<rss><channel><item><pubDate>",
                "x ",
                "</pubDate></item></channel></rss>",
            ),
        ),
        (
            "a long tag name",
            filled("<rss><channel><item><", "x", "/></item></channel></rss>"),
        ),
        (
            "long text before",
            filled("", "x ", "<rss><channel><item/></channel></rss>"),
        ),
        (
            "media",
            filled(MEDIA, "<media:content url='http://e.org/'/>", END),
        ),
        ("small media", filled(MEDIA, "<media:a/>", END)),
        (
            "media in groups",
            filled(
                MEDIA,
                "<media:group><media:content url='http://e.org/'/></media:group>",
                END,
            ),
        ),
        (
            "text of media",
            filled(
                &format!("{MEDIA}<media:description>"),
                "&amp;",
                &format!("</media:description>{END}"),
            ),
        ),
        (
            "declared entities",
            filled(
                "<!DOCTYPE rss [<!ENTITY e 'eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee'>]><rss><channel><item><guid>1</guid><title>",
                "&e;",
                &format!("</title>{END}"),
            ),
        ),
        (
            "declarations of entities",
            numbered(
                "<!DOCTYPE rss [",
                |n| format!("<!ENTITY e{n} ''>"),
                "]><rss><channel><item><guid>1</guid></item></channel></rss>",
            ),
        ),
        ("laughs", {
            let laughs: String = (1..40)
                .map(|n| format!("<!ENTITY l{n} '{}'>", format!("&l{};", n - 1).repeat(10)))
                .collect();
            filled(
                &format!(
                    "<!DOCTYPE rss [<!ENTITY l0 'ha'>{laughs}]><rss><channel><item><guid>1</guid><title>"
                ),
                "&l39;",
                &format!("</title>{END}"),
            )
        }),
        (
            "latin-1",
            filled(ITEM, "<a>\u{0}</a>", END)
                .iter()
                .map(|b| if *b == 0 { 0x93 } else { *b })
                .collect(),
        ),
        (
            "only quotation marks in windows-1252",
            [
                ITEM.as_bytes(),
                b"<title>",
                &b"\x93".repeat(DOCUMENT_BYTES),
                b"</title>",
                END.as_bytes(),
            ]
            .concat(),
        ),
        (
            "windows-1252 with line ends",
            [
                b"<?xml version='1.0' encoding='windows-1252'?>",
                ITEM.as_bytes(),
                b"<title>",
                &b"\x93\r".repeat(DOCUMENT_BYTES / 2),
                b"</title>",
                END.as_bytes(),
            ]
            .concat(),
        ),
        ("UTF-16", wide(filled(ITEM, "<a/>", ""), false)),
        (
            "UTF-16 of three bytes",
            [
                b"\xFE\xFF".to_vec(),
                format!("{ITEM}<title>")
                    .encode_utf16()
                    .flat_map(u16::to_be_bytes)
                    .collect(),
                b"\x20\x1C".repeat(DOCUMENT_BYTES / 2),
                format!("</title>{END}")
                    .encode_utf16()
                    .flat_map(u16::to_be_bytes)
                    .collect(),
            ]
            .concat(),
        ),
        (
            "control characters",
            [
                ITEM.as_bytes(),
                &b"\x01x".repeat(DOCUMENT_BYTES / 2),
                END.as_bytes(),
            ]
            .concat(),
        ),
        (
            "JSON numbers",
            filled(
                "{\"version\":\"https://jsonfeed.org/version/1\",\"items\":[{\"id\":\"1\",\"_a\":[",
                "1,",
                "1]}]}",
            ),
        ),
        (
            "JSON arrays",
            filled(
                "{\"version\":\"https://jsonfeed.org/version/1\",\"items\":[{\"id\":\"1\",\"_a\":[",
                "[],",
                "1]}]}",
            ),
        ),
        (
            "JSON objects",
            filled(
                "{\"version\":\"https://jsonfeed.org/version/1\",\"items\":[{\"id\":\"1\",\"_a\":[",
                "{\"a\":{}},",
                "1]}]}",
            ),
        ),
        (
            "JSON items",
            filled(
                "{\"version\":\"https://jsonfeed.org/version/1\",\"items\":[",
                "{},",
                "{}]}",
            ),
        ),
        (
            "JSON items of any kind",
            filled(
                "{\"version\":\"https://jsonfeed.org/version/1\",\"items\":[",
                "1,",
                "1]}",
            ),
        ),
        (
            "JSON heads",
            filled(
                "{\"version\":\"https://jsonfeed.org/version/1\",\"_a\":[",
                "[],",
                "1],\"items\":[{\"id\":1}]}",
            ),
        ),
        (
            "JSON keys",
            numbered(
                "{\"version\":\"https://jsonfeed.org/version/1\",\"items\":[{\"id\":\"1\"",
                |n| format!(",\"{n}\":0"),
                "}]}",
            ),
        ),
        (
            "JSON depth",
            filled(
                "{\"version\":\"https://jsonfeed.org/version/1\",\"items\":[",
                "[",
                "",
            ),
        ),
        (
            "JSON escapes",
            filled(
                "{\"version\":\"https://jsonfeed.org/version/1\",\"items\":[{\"id\":\"1\",\"content_text\":\"",
                "\\n",
                "\"}]}",
            ),
        ),
    ]
}

/// Length of a description that somebody put a whole archive into, bytes. One of 30 MB takes as
/// many times its size; it only takes longer.
const LARGE_BYTES: usize = 3_000_000;

/// Memory that such a document may take to be sliced and parsed, beside its own bytes, in multiples
/// of its size.
const LARGE_TIMES: usize = 4;

/// Large descriptions that take more than their copies.
fn large_descriptions() -> Vec<String> {
    let mut failures = Vec::new();
    for (name, inside, before, behind) in [
        ("words", "word after word ", "", ""),
        ("escaped markup", "&lt;p>word&lt;/p> ", "", ""),
        ("a section", "<p>word</p> <br>", "<![CDATA[", "]]>"),
        ("relative links", "&lt;a href='x'>word&lt;/a> ", "", ""),
        ("letters of two bytes", "\u{e9}t\u{e9} ", "", ""),
    ] {
        let head = "<rss><channel><title>t</title><item><guid>1</guid><description>";
        let end = "</description></item></channel></rss>";
        let document = [
            head,
            before,
            &inside.repeat(LARGE_BYTES / inside.len()),
            behind,
            end,
        ]
        .concat();
        let hints = Hints {
            base_url: Some("http://example.org/"),
            ..Hints::default()
        };
        let (taken, _) = peak(|| slice(document.as_bytes(), &hints).unwrap().entries[0].parse());
        println!(
            "{name:24} sliced and parsed {:5.2}",
            times(taken, document.len())
        );
        if taken > LARGE_TIMES * document.len() {
            failures.push(format!("{name}: {taken} bytes"));
        }
    }
    failures
}

#[test]
fn no_document_takes_more_than_a_small_multiple_of_its_size() {
    // One test for both: only one may count at a time.
    let mut failures = large_descriptions();
    for (name, document) in documents().into_iter() {
        assert!(document.len() <= DOCUMENT_BYTES + 1_000_000, "{name}");
        let hints = Hints {
            base_url: Some("http://example.org/"),
            ..Hints::default()
        };
        let (taken, sliced) = peak(|| slice(&document, &hints));
        let mut line = format!("{name:40} slice {:6.2}", times(taken, document.len()));
        let mut check = |what: &str, taken: usize, limit: usize| {
            if taken > limit * document.len() + BESIDES_BYTES {
                failures.push(format!(
                    "{name}: {what} takes {} times its size",
                    taken / document.len()
                ));
            }
        };
        check("slicing", taken, SLICE_TIMES);
        if let Ok(sliced) = sliced {
            let one = sliced.entries.iter().step_by(97).map(|raw| {
                let (taken, (entry, _)) = peak(|| raw.parse());
                let (digesting, _) = peak(|| entry.digest());
                taken.max(digesting)
            });
            let one = one.max().unwrap_or(0);
            check("one entry", one, PARSE_TIMES);
            line += &format!(
                " one entry {:6.2} of {}",
                times(one, document.len()),
                sliced.entries.len()
            );
            if sliced.entries.len() == 1 {
                let (taken, _) = peak(|| neutral(&sliced));
                line += &format!(" neutral {:6.2}", times(taken, document.len()));
            }
        }
        println!("{line}");
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
fn times(taken: usize, size: usize) -> f64 {
    taken as f64 / size as f64
}
