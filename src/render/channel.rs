//! A feed as its readers are shown it: its names, texts, people and pictures, and which of its own
//! elements and links come out again; some would say something false of a document of ours. The
//! writers of the syntaxes spell them. Nothing is decided before a writer asks for it; not where
//! something stands in a document.

use super::{
    foreign, identity, namespaces as ns,
    people::People,
    target,
    text::ShownText,
    values::{self, ShownLink, Tags},
    xml::{Declared, Xml},
};
use crate::feed::record::FeedRecord;
use everfeed_adapters::{Element, Image, Link, Metadata, Node, Text, customary};
use std::{borrow::Cow, collections::HashSet};

/// A feed.
#[derive(Clone, Copy)]
pub(super) struct ShownChannel<'a> {
    pub(super) feed: &'a FeedRecord,
}

/// The feed as an actor, where nobody else is named.
pub(super) struct ShownService<'a> {
    pub(super) id: String,
    pub(super) name: Cow<'a, str>,
}

/// A picture of a feed, and what its publisher says of it.
pub(super) struct ShownPicture<'a> {
    pub(super) url: Cow<'a, str>,
    image: Option<&'a Image>,
}

impl<'a> ShownChannel<'a> {
    /// Projection of a feed.
    pub(super) fn of(feed: &'a FeedRecord) -> Self {
        Self { feed }
    }

    fn metadata(self) -> &'a Metadata {
        &self.feed.metadata
    }

    /// The title in plain words, else the host that the feed comes from.
    pub(super) fn name(self) -> Cow<'a, str> {
        identity::name(self.feed)
    }

    /// The same with its markup.
    pub(super) fn title(self) -> Cow<'a, Text> {
        identity::title(self.feed)
    }

    /// The feed itself, as it names itself now (SMART_FEEDS section 1.7).
    pub(super) fn service(self) -> ShownService<'a> {
        ShownService {
            id: self.feed.iri(),
            name: self.name(),
        }
    }

    pub(super) fn description(self) -> Option<ShownText<'a>> {
        ShownText::of(self.metadata().description.as_ref())
    }

    pub(super) fn rights(self) -> Option<ShownText<'a>> {
        ShownText::of(self.metadata().rights.as_ref())
    }

    /// URL of its site.
    pub(super) fn site(self) -> Option<Cow<'a, str>> {
        target::link(self.metadata().link("alternate")?)
    }

    /// The link to the page for people of its site, where it names one.
    pub(super) fn page(self) -> Option<ShownLink<'a>> {
        self.metadata().site().and_then(ShownLink::of)
    }

    pub(super) fn language(self) -> Option<&'a str> {
        values::language(self.metadata().language.as_deref()?)
    }

    pub(super) fn authors(self) -> People<'a> {
        People(&self.metadata().authors)
    }

    pub(super) fn contributors(self) -> People<'a> {
        People(&self.metadata().contributors)
    }

    pub(super) fn tags(self) -> Tags<'a> {
        Tags(&self.metadata().categories)
    }

    /// Its small square picture.
    pub(super) fn icon(self) -> Option<Cow<'a, str>> {
        target::image(self.metadata().icon.as_deref()?)
    }

    /// Its large picture.
    pub(super) fn logo(self) -> Option<Cow<'a, str>> {
        target::image(&self.metadata().image.as_ref()?.url)
    }

    /// The one picture of syntaxes that have one: its large picture, else the small one.
    pub(super) fn picture(self) -> Option<ShownPicture<'a>> {
        Some(ShownPicture {
            url: target::image(self.metadata().picture()?)?,
            image: self.metadata().image.as_ref(),
        })
    }

    /// The small picture, where it is not that one.
    pub(super) fn further_icon(self) -> Option<Cow<'a, str>> {
        let is_it = self.metadata().icon.as_deref() == self.metadata().picture();
        self.icon().filter(|_| !is_it)
    }

    /// Hours (GMT) at which the publisher does not want to be asked.
    pub(super) fn skip_hours(self) -> &'a [u8] {
        &self.metadata().rhythm.skip_hours
    }

    /// Likewise of days: Monday is 0.
    pub(super) fn skip_days(self) -> &'a [u8] {
        &self.metadata().rhythm.skip_days
    }
}

impl<'a> ShownPicture<'a> {
    pub(super) fn title(&self) -> Option<&'a str> {
        self.image?.title.as_deref()
    }

    /// The page that it leads to.
    pub(super) fn link(&self) -> Option<Cow<'a, str>> {
        target::link(self.image?.link.as_deref()?)
    }

    pub(super) fn description(&self) -> Option<&'a str> {
        self.image?.description.as_deref()
    }

    /// Pixels of its sides, by their names.
    pub(super) fn pixels(&self) -> impl Iterator<Item = (&'static str, &'a str)> {
        let sides = self.image.map(|image| {
            [
                ("width", values::length(image.width.as_deref())),
                ("height", values::length(image.height.as_deref())),
            ]
        });
        let sides = sides.into_iter().flatten();
        sides.filter_map(|(name, pixels)| Some((name, pixels?)))
    }
}

/// True for links that are never repeated: they lead to the publisher's own documents, pages and
/// hubs, beside which ours has its own. `#feed` is what Google's software calls `self`.
fn is_own_relation(rel: &str) -> bool {
    let rel = values::relation(rel);
    let is = |other: &str| rel.eq_ignore_ascii_case(other);
    is("hub.subscribe")
        || is("http://schemas.google.com/g/2005#feed")
        || is("canonical")
        || values::is_of_feed(rel)
}

/// Vocabularies that are never repeated: cursors, tombstones, archives and how often to ask are our
/// own.
const VOCABULARIES: &[&str] = &[
    ns::SMART_FEED,
    ns::TOMBSTONES,
    ns::FEED_HISTORY,
    ns::ATOM,
    ns::SYNDICATION,
];

/// Elements, without regard to vocabulary and case, that are never repeated: counts of the
/// publisher's own pages, what to register at, what stands around the entries, where the entries
/// are, and where the feed has moved to.
const NAMES: &str =
    "cloud edited entry item items itemsperpage redirect startindex totalresults ttl";

/// Limit of the foreign markup of a feed in one document, in bytes; elements that do not fit are
/// left out. Every page and every push carries it.
pub(super) const MARKUP_BYTES_MAX: usize = 64 * 1024;

/// Limit of the links of a feed in one document.
const LINKS_MAX: usize = 64;

/// The search box of a feed, in the words of RSS.
#[derive(Clone, Copy)]
pub(super) struct TextInput<'m> {
    /// The label of its button.
    pub(super) title: &'m str,
    /// The words that say what it is for.
    pub(super) description: &'m str,
    /// The name of its parameter.
    pub(super) name: &'m str,
    /// The URL that takes the request.
    pub(super) link: &'m str,
}

impl<'a> ShownChannel<'a> {
    /// The links of a feed beside its site and ours. Of alternates only those that differ from the ones
    /// before by type and language (RFC 4287 section 4.1.1); `taken` holds the types of those without a
    /// language.
    pub(super) fn links(self, taken: &HashSet<&'a str>) -> Vec<&'a Link> {
        let metadata = self.metadata();
        let mut alternates: HashSet<_> = taken
            .iter()
            .map(|media_type| (Some(*media_type), None))
            .collect();
        let site = metadata.site();
        let others = metadata
            .links
            .iter()
            .filter(|link| site.is_none_or(|site| !std::ptr::eq(*link, site)));
        let mut is_new = |link: &'a Link| {
            link.rel != "alternate"
                || alternates.insert((link.media_type.as_deref(), link.hreflang.as_deref()))
        };
        others
            .filter(|link| !is_own_relation(&link.rel))
            .filter(|link| is_new(link))
            .take(LINKS_MAX)
            .collect()
    }

    /// The search box of a feed that has one, whole: RSS 1.0 demands all four of its parts.
    pub(super) fn text_input(self) -> Option<TextInput<'a>> {
        let is_one = |element: &&Element| element.ns.is_empty() && element.name == "textInput";
        let element = self.metadata().foreign.iter().find(is_one)?;
        let field = |name: &str| {
            let child = element.elements().find(|child| child.name == name)?;
            match &child.children[..] {
                [Node::Text(text)] => Some(text.as_str()),
                _ => None,
            }
        };
        Some(TextInput {
            title: field("title")?,
            description: field("description")?,
            name: field("name")?,
            link: field("link")?,
        })
    }

    // Decides: Which foreign elements of a channel come out again?
    /// Writes the elements of a feed that no field of its metadata covers. `is_own` is true for
    /// un-namespaced names that mean something in the syntax itself, whose writer has said it.
    pub(super) fn elements(self, xml: &mut Xml, is_own: fn(&str) -> bool, declared: &[Declared]) {
        let mut left = MARKUP_BYTES_MAX;
        for element in self.foreign_elements(is_own) {
            let mut markup = String::new();
            foreign::write(&mut markup, element, declared);
            if let Some(rest) = left
                .checked_sub(markup.len())
                .filter(|_| !markup.is_empty())
            {
                left = rest;
                xml.aside(|out| out.push_str(&markup));
            }
        }
    }

    /// The elements of a feed that come out again, however long they are.
    pub(super) fn foreign_elements(
        self,
        is_own: fn(&str) -> bool,
    ) -> impl Iterator<Item = &'a Element> {
        let elements = self.metadata().foreign.iter();
        elements.filter(move |element| !is_left_out(element, is_own))
    }
}

fn is_left_out(element: &Element, is_own: fn(&str) -> bool) -> bool {
    let name = element.name.to_ascii_lowercase();
    // Whatever the spelling of a namespace, it is written as it is defined.
    let defined = customary(&element.ns).map_or(&*element.ns, |(_, defined)| defined);
    VOCABULARIES.contains(&defined)
        || NAMES.split(' ').any(|known| known == name)
        || (element.ns.is_empty() && is_own(&name))
}
