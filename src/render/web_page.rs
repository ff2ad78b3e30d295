//! The frame of our pages for people: head, style, the words at the end, and what a browser may do
//! with them. No script, every text escaped; not what the pages say.

use super::xml::{self, Xml};
use crate::feed::{moment::Moment, stamp::Stamp};
use std::borrow::Cow;

/// The media type of these pages.
pub const CONTENT_TYPE: &str = "text/html; charset=utf-8";

/// Permissions of these pages, as `Content-Security-Policy`: show themselves, in the one style they
/// carry.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'sha256-YV5slaOEcs7TnATrfBjxdDgQa+njyAIEkQivh6WRsEY='; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Permissions of pages with posts of others: pictures, sound and films of theirs, too. Nothing
/// runs.
pub(super) const POSTS_POLICY: &str = "default-src 'none'; style-src 'sha256-YV5slaOEcs7TnATrfBjxdDgQa+njyAIEkQivh6WRsEY='; img-src http: https: data:; media-src http: https:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const STYLE: &str = include_str!("web_page/style.css");

/// Attributes of a title of somebody else's: it runs in its own direction, whatever the page's is.
pub(super) const TITLE: &[(&str, Option<&str>)] =
    &[("class", Some("title")), ("dir", Some("auto"))];

/// Characters of a title that are shown.
const TITLE_CHARS_MAX: usize = 200;

/// A title that is no longer than a title; the style shows three lines of it.
pub(super) fn clamped(title: Cow<'_, str>) -> Cow<'_, str> {
    match title.char_indices().nth(TITLE_CHARS_MAX) {
        Some((at, _)) => Cow::Owned(format!("{}…", title[..at].trim_end())),
        None => title,
    }
}

/// Attributes of a line that stands back.
pub(super) const QUIET: &[(&str, Option<&str>)] = &[("class", Some("quiet"))];

/// A page in a language, with the beginning of its head.
pub(super) fn begin(language: &str, title: &str) -> Xml {
    let mut page = Xml::html();
    page.open("html", &[("lang", Some(language))]);
    page.open("head", &[]);
    page.empty("meta", &[("charset", Some("utf-8"))]);
    let scale = ("content", Some("width=device-width, initial-scale=1"));
    page.empty("meta", &[("name", Some("viewport")), scale]);
    page.leaf("title", &[], title);
    page.holding("style", &[], |out| out.push_str(STYLE));
    page
}

/// The end of the head, and the beginning of what is seen.
pub(super) fn begin_main(page: &mut Xml, class: Option<&str>) {
    page.close("head");
    page.open("body", &[]);
    page.open("main", &[("class", class)]);
}

/// Writes the head of a table with these columns.
pub(super) fn table_head(page: &mut Xml, columns: &[&str]) {
    page.open("thead", &[]);
    page.open("tr", &[]);
    for column in columns {
        page.leaf("th", &[("scope", Some("col"))], column);
    }
    page.close("tr");
    page.close("thead");
}

pub(super) fn link(page: &mut Xml, rel: &str, media_type: Option<&str>, href: &str) {
    let attributes = [
        ("rel", Some(rel)),
        ("type", media_type),
        ("href", Some(href)),
    ];
    page.empty("link", &attributes);
}

pub(super) fn anchor(out: &mut String, href: &str, words: &str) {
    out.push_str("<a");
    xml::push_attribute(out, "href", href);
    out.push('>');
    xml::push_text(out, words);
    out.push_str("</a>");
}

pub(super) fn code(out: &mut String, text: &str) {
    out.push_str("<code>");
    xml::push_text(out, text);
    out.push_str("</code>");
}

/// A moment, to the minute for people.
pub(super) fn time(page: &mut Xml, at: Stamp) {
    classed_time(page, None, at);
}

/// Likewise, with a class that programs know.
pub(super) fn classed_time(page: &mut Xml, class: Option<&str>, at: impl Into<Moment>) {
    let exact = at.into().rfc3339();
    // HTML knows three digits of a second.
    let machine = match exact.split_once('.') {
        Some((second, digits)) => format!("{second}.{}Z", &digits[..3.min(digits.len())]),
        None => exact,
    };
    let human = machine
        .get(..16)
        .map(|minute| format!("{} UTC", minute.replace('T', " ")));
    let attributes = [("class", class), ("datetime", Some(machine.as_str()))];
    page.leaf("time", &attributes, human.as_deref().unwrap_or(&machine));
}

/// The end of every page, from inside its `main`.
pub(super) fn finish(mut page: Xml) -> Vec<u8> {
    page.leaf(
        "footer",
        &[],
        "Served by everfeed, which keeps what feeds forget.",
    );
    page.close("main");
    page.close("body");
    page.close("html");
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use sha2::{Digest as _, Sha256};

    #[test]
    fn the_policies_allow_the_style_that_pages_carry_and_nothing_that_runs() {
        let hash = STANDARD.encode(Sha256::digest(STYLE));
        for policy in [CONTENT_SECURITY_POLICY, POSTS_POLICY] {
            assert!(
                policy.contains(&format!("style-src 'sha256-{hash}'")),
                "it is now sha256-{hash}"
            );
            assert!(
                policy.starts_with("default-src 'none'") && !policy.contains("script-src"),
                "{policy}"
            );
        }
        assert!(
            !STYLE.contains('<'),
            "nothing in the style could end its element"
        );
    }

    #[test]
    fn the_style_has_an_answer_to_what_posts_bring() {
        let (_, dark) = STYLE
            .split_once("@media (prefers-color-scheme: dark) {")
            .unwrap();
        let dark = dark.split_once("\n}\n").unwrap().0;
        for rule in [
            "article font { color: inherit; }",
            "article [bgcolor] { background: none; }",
        ] {
            assert!(
                dark.contains(rule),
                "colours for white paper cannot be read on black: {rule}"
            );
        }
        let cells = STYLE
            .lines()
            .find(|line| line.starts_with("article th, article td {"))
            .unwrap();
        assert!(
            cells.contains("overflow-wrap: break-word"),
            "a wide table scrolls: {cells}"
        );
        assert!(
            STYLE.contains(".byline data { display: none; }"),
            "what is not seen moves nothing aside"
        );
    }
}
