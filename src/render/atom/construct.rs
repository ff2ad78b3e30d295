//! The constructs that feeds and entries share: text, people, categories, media types; not where they stand.

use super::Dialect;
use crate::render::{
    target, xhtml,
    xml::{self, Xml, push_text},
};
use everfeed_adapters::{Category, Person, Text, TextKind};

/// A text construct (RFC 4287 section 3.1, A-10). XHTML that is not well-formed is written as HTML: nothing is lost,
/// and the document stays whole.
pub(super) fn text(xml: &mut Xml, name: &str, text: &Text, dialect: Dialect) {
    match text.kind {
        TextKind::Plain => xml.leaf(name, &[], &text.value),
        // Bytes are content, and nothing else.
        TextKind::Base64 => xml.leaf(name, &[], ""),
        TextKind::Html => xml.leaf(name, &[("type", Some("html"))], &text.value),
        TextKind::Xhtml => {
            let mut div = String::with_capacity(text.value.len() + 64);
            match xhtml::write_div(&mut div, &text.value, dialect.declared()) {
                Ok(()) => xml.holding(name, &[("type", Some("xhtml"))], |out| out.push_str(&div)),
                Err(xhtml::IllFormed) => {
                    xml.holding(name, &[("type", Some("html"))], |out| push_text(out, &text.value));
                }
            }
        }
    }
}

/// Writes people, and tells whether there were any. Atom wants a name: an address has to do when there is none.
pub(super) fn people(xml: &mut Xml, role: &str, people: &[Person]) -> bool {
    let mut any = false;
    for person in people {
        let Some(name) = name(person) else { continue };
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

/// What a person can be called.
pub(in crate::render) fn name(person: &Person) -> Option<&str> {
    [&person.name, &person.email, &person.uri]
        .into_iter()
        .filter_map(|name| name.as_deref().map(str::trim))
        .find(|name| xml::iri(name).is_some())
}

/// `.+@.+` (RFC 4287 section 3.2.3), and nothing that would not be one address.
pub(in crate::render) fn is_email(text: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control() || "<>()\",".contains(c);
    text.split_once('@').is_some_and(|(local, host)| !local.is_empty() && !host.is_empty())
        && !text.contains(odd)
}

pub(super) fn categories(xml: &mut Xml, categories: &[Category]) {
    for category in categories.iter().filter(|category| !category.term.trim().is_empty()) {
        let scheme = category.scheme.as_deref().and_then(xml::iri);
        let label = category.label.as_deref().filter(|label| !label.trim().is_empty());
        xml.empty(
            "category",
            &[("term", Some(&category.term)), ("scheme", scheme.as_deref()), ("label", label)],
        );
    }
}

/// A media type without parameters that is spelt like one (RFC 9110 section 8.3.1).
pub(in crate::render) fn media_type(text: &str) -> Option<&str> {
    let token = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
    };
    let bare = text.split(';').next().unwrap_or_default().trim();
    let (kind, subkind) = bare.split_once('/')?;
    (token(kind) && token(subkind)).then_some(bare)
}

/// A language tag that is spelt like one (RFC 3066 section 2.1).
pub(in crate::render) fn language(text: &str) -> Option<&str> {
    let text = text.trim();
    let mut parts = text.split('-');
    let letters = |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphabetic());
    let rest = |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric());
    (parts.next().is_some_and(letters) && parts.all(rest)).then_some(text)
}

/// A length in bytes: digits or nothing.
pub(in crate::render) fn length(text: Option<&str>) -> Option<&str> {
    let digits = |text: &&str| (1..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    text.map(str::trim).filter(digits)
}
