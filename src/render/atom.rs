//! Atom 1.0, for Smart Feed consumers with `fo:` and `at:` elements, for ordinary readers without; not what an item
//! may look like in other formats.

use super::{Document, GENERATOR, identity, target, text::visible, urls::Urls, xml::Xml};
use crate::feed::{stamp::Stamp, view::Format};
use everfeed_adapters::Metadata;
use std::collections::HashSet;

pub(super) mod construct;
mod entry;

#[cfg(test)]
mod tests;

/// Namespaces that every Smart Feed document declares, used or not: an entry is then written the same in all of them.
const SMART: &[(&str, &str)] =
    &[("", ns::ATOM), ("fo", ns::SMART_FEED), ("at", ns::TOMBSTONES), ("app", ns::PUBLISHING)];
const CLASSIC: &[(&str, &str)] = &[("", ns::ATOM)];

/// Namespaces.
pub(super) mod ns {
    pub(in crate::render) const ATOM: &str = "http://www.w3.org/2005/Atom";
    pub(in crate::render) const SMART_FEED: &str = "http://fanout.org/protocol/atom";
    pub(in crate::render) const TOMBSTONES: &str = "http://purl.org/atompub/tombstones/1.0";
    pub(in crate::render) const PUBLISHING: &str = "http://www.w3.org/2007/app";
    pub(in crate::render) const FEED_HISTORY: &str = "http://purl.org/syndication/history/1.0";
}

/// Which Atom is written.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Dialect {
    smart: bool,
}

impl Dialect {
    const fn declared(self) -> &'static [(&'static str, &'static str)] {
        if self.smart { SMART } else { CLASSIC }
    }
}

/// Writes the document.
pub(super) fn document(document: &Document<'_>) -> Vec<u8> {
    let dialect = Dialect { smart: document.format == Format::Atom };
    let mut xml = Xml::document(document.capacity_bytes());
    let language = document.feed().metadata.language.as_deref().and_then(construct::language);
    let mut attributes = vec![("xmlns", Some(ns::ATOM))];
    if dialect.smart {
        attributes.extend([
            ("xmlns:fo", Some(ns::SMART_FEED)),
            ("xmlns:at", Some(ns::TOMBSTONES)),
            ("xmlns:app", Some(ns::PUBLISHING)),
        ]);
    }
    attributes.push(("xml:lang", language));
    xml.open("feed", &attributes);
    head(&mut xml, document, dialect);
    if dialect.smart {
        position(&mut xml, document);
    }
    for item in &document.page.items {
        entry::item(&mut xml, item, dialect);
    }
    xml.close("feed");
    xml.finish()
}

/// What RFC 4287 section 4.1.1 asks of a feed, in a page without entries too (A-1..A-4).
fn head(xml: &mut Xml, document: &Document<'_>, dialect: Dialect) {
    let feed = document.feed();
    let metadata = &feed.metadata;
    xml.leaf("id", &[], &identity::iri(feed));
    construct::text(xml, "title", &identity::title(feed), dialect);
    if let Some(subtitle) = visible(metadata.description.as_ref()) {
        construct::text(xml, "subtitle", subtitle, dialect);
    }
    xml.leaf("updated", &[], &updated(feed.last_t).rfc3339());
    if !construct::people(xml, "author", &metadata.authors) {
        xml.open("author", &[]);
        xml.leaf("name", &[], &identity::name(feed));
        xml.close("author");
    }
    links(xml, metadata, document.urls, document);
    construct::people(xml, "contributor", &metadata.contributors);
    construct::categories(xml, &metadata.categories);
    if let Some(rights) = visible(metadata.rights.as_ref()) {
        construct::text(xml, "rights", rights, dialect);
    }
    if let Some(icon) = metadata.icon.as_deref().and_then(target::image) {
        xml.leaf("icon", &[], &icon);
    }
    if let Some(logo) = metadata.image.as_ref().and_then(|image| target::image(&image.url)) {
        xml.leaf("logo", &[], &logo);
    }
    xml.leaf("generator", &[("version", Some(GENERATOR.version))], GENERATOR.name);
}

/// A feed that never held anything has no T; Atom wants a date all the same, and it must not be the time of asking.
fn updated(last_t: Stamp) -> Stamp {
    const NEVER: Stamp = Stamp::from_secs(946_684_800); // 2000-01-01
    if last_t == Stamp::ZERO { NEVER } else { last_t }
}

fn links(xml: &mut Xml, metadata: &Metadata, urls: &Urls, document: &Document<'_>) {
    let media_type = document.format.media_type();
    xml.empty("link", &[("rel", Some("self")), ("type", Some(media_type)), ("href", Some(&urls.base))]);
    if let Some(hub) = &urls.hub {
        xml.empty("link", &[("rel", Some("hub")), ("href", Some(hub))]);
    }
    if let Some(next) = document.next() {
        xml.empty("link", &[("rel", Some("next")), ("type", Some(media_type)), ("href", Some(next))]);
    }
    // The site comes first, as it is what a person would call the alternate.
    let mut alternates = HashSet::new();
    if let Some(site) = metadata.link("alternate").and_then(target::link) {
        alternates.insert("text/html");
        xml.empty("link", &[("rel", Some("alternate")), ("type", Some("text/html")), ("href", Some(&site))]);
    }
    for link in &urls.alternates {
        if link.rel == "alternate" && !alternates.insert(link.media_type) {
            continue;
        }
        xml.empty(
            "link",
            &[
                ("rel", Some(link.rel)),
                ("type", Some(link.media_type)),
                ("title", Some(link.title)),
                ("href", Some(&link.href)),
            ],
        );
    }
}

/// Where the page stands (SF-56, SF-57, SF-83, SF-85). No `count` in Atom (SF-62).
fn position(xml: &mut Xml, document: &Document<'_>) {
    xml.leaf("fo:total", &[], &document.feed().total.to_string());
    if let Some(prev) = document.prev_cursor {
        xml.leaf("fo:prev_cursor", &[], prev);
    }
    xml.leaf("fo:last_cursor", &[], &document.page.last_cursor);
}
