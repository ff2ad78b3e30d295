//! Values that every syntax spells alike: names of people, e-mail addresses, media types,
//! languages, lengths. What is not spelt like one is left out.

use super::xml;
use everfeed_adapters::Person;

/// The name of a person, or what may stand for it.
pub(super) fn person_name(person: &Person) -> Option<&str> {
    [&person.name, &person.email, &person.uri]
        .into_iter()
        .filter_map(|name| name.as_deref().map(str::trim))
        .find(|name| xml::iri(name).is_some())
}

/// `.+@.+` (RFC 4287 section 3.2.3), and nothing that would not be one address.
pub(super) fn is_email(text: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control() || "<>()\",".contains(c);
    text.split_once('@')
        .is_some_and(|(local, host)| !local.is_empty() && !host.is_empty())
        && !text.contains(odd)
}

/// A media type without parameters that is spelt like one (RFC 9110 section 8.3.1).
pub(super) fn media_type(text: &str) -> Option<&str> {
    let token = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
    };
    let bare = text.split(';').next().unwrap_or_default().trim();
    let (kind, subkind) = bare.split_once('/')?;
    (token(kind) && token(subkind)).then_some(bare)
}

/// A language tag that is spelt like one (RFC 3066 section 2.1).
pub(super) fn language(text: &str) -> Option<&str> {
    let text = text.trim();
    let mut parts = text.split('-');
    let letters =
        |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphabetic());
    let rest = |part: &str| {
        (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    (parts.next().is_some_and(letters) && parts.all(rest)).then_some(text)
}

/// A value of `xml:lang` or of `lang` in HTML: a tag, or nothing where it was said that there is no
/// language.
pub(super) fn language_attribute(text: &str) -> Option<&str> {
    language(text).or_else(|| text.is_empty().then_some(""))
}

/// A length in bytes: digits or nothing.
pub(super) fn length(text: Option<&str>) -> Option<&str> {
    let digits =
        |text: &&str| (1..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    text.map(str::trim).filter(digits)
}
