//! The memory of sites: the last good documents of their feeds, and the feeds that were found.

use super::{
    StoredKind,
    table::{stored_enums, stored_structs},
};
use crate::{
    feed::legacy_document::{LegacyDocument, LegacySyntax},
    store::FoundFeeds,
};

impl StoredKind for LegacyDocument {
    const NAME: &'static str = "document";
}

impl StoredKind for FoundFeeds {
    const NAME: &'static str = "found-feeds";
}

stored_structs! {
    FoundFeeds { paths }
    LegacyDocument { body, digest, content_type, last_modified, syntax, fetched_at, etag }
}

stored_enums! {
    LegacySyntax { 0 Rss, 1 Atom, 2 Other, 3 Rdf, 4 JsonFeed }
}
