//! RSS 2.0: for ordinary readers live items, no cursors, no tombstones, which it cannot express
//! (R-8); for Smart Feed consumers both, by the `fo:` and `at:` elements of the Atom form. A
//! tombstone is no item there: readers that know nothing of it show nothing.

use super::{
    BOTH, LoneItem, Media, Negotiation, SyntaxRow, rhythm,
    shared_elements::{
        OF_TOMBSTONES, archive_mark, beyond_classic, foreign, item_position, link, missed,
        own_links, position, summary_and_content,
    },
};
use crate::{
    feed::{item::Item, stamp::Stamp},
    render::{
        channel::ShownChannel,
        document::{Audience, Document},
        generator::GENERATOR,
        namespaces as ns,
        people::{self, People},
        post::{self, ItemProjection, ShownPost, ShownTombstone},
        target,
        text::ShownText,
        values::{ShownLink, ShownSource, Tags},
        xml::{Declared, Xml},
    },
};
use everfeed_adapters::{Element, IsPermaLink, TextKind};
use std::{borrow::Cow, collections::HashSet};

#[cfg(test)]
mod tests;

const MEDIA_TYPE: &str = "application/rss+xml";

/// The last two are for the full audience.
const NAMESPACES: &[Declared] = &[
    ("atom", ns::ATOM),
    ("content", ns::CONTENT),
    ("dc", ns::DUBLIN_CORE),
    ("media", ns::MEDIA),
    ("sy", ns::SYNDICATION),
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
    suffix: "rss",
    title: "RSS",
    standard: "RSS 2.0",
    etag: "r",
    media: Media::of("application/rss+xml; charset=utf-8", Negotiation::Never),
    audiences: BOTH,
    is_alternate: true,
    write: document,
    item: lone_item,
};

/// Writes the document.
pub(super) fn document(document: &Document<'_>, audience: Audience) -> Vec<u8> {
    let mut xml = Xml::document_declaring(document.capacity_bytes(), declared(audience));
    xml.open("rss", &[("version", Some("2.0"))]);
    xml.open("channel", &[]);
    channel(&mut xml, document, audience);
    for item in post::items(document, audience) {
        self::item(&mut xml, item, audience);
    }
    xml.close("channel");
    xml.close("rss");
    xml.finish()
}

/// Writes one item. It stands below the channel of a page.
pub(super) fn lone_item(lone: &LoneItem<'_>) -> Vec<u8> {
    let mut xml = Xml::fragment(2, lone.place.declared(declared(lone.audience)));
    self::item(&mut xml, lone.item, lone.audience);
    xml.finish_fragment()
}

/// R-1, R-5, R-10, R-11.
fn channel(xml: &mut Xml, document: &Document<'_>, audience: Audience) {
    let channel = ShownChannel::of(document.feed());
    let title = channel.name();
    // Every channel needs a site; ours has at least a page about the feed.
    let about = || Cow::Borrowed(&*document.links.about);
    let site = channel.site().unwrap_or_else(about);
    xml.leaf("title", &[], &title);
    xml.leaf("link", &[], &site);
    let description = channel.description().map(description);
    xml.leaf("description", &[], description.as_ref().unwrap_or(&title));
    xml.leaf_some("language", channel.language());
    xml.leaf_some("copyright", channel.rights().map(ShownText::words));
    people::rss(xml, "managingEditor", channel.authors());
    contributors(xml, channel.contributors());
    let last_t = channel.feed.last_t;
    if last_t != Stamp::ZERO {
        xml.leaf("lastBuildDate", &[], &last_t.rfc822());
    }
    categories(xml, channel.tags());
    let generator = format!("{} {}", GENERATOR.name, GENERATOR.version);
    xml.leaf("generator", &[], &generator);
    xml.leaf_some("ttl", document.ttl_mins.map(|mins| mins.to_string()));
    rhythm::elements(xml, document.ttl_mins);
    skipped(xml, channel);
    picture(xml, channel, &title, &site);
    own_links(xml, "atom:link", document, audience, MEDIA_TYPE);
    archive_mark(xml, document);
    xml.leaf_some("atom:icon", channel.further_icon());
    for further in channel.links(&HashSet::from(["text/html", MEDIA_TYPE])) {
        // A link that RSS has no element for.
        if let Some(mut shown) = ShownLink::of(further) {
            shown.rel = further.rel.trim();
            shown.length = None;
            link(xml, "atom:link", &shown);
        }
    }
    channel.elements(xml, is_of_channel, declared(audience));
    position(xml, document, audience);
}

/// HTML as it came in; anything else in plain words.
fn description(text: ShownText<'_>) -> Cow<'_, str> {
    match text.marked().kind {
        TextKind::Html => text.html(),
        TextKind::Plain | TextKind::Xhtml | TextKind::Base64 => text.words(),
    }
}

/// Hours and days (GMT) at which the publisher does not want to be asked. They hold for what is
/// made of his feed as well.
fn skipped(xml: &mut Xml, channel: ShownChannel<'_>) {
    const DAYS: [&str; 7] = [
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
    ];
    let hours = channel.skip_hours().iter().map(ToString::to_string);
    xml.leaves("skipHours", "hour", hours);
    let days = channel.skip_days().iter();
    let days = days.filter_map(|day| DAYS.get(usize::from(*day)));
    xml.leaves("skipDays", "day", days);
}

/// The picture of the channel, which leads to its site unless it says something else.
fn picture(xml: &mut Xml, channel: ShownChannel<'_>, title: &str, site: &str) {
    let Some(picture) = channel.picture() else {
        return;
    };
    xml.open("image", &[]);
    xml.leaf("url", &[], &picture.url);
    xml.leaf("title", &[], picture.title().unwrap_or(title));
    xml.leaf("link", &[], picture.link().as_deref().unwrap_or(site));
    for (side, pixels) in picture.pixels() {
        xml.leaf(side, &[], pixels);
    }
    xml.leaf_some("description", picture.description());
    xml.close("image");
}

/// True for the elements of a channel that are written here.
fn is_of_channel(name: &str) -> bool {
    const NAMES: &str = "title link description language copyright managingeditor author pubdate \
        lastbuilddate category generator image skiphours skipdays";
    NAMES.split(' ').any(|known| known == name)
}

/// A function of the item alone.
fn item(xml: &mut Xml, item: ItemProjection<'_>, audience: Audience) {
    match item {
        ItemProjection::Post(post) => live(xml, post, audience),
        ItemProjection::Tombstone(tombstone) => gone(xml, tombstone, audience),
    }
}

/// A tombstone (H-30). `ref` is the guid, by which readers of RSS know a post.
fn gone(xml: &mut Xml, tombstone: ShownTombstone<'_>, audience: Audience) {
    let item = tombstone.item;
    let when = item.modified.rfc3339();
    let mut attributes = beyond_classic(audience, OF_TOMBSTONES).to_vec();
    attributes.extend([("ref", Some(item.given_id())), ("when", Some(&*when))]);
    xml.open("at:deleted-entry", &attributes);
    xml.leaf("at:comment", &[], tombstone.reason.code());
    xml.leaf("fo:id", &[], &item.id.to_string());
    missed(xml, tombstone);
    origin(xml, tombstone.source());
    xml.close("at:deleted-entry");
}

/// R-2..R-9.
fn live(xml: &mut Xml, post: ShownPost<'_>, audience: Audience) {
    xml.open("item", &[]);
    let permalink = post.permalink();
    texts(xml, post, permalink.as_deref());
    people::rss(xml, "author", post.authors());
    contributors(xml, post.contributors());
    categories(xml, post.tags());
    xml.leaf_some("comments", post.comments());
    enclosures(xml, post);
    guid(xml, post.item, permalink.as_deref());
    xml.leaf("pubDate", &[], &post.item.dated().rfc822());
    xml.leaf_some("dc:rights", post.rights().map(ShownText::words));
    origin(xml, post.source());
    foreign(xml, post.foreign_elements(is_said), declared(audience));
    item_position(xml, post, audience);
    xml.close("item");
}

/// The publisher's own id. The guid of RSS says of itself what its source said, so that a reader
/// who comes from there knows the post again; what is no web address says that it is no permalink
/// (R-3), or readers make an address of it.
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

/// Title and description, at least one of them (R-2): where there is neither, a link or at last the
/// id is the title. Beside a summary the full text stands in `content:encoded` (R-9); alone it is
/// the description, which every reader shows.
fn texts(xml: &mut Xml, post: ShownPost<'_>, permalink: Option<&str>) {
    let title = post.title();
    let (summary, content) = (post.summary(), post.content());
    let is_wordless = title.is_none() && summary.is_none() && content.is_none();
    xml.leaf_some("title", title);
    xml.leaf_some("link", permalink);
    if is_wordless {
        let file = || post.enclosures().next().map(|file| file.href);
        let link = permalink.map(Cow::Borrowed).or_else(file);
        xml.leaf(
            "title",
            &[],
            link.as_deref().unwrap_or(post.item.given_id()),
        );
    }
    summary_and_content(xml, summary, content);
}

fn contributors(xml: &mut Xml, contributors: People<'_>) {
    for name in contributors.names() {
        xml.leaf("dc:contributor", &[], name);
    }
}

fn categories(xml: &mut Xml, tags: Tags<'_>) {
    for tag in tags.visible() {
        xml.leaf("category", &[("domain", tag.scheme.as_deref())], &tag.term);
    }
}

/// One enclosure (R-6). The others are `media:content`, unless the entry's own Media RSS has them.
fn enclosures(xml: &mut Xml, post: ShownPost<'_>) {
    for (at, file) in post.attached().enumerate() {
        let url = ("url", Some(&*file.href));
        let (length, media_type) = (file.length(), file.media_type());
        if at == 0 {
            // An unknown length is written 0 (L-9).
            let length = ("length", length.or(Some("0")));
            let media_type = media_type.or(Some("application/octet-stream"));
            xml.empty("enclosure", &[url, length, ("type", media_type)]);
        } else if !post.has_as_media(&file) {
            let attributes = [url, ("fileSize", length), ("type", media_type)];
            xml.empty("media:content", &attributes);
        }
    }
}

fn origin(xml: &mut Xml, source: Option<ShownSource<'_>>) {
    if let Some(source) = source
        && let Some(url) = source.url()
    {
        let title = source.title();
        let title = title.as_ref().unwrap_or(&url);
        xml.leaf("source", &[("url", Some(&url))], title);
    }
}

/// True for foreign markup that would say again what our own elements say: feed readers take the
/// last, or both.
fn is_said(element: &Element) -> bool {
    let names = match element.ns.as_str() {
        "" => {
            "title link description author category comments enclosure guid pubdate source item entry"
        }
        ns::ATOM => "id link title content summary author",
        ns::CONTENT => "encoded",
        ns::DUBLIN_CORE => "creator date title description subject rights",
        _ => return false,
    };
    let is_same = |name: &str| match &*element.ns {
        "" => element.name.eq_ignore_ascii_case(name),
        _ => element.name == name,
    };
    names.split(' ').any(is_same)
}
