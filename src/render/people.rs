//! The people of a post or a feed, and how each syntax spells one: all that becomes of a field of a
//! person. Not where people stand in a document, nor which of them a post has.

use super::{
    json::JsonObject,
    target,
    target::is_web,
    xml::{self, Xml},
};
use everfeed_adapters::Person;
use std::borrow::Cow;

/// People of a post or a feed, in the order of the publisher.
#[derive(Clone, Copy)]
pub(super) struct People<'a>(pub(super) &'a [Person]);

/// A person with a name, or with what may stand for it.
#[derive(Clone, Copy)]
pub(super) struct ShownPerson<'a> {
    pub(super) name: &'a str,
    person: &'a Person,
}

impl<'a> People<'a> {
    /// Those who can be named.
    pub(super) fn iter(self) -> impl Iterator<Item = ShownPerson<'a>> {
        self.0.iter().filter_map(ShownPerson::of)
    }

    /// Their names.
    pub(super) fn names(self) -> impl Iterator<Item = &'a str> {
        self.iter().map(|person| person.name)
    }

    /// Address and name, as RSS writes an author (LEGACY L-11), of somebody who is alone and has an
    /// address.
    pub(super) fn lone_address(self) -> Option<Cow<'a, str>> {
        let [only] = self.0 else { return None };
        let email = only.email.as_deref().filter(|email| is_email(email))?;
        let name = only.name.as_deref().map(str::trim);
        Some(
            match name.filter(|name| !name.is_empty() && *name != email) {
                Some(name) => Cow::Owned(format!("{email} ({name})")),
                None => Cow::Borrowed(email),
            },
        )
    }
}

impl<'a> ShownPerson<'a> {
    fn of(person: &'a Person) -> Option<Self> {
        let name = [&person.name, &person.email, &person.uri]
            .into_iter()
            .filter_map(|name| name.as_deref().map(str::trim))
            .find(|name| xml::is_visible(name))?;
        Some(Self { name, person })
    }

    /// The home page.
    pub(super) fn url(self) -> Option<Cow<'a, str>> {
        target::link(self.person.uri.as_deref()?)
    }

    /// The e-mail address as the publisher wrote it, be it one or not.
    pub(super) fn given_email(self) -> Option<&'a str> {
        self.person.email.as_deref()
    }

    /// The e-mail address, where it is one.
    pub(super) fn email(self) -> Option<&'a str> {
        self.given_email().filter(|email| is_email(email))
    }
}

/// `.+@.+` (RFC 4287 section 3.2.3), and nothing that would not be one address.
fn is_email(text: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control() || "<>()\",".contains(c);
    text.split_once('@')
        .is_some_and(|(local, host)| !local.is_empty() && !host.is_empty())
        && !text.contains(odd)
}

/// A person of ActivityStreams 1.0.
pub(super) fn activity_streams(json: &mut JsonObject<'_>, person: ShownPerson<'_>) {
    json.put("objectType", "person");
    json.put("displayName", person.name);
    json.put_some("url", person.url());
    json.put_some("email", person.given_email());
}

/// A person of ActivityStreams 2.0.
pub(super) fn activity_streams_2(json: &mut JsonObject<'_>, person: ShownPerson<'_>) {
    json.put("type", "Person");
    json.put("name", person.name);
    json.put_some("url", person.url());
}

/// An author of JSON Feed. An e-mail address is told as the URL of somebody who has no other, as
/// the specification proposes.
pub(super) fn json_feed(json: &mut JsonObject<'_>, person: ShownPerson<'_>) {
    let mail = || Some(Cow::Owned(format!("mailto:{}", person.email()?)));
    json.put("name", person.name);
    json.put_some("url", person.url().or_else(mail));
}

/// People of Atom; true where there were any. Atom wants a name: an address has to do when there
/// is none.
pub(super) fn atom(xml: &mut Xml, role: &str, people: People<'_>) -> bool {
    let mut any = false;
    for person in people.iter() {
        any = true;
        xml.open(role, &[]);
        xml.leaf("name", &[], person.name);
        xml.leaf_some("uri", person.url());
        xml.leaf_some("email", person.email());
        xml.close(role);
    }
    any
}

/// An author of RSS is an e-mail address (L-11) where there is one; everybody else is a
/// `dc:creator`. Never both. The author of a channel is its `managingEditor`.
pub(super) fn rss(xml: &mut Xml, element: &str, authors: People<'_>) {
    if let Some(address) = authors.lone_address() {
        return xml.leaf(element, &[], &address);
    }
    for name in authors.names() {
        xml.leaf("dc:creator", &[], name);
    }
}

/// An author on a page for people, with the class that programs know him by.
pub(super) fn html(page: &mut Xml, person: ShownPerson<'_>) {
    let url = person.url().filter(|url| is_web(url));
    let tag = if url.is_some() { "a" } else { "span" };
    let attributes = [
        ("class", Some("p-author h-card")),
        ("dir", Some("auto")),
        ("href", url.as_deref()),
    ];
    page.leaf(tag, &attributes, person.name);
}
