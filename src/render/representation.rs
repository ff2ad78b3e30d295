//! Representations: syntax and audience of a page, and the one table of all that follows from them.
//! A new syntax is a writer below this module with its row and its tests, and a variant here; not how
//! our URLs are spelt.

use super::{
    channel::ShownChannel,
    document::{Audience, Document, ItemContext},
    post::ItemProjection,
    web_page::POSTS_POLICY,
};
use crate::feed::{item::Item, record::FeedRecord};

mod shared_elements;

mod extension;

mod rhythm;

mod atom;

mod rss;

mod rdf;

mod activity_streams;

mod json_lines;

mod json_feed;

mod activity_streams_2;

mod separated;

mod html;

/// The form in which a page is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syntax {
    /// Atom 1.0; for the full audience with `fo:` and `at:` elements.
    Atom,
    /// ActivityStreams 1.0 Collection.
    ActivityStreams,
    /// RSS 2.0; for the full audience with `fo:` and `at:` elements.
    Rss,
    /// RSS 1.0; for the full audience with `fo:` and `at:` elements.
    Rdf,
    /// JSON Feed 1.1; for the full audience with positions and tombstones in `_everfeed`.
    JsonFeed,
    /// ActivityStreams 2.0 collection page.
    ActivityStreams2,
    /// Activities of ActivityStreams 1.0, one a line.
    JsonLines,
    /// Comma-separated values.
    Csv,
    /// Tab-separated values.
    Tsv,
    /// A page for people, with microformats.
    Html,
}

/// Everything that follows from a syntax.
struct SyntaxRow {
    /// The end of its file names in URLs; part of stable names, and its label in metrics.
    suffix: &'static str,
    /// Its name for people.
    title: &'static str,
    /// The standards that its items keep to.
    standard: &'static str,
    /// Its letter in ETags.
    etag: &'static str,
    /// Its media type on the wire.
    media: Media,
    /// The audiences that it is offered to.
    audiences: &'static [Audience],
    /// True where documents name it as another form of their feed.
    is_alternate: bool,
    /// Writes a document for one of the audiences.
    write: fn(&Document<'_>, Audience) -> Vec<u8>,
    /// Writes one item for one of the audiences, as the documents do.
    item: fn(&LoneItem<'_>) -> Vec<u8>,
}

/// A media type, and what goes with it in HTTP.
struct Media {
    /// The `Content-Type` header.
    content_type: &'static str,
    /// Media types under which consumers also mean it.
    aliases: &'static [&'static str],
    /// The way in which `Accept` may choose it.
    negotiation: Negotiation,
    /// The place of the position of a page.
    position: PositionLocation,
}

/// The way in which a syntax is chosen where a URL names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Negotiation {
    /// By its name, and by a range that includes it.
    Ranges,
    /// By its name alone: whoever takes anything means something else.
    Name,
    /// Never: the negotiated URL answers feed readers in Atom (SF-45, SF-48), and browsers by a
    /// rule of their own.
    Never,
}

/// The place of the position of a page, from which a consumer goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionLocation {
    /// The document.
    Body,
    /// The headers of the answer: the syntax has no place for it (V-3).
    Headers,
}

/// One item that is written without its page.
struct LoneItem<'a> {
    item: ItemProjection<'a>,
    channel: ShownChannel<'a>,
    audience: Audience,
    place: ItemContext,
}

const BOTH: &[Audience] = &[Audience::Full, Audience::Classic];
const FULL: &[Audience] = &[Audience::Full];

impl Media {
    /// A media type without other names, whose documents hold their positions.
    const fn of(content_type: &'static str, negotiation: Negotiation) -> Self {
        Self {
            content_type,
            aliases: &[],
            negotiation,
            position: PositionLocation::Body,
        }
    }

    const fn or(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    const fn without_position(self) -> Self {
        Self {
            position: PositionLocation::Headers,
            ..self
        }
    }
}

impl Syntax {
    /// All syntaxes, in the order in which they are offered and documented.
    const ALL: [Self; 10] = [
        Self::Atom,
        Self::ActivityStreams,
        Self::Rss,
        Self::JsonFeed,
        Self::Rdf,
        Self::ActivityStreams2,
        Self::JsonLines,
        Self::Csv,
        Self::Tsv,
        Self::Html,
    ];

    // Decides: Which syntaxes, suffixes and media types are there?
    /// The table: each writer has its row.
    const fn row(self) -> &'static SyntaxRow {
        match self {
            Self::Atom => &atom::ROW,
            Self::ActivityStreams => &activity_streams::ROW,
            Self::Rss => &rss::ROW,
            Self::JsonFeed => &json_feed::ROW,
            Self::Rdf => &rdf::ROW,
            Self::ActivityStreams2 => &activity_streams_2::ROW,
            Self::JsonLines => &json_lines::ROW,
            Self::Csv => &separated::CSV,
            Self::Tsv => &separated::TSV,
            Self::Html => &html::ROW,
        }
    }

    /// The media type, without parameters.
    fn media_type(self) -> &'static str {
        let content_type = self.row().media.content_type;
        content_type
            .split_once(';')
            .map_or(content_type, |(media_type, _)| media_type)
    }
}

/// Syntax and audience of a page. Only those that are on offer can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Representation {
    syntax: Syntax,
    audience: Audience,
}

impl Representation {
    /// The Smart Feed in Atom.
    pub const ATOM: Self = Self::new(Syntax::Atom, Audience::Full);
    /// The Smart Feed in JSON.
    pub const JSON: Self = Self::new(Syntax::ActivityStreams, Audience::Full);
    /// The Smart Feed as a page for people.
    pub const PAGE: Self = Self::new(Syntax::Html, Audience::Full);
    /// Atom for ordinary readers.
    pub const CLASSIC_ATOM: Self = Self::new(Syntax::Atom, Audience::Classic);
    /// RSS for ordinary readers.
    pub const CLASSIC_RSS: Self = Self::new(Syntax::Rss, Audience::Classic);
    /// RSS 1.0 for ordinary readers.
    pub const CLASSIC_RDF: Self = Self::new(Syntax::Rdf, Audience::Classic);
    /// JSON Feed for ordinary readers.
    pub const CLASSIC_JSON_FEED: Self = Self::new(Syntax::JsonFeed, Audience::Classic);

    const fn new(syntax: Syntax, audience: Audience) -> Self {
        Self { syntax, audience }
    }

    /// All that are on offer, those for the full audience first.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        Self::of(Audience::Full).chain(Self::of(Audience::Classic))
    }

    /// All that an audience is offered; the first is what it gets when it does not say.
    pub fn of(audience: Audience) -> impl Iterator<Item = Self> + Clone {
        let offered = move |syntax: &Syntax| syntax.row().audiences.contains(&audience);
        Syntax::ALL
            .into_iter()
            .filter(offered)
            .map(move |syntax| Self { syntax, audience })
    }

    /// The representation with this stable name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|representation| representation.name() == name)
    }

    /// The representation for an audience whose files end so.
    pub fn with_suffix(audience: Audience, suffix: &str) -> Option<Self> {
        Self::of(audience).find(|representation| representation.suffix() == suffix)
    }

    /// Stable name, for the store: `atom`, `classic-atom`.
    pub fn name(self) -> String {
        match self.audience {
            Audience::Full => self.suffix().to_owned(),
            Audience::Classic => format!("classic-{}", self.suffix()),
        }
    }

    /// The readers that it is for.
    pub const fn audience(self) -> Audience {
        self.audience
    }

    /// True for ordinary readers: no tombstones, no cursors, no next page, one order.
    pub const fn is_classic(self) -> bool {
        matches!(self.audience, Audience::Classic)
    }

    /// True where its syntax is offered to ordinary readers.
    pub fn has_classic(self) -> bool {
        self.syntax.row().audiences.contains(&Audience::Classic)
    }

    /// True where documents name it as another form of their feed.
    pub const fn is_alternate(self) -> bool {
        self.syntax.row().is_alternate
    }

    /// The end of its file names in URLs.
    pub const fn suffix(self) -> &'static str {
        self.syntax.row().suffix
    }

    /// The `Content-Type` header.
    pub const fn content_type(self) -> &'static str {
        self.syntax.row().media.content_type
    }

    /// The media type, without parameters.
    pub fn media_type(self) -> &'static str {
        self.syntax.media_type()
    }

    /// Media types under which consumers also mean it.
    pub const fn aliases(self) -> &'static [&'static str] {
        self.syntax.row().media.aliases
    }

    /// The way in which `Accept` may choose it.
    pub const fn negotiation(self) -> Negotiation {
        self.syntax.row().media.negotiation
    }

    /// The place of the position of a page. Classic documents have no position.
    pub const fn position_place(self) -> PositionLocation {
        self.syntax.row().media.position
    }

    /// True for a page of a browser.
    pub const fn is_page(self) -> bool {
        matches!(self.syntax, Syntax::Html)
    }

    /// The `Content-Security-Policy` of its documents, where they are pages of a browser.
    pub const fn content_security_policy(self) -> Option<&'static str> {
        if self.is_page() {
            Some(POSTS_POLICY)
        } else {
            None
        }
    }

    /// The name of its syntax for people.
    pub const fn syntax_title(self) -> &'static str {
        self.syntax.row().title
    }

    /// Its name for people, who see feeds of both audiences side by side.
    pub fn title(self) -> String {
        let audience = match self.audience {
            Audience::Full => "Smart Feed",
            Audience::Classic => "Newest posts",
        };
        format!("{audience} ({})", self.syntax_title())
    }

    /// The standards that its items keep to.
    pub const fn standard(self) -> &'static str {
        self.syntax.row().standard
    }

    /// Its mark in ETags: no two representations have the same.
    pub fn etag(self) -> String {
        let audience = if self.is_classic() { "c" } else { "" };
        format!("{audience}{}", self.syntax.row().etag)
    }

    /// The label under which answers of this content type are counted, when it is that of a page.
    pub fn label_of(content_type: &str) -> Option<&'static str> {
        let syntax = Syntax::ALL
            .into_iter()
            .find(|syntax| syntax.row().media.content_type == content_type)?;
        Some(syntax.row().suffix)
    }

    /// The document's bytes, UTF-8.
    pub fn write(self, document: &Document<'_>) -> Vec<u8> {
        (self.syntax.row().write)(document, self.audience)
    }

    /// The bytes of one item, UTF-8, as they stand in every page that holds it; `None` for a
    /// tombstone in a form without tombstones. In Atom a tombstone is two elements, one after the
    /// other.
    pub fn item(self, item: &Item, feed: &FeedRecord, place: ItemContext) -> Option<Vec<u8>> {
        let item = LoneItem {
            item: ItemProjection::of(item, self.audience)?,
            channel: ShownChannel::of(feed),
            audience: self.audience,
            place,
        };
        Some((self.syntax.row().item)(&item))
    }
}

/// An item of the Smart Feed as exactly one Atom entry that stands alone (XMPP-32): a tombstone as
/// the stripped entry.
pub fn atom_entry(item: &Item) -> Option<Vec<u8>> {
    let item = ItemProjection::of(item, Audience::Full)?;
    Some(atom::single_entry(item))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_representation_is_told_from_the_others_by_each_of_its_names() {
        let all: Vec<_> = Representation::all().collect();
        let constants = [
            Representation::ATOM,
            Representation::JSON,
            Representation::PAGE,
            Representation::CLASSIC_ATOM,
            Representation::CLASSIC_RSS,
            Representation::CLASSIC_RDF,
            Representation::CLASSIC_JSON_FEED,
        ];
        assert!(
            constants.iter().all(|constant| all.contains(constant)),
            "{all:?}"
        );
        for names in [
            all.iter().map(|each| each.name()).collect::<HashSet<_>>(),
            all.iter().map(|each| each.etag()).collect(),
            all.iter().map(|each| each.title()).collect(),
            all.iter()
                .map(|each| format!("{:?} {}", each.audience(), each.suffix()))
                .collect(),
        ] {
            assert_eq!(names.len(), all.len(), "{names:?}");
        }
        for each in all {
            assert_eq!(Representation::named(&each.name()), Some(each));
            assert_eq!(
                Representation::with_suffix(each.audience(), each.suffix()),
                Some(each)
            );
            assert_eq!(
                Representation::label_of(each.content_type()),
                Some(each.suffix())
            );
        }
        assert_eq!(Representation::with_suffix(Audience::Classic, "csv"), None);
    }
}
