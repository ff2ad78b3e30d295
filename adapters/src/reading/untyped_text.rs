//! Texts of formats that do not say whether a text is HTML, above all RSS.

use crate::reading::Scope;
use crate::reading::text_construct::adopt;
use crate::text::markup::{XHTML, write_nodes};
use crate::text::{entities, references, visible};
use crate::{Element, Text, TextKind};

/// A title. RSS never says whether it is HTML: it is taken for HTML only if, read as XML, it still holds a tag or a reference
/// that means something: "AT&T" and "a < b" are plain, "&lt;i>" and "Q&amp;amp;A" in the source are not.
pub(crate) fn title(element: &Element, scope: &Scope) -> Option<Text> {
    let text = if element.elements().next().is_none() {
        visible(element.characters()).map(|text| scope.html(text))
    } else {
        unescaped(element.clone(), scope)
    };
    let text = text?.trimmed();
    Some(if holds_markup(&text.value) { text } else { Text { kind: TextKind::Plain, base: None, ..text } })
}

fn holds_markup(text: &str) -> bool {
    let opens = |at: usize| {
        let after = text[at + 1..].trim_start_matches('/');
        after.starts_with(|c: char| c.is_ascii_alphabetic()) || after.starts_with("!--")
    };
    let tag = memchr::memchr_iter(b'<', text.as_bytes()).find(|&at| opens(at));
    tag.is_some_and(|at| memchr::memchr(b'>', &text.as_bytes()[at..]).is_some())
        || entities::holds_reference(text)
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
            ("</p>x", true),
            ("Q&amp;A", true),
            ("&#8217;s", true),
            ("&bogus;", false),
        ] {
            assert_eq!(holds_markup(text), markup, "{text}");
        }
    }
}
