//! The last good document of a feed, as its publisher sent it: what plain readers get at its own
//! address.

use super::stamp::Stamp;
use everfeed_adapters::{Digest, Format};

/// The last good document of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegacyDocument {
    /// Its bytes, inflated.
    pub body: Vec<u8>,
    /// Digest by which polls know it.
    pub digest: Digest,
    /// `Content-Type`, as it was sent.
    pub content_type: Option<String>,
    /// `Last-Modified`, as it was sent.
    pub last_modified: Option<String>,
    /// The syntax of it.
    pub syntax: LegacySyntax,
    /// Time at which it came.
    pub fetched_at: Stamp,
    /// `ETag`, as it was sent.
    pub etag: Option<String>,
}

/// The syntax of a publisher's document, as far as it decides what is done with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LegacySyntax {
    /// RSS 0.9x and 2.0.
    Rss,
    /// RSS 0.90 and 1.0.
    Rdf,
    /// Atom.
    Atom,
    /// JSON Feed.
    JsonFeed,
    /// Another one: it can be served, and neither rewritten nor pushed. CDF has no place for links
    /// of others, and nothing writes it any more.
    #[default]
    Other,
}

impl From<Format> for LegacySyntax {
    fn from(format: Format) -> Self {
        match format {
            Format::Rss => Self::Rss,
            Format::Rdf => Self::Rdf,
            Format::Atom => Self::Atom,
            Format::JsonFeed => Self::JsonFeed,
            Format::Cdf | Format::Resource => Self::Other,
        }
    }
}
