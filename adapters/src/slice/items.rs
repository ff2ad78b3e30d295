//! Cuts a JSON Feed into its items: which text is whose, and what each is called.

use std::sync::Arc;

use super::{ENTRIES_MAX, Inside, Marks, RawEntry};
use crate::detect::NotAFeed;
use crate::entry::notes::Notes;
use crate::formats::Place;
use crate::formats::json_feed::{self, Shape};
use crate::text::json::Value;
use crate::text::present;
use crate::{Digest, Head, Key, Note};

/// What was found.
pub(super) struct Cut {
    pub(super) version: &'static str,
    pub(super) head: Head,
    pub(super) entries: Vec<(RawEntry, Marks)>,
    pub(super) notes: Notes,
    /// As with markup: no item is whole, and the one that the document is cut in may be what there is.
    pub(super) lost: bool,
}

/// Cuts a text that was recognised as a JSON Feed.
pub(super) fn cut(text: &str, place: &Place) -> Result<Cut, NotAFeed> {
    let Some(shape) = Shape::of(text) else { return Err(NotAFeed::Empty) };
    let mut notes = Notes::default();
    let head = json_feed::head(shape.root, place, &mut notes);
    // Languages are those of the feed and of an item, not of a text.
    let inherited = Arc::new(Place { language: None, ..place.clone() });
    let mut entries = Vec::new();
    let mut lost = false;
    let mut cut = None;
    for (number, item) in (1_usize..).zip(shape.items.iter().flat_map(|items| items.elements())) {
        if entries.len() >= ENTRIES_MAX {
            notes.add_first(Note::TooManyEntries);
            break;
        }
        if !item.whole || !item.is_object() {
            lost = true;
            if item.whole {
                notes.add(Note::EntryLost(format!("item {number} is no object")));
            } else if item.is_object() {
                cut = Some((raw(item, &inherited), marks(item)));
            }
            continue;
        }
        entries.push((raw(item, &inherited), marks(item)));
    }
    let lost = entries.is_empty() && lost;
    entries.extend(cut.filter(|_| lost));
    if !shape.root.whole {
        notes.add_first(Note::Truncated);
    } else if serde_json::from_str::<serde::de::IgnoredAny>(shape.root.text).is_err() {
        notes.add_first(Note::Mismatched);
    }
    if !shape.versioned {
        notes.add(Note::Other("it names no version of JSON Feed, but has the shape of one".to_owned()));
    }
    if shape.items.is_none() && shape.root.whole {
        notes.add(Note::Other("it has no list of items".to_owned()));
    }
    Ok(Cut { version: shape.version, head, entries, notes, lost })
}

fn raw(item: Value<'_>, place: &Arc<Place>) -> RawEntry {
    RawEntry {
        key: Key::Digest(String::new()),
        raw: Digest::of(item.text.as_bytes()),
        inside: Inside::Item { json: item.text.into(), place: Arc::clone(place) },
    }
}

/// What may name an item. The spec has an item without id discarded (LEGACY J-10); but a post that its readers see is not
/// lost for the want of a name, so that one is known by its URL, its title or its digest, like one of RSS.
fn marks(item: Value<'_>) -> Marks {
    let mut marks = Marks::default();
    for (name, value) in item.members() {
        let field = match name.as_str() {
            "id" => &mut marks.id,
            "url" => &mut marks.link,
            "title" => &mut marks.title,
            _ => continue,
        };
        let text = if name == "id" { value.scalar() } else { value.string() };
        *field = text.as_deref().and_then(present);
    }
    marks
}
