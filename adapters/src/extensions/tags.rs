//! Categories that other vocabularies give: `itunes:category`, `itunes:keywords`, `media:category`
//! and `media:keywords`. The elements stay foreign markup besides.

use crate::reading::add;
use crate::text::present;
use crate::vocabulary::Vocabulary;
use crate::{Category, Element};

/// The scheme of what iTunes calls category or keyword. Apple names none; this one is Python
/// feedparser's.
const ITUNES: &str = "http://www.itunes.com/";

/// The scheme of a `media:category` that names none (Media RSS 1.5.1).
const MEDIA: &str = "http://search.yahoo.com/mrss/category_schema";

/// Limit of the keywords of one element that are read; Apple allowed twelve.
const KEYWORDS_MAX: usize = 256;

/// The categories that the foreign markup of an entry or a feed names.
pub(crate) fn of(foreign: &[Element]) -> Vec<Category> {
    let mut offered = Vec::new();
    for element in foreign {
        gather(element, &mut offered);
    }
    offered
}

fn gather(element: &Element, offered: &mut Vec<Category>) {
    if !matches!(
        element.name.as_str(),
        "category" | "keywords" | "group" | "content"
    ) {
        return;
    }
    match (Vocabulary::of(&element.ns), element.name.as_str()) {
        // A category holds its subcategories.
        (Vocabulary::Itunes, "category") => {
            let term = element
                .attribute("text")
                .map(str::to_owned)
                .unwrap_or_else(|| element.text());
            offer(offered, &term, Some(ITUNES), None);
            element.elements().for_each(|child| gather(child, offered));
        }
        (Vocabulary::Itunes, "keywords") => keywords(element, Some(ITUNES), offered),
        (Vocabulary::MediaRss, "keywords") => keywords(element, None, offered),
        (Vocabulary::MediaRss, "category") => {
            let scheme = element.filled("scheme");
            let label = element.filled("label");
            offer(
                offered,
                &element.text(),
                scheme.as_deref().or(Some(MEDIA)),
                label,
            );
        }
        (Vocabulary::MediaRss, "group" | "content") => {
            element.elements().for_each(|child| gather(child, offered));
        }
        _ => {}
    }
}

/// Words between commas.
fn keywords(element: &Element, scheme: Option<&str>, offered: &mut Vec<Category>) {
    let text = element.text();
    text.split(',')
        .take(KEYWORDS_MAX)
        .for_each(|term| offer(offered, term, scheme, None));
}

fn offer(offered: &mut Vec<Category>, term: &str, scheme: Option<&str>, label: Option<String>) {
    if let Some(term) = present(term) {
        add(
            offered,
            Category {
                term,
                scheme: scheme.map(str::to_owned),
                label,
            },
        );
    }
}
