//! Text constructs and contents of Atom (RFC 4287 sections 3.1 and 4.1.3), those of its drafts and
//! of 0.3 included.

use crate::reading::{Scope, language_tag};
use crate::text::markup::{XHTML, XML, write_nodes};
use crate::text::{base64, clean, is_one_of, present, references, visible};
use crate::{Body, Element, Node, Text, TextKind};

/// Kind of the inside of an element, by its `type` or the `mode` of 0.3.
#[derive(Debug, PartialEq, Eq)]
enum ConstructKind {
    Plain,
    Html,
    Xhtml,
    /// Base64 of a text, which only 0.3 allowed.
    Base64,
    /// The children are the content: markup of another kind.
    Markup(String),
    /// Text of another kind, or base64.
    Other(String),
}

impl ConstructKind {
    /// Illegal types are read for what their writers meant: `text/plain`, `text/html`, the empty
    /// string, types with parameters. Child elements where none may be are XHTML that nobody
    /// labelled.
    fn of(element: &Element) -> Self {
        let named = element.attribute("type").unwrap_or("").to_ascii_lowercase();
        let named = named.split(';').next().unwrap_or("").trim();
        let has_children = element.elements().next().is_some();
        let is_plain = matches!(named, "" | "text" | "text/plain" | "plain");
        let is_html = matches!(named, "html" | "text/html");
        let is_xhtml = matches!(named, "xhtml" | "application/xhtml+xml");
        let is_encoded = named == "base64";
        // TypePad put escaped HTML into a div; there is no element in that.
        let is_source = is_html
            && element
                .elements()
                .all(|div| div.name == "div" && div.elements().next().is_none());
        let escaped = is_source
            || element
                .attribute("mode")
                .is_some_and(|mode| mode.eq_ignore_ascii_case("escaped"));
        let is_base64 = is_encoded
            || element
                .attribute("mode")
                .is_some_and(|mode| mode.trim() == "base64");
        if is_base64 && !has_children && (is_plain || is_html || is_encoded) {
            return Self::Base64;
        }
        if is_html || is_xhtml {
            // Labelled XHTML, but escaped: what is there is HTML source.
            return if has_children && !escaped {
                Self::Xhtml
            } else {
                Self::Html
            };
        }
        if has_children && (is_plain || is_encoded) {
            return Self::Xhtml;
        }
        if is_plain {
            return Self::Plain;
        }
        if has_children {
            Self::Markup(named.to_owned())
        } else {
            Self::Other(named.to_owned())
        }
    }
}

/// The last of the alternatives of a content of 0.3 (`multipart/alternative`), which is the fullest
/// (RFC 2046 section 5.1.4); any other element is its own.
fn best_alternative(mut element: Element) -> Element {
    let named = element
        .attribute("type")
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let is_alternative =
        |node: &Node| matches!(node, Node::Element(child) if child.name == element.name);
    if !named.starts_with("multipart/") {
        return element;
    }
    match element
        .children
        .iter()
        .rposition(is_alternative)
        .map(|at| element.children.swap_remove(at))
    {
        Some(Node::Element(best)) => best,
        _ => element,
    }
}

/// A text construct (RFC 4287 section 3.1).
pub(crate) fn text(element: Element, scope: &Scope) -> Option<Text> {
    let mut element = best_alternative(element);
    match ConstructKind::of(&element) {
        ConstructKind::Xhtml | ConstructKind::Markup(_) => {
            references::resolve_markup(&mut element, scope.base.as_ref());
            fragment(element, scope)
        }
        ConstructKind::Html => visible(element.into_characters()).map(|text| scope.html(text)),
        ConstructKind::Base64 => visible(element.text()).map(|text| unpack(text, scope)),
        ConstructKind::Plain => {
            visible(element.into_characters()).map(|text| scope.text(TextKind::Plain, text))
        }
        // No text construct is of another type; some of 0.3 were base64 under the name of one.
        ConstructKind::Other(_) => visible(element.text()).map(|text| unpack(text, scope)),
    }
}

/// The text that base64 stands for; if it is no base64, or that of no text, it stays as it is.
fn unpack(text: String, scope: &Scope) -> Text {
    let decoded = base64::decode(&text).and_then(|bytes| String::from_utf8(bytes).ok());
    match decoded
        .map(|decoded| clean(&decoded).into_owned())
        .and_then(visible)
    {
        Some(decoded) => scope.html(decoded),
        None => scope.text(TextKind::Plain, text),
    }
}

/// A content (RFC 4287 section 4.1.3). One that has both `src` and a text keeps the text, which
/// Atom forbids it to have but readers show.
pub(crate) fn body(element: Element, scope: &Scope) -> Option<Body> {
    let mut element = best_alternative(element);
    let kind = ConstructKind::of(&element);
    let src = element.filled("src").map(|src| scope.resolve(&src));
    let named = element.filled("type");
    let plain = |text| scope.text(TextKind::Plain, text);
    let (text, media_type) = match kind {
        ConstructKind::Plain
        | ConstructKind::Html
        | ConstructKind::Xhtml
        | ConstructKind::Base64 => (text(element, scope), None),
        ConstructKind::Markup(named) | ConstructKind::Other(named) if !is_of_content(&named) => {
            (text(element, scope), None)
        }
        // The type of markup, over words.
        ConstructKind::Other(named)
            if is_xml(&named) && !element.characters().trim_start().starts_with('<') =>
        {
            (text(element, scope), None)
        }
        ConstructKind::Markup(media_type) => {
            references::resolve_markup(&mut element, scope.base.as_ref());
            let mut markup = String::new();
            write_nodes(&mut markup, &element.children, &[]);
            (visible(markup).map(plain), Some(media_type))
        }
        ConstructKind::Other(media_type) => (
            visible(element.text()).map(|text| other(text, &media_type, scope)),
            Some(media_type),
        ),
    };
    match (text, src) {
        (Some(text), _) => Some(Body {
            text,
            media_type,
            src: None,
        }),
        (None, Some(src)) => Some(Body {
            media_type: named,
            src: Some(src),
            ..Body::default()
        }),
        (None, None) => None,
    }
}

/// A content that is neither text nor XML is base64 (RFC 4287 section 4.1.3.3), unless it is none.
fn other(text: String, media_type: &str, scope: &Scope) -> Text {
    let is_text = media_type.starts_with("text/") || is_xml(media_type);
    let is_base64 = !is_text && base64::decode(&text).is_some();
    let kind = if is_base64 {
        TextKind::Base64
    } else {
        TextKind::Plain
    };
    scope.text(kind, text)
}

/// The top-level types of media (RFC 6838 section 4.2, RFC 8081, RFC 9695). A content is of one
/// part, so `multipart` is not among them (RFC 4287 section 4.1.3.1).
const TOP_LEVEL_TYPES: &str = "application audio font haptics image message model text video";

/// True for the media type that a content may have. Of another type nobody knows what it means: it
/// is read as a text.
fn is_of_content(named: &str) -> bool {
    named.split_once('/').is_some_and(|(top_level, subtype)| {
        let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        is_one_of(top_level, TOP_LEVEL_TYPES) && !subtype.is_empty() && subtype.bytes().all(is_sign)
    })
}

/// RFC 4287 section 4.1.3.3.
fn is_xml(media_type: &str) -> bool {
    media_type.ends_with("+xml") || media_type.ends_with("/xml")
}

/// The namespace of Atom 1.0, whose text constructs are stricter than those of its drafts.
const ATOM_10: &str = "http://www.w3.org/2005/Atom";

/// The inside of an XHTML `div` (or of what stands in its scope), well-formed, in the XHTML
/// namespace.
pub(crate) fn fragment(mut element: Element, scope: &Scope) -> Option<Text> {
    let outside = element
        .children
        .iter()
        .any(|node| matches!(node, Node::Text(text) if present(text).is_some()));
    // In 1.0 the div is packaging; in 0.3, where no type is called `xhtml`, it is content.
    let is_packed = element.ns == ATOM_10
        || element
            .attribute("type")
            .is_none_or(|named| !named.contains('/'));
    let unlabelled = element.ns.clone();
    adopt(&mut element, &unlabelled);
    let mut elements = element.elements();
    let wrapper = match (elements.next(), elements.next()) {
        (Some(div), None) if div.name == "div" && !outside && is_packed => div,
        _ => &element,
    };
    let mut value = String::new();
    write_nodes(&mut value, &wrapper.children, &[("", XHTML)]);
    let mut text = scope.text(TextKind::Xhtml, visible(value)?);
    if let Some(language) = wrapper.attribute_ns(XML, "lang") {
        text.language = Some(language_tag(language.trim().to_owned()));
    }
    Some(text)
}

/// Puts elements that stand in the feed's own namespace, because nobody declared another, into that
/// of XHTML.
pub(crate) fn adopt(element: &mut Element, unlabelled: &str) {
    for node in &mut element.children {
        if let Node::Element(child) = node {
            if child.ns == unlabelled || child.ns.is_empty() {
                XHTML.clone_into(&mut child.ns);
                child.prefix.clear();
            }
            adopt(child, unlabelled);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::markup::tree::{Bindings, grow};

    /// Checks the kind of an element with these attributes: with a text in it, and with a child.
    fn check(attributes: &str, of_text: ConstructKind, of_child: ConstructKind) {
        let kind = |inside: &str| {
            let tag = format!("<title {attributes}>{inside}</title>");
            let grown = grow(&tag, &Bindings::default()).expect("an element");
            ConstructKind::of(&grown.element)
        };
        assert_eq!(kind("text"), of_text, "{attributes}");
        assert_eq!(kind("<b>text</b>"), of_child, "{attributes}");
    }

    #[test]
    fn illegal_types_are_read_for_what_was_meant() {
        use ConstructKind::{Base64, Html, Markup, Other, Plain, Xhtml};
        for plain in ["", "type=''", "type='TEXT'", "type='text/plain; a=b'"] {
            check(plain, Plain, Xhtml);
            check(&format!("{plain} mode='base64'"), Base64, Xhtml);
        }
        for html in ["type='html'", "type='text/html'"] {
            check(html, Html, Xhtml);
            check(&format!("{html} mode='base64'"), Base64, Xhtml);
            check(&format!("{html} mode='escaped'"), Html, Html);
        }
        for xhtml in ["type='xhtml'", "type='application/xhtml+xml'"] {
            check(xhtml, Html, Xhtml);
            check(&format!("{xhtml} mode='base64'"), Html, Xhtml);
            check(&format!("{xhtml} mode='Escaped'"), Html, Html);
        }
        check("type='base64'", Base64, Xhtml);
        let named = || "image/svg+xml".to_owned();
        check("type='image/svg+xml'", Other(named()), Markup(named()));
        check(
            "type='image/svg+xml' mode='base64'",
            Other(named()),
            Markup(named()),
        );
    }
}
