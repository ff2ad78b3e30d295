//! Where an aggregated entry was copied from: `atom:source` and RSS `source`; the head of the document itself is elsewhere.

use crate::formats::draft::{Draft, Rank, add, add_person};
use crate::formats::{Place, atom, children, rss};
use crate::text::{date, present};
use crate::vocabulary::Vocabulary;
use crate::{Element, Link, Source};

/// How many elements of other vocabularies one source keeps, nested ones counted; the rest are dropped.
const FOREIGN_ELEMENTS_MAX: usize = 128;

/// `atom:source`. Its authors are the entry's when it names none (RFC 4287 section 4.2.1).
pub(crate) fn atom(element: Element, place: &Place, draft: &mut Draft<'_>) {
    let mut source = Source::default();
    let mut foreign_elements = 0;
    for child in children(element) {
        let place = place.enter(&child, draft.notes());
        let left = match draft.vocabulary(&child.ns) {
            Vocabulary::Atom => atom_child(child, &place, &mut source, draft),
            _ => Some(child),
        };
        let Some(left) = left else { continue };
        foreign_elements += left.size();
        if foreign_elements <= FOREIGN_ELEMENTS_MAX {
            source.foreign.push(left);
        }
    }
    for author in &source.authors {
        draft.author(Rank::Fallback, Some(author.clone()));
    }
    draft.source(source);
}

/// One child; comes back when it is not understood.
fn atom_child(
    element: Element,
    place: &Place,
    source: &mut Source,
    draft: &mut Draft<'_>,
) -> Option<Element> {
    let plain = || present(&element.text());
    match element.name.as_str() {
        "id" => source.id = source.id.take().or_else(plain),
        "title" => {
            source.title = source.title.take().or_else(|| Some(atom::text(element, place)?.trimmed()));
        }
        "subtitle" | "tagline" => {
            source.subtitle = source.subtitle.take().or_else(|| atom::text(element, place));
        }
        "link" => add(&mut source.links, atom::link(&element, place)?),
        "author" => add_person(&mut source.authors, atom::person(&element, place)?),
        "contributor" => add_person(&mut source.contributors, atom::person(&element, place)?),
        "category" => add(&mut source.categories, atom::category(&element)?),
        "generator" => {
            source.generator = source.generator.take().or_else(|| atom::generator(&element, place))
        }
        "icon" => source.icon = source.icon.take().or_else(|| plain().map(|url| place.resolve(&url))),
        "logo" => source.logo = source.logo.take().or_else(|| plain().map(|url| place.resolve(&url))),
        "rights" | "copyright" => {
            source.rights = source.rights.take().or_else(|| atom::text(element, place));
        }
        "updated" | "modified" => {
            source.updated = source.updated.take().or_else(|| date::read(&element.text(), draft.notes()));
        }
        _ => return Some(element),
    }
    None
}

/// RSS `source`: the name of a feed and its URL.
pub(crate) fn rss(element: &Element, place: &Place, draft: &mut Draft<'_>) {
    let url = element.attribute("url").and_then(present);
    let source = Source {
        title: rss::title(element, place),
        links: url.map(|url| own_link(place.resolve(&url))).into_iter().collect(),
        ..Source::default()
    };
    if source != Source::default() {
        draft.source(source);
    }
}

fn own_link(href: String) -> Link {
    Link { href, rel: "self".to_owned(), ..Link::default() }
}

impl Source {
    /// URL of the source: of the feed itself, else of its site.
    pub fn url(&self) -> Option<&str> {
        let with = |rel: &str| self.links.iter().find(|link| link.rel == rel).map(|link| link.href.as_str());
        with("self").or_else(|| with("alternate"))
    }
}
