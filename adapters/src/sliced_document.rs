//! A document cut into entries: what `slice` gives.

use crate::formats::resource::Resource;
use crate::{Deletion, Format, Metadata, Note, RawEntry};

/// Limit of the entries of one document; the rest is left out with [`Note::TooManyEntries`].
pub const ENTRIES_MAX: usize = 10_000;

/// A document cut into entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlicedDocument {
    /// The format that was recognised.
    pub format: Format,
    /// The version of the format, under feedparser's names: `rss20`, `rss091n`, `rss` when none is
    /// said, `atom03`, `json11`; empty for a resource.
    pub version: &'static str,
    /// The encoding that the document was read in, under its WHATWG name; `UTF-32LE` and `UTF-32BE`
    /// have none there; empty for a resource, which is bytes.
    pub encoding: &'static str,
    /// Metadata of the feed.
    pub metadata: Metadata,
    /// The entries in document order, none of them parsed. Two may have the same key: then the
    /// document says so.
    pub entries: Vec<RawEntry>,
    /// The tombstones in document order.
    pub deletions: Vec<Deletion>,
    /// Oddities of the document; those of an entry are noted when it is parsed.
    pub notes: Vec<Note>,
    /// The document's first text up to its first entry, decoded, at most 16 KiB: where generators
    /// leave comments and declare namespaces. Only for recognising platforms.
    pub opening: Box<str>,
}

impl SlicedDocument {
    pub(crate) fn empty(format: Format) -> Self {
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

    /// A document that is itself the only item.
    pub(crate) fn of_resource(resource: Resource) -> Self {
        let metadata = resource.metadata();
        Self {
            metadata,
            entries: vec![RawEntry::of_resource(resource)],
            ..Self::empty(Format::Resource)
        }
    }

    /// True when the document ended early: absence from it proves nothing.
    pub fn is_truncated(&self) -> bool {
        self.notes.contains(&Note::Truncated)
    }
}
