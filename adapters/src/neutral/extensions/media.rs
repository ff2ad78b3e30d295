//! MediaRSS in the neutral form.

use serde_json::Value;

use super::Fields;
use crate::Element;
use crate::vocabulary::Vocabulary;

/// Adds what MediaRSS says of an entry, in whatever group or content it stands.
pub(super) fn fields(foreign: &[Element], fields: &mut Fields) {
    let mut elements = Vec::new();
    let media = foreign
        .iter()
        .filter(|element| Vocabulary::of(&element.ns) == Vocabulary::MediaRss);
    media.for_each(|element| gather(element, &mut elements));
    let named = |name: &'static str| {
        elements
            .iter()
            .copied()
            .filter(move |element| element.name == name)
    };
    for (field, name) in [
        ("media_content", "content"),
        ("media_thumbnail", "thumbnail"),
        ("media_credit", "credit"),
    ] {
        let values: Vec<_> = named(name).map(form).collect();
        fields.put(field, (!values.is_empty()).then_some(values));
    }
    fields.put("media_rating", named("rating").next().map(form));
    fields.put("media_license", named("license").next().map(form));
    fields.put("media_player", named("player").next().map(form));
    let restriction = named("restriction").next().map(|element| {
        let mut value = form(element);
        value["content"] = element
            .text()
            .split_whitespace()
            .map(str::to_lowercase)
            .collect();
        value
    });
    fields.put("media_restriction", restriction);
}

fn gather<'e>(element: &'e Element, found: &mut Vec<&'e Element>) {
    found.push(element);
    if matches!(element.name.as_str(), "group" | "content") {
        element
            .elements()
            .filter(|child| child.ns == element.ns)
            .for_each(|child| gather(child, found));
    }
}

/// The attributes, and the text as `content`.
fn form(element: &Element) -> Value {
    let mut fields = Fields::default();
    for attribute in element
        .attributes
        .iter()
        .filter(|attribute| attribute.ns.is_empty())
    {
        fields.put(
            &attribute.name.to_ascii_lowercase(),
            Some(attribute.value.as_str()),
        );
    }
    if element.elements().next().is_none() {
        fields.put("content", element.words());
    }
    fields.into()
}
