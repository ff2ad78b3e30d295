//! Elements of Atom, Smart Feeds and RFC 6721 that the syntaxes of XML write alike, each under the
//! name that it has there; not where they stand.

use crate::render::{
    document::{Audience, Document},
    foreign, namespaces as ns,
    post::{ShownPost, ShownTombstone},
    text::ShownText,
    values::ShownLink,
    xml::{Declared, Xml},
};
use everfeed_adapters::Element;

/// A link (RFC 4287 section 4.2.7).
pub(super) fn link(xml: &mut Xml, element: &str, link: &ShownLink<'_>) {
    let attributes = [
        ("rel", Some(link.rel)),
        ("type", link.media_type),
        ("hreflang", link.hreflang),
        ("title", link.title),
        ("href", Some(&*link.href)),
        ("length", link.length),
    ];
    xml.empty(element, &attributes);
}

/// The links of a document to itself, its hub, its archives and the next page.
pub(super) fn own_links(
    xml: &mut Xml,
    element: &str,
    document: &Document<'_>,
    audience: Audience,
    media_type: &str,
) {
    let own_type = Some(media_type);
    let own = ShownLink::own("self", own_type, document.own_url());
    let hub = document.hub().map(|hub| ShownLink::own("hub", None, hub));
    let archives = document
        .archive_links()
        .map(|(relation, url)| ShownLink::own(relation, own_type, url));
    let next = document.next(audience);
    let next = next.map(|next| ShownLink::own("next", own_type, next));
    for each in [own].into_iter().chain(hub).chain(archives).chain(next) {
        link(xml, element, &each);
    }
}

/// The mark of an archive (RFC 5005 section 4).
pub(super) fn archive_mark(xml: &mut Xml, document: &Document<'_>) {
    if document.is_archive() {
        xml.empty("fh:archive", &[("xmlns:fh", Some(ns::FEED_HISTORY))]);
    }
}

/// Position of the page (SF-56, SF-57, SF-83, SF-85). No `count` in XML (SF-62).
pub(super) fn position(xml: &mut Xml, document: &Document<'_>, audience: Audience) {
    if audience == Audience::Full {
        xml.leaf_some("fo:total", document.page.total.map(|it| it.to_string()));
    }
    if !document.has_cursors(audience) {
        return;
    }
    let declared = beyond_classic(audience, FO);
    if let Some(prev) = document.prev_cursor() {
        xml.leaf("fo:prev_cursor", declared, prev);
    }
    xml.leaf("fo:last_cursor", declared, &document.page.last_cursor);
}

/// The namespaces of a tombstone.
pub(super) const OF_TOMBSTONES: &[(&str, Option<&str>)] = &[
    ("xmlns:at", Some(ns::TOMBSTONES)),
    ("xmlns:fo", Some(ns::SMART_FEED)),
];

/// The namespace of positions.
const FO: &[(&str, Option<&str>)] = OF_TOMBSTONES.split_at(1).1;

/// The declarations of an element that documents for ordinary readers hold only in pushes: their
/// root does not declare its namespaces.
pub(super) const fn beyond_classic<'a>(
    audience: Audience,
    declarations: &'a [(&'a str, Option<&'a str>)],
) -> &'a [(&'a str, Option<&'a str>)] {
    match audience {
        Audience::Full => &[],
        Audience::Classic => declarations,
    }
}

/// Id and T of a post, for those who follow the feed by them.
pub(super) fn item_position(xml: &mut Xml, post: ShownPost<'_>, audience: Audience) {
    if audience == Audience::Full {
        xml.leaf("fo:id", &[], &post.item.id.to_string());
        xml.leaf("fo:edited", &[], &post.item.modified.rfc3339());
    }
}

/// Beside a summary the full text stands in `content:encoded` (R-9, D-1); alone it is the
/// description, which every reader shows.
pub(super) fn summary_and_content(
    xml: &mut Xml,
    summary: Option<ShownText<'_>>,
    content: Option<ShownText<'_>>,
) {
    xml.leaf_some("description", summary.or(content).map(ShownText::html));
    if summary.is_some() {
        xml.leaf_some("content:encoded", content.map(ShownText::html));
    }
}

/// The times at which an item was first missed and last seen (POLLING 2.7).
pub(super) fn missed(xml: &mut Xml, gone: ShownTombstone<'_>) {
    for (name, at) in gone.missed() {
        xml.leaf(name, &[], &at);
    }
}

/// Elements of other vocabularies.
pub(super) fn foreign<'e>(
    xml: &mut Xml,
    elements: impl Iterator<Item = &'e Element>,
    declared: &[Declared],
) {
    for element in elements {
        xml.aside(|out| foreign::write(out, element, declared));
    }
}
