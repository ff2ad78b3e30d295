//! A publisher's last good document as its plain readers get it: with our links or as it came, made once for all of them; not
//! how it is asked for.

use super::{ReadError, Readers, coding::Codings};
use crate::{
    feed::{legacy_document::LegacyDocument, record::FeedNo},
    readers::Coding,
    render::{
        LegacyLinks, Representation,
        legacy::{pushed, with_links},
    },
};
use bytes::Bytes;
use std::sync::Arc;

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
    codings: Codings,
}

impl PlainDocument {
    fn new(document: LegacyDocument, links: Option<&LegacyLinks>) -> Self {
        let rewritten = links.and_then(|links| with_links(&document.body, document.syntax, links));
        let links = links.filter(|_| rewritten.is_some());
        let checksum = links.map(|links| crc32fast::hash(format!("{links:?}").as_bytes()));
        let tag = match checksum {
            Some(checksum) => format!("{}-{checksum:08x}", document.digest),
            None => document.digest.to_string(),
        };
        Self {
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
}

/// A document as it is asked for; the number of times that it was kept tells one from the next.
pub(super) type LegacyKey = (FeedNo, u64, Option<LegacyLinks>);

impl Readers {
    /// The last good document of a feed, with links in it or as it came; `None` where none is kept.
    pub async fn legacy(
        &self,
        feed: FeedNo,
        links: Option<LegacyLinks>,
    ) -> Result<Option<Arc<PlainDocument>>, ReadError> {
        let key = (feed, self.notify.documents(feed), links);
        if let Some(known) = self.documents.get(&key).await {
            return Ok(Some(known));
        }
        let stored = self.store.document(feed).await.map_err(|error| ReadError::Store(Arc::new(error)))?;
        let Some(document) = stored else { return Ok(None) };
        let made = Arc::new(PlainDocument::new(document, key.2.as_ref()));
        self.documents.insert(key, made.clone()).await;
        Ok(Some(made))
    }
}
