//! JSON Lines: an activity of ActivityStreams 1.0 a line, and on the last line where the page
//! stands; for programs that read line by line. Not a log: pages are ranges as in every other
//! syntax.

use super::activity_streams::{Activity, Actor, CollectionPosition, Object, position};
use crate::render::{
    channel::ShownChannel,
    document::{Audience, Document, ItemPlace},
    post::ShownItem,
};
use serde::Serialize;

/// Writes the document.
pub(super) fn document(document: &Document<'_>, audience: Audience) -> Vec<u8> {
    let mut out = Vec::with_capacity(document.capacity_bytes());
    let service = Actor::service(document.feed());
    for item in &document.page.items {
        line(&mut out, &Activity::of(item, document.feed(), &service));
    }
    let last = LastLine {
        position: position(document, audience),
        feed: Object::channel(document.feed()),
    };
    line(&mut out, &last);
    out
}

/// Writes one item: the line that it has in a page, without its end.
pub(super) fn lone_item(
    item: ShownItem<'_>,
    channel: ShownChannel<'_>,
    _: Audience,
    _: ItemPlace,
) -> Option<Vec<u8>> {
    let (item, feed) = (item.item(), channel.feed);
    Some(super::json::item_bytes(&Activity::of(
        item,
        feed,
        &Actor::service(feed),
    )))
}

/// The page itself: the one line that has a `last_cursor` and no `id`.
#[derive(Serialize)]
struct LastLine<'a> {
    #[serde(flatten)]
    position: CollectionPosition<'a>,
    feed: Object<'a>,
}

/// JSON in one line: within strings a line break is always escaped.
fn line(out: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(&mut *out, value)
        .expect("strings and numbers always serialize into memory");
    out.push(b'\n');
}
