//! Vocabularies that stand beside the formats' own: what of them is mapped. The rest stays foreign
//! markup.

pub(crate) mod comment_api;
pub(crate) mod creative_commons;
pub(crate) mod dublin_core;
pub(crate) mod feed_history;
pub(crate) mod georss;
pub(crate) mod itunes;
pub(crate) mod media_rss;
pub(crate) mod moved;
pub(crate) mod opensearch;
pub(crate) mod references;
pub(crate) mod syndication;
pub(crate) mod tags;
pub(crate) mod tombstones;
