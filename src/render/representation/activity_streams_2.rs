//! ActivityStreams 2.0: a page as an OrderedCollectionPage of Create, Update and Delete activities,
//! valid as JSON-LD; not ActivityPub, and not ActivityStreams 1.0.
//!
//! Terms that the vocabulary lacks are those of Smart Feeds, `fo:`.

use super::{FULL, LoneItem, Media, Negotiation, SyntaxRow};
use crate::{
    feed::item,
    render::{
        channel::{ShownChannel, ShownService},
        document::{Audience, Document},
        json::{self, JsonObject},
        people,
        post::{self, ItemProjection, ShownPost},
        text::ShownText,
        values::ShownFile,
    },
};
use everfeed_adapters::Category;
use std::{borrow::Cow, collections::BTreeMap};

#[cfg(test)]
mod tests;

/// The context of the vocabulary, which JSON-LD processors know.
const CONTEXT: &str = "https://www.w3.org/ns/activitystreams";

/// Namespace of the words of `fo:`.
const FO: &str = "http://fanout.org/protocol/atom#";

/// The syntax.
pub(super) static ROW: SyntaxRow = SyntaxRow {
    suffix: "as2",
    title: "ActivityStreams 2",
    standard: "ActivityStreams 2.0",
    etag: "s",
    media: Media::of(
        "application/activity+json; charset=utf-8",
        Negotiation::Name,
    )
    .or(&["application/ld+json"]),
    audiences: FULL,
    is_alternate: false,
    write: document,
    item: lone_item,
};

/// Writes the document.
pub(super) fn document(document: &Document<'_>, audience: Audience) -> Vec<u8> {
    let channel = ShownChannel::of(document.feed());
    let service = channel.service();
    let items = post::items(document, audience);
    json::document(document, |json| {
        json.put("@context", (CONTEXT, BTreeMap::from([("fo", FO)])));
        json.put("type", "OrderedCollectionPage");
        json.object("partOf", |json| collection(json, document, channel));
        json.put_some("next", document.next(audience));
        json.put_some("fo:prev_cursor", document.prev_cursor());
        json.put("fo:last_cursor", &document.page.last_cursor);
        json.list("orderedItems", items, |json, item| {
            activity(json, item, channel, &service);
        });
    })
}

/// Writes one item: the activity that it is in a page, whose context it needs.
pub(super) fn lone_item(lone: &LoneItem<'_>) -> Vec<u8> {
    let service = lone.channel.service();
    json::item(|json| activity(json, lone.item, lone.channel, &service))
}

/// The feed: the collection that the page is of.
fn collection(json: &mut JsonObject<'_>, document: &Document<'_>, channel: ShownChannel<'_>) {
    json.put("id", &document.links.base);
    json.put("type", "OrderedCollection");
    json.put_some("totalItems", document.page.total);
    json.put("name", channel.name());
    json.put_some("summary", channel.description().map(ShownText::html));
    json.put_some("url", channel.site());
    json.list_some(
        "attributedTo",
        channel.authors().iter(),
        people::activity_streams_2,
    );
    linked(json, "image", "Image", channel.logo());
    linked(json, "icon", "Image", channel.icon());
    json.list_some("tag", channel.tags().given(), tag);
}

/// Change of an item. Its `id` is that of this version: a later change has another. `published` is
/// T, `fo:id` our id.
fn activity(
    json: &mut JsonObject<'_>,
    shown: ItemProjection<'_>,
    channel: ShownChannel<'_>,
    service: &ShownService<'_>,
) {
    let item = shown.item();
    let modified = item.modified.rfc3339();
    // No item's key holds a line feed, so no item has this IRI.
    let version = format!("{}\n{}", item.id, item.modified);
    json.put("id", item::uuid_iri(&channel.feed.ids.namespace, &version));
    let kind = match shown {
        ItemProjection::Tombstone(_) => "Delete",
        ItemProjection::Post(_) if item.modified == item.created => "Create",
        ItemProjection::Post(_) => "Update",
    };
    json.put("type", kind);
    json.put("published", &modified);
    json.object("actor", |json| match shown.actor(channel) {
        Some(actor) => people::activity_streams_2(json, actor),
        None => {
            json.put("type", "Service");
            json.put("id", &service.id);
            json.put("name", &service.name);
        }
    });
    json.object("object", |json| match shown {
        ItemProjection::Post(post) => article(json, post),
        ItemProjection::Tombstone(_) => {
            json.put("id", &item.iri);
            json.put("type", "Tombstone");
            json.put("formerType", "Article");
            json.put("deleted", &modified);
        }
    });
    json.put("fo:id", item.id.to_string());
    json.put("fo:created", item.created.rfc3339());
    if let ItemProjection::Tombstone(gone) = shown {
        json.put("fo:reason", gone.reason.code());
        for (name, at) in gone.missed() {
            json.put(name, at);
        }
    }
}

/// A post. The language of its texts is that of its own context.
fn article(json: &mut JsonObject<'_>, post: ShownPost<'_>) {
    let item = post.item;
    if let Some(language) = post.language() {
        json.object("@context", |json| json.put("@language", language));
    }
    json.put("id", &item.iri);
    json.put("type", "Article");
    json.put_some("name", post.title());
    json.put_some("summary", post.summary().map(ShownText::html));
    json.put_some("content", post.content().map(ShownText::html));
    json.put_some("url", post.permalink());
    json.list_some(
        "attributedTo",
        post.authors().iter(),
        people::activity_streams_2,
    );
    json.put_some("published", post.published());
    json.put("updated", item.updated().rfc3339());
    json.list_some("tag", post.tags().given(), tag);
    json.list_some("attachment", post.files(), |json, file| {
        attachment(json, &file);
    });
    linked(json, "replies", "Collection", post.comments());
    // The publisher's id, where it is no IRI.
    let given = Some(item.given_id()).filter(|given| *given != item.iri);
    json.put_some("fo:guid", given);
}

fn tag(json: &mut JsonObject<'_>, tag: &Category) {
    json.put("type", "Object");
    json.put("name", tag.label.as_ref().unwrap_or(&tag.term));
}

/// Something at a URL.
fn linked(json: &mut JsonObject<'_>, name: &str, kind: &str, url: Option<Cow<'_, str>>) {
    if let Some(url) = url {
        json.object(name, |json| {
            json.put("type", kind);
            json.put("url", url);
        });
    }
}

/// A file, of the type of the vocabulary that its media type belongs to.
fn attachment(json: &mut JsonObject<'_>, file: &ShownFile<'_>) {
    let kind = match file.kind() {
        Some("audio") => "Audio",
        Some("image") => "Image",
        _ if file.is_illustration() => "Image",
        Some("video") => "Video",
        _ => "Document",
    };
    json.put("type", kind);
    json.put_some("name", file.title());
    json.put_some("mediaType", file.media_type());
    json.put("url", &file.href);
    json.put_some("fo:length", file.bytes());
}
