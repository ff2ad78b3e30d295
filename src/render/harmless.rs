//! Markup that a browser would run, left out of XHTML and of foreign markup in our documents: script elements, event
//! handlers and URLs that are script. HTML in escaped text is its reader's to clean, as in the publisher's own feed.

use everfeed_adapters::{Attribute, Element, Node, text::markup::XHTML};
use std::borrow::Cow;

const SVG: &str = "http://www.w3.org/2000/svg";
const MATHML: &str = "http://www.w3.org/1998/Math/MathML";

/// Schemes of URLs that are script, or documents that may hold some.
const SCRIPT_SCHEMES: [&str; 4] = ["javascript:", "vbscript:", "data:text/html", "data:application/xhtml"];

/// Nodes without what runs.
pub(super) fn nodes(mut nodes: Vec<Node>) -> Vec<Node> {
    strip(&mut nodes);
    nodes
}

/// An element without what runs in it; `None` for one that is script itself.
pub(super) fn element(element: &Element) -> Option<Cow<'_, Element>> {
    if is_script(element) {
        return None;
    }
    if !holds_script(element) {
        return Some(Cow::Borrowed(element));
    }
    let mut element = element.clone();
    clean(&mut element);
    Some(Cow::Owned(element))
}

fn strip(nodes: &mut Vec<Node>) {
    nodes.retain(|node| !matches!(node, Node::Element(element) if is_script(element)));
    for node in nodes {
        if let Node::Element(element) = node {
            clean(element);
        }
    }
}

fn clean(element: &mut Element) {
    let runs = runs_attributes(element);
    element.attributes.retain(|attribute| !(runs && is_running(attribute)));
    strip(&mut element.children);
}

fn holds_script(element: &Element) -> bool {
    let inside =
        |node: &Node| matches!(node, Node::Element(inner) if is_script(inner) || holds_script(inner));
    runs_attributes(element) && element.attributes.iter().any(is_running)
        || element.children.iter().any(inside)
}

/// True in the vocabularies whose scripts browsers run.
fn is_script(element: &Element) -> bool {
    runs_attributes(element) && element.name.eq_ignore_ascii_case("script")
}

fn runs_attributes(element: &Element) -> bool {
    matches!(element.ns.as_str(), "" | XHTML | SVG | MATHML)
}

/// True for event handlers, and for URLs that are script wherever they stand: an animation can set an `href`, too.
fn is_running(attribute: &Attribute) -> bool {
    let name = attribute.name.to_ascii_lowercase();
    let is_handler =
        name.len() > 2 && name.starts_with("on") && name.bytes().all(|b| b.is_ascii_alphabetic());
    is_handler || name == "srcdoc" || attribute.value.split([';', ',']).any(is_script_url)
}

/// True for a URL of such a scheme, as browsers read it: white space and controls in it do not count.
fn is_script_url(url: &str) -> bool {
    let mut bare = url.chars().filter(|c| !c.is_whitespace() && !c.is_control());
    let start: String = bare.by_ref().take(32).flat_map(char::to_lowercase).collect();
    SCRIPT_SCHEMES.iter().any(|scheme| start.starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ns: &str, name: &str, attributes: &[(&str, &str)], children: Vec<Node>) -> Element {
        let attribute = |(name, value): &(&str, &str)| Attribute {
            name: (*name).into(),
            value: (*value).into(),
            ..Attribute::default()
        };
        let attributes = attributes.iter().map(attribute).collect();
        Element { ns: ns.into(), name: name.into(), attributes, children, ..Element::default() }
    }

    #[test]
    fn what_a_browser_runs_is_left_out_and_the_rest_stays() {
        for ns in ["", XHTML, SVG] {
            let running = of(
                ns,
                "a",
                &[
                    ("onClick", "alert(1)"),
                    ("href", " Java\nScript:alert(1)"),
                    ("values", "x;javascript:alert(1)"),
                    ("srcdoc", "<script>"),
                    ("on", "1"),
                    ("title", "onload"),
                ],
                vec![Node::Element(of(ns, "SCRIPT", &[], vec![])), Node::Text("kept".into())],
            );
            let clean = element(&running).unwrap();
            assert_eq!(
                *clean,
                of(ns, "a", &[("on", "1"), ("title", "onload")], vec![Node::Text("kept".into())])
            );
            assert!(element(&of(ns, "script", &[], vec![])).is_none());
        }
        let nodes = nodes(vec![Node::Element(of(XHTML, "script", &[], vec![])), Node::Text("kept".into())]);
        assert_eq!(nodes, [Node::Text("kept".into())]);
    }

    #[test]
    fn markup_that_no_browser_runs_is_as_it_was() {
        let foreign = of("urn:m", "script", &[("online", "yes")], vec![Node::Text("x".into())]);
        assert!(matches!(element(&foreign), Some(Cow::Borrowed(_))));
        let sound = of(XHTML, "img", &[("src", "data:image/png;base64,AA"), ("alt", "a, b")], vec![]);
        assert!(matches!(element(&sound), Some(Cow::Borrowed(_))));
    }
}
