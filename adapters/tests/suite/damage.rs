//! Documents broken on purpose: nothing may panic, hang or grow without bound, and what comes out is well-formed.

use std::path::{Path, PathBuf};

use everfeed_adapters::text::markup::{XHTML, write_element};
use everfeed_adapters::{ENTRIES_MAX, Element, Entry, Hints, Key, NotAFeed, Note, Text, TextKind, slice};

use crate::shared;

/// xorshift64*: the same damage on every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(high).unwrap() % limit.max(1)
    }
}

/// Whether some markup is well-formed XML, by the strict reader.
fn assert_well_formed(markup: &str) {
    let mut reader = quick_xml::Reader::from_str(markup);
    loop {
        match reader.read_event() {
            Ok(quick_xml::events::Event::Eof) => return,
            Ok(quick_xml::events::Event::Start(tag) | quick_xml::events::Event::Empty(tag)) => {
                tag.attributes().for_each(|attribute| {
                    drop(attribute.unwrap_or_else(|error| panic!("{error}: {markup}")))
                });
            }
            Ok(_) => {}
            Err(error) => panic!("{error}: {markup}"),
        }
    }
}

fn check_text(text: Option<&Text>) {
    if let Some(Text { kind: TextKind::Xhtml, value, .. }) = text {
        assert_well_formed(&format!("<div xmlns=\"{XHTML}\">{value}</div>"));
    }
}

fn check_entry(entry: &Entry) {
    entry.digest();
    check_text(entry.title.as_ref());
    check_text(entry.summary.as_ref());
    check_text(entry.content.as_ref().map(|content| &content.text));
    entry.foreign.iter().for_each(|element: &Element| {
        let mut out = String::new();
        write_element(&mut out, element, &[("", "http://www.w3.org/2005/Atom")]);
        assert_well_formed(&out);
    });
}

/// Reads a document in whole; returns how many entries it has.
fn read(bytes: &[u8]) -> usize {
    let hints = Hints { base_url: Some("http://example.org/"), ..Hints::default() };
    let Ok(window) = slice(bytes, &hints) else { return 0 };
    check_text(window.head.title.as_ref());
    for raw in &window.entries {
        let (entry, _) = raw.parse();
        check_entry(&entry);
        assert_eq!(raw.parse().0.digest(), entry.digest(), "parsing twice is parsing once");
    }
    window.entries.len()
}

fn documents() -> Vec<Vec<u8>> {
    let mut folders: Vec<PathBuf> = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")];
    folders.extend(shared("corpus"));
    let mut documents = Vec::new();
    while let Some(folder) = folders.pop() {
        let mut paths: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "xml" || extension == "json")
                && !path.to_str().is_some_and(|path| path.ends_with(".expect.json"))
            {
                documents.push(std::fs::read(&path).unwrap());
            }
        }
    }
    // The large ones cost time and show nothing more.
    documents.retain(|document| document.len() < 40_000);
    documents
}

/// Pieces of markup that matter to a parser.
const PIECES: &[&str] = &[
    "<",
    ">",
    "&",
    ";",
    "\"",
    "'",
    "</",
    "/>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<?xml encoding='utf-16'?>",
    "<?",
    "<!DOCTYPE x [<!ENTITY a \"b\">]>",
    "&a;",
    "&#0;",
    "&#x110000;",
    "<item>",
    "</item>",
    "<entry>",
    "</entry>",
    "<channel>",
    "</channel>",
    "</rss>",
    "<rss>",
    "</feed>",
    "<x:y>",
    " xmlns=''",
    " xmlns='urn:x'",
    " xmlns:x=''",
    " xml:base='%'",
    "\0",
    "\u{FEFF}",
    "\u{FFFE}",
    "<title>",
    "</title>",
    "<div>",
    "<br>",
    "<media:content url='x'/>",
    "<guid>",
    "<link/>",
    "<link rel='enclosure' href=':'>",
    "<CHANNEL HREF='x'>",
    "<ITEM HREF='y'/>",
    "{",
    "}",
    "[",
    "]",
    ",",
    "\"items\":[",
    "\"id\":1,",
    "{\"version\":\"https://jsonfeed.org/version/1\",",
    "\\",
    "\\u",
    "\\uD800",
];

fn damaged(document: &[u8], all: &[Vec<u8>], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = document.to_vec();
    for _ in 0..=chance.below(4) {
        let at = chance.below(bytes.len() + 1);
        match chance.below(6) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            2 if at < bytes.len() => bytes[at] = u8::try_from(chance.below(256)).unwrap(),
            3 => {
                let end = (at + chance.below(200)).min(bytes.len());
                bytes.drain(at..end);
            }
            4 => {
                let other = &all[chance.below(all.len())];
                let start = chance.below(other.len() + 1);
                let end = (start + chance.below(300)).min(other.len());
                bytes.splice(at..at, other[start..end].iter().copied());
            }
            _ => {
                let piece = PIECES[chance.below(PIECES.len())].as_bytes();
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
    bytes
}

#[test]
fn damaged_documents_never_panic_and_what_comes_out_is_well_formed() {
    let documents = documents();
    let mut chance = Chance(0x5EED_F00D);
    let mut entries = 0;
    for _ in 0..8_000 {
        let document = &documents[chance.below(documents.len())];
        entries += read(&damaged(document, &documents, &mut chance));
    }
    assert!(entries > 3_000, "the damage leaves something to read: {entries}");
}

#[test]
fn random_bytes_never_panic() {
    let mut chance = Chance(7);
    for _ in 0..3_000 {
        let length = chance.below(300);
        let bytes: Vec<u8> = (0..length).map(|_| u8::try_from(chance.below(256)).unwrap()).collect();
        read(&bytes);
        read(&[b"<rss><channel><item>".as_slice(), &bytes].concat());
    }
}

/// DESIGN section 4: whole entries before the cut count, the cut one is dropped.
#[test]
fn a_cut_anywhere_leaves_the_whole_entries_before_it() {
    let items: String = (0..6)
        .map(|n| format!("<item><title>a &amp; b {n}</title><guid>{n}</guid><description><![CDATA[<p>{n}</p>]]></description></item>\n"))
        .collect();
    let document = format!(
        "<?xml version='1.0'?>\n<rss version='2.0'><channel><title>t</title>\n{items}</channel></rss>"
    );
    let ends: Vec<_> = document.match_indices("</item>").map(|(at, tag)| at + tag.len()).collect();
    for length in 0..document.len() {
        let whole = ends.iter().filter(|end| **end <= length).count();
        match slice(&document.as_bytes()[..length], &Hints::default()) {
            Ok(window) => {
                let expect: Vec<_> = (0..whole).map(|n| Key::Id(n.to_string())).collect();
                assert_eq!(
                    window.entries.iter().map(|raw| raw.key.clone()).collect::<Vec<_>>(),
                    expect,
                    "at {length}"
                );
                assert!(window.is_truncated(), "at {length}");
            }
            Err(_) => assert_eq!(whole, 0, "at {length}"),
        }
    }
}

/// Each of these would take minutes if anything looked twice at what is left.
#[test]
fn hostile_documents_take_linear_time_and_bounded_room() {
    let inside = |what: String| format!("<rss><channel><title>t</title><item><guid>1</guid>{what}");
    let many = |tag: &str| (0..30_000).map(|n| format!("<{tag}>{n}</{tag}>")).collect::<String>();
    let json = |items: &str| {
        format!("{{\"version\":\"https://jsonfeed.org/version/1\",\"title\":\"t\",\"items\":[{items}]}}")
    };
    for document in [
        inside(many("link") + &many("category") + &many("author") + &many("dc:contributor") + "</item>"),
        "<rss><channel>".to_owned() + &many("link") + &many("category") + &many("dc:creator"),
        inside((0..30_000).map(|n| format!("<enclosure url='{n}'/>")).collect::<String>() + "</item>"),
        inside("<a>".repeat(100_000)),
        inside("</a>".repeat(100_000)),
        inside("<a ".repeat(100_000)),
        inside("<a b='".repeat(100_000)),
        inside("&a;".repeat(200_000)),
        inside("&".repeat(200_000)),
        inside("<![CDATA[".repeat(50_000)),
        inside("<link>x</link>".repeat(50_000) + "</item>"),
        inside(format!("<a {}>", "x='' ".repeat(100_000)) + "</item>"),
        inside("<a xmlns:b='urn:b' xml:base='c/'>".repeat(20_000)),
        inside("<media:content url='http://e.org/'/>".repeat(5_000) + "</item>"),
        "<rss><channel>".to_owned() + &"<x><y/></x>".repeat(50_000),
        "<rss>".to_owned() + &"<channel>".repeat(50_000),
        "<feed xmlns='http://www.w3.org/2005/Atom'>".to_owned() + &"<author>".repeat(50_000),
        "<channel>".to_owned() + &"<channel href='x'>".repeat(50_000),
        "<channel href='x'>".to_owned() + &"<channel href='x'/>".repeat(50_000),
        "<channel href='x'>".to_owned() + &"<item href='x' xmlns:a='urn:a'/>".repeat(50_000),
        "{\"a\":".repeat(200_000),
        "{".repeat(400_000),
        json(&"[".repeat(400_000)),
        json(&"\"".repeat(400_000)),
        json(&"\"  ".repeat(200_000)),
        json(&"{\"id\":1},".repeat(20_000)),
        json(&format!("{{\"id\":1,\"_x\":{}}}", "[".repeat(200_000) + &"]".repeat(200_000))),
        json(&format!("{{{}}}", "\"_x\":{},".repeat(50_000))),
        json(&format!("{{\"tags\":[{}]}}", (0..30_000).map(|n| format!("{n},")).collect::<String>())),
        json("{}").replace("\"t\"", &format!("\"t\",{}", "\"_y\":1,".repeat(50_000))),
        "<".repeat(200_000),
        "<x>".repeat(100_000),
    ] {
        read(document.as_bytes());
    }
}

#[test]
fn a_document_has_a_limited_number_of_entries() {
    let document =
        format!("<rss><channel>{}</channel></rss>", "<item><guid>x</guid></item>".repeat(ENTRIES_MAX + 5));
    let window = slice(document.as_bytes(), &Hints::default()).unwrap();
    assert_eq!(window.entries.len(), ENTRIES_MAX);
    assert_eq!(window.notes, [Note::TooManyEntries]);
    let document = format!("<rss><channel>{}</channel></rss>", "<item/>".repeat(ENTRIES_MAX + 5));
    assert_eq!(slice(document.as_bytes(), &Hints::default()).unwrap().entries.len(), ENTRIES_MAX);
    let items = "{\"id\":1},".repeat(ENTRIES_MAX + 5);
    let document =
        format!("{{\"version\":\"https://jsonfeed.org/version/1\",\"title\":\"t\",\"items\":[{items}{{}}]}}");
    let window = slice(document.as_bytes(), &Hints::default()).unwrap();
    assert_eq!(window.entries.len(), ENTRIES_MAX);
    assert_eq!(window.notes, [Note::TooManyEntries]);
    // Without end tags every start tag ends the item before it.
    let document =
        format!("<rss><channel>{}</channel></rss>", "<item><guid>x</guid>".repeat(ENTRIES_MAX + 5));
    assert_eq!(slice(document.as_bytes(), &Hints::default()).unwrap().entries.len(), ENTRIES_MAX);
}

#[test]
fn entries_that_are_there_are_never_silently_none() {
    for document in [
        "<rss><channel><item><guid>1</guid>",
        "<rss><channel><title>t</title><!-- <item><guid>1</guid></item></channel></rss>",
        "<rss><channel><x:item xmlns:x='urn:x'><guid>1</guid></x:item></channel></rss>",
        "<feed xmlns='http://www.w3.org/2005/Atom'><entry xmlns='urn:x'><id>1</id></entry></feed>",
        "<CHANNEL HREF='x'><ITEM HREF='y'><TITLE>",
        "{\"version\":\"https://jsonfeed.org/version/1\",\"title\":\"t\",\"items\":[{\"id\":1",
        "{\"version\":\"https://jsonfeed.org/version/1\",\"title\":\"t\",\"items\":[\"a post\"]}",
    ] {
        let error = slice(document.as_bytes(), &Hints::default()).unwrap_err();
        assert!(matches!(error, NotAFeed::NoWholeEntry { .. }), "{document}: {error}");
    }
}
