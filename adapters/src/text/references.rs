//! The relative references of a tree made absolute, so that it means the same wherever it is
//! written; also those of HTML that an element of another vocabulary holds as text.

use std::borrow::Cow;

use url::Url;

use super::markup::{XHTML, XLINK, XML};
use super::{html, uri};
use crate::{Attribute, Element, Node};

/// Attributes that hold a URL in nearly every vocabulary that feeds carry: Media RSS, iTunes, RDF,
/// XLink.
const FOREIGN_ATTRIBUTES: [&str; 4] = ["href", "src", "url", "resource"];

/// Resolves what HTML calls references below an element of XHTML, and takes away the bases that
/// they were relative to.
pub(crate) fn resolve_markup(element: &mut Element, base: Option<&Url>) {
    let mut gain = html::GAIN_BYTES_MAX;
    below(element, base, &mut |place, base| {
        if let ReferencePosition::Attribute { attribute, .. } = place {
            resolve_html_attribute(attribute, base, &mut gain);
        }
    });
}

fn resolve_html_attribute(attribute: &mut Attribute, base: &Url, gain: &mut usize) {
    let name = match attribute.ns.as_str() {
        "" => attribute.name.as_str(),
        XLINK if attribute.name == "href" => "xlink:href",
        _ => return,
    };
    if let Some(resolved) = html::resolve_attribute(name, &attribute.value, base) {
        replace(attribute, resolved, gain);
    }
}

/// Resolves what is a reference in foreign markup, on the element itself and below.
pub(crate) fn resolve_foreign(element: &mut Element, base: Option<&Url>) {
    let mut gain = html::GAIN_BYTES_MAX;
    let mut resolve = |place: ReferencePosition<'_>, base: &Url| match place {
        ReferencePosition::Attribute {
            attribute,
            is_html: true,
        } => resolve_html_attribute(attribute, base, &mut gain),
        ReferencePosition::Attribute {
            attribute,
            is_html: false,
        } => {
            let reference = super::trim(&attribute.value);
            if FOREIGN_ATTRIBUTES.contains(&attribute.name.as_str()) && html::is_relative(reference)
            {
                let resolved = uri::resolve(Some(base), reference);
                replace(attribute, resolved, &mut gain);
            }
        }
        // What is no HTML has no tags with such attributes in it.
        ReferencePosition::Text(text) if memchr::memchr(b'<', text.as_bytes()).is_some() => {
            let resolved = match html::absolutise(text, Some(base)) {
                Cow::Owned(resolved) => resolved,
                Cow::Borrowed(_) => return,
            };
            if let Some(left) = gain.checked_sub(resolved.len().saturating_sub(text.len())) {
                gain = left;
                *text = resolved;
            }
        }
        ReferencePosition::Text(_) => {}
    };
    enter(element, base, &mut resolve);
}

/// A place where references may stand.
enum ReferencePosition<'p> {
    Attribute {
        attribute: &'p mut Attribute,
        is_html: bool,
    },
    Text(&'p mut String),
}

/// A function of a place and the base in force there.
type Resolve<'r> = &'r mut dyn FnMut(ReferencePosition<'_>, &Url);

fn below(element: &mut Element, base: Option<&Url>, resolve: Resolve<'_>) {
    for node in &mut element.children {
        match (node, base) {
            (Node::Element(child), _) => enter(child, base, resolve),
            (Node::Text(text), Some(base)) => resolve(ReferencePosition::Text(text), base),
            (Node::Text(_), None) => {}
        }
    }
}

/// A bad `xml:base` changes nothing; either way the attribute has done its work.
fn enter(element: &mut Element, base: Option<&Url>, resolve: Resolve<'_>) {
    let rebased = element
        .attribute_ns(XML, "base")
        .and_then(|reference| uri::rebase(base, reference));
    let base = rebased.as_ref().or(base);
    element
        .attributes
        .retain(|attribute| !(attribute.ns == XML && attribute.name == "base"));
    if let Some(base) = base {
        let is_html = element.ns == XHTML;
        element.attributes.iter_mut().for_each(|attribute| {
            resolve(ReferencePosition::Attribute { attribute, is_html }, base)
        });
    }
    below(element, base, resolve);
}

/// Puts the resolved reference in place, as long as the tree may still grow.
fn replace(attribute: &mut Attribute, resolved: String, gain: &mut usize) {
    if let Some(left) = gain.checked_sub(resolved.len().saturating_sub(attribute.value.len())) {
        *gain = left;
        attribute.value = resolved;
    }
}
