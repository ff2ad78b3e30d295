//! Dublin Core and its terms: second choices for fields that the formats have too; nothing else of
//! them is understood.

use crate::note::Notes;
use crate::reading::{Draft, Rank, add, add_person, fill, person};
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
        "title" => fill(&mut metadata.title, plain),
        "description" => fill(&mut metadata.description, plain),
        "creator" | "author" => add_person(&mut metadata.authors, person::line(&text)),
        "contributor" => add_person(&mut metadata.contributors, person::line(&text)),
        "subject" => add(&mut metadata.categories, category(&text)),
        "date" | "modified" => fill(&mut metadata.updated, || date::read(&text, notes)),
        "issued" => fill(&mut metadata.published, || date::read(&text, notes)),
        "rights" => fill(&mut metadata.rights, plain),
        "language" => fill(&mut metadata.language, || present(&text)),
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
