//! RSS 0.90, 1.0 and 1.1 as RDF: the little that differs from other RSS, which is what attributes of RDF mean.

use super::draft::{Draft, Rank, is_web_url};
use crate::Element;
use crate::text::present;
use crate::vocabulary::Vocabulary;

/// `rdf:about`, the id of an item; a web URL is also its permalink when it has no link.
pub(crate) fn item(element: &Element, draft: &mut Draft<'_>) {
    let Some(about) = about(element) else { return };
    draft.id(Rank::Fallback, &about);
    if is_web_url(&about) {
        draft.permalink(Rank::Fallback, about);
    }
}

/// The value of `rdf:about`; some writers forgot the prefix.
pub(crate) fn about(element: &Element) -> Option<String> {
    let found = element.attributes.iter().find(|attribute| {
        attribute.name == "about"
            && (attribute.ns.is_empty() || Vocabulary::of(&attribute.ns) == Vocabulary::Rdf)
    });
    present(&found?.value)
}
