//! A document without some of its entries: their bytes are cut out, with what else tells of them,
//! and every other byte stays. Nothing is made anew.

mod asides;

use std::borrow::Cow;
use std::ops::Range;

use encoding_rs::Encoding;
use memchr::memmem;

use crate::text::markup::tokens::attributes;
use crate::text::{doctype, encoding};
use crate::{Format, Hints, Key, RawEntry, slice};
use asides::{AsideKind, Unwanted, asides};

/// Times that a document is cut: what is left may show entries that were hidden in others.
const CUTS_MAX: usize = 4;

/// A document out of which entries could not be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncuttable;

/// Cuts entries out of a document, and comments, processing instructions, tombstones and entities
/// that tell of them; `None` when it holds nothing of that.
///
/// # Errors
/// [`Uncuttable`] when it cannot be read, or when one of the entries is still there afterwards.
pub fn without_entries(
    bytes: &[u8],
    hints: &Hints<'_>,
    mut is_unwanted: impl FnMut(&Key) -> bool,
) -> Result<Option<Vec<u8>>, Uncuttable> {
    let mut left: Option<Vec<u8>> = None;
    for _ in 0..CUTS_MAX {
        let document = left.as_deref().unwrap_or(bytes);
        let sliced = match slice(document, hints) {
            Ok(sliced) => sliced,
            // What is left of a document that held nothing else may be no feed for whoever reads
            // it.
            Err(_) if left.is_some() => return Ok(left),
            Err(_) => return Err(Uncuttable),
        };
        let unwanted: Vec<&RawEntry> = sliced
            .entries
            .iter()
            .filter(|entry| is_unwanted(&entry.key))
            .collect();
        if sliced.format == Format::Resource {
            return if unwanted.is_empty() {
                Ok(left)
            } else {
                Err(Uncuttable)
            };
        }
        let unwanted = UnwantedEntries {
            format: sliced.format,
            entries: unwanted,
        };
        match cut_out(
            document,
            hints,
            sliced.encoding,
            &unwanted,
            &mut is_unwanted,
        )? {
            Some(cut) => left = Some(cut),
            None => return Ok(left),
        }
    }
    Err(Uncuttable)
}

/// Entries that are cut out of a document of this format.
struct UnwantedEntries<'d> {
    format: Format,
    entries: Vec<&'d RawEntry>,
}

/// Cuts these entries out, and what tells of unwanted ones: of the bytes where they stand there as
/// they were read, else of the text, which then is encoded again. `None` when there is nothing to
/// cut.
fn cut_out(
    bytes: &[u8],
    hints: &Hints<'_>,
    name: &str,
    unwanted: &UnwantedEntries<'_>,
    is_unwanted: &mut impl FnMut(&Key) -> bool,
) -> Result<Option<Vec<u8>>, Uncuttable> {
    if let Ok(text) = str::from_utf8(bytes)
        && let Some(spans) = spans(text, unwanted, is_unwanted, false)
    {
        return Ok((!spans.is_empty()).then(|| without(bytes, spans)));
    }
    let decoded = encoding::decode(bytes, hints.content_type);
    let (text, is_limited) = doctype::expand(&decoded.text);
    // Once they are replaced, nothing needs the entities any more.
    let is_replaced = matches!(text, Cow::Owned(_)) && !is_limited;
    let (text, spans) = match spans(&decoded.text, unwanted, is_unwanted, false) {
        Some(spans) => (&decoded.text, spans),
        None => (
            &text,
            spans(&text, unwanted, is_unwanted, is_replaced).ok_or(Uncuttable)?,
        ),
    };
    if spans.is_empty() {
        return Ok(None);
    }
    let text = String::from_utf8(without(text.as_bytes(), spans)).map_err(|_| Uncuttable)?;
    encoded(&text, name).map(Some).ok_or(Uncuttable)
}

fn encoded(text: &str, name: &str) -> Option<Vec<u8>> {
    let units = || std::iter::once(0xFEFF).chain(text.encode_utf16());
    let points = || {
        std::iter::once('\u{FEFF}')
            .chain(text.chars())
            .map(u32::from)
    };
    Some(match name {
        "UTF-16LE" => units().flat_map(u16::to_le_bytes).collect(),
        "UTF-16BE" => units().flat_map(u16::to_be_bytes).collect(),
        "UTF-32LE" => points().flat_map(u32::to_le_bytes).collect(),
        "UTF-32BE" => points().flat_map(u32::to_be_bytes).collect(),
        _ => match Encoding::for_label(name.as_bytes())?.encode(text).0 {
            Cow::Borrowed(bytes) => bytes.to_vec(),
            Cow::Owned(bytes) => bytes,
        },
    })
}

/// The spans of the entries in a text, and of what tells of unwanted ones; `None` where one of them
/// stands there in other words. With `is_replaced` no entity of the document is needed.
fn spans(
    text: &str,
    unwanted: &UnwantedEntries<'_>,
    is_unwanted: &mut impl FnMut(&Key) -> bool,
    is_replaced: bool,
) -> Option<Vec<Range<usize>>> {
    let format = unwanted.format;
    let mut spans = Vec::new();
    for entry in &unwanted.entries {
        let markup = entry.markup();
        let before = spans.len();
        let found = memmem::find_iter(text.as_bytes(), markup).map(|at| at..at + markup.len());
        spans.extend(found);
        if spans.len() == before || markup.is_empty() {
            return None;
        }
        if format == Format::Rdf {
            references(text, markup, &mut spans);
        }
    }
    if format == Format::JsonFeed {
        spans.sort_by_key(|span| span.start);
        with_commas(text.as_bytes(), &mut spans);
        return Some(spans);
    }
    let mut looked_for = Unwanted::new(is_unwanted, format, &unwanted.entries);
    for aside in asides(text) {
        let is_needless = is_replaced && matches!(aside.kind, AsideKind::Entity(_));
        if !aside.span.is_empty() && (is_needless || looked_for.tells(&aside.kind)) {
            spans.push(aside.span);
        }
    }
    spans.sort_by_key(|span| span.start);
    Some(spans)
}

/// The references to an item of RSS 1.0 in the list of its channel, which give its address.
fn references(text: &str, markup: &str, spans: &mut Vec<Range<usize>>) {
    let tag = markup.split('>').next().unwrap_or_default();
    let raw = tag
        .split_once(char::is_whitespace)
        .map_or("", |(_, raw)| raw);
    let about = attributes(raw)
        .find(|(name, _)| name.ends_with("about"))
        .map(|(_, value)| value.to_string());
    let Some(about) = about else { return };
    for at in memmem::find_iter(text.as_bytes(), "<rdf:li")
        .chain(memmem::find_iter(text.as_bytes(), "<li "))
    {
        let Some(length) = text[at..].find('>') else {
            continue;
        };
        let tag = text[at..at + length].trim_end_matches('/');
        let raw = tag
            .split_once(char::is_whitespace)
            .map_or("", |(_, raw)| raw);
        if !attributes(raw).any(|(_, value)| *value == *about) {
            continue;
        }
        let mut end = at + length + 1;
        for closing in ["</rdf:li>", "</li>"] {
            if text[end..].trim_start().starts_with(closing) {
                end = text.len() - text[end..].trim_start().len() + closing.len();
            }
        }
        spans.push(at..end);
    }
}

/// Takes the comma behind an item of a list with it; that before, where none is behind.
fn with_commas(text: &[u8], spans: &mut [Range<usize>]) {
    for at in 0..spans.len() {
        let end = spans[at].end;
        let behind = text[end..]
            .iter()
            .position(|byte| !byte.is_ascii_whitespace());
        if let Some(behind) = behind.filter(|behind| text[end + behind] == b',') {
            spans[at].end = end + behind + 1;
            continue;
        }
        let mut start = spans[at].start;
        // Items right before it, which are cut too, took their commas with them.
        for before in (0..=at).rev() {
            let last = text[..start]
                .iter()
                .rposition(|byte| !byte.is_ascii_whitespace());
            match last {
                Some(last) if before > 0 && last + 1 == spans[before - 1].end => {
                    start = spans[before - 1].start
                }
                Some(last) if text[last] == b',' => {
                    spans[at].start = last;
                    break;
                }
                _ => break,
            }
        }
    }
    spans.sort_by_key(|span| span.start);
}

/// The bytes outside of these spans, which are in order and may overlap.
fn without(bytes: &[u8], spans: Vec<Range<usize>>) -> Vec<u8> {
    let mut kept = Vec::with_capacity(bytes.len());
    let mut at = 0;
    for span in spans {
        kept.extend_from_slice(&bytes[at..span.start.max(at)]);
        at = at.max(span.end);
    }
    kept.extend_from_slice(&bytes[at..]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(document: &[u8], unwanted: &[&str]) -> Result<Option<Vec<u8>>, Uncuttable> {
        without_entries(
            document,
            &Hints::default(),
            |key| matches!(key, Key::Id(id) if unwanted.contains(&id.as_str())),
        )
    }

    fn cut_text(document: &str, unwanted: &[&str]) -> String {
        String::from_utf8(cut(document.as_bytes(), unwanted).unwrap().unwrap()).unwrap()
    }

    const RSS: &str = r#"<?xml version="1.0"?>
<rss version="2.0"><channel><title>B &amp; C</title><!-- kept -->
<item><guid>a</guid><title>first</title></item>
<item><guid>b</guid><title>secret</title><description><![CDATA[<item>]]></description></item>
<item><guid>c</guid><title>last</title></item></channel></rss>"#;

    #[test]
    fn only_the_bytes_of_an_entry_go() {
        let (start, end) = (
            RSS.find("<item><guid>b").unwrap(),
            RSS.find("\n<item><guid>c").unwrap(),
        );
        assert_eq!(
            cut_text(RSS, &["b"]),
            format!("{}{}", &RSS[..start], &RSS[end..])
        );
        assert_eq!(cut(RSS.as_bytes(), &["z"]), Ok(None));
        assert_eq!(cut(b"<html><body>secret", &["b"]), Err(Uncuttable));
        let none = cut_text(RSS, &["a", "b", "c"]);
        assert!(
            !none.contains("<guid>") && none.contains("B &amp; C"),
            "{none}"
        );
    }

    #[test]
    fn a_document_in_another_encoding_or_with_entities_of_its_own_is_cut_too() {
        let rss = RSS.replace('\n', "\r\n").replace("secret", "s\u{e9}cret");
        let wide = "\u{FEFF}".encode_utf16().chain(rss.encode_utf16());
        let wide: Vec<u8> = wide.flat_map(u16::to_le_bytes).collect();
        let without = cut(&wide, &["b"]).unwrap().unwrap();
        let units = without
            .as_chunks()
            .0
            .iter()
            .copied()
            .map(u16::from_le_bytes);
        let text: String = char::decode_utf16(units).map(Result::unwrap).collect();
        assert!(!text.contains("cret") && text.contains("last"), "{text}");
        let latin = rss
            .replace("?>", " encoding='ISO-8859-1'?>")
            .replace("last", "l\u{e9}st");
        let latin: Vec<u8> = latin
            .chars()
            .map(|c| u8::try_from(u32::from(c)).unwrap())
            .collect();
        let without = cut(&latin, &["b"]).unwrap().unwrap();
        assert!(
            memmem::find(&without, b"cret").is_none()
                && memmem::find(&without, b"l\xe9st").is_some()
        );
        let declared = RSS.replacen("<rss", "<!DOCTYPE rss [<!ENTITY s \"s\">]><rss", 1);
        let without = cut_text(&declared.replace("secret", "&s;ecret"), &["b"]);
        assert!(
            !without.contains("cret") && without.contains("last"),
            "{without}"
        );
    }

    /// Checks that these parts of a document go together with entry `b`, and nothing else does.
    fn check_asides(rss: &str, parts: &[&str]) {
        let entry = &RSS[RSS.find("<item><guid>b").unwrap()..RSS.find("\n<item><guid>c").unwrap()];
        let mut expect = rss.replace(entry, "");
        for part in parts {
            assert!(rss.contains(part), "{part}");
            expect = expect.replacen(part, "", 1);
        }
        assert_eq!(cut_text(rss, &["b"]), expect);
        // The same where the entry itself is not shown any more.
        if !parts.is_empty() && !parts.iter().any(|part| part.contains("words of")) {
            assert_eq!(cut_text(&rss.replace(entry, ""), &["b"]), expect);
        }
    }

    #[test]
    fn comments_that_hold_an_entry_or_its_name_or_its_words_go_with_it() {
        let with = |aside: &str| RSS.replacen("<item>", &format!("{aside}<item>"), 1);
        for aside in [
            "<!-- <item><guid>b</guid><title>secret</title></item> -->",
            "<!--<item><title>x</title><guid isPermaLink='false'><![CDATA[b]]></guid></item>-->",
            "<!--b-->",
            "<!-- <a href='b'>old</a> -->",
            "<?note 'b'?>",
            "<at:deleted-entry xmlns:at='http://purl.org/atompub/tombstones/1.0' ref=' b '/>",
            "<at:deleted-entry ref='b' when='x'><at:comment>why</at:comment></at:deleted-entry>",
        ] {
            check_asides(&with(aside), &[aside]);
        }
        for aside in [
            "<!-- a b c -->",
            "<!-- <item><guid>a</guid></item> -->",
            "<!-- secretly -->",
            "<?php echo 1 ?>",
            "<at:deleted-entry ref='c'/>",
            "<![CDATA[<!-- b -->]]>",
        ] {
            check_asides(&with(aside), &[]);
        }
        let words = "<!-- the words of it: Secret plans of the whole town -->";
        let told = with(words).replace(
            "<![CDATA[<item>]]>",
            "<![CDATA[<p>Now <b>plans of the whole town</b>]]>",
        );
        assert!(!cut_text(&told, &["b"]).contains("whole town"));
        let title = with("<!-- see: secret -->");
        assert!(!cut_text(&title, &["b"]).contains("see: secret"));
    }

    #[test]
    fn a_name_in_a_comment_is_found_as_a_word_among_others() {
        let rss = RSS.replace("<guid>b<", "<guid>http://x/?p=2<");
        let cut = |aside: &str| {
            let rss = rss.replace("<!-- kept -->", aside);
            cut_text(&rss, &["http://x/?p=2"]).contains(aside)
        };
        for aside in [
            "<!-- gone: http://x/?p=2. -->",
            "<!-- id=http://x/?p=2 (removed) -->",
            "<!-- &#104;ttp://x/?p=2 -->",
        ] {
            assert!(!cut(aside), "{aside}");
        }
        assert!(cut("<!-- http://x/?p=22 -->"));
    }

    #[test]
    fn of_a_document_type_only_the_values_that_tell_of_an_entry_go() {
        let doctype = "<!DOCTYPE rss PUBLIC \"b\" 'b' [<!ENTITY x \"b\"><!-- b --><!ENTITY y 'other'>\
            <!ENTITY amp \"b\"><!ENTITY % z 'other'>]><rss";
        let rss = RSS.replacen("<rss", doctype, 1);
        let cut = cut_text(&rss, &["b"]);
        let expect = doctype
            .replace("x \"b\"", "x \"\"")
            .replace("<!-- b -->", "");
        assert!(cut.contains(&expect), "{cut}");
        // Of an entry that is written with entities nothing is left in them.
        let hidden = "<!DOCTYPE rss [<!ENTITY t 'sec'><!ENTITY u '&t;ret'>]><rss";
        let rss = RSS.replacen("<rss", hidden, 1).replace("secret", "&u;");
        let cut = cut_text(&rss, &["b"]);
        assert!(
            !cut.contains("sec") && cut.contains("<!ENTITY u ''>"),
            "{cut}"
        );
        assert!(slice(cut.as_bytes(), &Hints::default()).is_ok());
    }

    #[test]
    fn a_document_in_another_encoding_keeps_its_document_type_and_loses_a_comment() {
        let rss = RSS
            .replace(
                "?>",
                " encoding='ISO-8859-1'?><!DOCTYPE rss [<!ENTITY e 'l'>]>",
            )
            .replace("last", "&e;\u{e9}st")
            .replace("<!-- kept -->", "<!--b--><!--k\u{e9}pt-->");
        let latin: Vec<u8> = rss
            .chars()
            .map(|c| u8::try_from(u32::from(c)).unwrap())
            .collect();
        let without = cut(&latin, &["b"]).unwrap().unwrap();
        let text: String = without.iter().map(|byte| char::from(*byte)).collect();
        assert!(
            text.contains("<!ENTITY e 'l'>") && text.contains("&e;\u{e9}st"),
            "{text}"
        );
        assert!(
            text.contains("<!--k\u{e9}pt-->") && !text.contains("<!--b-->"),
            "{text}"
        );
    }

    #[test]
    fn asides_without_end_or_number_cost_no_more_than_others() {
        for part in [
            "<!--",
            "<!-- x",
            "<?",
            "<!DOCTYPE x [",
            "<!ENTITY a '",
            "<at:deleted-entry ref='",
            "<at:deleted-entry ref='x'>",
            "<!--<item>-->",
            "<!--abcdef -->",
        ] {
            let many = RSS.replacen("<item>", &format!("{}<item>", part.repeat(20_000)), 1);
            let mut asked = 0;
            let _ = without_entries(many.as_bytes(), &Hints::default(), |_| {
                asked += 1;
                false
            });
            assert!(asked < 500_000, "{part}: {asked}");
        }
    }

    #[test]
    fn a_list_of_json_stays_one_whichever_of_its_items_go() {
        let item = |id: &str| format!(r#"{{"id":"{id}","content_text":"text {id}, and more"}}"#);
        let names = ["a", "b", "c", "d"];
        let [a, b, c, d] = names.map(item);
        let feed = format!(
            r#"{{"version":"https://jsonfeed.org/version/1.1","title":"x","items":[{a},
 {b} , {c},{d}], "more": 1}}"#
        );
        for unwanted in 1..16 {
            let gone = names
                .iter()
                .enumerate()
                .filter(|(at, _)| unwanted >> at & 1 == 1);
            let gone: Vec<&str> = gone.map(|(_, id)| *id).collect();
            let without = cut_text(&feed, &gone);
            let read: serde_json::Value =
                serde_json::from_str(&without).unwrap_or_else(|_| panic!("{gone:?}: {without}"));
            assert_eq!(
                read["items"].as_array().unwrap().len(),
                4 - gone.len(),
                "{without}"
            );
            assert!(
                gone.iter()
                    .all(|id| !without.contains(&format!("text {id}"))),
                "{without}"
            );
        }
    }

    #[test]
    fn atom_and_rdf_lose_the_entry_and_what_refers_to_it() {
        let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><title>t</title><entry><id>b</id><title>secret</title>\
            </entry><entry><id>c</id><title>last</title></entry></feed>";
        let without = cut_text(atom, &["b"]);
        assert!(!without.contains("secret") && without.contains("last"));
        let rdf = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>\
            <channel rdf:about='http://x/'><title>t</title><items><rdf:Seq><rdf:li rdf:resource='http://x/b' />\
            <rdf:li resource=\"http://x/c\"></rdf:li></rdf:Seq></items></channel><item rdf:about='http://x/b'>\
            <title>secret</title><link>http://x/b</link></item><item rdf:about='http://x/c'><title>last</title>\
            <link>http://x/c</link></item></rdf:RDF>";
        let without = cut_text(rdf, &["http://x/b"]);
        assert!(
            !without.contains("http://x/b") && without.contains("resource=\"http://x/c\""),
            "{without}"
        );
    }
}
