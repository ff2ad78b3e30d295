//! Texts of formats that do not say whether a text is HTML, above all RSS.

use crate::reading::Scope;
use crate::reading::text_construct::adopt;
use crate::text::markup::{XHTML, write_nodes};
use crate::text::{entities, references, visible};
use crate::{Element, Text, TextKind};

/// A title. RSS never says whether it is HTML: it is taken for HTML only if, read as XML, it still
/// holds an element or a reference that means something: "AT&T", "a < b" and `Vec<T>` are plain,
/// "&lt;i>x&lt;/i>" and "Q&amp;amp;A" in the source are not.
pub(crate) fn title(element: &Element, scope: &Scope) -> Option<Text> {
    let text = if element.elements().next().is_none() {
        visible(element.characters()).map(|text| scope.html(text))
    } else {
        unescaped(element.clone(), scope)
    };
    let text = text?.trimmed();
    Some(if holds_markup(&text.value) {
        text
    } else {
        Text {
            kind: TextKind::Plain,
            base: None,
            ..text
        }
    })
}

fn holds_markup(text: &str) -> bool {
    let tag = memchr::memchr_iter(b'<', text.as_bytes()).find(|&at| is_of_element(&text[at + 1..]));
    tag.is_some_and(|at| memchr::memchr(b'>', &text.as_bytes()[at..]).is_some())
        || entities::holds_reference(text)
}

/// Elements that need no end tag.
const WITHOUT_END: [&str; 10] = [
    "br", "hr", "img", "wbr", "p", "li", "dt", "dd", "embed", "input",
];

/// True when an element, or a comment, is written with the tag that begins with this text, behind
/// its `<`. A start tag that needs an end tag tells nothing by itself: in a title it is what the
/// title speaks of, `<div>` or `Vec<T>`.
fn is_of_element(tag: &str) -> bool {
    let name = |tag: &str| {
        tag.find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(tag.len())
    };
    let is_standalone = || {
        WITHOUT_END
            .iter()
            .any(|known| known.eq_ignore_ascii_case(&tag[..name(tag)]))
    };
    match tag.strip_prefix('/') {
        Some(end) => end.starts_with(|c: char| c.is_ascii_alphabetic()),
        None => tag.starts_with("!--") || is_standalone(),
    }
}

/// A text as HTML.
pub(crate) fn html(element: Element, scope: &Scope) -> Option<Text> {
    if element.elements().next().is_none() {
        return visible(element.into_characters()).map(|text| scope.html(text));
    }
    unescaped(element, scope)
}

/// Markup that somebody forgot to escape, written anew as HTML.
fn unescaped(mut element: Element, scope: &Scope) -> Option<Text> {
    let unlabelled = std::mem::take(&mut element.ns);
    adopt(&mut element, &unlabelled);
    references::resolve_markup(&mut element, scope.base.as_ref());
    let mut value = String::new();
    write_nodes(&mut value, &element.children, &[("", XHTML)]);
    visible(value).map(|text| scope.html(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_html_only_if_markup_is_left_in_it() {
        for (text, markup) in [
            ("AT&T", false),
            ("a < b and c > d", false),
            ("<3", false),
            ("a <b", false),
            ("<i>x</i>", true),
            ("x<br/>", true),
            ("x<BR>y", true),
            ("<img src='a'>", true),
            ("How to use <div> & a < b", false),
            ("Option<T> in Rust", false),
            ("Post 6 <b>", false),
            ("<bring>", false),
            ("<b>bold</B>", true),
            ("<p", false),
            ("</p>x", true),
            ("Q&amp;A", true),
            ("&#8217;s", true),
            ("&bogus;", false),
        ] {
            assert_eq!(holds_markup(text), markup, "{text}");
        }
    }
}
