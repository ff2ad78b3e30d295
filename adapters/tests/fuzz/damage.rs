//! The ways in which a document gets damaged, by accident or on purpose.

use crate::chance::Chance;

/// No damaged document is longer, in bytes, so that one case never takes long by right.
const BYTES_MAX: usize = 300_000;

/// Pieces of markup that matter to a parser.
const PIECES: &[&str] = &[
    "<",
    ">",
    "&",
    ";",
    "\"",
    "'",
    "=",
    "</",
    "/>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<?xml version='1.0' encoding='utf-16'?>",
    "<?xml version='1.0' encoding='iso-2022-jp'?>",
    "<?php echo 1 ?>",
    "<?",
    "<!DOCTYPE x [<!ENTITY a \"b\">]>",
    "<!DOCTYPE x SYSTEM 'http://e.org/x.dtd'>",
    "<!DOCTYPE x [",
    "<!ENTITY % p SYSTEM 'file:///etc/passwd'>%p;",
    "&a;",
    "&eacute;",
    "&nbsp",
    "&#0;",
    "&#150;",
    "&#xFFFE;",
    "&#x110000;",
    "&#99999999999999999999;",
    "<item>",
    "</item>",
    "<item/>",
    "<entry>",
    "</entry>",
    "<ITEM HREF='x'>",
    "<channel>",
    "</channel>",
    "</rss>",
    "<rss>",
    "</feed>",
    "<feed xmlns='http://www.w3.org/2005/Atom'>",
    "<x:y>",
    "<a:b:c d:e:f='g'>",
    "<:>",
    "<1>",
    " xmlns=''",
    " xmlns='urn:x'",
    " xmlns:x=''",
    " xmlns:xml='urn:y'",
    " xml:base='%'",
    " xml:base='http://[::1'",
    " xml:base='data:,'",
    " xml:lang='\u{202E}'",
    " mode='base64'",
    " type='text/html; charset=x'",
    " isPermaLink='maybe'",
    "\0",
    "\u{B}",
    "\u{85}",
    "\u{FEFF}",
    "\u{FFFE}",
    "\u{202E}",
    "\u{1F600}",
    "<title>",
    "</title>",
    "<div>",
    "<br>",
    "<img src='x' alt=\"y>",
    "<media:content url='x'/>",
    "<media:content url='http://e.org/' type='/' fileSize='-1' duration='x'/>",
    "<media:thumbnail url='x' time='99:99:99'/>",
    "<media:thumbnail url='http://e.org/' time='99999999999999999999999:00:00.5'/>",
    "<media:text start='\u{663}:00:00' end='\u{663}'>x</media:text>",
    "<guid>",
    "<link/>",
    "<link rel='enclosure' href=':'>",
    "<pubDate>9999999999999-99-99T99:99:99+99:99</pubDate>",
    "<pubDate>-1</pubDate>",
    "<dc:date>0000-00-00</dc:date>",
    "<ttl>18446744073709551616</ttl>",
    "<sy:updateFrequency>0</sy:updateFrequency>",
    "<skipHours><hour>-1</hour></skipHours>",
    "{\"items\":[",
    "\"version\":",
    "null",
    "1e999",
    "\\ud800",
    "[[[[",
    "}",
];

/// Bytes that are odd in one encoding or another.
const BYTES: &[&[u8]] = &[
    b"\xFF",
    b"\xFE\xFF",
    b"\xFF\xFE",
    b"\xEF\xBB\xBF",
    b"\xC0\x80",
    b"\xED\xA0\x80",
    b"\xF4\x90\x80\x80",
    b"\xE2\x82",
    b"\x80",
    b"\x93",
    b"\xE9",
    b"\x1B$B",
    b"\0\0",
];

/// A document with some damage done to it.
pub(crate) fn damaged(document: &[u8], all: &[Vec<u8>], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = document.to_vec();
    for _ in 0..=chance.below(4) {
        once(&mut bytes, all, chance);
        bytes.truncate(BYTES_MAX);
    }
    bytes
}

fn once(bytes: &mut Vec<u8>, all: &[Vec<u8>], chance: &mut Chance) {
    let at = chance.below(bytes.len() + 1);
    match chance.below(12) {
        0 => bytes.truncate(at),
        1 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
        2 if at < bytes.len() => bytes[at] = chance.byte(),
        3 => {
            let end = (at + chance.below(200)).min(bytes.len());
            bytes.drain(at..end);
        }
        // A stretch of another document, or of this one once more.
        4 | 5 => {
            let other = chance.one_of(all);
            let start = chance.below(other.len() + 1);
            let end = (start + chance.below(400)).min(other.len());
            bytes.splice(at..at, other[start..end].iter().copied());
        }
        6 => {
            bytes.splice(at..at, chance.one_of(BYTES).iter().copied());
        }
        7 => *bytes = transcoded(bytes, chance),
        8 => {
            let many = flood(chance);
            bytes.splice(at..at, many.into_bytes());
        }
        // Next to a tag, where it matters more than in the midst of a text.
        9 => {
            let at = bytes[at..]
                .iter()
                .position(|b| matches!(b, b'<' | b'>'))
                .map_or(at, |next| at + next);
            bytes.splice(at..at, chance.one_of(PIECES).bytes());
        }
        _ => {
            bytes.splice(at..at, chance.one_of(PIECES).bytes());
        }
    }
}

/// The document in another encoding, or one that only says so.
fn transcoded(bytes: &[u8], chance: &mut Chance) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let marked = chance.below(2) == 0;
    let units = text.encode_utf16();
    let mut out = Vec::new();
    match chance.below(7) {
        0 => {
            out.extend_from_slice(if marked { b"\xFF\xFE" } else { b"" });
            out.extend(units.flat_map(u16::to_le_bytes));
        }
        1 => {
            out.extend_from_slice(if marked { b"\xFE\xFF" } else { b"" });
            out.extend(units.flat_map(u16::to_be_bytes));
        }
        2 => out.extend(text.chars().flat_map(|c| u32::from(c).to_le_bytes())),
        3 => out.extend(text.chars().flat_map(|c| u32::from(c).to_be_bytes())),
        4 => out.extend(
            text.chars()
                .map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')),
        ),
        5 => {
            let label = chance.one_of(&[
                "utf-16",
                "utf-7",
                "latin1",
                "gb18030",
                "iso-2022-jp",
                "x-user-defined",
                "\0",
            ]);
            out.extend_from_slice(format!("<?xml version='1.0' encoding='{label}'?>").as_bytes());
            out.extend_from_slice(bytes);
        }
        _ => {
            out.extend_from_slice(b"\xEF\xBB\xBF");
            out.extend_from_slice(bytes);
        }
    }
    out
}

/// Very many of something, or something very large.
fn flood(chance: &mut Chance) -> String {
    let many = 1 << chance.below(13);
    let numbered = |before: &str, after: &str| {
        (0..many.min(2_000))
            .map(|n| format!("{before}{n}{after}"))
            .collect::<String>()
    };
    match chance.below(12) {
        0 => "<a>".repeat(many),
        1 => "<div><p>".repeat(many),
        2 => "<item><guid>x</guid></item>".repeat(many),
        3 => numbered("<item><guid>", "</guid></item>"),
        4 => format!("<a {}>", numbered("b", "='c' ")),
        5 => format!("<a b='{}'>", "c".repeat(many * 8)),
        6 => format!("<a {}>", numbered("xmlns:n", "='urn:n'")),
        7 => "&lt;&amp;&eacute;".repeat(many),
        8 => "x".repeat(many * 16),
        9 => chance.one_of(PIECES).repeat(many),
        10 => "[".repeat(many) + &"{\"a\":".repeat(many),
        _ => {
            let laughs: String = (1..20)
                .map(|n| format!("<!ENTITY l{n} \"{}\">", format!("&l{};", n - 1).repeat(10)))
                .collect();
            format!("<!DOCTYPE rss [<!ENTITY l0 \"ha\">{laughs}]>&l19;")
        }
    }
}
