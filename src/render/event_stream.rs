//! Server-sent events (HTML, section 9.2): a page as events, one for each item, and the lines
//! between them; not how long a stream lives.

use super::{document::ItemContext, representation::Representation};
use crate::feed::{
    item::Item,
    order::{Axis, Order},
    page::{Degraded, Page},
};
use crate::mistakes::{Mistake, is_made};
use std::time::Duration;

/// The `Content-Type` header.
pub const CONTENT_TYPE: &str = "text/event-stream";

/// A line that keeps a quiet connection open, and means nothing.
pub const COMMENT: &str = ":\n\n";

/// The name of the event of a tombstone.
const DELETE: &str = "delete";
/// The name of the event that tells a consumer that its position is not one of this feed.
const RESET: &str = "reset";

/// The events of a page in an order that a consumer can follow. The data of each is the item in
/// JSON, as pages write it, its id the cursor behind the item. When the consumer's own position is
/// not one of the feed, `reset` comes before them.
pub fn events(page: &Page, order: Order) -> Vec<u8> {
    let mut out = Vec::new();
    let reset = page
        .degraded
        .filter(|degraded| *degraded != Degraded::Moved);
    if let Some(degraded) = reset {
        // Only where nothing follows: whoever is cut off before the first item must be told again.
        if page.items.is_empty() {
            write_id(&mut out, &page.last_cursor);
        }
        let data = serde_json::json!({ "cursor": degraded.name() });
        write_event(&mut out, Some(RESET), data.to_string().as_bytes());
    }
    for item in &page.items {
        let Some(data) = Representation::JSON.item(item, &page.record, ItemContext::Page) else {
            continue;
        };
        if is_made(Mistake::EventNamesTheEnd) {
            write_id(&mut out, &page.last_cursor);
        } else {
            write_id(&mut out, &cursor_behind(page, item, order));
        }
        write_event(&mut out, item.is_gone().then_some(DELETE), &data);
    }
    let last = page
        .items
        .last()
        .map(|item| cursor_behind(page, item, order));
    if last.is_some_and(|last| last != page.last_cursor) {
        out.extend(position(&page.last_cursor));
    }
    out
}

/// An id without data: the position of the consumer moves, and no event comes to its page.
pub fn position(cursor: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write_id(&mut out, cursor);
    out.push(b'\n');
    out
}

/// The time after which a browser connects again.
pub fn retry(after: Duration) -> String {
    format!("retry: {}\n\n", after.as_millis())
}

/// The cursor behind an item, with the mark of its part. Stamps are unique, so the item stands alone
/// at its own.
fn cursor_behind(page: &Page, item: &Item, order: Order) -> String {
    let t = if order.axis == Axis::Created {
        item.created
    } else {
        item.modified
    };
    page.record.cursor(t, item.id).unwrap_or_default()
}

fn write_id(out: &mut Vec<u8>, cursor: &str) {
    out.extend_from_slice(format!("id: {cursor}\n").as_bytes());
}

/// The rest of an event, to the empty line. Data in JSON is one line.
fn write_event(out: &mut Vec<u8>, name: Option<&str>, data: &[u8]) {
    if let Some(name) = name {
        out.extend_from_slice(format!("event: {name}\n").as_bytes());
    }
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\n\n");
}
