//! A view: what a consumer reads, apart from where it stands; not how it is rendered.

use super::{order::Order, record::FeedNo};
use serde::{Deserialize, Serialize};

/// A way to look at a feed. Two equal views at one position get the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct View {
    /// Which feed.
    pub feed: FeedNo,
    /// In which order.
    pub order: Order,
    /// In which form.
    pub format: Format,
}

/// The forms of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Format {
    /// Atom 1.0 with `fo:` and `at:` elements: the Smart Feed.
    Atom,
    /// ActivityStreams 1.0 Collection: the Smart Feed as JSON.
    Json,
    /// Atom for ordinary readers: newest first, no tombstones, no cursors.
    ClassicAtom,
    /// RSS 2.0 for ordinary readers.
    ClassicRss,
}

impl Format {
    /// The media type, without parameters.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Atom | Self::ClassicAtom => "application/atom+xml",
            Self::Json => "application/json",
            Self::ClassicRss => "application/rss+xml",
        }
    }

    /// The `Content-Type` header.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Atom | Self::ClassicAtom => "application/atom+xml; charset=utf-8",
            Self::Json => "application/json; charset=utf-8",
            Self::ClassicRss => "application/rss+xml; charset=utf-8",
        }
    }
}
