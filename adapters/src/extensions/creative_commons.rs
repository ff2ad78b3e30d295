//! Licences as links: the `creativeCommons` module, the `cc` vocabulary, and `dcterms:license` when
//! it is a URL.

use crate::reading::Scope;
use crate::text::present;
use crate::vocabulary::Vocabulary;
use crate::{Element, Link, text::uri};

/// The licence that an element names as a link with rel `license` (RFC 4946). The element itself
/// stays foreign markup, for it is what readers of RSS look for.
pub(crate) fn link(element: &Element, scope: &Scope) -> Option<Link> {
    if !element.name.eq_ignore_ascii_case("license") {
        return None;
    }
    let resource = element.attributes.iter().find(|attribute| {
        let unlabelled =
            attribute.ns.is_empty() || Vocabulary::of(&attribute.ns) == Vocabulary::Rdf;
        unlabelled && matches!(attribute.name.as_str(), "resource" | "href")
    });
    let named = resource.and_then(|attribute| present(&attribute.value));
    let url = named.or_else(|| element.words().filter(|text| uri::is_absolute(text)))?;
    Some(Link {
        href: scope.resolve(&url),
        rel: "license".to_owned(),
        ..Link::default()
    })
}
