//! One item as an Atom entry, or as a tombstone. A function of the item alone: the same bytes for
//! (id, T) in every document of a audience.

use super::{construct, declared::declared};
use crate::{
    feed::{
        item::{Content, Item, Reason, plausible},
        stamp::Stamp,
    },
    render::{
        document::Audience,
        foreign, namespaces as ns, target,
        text::{on_one_line_of, visible},
        values, xhtml,
        xml::{self, Xml},
    },
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use everfeed_adapters::{Body, Element, Enclosure, Entry, Link, Source, TextKind};
use std::collections::HashSet;

/// Relations that say something of a whole feed; in an entry they would send readers astray (H-27).
const FEED_RELATIONS: &[&str] = &[
    "self",
    "hub",
    "current",
    "first",
    "last",
    "next",
    "previous",
    "prev",
    "next-archive",
    "prev-archive",
    "enclosure",
];

/// The stripped entries that stand for tombstones before readers who do not know RFC 6721.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stubs {
    /// They are written.
    Shown,
    /// They are not: the reader asked for nothing that is gone, and would be shown posts that are
    /// called "(deleted)".
    LeftOut,
}

/// The rest of an item that is gone.
struct Gone {
    reason: Reason,
    first_missing: Option<Stamp>,
    last_seen: Option<Stamp>,
}

/// Writes an item. Classic views leave tombstones out (DESIGN section 3).
pub(super) fn item(xml: &mut Xml, item: &Item, audience: Audience, stubs: Stubs) {
    match &item.content {
        Content::Live(entry) => live(xml, item, entry, audience),
        Content::Gone {
            reason,
            first_missing,
            last_seen,
        } if audience == Audience::Full => {
            let (reason, first_missing, last_seen) = (*reason, *first_missing, *last_seen);
            gone(
                xml,
                item,
                &Gone {
                    reason,
                    first_missing,
                    last_seen,
                },
                stubs,
            );
        }
        Content::Gone { .. } => {}
    }
}

fn live(xml: &mut Xml, item: &Item, entry: &Entry, audience: Audience) {
    let language = entry
        .language
        .as_deref()
        .and_then(values::language_attribute);
    xml.open("entry", &[("xml:lang", language)]);
    xml.leaf("id", &[], &item.iri);
    match &entry.title {
        Some(title) => construct::text(xml, "title", &on_one_line_of(title), audience),
        None => xml.leaf("title", &[], ""),
    }
    dates(xml, item, audience);
    construct::people(xml, "author", &entry.authors);
    construct::people(xml, "contributor", &entry.contributors);
    let has_alternate = links(xml, entry);
    construct::categories(xml, &entry.categories);
    if let Some(rights) = visible(entry.rights.as_ref()) {
        construct::text(xml, "rights", rights, audience);
    }
    bodies(xml, entry, has_alternate, audience);
    if let Some(source) = &entry.source {
        origin(xml, source, audience);
    }
    for element in entry.foreign.iter().filter(|element| !is_ours(element)) {
        xml.aside(|out| foreign::write(out, element, declared(audience)));
    }
    if audience == Audience::Full {
        xml.leaf("fo:id", &[], &item.id.to_string());
    }
    xml.close("entry");
}

/// A tombstone both ways: for those who know RFC 6721, and a stripped entry for those who do not
/// (D-13, H-30..H-32), unless they asked for nothing that is gone. The times at which the item was
/// first missed and last seen stand in either (POLLING 2.7), and so does the source of what it was.
fn gone(xml: &mut Xml, item: &Item, tombstone: &Gone, stubs: Stubs) {
    let when = item.modified.rfc3339();
    let id = item.id.to_string();
    let moments = [
        ("fo:first_missing", tombstone.first_missing),
        ("fo:last_seen", tombstone.last_seen),
    ];
    let tell = |xml: &mut Xml| {
        for (name, at) in moments {
            at.iter().for_each(|at| xml.leaf(name, &[], &at.rfc3339()));
        }
        if let Some(source) = item.ended_source() {
            origin(xml, source, Audience::Full);
        }
    };
    xml.open(
        "at:deleted-entry",
        &[("ref", Some(&item.iri)), ("when", Some(&when))],
    );
    xml.leaf("at:comment", &[], tombstone.reason.code());
    xml.leaf("fo:id", &[], &id);
    tell(xml);
    xml.close("at:deleted-entry");
    if stubs == Stubs::LeftOut {
        return;
    }
    xml.open("entry", &[]);
    xml.leaf("id", &[], &item.iri);
    xml.leaf("title", &[], "(deleted)");
    dates(xml, item, Audience::Full);
    xml.leaf("content", &[], "");
    xml.leaf("fo:id", &[], &id);
    xml.leaf("fo:deleted", &[], "true");
    tell(xml);
    xml.close("entry");
}

/// `app:edited` is T: by it a consumer tells an old push from a new one (SF-94).
fn dates(xml: &mut Xml, item: &Item, audience: Audience) {
    xml.leaf("updated", &[], &item.updated().rfc3339());
    if let Some(published) = item.published() {
        xml.leaf("published", &[], &published.rfc3339());
    }
    if audience == Audience::Full {
        xml.leaf("app:edited", &[], &item.modified.rfc3339());
    }
}

/// Links, enclosures and the comments page; tells whether one is an alternate.
fn links(xml: &mut Xml, entry: &Entry) -> bool {
    let wanted = entry
        .links
        .iter()
        .filter(|link| !FEED_RELATIONS.contains(&relation(link)));
    let (wanted, last) = permalink_first(wanted.collect());
    let has_alternate = plain_links(xml, wanted.into_iter().chain(&last));
    for Enclosure {
        url,
        media_type,
        length,
        title,
        ..
    } in entry.enclosures.iter().filter(|file| !file.is_illustration)
    {
        let Some(href) = target::image(url) else {
            continue;
        };
        xml.empty(
            "link",
            &[
                ("rel", Some("enclosure")),
                ("type", media_type.as_deref().and_then(values::media_type)),
                ("title", title.as_deref()),
                ("href", Some(&href)),
                ("length", values::length(length.as_deref())),
            ],
        );
    }
    // Another link with this relation may lead to the feed of the comments.
    let is_page = |link: &Link| {
        !link
            .media_type
            .as_deref()
            .is_some_and(|media_type| media_type.ends_with("+xml"))
    };
    let named = entry
        .links
        .iter()
        .any(|link| link.rel == "replies" && is_page(link));
    if let Some(href) = entry
        .comments
        .as_deref()
        .filter(|_| !named)
        .and_then(target::link)
    {
        // RFC 4685 section 4.
        let html = Some("text/html");
        xml.empty(
            "link",
            &[
                ("rel", Some("replies")),
                ("type", html),
                ("href", Some(&href)),
            ],
        );
    }
    has_alternate
}

/// Links; tells whether one is an alternate. Of the alternates with one type and language only the
/// first is written.
pub(super) fn plain_links<'l>(xml: &mut Xml, links: impl Iterator<Item = &'l Link>) -> bool {
    let mut alternates = HashSet::new();
    let is_wanted = |link: &&'l Link| {
        target::link(&link.href).is_some()
            && (relation(link) != "alternate"
                || alternates.insert((link_type(link), link_language(link))))
    };
    let links: Vec<_> = links.filter(is_wanted).collect();
    for link in links {
        let Some(href) = target::link(&link.href) else {
            continue;
        };
        xml.empty(
            "link",
            &[
                ("rel", Some(relation(link))),
                ("type", link_type(link)),
                ("hreflang", link_language(link)),
                ("title", link.title.as_deref()),
                ("href", Some(&href)),
                ("length", values::length(link.length.as_deref())),
            ],
        );
    }
    !alternates.is_empty()
}

/// Of several alternates the permalink, the first that is a page, stands first, because most
/// readers take that one; and once more, with another type, it is to stand last: newsboat takes the
/// last one, whatever its type.
fn permalink_first(mut links: Vec<&Link>) -> (Vec<&Link>, Option<Link>) {
    let is_alternate =
        |link: &&Link| relation(link) == "alternate" && target::link(&link.href).is_some();
    let alternates: HashSet<_> = links
        .iter()
        .filter(|link| is_alternate(link))
        .map(|link| (link_type(link), link_language(link)))
        .collect();
    let Some(first) = links.iter().position(is_alternate) else {
        return (links, None);
    };
    let page = links
        .iter()
        .position(|link| is_alternate(link) && link.is_page());
    let Some(page) = page.filter(|_| alternates.len() > 1) else {
        return (links, None);
    };
    let permalink = links.remove(page);
    links.insert(first, permalink);
    let media_type = if link_type(permalink).is_some() {
        None
    } else {
        Some("text/html".to_owned())
    };
    (
        links,
        Some(Link {
            media_type,
            ..permalink.clone()
        }),
    )
}

fn link_type(link: &Link) -> Option<&str> {
    link.media_type.as_deref().and_then(values::media_type)
}

fn link_language(link: &Link) -> Option<&str> {
    link.hreflang.as_deref().and_then(values::language)
}

/// The relation as Atom spells it: a registered name, or an IRI.
fn relation(link: &Link) -> &str {
    let rel = link.rel.trim();
    let rel = rel
        .strip_prefix("http://www.iana.org/assignments/relation/")
        .unwrap_or(rel);
    if rel.is_empty() || rel.contains(|c: char| c.is_whitespace() || c.is_control()) {
        "related"
    } else {
        rel
    }
}

/// Summary and content. An entry needs content or an alternate link, and a summary beside
/// content that is not readable in place.
fn bodies(xml: &mut Xml, entry: &Entry, has_alternate: bool, audience: Audience) {
    let content = entry.content.as_ref();
    let needs_summary = content.is_some_and(|body| body.src.is_some() || is_binary(body));
    match &entry.summary {
        Some(summary) => construct::text(xml, "summary", summary, audience),
        None if needs_summary => xml.leaf("summary", &[], ""),
        None => {}
    }
    match content {
        Some(body) => self::content(xml, body, audience),
        None if !has_alternate => xml.leaf("content", &[], ""),
        None => {}
    }
}

fn content(xml: &mut Xml, body: &Body, audience: Audience) {
    let media_type = media_type(body);
    if let Some(src) = body.src.as_deref().and_then(target::image) {
        let media_type = media_type.or(match body.text.kind {
            TextKind::Plain | TextKind::Base64 => None,
            TextKind::Html => Some("text/html"),
            TextKind::Xhtml => Some("application/xhtml+xml"),
        });
        return xml.empty("content", &[("type", media_type), ("src", Some(&src))]);
    }
    match media_type {
        None => construct::text(xml, "content", &body.text, audience),
        Some(media_type) if is_xml(media_type) => {
            let mut root = String::new();
            match xhtml::write_root(&mut root, &body.text.value, declared(audience)) {
                Ok(()) => {
                    xml.holding("content", &[("type", Some(media_type))], |out| {
                        out.push_str(&root)
                    });
                }
                Err(xhtml::IllFormed) => xml.leaf("content", &[], &body.text.value),
            }
        }
        // A text of a type that Atom knows for none, such as JSON.
        Some(media_type) if is_binary(body) && body.text.kind != TextKind::Base64 => {
            let encoded = BASE64_STANDARD.encode(&body.text.value);
            xml.leaf("content", &[("type", Some(media_type))], &encoded);
        }
        Some(media_type) => xml.leaf("content", &[("type", Some(media_type))], &body.text.value),
    }
}

/// Bytes of which nobody can say what they are have a type too.
fn media_type(body: &Body) -> Option<&str> {
    let named = body.media_type.as_deref().and_then(values::media_type);
    named.or((body.text.kind == TextKind::Base64).then_some("application/octet-stream"))
}

/// True for content that must be base64 (RFC 4287 section 4.1.3.3).
fn is_binary(body: &Body) -> bool {
    media_type(body).is_some_and(|t| {
        !is_xml(t)
            && !t
                .get(..5)
                .is_some_and(|kind| kind.eq_ignore_ascii_case("text/"))
    })
}

/// RFC 3023, in the words of RFC 4287 section 4.1.3.3.
fn is_xml(media_type: &str) -> bool {
    let lower = media_type.to_ascii_lowercase();
    lower.ends_with("+xml") || lower.ends_with("/xml")
}

/// Origin of an aggregated entry, as far as it is known: `atom:source` requires nothing (RFC
/// 4287 section 4.2.11). Of a source that has neither an id nor a title, a `via` link tells as
/// much.
fn origin(xml: &mut Xml, source: &Source, audience: Audience) {
    let id = source.id.as_deref().and_then(xml::iri);
    let title = visible(source.title.as_ref());
    if id.is_none() && title.is_none() {
        if let Some(url) = source.url().and_then(target::link) {
            xml.empty("link", &[("rel", Some("via")), ("href", Some(&url))]);
        }
        return;
    }
    xml.open("source", &[]);
    if let Some(id) = id {
        xml.leaf("id", &[], &id);
    }
    for (name, text) in [
        ("title", title),
        ("subtitle", visible(source.subtitle.as_ref())),
        ("rights", visible(source.rights.as_ref())),
    ] {
        if let Some(text) = text {
            construct::text(xml, name, text, audience);
        }
    }
    if let Some(updated) = source
        .updated
        .as_ref()
        .and_then(|date| plausible(date.at_us))
    {
        xml.leaf("updated", &[], &updated.rfc3339());
    }
    construct::people(xml, "author", &source.authors);
    construct::people(xml, "contributor", &source.contributors);
    plain_links(xml, source.links.iter());
    construct::categories(xml, &source.categories);
    for (name, url) in [("icon", &source.icon), ("logo", &source.logo)] {
        if let Some(url) = url.as_deref().and_then(target::image) {
            xml.leaf(name, &[], &url);
        }
    }
    xml.close("source");
}

/// Foreign markup that would contradict what we write ourselves: a Smart Feed upstream has its own
/// ids, cursors and tombstones, and Atom elements that are not in the entry's fields have no second
/// place.
fn is_ours(element: &Element) -> bool {
    match element.ns.as_str() {
        ns::ATOM | ns::SMART_FEED | ns::TOMBSTONES | ns::FEED_HISTORY => true,
        ns::PUBLISHING => element.name == "edited",
        _ => false,
    }
}
