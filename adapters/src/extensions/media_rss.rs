//! MediaRSS by way of feed-rs, which maps its groups and inherited titles well; ids, dates and texts are never taken from it.
//!
//! feed-rs sees one small document that we wrote: UTF-8, no declaration, no processing instruction, only the MediaRSS
//! children of one entry. That, and a guard against panics, keeps its known faults away (PARSING section 0.1). Every
//! element is kept as foreign markup besides; what is gained here is an enclosure, a title or a summary for entries that
//! have none of their own.

use std::panic::catch_unwind;

use feed_rs::model;

use crate::formats::Place;
use crate::formats::draft::Draft;
use crate::text::markup::write_element;
use crate::text::present;
use crate::{Element, Enclosure, Text};

/// What MediaRSS offers to an entry.
#[derive(Debug, Default)]
pub(crate) struct Media {
    pub(crate) enclosures: Vec<Enclosure>,
    pub(crate) title: Option<Text>,
    pub(crate) description: Option<Text>,
}

/// A MediaRSS child of an entry: remembered, and always comes back.
pub(crate) fn child(element: Element, draft: &mut Draft<'_>) -> Option<Element> {
    draft.media(&element);
    Some(element)
}

/// Reads the MediaRSS children of one entry.
pub(crate) fn read(elements: &[Element], place: &Place) -> Media {
    if elements.is_empty() {
        return Media::default();
    }
    let document = document(elements);
    let base = place.base.as_ref().map(url::Url::as_str).map(str::to_owned);
    let parsed = catch_unwind(move || {
        feed_rs::parser::Builder::new().base_uri(base).build().parse(document.as_bytes()).ok()
    });
    let entry = parsed.ok().flatten().and_then(|feed| feed.entries.into_iter().next());
    entry.map(media).unwrap_or_default()
}

/// The elements as the only item of a feed, all in the one spelling of the namespace that feed-rs knows.
fn document(elements: &[Element]) -> String {
    const MEDIA: &str = "http://search.yahoo.com/mrss/";
    let mut document = format!(r#"<rss version="2.0" xmlns:media="{MEDIA}"><channel><item>"#);
    for element in elements.iter().filter(|element| is_read(element)) {
        let mut element = element.clone();
        respell(&mut element, MEDIA);
        write_element(&mut document, &element, &[("media", MEDIA)]);
    }
    document.push_str("</item></channel></rss>");
    document
}

/// The elements whose mapping is wanted. feed-rs panics on times in others (`thumbnail`, `text`) that are too large or not in
/// ASCII digits, and gives a copy of some of them to every group.
fn is_read(element: &Element) -> bool {
    matches!(element.name.as_str(), "group" | "content" | "title" | "description" | "player")
}

fn respell(element: &mut Element, namespace: &str) {
    let old = std::mem::replace(&mut element.ns, namespace.to_owned());
    element.children.retain(|node| !matches!(node, crate::Node::Element(child) if !is_read(child)));
    for node in &mut element.children {
        if let crate::Node::Element(child) = node
            && child.ns == old
        {
            respell(child, namespace);
        }
    }
}

fn media(entry: model::Entry) -> Media {
    let mut media = Media::default();
    for object in entry.media {
        let title = object.title.and_then(|title| present(&title.content));
        for content in object.content {
            let Some(url) = content.url else { continue };
            media.enclosures.push(Enclosure {
                url: url.into(),
                media_type: content.content_type.map(|media_type| media_type.to_string()),
                length: content.size.map(|bytes| bytes.to_string()),
                title: title.clone(),
            });
        }
        media.title = media.title.or(title.map(Text::plain));
        let description = object.description.and_then(|description| present(&description.content));
        media.description = media.description.or(description.map(Text::html));
    }
    media
}
