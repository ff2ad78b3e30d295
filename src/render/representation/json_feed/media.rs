//! Files and pictures of an entry in the words of JSON Feed; not its text.

use crate::render::{target, values};
use everfeed_adapters::{Element, Enclosure, Entry, Node};
use serde::Serialize;
use std::borrow::Cow;

const MEDIA: &str = "http://search.yahoo.com/mrss/";
const ITUNES: &str = "http://www.itunes.com/dtds/podcast-1.0.dtd";

#[derive(Serialize)]
pub(super) struct JsonAttachment {
    url: String,
    mime_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_in_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_in_seconds: Option<u64>,
}

/// The files. The duration that iTunes names is that of the only one.
pub(super) fn attachments(entry: &Entry) -> Vec<JsonAttachment> {
    let mut attachments: Vec<_> = entry
        .attached()
        .filter_map(|file| JsonAttachment::of(&file))
        .collect();
    if let [only] = &mut attachments[..] {
        only.duration_in_seconds = entry.foreign.iter().find_map(duration_secs);
    }
    attachments
}

impl JsonAttachment {
    fn of(file: &Enclosure) -> Option<Self> {
        // The format wants a type, known or not.
        let mime_type = file.media_type.as_deref().and_then(values::media_type);
        Some(Self {
            url: target::image(&file.url)?.into_owned(),
            mime_type: mime_type.unwrap_or("application/octet-stream").to_owned(),
            title: file.title.clone(),
            size_in_bytes: values::length(file.length.as_deref())
                .and_then(|length| length.parse().ok()),
            duration_in_seconds: None,
        })
    }
}

/// The main picture: what Media RSS or iTunes name as such, else the first that illustrates the
/// post.
pub(super) fn image(entry: &Entry) -> Option<Cow<'_, str>> {
    let named = entry.foreign.iter().find_map(|element| {
        match (element.ns.as_str(), element.name.as_str()) {
            (MEDIA, "thumbnail") => value(element, "url"),
            (ITUNES, "image") => value(element, "href"),
            _ => None,
        }
    });
    let is_picture = |file: &&Enclosure| {
        file.is_illustration
            && file
                .media_type
                .as_deref()
                .is_none_or(|media| media.starts_with("image/"))
    };
    let illustration = || {
        entry
            .enclosures
            .iter()
            .find(is_picture)
            .map(|file| file.url.as_str())
    };
    named.or_else(illustration).and_then(target::image)
}

fn value<'e>(element: &'e Element, name: &str) -> Option<&'e str> {
    let found = element
        .attributes
        .iter()
        .find(|it| it.ns.is_empty() && it.name == name);
    found.map(|attribute| attribute.value.as_str())
}

/// `itunes:duration`: seconds, `MM:SS` or `HH:MM:SS`.
fn duration_secs(element: &Element) -> Option<u64> {
    if (element.ns.as_str(), element.name.as_str()) != (ITUNES, "duration") {
        return None;
    }
    let [Node::Text(text)] = &element.children[..] else {
        return None;
    };
    let mut parts = text.trim().split(':');
    let number = |part: &str| {
        part.parse::<u64>()
            .ok()
            .filter(|_| (1..=9).contains(&part.len()))
    };
    let first = number(parts.next()?)?;
    let secs = parts.try_fold((first, 1), |(secs, count), part| {
        Some((secs * 60 + number(part)?, count + 1))
    })?;
    (secs.1 <= 3).then_some(secs.0)
}
