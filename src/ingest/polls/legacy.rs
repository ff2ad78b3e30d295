//! The last good document of a feed of a site, kept for its plain readers; not what the document
//! changes.

use super::Poll;
use crate::{
    feed::{legacy_document::LegacyDocument, stamp::Stamp},
    ingest::{Fetched, documents::Sliced},
};
use http::header::LAST_MODIFIED;
use std::sync::Arc;
use tracing::{info, warn};

/// Seconds for which documents must agree in being cut short or empty before readers get them in
/// place of the last good one.
const AGREEMENT_SECS: u64 = 900;

impl Poll<'_> {
    /// True when plain readers get an older document than the one that was read last, or none: the
    /// next one is wanted whole, whatever the validators say. So it is after a crash between the
    /// keeping and the commit.
    pub(super) async fn lacks_legacy_document(&self) -> bool {
        if self.feed.legacy_url().is_none() {
            return false;
        }
        match self.context.store.document(self.feed.no).await {
            Ok(kept) => kept.map(|kept| kept.digest) != self.state.document.body,
            // Nothing could be kept now either.
            Err(_) => false,
        }
    }

    /// Since when every document has been cut short or empty; `None` when this one is not. The
    /// first document of a feed has nobody to disagree with.
    pub(super) fn broken_since(&self, sliced: &Sliced) -> Option<Stamp> {
        let is_broken = sliced.window.is_truncated() || sliced.says_nothing();
        let since = match self.state.document.body {
            Some(_) => self
                .state
                .document
                .broken_since
                .unwrap_or(self.context.now()),
            None => Stamp::ZERO,
        };
        is_broken.then_some(since)
    }

    /// The document that plain readers are to get, of a feed that has any. `None` for one that is
    /// cut short or empty while the last good one is kept: as a rule an accident, and readers go on
    /// getting that. When documents agree for a quarter of an hour it is meant.
    pub(super) fn legacy_document(
        &self,
        fetched: &Fetched,
        sliced: &Sliced,
    ) -> Option<Arc<LegacyDocument>> {
        self.feed.legacy_url()?;
        let now = self.context.now();
        if let Some(since) = self
            .broken_since(sliced)
            .filter(|since| now < since.plus_secs(AGREEMENT_SECS))
        {
            if since == now {
                let name = &self.feed.name;
                let what = if sliced.says_nothing() {
                    "holds nothing"
                } else {
                    "is cut short"
                };
                info!(feed.name = %name, "The document of `{name}` {what}; its readers get the last good one for {AGREEMENT_SECS} s at least");
            }
            return None;
        }
        let last_modified = fetched
            .headers
            .get(LAST_MODIFIED)
            .and_then(|date| date.to_str().ok());
        Some(Arc::new(LegacyDocument {
            body: fetched.body.to_vec(),
            digest: sliced.body?,
            content_type: fetched.content_type.clone(),
            last_modified: last_modified.map(str::to_owned),
            syntax: sliced.window.format.into(),
            fetched_at: now,
        }))
    }

    /// Keeps the document that plain readers get. Where that fails the one before stays, and the
    /// next poll tries again.
    pub(super) async fn keep_legacy(&self, document: Option<&Arc<LegacyDocument>>) {
        let Some(document) = document.cloned() else {
            return;
        };
        let (no, name) = (self.feed.no, &self.feed.name);
        match self.context.store.keep_document(no, document).await {
            Ok(()) => self.context.notify.document_kept(no),
            Err(error) => {
                warn!(feed.name = %name, "The document of `{name}` could not be kept for its readers: {error}")
            }
        }
    }
}
