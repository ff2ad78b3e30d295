//! Headers (XEP-0131): their names, and the element that holds them; not which stanza has which.

use super::{element::Element, ns, shown::ShownPage};

/// The number of items.
pub(super) const TOTAL: &str = "TotalItems";
/// The cursor before the item of a push.
pub(super) const PREVIOUS: &str = "PreviousCursor";
/// The cursor behind it.
pub(super) const LAST: &str = "LastCursor";
/// The way in which a cursor was taken that could not be applied: the words of HTTP (D-8).
pub(super) const CURSOR: &str = "Smart-Feed-Cursor";
/// The generation of the feed, as on pages by HTTP.
pub(super) const GENERATION: &str = "Smart-Feed-Generation";

/// All headers (XMPP-12).
pub(super) const NAMES: [&str; 5] = [TOTAL, PREVIOUS, LAST, CURSOR, GENERATION];

/// The element of those headers that have a value.
pub(super) fn headers<const N: usize>(values: [(&str, Option<String>); N]) -> Element {
    let header = |(name, value): (&str, Option<String>)| {
        Some(
            Element::new(ns::SHIM, "header")
                .with("name", name)
                .saying(&value?),
        )
    };
    Element::new(ns::SHIM, "headers").holding_all(values.into_iter().filter_map(header))
}

/// The headers of a page.
pub(super) fn of_page(page: &ShownPage) -> Element {
    let degraded = page.degraded.map(|degraded| degraded.name().to_owned());
    headers([
        (CURSOR, degraded),
        (GENERATION, Some(page.generation.to_string())),
    ])
}
