//! The most that is kept of one item: a text of some megabytes would be sent to every consumer
//! again and again, and escaped it is up to five times as long.

use super::part_caps::within_caps;
use everfeed_adapters::{Body, Element, Entry, Node, Source, Text, TextKind};
use std::sync::Arc;

/// The most bytes of one item, as they are once escaped in XML, unless the configuration says
/// another number.
pub const ITEM_BYTES_MAX: usize = 4 << 20;

/// The most bytes of a title that is kept of an item that is too long.
const TITLE_BYTES_MAX: usize = 1024;

/// Begin of the note that stands where the text of an item was.
const LEFT_OUT: &str = "The publisher's text of this post is left out here";

/// The note that stands in an entry instead of parts that were too long, if there is one.
pub fn note_of(entry: &Entry) -> Option<&str> {
    let text = &entry.content.as_ref()?.text;
    (text.kind == TextKind::Plain && text.value.starts_with(LEFT_OUT)).then_some(&text.value)
}

/// Bytes of a text once escaped in XML.
pub fn escaped_bytes(text: &[u8]) -> usize {
    // Sums of bytes in a byte are added sixteen at a time, and so few fit in one.
    const SUMMED: usize = u8::MAX as usize / 4;
    let more =
        |byte: &u8| 4 * u8::from(*byte == b'&') + 3 * u8::from(*byte == b'<' || *byte == b'>');
    let sum = |chunk: &[u8]| usize::from(chunk.iter().map(more).sum::<u8>());
    text.len() + text.chunks(SUMMED).map(sum).sum::<usize>()
}

// Decides: How long may an item be, and what is left out?
/// An entry without the parts that make it too long, which are named in its content; `None` for one
/// that fits.
pub fn shortened(entry: &Entry, bytes_max: usize) -> Option<Arc<Entry>> {
    match within_caps(entry) {
        Some(capped) => {
            Some(shortened_whole(&capped, bytes_max).unwrap_or_else(|| Arc::new(capped)))
        }
        None => shortened_whole(entry, bytes_max),
    }
}

/// The same of an entry whose short parts are within their limits.
fn shortened_whole(entry: &Entry, bytes_max: usize) -> Option<Arc<Entry>> {
    let bytes = entry_bytes(entry);
    if bytes <= bytes_max {
        return None;
    }
    let note = format!("{LEFT_OUT}: it has {bytes} bytes, and at most {bytes_max} are kept.");
    let text = Text {
        kind: TextKind::Plain,
        value: note,
        ..Text::default()
    };
    let mut short = Entry {
        content: Some(Body {
            text,
            ..Body::default()
        }),
        foreign: Vec::new(),
        source: None,
        ..entry.clone()
    };
    if entry_bytes(&short) > bytes_max {
        short.summary = None;
        short.rights = None;
        if let Some(title) = &mut short.title {
            let most = TITLE_BYTES_MAX.min(title.value.len());
            let end = (0..=most)
                .rev()
                .find(|at| title.value.is_char_boundary(*at))
                .unwrap_or_default();
            title.value.truncate(end);
            // Markup that is cut is none.
            title.kind = TextKind::Plain;
        }
    }
    if entry_bytes(&short) > bytes_max {
        let alternate = short
            .links
            .iter()
            .find(|link| link.rel == "alternate")
            .cloned();
        short = Entry {
            id: short.id,
            is_permalink: short.is_permalink,
            title: short.title,
            content: short.content,
            links: alternate
                .into_iter()
                .filter(|link| link.href.len() <= TITLE_BYTES_MAX)
                .collect(),
            published: short.published,
            updated: short.updated,
            ..Entry::default()
        };
    }
    Some(Arc::new(short))
}

/// Bytes of the texts of an entry once escaped.
fn entry_bytes(entry: &Entry) -> usize {
    let escaped = |text: &str| escaped_bytes(text.as_bytes());
    let texts = [&entry.title, &entry.summary, &entry.rights]
        .into_iter()
        .flatten();
    let texts = texts.chain(entry.content.as_ref().map(|body| &body.text));
    let people = entry.authors.iter().chain(&entry.contributors);
    let people =
        people.flat_map(|person| [&person.name, &person.email, &person.uri, &person.byline]);
    let tags = entry.categories.iter();
    let tags = tags
        .flat_map(|tag| [Some(&tag.term), tag.scheme.as_ref(), tag.label.as_ref()])
        .flatten();
    let links = entry
        .links
        .iter()
        .flat_map(|link| [Some(&link.href), link.title.as_ref()])
        .flatten();
    let files = entry
        .enclosures
        .iter()
        .flat_map(|file| [Some(&file.url), file.title.as_ref()])
        .flatten();
    let dates = [&entry.published, &entry.updated]
        .into_iter()
        .flatten()
        .map(|date| &date.raw);
    let of_texts = texts
        .clone()
        .flat_map(|text| [&text.language, &text.base])
        .flatten();
    let of_body = entry.content.iter();
    let of_body = of_body
        .flat_map(|body| [&body.media_type, &body.src])
        .flatten();
    let words = [&entry.id, &entry.comments, &entry.language]
        .into_iter()
        .flatten()
        .chain(of_texts)
        .chain(of_body);
    let source = entry.source.as_deref().map_or(0, source_bytes);
    texts.map(|text| escaped(&text.value)).sum::<usize>()
        + people.flatten().map(|text| escaped(text)).sum::<usize>()
        + tags.map(|text| escaped(text)).sum::<usize>()
        + links
            .chain(files)
            .chain(dates)
            .chain(words)
            .map(|text| escaped(text))
            .sum::<usize>()
        + source
        + entry.foreign.iter().map(element_bytes).sum::<usize>()
}

/// Bytes of what an entry says of the feed that it is from.
fn source_bytes(source: &Source) -> usize {
    let as_entry = Entry {
        id: source.id.clone(),
        title: source.title.clone(),
        summary: source.subtitle.clone(),
        rights: source.rights.clone(),
        links: source.links.clone(),
        authors: source.authors.clone(),
        contributors: source.contributors.clone(),
        categories: source.categories.clone(),
        foreign: source.foreign.clone(),
        ..Entry::default()
    };
    entry_bytes(&as_entry)
}

pub(super) fn element_bytes(element: &Element) -> usize {
    let attributes = element
        .attributes
        .iter()
        .map(|attribute| attribute.name.len() + escaped_bytes(attribute.value.as_bytes()));
    let children = element.children.iter().map(|child| match child {
        Node::Element(element) => element_bytes(element),
        Node::Text(text) => escaped_bytes(text.as_bytes()),
    });
    element.name.len() + attributes.sum::<usize>() + children.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part_caps::NAME_BYTES_MAX;

    fn text(value: String) -> Text {
        Text {
            value,
            ..Text::default()
        }
    }

    #[test]
    fn escaped_bytes_are_those_of_the_text_once_escaped() {
        let escaped = |text: &str| {
            text.replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;")
                .len()
        };
        for text in ["", "plain", "a < b && c > d", "\u{fc}<"] {
            for times in [1, 62, 63, 64, 1000] {
                let text = text.repeat(times);
                assert_eq!(escaped_bytes(text.as_bytes()), escaped(&text), "{times}");
            }
        }
        assert_eq!(escaped_bytes(&[b'&'; 1000]), 5000, "no sum runs over");
    }

    #[test]
    fn an_item_that_is_too_long_keeps_what_fits_and_says_what_is_left_out() {
        let body = |value: String| {
            Some(Body {
                text: text(value),
                ..Body::default()
            })
        };
        let plain = Entry {
            content: body("x".repeat(ITEM_BYTES_MAX)),
            ..Entry::default()
        };
        assert_eq!(shortened(&plain, ITEM_BYTES_MAX), None);
        assert!(
            shortened(&plain, ITEM_BYTES_MAX - 1).is_some(),
            "another number may be configured"
        );
        // Escaped, it is five times as long.
        let marks = Entry {
            id: Some("1".into()),
            title: Some(text("a title".into())),
            content: body("&".repeat(1 << 20)),
            ..Entry::default()
        };
        assert_eq!(note_of(&marks), None);
        let short = shortened(&marks, ITEM_BYTES_MAX).unwrap();
        assert!(note_of(&short).is_some_and(|note| note.contains("bytes")));
        assert_eq!((&short.id, &short.title), (&marks.id, &marks.title));
        assert!(
            short
                .content
                .as_ref()
                .unwrap()
                .text
                .value
                .contains("5242888 bytes"),
            "{short:?}"
        );
        for long in [
            Entry {
                title: Some(text("\u{fc}".repeat(ITEM_BYTES_MAX))),
                ..Entry::default()
            },
            Entry {
                summary: Some(text("<".repeat(2 << 20))),
                ..Entry::default()
            },
            Entry {
                categories: vec![everfeed_adapters::Category {
                    term: "&".repeat(2 << 20),
                    ..Default::default()
                }],
                ..Entry::default()
            },
        ] {
            // Titles and tags are within their own limits already, and five times as long once
            // escaped.
            assert!(entry_bytes(&shortened(&long, ITEM_BYTES_MAX).unwrap()) < 6 * NAME_BYTES_MAX);
        }
    }
}
