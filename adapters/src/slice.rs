//! Cuts a document into entries: which bytes are whose, and what each is called. What an entry says is read later, alone.

mod cutter;
mod open_elements;

use std::collections::HashMap;
use std::sync::Arc;

use crate::detect::{self, NotAFeed};
use crate::formats::{self, Dialect, Place};
use crate::text::encoding;
use crate::text::markup::tree::{self, Bindings};
use crate::{Deletion, Digest, Entry, Format, Head, Hints, Key, Note};
use cutter::{Cut, Marks};

/// How many entries one document may have; the rest is left out with [`Note::TooManyEntries`].
pub const ENTRIES_MAX: usize = 10_000;

/// Cuts a document into entries: decoded, recognised, its head read, each entry with its key and raw digest.
///
/// Content is never an error: what is odd becomes a note.
///
/// # Errors
/// Only when the bytes are no feed at all (a web page, JSON, nothing), or when they hold entries of which not one could
/// be read in whole; then the publisher, or whatever stands before it, is at fault.
pub fn slice(bytes: &[u8], hints: &Hints<'_>) -> Result<Window, NotAFeed> {
    if let Some(binary) = detect::binary(bytes) {
        return Err(binary);
    }
    let decoded = encoding::decode(bytes, hints.content_type);
    let root = detect::recognise(&decoded.text)?;
    let place = Place { base: hints.base_url.and_then(|url| url::Url::parse(url).ok()), language: None };
    let cut = cutter::cut(&root, place)?;
    let Cut { dialect, place, head_id, head, entries, deletions, mut notes } = cut;
    if root.preceded {
        notes.add_first(Note::Other("something stands before the document".to_owned()));
    }
    if let Some(note) = decoded.note {
        notes.add_first(note);
    }
    let mut head = formats::head(head, &dialect, &place, &mut notes);
    head.id = head.id.or(head_id);
    let notes = notes.into_vec();
    Ok(Window { format: root.format, head, entries: named(entries), deletions, notes })
}

/// What one document shows of a feed.
#[derive(Clone, Debug)]
pub struct Window {
    /// The format that was recognised.
    pub format: Format,
    /// What the document says of itself.
    pub head: Head,
    /// The entries in document order, none of them parsed. Two may have the same key: then the document says so.
    pub entries: Vec<RawEntry>,
    /// The tombstones in document order.
    pub deletions: Vec<Deletion>,
    /// What was odd about the document; what is odd about an entry is said when it is parsed.
    pub notes: Vec<Note>,
}

impl Window {
    /// Whether the document ended early: what is missing from it proves nothing.
    pub fn is_truncated(&self) -> bool {
        self.notes.contains(&Note::Truncated)
    }
}

/// One entry, not yet parsed. It owns its markup and shares what it inherited, so it outlives the document.
#[derive(Clone, Debug)]
pub struct RawEntry {
    /// What identifies the entry.
    pub key: Key,
    /// Digest of the entry's own markup, decoded: equal means that its publisher did not touch it. What it inherits
    /// (namespaces, `xml:base`) is not in it.
    pub raw: Digest,
    markup: Box<str>,
    context: Arc<Context>,
}

/// What entries inherit from the elements around them.
#[derive(Debug)]
struct Context {
    dialect: Dialect,
    bindings: Bindings,
    place: Place,
}

impl RawEntry {
    /// Reads the entry. What cannot be understood is left out and noted.
    pub fn parse(&self) -> (Entry, Vec<Note>) {
        let Context { dialect, bindings, place } = &*self.context;
        let Some(grown) = tree::grow(&self.markup, bindings) else {
            return (Entry::default(), vec![Note::EntryLost("its markup has no element".to_owned())]);
        };
        let (entry, mut notes) = formats::entry(grown.element, dialect, place);
        if grown.mended {
            notes.add_first(Note::Mismatched);
        }
        (entry, notes.into_vec())
    }

    /// The entry's own markup, decoded, as it stood in the document.
    pub fn markup(&self) -> &str {
        &self.markup
    }
}

/// Gives every entry its key (DESIGN section 3, LEGACY I-2). A link or title that several entries share names none.
fn named(entries: Vec<(RawEntry, Marks)>) -> Vec<RawEntry> {
    let mut links: HashMap<String, u32> = HashMap::new();
    let mut titles: HashMap<String, u32> = HashMap::new();
    for (_, marks) in &entries {
        if let Some(link) = &marks.link {
            *links.entry(link.clone()).or_default() += 1;
        }
        if let Some(title) = &marks.title {
            *titles.entry(title.clone()).or_default() += 1;
        }
    }
    let key = |entry: &RawEntry, marks: Marks| {
        let link = marks.link.filter(|link| links[link] == 1);
        let title = marks.title.filter(|title| titles[title] == 1);
        let strong = marks.guid.or(marks.id).or(marks.about).map(Key::Id);
        strong
            .or(link.map(Key::Link))
            .or(title.map(Key::Title))
            .unwrap_or_else(|| Key::Digest(entry.parse().0.digest().to_string()))
    };
    let named = entries.into_iter().map(|(mut entry, marks)| {
        entry.key = key(&entry, marks);
        entry
    });
    named.collect()
}

#[cfg(test)]
mod tests;
