//! One item as an Atom entry, or as a tombstone. A function of the item alone: the same bytes for
//! (id, T) in every document of a audience.

use super::{construct, declared::declared};
use crate::{
    feed::item::Item,
    render::{
        document::Audience,
        namespaces as ns, people,
        post::{ItemProjection, ShownPost, ShownTombstone},
        representation::shared_elements::{OF_TOMBSTONES, beyond_classic, foreign, link, missed},
        target,
        values::{self, ShownLink, ShownSource},
        xhtml,
        xml::{self, Xml},
    },
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use everfeed_adapters::{Body, TextKind};
use std::collections::HashSet;

/// The stripped entries that stand for tombstones before readers who do not know RFC 6721.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stubs {
    /// They are written.
    Shown,
    /// They are not: the reader asked for nothing that is gone, and would be shown posts that are
    /// called "(deleted)".
    LeftOut,
}

/// Writes an item.
pub(super) fn item(xml: &mut Xml, item: ItemProjection<'_>, audience: Audience, stubs: Stubs) {
    match item {
        ItemProjection::Post(post) => live(xml, post, audience),
        ItemProjection::Tombstone(tombstone) => gone(xml, tombstone, audience, stubs),
    }
}

fn live(xml: &mut Xml, post: ShownPost<'_>, audience: Audience) {
    xml.open("entry", &[("xml:lang", post.language_attribute())]);
    xml.leaf("id", &[], &post.item.iri);
    match post.marked_title() {
        Some(title) => construct::text(xml, "title", &title, audience),
        None => xml.leaf("title", &[], ""),
    }
    dates(xml, post.item, audience);
    people::atom(xml, "author", post.authors());
    people::atom(xml, "contributor", post.contributors());
    let has_alternate = links(xml, post);
    construct::categories(xml, post.tags());
    construct::text_some(xml, "rights", post.rights(), audience);
    bodies(xml, post, has_alternate, audience);
    if let Some(source) = post.source() {
        origin(xml, source, audience);
    }
    // Atom elements that are not in the entry's fields have no second place.
    let elements = post.foreign_elements(|element| element.ns == ns::ATOM);
    foreign(xml, elements, declared(audience));
    if audience == Audience::Full {
        xml.leaf("fo:id", &[], &post.item.id.to_string());
    }
    xml.close("entry");
}

/// A tombstone both ways: for those who know RFC 6721, and a stripped entry for those who do not
/// (D-13, H-30..H-32), unless they asked for nothing that is gone. The times at which the item was
/// first missed and last seen stand in either (POLLING 2.7), and so does the source of what it was.
fn gone(xml: &mut Xml, tombstone: ShownTombstone<'_>, audience: Audience, stubs: Stubs) {
    let item = tombstone.item;
    let when = item.modified.rfc3339();
    let mut attributes = beyond_classic(audience, OF_TOMBSTONES).to_vec();
    attributes.extend([("ref", Some(&*item.iri)), ("when", Some(&*when))]);
    xml.open("at:deleted-entry", &attributes);
    xml.leaf("at:comment", &[], tombstone.reason.code());
    xml.leaf("fo:id", &[], &item.id.to_string());
    tell_end(xml, tombstone);
    xml.close("at:deleted-entry");
    if stubs == Stubs::Shown {
        stub(xml, tombstone);
    }
}

/// The stripped entry that stands for a tombstone.
fn stub(xml: &mut Xml, tombstone: ShownTombstone<'_>) {
    let item = tombstone.item;
    xml.open("entry", &[]);
    xml.leaf("id", &[], &item.iri);
    xml.leaf("title", &[], "(deleted)");
    dates(xml, item, Audience::Full);
    xml.leaf("content", &[], "");
    xml.leaf("fo:id", &[], &item.id.to_string());
    xml.leaf("fo:deleted", &[], "true");
    tell_end(xml, tombstone);
    xml.close("entry");
}

/// The times of a tombstone, and the source of what it was.
fn tell_end(xml: &mut Xml, tombstone: ShownTombstone<'_>) {
    missed(xml, tombstone);
    if let Some(source) = tombstone.source() {
        origin(xml, source, Audience::Full);
    }
}

/// Writes an item as one entry: a tombstone as the stripped one, without the element of RFC 6721.
pub(super) fn single(xml: &mut Xml, item: ItemProjection<'_>) {
    match item {
        ItemProjection::Post(post) => live(xml, post, Audience::Full),
        ItemProjection::Tombstone(tombstone) => stub(xml, tombstone),
    }
}

/// `app:edited` is T: by it a consumer tells an old push from a new one (SF-94).
fn dates(xml: &mut Xml, item: &Item, audience: Audience) {
    xml.leaf("updated", &[], &item.updated().rfc3339());
    xml.leaf_some("published", item.published().map(|it| it.rfc3339()));
    if audience == Audience::Full {
        xml.leaf("app:edited", &[], &item.modified.rfc3339());
    }
}

/// Links, enclosures and the comments page; tells whether one is an alternate.
fn links(xml: &mut Xml, post: ShownPost<'_>) -> bool {
    let wanted = post
        .links()
        .filter(|link| !values::is_of_feed(link.rel) && link.rel != "enclosure");
    let has_alternate = plain_links(xml, permalink_first(wanted.collect()).into_iter());
    for file in post.enclosures().filter(|file| !file.is_illustration()) {
        let enclosure = ShownLink {
            length: file.length(),
            ..ShownLink::own("enclosure", file.media_type(), &*file.href)
        };
        link(xml, "link", &enclosure.titled(file.title()));
    }
    if !post.has_link_to_comments()
        && let Some(href) = post.comments()
    {
        // RFC 4685 section 4.
        let replies = ShownLink::own("replies", Some("text/html"), href);
        link(xml, "link", &replies);
    }
    has_alternate
}

/// Links; tells whether one is an alternate. Of the alternates with one type and language only the
/// first is written.
pub(super) fn plain_links<'l>(xml: &mut Xml, links: impl Iterator<Item = ShownLink<'l>>) -> bool {
    let mut alternates = HashSet::new();
    for each in links {
        if !each.is_alternate() || alternates.insert((each.media_type, each.hreflang)) {
            link(xml, "link", &each);
        }
    }
    !alternates.is_empty()
}

/// Of several alternates the permalink, the first that is a page, stands first, because most
/// readers take that one; and once more, with another type, it is to stand last: newsboat takes the
/// last one, whatever its type.
fn permalink_first(mut links: Vec<ShownLink<'_>>) -> Vec<ShownLink<'_>> {
    let alternates: HashSet<_> = links
        .iter()
        .filter(|link| link.is_alternate())
        .map(|link| (link.media_type, link.hreflang))
        .collect();
    let first = links.iter().position(ShownLink::is_alternate);
    let page = links
        .iter()
        .position(|link| link.is_alternate() && link.is_page);
    if let (Some(first), Some(page)) = (first, page)
        && alternates.len() > 1
    {
        let permalink = links.remove(page);
        let media_type = match permalink.media_type {
            Some(_) => None,
            None => Some("text/html"),
        };
        links.insert(first, permalink.clone());
        links.push(ShownLink {
            media_type,
            ..permalink
        });
    }
    links
}

/// Summary and content. An entry needs content or an alternate link, and a summary beside
/// content that is not readable in place.
fn bodies(xml: &mut Xml, post: ShownPost<'_>, has_alternate: bool, audience: Audience) {
    let content = post.body();
    let needs_summary = content.is_some_and(|body| body.src.is_some() || is_binary(body));
    match post.given_summary() {
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
fn origin(xml: &mut Xml, source: ShownSource<'_>, audience: Audience) {
    let id = source.id().and_then(xml::iri);
    let title = source.marked_title();
    if id.is_none() && title.is_none() {
        if let Some(url) = source.url() {
            link(xml, "link", &ShownLink::own("via", None, url));
        }
        return;
    }
    xml.open("source", &[]);
    xml.leaf_some("id", id);
    construct::text_some(xml, "title", title, audience);
    construct::text_some(xml, "subtitle", source.subtitle(), audience);
    construct::text_some(xml, "rights", source.rights(), audience);
    xml.leaf_some("updated", source.updated());
    people::atom(xml, "author", source.authors());
    people::atom(xml, "contributor", source.contributors());
    plain_links(xml, source.links());
    construct::categories(xml, source.tags());
    xml.leaf_some("icon", source.icon());
    xml.leaf_some("logo", source.logo());
    xml.close("source");
}
