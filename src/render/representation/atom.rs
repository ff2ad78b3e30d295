//! Atom 1.0, for Smart Feed consumers with `fo:` and `at:` elements, for ordinary readers without;
//! not what an item may look like in other formats.

use super::{
    BOTH, LoneItem, Media, Negotiation, SyntaxRow,
    shared_elements::{archive_mark, link, own_links, position},
};
use crate::{
    feed::stamp::Stamp,
    render::{
        channel::ShownChannel,
        document::{Audience, Document},
        generator::GENERATOR,
        identity, namespaces as ns, people,
        post::{self, ItemProjection},
        text::on_one_line_of,
        values::ShownLink,
        xml::Xml,
    },
};
use entry::Stubs;
use std::collections::HashSet;

mod entry;

mod construct;
mod declared;

#[cfg(test)]
mod tests;

const MEDIA_TYPE: &str = "application/atom+xml";

/// The syntax.
pub(super) static ROW: SyntaxRow = SyntaxRow {
    suffix: "atom",
    title: "Atom",
    standard: "Atom 1.0 (RFC 4287) + RFC 6721",
    etag: "a",
    media: Media::of("application/atom+xml; charset=utf-8", Negotiation::Ranges)
        .or(&["text/xml", "application/xml"]),
    audiences: BOTH,
    is_alternate: true,
    write: document,
    item: lone_item,
};

/// Writes the document.
pub(super) fn document(document: &Document<'_>, audience: Audience) -> Vec<u8> {
    let mut xml = Xml::document(document.capacity_bytes());
    let channel = ShownChannel::of(document.feed());
    let mut attributes = vec![("xmlns", Some(ns::ATOM))];
    if audience == Audience::Full {
        attributes.extend([
            ("xmlns:fo", Some(ns::SMART_FEED)),
            ("xmlns:at", Some(ns::TOMBSTONES)),
            ("xmlns:app", Some(ns::PUBLISHING)),
        ]);
    }
    attributes.push(("xml:lang", channel.language()));
    xml.open("feed", &attributes);
    head(&mut xml, document, channel, audience);
    position(&mut xml, document, audience);
    let stubs = if document.links.is_live_view || audience == Audience::Classic {
        Stubs::LeftOut
    } else {
        Stubs::Shown
    };
    for item in post::items(document, audience) {
        entry::item(&mut xml, item, audience, stubs);
    }
    xml.close("feed");
    xml.finish()
}

/// Writes one item. It stands below the root of a page.
pub(super) fn lone_item(lone: &LoneItem<'_>) -> Vec<u8> {
    let mut xml = Xml::fragment(1, lone.place.declared(declared::declared(lone.audience)));
    entry::item(&mut xml, lone.item, lone.audience, Stubs::Shown);
    xml.finish_fragment()
}

/// Writes one item as one entry that stands alone, for protocols that have a word of their own for
/// what is gone.
pub(super) fn single_entry(item: ItemProjection<'_>) -> Vec<u8> {
    let mut xml = Xml::fragment(0, declared::declared(Audience::Full));
    entry::single(&mut xml, item);
    xml.finish_fragment()
}

/// The elements that RFC 4287 section 4.1.1 asks of a feed, in a page without entries too
/// (A-1..A-4).
fn head(xml: &mut Xml, document: &Document<'_>, channel: ShownChannel<'_>, audience: Audience) {
    xml.leaf("id", &[], &identity::document_iri(document));
    let title = channel.title();
    construct::text(xml, "title", &on_one_line_of(&title), audience);
    construct::text_some(xml, "subtitle", channel.description(), audience);
    xml.leaf("updated", &[], &updated(channel.feed.last_t).rfc3339());
    if !people::atom(xml, "author", channel.authors()) {
        xml.open("author", &[]);
        xml.leaf("name", &[], &channel.name());
        xml.close("author");
    }
    links(xml, document, channel, audience);
    archive_mark(xml, document);
    people::atom(xml, "contributor", channel.contributors());
    construct::categories(xml, channel.tags());
    construct::text_some(xml, "rights", channel.rights(), audience);
    xml.leaf_some("icon", channel.icon());
    xml.leaf_some("logo", channel.logo());
    let version = [("version", Some(GENERATOR.version))];
    xml.leaf("generator", &version, GENERATOR.name);
    channel.elements(xml, is_own, declared::declared(audience));
}

/// True for un-namespaced elements that readers without namespaces would take for ours.
fn is_own(name: &str) -> bool {
    const NAMES: &str = "title id link updated subtitle author contributor generator feed";
    NAMES.split(' ').any(|known| known == name)
}

/// A feed that never held anything has no T; Atom wants a date all the same, and it must not be the
/// time of asking.
fn updated(last_t: Stamp) -> Stamp {
    const NEVER: Stamp = Stamp::from_secs(946_684_800); // 2000-01-01
    if last_t == Stamp::ZERO { NEVER } else { last_t }
}

fn links(xml: &mut Xml, document: &Document<'_>, channel: ShownChannel<'_>, audience: Audience) {
    own_links(xml, "link", document, audience, MEDIA_TYPE);
    let mut alternates = HashSet::new();
    let page = feed_page(document, channel);
    if let Some(page) = &page {
        alternates.insert(HTML);
        link(xml, "link", page);
    }
    if let Some(xmpp) = document
        .links
        .xmpp
        .as_deref()
        .filter(|_| audience == Audience::Full)
    {
        // No alternate: there are readers that take the last one, whatever its scheme.
        let related = ShownLink::own("related", None, xmpp).titled(Some("This feed over XMPP"));
        link(xml, "link", &related);
    }
    let mut is_only = true;
    for other in &document.links.alternates {
        if alternates.insert(other.media_type) {
            is_only = false;
            let alternate = ShownLink::own("alternate", Some(other.media_type), &other.href);
            link(xml, "link", &alternate.titled(Some(&other.title)));
        }
    }
    let about = ShownLink::own("describedby", Some(HTML), &document.links.about);
    link(xml, "link", &about.titled(Some("About this feed")));
    let further = channel.links(&alternates);
    let mut others = further.iter().filter(|link| link.rel == "alternate");
    let has_untyped = others.clone().any(|link| link.media_type.is_none());
    let is_page_last = is_only && others.next().is_none();
    entry::plain_links(xml, further.into_iter().filter_map(ShownLink::of));
    if let Some(page) = page.filter(|_| !is_page_last && !has_untyped) {
        // newsboat takes the last alternate, whatever its type. Two of one type must not be (RFC
        // 4287 section 4.1.1).
        let again = ShownLink::own("alternate", None, page.href).titled(page.title);
        link(xml, "link", &again);
    }
}

const HTML: &str = "text/html";

/// The page that a person would call the alternate of a feed: of its site, else ours. It is the
/// first alternate, which most readers show as the website.
fn feed_page<'d>(document: &Document<'d>, channel: ShownChannel<'d>) -> Option<ShownLink<'d>> {
    if let Some(site) = channel.page() {
        return Some(ShownLink::own("alternate", Some(HTML), site.href).titled(site.title));
    }
    let mut others = document.links.alternates.iter();
    let own = others.find(|other| other.media_type == HTML)?;
    Some(ShownLink::own("alternate", Some(HTML), &own.href).titled(Some(&own.title)))
}
