//! What JSON has no fields of its own for: the source of a post, and elements of other vocabularies,
//! iTunes and whatever else a channel or an entry says of itself.

use crate::render::{
    channel::{MARKUP_BYTES_MAX, ShownChannel},
    foreign,
    json::{self, JsonObject},
    namespaces as ns,
    post::ShownPost,
    values::ShownSource,
};
use everfeed_adapters::{Attribute, Element, Node};
use std::collections::BTreeMap;

/// The elements of a channel that Atom and RSS repeat, within the same limit.
pub(super) fn of_channel(json: &mut JsonObject<'_>, channel: ShownChannel<'_>) {
    let mut left = MARKUP_BYTES_MAX;
    let elements = channel.foreign_elements(|_| false);
    let fitting = elements.filter_map(foreign::safe).filter(|element| {
        let bytes = json::item(|json| extension(json, element)).len();
        let rest = left.checked_sub(bytes);
        left = rest.unwrap_or(left);
        rest.is_some()
    });
    json.list_some("extensions", fitting, |json, element| {
        extension(json, &element);
    });
}

/// The elements of an entry that no field of it covers, but for those that are ours to say.
pub(super) fn of_post(json: &mut JsonObject<'_>, post: ShownPost<'_>) {
    let elements = post.foreign_elements(|it| [ns::ATOM, ns::PUBLISHING].contains(&&*it.ns));
    let safe = elements.filter_map(foreign::safe);
    json.list_some("extensions", safe, |json, element| {
        extension(json, &element)
    });
}

/// The feed that a post comes from; syntaxes call its title by their own names.
pub(super) fn source(json: &mut JsonObject<'_>, source: Option<ShownSource<'_>>, title: &str) {
    if let Some(source) = source {
        json.object("source", |json| {
            json.put_some("id", source.id());
            json.put_some(title, source.title());
            json.put_some("url", source.url());
            json.put_some("site", source.site());
        });
    }
}

/// An element: its namespace URI unless it has none, its local name, its attributes, the text
/// directly inside without white space at its ends, and the elements inside.
fn extension(json: &mut JsonObject<'_>, element: &Element) {
    let text = element.children.iter().filter_map(|node| match node {
        Node::Text(text) => Some(text.as_str()),
        Node::Element(_) => None,
    });
    let text: String = text.collect();
    let attributes = element.attributes.iter();
    let attributes: BTreeMap<_, _> = attributes.map(|it| (key(it), &it.value)).collect();
    let is_filled = |text: &&str| !text.is_empty();
    json.put_some("ns", Some(&*element.ns).filter(is_filled));
    json.put("name", &element.name);
    json.put_some(
        "attributes",
        Some(attributes).filter(|some| !some.is_empty()),
    );
    json.put_some("content", Some(text.trim()).filter(is_filled));
    json.list_some("children", element.elements(), extension);
}

/// The name of an attribute; one of another namespace stands behind its URI, in braces.
fn key(attribute: &Attribute) -> String {
    if attribute.ns.is_empty() {
        attribute.name.clone()
    } else {
        format!("{{{}}}{}", attribute.ns, attribute.name)
    }
}
