//! Markup that a browser would run, left out of XHTML and of foreign markup in our documents:
//! script elements, event handlers and URLs that are script. HTML in escaped text is its reader's
//! to clean, as in the publisher's own feed.

use everfeed_adapters::{Attribute, Element, Node, text::markup::XHTML};
use std::borrow::Cow;

const SVG: &str = "http://www.w3.org/2000/svg";
const MATHML: &str = "http://www.w3.org/1998/Math/MathML";
const XML_EVENTS: &str = "http://www.w3.org/2001/xml-events";

/// Schemes of URLs that are script, or documents that may hold some.
const SCRIPT_SCHEMES: [&str; 10] = [
    "javascript:",
    "vbscript:",
    "livescript:",
    "data:text/html",
    "data:text/xml",
    "data:text/javascript",
    "data:application/xml",
    "data:application/xhtml",
    "data:application/javascript",
    SVG_DATA,
];

/// A picture that may hold script. Browsers run none of it in the elements of [`PICTURES`].
const SVG_DATA: &str = "data:image/svg+xml";

/// Elements that show a picture without running what is in it.
const PICTURES: [&str; 5] = ["img", "image", "feImage", "source", "video"];

/// Schemes that stand before another URL.
const WRAPPING_SCHEMES: [&str; 5] = ["feed:", "view-source:", "jar:", "pcast:", "url="];

/// Attributes of words, which nobody follows.
const WORDS: [&str; 14] = [
    "title",
    "alt",
    "text",
    "label",
    "name",
    "term",
    "desc",
    "description",
    "caption",
    "summary",
    "abbr",
    "keywords",
    "placeholder",
    "value",
];

/// Names of the events of browsers: of handlers, without their `on`. In vocabularies that browsers
/// do not know, other names that begin so are data.
const EVENTS: &str = " abort activate afterprint animationend animationiteration animationstart auxclick \
    beforecopy beforecut beforeinput beforematch beforepaste beforeprint beforetoggle beforeunload begin blur bounce \
    cancel canplay canplaythrough change click close command contextlost contextmenu contextrestored copy cuechange cut \
    dataavailable datasetchanged datasetcomplete dblclick deactivate drag dragdrop dragend dragenter dragexit dragleave \
    dragover dragstart drop durationchange emptied end ended error errorupdate filterchange finish focus focusin focusout \
    formdata fullscreenchange fullscreenerror gotpointercapture hashchange help input invalid keydown keypress keyup \
    languagechange layoutcomplete load loadeddata loadedmetadata loadend loadstart losecapture lostpointercapture message \
    messageerror mousedown mouseenter mouseleave mousemove mouseout mouseover mouseup mousewheel move moveend movestart \
    offline online pagehide pagereveal pageshow pageswap paste pause play playing pointercancel pointerdown pointerenter \
    pointerleave pointermove pointerout pointerover pointerrawupdate pointerup popstate progress propertychange ratechange \
    readystatechange rejectionhandled repeat reset resize resizeend resizestart resume rowenter rowexit rowsdelete \
    rowsinserted scroll scrollend scrollsnapchange scrollsnapchanging search securitypolicyviolation seek seeked seeking \
    select selectionchange selectstart show slotchange stalled start stop storage submit suspend syncrestored timeerror \
    timeupdate toggle touchcancel touchend touchmove touchstart trackchange transitioncancel transitionend transitionrun \
    transitionstart unhandledrejection unload urlflip volumechange waiting webkitanimationend webkitanimationiteration \
    webkitanimationstart webkittransitionend wheel zoom ";

/// Nodes without what runs.
pub(super) fn nodes(mut nodes: Vec<Node>) -> Vec<Node> {
    strip(&mut nodes);
    nodes
}

// Decides: Which markup is left out because it would run?
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
    let place = AttributeContext::of(element);
    element
        .attributes
        .retain(|attribute| !place.runs(attribute));
    strip(&mut element.children);
}

fn holds_script(element: &Element) -> bool {
    let inside = |node: &Node| matches!(node, Node::Element(inner) if is_script(inner) || holds_script(inner));
    let place = AttributeContext::of(element);
    element
        .attributes
        .iter()
        .any(|attribute| place.runs(attribute))
        || element.children.iter().any(inside)
}

/// True for script in any vocabulary: some readers know no namespaces. So is what tells a browser
/// to go elsewhere, and what binds script to an event.
fn is_script(element: &Element) -> bool {
    let named = |names: &[&str]| {
        names
            .iter()
            .any(|name| element.name.eq_ignore_ascii_case(name))
    };
    if named(&["script"]) || element.ns == XML_EVENTS {
        return true;
    }
    if element.ns == SVG && named(&["handler", "listener"]) {
        return true;
    }
    let mut attributes = element.attributes.iter();
    is_known(element)
        && named(&["meta"])
        && attributes.any(|attribute| attribute.name.eq_ignore_ascii_case("http-equiv"))
}

/// True in the vocabularies that browsers know.
fn is_known(element: &Element) -> bool {
    matches!(element.ns.as_str(), "" | XHTML | SVG | MATHML)
}

/// The traits of an element by which an attribute of it runs or does not.
#[derive(Clone, Copy)]
struct AttributeContext {
    is_known: bool,
    is_picture: bool,
}

impl AttributeContext {
    fn of(element: &Element) -> Self {
        let is_picture = PICTURES
            .iter()
            .any(|name| element.name.eq_ignore_ascii_case(name));
        Self {
            is_known: is_known(element),
            is_picture,
        }
    }

    /// True for event handlers, and for URLs that are script wherever they stand: an animation can
    /// set an `href`, too.
    fn runs(self, attribute: &Attribute) -> bool {
        let name = attribute.name.to_ascii_lowercase();
        if attribute.ns == XML_EVENTS || name == "srcdoc" {
            return true;
        }
        let event = name.strip_prefix("on").filter(|event| !event.is_empty());
        let is_handler = event.is_some_and(|event| {
            event.bytes().all(|b| b.is_ascii_alphabetic())
                && (self.is_known || EVENTS.split_ascii_whitespace().any(|known| known == event))
        });
        if is_handler {
            return true;
        }
        let is_of_words = WORDS.contains(&name.as_str()) || name.starts_with("aria-");
        let mut urls = attribute.value.split([';', ',']);
        !is_of_words && urls.any(|url| self.is_script_url(url))
    }

    /// True for a URL of such a scheme, as browsers read it: white space and controls in it do not
    /// count.
    fn is_script_url(self, url: &str) -> bool {
        let mut bare = url
            .chars()
            .filter(|c| !c.is_whitespace() && !c.is_control());
        let start: String = bare
            .by_ref()
            .take(64)
            .flat_map(char::to_lowercase)
            .collect();
        let mut start = start.as_str();
        while let Some(inner) = WRAPPING_SCHEMES
            .iter()
            .find_map(|scheme| start.strip_prefix(scheme))
        {
            start = inner.trim_start_matches(['\'', '"']);
        }
        let is_shown = self.is_picture && start.starts_with(SVG_DATA);
        !is_shown
            && SCRIPT_SCHEMES
                .iter()
                .any(|scheme| start.starts_with(scheme))
    }
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
        Element {
            ns: ns.into(),
            name: name.into(),
            attributes,
            children,
            ..Element::default()
        }
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
                vec![
                    Node::Element(of(ns, "SCRIPT", &[], vec![])),
                    Node::Text("kept".into()),
                ],
            );
            let clean = element(&running).unwrap();
            assert_eq!(
                *clean,
                of(
                    ns,
                    "a",
                    &[("on", "1"), ("title", "onload")],
                    vec![Node::Text("kept".into())]
                )
            );
            assert!(element(&of(ns, "script", &[], vec![])).is_none());
        }
        let nodes = nodes(vec![
            Node::Element(of(XHTML, "script", &[], vec![])),
            Node::Text("kept".into()),
        ]);
        assert_eq!(nodes, [Node::Text("kept".into())]);
    }

    #[test]
    fn markup_that_no_browser_runs_is_as_it_was() {
        let foreign = of(
            "urn:m",
            "price",
            &[("onsale", "yes"), ("only", "x")],
            vec![],
        );
        assert!(matches!(element(&foreign), Some(Cow::Borrowed(_))));
        let words = of(
            "urn:m",
            "category",
            &[("text", "JavaScript: the good parts")],
            vec![],
        );
        assert!(matches!(element(&words), Some(Cow::Borrowed(_))));
        let sound = of(
            XHTML,
            "img",
            &[
                ("src", "data:image/png;base64,AA"),
                ("alt", "CSS, JavaScript: x"),
            ],
            vec![],
        );
        assert!(matches!(element(&sound), Some(Cow::Borrowed(_))));
        let drawn = of(
            XHTML,
            "img",
            &[("src", "data:image/svg+xml,<svg/>")],
            vec![],
        );
        assert!(matches!(element(&drawn), Some(Cow::Borrowed(_))));
    }

    #[test]
    fn what_runs_is_left_out_of_every_vocabulary() {
        for name in ["script", "Script"] {
            assert!(element(&of("urn:schemas-microsoft-com:vml", name, &[], vec![])).is_none());
        }
        assert!(element(&of(SVG, "handler", &[], vec![])).is_none());
        assert!(element(&of(XML_EVENTS, "listener", &[], vec![])).is_none());
        assert!(element(&of(XHTML, "meta", &[("http-equiv", "refresh")], vec![])).is_none());
        for (name, value) in [
            ("onclick", "alert(1)"),
            ("onload", "alert(1)"),
            ("href", "javascript:alert(1)"),
            ("anything", " java\u{1}script:alert(1)"),
            ("href", "feed:javascript:alert(1)"),
            ("href", "view-source:feed:javascript:alert(1)"),
            ("content", "0;url='javascript:alert(1)'"),
            ("href", "data:image/svg+xml,<svg onload='x'/>"),
        ] {
            for ns in ["urn:schemas-microsoft-com:vml", XHTML, SVG] {
                let bare = element(&of(ns, "use", &[(name, value)], vec![]))
                    .unwrap()
                    .into_owned();
                assert!(bare.attributes.is_empty(), "{ns} {name}={value}");
            }
        }
        let mut bound = of("urn:m", "a", &[("handler", "#x")], vec![]);
        bound.attributes[0].ns = XML_EVENTS.into();
        assert!(element(&bound).unwrap().attributes.is_empty());
    }
}
