//! A publisher's document with our links in it: `self`, which is also its topic, and `hub`. Nothing else of it changes, not a
//! byte; not the document itself.

use super::namespaces as ns;
use crate::feed::legacy_document::LegacySyntax;
use quick_xml::{
    NsReader,
    escape::escape,
    events::{BytesStart, Event},
    name::ResolveResult,
};
use std::ops::Range;

/// The links that go into a publisher's document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LegacyLinks {
    /// The address at which the document is served.
    pub own: String,
    /// The hub at which that address is a topic.
    pub hub: String,
}

/// A document with links in it; `None` when it has to stay as it is: another syntax, an encoding whose markup is not ASCII, or
/// no place for them before it breaks.
pub fn with_links(document: &[u8], syntax: LegacySyntax, links: &LegacyLinks) -> Option<Vec<u8>> {
    let media_type = match syntax {
        LegacySyntax::Rss => "application/rss+xml",
        LegacySyntax::Atom => "application/atom+xml",
        LegacySyntax::Other => return None,
    };
    // UTF-16 and UTF-32 have zeros in the first character or a mark of their byte order before it.
    if document.starts_with(&[0xfe, 0xff])
        || document.starts_with(&[0xff, 0xfe])
        || document.iter().take(4).any(|byte| *byte == 0)
    {
        return None;
    }
    let place = LinkPlace::find(document, syntax)?;
    let LinkPlace { at, name, declares, own_links, .. } = place;
    let declaration = if declares { format!(" xmlns:{PREFIX}=\"{}\"", ns::ATOM) } else { String::new() };
    let link = |rel: &str, href: &str, more: &str| {
        format!("<{name}{declaration} rel=\"{rel}\" href=\"{}\"{more}/>", escape(href))
    };
    let media_type = format!(" type=\"{media_type}\"");
    let ours = link("self", &links.own, &media_type) + &link("hub", &links.hub, "");
    let mut out = Vec::with_capacity(document.len() + ours.len());
    out.extend_from_slice(&document[..at]);
    out.extend_from_slice(ours.as_bytes());
    let mut from = at;
    // A document has one address (RFC 4287 section 4.2.7.2): the one at which it is now.
    for link in own_links {
        out.extend_from_slice(&document[from..link.start]);
        from = link.end;
    }
    out.extend_from_slice(&document[from..]);
    Some(out)
}

/// The prefix of our elements where a document has none for Atom.
const PREFIX: &str = "atom";

/// The place for links in a document.
struct LinkPlace {
    /// Offset of the first byte after the start of the head.
    at: usize,
    /// Name of a link element there.
    name: String,
    /// True where the links declare their prefix themselves.
    declares: bool,
    /// Links of the head that say where the document is: each from its first byte to the one after its last.
    own_links: Vec<Range<usize>>,
    /// Elements around the head.
    depth: usize,
}

impl LinkPlace {
    /// Finds it, and the links that the head has already. A document that breaks later is read as far as it goes.
    fn find(document: &[u8], syntax: LegacySyntax) -> Option<Self> {
        let mark = if document.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        // Markup is ASCII in every encoding that gets here, and a letter of any of them is one in a name: the places of bytes
        // stay.
        let ascii = |byte: &u8| char::from(if byte.is_ascii() { *byte } else { b'x' });
        let text: String = document[mark..].iter().map(ascii).collect();
        let mut reader = NsReader::from_str(&text);
        reader.config_mut().check_end_names = false;
        let mut found: Option<Self> = None;
        let mut depth = 0_usize;
        // The link of the head that is open, and its first byte.
        let mut open: Option<usize> = None;
        loop {
            let before = mark + usize::try_from(reader.buffer_position()).unwrap_or_default();
            let Ok((namespace, event)) = reader.read_resolved_event() else { break };
            let is_atom = matches!(namespace, ResolveResult::Bound(name) if name.as_ref() == ns::ATOM);
            let (element, is_empty) = match &event {
                Event::Start(element) => (element, false),
                Event::Empty(element) => (element, true),
                Event::End(_) => {
                    depth = depth.saturating_sub(1);
                    if let Some(place) = &mut found {
                        let after = mark + usize::try_from(reader.buffer_position()).unwrap_or_default();
                        match open.take() {
                            Some(start) if depth == place.depth => place.own_links.push(start..after),
                            other => open = other,
                        }
                        if depth < place.depth {
                            break;
                        }
                    }
                    continue;
                }
                Event::Eof => break,
                _ => continue,
            };
            let is_own = found.as_ref().is_some_and(|place| depth == place.depth)
                && (is_atom || syntax == LegacySyntax::Atom)
                && element.local_name().as_ref() == "link"
                && is_self(element);
            let name = element.name();
            let is_head = found.is_none() && is_head(syntax, depth, element.local_name().as_ref());
            let after = mark + usize::try_from(reader.buffer_position()).unwrap_or_default();
            if is_own && is_empty {
                found.as_mut()?.own_links.push(before..after);
            } else if is_own {
                open = Some(before);
            }
            if is_empty {
                continue;
            }
            depth += 1;
            if is_head {
                let prefix = match (syntax, name.prefix()) {
                    // An old Atom has links of its own vocabulary, too.
                    (LegacySyntax::Atom, prefix) => prefix.map(|prefix| prefix.as_ref().to_owned()),
                    _ => Some(PREFIX.to_owned()),
                };
                let prefix = prefix.map(|prefix| prefix + ":");
                found = Some(Self {
                    at: after,
                    name: prefix.unwrap_or_default() + "link",
                    declares: syntax == LegacySyntax::Rss,
                    own_links: Vec::new(),
                    depth,
                });
            }
        }
        found
    }
}

/// True for the element that holds what is said of the feed as a whole.
fn is_head(syntax: LegacySyntax, depth: usize, name: &str) -> bool {
    match syntax {
        LegacySyntax::Atom => depth == 0 && name == "feed",
        _ => depth == 1 && name == "channel",
    }
}

/// True for a link that says where the document is.
fn is_self(link: &BytesStart<'_>) -> bool {
    let rel = link.try_get_attribute("rel").ok().flatten();
    rel.is_some_and(|rel| rel.value.as_ref() == "self")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links() -> LegacyLinks {
        LegacyLinks { own: "http://b.example/f?a=1&b=2".to_owned(), hub: "http://b.example/hub".to_owned() }
    }

    fn rewritten(document: impl AsRef<[u8]>, syntax: LegacySyntax) -> Option<String> {
        let out = with_links(document.as_ref(), syntax, &links())?;
        Some(String::from_utf8_lossy(&out).into_owned())
    }

    const RSS_LINKS: &str = "<atom:link xmlns:atom=\"http://www.w3.org/2005/Atom\" rel=\"self\" \
        href=\"http://b.example/f?a=1&amp;b=2\" type=\"application/rss+xml\"/>\
        <atom:link xmlns:atom=\"http://www.w3.org/2005/Atom\" rel=\"hub\" href=\"http://b.example/hub\"/>";
    const ATOM_LINKS: &str = "<link rel=\"self\" href=\"http://b.example/f?a=1&amp;b=2\" type=\"application/atom+xml\"/>\
        <link rel=\"hub\" href=\"http://b.example/hub\"/>";

    #[test]
    fn links_come_first_in_the_head_and_nothing_else_changes() {
        let (rss, atom) = (LegacySyntax::Rss, LegacySyntax::Atom);
        let check = |syntax, links: &str, before: &str, after: &str| {
            let expect = format!("{before}{links}{after}");
            assert_eq!(rewritten(format!("{before}{after}"), syntax).as_deref(), Some(expect.as_str()));
        };
        check(
            rss,
            RSS_LINKS,
            "\u{feff}<?xml version='1.0'?>\r\n<!-- <channel> --><rss version=\"2.0\" >\n<channel a = '1' >",
            "<title>&nbsp; <![CDATA[<channel>]]></title>\t<item/></channel></rss>\n",
        );
        check(
            rss,
            RSS_LINKS,
            "<!DOCTYPE rss [<!ENTITY x \"<channel>\">]><rss><channel>",
            "<item><link rel='self'/></item>",
        );
        check(rss, RSS_LINKS, "<rss><channel>", "<item><title>broken");
        check(
            atom,
            ATOM_LINKS,
            "<feed xmlns=\"http://www.w3.org/2005/Atom\">",
            "<link rel=\"alternate\" href=\"/\"/><entry><link rel=\"self\" href=\"/1\"/></entry></feed>",
        );
        let prefixed = ATOM_LINKS.replace("<link", "<a:link");
        check(atom, &prefixed, "<a:feed xmlns:a=\"http://www.w3.org/2005/Atom\">", "<a:title/></a:feed>");
    }

    #[test]
    fn another_address_of_the_document_gives_way_and_other_hubs_stay() {
        let head = "<rss xmlns:x=\"http://www.w3.org/2005/Atom\"><channel>";
        let hub = "<x:link rel=\"hub\" href=\"http://other.example/\"/>";
        let tail = "<item><x:link rel=\"self\" href=\"/1\"/></item><link rel=\"self\"/></channel></rss>";
        let document = format!(
            "{head}<title>t</title><x:link rel='self' href='/old'/>{hub}<x:link rel=\"self\">text</x:link>{tail}"
        );
        let expect = format!("{head}{RSS_LINKS}<title>t</title>{hub}{tail}");
        assert_eq!(rewritten(document, LegacySyntax::Rss).as_deref(), Some(expect.as_str()));
    }

    #[test]
    fn a_document_without_a_place_for_links_stays_as_it_is() {
        for document in ["", "<rss/>", "<rss><channel/></rss>", "not xml", "<feed><x>", "{\"version\": 1}"] {
            assert_eq!(rewritten(document, LegacySyntax::Rss), None, "{document}");
        }
        assert_eq!(rewritten("<rss><channel>", LegacySyntax::Other), None);
        let wide: Vec<u8> =
            "<rss><channel></channel></rss>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(rewritten(wide, LegacySyntax::Rss), None);
        // A byte that is no UTF-8 is a letter of another encoding.
        let latin = b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><rss><channel><title>caf\xe9</title></channel></rss>";
        let out = with_links(latin, LegacySyntax::Rss, &links()).unwrap();
        assert!(out.ends_with(b"<title>caf\xe9</title></channel></rss>"));
    }
}
