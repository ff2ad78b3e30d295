//! Documents that were pushed, until the next poll of their feed takes them; not what they change.

use crate::{feed::record::FeedNo, notify::PushedDocument};
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, VecDeque};

/// Documents of a feed that wait at most; more are hints alone.
const OF_FEED_MAX: usize = 16;
/// Bytes of all documents that wait at most.
const BYTES_MAX: usize = 32 << 20;
/// Documents of a feed that are known again when they come once more.
const REMEMBERED_MAX: usize = 32;

/// Documents that wait.
#[derive(Default)]
pub(super) struct PushedDocuments {
    waiting: HashMap<FeedNo, Vec<PushedDocument>>,
    bytes: usize,
    /// Digests of the last documents of each feed.
    // Limit: a restart forgets them. A document that is sent again after that is taken in again, and
    // the poll behind it puts right what is older in it.
    known: HashMap<FeedNo, VecDeque<[u8; 32]>>,
}

impl PushedDocuments {
    /// Keeps a document for the next poll; false for one that came before, or for which there is no
    /// room.
    pub(super) fn put(&mut self, feed: FeedNo, document: PushedDocument) -> bool {
        let digest: [u8; 32] = Sha256::digest(&document.body).into();
        let known = self.known.entry(feed).or_default();
        if known.contains(&digest) {
            return false;
        }
        known.push_back(digest);
        if known.len() > REMEMBERED_MAX {
            known.pop_front();
        }
        let bytes = self.bytes + document.body.len();
        let waiting = self.waiting.entry(feed).or_default();
        if bytes > BYTES_MAX || waiting.len() == OF_FEED_MAX {
            return false;
        }
        self.bytes = bytes;
        waiting.push(document);
        true
    }

    /// Takes the documents of a feed, in their order.
    pub(super) fn take(&mut self, feed: FeedNo) -> Vec<PushedDocument> {
        let taken = self.waiting.remove(&feed).unwrap_or_default();
        let bytes: usize = taken.iter().map(|document| document.body.len()).sum();
        self.bytes = self.bytes.saturating_sub(bytes);
        taken
    }

    /// Forgets a feed.
    pub(super) fn forget(&mut self, feed: FeedNo) {
        drop(self.take(feed));
        self.known.remove(&feed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn document(text: &str) -> PushedDocument {
        PushedDocument {
            body: Bytes::copy_from_slice(text.as_bytes()),
            content_type: None,
        }
    }

    #[test]
    fn documents_wait_in_their_order_and_one_that_is_replayed_is_not_kept() {
        let (feed, other) = (FeedNo(1), FeedNo(2));
        let mut documents = PushedDocuments::default();
        assert!(documents.put(feed, document("a")) && documents.put(feed, document("b")));
        assert!(!documents.put(feed, document("a")), "again");
        assert!(documents.put(other, document("a")), "of another feed");
        let taken = documents.take(feed);
        assert_eq!(
            taken.iter().map(|it| &it.body[..]).collect::<Vec<_>>(),
            [b"a", b"b"]
        );
        assert!(
            !documents.put(feed, document("b")),
            "also after it was taken"
        );
        assert!(documents.take(feed).is_empty());
        documents.forget(feed);
        assert!(documents.put(feed, document("a")));
    }

    #[test]
    fn a_flood_takes_no_more_memory_than_its_limits() {
        let mut documents = PushedDocuments::default();
        let kept = (0..100).filter(|n| documents.put(FeedNo(1), document(&n.to_string())));
        assert_eq!(kept.count(), OF_FEED_MAX);
        let large = "x".repeat(5 << 20);
        let kept = (2..40).filter(|n| documents.put(FeedNo(*n), document(&format!("{n}{large}"))));
        assert_eq!(kept.count(), 6);
        assert_eq!(documents.known[&FeedNo(1)].len(), REMEMBERED_MAX);
        documents.take(FeedNo(2));
        assert!(
            documents.put(FeedNo(50), document(&large)),
            "there is room again"
        );
    }
}
