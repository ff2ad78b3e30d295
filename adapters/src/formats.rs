//! What the elements of each format mean, and where an entry's children are sent; how a document is cut is elsewhere.

pub(crate) mod atom;
pub(crate) mod cdf;
pub(crate) mod draft;
pub(crate) mod json_feed;
pub(crate) mod rdf;
pub(crate) mod resource;
pub(crate) mod rss;
pub(crate) mod version;

use std::borrow::Cow;

use url::Url;

use crate::entry::notes::Notes;
use crate::extensions::{
    comment_api, creative_commons, dublin_core, feed_history, itunes, opensearch, references as kept,
    syndication, tags,
};
use crate::text::markup::XML;
use crate::text::{html, present, references, uri};
use crate::vocabulary::Vocabulary;
use crate::{Element, Entry, Format, Link, Metadata, Note, Text, TextKind};
use draft::Draft;

/// A format as one document spells it: whatever namespace the document put its own elements into is the format's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) format: Format,
    pub(crate) own: Vec<String>,
}

impl Dialect {
    /// The vocabulary of a namespace in this document.
    pub(crate) fn vocabulary(&self, namespace: &str) -> Vocabulary {
        if self.own.iter().any(|own| own == namespace) {
            return self.native();
        }
        Vocabulary::of(namespace)
    }

    /// The vocabulary of the format itself.
    pub(crate) fn native(&self) -> Vocabulary {
        match self.format {
            Format::Rss | Format::Rdf => Vocabulary::Rss,
            Format::Atom => Vocabulary::Atom,
            Format::Cdf => Vocabulary::Cdf,
            // What has no elements has no vocabulary of them.
            Format::JsonFeed | Format::Resource => Vocabulary::Foreign,
        }
    }

    /// The local name of the elements that are entries.
    pub(crate) fn entry_name(&self) -> &'static str {
        match self.format {
            Format::Atom => "entry",
            Format::Rss | Format::Rdf | Format::Cdf | Format::JsonFeed | Format::Resource => "item",
        }
    }
}

/// How much of a bad `xml:base` is told.
const BASE_SHOWN_CHARS: usize = 100;

/// What an element inherits from where it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) base: Option<Url>,
    /// The document named the base itself.
    pub(crate) is_rebased: bool,
    pub(crate) language: Option<String>,
}

impl Place {
    /// The place inside an element. An `xml:base` that is none is passed over, with a note.
    pub(crate) fn enter(&self, element: &Element, notes: &mut Notes) -> Cow<'_, Self> {
        let base = element.attribute_ns(XML, "base");
        let language = element.attribute_ns(XML, "lang");
        if base.is_none() && language.is_none() {
            return Cow::Borrowed(self);
        }
        let mut inside = self.clone();
        if let Some(base) = base {
            inside.rebase(base, notes);
        }
        if let Some(language) = language {
            inside.language = present(language);
        }
        Cow::Owned(inside)
    }

    /// Goes on from an `xml:base`, if it is one.
    pub(crate) fn rebase(&mut self, reference: &str, notes: &mut Notes) {
        match uri::rebase(self.base.as_ref(), reference) {
            Some(base) => {
                self.base = Some(base);
                self.is_rebased = true;
            }
            None => {
                let start: String = reference.chars().take(BASE_SHOWN_CHARS).collect();
                notes.add(Note::Other(format!("no base for references: {start:?}")));
            }
        }
    }

    /// An HTML text of this place, its relative references resolved.
    pub(crate) fn html<'h>(&self, html: impl Into<Cow<'h, str>>) -> Text {
        let html = html.into();
        let resolved = match html::absolutise(&html, self.base.as_ref()) {
            Cow::Owned(resolved) => Some(resolved),
            Cow::Borrowed(_) => None,
        };
        self.text(TextKind::Html, resolved.unwrap_or_else(|| html.into_owned()))
    }

    /// A text of this place.
    pub(crate) fn text(&self, kind: TextKind, value: impl Into<String>) -> Text {
        // Plain text has no references.
        let base = self.base.as_ref().filter(|_| self.is_rebased && kind != TextKind::Plain);
        Text {
            kind,
            value: value.into(),
            language: self.language.clone().map(language),
            base: base.map(Url::to_string),
        }
    }

    /// A reference made absolute.
    pub(crate) fn resolve(&self, reference: &str) -> String {
        uri::resolve(self.base.as_ref(), reference)
    }
}

/// Reads an entry.
pub(crate) fn entry(element: Element, dialect: &Dialect, place: &Place) -> (Entry, Notes) {
    let mut notes = Notes::default();
    let place = place.enter(&element, &mut notes).into_owned();
    let mut draft = Draft::new(dialect, &place);
    *draft.notes() = notes;
    draft.language(element.attribute_ns(XML, "lang").unwrap_or_default());
    match dialect.format {
        Format::Rdf => rdf::item(&element, &mut draft),
        Format::Cdf => cdf::item(&element, &place, &mut draft),
        Format::Rss | Format::Atom | Format::JsonFeed | Format::Resource => {}
    }
    for child in children(element) {
        take(child, &mut draft);
    }
    draft.finish()
}

/// Sends one child of an entry to the vocabulary that knows it; what nobody wants is kept as it is.
fn take(child: Element, draft: &mut Draft<'_>) {
    let outside = draft.place();
    let place = outside.enter(&child, draft.notes());
    let vocabulary = draft.vocabulary(&child.ns);
    if let Some(link) = borrowed_link(&child, vocabulary, &place) {
        draft.link(link);
    }
    let left = match vocabulary {
        Vocabulary::Rss => rss::child(child, &place, draft),
        Vocabulary::Atom => atom::child(child, &place, draft),
        Vocabulary::Cdf => cdf::child(child, &place, draft),
        Vocabulary::DublinCore | Vocabulary::DublinCoreTerms => dublin_core::child(child, draft),
        Vocabulary::Content => rss::content(child, &place, draft),
        Vocabulary::Xhtml => atom::xhtml_body(child, &place, draft),
        Vocabulary::FeedBurner => rss::original_link(child, draft),
        Vocabulary::Itunes => itunes::child(child, draft),
        _ => Some(child),
    };
    if let Some(mut left) = left {
        references::resolve_foreign(&mut left, outside.base.as_ref());
        kept::absolutise(&mut left, vocabulary, &place);
        draft.foreign(left);
    }
}

/// The link that an element of another vocabulary stands for.
fn borrowed_link(element: &Element, vocabulary: Vocabulary, place: &Place) -> Option<Link> {
    match vocabulary {
        Vocabulary::CreativeCommons | Vocabulary::DublinCoreTerms => creative_commons::link(element, place),
        Vocabulary::CommentApi => comment_api::link(element, place),
        _ => None,
    }
}

/// Reads the head out of the elements that stand outside the entries.
pub(crate) fn head(
    mut children: Vec<(Element, Place)>,
    dialect: &Dialect,
    place: &Place,
    notes: &mut Notes,
) -> Metadata {
    // The format's own elements first, wherever they stand: what other vocabularies say is second choice.
    children.sort_by_cached_key(|(child, _)| dialect.vocabulary(&child.ns) != dialect.native());
    let mut head = Metadata::default();
    for (child, outside) in children {
        let place = outside.enter(&child, notes);
        let vocabulary = dialect.vocabulary(&child.ns);
        if let Some(link) = borrowed_link(&child, vocabulary, &place) {
            draft::add(&mut head.links, link);
        }
        let left = match vocabulary {
            Vocabulary::Rss => rss::head(child, &place, &mut head, notes),
            Vocabulary::Atom => atom::head(child, &place, &mut head, notes),
            Vocabulary::Cdf => cdf::head(child, &place, &mut head, notes),
            Vocabulary::DublinCore | Vocabulary::DublinCoreTerms => {
                dublin_core::head(child, &mut head, notes)
            }
            Vocabulary::Admin => rdf::generator_agent(child, &mut head),
            Vocabulary::Syndication => syndication::head(child, &mut head.rhythm),
            Vocabulary::OpenSearch => opensearch::head(child, &mut head.paging),
            Vocabulary::FeedHistory => feed_history::head(child, &place, &mut head.history, notes),
            Vocabulary::Itunes => itunes::head(child, &place, &mut head),
            _ => Some(child),
        };
        if let Some(mut left) = left {
            references::resolve_foreign(&mut left, outside.base.as_ref());
            kept::absolutise(&mut left, vocabulary, &place);
            head.foreign.push(left);
        }
    }
    syndication::settle(&mut head);
    head.language = head.language.or_else(|| place.language.clone()).map(language);
    feed_history::settle(&head.history, notes);
    tags::settle(&mut head.categories, &head.foreign);
    head
}

/// A language tag with the hyphens that it is written with (RFC 5646); some writers took the name of a locale.
pub(crate) fn language(tag: String) -> String {
    tag.replace('_', "-")
}

/// The child elements, owned.
pub(crate) fn children(element: Element) -> impl Iterator<Item = Element> {
    element.children.into_iter().filter_map(|node| match node {
        crate::Node::Element(element) => Some(element),
        crate::Node::Text(_) => None,
    })
}
