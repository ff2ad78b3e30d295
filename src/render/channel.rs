//! A feed's own elements and links in Atom and RSS: which of them come out again, and which would
//! say something false of a document of ours. The writers of the syntaxes say where the rest of the
//! metadata stands.

use super::{foreign, namespaces as ns};
use everfeed_adapters::{Element, Link, Metadata, Node};
use std::collections::HashSet;

/// Relations of links that are never repeated: they lead to the publisher's own documents, pages
/// and hubs, beside which ours has its own. `#feed` is what Google's software calls `self`.
const RELATIONS: &[&str] = &[
    "self",
    "hub",
    "hub.subscribe",
    "current",
    "first",
    "last",
    "next",
    "previous",
    "prev",
    "next-archive",
    "prev-archive",
    "http://schemas.google.com/g/2005#feed",
];

/// Vocabularies that are never repeated: cursors, tombstones, archives and how often to ask are our
/// own.
const VOCABULARIES: &[&str] = &[
    ns::SMART_FEED,
    ns::TOMBSTONES,
    ns::FEED_HISTORY,
    ns::ATOM,
    ns::SYNDICATION,
];

/// Elements, without regard to vocabulary and case, that are never repeated: counts of the
/// publisher's own pages, what to register at, what stands around the entries, where the entries
/// are, and where the feed has moved to.
const NAMES: &[&str] = &[
    "cloud",
    "edited",
    "entry",
    "item",
    "items",
    "itemsperpage",
    "redirect",
    "startindex",
    "totalresults",
    "ttl",
];

/// Limit of the foreign markup of a feed in one document, in bytes; elements that do not fit are
/// left out. Every page and every push carries it.
pub(super) const MARKUP_BYTES_MAX: usize = 64 * 1024;

/// Limit of the links of a feed in one document.
const LINKS_MAX: usize = 64;

/// The links of a feed beside its site and ours. Of alternates only those that differ from the ones
/// before by type and language (RFC 4287 section 4.1.1); `taken` holds the types of those without a
/// language.
pub(super) fn links<'m>(metadata: &'m Metadata, taken: &HashSet<&'m str>) -> Vec<&'m Link> {
    let mut alternates: HashSet<_> = taken
        .iter()
        .map(|media_type| (Some(*media_type), None))
        .collect();
    let site = metadata.site();
    let others = metadata
        .links
        .iter()
        .filter(|link| site.is_none_or(|site| !std::ptr::eq(*link, site)));
    let mut is_new = |link: &'m Link| {
        link.rel != "alternate"
            || alternates.insert((link.media_type.as_deref(), link.hreflang.as_deref()))
    };
    others
        .filter(|link| !RELATIONS.contains(&link.rel.as_str()))
        .filter(|link| is_new(link))
        .take(LINKS_MAX)
        .collect()
}

/// The search box of a feed, in the words of RSS.
#[derive(Clone, Copy)]
pub(super) struct TextInput<'m> {
    /// The label of its button.
    pub(super) title: &'m str,
    /// The words that say what it is for.
    pub(super) description: &'m str,
    /// The name of its parameter.
    pub(super) name: &'m str,
    /// The URL that takes the request.
    pub(super) link: &'m str,
}

/// The search box of a feed that has one, whole: RSS 1.0 demands all four of its parts.
pub(super) fn text_input(metadata: &Metadata) -> Option<TextInput<'_>> {
    let is_one = |element: &&Element| element.ns.is_empty() && element.name == "textInput";
    let element = metadata.foreign.iter().find(is_one)?;
    let field = |name: &str| {
        let child = element.elements().find(|child| child.name == name)?;
        match &child.children[..] {
            [Node::Text(text)] => Some(text.as_str()),
            _ => None,
        }
    };
    Some(TextInput {
        title: field("title")?,
        description: field("description")?,
        name: field("name")?,
        link: field("link")?,
    })
}

/// Writes the elements of a feed that no field of its metadata covers. `is_own` is true for
/// un-namespaced names that mean something in the syntax itself, whose writer has said it.
pub(super) fn elements(
    metadata: &Metadata,
    declared: &[(&str, &str)],
    is_own: fn(&str) -> bool,
    mut write: impl FnMut(&str),
) {
    let mut left = MARKUP_BYTES_MAX;
    for element in foreign_elements(metadata, is_own) {
        let mut markup = String::new();
        foreign::write(&mut markup, element, declared);
        if let Some(rest) = left
            .checked_sub(markup.len())
            .filter(|_| !markup.is_empty())
        {
            left = rest;
            write(&markup);
        }
    }
}

/// The elements of a feed that come out again, however long they are.
pub(super) fn foreign_elements(
    metadata: &Metadata,
    is_own: fn(&str) -> bool,
) -> impl Iterator<Item = &Element> {
    metadata
        .foreign
        .iter()
        .filter(move |element| !is_left_out(element, is_own))
}

fn is_left_out(element: &Element, is_own: fn(&str) -> bool) -> bool {
    let name = element.name.to_ascii_lowercase();
    VOCABULARIES.contains(&element.ns.as_str())
        || NAMES.contains(&name.as_str())
        || (element.ns.is_empty() && is_own(&name))
}
