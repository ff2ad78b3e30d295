//! JSON Feed 1.1 (J-1..J-9). What the format has no name for stands in extensions called
//! `_everfeed`, which readers may ignore: for the full audience positions and tombstones, too. Not
//! ActivityStreams.

use super::{BOTH, LoneItem, Media, Negotiation, SyntaxRow, extension};
use crate::{
    feed::stamp::Stamp,
    render::{
        channel::ShownChannel,
        document::{Audience, Document},
        json::{self, JsonObject},
        people::{self, People},
        post::{self, ItemProjection, ShownPost, ShownTombstone},
        text::ShownText,
        values::ShownFile,
    },
};
use everfeed_adapters::{Category, TextKind};

#[cfg(test)]
mod tests;

const VERSION: &str = "https://jsonfeed.org/version/1.1";

/// Name of our extension of the format.
const EXTENSION: &str = "_everfeed";

/// The syntax.
pub(super) static ROW: SyntaxRow = SyntaxRow {
    suffix: "jsonfeed",
    title: "JSON Feed",
    standard: "JSON Feed 1.1",
    etag: "f",
    media: Media::of("application/feed+json; charset=utf-8", Negotiation::Name),
    audiences: BOTH,
    is_alternate: true,
    write: document,
    item: lone_item,
};

/// Writes the document.
pub(super) fn document(document: &Document<'_>, audience: Audience) -> Vec<u8> {
    let channel = ShownChannel::of(document.feed());
    let posts = post::items(document, audience).filter_map(ItemProjection::post);
    let older = document.links.archives.prev.as_deref();
    json::document(document, |json| {
        json.put("version", VERSION);
        json.put("title", channel.name());
        json.put_some("home_page_url", channel.site());
        json.put("feed_url", document.own_url());
        json.put_some("description", channel.description().map(ShownText::words));
        json.put_some("next_url", document.next(audience).or(older));
        json.put_some("icon", channel.logo());
        json.put_some("favicon", channel.icon());
        authors(json, channel.authors());
        json.put_some("language", channel.language());
        json.list_some("hubs", document.hub(), |json, url| {
            json.put("type", "WebSub");
            json.put("url", url);
        });
        json.list("items", posts, |json, post| item(json, post, audience));
        json.object(EXTENSION, |json| {
            page_extension(json, document, channel, audience);
        });
    })
}

/// Writes one item; of a tombstone what stands of it in the extension of the page.
pub(super) fn lone_item(lone: &LoneItem<'_>) -> Vec<u8> {
    json::item(|json| match lone.item {
        ItemProjection::Post(post) => self::item(json, post, lone.audience),
        ItemProjection::Tombstone(gone) => tombstone(json, gone),
    })
}

/// Facts of a page beyond the format. `id` of an item and of a tombstone is ours, the same as in
/// every other syntax.
fn page_extension(
    json: &mut JsonObject<'_>,
    document: &Document<'_>,
    channel: ShownChannel<'_>,
    audience: Audience,
) {
    json.put("about", &document.links.about);
    if audience == Audience::Full {
        json.put("id", channel.feed.iri());
        json.put_some("total", document.page.total);
    }
    if document.has_cursors(audience) {
        json.put_some("prev_cursor", document.prev_cursor());
        json.put("last_cursor", &document.page.last_cursor);
    }
    if document.shows_gone(audience) {
        // Readers that do not know of them see no empty posts.
        let gone = post::items(document, audience).filter_map(ItemProjection::tombstone);
        json.list_some("deleted", gone, tombstone);
    }
    json.list_some(
        "contributors",
        channel.contributors().iter(),
        people::json_feed,
    );
    json.list_some("tags", channel.tags().given(), tag);
    json.put_some("rights", channel.rights().map(ShownText::words));
    extension::of_channel(json, channel);
}

/// `item_id` is the `id` that the item had in `items`.
fn tombstone(json: &mut JsonObject<'_>, gone: ShownTombstone<'_>) {
    let item = gone.item;
    json.put("id", item.id.to_string());
    json.put("item_id", item.given_id());
    json.put("modified", item.modified.rfc3339());
    json.put("created", item.created.rfc3339());
    json.put("reason", gone.reason.code());
    json.put_some("first_missing", gone.first_missing.map(Stamp::rfc3339));
    json.put_some("last_seen", gone.last_seen.map(Stamp::rfc3339));
    extension::source(json, gone.source(), "title");
}

fn item(json: &mut JsonObject<'_>, post: ShownPost<'_>, audience: Audience) {
    let item = post.item;
    json.put("id", item.given_id());
    json.put_some("url", post.permalink());
    json.put_some("external_url", post.related());
    json.put_some("title", post.title());
    texts(json, post);
    json.put_some("image", post.picture());
    json.put_some("date_published", post.published());
    json.put("date_modified", item.updated().rfc3339());
    authors(json, post.authors());
    let tags: Vec<_> = post.tags().terms().collect();
    json.put_some("tags", Some(tags).filter(|tags| !tags.is_empty()));
    json.put_some("language", post.language());
    let files: Vec<_> = post.attached().collect();
    // The duration that iTunes names is that of the only one.
    let secs = post.duration_secs().filter(|_| files.len() == 1);
    json.list_some("attachments", &files, |json, file| {
        attachment(json, file);
        json.put_some("duration_in_seconds", secs);
    });
    json.object_some(EXTENSION, |json| item_extension(json, post, audience));
}

/// Content as HTML or as plain text, whichever it is; at least one of them (J-3).
fn texts(json: &mut JsonObject<'_>, post: ShownPost<'_>) {
    // A summary that is all there is, is shown as the content: readers show nothing else.
    match post.content().or(post.summary()) {
        Some(text) if text.marked().kind != TextKind::Plain => {
            json.put("content_html", text.html());
        }
        text => json.put(
            "content_text",
            text.map_or("", |text| text.marked().value.as_str()),
        ),
    }
    if post.content().is_some() {
        json.put_some("summary", post.summary().map(ShownText::words));
    }
}

/// A file; the format wants a type, known or not.
fn attachment(json: &mut JsonObject<'_>, file: &ShownFile<'_>) {
    let media_type = file.media_type();
    json.put("url", &file.href);
    json.put(
        "mime_type",
        media_type.unwrap_or("application/octet-stream"),
    );
    json.put_some("title", file.title());
    json.put_some("size_in_bytes", file.bytes());
}

/// Facts of an item beyond the format; the position for the full audience only.
fn item_extension(json: &mut JsonObject<'_>, post: ShownPost<'_>, audience: Audience) {
    if audience == Audience::Full {
        json.put("id", post.item.id.to_string());
        json.put("modified", post.item.modified.rfc3339());
        json.put("created", post.item.created.rfc3339());
    }
    json.list_some(
        "contributors",
        post.contributors().iter(),
        people::json_feed,
    );
    let tags = post.tags().given();
    let is_more = |tag: &&Category| tag.scheme.is_some() || tag.label.is_some();
    json.list_some("tags", tags.filter(is_more), tag);
    json.put_some("comments", post.comments());
    json.put_some("rights", post.rights().map(ShownText::words));
    extension::source(json, post.source(), "title");
    extension::of_post(json, post);
}

/// All authors, and the first of them once more for readers of version 1.0 (J-6).
fn authors(json: &mut JsonObject<'_>, authors: People<'_>) {
    json.list_some("authors", authors.iter(), people::json_feed);
    if let Some(first) = authors.iter().next() {
        json.object("author", |json| people::json_feed(json, first));
    }
}

/// A tag that is more than a word.
fn tag(json: &mut JsonObject<'_>, tag: &Category) {
    json.put("term", &tag.term);
    json.put_some("scheme", tag.scheme.as_ref());
    json.put_some("label", tag.label.as_ref());
}
