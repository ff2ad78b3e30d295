//! The constructs of Atom that feeds and entries share: text and categories; not where they
//! stand.

use super::declared::declared;
use crate::{
    feed::item::is_absolute_iri,
    render::{
        document::Audience,
        text::ShownText,
        values::Tags,
        xhtml,
        xml::{self, Xml, push_text},
    },
};
use everfeed_adapters::{Text, TextKind};

/// A text construct (RFC 4287 section 3.1, A-10). XHTML that is not well-formed is written as HTML:
/// nothing is lost, and the document stays whole.
pub(super) fn text(xml: &mut Xml, name: &str, text: &Text, audience: Audience) {
    match text.kind {
        TextKind::Plain => xml.leaf(name, &[], &text.value),
        // Bytes are content, and nothing else.
        TextKind::Base64 => xml.leaf(name, &[], ""),
        TextKind::Html => xml.leaf(name, &[("type", Some("html"))], &text.value),
        TextKind::Xhtml => {
            let mut div = String::with_capacity(text.value.len() + 64);
            match xhtml::write_div(&mut div, &text.value, declared(audience)) {
                Ok(()) => xml.holding(name, &[("type", Some("xhtml"))], |out| out.push_str(&div)),
                Err(xhtml::IllFormed) => {
                    xml.holding(name, &[("type", Some("html"))], |out| {
                        push_text(out, &text.value)
                    });
                }
            }
        }
    }
}

/// Likewise, where there is a text.
pub(super) fn text_some(
    xml: &mut Xml,
    name: &str,
    text: Option<ShownText<'_>>,
    audience: Audience,
) {
    if let Some(text) = text {
        self::text(xml, name, text.marked(), audience);
    }
}

pub(super) fn categories(xml: &mut Xml, tags: Tags<'_>) {
    for tag in tags.visible() {
        // A `domain` of RSS may be any text.
        let scheme = tag.scheme.as_deref().and_then(xml::iri);
        let scheme = scheme.filter(|scheme| is_absolute_iri(scheme));
        let label = tag.label.as_deref();
        let attributes = [
            ("term", Some(&*tag.term)),
            ("scheme", scheme.as_deref()),
            ("label", label.filter(|label| !label.trim().is_empty())),
        ];
        xml.empty("category", &attributes);
    }
}
