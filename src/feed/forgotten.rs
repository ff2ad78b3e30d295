//! Documents of a feed without the items that were forgotten in it; not who keeps them.

use super::{
    archive::{StagedBody, StagedPage},
    item::KeyHash,
    legacy_document::LegacyDocument,
};
use everfeed_adapters::{Hints, Uncuttable, without_entries};

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
        if !page.waits() {
            return None;
        }
        let with = |content| StagedPage {
            content,
            ..page.clone()
        };
        let Some(body) = page.content.inflated() else {
            return Some(with(StagedBody::Traces));
        };
        let shows = page.keys.iter().any(|key| (self.is_forgotten)(*key));
        if !shows && !may_hold_asides(&body) {
            return None;
        }
        let Ok(cut) = self.bytes(&body, &page.hints()) else {
            return Some(with(StagedBody::Traces));
        };
        if cut.is_none() && !shows {
            return None;
        }
        let content = StagedBody::deflated(&cut.unwrap_or(body));
        Some(with(content.unwrap_or_default()))
    }

    fn bytes(&self, bytes: &[u8], hints: &Hints<'_>) -> Result<Option<Vec<u8>>, Uncuttable> {
        without_entries(bytes, hints, |key| {
            (self.is_forgotten)(KeyHash::of(self.namespace, &key.stripped()))
        })
    }
}

/// True for a page that may tell of items beside its entries. Most do not, and there may be
/// thousands.
fn may_hold_asides(body: &[u8]) -> bool {
    let signs: [&[u8]; 4] = [b"<!-", b"<!D", b"<?", b"deleted-entry"];
    let is_wide = body.contains(&0);
    is_wide
        || signs.iter().any(|sign| {
            let mut places = memchr::memmem::find_iter(body, sign);
            places.any(|at| !body[at..].starts_with(b"<?xml "))
        })
}
