//! Traces of forgotten items beside them, in the document for plain readers and in staged pages,
//! and their removal.

use super::{
    open_table::{TableEdit as _, TableSource as _},
    reads,
    tables::{DOCUMENTS, KEYS, STAGING, feed_key, hash_key, item_id_of},
};
use crate::{
    feed::{
        archive::StagedPage, forgotten::ForgottenIn, item::KeyHash,
        legacy_document::LegacyDocument, record::FeedRecord,
    },
    store::{
        StoreError,
        engine::{RowReader, RowWriter},
    },
};

/// A document without what was forgotten; `None` for one out of which that cannot be cut, and which
/// must not be kept.
pub(in crate::store) fn cut_document(
    source: &dyn RowReader,
    record: &FeedRecord,
    document: LegacyDocument,
) -> Result<Option<LegacyDocument>, StoreError> {
    if !record.completeness.has_forgotten {
        return Ok(Some(document));
    }
    let url = reads::poll(source, record.no)?.map(|poll| poll.url);
    let cut = forgotten_in(source, record)?.document(&document, url.as_deref());
    let Ok(cut) = cut else {
        let name = &record.name;
        tracing::warn!(feed.name = %name, "A document of `{name}` is not kept for its readers: a forgotten item cannot be cut out of it");
        return Ok(None);
    };
    Ok(Some(cut.unwrap_or(document)))
}

/// A staged page without what was forgotten; `None` when it shows nothing of that.
pub(in crate::store) fn cut_page(
    source: &dyn RowReader,
    record: &FeedRecord,
    page: &StagedPage,
) -> Result<Option<StagedPage>, StoreError> {
    if !record.completeness.has_forgotten {
        return Ok(None);
    }
    Ok(forgotten_in(source, record)?.page(page))
}

fn forgotten_in<'f>(
    source: &dyn RowReader,
    record: &'f FeedRecord,
) -> Result<ForgottenIn<'f, impl Fn(KeyHash) -> bool>, StoreError> {
    let feed = record.no;
    let keys = source.table(KEYS)?;
    let items = reads::Items::of(source, feed)?;
    let is_forgotten = move |key| {
        // What is damaged is told where it is read for its own sake.
        let id = keys
            .get(&hash_key(feed, key))
            .ok()
            .flatten()
            .and_then(|id| item_id_of(id.value()).ok());
        let item = id.and_then(|id| items.item(id).ok().flatten());
        item.is_some_and(|item| item.content.is_forgotten())
    };
    Ok(ForgottenIn {
        namespace: &record.ids.namespace,
        is_forgotten,
    })
}

/// Cuts what is kept of a feed already. True when there was something to cut.
pub(in crate::store) fn cut_kept(
    tx: &dyn RowWriter,
    record: &FeedRecord,
) -> Result<bool, StoreError> {
    let mut has_cut = false;
    let key = feed_key(record.no);
    let kept: Option<LegacyDocument> = tx.table(DOCUMENTS)?.read(&key, "a document")?;
    if let Some(document) = kept {
        let cut = cut_document(tx, record, document.clone())?;
        has_cut = cut.as_ref() != Some(&document);
        let mut table = tx.edit(DOCUMENTS)?;
        match cut {
            Some(cut) => table.write(&key, &cut)?,
            None => table.remove(&key)?,
        }
    }
    let pages = reads::staged_keys(tx, record.no)?;
    let mut table = tx.edit(STAGING)?;
    // One at a time: together they may be all of a large import.
    for key in pages {
        if let Some(page) = table.read(&key, "a staged page")?
            && let Some(cut) = cut_page(tx, record, &page)?
        {
            has_cut = true;
            table.write(&key, &cut)?;
        }
    }
    Ok(has_cut)
}
