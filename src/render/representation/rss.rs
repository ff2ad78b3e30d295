//! RSS 2.0 for ordinary readers: live items, no cursors, no tombstones, which it cannot express.

use crate::{
    feed::{item::Item, record::FeedRecord, stamp::Stamp},
    render::{
        document::{Audience, Document, ItemPlace},
        foreign,
        generator::GENERATOR,
        identity, namespaces as ns, target,
        text::{body_html, html, plain, visible},
        values,
        xml::Xml,
    },
};
use everfeed_adapters::{Category, Element, Enclosure, Entry, IsPermaLink, Node, Person, Source};
use std::borrow::Cow;

#[cfg(test)]
mod tests;

const MEDIA_TYPE: &str = "application/rss+xml";

const CONTENT: &str = "http://purl.org/rss/1.0/modules/content/";
const DUBLIN_CORE: &str = "http://purl.org/dc/elements/1.1/";
const MEDIA: &str = "http://search.yahoo.com/mrss/";

const DECLARED: &[(&str, &str)] =
    &[("atom", ns::ATOM), ("content", CONTENT), ("dc", DUBLIN_CORE), ("media", MEDIA)];

/// Writes the document.
pub(super) fn document(document: &Document<'_>, _: Audience) -> Vec<u8> {
    let mut xml = Xml::document(document.capacity_bytes());
    xml.open(
        "rss",
        &[
            ("version", Some("2.0")),
            ("xmlns:atom", Some(ns::ATOM)),
            ("xmlns:content", Some(CONTENT)),
            ("xmlns:dc", Some(DUBLIN_CORE)),
            ("xmlns:media", Some(MEDIA)),
        ],
    );
    xml.open("channel", &[]);
    channel(&mut xml, document);
    for item in &document.page.items {
        self::item(&mut xml, item);
    }
    xml.close("channel");
    xml.close("rss");
    xml.finish()
}

/// Writes one item. It stands below the channel of a page.
pub(super) fn lone_item(item: &Item, _: &FeedRecord, _: Audience, place: ItemPlace) -> Option<Vec<u8>> {
    let declared = match place {
        ItemPlace::Page => &[],
        ItemPlace::Alone => DECLARED,
    };
    let mut xml = Xml::fragment(2, declared);
    self::item(&mut xml, item);
    xml.finish_fragment()
}

///
fn channel(xml: &mut Xml, document: &Document<'_>) {
    let links = document.links;
    let feed = document.feed();
    let metadata = &feed.metadata;
    let title = identity::name(feed);
    // Every channel needs a site; ours has at least a page about the feed.
    let site = metadata.link("alternate").and_then(target::link).unwrap_or(Cow::Borrowed(&links.about));
    xml.leaf("title", &[], &title);
    xml.leaf("link", &[], &site);
    let description = visible(metadata.description.as_ref()).map_or(Cow::Borrowed(title.as_ref()), plain);
    xml.leaf("description", &[], &description);
    if let Some(language) = metadata.language.as_deref().and_then(values::language) {
        xml.leaf("language", &[], language);
    }
    if let Some(rights) = visible(metadata.rights.as_ref()) {
        xml.leaf("copyright", &[], &plain(rights));
    }
    if feed.last_t != Stamp::ZERO {
        xml.leaf("lastBuildDate", &[], &feed.last_t.rfc822());
    }
    categories(xml, &metadata.categories);
    xml.leaf("generator", &[], &format!("{} {}", GENERATOR.name, GENERATOR.version));
    if let Some(ttl) = document.ttl_mins {
        xml.leaf("ttl", &[], &ttl.to_string());
    }
    if let Some(image) = metadata.picture().and_then(target::image) {
        xml.open("image", &[]);
        xml.leaf("url", &[], &image);
        xml.leaf("title", &[], &title);
        xml.leaf("link", &[], &site);
        xml.close("image");
    }
    let own_type = Some(MEDIA_TYPE);
    xml.empty("atom:link", &[("rel", Some("self")), ("type", own_type), ("href", Some(&links.base))]);
    xml.empty("atom:link", &[("rel", Some("hub")), ("href", Some(&links.hub))]);
}

/// R-2..R-9. A function of the item alone.
fn item(xml: &mut Xml, item: &Item) {
    let Some(entry) = item.entry() else { return };
    xml.open("item", &[]);
    let permalink = target::permalink(entry);
    texts(xml, item, entry, permalink.as_deref());
    author(xml, &entry.authors);
    categories(xml, &entry.categories);
    if let Some(comments) = entry.comments.as_deref().and_then(target::link) {
        xml.leaf("comments", &[], &comments);
    }
    enclosures(xml, entry);
    guid(xml, item, permalink.as_deref());
    xml.leaf("pubDate", &[], &item.dated().rfc822());
    if let Some(rights) = visible(entry.rights.as_ref()) {
        xml.leaf("dc:rights", &[], &plain(rights));
    }
    if let Some(source) = &entry.source {
        origin(xml, source);
    }
    for element in entry.foreign.iter().filter(|element| !is_ours(element)) {
        xml.aside(|out| foreign::write(out, element, DECLARED));
    }
    xml.close("item");
}

/// The publisher's own id. The guid of RSS says of itself what its source said, so that a reader who comes from there knows
/// every post again; any other is a permalink unless it says that it is none, so say it.
fn guid(xml: &mut Xml, item: &Item, permalink: Option<&str>) {
    let id = item.given_id();
    let is_link = || id.starts_with("http") && permalink == Some(id);
    let said = match item.is_permalink() {
        Some(IsPermaLink::Unstated) => None,
        Some(IsPermaLink::True) => Some("true"),
        Some(IsPermaLink::False) => Some("false"),
        None => Some(if is_link() { "true" } else { "false" }),
    };
    xml.leaf("guid", &[("isPermaLink", said)], id);
}

/// Title and description, at least one of them. Beside a summary the full text stands in `content:encoded`
/// alone it is the description, which every reader shows.
fn texts(xml: &mut Xml, item: &Item, entry: &Entry, permalink: Option<&str>) {
    let title = entry.title.as_ref().map(plain).filter(|title| !title.is_empty());
    let summary = visible(entry.summary.as_ref()).map(html);
    let content = entry.content.as_ref().and_then(body_html);
    if let Some(title) = &title {
        xml.leaf("title", &[], title);
    }
    if let Some(link) = permalink {
        xml.leaf("link", &[], link);
    }
    match (summary, content) {
        (Some(summary), Some(content)) => {
            xml.leaf("description", &[], &summary);
            xml.leaf("content:encoded", &[], &content);
        }
        (Some(only), None) | (None, Some(only)) => xml.leaf("description", &[], &only),
        (None, None) if title.is_none() => xml.leaf("title", &[], permalink.unwrap_or(item.given_id())),
        (None, None) => {}
    }
}

/// `author` is an e-mail address (L-11) and there is one; everybody else is a `dc:creator`. Never both.
fn author(xml: &mut Xml, authors: &[Person]) {
    if let [Person { name, email: Some(email), .. }] = authors
        && values::is_email(email)
    {
        let name = name.as_deref().map(str::trim).filter(|name| !name.is_empty() && name != email);
        let author = name.map_or_else(|| email.clone(), |name| format!("{email} ({name})"));
        return xml.leaf("author", &[], &author);
    }
    for name in authors.iter().filter_map(values::person_name) {
        xml.leaf("dc:creator", &[], name);
    }
}

fn categories(xml: &mut Xml, categories: &[Category]) {
    for category in categories.iter().filter(|category| !category.term.trim().is_empty()) {
        xml.leaf("category", &[("domain", category.scheme.as_deref())], &category.term);
    }
}

/// One enclosure. The others are `media:content`, unless the entry's own Media RSS has them.
fn enclosures(xml: &mut Xml, entry: &Entry) {
    for (at, Enclosure { url, media_type, length, .. }) in entry.enclosures.iter().enumerate() {
        let Some(href) = target::image(url) else { continue };
        let media_type = media_type.as_deref().and_then(values::media_type);
        let length = values::length(length.as_deref());
        if at == 0 {
            let media_type = media_type.unwrap_or("application/octet-stream");
            // An unknown length is written 0 (L-9).
            let length = length.unwrap_or("0");
            xml.empty(
                "enclosure",
                &[("url", Some(&href)), ("length", Some(length)), ("type", Some(media_type))],
            );
        } else if !entry.foreign.iter().any(|element| mentions(element, url)) {
            xml.empty("media:content", &[("url", Some(&href)), ("fileSize", length), ("type", media_type)]);
        }
    }
}

fn mentions(element: &Element, url: &str) -> bool {
    let inside = |node: &Node| matches!(node, Node::Element(inner) if mentions(inner, url));
    element.attributes.iter().any(|attribute| attribute.value == url) || element.children.iter().any(inside)
}

fn origin(xml: &mut Xml, source: &Source) {
    if let Some(url) = source.url().and_then(target::link) {
        let title = source.title.as_ref().map_or(Cow::Borrowed(url.as_ref()), plain);
        xml.leaf("source", &[("url", Some(&url))], &title);
    }
}

/// Foreign markup that would say again what our own elements say: feed readers take the last, or both.
fn is_ours(element: &Element) -> bool {
    match element.ns.as_str() {
        // RSS itself.
        "" => true,
        ns::SMART_FEED | ns::TOMBSTONES | ns::FEED_HISTORY => true,
        ns::ATOM => ["id", "link", "title", "content", "summary", "author"].contains(&element.name.as_str()),
        CONTENT => element.name == "encoded",
        DUBLIN_CORE => {
            ["creator", "date", "title", "description", "subject", "rights"].contains(&element.name.as_str())
        }
        _ => false,
    }
}
