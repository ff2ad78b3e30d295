//! Atom 1.0, for Smart Feed consumers with `fo:` and `at:` elements, for ordinary readers without;
//! not what an item may look like in other formats.

use crate::{
    feed::{item::Item, record::FeedRecord, stamp::Stamp},
    render::{
        channel,
        document::{Alternate, Audience, Document, ItemPlace},
        generator::GENERATOR,
        identity, namespaces as ns, target,
        text::{on_one_line_of, visible},
        values,
        xml::Xml,
    },
};
use entry::Stubs;
use std::{borrow::Cow, collections::HashSet};

mod entry;

mod construct;
mod declared;

#[cfg(test)]
mod tests;

const MEDIA_TYPE: &str = "application/atom+xml";

/// Writes the document.
pub(super) fn document(document: &Document<'_>, audience: Audience) -> Vec<u8> {
    let mut xml = Xml::document(document.capacity_bytes());
    let language = document
        .feed()
        .metadata
        .language
        .as_deref()
        .and_then(values::language);
    let mut attributes = vec![("xmlns", Some(ns::ATOM))];
    if audience == Audience::Full {
        attributes.extend([
            ("xmlns:fo", Some(ns::SMART_FEED)),
            ("xmlns:at", Some(ns::TOMBSTONES)),
            ("xmlns:app", Some(ns::PUBLISHING)),
        ]);
    }
    attributes.push(("xml:lang", language));
    xml.open("feed", &attributes);
    head(&mut xml, document, audience);
    if audience == Audience::Full {
        position(&mut xml, document);
    }
    let stubs = if document.links.is_live_view {
        Stubs::LeftOut
    } else {
        Stubs::Shown
    };
    for item in &document.page.items {
        entry::item(&mut xml, item, audience, stubs);
    }
    xml.close("feed");
    xml.finish()
}

/// Writes one item. It stands below the root of a page.
pub(super) fn lone_item(
    item: &Item,
    _: &FeedRecord,
    audience: Audience,
    place: ItemPlace,
) -> Option<Vec<u8>> {
    let declared = match place {
        ItemPlace::Page => &[],
        ItemPlace::Alone => declared::declared(audience),
    };
    let mut xml = Xml::fragment(1, declared);
    entry::item(&mut xml, item, audience, Stubs::Shown);
    xml.finish_fragment()
}

/// The elements that RFC 4287 section 4.1.1 asks of a feed, in a page without entries too
/// (A-1..A-4).
fn head(xml: &mut Xml, document: &Document<'_>, audience: Audience) {
    let feed = document.feed();
    let metadata = &feed.metadata;
    xml.leaf("id", &[], &identity::document_iri(document));
    construct::text(
        xml,
        "title",
        &on_one_line_of(&identity::title(feed)),
        audience,
    );
    if let Some(subtitle) = visible(metadata.description.as_ref()) {
        construct::text(xml, "subtitle", subtitle, audience);
    }
    xml.leaf("updated", &[], &updated(feed.last_t).rfc3339());
    if !construct::people(xml, "author", &metadata.authors) {
        xml.open("author", &[]);
        xml.leaf("name", &[], &identity::name(feed));
        xml.close("author");
    }
    links(xml, document, audience);
    if document.is_archive() {
        xml.empty("fh:archive", &[("xmlns:fh", Some(ns::FEED_HISTORY))]);
    }
    construct::people(xml, "contributor", &metadata.contributors);
    construct::categories(xml, &metadata.categories);
    if let Some(rights) = visible(metadata.rights.as_ref()) {
        construct::text(xml, "rights", rights, audience);
    }
    if let Some(icon) = metadata.icon.as_deref().and_then(target::image) {
        xml.leaf("icon", &[], &icon);
    }
    if let Some(logo) = metadata
        .image
        .as_ref()
        .and_then(|image| target::image(&image.url))
    {
        xml.leaf("logo", &[], &logo);
    }
    xml.leaf(
        "generator",
        &[("version", Some(GENERATOR.version))],
        GENERATOR.name,
    );
    channel::elements(metadata, declared::declared(audience), is_own, |markup| {
        xml.aside(|out| out.push_str(markup));
    });
}

/// True for un-namespaced elements that readers without namespaces would take for ours.
fn is_own(name: &str) -> bool {
    const NAMES: [&str; 9] = [
        "title",
        "id",
        "link",
        "updated",
        "subtitle",
        "author",
        "contributor",
        "generator",
        "feed",
    ];
    NAMES.contains(&name)
}

/// A feed that never held anything has no T; Atom wants a date all the same, and it must not be the
/// time of asking.
fn updated(last_t: Stamp) -> Stamp {
    const NEVER: Stamp = Stamp::from_secs(946_684_800); // 2000-01-01
    if last_t == Stamp::ZERO { NEVER } else { last_t }
}

fn links(xml: &mut Xml, document: &Document<'_>, audience: Audience) {
    let links = document.links;
    let own_type = Some(MEDIA_TYPE);
    xml.empty(
        "link",
        &[
            ("rel", Some("self")),
            ("type", own_type),
            ("href", Some(document.own_url())),
        ],
    );
    if let Some(hub) = document.hub() {
        xml.empty("link", &[("rel", Some("hub")), ("href", Some(hub))]);
    }
    for (relation, url) in document.archive_links() {
        xml.empty(
            "link",
            &[
                ("rel", Some(relation)),
                ("type", own_type),
                ("href", Some(url)),
            ],
        );
    }
    if let Some(next) = document.next(audience) {
        xml.empty(
            "link",
            &[
                ("rel", Some("next")),
                ("type", own_type),
                ("href", Some(next)),
            ],
        );
    }
    let metadata = &document.feed().metadata;
    let mut alternates = HashSet::new();
    let page = FeedPage::of(document);
    alternates.extend(page.is_some().then_some(HTML));
    if let Some(page) = &page {
        page.write(xml, Some(HTML));
    }
    let others: Vec<_> = links
        .alternates
        .iter()
        .filter(|other| alternates.insert(other.media_type))
        .collect();
    for Alternate {
        href,
        media_type,
        title,
    } in &others
    {
        let (rel, media_type, title) = (Some("alternate"), Some(*media_type), Some(title.as_str()));
        xml.empty(
            "link",
            &[
                ("rel", rel),
                ("type", media_type),
                ("title", title),
                ("href", Some(href)),
            ],
        );
    }
    let about = [
        ("type", Some(HTML)),
        ("title", Some("About this feed")),
        ("href", Some(&*links.about)),
    ];
    xml.empty(
        "link",
        &[("rel", Some("describedby")), about[0], about[1], about[2]],
    );
    let further = channel::links(metadata, &alternates);
    let is_page_last = others.is_empty() && !further.iter().any(|link| link.rel == "alternate");
    let has_untyped = further
        .iter()
        .any(|link| link.rel == "alternate" && link.media_type.is_none());
    entry::plain_links(xml, further.into_iter());
    if let Some(page) = page.filter(|_| !is_page_last && !has_untyped) {
        // newsboat takes the last alternate, whatever its type. Two of one type must not be (RFC
        // 4287 section 4.1.1).
        page.write(xml, None);
    }
}

const HTML: &str = "text/html";

/// The page that a person would call the alternate of a feed: of its site, else ours. It is the
/// first alternate, which most readers show as the website.
struct FeedPage<'d> {
    href: Cow<'d, str>,
    title: Option<&'d str>,
}

impl<'d> FeedPage<'d> {
    fn of(document: &Document<'d>) -> Option<Self> {
        let site = document.feed().metadata.site();
        let site = site.and_then(|site| {
            Some(Self {
                href: target::link(&site.href)?,
                title: site.title.as_deref(),
            })
        });
        let own = || {
            document
                .links
                .alternates
                .iter()
                .find(|other| other.media_type == HTML)
        };
        site.or_else(|| {
            own().map(|own| Self {
                href: Cow::Borrowed(&own.href),
                title: Some(&own.title),
            })
        })
    }

    fn write(&self, xml: &mut Xml, media_type: Option<&str>) {
        let (rel, href) = (Some("alternate"), Some(&*self.href));
        xml.empty(
            "link",
            &[
                ("rel", rel),
                ("type", media_type),
                ("title", self.title),
                ("href", href),
            ],
        );
    }
}

/// Position of the page (SF-56, SF-57, SF-83, SF-85). No `count` in Atom (SF-62).
fn position(xml: &mut Xml, document: &Document<'_>) {
    if let Some(total) = document.page.total {
        xml.leaf("fo:total", &[], &total.to_string());
    }
    if let Some(prev) = document.prev_cursor {
        xml.leaf("fo:prev_cursor", &[], prev);
    }
    xml.leaf("fo:last_cursor", &[], &document.page.last_cursor);
}
