//! The dispatcher: sends each element of an entry or a feed to the format or the extension that
//! knows its vocabulary.

use crate::extensions::{
    comment_api, creative_commons, dublin_core, feed_history, itunes, media_rss, moved, opensearch,
    references as kept, syndication, tags,
};
use crate::formats::{atom, cdf, json_feed, rdf, rss};
use crate::note::Notes;
use crate::reading::{Dialect, Draft, Scope, add, add_categories, language_tag};
use crate::text::markup::XML;
use crate::text::{is_one_of, references};
use crate::vocabulary::Vocabulary;
use crate::{Element, Entry, Format, Link, Metadata};

/// Reads an entry that is an element.
pub(crate) fn entry(element: Element, dialect: &Dialect, scope: &Scope) -> (Entry, Notes) {
    let mut notes = Notes::default();
    let scope = scope.enter(&element, &mut notes).into_owned();
    let mut draft = Draft::new(dialect, &scope, notes);
    draft.stated_language(element.attribute_ns(XML, "lang"));
    match dialect.format {
        Format::Rdf => rdf::item(&element, &mut draft),
        Format::Cdf => cdf::item(&element, &scope, &mut draft),
        Format::Rss | Format::Atom | Format::JsonFeed | Format::Resource => {}
    }
    for child in element.into_elements() {
        take(child, &mut draft);
    }
    finish(draft)
}

/// Reads an entry that is an item of a JSON Feed.
pub(crate) fn json_item(json: &str, scope: &Scope) -> (Entry, Notes) {
    let dialect = Dialect {
        format: Format::JsonFeed,
        own: Vec::new(),
        slash_order: None,
    };
    let mut draft = Draft::new(&dialect, scope, Notes::default());
    json_feed::item(json, &mut draft);
    finish(draft)
}

/// The entry, completed with what stands in its foreign markup.
fn finish(mut draft: Draft<'_>) -> (Entry, Notes) {
    media_rss::settle(&mut draft);
    draft.further_categories(tags::of(draft.kept()));
    draft.finish()
}

// Decides: Which format or extension reads an element?
/// Sends one child of an entry to the vocabulary that knows it; an element that none understands is
/// kept as it is.
fn take(child: Element, draft: &mut Draft<'_>) {
    let outside = draft.scope();
    let scope = outside.enter(&child, draft.notes());
    let vocabulary = draft.vocabulary(&child.ns);
    if let Some(link) = borrowed_link(&child, vocabulary, &scope) {
        draft.link(link);
    }
    let left = match vocabulary {
        Vocabulary::Rss => rss::entry_child(child, &scope, draft).and_then(|left| {
            let is_borrowed = draft.native() == Vocabulary::Rss && is_atom_child(&left.name);
            if is_borrowed {
                atom::entry_child(left, &scope, draft)
            } else {
                Some(left)
            }
        }),
        Vocabulary::Atom => atom::entry_child(child, &scope, draft).and_then(|left| {
            let is_borrowed = draft.native() == Vocabulary::Atom && is_rss_child(&left.name);
            if is_borrowed {
                rss::entry_child(left, &scope, draft)
            } else {
                Some(left)
            }
        }),
        Vocabulary::Cdf => cdf::entry_child(child, &scope, draft),
        Vocabulary::DublinCore | Vocabulary::DublinCoreTerms => {
            dublin_core::entry_child(child, draft)
        }
        Vocabulary::Content => rss::content(child, &scope, draft),
        Vocabulary::Xhtml => atom::xhtml_body(child, &scope, draft),
        Vocabulary::FeedBurner => rss::original_link(child, draft),
        Vocabulary::Itunes => itunes::entry_child(child, draft),
        _ => Some(child),
    };
    if let Some(mut left) = left {
        references::resolve_foreign(&mut left, outside.base.as_ref());
        kept::absolutise(&mut left, vocabulary, &scope);
        draft.keep(left);
    }
}

/// True for the names of Atom's elements that entries of RSS have without their namespace.
fn is_atom_child(name: &str) -> bool {
    const NAMES: &str = "contributor published issued created updated modified rights copyright";
    is_one_of(name, NAMES)
}

/// True for the names of RSS's elements that entries of Atom have.
fn is_rss_child(name: &str) -> bool {
    matches!(name, "description" | "pubDate" | "enclosure" | "comments")
}

/// True for the names of Atom's elements that feeds of RSS have without their namespace.
fn is_atom_head(name: &str) -> bool {
    const NAMES: &str = "contributor subtitle tagline rights updated modified published icon logo";
    is_one_of(name, NAMES)
}

/// The link that an element of another vocabulary stands for.
fn borrowed_link(element: &Element, vocabulary: Vocabulary, scope: &Scope) -> Option<Link> {
    match vocabulary {
        Vocabulary::CreativeCommons | Vocabulary::DublinCoreTerms => {
            creative_commons::link(element, scope)
        }
        Vocabulary::CommentApi => comment_api::link(element, scope),
        _ => None,
    }
}

/// Reads the metadata of a feed from the elements that stand outside its entries.
pub(crate) fn metadata(
    mut children: Vec<(Element, Scope)>,
    dialect: &Dialect,
    scope: &Scope,
    notes: &mut Notes,
) -> Metadata {
    // The format's own elements first, wherever they stand: what other vocabularies say is second
    // choice.
    children.sort_by_cached_key(|(child, _)| dialect.vocabulary(&child.ns) != dialect.native());
    let mut metadata = Metadata::default();
    for (child, outside) in children {
        let scope = outside.enter(&child, notes);
        let vocabulary = dialect.vocabulary(&child.ns);
        add(
            &mut metadata.links,
            borrowed_link(&child, vocabulary, &scope),
        );
        let left = match vocabulary {
            Vocabulary::Rss => match rss::feed_child(child, &scope, &mut metadata, notes) {
                Some(left) if is_atom_head(&left.name) => {
                    atom::feed_child(left, &scope, &mut metadata, notes)
                }
                left => left,
            },
            Vocabulary::Atom => atom::feed_child(child, &scope, &mut metadata, notes),
            Vocabulary::Cdf => cdf::feed_child(child, &scope, &mut metadata, notes),
            Vocabulary::DublinCore | Vocabulary::DublinCoreTerms => {
                dublin_core::feed_child(child, &mut metadata, notes)
            }
            Vocabulary::Admin => rdf::generator_agent(child, &mut metadata),
            Vocabulary::Syndication => syndication::feed_child(child, &mut metadata.rhythm),
            Vocabulary::OpenSearch => opensearch::feed_child(child, &mut metadata.paging),
            Vocabulary::FeedHistory => {
                feed_history::feed_child(child, &scope, &mut metadata.history, notes)
            }
            Vocabulary::Itunes => itunes::feed_child(child, &scope, &mut metadata),
            _ => Some(child),
        };
        if let Some(mut left) = left {
            references::resolve_foreign(&mut left, outside.base.as_ref());
            kept::absolutise(&mut left, vocabulary, &scope);
            metadata.foreign.push(left);
        }
    }
    moved::note(&metadata, scope, notes);
    syndication::settle(&mut metadata);
    // A feed has nothing to inherit from: one without a language names none.
    let of_scope = || {
        scope
            .language
            .clone()
            .filter(|language| !language.is_empty())
    };
    metadata.language = metadata.language.or_else(of_scope).map(language_tag);
    feed_history::settle(&metadata.history, notes);
    add_categories(&mut metadata.categories, tags::of(&metadata.foreign));
    metadata
}
