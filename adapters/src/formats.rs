//! What the elements of each format mean, and where an entry's children are sent; how a document is cut is elsewhere.

pub(crate) mod atom;
pub(crate) mod draft;
pub(crate) mod rdf;
pub(crate) mod rss;
pub(crate) mod version;

use std::borrow::Cow;

use url::Url;

use crate::entry::notes::Notes;
use crate::extensions::{
    comment_api, creative_commons, dublin_core, feed_history, itunes, opensearch, references, syndication,
    tags,
};
use crate::text::markup::XML;
use crate::text::{html, present, uri};
use crate::vocabulary::Vocabulary;
use crate::{Element, Entry, Format, Head, Link, Text, TextKind};
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
        }
    }

    /// The local name of the elements that are entries.
    pub(crate) fn entry_name(&self) -> &'static str {
        match self.format {
            Format::Rss | Format::Rdf => "item",
            Format::Atom => "entry",
        }
    }
}

/// What an element inherits from where it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) base: Option<Url>,
    /// The document named the base itself.
    pub(crate) is_rebased: bool,
    pub(crate) language: Option<String>,
}

impl Place {
    /// The place inside an element.
    pub(crate) fn enter(&self, element: &Element) -> Cow<'_, Self> {
        let base = element.attribute_ns(XML, "base");
        let language = element.attribute_ns(XML, "lang");
        if base.is_none() && language.is_none() {
            return Cow::Borrowed(self);
        }
        let mut inside = self.clone();
        if let Some(base) = base {
            inside.rebase(base);
        }
        if let Some(language) = language {
            inside.language = present(language);
        }
        Cow::Owned(inside)
    }

    /// What `xml:base` does.
    pub(crate) fn rebase(&mut self, reference: &str) {
        self.base = uri::rebase(self.base.as_ref(), reference);
        self.is_rebased = true;
    }

    /// An HTML text of this place, its relative references resolved.
    pub(crate) fn html(&self, html: &str) -> Text {
        self.text(TextKind::Html, html::absolutise(html, self.base.as_ref()))
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
    let place = place.enter(&element).into_owned();
    let mut draft = Draft::new(dialect, &place);
    draft.language(element.attribute_ns(XML, "lang").unwrap_or_default());
    if dialect.format == Format::Rdf {
        rdf::item(&element, &mut draft);
    }
    for child in children(element) {
        take(child, &mut draft);
    }
    draft.finish()
}

/// Sends one child of an entry to the vocabulary that knows it; what nobody wants is kept as it is.
fn take(child: Element, draft: &mut Draft<'_>) {
    let place = draft.place().enter(&child);
    let vocabulary = draft.vocabulary(&child.ns);
    if let Some(link) = borrowed_link(&child, vocabulary, &place) {
        draft.link(link);
    }
    let left = match vocabulary {
        Vocabulary::Rss => rss::child(child, &place, draft),
        Vocabulary::Atom => atom::child(child, &place, draft),
        Vocabulary::DublinCore | Vocabulary::DublinCoreTerms => dublin_core::child(child, draft),
        Vocabulary::Content => rss::content(child, &place, draft),
        Vocabulary::Xhtml => atom::xhtml_body(child, &place, draft),
        Vocabulary::FeedBurner => rss::original_link(child, draft),
        Vocabulary::Itunes => itunes::child(child, draft),
        _ => Some(child),
    };
    if let Some(mut left) = left {
        references::absolutise(&mut left, vocabulary, &place);
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
) -> Head {
    // The format's own elements first, wherever they stand: what other vocabularies say is second choice.
    children.sort_by_cached_key(|(child, _)| dialect.vocabulary(&child.ns) != dialect.native());
    let mut head = Head::default();
    for (child, outside) in children {
        let place = outside.enter(&child);
        let vocabulary = dialect.vocabulary(&child.ns);
        if let Some(link) = borrowed_link(&child, vocabulary, &place) {
            draft::add(&mut head.links, link);
        }
        let left = match vocabulary {
            Vocabulary::Rss => rss::head(child, &place, &mut head, notes),
            Vocabulary::Atom => atom::head(child, &place, &mut head, notes),
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
            references::absolutise(&mut left, vocabulary, &place);
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
