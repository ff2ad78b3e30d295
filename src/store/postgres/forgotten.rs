//! Traces of forgotten items beside them, in the document for plain readers and in staged pages,
//! and their removal.

use super::{
    items::FeedItems,
    planned::write_value,
    rows::{self, bound},
    session::DatabaseSession,
    staged_pages::{staged_numbers, staged_page, write_page},
    statement::SqlStatement,
};
use crate::{
    feed::{
        archive::StagedPage,
        forgotten::ForgottenIn,
        item::KeyHash,
        legacy_document::LegacyDocument,
        record::{FeedNo, FeedRecord},
    },
    store::{StoreError, plan::Held as _},
};
use std::cell::RefCell;

const DOCUMENT_WRITTEN: &str = "INSERT INTO documents (feed, value) VALUES ($1, $2) \
     ON CONFLICT (feed) DO UPDATE SET value = excluded.value";

/// The document of a feed.
pub(super) fn document(
    session: &DatabaseSession,
    feed: FeedNo,
) -> Result<Option<LegacyDocument>, StoreError> {
    let sql = "SELECT value FROM documents WHERE feed = $1";
    rows::value(session, sql, feed, "a document")
}

/// Puts a document in the place of the one before.
pub(super) fn write_document(
    session: &DatabaseSession,
    feed: FeedNo,
    document: &LegacyDocument,
) -> Result<(), StoreError> {
    write_value(session, DOCUMENT_WRITTEN, feed, document)
}

/// A document without what was forgotten; `None` for one out of which that cannot be cut, and which
/// must not be kept.
pub(super) fn cut_document(
    session: &DatabaseSession,
    record: &FeedRecord,
    document: LegacyDocument,
) -> Result<Option<LegacyDocument>, StoreError> {
    if !record.completeness.has_forgotten {
        return Ok(Some(document));
    }
    let url = rows::poll(session, record.no)?.map(|poll| poll.url);
    let traces = Traces::of(session, record);
    let cut = traces.cut_by(|forgotten| forgotten.document(&document, url.as_deref()))?;
    let Ok(cut) = cut else {
        let name = &record.name;
        tracing::warn!(feed.name = %name, "A document of `{name}` is not kept for its readers: a forgotten item cannot be cut out of it");
        return Ok(None);
    };
    Ok(Some(cut.unwrap_or(document)))
}

/// A staged page without what was forgotten; `None` when it shows nothing of that.
pub(super) fn cut_page(
    session: &DatabaseSession,
    record: &FeedRecord,
    page: &StagedPage,
) -> Result<Option<StagedPage>, StoreError> {
    if !record.completeness.has_forgotten {
        return Ok(None);
    }
    Traces::of(session, record).cut_by(|forgotten| forgotten.page(page))
}

/// Cuts what is kept of a feed already.
pub(super) fn cut_kept(session: &DatabaseSession, record: &FeedRecord) -> Result<(), StoreError> {
    if let Some(document) = document(session, record.no)? {
        match cut_document(session, record, document)? {
            Some(cut) => write_document(session, record.no, &cut)?,
            None => {
                let sql = "DELETE FROM documents WHERE feed = $1";
                session.change(SqlStatement::new(sql).with(record.no));
            }
        }
    }
    // One at a time: together they may be all of a large import.
    for no in staged_numbers(session, record.no)? {
        if let Some(page) = staged_page(session, record.no, no)?
            && let Some(cut) = cut_page(session, record, &page)?
        {
            write_page(session, record.no, &cut)?;
        }
    }
    Ok(())
}

/// Looks for forgotten items behind keys. A failure of the database is kept until the end.
struct Traces<'s> {
    session: &'s DatabaseSession,
    record: &'s FeedRecord,
    failure: RefCell<Option<StoreError>>,
}

impl<'s> Traces<'s> {
    fn of(session: &'s DatabaseSession, record: &'s FeedRecord) -> Self {
        Self {
            session,
            record,
            failure: RefCell::default(),
        }
    }

    // Limit: a round trip for each key of the document.
    /// The result of a cut, unless the database failed meanwhile.
    fn cut_by<T>(
        &self,
        cut: impl FnOnce(ForgottenIn<'_, &dyn Fn(KeyHash) -> bool>) -> T,
    ) -> Result<T, StoreError> {
        let is_forgotten = |key| match self.is_forgotten(key) {
            Ok(is_forgotten) => is_forgotten,
            Err(error) => {
                self.failure.borrow_mut().get_or_insert(error);
                false
            }
        };
        let done = cut(ForgottenIn {
            namespace: &self.record.ids.namespace,
            is_forgotten: &is_forgotten,
        });
        match self.failure.take() {
            Some(error) => Err(error),
            None => Ok(done),
        }
    }

    fn is_forgotten(&self, key: KeyHash) -> Result<bool, StoreError> {
        let Some(id) = bound(self.session, self.record.no, key)? else {
            return Ok(false);
        };
        // What is damaged is told where it is read for its own sake.
        let item = match FeedItems::of(self.session, self.record.no).item(id) {
            Err(StoreError::Damaged(_)) => None,
            item => item?,
        };
        Ok(item.is_some_and(|item| item.content.is_forgotten()))
    }
}
