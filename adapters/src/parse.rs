//! A whole feed in one call, for programs that have no use for unparsed entries.

use crate::{
    Deletion, Entry, Format, Hints, Key, Metadata, NotAFeed, Note, RawEntry, SlicedDocument, slice,
};

/// Parses a document: its metadata and every entry.
///
/// It reads the same as [`slice()`] followed by [`RawEntry::parse`] of each entry; `slice` alone is
/// cheaper where most entries are known already. Content is never an error: oddities become notes.
///
/// ```
/// use everfeed_adapters::{Hints, parse};
///
/// let document = br#"<feed xmlns="http://www.w3.org/2005/Atom"><title>An old blog</title>
///     <entry><id>tag:example.org,2004:1</id><title>Hello</title>
///     <updated>2004-02-30</updated></entry></feed>"#;
/// let feed = parse(document, &Hints::default())?;
/// assert_eq!(feed.metadata.title.unwrap().value, "An old blog");
/// assert_eq!(feed.entries[0].entry.title.as_ref().unwrap().value, "Hello");
/// assert_eq!(feed.entries[0].notes[0].to_string(), "a date could not be understood: 2004-02-30");
/// assert!(parse(b"<html><title>404 Not Found</title>", &Hints::default()).is_err());
/// # Ok::<(), everfeed_adapters::NotAFeed>(())
/// ```
///
/// # Errors
/// As [`slice()`]: the bytes are no feed, or hold entries of which not one could be read in whole.
pub fn parse(bytes: &[u8], hints: &Hints<'_>) -> Result<Feed, NotAFeed> {
    slice(bytes, hints).map(Feed::from)
}

/// A feed as one document shows it, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feed {
    /// The format that was recognised.
    pub format: Format,
    /// The version of the format, under the names of [`SlicedDocument::version`].
    pub version: &'static str,
    /// The encoding that the document was read in, under the names of [`SlicedDocument::encoding`].
    pub encoding: &'static str,
    /// Metadata of the feed.
    pub metadata: Metadata,
    /// The entries in document order.
    pub entries: Vec<ParsedEntry>,
    /// The tombstones in document order.
    pub deletions: Vec<Deletion>,
    /// Oddities of the document; those of an entry stand beside it.
    pub notes: Vec<Note>,
}

/// An entry with the key that identifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedEntry {
    /// The key: the id, or else what names an entry without one.
    pub key: Key,
    /// The entry.
    pub entry: Entry,
    /// Oddities of the entry.
    pub notes: Vec<Note>,
}

impl From<SlicedDocument> for Feed {
    fn from(document: SlicedDocument) -> Self {
        Self {
            format: document.format,
            version: document.version,
            encoding: document.encoding,
            metadata: document.metadata,
            entries: document
                .entries
                .into_iter()
                .map(ParsedEntry::from)
                .collect(),
            deletions: document.deletions,
            notes: document.notes,
        }
    }
}

impl From<RawEntry> for ParsedEntry {
    fn from(raw: RawEntry) -> Self {
        let (entry, notes) = raw.parse();
        Self {
            key: raw.key,
            entry,
            notes,
        }
    }
}

impl Feed {
    /// True when the document ended early: absence from it proves nothing.
    pub fn is_truncated(&self) -> bool {
        self.notes.contains(&Note::Truncated)
    }
}
