//! The document formats that are told apart.

use serde::Serialize;

/// A document format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Format {
    /// RSS 0.9x and 2.0, versionless included.
    Rss,
    /// RSS 0.90, 1.0 and 1.1: RDF.
    Rdf,
    /// Atom 1.0, its drafts and 0.3.
    Atom,
    /// The Channel Definition Format of 1997.
    Cdf,
    /// JSON Feed 1.0 and 1.1.
    JsonFeed,
    /// Not a feed: one document that is itself the only item, whatever it is
    /// ([`Hints::resource`](crate::Hints)).
    Resource,
}
