//! RSS of every version, RSS 1.0's elements included: what each element means. RSS has no say about
//! markup: a text is HTML.

mod cloud;
mod rhythm;

use crate::note::Notes;
use crate::reading::construct::{self, alternate_link, is_web_url};
use crate::reading::untyped_text::{html, title};
use crate::reading::{Draft, Rank, Scope, VALUES_MAX, add, add_person, person};
use crate::text::{date, present};
use crate::vocabulary::Vocabulary;
use crate::{
    Attribute, Body, Category, Element, Enclosure, Generator, Image, IsPermaLink, Link, Metadata,
    Node, Source,
};

/// An RSS child of an entry; comes back when it is not understood.
pub(crate) fn entry_child(
    element: Element,
    scope: &Scope,
    draft: &mut Draft<'_>,
) -> Option<Element> {
    let lower = lower_case(&element.name);
    match lower.as_deref().unwrap_or(&element.name) {
        "title" => draft.title(Rank::Native, title(&element, scope)),
        "link" => draft_link(&element, scope, draft),
        "description" => draft.summary(Rank::Native, html(element, scope)),
        // Not of RSS: Atom's, without its namespace.
        "summary" => draft.lead(html(element, scope)),
        "guid" => guid(&element, scope, draft),
        // `content` is Atom's, without its namespace, but what is in it is what RSS would have
        // there.
        "fullitem" | "content" => draft.content(
            Rank::Borrowed,
            html(element, scope).map(|text| Body {
                text,
                ..Body::default()
            }),
        ),
        "author" => draft.author(Rank::Native, person::line(&element.text())),
        "category" => draft.category(category(&element)?),
        // Not of RSS either, and often met.
        "tags" => element
            .text()
            .split(',')
            .take(VALUES_MAX)
            .filter_map(present)
            .for_each(|term| {
                draft.category(Category {
                    term,
                    ..Category::default()
                });
            }),
        "enclosure" => match enclosure(&element, scope) {
            Some(enclosure) => draft.enclosure(enclosure),
            None => return Some(element),
        },
        "pubdate" => draft.published(Rank::Native, &element.text()),
        "comments" => match present(&element.text()) {
            Some(url) => draft.comments(scope.resolve(&url)),
            None => return None,
        },
        "source" => source(&element, scope, draft),
        _ => return Some(element),
    }
    None
}

/// The name in lower case, unless it is.
fn lower_case(name: &str) -> Option<String> {
    name.bytes()
        .any(|b| b.is_ascii_uppercase())
        .then(|| name.to_ascii_lowercase())
}

/// `content:encoded`, the whole post beside a shorter description.
pub(crate) fn content(element: Element, scope: &Scope, draft: &mut Draft<'_>) -> Option<Element> {
    if element.name != "encoded" {
        return Some(element);
    }
    draft.content(
        Rank::Native,
        html(element, scope).map(|text| Body {
            text,
            ..Body::default()
        }),
    );
    None
}

/// `feedburner:origLink`: the permalink that FeedBurner replaced by one of its own.
pub(crate) fn original_link(element: Element, draft: &mut Draft<'_>) -> Option<Element> {
    match present(&element.text()) {
        Some(url) if element.name.eq_ignore_ascii_case("origLink") => draft.original_link(url),
        _ => return Some(element),
    }
    None
}

/// An RSS child of the feed; comes back when it is not understood.
pub(crate) fn feed_child(
    element: Element,
    scope: &Scope,
    metadata: &mut Metadata,
    notes: &mut Notes,
) -> Option<Element> {
    let text = || present(&element.text());
    let lower = lower_case(&element.name);
    match lower.as_deref().unwrap_or(&element.name) {
        "title" => metadata.title = metadata.title.take().or_else(|| title(&element, scope)),
        "link" => {
            if let Some(link) = link(&element, scope) {
                add(&mut metadata.links, link);
            }
        }
        "description" => {
            metadata.description = metadata.description.take().or_else(|| html(element, scope))
        }
        "language" => metadata.language = text().or(metadata.language.take()),
        "copyright" => metadata.rights = metadata.rights.take().or_else(|| title(&element, scope)),
        "managingeditor" | "author" => {
            if let Some(person) = person::line(&element.text()) {
                add_person(&mut metadata.authors, person);
            }
        }
        "category" => {
            if let Some(category) = category(&element) {
                add(&mut metadata.categories, category);
            }
        }
        "generator" => {
            let named = || {
                text().map(|name| Generator {
                    name: Some(name),
                    ..Generator::default()
                })
            };
            metadata.generator = metadata.generator.take().or_else(named);
        }
        "lastbuilddate" => {
            metadata.updated = metadata
                .updated
                .take()
                .or_else(|| date::read(&element.text(), notes))
        }
        "pubdate" => {
            metadata.published = metadata
                .published
                .take()
                .or_else(|| date::read(&element.text(), notes))
        }
        "image" => metadata.image = metadata.image.take().or_else(|| image(&element, scope)),
        // RSS 1.0 lists its items in the channel; the order of the items themselves says the same.
        "items" => {}
        "textinput" if is_reference(&element) => {}
        "textinput" => return Some(text_input(element, scope)),
        "ttl" | "skiphours" | "skipdays" => rhythm::read(&element, &mut metadata.rhythm),
        "cloud" => match cloud::read(&element) {
            Some(cloud) => metadata.cloud = metadata.cloud.take().or(Some(cloud)),
            None => return Some(element),
        },
        _ => return Some(element),
    }
    None
}

/// True for an element that only says which other one is meant: RSS 1.0 names its search box in the
/// channel, and describes it beside the channel.
fn is_reference(element: &Element) -> bool {
    let names = |attribute: &Attribute| {
        attribute.name == "resource" && Vocabulary::of(&attribute.ns) == Vocabulary::Rdf
    };
    element.children.is_empty() && element.attributes.iter().any(names)
}

/// A search box in the words of RSS 2.0, whichever RSS it is from. It stays foreign markup.
fn text_input(element: Element, scope: &Scope) -> Element {
    let field = |name: &str| {
        let child = element
            .elements()
            .find(|child| child.name.eq_ignore_ascii_case(name))?;
        let text = present(&child.text())?;
        let text = if name == "link" {
            scope.resolve(&text)
        } else {
            text
        };
        Some(Node::Element(bare(name, vec![Node::Text(text)])))
    };
    bare(
        "textInput",
        ["title", "description", "name", "link"]
            .into_iter()
            .filter_map(field)
            .collect(),
    )
}

/// An element of RSS 2.0.
fn bare(name: &str, children: Vec<Node>) -> Element {
    Element {
        name: name.to_owned(),
        children,
        ..Element::default()
    }
}

fn draft_link(element: &Element, scope: &Scope, draft: &mut Draft<'_>) {
    if let Some(link) = link(element, scope) {
        draft.link(link);
    }
}

/// `<link>http://..</link>`, or an Atom link whose writer forgot the namespace.
fn link(element: &Element, scope: &Scope) -> Option<Link> {
    match present(&element.text()) {
        Some(url) => Some(alternate_link(scope.resolve(&url))),
        None => construct::link(element, scope),
    }
}

/// The id, and the permalink that it may be: `isPermaLink` is true when it is not given (RSS 2.0).
fn guid(element: &Element, scope: &Scope, draft: &mut Draft<'_>) {
    let Some(url) = present(&element.text()) else {
        return;
    };
    let said = match element.attribute("isPermaLink").map(str::trim) {
        None => IsPermaLink::Unstated,
        Some(said) if said.eq_ignore_ascii_case("true") => IsPermaLink::True,
        Some(_) => IsPermaLink::False,
    };
    draft.guid(&url, said);
    if said == IsPermaLink::True || (said == IsPermaLink::Unstated && is_web_url(&url)) {
        draft.permalink(Rank::Native, scope.resolve(&url));
    }
}

fn category(element: &Element) -> Option<Category> {
    let scheme = element.attribute("domain").and_then(present);
    Some(Category {
        term: present(&element.text())?,
        scheme,
        label: None,
    })
}

fn enclosure(element: &Element, scope: &Scope) -> Option<Enclosure> {
    Some(Enclosure {
        url: scope.resolve(&element.attribute("url").and_then(present)?),
        media_type: element.attribute("type").and_then(present),
        length: element.attribute("length").and_then(present),
        title: None,
        is_illustration: false,
    })
}

fn image(element: &Element, scope: &Scope) -> Option<Image> {
    let field = |name: &str| {
        let child = element
            .elements()
            .find(|child| child.name.eq_ignore_ascii_case(name))?;
        present(&child.text())
    };
    Some(Image {
        url: scope.resolve(&field("url")?),
        title: field("title"),
        link: field("link").map(|link| scope.resolve(&link)),
        width: field("width"),
        height: field("height"),
        description: field("description"),
    })
}

/// RSS `source`: the name of a feed and its URL.
fn source(element: &Element, scope: &Scope, draft: &mut Draft<'_>) {
    let url = element.attribute("url").and_then(present);
    let source = Source {
        title: title(element, scope),
        links: url
            .map(|url| own_link(scope.resolve(&url)))
            .into_iter()
            .collect(),
        ..Source::default()
    };
    if source != Source::default() {
        draft.source(source);
    }
}

fn own_link(href: String) -> Link {
    Link {
        href,
        rel: "self".to_owned(),
        ..Link::default()
    }
}
