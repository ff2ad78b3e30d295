//! A page of archives, or a live document that a walk begins from, as it is staged and read back.

use super::sliced::is_damaged;
use crate::{
    feed::{
        archive::{PageAddress, StagedBody, StagedPage},
        head_caps::cap_head,
        item::KeyHash,
        schedule::Failure,
        stamp::Stamp,
    },
    ingest::{Context, Fetched},
};
use bytes::Bytes;
use everfeed_adapters::{Digest, Hints, SlicedDocument, cross_check_count, slice};
use std::collections::HashSet;

/// A page that was fetched from `url` and is not read yet. `base_url` is what its relative
/// references are relative to.
pub(in crate::ingest) fn unread(
    url: &str,
    base_url: String,
    fetched: &Fetched,
    now: Stamp,
) -> StagedPage {
    StagedPage {
        no: 0,
        address: PageAddress {
            url: url.to_owned(),
            landed: fetched.base_url.clone(),
            base_url,
        },
        content_type: fetched.content_type.clone(),
        content_language: fetched.content_language.clone(),
        read_at: now,
        body: Digest::of(&fetched.body),
        keys: Vec::new(),
        strong: 0,
        content: StagedBody::Traces,
    }
}

/// True when a page may lack what its publisher shows.
pub(in crate::ingest) fn may_lack(window: &SlicedDocument, page: &StagedPage, body: &[u8]) -> bool {
    let hints = Hints {
        content_type: page.content_type.as_deref(),
        ..Hints::default()
    };
    is_damaged(window)
        || cross_check_count(body, &hints).is_some_and(|found| found > window.entries.len())
}

/// The document of a page; `None` when it is no feed.
pub(in crate::ingest) fn window(page: &StagedPage, body: &[u8]) -> Option<SlicedDocument> {
    let mut window = slice(body, &page.hints()).ok()?;
    cap_head(&mut window);
    Some(window)
}

/// The keys of a document's entries, each once, the strong ones first.
pub(in crate::ingest) fn keys_of(namespace: &str, window: &SlicedDocument) -> Vec<KeyHash> {
    let mut met = HashSet::new();
    let (weak, strong): (Vec<_>, Vec<_>) =
        window.entries.iter().partition(|entry| entry.key.is_weak());
    let keys = strong
        .into_iter()
        .chain(weak)
        .map(|entry| KeyHash::of(namespace, &entry.key.stripped()));
    keys.filter(|key| met.insert(*key)).collect()
}

/// Number of different strong keys of a document.
pub(in crate::ingest) fn strong_of(window: &SlicedDocument) -> u32 {
    let strong = window.entries.iter().filter(|entry| !entry.key.is_weak());
    let different: HashSet<String> = strong.map(|entry| entry.key.stripped()).collect();
    u32::try_from(different.len()).unwrap_or(u32::MAX)
}

/// Compresses a body for staging.
pub(in crate::ingest) async fn deflate(
    context: &Context,
    body: Bytes,
) -> Result<StagedBody, Failure> {
    context
        .compute(move || StagedBody::deflated(&body))
        .await?
        .map_err(Failure::ours)
}
