//! Dublin Core and its terms: second choices for fields that the formats have too; nothing else of
//! them is understood.

use crate::note::Notes;
use crate::reading::{Draft, Rank, add, add_person, person};
use crate::text::{date, present};
use crate::{Category, Element, Metadata, Text};

/// A Dublin Core child of an entry; comes back when it is not understood.
pub(crate) fn entry_child(element: Element, draft: &mut Draft<'_>) -> Option<Element> {
    let text = element.text();
    match element.name.to_ascii_lowercase().as_str() {
        "title" => draft.title(Rank::Borrowed, present(&text).map(Text::plain)),
        "description" | "abstract" => draft.summary(Rank::Borrowed, present(&text).map(Text::html)),
        "creator" | "author" => draft.author(Rank::Borrowed, person::line(&text)),
        "contributor" => draft.contributor(person::line(&text)),
        "subject" => draft.category(category(&text)?),
        // One date alone says that something happened then; beside another it is that of the last
        // change.
        "date" => {
            draft.published(Rank::Borrowed, &text);
            draft.updated(Rank::Fallback, &text);
        }
        "issued" => draft.published(Rank::Borrowed, &text),
        // When it was made is not when it was published, so it is also kept as it is.
        "created" | "available" => {
            draft.published(Rank::Fallback, &text);
            return Some(element);
        }
        "modified" => draft.updated(Rank::Borrowed, &text),
        "rights" | "license" => draft.rights(present(&text).map(Text::plain)),
        "language" => draft.language(&text),
        _ => return Some(element),
    }
    None
}

/// A Dublin Core child of the feed; comes back when it is not understood.
pub(crate) fn feed_child(
    element: Element,
    metadata: &mut Metadata,
    notes: &mut Notes,
) -> Option<Element> {
    let text = element.text();
    let plain = || present(&text).map(Text::plain);
    match element.name.to_ascii_lowercase().as_str() {
        "title" => metadata.title = metadata.title.take().or_else(plain),
        "description" => metadata.description = metadata.description.take().or_else(plain),
        "creator" | "author" => {
            if let Some(person) = person::line(&text) {
                add_person(&mut metadata.authors, person);
            }
        }
        "contributor" => {
            if let Some(person) = person::line(&text) {
                add_person(&mut metadata.contributors, person);
            }
        }
        "subject" => {
            if let Some(category) = category(&text) {
                add(&mut metadata.categories, category);
            }
        }
        "date" | "modified" => {
            metadata.updated = metadata.updated.take().or_else(|| date::read(&text, notes))
        }
        "issued" => {
            metadata.published = metadata
                .published
                .take()
                .or_else(|| date::read(&text, notes))
        }
        "rights" => metadata.rights = metadata.rights.take().or_else(plain),
        "language" => metadata.language = metadata.language.take().or_else(|| present(&text)),
        _ => return Some(element),
    }
    None
}

fn category(text: &str) -> Option<Category> {
    Some(Category {
        term: present(text)?,
        ..Category::default()
    })
}
