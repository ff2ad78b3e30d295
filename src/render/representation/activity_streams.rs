//! ActivityStreams 1.0: a page as a Collection of Activities (SF-49..SF-55); not AS 2.0, and not AS
//! inside Atom.

use super::{FULL, LoneItem, Media, Negotiation, SyntaxRow, extension};
use crate::{
    feed::stamp::Stamp,
    render::{
        channel::{ShownChannel, ShownService},
        document::{Audience, Document},
        json::{self, JsonObject},
        people::{self, People},
        post::{self, ItemProjection, ShownPost},
        text::ShownText,
        values::{self, ShownFile},
    },
};
use everfeed_adapters::{Category, TextKind};
use std::borrow::Cow;

#[cfg(test)]
mod tests;

/// The syntax.
pub(super) static ROW: SyntaxRow = SyntaxRow {
    suffix: "json",
    title: "JSON",
    standard: "ActivityStreams 1.0",
    etag: "j",
    media: Media::of("application/json; charset=utf-8", Negotiation::Ranges)
        .or(&["application/stream+json"]),
    audiences: FULL,
    is_alternate: true,
    write: document,
    item: lone_item,
};

/// Writes the document.
pub(super) fn document(document: &Document<'_>, audience: Audience) -> Vec<u8> {
    let channel = ShownChannel::of(document.feed());
    let service = channel.service();
    let items = post::items(document, audience);
    // The hub to subscribe at (PUSH X-3).
    let hub = Some(&*document.links.hub);
    json::document(document, |json| {
        position(json, document, audience, hub);
        json.object("feed", |json| self::channel(json, channel));
        json.list("items", items, |json, item| {
            activity(json, item, channel, &service);
        });
    })
}

/// Writes one item: the activity of a page, which needs nothing around it.
pub(super) fn lone_item(lone: &LoneItem<'_>) -> Vec<u8> {
    let service = lone.channel.service();
    json::item(|json| activity(json, lone.item, lone.channel, &service))
}

/// The part of a Collection that stands before its items: the position of a page, and the feed that
/// it is of.
pub(super) fn position(
    json: &mut JsonObject<'_>,
    document: &Document<'_>,
    audience: Audience,
    hub: Option<&str>,
) {
    json.put("count", document.page.items.len());
    json.put_some("totalItems", document.page.total);
    json.put("url", &document.links.base);
    if let Some(hub) = hub {
        json.object("links", |json| json.put("hub", [hub]));
    }
    json.put_some("prev_cursor", document.prev_cursor());
    json.put("last_cursor", &document.page.last_cursor);
    json.put_some("next", document.next(audience));
}

/// Change of an item. `published` is the publisher's date, or `created` where he names none, as
/// activities must have one. `updated` and `modified` are T (SF-94), and `created` is C: these are
/// ours.
pub(super) fn activity(
    json: &mut JsonObject<'_>,
    shown: ItemProjection<'_>,
    channel: ShownChannel<'_>,
    service: &ShownService<'_>,
) {
    let item = shown.item();
    let modified = item.modified.rfc3339();
    let title = shown.post().and_then(ShownPost::title);
    json.put("id", item.id.to_string());
    json.put("published", item.listed().rfc3339());
    json.put("updated", &modified);
    json.put("modified", &modified);
    let verb = match shown {
        ItemProjection::Tombstone(_) => "delete",
        ItemProjection::Post(_) if item.modified == item.created => "post",
        ItemProjection::Post(_) => "update",
    };
    json.put("verb", verb);
    json.object("actor", |json| match shown.actor(channel) {
        Some(actor) => people::activity_streams(json, actor),
        None => {
            json.put("objectType", SERVICE);
            json.put("id", &service.id);
            json.put("displayName", &service.name);
        }
    });
    json.object("object", |json| {
        json.put("objectType", "article");
        json.put("id", item.given_id());
        match shown {
            ItemProjection::Post(post) => object(json, post, title.as_deref()),
            ItemProjection::Tombstone(gone) => {
                extension::source(json, gone.source(), "displayName")
            }
        }
    });
    json.put_some("title", title);
    json.put("created", item.created.rfc3339());
    if let ItemProjection::Tombstone(gone) = shown {
        json.put("deleted", true);
        json.put("reason", gone.reason.code());
        json.put_some("first_missing", gone.first_missing.map(Stamp::rfc3339));
        json.put_some("last_seen", gone.last_seen.map(Stamp::rfc3339));
    }
}

const SERVICE: &str = "service";

/// The channel, by what it says of itself, in the shape of the object of an item: the service that
/// is the actor of items without an author.
pub(super) fn channel(json: &mut JsonObject<'_>, channel: ShownChannel<'_>) {
    json.put("objectType", SERVICE);
    json.put("id", channel.feed.iri());
    json.put("displayName", channel.name());
    json.put_some("summary", channel.description().map(ShownText::html));
    json.put_some("url", channel.site());
    all_people(json, channel.authors(), channel.contributors());
    json.list_some("tags", channel.tags().given(), tag);
    json.put_some("rights", channel.rights().map(ShownText::words));
    json.put_some("language", channel.language());
    link(json, "image", channel.logo());
    link(json, "icon", channel.icon());
    extension::of_channel(json, channel);
}

/// The post itself, behind its id; of a tombstone nothing but the source stands there.
fn object(json: &mut JsonObject<'_>, post: ShownPost<'_>, title: Option<&str>) {
    json.put_some("displayName", title);
    json.put_some("summary", post.summary().map(ShownText::html));
    content(json, post);
    json.put_some("url", post.permalink());
    all_people(json, post.authors(), post.contributors());
    json.put_some("published", post.published());
    json.put("updated", post.item.updated().rfc3339());
    json.list_some("tags", post.tags().given(), tag);
    json.list_some("attachments", post.files(), |json, file| {
        attachment(json, &file);
    });
    link(json, "replies", post.comments());
    json.put_some("rights", post.rights().map(ShownText::words));
    json.put_some("language", post.language());
    extension::source(json, post.source(), "displayName");
    extension::of_post(json, post);
}

/// Content; what has a media type of its own is given as it is, with that type, bytes in base64
/// (seed "Arbitrary Content Types").
fn content(json: &mut JsonObject<'_>, post: ShownPost<'_>) {
    let Some(body) = post.body() else { return };
    let is_base64 = body.text.kind == TextKind::Base64;
    if body.media_type.is_none() && !is_base64 {
        return json.put_some("content", post.content().map(ShownText::html));
    }
    if ShownText::of(Some(&body.text)).is_some() {
        let unnamed = if is_base64 {
            "application/octet-stream"
        } else {
            "text/plain"
        };
        let media_type = body.media_type.as_deref().and_then(values::media_type);
        json.put("content", &body.text.value);
        json.put("mimeType", media_type.unwrap_or(unnamed));
        json.put_some("encoding", is_base64.then_some("base64"));
    }
}

/// The first author, all of them when there are more, and the contributors.
fn all_people(json: &mut JsonObject<'_>, authors: People<'_>, contributors: People<'_>) {
    if let Some(first) = authors.iter().next() {
        json.object("author", |json| people::activity_streams(json, first));
    }
    if authors.iter().nth(1).is_some() {
        json.list("authors", authors.iter(), people::activity_streams);
    }
    json.list_some(
        "contributors",
        contributors.iter(),
        people::activity_streams,
    );
}

fn tag(json: &mut JsonObject<'_>, tag: &Category) {
    let label = tag.label.as_ref().filter(|label| **label != tag.term);
    json.put("objectType", "tag");
    json.put("displayName", label.unwrap_or(&tag.term));
    json.put_some("term", label.map(|_| &tag.term));
    json.put_some("scheme", tag.scheme.as_ref());
}

/// A media link (ActivityStreams 1.0 section 3.3), or something else at a URL.
fn link(json: &mut JsonObject<'_>, name: &str, url: Option<Cow<'_, str>>) {
    if let Some(url) = url {
        json.object(name, |json| json.put("url", url));
    }
}

/// A file beside the post.
fn attachment(json: &mut JsonObject<'_>, file: &ShownFile<'_>) {
    let object_type = match file.kind() {
        _ if file.is_illustration() => "image",
        Some(kind @ ("audio" | "image" | "video")) => kind,
        _ => "file",
    };
    json.put("objectType", object_type);
    json.put_some("displayName", file.title());
    json.put("url", &file.href);
    json.put_some("mimeType", file.media_type());
    json.put_some("length", file.bytes());
}
