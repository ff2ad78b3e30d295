//! Fields of a head as texts, read and written.

use http::{HeaderMap, HeaderName, HeaderValue, header::IntoHeaderName};
use std::borrow::Cow;

/// The first value of a header; `None` for one that is no text.
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Sets a header to a text. One that cannot stand in a header is left out.
pub(crate) fn set(headers: &mut HeaderMap, name: impl IntoHeaderName, text: impl AsRef<str>) {
    if let Ok(value) = HeaderValue::try_from(text.as_ref()) {
        headers.insert(name, value);
    }
}

/// The media type in the value of `Content-Type`, without its parameters (RFC 9110 section 8.3.1).
pub(crate) fn media_type(content_type: &str) -> &str {
    let end = content_type.find(';').unwrap_or(content_type.len());
    content_type[..end].trim()
}

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
