//! JSON Lines: an activity of ActivityStreams 1.0 a line, and on the last line where the page
//! stands; for programs that read line by line. Not a log: pages are ranges as in every other
//! syntax.

use super::{
    FULL, Media, Negotiation, SyntaxRow,
    activity_streams::{activity, channel, lone_item, position},
};
use crate::render::{
    channel::ShownChannel,
    document::{Audience, Document},
    json::JsonObject,
    post,
};

/// The syntax.
pub(super) static ROW: SyntaxRow = SyntaxRow {
    suffix: "jsonl",
    title: "JSON Lines",
    standard: "ActivityStreams 1.0, one activity a line, and the page last",
    etag: "l",
    media: Media::of("application/x-ndjson; charset=utf-8", Negotiation::Name).or(&[
        "application/ndjson",
        "application/jsonl",
        "application/x-jsonlines",
    ]),
    audiences: FULL,
    is_alternate: false,
    write: document,
    item: lone_item,
};

/// Writes the document. Within strings of JSON a line break is always escaped. The last line is the
/// page itself: the one that has a `last_cursor` and no `id`.
pub(super) fn document(document: &Document<'_>, audience: Audience) -> Vec<u8> {
    let mut out = Vec::with_capacity(document.capacity_bytes());
    let feed = ShownChannel::of(document.feed());
    let service = feed.service();
    for item in post::items(document, audience) {
        JsonObject::write(&mut out, |json| activity(json, item, feed, &service));
        out.push(b'\n');
    }
    JsonObject::write(&mut out, |json| {
        position(json, document, audience, None);
        json.object("feed", |json| channel(json, feed));
    });
    out.push(b'\n');
    out
}
