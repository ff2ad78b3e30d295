//! ActivityStreams 1.0: a page as a Collection of Activities (SF-49..SF-55); not AS 2.0, and not AS
//! inside Atom.

use super::{
    extension::{self, Extension},
    json::{self, Date},
};
use crate::{
    feed::{
        inheritance,
        item::{Content, Item, plausible},
        moment::Moment,
        record::FeedRecord,
    },
    render::{
        channel::ShownChannel,
        document::{Audience, Document, ItemPlace},
        identity,
        post::ShownItem,
        target,
        text::{self, body_html, html, plain, visible},
        values,
    },
};
use everfeed_adapters as adapters;
use serde::Serialize;
use std::borrow::Cow;

#[cfg(test)]
mod tests;

/// Writes the document.
pub(super) fn document(document: &Document<'_>, audience: Audience) -> Vec<u8> {
    let service = Actor::service(document.feed());
    let collection = Collection {
        position: CollectionPosition {
            links: Some(Hubs {
                hub: [&document.links.hub],
            }),
            ..position(document, audience)
        },
        feed: Object::channel(document.feed()),
        items: document
            .page
            .items
            .iter()
            .map(|item| Activity::of(item, document.feed(), &service))
            .collect(),
    };
    json::bytes(document, &collection)
}

/// Writes one item: the activity of a page, which needs nothing around it.
pub(super) fn lone_item(
    item: ShownItem<'_>,
    channel: ShownChannel<'_>,
    _: Audience,
    _: ItemPlace,
) -> Option<Vec<u8>> {
    let (item, feed) = (item.item(), channel.feed);
    let service = Actor::service(feed);
    let activity = Activity::of(item, feed, &service);
    Some(json::item_bytes(&activity))
}

/// The position of a page, and the feed that it is of, without what a subscriber needs.
pub(super) fn position<'a>(document: &Document<'a>, audience: Audience) -> CollectionPosition<'a> {
    let Document {
        page,
        links,
        prev_cursor,
        ..
    } = *document;
    CollectionPosition {
        count: page.items.len(),
        total_items: page.total,
        url: &links.base,
        links: None,
        prev_cursor,
        last_cursor: &page.last_cursor,
        next: document.next(audience),
    }
}

#[derive(Serialize)]
struct Collection<'a> {
    #[serde(flatten)]
    position: CollectionPosition<'a>,
    /// The channel, by what it says of itself, in the shape of the object of an item.
    feed: Object<'a>,
    items: Vec<Activity<'a>>,
}

/// The part of a Collection that stands before its items.
#[derive(Serialize)]
pub(super) struct CollectionPosition<'a> {
    count: usize,
    #[serde(rename = "totalItems", skip_serializing_if = "Option::is_none")]
    total_items: Option<u64>,
    url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<Hubs<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prev_cursor: Option<&'a str>,
    last_cursor: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'a str>,
}

/// The hub to subscribe at (PUSH X-3).
#[derive(Serialize)]
pub(super) struct Hubs<'a> {
    hub: [&'a str; 1],
}

/// Change of an item. `published` is the publisher's date, or `created` where he names none, as
/// activities must have one. `updated` and `modified` are T (SF-94), and `created` is C: these are
/// ours.
#[derive(Serialize)]
pub(super) struct Activity<'a> {
    id: String,
    published: Date<Moment>,
    updated: Date,
    modified: Date,
    verb: &'static str,
    actor: Cow<'a, Actor<'a>>,
    object: Object<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<Cow<'a, str>>,
    created: Date,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// Of a tombstone: when its item was first missed, and when it was last seen (POLLING 2.7).
    #[serde(skip_serializing_if = "Option::is_none")]
    first_missing: Option<Date>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seen: Option<Date>,
}

/// A person, or the feed itself.
#[derive(Clone, Serialize)]
pub(super) struct Actor<'a> {
    #[serde(rename = "objectType")]
    object_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(rename = "displayName")]
    display_name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<&'a str>,
}

/// The post itself, of which a tombstone keeps type and id only; or the channel.
#[derive(Default, Serialize)]
pub(super) struct Object<'a> {
    #[serde(rename = "objectType")]
    object_type: &'static str,
    id: Cow<'a, str>,
    #[serde(rename = "displayName", skip_serializing_if = "Option::is_none")]
    display_name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Cow<'a, str>>,
    /// Of content that is no HTML: its media type, and how its bytes are written.
    #[serde(rename = "mimeType", skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<Actor<'a>>,
    /// All of them, when there are more than `author` can say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    authors: Vec<Actor<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    contributors: Vec<Actor<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<Date<Moment>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated: Option<Date<Moment>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<Tag<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attachment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replies: Option<Replies<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rights: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Source<'a>>,
    /// Pictures of the channel: its logo, and its small square one.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<Picture<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    icon: Option<Picture<'a>>,
    /// Elements of other vocabularies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    extensions: Vec<Extension<'a>>,
}

/// A picture, as ActivityStreams 1.0 section 3.3 has a media link.
#[derive(Serialize)]
struct Picture<'a> {
    url: Cow<'a, str>,
}

#[derive(Serialize)]
struct Tag<'a> {
    #[serde(rename = "objectType")]
    object_type: &'static str,
    #[serde(rename = "displayName")]
    display_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    term: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheme: Option<&'a str>,
}

/// A file beside the post.
#[derive(Serialize)]
struct Attachment {
    #[serde(rename = "objectType")]
    object_type: &'static str,
    #[serde(rename = "displayName", skip_serializing_if = "Option::is_none")]
    display_name: Option<String>,
    url: String,
    #[serde(rename = "mimeType", skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
}

#[derive(Serialize)]
struct Replies<'a> {
    url: Cow<'a, str>,
}

#[derive(Serialize)]
struct Source<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(rename = "displayName", skip_serializing_if = "Option::is_none")]
    display_name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<Cow<'a, str>>,
    /// Its page for people, where `url` is that of its feed.
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<Cow<'a, str>>,
}

impl<'a> Activity<'a> {
    pub(super) fn of(item: &'a Item, feed: &'a FeedRecord, service: &'a Actor<'a>) -> Self {
        // Nobody says who deleted an item: of a tombstone the feed is the actor.
        let authors = item
            .entry()
            .map_or(&[][..], |entry| inheritance::authors(entry, feed));
        let author = authors.iter().find_map(Actor::person);
        let (object, reason, first_missing, last_seen) = match &item.content {
            Content::Live(entry) => (Object::live(item, entry), None, None, None),
            Content::Gone {
                reason,
                first_missing,
                last_seen,
            } => (
                Object::stripped(item),
                Some(reason.code()),
                *first_missing,
                *last_seen,
            ),
        };
        Self {
            id: item.id.to_string(),
            published: Date(item.listed()),
            updated: Date(item.modified),
            modified: Date(item.modified),
            verb: verb(item),
            actor: author.map_or(Cow::Borrowed(service), Cow::Owned),
            title: object.display_name.clone(),
            object,
            created: Date(item.created),
            deleted: reason.map(|_| true),
            reason,
            first_missing: first_missing.map(Date),
            last_seen: last_seen.map(Date),
        }
    }
}

fn verb(item: &Item) -> &'static str {
    match item.content {
        Content::Gone { .. } => "delete",
        Content::Live(_) if item.modified == item.created => "post",
        Content::Live(_) => "update",
    }
}

impl<'a> Actor<'a> {
    fn person(person: &'a adapters::Person) -> Option<Self> {
        Some(Self {
            object_type: "person",
            id: None,
            display_name: Cow::Borrowed(values::person_name(person)?),
            url: person.uri.as_deref().and_then(target::link),
            email: person.email.as_deref(),
        })
    }

    /// The feed itself, as it names itself now: the actor where neither the entry nor its source or
    /// feed names an author (SMART_FEEDS section 1.7).
    pub(super) fn service(feed: &'a FeedRecord) -> Self {
        Self {
            object_type: SERVICE,
            id: Some(identity::iri(feed)),
            display_name: identity::name(feed),
            url: None,
            email: None,
        }
    }
}

const ARTICLE: &str = "article";
const SERVICE: &str = "service";

impl<'a> Object<'a> {
    fn stripped(item: &'a Item) -> Self {
        let source = item.ended_source().map(Source::of);
        Self {
            object_type: ARTICLE,
            id: item.given_id().into(),
            source,
            ..Self::default()
        }
    }

    /// The channel: the service that is the actor of items without an author.
    pub(super) fn channel(feed: &'a FeedRecord) -> Self {
        let metadata = &*feed.metadata;
        let mut authors: Vec<_> = metadata.authors.iter().filter_map(Actor::person).collect();
        let picture = |url: &'a str| target::image(url).map(|url| Picture { url });
        Self {
            object_type: SERVICE,
            id: identity::iri(feed).into(),
            display_name: Some(identity::name(feed)),
            summary: visible(metadata.description.as_ref()).map(html),
            url: metadata.link("alternate").and_then(target::link),
            author: authors.first().cloned(),
            authors: if authors.len() > 1 {
                std::mem::take(&mut authors)
            } else {
                Vec::new()
            },
            contributors: metadata
                .contributors
                .iter()
                .filter_map(Actor::person)
                .collect(),
            tags: metadata.categories.iter().map(Tag::of).collect(),
            rights: visible(metadata.rights.as_ref()).map(plain),
            language: metadata.language.as_deref().and_then(values::language),
            image: metadata
                .image
                .as_ref()
                .and_then(|image| picture(&image.url)),
            icon: metadata.icon.as_deref().and_then(picture),
            extensions: extension::of_channel(ShownChannel::of(feed)),
            ..Self::default()
        }
    }

    fn live(item: &'a Item, entry: &'a adapters::Entry) -> Self {
        let mut authors: Vec<_> = entry.authors.iter().filter_map(Actor::person).collect();
        let Inside {
            content,
            mime_type,
            encoding,
        } = entry
            .content
            .as_ref()
            .map_or_else(Inside::default, Inside::of);
        Self {
            object_type: ARTICLE,
            id: item.given_id().into(),
            display_name: text::title(entry),
            summary: visible(entry.summary.as_ref()).map(html),
            content,
            mime_type,
            encoding,
            url: target::permalink(entry),
            author: authors.first().cloned(),
            authors: if authors.len() > 1 {
                std::mem::take(&mut authors)
            } else {
                Vec::new()
            },
            contributors: entry
                .contributors
                .iter()
                .filter_map(Actor::person)
                .collect(),
            published: plausible(item.published_us).map(Date),
            updated: Some(Date(item.updated())),
            tags: entry.categories.iter().map(Tag::of).collect(),
            attachments: entry
                .files()
                .iter()
                .filter_map(|file| Attachment::of(file))
                .collect(),
            replies: entry
                .comments
                .as_deref()
                .and_then(target::link)
                .map(|url| Replies { url }),
            rights: visible(entry.rights.as_ref()).map(plain),
            language: entry.language.as_deref().and_then(values::language),
            source: entry.source.as_deref().map(Source::of),
            extensions: extension::of_entry(entry),
            ..Self::default()
        }
    }
}

/// Content, and what it is when it is no HTML.
#[derive(Default)]
struct Inside<'a> {
    content: Option<Cow<'a, str>>,
    mime_type: Option<&'a str>,
    encoding: Option<&'static str>,
}

impl<'a> Inside<'a> {
    /// Content with a media type of its own is given as it is, bytes in base64 (seed "Arbitrary
    /// Content Types").
    fn of(body: &'a adapters::Body) -> Self {
        let is_base64 = body.text.kind == adapters::TextKind::Base64;
        if body.media_type.is_none() && !is_base64 {
            return Self {
                content: body_html(body),
                ..Self::default()
            };
        }
        let Some(text) = visible(Some(&body.text)) else {
            return Self::default();
        };
        let unnamed = if is_base64 {
            "application/octet-stream"
        } else {
            "text/plain"
        };
        Self {
            content: Some(Cow::Borrowed(&text.value)),
            mime_type: Some(
                body.media_type
                    .as_deref()
                    .and_then(values::media_type)
                    .unwrap_or(unnamed),
            ),
            encoding: is_base64.then_some("base64"),
        }
    }
}

impl<'a> Tag<'a> {
    fn of(category: &'a adapters::Category) -> Self {
        let label = category
            .label
            .as_deref()
            .filter(|label| *label != category.term);
        Self {
            object_type: "tag",
            display_name: label.unwrap_or(&category.term),
            term: label.map(|_| category.term.as_str()),
            scheme: category.scheme.as_deref(),
        }
    }
}

impl<'a> Source<'a> {
    fn of(source: &'a adapters::Source) -> Self {
        Self {
            id: source.id.as_deref(),
            display_name: source.title.as_ref().map(plain),
            url: source.url().and_then(target::link),
            site: source
                .page()
                .filter(|page| source.url() != Some(page))
                .and_then(target::link),
        }
    }
}

impl Attachment {
    fn of(file: &adapters::Enclosure) -> Option<Self> {
        let mime_type = file.media_type.as_deref().and_then(values::media_type);
        Some(Self {
            object_type: if file.is_illustration {
                "image"
            } else {
                object_type(mime_type)
            },
            display_name: file.title.clone(),
            url: target::image(&file.url)?.into_owned(),
            mime_type: mime_type.map(str::to_owned),
            length: values::length(file.length.as_deref()).and_then(|length| length.parse().ok()),
        })
    }
}

fn object_type(mime_type: Option<&str>) -> &'static str {
    match mime_type.and_then(|mime_type| mime_type.split('/').next()) {
        Some("audio") => "audio",
        Some("image") => "image",
        Some("video") => "video",
        _ => "file",
    }
}
