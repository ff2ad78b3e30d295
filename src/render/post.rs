//! A post as its readers are shown it: which title, texts, links, people, tags and files of an
//! entry come out. The writers of the syntaxes spell them, and see no entry. Nothing is decided
//! before a writer asks for it; not where something stands in a document.

use super::{
    channel::ShownChannel,
    document::{Audience, Document},
    namespaces::{self as ns, ITUNES, MEDIA},
    people::{People, ShownPerson},
    target,
    text::{self, ShownText},
    values::{self, ShownFile, ShownLink, ShownSource, Tags},
};
use crate::feed::{
    inheritance,
    item::{Content, Item, Reason},
    stamp::Stamp,
};
use everfeed_adapters::{Body, Element, Enclosure, Entry, Link, Node, Source, Text};
use std::borrow::Cow;

/// An item as an audience is shown it.
#[derive(Clone, Copy)]
pub(super) enum ItemProjection<'a> {
    Post(ShownPost<'a>),
    Tombstone(ShownTombstone<'a>),
}

/// A live item.
#[derive(Clone, Copy)]
pub(super) struct ShownPost<'a> {
    pub(super) item: &'a Item,
    entry: &'a Entry,
}

/// An item that is gone.
#[derive(Clone, Copy)]
pub(super) struct ShownTombstone<'a> {
    pub(super) item: &'a Item,
    pub(super) reason: Reason,
    pub(super) first_missing: Option<Stamp>,
    pub(super) last_seen: Option<Stamp>,
}

/// The items of a document that its audience is shown.
pub(super) fn items<'a>(
    document: &Document<'a>,
    audience: Audience,
) -> impl Iterator<Item = ItemProjection<'a>> {
    let items = document.page.items.iter();
    let shown_as = if document.shows_gone(audience) {
        Audience::Full
    } else {
        audience
    };
    items.filter_map(move |item| ItemProjection::of(item, shown_as))
}

impl<'a> ItemProjection<'a> {
    /// `None` for a tombstone before ordinary readers.
    pub(super) fn of(item: &'a Item, audience: Audience) -> Option<Self> {
        match &item.content {
            Content::Live(entry) => Some(Self::Post(ShownPost { item, entry })),
            Content::Gone { .. } if audience == Audience::Classic => None,
            Content::Gone {
                reason,
                first_missing,
                last_seen,
            } => Some(Self::Tombstone(ShownTombstone {
                item,
                reason: *reason,
                first_missing: *first_missing,
                last_seen: *last_seen,
            })),
        }
    }

    pub(super) fn item(self) -> &'a Item {
        match self {
            Self::Post(post) => post.item,
            Self::Tombstone(gone) => gone.item,
        }
    }

    /// The post, unless it is gone.
    pub(super) fn post(self) -> Option<ShownPost<'a>> {
        match self {
            Self::Post(post) => Some(post),
            Self::Tombstone(_) => None,
        }
    }

    /// The tombstone of a post that is gone.
    pub(super) fn tombstone(self) -> Option<ShownTombstone<'a>> {
        match self {
            Self::Post(_) => None,
            Self::Tombstone(gone) => Some(gone),
        }
    }

    /// The person who made it: an author of its own, of its source or of its feed. Nobody says who
    /// deleted an item.
    pub(super) fn actor(self, channel: ShownChannel<'a>) -> Option<ShownPerson<'a>> {
        let authors = inheritance::authors(self.post()?.entry, channel.feed);
        People(authors).iter().next()
    }
}

impl<'a> ShownTombstone<'a> {
    /// Times at which it was first missed and last seen, by their names (POLLING 2.7).
    pub(super) fn missed(self) -> impl Iterator<Item = (&'static str, String)> {
        let moments = [
            ("fo:first_missing", self.first_missing),
            ("fo:last_seen", self.last_seen),
        ];
        moments
            .into_iter()
            .filter_map(|(name, at)| Some((name, at?.rfc3339())))
    }

    /// The feed that the post came from.
    pub(super) fn source(self) -> Option<ShownSource<'a>> {
        self.item.ended_source().map(ShownSource)
    }
}

impl<'a> ShownPost<'a> {
    /// The title in plain words, when it has one.
    pub(super) fn title(self) -> Option<Cow<'a, str>> {
        text::title(self.entry)
    }

    /// The title with its markup, be it blank or not.
    pub(super) fn marked_title(self) -> Option<Cow<'a, Text>> {
        self.entry.title.as_ref().map(text::on_one_line_of)
    }

    /// The first words of a post without a title.
    pub(super) fn lead(self) -> Option<String> {
        text::lead(self.entry)
    }

    pub(super) fn summary(self) -> Option<ShownText<'a>> {
        ShownText::of(self.entry.summary.as_ref())
    }

    /// The summary as the publisher wrote it, be it blank or not.
    pub(super) fn given_summary(self) -> Option<&'a Text> {
        self.entry.summary.as_ref()
    }

    /// The content, when it can be read in place.
    pub(super) fn content(self) -> Option<ShownText<'a>> {
        self.entry.content.as_ref().and_then(ShownText::in_place)
    }

    /// The content for syntaxes that hold any media type.
    pub(super) fn body(self) -> Option<&'a Body> {
        self.entry.content.as_ref()
    }

    pub(super) fn rights(self) -> Option<ShownText<'a>> {
        ShownText::of(self.entry.rights.as_ref())
    }

    /// The links that may be followed, in the order of the publisher.
    pub(super) fn links(self) -> impl Iterator<Item = ShownLink<'a>> {
        self.entry.links.iter().filter_map(ShownLink::of)
    }

    // Decides: Which link of a post comes out, in every format?
    /// The permalink: the first `alternate` link to a page that may be followed, else to anything.
    pub(super) fn permalink(self) -> Option<Cow<'a, str>> {
        self.alternates()
            .find_map(|alternate| target::link(&alternate.href))
    }

    /// The `alternate` links, those to pages first.
    fn alternates(self) -> impl Iterator<Item = &'a Link> {
        let of = move |is_page| {
            self.entry
                .links
                .iter()
                .filter(move |link| link.rel == "alternate" && link.is_page() == is_page)
        };
        of(true).chain(of(false))
    }

    /// Its addresses, be they fit to be followed or not, the nearest first: its page, an id that is
    /// one, an attached file, the page of its source.
    pub(super) fn addresses(self) -> impl Iterator<Item = &'a str> {
        let files = self.entry.enclosures.iter().map(|file| file.url.as_str());
        let source = self.entry.source.as_deref().and_then(Source::page);
        self.alternates()
            .map(|link| link.href.as_str())
            .chain([self.item.iri.as_str()])
            .chain(files)
            .chain(source)
    }

    /// The page of which the post speaks.
    pub(super) fn related(self) -> Option<Cow<'a, str>> {
        let link = self.entry.links.iter().find(|link| link.rel == "related");
        target::link(&link?.href)
    }

    /// The page of its comments.
    pub(super) fn comments(self) -> Option<Cow<'a, str>> {
        target::link(self.entry.comments.as_deref()?)
    }

    /// True when one of the links leads to the page of its comments: another link with this
    /// relation may lead to the feed of the comments.
    pub(super) fn has_link_to_comments(self) -> bool {
        self.entry.links.iter().any(|link| {
            let media_type = link.media_type.as_deref();
            link.rel == "replies" && !media_type.is_some_and(|it| it.ends_with("+xml"))
        })
    }

    /// The date that its publisher gives it.
    pub(super) fn published(self) -> Option<String> {
        self.item.published().map(|at| at.rfc3339())
    }

    pub(super) fn authors(self) -> People<'a> {
        People(&self.entry.authors)
    }

    pub(super) fn contributors(self) -> People<'a> {
        People(&self.entry.contributors)
    }

    pub(super) fn tags(self) -> Tags<'a> {
        Tags(&self.entry.categories)
    }

    /// All files, each once.
    pub(super) fn files(self) -> impl Iterator<Item = ShownFile<'a>> {
        self.entry.files().into_iter().filter_map(ShownFile::of)
    }

    /// Those of them that are attached: no pictures that only illustrate the post.
    pub(super) fn attached(self) -> impl Iterator<Item = ShownFile<'a>> {
        self.entry.attached().filter_map(ShownFile::of)
    }

    /// The files as often as the publisher names them, without the content that is only pointed to.
    pub(super) fn enclosures(self) -> impl Iterator<Item = ShownFile<'a>> {
        let files = self.entry.enclosures.iter();
        files.map(Cow::Borrowed).filter_map(ShownFile::of)
    }

    /// The main picture: what Media RSS or iTunes name as such, else the first that illustrates the
    /// post.
    pub(super) fn picture(self) -> Option<Cow<'a, str>> {
        let named = self.entry.foreign.iter().find_map(|element| {
            match (element.ns.as_str(), element.name.as_str()) {
                (MEDIA, "thumbnail") => attribute(element, "url"),
                (ITUNES, "image") => attribute(element, "href"),
                _ => None,
            }
        });
        let is_picture = |file: &&Enclosure| {
            let media_type = file.media_type.as_deref();
            file.is_illustration && media_type.is_none_or(|it| it.starts_with("image/"))
        };
        let illustration = || {
            let file = self.entry.enclosures.iter().find(is_picture)?;
            Some(file.url.as_str())
        };
        named.or_else(illustration).and_then(target::image)
    }

    /// Seconds that its only file lasts, as iTunes names them.
    pub(super) fn duration_secs(self) -> Option<u64> {
        self.entry.foreign.iter().find_map(duration_secs)
    }

    pub(super) fn language(self) -> Option<&'a str> {
        values::language(self.entry.language.as_deref()?)
    }

    /// The language as a value of `xml:lang` or of `lang` in HTML: a tag, or nothing where it was
    /// said that there is no language.
    pub(super) fn language_attribute(self) -> Option<&'a str> {
        let said = self.entry.language.as_deref();
        self.language().or(said.filter(|said| said.is_empty()))
    }

    /// The feed that it comes from.
    pub(super) fn source(self) -> Option<ShownSource<'a>> {
        self.entry.source.as_deref().map(ShownSource)
    }

    /// Elements of other vocabularies that come out again. `is_said` is true for those that the
    /// syntax has said already, or has no place for.
    pub(super) fn foreign_elements(
        self,
        is_said: fn(&Element) -> bool,
    ) -> impl Iterator<Item = &'a Element> {
        let elements = self.entry.foreign.iter();
        elements.filter(move |element| !is_ours(element) && !is_said(element))
    }

    /// True where Media RSS of the post has the file as such: that it is somebody's thumbnail says
    /// something else.
    pub(super) fn has_as_media(self, file: &ShownFile<'_>) -> bool {
        let mut elements = self.entry.foreign.iter();
        elements.any(|element| mentions(element, file.given_url()))
    }
}

/// True for elements in which nobody but us may speak: a Smart Feed upstream has its own ids,
/// cursors and tombstones.
fn is_ours(element: &Element) -> bool {
    match element.ns.as_str() {
        ns::SMART_FEED | ns::TOMBSTONES | ns::FEED_HISTORY => true,
        ns::PUBLISHING => element.name == "edited",
        _ => false,
    }
}

fn mentions(element: &Element, url: &str) -> bool {
    let mut attributes = element.attributes.iter();
    (element.name == "content" && attributes.any(|it| it.name == "url" && it.value == url))
        || element.elements().any(|inner| mentions(inner, url))
}

fn attribute<'e>(element: &'e Element, name: &str) -> Option<&'e str> {
    let mut attributes = element.attributes.iter();
    let found = attributes.find(|it| it.ns.is_empty() && it.name == name)?;
    Some(&found.value)
}

/// `itunes:duration`: seconds, `MM:SS` or `HH:MM:SS`.
fn duration_secs(element: &Element) -> Option<u64> {
    if (element.ns.as_str(), element.name.as_str()) != (ITUNES, "duration") {
        return None;
    }
    let [Node::Text(text)] = &element.children[..] else {
        return None;
    };
    let mut secs = 0;
    for (at, part) in text.trim().split(':').enumerate() {
        if at == 3 || part.len() > 9 {
            return None;
        }
        secs = secs * 60 + part.parse::<u64>().ok()?;
    }
    Some(secs)
}
