//! Atom 1.0, its drafts, and 0.3 where the same elements had other names: what each element means.

mod source;

use crate::note::Notes;
use crate::reading::construct::{category, generator, link, picture};
use crate::reading::text_construct::{body, fragment, text};
use crate::reading::{Draft, Rank, Scope, add, add_person, fill, person};
use crate::text::markup::XML;
use crate::text::{date, references};
use crate::vocabulary::Vocabulary;
use crate::{Body, Element, Metadata, Text};

/// An Atom child of an entry, of whatever format the entry is; comes back when it is not
/// understood.
pub(crate) fn entry_child(
    element: Element,
    scope: &Scope,
    draft: &mut Draft<'_>,
) -> Option<Element> {
    // In an RSS item the elements of RSS come first.
    let rank = if draft.native() == Vocabulary::Rss {
        Rank::Borrowed
    } else {
        Rank::Native
    };
    match element.name.as_str() {
        "id" => draft.id(rank, &element.text()),
        "title" => draft.title(rank, text(element, scope)),
        "link" => draft.link(link(&element, scope)?),
        "summary" => draft.summary(rank, text(element, scope)),
        "content" => {
            draft.stated_language(element.attribute_ns(XML, "lang"));
            draft.content(rank, body(element, scope));
        }
        "author" => draft.author(Rank::Native, person::construct(&element, scope)),
        "contributor" => draft.contributor(person::construct(&element, scope)),
        "category" => match category(&element) {
            Some(category) => draft.category(category),
            None => return Some(element),
        },
        "published" | "issued" => draft.published(rank, &element.text()),
        // Of 0.3: when it was made is not when it was published, so it is also kept as it is.
        "created" => {
            draft.published(Rank::Fallback, &element.text());
            return Some(element);
        }
        "updated" | "modified" => draft.updated(rank, &element.text()),
        "rights" | "copyright" => draft.rights(text(element, scope)),
        "source" => source::read(element, scope, draft),
        _ => return Some(element),
    }
    None
}

/// `xhtml:body` in an RSS item: the content.
pub(crate) fn xhtml_body(
    mut element: Element,
    scope: &Scope,
    draft: &mut Draft<'_>,
) -> Option<Element> {
    if element.name != "body" && element.name != "div" {
        return Some(element);
    }
    references::resolve_markup(&mut element, scope.base.as_ref());
    let text = fragment(element, scope);
    draft.content(Rank::Borrowed, text.map(Body::from));
    None
}

/// An Atom child of the feed; comes back when it is not understood.
pub(crate) fn feed_child(
    element: Element,
    scope: &Scope,
    metadata: &mut Metadata,
    notes: &mut Notes,
) -> Option<Element> {
    let plain = || element.words();
    match element.name.as_str() {
        "id" => fill(&mut metadata.id, plain),
        "title" => fill(&mut metadata.title, || {
            text(element, scope).map(Text::trimmed)
        }),
        "subtitle" | "tagline" => fill(&mut metadata.description, || text(element, scope)),
        "link" => add(&mut metadata.links, link(&element, scope)),
        "author" => add_person(&mut metadata.authors, person::construct(&element, scope)),
        "contributor" => add_person(
            &mut metadata.contributors,
            person::construct(&element, scope),
        ),
        "category" => add(&mut metadata.categories, category(&element)),
        "rights" | "copyright" => fill(&mut metadata.rights, || text(element, scope)),
        "generator" => fill(&mut metadata.generator, || generator(&element, scope)),
        "logo" => fill(&mut metadata.image, || {
            plain().map(|url| picture(&url, scope))
        }),
        "icon" => fill(&mut metadata.icon, || {
            plain().map(|url| scope.resolve(&url))
        }),
        "updated" | "modified" => {
            fill(&mut metadata.updated, || date::read(&element.text(), notes))
        }
        "published" => fill(&mut metadata.published, || {
            date::read(&element.text(), notes)
        }),
        _ => return Some(element),
    }
    None
}
