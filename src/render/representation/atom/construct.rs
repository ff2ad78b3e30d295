//! The constructs of Atom that feeds and entries share: text, people, categories; not where they
//! stand.

use super::declared::declared;
use crate::{
    feed::item::is_absolute_iri,
    render::{
        document::Audience,
        target,
        values::{is_email, person_name},
        xhtml,
        xml::{self, Xml, push_text},
    },
};
use everfeed_adapters::{Category, Person, Text, TextKind};

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

/// Writes people, and tells whether there were any. Atom wants a name: an address has to do when
/// there is none.
pub(super) fn people(xml: &mut Xml, role: &str, people: &[Person]) -> bool {
    let mut any = false;
    for person in people {
        let Some(name) = person_name(person) else {
            continue;
        };
        any = true;
        xml.open(role, &[]);
        xml.leaf("name", &[], name);
        if let Some(uri) = person.uri.as_deref().and_then(target::link) {
            xml.leaf("uri", &[], &uri);
        }
        if let Some(email) = person.email.as_deref().filter(|email| is_email(email)) {
            xml.leaf("email", &[], email);
        }
        xml.close(role);
    }
    any
}

pub(super) fn categories(xml: &mut Xml, categories: &[Category]) {
    for category in categories
        .iter()
        .filter(|category| !category.term.trim().is_empty())
    {
        // A `domain` of RSS may be any text.
        let scheme = category
            .scheme
            .as_deref()
            .and_then(xml::iri)
            .filter(|scheme| is_absolute_iri(scheme));
        let label = category
            .label
            .as_deref()
            .filter(|label| !label.trim().is_empty());
        xml.empty(
            "category",
            &[
                ("term", Some(&category.term)),
                ("scheme", scheme.as_deref()),
                ("label", label),
            ],
        );
    }
}
