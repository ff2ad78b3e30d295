//! The most that is kept of each short part of an entry: ids, links, names, tags, dates; not of the
//! whole, nor of its texts.

use everfeed_adapters::{
    Category, Date, Element, Enclosure, Entry, Generator, Link, Node, Person, Source, Text,
    TextKind,
};

/// The most bytes of an id that is kept in clear; of a longer one only what its digest makes:
/// `fo:id`, and a `urn:uuid:`.
pub const ID_BYTES_MAX: usize = 2048;

/// The most bytes of a link; a longer one is left out. What is inside a link (`data:`) counts
/// towards the bytes of the item.
pub const LINK_BYTES_MAX: usize = 8192;

/// The most bytes of a title, a name or a tag; what is longer is cut.
pub const NAME_BYTES_MAX: usize = 4096;

/// The most bytes of a date as it was written, a language, a media type or a relation; a longer one
/// is none.
pub(super) const WORD_BYTES_MAX: usize = 256;

/// A short part of a title or a name that was cut ends so.
const CUT: &str = "\u{2026}";

// Decides: How long may an id, a link, a name, a date or a tag be?
/// An entry whose short parts are within their limits; `None` for one whose parts are already.
pub fn within_caps(entry: &Entry) -> Option<Entry> {
    let mut short = entry.clone();
    if short.id.as_ref().is_some_and(|id| id.len() > ID_BYTES_MAX) {
        (short.id, short.is_permalink) = (None, None);
    }
    cap_text(&mut short.title, NAME_BYTES_MAX);
    for text in [&mut short.summary, &mut short.rights] {
        cap_attributes(text.as_mut());
    }
    if let Some(body) = &mut short.content {
        cap_attributes(Some(&mut body.text));
        drop_long(&mut body.media_type, WORD_BYTES_MAX);
        if body.src.as_deref().is_some_and(|src| !is_link(src)) {
            body.src = None;
        }
    }
    short.links.retain_mut(link_fits);
    short.enclosures.retain_mut(enclosure_fits);
    short
        .authors
        .iter_mut()
        .chain(&mut short.contributors)
        .for_each(cap_person);
    short.categories.iter_mut().for_each(cap_tag);
    [&mut short.published, &mut short.updated]
        .into_iter()
        .for_each(cap_date);
    drop_long(&mut short.comments, LINK_BYTES_MAX);
    drop_long(&mut short.language, WORD_BYTES_MAX);
    if let Some(source) = &mut short.source {
        cap_source(source);
    }
    short.foreign.retain_mut(element_fits);
    (short != *entry).then_some(short)
}

pub(super) fn link_fits(link: &mut Link) -> bool {
    cut_name(&mut link.title);
    for word in [&mut link.media_type, &mut link.hreflang, &mut link.length] {
        drop_long(word, WORD_BYTES_MAX);
    }
    is_link(&link.href) && link.rel.len() <= WORD_BYTES_MAX
}

fn enclosure_fits(file: &mut Enclosure) -> bool {
    cut_name(&mut file.title);
    for word in [&mut file.media_type, &mut file.length] {
        drop_long(word, WORD_BYTES_MAX);
    }
    is_link(&file.url)
}

pub(super) fn cap_person(person: &mut Person) {
    for name in [&mut person.name, &mut person.email, &mut person.byline] {
        cut_name(name);
    }
    drop_long(&mut person.uri, LINK_BYTES_MAX);
}

pub(super) fn cap_tag(tag: &mut Category) {
    cut(&mut tag.term);
    cut_name(&mut tag.label);
    drop_long(&mut tag.scheme, LINK_BYTES_MAX);
}

pub(super) fn cap_date(date: &mut Option<Date>) {
    if let Some(date) = date.as_mut().filter(|date| date.raw.len() > WORD_BYTES_MAX) {
        date.raw = String::new();
    }
}

fn is_link(url: &str) -> bool {
    url.len() <= LINK_BYTES_MAX || url.starts_with("data:")
}

pub(super) fn drop_long(text: &mut Option<String>, bytes_max: usize) {
    if text.as_ref().is_some_and(|text| text.len() > bytes_max) {
        *text = None;
    }
}

pub(super) fn cut_name(name: &mut Option<String>) {
    if let Some(name) = name {
        cut(name);
    }
}

/// Cuts a text to that length, and drops its language and its base where they are too long.
pub(super) fn cap_text(text: &mut Option<Text>, bytes_max: usize) {
    if let Some(text) = text.as_mut().filter(|text| text.value.len() > bytes_max) {
        cut_to(&mut text.value, bytes_max);
        // Markup that is cut is none.
        text.kind = TextKind::Plain;
    }
    cap_attributes(text.as_mut());
}

/// Drops the language and the base of a text where they are too long.
pub(super) fn cap_attributes(text: Option<&mut Text>) {
    if let Some(text) = text {
        drop_long(&mut text.language, WORD_BYTES_MAX);
        drop_long(&mut text.base, LINK_BYTES_MAX);
    }
}

pub(super) fn cap_generator(generator: Option<&mut Generator>) {
    if let Some(generator) = generator {
        cut_name(&mut generator.name);
        drop_long(&mut generator.version, WORD_BYTES_MAX);
        drop_long(&mut generator.uri, LINK_BYTES_MAX);
    }
}

/// Brings what an entry says of the feed that it is from within the limits.
fn cap_source(source: &mut Source) {
    cap_text(&mut source.title, NAME_BYTES_MAX);
    for text in [&mut source.subtitle, &mut source.rights] {
        cap_attributes(text.as_mut());
    }
    drop_long(&mut source.id, ID_BYTES_MAX);
    source.links.retain_mut(link_fits);
    source
        .authors
        .iter_mut()
        .chain(&mut source.contributors)
        .for_each(cap_person);
    source.categories.iter_mut().for_each(cap_tag);
    cap_generator(source.generator.as_mut());
    drop_long(&mut source.icon, LINK_BYTES_MAX);
    drop_long(&mut source.logo, LINK_BYTES_MAX);
    cap_date(&mut source.updated);
    source.foreign.retain_mut(element_fits);
}

/// True for an element that is kept: one without attributes that are too long, as addresses of
/// files are. Elements inside it that are not kept are taken out of it.
fn element_fits(element: &mut Element) -> bool {
    element.children.retain_mut(|child| match child {
        Node::Element(element) => element_fits(element),
        Node::Text(_) => true,
    });
    let is_name = |ns: &str, prefix: &str, name: &str| {
        ns.len() <= LINK_BYTES_MAX && prefix.len().max(name.len()) <= WORD_BYTES_MAX
    };
    is_name(&element.ns, &element.prefix, &element.name)
        && element.attributes.iter().all(|attribute| {
            is_name(&attribute.ns, &attribute.prefix, &attribute.name) && is_link(&attribute.value)
        })
}

/// The parts of an entry that another lacks or has in another form, in words.
pub fn differing(entry: &Entry, short: &Entry) -> Vec<&'static str> {
    let parts = [
        ("id", entry.id != short.id),
        ("title", entry.title != short.title),
        ("summary", entry.summary != short.summary),
        ("content", entry.content != short.content),
        ("links", entry.links != short.links),
        ("authors", entry.authors != short.authors),
        ("contributors", entry.contributors != short.contributors),
        ("categories", entry.categories != short.categories),
        ("files", entry.enclosures != short.enclosures),
        ("publication date", entry.published != short.published),
        ("modification date", entry.updated != short.updated),
        ("rights", entry.rights != short.rights),
        ("comments", entry.comments != short.comments),
        ("language", entry.language != short.language),
        ("source", entry.source != short.source),
        (
            "elements of other vocabularies",
            entry.foreign != short.foreign,
        ),
    ];
    parts
        .into_iter()
        .filter_map(|(name, differs)| differs.then_some(name))
        .collect()
}

fn cut(text: &mut String) {
    cut_to(text, NAME_BYTES_MAX);
}

/// Cuts a text that is too long between two characters.
pub fn cut_to(text: &mut String, bytes_max: usize) {
    if text.len() <= bytes_max {
        return;
    }
    let most = bytes_max.saturating_sub(CUT.len());
    let end = (0..=most)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or_default();
    text.truncate(end);
    text.push_str(CUT);
}

#[cfg(test)]
mod tests {
    use super::*;
    use everfeed_adapters::{Attribute, Body};

    fn long(bytes: usize) -> String {
        "\u{fc}".repeat(bytes / 2)
    }

    #[test]
    fn every_short_part_is_within_its_limit_and_what_fits_stays_as_it_is() {
        let link = |href: String| Link {
            href,
            rel: "alternate".into(),
            ..Link::default()
        };
        let person = Person {
            name: Some(long(9999)),
            uri: Some(long(99_999)),
            ..Person::default()
        };
        let huge = Entry {
            id: Some(long(30_000_000)),
            title: Some(Text::html(long(9999))),
            links: vec![link(long(99_999)), link("http://e.org/1".into())],
            enclosures: vec![Enclosure {
                url: long(99_999),
                ..Enclosure::default()
            }],
            authors: vec![person.clone()],
            contributors: vec![person],
            categories: vec![Category {
                term: long(9999),
                scheme: Some(long(99_999)),
                label: Some(long(9999)),
            }],
            published: Some(Date {
                raw: long(9999),
                at_us: Some(1),
            }),
            updated: Some(Date {
                raw: long(9999),
                at_us: None,
            }),
            language: Some(long(9999)),
            comments: Some(long(99_999)),
            ..Entry::default()
        };
        let short = within_caps(&huge).unwrap();
        assert_eq!(
            (&short.id, &short.language, &short.comments),
            (&None, &None, &None)
        );
        let title = &short.title.as_ref().unwrap().value;
        assert!(
            title.len() <= NAME_BYTES_MAX && title.ends_with(CUT),
            "{}",
            title.len()
        );
        assert_eq!(
            short
                .links
                .iter()
                .map(|link| link.href.as_str())
                .collect::<Vec<_>>(),
            ["http://e.org/1"]
        );
        assert_eq!(
            (
                short.enclosures.len(),
                short.published.as_ref().unwrap().at_us
            ),
            (0, Some(1))
        );
        assert!(format!("{short:?}").len() < 40_000);
        assert_eq!(
            within_caps(&short),
            None,
            "what is within the limits stays as it is"
        );
        assert_eq!(
            differing(&huge, &short),
            [
                "id",
                "title",
                "links",
                "authors",
                "contributors",
                "categories",
                "files",
                "publication date",
                "modification date",
                "comments",
                "language"
            ]
        );
        let usual = Entry {
            id: Some("x".repeat(ID_BYTES_MAX)),
            ..Entry::default()
        };
        assert_eq!(within_caps(&usual), None);
    }

    #[test]
    fn attributes_of_texts_addresses_of_files_and_sources_are_within_their_limits() {
        let text = Text {
            language: Some(long(6_000_000)),
            base: Some(long(6_000_000)),
            ..Text::plain("t")
        };
        let file = |url: String| Element {
            name: "content".into(),
            attributes: vec![Attribute {
                name: "url".into(),
                value: url,
                ..Attribute::default()
            }],
            ..Element::default()
        };
        let group = Element {
            name: "group".into(),
            children: vec![
                Node::Element(file(long(99_999))),
                Node::Element(file("http://e.org/1".into())),
            ],
            ..Element::default()
        };
        let huge = Entry {
            title: Some(text.clone()),
            content: Some(Body {
                text: text.clone(),
                media_type: Some(long(9999)),
                src: Some(long(6_000_000)),
            }),
            source: Some(Box::new(Source {
                id: Some(long(9999)),
                title: Some(Text {
                    value: long(99_999),
                    ..text.clone()
                }),
                logo: Some(long(99_999)),
                foreign: vec![file(long(99_999))],
                ..Source::default()
            })),
            summary: Some(text),
            foreign: vec![file(long(99_999)), group],
            ..Entry::default()
        };
        let short = within_caps(&huge).unwrap();
        let title = Some(Text::plain("t"));
        assert_eq!((&short.title, &short.summary), (&title, &title));
        let body = short.content.as_ref().unwrap();
        assert_eq!((&body.media_type, &body.src), (&None, &None));
        let [group] = &short.foreign[..] else {
            panic!("{:?}", short.foreign)
        };
        assert_eq!(group.children.len(), 1);
        assert!(format!("{short:?}").len() < 20_000);
        assert_eq!(within_caps(&short), None);
    }
}
