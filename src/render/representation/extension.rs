//! Elements of other vocabularies as JSON: iTunes and whatever else a channel or an entry says of
//! itself; not the fields that JSON has names for.

use crate::render::{
    channel::{self, ShownChannel},
    foreign, namespaces as ns,
};
use everfeed_adapters::{Attribute, Element, Entry, Node};
use serde::Serialize;
use std::{borrow::Cow, collections::BTreeMap};

/// An element of another vocabulary.
#[derive(Serialize)]
pub(super) struct Extension<'a> {
    /// Namespace URI; absent for an element without one.
    #[serde(skip_serializing_if = "str::is_empty")]
    ns: Cow<'a, str>,
    /// Local name.
    name: Cow<'a, str>,
    /// Values by name; a name of another namespace stands behind its URI, in braces.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<String, Cow<'a, str>>,
    /// Text directly inside, without white space at its ends.
    #[serde(skip_serializing_if = "String::is_empty")]
    content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    children: Vec<Extension<'a>>,
}

/// The elements of a channel that Atom and RSS repeat, within the same limit.
pub(super) fn of_channel(channel: ShownChannel<'_>) -> Vec<Extension<'_>> {
    let mut left = channel::MARKUP_BYTES_MAX;
    let mut extensions = Vec::new();
    for extension in channel.foreign_elements(|_| false).filter_map(shown) {
        let bytes = serde_json::to_vec(&extension).map_or(usize::MAX, |json| json.len());
        if let Some(rest) = left.checked_sub(bytes) {
            left = rest;
            extensions.push(extension);
        }
    }
    extensions
}

/// The elements of an entry that no field of it covers, but for those that are ours to say.
pub(super) fn of_entry(entry: &Entry) -> Vec<Extension<'_>> {
    const OURS: [&str; 5] = [
        ns::ATOM,
        ns::SMART_FEED,
        ns::TOMBSTONES,
        ns::FEED_HISTORY,
        ns::PUBLISHING,
    ];
    let foreign = entry
        .foreign
        .iter()
        .filter(|element| !OURS.contains(&element.ns.as_str()));
    foreign.filter_map(shown).collect()
}

fn shown(element: &Element) -> Option<Extension<'_>> {
    Some(match foreign::safe(element)? {
        Cow::Borrowed(element) => Extension::of(element),
        Cow::Owned(element) => Extension::of(&element).into_owned(),
    })
}

impl<'a> Extension<'a> {
    fn of(element: &'a Element) -> Self {
        let text = element.children.iter().filter_map(|node| match node {
            Node::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let inner = element.children.iter().filter_map(|node| match node {
            Node::Element(inner) => Some(Self::of(inner)),
            _ => None,
        });
        Self {
            ns: Cow::Borrowed(&element.ns),
            name: Cow::Borrowed(&element.name),
            attributes: element
                .attributes
                .iter()
                .map(|it| (key(it), Cow::Borrowed(it.value.as_str())))
                .collect(),
            content: text.collect::<String>().trim().to_owned(),
            children: inner.collect(),
        }
    }

    fn into_owned<'b>(self) -> Extension<'b> {
        let owned = |text: Cow<'a, str>| Cow::Owned(text.into_owned());
        Extension {
            ns: owned(self.ns),
            name: owned(self.name),
            attributes: self
                .attributes
                .into_iter()
                .map(|(name, value)| (name, owned(value)))
                .collect(),
            content: self.content,
            children: self
                .children
                .into_iter()
                .map(Extension::into_owned)
                .collect(),
        }
    }
}

fn key(attribute: &Attribute) -> String {
    if attribute.ns.is_empty() {
        attribute.name.clone()
    } else {
        format!("{{{}}}{}", attribute.ns, attribute.name)
    }
}
