//! Fields of a head that may come in several lines.

use http::{HeaderMap, HeaderName};
use std::borrow::Cow;

/// The value of a header that is a list: its lines joined, as they mean the same (RFC 9110 section
/// 5.3). Lines that are no text are left out; `None` when none is left.
pub(crate) fn list_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Cow<'a, str>> {
    let lines = headers
        .get_all(name)
        .iter()
        .filter_map(|line| line.to_str().ok());
    lines
        .map(Cow::Borrowed)
        .reduce(|all, line| Cow::Owned(format!("{all}, {line}")))
}
