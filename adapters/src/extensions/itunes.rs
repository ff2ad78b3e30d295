//! Apple's podcast vocabulary: what it says in place of the formats' own elements. All of it also stays
//! foreign markup.

use crate::formats::Place;
use crate::formats::atom::picture;
use crate::formats::draft::{Draft, Rank, add_person};
use crate::formats::rss::person;
use crate::text::present;
use crate::{Element, Metadata, Text};

/// An iTunes child of an entry; always comes back, because players read it as it is.
pub(crate) fn child(element: Element, draft: &mut Draft<'_>) -> Option<Element> {
    match element.name.to_ascii_lowercase().as_str() {
        "title" => draft.title(Rank::Fallback, present(&element.text()).map(Text::plain)),
        "author" => draft.author(Rank::Fallback, person(&element.text())),
        "summary" => draft.summary(Rank::Fallback, present(&element.text()).map(Text::html)),
        "subtitle" => draft.summary(Rank::LastResort, present(&element.text()).map(Text::html)),
        _ => {}
    }
    Some(element)
}

/// An iTunes child of the head; always comes back.
pub(crate) fn head(element: Element, place: &Place, head: &mut Metadata) -> Option<Element> {
    match element.name.to_ascii_lowercase().as_str() {
        "author" if head.authors.is_empty() => {
            if let Some(person) = person(&element.text()) {
                add_person(&mut head.authors, person);
            }
        }
        "image" if head.image.is_none() => {
            let url = element.attribute("href").or_else(|| element.attribute("url")).and_then(present);
            head.image = url.map(|url| picture(&url, place));
        }
        "summary" if head.description.is_none() => {
            head.description = present(&element.text()).map(Text::plain)
        }
        _ => {}
    }
    Some(element)
}
