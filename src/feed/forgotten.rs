//! Documents of a feed without the items that were forgotten in it; not who keeps them.

use super::{
    archive::{StagedBody, StagedPage},
    item::KeyHash,
    legacy_document::LegacyDocument,
};
use everfeed_adapters::{Hints, Uncuttable, without_entries};
use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use std::io::{Read as _, Write as _};

/// Items that were forgotten in a feed, as its documents are cut by them.
pub struct ForgottenIn<'f, F> {
    /// Namespace by which keys are hashed.
    pub namespace: &'f str,
    /// True for a key that leads to a forgotten item.
    pub is_forgotten: F,
}

impl<F: Fn(KeyHash) -> bool> ForgottenIn<'_, F> {
    /// Cuts a kept document, of a feed at this address; `None` when it shows nothing that was
    /// forgotten. Its digest stays that of what came, by which polls know it.
    ///
    /// # Errors
    /// [`Uncuttable`] when what was forgotten cannot be cut out of it.
    pub fn document(
        &self,
        document: &LegacyDocument,
        url: Option<&str>,
    ) -> Result<Option<LegacyDocument>, Uncuttable> {
        let content_type = document.content_type.as_deref();
        let hints = Hints {
            content_type,
            base_url: url,
            ..Hints::default()
        };
        Ok(self
            .bytes(&document.body, &hints)?
            .map(|body| LegacyDocument {
                body,
                ..document.clone()
            }))
    }

    /// Cuts a staged page; `None` when it shows nothing that was forgotten. Of one that cannot be
    /// cut the traces stay.
    pub fn page(&self, page: &StagedPage) -> Option<StagedPage> {
        let StagedBody::Waiting(deflated) = &page.content else {
            return None;
        };
        if !page.keys.iter().any(|key| (self.is_forgotten)(*key)) {
            return None;
        }
        let hints = Hints {
            content_type: page.content_type.as_deref(),
            content_language: page.content_language.as_deref(),
            base_url: Some(&page.address.base_url),
            resource: None,
        };
        let mut body = Vec::new();
        let read = DeflateDecoder::new(deflated.as_slice()).read_to_end(&mut body);
        let cut = read
            .ok()
            .and_then(|_| self.bytes(&body, &hints).ok())
            .map(|cut| cut.unwrap_or(body));
        let content = cut.and_then(|body| deflated_again(&body));
        Some(StagedPage {
            content: content.map_or(StagedBody::Traces, StagedBody::Waiting),
            ..page.clone()
        })
    }

    fn bytes(&self, bytes: &[u8], hints: &Hints<'_>) -> Result<Option<Vec<u8>>, Uncuttable> {
        without_entries(bytes, hints, |entry| {
            (self.is_forgotten)(KeyHash::of(self.namespace, &entry.key.stripped()))
        })
    }
}

fn deflated_again(body: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).ok()?;
    encoder.finish().ok()
}
