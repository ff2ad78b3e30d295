//! RSS 1.0, valid as RDF/XML (LEGACY D-1..D-7): for ordinary readers live items only, for Smart
//! Feed consumers positions and tombstones, too. RDF knows no attributes of our kind, so the links
//! of a page are properties, and elements of other vocabularies come along where they hold words
//! alone.

use super::rhythm;
use crate::{
    feed::{
        item::{Content, Item, Reason},
        record::FeedRecord,
        stamp::Stamp,
    },
    render::{
        channel as own,
        document::{Audience, Document, ItemPlace},
        foreign, identity, namespaces as ns, target,
        text::{self, body_html, html, plain, visible},
        values,
        xml::{Declared, Xml},
    },
};
use everfeed_adapters::{Category, Element, Enclosure, Entry, Node, Person, Source};
use std::borrow::Cow;

#[cfg(test)]
mod tests;

const RSS: &str = "http://purl.org/rss/1.0/";
const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const CONTENT: &str = "http://purl.org/rss/1.0/modules/content/";
const DUBLIN_CORE: &str = "http://purl.org/dc/elements/1.1/";
const DC_TERMS: &str = "http://purl.org/dc/terms/";
/// mod_enclosure, which describes attached files in RDF.
const ENCLOSURE: &str = "http://purl.oclc.org/net/rss_2.0/enc#";
/// mod_annotation: the page on which a post is discussed.
const ANNOTATE: &str = "http://purl.org/rss/1.0/modules/annotate/";
/// The registered relations of links as properties (RFC 4287 section 4.2.7.2).
const RELATIONS: &str = "http://www.iana.org/assignments/relation/";

const CLASSIC: &[Declared] = &[
    ("rdf", RDF),
    ("", RSS),
    ("content", CONTENT),
    ("dc", DUBLIN_CORE),
    ("dcterms", DC_TERMS),
    ("enc", ENCLOSURE),
    ("annotate", ANNOTATE),
    ("sy", ns::SYNDICATION),
    ("iana", RELATIONS),
];

const FULL: &[Declared] = &[
    ("rdf", RDF),
    ("", RSS),
    ("content", CONTENT),
    ("dc", DUBLIN_CORE),
    ("dcterms", DC_TERMS),
    ("enc", ENCLOSURE),
    ("annotate", ANNOTATE),
    ("sy", ns::SYNDICATION),
    ("iana", RELATIONS),
    ("fo", ns::SMART_FEED),
    ("at", ns::TOMBSTONES),
];

const fn declared(audience: Audience) -> &'static [Declared] {
    match audience {
        Audience::Full => FULL,
        Audience::Classic => CLASSIC,
    }
}

/// Writes the document.
pub(super) fn document(document: &Document<'_>, audience: Audience) -> Vec<u8> {
    let mut xml = Xml::document_declaring(document.capacity_bytes(), declared(audience));
    let language = document
        .feed()
        .metadata
        .language
        .as_deref()
        .and_then(values::language);
    xml.open("rdf:RDF", &[("xml:lang", language)]);
    channel(&mut xml, document, audience);
    for item in &document.page.items {
        self::item(&mut xml, item, document.feed(), audience);
    }
    if let Some(search) = own::text_input(&document.feed().metadata)
        && let Some(link) = web(search.link)
    {
        xml.open("textinput", &[("rdf:about", Some(&link))]);
        xml.leaf("title", &[], search.title);
        xml.leaf("description", &[], search.description);
        xml.leaf("name", &[], search.name);
        xml.leaf("link", &[], &link);
        xml.close("textinput");
    }
    xml.close("rdf:RDF");
    xml.finish()
}

/// Writes one item. It stands below the root of a page.
pub(super) fn lone_item(
    item: &Item,
    feed: &FeedRecord,
    audience: Audience,
    place: ItemPlace,
) -> Option<Vec<u8>> {
    let declared = match place {
        ItemPlace::Page => &[],
        ItemPlace::Alone => declared(audience),
    };
    let mut xml = Xml::fragment(1, declared);
    self::item(&mut xml, item, feed, audience);
    xml.finish_fragment()
}

/// D-1, D-3..D-6.
fn channel(xml: &mut Xml, document: &Document<'_>, audience: Audience) {
    let links = document.links;
    let feed = document.feed();
    let metadata = &feed.metadata;
    let title = identity::name(feed);
    let site = site(feed).unwrap_or(Cow::Borrowed(&links.about));
    let picture = metadata.picture().and_then(web);
    xml.open("channel", &[("rdf:about", Some(document.own_url()))]);
    xml.leaf("title", &[], &title);
    xml.leaf("link", &[], &site);
    let description = visible(metadata.description.as_ref()).map_or(Cow::Borrowed(&*title), plain);
    xml.leaf("description", &[], &description);
    if let Some(picture) = &picture {
        xml.empty("image", &[("rdf:resource", Some(picture))]);
    }
    if let Some(language) = metadata.language.as_deref().and_then(values::language) {
        xml.leaf("dc:language", &[], language);
    }
    if let Some(rights) = visible(metadata.rights.as_ref()) {
        xml.leaf("dc:rights", &[], &plain(rights));
    }
    people(xml, "dc:creator", &metadata.authors);
    people(xml, "dc:contributor", &metadata.contributors);
    subjects(xml, &metadata.categories);
    if feed.last_t != Stamp::ZERO {
        xml.leaf("dc:date", &[], &feed.last_t.rfc3339());
    }
    rhythm::elements(xml, document.ttl_mins);
    if let Some(next) = document.next(audience) {
        xml.empty("iana:next", &[("rdf:resource", Some(next))]);
    }
    for (relation, url) in document.archive_links() {
        xml.empty(&format!("iana:{relation}"), &[("rdf:resource", Some(url))]);
    }
    if document.is_archive() {
        xml.empty("fh:archive", &[("xmlns:fh", Some(ns::FEED_HISTORY))]);
    }
    if audience == Audience::Full {
        if let Some(total) = document.page.total {
            xml.leaf("fo:total", &[], &total.to_string());
        }
        if let Some(prev) = document.prev_cursor {
            xml.leaf("fo:prev_cursor", &[], prev);
        }
        xml.leaf("fo:last_cursor", &[], &document.page.last_cursor);
    }
    for element in own::foreign_elements(metadata, |_| true).filter(|element| is_words(element)) {
        xml.aside(|out| foreign::write(out, element, declared(audience)));
    }
    contents(xml, document);
    if let Some(link) = own::text_input(metadata).and_then(|search| web(search.link)) {
        xml.empty("textinput", &[("rdf:resource", Some(&link))]);
    }
    xml.close("channel");
    if let Some(picture) = &picture {
        let image = metadata.image.as_ref();
        let own_title = image.and_then(|image| image.title.as_deref());
        let own_link = image.and_then(|image| web(image.link.as_deref()?));
        xml.open("image", &[("rdf:about", Some(picture))]);
        xml.leaf("title", &[], own_title.unwrap_or(&title));
        xml.leaf("url", &[], picture);
        xml.leaf("link", &[], own_link.as_deref().unwrap_or(&site));
        xml.close("image");
    }
}

/// The items, in their order (D-5: as everybody writes and reads it).
fn contents(xml: &mut Xml, document: &Document<'_>) {
    xml.open("items", &[]);
    xml.open("rdf:Seq", &[]);
    for item in document.page.items.iter().filter(|item| !item.is_gone()) {
        xml.empty("rdf:li", &[("rdf:resource", Some(&item.iri))]);
    }
    xml.close("rdf:Seq");
    xml.close("items");
}

fn item(xml: &mut Xml, item: &Item, feed: &FeedRecord, audience: Audience) {
    match &item.content {
        Content::Live(entry) => live(xml, item, entry, feed, audience),
        Content::Gone {
            reason,
            first_missing,
            last_seen,
        } if audience == Audience::Full => {
            gone(
                xml,
                item,
                *reason,
                [
                    ("fo:first_missing", *first_missing),
                    ("fo:last_seen", *last_seen),
                ],
            );
        }
        Content::Gone { .. } => {}
    }
}

fn live(xml: &mut Xml, item: &Item, entry: &Entry, feed: &FeedRecord, audience: Audience) {
    let language = entry
        .language
        .as_deref()
        .and_then(values::language_attribute);
    xml.open(
        "item",
        &[("rdf:about", Some(&item.iri)), ("xml:lang", language)],
    );
    texts(xml, item, entry, feed);
    people(xml, "dc:creator", &entry.authors);
    people(xml, "dc:contributor", &entry.contributors);
    subjects(xml, &entry.categories);
    xml.leaf("dc:date", &[], &item.dated().rfc3339());
    if let Some(published) = item.published() {
        xml.leaf("dcterms:issued", &[], &published.rfc3339());
    }
    xml.leaf("dcterms:modified", &[], &item.updated().rfc3339());
    if let Some(rights) = visible(entry.rights.as_ref()) {
        xml.leaf("dc:rights", &[], &plain(rights));
    }
    if let Some(source) = entry
        .source
        .as_deref()
        .and_then(|source| target::link(source.url()?))
    {
        xml.leaf("dc:source", &[], &source);
    }
    if let Some(comments) = entry.comments.as_deref().and_then(target::link) {
        xml.empty("annotate:reference", &[("rdf:resource", Some(&comments))]);
    }
    for file in entry.attached() {
        let Enclosure {
            url,
            media_type,
            length,
            ..
        } = &*file;
        let Some(href) = target::image(url) else {
            continue;
        };
        xml.empty(
            "enc:enclosure",
            &[
                ("rdf:resource", Some(&href)),
                (
                    "enc:type",
                    media_type.as_deref().and_then(values::media_type),
                ),
                ("enc:length", values::length(length.as_deref())),
            ],
        );
    }
    for element in entry
        .foreign
        .iter()
        .filter(|element| is_words(element) && !is_ours(element))
    {
        xml.aside(|out| foreign::write(out, element, declared(audience)));
    }
    if audience == Audience::Full {
        xml.leaf("fo:id", &[], &item.id.to_string());
        xml.leaf("fo:edited", &[], &item.modified.rfc3339());
    }
    xml.close("item");
}

/// Title and link, both demanded; a description where there is one, and the full text (D-1). A post
/// without a title has its first words there, else its link, else its id.
fn texts(xml: &mut Xml, item: &Item, entry: &Entry, feed: &FeedRecord) {
    let link = link(item, entry);
    let title = text::title(entry)
        .or_else(|| text::lead(entry).map(Cow::Owned))
        .or_else(|| link.clone())
        .unwrap_or(Cow::Borrowed(&item.iri));
    xml.leaf("title", &[], &title);
    // It is demanded: where nobody names a page at all, the id is better than nothing, unless
    // nobody should follow it.
    let link = link
        .or_else(|| site(feed))
        .or_else(|| target::link(&item.iri));
    xml.leaf("link", &[], &link.unwrap_or_default());
    let summary = visible(entry.summary.as_ref());
    let content = entry.content.as_ref().and_then(body_html);
    match (summary.map(html), content) {
        (Some(summary), Some(content)) => {
            xml.leaf("description", &[], &summary);
            xml.leaf("content:encoded", &[], &content);
        }
        (Some(only), None) | (None, Some(only)) => xml.leaf("description", &[], &only),
        (None, None) => {}
    }
}

/// The page of a post, else what is nearest to it: an id that is an address, an attached file, the
/// page of its source.
fn link<'a>(item: &'a Item, entry: &'a Entry) -> Option<Cow<'a, str>> {
    let alternates = target::alternates(entry).map(|link| link.href.as_str());
    let files = entry.enclosures.iter().map(|file| file.url.as_str());
    let source = entry.source.as_deref().and_then(Source::page);
    alternates
        .chain([item.iri.as_str()])
        .chain(files)
        .chain(source)
        .find_map(web)
}

/// The page of a feed by what it says of itself.
fn site(feed: &FeedRecord) -> Option<Cow<'_, str>> {
    feed.metadata.link("alternate").and_then(web)
}

/// A tombstone, by the name that RFC 6721 gives it; its `ref` and `when` are properties, as RDF
/// wants them.
fn gone(xml: &mut Xml, item: &Item, reason: Reason, missed: [(&'static str, Option<Stamp>); 2]) {
    xml.open("at:deleted-entry", &[("rdf:about", Some(&item.iri))]);
    xml.leaf("at:comment", &[], reason.code());
    xml.leaf("fo:id", &[], &item.id.to_string());
    xml.leaf("fo:edited", &[], &item.modified.rfc3339());
    for (name, at) in missed {
        at.iter().for_each(|at| xml.leaf(name, &[], &at.rfc3339()));
    }
    if let Some(source) = item
        .ended_source()
        .and_then(|source| target::link(source.url()?))
    {
        xml.leaf("dc:source", &[], &source);
    }
    xml.close("at:deleted-entry");
}

/// All of them in one element: none is repeated here (D-3).
fn people(xml: &mut Xml, name: &str, people: &[Person]) {
    one_of(xml, name, people.iter().filter_map(values::person_name));
}

fn subjects(xml: &mut Xml, categories: &[Category]) {
    one_of(
        xml,
        "dc:subject",
        categories
            .iter()
            .map(|it| it.term.trim())
            .filter(|term| !term.is_empty()),
    );
}

fn one_of<'a>(xml: &mut Xml, name: &str, values: impl Iterator<Item = &'a str>) {
    let values: Vec<_> = values.collect();
    if !values.is_empty() {
        xml.leaf(name, &[], &values.join("; "));
    }
}

/// A URL of a scheme that RSS 1.0 takes (D-4).
fn web(url: &str) -> Option<Cow<'_, str>> {
    let is_web = |url: &str| {
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        ["http", "https", "ftp"]
            .iter()
            .any(|known| scheme.eq_ignore_ascii_case(known))
    };
    target::link(url).filter(|url| is_web(url))
}

/// True for an element that is a property with a literal in RDF, too: of a vocabulary, without
/// attributes, words inside.
fn is_words(element: &Element) -> bool {
    !element.ns.is_empty()
        && element.ns != RDF
        && element.attributes.is_empty()
        && element
            .children
            .iter()
            .all(|node| matches!(node, Node::Text(_)))
}

/// Elements that are written here.
fn is_ours(element: &Element) -> bool {
    match element.ns.as_str() {
        ns::SMART_FEED | ns::TOMBSTONES | ns::FEED_HISTORY | ns::ATOM | RSS => true,
        CONTENT => element.name == "encoded",
        DUBLIN_CORE => [
            "creator",
            "contributor",
            "subject",
            "date",
            "rights",
            "source",
            "title",
            "description",
        ]
        .contains(&element.name.as_str()),
        DC_TERMS => ["issued", "modified"].contains(&element.name.as_str()),
        ns::PUBLISHING => element.name == "edited",
        _ => false,
    }
}
