//! RSS 2.0: for ordinary readers live items, no cursors, no tombstones, which it cannot express
//! for Smart Feed consumers both, by the `fo:` and `at:` elements of the Atom form. A
//! tombstone is no item there: readers that know nothing of it show nothing.

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
        foreign,
        generator::GENERATOR,
        identity, namespaces as ns, target,
        text::{self, body_html, html, plain, visible},
        values,
        xml::{Declared, Xml},
    },
};
use everfeed_adapters::{
    Category, Element, Enclosure, Entry, Image, IsPermaLink, Link, Metadata, Node, Person, Rhythm,
    Source, Text, TextKind,
};
use std::{borrow::Cow, collections::HashSet};

#[cfg(test)]
mod tests;

const MEDIA_TYPE: &str = "application/rss+xml";

const CONTENT: &str = "http://purl.org/rss/1.0/modules/content/";
const DUBLIN_CORE: &str = "http://purl.org/dc/elements/1.1/";
const MEDIA: &str = "http://search.yahoo.com/mrss/";

const CLASSIC: &[Declared] = &[
    ("atom", ns::ATOM),
    ("content", CONTENT),
    ("dc", DUBLIN_CORE),
    ("media", MEDIA),
    ("sy", ns::SYNDICATION),
];

const FULL: &[Declared] = &[
    ("atom", ns::ATOM),
    ("content", CONTENT),
    ("dc", DUBLIN_CORE),
    ("media", MEDIA),
    ("sy", ns::SYNDICATION),
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
    xml.open("rss", &[("version", Some("2.0"))]);
    xml.open("channel", &[]);
    channel(&mut xml, document, audience);
    for item in &document.page.items {
        self::item(&mut xml, item, audience);
    }
    xml.close("channel");
    xml.close("rss");
    xml.finish()
}

/// Writes one item. It stands below the channel of a page.
pub(super) fn lone_item(
    item: &Item,
    _: &FeedRecord,
    audience: Audience,
    place: ItemPlace,
) -> Option<Vec<u8>> {
    let declared = match place {
        ItemPlace::Page => &[],
        ItemPlace::Alone => declared(audience),
    };
    let mut xml = Xml::fragment(2, declared);
    self::item(&mut xml, item, audience);
    xml.finish_fragment()
}

///
fn channel(xml: &mut Xml, document: &Document<'_>, audience: Audience) {
    let links = document.links;
    let feed = document.feed();
    let metadata = &feed.metadata;
    let title = identity::name(feed);
    // Every channel needs a site; ours has at least a page about the feed.
    let site = metadata
        .link("alternate")
        .and_then(target::link)
        .unwrap_or(Cow::Borrowed(&links.about));
    xml.leaf("title", &[], &title);
    xml.leaf("link", &[], &site);
    let description =
        visible(metadata.description.as_ref()).map_or(Cow::Borrowed(title.as_ref()), description);
    xml.leaf("description", &[], &description);
    if let Some(language) = metadata.language.as_deref().and_then(values::language) {
        xml.leaf("language", &[], language);
    }
    if let Some(rights) = visible(metadata.rights.as_ref()) {
        xml.leaf("copyright", &[], &plain(rights));
    }
    author(xml, "managingEditor", &metadata.authors);
    contributors(xml, &metadata.contributors);
    if feed.last_t != Stamp::ZERO {
        xml.leaf("lastBuildDate", &[], &feed.last_t.rfc822());
    }
    categories(xml, &metadata.categories);
    xml.leaf(
        "generator",
        &[],
        &format!("{} {}", GENERATOR.name, GENERATOR.version),
    );
    if let Some(ttl) = document.ttl_mins {
        xml.leaf("ttl", &[], &ttl.to_string());
    }
    rhythm::elements(xml, document.ttl_mins);
    skipped(xml, &metadata.rhythm);
    picture(xml, metadata, &title, &site);
    let own_type = Some(MEDIA_TYPE);
    let own_url = Some(document.own_url());
    xml.empty(
        "atom:link",
        &[("rel", Some("self")), ("type", own_type), ("href", own_url)],
    );
    if let Some(hub) = document.hub() {
        xml.empty("atom:link", &[("rel", Some("hub")), ("href", Some(hub))]);
    }
    for (relation, url) in document.archive_links() {
        xml.empty(
            "atom:link",
            &[
                ("rel", Some(relation)),
                ("type", own_type),
                ("href", Some(url)),
            ],
        );
    }
    if document.is_archive() {
        xml.empty("fh:archive", &[("xmlns:fh", Some(ns::FEED_HISTORY))]);
    }
    if let Some(next) = document.next(audience) {
        xml.empty(
            "atom:link",
            &[
                ("rel", Some("next")),
                ("type", own_type),
                ("href", Some(next)),
            ],
        );
    }
    let icon = metadata
        .icon
        .as_deref()
        .filter(|icon| metadata.picture() != Some(*icon));
    if let Some(icon) = icon.and_then(target::image) {
        xml.leaf("atom:icon", &[], &icon);
    }
    for link in own::links(metadata, &HashSet::from(["text/html", MEDIA_TYPE])) {
        further_link(xml, link);
    }
    own::elements(metadata, declared(audience), is_of_channel, |markup| {
        xml.aside(|out| out.push_str(markup));
    });
    if audience == Audience::Full {
        position(xml, document);
    }
}

/// Position of the page, as Atom has it (SF-56, SF-57, SF-83, SF-85).
fn position(xml: &mut Xml, document: &Document<'_>) {
    if let Some(total) = document.page.total {
        xml.leaf("fo:total", &[], &total.to_string());
    }
    if let Some(prev) = document.prev_cursor {
        xml.leaf("fo:prev_cursor", &[], prev);
    }
    xml.leaf("fo:last_cursor", &[], &document.page.last_cursor);
}

/// HTML as it came in; anything else in plain words.
fn description(text: &Text) -> Cow<'_, str> {
    match text.kind {
        TextKind::Html => Cow::Borrowed(text.value.as_str()),
        TextKind::Plain | TextKind::Xhtml | TextKind::Base64 => plain(text),
    }
}

/// Hours and days (GMT) at which the publisher does not want to be asked. They hold for what is
/// made of his feed as well.
fn skipped(xml: &mut Xml, rhythm: &Rhythm) {
    const DAYS: [&str; 7] = [
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
    ];
    if !rhythm.skip_hours.is_empty() {
        xml.open("skipHours", &[]);
        rhythm
            .skip_hours
            .iter()
            .for_each(|hour| xml.leaf("hour", &[], &hour.to_string()));
        xml.close("skipHours");
    }
    let mut days = rhythm
        .skip_days
        .iter()
        .filter_map(|day| DAYS.get(usize::from(*day)))
        .peekable();
    if days.peek().is_some() {
        xml.open("skipDays", &[]);
        days.for_each(|day| xml.leaf("day", &[], day));
        xml.close("skipDays");
    }
}

/// The picture of the channel, which leads to its site unless it says something else.
fn picture(xml: &mut Xml, metadata: &Metadata, title: &str, site: &str) {
    let Some(url) = metadata.picture().and_then(target::image) else {
        return;
    };
    let image = metadata.image.as_ref();
    let own =
        |field: fn(&Image) -> &Option<String>| image.and_then(|image| field(image).as_deref());
    let link = own(|image| &image.link).and_then(target::link);
    xml.open("image", &[]);
    xml.leaf("url", &[], &url);
    xml.leaf("title", &[], own(|image| &image.title).unwrap_or(title));
    xml.leaf("link", &[], link.as_deref().unwrap_or(site));
    let pixels = [
        ("width", own(|image| &image.width)),
        ("height", own(|image| &image.height)),
    ];
    for (name, pixels) in pixels {
        if let Some(pixels) = values::length(pixels) {
            xml.leaf(name, &[], pixels);
        }
    }
    if let Some(description) = own(|image| &image.description) {
        xml.leaf("description", &[], description);
    }
    xml.close("image");
}

/// A link that RSS has no element for.
fn further_link(xml: &mut Xml, link: &Link) {
    let Some(href) = target::link(&link.href) else {
        return;
    };
    xml.empty(
        "atom:link",
        &[
            ("rel", Some(link.rel.trim())),
            (
                "type",
                link.media_type.as_deref().and_then(values::media_type),
            ),
            (
                "hreflang",
                link.hreflang.as_deref().and_then(values::language),
            ),
            ("title", link.title.as_deref()),
            ("href", Some(&href)),
        ],
    );
}

/// True for the elements of a channel that are written here.
fn is_of_channel(name: &str) -> bool {
    const NAMES: [&str; 14] = [
        "title",
        "link",
        "description",
        "language",
        "copyright",
        "managingeditor",
        "author",
        "pubdate",
        "lastbuilddate",
        "category",
        "generator",
        "image",
        "skiphours",
        "skipdays",
    ];
    NAMES.contains(&name)
}

/// A function of the item alone.
fn item(xml: &mut Xml, item: &Item, audience: Audience) {
    match &item.content {
        Content::Live(entry) => live(xml, item, entry, audience),
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

/// A tombstone (H-30). `ref` is the guid, by which readers of RSS know a post.
fn gone(xml: &mut Xml, item: &Item, reason: Reason, missed: [(&'static str, Option<Stamp>); 2]) {
    let when = item.modified.rfc3339();
    xml.open(
        "at:deleted-entry",
        &[("ref", Some(item.given_id())), ("when", Some(&when))],
    );
    xml.leaf("at:comment", &[], reason.code());
    xml.leaf("fo:id", &[], &item.id.to_string());
    for (name, at) in missed {
        at.iter().for_each(|at| xml.leaf(name, &[], &at.rfc3339()));
    }
    if let Some(source) = item.ended_source() {
        origin(xml, source);
    }
    xml.close("at:deleted-entry");
}

/// R-2..R-9.
fn live(xml: &mut Xml, item: &Item, entry: &Entry, audience: Audience) {
    xml.open("item", &[]);
    let permalink = target::permalink(entry);
    texts(xml, item, entry, permalink.as_deref());
    author(xml, "author", &entry.authors);
    contributors(xml, &entry.contributors);
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
        xml.aside(|out| foreign::write(out, element, declared(audience)));
    }
    if audience == Audience::Full {
        xml.leaf("fo:id", &[], &item.id.to_string());
        xml.leaf("fo:edited", &[], &item.modified.rfc3339());
    }
    xml.close("item");
}

/// The publisher's own id. The guid of RSS says of itself what its source said, so that a reader
/// who comes from there knows the post again; what is no web address says that it is no permalink
/// or readers make an address of it.
fn guid(xml: &mut Xml, item: &Item, permalink: Option<&str>) {
    let id = item.given_id();
    let said = match item.is_permalink() {
        Some(IsPermaLink::False) => Some("false"),
        // A link that nobody should follow is none.
        Some(_) if target::web(id).is_none() => Some("false"),
        Some(IsPermaLink::Unstated) => None,
        Some(IsPermaLink::True) => Some("true"),
        None if target::web(id).is_some() && permalink == Some(id) => Some("true"),
        None => Some("false"),
    };
    xml.leaf("guid", &[("isPermaLink", said)], id);
}

/// Title and description, at least one of them: where there is neither, a link or at last the
/// id is the title. Beside a summary the full text stands in `content:encoded`; alone it is
/// the description, which every reader shows.
fn texts(xml: &mut Xml, item: &Item, entry: &Entry, permalink: Option<&str>) {
    let title = text::title(entry);
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
        (None, None) if title.is_none() => {
            let file = || {
                entry
                    .enclosures
                    .iter()
                    .find_map(|file| target::image(&file.url))
            };
            let link = permalink.map(Cow::Borrowed).or_else(file);
            xml.leaf("title", &[], link.as_deref().unwrap_or(item.given_id()));
        }
        (None, None) => {}
    }
}

/// `author` is an e-mail address (L-11) and there is one; everybody else is a `dc:creator`. Never
/// both. The author of a channel is its `managingEditor`.
fn author(xml: &mut Xml, element: &str, authors: &[Person]) {
    if let [
        Person {
            name,
            email: Some(email),
            ..
        },
    ] = authors
        && values::is_email(email)
    {
        let name = name
            .as_deref()
            .map(str::trim)
            .filter(|name| !name.is_empty() && name != email);
        let author = name.map_or_else(|| email.clone(), |name| format!("{email} ({name})"));
        return xml.leaf(element, &[], &author);
    }
    for name in authors.iter().filter_map(values::person_name) {
        xml.leaf("dc:creator", &[], name);
    }
}

fn contributors(xml: &mut Xml, contributors: &[Person]) {
    for name in contributors.iter().filter_map(values::person_name) {
        xml.leaf("dc:contributor", &[], name);
    }
}

fn categories(xml: &mut Xml, categories: &[Category]) {
    for category in categories
        .iter()
        .filter(|category| !category.term.trim().is_empty())
    {
        xml.leaf(
            "category",
            &[("domain", category.scheme.as_deref())],
            &category.term,
        );
    }
}

/// One enclosure. The others are `media:content`, unless the entry's own Media RSS has them.
fn enclosures(xml: &mut Xml, entry: &Entry) {
    let shown = entry
        .attached()
        .filter_map(|file| Some((target::image(&file.url)?.into_owned(), file)));
    for (at, (href, file)) in shown.enumerate() {
        let Enclosure {
            url,
            media_type,
            length,
            ..
        } = &*file;
        let media_type = media_type.as_deref().and_then(values::media_type);
        let length = values::length(length.as_deref());
        if at == 0 {
            let media_type = media_type.unwrap_or("application/octet-stream");
            // An unknown length is written 0 (L-9).
            let length = length.unwrap_or("0");
            xml.empty(
                "enclosure",
                &[
                    ("url", Some(&href)),
                    ("length", Some(length)),
                    ("type", Some(media_type)),
                ],
            );
        } else if !entry.foreign.iter().any(|element| mentions(element, url)) {
            xml.empty(
                "media:content",
                &[
                    ("url", Some(&href)),
                    ("fileSize", length),
                    ("type", media_type),
                ],
            );
        }
    }
}

/// True for Media RSS that has the file as such: that it is somebody's thumbnail says something
/// else.
fn mentions(element: &Element, url: &str) -> bool {
    let inside = |node: &Node| matches!(node, Node::Element(inner) if mentions(inner, url));
    let is_file = || {
        element
            .attributes
            .iter()
            .any(|attribute| attribute.name == "url" && attribute.value == url)
    };
    (element.name == "content" && is_file()) || element.children.iter().any(inside)
}

fn origin(xml: &mut Xml, source: &Source) {
    if let Some(url) = source.url().and_then(target::link) {
        let title = source
            .title
            .as_ref()
            .map_or(Cow::Borrowed(url.as_ref()), plain);
        xml.leaf("source", &[("url", Some(&url))], &title);
    }
}

/// True for the elements of an item that are written here.
fn is_of_item(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "title",
        "link",
        "description",
        "author",
        "category",
        "comments",
        "enclosure",
        "guid",
        "pubdate",
        "source",
        "item",
        "entry",
    ];
    NAMES.contains(&name)
}

/// Foreign markup that would say again what our own elements say: feed readers take the last, or
/// both.
fn is_ours(element: &Element) -> bool {
    match element.ns.as_str() {
        "" => is_of_item(&element.name.to_ascii_lowercase()),
        ns::SMART_FEED | ns::TOMBSTONES | ns::FEED_HISTORY => true,
        ns::PUBLISHING => element.name == "edited",
        ns::ATOM => {
            ["id", "link", "title", "content", "summary", "author"].contains(&element.name.as_str())
        }
        CONTENT => element.name == "encoded",
        DUBLIN_CORE => [
            "creator",
            "date",
            "title",
            "description",
            "subject",
            "rights",
        ]
        .contains(&element.name.as_str()),
        _ => false,
    }
}
