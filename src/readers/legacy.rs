//! A publisher's last good document as its plain readers get it: with our links or as it came, made
//! once for all of them; not how it is asked for.

use super::{ReadError, Readers, coding::Codings};
use crate::{
    feed::{
        legacy_document::{LegacyDocument, LegacySyntax},
        record::FeedNo,
    },
    readers::Coding,
    render::{
        LegacyLinks, Representation,
        legacy::{pushed, with_links},
    },
};
use bytes::Bytes;
use everfeed_adapters::Digest;
use futures_util::FutureExt as _;
use std::{
    ptr,
    sync::{Arc, Weak},
};

/// A publisher's document, ready to be sent.
#[derive(Debug)]
pub struct PlainDocument {
    /// Its bytes.
    pub body: Bytes,
    /// The publisher's `Content-Type`.
    pub content_type: Option<String>,
    /// The publisher's `Last-Modified`.
    pub last_modified: Option<String>,
    /// The form of what subscribers to its address are pushed; `None` where nothing is.
    pub pushed: Option<Representation>,
    /// A name for these bytes and no others.
    pub tag: String,
    /// True where a browser may show it by a style sheet of its publisher, which may load and run
    /// what it needs.
    pub may_have_style_sheet: bool,
    codings: Codings,
}

impl PlainDocument {
    fn new(document: LegacyDocument, links: Option<&LegacyLinks>) -> Self {
        let rewritten = links.and_then(|links| with_links(&document.body, document.syntax, links));
        let links = links.filter(|_| rewritten.is_some());
        let checksum = links.map(|links| crc32fast::hash(format!("{links:?}").as_bytes()));
        // Not the digest of what came: entries may have been cut out of it since.
        let digest = Digest::of(&document.body);
        let tag = match checksum {
            Some(checksum) => format!("{digest}-{checksum:08x}"),
            None => digest.to_string(),
        };
        Self {
            may_have_style_sheet: document.syntax == LegacySyntax::Other
                || names_style_sheet(&document.body),
            body: Bytes::from(rewritten.unwrap_or(document.body)),
            pushed: pushed(document.syntax),
            content_type: document.content_type,
            last_modified: document.last_modified,
            tag,
            codings: Codings::default(),
        }
    }

    /// The body in a content coding, made once.
    pub async fn coded(&self, coding: Coding) -> Bytes {
        self.codings.get(coding, &self.body).await
    }

    /// The body in a content coding, if it was made.
    pub fn coded_before(&self, coding: Coding) -> Option<Bytes> {
        self.codings.known(coding, &self.body)
    }
}

/// True for a document in which a style sheet is named, wherever it stands: of a comment that does
/// so nothing is lost.
fn names_style_sheet(document: &[u8]) -> bool {
    const NAME: &[u8] = b"xml-stylesheet";
    // In UTF-16 every other byte is NUL, behind the characters or before them.
    const WIDE_NAME: &[u8] = b"x\0m\0l\0-\0s\0t\0y\0l\0e\0s\0h\0e\0e\0t";
    [NAME, WIDE_NAME]
        .iter()
        .any(|name| memchr::memmem::find(document, name).is_some())
}

/// A document as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LegacyKey {
    feed: FeedNo,
    /// Times that a document of the feed was kept, which tell one from the next.
    kept: u64,
    links: Option<LegacyLinks>,
}

impl Readers {
    /// A question for the last good document of a feed, with links in it or as it came.
    pub fn document_key(&self, feed: FeedNo, links: Option<LegacyLinks>) -> LegacyKey {
        LegacyKey {
            feed,
            kept: self.notify.documents(feed),
            links,
        }
    }

    /// The last good document of a feed; `None` where none is kept.
    pub async fn document(&self, key: &LegacyKey) -> Result<Option<Arc<PlainDocument>>, ReadError> {
        if let Some(known) = self.documents.get(key).await {
            return Ok(Some(known));
        }
        let Some(document) = self.store.document(key.feed).await? else {
            return Ok(None);
        };
        let made = Arc::new(PlainDocument::new(document, key.links.as_ref()));
        self.documents.insert(key.clone(), made.clone()).await;
        Ok(Some(made))
    }

    /// A document that was had before, if it is at hand and still the last good one of its feed.
    pub fn same_document(
        &self,
        key: &LegacyKey,
        had: &Weak<PlainDocument>,
    ) -> Option<Arc<PlainDocument>> {
        if self.notify.documents(key.feed) != key.kept {
            return None;
        }
        let known = self.documents.get(key).now_or_never()??;
        ptr::eq(Arc::as_ptr(&known), had.as_ptr()).then_some(known)
    }
}
