//! Document bytes in, feed entries out: tolerant, pure adapters for the feed formats of the last twenty-five years.
//!
//! A document is first *sliced*: decoded, recognised, its head read, and cut into entries with their keys and raw
//! digests. An entry is parsed further only when somebody asks, so an unchanged entry costs a digest, and one bad
//! entry harms no other. Nothing here has a clock, opens anything, or awaits.

mod detect;
pub mod entry;
mod extensions;
mod formats;
mod slice;
pub mod text;
mod vocabulary;

pub use detect::NotAFeed;
pub use entry::*;
pub use slice::{ENTRIES_MAX, RawEntry, Window, slice};

/// What came with the document.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hints<'a> {
    /// The HTTP `Content-Type`, verbatim.
    pub content_type: Option<&'a str>,
    /// The document's URL after redirects: what relative references are resolved against.
    pub base_url: Option<&'a str>,
}
