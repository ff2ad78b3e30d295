//! A publisher's document with our links in it: `self`, which is also its topic, and `hub`; and
//! without the word that the feed has moved. Nothing else of it changes, not a byte; not the document
//! itself.

use super::{CloudEndpoint, Representation, namespaces as ns, values::relation};
use crate::feed::legacy_document::LegacySyntax;
use quick_xml::{
    NsReader, Reader,
    escape::escape,
    events::{BytesStart, Event},
    name::ResolveResult,
};
use std::ops::Range;
use url::Url;

mod json_feed;

/// The links that go into a publisher's document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LegacyLinks {
    /// The address at which the document is served.
    pub own: String,
    /// The hub at which that address is a topic.
    pub hub: String,
    /// The place at which listeners of rssCloud register; it stands in RSS alone.
    pub cloud: Option<CloudEndpoint>,
}

// Decides: Which format is pushed to subscribers of an old address?
/// The form of what subscribers to the address of a document in a syntax are pushed: the same
/// syntax, for ordinary readers. `None` where nothing is pushed.
pub fn pushed(syntax: LegacySyntax) -> Option<Representation> {
    match syntax {
        LegacySyntax::Rss => Some(Representation::CLASSIC_RSS),
        LegacySyntax::Rdf => Some(Representation::CLASSIC_RDF),
        LegacySyntax::Atom => Some(Representation::CLASSIC_ATOM),
        LegacySyntax::JsonFeed => Some(Representation::CLASSIC_JSON_FEED),
        LegacySyntax::Other => None,
    }
}

// Decides: Where do our links go in an old document?
/// A document with links in it; `None` when it has to stay as it is: another syntax, an encoding
/// whose markup is not ASCII, JSON that is none, or no place for them before it breaks.
pub fn with_links(document: &[u8], syntax: LegacySyntax, links: &LegacyLinks) -> Option<Vec<u8>> {
    let mut edits = match syntax {
        LegacySyntax::Rss | LegacySyntax::Rdf | LegacySyntax::Atom => {
            in_markup(document, syntax, links)?
        }
        LegacySyntax::JsonFeed => json_feed::edits(document, links)?,
        LegacySyntax::Other => return None,
    };
    edits.sort_by_key(|edit| (edit.place.start, edit.place.end));
    let mut out = Vec::with_capacity(
        document.len() + edits.iter().map(|edit| edit.text.len()).sum::<usize>(),
    );
    let mut from = 0;
    for Edit { place, text } in edits {
        out.extend_from_slice(&document[from..place.start]);
        out.extend_from_slice(text.as_bytes());
        from = place.end;
    }
    out.extend_from_slice(&document[from..]);
    Some(out)
}

/// Bytes of a document, and what stands there instead. The places of two never overlap.
struct Edit {
    place: Range<usize>,
    text: String,
}

/// The edits of a document in XML.
fn in_markup(document: &[u8], syntax: LegacySyntax, links: &LegacyLinks) -> Option<Vec<Edit>> {
    // UTF-16 and UTF-32 have zeros in the first character or a mark of their byte order before it.
    if document.starts_with(&[0xfe, 0xff])
        || document.starts_with(&[0xff, 0xfe])
        || document.iter().take(4).any(|byte| *byte == 0)
    {
        return None;
    }
    let cloud = links.cloud.as_ref().filter(|_| syntax == LegacySyntax::Rss);
    let place = LinkPosition::find(document, syntax, cloud.is_some())?;
    let LinkPosition {
        at,
        name,
        declares,
        replaced,
        moves,
        ..
    } = place;
    let moves = moves.into_iter().filter(|place| {
        let text = String::from_utf8_lossy(&document[place.clone()]);
        !leads_to_us(&text, links)
    });
    let replaced = replaced.into_iter().chain(moves);
    let declaration = if declares {
        format!(" xmlns:{PREFIX}=\"{}\"", ns::ATOM)
    } else {
        String::new()
    };
    let link = |rel: &str, href: &str, more: &str| {
        format!(
            "<{name}{declaration} rel=\"{rel}\" href=\"{}\"{more}/>",
            escape(href)
        )
    };
    let media_type = format!(" type=\"{}\"", pushed(syntax)?.media_type());
    let mut ours = link("self", &links.own, &media_type) + &link("hub", &links.hub, "");
    ours.extend(cloud.map(cloud_element));
    let others = replaced.map(|place| Edit {
        place,
        text: String::new(),
    });
    Some(
        others
            .chain([Edit {
                place: at..at,
                text: ours,
            }])
            .collect(),
    )
}

// Decides: May an old document say that the feed has moved?
/// True for an element by which a feed has moved to a place that is ours, too: a server of its own
/// address or of our hub. Players follow such a word for good, and it would take our readers away
/// with it.
fn leads_to_us(element: &str, links: &LegacyLinks) -> bool {
    let server = |url: &Url| {
        let host = url.host_str()?.trim_end_matches('.').to_owned();
        Some((host, url.port()))
    };
    let ours = [&links.own, &links.hub].map(|url| Url::parse(url).ok().as_ref().and_then(server));
    let mut reader = Reader::from_str(element);
    reader.config_mut().check_end_names = false;
    let mut words = String::new();
    loop {
        match reader.read_event() {
            Ok(Event::Text(text)) => words.push_str(&text),
            Ok(Event::CData(text)) => words.push_str(&text),
            Ok(Event::GeneralRef(name)) if &*name == "amp" => words.push('&'),
            Ok(Event::Eof) => break,
            // Nobody knows what a reader makes of anything else.
            Ok(Event::GeneralRef(_)) | Err(_) => return false,
            Ok(_) => {}
        }
    }
    let named = Url::parse(words.trim()).ok();
    let named = named.filter(|url| matches!(url.scheme(), "http" | "https"));
    let named = named.as_ref().and_then(server);
    named.is_some() && ours.contains(&named)
}

/// The element that names a place of registration (RSS 2.0, `cloud`).
fn cloud_element(place: &CloudEndpoint) -> String {
    let CloudEndpoint { domain, port, path } = place;
    let path = escape(path.as_str());
    format!(
        "<cloud domain=\"{domain}\" port=\"{port}\" path=\"{path}\" registerProcedure=\"\" protocol=\"http-post\"/>"
    )
}

/// The prefix of our elements where a document has none for Atom.
const PREFIX: &str = "atom";

/// The place for links in a document.
struct LinkPosition {
    /// Offset of the first byte after the start of the head.
    at: usize,
    /// Name of a link element there.
    name: String,
    /// True where the links declare their prefix themselves.
    declares: bool,
    /// Elements of the head for which ours stand, each from its first byte to the one after its
    /// last: links that say where the document is, as it has one address (RFC 4287 section
    /// 4.2.7.2), the one at which it is now; and the publisher's cloud, which would speak of posts
    /// before they are here.
    replaced: Vec<Range<usize>>,
    /// Elements of the head that say where the feed has moved to.
    moves: Vec<Range<usize>>,
    /// Elements around the head.
    depth: usize,
}

impl LinkPosition {
    /// Finds it, and the links that the head has already. A document that breaks later is read as
    /// far as it goes.
    fn find(document: &[u8], syntax: LegacySyntax, has_cloud: bool) -> Option<Self> {
        let mark = if document.starts_with(b"\xef\xbb\xbf") {
            3
        } else {
            0
        };
        // Markup is ASCII in every encoding that gets here, and a letter of any of them is one in a
        // name: the places of bytes stay.
        let ascii = |byte: &u8| char::from(if byte.is_ascii() { *byte } else { b'x' });
        let text: String = document[mark..].iter().map(ascii).collect();
        let mut reader = NsReader::from_str(&text);
        reader.config_mut().check_end_names = false;
        let offset = |position: u64| mark + usize::try_from(position).unwrap_or_default();
        let mut found: Option<Self> = None;
        let mut depth = 0_usize;
        // The first byte of the element of the head that is open and has to be looked at.
        let mut open: Option<(HeadElement, usize)> = None;
        loop {
            let before = offset(reader.buffer_position());
            let Ok((namespace, event)) = reader.read_resolved_event() else {
                break;
            };
            let is_atom =
                matches!(namespace, ResolveResult::Bound(name) if name.as_ref() == ns::ATOM);
            let after = offset(reader.buffer_position());
            let (element, is_empty) = match &event {
                Event::Start(element) => (element, false),
                Event::Empty(element) => (element, true),
                Event::End(_) => {
                    depth = depth.saturating_sub(1);
                    let Some(place) = &mut found else {
                        continue;
                    };
                    if depth < place.depth {
                        break;
                    }
                    if depth == place.depth
                        && let Some((kind, start)) = open.take()
                    {
                        place.note(kind, start..after);
                    }
                    continue;
                }
                Event::Eof => break,
                _ => continue,
            };
            if let Some(place) = &mut found {
                let kind = HeadElement::of(element, syntax, is_atom, has_cloud);
                if let Some(kind) = kind.filter(|_| depth == place.depth) {
                    if is_empty {
                        place.note(kind, before..after);
                    } else {
                        open = Some((kind, before));
                    }
                }
            } else if !is_empty && is_head(syntax, depth, element.local_name().as_ref()) {
                found = Some(Self {
                    at: after,
                    name: link_name(element, syntax),
                    declares: syntax != LegacySyntax::Atom,
                    replaced: Vec::new(),
                    moves: Vec::new(),
                    depth: depth + 1,
                });
            }
            if !is_empty {
                depth += 1;
            }
        }
        found
    }

    fn note(&mut self, kind: HeadElement, place: Range<usize>) {
        match kind {
            HeadElement::Replaced => self.replaced.push(place),
            HeadElement::Moves => self.moves.push(place),
        }
    }
}

/// An element of the head that does not stay, or not always.
#[derive(Clone, Copy)]
enum HeadElement {
    /// One of ours stands for it.
    Replaced,
    /// It says where the feed has moved to.
    Moves,
}

impl HeadElement {
    /// `None` for one that stays. `is_atom` says that its namespace is that of Atom.
    fn of(
        element: &BytesStart<'_>,
        syntax: LegacySyntax,
        is_atom: bool,
        has_cloud: bool,
    ) -> Option<Self> {
        let local_name = element.local_name();
        let is = |name: &str| local_name.as_ref().eq_ignore_ascii_case(name);
        if MOVES.into_iter().any(is) {
            return Some(Self::Moves);
        }
        let is_cloud = has_cloud && element.name().as_ref().eq_ignore_ascii_case("cloud");
        let is_of_atom = is_atom || syntax == LegacySyntax::Atom;
        let is_replaced = is_cloud || (is("link") && is_of_atom && is_self(element));
        is_replaced.then_some(Self::Replaced)
    }
}

/// Elements by which a feed says that it has moved: of iTunes, whatever the prefix, and of RSS.
const MOVES: [&str; 3] = ["new-feed-url", "newLocation", "redirect"];

/// Name of our link elements below a head. An old Atom has links of its own vocabulary, too.
fn link_name(head: &BytesStart<'_>, syntax: LegacySyntax) -> String {
    if syntax != LegacySyntax::Atom {
        return format!("{PREFIX}:link");
    }
    match head.name().prefix() {
        Some(prefix) => format!("{}:link", prefix.as_ref()),
        None => "link".to_owned(),
    }
}

/// True for the element that holds what is said of the feed as a whole. Old software wrote names in
/// capitals, too.
fn is_head(syntax: LegacySyntax, depth: usize, name: &str) -> bool {
    match syntax {
        LegacySyntax::Atom => depth == 0 && name.eq_ignore_ascii_case("feed"),
        _ => depth == 1 && name.eq_ignore_ascii_case("channel"),
    }
}

/// True for a link that says where the document is.
fn is_self(link: &BytesStart<'_>) -> bool {
    let rel = link.try_get_attribute("rel").ok().flatten();
    rel.is_some_and(|rel| relation(&rel.value).eq_ignore_ascii_case("self"))
}

#[cfg(test)]
mod tests;
