//! RSS of every version, RSS 1.0's elements included: what each element means. RSS has no say about
//! markup: a text is HTML.

mod cloud;
mod rhythm;

use crate::note::Notes;
use crate::reading::construct::{self, is_web_url};
use crate::reading::untyped_text::{html, title};
use crate::reading::{Draft, Rank, Scope, VALUES_MAX, add, add_person, fill, person};
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
        "link" => draft.link(link(&element, scope)?),
        "description" => draft.summary(Rank::Native, html(element, scope)),
        // Not of RSS: Atom's, without its namespace.
        "summary" => draft.lead(html(element, scope)),
        "guid" => guid(&element, scope, draft),
        // `content` is Atom's, without its namespace, but what is in it is what RSS would have
        // there.
        "fullitem" | "content" => {
            draft.content(Rank::Borrowed, html(element, scope).map(Body::from))
        }
        "author" => draft.author(Rank::Native, person::line(&element.text())),
        "category" => draft.category(category(&element)?),
        // Not of RSS either, and often met.
        "tags" => element
            .text()
            .split(',')
            .take(VALUES_MAX)
            .filter_map(present)
            .for_each(|term| {
                draft.category(Category::of(term));
            }),
        "enclosure" => match enclosure(&element, scope) {
            Some(enclosure) => draft.enclosure(enclosure),
            None => return Some(element),
        },
        "pubdate" => draft.published(Rank::Native, &element.text()),
        "comments" => draft.comments(scope.resolve(&element.words()?)),
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
    draft.content(Rank::Native, html(element, scope).map(Body::from));
    None
}

/// `feedburner:origLink`: the permalink that FeedBurner replaced by one of its own.
pub(crate) fn original_link(element: Element, draft: &mut Draft<'_>) -> Option<Element> {
    match element.words() {
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
    let lower = lower_case(&element.name);
    match lower.as_deref().unwrap_or(&element.name) {
        "title" => fill(&mut metadata.title, || title(&element, scope)),
        "link" => add(&mut metadata.links, link(&element, scope)),
        "description" => fill(&mut metadata.description, || html(element, scope)),
        "language" => metadata.language = element.words().or(metadata.language.take()),
        "copyright" => fill(&mut metadata.rights, || title(&element, scope)),
        "managingeditor" | "author" => {
            add_person(&mut metadata.authors, person::line(&element.text()))
        }
        "category" => add(&mut metadata.categories, category(&element)),
        "generator" => {
            let named = |name| Generator {
                name: Some(name),
                ..Generator::default()
            };
            fill(&mut metadata.generator, || element.words().map(named));
        }
        "lastbuilddate" => fill(&mut metadata.updated, || date::read(&element.text(), notes)),
        "pubdate" => fill(&mut metadata.published, || {
            date::read(&element.text(), notes)
        }),
        "image" => fill(&mut metadata.image, || image(&element, scope)),
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
        let mut text = element.field(name)?;
        if name == "link" {
            text = scope.resolve(&text);
        }
        Some(Node::Element(bare(name, vec![Node::Text(text)])))
    };
    let fields = ["title", "description", "name", "link"];
    bare("textInput", fields.into_iter().filter_map(field).collect())
}

/// An element of RSS 2.0.
fn bare(name: &str, children: Vec<Node>) -> Element {
    Element {
        name: name.to_owned(),
        children,
        ..Element::default()
    }
}

/// `<link>http://..</link>`, or an Atom link whose writer forgot the namespace.
fn link(element: &Element, scope: &Scope) -> Option<Link> {
    match element.words() {
        Some(url) => Some(Link::to("alternate", scope.resolve(&url))),
        None => construct::link(element, scope),
    }
}

/// The id, and the permalink that it may be: `isPermaLink` is true when it is not given (RSS 2.0).
fn guid(element: &Element, scope: &Scope, draft: &mut Draft<'_>) {
    let Some(url) = element.words() else {
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
    Some(Category {
        scheme: element.filled("domain"),
        ..Category::of(element.words()?)
    })
}

fn enclosure(element: &Element, scope: &Scope) -> Option<Enclosure> {
    Some(Enclosure {
        url: scope.resolve(&element.filled("url")?),
        media_type: element.filled("type"),
        length: element.filled("length"),
        ..Enclosure::default()
    })
}

fn image(element: &Element, scope: &Scope) -> Option<Image> {
    Some(Image {
        url: scope.resolve(&element.field("url")?),
        title: element.field("title"),
        link: element.field("link").map(|link| scope.resolve(&link)),
        width: element.field("width"),
        height: element.field("height"),
        description: element.field("description"),
    })
}

/// RSS `source`: the name of a feed and its URL.
fn source(element: &Element, scope: &Scope, draft: &mut Draft<'_>) {
    let url = element.filled("url");
    let source = Source {
        title: title(element, scope),
        links: Vec::from_iter(url.map(|url| Link::to("self", scope.resolve(&url)))),
        ..Source::default()
    };
    if source != Source::default() {
        draft.source(source);
    }
}
