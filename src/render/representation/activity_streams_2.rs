//! ActivityStreams 2.0: a page as an OrderedCollectionPage of Create, Update and Delete activities,
//! valid as JSON-LD; not ActivityPub, and not ActivityStreams 1.0.
//!
//! Terms that the vocabulary lacks are those of Smart Feeds, `fo:`.

use super::json::{self, Date};
use crate::{
    feed::{
        inheritance,
        item::{self, Content, Item},
        moment::Moment,
        record::FeedRecord,
    },
    render::{
        channel::ShownChannel,
        document::{Audience, Document, ItemPlace},
        identity,
        post::ShownItem,
        target,
        text::{self, body_html, html, visible},
        values,
    },
};
use everfeed_adapters::{Category, Enclosure, Entry, Person};
use serde::Serialize;
use std::borrow::Cow;

#[cfg(test)]
mod tests;

/// The context of the vocabulary, which JSON-LD processors know.
const CONTEXT: &str = "https://www.w3.org/ns/activitystreams";

/// Namespace of the words of `fo:`.
const FO: &str = "http://fanout.org/protocol/atom#";

/// Writes the document.
pub(super) fn document(document: &Document<'_>, audience: Audience) -> Vec<u8> {
    let Document {
        page,
        links,
        prev_cursor,
        ..
    } = *document;
    let feed = document.feed();
    let collection = CollectionPage {
        context: (CONTEXT, Terms { fo: FO }),
        kind: "OrderedCollectionPage",
        part_of: WholeCollection::of(feed, &links.base, page.total),
        next: document.next(audience),
        prev_cursor,
        last_cursor: &page.last_cursor,
        ordered_items: page
            .items
            .iter()
            .map(|item| ItemActivity::of(item, feed))
            .collect(),
    };
    json::bytes(document, &collection)
}

/// Writes one item: the activity that it is in a page, whose context it needs.
pub(super) fn lone_item(
    item: ShownItem<'_>,
    channel: ShownChannel<'_>,
    _: Audience,
    _: ItemPlace,
) -> Option<Vec<u8>> {
    Some(json::item_bytes(&ItemActivity::of(
        item.item(),
        channel.feed,
    )))
}

#[derive(Serialize)]
struct CollectionPage<'a> {
    #[serde(rename = "@context")]
    context: (&'static str, Terms),
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(rename = "partOf")]
    part_of: WholeCollection<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'a str>,
    #[serde(rename = "fo:prev_cursor", skip_serializing_if = "Option::is_none")]
    prev_cursor: Option<&'a str>,
    #[serde(rename = "fo:last_cursor")]
    last_cursor: &'a str,
    #[serde(rename = "orderedItems")]
    ordered_items: Vec<ItemActivity<'a>>,
}

#[derive(Serialize)]
struct Terms {
    fo: &'static str,
}

/// The feed: the collection that the page is of.
#[derive(Serialize)]
struct WholeCollection<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(rename = "totalItems", skip_serializing_if = "Option::is_none")]
    total_items: Option<u64>,
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<Cow<'a, str>>,
    #[serde(rename = "attributedTo", skip_serializing_if = "Vec::is_empty")]
    attributed_to: Vec<Party<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<LinkedImage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    icon: Option<LinkedImage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tag: Vec<NamedTag<'a>>,
}

#[derive(Serialize)]
struct LinkedImage<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    url: Cow<'a, str>,
}

/// Change of an item. Its `id` is that of this version: a later change has another. `published` is
/// T, `fo:id` our id.
#[derive(Serialize)]
struct ItemActivity<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    published: Date,
    actor: Party<'a>,
    object: ChangedObject<'a>,
    #[serde(rename = "fo:id")]
    item_id: String,
    #[serde(rename = "fo:created")]
    created: Date,
    #[serde(rename = "fo:reason", skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(rename = "fo:first_missing", skip_serializing_if = "Option::is_none")]
    first_missing: Option<Date>,
    #[serde(rename = "fo:last_seen", skip_serializing_if = "Option::is_none")]
    last_seen: Option<Date>,
}

/// A person, or the feed itself.
#[derive(Serialize)]
struct Party<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ChangedObject<'a> {
    Article(Box<Article<'a>>),
    Gone(DeletedArticle<'a>),
}

#[derive(Serialize)]
struct DeletedArticle<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(rename = "formerType")]
    former_type: &'static str,
    deleted: Date,
}

/// A post. The language of its texts is that of its own context.
#[derive(Serialize)]
struct Article<'a> {
    #[serde(rename = "@context", skip_serializing_if = "Option::is_none")]
    context: Option<LanguageOf<'a>>,
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<Cow<'a, str>>,
    #[serde(rename = "attributedTo", skip_serializing_if = "Vec::is_empty")]
    attributed_to: Vec<Party<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<Date<Moment>>,
    updated: Date<Moment>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tag: Vec<NamedTag<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachment: Vec<AttachedFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replies: Option<ReplyPage<'a>>,
    /// The publisher's id, where it is no IRI.
    #[serde(rename = "fo:guid", skip_serializing_if = "Option::is_none")]
    guid: Option<&'a str>,
}

#[derive(Serialize)]
struct LanguageOf<'a> {
    #[serde(rename = "@language")]
    language: &'a str,
}

#[derive(Serialize)]
struct NamedTag<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
}

/// A file, of the type of the vocabulary that its media type belongs to.
#[derive(Serialize)]
struct AttachedFile {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(rename = "mediaType", skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    url: String,
    #[serde(rename = "fo:length", skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
}

#[derive(Serialize)]
struct ReplyPage<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    url: Cow<'a, str>,
}

impl<'a> WholeCollection<'a> {
    fn of(feed: &'a FeedRecord, base: &'a str, total: Option<u64>) -> Self {
        let metadata = &*feed.metadata;
        let picture =
            |url: &'a str| target::image(url).map(|url| LinkedImage { kind: "Image", url });
        Self {
            id: base,
            kind: "OrderedCollection",
            total_items: total,
            name: identity::name(feed),
            summary: visible(metadata.description.as_ref()).map(html),
            url: metadata.link("alternate").and_then(target::link),
            attributed_to: metadata.authors.iter().filter_map(Party::person).collect(),
            image: metadata
                .image
                .as_ref()
                .and_then(|image| picture(&image.url)),
            icon: metadata.icon.as_deref().and_then(picture),
            tag: metadata.categories.iter().map(NamedTag::of).collect(),
        }
    }
}

impl<'a> ItemActivity<'a> {
    fn of(item: &'a Item, feed: &'a FeedRecord) -> Self {
        let (object, reason, first_missing, last_seen) = match &item.content {
            Content::Live(entry) => (
                ChangedObject::Article(Box::new(Article::of(item, entry))),
                None,
                None,
                None,
            ),
            Content::Gone {
                reason,
                first_missing,
                last_seen,
            } => (
                ChangedObject::Gone(DeletedArticle::of(item)),
                Some(reason.code()),
                *first_missing,
                *last_seen,
            ),
        };
        // Nobody says who deleted an item: of a tombstone the feed is the actor.
        let authors = item
            .entry()
            .map_or(&[][..], |entry| inheritance::authors(entry, feed));
        let author = authors.iter().find_map(Party::person);
        Self {
            // No item's key holds a line feed, so no item has this IRI.
            id: item::uuid_iri(
                &feed.ids.namespace,
                &format!("{}\n{}", item.id, item.modified),
            ),
            kind: kind(item),
            published: Date(item.modified),
            actor: author.unwrap_or_else(|| Party::service(feed)),
            object,
            item_id: item.id.to_string(),
            created: Date(item.created),
            reason,
            first_missing: first_missing.map(Date),
            last_seen: last_seen.map(Date),
        }
    }
}

fn kind(item: &Item) -> &'static str {
    match item.content {
        Content::Gone { .. } => "Delete",
        Content::Live(_) if item.modified == item.created => "Create",
        Content::Live(_) => "Update",
    }
}

impl<'a> Party<'a> {
    fn person(person: &'a Person) -> Option<Self> {
        let url = person.uri.as_deref().and_then(target::link);
        Some(Self {
            kind: "Person",
            id: None,
            name: Cow::Borrowed(values::person_name(person)?),
            url,
        })
    }

    /// The feed itself, as it names itself now: the actor where neither the entry nor its source or
    /// feed names an author.
    fn service(feed: &'a FeedRecord) -> Self {
        Self {
            kind: "Service",
            id: Some(identity::iri(feed)),
            name: identity::name(feed),
            url: None,
        }
    }
}

impl<'a> DeletedArticle<'a> {
    fn of(item: &'a Item) -> Self {
        Self {
            id: &item.iri,
            kind: "Tombstone",
            former_type: "Article",
            deleted: Date(item.modified),
        }
    }
}

impl<'a> Article<'a> {
    fn of(item: &'a Item, entry: &'a Entry) -> Self {
        let language = entry.language.as_deref().and_then(values::language);
        Self {
            context: language.map(|language| LanguageOf { language }),
            id: &item.iri,
            kind: "Article",
            name: text::title(entry),
            summary: visible(entry.summary.as_ref()).map(html),
            content: entry.content.as_ref().and_then(body_html),
            url: target::permalink(entry),
            attributed_to: entry.authors.iter().filter_map(Party::person).collect(),
            published: item.published().map(Date),
            updated: Date(item.updated()),
            tag: entry.categories.iter().map(NamedTag::of).collect(),
            attachment: entry
                .files()
                .iter()
                .filter_map(|file| AttachedFile::of(file))
                .collect(),
            replies: entry
                .comments
                .as_deref()
                .and_then(target::link)
                .map(|url| ReplyPage {
                    kind: "Collection",
                    url,
                }),
            guid: Some(item.given_id()).filter(|given| *given != item.iri),
        }
    }
}

impl<'a> NamedTag<'a> {
    fn of(category: &'a Category) -> Self {
        Self {
            kind: "Object",
            name: category.label.as_deref().unwrap_or(&category.term),
        }
    }
}

impl AttachedFile {
    fn of(file: &Enclosure) -> Option<Self> {
        let media_type = file.media_type.as_deref().and_then(values::media_type);
        let kind = match media_type.and_then(|media_type| media_type.split('/').next()) {
            Some("audio") => "Audio",
            Some("image") => "Image",
            _ if file.is_illustration => "Image",
            Some("video") => "Video",
            _ => "Document",
        };
        Some(Self {
            kind,
            name: file.title.clone(),
            media_type: media_type.map(str::to_owned),
            url: target::image(&file.url)?.into_owned(),
            length: values::length(file.length.as_deref()).and_then(|length| length.parse().ok()),
        })
    }
}
