//! A transaction as the work in it sees it, and what it leaves behind for the engine: times, the mark
//! of the content, removals; not how it is made durable.

use super::{open_table::TableEdit as _, removed::Removed, tables::META};
use crate::{
    feed::stamp::Stamp,
    store::{StoreError, clock_guard::ClockGuard, content_mark::ContentMark, engine::RowWriter},
};
use std::cell::OnceCell;

/// Key in META that says that the store is to be written anew.
pub(in crate::store) const REWRITE_KEY: &str = "rewrite";

/// The state of a store in which a transaction begins.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::store) struct Opening {
    /// The time at which it begins.
    pub(in crate::store) now: Stamp,
    pub(in crate::store) guard: ClockGuard,
    /// The mark of the content before it; the generation of new feeds as it is now.
    pub(in crate::store) content: ContentMark,
}

/// A transaction as a job sees it.
pub(in crate::store) struct Writing<'t> {
    tx: &'t dyn RowWriter,
    opening: OnceCell<Opening>,
    /// Reads the opening where it is not known from the beginning.
    read_opening: Option<&'t dyn Fn() -> Result<Opening, StoreError>>,
    /// The last T that was given out in the transaction, if any was.
    pub(in crate::store) last_t: Option<Stamp>,
    /// True once something may have been written.
    pub(in crate::store) touched: bool,
    /// True when the time is written with it.
    pub(in crate::store) records_clock: bool,
    /// True when what was written may not be on disk later than it is answered.
    pub(in crate::store) wants_sync: bool,
    /// True when what it removes must not stay in free pages of a file.
    pub(in crate::store) wants_rewrite: bool,
    /// Removals for good.
    pub(in crate::store) removed: Vec<Removed>,
    /// True when feeds, parts, groups or entries of the registry were added, changed or removed.
    pub(in crate::store) moves_catalog: bool,
    /// True when users or tokens were added, changed or removed.
    pub(in crate::store) moves_accounts: bool,
    renews_generation: bool,
}

impl<'t> Writing<'t> {
    /// A transaction that has begun at this time, over a store with this clock and mark.
    pub(in crate::store) fn over(
        tx: &'t dyn RowWriter,
        now: Stamp,
        guard: ClockGuard,
        content: ContentMark,
    ) -> Self {
        let opening = Opening {
            now,
            guard,
            content,
        };
        Self {
            opening: OnceCell::from(opening),
            ..Self::beginning(tx)
        }
    }

    /// A transaction whose opening comes with the first answer of the store.
    #[cfg(feature = "postgres")]
    pub(in crate::store) fn opened_by(
        tx: &'t dyn RowWriter,
        read_opening: &'t dyn Fn() -> Result<Opening, StoreError>,
    ) -> Self {
        Self {
            read_opening: Some(read_opening),
            ..Self::beginning(tx)
        }
    }

    fn beginning(tx: &'t dyn RowWriter) -> Self {
        Self {
            tx,
            opening: OnceCell::new(),
            read_opening: None,
            last_t: None,
            touched: false,
            records_clock: false,
            wants_sync: false,
            wants_rewrite: false,
            removed: Vec::new(),
            moves_catalog: false,
            moves_accounts: false,
            renews_generation: false,
        }
    }

    fn opening(&self) -> Result<&Opening, StoreError> {
        if let Some(opening) = self.opening.get() {
            return Ok(opening);
        }
        let opening = match self.read_opening {
            Some(read) => read()?,
            None => Opening::default(),
        };
        Ok(self.opening.get_or_init(|| opening))
    }

    fn opening_mut(&mut self) -> Result<&mut Opening, StoreError> {
        self.opening()?;
        self.opening
            .get_mut()
            .ok_or_else(|| StoreError::Failed("a transaction has no beginning".into()))
    }

    /// Begins the next job of the transaction.
    pub(in crate::store) fn begin_job(&mut self, now: Stamp) {
        if let Some(opening) = self.opening.get_mut() {
            opening.now = now;
        }
    }

    /// The time at which the job began.
    pub(in crate::store) fn now(&self) -> Result<Stamp, StoreError> {
        Ok(self.opening()?.now)
    }

    /// The guard of the clock after what was done so far.
    pub(in crate::store) fn guard(&self) -> ClockGuard {
        self.opening.get().copied().unwrap_or_default().guard
    }

    /// For reading. A job checks first and writes after: refused before the first write, it leaves
    /// no trace.
    pub(in crate::store) fn look(&self) -> &'t dyn RowWriter {
        self.tx
    }

    /// For writing. A job that fails after this is thrown out together with its transaction.
    pub(in crate::store) fn change(&mut self) -> &'t dyn RowWriter {
        self.sync();
        self.change_late()
    }

    /// For writing what may be on disk later: a kill takes it back, and costs a poll.
    pub(in crate::store) fn change_late(&mut self) -> &'t dyn RowWriter {
        self.touched = true;
        self.tx
    }

    /// Has everything of the transaction on disk when it is answered.
    pub(in crate::store) fn sync(&mut self) {
        self.wants_sync = true;
    }

    /// Has the store written anew once this is durable, at the latest at the next start, where free
    /// room keeps what was there.
    pub(in crate::store) fn request_rewrite(&mut self) -> Result<(), StoreError> {
        self.change().edit(META)?.write(REWRITE_KEY, &1_u32)?;
        self.wants_rewrite = true;
        Ok(())
    }

    /// Refuses a clock that cannot be right.
    pub(in crate::store) fn check_clock(&self) -> Result<(), StoreError> {
        let opening = self.opening()?;
        opening.guard.check(opening.now)
    }

    /// Remembers that something was written now.
    pub(in crate::store) fn record_clock(&mut self) -> Result<(), StoreError> {
        self.records_clock = true;
        let opening = self.opening_mut()?;
        opening.guard.record(opening.now);
        Ok(())
    }

    /// Remembers that content was written, and the last T of its feed.
    pub(in crate::store) fn record_content(&mut self, last_t: Stamp) {
        self.last_t = self.last_t.max(Some(last_t));
    }

    /// The mark of the content after the transaction.
    pub(in crate::store) fn content(&self) -> ContentMark {
        let content = self.opening.get().copied().unwrap_or_default().content;
        self.last_t
            .map_or(content, |last_t| content.after_commit(last_t))
    }

    /// The generation of a feed that is made now.
    pub(in crate::store) fn new_generation(&self) -> Result<Stamp, StoreError> {
        Ok(self.opening()?.content.generation)
    }

    /// Has feeds that are made from now on begin a generation after all that a feed gave out: one of
    /// them may have the name of this one, which goes.
    pub(in crate::store) fn renew_generation(&mut self, last_t: Stamp) -> Result<(), StoreError> {
        let last_t = self.content().last_t.max(last_t);
        let opening = self.opening_mut()?;
        let begins = opening.now.max(last_t);
        opening.content.generation = begins.max(opening.content.generation.next());
        self.renews_generation = true;
        self.record_content(Stamp::ZERO);
        Ok(())
    }

    /// The mark of the content with a generation that was renewed; `None` where none was.
    #[cfg(feature = "postgres")]
    pub(in crate::store) fn renewed_content(&self) -> Option<ContentMark> {
        let opening = self.opening.get().filter(|_| self.renews_generation);
        opening.map(|opening| opening.content)
    }

    /// Remembers that something was removed for good: a backup must not bring it back.
    pub(in crate::store) fn record_removed(&mut self, removed: Removed) {
        self.removed.push(removed);
    }

    /// Takes the clock for right.
    pub(in crate::store) fn accept_clock(&mut self) -> Result<(), StoreError> {
        self.sync();
        let opening = self.opening_mut()?;
        opening.guard.accept(opening.now);
        Ok(())
    }
}
