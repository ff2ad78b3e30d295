//! Apple's podcast vocabulary: what it says in place of the formats' own elements. All of it also
//! stays foreign markup.

use crate::reading::construct::picture;
use crate::reading::{Draft, Rank, Scope, add_person, person};
use crate::text::present;
use crate::{Element, Metadata, Text};

/// An iTunes child of an entry; always comes back, because players read it as it is.
pub(crate) fn entry_child(element: Element, draft: &mut Draft<'_>) -> Option<Element> {
    match element.name.to_ascii_lowercase().as_str() {
        "title" => draft.title(Rank::Fallback, element.words().map(Text::plain)),
        "author" => draft.further_author(person::line(&element.text())),
        "summary" | "description" => draft.summary(Rank::Fallback, element.words().map(Text::html)),
        "subtitle" => draft.summary(Rank::LastResort, element.words().map(Text::html)),
        _ => {}
    }
    Some(element)
}

/// An iTunes child of the feed; always comes back.
pub(crate) fn feed_child(
    element: Element,
    scope: &Scope,
    metadata: &mut Metadata,
) -> Option<Element> {
    match element.name.to_ascii_lowercase().as_str() {
        "author" => add_person(&mut metadata.authors, person::line(&element.text())),
        "image" if metadata.image.is_none() => {
            let url = element
                .attribute("href")
                .or_else(|| element.attribute("url"))
                .and_then(present);
            metadata.image = url.map(|url| picture(&url, scope));
        }
        "summary" | "description" if metadata.description.is_none() => {
            metadata.description = element.words().map(Text::plain)
        }
        _ => {}
    }
    Some(element)
}
