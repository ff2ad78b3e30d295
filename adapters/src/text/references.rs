//! The relative references of a tree made absolute, so that it means the same wherever it is written; not those of HTML
//! that is kept as text.

use url::Url;

use super::markup::{XLINK, XML};
use super::{html, uri};
use crate::{Attribute, Element, Node};

/// Attributes that hold a URL in nearly every vocabulary that feeds carry: Media RSS, iTunes, RDF, XLink.
const FOREIGN_ATTRIBUTES: [&str; 4] = ["href", "src", "url", "resource"];

/// Resolves what HTML calls references below an element of XHTML, and takes away the bases that they were relative to.
pub(crate) fn resolve_markup(element: &mut Element, base: Option<&Url>) {
    let mut gain = html::GAIN_BYTES_MAX;
    below(element, base, &mut |attribute, base| {
        let name = match attribute.ns.as_str() {
            "" => attribute.name.as_str(),
            XLINK if attribute.name == "href" => "xlink:href",
            _ => return,
        };
        if let Some(resolved) = html::resolve_attribute(name, &attribute.value, base) {
            replace(attribute, resolved, &mut gain);
        }
    });
}

/// Resolves what is a reference in foreign markup, on the element itself and below.
pub(crate) fn resolve_foreign(element: &mut Element, base: Option<&Url>) {
    let mut gain = html::GAIN_BYTES_MAX;
    let mut resolve = |attribute: &mut Attribute, base: &Url| {
        let reference = super::trim(&attribute.value);
        if FOREIGN_ATTRIBUTES.contains(&attribute.name.as_str()) && html::is_relative(reference) {
            let resolved = uri::resolve(Some(base), reference);
            replace(attribute, resolved, &mut gain);
        }
    };
    enter(element, base, &mut resolve);
}

/// A function of an attribute and the base in force where it stands.
type Resolve<'r> = &'r mut dyn FnMut(&mut Attribute, &Url);

fn below(element: &mut Element, base: Option<&Url>, resolve: Resolve<'_>) {
    for node in &mut element.children {
        if let Node::Element(child) = node {
            enter(child, base, resolve);
        }
    }
}

/// A bad `xml:base` changes nothing; either way the attribute has done its work.
fn enter(element: &mut Element, base: Option<&Url>, resolve: Resolve<'_>) {
    let rebased = element.attribute_ns(XML, "base").and_then(|reference| uri::rebase(base, reference));
    let base = rebased.as_ref().or(base);
    element.attributes.retain(|attribute| !(attribute.ns == XML && attribute.name == "base"));
    if let Some(base) = base {
        element.attributes.iter_mut().for_each(|attribute| resolve(attribute, base));
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
