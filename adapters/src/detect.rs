//! Recognition of a document: its format by its root element, or the error that says what it is
//! instead of a feed.

use crate::formats::json_feed::JsonOutline;
use crate::text::encoding::decode;
use crate::text::entities::unescape_into;
use crate::text::markup::split;
use crate::text::markup::tokens::{Token, Tokens, attributes};
use crate::text::markup::tree::Bindings;
use crate::text::{is_one_of, present};
use crate::vocabulary::Vocabulary;
use crate::{Format, NotAFeed};

/// A recognised document.
#[derive(Debug)]
pub(crate) struct Root<'t> {
    pub(crate) format: Format,
    /// The root element as written.
    pub(crate) name: &'t str,
    /// The text from the root element on.
    pub(crate) text: &'t str,
    /// Something other than white space and comments stood before it.
    pub(crate) preceded: bool,
}

/// Number of characters of a wrong document that its error shows.
const START_CHARS: usize = 60;

/// Limit of the tokens before the root element that are passed over: warnings of PHP and the like.
const TOKENS_BEFORE_MAX: usize = 512;

/// Finds the root element.
pub(crate) fn recognise(text: &str) -> Result<Root<'_>, NotAFeed> {
    let visible = text.trim_start();
    if visible.is_empty() {
        return Err(NotAFeed::Empty);
    }
    if let Some(root) = json_feed(visible) {
        return Ok(root);
    }
    let mut tokens = Tokens::new(text);
    let mut first = None;
    let mut preceded = false;
    for _ in 0..TOKENS_BEFORE_MAX {
        let Some((token, place)) = tokens.next() else {
            break;
        };
        match token {
            Token::Start {
                name, attributes, ..
            } => {
                if let Some(format) = format_of(name, attributes) {
                    let text = &text[place.start..];
                    let is_cdf =
                        format == Format::Rss && !name.eq_ignore_ascii_case("rss") && is_cdf(text);
                    let format = if is_cdf { Format::Cdf } else { format };
                    return Ok(Root {
                        format,
                        name,
                        text,
                        preceded,
                    });
                }
                first.get_or_insert(name);
                if name.eq_ignore_ascii_case("html") {
                    break;
                }
                preceded = true;
            }
            Token::Text(text) => preceded |= !text.trim().is_empty(),
            Token::End { .. } | Token::Literal(_) => preceded = true,
        }
    }
    if (first.is_none_or(is_of_warning) || is_script(visible))
        && let Some(root) = inner_json_feed(visible)
    {
        return Ok(root);
    }
    Err(match first {
        _ if visible.starts_with(['{', '[']) || is_script(visible) => NotAFeed::Json {
            start: start(visible),
        },
        Some(name) if is_html(name) => NotAFeed::Html { title: title(text) },
        Some(name) if name.eq_ignore_ascii_case("opml") => NotAFeed::Opml,
        Some(name) if name.eq_ignore_ascii_case("redirect") => moved(text).map_or_else(
            || NotAFeed::OtherXml {
                root: name.to_owned(),
            },
            |to| NotAFeed::Moved { to },
        ),
        Some(name) => NotAFeed::OtherXml {
            root: name.to_owned(),
        },
        None if visible
            .get(..9)
            .is_some_and(|start| start.eq_ignore_ascii_case("<!doctype")) =>
        {
            NotAFeed::Html { title: None }
        }
        None => NotAFeed::Text {
            start: start(visible),
        },
    })
}

/// A JSON Feed from the first character on.
fn json_feed(text: &str) -> Option<Root<'_>> {
    let is_feed = text.starts_with('{') && JsonOutline::of(text).is_some();
    is_feed.then_some(Root {
        format: Format::JsonFeed,
        name: "",
        text,
        preceded: false,
    })
}

/// A JSON Feed behind a warning of PHP, or in the call of a JSON-P callback. Where nothing else
/// tells, it must name its version, which stands at the beginning by the spec.
fn inner_json_feed(text: &str) -> Option<Root<'_>> {
    let version = memchr::memmem::find(text.as_bytes(), b"jsonfeed.org/version/")?;
    let start = text[..version].rfind('{')?;
    let root = json_feed(&text[start..])?;
    Some(Root {
        preceded: true,
        ..root
    })
}

/// True for a text that begins as JSON-P does, with a call, or as JSON that somebody has commented:
/// any tags of it stand in its strings.
fn is_script(text: &str) -> bool {
    let behind =
        text.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.'));
    let is_call = || {
        behind.trim_start().strip_prefix('(').is_some_and(|inside| {
            behind.len() < text.len() && inside.trim_start().starts_with(['{', '['])
        })
    };
    text.starts_with("/*") || text.starts_with("//") || is_call()
}

/// The tags of PHP's warnings; other markup with JSON in it is a page about JSON.
fn is_of_warning(name: &str) -> bool {
    name.eq_ignore_ascii_case("br") || name.eq_ignore_ascii_case("b")
}

/// The error for a document whose first bytes are binary, found before anybody tries to decode it.
pub(crate) fn binary(bytes: &[u8]) -> Option<NotAFeed> {
    let kinds: [(&[u8], &'static str); 8] = [
        (b"\x1F\x8B", "compressed with gzip"),
        (b"BZh", "compressed with bzip2"),
        (b"\x28\xB5\x2F\xFD", "compressed with zstd"),
        (b"PK\x03\x04", "a ZIP archive"),
        (b"\x89PNG", "a PNG image"),
        (b"\xFF\xD8\xFF", "a JPEG image"),
        (b"GIF8", "a GIF image"),
        (b"%PDF-", "a PDF file"),
    ];
    let (_, kind) = kinds.iter().find(|(magic, _)| bytes.starts_with(magic))?;
    Some(NotAFeed::Binary { kind })
}

/// Number of first bytes that are searched for control characters.
const CONTROLS_WITHIN_BYTES: usize = 1024;

/// One control character in so many bytes is no damage to a text any more. Of random bytes one in
/// ten is one.
const BYTES_PER_CONTROL_MIN: usize = 25;

/// True for bytes that are no text at all. Not for UTF-16 and UTF-32.
pub(crate) fn is_noise(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(CONTROLS_WITHIN_BYTES)];
    let is_of_text = |b: u8| matches!(b, b'\t' | b'\n' | b'\x0B' | b'\x0C' | b'\r' | b'\x1B');
    let controls = start
        .iter()
        .filter(|b| **b < b' ' && !is_of_text(**b))
        .count();
    controls * BYTES_PER_CONTROL_MIN > start.len()
}

/// The thing that the beginning of a body may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// A feed, or one inside of something else.
    Feed,
    /// Nothing yet but what may stand before a feed: what follows tells.
    Open,
    /// Something else so far. There may be a feed in it.
    Other,
    /// No text. What follows tells no more.
    Binary,
}

// Decides: Is the beginning of an answer a feed?
/// Tells the beginning of a body, of whatever media type, by the names of its elements or by the
/// version of JSON Feed. Namespaces of the root element are not looked at: some reader takes a
/// `feed` of any for one. `is_code` for a script and the like, which may have tags in its strings.
pub fn beginning(bytes: &[u8], is_code: bool) -> Beginning {
    // Of UTF-16 and UTF-32 the bytes between; before a document they are padding.
    let bytes: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
    let padding = bytes.iter().take_while(|byte| **byte <= b' ').count();
    let bytes = &bytes[padding..];
    if binary(bytes).is_some() {
        return Beginning::Binary;
    }
    let text = String::from_utf8_lossy(bytes);
    let is_padding = |c: char| matches!(c, BOM | '\u{fffd}') || c.is_whitespace();
    match of_text(text.trim_start_matches(is_padding), is_code) {
        Beginning::Open | Beginning::Other if bytes.len() >= NOISE_BYTES_MIN && is_noise(bytes) => {
            Beginning::Binary
        }
        found => found,
    }
}

/// True for a part of something, without its beginning, that is no text.
pub fn is_binary_part(part: &[u8]) -> bool {
    // Of UTF-16 and UTF-32 the bytes between.
    let bytes: Vec<u8> = part.iter().copied().filter(|byte| *byte != 0).collect();
    !part.is_empty() && (bytes.is_empty() || is_noise(&bytes))
}

/// The mark of the order of bytes, which some software writes more than once.
const BOM: char = '\u{feff}';

/// Bytes from which on noise is told from text.
const NOISE_BYTES_MIN: usize = 64;

/// True for the beginning of a list of JSON; not for a word in brackets, as logs begin lines.
fn is_json_list(text: &str) -> bool {
    let Some(first) = text.strip_prefix('[').map(str::trim_start) else {
        return false;
    };
    let is_word = ["true", "false", "null"]
        .iter()
        .any(|word| first.starts_with(word));
    let is_value = |c: char| c.is_ascii_digit() || matches!(c, '{' | '[' | '"' | ']' | '-');
    first.is_empty() || is_word || first.starts_with(is_value)
}

fn of_text(text: &str, is_code: bool) -> Beginning {
    let is_json = text.starts_with('{') || is_json_list(text) || is_script(text);
    if is_json && names_json_feed(text) {
        return Beginning::Feed;
    }
    let (before, markup) = text.split_at(text.find('<').unwrap_or(text.len()));
    let is_behind_text = !before.is_empty();
    let mut so_far = if is_behind_text {
        Beginning::Other
    } else {
        Beginning::Open
    };
    let mut may_be_root = !(is_json || (is_code && is_behind_text));
    let (mut is_behind_html, mut is_behind_rss) = (false, false);
    let mut rest = markup.as_bytes();
    while let Some(at) = memchr::memchr(b'<', rest) {
        rest = &rest[at + 1..];
        let end: &[u8] = match rest {
            [b'!', b'-', b'-', ..] => b"-->",
            [b'?', ..] => b"?>",
            [b'!' | b'/', ..] => b">",
            _ => {
                let is_end = |byte: &u8| byte.is_ascii_whitespace() || b">/".contains(byte);
                // The whole name has to be here.
                let Some(length) = rest.iter().position(is_end) else {
                    break;
                };
                let name = String::from_utf8_lossy(&rest[..length]).to_ascii_lowercase();
                let name = name.rsplit(':').next().unwrap_or_default();
                let is_feed = match name {
                    "rss" | "entry" => may_be_root,
                    "channel" => may_be_root || is_behind_rss,
                    "feed" | "rdf" => may_be_root || names_namespace(rest),
                    _ => false,
                };
                if is_feed {
                    return Beginning::Feed;
                }
                // Warnings of PHP and the like stand before what they are about.
                is_behind_html |= is_html(name);
                may_be_root &= is_behind_html && name != "html";
                if !is_of_warning(name) {
                    so_far = Beginning::Other;
                }
                is_behind_rss = name == "rss";
                b">"
            }
        };
        let Some(at) = memchr::memmem::find(rest, end) else {
            break;
        };
        rest = &rest[at + end.len()..];
    }
    so_far
}

/// True for a tag with the namespace of Atom or of RSS 1.0.
fn names_namespace(tag: &[u8]) -> bool {
    let end = memchr::memchr(b'>', tag).unwrap_or(tag.len());
    [
        &b"www.w3.org/2005/Atom"[..],
        b"purl.org/atom/",
        b"purl.org/rss/1.0",
    ]
    .iter()
    .any(|namespace| memchr::memmem::find(&tag[..end], namespace).is_some())
}

/// True for JSON with the version of a JSON Feed in it, whose solidi may be escaped.
fn names_json_feed(text: &str) -> bool {
    memchr::memmem::find(
        text.replace('\\', "").as_bytes(),
        b"://jsonfeed.org/version/",
    )
    .is_some()
}

/// True for a document that would be read as a feed, as far as it is here.
pub fn is_feed(document: &[u8]) -> bool {
    recognise(&decode(document, None).text).is_ok()
}

fn format_of(name: &str, raw: &str) -> Option<Format> {
    let (prefix, local) = split(name);
    let namespace = || {
        let mut bindings = Bindings::default();
        bindings.declare(attributes(raw));
        bindings.namespace(prefix).into_owned()
    };
    let local = local.to_ascii_lowercase();
    match local.as_str() {
        "rss" => Some(Format::Rss),
        "rdf" if Vocabulary::of(&namespace()) == Vocabulary::Rdf => Some(Format::Rdf),
        "feed" => {
            let namespace = namespace();
            // The drafts before 0.3 changed their namespace with every name that the format had.
            let is_draft = || {
                attributes(raw).any(|(name, value)| name == "version" && value.starts_with("0."))
            };
            let is_atom = namespace.is_empty()
                || Vocabulary::of(&namespace) == Vocabulary::Atom
                || is_draft();
            is_atom.then_some(Format::Atom)
        }
        "entry" => (Vocabulary::of(&namespace()) == Vocabulary::Atom).then_some(Format::Atom),
        "channel" if Vocabulary::of(&namespace()) == Vocabulary::Rss => Some(Format::Rdf),
        // A channel with no `rss` around it, or one of CDF: what is in it tells.
        "channel" => Some(Format::Rss),
        _ => None,
    }
}

/// Number of tokens of a bare channel that are searched for elements that only CDF, or only RSS,
/// has.
const TOKENS_OF_CHANNEL_MAX: usize = 512;

/// True for a bare channel that is CDF: it points to things by attributes, where RSS has elements.
fn is_cdf(text: &str) -> bool {
    let mut tokens = Tokens::new(text);
    for _ in 0..TOKENS_OF_CHANNEL_MAX {
        let Some((token, _)) = tokens.next() else {
            break;
        };
        let Token::Start {
            name,
            attributes: raw,
            ..
        } = token
        else {
            continue;
        };
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "channel" | "item" => {
                let of_cdf = |name: &str| {
                    ["href", "lastmod", "base", "self"]
                        .iter()
                        .any(|known| name.eq_ignore_ascii_case(known))
                };
                if attributes(raw).any(|(name, _)| of_cdf(name)) {
                    return true;
                }
            }
            "abstract" | "logo" | "schedule" | "usage" | "a" => return true,
            "link" | "description" | "guid" | "pubdate" => return false,
            _ => {}
        }
    }
    false
}

fn is_html(name: &str) -> bool {
    const NAMES: &str =
        "html head body title meta div p br b h1 h2 center script link style table form font pre";
    is_one_of(name, NAMES)
}

/// The title of a web page, shortened.
pub(crate) fn title(text: &str) -> Option<String> {
    let title = text_of_first(text, "title")?;
    Some(start(title.trim())).filter(|title| !title.is_empty())
}

/// Limit of an address that a document names as its new one, bytes.
const ADDRESS_BYTES_MAX: usize = 2048;

// Decides: Does a document without a feed say that the feed has moved?
/// The address that a `redirect` names.
fn moved(text: &str) -> Option<String> {
    let address = present(&text_of_first(text, "newLocation")?)?;
    Some(address).filter(|address| {
        address.len() <= ADDRESS_BYTES_MAX && !address.contains(char::is_whitespace)
    })
}

/// The text of the first element with this name.
fn text_of_first(text: &str, name: &str) -> Option<String> {
    let mut tokens = Tokens::new(text);
    let mut inside = false;
    let mut found = String::new();
    for _ in 0..TOKENS_BEFORE_MAX {
        match tokens.next()?.0 {
            Token::Start { name: tag, .. } => inside = tag.eq_ignore_ascii_case(name),
            Token::Text(text) if inside => unescape_into(&mut found, text),
            Token::Literal(text) if inside => found.push_str(text),
            Token::End { .. } if inside => break,
            _ => {}
        }
    }
    Some(found)
}

fn start(text: &str) -> String {
    text.chars().take(START_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<Format, NotAFeed>) {
        assert_eq!(recognise(text).map(|root| root.format), expect, "{text}");
    }

    #[test]
    fn roots_are_known_in_all_their_spellings() {
        check("<rss><channel/></rss>", Ok(Format::Rss));
        check(
            "<?xml version='1.0'?><!-- x --><RSS version='2.0'>",
            Ok(Format::Rss),
        );
        check(
            "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>",
            Ok(Format::Rdf),
        );
        check("<rdf:RDF>", Ok(Format::Rdf));
        check(
            "<Channel xmlns='http://purl.org/net/rss1.1#'>",
            Ok(Format::Rdf),
        );
        check("<channel><item/></channel>", Ok(Format::Rss));
        check(
            "<channel><item><link>x</link><a/></item></channel>",
            Ok(Format::Rss),
        );
        check(
            "<?XML VERSION='1.0'?><CHANNEL HREF='http://e.org/'/>",
            Ok(Format::Cdf),
        );
        check(
            "<channel><title>t</title><item href='x'/></channel>",
            Ok(Format::Cdf),
        );
        check(
            "<CHANNEL><ITEM><ABSTRACT>x</ABSTRACT></ITEM></CHANNEL>",
            Ok(Format::Cdf),
        );
        check(
            "<a:feed xmlns:a='http://www.w3.org/2005/Atom'>",
            Ok(Format::Atom),
        );
        check(
            "<feed xmlns='http://purl.org/atom/ns#' version='0.3'>",
            Ok(Format::Atom),
        );
        check(
            "<entry xmlns='http://www.w3.org/2005/Atom'/>",
            Ok(Format::Atom),
        );
    }

    #[test]
    fn a_feed_is_known_by_its_beginning() {
        let check = |expect: Beginning, is_code: bool, texts: &[&str]| {
            for text in texts {
                assert_eq!(beginning(text.as_bytes(), is_code), expect, "{text}");
            }
        };
        let feeds = [
            "<rss version='2.0'>",
            "\u{feff}<?xml version='1.0'?>\n<!-- <urlset> --><feed xmlns='x'>",
            "\0\0\u{1}\n\u{feff}\u{feff}<rss>",
            "<rdf:RDF xmlns:rdf='x'>",
            "<a:feed>",
            "<atom:entry ",
            "<!DOCTYPE rss [<!ENTITY x 'y'>]><RSS>",
            "<CHANNEL HREF='x'>",
            "<br />\n<b>Warning</b>: odd in <i>x.php</i><br />\n<?xml version='1.0'?><rss>",
            "\u{feff} { \"title\": \"x\", \"version\": \"https:\\/\\/jsonfeed.org\\/version\\/1.1\"",
            "f({\"version\": \"https://jsonfeed.org/version/1\"",
            // Inside of something else.
            "<html><body>x</body></html><rss version='2.0'><channel>",
            "<!doctype html><xml><?xml version='1.0'?><feed xmlns='http://www.w3.org/2005/Atom'>",
            "<soap:Envelope><soap:Body><rss> <!-- x --><channel>",
            "<x><rdf:RDF xmlns='http://purl.org/rss/1.0/'>",
            "{\"document\": \"<rss><channel>\"",
        ];
        check(Beginning::Feed, false, &feeds);
        check(Beginning::Feed, true, &feeds);
        let behind_text = [
            "[notice] cache is cold\n<rss>",
            "--x\r\nContent-Type: text/xml\r\n\r\n<rss>",
        ];
        check(Beginning::Feed, false, &behind_text);
        check(Beginning::Other, true, &behind_text);
        let others = [
            "<urlset>",
            "<?xml version='1.0'?><sitemapindex/>",
            "<html><rss>",
            "<!doctype html>\n<html lang=x><head>",
            "<feedback>",
            "<p>x<html>",
            "text",
            "{\"version\": 1",
            "/*! x */ f(1)",
            "var x = '<rss>'",
            "<p>a page<i>",
        ];
        check(Beginning::Other, true, &others);
        check(Beginning::Other, false, &others[..9]);
        let open = [
            "",
            " \n\0",
            "<",
            "<rs",
            "<!-- without an end",
            "<?xml version='1.0'?>",
            "<br /><b>Notice</b>: x",
        ];
        check(Beginning::Open, false, &open);
        check(Beginning::Open, true, &open);
        let noise: Vec<u8> = (0..2 * NOISE_BYTES_MIN)
            .map(|n| (n * 7 % 251) as u8)
            .collect();
        for binary in [&b"%PDF-1.7 <rss>"[..], b"\x89PNG", &noise] {
            assert_eq!(beginning(binary, false), Beginning::Binary, "{binary:?}");
        }
        let wide: Vec<u8> = "<rss>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(beginning(&wide, false), Beginning::Feed);
        assert!(is_binary_part(&noise) && is_binary_part(&[0; 9]) && is_binary_part(b"\x01abc"));
        assert!(!is_binary_part(b"") && !is_binary_part(b"f\xfcr alle") && !is_binary_part(&wide));
        assert!(is_feed(
            b"{\"title\": \"t\", \"items\": [{\"id\": 1, \"url\": \"http://e.org/\", \"x\": "
        ));
        assert!(!is_feed(b"{\"error\": 1}") && !is_feed(b"text") && !is_feed(b"/*! x */ f(1)"));
    }

    #[test]
    fn warnings_before_the_document_are_passed_over() {
        let text = "\n<br />\n<b>Warning</b>: odd in <b>x.php</b> on line <b>3</b><br />\n<?xml version='1.0'?><rss>";
        let root = recognise(text).unwrap();
        assert!(root.preceded);
        assert_eq!(root.text, "<rss>");
    }

    #[test]
    fn what_is_no_feed_is_named() {
        check(" \n", Err(NotAFeed::Empty));
        check(
            "{\"error\": 1}",
            Err(NotAFeed::Json {
                start: "{\"error\": 1}".into(),
            }),
        );
        check(
            "[{\"html\": \"<html><p>\"}]",
            Err(NotAFeed::Json {
                start: "[{\"html\": \"<html><p>\"}]".into(),
            }),
        );
        let shaped = "{\"title\": \"t\", \"items\": [{\"id\": 1, \"url\": \"http://e.org/\"}]";
        check(&format!("{shaped}}}"), Ok(Format::JsonFeed));
        // A cut answer of some API has ids and URLs too.
        let cut = shaped.replace("\"title\": \"t\", ", "");
        check(&cut, Err(NotAFeed::Json { start: start(&cut) }));
        check(
            &cut.replace("\"url\"", "\"content_text\""),
            Ok(Format::JsonFeed),
        );
        check(
            "call({\"version\": \"https://jsonfeed.org/version/1\"});",
            Ok(Format::JsonFeed),
        );
        check(
            "// x\ncall({\"html\": \"<p>\"})",
            Err(NotAFeed::Json {
                start: "// x\ncall({\"html\": \"<p>\"})".into(),
            }),
        );
        check(
            "a.b([{\"html\": \"<p>\"}])",
            Err(NotAFeed::Json {
                start: "a.b([{\"html\": \"<p>\"}])".into(),
            }),
        );
        let with_html = "{\"version\": \"https://jsonfeed.org/version/1\", \"title\": \"<p>\"}";
        check(&format!("/* x */ {with_html}"), Ok(Format::JsonFeed));
        check(&format!("call({with_html});"), Ok(Format::JsonFeed));
        check("Error (see <p>)", Err(NotAFeed::Html { title: None }));
        let page = "<p>So: {\"version\": \"https://jsonfeed.org/version/1\"}";
        check(page, Err(NotAFeed::Html { title: None }));
        check("[notice] cache is cold\n<rss>", Ok(Format::Rss));
        let moved = "<?xml version='1.0'?><redirect><newLocation> http://e.org/a?b&amp;c </newLocation></redirect>";
        check(
            moved,
            Err(NotAFeed::Moved {
                to: "http://e.org/a?b&c".into(),
            }),
        );
        check(
            "<redirect/>",
            Err(NotAFeed::OtherXml {
                root: "redirect".into(),
            }),
        );
        check(
            "Not found",
            Err(NotAFeed::Text {
                start: "Not found".into(),
            }),
        );
        check("<opml version='2.0'/>", Err(NotAFeed::Opml));
        check(
            "<feed xmlns='urn:other'/>",
            Err(NotAFeed::OtherXml {
                root: "feed".into(),
            }),
        );
        let page =
            "<!DOCTYPE html><html><head><title> 404 &amp; so </title></head><body><p>Not found<br>";
        assert!(
            matches!(recognise(page), Err(NotAFeed::Html { title: Some(title) }) if title.starts_with("404"))
        );
        assert!(
            is_noise(b"<x>\0\x01\x02")
                && !is_noise(
                    "<x>é\u{8}, and 60 other characters of an ordinary text beside it".as_bytes()
                )
        );
        assert_eq!(
            binary(b"\x1F\x8B\x08"),
            Some(NotAFeed::Binary {
                kind: "compressed with gzip"
            })
        );
    }
}
