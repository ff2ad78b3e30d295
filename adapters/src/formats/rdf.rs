//! RSS 0.90, 1.0 and 1.1 as RDF: the little that differs from other RSS, which is what attributes
//! of RDF mean.

use crate::reading::construct::is_web_url;
use crate::reading::{Draft, Rank};
use crate::text::present;
use crate::vocabulary::Vocabulary;
use crate::{Element, Generator, Metadata};

/// `rdf:about`, the id of an item; a web URL is also its permalink when it has no link.
pub(crate) fn item(element: &Element, draft: &mut Draft<'_>) {
    let Some(about) = about(element) else { return };
    draft.id(Rank::Fallback, &about);
    if is_web_url(&about) {
        draft.permalink(Rank::Fallback, about);
    }
}

/// `admin:generatorAgent`: a URL, often with the version in its query.
pub(crate) fn generator_agent(element: Element, metadata: &mut Metadata) -> Option<Element> {
    if element.name != "generatorAgent" {
        return Some(element);
    }
    let resource = element
        .attributes
        .iter()
        .find(|attribute| attribute.name == "resource");
    let uri = resource
        .and_then(|resource| present(&resource.value))
        .or_else(|| element.words());
    let named = uri.map(|uri| Generator {
        uri: Some(uri),
        ..Generator::default()
    });
    metadata.generator = metadata.generator.take().or(named);
    None
}

/// The value of `rdf:about`; some writers forgot the prefix.
pub(crate) fn about(element: &Element) -> Option<String> {
    let found = element.attributes.iter().find(|attribute| {
        attribute.name == "about"
            && (attribute.ns.is_empty() || Vocabulary::of(&attribute.ns) == Vocabulary::Rdf)
    });
    present(&found?.value)
}
