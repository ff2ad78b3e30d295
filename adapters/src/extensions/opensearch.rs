//! OpenSearch response elements: which part of a longer list a document shows. What else OpenSearch
//! says stays foreign.

use crate::{Element, Paging};

/// An OpenSearch child of the feed; comes back when it is no number that is understood. The first
/// of each kind counts.
pub(crate) fn feed_child(element: Element, paging: &mut Paging) -> Option<Element> {
    let field = match element.name.as_str() {
        "totalResults" => &mut paging.total_items,
        "startIndex" => &mut paging.first_index,
        "itemsPerPage" => &mut paging.page_items,
        _ => return Some(element),
    };
    match element.words().and_then(|text| text.parse().ok()) {
        Some(number) => *field = field.or(Some(number)),
        None => return Some(element),
    }
    None
}
