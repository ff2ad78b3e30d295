//! Vocabularies that stand beside the formats' own: what of them is mapped. The rest stays foreign markup.

pub(crate) mod dublin_core;
pub(crate) mod feed_history;
pub(crate) mod itunes;
pub(crate) mod media_rss;
pub(crate) mod syndication;
pub(crate) mod tombstones;
