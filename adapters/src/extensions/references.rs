//! Relative references in foreign markup: made absolute where the vocabulary is known, because the base is lost when the
//! element is written elsewhere. What nobody knows is left as it is.

use crate::formats::Place;
use crate::text::html::is_relative;
use crate::text::trim;
use crate::vocabulary::Vocabulary;
use crate::{Element, Node};

/// Resolves the references of an element and of those below it that are of the same vocabulary.
pub(crate) fn absolutise(element: &mut Element, vocabulary: Vocabulary, place: &Place) {
    if place.base.is_none() || !holds_references(vocabulary) {
        return;
    }
    for attribute in &mut element.attributes {
        if is_reference(vocabulary, &attribute.name) && is_relative(trim(&attribute.value)) {
            attribute.value = place.resolve(&attribute.value);
        }
    }
    if is_url(vocabulary, &element.name)
        && let [Node::Text(text)] = element.children.as_mut_slice()
        && is_relative(trim(text))
    {
        *text = place.resolve(text);
    }
    let ns = &element.ns;
    for node in &mut element.children {
        if let Node::Element(child) = node
            && child.ns == *ns
        {
            let place = place.enter(child);
            absolutise(child, vocabulary, &place);
        }
    }
}

fn holds_references(vocabulary: Vocabulary) -> bool {
    matches!(
        vocabulary,
        Vocabulary::Rss
            | Vocabulary::MediaRss
            | Vocabulary::Itunes
            | Vocabulary::Podcast
            | Vocabulary::Chapters
            | Vocabulary::Thread
            | Vocabulary::CommentApi
            | Vocabulary::CreativeCommons
            | Vocabulary::Trackback
    )
}

/// Attributes that hold a URL.
fn is_reference(vocabulary: Vocabulary, name: &str) -> bool {
    match vocabulary {
        Vocabulary::Thread => matches!(name, "href" | "source"),
        // `rdf:resource`, which both write.
        Vocabulary::CreativeCommons | Vocabulary::Trackback => matches!(name, "resource" | "href"),
        _ => matches!(name, "url" | "href"),
    }
}

/// Elements whose text is a URL.
fn is_url(vocabulary: Vocabulary, name: &str) -> bool {
    match vocabulary {
        Vocabulary::Rss => matches!(name, "docs" | "link" | "url"),
        Vocabulary::CommentApi => name.starts_with("comment"),
        Vocabulary::CreativeCommons => name == "license",
        Vocabulary::Trackback => matches!(name, "ping" | "about"),
        _ => false,
    }
}
