//! URLs that a consumer may follow: the one place where it is decided which of them leave the
//! house. The store keeps all; identifiers (`atom:id`, `guid`, the scheme of a category) are not
//! for following and pass as they are.

use super::xml;
use everfeed_adapters::text::uri::{is_image_data, may_be_followed};
use std::borrow::Cow;

// Decides: Which links of a publisher are published?
/// The URL of a link as it may stand in a document. `None` when nothing is left of it, or when it
/// would run something or lead to what nobody knows: `javascript:` in an upstream's link is no
/// link.
pub(super) fn link(url: &str) -> Option<Cow<'_, str>> {
    iri(url).filter(|iri| may_be_followed(iri))
}

/// The URL of a link to a page of the web, which may be followed from a page of ours and be a
/// permalink of RSS: what an upstream calls its site could be `javascript:`.
pub(super) fn web(url: &str) -> Option<Cow<'_, str>> {
    link(url).filter(|url| is_web(url))
}

/// True for an absolute URL of a page of the web.
pub(super) fn is_web(url: &str) -> bool {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// The URL of a picture, which may be the picture itself.
pub(super) fn image(url: &str) -> Option<Cow<'_, str>> {
    iri(url).filter(|iri| may_be_named(iri))
}

/// An IRI without the signs that stand around one in texts, escaped as browsers do it (URL
/// standard, section 1.3).
fn iri(url: &str) -> Option<Cow<'_, str>> {
    let iri = xml::iri(url)?;
    if !iri.contains(['"', '<', '>']) {
        return Some(iri);
    }
    Some(Cow::Owned(
        iri.replace('"', "%22")
            .replace('<', "%3C")
            .replace('>', "%3E"),
    ))
}

/// True for URLs that an attribute of foreign markup may hold.
pub(super) fn may_be_named(url: &str) -> bool {
    may_be_followed(url) || is_image_data(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_run_something_or_lead_nowhere_known_are_left_out() {
        for url in [
            "javascript:alert(1)",
            "java\u{1}script:alert(1)",
            "VBSCRIPT:x",
            "data:text/html,x",
            "file:///x",
            "x-y:z",
            " ",
        ] {
            assert_eq!(link(url), None, "{url}");
        }
        for url in [
            "http://e.org/",
            "/relative",
            "mailto:jo@e.org",
            "urn:x:y",
            "magnet:?xt=urn:x",
        ] {
            assert_eq!(link(url).as_deref(), Some(url));
        }
        assert_eq!(link("data:image/png;base64,AA=="), None);
        assert_eq!(
            link("http://e.org/a \"b\"<c>").as_deref(),
            Some("http://e.org/a%20%22b%22%3Cc%3E")
        );
        assert!(image("data:image/png;base64,AA==").is_some());
        assert_eq!(image("data:image/svg+xml,<svg>"), None);
    }
}
