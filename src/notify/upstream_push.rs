//! The words between those who poll feeds and those who are pushed their news; not what either makes
//! of them.

use crate::feed::{pushed_feed::NamedPush, record::FeedNo, stamp::Stamp};
use bytes::Bytes;
use std::fmt;

/// Whoever is pushed the news of feeds, as the poller knows it.
pub trait UpstreamPush: fmt::Debug + Send + Sync {
    /// True while the news of a feed are pushed, so that it need not be polled as often.
    fn works(&self, feed: FeedNo, now: Stamp) -> bool;

    /// A document of a feed was taken, with which it names these services.
    fn document_taken(&self, feed: FeedNo, named: NamedPush);

    /// A poll found news. The one before it was then.
    fn found_by_poll(&self, feed: FeedNo, polled_before: Option<Stamp>, now: Stamp);

    /// Takes the documents of a feed that were pushed and wait for its next poll, in their order.
    fn take_documents(&self, feed: FeedNo) -> Vec<PushedDocument>;
}

/// A document whose hub has proven that it sent it.
#[derive(Clone, Debug)]
pub struct PushedDocument {
    /// The document, as it came.
    pub body: Bytes,
    /// `Content-Type`, if it is text.
    pub content_type: Option<String>,
}
