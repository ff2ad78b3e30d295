//! Namespaces that Atom documents declare, used or not: an entry is then written the same in all of
//! them.

use crate::render::{document::Audience, namespaces as ns};

const FULL: &[(&str, &str)] = &[
    ("", ns::ATOM),
    ("fo", ns::SMART_FEED),
    ("at", ns::TOMBSTONES),
    ("app", ns::PUBLISHING),
];
const CLASSIC: &[(&str, &str)] = &[("", ns::ATOM)];

/// Prefixes and namespaces of the documents for an audience.
pub(super) const fn declared(audience: Audience) -> &'static [(&'static str, &'static str)] {
    match audience {
        Audience::Full => FULL,
        Audience::Classic => CLASSIC,
    }
}
