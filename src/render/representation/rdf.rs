//! RSS 1.0, valid as RDF/XML (LEGACY D-1..D-7): for ordinary readers live items only, for Smart
//! Feed consumers positions and tombstones, too. RDF knows no attributes of our kind, so the links
//! of a page are properties, and elements of other vocabularies come along where they hold words
//! alone.

use super::{
    BOTH, LoneItem, Media, Negotiation, SyntaxRow, rhythm,
    shared_elements::{
        OF_TOMBSTONES, archive_mark, beyond_classic, foreign, item_position, missed, position,
        summary_and_content,
    },
};
use crate::{
    feed::stamp::Stamp,
    render::{
        channel::ShownChannel,
        document::{Audience, Document},
        namespaces as ns,
        post::{self, ItemProjection, ShownPost, ShownTombstone},
        target,
        text::ShownText,
        values::ShownSource,
        xml::{Declared, Xml},
    },
};
use everfeed_adapters::{Element, Node};
use std::borrow::Cow;

#[cfg(test)]
mod tests;

const RSS: &str = "http://purl.org/rss/1.0/";
const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const DC_TERMS: &str = "http://purl.org/dc/terms/";
/// mod_enclosure, which describes attached files in RDF.
const ENCLOSURE: &str = "http://purl.oclc.org/net/rss_2.0/enc#";
/// mod_annotation: the page on which a post is discussed.
const ANNOTATE: &str = "http://purl.org/rss/1.0/modules/annotate/";
/// The registered relations of links as properties (RFC 4287 section 4.2.7.2).
const RELATIONS: &str = "http://www.iana.org/assignments/relation/";

/// The last two are for the full audience.
const NAMESPACES: &[Declared] = &[
    ("rdf", RDF),
    ("", RSS),
    ("content", ns::CONTENT),
    ("dc", ns::DUBLIN_CORE),
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
        Audience::Full => NAMESPACES,
        Audience::Classic => NAMESPACES.split_at(NAMESPACES.len() - 2).0,
    }
}

/// The syntax.
pub(super) static ROW: SyntaxRow = SyntaxRow {
    suffix: "rdf",
    title: "RSS 1.0",
    standard: "RSS 1.0 (RDF)",
    etag: "x",
    media: Media::of("application/rdf+xml; charset=utf-8", Negotiation::Never),
    audiences: BOTH,
    is_alternate: false,
    write: document,
    item: lone_item,
};

/// Writes the document.
pub(super) fn document(document: &Document<'_>, audience: Audience) -> Vec<u8> {
    let mut xml = Xml::document_declaring(document.capacity_bytes(), declared(audience));
    let channel = ShownChannel::of(document.feed());
    xml.open("rdf:RDF", &[("xml:lang", channel.language())]);
    self::channel(&mut xml, document, channel, audience);
    for item in post::items(document, audience) {
        self::item(&mut xml, item, channel, audience);
    }
    if let Some(search) = channel.text_input()
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
pub(super) fn lone_item(lone: &LoneItem<'_>) -> Vec<u8> {
    let mut xml = Xml::fragment(1, lone.place.declared(declared(lone.audience)));
    self::item(&mut xml, lone.item, lone.channel, lone.audience);
    xml.finish_fragment()
}

/// D-1, D-3..D-6.
fn channel(xml: &mut Xml, document: &Document<'_>, channel: ShownChannel<'_>, audience: Audience) {
    let title = channel.name();
    let site = site(channel).unwrap_or(Cow::Borrowed(&document.links.about));
    let picture = channel.picture().filter(|picture| is_web(&picture.url));
    let search = channel.text_input().and_then(|search| web(search.link));
    xml.open("channel", &[("rdf:about", Some(document.own_url()))]);
    xml.leaf("title", &[], &title);
    xml.leaf("link", &[], &site);
    let description = channel.description().map(ShownText::words);
    xml.leaf("description", &[], description.as_ref().unwrap_or(&title));
    resource(xml, "image", picture.as_ref().map(|picture| &picture.url));
    xml.leaf_some("dc:language", channel.language());
    xml.leaf_some("dc:rights", channel.rights().map(ShownText::words));
    one_of(xml, "dc:creator", channel.authors().names());
    one_of(xml, "dc:contributor", channel.contributors().names());
    one_of(xml, "dc:subject", channel.tags().terms());
    let last_t = channel.feed.last_t;
    if last_t != Stamp::ZERO {
        xml.leaf("dc:date", &[], &last_t.rfc3339());
    }
    rhythm::elements(xml, document.ttl_mins);
    resource(xml, "iana:next", document.next(audience));
    for (relation, url) in document.archive_links() {
        resource(xml, &format!("iana:{relation}"), Some(url));
    }
    archive_mark(xml, document);
    position(xml, document, audience);
    let elements = channel.foreign_elements(|_| true);
    foreign(xml, elements.filter(|it| is_words(it)), declared(audience));
    contents(xml, document);
    resource(xml, "textinput", search);
    xml.close("channel");
    if let Some(picture) = picture {
        let link = picture.link().filter(|link| is_web(link));
        xml.open("image", &[("rdf:about", Some(&picture.url))]);
        xml.leaf("title", &[], picture.title().unwrap_or(&title));
        xml.leaf("url", &[], &picture.url);
        xml.leaf("link", &[], &link.unwrap_or(site));
        xml.close("image");
    }
}

/// The items, in their order (D-5: as everybody writes and reads it).
fn contents(xml: &mut Xml, document: &Document<'_>) {
    xml.open("items", &[]);
    xml.open("rdf:Seq", &[]);
    for post in post::items(document, Audience::Classic).filter_map(ItemProjection::post) {
        resource(xml, "rdf:li", Some(&post.item.iri));
    }
    xml.close("rdf:Seq");
    xml.close("items");
}

fn item(xml: &mut Xml, item: ItemProjection<'_>, channel: ShownChannel<'_>, audience: Audience) {
    match item {
        ItemProjection::Post(post) => live(xml, post, channel, audience),
        ItemProjection::Tombstone(tombstone) => gone(xml, tombstone, audience),
    }
}

fn live(xml: &mut Xml, post: ShownPost<'_>, channel: ShownChannel<'_>, audience: Audience) {
    let item = post.item;
    let attributes = [
        ("rdf:about", Some(&*item.iri)),
        ("xml:lang", post.language_attribute()),
    ];
    xml.open("item", &attributes);
    texts(xml, post, channel);
    one_of(xml, "dc:creator", post.authors().names());
    one_of(xml, "dc:contributor", post.contributors().names());
    one_of(xml, "dc:subject", post.tags().terms());
    xml.leaf("dc:date", &[], &item.dated().rfc3339());
    xml.leaf_some("dcterms:issued", post.published());
    xml.leaf("dcterms:modified", &[], &item.updated().rfc3339());
    xml.leaf_some("dc:rights", post.rights().map(ShownText::words));
    xml.leaf_some("dc:source", post.source().and_then(ShownSource::url));
    resource(xml, "annotate:reference", post.comments());
    for file in post.attached() {
        let attributes = [
            ("rdf:resource", Some(&*file.href)),
            ("enc:type", file.media_type()),
            ("enc:length", file.length()),
        ];
        xml.empty("enc:enclosure", &attributes);
    }
    foreign(xml, post.foreign_elements(is_said), declared(audience));
    item_position(xml, post, audience);
    xml.close("item");
}

/// Title and link, both demanded; a description where there is one, and the full text (D-1). A post
/// without a title has its first words there, else its link, else its id.
fn texts(xml: &mut Xml, post: ShownPost<'_>, channel: ShownChannel<'_>) {
    let iri = &post.item.iri;
    // The page of a post, else what is nearest to it.
    let link = post.addresses().find_map(web);
    let title = post
        .title()
        .or_else(|| post.lead().map(Cow::Owned))
        .or_else(|| link.clone())
        .unwrap_or(Cow::Borrowed(iri));
    xml.leaf("title", &[], &title);
    // It is demanded: where nobody names a page at all, the id is better than nothing, unless
    // nobody should follow it.
    let link = link.or_else(|| site(channel)).or_else(|| target::link(iri));
    xml.leaf("link", &[], &link.unwrap_or_default());
    summary_and_content(xml, post.summary(), post.content());
}

/// The page of a feed by what it says of itself.
fn site(channel: ShownChannel<'_>) -> Option<Cow<'_, str>> {
    channel.site().filter(|site| is_web(site))
}

/// A tombstone, by the name that RFC 6721 gives it; its `ref` and `when` are properties, as RDF
/// wants them.
fn gone(xml: &mut Xml, tombstone: ShownTombstone<'_>, audience: Audience) {
    let item = tombstone.item;
    let mut attributes = beyond_classic(audience, OF_TOMBSTONES).to_vec();
    attributes.push(("rdf:about", Some(&*item.iri)));
    xml.open("at:deleted-entry", &attributes);
    xml.leaf("at:comment", &[], tombstone.reason.code());
    xml.leaf("fo:id", &[], &item.id.to_string());
    xml.leaf("fo:edited", &[], &item.modified.rfc3339());
    missed(xml, tombstone);
    xml.leaf_some("dc:source", tombstone.source().and_then(ShownSource::url));
    xml.close("at:deleted-entry");
}

/// A property whose value is a URL, where there is one.
fn resource(xml: &mut Xml, name: &str, url: Option<impl AsRef<str>>) {
    if let Some(url) = url {
        xml.empty(name, &[("rdf:resource", Some(url.as_ref()))]);
    }
}

/// All of them in one element: none is repeated here (D-3).
fn one_of<'a>(xml: &mut Xml, name: &str, values: impl Iterator<Item = &'a str>) {
    let values: Vec<_> = values.collect();
    if !values.is_empty() {
        xml.leaf(name, &[], &values.join("; "));
    }
}

/// A URL of a scheme that RSS 1.0 takes (D-4).
fn web(url: &str) -> Option<Cow<'_, str>> {
    target::link(url).filter(|url| is_web(url))
}

fn is_web(url: &str) -> bool {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    ["http", "https", "ftp"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
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

/// True for elements that say again what is written here, or that are no property of words.
fn is_said(element: &Element) -> bool {
    let names = match element.ns.as_str() {
        ns::ATOM | RSS => return true,
        ns::CONTENT => "encoded",
        ns::DUBLIN_CORE => "creator contributor subject date rights source title description",
        DC_TERMS => "issued modified",
        _ => "",
    };
    names.split(' ').any(|name| name == element.name) || !is_words(element)
}
