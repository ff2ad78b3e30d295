//! XML namespaces that our documents declare or leave out.

pub(super) const ATOM: &str = "http://www.w3.org/2005/Atom";
pub(super) const SMART_FEED: &str = "http://fanout.org/protocol/atom";
pub(super) const TOMBSTONES: &str = "http://purl.org/atompub/tombstones/1.0";
pub(super) const PUBLISHING: &str = "http://www.w3.org/2007/app";
pub(super) const FEED_HISTORY: &str = "http://purl.org/syndication/history/1.0";
pub(super) const CONTENT: &str = "http://purl.org/rss/1.0/modules/content/";
pub(super) const DUBLIN_CORE: &str = "http://purl.org/dc/elements/1.1/";
pub(super) const MEDIA: &str = "http://search.yahoo.com/mrss/";
pub(super) const ITUNES: &str = "http://www.itunes.com/dtds/podcast-1.0.dtd";
pub(super) const SYNDICATION: &str = "http://purl.org/rss/1.0/modules/syndication/";
