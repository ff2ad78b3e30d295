//! Atom 1.0, its drafts, and 0.3 where the same elements had other names: what each element means.

use super::Place;
use super::draft::{Draft, Rank, add, add_person};
use crate::entry::notes::Notes;
use crate::extensions::source;
use crate::text::markup::{XHTML, XML, write_nodes};
use crate::text::{base64, clean, date, present, references, visible};
use crate::vocabulary::Vocabulary;
use crate::{Body, Category, Element, Generator, Image, Link, Metadata, Node, Person, Text, TextKind};

/// An Atom child of an entry, of whatever format the entry is; comes back when it is not understood.
pub(crate) fn child(element: Element, place: &Place, draft: &mut Draft<'_>) -> Option<Element> {
    // In an RSS item the elements of RSS come first.
    let rank = if draft.native() == Vocabulary::Rss { Rank::Borrowed } else { Rank::Native };
    match element.name.as_str() {
        "id" => draft.id(rank, &element.text()),
        "title" => draft.title(rank, text(element, place)),
        "link" => match link(&element, place) {
            Some(link) => draft.link(link),
            None => return None,
        },
        "summary" => draft.summary(rank, text(element, place)),
        "content" => {
            if let Some(language) = element.attribute_ns(XML, "lang") {
                draft.language(language);
            }
            draft.content(rank, body(element, place));
        }
        "author" => draft.author(Rank::Native, person(&element, place)),
        "contributor" => draft.contributor(person(&element, place)),
        "category" => match category(&element) {
            Some(category) => draft.category(category),
            None => return Some(element),
        },
        "published" | "issued" => draft.published(rank, &element.text()),
        // Of 0.3: when it was made is not when it was published, so it is also kept as it is.
        "created" => {
            draft.published(Rank::Fallback, &element.text());
            return Some(element);
        }
        "updated" | "modified" => draft.updated(rank, &element.text()),
        "rights" | "copyright" => draft.rights(text(element, place)),
        "source" => source::atom(element, place, draft),
        // RSS's, without a namespace of their own.
        "description" | "pubDate" | "enclosure" | "comments" if draft.native() == Vocabulary::Atom => {
            return super::rss::child(element, place, draft);
        }
        _ => return Some(element),
    }
    None
}

/// `xhtml:body` in an RSS item: the content.
pub(crate) fn xhtml_body(mut element: Element, place: &Place, draft: &mut Draft<'_>) -> Option<Element> {
    if element.name != "body" && element.name != "div" {
        return Some(element);
    }
    references::resolve_markup(&mut element, place.base.as_ref());
    let text = fragment(element, place);
    draft.content(Rank::Borrowed, text.map(|text| Body { text, ..Body::default() }));
    None
}

/// An Atom child of the head; comes back when it is not understood.
pub(crate) fn head(
    element: Element,
    place: &Place,
    head: &mut Metadata,
    notes: &mut Notes,
) -> Option<Element> {
    let plain = || present(&element.text());
    match element.name.as_str() {
        "id" => head.id = head.id.take().or_else(plain),
        "title" => head.title = head.title.take().or_else(|| text(element, place).map(Text::trimmed)),
        "subtitle" | "tagline" => head.description = head.description.take().or_else(|| text(element, place)),
        "link" => {
            if let Some(link) = link(&element, place) {
                add(&mut head.links, link);
            }
        }
        "author" => {
            if let Some(person) = person(&element, place) {
                add_person(&mut head.authors, person);
            }
        }
        "contributor" => {
            if let Some(person) = person(&element, place) {
                add_person(&mut head.contributors, person);
            }
        }
        "category" => {
            if let Some(category) = category(&element) {
                add(&mut head.categories, category);
            }
        }
        "rights" | "copyright" => head.rights = head.rights.take().or_else(|| text(element, place)),
        "generator" => head.generator = head.generator.take().or_else(|| generator(&element, place)),
        "logo" => head.image = head.image.take().or_else(|| plain().map(|url| picture(&url, place))),
        "icon" => head.icon = head.icon.take().or_else(|| plain().map(|url| place.resolve(&url))),
        "updated" | "modified" => {
            head.updated = head.updated.take().or_else(|| date::read(&element.text(), notes));
        }
        "published" => head.published = head.published.take().or_else(|| date::read(&element.text(), notes)),
        _ => return Some(element),
    }
    None
}

/// A generator (RFC 4287 section 4.2.4); 0.3 says `url` for `uri`.
pub(crate) fn generator(element: &Element, place: &Place) -> Option<Generator> {
    let attribute = |name| element.attribute(name).and_then(present);
    let generator = Generator {
        name: present(&element.text()),
        version: attribute("version"),
        uri: attribute("uri").or_else(|| attribute("url")).map(|uri| place.resolve(&uri)),
    };
    (generator != Generator::default()).then_some(generator)
}

/// A picture of which only the address is known.
pub(crate) fn picture(url: &str, place: &Place) -> Image {
    Image { url: place.resolve(url), ..Image::default() }
}

/// What a `type`, or the `mode` of 0.3, says about the inside of an element.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Html,
    Xhtml,
    /// Base64 of a text, which only 0.3 allowed.
    Base64,
    /// The children are the content: markup of another kind.
    Markup(String),
    /// Text of another kind, or base64.
    Other(String),
}

impl Kind {
    /// Illegal types are read for what their writers meant: `text/plain`, `text/html`, the empty string, types with
    /// parameters. Child elements where none may be are XHTML that nobody labelled.
    fn of(element: &Element) -> Self {
        let named = element.attribute("type").unwrap_or("").to_ascii_lowercase();
        let named = named.split(';').next().unwrap_or("").trim();
        let has_children = element.elements().next().is_some();
        // TypePad put escaped HTML into a div; there is no element in that.
        let is_source = matches!(named, "html" | "text/html")
            && element.elements().all(|div| div.name == "div" && div.elements().next().is_none());
        let escaped =
            is_source || element.attribute("mode").is_some_and(|mode| mode.eq_ignore_ascii_case("escaped"));
        let is_base64 =
            named == "base64" || element.attribute("mode").is_some_and(|mode| mode.trim() == "base64");
        match named {
            "" | "text" | "text/plain" | "plain" | "base64" | "html" | "text/html"
                if is_base64 && !has_children =>
            {
                Self::Base64
            }
            "html" | "text/html" | "application/xhtml+xml" | "xhtml" if has_children && !escaped => {
                Self::Xhtml
            }
            "html" | "text/html" | "application/xhtml+xml" => Self::Html,
            // Labelled XHTML, but escaped: what is there is HTML source.
            "xhtml" => Self::Html,
            "" | "text" | "text/plain" | "plain" | "base64" if has_children => Self::Xhtml,
            "" | "text" | "text/plain" | "plain" => Self::Plain,
            other if has_children => Self::Markup(other.to_owned()),
            other => Self::Other(other.to_owned()),
        }
    }
}

/// A text construct (RFC 4287 section 3.1).
pub(crate) fn text(mut element: Element, place: &Place) -> Option<Text> {
    match Kind::of(&element) {
        Kind::Xhtml | Kind::Markup(_) => {
            references::resolve_markup(&mut element, place.base.as_ref());
            fragment(element, place)
        }
        Kind::Html => visible(element.into_characters()).map(|text| place.html(text)),
        Kind::Base64 => visible(element.text()).map(|text| unpack(text, place)),
        Kind::Plain => visible(element.into_characters()).map(|text| place.text(TextKind::Plain, text)),
        // No text construct is of another type; some of 0.3 were base64 under the name of one.
        Kind::Other(_) => visible(element.text()).map(|text| unpack(text, place)),
    }
}

/// The text that base64 stands for; if it is no base64, or that of no text, it stays as it is.
fn unpack(text: String, place: &Place) -> Text {
    let decoded = base64::decode(&text).and_then(|bytes| String::from_utf8(bytes).ok());
    match decoded.map(|decoded| clean(&decoded).into_owned()).and_then(visible) {
        Some(decoded) => place.html(decoded),
        None => place.text(TextKind::Plain, text),
    }
}

/// A content (RFC 4287 section 4.1.3). One that has both `src` and a text keeps the text, which Atom forbids it to have
/// but readers show.
fn body(mut element: Element, place: &Place) -> Option<Body> {
    let kind = Kind::of(&element);
    let src = element.attribute("src").and_then(present).map(|src| place.resolve(&src));
    let named = element.attribute("type").and_then(present);
    let plain = |text| place.text(TextKind::Plain, text);
    let (text, media_type) = match kind {
        Kind::Plain | Kind::Html | Kind::Xhtml | Kind::Base64 => (text(element, place), None),
        Kind::Markup(media_type) => {
            references::resolve_markup(&mut element, place.base.as_ref());
            let mut markup = String::new();
            write_nodes(&mut markup, &element.children, &[]);
            (visible(markup).map(plain), Some(media_type))
        }
        Kind::Other(media_type) => {
            (visible(element.text()).map(|text| other(text, &media_type, place)), Some(media_type))
        }
    };
    match (text, src) {
        (Some(text), _) => Some(Body { text, media_type, src: None }),
        (None, Some(src)) => Some(Body { media_type: named, src: Some(src), ..Body::default() }),
        (None, None) => None,
    }
}

/// What is neither text nor XML is base64 (RFC 4287 section 4.1.3.3), unless it is none.
fn other(text: String, media_type: &str, place: &Place) -> Text {
    let is_text =
        media_type.starts_with("text/") || media_type.ends_with("+xml") || media_type.ends_with("/xml");
    let is_base64 = !is_text && base64::decode(&text).is_some();
    let kind = if is_base64 { TextKind::Base64 } else { TextKind::Plain };
    place.text(kind, text)
}

/// The namespace of Atom 1.0, whose text constructs are stricter than those of its drafts.
const ATOM_10: &str = "http://www.w3.org/2005/Atom";

/// The inside of an XHTML `div` (or of what stands in its place), well-formed, in the XHTML namespace.
fn fragment(mut element: Element, place: &Place) -> Option<Text> {
    let outside =
        element.children.iter().any(|node| matches!(node, Node::Text(text) if present(text).is_some()));
    // In 1.0 the div is packaging; in 0.3, where no type is called `xhtml`, it is content.
    let is_packed =
        element.ns == ATOM_10 || element.attribute("type").is_none_or(|named| !named.contains('/'));
    let unlabelled = element.ns.clone();
    adopt(&mut element, &unlabelled);
    let mut elements = element.elements();
    let wrapper = match (elements.next(), elements.next()) {
        (Some(div), None) if div.name == "div" && !outside && is_packed => div,
        _ => &element,
    };
    let mut value = String::new();
    write_nodes(&mut value, &wrapper.children, &[("", XHTML)]);
    let mut text = place.text(TextKind::Xhtml, visible(value)?);
    if let Some(language) = wrapper.attribute_ns(XML, "lang") {
        text.language = present(language).map(super::language);
    }
    Some(text)
}

/// Puts elements that stand in the feed's own namespace, because nobody declared another, into that of XHTML.
pub(crate) fn adopt(element: &mut Element, unlabelled: &str) {
    for node in &mut element.children {
        if let Node::Element(child) = node {
            if child.ns == unlabelled || child.ns.is_empty() {
                XHTML.clone_into(&mut child.ns);
                child.prefix.clear();
            }
            adopt(child, unlabelled);
        }
    }
}

/// A link; without a target there is none. Some early writers put the target into the text.
pub(crate) fn link(element: &Element, place: &Place) -> Option<Link> {
    let href = element.attribute("href").and_then(present).or_else(|| present(&element.text()))?;
    let rel = element.attribute("rel").and_then(present);
    let rel = rel.map(|rel| match rel.strip_prefix("http://www.iana.org/assignments/relation/") {
        Some(short) => short.to_owned(),
        // Registered relations are compared without regard to case; those that are URIs are not (RFC 8288 section 2.1).
        None if rel.contains(':') => rel,
        None => rel.to_ascii_lowercase(),
    });
    Some(Link {
        href: place.resolve(&href),
        rel: rel.unwrap_or_else(|| "alternate".to_owned()),
        media_type: element.attribute("type").and_then(present),
        title: element.attribute("title").and_then(present),
        hreflang: element.attribute("hreflang").and_then(present),
        length: element.attribute("length").and_then(present),
    })
}

/// A person construct (RFC 4287 section 3.2); 0.3 says `url` for `uri`.
pub(crate) fn person(element: &Element, place: &Place) -> Option<Person> {
    let field = |names: &[&str]| {
        element
            .elements()
            .find(|child| names.contains(&child.name.as_str()))
            .and_then(|child| present(&child.text()))
    };
    if element.elements().next().is_none() {
        return super::rss::person(&element.text());
    }
    let person = Person {
        name: field(&["name"]),
        email: field(&["email"]),
        uri: field(&["uri", "url", "homepage"]).map(|uri| place.resolve(&uri)),
        byline: None,
    };
    (person != Person::default()).then_some(person)
}

/// A category; some writers put the term into the text.
pub(crate) fn category(element: &Element) -> Option<Category> {
    let label = element.attribute("label").and_then(present);
    let term = element.attribute("term").and_then(present).or_else(|| label.clone());
    Some(Category {
        term: term.or_else(|| present(&element.text()))?,
        scheme: element.attribute("scheme").and_then(present),
        label,
    })
}
