//! References that other vocabularies keep where nobody else would look: as the text of an element,
//! or in an attribute of a name of its own. Those in `href`, `src`, `url` and `resource` are
//! `text::references`'s business.

use crate::reading::Scope;
use crate::text::html::is_relative;
use crate::text::trim;
use crate::vocabulary::Vocabulary;
use crate::{Element, Node};

/// Makes such references of an element, and of those below it that are of the same vocabulary,
/// absolute: the base is lost when the element is written elsewhere.
pub(crate) fn absolutise(element: &mut Element, vocabulary: Vocabulary, scope: &Scope) {
    if scope.base.is_none() || !holds_references(vocabulary) {
        return;
    }
    if vocabulary == Vocabulary::Thread {
        for attribute in element
            .attributes
            .iter_mut()
            .filter(|attribute| attribute.name == "source")
        {
            if is_relative(trim(&attribute.value)) {
                attribute.value = scope.resolve(&attribute.value);
            }
        }
    }
    if is_url(vocabulary, &element.name)
        && let [Node::Text(text)] = element.children.as_mut_slice()
        && is_relative(trim(text))
    {
        *text = scope.resolve(text);
    }
    let ns = &element.ns;
    for node in &mut element.children {
        if let Node::Element(child) = node
            && child.ns == *ns
        {
            absolutise(child, vocabulary, scope);
        }
    }
}

fn holds_references(vocabulary: Vocabulary) -> bool {
    use Vocabulary::{CommentApi, CreativeCommons, Rss, Thread, Trackback};
    matches!(
        vocabulary,
        Rss | Thread | CommentApi | CreativeCommons | Trackback
    )
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
