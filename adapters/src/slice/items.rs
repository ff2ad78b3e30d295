//! Cuts a JSON Feed into its items: which text is whose, and what each is called.

use std::sync::Arc;

use super::keys::EntryNames;
use crate::formats::json_feed::{self, JsonOutline};
use crate::note::Notes;
use crate::reading::Scope;
use crate::text::json::JsonValue;
use crate::text::json::list::{Objects, Piece};
use crate::text::present;
use crate::{ENTRIES_MAX, Metadata, NotAFeed, Note, RawEntry};

/// A JSON Feed in pieces.
pub(super) struct CutItems {
    pub(super) version: &'static str,
    pub(super) metadata: Metadata,
    pub(super) entries: Vec<(RawEntry, EntryNames)>,
    pub(super) notes: Notes,
    /// As with markup: no item is whole, and the one that the document is cut in may be what there
    /// is.
    pub(super) has_no_whole_entry: bool,
}

/// Cuts a text that was recognised as a JSON Feed.
pub(super) fn cut(text: &str, scope: &Scope) -> Result<CutItems, NotAFeed> {
    let Some(shape) = JsonOutline::of(text) else {
        return Err(NotAFeed::Empty);
    };
    let mut notes = Notes::default();
    let metadata = json_feed::metadata(shape.root, scope, &mut notes);
    // Languages are those of the feed and of an item, not of a text.
    let inherited = Arc::new(Scope {
        language: None,
        ..scope.clone()
    });
    let is_strict = is_strict(shape.root.text) && !goes_on(text, shape.root);
    let bracket = if is_strict {
        None
    } else {
        bracket(text, &shape)
    };
    let mut read = ItemReader {
        inherited: &inherited,
        entries: Vec::new(),
        lost: false,
        cut: None,
        number: 0,
    };
    let mut is_closed = shape.root.whole;
    // The rest may be missing; that a brace is, somewhere before, is no such thing.
    let is_ended = is_closed || text.trim_end().ends_with('}');
    match bracket {
        Some(bracket) => {
            let mut objects = Objects::of(text, bracket);
            for piece in objects.by_ref() {
                if !read.piece(piece, &mut notes) {
                    break;
                }
            }
            is_closed = is_ended && (objects.is_closed || read.entries.len() >= ENTRIES_MAX);
        }
        None => {
            for item in shape.items.iter().flat_map(|items| items.elements()) {
                let piece = if item.is_object() && !item.whole {
                    Piece::Cut(item)
                } else {
                    Piece::Whole(item)
                };
                if !read.piece(piece, &mut notes) {
                    break;
                }
            }
        }
    }
    let ItemReader {
        mut entries,
        lost,
        cut,
        ..
    } = read;
    let has_list = shape.items.is_some() || bracket.is_some();
    let has_lost = lost || (!has_list && speaks_of_items(text));
    let has_no_whole_entry = entries.is_empty() && has_lost;
    if has_no_whole_entry {
        entries.extend(cut);
    }
    if !is_closed {
        notes.add_first(Note::Truncated);
    } else if !is_strict {
        notes.add_first(Note::Mismatched);
    }
    if !shape.versioned {
        notes.add(Note::Other(
            "it names no version of JSON Feed, but has the shape of one".to_owned(),
        ));
    }
    if !has_list && shape.root.whole {
        notes.add(Note::Other("it has no list of items".to_owned()));
    }
    Ok(CutItems {
        version: shape.version,
        metadata,
        entries,
        notes,
        has_no_whole_entry,
    })
}

/// Items while they are read.
struct ItemReader<'p> {
    inherited: &'p Arc<Scope>,
    entries: Vec<(RawEntry, EntryNames)>,
    lost: bool,
    cut: Option<(RawEntry, EntryNames)>,
    number: usize,
}

impl ItemReader<'_> {
    /// Takes what stands at one place of the list; false when there is no room for more.
    fn piece(&mut self, piece: Piece<'_>, notes: &mut Notes) -> bool {
        if self.entries.len() >= ENTRIES_MAX {
            notes.add_first(Note::TooManyEntries);
            return false;
        }
        self.number += 1;
        let number = self.number;
        let entry = |item: JsonValue<'_>| {
            (
                RawEntry::of_json(item.text, Arc::clone(self.inherited)),
                names(item),
            )
        };
        match piece {
            Piece::Whole(item) if item.whole && item.is_object() => self.entries.push(entry(item)),
            Piece::Whole(item) => {
                self.lost = true;
                if item.whole {
                    notes.add(Note::EntryLost(format!("item {number} is no object")));
                }
            }
            Piece::Lost => {
                self.lost = true;
                notes.add(Note::EntryLost(format!("item {number} is broken")));
            }
            Piece::Cut(item) => {
                self.lost = true;
                self.cut = Some(entry(item));
            }
        }
        true
    }
}

fn is_strict(json: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(json).is_ok()
}

/// True when a list seems to go on behind the end of the document: a bracket too many closed all of
/// it.
fn goes_on(text: &str, root: JsonValue<'_>) -> bool {
    let behind = text[root.text.len()..].trim_start().strip_prefix(',');
    behind.is_some_and(|behind| behind.trim_start().starts_with('{'))
}

/// Start of the list of items in a text that is not quite JSON. If no member of the document is
/// one, the likeliest reason is that something before it was never closed.
fn bracket(text: &str, shape: &JsonOutline<'_>) -> Option<usize> {
    if let Some(items) = shape.items {
        return items
            .is_array()
            .then(|| items.text.as_ptr().addr() - text.as_ptr().addr());
    }
    let mut lists = members_of(text, "\"items\"").filter(|at| text[*at..].starts_with('['));
    lists.find(|at| text[at + 1..].trim_start().starts_with('{'))
}

/// True when members that only items have stand anywhere, in a text in which no list of items was
/// found.
fn speaks_of_items(text: &str) -> bool {
    let holds = |at: usize| {
        let value = &text[at..];
        let inside = value
            .strip_prefix(['[', '{', '"'])
            .map_or(value, str::trim_start);
        !inside.starts_with([']', '}', '"', ',']) && !value.starts_with("null")
    };
    let names = [
        "\"id\"",
        "\"content_html\"",
        "\"content_text\"",
        "\"items\"",
    ];
    names.iter().any(|name| members_of(text, name).any(holds))
}

/// Starts of the values of the members of this name, whatever they are in.
fn members_of<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = usize> + 't {
    memchr::memmem::find_iter(text.as_bytes(), name).filter_map(move |at| {
        let value = text[at + name.len()..]
            .trim_start()
            .strip_prefix(':')?
            .trim_start();
        Some(text.len() - value.len())
    })
}

/// The names of an item. The spec has an item without id discarded (LEGACY J-10); but a post that
/// its readers see is not lost for the want of a name, so that one is known by its URL, its title
/// or its digest, like one of RSS.
fn names(item: JsonValue<'_>) -> EntryNames {
    let mut names = EntryNames::default();
    for (name, value) in item.members() {
        let field = match name.as_str() {
            "id" => &mut names.id,
            "url" => &mut names.link,
            "title" => &mut names.title,
            _ => continue,
        };
        let text = if name == "id" {
            value.scalar()
        } else {
            value.string()
        };
        *field = text.as_deref().and_then(present);
    }
    names
}
