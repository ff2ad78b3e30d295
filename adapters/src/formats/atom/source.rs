//! `atom:source`: the feed that an aggregated entry was copied from.

use crate::reading::construct::{category, generator, link};
use crate::reading::text_construct::text;
use crate::reading::{Draft, Rank, Scope, add, add_person, fill, person};
use crate::text::date;
use crate::vocabulary::Vocabulary;
use crate::{Element, Source};

/// Limit of the elements of other vocabularies that one source keeps, nested ones counted; the rest
/// are dropped.
const FOREIGN_ELEMENTS_MAX: usize = 128;

/// Reads it. Its authors are the entry's when it names none (RFC 4287 section 4.2.1).
pub(super) fn read(element: Element, scope: &Scope, draft: &mut Draft<'_>) {
    let mut source = Source::default();
    let mut foreign_elements = 0;
    for child in element.into_elements() {
        let scope = scope.enter(&child, draft.notes());
        let left = match draft.vocabulary(&child.ns) {
            Vocabulary::Atom => source_child(child, &scope, &mut source, draft),
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
fn source_child(
    element: Element,
    scope: &Scope,
    source: &mut Source,
    draft: &mut Draft<'_>,
) -> Option<Element> {
    let plain = || element.words();
    match element.name.as_str() {
        "id" => fill(&mut source.id, plain),
        "title" => fill(&mut source.title, || Some(text(element, scope)?.trimmed())),
        "subtitle" | "tagline" => fill(&mut source.subtitle, || text(element, scope)),
        "link" => add(&mut source.links, link(&element, scope)?),
        "author" => add_person(&mut source.authors, person::construct(&element, scope)?),
        "contributor" => add_person(
            &mut source.contributors,
            person::construct(&element, scope)?,
        ),
        "category" => add(&mut source.categories, category(&element)?),
        "generator" => fill(&mut source.generator, || generator(&element, scope)),
        "icon" => fill(&mut source.icon, || plain().map(|url| scope.resolve(&url))),
        "logo" => fill(&mut source.logo, || plain().map(|url| scope.resolve(&url))),
        "rights" | "copyright" => fill(&mut source.rights, || text(element, scope)),
        "updated" | "modified" => fill(&mut source.updated, || {
            date::read(&element.text(), draft.notes())
        }),
        _ => return Some(element),
    }
    None
}
