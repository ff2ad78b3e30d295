//! Cuts a document into entries: which bytes are whose, and what each is called. What an entry says is read later, alone.

mod cutter;
mod items;
mod leaf;
mod open_elements;
mod signs;

use std::collections::HashMap;
use std::sync::Arc;

use crate::detect::{self, NotAFeed, Root};
use crate::dispatch;
use crate::entry::notes::Notes;
use crate::formats::resource::Resource;
use crate::formats::version;
use crate::reading::{Dialect, Scope};
use crate::text::markup::tree::{self, Bindings};
use crate::text::{doctype, encoding, present, uri};
use crate::vocabulary::Vocabulary;
use crate::{Deletion, Digest, Entry, Format, Hints, Key, Metadata, Note};
use cutter::Cut;

/// How many entries one document may have; the rest is left out with [`Note::TooManyEntries`].
pub const ENTRIES_MAX: usize = 10_000;

/// Cuts a document into entries: decoded, recognised, its metadata read, each entry with its key and raw digest.
///
/// Content is never an error: what is odd becomes a note.
///
/// # Errors
/// Only when the bytes are no feed at all (a web page, other JSON, nothing), or when they hold entries of which not one
/// could be read in whole; then the publisher, or whatever stands before it, is at fault. Never with
/// [`Hints::resource`], for which any bytes will do.
pub fn slice(bytes: &[u8], hints: &Hints<'_>) -> Result<Window, NotAFeed> {
    let base = hints.base_url.and_then(|url| uri::rebase(None, url));
    if let Some(url) = hints.resource {
        return Ok(Window::of_resource(Resource::new(url, base, hints.content_type, bytes)));
    }
    if let Some(binary) = detect::binary(bytes) {
        return Err(binary);
    }
    let decoded = encoding::decode(bytes, hints.content_type);
    let (text, unreplaced) = doctype::expand(&decoded.text);
    let is_wide = decoded.encoding.starts_with("UTF-16") || decoded.encoding.starts_with("UTF-32");
    let root = detect::recognise(&text).map_err(|error| match error {
        NotAFeed::Html { .. } | NotAFeed::OtherXml { .. } | NotAFeed::Text { .. }
            if !is_wide && detect::is_noise(bytes) =>
        {
            NotAFeed::Binary { kind: "binary" }
        }
        error => error,
    })?;
    // A response in several languages names none of its parts.
    let language = hints.content_language.filter(|languages| !languages.contains(',')).and_then(present);
    let scope = Scope { base, language, ..Scope::default() };
    let (mut window, mut notes, lost) = match root.format {
        Format::JsonFeed => of_items(&root, &scope)?,
        _ => {
            // What stands before the root element is as long as the text is longer.
            let before = &text[..text.len() - root.text.len()];
            of_markup(&root, before, scope)?
        }
    };
    window.encoding = decoded.encoding;
    if root.preceded {
        notes.add_first(Note::Other("something stands before the document".to_owned()));
    }
    if unreplaced {
        notes.add_first(Note::Other(
            "some entities that it declares are too many or too long to be replaced".to_owned(),
        ));
    }
    if let Some(note) = decoded.note {
        notes.add_first(note);
    }
    window.notes = notes.into_vec();
    if root.format != Format::JsonFeed {
        window.opening = opening(&decoded.text).into();
    }
    if lost {
        let remains = (!window.entries.is_empty()).then(|| Box::new(window));
        return Err(NotAFeed::NoWholeEntry { remains });
    }
    Ok(window)
}

/// The window, what is odd about it, and whether no entry of it is whole.
fn of_markup(root: &Root<'_>, before: &str, scope: Scope) -> Result<(Window, Notes, bool), NotAFeed> {
    let cut = cutter::cut(root, scope)?;
    let Cut { dialect, scope, feed_id, feed_children, entries, deletions, mut notes, lost } = cut;
    let mut metadata = dispatch::metadata(feed_children, &dialect, &scope, &mut notes);
    metadata.id = metadata.id.or(feed_id);
    let window = Window {
        version: version::of(root.format, before, root.text),
        metadata,
        entries: named(entries),
        deletions,
        ..Window::empty(root.format)
    };
    Ok((window, notes, lost))
}

fn of_items(root: &Root<'_>, scope: &Scope) -> Result<(Window, Notes, bool), NotAFeed> {
    let items::Cut { version, metadata, entries, notes, lost } = items::cut(root.text, scope)?;
    let window = Window { version, metadata, entries: named(entries), ..Window::empty(root.format) };
    Ok((window, notes, lost))
}

/// How much of a document is kept as its opening, bytes.
const OPENING_BYTES_MAX: usize = 16 * 1024;

/// What stands before the first entry, as far as it is kept.
fn opening(text: &str) -> &str {
    let limit = text.len().min(OPENING_BYTES_MAX);
    let text = &text[..(0..=limit).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)];
    let starts = memchr::memchr_iter(b'<', text.as_bytes());
    let is_entry = |at: &usize| {
        let name = text.as_bytes()[at + 1..].split(|b| !b.is_ascii_alphabetic()).next().unwrap_or_default();
        name.eq_ignore_ascii_case(b"item") || name.eq_ignore_ascii_case(b"entry")
    };
    let end = starts.into_iter().find(is_entry).unwrap_or(text.len());
    &text[..end]
}

/// What one document shows of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The format that was recognised.
    pub format: Format,
    /// The version of the format, under feedparser's names: `rss20`, `rss091n`, `rss` when none is said, `atom03`,
    /// `json11`; empty for a resource.
    pub version: &'static str,
    /// The encoding that the document was read in, under its WHATWG name; `UTF-32LE` and `UTF-32BE` have none there;
    /// empty for a resource, which is bytes.
    pub encoding: &'static str,
    /// What the document says of itself.
    pub metadata: Metadata,
    /// The entries in document order, none of them parsed. Two may have the same key: then the document says so.
    pub entries: Vec<RawEntry>,
    /// The tombstones in document order.
    pub deletions: Vec<Deletion>,
    /// What was odd about the document; what is odd about an entry is said when it is parsed.
    pub notes: Vec<Note>,
    /// The document's first text up to its first entry, decoded, at most 16 KiB: where generators leave comments and
    /// declare namespaces. Only for recognising platforms.
    pub opening: Box<str>,
}

impl Window {
    fn empty(format: Format) -> Self {
        Self {
            format,
            version: "",
            encoding: "",
            metadata: Metadata::default(),
            entries: Vec::new(),
            deletions: Vec::new(),
            notes: Vec::new(),
            opening: Box::default(),
        }
    }

    /// The window of a document that is itself the only item.
    fn of_resource(resource: Resource) -> Self {
        let (key, metadata) = (Key::Id(resource.url().to_owned()), resource.metadata());
        let raw = RawEntry { key, raw: resource.digest(), inside: Inside::Resource(Arc::new(resource)) };
        Self { metadata, entries: vec![raw], ..Self::empty(Format::Resource) }
    }

    /// Whether the document ended early: what is missing from it proves nothing.
    pub fn is_truncated(&self) -> bool {
        self.notes.contains(&Note::Truncated)
    }
}

/// One entry, not yet parsed. It owns its markup and shares what it inherited, so it outlives the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawEntry {
    /// What identifies the entry.
    pub key: Key,
    /// Digest of the entry's own markup, decoded: equal means that its publisher did not touch it. What it inherits
    /// (namespaces, `xml:base`) is not in it.
    pub raw: Digest,
    inside: Inside,
}

/// What is parsed when somebody asks.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Inside {
    /// An element.
    Markup { markup: Box<str>, context: Arc<Context> },
    /// An item of a JSON Feed.
    Item { json: Box<str>, scope: Arc<Scope> },
    /// The whole document.
    Resource(Arc<Resource>),
}

/// What may name an entry, trimmed of XML white space and otherwise byte-exact.
#[derive(Debug, Default)]
struct Marks {
    guid: Option<String>,
    id: Option<String>,
    about: Option<String>,
    link: Option<String>,
    title: Option<String>,
}

/// What entries inherit from the elements around them.
#[derive(Debug, PartialEq, Eq)]
struct Context {
    dialect: Dialect,
    bindings: Bindings,
    scope: Scope,
}

impl RawEntry {
    /// Reads the entry. What cannot be understood is left out and noted.
    pub fn parse(&self) -> (Entry, Vec<Note>) {
        let (entry, notes) = match &self.inside {
            Inside::Markup { markup, context } => context.parse(markup),
            Inside::Item { json, scope } => dispatch::json_item(json, scope),
            Inside::Resource(resource) => resource.entry(),
        };
        (entry, notes.into_vec())
    }

    /// What the key was taken from, in the words of the format: `guid`, `atom:id`, `rdf:about`, `href`, `id`, `link`,
    /// `title`, `url` of a resource, or `digest` when nothing names the entry.
    pub fn named_by(&self) -> &'static str {
        let id = match &self.key {
            Key::Id(id) => id,
            Key::Link(_) => return "link",
            Key::Title(_) => return "title",
            Key::Digest(_) => return "digest",
        };
        let (markup, context) = match &self.inside {
            Inside::Markup { markup, context } => (markup, context),
            Inside::Item { .. } => return "id",
            Inside::Resource(_) => return "url",
        };
        let Some(grown) = tree::grow(markup, &context.bindings) else { return "id" };
        let says = |text: &str| crate::text::trim(text) == id;
        let by_child = grown.element.elements().find_map(|child| {
            let name = match child.name.as_str() {
                "id" if Vocabulary::of(&child.ns) == Vocabulary::Atom => "atom:id",
                name if name.eq_ignore_ascii_case("guid") => "guid",
                _ => return None,
            };
            says(&child.text()).then_some(name)
        });
        let by_attribute = || {
            let mut said = grown.element.attributes.iter().filter(|attribute| says(&attribute.value));
            said.find_map(|attribute| match attribute.name.as_str() {
                "about" => Some("rdf:about"),
                name if name.eq_ignore_ascii_case("href") => Some("href"),
                _ => None,
            })
        };
        by_child.or_else(by_attribute).unwrap_or("id")
    }

    /// The entry's own markup or JSON, decoded, as it stood in the document; of a resource there is none.
    pub fn markup(&self) -> &str {
        match &self.inside {
            Inside::Markup { markup, .. } => markup,
            Inside::Item { json, .. } => json,
            Inside::Resource(_) => "",
        }
    }
}

impl Context {
    /// Reads an entry that stands here.
    fn parse(&self, markup: &str) -> (Entry, Notes) {
        let Some(grown) = tree::grow_record(markup, &self.bindings) else {
            let mut notes = Notes::default();
            notes.add(Note::EntryLost("its markup has no element".to_owned()));
            return (Entry::default(), notes);
        };
        let (entry, mut notes) = dispatch::entry(grown.element, &self.dialect, &self.scope);
        if grown.limited {
            notes.add_first(tree::limit_note());
        }
        if grown.mended {
            notes.add_first(Note::Mismatched);
        }
        (entry, notes)
    }
}

/// Gives every entry its key (DESIGN section 3, LEGACY I-2). A link or title that several entries share names none.
fn named(entries: Vec<(RawEntry, Marks)>) -> Vec<RawEntry> {
    let mut links: HashMap<&str, u32> = HashMap::new();
    let mut titles: HashMap<&str, u32> = HashMap::new();
    for (_, marks) in &entries {
        if let Some(link) = &marks.link {
            *links.entry(link).or_default() += 1;
        }
        if let Some(title) = &marks.title {
            *titles.entry(title).or_default() += 1;
        }
    }
    let is_single = |counts: &HashMap<&str, u32>, name: &Option<String>| {
        name.as_deref().is_some_and(|name| counts.get(name) == Some(&1))
    };
    let single: Vec<_> = entries
        .iter()
        .map(|(_, marks)| (is_single(&links, &marks.link), is_single(&titles, &marks.title)))
        .collect();
    let named = entries.into_iter().zip(single).map(|((mut entry, marks), (single_link, single_title))| {
        let strong = marks.guid.or(marks.id).or(marks.about).map(Key::Id);
        entry.key = strong
            .or(marks.link.filter(|_| single_link).map(Key::Link))
            .or(marks.title.filter(|_| single_title).map(Key::Title))
            .unwrap_or_else(|| Key::Digest(entry.parse().0.digest().to_string()));
        entry
    });
    named.collect()
}

#[cfg(test)]
mod tests;
